// One read at a time: the write that it takes the place of, the first value, and the number that iterations
// hand on.
#include "lantern/compiler/passes/schedule/predictive_commoning.hpp"

#include <algorithm>
#include <optional>
#include <ranges>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loop_state.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/ir/uses.hpp"

namespace lantern::passes {

namespace {

constexpr int most_carried = 8;  ///< numbers that one loop hands on: registers are few

class Commoning {
 public:
  Commoning(ir::Module& module, Op* loop, const Counter& counter)
      : module_(module), loop_(loop), body_(loop->blocks[1]), counter_(counter) {}

  /// True where a read of this state has become a number.
  bool run(std::size_t state) {
    const Uses uses(loop_);
    const auto use = state_use(uses, loop_, state);
    if (!use || use->updates.empty() || !use->is_straight(loop_)) return false;
    for (const Op* read : use->reads)
      if (Op* const write = written_before(*read, read->result()->type, *use);
          write && is_made_of(write->operands.back(), read->result()))
        if (Value* const start = first_value(*read, state)) {
          carry(*const_cast<Op*>(read), *write, start);
          return true;
        }
    for (const Op* sum : use->updates)
      if (Op* const write =
              sum->is(Opcode::add_at_) ? written_before(*sum, sum->operands.back()->type, *use) : nullptr)
        if (Value* const start = first_value(*sum, state)) {
          carry(*read_and_set(*const_cast<Op*>(sum)), *write, start);
          return true;
        }
    return false;
  }

 private:
  std::size_t rank(const Op& access) const { return access.operands[0]->type.dims().size(); }

  /// The write that has left, in the iteration before, what is read or added to; null where that is not
  /// known.
  Op* written_before(const Op& read, const ir::Type& type, const LoopStateSummary& use) const {
    if (read.parent != body_ || !type.is_scalar() || type.is_vector() || !type.is_float_element())
      return nullptr;
    for (const Op* op : use.updates | std::views::reverse) {
      if (!(op->operands.back()->type == type) || (!op->is(Opcode::set_) && !op->is(Opcode::add_at_)))
        return nullptr;
      if (op == &read || !reaches_next(*op, read)) continue;
      const auto at = std::ranges::find(use.updates, op);
      const bool last =
          std::all_of(at + 1, use.updates.end(), [&](const Op* later) { return no_alias(*op, *later); });
      return last && untouched(read, use) ? const_cast<Op*>(op) : nullptr;
    }
    return nullptr;
  }

  /// True where a value is computed of another one in the iteration: other reads wait for nothing, and loops without such
  /// a cycle are better off in memory.
  bool is_made_of(const Value* v, const Value* of) const {
    std::unordered_set<const Value*> seen;
    std::vector<const Value*> work{v};
    while (!work.empty()) {
      const Value* const now = work.back();
      work.pop_back();
      if (now == of) return true;
      if (!now->def || now->block != body_ || !seen.insert(now).second) continue;
      work.insert(work.end(), now->def->operands.begin(), now->def->operands.end());
    }
    return false;
  }

  /// True where an iteration writes, and the next one reads, the same element.
  bool reaches_next(const Op& write, const Op& read) const {
    for (std::size_t d = 1; d <= rank(read); ++d) {
      const IndexForm now = index_form(write.operands[d]), next = index_form(read.operands[d]);
      if (!now.split(counter_.index) || !next.split(counter_.index)) return false;
      if (!made_outside(next.with(counter_.index, IndexForm(0)), body_)) return false;
      const IndexForm before = IndexForm::of(counter_.index) - IndexForm(counter_.step);
      if (!(now.with(counter_.index, before) == next)) return false;
    }
    return true;
  }

  /// True where nothing that an iteration writes before a read is the element that is read.
  static bool untouched(const Op& read, const LoopStateSummary& use) {
    if (!read.operands[0]->def) return true;
    for (const Op* op : use.updates) {
      if (!no_alias(*op, read)) return false;
      if (op == read.operands[0]->def) break;
    }
    return true;
  }

  /// What a read finds in the first iteration, and any number where there is none. Null for a fill that this
  /// would have made twice: it is no other's but the loop's.
  Value* first_value(const Op& read, std::size_t state) {
    const ir::Type type = ir::Type(read.operands[0]->type.element());
    Value* const tensor = loop_->operands[state];
    ir::Builder b = ir::Builder::before(loop_);
    b.loc = read.loc;
    Value* element = nullptr;
    Value* const start = build_branch(
        b, first_condition(b, loop_), type,
        [&](ir::Builder& in) {
          std::vector<Value*> place{tensor};
          for (std::size_t d = 1; d <= rank(read); ++d)
            place.push_back(materialise(
                in, index_form(read.operands[d])
                        .with(counter_.index, counter_.step > 0 ? counter_.first : counter_.last)));
          return element = in.emit(Opcode::get_, place);
        },
        [&](ir::Builder& in) { return in.number(0.0, type); });
    const Op* const number =
        tensor->def && tensor->def->is(Opcode::fill_) ? constant(tensor->def->operands[0]) : nullptr;
    if (!number) return start;
    const bool in_bounds = in_range(*element->def);
    erase({start->def});
    return in_bounds ? b.again(*number) : nullptr;
  }

  /// Writes a sum as t[i] = t[i] + x; the read.
  static Op* read_and_set(Op& sum) {
    ir::Builder in = ir::Builder::before(&sum);
    in.loc = sum.loc;
    Value* const old = in.emit(Opcode::get_, {sum.operands.begin(), sum.operands.end() - 1});
    sum.operands.back() = in.emit(Opcode::add_, {old, sum.operands.back()});
    sum.code = Opcode::set_;
    return old->def;
  }

  void carry(Op& read, Op& write, Value* start) {
    const ir::Type type = read.result()->type;
    if (write.is(Opcode::add_at_)) read_and_set(write);
    const char* const name = read.result()->name;
    loop_->operands.push_back(start);
    module_.add_param(loop_->blocks[0], type);
    Value* const now = module_.add_param(body_, type, name);
    module_.add_result(loop_, type);
    body_->ops.back()->operands.push_back(write.operands.back());
    ir::replace_uses(body_, read.result(), now);
    std::erase(body_->ops, &read);
  }

  ir::Module& module_;
  Op* loop_;
  Block* body_;
  const Counter& counter_;
};

/// A loop that is run as it is, with nothing in it that may fail in another way before its first read does.
bool fits(const Op* loop) {
  return loop->integer == 0 && !ir::is_parallel(*loop) && ends_by_comparison(loop) &&
         std::ranges::none_of(loop->blocks[1]->ops, [](const Op* op) {
           return op->is(Opcode::loop_) || op->is(Opcode::call_) || op->is(Opcode::print_) ||
                  ir::is_ordered_call(*op);
         });
}

}  // namespace

void predictive_commoning(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    for (Op* loop : loops_in(*f)) {
      const auto counter = fits(loop) ? counter_of(loop) : std::nullopt;
      if (!counter) continue;
      Commoning common(module, loop, *counter);
      int carried = 0;
      for (std::size_t i = 0, n = loop->operands.size(); i < n; ++i)
        while (loop->operands[i]->type.is_tensor() && carried < most_carried && common.run(i)) ++carried;
      any |= carried > 0;
    }
  }
  if (any) eliminate_dead(module);
}

}  // namespace lantern::passes
