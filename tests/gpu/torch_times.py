"""PyTorch's times of the programs that gpu_check times, on the same GPU: eager, and by torch.compile where that works."""

import time

import torch
import torch.nn.functional as F


def milliseconds(run, repeats=20):
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return 1000 * sorted(times)[repeats // 2]


def tell(name, function, *arguments):
    eager = milliseconds(lambda: function(*arguments))
    try:
        compiled = torch.compile(function)
        fast = f"{milliseconds(lambda: compiled(*arguments)):9.3f}"
    except Exception as error:  # the compiler's own failures are not ours
        fast = type(error).__name__
    print(f"torch {name:24} eager {eager:9.3f} ms, compiled {fast} ms", flush=True)


def mlp(w1, b1, w2, b2, x, y, rate):
    loss = F.cross_entropy(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2), y)
    grads = torch.autograd.grad(loss, (w1, b1, w2, b2))
    return [p.detach() - rate * g for p, g in zip((w1, b1, w2, b2), grads)]


def norm(x, g, b, t):
    y = F.layer_norm(x, x.shape[1:], g, b)
    loss = (F.softmax(y, dim=1) * t).sum()
    return torch.autograd.grad(loss, (x, g, b))


def main():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    r = lambda *shape: torch.randn(*shape, device="cuda")
    p = lambda *shape: r(*shape).mul_(0.05).requires_grad_()
    tell("elements", lambda x, y: torch.exp(x) * y + 1, r(1 << 26), r(1 << 26))
    tell("sum_columns", lambda x: x.sum(0), r(8192, 8192))
    tell("softmax", lambda x: F.softmax(x, dim=1), r(65536, 1024))
    for n in (1024, 4096):
        tell(f"norm_gradient_{n}", norm, r(n, n).requires_grad_(), p(n), p(n), r(n, n))
    for n in (128, 1024):
        y = torch.randint(0, 10, (n,), device="cuda")
        tell(f"mlp_{n}", mlp, p(512, 784), p(512), p(10, 512), p(10), r(n, 784), y, 0.1)
    tell("product", lambda a, b: a @ b, r(2048, 2048), r(2048, 2048))


if __name__ == "__main__":
    main()
