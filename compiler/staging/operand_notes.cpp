// A value's origin: an operation, an argument, a loop's state, a literal.
#include "lantern/compiler/staging/operand_notes.hpp"

#include <algorithm>
#include <array>

#include "lantern/compiler/staging/region.hpp"

namespace lantern::core {

namespace {

/// A value captured by functions, as the function that made it sees it.
const ir::Value* outermost(Staging& staging, const ir::Value* v) {
  while (v->def == nullptr && v->block->parent == nullptr) {
    const StagedFunction* function = staging.find(v->block->function);
    if (function == nullptr) break;
    const auto found = std::ranges::find_if(function->captures, [&](const auto& c) { return c.second == v; });
    if (found == function->captures.end()) break;
    v = found->first;
  }
  return v;
}

/// A variable that loops in progress carry, as it was before them: as yet nothing assigned it there.
const ir::Value* before_loops(Staging& staging, const ir::Value* v) {
  for (auto r = staging.regions().rbegin(); r != staging.regions().rend(); ++r) v = (*r)->before(v);
  return v;
}

/// "\nPLACE: note: WHAT is TYPE, ORIGIN"
std::string note(Staging& staging, const std::string& what, const ir::Value* v, const Location& otherwise) {
  for (const ir::Value* from = nullptr; from != v;) {
    from = v;
    v = outermost(staging, before_loops(staging, v));
  }
  std::string text = what, origin;
  Location place;
  if (v->def != nullptr && v->def->is(Opcode::constant_)) {
    origin = ", a literal";
    place = otherwise;
  } else if (v->def != nullptr) {
    const bool construct =
        v->def->is(Opcode::branch_) || v->def->is(Opcode::loop_) || v->def->is(Opcode::call_);
    place = v->def->loc;
    origin = construct ? ", made here" : ", made by '" + std::string(ir::info(v->def->code).name) + "' here";
  } else if (v->block->parent != nullptr) {
    place = v->block->parent->loc;
    origin = ", the state of this loop";
  } else {
    place = v->block->function->loc;
    text += ", argument " + std::to_string(v->index + 1) + " of '" + v->block->function->name + "',";
  }
  if (!place.known()) place = otherwise, origin = "";
  if (!place.known()) return "";
  return "\n" + place.str() + ": note: " + text + " is " + v->type.str() + origin;
}

bool infix(Opcode code) {
  const ir::OpInfo& row = ir::info(code);
  return row.elementwise && row.arity == 2 && code != Opcode::min_ && code != Opcode::max_ &&
         code != Opcode::imin_ && code != Opcode::imax_ && code != Opcode::pow_ && code != Opcode::atan2_;
}

}  // namespace

std::string operand_notes(Staging& staging, const Operation& op, std::span<const Datum> operands) {
  static constexpr std::array<const char*, 6> ordinals{"first ",  "second ", "third ",
                                                       "fourth ", "fifth ",  "sixth "};
  static constexpr std::array<const char*, 2> sides{"left ", "right "};
  std::string notes;
  for (std::size_t i = 0; i < operands.size() && i < ordinals.size(); ++i) {
    const std::string which = operands.size() == 1 ? "" : infix(op.code) ? sides.at(i) : ordinals.at(i);
    const std::string what = "the " + which + "operand";
    const Datum& d = operands[i];
    if (d.is_node())
      notes += note(staging, what, d.node(), op.loc);
    else if (d.is_literal() && op.loc.known())
      notes += "\n" + op.loc.str() + ": note: " + what + " is " + d.type().str() + ", a literal";
  }
  return notes;
}

std::string value_notes(Staging& staging, const NamedValues& values, const Location& otherwise) {
  std::string notes;
  for (const auto& [name, value] : values) notes += note(staging, name, value, otherwise);
  return notes;
}

}  // namespace lantern::core
