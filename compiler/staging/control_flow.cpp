// Staging of control flow: branches, loops, functions, variables.
#include "lantern/compiler/staging/control_flow.hpp"

#include <algorithm>
#include <unordered_map>

#include "lantern/compiler/control/shift.hpp"
#include "lantern/compiler/staging/operand_notes.hpp"
#include "lantern/compiler/staging/region.hpp"
#include "lantern/compiler/staging/requirement.hpp"
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

/// What a branch produced: its results, and the variables of enclosing regions that it assigned.
struct Side {
  Datums results;
  std::vector<StorageBase*> assigned;  ///< in the order of meeting
  std::unordered_map<const StorageBase*, Datum> values;

  const Datum& value_of(const StorageBase& v) const {
    const auto own = values.find(&v);
    return own == values.end() ? Region::value(v) : own->second;
  }
};

Datums stage_branch(Staging& s, const Datum& condition, FunctionRef<Datums()> then, FunctionRef<Datums()> otherwise,
                    const Location& loc) {
  Staging::Attempt attempt(s);
  ir::Op* op = s.builder(loc).branch(s.use(condition, loc), {});
  const auto run = [&](ir::Block* block, FunctionRef<Datums()> body) {
    Side side;
    Region region(s, "branch", loc);
    inside(s, block, [&] { side.results = body(); });
    for (const Region::Change& c : region.leave())
      if (!same(c.inside, c.after)) {
        side.assigned.push_back(c.variable);
        side.values.emplace(c.variable, c.after);
      }
    return side;
  };
  const Side sides[] = {run(op->blocks[0], then), run(op->blocks[1], otherwise)};
  if (sides[0].results.size() != sides[1].results.size())
    raise_at(loc, "the branches of IF return products of different size");
  // A part that has no value on either side has none after the branch: the unused member of a struct.
  std::vector<std::size_t> given;
  for (std::size_t i = 0; i < sides[0].results.size(); ++i)
    if (!sides[0].results[i].empty() || !sides[1].results[i].empty()) given.push_back(i);
  std::vector<StorageBase*> assigned = sides[0].assigned;
  for (StorageBase* v : sides[1].assigned)
    if (!sides[0].values.contains(v)) assigned.push_back(v);

  for (int k = 0; k < 2; ++k) {
    inside(s, op->blocks[k], [&] {
      Datums all;
      const auto add = [&](const Datum& own, const Datum& other) {
        all.push_back(own.empty() && !other.empty() ? unset(s, other.type()) : own);
      };
      for (const std::size_t i : given) add(sides[k].results[i], sides[1 - k].results[i]);
      for (const StorageBase* v : assigned) add(sides[k].value_of(*v), sides[1 - k].value_of(*v));
      s.builder(loc).yield(s.use(all, loc));
    });
  }
  const auto &ya = op->blocks[0]->yields(), &yb = op->blocks[1]->yields();
  Datums results;
  for (std::size_t i = 0; i < ya.size(); ++i)
    results.push_back(Datum::node(s.module().add_result(
        op, with_notes(s, {{"the first branch's value", ya[i]}, {"the second branch's value", yb[i]}}, loc,
                       [&] { return join_types(ya[i]->type, yb[i]->type, "branches of IF", loc); }))));
  for (std::size_t i = 0; i < assigned.size(); ++i) Region::assign(*assigned[i], results[given.size() + i]);
  Datums all(sides[0].results.size());
  for (std::size_t i = 0; i < given.size(); ++i) all[given[i]] = results[i];
  attempt.keep();
  return all;
}

/// True where no loop is around: what it does is known then.
bool is_outermost(const ir::Op& loop) {
  for (const ir::Block* b = loop.parent; b->parent; b = b->parent->parent)
    if (b->parent->is(Opcode::loop_)) return false;
  return true;
}

/// A loop whose condition assigns variables: it is computed before the loop and at the end of each iteration, and
/// its answer is state of the loop.
Datums stage_assigning_loop(Staging& s, Datums initial, FunctionRef<Datum(const Datums&)> condition,
                            FunctionRef<Datums(const Datums&)> body, std::int64_t attribute,
                            const Location& loc);

Datums stage_loop(Staging& s, const Datums& initial, FunctionRef<Datum(const Datums&)> condition,
                  FunctionRef<Datums(const Datums&)> body, std::int64_t attribute,
                  const Location& loc) {
  const std::size_t n = initial.size();
  // The types of the state: dimensions that the body changes become symbolic, so the body may run several
  // times, as often as another dimension may become so: a size takes an iteration for each step of a delay line.
  std::vector<ir::Type> types;
  LoopRegion::Types variable_types;
  for (;;) {
    Staging::Attempt attempt(s);
    std::vector<ir::Value*> operands = s.use(initial, loc);
    if (types.empty())
      for (const ir::Value* v : operands) types.push_back(v->type);
    ir::Op* op = s.builder(loc).op(Opcode::loop_, operands);
    op->integer = attribute;
    for (int k = 0; k < 2; ++k) op->blocks.push_back(s.module().new_block(op, s.current()->function));
    for (ir::Block* block : op->blocks)
      for (std::size_t i = 0; i < n; ++i) s.module().add_param(block, types[i], operands[i]->name);
    const auto params = [&](const ir::Block* block) {
      Datums data;
      for (std::size_t i = 0; i < n; ++i) data.push_back(Datum::node(block->params[i]));
      return data;
    };
    LoopRegion region(s, op, variable_types, loc);
    ir::Value* again = nullptr;
    inside(s, op->blocks[0], [&] { again = s.use(condition(params(op->blocks[0])), loc); });
    if (!region.begin_body()) {
      region.leave();
      break;
    }
    bool fits = true;
    inside(s, op->blocks[1], [&] {
      const Datums next = body(params(op->blocks[1]));
      if (next.size() != n) raise_at(loc, "the body of a loop must return the state's components");
      std::vector<ir::Value*> values = s.use(next, loc);
      for (std::size_t i = 0; i < n; ++i) {
        const ir::Type joined = with_notes(
            s, {{"the state before the loop", operands[i]}, {"the state after the body", values[i]}}, loc,
            [&] { return join_types(types[i], values[i]->type, "loop state", loc); });
        fits &= joined == types[i];
        types[i] = joined;
      }
      fits &= region.end_body(values);
      s.builder(loc).yield(std::move(values));
    });
    region.leave();
    if (!fits) continue;
    inside(s, op->blocks[0], [&] { s.builder(loc).yield({again}); });
    const auto variables = region.finish(n);
    Datums results;
    for (std::size_t i = 0; i < op->operands.size(); ++i)
      s.module().add_result(op, op->blocks[1]->params[i]->type, op->operands[i]->name);
    // Now that it is known what the loops do: in the form that is best to differentiate.
    const std::vector<ir::Value*> after =
        s.canonicalise_before_ad && !s.keeps_loops && is_outermost(*op) ? s.canonicalise_before_ad(s.module(), op)
                                                                        : op->results;
    for (ir::Value* v : after) results.push_back(Datum::node(v));
    for (const auto& [variable, i] : variables) Region::assign(*variable, results[i]);
    results.resize(n);
    attempt.keep();
    return results;
  }
  return stage_assigning_loop(s, initial, condition, body, attribute, loc);
}

Datums stage_assigning_loop(Staging& s, Datums initial, FunctionRef<Datum(const Datums&)> condition,
                            FunctionRef<Datums(const Datums&)> body, std::int64_t attribute,
                            const Location& loc) {
  initial.push_back(condition(initial));
  const auto state = [](Datums with_answer) {
    with_answer.pop_back();
    return with_answer;
  };
  return state(stage_loop(
      s, initial, [](const Datums& now) { return now.back(); },
      [&](const Datums& now) {
        Datums next = body(state(now));
        next.push_back(condition(next));
        return next;
      },
      attribute, loc));
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
  return rank_free || ir::fits(type, declared) ? d : narrowed(d, declared, loc);
}

std::int64_t attribute_of(const LoopOptions& options, const Location& loc) {
  if (options.memory < 0 || options.checkpoints < 0)
    raise_at(loc, "expected a positive number of bytes or checkpoints for a loop, got " +
                      std::to_string(std::min(options.memory, options.checkpoints)));
  if (options.memory > 0 && options.checkpoints > 0)
    raise_at(loc, "expected a number of bytes or of checkpoints for a loop, got both");
  return ir::LoopMemory{options.memory, options.checkpoints}.attribute();
}

Datums branch(const Datum& condition, FunctionRef<Datums()> then, FunctionRef<Datums()> otherwise, const Location& loc) {
  const Datum& c = strip(condition);
  if (c.empty()) raise_at(loc, "the condition of IF is an empty Rep");
  if (c.is_literal()) return c.b() ? then() : otherwise();
  Staging* s = context().staging;
  if (!s) raise_at(loc, "a staged condition is used while nothing is being staged");
  return stage_branch(*s, c, then, otherwise, loc);
}

Datums loop(Datums state, FunctionRef<Datum(const Datums&)> condition,
            FunctionRef<Datums(const Datums&)> body, const Location& loc, std::int64_t attribute) {
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

void branch_without_result(const Datum& condition, FunctionRef<void()> then, FunctionRef<void()> otherwise,
                           const Location& loc) {
  const auto without_result = [](FunctionRef<void()> side) {
    return [side] {
      side();
      return Datums();
    };
  };
  branch(condition, without_result(then), without_result(otherwise), loc);
}

void loop_without_state(FunctionRef<Rep<bool>()> condition, FunctionRef<void()> body, const Location& loc,
                        std::int64_t attribute) {
  loop(
      {}, [&](const Datums&) { return condition().datum(); },
      [&](const Datums&) {
        body();
        return Datums();
      },
      loc, attribute);
}

Datums counted_loop(Datums start, const Datum& hi, CountedBody body, const Location& loc, std::int64_t attribute) {
  return loop(
      std::move(start), [&](const Datums& s) { return perform({Opcode::lt_, 0, loc}, {s[0], hi}); },
      [&](const Datums& s) {
        Datums next;
        next.reserve(s.size());
        next.emplace_back();
        body(Rep<std::int64_t>(s[0]), std::span(s).subspan(1), next);
        next[0] = perform({Opcode::add_, 0, loc}, {s[0], literal(std::int64_t{1})});
        return next;
      },
      loc, attribute);
}

void counted_loop_without_state(const Datum& lo, const Datum& hi,
                                FunctionRef<void(const Rep<std::int64_t>&)> body, const Location& loc) {
  counted_loop(
      {lo}, hi, [&](const Rep<std::int64_t>& i, std::span<const Datum>, Datums&) { body(i); }, loc, 0);
}

std::shared_ptr<FunctionDefinition> make_definition(std::string name) {
  auto d = std::make_shared<FunctionDefinition>();
  d->name = std::move(name);
  d->id = fresh_number();
  if (const Staging* s = context().staging) d->home = s->run;
  return d;
}

namespace {

/// Runs the body at once. A recursion has a stack of its own, which is committed as it grows.
Datums run_body(const FunctionDefinition& definition, const Datums& arguments, const Location& loc) {
  if (control::stack_exhausted()) raise_at(loc, ir::too_deep(definition.name));
  if (!control::roomy()) return run_on_large_stack([&] { return definition.body(arguments); });
  return definition.body(arguments);
}

/// Is the innermost run for its lifetime.
class RunScope {
 public:
  RunScope(Staging& s, const FunctionDefinition& definition) : staging_(s), around_(s.run) {
    s.run = std::make_shared<BodyRun>(BodyRun{s.id(), definition.home, 0, false});
  }
  ~RunScope() {
    staging_.run->ended = true;
    staging_.run = around_;
  }
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

 private:
  Staging& staging_;
  std::shared_ptr<BodyRun> around_;
};

/// Whether no code that can change what the function captured has run since that call.
bool unchanged_since(const Staging& s, const FunctionDefinition& definition, std::uint64_t call) {
  if (s.outside.last > call) return false;
  for (const BodyRun* r = definition.home.get(); r; r = r->home.get())
    if (r->graph == s.id() && !r->ended && r->last > call) return false;
  return true;
}

/// The function that the body is for arguments of these types. It is staged for every call, as it is run for
/// every call when evaluated at once, where what it captured may have changed. Where that gives a function that
/// is there, nothing is left of it.
StagedFunction& instance(Staging& s, const FunctionDefinition& definition, const std::vector<ir::Type>& types,
                         const Location& loc) {
  std::string key = std::to_string(definition.id);
  for (const ir::Type& t : types) key += "," + t.str();
  const std::uint64_t now = ++s.calls;
  (s.run ? *s.run : s.outside).last = now;
  if (const auto known = s.instances.find(key); known != s.instances.end() && !known->second.empty()) {
    const auto open = std::ranges::find_if(known->second, [](const StagedFunction* f) { return f->open; });
    if (open != known->second.end()) return **open;
    StagedFunction* const latest = *std::ranges::max_element(known->second, {}, &StagedFunction::checked);
    if (definition.captures_nothing || unchanged_since(s, definition, latest->checked)) return *latest;
  }
  Staging::Attempt attempt(s);
  StagedFunction* own = nullptr;
  const std::vector<ir::Type>* results = definition.results_known ? &definition.results : nullptr;
  {
    const RunScope run(s, definition);
    s.stage(definition.name, types, results, definition.body, loc, [&](StagedFunction* f) {
      own = f;
      if (f) s.instances[key].push_back(f);  // recursive calls find it
    });
  }
  own->checked = now;
  for (StagedFunction* f : s.instances[key])
    if (f != own && same_function(s, *own, *f)) {
      f->checked = now;
      return *f;
    }
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

}  // namespace lantern::core::detail
