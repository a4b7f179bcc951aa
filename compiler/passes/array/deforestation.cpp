// Reads of arrays with one element replaced; arrays that become rows.
#include "lantern/compiler/passes/array/deforestation.hpp"

#include <algorithm>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/def_chain.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"

namespace lantern::passes {

namespace {

// ---- one element replaced

/// get(set(filled, i, v), j) becomes select(i == j, v, get(filled, j)).
class PointUpdateElimination {
 public:
  explicit PointUpdateElimination(const Uses& uses) : uses_(uses) {}

  bool run(Op* set) {
    if (!filled(set->operands[0]) || !in_range(*set)) return false;
    const auto rank = static_cast<std::size_t>(set->result()->type.rank());
    const auto& all = uses_.of(set->result());
    if (all.empty() || !std::ranges::all_of(all, [](const ir::Use& use) { return use.op->is(Opcode::get_); })) return false;
    for (const ir::Use& use : all) read(*set, use.op, rank);
    return true;
  }

 private:
  void read(const Op& set, Op* get, std::size_t rank) {
    ir::Builder b = ir::Builder::before(get);
    Value* here = nullptr;
    for (std::size_t d = 0; d < rank; ++d) {
      Value* same = b.eq({get->operands[1 + d], set.operands[1 + d]});
      here = here ? b.land({here, same}) : same;
    }
    std::vector<Value*> place = get->operands;
    place[0] = set.operands[0];
    Value* other = b.emit(Opcode::get_, place);
    // The read becomes the choice: who uses it goes on doing so.
    get->code = Opcode::select_;
    get->operands = {here, set.operands.back(), other};
  }

  const Uses& uses_;
};

// ---- rows

class Row {
 public:
  Row(Op* loop, std::size_t state) : loop_(loop), state_(state), uses_(*loop->parent->function) {}

  bool run() {
    if (!find() || !fits()) return false;
    move();
    return true;
  }

 private:
  /// The add_take of the iteration's row, and the loop that makes the row.
  bool find() {
    const auto counter = counter_of(loop_);
    const auto start = filled(loop_->operands[state_]);
    Value* const matrix = loop_->blocks[1]->params[state_];
    if (!counter || !start || !start->zero || uses_.count(loop_->blocks[0]->params[state_]) > 0) return false;
    take_ = uses_.only_user(matrix);
    if (!take_ || !take_->is(Opcode::add_take_) || take_->parent != loop_->blocks[1] ||
        take_->operands[0] != matrix || take_->operands[1] != counter->index ||
        uses_.only_user(take_->result()) != loop_->blocks[1]->ops.back() ||
        loop_->blocks[1]->ops.back()->operands[state_] != take_->result())
      return false;
    Value* const row = take_->operands[2];
    maker_ = row->def;
    if (!maker_ || !maker_->is(Opcode::loop_) || maker_->parent != take_->parent || uses_.only_user(row) != take_)
      return false;
    place_ = row->index;
    const Value* first = maker_->operands[place_];
    const auto from = filled(first);
    const bool memory = first->def && first->def->is(Opcode::fill_) && first->def->operands[0]->def &&
                        first->def->operands[0]->def->is(Opcode::undef_);
    return uses_.only_user(first) == maker_ && (memory || (from && from->zero));
  }

  /// Whether all that happens to the array can happen to a row of the matrix.
  bool fits() {
    const Value* matrix = loop_->operands[state_];
    const Value* first = maker_->operands[place_];
    if (!in_range(*take_, 0)) return false;
    const auto rank = static_cast<std::size_t>(first->type.rank());
    for (std::size_t d = 0; d < rank; ++d)
      if (!(size_form(first, d) == size_form(matrix, d + 1))) return false;
    if (!versions_.collect_defs(maker_, place_)) return false;
    versions_.values.insert(maker_->result(place_));
    return std::ranges::all_of(versions_.values, [&](const Value* v) {
      return std::ranges::all_of(uses_.of(v), [&](const ir::Use& use) { return may_use(*use.op, v); });
    });
  }
  bool may_use(const Op& op, const Value* v) const {
    if (&op == take_) return true;
    if (op.is(Opcode::yield_, Opcode::loop_)) {
      for (std::size_t i = 0; i < op.operands.size(); ++i)
        if (op.operands[i] == v && (!versions_.forwards(op, i) ||
                                    (op.is(Opcode::loop_) && uses_.count(op.blocks[0]->params[i]) > 0)))
          return false;
      return true;
    }
    return is_access(op) && std::ranges::count(op.operands, v) == 1 &&
           op.operands[0] == v;
  }

  void move() {
    Value* const matrix = loop_->blocks[1]->params[state_];
    const ir::Type type = matrix->type;
    std::unordered_set<Op*> accesses, loops{maker_};
    for (const Value* v : versions_.values) {
      if (v->def && v->def->is(Opcode::loop_)) loops.insert(v->def);
      for (const ir::Use& use : uses_.of(v))
        if (is_access(*use.op)) accesses.insert(use.op);
      const_cast<Value*>(v)->type = type;
    }
    for (Op* loop : loops)
      for (std::size_t i = 0; i < loop->results.size(); ++i)
        if (versions_.values.contains(loop->results[i]))
          loop->blocks[0]->params[i]->type = loop->blocks[1]->params[i]->type = type;
    for (Op* op : accesses) op->operands.insert(op->operands.begin() + 1, take_->operands[1]);
    maker_->operands[place_] = matrix;
    loop_->blocks[1]->ops.back()->operands[state_] = maker_->result(place_);
    std::erase(take_->parent->ops, take_);
  }

  Op* loop_;
  std::size_t state_;
  const Uses uses_;
  Op *take_ = nullptr, *maker_ = nullptr;
  std::size_t place_ = 0;
  DefChain versions_;
};

}  // namespace

void deforestation(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    std::vector<Op*> sets;
    std::vector<std::pair<Op*, std::size_t>> rows;
    ir::walk(f->body, [&](Op* op) {
      if (op->is(Opcode::set_) && filled(op->operands[0])) sets.push_back(op);
      const Value* matrix = op->is(Opcode::add_take_) ? op->operands[0] : nullptr;
      Op* const around = matrix && !matrix->def ? matrix->block->parent : nullptr;
      if (around && around->is(Opcode::loop_) && matrix->block == around->blocks[1])
        rows.emplace_back(around, matrix->index);
    });
    if (!sets.empty()) {
      const Uses uses(*f);
      for (Op* set : sets) any |= PointUpdateElimination(uses).run(set);
    }
    for (const auto& [loop, state] : rows) any |= Row(loop, state).run();
  }
  if (any) simplify(module);
}

}  // namespace lantern::passes
