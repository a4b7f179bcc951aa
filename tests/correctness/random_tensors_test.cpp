// Random chains of tensor functions over random shapes, of one to four dimensions, with sizes of 0 and 1
// among them: eager against compiled, forward against reverse, derivatives against differences, second
// derivatives against those.
#include <algorithm>
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <lantern/tensor.hpp>
#include <numeric>
#include <optional>
#include <random>

#include "depth.hpp"

using namespace lantern;

namespace {

using T = Rep<Tensor<double>>;
using Ints = Rep<Tensor<std::int64_t>>;
using Shape = std::vector<std::int64_t>;
using Function = std::function<T(const T&)>;
namespace functions = core::detail;

/// A function of a tensor, as text and as a program.
struct Step {
  std::string text;
  Function apply;
};

/// Makes steps for tensors of a shape, which it follows.
class Chain {
 public:
  Chain(std::mt19937& random, Shape shape) : random_(random), shape_(std::move(shape)) {}

  const Shape& shape() const { return shape_; }
  /// A step for a tensor of the shape; nothing where the one that was drawn does not fit.
  std::optional<Step> step() {
    const int rank = static_cast<int>(shape_.size());
    const int axis = below(rank);
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t n = shape_[a];
    switch (below(30)) {
      case 0:
        return Step{"tanh", [](const T& t) { return tanh(t); }};
      case 1:
        return Step{"x * sin(x)", [](const T& t) { return t * sin(t); }};
      case 2:
        return Step{"exp", [](const T& t) { return exp(t * 0.3); }};
      case 3:
        return Step{"gelu", [](const T& t) { return gelu(t); }};
      case 4:
        return Step{"where", [](const T& t) { return T(where(t > 0.13, t * t, 0.5 * t)); }};
      case 5:
        return permuted();
      case 6:
        return reshaped();
      case 7:
        return Step{fmt::format("flip<{}>", axis), [=](const T& t) {
                      return T(functions::flip(t.datum(), {&axis, 1}, {}));
                    }};
      case 8: {
        const std::int64_t by = below(7) - 3;
        return Step{fmt::format("roll<{}>({})", axis, by), [=](const T& t) {
                      return T(functions::roll(t.datum(), axis, functions::literal(by), {}));
                    }};
      }
      case 9:
        return padded(a);
      case 10: {
        shape_[a] *= 2;
        return Step{fmt::format("concat<{}>", axis), [=](const T& t) {
                      const core::Datum both[] = {t.datum(), (t * 2.0).datum()};
                      return T(functions::concat(both, axis, {}));
                    }};
      }
      case 11: {
        if (rank == 4) return {};
        const int place = below(rank + 1);
        shape_.insert(shape_.begin() + place, 2);
        return Step{fmt::format("stack<{}>", place), [=](const T& t) {
                      const core::Datum both[] = {t.datum(), sin(t).datum()};
                      return T(functions::stack(both, place, {}));
                    }};
      }
      case 12:
        return part(a);
      case 13: {
        if (rank == 4) return {};
        const int place = below(rank + 1);
        shape_.insert(shape_.begin() + place, 1);
        return Step{fmt::format("unsqueeze<{}>", place), [=](const T& t) {
                      return T(functions::unsqueeze(t.datum(), {&place, 1}, {}));
                    }};
      }
      case 14: {
        if (n != 1 || rank == 1) return {};
        shape_.erase(shape_.begin() + axis);
        return Step{fmt::format("squeeze<{}>", axis), [=](const T& t) {
                      return T(functions::squeeze(t.datum(), {&axis, 1}, {}));
                    }};
      }
      case 15: {
        shape_[a] *= 2;
        return Step{fmt::format("repeat<{}>", axis), [=](const T& t) {
                      return T(functions::repeat(t.datum(), axis, functions::literal(std::int64_t{2}), {}));
                    }};
      }
      case 16: {
        if (n != 1) return {};
        core::Datums sizes;
        shape_[a] = 3;
        for (const std::int64_t d : shape_) sizes.push_back(functions::literal(d));
        return Step{fmt::format("expand({})", fmt::join(shape_, ", ")),
                    [=](const T& t) { return T(functions::expand(t.datum(), sizes, {})); }};
      }
      case 17:
      case 18:
      case 19:
      case 20:
        return reduced();
      case 21:
        return Step{fmt::format("softmax<{}>", axis),
                    [=](const T& t) { return T(functions::softmax(t.datum(), axis, false, {})); }};
      case 22:
        return Step{fmt::format("cumsum<{}>", axis), [=](const T& t) {
                      return T(functions::running(core::Opcode::add_, t.datum(), axis, {}));
                    }};
      case 23:
        return Step{fmt::format("cumprod<{}>", axis), [=](const T& t) {
                      return T(functions::running(core::Opcode::mul_, t.datum(), axis, {}));
                    }};
      case 24:
        return Step{fmt::format("sort<{}>", axis), [=](const T& t) {
                      const core::Datum order = functions::argsort(t.datum(), axis, below_even(axis), {});
                      return T(functions::gather(t.datum(), axis, order, {}));
                    }};
      case 25: {
        if (n == 0) return {};
        shape_[a] = 3;
        return Step{fmt::format("take<{}>", axis), [=](const T& t) {
                      const Ints at = tabulate([&](auto i) { return (i * 2 + 1) % n; }, 3);
                      return T(functions::take_along(t.datum(), axis, at.datum(), {}));
                    }};
      }
      case 26:
        return Step{fmt::format("x - mean<{}>(x, keep)", axis), [=](const T& t) {
                      return t - T(functions::mean_along(t.datum(), {{&axis, 1}, true}, {}));
                    }};
      case 27: {
        if (rank < 2 || rank > 3) return {};
        shape_.back() = shape_[shape_.size() - 2];
        return Step{"matmul with its transpose", [=](const T& t) {
                      return rank == 2 ? T(matmul(t, T(permute<1, 0>(t))))
                                       : T(matmul(t, T(permute<0, 2, 1>(t))));
                    }};
      }
      case 28: {
        if (rank < 3 || n == 0 || std::ranges::count(shape_, 0) > 0) return {};
        std::fill(shape_.begin() + 2, shape_.end(), 2);
        const bool largest = below(2) == 0;
        return Step{largest ? "adaptive_max_pool(2)" : "adaptive_average_pool(2)", [=](const T& t) {
                      return largest ? adaptive_max_pool(t, 2) : adaptive_average_pool(t, 2);
                    }};
      }
      default: {
        if (n < 2) return {};
        return Step{fmt::format("set_part in {}", axis), [=](const T& t) {
                      std::vector<core::Part> parts(static_cast<std::size_t>(rank), core::Part(all));
                      parts[a] = core::Part(range(1, to_end));
                      const core::Datum v = functions::part((t * t).datum(), parts, {});
                      return T(functions::with_part(t.datum(), parts, v, {}));
                    }};
      }
    }
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  static bool below_even(int axis) { return axis % 2 == 0; }
  Step permuted() {
    std::vector<int> order(shape_.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    Shape now;
    for (const int d : order) now.push_back(shape_[static_cast<std::size_t>(d)]);
    shape_ = now;
    return {fmt::format("permute<{}>", fmt::join(order, ", ")),
            [=](const T& t) { return T(functions::permuted(t.datum(), order, {})); }};
  }
  Step reshaped() {
    const std::int64_t n =
        std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1}, std::multiplies<>());
    shape_ = n == 0 ? Shape{0, 3} : n % 2 == 0 ? Shape{n / 2, 2} : n % 3 == 0 ? Shape{3, 1, n / 3} : Shape{n};
    core::Datums sizes;
    for (const std::int64_t d : shape_) sizes.push_back(functions::literal(d));
    return {fmt::format("reshape({})", fmt::join(shape_, ", ")),
            [=](const T& t) { return T(functions::reshape(t.datum(), sizes, {})); }};
  }
  std::optional<Step> padded(std::size_t a) {
    const auto how = static_cast<core::Pad>(below(3));
    const std::int64_t before = below(3), after = below(2);
    if (how == core::Pad::reflect && shape_[a] < 3) return {};
    if (how == core::Pad::edge && shape_[a] < 1) return {};
    shape_[a] += before + after;
    return Step{fmt::format("pad of {} by {}, {}, {}", a, before, after, static_cast<int>(how)),
                [=](const T& t) {
                  std::vector<std::array<core::Datum, 2>> widths(
                      a + 1, {functions::literal(std::int64_t{0}), functions::literal(std::int64_t{0})});
                  widths[a] = {functions::literal(before), functions::literal(after)};
                  return T(functions::pad(t.datum(), widths, how, functions::literal(0.4), {}));
                }};
  }
  std::optional<Step> part(std::size_t a) {
    if (shape_[a] < 1) return {};
    const std::int64_t lo = below(static_cast<int>(shape_[a])), step = 1 + below(2),
                       rank = static_cast<std::int64_t>(shape_.size());
    shape_[a] = (shape_[a] - lo + step - 1) / step;
    return Step{fmt::format("part of {} from {} by {}", a, lo, step), [=](const T& t) {
                  std::vector<core::Part> parts(static_cast<std::size_t>(rank), core::Part(all));
                  parts[a] = core::Part(range(lo, to_end, step));
                  return T(functions::part(t.datum(), parts, {}));
                }};
  }
  std::optional<Step> reduced() {
    std::vector<int> axes;
    for (int d = 0; d < static_cast<int>(shape_.size()); ++d)
      if (below(2) == 0) axes.push_back(d);
    const bool keep_them = below(2) == 0;
    if (axes.empty() || (axes.size() == shape_.size() && !keep_them)) return {};
    Shape now;
    for (int d = 0; d < static_cast<int>(shape_.size()); ++d) {
      const bool gone = std::ranges::find(axes, d) != axes.end();
      if (!gone)
        now.push_back(shape_[static_cast<std::size_t>(d)]);
      else if (keep_them)
        now.push_back(1);
    }
    shape_ = now;
    using Reduction = core::Datum (*)(const core::Datum&, functions::Over, const core::Location&);
    struct Named {
      const char* name;
      Reduction f;
    };
    static constexpr Named reductions[] = {
        {"sum", functions::sum_along},
        {"mean", functions::mean_along},
        {"prod", functions::product},
        {"logsumexp", functions::logsumexp_along},
        {"norm", functions::norm},
        {"var", [](const core::Datum& t, functions::Over o,
                   const core::Location& l) { return functions::variance(t, o, 0, l); }},
        {"max", [](const core::Datum& t, functions::Over o,
                   const core::Location& l) { return functions::extremum_along(t, o, true, l); }},
        {"min", [](const core::Datum& t, functions::Over o, const core::Location& l) {
           return functions::extremum_along(t, o, false, l);
         }}};
    const Named r = reductions[below(8)];
    return Step{fmt::format("{}<{}>{}", r.name, fmt::join(axes, ", "), keep_them ? "(keep)" : ""),
                [=](const T& t) {
                  return T(r.f(t.datum(), {axes, keep_them}, {}));
                }};
  }

  std::mt19937& random_;
  Shape shape_;
};

TensorValue<double> numbers(std::mt19937& random, const Shape& shape) {
  TensorValue<double> t(shape);
  std::normal_distribution<double> normal(0.2, 0.8);
  for (double& x : t.data) x = normal(random);
  return t;
}

/// The answer, or what was wrong.
struct Outcome {
  std::string error;
  TensorValue<double> value;
};
template <class F>
Outcome outcome(const F& f) {
  try {
    return {{}, f()};
  } catch (const Error& e) {
    return {e.what(), {}};
  }
}

void same(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("element " << i);
    if (std::isnan(b[i]))
      CHECK(std::isnan(a[i]));
    else if (std::isinf(b[i]))
      CHECK(a[i] == b[i]);
    else
      CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
  }
}

void agree(const Outcome& a, const Outcome& b, double tolerance) {
  INFO(a.error << " beside " << b.error);
  CHECK(a.error.empty() == b.error.empty());
  if (!a.error.empty() || !b.error.empty()) return;
  CHECK(a.value.shape == b.value.shape);
  same(a.value.data, b.value.data, tolerance);
}

void check(unsigned seed, bool by_clang, bool second) {
  std::mt19937 random(seed);
  static constexpr std::int64_t sizes[] = {0, 1, 1, 2, 3, 3, 5};
  Shape in(1 + random() % 4);
  for (std::int64_t& n : in) n = sizes[random() % (in.size() > 3 ? 5 : 7)];
  Chain chain(random, in);
  std::vector<Step> steps;
  const std::size_t length = 2 + random() % 4;
  const auto small = [](const Shape& s) {
    return std::accumulate(s.begin(), s.end(), std::int64_t{1}, std::multiplies<>()) < 200;
  };
  while (steps.size() < length && small(chain.shape()))
    if (std::optional<Step> s = chain.step()) steps.push_back(std::move(*s));
  std::string text = fmt::format("seed {}: of [{}]", seed, fmt::join(in, ", "));
  for (const Step& s : steps) text += ", " + s.text;
  INFO(text);
  const auto program = [steps](T t) {
    for (const Step& s : steps) t = s.apply(t);
    return t;
  };
  const auto scalar = [program](T t) {
    const T y = ravel(program(t));
    const T weights(tabulate([](auto i) { return cos(cast<double>(i) + 1.0); }, y.dim(0)));
    return sum(weights * y + 0.25 * y * y);
  };
  const TensorValue<double> x = numbers(random, in), v = numbers(random, in);
  const auto ways = [&](const auto& f, const auto& run, double tolerance) {
    const Outcome eagerly = outcome([&] { return run(eager(f)); });
    std::vector<CompileOptions> all{{.target = Target::c, .opt = 0}, {.target = Target::c, .opt = 3}};
    if (by_clang) all.push_back({.target = Target::cpp});
    for (const CompileOptions& o : all) {
      INFO((o.target == Target::c ? "C, opt " : "C++, opt ") << o.opt);
      agree(outcome([&] { return run(compile(f, o)); }), eagerly, tolerance);
    }
    return eagerly;
  };
  const Outcome value = ways(
      program, [&](const auto& f) { return f(x); }, 1e-11);
  if (value.error.empty()) CHECK(value.value.shape == chain.shape());
  const auto gradient = grad(scalar);
  const Outcome slopes = ways(
      gradient, [&](const auto& f) { return f(x); }, 1e-8);
  if (!value.error.empty() || !slopes.error.empty()) return;
  const auto dot = [](const TensorValue<double>& a, const TensorValue<double>& b) {
    return std::inner_product(a.data.begin(), a.data.end(), b.data.begin(), 0.0);
  };
  const double slope = dot(slopes.value, v);
  if (!std::isfinite(slope) || !std::isfinite(dot(value.value, value.value))) return;
  CHECK(std::get<1>(compile(jvp(scalar), {.target = Target::c, .opt = 3})(x, v)) ==
        Approx(slope).epsilon(1e-8).margin(1e-8));
  const auto moved = [&](double h) {
    TensorValue<double> to = x;
    for (std::size_t i = 0; i < to.data.size(); ++i) to.data[i] += h * v.data[i];
    return to;
  };
  const auto plain = eager(scalar);
  constexpr double h = 1e-6;
  CHECK((plain(moved(h)) - plain(moved(-h))) / (2 * h) == Approx(slope).epsilon(1e-4).margin(1e-4));
  if (!second) return;
  const auto again = [&](const auto& f) { return f(x, v); };
  const Outcome product = ways(hvp(scalar), again, 1e-7);
  if (!product.error.empty()) return;
  const auto slopes_at = eager(gradient);
  CHECK((dot(slopes_at(moved(h)), v) - dot(slopes_at(moved(-h)), v)) / (2 * h) ==
        Approx(dot(product.value, v)).epsilon(1e-3).margin(1e-3));
}

}  // namespace

TEST_CASE("random chains of tensor functions over random shapes", "[random]") {
  test::Seeds(60, 20'000).each([](unsigned seed) { check(seed, seed % 12 == 0, seed % 4 == 0); });
}
