"""Calls the module that lanternc has made of numbers.cpp, without NumPy: values, gradients against differences, failures
as exceptions, the time of a call.

    python3 test_numbers.py DIRECTORY   (of the module numbers_module.py)
"""
import ctypes
import inspect
import math
import subprocess
import sys
import threading
import time

from checks import check, raises, report

sys.path.insert(0, sys.argv[1])
import numbers_module as m

point = [0.3, 1.7, -0.4, 0.9, 2.0, 0.5, -1.1, 0.2, 0.7, 1.3]


def numbers():
    check(m.value(3.0) == 27.0)
    check(m.value(3) == 27.0)
    check(m.slope(3.0) == 27.0)
    check(m.curvature(3.0) == 18.0)
    a = point
    truth = a[0] * a[1] + math.sin(a[2] * a[3]) + a[4] * a[5] * a[6] + math.exp(-a[7]) * a[8] + a[9] ** 2 * a[0]
    check(abs(m.ten(*a) - truth) < 1e-14)
    value, *gradient = m.ten_gradient(*a)
    check(value == m.ten(*a))
    for k, slope in enumerate(gradient):
        up, low = a.copy(), a.copy()
        up[k] += 1e-6
        low[k] -= 1e-6
        check(abs(slope - (m.ten(*up) - m.ten(*low)) / 2e-6) < 1e-8)
    check(m.all_kinds(1.5, False, 4, 5, 0.5) == (2.5, True, 8, 6, 1.0))
    check(type(m.all_kinds(1.5, False, 4, 5, 0.5)[1]) is bool)
    raises(TypeError, "value: x: expected a number, got str", m.value, "3")
    raises(TypeError, "ten: c: expected a number, got NoneType", m.ten, 1, 2, None, 4, 5, 6, 7, 8, 9, 10)
    raises(TypeError, "all_kinds: i: expected an integer, got float", m.all_kinds, 1.0, True, 1.5, 2, 3.0)
    raises(OverflowError, "all_kinds: n: 4294967296 does not fit 32 bits", m.all_kinds, 1.0, True, 1, 2**32, 3.0)
    raises(OverflowError, f"all_kinds: i: {2**63} does not fit 64 bits", m.all_kinds, 1.0, True, 2**63, 2, 3.0)


def recursion():
    """A recursion that would leave the stack fails, here and in a thread."""
    check(m.recursion(1.0, 3) == 1 + 0.5 * (1 + 0.5 * (1 + 0.5)))

    def deep():
        try:
            m.recursion(1.0, 1 << 40)
            check(False)
        except m.Error as e:
            check(str(e).startswith("the recursion of 'recursion' does not end, or needs more stack than it may have"), str(e))
        check(m.recursion(1.0, 1) == 1.5)

    deep()
    thread = threading.Thread(target=deep)
    thread.start()
    thread.join()


def texts():
    check(m.__all__[-1] == "Error" and "ten_gradient" in m.__all__)
    check(m.value.__doc__.startswith('The cube of x.\n\n    A second "paragraph" with a \\ in it.\n\n    The compiled function is cube.'))
    check(m.slope.__doc__.startswith("The slope.\n\n    The compiled function is grad(cube)."))
    check(m.curvature.__doc__.startswith("the second derivative\n\n    The compiled function is grad(grad(cube))."))
    check("Ten numbers, weighted." in m.ten_gradient.__doc__)
    check("Deep in the stack." in m.recursion.__doc__)
    check(str(inspect.signature(m.value)) == "(x: 'float') -> 'float'")


def time_of_a_call():
    """Over a plain call by ctypes, for ten numbers: the least of several repetitions."""
    a = point
    plain = m._c_ten
    result, message = ctypes.c_double(), ctypes.c_char_p()
    r, e = ctypes.byref(result), ctypes.byref(message)

    def by_ctypes():
        for _ in range(2000):
            plain(*a, r, e)

    def by_module(f):
        def run():
            for _ in range(2000):
                f(*a)
        return run

    def least(f):
        times = []
        for _ in range(20):
            start = time.perf_counter()
            f()
            times.append((time.perf_counter() - start) / 2000)
        return min(times) * 1e6

    base, ten, gradient = least(by_ctypes), least(by_module(m.ten)), least(by_module(m.ten_gradient))
    print(f"a call with ten numbers: by ctypes alone {base:.2f} us, by the module {ten:.2f} us, of the gradient {gradient:.2f} us")


for test in (numbers, recursion, texts):
    test()
time_of_a_call()
check("numpy" not in sys.modules)
# As a program of its own: what is loaded is complete.
program = "import sys; sys.path.insert(0, sys.argv[1]); import numbers_module as m; assert m.value(2.0) == 8.0"
check(subprocess.run([sys.executable, "-c", program, sys.argv[1]]).returncode == 0)
report()
