// A program ahead of time: what one process computes, several do with messages. distributed_aot builds and runs it.
#include <cmath>
#include <cstdio>
#include <lantern/distributed.hpp>
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>
#include <vector>

using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;

/// Springs in a ring, of which each rank has a part: the energy, and its gradient.
D energy(A own, D stiffness) {
  const Rep<std::int64_t> n = own.size();
  const A u(distributed::halo_exchange(own, 1, distributed::Grid({{0, true}})).datum());
  const D here = distributed::replicate(stiffness);
  return distributed::deterministic_total(A(tabulate([&](Rep<std::int64_t> i) {
    const D stretch = u[i + 2] - u[i + 1];
    return D(here * stretch * stretch * (1.0 + 0.1 * stretch));
  }, n).datum()));
}
std::tuple<Rep<Array<std::int64_t>>, A> sent_on(A own) {
  const Rep<std::int64_t> me = distributed::world().rank(), ranks = distributed::world().size();
  const auto counts = tabulate([&](Rep<std::int64_t> r) { return select(r == (me + 1) % ranks, own.size(), Rep<std::int64_t>(std::int64_t{0})); }, ranks);
  const auto [rows, from] = distributed::all_to_all(own, Rep<Array<std::int64_t>>(counts.datum()));
  return {from, rows};
}
LANTERN_FUNCTION(slope, value_and_grad<0, 1>(energy))
LANTERN_FUNCTION(send_on, sent_on)

int main() {
  constexpr std::int64_t all = 12;
  const std::int64_t ranks = distributed::world_size(), own = all / ranks, first = distributed::world_rank() * own;
  std::vector<double> u;
  for (std::int64_t i = first; i < first + own; ++i) u.push_back(std::sin(1.7 * static_cast<double>(i)));
  const auto [value, slopes] = slope(u, 2.5);
  const auto &[by_u, by_stiffness] = slopes;
  double squares = 0, sum = 0;
  for (const double g : by_u) squares += g * g;
  distributed_exchange_f64("", 0, distributed_all_reduce, distributed_sum, -1, -1, 1, &squares, &sum);
  const auto [from, rows] = send_on(u);
  const bool right = rows.size() == u.size() && from[static_cast<std::size_t>((distributed::world_rank() + ranks - 1) % ranks)] == own;
  if (!right) return 1;
  if (distributed::world_rank() == 0) std::printf("%.12g %.12g %.12g\n", value, sum, by_stiffness);
}
