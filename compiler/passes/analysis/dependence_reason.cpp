// The first pair of accesses that the dependence test cannot distinguish, described.
#include "lantern/compiler/passes/analysis/dependence_reason.hpp"

#include "lantern/compiler/passes/analysis/index_form.hpp"

namespace lantern::passes {

namespace {

std::string at_line(const Op& op) { return op.loc.known() ? " at line " + std::to_string(op.loc.line) : ""; }
std::string quoted(const char* name) { return "'" + std::string(name) + "'"; }

/// What of an index the dependence test does not look into; empty where it understands all of it.
std::string not_understood(const Op& access, const Op* loop) {
  const auto rank = static_cast<std::size_t>(access.operands[0]->type.rank());
  for (std::size_t d = 1; d <= rank; ++d)
    for (const Unknown& u : index_form(access.operands[d]).unknowns()) {
      const Op* def = u.value->def;
      if (u.is_size() || !def || !made_in(u.value, loop->blocks[1])) continue;
      if (def->is(Opcode::get_)) {
        const char* from = def->operands[0]->name;
        return "is read from " + (from ? quoted(from) : std::string("an array"));
      }
      if (def->is(Opcode::rem_)) return "is a remainder, which may be the same in two iterations";
      if (def->is(Opcode::div_)) return "is a quotient, which may be the same in two iterations";
      if (def->is(Opcode::cast_)) return "is made of another kind of number";
      if (def->is(Opcode::loop_)) return "is what the loop" + at_line(*def) + " ends with";
      if (def->is(Opcode::branch_, Opcode::select_)) return "depends on a condition";
      if (def->is(Opcode::imin_, Opcode::imax_)) return "is a largest or smallest number";
    }
  return {};
}

std::string of_accesses(const LoopStateSummary& use, const Op* loop, const std::string& name) {
  for (const Op* write : use.updates)
    for (const Op* other : use.accesses()) {
      if (no_loop_carried_dependence(other == write ? std::vector<const Op*>{write} : std::vector<const Op*>{write, other},
                        loop))
        continue;
      const bool sets = write->is(Opcode::set_);
      for (const Op* access : {write, other})
        if (const std::string why = not_understood(*access, loop); !why.empty()) {
          if (other->is(Opcode::get_))
            return "an element that one iteration " + std::string(sets ? "sets" : "adds to") + at_line(*write) +
                   " may be what another reads" + at_line(*other) + ": the index" + at_line(*access) + " " +
                   why;
          return "two iterations may set one element" + at_line(*access) + ", where the index " + why +
                 "; what is only added, " + name + "[k] += v, may be added in any order";
        }
      if (other == write)
        return "each iteration sets the same element" + at_line(*write) +
               "; of a sum, add up a number and set it afterwards";
      if (!other->is(Opcode::get_)) return "two iterations may set one element" + at_line(*write);
      return "the element that is read" + at_line(*other) + " may be one that another iteration sets" +
             at_line(*write) + "; to read what was there before the loop, read from a copy, " + name +
             "_before = " + name;
    }
  return {};
}

/// The user's name for a piece of a loop's state; empty: none.
std::string state_name(const Op* loop, std::size_t state) {
  const Value* next = loop->blocks[1]->ops.back()->operands[state];
  for (const Value* v : {const_cast<const Value*>(loop->blocks[1]->params[state]),
                         const_cast<const Value*>(loop->results[state]),
                         const_cast<const Value*>(loop->operands[state]), next})
    if (v->name && *v->name) return v->name;
  return {};
}

}  // namespace

std::string kept_in_order(const Op* loop, std::size_t state) {
  const std::string name = state_name(loop, state);
  return "the sum " + (name.empty() ? "" : "'" + name + "' ") + "is to keep its order";
}

std::string why_dependent(const Uses& uses, const Op* loop, std::size_t state) {
  const Value* p = loop->blocks[1]->params[state];
  const Value* next = loop->blocks[1]->ops.back()->operands[state];
  const std::string name = state_name(loop, state);
  const std::string what = name.empty() ? p->type.is_tensor() ? "an array" : "a number" : "'" + name + "'";
  const std::string head = "an iteration needs " + what + " of the iteration before";
  const auto use = state_use(uses, loop, state);
  if (p->type.is_tensor()) {
    if (use && !use->whole) {
      const std::string pair = of_accesses(*use, loop, name.empty() ? "y" : name);
      return pair.empty() ? head : head + ": " + pair;
    }
    return head + ": iterations change it, and all of it is used or replaced" +
           (next->def ? at_line(*next->def) : "");
  }
  if (next->def && next->def->is(Opcode::branch_, Opcode::select_))
    return head + ": a condition" + at_line(*next->def) +
           " says what it becomes; sums under a condition, max and min, AND and OR may be taken in any order";
  return head + ", from which it is computed" + (next->def ? at_line(*next->def) : "");
}

}  // namespace lantern::passes
