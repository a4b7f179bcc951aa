// std::mdspan as an argument of programs over Rep<Tensor<T, ...>> and Rep<Array<T>>, and as a target of
// `into`: read and written by its strides. Known by its interface, so that other implementations of it (Kokkos')
// are, too, before C++23.
//
//   #include <lantern/mdspan.hpp>
//   Rep<Tensor<double, dyn, dyn>> f(Rep<Tensor<double, dyn, dyn>> m);
//   compile(f)(std::mdspan(data, 2, 3));
//   compile(f).into(std::mdspan(out, 2, 3), std::mdspan(data, 2, 3));
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "lantern/lantern.hpp"

namespace lantern::core {

namespace detail {
/// A view of elements in memory with a fixed number of dimensions and a stride for each.
template <class M>
concept MultidimensionalSpan = requires(const M& m) {
  typename M::extents_type;
  typename M::layout_type;
  { M::rank() } -> std::convertible_to<std::size_t>;
  { m.data_handle() } -> std::convertible_to<typename M::element_type*>;
  { m.extent(0) } -> std::convertible_to<std::int64_t>;
  { m.stride(0) } -> std::convertible_to<std::int64_t>;
  requires M::is_always_strided();
};
}  // namespace detail

/// The elements of an mdspan, with its strides. The memory is the mdspan's.
template <detail::MultidimensionalSpan M>
TensorView<typename M::element_type> tensor_view(const M& m) {
  std::vector<std::int64_t> shape, strides;
  for (std::size_t k = 0; k < M::rank(); ++k) {
    shape.push_back(static_cast<std::int64_t>(m.extent(k)));
    strides.push_back(static_cast<std::int64_t>(m.stride(k)));
  }
  return {m.data_handle(), std::move(shape), std::move(strides)};
}

namespace detail {
template <MultidimensionalSpan M>
struct ReadAsTensor<M> {
  static TensorView<const typename M::value_type> of(const M& m) { return tensor_view(m); }
};
template <MultidimensionalSpan M>
  requires(!std::is_const_v<typename M::element_type>)
struct ViewOf<M> {
  static TensorView<typename M::element_type> of(const M& m) { return tensor_view(m); }
};
}  // namespace detail

}  // namespace lantern::core

namespace lantern {
using core::tensor_view;  ///< tensor_view(std::mdspan(out, 2, 3)): the same memory as a TensorView
}
