// What the printers know about a module before they print it: uses, reachability, what outlives a scope.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/live_uses.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::codegen {

using ir::Kind;
using ir::Op;
using ir::Opcode;
using ir::Value;
using passes::LiveUses;

inline bool is_constant(const ir::Value* v) { return v->def && v->def->is(ir::Opcode::constant_); }

/// Functions reachable from the entry by calls and closures, callees before callers where there is no cycle.
std::vector<const ir::Function*> reachable(const ir::Module& module);

/// Which arena memory may still be in use when a function or a loop body has ended, other than by its
/// results: tensors on a tape, and tensors put into a cell.
class Escapes {
 public:
  explicit Escapes(const std::vector<const ir::Function*>& functions);

  bool from(const ir::Function* function) const { return functions_.contains(function); }
  bool from(ir::Block* body) const;

  /// Bytes each value takes on a tape: exact where all are of one size, else multiples of eight. 0: exact.
  std::int64_t tape_slot(std::int64_t tape) const;
  /// How many operations push to a tape or pop from it.
  int tape_uses(std::int64_t tape) const;

 private:
  /// What a function does itself, without those that it calls.
  struct Own {
    std::unordered_map<std::int64_t, int> tape_uses;
    std::unordered_set<std::int64_t> tensor_tapes;  ///< that hold memory which others have
    bool cell = false;                              ///< puts a tensor into a cell
    bool jump = false;
  };
  static Own own(ir::Block* body);

  std::unordered_map<const ir::Function*, Own> own_;
  std::unordered_set<const ir::Function*> functions_;
  std::unordered_map<std::int64_t, int> tape_uses_;
  std::unordered_map<std::int64_t, std::unordered_set<std::int64_t>> tape_sizes_;
};

/// The value that brought a tensor's memory in: updates in place and constructs that hand it through are
/// looked behind.
const ir::Value* memory_root(const ir::Value* v);
/// The same memory, if not the same shape: reshapes are looked behind too.
const ir::Value* storage_root(const ir::Value* v);
/// True where a loop's state is the same memory in every iteration, so that iterations leave nothing new in it.
bool keeps_memory(const ir::Op& loop, std::size_t state);

/// True for a function whose calls cost nothing beside it: a compiler that puts such functions together again
/// costs minutes. In operations, of which a loop costs a compiler as much as some dozens.
bool stays_out_of_line(const ir::Function& f);

/// Whether a product is added to zeros in its own memory, and nothing else sees them.
bool begins_with_zeros(const ir::Op& product, const LiveUses& uses);
/// The same where the product makes each element at once: its routine begins with what it makes.
bool adds_to_zeros(const ir::Op& product, const LiveUses& uses);

/// True where a value of this type refers to arena memory.
bool owns_memory(const ir::Type& type);

}  // namespace lantern::codegen
