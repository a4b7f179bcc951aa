// Between a program's Rep types and the plain C++ types of a compiled function's caller.
//
//   Rep<double>            double
//   Rep<Array<T>>          std::span<const T> in, std::vector<T> out
//   Rep<Tensor<T, ...>>    TensorView<const T> in, TensorValue<T> out
//   Rep<Tree<T>>           const Tree<T>& in
//   std::tuple, std::array componentwise; struct template P<Rep<A>...> is P<A'...>; another struct of Reps is a
//                          tuple of its fields
#pragma once

#include <span>
#include <vector>

#include "lantern/compiler/ad/derivative.hpp"
#include "lantern/runtime/tensor.hpp"

namespace lantern::detail {

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
template <class T, class A>
struct Host<std::vector<T, A>> {
  static_assert(dependent_false<T>,
                "a compiled function takes and gives values whose number is part of their type: expected a "
                "std::array of Reps, or a Rep<Array<...>>, whose size is data, got a std::vector of Reps");
  using in = std::vector<typename Host<T>::in>;
  using out = std::vector<typename Host<T>::out>;
};
template <class... Ts>
struct Host<std::tuple<Ts...>> {
  using in = std::tuple<typename Host<Ts>::in...>;
  using out = std::tuple<typename Host<Ts>::out...>;
};
template <class A, class B>
struct Host<std::pair<A, B>> {
  using in = std::pair<typename Host<A>::in, typename Host<B>::in>;
  using out = std::pair<typename Host<A>::out, typename Host<B>::out>;
};
template <class T, std::size_t N>
struct Host<std::array<T, N>> {
  using in = std::array<typename Host<T>::in, N>;
  using out = std::array<typename Host<T>::out, N>;
};
template <template <class...> class P, class... Ts>
  requires(StructType<P<Ts...>>)
struct Host<P<Ts...>> {
  using in = P<typename Host<Ts>::in...>;
  using out = P<typename Host<Ts>::out...>;
};
template <class P>
  requires(StructType<P>)
struct Host<P> {
  template <class... Ts>
  static std::tuple<typename Host<std::remove_cvref_t<Ts>>::in...> ins(std::type_identity<std::tuple<Ts...>>);
  template <class... Ts>
  static std::tuple<typename Host<std::remove_cvref_t<Ts>>::out...> outs(std::type_identity<std::tuple<Ts...>>);
  using Fields = decltype(fields(std::declval<P&>()));
  using in = decltype(ins(std::type_identity<Fields>{}));
  using out = decltype(outs(std::type_identity<Fields>{}));
};

template <class P>
using host_in = typename Host<P>::in;
template <class P>
using host_out = typename Host<P>::out;

/// Calls f(Rep<T> type, host value) for every leaf of a product and its host counterpart, in order.
template <class P, class H, class F>
void for_each_leaf(H& host, F&& f) {
  if constexpr (RepType<P>) {
    f(std::type_identity<typename P::value_type>{}, host);
  } else if constexpr (TupleType<P>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (for_each_leaf<std::remove_cvref_t<std::tuple_element_t<I, P>>>(std::get<I>(host), f), ...);
    }(std::make_index_sequence<std::tuple_size_v<P>>{});
  } else if constexpr (SequenceType<P>) {
    for (auto& h : host) for_each_leaf<typename P::value_type>(h, f);
  } else {
    using Fields = decltype(fields(std::declval<P&>()));
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr (TupleType<H>)
        (for_each_leaf<std::remove_cvref_t<std::tuple_element_t<I, Fields>>>(std::get<I>(host), f), ...);
      else
        (for_each_leaf<std::remove_cvref_t<std::tuple_element_t<I, Fields>>>(std::get<I>(fields(host)), f), ...);
    }(std::make_index_sequence<std::tuple_size_v<Fields>>{});
  }
}

/// How many leaves a product has.
template <class P>
constexpr std::size_t leaf_count() {
  if constexpr (RepType<P>) return 1;
  else if constexpr (TupleType<P>)
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (std::size_t{0} + ... + leaf_count<std::remove_cvref_t<std::tuple_element_t<I, P>>>());
    }(std::make_index_sequence<std::tuple_size_v<P>>{});
  else if constexpr (SequenceType<P>) return std::tuple_size_v<P> * leaf_count<typename P::value_type>();
  else return leaf_count<decltype(fields(std::declval<P&>()))>();
}

/// The flattened types of a parameter list; a tensor without dimensions takes its rank from the caller's view.
template <class... P>
std::vector<ir::Type> parameter_types(const host_in<P>&... host) {
  std::vector<ir::Type> types;
  const auto one = [&]<class T>(std::type_identity<T>, const auto& h) {
    if constexpr (std::same_as<T, Tensor<typename Traits<T>::element>>)
      types.push_back(ir::Type::tensor(TypeOf<typename Traits<T>::element>::get().kind(),
                                       std::vector<std::int64_t>(h.shape().size(), ir::dynamic)));
    else types.push_back(TypeOf<T>::get());
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

}  // namespace lantern::detail
