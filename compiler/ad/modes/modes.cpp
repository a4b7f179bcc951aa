// Which handler a mode is, and how a gradient is taken by it.
#include "lantern/compiler/ad/modes/modes.hpp"

#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/ad/modes/two_pass.hpp"
#include "lantern/compiler/ad/unit.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

namespace {

/// Of a mode, the handlers by its rule, by its fast path, and over the graph; null: what mode::reverse runs.
struct Entry {
  const char* name;
  std::shared_ptr<EagerReverse> (*literal)(std::uint64_t tag);
  std::shared_ptr<EagerReverse> (*fast)(std::uint64_t tag);
  std::shared_ptr<TwoPass> (*staged)(Staging& staging, std::uint64_t tag);
};

Entry entry_of(mode m) {
  switch (m) {
    case mode::global_tape:
      return {"global_tape", make_global_tape, nullptr, make_staged_global_tape};
    case mode::functional:
      return {"functional", make_functional, make_functional, make_staged_functional};
    case mode::continuation:
      return {"continuation", make_continuation, nullptr, make_staged_continuation};
    case mode::taped:
      return {"taped", make_taped, make_fast_taped, make_staged_taped};
    case mode::checkpointed:
      return {"checkpointed", make_checkpointed, nullptr, make_staged_checkpointed};
    case mode::closures:
      return {"closures", make_closures, nullptr, nullptr};
    case mode::checkpointed_closures:
      return {"checkpointed_closures", make_checkpointed_closures, make_checkpointed_closures, nullptr};
    case mode::divide_and_conquer:
      return {"divide_and_conquer", make_divide_and_conquer, make_divide_and_conquer, nullptr};
    default:
      return {"reverse", make_reverse_by_shift, nullptr, nullptr};
  }
}

/// The gradient as a function (arguments...) -> (value, adjoints...), called.
Datums staged_gradient(const Entry& entry, Staging& s, const Program& program, const Datums& arguments,
                     const Active& active, bool value, const Location& loc) {
  return derivative_unit(s, std::string(entry.name) + "_grad", program, arguments, active, Beside::nothing, {}, loc,
                         [&](const Unit& unit) {
                           require_scalar(unit.primal.result_types, loc);
                           const auto handler = entry.staged(s, fresh_number());
                           const Ending ending{*handler};
                           return handler->gradient(unit.primal, unit.arguments, unit.active, value, loc);
                         });
}

}  // namespace

Datums gradient(mode m, form how, const Program& program, const Datums& arguments, const Active& active, bool value,
                const Location& loc) {
  if (m == mode::reverse && how == form::fast) return vjp(program, arguments, active, nullptr, value, loc);
  if (m == mode::forward) {
    Datums out = forward_gradient(program, arguments, active, how == form::literal, loc);
    if (!value) out.erase(out.begin());
    return out;
  }
  const Entry entry = entry_of(m);
  if (Staging* s = context().staging) {
    switch (m) {
      case mode::reverse:
        return vjp(program, arguments, active, nullptr, value, loc);
      case mode::cps:
        return staged_cps_gradient(*s, program, arguments, active, value, loc);
      case mode::divide_and_conquer:
        return staged_divide_and_conquer_gradient(*s, program, arguments, active, value, loc);
      case mode::closures:
      case mode::checkpointed_closures: {
        const std::string name = std::string("grad<mode::") + entry.name + ">";
        raise_at(loc, name + ": expected to be run eagerly, got a program that is being staged; write eager(" + name +
                          "(f)), or grad<mode::global_tape>(f), which treats a call of a staged function in the same "
                          "way");
      }
      default:
        return staged_gradient(entry, *s, program, arguments, active, value, loc);
    }
  }
  const auto handler = how == form::literal ? entry.literal : entry.fast;
  return handler ? gradient_by(*handler(fresh_number()), program, arguments, active, value, loc)
                 : vjp(program, arguments, active, nullptr, value, loc);
}

}  // namespace lantern::core::ad
