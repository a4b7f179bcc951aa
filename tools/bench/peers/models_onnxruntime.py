#!/usr/bin/env python3
"""ONNX models in Lantern and in onnxruntime, in turn, one thread each: the least milliseconds of the processor as JSON.

Usage: models_onnxruntime.py MODEL.onnx... [--runs N] [--rounds N]. Arguments are random numbers; sizes that a model leaves
open are 1. "distance" is how far the results are from each other, "largest" how large they are: where that is 1 and the
distance is 0, a softmax may have hidden what differs. A model whose weights are made by ConstantOfShape, as light ones
are, gets random ones, which take as long. Needs onnx and onnxruntime from PyPI, and build/lantern-onnx.
"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile
import time

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper

LANTERN = pathlib.Path(__file__).resolve().parents[3] / "build/lantern-onnx"


def with_weights(model):
    """Random weights in place of those that ConstantOfShape makes of shapes among the initialisers."""
    graph, rng = model.graph, numpy.random.default_rng(1)
    shapes = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    made = [n for n in graph.node if n.op_type == "ConstantOfShape" and n.input[0] in shapes]
    users = {name: (n.op_type, k) for n in graph.node for k, name in enumerate(n.input)}
    for node in made:
        shape = tuple(int(size) for size in shapes[node.input[0]])
        user = users.get(node.output[0], ("", 0))
        if user[0] in ("Conv", "Gemm", "MatMul") and user[1] == 1:
            weights = rng.standard_normal(shape) * numpy.sqrt(2 / max(1, int(numpy.prod(shape[1:]))))
        elif user[0] == "BatchNormalization" and user[1] in (1, 4):
            weights = 1 + 0.2 * rng.random(shape)
        else:
            weights = 0.1 * rng.standard_normal(shape)
        graph.initializer.append(numpy_helper.from_array(weights.astype(numpy.float32), node.output[0]))
        graph.node.remove(node)
    used = {name for n in graph.node for name in n.input}
    for unused in [i for i in graph.initializer if i.name not in used]:
        graph.initializer.remove(unused)
    for unused in [i for i in graph.input if i.name not in used]:
        graph.input.remove(unused)
    return model


def session_of(file):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def arguments_of(session):
    rng = numpy.random.default_rng(1)
    kinds = {"tensor(float)": numpy.float32, "tensor(float16)": numpy.float16, "tensor(double)": numpy.float64}
    return {
        i.name: rng.standard_normal([n if isinstance(n, int) else 1 for n in i.shape]).astype(kinds[i.type])
        for i in session.get_inputs()
    }


def measured(name, runs, rounds):
    with tempfile.TemporaryDirectory() as folder:
        file, inputs, outputs = (f"{folder}/{part}" for part in ("model.onnx", "x.npz", "y.npz"))
        onnx.save(with_weights(onnx.load(name)), file)
        session = session_of(file)
        arguments = arguments_of(session)
        numpy.savez(inputs, **arguments)
        theirs, ours = [], []
        for _ in range(rounds):
            for _ in range(runs):
                start = time.process_time()
                results = session.run(None, arguments)
                theirs.append(1e3 * (time.process_time() - start))
            said = subprocess.run(
                [LANTERN, file, "--run", inputs, "-o", outputs, "--repeat", str(runs)],
                check=True, capture_output=True, text=True,
            ).stdout  # fmt: skip
            ours.append(float(re.search(r"([0-9.]+) ms of the processor", said).group(1)))
        got = numpy.load(outputs)
        pairs = [(got[o.name].astype(float), r.astype(float)) for o, r in zip(session.get_outputs(), results)]
    return {
        "model": pathlib.Path(name).name, "ms": min(ours), "onnxruntime_ms": min(theirs), "times": min(ours) / min(theirs),
        "distance": max(float(numpy.abs(a - b).max()) for a, b in pairs),
        "largest": max(float(numpy.abs(b).max()) for _, b in pairs),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", metavar="MODEL.onnx")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name in options.models:
        print(json.dumps(measured(name, options.runs, options.rounds)), flush=True)


if __name__ == "__main__":
    main()
