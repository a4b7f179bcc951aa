// Floating-point numbers of 16 bits or fewer: what their bits mean.
//
// Those of 8 bits: "OCP 8-bit Floating Point Specification", 2023, and their fnuz variants of one zero and no
// infinity (Noune et al., "8-bit Numerical Formats for Deep Neural Networks", 2022). Those of 4 and 6 bits and
// the powers of 2: "OCP Microscaling Formats", 2023.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lantern::core {

struct FloatFormat {
  int bits;           ///< of a number
  int digits;         ///< binary digits of a number, the leading one among them
  int least;          ///< the smallest number above 0 is 2^least
  double largest;     ///< finite number
  bool infinite;      ///< whether there are infinities
  bool not_a_number;  ///< whether there is a NaN
  bool negative;      ///< whether there are numbers below 0; else all are powers of 2
  bool signed_zero;   ///< whether 0 has a sign
};

inline constexpr FloatFormat float16_format{16, 11, -24, 65504, true, true, true, true};
inline constexpr FloatFormat bfloat16_format{16, 8, -133, 0x1.fep127, true, true, true, true};
inline constexpr FloatFormat float8e4m3fn_format{8, 4, -9, 448, false, true, true, true};
inline constexpr FloatFormat float8e4m3fnuz_format{8, 4, -10, 240, false, true, true, false};
inline constexpr FloatFormat float8e5m2_format{8, 3, -16, 57344, true, true, true, true};
inline constexpr FloatFormat float8e5m2fnuz_format{8, 3, -17, 57344, false, true, true, false};
inline constexpr FloatFormat float6e2m3_format{6, 4, -3, 7.5, false, false, true, true};
inline constexpr FloatFormat float6e3m2_format{6, 3, -4, 28, false, false, true, true};
inline constexpr FloatFormat float4e2m1_format{4, 2, -1, 6, false, false, true, true};
inline constexpr FloatFormat float8e8m0_format{8, 1, -127, 0x1p127, false, true, false, false};

/// The number that bits of a format of 8 bits or fewer mean.
inline float decoded(const FloatFormat& f, unsigned code) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  if (!f.negative) return code == 255 ? nan : std::ldexp(1.0F, static_cast<int>(code) + f.least);
  const unsigned sign = 1U << (f.bits - 1), size = code & (sign - 1), hidden = 1U << (f.digits - 1);
  const unsigned ends = sign - hidden;  // the code of infinity
  if (!f.signed_zero && code == sign) return nan;
  if (f.infinite ? size > ends : f.signed_zero && f.not_a_number && size == sign - 1) return nan;
  const unsigned exponent = size / hidden, fraction = size % hidden;
  float v = exponent == 0
                ? std::ldexp(static_cast<float>(fraction), f.least)
                : std::ldexp(static_cast<float>(hidden + fraction), f.least + static_cast<int>(exponent) - 1);
  if (f.infinite && size == ends) v = std::numeric_limits<float>::infinity();
  return code >= sign ? -v : v;
}

/// The bits of the nearest number, ties to even; what is larger than the largest becomes infinite or, where
/// nothing is, that. Where there is no NaN, it is the largest.
inline unsigned encoded(const FloatFormat& f, float x) {
  const unsigned sign = f.negative ? 1U << (f.bits - 1) : 0U, hidden = 1U << (f.digits - 1);
  if (std::isnan(x) && f.not_a_number) return !f.negative ? 255U : f.signed_zero ? sign - 1 : sign;
  const double size = std::isnan(x) ? f.largest : std::abs(static_cast<double>(x));
  const int lowest = f.least + f.digits - 1;  // the exponent of the smallest number with all digits
  const int exponent = std::isinf(size) ? 0 : size > 0 ? std::max(std::ilogb(size), lowest) : lowest;
  const double units = std::isinf(size) ? 0 : std::nearbyint(std::ldexp(size, f.digits - 1 - exponent));
  if (std::isinf(size) || std::ldexp(units, exponent - f.digits + 1) > f.largest) {
    if (f.infinite) return (sign - hidden) | (std::signbit(x) ? sign : 0U);
    return encoded(f, static_cast<float>(std::copysign(f.largest, x)));
  }
  if (!f.negative) return static_cast<unsigned>(std::max(0, exponent + (units > 1 ? 1 : 0) - f.least));
  const auto whole = static_cast<unsigned>(units);
  unsigned code = whole < hidden ? whole : static_cast<unsigned>(exponent - lowest) * hidden + whole;
  if (std::signbit(x) && (code != 0 || f.signed_zero)) code |= sign;
  return code;
}

}  // namespace lantern::core
