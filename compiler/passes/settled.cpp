// Every later write against the element that was read.
#include "lantern/compiler/passes/settled.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/index_form.hpp"

namespace lantern::passes {

namespace {

bool is_write(const Op& op) { return op.is(Opcode::set_) || op.is(Opcode::add_at_); }

const Op* owner(const Value* v) { return v->def ? v->def : v->block->parent; }

class Search {
 public:
  explicit Search(const Op& get) : get_(get) {}

  Value* run() {
    if (!outermost() || !carried(loop_, state_) || !versions_.contains(get_.operands[0]))
      return nullptr;
    const auto apart = [&](Trip when) {
      return std::ranges::all_of(writes_, [&](const Op* w) { return misses(*w, when); });
    };
    if (apart(Trip::later)) return loop_->results[state_];
    return apart(Trip::earlier) ? loop_->operands[state_] : nullptr;
  }

 private:
  /// The outermost loop that what is read is state of.
  bool outermost() {
    const Value* v = get_.operands[0];
    for (;;) {
      const Op* const op = owner(v);
      if (!op) return loop_ != nullptr;
      if (!v->def) {
        if (!op->is(Opcode::loop_) || v->block != op->blocks[1]) return false;
        loop_ = op;
        state_ = v->index;
        v = op->operands[v->index];
      } else if (is_write(*op)) {
        v = op->operands[0];
      } else if (op->is(Opcode::loop_)) {
        v = op->operands[v->index];
      } else if (op->is(Opcode::branch_)) {
        v = op->blocks[0]->ops.back()->operands[v->index];
      } else {
        return loop_ != nullptr;
      }
      // Where the tensor was made is of no interest: only the loops around the reading.
      if (loop_ && !contains(loop_, v->block) && !around(v)) return true;
    }
  }
  /// True where v is state of a loop around the one found so far.
  bool around(const Value* v) const {
    const Block* const outer = loop_->parent;
    return v->block == outer && outer->parent && outer->parent->is(Opcode::loop_) &&
           outer == outer->parent->blocks[1];
  }

  static bool contains(const Op* loop, const Block* block) {
    for (const Block* b = block; b; b = b->parent ? b->parent->parent : nullptr)
      if (b->parent == loop) return true;
    return false;
  }

  /// Whether all that a loop does with a piece of its state is to write elements, which are noted.
  bool carried(const Op* loop, std::size_t state) {
    const Block* const body = loop->blocks[1];
    return chain(body, body->ops.back()->operands[state]) == body->params[state];
  }

  /// The versions in a block, from one to the first, and what writes them: gives the one before, from outside
  /// or the block's parameter; null where something else makes one.
  const Value* chain(const Block* block, const Value* v) {
    while (v->block == block && v->def) {
      versions_.insert(v);
      const Op* const op = v->def;
      if (is_write(*op)) {
        writes_.push_back(op);
        v = op->operands[0];
      } else if (op->is(Opcode::loop_)) {
        if (!carried(op, v->index)) return nullptr;
        v = op->operands[v->index];
      } else if (op->is(Opcode::branch_)) {
        const Value* sides[2];
        for (std::size_t i = 0; i < 2; ++i)
          sides[i] = chain(op->blocks[i], op->blocks[i]->ops.back()->operands[v->index]);
        if (!sides[0] || sides[0] != sides[1]) return nullptr;
        v = sides[0];
      } else {
        return nullptr;
      }
    }
    versions_.insert(v);
    return v;
  }

  /// The loops around a block, from the outermost that carries the state on.
  std::vector<const Op*> loops(const Block* block) const {
    std::vector<const Op*> out;
    for (const Block* b = block; b && b->parent; b = b->parent->parent) {
      if (b->parent->is(Opcode::loop_)) out.push_back(b->parent);
      if (b->parent == loop_) break;
    }
    std::ranges::reverse(out);
    return out;
  }

  /// Whether the write, in all its trips after the version that was read, or in all before, goes to other
  /// elements.
  bool misses(const Op& write, Trip when) const {
    const Value* const read = get_.operands[0];
    const std::vector<const Op*> mine = loops(read->block), its = loops(write.parent);
    std::size_t common = 0;
    for (; common < mine.size() && common < its.size() && mine[common] == its[common]; ++common) {
      // In a later trip of this loop, those around it in the same.
      if (!counter_of(mine[common]) || !never_the_same(get_, write, mine[common], when)) return false;
    }
    // After it in the same trip of all.
    const Op* const innermost = mine[common - 1];
    return follows(write, read, innermost->blocks[1]) != (when == Trip::later) ||
           never_the_same(get_, write, innermost, Trip::same);
  }

  /// Whether in one trip of a body the write comes after the version that was read.
  static bool follows(const Op& write, const Value* read, const Block* body) {
    if (!read->def && read->block == body) return true;
    std::unordered_map<const Block*, const Op*> around;  // the reading's place in the blocks around it
    for (const Op* op = owner(read);; op = op->parent->parent) {
      around[op->parent] = op;
      if (op->parent == body) break;
    }
    const Op* op = &write;
    while (!around.contains(op->parent)) op = op->parent->parent;
    const auto place = [](const Op* o) { return std::ranges::find(o->parent->ops, o); };
    return place(op) > place(around[op->parent]);
  }

  const Op& get_;
  const Op* loop_ = nullptr;
  std::size_t state_ = 0;
  std::unordered_set<const Value*> versions_;
  std::vector<const Op*> writes_;
};

}  // namespace

Value* settled(const Op& get) {
  if (!get.is(Opcode::get_) || !get.operands[0]->type.is_tensor()) return nullptr;
  return Search(get).run();
}

}  // namespace lantern::passes
