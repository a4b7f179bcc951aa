"""Calls the module for a GPU that lanternc has made of module_functions.cpp inside of JAX. Its code runs on the launch emulator, which
works on arrays of the processor; so what is registered for a GPU is registered for the processor.

    python3 test_jax_module.py DIRECTORY   (of the module jax_module.py)
"""
import ctypes
import inspect
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_grads

from checks import check, raises, report

jax.config.update("jax_enable_x64", True)
register, refusing = jax.ffi.register_ffi_target, {}


def register_on_cpu(name, handler, platform):
    if platform == "CUDA":
        register(name, handler, platform="cpu")
    else:
        check(platform == "cpu")
        refusing[name] = handler


jax.ffi.register_ffi_target = register_on_cpu
sys.path.insert(0, sys.argv[1])
import jax_module as m

rng = np.random.default_rng(1)
count = m._library.lantern_emulator_count
names, series_names = ([*inspect.signature(f).parameters] for f in (m.energy, m.series))
count.restype = ctypes.c_int64


def chain(x, k):
    d = x[1:] - x[:-1]
    return k * jnp.sum(d * d) + 0.1 * jnp.sum(jnp.cos(x[1:]))


def squares(table, at):
    return table[at] ** 2


def close(a, b):
    return np.allclose(a, b, rtol=1e-12, atol=1e-12)


x, k = jnp.asarray(rng.normal(size=17)), 1.3
w, rows = jnp.asarray(rng.normal(size=(3, 4))), jnp.asarray([2, 0, 2])

# values
check(close(m.energy(x, k), chain(x, k)) and close(jax.jit(m.energy)(x, k), chain(x, k)))
check(close(m.series(2.0, 5), [1, 2, 4, 8, 16]) and m.series(2.0, 0).shape == (0,))
check(close(jax.jit(m.series, static_argnums=1)(3.0, 3), [1, 3, 9]))
check(close(m.squared_rows(w, rows), squares(w, rows)))
check(m.energy(jnp.zeros(0), 1.0) == 0.0)

# derivatives
value, gradient = jax.jit(jax.value_and_grad(m.energy, argnums=(0, 1)))(x, k)
check(close(value, chain(x, k)) and close(gradient[0], jax.grad(chain)(x, k)) and close(gradient[1], jax.grad(chain, 1)(x, k)))
check(close(jax.hessian(chain)(x, k), jax.jacrev(jax.jacrev(m.energy))(x, k)))
check(close(jax.jacfwd(m.energy.forward)(x, k), jax.grad(chain)(x, k)))
check_grads(m.energy, (x, k), order=2, modes=["rev"])
check_grads(lambda w: m.squared_rows(w, rows), (w,), order=2, modes=["rev"])
check_grads(m.energy.forward, (x, k), order=2, modes=["fwd"])

# batches: each example with arrays of its own, and with what all share
batch, numbers = jnp.asarray(rng.normal(size=(5, 17))), jnp.asarray(rng.normal(size=5))
for axes, given in (((0, 0), (batch, numbers)), ((0, None), (batch, k)), ((None, 0), (x, numbers))):
    check(close(jax.vmap(m.energy, axes)(*given), jax.vmap(chain, axes)(*given)))
    check(close(jax.jit(jax.vmap(jax.grad(m.energy), axes))(*given), jax.vmap(jax.grad(chain), axes)(*given)))
tables = jnp.asarray(rng.normal(size=(2, 5, 3, 4)))
check(close(*(jax.vmap(jax.vmap(f, (0, None)), (0, None))(tables, rows) for f in (m.squared_rows, squares))))

# No tensor is copied, and nothing allocated, from the second call on: the result, a number, passes through the host. The counts are
# those of the first function.
step, large = jax.jit(m.energy), jnp.asarray(rng.normal(size=1000))
step(large, k).block_until_ready()
before = [count(what) for what in range(4)]
for _ in range(3):
    step(large, k).block_until_ready()
launches, waits, allocations, moved = (count(what) - b for what, b in zip(range(4), before))
check(launches > 0 and moved == 3 * 8, str((launches, waits, allocations, moved)))

# what fails
raises(TypeError, "energy: expected 2 arguments, got 1", m._c_energy, x)
raises(ValueError, f"energy: {names[0]}: expected shape (?), got (3, 4)", m.energy, w, k)
raises(TypeError, f"series: {series_names[1]}: expected numbers of type int64, got float64", m.series, 2.0, 1.5)
raises(TypeError, "series: the shape of its result depends on an integer that is not known while JAX traces; "
       "close over the integer, or mark it with static_argnums", jax.jit(m.series), 2.0, 3)


def fails_with(text, call):
    try:
        jax.block_until_ready(call())
    except Exception as e:
        return check(text in str(e), str(e))
    check(False, text)


fails_with("3 is outside 0..2", lambda: m.squared_rows(w, jnp.asarray([0, 3])))
check(close(m.squared_rows(w, rows), squares(w, rows)))  # the next call is not concerned
name = m._c_energy.first.target
register("refused", refusing[name], platform="cpu")
fails_with("energy: expected arrays on a GPU, got arrays of the CPU",
           lambda: jax.ffi.ffi_call("refused", jax.ShapeDtypeStruct((), jnp.float64))(x, jnp.float64(k)))
check("The energy of a chain of springs." in m.energy.__doc__)
report()
