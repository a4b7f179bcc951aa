// polygamma: the text that generated code has (codegen/c/polygamma_text.hpp.in), so that both give the same numbers. Recurrence up
// to where the asymptotic series is exact to rounding (Abramowitz and Stegun 6.3.18 and 6.4.11); below zero digamma and
// trigamma are reflected.
#include "lantern/ir/special_functions.hpp"

#include <math.h>

namespace lantern::ir {

namespace printed {
#include "lantern/ir/polygamma.inc"
}

double polygamma(double n, double x) { return printed::lt_polygamma(n, x); }

}  // namespace lantern::ir
