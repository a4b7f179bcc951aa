// What most programs instantiate, so that Clang's precompiled header has it: types of Reps, control flow and derivatives of
// numbers and arrays. Nothing calls it, and it makes no code.
#pragma once

#include "lantern/lantern.hpp"

namespace lantern::core::detail {

inline void usual(Rep<double> (*f)(Rep<double>), Rep<double> (*of_array)(Rep<Array<double>>), Rep<double> x,
                  Rep<std::int64_t> n, const Rep<Array<double>>& a, const Rep<Tensor<double, dyn, dyn>>& m) {
  eager(grad(f))(1.0);
  value_and_grad(f);
  hvp(f);
  grad(of_array);
  value_and_grad(of_array);
  Rep<double> s = x * 2.0 + 1.0 - x / x;
  s += sin(s) * exp(x);
  s = IF(x > 0.0 & n == 0, [&] { return x; }, [&] { return -x; });
  FOR(0, n, [&](Rep<std::int64_t> i) { s += a[i] * m(i, 0); });
  s += WHILE(x, [](Rep<double> t) { return t > 1.0; }, [](Rep<double> t) { return t * 0.5; });
  std::tuple<Rep<double>, Rep<double>> both(s, x);
}

}  // namespace lantern::core::detail
