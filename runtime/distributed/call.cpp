// Names of operations, who takes part in one, and what ends the program's call.
#include "call.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

/// Of generated code's host (runtime/workspace.h); a program without one ends here.
extern "C" void lantern_fail(const char* message) __attribute__((weak));

namespace lantern::distributed {

namespace {

void delay(int rank) {
  static std::minstd_rand engine(static_cast<unsigned>(rank) + 1);
  std::this_thread::sleep_for(std::chrono::microseconds(engine() % static_cast<unsigned long>(longest_delay() + 1)));
}

/// What is amiss, for messages.
const char* refusal(const Call& call, std::int64_t number, const std::string& why) {
  if (!why.empty()) return kept(std::string(call.op.place) + (*call.op.place ? ": error: " : "") + "distributed: " + why);
  if (call.operation < operation_rank)
    if (const std::string e = call.world->ready(call.op); !e.empty()) return kept(e);
  return kept(call.message("there is no communicator " + std::to_string(number)));
}

}  // namespace

const char* kind_name(Kind kind) {
  constexpr const char* names[] = {"double", "float", "int64_t", "int32_t", "bool"};
  return names[static_cast<std::size_t>(kind)];
}
bool reduces(std::int64_t operation) {
  return operation == distributed_all_reduce || operation == distributed_reduce ||
         operation == distributed_reduce_scatter ||
         (operation >= distributed_scan && operation <= distributed_reverse_exclusive_scan);
}

std::string Call::message(const std::string& what) const {
  return std::string(op.place) + (*op.place ? ": error: " : "") + "distributed::" + op.name + ": " + what;
}
const char* Call::fail(const std::string& what) const {
  return kept(alone() ? message(what) : world->fail(op, message(what)));
}

long longest_delay() {
  static const long most = [] {
    const char* const text = std::getenv("LANTERN_DISTRIBUTED_DELAYS");
    return text == nullptr ? 0 : std::atol(text);
  }();
  return most;
}

Call prepared(const char* place, std::int64_t number, std::int32_t operation) {
  std::string why;
  Call call{World::get(why), nullptr, {operation_name(operation), place}, operation};
  if (call.world == nullptr) {
    call.failure = refusal(call, 0, why);
    return call;
  }
  call.group = call.world->communicator(number);
  if (call.group == nullptr) {
    call.failure = refusal(call, number, "");
  } else if (call.operation < operation_rank) {
    if (!call.world->ready(call.op).empty())
      call.failure = refusal(call, number, "");
    else if (longest_delay() > 0)
      delay(call.world->rank());
  }
  return call;
}

void end_with(const char* message) {
  if (lantern_fail != nullptr) lantern_fail(message);
  std::fprintf(stderr, "%s\n", message);
  std::exit(1);
}

}  // namespace lantern::distributed
