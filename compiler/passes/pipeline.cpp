// The passes in order.
#include "lantern/compiler/passes/pipeline.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "lantern/compiler/passes/contify.hpp"
#include "lantern/compiler/passes/contract.hpp"
#include "lantern/compiler/passes/counting.hpp"
#include "lantern/compiler/passes/cut.hpp"
#include "lantern/compiler/passes/dots.hpp"
#include "lantern/compiler/passes/elements.hpp"
#include "lantern/compiler/passes/fuse.hpp"
#include "lantern/compiler/passes/gather.hpp"
#include "lantern/compiler/passes/inplace.hpp"
#include "lantern/compiler/passes/invariants.hpp"
#include "lantern/compiler/passes/lower.hpp"
#include "lantern/compiler/passes/merge.hpp"
#include "lantern/compiler/passes/outline.hpp"
#include "lantern/compiler/passes/own_rows.hpp"
#include "lantern/compiler/passes/pack.hpp"
#include "lantern/compiler/passes/parallel.hpp"
#include "lantern/compiler/passes/promote.hpp"
#include "lantern/compiler/passes/raise.hpp"
#include "lantern/compiler/passes/reads_first.hpp"
#include "lantern/compiler/passes/records.hpp"
#include "lantern/compiler/passes/rotate.hpp"
#include "lantern/compiler/passes/scalars.hpp"
#include "lantern/compiler/passes/settled.hpp"
#include "lantern/compiler/passes/simplify.hpp"
#include "lantern/compiler/passes/split.hpp"
#include "lantern/compiler/passes/strips.hpp"
#include "lantern/compiler/passes/tables.hpp"
#include "lantern/compiler/passes/unfill.hpp"
#include "lantern/compiler/passes/unwind.hpp"
#include "lantern/compiler/passes/updates.hpp"
#include "lantern/compiler/passes/vectorise.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/verify.hpp"

namespace lantern::passes {

namespace {

template <void (*run)(ir::Module&)>
void plain(ir::Module& module, const PipelineOptions&) {
  run(module);
}

/// Whether matrix products may call a routine, which adds up in an order of its own.
bool packed(const PipelineOptions& options) { return options.vector_lanes > 0 && options.reassociate; }

constexpr std::array all_passes{
    Pass{"counting", "loops that count do so as FOR: up by ones, to a bound known before", plain<counting>},
    Pass{"scalars", "small tensors of a known shape become numbers", plain<scalars>},
    Pass{"contify", "continuations that are called once become code", plain<contify>},
    Pass{"unwind", "continuation-passing style becomes direct style with a tape", plain<unwind>},
    Pass{"simplify", "constants, exact algebra, common subexpressions, dead code, inlining", plain<simplify>},
    Pass{"lower", "tensor operations become loops, those over one index space together",
         [](ir::Module& m, const PipelineOptions& options) {
           invariants(m);  // sizes are at hand where what is saved in loops is used again
           if (lower(m, {.packed = packed(options), .keep_sums = true, .reassociate = options.reassociate}))
             simplify(m);
         }},
    Pass{"dead_stores", "elements that nobody reads again are not written", plain<dead_stores>},
    Pass{"raise", "loops that add up products of matrices become one product",
         [](ir::Module& m, const PipelineOptions& options) {
           if (!packed(options)) return;
           updates(m);     // what a trip stores and adds back is no change
           invariants(m);  // numbers of trips are known before the loops
           raise_products(m);
         }},
    Pass{"reads_first", "elements of a tensor are read before it is changed", plain<reads_first>},
    Pass{"promote", "an element that a loop works on trip after trip becomes a number", plain<promote>},
    Pass{"fuse", "a loop joins the one before that makes what it reads in the same trip", plain<fuse>},
    Pass{"elements", "an array of which trips use own elements only becomes numbers of the trip",
         plain<elements>},
    Pass{"rotate", "sums at the start of a trip join the products at the end of the trip before",
         plain<rotate>},
    Pass{"tables", "what inner loops compute anew in every trip of an outer one is computed once",
         plain<tables>},
    Pass{"updates", "several updates of one element become one", plain<updates>},
    Pass{"cut", "a loop whose trips ask where they are becomes one loop for each answer", plain<cut>},
    Pass{"gather", "a loop whose trips add to neighbouring elements becomes one that sums for each element",
         plain<gather>},
    Pass{"split", "a loop whose trips add to neighbouring elements becomes one for each neighbour",
         plain<split>},
    Pass{"join_sums", "sums of what loops have made become loops",
         [](ir::Module& m, const PipelineOptions& options) {
           lower(m, {.packed = packed(options), .reassociate = options.reassociate});
         }},
    Pass{"own_rows", "what trips make for rows of their own is made there", plain<own_rows>},
    Pass{"unfill", "tensors that a loop writes from end to end start without values", plain<unfill>},
    Pass{"invariants", "integers that are the same in all trips are computed before the loop",
         plain<invariants>},
    Pass{"parallel", "independent trips of a loop are shared out to threads",
         [](ir::Module& m, const PipelineOptions& options) {
           parallel(m, options.threads, options.vector_lanes, options.reassociate);
           lower(m, {.packed = packed(options),
                     .reassociate = options.reassociate});  // sums of what the threads have
         },
         false, true},
    Pass{"vectorise", "independent trips of a loop run at once, one in each lane of a vector",
         [](ir::Module& m, const PipelineOptions& options) {
           vectorise(m, options.vector_lanes, options.reassociate);
         },
         true},
    Pass{"pack", "elements that inner loops walk through by leaps lie side by side in a copy", plain<pack>,
         true},
    Pass{"strips", "vectors of many registers are worked on register by register",
         [](ir::Module& m, const PipelineOptions& options) { strips(m, options.vector_lanes); }, true},
    Pass{"dots", "sums over the lanes are taken for several trips at once",
         [](ir::Module& m, const PipelineOptions& options) { dots(m, options.vector_lanes); }, true},
    Pass{"contract", "a product and the sum that takes it are rounded once", plain<contract>, false, false,
         true},
    Pass{"inplace", "updates of tensors nobody else sees reuse their memory", plain<inplace>},
    Pass{"records", "values that are saved together lie on one tape", plain<records>},
    Pass{"outline", "long blocks become calls of functions that compilers can handle", plain<outline>},
    Pass{"merge", "functions that are equal become one", plain<merge>},
};

void check_names(const std::vector<std::string>& disabled) {
  std::string known;
  for (const Pass& p : all_passes) known += (known.empty() ? "" : ", ") + std::string(p.name);
  for (const std::string& name : disabled)
    if (std::ranges::none_of(all_passes, [&](const Pass& p) { return p.name == name; }))
      raise("expected the name of a pass (" + known + "), got '" + name + "'");
}

}  // namespace

std::span<const Pass> passes() { return all_passes; }

void run_pipeline(ir::Module& module, const PipelineOptions& options) {
  check_names(options.disabled);
  if (options.opt_level <= 0) {
    keep_shape_checks(module);  // what nobody needs is not printed
    lower(module, {.fuse = false});
    return;
  }
  for (const Pass& pass : all_passes) {
    if (std::ranges::find(options.disabled, pass.name) != options.disabled.end()) {
      if (pass.name == "lower" || pass.name == "join_sums")
        lower(module, {.fuse = false});  // printers know no others
      continue;
    }
    if (pass.for_vectors && options.vector_lanes == 0) continue;
    if (pass.for_threads && options.threads <= 1) continue;
    if (pass.for_fused && !options.fused_multiply_add) continue;
    const auto start = std::chrono::steady_clock::now();
    pass.run(module, options);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    if (options.timings) options.timings->push_back({std::string(pass.name), time.count()});
    if (options.verify_each) ir::verify(module);
    if (options.after) options.after(pass.name, module);
  }
}

}  // namespace lantern::passes
