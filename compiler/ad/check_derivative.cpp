// Derivatives beside differences.
#include "lantern/compiler/ad/check_derivative.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "lantern/compiler/staging/external.hpp"

namespace lantern::core::ad {

namespace {

using Numbers = std::vector<double>;

bool is_float(const Datum& d) { return d.type().element() == ir::Kind::f32; }

std::int64_t count(const Datum& d) {
  return d.type().is_tensor() ? static_cast<const TensorBox*>(d.box())->count() : 1;
}
double element(const Datum& d, std::int64_t i) {
  if (!d.type().is_tensor()) return d.f();
  const auto* box = static_cast<const TensorBox*>(d.box());
  const auto at = static_cast<std::size_t>(i);
  return is_float(d) ? static_cast<double>(box->as<float>()[at]) : box->as<double>()[at];
}
/// A datum of the type and shape of `like` whose elements are value(i).
template <class Value>
Datum made_like(const Datum& like, const Value& value) {
  const auto rounded = [&](std::int64_t i) {
    return is_float(like) ? static_cast<double>(static_cast<float>(value(i))) : value(i);
  };
  if (!like.type().is_tensor()) return Datum::number(rounded(0), like.type());
  Datum d = make_tensor(like.type().element(), static_cast<const TensorBox*>(like.box())->shape);
  auto* box = static_cast<TensorBox*>(d.box());
  for (std::int64_t i = 0; i < box->count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (is_float(like))
      box->as<float>()[at] = static_cast<float>(rounded(i));
    else
      box->as<double>()[at] = rounded(i);
  }
  return d;
}

/// The floating numbers among some data, one after the other.
Numbers numbers(const Datums& data) {
  Numbers out;
  for (const Datum& d : data)
    if (d.type().is_differentiable())
      for (std::int64_t i = 0; i < count(d); ++i) out.push_back(element(d, i));
  return out;
}

/// One number of the arguments.
struct Place {
  std::size_t argument;
  std::int64_t element;
};

class DerivativeCheck {
 public:
  DerivativeCheck(const Program& program, const Datums& arguments, const std::vector<std::string>& names,
                  const DerivativeCheckOptions& options, const Location& loc)
      : program_(program), arguments_(arguments), names_(names), options_(options), loc_(loc) {
    bool single = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      active_.push_back(arguments[i].type().is_differentiable());
      if (!active_[i]) continue;
      single |= is_float(arguments[i]);
      for (std::int64_t k = 0; k < count(arguments[i]); ++k) places_.push_back({i, k});
    }
    results_ = program_.run(arguments_);
    values_ = numbers(results_);
    for (const Datum& r : results_) single |= r.type().is_differentiable() && is_float(r);
    if (places_.empty() || values_.empty())
      raise_at(loc_, "check_derivative: expected a function from floating numbers to floating numbers, got " +
                         std::string(places_.empty() ? "no floating argument" : "no floating result"));
    tolerance_ = options.tolerance > 0 ? options.tolerance : single ? 1e-2 : 1e-5;
    widths_ = single ? std::vector<double>{3e-2, 3e-3} : std::vector<double>{1e-3, 1e-5, 1e-7};
  }

  double run() {
    std::minstd_rand random(7);
    if (std::ssize(places_) > options_.elements) {
      std::ranges::shuffle(places_, random);
      places_.resize(static_cast<std::size_t>(std::max<std::int64_t>(options_.elements, 1)));
    }
    // Reverse mode gives all derivatives of one sum of the results.
    std::uniform_real_distribution<double> weight(0.5, 1.5);
    Datums seeds;
    for (const Datum& r : results_)
      if (r.type().is_differentiable())
        seeds.push_back(made_like(r, [&](std::int64_t) { return weight(random); }));
    weights_ = numbers(seeds);
    // A rule by external functions may do for one of the modes alone.
    Datums adjoints;
    bool forward = true, reverse = true;
    try {
      column(places_.front());
    } catch (const detail::NoDerivative&) {
      forward = false;
    }
    try {
      adjoints = vjp(program_, arguments_, active_, seeds, false, loc_);
    } catch (const detail::NoDerivative&) {
      if (!forward) throw;
      reverse = false;
    }
    for (const Place& place : places_) {
      const Numbers tangent = forward ? numbers(column(place)) : Numbers();
      std::vector<Numbers> differences;
      const double x = element(arguments_[place.argument], place.element), least = std::max(std::abs(x), 1.0);
      for (const double width : widths_) {
        differences.push_back(difference(place, width * least));
        if (x != 0 && std::abs(x) < 1) differences.push_back(difference(place, width * std::abs(x)));
      }
      double scale = 0;
      Numbers sums(differences.size(), 0.0);
      for (std::size_t r = 0; r < values_.size(); ++r) {
        if (forward) compare("forward mode", place, r, tangent[r], differences, r, std::abs(tangent[r]));
        for (std::size_t d = 0; d < sums.size(); ++d) sums[d] += weights_[r] * differences[d][r];
        scale += std::abs(weights_[r] * differences.front()[r]);
      }
      if (!reverse) continue;
      std::vector<Numbers> together;
      for (const double s : sums) together.push_back({s});
      std::size_t adjoint = 0;
      for (std::size_t i = 0; i < place.argument; ++i) adjoint += active_[i];
      compare("reverse mode", place, values_.size(), element(adjoints[adjoint], place.element), together, 0,
              scale);
    }
    return largest_;
  }

 private:
  Datums column(const Place& place) const {
    Datums tangents;
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      if (active_[i])
        tangents.push_back(made_like(arguments_[i], [&](std::int64_t k) {
          return i == place.argument && k == place.element ? 1.0 : 0.0;
        }));
    const Datums all = jvp(program_, arguments_, active_, tangents, loc_);
    return {all.begin() + std::ssize(results_), all.end()};
  }

  Numbers difference(const Place& place, double h) const {
    constexpr std::array<std::pair<double, double>, 4> steps{{{-2, 1}, {-1, -8}, {1, 8}, {2, -1}}};
    Numbers sum(values_.size(), 0.0);
    for (const auto& [step, weight] : steps) {
      Datums moved = arguments_;
      moved[place.argument] = made_like(arguments_[place.argument], [&](std::int64_t k) {
        return element(arguments_[place.argument], k) + (k == place.element ? step * h : 0.0);
      });
      const Numbers y = numbers(program_.run(moved));
      if (y.size() != sum.size())
        raise_at(loc_, "check_derivative: the results change their shape with the arguments");
      for (std::size_t r = 0; r < sum.size(); ++r) sum[r] += weight / (12 * h) * y[r];
    }
    return sum;
  }

  /// Slopes of a result to the two sides.
  struct Sides {
    double left, right;
    bool both() const { return std::isfinite(left) && std::isfinite(right); }
    bool kink(double slack) const { return !both() || std::abs(left - right) > slack; }
    bool allows(double d, double slack) const {
      if (both()) return d >= std::min(left, right) - slack && d <= std::max(left, right) + slack;
      const double only = std::isfinite(left) ? left : right;
      return std::isfinite(only) && std::abs(d - only) <= slack;
    }
  };
  Sides sides(const Place& place, std::size_t result) const {
    const double x = element(arguments_[place.argument], place.element);
    const double h = widths_.back() * std::max(std::abs(x), 1.0);
    const auto slope = [&](double step) {
      const auto at = [&](double off) {
        Datums moved = arguments_;
        moved[place.argument] = made_like(arguments_[place.argument], [&](std::int64_t k) {
          return element(arguments_[place.argument], k) + (k == place.element ? off : 0.0);
        });
        const Numbers y = numbers(program_.run(moved));
        if (result < values_.size()) return y[result];
        double sum = 0;
        for (std::size_t r = 0; r < y.size(); ++r) sum += weights_[r] * y[r];
        return sum;
      };
      return (4 * at(step) - at(2 * step) - 3 * at(0)) / (2 * step);
    };
    return {slope(-h), slope(h)};
  }

  void tell(const char* mode, const std::string& where, double derivative, const Sides& s) const {
    char text[160];
    std::snprintf(text, sizeof text, " gives %.10g, and the slopes to the two sides are %.10g and %.10g", derivative, s.left,
                  s.right);
    const std::string message =
        "check_derivative: '" + program_.name + "' has a kink here by " + where + ": " + mode + text;
    if (options_.kink) options_.kink(message);
    else std::fprintf(stderr, "%s\n", message.c_str());
  }

  /// `result`: its number, or how many there are for a sum over all.
  void compare(const char* mode, const Place& place, std::size_t result, double derivative,
               const std::vector<Numbers>& differences, std::size_t at, double scale) {
    double best = std::numeric_limits<double>::infinity(), nearest = 0;
    for (const Numbers& d : differences) {
      const double off = std::abs(derivative - d[at]);
      if (off < best) best = off, nearest = d[at];
    }
    // What cancels in a result is not seen more exactly than the result is.
    const double value = result < values_.size() ? std::abs(values_[result]) : 0;
    const double error = best / std::max({scale, std::abs(nearest), 1e-3 * value, 1e-6});
    if (error <= tolerance_) {
      largest_ = std::max(largest_, error);
      return;
    }
    const Datum& argument = arguments_[place.argument];
    std::string where = names_[place.argument];
    if (argument.type().is_tensor()) where += ", element " + std::to_string(place.element);
    const Sides s = sides(place, result);
    const double slack = 100 * tolerance_ * std::max({std::abs(s.left), std::abs(s.right), 1e-3 * value, 1e-6});
    if (s.kink(slack) && s.allows(derivative, slack)) return tell(mode, where, derivative, s);
    char numbers_text[120];
    std::snprintf(numbers_text, sizeof numbers_text, "%.10g, differences %.10g", derivative, nearest);
    const std::string of =
        result < values_.size()
            ? values_.size() > 1 ? "number " + std::to_string(result + 1) + " of the results" : "the result"
            : "a weighted sum of the results";
    char kink[160] = "";
    if (s.kink(slack))
      std::snprintf(kink, sizeof kink, "; there is a kink here, with slopes %.10g and %.10g to the two sides", s.left, s.right);
    raise_at(loc_, "check_derivative: the derivative of " + of + " of '" + program_.name + "' by " + where +
                       ": " + mode + " gives " + numbers_text + kink);
  }

  const Program& program_;
  const Datums& arguments_;
  const std::vector<std::string>& names_;
  const DerivativeCheckOptions& options_;
  Location loc_;
  Active active_;
  std::vector<Place> places_;
  Datums results_;
  Numbers values_, widths_, weights_;
  double tolerance_ = 0, largest_ = 0;
};

}  // namespace

double check_derivative(const Program& program, const Datums& arguments,
                        const std::vector<std::string>& names, const DerivativeCheckOptions& options,
                        const Location& loc) {
  double largest = 0;
  const auto check = [&](const Datums& in) {
    largest = DerivativeCheck(program, in, names, options, loc).run();
    return Datums{};
  };
  run_eagerly({"check_derivative", check}, arguments);
  return largest;
}

}  // namespace lantern::core::ad
