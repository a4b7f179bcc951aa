// Compiled with the flags of the reference objectives.
#include "calibration.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <map>

namespace lantern::bench {
namespace {

constexpr std::size_t kArguments = 1000;

/// Arguments 0.5 ... 1.5, where none of the functions takes a short cut.
const std::array<double, kArguments>& arguments() {
  static const auto values = [] {
    std::array<double, kArguments> x{};
    for (std::size_t i = 0; i < kArguments; ++i) x[i] = 0.5 + 1e-3 * static_cast<double>(i);
    return x;
  }();
  return values;
}

template <class F>
void map(F f) {
  static std::array<double, kArguments> results;
  const auto& x = arguments();
  for (std::size_t i = 0; i < kArguments; ++i) results[i] = f(x[i]);
  asm volatile("" : : "r"(results.data()) : "memory");  // the results count as used
}

void exps() {
  map([](double x) { return std::exp(x); });
}
void logs() {
  map([](double x) { return std::log(x); });
}
void tanhs() {
  map([](double x) { return std::tanh(x); });
}

}  // namespace

void calibration_kernel() {
  exps();
  logs();
  tanhs();
}

double calibration_kernel_ms(const Calibration& machine) { return machine.sum() * kArguments * 1e-6; }

Calibration calibrate(const TimingOptions& options) {
  const std::vector<Timing> timings = paired({exps, logs, tanhs}, calibration_kernel, options);
  const auto ns = [](const Timing& t) { return t.ms * 1e6 / kArguments; };
  return {ns(timings[0]), ns(timings[1]), ns(timings[2])};
}

std::optional<double> reference_machine_ms(const std::string& problem) {
  static const std::map<std::string, double> known{
      {"gmm_d2_K200", 2.14},        {"gmm_d10_K25", 1.51},
      {"gmm_d20_K50", 5.66},        {"gmm_d64_K25", 11.2},
      {"gmm_d128_K25", 36},         {"ba1", 0.79},
      {"lstm_l2_c1024", 1.15},      {"lstm_l4_c4096", 9.55},
      {"hand_simple_hand4", 0.039}, {"hand_complicated_hand6", 0.041}};
  const auto at = known.find(problem);
  return at == known.end() ? std::nullopt : std::optional(at->second);
}

double Calibration::factor() const { return sum() / kReferenceMachine.sum(); }

std::string Calibration::str() const {
  return fmt::format(
      "calibration: exp {:.1f} ns, log {:.1f} ns, tanh {:.1f} ns (reference machine {:.1f}, {:.1f}, {:.1f}): "
      "times here are {:.2f} of the reference machine's",
      exp, log, tanh, kReferenceMachine.exp, kReferenceMachine.log, kReferenceMachine.tanh, factor());
}

}  // namespace lantern::bench
