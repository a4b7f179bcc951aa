// One branch of an innermost loop at a time.
#include "lantern/compiler/passes/array/if_conversion.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/memory.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

constexpr std::size_t most_converted = 60;  ///< of both sides: all of them run

/// A branch whose sides only compute numbers and add to elements of tensors.
class Conversion {
 public:
  explicit Conversion(Op* branch) : branch_(branch), possible_(computes()) {}

  bool is_possible() const { return possible_; }
  /// Accesses that become unconditional, of elements that may not be there.
  const std::vector<const Op*>& unproved() const { return unproved_; }

  bool run() {
    hoist_common_reads();
    bool any = false;
    for (std::size_t i = branch_->results.size(); i-- > 0;) {
      if (!branch_->results[i]->type.is_tensor()) continue;
      std::vector<Op*> sums[2];
      const Value* const start = start_of(i, sums[0], sums[1]);
      if (!start || (sums[0].empty() && sums[1].empty())) continue;
      convert(i, const_cast<Value*>(start), sums);
      any = true;
    }
    return any;
  }

 private:
  /// True where running both sides changes nothing but the tensors' elements, and cannot fail where all
  /// elements are there.
  bool computes() {
    std::size_t size = 0;
    for (const Block* side : branch_->blocks)
      for (const Op* op : side->ops) {
        ++size;
        if (op->is(Opcode::yield_, Opcode::constant_, Opcode::undef_)) continue;
        if (op->is(Opcode::add_at_)) {
          if (op->loc.part != ir::Part::backward) return false;
          if (!in_range_at(*op, *branch_)) unproved_.push_back(op);
          continue;
        }
        if (op->is(Opcode::get_) && common_read(op)) continue;
        if (!ir::info(op->code).elementwise || !op->blocks.empty() || divides_integers(*op) ||
            !op->result()->type.is_scalar())
          return false;
      }
    return size <= most_converted;
  }

  /// The same read on the other side, of elements that no side changes; else null.
  Op* common_read(const Op* get) const {
    const auto is_outside = [&](const Value* v) {
      return std::ranges::none_of(branch_->blocks, [&](const Block* side) { return made_in(v, side); });
    };
    const Block* const other = branch_->blocks[get->parent == branch_->blocks[0] ? 1 : 0];
    if (!std::ranges::all_of(get->operands, is_outside)) return nullptr;
    const auto same = std::ranges::find_if(other->ops, [&](const Op* op) {
      return op->is(Opcode::get_) && op->operands[0] == get->operands[0] &&
             std::ranges::equal(op->operands, get->operands, [](const Value* a, const Value* b) {
               return a == b || (!a->type.is_tensor() && index_form(a) == index_form(b));
             });
    });
    return same == other->ops.end() ? nullptr : *same;
  }
  /// What both sides read is read before the branch.
  void hoist_common_reads() {
    const std::vector<Op*> ops = branch_->blocks[0]->ops;
    std::vector<Op*> gone;
    for (Op* get : ops) {
      Op* const other = get->is(Opcode::get_) ? common_read(get) : nullptr;
      if (!other) continue;
      ir::Builder b = ir::Builder::before(branch_, get->loc);
      Value* const read = b.op(Opcode::get_, get->operands, {get->result()->type})->result();
      read->name = get->result()->name;
      for (Op* op : {get, other}) {
        ir::replace_uses(op->parent, op->result(), read);
        gone.push_back(op);
      }
    }
    erase(gone);
  }

  /// The tensor that both sides add to, by these sums in order; null where a side does anything else with it.
  const Value* start_of(std::size_t result, std::vector<Op*>& yes, std::vector<Op*>& no) const {
    const Value* starts[2] = {};
    for (const std::size_t side : {0u, 1u}) {
      std::vector<Op*>& sums = side == 0 ? yes : no;
      Value* v = branch_->blocks[side]->yields()[result];
      while (v->def && v->def->parent == branch_->blocks[side]) {
        if (!v->def->is(Opcode::add_at_)) return nullptr;
        sums.push_back(v->def);
        v = v->def->operands[0];
      }
      std::ranges::reverse(sums);
      starts[side] = v;
    }
    if (starts[0] != starts[1]) return nullptr;
    // Nothing else in the sides asks for it.
    std::size_t uses = 0;
    for (const Block* side : branch_->blocks)
      for (const Op* op : side->ops)
        uses += static_cast<std::size_t>(std::ranges::count(op->operands, starts[0]));
    return uses == 2 ? starts[0] : nullptr;
  }

  void convert(std::size_t result, Value* start, std::vector<Op*> (&sums)[2]) {
    ir::Builder b = ir::Builder::after(branch_);
    Value* now = start;
    Value* const condition = branch_->operands[0];
    for (const std::size_t side : {0u, 1u}) {
      Renaming names;
      for (const Op* sum : sums[side]) {
        b.loc = sum->loc;
        std::vector<Value*> operands{now};
        for (std::size_t d = 1; d + 1 < sum->operands.size(); ++d)
          operands.push_back(outside(b, sum->operands[d], side, names));
        Value* const v = outside(b, sum->operands.back(), side, names);
        Value* const zero = b.number(-0.0, v->type);  // a sum with it is what it was, -0 too
        operands.push_back(b.select({condition, side == 0 ? v : zero, side == 0 ? zero : v}));
        now = b.emit(Opcode::add_at_, operands);
      }
    }
    ir::replace_uses(branch_->parent, branch_->results[result], now);
    remove_result(branch_, result);
    for (const std::vector<Op*>& side : sums) erase(side);
  }

  /// A value of a side, computed after the branch.
  Value* outside(ir::Builder& b, Value* v, std::size_t side, Renaming& names) const {
    return ir::clone_value(b, v, [&](const Value* x) { return x->block == branch_->blocks[side]; }, names);
  }

  Op* branch_;
  std::vector<const Op*> unproved_;
  bool possible_;
};

bool is_innermost(const Op* loop) {
  bool inner = true;
  ir::walk(loop->blocks[1], [&](const Op* op) {
    inner &= !op->is(Opcode::loop_, Opcode::push_, Opcode::pop_) && !op->callee;
  });
  return inner;
}

/// A loop, and those around it that do nothing else.
struct NestAround {
  std::vector<Op*> loops;  ///< innermost first
  std::vector<Counter> counters;
  Op* outermost() const { return loops.back(); }
  bool depends(const IndexForm& f) const { return !made_outside(f, outermost()->blocks[1]); }
};
NestAround nest_around(Op* loop) {
  NestAround a;
  for (Op* l = loop; l && l->is(Opcode::loop_); l = l->parent->parent) {
    const auto counter = counter_of(l);
    if (!counter || counter->step != 1) break;
    const bool alone =
        a.loops.empty() || std::ranges::all_of(l->blocks[1]->ops, [&](const Op* op) {
          return op == a.outermost() || op->is(Opcode::yield_, Opcode::constant_) ||
                 (op->blocks.empty() && ir::info(op->code).elementwise && op->result()->type.is_scalar());
        });
    const bool same = std::ranges::none_of(a.counters, [&](const Counter& c) {
      return !made_outside(c.first, l->blocks[1]) || !made_outside(c.last, l->blocks[1]);
    });
    if (!alone || !same || (!a.loops.empty() && !is_doall(l))) break;
    a.loops.push_back(l);
    a.counters.push_back(*counter);
  }
  return a;
}

/// Appends the first and the last of the places of an access in a nest: those of the corners of its iteration
/// space. False where places do not follow each other there. Those between lie between them where the numbers
/// in `small` are, so that no product of two wraps.
bool corners(const NestAround& around, IndexForm index, std::size_t level, std::vector<IndexForm>& all,
             std::vector<IndexForm>& small) {
  if (level == around.counters.size()) {
    all.push_back(std::move(index));
    return !around.depends(all.back());
  }
  const Counter& c = around.counters[level];
  const auto s = index.split(c.index);
  if (!s || around.depends(s->coefficient)) return false;
  if (level == 0 && s->coefficient.number() != 1) return false;
  if (level > 0) {
    small.push_back(s->coefficient);
    small.push_back(c.last - c.first);
  }
  for (const IndexForm* end : {&c.first, &c.last})
    if (!corners(around, s->rest + s->coefficient * *end, level + 1, all, small)) return false;
  return true;
}

/// The condition that elements are there in all iterations of a nest, before it; null where it cannot be told
/// there.
Value* all_in_range(const NestAround& around, const std::vector<const Op*>& accesses) {
  constexpr std::size_t most = 32;
  constexpr std::int64_t large = std::int64_t{1} << 31;
  std::vector<std::pair<IndexForm, IndexForm>> places;  ///< and how many there are
  std::vector<IndexForm> small;
  for (const Op* op : accesses) {
    if (op->operands[0]->type.rank() != 1) return nullptr;
    const IndexForm size = size_form(op->operands[0], 0);
    std::vector<IndexForm> ends;
    if (around.depends(size) || !corners(around, index_form(op->operands[1]), 0, ends, small)) return nullptr;
    for (IndexForm& f : ends)
      if (std::pair at(std::move(f), size); std::ranges::find(places, at) == places.end())
        places.push_back(std::move(at));
  }
  if (places.empty() || places.size() > most) return nullptr;
  ir::Builder b = ir::Builder::before(around.outermost());
  Value* all = nullptr;
  const auto also = [&](Value* c) { all = all ? b.land({all, c}) : c; };
  for (std::size_t i = 0; i < small.size(); ++i) {
    const IndexForm& f = small[i];
    const auto n = f.number();
    if (n && (*n < -large || *n > large)) return nullptr;
    if (n || std::find(small.begin(), small.begin() + static_cast<std::ptrdiff_t>(i), f) != small.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    Value* const v = materialise(b, f);
    also(b.le({b.integer(-large), v}));
    also(b.le({v, b.integer(large)}));
  }
  for (const auto& [place, size] : places) {
    Value* const at = materialise(b, place);
    also(b.le({b.integer(0), at}));
    also(b.lt({at, materialise(b, size)}));
  }
  return all;
}

/// True where additions to one tensor are to neighbouring elements: then loops that sum for each element are
/// made of them.
bool has_neighbours(const std::vector<Op*>& branches) {
  std::vector<const Op*> adds;
  for (const Op* branch : branches)
    for (const Block* side : branch->blocks)
      for (const Op* op : side->ops)
        if (op->is(Opcode::add_at_)) adds.push_back(op);
  return std::ranges::any_of(adds, [&](const Op* a) {
    return std::ranges::any_of(adds, [&](const Op* b) {
      const auto distance = (index_form(a->operands[1]) - index_form(b->operands[1])).number();
      return distance && *distance != 0;
    });
  });
}

bool convert(ir::Module& module, Op* loop, const std::vector<Op*>& branches) {
  constexpr std::size_t longest = 200;
  std::vector<Conversion> possible;
  std::vector<const Op*> unproved;
  for (Op* branch : branches)
    if (Conversion c(branch); c.is_possible()) {
      unproved.insert(unproved.end(), c.unproved().begin(), c.unproved().end());
      possible.push_back(std::move(c));
    }
  if (!unproved.empty()) {
    std::size_t size = 0;
    ir::walk(loop->blocks[1], [&](const Op*) { ++size; });
    const NestAround around = nest_around(loop);
    Value* const there = size <= longest && !around.loops.empty() && has_neighbours(branches)
                             ? all_in_range(around, unproved)
                             : nullptr;
    if (there)
      keep_alternative(module, around.outermost(), there);
    else
      std::erase_if(possible, [](const Conversion& c) { return !c.unproved().empty(); });
  }
  bool any = false;
  for (Conversion& c : possible) any |= c.run();
  return any;
}

}  // namespace

void if_conversion(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    for (Op* loop : loops_in(*f)) {
      std::vector<Op*> branches;
      for (Op* op : loop->blocks[1]->ops)
        if (op->is(Opcode::branch_) &&
            std::ranges::any_of(op->results, [](const Value* r) { return r->type.is_tensor(); }))
          branches.push_back(op);
      if (branches.empty() || !is_innermost(loop) || !is_doall(loop)) continue;
      any |= convert(module, loop, branches);
    }
  }
  if (any) simplify(module);
}

}  // namespace lantern::passes
