"""Calls the module that lanternc has made of framework_functions.cpp inside of PyTorch: values against PyTorch's own, gradients to
the second order by gradcheck and gradgradcheck, vmap, tracing, memory that is not copied, failures, the time of a call.

    python3 test_torch.py DIRECTORY   (of the module torch_module.py)
"""
import sys
import time

import torch

from checks import check, raises, report

sys.path.insert(0, sys.argv[1])
import torch_module as m

torch.manual_seed(1)
torch.set_num_threads(1)
f64 = torch.float64


def wave(x, y):
    return torch.sin(x) * torch.exp(y) + x * x * y


def chain(x, k):
    d = x[1:] - x[:-1]
    return k * torch.sum(d * d) + 0.1 * torch.sum(torch.cos(x[1:]))


def layer(w, x):
    return torch.tanh(w) @ x, torch.sum(w)


def close(a, b):
    return torch.allclose(torch.as_tensor(a, dtype=f64), torch.as_tensor(b, dtype=f64), rtol=1e-12, atol=1e-12)


def number(x):
    return torch.tensor(x, dtype=f64, requires_grad=True)


x, k = torch.randn(17, dtype=f64, requires_grad=True), number(1.3)
w, v = torch.randn(3, 4, dtype=f64, requires_grad=True), torch.randn(4, dtype=f64, requires_grad=True)
a, b = number(0.3), number(0.7)

# values
check(close(m.wave_(0.3, 0.7), wave(a, b)) and m.wave_(0.3, 0.7).shape == ())
check(close(m.energy(x, k), chain(x, k)))
for ours, theirs in zip(m.two_results(w, v), layer(w, v)):
    check(ours.shape == theirs.shape and close(ours, theirs))
check(close(m.series(2.0, 5), [1, 2, 4, 8, 16]) and m.series(2.0, 0).shape == (0,))
check(int(m.positive(x)) == int((x > 0).sum()) and m.positive(x).dtype == torch.int64 and not m.positive(x).requires_grad)
check(m.half_squares(torch.tensor([1.0, 2.0])).dtype == torch.float32)
check(m.energy(torch.zeros(0, dtype=f64), 1.0) == 0.0)
check(close(m.energy(x.float(), 1), chain(x.float().double(), 1.0)))

# derivatives
check(close(torch.autograd.grad(m.wave_(a, b), a)[0], torch.autograd.grad(wave(a, b), a)[0]))
for ours, theirs in zip(torch.autograd.grad(m.energy(x, k), (x, k)), torch.autograd.grad(chain(x, k), (x, k))):
    check(close(ours, theirs))
check(close(torch.autograd.functional.hessian(lambda x: m.energy(x, k), x), torch.autograd.functional.hessian(lambda x: chain(x, k), x)))
check(close(torch.autograd.grad(m.series(a, 4).sum(), a)[0], 1 + 0.6 + 3 * 0.09))
single = torch.tensor([1.0, -2.0], requires_grad=True)
check(torch.equal(torch.autograd.grad(m.half_squares(single).sum(), single)[0], single))
transposed = torch.randn(4, 3, dtype=f64, requires_grad=True)
for f, at in (
    (m.wave_, (a, b)),
    (m.energy, (x, k)),
    (m.two_results, (w, v)),
    (lambda w: m.two_results(w.t(), v)[0], (transposed,)),
    (lambda x: m.element(x, 3), (x,)),
    (lambda x: m.series(x, 4), (a,)),
    (lambda x: torch.log(m.energy(torch.exp(x), k)), (x,)),
):
    check(torch.autograd.gradcheck(f, at) and torch.autograd.gradgradcheck(f, at))

# vmap; tracing, which calls the operators with tensors that have no elements
batch = torch.randn(5, 17, dtype=f64)
check(close(torch.vmap(m.energy, (0, None))(batch, k), torch.vmap(chain, (0, None))(batch, k)))
check(close(torch.vmap(lambda w: m.two_results(w, v)[0])(torch.stack([w, 2 * w])), torch.stack([layer(w, v)[0], layer(2 * w, v)[0]])))
for operator, at in (
    (torch.ops.torch_module.wave_, (a, b)),
    (torch.ops.torch_module.energy, (x, k)),
    (torch.ops.torch_module.energy_vjp, (x, k, a)),
    (torch.ops.torch_module.two_results, (w, v)),
    (torch.ops.torch_module.positive, (x.detach(),)),
):
    checked = torch.library.opcheck(operator.default, at)
    check(set(checked.values()) == {"SUCCESS"}, str(checked))
traced = torch.compile(lambda x, k: 2.0 * m.energy(x, k) + m.series(k, 3).sum(), backend="aot_eager", fullgraph=True)
plain = lambda x, k: 2.0 * chain(x, k) + 1 + k + k * k
for ours, theirs in zip(torch.autograd.grad(traced(x, k), (x, k)), torch.autograd.grad(plain(x, k), (x, k))):
    check(close(ours, theirs))

# Contiguous tensors are not copied, nor are results of shapes that were seen before.
copies = []
m._array, convert = (lambda *given: copies.append(given) or convert(*given)), m._array
m._copied, copy = (lambda *given: copies.append(given) or copy(*given)), m._copied
for _ in range(2):
    copies.clear()
    m.two_results(w, v)
    torch.autograd.grad(m.energy(x, k), (x, k))
check(not copies, str(copies))
m.two_results(transposed.t(), v)
check(len(copies) == 1)  # of what is not contiguous
m._array, m._copied = convert, copy

# what fails
raises(TypeError, "energy: expected 2 arguments, got 1", m._c_energy, x)
raises(ValueError, "energy: x: expected shape (?), got (3, 4)", m.energy, w, k)
raises(TypeError, "element: i: expected an integer, got float", m.element, x, 1.5)
raises(TypeError, "energy: stiffness: expected a tensor or a number, got NoneType", m.energy, x, None)
raises(TypeError, "energy: x: expected numbers of type float64, got torch.complex128", m.energy, x + 0j, k)
try:
    m.element(x, 17)
    check(False)
except m.Error as e:
    check(str(e).startswith("index 17 is outside 0..16"), str(e))
third = torch.autograd.grad(torch.autograd.grad(m.wave_(a, b), a, create_graph=True)[0], a, create_graph=True)[0]
raises(m.Error, "wave_: it has derivatives to order 2, not beyond", torch.autograd.grad, third, a)
check("The energy of a chain of springs." in m.energy.__doc__ and "Differentiable by reverse mode, twice." in m.energy.__doc__)
check("Not differentiable." in m.positive.__doc__)


# Beside PyTorch's own operations for the same function, in one run: the least of several repetitions.
def least(f):
    f()
    times = []
    for _ in range(10):
        start = time.perf_counter()
        for _ in range(50):
            f()
        times.append((time.perf_counter() - start) / 50)
    return min(times) * 1e6


for n in (10, 100_000):
    x = torch.randn(n, dtype=f64, requires_grad=True)
    ours, theirs = (least(lambda: f(x, k)) for f in (m.energy, chain))
    our_gradient, their_gradient = (least(lambda: torch.autograd.grad(f(x, k), x)) for f in (m.energy, chain))
    print(f"n = {n}: value {ours:.1f} us (PyTorch {theirs:.1f}), value and gradient {our_gradient:.1f} us (PyTorch {their_gradient:.1f})")
report()
