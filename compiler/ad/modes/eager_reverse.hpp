// What the eager reverse modes have in common: an operation one level down, and the protocol of a gradient.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/ad/derivative_rule.hpp"
#include "lantern/compiler/ad/numbers.hpp"
#include "lantern/compiler/ad/operands.hpp"
#include "lantern/compiler/control/deferred.hpp"

namespace lantern::core::ad {

/// What the rule of an operation looks at, where the result's cotangent is g.
struct StepRule {
  const Operation& op;
  Transient primals;  ///< one level down
  const Datum& y;
  const Datum& g;
  operator RuleContext() const { return {op, primals, y, g}; }
};

/// An operation performed one level down, kept for the backward pass. The primals are found in the operands.
struct Step {
  Operation op;
  Operands operands;  ///< as they came
  Datum y;            ///< the value
  const Mode* mode;
  bool numbers = false;  ///< the primals are doubles at hand

  const Datum& primal(const Datum& d) const {
    const auto* box = d.is_tagged() ? static_cast<const TaggedBox*>(d.box()) : nullptr;
    return box && box->mode.get() == mode ? box->primal : d;
  }
  Transient primals() const {
    return {operands, [this](const Datum& d) -> const Datum& { return primal(d); }};
  }
  /// The primals and y, where they are numbers.
  NumberStep on_numbers() const {
    NumberStep n{op.code, &number_rule(op.code), {}, y.f()};
    for (std::size_t i = 0; i < operands.size(); ++i) n.x[i] = primal(operands[i]).f();
    return n;
  }
  bool carries(std::size_t i) const {
    return numbers ? number_rule(op.code).partials[i] != NumberRule::Partial::zero
                   : carries_derivative(op, i, operands.size());
  }
  StepRule rule(const Datum& g) const { return {op, primals(), y, g}; }
  /// Calls each(i) for the operands in the order of the backward pass. For tensors the last operand first: an
  /// update's base comes first among the operands, and its adjoint can then take over the memory of g, which
  /// nobody reads any more.
  template <class Each>
  void backward(const Each& each) const {
    const bool last_first = !ir::info(op.code).elementwise;
    for (std::size_t n = operands.size(), j = 0; j < n; ++j) each(last_first ? n - 1 - j : j);
  }
  /// x.d += dop/dx * g for every operand x of which cell_of(x) gives the cell.
  template <class CellOf>
  void propagate_to(const CellOf& cell_of, const Datum& g) const {
    if (numbers) {
      const NumberStep n = on_numbers();
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (Cell* x = cell_of(operands[i]); x && n.carries(i)) x->add(n.share(i, g, op.loc), op.loc);
      return;
    }
    const StepRule with = rule(g);
    backward([&](std::size_t i) {
      if (Cell* x = cell_of(operands[i])) propagate(i, with, *x);
    });
  }
  /// dop/dx * g for operand i alone.
  Datum share(std::size_t i, const Datum& g) const {
    if (numbers) return on_numbers().share(i, g, op.loc);
    const StepRule with = rule(g);
    const CellPtr alone = eager_cell(with.primals.data()[i]);
    propagate(i, with, *alone);
    return alone->get(op.loc);
  }
};

/// A number with its adjoint d, a cell.
struct WithAdjoint : TaggedBox {
  WithAdjoint(Mode& m, Datum p) : TaggedBox(m, std::move(p)), d(primal) {}
  struct Adjoint final : EagerCell {
    explicit Adjoint(const Datum& p) : of(p) {}
    const Datum& like() const override { return of; }
    const Datum& of;
  } d;
};

/// A way to compute a gradient by running a program at once. Each is a handler of numeric operations; they
/// differ in how the program is reversed and where adjoints are kept.
class EagerReverse : public Mode, public RuleFollowing {
 public:
  using Mode::Mode;

  /// A function with a rule is one vertex: its forward part runs now, its backward part in the backward pass.
  Datums follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) override;

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
  /// From the cotangents of a vertex's floating values, what each operand receives; empty where nothing.
  /// Linear.
  using Pullback = std::function<Datums(const Datums& cotangents)>;
  /// Values that were computed from the operands, one level down, by something that is more than one
  /// operation: those that are floating become variables, and the backward pass calls `pullback` where their
  /// turn comes.
  virtual Datums vertex(const Datums& operands, const Datums& values, Pullback pullback, const Location& loc) = 0;

  /// The same for variables with their adjoints: the values as variables, the floating ones to `made`, too,
  Datums with_adjoints(const Datums& values, Datums& made) {
    Datums out;
    for (const Datum& y : values) {
      out.push_back(y.type().is_differentiable() ? make_variable<WithAdjoint>(y) : y);
      if (y.type().is_differentiable()) made.push_back(out.back());
    }
    return out;
  }
  /// and the backward pass.
  void pull_back(const Datums& operands, const Datums& made, const Pullback& pullback,
                 const Location& loc) const {
    if (std::none_of(made.begin(), made.end(), [&](const Datum& y) { return cell_of(y)->touched(); })) return;
    Datums cotangents;
    for (const Datum& y : made) cotangents.push_back(cell_of(y)->get(loc));
    const Datums shares = pullback(cotangents);
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (Cell* x = cell_of(operands[i]); x && !shares[i].empty()) x->add(shares[i], loc);
  }

  /// A vertex of variables with their adjoints whose backward pass is left for later.
  Datums vertex_for_later(control::Deferred& later, const Datums& operands, const Datums& values, Pullback pullback,
                        const Location& loc) {
    Datums made;
    Datums out = with_adjoints(values, made);
    later.push([this, operands, made, pullback = std::move(pullback), loc] {
      pull_back(operands, made, pullback, loc);
    });
    return out;
  }

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
  /// The adjoint of a WithAdjoint of this handler, or null.
  Cell* cell_of(const Datum& d) const {
    auto* x = variable_of<WithAdjoint>(d);
    return x ? &x->d : nullptr;
  }
  template <class Variable, class... Rest>
  Datum make_variable(const Datum& primal, Rest&&... rest) {
    return Datum::boxed(new Variable(*this, primal, std::forward<Rest>(rest)...), primal.type());
  }

  /// Performs the operation on the primals.
  Step step(const Operation& op, std::span<const Datum> operands) const {
    Step s{op, Operands(operands), {}, this};
    NumberStep n;
    s.numbers = n.perform(op, operands, [&s](const Datum& d) -> const Datum& { return s.primal(d); });
    s.y = s.numbers ? n.value() : perform(op, s.primals());
    return s;
  }
  Step step_of(const Operation& op, std::span<const Datum> operands, const Datum& y) const {
    return {op, Operands(operands), y, this};
  }
  /// Whether a derivative passes from a variable of this handler to the result.
  bool differentiable(const Step& s) const {
    if (!s.y.type().is_differentiable()) return false;
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      if (box_of(s.operands[i]) && s.carries(i)) return true;
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
std::shared_ptr<EagerReverse> make_divide_and_conquer(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_closures(std::uint64_t tag);

}  // namespace lantern::core::ad
