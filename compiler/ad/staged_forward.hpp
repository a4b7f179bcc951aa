// Forward mode over the graph: constructs carry a tangent beside every floating value.
#pragma once

#include "lantern/compiler/ad/forward_control_flow.hpp"
#include "lantern/compiler/ad/forward.hpp"

namespace lantern::core::ad {

class StagedForward : public Forward, public ForwardControlFlow {
 public:
  StagedForward(Staging& staging, std::uint64_t tag) : Forward(tag), ForwardControlFlow(staging, 1, "_fwd") {}

  Mode& mode() override { return *this; }
  Datum primal_of(const Datum& d) const override { return primal(d); }
  bool is_active(const Datum& d) const override { return dual_of(d) != nullptr; }

 protected:
  Datums companions_of(const Datum& d, const Location& loc) const override { return {tangent_of(d, loc)}; }
  Datum with(const Datum& primal, std::span<const Datum> companions) override {
    return dual(primal, companions[0]);
  }
};

}  // namespace lantern::core::ad
