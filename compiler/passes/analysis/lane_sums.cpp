// Factoring: what is only needed as a sum over the lanes is kept as that sum.
//
// Adjoint code is linear in adjoints. Where an adjoint is scaled by factors that all lanes share, added up,
// kept in an array, and in the end summed over the lanes, the sum can be taken first. All values are assumed
// to be of that kind until a use or a definition speaks against it.
#include <algorithm>

#include "lantern/compiler/passes/analysis/lanes.hpp"

namespace lantern::passes {

namespace {

class Summed {
 public:
  Summed(LanePlan& plan, const Uses& uses, const std::vector<Op*>& ops)
      : plan_(plan), uses_(uses), ops_(ops) {}

  void run() {
    for (const Value* v : plan_.varying)
      if (v->type.is_float_element() && !plan_.reductions.contains(v)) plan_.summed.insert(v);
    bool tensors = false;
    while (refute()) {
    }
    for (const Value* v : plan_.summed) tensors |= v->type.is_tensor();
    if (!tensors) plan_.summed.clear();  // nothing is gained for scalars alone
  }

 private:
  bool summed(const Value* v) const { return plan_.summed.contains(v); }
  bool uniform(const Value* v) const { return !plan_.varying.contains(v); }

  bool refute() {
    bool changed = false;
    const auto drop = [&](const Value* v) { changed |= plan_.summed.erase(v) > 0; };
    for (const Op* op : ops_) {
      for (const Value* v : op->results)
        if (summed(v) && (!defined_as_sum(*op, v) || !used_as_sum(v))) drop(v);
      if (!op->is(Opcode::loop_)) continue;
      for (std::size_t i = 0; i < op->operands.size(); ++i) {
        const Value* parts[] = {op->results[i], op->blocks[0]->params[i], op->blocks[1]->params[i]};
        const Value* next = op->blocks[1]->ops.back()->operands[i];
        bool all = parts[0]->type.is_tensor() && starts_at_zero(op->operands[i]) && summed(next);
        for (const Value* v : parts) all &= summed(v) && used_as_sum(v);
        if (!all)
          for (const Value* v : parts) drop(v);
      }
    }
    return changed;
  }

  /// What an array of sums may start from.
  bool starts_at_zero(const Value* t) const {
    if (summed(t)) return true;
    if (!t->def) return false;
    if (t->def->is(Opcode::zeros_like_)) return true;
    if (!t->def->is(Opcode::fill_)) return false;
    const Op* with = t->def->operands[0]->def;
    // What has no value yet is written before it is read.
    return with && (with->is(Opcode::undef_) || (with->is(Opcode::constant_) && with->number == 0));
  }

  bool uniform_indices(const Op& op, std::size_t last) const {
    return std::all_of(op.operands.begin() + 1, op.operands.begin() + static_cast<long>(last),
                       [&](const Value* v) { return uniform(v); });
  }

  bool defined_as_sum(const Op& op, const Value* v) const {
    switch (op.code) {
      case Opcode::get_:
        return summed(op.operands[0]) && uniform_indices(op, op.operands.size());
      case Opcode::set_:
      case Opcode::add_at_:
        return starts_at_zero(op.operands[0]) && uniform_indices(op, op.operands.size() - 1);
      case Opcode::loop_:
        return true;  // with the loop's state
      case Opcode::add_:
      case Opcode::sub_:
      case Opcode::neg_:
      case Opcode::mul_:
      case Opcode::div_: {
        if (!v->type.is_scalar()) return false;
        int varying = 0;
        for (const Value* x : op.operands) {
          if (uniform(x)) continue;
          ++varying;
          // The sum of a value from further out is taken once; one from here would be summed in each iteration.
          if (!summed(x) && x->block == v->block) return false;
        }
        if (op.is(Opcode::mul_)) return varying == 1;
        if (op.is(Opcode::div_)) return uniform(op.operands[1]);
        return true;
      }
      default:
        return false;
    }
  }

  bool used_as_sum(const Value* v) const {
    return std::ranges::all_of(uses_.of(v), [&](const ir::Use& use) {
      const Op& op = *use.op;
      switch (op.code) {
        case Opcode::dim_:
        case Opcode::zeros_like_:
          return true;
        case Opcode::get_:
          return use.operand == 0 && summed(op.result());
        case Opcode::set_:
        case Opcode::add_at_:
          if (use.operand == 0) return summed(op.result());
          if (use.operand + 1 != op.operands.size()) return false;
          if (plan_.is_shared(op.result()))
            return op.is(Opcode::add_at_) && uniform_indices(op, op.operands.size() - 1) && in_all_lanes(op);
          return summed(op.result());
        case Opcode::add_:
        case Opcode::sub_:
        case Opcode::neg_:
        case Opcode::mul_:
        case Opcode::div_:
          return summed(op.result());
        case Opcode::loop_:
          return v->type.is_tensor() && summed(op.results[use.operand]);
        case Opcode::yield_: {
          const Op* owner = op.parent->parent;
          return v->type.is_tensor() && owner->is(Opcode::loop_) && owner != plan_.loop &&
                 summed(owner->results[use.operand]);
        }
        default:
          return false;
      }
    });
  }

  /// True where no branch around an operation is taken by some lanes only.
  bool in_all_lanes(const Op& op) const {
    for (const Op* around = op.parent->parent; around != plan_.loop; around = around->parent->parent)
      if (around->is(Opcode::branch_) && !uniform(around->operands[0])) return false;
    return true;
  }

  LanePlan& plan_;
  const Uses& uses_;
  const std::vector<Op*>& ops_;
};

}  // namespace

void find_summed(LanePlan& plan, const Uses& uses, const std::vector<Op*>& ops) {
  Summed(plan, uses, ops).run();
}

}  // namespace lantern::passes
