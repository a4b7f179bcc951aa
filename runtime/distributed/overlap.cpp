// Operations in two halves: between them the program computes.
//
// What an operation reads and writes lies in memory of its own until it is waited for: the program's may move, and change.
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "call.hpp"

namespace lantern::distributed {

namespace {

struct Pending {
  Call call;
  Entry entry;
  std::uint64_t step = 0;
  std::vector<char> x, y;  ///< y: empty where this rank gets nothing
  MpiRequest data = nullptr;
};

std::map<std::int64_t, std::unique_ptr<Pending>>& all_pending() {
  static auto* const all = new std::map<std::int64_t, std::unique_ptr<Pending>>;
  return *all;
}

/// The engine's code.
int begin(Pending& p) {
  const Mpi& mpi = p.call.mpi();
  const Entry& e = p.entry;
  const Kind kind = static_cast<Kind>(e.kind());
  const MpiType type = type_of(mpi, kind);
  const MpiOp op = op_of(mpi, kind, e.reduction());
  const int n = static_cast<int>(e.n), root = static_cast<int>(e.root());
  const bool at_root = root == p.call.group->rank;
  MpiComm comm = p.call.group->comm;
  char *const x = p.x.data(), *const y = p.y.data();
  MpiRequest* const request = &p.data;
  switch (e.operation()) {
    case distributed_all_reduce:
      return mpi.iallreduce(x, y, n, type, op, comm, request);
    case distributed_reduce:
      return mpi.ireduce(x, at_root ? y : nullptr, n, type, op, root, comm, request);
    case distributed_broadcast:
      if (at_root) p.y = p.x;
      return mpi.ibcast(p.y.data(), n, type, root, comm, request);
    case distributed_gather:
      return mpi.igather(x, n, type, at_root ? y : nullptr, n, type, root, comm, request);
    case distributed_all_gather:
      return mpi.iallgather(x, n, type, y, n, type, comm, request);
    case distributed_scatter:
      return mpi.iscatter(at_root ? x : nullptr, n, type, y, n, type, root, comm, request);
    case distributed_reduce_scatter:
      return mpi.ireduce_scatter_block(x, y, n, type, op, comm, request);
    default:
      return mpi.ialltoall(x, n, type, y, n, type, comm, request);
  }
}

const char* start(Kind kind, const char* place, std::int64_t comm, std::int32_t operation, std::int32_t reduction,
                  std::int64_t a, std::int64_t n, const void* x, std::int64_t number) {
  const Call call = call_of(place, comm, operation);
  if (call.failure != nullptr) return call.failure;
  if (const char* const wrong = wrong_arguments(call, a, a, n)) return wrong;
  const std::int64_t root = is_rooted(operation) ? a : -1;
  const Entry entry = Entry::of(operation, reduction, static_cast<std::int64_t>(kind), root, n, place);
  auto owned = std::make_unique<Pending>(Pending{call, entry, 0, {}, {}, nullptr});
  Pending& p = *owned;
  const Parts parts = parts_of(operation, call.group->size);
  const std::size_t part = static_cast<std::size_t>(n) * size_of(kind);
  const auto* const from = static_cast<const char*>(x);
  p.x.assign(from, from + part * parts.read);
  p.y.resize(part * parts.written);  // zeros where this rank gets nothing
  if (call.alone()) {
    p.y = p.x;
  } else {
    Log& log = call.group->log;
    log.add(entry);
    p.step = ++log.steps;
    ++log.unfinished;
    if (const int code = begin(p)) return broken(*call.world, *call.group, call.op, code);
  }
  all_pending()[number] = std::move(owned);
  return nullptr;
}

const char* finish(const char* place, std::int64_t number, void* y) {
  // The operation is the one that was started, whatever this one's number says.
  if (const Call now = call_of(place, 0, distributed_all_reduce); now.failure != nullptr) return now.failure;
  const auto found = all_pending().find(number);
  Pending& p = *found->second;
  const Call& call = p.call;
  const char* failure = nullptr;
  if (!call.alone()) {
    call.world->begin({call.op, call.group, p.step});
    const int code = call.mpi().wait(&p.data, nullptr);
    --call.group->log.unfinished;
    failure = call.end(code);
  }
  if (failure == nullptr) std::memcpy(y, p.y.data(), p.y.size());
  all_pending().erase(found);
  return failure;
}

std::int64_t next_number = 0;

}  // namespace

}  // namespace lantern::distributed

using namespace lantern::distributed;

#define HALVES(T, S)                                                                                        \
  DISTRIBUTED_START(T, S) {                                                                                 \
    static_cast<void>(b);                                                                                   \
    const int64_t number = next_number++;                                                                   \
    end_if(start(Kind::S, place, comm, operation, reduction, a, n, x, number));                     \
    return number;                                                                                          \
  }                                                                                                         \
  DISTRIBUTED_WAIT(T, S) { end_if(finish(place, number, y)); }
extern "C" {
HALVES(double, f64)
HALVES(float, f32)
}
