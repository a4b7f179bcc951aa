// Ranks compare what they are about to do; what goes wrong ends the program's call.
#include "call.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

/// Of generated code's host (runtime/workspace.h); a program without one ends here.
extern "C" void lantern_fail(const char* message) __attribute__((weak));

namespace lantern::distributed {

namespace {

const char* kind_name(Kind kind) {
  constexpr const char* names[] = {"double", "float", "int64_t", "int32_t", "bool"};
  return names[static_cast<std::size_t>(kind)];
}
const char* operation_name(std::int64_t operation) {
  constexpr const char* names[] = {"all_reduce", "reduce", "broadcast", "gather", "all_gather", "scatter",
                                   "reduce_scatter", "all_to_all", "scan", "scan", "scan", "scan", "send_receive",
                                   "all_to_all", "deterministic_sum", "barrier", "split", "rank", "size", "Grid"};
  return names[operation];
}
bool reduces(std::int64_t operation) {
  return operation == distributed_all_reduce || operation == distributed_reduce ||
         operation == distributed_reduce_scatter ||
         (operation >= distributed_scan && operation <= distributed_reverse_exclusive_scan);
}

/// Lets ranks meet in other orders, for tests: a wait of up to LANTERN_DISTRIBUTED_DELAYS microseconds, the same in
/// each run.
void delay(int rank) {
  static const long most = [] {
    const char* const text = std::getenv("LANTERN_DISTRIBUTED_DELAYS");
    return text == nullptr ? 0 : std::atol(text);
  }();
  if (most <= 0) return;
  static std::minstd_rand engine(static_cast<unsigned>(rank) + 1);
  std::this_thread::sleep_for(std::chrono::microseconds(engine() % static_cast<unsigned long>(most + 1)));
}

void run(const char* place, std::int64_t number, std::int32_t operation, const std::function<std::string(Call&)>& body,
         std::string& error) {
  const Operation op{operation_name(operation), place};
  World* const world = World::get(error);
  if (world == nullptr) {
    error = std::string(place) + (*place ? ": error: " : "") + "distributed: " + error;
    return;
  }
  if (operation < operation_rank) error = world->ready(op);
  if (!error.empty()) return;
  if (operation < operation_rank) delay(world->rank());
  ProcessGroup* const comm = world->communicator(number);
  if (comm == nullptr) {
    error = std::string(place) + ": error: distributed::" + op.name + ": there is no communicator " + std::to_string(number);
    return;
  }
  Call call{*world, *comm, op, {}};
  call.request.operation = operation;
  call.request.root = -1;
  const std::size_t length = std::min(std::strlen(place), call.request.place.size() - 1);
  std::copy_n(place, length, call.request.place.begin());
  error = body(call);
}

const char* kept(const std::string& error) {
  static std::array<char, 512> message;
  if (error.empty()) return nullptr;
  const std::size_t length = std::min(error.size(), message.size() - 1);
  std::copy_n(error.begin(), length, message.begin());
  message[length] = '\0';
  return message.data();
}

}  // namespace

std::size_t size_of(Kind kind) {
  constexpr std::size_t sizes[] = {8, 4, 8, 4, 1};
  return sizes[static_cast<std::size_t>(kind)];
}
MpiType type_of(const Mpi& mpi, Kind kind) {
  const MpiType types[] = {mpi.f64, mpi.f32, mpi.i64, mpi.i32, mpi.boolean};
  return types[static_cast<std::size_t>(kind)];
}

MpiOp op_of(const Mpi& mpi, Kind kind, std::int64_t reduction) {
  const MpiOp ops[] = {mpi.op_sum, mpi.op_product, mpi.op_min, mpi.op_max};
  if (kind == Kind::boolean) return reduction == distributed_min ? mpi.op_and : mpi.op_or;
  return ops[reduction];
}

bool checks() {
  static const bool on = [] {
    const char* const text = std::getenv("LANTERN_DISTRIBUTED_CHECKS");
    return text == nullptr || std::string(text) != "0";
  }();
  return on;
}

std::int64_t Request::hash() const {
  std::uint64_t h = 0x9e3779b97f4a7c15U;
  for (const std::int64_t word : {operation, reduction, root, kind, n})
    h = (h ^ static_cast<std::uint64_t>(word)) * 0xff51afd7ed558ccdU, h ^= h >> 32U;
  return static_cast<std::int64_t>(h >> 2U);
}

std::string Request::text() const {
  constexpr const char* reductions[] = {"sum", "product", "min", "max"};
  std::string all = operation_name(operation);
  if (reduces(operation)) all += std::string("(") + reductions[reduction] + ")";
  if (operation < operation_barrier) {
    all += " of " + std::to_string(n) + " " + kind_name(static_cast<Kind>(kind));
    if (operation == operation_ragged || operation == operation_exact_sum) all += " a row";
  }
  if (root >= 0) all += ", root " + std::to_string(root);
  return all + (place[0] ? " at " + std::string(place.data()) : "");
}

std::string Call::message(const std::string& what) const {
  return std::string(op.place) + (*op.place ? ": error: " : "") + "distributed::" + op.name + ": " + what;
}
std::string Call::fail(const std::string& what) const {
  return world.alone() ? message(what) : world.fail(op, message(what));
}

std::string agree(const Call& call) {
  if (!checks() && call.request.operation != operation_barrier) return {};
  std::array<std::int64_t, 4> words{};
  MpiRequest request = nullptr;
  if (std::string e = begin_agreement(call, words, request); !e.empty()) return e;
  return end_agreement(call, words, request);
}

std::string begin_agreement(const Call& call, std::array<std::int64_t, 4>& words, MpiRequest& request) {
  const Mpi& mpi = call.world.mpi();
  const std::int64_t hash = call.request.hash();
  words = {hash, ~hash, 0, 0};
  return call.checked(mpi.iallreduce(words.data(), words.data() + 2, 2, mpi.i64, mpi.op_max, call.comm.comm, &request));
}

std::string end_agreement(const Call& call, std::array<std::int64_t, 4>& words, MpiRequest& request) {
  const Mpi& mpi = call.world.mpi();
  if (std::string e = call.world.wait(request, call.op, call.comm.world); !e.empty()) return e;
  if (words[2] == ~words[3]) return {};
  std::vector<Request> requests(static_cast<std::size_t>(call.comm.size));
  const int bytes = static_cast<int>(sizeof(Request));
  mpi.allgather(&call.request, bytes, mpi.byte, requests.data(), bytes, mpi.byte, call.comm.comm);
  const auto differs = std::ranges::find_if(requests, [&](const Request& r) { return !r.same(requests[0]); });
  return call.fail("the ranks do not agree: rank " + std::to_string(call.comm.world[0]) + " calls " + requests[0].text() +
                   ", rank " + std::to_string(call.comm.world[static_cast<std::size_t>(differs - requests.begin())]) +
                   " calls " + differs->text());
}

const char* run(const char* place, std::int64_t number, std::int32_t operation,
                const std::function<std::string(Call&)>& body) {
  std::string error;
  run(place, number, operation, body, error);
  return kept(error);
}
void end_if(const char* message) {
  if (message == nullptr) return;
  if (lantern_fail != nullptr) lantern_fail(message);
  std::fprintf(stderr, "%s\n", message);
  std::exit(1);
}

}  // namespace lantern::distributed
