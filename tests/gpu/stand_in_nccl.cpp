// libnccl for machines without a GPU: ranks talk through shared memory, as long as their streams have something to do.
// Operations are queued and take their time, as on a GPU: one whose partner never comes stays in the stream.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// Of the stand-in for the driver: does it where the stream is, when the host may touch the device's memory. 600: not yet.
int stand_in_queue(void* stream, const std::function<int()>& operation);

namespace {

constexpr int not_ready = 600;
enum : int { success = 0, system_error = 2, invalid_argument = 4 };
enum Type : int { u8 = 1, i32 = 2, i64 = 4, f32 = 7, f64 = 8 };

/// Bytes on their way from one rank to another.
struct Ring {
  static constexpr std::uint64_t capacity = 1 << 15;
  std::atomic<std::uint64_t> written, read;
  std::array<char, capacity> bytes;

  std::size_t put(const char* from, std::size_t n) {
    const std::uint64_t at = written.load();
    n = std::min<std::size_t>(n, capacity - (at - read.load()));
    for (std::size_t i = 0; i < n; ++i) bytes[(at + i) % capacity] = from[i];
    written.store(at + n);
    return n;
  }
  std::size_t take(char* to, std::size_t n) {
    const std::uint64_t at = read.load();
    n = std::min<std::size_t>(n, written.load() - at);
    for (std::size_t i = 0; i < n; ++i) to[i] = bytes[(at + i) % capacity];
    read.store(at + n);
    return n;
  }
};

struct Id {
  char bytes[128];
};

struct Comm {
  int size = 0, rank = 0;
  std::atomic<int>* joined = nullptr;
  Ring* rings = nullptr;
  bool aborted = false;
  Ring& ring(int from, int to) { return rings[from * size + to]; }
};
using CommPointer = std::shared_ptr<Comm>;

struct Part {
  int peer = 0;
  bool sends = false;
  char* data = nullptr;
  std::size_t left = 0;
};

/// What ranks send each other in one operation, and what comes when all is there.
struct Operation {
  CommPointer comm;
  std::vector<Part> parts;
  std::function<void()> last;
  std::vector<std::vector<char>> received;

  int step() {
    if (comm->aborted) return success;
    bool all = true;
    for (Part& p : parts) {
      const std::size_t n = p.sends ? comm->ring(comm->rank, p.peer).put(p.data, p.left)
                                    : comm->ring(p.peer, comm->rank).take(p.data, p.left);
      p.data += n;
      p.left -= n;
      all &= p.left == 0;
    }
    if (!all) return not_ready;
    if (last) last();
    return success;
  }
};

std::size_t size_of(int type) { return type == u8 ? 1 : type == i32 || type == f32 ? 4 : 8; }

template <class T>
void combine(int op, T* y, const T* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    y[i] = op == 0 ? static_cast<T>(y[i] + x[i]) : op == 1 ? static_cast<T>(y[i] * x[i]) : op == 2 ? std::max(y[i], x[i]) : std::min(y[i], x[i]);
}
void combine(int type, int op, void* y, const void* x, std::size_t n) {
  const auto with = [&]<class T>(T) { combine(op, static_cast<T*>(y), static_cast<const T*>(x), n); };
  switch (type) {
    case u8: return with(std::uint8_t());
    case i32: return with(std::int32_t());
    case i64: return with(std::int64_t());
    case f32: return with(float());
    default: return with(double());
  }
}

char* bytes_of(const void* p, std::size_t offset = 0) { return static_cast<char*>(const_cast<void*>(p)) + offset; }

int operations = 0;
int depth = 0;
std::shared_ptr<Operation> group;  ///< between ncclGroupStart and ncclGroupEnd
void* group_stream = nullptr;

std::shared_ptr<Operation> begin(const CommPointer& comm) {
  auto o = std::make_shared<Operation>();
  o->comm = comm;
  return o;
}
int queue(const std::shared_ptr<Operation>& o, void* stream) {
  ++operations;
  return stand_in_queue(stream, [o] { return o->step(); }) == 0 ? success : system_error;
}
const CommPointer& comm_of(void* comm) { return *static_cast<CommPointer*>(comm); }

/// Everyone among `readers` gets x of all, in the order of ranks, and adds up what it has.
int reduce(const void* x, void* y, std::size_t n, int type, int op, int root, void* handle, void* stream) {
  const CommPointer& comm = comm_of(handle);
  const auto o = begin(comm);
  const std::size_t bytes = n * size_of(type);
  for (int r = 0; r < comm->size; ++r)
    if (root < 0 || root == r) o->parts.push_back({r, true, bytes_of(x), bytes});
  if (root < 0 || root == comm->rank) {
    o->received.assign(static_cast<std::size_t>(comm->size), std::vector<char>(bytes));
    for (int r = 0; r < comm->size; ++r) o->parts.push_back({r, false, o->received[static_cast<std::size_t>(r)].data(), bytes});
    o->last = [o = o.get(), y, n, type, op, bytes] {
      if (n == 0) return;
      std::memcpy(y, o->received[0].data(), bytes);
      for (std::size_t r = 1; r < o->received.size(); ++r) combine(type, op, y, o->received[r].data(), n);
    };
  }
  return queue(o, stream);
}

int message(const void* data, std::size_t n, int type, int peer, void* comm, void* stream, bool sends) {
  if (depth == 0) return invalid_argument;  // two that send to each other would wait for ever
  if (!group) group = begin(comm_of(comm));
  group_stream = stream;
  group->parts.push_back({peer, sends, bytes_of(data), n * size_of(type)});
  return success;
}

}  // namespace

extern "C" {

int ncclGetUniqueId(Id* id) {
  static int number = 0;
  std::snprintf(id->bytes, sizeof id->bytes, "/stand-in-nccl-%d-%d", getpid(), number++);
  const int file = shm_open(id->bytes, O_CREAT | O_EXCL | O_RDWR, 0600);
  if (file < 0) return system_error;
  close(file);
  return success;
}
int ncclCommInitRank(void** to, int size, Id id, int rank) {
  const int file = shm_open(id.bytes, O_RDWR, 0600);
  const std::size_t all = 64 + sizeof(Ring) * static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
  if (file < 0 || ftruncate(file, static_cast<off_t>(all)) != 0) return system_error;
  void* const memory = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return system_error;
  auto comm = std::make_shared<Comm>();
  comm->size = size;
  comm->rank = rank;
  comm->joined = static_cast<std::atomic<int>*>(memory);  // zeros are a beginning
  comm->rings = reinterpret_cast<Ring*>(static_cast<char*>(memory) + 64);
  ++*comm->joined;
  while (*comm->joined < size) std::this_thread::yield();
  shm_unlink(id.bytes);
  *to = new CommPointer(comm);
  return success;
}
int ncclCommAbort(void* comm) {
  comm_of(comm)->aborted = true;
  return success;
}
int ncclCommGetAsyncError(void*, int* error) { return *error = success; }
const char* ncclGetErrorString(int code) { return code == invalid_argument ? "invalid argument" : "unhandled system error"; }

int ncclAllReduce(const void* x, void* y, std::size_t n, int type, int op, void* comm, void* stream) {
  return reduce(x, y, n, type, op, -1, comm, stream);
}
int ncclReduce(const void* x, void* y, std::size_t n, int type, int op, int root, void* comm, void* stream) {
  return reduce(x, y, n, type, op, root, comm, stream);
}
int ncclBroadcast(const void* x, void* y, std::size_t n, int type, int root, void* handle, void* stream) {
  const CommPointer& comm = comm_of(handle);
  const auto o = begin(comm);
  const std::size_t bytes = n * size_of(type);
  for (int r = 0; r < comm->size && comm->rank == root; ++r) o->parts.push_back({r, true, bytes_of(x), bytes});
  o->parts.push_back({root, false, bytes_of(y), bytes});
  return queue(o, stream);
}
int ncclAllGather(const void* x, void* y, std::size_t n, int type, void* handle, void* stream) {
  const CommPointer& comm = comm_of(handle);
  const auto o = begin(comm);
  const std::size_t bytes = n * size_of(type);
  for (int r = 0; r < comm->size; ++r) {
    o->parts.push_back({r, true, bytes_of(x), bytes});
    o->parts.push_back({r, false, bytes_of(y, bytes * static_cast<std::size_t>(r)), bytes});
  }
  return queue(o, stream);
}
int ncclReduceScatter(const void* x, void* y, std::size_t n, int type, int op, void* handle, void* stream) {
  const CommPointer& comm = comm_of(handle);
  const auto o = begin(comm);
  const std::size_t bytes = n * size_of(type);
  o->received.assign(static_cast<std::size_t>(comm->size), std::vector<char>(bytes));
  for (int r = 0; r < comm->size; ++r) {
    o->parts.push_back({r, true, bytes_of(x, bytes * static_cast<std::size_t>(r)), bytes});
    o->parts.push_back({r, false, o->received[static_cast<std::size_t>(r)].data(), bytes});
  }
  o->last = [o = o.get(), y, n, type, op, bytes] {
    std::memcpy(y, o->received[0].data(), bytes);
    for (std::size_t r = 1; r < o->received.size(); ++r) combine(type, op, y, o->received[r].data(), n);
  };
  return queue(o, stream);
}
int ncclSend(const void* x, std::size_t n, int type, int peer, void* comm, void* stream) {
  return message(x, n, type, peer, comm, stream, true);
}
int ncclRecv(void* y, std::size_t n, int type, int peer, void* comm, void* stream) {
  return message(y, n, type, peer, comm, stream, false);
}
int ncclGroupStart() {
  ++depth;
  return success;
}
int ncclGroupEnd() {
  if (--depth > 0 || !group) return success;
  return queue(std::exchange(group, nullptr), group_stream);
}
/// Operations so far; a group is one.
int stand_in_operations() { return operations; }

}  // extern "C"
