// bench NAME [--quick]: the measurements of the project.
#include <cstdio>
#include <exception>
#include <string_view>

#include "bench.hpp"

int main(int argc, char** argv) {
  using namespace lantern::bench;
  const struct {
    std::string_view name;
    int (*run)(int, char**);
    const char* what;
  } benchmarks[] = {
      {"adbench", bench_adbench, "the ADBench problems: every form's time over the plain objective's"},
      {"builds", bench_builds, "processor seconds of builds by lanternc; --beside LANTERNC: beside another one's"},
      {"control", bench_control, "nanoseconds of shift, reset and perform"},
      {"deep", bench_deep, "loops of 10^8 iterations, recursions and trees 10^6 deep: time and memory"},
      {"distributed", bench_distributed, "a heat equation on 1 to 8 ranks under mpirun, and by a model on up to 4,096"},
      {"emitted", bench_emitted, "programs compiled from --emit=cpp by g++ and clang++, over lanternc's own code"},
      {"jit", bench_jit, "milliseconds from compile() to the first result; memory over many compilations"},
      {"kernels", bench_kernels, "ordinary kernels: gradient and objective over the same loops in plain C++"},
      {"modes", bench_modes,
       "the thesis's experiment for every AD mode, eager and staged: order, and ratio to evaluation"},
      {"series", bench_series, "the thesis's series: evaluation, forward and reverse, time and tape by size"},
      {"subnormals", bench_subnormals,
       "loops whose data underflow, beside the same with subnormal numbers kept"},
      {"tensors", bench_tensors, "programs over tensors, over copies of their arguments and results"},
      {"trees", bench_trees, "training of a TreeLSTM, node by node and level by level: sentences a second, memory, loss"},
  };
  try {
    if (argc > 1)
      for (const auto& b : benchmarks)
        if (b.name == argv[1]) return b.run(argc - 1, argv + 1);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench: %s\n", e.what());
    return 1;
  }
  if (argc > 1) std::fprintf(stderr, "bench: unknown benchmark '%s'\n", argv[1]);
  std::fprintf(stderr, "usage: bench NAME [--quick]\n");
  for (const auto& b : benchmarks) std::fprintf(stderr, "  %-11s %s\n", b.name.data(), b.what);
  return 2;
}
