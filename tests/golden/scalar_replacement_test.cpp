// scalar_replacement: which tensors become numbers, which stay in memory, and that nothing changes.
#include "lantern/compiler/passes/canonical/scalar_replacement.hpp"

#include <catch2/catch.hpp>

#include "../correctness/agree.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using Num = Rep<double>;
using Int = Rep<std::int64_t>;
using Vec = Rep<Array<double>>;
using M2 = Rep<Tensor<double, 2, 2>>;
using V2 = Rep<Tensor<double, 2>>;

std::string after(const std::string& text) {
  const auto module = ir::parse(text);
  ir::verify(*module);
  passes::scalar_replacement(*module);
  ir::verify(*module);
  return ir::print(*module);
}

/// The code that a program's gradient becomes, as IR.
template <class F>
std::string compiled(F f, std::vector<std::string> disabled = {}) {
  return compile(grad(f), {.target = Target::c, .disabled_passes = std::move(disabled)}).source("ir");
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

M2 matrix(const Num& a, const Num& b, const Num& c, const Num& d) {
  return M2(zeros<double>({2, 2})).set(0, 0, a).set(0, 1, b).set(1, 0, c).set(1, 1, d);
}

/// The product of a matrix for each element.
Num chain(Vec q) {
  const M2 all = FOR(0, q.size(), matrix(1.0, 0.0, 0.0, 1.0), [&](Int i, M2 t) {
    const Num c = cos(q[i]), s = sin(q[i]);
    return M2(matmul(t, matrix(c, -s, s, 1.5 * c)));
  });
  return all(0, 1) + 2.0 * all(1, 1);
}

}  // namespace

TEST_CASE("scalar_replacement: elements, products and arguments become numbers", "[passes]") {
  CHECK(after(R"(entry @f

fun @f(%a: f64[2,2], %x: f64) -> f64[2] {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %b = set %a, %zero, %one, %x : f64[2,2]
  %v = take %b, %zero : f64[2]
  %w = matvec %a, %v : f64[2]
  yield %w
}
)") == R"(entry @f

fun @f(%a: f64[2,2], %x: f64) -> f64[2] {
  %1 = constant 0 : i64
  %2 = constant 0 : i64
  %b = get %a, %1, %2 : f64
  %3 = constant 0 : i64
  %4 = constant 1 : i64
  %5 = get %a, %3, %4 : f64
  %6 = constant 1 : i64
  %7 = constant 0 : i64
  %b.2 = get %a, %6, %7 : f64
  %8 = constant 1 : i64
  %9 = constant 1 : i64
  %b.3 = get %a, %8, %9 : f64
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %10 = mul %b, %b : f64
  %11 = mul %5, %x : f64
  %w = add %10, %11 : f64
  %12 = mul %b.2, %b : f64
  %13 = mul %b.3, %x : f64
  %w.2 = add %12, %13 : f64
  %14 = undef : f64
  %15 = constant 2 : i64
  %16 = fill %14, %15 : f64[2]
  %17 = constant 0 : i64
  %18 = set %16, %17, %w : f64[2]
  %19 = constant 1 : i64
  %20 = set %18, %19, %w.2 : f64[2]
  yield %20
}
)");
}

TEST_CASE("scalar_replacement: what is accessed by an index that is not known stays in memory", "[passes]") {
  const auto program = [](const std::string& body) {
    return "entry @f\n\nfun @f(%a: f64[2,2], %i: i64) -> f64 {\n  %one = constant 1 : i64\n  %two = constant "
           "2 "
           ": i64\n" +
           body + "  yield %y\n}\n";
  };
  const auto unchanged = [&](const std::string& body) { return after(program(body)) == program(body); };
  CHECK(unchanged("  %y = get %a, %one, %i : f64\n"));
  CHECK(unchanged("  %y = get %a, %one, %two : f64\n"));  // raises
  CHECK(unchanged("  %r = take %a, %i : f64[2]\n  %y = get %r, %i : f64\n"));
  // so do those that may be the same
  const std::string loop = R"(  %d, %e = loop %a, %i : f64[2,2], i64 while (%c: f64[2,2], %m: i64) {
    %g = lt %one, %m : bool
    yield %g
  } do (%h: f64[2,2], %k: i64) {
    %o = mul %h, %h : f64[2,2]
    %n = sub %k, %one : i64
    yield %o, %n
  }
)";
  CHECK(unchanged(loop + "  %y = get %d, %one, %i : f64\n"));
  const std::string numbers = after(program(loop + "  %y = get %d, %one, %one : f64\n"));
  CHECK(!has(numbers, "loop %a"));
  CHECK(has(numbers, ": f64, f64, f64, f64, i64 while"));
}

TEST_CASE("scalar_replacement: a gradient through small matrices keeps and multiplies numbers", "[passes]") {
  CHECK(!has(compiled(chain), "f64[2,2]"));
  CHECK(has(compiled(chain, {"scalar_replacement"}), "f64[2,2]"));
  for (const std::size_t n : {0, 1, 2, 5}) {
    std::vector<double> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = 0.3 + 0.2 * static_cast<double>(i);
    check_all("chain", chain, x);
  }
}

TEST_CASE("scalar_replacement: every operation on small tensors", "[passes]") {
  const auto operations = [](Vec x) {
    const M2 a = matrix(x[0], x[1], x[2], x[3]), b = exp(0.1 * a) * a - a / (2.0 + a * a);
    const V2 v = a.row(1), w = matmul(b, v), u = matmul(v, transpose(b));
    const M2 c = M2(outer(u, w)) + M2(matmul(a, b)) + Rep<Tensor<double>>(u);
    const auto d = c.set(0, 1, sum(b));
    return dot(w, u) + sum(d * d) + sum(select(x[0] < 10.0, a, b)) + d(0, 0) * cast<double>(d.dim(0));
  };
  check_all("operations", operations, {0.4, -0.7, 0.9, 1.3});
  CHECK(!has(compiled(operations), "f64[2"));
}

TEST_CASE("scalar_replacement: branches, functions and loops of unknown length", "[passes]") {
  const auto branches = [](Vec x) {
    const M2 a = matrix(x[0], x[1], x[2], x[3]);
    const auto [last, count] = WHILE(
        std::tuple(a, Num(0.0)), [](M2 m, Num n) { return AND(n < 6.0, [&] { return sum(m * m) < 50.0; }); },
        [&](M2 m, Num n) {
          return std::tuple(IF(
                                m(0, 0) > 0.5, [&] { return M2(matmul(m, a)); }, [&] { return 1.2 * m + a; }),
                            n + 1.0);
        });
    return sum(last) + count * last(1, 0);
  };
  check_all("branches", branches, {0.4, 0.7, 0.2, 0.6});
  const auto recursion = [](Vec x) {
    const auto power =
        FUN<Tensor<double, 2, 2>(Tensor<double, 2, 2>, std::int64_t)>("power", [](auto self, M2 a, Int n) {
          return IF(
              n == 0, [&] { return matrix(1.0, 0.0, 0.0, 1.0); },
              [&] { return M2(matmul(a, self(a, n - 1))); });
        });
    return sum(power(matrix(x[0], x[1], x[2], x[3]), 3));
  };
  check_all("recursion", recursion, {0.4, 0.7, 0.2, 0.6});
  CHECK(!has(compiled(recursion), "f64[2,2]"));
}

TEST_CASE("scalar_replacement: beside arrays, and by indices of loops", "[passes]") {
  const auto rows = [](Vec x) {
    const V2 v = V2(as_tensor(x.slice(0, 2)));
    const M2 a = FOR(0, 2, matrix(x[0], 0.0, 0.0, x[1]),
                     [&](Int i, M2 m) { return m.set(i, 1 - i, m(i, i) * x[i + 2]); });
    const V2 w = matmul(matrix(x[2], x[3], 0.5, x[0]), v);
    return sum(w * v) + sum(a * a) + w(0) * a(0, 1);
  };
  check_all("rows", rows, {0.4, 0.7, 0.2, 0.6});
}
