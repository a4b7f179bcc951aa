// Loops whose iterations do not depend on each other: the backward part of an iteration follows its forward part at
// once.
//
// Where a loop only adds up, or fills elements that belong to its iteration, the adjoint of what it adds to is
// known before it starts, and the order of its iterations does not matter. Its backward part is then one loop that
// computes an iteration again and differentiates it: nothing is kept from iteration to iteration, and what the iteration needs
// stays in registers or in memory that every iteration uses again. Where nothing needs the value of the loop, its
// forward part is dead and each iteration is computed once.
//
// A loop inside a loop that leaves frames does the same where that takes less than frames of its own
// (cheaper_again): then the outer loop's frames keep the tensors that its iterations read.
#include <set>

#include "lantern/compiler/passes/direct/unwinder.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::passes {

namespace {

bool inside(const Region& inner, const Region& outer) {
  for (const Region* at = &inner; at; at = at->parent)
    if (at == &outer) return true;
  return false;
}

}  // namespace

/// The forward part of such an iteration is in the backward part: what it uses from outside has to be available
/// there, whole or in part.
void Unwinder::import_parallel_operands(Region& body, const Parts& parts) {
  std::unordered_map<Value*, Value*> reached;
  std::vector<Op*> constants;
  const std::vector<Op*> ops = body.bwd->ops;
  for (Op* top : ops) {
    std::vector<Op*> all{top};
    for (Block* b : top->blocks) ir::walk(b, [&](Op* op) { all.push_back(op); });
    for (Op* op : all) {
      const auto part = parts.find(op);
      if (part != parts.end()) op->operands[0] = part->second.elements;
      for (Value*& v : op->operands) {
        const auto home = homes_.find(v->block);
        if (home == homes_.end() || home->second->visible() || inside(*home->second, body)) continue;
        const auto [it, added] = reached.try_emplace(v, v);
        if (added) {
          const std::size_t before = body.bwd->ops.size();
          it->second = at(body, v);
          // Constants are made where they are asked for, which is after their use.
          constants.insert(constants.end(), body.bwd->ops.begin() + static_cast<long>(before),
                           body.bwd->ops.end());
          body.bwd->ops.resize(before);
        }
        v = it->second;
      }
      if (part != parts.end() && part->second.first)
        op->operands[1] = ir::Builder::before(op).sub({op->operands[1], part->second.first});
    }
  }
  body.bwd->ops.insert(body.bwd->ops.begin(), constants.begin(), constants.end());
}

/// Whether an iteration may run twice: of an inner derivative it holds nothing or all. What a part of one pushes is
/// popped elsewhere, so it must run once.
bool Unwinder::may_run_twice(const Op* loop) const {
  std::vector<const Block*> todo(loop->blocks.begin(), loop->blocks.end());
  std::unordered_set<const ir::Function*> seen;
  std::set<std::int64_t> pushed, popped;
  while (!todo.empty()) {
    const Block* const block = todo.back();
    todo.pop_back();
    for (const Op* op : block->ops) {
      todo.insert(todo.end(), op->blocks.begin(), op->blocks.end());
      if (op->callee && seen.insert(op->callee).second) todo.push_back(op->callee->body);
      if (is_frame(*op)) continue;
      if (op->is(Opcode::push_)) pushed.insert(op->integer);
      if (op->is(Opcode::pop_)) popped.insert(op->integer);
    }
  }
  return pushed == popped;
}

void Unwinder::backward_parallel(Region& r, Segment& s, const CountedLoop& count) {
  Op* const forward_op = s.forward;
  // Nothing goes back from the iterations of the forward part: what they call leaves no frames.
  for (Block* b : forward_op->blocks)
    ir::walk(b, [&](Op* op) {
      if (op->callee && forward_halves_.contains(op->callee)) op->callee = value_of(op->callee);
    });
  Block* const header = s.continuation->blocks[0];
  const Segment head = scan(header);
  Op* const test = header->ops[head.t];

  constexpr std::size_t none = ~std::size_t{0};
  std::vector<Value*> params, state;
  std::vector<std::size_t> adjoint;  // of each parameter: which of the state
  for (Value* p : header->params) {
    if (p->type.is_ref())
      adjoint.back() = state.size();
    else
      adjoint.push_back(none);
    (p->type.is_ref() ? state : params).push_back(p);
  }

  Value* const first = at(r, forward_op->operands[count.index]);
  Value* const bound = at(r, count.bound);
  std::vector<Value*> initial{first};
  for (Value* c : state) initial.push_back(cell_or_zero(r, c));

  // The iteration's forward part. Names of the header mean this iteration's values inside, the final state afterwards;
  // so do those of the headers around it.
  Region body(Region::Kind::iteration, &r, nullptr);
  std::vector<Value*> incoming;
  Op* const op = open_backward_loop(r, s, body, params[count.index]->name, incoming);
  Block* const block = body.fwd = body.bwd;
  Value* const index = block->params[0];
  body.exit = s.continuation->result();
  homes_[block] = &body;
  std::unordered_map<Value*, Value*> outside;
  const auto rebind = [&](Value* original, Value* now) {
    outside[original] = fwd(original);
    fwd_[original] = now;
  };
  for (const Region* around = &r; around; around = around->parent)
    for (const auto& [original, now] : around->own) rebind(original, now);
  for (std::size_t i = 0; i < params.size(); ++i) {
    Value* now = index;
    ir::Builder b = into(block, test->loc);
    if (i == count.index) {
      // the loop's own index
    } else if (const auto step = step_of(forward_op, i)) {
      // Another integer that counts: its first value and as many steps as the index has made.
      now = stepped(b, at(body, forward_op->operands[i]), *step, b.emit(Opcode::sub_, {index, first}));
    } else if (params[i]->type.is_tensor()) {
      // Only the shape is asked for: if need be, that of its adjoint.
      Value* const start = forward_op->operands[i];
      now = adjoint[i] == none || at_hand(body, start) ? at(body, start) : incoming[adjoint[i]];
    } else {
      now = b.undef(params[i]->type);
    }
    rebind(params[i], now);
  }
  for (std::size_t i = 0; i < head.t; ++i) {
    for (Value* v : header->ops[i]->results) outside[v] = fwd(v);
    clone(header->ops[i], block);
  }
  enter_iteration(body, s);
  note_updates(block);
  import_parallel_operands(body, parts_of(r, forward_op, block));
  body.forward_ops = block->ops.size();

  backward(body, incoming);

  ir::Builder end = into(block, op->loc);
  yield_adjoints(r, s, body, end.emit(Opcode::add_, {index, end.integer(1)}), initial);
  for (const auto& [original, now] : outside) fwd_[original] = now;
  parallel_.insert(op);
  take_adjoints(r, s, body, place_loop(op, r.bwd, initial, [&](ir::Builder& condition, Value* at) {
                  return condition.emit(Opcode::lt_, {at, bound});
                }));
}

}  // namespace lantern::passes
