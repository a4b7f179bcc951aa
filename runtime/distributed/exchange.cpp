// The operations: each rank notes what it does, and the engine does it.
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

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
int reverse(const Call& call) {
  ProcessGroup& group = *call.group;
  const Mpi& mpi = call.mpi();
  if (group.reversed != nullptr) return 0;
  const int code = mpi.comm_split(group.comm, 0, group.size - 1 - group.rank, &group.reversed);
  return code != 0 ? code : mpi.comm_set_errhandler(group.reversed, mpi.errors_return);
}


/// x goes to rank `to`, y comes from rank `from`. Its tag says of what type it is and what for; the sender's log, what it is.
const char* send_receive(const Call& call, const Entry& entry, int to, int from, const void* x, void* y, std::size_t bytes) {
  ProcessGroup& group = *call.group;
  if ((to == group.rank) != (from == group.rank)) [[unlikely]] return no_partner(call, to == group.rank);
  if (to == group.rank) {
    std::memcpy(y, x, bytes);
    return nullptr;
  }
  const Mpi& mpi = call.mpi();
  if (from < 0) std::memset(y, 0, bytes);
  call.world->begin(note_message(call, entry, to, from));
  const Kind kind = static_cast<Kind>(entry.kind());
  const MpiType type = type_of(mpi, kind);
  const int n = static_cast<int>(entry.n), tag = entry.tag();
  MpiStatus status{};
  // Asking in turn gets a short message sooner than MPI_Sendrecv, which waits for one after the other.
  MpiRequest* const halves = call.world->halves();
  int code = mpi.irecv(y, n, type, from < 0 ? Mpi::no_rank : from, Mpi::any, group.comm, &halves[0]);
  if (code == 0) code = mpi.isend(x, n, type, to < 0 ? Mpi::no_rank : to, tag, group.comm, &halves[1]);
  for (int here = 0, gone = 0; code == 0 && (here == 0 || gone == 0);) {
    if (here == 0) code = mpi.test(&halves[0], &here, &status);
    if (gone == 0 && code == 0) code = mpi.test(&halves[1], &gone, nullptr);
  }
  if (from >= 0 && (code == Mpi::truncated || (code == 0 && (status.tag != tag || status.count != bytes)))) [[unlikely]]
    return other_message(*call.world, group, from, code == 0 ? status.tag : -1, status.count, entry);
  if (code != 0) [[unlikely]] return broken(*call.world, group, call.op, code);
  call.world->end();
  return nullptr;
}

/// One process: what it sends to all, it gets.
[[gnu::noinline]] const char* alone(const Call& call, const Entry& entry, int to, int from, const void* x, void* y, std::size_t bytes) {
  const std::int64_t operation = call.operation;
  if (operation == distributed_exclusive_scan || operation == distributed_reverse_exclusive_scan) {
    fill_identity(static_cast<Kind>(entry.kind()), entry.reduction(), entry.n, y);
  } else if (operation != distributed_send_receive) {
    std::memcpy(y, x, bytes);
  } else if ((to == 0) != (from == 0)) {
    return no_partner(call, to == 0);
  } else if (to == 0) {
    std::memcpy(y, x, bytes);
  } else {
    std::memset(y, 0, bytes);
  }
  return nullptr;
}

/// The engine's code.
int together(const Call& call, const Entry& entry, const void* x, void* y, std::size_t bytes) {
  const Mpi& mpi = call.mpi();
  const Kind kind = static_cast<Kind>(entry.kind());
  const MpiType type = type_of(mpi, kind);
  const MpiOp op = op_of(mpi, kind, entry.reduction());
  const int n = static_cast<int>(entry.n), root = static_cast<int>(entry.root());
  const ProcessGroup& group = *call.group;
  const bool at_root = root == group.rank;
  MpiComm comm = group.comm;
  switch (call.operation) {
    case distributed_all_reduce:
      return mpi.allreduce(x, y, n, type, op, comm);
    case distributed_reduce:
      if (!at_root) std::memset(y, 0, bytes);
      return mpi.reduce(x, at_root ? y : nullptr, n, type, op, root, comm);
    case distributed_broadcast:
      if (at_root) std::memcpy(y, x, bytes);
      return mpi.bcast(y, n, type, root, comm);
    case distributed_gather:
      if (!at_root) std::memset(y, 0, bytes * static_cast<std::size_t>(group.size));
      return mpi.gather(x, n, type, at_root ? y : nullptr, n, type, root, comm);
    case distributed_all_gather:
      return mpi.allgather(x, n, type, y, n, type, comm);
    case distributed_scatter:
      return mpi.scatter(at_root ? x : nullptr, n, type, y, n, type, root, comm);
    case distributed_reduce_scatter:
      return mpi.reduce_scatter_block(x, y, n, type, op, comm);
    case distributed_all_to_all:
      return mpi.alltoall(x, n, type, y, n, type, comm);
    default:
      break;
  }
  const bool reversed =
      call.operation == distributed_reverse_scan || call.operation == distributed_reverse_exclusive_scan;
  if (reversed) {
    if (const int code = reverse(call)) return code;
    comm = group.reversed;
  }
  if (call.operation == distributed_scan || call.operation == distributed_reverse_scan)
    return mpi.scan(x, y, n, type, op, comm);
  if (const int code = mpi.exscan(x, y, n, type, op, comm)) return code;
  if (group.rank == (reversed ? group.size - 1 : 0)) fill_identity(kind, entry.reduction(), entry.n, y);
  return 0;
}


/// Adds the call to the log and compares the ranks at once, for what comes from other ranks is used.
const char* meet(const Call& call) {
  call.group->log.add(Entry::of(call.operation, 0, 0, -1, 0, call.op.place));
  return call.alone() || !(checks() || call.operation == operation_barrier) ? nullptr : compare(*call.world, *call.group);
}

/// The communicator of those with the same colour among `all`, colours and keys by rank; null, or why there is none.
const char* make_group(const Call& call, std::vector<std::int64_t> known, std::int64_t colour, std::int64_t& result) {
  World& world = *call.world;
  const Mpi& mpi = world.mpi();
  const ProcessGroup& whole = *call.group;
  // The same on all ranks: so is what is found here.
  if (const auto found = world.splits().find(known); found != world.splits().end()) {
    result = found->second;
    return nullptr;
  }
  std::vector<std::size_t> members;
  for (std::size_t r = 0; r < static_cast<std::size_t>(whole.size); ++r)
    if (known[2 * r] == colour) members.push_back(r);
  std::ranges::stable_sort(members, {}, [&](std::size_t r) { return known[2 * r + 1]; });
  ProcessGroup part;
  part.size = static_cast<int>(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    part.world.push_back(whole.world[members[i]]);
    if (static_cast<int>(members[i]) == whole.rank) part.rank = static_cast<int>(i);
  }
  part.id = (whole.id * 0x9e3779b97f4a7c15U ^ whole.log.count) * 0xff51afd7ed558ccdU + members[0];
  part.messages.to.resize(members.size());
  part.messages.from.resize(members.size());
  // MPI's colours are small: the first rank of each part represents it.
  const int first = static_cast<int>(*std::ranges::min_element(members));
  int code = mpi.comm_split(whole.comm, first, part.rank, &part.comm);
  if (code == 0) code = mpi.comm_dup(part.comm, &part.side);
  if (code != 0) return kept(world.fail(call.op, world.error(call.op, code)));
  mpi.comm_set_errhandler(part.comm, mpi.errors_return);
  mpi.comm_set_errhandler(part.side, mpi.errors_return);
  if (const char* const failure = connect_gpus(call, part)) return failure;
  result = world.splits()[known] = world.add(std::move(part));
  return nullptr;
}

const char* split_ranks(const Call& call, std::int64_t colour, std::int64_t key, std::int64_t number, std::int64_t& result) {
  if (call.alone()) return nullptr;
  if (const char* const failure = meet(call)) return failure;
  // All ranks are here, and none of them fails before it has its part.
  std::vector<std::int64_t> all(2 * static_cast<std::size_t>(call.group->size));
  const std::int64_t own[2] = {colour, key};
  if (const int code = call.mpi().allgather(own, 2, call.mpi().i64, all.data(), 2, call.mpi().i64, call.group->comm))
    return kept(call.world->fail(call.op, call.world->error(call.op, code)));
  all.push_back(number);
  return make_group(call, std::move(all), colour, result);
}

/// Factors of n, largest first, go to the smallest of the dimensions that are free.
const char* choose(const Call& call, std::int64_t count, std::int64_t* dims) {
  std::int64_t given = 1;
  std::vector<std::size_t> free;
  for (std::int64_t d = 0; d < count; ++d) {
    if (dims[d] < 0) return call.fail("expected sizes of 0 or more, got " + std::to_string(dims[d]));
    if (dims[d] == 0) free.push_back(static_cast<std::size_t>(d));
    if (dims[d] > 0) given *= dims[d];
  }
  const std::int64_t size = call.group->size;
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
  return nullptr;
}

}  // namespace

const char* no_partner(const Call& call, bool sends) {
  return call.fail("rank " + std::to_string(call.group->rank) +
                   (sends ? " sends to itself and does not receive from itself"
                          : " receives from itself and does not send to itself"));
}

const char* refused(const Call& call, std::int64_t a, std::int64_t b, std::int64_t n) {
  const bool pair = call.operation == distributed_send_receive;
  const std::int64_t size = call.group->size;
  const std::string ranks = " to " + std::to_string(size - 1) + ", got ";
  if (is_rooted(call.operation) && (a < 0 || a >= size)) return call.fail("expected a root from 0" + ranks + std::to_string(a));
  for (const std::int64_t other : {a, b})
    if (pair && (other < -1 || other >= size))
      return call.fail("expected a rank from -1 (none)" + ranks + std::to_string(other));
  return call.fail("expected fewer than 2^31 elements in one message, got " + std::to_string(n * size));
}

const char* exchange(Kind kind, const char* place, std::int64_t comm, std::int32_t operation, std::int32_t reduction,
                     std::int64_t a, std::int64_t b, std::int64_t n, const void* x, void* y) {
  const Call call = call_of(place, comm, operation);
  if (call.failure != nullptr) return call.failure;
  if (const char* const wrong = wrong_arguments(call, a, b, n)) [[unlikely]] return wrong;
  const std::int64_t root = is_rooted(operation) ? a : -1;
  const Entry entry = Entry::of(operation, reduction, static_cast<std::int64_t>(kind), root, n, place);
  const std::size_t bytes = static_cast<std::size_t>(n) * size_of(kind);
  const int to = static_cast<int>(a), from = static_cast<int>(b);
  if (call.alone()) return alone(call, entry, to, from, x, y, bytes);
  if (operation == distributed_send_receive) return send_receive(call, entry, to, from, x, y, bytes);
  call.begin(entry);
  return call.end(together(call, entry, x, y, bytes));
}

}  // namespace lantern::distributed

using namespace lantern::distributed;

#define EXCHANGE(T, S, K)                                                                                          \
  void distributed_exchange_##S(const char* place, int64_t comm, int32_t operation, int32_t reduction, int64_t a,  \
                                int64_t b, int64_t n, const T* x, T* y) {                                          \
    end_if(exchange(Kind::K, place, comm, operation, reduction, a, b, n, x, y));                           \
  }
extern "C" {
EXCHANGE(double, f64, f64)
EXCHANGE(float, f32, f32)
EXCHANGE(int64_t, i64, i64)
EXCHANGE(int32_t, i32, i32)
EXCHANGE(bool, bool, boolean)

void distributed_prefer(const char* engine) { World::prefer(engine); }
int64_t distributed_rank(const char* place, int64_t comm) {
  const Call call = call_of(place, comm, operation_rank);
  end_if(call.failure);
  return call.group->rank;
}
int64_t distributed_size(const char* place, int64_t comm) {
  const Call call = call_of(place, comm, operation_size);
  end_if(call.failure);
  return call.group->size;
}
int64_t distributed_barrier(const char* place, int64_t comm) {
  const Call call = call_of(place, comm, operation_barrier);
  end_if(call.failure != nullptr ? call.failure : meet(call));
  return 0;
}
int64_t distributed_end(const char* place) {
  World* const world = World::known();
  if (world == nullptr || world->alone()) return 0;
  for (ProcessGroup* const group : world->communicators()) keep_places(group->messages);
  if (!checks() || !world->ready({"", ""}).empty()) return 0;
  for (std::size_t i = 0; i < world->communicators().size(); ++i) {
    ProcessGroup& group = *world->communicators()[i];
    if (group.log.count == group.log.compared) continue;
    group.log.add(Entry::of(operation_end, 0, 0, -1, 0, place));
    end_if(compare(*world, group));
  }
  return 0;
}
int64_t distributed_split(const char* place, int64_t comm, int64_t colour, int64_t key) {
  int64_t result = 0;
  const Call call = call_of(place, comm, operation_split);
  end_if(call.failure != nullptr ? call.failure : split_ranks(call, colour, key, comm, result));
  return result;
}
void distributed_dims(const char* place, int64_t comm, int64_t count, int64_t* dims) {
  const Call call = call_of(place, comm, operation_grid);
  end_if(call.failure != nullptr ? call.failure : choose(call, count, dims));
}
}
