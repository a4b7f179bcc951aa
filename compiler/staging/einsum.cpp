// Notations for operands of a rank, and the operations that they name.
#include "lantern/compiler/staging/einsum.hpp"

#include <algorithm>
#include <string>

#include "lantern/ir/error.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::core::detail {

namespace {

using ir::index_letters;

/// One letter for each dimension.
std::string letters_for(const char* what, int rank, const Location& loc) {
  if (rank > static_cast<int>(index_letters.size()))
    raise_at(loc, std::string(what) + ": the tensor has too many dimensions");
  return std::string(index_letters.substr(0, static_cast<std::size_t>(rank)));
}

}  // namespace

std::vector<int> axes_of(const char* what, const Datum& t, std::span<const int> axes, const Location& loc) {
  const int rank = t.type().rank();
  std::vector<int> all;
  for (const int axis : axes) {
    if (axis < -rank || axis >= rank)
      raise_at(loc, std::string(what) + ": expected dimensions of " + t.type().str() +
                        (rank > 0 ? ", from 0 to " + std::to_string(rank - 1) + " (or, from the last, -1 to " +
                                        std::to_string(-rank) + ")"
                                  : "") +
                        ", got " + std::to_string(axis));
    const int found = axis < 0 ? axis + rank : axis;
    if (std::ranges::count(all, found))
      raise_at(loc, std::string(what) + ": dimension " + std::to_string(axis) + " occurs twice");
    all.push_back(found);
  }
  return all;
}

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

Datum permuted(const Datum& t, std::span<const int> given, const Location& loc) {
  const std::vector<int> axes = axes_of("permute", t, given, loc);
  const std::string all = letters_for("permute", t.type().rank(), loc);
  if (axes.size() != all.size())
    raise_at(loc, "permute: expected every dimension of " + t.type().str() + ", got " +
                      std::to_string(axes.size()) + " of them");
  std::string result;
  for (const int axis : axes) result += all[static_cast<std::size_t>(axis)];
  return einsum((all + "->" + result).c_str(), {t}, loc);
}

Datum sum_over(const Datum& t, std::span<const int> given, const Location& loc) {
  const std::vector<int> axes = axes_of("sum", t, given, loc);
  const std::string all = letters_for("sum", t.type().rank(), loc);
  if (axes.size() == all.size()) raise_at(loc, "sum: over all dimensions it is written sum(t)");
  std::string result = all;
  for (const int axis : axes) std::erase(result, all[static_cast<std::size_t>(axis)]);
  return einsum((all + "->" + result).c_str(), {t}, loc);
}

Datum mean_over(const Datum& t, std::span<const int> given, const Location& loc) {
  const std::vector<int> axes = axes_of("mean", t, given, loc);
  const Datum sum = sum_over(t, axes, loc);
  Datum count = Datum::integer(1, ir::I64);
  for (const int axis : axes) count = perform({Opcode::mul_, 0, loc}, {count, dimension_of(t, axis, loc)});
  const auto kind = static_cast<std::int64_t>(t.type().element());
  const Datum one = Datum::number(1.0, ir::Type(t.type().element()));
  const Datum factor = perform({Opcode::div_, 0, loc}, {one, perform({Opcode::cast_, kind, loc}, {count})});
  return perform_broadcast({Opcode::mul_, 0, loc}, sum, factor);
}

Datum matmul(const Datum& a, const Datum& b, const Location& loc) {
  const int ra = a.type().rank(), rb = b.type().rank();
  if (ra <= 2 && rb <= 2) {
    const Opcode op = ra == 2 && rb == 1   ? Opcode::matvec_
                      : ra == 1 && rb == 2 ? Opcode::vecmat_
                                           : Opcode::matmul_;
    return perform({op, 0, loc}, {a, b});
  }
  const int batch = std::max({ra - 2, rb - 2, 0});
  if ((ra > 2 && ra != batch + 2) || (rb > 2 && rb != batch + 2))
    raise_at(loc, "matmul: expected as many dimensions before the matrices, or none, got " + a.type().str() +
                      " and " + b.type().str());
  const std::string all = letters_for("matmul", batch + 3, loc);
  const auto n = static_cast<std::size_t>(batch);
  const std::string many = all.substr(0, n), i = all.substr(n, 1), j = all.substr(n + 1, 1), k = all.substr(n + 2, 1);
  const std::string left = (ra > 2 ? many : "") + (ra == 1 ? "" : i) + k;
  const std::string right = (rb > 2 ? many : "") + k + (rb == 1 ? "" : j);
  return einsum((left + "," + right + "->" + many + (ra == 1 ? "" : i) + (rb == 1 ? "" : j)).c_str(), {a, b},
                loc);
}

}  // namespace lantern::core::detail
