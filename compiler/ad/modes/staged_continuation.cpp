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
// made first called. Each is a function of the code, and so are those of branches, iterations and functions.
#include "lantern/compiler/ad/modes/two_pass.hpp"

namespace lantern::core::ad {

namespace {

class StagedContinuation : public TwoPass {
 public:
  using TwoPass::TwoPass;
  const char* name() const override { return "continuation reverse mode"; }

 private:
  // r = b(x, y), { z -> p (dx (t (der2 L b x y) z)) (dy (t (der2 R b x y) z)) }
  Update update(Step s, Name r) override {
    return [this, s = std::move(s), r] {
      const Datum z = take(r);  // the sum of all calls
      if (!z.empty()) backpropagate(s, z);
    };
  }

  /// Calls the backpropagator of the step's result, a function from z and what the operands' backpropagators are
  /// called with so far to that with its calls added.
  void backpropagate(const Step& s, const Datum& z) {
    Names names;
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      if (const Variable* x = receiver(s, i)) include(names, x->name);
    const auto body = [&](const Datums& given) {
      return alone(names, std::span(given).subspan(1), names, s.op.loc, [&] { propagate_all(s, given[0]); });
    };
    const Datums out = linear(joined({z}, adjoints(names, s.op.loc)), body, s.op.loc);
    for (std::size_t i = 0; i < names.size(); ++i) store_[names[i]] = out[i];
  }

  Datums linear(const Datums& z, const std::function<Datums(const Datums&)>& body, const Location& loc) override {
    if (z.empty()) return body(z);
    const Datums nodes = staging_.nodes(z, loc);
    StagedFunction& f = staging_.stage("backpropagator", types_of(nodes), nullptr, body, loc);
    return staging_.call(f, nodes, loc);
  }
};

}  // namespace

std::shared_ptr<TwoPass> make_staged_continuation(Staging& staging, std::uint64_t tag) {
  return std::make_shared<StagedContinuation>(staging, tag);
}

}  // namespace lantern::core::ad
