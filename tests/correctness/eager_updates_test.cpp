// Eager arrays are values that take over each other's memory: what an update costs, and that old versions
// stay.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using Numbers = std::vector<double>;

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// True if the work for 8 times as much takes less than 30 times as long: 64 times would be its square.
bool linear(const std::function<void(std::size_t)>& work, std::size_t n) {
  for (int attempt = 0; attempt < 5; ++attempt)
    if (seconds([&] { work(8 * n); }) < 30 * seconds([&] { work(n); })) return true;
  return false;
}

A squares(A x) {
  return FOR(0, x.size(), fill(D(0.0), x.size()), [&](I i, A r) { return r.set(i, x[i] * x[i]); });
}
A running_sums(A x) {
  return FOR(1, x.size(), x, [](I i, A r) { return r.set(i, r[i - 1] + r[i]); });
}
A reversed(A x) {
  return FOR(0, x.size() / 2, x, [n = x.size()](I i, A r) {
    const D first = r[i];
    return r.set(i, r[n - 1 - i]).set(n - 1 - i, first);
  });
}
/// The old array is read after the new one was made.
A reversed_by_old(A x) {
  return FOR(0, x.size() / 2, x,
             [n = x.size()](I i, A r) { return r.set(i, r[n - 1 - i]).set(n - 1 - i, r[i]); });
}
D by_native_loop(A x) {
  for (std::int64_t i = 0; i < 4000; ++i) x = x.set(i, 2.0 * x[i]);
  return sum(x);
}

}  // namespace

TEST_CASE("a loop that sets one element at a time takes linear time", "[eager]") {
  CHECK(linear([](std::size_t n) { eager(squares)(Numbers(n, 0.5)); }, 5000));
  CHECK(linear([](std::size_t n) { eager(running_sums)(Numbers(n, 0.5)); }, 5000));
  CHECK(linear([](std::size_t n) { eager(reversed_by_old)(Numbers(n, 0.5)); }, 5000));
}

TEST_CASE("and so do its derivatives", "[eager]") {
  const auto tangent = [](A x, A dx) { return std::get<1>(jvp(running_sums)(x, dx)); };
  CHECK(linear([&](std::size_t n) { eager(tangent)(Numbers(n, 0.5), Numbers(n, 1.0)); }, 2000));
  const auto total = [](A x) { return sum(squares(x)); };
  CHECK(linear([&](std::size_t n) { eager(grad(total))(Numbers(n, 0.5)); }, 2000));
  CHECK(linear([&](std::size_t n) { eager(grad<mode::taped>(total))(Numbers(n, 0.5)); }, 2000));
}

TEST_CASE("results of updates in place", "[eager]") {
  const Numbers x{1, 2, 3, 4, 5, 6, 7};
  CHECK(eager(squares)(x) == Numbers{1, 4, 9, 16, 25, 36, 49});
  CHECK(eager(running_sums)(x) == Numbers{1, 3, 6, 10, 15, 21, 28});
  CHECK(eager(reversed)(x) == Numbers{7, 6, 5, 4, 3, 2, 1});
  CHECK(eager(reversed_by_old)(x) == Numbers{7, 6, 5, 4, 3, 2, 1});
  CHECK(eager(by_native_loop)(Numbers(4000, 1.0)) == 8000.0);
  CHECK(eager(grad([](A a) { return sum(running_sums(a)); }))(Numbers{1, 1, 1, 1}) == Numbers{4, 3, 2, 1});
}

TEST_CASE("every version of an array stays what it was", "[eager]") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto program = [&](A start) {
      std::vector<A> versions{start};
      std::vector<Numbers> expected{Numbers(8, 1.0)};
      for (int step = 0; step < 60; ++step) {
        const std::size_t from = random() % 4 == 0 ? random() % versions.size() : versions.size() - 1;
        const std::size_t i = random() % 8;
        const double v = step;
        switch (random() % 4) {
          case 0: {
            const std::size_t of = random() % versions.size();
            CHECK(versions[of][static_cast<std::int64_t>(i)].datum().f() == expected[of][i]);
            break;
          }
          case 1: {
            const std::size_t gone = random() % versions.size();
            if (versions.size() < 2) break;
            versions.erase(versions.begin() + static_cast<std::ptrdiff_t>(gone));
            expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(gone));
            break;
          }
          default: {
            A next = versions[from].set(static_cast<std::int64_t>(i), v);
            Numbers now = expected[from];
            now[i] = v;
            versions.push_back(next);
            expected.push_back(now);
          }
        }
      }
      for (std::size_t k = 0; k < versions.size(); ++k) {
        const bool whole = random() % 2;
        if (whole)
          CHECK(sum(versions[k]).datum().f() == std::accumulate(expected[k].begin(), expected[k].end(), 0.0));
        for (std::size_t i = 0; i < 8; ++i)
          CHECK(versions[k][static_cast<std::int64_t>(i)].datum().f() == expected[k][i]);
      }
      return sum(versions.back());
    };
    eager(sig<double(Array<double>)>(program))(Numbers(8, 1.0));
  }
}

TEST_CASE("a chain of a million versions, kept and let go", "[eager]") {
  const auto program = [](A x) {
    std::vector<A> versions{x};
    for (std::int64_t i = 0; i < 1000000; ++i) versions.push_back(versions.back().set(i, 1.0));
    const D first = versions[10][5] + versions[10][15] + versions[999999][999998];
    versions.erase(versions.begin() + 1, versions.end());
    return first + versions[0][7];
  };
  CHECK(eager(sig<double(Array<double>)>(program))(Numbers(1000000, 0.0)) == 2.0);
}

TEST_CASE("threads share what a program captured, and its old versions", "[eager][threads]") {
  std::vector<A> tables;
  eager([&tables](A x) {
    tables.push_back(x);
    for (std::int64_t i = 0; i < 20; ++i) tables.push_back(tables.back().set(i, 2.0));
    return D(0.0);
  })(Numbers(100, 1.0));
  const auto program = [&tables](D x) {
    D total = 0.0;
    for (const A& t : tables) total += sum(t) + t[3] * x + sum(t.set(50, 3.0));
    return total;
  };
  const double expected = 2 * (21 * 100 + 210) + 21 * 2 + (17 * 2 + 4);
  std::vector<std::thread> threads;
  std::vector<double> results(8);
  for (double& r : results)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) r = eager(program)(1.0);
    });
  for (std::thread& t : threads) t.join();
  for (const double r : results) CHECK(r == expected);
}

TEST_CASE("a product is added to one of its factors", "[eager]") {
  using M = Rep<Tensor<double, dyn, dyn>>;
  // The cotangent that a sum hands to both of its terms is a factor of what is added to it.
  const auto residual = [](M m, M c) {
    const M r = matmul(m, c) + m;
    return sum(r * r);
  };
  const auto square = [](M m, M c) {
    const M r = m + matmul(matmul(m, m), c);
    return sum(r * r);
  };
  const TensorValue<double> m{{1, 2, 3, 4}, {2, 2}}, c{{0.2, 0.5, 0.1, 0.3}, {2, 2}};
  const auto check = [&](const auto& program) {
    const auto f = compile(program, {.target = Target::c});
    const auto by_eager = eager(grad<0>(program))(m, c),
               compiled = compile(grad<0>(program), {.target = Target::c})(m, c);
    for (std::size_t i = 0; i < 4; ++i) {
      CAPTURE(i);
      CHECK(by_eager.data[i] == Approx(compiled.data[i]).epsilon(1e-13));
      TensorValue<double> up = m, down = m;
      up.data[i] += 1e-6;
      down.data[i] -= 1e-6;
      CHECK(by_eager.data[i] == Approx((f(up, c) - f(down, c)) / 2e-6).epsilon(1e-6));
    }
  };
  check(residual);
  check(square);
}
