// One branch of an innermost loop at a time.
#include "lantern/compiler/passes/array/if_conversion.hpp"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

constexpr std::size_t most_converted = 60;  ///< of both sides: all of them run

/// A branch whose sides only compute numbers and add to elements of tensors.
class Conversion {
 public:
  explicit Conversion(Op* branch) : branch_(branch) {}

  bool run() {
    if (!computes()) return false;
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
  /// True where running both sides changes nothing but the tensors' elements, and cannot fail.
  bool computes() const {
    std::size_t size = 0;
    for (const Block* side : branch_->blocks)
      for (const Op* op : side->ops) {
        ++size;
        if (op->is(Opcode::yield_) || op->is(Opcode::constant_) || op->is(Opcode::undef_)) continue;
        if (op->is(Opcode::add_at_)) {
          if (op->loc.part != ir::Part::backward || !in_range_at(*op, *branch_)) return false;
          continue;
        }
        const bool divides_integers =
            (op->is(Opcode::div_) || op->is(Opcode::rem_)) && op->result()->type.is_integer();
        if (!ir::info(op->code).elementwise || !op->blocks.empty() || divides_integers ||
            !op->result()->type.is_scalar())
          return false;
      }
    return size <= most_converted;
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
        operands.push_back(b.emit(Opcode::select_, {condition, side == 0 ? v : zero, side == 0 ? zero : v}));
        now = b.emit(Opcode::add_at_, operands);
      }
    }
    ir::replace_uses(branch_->parent, branch_->results[result], now);
    const auto at = static_cast<std::ptrdiff_t>(result);
    branch_->results.erase(branch_->results.begin() + at);
    for (std::size_t i = result; i < branch_->results.size(); ++i)
      branch_->results[i]->index = static_cast<std::uint32_t>(i);
    for (Block* side : branch_->blocks) side->yields().erase(side->yields().begin() + at);
    for (const std::vector<Op*>& side : sums) erase(side);
  }

  /// A value of a side, computed after the branch.
  Value* outside(ir::Builder& b, Value* v, std::size_t side, Renaming& names) const {
    if (!v->def || v->def->parent != branch_->blocks[side]) return v;
    if (const auto known = names.find(v); known != names.end()) return known->second;
    std::vector<Value*> operands;
    for (Value* x : v->def->operands) operands.push_back(outside(b, x, side, names));
    Op* const copy = b.op(v->def->code, operands, {v->type});
    copy->number = v->def->number;
    copy->integer = v->def->integer;
    copy->result()->name = v->name;
    return names[v] = copy->result();
  }

  Op* branch_;
};

bool is_innermost(const Op* loop) {
  bool inner = true;
  ir::walk(loop->blocks[1], [&](const Op* op) {
    inner &= !op->is(Opcode::loop_) && !op->is(Opcode::push_) && !op->is(Opcode::pop_) && !op->callee;
  });
  return inner;
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
      for (Op* branch : branches) any |= Conversion(branch).run();
    }
  }
  if (any) simplify(module);
}

}  // namespace lantern::passes
