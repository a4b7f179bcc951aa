// What every transformation asks of its source.
#include "lantern/compiler/calculus/notation.hpp"

#include "lantern/compiler/staging/operation.hpp"

namespace lantern::calculus {

using namespace core;

Term closed_source(const Term& f, const char* transformation, Place l) {
  if (const auto free = free_variables(f); !free.empty())
    raise_at(here(l), std::string("calculus: ") + transformation +
                          ": expected a closed source, got the free variable " + *free.begin() + " in `" +
                          excerpt(f) + "`");
  return distinct_binders(f);
}

Term source_without_control(const Term& f, const char* transformation, Place l) {
  if (control_level(f) > 0)
    raise_at(here(l), std::string("calculus: ") + transformation +
                          ": expected a source without shift and reset, got `" + excerpt(f) +
                          "`; forward and reverse_by_control take one that has them");
  return closed_source(f, transformation, l);
}

}  // namespace lantern::calculus
