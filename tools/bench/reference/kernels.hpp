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

double gesummv(const double* a, const double* b, const double* x, Size n);
double bicg(const double* a, const double* p, const double* r, Size n);
double gemm_transposed(const double* a, const double* b, Size n);
double symm(const double* a, const double* b, Size m, Size n);
double doitgen(const double* a, const double* c, Size r, Size p);
double covariance(const double* data, Size rows, Size columns);
double gram_schmidt(const double* a, Size m, Size n);
double durbin(const double* r, Size n);
double implicit_heat(const double* start, const double* rate, Size n, Size steps);
double gauss_seidel(const double* a, const double* b, Size n, Size sweeps);
double rotations(const double* a, Size n);
double moving_filter(const double* x, const double* h, Size n, Size taps);
double feedback_filter(const double* x, const double* h, Size n);

double floyd_warshall(const double* lengths, Size n);
double nussinov(const double* gain, Size n);
double matrix_chain(const double* p, Size n);
double time_warping(const double* x, const double* y, Size n);
double viterbi(const double* next, const double* emit, Size states, Size steps);
double american_option(const double* market, Size n);

double logistic(const double* x, const double* label, const double* w, Size rows, Size n);
double cross_entropy(const double* x, const Size* label, Size rows, Size n);
double mixture(const double* x, const double* weight, const double* mean, const double* width, Size n, Size parts);
double huber(const double* x, const double* y, const double* w, Size rows, Size n);
double garch(const double* returns, const double* p, Size n);
double messages(const Size* from, const Size* to, const double* weight, const double* x, Size edges, Size nodes, Size width);
double word_bags(const Size* word, const double* table, Size sentences, Size length, Size width);
double warp(const double* image, const double* dy, const double* dx, Size n);
double kepler(const double* mean, const double* eccentricity, Size n);
double kernel_density(const double* x, const double* width, Size n);
double recurrent(const double* w, const double* u, const double* x, Size steps, Size n);
double rectified(const double* x, const double* w, const double* v, Size rows, Size n, Size hidden);
double sliding_max(const double* x, const double* weight, Size n, Size size);
double lorenz(const double* start, const double* p, Size n, Size steps);
double wave_rotating(const double* start, const double* speed, Size n, Size steps);
double burgers(const double* start, Size n, Size steps);

}  // namespace lantern::bench::reference
