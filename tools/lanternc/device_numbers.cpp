// A program between tensors of one element and the numbers that it computes with.
#include "device_numbers.hpp"

#include "lantern/compiler/staging/operation.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::tool {

using namespace core;

namespace {

constexpr std::int64_t one[]{1};  // size

ir::Type of_one_element(const ir::Type& t) { return ir::Type::tensor(t.kind(), {1}); }

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
}

std::vector<ir::Type> caller_parameters(const StagedFunction& function) {
  return function.parameters.empty() ? function.module->entry->parameter_types() : function.parameters;
}

std::vector<ir::Type> caller_results(const StagedFunction& function) {
  return function.results.empty() ? function.module->entry->result_types : function.results;
}

}  // namespace lantern::tool
