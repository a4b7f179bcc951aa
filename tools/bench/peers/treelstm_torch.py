#!/usr/bin/env python3
"""The model of samples/treelstm_model.hpp in PyTorch, eagerly, one tree and one step of Adagrad at a time, as JSON.

Usage: treelstm_torch.py [--data DIR] [--trees N] [--epochs N] [--apart]. One thread. Embedding gradients
are sparse. Needs torch: pip install torch==2.15.0.
"""
import torch
from torch import nn

import treelstm_data

torch.set_num_threads(1)
torch.manual_seed(1)


class TreeLstm(nn.Module):
    def __init__(self, words, embedding, hidden, classes):
        super().__init__()
        self.hidden = hidden
        self.words = nn.Embedding(words, embedding, sparse=True)
        self.leaf = nn.Linear(embedding, 3 * hidden)
        self.inner = nn.Linear(2 * hidden, 5 * hidden)
        self.scores = nn.Linear(hidden, classes)
        nn.init.uniform_(self.words.weight, -(embedding**-0.5), embedding**-0.5)
        with torch.no_grad():
            self.inner.bias[3 * hidden :] = 1

    def state(self, gates, *kept):
        """What a node shows and keeps, from its gates and what it keeps of its children."""
        i, o, u = gates[..., : 3 * self.hidden].chunk(3, -1)
        cell = i.sigmoid() * u.tanh()
        for forget, child in zip(gates[..., 3 * self.hidden :].split(self.hidden, -1), kept):
            cell = torch.addcmul(cell, forget.sigmoid(), child)
        return o.sigmoid() * cell.tanh(), cell

    def inner_state(self, left, right):
        return self.state(self.inner(torch.cat((left[0], right[0]))), left[1], right[1])

    def loss(self, words, labels, nodes):
        """Leaves go through their layer at once, and so do the scores of all nodes."""
        leaves = zip(*(part.unbind(0) for part in self.state(self.leaf(self.words(words)))))
        states = []
        for _, word, left, right in nodes:
            states.append(next(leaves) if word >= 0 else self.inner_state(states[left], states[right]))
        scores = self.scores(torch.stack([hidden for hidden, _ in states]))
        return nn.functional.cross_entropy(scores, labels, reduction="sum")

    def loss_apart(self, words, labels, nodes):
        """Each node by itself."""
        states, leaf, total = [], 0, 0
        for k, (_, word, left, right) in enumerate(nodes):
            if word >= 0:
                states.append(self.state(self.leaf(self.words(words[leaf]))))
                leaf += 1
            else:
                states.append(self.inner_state(states[left], states[right]))
            total = total + nn.functional.cross_entropy(self.scores(states[-1][0]), labels[k])
        return total


def main():
    options = treelstm_data.options(__doc__.split("\n")[0])
    trees, words = treelstm_data.read_trees(options.data, options.trees)
    model = TreeLstm(words, options.embedding, options.hidden, 5)
    optimiser = torch.optim.Adagrad(model.parameters(), lr=options.rate)
    examples = []
    for nodes in trees:
        words_of = [word for _, word, _, _ in nodes if word >= 0]
        examples.append((torch.tensor(words_of), torch.tensor([label for label, _, _, _ in nodes]), nodes))

    def step(example):
        optimiser.zero_grad()
        loss = model.loss_apart(*example) if options.apart else model.loss(*example)
        loss.backward()
        optimiser.step()
        return loss.item()

    treelstm_data.measure("torch " + torch.__version__, examples, len(examples), options.epochs, step)


main()
