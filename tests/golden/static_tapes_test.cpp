// Tapes of bounded size lie in arrays of their function: for which loops, and that values are the same.
#include <cmath>
#include <string>

#include <catch2/catch.hpp>
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;
using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;

namespace {

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// Whether all that the gradient saves lies in arrays of the function.
template <class F>
bool is_static(F f) {
  const std::string text = compile(grad(f), {.target = Target::c, .opt = 3}).source("c");
  const bool in_workspace = has(text, "lt_room_") || has(text, "lt_more_") || has(text, "lt_push_") || has(text, "lt_record_");
  return has(text, "_memory[") && !in_workspace;
}

/// The gradient at some numbers by each compiler, beside the one that runs the program.
template <class F>
void same_gradient(F f) {
  const auto gradient = grad(f);
  const auto reference = eager(gradient);
  for (const Target target : {Target::c, Target::cpp})
    for (const int opt : {0, 1, 3}) {
      const auto compiled = compile(gradient, {.target = target, .opt = opt});
      for (int call = 0; call < 2; ++call)  // what a call leaves must not be seen by the next
        for (const double x : {0.3, 1.0, 2.5}) CHECK(compiled(x) == Approx(reference(x)).epsilon(1e-12));
    }
}

/// Newton's iteration for the square root of x + 1.
D root(const D& x, std::int64_t steps) {
  return FOR(0, steps, x, [&](I, D y) { return 0.5 * (y + (x + 1.0) / y); });
}

}  // namespace

TEST_CASE("static tapes: a constant number of iterations", "[tape]") {
  const auto newton = [](D x) { return root(x, 10); };
  CHECK(is_static(newton));
  same_gradient(newton);
  // No segments: one loop forward, one backward.
  const std::string text = compile(grad(newton), {.target = Target::c, .opt = 3}).source("c");
  CHECK(has(text, "for ("));
  CHECK_FALSE(has(text, "while ("));
}

TEST_CASE("static tapes: nests of constant bounds, and branches in them", "[tape]") {
  const auto nest = [](D x) {
    return FOR(0, 4, x, [&](I i, D y) {
      const D row = FOR(0, 3, y, [&](I j, D z) { return z * 0.9 + sin(z) * x + 0.1 * cast<double>(i + j); });
      return row * 0.5 + y;
    });
  };
  CHECK(is_static(nest));
  same_gradient(nest);
  const auto branches = [](D x) {
    return FOR(0, 6, x, [&](I i, D y) {
      return IF(y > 1.0, [&] { return y * sin(y) * 0.4; }, [&] { return exp(y) * 0.7 + cast<double>(i); });
    });
  };
  same_gradient(branches);
}

TEST_CASE("static tapes: a short loop in each iteration of a long one", "[tape]") {
  const auto sum_of_roots = [](A a) {
    return FOR(0, a.size(), 0.0, [&](I i, D sum) { return sum + root(a[i], 10) * a[i]; });
  };
  const auto gradient = grad(sum_of_roots);
  const std::vector<double> x{0.5, 1.5, 2.5, 0.1, 4.0, 3.0, 0.9, 0.8, 0.7, 2.2, 1.1};
  const std::vector<double> expected = eager(gradient)(x);
  for (const Target target : {Target::c, Target::cpp})
    for (const int lanes : {0, 4, 8}) {
      const auto compiled = compile(gradient, {.target = target, .opt = 3, .lanes = lanes});
      for (int call = 0; call < 2; ++call) {
        const std::vector<double> got = compiled(x);
        for (std::size_t i = 0; i < x.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
      }
      CHECK(has(compiled.source(target == Target::c ? "c" : "cpp"), "_memory["));
    }
}

TEST_CASE("static tapes: loops without a bound, and long ones, use the workspace", "[tape]") {
  const auto unbounded = [](D x) { return WHILE(x, [](D y) { return y < 100.0; }, [](D y) { return y * y + 1.1; }); };
  CHECK_FALSE(is_static(unbounded));
  same_gradient(unbounded);
  const auto long_loop = [](D x) { return root(x, 5000); };
  CHECK_FALSE(is_static(long_loop));
  same_gradient(long_loop);
}

TEST_CASE("static tapes: second order", "[tape]") {
  const auto newton = [](D x) { return root(x, 6) * x; };
  const auto second = compile(grad(grad(newton)), {.target = Target::c, .opt = 3});
  // d^2/dx^2 of x sqrt(x + 1), to which six steps have converged.
  const auto exact = [](double x) { return 1.0 / std::sqrt(x + 1) - 0.25 * x * std::pow(x + 1, -1.5); };
  for (const double x : {0.5, 1.0, 2.0}) CHECK(second(x) == Approx(exact(x)).epsilon(1e-6));
}
