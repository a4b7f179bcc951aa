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

/// Lets ranks meet in other orders, for tests: a wait of up to LANTERN_DISTRIBUTED_DELAYS microseconds, the same in
/// each run.
long longest_delay() {
  static const long most = [] {
    const char* const text = std::getenv("LANTERN_DISTRIBUTED_DELAYS");
    return text == nullptr ? 0 : std::atol(text);
  }();
  return most;
}
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

World* found(const char*& failure, const Call& call) {
  std::string why;
  World* const world = World::get(why);
  if (world == nullptr) failure = refusal(call, 0, why);
  return world;
}

}  // namespace

const char* kind_name(Kind kind) {
  constexpr const char* names[] = {"double", "float", "int64_t", "int32_t", "bool"};
  return names[static_cast<std::size_t>(kind)];
}
const char* operation_name(std::int64_t operation) {
  constexpr const char* names[] = {"all_reduce", "reduce", "broadcast", "gather", "all_gather", "scatter",
                                   "reduce_scatter", "all_to_all", "scan", "scan", "scan", "scan", "send_receive",
                                   "all_to_all", "deterministic_sum", "barrier", "split", "end", "rank", "size", "Grid"};
  return names[operation];
}
bool reduces(std::int64_t operation) {
  return operation == distributed_all_reduce || operation == distributed_reduce ||
         operation == distributed_reduce_scatter ||
         (operation >= distributed_scan && operation <= distributed_reverse_exclusive_scan);
}

std::size_t size_of(Kind kind) {
  constexpr std::size_t sizes[] = {8, 4, 8, 4, 1};
  return sizes[static_cast<std::size_t>(kind)];
}
MpiType type_of(const Mpi& mpi, Kind kind) {
  const MpiType types[] = {mpi.f64, mpi.f32, mpi.i64, mpi.i32, mpi.boolean};
  return types[static_cast<std::size_t>(kind)];
}

MpiOp op_of(const Mpi& mpi, Kind kind, std::int64_t reduction) {
  const MpiOp ops[] = {mpi.op_sum, mpi.op_product, mpi.op_min, mpi.op_max};
  if (kind == Kind::boolean) return reduction == distributed_min ? mpi.op_and : mpi.op_or;
  return ops[reduction];
}

std::string Call::message(const std::string& what) const {
  return std::string(op.place) + (*op.place ? ": error: " : "") + "distributed::" + op.name + ": " + what;
}
const char* Call::fail(const std::string& what) const {
  return kept(alone() ? message(what) : world->fail(op, message(what)));
}

Call call_of(const char* place, std::int64_t number, std::int32_t operation) {
  Call call;
  call.op = {operation_name(operation), place};
  call.operation = operation;
  World* const world = World::known();
  call.world = world != nullptr ? world : found(call.failure, call);
  if (call.world == nullptr) return call;
  call.group = call.world->communicator(number);
  if (call.group == nullptr || (operation < operation_rank && !call.world->is_ready())) [[unlikely]]
    call.failure = refusal(call, number, "");
  else if (operation < operation_rank && longest_delay() > 0) [[unlikely]]
    delay(call.world->rank());
  return call;
}

void end_if(const char* message) {
  if (message == nullptr) return;
  if (lantern_fail != nullptr) lantern_fail(message);
  std::fprintf(stderr, "%s\n", message);
  std::exit(1);
}

}  // namespace lantern::distributed
