// Functions that strided_user.c and test_strided.py call with strides.
#include <lantern/lantern.hpp>

using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;
using I = Rep<int64_t>;

D weighted(M m, A x) { return sum(matmul(m, x) * x); }
auto swapped(A x, A y) { return std::tuple(y, x, sum(x)); }
M scaled(M m, D by) { return by * m; }
D element(A x, I i) { return x[i] * x[i]; }
Rep<Tensor<float, dyn, dyn, dyn>> shifted(Rep<Tensor<float, dyn, dyn, dyn>> t) { return t + 1.0f; }

LANTERN_FUNCTION(weighted_gradient, value_and_grad(weighted))
LANTERN_FUNCTION(exchange, swapped)
LANTERN_FUNCTION(times, scaled)
LANTERN_FUNCTION(square_at, element)
LANTERN_FUNCTION(shift_by_one, shifted)
LANTERN_FUNCTION(cube, [](D x) { return x * x * x; })
