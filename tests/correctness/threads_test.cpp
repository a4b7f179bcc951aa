// Loops that threads share out: the numbers of one thread, its failures, and who may not fork.
#include <catch2/catch.hpp>
#include <cmath>
#include <csetjmp>
#include <random>
#include <thread>

#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/lantern.hpp"

namespace lantern {
namespace {

using Num = Rep<double>;
using Int = Rep<std::int64_t>;
using Vec = Rep<Array<double>>;
using Ints = Rep<Array<std::int64_t>>;
using Mat = Rep<Tensor<double, dyn, dyn>>;

CompileOptions in_threads(int n, Target target = Target::c) {
  return {.target = target, .opt = 3, .threads = n};
}

std::vector<double> numbers(std::size_t n, double from = 0.1) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = from + 0.37 * std::sin(1.7 * static_cast<double>(i));
  return v;
}

template <class F>
Num total(const Int& n, F f) {
  return FOR(0, n, 0.0, [&](Int i, Num s) { return s + f(i); });
}

void check_close(double a, double b) { CHECK(a == Approx(b).epsilon(1e-10).margin(1e-11)); }
void check_close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) wrong += a[i] != Approx(b[i]).epsilon(1e-10).margin(1e-11);
  CHECK(wrong == 0);
}

/// No iterations, fewer than threads, too few to pay, many, and such that leave remainders.
const std::size_t lengths[] = {0, 1, 2, 3, 5, 1000, 600000, 600007};

bool forks(const std::string& ir) { return ir.find("call[fork ") != std::string::npos; }

/// Value and gradient of a function of one array, in threads and without, with every compiler.
template <class F>
void check_in_threads(F f) {
  const auto program = value_and_grad(sig<double(Array<double>)>(f));
  for (const Target target : {Target::c, Target::cpp}) {
    const auto one = compile(program, in_threads(1, target));
    CHECK_FALSE(forks(one.source("ir")));
    for (const int n : {2, 3, 7}) {
      if (target == Target::cpp && n == 7) continue;
      const auto several = compile(program, in_threads(n, target));
      CHECK(forks(several.source("ir")));
      CHECK(several.source("c").find("ws->fork(ws, " + std::to_string(n)) != std::string::npos);
      for (const std::size_t length : lengths) {
        CAPTURE(n, length);
        const std::vector<double> x = numbers(length);
        const auto [y1, dx1] = one(x);
        const auto [y, dx] = several(x);
        check_close(y, y1);
        check_close(dx, dx1);
        const auto [again, d_again] = several(x);
        CHECK((again == y && d_again == dx));  // bit for bit
      }
    }
  }
}

}  // namespace

TEST_CASE("threads: sums, and elements of an iteration's own", "[threads]") {
  check_in_threads([](Vec a) { return total(a.size(), [&](Int i) { return sin(a[i]) * a[i] + 1.0; }); });
  check_in_threads([](Vec a) {
    const Vec b = FOR(0, a.size(), fill(Num(0.0), a.size()),
                      [&](Int i, Vec v) { return v.set(i, exp(a[i]) / (1.0 + a[i] * a[i])); });
    return total(a.size(), [&](Int i) { return b[i] * a[i]; });
  });
}

TEST_CASE("threads: what counts beside the index, and where a loop ends", "[threads]") {
  check_in_threads([](Vec a) {
    const auto [s, t, k] =
        FOR(0, a.size(), std::tuple(Num(0.5), Num(2.0), Int(3)), [&](Int i, Num u, Num v, Int w) {
          return std::tuple(u + a[i] * a[i], v - tanh(a[i]) / cast<double>(w), w + 2);
        });
    return s * t + cast<double>(k);
  });
  // From the second element on: the first iteration is not iteration 0.
  check_in_threads(
      [](Vec a) { return FOR(1, a.size(), 1.0, [&](Int i, Num s) { return s + a[i] * sin(a[i - 1]); }); });
}

TEST_CASE("threads: the largest, the smallest, and whether any is", "[threads]") {
  const auto f = sig<std::tuple<double, double, bool>(Array<double>)>([](Vec a) {
    return FOR(0, a.size(), std::tuple(Num(-2.0), Num(2.0), Rep<bool>(false)),
               [&](Int i, Num most, Num least, Rep<bool> any) {
                 const Num v = sin(a[i]) * exp(-a[i] * a[i]);
                 const Rep<bool> large = v > 0.35;
                 return std::tuple(max(most, v), min(v, least), OR(any, [&] { return large; }));
               });
  });
  const auto one = compile(f, in_threads(1)), three = compile(f, in_threads(3));
  CHECK(forks(three.source("ir")));
  for (const std::size_t length : lengths) {
    std::vector<double> a = numbers(length, 5.0);
    CHECK(three(a) == one(a));
    for (const std::size_t place : {length / 20, length / 2, length - 1}) {
      if (place >= length) continue;
      a[place] = 0.5;  // the largest, and the only one above 0.35
      CHECK(three(a) == one(a));
      CHECK(std::get<2>(three(a)));
      a[place] = std::nan("");  // is neither
      CHECK(three(a) == one(a));
      a[place] = -0.5;
      CHECK(three(a) == one(a));
      a[place] = 5;
    }
  }
}

TEST_CASE("threads: inner loops with arrays and tapes of an iteration", "[threads]") {
  check_in_threads([](Vec a) {
    return total(a.size(), [&](Int i) {
      const Vec w =
          FOR(0, 5, fill(Num(0.0), 5), [&](Int k, Vec v) { return v.set(k, a[i] * cast<double>(k + 1)); });
      const Num top = FOR(1, 5, w[0], [&](Int k, Num m) { return max(m, w[k]); });
      return FOR(0, 3, top, [&](Int, Num t) { return t * sin(t); });
    });
  });
}

TEST_CASE("threads: iterations that meet at one element add up", "[threads]") {
  const auto f =
      sig<double(Array<double>, Array<double>, Array<std::int64_t>)>([](Vec table, Vec other, Ints at) {
        return total(at.size(), [&](Int i) {
          return table[at[i]] * sin(table[at[i]]) * cast<double>(i % 7 + 1) + other[at[i]] * table[0];
        });
      });
  for (const Target target : {Target::c, Target::cpp})
    for (const int threads : {2, 4}) {
      const auto one = compile(grad<0, 1>(f), in_threads(1, target));
      const auto several = compile(grad<0, 1>(f), in_threads(threads, target));
      // Each has zeros of its own to add to.
      CHECK(several.source("c").find("ws->fork(ws, " + std::to_string(threads)) != std::string::npos);
      for (const std::size_t n : lengths) {
        std::vector<std::int64_t> at(n);
        for (std::size_t i = 0; i < n; ++i) at[i] = static_cast<std::int64_t>(i * i % 5);
        const auto [a, b] = several(numbers(5), numbers(5, 0.3), at);
        const auto [a1, b1] = one(numbers(5), numbers(5, 0.3), at);
        check_close(a, a1);
        check_close(b, b1);
      }
    }
}

TEST_CASE("threads: sums into elements, as they are spelled", "[threads]") {
  const auto check = [](auto program, const auto&... arguments) {
    const auto one = compile(program, in_threads(1)), several = compile(program, in_threads(3));
    CHECK(forks(several.source("ir")));
    check_close(several(arguments...), one(arguments...));
  };
  const auto histogram = sig<Array<double>(Array<double>, Array<double>, Array<std::int64_t>)>(
      [](Vec start, Vec weight, Ints at) {
        return FOR(0, at.size(), start, [&](Int i, Vec h) { return h.set(at[i], h[at[i]] + weight[i]); });
      });
  const auto alternating = sig<Array<double>(Array<double>, Array<double>, Array<std::int64_t>)>(
      [](Vec start, Vec weight, Ints at) {
        return FOR(0, at.size(), start, [&](Int i, Vec h) {
          const Vec more = h.set(at[i], h[at[i]] - 2.0 * weight[i]);
          return more.set(i % 3, exp(weight[i]) + more[i % 3]);
        });
      });
  for (const std::size_t n : lengths) {
    std::vector<std::int64_t> at(n);
    for (std::size_t i = 0; i < n; ++i) at[i] = static_cast<std::int64_t>(i * i % 5);
    check(histogram, numbers(5), numbers(n), at);
    check(alternating, numbers(5), numbers(n), at);
  }
  // What is read elsewhere as well, or scaled, is no sum.
  const auto scaled = sig<Array<double>(Array<double>, Array<std::int64_t>)>([](Vec start, Ints at) {
    return FOR(0, at.size(), start, [&](Int i, Vec h) { return h.set(at[i], 0.5 * h[at[i]] + 1.0); });
  });
  const auto read = sig<Array<double>(Array<double>, Array<std::int64_t>)>([](Vec start, Ints at) {
    return FOR(0, at.size(), start, [&](Int i, Vec h) { return h.set(at[i], h[at[i]] + 0.1 * h[0]); });
  });
  CHECK_FALSE(forks(compile(scaled, in_threads(2)).source("ir")));
  CHECK_FALSE(forks(compile(read, in_threads(2)).source("ir")));
}

TEST_CASE("threads: rows of the caller's matrix are written where they belong", "[threads]") {
  const auto rows = sig<Tensor<double, dyn, dyn>(Array<double>)>([](Vec a) {
    return FOR(0, a.size(), fill(Num(0.0), a.size(), 3), [&](Int i, Mat m) {
      const auto g = grad([&](Num x) { return sin(x) * a[i]; })(a[i]);
      return m.set(i, 0, a[i]).set(i, 1, a[i] * a[i]).set(i, 2, g);
    });
  });
  for (const Target target : {Target::c, Target::cpp}) {
    const auto one = compile(rows, in_threads(1, target)), two = compile(rows, in_threads(2, target));
    CHECK(two.source("c").find("ws->fork") != std::string::npos);
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{50001}}) {
      const std::vector<double> x = numbers(n);
      std::vector<double> here(3 * n), expected(3 * n);
      const auto view = [&](std::vector<double>& v) {
        return TensorView<double>(v.data(), {static_cast<std::int64_t>(n), 3});
      };
      one.into(view(expected), x);
      two.into(view(here), x);
      check_close(here, expected);
    }
  }
}

TEST_CASE("threads: an argument that the loop starts from stays as it is", "[threads]") {
  const auto f = sig<double(Array<double>)>([](Vec a) {
    const Vec b = FOR(0, a.size(), a, [&](Int i, Vec v) { return v.set(i, sin(v[i]) + cos(v[i])); });
    return b[0] + a[0] + total(a.size(), [&](Int i) { return a[i] * b[i]; });
  });
  const auto one = compile(f, in_threads(1)), two = compile(f, in_threads(2));
  CHECK(forks(two.source("ir")));
  const std::vector<double> x = numbers(400001);
  check_close(two(x), one(x));
  CHECK(x == numbers(400001));
}

TEST_CASE("threads: matrices and rows that all iterations add to", "[threads]") {
  const auto f = sig<double(Tensor<double, dyn, dyn>, Array<double>)>([](Mat w, Vec x) {
    return total(x.size() / 3, [&](Int n) {
      const auto y = matmul(w, x.slice(3 * n, 3 * n + 3));
      return sum(tanh(y));
    });
  });
  const std::vector<double> w = numbers(12), x = numbers(360000);
  const TensorView<const double> m(w.data(), {4, 3});
  const auto one = compile(value_and_grad<0>(f), in_threads(1)),
             two = compile(value_and_grad<0>(f), in_threads(2));
  CHECK(forks(two.source("ir")));
  const auto [y1, d1] = one(m, x);
  const auto [y, d] = two(m, x);
  check_close(y, y1);
  check_close(std::vector<double>(d.data.begin(), d.data.end()),
              std::vector<double>(d1.data.begin(), d1.data.end()));
}

TEST_CASE("threads: a loop inside a loop that cannot fork", "[threads]") {
  // Steps of gradient descent, each over all points.
  const auto f = sig<double(double, Array<double>)>([](Num start, Vec a) {
    return FOR(0, 4, start, [&](Int, Num x) {
      const Num slope = total(a.size(), [&](Int i) { return sin(x * a[i]) * a[i]; });
      return x - slope / cast<double>(a.size());
    });
  });
  const std::vector<double> a = numbers(240001);
  const auto one = compile(f, in_threads(1)), two = compile(f, in_threads(2));
  CHECK(forks(two.source("ir")));
  check_close(two(0.7, a), one(0.7, a));
  // Its derivative keeps something of every iteration for later: that stays with one thread.
  check_close(compile(grad<0>(f), in_threads(2))(0.7, a), compile(grad<0>(f), in_threads(1))(0.7, a));
}

TEST_CASE("threads: what fails first with one thread fails with several", "[threads]") {
  const auto f = sig<double(Array<double>, Array<std::int64_t>)>(
      [](Vec a, Ints at) { return total(at.size(), [&](Int i) { return sin(a[at[i]]) * a[at[i]]; }); });
  for (const Target target : {Target::c, Target::cpp}) {
    const auto one = compile(value_and_grad<0>(f), in_threads(1, target));
    const auto three = compile(value_and_grad<0>(f), in_threads(3, target));
    CHECK(forks(three.source("ir")));
    const auto failure = [](const auto& call, const std::vector<std::int64_t>& at) -> std::string {
      try {
        call(numbers(10), at);
      } catch (const Error& e) {
        return e.what();
      }
      return "";
    };
    const std::size_t n = 360000;
    std::vector<std::int64_t> good(n, 3);
    CHECK(failure(three, good).empty());
    for (const std::vector<std::size_t>& places : {std::vector<std::size_t>{0},
                                                   {10},
                                                   {n / 3 + 1},
                                                   {n - 1},
                                                   {n - 1, n / 2},
                                                   {n / 2 + 5, n / 2 + 4, 7}}) {
      std::vector<std::int64_t> bad = good;
      for (const std::size_t p : places) bad[p] = static_cast<std::int64_t>(10 + p);
      CHECK(failure(three, bad).find("is outside 0..9") != std::string::npos);
      CHECK(failure(three, bad) == failure(one, bad));
    }
    CHECK(failure(three, good).empty());  // and goes on working
  }
}

TEST_CASE("threads: the first NaN is named", "[threads]") {
  const auto f = sig<double(Array<double>)>(
      [](Vec a) { return total(a.size(), [&](Int i) { return log(a[i]) * a[i]; }); });
  const auto failure = [&](int threads, std::vector<std::size_t> places) -> std::string {
    CompileOptions options = in_threads(threads);
    options.check = Check::nan;
    const auto call = compile(f, options);
    CHECK(forks(call.source("ir")) == (threads > 1));
    std::vector<double> x(100000, 1.5);
    for (const std::size_t p : places) x[p] = -1;
    try {
      call(x);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  CHECK(failure(2, {}).empty());
  CHECK(failure(2, {70000}).find("nan") != std::string::npos);
  CHECK(failure(2, {70000}) == failure(1, {70000}));
}

TEST_CASE("threads: calls from several threads of the user's", "[threads]") {
  const auto f = sig<double(Array<double>)>(
      [](Vec a) { return total(a.size(), [&](Int i) { return exp(sin(a[i])); }); });
  const auto one = compile(value_and_grad(f), in_threads(1, Target::cpp));
  const auto two = compile(value_and_grad(f), in_threads(2, Target::cpp));
  std::vector<double> wrong(4, 0);
  std::vector<std::thread> users;
  for (std::size_t u = 0; u < wrong.size(); ++u)
    users.emplace_back([&, u] {
      const std::vector<double> x = numbers(480000 + u, 0.1 * static_cast<double>(u));
      const auto [y1, d1] = one(x);
      for (int i = 0; i < 5; ++i) {
        const auto [y, d] = two(x);
        wrong[u] += std::abs(y - y1) > 1e-8 * std::abs(y1);
        for (std::size_t k = 0; k < x.size(); k += 997) wrong[u] += std::abs(d[k] - d1[k]) > 1e-10;
      }
    });
  for (std::thread& t : users) t.join();
  CHECK(wrong == std::vector<double>(4, 0));
}

TEST_CASE("threads: the memory of ranges is kept and counted", "[threads]") {
  const auto f = sig<double(Array<double>)>([](Vec a) {
    return total(a.size(), [&](Int i) {
      const Vec w =
          FOR(0, 100, fill(Num(0.0), 100), [&](Int k, Vec v) { return v.set(k, a[i] * cast<double>(k)); });
      return FOR(0, 100, 0.0, [&](Int k, Num s) { return s + sin(w[99 - k]); });
    });
  });
  const auto call = compile(value_and_grad(f), in_threads(2));
  CHECK(forks(call.source("ir")));
  const std::vector<double> x = numbers(20000);
  const auto alone = compile(value_and_grad(f), in_threads(1));
  // In threads of the user's that begin without memory.
  const auto bytes_after = [&](const auto& compiled, int calls) {
    std::int64_t bytes = 0;
    std::thread([&] {
      for (int i = 0; i < calls; ++i) compiled(x);
      bytes = workspace_bytes();
    }).join();
    return bytes;
  };
  const std::int64_t once = bytes_after(alone, 1);
  REQUIRE(once > 0);
  CHECK(bytes_after(alone, 10) == once);
  // Each of two threads has memory of its own, which the eight ranges and all calls share.
  const std::int64_t in_two = bytes_after(call, 30);
  CHECK(in_two > once);
  CHECK(in_two < 8 * once);
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// A body so long that it is cut into functions hands arrays from one to another on a tape: what forks in the
// IR does so in the program.
TEST_CASE("threads: a loop of a long body forks", "[threads]") {
  const auto f = [](Mat means, Mat factors, Mat points) {
    const Int n = points.dim(0), d = points.dim(1), k = means.dim(0);
    const auto tabulate = [](Int size, auto g) {
      return FOR(0, size, fill(Num(0.0), size), [&](Int i, Vec v) { return v.set(i, g(i)); });
    };
    return total(n, [&](Int p) {
      const Vec terms = tabulate(k, [&](Int c) {
        const Vec centred = tabulate(d, [&](Int i) { return points(p, i) - means(c, i); });
        return -0.5 * total(d, [&](Int i) {
          const Num y = FOR(0, i, exp(factors(c, i)) * centred[i], [&](Int j, Num s) {
            return s + factors(c, (i * (i - 1)) / 2 + d + j) * centred[j];
          });
          return y * y;
        });
      });
      const Num most = FOR(1, k, terms[0], [&](Int c, Num m) { return max(m, terms[c]); });
      const Num likely = most + log(total(k, [&](Int c) { return exp(terms[c] - most); }));
      const Vec near = tabulate(k, [&](Int c) {
        return total(d, [&](Int i) { return tanh(points(p, i) * means(c, i)) * terms[c]; });
      });
      return likely + total(k, [&](Int c) { return sin(near[c]) * terms[c]; });
    });
  };
  const std::size_t n = 20003, k = 5, d = 6, size = d * (d + 1) / 2;
  const std::vector<double> means = numbers(k * d), factors = numbers(k * size, 0.2), points = numbers(n * d);
  const auto at = [&](const auto& v, std::size_t rows) {
    return TensorView<const double>(
        v.data(), {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(v.size() / rows)});
  };
  const auto [m1, f1, p1] =
      compile(grad(f), in_threads(1, Target::cpp))(at(means, k), at(factors, k), at(points, n));
  for (const Target target : {Target::c, Target::cpp}) {
    const auto two = compile(grad(f), in_threads(2, target));
    const std::string ir = two.source("ir");
    CHECK(ir.find("_part_2_part") != std::string::npos);
    CHECK(times(ir, "call[fork ") >= 1);
    CHECK(times(two.source("c"), "->fork(ws, 2") == times(ir, "call[fork "));
    const auto [m, f2, p] = two(at(means, k), at(factors, k), at(points, n));
    check_close(m.data, m1.data);
    check_close(f2.data, f1.data);
    check_close(p.data, p1.data);
  }
}

TEST_CASE("threads: a loop of a program that is compiled in parts forks", "[threads]") {
  const auto f = [](Vec a, Num x) {
    Num y = x;
    for (int i = 0; i < 3500; ++i) y = sin(y) * 0.5 + x;
    return total(a.size(), [&](Int i) { return tanh(a[i] * y) + sin(a[i]); });
  };
  const std::vector<double> a = numbers(20003);
  const auto two = compile(f, {.target = Target::cpp, .opt = 1, .threads = 2});
  CHECK(two.source("ir").find("call[fork ") != std::string::npos);
  CHECK(two(a, 0.3) == Approx(compile(f, {.target = Target::c})(a, 0.3)).epsilon(1e-10));
}

TEST_CASE("threads: random loops", "[threads]") {
  int forked = 0;
  for (unsigned seed = 0; seed < 24; ++seed) {
    CAPTURE(seed);
    // A term of the iteration's elements, two of the table's and the index.
    const auto term = [](std::mt19937& r, Num x, Num p, Num q, Int i) {
      Num v = x;
      for (int k = 0; k < 3 + static_cast<int>(r() % 5); ++k) {
        const Num other = r() % 3 == 0 ? p : r() % 2 == 0 ? q : x;
        switch (r() % 7) {
          case 0:
            v = v * other + 0.1;
            break;
          case 1:
            v = sin(v) + other;
            break;
          case 2:
            v = exp(-(v * v)) * other;
            break;
          case 3:
            v = v / (1.5 + other * other);
            break;
          case 4:
            v = IF(
                v > other, [&] { return v - 0.5 * other; }, [&] { return other * other; });
            break;
          case 5:
            v = FOR(0, 3, v, [&](Int, Num s) { return tanh(s) + 0.3 * other; });
            break;
          default:
            v = v + 0.01 * cast<double>(i % 5);
            break;
        }
      }
      return v;
    };
    const auto f = [seed, term](Vec a, Vec table) {
      std::mt19937 r(seed);
      const int kind = static_cast<int>(r() % 3);
      const Int first = static_cast<std::int64_t>(r() % 3);
      const auto [sum, own, bins] =
          FOR(first, a.size(), std::tuple(Num(0.25), fill(Num(1.0), a.size()), Num(0.0)),
              [&](Int i, Num s, Vec o, Num b) {
                const Num v = term(r, a[i], table[i % table.size()], table[(i * 7 + 1) % table.size()], i);
                const Num w = kind == 0 ? v : v * o[i];
                return std::tuple(kind == 1 ? s - v : s + v, o.set(i, w), b - sin(v));
              });
      return std::tuple(sum * bins * 1e-5, own);
    };
    const auto g = [f](Vec a, Vec table) {
      const auto [y, own] = f(a, table);
      return y + total(own.size(), [&](Int i) { return own[i] * sin(a[i]); });
    };
    const std::vector<double> a = numbers(160000 + seed), table = numbers(11, 0.4);
    const auto [y1, own1] = compile(f, in_threads(1))(a, table);
    const auto [d1, t1] = compile(grad(g), in_threads(1))(a, table);
    for (const int n : {2, 5}) {
      const auto value = compile(f, in_threads(n));
      const auto derivative = compile(grad(g), in_threads(n));
      CHECK(forks(value.source("ir")));
      // A loop that keeps values for the backward part does not fork, nor what has joined it.
      const std::string ir = derivative.source("ir");
      forked += forks(ir);
      CHECK((forks(ir) || ir.find("push[") != std::string::npos));
      const auto [y, own] = value(a, table);
      check_close(y, y1);
      check_close(own, own1);
      const auto [d, t] = derivative(a, table);
      check_close(d, d1);
      check_close(t, t1);
    }
  }
  CHECK(forked > 24);  // of 48
}

TEST_CASE("threads: an iteration behind a branch leaves the elements of other threads as they are", "[threads]") {
  constexpr std::int64_t n = 6'000'000;
  const auto f = [](Rep<Tensor<double, n>> x, Vec c, Int k) {
    return total(c.size(), [&](Int i) {
      return IF(c[i] > 0.0, [&] { return sin(x(k + i) * c[i]); }, [&] { return Num(0.0); });
    });
  };
  const auto slope = compile(grad<0>(f), in_threads(2, Target::cpp));
  // The first half of the iterations would be out of range; the second half adds to elements from the first on.
  std::vector<double> x(n, 0.3), c(n, 1.0);
  std::fill_n(c.begin(), n / 2, -1.0);
  int lost = 0;
  for (int call = 0; call < 10; ++call) lost += slope(TensorView<const double>(x.data(), {n}), c, -n / 2).data[0] == 0.0;
  CHECK(lost == 0);
}

TEST_CASE("threads: loops that do not fork", "[threads]") {
  const auto ir = [](auto f) { return compile(f, in_threads(2)).source("ir"); };
  // What an iteration needs of the iteration before.
  CHECK_FALSE(forks(ir(sig<double(Array<double>)>(
      [](Vec a) { return FOR(0, a.size(), 1.0, [&](Int i, Num s) { return sin(s) + a[i]; }); }))));
  // Elements that may be another iteration's.
  CHECK_FALSE(forks(ir(sig<double(Array<double>, Array<std::int64_t>)>([](Vec a, Ints at) {
    return FOR(0, at.size(), a, [&](Int i, Vec v) { return v.set(at[i], v[i] * v[i]); })[0];
  }))));
  CHECK_FALSE(forks(ir(sig<double(Array<double>)>(
      [](Vec a) { return FOR(0, a.size(), a, [&](Int i, Vec v) { return v.set(i, sin(v[0])); })[1]; }))));
  // Prints, in order.
  CHECK_FALSE(forks(ir(sig<double(Array<double>)>([](Vec a) {
    return total(a.size(), [&](Int i) {
      print(a[i], "x");
      return exp(a[i]);
    });
  }))));
  // Known to be short.
  CHECK_FALSE(forks(ir(
      sig<double(Array<double>)>([](Vec a) { return total(Int(100), [&](Int i) { return exp(a[i]); }); }))));
  // Recursion needs a stack of its own.
  const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, Num x, Int n) {
    return IF(
        n == 0, [&] { return Num(1.0); }, [&] { return x * self(x, n - 1); });
  });
  CHECK_FALSE(forks(ir(sig<double(Array<double>)>(
      [power](Vec a) { return total(a.size(), [&](Int i) { return power(a[i], i % 9); }); }))));
  // Nobody asked.
  CHECK_FALSE(forks(compile(sig<double(Array<double>)>([](Vec a) {
                      return total(a.size(), [&](Int i) { return exp(a[i]); });
                    })).source("ir")));
}

TEST_CASE("threads: options that make no sense", "[threads]") {
  const auto f = [](Num x) { return x * x; };
  CHECK_THROWS_WITH(compile(f, {.threads = 0}), "compile: expected from 1 to 64 threads, got 0");
  CHECK_THROWS_WITH(compile(f, {.threads = 65}), "compile: expected from 1 to 64 threads, got 65");
  CHECK_THROWS_WITH(
      compile(f, {.target = Target::cuda, .threads = 2}),
      "compile: expected one thread with Target::cuda, got 2: a kernel has a thread for every element");
}

namespace {

struct Row {
  double* data;
  std::int64_t dim[1];
};
std::jmp_buf failed;
std::string failure;
void note(const char* message) {
  failure = message;
  std::longjmp(failed, 1);
}

struct Indices {
  std::int64_t* data;
  std::int64_t dim[1];
};
using SumOf = double(lt_workspace*, Row, Indices);

/// How the function fails. Apart, so that nothing of the caller's is at stake where it comes back.
[[gnu::noinline]] std::string failure_of(SumOf* sum_of, lt_workspace* ws, const Row& a, const Indices& at) {
  failure.clear();
  if (setjmp(failed) == 0) sum_of(ws, a, at);
  return failure;
}

}  // namespace

TEST_CASE("threads: sources that stand alone", "[threads]") {
  const auto f = sig<double(Array<double>, Array<std::int64_t>)>(
      [](Vec a, Ints at) { return total(at.size(), [&](Int i) { return sin(a[at[i]]) * a[at[i]]; }); });
  CompileOptions options = in_threads(3);
  options.name = "sum_of";
  const auto expected = compile(f, in_threads(1));
  const auto forked = compile(f, options);
  std::vector<double> a = numbers(10);
  std::vector<std::int64_t> at(200000);
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(i % 10);
  const Row x{a.data(), {10}};
  const Indices index{at.data(), {static_cast<std::int64_t>(at.size())}};
  for (const std::string language : {"c", "cpp"}) {
    const std::string text = forked.source(language);
    CHECK(text.find("link with -pthread") != std::string::npos);
    CHECK(text.find("pthread_create(&worker->thread") != std::string::npos);
    const auto code = codegen::compile_with_system_compiler(
        text, language == "c" ? codegen::Language::c : codegen::Language::cpp);
    auto* workspace = code->function<lt_workspace*()>("sum_of_workspace");
    auto* sum_of = code->function<SumOf>("sum_of");
    code->function<void(void (*)(const char*))>("sum_of_on_failure")(note);
    const double y = sum_of(workspace(), x, index);
    check_close(y, expected(a, at));
    CHECK(sum_of(workspace(), x, index) == y);
    for (const std::size_t place : {std::size_t{5}, at.size() / 2, at.size() - 1}) {
      const std::int64_t good = at[place];
      at[place] = 17;
      CHECK(failure_of(sum_of, workspace(), x, index).find("index 17 is outside 0..9") == 0);
      at[place] = good;
    }
    CHECK(sum_of(workspace(), x, index) == y);
  }
}

}  // namespace lantern
