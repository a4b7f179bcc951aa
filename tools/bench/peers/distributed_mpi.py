#!/usr/bin/env python3
"""Operations between processes by mpi4py, on NumPy arrays, and by mpi4jax, in a loop of a jitted function: microseconds of one.

Usage: mpirun -n 2 distributed_mpi.py [--quick]. Prints a line for each operation and size, and JSON with --figures FILE.
Needs mpi4py (built with the same MPI), jax and mpi4jax: pip install mpi4py mpi4jax.
"""
import argparse
import json
import os
import statistics
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPI4JAX_NO_WARN_JAX_VERSION", "1")
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
me, ranks = comm.rank, comm.size
after, before = (me + 1) % ranks, (me - 1) % ranks


def ring(x, y):
    comm.Sendrecv(x, dest=after, recvbuf=y, source=before)


PLAIN = {
    "all_reduce": lambda x, y: comm.Allreduce(x, y, op=MPI.MAX),
    "broadcast": lambda x, y: comm.Bcast(x, root=0),
    "scan": lambda x, y: comm.Scan(x, y, op=MPI.MAX),
    "all_to_all": lambda x, y: comm.Alltoall(x, y),
    "send_receive": ring,
}


def jax_operations():
    import jax
    import mpi4jax

    jax.config.update("jax_enable_x64", True)

    def value(result):  # older versions return a token, too
        return result[0] if isinstance(result, (tuple, list)) else result

    one = {
        "all_reduce": lambda u: mpi4jax.allreduce(u, op=MPI.MAX, comm=comm),
        "broadcast": lambda u: mpi4jax.bcast(u, 0, comm=comm),
        "scan": lambda u: mpi4jax.scan(u, MPI.MAX, comm=comm),
        "all_to_all": lambda u: mpi4jax.alltoall(u.reshape(ranks, -1), comm=comm),
        "send_receive": lambda u: mpi4jax.sendrecv(u, u, source=before, dest=after, comm=comm),
    }

    def looped(f):
        return jax.jit(lambda x, n: jax.lax.fori_loop(0, n, lambda i, u: value(f(u)).reshape(u.shape), x))

    return {name: looped(f) for name, f in one.items()}


def timed(f, times, rounds):
    f()
    seconds = []
    for _ in range(rounds):
        comm.Barrier()
        start = time.perf_counter()
        f()
        comm.Barrier()
        seconds.append((time.perf_counter() - start) / times)
    return statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--figures")
    options = parser.parse_args()
    try:
        by_jax = jax_operations()
    except ImportError as e:
        by_jax = {}
        if me == 0:
            print(f"mpi4jax: left out, {e}")
    rounds = 3 if options.quick else 11
    figures = []
    for name, plain in PLAIN.items():
        for n in (2, 1000, 100_000):
            n += -n % ranks
            times = (4 if options.quick else 40) if n > 10_000 else (100 if options.quick else 1000)
            x, y = numpy.full(n, 1.0 + me), numpy.zeros(n)

            def loop():
                for _ in range(times):
                    plain(x, y)

            row = {"operation": name, "doubles": n, "mpi4py": timed(loop, times, rounds)}
            if name in by_jax:
                row["mpi4jax"] = timed(lambda: by_jax[name](x, times).block_until_ready(), times, rounds)
            figures.append(row)
            if me == 0:
                text = "".join(f"{1e6 * row[p]:>11.2f}" if p in row else " " * 11 for p in ("mpi4py", "mpi4jax"))
                print(f"  {name:<27} {n:>7} doubles {text}", flush=True)
    if me == 0 and options.figures:
        with open(options.figures, "w", encoding="utf-8") as file:
            json.dump(figures, file)


if __name__ == "__main__":
    main()
