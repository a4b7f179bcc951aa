// Functions with rules (custom_vjp, custom_jvp, fixpoint) under every mode and every pair of modes: true
// rules give the derivatives of the function, false ones show that the rule is what was asked.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "ways.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;

// ---- true rules

/// sin(a) b.
D product(D a, D b) { return sin(a) * b; }
D with_vjp(D x, D y) {
  return custom_vjp(
      product, [](D a, D b) { return std::tuple(product(a, b), a, b); },
      [](D a, D b, D g) { return std::tuple(g * cos(a) * b, g * sin(a)); })(x, y);
}
D with_jvp(D x, D y) {
  return custom_jvp(product, [](D a, D b, D da, D db) {
    return std::tuple(product(a, b), cos(a) * b * da + sin(a) * db);
  })(x, y);
}

/// Sine and cosine whose rules lead to each other without end.
D my_cos(D x);
D my_sin(D x) {
  return custom_vjp(
      sig<double(double)>([](auto a) { return sin(a); }), [](D a) { return std::tuple(my_sin(a), a); },
      [](D a, D g) { return g * my_cos(a); })(x);
}
D my_cos(D x) {
  return custom_jvp(sig<double(double)>([](auto a) { return cos(a); }),
                    [](D a, D da) { return std::tuple(my_cos(a), -1.0 * my_sin(a) * da); })(x);
}

/// a b and a^2, by one rule; the number n is not differentiated.
auto two_results() {
  return custom_vjp(
      sig<std::tuple<double, int64_t, double>(double, int64_t, double)>(
          [](D a, I n, D b) { return std::tuple(a * b, n + 1, a * a); }),
      [](D a, I n, D b) { return std::tuple(std::tuple(a * b, n + 1, a * a), a, b); },
      [](D a, D b, std::tuple<D, I, D> g) {
        return std::tuple(std::get<0>(g) * b + 2.0 * a * std::get<2>(g), std::get<0>(g) * a);
      });
}

/// A program, and what it computes without rules.
struct Ruled {
  const char* name;
  Function f, plain;
};

const std::vector<Ruled>& corpus() {
  static const std::vector<Ruled> all{
      {"custom_vjp", [](D x) { return with_vjp(x, x) * x; }, [](D x) { return sin(x) * x * x; }},
      {"custom_jvp", [](D x) { return with_jvp(x * x, x) + x; }, [](D x) { return sin(x * x) * x + x; }},
      {"one in the other", [](D x) { return with_jvp(with_vjp(x, 2.0), with_vjp(0.5, x)); },
       [](D x) { return sin(sin(x) * 2.0) * (std::sin(0.5) * x); }},
      {"rules that lead to each other", [](D x) { return my_sin(x * x) * x + my_cos(x); },
       [](D x) { return sin(x * x) * x + cos(x); }},
      {"two results",
       [](D x) {
         const auto [p, n, q] = two_results()(x, I(3), sin(x));
         const auto [r, m, s] = two_results()(q, n, p);
         return r * p + s * cast<double>(m);
       },
       [](D x) {
         const D p = x * sin(x), q = x * x;
         return q * p * p + q * q * 5.0;
       }},
      {"one of two results", [](D x) { return std::get<2>(two_results()(x, I(3), x * x)) * x; },
       [](D x) { return x * x * x; }},
      {"in a loop, with what it captures",
       [](D x) {
         const D twice = 2.0 * stop_gradient(x);
         return FOR(0, 3, x, [&](I i, D t) {
           const D factor = cast<double>(i) + 1.0;
           const auto scaled = custom_vjp(
               sig<double(double)>([=](D a) { return a * a * factor * twice; }),
               [=](D a) { return std::tuple(a * a * factor * twice, a); },
               [=](D a, D g) { return 2.0 * g * a * factor * twice; });
           return 0.2 * scaled(t) + with_jvp(t, x);
         });
       },
       [](D x) {
         const D twice = 2.0 * stop_gradient(x);
         return FOR(0, 3, x,
                    [&](I i, D t) { return 0.2 * t * t * (cast<double>(i) + 1.0) * twice + sin(t) * x; });
       }},
      {"in a branch in a loop that a number ends",
       [](D x) {
         return WHILE(
             x, [](D t) { return t < 4.0; },
             [&](D t) {
               return t +
                      IF(
                          t > 1.5, [&] { return with_vjp(x, t); }, [&] { return with_jvp(x, 1.0) + 0.1; });
             });
       },
       [](D x) {
         return WHILE(
             x, [](D t) { return t < 4.0; },
             [&](D t) {
               return t + IF(
                              t > 1.5, [&] { return sin(x) * t; }, [&] { return sin(x) + 0.1; });
             });
       }},
      {"in a recursion",
       [](D x) {
         const auto f = FUN<double(double, std::int64_t)>("f", [](auto self, D a, I n) {
           return IF(
               n == 0, [&] { return a; }, [&] { return with_vjp(a, self(a * 0.5, n - 1)); });
         });
         return f(x, 3);
       },
       [](D x) {
         const auto f = FUN<double(double, std::int64_t)>("f", [](auto self, D a, I n) {
           return IF(
               n == 0, [&] { return a; }, [&] { return sin(a) * self(a * 0.5, n - 1); });
         });
         return f(x, 3);
       }},
      {"in a checkpoint", [](D x) { return checkpoint(with_vjp)(x, x) * x; },
       [](D x) { return sin(x) * x * x; }},
      {"arrays",
       [](D x) {
         const auto squares = custom_vjp(
             sig<double(Array<double>)>([](A a) { return sum(a * a); }),
             [](A a) { return std::tuple(sum(a * a), a); }, [](A a, D g) { return A(2.0 * g * a); });
         const auto scaled =
             custom_jvp(sig<Array<double>(Array<double>, double)>([](A a, D s) { return A(a * s); }),
                        [](A a, D s, A da, D ds) { return std::tuple(A(a * s), A(da * s + a * ds)); });
         const A a = fill(x, 3).set(1, x * x);
         return squares(scaled(a, x)) + sum(scaled(a, 2.0));
       },
       [](D x) {
         const D y = x * x;
         return y * y + y * y + y * y * y + 2.0 * (x + y + x);
       }},
      {"a fixed point",  // the root of x
       [](D x) { return fixpoint([](D t, D a) { return 0.5 * (t + a / t); }, 1.0, x) * x; },
       [](D x) { return sqrt(x) * x; }},
  };
  return all;
}

std::vector<Way> every_way() {
  std::vector<Way> all = eager_ways();
  all.insert(all.end(), ways_of_products().begin(), ways_of_products().end());
  return all;
}
bool staged(const Way& w) {
  return std::ranges::none_of(eager_only_ways(), [&](const Way& e) { return e.name == w.name; });
}

constexpr double at = 0.7;

double by_reverse(Function f, int order) {
  for (int i = 0; i < order; ++i) f = grad(f);
  return eager(f)(at);
}

void check(const std::string& what, const Function& f, double expected, bool run_staged) {
  INFO(what);
  CHECK(eager(f)(at) == Approx(expected).epsilon(1e-8));
  if (!run_staged) return;
  for (const int opt : {0, 3}) {
    INFO("opt " << opt);
    CHECK(compile(f, {.target = Target::c, .opt = opt})(at) == Approx(expected).epsilon(1e-8));
  }
}

}  // namespace

TEST_CASE("every mode follows true rules", "[custom][modes]") {
  for (const Ruled& r : corpus()) {
    const double expected = by_reverse(r.plain, 1);
    for (const Way& w : every_way()) check(w.name + " of " + r.name, w.grad(r.f), expected, staged(w));
  }
}

TEST_CASE("every ordered pair of modes follows true rules", "[custom][modes]") {
  for (const Ruled& r : corpus()) {
    const double expected = by_reverse(r.plain, 2);
    for (const Way& outer : every_way())
      for (const Way& inner : every_way()) {
        INFO(outer.name << " of " << inner.name << " of " << r.name);
        const Function second = outer.grad(inner.grad(r.f));
        CHECK(eager(second)(at) == Approx(expected).epsilon(1e-7));
        if (staged(outer) && staged(inner))
          CHECK(compile(second, {.target = Target::c, .opt = 1})(at) == Approx(expected).epsilon(1e-7));
      }
  }
}

TEST_CASE("triples of modes follow rules that lead to each other", "[custom][modes]") {
  const Ruled& r = corpus()[3];
  const double expected = by_reverse(r.plain, 3);
  for (const Way& a : every_way())
    for (const Way& b : every_way())
      for (const Way& c : every_way()) {
        INFO(a.name << " of " << b.name << " of " << c.name);
        CHECK(eager(a.grad(b.grad(c.grad(r.f))))(at) == Approx(expected).epsilon(1e-8));
      }
}

// x^2 whose derivative is said to be 10 x.
TEST_CASE("a false rule is what every pair of modes follows", "[custom][modes]") {
  const Function square = [](D a) { return a * a; };
  const Function by_vjp = custom_vjp(
      square, [](D a) { return std::tuple(a * a, a); }, [](D a, D g) { return 10.0 * a * g; });
  const Function by_jvp = custom_jvp(square, [](D a, D da) { return std::tuple(a * a, 10.0 * a * da); });
  for (const auto& [name, f] : {std::pair("custom_vjp", by_vjp), std::pair("custom_jvp", by_jvp)}) {
    for (const Way& outer : every_way()) {
      check(outer.name + " of " + name, outer.grad(f), 10 * at, staged(outer));
      for (const Way& inner : every_way())
        check(outer.name + " of " + inner.name + " of " + name, outer.grad(inner.grad(f)), 10.0,
              staged(outer) && staged(inner));
    }
    for (const bool run_eagerly : {true, false}) {
      INFO(name << (run_eagerly ? ", eager" : ", staged"));
      const auto t = run_eagerly ? eager(taylor<3>(f))(3.0, 1.0)
                                 : compile(taylor<3>(f), {.target = Target::c})(3.0, 1.0);
      CHECK(t == std::array{9.0, 30.0, 10.0, 0.0});
    }
  }
}

TEST_CASE("Taylor series through rules, to the fifth order", "[custom][modes]") {
  for (const Ruled& r : corpus()) {
    // Without the rule; of a fixed point, whose steps are no series of the solution, the same.
    const auto expected = eager(taylor<5>(r.plain))(at, 1.0);
    const auto now = eager(taylor<5>(r.f))(at, 1.0);
    const auto compiled = compile(taylor<5>(r.f), {.target = Target::c, .opt = 3})(at, 1.0);
    for (std::size_t k = 0; k < 6; ++k) {
      INFO(r.name << ", order " << k);
      CHECK(now[k] == Approx(expected[k]).epsilon(1e-6));
      CHECK(compiled[k] == Approx(expected[k]).epsilon(1e-6));
    }
  }
  CHECK(eager(taylor<0>(corpus()[0].f))(at, 1.0)[0] == Approx(std::sin(at) * at * at));
}

TEST_CASE("Hessians in one reverse pass follow rules", "[custom][modes]") {
  using Energy = std::function<D(A)>;
  // Said by custom_jvp: of what a custom_vjp's forward part computes, outer derivatives are true.
  const auto tenfold = [](D x) {
    return custom_jvp(sig<double(double)>([](D a) { return a * a; }),
                      [](D a, D da) { return std::tuple(a * a, 10.0 * a * da); })(x);
  };
  const std::vector<std::pair<const char*, Energy>> all{
      {"custom_vjp", [](A a) { return with_vjp(a[0], a[1]) * a[2]; }},
      {"custom_jvp", [](A a) { return with_jvp(a[0] * a[1], a[0]) + a[2] * a[2]; }},
      {"one variable twice", [](A a) { return with_vjp(a[0], a[0]) * with_jvp(a[1], a[1]); }},
      {"a constant argument", [](A a) { return with_vjp(2.0, a[1]) * with_jvp(a[2], 3.0); }},
      {"two results",
       [](A a) {
         const auto [p, n, q] = two_results()(a[0], I(3), a[1] * a[2]);
         return p * q * q + cast<double>(n) * q;
       }},
      {"in a loop",
       [](A a) { return FOR(0, a.size(), a[0], [&](I i, D s) { return with_jvp(s, a[i]) + a[1]; }); }},
      {"a false rule", [=](A a) { return tenfold(a[0] * a[1]) * a[2]; }},
      {"a rule over the argument",
       [](A a) {
         const auto cubes = custom_vjp(
             sig<double(Array<double>, double)>([](A b, D s) { return sum(b * b * b) * s; }),
             [](A b, D s) { return std::tuple(sum(b * b * b) * s, b, s); },
             [](A b, D s, D g) { return std::tuple(A(3.0 * g * s * b * b), g * sum(b * b * b)); });
         return cubes(a, a[1] * a[2]) * sin(cubes(a, 0.5)) + a[0];
       }},
      {"a fixed point",
       [](A a) { return fixpoint([](D t, D s) { return 0.5 * (t + s / t); }, 1.0, a[0] * a[1]) * a[2]; }},
  };
  const std::vector<double> x{0.7, 0.4, 1.3};
  for (const auto& [name, f] : all) {
    const auto expected = eager(hessian(f))(x);
    const auto test = [&, name = name](const char* how, const auto& h) {
      INFO(name << ", " << how);
      REQUIRE(h.data.size() == 9);
      for (std::size_t i = 0; i < 9; ++i)
        CHECK(h.data[i] == Approx(expected.data[i]).epsilon(1e-8).margin(1e-9));
    };
    test("eager", eager(hessian<mode::reverse>(f))(x));
    test("opt 0", compile(hessian<mode::reverse>(f), {.target = Target::c, .opt = 0})(x));
    test("opt 3", compile(hessian<mode::reverse>(f), {.target = Target::c, .opt = 3})(x));
  }
  // What it cannot do it says: results that are arrays are not variables of the pass.
  const Energy arrays = [](A a) {
    return sum(custom_vjp(
        sig<Array<double>(Array<double>)>([](A b) { return A(b * b); }),
        [](A b) { return std::tuple(A(b * b), b); }, [](A b, A g) { return A(2.0 * g * b); })(a));
  };
  const std::string refused = "hessian<mode::reverse>: expected custom_vjp with scalar results, got f64[";
  CHECK_THROWS_WITH(eager(hessian<mode::reverse>(arrays))(x), Catch::Contains(refused));
  CHECK_THROWS_WITH(eager(hessian<mode::reverse>(arrays))(x), Catch::Contains("use hessian(f)"));
  CHECK_THROWS_WITH(eager(hessian<mode::reverse>(arrays))(x), Catch::Contains("rules_in_modes_test.cpp:"));
  CHECK_THROWS_WITH(compile(hessian<mode::reverse>(arrays), {.target = Target::c}), Catch::Contains(refused));
}

TEST_CASE("a rule's parts may not capture what a mode differentiates", "[custom][modes][errors]") {
  const Function captures = [](D x) {
    return custom_vjp(
        sig<double(double)>([=](D a) { return a * x; }), [=](D a) { return std::tuple(a * x, a); },
        [=](D, D g) { return g * x; })(x);
  };
  for (const Way& w : every_way()) {
    INFO(w.name);
    const std::string message =
        "custom_vjp: the function captures a value that is being differentiated; pass it as an argument";
    CHECK_THROWS_WITH(eager(w.grad(captures))(at), Catch::Contains(message));
    if (staged(w))
      CHECK_THROWS_WITH(compile(w.grad(captures), {.target = Target::c}), Catch::Contains(message));
  }
  // So where the backward part alone does.
  const Function backward_captures = [](D x) {
    return custom_vjp(
        sig<double(double)>([](D a) { return a * a; }), [](D a) { return std::tuple(a * a, a); },
        [=](D a, D g) { return 2.0 * g * a + 0.0 * x; })(x);
  };
  const std::string message =
      "custom_vjp: the function captures a value that is being differentiated; pass it as an argument";
  for (const Way& w : every_way()) {
    INFO(w.name);
    // Forward mode transposes the backward part, in which the captured value is a number.
    const bool forward = w.name.starts_with("forward") || w.name == "taylor" || w.name == "jvp";
    if (!forward) CHECK_THROWS_WITH(eager(w.grad(backward_captures))(at), Catch::Contains(message));
    if (staged(w))
      CHECK_THROWS_WITH(compile(w.grad(backward_captures), {.target = Target::c}), Catch::Contains(message));
  }
  // So for series of higher order.
  CHECK_THROWS_WITH(
      eager(taylor<3>(captures))(at, 1.0),
      Catch::Contains("custom_vjp: the function captures a value that is being differentiated"));
}

TEST_CASE("a rule under a derivative that has ended", "[custom][modes][errors]") {
  for (const Way& w : eager_ways()) {
    INFO(w.name);
    D kept;
    const Function keeps = [&](D y) {
      kept = y;
      return y * y;
    };
    const Function late = [&](D x) {
      const D slope = w.grad(keeps)(x);
      return with_vjp(kept, slope);
    };
    CHECK_THROWS_WITH(eager(late)(at), Catch::Contains("rules_in_modes_test.cpp:"));
    CHECK_THROWS_WITH(
        eager(late)(at),
        Catch::Contains("custom_vjp: expected a derivative by a mode that follows rules, got one by ") &&
            Catch::Contains(" that has ended"));
    kept = D();
  }
}

TEST_CASE("a derivative that is wrong in size is refused in every mode", "[custom][modes][errors]") {
  const Function wrong = [](D x) {
    return custom_vjp(
        sig<double(Array<double>)>([](A a) { return sum(a); }), [](A a) { return std::tuple(sum(a), a); },
        [](A, D g) { return fill(g, 7); })(fill(x, 2));
  };
  for (const Way& w : eager_ways()) {
    if (w.name.starts_with("forward") || w.name == "taylor") continue;  // they transpose the rule, whatever its sizes
    INFO(w.name);
    CHECK_THROWS_WITH(
        eager(w.grad(wrong))(at),
        Catch::Contains(
            "custom_vjp: expected the derivative of floating argument 0 to be f64[2], got f64[7]"));
  }
}
