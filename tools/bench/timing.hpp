// Times of several callables, measured so that they can be compared on a machine that is not quiet.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lantern::bench {

using Callable = std::function<void()>;

/// What a measurement reads: the time that passes, or the processor time of the calling thread, to which
/// other processes on the machine add less. The latter is for work of one thread.
enum class Clock { elapsed, processor };

struct TimingOptions {
  double minimum_ms = 5;  ///< a measurement repeats its callable until it has taken this long
  int repeats = 31;       ///< measurements of each callable
  double limit_ms =
      20'000;  ///< no further round begins once all rounds have taken this long; at least three do

  Clock clock = Clock::elapsed;

  /// For a look rather than a result.
  static TimingOptions quick() { return {.minimum_ms = 1, .repeats = 15, .limit_ms = 1'500}; }
};

/// Medians over the rounds of one run.
struct Timing {
  double ms = 0;                    ///< of one call
  double reference_ms = 0;          ///< of one call of the reference, in the same rounds
  double ratio = 0;                 ///< median of the rounds' ratios: what slows both cancels out
  std::vector<double> rounds = {};  ///< of one call in each round
};

/// Milliseconds of one execution.
double once_ms(const Callable& f);

/// Measures in rounds: the reference, then each form in turn, so that a change of the machine's speed meets
/// all of them. Each is called before, unmeasured. A measurement of elapsed time in which the process waited
/// for a processor is repeated, a few times. One Timing a form, in order.
std::vector<Timing> paired(const std::vector<Callable>& forms, const Callable& reference,
                           const TimingOptions& options = {});
/// The same for a single form.
Timing paired(const Callable& form, const Callable& reference, const TimingOptions& options = {});

/// Median of the rounds' ratios of two forms measured in the same run.
double ratio(const Timing& form, const Timing& other);

/// The middle value; of an even number of values the mean of the two in the middle. Error where there is
/// none.
double median(std::vector<double> values);

}  // namespace lantern::bench
