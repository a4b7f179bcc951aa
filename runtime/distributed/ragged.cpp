// Rows that ranks send to each other, as many as each pair of them likes.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "call.hpp"

namespace lantern::distributed {

namespace {

/// Receives into `receive` how many rows each rank sends to this one.
const char* exchange_counts(const Call& call, std::int64_t ranks, std::int64_t rows, const std::int64_t* send,
                            std::int64_t* receive) {
  if (ranks != call.group->size)
    return call.fail("expected a count of rows for each rank: " + std::to_string(call.group->size) + " of them, got " +
                     std::to_string(ranks));
  std::int64_t sum = 0;
  for (std::int64_t r = 0; r < ranks; ++r) {
    if (send[r] < 0)
      return call.fail("expected counts of 0 or more, got " + std::to_string(send[r]) + " for rank " + std::to_string(r));
    sum += send[r];
  }
  if (sum != rows)
    return call.fail("expected counts whose sum is the " + std::to_string(rows) + " rows, got " + std::to_string(sum));
  if (call.alone()) {
    receive[0] = send[0];
    return nullptr;
  }
  const Mpi& mpi = call.mpi();
  call.begin(Entry::of(operation_ragged, 0, static_cast<std::int64_t>(Kind::i64), -1, 1, call.op.place));
  const char* const failure = call.end(mpi.alltoall(send, 1, mpi.i64, receive, 1, mpi.i64, call.group->comm));
  // They become sizes of memory.
  return failure != nullptr || !checks() ? failure : compare(*call.world, *call.group);
}

/// Numbers of elements, and where each rank's begin.
struct Rows {
  std::vector<int> counts, begins;
  std::int64_t all = 0;
  void assign(int ranks, const std::int64_t* rows, std::int64_t row) {
    counts.clear(), begins.clear(), all = 0;
    for (int r = 0; r < ranks; ++r) {
      counts.push_back(static_cast<int>(rows[r] * row));
      begins.push_back(static_cast<int>(all));
      all += rows[r] * row;
    }
  }
};

const char* too_many(const Call& call, std::int64_t n) {
  return call.fail("expected fewer than 2^31 elements on a rank, got " + std::to_string(n));
}

const char* exchange_rows(Kind kind, const char* place, std::int64_t comm, std::int64_t row, const std::int64_t* send,
                          const std::int64_t* receive, const void* x, void* y) {
  const Call call = call_of(place, comm, operation_ragged);
  if (call.failure != nullptr) return call.failure;
  // In memory that stays: a failure jumps over this frame.
  static Rows out, in;
  out.assign(call.group->size, send, row);
  in.assign(call.group->size, receive, row);
  if (std::max(out.all, in.all) > std::numeric_limits<int>::max()) return too_many(call, std::max(out.all, in.all));
  if (call.alone()) {
    std::memcpy(y, x, static_cast<std::size_t>(out.all) * size_of(kind));
    return nullptr;
  }
  const Mpi& mpi = call.mpi();
  const MpiType type = type_of(mpi, kind);
  call.begin(Entry::of(operation_ragged, 0, static_cast<std::int64_t>(kind), -1, row, place));
  return call.end(mpi.alltoallv(x, out.counts.data(), out.begins.data(), type, y, in.counts.data(), in.begins.data(), type,
                                call.group->comm));
}

}  // namespace

}  // namespace lantern::distributed

using namespace lantern::distributed;

#define RAGGED(T, S, K)                                                                                            \
  void distributed_ragged_##S(const char* place, int64_t comm, int64_t row, const int64_t* send,                   \
                              const int64_t* receive, const T* x, T* y) {                                          \
    end_if(exchange_rows(Kind::K, place, comm, row, send, receive, x, y));                                          \
  }
extern "C" {
void distributed_counts(const char* place, int64_t comm, int64_t ranks, int64_t rows, const int64_t* send,
                        int64_t* receive) {
  const Call call = call_of(place, comm, operation_ragged);
  end_if(call.failure != nullptr ? call.failure : exchange_counts(call, ranks, rows, send, receive));
}
RAGGED(double, f64, f64)
RAGGED(float, f32, f32)
RAGGED(int64_t, i64, i64)
RAGGED(int32_t, i32, i32)
RAGGED(bool, bool, boolean)
}
