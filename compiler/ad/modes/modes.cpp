// Which handler a mode is, and how a gradient is taken by it.
#include "lantern/compiler/ad/modes/modes.hpp"

#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::ad {

namespace {

struct Entry {
  const char* name;
  std::shared_ptr<EagerReverse> (*make)(std::uint64_t tag);
};

Entry eager_mode(mode m) {
  switch (m) {
    case mode::cps:
      return {"cps", make_cps};
    case mode::global_tape:
      return {"global_tape", make_global_tape};
    case mode::functional:
      return {"functional", make_functional};
    case mode::continuation:
      return {"continuation", make_continuation};
    case mode::taped:
      return {"taped", make_taped};
    default:
      return {"checkpointed", make_checkpointed};
  }
}

/// The handler is ended on every way out.
struct Ending {
  Mode& mode;
  ~Ending() { mode.end(); }
};

Data gradient_by(EagerReverse& handler, const Program& program, const Data& arguments, const Active& active,
                 bool value, const Location& loc) {
  const Ending ending{handler};
  Data tagged = arguments, inputs, out;
  for (std::size_t i = 0; i < tagged.size(); ++i)
    if (active[i]) inputs.push_back(tagged[i] = handler.input(arguments[i]));
  handler.run([&] {
    const Data results = program.run(tagged);
    require_scalar(types_of(results), loc);
    if (value) out.push_back(handler.primal(results[0]));
    handler.seed(results[0], Datum::number(1.0, results[0].type()), loc);
  });
  for (const Datum& x : inputs) out.push_back(handler.adjoint(x, loc));
  return out;
}

}  // namespace

Data gradient(mode m, const Program& program, const Data& arguments, const Active& active, bool value,
              const Location& loc) {
  if (m == mode::reverse) return vjp(program, arguments, active, nullptr, value, loc);
  if (m == mode::forward) {
    Data out = forward_gradient(program, arguments, active, loc);
    if (!value) out.erase(out.begin());
    return out;
  }
  const Entry entry = eager_mode(m);
  if (context().staging) {
    const std::string name = std::string("grad<mode::") + entry.name + ">";
    raise_at(loc, name + ": expected to be run eagerly, got a program that is being staged; write eager(" +
                      name + "(f)), or grad(f), which has the same value");
  }
  return gradient_by(*entry.make(++context().tags), program, arguments, active, value, loc);
}

}  // namespace lantern::ad
