// What such a nest is, and the same nest over another shape.
#include "lantern/compiler/passes/schedule/element_nests.hpp"

#include <algorithm>
#include <unordered_map>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loop_state.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/schedule/loop_order.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

using ir::Builder;
using ir::Combine;

namespace {

/// The inner loop's tensors are those of the outer one, each once, handed on from iteration to iteration.
bool hands_on(const Op& outer, const Op& inner) {
  const Block* const body = outer.blocks[1];
  for (std::size_t i = 0; i < inner.results.size(); ++i) {
    if (!inner.results[i]->type.is_tensor()) continue;
    const Value* const from = inner.operands[i];
    if (from->def || from->block != body || body->ops.back()->operands[from->index] != inner.results[i] ||
        std::ranges::count(inner.operands, from) != 1)
      return false;
  }
  return true;
}

/// A nest while it is written anew.
class Reshaping {
 public:
  Reshaping(Op* outermost, Value* like) : nest_(perfect_nest(outermost)), like_(like) {}

  void run() {
    Op* const outermost = nest_[0];
    const std::size_t index = counted(outermost)->index;
    Builder b = Builder::before(outermost);
    b.loc = outermost->loc;
    LoopValues start;
    for (std::size_t i = 0; i < outermost->operands.size(); ++i)
      if (i != index) start.push_back(view(b, outermost->operands[i]));
    ir::walk(nest_.back()->blocks[1], [&](const Op* op) {
      if (is_access(*op) && ir::visible_from(op->operands[0], outermost->parent)) view(b, op->operands[0]);
    });
    for (std::size_t d = 0; d < static_cast<std::size_t>(like_->type.rank()); ++d)
      sizes_.push_back(materialise(b, size_form(like_, d)));
    const LoopValues after = build_element_nest(
        b, start, sizes_, element_, [&](Builder& in, const LoopValues& state) { return body(in, state); });
    ir::Renaming outside;
    for (std::size_t i = 0, k = 0; i < outermost->operands.size(); ++i) {
      if (i == index) continue;
      after[k]->name = outermost->results[i]->name;
      outside[outermost->results[i]] = b.emit(Opcode::reshape_, {after[k], outermost->operands[i]});
      ++k;
    }
    std::erase(outermost->parent->ops, outermost);
    ir::replace_uses(outermost->parent->function->body, outside);
  }

 private:
  /// The tensor with the dimensions of `like`: what it is a view of, where that has them.
  Value* view(Builder& b, Value* tensor) {
    Value*& known = views_[tensor];
    if (known) return known;
    for (Value* v = tensor; v->def && v->def->is(Opcode::reshape_);) {
      v = v->def->operands[0];
      if (v == like_ || shape_source(v) == shape_source(like_)) return known = v;
    }
    return known = b.emit(Opcode::reshape_, {tensor, like_});
  }

  LoopValues body(Builder& b, const LoopValues& state) {
    ir::Renaming names;
    const std::size_t index = counted(nest_[0])->index;
    for (std::size_t i = 0, k = 0; i < nest_[0]->operands.size(); ++i) {
      if (i == index) continue;
      Value* inside = nest_[0]->blocks[1]->params[i];
      names[inside] = state[k];
      for (std::size_t l = 1; l < nest_.size(); ++l) {
        const auto at = std::ranges::find(nest_[l]->operands, inside) - nest_[l]->operands.begin();
        inside = nest_[l]->blocks[1]->params[static_cast<std::size_t>(at)];
        names[inside] = state[k];
      }
      ++k;
    }
    for (const Op* loop : nest_) {
      const Value* const number = counted(loop)->number;
      const Value* const next = loop->blocks[1]->ops.back()->operands[number->index];
      for (const Op* op : loop->blocks[1]->ops) {
        if (op->is(Opcode::yield_) || op->is(Opcode::loop_) || op == next->def) continue;
        if (!is_access(*op)) {
          ir::clone(b, *op, names);
          continue;
        }
        const auto known = names.find(op->operands[0]);
        std::vector<Value*> operands{known != names.end() ? known->second : views_.at(op->operands[0])};
        operands.insert(operands.end(), element_.begin(), element_.end());
        if (is_write(*op)) operands.push_back(ir::renamed(names, op->operands.back()));
        b.loc = op->loc;
        names[op->result()] = b.emit(op->code, operands);
        names[op->result()]->name = op->result()->name;
      }
    }
    LoopValues next;
    for (std::size_t i = 0; i < nest_[0]->operands.size(); ++i) {
      if (i == index) continue;
      Value* v = nest_[0]->blocks[1]->ops.back()->operands[i];
      while (v->def && v->def->is(Opcode::loop_)) v = v->def->blocks[1]->ops.back()->operands[v->index];
      next.push_back(ir::renamed(names, v));
    }
    return next;
  }

  std::vector<Op*> nest_;
  Value* like_;
  std::unordered_map<const Value*, Value*> views_;
  LoopValues sizes_, element_;
};

/// Each iteration of the nest stores one element of the result, at its own indices.
bool stores_own_elements(const Op& outermost, std::size_t state) {
  std::vector<const Value*> indices;
  for (const Op* loop = &outermost; loop && ir::is_parallel(*loop); loop = only_loop(loop->blocks[1])) {
    const auto count = counted(loop);
    if (!count) return false;
    indices.push_back(count->number);
  }
  if (indices.size() < 2 || indices.size() != static_cast<std::size_t>(outermost.results[state]->type.rank()))
    return false;
  const Uses inside(&outermost);
  const auto use = state_use(inside, &outermost, state);
  if (!use || use->whole || use->updates.empty()) return false;
  return std::ranges::all_of(use->accesses(), [&](const Op* op) {
    for (std::size_t d = 0; d < indices.size(); ++d)
      if (op->operands[1 + d] != indices[d]) return false;
    return true;
  });
}

/// Views of a tensor, and views of views.
std::vector<const Op*> views_of(const Value* tensor, const Uses& uses) {
  std::vector<const Op*> views;
  std::vector<const Value*> names{tensor};
  for (std::size_t i = 0; i < names.size(); ++i)
    for (const ir::Use& use : uses.of(names[i]))
      if (use.op->is(Opcode::reshape_) && use.operand == 0) {
        views.push_back(use.op);
        names.push_back(use.op->result());
      }
  return views;
}

/// Reshapes one nest that works on a view of the tensor; true where there was one.
bool reshape_user(Value* tensor, Block* block, const Uses& uses, const EqualNumbers& equal) {
  for (const Op* view : views_of(tensor, uses)) {
    if (view->result()->type.rank() == tensor->type.rank()) continue;
    for (const ir::Use& use : uses.of(view->result())) {
      Op* const nest = const_cast<Op*>(ir::holder_in(block, use.op));
      if (!nest || !nest->is(Opcode::loop_) || !ir::is_parallel(*nest) ||
          !goes_through_elements(perfect_nest(nest), equal))
        continue;
      Reshaping(nest, tensor).run();
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Op*> perfect_nest(Op* loop) {
  std::vector<Op*> all;
  for (; loop; loop = only_loop(loop->blocks[1])) all.push_back(loop);
  return all;
}

void mark_parallel_over_elements(Op* loop) {
  for (Value* p : loop->blocks[1]->params) p->combine = p->type.is_tensor() ? Combine::element : Combine::index;
}

LoopValues build_element_nest(Builder& b, const LoopValues& tensors, std::span<Value* const> sizes, LoopValues& indices,
                              ir::FunctionRef<LoopValues(Builder&, const LoopValues&)> body) {
  if (sizes.empty()) return body(b, tensors);
  const LoopValues after =
      build_for(b, b.integer(0), sizes[0], tensors, [&](Builder& in, Value* index, const LoopValues& now) {
        indices.push_back(index);
        LoopValues next = build_element_nest(in, now, sizes.subspan(1), indices, body);
        indices.pop_back();
        return next;
      });
  mark_parallel_over_elements(after[0]->def);
  return after;
}

bool works_on_elements(const Op* loop) {
  const auto count = counted(loop);
  if (!count || loop->integer != 0) return false;
  const Op* const first = constant(count->first);
  if (!first || first->integer != 0) return false;
  for (std::size_t i = 0; i < loop->operands.size(); ++i)
    if (i != count->index &&
        (ir::combine(*loop, i) != Combine::element || !loop->operands[i]->type.is_tensor()))
      return false;
  bool good = true;
  ir::walk(loop->blocks[1], [&](const Op* op) {
    good &= is_access(*op) || only_computes(*op);
    for (const Value* v : op->results) good &= !v->type.is_tensor() || is_write(*op) || !op->blocks.empty();
  });
  return good;
}

bool independent_iterations(const std::vector<Op*>& nest) {
  for (std::size_t l = 0; l < nest.size(); ++l) {
    const auto count = counted(nest[l]);
    if (!ir::is_parallel(*nest[l]) || !works_on_elements(nest[l])) return false;
    if (!ir::visible_from(count->bound, nest[0]->parent) && !constant(count->bound)) return false;
    if (l > 0 && (!hands_on(*nest[l - 1], *nest[l]) || nest[l]->results.size() != nest[0]->results.size()))
      return false;
  }
  bool good = true;
  for (const Op* op : nest.back()->blocks[1]->ops) good &= !op->is(Opcode::loop_) || !ir::is_parallel(*op);
  return good;
}

bool goes_through_elements(const std::vector<Op*>& nest, const EqualNumbers& equal) {
  std::vector<const Value*> indices;
  std::vector<IndexForm> bounds;
  for (const Op* loop : nest) {
    if (!ir::is_parallel(*loop) || !works_on_elements(loop)) return false;
    const auto count = counted(loop);
    indices.push_back(count->number);
    bounds.push_back(index_form(count->bound));
    if (!ir::visible_from(count->bound, nest[0]->parent) && !constant(count->bound)) return false;
  }
  bool good = true;
  for (std::size_t l = 1; l < nest.size(); ++l) good &= hands_on(*nest[l - 1], *nest[l]);
  ir::walk(nest[0]->blocks[1], [&](const Op* op) {
    if (op->is(Opcode::loop_)) {
      good &= std::ranges::find(nest, op) != nest.end();
      return;
    }
    if (op->is(Opcode::dim_, Opcode::branch_)) good = false;
    if (!is_access(*op)) return;
    good &= op->operands[0]->type.rank() == static_cast<int>(nest.size());
    for (std::size_t d = 0; good && d < nest.size(); ++d)
      good = op->operands[1 + d] == indices[d] && equal(bounds[d], size_form(op->operands[0], d));
  });
  const Uses uses(nest[0]);
  for (std::size_t d = 0; good && d < nest.size(); ++d) {
    const Op* const next = nest[d]->blocks[1]->ops.back()->operands[indices[d]->index]->def;
    for (const ir::Use& use : uses.of(indices[d]))
      good &= is_access(*use.op) ? use.operand > 0 && use.operand <= nest.size()
                                 : use.op == next && uses.count(next->result()) == 1;
  }
  return good;
}

void reshape_nests(ir::Module& module) {
  const bool any = in_direct_style(module, [](ir::Function& f) {
    bool changed = false;
    for (Block* block : host_blocks(f)) {
      EqualNumbers equal;
      for (const Op* op : block->ops) equal.note(*op);
      std::optional<Uses> uses;
      const auto reshaped = [&](Value* made) {
        if (!uses) uses.emplace(block);
        if (!reshape_user(made, block, *uses, equal)) return false;
        uses.reset();
        return true;
      };
      for (std::size_t i = 0; i < block->ops.size(); ++i) {
        const Op* const op = block->ops[i];
        if (!op->is(Opcode::loop_) || !ir::is_parallel(*op)) continue;
        for (Value* made : op->results)
          while (made->type.is_tensor() && stores_own_elements(*op, made->index) && reshaped(made))
            changed = true;
      }
    }
    return changed;
  });
  if (any) simplify(module);
}

}  // namespace lantern::passes
