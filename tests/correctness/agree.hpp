// check_all: a program's value and derivatives computed in every way the library knows; all must agree.
//
// Ways: eagerly; staged at opt 0 and opt 3 through libtcc; opt 3 with unwind left out; opt 3 through Clang.
// Derivatives by reverse and by forward mode and by their compositions. Judges: central differences of the
// order below, and the complex step where the program can be run over std::complex.
//
// Tolerances. The ways perform the same arithmetic up to the order of sums and contraction into fused
// multiply-add: 1e-10 relative to the larger of the numbers and 1 (2e-4 in float). Central differences with
// one Richardson step of h = 1e-3 have an error of about h^4 plus 1e-16 / h: 1e-7, or a hundredth of what the
// extrapolation corrected where that is more (near a singularity). The complex step has no cancellation:
// 1e-12.
#pragma once

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstdio>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "lantern/lantern.hpp"

namespace lantern::test {

using namespace core;

/// What is computed, and how.
struct Ways {
  int order = 2;        ///< highest derivative: 0 to 3
  bool forward = true;  ///< forward mode too
  bool eager = true;
  bool opt0 = true;
  bool without_unwind = true;
  bool clang = true;
  bool differences = true;   ///< false at corners
  double step = 1e-3;        ///< of the differences, times the larger of |x| and 1
  bool only_smooth = false;  ///< leave the differences out where two steps do not agree: a corner is near
  double tolerance = 0;      ///< between the ways; 0: by type
  double difference_tolerance = 1e-7;
};

namespace agree {

inline std::string number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.12g", v);
  return text;
}
inline std::string list(const std::vector<double>& values) {
  std::string text;
  for (double v : values) text += (text.empty() ? "" : ", ") + number(v);
  return "(" + text + ")";
}

/// Equal within `tolerance`, relative to the larger and 1; NaN equals NaN, an infinity itself.
inline bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

struct Answer {
  std::string who;
  std::vector<double> values;
  double tolerance = 0;
  std::string error;

  bool agrees(const Answer& reference) const {
    if (!error.empty() || !reference.error.empty() || values.size() != reference.values.size()) return false;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!close(values[i], reference.values[i], tolerance)) return false;
    return true;
  }
};

/// One quantity at one point: the answers of all ways. The first is the reference.
struct Question {
  std::string what;
  std::vector<Answer> answers;

  /// Empty where all agree; else all answers, those that differ marked.
  std::string verdict() const {
    std::string text;
    bool agreed = true;
    for (const Answer& a : answers) {
      const bool ok = a.agrees(answers.front());
      agreed &= ok;
      text += "  " + a.who + ": " + (a.error.empty() ? list(a.values) : "raised: " + a.error) +
              (ok ? "\n" : "   <-- disagrees\n");
    }
    return agreed ? "" : what + "\n" + text;
  }
};

template <class H>
std::vector<double> numbers(const H& host) {
  if constexpr (std::is_arithmetic_v<H>)
    return {static_cast<double>(host)};
  else {
    std::vector<double> out;
    for (auto v : host) out.push_back(static_cast<double>(v));
    return out;
  }
}

/// A weighted sum of a gradient's components: a scalar to differentiate again. The weights tell them apart.
inline double weight(std::size_t i) { return 1.0 + 0.375 * static_cast<double>(i); }
template <class T, class X>
Rep<T> weighted(const X& gradient, std::size_t n) {
  Rep<T> total = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = [&] {
      if constexpr (detail::RepType<X>)
        return static_cast<std::int64_t>(i);
      else
        return i;
    }();
    total = total + weight(i) * gradient[at];
  }
  return total;
}

/// A scalar program over X (an array of Reps, or one Rep<Array>) and arguments that are not differentiated.
template <class T, class X, class... E>
class Agreement {
 public:
  using Point = detail::host_out<X>;
  using Scalar = std::function<Rep<T>(X, E...)>;
  using Vector = std::function<X(X, E...)>;

  Agreement(const Ways& ways, std::string name, Scalar f, std::vector<Point> points,
            const detail::host_in<E>&... extra)
      : ways_(ways), name_(std::move(name)), f_(std::move(f)), points_(std::move(points)), extra_(extra...) {
    if (ways_.tolerance == 0) ways_.tolerance = std::is_same_v<T, float> ? 2e-4 : 1e-10;
    ways_.differences &= !std::is_same_v<T, float>;
  }

  /// Adds the answers of a judge from outside to the quantity of an order: one list per point.
  void judge(int order, const std::string& who, const std::vector<std::vector<double>>& answers,
             double tolerance) {
    judges_.push_back({order, who, answers, tolerance});
  }

  /// All messages; empty where all ways agree.
  std::string run() {
    ask("value", f_, f_, false);
    if (ways_.order >= 1) first();
    if (ways_.order >= 2) second();
    if (ways_.order >= 3) third();
    if (ways_.clang) clang();
    for (const Judge& j : judges_)
      for (std::size_t p = 0; p < points_.size(); ++p)
        question(j.order, p).push_back({j.who, j.answers[p], j.tolerance, ""});
    std::string text;
    for (const Question& q : questions_) text += q.verdict();
    return text;
  }

 private:
  struct Judge {
    int order;
    std::string who;
    std::vector<std::vector<double>> answers;
    double tolerance;
  };

  std::vector<Answer>& question(int order, std::size_t point) {
    return questions_.at(static_cast<std::size_t>(order) * points_.size() + point).answers;
  }
  std::size_t size() const { return numbers(points_[0]).size(); }
  Vector reverse(const Scalar& f) const { return Vector(grad<0>(f)); }
  Vector forward(const Scalar& f) const { return Vector(grad<0, mode::forward>(f)); }
  Scalar scalar(const Vector& g) const {
    return [g, n = size()](X x, E... e) { return weighted<T>(g(x, e...), n); };
  }

  void first() {
    const std::size_t begin = questions_.size();
    ask("gradient", reverse(f_), f_, true, "reverse");
    if (ways_.forward) also(begin, forward(f_), "forward");
  }
  void second() {
    const std::size_t begin = questions_.size();
    const Scalar g = scalar(reverse(f_));
    ask("second derivative", reverse(g), g, true, "reverse of reverse");
    if (!ways_.forward) return;
    also(begin, forward(g), "forward of reverse");
    const Scalar h = scalar(forward(f_));
    also(begin, reverse(h), "reverse of forward");
    also(begin, forward(h), "forward of forward");
  }
  void third() {
    const std::size_t begin = questions_.size();
    const Scalar g = scalar(reverse(scalar(reverse(f_))));
    ask("third derivative", reverse(g), g, true, "reverse of reverse of reverse");
    if (!ways_.forward) return;
    also(begin, forward(g), "forward of reverse of reverse");
    also(begin, reverse(scalar(forward(scalar(reverse(f_))))), "reverse of forward of reverse");
  }

  /// A new quantity, and central differences of `below` where it is a derivative.
  template <class P>
  void ask(const std::string& what, const P& program, const Scalar& below, bool derivative,
           const std::string& how = "") {
    const std::size_t begin = questions_.size();
    for (const Point& p : points_)
      questions_.push_back({name_ + " at " + list(numbers(p)) + ": " + what, {}});
    also(begin, program, how);
    if (derivative && ways_.differences)
      answer(begin, "central differences",
             [&](const Point& p, double& tolerance) { return differences(below, p, tolerance); });
    if (derivative)
      for (std::size_t p = 0; p < points_.size(); ++p)
        std::erase_if(questions_[begin + p].answers,
                      [](const Answer& a) { return a.error.empty() && a.values.empty(); });
  }

  /// Answers to the quantity whose questions start at `begin`, by every tier.
  template <class P>
  void also(std::size_t begin, const P& program, const std::string& how) {
    const std::string by = how.empty() ? "" : how + ", ";
    const auto call = [&](const auto& f) {
      return [&](const Point& p, double&) {
        return std::apply([&](const auto&... e) { return numbers(f(p, e...)); }, extra_);
      };
    };
    const auto staged = [&](const std::string& who, const CompileOptions& options) {
      answer_compiled(begin, by + who, program, options, call);
    };
    if (ways_.eager) answer(begin, by + "eager", call(eager(program)));
    if (ways_.opt0) staged("opt 0", {.target = Target::c, .opt = 0});
    staged("opt 3", {.target = Target::c, .opt = 3});
    if (ways_.without_unwind)
      staged("opt 3 without unwind", {.target = Target::c, .opt = 3, .disabled_passes = {"unwind"}});
  }

  template <class P, class Call>
  void answer_compiled(std::size_t begin, const std::string& who, const P& program,
                       const CompileOptions& options, const Call& call) {
    try {
      const auto compiled = compile(program, options);
      answer(begin, who, call(compiled));
    } catch (const std::exception& e) {
      for (std::size_t p = 0; p < points_.size(); ++p)
        questions_[begin + p].answers.push_back({who, {}, 0, e.what()});
    }
  }

  template <class Call>
  void answer(std::size_t begin, const std::string& who, const Call& call) {
    for (std::size_t p = 0; p < points_.size(); ++p) {
      Answer a{who, {}, ways_.tolerance, ""};
      try {
        a.values = call(points_[p], a.tolerance);
      } catch (const std::exception& e) {
        a.error = e.what();
      }
      questions_[begin + p].answers.push_back(std::move(a));
    }
  }

  /// All quantities up to the second order in one program: Clang costs by the program.
  void clang() {
    using All = std::tuple<Rep<T>, X, X>;
    const Vector g = reverse(f_), h = reverse(scalar(g));
    const std::function<All(X, E...)> all = [&, order = ways_.order](X x, E... e) {
      return All(f_(x, e...), order >= 1 ? g(x, e...) : x, order >= 2 ? h(x, e...) : x);
    };
    try {
      const auto compiled = compile(all, {.target = Target::cpp, .opt = 3});
      for (std::size_t p = 0; p < points_.size(); ++p) {
        const auto out = std::apply([&](const auto&... e) { return compiled(points_[p], e...); }, extra_);
        const std::vector<double> values[] = {numbers(std::get<0>(out)), numbers(std::get<1>(out)),
                                              numbers(std::get<2>(out))};
        for (int k = 0; k <= std::min(ways_.order, 2); ++k)
          question(k, p).push_back({"opt 3, Clang", values[k], ways_.tolerance, ""});
      }
    } catch (const std::exception& e) {
      question(0, 0).push_back({"opt 3, Clang", {}, 0, e.what()});
    }
  }

  std::vector<double> differences(const Scalar& f, const Point& at, double& tolerance) const {
    std::vector<double> out;
    const auto program = eager(f);
    tolerance = ways_.difference_tolerance;
    for (std::size_t i = 0; i < size(); ++i) {
      const double h = ways_.step * std::max(1.0, std::abs(static_cast<double>(at[i])));
      const auto slope = [&](double step) {
        const auto value = [&](double s) {
          Point p = at;
          p[i] = static_cast<T>(p[i] + s);
          return std::apply([&](const auto&... e) { return program(p, e...); }, extra_);
        };
        return (value(step) - value(-step)) / (2 * step);
      };
      const double wide = slope(h), narrow = slope(h / 2), best = (4 * narrow - wide) / 3;
      if (ways_.only_smooth && !close(narrow, wide, 1e-4)) return {};
      tolerance = std::max(tolerance, 0.01 * std::abs(narrow - wide) / std::max(1.0, std::abs(best)));
      out.push_back(best);
    }
    return out;
  }

  Ways ways_;
  std::string name_;
  Scalar f_;
  std::vector<Point> points_;
  std::tuple<detail::host_in<E>...> extra_;
  std::vector<Judge> judges_;
  std::vector<Question> questions_;  // by quantity, then by point
};

// What most tests check: compiled once, in agreement.cpp.
extern template class Agreement<double, Rep<Array<double>>>;
extern template class Agreement<double, std::array<Rep<double>, 1>>;
extern template class Agreement<double, std::array<Rep<double>, 2>>;
extern template class Agreement<double, std::array<Rep<double>, 3>>;

inline void report(const std::string& text) {
  if (text.empty())
    SUCCEED();
  else
    FAIL_CHECK(text);
}

template <class T, std::size_t N, class F>
auto over_array(F fn) {
  return [fn](const std::array<Rep<T>, N>& x) -> Rep<T> { return std::apply(fn, x); };
}

template <class T, std::size_t N, class F>
Agreement<T, std::array<Rep<T>, N>> at_points(const Ways& ways, const std::string& name, F fn,
                                              const std::vector<std::array<T, N>>& points) {
  return {ways, name, over_array<T, N>(fn), points};
}

}  // namespace agree

/// A program of N scalars at several points.
template <class T, std::size_t N, class F>
void check_points(const Ways& ways, const std::string& name, F fn,
                  const std::vector<std::array<T, N>>& points) {
  agree::report(agree::at_points(ways, name, fn, points).run());
}

/// A program of scalars at one point: fn(Rep...), all double or all float.
template <class F, std::floating_point... T>
void check_all(const Ways& ways, const std::string& name, F fn, T... x) {
  using First = std::tuple_element_t<0, std::tuple<T...>>;
  check_points<First, sizeof...(T)>(ways, name, fn, {{x...}});
}
template <class F, std::floating_point... T>
void check_all(const std::string& name, F fn, T... x) {
  check_all(Ways{}, name, fn, x...);
}

/// A program of one array: fn(Rep<Array<double>>).
template <class F>
void check_all(const Ways& ways, const std::string& name, F fn, const std::vector<double>& x) {
  agree::report(agree::Agreement<double, Rep<Array<double>>>(ways, name, fn, {x}).run());
}
template <class F>
void check_all(const std::string& name, F fn, const std::vector<double>& x) {
  check_all(Ways{}, name, fn, x);
}

/// A program of one scalar and data that is not differentiated: fn(Rep<double>, Rep<E>...).
template <class F, class... E>
void check_with(const Ways& ways, const std::string& name, F fn, double x, const E&... extra) {
  using X = std::array<Rep<double>, 1>;
  agree::report(
      agree::Agreement<double, X, Rep<E>...>(
          ways, name, [fn](X a, Rep<E>... e) -> Rep<double> { return fn(a[0], e...); }, {{x}}, extra...)
          .run());
}

/// An analytic program, a template over its number type: judged by the complex step too.
template <std::size_t N, class F>
void check_analytic(const Ways& ways, const std::string& name, F fn,
                    const std::vector<std::array<double, N>>& points) {
  constexpr double step = 1e-30;
  std::vector<std::vector<double>> gradients;
  for (const auto& p : points) {
    auto& gradient = gradients.emplace_back();
    for (std::size_t i = 0; i < N; ++i) {
      std::array<std::complex<double>, N> z;
      for (std::size_t k = 0; k < N; ++k) z[k] = {p[k], k == i ? step : 0.0};
      gradient.push_back(std::imag(std::apply(fn, z)) / step);
    }
  }
  auto agreement = agree::at_points<double, N>(ways, name, fn, points);
  agreement.judge(1, "complex step", gradients, 1e-12);
  agree::report(agreement.run());
}

}  // namespace lantern::test
