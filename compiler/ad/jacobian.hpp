// jacobian and hessian: matrices of derivatives.
#pragma once

#include <optional>

#include "lantern/compiler/ad/derivative.hpp"

namespace lantern {

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

/// The derivative of a result Y by an argument X.
template <class Y, class X>
struct DerivativeOf {
  static_assert(dependent_false<Y>,
                "jacobian: expected floating scalars, arrays and tensors, and tuples of those as the result");
  using type = Y;
};
template <class S, class T>
requires(FloatElement<typename Traits<S>::element>&&
             FloatElement<typename Traits<T>::element>) struct DerivativeOf<Rep<S>, Rep<T>> {
  static constexpr bool rows = Traits<S>::tensor, columns = Traits<T>::tensor;
  using Matrix = Rep<Tensor<typename Traits<S>::element>>;
  using type = std::conditional_t<rows && columns, Matrix, std::conditional_t<columns, Rep<T>, Rep<S>>>;
};
/// One argument: its derivative; several: a tuple.
template <class Y, class Xs>
struct DerivativesOf;
template <RepType Y, class X>
struct DerivativesOf<Y, std::tuple<X>> {
  using type = typename DerivativeOf<Y, X>::type;
};
template <RepType Y, class X, class X2, class... More>
struct DerivativesOf<Y, std::tuple<X, X2, More...>> {
  using type = std::tuple<typename DerivativeOf<Y, X>::type, typename DerivativeOf<Y, X2>::type,
                          typename DerivativeOf<Y, More>::type...>;
};
template <class... Y, class Xs>
struct DerivativesOf<std::tuple<Y...>, Xs> {
  using type = std::tuple<typename DerivativesOf<Y, Xs>::type...>;
};

template <class F, class Options, class Params = typename FunctionTraits<F>::Params>
class Jacobian;
template <class F, class Options, class... P>
class Jacobian<F, Options, std::tuple<P...>> {
  using Value = typename FunctionTraits<F>::Result;
  using Result = typename DerivativesOf<Value, typename Selected<Options, std::tuple<P...>>::tuple>::type;

 public:
  Jacobian(F f, Location loc) : f_(std::move(f)), loc_(loc) {}
  Result operator()(const P&... p) const {
    const std::tuple<P...> args(p...);
    Datums data, all;
    ad::Active active;
    collect<Options>(args, data, active);
    Value value{};
    for (const Datums& row : ad::jacobian(program_of(f_, args, value), data, active, Options::how, loc_))
      all.insert(all.end(), row.begin(), row.end());
    return rebuild(Result{}, all);
  }
  std::string name() const { return "jacobian_" + name_of(f_); }

 private:
  F f_;
  Location loc_;
};

}  // namespace detail

/// The derivative of each result of f by each floating argument: jacobian<0, 2>(f) by those positions.
/// Results and arguments are scalars, arrays and tensors; f may give a tuple. The shape of a derivative is
/// that of the result, followed by that of the argument: from an array of n elements to one of m it is an
/// m-by-n matrix, from a tensor to a scalar it has the shape of the tensor, from a p-by-q matrix to an array
/// of m elements it is m by p by q. Several arguments give a tuple, for every result.
///
/// Forward mode takes one pass per element of the arguments, reverse mode one per element of the results: the
/// one with fewer is chosen, or named: jacobian<mode::forward>(f), jacobian<mode::reverse>(f). Compiled code
/// whose sizes are arguments holds both. Errors: results that are not floating, or of another type than the
/// arguments.
template <auto... O, class F>
auto jacobian(F f, std::source_location l = std::source_location::current()) {
  detail::require_known<F>();
  return detail::Jacobian<F, detail::JacobianOptions<O...>>(std::move(f), here(l));
}

/// hessian(f)(x): the n-by-n matrix of second derivatives of a scalar function of one array, by forward over
/// reverse mode, one pass per column. Of a tensor: its shape twice. Of several arguments: their blocks, as
/// the Jacobian of the gradient has them.
template <class F>
auto hessian(F f, std::source_location l = std::source_location::current()) {
  return jacobian<mode::forward>(grad(std::move(f), l), l);
}

}  // namespace lantern
