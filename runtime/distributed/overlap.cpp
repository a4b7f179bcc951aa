// Operations in two halves: between them the program computes.
//
// What an operation reads and writes lies in memory of its own until it is waited for: the program's may move, and change.
#include <map>
#include <memory>

#include "call.hpp"

namespace lantern::distributed {

namespace {

struct Pending {
  Call call;
  std::vector<char> x, y;  ///< y: empty where this rank gets nothing
  std::array<std::int64_t, 4> words{};
  MpiRequest agreement = nullptr, data = nullptr;
};

std::map<std::int64_t, std::unique_ptr<Pending>>& all_pending() {
  static auto* const all = new std::map<std::int64_t, std::unique_ptr<Pending>>;
  return *all;
}

std::string begin(Pending& p) {
  const Call& call = p.call;
  const Mpi& mpi = call.world.mpi();
  const Request& r = call.request;
  const Kind kind = static_cast<Kind>(r.kind);
  const MpiType type = type_of(mpi, kind);
  const MpiOp op = op_of(mpi, kind, r.reduction);
  const int n = static_cast<int>(r.n), root = static_cast<int>(r.root);
  const bool at_root = root == call.comm.rank;
  MpiComm comm = call.comm.comm;
  char *const x = p.x.data(), *const y = p.y.data();
  MpiRequest* const request = &p.data;
  switch (r.operation) {
    case distributed_all_reduce:
      return call.checked(mpi.iallreduce(x, y, n, type, op, comm, request));
    case distributed_reduce:
      return call.checked(mpi.ireduce(x, at_root ? y : nullptr, n, type, op, root, comm, request));
    case distributed_broadcast:
      if (at_root) p.y = p.x;
      return call.checked(mpi.ibcast(p.y.data(), n, type, root, comm, request));
    case distributed_gather:
      return call.checked(mpi.igather(x, n, type, at_root ? y : nullptr, n, type, root, comm, request));
    case distributed_all_gather:
      return call.checked(mpi.iallgather(x, n, type, y, n, type, comm, request));
    case distributed_scatter:
      return call.checked(mpi.iscatter(at_root ? x : nullptr, n, type, y, n, type, root, comm, request));
    case distributed_reduce_scatter:
      return call.checked(mpi.ireduce_scatter_block(x, y, n, type, op, comm, request));
    default:
      return call.checked(mpi.ialltoall(x, n, type, y, n, type, comm, request));
  }
}

std::string start(const Call& call, std::int64_t a, const void* x, std::int64_t number) {
  auto owned = std::make_unique<Pending>(Pending{call, {}, {}, {}, nullptr, nullptr});
  Pending& p = *owned;
  Request& r = p.call.request;
  const bool rooted = r.operation == distributed_reduce || r.operation == distributed_broadcast ||
                      r.operation == distributed_gather || r.operation == distributed_scatter;
  const std::int64_t ranks = call.comm.size;
  if (rooted && (a < 0 || a >= ranks))
    return call.fail("expected a root from 0 to " + std::to_string(ranks - 1) + ", got " + std::to_string(a));
  constexpr std::int64_t most = 0x7fffffff;
  if (r.n * ranks > most)
    return call.fail("expected fewer than 2^31 elements in one message, got " + std::to_string(r.n * ranks));
  r.root = rooted ? a : -1;
  const bool reads_all = r.operation == distributed_scatter || r.operation == distributed_reduce_scatter,
             writes_all = r.operation == distributed_gather || r.operation == distributed_all_gather,
             both = r.operation == distributed_all_to_all,
             at_root_alone = r.operation == distributed_reduce || r.operation == distributed_gather;
  const std::size_t part = static_cast<std::size_t>(r.n) * size_of(static_cast<Kind>(r.kind));
  const auto parts = static_cast<std::size_t>(ranks);
  p.x.resize(reads_all || both ? part * parts : part);
  std::memcpy(p.x.data(), x, p.x.size());
  if (!at_root_alone || a == call.comm.rank) p.y.resize(writes_all || both ? part * parts : part);
  if (call.world.alone()) {
    p.y = p.x;
  } else {
    if (checks())
      if (std::string e = begin_agreement(p.call, p.words, p.agreement); !e.empty()) return e;
    if (std::string e = begin(p); !e.empty()) return e;
  }
  all_pending()[number] = std::move(owned);
  return {};
}

std::string finish(std::int64_t number, void* y) {
  const auto found = all_pending().find(number);
  Pending& p = *found->second;
  if (!p.call.world.alone()) {
    if (p.agreement != nullptr)
      if (std::string e = end_agreement(p.call, p.words, p.agreement); !e.empty()) return e;
    if (std::string e = p.call.world.finish(p.data, p.call.op); !e.empty()) return e;
  }
  std::memcpy(y, p.y.data(), p.y.size());
  all_pending().erase(found);
  return {};
}

const char* start_failure(Kind kind, const char* place, std::int64_t comm, std::int32_t operation, std::int32_t reduction,
                          std::int64_t a, std::int64_t n, const void* x, std::int64_t number) {
  return run(place, comm, operation, [&](Call& call) {
    call.request.reduction = reduction;
    call.request.kind = static_cast<std::int64_t>(kind);
    call.request.n = n;
    return start(call, a, x, number);
  });
}
/// The operation is the one that was started, whatever its number says.
const char* wait_failure(const char* place, std::int64_t number, void* y) {
  return run(place, 0, distributed_all_reduce, [&](Call&) { return finish(number, y); });
}

std::int64_t next_number = 0;

}  // namespace

}  // namespace lantern::distributed

using namespace lantern::distributed;

#define HALVES(T, S)                                                                                        \
  DISTRIBUTED_START(T, S) {                                                                                 \
    static_cast<void>(b);                                                                                   \
    const int64_t number = next_number++;                                                                   \
    end_if(start_failure(Kind::S, place, comm, operation, reduction, a, n, x, number));                     \
    return number;                                                                                          \
  }                                                                                                         \
  DISTRIBUTED_WAIT(T, S) { end_if(wait_failure(place, number, y)); }
extern "C" {
HALVES(double, f64)
HALVES(float, f32)
}
