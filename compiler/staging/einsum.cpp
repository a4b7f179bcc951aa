// Notations for operands of a rank, and the operations that they name.
#include "lantern/compiler/staging/einsum.hpp"

#include <algorithm>
#include <string>

#include "lantern/ir/error.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::core::detail {

namespace {

constexpr std::string_view letters = "ijklmnopqrstuvwxyzabcdefgh";

/// The letters of the dimensions, or an Error where axes are not dimensions or stand twice.
std::string dimensions(const char* what, const Datum& t, std::span<const int> axes, const Location& loc) {
  const int rank = t.type().rank();
  if (rank > static_cast<int>(letters.size()))
    raise_at(loc, std::string(what) + ": the tensor has too many dimensions");
  std::vector<int> seen;
  for (const int axis : axes) {
    if (axis < 0 || axis >= rank)
      raise_at(loc, std::string(what) + ": expected dimensions of " + t.type().str() + ", from 0 to " +
                        std::to_string(rank - 1) + ", got " + std::to_string(axis));
    if (std::ranges::count(seen, axis))
      raise_at(loc, std::string(what) + ": dimension " + std::to_string(axis) + " stands twice");
    seen.push_back(axis);
  }
  return std::string(letters.substr(0, static_cast<std::size_t>(rank)));
}

}  // namespace

Datum einsum(const char* text, const Datums& operands, const Location& loc) {
  const ir::Notation* n = nullptr;
  try {
    n = &ir::notation(text);
  } catch (const Error& e) {
    raise_at(loc, e.what());
  }
  if (operands.size() != n->arity())
    raise_at(loc, "einsum: expected " + std::to_string(n->arity()) + " operands for \"" + n->text() +
                      "\", got " + std::to_string(operands.size()));
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < operands.size(); ++i) order.push_back(i);
  for (std::size_t i = 0; i < n->operands.size(); ++i)
    if (operands[i].type().rank() != static_cast<int>(n->operands[i].at.size()))
      raise_at(loc, "einsum: expected operands of the ranks in \"" + n->text() + "\", got " +
                        operands[i].type().str() + " as number " + std::to_string(i + 1));
  const ir::Call call = ir::named(*n, order);
  Datums in;
  for (const std::size_t i : call.order) in.push_back(operands[i]);
  return perform({call.code, 0, loc, {}, call.text}, in);
}

Datum permuted(const Datum& t, std::span<const int> axes, const Location& loc) {
  const std::string all = dimensions("permute", t, axes, loc);
  if (axes.size() != all.size())
    raise_at(loc, "permute: expected every dimension of " + t.type().str() + ", got " +
                      std::to_string(axes.size()) + " of them");
  std::string result;
  for (const int axis : axes) result += all[static_cast<std::size_t>(axis)];
  return einsum((all + "->" + result).c_str(), {t}, loc);
}

Datum sum_over(const Datum& t, std::span<const int> axes, const Location& loc) {
  const std::string all = dimensions("sum", t, axes, loc);
  if (axes.size() == all.size()) raise_at(loc, "sum: over all dimensions it is written sum(t)");
  std::string result = all;
  for (const int axis : axes) std::erase(result, all[static_cast<std::size_t>(axis)]);
  return einsum((all + "->" + result).c_str(), {t}, loc);
}

Datum mean_over(const Datum& t, std::span<const int> axes, const Location& loc) {
  const Datum sum = sum_over(t, axes, loc);
  Datum count = Datum::integer(1, ir::I64);
  for (const int axis : axes) count = perform({Opcode::mul_, 0, loc}, {count, dimension_of(t, axis, loc)});
  const auto kind = static_cast<std::int64_t>(t.type().element());
  const Datum one = Datum::number(1.0, ir::Type(t.type().element()));
  const Datum factor = perform({Opcode::div_, 0, loc}, {one, perform({Opcode::cast_, kind, loc}, {count})});
  return perform_broadcast({Opcode::mul_, 0, loc}, sum, factor);
}

}  // namespace lantern::core::detail
