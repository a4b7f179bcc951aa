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

std::optional<ChannelWindow> channel_window(const ir::Notation& n, const ir::Type& x, const ir::Type& y) {
  const auto c = contraction(n);
  if (!c || c->batch.size() > 1 || c->columns.size() != 1 || c->x > c->y || !x.is_tensor() || !y.is_tensor()) return {};
  const auto is = [](const std::string& letters, char l) { return letters.find(l) != std::string::npos; };
  const ir::Subscripts &from = n.operands[c->x].at, &by = n.operands[c->y].at, &to = n.result;
  if (from.size() < 3 || by.size() < 3 || to.size() < 3) return {};
  ChannelWindow w{*c, 0, c->batch.empty() ? '\0' : c->batch[0], {}};
  for (std::size_t k = 0; k < 2; ++k) {
    const ir::Subscript& s = from[from.size() - 2 + k];
    if (s.terms.size() != 2 || s.constant > 0) return {};
    const bool turned = is(c->sums, s.terms[0].letter);
    const auto &row = s.terms[turned ? 1 : 0], &window = s.terms[turned ? 0 : 1];
    if (!is(c->rows, row.letter) || !is(c->sums, window.letter) || row.factor < 1 || window.factor < 1) return {};
    if (!by[by.size() - 2 + k].is(window.letter) || !to[to.size() - 2 + k].is(row.letter)) return {};
    const std::int64_t size = y.dims()[by.size() - 2 + k];
    if (size < 1 || size > 7 || row.factor > 4) return {};
    w.place[k] = {row.letter, window.letter, row.factor, window.factor, -s.constant};
  }
  // All else are letters: of the rows one more at most, of the sums those of one place.
  const auto plain = [](const ir::Subscripts& at, std::size_t without) {
    return std::all_of(at.begin(), at.end() - static_cast<std::ptrdiff_t>(without),
                       [](const ir::Subscript& s) { return s.is_letter(); });
  };
  if (!plain(from, 2) || !plain(by, 0) || !plain(to, 0)) return {};
  const auto in_window = [&](char l) {
    return l == w.place[0].row || l == w.place[1].row || l == w.place[0].window || l == w.place[1].window;
  };
  const auto one = [&](char l) {
    for (std::size_t d = 0; d < by.size(); ++d)
      if (by[d].is(l)) return y.dims()[d] == 1;
    return false;
  };
  for (const char l : c->rows) {
    if (in_window(l)) continue;
    if (w.other) return {};
    w.other = l;
  }
  for (const char l : c->sums + c->columns)
    if (!in_window(l) && !one(l)) return {};
  return w;
}

}  // namespace lantern::passes
