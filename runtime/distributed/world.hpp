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
  MpiComm reversed = nullptr;  ///< the same ranks from last to first, once asked for
  int rank = 0, size = 1;
  std::vector<int> world;  ///< the rank of each in the world
};

/// What a rank tells the others of itself when it may matter to them. Sent as it lies in memory.
struct Notice {
  enum Kind : std::int32_t { computes, waits, failed, ended };
  Kind kind = computes;
  std::int32_t cause = -1;        ///< the rank for which this one has failed, itself or not; -1: all ranks together
  std::int32_t cause_failed = 0;  ///< whether that one has failed, with the message, or has ended
  std::array<char, 64> operation{};
  std::array<char, 192> place{};
  std::array<char, 512> message{};
};

/// The process among the others. Functions give an empty text, or what went wrong.
///
/// Every wait looks for notices of others. One that has lasted for a while is made known; where all ranks wait, and
/// nothing comes for as long again, nothing will: each of them fails with the list of what all wait for.
class World {
 public:
  /// Found by the first call. `why`: where the engine is not to be had.
  static World* get(std::string& why);
  /// The engine where the environment names none.
  static void prefer(const char* engine);

  bool alone() const { return mpi_ == nullptr; }
  const Mpi& mpi() const { return *mpi_; }
  int rank() const { return rank_; }
  ProcessGroup* communicator(std::int64_t number);
  std::int64_t add(ProcessGroup c);
  /// The communicators that splitting has given, by all colours and keys.
  std::map<std::vector<std::int64_t>, std::int64_t>& splits() { return splits_; }

  /// Before an operation: empty if this rank may take part in one.
  std::string ready(const Operation& op);
  /// Completes the request, or says why it will not be completed. `of`: the ranks of the world that it depends on.
  std::string wait(MpiRequest& request, const Operation& op, const std::vector<int>& of);
  /// The same where all others take part for certain: nothing is told of it.
  std::string finish(MpiRequest& request, const Operation& op);
  /// The message as this rank raises it; the other ranks get it too.
  std::string fail(const Operation& op, const std::string& message);
  /// For another rank, which has failed or ended: it is the one that others hear of.
  std::string fail(const Operation& op, const Notice& cause);
  std::string error(const Operation& op, int code) const;

  World(const World&) = delete;
  World& operator=(const World&) = delete;

 private:
  World() = default;
  std::string start();
  void tell(Notice::Kind kind, const Operation& op, const std::string& message);
  std::string head(const Operation& op) const;
  void tell_others(const Notice& notice);
  bool listen();
  const Notice* gone(const std::vector<int>& ranks) const;
  bool all_wait() const;
  std::string waiting_list(const Operation& op) const;
  void leave(int status);
  void drain(double seconds);
  static void on_exit(int status, void* world);
  [[noreturn]] static void on_terminate();

  const Mpi* mpi_ = nullptr;
  bool own_ = false;     ///< MPI was started here, and is ended here
  bool failed_ = false;  ///< others may be in the middle of what failed: nothing more is begun
  int rank_ = 0, size_ = 1;
  double patience_ = 1;
  std::uint64_t spins_ = 0;  ///< how often a wait looks before it gives its core to others
  MpiComm notices_ = nullptr;
  std::thread::id thread_;
  std::vector<Notice> others_;  ///< the last of each rank, but that of a failure stays
  std::vector<bool> over_;      ///< which have ended
  struct Sent {
    Notice notice;
    std::vector<MpiRequest> requests;
  };
  std::deque<Sent> sent_;
  std::vector<ProcessGroup*> communicators_;
  std::map<std::vector<std::int64_t>, std::int64_t> splits_;
};

}  // namespace lantern::distributed
