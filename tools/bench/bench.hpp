// The benchmark programs, one function a file. Each prints its own table and returns an exit status.
#pragma once

namespace lantern::bench {

/// The ADBench problems: each form's time over the plain objective's. Status 1 where a form gives wrong
/// results.
int bench_adbench(int argc, char** argv);

/// Processor seconds of builds by lanternc: a first one, and others after small changes.
int bench_builds(int argc, char** argv);

/// Delimited control: nanoseconds for a shift and its resumption, for a reset, for a perform.
int bench_control(int argc, char** argv);

/// Loops, recursions, trees and continuations of great depth: time and memory, each in a process of its own.
/// Status 1 where one fails or gives a wrong result.
int bench_deep(int argc, char** argv);

/// Scaling of a domain decomposition over ranks: measured under mpirun, and by a model of messages.
int bench_distributed(int argc, char** argv);

/// Programs as g++ and clang++ make them of --emit=cpp, over lanternc's own code. Status 1 where a value differs.
int bench_emitted(int argc, char** argv);

/// compile(): milliseconds to the first call by tier, and memory over many compilations. `--quick`: fewer.
int bench_jit(int argc, char** argv);

/// Ordinary kernels: gradient and objective over the same loops in plain C++, beside goals. Status 1 where one
/// fails or gives a wrong result.
int bench_kernels(int argc, char** argv);

/// The asymptotic experiment of the thesis for every AD mode, eager and staged; memory of checkpoints. Status 1
/// where a result is wrong.
int bench_modes(int argc, char** argv);

/// The series benchmark of the thesis: evaluation, forward and reverse for n up to 10^8. Status 1 where a
/// result is wrong.
int bench_series(int argc, char** argv);

/// Gradients of loops whose data underflow, without subnormal numbers and with them. Status 1 where they differ.
int bench_subnormals(int argc, char** argv);

/// Programs over tensors: values and gradients over copies of their arguments and results. Status 1 where a result is
/// not finite.
int bench_tensors(int argc, char** argv);

/// Training of a TreeLSTM by single trees and by batches. Status 1 where the losses of two forms differ after a step.
int bench_trees(int argc, char** argv);

}  // namespace lantern::bench
