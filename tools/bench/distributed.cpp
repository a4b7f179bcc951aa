// How a domain decomposition scales: measured on 1, 2, 4 and 8 ranks of this machine, and by a model on up to 4,096.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/runtime/distributed/log_gp.hpp"
#include "options.hpp"
#include "plot.hpp"
#include "report.hpp"

namespace lantern::bench {
namespace {

/// What bench_distributed writes: seconds of a step of a heat equation.
struct Measurement {
  double ranks = 0, side = 0;                 ///< strong: side x side cells in all; weak: on each rank
  double latency = 0, seconds_a_byte = 0;     ///< of a message there and one back at the same time; 0 on one rank
  double strong = 0, strong_gradient = 0, weak = 0, weak_gradient = 0;
};

Measurement on_ranks(int ranks, bool quick) {
  const codegen::TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "figures.json";
  // root: as in a container, where there is no other user.
  std::vector<std::string> command{"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", ranks > 2 ? "none" : "core",
                                   "-n", std::to_string(ranks),
                                   BENCH_DISTRIBUTED, "--figures", file.string()};
  if (quick) command.emplace_back("--quick");
  if (ranks != 2) command.emplace_back("--steps");  // the model's messages are those of 2 ranks
  const codegen::ProcessResult result = codegen::run_process(command);
  std::ifstream in(file);
  const auto figures = nlohmann::json::parse(in, nullptr, false);
  if (result.status != 0 || figures.is_discarded())
    throw std::runtime_error(fmt::format("mpirun -n {} failed:\n{}{}", ranks, result.out, result.err));
  if (ranks == 2) fmt::print("{}\n", result.out);
  const auto number = [&](const char* name) { return figures.at(name).get<double>(); };
  return {number("ranks"), number("side"), number("latency"), number("seconds_a_byte"), number("strong"),
          number("strong_gradient"), number("weak"), number("weak_gradient")};
}

/// A step exchanges halos of both sides along each dimension of the grid, and computes the cells of a rank.
struct Model {
  distributed::LogGp network;
  double a_cell;
  double messages(double ranks, double edge) const {
    const double exchanges = ranks == 1 ? 0 : ranks < 4 ? 2 : 4;
    return exchanges * network.message(8 * edge);
  }
  double strong(double ranks, double side) const {
    return a_cell * side * side / ranks + messages(ranks, side / std::sqrt(ranks));
  }
  double weak(double ranks, double side) const { return a_cell * side * side + messages(ranks, side); }
};

/// What peers in Python need for the same operations, and for the same training, on 2 ranks: they print it.
void peers(const std::string& python, bool quick) {
  const std::string folder = LANTERN_SOURCE_DIR "/tools/bench/peers/";
  const auto run = [&](const std::string& what, const std::vector<std::string>& command) {
    const codegen::ProcessResult result = codegen::run_process(command);
    fmt::print("{}\n{}\n", what, result.status == 0 ? result.out : "  left out:\n" + result.err);
  };
  std::vector<std::string> operations{"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "core", "-n", "2", python,
                                      folder + "distributed_mpi.py"};
  if (quick) operations.emplace_back("--quick");
  run("2 ranks, microseconds of one operation: mpi4py, mpi4jax in a loop of a jitted function", operations);
  run("MNIST CNN by torch.distributed (gloo), seconds of a step on one process and on 2",
      {python, folder + "distributed_torch.py", "--rounds", quick ? "3" : "11"});
}

/// "AMD EPYC 7742": what Linux calls the processor.
std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "an unknown processor";
}

std::string beside(double seconds) { return seconds > 0 ? fmt::format("{:.4f}", 1e3 * seconds) : ""; }

}  // namespace

int bench_distributed(int argc, char** argv) {
  int status = 0;
  const auto options = parse_options(
      argc, argv, "Scaling of a heat equation on a grid of ranks: measured with mpirun, and by a model up to 4,096 ranks.", "", status,
      false, false, true);
  if (!options) return status;
  if (!codegen::find_program("mpirun")) return fmt::print("bench distributed: there is no mpirun here, nothing is measured\n"), 0;
  std::vector<Measurement> measured;
  fmt::print("machine: {}, {} cores\n", processor(), std::thread::hardware_concurrency());
  std::fflush(stdout);
  if (!options->python.empty()) peers(options->python, options->quick);
  for (const int ranks : {1, 2, 4, 8}) measured.push_back(on_ranks(ranks, options->quick));
  const double side = measured[0].side;
  const Model model{{measured[1].latency, measured[1].seconds_a_byte}, measured[0].strong / (side * side)};

  const unsigned processors = std::thread::hardware_concurrency();
  fmt::print("{} processors; more ranks than that share them, and a step there takes as long as the operating system lets it\n",
             processors);
  fmt::print("model, of the messages of 2 ranks and the cells of 1: {:.2f} us a message, {:.2f} GB/s, {:.3f} ns a cell and step\n",
             1e6 * model.network.latency, model.network.seconds_a_byte > 0 ? 1e-9 / model.network.seconds_a_byte : 0.0, 1e9 * model.a_cell);
  fmt::print("strong: {0} x {0} cells in all; weak: {0} x {0} on each rank; ms a step of the objective\n", side);
  fmt::print("  ranks  strong: model, measured, speed-up, messages   weak: model, measured, efficiency\n");
  Series strong{"strong, model", {}}, weak{"weak, model", {}}, strong_seen{"strong, measured", {}}, weak_seen{"weak, measured", {}};
  std::vector<Row> rows;
  for (double p = 1; p <= 4096; p *= 2) {
    const auto seen = std::ranges::find(measured, p, &Measurement::ranks);
    const bool here = seen != measured.end();
    const double s = model.strong(p, side), w = model.weak(p, side);
    fmt::print("  {:>5} {:>15.4f} {:>9} {:>9.1f} {:>8.1f} % {:>13.4f} {:>9} {:>11.3f}\n", p, 1e3 * s, beside(here ? seen->strong : 0),
               model.strong(1, side) / s, 100 * model.messages(p, side / std::sqrt(p)) / s, 1e3 * w, beside(here ? seen->weak : 0),
               model.weak(1, side) / w);
    strong.points.emplace_back(p, 1e3 * s), weak.points.emplace_back(p, 1e3 * w);
    if (!here) continue;
    strong_seen.points.emplace_back(p, 1e3 * seen->strong), weak_seen.points.emplace_back(p, 1e3 * seen->weak);
    for (const bool all : {true, false})
      rows.push_back({all ? "heat, strong" : "heat, weak", fmt::format("{} ranks, value and gradient", p),
                      1e3 * (all ? seen->strong_gradient : seen->weak_gradient), 1e3 * (all ? seen->strong : seen->weak),
                      all ? seen->strong_gradient / seen->strong : seen->weak_gradient / seen->weak});
  }
  fmt::print("\n{}", table(rows));
  if (!options->json.empty()) write_file(options->json, json(rows));
  if (!options->svg.empty())
    write_file(options->svg, line_plot({"Heat equation on a grid of ranks", "ranks", "ms a step"}, {strong, strong_seen, weak, weak_seen}));
  return 0;
}

}  // namespace lantern::bench
