// Dispatch of operations to the mode in charge.
#include "lantern/compiler/staging/operation.hpp"

#include <array>

#include "lantern/compiler/staging/check.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core {

Mode* in_charge(std::span<const Datum> operands) {
  Mode* top = nullptr;
  for (const Datum& d : operands) {
    if (!d.is_tagged()) continue;
    Mode* mode = static_cast<TaggedBox*>(d.box())->mode.get();
    if (!top || mode->tag() > top->tag()) top = mode;
  }
  return top;
}

namespace {

/// The same, or an error where it has ended.
Mode* mode_of(std::span<const Datum> operands, const Location& loc) {
  Mode* top = in_charge(operands);
  if (top && top->ended())
    raise_at(loc, std::string("a value of a derivative (") + top->name() +
                      ") is used after that derivative was computed; return plain values from the function");
  return top;
}

bool same_scalars(std::span<const Datum> operands) {
  const ir::Type& first = operands[0].type();
  if (!first.is_scalar()) return false;
  for (const Datum& d : operands)
    if (d.type().kind() != first.kind()) return false;
  return true;
}

/// An operation on numbers at hand, to which no mode, graph or type rule has anything to add.
bool plain(const Operation& op, std::span<const Datum> operands) {
  for (const Datum& d : operands)
    if (!d.is_literal()) return false;
  if (operands.empty() || !same_scalars(operands)) return false;
  const ir::OpInfo& row = ir::info(op.code);
  if (!row.elementwise) return false;
  const ir::Kind kind = operands[0].type().kind();
  switch (row.rule) {
    case ir::Rule::arith:
    case ir::Rule::compare: return kind != ir::Kind::boolean;
    case ir::Rule::real: return kind == ir::Kind::f64 || kind == ir::Kind::f32;
    default: return false;
  }
}

/// Whole numbers at hand, divided by zero. While a program is staged this happens when it runs, if it comes there.
bool divides_by_zero(const Operation& op, std::span<const Datum> operands) {
  return (op.code == Opcode::div_ || op.code == Opcode::rem_) && operands[0].is_literal() &&
         operands[1].is_literal() && operands[1].type().is_integer() && operands[1].i() == 0;
}

}  // namespace

Datum perform(const Operation& op, std::span<const Datum> operands) {
  if (divides_by_zero(op, operands))
    if (Staging* const staging = context().staging) return staging->emit(op, operands);
  if (plain(op, operands) && !detail::checking()) return evaluate_literals(op, operands);
  if (Mode* mode = mode_of(operands, op.loc)) return mode->apply(op, operands);
  bool staged = false;
  for (const Datum& d : operands) {
    if (d.empty()) raise_at(op.loc, "an empty Rep is used: give it a value first");
    staged |= d.is_node();
  }
  if (staged) {
    Staging* staging = context().staging;
    if (!staging) raise_at(op.loc, "a staged value is used while nothing is being staged");
    return staging->emit(op, operands);
  }
  // A tensor made of literals belongs to the graph as well: operands cannot show it.
  if (Staging* staging = context().staging; staging && op.code == Opcode::fill_) return staging->emit(op, operands);
  const ir::OpInfo& row = ir::info(op.code);
  if (!row.elementwise || row.rule != ir::Rule::arith || !same_scalars(operands)) {
    std::vector<ir::Type> types;
    for (const Datum& d : operands) types.push_back(d.type());
    try {
      ir::infer_type(op.code, types, op.attribute, op.dims, op.text);
    } catch (const Error& e) {
      raise_at(op.loc, e.what());
    }
  }
  if (operands.size() <= 3) {
    std::array<Datum, 3> copy;
    for (std::size_t i = 0; i < operands.size(); ++i) copy[i] = operands[i];
    return evaluate(op, std::span(copy).first(operands.size()));
  }
  Datums copy(operands.begin(), operands.end());
  return evaluate(op, copy);
}

Datum perform_broadcast(const Operation& op, const Datum& first, const Datum& second) {
  if (first.type().is_scalar() && second.type().is_scalar()) return perform(op, {first, second});
  Datum a = first, b = second;
  const int ra = a.type().rank(), rb = b.type().rank();
  Operation spread = op;
  spread.code = Opcode::broadcast_;
  if (ra < rb && a.type().element() == b.type().element()) a = perform(spread, {a, b});
  if (rb < ra && a.type().element() == b.type().element()) b = perform(spread, {b, a});
  return perform(op, {a, b});
}

Datum dimension_of(const Datum& t, std::int64_t k, const Location& loc) {
  const std::int64_t known = t.type().dims()[static_cast<std::size_t>(k)];
  return known != ir::dynamic ? Datum::integer(known, ir::I64) : perform({Opcode::dim_, k, loc}, {strip(t)});
}

Datum zeros_like(const Datum& like, const Location& loc) {
  const Datum& primal = strip(like);
  if (primal.type().is_scalar()) return Datum::zero(primal.type());
  return perform({Opcode::zeros_like_, 0, loc}, {primal});
}

}  // namespace lantern::core
