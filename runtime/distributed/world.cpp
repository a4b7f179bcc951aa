// Starting, waiting, failing and ending together.
#include "world.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "agreement.hpp"
#include "call.hpp"

namespace lantern::distributed {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int notice_tag = 1;
/// How long the others have to say why they end, in seconds.
constexpr double last_words = 5;

double elapsed(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <std::size_t n>
void put(std::array<char, n>& to, const std::string& text) {
  const std::size_t size = std::min(text.size(), n - 1);
  std::copy_n(text.begin(), size, to.begin());
  to[size] = '\0';
}

const char* preferred = "";  // before any constructor runs
std::terminate_handler terminate_before = nullptr;

const char* setting(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::string message_now() {
  if (!std::current_exception()) return "std::terminate";
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception";
  }
}

/// To a few milliseconds, for next to nothing.
double coarse_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

World* World::the_world = nullptr;

double World::seconds_now() { return coarse_now(); }

std::string Operation::text() const { return std::string(name) + (*place ? std::string(" at ") + place : ""); }

World* World::get(std::string& why) {
  if (the_world != nullptr) return the_world;
  auto* const world = new World;  // it outlives what is destroyed at the end: others are told there
  why = world->start();
  if (!why.empty()) {
    delete world;
    return nullptr;
  }
  return the_world = world;
}

void World::prefer(const char* engine) { preferred = engine; }

std::string World::start() {
  const std::string named = setting("LANTERN_DISTRIBUTED"), engine = named.empty() ? std::string(preferred) : named;
  engine_ = engine;
  const bool launched = *setting("OMPI_COMM_WORLD_SIZE") != '\0' || *setting("PMIX_RANK") != '\0';
  if (engine != "" && engine != "single" && engine != "mpi" && engine != "nccl")
    return "LANTERN_DISTRIBUTED: expected single, mpi or nccl, got '" + engine + "'";
  thread_ = &here;
  ready_ = longest_delay() <= 0;
  auto* const all = new ProcessGroup;
  communicators_.push_back(all);
  all->world = {0};
  if (engine == "single" || (engine.empty() && !launched)) return {};
  std::string why;
  mpi_ = load_mpi(why);
  if (mpi_ == nullptr)
    return "the engine mpi cannot be loaded: " + why +
           "; install Open MPI 4 (Debian: libopenmpi3), or set LANTERN_DISTRIBUTED=single for one process";
  int started = 0, level = 0;
  mpi_->initialized(&started);
  if (started != 0) {
    mpi_->query_thread(&level);
  } else {
    mpi_->init_thread(nullptr, nullptr, Mpi::funneled, &level);
    own_ = true;
    mpi_->comm_set_errhandler(mpi_->world, mpi_->errors_return);  // of operations in two halves Open MPI asks this one
  }
  if (level < Mpi::funneled) return "MPI was started without MPI_THREAD_FUNNELED, which generated code needs";
  if (*setting("LANTERN_DISTRIBUTED_PATIENCE") != '\0') patience_ = std::atof(setting("LANTERN_DISTRIBUTED_PATIENCE"));
  mpi_->comm_dup(mpi_->world, &all->comm);
  mpi_->comm_dup(mpi_->world, &all->side);
  mpi_->comm_dup(mpi_->world, &notices_);
  mpi_->comm_set_errhandler(all->comm, mpi_->errors_return);
  mpi_->comm_set_errhandler(all->side, mpi_->errors_return);
  mpi_->comm_set_errhandler(notices_, mpi_->errors_return);
  mpi_->comm_rank(all->comm, &rank_);
  mpi_->comm_size(all->comm, &size_);
  all->rank = rank_;
  all->size = size_;
  all->world.resize(static_cast<std::size_t>(size_));
  for (int r = 0; r < size_; ++r) all->world[static_cast<std::size_t>(r)] = r;
  all->id = 1;
  all->messages.to.resize(all->world.size());
  all->messages.from.resize(all->world.size());
  several_threads_ = level >= Mpi::serialized;
  others_.resize(static_cast<std::size_t>(size_));
  over_.resize(static_cast<std::size_t>(size_));
  completed_.resize(static_cast<std::size_t>(size_));
  mpi_->progress_register(while_waiting);
  ::on_exit(on_exit, this);
  terminate_before = std::set_terminate(on_terminate);
  return {};
}

std::int64_t World::add(ProcessGroup c) {
  communicators_.push_back(new ProcessGroup(std::move(c)));
  return static_cast<std::int64_t>(communicators_.size()) - 1;
}

std::string World::head(const Operation& op) const {
  return std::string(op.place) + (*op.place ? ": error: " : "") + "distributed::" + op.name + ": ";
}

std::string World::ready(const Operation& op) const {
  if (!is_own_thread())
    return head(op) + "called from another thread than the first one of this process that communicated";
  if (failed_) return head(op) + "an operation has failed before; ranks that have failed cannot go on communicating";
  return {};
}

std::string World::error(const Operation& op, int code) const {
  std::array<char, Mpi::longest_error + 1> text{};
  int length = 0;
  mpi_->error_string(code, text.data(), &length);
  return head(op) + "rank " + std::to_string(rank_) + ": MPI: " + text.data();
}

// ---- notices

void World::send_aside(const std::vector<char>& bytes, int to, int tag, MpiComm comm) {
  sent_.push_back({bytes, {nullptr}});
  Sent& sent = sent_.back();
  mpi_->isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()), mpi_->byte, to, tag, comm, &sent.requests[0]);
}

void World::tell_others(const Notice& notice) {
  while (!sent_.empty()) {
    bool done = true;
    for (MpiRequest& r : sent_.front().requests) {
      int flag = 0;
      mpi_->test(&r, &flag, nullptr);
      done &= flag != 0;
    }
    if (!done) break;
    sent_.pop_front();
  }
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    std::vector<char> bytes(sizeof(Notice) + communicators_.size() * sizeof(Completed));
    std::memcpy(bytes.data(), &notice, sizeof(Notice));
    for (std::size_t i = 0; i < communicators_.size(); ++i) {
      const ProcessGroup& g = *communicators_[i];
      const bool inside = current_.group == &g && current_.number > 0;
      Completed c{g.id, g.log.steps - std::min(g.log.steps, g.log.unfinished + (inside ? 1 : 0)), 0};
      const auto member = std::ranges::find(g.world, r);
      if (member != g.world.end()) c.received = g.messages.from[static_cast<std::size_t>(member - g.world.begin())];
      std::memcpy(bytes.data() + sizeof(Notice) + i * sizeof(Completed), &c, sizeof c);
    }
    send_aside(bytes, r, notice_tag, notices_);
  }
}

void World::tell(Notice::Kind kind, const Operation& op, const std::string& message) {
  Notice n;
  n.kind = kind;
  put(n.operation, op.name);
  put(n.place, op.place);
  put(n.message, message);
  n.cause = rank_;
  n.cause_failed = kind == Notice::failed ? 1 : 0;
  tell_others(n);
}

/// Whether there was anything new.
bool World::listen() {
  bool any = false;
  std::vector<char> bytes;
  MpiStatus status{};
  const auto next = [&](MpiComm comm) {
    int there = 0;
    if (mpi_->iprobe(Mpi::any, Mpi::any, comm, &there, &status) != 0 || there == 0) return false;
    bytes.resize(status.count);
    // Not MPI_Recv: this thread may be in the middle of another wait, and Open MPI's second one would wait for the first.
    MpiRequest request = nullptr;
    int done = 0;
    if (mpi_->irecv(bytes.data(), static_cast<int>(bytes.size()), mpi_->byte, status.source, status.tag, comm, &request) != 0)
      return false;
    while (done == 0 && mpi_->test(&request, &done, &status) == 0) continue;
    return any = true;
  };
  while (next(notices_)) {
    const auto from = static_cast<std::size_t>(status.source);
    Notice n;
    std::memcpy(&n, bytes.data(), sizeof n);
    completed_[from].resize((bytes.size() - sizeof n) / sizeof(Completed));
    std::memcpy(completed_[from].data(), bytes.data() + sizeof n, completed_[from].size() * sizeof(Completed));
    if (n.kind == Notice::ended) over_[from] = true;
    if (others_[from].kind != Notice::failed) others_[from] = n;  // why it ended
  }
  for (ProcessGroup* const group : communicators_)
    while (next(group->side)) take_aside(*this, *group, status.source, status.tag, bytes);
  return any;
}

bool World::is_over(int rank) const {
  const Notice::Kind kind = others_[static_cast<std::size_t>(rank)].kind;
  return rank != rank_ && (kind == Notice::failed || kind == Notice::ended);
}

bool World::partners_over() const {
  const auto over = [this](int r) { return r < 0 || r == rank_ || is_over(r); };
  return current_.number == 0 ? std::ranges::all_of(current_.peers, over)
                              : std::ranges::all_of(current_.group->world, over);
}

/// Whether this rank waits for one that takes part in nothing more: it may have done its part before.
bool World::missing(int rank) const {
  if (!is_over(rank)) return false;
  for (const Completed& c : completed_[static_cast<std::size_t>(rank)])
    if (c.group == current_.group->id && current_.number > 0) return c.operations < current_.number;
  return true;
}

/// What one of the ranks has said that this one waits for, and that takes part in nothing more; null while all may. One
/// that has failed by itself, or ended, is what the others have failed for.
const Notice* World::gone() const {
  if (current_.number == 0) {
    for (const int r : current_.peers)
      if (r >= 0 && is_over(r)) return &others_[static_cast<std::size_t>(r)];
    return nullptr;
  }
  for (const int r : current_.group->world)
    if (missing(r)) return &others_[static_cast<std::size_t>(r)];
  return nullptr;
}

bool World::all_wait() const {
  for (int r = 0; r < size_; ++r)
    if (r != rank_ && others_[static_cast<std::size_t>(r)].kind == Notice::computes) return false;
  return true;
}

std::string World::waiting_list(const Operation& op) const {
  std::string list;
  constexpr int most = 8;
  for (int r = 0; r < std::min(size_, most); ++r) {
    const Notice& n = others_[static_cast<std::size_t>(r)];
    const Operation its{n.operation.data(), n.place.data()};
    list += (list.empty() ? "" : ", ") + ("rank " + std::to_string(r)) +
            (r == rank_                   ? " waits in " + op.text()
             : n.kind == Notice::waits ? " waits in " + its.text()
                                          : " has ended");
  }
  return list + (size_ > most ? ", ..." : "");
}

// ---- waiting

/// The operation that was begun last is waited for from now on.
void World::watch(double now) {
  watched_ = turn_;
  since_ = heard_ = looked_ = now;
  suspected_ = false;
}

/// Of the engine: in the middle of an operation, between two looks at its connections.
int World::while_waiting() {
  World& world = *the_world;
  if (world.current_.group == nullptr || world.looking_ || world.failed_ || !world.is_own_thread()) return 0;
  constexpr int soon = 8;  // most operations have ended by then: the clock is not worth its time
  if (world.watched_ != world.turn_ && ++world.polls_ < soon) return 0;
  const double now = coarse_now();
  if (world.watched_ != world.turn_) {
    world.watch(now);
    return 0;
  }
  if (now == world.looked_) return 0;
  world.looked_ = now;
  const char* const failure = world.look();
  if (failure != nullptr) {
    world.current_.group = nullptr;
    end_if(failure);
  }
  return 0;
}

void World::watch_first_lacking(const std::deque<Current>& queued) {
  const Current before = current_;
  for (const Current& one : queued) {
    if (one.number == 0) continue;  // of a message it is not known whether the other rank has done its part
    current_ = one;
    if (gone() != nullptr) return;
  }
  current_ = before;
}

const char* World::look() {
  looking_ = true;
  const char* const failure = kept(why_not());
  looking_ = false;
  return failure;
}

std::string World::why_not() {
  const double now = coarse_now();
  if (watched_ != turn_) watch(now);
  if (listen()) heard_ = now;
  const Operation op = current_.op;
  const double quiet = now - heard_;
  const bool enough = quiet > patience_ / 4;
  for (const ProcessGroup* const group : communicators_)
    if (const std::string e = differences(*this, *group, enough); !e.empty()) return fail_together(op, e);
  // What was sent before the end may still be on its way.
  if (enough)
    if (const Notice* const why = gone()) return fail(op, *why);
  if (!suspected_ && checks() && current_.number > 0 && now - since_ > patience_ / 4) {
    suspected_ = true;
    send_log(*this, *current_.group);
  }
  if (!told_ && now - since_ > patience_) {
    tell(Notice::waits, op, "");
    told_ = true;
    heard_ = now;
  } else if (told_ && quiet > patience_ && all_wait()) {
    for (int r = 0; r < size_; ++r)  // found by another rank first
      if (r != rank_ && others_[static_cast<std::size_t>(r)].kind == Notice::failed)
        return fail(op, others_[static_cast<std::size_t>(r)]);
    return fail_together(op, "all ranks wait for each other: " + waiting_list(op));
  }
  return {};
}

void World::no_longer_waits() {
  told_ = false;
  tell(Notice::computes, current_.op, "");
}

/// Others may send what belongs to the operation that this rank leaves, to memory that the program uses for something else
/// then; some networks write there without a call of this process. So a rank leaves when all that take part have failed.
/// Where one does not within some seconds, this process ends at once.
void World::settle(const std::string& message) {
  if (when_failed != nullptr) std::exchange(when_failed, nullptr)();
  if (current_.group == nullptr) return;
  const double end = coarse_now() + last_words;
  while (!partners_over() && coarse_now() < end) {
    listen();
    std::this_thread::yield();
  }
  cancel_receive();
  abandoned_ = several_threads_;
  if (partners_over()) return;
  std::fprintf(stderr, "rank %d: %s; a rank that takes part still computes, and may send to memory of this one later: this process ends\n", rank_, message.c_str());
  std::fflush(nullptr);
  _exit(1);
}

/// What has come, and is not received yet, is written nowhere: this rank still calls the engine until it ends. What it
/// sends is not read any more, for the partner has failed or ended.
void World::cancel_receive() {
  int done = 0;
  if (halves_[0] == nullptr || mpi_->test(&halves_[0], &done, nullptr) != 0 || done != 0) return;
  mpi_->cancel(&halves_[0]);
  for (const double end = coarse_now() + 1; done == 0 && coarse_now() < end;)
    if (mpi_->test(&halves_[0], &done, nullptr) != 0) return;
}

std::string World::fail(const Operation& op, const std::string& message) {
  failed_ = true;
  ready_ = false;
  tell(Notice::failed, op, message);
  settle(message);
  return message;
}

std::string World::fail_together(const Operation& op, const std::string& message) {
  Notice all;
  put(all.message, message);
  return fail(op, all);
}

std::string World::fail(const Operation& op, const Notice& cause) {
  failed_ = true;
  ready_ = false;
  Notice own = cause;
  own.kind = Notice::failed;
  tell_others(own);
  std::string message = head(op);
  if (cause.cause >= 0)
    message += "rank " + std::to_string(rank_) + " waits for rank " + std::to_string(cause.cause) + ", which has " +
               (cause.cause_failed != 0 ? "failed: " : "ended");
  message += cause.message.data();
  settle(message);
  return message;
}

// ---- the end

/// Gives the others time to hear and to end themselves.
void World::drain(double seconds) {
  const Clock::time_point start = Clock::now();
  while (!abandoned_ && elapsed(start) < seconds) {
    listen();
    bool all = true;
    for (int r = 0; r < size_; ++r) all &= r == rank_ || over_[static_cast<std::size_t>(r)];
    if (all) break;
    std::this_thread::yield();
  }
  // mpirun drops what it has not yet read of the others' messages when the first process ends.
  std::fflush(nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(abandoned_ ? 2000 : 500));
}

/// A message of this rank whose receiver has ended without receiving it. Waits for those that may still receive, for at most
/// ten seconds: MPI_Finalize waits for them as well. Empty where there is none, and where it is not known.
std::string World::not_received() {
  const double end = coarse_now() + 10;
  for (const ProcessGroup* const g : communicators_) {
    for (std::size_t r = 0; r < g->messages.to.size(); ++r) {
      const std::uint64_t sent = g->messages.to[r];
      if (sent == 0) continue;
      while (!is_over(g->world[r])) {
        if (coarse_now() > end) return {};
        listen();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      const auto peer = static_cast<std::size_t>(g->world[r]);
      if (others_[peer].kind != Notice::ended) continue;  // failed: it has said so
      for (const Completed& c : completed_[peer]) {
        if (c.group != g->id || c.received >= sent) continue;
        for (const Messages::Sent& m : g->messages.last) {
          if (m.to != static_cast<int>(r) || m.number != c.received + 1) continue;
          const RemoteEntry entry = with_place(m.entry);  // the code may have gone
          return head({operation_name(m.entry.operation()), entry.place.c_str()}) + "rank " + std::to_string(rank_) + " sends " +
                 text_of(entry) + " to rank " + std::to_string(peer) + ", which has ended without receiving it";
        }
        return "distributed::send_receive: rank " + std::to_string(peer) + " has ended without receiving " +
               std::to_string(sent - c.received) + " messages of rank " + std::to_string(rank_);
      }
    }
  }
  return {};
}

void World::leave(int status) {
  int over = 0;
  mpi_->finalized(&over);
  if (over != 0) return;
  looking_ = true;
  current_.group = nullptr;
  if (!abandoned_) tell(Notice::ended, {"", ""}, "");
  if (failed_ || status != 0) {
    drain(last_words);
    _exit(status);  // requests that are never completed would keep MPI_Finalize
  }
  if (const std::string lost = own_ ? not_received() : ""; !lost.empty()) {
    std::fprintf(stderr, "rank %d: %s\n", rank_, lost.c_str());
    drain(last_words);
    _exit(1);
  }
  mpi_->progress_unregister(while_waiting);
  if (own_) mpi_->finalize();
}

void World::on_exit(int status, void* world) { static_cast<World*>(world)->leave(status); }

void World::on_terminate() {
  World* const world = the_world;
  if (world != nullptr) {
    world->looking_ = true;
    const std::string what = message_now();
    world->current_.group = nullptr;
    if (!world->failed_) world->tell(Notice::failed, {"", ""}, what);
    std::fprintf(stderr, "rank %d: %s\n", world->rank_, what.c_str());
    if (!world->abandoned_) world->tell(Notice::ended, {"", ""}, "");
    world->drain(last_words);
    _exit(1);
  }
  if (terminate_before != nullptr) terminate_before();
  std::abort();
}

}  // namespace lantern::distributed
