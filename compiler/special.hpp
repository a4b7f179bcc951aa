// Special functions beside those of <lantern/lantern.hpp> (erf, lgamma, digamma): special::gammainc(a, x), gammaincc,
// betainc(a, b, x); Bessel functions of whole order, special::bessel_j(n, x), bessel_y, bessel_i, bessel_k. Of numbers and,
// element by element, of tensors; differentiated to any order.
#pragma once

#include "lantern/compiler/special/bessel.hpp"
#include "lantern/compiler/special/incomplete.hpp"
#include "lantern/lantern.hpp"

namespace lantern {
namespace special = core::special;
}
