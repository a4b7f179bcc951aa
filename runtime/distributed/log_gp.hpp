// How long a message takes: the model LogGP of Alexandrov, Ionescu, Schauser and Scheiman (1995), with latency and overhead
// as one number, and what operations are made of by the algorithms of Thakur, Rabenseifner and Gropp (2005).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lantern/runtime/distributed/kernels.h"

namespace lantern::distributed {

/// A message of b bytes takes latency + seconds_a_byte * b seconds.
struct LogGp {
  double latency = 0, seconds_a_byte = 0;

  double message(double bytes) const { return latency + seconds_a_byte * bytes; }

  /// Seconds of an operation of runtime/distributed/kernels.h between `ranks` ranks; `bytes`: of a part, n elements.
  double operation(std::int64_t which, double bytes, double ranks) const {
    if (ranks <= 1) return 0;
    const double steps = std::ceil(std::log2(ranks)), others = ranks - 1;
    // Halves of ranks exchange halves of what they have, in both directions.
    const double halves = 2 * (steps * latency + others / ranks * seconds_a_byte * bytes);
    switch (which) {
      case distributed_all_reduce:
      case distributed_reduce:
      case distributed_broadcast: return std::min(steps * message(bytes), halves);
      case distributed_gather:
      case distributed_scatter:
      case distributed_all_gather:
      case distributed_reduce_scatter: return steps * latency + others * seconds_a_byte * bytes;
      case distributed_all_to_all: return others * message(bytes);
      case distributed_send_receive: return message(bytes);
      default: return steps * message(bytes);  // scans
    }
  }
};

}  // namespace lantern::distributed
