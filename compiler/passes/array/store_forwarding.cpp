// Chains of updates, looked at from their ends.
#include "lantern/compiler/passes/array/store_forwarding.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lantern/compiler/passes/analysis/offset.hpp"
#include "lantern/compiler/passes/analysis/def_chain.hpp"
#include "lantern/compiler/passes/array/branch_writes.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

class Updates {
 public:
  explicit Updates(ir::Function& f) : function_(f), blocks_(ir::blocks_below(f.body)) {
    ir::walk(f.body, [&](Op* op) {
      for (Value* v : op->operands) used(v, op);
    });
  }

  bool run() {
    for (Block* b : blocks_) {
      const std::vector<Op*> ops = b->ops;
      for (Op* op : ops) {
        while (is_write(*op) && (combine(op) || (op->is(Opcode::set_) && keeps(op)))) changed_ = true;
        if (op->loc.part != ir::Part::backward) continue;
        if (op->is(Opcode::set_)) changed_ |= comes_first(op);
        if (op->is(Opcode::add_at_)) changed_ |= neighbours_together(op);
      }
    }
    if (changed_)
      for (Block* b : blocks_) rebuild(b);
    return changed_;
  }

 private:
  /// Elements that are read, and tensors that are updated: nothing uses the uses of anything else.
  static bool watched(const Value* v) { return v->def && (is_write(*v->def) || v->def->is(Opcode::get_)); }
  void used(const Value* v, Op* by) {
    if (watched(v)) uses_[v].push_back(by);
  }

  /// set(b, i, get(a, i)), where b is a with other elements changed, is b; with x added in a backward part it is
  /// add_at(b, i, x).
  bool keeps(Op* set) {
    Value* const v = set->operands.back();
    if (!(set->operands[0]->type == set->result()->type)) return false;
    if (is_there(*set, v)) {
      replace(set, set->operands[0]);
      return true;
    }
    if (set->loc.part != ir::Part::backward) return false;
    constexpr int deepest = 8;
    Value* const rest = without_what_is_there(*set, v, deepest);
    if (!rest) return false;
    set->code = Opcode::add_at_;
    set_operand(set, set->operands.size() - 1, rest);
    return true;
  }
  /// Whether a value is what the element is before the set.
  bool is_there(const Op& set, const Value* v) {
    const Op* const get = v->def;
    if (!get || !get->is(Opcode::get_) || !same_element(*get, set)) return false;
    const Value* now = set.operands[0];
    for (int step = 0; now != get->operands[0]; ++step, now = now->def->operands[0]) {
      constexpr int farthest = 64;
      const Op* const other = now->def;
      if (step == farthest || !other || other->parent != set.parent || !is_write(*other) || !different(*other, set)) return false;
    }
    return now->type == set.result()->type;
  }
  /// What a sum adds to that; null where it is no such sum.
  Value* without_what_is_there(const Op& set, const Value* v, int depth) {
    const Op* const sum = v->def;
    if (!sum || !sum->is(Opcode::add_) || sum->parent != set.parent || depth == 0) return nullptr;
    for (const std::size_t i : {0u, 1u})
      if (is_there(set, sum->operands[i])) return sum->operands[1 - i];
    for (const std::size_t i : {0u, 1u})
      if (Value* const rest = without_what_is_there(set, sum->operands[i], depth - 1))
        return sum_before(&set, rest, sum->operands[1 - i]);
    return nullptr;
  }

  /// add_at(t, j, x) and then set(.., i, y) are set(t, i, y) and then add_at(.., j, x) where i is never j. Iterations that
  /// replace an element each, and add to one that an iteration before has replaced, are independent then: all that is set
  /// comes before all that is added.
  bool comes_first(Op* set) {
    constexpr std::size_t most = 8;
    std::vector<Op*> sums;
    const Op* next = set;
    for (Op* sum = set->operands[0]->def; sum && sum->parent == set->parent && sum->is(Opcode::add_at_) && sums.size() < most &&
                                          uses_[sum->result()].size() == 1 && next->operands[0] == sum->result() &&
                                          different(*sum, *set);
         next = sum, sum = sum->operands[0]->def)
      sums.insert(sums.begin(), sum);
    if (sums.empty()) return false;
    Value* const tensor = next->operands[0];
    std::vector<Op*> order{set};
    order.insert(order.end(), sums.begin(), sums.end());
    write_in_order(set, tensor, order);
    return true;
  }
  /// Of sums of elements one after the other, those at constant distances follow each other: vectors of them overlap, and
  /// are written at once.
  bool neighbours_together(Op* last) {
    constexpr std::size_t most = 8;
    const auto& users = uses_[last->result()];
    if (users.size() == 1 && users[0]->is(Opcode::add_at_) && users[0]->parent == last->parent) return false;
    std::vector<Op*> sums{last};
    for (Op* sum = last->operands[0]->def; sum && sum->parent == last->parent && sum->is(Opcode::add_at_) &&
                                           sum->loc.part == ir::Part::backward && uses_[sum->result()].size() == 1 && sums.size() < most;
         sum = sum->operands[0]->def)
      sums.insert(sums.begin(), sum);
    std::vector<Op*> order;
    std::vector<bool> taken(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i)
      for (std::size_t k = i; !taken[i] && k < sums.size(); ++k)
        if (!taken[k] && (k == i || differ_by_offset(*sums[i], *sums[k]))) {
          order.push_back(sums[k]);
          if (k > i) taken[k] = true;
        }
    if (order == sums || !(sums[0]->operands[0]->type == last->result()->type)) return false;
    write_in_order(last, sums[0]->operands[0], order);
    return true;
  }
  /// Puts a chain of writes in another order; nothing but the next write uses the result of each. The last operation of the
  /// chain stays where it is and becomes the last write of the new order. All values are defined by then.
  void write_in_order(Op* last, Value* tensor, const std::vector<Op*>& order) {
    std::vector<Op> writes;
    for (const Op* write : order) writes.push_back(*write);
    for (Op* write : order)
      if (write != last) erase(write);
    for (std::size_t k = 0; k + 1 < writes.size(); ++k) {
      const Op& like = writes[k];
      Op* const write = function_.module->new_op(like.code, last->parent);
      write->loc = like.loc;
      write->integer = like.integer;
      write->operands = like.operands;
      write->operands.front() = tensor;
      tensor = function_.module->add_result(write, like.result()->type);
      for (const Value* v : write->operands) used(v, write);
      before_[last].push_back(write);
    }
    const Op& final = writes.back();
    for (std::size_t i = 0; i < last->operands.size(); ++i) set_operand(last, i, i == 0 ? tensor : final.operands[i]);
    last->code = final.code;
    last->loc = final.loc;
  }
  void erase(Op* op) {
    for (const Value* v : op->operands)
      if (watched(v)) std::erase(uses_[v], op);
    op->code = Opcode::count_;  // swept out at the end
  }

  /// Looks for an update of the same element before `last` and lets that one do the work of both.
  bool combine(Op* last) {
    constexpr int farthest = 64;
    std::vector<Op*> readers;  ///< of the element, in between
    bool met = false;          ///< the element may be among those that were added to in between
    std::vector<Op*> between;
    Op* next = last;
    for (int step = 0; step < farthest; ++step) {
      Op* first = next->operands[0]->def;
      if (!first || first->parent != last->parent || !is_write(*first)) return false;
      if (!only_read(*first, *next, *last, readers)) return false;
      if (same_element(*first, *last))
        return !met || first->is(Opcode::add_at_) ? merge(first, last, readers, met) : merge_before(first, last, between);
      if (!different(*first, *last)) {
        if (!first->is(Opcode::add_at_) || !last->is(Opcode::add_at_)) return false;
        met = true;
      }
      between.insert(between.begin(), first);
      next = first;
    }
    return false;
  }

  /// True where two accesses certainly are to different elements; what bounds of loops say is asked so many
  /// times at most.
  bool different(const Op& a, const Op& b) {
    return differ_by_offset(a, b) || (a.parent->parent && questions_-- > 0 && no_alias(a, b));
  }

  /// True where the only uses of an update, beside the next one, are reads of the element (`readers`) and of
  /// others.
  bool only_read(const Op& update, const Op& next, const Op& last, std::vector<Op*>& readers) {
    bool passed_on = false;
    for (Op* use : uses_[update.result()]) {
      if (use == &next && !passed_on && next.operands[0] == update.result()) {
        passed_on = true;
        continue;
      }
      if (!use->is(Opcode::get_)) return false;
      if (same_element(*use, last))
        readers.push_back(use);
      else if (!different(*use, last))
        return false;
    }
    return passed_on;
  }

  bool merge(Op* first, Op* last, const std::vector<Op*>& readers, bool met) {
    const bool sums = last->is(Opcode::add_at_), onto = first->is(Opcode::add_at_);
    if (!(first->operands[0]->type == first->result()->type)) return false;
    // Where a sum is read and goes on growing, nothing would be gained.
    if (onto && !readers.empty() && (sums || met)) return false;
    Value* const x = first->operands.back();
    for (Op* get : readers)
      if (onto)
        add_after(get, x);
      else
        replace(get, x);
    if (sums) {
      if (!onto) last->code = Opcode::set_;
      if (onto || !is_zero(x))
        set_operand(last, last->operands.size() - 1, sum_before(last, x, last->operands.back()));
    }
    replace(first, first->operands[0]);
    return true;
  }

  /// A sum of what was set, with sums in between that may be of the same element: these come afterwards.
  bool merge_before(Op* set, Op* last, const std::vector<Op*>& between) {
    constexpr std::size_t most = 8;
    const auto is_sum = [&](const Op* op) { return op->is(Opcode::add_at_) && uses_[op->result()].size() == 1; };
    if (!set->is(Opcode::set_) || last->loc.part != ir::Part::backward || between.size() > most ||
        uses_[set->result()].size() != 1 || !std::ranges::all_of(between, is_sum) ||
        !(set->operands[0]->type == set->result()->type))
      return false;
    Value *const x = set->operands.back(), *const y = last->operands.back();
    set_operand(set, set->operands.size() - 1, is_zero(x) ? y : sum_before(last, x, y));
    std::vector<Op*> order{set};
    order.insert(order.end(), between.begin(), between.end());
    write_in_order(last, set->operands[0], order);
    return true;
  }

  Op* new_sum(const Op* at, Value* x, Value* y) {
    Op* sum = function_.module->new_op(Opcode::add_, at->parent);
    sum->loc = at->loc;
    sum->operands = {x, y};
    function_.module->add_result(sum, x->type);
    for (const Value* v : sum->operands) used(v, sum);
    return sum;
  }
  Value* sum_before(const Op* op, Value* x, Value* y) {
    Op* sum = new_sum(op, x, y);
    before_[op].push_back(sum);
    return sum->result();
  }

  /// Adds x to what is read.
  void add_after(Op* get, Value* x) {
    Value* const read = get->result();
    const std::vector<Op*> users = uses_[read];
    uses_[read].clear();
    Op* sum = new_sum(get, read, x);
    sum->result()->name = read->name;
    after_[get].push_back(sum);
    give(users, read, sum->result());
  }

  /// Takes an operation with one result out; `by` represents that.
  void replace(Op* op, Value* by) {
    if (!by->name && !constant(by)) by->name = op->result()->name;
    const std::vector<Op*> users = std::exchange(uses_[op->result()], {});
    give(users, op->result(), by);
    erase(op);
  }

  void give(const std::vector<Op*>& users, Value* from, Value* to) {
    for (Op* user : users) {
      // An operation that uses the value twice is in the list twice.
      if (const auto v = std::ranges::find(user->operands, from); v != user->operands.end()) *v = to;
      used(to, user);
    }
  }

  void set_operand(Op* op, std::size_t i, Value* v) {
    if (Value* const old = op->operands[i]; watched(old)) {
      auto& users = uses_[old];
      users.erase(std::ranges::find(users, op));
    }
    op->operands[i] = v;
    used(v, op);
  }

  void rebuild(Block* b) {
    std::vector<Op*> ops;
    const auto insert = [&](const auto& from, const Op* at) {
      if (const auto it = from.find(at); it != from.end())
        ops.insert(ops.end(), it->second.begin(), it->second.end());
    };
    for (Op* op : b->ops) {
      insert(before_, op);
      if (op->code != Opcode::count_) ops.push_back(op);
      insert(after_, op);
    }
    b->ops = std::move(ops);
  }

  int questions_ = 1000;
  ir::Function& function_;
  std::vector<Block*> blocks_;
  std::unordered_map<const Value*, std::vector<Op*>> uses_;
  std::unordered_map<const Op*, std::vector<Op*>> before_, after_;  ///< operations that are new
  bool changed_ = false;
};

}  // namespace

void forward_stored(Op* loop) {
  constexpr int farthest = 64;
  int questions = 1000;
  Renaming stored;
  std::vector<Op*> forwarded;
  ir::walk(loop->blocks[1], [&](Op* op) {
    if (!op->is(Opcode::get_)) return;
    const Op* set = op->operands[0]->def;
    for (int step = 0; step < farthest && set && set->is(Opcode::set_); ++step) {
      if (same_place(*op, *set)) {
        stored[op->result()] = set->operands.back();
        forwarded.push_back(op);
        return;
      }
      if (!differ_by_offset(*op, *set) && (questions-- <= 0 || !no_alias(*op, *set))) return;
      set = set->operands[0]->def;
    }
  });
  ir::replace_uses(loop->blocks[1], stored);
  erase(forwarded);
}

void store_forwarding(ir::Module& module) {
  const auto run = [](ir::Function& f) {
    const bool any = sink_branch_writes(f.body);
    return Updates(f).run() || any;
  };
  if (in_direct_style(module, run)) eliminate_dead(module);
}

}  // namespace lantern::passes
