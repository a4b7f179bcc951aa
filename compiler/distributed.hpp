// One program in several processes: operations between them, each with its derivative.
//
//   #include <lantern/distributed.hpp>
//   Rep<double> misfit(Rep<Array<double>> parameters, Rep<Array<double>> data) {
//     Rep<Array<double>> here = distributed::replicate(parameters);
//     return distributed::total(local_misfit(here, data));
//   }
//
// All processes run the same program, under `mpirun -n 4 ./program`; started without mpirun it is one process, and
// needs no MPI. In process a program links with Lantern::distributed beside Lantern::lantern; lanternc links it where
// the program includes this header. Open MPI 4 is loaded when a program that mpirun started first communicates.
//
// Operations stand anywhere in a program, in loops, branches, recursion and functions, if all ranks meet the same ones
// in the same order. They keep that order, in the forward part of a derivative and, from last to first, in its backward
// part. Derivatives, to any order, are made of the same operations.
//
// All ranks together compute one function, from the arguments of all to the results of all, and differentiate it:
// `grad` on all ranks gives each rank the derivative, with respect to its own arguments, of the sum of what all ranks
// return. docs/distributed.md says what follows for cotangents, and how `total` and `replicate` differ.
//
// Environment of the processes:
//   LANTERN_DISTRIBUTED           single or mpi; without it what lanternc --distributed said, else mpi where mpirun started
//                                 the process
//   LANTERN_DISTRIBUTED_CHECKS=0  collective operations are not compared between ranks first: fewer messages
//   LANTERN_DISTRIBUTED_PATIENCE  seconds after which ranks that wait look for a deadlock; 1
//   LANTERN_DISTRIBUTED_DELAYS    each operation waits first, up to so many microseconds, to find what depends on timing
//   LANTERN_MPI                   another file than libmpi.so.40
//
// Errors: ranks that call different operations, or with different shapes; a rank that has failed or ended while others
// wait for it; ranks that all wait for each other. Every rank then raises an Error that names ranks, operations and
// lines. After it the process can no longer communicate.
#pragma once

#include "lantern/compiler/distributed/communicator.hpp"
#include "lantern/compiler/distributed/operations.hpp"
#include "lantern/compiler/distributed/training.hpp"
