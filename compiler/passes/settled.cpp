// Every later write against the element that was read.
#include "lantern/compiler/passes/settled.hpp"

#include <algorithm>
#include <unordered_set>

#include "lantern/compiler/passes/loops.hpp"

namespace lantern::passes {

namespace {

bool is_write(const Op& op) { return op.is(Opcode::set_) || op.is(Opcode::add_at_); }

const Op* owner(const Value* v) { return v->def ? v->def : v->block->parent; }

/// A loop's index in its body, if it counts up.
const Value* index_of(const Op* loop) {
  const auto count = counted(loop);
  return count ? loop->blocks[1]->params[count->index] : nullptr;
}

std::optional<std::int64_t> number(const Value* v) {
  const Op* c = constant(v);
  return c ? std::optional(c->integer) : std::nullopt;
}

/// v = base + steps.
struct Shifted {
  const Value* base;
  std::int64_t steps = 0;
};
Shifted shifted(const Value* v) {
  if (v->def && (v->def->is(Opcode::add_) || v->def->is(Opcode::sub_)))
    if (const auto n = number(v->def->operands[1]))
      return {v->def->operands[0], v->def->is(Opcode::add_) ? *n : -*n};
  return {v, 0};
}

/// True where e + margin <= v is certain.
bool at_most(const Value* e, const Value* v, std::int64_t margin) {
  if (e == v) return margin <= 0;
  const Op* const of_v = v->block->parent;
  if (const auto n = number(e)) {
    // The index of a loop is at least where it starts.
    if (v->def || !of_v || !of_v->is(Opcode::loop_) || index_of(of_v) != v) return false;
    const auto first = number(of_v->operands[v->index]);
    return first && *n + margin <= *first;
  }
  const Shifted s = shifted(e);
  if (s.base != e) return at_most(s.base, v, margin + s.steps);
  const Op* const loop = e->block->parent;
  if (e->def || !loop || !loop->is(Opcode::loop_) || index_of(loop) != e) return false;
  const Shifted bound = shifted(counted(loop)->bound);
  return at_most(bound.base, v, margin + bound.steps - 1);
}

class Search {
 public:
  explicit Search(const Op& get) : get_(get) {}

  Value* run() {
    if (!outermost() || !chain(loop_->blocks[1], state_) || !versions_.contains(get_.operands[0]))
      return nullptr;
    const bool apart = std::ranges::all_of(writes_, [&](const Op* w) { return misses(*w); });
    return apart ? loop_->results[state_] : nullptr;
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

  /// The versions of the state in a body, from the last to the first, and what writes them.
  bool chain(const Block* body, std::size_t state) {
    const Value* v = body->ops.back()->operands[state];
    while (v != body->params[state]) {
      versions_.insert(v);
      if (!v->def || v->block != body) return false;
      const Op* const op = v->def;
      if (is_write(*op)) {
        writes_.push_back(op);
        v = op->operands[0];
      } else if (op->is(Opcode::loop_)) {
        if (!chain(op->blocks[1], v->index)) return false;
        v = op->operands[v->index];
      } else {
        return false;
      }
    }
    versions_.insert(v);
    return true;
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

  /// Whether the write, in all its trips after the version that was read, goes to other elements.
  bool misses(const Op& write) const {
    const Value* const read = get_.operands[0];
    const std::vector<const Op*> mine = loops(read->block), its = loops(write.parent);
    std::size_t common = 0;
    while (common < mine.size() && common < its.size() && mine[common] == its[common]) ++common;
    std::vector<const Value*> indices;
    for (std::size_t q = 0; q < common; ++q) {
      indices.push_back(index_of(mine[q]));
      if (!indices.back()) return false;
    }
    // In a later trip of loop q, the loops around it in the same; or, after them, in the same trip of all.
    for (std::size_t q = 0; q <= common; ++q) {
      if (q == common && !follows(write, read, mine[common - 1]->blocks[1])) return true;
      bool other = false;
      for (std::size_t d = 1; d + 1 < write.operands.size() && !other; ++d) {
        const auto moves = std::ranges::find(indices, write.operands[d]) - indices.begin();
        const auto s = static_cast<std::size_t>(moves);
        if (s < std::min(q + 1, common)) other = at_most(get_.operands[d], indices[s], s == q ? 0 : 1);
      }
      if (!other) return false;
    }
    return true;
  }

  /// Whether in one trip of a body the write comes after the version that was read.
  static bool follows(const Op& write, const Value* read, const Block* body) {
    const auto place = [&](const Op* op) {
      while (op->parent != body) op = op->parent->parent;
      return std::ranges::find(body->ops, op) - body->ops.begin();
    };
    if (!read->def && read->block == body) return true;
    return place(&write) > place(owner(read));
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
