// What a native branch, or a function that calls itself, gives: products of Reps and plain values, seen as
// lists of Reps.
#pragma once

#include <concepts>
#include <cstring>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::core::native {

/// A loop's answer to "go on?", and other truth values that may be known while staging.
using Flag = Rep<bool>;

/// How a region was left that has a value to hand on: `exited` where it was left early, with the value
/// returned. F: Flag, or bool in an instantiation of a template over plain types.
template <class R, class F = Flag>
struct Outcome {
  Outcome() = default;
  template <class U>
  requires(std::convertible_to<const U&, R>) Outcome(const U& v) : exited(true), value(v) {}
  F exited = false;
  R value{};
};
template <class F>
struct Outcome<void, F> {
  Outcome() = default;
  explicit Outcome(bool e) : exited(e) {}
  F exited = false;
};

namespace detail {

using namespace core::detail;

template <class T>
struct IsOutcome : std::false_type {};
template <class R, class F>
struct IsOutcome<Outcome<R, F>> : std::true_type {};

/// Calls rep(Rep<T>&) for every Rep in a variable, and plain(v) for every other scalar, in order.
template <class V, class OnRep, class OnPlain>
void for_each_leaf(V& v, const OnRep& rep, const OnPlain& plain) {
  using T = std::remove_cv_t<V>;
  if constexpr (RepType<T>)
    rep(v);
  else if constexpr (std::convertible_to<const T&, std::string_view>)
    return;  // text
  else if constexpr (std::is_empty_v<T> && !SequenceType<T>)
    return;
  else if constexpr (std::is_scalar_v<T>)
    plain(v);
  else if constexpr (IsOutcome<T>::value) {
    for_each_leaf(v.exited, rep, plain);
    if constexpr (requires { v.value; }) for_each_leaf(v.value, rep, plain);
  } else if constexpr (SequenceType<T>) {
    for (auto& part : v) for_each_leaf(part, rep, plain);
  } else if constexpr (TupleType<T> || StructType<T>) {
    with_parts(v, [&](auto&... parts) { (for_each_leaf(parts, rep, plain), ...); });
  } else {
    static_assert(
        dependent_false<T>,
        "a value of this class is chosen under a staged condition: it must be a Rep, or a struct with public "
        "members, a tuple, an array or a vector of Reps");
  }
}

template <class T>
constexpr bool has_rep();
template <class... P>
constexpr bool any_has_rep(Types<P...>) {
  return (has_rep<P>() || ...);
}
template <class R, class F>
constexpr bool any_has_rep(std::type_identity<Outcome<R, F>>) {
  return has_rep<R>();
}
/// Whether a type holds Reps.
template <class T>
constexpr bool has_rep() {
  using V = std::remove_cvref_t<T>;
  if constexpr (RepType<V>)
    return true;
  else if constexpr (IsOutcome<V>::value)
    return any_has_rep(std::type_identity<V>{});
  else if constexpr (SequenceType<V>)
    return has_rep<element_type<V>>();
  else if constexpr (TupleType<V>)
    return any_has_rep(part_types<V>{});
  else if constexpr (StructType<V>) {
    if constexpr (has_known_members<V>())
      return any_has_rep(part_types<V>{});
    else
      return false;
  } else
    return false;
}

/// Whether a type is seen to hold no Rep: numbers, and pointers, sequences and structs of them.
template <class T>
constexpr bool is_plain();
template <class... P>
constexpr bool all_plain(Types<P...>) {
  return (is_plain<P>() && ...);
}
template <class T>
constexpr bool is_plain() {
  using V = std::remove_cvref_t<T>;
  if constexpr (std::is_arithmetic_v<V> || std::is_enum_v<V>)
    return true;
  else if constexpr (std::is_pointer_v<V> || std::is_array_v<V>)
    return is_plain<std::remove_pointer_t<std::remove_extent_t<V>>>();
  else if constexpr (RepType<V>)
    return false;
  else if constexpr (SequenceType<V>)
    return is_plain<element_type<V>>();
  else if constexpr (TupleType<V>)
    return all_plain(part_types<V>{});
  else if constexpr (StructType<V>) {
    if constexpr (has_known_members<V>()) return all_plain(part_types<V>{});
    return false;
  } else
    return false;
}

/// The Reps of a value. A number that was never set (an indeterminate value in C++) is zero.
template <class V>
void append_values(const V& v, Datums& out) {
  for_each_leaf(
      v,
      [&]<class T>(const Rep<T>& r) {
        out.push_back(r.datum());
        if constexpr (ScalarElement<T>)
          if (out.back().empty()) out.back() = Datum::zero(TypeOf<T>::get());
      },
      [](const auto&) {});
}
/// Makes the Reps of a value hold the first data of the list, and takes those off it.
template <class V>
void renew_values(V& v, std::span<const Datum>& data) {
  for_each_leaf(
      v,
      [&]<class T>(Rep<T>& r) {
        r.storage().renew(Rep<T>(data.front()).datum());
        data = data.subspan(1);
      },
      [](auto&) {});
}

/// Leaves the structure and the plain parts of a value.
template <class V>
void detach_values(V& v) {
  for_each_leaf(
      v, [](auto& r) { r.storage().detach(); }, [](auto&) {});
}

/// The bytes of everything in a value that is not a Rep: no branch of the graph can choose between them.
template <class V>
std::vector<std::byte> plain_parts(const V& value) {
  std::vector<std::byte> bytes;
  for_each_leaf(
      value, [](const auto&) {},
      [&]<class T>(const T& v) {
        const std::size_t at = bytes.size();
        bytes.resize(at + sizeof v);
        std::memcpy(bytes.data() + at, &v, sizeof v);
      });
  return bytes;
}

}  // namespace detail

/// The flags of a template's loops: plain where its types are, so that such an instantiation is C++ as it was written.
template <class... T>
using FlagFor = std::conditional_t<(detail::is_plain<T>() && ...), bool, Flag>;

}  // namespace lantern::core::native
