// Blocks written again, reads with what their indices need at the place of the first change.
#include "lantern/compiler/passes/array/reads_first.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

constexpr std::size_t most_moved = 32;  ///< operations for one read

/// True for what computes and cannot be seen to come earlier.
bool may_move(const Op& op) {
  return is_pure(op) && op.results.size() == 1 && op.result()->type.is_scalar();
}

class Order {
 public:
  explicit Order(Block* block) : block_(block) {}

  void run() {
    for (std::size_t i = 0; i < block_->ops.size(); ++i) {
      const Op* op = block_->ops[i];
      at_[op] = i;
      // What raises or prints stays in order with what may raise.
      if (op->is(Opcode::check_, Opcode::print_, Opcode::call_)) changed_.clear();
      if (is_write(*op)) changed_.try_emplace(op->operands[0], i);
      if (!op->is(Opcode::get_)) continue;
      if (const auto change = changed_.find(op->operands[0]); change != changed_.end())
        move(op, change->second);
    }
    if (before_.empty()) return;
    std::vector<Op*> ops;
    for (std::size_t i = 0; i < block_->ops.size(); ++i) {
      if (const auto first = before_.find(i); first != before_.end())
        ops.insert(ops.end(), first->second.begin(), first->second.end());
      if (!moved_.contains(block_->ops[i])) ops.push_back(block_->ops[i]);
    }
    block_->ops = std::move(ops);
  }

 private:
  /// Puts a read, and what its indices need, before an operation.
  void move(const Op* read, std::size_t to) {
    std::vector<std::size_t> needed;
    std::vector<const Op*> work{read};
    std::unordered_set<const Op*> seen{read};
    while (!work.empty()) {
      const Op* op = work.back();
      work.pop_back();
      if (!may_move(*op) || needed.size() > most_moved) return;
      needed.push_back(at_.at(op));
      for (const Value* v : op->operands) {
        const Op* def = v->def;
        if (!def || def->parent != block_ || at_.at(def) < to || already_before(def, to)) continue;
        if (seen.insert(def).second) work.push_back(def);
      }
    }
    // What has been moved to a later place stays there.
    if (std::ranges::any_of(needed, [&](std::size_t i) { return moved_.contains(block_->ops[i]); })) return;
    std::ranges::sort(needed);
    for (const std::size_t i : needed) {
      moved_[block_->ops[i]] = to;
      before_[to].push_back(block_->ops[i]);
    }
  }

  bool already_before(const Op* op, std::size_t to) const {
    const auto moved = moved_.find(op);
    return moved != moved_.end() && moved->second <= to;
  }

  Block* block_;
  std::unordered_map<const Op*, std::size_t> at_;
  std::unordered_map<const Value*, std::size_t> changed_;  ///< a tensor, and where it is first
  std::unordered_map<const Op*, std::size_t> moved_;       ///< to before this operation
  std::unordered_map<std::size_t, std::vector<Op*>> before_;
};

}  // namespace

void reads_first(Block* block) {
  for (Block* b : ir::blocks_below(block)) Order(b).run();
}

void reads_first(ir::Module& module) {
  for (ir::Function* f : module.functions())
    if (is_direct(*f)) reads_first(f->body);
}

}  // namespace lantern::passes
