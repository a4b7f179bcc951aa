// Reverse mode for programs written in continuation-passing style by hand (Lantern paper, Fig. 7).
//
//   using cps::Number, cps::K;
//   const auto f = [](const Number& x) {
//     return [=](const K& k) {  // 2 * x + x * x * x
//       (2.0 * x)([=](const Number& y1) { (x * x)([=](const Number& y2) { (y2 * x)([=](const Number& y3) {
//       (y1 + y3)(k); }); }); });
//     };
//   };
//   cps::grad(f, 3.0)  // 29
//
// No control operators: this is what mode::reverse is without shift, and what shift spares the user. As
// continuations are functions of the host language the program may be staged, too: the code is that of
// section 4.1.
#pragma once

#include <functional>
#include <memory>

#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::core::cps {

/// NumR0: a value x and a mutable adjoint d.
class Number {
 public:
  explicit Number(const Rep<double>& x) : parts_(std::make_shared<Parts>(x)) {}
  Number(double x) : Number(Rep<double>(x)) {}
  const Rep<double>& x() const { return parts_->x; }
  Var<double>& d() const { return parts_->d; }

 private:
  struct Parts {
    explicit Parts(const Rep<double>& v) : x(v), d(0.0) {}
    Rep<double> x;
    Var<double> d;
  };
  std::shared_ptr<Parts> parts_;
};

/// The rest of the program.
using K = std::function<void(const Number&)>;

/// A computation that passes its result on.
using Computation = std::function<void(const K&)>;

inline Computation operator+(const Number& a, const Number& b) {
  return [a, b](const K& k) {
    const Number y(a.x() + b.x());
    k(y);
    a.d() += y.d();
    b.d() += y.d();
  };
}

inline Computation operator*(const Number& a, const Number& b) {
  return [a, b](const K& k) {
    const Number y(a.x() * b.x());
    k(y);
    a.d() += b.x() * y.d();
    b.d() += a.x() * y.d();
  };
}

/// The derivative at x of a program f : Number -> Computation.
template <class F>
Rep<double> grad(const F& f, const Rep<double>& x) {
  const Number z(x);
  f(z)([](const Number& r) { r.d() = 1.0; });
  return z.d();
}

}  // namespace lantern::core::cps
