// From Reps to what the functions of linear algebra work on, and back.
#pragma once

#include <source_location>

#include "lantern/compiler/linalg/functions.hpp"
#include "lantern/compiler/staging/rep.hpp"

namespace lantern::linalg {

using core::Rep;

namespace detail {

/// Arrays and tensors of floating numbers.
template <class T>
concept Dense = core::detail::TensorLike<T> && core::FloatElement<core::detail::element_t<T>>;

template <class T>
using Matrix = Rep<core::Tensor<core::detail::element_t<T>>>;
/// What is of b's shape: an Array where b is one.
template <class T>
using Like = Rep<core::detail::vector_result<T>>;

/// Of a matrix, or a tensor whose rank is not declared, a number; of a batch a tensor of its dimensions.
template <class T>
inline constexpr bool is_batch = false;
template <class T, std::int64_t... n>
inline constexpr bool is_batch<core::Tensor<T, n...>> = (sizeof...(n) > 2);
template <class T>
using Number = Rep<
    std::conditional_t<is_batch<T>, core::Tensor<core::detail::element_t<T>>, core::detail::element_t<T>>>;

template <class T>
Value value(const Rep<T>& r, const std::source_location& l) {
  return {r.datum(), {&kernels<core::detail::element_t<T>>(), core::here(l)}};
}
/// What gives a number for each matrix, from the tensor of them.
template <class T>
Number<T> numbers(const Value& all, int rank) {
  if constexpr (is_batch<T>) {
    return Number<T>(all.datum);
  } else {
    if (rank > 2)
      core::raise_at(
          all.call.loc,
          "expected a tensor of declared rank, Rep<Tensor<double, dyn, dyn, dyn>>, for a number of each "
          "matrix of a batch, got a Rep<Tensor<double>> that is a batch");
    return Number<T>(only(all).datum);
  }
}

}  // namespace detail

}  // namespace lantern::linalg
