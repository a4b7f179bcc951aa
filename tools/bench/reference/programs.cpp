// The programs that are written once (programs/), over plain numbers.
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels.hpp"
#include "programs/data.hpp"
#include "programs/dynamic.hpp"
#include "programs/linear.hpp"

namespace lantern::bench::reference {
namespace {

struct Plain {
  using Number = double;
  using Index = std::int64_t;
  using Input = const double*;  ///< an argument, which is only read
  using Indices = const std::int64_t*;
  using Array = std::vector<double>;
  static Array zeros(Index n) { return Array(static_cast<std::size_t>(n)); }
  static Array copy(Input a, Index n) { return Array(a, a + n); }
  static double number(Index i) { return static_cast<double>(i); }
  static Index whole(double x) { return static_cast<Index>(x); }
  static void rotate(Array& first, Array& second, Array& third) {
    first.swap(second);
    second.swap(third);
  }
};

}  // namespace

double gesummv(const double* a, const double* b, const double* x, Size n) {
  return programs::gesummv<Plain>(a, b, x, n);
}
double bicg(const double* a, const double* p, const double* r, Size n) {
  return programs::bicg<Plain>(a, p, r, n);
}
double gemm_transposed(const double* a, const double* b, Size n) {
  return programs::gemm_transposed<Plain>(a, b, n);
}
double symm(const double* a, const double* b, Size m, Size n) { return programs::symm<Plain>(a, b, m, n); }
double doitgen(const double* a, const double* c, Size r, Size p) {
  return programs::doitgen<Plain>(a, c, r, p);
}
double covariance(const double* data, Size rows, Size columns) {
  return programs::covariance<Plain>(data, rows, columns);
}
double gram_schmidt(const double* a, Size m, Size n) { return programs::gram_schmidt<Plain>(a, m, n); }
double durbin(const double* r, Size n) { return programs::durbin<Plain>(r, n); }
double implicit_heat(const double* start, const double* rate, Size n, Size steps) {
  return programs::implicit_heat<Plain>(start, rate, n, steps);
}
double gauss_seidel(const double* a, const double* b, Size n, Size sweeps) {
  return programs::gauss_seidel<Plain>(a, b, n, sweeps);
}
double rotations(const double* a, Size n) { return programs::rotations<Plain>(a, n); }
double moving_filter(const double* x, const double* h, Size n, Size taps) {
  return programs::moving_filter<Plain>(x, h, n, taps);
}
double feedback_filter(const double* x, const double* h, Size n) {
  return programs::feedback_filter<Plain>(x, h, n);
}
double floyd_warshall(const double* lengths, Size n) { return programs::floyd_warshall<Plain>(lengths, n); }
double nussinov(const double* gain, Size n) { return programs::nussinov<Plain>(gain, n); }
double matrix_chain(const double* p, Size n) { return programs::matrix_chain<Plain>(p, n); }
double time_warping(const double* x, const double* y, Size n) {
  return programs::time_warping<Plain>(x, y, n);
}
double viterbi(const double* next, const double* emit, Size states, Size steps) {
  return programs::viterbi<Plain>(next, emit, states, steps);
}
double american_option(const double* market, Size n) { return programs::american_option<Plain>(market, n); }
double logistic(const double* x, const double* label, const double* w, Size rows, Size n) {
  return programs::logistic<Plain>(x, label, w, rows, n);
}
double cross_entropy(const double* x, const Size* label, Size rows, Size n) {
  return programs::cross_entropy<Plain>(x, label, rows, n);
}
double mixture(const double* x, const double* weight, const double* mean, const double* width, Size n,
               Size parts) {
  return programs::mixture<Plain>(x, weight, mean, width, n, parts);
}
double huber(const double* x, const double* y, const double* w, Size rows, Size n) {
  return programs::huber<Plain>(x, y, w, rows, n);
}
double garch(const double* returns, const double* p, Size n) { return programs::garch<Plain>(returns, p, n); }
double messages(const Size* from, const Size* to, const double* weight, const double* x, Size edges,
                Size nodes, Size width) {
  return programs::messages<Plain>(from, to, weight, x, edges, nodes, width);
}
double word_bags(const Size* word, const double* table, Size sentences, Size length, Size width) {
  return programs::word_bags<Plain>(word, table, sentences, length, width);
}
double warp(const double* image, const double* dy, const double* dx, Size n) {
  return programs::warp<Plain>(image, dy, dx, n);
}
double kepler(const double* mean, const double* eccentricity, Size n) {
  return programs::kepler<Plain>(mean, eccentricity, n);
}
double kernel_density(const double* x, const double* width, Size n) {
  return programs::kernel_density<Plain>(x, width, n);
}
double recurrent(const double* w, const double* u, const double* x, Size steps, Size n) {
  return programs::recurrent<Plain>(w, u, x, steps, n);
}
double rectified(const double* x, const double* w, const double* v, Size rows, Size n, Size hidden) {
  return programs::rectified<Plain>(x, w, v, rows, n, hidden);
}
double sliding_max(const double* x, const double* weight, Size n, Size size) {
  return programs::sliding_max<Plain>(x, weight, n, size);
}
double lorenz(const double* start, const double* p, Size n, Size steps) {
  return programs::lorenz<Plain>(start, p, n, steps);
}
double wave_rotating(const double* start, const double* speed, Size n, Size steps) {
  return programs::wave_rotating<Plain>(start, speed, n, steps);
}
double burgers(const double* start, Size n, Size steps) { return programs::burgers<Plain>(start, n, steps); }

}  // namespace lantern::bench::reference
