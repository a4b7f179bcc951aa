// Checks of indices: those that cannot fail are not printed, and what is left fails as eager evaluation does.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../occurrences.hpp"
#include "depth.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using I = Rep<std::int64_t>;
using D = Rep<double>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

using lantern::test::count;

struct Checks {
  std::size_t in_place, before_loops;
};

/// The checks in a program's code.
template <class F>
Checks checks_of(F f, Target target = Target::c) {
  const std::string text = compile(f, {.target = target}).source(target == Target::c ? "c" : "cpp");
  const std::size_t body = text.find(target == Target::c ? "_entry(" : "extern \"C\"");
  const std::string function = text.substr(target == Target::c ? 0 : body);
  return {count(function, ") lt_fail_index(ws"), count(function, "lt_check_range(ws,")};
}

D total(const I& lo, const I& hi, const std::function<D(I)>& f) {
  return FOR(lo, hi, D(0.0), [&](I i, D s) { return s + f(i); });
}

}  // namespace

TEST_CASE("checks that cannot fail are not printed") {
  const auto none = [](auto f) {
    for (const Target target : {Target::c, Target::cpp}) {
      const Checks c = checks_of(f, target);
      INFO(compile(f, {.target = target}).source("cpp"));
      CHECK(c.in_place + c.before_loops == 0);
    }
  };
  none([](A a) { return total(0, a.size(), [&](I i) { return a[i]; }); });
  none([](A a) { return total(1, a.size() - 1, [&](I i) { return a[i - 1] * a[i + 1]; }); });
  none([](A a) { return total(0, a.size(), [&](I i) { return a[a.size() - 1 - i]; }); });
  none([](A a) { return total(0, a.size() / 2, [&](I i) { return a[2 * i + 1]; }); });
  none([](A a, I k) {
    return IF(
        AND(k >= 0, [&] { return k < a.size(); }), [&] { return a[k]; }, [&] { return D(0.0); });
  });
  none([](M m) {
    return total(0, m.dim(0), [&](I i) { return total(0, m.dim(1), [&](I j) { return m(i, j); }); });
  });
  none([](M m) {
    return total(0, m.dim(0), [&](I i) { return total(0, min(i, m.dim(1)), [&](I j) { return m(i, j); }); });
  });
  none([](I n) {
    const A a = FOR(0, n, fill(D(0.0), n), [&](I i, A x) { return x.set(i, cast<double>(i)); });
    return total(0, n, [&](I i) { return a[i] * a[i]; });
  });
  none(grad([](A a) { return total(0, a.size(), [&](I i) { return sin(a[i]) * a[i]; }); }));
  none(grad([](A a) { return total(0, a.size() - 1, [&](I i) { return a[i] * a[i + 1]; }); }));
}

TEST_CASE("what a tape gives back has the shape of what was saved") {
  const Checks c = checks_of(grad<0>([](A a, I n) {
    const A last = FOR(0, n, a, [](I, A x) {
      return FOR(0, x.size(), x, [&](I i, A y) { return y.set(i, x[i] * x[x.size() - 1 - i]); });
    });
    return total(0, last.size(), [&](I i) { return last[i]; });
  }));
  CHECK(c.in_place + c.before_loops == 0);
}

TEST_CASE("a count down stays above zero") {
  const Checks c = checks_of([](A a) {
    return WHILE(
        std::tuple(a.size(), D(0.0)), [](I n, D) { return 0 < n; },
        [&](I n, D s) { return std::tuple(n - 1, s + a[n - 1]); });
  });
  CHECK(c.in_place + c.before_loops == 0);
}

TEST_CASE("a remainder stays below its divisor") {
  CHECK(checks_of([](A a) {
          return total(0, a.size(), [&](I i) { return a[(i + 1) % a.size()]; });
        }).in_place == 0);
  CHECK(checks_of([](A a) {
          return total(0, a.size(), [&](I i) { return a[(i + a.size() - 1) % a.size()]; });
        }).in_place == 0);
}

TEST_CASE("one check stands before a loop") {
  const Checks plain =
      checks_of([](A a, A b) { return total(0, a.size(), [&](I i) { return a[i] * b[i]; }); });
  CHECK(plain.in_place == 0);
  CHECK(plain.before_loops == 1);
  const Checks invariant =
      checks_of([](A a, A b, I k) { return total(0, a.size(), [&](I i) { return a[i] * b[k]; }); });
  CHECK(invariant.before_loops + invariant.in_place == 1);
  // What an iteration prints comes before what it fails of.
  const Checks printing = checks_of([](A a, A b) {
    return total(0, a.size(), [&](I i) {
      print(a[i], "a");
      return b[i];
    });
  });
  CHECK(printing.before_loops == 0);
  CHECK(printing.in_place == 1);
  // One of equal indices is checked.
  CHECK(checks_of([](A a, I k) { return a[k] * a[k] + a[k]; }).in_place == 1);
}

TEST_CASE("numbers of elements are checked once in lanes, for all arrays of a size") {
  using Ints = Rep<Array<std::int64_t>>;
  const auto checks = [](auto f) {
    const std::string text = compile(f, {.target = Target::cpp, .lanes = 4}).source("cpp");
    const std::size_t loop = text.find("while (", text.rfind("#pragma"));  // functions stand below it
    return count(text.substr(loop, text.find("\n  }", loop) - loop), "lt_check_i64x");
  };
  // x's elements are read, and what is made of them is added to elements of an array of its size.
  const auto sparse = [](Ints at, A value, A x) {
    return total(0, at.size(), [&](I k) { return value[k] * x[at[k]] * x[at[k]]; });
  };
  CHECK(checks(grad<1, 2>(sparse)) == 1);
  const auto two = [](Ints at, A x, A y) {
    return total(0, at.size(), [&](I k) { return x[at[k]] * y[at[k]]; });
  };
  CHECK(checks(two) == 2);
  // Outside is outside, in whichever lane.
  const auto gradient = compile(grad<1, 2>(sparse), {.target = Target::cpp, .lanes = 4});
  const std::vector<double> x{1, 2, 3}, value(9, 0.5);
  for (const std::int64_t bad : {-1, 3})
    for (std::size_t k = 0; k < 9; ++k) {
      std::vector<std::int64_t> at(9, 1);
      CHECK(std::get<1>(gradient(at, value, x))[1] == 18.0);
      at[k] = bad;
      CHECK_THROWS_WITH(gradient(at, value, x),
                        Catch::Contains("index " + std::to_string(bad) + " is outside 0..2"));
    }
}

TEST_CASE("sums that wrap are not taken for small ones") {
  const auto guarded = [](A a, I i) {
    return IF(
        AND(i >= 0, [&] { return i + 5 < a.size(); }), [&] { return a[i + 5]; }, [&] { return D(-1.0); });
  };
  const auto offset = [](A a, I n) { return total(0, n, [&](I i) { return a[i + 1]; }); };
  const std::vector<double> a{1, 2, 3};
  for (const Target target : {Target::c, Target::cpp}) {
    auto f = compile(guarded, {.target = target});
    CHECK(f(a, 1) == -1);
    CHECK_THROWS_WITH(f(a, INT64_MAX - 2),
                      Catch::Matchers::StartsWith("index -9223372036854775806 is outside 0..2"));
    auto g = compile(offset, {.target = target});
    CHECK(g(a, 2) == 5);
    CHECK(g(a, INT64_MIN) == 0);
    CHECK_THROWS_WITH(g(a, INT64_MAX), Catch::Matchers::StartsWith("index 3 is outside 0..2"));
  }
}

TEST_CASE("sizes and counters are not taken for small ones where nothing says so") {
  const auto fails = [](const auto& f, const auto&... arguments) {
    CHECK_THROWS_AS(eager(f)(arguments...), Error);
    for (const Target target : {Target::c, Target::cpp})
      for (const int opt : {0, 3}) {
        INFO("opt " << opt);
        CHECK_THROWS_AS(compile(f, {.target = target, .opt = opt})(arguments...), Error);
      }
  };
  // A matrix of no rows that says it has 2^55 columns: 512 of these wrap.
  const auto columns = [](M w, D x) {
    const I n = w.dim(1);
    return sum(fill(x, 512 * n + 10).set(64 * n + 1000, 1.0));
  };
  fails(columns, TensorView<const double>(nullptr, {0, std::int64_t{1} << 55}), 2.0);
  fails(columns, TensorView<const double>(nullptr, {0, -1}), 2.0);
  // Compilers know what this loop gives without an iteration.
  const auto counted = [](I n, D x) {
    const I k = WHILE(
        I(0), [=](I i) { return i < n; }, [](I i) { return i + 1; });
    return sum(fill(x, 512 * k + 10).set(64 * k + 1000, 1.0));
  };
  CHECK_THROWS_AS(compile(counted, {.target = Target::cpp})(std::int64_t{1} << 55, 2.0), Error);
  // Both sides are bounded, but not so that 512 of them are.
  const auto chosen = [](M w, A a, I c) {
    const I n = 512 * select(c > 0, 512 * w.dim(1), 512 * w.dim(1) + 1);
    return IF(
        n < a.size(), [&] { return a[n]; }, [] { return D(0.0); });
  };
  fails(chosen, TensorView<const double>(nullptr, {0, std::int64_t{1} << 45}), std::vector<double>{1, 2}, 1);
  // A counter that starts anywhere may wrap to below where it started.
  const auto wraps = [](A a, I from) {
    return IF(
        from >= 0,
        [&] {
          return std::get<1>(WHILE(
              std::tuple(from, D(0.0)), [=](I i, D) { return i != -9223372036854775807; },
              [=](I i, D s) {
                return std::tuple(i + 1, s + IF(
                                                 i < a.size(), [&] { return a[i]; }, [] { return D(0.0); }));
              }));
        },
        [] { return D(0.0); });
  };
  fails(wraps, std::vector<double>{1, 2, 3}, INT64_MAX - 2);
  // Nothing is known of where a loop ends that asks for a number by ==.
  const auto unequal = [](A a, I n) {
    const I k = WHILE(
        I(0), [=](I i) { return i != n; }, [](I i) { return i + 1; });
    return IF(
        k < a.size(), [&] { return a[k]; }, [] { return D(0.0); });
  };
  CHECK_THROWS_AS(compile(unequal, {.target = Target::cpp})(std::vector<double>{1, 2, 3}, -5), Error);
}

TEST_CASE("a size times zero is zero") {
  const auto f = [](A a, A b) {
    return IF(
        I(0) <= a.size() * 0, [&] { return b[a.size()]; }, [] { return D(0.0); });
  };
  for (const int opt : {0, 3})
    CHECK(compile(f, {.target = Target::c, .opt = opt})(std::vector<double>{1, 2},
                                                        std::vector<double>{1, 2, 3}) == 3);
}

namespace {

// ---- random loops around one access

/// An integer, as a tree.
struct Term {
  enum Kind {
    number,
    size,
    other,
    argument,
    outer,
    inner,
    sum,
    difference,
    multiple,
    quotient,
    remainder,
    least,
    most
  } kind = number;
  std::int64_t value = 0;
  std::vector<Term> of;
};

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  Term term(int depth, int variables) {
    Term t;
    if (depth == 0 || below(3) == 0) {
      const int k = below(4 + variables);
      t.kind = k < 1   ? Term::number
               : k < 2 ? Term::size
               : k < 3 ? Term::other
               : k < 4 ? Term::argument
               : k < 5 ? Term::outer
                       : Term::inner;
      t.value = below(7) - 2;
      return t;
    }
    static constexpr Term::Kind kinds[] = {Term::sum,        Term::sum,      Term::sum,      Term::difference,
                                           Term::difference, Term::multiple, Term::quotient, Term::remainder,
                                           Term::least,      Term::most};
    t.kind = kinds[below(10)];
    t.value = t.kind == Term::quotient || below(2) == 0 ? 2 : -1;
    t.of.push_back(term(depth - 1, variables));
    if (t.kind != Term::multiple && t.kind != Term::quotient) t.of.push_back(term(depth - 1, variables));
    return t;
  }

 private:
  std::mt19937 random_;
};

struct Values {
  I size, other, argument, outer, inner;
};

I value(const Term& t, const Values& v) {
  const auto of = [&](std::size_t i) { return value(t.of[i], v); };
  switch (t.kind) {
    case Term::number:
      return I(t.value);
    case Term::size:
      return v.size;
    case Term::other:
      return v.other;
    case Term::argument:
      return v.argument;
    case Term::outer:
      return v.outer;
    case Term::inner:
      return v.inner;
    case Term::sum:
      return of(0) + of(1);
    case Term::difference:
      return of(0) - of(1);
    case Term::multiple:
      return t.value * of(0);
    case Term::quotient:
      return of(0) / t.value;
    case Term::remainder: {
      const I by = of(1);
      return of(0) % IF(
                         by == 0, [] { return I(3); }, [&] { return by; });
    }
    case Term::least:
      return min(of(0), of(1));
    case Term::most:
      return max(of(0), of(1));
  }
  return I(0);
}

/// Loops over random ranges, a condition, one access.
class Program {
 public:
  explicit Program(unsigned seed) : r_(seed) {
    shape_ = r_.below(5);
    steps_ = r_.below(3);
    guard_ = r_.below(3);
    for (Term* t : {&lo_, &hi_}) *t = r_.term(1, 0);
    for (Term* t : {&inner_lo_, &inner_hi_}) *t = r_.term(1, 1);
    index_ = r_.term(2, shape_ >= 2 ? 2 : 1);
    left_ = r_.term(1, shape_ >= 2 ? 2 : 1);
    right_ = r_.term(1, shape_ >= 2 ? 2 : 1);
  }

  D operator()(A a, A b, I p) const {
    Values v{a.size(), b.size(), p, I(0), I(0)};
    const auto leaf = [&](const Values& w, D s) {
      const auto read = [&] {
        const I i = value(index_, w);
        return s + a[i] * 1.5 + cast<double>(i);
      };
      if (guard_ == 0) return read();
      if (guard_ == 1) return IF(value(left_, w) < value(right_, w), read, [&] { return s; });
      const I i = value(index_, w);
      return IF(AND(i >= 0, [&] { return i < value(right_, w); }), read, [&] { return s; });
    };
    const auto inner = [&](const Values& w, D s) {
      if (shape_ < 2) return leaf(w, s);
      return loop(value(inner_lo_, w), value(inner_hi_, w), steps_, s, [&](I j, D t) {
        Values x = w;
        x.inner = j;
        return leaf(x, t);
      });
    };
    return loop(value(lo_, v), value(hi_, v), shape_ == 4 ? 0 : shape_ % 2, D(0.0), [&](I i, D s) {
      Values w = v;
      w.outer = i;
      return inner(w, s);
    });
  }

 private:
  /// kind 0: up by one; 1: down by one; 2: up by two.
  static D loop(I lo, I hi, int kind, D s, const std::function<D(I, D)>& body) {
    if (kind == 0) return FOR(lo, hi, s, body);
    if (kind == 1)
      return std::get<1>(WHILE(
          std::tuple(hi, s), [&](I n, D) { return lo < n; },
          [&](I n, D t) { return std::tuple(n - 1, body(n - 1, t)); }));
    return std::get<1>(WHILE(
        std::tuple(lo, s), [&](I n, D) { return n + 1 < hi; },
        [&](I n, D t) { return std::tuple(n + 2, body(n, t)); }));
  }

  Random r_;
  int shape_, steps_, guard_;
  Term lo_, hi_, inner_lo_, inner_hi_, index_, left_, right_;
};

/// What a call gives, or how it fails: without the place.
std::string outcome(const std::function<double()>& call) {
  try {
    return fmt::format("{}", call());
  } catch (const Error& e) {
    const std::string text = e.what();
    const std::size_t from = std::min(text.find("index "), text.size());
    return text.substr(from, text.find(" (", from) - from);
  }
}

}  // namespace

TEST_CASE("random loops read what they should, or fail as they should") {
  int failures = 0, values = 0;
  test::Seeds(300, 10000).each([&](unsigned seed) {
    const Program program(seed);
    const auto f = [&](A a, A b, I p) { return program(a, b, p); };
    auto by_eager = eager(f);
    auto by_c = compile(f, {.target = Target::c});
    // Vectors and their tails.
    const bool clang = seed % 10 == 0;
    auto by_cpp = compile(f, {.target = clang ? Target::cpp : Target::c, .opt = clang ? 2 : 1});
    for (const int n : {0, 1, 3, 8, 21})
      for (const int m : {0, 2, 20})
        for (const std::int64_t p : {-1, 0, 2, 9}) {
          std::vector<double> a(static_cast<std::size_t>(n)), b(static_cast<std::size_t>(m));
          for (std::size_t i = 0; i < a.size(); ++i) a[i] = 1.0 / static_cast<double>(1 << i);
          const std::string expected = outcome([&] { return by_eager(a, b, p); });
          (expected.starts_with("index") ? failures : values) += 1;
          INFO("seed " << seed << ", sizes " << n << " " << m << ", argument " << p << "\n"
                       << by_c.source("c"));
          REQUIRE(outcome([&] { return by_c(a, b, p); }) == expected);
          // Of the lanes of one vector any may be named.
          const auto unnamed = [](const std::string& t) {
            return t.starts_with("index") ? t.substr(t.find(" is outside")) : t;
          };
          REQUIRE(unnamed(outcome([&] { return by_cpp(a, b, p); })) == unnamed(expected));
        }
  });
  CHECK(failures > values / 20);
  CHECK(values > failures / 20);
}

TEST_CASE("a check before a loop inside one that counts down") {
  // What the outer loop counts by is one more than what its header declares.
  const auto plate = [](A u, I n) {
    return FOR(0, n, D(0.0), [&](I row, D s) {
      const I i = n - 1 - row;
      return FOR(0, n, s, [&](I j, D t) { return t + u[max(i - 1, I(0)) * n + j] * u[i * n + j]; });
    });
  };
  const auto gradient = value_and_grad<0>(sig<double(Array<double>, std::int64_t)>(plate));
  const auto slow = eager(gradient);
  for (const CompileOptions& way :
       {CompileOptions{.target = Target::c}, {.target = Target::cpp}, {.target = Target::cpp, .lanes = 2}}) {
    const auto fast = compile(gradient, way);
    for (const std::int64_t n : {1, 2, 5, 20}) {
      std::vector<double> u(static_cast<std::size_t>(n * n));
      for (std::size_t i = 0; i < u.size(); ++i) u[i] = 1.0 / static_cast<double>(i + 1);
      const auto [y, dy] = fast(u, n);
      const auto [y1, dy1] = slow(u, n);
      CHECK(y == Approx(y1));
      for (std::size_t i = 0; i < u.size(); ++i) CHECK(dy[i] == Approx(dy1[i]).margin(1e-12));
    }
    CHECK_THROWS_WITH(fast(std::vector<double>(20 * 20 - 1), 20), Catch::Contains("is outside 0..398"));
  }
}

TEST_CASE("flat indices are checked before the loop, and fail as they should") {
  // Rows of n from a start on: numbers of the program, of which nothing is known, and which wrap.
  const auto rows = [](A a, I r, I c, I n, I from) {
    return FOR(0, r, D(0.0),
               [&](I i, D s) { return FOR(0, c, s, [&](I j, D t) { return t + a[i * n + j + from]; }); });
  };
  const auto triangle = [](A a, I r, I, I n, I from) {
    return FOR(0, r, D(0.0), [&](I i, D s) {
      return std::get<1>(WHILE(
          std::tuple(i, s), [&](I j, D) { return j > 0; },
          [&](I j, D t) { return std::tuple(j - 1, t * 0.5 + a[i * n + j - 1 + from]); }));
    });
  };
  const std::string code = compile(rows, {.target = Target::c}).source("c");
  CHECK(code.find("lt_check_run(ws,") != std::string::npos);
  CHECK(code.find("lt_outside(") == std::string::npos);
  const auto agree = [](const auto& program) {
    const auto slow = eager(program);
    const auto by_c = compile(program, {.target = Target::c});
    const auto by_cpp = compile(program, {.target = Target::cpp, .opt = 2});
    int failures = 0, values = 0;
    constexpr std::int64_t large = std::numeric_limits<std::int64_t>::max();
    std::vector<double> a(40);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = 1.0 / static_cast<double>(i + 1);
    for (const std::int64_t r : {0, 1, 3})
      for (const std::int64_t c : {0, 1, 4, 20})
        for (const std::int64_t n : {std::int64_t{0}, std::int64_t{4}, std::int64_t{-4}, std::int64_t{13},
                                     std::int64_t{1} << 62, large, -large})
          for (const std::int64_t from :
               {std::int64_t{0}, std::int64_t{10}, std::int64_t{-1}, std::int64_t{38}, large, -large}) {
            CAPTURE(r, c, n, from);
            const std::string expected = outcome([&] { return slow(a, r, c, n, from); });
            (expected.starts_with("index") ? failures : values) += 1;
            CHECK(outcome([&] { return by_c(a, r, c, n, from); }) == expected);
            const std::string got = outcome([&] { return by_cpp(a, r, c, n, from); });
            CHECK(got.starts_with("index") == expected.starts_with("index"));
          }
    CHECK(failures > 50);
    CHECK(values > 50);
  };
  agree(rows);
  agree(triangle);
  // Indices that fall as the loop counts up, also by more than one, and that rise as it counts down.
  const auto falling = [](A a, I r, I c, I n, I from) {
    return FOR(0, r, D(0.0), [&](I i, D s) {
      return FOR(0, c, s, [&](I j, D t) { return 0.5 * t + a[from + i * n - j]; });
    });
  };
  const auto leaping = [](A a, I r, I c, I n, I from) {
    return FOR(0, c, D(0.0), [&](I j, D t) { return 0.5 * t + a[from + r * n - 3 * j]; });
  };
  const auto rising = [](A a, I r, I c, I n, I from) {
    return std::get<1>(WHILE(
        std::tuple(c, D(0.0)), [&](I j, D) { return j > 0; },
        [&](I j, D t) { return std::tuple(j - 1, t * 0.5 + a[from + r * n - (j - 1)]); }));
  };
  CHECK(compile(falling, {.target = Target::c}).source("c").find("lt_check_run_back(ws,") !=
        std::string::npos);
  agree(falling);
  agree(leaping);
  agree(rising);
}
