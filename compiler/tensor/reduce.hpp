// Reductions of tensors over dimensions, and running ones: max<1>(x), var<0>(x, keep), cumsum<0>(x).
//
// Dimensions are template arguments, from 0 on, or below 0 from the last. A reduction leaves them out; with
// `keep` they stay, of size 1, so that the result broadcasts against the tensor: x / sum<1>(x, keep). Without
// dimensions it is over all elements, and a number.
#pragma once

#include "lantern/compiler/staging/einsum.hpp"

namespace lantern::core {

/// The reduced dimensions stay, of size 1.
struct Keep {};
namespace named {
inline constexpr Keep keep;
}

namespace detail {
/// What is reduced: over `axes` (none: all), `keep`: they stay.
struct Over {
  std::span<const int> axes;
  bool keep = false;
};
Datum sum_along(const Datum& t, Over over, const Location& loc);
Datum mean_along(const Datum& t, Over over, const Location& loc);
Datum variance(const Datum& t, Over over, std::int64_t correction, const Location& loc);
Datum product(const Datum& t, Over over, const Location& loc);
Datum extremum_along(const Datum& t, Over over, bool largest, const Location& loc);
Datum place_of_extremum(const Datum& t, Over over, bool largest, const Location& loc);
Datum any_of(const Datum& t, Over over, bool any, const Location& loc);
Datum logsumexp_along(const Datum& t, Over over, const Location& loc);
Datum norm(const Datum& t, Over over, const Location& loc);
Datum softmax(const Datum& t, int axis, bool logarithm, const Location& loc);
Datum running(Opcode op, const Datum& t, int axis, const Location& loc);

template <class T>
concept FloatTensor = TensorLike<T> && FloatElement<element_t<T>>;
}  // namespace detail

/// What each of these is: over all elements, over dimensions, over dimensions that stay.
#define LANTERN_ALONG(name, concept_, element, ...)                                                           \
  template <int axis, int... axes, detail::concept_ T>                                                        \
  Rep<Tensor<element>> name(const Rep<T>& t, std::source_location l = std::source_location::current()) {      \
    static constexpr int along[] = {axis, axes...};                                                           \
    const detail::Over over{along, false};                                                                    \
    const Location loc = here(l);                                                                             \
    return Rep<Tensor<element>>(__VA_ARGS__);                                                                 \
  }                                                                                                           \
  template <int axis, int... axes, detail::concept_ T>                                                        \
  Rep<Tensor<element>> name(const Rep<T>& t, Keep, std::source_location l = std::source_location::current()) { \
    static constexpr int along[] = {axis, axes...};                                                           \
    const detail::Over over{along, true};                                                                     \
    const Location loc = here(l);                                                                             \
    return Rep<Tensor<element>>(__VA_ARGS__);                                                                 \
  }
#define LANTERN_OVER_ALL(name, concept_, element, ...)                                                        \
  template <detail::concept_ T>                                                                               \
  Rep<element> name(const Rep<T>& t, std::source_location l = std::source_location::current()) {              \
    const detail::Over over{{}, false};                                                                       \
    const Location loc = here(l);                                                                             \
    return Rep<element>(__VA_ARGS__);                                                                         \
  }
#define LANTERN_REDUCTION(name, concept_, element, ...)            \
  LANTERN_OVER_ALL(name, concept_, element, __VA_ARGS__)           \
  LANTERN_ALONG(name, concept_, element, __VA_ARGS__)

// sum(t), sum<0>(t), mean<0>(t), max(t), min(t), argmax(t), logsumexp(t) stand in containers.hpp and einsum.hpp.
template <int axis, int... axes, detail::TensorLike T>
Rep<Tensor<detail::element_t<T>>> sum(const Rep<T>& t, Keep, std::source_location l = std::source_location::current()) {
  static constexpr int along[] = {axis, axes...};
  return Rep<Tensor<detail::element_t<T>>>(detail::sum_along(t.datum(), {along, true}, here(l)));
}
template <int axis, int... axes, detail::FloatTensor T>
Rep<Tensor<detail::element_t<T>>> mean(const Rep<T>& t, Keep, std::source_location l = std::source_location::current()) {
  static constexpr int along[] = {axis, axes...};
  return Rep<Tensor<detail::element_t<T>>>(detail::mean_along(t.datum(), {along, true}, here(l)));
}
/// The mean of all elements.
LANTERN_OVER_ALL(mean, FloatTensor, detail::element_t<T>, detail::mean_along(t.datum(), over, loc))
/// The largest and the smallest; elements that are equal share the derivative. Of no elements: an Error.
LANTERN_ALONG(max, TensorLike, detail::element_t<T>, detail::extremum_along(t.datum(), over, true, loc))
LANTERN_ALONG(min, TensorLike, detail::element_t<T>, detail::extremum_along(t.datum(), over, false, loc))
/// Where the first largest or smallest is: its position among the elements that are reduced, in row-major order.
LANTERN_ALONG(argmax, TensorLike, std::int64_t, detail::place_of_extremum(t.datum(), over, true, loc))
LANTERN_REDUCTION(argmin, TensorLike, std::int64_t, detail::place_of_extremum(t.datum(), over, false, loc))
/// The product.
LANTERN_REDUCTION(prod, TensorLike, detail::element_t<T>, detail::product(t.datum(), over, loc))
/// The mean squared distance from the mean: divided by the number of elements n, as numpy.var does (torch.var
/// divides by n - 1: sample_var).
LANTERN_REDUCTION(var, FloatTensor, detail::element_t<T>, detail::variance(t.datum(), over, 0, loc))
LANTERN_REDUCTION(sample_var, FloatTensor, detail::element_t<T>, detail::variance(t.datum(), over, 1, loc))
/// Euclidean length, without overflow or underflow of the squares. Of zeros its derivative is 0, and its second
/// derivatives are NaN.
LANTERN_REDUCTION(norm, FloatTensor, detail::element_t<T>, detail::norm(t.datum(), over, loc))
/// log(sum(exp(t))), without overflow: -inf, with derivative 0, where all elements are -inf.
LANTERN_ALONG(logsumexp, FloatTensor, detail::element_t<T>, detail::logsumexp_along(t.datum(), over, loc))

/// Whether one of the bools holds, or all of them. (`all` is all of a dimension: t(all, 0).)
template <class T>
concept TruthTensor = detail::TensorLike<T> && std::same_as<detail::element_t<T>, bool>;
namespace detail {
using core::TruthTensor;
}
LANTERN_REDUCTION(any_of, TruthTensor, bool, detail::any_of(t.datum(), over, true, loc))  ///< whether one holds
LANTERN_REDUCTION(all_of, TruthTensor, bool, detail::any_of(t.datum(), over, false, loc))  ///< whether all hold
/// How many of the bools hold.
template <TruthTensor T>
Rep<std::int64_t> count(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  const Datum numbers = perform({Opcode::cast_, static_cast<std::int64_t>(ir::Kind::i64), here(l)}, {t.datum()});
  return Rep<std::int64_t>(perform({Opcode::sum_, 0, here(l)}, {numbers}));
}

/// exp(t) divided by its sum along a dimension, without overflow; and the logarithm of that.
template <int axis, detail::FloatTensor T>
Rep<T> softmax(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::softmax(t.datum(), axis, false, here(l)));
}
template <int axis, detail::FloatTensor T>
Rep<T> log_softmax(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::softmax(t.datum(), axis, true, here(l)));
}

/// Sums and products of the elements up to each along a dimension, itself included.
template <int axis = 0, detail::TensorLike T>
Rep<T> cumsum(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::running(Opcode::add_, t.datum(), axis, here(l)));
}
template <int axis = 0, detail::TensorLike T>
Rep<T> cumprod(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::running(Opcode::mul_, t.datum(), axis, here(l)));
}

#undef LANTERN_REDUCTION
#undef LANTERN_OVER_ALL
#undef LANTERN_ALONG

}  // namespace lantern::core
