// scatter_to_gather: neighbours in planes, in rows of flat arrays and beside tapes are gathered, in one loop
// and without copies, and nothing changes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "lantern/compiler/passes/array/scatter_to_gather.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;
using Cube = Rep<Tensor<double, dyn, dyn, dyn>>;

std::vector<double> numbers(std::int64_t n, double by = 1.3) {
  std::vector<double> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(0.5 + 0.4 * std::sin(2.0 + by * static_cast<double>(i)));
  return x;
}

struct Seen {
  std::vector<std::size_t> reads;  ///< of innermost loops that store one element, how many each of them reads
  std::size_t copies = 0;          ///< of whole tensors, in loops

  auto with(std::size_t least) const {
    return std::ranges::count_if(reads, [&](std::size_t n) { return n >= least; });
  }
};

void look(const ir::Block* block, bool in_loop, Seen& seen) {
  for (const ir::Op* op : block->ops) {
    if (in_loop && op->is(ir::Opcode::copy_) && op->result()->type.is_tensor()) ++seen.copies;
    std::size_t reads = 0, stores = 0, other = 0;
    if (op->is(ir::Opcode::loop_))
      for (const ir::Op* inner : op->blocks[1]->ops) {
        reads += inner->is(ir::Opcode::get_);
        stores += inner->is(ir::Opcode::add_at_) || inner->is(ir::Opcode::set_);
        other += !inner->blocks.empty();
      }
    if (stores == 1 && other == 0) seen.reads.push_back(reads);
    for (const ir::Block* b : op->blocks) look(b, in_loop || op->is(ir::Opcode::loop_), seen);
  }
}

template <class F>
Seen seen_in(F f) {
  const auto module =
      ir::parse(compile(f, {.target = Target::cpp, .disabled_passes = {"vectorise"}}).source("ir"));
  Seen seen;
  for (const ir::Function* function : module->functions()) look(function->body, false, seen);
  return seen;
}

const CompileOptions ways[] = {{.target = Target::c},
                               {.target = Target::cpp},
                               {.target = Target::cpp, .lanes = 2},
                               {.target = Target::cpp, .lanes = 8},
                               {.target = Target::cpp, .threads = 2},
                               {.target = Target::c, .disabled_passes = {"scatter_to_gather"}}};

void same(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == Approx(expected[i]).epsilon(1e-11).margin(1e-13));
  }
}

/// Two states that take turns, each made of the other's neighbours.
Cube turns(Cube a, I steps) {
  const auto step = [](const Cube& from, Cube to) {
    FOR(1, from.dim(0) - 1, [&](I i) {
      FOR(1, from.dim(1) - 1, [&](I j) {
        FOR(1, from.dim(2) - 1, [&](I k) {
          to =
              to.set(i, j, k,
                     0.4 * from(i, j, k) + 0.1 * (from(i + 1, j, k) + from(i - 1, j, k) + from(i, j + 1, k) +
                                                  from(i, j - 1, k) + from(i, j, k + 1) + from(i, j, k - 1)));
        });
      });
    });
    return to;
  };
  Cube b = a;
  FOR(0, steps, [&](I) {
    b = step(a, b);
    a = step(b, a);
  });
  return a;
}
D energy(Cube a, I steps) {
  const Cube last = turns(a, steps);
  return sum(last * last);
}

/// Waves in a flat array, what comes next in the place of what was before; with as many states kept as given.
auto waves(std::int64_t checkpoints) {
  return [checkpoints](A start, A speed, I n, I steps) {
    const auto [before, last] =
        FOR(0, steps, std::tuple(start, start),
            [&](I, A u, A v) {
              FOR(1, n - 1, [&](I i) {
                FOR(1, n - 1, [&](I j) {
                  const D c = speed[i * n + j];
                  const D spread = v[(i - 1) * n + j] + v[(i + 1) * n + j] + v[i * n + j - 1] +
                                   v[i * n + j + 1] - 4.0 * v[i * n + j];
                  u = u.set(i * n + j, 2.0 * v[i * n + j] - u[i * n + j] + c * c * spread);
                });
              });
              return std::tuple(v, u);
            },
            {.checkpoints = checkpoints});
    return sum(last * last);
  };
}

}  // namespace

TEST_CASE("scatter_to_gather: planes, rows and columns are gathered in one loop", "[passes]") {
  const auto seen = seen_in(grad<0>(energy));
  CHECK(seen.with(7) >= 4);  // two steps, and the adjoints of both
  CHECK(seen.copies == 0);
  const auto expected = eager(grad<0>(energy));
  for (const CompileOptions& way : ways) {
    const auto got = compile(grad<0>(energy), way);
    for (const std::int64_t m : {2, 3, 4, 6})
      for (const std::int64_t n : {0, 3, 5})
        for (const std::int64_t p : {1, 3, 4, 11}) {
          CAPTURE(m, n, p, way.lanes, way.threads);
          const std::vector<double> x = numbers(m * n * p);
          const TensorView<const double> view(x.data(), {m, n, p});
          same(got(view, 2).data, expected(view, 2).data);
        }
  }
}

TEST_CASE("scatter_to_gather: where no step is made no index is outside", "[passes]") {
  // As many columns as there are rows: of a matrix with fewer that is an error, if it comes to that.
  const auto square = [](M a, I steps) {
    const I n = a.dim(0);
    M b = a;
    const auto step = [&](const M& from, M to) {
      FOR(1, n - 1, [&](I i) {
        FOR(1, n - 1,
            [&](I j) { to = to.set(i, j, 0.3 * (from(i, j - 1) + from(i, j + 1) + from(i - 1, j))); });
      });
      return to;
    };
    FOR(0, steps, [&](I) {
      b = step(a, b);
      a = step(b, a);
    });
    return sum(a * a);
  };
  const std::vector<double> x = numbers(6 * 4);
  const TensorView<const double> view(x.data(), {6, 4});
  for (const CompileOptions& way : ways) {
    const auto g = compile(grad<0>(square), way);
    const auto got = g(view, 0);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(got.data[i] == Approx(2 * x[i]));
    CHECK_THROWS_WITH(g(view, 1), Catch::Contains("index 4 is outside"));
  }
}

TEST_CASE("scatter_to_gather: rows of a flat array, beside what is taken from a tape", "[passes]") {
  for (const std::int64_t checkpoints : {0, 3}) {
    const auto gradient = grad<0, 1>(waves(checkpoints));
    const auto seen = seen_in(gradient);
    CHECK(seen.with(9) >= 1);  // the speed and the adjoint of each neighbour
    CHECK(seen.copies == 0);
    const auto expected = eager(gradient);
    for (const CompileOptions& way : ways) {
      const auto got = compile(gradient, way);
      for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 6, 17}) {
        CAPTURE(n, way.lanes, way.threads, checkpoints);
        const auto [u, c] = expected(numbers(n * n), numbers(n * n, 0.7), n, 7);
        const auto [du, dc] = got(numbers(n * n), numbers(n * n, 0.7), n, 7);
        same(du, u);
        same(dc, c);
      }
    }
  }
  // along a direction
  const auto f = compile(waves(3), {.target = Target::cpp});
  const auto [du, dc] =
      compile(grad<0, 1>(waves(3)), {.target = Target::cpp})(numbers(81), numbers(81, 0.7), 9, 11);
  double slope = 0;
  std::vector<double> up = numbers(81), down = up, faster = numbers(81, 0.7), slower = faster;
  const double h = 1e-5;
  for (std::size_t i = 0; i < 81; ++i) {
    const double a = std::cos(3.0 * static_cast<double>(i)), b = std::sin(5.0 * static_cast<double>(i));
    slope += a * du[i] + b * dc[i];
    up[i] += h * a, down[i] -= h * a, faster[i] += h * b, slower[i] -= h * b;
  }
  CHECK(slope == Approx((f(up, faster, 9, 11) - f(down, slower, 9, 11)) / (2 * h)).epsilon(1e-6));
}

TEST_CASE("scatter_to_gather: random neighbours in cubes and flat planes", "[passes]") {
  std::size_t gathered = 0;
  for (unsigned seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
    std::vector<std::array<std::int64_t, 3>> neighbours;
    for (std::int64_t count = 2 + below(4), k = 0; k < count; ++k)
      neighbours.push_back({below(5) - 2, below(3) - 1, below(5) - 2});
    const std::int64_t kind = below(3), first = below(2);
    const auto flat = [=](A a, I n, I m, I p) {
      const I row = p, plane = m * p;
      const A last = FOR(2 + first, n - 2, a, [&](I i, A planes) {
        return FOR(1, m - 1 - first, planes, [&](I j, A rows) {
          return FOR(2, p - 2, rows, [&](I k, A b) {
            const I at = i * plane + j * row + k;
            D sum = 0.0;
            for (const auto& d : neighbours)
              sum = sum + 0.2 * a[(i + d[0]) * plane + (j + d[1]) * row + k + d[2]];
            return b.set(at, kind == 0 ? sum : kind == 1 ? a[at] + sum * a[at] : b[at] - sum);
          });
        });
      });
      return sum(last * last);
    };
    const auto gradient = grad<0>(sig<double(Array<double>, std::int64_t, std::int64_t, std::int64_t)>(flat));
    const auto expected = eager(gradient);
    const auto got = compile(gradient, {.target = seed % 2 ? Target::cpp : Target::c});
    const auto scattered = compile(gradient, {.target = Target::c, .disabled_passes = {"scatter_to_gather"}});
    gathered += compile(gradient, {.target = Target::c}).source("ir") != scattered.source("ir");
    for (const std::int64_t n : {0, 3, 4, 5, 6, 7, 9})
      for (const std::int64_t m : {1, 3, 6})
        for (const std::int64_t p : {2, 5, 8}) {
          CAPTURE(seed, n, m, p);
          const std::vector<double> x = numbers(n * m * p);
          same(got(x, n, m, p), expected(x, n, m, p));
          same(scattered(x, n, m, p), expected(x, n, m, p));
        }
  }
  CHECK(gathered > 3);
}
