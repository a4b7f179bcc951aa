// The forward half of unwind: chains of segments become direct-style code.
#include "lantern/compiler/passes/direct/unwind.hpp"

#include <algorithm>

#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/direct/flow.hpp"
#include "lantern/compiler/passes/direct/unwinder.hpp"
#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/clone.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::passes {

namespace {

bool is_continuation_call(const Op* op) { return op->code == Opcode::call_ && op->callee->cps; }
bool is_end(const Op* op);
bool is_statement_branch(const Op* op) {
  // A branch without results whose sides run the rest of the program.
  if (op->code != Opcode::branch_ || !op->results.empty()) return false;
  for (const Op* o : op->blocks[0]->ops)
    if (is_end(o)) return true;
  return false;
}

/// T: the operation that runs the rest of the program.
bool is_end(const Op* op) {
  return op->code == Opcode::jump_ || op->code == Opcode::halt_ || is_continuation_call(op) || is_statement_branch(op);
}

}  // namespace

bool in_cps(const ir::Function& f) {
  if (f.cps) return true;
  bool found = false;
  ir::walk(f.body, [&](const Op* op) {
    found |= op->code == Opcode::halt_ || op->code == Opcode::jump_;
    return !found;
  });
  return found;
}

void unwind(ir::Function& unit, bool last) {
  if (unit.cps || !in_cps(unit)) return;
  // A value that the program computes twice is saved once, and an index that it computes twice is one.
  cse(unit);
  Unwinder(unit, last, guard_zeros(unit, !last)).run();
}

void unwind(ir::Module& module) {
  const std::vector<ir::Function*> all = module.functions();
  for (ir::Function* f : all)
    if (std::find(module.functions().begin(), module.functions().end(), f) != module.functions().end()) unwind(*f, true);
}

void Unwinder::run() {
  Block* const original = unit_.body;
  Block* body = module_.new_block(nullptr, &unit_);
  body->params = original->params;
  for (Value* p : body->params) {
    p->block = body;
    fwd_[p] = p;
  }
  Region r(Region::Kind::unit, nullptr, body);
  homes_[body] = &r;
  forward(r, original);
  note_updates(body);
  r.bwd = body;
  Op* const end = module_.new_op(Opcode::halt_, body);  // of the forward part, which may still grow
  body->ops.push_back(end);
  backward(r, {});
  const auto at_end = body->ops.erase(std::find(body->ops.begin(), body->ops.end(), end));
  mark_backward(body, static_cast<std::size_t>(at_end - body->ops.begin()));
  unit_.body = body;
  fill_values();
  for (const auto& [f, h] : halves_) module_.remove_function(const_cast<ir::Function*>(f));
}

Value* Unwinder::fwd(Value* original) const {
  Value* const* known = fwd_.find(original);
  if (!known) throw InternalError("unwind: a value of the backward part is used in the forward part");
  return *known;
}

/// Forward values of the non-cell entries from position `from`.
std::vector<Value*> Unwinder::primals(const std::vector<Value*>& list, std::size_t from) const {
  std::vector<Value*> out;
  for (std::size_t i = from; i < list.size(); ++i)
    if (!list[i]->type.is_ref()) out.push_back(fwd(list[i]));
  return out;
}

/// Gives a continuation's parameters their forward values; its cells belong to the region.
void Unwinder::bind(Region& r, const std::vector<Value*>& params, const std::vector<Value*>& values) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (!params[i]->type.is_ref()) {
      fwd_[params[i]] = values[at++];
    } else {
      r.declared.insert(params[i]);
      likes_[params[i]] = primal_of(params, i);
    }
  }
}

/// Copies a pure operation or direct-style construct.
void Unwinder::clone(Op* op, Block* into_block) {
  Op* copy = module_.new_op(op->code, into_block);
  for (Value* v : op->operands) copy->operands.push_back(fwd(v));
  take_attributes(*copy, *op);
  for (Value* r : op->results) fwd_[r] = module_.add_result(copy, r->type, r->name);
  for (Block* b : op->blocks) {
    Block* nested = module_.new_block(copy, into_block->function);
    for (Value* p : b->params) fwd_[p] = module_.add_param(nested, p->type, p->name);
    for (Op* o : b->ops) clone(o, nested);
    copy->blocks.push_back(nested);
  }
  into_block->ops.push_back(copy);
}

/// Where A ends, what T is and where P starts.
Segment Unwinder::scan(Block* block) const {
  const auto t = std::find_if(block->ops.begin(), block->ops.end(), is_end);
  if (t == block->ops.end()) throw InternalError("unwind: a path that calls no continuation");
  Segment s;
  s.block = block;
  s.t = static_cast<std::size_t>(t - block->ops.begin());
  switch ((*t)->code) {
    case Opcode::jump_: s.kind = Segment::Kind::exit; break;
    case Opcode::call_: s.kind = Segment::Kind::call; break;
    case Opcode::branch_: s.kind = Segment::Kind::branch; break;
    default: s.kind = Segment::Kind::halt;
  }
  return s;
}

/// The continuation that a chain of blocks leaves by: the first one not defined along the way.
Value* Unwinder::exit_of(Block* start) {
  const auto memo = exits_.find(start);
  if (memo != exits_.end()) return memo->second;
  std::unordered_set<const Value*> local;
  Block* block = start;
  Value* exit = nullptr;
  while (block) {
    for (const Op* op : block->ops)
      if (op->code == Opcode::fun_) local.insert(op->result());
    const Segment s = scan(block);
    const Op* t = block->ops[s.t];
    switch (s.kind) {
      case Segment::Kind::exit: exit = t->operands[0]; break;
      case Segment::Kind::call: exit = t->operands.back(); break;
      case Segment::Kind::branch: {
        // One side may never come back (an endless loop); the other then decides.
        exit = exit_of(t->blocks[0]);
        break;
      }
      default: return exits_[start] = nullptr;
    }
    if (!local.contains(exit)) break;
    // A loop is left by the else-side of its header; any other continuation by its body.
    Block* next = exit->def->blocks[0];
    if (s.kind == Segment::Kind::exit) {
      const Segment header = scan(next);
      if (header.kind == Segment::Kind::branch) {
        Block* const body = next->ops[header.t]->blocks[0];
        if (exit_of(body) == exit) next = next->ops[header.t]->blocks[1];
      }
    }
    block = next;
  }
  return exits_[start] = exit;
}

void Unwinder::forward_ops(Region& r, const Segment& s) {
  for (std::size_t i = 0; i < s.t; ++i) {
    Op* op = s.block->ops[i];
    switch (op->code) {
      case Opcode::fun_: break;
      case Opcode::slot_: break;
      case Opcode::ref_new_:
        likes_[op->result()] = op->operands[0];
        r.declared.insert(op->result());
        break;
      case Opcode::ref_set_: value_cells_[op->operands[0]] = fwd(op->operands[1]); break;
      default: clone(op, r.fwd);
    }
  }
}

// F of a chain, segment by segment, until it leaves the region.
void Unwinder::forward(Region& r, Block* start) {
  for (Block* block = start; block;) {
    r.chain.push_back(scan(block));
    Segment& s = r.chain.back();
    forward_ops(r, s);
    Op* t = block->ops[s.t];
    switch (s.kind) {
      case Segment::Kind::halt: return;
      case Segment::Kind::exit: {
        Value* target = t->operands[0];
        if (target == r.exit) {
          end_forward(r, primals(t->operands, 1));
          return;
        }
        Op* fun = target->def;
        if (!fun) throw InternalError("unwind: a jump leaves by a continuation that is not the region's");
        Block* body = fun->blocks[0];
        const Segment header = scan(body);
        const bool is_loop =
            header.kind == Segment::Kind::branch && exit_of(body->ops[header.t]->blocks[0]) == target;
        if (is_loop) {
          block = forward_loop(r, s, fun, primals(t->operands, 1));
        } else {
          s.kind = Segment::Kind::inlined;
          s.continuation = fun;
          bind(r, body->params, primals(t->operands, 1));
          block = body;
        }
        break;
      }
      case Segment::Kind::branch: block = forward_branch(r, s); break;
      default: block = forward_call(r, s); break;
    }
  }
}

/// Ends a region's forward part: the values go to its exit.
void Unwinder::end_forward(Region& r, const std::vector<Value*>& values) {
  if (r.kind == Region::Kind::iteration) return;
  if (r.kind == Region::Kind::body) {
    // The trip count is the last of the state.
    std::vector<Value*> next = values;
    ir::Builder b = into(r.fwd, {});
    next.push_back(b.add({r.fwd->params.back(), b.integer(1)}));
    b.yield(std::move(next));
    return;
  }
  into(r.fwd, {}).yield(values);
}

Block* Unwinder::forward_branch(Region& r, Segment& s) {
  Op* t = s.block->ops[s.t];
  Value* exit = exit_of(t->blocks[0]);
  if (!exit || exit_of(t->blocks[1]) != exit)
    throw InternalError("unwind: the sides of a branch leave by different continuations");
  const std::vector<ir::Type>& all = exit->type.parts();
  std::vector<ir::Type> types;
  for (const ir::Type& type : all)
    if (!type.is_ref()) types.push_back(type);
  s.forward = into(r.fwd, t->loc).branch(fwd(t->operands[0]), types);
  for (std::size_t i = 0; i < 2; ++i) {
    Block* side = s.forward->blocks[i];
    s.sides[i] = std::make_unique<Region>(Region::Kind::side, &r, side);
    Region& region = *s.sides[i];
    region.exit = exit;
    region.construct = s.forward;
    region.side = i;
    homes_[side] = &region;
    forward(region, t->blocks[i]);
  }
  if (exit == r.exit) {
    s.join_is_exit = true;
    end_forward(r, s.forward->results);
    return nullptr;
  }
  s.continuation = exit->def;
  Block* join = exit->def->blocks[0];
  bind(r, join->params, s.forward->results);
  for (std::size_t i = 0; i < s.forward->results.size(); ++i)
    s.forward->results[i]->name = without_cells(join->params)[i]->name;
  return join;
}

Block* Unwinder::forward_loop(Region& r, Segment& s, Op* loop, std::vector<Value*> initial) {
  Block* header = loop->blocks[0];
  const Segment head = scan(header);
  Op* test = header->ops[head.t];
  s.kind = Segment::Kind::loop;
  s.continuation = loop;

  const std::vector<Value*> params = without_cells(header->params);
  initial.push_back(into(r.fwd, test->loc).integer(0));
  std::vector<ir::Type> types = ir::types_of(params);
  types.push_back(ir::I64);
  Op* op = into(r.fwd, test->loc).op(Opcode::loop_, initial, types);
  s.forward = op;
  const auto add_block = [&] {
    Block* b = module_.new_block(op, r.fwd->function);
    for (std::size_t i = 0; i < types.size(); ++i)
      module_.add_param(b, types[i], i < params.size() ? params[i]->name : nullptr);
    op->blocks.push_back(b);
    return b;
  };
  // The header's operations run in the condition; whoever else needs them computes them again.
  const auto header_ops = [&](Block* into_block, const std::vector<Value*>& values) {
    for (std::size_t i = 0; i < params.size(); ++i) fwd_[params[i]] = values[i];
    for (std::size_t i = 0; i < head.t; ++i) {
      if (header->ops[i]->code == Opcode::fun_ || header->ops[i]->code == Opcode::ref_new_)
        throw InternalError("unwind: a loop header makes cells or continuations");
      clone(header->ops[i], into_block);
    }
  };
  Block* condition = add_block();
  header_ops(condition, condition->params);
  into(condition, test->loc).yield({fwd(test->operands[0])});

  Block* body = add_block();
  s.sides[0] = std::make_unique<Region>(Region::Kind::body, &r, body);
  Region& region = *s.sides[0];
  region.exit = loop->result();
  region.construct = op;
  homes_[body] = &region;
  header_ops(body, body->params);
  enter_iteration(region, s);

  // After the loop the header's parameters are the final state.
  for (std::size_t i = 0; i < params.size(); ++i) op->results[i]->name = params[i]->name;
  header_ops(r.fwd, op->results);
  bind(r, header->params, op->results);
  return test->blocks[1];
}

/// The forward part of an iteration of a loop, in which the names of its header mean the iteration's values.
void Unwinder::enter_iteration(Region& body, const Segment& loop) {
  Block* const header = loop.continuation->blocks[0];
  const Segment head = scan(header);
  for (Value* p : without_cells(header->params)) body.own[p] = fwd_[p];
  for (std::size_t i = 0; i < head.t; ++i)
    for (Value* v : header->ops[i]->results) body.own[v] = fwd_[v];
  for (std::size_t i = 0; i < header->params.size(); ++i)
    if (header->params[i]->type.is_ref()) {
      body.declared.insert(header->params[i]);
      likes_[header->params[i]] = primal_of(header->params, i);
    }
  forward(body, header->ops[head.t]->blocks[0]);
}

Block* Unwinder::forward_call(Region& r, Segment& s) {
  Op* t = s.block->ops[s.t];
  ForwardBackward& h = halves(t->callee);
  std::vector<Value*> args;
  for (std::size_t i = 0; i + 1 < t->operands.size(); ++i)
    if (!t->operands[i]->type.is_ref()) args.push_back(fwd(t->operands[i]));
  s.forward = into(r.fwd, t->loc).call(ir::is_checkpointed(*t) ? value_of(h.fwd) : h.fwd, std::move(args));
  Value* kont = t->operands.back();
  if (kont == r.exit) {
    s.join_is_exit = true;
    end_forward(r, s.forward->results);
    return nullptr;
  }
  s.continuation = kont->def;
  bind(r, kont->def->blocks[0]->params, s.forward->results);
  return kont->def->blocks[0];
}

ForwardBackward& Unwinder::halves(ir::Function* f) {
  auto& slot = halves_[f];
  if (slot) return *slot;
  slot = std::make_unique<ForwardBackward>();
  ForwardBackward& h = *slot;
  cse(*f);
  std::vector<Value*> params = f->body->params;
  Value* const kont = params.back();
  params.pop_back();

  // A parameter that every recursive call passes on unchanged is available for the backward half.
  std::vector<bool> unchanged(params.size(), true);
  bool others = false;
  ir::walk(f->body, [&](const Op* op) {
    if (!is_continuation_call(op)) return;
    others |= op->callee != f;
    if (op->callee != f) return;
    for (std::size_t i = 0; i < params.size(); ++i) unchanged[i] = unchanged[i] && op->operands[i] == params[i];
  });
  for (std::size_t i = 0; i < params.size(); ++i)
    if (!params[i]->type.is_ref() && unchanged[i] && !others) h.shared.push_back(i);

  std::vector<ir::Type> values = ir::types_of(without_cells(params)), results, adjoints, bwd_params, cells;
  for (const ir::Type& t : kont->type.parts()) {
    if (t.is_ref()) adjoints.push_back(t.content());
    else results.push_back(t);
  }
  for (const Value* p : params)
    if (p->type.is_ref()) cells.push_back(p->type.content());
  for (std::size_t i : h.shared) bwd_params.push_back(params[i]->type);
  bwd_params.insert(bwd_params.end(), adjoints.begin(), adjoints.end());
  bwd_params.insert(bwd_params.end(), cells.begin(), cells.end());
  const std::string base = f->name.ends_with("_rev") ? f->name.substr(0, f->name.size() - 4) : f->name;
  h.fwd = module_.add_function(base + "_fwd", values, results);
  h.bwd = module_.add_function(base + "_bwd", bwd_params, cells);
  h.fwd->loc = h.bwd->loc = f->loc;
  forward_halves_.insert(h.fwd);

  Region r(Region::Kind::function, nullptr, h.fwd->body);
  homes_[h.fwd->body] = &r;
  r.exit = kont;
  std::size_t at = 0;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (params[i]->type.is_ref()) {
      r.declared.insert(params[i]);
      likes_[params[i]] = primal_of(params, i);
    } else {
      Value* p = h.fwd->body->params[at++];
      p->name = params[i]->name;
      fwd_[params[i]] = p;
    }
  }
  forward(r, f->body);
  note_updates(h.fwd->body);

  r.bwd = h.bwd->body;
  at = 0;
  for (std::size_t i : h.shared) {
    h.bwd->body->params[at]->name = params[i]->name;
    r.saved[fwd_[params[i]]] = h.bwd->body->params[at++];
  }
  std::vector<Value*> incoming;
  for (std::size_t i = 0; i < adjoints.size(); ++i) {
    h.bwd->body->params[at]->name = "d_result";
    incoming.push_back(h.bwd->body->params[at++]);
  }
  for (Value* p : params)
    if (p->type.is_ref()) {
      h.bwd->body->params[at]->name = adjoint_name(p);
      r.cells[p] = h.bwd->body->params[at++];
    }
  backward(r, incoming);
  std::vector<Value*> out;
  for (Value* p : params)
    if (p->type.is_ref()) out.push_back(cell_or_zero(r, p));
  into(r.bwd, f->loc).yield(std::move(out));
  mark_backward(r.bwd, 0);
  return h;
}

}  // namespace lantern::passes
