// The chain of definitions of a loop-carried tensor in one iteration, and which of its writes may alias an access.
#pragma once

#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"

namespace lantern::passes {

/// What has a value as its result or its parameter.
const Op* owner(const Value* v);

/// What a piece of a loop's state becomes in an iteration, and what writes it.
struct DefChain {
  std::unordered_set<const Value*> values;
  std::vector<Op*> writes;

  /// Whether all that a loop does with a piece of its state is to write elements, which are noted.
  bool collect_defs(const Op* loop, std::size_t state);

  /// Whether what a yield or a loop hands on of an operand is a version as well. A version may also go on as
  /// another piece of state, `v = u` in a loop that changes u: it has readers there that are not seen here.
  bool forwards(const Op& op, std::size_t operand) const;

 private:
  const Value* chain(const Block* block, const Value* v);
};

/// Who reads the elements of a piece of a loop's state.
struct Reads {
  std::vector<const Op*> gets;
  bool others = false;  ///< something else asks for it, but for its shape, or has it under another name
};
Reads reads_of(const DefChain& versions, const Op* loop);

/// Whether a write, in all its iterations after the version of the tensor that an access has, or in all before,
/// goes to other elements. Both are in `outermost`, which carries the tensor on.
bool is_independent_of(const Op& access, const Op& write, const Op* outermost, Iteration when);

}  // namespace lantern::passes
