// Functions of functions: a rule of one's own, a derivative of a solution, a gradient for each example, and a
// Jacobian by as few passes as its sparsity allows.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <lantern/lantern.hpp>

using namespace lantern;

using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;

/// The length of a vector; its gradient is the direction, and 0 rather than 0 / 0 at the origin.
D length(A a) { return sqrt(sum(a * a)); }
auto safe_length = custom_vjp(
    length, [](A a) { return std::tuple(length(a), a, length(a)); },
    [](A a, D n, D ybar) { return a * (ybar / max(n, 1e-300)); });

/// Kepler's equation: the eccentric anomaly E with E = m + e sin(E).
D anomaly(D m, D e) {
  return fixpoint([](D E, D mean, D eccentricity) { return mean + eccentricity * sin(E); }, m, m, e);
}

/// The squared error of one example.
D error(D slope, D offset, D x, D y) {
  const D d = slope * x + offset - y;
  return d * d;
}

/// A heated rod: what flows into each piece from its neighbours, with a source that depends on the piece.
A rod(A t) {
  return FOR(0, t.size(), t, [&](I i, A flow) {
    const D left = t[max(i - 1, 0)], right = t[min(i + 1, t.size() - 1)];
    return flow.set(i, left - 2.0 * t[i] + right + exp(-1.0 * t[i]));
  });
}

LANTERN_FUNCTION(direction, grad(safe_length))
LANTERN_FUNCTION(slope_of_anomaly, value_and_grad(anomaly))
LANTERN_FUNCTION(gradients, vmap<2, 3>(grad<0, 1>(error)))
LANTERN_FUNCTION(entries, sparse_jacobian(rod))

int main() {
  fmt::print("direction of (3, 4): {}, of the origin: {}\n", direction(std::vector<double>{3, 4}),
             direction(std::vector<double>{0, 0}));

  const auto [E, slopes] = slope_of_anomaly(1.0, 0.3);
  fmt::print("anomaly {:.6f}, by the mean anomaly {:.6f}, by the eccentricity {:.6f}\n", E,
             std::get<0>(slopes), std::get<1>(slopes));

  const auto [by_slope, by_offset] =
      gradients(2.0, 1.0, std::vector<double>{0, 1, 2}, std::vector<double>{1, 2, 7});
  fmt::print("by the slope {}, by the offset {}\n", by_slope, by_offset);

  const std::vector<double> cold(1000, 0.0);
  const Sparsity s = jacobian_sparsity(rod)(cold);
  const std::vector<double> values = entries(cold, s);
  fmt::print("{} entries of {} x {} by {} passes; row 1: {} {} {}\n", values.size(), s.rows, s.columns,
             s.forward + s.reverse, values[2], values[3], values[4]);
}
