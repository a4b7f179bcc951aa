#!/usr/bin/env python3
"""Steps of training samples/mnist_cnn.cpp's network by torch's DistributedDataParallel (gloo): on one process, and on all.

Usage: distributed_torch.py [--ranks N] [--batch N] [--rounds N]. The batch is that of all processes together; one thread each,
random pictures. Prints JSON: seconds of a step on one and on all, in turn, and the median of their ratios.
Needs torch: pip install torch==2.15.0.
"""
import argparse
import json
import os
import statistics
import time

import torch
from torch import distributed, multiprocessing
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from models_torch import mnist_cnn

STEPS = 4


def work(rank, options, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.manual_seed(1)
    distributed.init_process_group("gloo", rank=rank, world_size=options.ranks)

    def trainer(model, count):
        optimiser = torch.optim.Adam(model.parameters(), 1e-3)
        images, labels = torch.randn(count, 1, 28, 28), torch.randint(0, 10, (count,))

        def steps():
            start = time.perf_counter()
            for _ in range(STEPS):
                optimiser.zero_grad()
                loss = functional.cross_entropy(model(images), labels)
                loss.backward()
                optimiser.step()
                loss.item()
            return (time.perf_counter() - start) / STEPS

        return steps

    alone = trainer(mnist_cnn(), options.batch)
    together = trainer(DistributedDataParallel(mnist_cnn()), options.batch // options.ranks)
    one, several = [], []
    for _ in range(options.rounds + 1):
        distributed.barrier()  # gloo's processes sleep in it
        if rank == 0:
            one.append(alone())
        distributed.barrier()
        several.append(together())
    if rank == 0:
        ratios = [a / b for a, b in zip(one[1:], several[1:])]
        print(json.dumps({"one": statistics.median(one[1:]), "all": statistics.median(several[1:]),
                          "ratio": statistics.median(ratios)}))  # fmt: skip
    distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    multiprocessing.spawn(work, (options, 29500 + os.getpid() % 2000), nprocs=options.ranks)


if __name__ == "__main__":
    main()
