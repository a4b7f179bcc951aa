// Continuation reverse mode (thesis, 4.3, listing 4.7).
//
// A number is a value with its backpropagator, the linear function that takes the number's cotangent to the
// gradient of the inputs. Nothing is captured or mutated, and nothing is shared either: the backpropagator of
// a value is run once for each of its uses, so the cost is that of the paths through the program, exponential
// for t = t * t in a loop. The thesis finds it of wrong complexity (6.2) and proves it correct (8.3).
#include <algorithm>

#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::ad {

namespace {

/// One entry per input; an empty one is zero.
using Gradient = Data;

Gradient plus(Gradient a, const Gradient& b, const Location& loc) {
  if (a.size() < b.size()) a.resize(b.size());
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (b[i].empty()) continue;
    a[i] = a[i].empty() ? b[i] : perform({Opcode::add_, 0, loc}, {a[i], b[i]});
  }
  return a;
}

class Continuations : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "continuation reverse mode"; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    Step s = step(op, operands);
    if (!differentiable(s)) return s.y;
    const std::size_t depth = next_depth(s.operands, op.loc);
    const Datum y = s.y;
    // r = b(x, y), { z -> p (dx (t (der2 L b x y) z)) (dy (t (der2 R b x y) z)) }
    const auto backpropagate = [this, s = std::move(s)](const Datum& z) {
      Gradient total;
      s.backward([&](std::size_t i) {
        const auto* x = variable_of<Variable>(s.operands[i]);
        if (x && carries_derivative(s.op, i, s.operands.size()))
          total = plus(std::move(total), x->backpropagate(share(i, s, z)), s.op.loc);
      });
      return total;
    };
    return make_variable<Variable>(y, backpropagate, depth);
  }

  Datum input(const Datum& primal) override {
    const std::size_t i = inputs_++;
    return make_variable<Variable>(
        primal,
        [i](const Datum& z) {
          Gradient one(i + 1);
          one[i] = z;
          return one;
        },
        0, i);
  }
  void run(const std::function<void()>& program) override { program(); }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (const auto* z = variable_of<Variable>(result))
      run_on_large_stack([&] { gradient_ = plus(std::move(gradient_), z->backpropagate(g), loc); });
  }
  Datum adjoint(const Datum& input, const Location& loc) override {
    const std::size_t i = variable_of<Variable>(input)->index;
    const bool zero = i >= gradient_.size() || gradient_[i].empty();
    return zero ? zeros_like(primal(input), loc) : gradient_[i];
  }

 private:
  struct Variable : TaggedBox {
    Variable(std::shared_ptr<Mode> m, Datum p, std::function<Gradient(const Datum&)> b, std::size_t d,
             std::size_t i = 0)
        : TaggedBox(std::move(m), std::move(p)), backpropagate(std::move(b)), depth(d), index(i) {}
    std::function<Gradient(const Datum&)> backpropagate;
    std::size_t depth;  // of the chain of backpropagators, which is run and destroyed by recursion
    std::size_t index;  // of an input
  };

  static constexpr std::size_t kDeepest = 5000;
  template <class Operands>
  std::size_t next_depth(const Operands& operands, const Location& loc) const {
    std::size_t depth = 0;
    for (const Datum& d : operands)
      if (const auto* x = variable_of<Variable>(d)) depth = std::max(depth, x->depth);
    if (depth >= kDeepest)
      raise_at(loc, "grad<mode::continuation>: expected a program of at most " + std::to_string(kDeepest) +
                        " operations one after another, got a longer one; use another mode");
    return depth + 1;
  }

  // r_j = f_j(x, ...), { z -> the sum of dx (what the rule gives x for z in place j and zeros elsewhere) }
  Data vertex(const Data& operands, const Data& values, Pullback pullback, const Location& loc) override {
    const std::size_t depth = next_depth(operands, loc);
    const Data places = floating(values);
    Data out;
    std::size_t j = 0;
    for (const Datum& y : values) {
      if (!y.type().is_differentiable()) {
        out.push_back(y);
        continue;
      }
      out.push_back(make_variable<Variable>(
          y,
          [this, operands, places, pullback, loc, j](const Datum& z) {
            Data cotangents;
            for (std::size_t i = 0; i < places.size(); ++i)
              cotangents.push_back(i == j ? z : zeros_like(places[i], loc));
            const Data shares = pullback(cotangents);
            Gradient total;
            for (std::size_t i = 0; i < operands.size(); ++i)
              if (const auto* x = variable_of<Variable>(operands[i]); x && !shares[i].empty())
                total = plus(std::move(total), x->backpropagate(shares[i]), loc);
            return total;
          },
          depth));
      ++j;
    }
    return out;
  }

  static Datum share(std::size_t i, const Step& s, const Datum& g) {
    const StepRule rule = s.rule(g);
    const CellPtr alone = eager_cell(rule.primals.data()[i]);
    propagate(i, rule, *alone);
    return alone->get(s.op.loc);
  }

  std::size_t inputs_ = 0;
  Gradient gradient_;
};

}  // namespace

std::shared_ptr<EagerReverse> make_continuation(std::uint64_t tag) {
  return std::make_shared<Continuations>(tag);
}

}  // namespace lantern::ad
