// Element by element, beside the functions of <lantern/lantern.hpp>: cast of tensors, erfinv.
#pragma once

#include <limits>

#include "lantern/compiler/staging/functions.hpp"

namespace lantern::core {

/// The elements as numbers of another type, as cast does it to numbers: cast<float>(t).
template <ScalarElement To, class T, std::int64_t... D>
Rep<Tensor<To, D...>> cast(const Rep<Tensor<T, D...>>& t, std::source_location l = std::source_location::current()) {
  const auto kind = static_cast<std::int64_t>(detail::TypeOf<To>::get().kind());
  if constexpr (std::same_as<To, T>) return t;
  else return Rep<Tensor<To, D...>>(perform({Opcode::cast_, kind, here(l)}, {t.datum()}), l);
}

/// The x with erf(x) = y: infinite at -1 and 1, as its derivative, and both are NaN outside. An approximation with the right first digits, and two
/// steps of Newton's method, through which its derivatives are right as well. Source: Winitzki, "A handy
/// approximation for the error function and its inverse", 2008.
template <class T>
  requires(FloatElement<typename detail::Traits<T>::element>)
Rep<T> erfinv(const Rep<T>& y, std::source_location l = std::source_location::current()) {
  using E = typename detail::Traits<T>::element;
  const auto select_by = [&](const auto& c, const Rep<T>& a, const Rep<T>& b) {
    return Rep<T>(perform({Opcode::select_, 0, here(l)}, {c.datum(), a.datum(), b.datum()}));
  };
  const auto below = y < E(0);
  const Rep<T> size = select_by(below, -y, y);
  const auto ends = size >= E(1), small = size <= E(0.5);
  // At the ends the formula has no number; one inside represents them meanwhile.
  const Rep<T> inside = select_by(ends, size * E(0), size);
  constexpr E a = E(0.147);
  const Rep<T> w = log1p(-inside * inside, l), b = E(4.330746750799873) + E(0.5) * w;  // 2 / (pi a)
  Rep<T> x = sqrt(max(sqrt(max(b * b - w / a, E(0)), l) - b, E(1e-30)), l);
  for (int step = 0; step < 3; ++step) {
    // Far out what is missing to 1 has the digits.
    const Rep<T> off = select_by(small, erf(x, l) - inside, (E(1) - inside) - erfc(x, l));
    x = x - off * E(0.886226925452758) * exp(x * x, l);
  }
  // Infinite with its derivative at 1, NaN beyond.
  const Rep<T> found = select_by(ends, E(-2) * log(sqrt(E(1) - size, l), l), x);
  return select_by(below, -found, found);
}

}  // namespace lantern::core
