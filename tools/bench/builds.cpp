// What a build by lanternc costs: processor seconds of a first build and of builds after small changes, beside those of
// another lanternc in the same run.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench.hpp"
#include "lantern/codegen/toolchain/process.hpp"

namespace lantern::bench {
namespace {

namespace fs = std::filesystem;

/// A sample, and a constant of what is staged in it.
struct Subject {
  std::string_view name, constant, changed;
};
constexpr Subject subjects[] = {
    {"quickstart", "2.0 * x + x * x * x", "2.5 * x + x * x * x"},
    {"optimal_control", "0.5 * h * (force * force", "0.25 * h * (force * force"},
    {"molecular_dynamics", "D sum = 0.0;", "D sum = 0.25;"},
};

std::string read(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}
void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

void replace(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("no '" + std::string(from) + "' in the sample");
  text.replace(at, from.size(), to);
}

/// Of all child processes that have ended.
double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

class Builder {
 public:
  /// `directory`: its own, with its cache.
  Builder(std::string lanternc, fs::path directory) : lanternc_(std::move(lanternc)), directory_(std::move(directory)) {
    fs::create_directories(directory_);
    for (const auto& header : fs::directory_iterator(fs::path(LANTERN_SOURCE_DIR) / "samples"))
      if (header.path().extension() == ".hpp") fs::copy(header.path(), directory_, fs::copy_options::overwrite_existing);
  }

  double seconds(const std::string& name, const std::string& text) {
    write(directory_ / (name + ".cpp"), text);
    const std::string command = fmt::format("cd '{0}' && XDG_CACHE_HOME='{0}/cache' '{1}' {2}.cpp -o {2}", directory_.string(),
                                            lanternc_, name);
    const double before = processor_seconds();
    if (std::system(command.c_str()) != 0) throw std::runtime_error(lanternc_ + " failed on " + name);
    return processor_seconds() - before;
  }
  /// Headers are precompiled, and nothing else is known.
  void forget() {
    for (const char* part : {"results", "functions", "staged", "objects", "rewritten"})
      fs::remove_all(directory_ / "cache" / "lantern" / part);
  }

 private:
  std::string lanternc_;
  fs::path directory_;
};

}  // namespace

int bench_builds(int argc, char** argv) {
  std::optional<std::string> other;
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) quick = true;
    else if (std::strcmp(argv[i], "--beside") == 0 && i + 1 < argc) other = fs::absolute(argv[++i]).string();
    else {
      std::fprintf(stderr, "usage: bench builds [--quick] [--beside LANTERNC]\n"
                           "  processor seconds of builds by lanternc; --beside: and by another one, with their ratio\n");
      return std::strcmp(argv[i], "--help") == 0 ? 0 : 2;
    }
  }
  const codegen::TemporaryDirectory temporary;
  const fs::path& directory = temporary.path();
  std::vector<Builder> builders{{LANTERNC, directory / "this"}};
  if (other) builders.emplace_back(*other, directory / "other");

  std::printf("processor seconds of a build, headers precompiled before%s\n", other ? "; the other lanternc's; ratio" : "");
  for (const Subject& subject : subjects) {
    const std::string name(subject.name), text = read(fs::path(LANTERN_SOURCE_DIR) / "samples" / (name + ".cpp"));
    for (Builder& b : builders) {
      b.seconds(name, text);
      b.forget();
    }
    std::string now = text;
    const auto row = [&](const char* what) {
      std::vector<double> times;
      for (Builder& b : builders) times.push_back(b.seconds(name, now));
      std::printf("  %-20s %-22s %6.2f", name.c_str(), what, times[0]);
      if (other) std::printf(" %6.2f %5.2f", times[1], times[0] / times[1]);
      std::printf("\n");
      std::fflush(stdout);
    };
    row("first");
    now += "// another comment\n";
    row("a comment");
    replace(now, "int main() {", "int main() { std::size_t changed = 1; static_cast<void>(changed);");
    row("main");
    replace(now, subject.constant, subject.changed);
    row("a constant");
    if (quick) break;
  }
  return 0;
}

}  // namespace lantern::bench
