// One call of an operation: what it asks for, who takes part, and how its failure ends the program's call.
#pragma once

#include <functional>
#include <string>

#include "kernels.h"
#include "world.hpp"

namespace lantern::distributed {

enum class Kind : std::int64_t { f64, f32, i64, i32, boolean };

std::size_t size_of(Kind kind);
MpiType type_of(const Mpi& mpi, Kind kind);
MpiOp op_of(const Mpi& mpi, Kind kind, std::int64_t reduction);

/// Operations that are no exchange of the table in kernels.h; the last three are of one rank, without the others.
enum : std::int32_t {
  operation_ragged = distributed_send_receive + 1,
  operation_exact_sum,
  operation_barrier,
  operation_split,
  operation_rank,
  operation_size,
  operation_grid,
};

/// What must be the same on all ranks. Sent as it lies in memory.
struct Request {
  std::int64_t operation = 0, reduction = 0, root = 0, kind = 0, n = 0;
  std::array<char, 192> place{};

  std::int64_t hash() const;
  bool same(const Request& other) const { return hash() == other.hash(); }
  std::string text() const;  ///< "all_reduce(sum) of 3 double at model.cpp:12"
};

struct Call {
  World& world;
  ProcessGroup& comm;
  Operation op;
  Request request;

  std::string message(const std::string& what) const;
  /// The same once the other ranks know.
  std::string fail(const std::string& what) const;
  std::string checked(int code) const { return code == 0 ? "" : world.fail(op, world.error(op, code)); }
};

/// Whether ranks compare what they do.
bool checks();
/// Empty once all ranks of the communicator are known to take part in the same operation.
std::string agree(const Call& call);
/// Its halves: `words` stay until it is completed.
std::string begin_agreement(const Call& call, std::array<std::int64_t, 4>& words, MpiRequest& request);
std::string end_agreement(const Call& call, std::array<std::int64_t, 4>& words, MpiRequest& request);

/// Runs `body` with the call. Null, or what went wrong, in memory that stays: no frame may own anything when end_if is
/// called.
const char* run(const char* place, std::int64_t number, std::int32_t operation,
                const std::function<std::string(Call&)>& body);
/// Ends the program's call where there is a message.
void end_if(const char* message);

}  // namespace lantern::distributed
