// Science on several ranks beside the same program in one process, values and gradients: waves in three dimensions and
// shallow water by halo exchange, bodies that attract each other by all_gather and in a ring, a mean over scenarios,
// conjugate gradients on a matrix of which each rank has rows. Runs alone and under mpirun.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <lantern/distributed_training.hpp>
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>
#include <numeric>
#include <vector>

using namespace lantern;
namespace ld = lantern::distributed;
using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;
using T = Rep<Tensor<double>>;
using Numbers = std::vector<double>;
using Whole = std::vector<int64_t>;
using Field = TensorValue<double>;

namespace {

const int64_t me = ld::world_rank(), ranks = ld::world_size();

void check_close(const Numbers& a, const Numbers& b, double tolerance = 1e-10) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
}
ld::Communicator alone() { return ld::world().split(ld::world().rank()); }

/// A field over all ranks, and this rank's part of it on a grid.
Field whole_field(const Whole& shape, double phase) {
  Field f(shape);
  for (std::size_t i = 0; i < f.data.size(); ++i) f.data[i] = std::sin(0.37 * static_cast<double>(i) + phase);
  return f;
}
Whole grid_of(std::size_t dimensions) {
  Whole g(dimensions, 0);
  distributed_dims("", 0, static_cast<int64_t>(dimensions), g.data());
  return g;
}
Field own(const Field& all, const Whole& grid) {
  Whole part = all.shape, at(grid.size());
  int64_t rest = me;
  for (std::size_t d = grid.size(); d-- > 0;) {
    part[d] /= grid[d];
    at[d] = rest % grid[d] * part[d];
    rest /= grid[d];
  }
  Field f(part);
  for (std::size_t i = 0; i < f.data.size(); ++i) {
    auto left = static_cast<int64_t>(i);
    int64_t place = 0, stride = 1;
    for (std::size_t d = grid.size(); d-- > 0;) {
      place += (at[d] + left % part[d]) * stride;
      left /= part[d];
      stride *= all.shape[d];
    }
    f.data[i] = all.data[static_cast<std::size_t>(place)];
  }
  return f;
}
bool shared_equally(const Whole& shape, const Whole& grid) {
  for (std::size_t d = 0; d < grid.size(); ++d)
    if (shape[d] % grid[d] != 0) return false;
  return true;
}
const CompileOptions plain{.target = Target::c, .opt = 0}, optimised{.target = Target::c};

/// energy(field..., grid, communicator's total): the value and gradients of parts beside those of the whole.
template <class Energy>
void check_fields(const Energy& energy, const Whole& shape, bool periodic) {
  const Whole grid = grid_of(shape.size());
  if (!shared_equally(shape, grid)) return;
  std::vector<ld::GridDimension> places, single;
  for (std::size_t d = 0; d < shape.size(); ++d) places.push_back({0, periodic}), single.push_back({1, periodic});
  using Two = double(Tensor<double>, Tensor<double>);
  const auto parts = [=](T a, T b) { return ld::total(energy(a, b, ld::Grid(places))); };
  const auto one = [=](T a, T b) { return energy(a, b, ld::Grid(single, alone())); };
  const Field a = whole_field(shape, 0.1), b = whole_field(shape, 0.8);
  const auto [value, slopes] = eager(value_and_grad<0, 1>(sig<Two>(one)))(a, b);
  const auto& [ga, gb] = slopes;
  const auto check = [&, &ga = ga, &gb = gb, &value = value](const auto& way) {
    const auto [v, own_slopes] = way(own(a, grid), own(b, grid));
    CHECK(v == Approx(value));
    check_close(std::get<0>(own_slopes).data, own(ga, grid).data);
    check_close(std::get<1>(own_slopes).data, own(gb, grid).data);
  };
  const auto together = value_and_grad<0, 1>(sig<Two>(parts));
  check(eager(together));
  check(compile(together, plain));
  check(compile(together, optimised));
  // Against a difference along one direction, which all ranks take.
  const double h = 1e-5;
  Field up = own(a, grid), down = up;
  const Field along = own(whole_field(shape, 1.9), grid), slope = own(ga, grid);
  double inner = 0, all = 0;
  for (std::size_t i = 0; i < up.data.size(); ++i) {
    up.data[i] += h * along.data[i];
    down.data[i] -= h * along.data[i];
    inner += slope.data[i] * along.data[i];
  }
  distributed_exchange_f64("", 0, distributed_all_reduce, distributed_sum, -1, -1, 1, &inner, &all);
  const double difference = (eager(parts)(up, own(b, grid)) - eager(parts)(down, own(b, grid))) / (2 * h);
  CHECK(all == Approx(difference).epsilon(1e-6));
}

}  // namespace

TEST_CASE("waves in three dimensions") {
  const auto energy = [](const T& start, const T& before, const ld::Grid& grid) {
    const auto [end, last] = FOR(0, 3, std::tuple(start, before), [&](I, const std::tuple<T, T>& state) {
      const auto& [u, old] = state;
      const T p = ld::halo_exchange(u, 1, grid);
      const I l = u.dim(0), m = u.dim(1), n = u.dim(2);
      const auto part = [&](int i, int j, int k) {
        return T(p(range(i, l + i), range(j, m + j), range(k, n + k)));
      };
      const T around = part(0, 1, 1) + part(2, 1, 1) + part(1, 0, 1) + part(1, 2, 1) + part(1, 1, 0) + part(1, 1, 2);
      return std::tuple(T(2.0 * u - old + 0.1 * (around - 6.0 * u)), u);
    });
    return sum(end * end * end + end * last);
  };
  for (const bool periodic : {false, true}) check_fields(energy, {12, 4, 2}, periodic);
}

TEST_CASE("shallow water") {
  // Lax and Friedrichs' scheme for depth and one momentum; the other starts at rest.
  const auto energy = [](const T& wave, const T& push, const ld::Grid& grid) {
    using Water = std::tuple<T, T, T>;
    const Water start(T(2.0 + 0.2 * wave), T(0.1 * push), T(0.0 * push));
    const auto [h, u, v] = FOR(0, 3, start, [&](I, const Water& w) {
      const T h0 = ld::halo_exchange(std::get<0>(w), 1, grid), u0 = ld::halo_exchange(std::get<1>(w), 1, grid),
              v0 = ld::halo_exchange(std::get<2>(w), 1, grid);
      const I m = std::get<0>(w).dim(0), n = std::get<0>(w).dim(1);
      const auto mean = [&](const T& q) {
        return T(0.25 * (q(range(0, m), range(1, n + 1)) + q(range(2, m + 2), range(1, n + 1)) +
                         q(range(1, m + 1), range(0, n)) + q(range(1, m + 1), range(2, n + 2))));
      };
      const auto across = [&](const T& f, const T& g) {
        return T(0.05 * (f(range(2, m + 2), range(1, n + 1)) - f(range(0, m), range(1, n + 1)) +
                         g(range(1, m + 1), range(2, n + 2)) - g(range(1, m + 1), range(0, n))));
      };
      const T pressure = T(0.5 * h0 * h0), uv = T(u0 * v0 / h0);
      return Water(T(mean(h0) - across(u0, v0)), T(mean(u0) - across(T(u0 * u0 / h0 + pressure), uv)),
                   T(mean(v0) - across(uv, T(v0 * v0 / h0 + pressure))));
    });
    return sum(h * h + u * u + v * v);
  };
  check_fields(energy, {12, 4}, true);
}

namespace {

/// The pull of bodies at `there` on those at `here`, softened; on a line.
A pull(const A& here, const A& there, const A& mass) {
  const auto toward = [&](const D& x) {
    return FOR(0, there.size(), D(0.0), [&](I j, D s) {
      const D d = there[j] - x, r = d * d + 0.1;
      return s + mass[j] * d / (r * sqrt(r));
    });
  };
  return A(tabulate([&](I i) { return D(toward(here[i])); }, here.size()).datum());
}
A gathered(const A& x, const ld::Communicator& c) { return A(ravel(ld::all_gather(x, c)).datum()); }
/// Positions after two steps from rest.
template <class Pulls>
D moved(const A& start, const A& mass, const Pulls& pulls) {
  const auto [x, v] = FOR(0, 2, std::tuple(start, A(0.0 * start)), [&](I, const std::tuple<A, A>& s) {
    const A faster = std::get<1>(s) + 0.1 * pulls(std::get<0>(s), mass);
    return std::tuple(A(std::get<0>(s) + 0.1 * faster), faster);
  });
  return sum(x * x + v * v * v);
}

}  // namespace

TEST_CASE("bodies that attract each other: by all_gather, and passed on in a ring") {
  const int64_t n = 12;
  if (n % ranks != 0) return;
  const auto by_gather = [](const ld::Communicator& c) {
    return [c](const A& x, const A& m) { return pull(x, gathered(x, c), gathered(m, c)); };
  };
  const auto by_ring = [](const A& x, const A& m) {
    const ld::Communicator c;
    const I size = c.size(), r = c.rank();
    const auto all = FOR(0, size, std::tuple(A(0.0 * x), x, m), [&](I, const std::tuple<A, A, A>& s) {
      const auto& [force, there, mass] = s;
      const auto on = [&](const A& a) { return ld::send_receive(a, (r + 1) % size, (r + size - 1) % size); };
      return std::tuple(A(force + pull(x, there, mass)), on(there), on(mass));
    });
    return std::get<0>(all);
  };
  using Two = double(Array<double>, Array<double>);
  Numbers x, m;
  for (int i = 0; i < n; ++i) x.push_back(std::cos(1.1 * i) * 3), m.push_back(0.5 + 0.1 * i);
  const auto part = [&](const Numbers& all) {
    const auto first = all.begin() + me * (n / ranks);
    return Numbers(first, first + n / ranks);
  };
  const auto [value, slopes] = eager(value_and_grad<0, 1>(sig<Two>([&](A a, A b) { return moved(a, b, by_gather(alone())); })))(x, m);
  const auto check = [&, &value = value, &slopes = slopes](const auto& way) {
    const auto [v, own_slopes] = way(part(x), part(m));
    CHECK(v == Approx(value));
    check_close(std::get<0>(own_slopes), part(std::get<0>(slopes)));
    check_close(std::get<1>(own_slopes), part(std::get<1>(slopes)));
  };
  const auto gather = value_and_grad<0, 1>(sig<Two>([&](A a, A b) { return ld::total(moved(a, b, by_gather({}))); }));
  const auto ring = value_and_grad<0, 1>(sig<Two>([&](A a, A b) { return ld::total(moved(a, b, by_ring)); }));
  check(eager(gather));
  check(compile(gather, optimised));
  check(eager(ring));
  check(compile(ring, optimised));
}

TEST_CASE("a mean over scenarios: the same bits on any number of ranks") {
  // A call option: its price, and its derivatives by the spot and the volatility.
  constexpr int64_t all = 240;
  if (all % ranks != 0) return;
  const auto price = [](const D& spot, const D& volatility, const Rep<Array<int64_t>>& paths, const ld::Communicator& c) {
    const auto each = ld::deterministic_replicate(A(tabulate([&](I i) { return select(i == 0, spot, volatility); }, 2).datum()), paths.size(), c);
    const A z(nn::normal_rows<double>(I(int64_t{11}), paths).datum());
    const A gain(tabulate([&](I i) {
      const D v = each(i, 1);
      return max(D(each(i, 0) * exp(v * z[i] - 0.5 * v * v) - 100.0), D(0.0));
    }, paths.size()).datum());
    return D(ld::deterministic_total(gain, c) / static_cast<double>(all));
  };
  using Three = double(double, double, Array<int64_t>);
  const auto one = value_and_grad<0, 1>(sig<Three>([&](D s, D v, Rep<Array<int64_t>> p) { return price(s, v, p, alone()); }));
  const auto together = value_and_grad<0, 1>(sig<Three>([&](D s, D v, Rep<Array<int64_t>> p) { return price(s, v, p, {}); }));
  Whole paths(static_cast<std::size_t>(all)), mine(static_cast<std::size_t>(all / ranks));
  std::iota(paths.begin(), paths.end(), 0);
  std::iota(mine.begin(), mine.end(), me * (all / ranks));
  const auto bits = [](const auto& r) {
    const auto& [v, g] = r;
    return std::vector{std::bit_cast<std::uint64_t>(v), std::bit_cast<std::uint64_t>(std::get<0>(g)),
                       std::bit_cast<std::uint64_t>(std::get<1>(g))};
  };
  const auto result = compile(together, optimised)(100.0, 0.2, mine);
  CHECK(bits(result) == bits(compile(one, optimised)(100.0, 0.2, paths)));
  CHECK(bits(compile(together, plain)(100.0, 0.2, mine)) == bits(compile(one, plain)(100.0, 0.2, paths)));
  const auto [v, g] = result;
  CHECK(v == Approx(7.97).epsilon(0.3));  // Black and Scholes' price, of which 240 paths are not far
  const double h = 1e-5;
  const auto value = eager([&](D s, D w, Rep<Array<int64_t>> p) { return price(s, w, p, {}); });
  CHECK(std::get<0>(g) == Approx((value(100 + h, 0.2, mine) - value(100 - h, 0.2, mine)) / (2 * h)).epsilon(1e-6));
  CHECK(std::get<1>(g) == Approx((value(100.0, 0.2 + h, mine) - value(100.0, 0.2 - h, mine)) / (2 * h)).epsilon(1e-6));
}

namespace {

/// Rows of a symmetric matrix: k[i] + 2 on the diagonal, -1 beside it, and the product of both k far from it. What other
/// ranks have of x comes by halo_exchange and from the opposite row.
A times(const A& k, const A& x, const ld::Grid& grid) {
  const I n = x.size(), steps = grid.size(0) - 1 - 2 * grid.coordinate(0), other = grid.communicator().rank() + steps;
  const A p(ld::halo_exchange(x, 1, grid).datum());
  const A far = ld::send_receive(x, other, other, grid.communicator()), far_k = ld::send_receive(k, other, other, grid.communicator());
  return A(tabulate([&](I i) {
    const I j = n - 1 - i;  // the opposite row
    return D((k[i] + 2.0) * x[i] - p[i] - p[i + 2] + 0.1 * k[i] * far_k[j] * far[j]);
  }, n).datum());
}
/// Conjugate gradients (Hestenes and Stiefel 1952).
A solved(const A& k, const A& b, const ld::Grid& grid) {
  const auto inner = [&](const A& u, const A& v) { return ld::all_reduce(dot(u, v), ld::Reduction::sum, grid.communicator()); };
  const auto all = FOR(0, 60, std::tuple(A(0.0 * b), b, b, inner(b, b)), [&](I, const std::tuple<A, A, A, D>& s) {
    const auto& [x, r, p, rr] = s;
    const A ap = times(k, p, grid);
    const D step = rr / max(inner(p, ap), D(1e-300));
    const A r2 = r - step * ap;
    const D rr2 = inner(r2, r2);
    return std::tuple(A(x + step * p), r2, A(r2 + rr2 / max(rr, D(1e-300)) * p), rr2);
  });
  return std::get<0>(all);
}
/// The solution, differentiated by the implicit function theorem: b's cotangent solves the same system, and k's is that of
/// the residual.
A solution(const A& k, const A& b, const ld::Grid& grid) {
  return custom_vjp([grid](A q, A c) { return solved(q, c, grid); },
                    [grid](A q, A c) {
                      const A x = solved(q, c, grid);
                      return std::tuple(x, q, x);
                    },
                    [grid](A q, A x, A g) {
                      const A lambda = solved(q, g, grid);
                      const auto residual = sig<Array<double>(Array<double>)>([&](A p) { return times(p, x, grid); });
                      const auto [y, slope] = vjp(residual)(q, A(-lambda));
                      return std::tuple(slope, lambda);
                    })(k, b);
}

}  // namespace

TEST_CASE("conjugate gradients on rows of all ranks, with the implicit derivative") {
  const int64_t n = 24;
  if (n % ranks != 0) return;
  using Two = double(Array<double>, Array<double>);
  const auto energy = [](const A& k, const A& b, const ld::Grid& grid) {
    const A x = solution(k, b, grid);
    return sum(x * x * x + x);
  };
  const auto one = value_and_grad<0, 1>(sig<Two>([&](A k, A b) { return energy(k, b, ld::Grid({ld::GridDimension{1}}, alone())); }));
  const auto together = value_and_grad<0, 1>(sig<Two>([&](A k, A b) { return ld::total(energy(k, b, ld::Grid({ld::GridDimension{0}}))); }));
  Numbers k, b;
  for (int i = 0; i < n; ++i) k.push_back(1.5 + std::sin(0.9 * i)), b.push_back(std::cos(1.3 * i));
  const auto part = [&](const Numbers& all) {
    const auto first = all.begin() + me * (n / ranks);
    return Numbers(first, first + n / ranks);
  };
  const auto [value, slopes] = eager(one)(k, b);
  const auto check = [&, &value = value, &slopes = slopes](const auto& way) {
    const auto [v, own_slopes] = way(part(k), part(b));
    CHECK(v == Approx(value));
    check_close(std::get<0>(own_slopes), part(std::get<0>(slopes)), 1e-9);
    check_close(std::get<1>(own_slopes), part(std::get<1>(slopes)), 1e-9);
  };
  check(eager(together));
  check(compile(together, optimised));
  // The implicit derivative against differences.
  const auto value_of = [&](const Numbers& q) { return std::get<0>(eager(one)(q, b)); };
  const double h = 1e-5;
  for (const std::size_t i : {0, 7, 23}) {
    Numbers up = k, down = k;
    up[i] += h;
    down[i] -= h;
    CHECK(std::get<0>(slopes)[i] == Approx((value_of(up) - value_of(down)) / (2 * h)).epsilon(1e-6));
  }
}
