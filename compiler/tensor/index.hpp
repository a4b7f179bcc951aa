// Choosing elements of tensors: where, take, gather, scatter_add, one_hot, sort, argsort, topk.
#pragma once

#include <utility>

#include "lantern/compiler/tensor/reduce.hpp"
#include "lantern/compiler/tensor/shape.hpp"

namespace lantern::core {

namespace detail {
Datum where(const Datum& c, const Datum& a, const Datum& b, const Location& loc);
Datum take_along(const Datum& t, int axis, const Datum& indices, const Location& loc);
Datum gather(const Datum& t, int axis, const Datum& indices, const Location& loc);
Datum scatter_add(const Datum& t, int axis, const Datum& indices, const Datum& v, const Location& loc);
Datum one_hot(const Datum& indices, const Datum& n, ir::Kind element, const Location& loc);
Datum argsort(const Datum& t, int axis, bool descending, const Location& loc);
/// Where the k largest elements of the last dimension are, from the largest.
Datum largest_places(const Datum& t, const Datum& k, const Location& loc);

template <class T>
concept IndexTensor = TensorLike<T> && std::same_as<element_t<T>, std::int64_t>;
/// A tensor, a number or a literal, as an operand whose elements are T.
template <class T, class A>
Datum as_operand(const A& a) {
  if constexpr (std::is_arithmetic_v<A>) return literal_as<T>(a);
  else return a.datum();
}
template <class A>
struct ElementOf {
  using type = A;
};
template <class T>
struct ElementOf<Rep<T>> {
  using type = element_t<T>;
};
/// Of two operands the element type of the one that is no literal.
template <class A, class B>
using joint_element = typename ElementOf<std::conditional_t<std::is_arithmetic_v<A>, B, A>>::type;
}  // namespace detail

/// The elements of `a` where those of `c` hold, else those of `b`, broadcast as operators do: where(x > 0.0, x, 0.1
/// * x), where(mask, x, 0.0). Both are computed.
template <TruthTensor C, class A, class B>
  requires(!std::is_arithmetic_v<A> || !std::is_arithmetic_v<B>)
auto where(const Rep<C>& c, const A& a, const B& b, std::source_location l = std::source_location::current()) {
  using E = detail::joint_element<A, B>;
  return Rep<Tensor<E>>(
      detail::where(c.datum(), detail::as_operand<E>(a), detail::as_operand<E>(b), here(l)));
}

/// Rows, columns, ... by their numbers: take<1>(t, i) has column i[0] of t, then column i[1], ...; the
/// dimensions of `indices` stand where the dimension was (numpy.take). An index outside raises. index_select
/// is the same by PyTorch's name.
template <int axis = 0, detail::TensorLike T, detail::IndexTensor I>
detail::tensor_of<T> take(const Rep<T>& t, const Rep<I>& indices, std::source_location l = std::source_location::current()) {
  return detail::tensor_of<T>(detail::take_along(t.datum(), axis, indices.datum(), here(l)));
}
template <int axis = 0, detail::TensorLike T, detail::IndexTensor I>
detail::tensor_of<T> index_select(const Rep<T>& t, const Rep<I>& indices,
                                  std::source_location l = std::source_location::current()) {
  return take<axis>(t, indices, l);
}
/// Element by element: along the dimension the element of t whose number is in `indices`, which has as many
/// dimensions as t (numpy.take_along_axis, torch.gather).
template <int axis, detail::TensorLike T, detail::IndexTensor I>
detail::tensor_of<T> gather(const Rep<T>& t, const Rep<I>& indices, std::source_location l = std::source_location::current()) {
  return detail::tensor_of<T>(detail::gather(t.datum(), axis, indices.datum(), here(l)));
}
/// t with v added: row k of v to row indices[k] of t, as often as it is there (torch.index_add).
template <int axis = 0, detail::TensorLike T, detail::IndexTensor I, detail::TensorLike V>
Rep<T> scatter_add(const Rep<T>& t, const Rep<I>& indices, const Rep<V>& v,
                   std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::scatter_add(t.datum(), axis, indices.datum(), v.datum(), here(l)));
}
/// 1 at the position that each index says, along a new last dimension of n, and 0 elsewhere. An index outside
/// gives zeros alone.
template <ScalarElement E = float, detail::IndexTensor I>
Rep<Tensor<E>> one_hot(const Rep<I>& indices, const Subscript& n) {
  return Rep<Tensor<E>>(detail::one_hot(indices.datum(), n.datum, detail::TypeOf<E>::get().kind(), n.loc));
}

/// The order of the elements along a dimension: where the smallest is, the next, ...; equal ones in the order
/// that they have, NaN last (numpy.argsort, stable). `descending`: from the largest, NaN last as well.
template <int axis = -1, detail::TensorLike T>
Rep<Tensor<std::int64_t>> argsort(const Rep<T>& t, bool descending = false,
                                  std::source_location l = std::source_location::current()) {
  return Rep<Tensor<std::int64_t>>(detail::argsort(t.datum(), axis, descending, here(l)));
}
/// The elements in that order; derivatives go where the elements come from.
template <int axis = -1, detail::TensorLike T>
detail::tensor_of<T> sort(const Rep<T>& t, bool descending = false,
                          std::source_location l = std::source_location::current()) {
  return gather<axis>(t, argsort<axis>(t, descending, l), l);
}
/// The k largest elements of the last dimension, from the largest, and where they are.
template <detail::TensorLike T>
std::pair<detail::tensor_of<T>, Rep<Tensor<std::int64_t>>> topk(const Rep<T>& t, const Subscript& k) {
  const Rep<Tensor<std::int64_t>> first(detail::largest_places(t.datum(), k.datum, k.loc));
  return {gather<-1>(t, first), first};
}

}  // namespace lantern::core
