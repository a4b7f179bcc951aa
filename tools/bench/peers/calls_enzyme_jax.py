#!/usr/bin/env python3
"""A function called inside of a jitted JAX program: Lantern's module of --emit=jax beside enzyme_ad.jax.cpp_call and JAX's own code.

Usage: calls_enzyme_jax.py [--quick]. The function is the energy of a chain of springs, of tests/python/framework_functions.cpp, by n
numbers; its value, and its value with the gradient, each under jax.jit. Enzyme gets the same loop as C++. Times are microseconds, the
median of rounds in which each has its turn and begins in turn, as JSON. Needs jax and enzyme-ad from PyPI and build/lanternc.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
import numpy as np
from enzyme_ad.jax import cpp_call

ROOT = pathlib.Path(__file__).resolve().parents[3]
quick = "--quick" in sys.argv
jax.config.update("jax_enable_x64", True)

# Of Clang's levels of x86-64 the highest that this processor has.
FLAGS = pathlib.Path("/proc/cpuinfo").read_text()
PROCESSOR = "x86-64-v4" if "avx512vl" in FLAGS else "x86-64-v3" if "avx2" in FLAGS else "x86-64"
SOURCE = """
template <std::size_t N>
void chain(enzyme::tensor<double>& out, const enzyme::tensor<double, N>& x, const enzyme::tensor<double>& k) {
  double s = 0, stiffness = k;
  for (std::size_t i = 1; i < N; ++i) {
    const double stretch = x[i] - x[i - 1];
    s += stiffness * stretch * stretch + 0.1 * __builtin_cos((double)x[i]);
  }
  out = s;
}
"""


def enzyme(x, k):
    return cpp_call(x, k, out_shapes=[jax.core.ShapedArray((), jnp.float64)], source=SOURCE, fn="chain", argv=("-O3", "-target-cpu", PROCESSOR))[0]


def plain(x, k):
    d = x[1:] - x[:-1]
    return k * jnp.sum(d * d) + 0.1 * jnp.sum(jnp.cos(x[1:]))


def measured(calls):
    rounds, repetitions = (15, 10) if quick else (60, 100)
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
    names = list(calls)
    for round_ in range(rounds):
        for name in names[round_ % len(names):] + names[:round_ % len(names)]:
            call = calls[name]
            start = time.perf_counter()
            for _ in range(repetitions):
                result = call()
            jax.block_until_ready(result)
            times[name].append((time.perf_counter() - start) / repetitions * 1e6)
    return {name: round(statistics.median(t), 2) for name, t in times.items()}


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([ROOT / "build/lanternc", ROOT / "tests/python/framework_functions.cpp", "--emit=jax", "--function=energy", "-o", f"{folder}/chain_module.py"],
                       check=True, env={**os.environ, "LANTERN_PYTHON": sys.executable})
        sys.path.insert(0, folder)
        import chain_module

        times = {}
        for n in (10, 1000, 100_000):
            x, k = jnp.asarray(np.random.default_rng(1).normal(size=n)), jnp.asarray(1.3)
            functions = {"lantern": chain_module.energy, "enzyme": enzyme, "jax": plain}
            values = {name: jax.jit(f) for name, f in functions.items()}
            gradients = {name: jax.jit(jax.value_and_grad(f, argnums=(0, 1))) for name, f in functions.items()}
            expected = gradients["jax"](x, k)
            for name, g in gradients.items():
                for a, b in zip(jax.tree.leaves(g(x, k)), jax.tree.leaves(expected)):
                    if not np.allclose(a, b, rtol=1e-9):
                        sys.exit(f"{name}'s derivatives are others at n = {n}")
            times[n] = {"value": measured({name: (lambda f=f: f(x, k)) for name, f in values.items()}),
                        "value and gradient": measured({name: (lambda f=f: f(x, k)) for name, f in gradients.items()})}
    json.dump({"system": "jax " + jax.__version__, "microseconds": times}, sys.stdout, indent=1)
    print()


main()
