// The benchmark programs, one function a file. Each prints its own table and returns an exit status.
#pragma once

namespace lantern::bench {

/// Delimited control: nanoseconds for a shift and its resumption, for a reset, for a perform.
int bench_control(int argc, char** argv);

/// compile(): milliseconds to the first call by tier, and memory over many compilations. `--quick`: fewer.
int bench_jit(int argc, char** argv);

}  // namespace lantern::bench
