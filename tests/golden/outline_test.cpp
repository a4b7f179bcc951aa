// outline: long programs become functions of bounded size, with the same results, and cost what their length
// says.
#include "lantern/compiler/passes/memory/outline.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <ctime>
#include <sstream>

#include "../correctness/agree.hpp"
#include "lantern/codegen/c/print_c.hpp"
#include "lantern/compiler/passes/direct/close.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;

/// A loop that runs while the program is staged: straight-line code.
auto unrolled(int steps) {
  return [steps](D x) {
    D a = x, b = 1.0 - x;
    for (int i = 0; i < steps; ++i) {
      const D c = a * b;
      a = sin(c) + 0.5 * a;
      if (i % 8 == 0) b = b * 0.99 + a * 1e-3;
    }
    return a + b;
  };
}

/// Loops over an array one after the other.
auto many_loops(int count) {
  return [count](A a) {
    A s = a;
    for (int k = 0; k < count; ++k)
      s = FOR(0, s.size(), s, [&](I i, A next) { return next.set(i, sin(s[i]) + 0.1 * (k % 3)); });
    return FOR(0, s.size(), D(0.0), [&](I i, D sum) { return sum + s[i] * s[i]; });
  };
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

/// The most operations in a block of a module's text.
std::size_t longest_function(const std::string& text) {
  std::size_t longest = 0, now = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("fun ")) now = 0;
    longest = std::max(longest, ++now);
  }
  return longest;
}

/// In pieces by Clang, and whole by tcc, to which long functions are as cheap as short ones.
template <class F, class... T>
void same_without(F f, T... arguments) {
  const auto cut = compile(value_and_grad<0>(f), {.target = Target::cpp, .opt = 2});
  const auto whole = compile(value_and_grad<0>(f), {.target = Target::c, .disabled_passes = {"outline"}});
  CHECK(cut.source("ir").find("_part(") != std::string::npos);
  CHECK(whole.source("ir").find("_part(") == std::string::npos);
  const auto [v, g] = cut(arguments...);
  const auto [w, h] = whole(arguments...);
  CHECK(v == Approx(w).epsilon(1e-12));
  if constexpr (std::is_same_v<std::decay_t<decltype(g)>, double>) {
    CHECK(g == Approx(h).epsilon(1e-12));
  } else {
    for (std::size_t i = 0; i < g.size(); ++i) CHECK(g[i] == Approx(h[i]).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("outline: straight-line code", "[passes]") {
  const auto f = unrolled(600);
  same_without(f, 0.3);
  const auto derivative = compile(grad(f), {.target = Target::c});
  CHECK(derivative(0.3) == Approx(eager(grad(f))(0.3)).epsilon(1e-12));
  const double h = 1e-6, up = eager(f)(0.3 + h), down = eager(f)(0.3 - h);
  CHECK(derivative(0.3) == Approx((up - down) / (2 * h)).epsilon(1e-5));
}

TEST_CASE("outline: arrays, integers and branches cross from piece to piece", "[passes]") {
  const auto f = [](A a) {
    A s = a;
    I at = 0;
    D sum = 0.0;
    for (int i = 0; i < 250; ++i) {
      s = s.set(i % 5, sin(s[at]) + 0.1 * s[(i + 2) % 5]);
      const D x = s[i % 5];
      sum = sum + IF(
                      x > 0.2, [&] { return x * x; }, [&] { return x - 0.1 * sum; });
      at = IF(
          x > 0.5, [&] { return I((i + 1) % 5); }, [&] { return (at + 1) % 5; });
    }
    return sum;
  };
  same_without(f, std::vector<double>{0.1, 0.9, -0.4, 0.6, 0.3});
}

TEST_CASE("outline: many loops, and a long body of a loop", "[passes]") {
  same_without(many_loops(80), std::vector<double>{0.1, 0.9, -0.4, 0.6, 0.3});
  const auto body = unrolled(500);
  same_without([body](D x, I n) { return FOR(0, n, x, [&](I, D s) { return 0.5 * body(s); }); }, 0.3, 3);
}

TEST_CASE("outline: as many lines as the program is long, in pieces of one size", "[passes][time]") {
  const auto timed = [](int steps) {
    const std::clock_t start = std::clock();
    const auto f = compile(grad(unrolled(steps)), {.target = Target::cpp, .opt = 3});
    CHECK(std::isfinite(f(0.3)));
    const double time = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    CHECK(longest_function(f.source("ir")) < 6000);
    return std::pair(time, lines(f.source("cpp")));
  };
  const auto [t1, l1] = timed(1000);
  const auto [t4, l4] = timed(4000);
  INFO(t1 << " s and " << t4 << " s, " << l1 << " and " << l4 << " lines");
  CHECK(10 * l4 < 44 * l1);
  CHECK(t4 < 8 * t1 + 1);
}

namespace {

std::unique_ptr<ir::Module> optimised(int steps) {
  const auto f = value_and_grad(unrolled(steps));
  auto module = driver::stage("f", {ir::F64}, detail::program_of(f).run);
  run_on_large_stack([&] {
    passes::run_pipeline(*module);
    passes::close(*module);
  });
  return module;
}

}  // namespace

TEST_CASE("parts: a huge program is several texts of one size, in proportion to its length", "[codegen]") {
  const auto small = optimised(100), large = optimised(5'000), huge = optimised(20'000);
  CHECK(codegen::print_c_parts(*small).size() == 1);
  CHECK(codegen::print_c_parts(*small)[0].text == codegen::print_c(*small));
  codegen::PrintOptions without_comments;
  without_comments.comments = false;
  const auto count = [&](const ir::Module& module) {
    const auto parts = codegen::print_c_parts(module, without_comments);
    std::size_t all = 0, general = 0;
    for (const codegen::SourcePart& part : parts) {
      CHECK(part.text.size() < 150'000);
      all += part.text.size();
      general += part.kind == codegen::PartKind::general ? part.text.size() : 0;
    }
    // What has a loop is short here: the entry alone, which calls the pieces.
    CHECK(general < all / 10);
    return std::pair(all, ir::size(module));
  };
  const auto [text1, ops1] = count(*large);
  const auto [text4, ops4] = count(*huge);
  CHECK(10 * text4 < 42 * text1);
  CHECK(10 * ops4 < 42 * ops1);
}

TEST_CASE("parts: functions call each other across them", "[codegen]") {
  const auto f = unrolled(3000);
  const auto reference = compile(value_and_grad(f), {.target = Target::c});
  for (const int opt : {1, 3}) {
    const auto compiled = compile(value_and_grad(f), {.target = Target::cpp, .opt = opt});
    const auto [v, g] = compiled(0.3);
    const auto [w, h] = reference(0.3);
    CHECK(v == Approx(w).epsilon(1e-12));
    CHECK(g == Approx(h).epsilon(1e-10));
  }
}

TEST_CASE("parts: loops, branches and tapes beside straight-line code", "[codegen]") {
  const auto f = [](D x, I n) {
    D a = x;
    for (int i = 0; i < 400; ++i) {
      a = sin(a) * 1.01 + 0.1 * x;
      if (i % 20 == 0) a = FOR(0, n, a, [&](I, D s) { return s * 0.9 + tanh(s) * 0.1; });
      if (i % 10 == 5)
        a = IF(
            a > 0.3, [&] { return a * a; }, [&] { return a + exp(-a); });
      for (int k = 0; k < 10; ++k) a = a * 0.5 + a / (1.0 + a * a);
    }
    return a;
  };
  const auto compiled = compile(value_and_grad<0>(f), {.target = Target::cpp, .opt = 2});
  const auto reference = compile(value_and_grad<0>(f), {.target = Target::c});
  const auto [v, g] = compiled(0.7, 3);
  const auto [w, h] = reference(0.7, 3);
  CHECK(v == Approx(w).epsilon(1e-12));
  CHECK(g == Approx(h).epsilon(1e-9));
}

TEST_CASE("outline: time in proportion to length", "[passes][time]") {
  // Two derivatives of 10,000 and of 50,000 operations, as processor time: others may be at work.
  const auto timed = [](int operations) {
    const std::clock_t start = std::clock();
    const auto f = compile(grad(unrolled(operations * 8 / 34)), {.target = Target::cpp, .opt = 3});
    CHECK(std::isfinite(f(0.3)));
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const double t1 = timed(10'000), t5 = timed(50'000);
  INFO(t1 << " s and " << t5 << " s");
  CHECK(t5 < 12 * t1 + 0.5);  // five times as many: in quadratic time 25 times as long
}

TEST_CASE("outline: time in proportion to the number of loops, and to the length of a loop's body",
          "[passes][time]") {
  const auto timed = [](auto f, auto... arguments) {
    const std::clock_t start = std::clock();
    const auto compiled = compile(f, {.target = Target::cpp, .opt = 2});
    compiled(arguments...);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const std::vector<double> a{0.1, 0.9, -0.4, 0.6, 0.3};
  // Some tens of loops are one function yet, whose loops cost less each.
  const double t60 = timed(grad(many_loops(60)), a), t240 = timed(grad(many_loops(240)), a);
  INFO(t60 << " s and " << t240 << " s");
  CHECK(t240 < 5.5 * t60 + 0.5);
  const auto looped = [](int steps) {
    const auto body = unrolled(steps);
    return [body](D x, I n) { return FOR(0, n, x, [&](I, D s) { return 0.5 * body(s); }); };
  };
  const double t150 = timed(grad<0>(looped(150)), 0.3, 3), t600 = timed(grad<0>(looped(600)), 0.3, 3);
  INFO(t150 << " s and " << t600 << " s");
  CHECK(t600 < 9 * t150 + 0.5);
}

TEST_CASE("outline: what is cut off, as text", "[passes]") {
  std::string text = "entry @f\n\nfun @f(%1: f64, %2: i64) -> f64, i64 {\n  %3 = sin %1 : f64\n";
  const int n = 3100;
  for (int i = 3; i < n; ++i)
    text += "  %" + std::to_string(i + 1) + " = mul %" + std::to_string(i) + ", %3 : f64\n";
  text += "  %" + std::to_string(n + 1) + " = add %2, %2 : i64\n  yield %" + std::to_string(n) + ", %" +
          std::to_string(n + 1) + "\n}\n";
  const auto module = ir::parse(text);
  passes::outline(*module);
  ir::verify(*module);
  const std::string got = ir::print(*module);
  CHECK(got.find("fun @f_part(") != std::string::npos);
  CHECK(longest_function(got) < 300);
  // What waits for another piece: sin(x), and the last product of each piece but the last.
  CHECK(got.find("fill ") != std::string::npos);
  CHECK(module->functions().size() == 14);
}
