// Loops whose reverse does not keep the frames of all iterations: states at some iterations are kept instead, and
// stretches of iterations run again from a state, this time leaving frames, right before their backward part.
//
// With a bound on memory (LoopMemory) the states are placed as revolve does (Griewank and Walther, "Algorithm
// 799: revolve", ACM TOMS 26, 2000): a stretch of `leaf` iterations is run with frames; with c free places and u
// leaves to cover, the next state is taken after C(c + r - 1, c) leaves, r being the least number of
// repetitions that covers u <= C(c + r, c). The order is not laid down beforehand: the backward part looks at
// the last state kept, and either its stretch is a leaf, or another state is placed behind it, or, with no
// place free, the last leaf before the end is reached by running from it.
//
// Where the number of iterations shows only at the end, the forward part keeps a state every so many iterations, and,
// when all places are taken, gives up every second one and doubles the distance (Stumm and Walther, "New
// algorithms for optimal online checkpointing", SIAM J. Sci. Comput. 32, 2010, for the idea; the thinning
// here is the plain one).
//
// Without a bound, a long counting loop is cut into segments whose frames stay in the cache. The frames of
// the last segment are left by the forward part as usual, so a loop of one segment does nothing twice.
#include <algorithm>
#include <tuple>

#include "lantern/compiler/passes/direct/unwinder.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/compiler/passes/support/memory.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::passes {

namespace {

// Frames of a segment stay in the second-level cache; frames beyond the last-level cache are slower than
// running the iterations a second time.
constexpr std::int64_t segment_bytes = 1 << 18, long_bytes = 1 << 24;
constexpr std::size_t largest_body = 200;
constexpr std::int64_t page = 4096;

std::int64_t bytes_of(const ir::Type& t) {
  return t.is_tensor() ? 8 + 8 * std::max(t.rank(), 1) : element_bytes(t.kind());
}

bool has_effect(const Op& op) {
  const ir::Effect effect = ir::info(op.code).effect;
  return effect == ir::Effect::tape || effect == ir::Effect::effect || op.is(Opcode::call_);
}

/// The condition of a loop that counts the first value of its state down to 0.
constexpr auto is_positive = [](ir::Builder& b, const std::vector<Value*>& state) {
  return b.lt({b.integer(0), state[0]});
};

/// Which of a loop's state the effects of its body depend on: frames, above all.
std::vector<bool> needed_state(const Op* loop) {
  const Block* const body = loop->blocks[1];
  std::vector<bool> needed(body->params.size(), false);
  std::unordered_set<const Value*> seen;
  std::vector<const Value*> work;
  const auto need_operands = [&](const Op* op) {
    const auto add = [&](const Op* o) {
      for (const Value* v : o->operands)
        if (seen.insert(v).second) work.push_back(v);
    };
    add(op);
    for (Block* b : op->blocks) ir::walk(b, [&](const Op* o) { add(o); });
  };
  for (const Op* op : body->ops) {
    bool effect = has_effect(*op);
    for (Block* b : op->blocks) ir::walk(b, [&](const Op* o) { effect |= has_effect(*o); });
    if (effect) need_operands(op);
  }
  while (!work.empty()) {
    const Value* v = work.back();
    work.pop_back();
    if (v->block != body) continue;
    if (v->def) {
      need_operands(v->def);
    } else {
      needed[v->index] = true;
      const Value* next = body->ops.back()->operands[v->index];
      if (seen.insert(next).second) work.push_back(next);
    }
  }
  return needed;
}

}  // namespace

// ---- what is kept

/// The tapes of the states, one for each component that does not follow from the number of the iteration.
Unwinder::Snapshots Unwinder::snapshots_of(const Op* loop) {
  Snapshots all;
  const std::vector<bool> needed = needed_state(loop);
  for (std::size_t i = 0; i + 1 < needed.size(); ++i) {
    if (!needed[i] || step_of(loop, i)) continue;
    all.state.push_back(i);
    all.tapes.push_back(module_.new_tape());
  }
  all.position = module_.new_tape();
  frames_.insert(all.tapes.begin(), all.tapes.end());
  frames_.insert(all.position);
  return all;
}

/// What a loop's integers that count start with, where the backward part of `r` sees it; null for other state.
Unwinder::State Unwinder::starts_of(Region& r, const Op* loop) {
  State first(loop->operands.size(), nullptr);
  for (std::size_t i = 0; i + 1 < first.size(); ++i)
    if (step_of(loop, i)) first[i] = at(r, loop->operands[i]);
  return first;
}

void Unwinder::push(ir::Builder& b, std::int64_t tape, Value* v) {
  Op* op = b.op(Opcode::push_, {v});
  op->integer = tape;
  if (v->type.is_tensor()) ir::own_elements(*op);
}

Value* Unwinder::pop(ir::Builder& b, std::int64_t tape, const ir::Type& type) {
  Op* op = b.op(Opcode::pop_, {}, {type});
  op->integer = tape;
  if (type.is_tensor()) ir::own_elements(*op);
  return op->result();
}

/// Keeps a state; `state` ends with the number of iterations so far.
void Unwinder::push_state(ir::Builder& b, const Snapshots& snapshots, const State& state) {
  for (std::size_t j = 0; j < snapshots.state.size(); ++j)
    push(b, snapshots.tapes[j], state[snapshots.state[j]]);
  push(b, snapshots.position, state.back());
}

/// The last state kept. `first`: the state before the first iteration, of which integers that count are wanted.
Unwinder::State Unwinder::pop_state(ir::Builder& b, const Snapshots& snapshots, const Op* loop,
                                    const std::vector<Value*>& first, Value* position) {
  std::vector<Value*> state(loop->results.size(), nullptr);
  for (std::size_t j = snapshots.state.size(); j-- > 0;) {
    const std::size_t i = snapshots.state[j];
    state[i] = pop(b, snapshots.tapes[j], loop->results[i]->type);
  }
  state.back() = position ? position : pop(b, snapshots.position, ir::I64);
  for (std::size_t i = 0; i + 1 < state.size(); ++i) {
    if (state[i]) continue;
    const auto step = step_of(loop, i);
    if (!step || !first[i]) {
      state[i] = b.undef(loop->results[i]->type);
      continue;
    }
    state[i] = stepped(b, first[i], *step, state.back());
  }
  return state;
}

namespace {

/// True for what has no value, or is handed on by a loop that starts with that.
bool is_unknown(const Value* v) {
  while (v->def && v->def->is(Opcode::loop_)) {
    const Block* const body = v->def->blocks[1];
    if (body->ops.back()->operands[v->index] != body->params[v->index]) return false;
    v = v->def->operands[v->index];
  }
  return v->def && v->def->is(Opcode::undef_);
}

/// Of state that has no value to begin with nothing is needed: neither is what an iteration makes of it, and of
/// that alone.
void drop_unknown_state(Op* loop) {
  Block* const body = loop->blocks[1];
  bool any = false;
  for (std::size_t i = 0; i < loop->operands.size(); ++i) {
    if (!loop->operands[i]->type.is_tensor() || !is_unknown(loop->operands[i])) continue;
    body->ops.back()->operands[i] = body->params[i];
    any = true;
  }
  if (!any) return;
  std::unordered_map<const Value*, int> uses;
  const auto count = [&](const Op* op, int by) {
    for (const Value* v : op->operands) uses[v] += by;
  };
  for (Op* op : body->ops) {
    count(op, 1);
    for (Block* b : op->blocks) ir::walk(b, [&](const Op* o) { count(o, 1); });
  }
  for (std::size_t i = body->ops.size(); i-- > 0;) {
    Op* const op = body->ops[i];
    bool dead = !op->is(Opcode::yield_) && !has_effect(*op);
    for (Block* b : op->blocks)
      ir::walk(b, [&](const Op* o) { dead &= o->is(Opcode::yield_) || !has_effect(*o); });
    for (const Value* r : op->results) dead &= uses[r] == 0;
    if (!dead) continue;
    count(op, -1);
    for (Block* b : op->blocks) ir::walk(b, [&](const Op* o) { count(o, -1); });
    body->ops.erase(body->ops.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

/// Copies a loop of the forward part, to run from `initial`. It ends at iteration `until` (null: never), and by
/// its own condition where that is asked for.
Op* Unwinder::copy_loop(const Op* loop, Block* to, const std::vector<Value*>& initial, Frames frames,
                        Value* until, bool own_condition) {
  Op* copy = into(to, loop->loc).op(Opcode::loop_, initial, ir::types_of(loop->results));
  Renaming map;
  for (const Block* from : loop->blocks) {
    Block* block = module_.new_block(copy, to->function);
    for (Value* p : from->params) map[p] = module_.add_param(block, p->type, p->name);
    copy->blocks.push_back(block);
    const bool condition = from == loop->blocks[0];
    if (!condition || own_condition) copy_ops(from, block, map, frames);
    if (!condition || !until) continue;
    ir::Builder b = into(block, loop->loc);
    Value* more = nullptr;
    if (own_condition) {
      more = block->ops.back()->operands[0];
      block->ops.pop_back();
    }
    Value* const inside = b.lt({block->params.back(), until});
    b.yield({more ? b.land({inside, more}) : inside});
  }
  drop_unknown_state(copy);
  return copy;
}

/// A forward part that is in the backward part of `r`: what it uses from outside has to be available there.
void Unwinder::import_operands(Region& r, Op* construct) {
  std::unordered_map<Value*, Value*> brought;
  for (Block* block : construct->blocks)
    ir::walk(block, [&](Op* op) {
      for (Value*& v : op->operands) {
        const auto home = homes_.find(v->block);
        if (home == homes_.end() || home->second->visible()) continue;
        const auto [it, added] = brought.try_emplace(v, v);
        if (added) it->second = at(r, v);
        v = it->second;
      }
    });
}

// ---- long counting loops

std::optional<std::int64_t> Unwinder::segment_length(Region& r, const Op* loop) {
  if (!automatic_ || !counted(loop)) return {};
  for (const Region* at = &r; at; at = at->parent)
    if (at->kind != Region::Kind::unit && at->kind != Region::Kind::side) return {};
  std::int64_t bytes = 0;
  std::size_t size = 0;
  bool simple = true;
  for (Block* block : loop->blocks)
    ir::walk(block, [&](const Op* op) {
      ++size;
      simple &= !op->is(Opcode::call_, Opcode::pop_);
      if (!op->is(Opcode::push_)) return;
      simple &=
          op->parent == loop->blocks[1] && frames_.contains(op->integer) && op->operands[0]->type.is_scalar();
      bytes += bytes_of(op->operands[0]->type);
    });
  if (!simple || bytes == 0 || size > largest_body) return {};
  const std::vector<bool> needed = needed_state(loop);
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (needed[i] && !loop->results[i]->type.is_scalar()) return {};
  // A loop that is known to be short has one segment.
  if (const auto iterations = most_iterations(loop); iterations && *iterations <= long_bytes / bytes) return {};
  return std::max<std::int64_t>(segment_bytes / bytes, 16);
}

/// Cuts a long loop into segments; gives the values that `reverse`, a loop over the iterations from last to first,
/// starts from and ends with, but for its count.
Unwinder::State Unwinder::reverse_in_segments(Region& r, Op* loop, Op* reverse,
                                              const std::vector<Value*>& carried, std::int64_t length) {
  const CountedLoop count = *counted(loop);
  Value* const iterations = trip_count_of(r, loop);
  remark("unwind", loop->loc,
         "up to " + std::to_string(length * (long_bytes / segment_bytes)) +
             " iterations stay on the tape; of a longer loop the state at every " + std::to_string(length) +
             "th iteration is kept, and the iterations are computed again from there");
  const State first = starts_of(r, loop);
  const Snapshots snapshots = snapshots_of(loop);
  const std::int64_t most = length * (long_bytes / segment_bytes);
  const auto segment_of = [&](ir::Builder& b, Value* n) {
    Value* whole = b.imax({n, b.integer(1)});
    return b.select({b.lt({b.integer(most), n}), b.integer(length), whole});
  };

  // Forward: all segments but the last, without frames.
  in_front_of(loop, r.fwd, [&] {
    ir::Builder b = into(r.fwd, loop->loc);
    Value* const bound = made_here(b, count.bound);
    Value* const n = iterations_between(b, loop->operands[count.index], bound);
    Value* const segment = segment_of(b, n);
    loop->operands = build_while(
        b, loop->operands,
        [&](ir::Builder& c, const State& state) {
          return c.lt({segment, c.sub({n, state.back()})});
        },
        [&](ir::Builder& c, const State& state) {
          for (std::size_t j = 0; j < snapshots.state.size(); ++j)
            push(c, snapshots.tapes[j], state[snapshots.state[j]]);
          Value* const until = c.add({state.back(), segment});
          return copy_loop(loop, c.block(), state, Frames::dropped, until, false)->results;
        });
  });

  // Backward: from the last segment to the first, each but the last run again.
  ir::Builder b = into(r.bwd, loop->loc);
  Value* const segment = segment_of(b, iterations);
  std::vector<Value*> initial{iterations};
  initial.insert(initial.end(), carried.begin(), carried.end());
  return build_while(b, initial, is_positive, [&](ir::Builder& c, const State& state) {
    Value* const end = state[0];
    Value* const before = c.sub({end, c.integer(1)});
    Value* const start = c.mul({c.div({before, segment}), segment});
    Op* again = c.branch(c.lt({end, iterations}), {});
    ir::Builder then = into(again->blocks[0], loop->loc);
    Op* copy = copy_loop(loop, again->blocks[0], pop_state(then, snapshots, loop, first, start), Frames::kept,
                         end, false);
    import_operands(r, copy);
    then.yield({});
    into(again->blocks[1], loop->loc).yield({});
    std::vector<Value*> next = run_reverse(reverse, c.block(), start, state);
    next[0] = start;
    return next;
  });
}

// ---- loops under a bound

/// What an iteration with this body puts on the tape: loops inside that count to a constant are known, of other
/// loops and of functions only that they save at all.
Unwinder::IterationSaves Unwinder::saves_of(const Block* body) const {
  IterationSaves sum;
  for (const Op* op : body->ops) {
    if (op->is(Opcode::push_)) {
      sum.bytes += bytes_of(op->operands[0]->type);
      sum.tensors += op->operands[0]->type.is_tensor();
      ++sum.tapes;
    } else if (op->is(Opcode::loop_)) {
      const IterationSaves inner = saves_of(op->blocks[1]);
      const std::optional<std::int64_t> iterations = constant_trip_count(op);
      sum.add(inner, iterations.value_or(1));
      sum.open |= inner.tapes > 0 && !iterations;
    } else {
      for (const Block* b : op->blocks) sum.add(saves_of(b), 1);
      sum.open |= op->callee && forward_halves_.contains(op->callee);
    }
  }
  return sum;
}

/// How many states may be kept, and how many iterations a leaf has; emitted in front of the loop. Where nothing can
/// say what an iteration keeps, a leaf is one iteration.
std::pair<Value*, Value*> Unwinder::checkpoint_budget(ir::Builder& b, const Op* loop, const Snapshots& snapshots,
                                           const ir::LoopMemory& memory, bool online) {
  if (memory.checkpoints > 0) return {b.integer(memory.checkpoints), b.integer(memory.checkpoints)};
  // A tape's memory is up to twice what lies on it; the tapes that states are sorted out by come on top.
  const std::int64_t factor = online ? 3 : 2;
  std::int64_t state_bytes = 8 * factor, frame_bytes = 0;
  auto pages = static_cast<std::int64_t>(snapshots.tapes.size() + 1) * factor;
  Value* tensors = nullptr;  // bytes of the elements of the state
  for (const std::size_t i : snapshots.state) {
    Value* const v = loop->operands[i];
    state_bytes += factor * bytes_of(v->type);
    if (!v->type.is_tensor()) continue;
    Value* elements = b.integer(bytes_of(ir::Type(v->type.element())));
    for (int d = 0; d < v->type.rank(); ++d) elements = b.mul({elements, b.emit(Opcode::dim_, {v}, d)});
    tensors = tensors ? b.add({tensors, elements}) : elements;
  }
  const IterationSaves saves = saves_of(loop->blocks[1]);
  pages += saves.tapes;
  frame_bytes = std::max<std::int64_t>(saves.bytes, 1);
  const std::int64_t rest = memory.bytes - page * pages,
                     bytes = rest >= memory.bytes / 2 ? rest : memory.bytes;

  Value *state = b.integer(state_bytes), *frame = b.integer(frame_bytes), *all = b.integer(bytes);
  if (tensors) {
    state = b.add({state, tensors});
    if (saves.tensors > 0) frame = b.add({frame, b.mul({tensors, b.integer(saves.tensors)})});
  }
  const std::string where = loop->loc.str();
  const std::string least = tensors ? "enough memory for the state and one iteration of the loop"
                                    : std::to_string(state_bytes + frame_bytes) +
                                          " bytes or more for the state and one iteration of the loop";
  Value* const both = b.add({state, frame});
  b.op(Opcode::check_, {b.le({both, all})})->text =
      module_.intern((where.empty() ? "" : where + ": error: ") + "expected " + least + ", got " +
                     std::to_string(memory.bytes));

  if (saves.open)
    return {b.emit(Opcode::imax_, {b.div({b.sub({all, frame}), state}), b.integer(1)}), b.integer(1)};
  // Half for frames, the rest for states; if no state fits then, one state and the rest for frames.
  Value* const half = b.div({b.integer(bytes / 2), frame});
  Value* leaf = b.imax({half, b.integer(1)});
  Value* const left = b.sub({all, b.mul({leaf, frame})});
  Value* const states = b.div({left, state});
  Value* const none = b.lt({states, b.integer(1)});
  leaf = b.emit(Opcode::select_, {none, b.div({b.sub({all, state}), frame}), leaf});
  return {b.imax({states, b.integer(1)}), leaf};
}

/// After how many of `iterations` iterations, which are more than a leaf, the next state is kept, with `free` places.
Value* Unwinder::advance(ir::Builder& b, Value* iterations, Value* free, Value* leaf) {
  const auto one = [](ir::Builder& c) { return c.integer(1); };
  Value* const leaves = b.div({b.add({iterations, b.sub({leaf, one(b)})}), leaf});
  // The place of the current state counts too. More places than leaves change nothing.
  Value* const c = b.imin({b.add({free, one(b)}), b.imin({leaves, b.integer(1 << 20)})});
  // r and C(c + r, c).
  const std::vector<Value*> done = build_while(
      b, {one(b), b.add({c, one(b)})},
      [&](ir::Builder& d, const State& s) {
        return d.lt({s[1], leaves});
      },
      [&](ir::Builder& d, const State& s) {
        Value* const r = d.add({s[0], one(d)});
        Value* const product = d.mul({s[1], d.add({c, r})});
        return std::vector<Value*>{r, d.div({product, r})};
      });
  Value* const binomial = b.div({b.mul({done[1], done[0]}), b.add({c, done[0]})});
  Value* const most = b.sub({leaves, one(b)});
  return b.mul({b.imin({binomial, most}), leaf});
}

/// Gives up every second state of `count`, an odd one at the end included: 0, 2, 4 ... stay.
void Unwinder::thin(ir::Builder& b, const Op* loop, const Snapshots& snapshots, Value* count) {
  std::vector<std::pair<std::int64_t, ir::Type>> tapes{{snapshots.position, ir::I64}};
  for (std::size_t j = 0; j < snapshots.state.size(); ++j)
    tapes.emplace_back(snapshots.tapes[j], loop->results[snapshots.state[j]]->type);
  std::vector<std::int64_t> aside;
  for (std::size_t j = 0; j < tapes.size(); ++j) {
    aside.push_back(module_.new_tape());
    frames_.insert(aside.back());
  }
  build_while(b, {count}, is_positive, [&](ir::Builder& c, const State& s) {
    Value* const index = c.sub({s[0], c.integer(1)});
    std::vector<Value*> state;
    for (const auto& [tape, type] : tapes) state.push_back(pop(c, tape, type));
    Value* const odd = c.rem({index, c.integer(2)});
    Op* keep = c.branch(c.eq({odd, c.integer(0)}), {});
    ir::Builder then = into(keep->blocks[0], loop->loc);
    for (std::size_t j = 0; j < tapes.size(); ++j) push(then, aside[j], state[j]);
    then.yield({});
    into(keep->blocks[1], loop->loc).yield({});
    return std::vector<Value*>{index};
  });
  Value* const left = b.div({b.add({count, b.integer(1)}), b.integer(2)});
  build_while(b, {left}, is_positive, [&](ir::Builder& c, const State& s) {
    for (std::size_t j = 0; j < tapes.size(); ++j) push(c, tapes[j].first, pop(c, aside[j], tapes[j].second));
    return std::vector<Value*>{c.sub({s[0], c.integer(1)})};
  });
}

/// The same under a bound on memory.
Unwinder::State Unwinder::reverse_in_memory(Region& r, Op* loop, Op* reverse,
                                            const std::vector<Value*>& carried,
                                            const ir::LoopMemory& memory) {
  const auto count = counted(loop);
  remark("unwind", loop->loc,
         "keeps " +
             (memory.checkpoints > 0 ? std::to_string(memory.checkpoints) + " states"
                                     : "at most " + std::to_string(memory.bytes) + " bytes") +
             ", as it is told, and computes the iterations between again");
  Value* const iterations = at(r, loop->results.back());
  const State first = starts_of(r, loop);
  const Snapshots snapshots = snapshots_of(loop);
  Value *most = nullptr, *leaf = nullptr, *kept = nullptr;

  in_front_of(loop, r.fwd, [&] {
    ir::Builder b = into(r.fwd, loop->loc);
    std::tie(most, leaf) = checkpoint_budget(b, loop, snapshots, memory, !count);
    const std::size_t n = loop->operands.size();
    std::vector<Value*> initial = loop->operands, done;
    if (count) {
      Value* const bound = made_here(b, count->bound);
      Value* const all = iterations_between(b, loop->operands[count->index], bound);
      push_state(b, snapshots, initial);
      initial.push_back(b.integer(1));
      const auto left = [&](ir::Builder& c, const State& s) { return c.sub({all, s[n - 1]}); };
      done = build_while(
          b, initial,
          [&](ir::Builder& c, const State& s) {
            return c.emit(Opcode::land_, {c.lt({s[n], most}), c.lt({leaf, left(c, s)})});
          },
          [&](ir::Builder& c, const State& s) {
            Value* const free = c.sub({most, s[n]});
            Value* const until = c.add({s[n - 1], advance(c, left(c, s), free, leaf)});
            const std::vector<Value*> from(s.begin(), s.begin() + static_cast<long>(n));
            std::vector<Value*> next =
                copy_loop(loop, c.block(), from, Frames::dropped, until, false)->results;
            push_state(c, snapshots, next);
            next.push_back(c.add({s[n], c.integer(1)}));
            return next;
          });
    } else {
      initial.push_back(b.integer(0));  // states kept
      initial.push_back(leaf);          // iterations from one to the next
      done = build_while(
          b, initial,
          [&](ir::Builder& c, const State& s) {
            Renaming map = ir::pairs(loop->blocks[0]->params, s);
            copy_ops(loop->blocks[0], c.block(), map, Frames::dropped);
            Value* const more = c.block()->ops.back()->operands[0];
            c.block()->ops.pop_back();
            return more;
          },
          [&](ir::Builder& c, const State& s) {
            Value* const full = c.le({most, s[n]});
            Op* sort = c.branch(full, {ir::I64, ir::I64});
            ir::Builder then = into(sort->blocks[0], loop->loc);
            thin(then, loop, snapshots, s[n]);
            Value* const half = then.div({then.add({s[n], then.integer(1)}), then.integer(2)});
            then.yield({half, then.mul({s[n + 1], then.integer(2)})});
            into(sort->blocks[1], loop->loc).yield({s[n], s[n + 1]});
            const std::vector<Value*> from(s.begin(), s.begin() + static_cast<long>(n));
            Op* keep = c.branch(c.lt({sort->result(0), most}), {ir::I64});
            ir::Builder room = into(keep->blocks[0], loop->loc);
            push_state(room, snapshots, from);
            room.yield({room.add({sort->result(0), room.integer(1)})});
            into(keep->blocks[1], loop->loc).yield({sort->result(0)});
            Value* const until = c.add({s[n - 1], sort->result(1)});
            std::vector<Value*> next =
                copy_loop(loop, c.block(), from, Frames::dropped, until, true)->results;
            next.push_back(keep->result());
            next.push_back(sort->result(1));
            return next;
          });
    }
    kept = done[n];
    loop->operands.assign(done.begin(), done.begin() + static_cast<long>(n));
  });
  // Copied before the loop itself loses its frames.
  const Op* const with_frames = loop;
  most = at(r, most);
  leaf = at(r, leaf);
  kept = at(r, kept);

  ir::Builder b = into(r.bwd, loop->loc);
  std::vector<Value*> initial{kept, iterations};
  initial.insert(initial.end(), carried.begin(), carried.end());
  std::vector<Value*> done = build_while(b, initial, is_positive, [&](ir::Builder& c, const State& s) {
    Value *const places_taken = s[0], *const end = s[1];
    const std::vector<Value*> state = pop_state(c, snapshots, loop, first, nullptr);
    Value* const position = state.back();
    Value* const distance = c.sub({end, position});
    Value* const far = c.lt({leaf, distance});
    Value* const free = c.sub({most, places_taken});
    Value* const place = c.land({far, c.lt({c.integer(0), free})});
    // Where the next iterations with frames, or the next state, begin.
    Op* where = c.branch(far, {ir::I64});
    ir::Builder stay = into(where->blocks[0], loop->loc);
    push_state(stay, snapshots, state);
    Value* const next_state = stay.add({position, advance(stay, distance, free, leaf)});
    Value* const last_leaf = stay.sub({end, leaf});
    stay.yield({stay.select({place, next_state, last_leaf})});
    into(where->blocks[1], loop->loc).yield({position});
    Value* const from = where->result();
    Op* reach_it = copy_loop(with_frames, c.block(), state, Frames::dropped, from, false);
    import_operands(r, reach_it);

    Op* step = c.branch(place, ir::types_of(s));
    ir::Builder placing = into(step->blocks[0], loop->loc);
    push_state(placing, snapshots, reach_it->results);
    std::vector<Value*> same = s;
    same[0] = placing.add({places_taken, placing.integer(1)});
    placing.yield(same);

    ir::Builder back = into(step->blocks[1], loop->loc);
    import_operands(r, copy_loop(with_frames, step->blocks[1], reach_it->results, Frames::kept, end, false));
    const std::vector<Value*> rest(s.begin() + 1, s.end());
    std::vector<Value*> next = run_reverse(reverse, step->blocks[1], from, rest);
    next[0] = from;
    Value* const given_up = back.sub({places_taken, back.integer(1)});
    next.insert(next.begin(), back.select({far, places_taken, given_up}));
    back.yield(next);
    return step->results;
  });
  // Nothing goes back from the iterations that the forward part ends with.
  for (Block* block : loop->blocks) drop_frames(block);
  done.erase(done.begin());
  return done;
}

/// Takes the frames out of a forward part for good.
void Unwinder::drop_frames(Block* block) {
  std::vector<Block*> blocks{block};
  while (!blocks.empty()) {
    Block* b = blocks.back();
    blocks.pop_back();
    std::erase_if(b->ops, [&](const Op* op) { return is_frame(*op) || part_copies_.contains(op); });
    for (Op* op : b->ops) {
      if (op->callee && forward_halves_.contains(op->callee)) op->callee = value_of(op->callee);
      blocks.insert(blocks.end(), op->blocks.begin(), op->blocks.end());
    }
  }
}

// ---- building blocks

/// Emits into `block` before an operation that it holds.
void Unwinder::in_front_of(const Op* op, Block* block, const std::function<void()>& emit) {
  const auto here = std::ranges::find(block->ops, op);
  const std::vector<Op*> rest(here, block->ops.end());
  block->ops.erase(here, block->ops.end());
  emit();
  block->ops.insert(block->ops.end(), rest.begin(), rest.end());
}

/// Places the loop over the iterations from last to first: from `state[0]` down to `start`.
Unwinder::State Unwinder::run_reverse(Op* reverse, Block* to, Value* start, const State& state) {
  return place_loop(reverse, to, state, [&](ir::Builder& head, Value* left) {
    return head.lt({start ? start : head.integer(0), left});
  });
}

/// Gives a loop whose body is written its condition and its place.
Unwinder::State Unwinder::place_loop(Op* loop, Block* to, const State& state,
                                     const std::function<Value*(ir::Builder&, Value*)>& more) {
  Block* const condition = loop->blocks[0];
  for (const Value* p : loop->blocks[1]->params) module_.add_param(condition, p->type);
  ir::Builder head = into(condition, loop->loc);
  head.yield({more(head, condition->params[0])});
  loop->parent = to;
  loop->operands = state;
  to->ops.push_back(loop);
  for (const Value* p : loop->blocks[1]->params) module_.add_result(loop, p->type);
  return loop->results;
}

}  // namespace lantern::passes
