// Training on several processes: each has a part of the batch, all have the same parameters.
#pragma once

#include "lantern/compiler/ad/derivative.hpp"
#include "lantern/compiler/distributed/operations.hpp"

namespace lantern::nn {

/// loss(model, batch...) as a function that gives the mean of the losses of all ranks and its gradient by the model, a
/// struct of Reps: the same on all ranks. Each rank passes its part of the batch; parts of equal size have equal weight. The
/// gradients of all parameters of one element type are summed in one message.
///
///   const auto [loss, g] = nn::data_parallel(loss_of)(model, images, labels);
template <class F>
auto data_parallel(F loss, distributed::Communicator comm = {},
                   std::source_location l = std::source_location::current()) {
  return [loss, comm, l](const auto& model, const auto&... batch) {
    using M = std::remove_cvref_t<decltype(model)>;
    return core::value_and_grad([&](M m) {
      const auto own = loss(distributed::replicate(m, comm, l), batch...);
      using Value = typename std::remove_cvref_t<decltype(own)>::value_type;
      return core::Rep<Value>(distributed::total(own, comm, l) / core::cast<Value>(comm.size(l)));
    })(model);
  };
}

}  // namespace lantern::nn
