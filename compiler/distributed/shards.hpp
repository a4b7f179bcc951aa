// Optimiser states that are sharded: each rank has the state of a part of all parameters, and updates that part.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "lantern/compiler/ad/derivative.hpp"
#include "lantern/compiler/distributed/operations.hpp"
#include "lantern/compiler/nn/parameters.hpp"

namespace lantern::nn {

/// This rank's part of all parameters of a model, one after another: as many on each rank, zeros at the end of the last.
/// A product like any model: optimisers that treat each parameter for itself (sgd, adam, ...) update it, and have states
/// of it. Source: Rajbhandari et al. 2020, "ZeRO", stage 1.
///
///   auto state = nn::adam_state(nn::shard_of(model));                       // on the host, on each rank
///   const auto [loss, g] = nn::data_parallel_shard(loss_of)(m, x, y);       // in the step
///   const auto [part, s2] = nn::adam(nn::shard_of(m), g, s);
///   const Model m2 = nn::unsharded(m, part);
template <class S>
struct Shard {
  Parameter<S, dyn> values;
};

namespace detail {

/// The element type of the first leaf of a product.
template <class P>
struct LeafOf {
  template <class First, class... More>
  static typename LeafOf<First>::type first(core::detail::Types<First, More...>);
  using type = decltype(first(core::detail::part_types<P>{}));
};
template <SequenceType P>
struct LeafOf<P> : LeafOf<core::detail::element_type<P>> {};
template <class T>
struct LeafOf<Rep<T>> {
  using type = typename core::detail::Traits<T>::element;
};
template <class T>
struct LeafOf<TensorValue<T>> {
  using type = T;
};
template <core::FloatElement T>
struct LeafOf<T> {
  using type = T;
};
template <class M>
using leaf_of = typename LeafOf<M>::type;

/// How many of the n parameters a rank has.
template <class N>
N part_size(const N& n, const N& ranks) {
  return (n + ranks - N(std::int64_t{1})) / ranks;
}

template <class E>
using Flat = Rep<Tensor<E, dyn>>;

inline core::Datum elements(const core::Datum& d) {
  Rep<std::int64_t> n = std::int64_t{1};
  for (int k = 0; k < d.type().rank(); ++k) n = n * Rep<std::int64_t>(core::dimension_of(d, k, {}));
  return n.datum();
}
inline core::Datum as_vector(const core::Datum& d) {
  if (!d.type().is_scalar()) return core::detail::reshape(d, {elements(d)}, {});
  const std::array one{d};
  return core::detail::stack(one, 0, {});
}
/// All parameters, with zeros up to a part for each rank: [ranks, part].
template <class M>
core::Datum in_parts(const M& model, const distributed::Communicator& comm, std::source_location l) {
  const Caller caller(l);
  core::Datums vectors;
  for (const core::Datum& d : core::detail::flatten(model)) {
    if (!d.type().is_differentiable() || d.type().element() != core::detail::TypeOf<leaf_of<M>>::get().kind())
      core::raise_at(core::here(l), "nn::shard_of: expected parameters of one floating type, got " + d.type().str());
    vectors.push_back(as_vector(d));
  }
  const core::Datum all = core::detail::concat(vectors, 0, {});
  const Rep<std::int64_t> n(core::dimension_of(all, 0, {})), ranks = comm.size(l), part = part_size(n, ranks);
  const core::Datum zero = core::Datum::zero(ir::Type(all.type().element()));
  const core::Datum whole = core::detail::pad(
      all, {{core::Datum::integer(0, ir::I64), (ranks * part - n).datum()}}, core::Pad::constant, zero, {});
  return core::detail::reshape(whole, {ranks.datum(), part.datum()}, {});
}

}  // namespace detail

/// This rank's part of a model's parameters. Error: parameters of different types.
template <class M>
  requires(detail::staged<M>)
Shard<Rep<detail::leaf_of<M>>> shard_of(const M& model, const distributed::Communicator& comm = {},
                                        std::source_location l = std::source_location::current()) {
  using E = detail::leaf_of<M>;
  const Rep<Tensor<E, dyn, dyn>> parts(detail::in_parts(model, comm, l));
  return {detail::Flat<E>(ravel(parts(range(comm.rank(l), comm.rank(l) + 1))).datum())};
}
/// Sums the gradients of all ranks; each rank gets its part of the sum. One message of the size of the model.
template <class M>
  requires(detail::staged<M>)
Shard<Rep<detail::leaf_of<M>>> shard_of_sum(const M& gradient, const distributed::Communicator& comm = {},
                                            std::source_location l = std::source_location::current()) {
  using E = detail::leaf_of<M>;
  const Rep<Tensor<E, dyn, dyn>> parts(detail::in_parts(gradient, comm, l));
  return {detail::Flat<E>(distributed::reduce_scatter(parts, distributed::Reduction::sum, comm, l).datum())};
}
/// The model whose parts the ranks have, in the shapes of `like`: one message of the size of the model.
template <class M>
  requires(detail::staged<M>)
M unsharded(const M& like, const Shard<Rep<detail::leaf_of<M>>>& part, const distributed::Communicator& comm = {},
            std::source_location l = std::source_location::current()) {
  const detail::Caller caller(l);
  const core::Datum all = detail::as_vector(distributed::all_gather(part.values, comm, l).datum());
  core::Datums out;
  Rep<std::int64_t> at = std::int64_t{0};
  for (const core::Datum& d : core::detail::flatten(like)) {
    const Rep<std::int64_t> end = at + Rep<std::int64_t>(detail::elements(d));
    const detail::Flat<detail::leaf_of<M>> values(all);
    core::Datums sizes;
    for (int k = 0; k < d.type().rank(); ++k) sizes.push_back(core::dimension_of(d, k, {}));
    if (d.type().is_scalar())
      out.push_back(values(at).datum());
    else
      out.push_back(core::detail::reshape(values(range(at, end)).datum(), sizes, {}));
    at = end;
  }
  return core::detail::rebuild(like, out);
}

/// loss(model, batch...) as a function that gives the mean of the losses of all ranks, and of its gradient this rank's
/// part: see Shard. Batches as for data_parallel.
template <class F>
auto data_parallel_shard(F loss, distributed::Communicator comm = {},
                         std::source_location l = std::source_location::current()) {
  return [loss, comm, l](const auto& model, const auto&... batch) {
    using M = std::remove_cvref_t<decltype(model)>;
    const auto ranks = cast<detail::leaf_of<M>>(comm.size(l));
    const auto [own, g] = core::value_and_grad([&](M m) { return loss(m, batch...); })(model);
    using Value = typename std::remove_cvref_t<decltype(own)>::value_type;
    auto part = shard_of_sum(g, comm, l);
    part.values = part.values / ranks;
    return std::pair(core::Rep<Value>(distributed::all_reduce(own, distributed::Reduction::sum, comm, l) /
                                      core::cast<Value>(comm.size(l))),
                     part);
  };
}

// ---- on the host

namespace detail {

template <class M>
std::vector<leaf_of<M>> flat_of(const M& model) {
  std::vector<leaf_of<M>> all;
  for_each_parameter(model, [&](const std::string&, const auto& p) {
    if constexpr (requires { p.data.size(); })
      all.insert(all.end(), p.data.begin(), p.data.end());
    else
      all.push_back(p);
  });
  return all;
}
inline void all_gather_on_host(std::int64_t n, const double* x, double* y) {
  distributed_exchange_f64("nn::unsharded", 0, distributed_all_gather, distributed_sum, -1, -1, n, x, y);
}
inline void all_gather_on_host(std::int64_t n, const float* x, float* y) {
  distributed_exchange_f32("nn::unsharded", 0, distributed_all_gather, distributed_sum, -1, -1, n, x, y);
}

}  // namespace detail

/// The same on the host, for the ranks of the world.
template <class M>
  requires(!detail::staged<M>)
Shard<detail::leaf_of<M>> shard_of(const M& model) {
  using E = detail::leaf_of<M>;
  std::vector<E> all = detail::flat_of(model);
  const std::int64_t ranks = distributed::world_size();
  const std::int64_t part = detail::part_size(static_cast<std::int64_t>(all.size()), ranks);
  all.resize(static_cast<std::size_t>(ranks * part), E(0));
  Shard<E> own{TensorValue<E>(std::vector<std::int64_t>{part})};
  std::copy_n(all.begin() + distributed::world_rank() * part, part, own.values.data.begin());
  return own;
}
template <class M>
  requires(!detail::staged<M>)
M unsharded(M like, const Shard<detail::leaf_of<M>>& part) {
  using E = detail::leaf_of<M>;
  const std::int64_t n = static_cast<std::int64_t>(part.values.data.size());
  std::vector<E> all(static_cast<std::size_t>(n * distributed::world_size()));
  detail::all_gather_on_host(n, part.values.data.data(), all.data());
  auto next = all.begin();
  for_each_parameter(like, [&](const std::string&, auto& p) {
    if constexpr (requires { p.data.size(); }) {
      std::copy_n(next, p.data.size(), p.data.begin());
      next += static_cast<std::ptrdiff_t>(p.data.size());
    } else {
      p = *next++;
    }
  });
  return like;
}

namespace detail {

/// From the state of a part to that of the whole, or the other way, by `convert`.
template <class To, class From, class F>
void convert_state(To& to, const From& from, const F& convert) {
  core::detail::with_parts(to, [&](auto&... targets) {
    core::detail::with_parts(from, [&](const auto&... parts) {
      const auto one = [&](auto& target, const auto& part) {
        using Part = std::remove_cvref_t<decltype(part)>;
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(target)>, Part>)
          target = part;
        else
          target = convert(part);
      };
      (one(targets, parts), ...);
    });
  });
}

}  // namespace detail

/// The state of the whole model, from those of its parts on all ranks; `like`: the model. All ranks call it.
template <template <class> class State, class M>
State<M> unsharded(const M& like, const State<Shard<detail::leaf_of<M>>>& state) {
  State<M> all;
  detail::convert_state(all, state, [&](const Shard<detail::leaf_of<M>>& part) { return unsharded(like, part); });
  return all;
}
/// The state of this rank's part, from that of the whole model.
template <template <class> class State, class M>
  requires(!detail::staged<M> && requires(State<M> s) { s.steps; })
State<Shard<detail::leaf_of<M>>> shard_of(const State<M>& state) {
  State<Shard<detail::leaf_of<M>>> own;
  detail::convert_state(own, state, [](const M& whole) { return shard_of(whole); });
  return own;
}

}  // namespace lantern::nn
