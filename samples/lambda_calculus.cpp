// The running example of the Lantern paper as a term, and what its four transformations make of it.
//
// Forward mode (Fig. 4) pairs every number with a tangent. Reverse mode pairs it with a cell, and does what
// remains to be done after the rest of the program has run: by shift in the transformed program (Fig. 9), by
// shift while transforming (Fig. 10), or by continuations written out (Fig. 11).
#include <fmt/core.h>

#include "lantern/compiler/calculus/calculus.hpp"

using namespace lantern::calculus;

int main() {
  const Term x = variable("x");
  const Term f = lambda("x", 2 * x + x * x * x);
  fmt::print("f = {}\n", to_string(f));
  const auto show = [&](const char* name, const Term& derivative) {
    fmt::print("\n{}\n\n{}\n\nat 3: {}\n", name, to_string(derivative), call(derivative, 3.0));
  };
  show("Forward mode", forward(f));
  show("Reverse mode, with shift and reset", reverse_by_control(f));
  show("Reverse mode, with shift and reset in the meta-language", reverse_by_meta_control(f));
  const Term gradient = reverse_by_cps(f);
  fmt::print("\nReverse mode in continuation-passing style: the same term: {}\n",
             alpha_equal(gradient, reverse_by_meta_control(f)));
  // Derivatives are terms, so they have derivatives.
  fmt::print("\nThe second derivative at 3, forward over reverse: {}\n", call(forward(gradient), 3.0));
}
