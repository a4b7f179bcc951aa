// Which values differ from lane to lane, and whether everything that depends on them can.
#include "lantern/compiler/passes/lanes.hpp"

#include <algorithm>

namespace lantern::passes {

namespace {

bool is_lane_kind(const ir::Type& t) {
  const ir::Kind k = t.element();
  return k == ir::Kind::f64 || k == ir::Kind::i64 || k == ir::Kind::boolean;
}

class Analysis {
 public:
  Analysis(Op* loop, const TapeUses& tapes, int native)
      : uses_(loop), tapes_(tapes), native_(native), plan_(std::make_unique<LanePlan>()) {
    plan_->loop = loop;
    ir::walk(loop->blocks[1], [&](Op* op) { ops_.push_back(op); });
  }

  std::unique_ptr<LanePlan> run() {
    const auto count = counted(plan_->loop);
    if (!count || !separable(plan_->loop, *count)) return nullptr;
    plan_->count = *count;
    if (!state() || !tapes_inside()) return nullptr;
    while (spread()) {
    }
    for (const Op* op : ops_)
      if (!legal(*op)) return nullptr;
    if (!worthwhile()) return nullptr;
    find_summed(*plan_, uses_, ops_);
    find_packed();
    plan_->lanes = width();
    return std::move(plan_);
  }

 private:
  bool varies(const Value* v) const { return plan_->varying.contains(v); }
  bool any_varies(const Op& op) const {
    return std::ranges::any_of(op.operands, [&](Value* v) { return varies(v); });
  }

  /// The loop's state: the index, integers that count with it, sums, and tensors that are added to.
  bool state() {
    const Block* body = plan_->loop->blocks[1];
    for (Value* p : body->params) {
      if (p->index == plan_->count.index || step_of(plan_->loop, p->index)) {
        if (p->type.kind() != ir::Kind::i64) return false;
        plan_->varying.insert(p);
        continue;
      }
      std::vector<Value*> chain;
      accumulates(uses_, p, body, p->index, body->params[plan_->count.index], &chain);
      if (p->type.is_tensor()) {
        plan_->shared.insert(chain.begin(), chain.end());
      } else {
        if (p->type.kind() != ir::Kind::f64) return false;
        plan_->varying.insert(p);
        plan_->reductions.insert(p);
      }
    }
    return true;
  }

  /// Whatever is pushed in a trip is popped in it.
  bool tapes_inside() {
    TapeUses here;
    for (const Op* op : ops_)
      if (op->is(Opcode::push_) || op->is(Opcode::pop_)) ++here[op->integer];
    return std::ranges::all_of(here, [&](const auto& t) { return tapes_.at(t.first) == t.second; });
  }

  bool mark(const Value* v) { return !plan_->shared.contains(v) && plan_->varying.insert(v).second; }

  /// One round of marking what depends on what varies.
  bool spread() {
    bool changed = false;
    for (const Op* op : ops_) {
      switch (op->code) {
        case Opcode::loop_:
          for (std::size_t i = 0; i < op->operands.size(); ++i) {
            const Value* next = op->blocks[1]->ops.back()->operands[i];
            if (!varies(op->operands[i]) && !varies(next) && !varies(op->results[i])) continue;
            changed |= mark(op->blocks[0]->params[i]);
            changed |= mark(op->blocks[1]->params[i]);
            changed |= mark(op->results[i]);
          }
          break;
        case Opcode::branch_:
          for (std::size_t i = 0; i < op->results.size(); ++i) {
            bool any = varies(op->operands[0]);
            for (const Block* b : op->blocks) any |= varies(b->ops.back()->operands[i]);
            if (any) changed |= mark(op->results[i]);
          }
          break;
        case Opcode::push_:
          for (const Value* v : op->operands)
            if (varies(v)) changed |= varying_tapes_.insert(op->integer).second;
          break;
        case Opcode::pop_:
          if (varying_tapes_.contains(op->integer))
            for (const Value* v : op->results) changed |= mark(v);
          break;
        case Opcode::dim_:
        case Opcode::zeros_like_:
        case Opcode::yield_:
          break;
        default:
          if (any_varies(*op))
            for (const Value* v : op->results) changed |= mark(v);
      }
    }
    return changed;
  }

  /// True where a uniform tensor can be made with lanes.
  bool convertible(const Value* t) const { return varies(t) || is_uniform_fill(t); }

  bool legal(const Op& op) const {
    for (const Value* v : op.results)
      if (varies(v) && !is_lane_kind(v->type)) return false;
    switch (op.code) {
      case Opcode::constant_:
      case Opcode::undef_:
      case Opcode::dim_:
      case Opcode::zeros_like_:
      case Opcode::push_:
      case Opcode::pop_:
        return lanes_of_tensors(op);
      case Opcode::yield_:
        return true;
      case Opcode::get_:
        return true;
      case Opcode::set_:
      case Opcode::add_at_:
        return plan_->shared.contains(op.result()) || !varies(op.result()) || convertible(op.operands[0]);
      case Opcode::loop_: {
        if (varies(op.blocks[0]->ops.back()->operands[0])) return false;
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
          if (!op.operands[i]->type.is_tensor() || !varies(op.results[i])) continue;
          if (!convertible(op.operands[i]) || !convertible(op.blocks[1]->ops.back()->operands[i]))
            return false;
        }
        return true;
      }
      case Opcode::branch_: {
        if (varies(op.operands[0])) return selectable(op);
        for (std::size_t i = 0; i < op.results.size(); ++i)
          for (const Block* b : op.blocks) {
            const Value* v = b->ops.back()->operands[i];
            if (plan_->shared.contains(v)) return false;
            if (v->type.is_tensor() && varies(op.results[i]) && !convertible(v)) return false;
          }
        return true;
      }
      case Opcode::cast_:
      case Opcode::cast_like_:
        // A vector of i32 or f32 is not as wide as one of f64.
        for (const Value* v : op.operands)
          if (varies(v) && !is_lane_kind(v->type)) return false;
        return !any_varies(op) || op.result()->type.is_scalar();
      default: {
        if (ir::info(op.code).effect != ir::Effect::none) return false;
        if (!any_varies(op)) return true;
        if (!ir::info(op.code).elementwise || !op.result()->type.is_scalar()) return false;
        // Division of integers raises in one lane, not in all.
        if (!op.result()->type.is_float_element() && (op.is(Opcode::div_) || op.is(Opcode::rem_))) {
          const Op* by = constant(op.operands[1]);
          return by && by->integer > 0;
        }
        return true;
      }
    }
  }

  bool lanes_of_tensors(const Op& op) const {
    if (!op.is(Opcode::push_)) return true;
    if (!varying_tapes_.contains(op.integer)) return true;
    return std::ranges::all_of(op.operands, [&](Value* v) { return !v->type.is_tensor() || convertible(v); });
  }

  /// Both sides can be computed in every lane: arithmetic without effects, reads or loops.
  bool selectable(const Op& op) const {
    for (const Block* b : op.blocks)
      for (const Op* o : b->ops) {
        if (o->is(Opcode::yield_) || o->is(Opcode::constant_) || o->is(Opcode::undef_)) continue;
        if (o->is(Opcode::branch_) && selectable(*o)) continue;
        if (!ir::info(o->code).elementwise || !o->result()->type.is_scalar()) return false;
        if (!o->result()->type.is_float_element() && (o->is(Opcode::div_) || o->is(Opcode::rem_)))
          return false;
      }
    for (const Value* v : op.results)
      if (!v->type.is_scalar() || !is_lane_kind(v->type)) return false;
    return true;
  }

  /// There is arithmetic to be done in lanes.
  bool worthwhile() const {
    return std::ranges::any_of(ops_, [&](const Op* op) {
      return ir::info(op->code).elementwise && op->result()->type.is_float_element() && varies(op->result());
    });
  }

  /// As many lanes as the values of the innermost loops leave registers for.
  int width() const {
    bool inner = false;
    std::unordered_map<const Block*, int> work;
    for (const Op* op : ops_) {
      inner |= op->is(Opcode::loop_);
      if (!op->results.empty() && op->result()->type.is_scalar() && varies(op->result()) &&
          op->result()->type.is_float_element())
        ++work[op->parent];
    }
    if (!inner) return work[plan_->loop->blocks[1]] > 32 ? native_ : 2 * native_;
    return 8 * native_;
  }

  /// Tensors from outside whose row `index` is read element by element within inner loops of inner loops.
  void find_packed() {
    const Value* index = plan_->loop->blocks[1]->params[plan_->count.index];
    for (const Op* op : ops_) {
      if (!op->is(Opcode::get_) || op->operands.size() != 3 || op->operands[1] != index) continue;
      const Value* t = op->operands[0];
      if (plan_->is_varying(t) || plan_->is_varying(op->operands[2]) || t->type.element() != ir::Kind::f64)
        continue;
      if (depth(t->block) != 0 || depth(op->parent) < 3) continue;
      plan_->packed.insert(t);
    }
  }

  /// How many loops lie between a block and the code around the loop: 1 in the loop's body, 0 outside.
  int depth(const Block* b) const {
    int n = 0;
    for (; b && b->parent; b = b->parent->parent) {
      n += b->parent->is(Opcode::loop_);
      if (b->parent == plan_->loop) return n;
    }
    return 0;
  }

  BodyUses uses_;
  const TapeUses& tapes_;
  int native_;
  std::unique_ptr<LanePlan> plan_;
  std::vector<Op*> ops_;
  std::unordered_set<std::int64_t> varying_tapes_;
};

}  // namespace

TapeUses tape_uses(const ir::Module& module) {
  TapeUses uses;
  for (const ir::Function* f : module.functions())
    ir::walk(f->body, [&](const Op* op) {
      if (op->is(Opcode::push_) || op->is(Opcode::pop_)) ++uses[op->integer];
    });
  return uses;
}

bool is_uniform_fill(const Value* t) {
  return t->def &&
         (t->def->is(Opcode::fill_) || t->def->is(Opcode::zeros_like_) || t->def->is(Opcode::undef_));
}

std::unique_ptr<LanePlan> plan_lanes(Op* loop, const TapeUses& tapes, int native) {
  return Analysis(loop, tapes, native).run();
}

}  // namespace lantern::passes
