#!/usr/bin/env python3
"""Trains networks by the steps that lantern-onnx makes of their exported models, and by PyTorch.

    python3 tests/conformance/onnx_training.py build/lantern-onnx [--steps 10]

Prints for each network and optimiser by how much the weights differ in the end. The exit status is 1 where a weight
differs from PyTorch's by more than 1e-5 and has a gradient above 1e-6. (A smaller gradient is rounding error alone, such
as that of the biases of attention's keys, which softmax cancels. Adam divides it by its size, and moves the weight.)
Needs PyPI's torch, onnxscript and safetensors, and a C compiler.
"""
import argparse
import copy
import ctypes
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import nn

NAME = "train_step"  # not `step`, which libc has


class Last(nn.Module):
    """A recurrent network, and a layer behind its last state."""

    def __init__(self, kind):
        super().__init__()
        self.net, self.out = kind(6, 10, batch_first=True), nn.Linear(10, 5)

    def forward(self, x):
        return self.out(self.net(x)[0][:, -1])


class Mean(nn.Module):
    """A layer of a transformer, averaged over places."""

    def __init__(self):
        super().__init__()
        self.net, self.out = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), nn.Linear(16, 5)

    def forward(self, x):
        return self.out(self.net(x).mean(1))


class Language(nn.Module):
    """Embeddings, causal attention, and a layer behind."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 16), nn.Embedding(7, 16)
        self.qkv, self.mixed, self.norm, self.out = (
            nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 5))

    def forward(self, i):
        x = self.tokens(i) + self.places(torch.arange(7))
        n = x.shape[0]
        q, k, v = (t.view(n, 7, 4, 4).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out((x + self.mixed(y.transpose(1, 2).reshape(n, 7, 16))).mean(1))


class Patches(nn.Module):
    """A vision transformer of one layer."""

    def __init__(self):
        super().__init__()
        self.cut = nn.Conv2d(1, 16, 4, 4)
        self.first, self.places = nn.Parameter(torch.randn(1, 1, 16) * 0.1), nn.Parameter(torch.randn(1, 10, 16) * 0.1)
        self.net = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, activation="gelu")
        self.out = nn.Linear(16, 5)

    def forward(self, x):
        y = self.cut(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.first.expand(x.shape[0], -1, -1), y], 1) + self.places
        return self.out(self.net(y)[:, 0])


def networks():
    vectors, images, sequences = torch.randn(8, 12), torch.randn(4, 1, 12, 12), torch.randn(4, 7, 6)
    yield "perceptron", nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 5)), vectors
    yield "layer norm", nn.Sequential(nn.Linear(12, 24), nn.LayerNorm(24), nn.GELU(), nn.Linear(24, 12), nn.SiLU(),
                                      nn.Linear(12, 5)), vectors
    yield "convolutions", nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3),
                                        nn.ReLU(), nn.Flatten(), nn.Linear(128, 5)), images
    yield "group norm", nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(), nn.AvgPool2d(2),
                                      nn.ConvTranspose2d(8, 4, 2, 2), nn.Flatten(), nn.Linear(576, 5)), images
    yield "lstm", Last(nn.LSTM), sequences
    yield "gru", Last(nn.GRU), sequences
    yield "encoder layer", Mean(), torch.randn(4, 7, 16)
    yield "gpt", Language(), torch.randint(0, 20, (4, 7))
    yield "vit", Patches(), images


def described(array):
    """The argument that an array is: a pointer and its sizes."""
    class Tensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("dim", ctypes.c_int64 * array.ndim)]
    return Tensor(array.ctypes.data, (ctypes.c_int64 * array.ndim)(*array.shape))


class Step:
    """A training step in C, compiled."""

    def __init__(self, tool, model, optimizer, folder):
        self.adam = optimizer == "adam"
        base = folder / f"{model.stem}_{optimizer}"
        make = [tool, model, "--train", f"--optimizer={optimizer}", "--learning-rate=0.01", "--name", NAME]
        subprocess.run([*make, "--emit=header", "-o", f"{base}.h"], check=True)
        subprocess.run([*make, "--emit=c", "-o", f"{base}.c"], check=True)
        subprocess.run([tool, model, "--emit=weights", "-o", f"{base}.safetensors"], check=True)
        subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", f"{base}.c", "-o", f"{base}.so", "-lm"], check=True)
        library = ctypes.CDLL(f"{base}.so")
        self.workspace, self.entry = getattr(library, NAME + "_workspace"), getattr(library, NAME + "_entry")
        self.workspace.restype = ctypes.c_void_p
        self.entry.argtypes = [ctypes.c_void_p] * 3
        self.layout = []  # first element, name and shape of each part
        for line in pathlib.Path(f"{base}.h").read_text().splitlines():
            if line.startswith("//   "):
                at, name, shape = line[5:].split()
                self.layout.append((int(at), name, [int(n) for n in shape.strip("[]").split(",") if n]))
        parts = load_file(f"{base}.safetensors")
        self.weights = np.concatenate([parts[name].ravel() for _, name, _ in self.layout]).astype(np.float32)
        self.moments = [np.zeros_like(self.weights) for _ in range(2)]
        self.count = 0

    def run(self, x, labels):
        given = [self.weights, x, labels] + (self.moments if self.adam else [])
        arguments = [described(a) for a in given] + ([ctypes.c_int64(self.count)] if self.adam else [])
        results = [ctypes.c_float()] + [described(self.weights) for _ in range(3 if self.adam else 1)]
        results += [ctypes.c_int64()] if self.adam else []
        pointers = [(ctypes.c_void_p * len(all))(*[ctypes.addressof(a) for a in all]) for all in (arguments, results)]
        self.entry(self.workspace(), *pointers)
        tensors = [np.ctypeslib.as_array(ctypes.cast(r.data, ctypes.POINTER(ctypes.c_float)), self.weights.shape).copy()
                   for r in results[1:4 if self.adam else 2]]
        self.weights, self.moments, self.count = tensors[0], tensors[1:], self.count + 1


def compared(tool, name, net, x, optimizer, steps, folder):
    """The largest difference of a weight that has a gradient, and of any."""
    net = copy.deepcopy(net)
    model = folder / (name.replace(" ", "_") + ".onnx")
    torch.onnx.export(net.eval(), (x,), model, input_names=["x"], dynamo=True, external_data=False, optimize=False,
                      verbose=False)
    step = Step(tool, model, optimizer, folder)
    net.train()
    labels = torch.randint(0, 5, (x.shape[0],))
    rule = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer](net.parameters(), 0.01)
    sizes = {n: torch.zeros_like(p) for n, p in net.named_parameters()}
    for _ in range(steps):
        rule.zero_grad()
        nn.functional.cross_entropy(net(x), labels).backward()
        for n, p in net.named_parameters():
            sizes[n] = torch.maximum(sizes[n], p.grad.abs())
        rule.step()
        step.run(x.numpy(), labels.numpy())
    weights, worst, any_worst = dict(net.named_parameters()), 0.0, 0.0
    if {n for _, n, _ in step.layout} != set(weights):
        raise ValueError(f"{name}: expected weights {sorted(weights)}, got {sorted(n for _, n, _ in step.layout)}")
    for at, n, shape in step.layout:
        difference = np.abs(step.weights[at:at + int(np.prod(shape))].reshape(shape) - weights[n].detach().numpy())
        any_worst = max(any_worst, float(difference.max()))
        worst = max(worst, float((difference * (sizes[n].numpy() > 1e-6)).max()))
    return worst, any_worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, net, x in networks():
            for optimizer in ("sgd", "adam"):
                worst, any_worst = compared(options.tool, name, net, x, optimizer, options.steps, pathlib.Path(folder))
                failed = failed or not worst < 1e-5
                print(f"{name}, {optimizer}: largest difference {worst:.1e} after {options.steps} steps, "
                      f"{any_worst:.1e} with weights whose gradients are rounding errors", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
