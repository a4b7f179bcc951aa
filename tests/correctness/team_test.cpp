// Team: every share is done once, by any number of threads, again and again, and in processes that were
// forked.
#include "lantern/runtime/team.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "lantern/runtime/workspace.hpp"

using lantern::Team;
using lantern::Workspace;

namespace {

/// The team does all of n shares once, the last in this thread.
bool does_all(Team& team, std::size_t n) {
  std::vector<std::atomic<int>> times(n);
  std::atomic<bool> last_here{true};
  const auto here = std::this_thread::get_id();
  team.run(n, [&](std::size_t i) {
    ++times[i];
    if (i + 1 == n && std::this_thread::get_id() != here) last_here = false;
  });
  for (const auto& t : times)
    if (t != 1) return false;
  return last_here;
}

}  // namespace

TEST_CASE("team: shares of all sizes", "[threads]") {
  Team team;
  for (const std::size_t n : {0U, 1U, 2U, 5U, 3U, 1U, 8U, 2U, 0U, 4U}) CHECK(does_all(team, n));
}

TEST_CASE("team: work that follows at once, and work that finds it asleep", "[threads]") {
  Team team;
  int failures = 0;
  for (int i = 0; i < 5000; ++i) failures += !does_all(team, 2);
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(i * 20));
    failures += !does_all(team, 3);
  }
  CHECK(failures == 0);
}

TEST_CASE("team: threads help each other, not one after the other", "[threads]") {
  Team team;
  std::atomic<int> arrived{0};
  // Each waits for the others.
  team.run(4, [&](std::size_t) {
    ++arrived;
    while (arrived < 4) std::this_thread::yield();
  });
  CHECK(arrived == 4);
}

TEST_CASE("team: one for each of several threads", "[threads]") {
  std::atomic<int> failures{0};
  std::vector<std::thread> users;
  for (int u = 0; u < 4; ++u)
    users.emplace_back([&] {
      Team team;
      for (int i = 0; i < 300; ++i) failures += !does_all(team, 3);
    });
  for (std::thread& t : users) t.join();
  CHECK(failures == 0);
}

namespace {

/// A share of a fork: how often it was done, and whether it is to fail.
struct Share {
  std::atomic<int> times{0};
  bool fails = false;
};
void do_share(lt_workspace* ws, void* data) {
  Share* share = static_cast<Share*>(data);
  ++share->times;
  if (share->fails) ws->fail(ws, "a share fails");
}

}  // namespace

TEST_CASE("workspace: each share of a fork is done once", "[threads]") {
  Workspace ws;
  for (const std::size_t count : {2U, 3U, 8U, 64U})
    for (const std::int64_t threads : {2, 4})
      for (int repeat = 0; repeat < 200; ++repeat) {
        std::vector<Share> shares(count);
        const char* failure =
            ws.fork(threads, static_cast<std::int64_t>(count), do_share, shares.data(), sizeof(Share));
        REQUIRE(failure == nullptr);
        for (const Share& s : shares) REQUIRE(s.times == 1);
      }
}

TEST_CASE("workspace: what fails first in order is what a fork reports, and all before it is done",
          "[threads]") {
  Workspace ws;
  for (int repeat = 0; repeat < 500; ++repeat) {
    std::vector<Share> shares(9);
    const std::size_t first = static_cast<std::size_t>(repeat) % 9;
    for (std::size_t i = first; i < 9; i += 2) shares[i].fails = true;
    REQUIRE(ws.fork(3, 9, do_share, shares.data(), sizeof(Share)) == std::string("a share fails"));
    for (std::size_t i = 0; i <= first; ++i) REQUIRE(shares[i].times == 1);
    for (const Share& s : shares) REQUIRE(s.times <= 1);
  }
}

TEST_CASE("team: a forked process has threads of its own", "[threads]") {
  Team team;
  REQUIRE(does_all(team, 3));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);
    _exit(does_all(team, 3) && does_all(team, 4) ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(does_all(team, 3));
}
