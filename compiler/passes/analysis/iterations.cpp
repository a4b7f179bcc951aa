// How much work an iteration is, and what it does with the loop's state.
#include "lantern/compiler/passes/analysis/iterations.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/ir/external.hpp"
#include "lantern/ir/library_function.hpp"

namespace lantern::passes {

namespace {

std::int64_t elements(const Value* v) {
  constexpr std::int64_t usual = 8;  // of a dimension that is not known
  std::int64_t n = 1;
  if (v->type.is_tensor())
    for (const std::int64_t d : v->type.dims())
      n *= d == ir::dynamic ? usual : std::clamp<std::int64_t>(d, 1, 1024);
  return n;
}

}  // namespace

std::int64_t weight(const Op& op) {
  constexpr std::int64_t usual_trip_count = 4, most_iterations = 4096, function = 10;
  switch (op.code) {
    case Opcode::constant_:
    case Opcode::yield_:
    case Opcode::dim_:
    case Opcode::take_:
    case Opcode::slice_:
    case Opcode::reshape_:
      return 0;
    case Opcode::loop_:
      return std::min(constant_trip_count(&op).value_or(usual_trip_count), most_iterations) *
             (1 + weight(op.blocks[0]) + weight(op.blocks[1]));
    case Opcode::branch_:
      return 1 + std::max(weight(op.blocks[0]), weight(op.blocks[1]));
    case Opcode::call_:
      return 2 + weight(op.callee->body);
    case Opcode::get_:
    case Opcode::set_:
    case Opcode::add_at_:
      return 1;
    default: {
      if (op.results.empty()) return 1;
      std::int64_t n = elements(op.result());
      for (const Value* v : op.operands) n = std::max(n, elements(v));
      return ir::is_library_function(op.code) ? function * n : n;
    }
  }
}

std::int64_t weight(const Block* block) {
  std::int64_t sum = 0;
  for (const Op* op : block->ops) sum += weight(*op);
  return std::min<std::int64_t>(sum, std::int64_t{1} << 32);
}

namespace {

ir::Combine of_extreme(Opcode code) {
  switch (code) {
    case Opcode::max_:
    case Opcode::imax_:
      return ir::Combine::max;
    case Opcode::min_:
    case Opcode::imin_:
      return ir::Combine::min;
    case Opcode::land_:
      return ir::Combine::all;
    default:
      return ir::Combine::any;
  }
}

}  // namespace

Combination combination(const Uses& uses, const Op* loop, std::size_t state) {
  Combination found{ir::Combine::none, state_use(uses, loop, state)};
  if (!found.use) return found;
  const LoopStateSummary& use = *found.use;
  const ir::Type& type = loop->blocks[1]->params[state]->type;
  if (use.extreme) {
    if (use.only_extreme() && type.is_scalar()) found.combine = of_extreme(*use.extreme);
  } else if (const ir::Combine known = ir::combine(*loop, state); known != ir::Combine::none) {
    found.combine = known;
  } else if (type.is_tensor() && !use.whole && (use.only_read() || no_loop_carried_dependence(use.accesses(), loop))) {
    found.combine = ir::Combine::element;
  } else if (use.only_summed() && (type.is_scalar() || type.is_tensor()) &&
             type.element() != ir::Kind::boolean) {
    found.combine = ir::Combine::sum;
  }
  return found;
}

namespace {

/// Whether each piece of a loop's state counts, or is as `may` says.
template <class May>
bool has_combine_for_all_state(const Op* loop, const May& may) {
  const auto count = counts(loop);
  if (!count) return false;
  const Uses uses(loop);
  for (std::size_t i = 0; i < loop->operands.size(); ++i)
    if (i != count->index && !step_of(loop, i) && !may(combination(uses, loop, i))) return false;
  return true;
}

/// Whether running the block may do what is to be in order, print for instance, in functions that it calls too.
bool has_ordered_effects(Block* block) {
  std::vector<Block*> todo{block};
  std::unordered_set<const ir::Function*> seen;
  bool found = false;
  while (!todo.empty() && !found) {
    Block* const b = todo.back();
    todo.pop_back();
    ir::walk(b, [&](const Op* op) {
      found |= op->is(Opcode::print_) || ir::is_ordered_call(*op);
      if (op->callee && seen.insert(op->callee).second) todo.push_back(op->callee->body);
    });
  }
  return found;
}

}  // namespace

bool is_lexically_forward(const LoopStateSummary& use, const Op* loop) {
  constexpr std::size_t most_pairs = 400;
  const std::vector<const Op*> all = use.accesses();
  if (use.whole || use.extreme || use.sum || use.updates.empty() || all.size() * all.size() > most_pairs) return false;
  const auto in_inner_loop = [&](const Op* op) {
    const Op* around = op->parent->parent;
    while (around->is(Opcode::branch_)) around = around->parent->parent;
    return around != loop;
  };
  if (std::ranges::any_of(all, in_inner_loop)) return false;
  std::unordered_map<const Op*, std::size_t> place;  // lanes take one side, then the other
  ir::walk(loop->blocks[1], [&](const Op* op) { place.emplace(op, place.size()); });
  const auto sums = [](const Op* op) { return op->is(Opcode::add_at_) && op->loc.part == ir::Part::backward; };
  for (const Op* a : use.updates)
    for (const Op* b : all) {
      const bool fine = a == b                    ? no_loop_carried_dependence({a}, loop)
                        : sums(a) && sums(b)      ? true
                        : place.at(a) < place.at(b) ? no_alias(*a, *b, loop, Iteration::earlier)
                                                  : no_alias(*b, *a, loop, Iteration::earlier);
      if (!fine) return false;
    }
  return true;
}

bool is_doall(const Op* loop) {
  return has_combine_for_all_state(loop, [](const Combination& c) { return c.combine != ir::Combine::none; });
}

bool is_doall_write_only(const Op* loop) {
  // What iterations print keeps its order.
  if (has_ordered_effects(loop->blocks[1]) || !ends_by_comparison(loop)) return false;
  return has_combine_for_all_state(loop, [](const Combination& c) {
    const bool gives = c.combine == ir::Combine::sum || c.combine == ir::Combine::element;
    return gives && !c.use->whole && c.use->reads.empty();
  });
}

}  // namespace lantern::passes
