// A check of distributed programs: each message of a derivative has a partner.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Error where a derivative sends what no call of the program receives, or receives what none sends: one of its parts would
/// wait for ever. All ranks run this program, so that a partner is in it. Messages fit that have one element type and one role
/// in derivatives (runtime/distributed/kernels.h). Which ranks are partners is known when the program runs, and compared then.
/// A program that sends and never receives, or the other way around, is one of several that ranks have staged for themselves.
/// A call has no receiver, or no sender, where that is the constant -1, also as an argument of a function. Requires a graph
/// as it was staged. Cost: one walk.
void refuse_lone_messages(const ir::Module& module);

}  // namespace lantern::passes
