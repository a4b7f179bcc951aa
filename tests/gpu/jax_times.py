"""JAX's times of the programs that gpu_check times, on the same GPU."""

import time

import jax
import jax.numpy as jnp


def tell(name, function, *arguments):
    compiled = jax.jit(function)
    for _ in range(3):
        jax.block_until_ready(compiled(*arguments))
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        times.append(time.perf_counter() - begin)
    print(f"jax   {name:24} {1000 * sorted(times)[10]:9.3f} ms", flush=True)


def mlp(w1, b1, w2, b2, x, y, rate):
    def loss(w1, b1, w2, b2):
        logits = jax.nn.relu(x @ w1.T + b1) @ w2.T + b2
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

    grads = jax.grad(loss, (0, 1, 2, 3))(w1, b1, w2, b2)
    return [p - rate * g for p, g in zip((w1, b1, w2, b2), grads)]


def norm(x, g, b, t):
    def loss(x, g, b):
        c = x - x.mean(1, keepdims=True)
        y = c / jnp.sqrt((c * c).mean(1, keepdims=True) + 1e-5) * g + b
        return (jax.nn.softmax(y, axis=1) * t).sum()

    return jax.value_and_grad(loss, (0, 1, 2))(x, g, b)


def main():
    jax.config.update("jax_default_matmul_precision", "highest")
    print(jax.devices())
    keys = iter(jax.random.split(jax.random.PRNGKey(0), 100))
    r = lambda *shape: 0.05 * jax.random.normal(next(keys), shape)
    tell("elements", lambda x, y: jnp.exp(x) * y + 1, r(1 << 26), r(1 << 26))
    tell("sum_columns", lambda x: x.sum(0), r(8192, 8192))
    tell("softmax", lambda x: jax.nn.softmax(x, axis=1), r(65536, 1024))
    for n in (1024, 4096):
        tell(f"norm_gradient_{n}", norm, r(n, n), r(n), r(n), r(n, n))
    for n in (128, 1024):
        tell(f"mlp_{n}", mlp, r(512, 784), r(512), r(10, 512), r(10), r(n, 784), jnp.arange(n) % 10, 0.1)
    tell("product", lambda a, b: a @ b, r(2048, 2048), r(2048, 2048))


if __name__ == "__main__":
    main()
