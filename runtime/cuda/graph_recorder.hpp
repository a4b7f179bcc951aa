// CUDA graphs of calls that repeat: what a call queues is captured once, and launched as one graph from then on.
//
// The host's part of a program runs in every call: it checks shapes and keeps account of memory. While a graph is
// replayed what it would queue is skipped, for the graph holds it. A graph ends before what it cannot hold: a wait, an
// allocation, a copy of memory that the host may change. What comes behind that is queued one by one, as ever.
//
// A call repeats another where program, stream, arguments (pointers, sizes, numbers), targets and the memory of the thread are
// the same. The first such call runs as it is, the second is captured, all others are replayed.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace lantern::cuda_driver {

/// The driver's functions; null where it has none.
struct GraphFunctions {
  int (*begin_capture)(void* stream, int mode) = nullptr;
  int (*end_capture)(void* stream, void** graph) = nullptr;
  int (*instantiate)(void** executable, void* graph, unsigned long long flags) = nullptr;
  int (*launch)(void* executable, void* stream) = nullptr;
  int (*destroy_graph)(void* graph) = nullptr;
  int (*destroy_executable)(void* executable) = nullptr;
  bool complete() const {
    return begin_capture && end_capture && instantiate && launch && destroy_graph && destroy_executable;
  }
};

/// The graphs of a thread's calls.
class GraphRecorder {
 public:
  using Key = std::vector<std::int64_t>;

  GraphRecorder() = default;
  GraphRecorder(const GraphRecorder&) = delete;
  GraphRecorder& operator=(const GraphRecorder&) = delete;

  /// A call begins. CUDA's default stream cannot be captured.
  void enter(const GraphFunctions& functions, const void* program, const Key& key, void* stream);
  /// Something is about to be queued: true where the graph holds it, so that it is to be left out.
  bool skip();
  /// Before what a graph cannot hold, and where a call ends: what is captured, or replayed, is launched. A CUresult.
  int flush();
  /// The call has failed. What was captured is dropped.
  void abandon();
  bool capturing() const { return state_ == State::capturing; }
  /// How many graphs the last call has launched.
  std::uint64_t launched() const { return launched_; }
  /// Gives all graphs back.
  void clear();

 private:
  enum class State : std::uint8_t { off, capturing, replaying };
  struct Kept {
    Key key;
    void* executable = nullptr;
    std::uint64_t operations = 0;  ///< that the graph holds
    std::uint64_t used = 0;        ///< when
    int attempts = 0;              ///< to capture it
  };
  static constexpr std::size_t most = 8;      ///< graphs of one program
  static constexpr int most_attempts = 3;

  Kept* find(const Key& key);

  const GraphFunctions* functions_ = nullptr;
  std::map<const void*, std::vector<Kept>> programs_;
  std::vector<Kept>* of_program_ = nullptr;
  Kept* now_ = nullptr;
  State state_ = State::off;
  void* stream_ = nullptr;
  std::uint64_t left_ = 0, count_ = 0, clock_ = 0, launched_ = 0;
};

}  // namespace lantern::cuda_driver
