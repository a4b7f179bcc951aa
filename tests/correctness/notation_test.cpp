// Index notation: random notations against plain loops, their derivatives in every way, and what is refused.
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/ir/notation.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "agree.hpp"
#include "depth.hpp"
#include "lantern/ir/op.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double>>;
template <std::int64_t... d>
using T = Rep<Tensor<double, d...>>;

/// A notation with sizes for its indices, and of its operands where a place is a sum.
struct Case {
  std::string text;
  std::map<char, std::int64_t> sizes;
  std::vector<std::vector<std::int64_t>> shapes;  ///< of the operands

  std::int64_t count(std::size_t i) const {
    std::int64_t n = 1;
    for (const std::int64_t d : shapes[i]) n *= d;
    return n;
  }
  std::int64_t elements() const {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < shapes.size(); ++i) n += count(i);
    return n;
  }
};

Case with_shapes(const std::string& text, std::map<char, std::int64_t> sizes, std::int64_t of_sums = 4) {
  Case c{text, std::move(sizes), {}};
  for (const ir::Notation::Operand& o : ir::notation(text).operands) {
    auto& shape = c.shapes.emplace_back();
    for (const ir::Subscript& s : o.at) shape.push_back(s.is_letter() ? c.sizes.at(s.letter()) : of_sums);
  }
  return c;
}

Case random_case(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::string text, used;
  const int operands = 1 + below(3);
  for (int i = 0; i < operands; ++i) {
    if (i > 0) text += ',';
    for (int d = below(4); d > 0; --d) {
      const char c = static_cast<char>('i' + below(4));
      text += c;
      if (used.find(c) == std::string::npos) used += c;
    }
  }
  text += "->";
  std::shuffle(used.begin(), used.end(), random);
  text += used.substr(0, static_cast<std::size_t>(below(static_cast<int>(used.size()) + 1)));
  std::map<char, std::int64_t> sizes;
  for (char c = 'i'; c <= 'l'; ++c) sizes[c] = below(9) == 0 ? 0 : 1 + below(4);
  return with_shapes(text, sizes);
}

/// What the notation says, point by point.
std::vector<double> by_definition(const Case& c, const std::vector<double>& x) {
  const ir::Notation& n = ir::notation(c.text);
  const std::string letters = n.letters();
  std::vector<std::int64_t> shape = c.shapes.empty() ? std::vector<std::int64_t>() : c.shapes[0];
  if (!n.accumulates) {
    shape.clear();
    for (const ir::Subscript& s : n.result) shape.push_back(c.sizes.at(s.letter()));
  }
  std::int64_t size = 1;
  for (const std::int64_t d : shape) size *= d;
  std::vector<double> out(static_cast<std::size_t>(size));
  if (n.accumulates) std::copy_n(x.begin(), out.size(), out.begin());
  std::map<char, std::int64_t> at;
  const auto place = [&](const ir::Subscripts& subscripts, const std::vector<std::int64_t>& of) {
    std::int64_t flat = 0;
    for (std::size_t d = 0; d < of.size(); ++d) {
      std::int64_t i = subscripts[d].constant;
      for (const auto& t : subscripts[d].terms) i += t.factor * at[t.letter];
      if (i < 0 || i >= of[d]) return std::int64_t{-1};
      flat = flat * of[d] + i;
    }
    return flat;
  };
  const auto walk = [&](auto& self, std::size_t k) -> void {
    if (k < letters.size()) {
      for (std::int64_t i = 0; i < c.sizes.at(letters[k]); ++i) {
        at[letters[k]] = i;
        self(self, k + 1);
      }
      return;
    }
    double product = 1;
    std::int64_t from = 0;
    for (std::size_t i = 0; i < n.operands.size(); ++i) {
      if (n.is_factor(i)) {
        const std::int64_t p = place(n.operands[i].at, c.shapes[i]);
        if (p < 0) return;
        product *= x[static_cast<std::size_t>(from + p)];
      }
      from += c.count(i);
    }
    const std::int64_t to = place(n.result, shape);
    if (to >= 0) out[static_cast<std::size_t>(to)] += product;
  };
  walk(walk, 0);
  return out;
}

/// The operands one after the other in an array; the result as an array.
A program(const Case& c, const A& x) {
  const ir::Notation& n = ir::notation(c.text);
  Datums in;
  std::int64_t from = 0;
  for (std::size_t i = 0; i < c.shapes.size(); ++i) {
    if (c.shapes[i].empty()) {
      in.push_back(x[from].datum());
    } else {
      const A part = x.slice(from, from + c.count(i));
      in.push_back(
          perform({ir::Opcode::reshape_, 0, {}}, {part.datum(), zeros<double>(c.shapes[i]).datum()}));
    }
    from += c.count(i);
  }
  for (const char s : n.sizes) in.push_back(Datum::integer(c.sizes.at(s), ir::I64));
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < in.size(); ++i) order.push_back(i);
  const ir::Call call = ir::named(n, order);
  Datums turned;
  for (const std::size_t i : call.order) turned.push_back(in[i]);
  const Datum y = perform({call.code, 0, {}, {}, call.text}, turned);
  if (y.type().is_scalar()) return fill(D(y), 1);
  std::int64_t size = 1;
  for (const ir::Subscript& s : n.result) size *= n.accumulates ? 1 : c.sizes.at(s.letter());
  if (n.accumulates) size = c.count(0);
  return A(perform({ir::Opcode::reshape_, 0, {}}, {y, zeros<double>({size}).datum()}));
}

/// A number that depends on every element of the result in its own way.
std::function<D(A)> blended(const Case& c) {
  return [c](A x) {
    const A y = program(c, x);
    return sum(y * sin(y)) + sum(y) * sum(y * y);
  };
}

std::vector<double> numbers(std::mt19937& random, std::int64_t n) {
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<double> x(static_cast<std::size_t>(n));
  for (double& v : x) v = uniform(random);
  return x;
}

void check_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance = 1e-12) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
}

/// Value and gradient, eager and compiled, fused and not, against the definition and differences.
void check_case(const Case& c, std::mt19937& random) {
  INFO(c.text);
  const std::vector<double> x = numbers(random, c.elements());
  for (const auto& [letter, size] : c.sizes) INFO(letter << " " << size);
  const std::function<A(A)> value = [c](A a) { return program(c, a); };
  const std::vector<double> expected = by_definition(c, x);
  check_close(eager(value)(x), expected);
  for (const CompileOptions& o :
       std::vector<CompileOptions>{{.target = Target::c, .opt = 0},
                                   {.target = Target::c},
                                   {.target = Target::c, .disabled_passes = {"lower"}}})
    check_close(compile(value, o)(x), expected);
  const std::function<D(A)> f = blended(c);
  const std::vector<double> gradient = eager(grad(f))(x);
  check_close(eager(grad<mode::forward>(f))(x), gradient, 1e-9);
  for (const CompileOptions& o :
       std::vector<CompileOptions>{{.target = Target::c, .opt = 0},
                                   {.target = Target::c},
                                   {.target = Target::c, .disabled_passes = {"lower"}},
                                   {.target = Target::c, .disabled_passes = {"simplify"}},
                                   {.target = Target::c, .disabled_passes = {"unwind"}}})
    check_close(compile(grad(f), o)(x), gradient, 1e-9);
  constexpr double step = 1e-6;
  for (std::size_t i = 0; i < x.size(); i += 1 + x.size() / 6) {
    std::vector<double> up = x, down = x;
    up[i] += step;
    down[i] -= step;
    CHECK((eager(f)(up) - eager(f)(down)) / (2 * step) == Approx(gradient[i]).epsilon(1e-5).margin(1e-6));
  }
}

std::string refusal(const std::string& text) {
  try {
    ir::notation(text);
    return "accepted";
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("random notations mean what they say, and so do their derivatives", "[notation]") {
  std::mt19937 random(12);
  const int cases = deep() ? 2000 : 60;
  for (int k = 0; k < cases; ++k) check_case(random_case(random), random);
}

TEST_CASE("what is added to, diagonals, and places that are sums of indices", "[notation]") {
  std::mt19937 random(5);
  const std::map<char, std::int64_t> sizes{{'i', 3}, {'j', 2}, {'k', 3}, {'b', 2}};
  for (const char* text : {"ij+=i,j", "ij+=ik,kj", "ii+=i", "i+=ij", "ij+=j,i,ij", "ii->i", "ii->", "ijj->i",
                           "i,i,i->i", "bik,bkj->bij", "[2i+k-1],k->i;i", "[i+k],k->i;i",
                           "[i+k-1][j],bk->bij;i", "[i+k]+=i,k", "[-i+2],i->i", "[2i]->i;i", "i->[2i+1]"}) {
    if (std::string_view(text) == "i->[2i+1]") {
      CHECK(refusal(text) == "index notation \"i->[2i+1]\": an index of the result is a letter");
      continue;
    }
    check_case(with_shapes(text, sizes), random);
  }
}

TEST_CASE("derivatives of notations, in every mode and to the second order", "[notation]") {
  std::mt19937 random(7);
  for (const char* text : {"ij,jk->ik", "ij,kj,i->k", "[2i+k-1],k->i;i", "ii,i->"}) {
    const Case c = with_shapes(text, {{'i', 2}, {'j', 2}, {'k', 2}});
    check_all({.clang = false}, text, blended(c), numbers(random, c.elements()));
  }
}

TEST_CASE("einsum, permute, sums and means over dimensions", "[notation]") {
  const std::vector<double> x{1, 2, 3, 4, 5, 6};
  const TensorView<const double> m(x.data(), {2, 3});
  const std::function<T<dyn, dyn>(T<2, 3>)> gram = [](T<2, 3> a) { return einsum<"ij,kj->ik">(a, a); };
  const auto g = eager(gram)(m);
  CHECK(g.data == std::vector<double>{14, 32, 32, 77});
  const std::function<D(T<2, 3>)> total = [](T<2, 3> a) { return einsum<"ij,ij->">(a, a); };
  CHECK(eager(total)(m) == 91);
  CHECK(compile(total, {.target = Target::c})(m) == 91);
  const std::function<T<dyn, dyn>(T<2, 3>)> turned = [](T<2, 3> a) { return permute<1, 0>(a); };
  const auto t = compile(turned, {.target = Target::c})(m);
  CHECK(t.data == std::vector<double>{1, 4, 2, 5, 3, 6});
  const std::function<T<dyn>(T<2, 3>)> rows = [](T<2, 3> a) { return sum<1>(a) + mean<1>(a); };
  const auto r = compile(rows, {.target = Target::c})(m);
  CHECK(r.data == std::vector<double>{8, 20});
  const std::function<T<dyn>(T<dyn>, T<dyn>)> convolution = [](T<dyn> a, T<dyn> w) {
    return einsum<"[i+k],k->i;i">(a, w, a.dim(0) - w.dim(0) + 1);
  };
  const std::vector<double> w{1, -1};
  const auto c = compile(convolution, {.target = Target::c})(TensorView<const double>(x.data(), {6}),
                                                             TensorView<const double>(w.data(), {2}));
  CHECK(c.data == std::vector<double>{-1, -1, -1, -1, -1});
}

TEST_CASE("notations are refused with what is wrong", "[notation]") {
  CHECK(refusal("ij,jk") == "index notation \"ij,jk\": expected '->' or '+=' at position 5");
  CHECK(refusal("ij->k") ==
        "index notation \"ij->k\": the size of 'k' is not known: no operand has it as an index");
  CHECK(refusal("ij->ii") == "index notation \"ij->ii\": the result has the index 'i' twice");
  CHECK(refusal("[2i+k],k->i") ==
        "index notation \"[2i+k],k->i\": the size of 'i' is not known: no operand has it as an index");
  CHECK(refusal("=i->i") == "index notation \"=i->i\": there is nothing to multiply");
  CHECK(refusal("i->i;i") == "index notation \"i->i;i\": 'i' has its size from an operand already");
  CHECK(refusal("[2i+]->;i") == "index notation \"[2i+]->;i\": expected an index or a number at position 4");
  CHECK(refusal("i,j+=i") == "index notation \"i,j+=i\": expected one operand before '+=' at position 5");
  const auto error = [](const auto& f) -> std::string {
    try {
      f();
      return "accepted";
    } catch (const Error& e) {
      const std::string text = e.what();
      return text.substr(text.find("error: ") + 7);
    }
  };
  const std::vector<double> x{1, 2, 3, 4, 5, 6};
  const TensorView<const double> m(x.data(), {2, 3});
  const std::function<T<dyn, dyn>(T<dyn, dyn>)> square = [](T<dyn, dyn> a) {
    return einsum<"ij,jk->ik">(a, a);
  };
  CHECK(error([&] { (void)eager(square)(m); }) ==
        "matmul: expected shapes that fit \"ij,jk->ik\", got f64[2,3], f64[2,3]");
  const auto compiled = compile(square, {.target = Target::c});
  CHECK_THROWS_WITH(compiled(m), Catch::Contains("matmul: shapes [2, 3] and [2, 3] do not fit"));
  const std::function<D(T<dyn>)> rank = [](T<dyn> a) { return einsum<"ij->">(a); };
  CHECK(error([&] { (void)eager(rank)(TensorView<const double>(x.data(), {6})); }) ==
        "einsum: expected operands of the ranks in \"ij->\", got f64[6] as number 1");
  const std::function<T<dyn>(T<dyn, dyn>)> axis = [](T<dyn, dyn> a) { return sum<2>(a); };
  CHECK(error([&] { (void)eager(axis)(m); }) == "sum: expected dimensions of f64[2,3], from 0 to 1 (or, from the last, -1 to -2), got 2");
}

TEST_CASE("notations are closed under differentiation", "[notation]") {
  const auto adjoint = [](const char* text, std::size_t i) {
    const ir::Call c = ir::adjoint(ir::notation(text), i);
    std::string s = c.text ? c.text : std::string(ir::info(c.code).name);
    for (const std::size_t o : c.order) s += o == ir::adjoint_of_result ? " g" : " " + std::to_string(o);
    return s;
  };
  CHECK(adjoint("ij,jk->ik", 0) == "ij+=ik,jk g 1");
  CHECK(adjoint("ij,jk->ik", 1) == "ij+=ki,kj 0 g");
  CHECK(adjoint("ij,j->i", 0) == "add_outer g 1");
  CHECK(adjoint("ij,j->i", 1) == "i+=ji,j 0 g");
  CHECK(adjoint("ij->ji", 0) == "transpose g");
  CHECK(adjoint("ij->j", 0) == "broadcast g 0");
  CHECK(adjoint("ij->", 0) == "broadcast g 0");
  CHECK(adjoint("ij->i", 0) == "i,=ij->ij g 0");
  CHECK(adjoint("[2i+k-1],k->i;i", 0) == "[2i+j-1]+=i,j g 1");
  CHECK(adjoint("[2i+k-1],k->i;i", 1) == "[2i+j-1],i,=j->j 0 g 1");
  CHECK(adjoint("ii->", 0) == "ii+= g");
}

namespace {

/// The product of matrices of sizes that are not known, and its gradient, against plain loops.
template <class E>
void check_products(double tolerance) {
  using Matrix = Rep<Tensor<E, dyn, dyn>>;
  const auto product = [](Matrix a, Matrix b) { return matmul(a, b); };
  // Of a blend every element has its own adjoint; both factors also come transposed.
  const auto blend = [](Matrix a, Matrix b) {
    const auto c = matmul(a, b) + transpose(matmul(transpose(b), transpose(a)));
    return sum(c * c);
  };
  const std::array<std::array<std::int64_t, 3>, 8> sizes{
      {{1, 1, 1}, {3, 2, 5}, {8, 16, 8}, {7, 9, 17}, {40, 40, 40}, {41, 67, 33}, {130, 5, 300}, {0, 3, 2}}};
  for (const Target target : {Target::c, Target::cpp}) {
    const auto value = compile(product, {.target = target});
    const auto gradient = compile(grad(blend), {.target = target});
    for (const auto& [m, k, n] : sizes) {
      INFO(m << " x " << k << " x " << n);
      std::vector<E> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n));
      for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = static_cast<E>(std::sin(1.1 * static_cast<double>(i)));
      for (std::size_t i = 0; i < b.size(); ++i)
        b[i] = static_cast<E>(std::cos(0.7 * static_cast<double>(i)));
      const auto at = [](std::int64_t i, std::int64_t j, std::int64_t columns) {
        return static_cast<std::size_t>(i * columns + j);
      };
      std::vector<double> c(static_cast<std::size_t>(m * n)), da(a.size()), db(b.size());
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t l = 0; l < k; ++l)
          for (std::int64_t j = 0; j < n; ++j)
            c[at(i, j, n)] += static_cast<double>(a[at(i, l, k)]) * static_cast<double>(b[at(l, j, n)]);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t l = 0; l < k; ++l)
          for (std::int64_t j = 0; j < n; ++j) {
            da[at(i, l, k)] += 8 * c[at(i, j, n)] * static_cast<double>(b[at(l, j, n)]);
            db[at(l, j, n)] += 8 * c[at(i, j, n)] * static_cast<double>(a[at(i, l, k)]);
          }
      const TensorView<const E> x(a.data(), {m, k}), y(b.data(), {k, n});
      const auto got = value(x, y);
      CHECK(got.shape == std::vector<std::int64_t>{m, n});
      double worst = 0;
      for (std::size_t i = 0; i < c.size(); ++i)
        worst = std::max(worst, std::abs(static_cast<double>(got.data[i]) - c[i]));
      const auto [gx, gy] = gradient(x, y);
      for (std::size_t i = 0; i < da.size(); ++i)
        worst = std::max(worst, std::abs(static_cast<double>(gx.data[i]) - da[i]) / 100);
      for (std::size_t i = 0; i < db.size(); ++i)
        worst = std::max(worst, std::abs(static_cast<double>(gy.data[i]) - db[i]) / 100);
      CHECK(worst < tolerance);
    }
  }
}

}  // namespace

TEST_CASE("matrix products of any size, each factor also transposed", "[notation]") {
  check_products<double>(1e-11);
  check_products<float>(3e-3);
}

TEST_CASE("every pass leaves a graph of tensor operations that the verifier accepts", "[notation]") {
  const char* text = R"(entry @f
fun @f(%a: f64[?,?], %b: f64[?,?], %v: f64[?]) -> f64[?,?], f64, f64[?] {
  %c = matmul %a, %b
  %w = broadcast %v, %c
  %d = add %c, %w
  %e = tanh %d
  %s = sum %e
  %t = transpose %a
  %h = add_einsum %b, %t, %e, "ij+=ik,kj"
  %r = reduce_to %h, %v
  %x = exp %r
  %y = mul %x, %v
  yield %h, %s, %y
}
)";
  for (const int opt : {0, 2})
    for (const int lanes : {0, 2, 4, 8})
      for (const int threads : {1, 2})
        for (const bool reassociate : {true, false}) {
          const auto m = ir::parse(text);
          ir::verify(*m);
          passes::PipelineOptions options;
          options.opt_level = opt;
          options.vector_lanes = lanes;
          options.threads = threads;
          options.reassociate = reassociate;
          options.verify_each = true;
          options.fused_multiply_add = true;
          CHECK_NOTHROW(passes::run_pipeline(*m, options));
          const std::string lowered = ir::print(*m);
          CHECK(ir::print(*ir::parse(lowered)) == lowered);
          CHECK(lowered.find("tanh") != std::string::npos);
        }
}
