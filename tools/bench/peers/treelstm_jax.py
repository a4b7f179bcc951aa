#!/usr/bin/env python3
"""The model of samples/treelstm_model.hpp in JAX, level by level, one thread: `bench trees --python PYTHON` runs it.

Shapes are fixed where a program is compiled: each level has as many rows as the largest of all steps has there, and the
rest is padding without weight in the loss. Of the table a step takes the rows of its words. Needs JAX: pip install jax.
"""
import functools
import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import jax
import jax.numpy as jnp
import numpy as np

import treelstm_data


def state(n, gates, *kept):
    i, o, u = gates[:, :n], gates[:, n : 2 * n], gates[:, 2 * n : 3 * n]
    cell = jax.nn.sigmoid(i) * jnp.tanh(u)
    for k, child in enumerate(kept):
        cell += jax.nn.sigmoid(gates[:, (3 + k) * n : (4 + k) * n]) * child
    return jax.nn.sigmoid(o) * jnp.tanh(cell), cell


def loss(w, example):
    n = w["scores"].shape[1]
    gates = w["words"] @ w["leaf"].T + w["leaf_bias"]
    hidden, cell = state(n, gates[example["leaf_words"]])
    for left, right in example["children"]:
        inner = jnp.concatenate((hidden[left], hidden[right]), 1) @ w["inner"].T + w["inner_bias"]
        new = state(n, inner, cell[left], cell[right])
        hidden, cell = jnp.concatenate((hidden, new[0])), jnp.concatenate((cell, new[1]))
    scores = jax.nn.log_softmax(hidden @ w["scores"].T + w["scores_bias"])
    picked = jnp.take_along_axis(scores, example["labels"][:, None], 1)[:, 0]
    return -jnp.sum(jnp.where(example["counts"], picked, 0))


def main():
    options = treelstm_data.options(__doc__.split("\n")[0])
    problem = treelstm_data.Problem(options.problem)
    steps = [treelstm_data.Levels(problem.trees[i : i + options.batch]) for i in range(0, len(problem.trees), options.batch)]
    depth = max(len(s.children) for s in steps)
    widths = [max(len(s.children[l]) for s in steps if l < len(s.children)) for l in range(depth)]
    leaves = max(len(s.leaf_words) for s in steps)
    words = max(len(set(s.leaf_words)) for s in steps)

    def padded(levels):
        """Rows of a level begin where those of the padded levels before it end."""
        unique, number = np.unique(levels.leaf_words, return_inverse=True)
        row = np.zeros(len(levels.labels), int)
        real = [len(levels.leaf_words), *(len(c) for c in levels.children)]
        start, first = 0, 0
        for count, width in zip(real, [leaves, *widths]):
            row[start : start + count] = first + np.arange(count)
            start, first = start + count, first + width
        total = leaves + sum(widths)
        labels, counts = np.zeros(total, int), np.zeros(total, bool)
        labels[row], counts[row] = levels.labels, True
        children = []
        for level, width in enumerate(widths):
            at = np.zeros((2, width), int)
            if level < len(levels.children):
                at[:, : len(levels.children[level])] = row[levels.children[level].T]
            children.append((at[0], at[1]))
        table = np.full(words, problem.words, int)  # beyond the table: reads clamp, writes are dropped
        table[: len(unique)] = unique
        leaf_words = np.zeros(leaves, int)
        leaf_words[: len(number)] = number
        return {"table": table, "leaf_words": leaf_words, "labels": labels, "counts": counts, "children": children}

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(w, squares, example):
        rows = lambda t: t.at[example["table"]].get(mode="clip")
        own, own_squares = w | {"words": rows(w["words"])}, squares | {"words": rows(squares["words"])}
        value, gradient = jax.value_and_grad(loss)(own, example)
        own_squares = jax.tree.map(lambda s, g: s + g * g, own_squares, gradient)
        own = jax.tree.map(lambda x, g, s: x - problem.rate * g / (jnp.sqrt(s) + 1e-10), own, gradient, own_squares)
        back = lambda t, new: t.at[example["table"]].set(new, mode="drop")
        return value, own | {"words": back(w["words"], own["words"])}, own_squares | {
            "words": back(squares["words"], own_squares["words"])}

    kept = [jax.tree.map(jnp.asarray, problem.weights)]
    kept.append(jax.tree.map(jnp.zeros_like, kept[0]))
    prepared = iter([jax.tree.map(jnp.asarray, padded(s)) for s in steps])

    def advance(example):
        value, kept[0], kept[1] = step(kept[0], kept[1], example)
        return value

    treelstm_data.measure(problem, options.batch, lambda trees: next(prepared), advance)


main()
