// The operations: ranks agree on what they do, then the engine does it.
#include <algorithm>
#include <functional>
#include <limits>

#include "call.hpp"

namespace lantern::distributed {

namespace {

template <class T>
void fill_identity(std::int64_t reduction, std::int64_t n, void* y) {
  using Limits = std::numeric_limits<T>;
  const T lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  const T largest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const T identity[] = {T(0), T(1), largest, lowest};
  std::fill_n(static_cast<T*>(y), n, identity[reduction]);
}
void fill_identity(Kind kind, std::int64_t reduction, std::int64_t n, void* y) {
  switch (kind) {
    case Kind::f64: return fill_identity<double>(reduction, n, y);
    case Kind::f32: return fill_identity<float>(reduction, n, y);
    case Kind::i64: return fill_identity<std::int64_t>(reduction, n, y);
    case Kind::i32: return fill_identity<std::int32_t>(reduction, n, y);
    case Kind::boolean: std::fill_n(static_cast<bool*>(y), n, reduction == distributed_min);
  }
}

/// The same ranks from last to first: a scan over it is one from the other side.
std::string reverse(Call& call) {
  if (call.comm.reversed != nullptr) return {};
  const Mpi& mpi = call.world.mpi();
  const std::string e =
      call.checked(mpi.comm_split(call.comm.comm, 0, call.comm.size - 1 - call.comm.rank, &call.comm.reversed));
  if (e.empty()) mpi.comm_set_errhandler(call.comm.reversed, mpi.errors_return);
  return e;
}

/// x goes to rank `to`, y comes from rank `from`; of what is sent there is a header first.
std::string send_receive(Call& call, int to, int from, const void* x, void* y, std::size_t bytes) {
  if ((to == call.comm.rank) != (from == call.comm.rank))
    return call.fail("rank " + std::to_string(call.comm.rank) +
                     (to == call.comm.rank ? " sends to itself and does not receive from itself"
                                           : " receives from itself and does not send to itself"));
  if (to == call.comm.rank) {
    std::memcpy(y, x, bytes);
    return {};
  }
  const Mpi& mpi = call.world.mpi();
  constexpr int header_tag = 1, data_tag = 2, header = static_cast<int>(sizeof(Request));
  const auto world_rank = [&](int r) { return std::vector<int>{call.comm.world[static_cast<std::size_t>(r)]}; };
  Request incoming;
  MpiRequest heads[2] = {}, data[2] = {};
  std::string e;
  if (from >= 0) e = call.checked(mpi.irecv(&incoming, header, mpi.byte, from, header_tag, call.comm.comm, &heads[0]));
  if (e.empty() && to >= 0) {
    e = call.checked(mpi.isend(&call.request, header, mpi.byte, to, header_tag, call.comm.comm, &heads[1]));
    if (e.empty())
      e = call.checked(mpi.isend(x, static_cast<int>(bytes), mpi.byte, to, data_tag, call.comm.comm, &data[1]));
  }
  if (e.empty() && from >= 0) e = call.world.wait(heads[0], call.op, world_rank(from));
  if (e.empty() && from >= 0 && !incoming.same(call.request))
    e = call.fail("the ranks do not agree: rank " + std::to_string(world_rank(from)[0]) + " sends " + incoming.text() +
                  ", rank " + std::to_string(call.world.rank()) + " receives " + call.request.text());
  if (e.empty() && from >= 0) {
    e = call.checked(mpi.irecv(y, static_cast<int>(bytes), mpi.byte, from, data_tag, call.comm.comm, &data[0]));
    if (e.empty()) e = call.world.finish(data[0], call.op);
  }
  if (e.empty() && to >= 0) e = call.world.wait(heads[1], call.op, world_rank(to));
  if (e.empty() && to >= 0) e = call.world.wait(data[1], call.op, world_rank(to));
  return e;
}

/// One process: what it sends to all, it gets.
std::string alone(const Call& call, int to, int from, const void* x, void* y, std::size_t bytes) {
  const Request& r = call.request;
  if (r.operation == distributed_exclusive_scan || r.operation == distributed_reverse_exclusive_scan) {
    fill_identity(static_cast<Kind>(r.kind), r.reduction, r.n, y);
  } else if (r.operation != distributed_send_receive) {
    std::memcpy(y, x, bytes);
  } else if ((to == 0) != (from == 0)) {
    return call.message(to == 0 ? "rank 0 sends to itself and does not receive from itself"
                                : "rank 0 receives from itself and does not send to itself");
  } else if (to == 0) {
    std::memcpy(y, x, bytes);
  }
  return {};
}

std::string together(Call& call, const void* x, void* y) {
  const Mpi& mpi = call.world.mpi();
  const Request& r = call.request;
  const Kind kind = static_cast<Kind>(r.kind);
  const MpiType type = type_of(mpi, kind);
  const MpiOp op = op_of(mpi, kind, r.reduction);
  const int n = static_cast<int>(r.n), root = static_cast<int>(r.root);
  const bool at_root = root == call.comm.rank;
  MpiComm comm = call.comm.comm;
  const std::size_t bytes = static_cast<std::size_t>(n) * size_of(kind);
  switch (r.operation) {
    case distributed_all_reduce:
      return call.checked(mpi.allreduce(x, y, n, type, op, comm));
    case distributed_reduce:
      return call.checked(mpi.reduce(x, at_root ? y : nullptr, n, type, op, root, comm));
    case distributed_broadcast:
      if (at_root) std::memcpy(y, x, bytes);
      return call.checked(mpi.bcast(y, n, type, root, comm));
    case distributed_gather:
      return call.checked(mpi.gather(x, n, type, at_root ? y : nullptr, n, type, root, comm));
    case distributed_all_gather:
      return call.checked(mpi.allgather(x, n, type, y, n, type, comm));
    case distributed_scatter:
      return call.checked(mpi.scatter(at_root ? x : nullptr, n, type, y, n, type, root, comm));
    case distributed_reduce_scatter:
      return call.checked(mpi.reduce_scatter_block(x, y, n, type, op, comm));
    case distributed_all_to_all:
      return call.checked(mpi.alltoall(x, n, type, y, n, type, comm));
    default:
      break;
  }
  const bool reversed =
      r.operation == distributed_reverse_scan || r.operation == distributed_reverse_exclusive_scan;
  if (reversed) {
    if (std::string e = reverse(call); !e.empty()) return e;
    comm = call.comm.reversed;
  }
  if (r.operation == distributed_scan || r.operation == distributed_reverse_scan)
    return call.checked(mpi.scan(x, y, n, type, op, comm));
  const bool first = call.comm.rank == (reversed ? call.comm.size - 1 : 0);
  if (std::string e = call.checked(mpi.exscan(x, y, n, type, op, comm)); !e.empty()) return e;
  if (first) fill_identity(kind, r.reduction, r.n, y);
  return {};
}

std::string exchange(Call& call, std::int64_t a, std::int64_t b, const void* x, void* y) {
  Request& r = call.request;
  const bool pair = r.operation == distributed_send_receive;
  const bool rooted = r.operation == distributed_reduce || r.operation == distributed_broadcast ||
                      r.operation == distributed_gather || r.operation == distributed_scatter;
  const std::string ranks = " to " + std::to_string(call.comm.size - 1) + ", got ";
  if (rooted && (a < 0 || a >= call.comm.size)) return call.fail("expected a root from 0" + ranks + std::to_string(a));
  for (const std::int64_t other : {a, b})
    if (pair && (other < -1 || other >= call.comm.size))
      return call.fail("expected a rank from -1 (none)" + ranks + std::to_string(other));
  if (r.n * call.comm.size > std::numeric_limits<int>::max())
    return call.fail("expected fewer than 2^31 elements in one message, got " + std::to_string(r.n * call.comm.size));
  r.root = rooted ? a : -1;
  const std::size_t bytes = static_cast<std::size_t>(r.n) * size_of(static_cast<Kind>(r.kind));
  const int to = static_cast<int>(a), from = static_cast<int>(b);
  if (call.world.alone()) return alone(call, to, from, x, y, bytes);
  if (pair) return send_receive(call, to, from, x, y, bytes);
  if (std::string e = agree(call); !e.empty()) return e;
  return together(call, x, y);
}

const char* exchange_failure(Kind kind, const char* place, std::int64_t comm, std::int32_t operation, std::int32_t reduction,
                     std::int64_t a, std::int64_t b, std::int64_t n, const void* x, void* y) {
  return run(place, comm, operation, [&](Call& call) {
    call.request.reduction = reduction;
    call.request.kind = static_cast<std::int64_t>(kind);
    call.request.n = n;
    return exchange(call, a, b, x, y);
  });
}

std::string split_ranks(Call& call, std::int64_t colour, std::int64_t key, std::int64_t number, std::int64_t& result) {
  World& world = call.world;
  if (world.alone()) return {};
  if (std::string e = agree(call); !e.empty()) return e;
  const Mpi& mpi = world.mpi();
  const auto size = static_cast<std::size_t>(call.comm.size);
  std::vector<std::int64_t> all(2 * size);
  const std::int64_t own[2] = {colour, key};
  if (std::string e = call.checked(mpi.allgather(own, 2, mpi.i64, all.data(), 2, mpi.i64, call.comm.comm)); !e.empty())
    return e;
  // The same on all ranks: so is what is found here.
  std::vector<std::int64_t> known = all;
  known.push_back(number);
  if (const auto found = world.splits().find(known); found != world.splits().end()) {
    result = found->second;
    return {};
  }
  std::vector<std::size_t> members;
  for (std::size_t r = 0; r < size; ++r)
    if (all[2 * r] == colour) members.push_back(r);
  std::ranges::stable_sort(members, {}, [&](std::size_t r) { return all[2 * r + 1]; });
  ProcessGroup part;
  part.size = static_cast<int>(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    part.world.push_back(call.comm.world[members[i]]);
    if (static_cast<int>(members[i]) == call.comm.rank) part.rank = static_cast<int>(i);
  }
  // MPI's colours are small: the first rank of each part represents it.
  const int first = static_cast<int>(*std::ranges::min_element(members));
  if (std::string e = call.checked(mpi.comm_split(call.comm.comm, first, part.rank, &part.comm)); !e.empty()) return e;
  mpi.comm_set_errhandler(part.comm, mpi.errors_return);
  result = world.splits()[known] = world.add(std::move(part));
  return {};
}

/// Factors of n, largest first, go to the smallest of the dimensions that are free.
std::string choose(const Call& call, std::int64_t count, std::int64_t* dims) {
  std::int64_t given = 1;
  std::vector<std::size_t> free;
  for (std::int64_t d = 0; d < count; ++d) {
    if (dims[d] < 0) return call.fail("expected sizes of 0 or more, got " + std::to_string(dims[d]));
    if (dims[d] == 0) free.push_back(static_cast<std::size_t>(d));
    if (dims[d] > 0) given *= dims[d];
  }
  const std::int64_t size = call.comm.size;
  if (size % given != 0 || (free.empty() && size != given))
    return call.fail("expected a grid of " + std::to_string(size) + " ranks, got sizes of product " + std::to_string(given));
  std::vector<std::int64_t> factors;
  std::int64_t rest = size / given;
  for (std::int64_t f = 2; f <= rest; ++f)
    for (; rest % f == 0; rest /= f) factors.push_back(f);
  std::vector<std::int64_t> chosen(free.size(), 1);
  for (auto f = factors.rbegin(); f != factors.rend(); ++f) *std::ranges::min_element(chosen) *= *f;
  std::ranges::sort(chosen, std::greater<>());
  for (std::size_t i = 0; i < free.size(); ++i) dims[free[i]] = chosen[i];
  return {};
}

}  // namespace

}  // namespace lantern::distributed

using namespace lantern::distributed;

#define EXCHANGE(T, S, K)                                                                                          \
  void distributed_exchange_##S(const char* place, int64_t comm, int32_t operation, int32_t reduction, int64_t a,  \
                                int64_t b, int64_t n, const T* x, T* y) {                                          \
    end_if(exchange_failure(Kind::K, place, comm, operation, reduction, a, b, n, x, y));                           \
  }
extern "C" {
EXCHANGE(double, f64, f64)
EXCHANGE(float, f32, f32)
EXCHANGE(int64_t, i64, i64)
EXCHANGE(int32_t, i32, i32)
EXCHANGE(bool, bool, boolean)

void distributed_prefer(const char* engine) { World::prefer(engine); }
int64_t distributed_rank(const char* place, int64_t comm) {
  int64_t result = 0;
  const char* const failure = run(place, comm, operation_rank, [&](Call& call) { return result = call.comm.rank, std::string(); });
  return end_if(failure), result;
}
int64_t distributed_size(const char* place, int64_t comm) {
  int64_t result = 0;
  const char* const failure = run(place, comm, operation_size, [&](Call& call) { return result = call.comm.size, std::string(); });
  return end_if(failure), result;
}
int64_t distributed_barrier(const char* place, int64_t comm) {
  const char* const failure =
      run(place, comm, operation_barrier, [](Call& call) { return call.world.alone() ? std::string() : agree(call); });
  return end_if(failure), 0;
}
int64_t distributed_split(const char* place, int64_t comm, int64_t colour, int64_t key) {
  int64_t result = 0;
  const char* const failure =
      run(place, comm, operation_split, [&](Call& call) { return split_ranks(call, colour, key, comm, result); });
  return end_if(failure), result;
}
void distributed_dims(const char* place, int64_t comm, int64_t count, int64_t* dims) {
  const char* const failure = run(place, comm, operation_grid, [&](Call& call) { return choose(call, count, dims); });
  end_if(failure);
}
}
