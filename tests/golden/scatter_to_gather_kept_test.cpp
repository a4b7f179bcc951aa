// scatter_to_gather: what neighbours share and is not computed again lies in an array, and nothing changes.
#include <catch2/catch.hpp>
#include <cmath>

#include "../occurrences.hpp"
#include "interpreter.hpp"
#include "lantern/compiler/passes/array/scatter_to_gather.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using lantern::test::count;

/// A loop over 1 <= i < n - 1 with a sum %s, an array %g and an array %t, which its body makes %sum, %h, %u.
std::string program(const std::string& body) {
  return "entry @f\n\nfun @f(%x: f64[?], %y: f64[?], %n: i64) -> f64[?], f64[?], f64 {\n  %one = constant 1 "
         ": "
         "i64\n  %zero = constant 0 : f64\n  %m = sub %n, %one : i64\n  %z = zeros_like %x : f64[?]\n  %c, "
         "%sums, "
         "%gs, %ts = loop %one, %zero, %y, %z : i64, f64, f64[?], f64[?] while (%ci: i64, %cs: f64, %cg: "
         "f64[?], %ct: f64[?]) {\n    %less = lt %ci, %m : bool\n    yield %less\n  } do (%i: i64, %s: f64, "
         "%g: "
         "f64[?], %t: f64[?]) {\n    %before = sub %i, %one : i64\n    %after = add %i, %one : i64\n    %v = "
         "get "
         "%g, %i : f64\n    %w = get %x, %i : f64\n" +
         body + "    yield %after, %sum, %h, %u\n  }\n  yield %gs, %ts, %sums\n}\n";
}

/// How many loops the pass leaves; the program must give what it gave.
std::size_t loops(const std::string& text) {
  const auto module = ir::parse(text);
  ir::verify(*module);
  using ir::test::Interpreter;
  const auto value = [&] {
    return Interpreter(20000, 255)
        .run(*module, {Interpreter::tensor({6}, {1, -2, 3, 0.25, 5, -6}),
                       Interpreter::tensor({6}, {5, 6, -7, 8, 3, 2}), Interpreter::integer(6)});
  };
  const auto before = value();
  passes::scatter_to_gather(*module);
  ir::verify(*module);
  CHECK(value() == before);
  return lantern::test::loops_in(ir::print(*module));
}

const std::string keep = "    %h = set %g, %i, %zero : f64[?]\n    %sum = add %s, %v : f64\n";
const std::string three =
    "    %a = add_at %t, %before, %v : f64[?]\n    %b = add_at %a, %i, %w : f64[?]\n    %u = add_at %b, "
    "%after, "
    "%v : f64[?]\n";

}  // namespace

TEST_CASE("scatter_to_gather: an array holds what is not computed again", "[passes]") {
  // A function of the mathematical library, in a loop that counts up: its iterations from 1 to n - 2.
  CHECK(loops(program("    %e = exp %v : f64\n    %a = add_at %t, %before, %e : f64[?]\n    %b = add_at %a, "
                      "%i, %w : f64[?]\n    %u = add_at %b, %after, %e : f64[?]\n" +
                      keep)) == 4);
  // What is popped, in a loop that counts down, also for no iteration and for a negative number of them.
  const std::string text = R"(entry @f

fun @f(%x: f64[?], %n: i64) -> f64[?] {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %two = constant 2 : i64
  %none = zeros_like %x : f64[?]
  %m = sub %n, %two : i64
  %up = loop %zero : i64 while (%ci: i64) {
    %less = lt %ci, %m : bool
    yield %less
  } do (%i: i64) {
    %v = get %x, %i : f64
    %w = mul %v, %v : f64
    push[1] %w
    %next = add %i, %one : i64
    yield %next
  }
  %down, %sums = loop %m, %none : i64, f64[?] while (%cj: i64, %cs: f64[?]) {
    %more = lt %zero, %cj : bool
    yield %more
  } do (%j: i64, %s: f64[?]) {
    %p = pop[1] : f64
    %iteration = sub %j, %one : i64
    %own = add %iteration, %one : i64
    %after = add %iteration, %two : i64
    %a = add_at %s, %iteration, %p : f64[?]
    %b = add_at %a, %own, %p : f64[?]
    %c = add_at %b, %after, %p : f64[?]
    yield %iteration, %c
  }
  yield %sums
}
)";
  for (const std::int64_t n : {5, 3, 2, 1, 0}) {
    INFO(n << " elements");
    const auto module = ir::parse(text);
    ir::verify(*module);
    using ir::test::Interpreter;
    const auto value = [&] {
      std::vector<double> x{1, -2, 3, 0.25, 5, -6};
      x.resize(static_cast<std::size_t>(n));
      return Interpreter(20000, 255).run(*module, {Interpreter::tensor({n}, x), Interpreter::integer(n)});
    };
    const auto before = value();
    passes::scatter_to_gather(*module);
    ir::verify(*module);
    CHECK(value() == before);
    CHECK(lantern::test::loops_in(ir::print(*module)) == 5);
  }
}

TEST_CASE("scatter_to_gather: neighbours leave an iteration whose own sum cannot", "[passes]") {
  // The element in the middle takes the sum so far, which no other iteration has.
  CHECK(
      loops(program("    %a = add_at %t, %before, %v : f64[?]\n    %b = add_at %a, %i, %s : f64[?]\n    %u = "
                    "add_at %b, %after, %w : f64[?]\n" +
                    keep)) > 1);
}

TEST_CASE("scatter_to_gather: branches are computed again where they are asked for", "[passes]") {
  const std::string choice =
      "    %right = lt %w, %zero : bool\n    %slope = branch %right : f64 {\n      %q = get %x, %after : "
      "f64\n      "
      "%o = sub %q, %w : f64\n      yield %o\n    } else {\n      %q2 = get %x, %before : f64\n      %o2 = "
      "sub %w, "
      "%q2 : f64\n      yield %o2\n    }\n    %d = mul %slope, %v : f64\n";
  const std::string text =
      program(choice +
              "    %a = add_at %t, %before, %d : f64[?]\n    %b = add_at %a, %i, %w : f64[?]\n   "
              " %u = add_at %b, %after, %d : f64[?]\n" +
              keep);
  CHECK(loops(text) > 1);
  // A side that reads what the loop changes is not: what iterations add is kept.
  std::string changed = text;
  for (std::size_t at = 0; (at = changed.find("get %x, %after", at)) != std::string::npos;)
    changed.replace(at, 14, "get %g, %after");
  CHECK(loops(changed) >= 1);
}

TEST_CASE("scatter_to_gather: much work is not done again", "[passes]") {
  const std::string work = "    %e = div %w, %w : f64\n    %d = div %e, %e : f64\n    %q = sqrt %d : f64\n";
  const std::string text = program(
      work + "    %a = add_at %t, %before, %q : f64[?]\n    %u = add_at %a, %after, %q : f64[?]\n" + keep);
  CHECK(loops(text) > 1);
  const auto module = ir::parse(text);
  passes::scatter_to_gather(*module);
  CHECK(count(ir::print(*module), "= sqrt") == 1);
}

TEST_CASE("scatter_to_gather: what is added here and subtracted there lies in one array", "[passes]") {
  // Magnitudes by much work, which is exact.
  const auto magnitude = [](const std::string& name, const std::string& of) {
    std::string text, last = of;
    for (int k = 0; k < 4; ++k) {
      const std::string square = "%" + name + "q" + std::to_string(k),
                        root = "%" + name + (k < 3 ? std::to_string(k) : "");
      text += "    " + square + " = mul " + last + ", " + last + " : f64\n    " + root + " = sqrt " + square +
              " : f64\n";
      last = root;
    }
    return text;
  };
  const auto text = [&](const std::string& last) {
    return program(magnitude("e", "%v") + magnitude("other", "%w") +
                   "    %minus = neg %e : f64\n    %a = add_at %t, %before, %minus : f64[?]\n    %b = add_at "
                   "%a, %i, %e : "
                   "f64[?]\n    %b2 = add_at %b, %before, %other : f64[?]\n    %u = add_at %b2, %after, " +
                   last + " : f64[?]\n" + keep);
  };
  CHECK(loops(text("%minus")) > 1);
  const auto module = ir::parse(text("%minus"));
  passes::scatter_to_gather(*module);
  CHECK(count(ir::print(*module), "fill") == 2);
  CHECK(loops(text("%w")) == 1);  // three arrays would be too many
}

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

}  // namespace

TEST_CASE("scatter_to_gather: gradients of stencils", "[passes]") {
  const auto heat = [](A a, I steps) {
    const I n = a.size();
    const A last = FOR(0, steps, a, [&](I, A s) {
      return FOR(1, n - 1, s,
                 [&](I i, A v) { return v.set(i, s[i] + 0.1 * exp(sin(s[i - 1]) - 2.0 * s[i] + s[i + 1])); });
    });
    return FOR(0, n, 0.0, [&](I i, D sum) { return sum + last[i] * last[i]; });
  };
  const auto plate = [](M a) {
    const I m = a.dim(0), n = a.dim(1);
    const M next = FOR(1, m - 1, a, [&](I i, M rows) {
      return FOR(1, n - 1, rows, [&](I j, M r) {
        return r.set(i, j,
                     a(i, j) * a(i, j) + 0.2 * exp(a(i - 1, j) + a(i + 1, j) + a(i, j - 1) + a(i, j + 1)));
      });
    });
    return sum(next * next);
  };
  const auto flow = [](A a, I steps) {
    const I n = a.size();
    A u = a;
    FOR(0, steps, [&](I) {
      A f = fill(D(0.0), n);
      FOR(0, n - 1, [&](I i) { f = f.set(i, exp(sin(u[i + 1] - u[i])) * u[i]); });
      FOR(1, n - 1, [&](I i) { u = u.set(i, u[i] * u[i] - 0.1 * (f[i] - f[i - 1])); });
    });
    return FOR(0, n, 0.0, [&](I i, D sum) { return sum + u[i] * u[i]; });
  };
  for (const Target target : {Target::c, Target::cpp}) {
    const CompileOptions with{.target = target, .opt = 3};
    CompileOptions without = with;
    without.disabled_passes.push_back("scatter_to_gather");
    const auto agree = [&](const auto& f) {
      const auto one = compile(grad<0>(f), with), whole = compile(grad<0>(f), without);
      CHECK(lantern::test::loops_in(one.source("ir")) > lantern::test::loops_in(whole.source("ir")));
      for (const std::size_t n : {2u, 3u, 4u, 9u, 33u, 70u}) {
        std::vector<double> x(n);
        for (std::size_t i = 0; i < n; ++i) x[i] = 0.5 + 0.3 * std::sin(1.0 + static_cast<double>(i));
        const std::vector<double> expected = eager(grad<0>(f))(x, 4), got = one(x, 4), other = whole(x, 4);
        REQUIRE(got.size() == n);
        for (std::size_t i = 0; i < n; ++i) {
          CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
          CHECK(other[i] == Approx(expected[i]).epsilon(1e-12));
        }
      }
    };
    agree(heat);
    agree(flow);
    const auto flat = compile(grad(plate), with);
    for (const std::int64_t n : {2, 3, 5, 19}) {
      std::vector<double> x(static_cast<std::size_t>(n * 7));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.3 * static_cast<double>(i));
      const TensorView<const double> view(x.data(), {7, n});
      const auto expected = eager(grad(plate))(view), got = flat(view);
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(got.data[i] == Approx(expected.data[i]).epsilon(1e-12));
    }
  }
}

TEST_CASE("scatter_to_gather: the tensor has other elements that the loop reads and sets", "[passes]") {
  // Every other element, at steps of two and three; rows of a table, where the sums stay; rows that may be the same one.
  const auto table = [](A a, I m) {
    const I n = a.size();
    M u = fill(D(0.0), m + 1, n);
    FOR(0, n, [&](I i) { u = u.set(0, i, a[i]); });
    FOR(0, m, [&](I t) {
      u = u.set(t + 1, 0, u(t, 0));
      u = u.set(t + 1, n - 1, u(t, n - 1));
      FOR(1, n - 1, [&](I i) { u = u.set(t + 1, i, u(t, i) * u(t, i) + 0.2 * sin(u(t, i - 1) + u(t, i + 1))); });
    });
    return FOR(0, n, D(0.0), [&](I i, D s) { return s + u(m, i) * u(m, i); });
  };
  const auto red_black = [](A a, I m) {
    const I n = a.size();
    A u = a;
    FOR(0, m, [&](I) {
      for (const std::int64_t colour : {1, 2})
        FOR(0, (n - 1 - colour) / 2, [&](I k) {
          const I i = 2 * k + colour;
          u = u.set(i, 0.3 * u[i] * u[i] + 0.2 * (u[i - 1] + u[i + 1]));
        });
    });
    return FOR(0, n, D(0.0), [&](I i, D s) { return s + u[i] * u[i]; });
  };
  const auto thirds = [](A a, I m) {
    const I n = a.size();
    A u = a;
    FOR(0, m, [&](I) {
      FOR(0, (n - 2) / 3, [&](I k) {
        const I i = 3 * k + 1;
        u = u.set(i, 0.3 * u[i] * u[i] + 0.2 * (u[i - 1] + u[i + 2] * u[i + 1]));
      });
    });
    return FOR(0, n, D(0.0), [&](I i, D s) { return s + u[i] * u[i]; });
  };
  const auto modulo = [](A a, I m) {
    const I n = a.size();
    M u = fill(D(0.1), 3, n);
    FOR(0, n, [&](I i) { u = u.set(0, i, a[i]); });
    FOR(0, m, [&](I t) {
      const I row = t % 3, next = (t * 2 + 1) % 3;
      FOR(1, n - 1, [&](I i) { u = u.set(next, i, 0.4 * u(row, i) * u(next, i) + 0.2 * (u(row, i - 1) + u(row, i + 1))); });
    });
    return FOR(0, n, D(0.0), [&](I i, D s) { return s + u(0, i) + u(1, i) * u(2, i); });
  };
  const auto check = [](const char* name, const auto& f, bool taken) {
    for (const Target target : {Target::c, Target::cpp}) {
      const CompileOptions with{.target = target, .opt = 3};
      CompileOptions without = with;
      without.disabled_passes.push_back("scatter_to_gather");
      const auto one = compile(grad<0>(f), with), whole = compile(grad<0>(f), without);
      if (taken) CHECK(lantern::test::loops_in(one.source("ir")) > lantern::test::loops_in(whole.source("ir")));
      for (const std::size_t n : {3u, 4u, 5u, 9u, 33u, 70u})
        for (const std::int64_t m : {0, 1, 4}) {
          CAPTURE(name, n, m);
          std::vector<double> x(n);
          for (std::size_t i = 0; i < n; ++i) x[i] = 0.5 + 0.3 * std::sin(1.0 + static_cast<double>(i));
          const std::vector<double> expected = eager(grad<0>(f))(x, m), got = one(x, m), off = whole(x, m);
          REQUIRE(got.size() == n);
          for (std::size_t i = 0; i < n; ++i) {
            CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
            CHECK(off[i] == Approx(expected[i]).epsilon(1e-12));
          }
        }
    }
  };
  check("table", table, false);
  check("red and black", red_black, true);
  check("thirds", thirds, false);
  check("modulo", modulo, false);
}
