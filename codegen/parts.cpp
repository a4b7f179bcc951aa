// A source in parts: what a huge module becomes.
//
// Straight-line code and code with loops lie in different parts, since compilers are to treat them
// differently. Each part has the whole prelude, whose functions are static, and declares what it calls of
// other parts. Only the prelude's routines, products of matrices, are a part by themselves: compiled in each part that
// calls one, they would take as long as the part.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "lantern/codegen/statement_printer.hpp"
#include "lantern/codegen/unit.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/library_function.hpp"

namespace lantern::codegen {

namespace {

/// Straight-line code is scalar, without a loop, in it or in what it calls of the prelude.
PartKind kind_of(const ir::Function& f) {
  // Values wait for a call to return in memory, whatever a compiler does, and the call takes longer than they
  // do.
  constexpr std::size_t operations_per_call = 32;
  bool straight = true;
  std::size_t calls = 0, operations = 0;
  const auto scalar = [](const Value* v) { return v->type.is_scalar() && !v->type.is_vector(); };
  ir::walk(f.body, [&](const Op* op) {
    ++operations;
    calls += ir::is_library_function(op->code) || op->is(Opcode::call_);
    if (ir::is_write(*op))
      straight &= op->in_place;
    else if (!op->is(Opcode::constant_, Opcode::branch_, Opcode::call_, Opcode::yield_, Opcode::get_))
      straight &= ir::is_pure(*op) && std::ranges::all_of(op->operands, scalar) && std::ranges::all_of(op->results, scalar);
    return straight;
  });
  if (!straight) return PartKind::general;
  return calls * operations_per_call >= operations ? PartKind::calls : PartKind::straight_line;
}

}  // namespace

std::vector<SourcePart> Unit::parts(std::size_t bytes) {
  discover();
  if (infos_.at(module_.entry).closure) throw InternalError("the entry of a module is a continuation");
  struct Draft {
    std::string declarations, definitions;
    std::unordered_set<const ir::Function*> known;
    PartKind kind = PartKind::general;
  };
  std::vector<Draft> drafts;
  std::array<std::size_t, 3> open{};  // the part that grows, plus one, of each kind
  const auto draft = [&](PartKind kind) -> Draft& {
    std::size_t& at = open.at(static_cast<std::size_t>(kind));
    if (at == 0 || drafts[at - 1].definitions.size() >= bytes) {
      drafts.emplace_back().kind = kind;
      at = drafts.size();
    }
    return drafts[at - 1];
  };
  for (const ir::Function* f : functions_) {
    Draft& part = draft(kind_of(*f));
    const auto [definition, kernels, callees] = printed(f);
    part.known.insert(f);
    for (const ir::Function* callee : callees)
      if (part.known.insert(callee).second)
        part.declarations += forward_declaration(*callee);
    part.definitions += definition;
    if (infos_.at(f).forked) part.definitions += StatementPrinter(*this, *f).team_runner();
    // The way in from outside is beside the entry.
    if (f == module_.entry) part.definitions += entry_wrapper();
  }
  const std::string before = title(public_name_, options_, target_, {}), after = contraction(options_);
  std::vector<SourcePart> parts;
  const bool shared = drafts.size() > 1 && prelude_.has_routines();
  if (shared) parts.push_back({before + prelude_.text(Prelude::Routines::here, target_.internal()) + after});
  const std::string head =
      before + (shared ? prelude_.text(Prelude::Routines::elsewhere, target_.internal()) : prelude_.text()) + after;
  for (const Draft& d : drafts) parts.push_back({head + d.declarations + d.definitions, d.kind});
  return parts;
}

}  // namespace lantern::codegen
