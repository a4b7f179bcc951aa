// Innermost loops first: what is written out may leave the loop around an innermost one.
#include "lantern/compiler/passes/array/full_unrolling.hpp"

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/canonical/unroll.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

constexpr std::int64_t most_unrolled = 8;
constexpr std::size_t most_unrolled_operations = 400;  ///< of all iterations together

/// How many iterations are written out; 0 where the loop stays.
std::int64_t iterations_to_write(Op* loop) {
  const auto iterations = known_trip_counts(loop);
  if (!iterations || *iterations < 1 || *iterations > most_unrolled || loop->integer != 0 ||
      !ends_by_comparison(loop) || loops_around(loop->parent).empty())
    return 0;
  std::size_t size = 0;
  bool fits = true;
  ir::walk(loop->blocks[1], [&](const Op* op) {
    ++size;
    fits &= !op->is(Opcode::loop_, Opcode::push_, Opcode::pop_, Opcode::call_);
  });
  return fits && size * static_cast<std::size_t>(*iterations) <= most_unrolled_operations ? *iterations : 0;
}

}  // namespace

void full_unrolling(ir::Module& module) {
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    for (bool any = true; any;) {
      Renaming instead;
      std::vector<Op*> gone;
      for (Op* loop : loops_in(*f)) {
        const std::int64_t iterations = iterations_to_write(loop);
        if (iterations == 0) continue;
        instead.merge(ir::pairs(loop->results, unrolled(loop, iterations)));
        gone.push_back(loop);
      }
      any = !gone.empty();
      if (!any) break;
      ir::replace_uses(f->body, instead);
      erase(gone);
      simplify(module);  // numbers of iterations, and what depends on them, are known
    }
  }
}

}  // namespace lantern::passes
