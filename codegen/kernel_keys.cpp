// Keys: the row that all sums of an iteration of a kernel go to, as a function of the iteration's number.
#include <algorithm>
#include <string>
#include <utility>

#include "lantern/codegen/statement_printer.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::codegen {

namespace {

/// Whether a number in an iteration can be computed before the others: from its index, from what is captured and from
/// tensors that the kernel does not write, by operations that do not fail, behind no branch: what a branch guards may read
/// what is not there.
bool is_known_at_once(const Value* v, const Op& loop, const Value* index, const auto& is_inside) {
  if (v == index || ir::visible_from(v, loop.parent)) return true;
  if (!v->def || !v->type.is_scalar()) return false;
  for (const ir::Block* b = v->def->parent; b != loop.blocks[1]; b = b->parent->parent)
    if (!b->parent->is(Opcode::loop_) || b == b->parent->blocks[0]) return false;
  switch (v->def->code) {
    case Opcode::constant_: return true;
    case Opcode::get_: {
      const Value* t = v->def->operands[0];
      const auto same = [&](const Value* o) { return o->type.is_tensor() && storage_root(o) == storage_root(t); };
      if (!ir::visible_from(t, loop.parent) || std::ranges::any_of(loop.operands, same)) return false;
      for (std::size_t i = 1; i < v->def->operands.size(); ++i)
        if (!is_inside(*v->def, i) || !is_known_at_once(v->def->operands[i], loop, index, is_inside)) return false;
      return true;
    }
    case Opcode::add_:
    case Opcode::sub_:
    case Opcode::cast_:
      return std::ranges::all_of(v->def->operands, [&](const Value* o) { return is_known_at_once(o, loop, index, is_inside); });
    default: return false;
  }
}

}  // namespace

/// The first index of all elements that an iteration adds to, where that is known at once; null where there is none.
const Value* StatementPrinter::key_of(const Kernel& kernel) const {
  const Op& loop = *kernel.nest.front();
  if (kernel.nest.size() != 1 || unit_.options().check_nan) return nullptr;
  const Value* key = nullptr;
  bool one = true;
  ir::walk(loop.blocks[1], [&](const Op* op) {
    if (op->is(Opcode::add_at_)) {
      one &= op->operands.size() > 2 && (!key || key == op->operands[1]);
      key = op->operands[1];
    } else if (op->in_place) {
      one &= op->is(Opcode::set_);
    }
  });
  const auto is_inside = [&](const Op& op, std::size_t operand) {
    return ranges_ && ranges_->of(op, operand).is_inside();
  };
  const Value* index = passes::counted(&loop)->number;
  return one && key && key != index && !ir::visible_from(key, loop.parent) && is_known_at_once(key, loop, index, is_inside) ? key : nullptr;
}

/// The key of an iteration by its number, as a function in the kernel.
std::string StatementPrinter::key_function(const Kernel& kernel, const Value* key, const Expression& first) {
  const Op& loop = *kernel.nest.front();
  const std::string name = names_.unique("key"), row = names_.unique("at_row");
  const auto bindings = bindings_;
  const Place outside = std::exchange(place_, Place::thread);
  open("const auto " + name + " = [&](int64_t " + row + ") {");
  bind(passes::counted(&loop)->number, first + Expression(row));
  const auto compute = [&](const auto& self, const Value* v) -> void {
    if (bindings_.contains(v) || !v->def) return;
    for (const Value* o : v->def->operands) self(self, o);
    current_ = v->def;
    operation(*v->def);
  };
  compute(compute, key);
  line("return " + text(key) + ";");
  close("};");
  place_ = outside;
  bindings_ = bindings;
  return name;
}

}  // namespace lantern::codegen
