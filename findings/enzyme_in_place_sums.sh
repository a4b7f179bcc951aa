#!/usr/bin/env bash
# enzyme-ad 0.0.16 (enzyme_ad.jax.cpp_call, with JAX 0.10.2): where a loop replaces the elements of a local array by a factor times
# a sum of neighbours, and does so twice, the derivative by the factor is wrong, and nothing is said. It needs the sums that the
# sweeps replaced. The value and the derivative by what the array starts with are right. The program below is
# r * r * (v0 + 2 * v1 + v2), so that its derivative by r is 2 * r * (v0 + 2 * v1 + v2); differences agree. Clang's options do not
# matter: without optimisation and with -O3 the wrong number is the same.
#
# Seen: "value 3.2743, by the start 3.2743, by the factor 8.0931 (without options) 8.0931 (-O3), expected 6.7512".
# Needs Debian 12 on x86-64, Python 3 with venv, and PyPI; exits with 1 where that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q enzyme-ad==0.0.16 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6

cat >gradient.py <<'PYTHON'
import jax
import jax.numpy as jnp
from enzyme_ad.jax import cpp_call

jax.config.update("jax_enable_x64", True)
PROGRAM = """
template <decltype(sizeof(0)) N> void f(enzyme::tensor<double, 1>& out, const enzyme::tensor<double, N>& x) {
  double v[3] = {x[0], 0.87 * x[0], 0.74 * x[0]};
  for (int sweep = 0; sweep < 2; ++sweep)
    for (int i = 0; i < 2 - sweep; ++i) v[i] = x[1] * (v[i + 1] + v[i]);
  out[0] = v[0];
}
"""


def value_and_gradient(*options):
    shape = [jax.core.ShapedArray((1,), jnp.float64)]
    f = lambda x: cpp_call(x, out_shapes=shape, source=PROGRAM, fn="f", argv=options)[0][0]
    value, (by_start, by_factor) = jax.jit(jax.value_and_grad(f))(jnp.array([1.0, 0.97]))
    return float(value), float(by_start), float(by_factor)


value, by_start, by_factor = value_and_gradient()
print(f"value {value:.4f}, by the start {by_start:.4f}, by the factor {by_factor:.4f} (without options) "
      f"{value_and_gradient('-O3')[2]:.4f} (-O3), expected {2 * 0.97 * (1 + 2 * 0.87 + 0.74):.4f}")
PYTHON
seen=$(venv/bin/python gradient.py)
echo "$seen"
[ "$seen" = "value 3.2743, by the start 3.2743, by the factor 8.0931 (without options) 8.0931 (-O3), expected 6.7512" ]
