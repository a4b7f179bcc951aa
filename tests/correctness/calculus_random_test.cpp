// Random terms of the calculus: all transformations agree with each other, with central differences, and with
// the compiler.
//
// RapidCheck shrinks what fails. RC_PARAMS="seed=7 max_success=10000" runs other and more terms.
#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "lantern/lantern.hpp"
#include "random_term.hpp"

using namespace lantern::calculus;
using lantern::test::RandomTerm;

namespace {

// Before RapidCheck reads it, at its first property.
const bool fixed_seed = setenv("RC_PARAMS", "seed=20190801", /*overwrite=*/0) == 0;

/// Checks `property` of `count` random terms R -> R.
template <class Property>
void for_random_terms(const std::string& name, int count, bool over_rep, const Property& property) {
  REQUIRE(fixed_seed);
  auto parameters = rc::detail::configuration().testParams;
  if (parameters.maxSuccess == rc::detail::TestParams().maxSuccess) parameters.maxSuccess = count;
  const auto result = rc::detail::checkTestable(
      [&] {
        const auto choices = *rc::gen::scale(
            2.0, rc::gen::container<std::vector<std::uint8_t>>(rc::gen::inRange<std::uint8_t>(0, 255)));
        property(RandomTerm(choices, over_rep).function());
      },
      rc::detail::TestMetadata{name, name}, parameters);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  if (result.template is<rc::detail::SuccessResult>()) {
    SUCCEED(text.str());
  } else {
    FAIL_CHECK(text.str());
  }
}

/// What the arithmetic of a result loses: it is compared relative to the largest of the numbers compared
/// and 1.
bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

void expect_close(const std::string& who, double found, double expected, double tolerance, const Term& f,
                  double at) {
  if (close(found, expected, tolerance)) return;
  RC_LOG() << to_string(f) << "\nat " << at << ": " << who << " gives " << found << ", expected " << expected
           << "\n";
  RC_FAIL("derivatives differ");
}

/// f is smooth near `at` as far as two steps can tell: the slope. A jump or a kink shows as slopes that
/// disagree.
std::optional<double> differences(const Term& f, double at) {
  const auto slope = [&](double h) { return (call(f, at + h) - call(f, at - h)) / (2 * h); };
  const double h = 1e-4, wide = slope(h), narrow = slope(h / 2);
  if (!close(wide, narrow, 1e-5)) return {};
  return (4 * narrow - wide) / 3;
}

constexpr double points[] = {0.5, -1.25};

}  // namespace

TEST_CASE("Figs. 4, 9, 10 and 11 agree on random terms", "[calculus][random]") {
  int smooth = 0, all = 0;
  for_random_terms("first derivatives", 1500, false, [&](const Term& f) {
    const Term by_forward = forward(f), by_control = reverse_by_control(f),
               by_meta = reverse_by_meta_control(f), by_cps = reverse_by_cps(f);
    RC_ASSERT(control_level(by_meta) == 0);
    RC_ASSERT(control_level(by_cps) == 0);
    for (double at : points) {
      const double expected = call(by_forward, at);
      expect_close("Fig. 9", call(by_control, at), expected, 1e-9, f, at);
      expect_close("Fig. 10", call(by_meta, at), expected, 1e-9, f, at);
      expect_close("Fig. 11", call(by_cps, at), expected, 1e-9, f, at);
      ++all;
      if (const auto slope = differences(f, at)) {
        ++smooth;
        expect_close("central differences", *slope, expected, 1e-5, f, at);
      }
    }
  });
  CHECK(smooth > all * 8 / 10);  // the differences judge most of them
}

TEST_CASE("all compositions of two agree on random terms", "[calculus][random]") {
  for_random_terms("second derivatives", 200, false, [](const Term& f) {
    const Place l = Place::current();
    const Term expected = forward(forward(f));
    for (const auto outer : {forward, reverse_by_control, reverse_by_meta_control, reverse_by_cps})
      for (const auto inner : {forward, reverse_by_control, reverse_by_meta_control, reverse_by_cps}) {
        const bool takes_control = outer == forward || outer == reverse_by_control;
        if (inner == reverse_by_control && !takes_control) continue;
        const Term second = outer(inner(f, l), l);
        for (double at : points)
          expect_close("second derivative", call(second, at), call(expected, at), 1e-8, f, at);
      }
  });
}

TEST_CASE("reverse over reverse by two levels of control (Fig. 13) on random terms", "[calculus][random]") {
  int smooth = 0, all = 0;
  for_random_terms("Fig. 13", 600, false, [&](const Term& f) {
    const Term first = reverse_by_control(f), second = reverse_by_control(first);
    RC_ASSERT(control_level(second) == 2);
    for (double at : points) {
      const double expected = call(second, at);
      expect_close("forward over forward", call(forward(forward(f)), at), expected, 1e-8, f, at);
      expect_close("forward over reverse", call(forward(first), at), expected, 1e-8, f, at);
      expect_close("reverse over forward", call(reverse_by_control(forward(f)), at), expected, 1e-8, f, at);
      ++all;
      if (const auto slope = differences(first, at)) {
        ++smooth;
        expect_close("central differences", *slope, expected, 1e-5, f, at);
      }
    }
  });
  CHECK(smooth > all * 8 / 10);
}

TEST_CASE("third derivatives by three levels of control on random terms", "[calculus][random]") {
  for_random_terms("three levels", 60, false, [](const Term& f) {
    if (size(f) > 60) return;
    const Term third = reverse_by_control(reverse_by_control(reverse_by_control(f)));
    for (double at : points)
      expect_close("third derivative", call(third, at), call(forward(forward(forward(f))), at), 1e-7, f, at);
  });
}

TEST_CASE("the paper's control operators and grad's own over Rep on random terms", "[calculus][random]") {
  using namespace lantern;
  for_random_terms("Fig. 13 over Rep", 150, true, [](const Term& f) {
    const Term first = reverse_by_control(f);
    const auto slope = eager(calculus::program(first)),
               by_figure = eager(calculus::program(reverse_by_control(first)));
    const auto grad_of_figure = eager(grad(calculus::program(first)));
    const auto by_handlers = eager(grad(grad(calculus::program(f))));
    for (double at : points) {
      const double expected = call(forward(forward(f)), at);
      expect_close("Fig. 9", slope(at), call(first, at), 1e-9, f, at);
      expect_close("Fig. 9 of Fig. 9", by_figure(at), expected, 1e-8, f, at);
      expect_close("grad of Fig. 9", grad_of_figure(at), expected, 1e-8, f, at);
      expect_close("grad of grad", by_handlers(at), expected, 1e-8, f, at);
    }
  });
}

TEST_CASE("Figs. 10 and 11 give the same term where there is no conditional", "[calculus][random]") {
  const auto has_case = [](const Term& f) {
    const std::string text = to_string(f);
    return text.find("case ") != std::string::npos || text.find("if ") != std::string::npos;
  };
  int compared = 0;
  for_random_terms("same term", 500, false, [&](const Term& f) {
    if (has_case(f)) return;
    ++compared;
    if (!alpha_equal(reverse_by_meta_control(f), reverse_by_cps(f))) RC_FAIL(to_string(f));
  });
  CHECK(compared > 100);
}

TEST_CASE("renaming bound variables changes nothing", "[calculus][random]") {
  for_random_terms("renaming", 300, false, [](const Term& f) {
    const Term shadowing = let("x", 2, apply(lambda("x", f), 3));
    RC_ASSERT(alpha_equal(shadowing, distinct_binders(shadowing)));
    RC_ASSERT(!alpha_equal(shadowing, let("x", 2, apply(lambda("x", apply(f, 1)), 3))));
    RC_ASSERT(call(f, 0.5) == call(distinct_binders(f), 0.5) || std::isnan(call(f, 0.5)));
  });
}

TEST_CASE("the compiler agrees with the calculus on random terms", "[calculus][random]") {
  using namespace lantern;
  int compiled = 0;
  for_random_terms("over Rep", 150, true, [&](const Term& f) {
    const auto over_rep = calculus::program(f);
    const auto value = eager(over_rep);
    const auto reverse_now = eager(grad(over_rep));
    const auto forward_now = eager(grad<mode::forward>(over_rep));
    const auto naive = compile(grad(over_rep), {.target = Target::c, .opt = 0});
    const auto fast = compile(grad(over_rep), {.target = Target::c, .opt = 3});
    const bool by_clang = ++compiled % 15 == 0;
    const auto clang = by_clang ? compile(grad(over_rep), {.target = Target::cpp, .opt = 3}) : fast;
    const auto second = compile(grad(grad(over_rep)), {.target = Target::c, .opt = 3});
    const Term derivative = reverse_by_cps(f), by_forward = forward(f), by_control = reverse_by_control(f),
               by_meta = reverse_by_meta_control(f), curvature = forward(derivative);
    for (double at : points) {
      const double expected = call(derivative, at);
      expect_close("Fig. 4", call(by_forward, at), expected, 1e-9, f, at);
      expect_close("Fig. 9", call(by_control, at), expected, 1e-9, f, at);
      expect_close("Fig. 10", call(by_meta, at), expected, 1e-9, f, at);
      expect_close("opt 3, second derivative", second(at), call(curvature, at), 1e-8, f, at);
      expect_close("eager value", value(at), call(f, at), 1e-9, f, at);
      expect_close("eager reverse", reverse_now(at), expected, 1e-9, f, at);
      expect_close("eager forward", forward_now(at), expected, 1e-9, f, at);
      expect_close("opt 0", naive(at), expected, 1e-9, f, at);
      expect_close("opt 3", fast(at), expected, 1e-9, f, at);
      expect_close("opt 3, Clang", clang(at), expected, 1e-9, f, at);
    }
  });
  CHECK(compiled >= 150);
}

TEST_CASE("every staged mode agrees with the calculus on random terms", "[calculus][random]") {
  using namespace lantern;
  int compiled = 0;
  for_random_terms("staged modes", 60, true, [&](const Term& f) {
    const auto over_rep = calculus::program(f);
    const Term derivative = reverse_by_cps(f);
    const auto check = [&](const char* who, const auto& g) {
      const auto staged = compile(g, {.target = Target::c, .opt = ++compiled % 2 == 0 ? 0 : 3});
      for (double at : points) expect_close(who, staged(at), call(derivative, at), 1e-9, f, at);
    };
    check("forward", grad<mode::forward>(over_rep));
    check("cps", grad<mode::cps>(over_rep));
    check("global tape", grad<mode::global_tape>(over_rep));
    check("functional", grad<mode::functional>(over_rep));
    check("continuation", grad<mode::continuation>(over_rep));
    check("taped", grad<mode::taped>(over_rep));
    check("checkpointed", grad<mode::checkpointed>(over_rep));
    check("divide and conquer", grad<mode::divide_and_conquer>(over_rep));
  });
  CHECK(compiled >= 8 * 60);
}

TEST_CASE("every mode agrees with the calculus on random terms", "[calculus][random]") {
  using namespace lantern;
  for_random_terms("modes", 400, true, [&](const Term& f) {
    const auto over_rep = calculus::program(f);
    const auto cps = eager(grad<mode::cps>(over_rep));
    const auto global_tape = eager(grad<mode::global_tape>(over_rep));
    const auto functional = eager(grad<mode::functional>(over_rep));
    const auto continuation = eager(grad<mode::continuation>(over_rep));
    const auto taped = eager(grad<mode::taped>(over_rep));
    const auto checkpointed = eager(grad<mode::checkpointed>(over_rep));
    const auto taylor_series = eager(taylor<2>(over_rep));
    const Term first = reverse_by_cps(f), second = forward(first);
    for (double at : points) {
      const double expected = call(first, at);
      expect_close("cps", cps(at), expected, 1e-9, f, at);
      expect_close("global tape", global_tape(at), expected, 1e-9, f, at);
      expect_close("functional", functional(at), expected, 1e-9, f, at);
      expect_close("taped", taped(at), expected, 1e-9, f, at);
      expect_close("checkpointed", checkpointed(at), expected, 1e-9, f, at);
      // It costs by the paths through the program.
      if (size(f) < 80) expect_close("continuation", continuation(at), expected, 1e-9, f, at);
      const auto series = taylor_series(at, 1.0);
      expect_close("Taylor, first", series[1], expected, 1e-9, f, at);
      expect_close("Taylor, second", series[2], call(second, at), 1e-8, f, at);
    }
  });
}
