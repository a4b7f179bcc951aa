// Continuation reverse mode, staged, in linear time (thesis, 4.3, listing 4.7).
//
// A number is a value with its backpropagator, a linear function from its cotangent to the gradient. Called
// once for each use of the number it costs what the paths through the program cost: the thesis measures
// quadratic time in four languages (6.2). Being linear, it may be called once with the sum instead,
//
//   f(z1) + f(z2) = f(z1 + z2)
//
// (linear factoring: Brunel, Mazza and Pagani, "Backpropagation in the Simply Typed Lambda-Calculus with
// Linear Negation", POPL 2020). While staging all uses are known when a backpropagator's turn comes, last
// made first called. Those of branches, trips and functions are functions of the code.
#include "lantern/compiler/ad/modes/two_pass.hpp"

namespace lantern::core::ad {

namespace {

class StagedContinuation : public TwoPass {
 public:
  using TwoPass::TwoPass;
  const char* name() const override { return "continuation reverse mode"; }

  // r = b(x, y), { z -> p (dx (t (der2 L b x y) z)) (dy (t (der2 R b x y) z)) }
  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    Step s = step(op, operands);
    if (!differentiable(s)) return s.y;
    Datum r = variable(s.y);
    factored(r, operands, [this, s = std::move(s)](const Datum& z) {
      s.backward([&](std::size_t i) { propagate_to(s, i, z); });
    });
    return r;
  }

 private:
  using Backpropagator = std::function<void(const Datum&)>;

  /// Calls of r's backpropagator add to r's cotangent until no use is left; then there is one call.
  void factored(const Datum& r, std::span<const Datum> operands, Backpropagator backpropagate) {
    record(operands, [this, name = variable_of(r)->name, backpropagate = std::move(backpropagate)] {
      const Datum z = take(name);
      if (!z.empty()) backpropagate(z);
    });
  }

  Datums linear(const Datums& z, const std::function<Datums(const Datums&)>& body, const Location& loc) override {
    std::vector<ir::Type> types;
    Datums nodes;
    for (ir::Value* v : staging_.use(z, loc)) {
      types.push_back(v->type);
      nodes.push_back(Datum::node(v));
    }
    if (nodes.empty()) return body(z);
    StagedFunction& f = staging_.stage("backpropagator", types, nullptr, body, loc);
    return staging_.call(f, nodes, loc);
  }
};

}  // namespace

std::shared_ptr<TwoPass> make_staged_continuation(Staging& staging, std::uint64_t tag) {
  return std::make_shared<StagedContinuation>(staging, tag);
}

}  // namespace lantern::core::ad
