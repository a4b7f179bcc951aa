// Shares of time for two numbers of ranks.
#include "message_times.hpp"

#include <fmt/format.h>

#include "lantern/runtime/distributed/log_gp.hpp"

namespace lantern::tool {

namespace {

/// What two processes of one machine need (docs/distributed.md, Figures), and a core for one operation of arithmetic.
constexpr distributed::LogGp model{.latency = 0.5e-6, .seconds_a_byte = 0.25e-9};
constexpr double seconds_an_operation = 0.3e-9;
constexpr double few_operations = 4, many_operations = 1000;

std::string time_text(double seconds) {
  return seconds >= 1e-3 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} us", 1e6 * seconds);
}

}  // namespace

std::vector<std::string> shares_of_time(const std::vector<Message>& messages, double arithmetic) {
  const auto time = [](const Message& m, double ranks) { return m.times * model.operation(m.operation, m.bytes, ranks); };
  double whole_few = arithmetic * seconds_an_operation, whole_many = whole_few;
  for (const Message& m : messages) whole_few += time(m, few_operations), whole_many += time(m, many_operations);
  std::vector<std::string> lines{fmt::format(
      "by a model: {} a message and {:.3g} GB/s, {:.1f} ns an operation of arithmetic; what is not known of sizes and iterations counts as {}",
      time_text(model.latency), 1e-9 / model.seconds_a_byte, 1e9 * seconds_an_operation, unknown_count)};
  const auto line = [&](const std::string& what, double here, double there) {
    lines.push_back(fmt::format("{}: {}, {:.0f} % of the time on {} ranks; {}, {:.0f} % on {}", what, time_text(here),
                                whole_few > 0 ? 100 * here / whole_few : 0, few_operations, time_text(there),
                                whole_many > 0 ? 100 * there / whole_many : 0, many_operations));
  };
  for (const Message& m : messages) line(m.text, time(m, few_operations), time(m, many_operations));
  line("arithmetic of a rank", arithmetic * seconds_an_operation, arithmetic * seconds_an_operation);
  return lines;
}

}  // namespace lantern::tool
