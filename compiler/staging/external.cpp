// Calls of external functions, at once and in the graph; the functions that the process knows by name.
#include "lantern/compiler/staging/external.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "lantern/compiler/staging/caller.hpp"
#include "lantern/compiler/staging/check.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/compiler/staging/unset_variable.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/external.hpp"
#include "lantern/runtime/workspace.hpp"

namespace lantern::core::detail {

namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, ExternalFunction> functions;
};
Registry& registry() {
  static Registry all;
  return all;
}

/// Room for a number of any kind.
union Number {
  bool b;
  std::int32_t i32;
  std::int64_t i64;
  float f32;
  double f64;
};

void put(Number& to, const Datum& d) {
  switch (d.type().kind()) {
    case ir::Kind::boolean:
      to.b = d.b();
      return;
    case ir::Kind::i32:
      to.i32 = static_cast<std::int32_t>(d.i());
      return;
    case ir::Kind::i64:
      to.i64 = d.i();
      return;
    case ir::Kind::f32:
      to.f32 = static_cast<float>(d.f());
      return;
    default:
      to.f64 = d.f();
      return;
  }
}

Datum number_of(const Number& n, ir::Kind kind) {
  const ir::Type type(kind);
  switch (kind) {
    case ir::Kind::boolean:
      return Datum::integer(n.b, type);
    case ir::Kind::i32:
      return Datum::integer(n.i32, type);
    case ir::Kind::i64:
      return Datum::integer(n.i64, type);
    case ir::Kind::f32:
      return Datum::number(static_cast<double>(n.f32), type);
    default:
      return Datum::number(n.f64, type);
  }
}

/// Where the function fails by lantern_fail, control comes back here and an Error is thrown.
void run_guarded(const ExternalFunction& function, void* const* arguments, void* result) {
  struct Call {
    const ExternalFunction& function;
    void* const* arguments;
    void* result;
  } call{function, arguments, result};
  thread_local Workspace workspace;
  workspace.call(
      [](lt_workspace*, void* data) {
        const auto* c = static_cast<const Call*>(data);
        c->function.thunk(c->function.address, c->arguments, c->result);
      },
      &call);
}

Datums call_now(const ExternalFunction& function, const Datums& arguments, const Location& loc) {
  if (!function.address)
    raise_at(loc,
             "the external function '" + function.prototype.name +
                 "' is called while the program is staged, and is not here: give lanternc what defines it, "
                 "lanternc ... -- solver.o -lsolver");
  const std::vector<ir::Prototype::Parameter>& parameters = function.prototype.parameters;
  std::vector<Number> numbers(parameters.size());
  std::vector<void*> pointers(parameters.size());
  std::string place = loc.known() ? std::string(loc.file) + ":" + std::to_string(loc.line) : "";
  Datums changed;
  std::size_t next = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].place) {
      pointers[i] = place.data();
      continue;
    }
    const Datum& argument = arguments[next++];
    if (!parameters[i].pointer) {
      put(numbers[i], argument);
      pointers[i] = &numbers[i];
      continue;
    }
    auto* box = static_cast<TensorBox*>(argument.box());
    if (parameters[i].changed) {
      changed.push_back(make_tensor(argument.type().element(), box->shape));
      auto* own = static_cast<TensorBox*>(changed.back().box());
      own->data() = box->data();
      box = own;
    }
    pointers[i] = box->data().data();
  }
  Number returned{};
  run_guarded(function, pointers.data(), &returned);
  Datums results;
  if (function.prototype.returned) results.push_back(number_of(returned, *function.prototype.returned));
  results.insert(results.end(), changed.begin(), changed.end());
  if (checking()) {
    const bool finite = std::ranges::all_of(arguments, all_finite);
    for (const Datum& d : results) check_result({Opcode::external_, 0, loc}, d, finite);
  }
  return results;
}

}  // namespace

const ExternalFunction& register_external(ExternalFunction function, const Location& loc) {
  try {
    function.prototype.check();
  } catch (const Error& e) {
    raise_at(loc, std::string("external: ") + e.what());
  }
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto [it, fresh] = all.functions.emplace(function.prototype.name, function);
  if (!fresh &&
      (it->second.address != function.address || it->second.prototype.text() != function.prototype.text()))
    raise_at(loc, "external: '" + function.prototype.name +
                      "' is the name of another function of this program, " + it->second.prototype.text());
  return it->second;
}

const ExternalFunction* find_external(const std::string& name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto it = all.functions.find(name);
  return it == all.functions.end() ? nullptr : &it->second;
}

void no_derivative(const std::string& name, const Location& loc) {
  try {
    raise_at(
        loc,
        "the external function '" + name +
            "' is differentiated, and has no derivative: give it one with custom_vjp or custom_jvp, or pass "
            "stop_gradient(x) where none is to pass through it");
  } catch (const Error& e) {
    throw NoDerivative(e.what());
  }
}

Datums call_external(const ExternalFunction& function, const ExternalOptions& options,
                     const Datums& arguments, const Location& loc) {
  const ir::Prototype& prototype = function.prototype;
  for (const Datum& d : arguments)
    if (d.empty()) refuse_empty(loc);
  std::vector<ir::Type> types;
  Datums plain;
  bool differentiated = false;
  for (const Datum& d : arguments) {
    differentiated |= d.is_tagged() && d.type().is_differentiable();
    plain.push_back(strip(d));
    if (plain.back().is_tagged()) no_derivative(prototype.name, loc);  // an element of a semiring
    types.push_back(d.type());
  }
  std::vector<ir::Type> results;
  try {
    results = prototype.results(types);
  } catch (const Error& e) {
    raise_at(loc, e.what());
  }
  if (differentiated && std::ranges::any_of(results, [](const ir::Type& t) { return t.is_differentiable(); }))
    no_derivative(prototype.name, loc);
  Staging* const staging = context().staging;
  const bool staged = std::ranges::any_of(plain, [](const Datum& d) { return d.is_node(); });
  if (!staging) {
    if (staged) raise_at(loc, "a staged value is used while nothing is being staged");
    return call_now(function, plain, Caller::place(loc));
  }
  ir::Op* const op = staging->builder(Caller::place(loc)).op(Opcode::external_, staging->use(plain, loc), results);
  op->text = staging->module().intern(prototype.text());
  op->integer = options.ordered ? ir::in_order : options.threads ? ir::in_threads : 0;
  Datums out;
  for (ir::Value* v : op->results) out.push_back(Datum::node(v));
  return out;
}

}  // namespace lantern::core::detail
