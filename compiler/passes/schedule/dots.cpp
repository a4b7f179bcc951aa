// Sums over the lanes of several trips at once.
#include "lantern/compiler/passes/schedule/dots.hpp"

#include <algorithm>
#include <unordered_map>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

using ir::Builder;

/// One innermost loop.
class Dots {
 public:
  Dots(ir::Module& module, Op* loop, int together)
      : module_(module), loop_(loop), body_(loop->blocks[1]), n_(together), uses_(loop) {}

  bool run() { return counts() && find_updates() && only_dots_and_updates() && build(); }

 private:
  bool counts() {
    if (loop_->integer != 0) return false;  // a bound on memory
    if (const auto trips = constant_trips(loop_); trips && *trips < n_) return false;
    if (const auto up = counted(loop_)) {
      index_ = up->index;
      bound_ = up->bound;
      return bound_->type == ir::I64;
    }
    const auto down = counts_down(loop_);
    if (!down) return false;
    index_ = down->index;
    trip_ = down->trip;
    return trip_->type == ir::I64;
  }

  /// Which operations add to the loop's state; false where anything else is done with that.
  bool find_updates() {
    for (std::size_t s = 0; s < body_->params.size(); ++s) {
      if (s == index_) continue;
      const Value* v = body_->params[s];
      if (!v->type.is_tensor() || !uses_.of(loop_->blocks[0]->params[s]).empty()) return false;
      if (body_->ops.back()->operands[s] == v) continue;  // it stays as it is
      while (true) {
        const Op* next = nullptr;
        for (const ir::Use& use : uses_.of(v)) {
          if (use.op->is(Opcode::dim_) || (use.op->is(Opcode::yield_) && use.operand == s)) continue;
          if (!use.op->is(Opcode::add_at_) || use.operand != 0 || next) return false;
          next = use.op;
        }
        if (!next) break;
        state_of_[next] = s;
        v = next->result();
      }
      if (body_->ops.back()->operands[s] != v) return false;
    }
    return true;
  }

  static bool only_computes(const Op& op) {
    switch (op.code) {
      case Opcode::get_:
      case Opcode::dim_:
      case Opcode::cast_:
      case Opcode::lane_index_:
      case Opcode::lane_splat_:
      case Opcode::lane_sum_:
      case Opcode::lane_get_:
      case Opcode::constant_:
        return true;
      default:
        return op.blocks.empty() && op.results.size() == 1 && op.code < Opcode::cast_;
    }
  }

  /// True for the sum over the lanes of a product.
  bool is_dot(const Op& op) const {
    if (!op.is(Opcode::lane_sum_) || op.result()->type != ir::F64) return false;
    const Op* product = op.operands[0]->def;
    return product && product->is(Opcode::mul_) && product->parent == body_ &&
           uses_.of(product->result()).size() == 1 && product->result()->type.lanes() % n_ == 0;
  }

  bool only_dots_and_updates() const {
    bool any = false;
    for (const Op* op : body_->ops) {
      if (op->is(Opcode::yield_) || state_of_.contains(op)) continue;
      if (!only_computes(*op)) return false;
      any |= is_dot(*op);
    }
    return any;
  }

  /// False, and nothing done, where an update has no form in lanes.
  bool build() {
    Block* const home = loop_->parent;
    Block* const scratch = module_.new_block(home->parent, home->function);
    Builder b(module_, scratch);
    b.loc = loop_->loc;
    std::vector<ir::Type> types;
    for (const Value* v : loop_->results) types.push_back(v->type);
    Op* const main = b.op(Opcode::loop_, loop_->operands, types);
    for (const Block* from : loop_->blocks) {
      main->blocks.push_back(module_.new_block(main, home->function));
      for (const Value* p : from->params) module_.add_param(main->blocks.back(), p->type, p->name);
    }
    Builder condition(module_, main->blocks[0]), body(module_, main->blocks[1]);
    condition.loc = body.loc = loop_->loc;
    Value* const at = main->blocks[0]->params[index_];
    if (trip_) {
      condition.yield({condition.emit(Opcode::lt_, {condition.integer(n_ - 1, at->type), at})});
    } else {
      Value* const bound =
          constant(bound_) ? condition.integer(constant(bound_)->integer, bound_->type) : bound_;
      Value* const last = condition.emit(Opcode::add_, {at, condition.integer(n_ - 1, at->type)});
      condition.yield({condition.emit(Opcode::lt_, {last, bound})});
    }
    if (!write(body)) return false;
    for (std::size_t i = 0; i < main->results.size(); ++i) loop_->operands[i] = main->results[i];
    for (Op* op : scratch->ops) {
      op->parent = home;
      for (Value* r : op->results) r->block = home;
    }
    home->ops.insert(std::find(home->ops.begin(), home->ops.end(), loop_), scratch->ops.begin(),
                     scratch->ops.end());
    scratch->ops.clear();
    return true;
  }

  /// The trips from the one with the lowest number on, which is in the first lane.
  bool write(Builder& b) {
    std::vector<Value*> state(b.block()->params.begin(), b.block()->params.end());
    Value* const at = state[index_];
    const ir::Type count = at->type;
    first_ = trip_ ? b.emit(Opcode::sub_, {at, b.integer(n_, count)}) : at;
    names_.resize(static_cast<std::size_t>(n_));
    for (std::size_t q = 0; q < names_.size(); ++q) {
      Value* const trip =
          q == 0 ? first_ : b.emit(Opcode::add_, {first_, b.integer(static_cast<std::int64_t>(q), count)});
      for (std::size_t s = 0; s < state.size(); ++s) names_[q][body_->params[s]] = state[s];
      names_[q][trip_ ? trip_ : body_->params[index_]] = trip;
      if (trip_) names_[q][body_->params[index_]] = b.emit(Opcode::add_, {trip, b.integer(1, count)});
    }
    for (const Op* op : body_->ops) {
      if (!state_of_.contains(op)) continue;
      Value*& to = state[state_of_.at(op)];
      std::vector<Value*> operands{to};
      if (!neighbours(b, *op, op->operands.size() - 1, operands)) return false;
      operands.push_back(in_lanes(b, op->operands.back()));
      if (!operands.back()) return false;
      to = b.emit(Opcode::add_at_, operands);
      to->def->loc = op->loc;
    }
    state[index_] = trip_ ? first_ : b.emit(Opcode::add_, {at, b.integer(n_, count)});
    b.yield(state);
    return true;
  }

  const Value* trip() const { return trip_ ? trip_ : body_->params[index_]; }

  /// True for values that are the same in all trips.
  bool same(const Value* v) const {
    if (v->block != body_) return true;
    if (!v->def) return v != body_->params[index_];
    return only_computes(*v->def) &&
           std::ranges::all_of(v->def->operands, [&](const Value* o) { return same(o); });
  }

  /// A value as a trip makes it.
  Value* made(Builder& b, Value* v, Renaming& names) const {
    if (const auto known = names.find(v); known != names.end()) return known->second;
    if (v->block != body_ || !v->def) return v;
    for (Value* o : v->def->operands) made(b, o, names);
    return ir::clone(b, *v->def, names)->result();
  }

  /// Appends indices of elements that lie side by side; false where they do not.
  bool neighbours(Builder& b, const Op& access, std::size_t end, std::vector<Value*>& operands) {
    for (std::size_t i = 1; i + 1 < end; ++i) {
      if (!same(access.operands[i])) return false;
      operands.push_back(made(b, access.operands[i], names_[0]));
    }
    Value* const last = access.operands[end - 1];
    const auto along = index_form(last).split(body_->params[index_]);
    if (!along || along->coefficient.number() != 1 ||
        std::ranges::any_of(along->rest.unknowns(), [&](const Unknown& v) { return made_in(v.value, body_); }))
      return false;
    Value* const from = made(b, last, names_[0]);
    operands.push_back(
        b.emit(Opcode::add_, {b.emit(Opcode::lane_splat_, {from}, n_), b.emit(Opcode::lane_index_, {}, n_)}));
    return true;
  }

  /// A number with one lane for each trip, or null.
  Value* in_lanes(Builder& b, Value* v) {
    if (const auto known = lanes_.find(v); known != lanes_.end()) return known->second;
    if (v->type != ir::F64) return nullptr;
    if (same(v)) return lanes_[v] = b.emit(Opcode::lane_splat_, {made(b, v, names_[0])}, n_);
    if (!v->def) return nullptr;
    const Op& op = *v->def;
    std::vector<Value*> operands;
    if (is_dot(op)) {
      for (Renaming& names : names_)
        for (Value* o : op.operands[0]->def->operands) operands.push_back(made(b, o, names));
      return lanes_[v] = b.emit(Opcode::lane_dots_, operands);
    }
    switch (op.code) {
      case Opcode::get_:
        operands.push_back(made(b, op.operands[0], names_[0]));
        if (!neighbours(b, op, op.operands.size(), operands)) return nullptr;
        break;
      case Opcode::add_:
      case Opcode::sub_:
      case Opcode::mul_:
      case Opcode::div_:
      case Opcode::neg_:
        for (Value* o : op.operands) {
          operands.push_back(in_lanes(b, o));
          if (!operands.back()) return nullptr;
        }
        break;
      default:
        return nullptr;
    }
    return lanes_[v] = b.emit(op.code, operands);
  }

  ir::Module& module_;
  Op* loop_;
  Block* body_;
  int n_;
  Uses uses_;
  std::size_t index_ = 0;
  Value *bound_ = nullptr, *trip_ = nullptr;  ///< where it counts up, and down
  std::unordered_map<const Op*, std::size_t> state_of_;
  Value* first_ = nullptr;       ///< of the trips at once
  std::vector<Renaming> names_;  ///< what each of these makes
  std::unordered_map<const Value*, Value*> lanes_;
};

}  // namespace

void dots(ir::Module& module, int vector_lanes) {
  if (vector_lanes < 2) return;
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    for (Op* loop : loops_in(*f))
      if (std::ranges::all_of(loop->blocks[1]->ops, [](const Op* op) { return op->blocks.empty(); }))
        any |= Dots(module, loop, vector_lanes).run();
  }
  if (any) eliminate_dead(module);
}

}  // namespace lantern::passes
