// Recursive functions that became staged ones; rows that are replaced.
#include "lantern/compiler/frontend/native.hpp"

#include <map>

#include "lantern/compiler/staging/region.hpp"
#include "lantern/compiler/staging/requirement.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::native::detail {

bool staging() { return context().staging != nullptr; }

std::shared_ptr<FunctionDefinition>& recursive_definition(const void* function, const std::string& plain) {
  thread_local std::uint32_t graph = 0;
  thread_local std::map<std::pair<const void*, std::string>, std::shared_ptr<FunctionDefinition>> known;
  const std::uint32_t now = current_graph();
  if (graph != now) known.clear();
  graph = now;
  return known[{function, plain}];
}

std::optional<bool> tried(const std::function<Flag()>& iteration, const Location& loc) {
  Staging* const s = context().staging;
  if (!s) return known(iteration());
  Staging::Attempt attempt(*s);
  IterationRegion region(*s, loc);
  const std::optional<bool> go = known(iteration());
  if (go) {
    region.keep();
    attempt.keep();
  } else {
    region.leave();
  }
  return go;
}

namespace {

Datum size_of(const Datum& t, int k, const Location& loc) {
  const std::int64_t known = t.type().dims()[static_cast<std::size_t>(k)];
  return known != ir::dynamic ? Datum::integer(known, ir::I64) : perform({Opcode::dim_, k, loc}, {strip(t)});
}

/// `t` with the elements of `values` from `first` on, one loop for each dimension of the values.
Datum replaced(const Datum& t, const Datum& values, const Datum& first, bool one, Datums at, const Location& loc) {
  const auto op = [&](Opcode code, const Datum& a, const Datum& b) { return perform({code, 0, loc}, {a, b}); };
  if (static_cast<int>(at.size()) == values.type().rank()) {
    Datums from{values}, to{t};
    from.insert(from.end(), at.begin(), at.end());
    if (one) to.push_back(first);
    for (std::size_t k = 0; k < at.size(); ++k)
      to.push_back(k == 0 && !one ? op(Opcode::add_, first, at[k]) : at[k]);
    to.push_back(perform({Opcode::get_, 0, loc}, from));
    return perform({Opcode::set_, 0, loc}, to);
  }
  const Datum size = size_of(values, static_cast<int>(at.size()), loc);
  return detail::loop(
      {Datum::integer(0, ir::I64), t}, [&](const Datums& s) { return op(Opcode::lt_, s[0], size); },
      [&](const Datums& s) -> Datums {
        Datums here = at;
        here.push_back(s[0]);
        return {op(Opcode::add_, s[0], Datum::integer(1, ir::I64)), replaced(s[1], values, first, one, here, loc)};
      },
      loc)[1];
}

}  // namespace

Datum with_rows(const Datum& t, const Datum& lo, const Datum& hi, const Datum& values, bool one,
                const Location& loc) {
  const int rank = t.type().rank(), expected = one ? rank - 1 : rank;
  if (values.type().rank() != expected)
    raise_at(loc, "expected a tensor of rank " + std::to_string(expected) + " for these rows, got " +
                      values.type().str());
  const std::string message = "the rows that are assigned are of another size or number than those they replace";
  const Datum old = perform({one ? Opcode::take_ : Opcode::slice_, 0, loc}, one ? Datums{t, lo} : Datums{t, lo, hi});
  require_same_sizes(old, values, 0, message, loc);
  return replaced(t, values, lo, one, {}, loc);
}

}  // namespace lantern::core::native::detail
