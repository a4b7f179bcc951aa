// Stencils whose iterations take one neighbour or another, as upwind schemes do: their reads are loads in
// lanes, and their adjoints gather although the iterations have branches.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>
#include <regex>

#include "../golden/around_pass.hpp"
#include "../lanes.hpp"
#include "../occurrences.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

namespace {

CompileOptions with(int opt, std::vector<std::string> without = {}) {
  CompileOptions options{.target = Target::cpp, .opt = opt, .lanes = test::lanes_under_test()};
  options.disabled_passes = std::move(without);
  return options;
}
const std::size_t lengths[] = {0, 1, 2, 3, 4, 5, 8, 9, 15, 17, 18, 19, 33, 70};

std::vector<double> numbers(std::size_t n, unsigned seed = 7) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> distribution(-1, 1);
  std::vector<double> all(n);
  for (double& x : all) x = distribution(generator);
  return all;
}

void same(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == Approx(expected[i]).epsilon(1e-11).margin(1e-12));
  }
}

/// Flow from the left or the right, twice.
D upwind(A u) {
  const I n = u.size();
  FOR(0, 2, [&](I) {
    A next = u;
    FOR(1, n - 1, [&](I i) {
      const D slope = IF(
          u[i] > 0.0, [&] { return u[i] - u[i - 1]; }, [&] { return u[i + 1] - u[i]; });
      next = next.set(i, u[i] - 0.1 * u[i] * slope + 0.05 * (u[i + 1] - 2.0 * u[i] + u[i - 1]));
    });
    FOR(1, n - 1, [&](I i) { u = u.set(i, next[i]); });
  });
  return sum(u * u);
}

/// What a program adds to, and reads of, its neighbours, drawn at random.
struct Stencil {
  struct Term {
    std::int64_t by;
    double factor;
  };
  std::vector<Term> always, one, other;
  bool costly = false;  ///< a function of the mathematical library in what goes to the neighbours

  explicit Stencil(unsigned seed) {
    std::mt19937 generator(seed);
    const auto terms = [&](std::size_t least) {
      std::vector<Term> all(least + generator() % 3);
      for (Term& t : all)
        t = {static_cast<std::int64_t>(generator() % 5) - 2,
             0.1 + 0.1 * static_cast<double>(generator() % 7)};
      return all;
    };
    always = terms(0);
    one = terms(1);
    other = terms(1);
    costly = generator() % 3 == 0;
  }
  D operator()(A u) const {
    const I n = u.size();
    const auto total = [&](const std::vector<Term>& terms, I i) {
      D all = 0.0;
      for (const Term& t : terms) all = all + t.factor * u[i + t.by];
      return all;
    };
    A next = u;
    FOR(2, n - 2, [&](I i) {
      const D v = costly ? sin(u[i]) : u[i];
      const D chosen = IF(
          v > 0.1, [&] { return total(one, i); }, [&] { return v * total(other, i); });
      next = next.set(i, v * chosen + v * total(always, i));
    });
    return sum(next * next) + sum(next * u);
  }
};

/// The gradient is the eager one, with passes and without, at every length.
template <class F>
void check_gradient(const F& f) {
  const auto program = sig<double(Array<double>)>(f);
  const auto plain = compile(grad(program), with(0)), fast = compile(grad(program), with(3)),
             scattered = compile(grad(program), with(3, {"scatter_to_gather"}));
  for (const std::size_t n : lengths) {
    CAPTURE(n);
    const std::vector<double> x = numbers(n), expected = eager(grad(program))(x);
    same(plain(x), expected);
    same(fast(x), expected);
    same(scattered(x), expected);
  }
}

}  // namespace

/// Flow by sign in two dimensions of a flat array, the velocity of each cell its own. Sides read what the other does not.
D flow(A u, A v, I n) {
  A next = u;
  FOR(1, n - 1, [&](I i) {
    FOR(1, n - 1, [&](I j) {
      const I k = i * n + j;
      D f = 0.0, g = 0.0;
      IF(v[k] > 0.0, [&] { f = v[k] * (u[k] - u[k - n]); }, [&] { f = v[k] * (u[k + n] - u[k]); });
      IF(v[k] > 0.3, [&] { g = v[k] * (u[k] - u[k - 1]); }, [&] { g = v[k] * (u[k + 1] - u[k]); });
      next = next.set(k, u[k] - 0.1 * f - 0.2 * g * g);
    });
  });
  return sum(next * next);
}
/// The side that is taken at an end reads nothing beyond it.
D ends(A u, A v, I from) {
  D s = 0.0;
  FOR(from, v.size(), [&](I i) {
    IF(v[i] > 0.0, [&] { s = s + v[i] * u[i] * u[i - 1]; }, [&] { s = s + u[i] * u[i + 1]; });
  });
  return s;
}
/// Both sides read the adjoint of what they write.
D flux(A u, A, I steps) {
  A f = fill(D(0.0), u.size());
  FOR(0, steps, [&](I) {
    FOR(0, u.size() - 1, [&](I i) {
      IF(
          u[i] + u[i + 1] > 0.0, [&] { f = f.set(i, u[i] * u[i]); }, [&] { f = f.set(i, u[i + 1] * u[i + 1]); });
    });
    FOR(1, u.size() - 1, [&](I i) { u = u.set(i, u[i] - 0.2 * (f[i] - f[i - 1])); });
  });
  return sum(u * u);
}

TEST_CASE("if_conversion: whether all neighbours are there is asked before the loops", "[passes][vectorise]") {
  const auto selects = [](auto f) {
    const auto [before, after] = test::around_pass("if_conversion", f);
    return test::count(after, "= select") > test::count(before, "= select");
  };
  CHECK(selects(grad<0>(flow)));
  CHECK(selects(grad<0>(flux)));
  const auto checked = [](auto f) {
    return [slow = compile(grad<0, 1>(f), CompileOptions{.target = Target::c, .opt = 0}), fast = compile(grad<0, 1>(f), with(3))](
               const std::vector<double>& u, const std::vector<double>& v, std::int64_t n) {
      const auto [du, dv] = slow(u, v, n);
      const auto [gu, gv] = fast(u, v, n);
      same(gu, du);
      same(gv, dv);
    };
  };
  const auto check_flow = checked(flow);
  const auto check_flux = checked(flux);
  const auto check_ends = checked(ends);
  for (const std::int64_t n : {0, 1, 2, 3, 4, 9, 20})
    check_flow(numbers(static_cast<std::size_t>(n * n)), numbers(static_cast<std::size_t>(n * n), 3), n);
  for (const std::size_t n : {2u, 3u, 9u, 33u}) check_flux(numbers(n), numbers(n), 3);
  for (const std::size_t n : {2u, 3u, 8u, 17u, 40u}) {
    std::vector<double> v = numbers(n, 5);
    check_ends(numbers(n + 1), v, 1);
    v.front() = -1;
    v.back() = 1;
    check_ends(numbers(n), v, 0);  // neither end is asked for what lies beyond
    v.back() = -1;
    if (n == 17)
      CHECK_THROWS_WITH(compile(grad<0, 1>(ends), with(3))(numbers(n), v, 0), Catch::Contains("is outside 0.."));
  }
}

TEST_CASE("branch_neighbours: the adjoint of an upwind scheme gathers", "[passes][vectorise]") {
  const auto [scattered, gathered] = test::around_pass("scatter_to_gather", grad(upwind));
  CHECK(test::loops_in(gathered) > test::loops_in(scattered));
  check_gradient(upwind);
  const auto df = compile(grad(upwind), with(3));
  const auto f = compile(upwind, with(3));
  std::vector<double> x = numbers(40);
  const auto dx = df(x);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{39}}) {
    const double h = 1e-6, at = x[i];
    x[i] = at + h;
    const double up = f(x);
    x[i] = at - h;
    const double down = f(x);
    x[i] = at;
    CHECK(dx[i] == Approx((up - down) / (2 * h)).epsilon(1e-6).margin(1e-8));
  }
  // The second derivative goes through the same passes.
  const auto product = [](A u) { return sum(grad(upwind)(u) * u); };
  const std::vector<double> u = numbers(33);
  same(compile(grad(product), with(3))(u), eager(grad(product))(u));
}

TEST_CASE("branch_neighbours: sides that read between elements that are read in any case",
          "[passes][vectorise]") {
  // In two dimensions, of a flat array: the elements to the left and right are asked for by one side each.
  const auto steps = [](A start, A speed) {
    const I n = cast<std::int64_t>(sqrt(cast<double>(start.size())) + 0.5);
    A u = FOR(0, 3, start, [&](I, A now) {
      A next = now;
      FOR(1, n - 1, [&](I i) {
        FOR(1, n - 1, [&](I j) {
          const D c = speed[i * n + j], v = now[i * n + j];
          const D dx = IF(
              c > 0.0, [&] { return v - now[i * n + j - 1]; }, [&] { return now[i * n + j + 1] - v; });
          next = next.set(i * n + j, v - c * dx - 0.1 * (now[(i + 1) * n + j] - now[(i - 1) * n + j]));
        });
      });
      return next;
    });
    return sum(u * u);
  };
  const auto program = sig<double(Array<double>, Array<double>)>(steps);
  const auto f = compile(program, with(3));
  const auto df = compile(grad<0, 1>(program), with(3));
  const auto [scattered, gathered] = test::around_pass("scatter_to_gather", grad<0, 1>(program));
  CHECK(test::loops_in(gathered) > test::loops_in(scattered));
  CHECK(f.source("ir").find("f64x") != std::string::npos);
  for (const std::size_t n : {1u, 2u, 3u, 4u, 9u, 20u, 35u}) {
    CAPTURE(n);
    const std::vector<double> u = numbers(n * n);
    std::vector<double> speed(n * n);
    for (std::size_t i = 0; i < n * n; ++i)
      speed[i] = i % 3 == 0 ? -0.2 : 0.1 + 0.01 * static_cast<double>(i % 7);
    CHECK(f(u, speed) == Approx(eager(program)(u, speed)).epsilon(1e-12));
    const auto got = df(u, speed), expected = eager(grad<0, 1>(program))(u, speed);
    same(std::get<0>(got), std::get<0>(expected));
    same(std::get<1>(got), std::get<1>(expected));
  }
}

TEST_CASE("branch_neighbours: indices that wrap lie between no others", "[vectorise]") {
  const auto f = [](A x, A y, I k) {
    return IF(
        k >= 0,
        [&] {
          return FOR(1, y.size(), D(0.0), [&](I i, D s) {
            const D base = x[i] * x[i + 3 * k];
            return s + base +
                   IF(
                       y[i] > 0.0, [&] { return exp(x[i + k]); }, [&] { return exp(y[i]); });
          });
        },
        [&] { return D(0.0); });
  };
  const std::vector<double> x = numbers(11), y(11, -1.0);
  const std::int64_t third = 6148914691236517205;  // three times this is -1 modulo 2^64
  CHECK(compile(f, with(3))(x, y, third) == Approx(eager(f)(x, y, third)).epsilon(1e-12));
}

TEST_CASE("branch_neighbours: random stencils", "[passes][vectorise]") {
  // Others for each number of lanes.
  const unsigned first = 10 * static_cast<unsigned>(test::lanes_under_test());
  for (unsigned seed = first; seed < first + 4; ++seed) {
    CAPTURE(seed);
    check_gradient([stencil = Stencil(seed)](A u) { return stencil(u); });
  }
}

TEST_CASE("branch_neighbours: lanes load what a side reads", "[vectorise]") {
  // How many iterations there are does not say whether all elements are there.
  const auto slopes = sig<double(Array<double>, std::int64_t)>([](A u, I n) {
    return FOR(1, n, 0.0, [&](I i, D s) {
      const D slope = IF(
          u[i] > 0.0, [&] { return u[i] - u[i - 1]; }, [&] { return u[i + 1] - u[i]; });
      return s + slope * slope;
    });
  });
  const auto [single, lanes] = test::around_pass("vectorise", slopes);
  const std::regex loaded_or_gathered("= branch %[0-9]+ : f64x");
  CHECK_FALSE(std::regex_search(single, loaded_or_gathered));
  CHECK(std::regex_search(lanes, loaded_or_gathered));
  const auto fast = compile(value_and_grad<0>(slopes), with(3)),
             slow = compile(value_and_grad<0>(slopes), with(0));
  for (const std::size_t n : lengths) {
    CAPTURE(n);
    std::vector<double> x = numbers(n + 2);
    x[n] = std::abs(x[n]);  // the element behind is not read
    x.pop_back();
    const auto [y, dx] = fast(x, static_cast<std::int64_t>(n) + 1);
    const auto [y1, dx1] = slow(x, static_cast<std::int64_t>(n) + 1);
    CHECK(y == Approx(y1).epsilon(1e-12).margin(1e-12));
    same(dx, dx1);
  }
}

TEST_CASE("branch_neighbours: lanes add at once to what a side adds to", "[vectorise]") {
  const auto slopes = sig<double(Array<double>, std::int64_t)>([](A u, I n) {
    return FOR(1, n, 0.0, [&](I i, D s) {
      const D slope = IF(
          u[i] > 0.0, [&] { return u[i - 1] * u[i - 1]; }, [&] { return u[i + 1] * u[i]; });
      return s + slope;
    });
  });
  const auto [single, lanes] = test::around_pass("vectorise", grad<0>(slopes));
  const std::regex whole_or_by_lanes(
      "= branch %[0-9]+ : f64\\[\\?\\] \\{\n *%\\S+ = (lane_)?add_at [^\n]*\n *yield %\\S+\n *\\} else \\{\n"
      " *%\\S+ = (lane_)?add_at ");
  CHECK_FALSE(std::regex_search(single, whole_or_by_lanes));
  CHECK(std::regex_search(lanes, whole_or_by_lanes));
  const auto fast = compile(grad<0>(slopes), with(3)), slow = compile(grad<0>(slopes), with(0));
  for (const std::size_t n : lengths) {
    CAPTURE(n);
    std::vector<double> x = numbers(n + 2);
    x[n] = std::abs(x[n]);  // the element behind is not read, nor is its adjoint there
    x.pop_back();
    same(fast(x, static_cast<std::int64_t>(n) + 1), slow(x, static_cast<std::int64_t>(n) + 1));
  }
}

TEST_CASE("branch_neighbours: what moves from one adjoint to another moves in lanes", "[vectorise]") {
  const auto copied = sig<double(Array<double>, std::int64_t)>([](A x, I n) {
    A u = fill(D(0.0), x.size());
    FOR(1, n, [&](I i) { u = u.set(i, x[i]); });
    return IF(
        n > 2, [&] { return u[2] * u[1]; }, [&] { return D(0.0); });
  });
  const auto [single, lanes] = test::around_pass("vectorise", grad<0>(copied));
  CHECK(single.find("add_at") != std::string::npos);
  CHECK(std::regex_search(lanes, std::regex("get [^\n]* : f64x[0-9]+\n")));
  const auto fast = compile(grad<0>(copied), with(3));
  for (const std::size_t n : lengths) {
    CAPTURE(n);
    const std::vector<double> x = numbers(n);
    const auto count = static_cast<std::int64_t>(n);
    same(fast(x, count), eager(grad<0>(copied))(x, count));
  }
}

TEST_CASE("branch_neighbours: the adjoint of a step in place runs in lanes, from the last iteration to the first",
          "[vectorise]") {
  // Each iteration reads an element that the next one changes.
  const auto flow = sig<double(Array<double>, Array<double>, std::int64_t)>([](A u, A c, I n) {
    FOR(0, 3, [&](I) {
      FOR(1, n, [&](I k) {
        const I i = n - k;
        u = u.set(i, u[i] - c[i] * (u[i] - u[i - 1]) * u[i]);
      });
    });
    return sum(u * u);
  });
  // Each iteration reads an element that the one before has changed. That is a recurrence, which cannot run in lanes.
  const auto back = sig<double(Array<double>, Array<double>, std::int64_t)>([](A u, A c, I n) {
    FOR(0, 3, [&](I) {
      FOR(1, n, [&](I i) { u = u.set(i, u[i] - c[i] * (u[i] - u[i - 1]) * u[i]); });
    });
    return sum(u * u);
  });
  const std::regex popped_in_lanes("= pop\\[[0-9]+\\] : f64x");
  CHECK(std::regex_search(test::around_pass("vectorise", grad<0, 1>(flow)).second, popped_in_lanes));
  CHECK_FALSE(std::regex_search(test::around_pass("vectorise", grad<0, 1>(back)).second, popped_in_lanes));
  const auto check = [](const auto& f) {
    const auto fast = compile(grad<0, 1>(f), with(3));
    for (const std::size_t n : lengths) {
      CAPTURE(n);
      const std::vector<double> u = numbers(n), c = numbers(n, 8);
      const auto count = static_cast<std::int64_t>(n);
      const auto got = fast(u, c, count), expected = eager(grad<0, 1>(f))(u, c, count);
      same(std::get<0>(got), std::get<0>(expected));
      same(std::get<1>(got), std::get<1>(expected));
    }
  };
  check(flow);
  check(back);
}

TEST_CASE("branch_neighbours: ways down a table whose columns end run in lanes", "[vectorise]") {
  const auto descent = sig<double(Array<double>, std::int64_t)>([](A cost, I n) {
    M d = fill(D(0.0), n, n);
    FOR(0, n, [&](I j) { d = d.set(0, j, cost[j]); });
    FOR(1, n, [&](I i) {
      FOR(0, n, [&](I j) {
        D best = d(i - 1, j);
        best = IF(
            j > 0, [&] { return min(best, d(i - 1, j - 1)); }, [&] { return best; });
        best = IF(
            j < n - 1, [&] { return min(best, d(i - 1, j + 1)); }, [&] { return best; });
        d = d.set(i, j, best + cost[i * n + j]);
      });
    });
    return FOR(0, n, D(0.0), [&](I j, D s) { return s + d(n - 1, j); });
  });
  const std::string lanes = test::around_pass("vectorise", grad<0>(descent)).second;
  CHECK(lanes.find(" : f64x") != std::string::npos);
  CHECK(lanes.find("= pop") == std::string::npos);  // all that is read is in the table
  const auto fast = compile(grad<0>(descent), with(3));
  for (const std::size_t n : {1u, 2u, 3u, 8u, 9u, 17u, 18u}) {
    CAPTURE(n);
    const std::vector<double> x = numbers(n * n);
    const auto count = static_cast<std::int64_t>(n);
    same(fast(x, count), eager(grad<0>(descent))(x, count));
  }
}

TEST_CASE("branch_neighbours: of what a nest reads one part is kept, not one for each row", "[unwind]") {
  const auto flow = sig<double(Array<double>, Array<double>, std::int64_t)>([](A u, A speed, I n) {
    A next = u;
    FOR(0, 3, [&](I) {
      FOR(1, n - 1, [&](I i) {
        FOR(1, n - 1, [&](I j) {
          const D c = speed[i * n + j], v = u[i * n + j];
          const D dx = IF(
              c > 0.0, [&] { return v - u[i * n + j - 1]; }, [&] { return u[i * n + j + 1] - v; });
          next = next.set(i * n + j, v - c * dx - 0.1 * v * (u[(i + 1) * n + j] - u[(i - 1) * n + j]));
        });
      });
      FOR(1, n - 1, [&](I i) {
        FOR(1, n - 1, [&](I j) { u = u.set(i * n + j, next[i * n + j]); });
      });
    });
    return sum(u * u);
  });
  const std::string ir = compile(grad<0, 1>(flow), with(3, {"vectorise", "outline"})).source("ir");
  CHECK(ir.find("\n    push[") != std::string::npos);    // in a step,
  CHECK(ir.find("\n      push[") == std::string::npos);  // not in a row of it
  const auto fast = compile(grad<0, 1>(flow), with(3));
  for (const std::size_t n : {0u, 1u, 2u, 3u, 4u, 9u, 19u}) {
    CAPTURE(n);
    const std::vector<double> u = numbers(n * n), speed = numbers(n * n, 8);
    const auto count = static_cast<std::int64_t>(n);
    const auto got = fast(u, speed, count), expected = eager(grad<0, 1>(flow))(u, speed, count);
    same(std::get<0>(got), std::get<0>(expected));
    same(std::get<1>(got), std::get<1>(expected));
  }
}

TEST_CASE("branch_neighbours: lanes read nothing outside an array", "[vectorise]") {
  // At both ends some lanes must not read; in a matrix, at the ends of rows.
  const auto ends = sig<double(Array<double>)>([](A x) {
    const I n = x.size();
    return FOR(0, n, 0.0, [&](I i, D s) {
      const D before = IF(
          i > 2, [&] { return x[i - 3] * x[i]; }, [&] { return D(0.5); });
      const D after = IF(
          i + 2 < n, [&] { return x[i + 2] * x[i]; }, [&] { return x[i]; });
      return s + before * after;
    });
  });
  const auto fast = compile(value_and_grad(ends), with(3)),
             slow = compile(value_and_grad(ends), with(3, {"vectorise"}));
  for (const std::size_t n : lengths) {
    CAPTURE(n);
    const auto [y, dx] = fast(numbers(n));
    const auto [y1, dx1] = slow(numbers(n));
    CHECK(y == Approx(y1).epsilon(1e-12).margin(1e-12));
    same(dx, dx1);
  }
  const auto rows = sig<double(Tensor<double, dyn, dyn>)>([](M x) {
    const I m = x.dim(0), n = x.dim(1);
    return FOR(0, m, 0.0, [&](I i, D s) {
      return FOR(0, n, s, [&](I j, D t) {
        return t + IF(
                       x(i, j) > 0.0,
                       [&] {
                         return IF(
                             j > 0, [&] { return sin(x(i, j - 1)); }, [&] { return D(1.0); });
                       },
                       [&] { return x(i, j); });
      });
    });
  });
  const auto wide = compile(value_and_grad(rows), with(3)), narrow = compile(value_and_grad(rows), with(0));
  for (const std::int64_t n : {0, 1, 3, 17, 34}) {
    TensorValue<double> x({3, n});
    x.data = numbers(x.data.size());
    const auto [y, dx] = wide(x);
    const auto [y1, dx1] = narrow(x);
    CHECK(y == Approx(y1).epsilon(1e-12).margin(1e-12));
    same(dx.data, dx1.data);
  }
}

TEST_CASE("branch_neighbours: an index outside is named, where its side is taken", "[vectorise]") {
  const auto f = compile(sig<double(Array<double>)>([](A x) {
                           return FOR(0, x.size(), 0.0, [&](I i, D s) {
                             return s + IF(
                                            x[i] > 0.0, [&] { return exp(x[i + 1]); }, [&] { return x[i]; });
                           });
                         }),
                         with(3));
  std::vector<double> x(37, 1.0);
  x.back() = -1;
  CHECK(f(x) == Approx(35 * std::exp(1.0) + std::exp(-1.0) - 1));
  x.back() = 1;
  CHECK_THROWS_WITH(f(x), Catch::Contains("index 37 is outside 0..36"));
}

TEST_CASE("branch_neighbours: an index that is doubled many times is looked at once", "[vectorise]") {
  const auto doubled = [](A u) {
    return FOR(0, u.size(), 0.0, [&](I i, D s) {
      I k = i;
      for (int times = 0; times < 60; ++times) k = k + k;
      return s + IF(
                     u[i] > 2.0, [&] { return sin(u[k]); }, [&] { return exp(u[i]); });
    });
  };
  // Steps that grow past 64 bits are no steps; the difference of two is.
  const auto next = [](A u) {
    return FOR(0, u.size() - 1, 0.0, [&](I i, D s) {
      I k = i;
      for (int times = 0; times < 40; ++times) k = k + k;
      return s + IF(
                     u[i] > 0.0, [&] { return sin(u[k - k + i + 1]); }, [&] { return exp(u[i]); });
    });
  };
  const std::vector<double> x = numbers(37);
  for (const auto& f : {sig<double(Array<double>)>(std::function<D(A)>(doubled)),
                        sig<double(Array<double>)>(std::function<D(A)>(next))}) {
    const auto [y, dx] = compile(value_and_grad(f), with(3))(x);
    const auto [y1, dx1] = eager(value_and_grad(f))(x);
    CHECK(y == Approx(y1).epsilon(1e-12));
    same(dx, dx1);
  }
}
