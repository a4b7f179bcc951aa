#!/usr/bin/env python3
"""Writes the sample of cases of newer operators that is kept beside this script, in onnx_sample/.

    python3 tests/conformance/onnx_sample.py [FOLDER]

Inputs are made here, results by the reference evaluator of the installed onnx package (PyPI: onnx, version 1.23). Each
case is a folder as onnx_conformance reads it: model.onnx and test_data_set_0/{input,output}_I.pb.
"""
import pathlib
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

F = TensorProto.FLOAT
random = np.random.default_rng(1)


def numbers(*shape):
    return random.standard_normal(shape).astype(np.float32)


def declared(name, value):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


CASES = []


def case(name, op, inputs, outputs=1, opset=25, domain="", **attributes):
    """A model of one node; an input of None is left out."""
    CASES.append((name, op, inputs, outputs, opset, domain, attributes))


def attention_cases():
    q, k, v = numbers(2, 4, 3, 8), numbers(2, 2, 5, 8), numbers(2, 2, 5, 8)
    case("attention_groups", "Attention", [q, k, v])
    case("attention_causal", "Attention", [q, k, v], is_causal=1)
    case("attention_window", "Attention", [q, k, v], left_window_size=1, right_window_size=1)
    case("attention_softcap", "Attention", [q, k, v], softcap=2.0)
    case("attention_mask", "Attention", [q, k, v, numbers(3, 5) > 0])
    case("attention_added", "Attention", [q, k, v, numbers(2, 1, 3, 5)])
    case("attention_past", "Attention", [q, k, v, None, numbers(2, 2, 4, 8), numbers(2, 2, 4, 8)], 3, is_causal=1)
    case("attention_counts", "Attention", [q, k, v, None, None, None, np.array([5, 3])], opset=24)
    case("attention_flat", "Attention", [numbers(2, 3, 8), numbers(2, 5, 4), numbers(2, 5, 4)], 4,
         q_num_heads=4, kv_num_heads=2, qk_matmul_output_mode=3)


def language_cases():
    x = numbers(2, 3, 4, 8)
    case("rms_normalization", "RMSNormalization", [x, numbers(4, 8)], axis=2)
    angles = numbers(2, 4, 4)
    case("rotary", "RotaryEmbedding", [x, np.cos(angles), np.sin(angles)])
    case("rotary_interleaved", "RotaryEmbedding", [x, np.cos(angles[:, :, :2]), np.sin(angles[:, :, :2])],
         interleaved=1, rotary_embedding_dim=4)
    case("tensor_scatter", "TensorScatter", [numbers(2, 6, 3), numbers(2, 2, 3), np.array([1, 5])], mode="circular")
    case("swish", "Swish", [x], alpha=1.5)
    case("linear_attention", "LinearAttention",
         [numbers(2, 3, 8), numbers(2, 3, 4), numbers(2, 3, 6), None, -abs(numbers(2, 3, 2)), abs(numbers(2, 3, 2))], 2,
         opset=27, q_num_heads=4, kv_num_heads=2)
    case("causal_conv", "CausalConvWithState", [numbers(2, 3, 5), numbers(3, 1, 4), numbers(3), numbers(2, 3, 3)], 2,
         opset=27, activation="silu")


def number_cases():
    x = numbers(3, 4)
    case("cum_prod", "CumProd", [x, np.array(1)], opset=26, exclusive=1, reverse=1)
    case("bit_cast", "BitCast", [x], opset=26, to=TensorProto.INT32)
    case("bit_cast_back", "BitCast", [x.view(np.int32)], opset=26, to=F)
    case("mod_float", "Mod", [x, numbers(3, 4)], opset=28)
    case("shift_signed", "BitShift", [np.array([-9, 9], np.int32), np.array([1, 1], np.int32)], opset=28, direction="RIGHT")
    for kind in ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1", "INT4", "UINT4"):
        scale = 3 if kind in ("INT4", "UINT4") else 40
        case("cast_" + kind.lower(), "Cast", [np.abs(x) * 3 if kind == "UINT4" else x * scale], to=getattr(TensorProto, kind))
    case("quantize_blocks", "QuantizeLinear", [x, abs(numbers(3, 2)) + 0.1], axis=1, block_size=2,
         output_dtype=TensorProto.INT8)
    case("dequantize_one", "DequantizeLinear", [np.arange(5, dtype=np.int32), np.array([0.5], np.float32)], axis=0)


def picture_cases():
    x = numbers(1, 2, 6, 8)
    sizes = np.array([1, 2, 3, 5])
    case("resize_antialias", "Resize", [x, None, None, sizes], mode="linear", antialias=1)
    case("resize_policy", "Resize", [x, None, None, np.array([3, 5])], mode="linear", axes=[2, 3],
         keep_aspect_ratio_policy="not_larger")
    case("col2im", "Col2Im", [numbers(1, 8, 6), np.array([4, 5]), np.array([2, 2])], strides=[2, 2], pads=[0, 1, 0, 0])
    case("affine_grid", "AffineGrid", [numbers(2, 2, 3), np.array([2, 3, 4, 5])])
    case("center_crop_pad", "CenterCropPad", [numbers(5, 4), np.array([3, 7])])
    case("grid_sample_volume", "GridSample", [numbers(1, 1, 3, 4, 5), numbers(1, 2, 3, 2, 3)], mode="linear")
    case("deform_conv", "DeformConv", [numbers(1, 2, 4, 4), numbers(3, 2, 2, 2), numbers(1, 8, 3, 3)], opset=22)
    case("space_to_depth", "SpaceToDepth", [x], opset=28, blocksize=2, mode="CRD")


def classic_cases():
    x = numbers(4, 3)
    ml = dict(domain="ai.onnx.ml", opset=3)
    case("scaler", "Scaler", [x], offset=[0.1, 0.2, 0.3], scale=[2.0, 3.0, 4.0], **ml)
    case("binarizer", "Binarizer", [x], threshold=0.2, **ml)
    case("linear_regressor", "LinearRegressor", [x], targets=2, coefficients=[1.0, 2, 3, 4, 5, 6], intercepts=[0.5, -1.0], **ml)
    case("label_encoder", "LabelEncoder", [np.array([1, 2, 7])], keys_int64s=[1, 2], values_floats=[0.5, 1.5],
         default_float=-2.0, domain="ai.onnx.ml", opset=4)
    case("tree_regressor", "TreeEnsembleRegressor", [x], n_targets=1, nodes_treeids=[0] * 5, nodes_nodeids=[0, 1, 2, 3, 4],
         nodes_featureids=[0, 1, 0, 0, 0], nodes_values=[0.0, 0.5, 0.0, 0.0, 0.0],
         nodes_modes=["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF"], nodes_truenodeids=[1, 3, 0, 0, 0],
         nodes_falsenodeids=[2, 4, 0, 0, 0], target_treeids=[0, 0, 0], target_nodeids=[2, 3, 4], target_ids=[0, 0, 0],
         target_weights=[1.0, 2.0, 3.0], **ml)


def text_cases():
    words = np.array(["to be", "or", "not to be"], dtype=object)
    case("string_concat", "StringConcat", [words, np.array(["!"], dtype=object)])
    case("string_split", "StringSplit", [words], 2)


def typed(value):
    return np.asarray(value)


def write(folder, name, op, inputs, outputs, opset, domain, attributes):
    given = [typed(v) for v in inputs if v is not None]
    names = ["" if v is None else f"x{i}" for i, v in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(n, TensorProto.STRING if v.dtype == object else helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in zip([n for n in names if n], given)
    ]
    imports = [helper.make_opsetid("", 22 if domain else opset)] + ([helper.make_opsetid(domain, opset)] if domain else [])

    def model(infos_out):
        graph = helper.make_graph([node], name, infos, infos_out)
        return helper.make_model(graph, opset_imports=imports, ir_version=13)

    plain = model([onnx.ValueInfoProto(name=r) for r in results])
    want = ReferenceEvaluator(plain).run(results, {i.name: v for i, v in zip(infos, given)})
    protos = [numpy_helper.from_array(np.asarray(w), r) for w, r in zip(want, results)]
    done = model([helper.make_tensor_value_info(r, p.data_type, p.dims) for r, p in zip(results, protos)])
    data = folder / name / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / name / "model.onnx").write_bytes(done.SerializeToString())
    for i, (info, v) in enumerate(zip(infos, given)):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(v, info.name).SerializeToString())
    for i, p in enumerate(protos):
        (data / f"output_{i}.pb").write_bytes(p.SerializeToString())


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "onnx_sample"
    if folder.exists():
        shutil.rmtree(folder)
    for group in (attention_cases, language_cases, number_cases, picture_cases, classic_cases, text_cases):
        group()
    for c in CASES:
        write(folder, *c)
    print(f"onnx {onnx.__version__}: {len(CASES)} cases in {folder}")


if __name__ == "__main__":
    main()
