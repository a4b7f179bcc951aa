// Runs of operations on wide vectors, each as a loop over strips of their lanes.
#include "lantern/compiler/passes/schedule/strips.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lantern/compiler/passes/analysis/wide_vectors.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"

namespace lantern::passes {

namespace {

using ir::Type;

/// Rewrites one unit of code: a block that makes wide vectors, with all that is in it.
class Strips {
 public:
  Strips(ir::Module& module, const WideVectors& wide, int width)
      : module_(module), wide_(wide), width_(width), builder_(module, wide.root) {}

  void run() {
    hoist(wide_.root);
    wide_.find_uses();
    ir::walk(wide_.root, [&](Op* op) {
      if (!op->is(Opcode::loop_)) return;
      for (std::size_t i = 0; i < op->results.size(); ++i)
        if (wide_.is_wide(op->results[i])) settle(op->blocks[1]->ops.back(), i, op->blocks[1]->params[i]);
    });
    block(wide_.root);
  }

 private:
  // ---- what does not change in a loop

  /// Moves vectors that are the same in each trip before their loop, from the inside out.
  void hoist(Block* block) {
    std::vector<Op*> ops;
    for (Op* op : block->ops) {
      for (Block* b : op->blocks) hoist(b);
      if (op->is(Opcode::loop_)) {
        const std::vector<Op*> fixed = unchanging(op);
        for (Op* moved : fixed) {
          moved->parent = block;
          for (Value* v : moved->results) v->block = block;
          ops.push_back(moved);
        }
        const std::unordered_set<const Op*> gone(fixed.begin(), fixed.end());
        std::erase_if(op->blocks[1]->ops, [&](const Op* o) { return gone.contains(o); });
      }
      ops.push_back(op);
    }
    block->ops = std::move(ops);
  }

  /// The operations of a loop's body that are the same in each trip and give vectors of numbers, with what
  /// they need.
  std::vector<Op*> unchanging(const Op* loop) const {
    const std::vector<Op*>& ops = loop->blocks[1]->ops;
    std::unordered_set<const Op*> fixed, needed;
    for (const Op* op : ops) {
      const bool pure = op->is(Opcode::constant_) || wide_.is_repeatable(op) || wide_.is_arithmetic(*op);
      if (pure && std::ranges::all_of(op->operands, [&](const Value* v) {
            return ir::visible_from(v, loop->parent) || (v->def && fixed.contains(v->def));
          }))
        fixed.insert(op);
    }
    for (std::size_t i = ops.size(); i-- > 0;) {
      const Op* op = ops[i];
      if (!fixed.contains(op)) continue;
      if (!needed.contains(op) && (op->is(Opcode::constant_) || wide_.is_repeatable(op))) continue;
      needed.insert(op);
      for (const Value* v : op->operands)
        if (v->def) needed.insert(v->def);
    }
    std::vector<Op*> moved;
    std::ranges::copy_if(ops, std::back_inserter(moved),
                         [&](const Op* op) { return fixed.contains(op) && needed.contains(op); });
    return moved;
  }

  // ---- where vectors live

  /// Operand `i` of a yield is the next state of `state`, whose array it may take over.
  void settle(const Op* yield, std::size_t i, const Value* state) {
    slots_[yield].emplace(i, state);
    const Value* v = yield->operands[i];
    if (v->def && v->def->is(Opcode::branch_) && v->block == yield->parent)
      for (const Block* side : v->def->blocks) settle(side->ops.back(), v->index, state);
    else if (v != state)
      heirs_.try_emplace(v, state);
  }

  /// The state whose array `v` may overwrite: nothing but this run asks for it.
  const Value* overwritten(const Value* v) const {
    const auto heir = heirs_.find(v);
    if (heir == heirs_.end() || !arrays_.contains(heir->second)) return nullptr;
    const Value* state = heir->second;
    const bool free = std::ranges::all_of(wide_.users(state), [&](const Op* user) {
      if (members_.contains(user)) return true;
      const auto slots = slots_.find(user);
      if (slots == slots_.end()) return false;
      for (std::size_t i = 0; i < user->operands.size(); ++i)
        if (user->operands[i] == state && (!slots->second.contains(i) || slots->second.at(i) != state))
          return false;
      return true;
    });
    return free ? state : nullptr;
  }

  Type array_type(const Value* v) const { return Type::tensor(v->type.kind(), {wide_.lanes}); }

  Value* new_array(const Value* v, Value* element) {
    return builder_.emit(Opcode::fill_, {element, builder_.integer(wide_.lanes)}, 0, array_type(v).dims());
  }
  Value* new_array(const Value* v) {
    return new_array(v, builder_.op(Opcode::undef_, {}, {Type(v->type.kind())})->result());
  }

  /// The vector as an array, for a construct that keeps it.
  Value* array(Value* v) {
    if (const auto it = arrays_.find(v); it != arrays_.end()) return it->second;
    if (v->def->is(Opcode::lane_splat_)) return new_array(v, now(v->def->operands[0]));
    loop({v});
    return arrays_.at(v);
  }

  Value* now(Value* v) const {
    const auto it = now_.find(v);
    return it == now_.end() ? v : it->second;
  }

  // ---- blocks

  void block(Block* b) {
    const std::vector<Op*> ops = std::exchange(b->ops, {});
    Block* const outer = builder_.block();
    builder_.set_block(b);
    for (Op* op : ops) {
      if (wide_.is_repeatable(op)) continue;
      builder_.loc = op->loc;
      if (wide_.is_simple(*op)) {
        join(op);
        continue;
      }
      const bool keeps = op->is(Opcode::yield_) || wide_.holds(op);
      if (keeps || disturbs(op)) flush();
      if (keeps)
        for (Value*& v : op->operands)
          if (wide_.is_wide(v)) v = array(v);
      rename(op);
      b->ops.push_back(op);
      if (wide_.holds(op)) construct(op);
    }
    flush();
    builder_.set_block(outer);
  }

  /// Vectors that a loop or branch hands on become arrays.
  void construct(Op* op) {
    const auto keep = [&](Value* v) {
      if (!wide_.is_wide(v)) return;
      v->type = array_type(v);
      arrays_[v] = v;
    };
    for (Value* v : op->results) keep(v);
    for (Block* b : op->blocks) {
      for (Value* v : b->params) keep(v);
      block(b);
    }
  }

  void rename(Op* op) {
    if (now_.empty()) return;
    for (Value*& v : op->operands) v = now(v);
    if (wide_.holds(op)) return;
    for (Block* b : op->blocks)
      ir::walk(b, [&](Op* o) {
        for (Value*& v : o->operands) v = now(v);
      });
  }

  // ---- runs

  /// The tensors of a run: one that is updated, from what it was to what it is last.
  struct Tensor {
    Value* first;
    Value* last;
    WideVectors::Access access;  ///< where its elements are read and written
    bool updated = false;
  };

  void join(Op* op) {
    if (const auto access = wide_.access(*op)) {
      Value* t = op->operands[0];
      const bool update = !op->result()->type.is_vector();
      if (!fits(*op, *access, update)) flush();
      const auto [at, added] = tensor_of_.try_emplace(t, tensors_.size());
      if (added) tensors_.push_back({t, t, *access});
      if (update) {
        Tensor& tensor = tensors_[at->second];
        tensor.updated = true;
        tensor.last = op->result();
        tensor_of_[op->result()] = static_cast<std::size_t>(&tensor - tensors_.data());
      }
    }
    run_.push_back(op);
    members_.insert(op);
  }

  /// Whether what a run does to a tensor stays within each strip if this access is one more of it.
  bool fits(const Op& op, const WideVectors::Access& access, bool update) const {
    const auto found = tensor_of_.find(op.operands[0]);
    if (found == tensor_of_.end()) return true;
    const Tensor& tensor = tensors_[found->second];
    if (tensor.last != op.operands[0]) return false;
    if ((update || tensor.updated) && !(access.in_order && access == tensor.access)) return false;
    if (!update || !tensor.updated) return true;
    const auto& users = wide_.uses(tensor.last);
    return std::ranges::all_of(users, [&](const Op* user) { return user == &op || members_.contains(user); });
  }

  /// Whether other code asks for what the run makes, or makes anew what it reads.
  bool disturbs(Op* op) const {
    if (run_.empty()) return false;
    const auto asks = [&](const Op* o) {
      if (ir::info(o->code).effect != ir::Effect::none && o->blocks.empty()) return true;
      return std::ranges::any_of(o->operands, [&](const Value* v) {
        const auto it = tensor_of_.find(v);
        if (it == tensor_of_.end()) return false;
        return tensors_[it->second].updated || !(o->is(Opcode::get_) || o->is(Opcode::dim_));
      });
    };
    bool any = asks(op);
    for (Block* b : op->blocks) ir::walk(b, [&](const Op* o) { any |= asks(o); });
    return any;
  }

  void flush() {
    if (run_.empty()) return;
    std::vector<Value*> kept;
    for (const Op* op : run_)
      if (Value* v = op->result();
          wide_.is_wide(v) &&
          std::ranges::any_of(wide_.users(v), [&](const Op* user) { return !members_.contains(user); }))
        kept.push_back(v);
    builder_.loc = run_.front()->loc;
    loop(kept);
    run_.clear();
    members_.clear();
    tensors_.clear();
    tensor_of_.clear();
  }

  /// The run's operations, strip by strip; the vectors in `kept` become arrays.
  void loop(const std::vector<Value*>& kept) {
    std::vector<Value*> initial{builder_.integer(0)};
    std::vector<std::size_t> updated;
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i].updated) {
        updated.push_back(i);
        initial.push_back(now(tensors_[i].first));
      }
    std::unordered_map<const Value*, std::size_t>
        taken;  // arrays that are overwritten, by place in the state
    for (const Value* v : kept) {
      const Value* state = overwritten(v);
      if (state && !taken.emplace(state, initial.size()).second) state = nullptr;
      initial.push_back(state ? arrays_.at(state) : new_array(v));
    }
    std::vector<Type> types;
    for (const Value* v : initial) types.push_back(v->type);
    Block* const outer = builder_.block();
    Op* strips = builder_.op(Opcode::loop_, initial, types);
    for (int k = 0; k < 2; ++k) {
      strips->blocks.push_back(module_.new_block(strips, outer->function));
      for (const Type& t : types) module_.add_param(strips->blocks[k], t);
    }
    Block *const condition = strips->blocks[0], *const body = strips->blocks[1];
    builder_.set_block(condition);
    Value* bound = wide_.active ? now(wide_.active) : builder_.integer(wide_.lanes);
    builder_.yield({builder_.emit(Opcode::lt_, {condition->params[0], bound})});

    builder_.set_block(body);
    first_ = body->params[0];
    lanes_ = builder_.emit(Opcode::add_, {builder_.emit(Opcode::lane_index_, {}, width_),
                                          builder_.emit(Opcode::lane_splat_, {first_}, width_)});
    parts_.clear();
    inside_.clear();
    for (std::size_t k = 0; k < updated.size(); ++k)
      inside_[tensors_[updated[k]].first] = body->params[k + 1];
    for (const auto& [state, place] : taken) {
      body->params[place]->name = state->name;
      inside_[arrays_.at(state)] = body->params[place];
    }
    const ir::Location loc = builder_.loc;
    for (const Op* op : run_) clone(op);
    builder_.loc = loc;
    std::vector<Value*> next{builder_.emit(Opcode::add_, {first_, builder_.integer(width_)})};
    for (const std::size_t i : updated) next.push_back(inside_.at(tensors_[i].last));
    for (std::size_t k = 0; k < kept.size(); ++k) {
      Value* part = strip(kept[k]);
      next.push_back(builder_.emit(Opcode::set_, {body->params[1 + updated.size() + k], lanes_, part}));
    }
    builder_.yield(next);
    builder_.set_block(outer);
    for (std::size_t k = 0; k < updated.size(); ++k) {
      Value* result = strips->results[k + 1];
      result->name = tensors_[updated[k]].last->name;
      now_[tensors_[updated[k]].last] = result;
    }
    for (std::size_t k = 0; k < kept.size(); ++k) {
      Value* result = strips->results[1 + updated.size() + k];
      result->name = kept[k]->name;
      arrays_[kept[k]] = result;
    }
  }

  /// A strip of a vector.
  Value* strip(Value* v) {
    if (const auto it = parts_.find(v); it != parts_.end()) return it->second;
    Value* part = nullptr;
    if (const auto it = arrays_.find(v); it != arrays_.end()) {
      const auto here = inside_.find(it->second);
      part = builder_.emit(Opcode::get_, {here == inside_.end() ? it->second : here->second, lanes_});
      part->name = v->name;
    } else if (v->def->is(Opcode::lane_index_)) {
      part = lanes_;
    } else {
      return clone(v->def);
    }
    parts_[v] = part;
    return part;
  }

  /// An operation of the run, or one that is repeated wherever it is asked for.
  Value* clone(const Op* op) {
    std::vector<Value*> operands;
    for (Value* v : op->operands) {
      const auto here = inside_.find(v);
      operands.push_back(wide_.is_wide(v) ? strip(v) : here != inside_.end() ? here->second : now(v));
    }
    builder_.loc = op->loc;
    if (op->is(Opcode::lane_get_) || op->is(Opcode::lane_set_) || op->is(Opcode::lane_add_at_))
      operands.back() = builder_.emit(Opcode::sub_, {operands.back(), first_});
    Value* v = builder_.emit(op->code, operands, op->is(Opcode::lane_splat_) ? width_ : op->integer);
    if (!v->name) v->name = op->result()->name;
    if (v->type.is_vector())
      parts_[op->result()] = v;
    else
      inside_[op->result()] = v;
    return v;
  }

  ir::Module& module_;
  WideVectors wide_;
  int width_;
  ir::Builder builder_;
  std::unordered_map<const Value*, Value*> now_;     ///< what stands for a tensor by now
  std::unordered_map<const Value*, Value*> arrays_;  ///< vectors that outlive a strip loop
  std::unordered_map<const Value*, const Value*> heirs_;
  std::unordered_map<const Op*, std::unordered_map<std::size_t, const Value*>> slots_;  ///< of yields

  std::vector<Op*> run_;
  std::unordered_set<const Op*> members_;
  std::vector<Tensor> tensors_;
  std::unordered_map<const Value*, std::size_t> tensor_of_;

  // Inside a strip loop.
  Value* first_ = nullptr;                           ///< the strip's first lane
  Value* lanes_ = nullptr;                           ///< the strip's lanes
  std::unordered_map<const Value*, Value*> parts_;   ///< strips of vectors
  std::unordered_map<const Value*, Value*> inside_;  ///< tensors as they are in the strip
};

/// The outermost blocks that make vectors of so many lanes.
void find_units(Block* block, int at_least, std::vector<std::pair<Block*, int>>& units) {
  for (const Op* op : block->ops)
    for (const Value* v : op->results)
      if (v->type.is_vector() && v->type.lanes() >= at_least) {
        units.emplace_back(block, v->type.lanes());
        return;
      }
  for (const Op* op : block->ops)
    for (Block* b : op->blocks) find_units(b, at_least, units);
}

}  // namespace

void strips(ir::Module& module, int native) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    std::vector<std::pair<Block*, int>> units;
    find_units(f->body, 4 * native, units);
    for (const auto& [root, lanes] : units) {
      const auto wide = wide_vectors(root, lanes, native);
      if (!wide) continue;
      remark("strips", root->ops.front()->loc,
             "its " + std::to_string(lanes) + " lanes go through the registers " + std::to_string(native) +
                 " at a time");
      Strips(module, *wide, native).run();
      any = true;
    }
  }
  if (any) eliminate_dead(module);
}

}  // namespace lantern::passes
