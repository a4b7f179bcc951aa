// Functions of the operation table that <cmath> lacks.
#pragma once

namespace lantern::ir {

/// polygamma(n, x): the n-th derivative of digamma, n = 0, 1, 2, ...; by recurrence to large x and the
/// asymptotic series (Abramowitz & Stegun 6.3.18, 6.4.11). Relative error about 1e-14 for x > 0.
/// At the poles 0, -1, -2, ...: NaN for even n, whose limits differ from side to side, else +inf.
double polygamma(double n, double x);

}  // namespace lantern::ir
