#include "lantern/compiler/passes/analysis/gemm.hpp"

namespace lantern::passes {

std::optional<MatrixProduct> matrix_product(const ir::Notation& n) {
  const auto letters = [](const ir::Subscripts& at) {
    std::string s;
    for (const ir::Subscript& i : at)
      if (i.is_letter() && s.find(i.letter()) == std::string::npos) s += i.letter();
    return at.size() == 2 && s.size() == 2 ? s : "";
  };
  const std::string result = letters(n.result);
  if (result.empty() || n.factors() != 2) return {};
  MatrixProduct p{n.operands.size(), n.operands.size(), result[0], result[1], 0};
  for (std::size_t o = 0; o < n.operands.size(); ++o) {
    if (!n.is_factor(o)) continue;
    const std::string at = letters(n.operands[o].at);
    const bool has_i = at.find(p.i) != std::string::npos, has_j = at.find(p.j) != std::string::npos;
    if (at.empty() || has_i == has_j) return {};
    const char other = at[at[0] == (has_i ? p.i : p.j) ? 1 : 0];
    if (p.k && p.k != other) return {};
    p.k = other;
    (has_i ? p.x : p.y) = o;
  }
  if (p.x == n.operands.size() || p.y == n.operands.size()) return {};
  return p;
}

}  // namespace lantern::passes
