// scatter_to_gather: which loops become one that sums for each element, which stay, and that nothing changes.
#include "lantern/compiler/passes/array/scatter_to_gather.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "../occurrences.hpp"
#include "interpreter.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

std::string gathered(const std::string& text) {
  const auto module = ir::parse(text);
  ir::verify(*module);
  passes::scatter_to_gather(*module);
  ir::verify(*module);
  return ir::print(*module);
}

using lantern::test::count;

/// A loop over 1 <= i < n - 1 with a sum %s, an array %g and an array %t, which its body makes %sum, %h, %u.
std::string program(const std::string& body, const std::string& start = "zeros_like %x",
                    const std::string& end = "  yield %gs, %ts, %sums\n") {
  return "entry @f\n\nfun @f(%x: f64[?], %y: f64[?], %n: i64) -> f64[?], f64[?], f64 {\n"
         "  %one = constant 1 : i64\n  %two = constant 2 : i64\n  %zero = constant 0 : f64\n"
         "  %m = sub %n, %one : i64\n  %z = " +
         start +
         " : f64[?]\n"
         "  %c, %sums, %gs, %ts = loop %one, %zero, %y, %z : i64, f64, f64[?], f64[?] "
         "while (%ci: i64, %cs: f64, %cg: f64[?], %ct: f64[?]) {\n"
         "    %less = lt %ci, %m : bool\n    yield %less\n"
         "  } do (%i: i64, %s: f64, %g: f64[?], %t: f64[?]) {\n"
         "    %before = sub %i, %one : i64\n    %after = add %i, %one : i64\n"
         "    %v = get %g, %i : f64\n    %w = get %x, %i : f64\n" +
         body + "    yield %after, %sum, %h, %u\n  }\n" + end + "}\n";
}

const std::string keep = "    %h = set %g, %i, %zero : f64[?]\n    %sum = add %s, %v : f64\n";
const std::string three =
    "    %a = add_at %t, %before, %v : f64[?]\n    %b = add_at %a, %i, %w : f64[?]\n"
    "    %u = add_at %b, %after, %v : f64[?]\n";

/// Whether the pass finds anything to do; the program must give what it gave.
bool gathers(const std::string& text) {
  const auto module = ir::parse(text);
  ir::verify(*module);
  using ir::test::Interpreter;
  const auto values = [&] {
    std::vector<std::vector<double>> all;
    for (std::int64_t n = 2; n < 7; ++n)
      all.push_back(
          Interpreter(20000, 255)
              .run(*module, {Interpreter::tensor({n}, {1, -2, 3, 0.25, 9, -3}),
                             Interpreter::tensor({n}, {5, 6, -7, 8, 0.5, 4}), Interpreter::integer(n)}));
    return all;
  };
  const auto before = values();
  const std::size_t loops = lantern::test::loops_in(ir::print(*module));
  passes::scatter_to_gather(*module);
  ir::verify(*module);
  CHECK(values() == before);
  return lantern::test::loops_in(ir::print(*module)) > loops;
}

}  // namespace

TEST_CASE("scatter_to_gather: the adjoint of a step of the heat equation", "[passes]") {
  CHECK(gathered(R"(entry @step

fun @step(%d: f64[?]) -> f64[?] {
  %n = dim[0] %d : i64
  %one = constant 1 : i64
  %zero = constant 0 : f64
  %m = sub %n, %one : i64
  %z = zeros_like %d : f64[?]
  %c, %gs, %ts = loop %one, %d, %z : i64, f64[?], f64[?] while (%ci: i64, %cg: f64[?], %ct: f64[?]) {
    %less = lt %ci, %m : bool
    yield %less
  } do (%i: i64, %g: f64[?], %t: f64[?]) {
    %before = sub %i, %one : i64
    %after = add %i, %one : i64
    %v = get %g, %i : f64
    %h = set %g, %i, %zero : f64[?]
    %a = add_at %t, %before, %v : f64[?]
    %u = add_at %a, %after, %v : f64[?]
    yield %after, %h, %u
  }
  %sum = add %ts, %gs : f64[?]
  yield %sum
}
)") == R"(entry @step

fun @step(%d: f64[?]) -> f64[?] {
  %n = dim[0] %d : i64
  %one = constant 1 : i64
  %zero = constant 0 : f64
  %m = sub %n, %one : i64
  %1 = undef : f64
  %ts = fill %1, %n : f64[?]
  %2 = lt %one, %m : bool
  %3 = constant 3 : i64
  %4 = le %3, %m : bool
  %5 = land %2, %4 : bool
  %ts.2 = branch %5 : f64[?] {
    %6 = constant 0 : i64
    %7 = get %d, %6 : f64
    %v = get %d, %one : f64
    %8 = add %7, %v : f64
    %ts.3 = set %ts, %6, %8 : f64[?]
    %9 = constant 2 : i64
    %v.2 = get %d, %9 : f64
    %ts.4 = set %ts.3, %one, %v.2 : f64[?]
    %10 = sub %n, %3 : i64
    %v.3 = get %d, %10 : f64
    %11 = sub %n, %9 : i64
    %ts.5 = set %ts.4, %11, %v.3 : f64[?]
    %12 = get %d, %m : f64
    %v.4 = get %d, %11 : f64
    %13 = add %12, %v.4 : f64
    %ts.6 = set %ts.5, %m, %13 : f64[?]
    %14, %ts.7 = loop %9, %ts.6 : i64, f64[?] while (%15: i64, %ts.8: f64[?]) {
      %16 = lt %15, %11 : bool
      yield %16
    } do (%17: i64, %ts.9: f64[?]) {
      %18 = add %17, %one : i64
      %v.5 = get %d, %18 : f64
      %19 = sub %17, %one : i64
      %v.6 = get %d, %19 : f64
      %20 = add %v.5, %v.6 : f64
      %ts.10 = set %ts.9, %17, %20 : f64[?]
      yield %18, %ts.10
    }
    yield %ts.7
  } else {
    %21 = constant 0 : i64
    %22, %ts.11 = loop %21, %ts : i64, f64[?] while (%23: i64, %ts.12: f64[?]) {
      %24 = lt %23, %n : bool
      yield %24
    } do (%25: i64, %ts.13: f64[?]) {
      %26 = get %d, %25 : f64
      %ts.14 = set %ts.13, %25, %26 : f64[?]
      %27 = add %25, %one : i64
      yield %27, %ts.14
    }
    %28, %ts.15 = loop %one, %ts.11 : i64, f64[?] while (%29: i64, %ts.16: f64[?]) {
      %30 = lt %29, %m : bool
      yield %30
    } do (%31: i64, %ts.17: f64[?]) {
      %ts.18 = set %ts.17, %31, %zero : f64[?]
      %32 = add %31, %one : i64
      yield %32, %ts.18
    }
    %33 = constant 2 : i64
    %34 = sub %n, %33 : i64
    %35 = imin %34, %33 : i64
    %36, %ts.19 = loop %21, %ts.15 : i64, f64[?] while (%37: i64, %ts.20: f64[?]) {
      %38 = lt %37, %35 : bool
      yield %38
    } do (%39: i64, %ts.21: f64[?]) {
      %40 = add %39, %one : i64
      %v.7 = get %d, %40 : f64
      %ts.22 = add_at %ts.21, %39, %v.7 : f64[?]
      yield %40, %ts.22
    }
    %41 = constant 4 : i64
    %42 = imin %n, %41 : i64
    %43, %ts.23 = loop %33, %ts.19 : i64, f64[?] while (%44: i64, %ts.24: f64[?]) {
      %45 = lt %44, %42 : bool
      yield %45
    } do (%46: i64, %ts.25: f64[?]) {
      %47 = sub %46, %one : i64
      %v.8 = get %d, %47 : f64
      %ts.26 = add_at %ts.25, %46, %v.8 : f64[?]
      %48 = add %46, %one : i64
      yield %48, %ts.26
    }
    yield %ts.23
  }
  yield %ts.2
}
)");
}

TEST_CASE("scatter_to_gather: additions to neighbours", "[passes]") {
  CHECK(gathers(program(three + keep)));
  CHECK(gathers(program(three + keep, "copy %x")));
  // The sum with the array of which elements became zero.
  const std::string joined = "  %both = add %ts, %gs : f64[?]\n  yield %both, %both, %sums\n";
  CHECK(gathers(program(three + keep, "zeros_like %x", joined)));
  // To the element before and twice to the iteration's own.
  CHECK(
      gathers(program("    %a = add_at %t, %before, %v : f64[?]\n    %b = add_at %a, %i, %w : f64[?]\n"
                      "    %u = add_at %b, %i, %v : f64[?]\n" +
                      keep)));
}

TEST_CASE("scatter_to_gather: loops that stay", "[passes]") {
  SECTION("one element") { CHECK_FALSE(gathers(program("    %u = add_at %t, %i, %v : f64[?]\n" + keep))); }
  SECTION("elements that are set, or read") {
    CHECK_FALSE(gathers(
        program("    %a = add_at %t, %before, %v : f64[?]\n    %u = set %a, %after, %v : f64[?]\n" + keep)));
    CHECK_FALSE(
        gathers(program("    %r = get %t, %before : f64\n    %a = add_at %t, %before, %r : f64[?]\n"
                        "    %u = add_at %a, %after, %v : f64[?]\n" +
                        keep)));
  }
  SECTION("what an iteration has of the one before") {
    CHECK_FALSE(gathers(program(
        "    %a = add_at %t, %before, %s : f64[?]\n    %u = add_at %a, %after, %s : f64[?]\n" + keep)));
    CHECK_FALSE(
        gathers(program("    %r = get %g, %before : f64\n    %a = add_at %t, %before, %r : f64[?]\n"
                        "    %u = add_at %a, %after, %r : f64[?]\n" +
                        keep)));
  }
  SECTION("what was changed in the iteration") {
    CHECK_FALSE(
        gathers(program("    %h = set %g, %i, %w : f64[?]\n    %r = get %h, %i : f64\n"
                        "    %a = add_at %t, %before, %r : f64[?]\n    %u = add_at %a, %after, %r : f64[?]\n"
                        "    %sum = add %s, %v : f64\n")));
  }
  SECTION("neighbours far apart") {
    const std::string far = program(
        "    %ten = constant 10 : i64\n    %far = add %i, %ten : i64\n    %a = add_at %t, %far, %v : f64[?]\n"
        "    %u = add_at %a, %i, %v : f64[?]\n" +
        keep);
    CHECK(gathered(far) == ir::print(*ir::parse(far)));
  }
  SECTION("indices that do not count alike") {
    CHECK_FALSE(gathers(
        program("    %a = add_at %t, %one, %v : f64[?]\n    %u = add_at %a, %i, %v : f64[?]\n" + keep)));
  }
}

namespace {

/// A random loop that adds to neighbours, and what it is run with.
class RandomLoop {
 public:
  explicit RandomLoop(unsigned seed) : random_(seed) {}

  std::string text() {
    const bool down = below(2) == 0, joined = below(2) == 0, zeros = joined || below(3) > 0;
    const std::int64_t first = below(4), less = below(4), own = below(3) - 1;
    std::string t = fmt::format(
        "entry @f\n\nfun @f(%x: f64[?], %y: f64[?], %n: i64) -> f64[?], f64[?] {{\n  %first = constant {} : "
        "i64\n  %less = constant {} : i64\n  %one = constant 1 : i64\n  %none = constant 0 : i64\n  %zero = "
        "constant 0 : f64\n  %last = sub %n, %less : i64\n  %iterations = sub %last, %first : i64\n  %z = {}\n",
        first, less, zeros ? "zeros_like %x : f64[?]" : "copy %x : f64[?]");
    t += fmt::format(
        "  %c, %gs, %ts = loop {}, %y, %z : i64, f64[?], f64[?] while (%ci: i64, %cg: f64[?], "
        "%ct: f64[?]) {{\n    %go = lt {} : bool\n    yield %go\n  }} do (%k: i64, %g: f64[?], "
        "%t0: f64[?]) {{\n",
        down ? "%iterations" : "%first", down ? "%none, %ci" : "%ci, %last");
    t += down ? "    %next = sub %k, %one : i64\n    %i = add %next, %first : i64\n"
              : "    %next = add %k, %one : i64\n    %i = add %k, %none : i64\n";
    t += index("own", own) + "    %v = get %g, %own : f64\n" + index("at", below(5) - 2) +
         "    %w = get %x, %at : f64\n    %p = mul %v, %w : f64\n    %d = cast[f64] %i : f64\n    %e = add "
         "%p, %d : f64\n";
    const bool set = joined || below(2) == 0;
    t += set ? fmt::format("    %h = set %g, %own, {} : f64[?]\n", joined || below(2) ? "%zero" : "%v")
             : "    %h = add_at %g, %own, %w : f64[?]\n";
    const int adds = 2 + static_cast<int>(below(4));
    constexpr const char* terms[] = {"%v", "%w", "%p", "%e"};
    for (int a = 0; a < adds; ++a)
      t += index(fmt::format("o{}", a), below(6) - 3) +
           fmt::format("    %t{} = add_at %t{}, %o{}, {} : f64[?]\n", a + 1, a, a, terms[below(4)]);
    t += fmt::format("    yield %next, %h, %t{}\n  }}\n", adds);
    if (joined && below(4) > 0) return t + "  %both = add %ts, %gs : f64[?]\n  yield %both, %x\n}\n";
    return t + "  yield %ts, %gs\n}\n";
  }
  ir::test::Interpreter::Items arguments(std::int64_t n) {
    using ir::test::Interpreter;
    std::vector<double> x, y;
    for (std::int64_t i = 0; i < n; ++i) {
      x.push_back(static_cast<double>(below(40) - 20));
      y.push_back(static_cast<double>(below(40) - 20));
    }
    return {Interpreter::tensor({n}, x), Interpreter::tensor({n}, y), Interpreter::integer(n)};
  }

 private:
  std::int64_t below(int n) { return static_cast<std::int64_t>(random_() % static_cast<unsigned>(n)); }
  static std::string index(const std::string& name, std::int64_t by) {
    return fmt::format("    %{}c = constant {} : i64\n    %{} = add %i, %{}c : i64\n", name, by, name, name);
  }
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("scatter_to_gather: random loops, also of few iterations or none, and with indices outside",
          "[passes]") {
  std::size_t changed = 0, failed = 0, compared = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomLoop random(seed);
    const std::string text = random.text();
    const auto before = ir::parse(text), after = ir::parse(text);
    ir::verify(*before);
    for (const auto& module : {before.get(), after.get()}) passes::simplify(*module);
    passes::scatter_to_gather(*after);
    ir::verify(*after);
    changed += ir::print(*after) != ir::print(*before);
    for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 6, 9, 14}) {
      const auto arguments = random.arguments(n);
      const auto run = [&](const ir::Module& module) -> std::optional<std::vector<double>> {
        try {
          return ir::test::Interpreter(20000, 255).run(module, arguments);
        } catch (const Error&) {
          return {};
        }
      };
      const auto expected = run(*before);
      INFO("seed " << seed << ", " << n << " elements\n" << text << "\nbecame\n" << ir::print(*after));
      REQUIRE(run(*after) == expected);
      ++(expected ? compared : failed);
    }
  }
  CHECK(changed > 200);
  CHECK(compared > 500);
  CHECK(failed > 100);
}

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

/// Steps in time of a random stencil: which neighbours, how far the ends stay as they are.
struct Stencil {
  std::int64_t first = 0, less = 0;
  std::vector<std::pair<std::int64_t, double>> neighbours;
  int kind = 0;

  D operator()(A a, I steps) const {
    const I n = a.size();
    const A last = FOR(0, steps, a, [&](I, A s) {
      return FOR(first, n - less, s, [&](I i, A v) {
        D sum = 0.0;
        for (const auto& [by, c] : neighbours) {
          const D x = s[i + by];
          sum = sum + c * (kind == 0 ? x : kind == 1 ? x * s[i] : x / (1.0 + s[i] * s[i]));
        }
        return v.set(i, kind == 0 ? sum : s[i] + sum);
      });
    });
    return FOR(0, n, D(0.0), [&](I i, D sum) { return sum + last[i] * last[i]; });
  }
};

}  // namespace

TEST_CASE("scatter_to_gather: gradients of random stencils", "[passes]") {
  int changed = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
    Stencil stencil{0, 0, {}, static_cast<int>(seed % 3)};
    for (std::int64_t count = 2 + below(3), k = 0; k < count; ++k)
      stencil.neighbours.emplace_back(below(5) - 2, 0.1 * static_cast<double>(below(9) - 4));
    std::int64_t before = 0, after = 0;
    for (const auto& [by, c] : stencil.neighbours) {
      before = std::max(before, -by);
      after = std::max(after, by);
    }
    stencil.first = before + below(2);
    stencil.less = after + below(2);
    const auto f = sig<double(Array<double>, std::int64_t)>(stencil);
    const auto expected = eager(grad<0>(f));
    const auto got = compile(grad<0>(f), {.target = seed % 4 == 0 ? Target::cpp : Target::c});
    const auto scattered =
        compile(grad<0>(f), {.target = Target::c, .disabled_passes = {"scatter_to_gather"}});
    changed += got.source("ir") != scattered.source("ir");
    for (const std::size_t n : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 8u, 13u, 40u}) {
      std::vector<double> x(n);
      for (std::size_t i = 0; i < n; ++i) x[i] = 0.5 + 0.4 * std::sin(2.0 + 1.3 * static_cast<double>(i));
      const std::vector<double> e = expected(x, 3), g = got(x, 3), s = scattered(x, 3);
      INFO("seed " << seed << ", " << n << " elements");
      REQUIRE(g.size() == n);
      for (std::size_t i = 0; i < n; ++i) {
        CHECK(g[i] == Approx(e[i]).epsilon(1e-11).margin(1e-13));
        CHECK(s[i] == Approx(e[i]).epsilon(1e-11).margin(1e-13));
      }
    }
  }
  CHECK(changed > 6);
}

namespace {

/// Steps of a random stencil over a matrix, `first` and `less` elements of which stay as they are.
struct Plate {
  std::int64_t first[2] = {0, 0}, less[2] = {0, 0};
  std::vector<std::array<std::int64_t, 2>> neighbours;
  int kind = 0;

  D operator()(M a, I steps) const {
    const I m = a.dim(0), n = a.dim(1);
    const M last = FOR(0, steps, a, [&](I, M s) {
      const M from = kind == 2 ? fill(D(0.5), m, n) : s;
      return FOR(first[0], m - less[0], from, [&](I i, M rows) {
        return FOR(first[1], n - less[1], rows, [&](I j, M r) {
          D sum = 0.0;
          for (const auto& [di, dj] : neighbours) sum = sum + 0.2 * s(i + di, j + dj);
          return r.set(i, j, kind == 0 ? sum : s(i, j) + sum * s(i, j));
        });
      });
    });
    return sum(last * last);
  }
};

}  // namespace

TEST_CASE("scatter_to_gather: gradients of random stencils over matrices", "[passes]") {
  int changed = 0;
  for (unsigned seed = 0; seed < 9; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
    Plate plate;
    plate.kind = static_cast<int>(seed % 3);
    for (std::int64_t count = 2 + below(4), k = 0; k < count; ++k)
      plate.neighbours.push_back({below(5) - 2, below(3) - 1});
    for (const std::size_t d : {0u, 1u}) {
      for (const auto& by : plate.neighbours) {
        plate.first[d] = std::max(plate.first[d], -by[d]);
        plate.less[d] = std::max(plate.less[d], by[d]);
      }
      plate.first[d] += below(2);
      plate.less[d] += below(2);
    }
    const auto f = sig<double(Tensor<double, dyn, dyn>, std::int64_t)>(plate);
    const auto expected = eager(grad<0>(f));
    const auto got = compile(grad<0>(f), {.target = seed % 4 == 0 ? Target::cpp : Target::c});
    const auto scattered =
        compile(grad<0>(f), {.target = Target::c, .disabled_passes = {"scatter_to_gather"}});
    changed += got.source("ir") != scattered.source("ir");
    for (const std::int64_t m : {0, 1, 2, 3, 4, 5, 6, 11})
      for (const std::int64_t n : {0, 1, 2, 4, 5, 17}) {
        std::vector<double> x(static_cast<std::size_t>(m * n));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(2.0 + 1.3 * static_cast<double>(i));
        const TensorView<const double> view(x.data(), {m, n});
        const auto e = expected(view, 2), g = got(view, 2), s = scattered(view, 2);
        INFO("seed " << seed << ", " << m << " by " << n << " elements");
        REQUIRE(g.data.size() == x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          CHECK(g.data[i] == Approx(e.data[i]).epsilon(1e-11).margin(1e-13));
          CHECK(s.data[i] == Approx(e.data[i]).epsilon(1e-11).margin(1e-13));
        }
      }
  }
  CHECK(changed > 5);
}

TEST_CASE("scatter_to_gather: neighbours at flat indices", "[passes]") {
  // Of what is added to the rows above, here and below, that of this row is summed first.
  const auto plate = [](A u0, A speed, I n, I steps) {
    const A last = FOR(0, steps, u0, [&](I, A u) {
      return FOR(1, n - 1, fill(D(0.0), n * n), [&](I i, A w) {
        return FOR(1, n - 1, w, [&](I j, A v) {
          const I k = i * n + j;
          return v.set(k, u[k] + speed[k] * (u[k - n] + u[k + n] + u[k - 1] + u[k + 1] - 4.0 * u[k]));
        });
      });
    });
    return sum(last * last);
  };
  const auto gradient =
      grad<0, 1>(sig<double(Array<double>, Array<double>, std::int64_t, std::int64_t)>(plate));
  const auto expected = eager(gradient);
  for (const Target target : {Target::c, Target::cpp}) {
    const auto got = compile(gradient, {.target = target});
    const auto scattered = compile(gradient, {.target = target, .disabled_passes = {"scatter_to_gather"}});
    CHECK(got.source("ir") != scattered.source("ir"));
    for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 6, 9, 20}) {
      INFO(n << " rows");
      std::vector<double> x(static_cast<std::size_t>(n * n)), c(x.size(), 0.1);
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = 0.5 + 0.4 * std::sin(2.0 + 1.3 * static_cast<double>(i));
      const auto [e, ec] = expected(x, c, n, 3);
      const auto [g, gc] = got(x, c, n, 3);
      REQUIRE(g.size() == x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        CHECK(g[i] == Approx(e[i]).epsilon(1e-11).margin(1e-13));
        CHECK(gc[i] == Approx(ec[i]).epsilon(1e-11).margin(1e-13));
      }
    }
  }
}

TEST_CASE("scatter_to_gather: what neighbours divide by is inverted once for both", "[passes]") {
  // Of each difference r of neighbours: r / (1 + r * r) again, and 1 / (1 + r * r) for its two partials.
  const auto diffusion = [](A a) {
    const I n = a.size();
    const A next = FOR(1, n - 1, a, [&](I i, A v) {
      const D r = a[i + 1] - a[i], l = a[i] - a[i - 1];
      return v.set(i, a[i] + 0.1 * (r / (1.0 + r * r) - l / (1.0 + l * l)));
    });
    return FOR(0, n, D(0.0), [&](I i, D sum) { return sum + next[i] * next[i]; });
  };
  const auto g = compile(grad(diffusion), {.target = Target::c});
  const std::string ir = g.source("ir");
  // The loop in which all neighbours add; another one for few iterations follows.
  const std::size_t last = ir.find(" = parallel", ir.find("%d_a.2 = branch"));
  const std::string body = ir.substr(last, ir.find("} else", last) - last);
  CHECK(count(body, "= div") == 4);
  CHECK(count(body, "= set") == 1);
  std::vector<double> x(23);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.3 * static_cast<double>(i));
  const std::vector<double> e = eager(grad(diffusion))(x), got = g(x);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(got[i] == Approx(e[i]).epsilon(1e-12));
}

TEST_CASE("scatter_to_gather: rows of a matrix", "[passes]") {
  const auto plate = [](M a) {
    const I m = a.dim(0), n = a.dim(1);
    const M next = FOR(1, m - 1, a, [&](I i, M rows) {
      return FOR(1, n - 1, rows, [&](I j, M r) {
        return r.set(i, j, a(i, j) * a(i, j) + 0.2 * (a(i - 1, j) + a(i + 1, j) + a(i, j - 1) + a(i, j + 1)));
      });
    });
    return sum(next * next);
  };
  for (const Target target : {Target::c, Target::cpp}) {
    const auto g = compile(grad(plate), {.target = target});
    for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 19}) {
      std::vector<double> x(static_cast<std::size_t>(n * 7));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.3 * static_cast<double>(i));
      const TensorView<const double> view(x.data(), {7, n});
      const auto expected = eager(grad(plate))(view), got = g(view);
      REQUIRE(got.data.size() == x.size());
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(got.data[i] == Approx(expected.data[i]).epsilon(1e-12).margin(1e-14));
    }
  }
}
