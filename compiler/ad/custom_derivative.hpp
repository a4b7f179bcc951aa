// custom_vjp and custom_jvp: a function with the user's own derivative.
#pragma once

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/ad/derivative.hpp"

namespace lantern::core {

namespace detail {

/// Whether convert<To>(From) is there.
template <class To, class From>
constexpr bool converts() {
  if constexpr (std::same_as<To, From>)
    return true;
  else if constexpr (TupleType<To> && TupleType<From>) {
    if constexpr (std::tuple_size_v<To> != std::tuple_size_v<From>)
      return false;
    else
      return []<std::size_t... I>(std::index_sequence<I...>) {
        return (converts<std::remove_cvref_t<std::tuple_element_t<I, To>>,
                         std::remove_cvref_t<std::tuple_element_t<I, From>>>() &&
                ...);
      }
    (std::make_index_sequence<std::tuple_size_v<To>>{});
  } else
    return std::is_constructible_v<To, const From&>;
}

template <class F, class... A>
using result_of = std::remove_cvref_t<std::invoke_result_t<const F&, A&...>>;

/// A function f with a rule, of which `parts` has f and more.
template <class Parts, class Value, class... P>
class Ruled {
 public:
  Ruled(Parts parts, const char* what, Location loc) : parts_(kept(std::move(parts))), what_(what), loc_(loc) {}
  std::string name() const { return name_of(parts_->f); }

 protected:
  using Call = TypedCall<Value, P...>;
  /// A call by a rule that so far has f alone; `complete` adds to it what shares the call.
  template <class Complete>
  Value call(const Complete& complete, const P&... p) const {
    const auto call = std::make_shared<Call>(p...);
    const auto rule = std::make_shared<ad::Rule>();
    rule->name = name();
    rule->what = what_;
    rule->primal = [parts = parts_, call](const Datums& in) { return (*call)(parts->f, in); };
    complete(*rule, call);
    const Datums results = ad::call_with_rule(rule, flatten(std::tie(p...)), loc_);
    return rebuild(*call->value, results);
  }

  std::shared_ptr<const Parts> parts_;

 private:
  const char* what_;
  Location loc_;
};

/// All but the first component of a tuple or pair, lifted to Reps.
template <class T>
struct Residual;
template <class Y, class... R>
struct Residual<std::tuple<Y, R...>> {
  using type = std::tuple<lifted_t<R>...>;
};
template <class Y, class R>
struct Residual<std::pair<Y, R>> {
  using type = std::tuple<lifted_t<R>>;
};

template <class F, class Forward, class Backward>
struct VjpParts {
  F f;
  Forward forward;
  Backward backward;
};
template <class F, class Forward, class Backward, class Params = typename FunctionTraits<F>::Params>
class CustomVjp;
template <class F, class Forward, class Backward, class... P>
class CustomVjp<F, Forward, Backward, std::tuple<P...>>
    : public Ruled<VjpParts<F, Forward, Backward>, typename FunctionTraits<F>::Result, P...> {
  using Value = typename FunctionTraits<F>::Result;
  using Derivative = typename Selected<AllFloating, std::tuple<P...>>::type;
  static constexpr bool takes_arguments = std::is_invocable_v<const Forward&, P&...>;
  static_assert(takes_arguments, "custom_vjp: expected fwd to take the arguments of f");
  using Pair = typename std::conditional_t<takes_arguments, std::invoke_result<const Forward&, P&...>,
                                           std::type_identity<std::tuple<Value>>>::type;
  static constexpr bool gives_value = [] {
    if constexpr (TupleType<Pair>)
      return converts<Value, std::remove_cvref_t<std::tuple_element_t<0, Pair>>>();
    else
      return false;
  }();
  static_assert(gives_value, "custom_vjp: expected fwd to give a tuple of the result of f and the residuals");
  using Residuals =
      typename Residual<std::conditional_t<gives_value, std::remove_cvref_t<Pair>, std::tuple<Value>>>::type;
  static constexpr bool takes_residuals = []<class... R>(std::type_identity<std::tuple<R...>>) {
    return std::is_invocable_v<const Backward&, R&..., Value&>;
  }(std::type_identity<Residuals>{});
  static_assert(
      takes_residuals || !gives_value,
      "custom_vjp: expected bwd to take the residuals that fwd gives and the cotangent of the result");

 public:
  using CustomVjp::Ruled::Ruled;
  Value operator()(const P&... p) const {
    const auto complete = [&](ad::Rule& rule, const auto& call) {
      const auto kept_residuals = std::make_shared<Structure<Residuals>>();
      rule.forward = [parts = this->parts_, call, kept_residuals](const Datums& in) -> ad::Rule::Split {
        auto arguments = rebuild(*call->arguments, in);
        const auto all = std::apply(parts->forward, arguments);
        return {call->value.keep(convert<Value>(std::get<0>(all))), kept_residuals->keep(rest_of(all))};
      };
      rule.backward = [parts = this->parts_, call, kept_residuals](const Datums& residuals, const Datums& cotangents) {
        std::span<const Datum> view(cotangents);
        auto all = std::tuple_cat(rebuild(**kept_residuals, residuals),
                                  std::tuple<Value>(shaped_like(*call->value, view)));
        return floating_data(derivative_of(std::apply(parts->backward, all)));
      };
    };
    return this->call(complete, p...);
  }

 private:
  template <class All>
  static Residuals rest_of(const All& all) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Residuals(convert<std::tuple_element_t<I, Residuals>>(std::get<I + 1>(all))...);
    }
    (std::make_index_sequence<std::tuple_size_v<Residuals>>{});
  }
  template <class X>
  static Derivative derivative_of(const X& x) {
    if constexpr (converts<Derivative, X>()) {
      return convert<Derivative>(x);
    } else if constexpr (converts<std::tuple<Derivative>, X>()) {
      return std::get<0>(convert<std::tuple<Derivative>>(x));
    } else {
      static_assert(
          dependent_false<X>,
          "custom_vjp: expected bwd to give the cotangent of the floating argument of f, or a tuple of the "
          "cotangents of its floating arguments in order");
      return {};
    }
  }
};

template <class F, class Tangent>
struct JvpParts {
  F f;
  Tangent tangent;
};
template <class F, class Tangent, class Params = typename FunctionTraits<F>::Params,
          class Tangents = tangents_t<Params>>
class CustomJvp;
template <class F, class Tangent, class... P, class... T>
class CustomJvp<F, Tangent, std::tuple<P...>, std::tuple<T...>>
    : public Ruled<JvpParts<F, Tangent>, typename FunctionTraits<F>::Result, P...> {
  using Value = typename FunctionTraits<F>::Result;
  static constexpr bool takes_tangents = std::is_invocable_v<const Tangent&, P&..., T&...>;
  static_assert(takes_tangents,
                "custom_jvp: expected jvp to take the arguments of f and a tangent of each floating one");
  using Pair = typename std::conditional_t<takes_tangents, std::invoke_result<const Tangent&, P&..., T&...>,
                                           std::type_identity<std::tuple<Value, Value>>>::type;
  static constexpr bool gives_pair = [] {
    if constexpr (TupleType<Pair>)
      return converts<std::tuple<Value, Value>, std::remove_cvref_t<Pair>>();
    else
      return false;
  }();
  static_assert(gives_pair, "custom_jvp: expected jvp to give a tuple of the result of f and its tangent");

 public:
  using CustomJvp::Ruled::Ruled;
  Value operator()(const P&... p) const {
    const auto complete = [&](ad::Rule& rule, const auto& call) {
      rule.tangent = [parts = this->parts_, call](const Datums& in, const Datums& tangents) -> ad::Rule::Split {
        auto arguments = rebuild(*call->arguments, in);
        std::span<const Datum> view(tangents);
        auto all = std::tuple_cat(arguments, for_selected<AllFloating>(arguments, [&]<class Q>(const Q& q) {
                                    return shaped_like(q, view);
                                  }));
        const auto [value, derivative] = convert<std::tuple<Value, Value>>(std::apply(parts->tangent, all));
        return {call->value.keep(value), floating_data(derivative)};
      };
    };
    return this->call(complete, p...);
  }
};

}  // namespace detail

/// f, with a reverse derivative of the user's: `fwd(x...)` gives a tuple {y, residuals...}, and
/// `bwd(residuals..., ybar)` the cotangent of the floating argument, or a tuple of those of the floating
/// arguments in order. ybar has the type of y. What reverse mode runs is fwd and, backward, bwd; f alone runs
/// where nothing is differentiated. The derivative of higher order is that of fwd and bwd. Forward mode
/// multiplies by the transpose of bwd, which has to be linear in ybar. Arguments, results and residuals are
/// any products of Reps; cotangents have the shapes of their arguments.
///
/// Eagerly bwd runs after the frame that called the function has ended: a lambda then captures by value.
/// Every mode follows the rule, also nested in others; hessian<mode::reverse> where arguments and results are
/// scalars. Errors: parts whose arguments or results do not fit (while compiling; shapes while staging or
/// running); a part that captures a value that is being differentiated. Source: Lantern paper 3.2, where an
/// operator is a value and what it adds after its continuation.
template <detail::OverReps F, class Forward, class Backward>
auto custom_vjp(F f, Forward fwd, Backward bwd, std::source_location l = std::source_location::current()) {
  return detail::CustomVjp<F, Forward, Backward>({std::move(f), std::move(fwd), std::move(bwd)}, "custom_vjp",
                                                 here(l));
}
LANTERN_TAKES_FUNCTIONS(custom_vjp, auto, auto)

/// f, with a forward derivative of the user's: `jvp(x..., dx...)` gives a tuple {y, dy}, with one dx per
/// floating argument. Reverse mode multiplies by the transpose of dx -> dy, which has to be linear.
/// Derivatives of higher order meet the rule again, and taylor<k> expands it. Otherwise as custom_vjp.
/// Source: Lantern paper 2.1, where an operator computes its value and its tangent.
template <detail::OverReps F, class Tangent>
auto custom_jvp(F f, Tangent jvp, std::source_location l = std::source_location::current()) {
  return detail::CustomJvp<F, Tangent>({std::move(f), std::move(jvp)}, "custom_jvp", here(l));
}
LANTERN_TAKES_FUNCTIONS(custom_jvp, auto)

}  // namespace lantern::core
