#!/usr/bin/env python3
"""The model of samples/treelstm_model.hpp in DyNet, one thread: `bench trees --python PYTHON` runs it.

Without --autobatch leaves of a tree go through their layer at once, and so do the scores of its nodes; with it each node is
written by itself, and DyNet batches equal operations. Gradients of the table are sparse. Needs DyNet: pip install dyNET38.
"""
import dynet_config

import treelstm_data

options = treelstm_data.options(__doc__.split("\n")[0], ("--autobatch", "DyNet batches equal operations when it runs"))
dynet_config.set(random_seed=1, mem=512, autobatch=int(options.autobatch))
import dynet as dy  # after its configuration


def main():
    problem = treelstm_data.Problem(options.problem)
    n, w = problem.hidden, problem.weights
    model = dy.ParameterCollection()
    table = model.lookup_parameters_from_numpy(w["words"])
    linear = lambda name: [model.parameters_from_numpy(w[name + "_bias"]), model.parameters_from_numpy(w[name])]
    leaf, inner, scores = linear("leaf"), linear("inner"), linear("scores")
    trainer = dy.AdagradTrainer(model, learning_rate=problem.rate, eps=1e-20)
    trainer.set_sparse_updates(True)
    trainer.set_clip_threshold(0)

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

    def loss_by_node(nodes):
        states, losses = [], []
        for label, word, left, right in nodes:
            if word >= 0:
                states.append(state(dy.affine_transform([*leaf, table[word]])))
            else:
                states.append(inner_state(states[left], states[right]))
            losses.append(dy.pickneglogsoftmax(dy.affine_transform([*scores, states[-1][0]]), label))
        return dy.esum(losses)

    def step(trees):
        dy.renew_cg()
        loss = dy.esum([loss_by_node(nodes) if options.autobatch else loss_at_once(nodes) for nodes in trees])
        value = loss.value()
        loss.backward()
        trainer.update()
        return value

    treelstm_data.measure(problem, options.batch, lambda trees: trees, step)


main()
