// Derivatives of typed functions: arguments are flattened, the program over them is differentiated, and what comes
// back is given the structure of the arguments or the result. What derivative.hpp's functions return.
#pragma once

#include <array>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "lantern/compiler/ad/modes/modes.hpp"
#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::core::detail {

/// The signature of a function or of a call operator, with or without noexcept.
template <class T>
struct CallTraits;
template <class R, bool quiet, class... A>
struct CallTraits<R (*)(A...) noexcept(quiet)> {
  using Result = lifted_t<R>;
  using Params = std::tuple<std::remove_cvref_t<A>...>;
};
template <class C, class R, bool quiet, class... A>
struct CallTraits<R (C::*)(A...) noexcept(quiet)> : CallTraits<R (*)(A...)> {};
template <class C, class R, bool quiet, class... A>
struct CallTraits<R (C::*)(A...) const noexcept(quiet)> : CallTraits<R (*)(A...)> {};
template <class C, class R, bool quiet, class... A>
struct CallTraits<R (C::*)(A...) const& noexcept(quiet)> : CallTraits<R (*)(A...)> {};

template <class F>
struct FunctionTraits {
  static constexpr bool known = false;
};
template <class R, bool quiet, class... A>
struct FunctionTraits<R (*)(A...) noexcept(quiet)> : CallTraits<R (*)(A...)> {
  static constexpr bool known = true;
};
/// A member function of a struct of Reps, which is its first argument.
template <class C, class R, bool quiet, class... A>
struct FunctionTraits<R (C::*)(A...) const noexcept(quiet)> : CallTraits<R (*)(C, A...)> {
  static constexpr bool known = true;
};
template <class F>
  requires requires { &F::operator(); }
struct FunctionTraits<F> : CallTraits<decltype(&F::operator())> {
  static constexpr bool known = true;
};

template <class F>
constexpr void require_known() {
  static_assert(FunctionTraits<F>::known,
                "the signature of this callable cannot be seen (a generic lambda?): write sig<double(double)>(f)");
}

template <class T>
using IsFloating = std::is_floating_point<typename Traits<T>::element>;
/// Whether a product holds a floating-point Rep.
template <class P>
struct HasFloat : std::bool_constant<any_rep<P, IsFloating>()> {};

template <class F>
std::string name_of(const F& f) {
  if constexpr (requires { { f.name() } -> std::convertible_to<std::string>; }) return f.name();
  else return "f";
}

/// A typed function as a program over flattened data, for arguments of the prototypes' structure: the sizes
/// of vectors of Reps are part of that. `value` gets the structure of the result each time the program is
/// run. It refers to all three.
template <class F>
ad::Program program_of(const F& f, const typename FunctionTraits<F>::Params& prototypes,
                       Structure<typename FunctionTraits<F>::Result>& value) {
  return {name_of(f), [&f, &prototypes, &value](const Datums& data) {
            auto args = rebuild(prototypes, data);
            using R = typename FunctionTraits<F>::Result;
            return value.keep(convert<R>(std::apply(f, args)));
          }};
}
/// The same for arguments and results whose structure is known from their types.
template <class F>
ad::Program program_of(const F& f) {
  using Params = typename FunctionTraits<F>::Params;
  using R = typename FunctionTraits<F>::Result;
  static_assert(countable<Params>() && countable<R>());
  return {name_of(f), [&f](const Datums& data) {
            auto args = rebuild(Params{}, data);
            return flatten(convert<R>(std::apply(f, args)));
          }};
}

/// Positions, mode and form out of the template arguments of grad<...>.
template <auto... O>
struct GradOptions {
  static constexpr mode selected = [] {
    mode m = mode::reverse;
    [[maybe_unused]] const auto see = [&](auto o) {
      if constexpr (std::same_as<decltype(o), mode>) m = o;
    };
    (see(O), ...);
    return m;
  }();
  static constexpr form how = [] {
    form f = default_form(selected);
    [[maybe_unused]] const auto see = [&](auto o) {
      if constexpr (std::same_as<decltype(o), form>) f = o;
    };
    (see(O), ...);
    return f;
  }();
  static_assert((std::size_t{0} + ... + (std::same_as<decltype(O), mode> ? 1 : 0)) <= 1,
                "a derivative is taken by one mode; nest them: grad<mode::taped>(grad<mode::forward>(f))");
  static constexpr std::size_t positions = (std::size_t{0} + ... + (std::is_integral_v<decltype(O)> ? 1 : 0));
  template <class Params>
  static constexpr bool selects(std::size_t i, bool floating) {
    if constexpr (positions == 0) return floating;
    else {
      bool hit = false;
      [[maybe_unused]] const auto see = [&](auto o) {
        if constexpr (std::is_integral_v<decltype(o)>) hit |= static_cast<std::size_t>(o) == i;
      };
      (see(O), ...);
      return hit;
    }
  }
  template <class Params>
  static constexpr bool in_range() {
    bool ok = true;
    [[maybe_unused]] const auto see = [&](auto o) {
      if constexpr (std::is_integral_v<decltype(o)>) ok &= static_cast<std::size_t>(o) < std::tuple_size_v<Params>;
    };
    (see(O), ...);
    return ok;
  }
};

/// The selected argument types, as one type or a tuple.
template <class Options, class Params>
struct Selected;
template <class Options, class... P>
struct Selected<Options, std::tuple<P...>> {
  template <std::size_t... I>
  static auto pick(std::index_sequence<I...>)
      -> decltype(std::tuple_cat(std::conditional_t<Options::template selects<std::tuple<P...>>(I, HasFloat<P>::value),
                                                    std::tuple<P>, std::tuple<>>()...));
  using tuple = decltype(pick(std::index_sequence_for<P...>{}));
  static constexpr std::size_t count = std::tuple_size_v<tuple>;
  static_assert(Options::template in_range<std::tuple<P...>>(), "grad: an argument position is out of range");
  static_assert(count > 0, "grad: no floating-point argument to differentiate with respect to");
  template <class T>
  struct One {
    using type = T;
  };
  template <class T>
  struct One<std::tuple<T>> {
    using type = T;
  };
  using type = typename One<tuple>::type;
};

/// Flattened arguments and which of them are active.
template <class Options, class... P>
void collect(const std::tuple<P...>& args, Datums& data, ad::Active& active) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto one = [&](const auto& p, bool selected) {
      for_each_rep(p, [&](const auto& r) {
        data.push_back(r.datum());
        active.push_back(selected && r.datum().type().is_differentiable());
      });
    };
    (one(std::get<I>(args), Options::template selects<std::tuple<P...>>(I, HasFloat<P>::value)), ...);
  }(std::index_sequence_for<P...>{});
}

/// The selected arguments.
template <class Options, class... P>
auto selection(const std::tuple<P...>& args) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple_cat([&] {
      if constexpr (Options::template selects<std::tuple<P...>>(I, HasFloat<P>::value))
        return std::tuple<const P&>(std::get<I>(args));
      else
        return std::tuple<>();
    }()...);
  }
  (std::index_sequence_for<P...>{});
}

/// Derivatives in the shape of the arguments: floating leaves from `data`, other leaves as they were.
template <class P>
P shaped_like(const P& prototype, std::span<const Datum>& data) {
  P p = prototype;
  for_each_rep(p, [&]<class T>(Rep<T>& r) {
    if constexpr (!std::is_floating_point_v<typename Traits<T>::element>) return;
    r.storage().renew(Rep<T>(data.front()).datum());
    data = data.subspan(1);
  });
  return p;
}
template <class Options, class... P>
auto gradient_result(const std::tuple<P...>& args, std::span<const Datum> data) {
  const auto all = [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto one = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
      using Q = std::tuple_element_t<K, std::tuple<P...>>;
      if constexpr (Options::template selects<std::tuple<P...>>(K, HasFloat<Q>::value))
        return std::tuple<Q>(shaped_like(std::get<K>(args), data));
      else return std::tuple<>();
    };
    // Braces: left to right, since each takes its share of the data.
    std::tuple<decltype(one(std::integral_constant<std::size_t, I>{}))...> parts{
        one(std::integral_constant<std::size_t, I>{})...};
    return std::apply([](auto&&... p) { return std::tuple_cat(p...); }, parts);
  }(std::index_sequence_for<P...>{});
  if constexpr (std::tuple_size_v<std::remove_cvref_t<decltype(all)>> == 1) return std::get<0>(all);
  else return all;
}

template <class F, class Options, bool with_value, class Params = typename FunctionTraits<F>::Params>
class Gradient;
template <class F, class Options, bool with_value, class... P>
class Gradient<F, Options, with_value, std::tuple<P...>> {
  using Derivative = typename Selected<Options, std::tuple<P...>>::type;
  using Value = typename FunctionTraits<F>::Result;

 public:
  Gradient(F f, Location loc) : f_(std::move(f)), loc_(loc) {}
  std::conditional_t<with_value, std::tuple<Value, Derivative>, Derivative> operator()(const P&... p) const {
    const std::tuple<P...> args(p...);
    Datums data;
    ad::Active active;
    collect<Options>(args, data, active);
    Structure<Value> value;
    const Datums out =
        ad::gradient(Options::selected, Options::how, program_of(f_, args, value), data, active, with_value, loc_);
    const std::span<const Datum> derivatives = std::span(out).subspan(with_value ? 1 : 0);
    if constexpr (with_value)
      return {rebuild(*value, Datums{out[0]}), gradient_result<Options>(args, derivatives)};
    else return gradient_result<Options>(args, derivatives);
  }
  std::string name() const { return "grad_" + name_of(f_); }

 private:
  F f_;
  Location loc_;
};

template <class P>
Datums floating_data(const P& p) {
  Datums out;
  for_each_rep(p, [&]<class T>(const Rep<T>& r) {
    if constexpr (std::is_floating_point_v<typename Traits<T>::element>) out.push_back(r.datum());
  });
  return out;
}

/// Every floating argument is active.
using AllFloating = GradOptions<>;

template <class F, class Params = typename FunctionTraits<F>::Params>
class VectorJacobian;
template <class F, class... P>
class VectorJacobian<F, std::tuple<P...>> {
  using Value = typename FunctionTraits<F>::Result;
  using Derivative = typename Selected<AllFloating, std::tuple<P...>>::type;

 public:
  VectorJacobian(F f, Location loc) : f_(std::move(f)), loc_(loc) {}
  std::tuple<Value, Derivative> operator()(const P&... p, const Value& ybar) const {
    const std::tuple<P...> args(p...);
    Datums data;
    ad::Active active;
    collect<AllFloating>(args, data, active);
    const Datums seeds = floating_data(ybar);
    Structure<Value> value;
    const Datums out = ad::vjp(program_of(f_, args, value), data, active, &seeds, true, loc_);
    std::span<const Datum> view(out);
    Value result = rebuild(*value, view);
    return {std::move(result), gradient_result<AllFloating>(args, view)};
  }
  std::string name() const { return "vjp_" + name_of(f_); }

 private:
  F f_;
  Location loc_;
};

/// The tangents of floating arguments, one after the other.
template <class... T>
Datums tangent_data(const T&... dp) {
  Datums all;
  const auto add = [&](const Datums& some) { all.insert(all.end(), some.begin(), some.end()); };
  (add(floating_data(dp)), ...);
  return all;
}

template <class P>
using tangent_params = std::conditional_t<HasFloat<P>::value, std::tuple<P>, std::tuple<>>;

template <class F, class Params, class Tangents>
class JacobianVector;
template <class F, class... P, class... T>
class JacobianVector<F, std::tuple<P...>, std::tuple<T...>> {
  using Value = typename FunctionTraits<F>::Result;

 public:
  JacobianVector(F f, Location loc) : f_(std::move(f)), loc_(loc) {}
  std::tuple<Value, Value> operator()(const P&... p, const T&... dp) const {
    const std::tuple<P...> args(p...);
    Datums data;
    ad::Active active;
    collect<AllFloating>(args, data, active);
    Structure<Value> value;
    const Datums out = ad::jvp(program_of(f_, args, value), data, active, tangent_data(dp...), loc_);
    std::span<const Datum> view(out);
    const Value result = rebuild(*value, view);
    return {result, shaped_like(result, view)};
  }
  std::string name() const { return "jvp_" + name_of(f_); }

 private:
  F f_;
  Location loc_;
};

template <int order, class F, class Params, class Tangents>
class Taylor;
template <int order, class F, class... P, class... T>
class Taylor<order, F, std::tuple<P...>, std::tuple<T...>> {
  using Value = typename FunctionTraits<F>::Result;

 public:
  Taylor(F f, Location loc) : f_(std::move(f)), loc_(loc) {}
  std::array<Value, order + 1> operator()(const P&... p, const T&... dp) const {
    const std::tuple<P...> args(p...);
    Datums data;
    ad::Active active;
    collect<AllFloating>(args, data, active);
    Structure<Value> value;
    const std::vector<Datums> series =
        ad::taylor(program_of(f_, args, value), data, active, tangent_data(dp...), order, loc_);
    std::array<Value, order + 1> out;
    out[0] = rebuild(*value, series[0]);
    for (std::size_t k = 1; k < out.size(); ++k) {
      std::span<const Datum> view(series[k]);
      out[k] = shaped_like(out[0], view);
    }
    return out;
  }
  std::string name() const { return "taylor_" + name_of(f_); }

 private:
  F f_;
  Location loc_;
};

template <class F, class X>
class ReverseHessian {
  using T = typename Traits<typename X::value_type>::element;

 public:
  ReverseHessian(F f, Location loc) : f_(std::move(f)), loc_(loc) {}
  Rep<Tensor<T>> operator()(const X& x) const {
    if (Staging* s = ad::staging_in_progress())
      return Rep<Tensor<T>>(ad::staged_hessian_by_reverse(*s, program_of(f_), x.datum(), loc_));
    const ad::SecondOrder all = ad::hessian_by_reverse(program_of(f_), {x.datum()}, {true}, loc_);
    const auto n = static_cast<std::int64_t>(all.hessian.size());
    const Datum size = Datum::integer(n, ir::I64);
    Datum matrix = perform({Opcode::fill_, 0, loc_}, {Datum::zero(TypeOf<T>::get()), size, size});
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const Datum& entry = all.hessian[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
        matrix = perform({Opcode::set_, 0, loc_},
                         {matrix, Datum::integer(i, ir::I64), Datum::integer(j, ir::I64), entry});
      }
    return Rep<Tensor<T>>(matrix);
  }

 private:
  F f_;
  Location loc_;
};

template <class F, class Sig>
class Signed;
template <class F, class R, class... A>
class Signed<F, R(A...)> {
 public:
  explicit Signed(F f) : f_(std::move(f)) {}
  rep_t<R> operator()(const rep_t<A>&... a) const { return convert<rep_t<R>>(f_(a...)); }

 private:
  F f_;
};

}  // namespace lantern::core::detail
