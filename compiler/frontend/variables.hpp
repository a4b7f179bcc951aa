// The variables that a native branch or loop assigns, seen as lists of Reps: read, replaced, put back.
#pragma once

#include <concepts>
#include <cstring>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::core::native {

/// A loop's answer to "go on?", and other truth values that may be known while staging.
using Flag = Rep<bool>;

/// How a region was left that has a value to hand on: `exited` where it was left early, with the value
/// returned.
template <class R>
struct Outcome {
  Outcome() = default;
  template <class U>
  requires(std::convertible_to<const U&, R>) Outcome(const U& v) : exited(true), value(v) {}
  Flag exited = false;
  R value{};
};
template <>
struct Outcome<void> {
  Outcome() = default;
  explicit Outcome(bool e) : exited(e) {}
  Flag exited = false;
};

namespace detail {

using namespace core::detail;

template <class T>
struct IsVar : std::false_type {};
template <class T>
struct IsVar<Var<T>> : std::true_type {};
template <class T>
struct IsOutcome : std::false_type {};
template <class R>
struct IsOutcome<Outcome<R>> : std::true_type {};

/// Calls rep(Rep<T>&) for every Rep in a variable, and plain(v) for every other scalar, in order. A Var is
/// left out: it follows branches and loops by itself.
template <class V, class OnRep, class OnPlain>
void for_each_leaf(V& v, const OnRep& rep, const OnPlain& plain) {
  using T = std::remove_cv_t<V>;
  if constexpr (RepType<T>)
    rep(v);
  else if constexpr (IsVar<T>::value || (std::is_empty_v<T> && !SequenceType<T>))
    return;
  else if constexpr (std::is_scalar_v<T>)
    plain(v);
  else if constexpr (IsOutcome<T>::value) {
    rep(v.exited);
    if constexpr (!std::same_as<T, Outcome<void>>) for_each_leaf(v.value, rep, plain);
  } else if constexpr (SequenceType<T>) {
    for (auto& part : v) for_each_leaf(part, rep, plain);
  } else if constexpr (TupleType<T> || StructType<T>) {
    with_parts(v, [&](auto&... parts) { (for_each_leaf(parts, rep, plain), ...); });
  } else {
    static_assert(
        dependent_false<T>,
        "a variable of this class is assigned under a staged condition: it must be a Rep, or a struct with "
        "public members, a tuple, an array or a vector of Reps");
  }
}

template <class T>
constexpr bool has_rep();
template <class... P>
constexpr bool any_has_rep(Types<P...>) {
  return (has_rep<P>() || ...);
}
template <class R>
constexpr bool any_has_rep(std::type_identity<Outcome<R>>) {
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

/// Says of each struct whether its members are known, before anything is done with them.
template <class T>
void require_known_members_of() {
  if constexpr (StructType<T>) static_cast<void>(KnownMembers<T>::value);
}
template <class... V>
void require_known_members(const std::tuple<V&...>&) {
  (require_known_members_of<std::remove_cv_t<V>>(), ...);
}

/// The value of a Rep; for one that was never set (an indeterminate value in C++) a zero of its type.
template <class T>
Datum value_of(const Rep<T>& r) {
  if (!r.datum().empty()) return r.datum();
  if constexpr (ScalarElement<T>) {
    return Datum::zero(TypeOf<T>::get());
  } else if constexpr (Traits<T>::tensor) {
    const ir::Type type = TypeOf<T>::get();
    using E = typename Traits<T>::element;
    std::vector<std::int64_t> dims = type.dims();
    for (std::int64_t& n : dims) n = n == ir::dynamic ? 0 : n;
    Datums operands{Datum::zero(TypeOf<E>::get())};
    for (std::int64_t n : dims) operands.push_back(literal(n));
    return perform({Opcode::fill_, 0, {}, dims}, operands);
  } else {
    return r.datum();
  }
}

template <class V>
void append_values(const V& v, Datums& out) {
  for_each_leaf(
      v, [&](const auto& r) { out.push_back(value_of(r)); }, [](const auto&) {});
}
/// Replaces the Reps of a variable by the first data of the list, and takes those off it.
template <class V>
void take_values(V& v, std::span<const Datum>& data) {
  for_each_leaf(
      v,
      [&]<class T>(Rep<T>& r) {
        r = Rep<T>(data.front());
        data = data.subspan(1);
      },
      [](auto&) {});
}

template <class... V>
Datums values(const std::tuple<V&...>& variables) {
  Datums out;
  std::apply([&](const auto&... v) { (append_values(v, out), ...); }, variables);
  return out;
}
template <class... V>
void assign(const std::tuple<V&...>& variables, std::span<const Datum> data) {
  std::apply([&](auto&... v) { (take_values(v, data), ...); }, variables);
}
/// The bytes of everything in the variables that is not a Rep: no branch or loop of the graph can change
/// them.
template <class... V>
std::vector<std::byte> plain_parts(const std::tuple<V&...>& variables) {
  std::vector<std::byte> bytes;
  const auto append = [&]<class T>(const T& v) {
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof v);
    std::memcpy(bytes.data() + at, &v, sizeof v);
  };
  std::apply(
      [&](const auto&... v) {
        (for_each_leaf(
             v, [](const auto&) {}, append),
         ...);
      },
      variables);
  return bytes;
}

/// A copy of a variable that can be put back.
template <class V>
class Copy {
 public:
  explicit Copy(V& v) : of_(v), value_(v) {}
  void restore() const { of_ = value_; }

 private:
  V& of_;
  V value_;
};
template <class T, std::size_t N>
class Copy<T[N]> {
 public:
  explicit Copy(T (&v)[N]) {
    for (T& part : v) parts_.emplace_back(part);
  }
  void restore() const {
    for (const Copy<T>& part : parts_) part.restore();
  }

 private:
  std::vector<Copy<T>> parts_;
};
template <class T>
class Copy<Var<T>> {
 public:
  explicit Copy(Var<T>&) {}
  void restore() const {}
};
template <class... V>
class Saved {
 public:
  explicit Saved(const std::tuple<V&...>& variables)
      : copies_(std::apply([](auto&... v) { return std::tuple(Copy<V>(v)...); }, variables)) {}
  void restore() const {
    std::apply([](const auto&... copy) { (copy.restore(), ...); }, copies_);
  }

 private:
  std::tuple<Copy<V>...> copies_;
};

}  // namespace detail

}  // namespace lantern::core::native
