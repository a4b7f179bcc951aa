// Work in a process of its own: its memory is measured alone, and a crash of it is a result.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lantern::bench {

struct ChildResult {
  std::vector<double> values;   ///< what the work returned
  std::int64_t peak_bytes = 0;  ///< the most that was resident at one time
  std::string failure;          ///< empty: it worked; else the exception's message, the signal, or the limit

  bool ok() const { return failure.empty(); }
};

/// Forks and runs `work` there; kills it where it holds more than `limit_bytes` of memory or takes longer
/// than `limit_seconds`. The caller's process must not have started threads.
ChildResult in_child(const std::function<std::vector<double>()>& work, std::int64_t limit_bytes,
                     double limit_seconds);

}  // namespace lantern::bench
