// Products and sums of tensors in index notation, and what is written with it: permute, sums and means over
// axes.
#pragma once

#include <cstddef>
#include <source_location>

#include "lantern/compiler/staging/rep.hpp"

namespace lantern::core {

/// A notation as a template argument.
template <std::size_t n>
struct Notation {
  char text[n];                                                        // NOLINT(modernize-avoid-c-arrays)
  constexpr Notation(const char (&t)[n]) {  // NOLINT
    for (std::size_t i = 0; i < n; ++i) text[i] = t[i];
  }
};

namespace detail {

Datum einsum(const char* text, const Datums& operands, const Location& loc);
/// The dimensions of a tensor that are meant, from 0 on: those below 0 count from the last. Error where there
/// is no such dimension, or it is twice.
std::vector<int> axes_of(const char* what, const Datum& t, std::span<const int> axes, const Location& loc);
Datum permuted(const Datum& t, std::span<const int> axes, const Location& loc);
Datum sum_over(const Datum& t, std::span<const int> axes, const Location& loc);
Datum mean_over(const Datum& t, std::span<const int> axes, const Location& loc);

/// How many operands a notation has, sizes included.
constexpr std::size_t operand_count(std::string_view text) {
  std::size_t count = 1;
  const std::size_t end = text.find("->");
  for (std::size_t i = 0; i < std::min(end, text.size()); ++i) count += text[i] == ',';
  const std::size_t sizes = text.find(';');
  return sizes == std::string_view::npos ? count : count + text.size() - sizes - 1;
}
constexpr bool is_number(std::string_view text) {
  const std::size_t arrow = text.find("->");
  return arrow + 2 == text.size() || text[arrow + 2] == ';';
}
constexpr bool is_for_users(std::string_view text) {
  return text.find("->") != std::string_view::npos && text.find('=') == std::string_view::npos &&
         text.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos;
}

template <class A>
Datum operand_datum(const A& a) {
  if constexpr (requires {
                  typename A::value_type;
                  a.datum();
                })
    return a.datum();
  else
    return Rep<std::int64_t>(static_cast<std::int64_t>(a)).datum();
}

template <Notation notation, class T>
using einsum_result = std::conditional_t<is_number(std::string_view(notation.text)), Rep<element_t<T>>,
                                         Rep<Tensor<element_t<T>>>>;

template <Notation notation, std::size_t operands>
Datum einsum(const Datums& in, const Location& loc) {
  constexpr std::string_view text(notation.text);
  static_assert(is_for_users(text), "einsum: expected a notation such as \"ij,jk->ik\", of small letters");
  static_assert(operand_count(text) == operands, "einsum: expected as many operands as the notation has");
  return einsum(notation.text, in, loc);
}

}  // namespace detail

/// A product of tensors, summed over every index that the result does not have: einsum<"ij,jk->ik">(a, b) is
/// the matrix product, "bij,bjk->bik" that of batches, "ii->" the trace, "ij->ji" the transposed matrix. A
/// place may be a sum of indices, in brackets: einsum<"[2i+k-1],k->i;i">(x, w, n) is a convolution with
/// stride 2 and one zero at the start, of n elements: sizes of the indices after `;` follow the tensors. What
/// lies outside counts as zero.
///
/// Shapes that do not fit, and ranks that are not the notation's, are Errors.
template <Notation notation, detail::TensorLike T>
detail::einsum_result<notation, T> einsum(const Rep<T>& a,
                                          std::source_location l = std::source_location::current()) {
  return detail::einsum_result<notation, T>(detail::einsum<notation, 1>({a.datum()}, here(l)));
}
template <Notation notation, detail::TensorLike T, class B>
detail::einsum_result<notation, T> einsum(const Rep<T>& a, const B& b,
                                          std::source_location l = std::source_location::current()) {
  return detail::einsum_result<notation, T>(
      detail::einsum<notation, 2>({a.datum(), detail::operand_datum(b)}, here(l)));
}
template <Notation notation, detail::TensorLike T, class B, class C>
detail::einsum_result<notation, T> einsum(const Rep<T>& a, const B& b, const C& c,
                                          std::source_location l = std::source_location::current()) {
  return detail::einsum_result<notation, T>(
      detail::einsum<notation, 3>({a.datum(), detail::operand_datum(b), detail::operand_datum(c)}, here(l)));
}
template <Notation notation, detail::TensorLike T, class B, class C, class D>
detail::einsum_result<notation, T> einsum(const Rep<T>& a, const B& b, const C& c, const D& d,
                                          std::source_location l = std::source_location::current()) {
  return detail::einsum_result<notation, T>(detail::einsum<notation, 4>(
      {a.datum(), detail::operand_datum(b), detail::operand_datum(c), detail::operand_datum(d)}, here(l)));
}
template <Notation notation, detail::TensorLike T, class B, class C, class D, class E>
detail::einsum_result<notation, T> einsum(const Rep<T>& a, const B& b, const C& c, const D& d, const E& e,
                                          std::source_location l = std::source_location::current()) {
  return detail::einsum_result<notation, T>(
      detail::einsum<notation, 5>({a.datum(), detail::operand_datum(b), detail::operand_datum(c),
                                   detail::operand_datum(d), detail::operand_datum(e)},
                                  here(l)));
}

// Axes are template arguments; those below 0 count from the last.

/// permute<2, 0, 1>(t): dimension 0 of the result is dimension 2 of t, and so on (numpy.transpose).
template <int... axes, detail::TensorLike T>
Rep<Tensor<detail::element_t<T>>> permute(const Rep<T>& t,
                                          std::source_location l = std::source_location::current()) {
  static constexpr int all[] = {axes...};
  return Rep<Tensor<detail::element_t<T>>>(detail::permuted(t.datum(), all, here(l)));
}
/// sum<0, 2>(t): over these dimensions, which the result does not have. (sum(t) is the sum of all elements.)
template <int axis, int... axes, detail::TensorLike T>
Rep<Tensor<detail::element_t<T>>> sum(const Rep<T>& t,
                                      std::source_location l = std::source_location::current()) {
  static constexpr int all[] = {axis, axes...};
  return Rep<Tensor<detail::element_t<T>>>(detail::sum_over(t.datum(), all, here(l)));
}
/// mean<0, 2>(t): the sum divided by the number of elements that are summed.
template <int axis, int... axes, detail::TensorLike T>
Rep<Tensor<detail::element_t<T>>> mean(const Rep<T>& t,
                                       std::source_location l = std::source_location::current()) {
  static constexpr int all[] = {axis, axes...};
  return Rep<Tensor<detail::element_t<T>>>(detail::mean_over(t.datum(), all, here(l)));
}

}  // namespace lantern::core
