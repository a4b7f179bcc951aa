"""The gradient of saxpy.cpp in JAX: a function with a rule of its own for reverse mode, on the device and inside jit.

saxpy_jax.cu says how libsaxpy_jax.so is made. `python3 saxpy_jax.py libsaxpy_jax.so` tries it.
"""

import ctypes
import sys

import jax
import jax.numpy as jnp


def load(library: str):
    platform = "CUDA" if jax.default_backend() == "gpu" else "cpu"
    handler = jax.ffi.pycapsule(ctypes.CDLL(library).saxpy_jax)
    jax.ffi.register_ffi_target("saxpy", handler, platform=platform)

    def value_and_slopes(a, x, y):
        number = jax.ShapeDtypeStruct((), jnp.float32)
        return jax.ffi.ffi_call("saxpy", (number, number, jax.ShapeDtypeStruct(x.shape, x.dtype)))(a, x, y)

    @jax.custom_vjp
    def saxpy(a, x, y):
        """The sum of the squares of a x + y, differentiable by a and x; its slope by y is taken as 0."""
        return value_and_slopes(a, x, y)[0]

    def forward(a, x, y):
        value, by_a, by_x = value_and_slopes(a, x, y)
        return value, (by_a, by_x, y)

    def backward(kept, cotangent):
        by_a, by_x, y = kept
        return cotangent * by_a, cotangent * by_x, jnp.zeros_like(y)

    saxpy.defvjp(forward, backward)
    return saxpy


def main():
    saxpy = load(sys.argv[1])
    worst = 0.0
    for n in (0, 1, 1000, 100003):
        a, x, y = jnp.float32(0.75), jnp.linspace(-1, 1, n, dtype=jnp.float32), jnp.cos(jnp.arange(n, dtype=jnp.float32))
        ours = jax.jit(jax.value_and_grad(lambda a, x: 3 * saxpy(a, x, y), (0, 1)))(a, x)
        theirs = jax.value_and_grad(lambda a, x: 3 * jnp.sum((a * x + y) ** 2), (0, 1))(a, x)
        for w, f in zip(jax.tree.leaves(theirs), jax.tree.leaves(ours)):
            if w.size:
                worst = max(worst, float(jnp.abs(w - f).max() / (1 + jnp.abs(w).max())))
    try:
        saxpy(a, x, y[1:]).block_until_ready()
        raise AssertionError("an error was expected")
    except Exception as error:
        print(str(error).splitlines()[0])
        assert "expected two vectors of one length" in str(error)
    print(f"{'ok ' if worst < 1e-5 else 'BAD'}  saxpy in JAX on {jax.default_backend()}: within {worst:.1e}")
    return 0 if worst < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
