// One call of an operation: who takes part, what it asks for, and how its failure ends the program's call.
//
// A failure may come from within the engine, while an operation waits. It then jumps over the frames in between: they own
// nothing. What is found wrong before is a text, which is copied to memory that stays before the program's call ends.
#pragma once

#include <limits>
#include <string>

#include "agreement.hpp"
#include "kernels.h"
#include "world.hpp"

namespace lantern::distributed {

enum class Kind : std::int64_t { f64, f32, i64, i32, boolean };

inline constexpr std::size_t sizes[] = {8, 4, 8, 4, 1};
inline std::size_t size_of(Kind kind) { return sizes[static_cast<std::size_t>(kind)]; }
inline MpiType type_of(const Mpi& mpi, Kind kind) { return mpi.types[static_cast<std::size_t>(kind)]; }
inline MpiOp op_of(const Mpi& mpi, Kind kind, std::int64_t reduction) {
  if (kind == Kind::boolean) [[unlikely]] return reduction == distributed_min ? mpi.op_and : mpi.op_or;
  return mpi.ops[reduction];
}

/// Operations that are no exchange of the table in kernels.h; the last three are of one rank, without the others.
enum : std::int32_t {
  operation_ragged = distributed_send_receive + 1,
  operation_exact_sum,
  operation_barrier,
  operation_split,
  operation_gpu,
  operation_end,
  operation_rank,
  operation_size,
  operation_grid,
};
inline constexpr const char* operation_names[] = {"all_reduce", "reduce", "broadcast", "gather", "all_gather", "scatter",
                                                  "reduce_scatter", "all_to_all", "scan", "scan", "scan", "scan",
                                                  "send_receive", "all_to_all", "deterministic_sum", "barrier", "split",
                                                  "program of a GPU", "end", "rank", "size", "Grid"};
inline const char* operation_name(std::int64_t operation) { return operation_names[operation]; }
const char* kind_name(Kind kind);
bool reduces(std::int64_t operation);
/// Whether it has a root.
inline bool is_rooted(std::int64_t operation) {
  return operation == distributed_reduce || operation == distributed_broadcast || operation == distributed_gather ||
         operation == distributed_scatter;
}

struct Call {
  World* world = nullptr;
  ProcessGroup* group = nullptr;
  Operation op{"", ""};
  std::int64_t operation = 0;
  const char* failure = nullptr;  ///< why there is none

  const Mpi& mpi() const { return world->mpi(); }
  bool alone() const { return world->alone(); }
  std::string message(const std::string& what) const;
  /// The same once the other ranks know.
  [[gnu::cold]] const char* fail(const std::string& what) const;

  /// All ranks of the group do this; it has begun.
  void begin(const Entry& entry) const {
    Log& log = group->log;
    log.add(entry);
    // Not `op`: what was written in two halves a moment ago and is read as one has to be waited for.
    world->begin({{operation_name(entry.operation()), entry.place}, group, ++log.steps});
  }
  /// It has ended, with this code of the engine; null, or what went wrong.
  const char* end(int code) const {
    if (code != 0) [[unlikely]] return broken(*world, *group, op, code);
    world->end();
    if (group->log.is_due() && checks()) [[unlikely]] return compare(*world, *group);
    return nullptr;
  }
};

/// Lets ranks meet in other orders, for tests: how long an operation may wait before it begins, in microseconds.
long longest_delay();
/// The first call of all, one that may not be made, and one that is delayed.
[[gnu::cold]] Call prepared(const char* place, std::int64_t number, std::int32_t operation);

/// Who takes part.
inline Call call_of(const char* place, std::int64_t number, std::int32_t operation) {
  World* const world = World::known();
  ProcessGroup* const group = world != nullptr ? world->communicator(number) : nullptr;
  if (group == nullptr || !world->is_ready()) [[unlikely]] return prepared(place, number, operation);
  return {world, group, {operation_name(operation), place}, operation};
}

/// What is wrong with the arguments of an exchange (kernels.h), else null.
[[gnu::cold]] const char* refused(const Call& call, std::int64_t a, std::int64_t b, std::int64_t n);
inline const char* wrong_arguments(const Call& call, std::int64_t a, std::int64_t b, std::int64_t n) {
  const bool pair = call.operation == distributed_send_receive;
  const std::int64_t size = call.group->size;
  const auto wrong = [&](std::int64_t rank) { return rank < (pair ? -1 : 0) || rank >= size; };
  const bool bad = (pair && (wrong(a) || wrong(b))) || (is_rooted(call.operation) && wrong(a)) ||
                   n * size > std::numeric_limits<int>::max();
  return bad ? refused(call, a, b, n) : nullptr;
}
/// How many parts of n elements an exchange reads and writes on each rank.
struct Parts {
  std::size_t read = 1, written = 1;
};
inline Parts parts_of(std::int64_t operation, int size) {
  const auto all = static_cast<std::size_t>(size);
  const bool both = operation == distributed_all_to_all;
  return {both || operation == distributed_scatter || operation == distributed_reduce_scatter ? all : 1,
          both || operation == distributed_gather || operation == distributed_all_gather ? all : 1};
}
/// An exchange on memory of the host.
const char* exchange(Kind kind, const char* place, std::int64_t comm, std::int32_t operation, std::int32_t reduction,
                     std::int64_t a, std::int64_t b, std::int64_t n, const void* x, void* y);
/// A message to rank `to` of the group, and one from rank `from`, are noted; -1: none. What this rank then waits for.
inline Current note_message(const Call& call, const Entry& entry, int to, int from) {
  ProcessGroup& group = *call.group;
  const auto rank = [](int r) { return static_cast<std::size_t>(r); };
  Current current{call.op, &group, 0, {-1, -1}};
  if (to >= 0) {
    current.peers[0] = group.world[rank(to)];
    Messages& all = group.messages;
    all.last[all.count++ % Messages::kept] = {to, ++all.to[rank(to)], entry};
  }
  if (from >= 0) {
    current.peers[1] = group.world[rank(from)];
    ++group.messages.from[rank(from)];
  }
  return current;
}
/// This rank sends to itself without receiving, or the other way around.
[[gnu::cold]] const char* no_partner(const Call& call, bool sends);

/// The group has been split off: it gets a communicator of NCCL where the others have one. Null, or why not.
const char* connect_gpus(const Call& call, ProcessGroup& group);

/// Ends the program's call where there is a message.
void end_with(const char* message);
inline void end_if(const char* message) {
  if (message != nullptr) [[unlikely]] end_with(message);
}

}  // namespace lantern::distributed
