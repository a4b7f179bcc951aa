#!/usr/bin/env python3
"""What a call from Python costs, in Lantern's module and in CasADi, in turn: microseconds as JSON.

Usage: calls_casadi.py [--quick]. The function has ten numbers and takes nanoseconds, so that the call is what is measured: its value,
and its value with the gradient, from tests/python/numbers.cpp by lanternc --emit=python. CasADi runs it in its virtual machine
("interpreted") and as C code that it has generated and the C compiler has compiled ("compiled"). "c" is the same call by ctypes
without a check of its result: what no module can be below. Least of several rounds. Needs casadi from PyPI and build/lanternc.
"""
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import casadi

ROOT = pathlib.Path(__file__).resolve().parents[3]
quick = "--quick" in sys.argv
point = [0.3, 1.7, -0.4, 0.9, 2.0, 0.5, -1.1, 0.2, 0.7, 1.3]


def measured(calls):
    """Microseconds of each call, the least of rounds in which each has its turn."""
    repetitions, rounds = (200, 5) if quick else (2000, 30)
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repetitions):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / repetitions * 1e6)
    return {name: round(t, 3) for name, t in best.items()}


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([ROOT / "build/lanternc", ROOT / "tests/python/numbers.cpp", "--emit=python", "-o", f"{folder}/ten_numbers.py"], check=True)
        sys.path.insert(0, folder)
        module = importlib.import_module("ten_numbers")

        x = [casadi.SX.sym(name) for name in "abcdefghij"]
        a, b, c, d, e, f, g, h, i, j = x
        y = a * b + casadi.sin(c * d) + e * f * g + casadi.exp(-h) * i + j * j * a
        functions = {"value": casadi.Function("value", x, [y]),
                     "gradient": casadi.Function("gradient", x, [y, *(casadi.jacobian(y, v) for v in x)])}
        os.chdir(folder)
        generator = casadi.CodeGenerator("ten_numbers_casadi.c")
        for function in functions.values():
            generator.add(function)
        generator.generate()
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", "ten_numbers_casadi.c", "-o", "ten_numbers_casadi.so", "-lm"], check=True)
        compiled = {name: casadi.external(name, "./ten_numbers_casadi.so") for name in functions}

        ours = module.ten_gradient(*point)
        for theirs in (functions, compiled):
            values = [float(v) for v in theirs["gradient"](*point)]
            if max(abs(v - w) for v, w in zip(values, ours)) > 1e-12:
                sys.exit("CasADi's derivatives are others")
        results = module._c_ten_results()
        plain, byref = module._c_ten, module._byref
        times = measured({
            "c": lambda: plain(*point, byref(results, 8), byref(results)),
            "lantern value": lambda: module.ten(*point),
            "lantern value and gradient": lambda: module.ten_gradient(*point),
            "casadi value, interpreted": lambda: functions["value"](*point),
            "casadi value, compiled": lambda: compiled["value"](*point),
            "casadi value and gradient, interpreted": lambda: functions["gradient"](*point),
            "casadi value and gradient, compiled": lambda: compiled["gradient"](*point),
        })
    json.dump({"system": "casadi " + casadi.__version__, "microseconds": times}, sys.stdout, indent=1)
    print()


main()
