// Staging and the pass pipeline, with what --time-passes, --dump-after and --verify ask for.
#include "stage.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>

#include "lantern/codegen/kernels.hpp"
#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/ad/vmap.hpp"
#include "lantern/compiler/control/control.hpp"
#include "lantern/compiler/driver/compile.hpp"
#include "lantern/compiler/passes/direct/close.hpp"
#include "lantern/compiler/passes/direct/cps.hpp"
#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/ir/form.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "device_numbers.hpp"
#include "interruption.hpp"
#include "output_to_errors.hpp"
#include "report.hpp"

namespace lantern::tool {

using namespace core;

namespace {

/// Whether loops may take another shape than they have in the program: a lane has no line of its own, and cannot be
/// looked at.
bool reshapes_loops(const Options& options) {
  return options.opt >= 2 && !options.cuda && (!options.debug || options.level_given) && options.check != Check::nan;
}

}  // namespace

int vector_lanes(const Options& options) {
  if (!reshapes_loops(options) || options.emit == Emit::c) return 0;
  return options.lanes > 0 ? options.lanes : codegen::arithmetic_of(options.cpu).lanes;
}

namespace {

/// In a text that others compile, contraction is theirs: whether the processor has the operation is not
/// known.
bool contracts(const Options& options) {
  if (options.strict_math || options.cuda || options.is_text() || options.emit == Emit::html) return false;
  return options.code_level() > 0 && codegen::arithmetic_of(options.cpu).fused_multiply_add;
}

}  // namespace

namespace {

/// Error where files that include one header make different programs of a function.
void require_one_program(const core::driver::Registered& function) {
  const auto text = [](const core::driver::Registered& f) {
    return ir::print(*core::driver::stage(f.name, f.parameter_types(), f.program().run));
  };
  for (const core::driver::Registered& other : function.again)
    if (text(function) != text(other))
      throw PlacedError(other.loc.str() + ": error: LANTERN_FUNCTION(" + other.name +
                        ", ...) is another program in each of the files that include it; give it a name in each, or the "
                        "same meaning");
}

void stage_registered(const core::driver::Registered& function, StagedFunction& f, const Options& options) {
  const std::string place = function.loc.str();
  const std::string note =
      "\n" + place + ": note: while staging LANTERN_FUNCTION(" + function.name + ", ...)";
  const OutputToErrors redirected;
  try {
    stage_for(options, f, function.parameter_types(), function.program().run);
    require_one_program(function);
  } catch (const InternalError& e) {
    throw InternalError(e.what() + note);
  } catch (const Error& e) {
    const bool placed = std::strstr(e.what(), ": error: ") != nullptr;
    if (placed) throw PlacedError(e.what() + (std::string(e.what()).starts_with(place) ? "" : note));
    throw PlacedError(place + ": error: " + e.what() + note);
  } catch (const std::exception& e) {
    throw PlacedError(place + ": error: the program threw while it was staged: " + e.what() + note);
  }
}

/// A program of the arguments and a cotangent of each floating result; one cotangent of each floating
/// argument, behind the results of the function itself if `values`.
ad::Program pullback_of(const ad::Program& program, const std::vector<ir::Type>& parameters, bool values,
                        const Location& loc) {
  ad::Active active;
  for (const ir::Type& t : parameters) active.push_back(t.is_differentiable());
  return {program.name + "_vjp", [program, active, values, loc](const Datums& in) {
            return ad::vjp(program, ad::slice(in, 0, active.size()), active,
                           ad::slice(in, active.size(), in.size()), values, loc);
          }};
}

/// A program of the arguments and a tangent of each floating argument; a tangent of each floating one of so
/// many results.
ad::Program pushforward_of(const ad::Program& program, const std::vector<ir::Type>& parameters,
                           std::size_t results, const Location& loc) {
  ad::Active active;
  for (const ir::Type& t : parameters) active.push_back(t.is_differentiable());
  return {program.name + "_jvp", [program, active, results, loc](const Datums& in) {
            const Datums both = ad::jvp(program, ad::slice(in, 0, active.size()), active,
                                        ad::slice(in, active.size(), in.size()), loc);
            return ad::slice(both, results, both.size());
          }};
}

std::vector<ir::Type> floating(const std::vector<ir::Type>& types) {
  std::vector<ir::Type> found;
  std::ranges::copy_if(types, std::back_inserter(found),
                       [](const ir::Type& t) { return t.is_differentiable(); });
  return found;
}

/// Behind the functions one that has been staged, after the passes.
void add(std::vector<StagedFunction>& functions, StagedFunction f, const Options& options) {
  run_on_large_stack([&] {
    f.staged = ir::print(*f.module, {.locations = true, .names = true});
    optimise(f, options);
  });
  functions.push_back(std::move(f));
}

/// The type of many values; nothing where vmap has no rows of such values.
std::optional<ir::Type> rows_of(const ir::Type& t) {
  if (t.is_scalar() && !t.is_bool()) return ir::Type::tensor(t.kind(), {ir::dynamic});
  if (!t.is_tensor() || !t.is_float_element()) return {};
  std::vector<std::int64_t> dims{ir::dynamic};
  dims.insert(dims.end(), t.dims().begin(), t.dims().end());
  return ir::Type::tensor(t.element(), dims);
}

/// Behind the last function the same of many examples (vmap), where there is one. Without it the examples are
/// computed by one call each.
void add_batch(std::vector<StagedFunction>& functions, const std::vector<ir::Type>& parameters,
               const ad::Program& program, const Options& options) {
  const StagedFunction& one = functions.back();
  const std::vector<ir::Type> results = caller_results(one);
  std::vector<ir::Type> rows;
  for (const ir::Type& t : parameters)
    if (const auto many = rows_of(t)) rows.push_back(*many);
  if (rows.empty() || rows.size() != parameters.size() ||
      !std::ranges::all_of(results, [](const ir::Type& t) { return rows_of(t).has_value(); }))
    return;
  StagedFunction f{one.name + "_batch", nullptr,          {},  one.loc, one.pullbacks,
                   one.pushforwards,    one.gives_values, true};
  const auto run = [program, results, loc = one.loc](const Datums& in) {
    return ad::vmap(program, in, std::vector<bool>(in.size(), true), results, loc);
  };
  try {
    const OutputToErrors redirected;
    f.module = core::driver::stage(f.name, rows, run);
  } catch (const Error&) {  // of results whose sizes differ, for instance
    return;
  }
  add(functions, std::move(f), options);
}

/// Behind the functions a derivative of one of them. False, with a note, where there is none.
bool add_derivative(std::vector<StagedFunction>& functions, StagedFunction f,
                    const core::driver::Registered& registered, const std::vector<ir::Type>& parameters,
                    const ad::Program& program, const Options& options) {
  try {
    const OutputToErrors redirected;
    stage_for(options, f, parameters, program.run);
  } catch (const Error& e) {  // an external function without a rule, for instance
    const std::string how = f.pushforwards > 0 ? " by forward mode" : "";
    tell(registered.loc.str() + ": note: " + registered.name + " has no derivative" + how +
         " for other programs: " + e.what() + "\n");
    return false;
  }
  add(functions, std::move(f), options);
  return true;
}

/// Behind a function its pullback, and the pullback of that, as far as there are any. False where one failed.
bool add_pullbacks(std::vector<StagedFunction>& functions, const core::driver::Registered& registered,
                   const Options& options) {
  std::vector<ir::Type> parameters = registered.parameter_types();
  ad::Program program = registered.program();
  std::string name = registered.name;
  std::vector<ir::Type> results = caller_results(functions.back());
  if (options.emit == Emit::jax) add_batch(functions, parameters, program, options);
  for (int order = 1; order <= 2; ++order) {
    const std::vector<ir::Type> seeds = floating(results), adjoints = floating(parameters);
    if (seeds.empty() || adjoints.empty()) return true;
    // JAX differentiates a function with one floating number for a result by one call of this: the cotangent
    // is a factor.
    const bool values =
        options.emit == Emit::jax && order == 1 && results.size() == 1 && results[0].is_scalar();
    program = pullback_of(program, parameters, values, registered.loc);
    name += "_vjp";
    parameters = ad::joined(parameters, seeds);
    results = values ? ad::joined(results, adjoints) : adjoints;
    if (!add_derivative(functions, {name, nullptr, {}, registered.loc, order, 0, values}, registered,
                        parameters, program, options))
      return false;
    if (options.emit == Emit::jax && order == 1) add_batch(functions, parameters, program, options);
  }
  return true;
}

/// Behind those its pushforward, and the pushforward of that. Both give tangents alone: jax.jacfwd has a
/// batch of tangents for one value.
void add_pushforwards(std::vector<StagedFunction>& functions, const core::driver::Registered& registered,
                      std::vector<ir::Type> results, const Options& options) {
  std::vector<ir::Type> parameters = registered.parameter_types();
  ad::Program program = registered.program();
  std::string name = registered.name;
  for (int order = 1; order <= 2; ++order) {
    const std::vector<ir::Type> seeds = floating(parameters), tangents = floating(results);
    if (seeds.empty() || tangents.empty()) return;
    program = pushforward_of(program, parameters, results.size(), registered.loc);
    name += "_jvp";
    parameters = ad::joined(parameters, seeds);
    results = tangents;
    if (!add_derivative(functions, {name, nullptr, {}, registered.loc, 0, order, false}, registered,
                        parameters, program, options))
      return;
    if (order == 1) add_batch(functions, parameters, program, options);
  }
}

void print_timings(const std::string& name, const std::vector<passes::PassTiming>& timings) {
  double total = 0;
  std::string text = "passes of " + name + ", in milliseconds\n";
  const auto row = [&](const std::string& pass, double milliseconds) {
    char line[128];
    std::snprintf(line, sizeof line, "  %-16s %10.3f\n", pass.c_str(), milliseconds);
    text += line;
  };
  for (const passes::PassTiming& t : timings) {
    row(t.name, t.milliseconds);
    total += t.milliseconds;
  }
  row("total", total);
  tell(text);
}

passes::PipelineOptions pipeline_of(const Options& options, int lanes) {
  passes::PipelineOptions pipeline;
  pipeline.opt_level = options.opt;
  pipeline.disabled = options.disabled_passes;
  pipeline.vector_lanes = lanes;
  pipeline.packed_products = reshapes_loops(options) && options.emit == Emit::c;
  pipeline.threads = options.threads;
  pipeline.device = options.cuda;
  pipeline.reassociate = options.reassociate;
  pipeline.check_values = options.check == Check::nan;
  pipeline.fused_multiply_add = contracts(options);
  return pipeline;
}

/// Whether what is put out has functions that others call by their names.
bool has_interface(const Options& options) {
  switch (options.emit) {
    case Emit::c:
    case Emit::cpp:
    case Emit::header:
    case Emit::object:
    case Emit::shared:
    case Emit::python:
    case Emit::wheel:
    case Emit::jax:
    case Emit::torch:
    case Emit::julia:
    case Emit::fortran:
    case Emit::mex:
      return !options.cuda;
    default:
      return false;
  }
}

/// Each function of a program is worked on by itself, later: see build_program.
bool optimised_apart(const Options& options) {
  return options.emit == Emit::program && !options.explain && !options.cuda;
}

}  // namespace

void optimise(StagedFunction& function, const Options& options) {
  const std::string& name = function.name;
  ir::Module& module = *function.module;
  function.progress.staged = ir::size(module);
  const passes::Remarks remarks;
  std::vector<passes::PassTiming> timings;
  passes::PipelineOptions pipeline = pipeline_of(options, vector_lanes(options));
  pipeline.verify_each |= options.verify;
  pipeline.timings = &timings;
  pipeline.after = [&](std::string_view pass, const ir::Module& m) {
    if (options.explain) function.progress.passes.emplace_back(pass, ir::size(m));
    if (options.explain && pass == "parallel") function.progress.traffic = traffic_text(m);
    if (std::ranges::find(options.dump_after, pass) != options.dump_after.end())
      tell("; " + name + " after " + std::string(pass) + "\n" + ir::print(m) + "\n");
  };
  passes::run_pipeline(module, pipeline);
  // A GPU has no room for continuations: at -O0 too.
  if (options.cuda) passes::unwind(module);
  function.progress.remarks.insert(function.progress.remarks.end(), remarks.all().begin(),
                                   remarks.all().end());
  if (options.time_passes) print_timings(name, timings);
}

std::vector<StagedFunction> stage_functions(const StagingImage& image, const Options& options) {
  std::vector<StagedFunction> functions;
  for (const core::driver::Registered& registered : image.functions) {
    StagedFunction f{registered.name, {}, {}, registered.loc, 0, 0, {}};
    {
      const passes::Remarks of_staging;
      const FaultsOfUser faults("LANTERN_FUNCTION(" + registered.name + ", ...) was staged (" + registered.loc.str() + ")");
      stage_registered(registered, f, options);
      f.progress.remarks = of_staging.all();
    }
    run_on_large_stack([&] {
      if (options.verify) ir::verify(*f.module, ir::forms::staged);
      if (has_interface(options) || optimised_apart(options))
        f.staged = ir::print(*f.module, {.locations = true, .names = true});
      if (options.emit == Emit::cps)
        passes::to_cps(*f.module);
      else if (!optimised_apart(options))
        optimise(f, options);
      if (options.verify) ir::verify(*f.module);
    });
    functions.push_back(std::move(f));
    if (!options.has_pullbacks()) continue;
    const std::vector<ir::Type> results = caller_results(functions.back());
    if (add_pullbacks(functions, registered, options) && options.emit == Emit::jax)
      add_pushforwards(functions, registered, results, options);
  }
  if (!options.mappings.empty() && options.emit != Emit::cps) codegen::require_met(modules(functions), options.mappings);
  return functions;
}

std::unique_ptr<ir::Module> optimised(const std::string& staged, const Options& options, int lanes) {
  std::unique_ptr<ir::Module> module = ir::parse(staged);
  passes::run_pipeline(*module, pipeline_of(options, lanes));
  return module;
}

void close_functions(const std::vector<StagedFunction>& functions) {
  run_on_large_stack([&] {
    for (const StagedFunction& f : functions) passes::close(*f.module);
  });
}

std::vector<const ir::Module*> modules(const std::vector<StagedFunction>& functions) {
  std::vector<const ir::Module*> all;
  for (const StagedFunction& f : functions) all.push_back(f.module.get());
  return all;
}

}  // namespace lantern::tool
