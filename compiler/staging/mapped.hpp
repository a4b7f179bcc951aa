// Products with other leaves: what a product of Reps becomes outside (host_types.hpp), as a batch (vmap.hpp),
// or when each number gives a derivative (jacobian.hpp).
#pragma once

#include "lantern/compiler/staging/product.hpp"

namespace lantern::core::detail {

/// The product P with M::apply<Rep<T>> in place of every Rep<T>: tuples, pairs, arrays and vectors component
/// by component, a struct template P<Rep<double>> as P<...>, where that has the members wanted; another
/// struct, unless its members stay as they are, as the tuple of its members.
template <class P, class M>
struct Mapped {
  using type = P;
};
template <class P, class M>
using mapped_t = typename Mapped<P, M>::type;

template <class T, class M>
struct Mapped<Rep<T>, M> {
  using type = typename M::template apply<Rep<T>>;
};
template <class... T, class M>
struct Mapped<std::tuple<T...>, M> {
  using type = std::tuple<mapped_t<T, M>...>;
};
template <class A, class B, class M>
struct Mapped<std::pair<A, B>, M> {
  using type = std::pair<mapped_t<A, M>, mapped_t<B, M>>;
};
template <class T, std::size_t N, class M>
struct Mapped<std::array<T, N>, M> {
  using type = std::array<mapped_t<T, M>, N>;
};
template <class T, class M>
struct Mapped<std::vector<T>, M> {
  using type = std::vector<mapped_t<T, M>>;
};
/// Of a struct.
template <class T, std::size_t N, class M>
struct Mapped<T[N], M> {
  using type = mapped_t<T, M>[N];
};

/// The struct template's instance for other leaves; void where there is none.
template <class P, class M>
struct OtherInstance {
  using type = void;
};
template <template <class...> class P, class... T, class M>
struct OtherInstance<P<T...>, M> {
  using type = P<mapped_t<T, M>...>;
};
template <template <class, auto...> class P, class T, auto... N, class M>
requires(sizeof...(N) > 0) struct OtherInstance<P<T, N...>, M> {
  using type = P<mapped_t<T, M>, N...>;
};

template <class P, class Parts>
constexpr bool consists_of() {
  if constexpr (!StructType<P>)
    return false;
  else if constexpr (!has_known_members<P>())
    return false;
  else
    return std::same_as<part_types<P>, Parts>;
}

/// A member as a component of a tuple, which cannot hold a C array.
template <class T>
struct Component {
  using type = T;
};
template <class T, std::size_t N>
struct Component<T[N]> {
  using type = std::array<typename Component<T>::type, N>;
};

template <class P, class M, class Parts>
struct MappedStruct;
template <class P, class M, class... T>
struct MappedStruct<P, M, Types<T...>> {
  using Parts = Types<mapped_t<T, M>...>;
  using Other = typename OtherInstance<P, M>::type;
  using Tuple = std::tuple<typename Component<mapped_t<T, M>>::type...>;
  using type = std::conditional_t<std::same_as<Parts, Types<T...>>, P,
                                  std::conditional_t<consists_of<Other, Parts>(), Other, Tuple>>;
};
template <StructType P, class M>
requires(has_known_members<P>()) struct Mapped<P, M> : MappedStruct<P, M, part_types<P>> {
};

/// A product of one structure from a product of another, whose leaves are made one by one, in order:
/// make.template operator()<To's leaf>(From's leaf). Vectors get the sizes of the other's.
template <class To, class From, class Make>
void map_onto(To& to, From& from, const Make& make);
template <class... To, class Make>
auto onto(const Make& make, To&... to) {
  return [&](auto&... from) { (map_onto(to, from, make), ...); };
}
template <class To, class From, class Make>
void map_onto(To& to, From& from, const Make& make) {
  if constexpr (RepType<From>) {
    make(to, from);
  } else if constexpr (SequenceType<From>) {
    if constexpr (requires { to.resize(from.size()); }) to.resize(from.size());
    auto next = std::begin(to);
    for (auto& part : from) map_onto(*next++, part, make);
  } else if constexpr (TupleType<From> || StructType<From>) {
    with_parts(to, [&](auto&... parts) { with_parts(from, onto(make, parts...)); });
  }
}

}  // namespace lantern::core::detail
