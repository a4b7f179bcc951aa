#include "timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

#include "lantern/ir/error.hpp"

namespace lantern::bench {
namespace {

double calls_ms(const Callable& f, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double processor_ms(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

/// A measurement in which the process had a processor throughout; else the least disturbed of a few. Adds all
/// time spent to `spent`.
double undisturbed_ms(const Callable& f, int calls, double& spent) {
  constexpr int tries = 4;
  constexpr double waiting = 1.02;  // elapsed over processor time
  double best = 0, least = 0;
  for (int i = 0; i < tries; ++i) {
    const double before = processor_ms(CLOCK_PROCESS_CPUTIME_ID);
    const double ms = calls_ms(f, calls);
    const double disturbance = ms / std::max(processor_ms(CLOCK_PROCESS_CPUTIME_ID) - before, 1e-6);
    spent += ms;
    if (i == 0 || disturbance < least) best = ms, least = disturbance;
    if (least <= waiting) break;
  }
  return best;
}

double measured_ms(const Callable& f, int calls, Clock clock, double& spent) {
  if (clock == Clock::elapsed) return undisturbed_ms(f, calls, spent);
  const double before = processor_ms(CLOCK_THREAD_CPUTIME_ID);
  spent += calls_ms(f, calls);
  return processor_ms(CLOCK_THREAD_CPUTIME_ID) - before;
}

/// How many calls take `minimum_ms`, from a growing number of them.
int calls_for(const Callable& f, double minimum_ms) {
  f();
  for (int calls = 1;; calls *= 4) {
    const double ms = calls_ms(f, calls);
    if (ms >= minimum_ms) return calls;
    if (ms >= minimum_ms / 8 || calls > 1'000'000)
      return std::max(calls, static_cast<int>(std::ceil(calls * minimum_ms / std::max(ms, 1e-6))));
  }
}

}  // namespace

double once_ms(const Callable& f) { return calls_ms(f, 1); }

double median(std::vector<double> values) {
  if (values.empty()) throw Error("expected values to take the median of, got none");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::vector<Timing> paired(const std::vector<Callable>& forms, const Callable& reference,
                           const TimingOptions& options) {
  const int reference_calls = calls_for(reference, options.minimum_ms);
  std::vector<int> calls;
  for (const Callable& form : forms) calls.push_back(calls_for(form, options.minimum_ms));

  std::vector<double> reference_ms;
  std::vector<std::vector<double>> ms(forms.size()), ratios(forms.size());
  double spent = 0;
  for (int round = 0; round < options.repeats && (round < 3 || spent < options.limit_ms); ++round) {
    reference_ms.push_back(measured_ms(reference, reference_calls, options.clock, spent) / reference_calls);
    for (std::size_t i = 0; i < forms.size(); ++i) {
      ms[i].push_back(measured_ms(forms[i], calls[i], options.clock, spent) / calls[i]);
      ratios[i].push_back(ms[i].back() / reference_ms.back());
    }
  }
  std::vector<Timing> timings;
  for (std::size_t i = 0; i < forms.size(); ++i)
    timings.push_back({median(ms[i]), median(reference_ms), median(ratios[i]), ms[i]});
  return timings;
}

Timing paired(const Callable& form, const Callable& reference, const TimingOptions& options) {
  return paired(std::vector<Callable>{form}, reference, options).front();
}

double ratio(const Timing& form, const Timing& other) {
  if (form.rounds.size() != other.rounds.size())
    throw Error("expected two forms measured in the same rounds");
  std::vector<double> ratios;
  for (std::size_t i = 0; i < form.rounds.size(); ++i) ratios.push_back(form.rounds[i] / other.rounds[i]);
  return median(ratios);
}

}  // namespace lantern::bench
