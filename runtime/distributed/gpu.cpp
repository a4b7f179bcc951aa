// Operations on the memory of GPUs: by NCCL, in the order of the program's stream; without it through the host by MPI.
//
// The host queues them and goes on. So what ranks call is compared as on CPUs, and a mistake is found by the host before it
// waits for the stream. NCCL says nothing of messages that do not fit: the two ranks of one tell each other first.
#include <array>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "call.hpp"
#include "device.h"
#include "nccl.hpp"

namespace lantern::distributed {

namespace {

struct Gpus {
  bool entered = false;
  const Nccl* nccl = nullptr;  ///< null: operations go through the host
  std::deque<Current> queued;  ///< operations that the stream may hold, the latest `most_queued`
};
Gpus& gpus() {
  static auto* const all = new Gpus;
  return *all;
}

constexpr std::size_t most_queued = 256;
constexpr int not_ready = 600;  // cudaErrorNotReady
constexpr int message_tag = 1 << 20;  // above all tags of entries: what is to be sent by NCCL

/// What was queued on GPUs ends: other ranks will not do their part.
void abort_all() {
  for (ProcessGroup* const group : World::known()->communicators())
    if (group->nccl != nullptr) gpus().nccl->abort(std::exchange(group->nccl, nullptr));
}

const char* nccl_error(const Call& call, int code) {
  return broken(*call.world, *call.group, call.op,
                call.message("rank " + std::to_string(call.world->rank()) + ": NCCL: " + gpus().nccl->error_string(code)));
}
const char* cuda_error(const Call& call, const distributed_gpu& gpu, int code) {
  return call.fail("rank " + std::to_string(call.alone() ? 0 : call.world->rank()) + ": CUDA: " + gpu.words(code));
}

/// One process, or a group of one: what it sends to all, it gets.
const char* on_own_gpu(const Call& call, const distributed_gpu& gpu, void* stream, int to, int from, const void* x, void* y,
                       std::int64_t bytes) {
  const bool pair = call.operation == distributed_send_receive;
  if (pair && (to == 0) != (from == 0)) return no_partner(call, to == 0);
  const int code = pair && to != 0 ? gpu.zero(y, bytes, stream) : gpu.copy(y, x, bytes, stream);
  return code == 0 ? nullptr : cuda_error(call, gpu, code);
}

/// In memory that stays: a failure of the operation jumps over this frame.
const char* through_host(const Call& call, const distributed_gpu& gpu, void* stream, Kind kind, std::int64_t comm,
                         std::int32_t operation, std::int32_t reduction, std::int64_t a, std::int64_t b, std::int64_t n,
                         const void* x, void* y) {
  static auto& in = *new std::vector<char>;
  static auto& out = *new std::vector<char>;
  const Parts parts = parts_of(operation, call.group->size);
  const std::size_t part = static_cast<std::size_t>(n) * size_of(kind);
  in.resize(part * parts.read);
  out.resize(part * parts.written);
  const auto copy = [&](void* to, const void* from, std::size_t bytes) {
    int code = bytes > 0 ? gpu.copy(to, from, static_cast<std::int64_t>(bytes), stream) : 0;
    if (code == 0)
      while ((code = gpu.query(stream)) == not_ready) std::this_thread::yield();
    return code;
  };
  if (const int code = copy(in.data(), x, in.size())) return cuda_error(call, gpu, code);
  if (const char* const failure = exchange(kind, call.op.place, comm, operation, reduction, a, b, n, in.data(), out.data()))
    return failure;
  const int code = copy(y, out.data(), out.size());
  return code == 0 ? nullptr : cuda_error(call, gpu, code);
}

int type_of(Kind kind) {
  constexpr int types[] = {Nccl::f64, Nccl::f32, Nccl::i64, Nccl::i32, Nccl::boolean};
  return types[static_cast<std::size_t>(kind)];
}
int op_of(std::int64_t reduction) {
  constexpr int ops[] = {Nccl::sum, Nccl::product, Nccl::min, Nccl::max};  // of bool min is and, max is or
  return ops[reduction];
}

/// Messages that NCCL sends together.
class Together {
 public:
  Together(const Nccl& nccl, const ProcessGroup& group, Kind kind, std::size_t n, void* stream)
      : nccl_(nccl), group_(group), type_(type_of(kind)), n_(n), bytes_(n * size_of(kind)), stream_(stream), code_(nccl.group_start()) {}
  void send(const void* x, int part, int to) {
    if (code_ == 0) code_ = nccl_.send(static_cast<const char*>(x) + bytes_ * static_cast<std::size_t>(part), n_, type_, to, group_.nccl, stream_);
  }
  void receive(void* y, int part, int from) {
    if (code_ == 0) code_ = nccl_.receive(static_cast<char*>(y) + bytes_ * static_cast<std::size_t>(part), n_, type_, from, group_.nccl, stream_);
  }
  int end() {
    const int code = nccl_.group_end();
    return code_ != 0 ? code_ : code;
  }

 private:
  const Nccl& nccl_;
  const ProcessGroup& group_;
  int type_;
  std::size_t n_, bytes_;
  void* stream_;
  int code_;
};

/// Queues an operation; NCCL's code.
int queue(const Call& call, const Entry& entry, void* stream, int to, int from, const void* x, void* y) {
  const Nccl& nccl = *gpus().nccl;
  const ProcessGroup& group = *call.group;
  const Kind kind = static_cast<Kind>(entry.kind());
  const auto n = static_cast<std::size_t>(entry.n);
  const int type = type_of(kind), op = op_of(entry.reduction()), root = static_cast<int>(entry.root());
  NcclComm const comm = group.nccl;
  switch (call.operation) {
    case distributed_all_reduce: return nccl.all_reduce(x, y, n, type, op, comm, stream);
    case distributed_reduce: return nccl.reduce(x, y, n, type, op, root, comm, stream);
    case distributed_broadcast: return nccl.broadcast(x, y, n, type, root, comm, stream);
    case distributed_all_gather: return nccl.all_gather(x, y, n, type, comm, stream);
    case distributed_reduce_scatter: return nccl.reduce_scatter(x, y, n, type, op, comm, stream);
    default: break;
  }
  Together messages(nccl, group, kind, n, stream);
  const bool at_root = root == group.rank;
  if (call.operation == distributed_send_receive) {
    if (to >= 0) messages.send(x, 0, to);
    if (from >= 0) messages.receive(y, 0, from);
    return messages.end();
  }
  if (call.operation == distributed_gather) messages.send(x, 0, root);
  if (call.operation == distributed_scatter) messages.receive(y, 0, root);
  for (int r = 0; r < group.size; ++r) {
    if (call.operation == distributed_all_to_all || (call.operation == distributed_scatter && at_root)) messages.send(x, r, r);
    if (call.operation == distributed_all_to_all || (call.operation == distributed_gather && at_root)) messages.receive(y, r, r);
  }
  return messages.end();
}

/// Both ranks of a message say what it is. NCCL would wait for ever where they differ.
const char* announce(const Call& call, const Entry& entry, int to, int from) {
  const Mpi& mpi = call.mpi();
  ProcessGroup& group = *call.group;
  std::int64_t own[2] = {static_cast<std::int64_t>(entry.what), entry.n}, its[2] = {};
  MpiStatus status{};
  const int tag = message_tag + static_cast<int>(entry.kind());
  const int code = mpi.sendrecv(own, 2, mpi.i64, to < 0 ? Mpi::no_rank : to, tag, its, 2, mpi.i64,
                                from < 0 ? Mpi::no_rank : from, Mpi::any, group.comm, &status);
  const bool fits = from < 0 || (code == 0 && status.tag == tag && its[0] == own[0] && its[1] == own[1]);
  if (!fits && (code == 0 || code == Mpi::truncated))
    return other_message(*call.world, group, from, -1, status.count, entry);
  return code == 0 ? nullptr : broken(*call.world, group, call.op, code);
}

const char* exchange_on_gpu(Kind kind, const char* place, const distributed_gpu& gpu, void* stream, std::int64_t comm,
                            std::int32_t operation, std::int32_t reduction, std::int64_t a, std::int64_t b, std::int64_t n,
                            const void* x, void* y) {
  const Call call = call_of(place, comm, operation);
  if (call.failure != nullptr) return call.failure;
  if (const char* const wrong = wrong_arguments(call, a, b, n)) return wrong;
  gpu.query(stream);  // graphs end here
  const ProcessGroup& group = *call.group;
  const bool pair = operation == distributed_send_receive;
  const int to = static_cast<int>(a), from = static_cast<int>(b);
  const auto bytes = static_cast<std::int64_t>(static_cast<std::size_t>(n) * size_of(kind));
  if (call.alone()) return on_own_gpu(call, gpu, stream, to, from, x, y, bytes);
  if (gpus().nccl == nullptr) return through_host(call, gpu, stream, kind, comm, operation, reduction, a, b, n, x, y);
  const std::int64_t root = is_rooted(operation) ? a : -1;
  const Entry entry = Entry::of(operation, reduction, static_cast<std::int64_t>(kind), root, n, place);
  if (pair && ((to == group.rank) != (from == group.rank))) return no_partner(call, to == group.rank);
  if (group.size == 1 || (pair && to == group.rank)) return on_own_gpu(call, gpu, stream, pair ? to - group.rank : 0, pair ? from - group.rank : 0, x, y, bytes);
  const bool nothing = pair ? from < 0 : (operation == distributed_reduce || operation == distributed_gather) && root != group.rank;
  if (nothing) {
    const auto parts = static_cast<std::int64_t>(parts_of(operation, group.size).written);
    if (const int code = gpu.zero(y, bytes * parts, stream)) return cuda_error(call, gpu, code);
  }
  Current current{};
  if (pair) {
    call.world->begin(current = note_message(call, entry, to, from));
    if (checks())
      if (const char* const failure = announce(call, entry, to, from)) return failure;
  } else {
    call.begin(entry);
    current = call.world->current();
  }
  const int code = n > 0 ? queue(call, entry, stream, to, from, x, y) : 0;
  if (code != 0 && code != Nccl::in_progress) return nccl_error(call, code);
  gpus().queued.push_back(current);
  if (gpus().queued.size() > most_queued) gpus().queued.pop_front();
  if (!pair) return call.end(0);
  call.world->end();
  return nullptr;
}

/// All ranks of the group do this.
const char* connect(const Call& call, ProcessGroup& group) {
  const Nccl& nccl = *gpus().nccl;
  const Mpi& mpi = call.mpi();
  if (group.size == 1 || group.nccl != nullptr) return nullptr;
  NcclId id{};
  std::int64_t word = group.rank == 0 ? nccl.get_id(&id) : 0;
  int code = mpi.bcast(&word, 1, mpi.i64, 0, group.comm);
  if (code == 0) code = mpi.bcast(id.bytes.data(), static_cast<int>(id.bytes.size()), mpi.byte, 0, group.comm);
  if (code != 0) return broken(*call.world, *call.group, call.op, code);
  if (word == 0) word = nccl.init_rank(&group.nccl, group.size, id, group.rank);
  if (word == 0) return nullptr;
  group.nccl = nullptr;
  return call.fail("rank " + std::to_string(call.world->rank()) + ": NCCL: " + nccl.error_string(static_cast<int>(word)) +
                   "; each rank needs a GPU of its own, or LANTERN_DISTRIBUTED=mpi, which goes through the host");
}

/// All use NCCL, or none does.
const char* enter(const Call& call) {
  if (call.alone() || gpus().entered) return nullptr;
  World& world = *call.world;
  const Mpi& mpi = world.mpi();
  std::string why;
  const Nccl* const nccl = world.engine() == "mpi" ? nullptr : load_nccl(why);
  std::int64_t words[4] = {nccl != nullptr, world.engine() != "nccl", 0, 0};
  call.begin(Entry::of(call.operation, 0, 0, -1, 0, call.op.place));
  const int code = mpi.allreduce(words, words + 2, 2, mpi.i64, mpi.ops[distributed_min], call.group->comm);
  if (const char* const failure = call.end(code)) return failure;
  if (const char* const failure = checks() ? compare(world, *call.group) : nullptr) return failure;
  gpus().entered = true;
  if (words[2] == 0 && words[3] == 0)
    return call.fail("the engine nccl cannot be loaded on all ranks" + (why.empty() ? "" : ": " + why) +
                     "; install NCCL 2 (libnccl.so.2), name it by LANTERN_NCCL, or set LANTERN_DISTRIBUTED=mpi");
  if (words[2] == 0) return nullptr;
  gpus().nccl = nccl;
  world.when_failed = abort_all;
  for (ProcessGroup* const group : world.communicators())
    if (const char* const failure = connect(call, *group)) return failure;
  return nullptr;
}

/// What NCCL says of the group of an operation that was queued; null where that is nothing.
const char* failure_in(World& world, const Current& queued) {
  Call call;
  call.world = &world;
  call.group = queued.group;
  call.op = queued.op;
  int error = 0;
  const bool broken = call.group->nccl != nullptr && gpus().nccl->async_error(call.group->nccl, &error) == 0 && error != 0 &&
                      error != Nccl::in_progress;
  return broken ? nccl_error(call, error) : nullptr;
}

/// The host is to wait for the stream. Another rank may have failed, and its part never come.
const char* wait(const distributed_gpu& gpu, void* stream) {
  const std::deque<Current> queued = std::exchange(gpus().queued, {});
  if (queued.empty()) return nullptr;
  World& world = *World::known();
  world.begin(queued.back());
  const char* failure = nullptr;
  for (unsigned round = 1; failure == nullptr && gpu.query(stream) == not_ready; ++round) {
    if (round % 64 == 0) {
      for (const Current& one : queued)
        if (failure == nullptr) failure = failure_in(world, one);
      world.watch_first_lacking(queued);
      if (failure == nullptr) failure = world.look();
    }
    std::this_thread::yield();
  }
  world.end();
  return failure;
}

}  // namespace

const char* connect_gpus(const Call& call, ProcessGroup& group) {
  return gpus().nccl == nullptr ? nullptr : connect(call, group);
}

}  // namespace lantern::distributed

using namespace lantern::distributed;

extern "C" {
const char* distributed_gpu_enter(const char* place, const distributed_gpu*, void*) {
  const Call call = call_of(place, 0, operation_gpu);
  return call.failure != nullptr ? call.failure : enter(call);
}
const char* distributed_gpu_exchange(const char* place, const distributed_gpu* gpu, void* stream, int32_t kind, int64_t comm,
                                     int32_t operation, int32_t reduction, int64_t a, int64_t b, int64_t n, const void* x,
                                     void* y) {
  return exchange_on_gpu(static_cast<Kind>(kind), place, *gpu, stream, comm, operation, reduction, a, b, n, x, y);
}
const char* distributed_gpu_wait(const distributed_gpu* gpu, void* stream) { return wait(*gpu, stream); }
int distributed_gpu_of_rank(void) {
  const char* const text = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  return text == nullptr ? -1 : std::atoi(text);
}
}
