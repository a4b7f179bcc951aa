// index_set_splitting: which loops become one for each answer, and that nothing changes.
#include "lantern/compiler/passes/array/index_set_splitting.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>

#include "../occurrences.hpp"
#include "around_pass.hpp"
#include "interpreter.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

std::string after_cut(const std::string& text) {
  const auto module = ir::parse(text);
  ir::verify(*module);
  passes::simplify(*module);
  passes::index_set_splitting(*module);
  ir::verify(*module);
  return ir::print(*module);
}

/// A loop from %first to below %last over an array %t of which iterations set an element, to %v where %c holds.
std::string program(const std::string& condition, const std::string& first = "constant 0 : i64",
                    const std::string& last = "dim[0] %x : i64") {
  return "entry @f\n\nfun @f(%x: f64[?], %m: i64) -> f64[?], i64 {\n  %zero = constant 0 : i64\n  %first = " +
         first + "\n  %last = " + last +
         "\n  %n = dim[0] %x : i64\n  %end, %r = loop %first, %x : i64, f64[?] while (%ci: i64, %ct: f64[?]) "
         "{\n"
         "    %less = lt %ci, %last : bool\n    yield %less\n  } do (%i: i64, %t: f64[?]) {\n"
         "    %one = constant 1 : i64\n    %next = add %i, %one : i64\n" +
         condition +
         "    %v = branch %c : f64 {\n      %before = sub %i, %one : i64\n      %w = get %t, %before : f64\n"
         "      yield %w\n    } else {\n      %two = constant 2 : f64\n      yield %two\n    }\n"
         "    %u = set %t, %i, %v : f64[?]\n    yield %next, %u\n  }\n  yield %r, %end\n}\n";
}

using lantern::test::count;

}  // namespace

TEST_CASE("index_set_splitting: the first iteration apart", "[passes]") {
  CHECK(after_cut(program("    %c = lt %zero, %i : bool\n")) == R"(entry @f

fun @f(%x: f64[?], %m: i64) -> f64[?], i64 {
  %zero = constant 0 : i64
  %last = dim[0] %x : i64
  %1 = constant 1 : i64
  %2 = lt %zero, %last : bool
  %3 = branch %2 : f64[?] {
    %two = constant 2 : f64
    %u = set %x, %zero, %two : f64[?]
    yield %u
  } else {
    yield %x
  }
  %end, %r = loop %1, %3 : i64, f64[?] while (%ci: i64, %ct: f64[?]) {
    %4 = lt %ci, %last : bool
    yield %4
  } do (%i: i64, %t: f64[?]) {
    %next = add %i, %1 : i64
    %before = sub %i, %1 : i64
    %w = get %t, %before : f64
    %u.2 = set %t, %i, %w : f64[?]
    yield %next, %u.2
  }
  %5 = imax %zero, %last : i64
  yield %r, %5
}
)");
}

TEST_CASE("index_set_splitting: loops that stay", "[passes]") {
  const auto stays = [](const std::string& text) {
    const auto module = ir::parse(text);
    passes::simplify(*module);
    return after_cut(text) == ir::print(*module);
  };
  // The array decides, or numbers that change.
  CHECK(stays(program("    %a = get %t, %i : f64\n    %b = constant 1 : f64\n    %c = lt %a, %b : bool\n")));
  CHECK(stays(
      program("    %three = constant 3 : i64\n    %a = mul %i, %three : i64\n    %c = lt %a, %m : bool\n")));
  // A number of iterations moved by a constant, which may wrap.
  CHECK(stays(program("    %c = lt %next, %m : bool\n")));
  CHECK_FALSE(stays(program("    %c = lt %next, %n : bool\n")));
  CHECK_FALSE(stays(program("    %c = lt %i, %m : bool\n")));
}

TEST_CASE("index_set_splitting: random conditions", "[passes]") {
  using ir::test::Interpreter;
  std::mt19937 random(5);
  const auto below = [&](unsigned n) { return random() % n; };
  std::size_t cuts = 0;
  for (int k = 0; k < 300; ++k) {
    constexpr const char* comparisons[] = {"lt", "le", "eq", "ne"};
    constexpr const char* numbers[] = {"%i", "%next", "%before_i"};
    constexpr const char* bounds[] = {"%m", "%n", "%zero", "%k", "%nk"};
    std::string condition = fmt::format(
        "    %k = constant {} : i64\n    %nk = sub %n, %k : i64\n    %before_i = sub %i, %one : i64\n",
        static_cast<int>(below(6)) - 1);
    const auto compare = [&](const char* name) {
      const char* x = numbers[below(3)];
      const char* y = bounds[below(5)];
      if (below(2)) std::swap(x, y);
      return fmt::format("    %{} = {} {}, {} : bool\n", name, comparisons[below(4)], x, y);
    };
    condition += compare("a") + compare("b");
    condition +=
        below(2) ? "    %c = branch %a : bool {\n      yield %b\n    } else {\n      %no = constant false "
                   ": bool\n      yield %no\n    }\n"
                 : "    %c = lor %a, %b : bool\n";
    const std::string text = program(condition,
                                     below(2)   ? "constant 1 : i64"
                                     : below(2) ? "add %m, %zero : i64"
                                                : "constant 0 : i64",
                                     below(3) ? "dim[0] %x : i64" : "sub %m, %zero : i64");
    const auto before = ir::parse(text), after = ir::parse(text);
    ir::verify(*before);
    for (const auto& module : {before.get(), after.get()}) passes::simplify(*module);
    passes::index_set_splitting(*after);
    ir::verify(*after);
    cuts += lantern::test::loops_in(ir::print(*after)) > 1;
    for (const std::int64_t n : {0, 1, 2, 3, 7})
      for (const std::int64_t m :
           {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{5},
            std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
        const auto run = [&](const ir::Module& module) -> std::optional<std::vector<double>> {
          try {
            return Interpreter().run(
                module, {Interpreter::tensor({n}, {1, -2, 3, 0.25, 9, -3, 8}), Interpreter::integer(m)});
          } catch (const Error&) {
            return {};
          }
        };
        INFO(n << " elements, " << m << "\n" << text << "\nbecame\n" << ir::print(*after));
        REQUIRE(run(*after) == run(*before));
      }
  }
  CHECK(cuts > 150);
}

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;

}  // namespace

TEST_CASE("index_set_splitting: gradients of stencils that look after their boundary", "[passes]") {
  const auto guarded = [](A a, I steps) {
    const I n = a.size();
    const A last = FOR(0, steps, a, [&](I, A s) {
      return FOR(0, n, s, [&](I i, A v) {
        return v.set(i, IF(
                            AND(0 < i, [&] { return i < n - 1; }), [&] { return s[i] * s[i - 1] + s[i + 1]; },
                            [&] {
                              return IF(
                                  i == 0, [&] { return s[0]; }, [&] { return s[i - 1]; });
                            }));
      });
    });
    return FOR(0, n, D(0.0), [&](I i, D sum) { return sum + last[i] * last[i]; });
  };
  for (const Target target : {Target::c, Target::cpp}) {
    const auto expected = eager(grad<0>(guarded));
    const auto got = compile(grad<0>(guarded), {.target = target, .lanes = 4});
    const auto whole =
        compile(grad<0>(guarded), {.target = target, .lanes = 4, .disabled_passes = {"index_set_splitting"}});
    CHECK(lantern::test::loops_in(got.source("ir")) > lantern::test::loops_in(whole.source("ir")));
    if (target == Target::cpp) {  // the inner part runs in lanes, and none of them is masked for the boundary
      CHECK(count(got.source("ir"), ": f64x") > 40);
      CHECK(count(got.source("ir"), "branch") < count(whole.source("ir"), "branch"));
      CHECK(count(got.source("ir"), "select") < count(whole.source("ir"), "select"));
    }
    for (const std::size_t n : {0u, 1u, 2u, 3u, 4u, 9u, 37u}) {
      std::vector<double> x(n);
      for (std::size_t i = 0; i < n; ++i) x[i] = 0.5 + 0.4 * std::sin(2.0 + 1.3 * static_cast<double>(i));
      const std::vector<double> e = expected(x, 3), g = got(x, 3);
      REQUIRE(g.size() == n);
      for (std::size_t i = 0; i < n; ++i) CHECK(g[i] == Approx(e[i]).epsilon(1e-11).margin(1e-13));
    }
  }
}

TEST_CASE("index_set_splitting: indices that wrap around or stop at an end", "[passes]") {
  using I = Rep<std::int64_t>;
  using A = Rep<Array<double>>;
  const auto neighbours = [](const std::function<I(I, I)>& left, const std::function<I(I, I)>& right) {
    return [=](A u, I n) {
      const A v = FOR(0, n, u, [&](I i, A w) {
        return w.set(i, u[i] * (1.0 + 0.3 * u[left(i, n)] - 0.2 * u[right(i, n)] * u[right(i, n)]));
      });
      return sum(v * v);
    };
  };
  const auto check = [](const auto& f, const std::string& asked) {
    const auto program = sig<double(Array<double>, std::int64_t)>(f);
    const auto slow = eager(value_and_grad<0>(program));
    const auto fast = compile(value_and_grad<0>(program), {.target = Target::cpp, .opt = 3});
    const auto uncut = compile(value_and_grad<0>(program),
                               {.target = Target::cpp, .opt = 3, .disabled_passes = {"index_set_splitting"}});
    const auto [before, after] = test::around_pass("index_set_splitting", program);
    CHECK(before.find(asked) != std::string::npos);
    // Iterations in the middle do not ask; one at an end may.
    const std::string loop = after.substr(after.find(" = loop "));
    const std::string body = loop.substr(0, loop.find("\n  }\n"));
    CHECK(body.find("set ") != std::string::npos);
    CHECK(body.find(" select ") == std::string::npos);
    CHECK(body.find(asked) == std::string::npos);
    for (const std::int64_t n : {1, 2, 3, 4, 7, 8, 9, 40}) {
      CAPTURE(n);
      std::vector<double> u(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < u.size(); ++i) u[i] = std::sin(1.3 * static_cast<double>(i)) + 0.2;
      const auto [y, d] = slow(u, n);
      for (const auto* way : {&fast, &uncut}) {
        const auto [y1, d1] = (*way)(u, n);
        CHECK(y1 == Approx(y).epsilon(1e-12));
        for (std::size_t i = 0; i < u.size(); ++i) CHECK(d1[i] == Approx(d[i]).epsilon(1e-11).margin(1e-12));
      }
    }
  };
  check(neighbours([](I i, I n) { return (i + n - 1) % n; }, [](I i, I n) { return (i + 1) % n; }), " rem ");
  check(neighbours([](I i, I) { return max(i - 1, 0); }, [](I i, I n) { return min(i + 1, n - 1); }),
        " imax ");
  check(neighbours([](I i, I n) { return select(i == 0, n - 1, i - 1); },
                   [](I i, I n) { return select(i == n - 1, I(0), i + 1); }),
        " select ");
}

TEST_CASE("index_set_splitting: recurrences are split before they are differentiated", "[passes]") {
  using D = Rep<double>;
  using I = Rep<std::int64_t>;
  using A = Rep<Array<double>>;
  // A bag is filled: from row to row, of elements that lie by a weight before.
  const auto bag = [](Rep<Array<std::int64_t>> weight, A worth, I room) {
    const I n = room + 1, items = weight.size();
    const A table = FOR(1, items + 1, fill(D(0.0), (items + 1) * n), [&](I i, A rows) {
      const I w = weight[i - 1];
      return FOR(0, n, rows, [&](I c, A t) {
        return IF(
            c < w, [&] { return t.set(i * n + c, t[(i - 1) * n + c]); },
            [&] { return t.set(i * n + c, max(t[(i - 1) * n + c], t[(i - 1) * n + c - w] + worth[i - 1])); });
      });
    });
    return table[items * n + room] + 0.1 * sum(table * table);
  };
  const auto slow = eager(grad<1>(bag));
  const auto fast = compile(grad<1>(bag), {.target = Target::cpp, .opt = 3, .lanes = 4});
  const auto plain = compile(grad<1>(bag), {.opt = 0});
  const std::vector<double> worth{3.0, 1.5, 4.0, 2.25, 0.5};
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> weights[] = {
      {2, 3, 5, 1, 4}, {0, 7, 20, 3, 0}, {most, 1, most, 40, 2}, {-1, 2, -1, 5, -1}, {41, 42, 40, 1, 1}};
  for (const std::int64_t room : {0, 1, 7, 40})
    for (const auto& w : weights) {
      CAPTURE(room, w);
      const auto e = slow(w, worth, room), f = fast(w, worth, room), p = plain(w, worth, room);
      for (std::size_t i = 0; i < worth.size(); ++i) {
        CHECK(f[i] == Approx(e[i]).epsilon(1e-12));
        CHECK(p[i] == Approx(e[i]).epsilon(1e-12));
      }
    }
  CHECK(fast.source("ir").find("boolx") != std::string::npos);  // its choices run in lanes

  // The cheapest way down, which asks at both ends of a row: nothing is kept of the iterations.
  const auto way = [](A cost, I n) {
    using M = Rep<Tensor<double, dyn, dyn>>;
    const M first = FOR(0, n, fill(D(0.0), n, n), [&](I j, M m) { return m.set(0, j, cost[j]); });
    const M all = FOR(1, n, first, [&](I i, M rows) {
      return FOR(0, n, rows, [&](I j, M m) {
        const D left = IF(
            0 < j, [&] { return min(m(i - 1, j), m(i - 1, j - 1)); }, [&] { return m(i - 1, j); });
        const D best = IF(
            j < n - 1, [&] { return min(left, m(i - 1, j + 1)); }, [&] { return left; });
        return m.set(i, j, best + cost[i * n + j] * cost[i * n + j]);
      });
    });
    return FOR(0, n, D(0.0), [&](I j, D s) { return s + all(n - 1, j) * all(n - 1, j); });
  };
  const auto exact = eager(grad<0>(way));
  const auto quick = compile(grad<0>(way), {.target = Target::cpp, .opt = 3, .lanes = 4});
  CHECK(quick.source("ir").find("push") == std::string::npos);
  for (const std::int64_t n : {1, 2, 3, 8, 19}) {
    CAPTURE(n);
    std::vector<double> cost(static_cast<std::size_t>(n * n));
    for (std::size_t i = 0; i < cost.size(); ++i) cost[i] = 1.0 + std::sin(1.7 * static_cast<double>(i * i));
    const auto e = exact(cost, n), g = quick(cost, n);
    for (std::size_t i = 0; i < cost.size(); ++i) CHECK(g[i] == Approx(e[i]).epsilon(1e-12));
  }
}

TEST_CASE("index_set_splitting: random recurrences and their derivatives", "[passes]") {
  using D = Rep<double>;
  using I = Rep<std::int64_t>;
  using A = Rep<Array<double>>;
  const char* const first = std::getenv("LANTERN_FIRST_SEED");
  const char* const many = std::getenv("LANTERN_RANDOM_SEEDS");
  const unsigned from = first ? static_cast<unsigned>(std::atoi(first)) : 1,
                 seeds = many ? static_cast<unsigned>(std::atoi(many)) : 3;
  for (unsigned seed = from; seed < from + seeds; ++seed) {
    std::mt19937 engine(seed);
    const auto number = [&](int lo, int hi) { return std::uniform_int_distribution(lo, hi)(engine); };
    struct Question {
      int kind, shift, back, far;
    };
    std::vector<Question> questions;
    for (int q = number(1, 3); q > 0; --q)
      questions.push_back({number(0, 6), number(-1, 2), number(0, 3), number(0, 4)});
    const bool table = number(0, 1) == 1, nested = number(0, 3) == 0;
    const int low = number(0, 1);
    // Rows of a table, or one row in place: elements before and after it, but not beyond its ends.
    const auto program = [=](A x, I n, I w) {
      const I rows = 3;
      const A start = FOR(0, n, fill(D(0.0), table ? rows * n : n), [&](I i, A t) { return t.set(i, x[i]); });
      const A all = FOR(1, rows, start, [&](I r, A above) {
        const I to = table ? r * n : I(0), of = table ? (r - 1) * n : I(0);
        return FOR(low, n, above, [&](I c, A t) {
          const auto holds = [&](const Question& q) -> Rep<bool> {
            switch (q.kind) {
              case 0:
                return c < w + q.shift;
              case 1:
                return c > q.shift;
              case 2:
                return c <= n - 2 + q.shift;
              case 3:
                return c == w;
              case 4:
                return c + q.shift != n - 1;
              case 5:
                return w <= c - q.shift;
              default:
                return c < q.far;
            }
          };
          const auto element = [&](const Question& q, int sign) {
            return t[of + max(min(c + sign * q.back, n - 1), 0)];
          };
          D v = 0.9 * t[of + c];
          for (const Question& q : questions) {
            const D before = v;
            v = IF(
                holds(q),
                [&] {
                  if (!nested) return before + 0.3 * element(q, -1) * x[c];
                  return IF(
                      c < w, [&] { return max(before, element(q, 1)); }, [&] { return before * 0.7; });
                },
                [&] { return min(before + 0.1, sin(element(q, 1)) + before); });
          }
          return IF(
              holds(questions[0]), [&] { return t.set(to + c, v); },
              [&] { return t.set(to + c, v + 0.2 * x[c]); });
        });
      });
      return sum(all * all);
    };
    const auto f = sig<double(Array<double>, std::int64_t, std::int64_t)>(program);
    const auto slow = eager(grad<0>(f));
    const auto fast = compile(grad<0>(f), {.target = Target::cpp, .opt = 3, .lanes = 4});
    const auto plain = compile(grad<0>(f), {.opt = 0});
    for (const std::int64_t n : {1, 2, 5, 13, 22})
      for (const std::int64_t w : {-2, 0, 1, 3, 12, 40}) {
        CAPTURE(seed, n, w);
        std::vector<double> x(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < x.size(); ++i)
          x[i] = std::sin(2.3 * static_cast<double>(i) + 0.7 * seed) + 0.31;
        const auto e = slow(x, n, w), g = fast(x, n, w), p = plain(x, n, w);
        for (std::size_t i = 0; i < x.size(); ++i) {
          CHECK(g[i] == Approx(e[i]).epsilon(1e-10).margin(1e-11));
          CHECK(p[i] == Approx(e[i]).epsilon(1e-10).margin(1e-11));
        }
      }
  }
}

TEST_CASE("index_set_splitting: loops that begin differently keep the order of what follows them", "[passes]") {
  const auto check = [](std::int64_t n) {
    INFO(n << " iterations");
    const auto f = [&](Rep<double> x) {
      return FOR(Rep<std::int64_t>(0), Rep<std::int64_t>(n), Rep<double>(0.0), [&](Rep<std::int64_t> i, Rep<double> y) {
        return IF(
            i == 0, [&] { return x; }, [&] { return y * x; });
      });
    };
    const double nth = std::pow(0.7, static_cast<double>(n - 1));
    for (const Target target : {Target::c, Target::cpp}) {
      CHECK(compile(f, {.target = target})(0.7) == Approx(0.7 * nth));
      CHECK(compile(grad(f), {.target = target})(0.7) == Approx(static_cast<double>(n) * nth));
      CHECK(compile(grad(grad(f)), {.target = target})(0.7) == Approx(static_cast<double>(n * (n - 1)) * nth / 0.7));
    }
    CHECK(eager(grad(f))(0.7) == Approx(static_cast<double>(n) * nth));
  };
  for (const std::int64_t n : {1, 2, 3, 5, 6, 9, 20}) check(n);
}

TEST_CASE("index_set_splitting: modes that save values after a loop is staged keep the loop", "[passes]") {
  // A loop in a loop, with a recurrence that begins differently: its iterations would be split.
  const auto f = [](Rep<Array<double>> a) {
    Rep<Array<double>> y = a;
    const Rep<std::int64_t> n = a.size();
    FOR(0, 3, [&](Rep<std::int64_t> j) {
      FOR(0, n, [&](Rep<std::int64_t> i) {
        y = y.set(i, IF(
                         i < 2, [&] { return sin(y[i]) * cast<double>(j + 1); }, [&] { return y[i] * y[i - 2] + a[(i + 1) % n]; }));
      });
    });
    return sum(y * y);
  };
  const auto check = [&](const auto& gradient) {
    for (const std::size_t n : {0, 1, 2, 3, 9}) {
      std::vector<double> a(n);
      for (std::size_t i = 0; i < n; ++i) a[i] = std::cos(1.7 * static_cast<double>(i)) * 0.6;
      const std::vector<double> expected = eager(grad<0>(f))(a), seen = gradient(a);
      REQUIRE(seen.size() == n);
      for (std::size_t i = 0; i < n; ++i) CHECK(seen[i] == Approx(expected[i]).epsilon(1e-10).margin(1e-11));
    }
  };
  for (const Target target : {Target::c, Target::cpp}) {
    check(compile(grad<0, mode::taped>(f), {.target = target}));
    check(compile(grad<0, mode::checkpointed>(f), {.target = target}));
    check(compile(grad<0, mode::continuation>(f), {.target = target}));
    check(compile(grad<0>(f), {.target = target}));
  }
}
