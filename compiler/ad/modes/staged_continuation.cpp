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
// made first called. Each is a function of the code, and so are those of branches, trips and functions.
#include <algorithm>

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
    record(operands, [this, s = std::move(s), name = variable_of(r)->name] {
      const Datum z = take(name);  // the sum of all calls
      if (!z.empty()) backpropagate(s, z);
    });
    return r;
  }

 private:
  /// Calls the backpropagator of the step's result, a function from z and what the operands' backpropagators are
  /// called with so far to that with its calls added.
  void backpropagate(const Step& s, const Datum& z) {
    std::vector<Name> names;
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      if (const Variable* x = variable_of(s.operands[i]); x && carries_derivative(s.op, i, s.operands.size()))
        if (std::ranges::find(names, x->name) == names.end()) names.push_back(x->name);
    Datums in = adjoints(names, s.op.loc);
    in.insert(in.begin(), z);
    const Datums out = linear(
        in,
        [&](const Datums& given) {
          const Store outer = std::exchange(store_, {});
          for (std::size_t i = 0; i < names.size(); ++i) store_[names[i]] = given[i + 1];
          s.backward([&](std::size_t i) { propagate_to(s, i, given[0]); });
          const Datums added = adjoints(names, s.op.loc);
          store_ = outer;
          return added;
        },
        s.op.loc);
    for (std::size_t i = 0; i < names.size(); ++i) store_[names[i]] = out[i];
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
