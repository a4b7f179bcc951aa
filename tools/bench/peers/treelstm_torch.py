#!/usr/bin/env python3
"""The model of samples/treelstm_model.hpp in PyTorch, one thread: `bench trees --python PYTHON` runs it.

Eagerly, node by node; leaves go through their layer at once, and so do the scores of all nodes. With --levels all nodes of a
height of all trees of the step at once. Embedding gradients are sparse. Needs torch: pip install torch.
"""
import torch
from torch import nn

import treelstm_data

torch.set_num_threads(1)


class TreeLstm(nn.Module):
    def __init__(self, problem):
        super().__init__()
        for name, weight in problem.weights.items():
            if name != "words":
                setattr(self, name, nn.Parameter(torch.tensor(weight)))
        self.words = nn.Embedding.from_pretrained(torch.tensor(problem.weights["words"]), freeze=False, sparse=True)
        self.hidden = problem.hidden

    def state(self, gates, *kept):
        """What a node shows and keeps, from its gates and what it keeps of its children."""
        i, o, u = gates[..., : 3 * self.hidden].chunk(3, -1)
        cell = i.sigmoid() * u.tanh()
        for forget, child in zip(gates[..., 3 * self.hidden :].split(self.hidden, -1), kept):
            cell = torch.addcmul(cell, forget.sigmoid(), child)
        return o.sigmoid() * cell.tanh(), cell

    def leaves(self, words):
        return self.state(nn.functional.linear(self.words(words), self.leaf, self.leaf_bias))

    def inner_state(self, left, right):
        hidden = torch.cat((left[0], right[0]), -1)
        return self.state(nn.functional.linear(hidden, self.inner, self.inner_bias), left[1], right[1])

    def cross_entropy(self, hidden, labels):
        scores = nn.functional.linear(hidden, self.scores, self.scores_bias)
        return nn.functional.cross_entropy(scores, labels, reduction="sum")

    def by_node(self, trees):
        total = 0
        for words, labels, nodes in trees:
            leaves = zip(*(part.unbind(0) for part in self.leaves(words)))
            states = []
            for _, word, left, right in nodes:
                states.append(next(leaves) if word >= 0 else self.inner_state(states[left], states[right]))
            total = total + self.cross_entropy(torch.stack([hidden for hidden, _ in states]), labels)
        return total

    def by_level(self, words, labels, children):
        hidden, cell = self.leaves(words)
        for left, right in children:
            new = self.inner_state((hidden[left], cell[left]), (hidden[right], cell[right]))
            hidden, cell = torch.cat((hidden, new[0])), torch.cat((cell, new[1]))
        return self.cross_entropy(hidden, labels)


def main():
    options = treelstm_data.options(__doc__.split("\n")[0], ("--levels", "all nodes of a height at once"))
    problem = treelstm_data.Problem(options.problem)
    model = TreeLstm(problem)
    optimiser = torch.optim.Adagrad(model.parameters(), lr=problem.rate, eps=1e-10)

    def for_nodes(trees):
        words = [torch.tensor([word for _, word, _, _ in nodes if word >= 0]) for nodes in trees]
        labels = [torch.tensor([label for label, _, _, _ in nodes]) for nodes in trees]
        return [list(zip(words, labels, trees))]

    def for_levels(trees):
        levels = treelstm_data.Levels(trees)
        children = [(torch.tensor(c[:, 0]), torch.tensor(c[:, 1])) for c in levels.children]
        return torch.tensor(levels.leaf_words), torch.tensor(levels.labels), children

    def step(example):
        optimiser.zero_grad()
        loss = model.by_level(*example) if options.levels else model.by_node(*example)
        loss.backward()
        optimiser.step()
        return loss.item()

    treelstm_data.measure(problem, options.batch, for_levels if options.levels else for_nodes, step)


main()
