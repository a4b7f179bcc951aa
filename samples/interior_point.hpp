// Minima under equations and limits, by a primal-dual interior-point method with a filter (Waechter and
// Biegler 2006, "On the implementation of an interior-point filter line-search algorithm for large-scale
// nonlinear programming").
//
// What is solved is told by its Lagrangian L(z), cost plus multipliers times what the equations lack, over
// all unknowns and multipliers in one vector: the gradient by the multipliers is what is lacking, and the
// Hessian the matrix of Newton's method. Where z is ordered along a path that matrix is a band, and LAPACK
// solves it: programs link with OpenBLAS or another LAPACK.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <lantern/lantern.hpp>
#include <tuple>
#include <utility>
#include <vector>

extern "C" void dgbsv_(const int* n, const int* below, const int* above, const int* columns, double* a,
                       const int* rows, int* pivots, double* b, const int* rows_of_b, int* info);

/// The Lagrangian, and which of its unknowns are multipliers. Unknown i stays between -limit[i] and limit[i];
/// 0: it has no limit.
struct ConstrainedProblem {
  using Vector = std::vector<double>;
  std::function<std::tuple<double, Vector>(const Vector&)> gradient;  // value and gradient
  std::function<Vector(const Vector&)> hessian;                       // entries, in the order of the sparsity
  lantern::Sparsity sparsity;
  std::vector<bool> is_multiplier;
  Vector limit;
};

/// `for (InteriorPoint search(problem, z); search.error() > 1e-8; search.advance())`; then search.z.
class InteriorPoint {
 public:
  using Vector = std::vector<double>;
  Vector z;

  /// From a point within the limits.
  InteriorPoint(const ConstrainedProblem& problem, Vector from)
      : z(std::move(from)), problem_(problem), lower_(z.size()), upper_(z.size()) {
    for (std::size_t i = 0; i < z.size(); ++i)
      if (problem.limit[i] > 0 && !(std::abs(z[i]) < problem.limit[i]))
        throw lantern::Error("expected to begin within the limits, found unknown " + std::to_string(i) +
                             " outside");
    for_limits([&](std::size_t i, double below, double above) {
      lower_[i] = barrier_ / below, upper_[i] = barrier_ / above;
    });
  }

  double cost() const { return Costs(problem_, z).value; }
  /// The most that an equation lacks.
  double violation() const { return Costs(problem_, z).largest_lack; }
  /// How far the conditions of optimality are from being met.
  double error() const { return error_of(0); }

  /// One step of Newton's method, or a part of it. Error: there is none.
  void advance() {
    while (barrier_ > 1e-10 && error_of(barrier_) < 10 * barrier_) {
      barrier_ = std::max(1e-10, std::min(0.2 * barrier_, std::pow(barrier_, 1.5)));
      filter_.clear();
    }
    const Vector step = direction();
    const Costs here(problem_, z);
    Vector lower_change(z.size()), upper_change(z.size());
    double slope = 0, dual_share = 1;
    share_ = 1;
    for (std::size_t i = 0; i < z.size(); ++i)
      if (!problem_.is_multiplier[i]) slope += here.gradient[i] * step[i];
    for_limits([&](std::size_t i, double below, double above) {
      slope += (barrier_ / above - barrier_ / below) * step[i];
      lower_change[i] = barrier_ / below - lower_[i] - lower_[i] / below * step[i];
      upper_change[i] = barrier_ / above - upper_[i] + upper_[i] / above * step[i];
      const auto keep_positive = [](double& share, double from, double change) {
        if (change < 0) share = std::min(share, -0.99 * from / change);
      };
      keep_positive(share_, below, step[i]), keep_positive(share_, above, -step[i]);
      keep_positive(dual_share, lower_[i], lower_change[i]),
          keep_positive(dual_share, upper_[i], upper_change[i]);
    });
    const double now = merit(here);
    for (const Vector from = z;; share_ *= 0.5) {
      for (std::size_t i = 0; i < z.size(); ++i) z[i] = from[i] + share_ * step[i];
      if (share_ < 1e-8 || accepts(here, now, slope)) break;
    }
    for (std::size_t i = 0; i < z.size(); ++i)
      lower_[i] += dual_share * lower_change[i], upper_[i] += dual_share * upper_change[i];
  }

 private:
  /// The cost, its gradient, and what the equations lack: the Lagrangian where all multipliers are 0.
  struct Costs {
    double value, lack = 0, largest_lack = 0;
    Vector gradient;

    Costs(const ConstrainedProblem& problem, Vector at) {
      for (std::size_t i = 0; i < at.size(); ++i)
        if (problem.is_multiplier[i]) at[i] = 0;
      std::tie(value, gradient) = problem.gradient(at);
      for (std::size_t i = 0; i < at.size(); ++i)
        if (problem.is_multiplier[i])
          lack += std::abs(gradient[i]), largest_lack = std::max(largest_lack, std::abs(gradient[i]));
    }
  };

  /// Calls f(i, distance to the lower limit, to the upper one) for the unknowns that have limits.
  template <class F>
  void for_limits(const F& f) const {
    for (std::size_t i = 0; i < z.size(); ++i)
      if (problem_.limit[i] > 0) f(i, z[i] + problem_.limit[i], problem_.limit[i] - z[i]);
  }
  /// The cost, and a barrier before the limits.
  double merit(const Costs& costs) const {
    double logarithms = 0;
    for_limits(
        [&](std::size_t, double below, double above) { logarithms += std::log(below) + std::log(above); });
    return costs.value - barrier_ * logarithms;
  }
  /// The same where the products of distances and their multipliers are to be `product`.
  double error_of(double product) const {
    Vector g = std::get<1>(problem_.gradient(z));
    double most = 0;
    for_limits([&](std::size_t i, double below, double above) {
      g[i] += upper_[i] - lower_[i];
      most = std::max({most, std::abs(below * lower_[i] - product), std::abs(above * upper_[i] - product)});
    });
    for (const double e : g) most = std::max(most, std::abs(e));
    return most;
  }

  /// Whether z is a good place to go to: no point in the filter lacks less and has a smaller merit, and it is
  /// better than where the search is, in one of the two.
  bool accepts(const Costs& here, double now, double slope) {
    const Costs there(problem_, z);
    const double value = merit(there);
    for (const auto& [lack, merit] : filter_)
      if (!(there.lack <= (1 - 1e-5) * lack || value <= merit - 1e-5 * lack)) return false;
    const bool downhill =
        slope < 0 && share_ * std::pow(-slope, 2.3) > std::pow(here.lack, 1.1) && here.lack < 1e-2;
    if (downhill) return value <= now + 1e-4 * share_ * slope + 1e-12 * std::abs(now);
    if (!(there.lack <= (1 - 1e-5) * here.lack || value <= now - 1e-5 * here.lack)) return false;
    filter_.emplace_back(here.lack, now);
    return true;
  }

  /// A step of Newton's method. The Hessian by the unknowns is shifted until the cost is convex along it
  /// (Chiang and Zavala 2016, "An inertia-free filter line-search algorithm"), and more after a step of which
  /// little was taken.
  Vector direction() {
    const Vector entries = problem_.hessian(z);
    Vector right = std::get<1>(problem_.gradient(z)), diagonal(z.size());
    for (double& r : right) r = -r;
    for_limits(
        [&](std::size_t i, double below, double above) { right[i] += barrier_ / below - barrier_ / above; });
    for (shift_ = share_ < 0.1    ? std::max(1e-2, 4 * shift_)
                  : shift_ < 1e-6 ? 0
                                  : shift_ / 4;
         shift_ < 1e12; shift_ = std::max(1e-2, 4 * shift_)) {
      for (std::size_t i = 0; i < z.size(); ++i) diagonal[i] = problem_.is_multiplier[i] ? 0 : shift_;
      for_limits([&](std::size_t i, double below, double above) {
        diagonal[i] += lower_[i] / below + upper_[i] / above;
      });
      Vector step = solve(entries, diagonal, right);
      if (!step.empty() && convex_along(step, entries, diagonal)) return step;
    }
    throw lantern::Error("interior point: expected a step along which the cost is convex, found none");
  }
  bool convex_along(const Vector& step, const Vector& entries, const Vector& diagonal) const {
    double curvature = 0, square = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      if (problem_.is_multiplier[i]) continue;
      double image = diagonal[i] * step[i];
      for_row(i, [&](std::size_t j, std::size_t e) {
        if (!problem_.is_multiplier[j]) image += entries[e] * step[j];
      });
      curvature += step[i] * image, square += step[i] * step[i];
    }
    return curvature >= 1e-8 * square;
  }

  /// Calls f(column, place among the entries) for a row of the Hessian.
  template <class F>
  void for_row(std::size_t i, const F& f) const {
    const lantern::Sparsity& s = problem_.sparsity;
    for (auto e = static_cast<std::size_t>(s.row_start[i]); e < static_cast<std::size_t>(s.row_start[i + 1]);
         ++e)
      f(static_cast<std::size_t>(s.column[e]), e);
  }
  /// The x with (Hessian + diagonal) x = b, by LAPACK; empty where the matrix is singular.
  Vector solve(const Vector& entries, const Vector& diagonal, Vector b) const {
    std::size_t band = 0;
    for (std::size_t i = 0; i < b.size(); ++i)
      for_row(i, [&](std::size_t j, std::size_t) { band = std::max(band, i > j ? i - j : j - i); });
    const std::size_t rows = 3 * band + 1;
    Vector a(rows * b.size());  // (i, j) is in column j, row 2 band + i - j
    for (std::size_t i = 0; i < b.size(); ++i) {
      for_row(i, [&](std::size_t j, std::size_t e) { a[j * rows + 2 * band + i - j] += entries[e]; });
      a[i * rows + 2 * band] += diagonal[i];
    }
    const int n = static_cast<int>(b.size()), width = static_cast<int>(band), height = static_cast<int>(rows),
              one = 1;
    std::vector<int> pivots(b.size());
    int info = 0;
    dgbsv_(&n, &width, &width, &one, a.data(), &height, pivots.data(), b.data(), &n, &info);
    return info == 0 ? b : Vector{};
  }

  const ConstrainedProblem& problem_;
  Vector lower_, upper_;  // multipliers of the limits
  double barrier_ = 10, shift_ = 0, share_ = 1;
  std::vector<std::pair<double, double>> filter_;  // lack and merit of points
};
