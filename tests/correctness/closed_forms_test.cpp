// First, second and third derivatives against closed forms: programs with branches, loops and recursion, by
// every ordered pair of modes and every triple of some, eagerly and staged.
//
// Each program computes, near the points where it is asked, a function whose derivatives are written beside
// it, so that no mode is the judge of another.
#include <catch2/catch.hpp>
#include <cmath>

#include "ways.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<std::int64_t>;

/// The value and the derivatives of order 1 to 3 of what a program computes.
using Jet = std::array<double, 4>;

struct ClosedForm {
  const char* name;
  Function f;
  std::function<Jet(double)> jet;
  std::vector<double> points;
};

/// c x^n.
Jet power_jet(double c, int n, double x) {
  Jet jet{};
  for (int k = 0; k < 4 && k <= n; ++k) {
    jet[static_cast<std::size_t>(k)] = c * std::pow(x, n - k);
    c *= n - k;
  }
  return jet;
}
Jet operator+(Jet a, const Jet& b) {
  for (std::size_t k = 0; k < 4; ++k) a[k] += b[k];
  return a;
}
std::function<Jet(double)> power_of(int n, double c = 1) {
  return [=](double x) { return power_jet(c, n, x); };
}

D power_by_recursion(const D& x, std::int64_t n) {
  const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, D b, I k) {
    return IF(
        k == 0, [&] { return D(1.0); }, [&] { return b * self(b, k - 1); });
  });
  return power(x, n);
}

const std::vector<ClosedForm>& corpus() {
  static const std::vector<ClosedForm> all{
      {"x^5 by a loop",
       [](D x) { return FOR(0, 5, D(1.0), [&](I, D t) { return t * x; }); },
       power_of(5),
       {0.7, -1.3}},
      {"x^4 by recursion", [](D x) { return power_by_recursion(x, 4); }, power_of(4), {0.7, -1.3}},
      // Fig. 3 of "Verifying an Effect-Handler-Based Define-By-Run Reverse-Mode AD Library".
      {"x^6 by squaring",
       [](D x) {
         const auto [n, result, base] = WHILE(
             std::tuple(I(6), D(1.0), x), [](I k, D, D) { return k > 0; },
             [](I k, D r, D b) {
               const D now = IF(
                   k % 2 == 0, [&] { return r; }, [&] { return r * b; });
               return std::tuple(k / 2, now, b * b);
             });
         return result;
       },
       power_of(6),
       {0.7, -1.3}},
      {"x^3 for positive numbers, else -2 x^2",
       [](D x) {
         return IF(
             x > 0.0, [&] { return x * x * x; }, [&] { return -2.0 * x * x; });
       },
       [](double x) { return x > 0 ? power_jet(1, 3, x) : power_jet(-2, 2, x); },
       {0.7, -1.3}},
      {"a branch in a branch, whose results are used twice",
       [](D x) {
         const auto [a, b] = IF(
             x > 0.0,
             [&] {
               return IF(
                   x > 1.0, [&] { return std::tuple(x, x * x); }, [&] { return std::tuple(x * x, D(3.0)); });
             },
             [&] { return std::tuple(x, x); });
         return a * b * a;
       },
       [](double x) { return x > 1   ? power_jet(1, 4, x)
                             : x > 0 ? power_jet(3, 4, x)
                                     : power_jet(1, 3, x); },
       {1.6, 0.7, -1.3}},
      {"1 + x + x^2 + x^3 by a loop in a loop",
       [](D x) {
         return FOR(0, 4, D(0.0),
                    [&](I i, D s) { return s + FOR(0, i, D(1.0), [&](I, D t) { return t * x; }); });
       },
       [](double x) {
         return power_jet(1, 0, x) + power_jet(1, 1, x) + power_jet(1, 2, x) + power_jet(1, 3, x);
       },
       {0.7, -1.3}},
      {"x^7 by a recursion like a tree",
       [](D x) {
         const auto walk = FUN<double(double, std::int64_t)>("walk", [](auto self, D b, I n) {
           return IF(
               n == 0, [&] { return b; }, [&] { return b * self(b, n - 1) * self(b, n - 1); });
         });
         return walk(x, 2);
       },
       power_of(7),
       {0.7, -1.3}},
      {"8 x^4 by two functions that call each other",
       [](D x) {
         Fun<double(double, std::int64_t)> even("even"), odd("odd");
         even.define([odd](D b, I n) {
           return IF(
               n == 0, [&] { return D(1.0); }, [&] { return 2.0 * b * odd(b, n - 1); });
         });
         odd.define([even](D b, I n) {
           return IF(
               n == 0, [&] { return D(1.0); }, [&] { return b * even(b, n - 1); });
         });
         return 2.0 * even(x, 4);
       },
       power_of(4, 8),
       {0.7, -1.3}},
      {"the first power of x from 20 on, by a loop that the number ends",
       [](D x) {
         return WHILE(
             x, [](D t) { return t < 20.0; }, [&](D t) { return t * x; });
       },
       [](double x) {
         int n = 1;
         while (std::pow(x, n) < 20) ++n;
         return power_jet(1, n, x);
       },
       {1.6, 5.0, 30.0}},
      {"x times the largest power of 1/2 that makes it at most 1",
       [](D x) {
         return WHILE(
             x, [](D t) { return t > 1.0; }, [](D t) { return t * 0.5; });
       },
       [](double x) {
         double c = 1;
         while (c * x > 1) c /= 2;
         return power_jet(c, 1, x);
       },
       {0.7, 10.0}},
      {"exp(sin x)",
       [](D x) { return exp(sin(x)); },
       [](double x) {
         const double s = std::sin(x), c = std::cos(x), e = std::exp(s);
         return Jet{e, c * e, (c * c - s) * e, (c * c * c - 3 * s * c - c) * e};
       },
       {0.7, -1.3}},
      {"sin(exp(-x / 2)) x",
       [](D x) { return sin(exp(-0.5 * x)) * x; },
       [](double x) {
         const double u = std::exp(-x / 2), s = std::sin(u), c = std::cos(u);
         // g = sin u with u' = -u / 2
         const double g1 = -u / 2 * c, g2 = u / 4 * c - u * u / 4 * s,
                      g3 = -u / 8 * c + 3 * u * u / 8 * s + u * u * u / 8 * c;
         return Jet{s * x, s + g1 * x, 2 * g1 + g2 * x, 3 * g2 + g3 * x};
       },
       {0.7, -1.3}},
      {"exp(3 x) as a product in a loop, divided by a power in a loop",
       [](D x) {
         const D e = FOR(0, 3, D(1.0), [&](I, D t) { return t * exp(x); });
         return e / FOR(0, 2, D(1.0), [&](I, D t) { return t * x; });
       },
       [](double x) {
         // e^(3 x) x^-2
         const double e = std::exp(3 * x), p0 = 1 / (x * x), p1 = -2 * p0 / x, p2 = -3 * p1 / x,
                      p3 = -4 * p2 / x;
         return Jet{e * p0, e * (3 * p0 + p1), e * (9 * p0 + 6 * p1 + p2),
                    e * (27 * p0 + 27 * p1 + 9 * p2 + p3)};
       },
       {0.7, -1.3}},
      {"x^4 through an array that a loop changes",
       [](D x) {
         const A a = FOR(0, 3, fill(x, 4), [&](I i, A t) { return t.set(i + 1, t[i] * x); });
         return a[3];
       },
       power_of(4),
       {0.7, -1.3}},
      {"x^5 in a variable that branches assign",
       [](D x) {
         Var<double> v = x;
         FOR(0, 6, [&](I i) { IF(i % 3 != 0, [&] { v = v * x; }); });
         return v;
       },
       power_of(5),
       {0.7, -1.3}},
      {"a checkpointed part in a loop, x^7",
       [](D x) {
         const auto cube = checkpoint(sig<double(double, double)>([](D t, D b) { return t * b * b * b; }));
         return FOR(0, 2, x, [&](I, D t) { return cube(t, x); });
       },
       power_of(7),
       {0.7, -1.3}},
      {"c x^2, where c is x without its derivative",
       [](D x) { return x * stop_gradient(x) * x; },
       [](double x) { return power_jet(x, 2, x); },
       {0.7, -1.3}},
      {"2, whatever x", [](D) { return D(2.0); }, power_of(0, 2), {0.7}},
  };
  return all;
}

/// The programs on which triples are tried.
std::vector<ClosedForm> part_of_corpus() {
  std::vector<ClosedForm> part;
  for (const ClosedForm& p : corpus()) {
    const std::string name = p.name;
    if (name == "x^5 by a loop" || name == "x^4 by recursion" || name == "exp(sin x)" ||
        name == "x^3 for positive numbers, else -2 x^2" || name == "x^7 by a recursion like a tree" ||
        name == "1 + x + x^2 + x^3 by a loop in a loop" ||
        name == "the first power of x from 20 on, by a loop that the number ends")
      part.push_back(p);
  }
  return part;
}

/// Calls each(x, derivative of order k at x) for the points of a program.
template <class Each>
void for_each_point(const ClosedForm& p, std::size_t k, const Each& each) {
  for (const double x : p.points) each(x, p.jet(x)[k]);
}

void check_eager(const std::string& what, const ClosedForm& p, const Function& f, std::size_t k) {
  for_each_point(p, k, [&](double x, double expected) {
    INFO(what << " of " << p.name << " at " << x);
    CHECK(eager(f)(x) == Approx(expected).epsilon(1e-10).margin(1e-11));
  });
}

void check_staged(const std::string& what, const ClosedForm& p, const Function& f, std::size_t k, int opt) {
  INFO(what << " of " << p.name << ", opt " << opt);
  const auto compiled = compile(f, {.target = Target::c, .opt = opt});
  for_each_point(p, k, [&](double x, double expected) {
    INFO("at " << x);
    CHECK(compiled(x) == Approx(expected).epsilon(1e-10).margin(1e-11));
  });
}

}  // namespace

TEST_CASE("values and first derivatives are the closed forms", "[closed forms]") {
  for (const ClosedForm& p : corpus()) {
    check_eager("value", p, p.f, 0);
    check_staged("value", p, p.f, 0, 3);
    for (const Way& w : with_products(eager_ways())) check_eager(w.name, p, w.grad(p.f), 1);
    for (const Way& w : with_products(ways_of_modes()))
      for (const int opt : {0, 3}) check_staged(w.name, p, w.grad(p.f), 1, opt);
  }
}

TEST_CASE("second derivatives by every ordered pair of modes", "[closed forms]") {
  for (const ClosedForm& p : corpus())
    for (const Way& outer : with_products(eager_ways()))
      for (const Way& inner : with_products(eager_ways()))
        check_eager(outer.name + " of " + inner.name, p, outer.grad(inner.grad(p.f)), 2);
}

TEST_CASE("second derivatives by every ordered pair of modes, staged", "[closed forms]") {
  for (const ClosedForm& p : corpus())
    for (const Way& outer : with_products(ways_of_modes()))
      for (const Way& inner : with_products(ways_of_modes()))
        check_staged(outer.name + " of " + inner.name, p, outer.grad(inner.grad(p.f)), 2, 3);
}

TEST_CASE("third derivatives by triples of modes", "[closed forms]") {
  const std::vector<Way> ways = eager_ways();
  for (const ClosedForm& p : part_of_corpus())
    for (const Way& a : ways)
      for (const Way& b : ways)
        for (const Way& c : ways)
          check_eager(a.name + " of " + b.name + " of " + c.name, p, a.grad(b.grad(c.grad(p.f))), 3);
}

TEST_CASE("third derivatives by triples of modes, staged", "[closed forms]") {
  const auto one_of = [](const Way& w) {
    return w.name == "reverse" || w.name == "forward" || w.name == "taped" || w.name == "continuation" ||
           w.name == "divide and conquer";
  };
  for (const ClosedForm& p : part_of_corpus())
    for (const Way& a : ways_of_modes())
      for (const Way& b : ways_of_modes())
        for (const Way& c : ways_of_modes())
          if (one_of(a) && one_of(b) && one_of(c))
            check_staged(a.name + " of " + b.name + " of " + c.name, p, a.grad(b.grad(c.grad(p.f))), 3, 1);
}

TEST_CASE("Taylor series and Hessian-vector products are the closed forms", "[closed forms]") {
  for (const ClosedForm& p : corpus()) {
    const auto series = eager(taylor<3>(p.f));
    const auto staged = compile(taylor<3>(p.f), {.target = Target::c, .opt = 3});
    for (const double x : p.points) {
      const auto now = series(x, 1.0), compiled = staged(x, 1.0);
      for (std::size_t k = 0; k < 4; ++k) {
        INFO(p.name << " at " << x << ", order " << k);
        CHECK(now[k] == Approx(p.jet(x)[k]).epsilon(1e-10).margin(1e-11));
        CHECK(compiled[k] == Approx(p.jet(x)[k]).epsilon(1e-10).margin(1e-11));
      }
    }
    const Function curvature = [h = hvp(p.f)](D x) { return h(x, 1.0); };
    check_eager("hvp", p, curvature, 2);
    check_staged("hvp", p, curvature, 2, 3);
  }
}

// What a pair does not do it refuses, whatever the order.
TEST_CASE("staged pairs with mode::closures are refused", "[closed forms]") {
  for (const Way& w : ways_of_modes())
    for (const bool outside : {true, false}) {
      INFO(w.name << (outside ? ", closures outside" : ", closures inside"));
      const Function f = corpus()[0].f;
      const Function pair = outside ? Function(grad<mode::closures>(w.grad(f))) : w.grad(grad<mode::closures>(f));
      CHECK_THROWS_WITH(
          compile(pair, {.target = Target::c}),
          Catch::Contains(
              "grad<mode::closures>: expected to be run eagerly, got a program that is being staged; write "
              "eager(grad<mode::closures>(f)), or grad<mode::global_tape>(f), which treats a call of a "
              "staged function in the same way"));
    }
}

// ---- trees ----

namespace {

using Fold = std::function<D(D, Rep<Tree<double>>)>;
struct FoldWay {
  const char* name;
  std::function<Fold(Fold)> grad;
};
template <mode M>
FoldWay fold_by(const char* name) {
  return {name, [](const Fold& f) { return Fold(lantern::grad<0, M>(f)); }};
}
std::vector<FoldWay> fold_ways() {
  return {fold_by<mode::reverse>("reverse"),
          fold_by<mode::forward>("forward"),
          fold_by<mode::cps>("cps"),
          fold_by<mode::global_tape>("global tape"),
          fold_by<mode::functional>("functional"),
          fold_by<mode::continuation>("continuation"),
          fold_by<mode::taped>("taped"),
          fold_by<mode::checkpointed>("checkpointed"),
          fold_by<mode::divide_and_conquer>("divide and conquer")};
}

}  // namespace

// x at every empty tree, the product of the children and the node's value above: 30 x^4 for three nodes.
TEST_CASE("second derivatives of a fold over a tree by every ordered pair of modes", "[closed forms]") {
  const Fold product = [](D x, Rep<Tree<double>> tree) {
    return TREE(x, tree, [](D l, D r, Rep<Tree<double>> node) { return l * r * node.value(); });
  };
  const Tree<double> t(2.0, Tree<double>(3.0), Tree<double>(5.0));
  const double x = 0.7, expected = 30 * 12 * x * x;
  for (const FoldWay& outer : fold_ways())
    for (const FoldWay& inner : fold_ways()) {
      INFO(outer.name << " of " << inner.name);
      const Fold second = outer.grad(inner.grad(product));
      CHECK(eager(second)(x, t) == Approx(expected));
      CHECK(compile(second, {.target = Target::c, .opt = 1})(x, t) == Approx(expected));
    }
}

// ---- perturbation confusion ----

namespace {

/// A program of x at a point, and what the papers say it gives.
void check_confusion(const std::string& what, const Function& f, double x, double expected, bool staged) {
  INFO(what);
  CHECK(eager(f)(x) == Approx(expected));
  if (staged) CHECK(compile(f, {.target = Target::c, .opt = 1})(x) == Approx(expected));
}

}  // namespace

TEST_CASE("the papers' examples of perturbation confusion, for every ordered pair of modes",
          "[closed forms]") {
  const std::vector<Way> ways = with_products(eager_ways());
  for (const Way& outer : ways)
    for (const Way& inner : ways) {
      const bool staged = runs_staged(outer) && runs_staged(inner);
      const std::string pair = outer.name + " over " + inner.name + ": ";
      const auto check = [&](const char* what, const Function& f, double x, double expected) {
        check_confusion(pair + what, f, x, expected, staged);
      };
      // Thesis, 4.5: d/dy (d/dx x^3 at x = y) at y = 1.
      check("basic", outer.grad([&](D y) { return inner.grad([](D x) { return x * (x * x); })(y); }), 1.0,
            6.0);
      // Lantern paper, 2.4, and thesis, 4.5: d/dx (x d/dy (x + y)); 2 where the perturbations are confused.
      check("x (x + y)'", outer.grad([&](D x) {
        const D should_be_one = inner.grad([x](D y) { return x + y; })(1.0);
        return x * should_be_one;
      }),
            1.0, 1.0);
      // The same with a product: x d/dy (x y) = x^2.
      check("x (x y)'", outer.grad([&](D x) { return x * inner.grad([x](D y) { return x * y; })(1.0); }), 3.0,
            6.0);
      // Thesis, 4.5, after Manzyuk et al., "Confusion of Tagged Perturbations in Forward Automatic
      // Differentiation of Higher-Order Functions": s u f x = f(x + u), and ds f x, its derivative by u at 0,
      // is f'(x). ds twice is f'': 30 for x^3 at 5. The operator takes functions, and is applied to a
      // function made by itself.
      const auto ds = [](const Way& w, const Function& f) {
        return Function([w, f](D x) { return w.grad([f, x](D u) { return f(x + u); })(0.0); });
      };
      const Function cube = [](D y) { return y * (y * y); };
      check(
          "ds of ds", [&](D x) { return ds(outer, [&](D y) { return ds(inner, cube)(y); })(x); }, 5.0, 30.0);
      check("ds of the derivative", ds(outer, inner.grad(cube)), 5.0, 30.0);
      check("the derivative of ds", outer.grad(ds(inner, cube)), 5.0, 30.0);
    }
}

// Thesis, 4.5: d/dx (x d/dy (y d/dz (z (y x)) at z = 1) at y = 1) at x = 1.
TEST_CASE("three levels, for every ordered triple of modes", "[closed forms]") {
  const std::vector<Way> ways = eager_ways();
  for (const Way& a : ways)
    for (const Way& b : ways)
      for (const Way& c : ways) {
        const bool staged = runs_staged(a) && runs_staged(b) && runs_staged(c);
        const Function f = a.grad([&](D x) {
          return x *
                 b.grad([&c, x](D y) { return y * c.grad([x, y](D z) { return z * (y * x); })(1.0); })(1.0);
        });
        check_confusion(a.name + ", " + b.name + ", " + c.name, f, 1.0, 4.0, staged);
      }
}
