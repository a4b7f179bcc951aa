// The operation table as rules on doubles.
#include "lantern/compiler/ad/double_step.hpp"

#include "lantern/compiler/ad/op_derivative.hpp"
#include "lantern/compiler/staging/check.hpp"

namespace lantern::core::ad {

namespace {

using Partial = DoubleDerivative::Partial;

Partial partial_of(const ir::Formula* f) {
  if (!f || f->is_number(0)) return Partial::zero;
  if (f->is_number(1)) return Partial::one;
  if (f->is_number(-1)) return Partial::minus_one;
  if (f->kind == ir::Formula::Kind::call && f->op == Opcode::select_) return Partial::choice;
  if (f->kind != ir::Formula::Kind::variable) return Partial::formula;
  switch (f->variable) {
    case 'x':
      return Partial::x;
    case 'y':
      return Partial::y;
    case 'r':
      return Partial::r;
    default:
      return Partial::formula;
  }
}

using Rules = std::array<DoubleDerivative, static_cast<std::size_t>(Opcode::count_)>;

Rules make_rules() {
  Rules rules;
  for (std::size_t c = 0; c < rules.size(); ++c) {
    const ir::OpInfo& row = ir::info(static_cast<Opcode>(c));
    const bool arithmetic = row.rule == ir::Rule::arith || row.rule == ir::Rule::real;
    if (!row.elementwise || !arithmetic || row.arity < 1 || row.arity > 3) continue;
    DoubleDerivative& rule = rules[c];
    rule.operands = static_cast<std::size_t>(row.arity);
    for (std::size_t i = 0; i < rule.operands; ++i) {
      rule.formulas[i] = ir::derivative(static_cast<Opcode>(c), i, rule.operands);
      rule.partials[i] = partial_of(rule.formulas[i]);
    }
  }
  return rules;
}

}  // namespace

const DoubleDerivative& double_derivative(Opcode code) {
  static const Rules rules = make_rules();
  return rules[static_cast<std::size_t>(code)];
}

bool DoubleStep::compute() {
  if (detail::checking()) return false;
  switch (code) {
    case Opcode::add_:
      y = x[0] + x[1];
      break;
    case Opcode::sub_:
      y = x[0] - x[1];
      break;
    case Opcode::mul_:
      y = x[0] * x[1];
      break;
    case Opcode::neg_:
      y = -x[0];
      break;
    default:
      y = evaluate_number(code, x[0], x[1], x[2]);
  }
  return true;
}

bool DoubleStep::taken(std::size_t i) const {
  const Operation op{code, 0, {}};
  std::array<Datum, 3> operands;
  for (std::size_t j = 0; j < rule->operands; ++j) operands[j] = Datum::number(x[j], ir::F64);
  return !nothing_flows(*rule->formulas[i], {op, std::span(operands).first(rule->operands), value(), {}});
}

double DoubleStep::by_formula(std::size_t i) const {
  const Operation op{code, 0, {}};
  std::array<Datum, 3> operands;
  for (std::size_t j = 0; j < rule->operands; ++j) operands[j] = Datum::number(x[j], ir::F64);
  return partial_derivative(*rule->formulas[i], {op, std::span(operands).first(rule->operands), value(), {}})
      .f();
}

Datum DoubleStep::share(std::size_t i, const Datum& g, const Location& loc) const {
  if (rule->partials[i] == Partial::one) return g;
  if (rule->partials[i] == Partial::minus_one && !is_double(g))
    return core::perform({Opcode::neg_, 0, loc}, {g});
  return times(partial(i), g, loc);
}

Datum plus(const Datum& a, const Datum& b, const Location& loc) {
  if (is_double(a) && is_double(b) && !detail::checking()) return Datum::number(a.f() + b.f(), a.type());
  const Datum total = perform({Opcode::add_, 0, loc}, {a, b});
  return total.type().is_tensor() ? with_flow(total, flow_of_sum(a, b, loc)) : total;
}

Datum times(double w, const Datum& g, const Location& loc) {
  if (is_double(g) && !detail::checking()) return Datum::number(w * g.f(), g.type());
  return perform({Opcode::mul_, 0, loc}, {Datum::number(w, ir::F64), g});
}

}  // namespace lantern::core::ad
