// Complex numbers of Reps: Complex<Rep<double>>, or of arrays and tensors, with the functions of <complex>;
// see compiler/staging/complex.hpp. Fourier transforms of them are in <lantern/linalg.hpp>.
#pragma once

#include "lantern/compiler/staging/complex.hpp"
#include "lantern/lantern.hpp"

namespace lantern {

using core::arg;
using core::as_complex;  ///< as_complex(std::complex<double>(1, 2)): as an argument of a compiled function
using core::Complex;  ///< re + i im: Complex<Rep<double>>{x, y}
using core::conj;
using core::imag;
using core::norm;   ///< the squared size of a complex number
using core::polar;  ///< polar(r, angle)
using core::real;

}  // namespace lantern
