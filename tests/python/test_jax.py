"""Calls the module that lanternc has made of framework_functions.cpp inside of JAX: values against JAX's own, jit, vmap, grad to
the second order by JAX's checker of derivatives, failures, the time of a call under jit.

    python3 test_jax.py DIRECTORY   (of the module jax_module.py)
"""
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_grads

from checks import check, raises, report

sys.path.insert(0, sys.argv[1])
import jax_module as m

raises(TypeError, "wave_: x has 64 bits: call jax.config.update('jax_enable_x64', True) first", m.wave_, 1.0, 2.0)
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(1)


def wave(x, y):
    return jnp.sin(x) * jnp.exp(y) + x * x * y


def chain(x, k):
    d = x[1:] - x[:-1]
    return k * jnp.sum(d * d) + 0.1 * jnp.sum(jnp.cos(x[1:]))


def layer(w, x):
    return jnp.tanh(w) @ x, jnp.sum(w)


def close(a, b):
    return np.allclose(a, b, rtol=1e-12, atol=1e-12)


x, k = jnp.asarray(rng.normal(size=17)), 1.3
w, v = jnp.asarray(rng.normal(size=(3, 4))), jnp.asarray(rng.normal(size=4))

# values
check(close(m.wave_(0.3, 0.7), wave(0.3, 0.7)))
check(close(m.energy(x, k), chain(x, k)) and close(jax.jit(m.energy)(x, k), chain(x, k)))
for ours, theirs in zip(jax.jit(m.two_results)(w, v), layer(w, v)):
    check(ours.shape == theirs.shape and close(ours, theirs))
check(close(m.series(2.0, 5), [1, 2, 4, 8, 16]) and m.series(2.0, 0).shape == (0,))
check(close(jax.jit(m.series, static_argnums=1)(3.0, 3), [1, 3, 9]))
check(int(jax.jit(m.positive)(x)) == int((x > 0).sum()))
check(m.half_squares(jnp.float32([1, 2])).dtype == jnp.float32)
check(m.energy(jnp.zeros(0), 1.0) == 0.0)

# derivatives
check(close(jax.grad(m.wave_)(0.3, 0.7), jax.grad(wave)(0.3, 0.7)))
check(close(jax.jit(jax.grad(m.energy))(x, k), jax.grad(chain)(x, k)))
value, gradient = jax.jit(jax.value_and_grad(m.energy, argnums=(0, 1)))(x, k)
check(close(value, chain(x, k)) and close(gradient[1], jax.grad(chain, 1)(x, k)))
check(close(jax.jacrev(m.two_results)(w, v)[0], jax.jacrev(layer)(w, v)[0]))
check(close(jax.grad(m.element)(x, 3), jax.grad(lambda x: x[3] ** 2)(x)))
check(close(jax.grad(lambda x: jax.jit(m.series, static_argnums=1)(x, 4).sum())(2.0), 1 + 4 + 12))
check(close(jax.hessian(chain)(x, k), jax.jacrev(jax.jacrev(m.energy))(x, k)))
check_grads(m.wave_, (0.3, 0.7), order=2, modes=["rev"])
check_grads(m.energy, (x, k), order=2, modes=["rev"])
check_grads(lambda w, v: m.two_results(w, v)[0], (w, v), order=2, modes=["rev"])
check_grads(m.half_squares, (jnp.float32([1, -2]),), order=2, modes=["rev"], atol=1e-2, rtol=1e-2)

# forward mode
check(close(m.energy.forward(x, k), chain(x, k)))
for f, g, at, by in ((m.wave_.forward, wave, (0.3, 0.7), (1.0, -2.0)), (m.energy.forward, chain, (x, k), (jnp.cos(x), 0.4)), (m.two_results.forward, layer, (w, v), (jnp.cos(w), v * v))):
    for ours, theirs in zip(jax.tree.leaves(jax.jit(lambda *a: jax.jvp(f, a, by))(*at)), jax.tree.leaves(jax.jvp(g, at, by))):
        check(ours.shape == theirs.shape and close(ours, theirs))
check(close(jax.jacfwd(m.energy.forward)(x, k), jax.grad(chain)(x, k)))
check(close(jax.jacfwd(jax.jacfwd(m.energy.forward))(x, k), jax.hessian(chain)(x, k)))
check(close(jax.jvp(lambda x: m.element.forward(x, 3), (x,), (x,))[1], 2 * x[3] ** 2))
check(close(jax.jvp(lambda x: jax.jit(m.series.forward, static_argnums=1)(x, 4), (2.0,), (1.0,))[1], [0, 1, 4, 12]))
check_grads(m.wave_.forward, (0.3, 0.7), order=2, modes=["fwd"])
check_grads(m.energy.forward, (x, k), order=2, modes=["fwd"])
check_grads(lambda w, v: m.two_results.forward(w, v)[0], (w, v), order=2, modes=["fwd"])
check(not hasattr(m.positive, "forward") and "energy, differentiable by forward mode, twice." in m.energy.forward.__doc__)

# inside of a program of JAX's
check(close(jax.grad(lambda x: jnp.log(m.energy(jnp.exp(x), k)))(x), jax.grad(lambda x: jnp.log(chain(jnp.exp(x), k)))(x)))
batch = jnp.asarray(rng.normal(size=(5, 17)))
check(close(jax.vmap(m.energy, (0, None))(batch, k), jax.vmap(chain, (0, None))(batch, k)))
check(close(jax.jit(jax.vmap(jax.grad(m.energy), (0, None)))(batch, k), jax.vmap(jax.grad(chain), (0, None))(batch, k)))
ws, vs = jnp.asarray(rng.normal(size=(2, 5, 3, 4))), jnp.asarray(rng.normal(size=(5, 4)))
for ours, theirs in zip(*(jax.vmap(jax.vmap(f), (0, None))(ws, vs) for f in (m.two_results, layer))):
    check(ours.shape == theirs.shape and close(ours, theirs))
columns, last = vs.T, jnp.moveaxis(ws[0], 0, 2)
for call in (
    lambda f: jax.vmap(f, (0, 1))(ws[0], columns),
    lambda f: jax.vmap(f, (None, 1))(ws[0, 0], columns),
    lambda f: jax.vmap(f, (2, None))(last, v),
):
    for ours, theirs in zip(call(m.two_results), call(layer)):
        check(ours.shape == theirs.shape and close(ours, theirs))
check(close(jax.vmap(m.element, (None, 0))(x, jnp.arange(17)), x * x) and jax.vmap(m.positive)(batch).tolist() == [int(n) for n in (batch > 0).sum(1)])
check(close(jax.vmap(jax.jacrev(jax.grad(m.energy)), (0, None))(batch, k),
            jax.vmap(jax.hessian(chain), (0, None))(batch, k)))
check(jax.vmap(m.energy, (0, None))(batch[:0], k).shape == (0,))
try:
    jax.block_until_ready(jax.vmap(m.element, (None, 0))(x, jnp.asarray([1, 17, 2])))
    check(False)
except Exception as e:
    check("index 17 is outside 0..16" in str(e), str(e))
check(close(jax.lax.fori_loop(0, 20, lambda i, x: x - 0.1 * jax.grad(m.energy)(x, k), x),
            jax.lax.fori_loop(0, 20, lambda i, x: x - 0.1 * jax.grad(chain)(x, k), x)))

# what fails
raises(TypeError, "energy: expected 2 arguments, got 1", m._c_energy, x)
raises(ValueError, "energy: x: expected shape (?), got (3, 4)", m.energy, w, k)
raises(TypeError, "element: i: expected numbers of type int64, got float64", m.element, x, 1.5)
raises(TypeError, "series: the shape of its result depends on an integer that is not known while JAX traces; "
       "close over the integer, or mark it with static_argnums", jax.jit(m.series), 2.0, 3)
try:
    jax.block_until_ready(m.element(x, 17))
    check(False)
except Exception as e:
    check("index 17 is outside 0..16" in str(e), str(e))
check(close(m.element(x, 16), x[16] ** 2))
check("The energy of a chain of springs." in m.energy.__doc__ and "Differentiable by reverse mode, twice." in m.energy.__doc__)
check("Not differentiable." in m.positive.__doc__)


# Beside JAX's own code for the same function, in one run: the least of several repetitions.
def least(f, *a):
    jax.block_until_ready(f(*a))
    times = []
    for _ in range(10):
        start = time.perf_counter()
        for _ in range(20):
            r = f(*a)
        jax.block_until_ready(r)
        times.append((time.perf_counter() - start) / 20)
    return min(times) * 1e6


xs, ys = jnp.asarray(rng.normal(size=1000)), jnp.asarray(rng.normal(size=1000))
# numbers that all examples share, in either place, and shared by one batch of two
for axes, given in (((0, 0), (xs, ys)), ((0, None), (xs, 0.3)), ((None, 0), (0.3, ys))):
    check(close(jax.vmap(m.wave_, axes)(*given), jax.vmap(wave, axes)(*given)))
    check(close(jax.vmap(jax.grad(m.wave_), axes)(*given), jax.vmap(jax.grad(wave), axes)(*given)))
    check(close(jax.vmap(jax.jacfwd(m.wave_.forward), axes)(*given), jax.vmap(jax.jacfwd(wave), axes)(*given)))
    check(close(jax.vmap(jax.jacrev(jax.grad(m.wave_)), axes)(*given), jax.vmap(jax.hessian(wave), axes)(*given)))
outer = lambda f: jax.vmap(jax.vmap(f, (0, None)), (None, 0))(xs[:20], ys[:30])
check(close(outer(m.wave_), outer(wave)) and close(outer(jax.grad(m.wave_)), outer(jax.grad(wave))))
print(f"vmap of a function of two numbers over 1000: value {least(jax.jit(jax.vmap(m.wave_)), xs, ys):.1f} us (JAX "
      f"{least(jax.jit(jax.vmap(wave)), xs, ys):.1f}), gradient {least(jax.jit(jax.vmap(jax.grad(m.wave_))), xs, ys):.1f} us (JAX "
      f"{least(jax.jit(jax.vmap(jax.grad(wave))), xs, ys):.1f})")
for n in (10, 100_000):
    x = jnp.asarray(rng.normal(size=n))
    print(f"n = {n}: value {least(jax.jit(m.energy), x, k):.1f} us (JAX {least(jax.jit(chain), x, k):.1f}), value and gradient "
          f"{least(jax.jit(jax.value_and_grad(m.energy)), x, k):.1f} us (JAX {least(jax.jit(jax.value_and_grad(chain)), x, k):.1f})")
report()
