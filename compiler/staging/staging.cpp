// Building functions: insertion points, captures, calls.
#include "lantern/compiler/staging/staging.hpp"

#include <algorithm>
#include <atomic>
#include <unordered_set>
#include <utility>

#include "lantern/compiler/control/control.hpp"
#include "lantern/compiler/staging/caller.hpp"
#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/operand_notes.hpp"
#include "lantern/compiler/staging/region.hpp"
#include "lantern/compiler/staging/source_names.hpp"
#include "lantern/compiler/staging/unset_variable.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core {

namespace {
constexpr std::size_t deepest_staging = 256;
/// More than any program that could be compiled in hours.
constexpr std::size_t most_operations = 5'000'000;
/// Bytes of stack: some 100,000 calls of functions over Reps.
constexpr std::size_t deepest_calls = std::size_t{256} << 20;

bool is_self_or_ancestor(const StagedFunction* candidate, const StagedFunction* of) {
  for (; of; of = of->parent)
    if (of == candidate) return true;
  return false;
}
}  // namespace

// Not inlined: a computation may move between stacks, and the address of a thread-local must not be cached.
[[gnu::noinline]] Context& context() {
  thread_local Context instance;
  return instance;
}

std::uint64_t fresh_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint64_t current_evaluation() { return context().evaluation; }

Evaluation::Evaluation() {
  if (context().evaluation == 0) context().evaluation = own_ = fresh_number();
}

// An exception may end a captured computation late, when the thread is in the middle of another one.
Evaluation::~Evaluation() {
  if (own_ != 0 && context().evaluation == own_) context().evaluation = 0;
}

std::uint32_t current_graph() {
  const Staging* s = context().staging;
  return s ? s->id() : 0;
}

Caller::Caller(const std::source_location& l) : first_(!context().caller.known()) {
  if (first_) context().caller = here(l);
}
Caller::~Caller() {
  if (first_) context().caller = {};
}
Location Caller::place(Location loc) {
  const Location& caller = context().caller;
  if (!caller.known()) return loc;
  const ir::Part part = loc.part;
  loc = caller;
  loc.part = part;
  return loc;
}

void raise_at(const Location& loc, const std::string& message) {
  const std::string where = Caller::place(loc).str();
  throw Error(where.empty() ? message : where + ": error: " + message);
}

ir::Type join_types(const ir::Type& a, const ir::Type& b, const std::string& what, const Location& loc) {
  if (a == b) return a;
  if (!ir::compatible(a, b)) {
    bool ranks = a.is_tensor() && b.is_tensor() && a.element() == b.element() && a.rank() == b.rank();
    if (!ranks) raise_at(loc, what + ": expected one type, got " + a.str() + " and " + b.str());
  }
  if (!a.is_tensor()) return a;
  std::vector<std::int64_t> dims = a.dims();
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != b.dims()[i]) dims[i] = ir::dynamic;
  return ir::Type::tensor(a.element(), std::move(dims));
}

// Numbers of graphs are as wide as a Datum has room for.
Staging::Staging(ir::Module& module, FinishLoop finish) : canonicalise_before_ad(std::move(finish)), module_(module) {
  static std::atomic<std::uint32_t> last{0};
  do id_ = last.fetch_add(1, std::memory_order_relaxed) + 1;
  while (id_ == 0);
  graphs_under_construction.fetch_add(1, std::memory_order_relaxed);
}

Staging::~Staging() { graphs_under_construction.fetch_sub(1, std::memory_order_relaxed); }

ir::Builder Staging::builder(const Location& loc) {
  ir::Builder b(module_, current_->block);
  b.loc = Caller::place(loc);
  return b;
}

StagedFunction* Staging::find(const ir::Function* f) const {
  const auto it = by_function_.find(f);
  return it == by_function_.end() ? nullptr : it->second;
}

StagedFunction& Staging::stage(const std::string& name, const std::vector<ir::Type>& params,
                               const std::vector<ir::Type>* results,
                               ir::FunctionRef<Datums(Datums)> body, const Location& loc,
                               const std::function<void(StagedFunction*)>& begun) {
  if (current_ && current_->depth + 1 > deepest_staging)
    raise_at(loc, "staging '" + name + "' does not end: " + std::to_string(deepest_staging) +
                      " functions are nested inside each other; a recursion that depends on run-time values "
                      "must go through FUN, and the order of a derivative must be known while staging");
  Attempt attempt(*this);
  StagedFunction& f = *functions_.emplace_back(std::make_unique<StagedFunction>());
  f.function = module_.add_function(name, params, results ? *results : std::vector<ir::Type>{});
  f.function->loc = loc;
  f.parent = current_;
  f.depth = current_ ? current_->depth + 1 : 0;
  f.block = f.function->body;
  f.results_known = results != nullptr;
  by_function_.emplace(f.function, &f);
  if (begun) begun(&f);

  StagedFunction* const saved = current_;
  current_ = &f;
  Datums arguments;
  for (ir::Value* p : f.function->body->params) arguments.push_back(Datum::node(p));
  const auto restore = [&] {
    current_ = saved;
    f.open = false;
  };
  try {
    FunctionRegion region(*this, loc);
    const Datums values = body(std::move(arguments));
    region.leave();
    std::vector<ir::Value*> yields = use(values, loc);
    std::vector<ir::Type> types;
    for (std::size_t i = 0; i < yields.size(); ++i)
      types.push_back(results ? with_notes(*this, {{"the value returned", yields[i]}}, loc,
                                           [&] {
                                             return join_types((*results)[i], yields[i]->type,
                                                               "result of '" + name + "'", loc);
                                           })
                              : yields[i]->type);
    f.function->result_types = std::move(types);
    builder(loc).yield(std::move(yields));
    name_values(*f.function, params.size());
    name_captures(f);
  } catch (...) {
    restore();
    if (begun) begun(nullptr);
    throw;
  }
  restore();
  attempt.keep();
  return f;
}

Staging::Attempt::Attempt(Staging& s)
    : staging_(s),
      block_(s.current_ ? s.current_->block : nullptr),
      ops_(block_ ? block_->ops.size() : 0),
      staged_functions_(s.functions_.size()),
      last_(s.module_.functions().empty() ? nullptr : s.module_.functions().back()) {}

Staging::Attempt::~Attempt() {
  if (kept_) return;
  if (block_ && block_->ops.size() > ops_) {
    std::unordered_set<const ir::Op*> gone;
    for (std::size_t i = ops_; i < block_->ops.size(); ++i) {
      gone.insert(block_->ops[i]);
      for (ir::Block* b : block_->ops[i]->blocks) ir::walk(b, [&](const ir::Op* op) { gone.insert(op); });
    }
    block_->ops.resize(ops_);
    for (const auto& f : staging_.functions_)
      std::erase_if(f->calls, [&](const StagedFunction::CallSite& c) { return gone.contains(c.op); });
  }
  staging_.remove_functions_after(last_, staged_functions_);
}

/// Functions that are newer than `last`, and staged functions from number `staged` on, unless older functions
/// call them by now: passes may have cut one of those in two.
void Staging::remove_functions_after(const ir::Function* last, std::size_t staged) {
  const std::vector<ir::Function*>& all = module_.functions();
  auto newer = all.begin();
  if (last) newer = std::find(newer, all.end(), last);
  if (last && newer != all.end()) ++newer;
  if (newer == all.end()) return;
  std::unordered_set<const ir::Function*> needed;
  if (std::any_of(newer, all.end(), [&](const ir::Function* f) { return !by_function_.contains(f); }))
    for (auto f = all.begin(); f != newer; ++f) needed.merge(ir::callees((*f)->body));
  std::unordered_set<const ir::Function*> gone;
  for (auto f = newer; f != all.end(); ++f)
    if (!needed.contains(*f)) gone.insert(*f);
  for (auto& [key, known] : instances)
    std::erase_if(known, [&](const StagedFunction* f) { return gone.contains(f->function); });
  for (const ir::Function* f : gone) {
    rules.erase(f);
    by_function_.erase(f);
    module_.remove_function(const_cast<ir::Function*>(f));
  }
  for (const auto& f : functions_)
    std::erase_if(f->calls,
                  [&](const StagedFunction::CallSite& c) { return gone.contains(c.caller->function); });
  const auto first = functions_.begin() + static_cast<std::ptrdiff_t>(staged);
  functions_.erase(
      std::remove_if(first, functions_.end(), [&](const auto& f) { return gone.contains(f->function); }),
      functions_.end());
}

/// What inner functions captured before it had a name.
void Staging::name_captures(const StagedFunction& outer) {
  for (const auto& f : functions_) {
    const auto& params = f->function->body->params;
    const std::size_t own = params.size() - std::min(params.size(), f->captured.size());
    for (std::size_t i = 0; i < f->captured.size() && own + i < params.size(); ++i)
      if (f->captured[i]->block->function == outer.function && !params[own + i]->name)
        params[own + i]->name = f->captured[i]->name;
  }
}

ir::Value* Staging::capture(StagedFunction& f, ir::Value* outer) {
  const auto found = f.captures.find(outer);
  if (found != f.captures.end()) return found->second;
  ir::Value* p = module_.add_param(f.function->body, outer->type, outer->name);
  const std::size_t from = f.captured.size();
  f.captured.push_back(outer);
  f.captures.emplace(outer, p);
  for (std::size_t i = 0; i < f.calls.size(); ++i) {
    const StagedFunction::CallSite site = f.calls[i];
    pass_captures(f, site, from);
  }
  return p;
}

void Staging::replace_captured(std::size_t first, const std::unordered_map<const ir::Value*, ir::Value*>& by) {
  for (std::size_t i = first; i < functions_.size(); ++i) {
    StagedFunction& f = *functions_[i];
    for (ir::Value*& v : f.captured) {
      const auto found = by.find(v);
      if (found == by.end()) continue;
      if (const auto own = f.captures.extract(v)) f.captures.emplace(found->second, own.mapped());
      v = found->second;
    }
  }
}

// A captured value as its caller sees it: its own, or captured in turn.
void Staging::pass_captures(StagedFunction& callee, const StagedFunction::CallSite& site, std::size_t from) {
  for (std::size_t i = from; i < callee.captured.size(); ++i) {
    ir::Value* outer = callee.captured[i];
    site.op->operands.push_back(outer->block->function == site.caller->function ? outer
                                                                               : capture(*site.caller, outer));
  }
}

ir::Value* Staging::view(StagedFunction& f, ir::Value* v, const Location& loc) {
  const ir::Function* owner = v->block->function;
  if (owner == f.function) {
    if (!ir::visible_from(v, f.block))
      raise_at(loc, "a value made inside a branch, loop or function body is used outside it; make the variable "
                    "outside and assign it there, or return its value from the construct");
    return v;
  }
  // What an enclosing function has as a parameter is there, though the function it comes from may have ended.
  for (const StagedFunction* at = &f; at; at = at->parent)
    if (at->captures.contains(v)) return capture(f, v);
  StagedFunction* const home = find(owner);
  if (!home || !is_self_or_ancestor(home, &f) || !home->open)
    raise_at(loc, "a staged value is used after the function it belongs to has ended");
  if (!ir::visible_from(v, home->block))
    raise_at(loc, "a value made inside a branch, loop or function body is used outside it; make the variable "
                  "outside and assign it there, or return its value from the construct");
  // The functions in between take it along, so that each call passes it on.
  return capture(f, v);
}

ir::Value* Staging::use(const Datum& d, const Location& loc) {
  if (!current_) raise_at(loc, "a staged value is used while nothing is being staged");
  switch (d.state()) {
    case Datum::State::literal: {
      ir::Builder b = builder(loc);
      return d.type().is_float_element() ? b.number(d.f(), d.type()) : b.integer(d.i(), d.type());
    }
    case Datum::State::node:
      if (d.graph() != id_) raise_at(loc, "a staged value is used after the function it belongs to has ended");
      return view(*current_, d.node(), loc);
    case Datum::State::empty: refuse_empty(loc);
    default: break;
  }
  if (d.is_tagged())
    raise_at(loc, "a value of an eager derivative is used while staging; pass it as an argument instead");
  raise_at(loc, "an eager " + d.type().str() + " is used while staging; pass it as an argument instead");
}

std::vector<ir::Value*> Staging::use(std::span<const Datum> data, const Location& loc) {
  std::vector<ir::Value*> values;
  values.reserve(data.size());
  for (const Datum& d : data) values.push_back(use(d, loc));
  return values;
}

Datums Staging::nodes(std::span<const Datum> data, const Location& loc) {
  Datums out;
  for (ir::Value* v : use(data, loc)) out.push_back(Datum::node(v));
  return out;
}

Datum Staging::emit(const Operation& op, std::span<const Datum> operands) {
  if (++operations_ > most_operations)
    raise_at(op.loc, "staging does not end: it has made " + std::to_string(most_operations) +
                         " operations. A C++ loop over plain numbers is staged once for each iteration; check that it ends, "
                         "and use FOR or WHILE, or a loop over Reps with lanternc, where there are many");
  if (operations_ % 64 == 0 && control::stack_used() > deepest_calls)
    raise_at(op.loc, "staging does not end: a C++ function that calls itself is staged anew for each call. Make it a FUN, "
                     "or, with lanternc, end it by an if over Reps");
  std::vector<ir::Value*> values = use(operands, op.loc);
  try {
    ir::Value* const result = builder(op.loc).emit(op.code, values, op.attribute, op.dims, op.text);
    return Datum::node(result);
  } catch (const Error& e) {
    raise_at(op.loc, e.what() + operand_notes(*this, op, operands));
  }
}

Datums Staging::call(StagedFunction& callee, std::span<const Datum> arguments, const Location& loc) {
  if (callee.open && !callee.results_known)
    raise_at(loc, "'" + callee.function->name +
                      "' calls itself before its result type is known; declare tensor results with their "
                      "dimensions, for example Tensor<double, dyn>");
  ir::Op* op = builder(loc).call(callee.function, use(arguments, loc));
  callee.calls.push_back({op, current_});
  pass_captures(callee, callee.calls.back(), 0);
  Datums results;
  for (ir::Value* r : op->results) results.push_back(Datum::node(r));
  return results;
}

Datums Staging::call(ir::Function* callee, std::span<const Datum> arguments, const Location& loc) {
  ir::Op* op = builder(loc).call(callee, use(arguments, loc));
  Datums results;
  for (ir::Value* r : op->results) results.push_back(Datum::node(r));
  return results;
}

Staging::Scope::Scope(Staging& s, ir::Function* f)
    : staging_(s), saved_(s.current_), region_(std::make_unique<FunctionRegion>(s, f->loc)) {
  own_ = s.functions_.emplace_back(std::make_unique<StagedFunction>()).get();
  own_->function = f;
  own_->block = f->body;
  own_->depth = saved_ ? saved_->depth + 1 : 0;
  s.by_function_.emplace(f, own_);
  s.current_ = own_;
}

Staging::Scope::~Scope() {
  own_->open = false;
  region_.reset();
  staging_.current_ = saved_;
}

}  // namespace lantern::core
