"""What the TreeLSTM's peers share: labelled trees from a file, and the measurement of a step of training."""
import argparse
import json
import os
import pathlib
import re
import sys
import time


def options(description):
    beside = pathlib.Path(__file__).resolve().parents[4] / "shared/data"
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", default=os.environ.get("LANTERN_DATA", beside), help="folder with sst/")
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=150)
    parser.add_argument("--embedding", type=int, default=300)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--apart", action="store_true", help="each node by itself, leaves and scores too")
    parser.add_argument("--batch", type=int, default=1, help="trees of a step (DyNet)")
    parser.add_argument("--autobatch", action="store_true", help="DyNet batches equal operations when it runs")
    return parser.parse_args()


def read_trees(folder, limit):
    """Lists of nodes, children before their parents: (label, word, left, right), -1 for none; and how many words."""
    words, trees = {}, []
    with open(os.path.join(folder, "sst", "train.txt"), encoding="utf-8") as lines:
        for line in lines:
            nodes, stack = [], []
            for token in re.findall(r"\(|\)|[^\s()]+", line):
                if token == "(":
                    stack.append([])
                elif token != ")":
                    stack[-1].append(token)
                else:
                    label, *rest = stack.pop()
                    if isinstance(rest[0], str):
                        nodes.append((int(label), words.setdefault(rest[0], len(words) + 1), -1, -1))
                    else:
                        nodes.append((int(label), -1, rest[0][0], rest[1][0]))
                    if stack:
                        stack[-1].append([len(nodes) - 1])
            trees.append(nodes)
            if len(trees) == limit:
                break
    return trees, len(words) + 1


def batches(trees, size):
    return [trees[i : i + size] for i in range(0, len(trees), size)]


def measure(system, examples, trees, epochs, step):
    """Goes over the examples `epochs` times, one step for each; of the passes the fastest counts. Time is the process's own."""
    losses, rates = [], []
    for _ in range(epochs):
        start = time.process_time()
        total = sum(step(example) for example in examples)
        rates.append(trees / (time.process_time() - start))
        losses.append(total / trees)
    json.dump({"system": system, "trees per second": max(rates), "passes": rates, "loss": losses}, sys.stdout, indent=1)
    print()
