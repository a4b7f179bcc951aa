// What the backward part needs of the forward part: available, computed again, or saved.
//
// A value is computed again where that takes less than writing it to a tape and reading it back: indices of
// counting loops, arithmetic on them, elements of tensors that nothing overwrites, or of those that their loop
// leaves behind as they were read (settled.hpp), a few operations on such.
#include <algorithm>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/offset.hpp"
#include "lantern/compiler/passes/analysis/reaching_definition.hpp"
#include "lantern/compiler/passes/direct/unwinder.hpp"
#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/clone.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/library_function.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

// Costs: an integer operation is the unit. Integers steer loops and addresses and are cheap wherever they
// are.
constexpr int float_operation = 4, slow_operation = 16, load = 8, load_close = 3, save_float = 24,
              save_integer = 40, save_outside = 6;

constexpr int never = 1 << 20;

// Iterations that do not wait for each other overlap, or run in lanes; memory takes the time it takes.
constexpr int overlap = 3;

/// True for a tensor of one number throughout: it takes no longer to make than to copy.
bool repeats_number(const Value* v) {
  return v->def && v->def->is(Opcode::broadcast_, Opcode::fill_) && v->def->operands[0]->type.is_scalar();
}

/// True for a part of a tensor, which lies in the tensor's memory.
bool is_view(const Value* v) { return v->def && v->def->is(Opcode::slice_, Opcode::take_); }

/// What is needed of an operand: of one whose shape alone counts, a tensor of that shape from further up.
Value* needed(const Op& op, std::size_t i) {
  Value* const x = op.operands[i];
  if (!x->type.is_tensor() || !ir::only_shape(op, i)) return x;
  const Value* const from = shape_source(x);
  return from->type == x->type ? const_cast<Value*>(from) : x;
}

int price(const Op& op) {
  const ir::OpInfo& row = ir::info(op.code);
  const bool integer = op.result()->type.is_integer() || op.result()->type.is_bool();
  switch (op.code) {
    case Opcode::undef_:  // what a side that was not taken has to say
      return 0;
    case Opcode::dim_:
    case Opcode::slice_:
    case Opcode::take_:
      return 1;
    case Opcode::broadcast_:
    case Opcode::fill_:
      return repeats_number(op.result()) ? float_operation : never;
    case Opcode::get_:
      return load;
    case Opcode::cast_:
      return integer ? 1 : float_operation;
    case Opcode::div_:
    case Opcode::rem_:
      return integer ? 4 : slow_operation;
    case Opcode::sqrt_:
      return slow_operation;
    default:
      break;
  }
  // Functions of the mathematical library cost more than memory; what is composed may contain one.
  if (!row.elementwise || row.composed || ir::is_library_function(op.code)) return never;
  return integer ? 1 : float_operation;
}

/// True where a loop reads elements of a tensor that are not its iteration's own: it is then still needed while
/// the loop changes the state that starts as this tensor, which has to be in memory of its own.
bool reads_neighbours(const Op* loop, const Value* tensor) {
  bool found = false;
  for (Block* block : loop->blocks)
    ir::walk(block, [&](const Op* op) {
      if (!op->is(Opcode::get_) || op->operands[0] != tensor) return;
      const auto first = op->operands.begin() + 1, last = op->operands.end();
      found |=
          std::none_of(first, last, [&](const Value* i) { return i->block == loop->blocks[1] && !i->def; }) ||
          std::any_of(first, last, [](const Value* i) { return i->def != nullptr; });
    });
  return found;
}

}  // namespace

void Unwinder::note_updates(const Block* block) {
  ir::walk(const_cast<Block*>(block), [&](const Op* op) {
    if (ir::updates_first(*op)) updated_.insert(op->operands[0]);
    for (std::size_t i = 0; i < op->operands.size(); ++i) {
      Value* const v = op->operands[i];
      if (!v->type.is_tensor()) continue;
      if (op->is(Opcode::call_)) updated_.insert(v);
      if (op->is(Opcode::loop_) && !reads_neighbours(op, v))
        handed_on_[v].push_back(op->blocks[1]->params[i]);
      const Op* const around = op->parent->parent;
      if (!op->is(Opcode::yield_) || !around) continue;
      if (i < around->results.size()) handed_on_[v].push_back(around->results[i]);
      if (around->is(Opcode::loop_)) handed_on_[v].push_back(around->blocks[1]->params[i]);
    }
  });
}

/// True for a tensor that may give its memory to a changed one: it is updated, or handed on to what is.
bool Unwinder::may_be_overwritten(const Value* tensor) const {
  std::unordered_set<const Value*> seen{tensor};
  std::vector<const Value*> work{tensor};
  while (!work.empty()) {
    const Value* const v = work.back();
    work.pop_back();
    if (updated_.contains(v)) return true;
    const auto on = handed_on_.find(v);
    if (on == handed_on_.end()) continue;
    for (const Value* next : on->second)
      if (seen.insert(next).second) work.push_back(next);
  }
  return false;
}

Region* Unwinder::home_of(Value* v) const {
  // Values made inside a nested direct-style construct are never asked for.
  const auto it = homes_.find(v->block);
  if (it == homes_.end()) throw InternalError("unwind: a forward value without a region");
  return it->second;
}

/// True for a value that the backward part of `r` sees as it is: also for what the forward part of a
/// iteration of a parallel loop found in the backward part around it (import_parallel_operands).
bool Unwinder::at_hand(const Region& r, const Value* v) const {
  const auto it = homes_.find(v->block);
  return it == homes_.end() ? ir::visible_from(v, r.bwd) : it->second->visible();
}

/// What it takes to have a forward value in the backward part of `from`'s chain of regions; `never` beyond
/// budget.
int Unwinder::cost(const Region& from, Value* v, int budget) const {
  if (budget < 0) return never;
  if (v->def && v->def->is(Opcode::constant_)) return 0;
  const auto it = homes_.find(v->block);
  if (it == homes_.end()) return never;
  const Region& home = *it->second;
  if (home.visible()) return 0;
  if (home.saved.contains(v)) return 0;
  if (!v->type.is_scalar() && !repeats_number(v) && (!is_view(v) || may_be_overwritten(v->def->operands[0]))) return never;
  if (v->type.is_scalar() && kept_for_all_iterations(from, home)) return save_outside;
  if (!v->def) {
    if (home.kind != Region::Kind::body || !home.bwd || !home.iterations || !step_of(home.construct, v->index))
      return never;
    return cost(*home.parent, home.construct->operands[v->index], budget);
  }
  const Op& op = *v->def;
  if (op.results.size() != 1 || !op.blocks.empty()) return never;
  int sum = price(op);
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    Value* const x = needed(op, i);
    if (sum > budget) return never;
    if (op.is(Opcode::get_) && x->type.is_tensor()) {
      if (final_version_of(v)) continue;
      if (may_be_overwritten(x)) return never;
      // A tensor from outside is saved once for all elements that are read here.
      if (saved_outside(home, x)) continue;
    }
    sum += cost(from, x, budget - sum);
  }
  return sum > budget ? never : sum;
}

/// The available tensor in which the backward part finds an element that the forward part has read, or null.
Value* Unwinder::final_version_of(const Value* element) const {
  if (!element->def || !element->def->is(Opcode::get_)) return nullptr;
  const auto [it, added] = left_behind_.try_emplace(element, nullptr);
  if (added)
    if (Value* const tensor = reaching_definition(*element->def)) {
      const auto home = homes_.find(tensor->block);
      const bool stays = home != homes_.end() && home->second->visible() &&
                         (!may_be_overwritten(tensor) || may_be_copied(*home->second, tensor));
      if (stays) it->second = tensor;
    }
  return it->second;
}

/// True for a tensor that may keep its memory, so that what changes it works on a copy: one that is copied
/// anyway, being the caller's, or that takes as long to make.
bool Unwinder::may_be_copied(const Region& home, const Value* tensor) const {
  if (home.kind != Region::Kind::unit) return false;
  return tensor->def ? tensor->def->is(Opcode::fill_) : &unit_ == module_.entry;
}

/// True where a value of a region can be saved there, once for all iterations of a loop around `inner`.
bool Unwinder::kept_for_all_iterations(const Region& inner, const Region& home) {
  bool loop_between = false;
  const Region* r = &inner;
  for (; r && r != &home; r = r->parent) loop_between |= r->kind == Region::Kind::body && r->bwd;
  return r && loop_between && home.kind == Region::Kind::body && home.bwd;
}

/// True for a tensor of a region around `inner` that can go into that region's frame.
bool Unwinder::saved_outside(const Region& inner, const Value* x) const {
  const auto it = homes_.find(x->block);
  return it != homes_.end() && it->second != &inner && it->second->kind == Region::Kind::body &&
         it->second->bwd;
}

/// Whether running the iterations of a loop again in the backward part takes less than what their frames,
/// which are known by now, take to be written and read. What is run again must be arithmetic and elements of
/// tensors that stay in memory anyway: then no iteration keeps anything, and iterations need not run from last to
/// first.
bool Unwinder::cheaper_again(const Segment& s) const {
  constexpr int inner_iterations = 8;
  const Op* const loop = s.forward;
  std::unordered_map<const Block*, std::int64_t> often{{loop->blocks[1], 1}};  // in an iteration
  std::vector<const Value*> work;
  std::int64_t frames = 0, again = 0;
  std::unordered_set<const Value*> read;  // tensors whose elements are fetched again
  std::unordered_set<const Value*> in_part;  // arrays that inner loops save parts of
  bool simple = true;
  ir::walk(loop->blocks[1], [&](const Op* op) {
    const std::int64_t times = often.at(op->parent);
    for (const Block* b : op->blocks) often[b] = op->is(Opcode::loop_) ? times * inner_iterations : times;
    simple &= !op->callee;
    if (!op->is(Opcode::push_)) return;
    const auto part = part_copies_.find(op->operands[0]->def);
    if (part != part_copies_.end()) {
      in_part.insert(part->second);
      frames += times * inner_iterations * overlap * save_float;
      return;
    }
    simple &= is_frame(*op) && op->operands[0]->type.is_scalar();
    frames += times * overlap * save_float;
    work.push_back(op->operands[0]);
  });
  // Instead of a part for each run of an inner loop one for all of them.
  ir::walk(loop->blocks[1], [&](const Op* op) {
    if (part_copies_.contains(op)) return false;
    if (op->is(Opcode::get_) && in_part.contains(op->operands[0])) {
      again += often.at(op->parent) * load_close;
      simple &= !often.contains(op->operands[0]->block) && (covers_tensor(*op, loop) || part_read(*op, loop));
    }
    return true;
  });
  ir::walk(s.continuation->blocks[0],
           [&](const Op* op) { simple &= !op->is(Opcode::fun_) || !ir::LoopMemory::of(*op).bounded(); });
  if (!simple || frames == 0) return false;

  std::unordered_set<const Value*> seen;
  const auto need = [&](const Value* v) {
    if (seen.insert(v).second) work.push_back(v);
  };
  while (!work.empty() && again <= frames) {
    const Value* const v = work.back();
    work.pop_back();
    const auto times = often.find(v->block);
    if (times == often.end()) continue;
    if (constant(v)) continue;
    const Op* const owner = v->def ? v->def : v->block->parent;
    if (!v->def && (owner == loop || step_of(owner, v->index))) {
      if (v->type.is_tensor()) return false;
    } else if (owner->is(Opcode::loop_)) {
      need(owner->operands[v->index]);
      need(owner->blocks[1]->yields()[v->index]);
      need(owner->blocks[0]->yields()[0]);
    } else if (owner->is(Opcode::branch_)) {
      need(owner->operands[0]);
      for (Block* side : owner->blocks) need(side->yields()[v->index]);
    } else {
      // Of what one iteration reads of a tensor most lies close by.
      const bool close = owner->is(Opcode::get_) && !read.insert(owner->operands[0]).second;
      again += times->second * (close ? load_close : price(*owner));
      if (owner->is(Opcode::dim_)) continue;
      for (const Value* x : owner->operands) {
        if (x->type.is_tensor() && !often.contains(x->block) && !survives_forward_pass(x)) {
          // Instead of giving its memory to another it is copied, if that is in proportion.
          if (!owner->is(Opcode::get_) || !(covers_tensor(*owner, loop) || part_read(*owner, loop))) return false;
          if (!seen.contains(x)) again += load + save_float;
        }
        need(x);
      }
    }
  }
  return again <= frames;
}

/// True for a tensor of the forward part that is in memory, as it is, when the backward part runs; or may be
/// at no cost, because nothing changes it.
bool Unwinder::survives_forward_pass(const Value* tensor) const {
  const auto it = homes_.find(tensor->block);
  if (it == homes_.end()) return false;
  return it->second->visible() || it->second->saved.contains(const_cast<Value*>(tensor)) ||
         !may_be_overwritten(tensor);
}

/// True for an element of a tensor whose indices are those of loops over the tensor's whole dimensions, but
/// for a few elements at their ends, as far as can be seen: then to copy the tensor takes no longer than the
/// loops. These are the outermost one and loops inside it: what counts the columns further out reads one of them each time.
bool Unwinder::covers_tensor(const Op& get, const Op* outermost) {
  const auto origin = [](const Value* v) {
    for (int steps = 0; steps < 64; ++steps) {
      const Op* const op = v->def ? v->def : v->block->parent;
      if (!op || op->operands.empty() || op->is(Opcode::fill_)) break;
      if (op->is(Opcode::loop_))
        v = op->operands[v->index];
      else if (ir::updates_first(*op) || op->is(Opcode::zeros_like_))
        v = op->operands[0];
      else if (ir::info(op->code).elementwise)
        v = op->operands.back();
      else
        break;
    }
    return v;
  };
  const Value* const tensor = origin(get.operands[0]);
  std::unordered_set<const Op*> loops;
  for (std::size_t d = 0; d + 1 < get.operands.size(); ++d) {
    const Value* const index = offset(get.operands[d + 1]).base;
    const Op* const loop = index && !index->def ? index->block->parent : nullptr;
    if (!loop || !loop->is(Opcode::loop_) || !loops.insert(loop).second) return false;
    if (loop != outermost && !made_in(index, outermost->blocks[1])) return false;
    if (loop->blocks[0]->ops.empty()) return false;  // a parallel loop around, which is still being written
    const auto count = counted(loop);
    if (!count || count->index != index->index || !constant(loop->operands[count->index])) return false;
    const Value* const size = offset(count->bound).base;
    if (!size) return false;
    const bool of_fill =
        tensor->def && tensor->def->is(Opcode::fill_) && tensor->def->operands[1 + d] == size;
    if (!of_fill &&
        !(size->def && size->def->is(Opcode::dim_) && size->def->integer == static_cast<std::int64_t>(d) &&
          origin(size->def->operands[0]) == tensor))
      return false;
  }
  return true;
}

/// A forward value where the backward part of `r` can see it.
Value* Unwinder::at(Region& r, Value* v) {
  if (constant(v)) return into(r.bwd, v->def->loc).again(*v->def);
  if (at_hand(r, v)) return v;
  Region* home = home_of(v);
  const auto found = home->saved.find(v);
  if (found != home->saved.end()) return found->second;
  int budget = v->type.is_integer() || v->type.is_bool() ? save_integer : save_float;
  if (home->is_doall) budget *= overlap;
  if (cost(*home, v, budget) <= budget) return derive(*home, v);
  // Of one number throughout the number is kept.
  if (repeats_number(v)) {
    Value* const number = v->def->operands[0];
    const bool known = home->saved.contains(number) || at_hand(r, number);
    if (!known) at(*home, number);
    if (cost(*home, v, budget) <= budget) return derive(*home, v);
  }
  if (Value* const number = compared_number(*home, v)) {
    at(*home, number);
    if (cost(*home, v, budget) <= budget) return derive(*home, v);
  }
  if (Value* const kept = kept_alike(*home, v)) return kept;
  return save(*home, v);
}

/// The whole number from many branches further out that a condition compares with a constant. It tells all conditions
/// of a chain, each of which would have to leave all branches around it.
Value* Unwinder::compared_number(const Region& home, const Value* v) const {
  constexpr int few_branches = 4;
  if (!v->type.is_bool() || !v->def) return nullptr;
  const Op& op = *v->def;
  if (!op.is(Opcode::eq_, Opcode::ne_, Opcode::lt_, Opcode::le_)) return nullptr;
  const bool first = constant(op.operands[0]) != nullptr;
  if (!first && !constant(op.operands[1])) return nullptr;
  Value* const number = op.operands[first ? 1 : 0];
  if (!number->type.is_integer() || !number->type.is_scalar()) return nullptr;
  const auto outer = homes_.find(number->block);
  if (outer == homes_.end()) return nullptr;
  int branches = 0;
  const Region* around = &home;
  for (; around && around != outer->second; around = around->parent) branches += around->kind == Region::Kind::side;
  return around && branches >= few_branches ? number : nullptr;
}

/// What represents a value of the region's forward part, made at the start of its backward part: at the end,
/// then moved behind what the start of the block holds already.
Value* Unwinder::made_again(Region& home, Value* v, const std::function<Value*()>& make) {
  Block* const block = home.bwd;
  const std::size_t before = block->ops.size();
  Value* const result = make();
  const auto first = block->ops.begin() + static_cast<long>(before);
  const auto to = block->ops.begin() + static_cast<long>(home.pops + home.derived);
  home.derived += block->ops.size() - before;
  std::rotate(to, first, block->ops.end());
  return home.saved[v] = result;
}

/// Computes a value of the region's forward part again at the start of its backward part.
Value* Unwinder::derive(Region& home, Value* v) {
  Block* const block = home.bwd;
  const auto emit = [&](const std::function<Value*()>& make) { return made_again(home, v, make); };
  // A constant is emitted beside its use.
  const auto here = [&](Value* x) { return constant(x) ? nullptr : at(home, x); };
  const auto again = [&](const Value* x) { return into(block, x->def->loc).again(*x->def); };
  if (!v->def) {
    // The state of a loop that counts: first + step * (iterations before this one).
    const std::int64_t step = *step_of(home.construct, v->index);
    Value* const first = home.construct->operands[v->index];
    Value* const start = constant(first) ? nullptr : at(*home.parent, first);
    return emit([&] {
      ir::Builder b = into(block, home.construct->loc);
      Value* const before = b.sub({home.iterations, b.integer(1)});
      Value* const out = stepped(b, start ? start : again(first), step, before);
      out->name = v->name;
      return out;
    });
  }
  const Op& op = *v->def;
  std::vector<Value*> operands;
  Value* const tensor = final_version_of(v);
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    Value* const x = needed(op, i);
    operands.push_back(tensor && x->type.is_tensor() ? tensor : here(x));
  }
  return emit([&] {
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (!operands[i]) operands[i] = again(op.operands[i]);
    Op* copy = into(block, op.loc).op(op.code, operands);
    take_attributes(*copy, op);
    return module_.add_result(copy, v->type, v->name);
  });
}

namespace {

/// As many results a branch may have for values of its sides alone: each has a name of its own then.
constexpr std::size_t few_results = 12;

bool is_undefined(const Value* v) { return v->def && v->def->is(Opcode::undef_); }

}  // namespace

/// A result by which the other side of a branch alone says something, of the type: one of the two sides runs, so that
/// it serves both. Of many sides in a chain, the states of a machine, each would have results of its own otherwise, and
/// each branch those of all that are inside it.
Value* Unwinder::shared_result(const Region& side, Value* v) {
  Op* const op = side.construct;
  const std::vector<std::size_t>& added = side_results_[op];
  if (added.size() < few_results || !v->type.is_scalar()) return nullptr;
  std::vector<Value*>& here = op->blocks[side.side]->yields();
  for (const std::size_t i : added)
    if (is_undefined(here[i]) && op->results[i]->type == v->type) {
      here[i] = v;
      return op->results[i];
    }
  return nullptr;
}

/// Puts a value of the region's forward part into its frame, once.
Value* Unwinder::save(Region& home, Value* v) {
  if (home.kind == Region::Kind::side) {
    Op* op = home.construct;
    if (Value* const shared = shared_result(home, v)) return home.saved[v] = at(*home.parent, shared);
    // Out of the branch as one more result; the other side has nothing to say.
    side_results_[op].push_back(op->results.size());
    for (std::size_t i = 0; i < 2; ++i) {
      Block* b = op->blocks[i];
      Value* out = v;
      if (i != home.side) {
        Op* undef = module_.new_op(Opcode::undef_, b);
        module_.add_result(undef, v->type);
        b->ops.insert(b->ops.end() - 1, undef);
        out = undef->result();
      }
      b->yields().push_back(out);
    }
    Value* result = module_.add_result(op, v->type, v->name);
    return home.saved[v] = at(*home.parent, result);
  }
  // Pushed at the end of the forward part, popped at the start of the backward part: last in, first out.
  // A tape of its own for each value: as many entries as iterations or calls, all of one type.
  const std::int64_t tape = module_.new_tape();
  frames_.insert(tape);
  Op* push = module_.new_op(Opcode::push_, home.fwd);
  push->operands = {v};
  push->integer = tape;
  home.fwd->ops.insert(home.fwd->ops.end() - 1, push);
  Op* pop = module_.new_op(Opcode::pop_, home.bwd);
  pop->integer = tape;
  module_.add_result(pop, v->type, v->name);
  home.bwd->ops.insert(home.bwd->ops.begin(), pop);
  ++home.pops;
  return home.saved[v] = pop->result();
}

/// Takes out of a region's frame what follows from the rest of it: a value may have been asked for before the
/// one that it is made of. The backward part is complete.
void Unwinder::settle(Region& home) {
  const auto push_of = [&](const Op* pop) {
    return std::ranges::find_if(
        home.fwd->ops, [&](const Op* op) { return op->is(Opcode::push_) && op->integer == pop->integer; });
  };
  std::unordered_map<Value*, Value*> frame;  // what is popped, alone
  for (const auto& [v, popped] : home.saved)
    if (popped->def && popped->def->is(Opcode::pop_) && popped->block == home.bwd) frame[v] = popped;
  Renaming again;
  const std::vector<Op*> pops(home.bwd->ops.begin(), home.bwd->ops.begin() + static_cast<long>(home.pops));
  std::swap(home.saved, frame);
  for (Op* pop : pops) {
    Value* const v = (*push_of(pop))->operands[0];
    if (!v->def || (v->type.is_tensor() && !repeats_number(v))) continue;
    // Which way the iteration went is said by the same bits, not by a sum that may be rounded otherwise here.
    if (!v->type.is_float_element() && !std::ranges::all_of(v->def->operands, [&](Value* x) {
          const auto it = homes_.find(x->block);
          return x->type.is_integer() || constant(x) || it == homes_.end() || it->second != &home ||
                 home.saved.contains(x);
        }))
      continue;
    home.saved.erase(v);
    if (cost(home, v, save_float) > save_float) {
      home.saved[v] = pop->result();
      continue;
    }
    // What it is made of lies in the frame, or is made now, before all that was made of the frame so far.
    const std::size_t before = std::exchange(home.derived, 0);
    again[pop->result()] = derive(home, v);
    home.derived += before;
    home.fwd->ops.erase(push_of(pop));
    std::erase(home.bwd->ops, pop);
    --home.pops;
    std::erase_if(home.saved, [&](const auto& entry) { return !entry.second->def->is(Opcode::pop_); });
  }
  std::swap(home.saved, frame);
  for (auto& [v, now] : home.saved)
    if (const auto it = again.find(now); it != again.end()) now = it->second;
  if (again.empty()) return;
  ir::replace_uses(home.bwd, again);
}

/// How often a loop of the forward part ran, for its mirror in the backward part of `r`.
Value* Unwinder::trip_count_of(Region& r, const Op* loop) {
  const auto count = counted(loop);
  if (!count) return at(r, loop->results.back());
  Value* const first = loop->operands[count->index];
  if (cost(r, first, save_integer) + cost(r, count->bound, save_integer) > save_integer)
    return at(r, loop->results.back());
  Value* const lo = at(r, first);
  Value* const hi = at(r, count->bound);
  ir::Builder b = into(r.bwd, loop->loc);
  return iterations_between(b, lo, hi);
}

}  // namespace lantern::passes
