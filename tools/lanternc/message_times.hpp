// What part of a program's time its messages take, by a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lantern::tool {

/// An operation between ranks.
struct Message {
  std::string text;             ///< "all_reduce at model.cpp:12"
  std::int64_t operation = 0;   ///< of runtime/distributed/kernels.h
  double bytes = 0, times = 0;  ///< of a part; how often it is done in a call
};

/// What is not known of sizes and of iterations counts as this.
inline constexpr double unknown_count = 1000;

/// The share of a call's time of each operation, and of arithmetic, by LogGP (runtime/distributed/log_gp.hpp), for a few
/// ranks and for many: a line for each. `arithmetic`: how many operations on numbers, or on vectors of them, a rank does.
std::vector<std::string> shares_of_time(const std::vector<Message>& messages, double arithmetic);

}  // namespace lantern::tool
