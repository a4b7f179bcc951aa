#include "lantern/compiler/passes/analysis/gemm.hpp"

#include <algorithm>
#include <vector>

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

std::optional<Contraction> contraction(const ir::Notation& n) {
  std::vector<std::size_t> factors;
  for (std::size_t o = 0; o < n.operands.size(); ++o)
    if (n.is_factor(o)) factors.push_back(o);
  if (factors.size() != 2) return {};
  Contraction c{factors[0], factors[1], {}, {}, {}, {}};
  const std::string x = ir::letters_of(n.operands[c.x].at), y = ir::letters_of(n.operands[c.y].at),
                    result = ir::letters_of(n.result);
  const auto has = [](const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; };
  const auto stands_alone = [&](char letter) {
    const auto in = [&](const ir::Subscripts& at) {
      return std::ranges::any_of(at, [&](const ir::Subscript& s) { return s.is(letter); });
    };
    return in(n.result) || in(n.operands[c.x].at) || in(n.operands[c.y].at);
  };
  for (const char letter : result) {
    if (!has(x, letter) && !has(y, letter)) return {};
    (has(x, letter) && has(y, letter) ? c.batch : has(x, letter) ? c.rows : c.columns) += letter;
  }
  // Of an index that one of the two lacks, such as a dimension of one that was put in, all points count.
  for (const char letter : y)
    if (!has(result, letter)) c.sums += letter;
  for (const char letter : x)
    if (!has(result, letter) && !has(y, letter)) c.sums += letter;
  if (c.rows.empty() || c.columns.empty() || c.sums.empty()) return {};
  if (!std::ranges::all_of(c.letters(), stands_alone)) return {};
  return c;
}

}  // namespace lantern::passes
