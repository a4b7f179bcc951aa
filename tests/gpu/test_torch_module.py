"""Calls the module for a GPU that lanternc has made of module_functions.cpp inside of PyTorch. Its code runs on the launch emulator, which
works on tensors of the processor; so what asks PyTorch for a GPU is replaced.

    python3 test_torch_module.py DIRECTORY   (of the module torch_module.py)
"""
import contextlib
import ctypes
import inspect
import sys

import torch

from checks import check, raises, report

sys.path.insert(0, sys.argv[1])
import torch_module as m

torch.manual_seed(1)
f64 = torch.float64


def number(x):
    return torch.tensor(x, dtype=f64, requires_grad=True)


x, k = torch.randn(17, dtype=f64, requires_grad=True), number(1.3)
w, v = torch.randn(3, 4, dtype=f64, requires_grad=True), torch.randn(4, 5, dtype=f64, requires_grad=True)
rows = torch.tensor([2, 0, 2])
names, series_names = ([*inspect.signature(f).parameters] for f in (m.energy, m.series))

raises(TypeError, f"energy: {names[0]}: expected a tensor on a GPU, got one on cpu", m.energy, x, k)
raises(TypeError, "two_results: w: expected a tensor on a GPU, got one on cpu", m.two_results, w, v)
m._device_type, m._stream, m._current_device, m._on_device = "cpu", lambda device: 0, lambda: torch.device("cpu"), contextlib.nullcontext
count = m._library.lantern_emulator_count
count.restype = ctypes.c_int64


def chain(x, k):
    d = x[1:] - x[:-1]
    return k * torch.sum(d * d) + 0.1 * torch.sum(torch.cos(x[1:]))


def layer(w, x):
    return torch.tanh(w @ x), torch.sum(w)


def squares(table, at):
    return table[at] ** 2


def close(a, b):
    return torch.allclose(torch.as_tensor(a, dtype=f64), torch.as_tensor(b, dtype=f64), rtol=1e-12, atol=1e-12)


# values; numbers among the results are tensors too
for _ in range(2):
    check(close(m.energy(x, k), chain(x, k)) and m.energy(x, k).shape == () and close(m.energy(x, 1.3), chain(x, k)))
    for ours, theirs in zip(m.two_results(w, v), layer(w, v)):
        check(ours.shape == theirs.shape and close(ours, theirs))
    check(close(m.series(2.0, 5), [1, 2, 4, 8, 16]) and m.series(2.0, 0).shape == (0,))
    check(close(m.squared_rows(w, rows), squares(w, rows)))
check(m.energy(torch.zeros(0, dtype=f64), 1.0) == 0.0)
check(close(m.energy(x.float(), 1), chain(x.float().double(), 1.0)))

# derivatives
for ours, theirs in zip(torch.autograd.grad(m.energy(x, k), (x, k)), torch.autograd.grad(chain(x, k), (x, k))):
    check(close(ours, theirs))
ours, theirs = (torch.autograd.functional.hessian(lambda x: f(x, k), x) for f in (m.energy, chain))
check(close(ours, theirs))
for f, at in (
    (m.energy, (x, k)),
    (m.two_results, (w, v)),
    (lambda v: m.two_results(w, v.t())[0], (torch.randn(5, 4, dtype=f64, requires_grad=True),)),  # not contiguous
    (lambda w: m.squared_rows(w, rows), (w,)),
    (lambda x: m.series(x, 4), (k,)),
    (lambda x: torch.log(m.energy(torch.exp(x), k)), (x,)),
):
    check(torch.autograd.gradcheck(f, at) and torch.autograd.gradgradcheck(f, at))
batch = torch.randn(5, 17, dtype=f64)
check(close(torch.vmap(m.energy, (0, None))(batch, k), torch.vmap(chain, (0, None))(batch, k)))
traced = torch.compile(lambda x, k: 2.0 * m.energy(x, k) + m.series(k, 3).sum(), backend="aot_eager", fullgraph=True)
plain = lambda x, k: 2.0 * chain(x, k) + 1 + k + k * k
for ours, theirs in zip(torch.autograd.grad(traced(x, k), (x, k)), torch.autograd.grad(plain(x, k), (x, k))):
    check(close(ours, theirs))

# No tensor is copied, and nothing allocated, from the second call on: the result, a number, passes through the host. The counts are
# those of the first function.
large = torch.randn(1000, dtype=f64)
m.energy(large, k)
before = [count(what) for what in range(4)]
for _ in range(3):
    m.energy(large, k)
launches, waits, allocations, moved = (count(what) - b for what, b in zip(range(4), before))
check(launches > 0 and allocations == 0 and moved == 3 * 8, str((launches, waits, allocations, moved)))

# what fails
raises(TypeError, "energy: expected 2 arguments, got 1", m._c_energy, x)
raises(ValueError, f"energy: {names[0]}: expected shape (?), got (3, 4)", m.energy, w, k)
raises(TypeError, f"energy: {names[0]}: expected numbers of type float64, got torch.complex128", m.energy, x + 0j, k)
raises(TypeError, f"energy: {names[1]}: expected a tensor or a number, got NoneType", m.energy, x, None)
raises(TypeError, f"series: {series_names[1]}: expected an integer, got float", m.series, k, 1.5)
for wrong, said in ((torch.tensor([0, 3]), "3 is outside 0..2"), (torch.tensor([-1]), "-1 is outside 0..2")):
    try:
        m.squared_rows(w, wrong)
        check(False)
    except m.Error as e:
        check(said in str(e), str(e))
    check(close(m.squared_rows(w, rows), squares(w, rows)))  # the next call is not concerned
third = torch.autograd.grad(torch.autograd.grad(m.energy(x, k), k, create_graph=True)[0], x, create_graph=True)[0]
raises(m.Error, "energy: it has derivatives to order 2, not beyond", torch.autograd.grad, third.sum(), x)
check("The energy of a chain of springs." in m.energy.__doc__ and "Differentiable by reverse mode, twice." in m.energy.__doc__)
report()
