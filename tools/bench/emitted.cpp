// What --emit=cpp loses: programs and their gradients as g++, and clang++ where there is one, makes them of
// the emitted source, with the command that its first lines name, beside the same as lanternc compiles them
// (--emit=shared). The values must agree.
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "options.hpp"
#include "report.hpp"
#include "timing.hpp"

namespace lantern::bench {
namespace {

using codegen::find_program;
using Words = std::vector<std::string>;

constexpr std::array names{"bodies",  "stencil",    "options",    "softmax",
                           "product", "recurrence", "rosenbrock", "whole"};

struct Vector {
  double* data;
  std::int64_t size;
};

void run(const Words& command) {
  const codegen::ProcessResult result = codegen::run_process(command);
  if (result.status != 0) throw std::runtime_error(command[0] + " failed:\n" + result.err);
}

/// The flags that the emitted source names in its first lines: the line with the compiler in it.
Words named_flags(const std::string& source) {
  const std::size_t from = source.find("g++ ");
  if (from == std::string::npos)
    throw std::runtime_error("the emitted source does not say how to compile it");
  std::istringstream line(source.substr(from + 4, source.find('\n', from) - from - 4));
  Words flags;
  for (std::string word; line >> word;) flags.push_back(word);
  return flags;
}

/// A function of a loaded library by the uniform way in; calls keep their results until the next.
struct Function {
  void (*entry)(void*, const void* const*, void* const*);
  void* (*workspace)();
};

class Library {
 public:
  explicit Library(const std::string& file) : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) throw std::runtime_error(::dlerror());
  }
  Function function(const std::string& name) const {
    return {reinterpret_cast<void (*)(void*, const void* const*, void* const*)>(symbol(name + "_entry")),
            reinterpret_cast<void* (*)()>(symbol(name + "_workspace"))};
  }

 private:
  void* symbol(const std::string& name) const {
    void* s = ::dlsym(handle_, name.c_str());
    if (!s) throw std::runtime_error(::dlerror());
    return s;
  }
  void* handle_;
};

}  // namespace

int bench_emitted(int argc, char** argv) {
  int ending = 0;
  const auto options =
      parse_options(argc, argv, "emitted C++ by g++ and clang++ over lanternc's own code", "", ending);
  if (!options) return ending;
  const codegen::TemporaryDirectory directory;
  const auto file = [&](const std::string& name) { return (directory.path() / name).string(); };
  const std::string programs = LANTERN_SOURCE_DIR "/tools/bench/emitted/programs.cpp";
  run({LANTERNC, programs, "--emit=shared", "-o", file("own.so")});
  run({LANTERNC, programs, "--emit=cpp", "-o", file("emitted.cpp")});
  const Words flags = named_flags(codegen::read_file(file("emitted.cpp")));
  std::vector<std::pair<std::string, Library>> forms;
  for (const std::string compiler : {"g++", "clang++-19"}) {
    if (!find_program(compiler)) continue;
    Words command{compiler};
    for (const std::string& flag : flags)
      if (compiler == "g++" || flag != "-fno-ivopts") command.push_back(flag);
    command.insert(command.end(),
                   {"-shared", "-fPIC", file("emitted.cpp"), "-o", file(compiler + ".so"), "-lmvec", "-lm"});
    run(command);
    forms.emplace_back(compiler, Library(file(compiler + ".so")));
  }
  const Library own(file("own.so"));

  const std::int64_t n = options->quick ? 60 : 200;
  std::vector<double> x(static_cast<std::size_t>(n * n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.3 + 0.2 * std::sin(1.7 * static_cast<double>(i));
  std::vector<Row> rows;
  int status = 0;
  double logs = 0;
  for (const char* kind : {"o_", "g_"})
    for (const std::string name : names) {
      const Vector in{x.data(), name == "bodies" ? 3 * n : n * n};
      const void* const arguments[] = {&in, &n};
      double value = 0;
      Vector gradient{};
      void* const results[] = {kind[0] == 'o' ? static_cast<void*>(&value) : static_cast<void*>(&gradient)};
      const auto call = [&](const Function& f) { f.entry(f.workspace(), arguments, results); };
      const auto seen = [&](const Function& f) {
        call(f);
        if (kind[0] == 'o') return value;
        double sum = 0;
        for (std::int64_t i = 0; i < gradient.size; ++i) sum += std::abs(gradient.data[i]);
        return sum;
      };
      const Function reference = own.function(kind + name);
      for (const auto& [compiler, library] : forms) {
        const Function f = library.function(kind + name);
        const double expected = seen(reference), got = seen(f);
        if (!(std::abs(got - expected) <= 1e-9 * std::abs(expected))) {
          fmt::print(stderr, "emitted: {}{} gives {} by {}, expected {}\n", kind, name, got, compiler,
                     expected);
          status = 1;
        }
        const Timing timing = paired([&] { call(f); }, [&] { call(reference); }, options->timing());
        if (compiler == "g++") logs += std::log(timing.ratio);
        rows.push_back(row((kind[0] == 'o' ? "" : "gradient of ") + name, compiler, timing));
      }
    }
  fmt::print("{}\ngeometric mean of g++ over lanternc: {:.2f}\n", table(rows),
             std::exp(logs / static_cast<double>(2 * names.size())));
  if (!options->json.empty()) write_file(options->json, json(rows));
  if (!options->svg.empty())
    write_file(options->svg, bar_plot("What --emit=cpp loses", "time over lanternc's code", rows,
                                      [](const Row& r) { return r.ratio; }));
  return status;
}

}  // namespace lantern::bench
