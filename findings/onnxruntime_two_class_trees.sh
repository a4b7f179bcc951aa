#!/usr/bin/env bash
# onnxruntime 1.32.0, TreeEnsembleClassifier (ai.onnx.ml, version 3) with two classes that both receive votes: the second
# output has the scores, and the first output should be the label of the larger one. onnxruntime answers the second
# label for every row, also where the scores are 0.9 and 0.1. The reference implementation of onnx 1.23.2 answers 0.
#
# Seen: labels [1, 1], scores [[0.9, 0.1], [0.1, 0.9]]. Needs Python 3 and PyPI; exits with 1 where that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

# One tree: x <= 0.5 votes 0.9 for class 0 and 0.1 for class 1, else the other way round.
node = helper.make_node(
    "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
    nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0],
    nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values=[0.5, 0.0, 0.0], nodes_hitrates=[1.0, 1.0, 1.0],
    nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], nodes_missing_value_tracks_true=[0, 0, 0],
    class_treeids=[0, 0, 0, 0], class_nodeids=[1, 1, 2, 2], class_ids=[0, 1, 0, 1], class_weights=[0.9, 0.1, 0.1, 0.9],
    classlabels_int64s=[0, 1], post_transform="NONE")
graph = helper.make_graph(
    [node], "two_classes", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 1])],
    [helper.make_tensor_value_info("label", TensorProto.INT64, [None]),
     helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, 2])])
model = helper.make_model(
    graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)])
onnx.checker.check_model(model)

x = np.array([[0.0], [1.0]], np.float32)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
labels, scores = session.run(None, {"x": x})
reference, _ = ReferenceEvaluator(model).run(None, {"x": x})
print("onnxruntime", onnxruntime.__version__, "labels", labels.tolist(), "scores", scores.round(3).tolist())
print("reference of onnx", onnx.__version__, "labels", reference.tolist())
sys.exit(0 if labels.tolist() == [1, 1] and reference.tolist() == [0, 1] else 1)
PYTHON
