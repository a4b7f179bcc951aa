// Integers as the table of operations means them (ir/ops.inc): they wrap, and floating numbers become them by
// saturation.
#pragma once

#include <limits>
#include <type_traits>

namespace lantern::ir {

/// An integer whose arithmetic is that of two's complement: nothing overflows.
template <class T>
class Wrapping {
  // Of at least the width of int: what is narrower would be promoted to a signed int, and overflow there.
  using U = std::make_unsigned_t<T>;

 public:
  explicit constexpr Wrapping(T v) : value_(v) {}
  explicit constexpr operator T() const { return value_; }

  friend constexpr Wrapping operator+(Wrapping x, Wrapping y) { return of(U(x.value_) + U(y.value_)); }
  friend constexpr Wrapping operator-(Wrapping x, Wrapping y) { return of(U(x.value_) - U(y.value_)); }
  friend constexpr Wrapping operator*(Wrapping x, Wrapping y) { return of(U(x.value_) * U(y.value_)); }
  friend constexpr Wrapping operator-(Wrapping x) { return of(U(0) - U(x.value_)); }
  /// Of a divisor that is neither 0 nor -1.
  friend constexpr Wrapping operator/(Wrapping x, Wrapping y) {
    return Wrapping(static_cast<T>(x.value_ / y.value_));
  }
  friend constexpr Wrapping operator%(Wrapping x, Wrapping y) {
    return Wrapping(static_cast<T>(x.value_ % y.value_));
  }
  friend constexpr Wrapping operator&(Wrapping x, Wrapping y) { return of(U(x.value_) & U(y.value_)); }
  friend constexpr Wrapping operator|(Wrapping x, Wrapping y) { return of(U(x.value_) | U(y.value_)); }
  friend constexpr Wrapping operator^(Wrapping x, Wrapping y) { return of(U(x.value_) ^ U(y.value_)); }
  friend constexpr Wrapping operator<<(Wrapping x, Wrapping y) { return of(U(x.value_) << bits(y)); }
  friend constexpr Wrapping operator>>(Wrapping x, Wrapping y) {
    return Wrapping(static_cast<T>(x.value_ >> bits(y)));
  }
  friend constexpr bool operator<(Wrapping x, Wrapping y) { return x.value_ < y.value_; }
  friend constexpr bool operator>(Wrapping x, Wrapping y) { return x.value_ > y.value_; }

 private:
  static constexpr U bits(Wrapping y) { return U(y.value_) & U(std::numeric_limits<U>::digits - 1); }
  static constexpr Wrapping of(U v) { return Wrapping(static_cast<T>(v)); }
  static_assert(std::is_signed_v<T> && sizeof(T) >= sizeof(int));
  T value_;
};

namespace detail {
template <class T, bool integer = std::is_integral_v<T> && !std::is_same_v<T, bool>>
struct WrappingOrOf {
  using type = T;
};
template <class T>
struct WrappingOrOf<T, true> {
  using type = Wrapping<T>;
};
}  // namespace detail

/// Integers wrapped, other numbers as they are.
template <class T>
using WrappingOr = typename detail::WrappingOrOf<T>::type;

/// A number of one kind as one of another. A floating number goes towards zero; one that is too large becomes
/// the largest or the smallest integer, NaN becomes 0. An integer wraps.
template <class To, class From>
constexpr To converted(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    // Of two powers of two that are exact in either kind, the upper is too large by one.
    constexpr From lowest = static_cast<From>(std::numeric_limits<To>::min());
    if (x >= -lowest) return std::numeric_limits<To>::max();
    if (x < lowest) return std::numeric_limits<To>::min();
    return x == x ? static_cast<To>(x) : To(0);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace lantern::ir
