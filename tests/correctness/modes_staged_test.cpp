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
         return sin(x) * exp(0.5 * x) + log(1.0 + x * x) + sqrt(x + 3.0) + tanh(x) / (2.0 + cos(x)) + atan(x) -
                pow(x + 2.0, 1.5) + erf(x) + abs(x - 7.0);
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
      {"no trip",
       [](D x) { return WHILE(x * x, [](D t) { return t > 1e9; }, [&](D t) { return t * x; }) * x; }},
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
               n == 0, [&] { return b * x; },
               [&] { return sin(self(b, n - 1)) + self(b * 0.5, n - 1) * b; });
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
        CHECK(staged_at(outer.grad(inner.grad(p.f)), 0.7, 1) == Approx(expected).epsilon(1e-10).margin(1e-12));
      }
  }
}
