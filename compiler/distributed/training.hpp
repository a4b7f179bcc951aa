// Training on several processes: each has a part of the batch, all have the same parameters.
#pragma once

#include <algorithm>

#include "lantern/compiler/ad/derivative.hpp"
#include "lantern/compiler/distributed/operations.hpp"

namespace lantern::nn {

struct DataParallelOptions {
  /// Into how many groups of consecutive members the parameters are divided, of as many each as can be. The gradients of a
  /// group, of one element type, are summed in one message, which starts when they are there, and goes on while the
  /// backward part computes those of earlier groups.
  int buckets = 1;
};

namespace detail {

/// A product whose leaves pass through `body` in groups, from the first to the last.
template <class P, class F>
P in_buckets(const P& p, int buckets, const F& body) {
  const core::Datums all = core::detail::flatten(p);
  core::Datums out;
  const std::size_t n = all.size(), groups = std::min(n, static_cast<std::size_t>(std::max(buckets, 1)));
  for (std::size_t g = 0; g < groups; ++g) {
    const auto at = [&](std::size_t k) { return all.begin() + static_cast<std::ptrdiff_t>(k * n / groups); };
    const core::Datums group = body(core::Datums(at(g), at(g + 1)));
    out.insert(out.end(), group.begin(), group.end());
  }
  return core::detail::rebuild(p, out);
}

}  // namespace detail

/// loss(model, batch...) as a function that gives the mean of the losses of all ranks and its gradient by the model, a
/// struct of Reps: the same on all ranks. Each rank passes its part of the batch; parts of equal size have equal weight. The
/// gradients of all parameters of one element type are summed in one message, or in buckets.
///
///   const auto [loss, g] = nn::data_parallel(loss_of)(model, images, labels);
template <class F>
auto data_parallel(F loss, distributed::Communicator comm = {}, DataParallelOptions o = {},
                   std::source_location l = std::source_location::current()) {
  return [loss, comm, o, l](const auto& model, const auto&... batch) {
    using M = std::remove_cvref_t<decltype(model)>;
    return core::value_and_grad([&](M m) {
      const distributed::detail::Call call = comm.call(l);
      const M shared = detail::in_buckets(m, o.buckets, [&](const core::Datums& group) {
        return distributed::detail::in_one_message(
            call, group, [&](const core::Datum& d) { return distributed::detail::share(call, d); });
      });
      const auto own = loss(shared, batch...);
      using Value = typename std::remove_cvref_t<decltype(own)>::value_type;
      return core::Rep<Value>(distributed::total(own, comm, l) / core::cast<Value>(comm.size(l)));
    })(model);
  };
}

}  // namespace lantern::nn
