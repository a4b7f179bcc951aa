// What one pass of the pipeline makes of a staged program.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/lantern.hpp"

namespace lantern::test {

using namespace core;

/// The IR before the pass and after it, for a machine of so many f64 a register.
template <class F>
std::pair<std::string, std::string> around_pass(std::string_view name, F f, int native = 4) {
  std::vector<ir::Type> types;
  using Params = typename detail::FunctionTraits<F>::Params;
  [&]<class... P>(std::type_identity<std::tuple<P...>>) {
    (detail::types_of<P>(types), ...);
  }(std::type_identity<Params>{});
  const auto module = core::driver::stage("f", types, detail::program_of(f).run);
  std::pair<std::string, std::string> text;
  std::string last;
  passes::PipelineOptions options;
  options.vector_lanes = native;
  options.verify_each = true;
  options.fused_multiply_add = name == "contract";
  options.after = [&](std::string_view pass, const ir::Module& m) {
    std::string now = ir::print(m);
    if (pass == name) text = {last, now};
    last = std::move(now);
  };
  core::run_on_large_stack([&] { passes::run_pipeline(*module, options); });
  return text;
}

}  // namespace lantern::test
