// The AD modes of the papers, staged: what each one's code looks like, against each other and against eager
// evaluation, over programs with branches, loops, recursion, trees and tensors; nested in every pair.
#include <cmath>

#include "agree.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<std::int64_t>;
using Function = std::function<D(D)>;

struct Way {
  const char* name;
  std::function<Function(Function)> grad;
};

template <mode M>
Way way(const char* name) {
  return {name, [](const Function& f) { return Function(lantern::grad<M>(f)); }};
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      way<mode::reverse>("reverse"),
      way<mode::forward>("forward"),
      way<mode::cps>("cps"),
      way<mode::global_tape>("global tape"),
      way<mode::functional>("functional"),
      way<mode::continuation>("continuation"),
      way<mode::taped>("taped"),
      way<mode::checkpointed>("checkpointed"),
      way<mode::divide_and_conquer>("divide and conquer"),
      {"taylor",
       [](const Function& f) { return Function([t = taylor<1>(f)](D x) { return t(x, 1.0)[1]; }); }},
  };
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
      {"a branch that passes values on",
       [](D x) {
         const auto [a, b] = IF(
             x > 1.0, [&] { return std::tuple(x, x); }, [&] { return std::tuple(x * x, D(2.0)); });
         return a * b + a;
       }},
      {"a loop",
       [](D x) {
         return WHILE(
             x, [](D t) { return t < 20.0; }, [&](D t) { return t * (1.0 + x * x) + 0.1; });
       }},
      {"a loop in a loop, with a branch",
       [](D x) {
         return FOR(0, 3, x, [&](I i, D s) {
           const D inner = FOR(0, i + 1, s, [&](I j, D t) { return sin(t) * x + 0.1 * cast<double>(j); });
           return IF(
               inner > 0.3, [&] { return inner * s; }, [&] { return inner + s; });
         });
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
      {"no iteration",
       [](D x) {
         return WHILE(
                    x * x, [](D t) { return t > 1e9; }, [&](D t) { return t * x; }) *
                x;
       }},
      {"recursion",
       [](D x) {
         const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, D b, I n) {
           return IF(
               n == 0, [&] { return D(1.0); }, [&] { return b * self(b, n - 1); });
         });
         return power(x, 5) + power(x * x, 3);
       }},
      {"recursion that calls itself twice, and captures",
       [](D x) {
         const auto walk = FUN<double(double, std::int64_t)>("walk", [x](auto self, D b, I n) {
           return IF(
               n == 0, [&] { return b * x; }, [&] { return sin(self(b, n - 1)) + self(b * 0.5, n - 1) * b; });
         });
         return walk(x, 3);
       }},
      {"an array in the middle",
       [](D x) {
         A a = fill(x, 3);
         a = a.set(1, x * x);
         const A b = a * a + a;
         return FOR(0, b.size(), D(0.0), [&](I i, D s) { return s * 0.5 + b[i]; }) + sum(b) * dot(a, b);
       }},
      {"an array changed in a loop",
       [](D x) {
         A a = fill(x, 4);
         a = FOR(0, 3, a, [&](I i, A t) { return t.set(i + 1, t[i] * t[i + 1] + x); });
         return sum(a * a);
       }},
  };
  return all;
}

double staged_at(const Function& f, double x, int opt) {
  return compile(f, {.target = Target::c, .opt = opt})(x);
}

}  // namespace

TEST_CASE("beside poles: which compiled modes know that nothing flows to a case that is not taken") {
  // docs/modes.md says which.
  const auto programs = {
      Function([](D x) { return IF(x > 1.0, [&] { return sqrt(x); }, [&] { return 3.0 * x; }); }),
      Function([](D x) {
        const D root = sqrt(x);
        return IF(x > 1.0, [&] { return root; }, [&] { return 3.0 * x; });
      }),
      Function([](D x) { return max(sqrt(x), 1.0) + 3.0 * x; }),
  };
  for (const Way& w : ways()) {
    INFO(w.name);
    const std::string name = w.name;
    const bool knows = name == "reverse" || name == "forward" || name == "cps" || name == "divide and conquer" || name == "taylor";
    std::size_t numbers = 0;
    for (const Function& f : programs) {
      const double slope = compile(w.grad(f))(0.0);
      CHECK((slope == 3.0 || std::isnan(slope)));
      numbers += slope == 3.0;
      CHECK(compile(w.grad(f))(4.0) == Approx(compile(grad(f))(4.0)));
    }
    CHECK((numbers == 3) == knows);
  }
}

TEST_CASE("every mode differentiates every program, staged as eagerly", "[modes]") {
  for (const Program& p : programs())
    for (const Way& w : ways()) {
      const Function df = w.grad(p.f);
      const auto at0 = compile(df, {.target = Target::c, .opt = 0});
      const auto at3 = compile(df, {.target = Target::c, .opt = 3});
      for (const double x : {0.7, 1.6}) {
        INFO(w.name << " of " << p.name << " at " << x);
        const double expected = eager(grad(p.f))(x);
        CHECK(at0(x) == Approx(expected).epsilon(1e-12));
        CHECK(at3(x) == Approx(expected).epsilon(1e-12));
      }
    }
}

TEST_CASE("every ordered pair of modes, staged", "[modes]") {
  for (const Program& p : programs()) {
    const double expected = eager(grad(grad(p.f)))(0.7);
    for (const Way& outer : ways())
      for (const Way& inner : ways()) {
        INFO(outer.name << " of " << inner.name << " of " << p.name);
        CHECK(staged_at(outer.grad(inner.grad(p.f)), 0.7, 1) ==
              Approx(expected).epsilon(1e-10).margin(1e-12));
      }
  }
}

TEST_CASE("triples of modes, staged", "[modes]") {
  for (const std::size_t p : {std::size_t{0}, std::size_t{6}, std::size_t{8}}) {
    const Function f = programs()[p].f;
    const double expected = eager(grad(grad(grad(f))))(0.7);
    for (const Way& a : ways())
      for (const Way& b : ways())
        for (const Way& c : ways()) {
          if (p != 0 && (&a != &b || &a == &c)) continue;
          INFO(a.name << " of " << b.name << " of " << c.name << " of " << programs()[p].name);
          CHECK(staged_at(a.grad(b.grad(c.grad(f))), 0.7, 1) ==
                Approx(expected).epsilon(1e-10).margin(1e-12));
        }
  }
}

TEST_CASE("perturbations are not confused in any pair of modes, staged", "[modes]") {
  for (const Way& outer : ways())
    for (const Way& inner : ways()) {
      INFO(outer.name << " over " << inner.name);
      const auto nested = [&](auto body, double y) {
        return outer.grad(
            [&inner, body, y](D x) { return x * inner.grad([x, body](D t) { return D(body(x, t)); })(y); });
      };
      // Lantern paper, 2.4: 1, not 2.
      CHECK(staged_at(nested([](D x, D y) { return x + y; }, 1.0), 1.0, 1) == Approx(1.0));
      CHECK(staged_at(nested([](D x, D y) { return x * y; }, 2.0), 3.0, 1) == Approx(6.0));
      const auto at_x = outer.grad([&inner](D x) { return inner.grad([x](D y) { return x * y * y; })(x); });
      CHECK(staged_at(at_x, 3.0, 1) == Approx(12.0));
      // Thesis, 4.5: the second derivative of x x x at 1; three levels.
      const auto second = outer.grad([&](D y) { return inner.grad([](D x) { return x * (x * x); })(y); });
      CHECK(staged_at(second, 1.0, 1) == Approx(6.0));
      const auto three = outer.grad([&](D x) {
        return x * inner.grad(
                       [&, x](D y) { return y * outer.grad([x, y](D z) { return z * (y * x); })(1.0); })(1.0);
      });
      CHECK(staged_at(three, 1.0, 1) == Approx(4.0));
      CHECK(eager(three)(1.0) == Approx(4.0));
      // Thesis, 4.5, after Manzyuk et al.: s u f x = f(x + u), and ds f x its derivative by u at 0, which is
      // f'(x). The operator takes functions: ds twice is f'', 30 for x x x at 5, not 0.
      const auto ds = [](const Way& w, const Function& f) {
        return Function([w, f](D x) { return w.grad([f, x](D u) { return f(x + u); })(0.0); });
      };
      const Function both = ds(outer, [&](D x) { return ds(inner, [](D y) { return y * (y * y); })(x); });
      CHECK(eager(both)(5.0) == Approx(30.0));
      CHECK(staged_at(both, 5.0, 1) == Approx(30.0));
    }
}

TEST_CASE("several arguments, structs and arrays, staged", "[modes]") {
  const std::function<D(D, I, A)> f = [](D x, I n, A a) {
    return FOR(0, n, x, [&](I i, D s) { return s * a[i] + x; }) + sum(a * a * x);
  };
  const std::vector<double> at{0.5, -1.5, 2.0};
  const auto expected = eager(grad(f))(1.2, 3, at);
  const auto test = [&](const char* name, const auto& g) {
    INFO(name);
    for (const int opt : {0, 3}) {
      const auto [dx, da] = compile(g, {.target = Target::c, .opt = opt})(1.2, 3, at);
      CHECK(dx == Approx(std::get<0>(expected)));
      REQUIRE(da.size() == 3);
      for (std::size_t i = 0; i < 3; ++i) CHECK(da[i] == Approx(std::get<1>(expected)[i]));
    }
  };
  test("cps", grad<mode::cps>(f));
  test("global tape", grad<mode::global_tape>(f));
  test("functional", grad<mode::functional>(f));
  test("continuation", grad<mode::continuation>(f));
  test("taped", grad<mode::taped>(f));
  test("checkpointed", grad<mode::checkpointed>(f));
  CHECK(compile(grad<0, mode::taped>(f))(1.2, 3, at) == Approx(std::get<0>(expected)));
  const auto [y, dx] = compile(value_and_grad<0, mode::functional>(f))(1.2, 3, at);
  CHECK(y == Approx(eager(f)(1.2, 3, at)));
  CHECK(dx == Approx(std::get<0>(expected)));
}

TEST_CASE("trees and tensors in every mode, staged", "[modes]") {
  const auto product = [](D x, Rep<Tree<double>> tree) {
    return TREE(x, tree, [&](D l, D r, Rep<Tree<double>> node) { return l * r * node.value(); });
  };
  const Tree<double> t(2.0, Tree<double>(3.0), Tree<double>(5.0));
  const auto test = [&](const char* name, const auto& g) {
    INFO(name);
    for (const int opt : {0, 3})
      CHECK(compile(g, {.target = Target::c, .opt = opt})(2.0, t) == Approx(30.0 * 4 * 8));  // 30 x^4
  };
  test("cps", grad<mode::cps>(product));
  test("global tape", grad<mode::global_tape>(product));
  test("functional", grad<mode::functional>(product));
  test("continuation", grad<mode::continuation>(product));
  test("taped", grad<mode::taped>(product));
  test("checkpointed", grad<mode::checkpointed>(product));
}

TEST_CASE("loops with a bound on memory in every mode and every pair, staged", "[modes]") {
  const std::vector<Program> bounded{
      {"checkpoints",
       [](D x) { return FOR(0, 100, x, [&](I, D t) { return sin(t) * x + t; }, {.checkpoints = 5}); }},
      {"memory",
       [](D x) {
         return FOR(0, 50, x, [&](I i, D t) { return sin(t) * x + cast<double>(i); }, {.memory = 1 << 16});
       }},
      {"a loop that a number ends",
       [](D x) {
         return WHILE(
             x, [](D t) { return t < 9.0; }, [&](D t) { return t + 0.5 + 0.1 * sin(t * x); },
             {.checkpoints = 3});
       }},
      {"in a loop and in a branch, with a constant start",
       [](D x) {
         return FOR(0, 3, x, [&](I i, D s) {
           return IF(
               i > 0,
               [&] {
                 return FOR(0, 20, D(1.0), [&](I, D t) { return sin(t) + s * 0.1; }, {.checkpoints = 2});
               },
               [&] { return s * x; });
         });
       }},
      {"two numbers and an array",
       [](D x) {
         const A a = fill(x, 3);
         const auto [p, q, b] =
             FOR(0, 9, std::tuple(x, x, a),
                 [&](I i, D s, D t, A c) {
                   return std::tuple(s * 0.5 + t, sin(s) + a[i % 3], c.set(i % 3, s * c[0]));
                 },
                 {.checkpoints = 2});
         return p * q + sum(b);
       }},
  };
  for (const Program& p : bounded) {
    const double first = eager(grad(p.f))(0.7), second = eager(grad(grad(p.f)))(0.7);
    for (const Way& outer : ways()) {
      for (const int opt : {0, 3}) {
        INFO(outer.name << " of " << p.name << ", opt " << opt);
        CHECK(staged_at(outer.grad(p.f), 0.7, opt) == Approx(first).epsilon(1e-10));
      }
      for (const Way& inner : ways()) {
        INFO(outer.name << " of " << inner.name << " of " << p.name);
        CHECK(staged_at(outer.grad(inner.grad(p.f)), 0.7, 1) == Approx(second).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("a million operations, staged, in every mode", "[modes]") {
  const std::function<D(D, I)> f = [](D x, I n) {
    return FOR(0, n, x, [&](I, D t) { return t * 0.999999 + 0.5 * x; });
  };
  const double expected = compile(grad<mode::forward>(f))(1.0, 1'000'000);
  CHECK(compile(grad<mode::cps>(f))(1.0, 1'000'000) == Approx(expected));
  CHECK(compile(grad<mode::global_tape>(f))(1.0, 1'000'000) == Approx(expected));
  CHECK(compile(grad<mode::functional>(f))(1.0, 1'000'000) == Approx(expected));
  CHECK(compile(grad<mode::continuation>(f))(1.0, 1'000'000) == Approx(expected));
  CHECK(compile(grad<mode::taped>(f))(1.0, 1'000'000) == Approx(expected));
  CHECK(compile(grad<mode::checkpointed>(f))(1.0, 1'000'000) == Approx(expected));
}

// ---- second derivatives ----

TEST_CASE("Hessians in one reverse pass, staged, against forward over reverse", "[modes]") {
  const std::vector<std::pair<const char*, std::function<D(A)>>> all{
      {"straight", [](A a) { return a[0] * a[1] * a[2] + sin(a[0]) * exp(a[1]) + a[2] * a[2]; }},
      {"linear", [](A a) { return a[0] + 2.0 * a[1]; }},
      {"a loop over the elements",
       [](A a) { return FOR(1, a.size(), a[0], [&](I i, D s) { return sin(s) * a[i] + s * a[i - 1]; }); }},
      {"a loop over a pair, with a branch",
       [](A a) {
         const auto [p, q] = FOR(0, a.size(), std::tuple(D(1.0), a[1]), [&](I i, D s, D t) {
           const D u = IF(
               a[i] > 0.6, [&] { return s * t * a[i]; }, [&] { return s + exp(t) * a[2]; });
           return std::tuple(u, t * s);
         });
         return p * q + p * a[0];
       }},
      {"a loop in a loop",
       [](A a) {
         const D y = a[0] * a[1];
         return FOR(0, 2, y,
                    [&](I, D s) {
                      return FOR(0, 2, s, [&](I, D t) { return sin(t) * y + a[2] * t; }) * a[1];
                    }) +
                y * y;
       }},
      {"a branch that passes values on",
       [](A a) {
         const auto [u, v] = IF(
             a[0] > 0.0, [&] { return std::tuple(a[0] * a[1], a[2]); },
             [&] { return std::tuple(a[1], D(2.0)); });
         return u * u * v + IF(
                                v > 5.0, [&] { return u; }, [&] { return u * v * a[0]; });
       }},
      {"a small function",
       [](A a) {
         const auto f = FUN<double(double)>("f", [](D t) { return t * t * t; });
         return f(a[0]) * f(a[1] * a[2]);
       }},
      {"recursion",
       [](A a) {
         const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, D b, I n) {
           return IF(
               n == 0, [&] { return D(1.0); }, [&] { return sin(b) * self(b * 0.9, n - 1); });
         });
         return power(a[0] * a[1], a.size()) * a[2] + power(a[0], 2);
       }},
      {"recursion over the argument",
       [](A a) {
         const auto walk = FUN<double(Array<double>, double, std::int64_t)>("walk", [](auto self, A b, D t,
                                                                                       I i) {
           return IF(
               i == b.size(), [&] { return t * t; }, [&] { return b[i] * self(b, t * b[i] + 0.5, i + 1); });
         });
         return walk(a, a[0] * a[2], 0) * a[1];
       }},
      {"recursion like a tree that captures the argument, in a loop",
       [](A a) {
         const auto walk = FUN<double(double, std::int64_t)>("walk", [a](auto self, D t, I n) {
           return IF(
               n == 0, [&] { return t * a[1]; },
               [&] { return sin(self(t * 0.5, n - 1)) + self(t, n - 1) * a[n]; });
         });
         return FOR(0, 2, a[0], [&](I, D s) { return walk(s, 2) + s * a[2]; });
       }},
      {"recursion with two results",
       [](A a) {
         const auto f =
             FUN<std::tuple<double, double>(double, double, std::int64_t)>("f", [](auto self, D p, D q, I n) {
               return IF(
                   n == 0, [&] { return std::tuple(p, q); },
                   [&] {
                     const auto [u, v] = self(p * q, p + q, n - 1);
                     return std::tuple(u * p, v * u);
                   });
             });
         const auto [u, v] = f(a[0], a[1], 2);
         return u * v * a[2];
       }},
      {"a loop with a bound on memory",
       [](A a) {
         return FOR(0, 7, a[0] * a[1], [&](I i, D s) { return sin(s) * a[i % 3] + a[2]; },
                    {.checkpoints = 2}) *
                a[0];
       }},
  };
  const std::vector<double> at{0.7, 0.4, 1.3};
  for (const auto& [name, f] : all) {
    INFO(name);
    const auto expected = eager(hessian(f))(at);
    for (const int opt : {0, 1, 3}) {
      const auto h = compile(hessian<mode::reverse>(f), {.target = Target::c, .opt = opt})(at);
      REQUIRE(h.data.size() == 9);
      for (std::size_t i = 0; i < 9; ++i) {
        INFO("opt " << opt << " entry " << i);
        CHECK(h.data[i] == Approx(expected.data[i]).epsilon(1e-10).margin(1e-12));
      }
    }
  }
}

TEST_CASE("what a Hessian in one reverse pass does not take, staged", "[modes]") {
  const std::function<D(A)> whole = [](A a) { return sum(a * a); };
  CHECK_THROWS_WITH(
      compile(hessian<mode::reverse>(whole)),
      Catch::Contains("hessian<mode::reverse>: expected operations on scalars and elements of the "
                      "argument, got mul; use hessian(f)"));
  // A derivative inside, whose loop leaves something on a tape.
  const std::function<D(A)> derived = [](A a) {
    return grad([a](D x) { return FOR(0, a.size(), x, [&](I i, D s) { return sin(s) * a[i]; }); })(a[0]);
  };
  CHECK_THROWS_WITH(
      compile(hessian<mode::reverse>(derived)),
      Catch::Contains(
          "hessian<mode::reverse>: expected a program without derivatives inside, got one; use hessian(f)"));
}
