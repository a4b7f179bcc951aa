// How fast this machine is, in terms of the machine whose figures are known.
#pragma once

#include <optional>
#include <string>

#include "timing.hpp"

namespace lantern::bench {

/// Nanoseconds of one call of a function of libm, over independent arguments.
struct Calibration {
  double exp = 0, log = 0, tanh = 0;

  double sum() const { return exp + log + tanh; }
  /// Time here over time on the reference machine: divide by it to compare with the reference machine's
  /// figures.
  double factor() const;
  /// One line for the head of a report.
  std::string str() const;
};

/// The reference machine: one core of an AMD Zen 5 under Debian 12 (glibc 2.36, g++ 12).
inline constexpr Calibration kReferenceMachine{.exp = 5.4, .log = 4.2, .tanh = 14};

/// Milliseconds of the plain objective of a problem (problem.hpp) on the reference machine, where they are
/// known; of the two LSTM problems, whose times there vary by a fourth, the middle.
std::optional<double> reference_machine_ms(const std::string& problem);

/// Calls each of the three functions once for each of 1,000 arguments, scalar, as compiled by
/// -O3 -march=native. Measures in rounds with `options`.
Calibration calibrate(const TimingOptions& options = {});

/// The kernel itself: all three functions of 1,000 arguments. A reference for paired().
void calibration_kernel();
/// Its time on a machine.
double calibration_kernel_ms(const Calibration& machine);

}  // namespace lantern::bench
