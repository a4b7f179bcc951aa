// A plate in parts: where the heat was at the start, found by several processes from what is measured at the end.
//
//   distributed_heat
//   mpirun -n 4 distributed_heat        the same plate, in four parts, and the same answer
//
// Each process has a rectangle of the plate. In each step it gets the cells around its rectangle from its neighbours
// (halo_exchange), and heat spreads. The misfit of the measurement is summed over all processes (total). Its gradient
// runs back through all steps, and through all messages: grad(misfit) is written as it is for one process.
#include <fmt/core.h>

#include <cmath>
#include <lantern/distributed.hpp>
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>
#include <vector>

using namespace lantern;
using Field = Rep<Tensor<double>>;
using Plate = Rep<Tensor<double, dyn, dyn>>;

constexpr std::int64_t side = 24, steps = 20, descents = 60;

/// The part of this process after all steps. Beyond the edges of the plate it is 0 degrees.
Field after(const Field& start) {
  const distributed::Grid grid({{0}, {0}});
  return FOR(0, steps, start, [&](Rep<std::int64_t>, Field u) {
    const Field p = distributed::halo_exchange(u, 1, grid);
    const Rep<std::int64_t> m = u.dim(0), n = u.dim(1);
    const Field around = p(range(0, m), range(1, n + 1)) + p(range(2, m + 2), range(1, n + 1)) +
                         p(range(1, m + 1), range(0, n)) + p(range(1, m + 1), range(2, n + 2));
    return Field(u + 0.2 * (around - 4.0 * u));
  });
}
Rep<double> misfit(Plate start, Plate seen) {
  const Field missed = after(Field(start.datum())) - Field(seen.datum());
  return distributed::total(sum(missed * missed));
}
/// One step of descent: the misfit before it, and the new start.
std::tuple<Rep<double>, Plate> descent(Plate start, Plate seen) {
  const auto [value, slope] = value_and_grad<0>(misfit)(start, seen);
  return {value, Plate((start - 0.45 * slope).datum())};
}
Field spread(Plate start) { return after(Field(start.datum())); }

LANTERN_FUNCTION(measure, spread)
LANTERN_FUNCTION(descend, descent)

int main() {
  const std::int64_t me = distributed::world_rank();
  std::int64_t parts[2] = {0, 0};
  distributed_dims("", 0, 2, parts);
  const std::int64_t rows = side / parts[0], columns = side / parts[1];
  TensorValue<double> truth({rows, columns}), start({rows, columns}, 0.0);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto y = static_cast<double>(me / parts[1] * rows + i) - 8, x = static_cast<double>(me % parts[1] * columns + j) - 15;
      truth.data[static_cast<std::size_t>(i * columns + j)] = std::exp(-(x * x + y * y) / 18);
    }
  const TensorValue<double> seen = measure(truth);
  double first = 0, last = 0;
  for (std::int64_t k = 0; k < descents; ++k) {
    const auto [value, next] = descend(start, seen);
    start = next;
    (k == 0 ? first : last) = value;
  }
  if (me == 0)
    fmt::print("{} processes, {} x {} cells each: misfit {:.6f} at first, {:.6f} after {} steps\n",
               distributed::world_size(), rows, columns, first, last, descents);
  return last < 0.01 * first ? 0 : 1;
}
