// Each product by itself: the same factor packed for two products is packed twice, as its rows or columns ask for.
#include "lantern/compiler/passes/schedule/kept_panels.hpp"

#include <algorithm>
#include <vector>

#include "lantern/compiler/passes/analysis/gemm.hpp"
#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

/// The outermost loop around an operation in which a value is not made, or null.
Op* outermost_loop(const Op& op, const Value* v) {
  Op* found = nullptr;
  for (const Block* block = op.parent; block && block->parent; block = block->parent->parent) {
    Op* const around = block->parent;
    if (std::ranges::any_of(around->blocks, [&](const Block* b) { return made_in(v, b); })) break;
    if (around->is(Opcode::loop_)) found = around;
  }
  return found;
}

/// Memory for the panels of k by n numbers (lt_gemm_packing_once), of which none are packed yet.
Value* memory(ir::Builder& b, const ir::Type& element, Value* n, Value* k) {
  Value* const panels = b.mul({k, b.add({n, b.integer(32)})});
  Value* const size = b.add({panels, b.integer(64)});
  Value* const fresh = b.uninitialised(ir::Type::tensor(element.element(), {ir::dynamic}), {size});
  return b.emit(Opcode::set_, {fresh, b.integer(0), b.number(0, element)});
}

/// A product of whole matrices becomes one of parts, with memory for the second one's panels.
void keep_panels(Op& op) {
  const ir::Notation n = *ir::concrete_notation(op);
  const auto p = matrix_product(n);
  if (!p) return;
  Value *const c = op.operands[0], *const x = op.operands[p->x], *const y = op.operands[p->y];
  Op* const loop = outermost_loop(op, y);
  if (!loop) return;
  const bool x_turned = n.operands[p->x].at[0].is(p->k), y_turned = n.operands[p->y].at[0].is(p->j);
  const auto dim = [](ir::Builder& b, Value* t, bool second) { return b.emit(Opcode::dim_, {t}, second ? 1 : 0); };
  const ir::Type element(c->type.element());
  ir::Builder before = ir::Builder::before(loop, op.loc), b = ir::Builder::before(&op);
  Value* const panels = memory(before, element, dim(before, y, !y_turned), dim(before, y, y_turned));

  // A matrix that begins as zeros tells its sizes: the product then covers it as a whole.
  const Op* const fill = c->def && c->def->is(Opcode::fill_) ? c->def : nullptr;
  Value *const rows = fill ? fill->operands[1] : dim(b, c, false), *const columns = fill ? fill->operands[2] : dim(b, c, true);
  Value *const zero = b.integer(0), *const one = b.integer(1), *const sums = dim(b, y, y_turned);
  Value *const x_row = dim(b, x, true), *const y_row = dim(b, y, true);
  std::vector<Value*> operands{c, x, y, b.number(1, element), zero, columns};
  operands.insert(operands.end(), {zero, x_turned ? one : x_row, x_turned ? x_row : one});
  operands.insert(operands.end(), {zero, y_turned ? one : y_row, y_turned ? y_row : one});
  operands.insert(operands.end(), {rows, columns, sums, panels});
  op.operands = std::move(operands);
  op.code = Opcode::gemm_;
  op.text = nullptr;
  op.integer = 0;
}

}  // namespace

void kept_panels(ir::Module& module) {
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    std::vector<Op*> products;
    ir::walk(f->body, [&](Op* op) {
      if (op->is(Opcode::add_einsum_, Opcode::add_matmul_)) products.push_back(op);
    });
    for (Op* op : products) keep_panels(*op);
  }
}

}  // namespace lantern::passes
