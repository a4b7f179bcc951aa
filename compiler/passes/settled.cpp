// Every later write against the element that was read; every read against what was written.
#include "lantern/compiler/passes/settled.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/loops.hpp"
#include "lantern/compiler/passes/simplify.hpp"

namespace lantern::passes {

namespace {

bool is_write(const Op& op) { return op.is(Opcode::set_) || op.is(Opcode::add_at_); }

const Op* owner(const Value* v) { return v->def ? v->def : v->block->parent; }

/// What a piece of a loop's state becomes in a trip, and what writes it.
struct Versions {
  std::unordered_set<const Value*> values;
  std::vector<Op*> writes;

  /// Whether all that a loop does with a piece of its state is to write elements, which are noted.
  bool carried(const Op* loop, std::size_t state) {
    const Block* const body = loop->blocks[1];
    return chain(body, body->ops.back()->operands[state]) == body->params[state];
  }

 private:
  /// The versions in a block, from one to the first, and what writes them: gives the one before, from outside
  /// or the block's parameter; null where something else makes one.
  const Value* chain(const Block* block, const Value* v) {
    while (v->block == block && v->def) {
      values.insert(v);
      Op* const op = v->def;
      if (is_write(*op)) {
        writes.push_back(op);
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
    values.insert(v);
    return v;
  }
};

/// The loops around a block, from `outermost` inwards.
std::vector<const Op*> loops_around(const Block* block, const Op* outermost) {
  std::vector<const Op*> out;
  for (const Block* b = block; b && b->parent; b = b->parent->parent) {
    if (b->parent->is(Opcode::loop_)) out.push_back(b->parent);
    if (b->parent == outermost) break;
  }
  std::ranges::reverse(out);
  return out;
}

/// Whether in one trip of a body a write comes after the version that was read.
bool follows(const Op& write, const Value* read, const Block* body) {
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

/// Whether a write, in all its trips after the version that was read, or in all before, goes to other
/// elements. Both are in `outermost`, which carries the tensor on.
bool misses(const Op& get, const Op& write, const Op* outermost, Trip when) {
  const Value* const read = get.operands[0];
  const auto mine = loops_around(read->block, outermost), its = loops_around(write.parent, outermost);
  std::size_t common = 0;
  for (; common < mine.size() && common < its.size() && mine[common] == its[common]; ++common) {
    // In a later trip of this loop, those around it in the same.
    if (!counter_of(mine[common]) || !never_the_same(get, write, mine[common], when)) return false;
  }
  // After it in the same trip of all.
  const Op* const innermost = mine[common - 1];
  return follows(write, read, innermost->blocks[1]) != (when == Trip::later) ||
         never_the_same(get, write, innermost, Trip::same);
}

/// The loop that a tensor is state of, the outermost one, and which of its state.
class Outermost {
 public:
  explicit Outermost(const Op& get) : get_(get) {}
  const Op* loop = nullptr;
  std::size_t state = 0;

  bool find() {
    const Value* v = get_.operands[0];
    for (;;) {
      const Op* const op = owner(v);
      if (!op) return loop != nullptr;
      if (!v->def) {
        if (!op->is(Opcode::loop_) || v->block != op->blocks[1]) return false;
        loop = op;
        state = v->index;
        v = op->operands[v->index];
      } else if (is_write(*op)) {
        v = op->operands[0];
      } else if (op->is(Opcode::loop_)) {
        v = op->operands[v->index];
      } else if (op->is(Opcode::branch_)) {
        v = op->blocks[0]->ops.back()->operands[v->index];
      } else {
        return loop != nullptr;
      }
      // Where the tensor was made is of no interest: only the loops around the reading.
      if (loop && !contains(loop, v->block) && !around(v)) return true;
    }
  }

 private:
  /// True where v is state of a loop around the one found so far.
  bool around(const Value* v) const {
    const Block* const outer = loop->parent;
    return v->block == outer && outer->parent && outer->parent->is(Opcode::loop_) &&
           outer == outer->parent->blocks[1];
  }

  static bool contains(const Op* loop, const Block* block) {
    for (const Block* b = block; b; b = b->parent ? b->parent->parent : nullptr)
      if (b->parent == loop) return true;
    return false;
  }

  const Op& get_;
};

}  // namespace

Value* settled(const Op& get) {
  if (!get.is(Opcode::get_) || !get.operands[0]->type.is_tensor()) return nullptr;
  Outermost outermost(get);
  if (!outermost.find()) return nullptr;
  const Op* const loop = outermost.loop;
  Versions versions;
  if (!versions.carried(loop, outermost.state) || !versions.values.contains(get.operands[0])) return nullptr;
  const auto apart = [&](Trip when) {
    return std::ranges::all_of(versions.writes, [&](const Op* w) { return misses(get, *w, loop, when); });
  };
  if (apart(Trip::later)) return loop->results[outermost.state];
  return apart(Trip::earlier) ? loop->operands[outermost.state] : nullptr;
}

namespace {

/// The writes to a piece of a loop's state, which nobody asks for after the loop, of what no trip reads
/// afterwards.
std::vector<Op*> unread_writes(const Op* loop, std::size_t state) {
  constexpr std::size_t most_pairs = 1000;
  Versions versions;
  if (!versions.carried(loop, state) || versions.writes.empty()) return {};
  std::vector<const Op*> reads;
  bool elements = true;
  ir::walk(loop->blocks[1], [&](const Op* op) {
    for (std::size_t i = 0; i < op->operands.size(); ++i) {
      if (!versions.values.contains(op->operands[i])) continue;
      if (op->is(Opcode::get_))
        reads.push_back(op);
      else
        elements &= op->is(Opcode::yield_) || op->is(Opcode::loop_) || op->is(Opcode::dim_) ||
                    op->is(Opcode::zeros_like_) || (i == 0 && is_write(*op));
    }
    // What a loop inside asks about it before a trip.
    if (op->is(Opcode::loop_))
      ir::walk(op->blocks[0], [&](const Op* o) {
        for (const Value* v : o->operands) elements &= !(v->type.is_tensor() && v->block == op->blocks[0]);
      });
  });
  if (!elements || reads.size() * versions.writes.size() > most_pairs) return {};
  std::erase_if(versions.writes, [&](const Op* w) {
    return !std::ranges::all_of(reads, [&](const Op* get) { return misses(*get, *w, loop, Trip::earlier); });
  });
  return versions.writes;
}

}  // namespace

void dead_stores(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    std::unordered_set<const Value*> used;
    ir::walk(f->body, [&](const Op* op) { used.insert(op->operands.begin(), op->operands.end()); });
    std::unordered_map<const Value*, Value*> instead;
    for (const Op* loop : loops_in(*f))
      for (std::size_t s = 0; s < loop->results.size(); ++s) {
        if (!loop->results[s]->type.is_tensor() || used.contains(loop->results[s])) continue;
        for (const Op* write : unread_writes(loop, s)) instead[write->result()] = write->operands[0];
      }
    if (instead.empty()) continue;
    any = true;
    ir::walk(f->body, [&](Op* op) {
      for (Value*& v : op->operands)
        for (auto it = instead.find(v); it != instead.end(); it = instead.find(v)) v = it->second;
    });
  }
  if (any) simplify(module);
}

}  // namespace lantern::passes
