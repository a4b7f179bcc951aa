// The members of a plain struct, which C++20 tells nothing: counted, and bound to names.
//
// What is taken to pieces:
//
//   an aggregate of up to 64 public members, C arrays and other aggregates among them
//   the same with empty base classes
//   an aggregate without members of its own whose one base class is such an aggregate
//   any class that lists its members: static auto lantern_fields(auto& self) { return std::tie(self.a,
//   self.b); }
//
// Members in a class and in its base at once cannot be bound: such a class lists them.
#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace lantern::core::detail {

inline constexpr std::size_t most_members = 64;

/// The members of a class of others, which cannot list them itself: of(p) gives a tuple of references.
template <class P>
struct MembersOf {};

/// A class that lists its members, or for which that is done.
template <class P>
concept ListsMembers = requires(P& p) { P::lantern_fields(p); } || requires(P& p) { MembersOf<std::remove_cv_t<P>>::of(p); };

/// Of n members: whether a class or its base can be given so many initialisers, and a call with all of them.
template <std::size_t n>
struct Members {
  template <class P>
  static constexpr bool in_class = true;
  template <class P>
  static constexpr bool in_base = true;
  template <class P, class F>
  static constexpr decltype(auto) visit(P&, F&& f) {
    return f();
  }
};

// One specialisation for each number. LANTERN_UPTO_k(x, g): x(g1), ..., x(gk); a name is x = LANTERN_NAME of
// it, an initialiser that suits every member x = LANTERN_BRACES.
// clang-format off
#define LANTERN_NAME(name) name
#define LANTERN_BRACES(name) {}
#define LANTERN_UPTO_1(x, g) x(g##1)
#define LANTERN_UPTO_2(x, g) LANTERN_UPTO_1(x, g), x(g##2)
#define LANTERN_UPTO_3(x, g) LANTERN_UPTO_2(x, g), x(g##3)
#define LANTERN_UPTO_4(x, g) LANTERN_UPTO_3(x, g), x(g##4)
#define LANTERN_UPTO_5(x, g) LANTERN_UPTO_4(x, g), x(g##5)
#define LANTERN_UPTO_6(x, g) LANTERN_UPTO_5(x, g), x(g##6)
#define LANTERN_UPTO_7(x, g) LANTERN_UPTO_6(x, g), x(g##7)
#define LANTERN_UPTO_8(x, g) LANTERN_UPTO_7(x, g), x(g##8)
#define LANTERN_FIRST_0(x)
#define LANTERN_FIRST_8(x) LANTERN_UPTO_8(x, lt_a),
#define LANTERN_FIRST_16(x) LANTERN_FIRST_8(x) LANTERN_UPTO_8(x, lt_b),
#define LANTERN_FIRST_24(x) LANTERN_FIRST_16(x) LANTERN_UPTO_8(x, lt_c),
#define LANTERN_FIRST_32(x) LANTERN_FIRST_24(x) LANTERN_UPTO_8(x, lt_d),
#define LANTERN_FIRST_40(x) LANTERN_FIRST_32(x) LANTERN_UPTO_8(x, lt_e),
#define LANTERN_FIRST_48(x) LANTERN_FIRST_40(x) LANTERN_UPTO_8(x, lt_u),
#define LANTERN_FIRST_56(x) LANTERN_FIRST_48(x) LANTERN_UPTO_8(x, lt_v),
#define LANTERN_FIRST_64(x) LANTERN_FIRST_56(x) LANTERN_UPTO_8(x, lt_w),
#define LANTERN_MEMBERS(first, k, g)                                                                         \
  template <>                                                                                                \
  struct Members<first + k> {                                                                                \
    template <class P>                                                                                       \
    static constexpr bool in_class =                                                                         \
        requires { P{LANTERN_FIRST_##first(LANTERN_BRACES) LANTERN_UPTO_##k(LANTERN_BRACES, g)}; };          \
    template <class P>                                                                                       \
    static constexpr bool in_base =                                                                          \
        requires { P{{LANTERN_FIRST_##first(LANTERN_BRACES) LANTERN_UPTO_##k(LANTERN_BRACES, g)}}; };        \
    template <class P, class F>                                                                              \
    static constexpr decltype(auto) visit(P& p, F&& f) {                                                     \
      auto& [LANTERN_FIRST_##first(LANTERN_NAME) LANTERN_UPTO_##k(LANTERN_NAME, g)] = p;                     \
      return f(LANTERN_FIRST_##first(LANTERN_NAME) LANTERN_UPTO_##k(LANTERN_NAME, g));                       \
    }                                                                                                        \
  };
#define LANTERN_EIGHT(first, g)                                                                              \
  LANTERN_MEMBERS(first, 1, g) LANTERN_MEMBERS(first, 2, g) LANTERN_MEMBERS(first, 3, g)                     \
  LANTERN_MEMBERS(first, 4, g) LANTERN_MEMBERS(first, 5, g) LANTERN_MEMBERS(first, 6, g)                     \
  LANTERN_MEMBERS(first, 7, g) LANTERN_MEMBERS(first, 8, g)
LANTERN_EIGHT(0, lt_a)
LANTERN_EIGHT(8, lt_b)
LANTERN_EIGHT(16, lt_c)
LANTERN_EIGHT(24, lt_d)
LANTERN_EIGHT(32, lt_e)
LANTERN_EIGHT(40, lt_u)
LANTERN_EIGHT(48, lt_v)
LANTERN_EIGHT(56, lt_w)
template <class P>
inline constexpr bool too_many_in_class = requires { P{LANTERN_FIRST_64(LANTERN_BRACES) {}}; };
template <class P>
inline constexpr bool too_many_in_base = requires { P{{LANTERN_FIRST_64(LANTERN_BRACES) {}}}; };
#undef LANTERN_EIGHT
#undef LANTERN_MEMBERS
#undef LANTERN_FIRST_64
#undef LANTERN_FIRST_56
#undef LANTERN_FIRST_48
#undef LANTERN_FIRST_40
#undef LANTERN_FIRST_32
#undef LANTERN_FIRST_24
#undef LANTERN_FIRST_16
#undef LANTERN_FIRST_8
#undef LANTERN_FIRST_0
#undef LANTERN_UPTO_8
#undef LANTERN_UPTO_7
#undef LANTERN_UPTO_6
#undef LANTERN_UPTO_5
#undef LANTERN_UPTO_4
#undef LANTERN_UPTO_3
#undef LANTERN_UPTO_2
#undef LANTERN_UPTO_1
#undef LANTERN_BRACES
#undef LANTERN_NAME
// clang-format on

/// The largest number of initialisers, of which `low` are accepted and `high` are not. Where an object
/// without any is allowed, so is every number up to that of the members, and the search may halve; a member
/// that must be initialised, such as a reference, asks for one step at a time from above.
template <class P, bool base, std::size_t low, std::size_t high>
consteval std::size_t initialisers() {
  if constexpr (high - low == 1) {
    return low;
  } else {
    constexpr std::size_t middle = requires { P{}; }
    ? (low + high) / 2 : high - 1;
    constexpr bool accepted =
        base ? Members<middle>::template in_base<P> : Members<middle>::template in_class<P>;
    if constexpr (!accepted)
      return initialisers<P, base, low, middle>();
    else if constexpr (requires { P{}; })
      return initialisers<P, base, middle, high>();
    else
      return middle;
  }
}

/// Stands for base classes, of a kind, of P.
template <class P, bool (*of_kind)(bool empty, bool aggregate)>
struct BaseOf {
  template <class B>
  requires(std::is_base_of_v<B, P> && !std::same_as<B, P> &&
           of_kind(std::is_empty_v<B>, std::is_aggregate_v<B>))
  operator B() const;
};
/// Nothing converts from this but what takes everything.
struct NoValue {};

constexpr bool any_base(bool, bool) { return true; }
constexpr bool empty_base(bool empty, bool) { return empty; }
constexpr bool aggregate_base(bool, bool aggregate) { return aggregate; }

/// Whether the first elements of an aggregate are base classes of a kind.
template <class P, bool (*of_kind)(bool, bool), std::size_t... I>
consteval bool begins_with(std::index_sequence<I...>) {
  return requires { P{(static_cast<void>(I), BaseOf<P, of_kind>{})...}; }
  &&!requires { P{(static_cast<void>(I), NoValue{})...}; };
}
template <class P, std::size_t n = 0>
consteval std::size_t bases() {
  if constexpr (begins_with<P, any_base>(std::make_index_sequence<n + 1>{}))
    return bases<P, n + 1>();
  else
    return n;
}

inline constexpr std::size_t not_bound = static_cast<std::size_t>(-1);

/// How many names bind the members of an aggregate; not_bound where none do.
template <class P>
consteval std::size_t bound_members() {
  if constexpr (std::is_empty_v<P>) {
    return 0;
  } else if constexpr (too_many_in_class<P>) {
    return not_bound;
  } else {
    constexpr std::size_t all = initialisers<P, false, 0, most_members + 1>();
    constexpr std::size_t inherited = bases<P>();
    if constexpr (all == 0) {
      return not_bound;
    } else if constexpr (inherited == 0 ||
                         begins_with<P, empty_base>(std::make_index_sequence<inherited>{})) {
      return all - inherited;
    } else if constexpr (all == 1 && begins_with<P, aggregate_base>(std::index_sequence<0>{}) &&
                         !requires { P{{BaseOf<P, any_base>{}}}; } && !too_many_in_base<P>) {
      return initialisers<P, true, 0, most_members + 1>();
    } else {
      return not_bound;
    }
  }
}

/// Whether the members of a class are known.
template <class P>
consteval bool has_known_members() {
  using Plain = std::remove_cv_t<P>;
  if constexpr (ListsMembers<P>)
    return true;
  else
    return bound_members<Plain>() != not_bound;
}

/// Calls f with the members of a class, in order.
template <class P, class F>
constexpr decltype(auto) with_members(P& p, F&& f) {
  if constexpr (requires { MembersOf<std::remove_cv_t<P>>::of(p); })
    return std::apply(f, MembersOf<std::remove_cv_t<P>>::of(p));
  else if constexpr (ListsMembers<P>)
    return std::apply(f, P::lantern_fields(p));
  else
    return Members<bound_members<std::remove_cv_t<P>>()>::visit(p, f);
}

}  // namespace lantern::core::detail
