"""Runs every model of a folder by onnxruntime, after onnx.checker has seen it: NAME.onnx on the arrays in0, in1, ... of
NAME.npz, which has what is expected as out0, out1, .... Prints a line for each that differs; the exit status says whether
there was one."""

import glob
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort

ort.set_default_logger_severity(3)
failed = 0
files = sorted(glob.glob(os.path.join(sys.argv[1], "*.onnx")))
for path in files:
    name = os.path.basename(path)[:-5]
    try:
        onnx.checker.check_model(onnx.load(path), full_check=True)
        data = np.load(path[:-5] + ".npz")
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        inputs = {i.name: data[f"in{k}"] for k, i in enumerate(session.get_inputs())}
        outputs = session.run(None, inputs)
        tolerance = float(data["tolerance"])
        for k, got in enumerate(outputs):
            want = data[f"out{k}"]
            assert got.dtype == want.dtype and got.shape == want.shape, f"out{k}: {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
            scale = max(1.0, float(np.max(np.abs(want[np.isfinite(want)]), initial=0.0))) if want.dtype.kind == "f" else 1.0
            close = np.isclose(got, want, rtol=0, atol=tolerance * scale, equal_nan=True) if want.dtype.kind == "f" else got == want
            assert np.all(close), f"out{k}: differs by {np.max(np.abs(got.astype(float) - want.astype(float)))}"
    except Exception as problem:  # noqa: BLE001: whatever it is belongs to this model
        failed += 1
        print(f"{name}: {' '.join(str(problem).split())[:600]}")
print(f"{len(files) - failed} of {len(files)} models agree")
sys.exit(failed > 0)
