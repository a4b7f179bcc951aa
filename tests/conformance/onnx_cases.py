#!/usr/bin/env python3
"""Writes the node cases of the installed onnx package, as onnx_conformance reads them.

    python3 tests/conformance/onnx_cases.py FOLDER [--only TEXT]

Each case is a folder with model.onnx and test_data_set_0/{input,output}_I.pb. The package (PyPI: onnx) makes the
cases; a seed makes them the same each time.
"""
import argparse
import pathlib
import random
import warnings

import numpy
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case import node


def message(value, info):
    """The protobuf message of an input or output, of the kind that the model declares."""
    if isinstance(value, TensorProto):
        return value
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    return numpy_helper.from_array(numpy.asarray(value), info.name)


def cases():
    """All cases, one after another."""
    random.seed(0)
    numpy.random.seed(0)
    return node.collect_testcases(None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    count = 0
    for case in cases():
        if options.only not in case.name:
            continue
        folder = options.folder / case.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(case.model.SerializeToString())
        for number, (inputs, outputs) in enumerate(case.data_sets):
            data = folder / f"test_data_set_{number}"
            data.mkdir(exist_ok=True)
            graph = case.model.graph
            for prefix, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
                for i, (value, info) in enumerate(zip(values, infos)):
                    (data / f"{prefix}_{i}.pb").write_bytes(message(value, info).SerializeToString())
        count += 1
    print(f"onnx {onnx.__version__}: {count} cases in {options.folder}")


if __name__ == "__main__":
    main()
