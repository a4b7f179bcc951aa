// The kernels of bench kernels in plain C++, written as a programmer would without thinking of speed.
// Matrices and volumes are row-major. Each gives one number.
//
// Frozen: these loops are the yardstick that derivatives are measured with. They must not be tuned.
#pragma once

#include <cstdint>

namespace lantern::bench::reference {

using Size = std::int64_t;

double gemm(Size m, Size n, Size depth, const double* a, const double* b, const double* c);
double gemver(Size n, const double* a, const double* u1, const double* v1, const double* u2, const double* v2,
              const double* y, const double* z);
double atax(Size m, Size n, const double* a, const double* x);
double mvt(Size n, const double* a, const double* x1, const double* x2, const double* y1, const double* y2);
double syrk(Size n, Size m, const double* a, const double* c);
double trmm(Size m, Size n, const double* a, const double* b);
double trisolv(Size n, const double* l, const double* b);
double cholesky(Size n, const double* a);
double lu(Size n, const double* a);
double sparse_product(Size rows, const Size* start, const Size* column, const double* value, const double* x);
double tridiagonal(Size n, const double* lower, const double* middle, const double* upper,
                   const double* right);

double jacobi_1d(Size n, Size steps, const double* a);
double jacobi_2d(Size n, Size steps, const double* a);
double heat_3d(Size n, Size steps, const double* a);
double seidel_2d(Size n, Size steps, const double* a);
double fdtd_2d(Size m, Size n, Size steps, const double* ex, const double* ey, const double* hz,
               const double* source);
double periodic(Size n, Size steps, const double* u);
double clamped(Size n, Size steps, const double* u, const double* conductivity);
double wave(Size n, Size steps, const double* u, const double* speed);

double bodies(Size n, Size steps, const double* x, const double* v, const double* mass);
double lennard_jones(Size n, const Size* start, const Size* neighbour, const double* x);
double histogram(Size n, Size bins, const Size* bin, const double* weight);
double prefix_sum(Size n, const double* x);
double hidden_markov(Size states, Size symbols, Size steps, const double* first, const double* next,
                     const double* emit, const Size* seen);
double fourier(Size n, const Size* reversed, const double* re, const double* im, const double* weight);

double softmax(Size m, Size n, const double* x, const double* weight);
double layer_norm(Size m, Size n, const double* x, const double* gain, const double* bias,
                  const double* weight);
double attention(Size tokens, Size width, const double* q, const double* k, const double* v);
double convolution(Size in, Size out, Size height, Size width, const double* image, const double* filter,
                   const double* bias);
double max_pool(Size channels, Size height, Size width, const double* image, const double* weight);
double embedding(Size tokens, Size width, const Size* word, const double* table, const double* wanted);

}  // namespace lantern::bench::reference
