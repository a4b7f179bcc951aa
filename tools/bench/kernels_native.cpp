// Kernels that are written once (programs/): lanternc rewrites this file, so that their statements are
// staged.
#include "kernels.hpp"
#include "programs/data.hpp"
#include "programs/dynamic.hpp"
#include "programs/linear.hpp"
#include "reference/kernels.hpp"

namespace lantern::bench {
namespace {

struct Staged {
  using Number = bench::Number;
  using Index = bench::Index;
  using Input = Vector;
  using Indices = bench::Indices;
  using Array = Vector;
  static Array zeros(Index n) { return fill(Number(0.0), n); }
  static Array copy(Input a, Index) { return a; }
  static Number number(Index i) { return cast<double>(i); }
  static Index whole(Number x) { return cast<std::int64_t>(x); }
  static void rotate(Array& first, Array& second, Array& third) {
    const Array kept = first;
    first = second;
    second = third;
    third = kept;
  }
};

/// Market data for an option: spot, strike, rate, volatility, and years.
Values market() { return {100, 105, 0.03, 0.25, 1.5}; }

/// Correlations of a signal with itself, which make a well-conditioned Toeplitz matrix.
Values decaying(std::int64_t n) {
  Values r = uniform(n, 0.9, 1);
  for (std::int64_t i = 0; i < n; ++i) r[i] *= 0.45 / (1 + static_cast<double>(i) * static_cast<double>(i));
  return r;
}

}  // namespace

std::vector<Kernel> native_kernels(const Sizes& of) {
  namespace plain = reference;
  namespace staged = programs;
  std::vector<Kernel> all;
  {
    const std::int64_t n = of(60, 600, 3'000), few = of(40, 200, 500), side = of(10, 40, 80);
    all.push_back(kernel("gesummv", by(n), staged::gesummv<Staged>, plain::gesummv, uniform(n * n),
                         uniform(n * n), uniform(n), n));
    all.push_back(
        kernel("bicg", by(n), staged::bicg<Staged>, plain::bicg, uniform(n * n), uniform(n), uniform(n), n));
    all.push_back(kernel("gemm_transposed", by(few), staged::gemm_transposed<Staged>, plain::gemm_transposed,
                         uniform(few * few), uniform(few * few), few));
    all.push_back(kernel("symm", by(few, few), staged::symm<Staged>, plain::symm, uniform(few * few),
                         uniform(few * few), few, few));
    all.push_back(kernel("doitgen", by(side, side, side), staged::doitgen<Staged>, plain::doitgen,
                         uniform(side * side * side), uniform(side * side), side, side));
    all.push_back(kernel("covariance", by(few, few), staged::covariance<Staged>, plain::covariance,
                         uniform(few * few), few, few));
    all.push_back(kernel("gram_schmidt", by(few, side), staged::gram_schmidt<Staged>, plain::gram_schmidt,
                         uniform(few * side), few, side));
    all.push_back(kernel("gauss_seidel", by(10, few), staged::gauss_seidel<Staged>, plain::gauss_seidel,
                         dominant(few), uniform(few), few, std::int64_t{10}));
  }
  {
    const std::int64_t n = of(100, 1'000, 4'000), long_n = of(4'000, 100'000, 1'000'000), taps = 16,
                       steps = of(20, 100, 100);
    all.push_back(kernel("durbin", by(n), staged::durbin<Staged>, plain::durbin, decaying(n), n));
    all.push_back(kernel("implicit_heat", by(steps, n), staged::implicit_heat<Staged>, plain::implicit_heat,
                         uniform(n), uniform(n, 0.1, 0.9), n, steps));
    all.push_back(kernel("rotations", by(n), staged::rotations<Staged>, plain::rotations,
                         uniform(9 * n, -0.8, 0.8), n));
    all.push_back(kernel("moving_filter", by(long_n, taps), staged::moving_filter<Staged>,
                         plain::moving_filter, uniform(long_n), uniform(taps), long_n, taps));
    all.push_back(kernel("feedback_filter", by(long_n), staged::feedback_filter<Staged>,
                         plain::feedback_filter, uniform(long_n), Values{0.4, 0.2, 0.9, -0.3}, long_n));
  }
  {
    const std::int64_t n = of(40, 200, 400), states = of(12, 64, 128), steps = of(50, 400, 400);
    all.push_back(kernel("floyd_warshall", by(n), staged::floyd_warshall<Staged>, plain::floyd_warshall,
                         uniform(n * n, 1, 100), n));
    all.push_back(
        kernel("nussinov", by(n), staged::nussinov<Staged>, plain::nussinov, uniform(n * n, 0, 1), n));
    all.push_back(kernel("matrix_chain", by(n), staged::matrix_chain<Staged>, plain::matrix_chain,
                         uniform(n + 1, 1, 50), n));
    all.push_back(kernel("time_warping", by(n), staged::time_warping<Staged>, plain::time_warping, uniform(n),
                         uniform(n), n));
    all.push_back(kernel("viterbi", by(steps, states), staged::viterbi<Staged>, plain::viterbi,
                         uniform(states * states), uniform(steps * states), states, steps));
    all.push_back(kernel("american_option", by(2 * n), staged::american_option<Staged>,
                         plain::american_option, market(), 2 * n));
  }
  {
    const std::int64_t rows = of(100, 2'000, 20'000), n = of(24, 64, 128), hidden = 16, parts = 8;
    all.push_back(kernel("logistic", by(rows, n), staged::logistic<Staged>, plain::logistic,
                         uniform(rows * n), uniform(rows), uniform(n), rows, n));
    all.push_back(kernel("cross_entropy", by(rows, n), staged::cross_entropy<Staged>, plain::cross_entropy,
                         uniform(rows * n), places(rows, n), rows, n));
    all.push_back(kernel("mixture", by(rows, parts), staged::mixture<Staged>, plain::mixture, uniform(rows),
                         uniform(parts, 0.5, 1), uniform(parts), uniform(parts, 0.5, 1), rows, parts));
    all.push_back(kernel("huber", by(rows, n), staged::huber<Staged>, plain::huber, uniform(rows * n),
                         uniform(rows), uniform(n), rows, n));
    all.push_back(kernel("garch", by(10 * rows), staged::garch<Staged>, plain::garch, uniform(10 * rows),
                         Values{0.1, 0.2, 0.7}, 10 * rows));
    all.push_back(kernel("kepler", by(rows), staged::kepler<Staged>, plain::kepler, uniform(rows, 0, 6),
                         uniform(rows, 0, 0.6), rows));
    all.push_back(kernel("rectified", by(rows, n, hidden), staged::rectified<Staged>, plain::rectified,
                         uniform(rows * n), uniform(hidden * n), uniform(hidden), rows, n, hidden));
    all.push_back(kernel("sliding_max", by(10 * rows, 8), staged::sliding_max<Staged>, plain::sliding_max,
                         uniform(10 * rows), uniform(10 * rows), 10 * rows, std::int64_t{8}));
    all.push_back(kernel("lorenz", by(100, rows), staged::lorenz<Staged>, plain::lorenz,
                         uniform(3 * rows, 1, 2), Values{10, 28, 2.667}, rows, std::int64_t{100}));
  }
  {
    const std::int64_t nodes = of(200, 4'000, 100'000), edges = 8 * nodes, width = of(16, 32, 64), words = 10,
                       points = of(100, 1'000, 4'000);
    all.push_back(kernel("messages", by(edges, width), staged::messages<Staged>, plain::messages,
                         places(edges, nodes), places(edges, nodes), uniform(edges), uniform(nodes * width),
                         edges, nodes, width));
    all.push_back(kernel("word_bags", by(nodes, words, width), staged::word_bags<Staged>, plain::word_bags,
                         places(nodes * words, nodes), uniform(nodes * width), nodes, words, width));
    all.push_back(kernel("kernel_density", by(points), staged::kernel_density<Staged>, plain::kernel_density,
                         uniform(points), Values{0.3}, points));
    all.push_back(kernel("recurrent", by(points, width), staged::recurrent<Staged>, plain::recurrent,
                         uniform(width * width, -0.2, 0.2), uniform(width * width, -0.2, 0.2),
                         uniform(points * width), points, width));
  }
  {
    const std::int64_t n = of(32, 200, 1'000), steps = of(30, 200, 50);
    all.push_back(kernel("warp", by(n, n), staged::warp<Staged>, plain::warp, uniform(n * n),
                         uniform(n * n, 0.1, 0.9), uniform(n * n, 0.1, 0.9), n));
    all.push_back(kernel("wave_rotating", by(steps, n, n), staged::wave_rotating<Staged>,
                         plain::wave_rotating, uniform(n * n), uniform(n * n, 0.05, 0.2), n, steps));
    all.push_back(kernel("burgers", by(steps, 10 * n), staged::burgers<Staged>, plain::burgers,
                         uniform(10 * n), 10 * n, steps));
  }
  return all;
}

}  // namespace lantern::bench
