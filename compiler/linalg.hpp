// Dense linear algebra and Fourier transforms over Reps, with their derivatives, on LAPACK, BLAS and FFTW.
//
//   #include <lantern/linalg.hpp>
//   Rep<double> energy(Rep<Tensor<double, dyn, dyn>> a, Rep<Array<double>> b) {
//     return dot(b, linalg::solve(a, b)) + linalg::logdet(a);
//   }
//
// In process a program links with Lantern::linalg beside Lantern::lantern. Ahead of time:
//
//   lanternc model.cpp -o model
//
// links what the program calls. Emitted C and C++ call the functions of runtime/linalg/kernels.h, and are linked with
// -llantern_linalg -lopenblas -lfftw3 -lfftw3f.
//
// Every function takes matrices of double or float of known or unknown sizes, eagerly and compiled, and may
// be differentiated to any order, forward and reverse. Where eigenvalues or singular values are equal, some derivatives
// do not exist: the docstrings of `eigh` and `svd` list them. All take batches as well: the last two dimensions of a
// tensor are those of a matrix, and the dimensions before them, up to six, count matrices. The other operands have
// the same dimensions first.
//
// Errors. Ranks that do not fit, and sizes that are known while staging, are Errors with the place of the
// call; other sizes are compared when the program runs, as indices are, and raise too. What has no result for
// its numbers (a matrix that is not positive definite, or singular; an operand that is not finite; an
// iteration that does not converge) gives NaN in all elements, of a batch in that matrix alone; `Check::nan`
// finds the call.
#pragma once

#include "lantern/compiler/linalg/decompositions.hpp"
#include "lantern/compiler/linalg/fourier.hpp"
#include "lantern/compiler/linalg/matrix_functions.hpp"
#include "lantern/compiler/linalg/systems.hpp"
#include "lantern/lantern.hpp"
