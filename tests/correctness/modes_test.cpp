// The AD modes of the papers, eagerly: each against each, over programs with loops, branches, recursion,
// trees and tensors; nested in every pair; and what each is for: memory, Hessians, higher orders.
#include <cmath>
#include <optional>

#include "agree.hpp"
#include "lantern/compiler/ad/modes/explicit_cps.hpp"
#include "random_source.hpp"
#include "ways.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<std::int64_t>;

const std::vector<Way>& ways() {
  static const std::vector<Way> all = eager_ways();
  return all;
}

struct Program {
  const char* name;
  Function f;
};

const std::vector<Program>& programs() {
  static const std::vector<Program> all{
      {"2 x + x x x", [](D x) { return 2.0 * x + x * x * x; }},
      {"functions of one argument",
       [](D x) {
         return sin(x) * exp(0.5 * x) + log(1.0 + x * x) + sqrt(x + 3.0) + tanh(x) / (2.0 + cos(x)) +
                atan(x) - pow(x + 2.0, 1.5) + erf(x) + abs(x - 7.0);
       }},
      {"functions of two and three",
       [](D x) {
         return max(x, 0.3 * x) + min(x * x, x + 10.0) + atan2(x, x + 1.0) + pow(x + 1.0, x) + fma(x, x, x);
       }},
      {"a value used twice, one not at all, one that is constant",
       [](D x) {
         const D unused = x * x * x;
         const D constant = sin(D(2.0)) * 3.0;
         const D y = x * x;
         return y * y + constant;
       }},
      {"independent of x", [](D) { return D(2.0) * 3.0; }},
      {"x itself", [](D x) { return x; }},
      {"branches",
       [](D x) {
         const D y = IF(
             x > 1.0, [&] { return x * x; }, [&] { return 3.0 * x; });
         return IF(
             y > 100.0, [&] { return y; }, [&] { return y * x; });
       }},
      {"a loop",
       [](D x) {
         return WHILE(
             x, [](D t) { return t < 20.0; }, [&](D t) { return t * (1.0 + x * x) + 0.1; });
       }},
      {"a loop over a pair and a variable",
       [](D x) {
         Var<double> v = x;
         const auto [a, b] = FOR(0, 5, std::tuple(x, D(1.0)), [&](I i, D s, D t) {
           IF(i % 2 == 0, [&] { v = v * 0.5 + s; });
           return std::tuple(s + 0.1 * t, t * x);
         });
         return a * b + v;
       }},
      {"recursion",
       [](D x) {
         const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, D b, I n) {
           return IF(
               n == 0, [&] { return D(1.0); }, [&] { return b * self(b, n - 1); });
         });
         return power(x, 5) + power(x * x, 3);
       }},
      {"an array in the middle",
       [](D x) {
         A a = fill(x, 3);
         a = a.set(1, x * x);
         const A b = a * a + a;
         return FOR(0, b.size(), D(0.0), [&](I i, D s) { return s * 0.5 + b[i]; }) + sum(b) * dot(a, b);
       }},
  };
  return all;
}

double eager_at(const Function& f, double x) { return eager(f)(x); }
double differences(const Function& f, double x) {
  const auto slope = [&](double h) { return (eager_at(f, x + h) - eager_at(f, x - h)) / (2 * h); };
  return (4 * slope(5e-4) - slope(1e-3)) / 3;
}

}  // namespace

TEST_CASE("every mode differentiates every program", "[modes]") {
  for (const Program& p : programs())
    for (double x : {0.7, 1.6}) {
      const double expected = differences(p.f, x);
      for (const Way& w : ways()) {
        INFO(w.name << " of " << p.name << " at " << x);
        CHECK(eager_at(w.grad(p.f), x) == Approx(expected).epsilon(1e-7).margin(1e-9));
      }
    }
}

TEST_CASE("evaluation and second derivatives by handlers", "[modes]") {
  for (const Program& p : programs())
    for (double x : {0.7, 1.6}) {
      INFO(p.name << " at " << x);
      const ad::Program program{"f", [f = p.f](const Datums& in) { return Datums{f(D(in[0])).datum()}; }};
      const Datum at = Datum::number(x, ir::F64);
      CHECK(ad::evaluate_by_handler(program, {at})[0].f() == eager_at(p.f, x));
      const auto second = [&] {
        return ad::second_derivative(program, {at}, {true}, {Datum::number(1.0, ir::F64)}, {});
      };
      if (std::string(p.name) == "an array in the middle") {
        CHECK_THROWS_WITH(second(),
                          Catch::Contains("second_derivative: expected operations on scalars, got"));
        continue;
      }
      const auto expected = eager(taylor<2>(p.f))(x, 1.0);
      for (std::size_t k = 0; k < 3; ++k)
        CHECK(second()[k][0].f() == Approx(expected[k]).epsilon(1e-12).margin(1e-12));
    }
}

TEST_CASE("every ordered pair of modes gives the second derivative", "[modes]") {
  for (const Program& p : programs()) {
    const double expected = eager_at(grad(grad(p.f)), 0.7);
    for (const Way& outer : ways())
      for (const Way& inner : ways()) {
        INFO(outer.name << " of " << inner.name << " of " << p.name);
        CHECK(eager_at(outer.grad(inner.grad(p.f)), 0.7) == Approx(expected).epsilon(1e-9).margin(1e-12));
      }
  }
}

TEST_CASE("triples of modes", "[modes]") {
  const Function f = programs()[1].f;
  const double expected = eager_at(grad(grad(grad(f))), 0.7);
  for (const Way& a : ways())
    for (const Way& b : ways())
      for (const Way& c : ways()) {
        INFO(a.name << " of " << b.name << " of " << c.name);
        CHECK(eager_at(a.grad(b.grad(c.grad(f))), 0.7) == Approx(expected).epsilon(1e-9));
      }
}

TEST_CASE("perturbations are not confused, in any pair of modes", "[modes]") {
  for (const Way& outer : ways())
    for (const Way& inner : ways()) {
      INFO(outer.name << " over " << inner.name);
      const auto nested = [&](auto body, double y) {
        return outer.grad(
            [&inner, body, y](D x) { return x * inner.grad([x, body](D t) { return D(body(x, t)); })(y); });
      };
      // Lantern paper, 2.4: 1, not 2.
      CHECK(eager_at(nested([](D x, D y) { return x + y; }, 1.0), 3.0) == Approx(1.0));
      CHECK(eager_at(nested([](D x, D y) { return x * y; }, 2.0), 3.0) == Approx(6.0));
      CHECK(eager_at(nested([](D x, D y) { return x * x * y * y * y; }, 2.0), 3.0) == Approx(3 * 9.0 * 12.0));
      // The inner derivative at the outer variable itself; functions that ignore one of them.
      const auto at_x = outer.grad([&inner](D x) { return inner.grad([x](D y) { return x * y * y; })(x); });
      CHECK(eager_at(at_x, 3.0) == Approx(12.0));
      const auto no_y = outer.grad([&inner](D x) { return x + inner.grad([x](D) { return x * x; })(x); });
      CHECK(eager_at(no_y, 3.0) == Approx(1.0));
      const auto no_x = outer.grad([&inner](D x) { return x + inner.grad([](D y) { return y * y; })(2.0); });
      CHECK(eager_at(no_x, 3.0) == Approx(1.0));
      // Thesis, 4.5: three levels are as two.
      const auto three = outer.grad([&](D x) {
        return x * inner.grad(
                       [&, x](D y) { return y * outer.grad([x, y](D z) { return z * (y + x); })(1.0); })(1.0);
      });
      CHECK(eager_at(three, 1.0) == Approx(4.0));  // x (2 y + x) at y = 1: 2 + 2 x
    }
}

TEST_CASE("several arguments, structs and arrays", "[modes]") {
  const std::function<D(D, I, A)> f = [](D x, I n, A a) {
    return FOR(0, n, x, [&](I i, D s) { return s * a[i] + x; }) + sum(a * a * x);
  };
  const std::vector<double> at{0.5, -1.5, 2.0};
  const auto expected = eager(grad(f))(1.2, 3, at);
  const auto test = [&](const char* name, const auto& g) {
    INFO(name);
    const auto [dx, da] = eager(g)(1.2, 3, at);
    CHECK(dx == Approx(std::get<0>(expected)));
    REQUIRE(da.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(da[i] == Approx(std::get<1>(expected)[i]));
  };
  test("cps", grad<mode::cps>(f));
  test("global tape", grad<mode::global_tape>(f));
  test("functional", grad<mode::functional>(f));
  test("continuation", grad<mode::continuation>(f));
  test("taped", grad<mode::taped>(f));
  test("checkpointed", grad<mode::checkpointed>(f));
  test("forward", grad<mode::forward>(f));
  CHECK(eager(grad<0, mode::taped>(f))(1.2, 3, at) == Approx(std::get<0>(expected)));
  const auto [y, dx] = eager(value_and_grad<0, mode::functional>(f))(1.2, 3, at);
  CHECK(y == Approx(eager(f)(1.2, 3, at)));
  CHECK(dx == Approx(std::get<0>(expected)));
}

TEST_CASE("hundreds of thousands of operations", "[modes]") {
  const Function f = [](D x) { return FOR(0, 100'000, x, [&](I, D t) { return t * 0.999999 + 0.5 * x; }); };
  const double expected = eager_at(grad<mode::forward>(f), 1.0);
  for (const Way& w : ways()) {
    INFO(w.name);
    if (std::string(w.name) == "divide and conquer") continue;  // quadratic
    CHECK(eager_at(w.grad(f), 1.0) == Approx(expected));
  }
}

TEST_CASE("derivatives of functions whose names differ by a digit are told apart", "[modes]") {
  // g with the arguments t and x, both active, and g1 with one argument, active: "g" + "11" and "g1" + "1".
  const Function f = [](D x) {
    const auto g = FUN<double(double)>("g", [x](auto self, D t) {
      return IF(
          t < 3.0, [&] { return x * self(t + 1.0); }, [&] { return t * 0.5; });
    });
    const auto g1 = FUN<double(double)>("g1", [](auto self, D t) {
      return IF(
          t < 1.0, [&] { return self(t + 1.0) + t * t; }, [&] { return t; });
    });
    return g(x * x) + g1(x * x);
  };
  const double expected = differences(f, 0.5);
  for (const int opt : {0, 3}) {
    CHECK(compile(grad(f), {.target = Target::c, .opt = opt})(0.5) == Approx(expected).epsilon(1e-8));
    CHECK(compile(grad<mode::forward>(f), {.target = Target::c, .opt = opt})(0.5) ==
          Approx(expected).epsilon(1e-8));
  }
}

// ---- Fig. 7, by hand ----

TEST_CASE("a program in continuation-passing style", "[modes]") {
  using cps::K, cps::Number;
  const auto f = [](const Number& x) {
    return [=](const K& k) {
      (2.0 * x)([=](const Number& y1) {
        (x * x)([=](const Number& y2) { (y2 * x)([=](const Number& y3) { (y1 + y3)(k); }); });
      });
    };
  };
  const Function df = [f](D x) { return cps::grad(f, x); };
  for (double x : {-1.0, 0.0, 3.0}) {
    CHECK(eager(df)(x) == 2 + 3 * x * x);
    CHECK(compile(df, {.target = Target::c, .opt = 0})(x) == 2 + 3 * x * x);
    CHECK(compile(df, {.target = Target::c, .opt = 3})(x) == 2 + 3 * x * x);
    CHECK(eager(grad(df))(x) == 6 * x);
  }
}

// ---- checkpoints ----

namespace {

/// Counts the runs of f.
Function counted(const Function& f, int& runs) {
  return [f, &runs](D x) {
    ++runs;
    return f(x);
  };
}

}  // namespace

TEST_CASE("a checkpointed function is run twice where it is not recorded", "[modes]") {
  int runs = 0;
  const Function part = counted([](D x) { return sin(x) * x; }, runs);
  const Function f = [&](D x) { return checkpoint(part)(x * x) * x; };
  const double slope = differences([](D x) { return sin(x * x) * x * x * x; }, 1.3);
  for (const Way& w : ways()) {
    INFO(w.name);
    runs = 0;
    CHECK(eager_at(w.grad(f), 1.3) == Approx(slope).epsilon(1e-7));
    const std::string name = w.name;
    const bool again = name == "checkpointed" || name == "reverse" || name == "divide and conquer" ||
                       name == "continuation";  // factored, it is reverse
    CHECK(runs == (again ? 2 : 1));
  }
  runs = 0;
  CHECK(eager_at(f, 1.3) == Approx(std::sin(1.69) * 1.69 * 1.3));
  CHECK(runs == 1);
  // While staging it is a call.
  CHECK(compile(grad(f), {.target = Target::c, .opt = 3})(1.3) == Approx(slope).epsilon(1e-7));
}

TEST_CASE("nested checkpoints", "[modes]") {
  // Thesis, 5.2: z = checkpoint {x + y}; a = checkpoint {w = checkpoint {x * z}; w + y}; a + x, with y = 2.
  const Function f = [](D x) {
    const D y = 2.0;
    const D z = checkpoint(sig<double(double, double)>([](D a, D b) { return a + b; }))(x, y);
    const D a = checkpoint(sig<double(double, double, double)>([](D u, D v, D c) {
      const D w = checkpoint(sig<double(double, double)>([](D p, D q) { return p * q; }))(u, v);
      return w + c;
    }))(x, z, y);
    return a + x;
  };
  CHECK(eager_at(f, 2.0) == 12.0);
  CHECK(eager_at(grad<mode::checkpointed>(f), 2.0) == 7.0);  // x (x + 2) + 2 + x
  // A part at depth d is run once for each of the d parts around it, and once more for itself: d + 1 times,
  // if it is the only one in each.
  for (int depth = 1; depth <= 5; ++depth) {
    int runs = 0;
    Function g = counted([](D x) { return x * x * 0.5; }, runs);
    for (int i = 0; i < depth; ++i) g = [inner = g](D x) { return checkpoint(inner)(x) + x; };
    const double expected = eager_at(grad(g), 1.1);
    runs = 0;
    CHECK(eager_at(grad<mode::checkpointed>(g), 1.1) == Approx(expected));
    CHECK(runs == depth + 1);
  }
}

TEST_CASE("a checkpointed function of several arguments and results, with captures", "[modes]") {
  const Function f = [](D x) {
    const D scale = x * x;  // captured, active
    const auto part = sig<std::tuple<double, double, std::int64_t>(double, double, std::int64_t)>(
        [scale](D a, D b, I n) { return std::tuple(a * b * scale, sin(a) + b, n + 1); });
    const auto [p, q, n] = checkpoint(part)(x, 2.0 * x, I(3));
    const auto [r, s, m] = checkpoint(part)(p, 0.5 * q, n);
    return r * s + p * cast<double>(m);
  };
  const double expected = eager_at(grad(f), 0.8);
  CHECK(expected == Approx(differences(f, 0.8)).epsilon(1e-7));
  CHECK(eager_at(grad<mode::checkpointed>(f), 0.8) == Approx(expected));
  CHECK(eager_at(grad<mode::checkpointed>(Function(grad<mode::checkpointed>(f))), 0.8) ==
        Approx(eager_at(grad(grad(f)), 0.8)));
  CHECK(eager_at(grad(grad<mode::checkpointed>(f)), 0.8) == Approx(eager_at(grad(grad(f)), 0.8)));
  CHECK(eager_at(grad<mode::checkpointed>(Function(grad(f))), 0.8) == Approx(eager_at(grad(grad(f)), 0.8)));
}

TEST_CASE("what a checkpointed function computes is returned from it", "[modes]") {
  const Function leaking = [](D x) {
    D kept;
    const D y = checkpoint(sig<double(double)>([&kept](D a) {
      kept = a * a;
      return a * 2.0;
    }))(x);
    return y * kept;
  };
  CHECK_THROWS_WITH(eager_at(grad<mode::checkpointed>(leaking), 1.0),
                    Catch::Contains("a value computed in a checkpointed function is used outside it"));
}

// ---- Taylor ----

TEST_CASE("Taylor mode gives the derivatives of all orders", "[modes]") {
  for (const Program& p : programs()) {
    const auto t = eager(taylor<4>(p.f))(0.7, 1.0);
    REQUIRE(t.size() == 5);
    Function f = p.f;
    for (std::size_t k = 0; k < 4; ++k) {
      INFO(p.name << ", order " << k);
      CHECK(t[k] == Approx(eager_at(f, 0.7)).epsilon(1e-8).margin(1e-9));
      f = k % 2 == 0 ? Function(grad<mode::forward>(f)) : Function(grad(f));
    }
    INFO(p.name << ", order 4");
    CHECK(t[4] == Approx(eager_at(f, 0.7)).epsilon(1e-8).margin(1e-9));
    // Staged, by forward mode of forward mode.
    const auto staged = compile(taylor<3>(p.f), {.target = Target::c, .opt = 3})(0.7, 1.0);
    for (std::size_t k = 0; k < 4; ++k) CHECK(staged[k] == Approx(t[k]).epsilon(1e-9).margin(1e-12));
  }
}

TEST_CASE("Taylor series known in closed form", "[modes]") {
  const auto check = [](const char* name, const Function& f, double x, const std::vector<double>& expected) {
    INFO(name);
    const auto t = eager(taylor<8>(f))(x, 1.0);
    for (std::size_t k = 0; k < expected.size(); ++k) CHECK(t[k] == Approx(expected[k]).margin(1e-12));
  };
  check("exp", [](D x) { return exp(x); }, 0.0, {1, 1, 1, 1, 1, 1, 1, 1, 1});
  check("sin", [](D x) { return sin(x); }, 0.0, {0, 1, 0, -1, 0, 1, 0, -1, 0});
  check("1 / (1 - x)", [](D x) { return 1.0 / (1.0 - x); }, 0.0, {1, 1, 2, 6, 24, 120, 720, 5040, 40320});
  check("log", [](D x) { return log(x); }, 1.0, {0, 1, -1, 2, -6, 24, -120, 720, -5040});
  check("sqrt", [](D x) { return sqrt(x); }, 1.0, {1, 0.5, -0.25, 0.375, -0.9375, 3.28125});
  check("x^8", [](D x) { return pow(x, 8.0); }, 1.0, {1, 8, 56, 336, 1680, 6720, 20160, 40320, 40320});
  check("tanh", [](D x) { return tanh(x); }, 0.0, {0, 1, 0, -2, 0, 16, 0, -272, 0});
}

TEST_CASE("Taylor mode in a direction, over arrays and tensors", "[modes]") {
  const std::function<D(D, A)> f = [](D x, A a) { return sum(sin(a) * a) * x + dot(a, a * a) / x; };
  const std::vector<double> a{0.5, -1.0, 2.0}, v{1.0, 0.5, -0.25};
  const auto t = eager(taylor<3>(f))(1.5, a, 2.0, v);
  const auto along = [&](double s) {
    double y = 0, z = 0;
    const double x = 1.5 + 2.0 * s;
    for (std::size_t i = 0; i < 3; ++i) {
      const double e = a[i] + s * v[i];
      y += std::sin(e) * e, z += e * e * e;
    }
    return y * x + z / x;
  };
  CHECK(t[0] == Approx(along(0)));
  const double h = 1e-3;
  CHECK(t[1] == Approx((along(h) - along(-h)) / (2 * h)).epsilon(1e-4));
  CHECK(t[2] == Approx((along(h) - 2 * along(0) + along(-h)) / (h * h)).epsilon(1e-5));
  CHECK(
      t[3] ==
      Approx((along(2 * h) - 2 * along(h) + 2 * along(-h) - along(-2 * h)) / (2 * h * h * h)).epsilon(1e-4));
}

TEST_CASE("Taylor mode through bilinear and joint operations", "[modes]") {
  const std::function<D(A)> f = [](A a) {
    const auto v = as_tensor(a);
    const auto m = outer(v * v, v);          // both factors vary
    const auto p = matmul(m, transpose(m));  // and so do those of a product of matrices
    const auto q = matmul(p, v);
    const auto both = concat(q, v * 2.0);
    return dot(q, q) * 0.01 + sum(matmul(q, m)) + a.set(1, sum(a) * a[0])[1] + sum(both.slice(1, 5)) * a[2];
  };
  const std::vector<double> a{0.5, -0.6, 0.7}, v{1.0, 0.5, -0.25};
  const auto t = eager(taylor<3>(f))(a, v);
  // The same by forward mode of forward mode of forward mode.
  const std::function<D(D)> line = [f, a, v](D s) {
    A x = fill(D(0.0), 3);
    for (int i = 0; i < 3; ++i)
      x = x.set(i, a[static_cast<std::size_t>(i)] + v[static_cast<std::size_t>(i)] * s);
    return f(x);
  };
  Function g = line;
  for (std::size_t k = 0; k <= 3; ++k) {
    INFO("order " << k);
    CHECK(t[k] == Approx(eager_at(g, 0.0)).epsilon(1e-9));
    g = grad<mode::forward>(g);
  }
}

// ---- Hessian in one reverse pass ----

TEST_CASE("Hessian reverse mode", "[modes]") {
  const std::vector<std::pair<const char*, std::function<D(A)>>> cases{
      {"bilinear", [](A a) { return a[0] * a[1] + a[1] * a[2]; }},
      {"squares of the same", [](A a) { return a[0] * a[0] * a[0] + (a[1] + a[1]) * a[1]; }},
      {"functions",
       [](A a) { return sin(a[0] * a[1]) * exp(a[2]) / (2.0 + cos(a[0])) + pow(a[1] + 2.0, a[0] + 1.0); }},
      {"linear", [](A a) { return 2.0 * a[0] - a[2]; }},
      {"one element", [](A a) { return a[1]; }},
      {"constant", [](A) { return D(3.0); }},
      {"loop",
       [](A a) {
         return FOR(0, a.size(), D(1.0), [&](I i, D s) { return s * (a[i] + 0.25 * s) + tanh(s); });
       }},
      {"Rosenbrock",
       [](A a) {
         return FOR(0, a.size() - 1, D(0.0), [&](I i, D s) {
           const D t = a[i + 1] - a[i] * a[i], u = 1.0 - a[i];
           return s + 100.0 * t * t + u * u;
         });
       }},
      {"branches",
       [](A a) {
         return IF(
             a[0] > a[1], [&] { return a[0] * a[1] * a[2]; }, [&] { return a[0] / (1.0 + a[2] * a[2]); });
       }},
  };
  for (const auto& [name, f] : cases)
    for (const std::vector<double>& x :
         {std::vector<double>{0.5, 1.5, -0.7}, std::vector<double>{1.1, 0.2, 0.9}}) {
      INFO(name);
      const auto expected = eager(hessian(f))(x);
      const auto found = eager(hessian<mode::reverse>(f))(x);
      for (std::size_t i = 0; i < 9; ++i)
        CHECK(found.data[i] == Approx(expected.data[i]).epsilon(1e-10).margin(1e-11));
    }
}

TEST_CASE("third derivatives through Hessian reverse mode", "[modes]") {
  // The derivative of entries of the Hessian along a line, by every mode outside.
  const std::function<D(A)> f = [](A a) { return a[0] * a[0] * a[1] * sin(a[1]); };
  const Function entries = [f](D s) {
    const auto h = hessian<mode::reverse>(f)(fill(s, 2));
    return h(0, 1) + 2.0 * h(1, 1);
  };
  const double slope = differences(entries, 0.8);
  CHECK(slope == Approx(differences(
                     [f](D s) {
                       const auto h = hessian(f)(fill(s, 2));
                       return h(0, 1) + 2.0 * h(1, 1);
                     },
                     0.8)));
  for (const Way& w : ways()) {
    INFO(w.name);
    CHECK(eager_at(w.grad(entries), 0.8) == Approx(slope).epsilon(1e-7));
  }
}

TEST_CASE("Hessian reverse mode refuses what it does not cover", "[modes]") {
  CHECK_THROWS_WITH(
      eager(hessian<mode::reverse>(std::function<D(A)>([](A a) { return sum(a * a); })))(
          std::vector<double>{1.0, 2.0}),
      Catch::Contains("hessian<mode::reverse>: expected operations on scalars and elements of the argument, "
                      "got mul; use hessian(f)"));
}

// ---- random programs ----

TEST_CASE("every mode agrees on random programs", "[modes][random]") {
  const std::vector<double> elements{0.35, -0.8, 1.15};
  int compared = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const auto tree = RandomSource(seed, 6 + static_cast<int>(seed % 20)).program(2);
    const auto by = [&](const Way& w) {
      const std::function<D(A)> all = [&](A a) {
        return w.grad([&](D x) {
          return SourceInterpreter::run(*tree, {{x, D(-1.1)}, {I(2)}, a, {}, 0});
        })(0.6);
      };
      return eager(all)(elements);
    };
    const double expected = by(ways()[0]);
    for (const Way& w : ways()) {
      INFO(w.name << ", seed " << seed << "\n" << tree->str());
      const double found = by(w);
      const bool agrees = agree::close(found, expected, 1e-9);
      CHECK(agrees);
      compared += agrees && expected != 0;
    }
  }
  CHECK(compared > 100 * static_cast<int>(ways().size()));
}

TEST_CASE("Hessian reverse mode agrees on random programs", "[modes][random]") {
  int compared = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const auto tree = RandomSource(seed, 6 + static_cast<int>(seed % 20)).program(2);
    const std::function<D(A)> f = [&](A a) {
      // The array of the random program is data.
      return SourceInterpreter::run(*tree, {{a[0], a[1]}, {I(2)}, fill(D(0.4), 3), {}, 0});
    };
    const std::vector<double> at{0.6, -1.1};
    const auto expected = eager(hessian(f))(at);
    std::optional<std::vector<double>> found;
    try {
      found = eager(hessian<mode::reverse>(f))(at).data;
    } catch (const Error& e) {
      // A program that stores variables in its array.
      REQUIRE(std::string(e.what()).find("expected operations on scalars and elements") != std::string::npos);
      continue;
    }
    INFO("seed " << seed << "\n" << tree->str());
    for (std::size_t i = 0; i < 4; ++i) CHECK(agree::close((*found)[i], expected.data[i], 1e-8));
    ++compared;
  }
  CHECK(compared > 100);
}
