// The problems of ADBench: every form's time over the plain objective's, both measured in the same rounds.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "bench.hpp"
#include "calibration.hpp"
#include "model.hpp"
#include "model_ba.hpp"
#include "model_gmm.hpp"
#include "model_hand.hpp"
#include "model_lstm.hpp"
#include "options.hpp"
#include "problem.hpp"

namespace lantern::bench {
namespace {

/// The programs that are measured: those with independent loops in several threads as well. What a character
/// model does with a sequence is a recurrence: no thread can begin in the middle.
Models models(int threads) {
  return {[=](const auto& in, const auto& problem) { return gmm_forms(in, problem, threads); },
          [=](const auto& in, const auto& problem) { return ba_forms(in, problem, threads); }, lstm_forms,
          [=](const auto& in, const auto& problem) { return hand_forms(in, problem, threads); }};
}

/// How much faster a form that uses several threads is than the same form with one; nothing for others.
std::optional<double> speedup(const Problem& problem, std::size_t form, int threads,
                              const std::vector<Timing>& timings) {
  for (std::size_t i = 0; i < problem.forms.size() && threads > 1; ++i)
    if (problem.forms[form].name == in_threads(problem.forms[i].name, threads))
      return ratio(timings[i + 1], timings[form + 1]);
  return std::nullopt;
}

/// The rows of one problem: the reference, then each form beside it. The calibration kernel takes part in the
/// rounds: `rescaled_ms` is what the time comes to on the reference machine.
std::vector<Row> measure(const Problem& problem, const Options& given, int& wrong) {
  const TimingOptions options = given.timing();
  std::vector<Callable> forms{calibration_kernel};
  for (const Form& form : problem.forms) {
    if (const std::string what = form.check ? form.check() : ""; !what.empty()) {
      fmt::print(stderr, "bench: {} {}: {}\n", problem.name, form.name, what);
      ++wrong;
    }
    forms.push_back(form.run);
  }
  const std::vector<Timing> timings = paired(forms, problem.reference, options);
  const Timing& kernel = timings.front();
  const double reference_ms = kernel.reference_ms;
  // Medians of ratios, so that the machine's state while a problem was measured does not matter.
  const double rescaled = calibration_kernel_ms(kReferenceMachine) / kernel.ratio;
  std::vector<Row> rows{
      row(problem.name, "reference", {reference_ms, reference_ms, 1.0}, {{"rescaled_ms", rescaled}})};
  if (const auto known = reference_machine_ms(problem.name))
    rows.front().extra.emplace_back("reference_machine_ms", *known);
  for (std::size_t i = 0; i < problem.forms.size(); ++i) {
    const Timing& timing = timings[i + 1];
    Extras extra{{"rescaled_ms", timing.ratio * rescaled}};
    if (const auto times = speedup(problem, i, given.threads, timings)) extra.emplace_back("speedup", *times);
    if (problem.forms[i].extras)
      for (auto& e : problem.forms[i].extras()) extra.push_back(std::move(e));
    rows.push_back(row(problem.name, problem.forms[i].name, timing, std::move(extra)));
  }
  return rows;
}

/// Bars of the ratios where there are forms, else of the references' milliseconds.
std::string plot(const std::vector<Row>& rows) {
  const bool only_references =
      std::all_of(rows.begin(), rows.end(), [](const Row& r) { return r.form == "reference"; });
  std::vector<Row> shown = rows;
  if (!only_references) std::erase_if(shown, [](const Row& r) { return r.form == "reference"; });
  return bar_plot("ADBench", only_references ? "ms" : "time over the plain objective's", shown,
                  [&](const Row& r) { return only_references ? r.ms : r.ratio; });
}

}  // namespace

int bench_adbench(int argc, char** argv) {
  int status = 0;
  const auto options = parse_options(
      argc, argv, "times of the ADBench problems over the plain objective's",
      "input files, or names of problems as ba1; default: all whose values are known", status, true);
  if (!options) return status;

  std::vector<std::filesystem::path> files;
  for (const std::string& name : options->files) files.push_back(input_file(name));
  if (files.empty()) files = known_files(adbench_folder());
  fmt::print("{}\n", calibrate(options->timing()).str());

  std::vector<Row> rows;
  int wrong = 0;
  for (const auto& file : files) {
    const auto more = measure(load_problem(file, models(options->threads)), *options, wrong);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  fmt::print("{}", table(rows));
  if (!options->json.empty()) write_file(options->json, json(rows));
  if (!options->svg.empty()) write_file(options->svg, plot(rows));
  return wrong == 0 ? 0 : 1;
}

}  // namespace lantern::bench
