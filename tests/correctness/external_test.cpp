// External functions: plain C functions called by programs over Reps, with rules of the user's.
#include <catch2/catch.hpp>
#include <cmath>
#include <lantern/lantern.hpp>
#include <tuple>
#include <vector>

#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/prototype.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

namespace {

int calls = 0;

double table(double x) {
  ++calls;
  return std::sin(x);
}
double table_slope(double x) { return std::cos(x); }
float halved(float x, int32_t times, bool negative) {
  for (; times > 0; --times) x /= 2;
  return negative ? -x : x;
}
/// The solution of a x = b in place of b, without pivots; the determinant.
double solve(int64_t n, const double* a, double* b) {
  std::vector<double> m(a, a + n * n);
  double determinant = 1;
  const auto at = [&](int64_t i, int64_t j) -> double& { return m[static_cast<std::size_t>(i * n + j)]; };
  for (int64_t k = 0; k < n; ++k) {
    determinant *= at(k, k);
    for (int64_t i = k + 1; i < n; ++i) {
      const double f = at(i, k) / at(k, k);
      for (int64_t j = k; j < n; ++j) at(i, j) -= f * at(k, j);
      b[i] -= f * b[k];
    }
  }
  for (int64_t i = n; i-- > 0;) {
    for (int64_t j = i + 1; j < n; ++j) b[i] -= at(i, j) * b[j];
    b[i] /= at(i, i);
  }
  return determinant;
}
void sort_flags(int64_t n, const bool* flags, int32_t* numbers, float* values) {
  for (int64_t i = 0; i < n; ++i)
    if (flags[i]) numbers[i] += 1, values[i] *= 2;
}
int64_t zero() { return 0; }
void half(const double* from, double* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] / 2 + 1;
}

const auto table_x = external("table", table);
const auto slope_x = external("table_slope", table_slope, {.threads = true});
const auto half_x = external("half", half, {.threads = true});
const auto halved_x = external("halved", halved);
const auto solve_x = external<int64_t, Tensor<double, dyn, dyn>, Array<double>>("solve", solve);
const auto flags_x = external("sort_flags", sort_flags);

D sloped(D x);
D looked_up(D x) {
  return custom_jvp(table_x, [](D y, D dy) { return std::tuple(looked_up(y), sloped(y) * dy); })(x);
}
D sloped(D x) {
  return custom_jvp(slope_x, [](D y, D dy) { return std::tuple(sloped(y), -1.0 * looked_up(y) * dy); })(x);
}
A solved(M a, A b) { return std::get<1>(solve_x(a.dim(0), a, b)); }
A linear(M a, A b) {
  return custom_vjp(
      solved, [](M m, A r) { return std::tuple(solved(m, r), m, solved(m, r)); },
      [](M m, A x, A g) {
        A w = solved(transpose(m), g);
        return std::tuple(-1.0 * outer(w, x), w);
      })(a, b);
}
D energy(M a, A b) {
  A x = linear(a, b);
  return dot(x, x) + FOR(0, b.size(), D(0.0), [&](I i, D s) { return s + looked_up(b[i]) * x[i]; });
}
D curve(D x) { return looked_up(x * x) * x; }

const std::vector<double> matrix{4, 1, 0.5, 1, 3, 0.2, 0.1, 0.7, 5}, right{1, 2, 3};
TensorView<const double> view() { return TensorView<const double>(matrix.data(), {3, 3}); }

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<CompileOptions> all_ways() {
  std::vector<CompileOptions> ways;
  for (const Target target : {Target::c, Target::cpp, Target::automatic})
    for (const int opt : {0, 2, 3}) ways.push_back({.target = target, .opt = opt});
  ways.push_back({.target = Target::cpp, .threads = 2});
  ways.push_back({.target = Target::cpp, .bounds_checks = false});
  ways.push_back({.target = Target::cpp, .debug = true});
  return ways;
}

}  // namespace

TEST_CASE("external functions: values and derivatives, eager and compiled") {
  const auto [y, g] = eager(value_and_grad(energy))(view(), right);
  const auto [ga, gb] = g;
  const double second = eager(grad(grad(curve)))(0.7);
  const double u = 0.49;
  CHECK(eager(curve)(0.7) == Approx(0.7 * std::sin(u)));
  CHECK(eager(grad(curve))(0.7) == Approx(std::sin(u) + 2 * u * std::cos(u)));
  CHECK(second == Approx(6 * 0.7 * std::cos(u) - 4 * std::pow(0.7, 3) * std::sin(u)));
  CHECK(eager(grad<mode::forward>(curve))(0.7) == Approx(std::sin(u) + 2 * u * std::cos(u)));
  for (const CompileOptions& way : all_ways()) {
    CAPTURE(static_cast<int>(way.target), way.opt, way.threads);
    const auto f = compile(value_and_grad(energy), way);
    for (int again = 0; again < 2; ++again) {
      const auto [y2, g2] = f(view(), right);
      const auto& [ga2, gb2] = g2;
      CHECK(y2 == Approx(y));
      for (std::size_t i = 0; i < 9; ++i) CHECK(ga2.data[i] == Approx(ga.data[i]));
      for (std::size_t i = 0; i < 3; ++i) CHECK(gb2[i] == Approx(gb[i]));
      if (again == 0 && way.target == Target::automatic) f.wait();
    }
    CHECK(compile(grad(grad(curve)), way)(0.7) == Approx(second));
  }
}

TEST_CASE("external functions: every kind of number, changed arrays, several results") {
  const auto all = [](Rep<float> x, Rep<int32_t> n, Rep<bool> minus, Rep<Array<bool>> flags,
                      Rep<Array<int32_t>> numbers, Rep<Array<float>> values) {
    const auto [changed, doubled] = flags_x(flags.size(), flags, numbers, values);
    // The arguments are what they were.
    return std::tuple(halved_x(x, n, minus), changed, doubled, numbers[0], values[1]);
  };
  const bool flags[] = {true, false, true};
  const std::vector<int32_t> numbers{10, 20, 30};
  const std::vector<float> values{1.5F, 2.5F, 3.5F};
  const auto check = [&](const auto& f) {
    const auto [half, changed, doubled, first, second] = f(8.0F, 2, true, flags, numbers, values);
    CHECK(half == -2.0F);
    CHECK(changed == std::vector<int32_t>{11, 20, 31});
    CHECK(doubled == std::vector<float>{3.0F, 2.5F, 7.0F});
    CHECK(first == 10);
    CHECK(second == 2.5F);
  };
  check(eager(all));
  for (const CompileOptions& way : all_ways()) check(compile(all, way));
  const auto determinant = [](M a, A b) { return std::get<0>(solve_x(a.dim(0), a, b)); };
  CHECK(compile(determinant)(view(), right) == Approx(eager(determinant)(view(), right)));
  const auto f = compile([](D x) { return x * cast<double>(external("zero", zero)() + 1); });
  CHECK(f(2.0) == 2.0);
}

TEST_CASE("external functions: a call whose result nobody needs is left out, a loop calls each iteration") {
  const auto unused =
      compile(sig<double(double)>([](D x) { return table_x(x) * 0.0 + select(D(1.0) > 0.0, x, table_x(x)); }),
              {.target = Target::c});
  (void)unused;
  const auto dropped = compile(sig<double(double)>([](D x) {
                                 D y = table_x(x);
                                 (void)y;
                                 return x;
                               }),
                               {.target = Target::c});
  calls = 0;
  CHECK(dropped(3.0) == 3.0);
  CHECK(calls == 0);
  const auto sum = compile(sig<double(Array<double>)>([](A x) {
                             return FOR(0, x.size(), D(0.0), [&](I i, D s) { return s + table_x(x[i]); });
                           }),
                           {.target = Target::cpp, .threads = 2});
  const std::vector<double> x(1000, 0.25);
  CHECK(sum(x) == Approx(1000 * std::sin(0.25)));
  CHECK(calls == 1000);
  const auto guarded = compile(sig<double(double)>(
      [](D y) { return IF(y > 0.0, [&] { return table_x(y); }, [&] { return D(0.0); }); }));
  guarded.wait();
  calls = 0;
  CHECK(guarded(-1.0) == 0);
  CHECK(calls == 0);
  CHECK(guarded(1.0) == Approx(std::sin(1.0)));
  CHECK(calls == 1);
}

TEST_CASE("external functions: what one changes is not the memory of its first argument, threads or not") {
  const auto halved = [](A a, I n) {
    return FOR(0, n, a, [&](I, A s) { return A(half_x(s, fill(D(0.0), s.size()), s.size())); });
  };
  for (const CompileOptions& way : all_ways())
    CHECK(compile(sig<Array<double>(Array<double>, int64_t)>(halved), way)(std::vector<double>{1, 5, 9}, 3) ==
          std::vector<double>{1.875, 2.375, 2.875});
}

TEST_CASE("external functions: what is made for a call is changed in place, what is read later is copied") {
  const auto zeros = [](const A& x) { return fill(0.0, x.size()); };
  const auto repeated = [&](A x, I times) { return FOR(0, times, x, [&](I, A u) { return half_x(u, zeros(u), u.size()); }); };
  // One tensor of zeros for three calls, that is read in the end; x and what is made of it are read later, too.
  const auto shared = [&](A x) {
    const A z = zeros(x), a = half_x(x, z, x.size()), b = half_x(a, z, x.size());
    const A c = half_x(b, a, x.size());
    return std::tuple(A(a + b), A(half_x(c, x, x.size()) + x), z, c);
  };
  const std::vector<double> x{3, -1, 8, 0.5};
  const auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]));
  };
  const auto [p, q, r, s] = eager(shared)(x);
  CHECK(r == std::vector<double>(4, 0.0));
  for (const CompileOptions& way : all_ways()) {
    CAPTURE(static_cast<int>(way.target), way.opt, way.threads);
    const auto f = compile(shared, way);
    const auto g = compile(repeated, way);
    for (int again = 0; again < 2; ++again) {
      const auto [p2, q2, r2, s2] = f(x);
      same(p2, p), same(q2, q), same(r2, r), same(s2, s);
      same(g(x, 5), eager(repeated)(x, 5));
    }
  }
  CHECK_FALSE(has(compile(repeated, {.target = Target::c}).source("c"), "lt_copy_"));
  CHECK(has(compile(shared, {.target = Target::c}).source("c"), "lt_copy_"));
}

TEST_CASE("external functions: vmap, checkpoints, bounded loops") {
  const auto batch = vmap(grad(curve));
  const std::vector<double> xs{0.1, 0.2, 0.3, 0.4, 0.5};
  const auto compiled = compile(batch, {.target = Target::cpp})(xs);
  const auto eagerly = eager(batch)(xs);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    CHECK(compiled[i] == Approx(eagerly[i]));
    CHECK(compiled[i] == Approx(eager(grad(curve))(xs[i])));
  }
  const auto steps = [](D x, I n) {
    return FOR(0, n, x, [](I, D y) { return looked_up(y) + 0.5 * y; }, {.checkpoints = 3});
  };
  const auto parts = [](D x, I n) {
    return checkpoint(sig<double(double, int64_t)>(
        [](D y, I m) { return FOR(0, m, y, [](I, D z) { return looked_up(z) + 0.5 * z; }); }))(x, n);
  };
  const double expected = eager(grad(steps))(0.3, 20);
  CHECK(compile(grad(steps))(0.3, 20) == Approx(expected));
  CHECK(compile(grad(parts))(0.3, 20) == Approx(expected));
  CHECK(eager(grad<mode::taped>(steps))(0.3, 20) == Approx(expected));
}

TEST_CASE("external functions: errors say what to do") {
  const auto bare = [](D x) { return table_x(x) + 1.0; };
  CHECK(compile(bare)(0.5) == Approx(std::sin(0.5) + 1));
  for (const auto& differentiate : std::vector<std::function<void()>>{
           [&] { eager(grad(bare))(0.5); }, [&] { compile(grad(bare)); }, [&] { eager(jvp(bare))(0.5, 1.0); },
           [&] { compile(jvp(bare)); }, [&] { compile(hvp(bare)); },
           [&] { eager(grad<mode::taped>(bare))(0.5); }}) {
    const std::string text = message(differentiate);
    CAPTURE(text);
    CHECK(has(text, "external function 'table' is differentiated"));
    CHECK(has(text, "custom_vjp"));
    CHECK(has(text, "external_test.cpp:"));
  }
  const auto stopped = [](D x) { return table_x(stop_gradient(x)) * x; };
  CHECK(eager(grad(stopped))(0.5) == Approx(std::sin(0.5)));
  CHECK(compile(grad(stopped))(0.5) == Approx(std::sin(0.5)));
  CHECK(has(message([] { external("table", table_slope); }), "is the name of another function"));
  CHECK(has(message([] { external("not a name", table); }),
            "expected the name of a C function, got 'not a name'"));
  CHECK(has(message([] { external("lt_table", table); }), "belong to generated code"));
  CHECK(has(message([] { compile([](D x) { return table_x(x); }, {.target = Target::cuda}); }), "GPU"));
  // Of integers nothing is differentiated.
  const auto counted = [](D x) { return x * cast<double>(external("zero", zero)() + 2); };
  CHECK(compile(grad(counted))(1.0) == 2.0);
}

TEST_CASE("external functions: printed, read again, verified") {
  ir::Module module;
  const std::string text =
      "entry @f\nfun @f(%x: f64, %a: f64[?]) -> f64, f64[?] {\n"
      "  %1, %2 = external[threads] %x, %a, \"double g(double, double *)\" : f64, f64[?]\n"
      "  %3 = external \"int64_t zero(void)\" : i64\n  yield %1, %2\n}\n";
  const auto parsed = ir::parse(text);
  ir::verify(*parsed);
  CHECK(ir::print(*ir::parse(ir::print(*parsed))) == ir::print(*parsed));
  CHECK(ir::external_functions(*parsed).size() == 2);
  for (const char* wrong : {"double g(double)", "double g(double, const double *)",
                            "double g(float, double *)", "float g(double, double *)", "nothing"}) {
    CAPTURE(wrong);
    std::string other = text;
    other.replace(other.find("double g(double, double *)"), 26, wrong);
    CHECK_THROWS_AS(ir::verify(*ir::parse(other)), InternalError);
  }
  for (const char* good : {"void f(void)", "bool f(const bool *, int32_t *, float, int64_t)", "double f()"})
    CHECK(ir::parse_prototype(ir::parse_prototype(good).text()).text() == ir::parse_prototype(good).text());
  for (const char* bad : {"", "double", "double f", "double f(", "double f(int)", "double f(const double)",
                          "double f(double) x", "double 1f(double)", "double f(double,)",
                          "double lantern_f(double)", "char f(void)"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(ir::parse_prototype(bad), Error);
  }
  const std::string c = compile(grad(curve)).source("c"), cpp = compile(grad(curve)).source("cpp");
  CHECK(has(c, "extern double table_slope(double);"));
  CHECK(has(cpp, "extern \"C\" double table_slope(double);"));
}

TEST_CASE("check_derivative compares rules with differences") {
  CHECK(check_derivative(curve)(0.7) < 1e-7);
  CHECK(check_derivative(energy)(view(), right) < 1e-6);
  CHECK(check_derivative(looked_up)(0.0) < 1e-7);
  const auto wrong = [](D x, D y) {
    return custom_jvp(sig<double(double, double)>([](D a, D b) { return table_x(a) * b; }),
                      [](D a, D b, D da, D db) {
                        return std::tuple(looked_up(a) * b, 1.01 * sloped(a) * b * da + looked_up(a) * db);
                      })(x, y);
  };
  const std::string text = message([&] { check_derivative(wrong)(0.5, 2.0); });
  CHECK(has(text, "by argument 1: forward mode gives"));
  CHECK(has(text, "external_test.cpp:"));
  const auto backward = [](A x) {
    return custom_vjp(
        sig<double(Array<double>)>([](A a) { return dot(a, a); }),
        [](A a) { return std::tuple(dot(a, a), a); },
        [](A a, D g) { return g * 2.0 * a.set(2, a[2] + 0.1); })(x);
  };
  CHECK(has(message([&] { check_derivative(backward)(right); }), "by argument 1, element 2"));
  CHECK(has(message([] { check_derivative(sig<int64_t(int64_t)>([](I n) { return n; }))(3); }),
            "no floating argument"));
  CHECK(check_derivative(sig<float(float)>([](Rep<float> x) { return exp(x) * x; }))(0.5F) < 1e-2);
  // A kink beside the point, many numbers, a number that is zero.
  CHECK(check_derivative(sig<double(double)>([](D x) { return max(x, 0.0) * x; }))(1e-4) < 1e-5);
  const std::vector<double> many(1000, 0.5);
  CHECK(check_derivative(sig<double(Array<double>)>([](A x) { return sum(x * x * x); }),
                         {.elements = 10})(many) < 1e-6);
}

TEST_CASE("eager evaluation checks what an external function gives") {
  const auto spoiled = external("spoiled_elements", +[](double* a) { a[0] = std::nan(""); });
  const auto program = [&](Rep<Array<double>> a) { return spoiled(a); };
  const std::vector<double> x = {1, 2};
  CHECK_THROWS_WITH(eager(program, Check::nan)(x), Catch::Contains("external"));
}
