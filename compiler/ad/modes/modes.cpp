// Which class a mode is, and how a gradient is taken by it.
#include "lantern/compiler/ad/modes/modes.hpp"

#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/ad/modes/two_pass.hpp"
#include "lantern/compiler/ad/staged_reverse.hpp"
#include "lantern/compiler/ad/unit.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

namespace {

/// A gradient by a mode over the graph: see TwoPass::gradient.
template <auto make>
Datums over_graph(Staging& s, const Unit& unit, bool value, const Location& loc) {
  const auto mode = make(s, fresh_number());
  const Ending ending{*mode};
  return mode->gradient(unit, value, loc);
}

/// How a mode is run by its rule, by its fast path (null: what mode::reverse runs), and over the graph (null: not).
struct Entry {
  std::shared_ptr<EagerReverse> (*literal)(std::uint64_t tag);
  std::shared_ptr<EagerReverse> (*fast)(std::uint64_t tag);
  Datums (*staged)(Staging& s, const Unit& unit, bool value, const Location& loc);
  const char* name;  ///< of gradients in generated code; without those, the mode's
};

Entry entry_of(mode m) {
  switch (m) {
    case mode::cps:
      return {make_reverse_by_shift, nullptr, over_graph<make_staged_cps>, "grad"};
    case mode::global_tape:
      return {make_global_tape, nullptr, over_graph<make_staged_global_tape>, "global_tape_grad"};
    case mode::functional:
      return {make_functional, make_functional, over_graph<make_staged_functional>, "functional_grad"};
    case mode::continuation:
      return {make_continuation, nullptr, over_graph<make_staged_continuation>, "continuation_grad"};
    case mode::taped:
      return {make_taped, make_fast_taped, over_graph<make_staged_taped>, "taped_grad"};
    case mode::checkpointed:
      return {make_checkpointed, nullptr, over_graph<make_staged_checkpointed>, "checkpointed_grad"};
    case mode::closures:
      return {make_closures, nullptr, nullptr, "closures"};
    case mode::checkpointed_closures:
      return {make_checkpointed_closures, make_checkpointed_closures, nullptr, "checkpointed_closures"};
    case mode::divide_and_conquer:
      return {make_divide_and_conquer, make_divide_and_conquer, over_graph<make_staged_divide_and_conquer>, "grad"};
    default:
      return {make_reverse_by_shift, nullptr, over_graph<make_staged_reverse>, "grad"};
  }
}

/// The gradient as a function (arguments...) -> (value, adjoints...), called.
Datums staged_gradient(const Entry& entry, Staging& s, const Program& program, const Datums& arguments,
                       const Active& active, bool value, const Location& loc) {
  if (!entry.staged) {
    const std::string grad = std::string("grad<mode::") + entry.name + ">";
    raise_at(loc, grad + ": expected to be run eagerly, got a program that is being staged; write eager(" + grad +
                      "(f)), or grad<mode::global_tape>(f), which treats a call of a staged function in the same way");
  }
  return derivative_unit(s, entry.name, program, arguments, active, Beside::nothing, {}, loc, [&](const Unit& unit) {
    require_scalar(unit.primal.result_types, loc);
    return entry.staged(s, unit, value, loc);
  });
}

}  // namespace

Datums gradient(mode m, form how, const Program& program, const Datums& arguments, const Active& active, bool value,
                const Location& loc) {
  if (m == mode::forward) {
    Datums out = forward_gradient(program, arguments, active, how == form::literal, loc);
    if (!value) out.erase(out.begin());
    return out;
  }
  const Entry entry = entry_of(m);
  if (Staging* s = context().staging) return staged_gradient(entry, *s, program, arguments, active, value, loc);
  const auto make = how == form::literal ? entry.literal : entry.fast;
  return make ? gradient_by(*make(fresh_number()), program, arguments, active, value, loc)
              : eager_gradient(program, arguments, active, value, loc);
}

}  // namespace lantern::core::ad
