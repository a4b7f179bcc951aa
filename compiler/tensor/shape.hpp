// Making tensors and giving them other shapes: tabulate, eye, linspace; reshape, expand, flip, pad, concat, ...
//
// Sizes are numbers or Rep<int64_t>; a size that is a number is part of what is known while the program is
// staged. Dimensions are template arguments, from 0 on, or below 0 from the last. reshape, squeeze, unsqueeze,
// expand and permute move no elements: where they are read, the tensor is read.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/einsum.hpp"

namespace lantern::core {

/// What pad puts around a tensor: a number, the tensor mirrored at its first and last elements (which are not
/// repeated), or those elements.
enum class Pad : std::uint8_t { constant, reflect, edge };

namespace detail {
Datum tabulate(ir::Kind element, const Datums& sizes, FunctionRef<Datum(const Datums&)> body,
               const Location& loc);
Datum reshape(const Datum& t, const Datums& sizes, const Location& loc);
/// The same where one size may be the number -1: what the others leave.
Datum reshape(const Datum& t, std::span<const Subscript> sizes);
Datum expand(const Datum& t, const Datums& sizes, const Location& loc);
Datum squeeze(const Datum& t, std::span<const int> axes, const Location& loc);
Datum unsqueeze(const Datum& t, std::span<const int> places, const Location& loc);
Datum flip(const Datum& t, std::span<const int> axes, const Location& loc);
Datum roll(const Datum& t, int axis, const Datum& by, const Location& loc);
Datum pad(const Datum& t, const std::vector<std::array<Datum, 2>>& widths, Pad how, const Datum& value,
          const Location& loc);
Datum concat(std::span<const Datum> all, int axis, const Location& loc);
Datum stack(std::span<const Datum> all, int axis, const Location& loc);
Datums split(const Datum& t, int axis, std::size_t parts, const Location& loc);
Datum tensordot(const Datum& a, const Datum& b, int axes, const Location& loc);
Datum tile(const Datum& t, const Datums& times, const Location& loc);
Datum repeat(const Datum& t, int axis, const Datum& times, const Location& loc);

template <class... Size>
concept Sizes = (std::convertible_to<Size, Subscript> && ...);
template <class... Size>
Datums sizes_of(const Size&... n) {
  return {Subscript(n).datum...};
}
template <class T>
using tensor_of = Rep<Tensor<element_t<T>>>;
template <class T>
inline constexpr bool is_rep_tensor = false;
template <TensorLike T>
inline constexpr bool is_rep_tensor<Rep<T>> = true;
template <class T>
concept RepTensor = is_rep_tensor<T>;
/// The second of the tensors that are put together: it notes the place where it is converted, however many follow.
struct Joined {
  template <TensorLike T>
  Joined(const Rep<T>& t, std::source_location l = std::source_location::current()) : datum(t.datum()), loc(here(l)) {}
  Datum datum;
  Location loc;
};
template <class F, std::size_t... I>
auto element_at(const F& f, const Datums& at, std::index_sequence<I...>) {
  return f(Rep<std::int64_t>(at[I])...);
}
template <class F, std::size_t n>
using element_of = typename lifted_t<decltype(element_at(
    std::declval<const F&>(), std::declval<const Datums&>(), std::make_index_sequence<n>{}))>::value_type;
}  // namespace detail

// ---- creation (zeros, full, fill, zeros_like stand in containers.hpp)

/// The tensor whose element at (i, j, ...) is f(i, j, ...): tabulate<3, 4>([&](auto i, auto j) { return a[i] + b[j];
/// }). With sizes that are known only at run time: tabulate(f, m, n).
template <std::int64_t first, std::int64_t... more, class F>
auto tabulate(const F& f, std::source_location l = std::source_location::current()) {
  constexpr std::size_t rank = 1 + sizeof...(more);
  static_assert(first >= 0 && ((more >= 0) && ...), "tabulate: expected sizes of 0 or more");
  using E = detail::element_of<F, rank>;
  return Rep<Tensor<E, first, more...>>(detail::tabulate(
      detail::TypeOf<E>::get().kind(), {detail::literal(first), detail::literal(more)...},
      [&](const Datums& at) { return Rep<E>(detail::element_at(f, at, std::make_index_sequence<rank>{})).datum(); },
      here(l)));
}
template <class F, std::convertible_to<Subscript>... Size>
  requires(!std::convertible_to<F, Subscript>)
auto tabulate(const F& f, const Subscript& size, const Size&... more) {
  constexpr std::size_t rank = 1 + sizeof...(Size);
  using E = detail::element_of<F, rank>;
  return Rep<Tensor<E, dyn, (static_cast<void>(sizeof(Size)), dyn)...>>(detail::tabulate(
      detail::TypeOf<E>::get().kind(), {size.datum, Subscript(more).datum...},
      [&](const Datums& at) { return Rep<E>(detail::element_at(f, at, std::make_index_sequence<rank>{})).datum(); },
      size.loc));
}
/// A tensor with all elements 1, of sizes as zeros takes them.
template <ScalarElement T>
Rep<Tensor<T>> ones(std::initializer_list<Subscript> shape, std::source_location l = std::source_location::current()) {
  return full(Rep<T>(T(1)), shape, l);
}
template <ScalarElement T, class Size>
Rep<Tensor<T>> ones(const std::vector<Size>& shape, std::source_location l = std::source_location::current()) {
  return full(Rep<T>(T(1)), shape, l);
}
/// The identity matrix, of n rows and columns.
template <ScalarElement T>
Rep<Tensor<T, dyn, dyn>> eye(const Subscript& n) {
  return Rep<Tensor<T, dyn, dyn>>(detail::tabulate(
      detail::TypeOf<T>::get().kind(), {n.datum, n.datum},
      [](const Datums& at) {
        return select(Rep<std::int64_t>(at[0]) == Rep<std::int64_t>(at[1]), Rep<T>(T(1)), Rep<T>(T(0))).datum();
      },
      n.loc));
}
/// lo, lo + step, ... : n numbers.
template <NumberElement T>
Rep<Tensor<T, dyn>> arange(const Rep<T>& lo, const Rep<T>& step, const Subscript& n) {
  return Rep<Tensor<T, dyn>>(detail::tabulate(
      detail::TypeOf<T>::get().kind(), {n.datum},
      [&](const Datums& at) { return (lo + step * cast<T>(Rep<std::int64_t>(at[0]))).datum(); }, n.loc));
}
/// 0, 1, ..., n - 1.
template <NumberElement T = std::int64_t>
Rep<Tensor<T, dyn>> arange(const Subscript& n) {
  return arange<T>(Rep<T>(T(0)), Rep<T>(T(1)), n);
}
/// n numbers from lo to hi, both included, at equal distances; of one number it is lo.
template <FloatElement T>
Rep<Tensor<T, dyn>> linspace(const Rep<T>& lo, const std::type_identity_t<Rep<T>>& hi, const Subscript& n) {
  const Rep<std::int64_t> steps = max(Rep<std::int64_t>(n.datum) - 1, std::int64_t{1});
  return Rep<Tensor<T, dyn>>(detail::tabulate(
      detail::TypeOf<T>::get().kind(), {n.datum},
      [&](const Datums& at) {
        const Rep<T> part = cast<T>(Rep<std::int64_t>(at[0])) / cast<T>(steps);
        return ((T(1) - part) * lo + part * hi).datum();
      },
      n.loc));
}

// ---- other shapes

/// The elements, in row-major order, in a tensor of these sizes, which has as many: reshape(t, 3, n). One size may be
/// the number -1: it is what the others leave, reshape(t, -1, n). (A Rep of that value is an Error.) Error where they
/// do not divide the number of elements, or have none.
template <detail::TensorLike T, std::convertible_to<Subscript>... Size>
detail::tensor_of<T> reshape(const Rep<T>& t, const Subscript& first, const Size&... more) {
  const Subscript sizes[] = {first, Subscript(more)...};
  return detail::tensor_of<T>(detail::reshape(t.datum(), sizes));
}
/// All elements, in row-major order, as a vector.
template <detail::TensorLike T>
detail::tensor_of<T> ravel(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  Rep<std::int64_t> n = std::int64_t{1};
  for (int d = 0; d < t.datum().type().rank(); ++d) n = n * detail::dimension(t.datum(), d, here(l));
  return detail::tensor_of<T>(detail::reshape(t.datum(), {n.datum()}, here(l)));
}
/// Dimensions of size 1, and those missing at the front, repeated to these sizes (numpy.broadcast_to), also
/// where a size is known to be 1 only at run time, which operators do not repeat.
template <detail::TensorLike T, std::convertible_to<Subscript>... Size>
detail::tensor_of<T> expand(const Rep<T>& t, const Subscript& first, const Size&... more) {
  return detail::tensor_of<T>(detail::expand(t.datum(), {first.datum, Subscript(more).datum...}, first.loc));
}
/// Without these dimensions, which have the size 1; with one of size 1 at these places of the result.
template <int... axes, detail::TensorLike T>
detail::tensor_of<T> squeeze(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  static constexpr int along[] = {axes...};
  return detail::tensor_of<T>(detail::squeeze(t.datum(), along, here(l)));
}
template <int... places, detail::TensorLike T>
detail::tensor_of<T> unsqueeze(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  static constexpr int at[] = {places...};
  return detail::tensor_of<T>(detail::unsqueeze(t.datum(), at, here(l)));
}
/// The elements along these dimensions in reverse order.
template <int... axes, detail::TensorLike T>
Rep<T> flip(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  static constexpr int along[] = {axes...};
  return Rep<T>(detail::flip(t.datum(), along, here(l)));
}
/// The elements moved by so many places along a dimension; what leaves at one end enters at the other.
template <int axis = 0, detail::TensorLike T>
Rep<T> roll(const Rep<T>& t, const Subscript& by) {
  return Rep<T>(detail::roll(t.datum(), axis, by.datum, by.loc));
}
/// Elements put before and after each dimension: pad(t, {{1, 1}, {0, 2}}), pad(t, {{2, 2}}, Pad::reflect).
/// Dimensions at the end that are not named stay. Widths below 0, and a reflection wider than there are elements
/// to mirror, are Errors.
template <detail::TensorLike T>
detail::tensor_of<T> pad(const Rep<T>& t, const std::vector<std::array<std::int64_t, 2>>& widths,
                         Pad how = Pad::constant, detail::element_t<T> value = {},
                         std::source_location l = std::source_location::current()) {
  std::vector<std::array<Datum, 2>> all;
  for (const auto& [before, after] : widths) all.push_back({detail::literal(before), detail::literal(after)});
  return detail::tensor_of<T>(detail::pad(t.datum(), all, how, detail::literal(value), here(l)));
}

// ---- several tensors, or several times one

/// One after the other along a dimension, two tensors or more: concat<1>(a, b, c). (concat(a, b) along the first is in
/// containers.hpp.)
template <int axis, detail::TensorLike T, detail::RepTensor... More>
detail::tensor_of<T> concat(const Rep<T>& first, const detail::Joined& second, const More&... more) {
  const Datum all[] = {first.datum(), second.datum, more.datum()...};
  return detail::tensor_of<T>(detail::concat(all, axis, second.loc));
}
template <int axis, detail::TensorLike T>
detail::tensor_of<T> concat(const std::vector<Rep<T>>& all, std::source_location l = std::source_location::current()) {
  Datums data;
  for (const Rep<T>& t : all) data.push_back(t.datum());
  return detail::tensor_of<T>(detail::concat(data, axis, here(l)));
}
/// Tensors of one shape along a new dimension.
template <int axis = 0, detail::TensorLike T>
detail::tensor_of<T> stack(const Rep<T>& one, std::source_location l = std::source_location::current()) {
  return detail::tensor_of<T>(detail::stack({&one.datum(), 1}, axis, here(l)));
}
template <int axis = 0, detail::TensorLike T, detail::RepTensor... More>
detail::tensor_of<T> stack(const Rep<T>& first, const detail::Joined& second, const More&... more) {
  const Datum all[] = {first.datum(), second.datum, more.datum()...};
  return detail::tensor_of<T>(detail::stack(all, axis, second.loc));
}
template <int axis = 0, detail::TensorLike T>
detail::tensor_of<T> stack(const std::vector<Rep<T>>& all, std::source_location l = std::source_location::current()) {
  Datums data;
  for (const Rep<T>& t : all) data.push_back(t.datum());
  return detail::tensor_of<T>(detail::stack(data, axis, here(l)));
}
/// n parts of one size along a dimension, whose size n divides.
template <int axis, std::size_t n, detail::TensorLike T>
std::array<detail::tensor_of<T>, n> split(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  static_assert(n > 0, "split: expected at least one part");
  const Datums parts = detail::split(t.datum(), axis, n, here(l));
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<detail::tensor_of<T>, n>{detail::tensor_of<T>(parts[I])...};
  }(std::make_index_sequence<n>{});
}
/// Products summed over the last `axes` dimensions of a and the first of b (numpy.tensordot): 1 is matmul's sum, 0 the
/// outer product. The result has at least one dimension.
template <int axes, detail::TensorLike T, detail::TensorLike U>
detail::tensor_of<T> tensordot(const Rep<T>& a, const Rep<U>& b,
                               std::source_location l = std::source_location::current()) {
  static_assert(axes >= 0, "tensordot: expected a number of dimensions");
  return detail::tensor_of<T>(detail::tensordot(a.datum(), b.datum(), axes, here(l)));
}
/// The tensor so many times along each dimension: tile(t, 2, 1) has t twice, one below the other.
template <detail::TensorLike T, std::convertible_to<Subscript>... Size>
detail::tensor_of<T> tile(const Rep<T>& t, const Subscript& first, const Size&... more) {
  return detail::tensor_of<T>(detail::tile(t.datum(), {first.datum, Subscript(more).datum...}, first.loc));
}
/// Each element so many times along a dimension (numpy.repeat).
template <int axis = 0, detail::TensorLike T>
detail::tensor_of<T> repeat(const Rep<T>& t, const Subscript& times) {
  return detail::tensor_of<T>(detail::repeat(t.datum(), axis, times.datum, times.loc));
}

}  // namespace lantern::core
