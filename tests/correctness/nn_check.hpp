// What the tests of layers and losses share: a program of one vector, of which it cuts its parameters and its
// data, is run in every way, and its derivatives are compared with each other and with differences.
#pragma once

#include <cmath>
#include <functional>
#include <lantern/nn.hpp>
#include <numeric>

#include "catch2/catch.hpp"

namespace nn_check {

using namespace lantern;

using T = Rep<Tensor<double>>;
using I = Rep<Tensor<std::int64_t>>;
using Shape = std::vector<std::int64_t>;
using Function = std::function<T(const T&)>;

/// The numbers that the goldens were made of, in PyTorch.
inline TensorValue<double> numbers(std::int64_t n, double seed) {
  TensorValue<double> t({n});
  for (std::size_t i = 0; i < t.data.size(); ++i) {
    const auto k = static_cast<double>(i);
    t.data[i] = 0.6 * std::sin(1.7 * k + seed) + 0.1 * std::cos(5.3 * k);
  }
  return t;
}

/// Tensors cut off a vector one after the other.
class Cut {
 public:
  explicit Cut(const T& x) : x_(x) {}
  T operator()(const Shape& shape) {
    std::int64_t n = 1;
    core::Datums sizes;
    for (const std::int64_t d : shape) {
      n *= d;
      sizes.push_back(core::detail::literal(d));
    }
    const T part = x_.slice(at_, at_ + n);
    at_ += n;
    return T(core::detail::reshape(part.datum(), sizes, {}));
  }

 private:
  T x_;
  std::int64_t at_ = 0;
};

/// A tensor of integers that the program knows.
inline I integers(const std::vector<std::int64_t>& values, const Shape& shape) {
  I t = zeros<std::int64_t>({static_cast<std::int64_t>(values.size())});
  core::Datums sizes;
  for (std::size_t i = 0; i < values.size(); ++i)
    t = t.set(static_cast<std::int64_t>(i), Rep<std::int64_t>(values[i]));
  for (const std::int64_t d : shape) sizes.push_back(core::detail::literal(d));
  return I(core::detail::reshape(t.datum(), sizes, {}));
}
/// Numbers as a tensor; tensors as one vector.
inline T one(const Rep<double>& v) { return T(as_tensor(fill(v, 1))); }
inline T all_of_them(const std::vector<T>& parts) {
  T flat = ravel(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) flat = concat(flat, ravel(parts[i]));
  return flat;
}

inline void same(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("element " << i);
    if (std::isinf(b[i]))
      CHECK(a[i] == b[i]);
    else
      CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
  }
}

/// A number that depends on every element of y, and not linearly.
inline Rep<double> weighed(const T& y) {
  const T flat = ravel(y);
  const T weights(tabulate([](auto i) { return cos(cast<double>(i) + 1.0); }, flat.dim(0)));
  return sum(weights * flat + 0.25 * flat * flat);
}
inline double weighed(const std::vector<double>& y) {
  double s = 0;
  for (std::size_t i = 0; i < y.size(); ++i)
    s += std::cos(static_cast<double>(i) + 1) * y[i] + 0.25 * y[i] * y[i];
  return s;
}

/// f at x is `golden`; eager, by C and, `by_clang`, by C++; its gradient by reverse mode is that by forward
/// mode and, where f is `smooth`, by differences.
inline void check(const char* name, const Function& f, const TensorValue<double>& x,
                  const std::vector<double>& golden, bool smooth = true, bool by_clang = true) {
  INFO(name);
  const auto program = [f](T t, T direction) {
    const auto scalar = sig<Rep<double>(T)>([f](const T& u) { return weighed(f(u)); });
    return std::tuple(f(t), grad(scalar)(t), std::get<1>(jvp(scalar)(t, direction)));
  };
  const TensorValue<double> v = numbers(static_cast<std::int64_t>(x.data.size()), 0.7);
  const auto [y, gradient, slope] = eager(program)(x, v);
  same(y.data, golden, 1e-10);
  if (smooth)
    CHECK(slope == Approx(std::inner_product(v.data.begin(), v.data.end(), gradient.data.begin(), 0.0))
                       .epsilon(1e-9)
                       .margin(1e-9));
  for (const Target target : {Target::c, Target::cpp}) {
    if (target == Target::cpp && !by_clang) break;
    INFO((target == Target::c ? "C" : "C++"));
    const auto compiled = compile(program, {.target = target, .opt = target == Target::c ? 0 : 1});
    const auto [y2, gradient2, slope2] = compiled(x, v);
    CHECK(y2.shape == y.shape);
    same(y2.data, y.data, 1e-11);
    same(gradient2.data, gradient.data, 1e-9);
    CHECK(slope2 == Approx(slope).epsilon(1e-9).margin(1e-9));
    if (target == Target::cpp || !smooth) continue;
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      TensorValue<double> up = x, down = x;
      up.data[i] += 1e-5;
      down.data[i] -= 1e-5;
      INFO("derivative by element " << i);
      const double difference =
          (weighed(std::get<0>(compiled(up, v)).data) - weighed(std::get<0>(compiled(down, v)).data)) / 2e-5;
      CHECK(gradient.data[i] == Approx(difference).epsilon(1e-5).margin(1e-7));
    }
  }
}

}  // namespace nn_check
