// The graph, written again.
#include "lantern/ir/clone.hpp"

namespace lantern::ir {

namespace {

const char* interned(Module& module, const char* text) { return text ? module.intern(text) : nullptr; }

}  // namespace

Renaming pairs(const std::vector<Value*>& from, const std::vector<Value*>& to) {
  Renaming names;
  for (std::size_t i = 0; i < from.size(); ++i) names[from[i]] = to[i];
  return names;
}

void rename(Block* below, const Renaming& names) {
  walk(below, [&](Op* op) {
    for (Value*& v : op->operands) v = renamed(names, v);
  });
}

void take_attributes(Op& copy, const Op& from) {
  copy.number = from.number;
  copy.integer = from.integer;
  copy.callee = from.callee;
  copy.text = from.text;
  copy.in_place = from.in_place;
  copy.loc = from.loc;
}

Op* clone_over(Builder& b, const Op& op, std::vector<Value*> operands, Renaming& names) {
  Op* const made = b.op(op.code, std::move(operands));
  take_attributes(*made, op);
  for (const Value* r : op.results) names[r] = b.module().add_result(made, r->type, r->name);
  return made;
}

Value* clone_value(Builder& b, Value* v, FunctionRef<bool(const Value*)> inside, Renaming& names) {
  if (const auto known = names.find(v); known != names.end()) return known->second;
  if (!inside(v)) return v;
  std::vector<Value*> operands;
  for (Value* x : v->def->operands) operands.push_back(clone_value(b, x, inside, names));
  clone_over(b, *v->def, std::move(operands), names);
  return names.at(v);
}

Op* clone(Builder& b, const Op& op, Renaming& names, const std::unordered_set<const Op*>& left_out) {
  // What a block uses is before it, or around it: so the blocks may wait, and nests may be deep.
  std::vector<std::pair<const Block*, Block*>> waiting;
  const auto add = [&](Builder& to, const Op& from) {
    std::vector<Value*> operands;
    operands.reserve(from.operands.size());
    for (Value* v : from.operands) operands.push_back(renamed(names, v));
    Op* const made = clone_over(to, from, std::move(operands), names);
    for (const Block* block : from.blocks) {
      Block* const copy = made->blocks.emplace_back(to.module().new_block(made, to.block()->function));
      for (const Value* p : block->params) {
        Value* const param = to.module().add_param(copy, p->type, p->name);
        param->combine = p->combine;
        names[p] = param;
      }
      waiting.emplace_back(block, copy);
    }
    return made;
  };
  Op* const made = add(b, op);
  while (!waiting.empty()) {
    const auto [from, to] = waiting.back();
    waiting.pop_back();
    Builder in(b.module(), to);
    for (const Op* inner : from->ops)
      if (left_out.contains(inner))
        names[inner->result()] = renamed(names, inner->operands[0]);
      else
        add(in, *inner);
  }
  return made;
}

std::vector<Value*> clone(Builder& b, const Block& from, Renaming& names,
                          const std::unordered_set<const Op*>& left_out) {
  for (const Op* op : from.ops) {
    if (op->is(Opcode::yield_)) {
      std::vector<Value*> values;
      for (Value* v : op->operands) values.push_back(renamed(names, v));
      return values;
    }
    if (left_out.contains(op))
      names[op->result()] = renamed(names, op->operands[0]);
    else
      clone(b, *op, names, left_out);
  }
  return {};
}

std::unique_ptr<Module> clone(const Module& module) {
  auto copy = std::make_unique<Module>();
  copy->reserve_tapes(module.tapes());
  std::unordered_map<const Function*, Function*> functions;
  for (const Function* f : module.functions()) {
    Function* const made = copy->add_function(f->name, f->parameter_types(), f->result_types);
    made->loc = f->loc;
    made->loc.file = interned(*copy, f->loc.file);
    made->cps = f->cps;
    functions[f] = made;
  }
  if (module.entry) copy->entry = functions.at(module.entry);
  for (const Function* f : module.functions()) {
    Block* const body = functions.at(f)->body;
    Renaming names;
    for (std::size_t i = 0; i < body->params.size(); ++i) {
      body->params[i]->name = interned(*copy, f->body->params[i]->name);
      names[f->body->params[i]] = body->params[i];
    }
    Builder b(*copy, body);
    for (const Op* op : f->body->ops) clone(b, *op, names);
    // Texts belong to their module, and calls to its functions.
    walk(body, [&](Op* op) {
      op->loc.file = interned(*copy, op->loc.file);
      if (op->callee) op->callee = functions.at(op->callee);
      op->text = interned(*copy, op->text);
      for (Value* r : op->results) r->name = interned(*copy, r->name);
      for (const Block* block : op->blocks)
        for (Value* p : block->params) p->name = interned(*copy, p->name);
    });
  }
  return copy;
}

}  // namespace lantern::ir
