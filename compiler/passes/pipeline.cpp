// The passes in order.
#include "lantern/compiler/passes/pipeline.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "lantern/compiler/passes/array/array_contraction.hpp"
#include "lantern/compiler/passes/array/dead_fills.hpp"
#include "lantern/compiler/passes/array/dead_stores.hpp"
#include "lantern/compiler/passes/array/deforestation.hpp"
#include "lantern/compiler/passes/array/full_unrolling.hpp"
#include "lantern/compiler/passes/array/if_conversion.hpp"
#include "lantern/compiler/passes/array/index_set_splitting.hpp"
#include "lantern/compiler/passes/array/invariant_integers.hpp"
#include "lantern/compiler/passes/array/invariant_tables.hpp"
#include "lantern/compiler/passes/array/loop_fusion.hpp"
#include "lantern/compiler/passes/array/loop_interchange.hpp"
#include "lantern/compiler/passes/array/lower.hpp"
#include "lantern/compiler/passes/array/in_place_stencils.hpp"
#include "lantern/compiler/passes/array/partial_copies.hpp"
#include "lantern/compiler/passes/array/raise.hpp"
#include "lantern/compiler/passes/array/reads_first.hpp"
#include "lantern/compiler/passes/array/register_promotion.hpp"
#include "lantern/compiler/passes/array/retiming.hpp"
#include "lantern/compiler/passes/array/scatter_to_gather.hpp"
#include "lantern/compiler/passes/array/store_forwarding.hpp"
#include "lantern/compiler/passes/canonical/canonical_loops.hpp"
#include "lantern/compiler/passes/canonical/fixed_arrays.hpp"
#include "lantern/compiler/passes/canonical/scalar_replacement.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/direct/contify.hpp"
#include "lantern/compiler/passes/direct/flow.hpp"
#include "lantern/compiler/passes/direct/inline_expansion.hpp"
#include "lantern/compiler/passes/direct/tape_narrowing.hpp"
#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/compiler/passes/memory/inplace.hpp"
#include "lantern/compiler/passes/memory/merge.hpp"
#include "lantern/compiler/passes/memory/outline.hpp"
#include "lantern/compiler/passes/memory/tape_coalescing.hpp"
#include "lantern/compiler/passes/schedule/value_checks.hpp"
#include "lantern/compiler/passes/schedule/contract.hpp"
#include "lantern/compiler/passes/schedule/copy_fusion.hpp"
#include "lantern/compiler/passes/schedule/device.hpp"
#include "lantern/compiler/passes/schedule/element_nests.hpp"
#include "lantern/compiler/passes/schedule/kept_panels.hpp"
#include "lantern/compiler/passes/schedule/horizontal_fusion.hpp"
#include "lantern/compiler/passes/schedule/kernel_fusion.hpp"
#include "lantern/compiler/passes/schedule/late_fills.hpp"
#include "lantern/compiler/passes/schedule/lone_messages.hpp"
#include "lantern/compiler/passes/schedule/loop_reversal.hpp"
#include "lantern/compiler/passes/schedule/overlap.hpp"
#include "lantern/compiler/passes/schedule/parallel.hpp"
#include "lantern/compiler/passes/schedule/predictive_commoning.hpp"
#include "lantern/compiler/passes/schedule/reciprocals.hpp"
#include "lantern/compiler/passes/schedule/rematerialise.hpp"
#include "lantern/compiler/passes/schedule/sparse_adjoints.hpp"
#include "lantern/compiler/passes/schedule/threads.hpp"
#include "lantern/compiler/passes/schedule/vectorise.hpp"
#include "lantern/compiler/passes/schedule/window_gather.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/verify.hpp"

namespace lantern::passes {

namespace {

template <void (*run)(ir::Module&)>
void plain(ir::Module& module, const PipelineOptions&) {
  run(module);
}

/// Whether matrix products may call a routine, which adds up in an order of its own.
bool packed(const PipelineOptions& options) {
  return (options.vector_lanes > 0 || options.packed_products || options.device) && options.reassociate;
}
/// Whether sums over windows may call one, which runs in one thread.
bool windows(const PipelineOptions& options) { return packed(options) && !options.device && options.threads <= 1; }

// Phase by phase; above each pass, why it is there. Derivatives have been made before, while the program was
// staged, each brought to direct style by unwind if it is differentiated again. Which form each phase needs and gives
// is below, where it is checked.
constexpr std::array all_passes{
    // Canonical (canonical/). Needs a graph as it was staged or differentiated, with continuations or
    // without; gives one form for each thing: loops that count are FOR, small tensors are numbers.
    //
    // first: all that follows asks loops how they count
    Pass{"canonical_loops", "loops that count do so as FOR: up by ones, to a bound known before",
         plain<canonical_loops>},
    // once loops count, and before scalar_replacement, which asks for shapes; derivatives have asked for it already
    Pass{"fixed_arrays", "small arrays of a constant size get a static shape, and loops over them are unrolled",
         [](ir::Module& m, const PipelineOptions&) {
           for (ir::Function* f : m.functions()) fixed_arrays(*f);
         }},
    // before unwind: cells, frames and tapes hold these numbers, too
    Pass{"scalar_replacement", "small tensors of a known shape become numbers", plain<scalar_replacement>},

    // Direct style (direct/). Needs what a derivative's handler has written, in continuation-passing style;
    // gives functions without continuations and cells: adjoints are values, and what the backward part needs
    // of the forward part is available or on a tape.
    //
    // before unwind, to which each continuation that is left is a join, a loop or a function
    Pass{"contify", "continuations that are called once become code", plain<contify>},
    // before all that looks at direct style alone, which is every pass below
    Pass{"unwind", "continuation-passing style becomes direct style with a tape", plain<unwind>},
    // both parts of a derivative are one code now, and have much in common; it is of canonical/, for later
    // passes call it, too
    Pass{"simplify", "constants, exact algebra, common subexpressions, dead code, inlining", plain<simplify>},
    // when equal comparisons are one
    Pass{"tape_narrowing", "outcomes of comparisons are saved instead of numbers that are only compared",
         plain<tape_narrowing>},
    // while tensors are whole: zeros that callers begin adjoints with, and what backward parts read, are known now
    Pass{"inline_expansion", "functions that work on tensors move to their calls, so that kernels join across them",
         plain<inline_expansion>, false, false, false, true},

    // Arrays (array/). Needs direct style; gives fewer loops over elements, each of which goes through an
    // array once, and operations on whole tensors only where printers have routines for them.
    //
    // what is simplified shares loops best; everything below is about loops, whoever wrote them
    Pass{"lower", "tensor operations become loops, those over one index space together",
         [](ir::Module& m, const PipelineOptions& options) {
           if (options.threads <= 1 && !options.device) in_place_adjoints(m);  // while a sum of tensors is no loop
           invariant_integers(m);  // sizes are available where what is saved in loops is used again
           if (lower(m, {.packed = packed(options), .keep_sums = true, .merge = !options.device,
                        .windows = windows(options), .reassociate = options.reassociate}))
             simplify(m);
         }},
    // before all that asks what is in an iteration: the iterations of an inner loop that is none
    Pass{"full_unrolling", "inner loops of a few iterations are written out", plain<full_unrolling>},
    // before passes ask what an iteration changes: zeros for adjoints that are done with are no change
    Pass{"dead_stores", "elements that are not read again are not written", plain<dead_stores>},
    // while loops stand as the program has them: those below fuse them and move parts of them
    Pass{"raise", "loops that add up products of matrices become one product",
         [](ir::Module& m, const PipelineOptions& options) {
           if (!packed(options)) return;
           store_forwarding(m);    // what an iteration stores and adds back is no change
           invariant_integers(m);  // numbers of iterations are known before the loops
           raise_products(m);
         }},
    // before passes ask what an iteration reads: of a tensor as the iteration found it
    Pass{"reads_first", "elements of a tensor are read before it is changed", plain<reads_first>},
    // before register_promotion, which makes a number of the element that the inner loop adds to now
    Pass{"loop_interchange",
         "of two loops the one that a sum goes through becomes the inner one, where that avoids leaps",
         plain<loop_interchange>},
    // before loops are compared: what they still do to tensors differs from iteration to iteration
    Pass{"register_promotion", "an element that a loop works on iteration after iteration becomes a number",
         plain<register_promotion>},
    // once iterations do no more to tensors than they must
    Pass{"loop_fusion", "a loop joins the one before that makes what it reads in the same iteration",
         plain<loop_fusion>},
    // after loop_fusion: what lay between two loops is of one iteration alone, now that they are one
    Pass{"array_contraction", "an array of which iterations use own elements only becomes numbers of the iteration",
         plain<array_contraction>},
    // of the numbers that now stand in place of elements
    Pass{"retiming", "sums at the start of an iteration join the products at the end of the iteration before",
         plain<retiming>},
    // before loops are split: one table serves all parts
    Pass{"invariant_tables", "what inner loops compute anew in every iteration of an outer one is computed once",
         plain<invariant_tables>},
    // before store_forwarding, which makes one of several sums
    Pass{"if_conversion", "sums in the sides of a branch become sums of a choice", plain<if_conversion>},
    // before scatter_to_gather, which looks at what each iteration adds to which element
    Pass{"store_forwarding", "several updates of one element become one, and none where nothing reads it again",
         [](ir::Module& m, const PipelineOptions&) {
           store_forwarding(m);
           dead_stores(m);  // of what fused loops read in the iteration that writes it
         }},
    // before scatter_to_gather: iterations that ask where they are have no common sum
    Pass{"index_set_splitting", "a loop whose iterations ask where they are becomes one loop for each answer",
         plain<index_set_splitting>},
    // once a part's iterations all do the same
    Pass{"scatter_to_gather",
         "loops whose iterations add to neighbouring elements become loops that sum for each element",
         plain<scatter_to_gather>},
    // after scatter_to_gather: these sums are what lower has left for it
    Pass{"join_sums", "sums of what loops have made become loops",
         [](ir::Module& m, const PipelineOptions& options) {
           lower(m, {.packed = packed(options), .merge = !options.device, .windows = windows(options),
                    .reassociate = options.reassociate});
         }},
    // before iterations are shared out: then they have no arrays of their own
    Pass{"deforestation", "what iterations make for rows of their own is made there", plain<deforestation>},
    // when it is settled which loops write what
    Pass{"dead_fills", "tensors that a loop writes from end to end start without values", plain<dead_fills>},
    // when no pass asks for independent iterations any more but to share them out
    Pass{"in_place_stencils", "loops whose iterations read what later ones change work in one memory",
         [](ir::Module& m, const PipelineOptions& options) {
           if (options.threads <= 1 && !options.device) in_place_stencils(m);
         },
         true},
    // when bounds and indices are settled: printers check before a loop those that are known there
    Pass{"invariant_integers", "integers that are the same in all iterations are computed before the loop",
         plain<invariant_integers>},
    // before lanes hide what a nest writes. Not where values are checked: elements that are left out have none
    Pass{"partial_copies", "copies leave out the elements that a loop replaces next",
         [](ir::Module& m, const PipelineOptions& options) {
           if (options.threads <= 1 && !options.device && !options.check_values) partial_copies(m);
         }},

    // Schedule (schedule/). Needs loops over elements; gives the same loops for the target machine: ranges
    // of iterations for its threads, lanes for its vectors. Kernels of a GPU are parallel loops as they are.
    //
    // before parallel, which asks for loops that count up
    Pass{"loop_reversal", "loops that count down though their iterations may run in any order count up",
         [](ir::Module& m, const PipelineOptions& options) { loop_reversal(m, options.reassociate); }, false, false, false, true},
    // all below, and the printers of kernels, ask loops whether they are
    Pass{"parallel", "loops whose iterations may run in any order say so",
         [](ir::Module& m, const PipelineOptions& options) { parallel(m, options.reassociate); }},
    // outermost first: what a thread has runs in lanes
    Pass{"threads", "the iterations of parallel loops are shared out to threads",
         [](ir::Module& m, const PipelineOptions& options) {
           parallelise(m, options.threads, options.vector_lanes, options.reassociate);
           lower(m, {.packed = packed(options), .windows = windows(options),
                     .reassociate = options.reassociate});  // sums of what the threads have
         },
         false, true},
    // before what is done for vectors
    Pass{"vectorise", "independent iterations of a loop run at once, one in each lane of a vector",
         [](ir::Module& m, const PipelineOptions& options) {
           vectorise(m, options.vector_lanes, options.reassociate);
         },
         true},
    // after vectorise, of iterations and of blocks of lanes; before contract, which hides products
    Pass{"sparse_adjoints", "iterations whose adjoint is zero are skipped",
         [](ir::Module& m, const PipelineOptions& options) {
           if (!options.device) sparse_adjoints(m);
         }},
    // of loops that are left one by one; before contract, for what is added to an element is a sum of numbers now
    Pass{"predictive_commoning", "an element that the iteration before has written is handed on as a number",
         [](ir::Module& m, const PipelineOptions& options) {
           if (!options.device) predictive_commoning(m);
         }},
    // after vectorise: no pass forms or moves a product any more; before the memory phase, which places the panels. Not where
    // values are checked: the panels are none
    Pass{"kept_panels", "the panels of a loop-invariant factor are packed once for all iterations",
         [](ir::Module& m, const PipelineOptions& options) {
           if (packed(options) && options.threads <= 1 && !options.device && !options.check_values) kept_panels(m);
         }},
    // when loops say whether they are parallel, and before kernel_fusion, which joins loops over the same iterations
    Pass{"window_gather", "loops over windows that add to elements become loops over these elements", plain<window_gather>, false,
         false, false, true},
    // for the same reason
    Pass{"copy_fusion", "copies and fills become part of the kernels that update a box of them", plain<copy_fusion>, false,
         false, false, true},
    // of nests that no kernel over the same rows has taken, and that have not joined strangers
    Pass{"rematerialise", "elements that kernels read are computed by them again, where fewer bytes move then",
         [](ir::Module& m, const PipelineOptions&) {
           reshape_nests(m);
           kernel_fusion(m, false);
           rematerialise(m);
         },
         false, false, false, true},
    // of loops as they become kernels
    Pass{"kernel_fusion", "kernels over the same rows become one, though they differ in what they have inside",
         [](ir::Module& m, const PipelineOptions&) {
           kernel_fusion(m);
           row_fills(m);
         },
         false, false, false, true},
    // once loops over the same rows are one: what is left differs in size. Not where values are checked, which names the first
    // element that is not finite
    Pass{"horizontal_fusion", "kernels of different sizes that do not need each other become one launch",
         [](ir::Module& m, const PipelineOptions& options) {
           if (!options.check_values) horizontal_fusion(m);
         },
         false, false, false, true},
    // once no pass moves kernels any more
    Pass{"late_fills", "tensors of one number are filled right before their first use", plain<late_fills>, false, false, false, true},
    // once no pass makes or joins kernels any more
    Pass{"device_scalars", "numbers that a GPU makes are used there, and the host asks for them late",
         plain<device_scalars>, false, false, false, true},
    // when products have moved: a quotient that is there in every iteration is no longer in a loop
    Pass{"reciprocals", "of a quotient and the reciprocal of its divisor one is a product", plain<reciprocals>, false, false,
         true},
    // when no pass forms or moves a product or a sum any more
    Pass{"contract", "a product and the sum that takes it are rounded once", plain<contract>, false, false,
         true},
    // once it is known what is computed, and before anything is decided by who reads it
    Pass{"value_checks", "values are looked at for NaN and infinities", plain<value_checks>, false, false,
         false, false, true},
    // last of all that looks at calls: it changes their order in a block, and gives those it splits two names
    Pass{"overlap", "communication starts early and is waited for late, so that it goes on beside computation",
         [](ir::Module& m, const PipelineOptions& options) {
           if (!options.device) overlap(m);  // of a GPU's stream the host does not wait for
         }},

    // Memory (memory/). Needs the operations in their final order; gives each the memory that it may work in,
    // and tapes and functions as they are printed. Nothing that changes the order of uses may follow.
    //
    // marks hold for the order of uses as it is
    Pass{"inplace", "updates of tensors that nothing else reads reuse their memory", plain<inplace>},
    // while what is saved together is in one block
    Pass{"tape_coalescing", "values that are saved together lie on one tape", plain<tape_coalescing>},
    // only now is it known how long blocks are
    Pass{"outline", "long blocks become calls of functions that compilers can handle", [](ir::Module& m, const PipelineOptions& options) { outline(m, options.device); }},
    // last: of the pieces many are equal
    Pass{"merge", "functions that are equal become one", plain<merge>},
};

constexpr std::size_t position(std::string_view name) {
  std::size_t i = 0;
  while (all_passes.at(i).name != name) ++i;
  return i;
}
constexpr std::span<const Pass> from(std::string_view first, std::string_view last) {
  return std::span(all_passes).subspan(position(first), position(last) + 1 - position(first));
}

/// Some passes in a row, with what they need of a graph and what they give: what one phase needs is what the one before gives.
struct Phase {
  std::string_view name;
  ir::Form needs, gives;
  std::span<const Pass> passes;
};
constexpr std::array all_phases{
    Phase{"canonical", ir::forms::staged, ir::forms::staged, from("canonical_loops", "scalar_replacement")},
    Phase{"direct style", ir::forms::staged, ir::forms::direct, from("contify", "inline_expansion")},
    Phase{"arrays", ir::forms::direct, ir::forms::loops, from("lower", "partial_copies")},
    Phase{"schedule", ir::forms::loops, ir::forms::scheduled, from("loop_reversal", "overlap")},
    Phase{"memory", ir::forms::scheduled, ir::forms::placed, from("inplace", "merge")},
};

/// Each pass is of one phase, and each phase gives what the next one needs.
constexpr bool phases_fit() {
  std::size_t passes = 0;
  for (std::size_t i = 0; i < all_phases.size(); ++i) {
    passes += all_phases[i].passes.size();
    if (i > 0 && !all_phases[i - 1].gives.includes(all_phases[i].needs)) return false;
  }
  return passes == all_passes.size();
}
static_assert(phases_fit());

void check_names(const std::vector<std::string>& disabled) {
  std::string known;
  for (const Pass& p : all_passes) known += (known.empty() ? "" : ", ") + std::string(p.name);
  for (const std::string& name : disabled)
    if (std::ranges::none_of(all_passes, [&](const Pass& p) { return p.name == name; }))
      raise("expected the name of a pass (" + known + "), got '" + name + "'");
}

void verify_after(const Phase& phase, const ir::Module& module, ir::Form form) {
  try {
    ir::verify(module, form);
  } catch (const InternalError& e) {
    throw InternalError("after phase '" + std::string(phase.name) + "': " + e.what());
  }
}

/// Runs a pass of the list, unless it is left out; whether it has run or had nothing to do.
bool run(const Pass& pass, ir::Module& module, const PipelineOptions& options) {
  if (std::ranges::find(options.disabled, pass.name) != options.disabled.end()) {
    if (pass.name == "lower" || pass.name == "join_sums") lower(module, {.fuse = false});  // printers know no others
    return false;
  }
  if (pass.for_vectors && options.vector_lanes == 0) return true;
  if (pass.for_threads && options.threads <= 1) return true;
  if (pass.for_fused && !options.fused_multiply_add) return true;
  if (pass.for_device && !options.device) return true;
  if (pass.for_checks && !options.check_values) return true;
  const auto start = std::chrono::steady_clock::now();
  pass.run(module, options);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  if (options.timings) options.timings->push_back({std::string(pass.name), time.count()});
  if (options.verify_each) ir::verify(module);
  if (options.after) options.after(pass.name, module);
  return true;
}

}  // namespace

std::span<const Pass> passes() { return all_passes; }

void run_pipeline(ir::Module& module, const PipelineOptions& options) {
  check_names(options.disabled);
  refuse_lone_messages(module);
  compare_ranks(module);
  if (options.opt_level <= 0) {
    for (ir::Function* f : module.functions()) guard_zeros(*f);
    keep_shape_checks(module);  // what nothing needs is not printed
    if (options.device) unwind(module);  // a GPU runs no continuations; before lower, whose loops unwind does not take
    lower(module, {.fuse = false});
    parallel(module, options.reassociate);  // a GPU runs nothing else
    if (options.check_values) value_checks(module);
    inplace(module);  // without it a loop that fills an array copies the array in each iteration
    return;
  }
  // What a pass that was left out would have seen to may be missing from then on.
  ir::Form kept = all_phases[0].needs;
  if (options.verify_each) ir::verify(module, kept);
  for (const Phase& phase : all_phases) {
    bool all = true;
    for (const Pass& pass : phase.passes) all &= run(pass, module, options);
    kept = all && kept.includes(phase.needs) ? phase.gives : phase.gives.both(kept);
    if (options.verify_each) verify_after(phase, module, kept);
  }
}

}  // namespace lantern::passes
