// The reverse-mode rule.
#include "lantern/compiler/ad/reverse.hpp"

#include <algorithm>
#include <variant>

#include "lantern/compiler/ad/derivative_rule.hpp"
#include "lantern/compiler/ad/operands.hpp"

namespace lantern::core::ad {

Datum Reverse::variable(const Datum& primal, CellPtr cell) {
  return Datum::boxed(new Variable(*this, primal, std::move(cell)), primal.type());
}

CellPtr Reverse::make_cell(const Datum& primal, const Location&) { return eager_cell(primal); }

void Reverse::run(const std::function<void()>& program) {
  reset(prompt_, [&program] { program(); });
}

// Lantern paper, Fig. 8:  shift { k => val y = x op x'; k(y); x.d += dop/dx * y.d; x'.d += dop/dx' * y.d }
Datum Reverse::apply(const Operation& operation, std::span<const Datum> operands) {
  const auto primal_of = [this](const Datum& d) -> const Datum& { return primal(d); };
  NumberStep step;
  if (eager() && step.perform(operation, operands, primal_of)) return apply(operation, operands, step);
  Operation op = operation;
  op.loc.part = ir::Part::forward;
  bool differentiable = false;
  for (std::size_t i = 0; i < operands.size(); ++i)
    differentiable |= variable_of(operands[i]) && carries_derivative(op, i, operands.size());
  const Datum y = perform(op, Transient(operands, primal_of));
  if (!recording_) return y;
  if (!differentiable || !y.type().is_differentiable()) return y;

  const CellPtr adjoint = make_cell(y, op.loc);
  defer(prompt_, [this, op, y, adjoint, operands = Operands(operands), primal_of]() mutable {
    op.loc.part = ir::Part::backward;
    if (!adjoint->touched()) return;
    const Datum g = adjoint->get(op.loc);
    const Transient primals(operands, primal_of);
    const RuleContext rule{op, primals, y, g};
    // For tensors the last operand first: an update's base comes first among the operands, and its adjoint can then
    // take over the memory of g, which nobody reads any more.
    const bool last_first = !ir::info(op.code).elementwise;
    for (std::size_t n = operands.size(), j = 0; j < n; ++j) {
      const std::size_t i = last_first ? n - 1 - j : j;
      if (Variable* x = variable_of(operands[i])) propagate(i, rule, *x->cell);
    }
  });
  return variable(y, adjoint);
}

namespace {

/// The operands of an operation on numbers, kept: variables, of which the backward pass finds the primals,
/// and constants.
class NumberOperands {
 public:
  NumberOperands(const Reverse& mode, std::span<const Datum> operands) : size_(operands.size()) {
    for (std::size_t i = 0; i < size_; ++i)
      if (Variable* v = mode.variable_of(operands[i]))
        operands_[i].emplace<BoxRef>(*v);
      else
        operands_[i] = operands[i].f();
  }
  std::size_t size() const { return size_; }
  Variable* variable(std::size_t i) const {
    const BoxRef* box = std::get_if<BoxRef>(&operands_[i]);
    return box ? static_cast<Variable*>(&**box) : nullptr;
  }
  double primal(std::size_t i) const {
    const Variable* v = variable(i);
    return v ? v->primal.f() : std::get<double>(operands_[i]);
  }

 private:
  std::size_t size_;
  std::array<std::variant<double, BoxRef>, 3> operands_;
};

}  // namespace

/// The same for numbers: the primals and the result are found in the variables.
Datum Reverse::apply(const Operation& op, std::span<const Datum> operands, const NumberStep& step) {
  bool differentiable = false;
  for (std::size_t i = 0; i < operands.size(); ++i)
    differentiable |= variable_of(operands[i]) && step.carries(i);
  if (!recording_ || !differentiable) return step.value();

  auto* const result = new Result(*this, step.value());
  Datum y = Datum::boxed(result, ir::Type(ir::Kind::f64));
  defer(prompt_,
        [y = BoxRef(*result), code = op.code, loc = op.loc, operands = NumberOperands(*this, operands)] {
          const auto& own = static_cast<Result&>(*y);
          if (!own.cell->touched()) return;
          const Datum g = own.cell->get(loc);
          NumberStep again{code, &number_rule(code), {}, own.primal.f()};
          for (std::size_t i = 0; i < operands.size(); ++i) again.x[i] = operands.primal(i);
          for (std::size_t i = 0; i < operands.size(); ++i)
            if (Variable* x = operands.variable(i); x && again.carries(i))
              x->cell->add(again.share(i, g, loc), loc);
        });
  return y;
}

Datums Reverse::follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) {
  Datums primals;
  bool differentiable = false;
  for (const Datum& d : arguments) {
    primals.push_back(primal(d));
    differentiable |= variable_of(d) != nullptr;
  }
  auto [values, residuals] = rule->forward(primals);
  require_untagged(*rule, values, *this, loc);
  require_untagged(*rule, residuals, *this, loc);
  if (!recording_ || !differentiable || floating(values).empty()) return values;

  return shift<Datums>(prompt_, [this, rule, arguments, primals, loc, values = std::move(values),
                               residuals = std::move(residuals)](auto k) {
    Datums results, cotangents;
    std::vector<CellPtr> cells;
    for (const Datum& y : values) {
      if (y.type().is_differentiable()) cells.push_back(make_cell(y, loc));
      results.push_back(y.type().is_differentiable() ? variable(y, cells.back()) : y);
    }
    k(results);
    if (std::ranges::none_of(cells, [](const CellPtr& c) { return c->touched(); })) return;
    for (const CellPtr& c : cells) cotangents.push_back(c->get(loc));
    const Datums adjoints = rule->backward(residuals, cotangents);
    require_untagged(*rule, adjoints, *this, loc);
    require_derivatives(*rule, primals, adjoints, "argument", loc);
    std::size_t at = 0;
    for (const Datum& x : arguments) {
      if (!x.type().is_differentiable()) continue;
      if (Variable* v = variable_of(x)) v->cell->add(adjoints[at], loc);
      ++at;
    }
  });
}

Datums Reverse::checkpoint(const std::function<Datums(const Datums&)>& program, const Datums& operands,
                         const Location& loc) {
  if (!recording_) return program(operands);
  Datums values;
  bool differentiable = false;
  {
    struct Pause {
      bool& recording;
      explicit Pause(bool& r) : recording(r) { recording = false; }
      ~Pause() { recording = true; }
    } pause(recording_);
    for (const Datum& d : program(operands)) values.push_back(primal(d));
  }
  for (const Datum& v : values) {
    differentiable |= v.type().is_differentiable();
    if (v.is_tagged() && static_cast<TaggedBox*>(v.box())->mode->tag() > tag())
      raise_at(loc, "checkpoint: the function captures a value of an inner derivative; pass it as an argument");
  }
  if (!differentiable) return values;
  return shift<Datums>(prompt_, [this, program, operands, values, loc](auto k) {
    Datums results;
    std::vector<CellPtr> cells;
    for (const Datum& v : values) {
      cells.push_back(v.type().is_differentiable() ? make_cell(v, loc) : nullptr);
      results.push_back(cells.back() ? variable(v, cells.back()) : v);
    }
    k(results);
    if (std::ranges::none_of(cells, [](const CellPtr& c) { return c && c->touched(); })) return;
    run([&] {
      const Datums again = program(operands);
      for (std::size_t i = 0; i < again.size(); ++i)
        if (Variable* v = variable_of(again[i]); v && cells[i]->touched()) v->cell->add(cells[i]->get(loc), loc);
    });
  });
}

}  // namespace lantern::core::ad
