// Calls of compiled functions: which host values are arguments, and the message for a call that does not fit.
#pragma once

#include <initializer_list>
#include <iterator>

#include "lantern/compiler/driver/host_types.hpp"
#include "lantern/compiler/staging/told.hpp"

namespace lantern::core::detail {

/// How a container of another library is read as a tensor: `static TensorView<const E> of(const H&)`, with its strides.
/// Libraries are taught by specialisations, as Eigen is in eigen.hpp.
template <class H>
struct ReadAsTensor {
  using Unknown = void;
};
template <class H>
concept ReadableAsTensor = !requires { typename ReadAsTensor<H>::Unknown; };
template <class H, class T>
concept TensorOf = ReadableAsTensor<H> && requires(const H& h) {
  { ReadAsTensor<H>::of(h) } -> std::same_as<TensorView<const T>>;
};
/// A row of numbers in memory.
template <class H, class T>
concept RowOf = requires(const H& h) {
  { std::data(h) } -> std::convertible_to<const T*>;
  std::size(h);
};

/// An argument of an array: elements that are there, a list in braces, or a copy of elements that do not lie side by
/// side.
template <class T>
class ElementsIn {
 public:
  template <class H>
    requires(std::convertible_to<const H&, std::span<const T>>)
  ElementsIn(const H& there) : elements_(there) {}
  ElementsIn(std::initializer_list<T> list) : elements_(list.begin(), list.size()) {}
  /// Error: a tensor with several dimensions that are not 1.
  template <class H>
    requires(TensorOf<H, T> && !std::convertible_to<const H&, std::span<const T>>)
  ElementsIn(const H& matrix) {
    const TensorView<const T> view = ReadAsTensor<H>::of(matrix);
    std::int64_t longest = 1;
    for (const std::int64_t n : view.shape())
      if (n > longest) longest = n;
    if (view.size() > longest)
      throw Error("a matrix is passed where the function takes an array, Rep<Array<T>>; declare the parameter as a "
                  "Rep<Tensor<T, dyn, dyn>>, or pass a row or column");
    if (view.contiguous()) {
      elements_ = {view.data(), static_cast<std::size_t>(view.size())};
      return;
    }
    copy_.reserve(static_cast<std::size_t>(view.size()));
    for (std::int64_t i = 0; i < view.size(); ++i) copy_.push_back(view.at_flat(i));
    elements_ = copy_;
  }
  operator std::span<const T>() const { return elements_; }

 private:
  std::vector<T> copy_;
  std::span<const T> elements_;
};

/// What an argument of a parameter P may be beside its host type, and as what it enters.
template <class P>
struct Argument {
  template <class H>
  static constexpr bool takes = std::convertible_to<const H&, host_in<P>>;
  template <class H>
  static const H& entering(const H& h) {
    return h;
  }
};
/// Numbers convert as in C++, unless a fraction would be lost.
template <ScalarElement T>
struct Argument<Rep<T>> {
  template <class H>
  static constexpr bool takes =
      std::convertible_to<const H&, T> && !(std::integral<T> && std::floating_point<std::remove_cvref_t<H>>);
  template <class H>
  static T entering(const H& h) {
    return static_cast<T>(h);
  }
};
template <class T>
struct Argument<Rep<Array<T>>> {
  template <class H>
  static constexpr bool takes = std::convertible_to<const H&, std::span<const T>> || TensorOf<H, T>;
  template <class H>
  static auto entering(const H& h) {
    if constexpr (std::convertible_to<const H&, std::span<const T>>)
      return std::span<const T>(h);
    else
      return ElementsIn<T>(h);
  }
};
template <class T, std::int64_t... D>
struct Argument<Rep<Tensor<T, D...>>> {
  static constexpr bool row = sizeof...(D) <= 1;
  template <class H>
  static constexpr bool takes =
      std::convertible_to<const H&, TensorView<const T>> || TensorOf<H, T> || (row && RowOf<H, T>);
  template <class H>
  static TensorView<const T> entering(const H& h) {
    if constexpr (std::convertible_to<const H&, TensorView<const T>>)
      return h;
    else if constexpr (TensorOf<H, T>)
      return with_rank(ReadAsTensor<H>::of(h));
    else
      return {std::data(h), {static_cast<std::int64_t>(std::size(h))}};
  }

 private:
  /// A vector of another library may come as a matrix of one column or row.
  static TensorView<const T> with_rank(const TensorView<const T>& view) {
    if (sizeof...(D) != 1 || view.shape().size() != 2) return view;
    const std::size_t along = view.shape()[1] == 1 ? 0 : 1;
    if (view.shape()[1 - along] != 1) return view;
    return {view.data(), {view.shape()[along]}, {view.strides()[along]}};
  }
};
/// An argument as what it enters as: itself, where it has the host type.
template <class P, class H>
decltype(auto) entering(const H& h) {
  if constexpr (std::same_as<H, host_in<P>>)
    return (h);
  else
    return Argument<P>::entering(h);
}
/// The parameter itself: what an argument in braces makes.
template <class P>
struct Braces {
  using type = host_in<P>;
};
template <class T>
struct Braces<Rep<Array<T>>> {
  using type = ElementsIn<T>;
};

template <class Params>
struct Parameters;
template <class... P>
struct Parameters<std::tuple<P...>> {
  template <class... A>
  static constexpr bool take() {
    if constexpr (sizeof...(A) == sizeof...(P)) return (Argument<P>::template takes<A> && ...);
    return false;
  }
  /// "(double, std::span<const double>)"
  static constexpr void write(Draft& draft) {
    draft << "(";
    std::size_t n = 0;
    ((draft << (n++ == 0 ? "" : ", "), write_name<host_in<P>>(draft)), ...);
    draft << ")";
  }
  /// Which of as many arguments does not fit.
  template <class... A>
  static constexpr void write_wrong_argument(Draft& draft) {
    std::size_t n = 0;
    bool found = false;
    const auto see = [&]<class Q, class H>(std::type_identity<Q>, std::type_identity<H>) {
      ++n;
      if (found || Argument<Q>::template takes<H>) return;
      found = true;
      draft << "; argument " << n << " is a ";
      write_name<H>(draft);
      write_remedy<Q, H>(draft);
    };
    (see(std::type_identity<P>(), std::type_identity<A>()), ...);
  }

 private:
  template <class Q, class H>
  static constexpr void write_remedy(Draft& draft) {
    if constexpr (RepType<H>) {
      draft << ": inside a program call the function over Reps itself";
    } else if constexpr (RepType<Q>) {
      using T = typename Q::value_type;
      if constexpr (ScalarElement<T> && std::is_arithmetic_v<H>) {
        draft << ", whose fraction would be lost: write static_cast<";
        write_name<T>(draft);
        draft << ">(x)";
      } else if constexpr (Traits<T>::tensor) {
        using E = typename Traits<T>::element;
        if constexpr (requires(const H& h) { h.eval(); }) {
          draft << ": it is an expression; write (...).eval()";
        } else if constexpr (RowOf<H, E>) {
          draft << ": its shape is not known; write ";
          write_name<TensorView<const E>>(draft);
          draft << "(v.data(), {rows, columns})";
        }
      }
    }
  }
};

template <class Self>
constexpr void write_function_name(Draft& draft) {
  if constexpr (requires { Self::id(); })
    draft << Self::id();
  else
    draft << "the function";
}
inline constexpr void write_got(Draft& draft, std::size_t n) {
  draft << ", got " << n << (n == 1 ? " argument" : " arguments");
}
/// "df takes (std::span<const double>, double); argument 1 is a std::vector<float>"
template <class Self, class Params, class... A>
struct WrongCall {
  constexpr void operator()(Draft& draft) const {
    write_function_name<Self>(draft);
    draft << " takes ";
    Parameters<Params>::write(draft);
    if constexpr (sizeof...(A) != std::tuple_size_v<Params>)
      write_got(draft, sizeof...(A));
    else
      Parameters<Params>::template write_wrong_argument<A...>(draft);
  }
};

/// What owns or refers to a tensor's elements and is a target as a view of them is: ViewOf<Out>::of(out).
template <class Target>
struct ViewOf {};

/// The results of a function, one by one. Each has a target.
template <class R>
using parts_of = std::conditional_t<TupleType<R>, R, std::tuple<R>>;
/// Whether a result may be written to a variable: what holds an array or tensor has elements of its type.
template <class R, class Out>
constexpr bool is_target() {
  if constexpr (RepType<R>) {
    using T = typename R::value_type;
    if constexpr (Traits<T>::tensor)
      return requires(Out& out) {
        { out.data() } -> std::convertible_to<typename Traits<T>::element*>;
        out.size();
      } || std::convertible_to<Out&, TensorView<typename Traits<T>::element>> || requires(Out& out) {
        { ViewOf<std::remove_const_t<Out>>::of(out) } -> std::same_as<TensorView<typename Traits<T>::element>>;
      };
    else
      return std::assignable_from<std::remove_cvref_t<Out>&, T>;
  } else {
    return true;
  }
}
/// The arguments of `into`: a target for each result, then the arguments of the call.
template <class R, class Params>
struct Targets {
  using Parts = parts_of<R>;
  static constexpr std::size_t outs = std::tuple_size_v<Parts>;

  template <class... A>
  static constexpr bool take() {
    if constexpr (sizeof...(A) == outs + std::tuple_size_v<Params>)
      return [&]<std::size_t... O, std::size_t... I>(std::index_sequence<O...>, std::index_sequence<I...>) {
        using All = std::tuple<A...>;
        return (is_target<std::tuple_element_t<O, Parts>, std::remove_reference_t<std::tuple_element_t<O, All>>>() &&
                ...) &&
               Parameters<Params>::template take<std::remove_cvref_t<std::tuple_element_t<outs + I, All>>...>();
      }
    (std::make_index_sequence<outs>{}, std::make_index_sequence<std::tuple_size_v<Params>>{});
    else
      return false;
  }
};
/// "df.into takes (std::vector<double>), then (std::span<const double>, double); target 1 is a std::vector<float>"
template <class Self, class R, class Params, class... A>
struct WrongTargets {
  using Parts = parts_of<R>;
  static constexpr std::size_t outs = std::tuple_size_v<Parts>;

  constexpr void operator()(Draft& draft) const {
    write_function_name<Self>(draft);
    draft << ".into takes a target for each result, (";
    [&]<std::size_t... O>(std::index_sequence<O...>) {
      ((draft << (O == 0 ? "" : ", "), write_name<host_out<std::tuple_element_t<O, Parts>>>(draft)), ...);
    }
    (std::make_index_sequence<outs>{});
    draft << "), then the arguments, ";
    Parameters<Params>::write(draft);
    if constexpr (sizeof...(A) != outs + std::tuple_size_v<Params>)
      write_got(draft, sizeof...(A));
    else
      write_wrong(draft, std::make_index_sequence<outs>{}, std::make_index_sequence<std::tuple_size_v<Params>>{});
  }

 private:
  template <std::size_t... O, std::size_t... I>
  static constexpr void write_wrong(Draft& draft, std::index_sequence<O...>, std::index_sequence<I...>) {
    using All = std::tuple<std::remove_reference_t<A>...>;
    bool found = false;
    const auto see = [&]<class Part, class Out>(std::type_identity<Part>, std::type_identity<Out>, std::size_t n) {
      if (found || is_target<Part, Out>()) return;
      found = true;
      draft << "; target " << n << " is a ";
      write_name<Out>(draft);
    };
    (see(std::type_identity<std::tuple_element_t<O, Parts>>(), std::type_identity<std::tuple_element_t<O, All>>(), O + 1),
     ...);
    if (!found)
      Parameters<Params>::template write_wrong_argument<std::remove_const_t<std::tuple_element_t<outs + I, All>>...>(draft);
  }
};

/// The calls of a function of plain C++ types; Self computes what `called` gives for arguments of the host types.
template <class Self, class R, class Params>
class TypedCalls;
template <class Self, class R, class... P>
class TypedCalls<Self, R, std::tuple<P...>> {
 public:
  /// What the program takes and gives, over Reps.
  using ProgramResult = R;
  using ProgramParameters = std::tuple<P...>;

  host_out<R> operator()(const typename Braces<P>::type&... args) const {
    return static_cast<const Self*>(this)->called(args...);
  }
  template <class... A>
    requires(Parameters<std::tuple<P...>>::template take<A...>())
  host_out<R> operator()(const A&... args) const {
    return static_cast<const Self*>(this)->called(entering<P>(args)...);
  }
  template <class... A, Text what = text_if<!Parameters<std::tuple<P...>>::template take<A...>()>(
                            WrongCall<Self, std::tuple<P...>, A...>())>
    requires(!Parameters<std::tuple<P...>>::template take<A...>())
  host_out<R> operator()(const A&...) const LANTERN_DELETED;
};

}  // namespace lantern::core::detail
