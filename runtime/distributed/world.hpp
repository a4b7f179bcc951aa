// The processes of a program: which engine connects them, who waits for whom, who has ended.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "log.hpp"
#include "mpi.hpp"

namespace lantern::distributed {

/// An operation that this rank takes part in, for messages.
struct Operation {
  const char* name;
  const char* place;
  std::string text() const;  ///< "all_reduce at model.cpp:12"
};

/// The ranks of a communicator, as this process knows them.
struct ProcessGroup {
  MpiComm comm = nullptr;      ///< null where the process is alone
  MpiComm side = nullptr;      ///< the same ranks, for what they tell each other about `comm`
  MpiComm reversed = nullptr;  ///< the same ranks from last to first, once asked for
  void* nccl = nullptr;        ///< the same ranks' GPUs (gpu.cpp)
  std::uint64_t id = 0;        ///< the same on all its ranks
  int rank = 0, size = 1;
  std::vector<int> world;  ///< the rank of each in the world
  Log log;
  Messages messages;
  std::vector<RemoteLog> heard;  ///< on its first rank: the logs of all
};

/// What a rank tells the others of itself when it may matter to them. Sent as it lies in memory; what it has completed on each
/// of its communicators follows.
struct Notice {
  enum Kind : std::int32_t { computes, waits, failed, ended };
  Kind kind = computes;
  std::int32_t cause = -1;        ///< the rank for which this one has failed, itself or not; -1: all ranks together
  std::int32_t cause_failed = 0;  ///< whether that one has failed, with the message, or has ended
  std::array<char, 64> operation{};
  std::array<char, 192> place{};
  std::array<char, 512> message{};
};
struct Completed {
  std::uint64_t group, operations, received;  ///< received: messages of the rank that is told
};

/// The operation that this rank is in the middle of. Its callers own nothing: a failure jumps over their frames.
struct Current {
  Operation op{"", ""};
  ProcessGroup* group = nullptr;  ///< null: none
  std::uint64_t number = 0;       ///< in the log of the group; 0: a message between two ranks
  int peers[2] = {-1, -1};        ///< of a message: the ranks of the world that it depends on
};

/// The process among the others. Functions give an empty text, or what went wrong.
///
/// Operations are the engine's own, which wait inside of it. While they wait, the engine calls `while_waiting`. It looks
/// for notices of others, and makes known what this rank waits for; where all ranks wait, and nothing comes for as long
/// again, nothing will: each of them fails with the list of what all wait for.
class World {
 public:
  /// Found by the first call. `why`: where the engine is not to be had.
  static World* get(std::string& why);
  static World* known() { return the_world; }
  /// The engine where the environment names none.
  static void prefer(const char* engine);

  bool alone() const { return mpi_ == nullptr; }
  /// What was asked for: "", "single", "mpi" or "nccl".
  const std::string& engine() const { return engine_; }
  /// Called once, when this rank fails: what it has given to GPUs is to end.
  void (*when_failed)() = nullptr;
  const Mpi& mpi() const { return *mpi_; }
  int rank() const { return rank_; }
  ProcessGroup* communicator(std::int64_t number) {
    const bool known = number >= 0 && number < static_cast<std::int64_t>(communicators_.size());
    return known ? communicators_[static_cast<std::size_t>(number)] : nullptr;
  }
  const std::vector<ProcessGroup*>& communicators() const { return communicators_; }
  std::int64_t add(ProcessGroup c);
  /// The communicators that splitting has given, by all colours and keys.
  std::map<std::vector<std::int64_t>, std::int64_t>& splits() { return splits_; }

  /// Whether this thread may begin an operation, at once.
  bool is_ready() const { return ready_ && is_own_thread(); }
  bool is_own_thread() const { return &here == thread_; }
  /// Empty then, or else why not.
  std::string ready(const Operation& op) const;

  /// What is done in between waits for other ranks. Nothing that owns memory may lie between the two.
  void begin(const Current& what) {
    current_ = what;
    ++turn_;
    polls_ = 0;
  }
  void end() {
    current_.group = nullptr;
    if (told_) [[unlikely]] no_longer_waits();
  }
  /// The place of the operation begun last.
  const Current& current() const { return current_; }
  /// Of a message between two ranks: what this one receives, and what it sends. A failure may leave them unfinished.
  MpiRequest* halves() { return halves_; }

  /// What the others have said since; null, or why this rank cannot go on with the operation that it waits in.
  const char* look();
  /// Of several operations that were queued, this rank waits for the first that a rank will not take part in.
  void watch_first_lacking(const std::deque<Current>& queued);
  /// Waits until `there()` or until one of the ranks has failed, no longer than `seconds`: then null.
  const char* look_until(double seconds, const auto& there) {
    for (const double end = seconds_now() + seconds; seconds_now() < end && !there();) {
      if (const char* const failure = look()) return failure;
      std::this_thread::yield();
    }
    return nullptr;
  }
  static double seconds_now();
  double patience() const { return patience_; }

  /// The message as this rank raises it; the other ranks get it too.
  std::string fail(const Operation& op, const std::string& message);
  /// For another rank, which has failed or ended: it is the one that others hear of.
  std::string fail(const Operation& op, const Notice& cause);
  /// For all ranks together.
  std::string fail_together(const Operation& op, const std::string& message);
  std::string error(const Operation& op, int code) const;

  /// Sends bytes that are kept until they have gone.
  void send_aside(const std::vector<char>& bytes, int to, int tag, MpiComm comm);

  World(const World&) = delete;
  World& operator=(const World&) = delete;

 private:
  World() = default;
  std::string start();
  void tell(Notice::Kind kind, const Operation& op, const std::string& message);
  std::string head(const Operation& op) const;
  void tell_others(const Notice& notice);
  bool listen();
  bool missing(int rank) const;
  const Notice* gone() const;
  bool is_over(int rank) const;
  bool partners_over() const;
  bool all_wait() const;
  void watch(double now);
  std::string waiting_list(const Operation& op) const;
  std::string why_not();
  void no_longer_waits();
  void settle(const std::string& message);
  void cancel_receive();
  std::string not_received();
  void leave(int status);
  void drain(double seconds);
  static int while_waiting();
  static void on_exit(int status, void* world);
  [[noreturn]] static void on_terminate();

  static World* the_world;
  const Mpi* mpi_ = nullptr;
  std::string engine_;
  bool own_ = false;        ///< MPI was started here, and is ended here
  bool failed_ = false;     ///< others may be in the middle of what failed: nothing more is begun
  bool abandoned_ = false;  ///< an operation was left while other threads may run: the engine is not called again, for it may write
  bool several_threads_ = false;
  int rank_ = 0, size_ = 1;
  double patience_ = 1;
  MpiComm notices_ = nullptr;
  inline static thread_local char here = 0;  ///< where it lies tells threads from each other
  const char* thread_ = nullptr;
  bool ready_ = false;  ///< has not failed, and need not be delayed
  std::vector<Notice> others_;  ///< the last of each rank, but that of a failure stays
  std::vector<bool> over_;      ///< which have ended
  std::vector<std::vector<Completed>> completed_;
  struct Sent {
    std::vector<char> bytes;
    std::vector<MpiRequest> requests;
  };
  std::deque<Sent> sent_;
  std::vector<ProcessGroup*> communicators_;
  std::map<std::vector<std::int64_t>, std::int64_t> splits_;

  Current current_;
  MpiRequest halves_[2] = {nullptr, nullptr};
  std::uint64_t turn_ = 0;  ///< counts operations; `watched_` is the one that `since_` and what follows belong to
  std::uint64_t watched_ = 0;
  int polls_ = 0;  ///< of the engine in this operation, until it is watched
  double since_ = 0, heard_ = 0, looked_ = 0;
  bool told_ = false, suspected_ = false, looking_ = false;
};

}  // namespace lantern::distributed
