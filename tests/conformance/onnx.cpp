// The cases of the ONNX test suites: each folder with a model.onnx and test_data_set_N/{input,output}_i.pb is
// run and compared, with the tolerances of onnx/backend/test/runner.
//
//   build/tests/onnx_conformance /usr/share/libonnx-testdata/data/node --target=c --at-least=85
//
// A case runs in a process of its own, so that none takes the others down or keeps them waiting. The exit
// status is 1 where a case crashed or ran out of time, or fewer passed than --at-least says, in percent.
#include "lantern/onnx.hpp"

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
namespace onnx = lantern::onnx;

struct Options {
  std::vector<fs::path> folders;
  std::string target = "c", only;
  int opt = 3;
  double at_least = 0, relative = 1e-3, absolute = 1e-7;
  unsigned seconds = 60;
  bool list = false, in_process = false, exact = false;
};

/// What became of a case, and why.
struct Outcome {
  char kind = 'c';  ///< passed, failed, unsupported, crashed, out of time
  std::string text;
};

std::string difference(const onnx::Value& have, const onnx::Value& want, const Options& options) {
  if (have.is_sequence() != want.is_sequence() || have.items().size() != want.items().size() ||
      have.shape() != want.shape() || (!want.is_sequence() && have.element() != want.element()))
    return "expected " + want.describe() + ", got " + have.describe();
  for (std::size_t i = 0; i < want.items().size(); ++i)
    if (std::string d = difference(have.items()[i], want.items()[i], options); !d.empty())
      return "item " + std::to_string(i) + ": " + d;
  if (want.is_sequence() || want.element() == onnx::Element::undefined) return {};
  for (std::size_t i = 0; i < static_cast<std::size_t>(want.size()); ++i) {
    const double x = have.at(i), y = want.at(i);
    const bool floating = onnx::is_float(want.element());
    const double relative =  // two units of bfloat16 at least, as the runner of ONNX has it
        want.element() == onnx::Element::bfloat16 ? std::max(options.relative, 0x1p-6) : options.relative;
    const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                      (floating && std::abs(x - y) <= options.absolute + relative * std::abs(y));
    if (!same)
      return "element " + std::to_string(i) + " of " + want.describe() + ": expected " + std::to_string(y) +
             ", got " + std::to_string(x);
  }
  return {};
}

/// Values in the files PREFIX_0.pb, PREFIX_1.pb, ... of a data set.
std::vector<onnx::Value> values(const fs::path& set, const std::string& prefix,
                                const std::vector<onnx::ValueInfo>& declared) {
  std::vector<onnx::Value> all;
  for (const onnx::ValueInfo& v : declared) {
    const fs::path file = set / (prefix + "_" + std::to_string(all.size()) + ".pb");
    if (!fs::exists(file)) break;
    onnx::Value value = onnx::load_value(file, v);
    if (v.element == onnx::Element::bfloat16 &&
        value.element() == onnx::Element::uint16) {  // written as their bits
      onnx::Value numbers(v.element, value.shape());
      for (std::size_t i = 0; i < static_cast<std::size_t>(value.size()); ++i)
        numbers.mutable_elements<float>()[i] =
            onnx::from_bfloat_bits(static_cast<std::uint16_t>(value.integer_at(i)));
      value = std::move(numbers);
    }
    all.push_back(std::move(value));
  }
  return all;
}

Outcome run_case(const fs::path& folder, const Options& options) {
  try {
    const onnx::Model model = onnx::load(folder / "model.onnx");
    lantern::CompileOptions compile;
    compile.target = options.target == "cpp" ? lantern::Target::cpp : lantern::Target::c;
    compile.opt = options.opt;
    const onnx::Half half = options.exact ? onnx::Half::exact : onnx::Half::wide;
    const onnx::Session session =
        options.target == "eager" ? onnx::eager(model, half) : onnx::compile(model, compile, half);
    for (int n = 0; fs::exists(folder / ("test_data_set_" + std::to_string(n))); ++n) {
      const fs::path set = folder / ("test_data_set_" + std::to_string(n));
      // Some data sets have files for the inputs that initialisers stand for, too.
      std::vector<onnx::Value> given = values(set, "input", model.graph.inputs);
      std::vector<onnx::Value> in;
      if (given.size() == model.graph.inputs.size()) {
        for (std::size_t i = 0; i < given.size(); ++i)
          if (!model.graph.initialiser(model.graph.inputs[i].name)) in.push_back(std::move(given[i]));
      } else {
        in = values(set, "input", model.graph.arguments());
      }
      const std::vector<onnx::Value> have = session.run(in),
                                     want = values(set, "output", model.graph.outputs);
      for (std::size_t i = 0; i < want.size(); ++i)
        if (const std::string d = difference(have.at(i), want[i], options); !d.empty())
          return {'f', "output '" + model.graph.outputs[i].name + "': " + d};
    }
    return {'p', ""};
  } catch (const lantern::Error& e) {
    return {onnx::is_unsupported(e) ? 'u' : 'f', e.what()};
  } catch (const std::exception& e) {
    return {'c', std::string("internal error: ") + e.what()};
  }
}

/// The same in a process of its own.
Outcome run_apart(const fs::path& folder, const Options& options) {
  int ends[2];
  if (pipe(ends) != 0) return {'c', "cannot make a pipe"};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    // Of the processor, so that what else runs on the machine does not count; and an end to what only waits.
    itimerval limit{};
    limit.it_value.tv_sec = static_cast<time_t>(options.seconds);
    setitimer(ITIMER_PROF, &limit, nullptr);
    alarm(10 * options.seconds);
    const Outcome o = run_case(folder, options);
    const std::string all = o.kind + o.text;
    const bool written = write(ends[1], all.data(), all.size()) == static_cast<ssize_t>(all.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string all;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    all.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGPROF))
    return {'t', "out of time"};
  if (WIFSIGNALED(status)) return {'c', "signal " + std::to_string(WTERMSIG(status))};
  if (all.empty()) return {'c', "no answer"};
  return {all[0], all.substr(1)};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Runs the cases of ONNX test suites.");
  app.add_option("folders", options.folders, "folders of cases")->required();
  app.add_option("--target", options.target, "eager, c or cpp")->check(CLI::IsMember({"eager", "c", "cpp"}));
  app.add_option("--opt", options.opt, "optimisation level");
  app.add_option("--at-least", options.at_least, "percentage of cases that must pass");
  app.add_option("--only", options.only, "cases whose names contain this");
  app.add_option("--seconds", options.seconds, "of the processor for one case");
  app.add_option("--rtol", options.relative, "relative tolerance");
  app.add_option("--atol", options.absolute, "absolute tolerance");
  app.add_flag("--list", options.list, "the cases that did not pass, with the reason");
  app.add_flag("--exact-half", options.exact, "round numbers of half precision after each operator");
  app.add_flag("--in-process", options.in_process, "without a process for each case");
  CLI11_PARSE(app, argc, argv);

  std::map<char, int> total;
  for (const fs::path& folder : options.folders) {
    std::vector<fs::path> cases;
    for (const auto& entry : fs::directory_iterator(folder))
      if (fs::exists(entry.path() / "model.onnx") &&
          entry.path().filename().string().find(options.only) != std::string::npos)
        cases.push_back(entry.path());
    std::sort(cases.begin(), cases.end());
    std::map<char, int> count;
    for (const fs::path& c : cases) {
      const Outcome o = options.in_process ? run_case(c, options) : run_apart(c, options);
      ++count[o.kind];
      ++total[o.kind];
      static const std::map<char, const char*> words = {
          {'f', "failed"}, {'u', "unsupported"}, {'c', "CRASHED"}, {'t', "OUT OF TIME"}};
      if (o.kind != 'p' && (options.list || o.kind == 'c' || o.kind == 't'))
        std::printf("%s: %s: %s\n", c.filename().c_str(), words.at(o.kind), o.text.c_str());
    }
    std::printf("%s: %d passed, %d failed, %d unsupported, %d crashed, %d out of time, of %zu\n",
                folder.c_str(), count['p'], count['f'], count['u'], count['c'], count['t'], cases.size());
    std::fflush(stdout);
  }
  int all = 0;
  for (const auto& [kind, n] : total) all += n;
  const double share = all > 0 ? 100.0 * total['p'] / all : 0;
  std::printf("%.1f %% of %d cases passed\n", share, all);
  return total['c'] + total['t'] > 0 || share < options.at_least ? 1 : 0;
}
