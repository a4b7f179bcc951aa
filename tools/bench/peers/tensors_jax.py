#!/usr/bin/env python3
"""The programs of `bench tensors` in JAX: milliseconds of each, as JSON on standard output.

Usage: tensors_jax.py [--quick]. Threads are those that the process may use: taskset -c 0 for one.
"""
import json
import statistics
import sys
import time

import jax
import jax.numpy as jnp

quick = "--quick" in sys.argv


def measure(f, *arguments):
    """Median milliseconds of a compiled call, and seconds to the first result."""
    compiled = jax.jit(f)
    start = time.perf_counter()
    jax.block_until_ready(compiled(*arguments))
    first = time.perf_counter() - start
    times = []
    begin = time.perf_counter()
    while len(times) < 5 or (len(times) < 31 and time.perf_counter() - begin < 10):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        times.append(1e3 * (time.perf_counter() - start))
    return {"ms": statistics.median(times), "first s": first}


def numbers(shape, lo, hi, key):
    return jax.random.uniform(jax.random.PRNGKey(key), shape, jnp.float32, lo, hi)


def chain(x, y, z):
    return jnp.exp(x) * y + z


def adam(x, g, m, v):
    first, second = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return x - 1e-3 * (first / 0.19) / (jnp.sqrt(second / 0.001999) + 1e-8), first, second


def layer_norm(x):
    return (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5)


def logistic(w, x, y):
    score = x @ w
    return (jax.nn.softplus(score) - y * score).mean()


def call_price(spot, strike, years, rate, volatility):
    deviation = volatility * jnp.sqrt(years)
    d1 = (jnp.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / deviation
    cumulative = lambda d: 0.5 * jax.scipy.special.erfc(d * -0.70710678)
    return spot * cumulative(d1) - strike * jnp.exp(-rate * years) * cumulative(d1 - deviation)


def heat(start, target, steps):
    def step(u, _):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].set(inner + 0.2 * (around - 4.0 * inner)), None

    end, _ = jax.lax.scan(step, start, None, length=steps)
    return ((end - target) ** 2).sum()


def bodies(start, speed, steps):
    def step(state, _):
        x, v = state
        d = x[None] - x[:, None]
        r2 = (d * d).sum(2) + 0.01
        v = v + 0.001 * jnp.einsum("ijk,ij->ik", d, 1.0 / (r2 * jnp.sqrt(r2)))
        return (x + 0.001 * v, v), None

    (x, _), _ = jax.lax.scan(step, (start, speed), None, length=steps)
    return (x * x).sum()


def main():
    n, side = (100_000, 300) if quick else (10_000_000, 3200)
    x, y, z, v = (numbers((n,), lo, 1, k) for k, lo in ((1, -1), (2, -1), (3, -1), (4, 0.1)))
    results = {}
    results["chain value"] = measure(chain, x, y, z)
    results["chain gradient"] = measure(jax.grad(lambda *a: chain(*a).sum(), (0, 1, 2)), x, y, z)
    results["adam step"] = measure(adam, x, y, z, v)
    rows, weights = numbers((side, side), -3, 3, 5), numbers((side, side), -1, 1, 6)
    results["softmax value"] = measure(lambda t: jax.nn.softmax(t, 1), rows)
    results["softmax gradient"] = measure(jax.grad(lambda t, w: (jax.nn.softmax(t, 1) * w).sum()), rows, weights)
    results["layer norm value"] = measure(layer_norm, rows)
    results["layer norm gradient"] = measure(jax.grad(lambda t, w: (layer_norm(t) * w).sum()), rows, weights)
    examples = 1000 if quick else 100_000
    points, labels = numbers((examples, 50), -1, 1, 7), numbers((examples,), 0, 1, 8)
    step = lambda w, a, b: w - 0.1 * jax.grad(logistic)(w, a, b)
    results["logistic step"] = measure(step, numbers((50,), -1, 1, 9), points, labels)
    contracts = 10_000 if quick else 1_000_000
    ranges = ((80, 120), (80, 120), (0.1, 2), (0.01, 0.05), (0.1, 0.4))
    market = [numbers((contracts,), lo, hi, 10 + i) for i, (lo, hi) in enumerate(ranges)]
    greeks = jax.vmap(jax.grad(call_price, tuple(range(5))))
    results["black-scholes greeks"] = measure(greeks, *market)
    grid, steps = (32, 10) if quick else (256, 200)
    field, target = numbers((grid, grid), 0, 1, 15), numbers((grid, grid), 0, 1, 16)
    results["heat gradient"] = measure(jax.grad(lambda a, b: heat(a, b, steps)), field, target)
    count, moves = (16, 5) if quick else (128, 100)
    place, speed = numbers((count, 3), -1, 1, 17), numbers((count, 3), -1, 1, 18)
    results["bodies gradient"] = measure(jax.grad(lambda a, b: bodies(a, b, moves), (0, 1)), place, speed)
    json.dump({"system": "jax " + jax.__version__, "results": results}, sys.stdout, indent=1)
    print()


main()
