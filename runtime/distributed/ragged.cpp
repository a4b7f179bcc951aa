// Rows that ranks send to each other, as many as each pair of them likes.
#include <limits>
#include <numeric>

#include "call.hpp"

namespace lantern::distributed {

namespace {

/// Receives into `receive` how many rows each rank sends to this one.
std::string exchange_counts(Call& call, std::int64_t ranks, std::int64_t rows, const std::int64_t* send,
                            std::int64_t* receive) {
  if (ranks != call.comm.size)
    return call.fail("expected a count of rows for each rank: " + std::to_string(call.comm.size) + " of them, got " +
                     std::to_string(ranks));
  std::int64_t sum = 0;
  for (std::int64_t r = 0; r < ranks; ++r) {
    if (send[r] < 0)
      return call.fail("expected counts of 0 or more, got " + std::to_string(send[r]) + " for rank " + std::to_string(r));
    sum += send[r];
  }
  if (sum != rows)
    return call.fail("expected counts whose sum is the " + std::to_string(rows) + " rows, got " + std::to_string(sum));
  if (call.world.alone()) {
    receive[0] = send[0];
    return {};
  }
  if (std::string e = agree(call); !e.empty()) return e;
  const Mpi& mpi = call.world.mpi();
  return call.checked(mpi.alltoall(send, 1, mpi.i64, receive, 1, mpi.i64, call.comm.comm));
}

/// Numbers of elements, and where each rank's begin.
struct Parts {
  std::vector<int> counts, begins;
  std::int64_t all = 0;
  Parts(int ranks, const std::int64_t* rows, std::int64_t row) {
    for (int r = 0; r < ranks; ++r) {
      counts.push_back(static_cast<int>(rows[r] * row));
      begins.push_back(static_cast<int>(all));
      all += rows[r] * row;
    }
  }
};

std::string exchange_rows(Call& call, const std::int64_t* send, const std::int64_t* receive, const void* x, void* y) {
  const Kind kind = static_cast<Kind>(call.request.kind);
  const Parts out(call.comm.size, send, call.request.n), in(call.comm.size, receive, call.request.n);
  if (std::max(out.all, in.all) > std::numeric_limits<int>::max())
    return call.fail("expected fewer than 2^31 elements on a rank, got " + std::to_string(std::max(out.all, in.all)));
  if (call.world.alone()) {
    std::memcpy(y, x, static_cast<std::size_t>(out.all) * size_of(kind));
    return {};
  }
  if (std::string e = agree(call); !e.empty()) return e;
  const Mpi& mpi = call.world.mpi();
  const MpiType type = type_of(mpi, kind);
  return call.checked(mpi.alltoallv(x, out.counts.data(), out.begins.data(), type, y, in.counts.data(),
                                    in.begins.data(), type, call.comm.comm));
}

const char* rows_failure(Kind kind, const char* place, std::int64_t comm, std::int64_t row, const std::int64_t* send,
                         const std::int64_t* receive, const void* x, void* y) {
  return run(place, comm, operation_ragged, [&](Call& call) {
    call.request.kind = static_cast<std::int64_t>(kind);
    call.request.n = row;
    return exchange_rows(call, send, receive, x, y);
  });
}

}  // namespace

}  // namespace lantern::distributed

using namespace lantern::distributed;

#define RAGGED(T, S, K)                                                                                            \
  void distributed_ragged_##S(const char* place, int64_t comm, int64_t row, const int64_t* send,                   \
                              const int64_t* receive, const T* x, T* y) {                                          \
    end_if(rows_failure(Kind::K, place, comm, row, send, receive, x, y));                                          \
  }
extern "C" {
void distributed_counts(const char* place, int64_t comm, int64_t ranks, int64_t rows, const int64_t* send,
                        int64_t* receive) {
  const char* const failure = run(place, comm, operation_ragged, [&](Call& call) {
    call.request.kind = static_cast<std::int64_t>(Kind::i64);
    call.request.n = 1;
    return exchange_counts(call, ranks, rows, send, receive);
  });
  end_if(failure);
}
RAGGED(double, f64, f64)
RAGGED(float, f32, f32)
RAGGED(int64_t, i64, i64)
RAGGED(int32_t, i32, i32)
RAGGED(bool, bool, boolean)
}
