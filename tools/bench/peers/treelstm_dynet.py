#!/usr/bin/env python3
"""The model of samples/treelstm_model.hpp in DyNet, a step of Adagrad for each batch of trees, as JSON.

Usage: treelstm_dynet.py [--data DIR] [--trees N] [--epochs N] [--batch N] [--apart] [--autobatch]. One thread.
Gradients of the table are sparse. Needs DyNet: pip install dyNET38==2.2.
"""
import dynet_config

import treelstm_data

options = treelstm_data.options(__doc__.split("\n")[0])
dynet_config.set(random_seed=1, mem=512, autobatch=int(options.autobatch))
import dynet as dy  # after its configuration


def main():
    trees, words = treelstm_data.read_trees(options.data, options.trees)
    n, d = options.hidden, options.embedding
    model = dy.ParameterCollection()
    table = model.add_lookup_parameters((words, d), init=dy.UniformInitializer(d**-0.5))

    def linear(inputs, outputs):
        return [
            model.add_parameters((outputs,), init=0.0),
            model.add_parameters((outputs, inputs), init=dy.UniformInitializer(inputs**-0.5)),
        ]

    leaf, inner, scores = linear(d, 3 * n), linear(2 * n, 5 * n), linear(n, 5)
    bias = inner[0].as_array()
    bias[3 * n :] = 1
    inner[0].set_value(bias)
    trainer = dy.AdagradTrainer(model, learning_rate=options.rate)
    trainer.set_sparse_updates(True)

    gate = lambda gates, k: dy.pickrange(gates, k * n, (k + 1) * n)

    def state(gates, *kept):
        """What a node shows and keeps, from its gates and what it keeps of its children."""
        cell = dy.cmult(dy.logistic(gate(gates, 0)), dy.tanh(gate(gates, 2)))
        for k, child in enumerate(kept):
            cell += dy.cmult(dy.logistic(gate(gates, 3 + k)), child)
        return dy.cmult(dy.logistic(gate(gates, 1)), dy.tanh(cell)), cell

    def inner_state(left, right):
        return state(dy.affine_transform([*inner, dy.concatenate([left[0], right[0]])]), left[1], right[1])

    def loss_at_once(nodes):
        """Leaves go through their layer at once, and so do the scores of all nodes."""
        words = [word for _, word, _, _ in nodes if word >= 0]
        hidden, cell = state(dy.affine_transform([*leaf, dy.lookup_batch(table, words)]))
        states, k = [], 0
        for _, word, left, right in nodes:
            if word >= 0:
                states.append((dy.pick_batch_elem(hidden, k), dy.pick_batch_elem(cell, k)))
                k += 1
            else:
                states.append(inner_state(states[left], states[right]))
        all_scores = dy.affine_transform([*scores, dy.concatenate_to_batch([h for h, _ in states])])
        return dy.sum_batches(dy.pickneglogsoftmax_batch(all_scores, [label for label, _, _, _ in nodes]))

    def loss_apart(nodes):
        """Each node by itself."""
        states, losses = [], []
        for label, word, left, right in nodes:
            if word >= 0:
                states.append(state(dy.affine_transform([*leaf, table[word]])))
            else:
                states.append(inner_state(states[left], states[right]))
            losses.append(dy.pickneglogsoftmax(dy.affine_transform([*scores, states[-1][0]]), label))
        return dy.esum(losses)

    def step(batch):
        dy.renew_cg()
        loss = dy.esum([loss_apart(nodes) if options.apart else loss_at_once(nodes) for nodes in batch])
        value = loss.value()
        loss.backward()
        trainer.update()
        return value

    treelstm_data.measure("dyNET38 2.2", treelstm_data.batches(trees, options.batch), len(trees), options.epochs, step)


main()
