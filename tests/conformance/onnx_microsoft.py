"""Operators of onnxruntime's own domain, com.microsoft: random operands by lantern-onnx and by onnxruntime.

    onnx_microsoft.py LANTERN_ONNX

Prints a line for each case that differs; the exit status says whether there was one, 77 that there is no onnxruntime."""

import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto as T
    from onnx import helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

rng = np.random.default_rng(7)
f32 = np.float32
kinds = {np.dtype("float32"): T.FLOAT, np.dtype("int64"): T.INT64, np.dtype("int32"): T.INT32, np.dtype("uint8"): T.UINT8,
         np.dtype("int8"): T.INT8, np.dtype("bool"): T.BOOL}


def normal(*shape):
    return rng.normal(size=shape).astype(f32)


def bytes_of(*shape):
    return rng.integers(0, 256, shape).astype(np.uint8)


def signed(*shape):
    return rng.integers(-128, 128, shape).astype(np.int8)


def scalar(x, kind=f32):
    return np.array(x, kind)


# name, operands (None: left out; in a tuple: a constant of the model), attributes, number of results to compare, tolerance
cases = []


def case(op, operands, results=1, tolerance=1e-5, **attributes):
    cases.append((op, operands, attributes, results, tolerance))


s, z = scalar(0.03), scalar(120, np.uint8)
for shapes in (((3, 4), (3, 4)), ((2, 3, 4), (4,)), ((2, 1, 5), (3, 1))):
    for op in ("QLinearAdd", "QLinearMul"):
        case(op, [bytes_of(*shapes[0]), (s,), (z,), bytes_of(*shapes[1]), (scalar(0.02),), (scalar(7, np.uint8),), (scalar(0.05),), (scalar(128, np.uint8),)])
        case(op, [signed(*shapes[0]), (s,), (scalar(-5, np.int8),), signed(*shapes[1]), (scalar(0.02),), (scalar(3, np.int8),), (scalar(0.07),), (scalar(1, np.int8),)])
for last in (0, 1):
    case("QLinearGlobalAveragePool", [bytes_of(2, 3, 5, 4), (s,), (z,), (scalar(0.02),), (scalar(100, np.uint8),)], channels_last=last)
case("QLinearAveragePool", [bytes_of(1, 3, 6, 6), (s,), (z,), (scalar(0.02),), (scalar(100, np.uint8),)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
case("QLinearAveragePool", [bytes_of(1, 3, 6, 6), (s,), (z,), (scalar(0.02),), (scalar(100, np.uint8),)], kernel_shape=[2, 2], count_include_pad=1, pads=[1, 0, 1, 0])
case("QLinearConcat", [(scalar(0.05),), (scalar(128, np.uint8),), bytes_of(2, 3), (s,), (z,), bytes_of(2, 2), (scalar(0.01),), (scalar(9, np.uint8),)], axis=1)
case("QLinearSigmoid", [bytes_of(3, 7), (s,), (z,), (scalar(1 / 256),), (scalar(0, np.uint8),)])
case("QLinearLeakyRelu", [bytes_of(3, 7), (s,), (z,), (s,), (scalar(100, np.uint8),)], alpha=0.1)
case("QLinearSoftmax", [bytes_of(3, 7), (s,), (z,), (scalar(1 / 256),), (scalar(0, np.uint8),)], axis=-1, opset=13)
case("QLinearWhere", [rng.integers(0, 2, (3, 4)).astype(bool), bytes_of(3, 4), (s,), (z,), bytes_of(4), (scalar(0.02),), (scalar(7, np.uint8),), (scalar(0.05),), (scalar(128, np.uint8),)])
case("QGemm", [bytes_of(4, 5), (s,), (z,), (bytes_of(5, 3),), (scalar(0.01),), (scalar(127, np.uint8),), (rng.integers(-999, 999, 3).astype(np.int32),), (scalar(0.04),), (scalar(128, np.uint8),)])
case("QGemm", [bytes_of(4, 5), (s,), (z,), (signed(3, 5),), (np.array([0.01, 0.02, 0.03], f32),), (np.zeros(3, np.int8),), None, None, None], transB=1, alpha=0.5)
case("DynamicQuantizeMatMul", [normal(4, 8), (bytes_of(8, 3),), (scalar(0.02),), (scalar(130, np.uint8),), (normal(3),)], tolerance=1e-4)
case("MatMulIntegerToFloat", [bytes_of(4, 8), (signed(8, 3),), (s,), (scalar(0.02),), (z,), (scalar(3, np.int8),), (normal(3),)], tolerance=1e-4)
for bits, block in ((4, 16), (4, 32), (8, 16)):
    k, n = 40, 6
    blocks = -(-k // block)
    packed = bytes_of(n, blocks, block * bits // 8)
    case("MatMulNBits", [normal(3, k), (packed,), ((0.02 * rng.random((n, blocks))).astype(f32),)], K=k, N=n, bits=bits, block_size=block, tolerance=1e-3)
    case("MatMulNBits", [normal(2, 3, k), (packed,), ((0.02 * rng.random((n, blocks))).astype(f32),), (bytes_of(n, -(-blocks * bits // 8)),)], K=k, N=n, bits=bits, block_size=block, tolerance=1e-3)
for activation, parameters in (("Relu", None), ("Sigmoid", None), ("Tanh", None), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.2, 0.5])):
    more = {"activation_params": parameters} if parameters else {}
    case("FusedConv", [normal(1, 3, 7, 6), (normal(4, 3, 3, 3),), (normal(4),)], kernel_shape=[3, 3], pads=[1, 1, 1, 1], activation=activation, tolerance=1e-4, **more)
case("FusedConv", [normal(1, 3, 7, 6), (normal(4, 3, 3, 3),), (normal(4),), normal(1, 4, 5, 4)], kernel_shape=[3, 3], activation="Relu", tolerance=1e-4)
case("FusedGemm", [normal(3, 4), normal(4, 5), normal(5)], activation="Relu", alpha=0.5, beta=2.0)
case("FusedMatMul", [normal(2, 3, 4), normal(2, 5, 4)], transB=1, alpha=0.3)
case("FusedMatMul", [normal(2, 4, 3), normal(2, 4, 5)], transA=1, alpha=2.0)
case("FusedMatMul", [normal(3, 2, 4), normal(2, 4, 5)], transBatchA=1)
case("FusedMatMul", [normal(2, 3, 4), normal(4, 2, 5)], transBatchB=1)
case("QuickGelu", [normal(3, 5)])
case("QuickGelu", [normal(3, 5)], alpha=0.7)
case("Gelu", [normal(3, 5)])
case("BiasGelu", [normal(3, 5), normal(5)])
case("FastGelu", [normal(3, 5)])
case("FastGelu", [normal(3, 5), normal(5)])
case("SkipLayerNormalization", [normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8), normal(8)], epsilon=1e-5)
case("SkipLayerNormalization", [normal(2, 3, 8), normal(3, 8), normal(8)])
case("SkipLayerNormalization", [normal(2, 3, 8), normal(1, 3, 8), normal(8), normal(8)], results=4)
case("SkipSimplifiedLayerNormalization", [normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8)], results=4, epsilon=1e-4)
ids, segment = rng.integers(0, 9, (2, 4)).astype(np.int32), rng.integers(0, 2, (2, 4)).astype(np.int32)
mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
case("EmbedLayerNormalization", [ids, segment, normal(9, 8), normal(6, 8), normal(2, 8), normal(8), normal(8), mask], results=2)
case("EmbedLayerNormalization", [ids, None, normal(9, 8), normal(6, 8), None, normal(8), normal(8)], results=2)
for more in ({}, {"unidirectional": 1}, {"scale": 0.3}):
    case("Attention", [normal(2, 4, 8), normal(8, 24), normal(24)], num_heads=2, tolerance=1e-4, **more)
case("Attention", [normal(2, 4, 8), normal(8, 24), normal(24), np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)], num_heads=2, tolerance=1e-4)
case("Attention", [normal(2, 4, 8), normal(8, 24), normal(24), np.array([3, 2], np.int32)], num_heads=2, tolerance=1e-4)
case("Attention", [normal(2, 4, 8), normal(8, 20), normal(20)], num_heads=2, qkv_hidden_sizes=[8, 8, 4], tolerance=1e-4)
case("MultiHeadAttention", [normal(2, 4, 8), normal(2, 5, 8), normal(2, 5, 8)], num_heads=2, tolerance=1e-4)
case("MultiHeadAttention", [normal(2, 4, 8), normal(2, 5, 8), normal(2, 5, 8), normal(24)], num_heads=2, scale=0.2, tolerance=1e-4)
case("MultiHeadAttention", [normal(2, 4, 8), normal(2, 4, 8), normal(2, 4, 8)], num_heads=2, unidirectional=1, tolerance=1e-4)
angles = np.outer(np.arange(16), 1.0 / 10000 ** (np.arange(4) / 4))
for interleaved in (0, 1):
    case("RotaryEmbedding", [normal(2, 5, 16), np.tile(np.arange(5), (2, 1)).astype(np.int64), np.cos(angles).astype(f32), np.sin(angles).astype(f32)], interleaved=interleaved)
    case("RotaryEmbedding", [normal(2, 2, 5, 8), np.array([3], np.int64), np.cos(angles).astype(f32), np.sin(angles).astype(f32)], interleaved=interleaved)
case("RotaryEmbedding", [normal(2, 5, 32), np.array([0], np.int64), np.cos(angles).astype(f32), np.sin(angles).astype(f32)], num_heads=2, rotary_embedding_dim=8)
lengths, total = np.array([3, 3], np.int32), np.array(4, np.int32)
case("GroupQueryAttention", [normal(2, 4, 32), normal(2, 4, 16), normal(2, 4, 16), None, None, lengths, (total,)], results=3, num_heads=4, kv_num_heads=2, tolerance=1e-4)
case("GroupQueryAttention", [normal(2, 4, 32), normal(2, 4, 16), normal(2, 4, 16), None, None, lengths, (total,)], results=1, num_heads=4, kv_num_heads=2, local_window_size=2, tolerance=1e-4)
wide = np.outer(np.arange(16), 1.0 / 10000 ** (np.arange(8) / 8))
case("GroupQueryAttention", [normal(2, 4, 64), normal(2, 4, 32), normal(2, 4, 32), None, None, lengths, (total,), np.cos(wide).astype(f32), np.sin(wide).astype(f32)], results=1, num_heads=4, kv_num_heads=2, do_rotary=1, tolerance=1e-4)
case("GroupQueryAttention", [normal(2, 1, 32), normal(2, 1, 16), normal(2, 1, 16), normal(2, 2, 3, 8), normal(2, 2, 3, 8), lengths, (total,)], results=3, num_heads=4, kv_num_heads=2, softcap=5.0, tolerance=1e-4)


def model(op, operands, attributes, results, path):
    inputs, weights, names, given = [], [], [], {}
    for i, x in enumerate(operands):
        if x is None:
            names.append("")
            continue
        names.append(f"x{i}")
        if isinstance(x, tuple):
            weights.append(onnx.numpy_helper.from_array(x[0], names[-1]))
        else:
            inputs.append(helper.make_tensor_value_info(names[-1], kinds[x.dtype], x.shape))
            given[names[-1]] = x
    while names and not names[-1]:
        names.pop()
    made = [f"y{i}" for i in range(results)]
    node = helper.make_node(op, names, made, domain="com.microsoft", **attributes)
    kept = [m for i, m in enumerate(made) if not (op.startswith("Skip") and i in (1, 2))]
    node.output[:] = [m if m in kept else "" for m in made]
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=m) for m in kept], weights)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    m.ir_version = 8
    path_of_model = path + ".onnx"
    # The results have the types that onnxruntime infers.
    onnx.save(m, path_of_model)
    return path_of_model, given, kept


def main(binary):
    ort.set_default_logger_severity(4)
    differ = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (op, operands, attributes, results, tolerance) in enumerate(cases):
            shapes = [None if x is None else (x[0] if isinstance(x, tuple) else x).shape for x in operands]
            label = f"{op} {shapes} {attributes}"
            path = os.path.join(folder, str(number))
            file, given, kept = model(op, operands, attributes, results, path)
            try:
                session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
                expected = session.run(None, given)
            except Exception as problem:  # noqa: BLE001: a case that onnxruntime has no kernel for
                refused += 1
                print(f"not in onnxruntime: {label}: {' '.join(str(problem).split())[:200]}")
                continue
            loaded = onnx.load(file)
            del loaded.graph.output[:]
            loaded.graph.output.extend(helper.make_tensor_value_info(n, kinds[e.dtype], e.shape) for n, e in zip(kept, expected))
            onnx.save(loaded, file)
            np.savez(path + ".npz", **given)
            run = subprocess.run([binary, file, "--run", path + ".npz", "-o", path + ".out.npz", "-O", "1"], capture_output=True, text=True)
            if run.returncode:
                differ += 1
                print(f"{label}: {run.stderr.strip()[:300]}")
                continue
            out = np.load(path + ".out.npz")
            for name, e in zip(kept, expected):
                got = out[name].astype(np.float64)
                scale = max(1.0, float(np.max(np.abs(e.astype(np.float64)), initial=0)))
                most = 1.0 if e.dtype in (np.uint8, np.int8) else tolerance * scale  # a quotient halfway may round either way
                if got.shape != e.shape or not np.all(np.abs(got - e.astype(np.float64)) <= most) or (
                        most == 1.0 and np.sum(got != e) > max(2, 0.1 * e.size)):
                    differ += 1
                    far = np.max(np.abs(got - e.astype(np.float64))) if got.shape == e.shape else got.shape
                    print(f"{label}: {name} differs by {far}, of {scale}")
                    break
    print(f"{len(cases) - differ - refused} of {len(cases)} cases agree; onnxruntime refuses {refused}")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
