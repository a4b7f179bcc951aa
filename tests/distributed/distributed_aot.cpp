// Programs in several processes that lanternc builds: the same answer on any number of ranks, at each level.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"

using lantern::codegen::ProcessResult;
using lantern::codegen::run_process;

namespace {

using Words = std::vector<std::string>;

Words under_mpirun(const std::string& ranks, const Words& command) {
  Words all{LANTERN_MPIRUN, "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n", ranks};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}
std::string out_of(const Words& command) {
  const ProcessResult r = run_process(command);
  INFO(r.err);
  CHECK(r.status == 0);
  return r.out;
}

}  // namespace

TEST_CASE("lanternc: one program, alone and on several ranks") {
  const lantern::codegen::TemporaryDirectory directory;
  const std::string source = std::string(LANTERN_TEST_DIR) + "/distributed/program.cpp", program = directory.path() / "program";
  std::string first;
  for (const Words& options : {Words{"-O0"}, Words{"-O3", "--distributed=mpi"}, Words{"-O1", "--distributed=single"}}) {
    Words command{LANTERNC, source, "-o", program};
    command.insert(command.end(), options.begin(), options.end());
    out_of(command);
    const std::string alone = out_of({program});
    if (first.empty()) first = alone;
    CHECK(!alone.empty());
    CHECK(alone == first);
    if (options.back() == "--distributed=single") {
      // Each process is one by itself, and says so.
      CHECK(out_of(under_mpirun("2", {program})) == alone + alone);
      CHECK(out_of(under_mpirun("2", {"env", "LANTERN_DISTRIBUTED=mpi", program})) == alone);
    } else {
      for (const std::string ranks : {"1", "2", "3", "4"}) CHECK(out_of(under_mpirun(ranks, {program})) == alone);
    }
    if (options.back() == "--distributed=mpi") {
      const ProcessResult missing = run_process({"env", "LANTERN_MPI=/nowhere/libmpi.so", program});
      CHECK(missing.status != 0);
      CHECK(missing.err.find("the engine mpi cannot be loaded") != std::string::npos);
    }
  }
  const ProcessResult wrong = run_process({LANTERNC, source, "--distributed=tcp", "-o", program});
  CHECK(wrong.status != 0);
  CHECK(wrong.err.find("--distributed: expected mpi, nccl or single, got 'tcp'") != std::string::npos);
}
