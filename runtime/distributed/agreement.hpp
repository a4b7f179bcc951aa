// Whether ranks call the same operations: who finds out, and when.
#pragma once

#include "world.hpp"

namespace lantern::distributed {

/// Whether ranks compare what they do.
bool checks();

/// Ends when all ranks of the group have come here; null if all have called the same operations until now.
const char* compare(World& world, ProcessGroup& group);
/// The engine says that an operation went wrong: most often because other ranks did another one.
[[gnu::cold]] const char* broken(World& world, ProcessGroup& group, const Operation& op, const std::string& error);
[[gnu::cold]] const char* broken(World& world, ProcessGroup& group, const Operation& op, int code);
/// A message of `bytes` with this tag came from rank `from` of the group, and is not what `own` receives.
[[gnu::cold]] const char* other_message(World& world, ProcessGroup& group, int from, int tag,
                                        std::size_t bytes, const Entry& own);

/// Tags of communicators' side messages.
enum : int { log_tag = 2, question_tag, answer_tag };
/// Sends this rank's log to the first rank of the group.
void send_log(World& world, ProcessGroup& group);
/// Takes a side message of the group.
void take_aside(World& world, ProcessGroup& group, int from, int tag, const std::vector<char>& bytes);
/// On the first rank of a group: what the logs say is wrong, or empty. `complete`: no more of them will come.
std::string differences(const World& world, const ProcessGroup& group, bool complete);

/// Memory of a message that stays.
const char* kept(const std::string& error);

}  // namespace lantern::distributed
