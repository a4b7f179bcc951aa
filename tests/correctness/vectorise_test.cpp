// Loops in lanes: the same numbers as without, at every length, and the accuracy of the functions they call.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "../lanes.hpp"
#include "lantern/lantern.hpp"

namespace lantern {
namespace {

using Num = Rep<double>;
using Int = Rep<std::int64_t>;
using Vec = Rep<Array<double>>;
using Ints = Rep<Array<std::int64_t>>;
using Mat = Rep<Tensor<double, dyn, dyn>>;

const CompileOptions lanes{.target = Target::cpp, .opt = 3, .lanes = test::lanes_under_test()};
CompileOptions scalar() {
  CompileOptions o = lanes;
  o.disabled_passes = {"vectorise"};
  return o;
}

std::vector<double> numbers(std::size_t n, double from = 0.1) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = from + 0.37 * std::sin(1.7 * static_cast<double>(i));
  return v;
}

template <class F>
Vec tabulate(const Int& n, F f) {
  return FOR(0, n, fill(Num(0.0), n), [&](Int i, Vec a) { return a.set(i, f(i)); });
}
template <class F>
Num total(const Int& n, F f) {
  return FOR(0, n, 0.0, [&](Int i, Num s) { return s + f(i); });
}

void check_close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(a[i] == Approx(b[i]).epsilon(1e-11).margin(1e-12));
  }
}

/// Whole blocks, incomplete ones, both, none.
const std::size_t lengths[] = {0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 63, 64, 65, 100, 129};

/// Value and gradient of a function of one array, in lanes and without.
template <class F>
void check_in_lanes(F f, const char* expected = "lane_index") {
  const auto program = sig<double(Array<double>)>(f);
  const auto fast = compile(value_and_grad(program), lanes),
             slow = compile(value_and_grad(program), scalar());
  CHECK(fast.source("ir").find(expected) != std::string::npos);
  CHECK(slow.source("ir").find("lane_") == std::string::npos);
  for (const std::size_t n : lengths) {
    CAPTURE(n);
    const std::vector<double> x = numbers(n);
    const auto [y, dx] = fast(x);
    const auto [y1, dx1] = slow(x);
    CHECK(y == Approx(y1).epsilon(1e-11).margin(1e-12));
    check_close(dx, dx1);
  }
  // The tail and a whole block against differences.
  const auto value = compile(program, lanes);
  std::vector<double> x = numbers(37);
  const auto dx = std::get<1>(fast(x));
  for (const std::size_t i : {std::size_t{0}, std::size_t{31}, std::size_t{36}}) {
    const double h = 1e-5, at = x[i];
    x[i] = at + h;
    const double up = value(x);
    x[i] = at - h;
    const double down = value(x);
    x[i] = at;
    CHECK(dx[i] == Approx((up - down) / (2 * h)).epsilon(1e-6).margin(1e-8));
  }
}

TEST_CASE("sums and elements of an iteration's own", "[vectorise]") {
  check_in_lanes([](Vec a) { return total(a.size(), [&](Int i) { return sin(a[i]) * a[i] + 1.0; }); });
  check_in_lanes([](Vec a) {
    const Vec b = tabulate(a.size(), [&](Int i) { return exp(a[i]) / (1.0 + a[i] * a[i]); });
    return total(a.size(), [&](Int i) { return b[i] * a[i]; });
  });
  // Two sums, an integer that counts beside the index, and what no lane changes.
  check_in_lanes([](Vec a) {
    const auto [s, t, k] =
        FOR(0, a.size(), std::tuple(Num(0.5), Num(2.0), Int(3)), [&](Int i, Num u, Num v, Int w) {
          return std::tuple(u + a[i] * a[i], v - tanh(a[i]) * cast<double>(w), w + 2);
        });
    return s * t + cast<double>(k);
  });
}

TEST_CASE("sums that a branch adds to", "[vectorise]") {
  check_in_lanes([](Vec a) {
    return FOR(0, a.size(), Num(0.0), [&](Int i, Num s) {
      const Num v = exp(a[i]) - 1.2;
      return IF(v > 0.0, [&] { return s + v; }, [&] { return s; });
    });
  });
  check_in_lanes([](Vec a) {
    Num s = 0.0, t = 1.0;
    FOR(0, a.size(), [&](Int i) {
      IF(a[i] > 0.2, [&] { s += a[i] * a[i]; }, [&] { IF(a[i] < 0.0, [&] { t -= sin(a[i]); }); });
    });
    return s * t;
  });
}

TEST_CASE("elements that some lanes change", "[vectorise]") {
  // A guard against a singular point: the adjoint goes to an element where the guard holds.
  check_in_lanes([](Vec a) {
    return total(a.size(), [&](Int i) {
      return IF(a[i] > 0.15, [&] { return log(a[i]) * a[i]; }, [&] { return Num(1.0); });
    });
  });
  // Both sides change an array, one of them in a branch of its own, and both read others.
  check_in_lanes([](Vec a) {
    const Vec b = tabulate(a.size(), [&](Int i) { return cos(a[i]); });
    Vec c = a;
    FOR(0, a.size(), [&](Int i) {
      IF(
          a[i] < 0.2, [&] { c = c.set(i, b[i] * a[i]); },
          [&] {
            c = c.set(i, c[i] + b[i]);
            IF(a[i] > 0.4, [&] { c = c.set(i, sin(c[i])); });
          });
    });
    return sum(c * c);
  });
  // One element that all add to, and elements by number.
  check_in_lanes(
      [](Vec a) {
        Vec bins = fill(Num(0.0), Int(3));
        FOR(0, a.size(), [&](Int i) {
          IF(
              a[i] > 0.2, [&] { bins = bins.set(1, bins[1] + a[i] * a[i]); },
              [&] { bins = bins.set(2, bins[2] - a[i]); });
        });
        return bins[0] + bins[1] * bins[2];
      },
      "");
}

TEST_CASE("indices of 32 bits", "[vectorise]") {
  using Shorts = Rep<Array<std::int32_t>>;
  const auto program = sig<double(Array<double>, Array<std::int32_t>)>([](Vec x, Shorts at) {
    return total(at.size(), [&](Int i) { return sin(x[cast<std::int64_t>(at[i])]) * x[0]; });
  });
  const auto fast = compile(value_and_grad<0>(program), lanes),
             slow = compile(value_and_grad<0>(program), scalar());
  CHECK(fast.source("ir").find("lane_index") != std::string::npos);
  for (const std::size_t n : lengths) {
    CAPTURE(n);
    std::vector<std::int32_t> at(n);
    for (std::size_t i = 0; i < n; ++i) at[i] = static_cast<std::int32_t>(i * 7 % 11);
    const auto [y, dx] = fast(numbers(11), at);
    const auto [y1, dx1] = slow(numbers(11), at);
    CHECK(y == Approx(y1).epsilon(1e-12));
    check_close(dx, dx1);
  }
}

TEST_CASE("forces between all pairs run in lanes of the inner loop", "[vectorise]") {
  // What bodies give each other goes to two elements; those of the outer loop's body are summed in numbers.
  const auto energy = sig<double(Array<double>, Array<double>)>([](Vec x, Vec mass) {
    return total(x.size(), [&](Int i) {
      const Num pull = total(x.size(), [&](Int j) {
        const Num d = x[j] - x[i];
        return mass[j] * d / (d * d + 0.1);
      });
      return pull * pull;
    });
  });
  const auto fast = compile(value_and_grad(energy), lanes), slow = compile(value_and_grad(energy), scalar());
  for (const std::size_t n : lengths) {
    CAPTURE(n);
    const auto [y, d] = fast(numbers(n), numbers(n, 0.7));
    const auto [y1, d1] = slow(numbers(n), numbers(n, 0.7));
    CHECK(y == Approx(y1).epsilon(1e-11));
    check_close(std::get<0>(d), std::get<0>(d1));
    check_close(std::get<1>(d), std::get<1>(d1));
  }
}

TEST_CASE("elements by number behind a cutoff", "[vectorise]") {
  // Pairs of a list, some of which count: what is read and added to behind the condition is any element.
  const auto pairs = sig<double(Array<double>, Array<std::int64_t>)>([](Vec x, Ints other) {
    return total(other.size(), [&](Int i) {
      const Num near = x[0] - x[i % 3];
      return IF(near < 0.1, [&] { return exp(near) * x[other[i]]; }, [&] { return Num(0.0); });
    });
  });
  const auto guarded = sig<double(Array<double>, Array<std::int64_t>)>([](Vec x, Ints other) {
    return total(other.size(), [&](Int i) {
      return IF(other[i] >= 0, [&] { return exp(x[0] * 0.1) * x[other[i]]; }, [&] { return x[1]; });
    });
  });
  const auto check = [](const auto& program) {
    const auto fast = compile(value_and_grad<0>(program), lanes),
               slow = compile(value_and_grad<0>(program), scalar());
    for (const std::size_t n : lengths) {
      CAPTURE(n);
      std::vector<std::int64_t> other(n);
      for (std::size_t i = 0; i < n; ++i) other[i] = static_cast<std::int64_t>(i * 7 % 11);
      const auto [y, dx] = fast(numbers(11), other);
      const auto [y1, dx1] = slow(numbers(11), other);
      CHECK(y == Approx(y1).epsilon(1e-12));
      check_close(dx, dx1);
    }
  };
  // A guard within a guard: what lanes read behind the outer one is not in range for the others.
  const auto twice = sig<double(Array<double>, Array<std::int64_t>)>([](Vec x, Ints other) {
    return total(other.size(), [&](Int i) {
      return IF(
          other[i] >= 0,
          [&] {
            const Num first = x[other[i]];
            return IF(first > x[0], [&] { return first * x[other[i]] + x[0]; }, [&] { return first; });
          },
          [&] { return x[1]; });
    });
  });
  check(pairs);
  check(guarded);
  check(twice);
  // Behind its guard no element is outside.
  const auto f = compile(value_and_grad<0>(guarded), lanes);
  CHECK(std::get<0>(f(numbers(5), std::vector<std::int64_t>(20, -1))) == Approx(20 * numbers(5)[1]));
  const auto g = compile(value_and_grad<0>(twice), lanes);
  CHECK(std::get<0>(g(numbers(5), std::vector<std::int64_t>(20, -1))) == Approx(20 * numbers(5)[1]));
  CHECK_THROWS_WITH(f(numbers(5), std::vector<std::int64_t>(20, 5)), Catch::Contains("index 5"));
}

TEST_CASE("elements that a guard keeps from being read outside an array", "[vectorise]") {
  const auto guarded = sig<double(Array<double>)>([](Vec a) {
    return total(a.size(),
                 [&](Int i) { return IF(i > 0, [&] { return a[i] * a[i - 1]; }, [&] { return a[i]; }); });
  });
  const auto fast = compile(value_and_grad(guarded), lanes),
             slow = compile(value_and_grad(guarded), scalar());
  for (const std::size_t n : lengths) {
    const auto [y, dx] = fast(numbers(n));
    const auto [y1, dx1] = slow(numbers(n));
    CHECK(y == Approx(y1).epsilon(1e-12));
    check_close(dx, dx1);
  }
}

TEST_CASE("flat indices into rows", "[vectorise]") {
  // Whichever loop runs in lanes: the iterations of both are known to have elements of their own.
  const auto smoothed = [](Vec u, Int rows, Int columns) {
    Vec v = u;
    FOR(1, rows - 1, [&](Int i) {
      FOR(1, columns - 1, [&](Int j) {
        const Int k = i * columns + j;
        v = v.set(k, u[k - 1] + u[k + 1] + u[k - columns] + u[k + columns] - 4.0 * u[k] * u[k]);
      });
    });
    return sum(v * v);
  };
  const auto program = sig<double(Array<double>, std::int64_t, std::int64_t)>(smoothed);
  const auto fast = compile(value_and_grad<0>(program), lanes),
             slow = compile(value_and_grad<0>(program), scalar());
  CHECK(compile(program, lanes).source("ir").find("lane_index") != std::string::npos);
  for (const std::int64_t rows : {1, 2, 3, 5, 9})
    for (const std::int64_t columns : {1, 2, 3, 8, 19, 40}) {
      CAPTURE(rows, columns);
      const std::vector<double> u = numbers(static_cast<std::size_t>(rows * columns));
      const auto [y, dy] = fast(u, rows, columns);
      const auto [y1, dy1] = slow(u, rows, columns);
      CHECK(y == Approx(y1).epsilon(1e-12));
      check_close(dy, dy1);
    }
}

TEST_CASE("elements in equal steps", "[vectorise]") {
  // Every so many elements, from either end, are read, stored and added to, of doubles and floats.
  for (const int step : {-2, -1, 1, 2, 3, 4, 5, 7}) {
    CAPTURE(step);
    const auto place = [step](const Int& i, const Int& n) {
      return step < 0 ? -step * (n - 1 - i) : step * i;
    };
    const auto f = [place](auto u, Int n) {
      auto v = u;
      FOR(0, n, [&](Int i) { v = v.set(place(i, n) + 1, u[place(i, n)] * u[place(i, n) + 1]); });
      auto w = v;
      FOR(0, n, [&](Int i) { w = w.set(i, w[i] + v[place(i, n) + 1] * u[i]); });
      return sum(v * w);
    };
    const auto program = sig<double(Array<double>, std::int64_t)>([f](Vec u, Int n) { return f(u, n); });
    const auto narrow =
        sig<float(Array<float>, std::int64_t)>([f](Rep<Array<float>> u, Int n) { return f(u, n); });
    const auto fast = compile(value_and_grad<0>(program), lanes),
               slow = compile(value_and_grad<0>(program), scalar());
    const auto fast_narrow = compile(value_and_grad<0>(narrow), lanes),
               slow_narrow = compile(value_and_grad<0>(narrow), scalar());
    CHECK(fast.source("ir").find("lane_index") != std::string::npos);
    for (const std::int64_t n : {0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 33, 70}) {
      CAPTURE(n);
      // Not an element more than are asked for.
      const auto size = static_cast<std::size_t>(std::max<std::int64_t>(std::abs(step) * (n - 1) + 2, 1));
      const std::vector<double> u = numbers(size);
      const auto [y, dy] = fast(u, n);
      const auto [y1, dy1] = slow(u, n);
      CHECK(y == Approx(y1).epsilon(1e-12));
      check_close(dy, dy1);
      const std::vector<float> small(u.begin(), u.end());
      const auto [x, dx] = fast_narrow(small, n);
      const auto [x1, dx1] = slow_narrow(small, n);
      CHECK(x == Approx(x1).epsilon(1e-5));
      for (std::size_t i = 0; i < dx.size(); ++i) CHECK(dx[i] == Approx(dx1[i]).epsilon(1e-4).margin(1e-5));
    }
    // The first one that is missing is named.
    const auto message = [&](const auto& function, std::size_t size) -> std::string {
      try {
        function(numbers(size), 40);
      } catch (const Error& e) {
        return e.what();
      }
      return "nothing";
    };
    const auto full = static_cast<std::size_t>(std::abs(step) * 39 + 2);
    for (const std::size_t size : {full - 1, full - 2, full / 2}) {
      const std::string text = message(fast, size);
      CHECK(text.find("is outside 0..") != std::string::npos);
      CHECK(message(slow, size).find("is outside 0..") != std::string::npos);
    }
    CHECK(message(fast, full) == "nothing");
  }
}

TEST_CASE("elements that meet keep the order of the iterations", "[vectorise]") {
  // Rows one shorter than the loop over them: the last element of a row is the first of the next.
  const auto overlapping =
      sig<double(Array<double>, std::int64_t, std::int64_t)>([](Vec u, Int rows, Int columns) {
        const Vec all = FOR(0, rows, fill(Num(0.0), u.size()), [&](Int i, Vec above) {
          return FOR(0, columns + 1, above, [&](Int j, Vec v) {
            const Int k = i * columns + j;
            return v.set(k, 0.5 * v[k] + sin(u[k]));
          });
        });
        return sum(all * all);
      });
  const auto fast = compile(value_and_grad<0>(overlapping), lanes),
             slow = compile(value_and_grad<0>(overlapping), CompileOptions{.opt = 0});
  for (const std::int64_t columns : {1, 2, 7, 16, 33}) {
    CAPTURE(columns);
    const std::vector<double> u = numbers(static_cast<std::size_t>(6 * columns + 1));
    const auto [y, dy] = fast(u, 6, columns);
    const auto [y1, dy1] = slow(u, 6, columns);
    CHECK(y == Approx(y1).epsilon(1e-12));
    check_close(dy, dy1);
  }
}

TEST_CASE("inner loops, arrays of an iteration and their tapes", "[vectorise]") {
  // Each iteration has an array, a sequential loop over it and a maximum.
  check_in_lanes([](Vec a) {
    return total(a.size(), [&](Int i) {
      const Vec w = tabulate(5, [&](Int k) { return a[i] * cast<double>(k + 1) - 0.3; });
      const Num top = FOR(1, 5, w[0], [&](Int k, Num m) { return max(m, w[k]); });
      const Num sum = FOR(0, 5, 0.0, [&](Int k, Num s) { return s + exp(w[k] - top); });
      return FOR(0, 3, top + log(sum), [&](Int, Num t) { return t * sin(t); });
    });
  });
}

TEST_CASE("a branch that lanes take differently", "[vectorise]") {
  // The side not taken divides by zero and takes a logarithm of what is negative; its NaN stays where it is.
  check_in_lanes([](Vec a) {
    return total(a.size(), [&](Int i) {
      const Num x = a[i];
      return IF(
          x > 0.0, [&] { return log(x) + 1.0 / x; },
          [&] { return IF(x < -0.1, [&] { return x * x; }, [&] { return x; }); });
    });
  });
}

TEST_CASE("lanes that meet at one element add up", "[vectorise]") {
  const auto f = [](Vec table, Ints at) {
    return total(at.size(), [&](Int i) { return table[at[i]] * table[at[i]] * cast<double>(i + 1); });
  };
  const auto program = sig<double(Array<double>, Array<std::int64_t>)>(f);
  const auto fast = compile(grad<0>(program), lanes);
  CHECK(fast.source("ir").find("lane_index") != std::string::npos);
  const auto slow = compile(grad<0>(program), scalar());
  for (const std::size_t n : lengths) {
    std::vector<std::int64_t> at(n);
    for (std::size_t i = 0; i < n; ++i) at[i] = static_cast<std::int64_t>(i * i % 5);
    check_close(fast(numbers(5), at), slow(numbers(5), at));
  }
}

TEST_CASE("what all iterations share is summed before it is scaled", "[vectorise]") {
  // sum over points of |L (x_n - m)|^2: the adjoint of m is L' times one sum.
  const auto f = [](Mat x, Vec m, Mat l) {
    const Int d = m.size();
    return total(x.dim(0), [&](Int n) {
      const Vec y = tabulate(d, [&](Int i) { return x(n, i) - m[i]; });
      return total(d, [&](Int i) {
        const Num q = FOR(0, i + 1, 0.0, [&](Int j, Num s) { return s + l(i, j) * y[j]; });
        return q * q;
      });
    });
  };
  const auto program = sig<double(Tensor<double, dyn, dyn>, Array<double>, Tensor<double, dyn, dyn>)>(f);
  const auto fast = compile(grad<0, 1, 2>(program), lanes), slow = compile(grad<0, 1, 2>(program), scalar());
  const auto shared = compile(grad<1, 2>(program), lanes);
  for (const std::int64_t n : {0, 1, 31, 64, 100})
    for (const std::int64_t d : {1, 2, 5}) {
      const TensorValue<double> x(numbers(static_cast<std::size_t>(n * d)), {n, d}),
          l(numbers(static_cast<std::size_t>(d * d), 0.5), {d, d});
      const auto m = numbers(static_cast<std::size_t>(d), -0.2);
      const auto [dx, dm, dl] = fast(x, m, l);
      const auto [dx1, dm1, dl1] = slow(x, m, l);
      check_close(dx.data, dx1.data);
      check_close(dm, dm1);
      check_close(dl.data, dl1.data);
      const auto [dm2, dl2] = shared(x, m, l);
      check_close(dm2, dm1);
      check_close(dl2.data, dl1.data);
    }
}

TEST_CASE("rows written by their own iteration", "[vectorise]") {
  const auto f = [](Vec a, Mat to) {
    return FOR(0, a.size(), to, [&](Int i, Mat t) {
      return FOR(0, 3, t.set(i, 3, a[i]), [&](Int k, Mat u) { return u.set(i, k, a[i] * cast<double>(k)); });
    });
  };
  const auto program = sig<Tensor<double>(Array<double>, Tensor<double, dyn, dyn>)>(f);
  const auto fast = compile(program, lanes), slow = compile(program, scalar());
  CHECK(fast.source("ir").find("lane_index") != std::string::npos);
  for (const std::int64_t n : {0, 1, 33, 70}) {
    const TensorValue<double> to({n, 4}, -1.0);
    const auto x = numbers(static_cast<std::size_t>(n));
    check_close(fast(x, to).data, slow(x, to).data);
  }
}

TEST_CASE("rows that inner loops write run in lanes from end to end", "[vectorise]") {
  const auto check = [](auto f) {
    const auto fast = compile(grad<0, 1>(f), lanes), slow = compile(grad<0, 1>(f), scalar());
    for (const char* call : {"lt_store_strided", "lt_add_strided", "lt_add_scatter"})
      CHECK(fast.source("cpp").find(call) == std::string::npos);
    for (const std::int64_t m : {1, 2, 5, 9})
      for (const std::int64_t n : {1, 2, 7, 8, 9, 17, 40}) {
        const std::vector<double> x = numbers(static_cast<std::size_t>(m * n)),
                                  y = numbers(static_cast<std::size_t>(m * n), 0.4);
        std::vector<std::int64_t> at(23);
        for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(i * i) % m;
        const TensorView<const double> a(x.data(), {m, n}), b(y.data(), {m, n});
        const auto [fa, fb] = fast(a, b, at);
        const auto [sa, sb] = slow(a, b, at);
        check_close(fa.data, sa.data);
        check_close(fb.data, sb.data);
      }
  };
  // each iteration's own row
  check([](Mat a, Mat b, Ints) {
    return total(a.dim(0), [&](Int i) {
      return total(a.dim(1), [&](Int j) { return a(i, j) * a(i, j) * b(i, 0) + b(i, j); });
    });
  });
  // rows by a list of their numbers, of which some come twice
  check([](Mat a, Mat b, Ints at) {
    return total(at.size(), [&](Int r) {
      const Int i = at[r];
      const Num e = 1.0 - total(a.dim(1), [&](Int j) { return a(i, j) * b(i, j); });
      return e * e;
    });
  });
}

TEST_CASE("a matrix product that goes along rows runs along them in lanes", "[vectorise]") {
  const auto product = [](Mat a, Mat b) {
    return FOR(0, a.dim(0), fill(Num(0.0), a.dim(0), b.dim(1)), [&](Int i, Mat rows) {
      return FOR(0, a.dim(1), rows, [&](Int k, Mat sums) {
        return FOR(0, b.dim(1), sums, [&](Int j, Mat c) { return c.set(i, j, c(i, j) + a(i, k) * b(k, j)); });
      });
    });
  };
  const auto fast = compile(product, lanes), slow = compile(product, scalar());
  const std::string text = fast.source("cpp");
  CHECK(text.find("lt_load_") != std::string::npos);
  for (const char* call : {"strided(", "gather(", "scatter("}) CHECK(text.find(call) == std::string::npos);
  for (const std::int64_t n : {1, 3, 8, 19, 33}) {
    const auto x = numbers(static_cast<std::size_t>(5 * n)),
               y = numbers(static_cast<std::size_t>(n * (n + 2)), 0.7);
    const TensorView<const double> a(x.data(), {5, n}), b(y.data(), {n, n + 2});
    check_close(fast(a, b).data, slow(a, b).data);
  }
}

TEST_CASE("loops that are not for lanes stay", "[vectorise]") {
  const auto stays = [](auto f) {
    return compile(sig<double(Array<double>)>(f), lanes).source("ir").find("lane_") == std::string::npos;
  };
  // An iteration uses what the one before made.
  CHECK(stays([](Vec a) { return FOR(0, a.size(), 0.5, [&](Int i, Num s) { return s * a[i]; }); }));
  CHECK(stays(
      [](Vec a) { return FOR(1, a.size(), a, [&](Int i, Vec b) { return b.set(i, b[i - 1] * 2.0); })[0]; }));
  // Lanes would part ways in an inner loop.
  CHECK(stays([](Vec a) {
    return total(a.size(), [&](Int i) {
      return WHILE(a[i], [](Num t) { return t > 1.0; }, [](Num t) { return t * 0.5; });
    });
  }));
}

TEST_CASE("an index outside an array names it", "[vectorise]") {
  const auto f = [](Vec a) { return total(a.size(), [&](Int i) { return a[i + 3] * 2.0; }); };
  const auto message = [&](const CompileOptions& options, std::size_t n) -> std::string {
    try {
      compile(sig<double(Array<double>)>(f), options)(numbers(n));
    } catch (const Error& e) {
      return e.what();
    }
    return "nothing";
  };
  for (const std::size_t n : {2, 40}) {
    const std::string text = message(lanes, n);
    CHECK(text.find("index") != std::string::npos);
    CHECK(text == message(scalar(), n));
  }
}

// ---- accuracy

/// Units in the last place between a double and a more exact value.
double ulps(double got, long double exact) {
  if (std::isnan(got) && std::isnan(exact)) return 0;
  const double nearest = static_cast<double>(exact);
  if (got == nearest) return 0;
  const int exponent = std::max(std::ilogb(nearest), -1022);
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) /
                             std::ldexp(1.0L, exponent - 52));
}

struct Function {
  const char* name;
  Num (*staged)(const Num&);
  double (*libm)(double);
  long double (*exact)(long double);
  double from, to;
};
#define FUNCTION(f, from, to)                                                  \
  Function {                                                                   \
    #f, [](const Num& x) { return f(x); }, [](double x) { return std::f(x); }, \
        [](long double x) { return std::f(x); }, from, to                      \
  }

/// Loops take subnormal numbers for zero.
template <class T>
bool flushed(T y, double exact) {
  return y == 0 && std::abs(exact) < static_cast<double>(std::numeric_limits<T>::min());
}

TEST_CASE("functions in lanes lie within 4 units in the last place", "[vectorise]") {
  const Function functions[] = {
      FUNCTION(exp, -700, 700),     FUNCTION(log, 1e-300, 1e3),  FUNCTION(log1p, -0.99, 50),
      FUNCTION(expm1, -20, 300),    FUNCTION(sin, -50, 50),      FUNCTION(cos, -50, 50),
      FUNCTION(tan, -1.5, 1.5),     FUNCTION(asin, -1, 1),       FUNCTION(acos, -1, 1),
      FUNCTION(atan, -100, 100),    FUNCTION(sinh, -300, 300),   FUNCTION(cosh, -300, 300),
      FUNCTION(tanh, -20, 20),      FUNCTION(erf, -5, 5),        FUNCTION(erfc, -5, 20),
      FUNCTION(sqrt, 0, 1e10),      FUNCTION(exp, -745, -700),   FUNCTION(exp, 700, 709.78),
      FUNCTION(exp2, -1000, 1000),  FUNCTION(log2, 1e-300, 1e3), FUNCTION(log10, 1e-300, 1e3),
      FUNCTION(cbrt, -1e9, 1e9),    FUNCTION(asinh, -100, 100),  FUNCTION(acosh, 1, 100),
      FUNCTION(atanh, -0.99, 0.99), FUNCTION(floor, -1e3, 1e3),  FUNCTION(ceil, -1e3, 1e3),
      FUNCTION(trunc, -1e3, 1e3),   FUNCTION(round, -1e3, 1e3),  FUNCTION(exp, -1, 1),
      FUNCTION(tanh, -0.8, 0.8),    FUNCTION(tanh, -1e-7, 1e-7),
  };
  constexpr std::size_t n = 20000;
  for (const Function& f : functions) {
    const auto program = sig<Array<double>(Array<double>)>(
        [&](Vec a) { return tabulate(a.size(), [&](Int i) { return f.staged(a[i]); }); });
    CompileOptions strict = lanes;
    strict.strict_math = true;
    const auto fast = compile(program, lanes);
    const auto exact = compile(program, strict);
    CHECK(fast.source("ir").find("lane_index") != std::string::npos);
    std::vector<double> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = f.from + (f.to - f.from) * static_cast<double>(i) / (n - 1);
    const std::vector<double> y = fast(x), z = exact(x);
    double worst = 0;
    bool same = true;
    for (std::size_t i = 0; i < n; ++i) {
      if (!flushed<double>(y[i], static_cast<double>(f.exact(x[i]))))
        worst = std::max(worst, ulps(y[i], f.exact(x[i])));
      same &= std::bit_cast<std::uint64_t>(z[i]) == std::bit_cast<std::uint64_t>(f.libm(x[i]));
    }
    INFO(f.name << ": " << worst << " units in the last place");
    CHECK(worst <= 4);
    CHECK(same);
  }
}

TEST_CASE("functions in lanes at the ends of the line", "[vectorise]") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> x{0.0, -0.0, inf, -inf, nan, 1e308, -1e308, 1e-310, 710, -746, 1, -1};
  const auto program = sig<Array<double>(Array<double>)>([](Vec a) {
    return tabulate(a.size(),
                    [&](Int i) { return max(exp(a[i]), min(a[i], abs(a[i]) + floor(a[i]))) + tanh(a[i]); });
  });
  const auto side = sig<Array<double>(Array<double>)>(
      [](Vec a) { return tabulate(a.size(), [&](Int i) { return sign(a[i]); }); });
  const std::vector<double> y = compile(program, lanes)(x), z = compile(program, scalar())(x), signs = compile(side, lanes)(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    CHECK((std::fpclassify(x[i]) == FP_SUBNORMAL || signs[i] == (x[i] > 0) - (x[i] < 0)));
    CHECK((y[i] == Approx(z[i]).epsilon(1e-15) || y[i] == z[i] || (std::isnan(y[i]) && std::isnan(z[i]))));
  }
}

// ---- whole tensors

TEST_CASE("functions of whole tensors run in lanes", "[vectorise]") {
  const auto check = [](auto element, double tolerance) {
    using E = decltype(element);
    using Whole = Rep<Tensor<E, dyn, dyn>>;
    const auto f = [](Whole x, Whole w) {
      return sum(tanh(x * w) * exp(-x) + log(w * w + static_cast<E>(1)));
    };
    const auto fast = compile(value_and_grad(f), lanes), slow = compile(value_and_grad(f), scalar());
    CHECK(fast.source("cpp").find(" lt_tanh_f") != std::string::npos);
    CHECK(fast.source("cpp").find(" lt_log_f") != std::string::npos);
    CHECK(slow.source("cpp").find("lt_tanh_f") == std::string::npos);
    for (const std::size_t columns : lengths) {
      CAPTURE(columns);
      const std::vector<double> x0 = numbers(3 * columns), w0 = numbers(3 * columns, 0.3);
      std::vector<E> x(x0.begin(), x0.end()), w(w0.begin(), w0.end());
      const auto n = static_cast<std::int64_t>(columns);
      const TensorView<E> a(x.data(), {3, n}), b(w.data(), {3, n});
      const auto [y, d] = fast(a, b);
      const auto [y1, d1] = slow(a, b);
      CHECK(y == Approx(y1).epsilon(tolerance).margin(tolerance));
      for (std::size_t i = 0; i < x.size(); ++i) {
        CHECK(std::get<0>(d).data[i] == Approx(std::get<0>(d1).data[i]).epsilon(tolerance).margin(tolerance));
        CHECK(std::get<1>(d).data[i] == Approx(std::get<1>(d1).data[i]).epsilon(tolerance).margin(tolerance));
      }
    }
  };
  check(1.0, 1e-11);
  check(1.0f, 1e-5);
}

// ---- floats: as many lanes as a register has, with functions of their own

using Float = Rep<float>;
using Floats = Rep<Array<float>>;

/// Units in the last place between a float and the nearest to the exact value.
double float_ulps(float got, double exact) {
  const float nearest = static_cast<float>(exact);
  if (got == nearest || (std::isnan(got) && std::isnan(nearest))) return 0;
  if (!std::isfinite(got) || !std::isfinite(nearest)) return std::numeric_limits<double>::infinity();
  const int exponent = std::max(std::ilogb(nearest), -126);
  return std::abs(static_cast<double>(got) - static_cast<double>(nearest)) / std::ldexp(1.0, exponent - 23);
}

std::vector<float> floats(std::size_t n, double from) {
  const std::vector<double> v = numbers(n, from);
  return {v.begin(), v.end()};
}

TEST_CASE("loops over floats run in lanes", "[vectorise]") {
  const auto f = [](Floats x, Floats w) {
    return FOR(0, x.size(), Float(0.0f), [&](Int i, Float s) {
      const Float a = x[i], b = w[i], at = cast<float>(i);
      const Float y = IF(a > b, [&] { return a * b; }, [&] { return sin(a) + at * 0.01f; });
      const Float wide = cast<float>(sqrt(cast<double>(y * y) + 0.5));
      return s + max(y, b) * log(abs(y) + 1.0f) + wide + sign(y) * min(a, y) + exp(-a) * tanh(y);
    });
  };
  const auto inner = [](Floats x, Floats w) {
    return FOR(0, x.size(), Float(0.0f), [&](Int i, Float s) {
      const Float y = FOR(0, w.size(), x[i], [&](Int j, Float a) { return tanh(a * w[j]) + 0.1f * a; });
      return s + y * y;
    });
  };
  const auto check = [](const auto& program, std::size_t most) {
    const auto fast = compile(value_and_grad(program), lanes),
               slow = compile(value_and_grad(program), scalar());
    CHECK(fast.source("ir").find("f32x") != std::string::npos);
    CHECK(slow.source("ir").find("lane_") == std::string::npos);
    const auto close = [](const std::vector<float>& a, const std::vector<float>& b) {
      REQUIRE(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(2e-5).margin(2e-6));
    };
    for (const std::size_t n : lengths) {
      CAPTURE(n);
      const std::vector<float> x = floats(n, 0.1), w = floats(std::min(n, most), 0.3);
      const auto [y, d] = fast(x, w);
      const auto [y1, d1] = slow(x, w);
      CHECK(y == Approx(y1).epsilon(2e-5).margin(2e-6));
      close(std::get<0>(d), std::get<0>(d1));
      close(std::get<1>(d), std::get<1>(d1));
    }
  };
  check(f, 1000);
  check(inner, 5);
}

TEST_CASE("a loop over floats has twice the lanes", "[vectorise]") {
  const auto width = [](const std::string& ir, const std::string& kind) {
    const std::size_t at = ir.find(kind + "x");
    return at == std::string::npos ? 0 : std::stoi(ir.substr(at + kind.size() + 1));
  };
  const auto doubles = compile(
      sig<double(Array<double>)>([](Vec a) { return total(a.size(), [&](Int i) { return exp(a[i]); }); }),
      lanes);
  const auto narrow = compile(
      [](Floats a) { return FOR(0, a.size(), Float(0.0f), [&](Int i, Float s) { return s + exp(a[i]); }); },
      lanes);
  CHECK(width(narrow.source("ir"), "f32") == 2 * width(doubles.source("ir"), "f64"));
}

TEST_CASE("functions of floats in lanes lie within 4 units in the last place", "[vectorise]") {
  struct FloatFunction {
    const char* name;
    Float (*staged)(const Float&);
    double (*exact)(double);
    double from, to;
  };
#define FLOAT_FUNCTION(f, from, to)                                                       \
  FloatFunction {                                                                         \
    #f, [](const Float& x) { return f(x); }, [](double x) { return std::f(x); }, from, to \
  }
  const FloatFunction functions[] = {
      FLOAT_FUNCTION(exp, -104, 89),   FLOAT_FUNCTION(exp, -1, 1),        FLOAT_FUNCTION(tanh, -12, 12),
      FLOAT_FUNCTION(tanh, -0.5, 0.5), FLOAT_FUNCTION(tanh, -1e-6, 1e-6), FLOAT_FUNCTION(log, 1e-37, 1e3),
      FLOAT_FUNCTION(log, 0.5, 2),     FLOAT_FUNCTION(log1p, -0.9, 50),   FLOAT_FUNCTION(expm1, -10, 80),
      FLOAT_FUNCTION(sin, -50, 50),    FLOAT_FUNCTION(cos, -50, 50),      FLOAT_FUNCTION(tan, -1.5, 1.5),
      FLOAT_FUNCTION(atan, -100, 100), FLOAT_FUNCTION(sinh, -80, 80),     FLOAT_FUNCTION(cosh, -80, 80),
      FLOAT_FUNCTION(erf, -4, 4),      FLOAT_FUNCTION(sqrt, 0, 1e10),
  };
  constexpr std::size_t n = 40003;
  for (const FloatFunction& f : functions) {
    const auto program = [&](Floats a) {
      return FOR(0, a.size(), fill(Float(0.0f), a.size()),
                 [&](Int i, Floats y) { return y.set(i, f.staged(a[i])); });
    };
    const auto fast = compile(program, lanes);
    CHECK(fast.source("ir").find("f32x") != std::string::npos);
    std::vector<float> x(n);
    for (std::size_t i = 0; i < n; ++i)
      x[i] = static_cast<float>(f.from + (f.to - f.from) * static_cast<double>(i) / (n - 1));
    const std::vector<float> y = fast(x);
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (!flushed<float>(y[i], f.exact(x[i]))) worst = std::max(worst, float_ulps(y[i], f.exact(x[i])));
    INFO(f.name << ": " << worst << " units in the last place");
    CHECK(worst <= 4);
  }
}

TEST_CASE("functions of floats in lanes at the ends of the line", "[vectorise]") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{0.0f,  -0.0f, inf,    -inf,    nan,     3e38f, -3e38f, 1e-42f,
                             88.7f, 88.8f, -87.5f, -103.5f, -104.5f, 1.0f,  -1.0f};
  const auto of = [&](auto f, const CompileOptions& options) {
    return compile(
        [f](Floats a) {
          return FOR(0, a.size(), fill(Float(0.0f), a.size()),
                     [&](Int i, Floats y) { return y.set(i, f(a[i])); });
        },
        options)(x);
  };
  const std::vector<float> powers = of([](Float v) { return exp(v); }, lanes),
                           tanhs = of([](Float v) { return tanh(v); }, lanes),
                           signs = of([](Float v) { return sign(v); }, lanes);
  const auto most = [](Float v) { return max(v, min(v * 2.0f, abs(v) + floor(v))); };
  const std::vector<float> chosen = of(most, lanes), expected = of(most, scalar());
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    const double power = std::exp(static_cast<double>(x[i])), slope = std::tanh(static_cast<double>(x[i]));
    CHECK((flushed<float>(powers[i], power) || float_ulps(powers[i], power) <= 1));
    CHECK((flushed<float>(tanhs[i], slope) || float_ulps(tanhs[i], slope) <= 3));
    CHECK(std::signbit(tanhs[i]) == std::signbit(std::isnan(x[i]) ? tanhs[i] : x[i]));
    CHECK((std::fpclassify(x[i]) == FP_SUBNORMAL || signs[i] == static_cast<float>((x[i] > 0) - (x[i] < 0))));
    CHECK((chosen[i] == expected[i] || flushed<float>(chosen[i], expected[i]) ||
           flushed<float>(expected[i], chosen[i]) || (std::isnan(chosen[i]) && std::isnan(expected[i]))));
  }
}

}  // namespace
}  // namespace lantern
