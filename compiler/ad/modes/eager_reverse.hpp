// What the eager reverse modes have in common: an operation one level down, and the protocol of a gradient.
#pragma once

#include <functional>
#include <memory>

#include "lantern/compiler/ad/derivative_rule.hpp"

namespace lantern::ad {

/// An operation performed one level down, kept for the backward pass.
struct Step {
  Operation op;
  Data operands;  ///< as they came
  Data primals;   ///< one level down
  Datum y;        ///< the value

  /// The rule of the operation where the result's cotangent is g.
  RuleContext rule(const Datum& g) const { return {op, primals, y, g}; }
  /// Calls each(i) for the operands in the order of the backward pass. For tensors the last operand first: an
  /// update's base comes first among the operands, and its adjoint can then take over the memory of g, which
  /// nobody reads any more.
  template <class Each>
  void backward(const Each& each) const {
    const bool last_first = !ir::info(op.code).elementwise;
    for (std::size_t n = operands.size(), j = 0; j < n; ++j) each(last_first ? n - 1 - j : j);
  }
};

/// A way to compute a gradient by running a program at once. Each is a handler of numeric operations; they
/// differ in how the program is reversed and where adjoints are kept.
class EagerReverse : public Mode {
 public:
  using Mode::Mode;

  /// A variable to differentiate by.
  virtual Datum input(const Datum& primal) = 0;
  /// Runs `program`, which calls seed for its results. When this returns the adjoints of the inputs are
  /// complete.
  virtual void run(const std::function<void()>& program) = 0;
  /// In `program`: adds g to the adjoint of a result.
  virtual void seed(const Datum& result, const Datum& g, const Location& loc) = 0;
  /// After run: the adjoint of an input.
  virtual Datum adjoint(const Datum& input, const Location& loc) = 0;

  /// One level down.
  const Datum& primal(const Datum& d) const {
    const TaggedBox* box = box_of(d);
    return box ? box->primal : d;
  }

 protected:
  /// The box of a datum of this very handler, or null.
  TaggedBox* box_of(const Datum& d) const {
    if (!d.is_tagged()) return nullptr;
    auto* box = static_cast<TaggedBox*>(d.box());
    return box->mode.get() == this ? box : nullptr;
  }
  template <class Variable>
  Variable* variable_of(const Datum& d) const {
    return static_cast<Variable*>(box_of(d));
  }
  template <class Variable, class... Rest>
  Datum make_variable(const Datum& primal, Rest&&... rest) {
    return Datum::boxed(new Variable(shared_from_this(), primal, std::forward<Rest>(rest)...), primal.type());
  }

  /// Performs the operation on the primals.
  Step step(const Operation& op, std::span<const Datum> operands) const {
    Step s{op, Data(operands.begin(), operands.end()), {}, {}};
    for (const Datum& d : operands) s.primals.push_back(primal(d));
    s.y = perform(op, s.primals);
    return s;
  }
  /// Whether a derivative passes from a variable of this handler to the result.
  bool differentiable(const Step& s) const {
    if (!s.y.type().is_differentiable()) return false;
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      if (box_of(s.operands[i]) && carries_derivative(s.op, i, s.operands.size())) return true;
    return false;
  }
};

// One file each. See `mode` in modes.hpp for what they are.
std::shared_ptr<EagerReverse> make_cps(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_global_tape(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_functional(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_continuation(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_taped(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_checkpointed(std::uint64_t tag);

}  // namespace lantern::ad
