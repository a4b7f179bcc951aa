// Functions composed of those of the table: activations, clip, digamma. Of numbers and, element by element,
// of tensors.
#pragma once

#include <source_location>

#include "lantern/compiler/staging/rep.hpp"

namespace lantern::core {

namespace detail {
Datum sigmoid(const Datum& x, const Location& loc);
Datum softplus(const Datum& x, const Location& loc);
Datum relu(const Datum& x, const Location& loc);
Datum gelu(const Datum& x, const Location& loc);
Datum gelu_tanh(const Datum& x, const Location& loc);
Datum silu(const Datum& x, const Location& loc);
Datum digamma(const Datum& x, const Location& loc);
/// The larger of x and a bound, or the smaller: at a bound that is a constant the derivative is x's, with another value
/// they share it.
Datum bounded(const Datum& x, const Datum& bound, bool below, bool constant, const Location& loc);
/// y, but where x is NaN, x.
Datum keep_nan(const Datum& x, const Datum& y, const Location& loc);
}  // namespace detail

#define LANTERN_COMPOSED(name)                                                             \
  template <class T>                                                                       \
    requires(FloatElement<typename detail::Traits<T>::element>)                            \
  [[nodiscard]] Rep<T> name(const Rep<T>& x, std::source_location l = std::source_location::current()) { \
    return Rep<T>(detail::name(x.datum(), here(l)));                                       \
  }
/// 1 / (1 + exp(-x)), without overflow.
LANTERN_COMPOSED(sigmoid)
/// log(1 + exp(x)), without overflow; its derivative is the sigmoid.
LANTERN_COMPOSED(softplus)
/// The larger of x and 0; derivative 0 at 0, NaN of NaN.
LANTERN_COMPOSED(relu)
/// x times the normal distribution's cumulative function: x (1 + erf(x / sqrt 2)) / 2; 0 at -inf, as below -40, with
/// derivative 0.
LANTERN_COMPOSED(gelu)
/// Its approximation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, as PyTorch's approximate="tanh",
/// JAX's default.
LANTERN_COMPOSED(gelu_tanh)
/// x sigmoid(x), also known as swish; 0 at -inf, as below -800, with derivative 0.
LANTERN_COMPOSED(silu)
/// The derivative of lgamma.
LANTERN_COMPOSED(digamma)
#undef LANTERN_COMPOSED

/// The size of whole numbers; the smallest of them is its own.
template <class T>
requires(detail::IntegerElement<typename detail::Traits<T>::element>) Rep<T> abs(
    const Rep<T>& x, std::source_location l = std::source_location::current()) {
  return detail::binary<Rep<T>>(Opcode::imax_, At<T>(x, l), At<T>(-x, l));
}

/// The nearest number to x from lo to hi (hi where lo is above it), NaN of NaN. Bounds are C++ numbers, at which the
/// derivative is still x's, or values of the program: numbers or, beside a tensor, tensors that broadcast to it, which
/// share the derivative with an x that equals them.
template <class T, std::convertible_to<At<T>> Lo, std::convertible_to<At<T>> Hi>
requires(NumberElement<typename detail::Traits<T>::element>) Rep<T> clip(
    const Rep<T>& x, const Lo& lo, const Hi& hi, std::source_location l = std::source_location::current()) {
  if constexpr (detail::IntegerElement<typename detail::Traits<T>::element>) {
    const Rep<T> raised = detail::binary<Rep<T>>(detail::max_of<T>, At<T>(x, l), At<T>(lo, l));
    return detail::binary<Rep<T>>(detail::min_of<T>, At<T>(raised, l), At<T>(hi, l));
  } else {
    constexpr bool low = std::is_arithmetic_v<Lo>, high = std::is_arithmetic_v<Hi>;
    const At<T> from(lo, l), to(hi, l);
    const Datum raised = detail::bounded(x.datum(), from.datum, true, low, here(l));
    const Datum both = detail::bounded(raised, to.datum, false, high, here(l));
    return Rep<T>(low && high ? both : detail::keep_nan(x.datum(), both, here(l)));
  }
}

/// clip by its name in namespace std.
namespace standard_names {
template <class T, std::convertible_to<At<T>> Lo, std::convertible_to<At<T>> Hi>
  requires(NumberElement<typename detail::Traits<T>::element>)
[[nodiscard]] Rep<T> clamp(const Rep<T>& x, const Lo& lo, const Hi& hi,
                           std::source_location l = std::source_location::current()) {
  return clip(x, lo, hi, l);
}
/// As special as std::clamp, which would branch.
template <class T>
  requires(NumberElement<typename detail::Traits<T>::element>)
[[nodiscard]] Rep<T> clamp(const Rep<T>& x, const Rep<T>& lo, const Rep<T>& hi,
                           std::source_location l = std::source_location::current()) {
  return clip(x, lo, hi, l);
}
}  // namespace standard_names

}  // namespace lantern::core

namespace std {
using lantern::core::standard_names::clamp;
}  // namespace std
