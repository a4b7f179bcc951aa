// Starting, waiting, failing and ending together.
#include "world.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <unistd.h>

namespace lantern::distributed {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int notice_tag = 1;
/// How long the others have to say why they end, in seconds.
constexpr double last_words = 5;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <std::size_t n>
void put(std::array<char, n>& to, const std::string& text) {
  const std::size_t size = std::min(text.size(), n - 1);
  std::copy_n(text.begin(), size, to.begin());
  to[size] = '\0';
}

World* the_world = nullptr;
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

}  // namespace

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
  const bool launched = *setting("OMPI_COMM_WORLD_SIZE") != '\0' || *setting("PMIX_RANK") != '\0';
  if (engine != "" && engine != "single" && engine != "mpi")
    return "LANTERN_DISTRIBUTED: expected single or mpi, got '" + engine + "'";
  thread_ = std::this_thread::get_id();
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
  }
  if (level < Mpi::funneled) return "MPI was started without MPI_THREAD_FUNNELED, which generated code needs";
  if (*setting("LANTERN_DISTRIBUTED_PATIENCE") != '\0') patience_ = std::atof(setting("LANTERN_DISTRIBUTED_PATIENCE"));
  mpi_->comm_dup(mpi_->world, &all->comm);
  mpi_->comm_dup(mpi_->world, &notices_);
  mpi_->comm_set_errhandler(all->comm, mpi_->errors_return);
  mpi_->comm_set_errhandler(notices_, mpi_->errors_return);
  mpi_->comm_rank(all->comm, &rank_);
  mpi_->comm_size(all->comm, &size_);
  all->rank = rank_;
  all->size = size_;
  all->world.resize(static_cast<std::size_t>(size_));
  for (int r = 0; r < size_; ++r) all->world[static_cast<std::size_t>(r)] = r;
  // Whoever gives its core away for a message of a microsecond may have it back milliseconds later.
  const char* const local = setting("OMPI_COMM_WORLD_LOCAL_SIZE");
  const auto here = static_cast<unsigned>(*local != '\0' ? std::atoi(local) : size_);
  constexpr std::uint64_t patient = 1U << 14U, hurried = 256;
  spins_ = here <= std::thread::hardware_concurrency() ? patient : hurried;
  others_.resize(static_cast<std::size_t>(size_));
  over_.resize(static_cast<std::size_t>(size_));
  ::on_exit(on_exit, this);
  terminate_before = std::set_terminate(on_terminate);
  return {};
}

ProcessGroup* World::communicator(std::int64_t number) {
  const bool known = number >= 0 && number < static_cast<std::int64_t>(communicators_.size());
  return known ? communicators_[static_cast<std::size_t>(number)] : nullptr;
}

std::int64_t World::add(ProcessGroup c) {
  communicators_.push_back(new ProcessGroup(std::move(c)));
  return static_cast<std::int64_t>(communicators_.size()) - 1;
}

std::string World::head(const Operation& op) const {
  return std::string(op.place) + (*op.place ? ": error: " : "") + "distributed::" + op.name + ": ";
}

std::string World::ready(const Operation& op) {
  if (std::this_thread::get_id() != thread_)
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
  sent_.push_back({notice, {}});
  Sent& sent = sent_.back();
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    MpiRequest request = nullptr;
    if (mpi_->isend(&sent.notice, sizeof(Notice), mpi_->byte, r, notice_tag, notices_, &request) == 0)
      sent.requests.push_back(request);
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
  while (true) {
    int there = 0;
    MpiStatus status{};
    if (mpi_->iprobe(Mpi::any, notice_tag, notices_, &there, &status) != 0 || there == 0) return any;
    Notice& n = others_[static_cast<std::size_t>(status.source)];
    const Notice before = n;
    mpi_->recv(&n, sizeof(Notice), mpi_->byte, status.source, notice_tag, notices_, &status);
    if (n.kind == Notice::ended) over_[static_cast<std::size_t>(status.source)] = true;
    if (before.kind == Notice::failed) n = before;  // why it ended
    any = true;
  }
}

/// What one of the ranks has said that takes part in nothing more; null while all may. One that has failed by itself,
/// or ended, is what the others have failed for.
const Notice* World::gone(const std::vector<int>& ranks) const {
  for (const int r : ranks) {
    const Notice& n = others_[static_cast<std::size_t>(r)];
    if (r != rank_ && (n.kind == Notice::failed || n.kind == Notice::ended)) return &n;
  }
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

std::string World::wait(MpiRequest& request, const Operation& op, const std::vector<int>& of) {
  const Clock::time_point start = Clock::now();
  Clock::time_point heard = start;
  bool told = false;
  constexpr std::uint64_t listening = 256;
  for (std::uint64_t turn = 0;; ++turn) {
    int done = 0;
    if (const int code = mpi_->test(&request, &done, nullptr)) return fail(op, error(op, code));
    if (done != 0) break;
    if (turn < spins_) continue;
    std::this_thread::yield();
    if (turn % listening != 0) continue;
    if (listen()) heard = Clock::now();
    // What was sent before the end may still be on its way.
    const double quiet = since(std::max(heard, start));
    if (quiet > patience_ / 4)
      if (const Notice* const why = gone(of)) return fail(op, *why);
    if (!told && since(start) > patience_) {
      tell(Notice::waits, op, "");
      told = true;
      heard = Clock::now();
    } else if (told && quiet > patience_ && all_wait()) {
      if (const Notice* const why = gone(communicators_[0]->world); why != nullptr && why->kind == Notice::failed)
        return fail(op, *why);  // found by another rank first
      Notice deadlock;
      put(deadlock.message, "all ranks wait for each other: " + waiting_list(op));
      return fail(op, deadlock);
    }
  }
  if (told) tell(Notice::computes, op, "");
  return {};
}

std::string World::finish(MpiRequest& request, const Operation& op) {
  while (true) {
    int done = 0;
    if (const int code = mpi_->test(&request, &done, nullptr)) return fail(op, error(op, code));
    if (done != 0) return {};
    std::this_thread::yield();
  }
}

std::string World::fail(const Operation& op, const std::string& message) {
  failed_ = true;
  tell(Notice::failed, op, message);
  return message;
}

std::string World::fail(const Operation& op, const Notice& cause) {
  failed_ = true;
  Notice own = cause;
  own.kind = Notice::failed;
  tell_others(own);
  if (cause.cause < 0) return head(op) + cause.message.data();
  return head(op) + "rank " + std::to_string(rank_) + " waits for rank " + std::to_string(cause.cause) +
         ", which has " + (cause.cause_failed != 0 ? "failed: " : "ended") + cause.message.data();
}

// ---- the end

/// Gives the others time to hear and to end themselves.
void World::drain(double seconds) {
  const Clock::time_point start = Clock::now();
  while (since(start) < seconds) {
    listen();
    bool all = true;
    for (int r = 0; r < size_; ++r) all &= r == rank_ || over_[static_cast<std::size_t>(r)];
    if (all) break;
    std::this_thread::yield();
  }
  // mpirun drops what it has not yet read of the others' messages when the first process ends.
  std::fflush(nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
}

void World::leave(int status) {
  int over = 0;
  mpi_->finalized(&over);
  if (over != 0) return;
  tell(Notice::ended, {"", ""}, "");
  if (failed_ || status != 0) {
    drain(last_words);
    _exit(status);  // requests that are never completed would keep MPI_Finalize
  }
  if (own_) mpi_->finalize();
}

void World::on_exit(int status, void* world) { static_cast<World*>(world)->leave(status); }

void World::on_terminate() {
  World* const world = the_world;
  if (world != nullptr) {
    const std::string what = message_now();
    if (!world->failed_) world->tell(Notice::failed, {"", ""}, what);
    std::fprintf(stderr, "rank %d: %s\n", world->rank_, what.c_str());
    world->tell(Notice::ended, {"", ""}, "");
    world->drain(last_words);
    _exit(1);
  }
  if (terminate_before != nullptr) terminate_before();
  std::abort();
}

}  // namespace lantern::distributed
