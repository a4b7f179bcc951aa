// A program between tensors of one element and the numbers that it computes with.
#include "device_numbers.hpp"

#include <algorithm>

#include "lantern/compiler/staging/operation.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::tool {

using namespace core;

namespace {

constexpr std::int64_t one[]{1};  // size

ir::Type of_one_element(const ir::Type& t) { return ir::Type::tensor(t.kind(), {1}); }

/// What the program calls a value: the value itself, or the parameter of a function that takes it.
const char* name_in(const ir::Block& body, const ir::Value* v) {
  for (const ir::Op* op : body.ops)
    for (std::size_t k = 0; !v->name && op->is(ir::Opcode::call_) && k < op->operands.size(); ++k)
      if (op->operands[k] == v && op->callee->body->params[k]->name) return op->callee->body->params[k]->name;
  return v->name;
}

/// Parameters get the names that the program has for them, or for the numbers that it reads from them.
void name_parameters(ir::Module& module, const std::vector<bool>& lies_there) {
  const ir::Block& body = *module.entry->body;
  for (std::size_t i = 0; i < body.params.size(); ++i) {
    ir::Value* const parameter = body.params[i];
    if (!parameter->name) parameter->name = name_in(body, parameter);
    for (const ir::Op* op : body.ops)
      if (!parameter->name && lies_there[i] && op->is(ir::Opcode::get_) && op->operands[0] == parameter)
        parameter->name = name_in(body, op->result());
  }
}

}  // namespace

void stage_for(const Options& options, StagedFunction& function, const std::vector<ir::Type>& parameters,
               ir::FunctionRef<Datums(const Datums&)> run) {
  if (!options.cuda || !options.has_pullbacks()) {
    function.module = driver::stage(function.name, parameters, run);
    return;
  }
  std::vector<ir::Type> there = parameters;
  std::vector<bool> lies_there;
  for (ir::Type& t : there) {
    lies_there.push_back(t.is_scalar() && (t.is_differentiable() || options.emit == Emit::jax));
    if (lies_there.back()) t = of_one_element(t);
  }
  function.parameters = parameters;
  const Location loc = function.loc;
  const auto on_tensors = [&](const Datums& in) {
    Datums numbers = in;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (lies_there[i]) numbers[i] = perform({ir::Opcode::get_, 0, loc}, {in[i], Datum::integer(0, ir::I64)});
    Datums out = run(numbers);
    function.results.clear();
    for (Datum& d : out) {
      function.results.push_back(d.type());
      if (d.type().is_scalar()) d = perform({ir::Opcode::fill_, 0, loc, one}, {d, Datum::integer(1, ir::I64)});
    }
    return out;
  };
  function.module = driver::stage(function.name, there, on_tensors);
  name_parameters(*function.module, lies_there);
}

std::vector<ir::Type> caller_parameters(const StagedFunction& function) {
  return function.parameters.empty() ? function.module->entry->parameter_types() : function.parameters;
}

std::vector<ir::Type> caller_results(const StagedFunction& function) {
  return function.results.empty() ? function.module->entry->result_types : function.results;
}

}  // namespace lantern::tool
