// jacobian and hessian: matrices of derivatives.
#pragma once

#include <optional>

#include "lantern/compiler/ad/derivative.hpp"
#include "lantern/compiler/staging/mapped.hpp"

namespace lantern::core {

namespace ad {

/// The derivative of every result of a program by every active argument, one list per result: of the shape of
/// the result, followed by that of the argument. Forward mode takes one pass per element of the arguments,
/// reverse mode one per element of the results; without `how`, whichever takes fewer, forward mode where they
/// are equal. Where the sizes show only when the program runs, the choice is made then.
std::vector<Datums> jacobian(const Program& program, const Datums& arguments, const Active& active,
                           std::optional<mode> how, const Location& loc);

}  // namespace ad

namespace detail {

/// Positions, and a mode or none, out of the template arguments of jacobian<...>.
template <auto... O>
struct JacobianOptions : GradOptions<O...> {
  static constexpr bool chosen = (std::same_as<decltype(O), mode> || ...);
  static constexpr std::optional<mode> how =
      chosen ? std::optional<mode>(GradOptions<O...>::selected) : std::optional<mode>();
  static_assert(!chosen || GradOptions<O...>::selected == mode::forward ||
                    GradOptions<O...>::selected == mode::reverse,
                "jacobian: expected mode::forward or mode::reverse");
};

template <class R>
inline constexpr bool is_floating_rep = IsFloating<typename R::value_type>::value;

/// What represents a number, array or tensor of an argument in the derivative of one of the result. What is
/// not floating stays as it is.
template <class Y>
struct ByLeaf {
  using S = typename Y::value_type;
  using Matrix = Rep<Tensor<typename Traits<S>::element>>;
  template <class X, class T = typename X::value_type>
  using apply = std::conditional_t<!is_floating_rep<X>, X,
                                   std::conditional_t<Traits<S>::tensor && Traits<T>::tensor, Matrix,
                                                      std::conditional_t<Traits<T>::tensor, X, Y>>>;
};
/// What represents a number, array or tensor of the result: the arguments' structure, of one argument without
/// a tuple.
template <class Xs>
struct OfLeaf;
template <class... X>
struct OfLeaf<std::tuple<X...>> {
  template <class Y>
  struct ByAll {
    using type = std::tuple<mapped_t<X, ByLeaf<Y>>...>;
  };
  template <class Y>
  requires(sizeof...(X) == 1) struct ByAll<Y> {
    using type = std::tuple_element_t<0, std::tuple<mapped_t<X, ByLeaf<Y>>...>>;
  };
  template <class Y>
  using apply = typename std::conditional_t<is_floating_rep<Y>, ByAll<Y>, std::type_identity<Y>>::type;
};

/// How a derivative is given to the caller. A vector of vectors of another library becomes a matrix of it (eigen.hpp).
template <class D>
struct DerivativeOf {
  static D of(D d) { return d; }
};

template <class F, class Options, class Params = typename FunctionTraits<F>::Params>
class Jacobian;
template <class F, class Options, class... P>
class Jacobian<F, Options, std::tuple<P...>> : public Derived<F> {
  using Value = typename FunctionTraits<F>::Result;
  static_assert(
      HasFloat<Value>::value,
      "jacobian: expected floating scalars, arrays and tensors, and products of those as the result");
  using Arguments = typename Selected<Options, std::tuple<P...>>::tuple;
  using Result = mapped_t<Value, OfLeaf<Arguments>>;

 public:
  using Derived<F>::Derived;
  auto operator()(const P&... p) const {
    const ActiveArguments<Options, P...> in(p...);
    std::optional<Value> value;  // of the first run, which is on the arguments themselves
    const auto run = [&](const Datums& data) {
      auto arguments = rebuild(in.args, data);
      const Value y = convert<Value>(std::apply(this->f_, arguments));
      if (!value) value.emplace(y);
      return floating_data(y);
    };
    Datums all;
    for (const Datums& row :
         ad::jacobian({name_of(this->f_), run}, in.data, in.active, Options::how, this->loc_))
      all = ad::joined(std::move(all), row);
    std::span<const Datum> next(all);
    Result result{};
    map_onto(result, *value, [&]<class D, class Y>(D& derivative, const Y& y) {
      if constexpr (is_floating_rep<Y>)
        fill_one(derivative, in.args, next);
      else
        derivative = y;
    });
    return DerivativeOf<Result>::of(std::move(result));
  }

 private:
  /// The derivatives of one number, array or tensor of the result.
  template <class D>
  static void fill_one(D& derivatives, const std::tuple<P...>& args, std::span<const Datum>& next) {
    const auto take = [&]<class T, class X>(Rep<T>& derivative, const X& x) {
      if constexpr (is_floating_rep<X>) {
        derivative = Rep<T>(next.front());
        next = next.subspan(1);
      } else {
        derivative = x;
      }
    };
    const auto selected = for_selected<Options>(args, []<class Q>(const Q& q) -> const Q& { return q; });
    if constexpr (std::tuple_size_v<Arguments> == 1)
      map_onto(derivatives, std::get<0>(selected), take);
    else
      map_onto(derivatives, selected, take);
  }
};

}  // namespace detail

/// The derivative of each result of f by each floating argument: jacobian<0, 2>(f) by those positions.
///
/// It has the structure of the result, with the structure of the argument in place of each number, array and
/// tensor; of several arguments, with a tuple of their structures. Derivatives of one number by one argument,
/// a struct, are the struct that grad(f) gives; of a struct P by an array p: P<Rep<Array<double>>>; of a P by
/// a Q: P<Q<Rep<double>>>. Structs that are no templates, or whose members do not follow the template's
/// argument, become tuples of their members where types change. The shape of the derivative of an array or
/// tensor is that of the result, followed by that of the argument: from an array of n elements to one of m it
/// is an m-by-n matrix, from a tensor to a scalar it has the shape of the tensor, from a p-by-q matrix to an
/// array of m elements it is m by p by q. What is not floating stays as it is.
///
/// Forward mode takes one pass per element of the arguments, reverse mode one per element of the results: the
/// one with fewer is chosen, or named: jacobian<mode::forward>(f), jacobian<mode::reverse>(f). Compiled code
/// whose sizes are arguments holds both. Errors: results without floating numbers, or of another floating
/// type than the arguments.
template <auto... O, class F>
  requires detail::Takes<F, detail::TemplateArguments::positions_and_mode, O...>
auto jacobian(F f, std::source_location l = std::source_location::current()) {
  return detail::Jacobian<F, detail::JacobianOptions<O...>>(std::move(f), "jacobian_", here(l));
}
LANTERN_TAKES_OPTIONS(jacobian, positions_and_mode)

/// hessian(f)(x): the n-by-n matrix of second derivatives of a scalar function of one array, by forward over
/// reverse mode, one pass per column. Of a tensor: its shape twice. Of several arguments, and of products:
/// their blocks, as the Jacobian of the gradient has them: of a struct P: P<P<Rep<double>>>, h.a.b for d2f /
/// da db. hessian<0, 2>(f): by those positions.
template <auto... positions, class F>
  requires(detail::Takes<F, detail::TemplateArguments::positions_or_reverse, positions...> &&
           (std::integral<decltype(positions)> && ...))
auto hessian(F f, std::source_location l = std::source_location::current()) {
  return jacobian<mode::forward, positions...>(grad<positions...>(std::move(f), l), l);
}

}  // namespace lantern::core
