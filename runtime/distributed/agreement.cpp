// Ranks compare what they have called. Where hashes differ, or where ranks wait for long, logs go to the
// first rank of the communicator, which tells all what is wrong.
#include "agreement.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "call.hpp"

namespace lantern::distributed {

namespace {

std::string does(int rank, const RemoteEntry& e) {
  const bool end = Entry{e.what, e.n, ""}.operation() == operation_end;
  return "rank " + std::to_string(rank) +
         (end ? " comes to the end of its function" + (e.place.empty() ? "" : " at " + e.place)
              : " calls " + text_of(e));
}
/// How long ranks are waited for that have to say what is wrong, in seconds.
constexpr double answer_time = 3;

/// The last operation, for messages about all of them.
Operation last_of(const ProcessGroup& group) {
  const Log& log = group.log;
  if (log.count == 0) return {"barrier", ""};
  const Entry* e = &log.entries[log.count % Log::kept];
  if (e->operation() == operation_end && log.count > 1) e = &log.entries[(log.count - 1) % Log::kept];
  return {operation_name(e->operation()), e->place};
}

std::string head(const Operation& op) {
  return std::string(op.place) + (*op.place ? ": error: " : "") + "distributed::" + op.name + ": ";
}

}  // namespace

bool checks() {
  static const bool on = [] {
    const char* const text = std::getenv("LANTERN_DISTRIBUTED_CHECKS");
    return text == nullptr || std::string(text) != "0";
  }();
  return on;
}

const char* kept(const std::string& error) {
  static std::array<char, 512> message;
  if (error.empty()) return nullptr;
  const std::size_t length = std::min(error.size(), message.size() - 1);
  std::copy_n(error.begin(), length, message.begin());
  message[length] = '\0';
  return message.data();
}

namespace {

const char* differ(World& world, ProcessGroup& group, const Operation& op) {
  send_log(world, group);
  if (const char* const failure = world.look_until(answer_time, [] { return false; })) return failure;
  return kept(world.fail(op, head(op) + "the ranks do not agree; this one calls " +
                                 text_of(with_place(group.log.entries[group.log.count % Log::kept]))));
}
const char* went_wrong(World& world, ProcessGroup& group, const Operation& op, const std::string& error) {
  if (checks() && world.current().number > 0) {
    send_log(world, group);
    if (const char* const failure = world.look_until(answer_time, [] { return false; })) return failure;
  }
  return kept(world.fail(op, error));
}

}  // namespace

const char* compare(World& world, ProcessGroup& group) {
  Log& log = group.log;
  const Operation op = last_of(group);
  world.begin({op, &group, ++log.steps});
  std::int64_t words[4] = {static_cast<std::int64_t>(log.hash), ~static_cast<std::int64_t>(log.hash), 0, 0};
  const Mpi& mpi = world.mpi();
  const char* failure = nullptr;
  if (const int code = mpi.allreduce(words, words + 2, 2, mpi.i64, mpi.op_max, group.side))
    failure = went_wrong(world, group, op, world.error(op, code));
  else if (words[2] != ~words[3])
    failure = differ(world, group, op);
  if (failure == nullptr) {
    log.compared = log.count;
    for (RemoteLog& l : group.heard) l.first = 0;
  }
  world.end();
  return failure;
}

const char* broken(World& world, ProcessGroup& group, const Operation& op, int code) {
  return broken(world, group, op, world.error(op, code));
}
const char* broken(World& world, ProcessGroup& group, const Operation& op, const std::string& error) {
  const char* const failure = went_wrong(world, group, op, error);
  world.end();
  return failure;
}

const char* other_message(World& world, ProcessGroup& group, int from, int tag, std::size_t bytes,
                          const Entry& own) {
  const auto peer = static_cast<std::size_t>(from);
  const Operation op = world.current().op;
  Messages& all = group.messages;
  std::vector<char> question(sizeof(std::uint64_t));
  std::memcpy(question.data(), &all.from[peer], sizeof(std::uint64_t));
  all.answered = false;
  world.send_aside(question, from, question_tag, group.side);
  if (const char* const failure = world.look_until(answer_time, [&] { return all.answered; }))
    return world.end(), failure;
  std::string sent =
      std::to_string(bytes) + " bytes of " + (tag < 0 ? "something else" : kind_name(static_cast<Kind>(Entry::kind_of_tag(tag))));
  if (all.answered && all.answer.what != ~std::uint64_t{0}) sent = text_of(all.answer);
  const char* const failure = kept(world.fail(
      op, head(op) + "the ranks do not agree: rank " + std::to_string(group.world[peer]) + " sends " + sent +
              ", rank " + std::to_string(world.rank()) + " receives " + text_of(with_place(own))));
  world.end();
  return failure;
}

void send_log(World& world, ProcessGroup& group) {
  const Log& log = group.log;
  if (group.rank == 0) {  // what the others have called is compared with this
    group.heard.resize(static_cast<std::size_t>(group.size));
    return;
  }
  const std::uint64_t first = std::max(log.compared, log.count - std::min(log.count, Log::kept - 1)) + 1;
  std::vector<char> bytes(sizeof first);
  std::memcpy(bytes.data(), &first, sizeof first);
  for (std::uint64_t i = first; i <= log.count; ++i) put_entry(bytes, with_place(log.entries[i % Log::kept]));
  world.send_aside(bytes, 0, log_tag, group.side);
}

void take_aside(World& world, ProcessGroup& group, int from, int tag, const std::vector<char>& bytes) {
  const auto peer = static_cast<std::size_t>(from);
  std::size_t at = 0;
  if (tag == log_tag) {
    group.heard.resize(static_cast<std::size_t>(group.size));
    RemoteLog& log = group.heard[peer];
    std::memcpy(&log.first, bytes.data(), sizeof log.first);
    log.entries.clear();
    for (at = sizeof log.first; at < bytes.size();) log.entries.push_back(get_entry(bytes, at));
  } else if (tag == question_tag) {
    std::uint64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    RemoteEntry answer{~std::uint64_t{0}, 0, ""};
    for (const Messages::Sent& s : group.messages.last)
      if (s.to == from && s.number == number) answer = with_place(s.entry);
    std::vector<char> text;
    put_entry(text, answer);
    world.send_aside(text, from, answer_tag, group.side);
  } else {
    group.messages.answer = get_entry(bytes, at);
    group.messages.answered = true;
  }
}

std::string differences(const World& world, const ProcessGroup& group, bool complete) {
  if (group.heard.empty() || group.rank != 0) return {};
  const Log& log = group.log;
  constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t oldest = log.count - std::min(log.count, Log::kept - 1) + 1;
  std::uint64_t first = none;
  bool all = true;
  for (std::size_t r = 1; r < group.heard.size(); ++r) {
    const RemoteLog& other = group.heard[r];
    all &= other.first != 0;
    if (other.first == 0) continue;
    const std::uint64_t last = std::min(log.count, other.first + other.entries.size() - 1);
    for (std::uint64_t i = std::max(oldest, other.first); i <= last && i < first; ++i) {
      const Entry& own = log.entries[i % Log::kept];
      const RemoteEntry& its = other.entries[i - other.first];
      if (own.what != its.what || own.n != its.n) first = i;
    }
  }
  if (first == none || (!all && !complete)) return {};
  const RemoteEntry own = with_place(log.entries[first % Log::kept]);
  for (std::size_t r = 1; r < group.heard.size(); ++r) {
    const RemoteLog& other = group.heard[r];
    if (other.first == 0 || first < other.first || first >= other.first + other.entries.size()) continue;
    const RemoteEntry& its = other.entries[first - other.first];
    if (!its.same(own))
      return "the ranks do not agree: " + does(world.rank(), own) + ", " + does(group.world[r], its);
  }
  return {};
}

}  // namespace lantern::distributed
