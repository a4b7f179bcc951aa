#!/usr/bin/env python3
"""The gradients of `bench kernels` by Enzyme: milliseconds of each, as JSON on standard output.

Usage: kernels_enzyme.py DIRECTORY, which `bench kernels --arguments DIRECTORY` has written. Only programs that are C++
templates (tools/bench/programs) are run. Values and gradients are compared with those that were written. A call goes
through JAX, whose own time, that of an empty program of the same arguments, is taken off. Each kernel is compiled with
each of WAYS, and the fastest right one counts.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from enzyme_ad.jax import cpp_call

jax.config.update("jax_enable_x64", True)


def processor():
    """The level of x86-64 that this processor has, as a name for -target-cpu; empty for other processors."""
    file = pathlib.Path("/proc/cpuinfo")
    flags = set(file.read_text().split()) if file.exists() else set()
    levels = {"x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, "x86-64-v3": {"avx2", "fma", "bmi2"}}
    return next((name for name, needed in levels.items() if needed <= flags), "")


BENCH = pathlib.Path(__file__).resolve().parents[1]
HEADERS = ["types.hpp", "linear.hpp", "dynamic.hpp", "data.hpp"]
# What is passed are the options of clang -cc1: there is no -march=native.
OPTIMISED = ("-O3", *(("-target-cpu", processor()) if processor() else ()))
LANES = (*OPTIMISED, "-vectorize-loops", "-vectorize-slp")
WAYS = [(), OPTIMISED, LANES, (*LANES, "-ffast-math")]
# As in reference/programs.cpp, but for arrays: operator new is not found in what Enzyme compiles.
PLAIN = r"""
#include <cstdlib>
/// Symbols of operator new are not found there.
struct Array {
  double* data;
  explicit Array(std::int64_t n) : data(static_cast<double*>(std::calloc(static_cast<std::size_t>(n) + 1, sizeof(double)))) {}
  Array(const double* from, std::int64_t n) : Array(n) { for (std::int64_t i = 0; i < n; ++i) data[i] = from[i]; }
  Array(const Array&) = delete;
  ~Array() { std::free(data); }
  double& operator[](std::int64_t i) const { return data[i]; }
};
struct Plain {
  using Number = double;
  using Index = std::int64_t;
  using Input = const double*;
  using Indices = const std::int64_t*;
  using Array = ::Array;
  static Array zeros(Index n) { return Array(n); }
  static Array copy(Input a, Index n) { return Array(a, n); }
  static double number(Index i) { return static_cast<double>(i); }
  static Index whole(double x) { return static_cast<Index>(x); }
  static void rotate(Array& a, Array& b, Array& c) {
    std::swap(a.data, b.data);
    std::swap(b.data, c.data);
  }
};
"""


def source_of(header):
    lines = (BENCH / "programs" / header).read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith(('#include "', "#pragma")))


def compiled(name, description, arrays, way):
    """The program as a function of its arrays, compiled with the options `way`."""
    sizes = ", ".join(f"std::size_t N{i}" for i in range(len(arrays)))
    parameters, arguments = [], []
    for line in description:
        kind, number = line.split()
        if kind == "constant":
            arguments.append(number)
            continue
        i = len(parameters)
        parameters.append(f"const enzyme::tensor<{'double' if kind == 'f64' else 'int64_t'}, N{i}>& x{i}")
        arguments.append(f"&x{i}[0]")
    includes = "".join(f"#include <{h}>\n" for h in ("algorithm", "cmath", "cstdint", "utility"))
    text = includes + "\n".join(map(source_of, HEADERS)) + PLAIN + (
        f"template <{sizes}> void f(enzyme::tensor<double, 1>& out, {', '.join(parameters)}) {{\n"
        f"  out[0] = lantern::bench::programs::{name}<Plain>({', '.join(arguments)});\n}}\n")
    resources = subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True, check=True).stdout
    shape = [jax.core.ShapedArray((1,), jnp.float64)]
    options = (f"-isystem{resources.strip()}/include", *way)
    return lambda *x: cpp_call(*x, out_shapes=shape, source=text, fn="f", argv=options)[0][0]


def fastest(f, arrays):
    """The least milliseconds of many calls."""
    jax.block_until_ready(f(*arrays))
    times, begin = [], time.perf_counter()
    while len(times) < 5 or (len(times) < 200 and time.perf_counter() - begin < 1):
        start = time.perf_counter()
        jax.block_until_ready(f(*arrays))
        times.append(1e3 * (time.perf_counter() - start))
    return min(times)


def measure(name, directory):
    description = (directory / f"{name}.txt").read_text().splitlines()
    if any(line.startswith("i64") for line in description):
        return {"error": "Enzyme's module for JAX takes no arrays of integers"}
    data = (directory / f"{name}.bin").read_bytes()
    arrays, active, at = {}, [], 0
    kinds = [(i, *line.split()) for i, line in enumerate(l for l in description if not l.startswith("constant"))]
    for wanted, kind_type in (("f64", np.float64), ("i64", np.int64)):
        for i, kind, size in kinds:
            if kind != wanted:
                continue
            arrays[i] = np.frombuffer(data, kind_type, int(size), at)
            at += arrays[i].nbytes
            if kind == "f64":
                active.append(i)
    inputs = [arrays[i] for i in range(len(arrays))]
    value = np.frombuffer(data, np.float64, 1, at)[0]
    at += 8
    expected = []
    for i in active:
        expected.append(np.frombuffer(data, np.float64, arrays[i].size, at))
        at += expected[-1].nbytes
    empty = fastest(jax.jit(lambda *x: x[active[0]][:1]), inputs)
    results = [measure_way(compiled(name, description, inputs, way), inputs, tuple(active), value, expected) for way in WAYS]
    times = [result["ms"] for result in results if "ms" in result]
    return {"ms": max(min(times) - empty, 1e-6)} if times else results[0]


def measure_way(f, inputs, active, value, expected):
    """Milliseconds of the gradient of `f` by its arguments `active`, or what is wrong with it."""
    try:
        got = float(jax.jit(f)(*inputs))
        if abs(got - value) > 1e-9 * abs(value):
            return {"error": f"expected the value {value:.12g}, got {got:.12g}"}
        gradient = jax.jit(jax.grad(f, argnums=active))
        for ours, theirs in zip(expected, gradient(*inputs)):
            scale = np.max(np.abs(ours)) + 1e-300
            error = np.max(np.abs(ours - np.asarray(theirs))) / scale
            if not error < 1e-6:
                return {"error": f"a gradient that differs by {error:.2g} of its largest element"}
        return {"ms": fastest(gradient, inputs)}
    except Exception as e:  # whatever Enzyme says of a program that it cannot differentiate
        return {"error": "Enzyme: " + str(e).splitlines()[0][:90]}


def main():
    directory = pathlib.Path(sys.argv[1])
    programs = "".join((BENCH / "programs" / h).read_text() for h in HEADERS)
    results = {}
    for name in re.findall(r"^Number<T> (\w+)\(", programs, re.M):
        if not (directory / f"{name}.txt").exists():
            continue
        results[name] = measure(name, directory)
    json.dump(results, sys.stdout)


main()
