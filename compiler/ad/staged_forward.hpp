// Forward mode over the graph: constructs carry a tangent beside every floating value.
#pragma once

#include "lantern/compiler/ad/forward_control_flow.hpp"
#include "lantern/compiler/ad/forward.hpp"

namespace lantern::core::ad {

class StagedForward : public Forward, public ForwardControlFlow {
 public:
  StagedForward(Staging& staging, std::uint64_t tag) : Forward(tag), ForwardControlFlow(*this, staging, 1, "_fwd") {}

 protected:
  Datums companions_of(const Datum& d, const Location& loc) const override { return {tangent_of(d, loc)}; }
  Datum with(const Datum& primal, std::span<const Datum> companions) override {
    return dual(primal, companions[0]);
  }
  Datum flow_of(const Datum& d) const override {
    const Dual* v = dual_of(d);
    return !v || v->tangent.empty() ? Datum::integer(0, ir::Bool) : v->flow();
  }
  Datum with_flow(const Datum& d, const Datum& flow) override {
    Dual* const v = dual_of(d);
    return v ? dual(v->primal, v->tangent, flow) : d;
  }
};

}  // namespace lantern::core::ad
