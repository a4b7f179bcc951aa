// Products of matrices, sums of products in index notation, determinants.
#include <algorithm>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::onnx::rules {

namespace {
constexpr std::string_view letters = ir::index_letters;
}

Datum matrix_product(const Call& c, const Datum& a, const Datum& b) {
  if (!a.type().is_tensor() || !b.type().is_tensor())
    c.fail("expected matrices, got " + a.type().str() + " and " + b.type().str());
  const int ra = a.type().rank(), rb = b.type().rank();
  if (ra == 1 && rb == 1) return c.b.binary(Opcode::dot_, a, b);
  if (ra <= 2 && rb <= 2) return core::detail::matmul(a, b, c.b.loc);
  const int batch = std::max(ra, rb) - 2;
  if (batch + 3 > static_cast<int>(letters.size()))
    c.unsupported("tensors of more than " + std::to_string(letters.size() - 3) + " dimensions");
  const auto letter = [&](int k) { return std::string(1, letters[static_cast<std::size_t>(k)]); };
  std::string left, right, result;
  for (int d = 0; d < batch; ++d) {  // dimensions of 1 are repeated
    const int da = d - (batch + 2 - std::max(ra, 2)), db = d - (batch + 2 - std::max(rb, 2));
    const auto one = [](const Datum& t, int k) { return t.type().dims()[static_cast<std::size_t>(k)] == 1; };
    const bool a_one = da >= 0 && one(a, da), b_one = db >= 0 && one(b, db);
    if (da >= 0) left += a_one && db >= 0 && !b_one ? "[0]" : letter(d);
    if (db >= 0) right += b_one && da >= 0 && !a_one ? "[0]" : letter(d);
    result += letter(d);
  }
  const std::string i = letter(batch), j = letter(batch + 1), k = letter(batch + 2);
  left += (ra == 1 ? "" : i) + k;
  right += k + (rb == 1 ? "" : j);
  result += (ra == 1 ? "" : i) + (rb == 1 ? "" : j);
  return core::detail::einsum((left + "," + right + "->" + result).c_str(), {a, b}, c.b.loc);
}

Terms matmul(const Call& c) {
  c.require_operands(2, 2);
  if (c.element(0) != c.element(1)) c.fail("expected two operands of one element type");
  return {c.result(matrix_product(c, c[0], c[1]))};
}

Terms gemm(const Call& c) {
  c.require_operands(2, 3);
  if (c.rank(0) != 2 || c.rank(1) != 2)
    c.fail("expected two matrices, got " + c[0].type().str() + " and " + c[1].type().str());
  const bool turn_a = c.attribute("transA", std::int64_t{0}) != 0,
             turn_b = c.attribute("transB", std::int64_t{0}) != 0;
  const double alpha = c.attribute("alpha", 1.0), beta = c.attribute("beta", 1.0);
  Datum y = core::detail::einsum(
      (std::string(turn_a ? "ki" : "ik") + "," + (turn_b ? "jk" : "kj") + "->ij").c_str(), {c[0], c[1]},
      c.b.loc);
  if (alpha != 1) y = c.b.mul(y, c.number(alpha, y));
  if (!c.has(2)) return {c.result(y)};
  Datum bias = c[2];
  if (beta != 1) bias = c.b.mul(bias, c.number(beta, bias));
  return {c.result(c.b.add(y, bias))};
}

// The equation as the library writes it: letters for "...", and the result where it is left out.
Terms einsum(const Call& c) {
  std::string equation;
  for (const char ch : c.attribute("equation", std::string()))
    if (ch != ' ') equation += ch;
  const std::size_t arrow = equation.find("->");
  std::vector<std::string> operands(1);
  for (const char ch : equation.substr(0, arrow)) {
    if (ch == ',')
      operands.emplace_back();
    else
      operands.back() += ch;
  }
  std::optional<std::string> result;
  if (arrow != std::string::npos) result = equation.substr(arrow + 2);
  c.require_operands(operands.size(), operands.size());
  const auto fail = [&] {
    c.fail("attribute 'equation': expected letters, ',', '...' and '->', got '" + equation + "'");
  };
  // One of the library's letters for each letter, and for each dimension that "..." represents.
  std::string used;
  const auto own = [&](char ch) {
    std::size_t at = used.find(ch);
    if (at == std::string::npos) {
      at = used.size();
      used += ch;
    }
    if (at >= letters.size())
      c.unsupported("equations with more than " + std::to_string(letters.size()) + " indices");
    return std::string(1, letters[at]);
  };
  int many = 0;  // the dimensions of the longest "..."
  const auto named = [](const std::string& text) {
    return std::ranges::count_if(text, [](unsigned char ch) { return std::isalpha(ch); });
  };
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].find("...") != std::string::npos)
      many = std::max(many, c.rank(i) - static_cast<int>(named(operands[i])));
  std::string dots;
  for (int d = 0; d < many; ++d) dots += static_cast<char>('0' + d);  // names that no equation has
  if (many > 9) c.unsupported("equations of which '...' is more than 9 dimensions");
  const auto translated = [&](const std::string& text, int count) {
    std::string out;
    for (std::size_t k = 0; k < text.size(); ++k) {
      if (text.compare(k, 3, "...") == 0) {
        for (const char ch : dots.substr(dots.size() - static_cast<std::size_t>(count))) out += own(ch);
        k += 2;
      } else if (std::isalpha(static_cast<unsigned char>(text[k]))) {
        out += own(text[k]);
      } else {
        fail();
      }
    }
    return out;
  };
  std::string text;
  Datums in;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const int count =
        operands[i].find("...") == std::string::npos ? 0 : c.rank(i) - static_cast<int>(named(operands[i]));
    if (count < 0 || c.rank(i) != count + static_cast<int>(named(operands[i])))
      c.fail("attribute 'equation': expected an index for each dimension of " + c[i].type().str() +
             ", got '" + operands[i] + "'");
    text += (i > 0 ? "," : "") + translated(operands[i], count);
    in.push_back(c[i]);
  }
  if (!result) {  // "..." and the letters that are once, by the alphabet
    std::string all, once;
    for (const std::string& o : operands) all += o;
    for (const char ch : all)
      if (std::isalpha(static_cast<unsigned char>(ch)) && std::ranges::count(all, ch) == 1) once += ch;
    std::ranges::sort(once);
    result = (many > 0 ? "..." : "") + once;
  }
  const std::string to = translated(*result, result->find("...") == std::string::npos ? 0 : many);
  return {c.result(core::detail::einsum((text + "->" + to).c_str(), in, c.b.loc))};
}

// By elimination with the largest pivot of each column, for each matrix.
Terms det(const Call& c) {
  c.require_float(0);
  const Datum x = c[0];
  const int rank = c.rank();
  if (rank < 2) c.fail("expected matrices, got " + x.type().str());
  const Indices all = c.sizes(x), outer(all.begin(), all.end() - 2);
  const Datum n = all.back(), zero = c.integer(0), one = c.integer(1);
  c.b.require_equal(n, all[all.size() - 2], "expected square matrices");
  const ir::Kind k = x.type().element();
  return {c.result(c.tabulate(k, outer, [&](const Indices& place) {
    const Datum matrix = c.b.tabulate(k, {n, n}, [&](const Indices& at) {
      Indices from = place;
      from.insert(from.end(), at.begin(), at.end());
      return c.b.get(x, from);
    });
    return c.b.loop(zero, n, {matrix, c.number(1, x)}, [&](const Datum& p, const Datums& s) {
      const Datum pivot = c.b.loop(p, n, {p}, [&](const Datum& i, const Datums& best) {
        const auto size = [&](const Datum& row) {
          return c.op(Opcode::abs_, c.b.get(c.b.primal(s[0]), {row, p}));
        };
        return Datums{c.b.select(c.b.less(size(best[0]), size(i)), i, best[0])};
      })[0];
      const Datum value = c.b.get(s[0], {pivot, p}), same = c.op(Opcode::eq_, pivot, p);
      const Datum signed_value = c.b.select(same, value, c.op(Opcode::neg_, value));
      const Datum swapped = c.b.loop(zero, n, {s[0]}, [&](const Datum& j, const Datums& m) {
        const Datum upper = c.b.get(m[0], {p, j}), lower = c.b.get(m[0], {pivot, j});
        return Datums{c.b.set(c.b.set(m[0], {p, j}, lower), {pivot, j}, upper)};
      })[0];
      const Datum divisor = c.b.select(c.op(Opcode::eq_, value, c.number(0, x)), c.number(1, x), value);
      const Datum reduced = c.b.loop(c.b.add(p, one), n, {swapped}, [&](const Datum& i, const Datums& rows) {
        const Datum factor = c.b.div(c.b.get(rows[0], {i, p}), divisor);
        return c.b.loop(p, n, {rows[0]}, [&](const Datum& j, const Datums& m) {
          return Datums{
              c.b.set(m[0], {i, j}, c.b.sub(c.b.get(m[0], {i, j}), c.b.mul(factor, c.b.get(m[0], {p, j}))))};
        });
      })[0];
      return Datums{reduced, c.b.mul(s[1], signed_value)};
    })[1];
  }))};
}

}  // namespace lantern::onnx::rules
