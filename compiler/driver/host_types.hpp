// Between a program's Rep types and the plain C++ types of a compiled function's caller.
//
//   Rep<double>            double
//   Rep<Array<T>>          std::span<const T> in, std::vector<T> out
//   Rep<Tensor<T, ...>>    TensorView<const T> in, TensorValue<T> out
//   Rep<Tree<T>>           const Tree<T>& in
//   std::tuple, std::array componentwise; struct template P<Rep<A>...> is P<A'...>; another struct of Reps is
//   a
//                          tuple of its members
#pragma once

#include <span>
#include <vector>

#include "lantern/compiler/ad/derivative.hpp"
#include "lantern/compiler/staging/mapped.hpp"
#include "lantern/runtime/tensor.hpp"

namespace lantern::core::detail {

template <class P>
struct Host;
template <ScalarElement T>
struct Host<Rep<T>> {
  using in = T;
  using out = T;
};
template <class T>
struct Host<Rep<Array<T>>> {
  using in = std::span<const T>;
  using out = std::vector<T>;
};
template <class T, std::int64_t... D>
struct Host<Rep<Tensor<T, D...>>> {
  using in = TensorView<const T>;
  using out = TensorValue<T>;
};
template <class T>
struct Host<Rep<Tree<T>>> {
  using in = Tree<T>;
  using out = Tree<T>;
};

struct Entering {
  template <class R>
  using apply = typename Host<R>::in;
};
struct Leaving {
  template <class R>
  using apply = typename Host<R>::out;
};
template <class P>
struct Outside {
  static_assert(countable<P>(),
                "a compiled function takes and gives values whose number is part of their type: expected a "
                "std::array of Reps, or a Rep<Array<...>>, whose size is data, got a std::vector of Reps");
  using in = mapped_t<P, Entering>;
  using out = mapped_t<P, Leaving>;
};
template <class P>
using host_in = typename Outside<P>::in;
template <class P>
using host_out = typename Outside<P>::out;

/// Calls f(Rep<T> type, host value) for every leaf of a product and its host counterpart, in order.
template <class P, class H, class F>
void for_each_leaf(H& host, F&& f);
template <class... P, class H, class F>
void for_each_leaf_of(Types<P...>, H& host, F& f) {
  with_parts(host, [&](auto&... h) { (for_each_leaf<P>(h, f), ...); });
}
template <class P, class H, class F>
void for_each_leaf(H& host, F&& f) {
  if constexpr (RepType<P>) {
    f(std::type_identity<typename P::value_type>{}, host);
  } else if constexpr (SequenceType<P>) {
    for (auto& h : host) for_each_leaf<element_type<P>>(h, f);
  } else {
    for_each_leaf_of(part_types<P>{}, host, f);
  }
}

/// How many leaves a product has.
template <class P>
constexpr std::size_t leaf_count();
template <class... T>
constexpr std::size_t leaf_count_of(Types<T...>) {
  return (std::size_t{0} + ... + leaf_count<T>());
}
template <class P>
constexpr std::size_t leaf_count() {
  if constexpr (RepType<P>) {
    return 1;
  } else if constexpr (SequenceType<P>) {
    static_assert(
        FixedSequence<P>,
        "a std::vector of Reps has no size in a compiled function: expected a Rep<Array<T>> or a std::array");
    if constexpr (FixedSequence<P>)
      return fixed_size<P> * leaf_count<element_type<P>>();
    else
      return 0;
  } else {
    return leaf_count_of(part_types<P>{});
  }
}

/// The flattened types of a parameter list; a tensor without dimensions takes its rank from the caller's view.
template <class... P>
std::vector<ir::Type> parameter_types(const host_in<P>&... host) {
  std::vector<ir::Type> types;
  const auto one = [&]<class T>(std::type_identity<T>, const auto& h) {
    if constexpr (std::same_as<T, Tensor<typename Traits<T>::element>>)
      append(types, ir::Type::tensor(TypeOf<typename Traits<T>::element>::get().kind(),
                                     std::vector<std::int64_t>(h.shape().size(), ir::dynamic)));
    else append(types, TypeOf<T>::get());
  };
  (for_each_leaf<P>(host, one), ...);
  return types;
}

/// False where a parameter is a tensor whose rank only the caller knows.
template <class... P>
bool ranks_known() {
  std::vector<ir::Type> types;
  bool known = true;
  ((known = types_of<P>(types) && known), ...);
  return known;
}

}  // namespace lantern::core::detail
