"""What the peers of `bench trees` share: the problem that it has written, and the measurement of steps of training."""
import argparse
import json
import pathlib
import resource
import sys
import time

import numpy as np


class Problem:
    """Trees as lists of nodes, children before their parents: (label, word, left, right), -1 for none; sizes; weights."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.__dict__.update(json.loads((folder / "problem.json").read_text()))
        numbers = np.fromfile(folder / "weights.f32", np.float32)
        n, d, at = self.hidden, self.embedding, 0
        shapes = {"words": (self.words, d), "leaf": (3 * n, d), "leaf_bias": (3 * n,), "inner": (5 * n, 2 * n),
                  "inner_bias": (5 * n,), "scores": (5, n), "scores_bias": (5,)}
        self.weights = {}
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            self.weights[name] = numbers[at : at + size].reshape(shape)
            at += size
        assert at == numbers.size


class Levels:
    """The nodes of several trees by height: leaves first. States have a row for each node, in this order."""

    def __init__(self, trees):
        heights, nodes = [], []
        for tree in trees:
            first = len(nodes)
            for label, word, left, right in tree:
                children = [first + c for c in (left, right) if c >= 0]
                heights.append(1 + max((heights[c] for c in children), default=0))
                nodes.append((label, word, children))
        order = sorted(range(len(nodes)), key=lambda i: heights[i])
        row = {node: i for i, node in enumerate(order)}
        self.labels = np.array([nodes[i][0] for i in order])
        self.leaf_words = np.array([nodes[i][1] for i in order if heights[i] == 1])
        self.children = []  # of each level above the leaves: rows of the left and the right children
        for height in range(2, max(heights) + 1):
            level = [i for i in order if heights[i] == height]
            self.children.append(np.array([[row[c] for c in nodes[i][2]] for i in level]))


def options(description, *flags):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("problem", help="the folder that bench trees has written")
    parser.add_argument("--batch", type=int, default=1, help="trees of a step")
    for flag, meaning in flags:
        parser.add_argument(flag, action="store_true", help=meaning)
    return parser.parse_args()


def measure(problem, size, prepare, step):
    """Steps over all trees, `epochs` times; the fastest epoch counts, in seconds of the processor. What `prepare` makes of
    the trees of a step is not counted."""
    trees = problem.trees
    examples = [prepare(trees[i : i + size]) for i in range(0, len(trees), size)]
    first, losses, seconds = [], [], []
    for epoch in range(problem.epochs):
        start, total = time.process_time(), 0.0
        for example in examples:
            loss = float(step(example))
            total += loss
            if len(first) < 2:
                first.append(loss)
        seconds.append(time.process_time() - start)
        losses.append(total / len(trees))
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(" ".join(str(x) for x in [min(seconds), peak, *first, *losses]))
    sys.stdout.flush()
