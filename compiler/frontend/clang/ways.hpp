// The ways control leaves a statement, and which statements become calls.
#pragma once

#include <functional>

#include "lantern/compiler/frontend/clang/tree.hpp"

namespace lantern::frontend {

/// Calls f(node) for a node and all nodes in it, lambdas' bodies included.
void walk(const Node* node, const std::function<void(const Node*)>& f);

using Statements = std::vector<const Node*>;

enum Way : unsigned { breaks = 1, continues = 2, returns = 4 };

/// Which ways out of itself a statement has.
unsigned exits(const Node* n);

/// Whether a statement becomes a call: its condition is staged, or a way out of a staged one crosses it.
bool converted(const Node* n);

/// Ways out of a statement that cross the lambda of a converted one.
unsigned leaves(const Node* n);
bool any_leaves(const Statements& list);

/// Whether control may go on after a statement; after statements in a row.
bool falls(const Node* n);
bool all_fall(const Statements& list);

bool is_loop(const Node* n);
/// Whether a loop in it returns from the function.
bool loop_returns(const Node* n);

/// The statements of a block; any other statement alone; none for null.
Statements statements(const Node* n);

}  // namespace lantern::frontend
