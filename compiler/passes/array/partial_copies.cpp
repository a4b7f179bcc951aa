// Which nests replace a box of what a loop around hands on, and the copy that leaves the box out.
#include "lantern/compiler/passes/array/partial_copies.hpp"

#include <optional>
#include <vector>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/array/nest.hpp"

namespace lantern::passes {

namespace {

/// The elements that a nest sets, counted as they lie in memory.
struct Box {
  IndexForm first;               ///< the first one
  std::vector<IndexForm> steps;  ///< from an iteration of a level to the next
  std::size_t row = 0;           ///< the level whose iterations set adjacent elements
};

std::optional<Box> box_of(const Nest& nest, const Op& set, const Value* tensor) {
  const Block* const body = nest.outer()->parent;
  Box box;
  IndexForm stride(1);
  for (auto d = static_cast<std::size_t>(tensor->type.rank()); d-- > 0;) {
    if (!(set.operands[1 + d]->type == ir::I64)) return {};
    box.first += index_form(set.operands[1 + d]) * stride;
    stride = stride * size_form(tensor, d);
  }
  // Tensors keep their sizes.
  const auto is_steady = [&](const IndexForm& f) { return is_invariant(f, body, nullptr, true); };
  if (!is_invariant(box.first, body, &nest, true)) return {};
  std::optional<std::size_t> row;
  for (const Nest::Level& level : nest.levels) {
    const auto split = box.first.split(level.counter());
    const IndexForm start = form_of(level.range.first) + IndexForm(level.range.ahead);
    if (!split || !is_steady(split->coefficient) || !is_steady(start) || !is_steady(form_of(level.range.last)))
      return {};
    if (split->coefficient == IndexForm(1)) row = box.steps.size();
    box.steps.push_back(split->coefficient);
    box.first = split->rest + split->coefficient * start;
  }
  if (!row) return {};
  box.row = *row;
  return box;
}

/// Lets a loop start from a partial copy; whether it was changed.
bool copy_outside_box(Op* loop, std::size_t state, const Uses& uses) {
  Value* const tensor = loop->operands[state];
  const Op* const around = loop->parent->parent;
  if (!tensor->type.is_tensor() || tensor->def || tensor->block != loop->parent || !around ||
      !around->is(Opcode::loop_) || loop->parent != around->blocks[1])
    return false;
  const auto nest = nest_of(loop, uses);
  const Op* const set = nest ? only_write(*nest, uses, state, false) : nullptr;
  const auto box = set && set->is(Opcode::set_) ? box_of(*nest, *set, tensor) : std::nullopt;
  if (!box) return false;
  ir::Builder b = ir::Builder::before(loop);
  const auto count = [&](const Nest::Level& level) {
    return iterations_between(b, materialise(b, level.range.first), materialise(b, level.range.last));
  };
  std::vector<Value*> operands{tensor, materialise(b, box->first), count(nest->levels[box->row])};
  for (std::size_t k = 0; k < nest->depth(); ++k) {
    if (k == box->row) continue;
    operands.push_back(count(nest->levels[k]));
    operands.push_back(materialise(b, box->steps[k]));
  }
  loop->operands[state] = b.op(Opcode::copy_, std::move(operands), {tensor->type})->result();
  return true;
}

}  // namespace

void partial_copies(ir::Module& module) {
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    std::optional<Uses> uses;
    for (Op* loop : loops_in(*f)) {
      if (!loop->parent->parent) continue;
      for (std::size_t i = 0; i < loop->operands.size(); ++i) {
        if (!loop->operands[i]->type.is_tensor()) continue;
        if (!uses) uses.emplace(*f);
        copy_outside_box(loop, i, *uses);
      }
    }
  }
}

}  // namespace lantern::passes
