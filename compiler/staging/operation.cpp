// Dispatch of operations to the mode in charge.
#include "lantern/compiler/staging/operation.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "lantern/compiler/staging/caller.hpp"
#include "lantern/compiler/staging/check.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/compiler/staging/unset_variable.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/notation.hpp"

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
  if (top && top->ended() && top->rule())
    raise_at(loc, *top->rule() +
                      ": the function captures a value that is being differentiated; pass it as an argument");
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

/// An operation on numbers that are known, to which no mode, graph or type rule has anything to add.
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

/// Whole numbers that are known, divided by zero. While a program is staged this happens when it runs, if it comes there.
bool divides_by_zero(const Operation& op, std::span<const Datum> operands) {
  return (op.code == Opcode::div_ || op.code == Opcode::rem_) && operands[0].is_literal() &&
         operands[1].is_literal() && operands[1].type().is_integer() && operands[1].i() == 0;
}

}  // namespace

Datum perform(const Operation& given, std::span<const Datum> operands) {
  if (divides_by_zero(given, operands))
    if (Staging* const staging = context().staging) return staging->emit(given, operands);
  if (plain(given, operands) && !detail::checking()) return evaluate_literals(given, operands);
  Operation op = given;
  op.loc = Caller::place(op.loc);
  if (Mode* mode = mode_of(operands, op.loc)) return mode->apply(op, operands);
  bool staged = false;
  for (const Datum& d : operands) {
    if (d.empty()) refuse_empty(op.loc);
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

namespace {

/// Whether dimension `from_last` of a tensor is 1, and is there.
bool is_one(const ir::Type& t, int from_last) {
  return from_last < t.rank() && t.dims()[static_cast<std::size_t>(t.rank() - 1 - from_last)] == 1;
}
/// Whether `a` has a dimension 1 where `b` has another.
bool stretches(const ir::Type& a, const ir::Type& b) {
  for (int k = 0; k < std::min(a.rank(), b.rank()); ++k)
    if (is_one(a, k) && !is_one(b, k)) return true;
  return false;
}

/// The tensor, its dimensions of 1 repeated to the sizes of `like`, and to its rank: "[0]j->ij;i".
Datum stretched(const Datum& a, const Datum& like, const Location& loc) {
  constexpr std::string_view letters = ir::index_letters;
  const int ra = a.type().rank(), rank = std::max(ra, like.type().rank());
  if (rank > static_cast<int>(letters.size())) raise_at(loc, "tensors of too many dimensions");
  std::string at, result(letters.substr(0, static_cast<std::size_t>(rank))), sizes;
  Datums operands = {a};
  std::vector<std::int64_t> shape;
  for (int d = 0; d < rank; ++d) {
    const int k = rank - 1 - d;  // from the last
    const char letter = letters[static_cast<std::size_t>(d)];
    const bool own = k < ra && !(is_one(a.type(), k) && k < like.type().rank() && !is_one(like.type(), k));
    if (own)
      at += letter;
    else if (k < ra)
      at += "[0]";
    const Datum& from = own ? a : like;
    const std::int64_t dimension = from.type().rank() - 1 - k;
    shape.push_back(from.type().dims()[static_cast<std::size_t>(dimension)]);
    if (own) continue;
    sizes += letter;
    operands.push_back(dimension_of(like, dimension, loc));
  }
  const std::string text = at + "->" + result + (sizes.empty() ? "" : ";" + sizes);
  return perform({Opcode::einsum_, 0, loc, shape, ir::canonical(ir::notation(text))}, operands);
}

}  // namespace

Datum broadcast_like(const Datum& a, const Datum& like, const Location& loc) {
  if (!like.type().is_tensor()) return a;
  const bool wider = a.type().rank() < like.type().rank();
  if (a.type().is_tensor() && (stretches(a.type(), like.type()) || (wider && stretches(like.type(), a.type()))))
    return stretched(a, like, loc);
  return wider ? perform({Opcode::broadcast_, 0, loc}, {a, like}) : a;
}

Datum perform_broadcast(const Operation& op, const Datum& first, const Datum& second) {
  if (first.type().is_scalar() && second.type().is_scalar()) return perform(op, {first, second});
  if (first.type().element() != second.type().element()) return perform(op, {first, second});
  const Datum a = broadcast_like(first, second, op.loc);
  return perform(op, {a, broadcast_like(second, a, op.loc)});
}

Datum compare_broadcast(Opcode code, const Datum& a, const Datum& b) {
  for (const Datum* d : {&b, &a})
    if (d->is_node() && d->node()->def) return perform_broadcast({code, 0, d->node()->def->loc}, a, b);
  return perform_broadcast({code, 0, {}}, a, b);
}

Datum detail::shifted(Opcode code, const Datum& a, const Datum& b, const Location& loc) {
  const std::int64_t most = b.type().element() == ir::Kind::i32 ? 31 : 63;
  const ir::Type number(b.type().element());
  const Datum counted = b.is_literal()
                            ? Datum::integer(b.i() & most, number)
                            : perform_broadcast({Opcode::bit_and_, 0, loc}, b, Datum::integer(most, number));
  return perform_broadcast({code, 0, loc}, a, counted);
}

Datum dimension_of(const Datum& t, std::int64_t k, const Location& loc) {
  if (!t.type().is_tensor() || k < 0 || k >= t.type().rank())
    raise_at(loc, "expected a tensor of " + std::to_string(k + 1) + " dimensions or more, got " + t.type().str());
  const std::int64_t known = t.type().dims()[static_cast<std::size_t>(k)];
  return known != ir::dynamic ? Datum::integer(known, ir::I64) : perform({Opcode::dim_, k, loc}, {strip(t)});
}

Datum zeros_like(const Datum& like, const Location& loc) {
  const Datum& primal = strip(like);
  if (primal.type().is_scalar()) return Datum::zero(primal.type());
  return perform({Opcode::zeros_like_, 0, loc}, {primal});
}

}  // namespace lantern::core
