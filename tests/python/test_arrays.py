"""Calls the module that lanternc has made of arrays.cpp: values against NumPy, gradients against differences, failures as
exceptions, threads, memory, the time of a call.

    python3 test_arrays.py DIRECTORY   (of the module arrays_module.py)
"""
import inspect
import sys
import threading
import time

try:
    import numpy as np
except ImportError:
    print("skipped: there is no NumPy for", sys.executable)
    sys.exit(0)

from checks import check, raises, report

sys.path.insert(0, sys.argv[1])
import arrays_module as m


def differences(f, x, step=1e-6):
    """The gradient by central differences."""
    x = np.asarray(x, float)
    g = np.empty(x.shape)
    for i in np.ndindex(x.shape):
        up, low = x.copy(), x.copy()
        up[i] += step
        low[i] -= step
        g[i] = (f(up) - f(low)) / (2 * step)
    return g


def arrays():
    x = np.linspace(-1, 2, 57)
    value, dc, dx = m.squares_gradient(2.0, x)
    for again in range(2):  # the second call knows the shape of the result
        check(abs(value - 2 * (x @ x)) < 1e-12 and abs(dc - x @ x) < 1e-12)
        check(np.allclose(dx, 4 * x, rtol=1e-15))
        value, dc, dx = m.squares_gradient(2.0, x)
    check(np.allclose(dx, differences(lambda x: m.squares_gradient(2.0, x)[0], x), atol=1e-6))
    first = dx.copy()
    m.squares_gradient(3.0, 2 * x)
    check(np.array_equal(first, dx), "a result is kept while others are computed")
    # whatever can be seen as an array
    strided = np.linspace(-1, 2, 113)[::2]
    check(not strided.flags.c_contiguous and np.array_equal(m.squares_gradient(2.0, strided)[2], 4 * strided))
    check(np.array_equal(m.squares_gradient(1.0, [1, 2, 3])[2], [2, 4, 6]))
    check(np.array_equal(m.squares_gradient(1.0, np.float32([1, 2, 3]))[2], [2, 4, 6]))
    check(np.array_equal(m.squares_gradient(1.0, memoryview(x))[2], 2 * x))
    check(np.array_equal(m.squares_gradient(1.0, x.astype(">f8"))[2], 2 * x))
    frozen = x.copy()
    frozen.flags.writeable = False
    check(np.array_equal(m.squares_gradient(1.0, frozen)[2], 2 * x))
    empty = m.squares_gradient(1.0, [])
    check(empty[0] == 0 and empty[2].shape == (0,))
    # into the caller's memory
    mine = np.full(57, np.nan)
    got = m.squares_gradient(2.0, x, out=(None, None, mine))
    check(got[2] is mine and np.array_equal(mine, 4 * x))
    raises(m.Error, "result 3: expected size 57 in dimension 0, got 5", m.squares_gradient, 2.0, x,
           out=(None, None, np.empty(5)))
    raises(ValueError, "squares_gradient: out: expected 3 elements, got 1", m.squares_gradient, 2.0, x, out=(mine,))
    raises(TypeError, "squares_gradient: out[2]: expected an array of 1 dimension and type float64",
           m.squares_gradient, 2.0, x, out=(None, None, np.empty(57, np.float32)))
    raises(ValueError, "squares_gradient: out[2]: expected an array in C order that can be written",
           m.squares_gradient, 2.0, x, out=(None, None, frozen))
    raises(TypeError, "squares_gradient: x: expected numbers of type float64, got complex128", m.squares_gradient, 1.0, x * 1j)
    raises(ValueError, "squares_gradient: x: expected 1 dimension, got 2", m.squares_gradient, 1.0, np.eye(2))
    # a result in an argument's memory, and two results in one memory
    check(np.array_equal(m.itself(x), x) and not np.shares_memory(m.itself(x), x))
    check(m.itself(x, out=x) is x)
    for again in range(2):
        a, b = m.both(x)
        check(np.array_equal(a, x + 1) and np.array_equal(b, x + 1) and not np.shares_memory(a, b))
    a, b = m.both(x.copy(), out=(None, mine))
    check(np.array_equal(a, x + 1) and b is mine and np.array_equal(mine, x + 1))
    there = x.copy()
    check(m.both(there, out=(there, None))[0] is there and np.array_equal(there, x + 1), "out may be an argument")
    # matrices; sizes that the arguments' shapes do not give
    a, b = np.random.default_rng(1).normal(size=(3, 4)), np.random.default_rng(2).normal(size=(4, 5))
    for again in range(2):
        check(np.allclose(m.multiply(a, b), a @ b) and np.allclose(m.multiply(b.T, a.T), b.T @ a.T))
    check(np.allclose(m.times(a, b), a @ b), "not the C library's")
    check(np.array_equal(m.gamma(4, 0.5), [0, 0.5, 1, 1.5]) and m.gamma(0, 1.0).shape == (0,))
    for n in (1, 3, 2, 3, 0, 3):
        check(np.array_equal(m.ones_of(np.r_[np.ones(n), np.zeros(3 - n)]), np.ones(n)))
    check(m.half(np.float32([1, 3])).dtype == np.float32 and np.array_equal(m.half(np.float32([1, 3])), [0.5, 1.5]))
    check(np.array_equal(m.doubled(np.ones((2, 3))), np.full((2, 3), 2)))
    # second derivatives
    check(abs(m.norm_value(x) - np.linalg.norm(x)) < 1e-12)
    check(np.allclose(m.norm_gradient(x), differences(m.norm_value, x), atol=1e-8))
    h, n = m.norm_hessian(x), np.linalg.norm(x)
    check(np.allclose(h, np.eye(57) / n - np.outer(x, x) / n**3, atol=1e-12))


def trees():
    # 2 * (5 * x x) x: a root whose left child is a leaf node
    tree = (np.array([1, -1]), np.array([-1, -1]), np.array([2.0, 5.0]), 0)
    value, slope = m.tree_gradient(3.0, tree)
    check(value == 270.0 and slope == 270.0)
    check(m.tree_gradient(3.0, ([], [], [], -1)) == (3.0, 1.0))
    text = ("tree_gradient: tree: expected (left, right, values, root): the children of each node, -1 where there is none, "
            "the values of each node, and the number of the root")
    raises(TypeError, text, m.tree_gradient, 3.0, 5)
    raises(ValueError, "tree_gradient: tree: expected numbers of nodes from -1 to 1", m.tree_gradient, 3.0,
           ([7, -1], [-1, -1], [2.0, 5.0], 0))
    raises(ValueError, "tree_gradient: tree: expected each node before its children, or each after them", m.tree_gradient,
           3.0, ([1, 0], [-1, -1], [2.0, 5.0], 0))
    raises(ValueError, "tree_gradient: tree: expected arrays of one length", m.tree_gradient, 3.0, ([-1], [-1], [2.0, 5.0], 0))


def failures():
    x = np.arange(3.0)
    check(m.lambda_(x, 2) == 2.0)
    try:
        m.lambda_(x, 3)
        check(False)
    except m.Error as e:
        check(str(e).startswith("index 3 is outside 0..2 (") and "arrays.cpp:" in str(e), str(e))
    check(m.lambda_(x, 1) == 1.0, "after a failure")
    try:
        m.multiply(np.ones((2, 3)), np.ones((2, 3)))
        check(False)
    except m.Error as e:
        check("[2, 3] and [2, 3] do not fit" in str(e), str(e))
    raises(m.Error, "argument m: expected size 3 in dimension 1, got 2", m.doubled, np.ones((2, 2)))
    try:
        m.gamma(-1, 1.0)
        check(False)
    except m.Error as e:
        check("a tensor of negative size" in str(e), str(e))
    raises(m.Error, "out of memory", m.gamma, 1 << 60, 1.0)


def texts():
    check("lambda_" in m.__all__ and "gamma" in m.__all__)
    check("x : float64 array of shape (?,)" in m.squares_gradient.__doc__)
    check("m : float64 array of shape (2, 3)" in m.doubled.__doc__)
    check(str(inspect.signature(m.squares_gradient)) ==
          "(c: 'float', x: 'ArrayLike', *, out: 'Any' = None) -> 'tuple[float, float, NDArray[np.float64]]'")


def threads():
    """Several threads at once get their own results, failures among them; the interpreter's lock is free meanwhile."""
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for k in range(200):
            x = rng.normal(size=int(rng.integers(1, 2000)))
            try:
                if not np.allclose(m.squares_gradient(0.5, x)[2], x):
                    wrong.append((seed, k))
                m.lambda_(x, len(x))
                wrong.append((seed, k))
            except m.Error as e:
                if not str(e).startswith(f"index {len(x)} is outside 0..{len(x) - 1}"):
                    wrong.append(str(e))

    all_threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in all_threads:
        t.start()
    for t in all_threads:
        t.join()
    check(not wrong, wrong[:3])
    # While one thread computes, this one counts.
    n = 700
    a = np.ones((n, n))
    m.multiply(a, a)
    done, counted = threading.Event(), 0

    def long_call():
        for _ in range(5):
            m.multiply(a, a)
        done.set()

    thread = threading.Thread(target=long_call)
    thread.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.001)
    thread.join()
    check(counted > 5, counted)


def memory():
    """Calls keep nothing, threads that have ended neither."""
    import resource

    x = np.ones(100_000)
    for _ in range(3):
        m.squares_gradient(1.0, x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        m.squares_gradient(1.0, x)
        try:
            m.lambda_(x, -1)
        except m.Error:
            pass
    # threads give their memory back: each of these has an array of 0.8 MB
    for _ in range(100):
        thread = threading.Thread(target=m.squares_gradient, args=(1.0, x))
        thread.start()
        thread.join()
    check(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000)


def time_of_a_call():
    x, out = np.ones(10), (None, None, np.empty(10))

    def least(f):
        times = []
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(2000):
                f()
            times.append((time.perf_counter() - start) / 2000)
        return min(times) * 1e6

    print(f"gradient of an array of ten: {least(lambda: m.squares_gradient(1.0, x)):.2f} us, "
          f"with out= {least(lambda: m.squares_gradient(1.0, x, out=out)):.2f} us")


for test in (arrays, trees, failures, texts, threads, memory):
    test()
time_of_a_call()
report()
