// A source in parts: what a huge module becomes.
//
// Straight-line code and code with loops lie in different parts, since compilers are to treat them differently. Each
// part has the whole prelude, whose functions are static, and declares what it calls of other parts.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "lantern/codegen/statement_printer.hpp"
#include "lantern/codegen/unit.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::codegen {

using ir::Op;
using ir::Opcode;
using ir::Value;

namespace {

/// Becomes plain scalar code: no loop, in it or in what it calls of the prelude.
bool is_straight_line(const ir::Function& f) {
  bool straight = true;
  const auto scalar = [](const Value* v) { return v->type.is_scalar() && !v->type.is_vector(); };
  ir::walk(f.body, [&](const Op* op) {
    switch (op->code) {
      case Opcode::constant_:
      case Opcode::branch_:
      case Opcode::call_:
      case Opcode::yield_:
      case Opcode::get_:
        break;
      case Opcode::set_:
      case Opcode::add_at_:
        straight &= updates_in_place(*op);
        break;
      default:
        straight &= op->blocks.empty() && ir::info(op->code).effect == ir::Effect::none &&
                    std::ranges::all_of(op->operands, scalar) && std::ranges::all_of(op->results, scalar);
    }
    return straight;
  });
  return straight;
}

}  // namespace

std::vector<SourcePart> Unit::parts(std::size_t bytes) {
  discover();
  if (infos_.at(module_.entry).closure) throw InternalError("the entry of a module is a continuation");
  struct Draft {
    std::string declarations, definitions;
    std::unordered_set<const ir::Function*> known;
    bool straight_line = false;
  };
  std::vector<Draft> drafts;
  std::size_t open[2] = {0, 0};  // the part that grows, plus one, of each kind
  const auto draft = [&](bool straight_line) -> Draft& {
    std::size_t& at = open[straight_line ? 1 : 0];
    if (at == 0 || drafts[at - 1].definitions.size() >= bytes) {
      drafts.emplace_back().straight_line = straight_line;
      at = drafts.size();
    }
    return drafts[at - 1];
  };
  for (const ir::Function* f : functions_) {
    Draft& part = draft(is_straight_line(*f));
    const auto [definition, callees] = printed(f);
    part.known.insert(f);
    for (const ir::Function* callee : callees)
      if (part.known.insert(callee).second)
        part.declarations += StatementPrinter(*this, *callee).signature() + ";\n";
    part.definitions += definition;
    // The way in from outside stands beside the entry.
    if (f == module_.entry) part.definitions += entry_wrapper();
  }
  const std::string head = title(public_name_, false) + prelude_.text();
  std::vector<SourcePart> parts;
  for (const Draft& d : drafts) parts.push_back({head + d.declarations + d.definitions, d.straight_line});
  return parts;
}

}  // namespace lantern::codegen
