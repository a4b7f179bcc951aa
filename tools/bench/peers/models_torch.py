#!/usr/bin/env python3
"""The models of samples/{mnist_cnn,squeezenet,resnet50}.cpp in PyTorch, eagerly: milliseconds of a step and peak
memory as JSON.

Usage: models_torch.py mnist_cnn|squeezenet|resnet50 [--batch N] [--steps N]. One thread, random pictures. A step is
loss, gradient and update. Needs torch: pip install torch==2.15.0.
"""
import argparse
import json
import resource
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

torch.set_num_threads(1)
torch.manual_seed(1)


def mnist_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


class Fire(nn.Module):
    def __init__(self, channels, squeezed, expanded):
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.expand1 = nn.Conv2d(squeezed, expanded, 1)
        self.expand3 = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x):
        x = self.squeeze(x).relu()
        return torch.cat((self.expand1(x).relu(), self.expand3(x).relu()), 1)


def squeezenet():
    layers = [nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2)]
    channels = 64
    for i in range(8):
        if i in (2, 4):
            layers.append(nn.MaxPool2d(3, 2))
        width = i // 2 + 1
        layers.append(Fire(channels, 16 * width, 64 * width))
        channels = 128 * width
    layers += [nn.Dropout(0.5), nn.Conv2d(channels, 10, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers)


class Bottleneck(nn.Module):
    def __init__(self, channels, inside, stride):
        super().__init__()
        outside = 4 * inside
        self.body = nn.Sequential(
            nn.Conv2d(channels, inside, 1, bias=False), nn.BatchNorm2d(inside), nn.ReLU(),
            nn.Conv2d(inside, inside, 3, stride, padding=1, bias=False), nn.BatchNorm2d(inside), nn.ReLU(),
            nn.Conv2d(inside, outside, 1, bias=False), nn.BatchNorm2d(outside),
        )  # fmt: skip
        self.shortcut = nn.Identity()
        if stride > 1 or channels != outside:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x):
        return (self.body(x) + self.shortcut(x)).relu()


def resnet50():
    layers = [nn.Conv2d(3, 64, 3, 2, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(channels, 64 << stage, 2 if stage > 0 and block == 0 else 1))
            channels = 256 << stage
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]
    return nn.Sequential(*layers)


MODELS = {"mnist_cnn": (mnist_cnn, (1, 28, 28)), "squeezenet": (squeezenet, (3, 32, 32)),
          "resnet50": (resnet50, (3, 32, 32))}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    make, shape = MODELS[options.model]
    model = make()
    if options.model == "resnet50":
        optimiser = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    else:
        optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    images, labels = torch.randn(options.batch, *shape), torch.randint(0, 10, (options.batch,))
    times = []
    for _ in range(options.steps):
        start = time.perf_counter()
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimiser.step()
        loss.item()
        times.append(1e3 * (time.perf_counter() - start))
    print(json.dumps({
        "model": options.model, "batch": options.batch, "torch": torch.__version__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "ms": statistics.median(times), "ms_least": min(times),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
