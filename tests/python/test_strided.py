"""Calls functions of --emit=shared --strided with views of NumPy arrays, by ctypes, against NumPy.

    python3 test_strided.py LANTERNC STRIDED_CPP
"""
import ctypes
import os
import subprocess
import sys
import tempfile

import numpy as np

from checks import check, report


def strided(array):
    """The structure of a view: its elements, sizes and strides, counted in elements."""
    n = max(array.ndim, 1)

    class View(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("dim", ctypes.c_int64 * n), ("stride", ctypes.c_int64 * n)]

    return View(array.ctypes.data, (ctypes.c_int64 * n)(*array.shape), (ctypes.c_int64 * n)(*(s // array.itemsize for s in array.strides)))


with tempfile.TemporaryDirectory() as folder:
    library = os.path.join(folder, "strided.so")
    subprocess.run([sys.argv[1], sys.argv[2], "--emit=shared", "--strided", "--prefix=my_", "-o", library], check=True)
    c = ctypes.CDLL(library)
    rng = np.random.default_rng(3)
    value, message = ctypes.c_double(), ctypes.c_char_p()
    for trial in range(200):
        n = int(rng.integers(0, 7))
        big = rng.normal(size=(3 * n + 4, 2 * n + 3))
        views = [big[:n, :n], big[2:2 + 3 * n:3, 1:1 + 2 * n:2], big[:n, :n].T, big[n - 1::-1, :n] if n else big[:0, :0], big[:n, :n][:, ::-1]]
        m, x = views[trial % len(views)], rng.normal(size=(3 * n + 1, 2))[: 3 * n : 3, trial % 2]
        dm_all, dx_all = np.full((2 * n + 1, 3 * n + 1), 7.0), np.full(2 * n + 1, 7.0)
        dm, dx = (dm_all[: 2 * n : 2, 1 : 1 + 3 * n : 3], dx_all[1 : 2 * n + 1 : 2]) if trial % 3 else (np.empty((n, n)), np.empty(n))
        status = c.my_weighted_gradient_strided(strided(m), strided(x), ctypes.byref(value), ctypes.byref(strided(dm)), ctypes.byref(strided(dx)),
                                                ctypes.byref(message))
        check(status == 0, message.value)
        check(np.isclose(value.value, x @ m @ x) and np.allclose(dm, np.outer(x, x)) and np.allclose(dx, (m + m.T) @ x))
        check((dm_all == 7).sum() == dm_all.size - (dm.size if trial % 3 else 0))  # nothing between the elements is written to
    small = np.empty((2, 2))
    check(c.my_times_strided(strided(np.ones((2, 3)).T), ctypes.c_double(2), ctypes.byref(strided(small.T)), ctypes.byref(message)) == 2)
    check(b"result 1" in message.value, message.value)
report()
