// One walk over each function; an operation is followed by its check in its block.
#include "lantern/compiler/passes/schedule/value_checks.hpp"

#include <unordered_map>

#include "lantern/compiler/passes/analysis/live_uses.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/shape.hpp"
#include "lantern/ir/uses.hpp"

namespace lantern::passes {

namespace {

bool is_checked_type(const ir::Type& type) { return type.is_differentiable() && !type.is_vector(); }

/// Nothing arises where values are only moved.
bool moves(const Op& op) {
  return op.is(Opcode::constant_, Opcode::undef_, Opcode::call_, Opcode::closure_, Opcode::ref_new_,
               Opcode::ref_get_, Opcode::slot_, Opcode::pop_, Opcode::get_, Opcode::set_, Opcode::lane_get_,
               Opcode::lane_set_, Opcode::take_, Opcode::slice_, Opcode::concat_, Opcode::reshape_,
               Opcode::fill_, Opcode::zeros_like_, Opcode::copy_, Opcode::stop_gradient_, Opcode::copysign_,
               Opcode::tree_value_);
}

bool is_update_of_part(const Op& op) { return op.is(Opcode::add_at_, Opcode::add_take_, Opcode::add_slice_); }

class Insertion {
 public:
  explicit Insertion(ir::Function& function) : module_(*function.module), uses_(function), all_uses_(function) {
    std::vector<Op*> all;
    ir::walk(function.body, [&](Op* op) { all.push_back(op); });
    for (auto op = all.rbegin(); op != all.rend(); ++op) choice_of(*op);  // users first
    for (Op* op : all) visit(op);
    for (auto& [block, around] : around_) insert(*block, around);
  }

 private:
  struct Around {
    std::vector<Op*> before, after;
  };
  /// The choice that alone uses a number, and its side.
  struct Choice {
    Op* select = nullptr;
    std::size_t side = 0;
    bool operator==(const Choice&) const = default;
  };

  void visit(Op* op) {
    if (!uses_.live(op)) return;
    if (op->is(Opcode::ref_add_)) {
      const bool number = op->operands[1]->type.is_scalar() && is_checked_type(op->operands[1]->type);
      if (number) check(op, Opcode::add_, op->operands);
      return;
    }
    if (op->results.size() != 1 || !op->blocks.empty() || moves(*op)) return;
    Value* const result = op->result();
    if (!is_checked_type(result->type) || (result->type.is_tensor() && !uses_.elements_matter(result))) return;
    if (is_update_of_part(*op)) return check_part(op);
    std::vector<Value*> operands{result};
    for (std::size_t i = 0; i < op->operands.size(); ++i)
      if (!ir::only_shape(*op, i)) operands.push_back(op->operands[i]);
    if (const Choice choice = choice_of(op); choice.select != nullptr) {
      operands[0] = taken(result, choice);
      return check(op, op->code, std::move(operands), choice.select);
    }
    check(op, op->code, std::move(operands));
  }

  /// The choice that a number ends in: its users, and theirs, only compute in the same block, and lead to one side of one
  /// select.
  Choice choice_of(const Op* op) {
    if (const auto known = choices_.find(op); known != choices_.end()) return known->second;
    Choice all;
    if (op->results.size() == 1 && op->result()->type.is_scalar() && op->blocks.empty() && ir::info(op->code).elementwise) {
      bool first = true;
      for (const ir::Use& use : all_uses_.of(op->result())) {
        if (!uses_.live(use.op)) continue;
        Choice one;
        if (use.op->parent == op->parent) {
          if (use.op->is(Opcode::select_) && use.operand > 0) one = {use.op, use.operand};
          else if (!use.op->is(Opcode::select_)) one = choice_of(use.op);
        }
        if (one.select == nullptr || (!first && one != all)) {
          all = {};
          break;
        }
        all = one;
        first = false;
      }
    }
    return choices_[op] = all;
  }

  /// The number where the choice takes it, else 0.
  Value* taken(Value* number, const Choice& choice) {
    std::vector<Op*>& list = around_[choice.select->parent][choice.select].after;
    Op* const zero = make(choice.select, Opcode::constant_, list);
    Value* const none = module_.add_result(zero, number->type);
    Op* const select = make(choice.select, Opcode::select_, list);
    select->operands = {choice.select->operands[0], none, none};
    select->operands[choice.side] = number;
    return module_.add_result(select, number->type);
  }

  /// Of the element, row or rows that are added to, before and after.
  void check_part(Op* op) {
    Value* const added = op->operands.back();
    if (!is_checked_type(added->type)) return;
    Around& around = around_[op->parent][op];
    Value* const before = part(op, op->operands[0], around.before);
    Value* const after = part(op, op->result(), around.after);
    check(op, op->code, {after, before, added});
  }

  /// The part of a tensor that an update is about; of the one that it changes, in memory of its own.
  Value* part(Op* op, Value* tensor, std::vector<Op*>& list) {
    const Value* added = op->operands.back();
    const auto result = [&](Op* made, std::vector<Value*> operands, const ir::Type& type) {
      made->operands = std::move(operands);
      return module_.add_result(made, type);
    };
    std::vector<Value*> place(op->operands.begin(), op->operands.end() - 1);
    place[0] = tensor;
    if (op->is(Opcode::add_at_))
      return result(make(op, Opcode::get_, list), std::move(place), ir::Type(tensor->type.element()));
    Opcode code = Opcode::take_;
    std::vector<std::int64_t> dims = tensor->type.dims();
    if (op->is(Opcode::add_take_)) {
      dims.erase(dims.begin());
    } else {
      code = Opcode::slice_;
      dims[0] = added->type.dims()[0];
      Value* const rows = result(make(op, Opcode::dim_, list), {op->operands.back()}, ir::I64);
      place.push_back(result(make(op, Opcode::add_, list), {place[1], rows}, ir::I64));
    }
    const ir::Type type = ir::Type::tensor(tensor->type.element(), dims);
    Value* const view = result(make(op, code, list), std::move(place), type);
    return tensor == op->result() ? view : result(make(op, Opcode::copy_, list), {view}, type);
  }

  /// `values`: what is looked at, and what it was made of. The check is at the operation, or behind another one.
  void check(Op* op, Opcode code, std::vector<Value*> values, const Op* behind = nullptr) {
    std::vector<Op*>& list = around_[op->parent][behind != nullptr ? behind : op].after;
    Op* const finite = make(op, Opcode::finite_, list);
    finite->integer = static_cast<std::int64_t>(code);
    finite->operands = {values[0]};
    for (std::size_t i = 1; i < values.size(); ++i) {
      const Op* const from = constant(values[i]);
      const bool known = from && from->number - from->number == 0;
      if (is_checked_type(values[i]->type) && !known) finite->operands.push_back(values[i]);
    }
  }

  Op* make(const Op* at, Opcode code, std::vector<Op*>& list) {
    Op* const op = module_.new_op(code, at->parent);
    op->loc = at->loc;
    list.push_back(op);
    return op;
  }

  static void insert(Block& block, const std::unordered_map<const Op*, Around>& around) {
    std::vector<Op*> ops;
    for (Op* op : block.ops) {
      const auto found = around.find(op);
      if (found != around.end())
        ops.insert(ops.end(), found->second.before.begin(), found->second.before.end());
      ops.push_back(op);
      if (found != around.end())
        ops.insert(ops.end(), found->second.after.begin(), found->second.after.end());
    }
    block.ops = std::move(ops);
  }

  ir::Module& module_;
  const LiveUses uses_;
  const ir::Uses all_uses_;
  std::unordered_map<const Op*, Choice> choices_;
  std::unordered_map<Block*, std::unordered_map<const Op*, Around>> around_;
};

}  // namespace

void value_checks(ir::Module& module) {
  for (ir::Function* f : module.functions()) Insertion insertion(*f);
}

}  // namespace lantern::passes
