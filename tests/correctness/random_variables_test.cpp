// Random programs over variables that are assigned in every way: what is staged computes what C++ does, and
// its derivatives are those of dual numbers.
#include "random_variables.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "depth.hpp"
#include "dual.hpp"
#include "lantern/compiler/ad/derivative.hpp"
#include "lantern/compiler/driver/compile.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using Program = std::vector<VariableNode>;
using Result = std::array<double, 3>;  ///< value, slopes

const std::vector<std::array<double, 2>> points{{0.31, -0.72}, {1.63, 0.41}, {-2.07, 1.34}};

Result by_dual_numbers(const Program& p, double x, double y) {
  const Dual first = VariableMachine<Dual>::run(p, {x, 1}, y),
             second = VariableMachine<Dual>::run(p, x, {y, 1});
  return {VariableMachine<double>::run(p, x, y), first.d, second.d};
}
template <class F>
Result by_gradient(const F& f, double x, double y) {
  const auto [value, slopes] = f(x, y);
  return {value, std::get<0>(slopes), std::get<1>(slopes)};
}
bool close(const Result& a, const Result& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-8 * (1 + std::abs(a[i])))) return false;
  return true;
}

/// Empty, or what disagrees.
std::string disagreement(unsigned seed) {
  const Program program = RandomVariables(seed).program();
  const auto f = sig<double(double, double)>(
      [&program](const D& x, const D& y) { return VariableMachine<D>::run(program, x, y); });
  // Clang takes its time.
  const bool by_clang = seed % 100 == 0;
  std::string text;
  try {
    const auto plain = compile(value_and_grad(f), {.target = Target::c, .opt = 0});
    const auto passed = compile(value_and_grad(f), {.target = by_clang ? Target::cpp : Target::c});
    const auto forward = compile(value_and_grad<mode::forward>(f), {.target = Target::c, .opt = 0});
    const auto at_once = eager(value_and_grad(f));
    for (const auto& [x, y] : points) {
      const Result expected = by_dual_numbers(program, x, y);
      const auto judge = [&, &x = x, &y = y](const char* way, const Result& got) {
        if (!close(expected, got))
          text += fmt::format("seed {} at ({}, {}): {}: expected {}, got {}\n", seed, x, y, way,
                              fmt::join(expected, " "), fmt::join(got, " "));
      };
      judge("eager", by_gradient(at_once, x, y));
      judge("opt 0", by_gradient(plain, x, y));
      judge(by_clang ? "Clang" : "opt 3", by_gradient(passed, x, y));
      judge("forward", by_gradient(forward, x, y));
    }
  } catch (const std::exception& e) {
    text += fmt::format("seed {}: {}\n", seed, e.what());
  }
  return text;
}

void count(const VariableNode& n, std::map<Kind, int>& kinds) {
  ++kinds[n.kind];
  for (const VariableNode& part : n.parts) count(part, kinds);
}

}  // namespace

TEST_CASE("random programs have statements and expressions of every kind") {
  std::map<Kind, int> kinds;
  for (unsigned seed = 0; seed < 300; ++seed)
    for (const VariableNode& n : RandomVariables(seed).program()) count(n, kinds);
  for (int k = 0; k <= static_cast<int>(Kind::function); ++k) {
    INFO("kind " << k);
    CHECK(kinds[static_cast<Kind>(k)] >= 5);
  }
}

TEST_CASE("random programs over variables that are assigned in every way") {
  int wrong = 0;
  Seeds(300, 100000).each([&](unsigned seed) {
    const std::string text = disagreement(seed);
    if (text.empty()) return;
    ++wrong;
    UNSCOPED_INFO(text);
  });
  CHECK(wrong == 0);
}

TEST_CASE("a number that begins a state which nobody reads is declared where it is read") {
  // Its declaration once stood in one side of a branch, and its use in the other.
  for (const unsigned seed : {21667U, 56169U, 82712U}) CHECK(disagreement(seed).empty());
}
