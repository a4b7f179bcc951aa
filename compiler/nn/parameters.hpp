// Models: plain structs of parameters, staged and on the host, by one template.
//
//   template <class S>
//   struct Mlp {
//     nn::Linear<S> hidden, output;
//     auto operator()(const auto& x) const { return output(relu(hidden(x))); }
//   };
//
// S is Rep<float> or Rep<double> where the model is computed with, and float or double outside: a compiled
// function that takes a Mlp<Rep<float>> is called with (a view of) a Mlp<float>, and one that returns it
// returns a Mlp<float>. A gradient by a model is a model. What a model holds are Parameter<S, dims...>,
// layers, and tuples, arrays and structs of those.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "lantern/tensor.hpp"

namespace lantern::nn {

namespace detail {

using core::detail::RepType;
using core::detail::SequenceType;
using core::detail::StructType;
using core::detail::TupleType;

template <class S, std::int64_t... dims>
struct ParameterOf;
template <core::FloatElement T, std::int64_t... dims>
struct ParameterOf<Rep<T>, dims...> {
  using type = Rep<Tensor<T, dims...>>;
};
template <core::FloatElement T, std::int64_t... dims>
struct ParameterOf<T, dims...> {
  using type = TensorValue<T>;
};

template <class T>
struct Always : std::true_type {};
/// Whether a product consists of Reps, or of numbers and tensors of the host.
template <class P>
inline constexpr bool staged = core::detail::any_rep<P, Always>();

// The names of members: that of a pointer to one, as the compiler spells it in the name of a function.
template <class P>
struct Somewhere {
  P value;
};
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class P>
extern const Somewhere<P> somewhere;

/// Clang before 18 takes no pointer to a member's object as a template argument, but one inside an object.
template <class T>
struct PointerTo {
  T* object;
};

template <auto pointer>
constexpr std::string_view spelled() {
  const std::string_view text = __PRETTY_FUNCTION__;  // "... [with auto pointer = (& ...); ...]"
  const std::size_t from = text.find("pointer = ");
  return text.substr(from, std::min(text.find(';', from), text.size()) - from);
}
constexpr bool in_name(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
/// The last name in a text.
constexpr std::string_view last_name(std::string_view text) {
  while (!text.empty() && !in_name(text.back())) text.remove_suffix(1);
  std::size_t from = text.size();
  while (from > 0 && in_name(text[from - 1])) --from;
  return text.substr(from);
}
struct PointersOf {
  template <class... M>
  constexpr auto operator()(M&... members) const {
    return std::tuple(&members...);
  }
};
template <class P, std::size_t i>
consteval std::string_view member_name() {
  constexpr auto* pointer = std::get<i>(core::detail::with_members(somewhere<P>.value, PointersOf{}));
  return last_name(spelled<PointerTo<std::remove_pointer_t<decltype(pointer)>>{pointer}>());
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

inline std::string joined(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

/// Calls f(name, leaf) for each leaf of a product, in order.
template <class P, class F>
void walk(const std::string& path, P& p, const F& f) {
  using Plain = std::remove_cv_t<P>;
  if constexpr (SequenceType<Plain>) {
    std::size_t i = 0;
    for (auto& part : p) walk(joined(path, std::to_string(i++)), part, f);
  } else if constexpr (TupleType<Plain>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (walk(joined(path, std::to_string(I)), std::get<I>(p), f), ...);
    }(std::make_index_sequence<std::tuple_size_v<Plain>>{});
  } else if constexpr (StructType<Plain>) {
    core::detail::with_members(p, [&](auto&... members) {
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        if constexpr (core::detail::ListsMembers<Plain>)
          (walk(joined(path, std::to_string(I)), members, f), ...);
        else
          (walk(joined(path, member_name<Plain, I>()), members, f), ...);
      }(std::make_index_sequence<sizeof...(members)>{});
    });
  } else {
    f(path, p);
  }
}

/// Whether To has the structure of From, with views of its leaves.
template <class To, class From>
consteval bool views();
template <class... To, class... From>
consteval bool views_each(core::detail::Types<To...>, core::detail::Types<From...>) {
  if constexpr (sizeof...(To) == sizeof...(From))
    return (views<To, From>() && ...);
  else
    return false;
}
template <class To, class From>
consteval bool views() {
  if constexpr (SequenceType<From>) {
    if constexpr (SequenceType<To>)
      return views<core::detail::element_type<To>, core::detail::element_type<From>>();
    else
      return std::is_convertible_v<From&, To>;
  } else if constexpr (TupleType<From> || StructType<From>) {
    if constexpr (TupleType<To> || StructType<To>)
      return views_each(core::detail::part_types<To>{}, core::detail::part_types<From>{});
    else
      return false;
  } else {
    return std::is_convertible_v<From&, To>;
  }
}
/// Views of a host product's parts, put into a product of the same structure.
template <class To, class From>
void view_into(To& to, From& from) {
  if constexpr (std::is_convertible_v<From&, To>) {
    to = from;
  } else if constexpr (SequenceType<From>) {
    auto next = std::begin(to);
    for (auto& part : from) view_into(*next++, part);
  } else {
    core::detail::with_parts(to, [&](auto&... targets) {
      core::detail::with_parts(from, [&](auto&... parts) { (view_into(targets, parts), ...); });
    });
  }
}

/// Calls f(Rep<V>&...) for the floating leaves of products of one type, V a number or a tensor without
/// dimensions in its type, and lets the products have what f assigns.
template <class F, class P, class... Q>
void update_each(const F& f, P& first, Q&... more) {
  std::array<core::Datums, 1 + sizeof...(Q)> data{core::detail::flatten(first),
                                                  core::detail::flatten(more)...};
  std::size_t i = 0;
  core::detail::for_each_rep(first, [&]<class T>(const Rep<T>&) {
    using E = typename core::detail::Traits<T>::element;
    if constexpr (std::is_floating_point_v<E>) {
      using V = Rep<std::conditional_t<core::detail::Traits<T>::tensor, Tensor<E>, E>>;
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        std::array<V, 1 + sizeof...(Q)> values{V(data[K][i])...};
        f(values[K]...);
        ((data[K][i] = values[K].datum()), ...);
      }(std::make_index_sequence<1 + sizeof...(Q)>{});
    }
    ++i;
  });
  const auto give_back = [](auto& p, const core::Datums& values) {
    std::span<const core::Datum> rest(values);
    core::detail::renew(p, rest);
  };
  std::size_t k = 0;
  give_back(first, data[k]);
  (give_back(more, data[++k]), ...);
}

}  // namespace detail

/// A tensor that is learnt: a Rep<Tensor<T, dims...>> where S is a Rep<T>, a TensorValue<T> where S is T.
template <class S, std::int64_t... dims>
using Parameter = typename detail::ParameterOf<S, dims...>::type;

/// A number beside parameters, such as a count: Rep<T> in a staged product P, T on the host.
template <class P, class T>
using Number = std::conditional_t<detail::staged<P>, Rep<T>, T>;

/// Calls f(name, tensor) for each parameter of a model, named by its members: "layers.0.weight". Members of
/// tuples and arrays, and of classes with lantern_fields, have their numbers.
template <class M, class F>
void for_each_parameter(M& model, const F& f) {
  detail::walk(std::string(), model, f);
}
/// The names of a model's parameters, in order.
template <class M>
std::vector<std::string> parameter_names(const M& model) {
  std::vector<std::string> names;
  for_each_parameter(model, [&](const std::string& name, const auto&) { names.push_back(name); });
  return names;
}
/// How many numbers the parameters of a host model have.
template <class M>
std::int64_t parameter_count(const M& model) {
  std::int64_t n = 0;
  for_each_parameter(model, [&](const std::string&, const auto& p) {
    if constexpr (requires { p.data.size(); })
      n += static_cast<std::int64_t>(p.data.size());
    else
      ++n;
  });
  return n;
}
/// A product of the same shapes, all zero: on the host or staged.
template <class M>
M zeros_of(M model) {
  if constexpr (detail::staged<M>) {
    detail::update_each(
        [](auto& p) {
          if constexpr (std::is_constructible_v<std::remove_cvref_t<decltype(p)>, double>)
            p = 0.0;
          else
            p = zeros_like(p);
        },
        model);
  } else {
    for_each_parameter(model, [](const std::string&, auto& p) {
      if constexpr (requires { p.data.size(); })
        std::fill(p.data.begin(), p.data.end(),
                  typename std::remove_cvref_t<decltype(p.data)>::value_type(0));
      else
        p = 0;
    });
  }
  return model;
}

/// A host model, of any structure, as an argument of a compiled function: f(view(model), x). It refers to the
/// model.
template <class M>
class View {
 public:
  explicit View(const M& model) : model_(model) {}
  template <class In>
    requires(detail::views<In, const M>())
  operator In() const {
    In in;
    detail::view_into(in, model_);
    return in;
  }

 private:
  const M& model_;
};
template <class M>
View<M> view(const M& model) {
  return View<M>(model);
}

}  // namespace lantern::nn
