// Staging of control flow: branches, loops, functions, variables.
#include "lantern/compiler/staging/control_flow.hpp"

#include <algorithm>

#include "lantern/compiler/control/shift.hpp"
#include "lantern/compiler/staging/operand_notes.hpp"
#include "lantern/compiler/staging/own_elements.hpp"
#include "lantern/compiler/staging/same_function.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/recursion.hpp"

namespace lantern::core::detail {

namespace {

/// Runs `f` with the insertion point in `block`, and puts it back.
template <class F>
void inside(Staging& s, ir::Block* block, F&& f) {
  ir::Block* const saved = s.block();
  s.set_block(block);
  try {
    f();
  } catch (...) {
    s.set_block(saved);
    throw;
  }
  s.set_block(saved);
}

Datums variables() {
  Datums values;
  for (const VarCell* v : context().vars) values.push_back(v->value);
  return values;
}

void assign_variables(std::span<const Datum> values) {
  for (std::size_t i = 0; i < values.size(); ++i) context().vars[i]->value = values[i];
}

bool same(const Datum& a, const Datum& b) {
  if (a.state() != b.state()) return false;
  if (a.is_node()) return a.node() == b.node();
  return a.is_literal() && a.type() == b.type() && a.i() == b.i();
}

/// What a branch produced: its results, then the value of every variable.
struct Branch {
  Datums results;
  Datums vars;
};

Datums stage_branch(Staging& s, const Datum& condition, const Thunk& then, const Thunk& otherwise,
                  const Location& loc) {
  Staging::Attempt attempt(s);
  ir::Op* op = s.builder(loc).branch(s.use(condition, loc), {});
  const Datums before = variables();
  const auto run = [&](ir::Block* block, const Thunk& body) {
    Branch b;
    inside(s, block, [&] { b.results = body(); });
    b.vars = variables();
    assign_variables(before);
    return b;
  };
  const Branch a = run(op->blocks[0], then), b = run(op->blocks[1], otherwise);
  std::vector<std::size_t> assigned;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (!same(a.vars[i], before[i]) || !same(b.vars[i], before[i])) assigned.push_back(i);

  const auto yield = [&](ir::Block* block, const Branch& branch) {
    Datums all = branch.results;
    for (std::size_t i : assigned) all.push_back(branch.vars[i]);
    inside(s, block, [&] { s.builder(loc).yield(s.use(all, loc)); });
  };
  if (a.results.size() != b.results.size())
    raise_at(loc, "the branches of IF return products of different size");
  yield(op->blocks[0], a);
  yield(op->blocks[1], b);
  const auto &ya = op->blocks[0]->yields(), &yb = op->blocks[1]->yields();
  Datums results;
  for (std::size_t i = 0; i < ya.size(); ++i)
    results.push_back(Datum::node(s.module().add_result(
        op, with_notes(s, {{"the first branch's value", ya[i]}, {"the second branch's value", yb[i]}}, loc,
                       [&] { return join_types(ya[i]->type, yb[i]->type, "branches of IF", loc); }))));
  for (std::size_t i = 0; i < assigned.size(); ++i)
    context().vars[assigned[i]]->value = results[a.results.size() + i];
  results.resize(a.results.size());
  attempt.keep();
  return results;
}

/// Takes out loop state from position `keep` on that every iteration passes on unchanged; says what is left.
std::vector<std::size_t> drop_invariants(ir::Op* op, std::size_t keep) {
  std::vector<std::size_t> left;
  const auto replace = [&](ir::Value* from, ir::Value* to) {
    for (ir::Block* b : op->blocks)
      ir::walk(b, [&](ir::Op* o) { std::replace(o->operands.begin(), o->operands.end(), from, to); });
  };
  for (std::size_t i = op->operands.size(); i-- > keep;) {
    ir::Block *cond = op->blocks[0], *body = op->blocks[1];
    if (body->yields()[i] != body->params[i]) {
      left.insert(left.begin(), i);
      continue;
    }
    replace(cond->params[i], op->operands[i]);
    replace(body->params[i], op->operands[i]);
    const auto at = static_cast<long>(i);
    for (ir::Block* b : op->blocks) {
      b->params.erase(b->params.begin() + at);
      for (std::size_t k = i; k < b->params.size(); ++k) b->params[k]->index = static_cast<std::uint32_t>(k);
    }
    body->yields().erase(body->yields().begin() + at);
    op->operands.erase(op->operands.begin() + at);
  }
  return left;
}

Datums stage_loop(Staging& s, const Datums& initial, const std::function<Datum(const Datums&)>& condition,
                const std::function<Datums(const Datums&)>& body, std::int64_t attribute, const Location& loc) {
  const std::size_t n = initial.size();
  const Datums before = variables();
  Datums all = initial;
  all.insert(all.end(), before.begin(), before.end());
  std::vector<ir::Value*> operands = s.use(all, loc);

  // The types of the state: dimensions that the body changes become symbolic, so the body may run several
  // times, as often as another dimension may become so: a size takes a trip for each step of a delay line.
  std::vector<ir::Type> types;
  for (const ir::Value* v : operands) types.push_back(v->type);
  for (;;) {
    Staging::Attempt attempt(s);
    ir::Op* op = s.builder(loc).op(Opcode::loop_, operands);
    op->integer = attribute;
    for (int k = 0; k < 2; ++k) op->blocks.push_back(s.module().new_block(op, s.current()->function));
    const auto enter = [&](ir::Block* block) {
      Datums params;
      for (std::size_t i = 0; i < types.size(); ++i)
        params.push_back(Datum::node(s.module().add_param(block, types[i], operands[i]->name)));
      assign_variables(std::span(params).subspan(n));
      params.resize(n);
      return params;
    };
    inside(s, op->blocks[0], [&] {
      const Datums params = enter(op->blocks[0]);
      const Datums vars = variables();
      const Datum c = condition(params);
      for (std::size_t i = 0; i < vars.size(); ++i)
        if (!same(vars[i], context().vars[i]->value)) raise_at(loc, "a condition must not assign variables");
      s.builder(loc).yield({s.use(c, loc)});
    });
    bool again = false;
    inside(s, op->blocks[1], [&] {
      Datums next = body(enter(op->blocks[1]));
      if (next.size() != n) raise_at(loc, "the body of a loop must return the state's components");
      const Datums vars = variables();
      next.insert(next.end(), vars.begin(), vars.end());
      std::vector<ir::Value*> values = s.use(next, loc);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const ir::Type joined = with_notes(
            s, {{"the state before the loop", operands[i]}, {"the state after the body", values[i]}}, loc,
            [&] { return join_types(types[i], values[i]->type, "loop state", loc); });
        again |= !(joined == types[i]);
        types[i] = joined;
      }
      s.builder(loc).yield(std::move(values));
    });
    assign_variables(before);
    if (again) continue;
    const std::vector<std::size_t> assigned = drop_invariants(op, n);
    read_own_elements(op);
    Datums results;
    for (std::size_t i = 0; i < op->operands.size(); ++i)
      results.push_back(
          Datum::node(s.module().add_result(op, op->blocks[1]->params[i]->type, op->operands[i]->name)));
    for (std::size_t k = 0; k < assigned.size(); ++k) context().vars[assigned[k] - n]->value = results[n + k];
    results.resize(n);
    attempt.keep();
    return results;
  }
}

}  // namespace

Datum shaped(Datum d, const ir::Type& declared, bool rank_free, const Location& loc) {
  if (d.empty()) return d;
  const ir::Type& type = d.type();
  if (!type.is_tensor() || type.element() != declared.element())
    raise_at(loc, "expected a tensor of " + std::string(ir::kind_name(declared.element())) + ", got " +
                      type.str());
  if (!rank_free && !ir::compatible(type, declared))
    raise_at(loc, "expected a tensor of shape " + declared.str() + ", got " + type.str());
  return d;
}

std::int64_t attribute_of(const LoopOptions& options, const Location& loc) {
  if (options.memory < 0 || options.checkpoints < 0)
    raise_at(loc, "expected a positive number of bytes or checkpoints for a loop, got " +
                      std::to_string(std::min(options.memory, options.checkpoints)));
  if (options.memory > 0 && options.checkpoints > 0)
    raise_at(loc, "expected a number of bytes or of checkpoints for a loop, got both");
  return ir::LoopMemory{options.memory, options.checkpoints}.attribute();
}

Datums branch(const Datum& condition, const Thunk& then, const Thunk& otherwise, const Location& loc) {
  const Datum& c = strip(condition);
  if (c.empty()) raise_at(loc, "the condition of IF is an empty Rep");
  if (c.is_literal()) return c.b() ? then() : otherwise();
  Staging* s = context().staging;
  if (!s) raise_at(loc, "a staged condition is used while nothing is being staged");
  return stage_branch(*s, c, then, otherwise, loc);
}

Datums loop(Datums state, const std::function<Datum(const Datums&)>& condition,
          const std::function<Datums(const Datums&)>& body, const Location& loc, std::int64_t attribute) {
  if (Staging* s = context().staging) return stage_loop(*s, state, condition, body, attribute, loc);
  const Evaluation evaluation;
  while (strip(condition(state)).b()) {
    Datums next = body(state);
    if (next.size() != state.size()) raise_at(loc, "the body of a loop must return the state's components");
    for (std::size_t i = 0; i < next.size(); ++i)
      join_types(state[i].type(), next[i].type(), "loop state", loc);
    state = std::move(next);
  }
  return state;
}

std::shared_ptr<FunctionDefinition> make_definition(std::string name) {
  auto d = std::make_shared<FunctionDefinition>();
  d->name = std::move(name);
  d->id = fresh_number();
  return d;
}

namespace {

/// Runs the body at once. A recursion has a stack of its own, which is committed as it grows.
Datums run_body(const FunctionDefinition& definition, const Datums& arguments, const Location& loc) {
  if (control::stack_exhausted()) raise_at(loc, ir::too_deep(definition.name));
  if (!control::roomy()) return run_on_large_stack([&] { return definition.body(arguments); });
  return definition.body(arguments);
}

/// The function that the body is for arguments of these types. It is staged for every call from outside, as
/// it is run for every call when evaluated at once: what it captured may have changed. Where that gives a
/// function that is there, nothing is left of it.
StagedFunction& instance(Staging& s, const FunctionDefinition& definition, const std::vector<ir::Type>& types,
                         const Location& loc) {
  std::string key = std::to_string(definition.id);
  for (const ir::Type& t : types) key += "," + t.str();
  if (const auto known = s.instances.find(key); known != s.instances.end() && !known->second.empty()) {
    const auto open = std::ranges::find_if(known->second, [](const StagedFunction* f) { return f->open; });
    if (open != known->second.end()) return **open;
    if (definition.captures_nothing) return *known->second.back();
  }
  Staging::Attempt attempt(s);
  StagedFunction* own = nullptr;
  const std::vector<ir::Type>* results = definition.results_known ? &definition.results : nullptr;
  s.stage(definition.name, types, results, definition.body, loc, [&](StagedFunction* f) {
    own = f;
    if (f) s.instances[key].push_back(f);  // recursive calls find it
  });
  for (StagedFunction* f : s.instances[key])
    if (f != own && same_function(s, *own, *f)) return *f;
  attempt.keep();
  return *own;
}

}  // namespace

Datums call(const std::shared_ptr<FunctionDefinition>& definition, Datums arguments, const Location& loc) {
  if (!definition || !definition->body)
    raise_at(loc, "the function '" + (definition ? definition->name : "?") +
                      "' has no definition: call define() first");
  Staging* s = context().staging;
  if (!s) return run_body(*definition, arguments, loc);
  std::vector<ir::Type> types;
  Datums nodes;
  for (ir::Value* v : s->use(arguments, loc)) {
    types.push_back(v->type);
    nodes.push_back(Datum::node(v));
  }
  return s->call(instance(*s, *definition, types, loc), nodes, loc);
}

void register_var(VarCell& cell) {
  Context& c = context();
  if (c.staging && c.staging->current()) cell.function = c.staging->current();
  c.vars.push_back(&cell);
}

void unregister_var(VarCell& cell) { std::erase(context().vars, &cell); }

namespace {
void check_var(const VarCell& cell, const Location& loc) {
  const Staging* s = context().staging;
  const void* now = s ? const_cast<Staging*>(s)->current() : nullptr;
  if (now != cell.function)
    raise_at(loc,
             "a Var is used in a function other than the one it was made in; pass its value as an argument");
}
}  // namespace

const Datum& read_var(const VarCell& cell, const Location& loc) {
  check_var(cell, loc);
  return cell.value;
}

void write_var(VarCell& cell, const Datum& value, const Location& loc) {
  check_var(cell, loc);
  join_types(cell.value.type(), value.type(), "assignment to a Var", loc);
  cell.value = value;
}

}  // namespace lantern::core::detail
