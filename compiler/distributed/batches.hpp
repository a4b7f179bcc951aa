// Batches of several ranks: which examples each has, random numbers of examples, and statistics over all of them. None of
// it depends on the number of ranks.
#pragma once

#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lantern/compiler/distributed/operations.hpp"
#include "lantern/compiler/nn/normalization.hpp"
#include "lantern/compiler/random/random.hpp"

namespace lantern::nn {

struct LoaderOptions {
  std::int64_t batch = 32;  ///< examples of all ranks together
  std::uint64_t seed = 0;
  bool shuffle = true;  ///< in each epoch another order
};

/// Which examples make up each batch, the same on all ranks, and which of them this rank has: of each batch equal parts in
/// the order of ranks. A batch has the same examples on any number of ranks. The last examples of an epoch that do not
/// make up a batch are left out. Error: a batch that the ranks cannot share equally, or of no examples.
class Loader {
 public:
  Loader(std::int64_t examples, const LoaderOptions& o, std::int64_t rank = distributed::world_rank(),
         std::int64_t ranks = distributed::world_size())
      : options_(o), rank_(rank), part_(o.batch / std::max<std::int64_t>(ranks, 1)), order_(static_cast<std::size_t>(examples)) {
    if (o.batch < 1 || o.batch % ranks != 0)
      throw Error("nn::Loader: expected a batch that " + std::to_string(ranks) + " ranks share equally, got " +
                  std::to_string(o.batch) + " examples");
    arrange(0);
  }

  /// How many batches an epoch has.
  std::int64_t batches() const { return static_cast<std::int64_t>(order_.size()) / options_.batch; }
  /// The numbers of this rank's examples in a batch.
  std::vector<std::int64_t> batch(std::int64_t epoch, std::int64_t number) {
    if (number < 0 || number >= batches())
      throw Error("nn::Loader: expected a batch from 0 to " + std::to_string(batches() - 1) + ", got " +
                  std::to_string(number));
    if (epoch != epoch_) arrange(epoch);
    const auto first = order_.begin() + number * options_.batch + rank_ * part_;
    return {first, first + part_};
  }

 private:
  void arrange(std::int64_t epoch) {
    epoch_ = epoch;
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    if (!options_.shuffle) return;
    // Fisher and Yates; the distributions of the standard library differ between libraries.
    std::seed_seq seed{static_cast<std::uint32_t>(options_.seed), static_cast<std::uint32_t>(options_.seed >> 32U),
                       static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32U)};
    std::mt19937_64 engine(seed);
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[engine() % i]);
  }

  LoaderOptions options_;
  std::int64_t rank_, part_, epoch_ = 0;
  std::vector<std::int64_t> order_;
};

/// The rows of a tensor, along its first dimension, with these numbers. Error: a number outside.
template <class T>
TensorValue<T> rows(const TensorValue<T>& t, const std::vector<std::int64_t>& numbers) {
  if (t.shape.empty()) throw Error("nn::rows: expected a tensor with a first dimension, got a number");
  std::vector<std::int64_t> shape = t.shape;
  shape[0] = static_cast<std::int64_t>(numbers.size());
  const auto row = std::accumulate(shape.begin() + 1, shape.end(), std::int64_t{1}, std::multiplies<>());
  TensorValue<T> out(shape);
  auto to = out.data.begin();
  for (const std::int64_t i : numbers) {
    if (i < 0 || i >= t.shape[0])
      throw Error("nn::rows: expected rows from 0 to " + std::to_string(t.shape[0] - 1) + ", got " + std::to_string(i));
    to = std::copy_n(t.data.begin() + i * row, row, to);
  }
  return out;
}

namespace detail {
template <class T>
Rep<Tensor<T>> drawn_rows(core::random::detail::Law law, const core::random::Key& key,
                          const Rep<Array<std::int64_t>>& numbers, const std::vector<core::Subscript>& more,
                          std::source_location l) {
  const core::Location loc = core::here(l);
  core::Datums sizes{numbers.size().datum()};
  for (const core::Subscript& s : more) sizes.push_back(s.datum);
  return Rep<Tensor<T>>(core::detail::tabulate(
      core::detail::TypeOf<T>::get().kind(), sizes,
      [&](const core::Datums& at) {
        Rep<std::int64_t> place = numbers[Rep<std::int64_t>(at[0])];
        for (std::size_t d = 1; d < at.size(); ++d)
          place = place * Rep<std::int64_t>(sizes[d]) + Rep<std::int64_t>(at[d]);
        return core::random::detail::draw(law, key.datum(), place.datum(), core::detail::TypeOf<T>::get().kind(), loc);
      },
      loc));
}
}  // namespace detail

/// The rows with these numbers, of examples for instance, of random::uniform<T>(key, n, sizes...): the same numbers for an
/// example on whichever rank it is.
template <core::FloatElement T, std::convertible_to<core::Subscript>... Size>
Rep<Tensor<T>> uniform_rows(const core::random::Key& key, const Rep<Array<std::int64_t>>& numbers, const Size&... sizes) {
  return detail::drawn_rows<T>(core::random::detail::Law::uniform, key, numbers, {core::Subscript(sizes)...},
                               std::source_location::current());
}
/// The same of random::normal<T>.
template <core::FloatElement T, std::convertible_to<core::Subscript>... Size>
Rep<Tensor<T>> normal_rows(const core::random::Key& key, const Rep<Array<std::int64_t>>& numbers, const Size&... sizes) {
  return detail::drawn_rows<T>(core::random::detail::Law::normal, key, numbers, {core::Subscript(sizes)...},
                               std::source_location::current());
}

/// BatchNorm::train by mean and variance of the batches of all ranks, of whatever sizes: the same as one process has with
/// all of them. x: [batch, channels, size...]. Two messages of [channels] forward, and two backward. Error: less than two
/// numbers in a channel of all ranks.
template <class S, core::detail::FloatTensor X>
std::pair<detail::Values<X>, RunningStatistics<S>> train_on_all_ranks(
    const BatchNorm<S>& norm, const Rep<X>& x, const RunningStatistics<S>& running, const BatchNormOptions& o = {},
    const distributed::Communicator& comm = {}, std::source_location l = std::source_location::current()) {
  const detail::Caller caller(l);
  using E = core::detail::element_t<X>;
  using V = detail::Values<X>;
  const int rank = x.datum().type().rank();
  if (rank < 2)
    core::raise_at({}, "BatchNorm: expected a tensor [batch, channels, ...], got " + x.datum().type().str());
  std::vector<int> axes(static_cast<std::size_t>(rank) - 1), places(axes.size() - 1);
  std::iota(axes.begin(), axes.end(), 1);
  axes[0] = 0;
  std::iota(places.begin(), places.end(), 1);
  Rep<std::int64_t> own = std::int64_t{1};
  for (const int d : axes) own = own * x.dim(d);
  const Rep<std::int64_t> n = distributed::all_reduce(own, distributed::Reduction::sum, comm, l);
  core::detail::Build{}.require((n > 1).datum(),
                                "BatchNorm: expected more than one number in each channel while training, got {}",
                                {n.datum()});
  const Rep<E> count = cast<E>(n), unbiased = count / (count - static_cast<E>(1));
  const auto mean_of = [&](const V& t) {
    const V sum(core::detail::sum_along(t.datum(), {axes, false}, {}));
    return V(distributed::all_reduce(sum, distributed::Reduction::sum, comm, l) / count);
  };
  const auto beside = [&](const V& v) { return V(core::detail::unsqueeze(v.datum(), places, {})); };
  const V all(x), mean = mean_of(all), missed = all - beside(mean), variance = mean_of(missed * missed);
  const E m = static_cast<E>(o.momentum), rest = static_cast<E>(1 - o.momentum);
  const V scale = V(norm.weight) / sqrt(variance + static_cast<E>(o.epsilon));
  return {missed * beside(scale) + beside(V(norm.bias)),
          RunningStatistics<S>{rest * running.mean + m * stop_gradient(mean),
                               rest * running.variance + m * unbiased * stop_gradient(variance)}};
}

}  // namespace lantern::nn
