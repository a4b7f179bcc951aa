// Training steps that change the caller's model and state.
#pragma once

#include "lantern/compiler/nn/parameters.hpp"

namespace lantern::nn {

namespace detail {

/// Leaves of the caller's memory that a result is written to.
struct Written {
  template <class R>
  struct Of;
  template <class T>
  struct Of<Rep<T>> {
    using type = T;
  };
  template <class T>
  struct Of<Rep<Array<T>>> {
    using type = std::span<T>;
  };
  template <class T, std::int64_t... dims>
  struct Of<Rep<Tensor<T, dims...>>> {
    using type = TensorView<T>;
  };
  template <class R>
  using apply = typename Of<R>::type;
};
template <class T>
struct IsTensor : std::bool_constant<core::detail::Traits<T>::tensor> {};

/// The numbers among the leaves, from one product to the other.
template <class To, class From>
void copy_numbers(To& to, From& from) {
  if constexpr (std::is_arithmetic_v<To>) {
    to = from;
  } else if constexpr (SequenceType<To>) {
    auto next = std::begin(from);
    for (auto& part : to) copy_numbers(part, *next++);
  } else if constexpr (TupleType<To> || StructType<To>) {
    core::detail::with_parts(to, [&](auto&... targets) {
      core::detail::with_parts(from, [&](auto&... parts) { (copy_numbers(targets, parts), ...); });
    });
  }
}
/// Gives the tensors of one product the shapes of another's; what they hold is to be written over.
template <class P>
void fit(P& spare, const P& now) {
  if constexpr (requires { now.shape; }) {
    if (spare.shape != now.shape || spare.data.size() != now.data.size()) spare = P(now.shape);
  } else if constexpr (SequenceType<P>) {
    if constexpr (requires { spare.resize(now.size()); }) spare.resize(now.size());
    auto next = std::begin(now);
    for (auto& part : spare) fit(part, *next++);
  } else if constexpr (TupleType<P> || StructType<P>) {
    core::detail::with_parts(spare, [&](auto&... targets) {
      core::detail::with_parts(now, [&](const auto&... parts) { (fit(targets, parts), ...); });
    });
  }
}

}  // namespace detail

/// See in_place.
template <class C, class R, class Params>
class InPlace;
template <class C, class First, class... R, class... P>
class InPlace<C, std::tuple<First, R...>, std::tuple<P...>> {
  static constexpr std::size_t updated = sizeof...(R);
  static constexpr bool begins_alike = [] {
    if constexpr (updated > sizeof...(P))
      return false;
    else
      return []<std::size_t... I>(std::index_sequence<I...>) {
        return (std::same_as<std::tuple_element_t<I, std::tuple<P...>>,
                             std::tuple_element_t<I, std::tuple<R...>>> &&
                ...);
      }(std::make_index_sequence<updated>{});
  }();
  static_assert(
      updated > 0 && begins_alike,
      "in_place: expected a function that returns a std::tuple of a value and of the new values of its first "
      "arguments, in their order");

 public:
  explicit InPlace(C callee) : callee_(std::move(callee)) {}

  /// The first result; the first arguments, lvalues, get their new values.
  template <class... A>
    requires(sizeof...(A) == sizeof...(P))
  core::detail::host_out<First> operator()(A&&... args) {
    return call(std::forward_as_tuple(args...), std::index_sequence_for<P...>{},
                std::make_index_sequence<updated>{});
  }

  const C& callee() const { return callee_; }

 private:
  template <class All, std::size_t... I, std::size_t... U>
  core::detail::host_out<First> call(const All& all, std::index_sequence<I...>, std::index_sequence<U...>) {
    constexpr bool only_numbers = !core::detail::any_rep<First, detail::IsTensor>();
    if constexpr (requires { C::on_gpu; }) {
      static_assert(only_numbers, "in_place: expected numbers as the first result of a function on a stream");
      core::detail::host_out<First> first{};
      callee_.into(first, std::get<U>(all)..., std::get<I>(all)...);
      return first;
    } else {
      return on_host<only_numbers>(all, std::index_sequence<I...>(), std::index_sequence<U...>());
    }
  }

  template <bool only_numbers, class All, std::size_t... I, std::size_t... U>
  core::detail::host_out<First> on_host(const All& all, std::index_sequence<I...>, std::index_sequence<U...>) {
    static_assert(
        (std::same_as<std::tuple_element_t<U, All>, core::detail::host_out<R>&> && ...),
        "in_place: expected variables of the host for what the function gives new values: Model<float> for a "
        "Model<Rep<float>>");
    std::tuple<core::detail::host_in<P>...> in;
    (detail::view_into(std::get<I>(in), std::get<I>(all)), ...);
    if constexpr (requires { C::writes_results; } && only_numbers) {
      core::detail::host_out<First> first{};
      std::tuple<core::detail::mapped_t<R, detail::Written>...> targets;
      const auto prepare = [](auto& target, auto& spare, const auto& now) {
        detail::fit(spare, now);
        detail::view_into(target, spare);
      };
      (prepare(std::get<U>(targets), std::get<U>(spare_), std::get<U>(all)), ...);
      callee_.into(first, std::get<U>(targets)..., std::get<I>(in)...);
      (detail::copy_numbers(std::get<U>(spare_), std::get<U>(targets)), ...);
      (std::swap(std::get<U>(spare_), std::get<U>(all)), ...);
      return first;
    } else {
      auto results = callee_(std::get<I>(in)...);
      ((std::get<U>(all) = std::move(std::get<1 + U>(results))), ...);
      return std::move(std::get<0>(results));
    }
  }

  C callee_;
  std::tuple<core::detail::host_out<R>...>
      spare_;  // where results are computed, while arguments are still read
};

/// A training step that changes the caller's model: of a function (model, state, data...) -> tuple(loss,
/// model, state), made by compile, eager or LANTERN_FUNCTION, one that is called as loss = step(model, state,
/// data...) and gives model and state their new values. Whatever comes after the first result is the new
/// value of an argument, in order. Two copies of the model and the state take turns: after an error the
/// caller's are as they were. Of compiled.on(stream) model and state are those of cuda::to_device, and stay on
/// the GPU; the first result is numbers there.
template <class C>
auto in_place(C callee) {
  return InPlace<C, typename C::ProgramResult, typename C::ProgramParameters>(std::move(callee));
}

}  // namespace lantern::nn
