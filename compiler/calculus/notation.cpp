// What every transformation asks of its source.
#include "lantern/compiler/calculus/notation.hpp"

#include "lantern/compiler/staging/operation.hpp"

namespace lantern::calculus {

using namespace core;

Term checked_source(const Term& f, const char* transformation, Place l) {
  const std::string who = std::string("calculus: ") + transformation;
  if (has_control(f))
    raise_at(here(l), who + ": expected a source without shift and reset, got `" + excerpt(f) + "`");
  if (const auto free = free_variables(f); !free.empty())
    raise_at(here(l), who + ": expected a closed source, got the free variable " + *free.begin() + " in `" +
                          excerpt(f) + "`");
  return distinct_binders(f);
}

}  // namespace lantern::calculus
