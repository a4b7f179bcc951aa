// Functions of every kind of signature, for --emit=header, c and cpp.
#include <lantern/lantern.hpp>

using namespace lantern;
using D = Rep<double>;
using I = Rep<std::int64_t>;
using B = Rep<bool>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

template <class T>
struct Point {
  T x, y;
};
struct Body {
  Point<D> at;
  D mass = 1.0;
};

// Numbers alone: without a loop, with one, with one that keeps a tape, with recursion.
D doubled(D start) { return 2.0 * start; }
B below(D x, B flip) { return select(flip, x >= 1.0, x < 1.0); }
auto five(D x, B b, I i, Rep<std::int32_t> n, Rep<float> f) {
  return std::tuple(x + 1.0, !b, i * 2, n + 1, f * 2.0f);
}
D halved(D x, I n) {
  return FOR(0, n, x, [](I, D s) { return 0.5 * s * s; });
}
auto halved_below(D x, I n) {
  const D y = halved(x, n);
  return std::tuple(y, y < x);
}
const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, D x, I n) {
  return IF(
      n == 0, [] { return D(1.0); }, [&] { return x * self(x, n - 1); });
});
auto constants() { return std::tuple(D(1.5), I(7)); }

// Arrays, tensors, trees and structures.
D total(A a) { return sum(a); }
D squares(D c, A x) {
  return FOR(0, x.size(), D(0.0), [&](I i, D s) { return s + c * x[i] * x[i]; });
}
A scaled(A a, D by) { return by * a; }
M product(M a, M b) { return matmul(a, b); }
auto row_and_positive(M m, I i) { return std::tuple(m.row(i), m(i, 0) > 0.0, sum(m)); }
Point<D> moved(Point<D> from, D by) { return {from.x + by, from.y - by}; }
D energy(Body body) { return body.mass * (body.at.x * body.at.x + body.at.y * body.at.y); }
D folded(D x, Rep<Tree<double>> tree) {
  return TREE(x, tree, [](D l, D r, Rep<Tree<double>> node) { return l * r * node.value(); });
}
auto flags(Rep<Array<bool>> which, A a) {
  return FOR(0, a.size(), std::tuple(D(0.0), which), [&](I i, D s, Rep<Array<bool>> w) {
    return std::tuple(s + select(w[i], a[i], D(0.0)), w.set(i, !w[i]));
  });
}

LANTERN_FUNCTION(one, doubled)
LANTERN_FUNCTION(truth, below)
LANTERN_FUNCTION(several, five)
LANTERN_FUNCTION(looped, halved)
LANTERN_FUNCTION(slope, value_and_grad<0>(halved))
LANTERN_FUNCTION(looped_truth, halved_below)
LANTERN_FUNCTION(dpower, value_and_grad(power))
LANTERN_FUNCTION(nothing, constants)
LANTERN_FUNCTION(everything, total)
LANTERN_FUNCTION(vg, value_and_grad<0>(squares))
LANTERN_FUNCTION(gradient, value_and_grad(squares))
LANTERN_FUNCTION(times, scaled)
LANTERN_FUNCTION(matrices, product)
LANTERN_FUNCTION(mixed, row_and_positive)
LANTERN_FUNCTION(shifted, moved)
LANTERN_FUNCTION(denergy, grad(energy))
LANTERN_FUNCTION(dfolded, grad(folded))
LANTERN_FUNCTION(turned, flags)

// Names that mean something elsewhere; names with one behind them that is made for the other.
D f(D x) { return x * x; }
LANTERN_FUNCTION(in, f)
LANTERN_FUNCTION(trailing_, grad(f))
LANTERN_FUNCTION(restrict, grad(f))
LANTERN_FUNCTION(two__, f)
LANTERN_FUNCTION(times_workspace, f)
LANTERN_FUNCTION(slope_on_failure, f)
LANTERN_FUNCTION(looped_entry, f)
namespace other {
LANTERN_FUNCTION(lt_workspace, grad(f))
LANTERN_FUNCTION(gamma, f)
}  // namespace other

int main() {
  return in(3.0) == 9.0 && trailing_(3.0) == 6.0 && restrict(3.0) == 6.0 && two__(3.0) == 9.0 &&
                 times_workspace(3.0) == 9.0 && slope_on_failure(3.0) == 9.0 && looped_entry(3.0) == 9.0 &&
                 other::lt_workspace(3.0) == 6.0 && other::gamma(3.0) == 9.0
             ? 0
             : 1;
}
