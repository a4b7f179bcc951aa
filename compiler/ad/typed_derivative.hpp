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
  static constexpr bool known = true;
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
struct FunctionTraits<R (*)(A...) noexcept(quiet)> : CallTraits<R (*)(A...)> {};
/// A member function of a struct of Reps, which is its first argument.
template <class C, class R, bool quiet, class... A>
struct FunctionTraits<R (C::*)(A...) const noexcept(quiet)> : CallTraits<R (*)(C, A...)> {};
template <class C, class R, bool quiet, class... A>
struct FunctionTraits<R (C::*)(A...) const& noexcept(quiet)> : CallTraits<R (*)(C, A...)> {};
template <class F>
  requires requires { &F::operator(); }
struct FunctionTraits<F> : CallTraits<decltype(&F::operator())> {};

/// Numbers of C++, pointers, and rows of numbers.
template <class P>
concept PlainNumbers =
    std::is_pointer_v<P> || std::is_arithmetic_v<P> ||
    (requires { requires std::is_arithmetic_v<typename P::value_type>; } && requires(const P& p) { std::data(p), std::size(p); });
template <class P>
inline constexpr bool plain_parameter = false;
template <class... P>
inline constexpr bool plain_parameter<std::tuple<P...>> = (PlainNumbers<P> || ...);
/// A function whose parameters are seen and are no plain numbers of C++, and that has a result.
template <class F>
concept OverReps = FunctionTraits<F>::known && !plain_parameter<typename FunctionTraits<F>::Params> &&
                   !std::is_void_v<typename FunctionTraits<F>::Result>;

/// Why a callable is no function over Reps.
template <class F>
struct WhyNotOverReps {
  constexpr void operator()(Draft& draft) const {
    if constexpr (RepType<F> || std::is_arithmetic_v<F>) {
      draft << "expected a function, got its value: write f for f(x)";
    } else if constexpr (!FunctionTraits<F>::known && std::is_member_function_pointer_v<F>) {
      draft << "a member function that is not const may change its object, and is no function over Reps: keep the struct "
               "outside, and write a lambda over it, [&](Rep<double> x) { return s.f(x); }; or, where all members are Reps, "
               "write const behind its parameters";
    } else if constexpr (!FunctionTraits<F>::known) {
      draft << "the signature of this callable cannot be seen (a generic lambda?): write sig<double(double)>(f)";
    } else if constexpr (std::is_void_v<typename FunctionTraits<F>::Result>) {
      draft << "the function returns nothing: a function over Reps returns what it computes; several values as a "
               "std::tuple";
    } else {
      write_plain(draft, std::type_identity<typename FunctionTraits<F>::Params>());
      draft << ", which has a value only when the program runs";
    }
  }

 private:
  template <class... P>
  static constexpr void write_plain(Draft& draft, std::type_identity<std::tuple<P...>>) {
    std::size_t number = 0, found = 0;
    const auto see = [&]<class Q>(std::type_identity<Q>) {
      ++number;
      if (!PlainNumbers<Q> || found != 0) return;
      found = number;
      draft << "write the function over Reps, for example Rep<double> f(Rep<"
            << (std::is_arithmetic_v<Q> ? "double" : "Array<double>") << "> x): parameter " << number << " is a ";
      write_name<Q>(draft);
    };
    (see(std::type_identity<P>()), ...);
  }
};

/// Says why `name` does not take what it is given: a callable that is no function over Reps, with further parameters
/// of these types, or the name of several functions or of a template.
#define LANTERN_TAKES_FUNCTION_OVER_REPS(name, ...)                                                                  \
  template <auto... O, class F,                                                                                      \
            ::lantern::core::Text what = detail::text_if<!detail::OverReps<F>>(detail::WhyNotOverReps<F>())>         \
    requires(!detail::OverReps<F>)                                                                                   \
  Told<what> name(F __VA_OPT__(, ) __VA_ARGS__) LANTERN_DELETED;                                                     \
  template <auto... O>                                                                                               \
  Told<"write ::f if Lantern has an f, too, f<Rep<double>> if f is a template, or a lambda that calls "    \
       "the one you mean, [](Rep<double> x) { return f(x); }: several functions have this name, or it is a template"> \
  name(...) LANTERN_DELETED;
/// Says that the arguments of what `name` makes do not belong beside its function.
#define LANTERN_TAKES_NO_ARGUMENTS(name)                                                                             \
  template <auto... O, detail::OverReps F, class First, class... More>                                               \
  Told<#name ": expected a function, and not its arguments, which follow in parentheses of their own: " #name        \
             "(f)(x)">                                                                                               \
  name(F, const First&, const More&...) LANTERN_DELETED;
/// The same as LANTERN_TAKES_FUNCTION_OVER_REPS for a name that takes nothing between < and >, and further functions.
#define LANTERN_TAKES_FUNCTIONS(name, ...)                                                                           \
  template <auto first, auto... O, detail::OverReps F>                                                               \
  Told<#name ": expected nothing between < and >, only a function between ( and )"> name(F __VA_OPT__(, ) __VA_ARGS__) \
      LANTERN_DELETED;                                                                                               \
  LANTERN_TAKES_FUNCTION_OVER_REPS(name __VA_OPT__(, ) __VA_ARGS__)
/// The same for a name that takes one function.
#define LANTERN_TAKES_ONE_FUNCTION(name, ...)                                                                        \
  LANTERN_TAKES_NO_ARGUMENTS(name)                                                                                   \
  LANTERN_TAKES_FUNCTIONS(name __VA_OPT__(, ) __VA_ARGS__)
/// The same for one that takes what `options`, a TemplateArguments, says.
#define LANTERN_TAKES_OPTIONS(name, options)                                                                         \
  template <auto... O, detail::OverReps F,                                                                           \
            ::lantern::core::Text what =                                                                             \
                detail::text_if<detail::OverReps<F> && !detail::Takes<F, detail::TemplateArguments::options, O...>>( \
                    detail::WhyNotTaken<#name, F, detail::TemplateArguments::options, O...>())>                      \
    requires(!detail::Takes<F, detail::TemplateArguments::options, O...>)                                            \
  Told<what> name(F) LANTERN_DELETED;                                                                                \
  template <class T, class... Ts, detail::OverReps F>                                                                \
  Told<detail::text_of(detail::TypeNotTaken<#name, detail::TemplateArguments::options>())> name(F) LANTERN_DELETED;  \
  LANTERN_TAKES_NO_ARGUMENTS(name)                                                                                   \
  LANTERN_TAKES_FUNCTION_OVER_REPS(name)

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

/// Runs a typed function on flattened arguments, where the types tell the structure of arguments and results.
template <class F>
Datums run_typed(const F& f, const Datums& data) {
  using Params = typename FunctionTraits<F>::Params;
  using R = typename FunctionTraits<F>::Result;
  static_assert(countable<Params>() && countable<R>());
  auto args = rebuild(Params{}, data);
  return flatten(convert<R>(std::apply(f, args)));
}

template <class F>
Datums run_by_types(const ad::Untyped& u, const Datums& data) {
  return run_typed(*static_cast<const F*>(u.function), data);
}
template <class F>
Datums run_by_prototypes(const ad::Untyped& u, const Datums& data) {
  using R = typename FunctionTraits<F>::Result;
  auto args = rebuild(*static_cast<const typename FunctionTraits<F>::Params*>(u.prototypes), data);
  return static_cast<Structure<R>*>(u.value)->keep(convert<R>(std::apply(*static_cast<const F*>(u.function), args)));
}

/// A typed function as a program over flattened data, for arguments of the prototypes' structure: the sizes
/// of vectors of Reps are part of that. `value` gets the structure of the result each time the program is
/// run. It refers to all three.
template <class F>
ad::Program program_of(const F& f, const typename FunctionTraits<F>::Params& prototypes,
                       Structure<typename FunctionTraits<F>::Result>& value) {
  return ad::untyped_program(name_of(f), {&f, &prototypes, &value, &run_by_prototypes<F>});
}
/// A typed function as a program over flattened data, whose types tell the structure of arguments and results. It refers to
/// the function.
template <class F>
ad::Program program_of(const F& f) {
  return ad::untyped_program(name_of(f), {&f, nullptr, nullptr, &run_by_types<F>});
}

/// A call of a typed function that may be made again, when the frame that made it has ended: the structure of its
/// arguments (the sizes of vectors of Reps), and that of its result once it has been made.
template <class Value, class... P>
struct TypedCall {
  explicit TypedCall(const P&... p) : arguments(std::tuple<P...>(p...)) {}
  template <class F>
  Datums operator()(const F& f, const Datums& in) {
    auto args = rebuild(*arguments, in);
    return value.keep(convert<Value>(std::apply(f, args)));
  }
  Structure<std::tuple<P...>> arguments;
  Structure<Value> value;
};

/// The option of type T among the template arguments of grad<...>.
template <class T>
constexpr T option(T otherwise, auto... options) {
  [[maybe_unused]] const auto see = [&](auto o) {
    if constexpr (std::same_as<decltype(o), T>) otherwise = o;
  };
  (see(options), ...);
  return otherwise;
}

/// Positions, mode and form out of those.
template <auto... O>
struct GradOptions {
  static constexpr mode selected = option(mode::reverse, O...);
  static constexpr form how = option(default_form(selected), O...);
  static constexpr std::size_t positions = (std::size_t{0} + ... + (std::is_integral_v<decltype(O)> ? 1 : 0));
  static constexpr bool selects(std::size_t i, bool floating) {
    return positions == 0 ? floating
                          : ((std::is_integral_v<decltype(O)> && static_cast<std::size_t>(O) == i) || ...);
  }
};
/// Every floating argument is selected.
using AllFloating = GradOptions<>;

/// What a derivative's name takes between < and >.
enum class TemplateArguments {
  positions,                     ///< of arguments with floating-point numbers
  positions_and_mode,            ///< those, a mode and a form
  positions_of_any_arguments,    ///< of any arguments
  position,                      ///< of one argument
  positions_or_reverse,          ///< positions, or mode::reverse alone
  order                          ///< a number of derivatives
};

/// What belongs between < and > of `name`.
template <Text name, TemplateArguments kind, class Draft>
constexpr void write_expected(Draft& draft) {
  draft << name.data << ": expected ";
  switch (kind) {
    case TemplateArguments::positions:
      draft << "positions of arguments, as " << name.data << "<0, 2>(f)";
      break;
    case TemplateArguments::positions_and_mode:
      draft << "positions of arguments, a mode or both, as " << name.data << "<mode::forward, 0>(f)";
      break;
    case TemplateArguments::positions_of_any_arguments:
      draft << "positions of arguments, as " << name.data << "<0, 2>(f)";
      break;
    case TemplateArguments::position: draft << "the position of one argument, as " << name.data << "<1>(f)"; break;
    case TemplateArguments::positions_or_reverse:
      draft << "positions of arguments or mode::reverse, as " << name.data << "<0, 2>(f)";
      break;
    case TemplateArguments::order: draft << "an order, as " << name.data << "<2>(f)"; break;
  }
}

/// Says what is wrong with the template arguments O of `name` for a function; nothing where they are right.
template <Text name, class F, TemplateArguments kind, auto... O>
struct WhyNotTaken {
  template <class Draft>
  constexpr void operator()(Draft& draft) const {
    see(draft, std::type_identity<typename FunctionTraits<F>::Params>());
  }

 private:
  template <class T>
  static constexpr bool is_number = std::is_integral_v<T> && !std::same_as<T, bool>;
  static constexpr bool with_mode =
      kind == TemplateArguments::positions_and_mode || kind == TemplateArguments::positions_or_reverse;
  static constexpr std::size_t modes = (std::size_t{0} + ... + (std::same_as<decltype(O), mode> ? 1 : 0));
  static constexpr bool strange =
      ((!is_number<decltype(O)> && !(with_mode && std::same_as<decltype(O), mode>) &&
        !(kind == TemplateArguments::positions_and_mode && std::same_as<decltype(O), form>)) ||
       ...);

  template <class Draft, class... P>
  static constexpr void see(Draft& draft, std::type_identity<std::tuple<P...>>) {
    if constexpr (strange) {
      write_expected<name, kind>(draft);
      write_first(draft);
    } else if constexpr (kind == TemplateArguments::order) {
      if constexpr (sizeof...(O) != 1) write_expected<name, kind>(draft);
      else if (((O < 0) || ...)) draft << name.data << ": expected an order of 0 or more";
    } else if constexpr (kind == TemplateArguments::position && sizeof...(O) > 1) {
      write_expected<name, kind>(draft);
    } else if constexpr (modes > 1) {
      draft << "a derivative is taken by one mode; nest them: grad<mode::taped>(grad<mode::forward>(f))";
    } else if constexpr (kind == TemplateArguments::positions_or_reverse && modes == 1 && sizeof...(O) > 1) {
      draft << name.data << ": expected positions or mode::reverse, which is of the one argument, got both";
    } else if constexpr (kind == TemplateArguments::position && sizeof...(O) == 0) {
      see_positions<P...>(draft, 0);
    } else {
      see_positions<P...>(draft, O...);
    }
  }
  template <class P>
  static constexpr bool may_be_selected() {
    if constexpr (kind == TemplateArguments::positions_of_any_arguments) return true;
    else return HasFloat<P>::value;
  }
  template <class... P, class Draft, class... Options>
  static constexpr void see_positions(Draft& draft, Options... options) {
    constexpr std::size_t n = sizeof...(P);
    const std::array<bool, n + 1> selectable{may_be_selected<P>()...};
    std::array<bool, n + 1> met{};
    bool wrong = false, any = false;
    [[maybe_unused]] const auto one = [&](auto o) {
      if constexpr (is_number<decltype(o)>) {
        any = true;
        if (wrong) return;
        wrong = true;
        const auto at = static_cast<std::size_t>(o);
        if (static_cast<std::int64_t>(o) < 0)
          draft << name.data << ": expected the position of an argument, the first is 0, got a negative number";
        else if (at >= n)
          draft << name.data << ": position " << at << " is out of range: the function has " << n
                << (n == 1 ? " argument" : " arguments") << ", the first is 0";
        else if (met[at])
          draft << name.data << ": position " << at << " is given twice";
        else if (!selectable[at])
          draft << name.data << ": the argument at position " << at
                << " has no floating-point number: there is no derivative by it";
        else
          wrong = false, met[at] = true;
      }
    };
    (one(options), ...);
    if (any || kind == TemplateArguments::positions_of_any_arguments) return;
    for (const bool s : selectable) any = any || s;
    if (!any) draft << name.data << ": no floating-point argument to differentiate with respect to";
  }
  template <class Draft>
  static constexpr void write_first(Draft& draft) {
    bool written = false;
    const auto one = [&]<class T>(T) {
      if (written || is_number<T>) return;
      written = true;
      draft << ", got ";
      if constexpr (std::same_as<T, mode>) {
        draft << "a mode" << (kind == TemplateArguments::positions ? "; grad<mode>(f) takes one" : "");
      } else if constexpr (requires(Draft d) { write_name<T>(d); }) {
        draft << "a ";
        write_name<T>(draft);
      }
    };
    (one(O), ...);
  }

};
/// The same for a type.
template <Text name, TemplateArguments kind>
struct TypeNotTaken {
  constexpr void operator()(Draft& draft) const {
    write_expected<name, kind>(draft);
    draft << ", got a type";
  }
};

/// Whether something is written.
struct Silence {
  bool broken = false;
  template <class T>
  constexpr Silence& operator<<(const T&) {
    broken = true;
    return *this;
  }
};
template <class F, TemplateArguments kind, auto... O>
constexpr bool takes() {
  Silence silence;
  WhyNotTaken<"", F, kind, O...>()(silence);
  return !silence.broken;
}
/// A function over Reps with template arguments that are right for it.
template <class F, TemplateArguments kind, auto... O>
concept Takes = OverReps<F> && takes<F, kind, O...>();

/// An argument's type, in a tuple if it is selected.
template <bool selected, class Q>
using if_selected = std::conditional_t<selected, std::tuple<Q>, std::tuple<>>;
template <class Options, class Params, class Positions = std::make_index_sequence<std::tuple_size_v<Params>>>
struct SelectedTypes;
template <class Options, class... P, std::size_t... I>
struct SelectedTypes<Options, std::tuple<P...>, std::index_sequence<I...>> {
  using type = decltype(std::tuple_cat(std::declval<if_selected<Options::selects(I, HasFloat<P>::value), P>>()...));
};
/// The types of the selected arguments; of those that have tangents.
template <class Options, class Params>
using selected_t = typename SelectedTypes<Options, Params>::type;
template <class Params>
using tangents_t = selected_t<AllFloating, Params>;

/// The tuple of f(p) for the selected arguments, in order.
template <class Options, class... P, class F>
auto for_selected(const std::tuple<P...>& args, const F& f) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto one = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
      using Q = std::tuple_element_t<K, std::tuple<P...>>;
      if constexpr (Options::selects(K, HasFloat<Q>::value))
        return std::tuple<std::invoke_result_t<const F&, const Q&>>(f(std::get<K>(args)));
      else return std::tuple<>();
    };
    // Braces: left to right, since each may take its share of some data.
    std::tuple<decltype(one(std::integral_constant<std::size_t, I>{}))...> parts{
        one(std::integral_constant<std::size_t, I>{})...};
    return std::apply([](auto&... p) { return std::tuple_cat(std::move(p)...); }, parts);
  }(std::index_sequence_for<P...>{});
}

/// The selected argument types, as one type or a tuple.
template <class Options, class Params>
struct Selected;
template <class Options, class... P>
struct Selected<Options, std::tuple<P...>> {
  using tuple = selected_t<Options, std::tuple<P...>>;
  static constexpr std::size_t count = std::tuple_size_v<tuple>;
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

/// The arguments of a derivative, flattened, and which of them are active.
template <class Options, class... P>
struct ActiveArguments {
  explicit ActiveArguments(const P&... p) : args(p...) {
    std::size_t i = 0;
    (add(p, Options::selects(i++, HasFloat<P>::value)), ...);
  }
  std::tuple<P...> args;
  Datums data;
  ad::Active active;

 private:
  template <class Q>
  void add(const Q& q, bool selected) {
    flatten(q, data);
    ad::extend(active, data, selected);
  }
};

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
/// The derivatives by the selected arguments, one or a tuple.
template <class Options, class... P>
auto gradient_result(const std::tuple<P...>& args, std::span<const Datum> data) {
  const auto all = for_selected<Options>(args, [&]<class Q>(const Q& q) { return shaped_like(q, data); });
  if constexpr (std::tuple_size_v<std::remove_cvref_t<decltype(all)>> == 1) return std::get<0>(all);
  else return all;
}

/// The floating data of products, one after the other.
template <class... P>
Datums floating_data(const P&... p) {
  Datums out;
  const auto add = [&]<class T>(const Rep<T>& r) {
    if constexpr (std::is_floating_point_v<typename Traits<T>::element>) append(out, r.datum());
  };
  (for_each_rep(p, add), ...);
  return out;
}

/// What is made of a function by differentiating it: it knows the function, and the place that messages name.
template <class F>
class Derived {
 public:
  Derived(F f, const char* prefix, Location loc) : f_(std::move(f)), prefix_(prefix), loc_(loc) {}
  std::string name() const { return prefix_ + name_of(f_); }

 protected:
  F f_;
  const char* prefix_;
  Location loc_;
};

template <class F, class Options, bool with_value, class Params = typename FunctionTraits<F>::Params>
class Gradient;
template <class F, class Options, bool with_value, class... P>
class Gradient<F, Options, with_value, std::tuple<P...>> : public Derived<F> {
  using Derivative = typename Selected<Options, std::tuple<P...>>::type;
  using Value = typename FunctionTraits<F>::Result;

 public:
  using Derived<F>::Derived;
  std::conditional_t<with_value, std::tuple<Value, Derivative>, Derivative> operator()(const P&... p) const {
    const ActiveArguments<Options, P...> in(p...);
    Structure<Value> value;
    const Datums out = ad::gradient(Options::selected, Options::how, program_of(this->f_, in.args, value), in.data,
                                    in.active, with_value, this->loc_);
    const std::span<const Datum> derivatives = std::span(out).subspan(with_value ? 1 : 0);
    if constexpr (with_value)
      return {rebuild(*value, Datums{out[0]}), gradient_result<Options>(in.args, derivatives)};
    else return gradient_result<Options>(in.args, derivatives);
  }
};

template <class F, class Options, class Params = typename FunctionTraits<F>::Params>
class VectorJacobian;
template <class F, class Options, class... P>
class VectorJacobian<F, Options, std::tuple<P...>> : public Derived<F> {
  using Value = typename FunctionTraits<F>::Result;
  using Derivative = typename Selected<Options, std::tuple<P...>>::type;

 public:
  using Derived<F>::Derived;
  std::tuple<Value, Derivative> operator()(const P&... p, const Value& ybar) const {
    const ActiveArguments<Options, P...> in(p...);
    Structure<Value> value;
    const Datums out = ad::vjp(program_of(this->f_, in.args, value), in.data, in.active, floating_data(ybar), true,
                               this->loc_);
    std::span<const Datum> view(out);
    Value result = rebuild(*value, view);
    return {std::move(result), gradient_result<Options>(in.args, view)};
  }
};

template <class F, class Options, class Params = typename FunctionTraits<F>::Params,
          class Tangents = selected_t<Options, Params>>
class JacobianVector;
template <class F, class Options, class... P, class... T>
class JacobianVector<F, Options, std::tuple<P...>, std::tuple<T...>> : public Derived<F> {
  using Value = typename FunctionTraits<F>::Result;

 public:
  using Derived<F>::Derived;
  std::tuple<Value, Value> operator()(const P&... p, const T&... dp) const {
    const ActiveArguments<Options, P...> in(p...);
    Structure<Value> value;
    const Datums out =
        ad::jvp(program_of(this->f_, in.args, value), in.data, in.active, floating_data(dp...), this->loc_);
    std::span<const Datum> view(out);
    const Value result = rebuild(*value, view);
    return {result, shaped_like(result, view)};
  }
};

/// The directional derivative of a gradient, `product`.
template <class Product, class F, class Options, class Params = typename FunctionTraits<F>::Params,
          class Tangents = selected_t<Options, Params>>
class HessianVector;
template <class Product, class F, class Options, class... P, class... T>
class HessianVector<Product, F, Options, std::tuple<P...>, std::tuple<T...>> {
 public:
  explicit HessianVector(Product product) : product_(std::move(product)) {}
  typename Selected<Options, std::tuple<P...>>::type operator()(const P&... p, const T&... v) const {
    return std::get<1>(product_(p..., v...));
  }

 private:
  Product product_;
};

template <int order, class F, class Params = typename FunctionTraits<F>::Params, class Tangents = tangents_t<Params>>
class Taylor;
template <int order, class F, class... P, class... T>
class Taylor<order, F, std::tuple<P...>, std::tuple<T...>> : public Derived<F> {
  using Value = typename FunctionTraits<F>::Result;

 public:
  using Derived<F>::Derived;
  std::array<Value, order + 1> operator()(const P&... p, const T&... dp) const {
    const ActiveArguments<AllFloating, P...> in(p...);
    Structure<Value> value;
    const std::vector<Datums> series = ad::taylor(program_of(this->f_, in.args, value), in.data, in.active,
                                                  floating_data(dp...), order, this->loc_);
    std::array<Value, order + 1> out;
    out[0] = rebuild(*value, series[0]);
    for (std::size_t k = 1; k < out.size(); ++k) {
      std::span<const Datum> view(series[k]);
      out[k] = shaped_like(out[0], view);
    }
    return out;
  }
};

template <class F, class X>
class ReverseHessian : public Derived<F> {
 public:
  using Derived<F>::Derived;
  using Result = Rep<Tensor<typename Traits<typename X::value_type>::element>>;
  Result operator()(const X& x) const {
    return Result(ad::hessian_by_reverse(program_of(this->f_), x.datum(), this->loc_));
  }
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
