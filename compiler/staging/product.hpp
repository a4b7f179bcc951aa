// Products of staged values: tuples, pairs, arrays, vectors and plain structs of Reps (see members.hpp), seen
// as lists of Reps.
#pragma once

#include <array>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "lantern/compiler/staging/members.hpp"
#include "lantern/compiler/staging/rep.hpp"

namespace lantern::core {

namespace detail {

template <class T>
struct IsRep : std::false_type {};
template <class T>
struct IsRep<Rep<T>> : std::true_type {};
template <class T>
concept RepType = IsRep<std::remove_cvref_t<T>>::value;

template <class T>
struct IsTuple : std::false_type {};
template <class... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};
template <class A, class B>
struct IsTuple<std::pair<A, B>> : std::true_type {};
template <class T>
concept TupleType = IsTuple<std::remove_cvref_t<T>>::value;

template <class T>
struct IsSequence : std::false_type {};
template <class T, std::size_t N>
struct IsSequence<std::array<T, N>> : std::true_type {};
template <class T, class A>
struct IsSequence<std::vector<T, A>> : std::true_type {};
template <class T, std::size_t N>
struct IsSequence<T[N]> : std::true_type {};
template <class T>
concept SequenceType = IsSequence<std::remove_cvref_t<T>>::value;

template <class P>
concept StructType = std::is_class_v<std::remove_cvref_t<P>> &&
                     (std::is_aggregate_v<std::remove_cvref_t<P>> ||
                      ListsMembers<std::remove_cvref_t<P>>)&&!RepType<P> &&
                     !TupleType<P> && !SequenceType<P>;

/// A class of its own, so that it is said once.
template <class P>
struct KnownMembers {
  static constexpr bool value = has_known_members<P>();
  static_assert(
      value,
      "this struct cannot be split into its members: expected at most 64 members, all public, with default values, and "
      "all in the struct or all in its one base class; nest structs, or list the members: static auto "
      "lantern_fields(auto& self) { return std::tie(self.a, self.b); }");
};

/// Raised by its instantiation, once for each type.
template <class P>
struct HoldsRepsOnly {
  static constexpr bool value = std::is_class_v<P>;
  static_assert(value,
                "a struct that a function over Reps takes or gives holds Reps only: make this plain member a Rep; or keep the "
                "struct outside, and write a lambda over it, [&](Rep<double> x) { return s.f(x); }");
};

/// Calls f with the parts of a tuple, pair or struct, in order.
template <class P, class F>
constexpr decltype(auto) with_parts(P& p, F&& f) {
  using Plain = std::remove_cv_t<P>;
  if constexpr (TupleType<P>) {
    return std::apply(f, p);
  } else if constexpr (!HoldsRepsOnly<Plain>::value) {
    return f();
  } else if constexpr (KnownMembers<Plain>::value) {
    return with_members(p, f);
  } else {
    return f();
  }
}

/// A list of types.
template <class... T>
struct Types {};
struct TypesOf {
  template <class... T>
  Types<std::remove_const_t<T>...> operator()(T&...) const {
    return {};
  }
};
/// The types of the parts of a tuple, pair or struct.
template <class P>
using part_types = decltype(with_parts(std::declval<P&>(), TypesOf{}));

/// What an array or vector has many of.
template <class P>
using element_type = std::remove_reference_t<decltype(*std::begin(std::declval<P&>()))>;
/// Arrays, whose number of elements is part of the type.
template <class P>
concept FixedSequence = SequenceType<P> && !requires(std::remove_cvref_t<P> p) {
  p.resize(1);
};
template <FixedSequence P>
inline constexpr std::size_t fixed_size = sizeof(P) / sizeof(element_type<P>);

/// True for types that are refused by a message of their own.
template <class P>
inline constexpr bool refused_elsewhere = false;

/// Calls f(Rep<T>&) for every Rep of a product, in order.
template <class P, class F>
void for_each_rep(P& p, F&& f) {
  if constexpr (RepType<P>)
    f(p);
  else if constexpr (SequenceType<P>)
    for (auto& part : p) for_each_rep(part, f);
  else if constexpr (TupleType<P> || StructType<P>)
    with_parts(p, [&](auto&... parts) { (for_each_rep(parts, f), ...); });
  else static_assert(refused_elsewhere<P>, "expected a Rep, or a struct, tuple, array or vector of Reps");
}

/// Whether a product's leaves can be counted without a value: not those of a vector.
template <class P>
constexpr bool countable();
template <class... T>
constexpr bool all_countable(Types<T...>) {
  return (countable<T>() && ...);
}
template <class P>
constexpr bool countable() {
  if constexpr (RepType<P>)
    return true;
  else if constexpr (SequenceType<P>)
    return FixedSequence<P> && countable<element_type<P>>();
  else
    return all_countable(part_types<P>{});
}

/// Whether `Holds` is true of some leaf Rep<T> of a product: Holds<T>::value.
template <class P, template <class> class Holds>
constexpr bool any_rep();
template <template <class> class Holds, class... T>
constexpr bool any_rep_of(Types<T...>) {
  return (any_rep<T, Holds>() || ...);
}
template <class P, template <class> class Holds>
constexpr bool any_rep() {
  if constexpr (RepType<P>)
    return Holds<typename P::value_type>::value;
  else if constexpr (SequenceType<P>)
    return any_rep<element_type<P>, Holds>();
  else if constexpr (TupleType<P> || StructType<P>)
    return any_rep_of<Holds>(part_types<P>{});
  else
    return false;
}

template <class P>
void flatten(const P& p, Datums& out) {
  for_each_rep(p, [&](const auto& r) { append(out, r.datum()); });
}
template <class P>
Datums flatten(const P& p) {
  Datums out;
  flatten(p, out);
  return out;
}
/// Makes a product hold the given data, as if it were constructed here; advances the span.
template <class P>
void renew(P& p, std::span<const Datum>& data) {
  for_each_rep(p, [&]<class T>(Rep<T>& r) {
    r.storage().renew(Rep<T>(data.front()).datum());
    data = data.subspan(1);
  });
}
/// Leaves the structure of a product: its Reps have no value and belong nowhere.
template <class P>
P structure_of(P p) {
  for_each_rep(p, [](auto& r) { r.storage().detach(); });
  return p;
}
/// The structure of a product that was made in another region, or will be.
template <class P>
class Structure {
 public:
  Structure() : of_(structure_of(P{})) {}
  explicit Structure(P p) : of_(structure_of(std::move(p))) {}
  Structure& operator=(P p) {
    of_.emplace(structure_of(std::move(p)));
    return *this;
  }
  /// The data of a product, of which the structure is kept.
  Datums keep(P p) {
    Datums data = flatten(p);
    *this = std::move(p);
    return data;
  }
  const P& operator*() const { return *of_; }

 private:
  std::optional<P> of_;
};
/// The product of the prototype's structure that holds the given data; advances the span.
template <class P>
P rebuild(const P& prototype, std::span<const Datum>& data) {
  P p = prototype;
  renew(p, data);
  return p;
}
template <class P>
P rebuild(const P& prototype, const Datums& data) {
  std::span<const Datum> view(data);
  return rebuild(prototype, view);
}

/// Rep-typed counterpart of what a branch or body returned: literals become Reps, products componentwise.
template <class P>
struct Lifted {
  using type = P;
};
template <class P>
  requires(std::is_arithmetic_v<P>)
struct Lifted<P> {
  using type = Rep<std::conditional_t<std::integral<P> && !std::same_as<P, bool> && sizeof(P) == 8, std::int64_t,
                                      std::conditional_t<std::integral<P> && !std::same_as<P, bool>, std::int32_t, P>>>;
};
template <class... Ts>
struct Lifted<std::tuple<Ts...>> {
  using type = std::tuple<typename Lifted<std::remove_cvref_t<Ts>>::type...>;
};
template <class A, class B>
struct Lifted<std::pair<A, B>> {
  using type = std::pair<typename Lifted<A>::type, typename Lifted<B>::type>;
};
template <class P>
using lifted_t = typename Lifted<std::remove_cvref_t<P>>::type;

/// The common type of two branch results.
template <class A, class B>
struct Merged {
  static_assert(dependent_false<A>, "the two branches of IF must agree: the same Rep types component by component "
                                    "(literals convert to the other branch's type)");
  using type = lifted_t<A>;
};
template <class A>
struct Merged<A, A> {
  using type = lifted_t<A>;
};
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && !std::same_as<A, B>)
struct Merged<A, B> {
  using type = lifted_t<std::common_type_t<A, B>>;
};
template <class T, class B>
  requires(std::is_arithmetic_v<B>)
struct Merged<Rep<T>, B> {
  using type = Rep<T>;
};
template <class A, class T>
  requires(std::is_arithmetic_v<A>)
struct Merged<A, Rep<T>> {
  using type = Rep<T>;
};
template <class T, std::int64_t... D, std::int64_t... E>
  requires(!std::same_as<Tensor<T, D...>, Tensor<T, E...>>)
struct Merged<Rep<Tensor<T, D...>>, Rep<Tensor<T, E...>>> {
  using type = Rep<Tensor<T>>;
};
template <class... A, class... B>
  requires(sizeof...(A) == sizeof...(B) && !std::same_as<std::tuple<A...>, std::tuple<B...>>)
struct Merged<std::tuple<A...>, std::tuple<B...>> {
  using type = std::tuple<typename Merged<std::remove_cvref_t<A>, std::remove_cvref_t<B>>::type...>;
};

/// Converts a result to the product type To, lifting literals.
template <class To, class From>
To convert(const From& from) {
  if constexpr (std::same_as<To, From>) return from;
  else if constexpr (TupleType<To> && TupleType<From>)
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return To(convert<std::remove_cvref_t<std::tuple_element_t<I, To>>>(std::get<I>(from))...);
    }(std::make_index_sequence<std::tuple_size_v<To>>{});
  else return To(from);
}

/// Whether f takes what `front` gives and the state, or its components.
template <class F, class S, class... Front>
constexpr bool takes_state() {
  if constexpr (std::is_invocable_v<F&, const Front&..., const S&>)
    return true;
  else if constexpr (FixedSequence<S>)
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return std::is_invocable_v<F&, const Front&..., decltype((void(I), std::declval<const element_type<S>&>()))...>;
    }(std::make_index_sequence<fixed_size<S>>{});
  else if constexpr (SequenceType<S>)
    return false;
  else if constexpr (TupleType<S> || StructType<S>)
    return []<class... T>(Types<T...>) { return std::is_invocable_v<F&, const Front&..., const T&...>; }
    (part_types<S>{});
  else
    return false;
}

/// Calls f with the state, or with its components where f takes those.
template <class F, class S, class... Front>
decltype(auto) apply_state(F& f, const S& state, const Front&... front) {
  if constexpr (std::is_invocable_v<F&, const Front&..., const S&>)
    return f(front..., state);
  else if constexpr (SequenceType<S>)
    return std::apply([&](const auto&... parts) -> decltype(auto) { return f(front..., parts...); }, state);
  else
    return with_parts(state, [&](const auto&... parts) -> decltype(auto) { return f(front..., parts...); });
}
/// Whether what it returns, if it takes the state, is one.
template <class F, class S, class... Front>
constexpr bool returns_state() {
  if constexpr (takes_state<F, S, Front...>()) {
    using R = std::remove_cvref_t<
        decltype(apply_state(std::declval<F&>(), std::declval<const S&>(), std::declval<const Front&>()...))>;
    if constexpr (std::is_void_v<R>) return false;
    else return std::same_as<R, S> || (TupleType<S> && TupleType<R>) || std::is_constructible_v<S, const R&>;
  } else {
    return true;
  }
}
/// What the body of a loop makes of the state; the state where it is no such body, which is an error of the caller's.
template <class F, class S, class... Front>
S next_state(F& f, const S& state, const Front&... front) {
  if constexpr (takes_state<F, S, Front...>() && returns_state<F, S, Front...>())
    return convert<S>(apply_state(f, state, front...));
  else
    return state;
}

}  // namespace detail

}  // namespace lantern::core
