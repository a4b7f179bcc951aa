// Ownership of tensors, and who may overwrite them.
//
// Memory is followed from value to value. A *root* is the value that first holds some memory; rows, slices
// and reshapes are views and belong to their root. A root is *unique* when no other root shares its memory:
// it was freshly made, or the only value that held the memory before was *consumed* in handing it on (to a
// branch result, the next iteration of a loop, a parameter, a caller). A use consumes a root when no use of it
// comes later on any path through the use, in no later iteration, and none before gave its memory another holder
// (a tape, a construct, a callee that keeps it). Uniqueness and consumption depend on each other: all is
// assumed unique until refuted.
//
// A function in continuation-passing style may run what follows a continuation's call or creation several times. There a
// use consumes a root only where no such operation lies between the root and the use.
#include "lantern/compiler/passes/memory/inplace.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/prototype.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

using ir::Function;

/// How an operation uses a tensor operand.
enum class Usage { shape, view, read, hold };

Usage usage(const Op& op, std::size_t i) {
  if (ir::only_shape(op, i)) return Usage::shape;
  switch (op.code) {
    case Opcode::external_:
      // The result has the memory of the operand that it changes: own_changed_operands made that for this call.
      return std::ranges::count(ir::parse_prototype(op.text).changed_operands(), i) ? Usage::hold : Usage::read;
    case Opcode::finite_:
      return Usage::read;
    case Opcode::push_:
      return ir::owns_elements(op) ? Usage::read : Usage::hold;
    case Opcode::reshape_:
    case Opcode::take_:
    case Opcode::slice_:
      return Usage::view;
    case Opcode::select_:
      return op.operands[0]->type.is_scalar() ? Usage::hold : Usage::read;
    default:
      return ir::info(op.code).effect == ir::Effect::none && !op.is(Opcode::yield_, Opcode::closure_)
                 ? Usage::read
                 : Usage::hold;
  }
}

/// What may work in the memory of its first operand: a copy of what nothing reads any more is that itself.
bool is_update(const Op& op) {
  if (ir::updates_first(op)) return !op.is(Opcode::ref_acc_);
  if (op.is(Opcode::copy_)) return true;
  return ir::info(op.code).elementwise && op.operands[0]->type.is_tensor() &&
         op.operands[0]->type.element() == op.result()->type.element();
}

bool is_constant_fill(const Op* op) {
  return op && op->is(Opcode::fill_) && op->operands[0]->def && op->operands[0]->def->is(Opcode::constant_);
}

/// Replaces the operand `v` of an operation by a tensor of its own, to be put before it: a copy, or of a tensor that is filled
/// with a constant another one, which takes less.
Op* own(ir::Module& module, const Op& user, Value*& v) {
  const Op* from = v->def;
  const bool filled = is_constant_fill(from);
  Op* op = module.new_op(filled ? Opcode::fill_ : Opcode::copy_, user.parent);
  op->loc = user.loc;
  op->operands = filled ? from->operands : std::vector<Value*>{v};
  v = module.add_result(op, v->type);
  return op;
}

/// Puts operations before those of a block that they belong to.
void insert_before(Block* block, const std::unordered_map<const Op*, std::vector<Op*>>& before) {
  std::vector<Op*> ops;
  for (Op* op : block->ops) {
    if (const auto it = before.find(op); it != before.end()) ops.insert(ops.end(), it->second.begin(), it->second.end());
    ops.push_back(op);
  }
  block->ops = std::move(ops);
}

class Ownership {
 public:
  explicit Ownership(ir::Module& module) : module_(module) {
    for (const Function* f : module.functions())
      if (!is_direct(*f)) others_.insert(f);
    for (Function* f : module.functions()) collect(f);
    find_escaping();
    while (refute()) {
    }
  }

  /// True where parts of tensors get memory of their own instead, so that all is to be asked again: `mark` has then made no
  /// copies.
  bool mark() {
    for (Op* op : updates_)
      if (!mark_operand(op, 0) && op->is(Opcode::add_, Opcode::mul_) && mark_operand(op, 1))
        std::swap(op->operands[0], op->operands[1]);
    if (copy_parts()) return true;
    insert_copies();
    return false;
  }

  /// Says of memory that is ours when nothing reads it any more. After `mark`.
  void forget() {
    find_lenders();
    std::unordered_map<Block*, std::unordered_map<const Op*, std::vector<Value*>>> dead;
    for (const auto& [r, uses] : uses_)
      if (const Op* last = last_reader(r, uses)) dead[r->block][last].push_back(const_cast<Value*>(r));
    for (auto& [block, after] : dead) {
      std::vector<Op*> ops;
      for (Op* op : block->ops) {
        ops.push_back(op);
        const auto it = after.find(op);
        if (it == after.end()) continue;
        std::ranges::sort(it->second, {}, [&](const Value* v) {
          return v->def ? std::pair(positions_.at(v->def), v->index) : std::pair(std::size_t{0}, v->index);
        });
        for (Value* v : it->second) {
          Op* forget = module_.new_op(Opcode::forget_, block);
          forget->loc = op->loc;
          forget->operands = {v};
          const Lenders others = lenders(v);
          for (const Value* lender : others.values) forget->operands.push_back(const_cast<Value*>(lender));
          ops.push_back(forget);
        }
      }
      block->ops = std::move(ops);
    }
  }

 private:
  struct Use {
    const Op* op;
    std::size_t operand;
    std::size_t position;
    bool holds;
  };

  // ---- facts

  void collect(Function* f) {
    const bool direct = !others_.contains(f);
    fixed_.insert(module_.entry);
    if (!direct) fixed_.insert(f);
    ir::walk(f->body, [&](Op* op) {
      const std::size_t position = position_++;
      positions_[op] = position;
      if (op->callee && (!direct || !op->is(Opcode::call_))) fixed_.insert(op->callee);
      if (!direct && transfers_control(*op)) transfers_.push_back(position);
      if (op->is(Opcode::call_)) calls_[op->callee].push_back(op);
      for (std::size_t i = 0; i < op->operands.size(); ++i) {
        const Value* v = op->operands[i];
        if (!v->type.is_tensor()) continue;
        const Usage how = usage(*op, i);
        if (how == Usage::view) roots_[op->result()] = root(v);
        if (how == Usage::read || how == Usage::hold)
          uses_[root(v)].push_back({op, i, position, how == Usage::hold});
      }
      if (op->is(Opcode::branch_, Opcode::loop_, Opcode::call_))
        for (const Value* v : op->results)
          if (v->type.is_tensor()) conditional_.push_back(v);
      if (!op->results.empty() && op->result()->type.is_tensor() && is_update(*op)) updates_.push_back(op);
    });
    if (!direct) return;
    functions_.push_back(f);
    for (const Value* p : f->body->params)
      if (p->type.is_tensor()) conditional_.push_back(p);
  }

  /// Whether what follows the operation may run later, or several times.
  bool transfers_control(const Op& op) const {
    if (op.is(Opcode::fun_, Opcode::closure_, Opcode::jump_, Opcode::halt_)) return true;
    return op.callee && others_.contains(op.callee);
  }

  bool transfers_between(const Value* r, std::size_t use) const {
    const std::size_t made = positions_.at(r->def ? r->def : r->block->ops.front());
    const auto next = std::ranges::lower_bound(transfers_, made);
    return next != transfers_.end() && *next <= use;
  }

  const Value* root(const Value* v) const {
    const auto it = roots_.find(v);
    return it == roots_.end() ? v : it->second;
  }

  /// Parameters whose memory a function may keep: by a result, a tape or another function.
  void find_escaping() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Function* f : functions_)
        for (const Value* p : f->body->params) {
          if (!p->type.is_tensor() || escaping_.contains(p)) continue;
          const auto uses = uses_.find(p);
          if (uses == uses_.end() ||
              std::ranges::none_of(uses->second, [&](const Use& u) { return holds(u); }))
            continue;
          escaping_.insert(p);
          changed = true;
        }
    }
  }

  bool holds(const Use& use) const {
    if (!use.op->is(Opcode::call_)) return use.holds;
    const Function* callee = use.op->callee;
    return callee->cps || escaping_.contains(callee->body->params[use.operand]) || others_.contains(callee);
  }

  // ---- uniqueness

  bool unique(const Value* r) const {
    if (!r->def) {
      const Op* owner = r->block->parent;
      if (!owner) return !fixed_.contains(r->block->function) && !refuted_.contains(r);
      return owner->is(Opcode::loop_) && r->block == owner->blocks[1] &&
             !refuted_.contains(owner->results[r->index]);
    }
    const Op& op = *r->def;
    if (op.is(Opcode::branch_, Opcode::loop_, Opcode::call_)) return !refuted_.contains(r);
    if (op.is(Opcode::undef_, Opcode::external_)) return true;
    if (op.is(Opcode::pop_)) return ir::owns_elements(op);  // a copy of what lies on the tape
    if (op.is(Opcode::select_) && op.operands[0]->type.is_scalar()) return false;
    return ir::info(op.code).effect == ir::Effect::none;
  }

  /// One round over everything whose uniqueness is conditional; true if some was refuted.
  bool refute() {
    bool refuted = false;
    for (const Value* v : conditional_) {
      if (refuted_.contains(v) || supported(v)) continue;
      refuted_.insert(v);
      refuted = true;
    }
    return refuted;
  }

  bool supported(const Value* v) const {
    if (!v->def) {
      const Function* f = v->block->function;
      const auto calls = calls_.find(f);
      if (fixed_.contains(f) || calls == calls_.end()) return false;
      return std::ranges::all_of(calls->second, [&](const Op* call) { return consumes(call, v->index); });
    }
    const Op* op = v->def;
    if (op->is(Opcode::call_))
      return !others_.contains(op->callee) && consumes(op->callee->body->ops.back(), v->index);
    if (op->is(Opcode::loop_)) return consumes(op->blocks[1]->ops.back(), v->index);
    return std::ranges::all_of(op->blocks, [&](const Block* b) { return consumes(b->ops.back(), v->index); });
  }

  /// True where the operand is a tensor of our own that nothing sees after, or beside, this use.
  bool consumes(const Op* op, std::size_t operand) const {
    const Value* r = root(op->operands[operand]);
    if (!unique(r)) return false;
    const std::size_t position = positions_.at(op);
    if (transfers_between(r, position)) return false;
    const auto found = uses_.find(r);
    std::optional<std::vector<std::pair<std::size_t, std::size_t>>> elsewhere;
    const auto exclusive = [&](const Use& w) {
      if (!elsewhere) elsewhere = other_sides(op, r);
      return std::ranges::any_of(*elsewhere, [&](const auto& range) {
        return w.position >= range.first && w.position < range.second;
      });
    };
    for (std::size_t i = found->second.size(); i-- > 0;) {
      const Use& w = found->second[i];
      if (w.op == op) {
        const bool same_elements =
            ir::info(op->code).elementwise && op->operands[w.operand] == op->operands[operand];
        if (w.operand != operand && !same_elements) return false;
      } else if ((w.position > position || holds(w)) && !exclusive(w)) {
        return false;
      }
    }
    return in_iteration_of(op, r);
  }

  // Beyond this nesting the answers are the careful ones.
  static constexpr int deepest = 512;

  /// No loop lies between the root and the use: the next iteration would see what this one overwrote.
  static bool in_iteration_of(const Op* op, const Value* r) {
    const Block* b = op->parent;
    for (int depth = 0; depth < deepest && b; ++depth) {
      if (b == r->block) return true;
      if (!b->parent || !b->parent->is(Opcode::branch_)) return false;
      b = b->parent->parent;
    }
    return false;
  }

  /// The positions of the sides of branches that are not taken when the operation runs.
  std::vector<std::pair<std::size_t, std::size_t>> other_sides(const Op* op, const Value* r) const {
    std::vector<std::pair<std::size_t, std::size_t>> ranges;
    const Block* b = op->parent;
    for (int depth = 0; depth < deepest && b && b != r->block && b->parent; ++depth) {
      const Op* owner = b->parent;
      if (owner->is(Opcode::branch_)) {
        const Block* other = owner->blocks[owner->blocks[0] == b ? 1 : 0];
        ranges.emplace_back(positions_.at(other->ops.front()), positions_.at(other->ops.back()) + 1);
      }
      b = owner->parent;
    }
    return ranges;
  }

  // ---- memory that nothing reads any more

  // A piece of the arena that is given back costs some nanoseconds.
  static constexpr std::int64_t least_elements = 512;

  static bool is_small(const ir::Type& type) {
    std::int64_t product = 1;
    for (const std::int64_t d : type.dims()) {
      if (d == ir::dynamic) return false;
      if (d >= least_elements) return false;
      product *= d;
    }
    return product < least_elements;
  }

  /// The operation of the root's block behind which its memory is free; null where others have it, or it is
  /// not ours.
  const Op* last_reader(const Value* r, const std::vector<Use>& uses) const {
    if (others_.contains(r->block->function)) return nullptr;  // a continuation may read it again
    if (is_small(r->type) || !lenders(r).known) return nullptr;
    // A condition has no place behind its last operation.
    if (const Op* owner = r->block->parent; owner && owner->is(Opcode::loop_) && r->block == owner->blocks[0])
      return nullptr;
    for (const Use& use : uses)
      if (forwards(use, r)) return nullptr;
    const Op* op = uses.back().op;
    while (op->parent != r->block) op = op->parent->parent;
    const std::vector<Op*>& ops = r->block->ops;
    const bool last = ops.size() < 2 || op == ops.back() || op == ops[ops.size() - 2];
    return last && op->is(Opcode::yield_, Opcode::call_, Opcode::branch_) ? nullptr : op;
  }

  /// The use gives the memory to another holder.
  bool forwards(const Use& use, const Value* r) const {
    const Op& op = *use.op;
    if (op.is(Opcode::call_) && unique(op.callee->body->params[use.operand])) return true;
    if (op.is(Opcode::loop_)) {
      const auto copied = copies_.find(const_cast<Op*>(&op));
      return copied == copies_.end() ||
             std::ranges::find(copied->second, use.operand) == copied->second.end();
    }
    const bool in_place = op.in_place && root(op.operands[0]) == r;
    return in_place || holds(use);
  }

  // A loop starts with memory of others where no copy is made of it: what its states hold is ours from the
  // second iteration on. So a root goes with its *lenders*, whose memory it may have instead of its own; who
  // forgets it asks. What `mark` relied on has memory of its own; elsewhere it is followed to where it was
  // made.
  struct Lenders {
    std::vector<const Value*> values;
    bool known = true;
  };
  static constexpr std::size_t most_lenders = 3;

  void find_lenders() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Value* v : conditional_)
        if (unique(v) && !needed_.contains(v)) changed |= add_lenders(v, lenders_[v]);
    }
  }

  Lenders lenders(const Value* r) const {
    if (!unique(r)) return {{}, false};
    if (!r->def && r->block->parent) r = r->block->parent->results[r->index];
    const auto found = needed_.contains(r) ? lenders_.end() : lenders_.find(r);
    return found == lenders_.end() ? Lenders() : found->second;
  }

  /// More is added to what is known of a construct's result or a parameter, never taken away or moved, so
  /// that rounds come to an end. True where anything was.
  bool add_lenders(const Value* v, Lenders& all) const {
    if (!all.known) return false;
    const std::size_t before = all.values.size();
    const auto add = [&](const Lenders& more) {
      all.known &= more.known;
      for (const Value* l : more.values)
        if (std::ranges::find(all.values, l) == all.values.end()) all.values.push_back(l);
    };
    const auto add_from = [&](const Block* b) {
      Lenders more = lenders(root(b->ops.back()->operands[v->index]));
      more.known &= std::ranges::none_of(more.values, [&](const Value* l) { return is_within(l->block, b); });
      add(more);
    };
    const auto add_call = [&](const Value* r) {  // lenders are not followed through calls
      const Lenders more = lenders(r);
      add({{}, more.known && more.values.empty()});
    };
    if (!v->def) {
      for (const Op* call : calls_.at(v->block->function)) add_call(root(call->operands[v->index]));
    } else if (v->def->is(Opcode::branch_)) {
      for (const Block* b : v->def->blocks) add_from(b);
    } else if (v->def->is(Opcode::call_)) {
      add_call(root(v->def->callee->body->ops.back()->operands[v->index]));
    } else {
      const Value* initial = root(v->def->operands[v->index]);
      add_from(v->def->blocks[1]);
      add(consumes(v->def, v->index) ? lenders(initial) : Lenders{{initial}, has_variable(initial)});
    }
    all.known &= all.values.size() <= most_lenders;
    if (!all.known) all.values.clear();
    return !all.known || all.values.size() > before;
  }

  static bool is_within(const Block* b, const Block* outer) {
    for (int depth = 0; b != outer; ++depth) {
      if (!b->parent) return false;
      if (depth == deepest) return true;  // the careful answer
      b = b->parent->parent;
    }
    return true;
  }

  /// True of what is made where it is, or given: later code can ask where it lies.
  static bool has_variable(const Value* r) {
    if (!r->def) return true;
    const Op& op = *r->def;
    if (op.is(Opcode::branch_, Opcode::loop_, Opcode::call_)) return true;
    return ir::info(op.code).effect == ir::Effect::none && !op.is(Opcode::select_, Opcode::tree_value_);
  }

  // ---- marks and copies

  bool mark_operand(Op* op, std::size_t operand) {
    if (!consumes(op, operand)) return false;
    op->in_place = true;
    need(root(op->operands[operand]));
    return true;
  }

  /// Follows what the uniqueness of a root rests on, and notes where a loop has to start with a copy.
  void need(const Value* r) {
    std::vector<const Value*> work{r};
    const auto also = [&](const Value* v) { work.push_back(root(v)); };
    while (!work.empty()) {
      const Value* v = work.back();
      work.pop_back();
      if (!v->def && v->block->parent) v = v->block->parent->results[v->index];
      if (!needed_.insert(v).second) continue;
      if (!v->def) {
        for (const Op* call : calls_.at(v->block->function)) also(call->operands[v->index]);
        continue;
      }
      Op* op = v->def;
      if (op->is(Opcode::branch_))
        for (const Block* b : op->blocks) also(b->ops.back()->operands[v->index]);
      if (op->is(Opcode::call_)) also(op->callee->body->ops.back()->operands[v->index]);
      if (!op->is(Opcode::loop_)) continue;
      also(op->blocks[1]->ops.back()->operands[v->index]);
      if (consumes(op, v->index))
        also(op->operands[v->index]);
      else
        copies_[op].push_back(v->index);
    }
  }

  /// Where a tensor would be copied because parts of it, taken before, are read later, the parts are copied:
  ///
  ///   p = slice s, lo, hi                      p = copy (slice s, lo, hi)
  ///   t = loop s ... add_at ... p      from    a copy of s      to      s itself
  bool copy_parts() {
    std::vector<Op*> parts;
    std::unordered_set<const Op*> seen;
    const auto note = [&](Op* op, std::size_t operand) {
      for (Op* part : parts_in_the_way(op, operand))
        if (seen.insert(part).second) parts.push_back(part);
    };
    for (const Function* f : functions_)
      ir::walk(f->body, [&](Op* op) {
        if (const auto it = copies_.find(op); it != copies_.end())
          for (const std::size_t i : it->second) note(op, i);
        if (ir::updates_first(*op) && is_update(*op) && !op->in_place) note(op, 0);
      });
    for (Op* part : parts) {
      Value* const v = part->result();
      ir::Builder b = ir::Builder::after(part);
      Value* const copy = b.emit(Opcode::copy_, {v});
      copy->name = v->name;
      ir::replace_uses(part->parent->function->body, v, copy);
      copy->def->operands[0] = v;
    }
    for (Op* op : updates_)
      if (!parts.empty()) op->in_place = false;
    return !parts.empty();
  }

  /// The parts of a tensor of our own that keep an operation from consuming it; none where other things do.
  std::vector<Op*> parts_in_the_way(const Op* op, std::size_t operand) const {
    const Value* const r = root(op->operands[operand]);
    const std::size_t position = positions_.at(op);
    if (!unique(r) || op->operands[operand] != r || !in_iteration_of(op, r) || transfers_between(r, position)) return {};
    const auto sides = other_sides(op, r);
    std::vector<Op*> parts;
    for (const Use& w : uses_.at(r)) {
      if (w.op == op ? w.operand == operand : w.position < position && !holds(w)) continue;
      const Value* v = w.op->operands[w.operand];
      if (root(v) != r) return {};  // `mark` has swapped the operands
      if (std::ranges::any_of(sides, [&](const auto& s) { return w.position >= s.first && w.position < s.second; })) continue;
      Op* part = nullptr;
      for (; v != r; v = v->def->operands[0])
        if (!v->def->is(Opcode::reshape_)) part = v->def;
      if (!part || part->parent != op->parent || positions_.at(part) > position) return {};
      if (std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
    }
    return parts.size() <= most_parts ? parts : std::vector<Op*>();
  }
  static constexpr std::size_t most_parts = 4;

  void insert_copies() {
    std::unordered_set<Block*> blocks;
    for (const auto& [loop, states] : copies_) blocks.insert(loop->parent);
    for (Block* block : blocks) {
      std::unordered_map<const Op*, std::vector<Op*>> starts;
      for (Op* loop : block->ops) {
        const auto it = copies_.find(loop);
        if (it == copies_.end()) continue;
        for (const std::size_t i : it->second) {
          Op* const start = own(module_, *loop, loop->operands[i]);
          positions_[start] = positions_.at(loop);  // it may be the first of its block
          starts[loop].push_back(start);
        }
      }
      insert_before(block, starts);
    }
  }

  ir::Module& module_;
  std::vector<const Function*> functions_;      ///< those in direct style
  std::unordered_set<const Function*> fixed_;   ///< called by others than the calls we know
  std::unordered_set<const Function*> others_;  ///< those in continuation-passing style
  std::unordered_map<const Function*, std::vector<const Op*>> calls_;
  std::size_t position_ = 0;
  std::unordered_map<const Op*, std::size_t> positions_;
  std::vector<std::size_t> transfers_;                       ///< positions in functions that are not in direct style, in order
  std::unordered_map<const Value*, const Value*> roots_;     ///< of views
  std::unordered_map<const Value*, std::vector<Use>> uses_;  ///< of roots, in order, their views' included
  std::vector<const Value*> conditional_;                    ///< results of constructs and calls, parameters
  std::unordered_set<const Value*> escaping_, refuted_, needed_;
  std::unordered_map<const Value*, Lenders> lenders_;  ///< of the unique ones among conditional_
  std::vector<Op*> updates_;
  std::unordered_map<Op*, std::vector<std::size_t>> copies_;  ///< loop -> state that starts with a copy
};

/// What an operation changes: the states of a loop, or what an update is added to.
std::span<Value*> changed_by(Op& op) {
  if (op.is(Opcode::loop_)) return op.operands;
  if (op.is(Opcode::ref_acc_) || !ir::updates_first(op)) return {};
  return std::span(op.operands).first(1);
}

/// True where one of them runs or the other: on two sides of a branch.
bool exclusive(const Op* a, const Op* b) {
  std::unordered_map<const Op*, const Block*> sides;
  for (const Block* s = a->parent; s && s->parent; s = s->parent->parent)
    if (s->parent->is(Opcode::branch_)) sides[s->parent] = s;
  for (const Block* s = b->parent; s && s->parent; s = s->parent->parent)
    if (const auto it = sides.find(s->parent); it != sides.end()) return it->second != s;
  return false;
}

/// Of a tensor filled with a constant that several change, each gets one of its own, where it begins: it
/// takes less than a copy, and a product that is added to zeros of its own needs none at all (codegen).
void fill_for_each(ir::Module& module) {
  for (Function* f : module.functions()) {
    std::unordered_map<const Value*, std::size_t> uses;
    std::unordered_map<const Value*, std::vector<const Op*>> users;
    std::vector<std::pair<Op*, Value**>> changes;
    ir::walk(f->body, [&](Op* op) {
      for (const Value* v : op->operands) {
        ++uses[v];
        if (v->type.is_tensor()) users[v].push_back(op);
      }
      for (Value*& start : changed_by(*op))
        if (is_constant_fill(start->def))
          changes.emplace_back(op, &start);
    });
    std::unordered_map<const Op*, std::vector<Op*>> before;
    std::unordered_set<Block*> blocks;
    std::unordered_map<const Value*, std::size_t> left = uses;
    for (const auto& [op, start] : changes) {
      const std::vector<const Op*>& all = users.at(*start);
      if (std::ranges::count(all, op) == 1 &&
          std::ranges::all_of(all, [&](const Op* user) { return user == op || exclusive(op, user); }))
        continue;
      const Op* from = (*start)->def;
      Op* fill = module.new_op(Opcode::fill_, op->parent);
      fill->loc = op->loc;
      fill->operands = from->operands;
      if (--left[*start] == 0) blocks.insert(from->parent);
      *start = module.add_result(fill, (*start)->type);
      before[op].push_back(fill);
      blocks.insert(op->parent);
    }
    for (Block* block : blocks) {
      std::erase_if(block->ops, [&](const Op* op) {
        return op->is(Opcode::fill_) && uses.contains(op->result()) && left[op->result()] == 0;
      });
      insert_before(block, before);
    }
  }
}

/// Gives external functions memory of their own to change: a copy directly before the call, which need not be made where
/// nothing reads the tensor any more.
void own_changed_operands(ir::Module& module) {
  for (Function* f : module.functions()) {
    std::unordered_map<Block*, std::unordered_map<const Op*, std::vector<Op*>>> before;
    ir::walk(f->body, [&](Op* op) {
      if (!op->is(Opcode::external_)) return;
      for (const std::size_t i : ir::parse_prototype(op->text).changed_operands())
        before[op->parent][op].push_back(own(module, *op, op->operands[i]));
    });
    for (const auto& [block, calls] : before) insert_before(block, calls);
  }
}

/// A partial copy that works in the memory of what it copies is that itself.
void drop_needless_copies(ir::Module& module) {
  bool any = false;
  for (Function* f : module.functions()) {
    Renaming originals;
    std::vector<Op*> needless;
    ir::walk(f->body, [&](Op* op) {
      if (!op->is(Opcode::copy_) || !op->in_place || op->operands.size() == 1) return;
      originals[op->result()] = op->operands[0];
      needless.push_back(op);
    });
    erase(needless);
    if (!needless.empty()) ir::replace_uses(f->body, originals);
    any |= !needless.empty();
  }
  if (any) eliminate_dead(module);
}

}  // namespace

void inplace(ir::Module& module) {
  own_changed_operands(module);
  fill_for_each(module);
  bool again = false;
  do {
    Ownership ownership(module);
    again = ownership.mark();
    if (!again) ownership.forget();
  } while (again);
  drop_needless_copies(module);
}

}  // namespace lantern::passes
