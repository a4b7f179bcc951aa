// external("name", f): a plain C or C++ function as a function over Reps.
#pragma once

#include <string>

#include "lantern/compiler/staging/product.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/prototype.hpp"

namespace lantern::core {

/// What may be done with an external function.
struct ExternalOptions {
  bool threads = false;  ///< it may be called from several threads at the same time
  /// A call does more than compute its results, it communicates for instance: each call is made, even if no result is
  /// used, by one thread, and in order with other such calls and with prints.
  bool ordered = false;
};

namespace detail {

/// Calls a function through its address: arguments are numbers and first elements, by address.
using ExternalThunk = void (*)(void (*function)(), void* const* arguments, void* result);

/// A function of the process and how it is called.
struct ExternalFunction {
  ir::Prototype prototype;
  void (*address)() = nullptr;
  ExternalThunk thunk = nullptr;
};

/// What `external` makes known to the process, by name. Error where another function has the name.
const ExternalFunction& register_external(ExternalFunction function, const Location& loc);
/// The function of that name; null where there is none.
const ExternalFunction* find_external(const std::string& name);

/// A call: at once, or in the graph under construction. The results are what the function returns, then each
/// array that it changes. Error where something floating of it is being differentiated.
Datums call_external(const ExternalFunction& function, const ExternalOptions& options,
                     const Datums& arguments, const Location& loc);
/// What differentiating a function without a derivative raises.
class NoDerivative : public Error {
 public:
  using Error::Error;
};
/// Raises it. While staging, where replay meets a call of the function.
[[noreturn]] void no_derivative(const std::string& name, const Location& loc);

/// A C parameter: how it is written, what it is over Reps.
template <class P>
struct ExternalParameter {
  static_assert(
      ScalarElement<P>,
      "external: expected parameters of bool, int32_t, int64_t, float, double, or pointers to them");
  using type = P;
  static ir::Prototype::Parameter get() { return {TypeOf<P>::get().kind(), false, false}; }
  static P from(void* argument) { return *static_cast<P*>(argument); }
};
template <class E>
struct ExternalParameter<E*> {
  using Element = std::remove_const_t<E>;
  static_assert(ScalarElement<Element>,
                "external: expected pointers to bool, int32_t, int64_t, float or double");
  using type = Array<Element>;
  static ir::Prototype::Parameter get() { return {TypeOf<Element>::get().kind(), true, !std::is_const_v<E>}; }
  static E* from(void* argument) { return static_cast<E*>(argument); }
};

/// Whether a parameter may be given to the program as T: itself, or an array or tensor of what it points to.
template <class P, class T>
inline constexpr bool external_takes = std::same_as<P, T>;
template <class E, class T>
inline constexpr bool external_takes<E*, T> =
    Traits<T>::tensor && std::same_as<typename Traits<T>::element, std::remove_const_t<E>>;

/// What a call gives: what is returned, and the changed arguments, as one Rep or a tuple of them.
template <class R>
using ReturnedRep = std::conditional_t<std::is_void_v<R>, std::tuple<>, std::tuple<Rep<R>>>;
template <class P, class T>
using ChangedRep = std::conditional_t<std::is_pointer_v<P> && !std::is_const_v<std::remove_pointer_t<P>>,
                                      std::tuple<Rep<T>>, std::tuple<>>;
template <class T>
struct OneOrAll {
  using type = T;
};
template <class T>
struct OneOrAll<std::tuple<T>> {
  using type = T;
};

template <class R, class Pointers, class Types>
class External;
template <class R, class... P, class... T>
class External<R, std::tuple<P...>, std::tuple<T...>> {
  static_assert(
      (external_takes<P, T> && ...),
      "external: the types between < > do not fit the function: a number for each number, and an Array or "
      "Tensor of the elements for each pointer");
  using All = decltype(std::tuple_cat(std::declval<ReturnedRep<R>>(), std::declval<ChangedRep<P, T>>()...));
  static_assert(std::tuple_size_v<All> > 0,
                "external: expected a function that returns a number, or changes an array through a pointer");

 public:
  using Result = typename OneOrAll<All>::type;

  External(const char* name, R (*function)(P...), const ExternalOptions& options, Location loc)
      : options_(options), loc_(loc) {
    ir::Prototype prototype;
    prototype.name = name;
    if constexpr (!std::is_void_v<R>) prototype.returned = TypeOf<R>::get().kind();
    prototype.parameters = {ExternalParameter<P>::get()...};
    function_ =
        &register_external({std::move(prototype), reinterpret_cast<void (*)()>(function), &call}, loc);
  }
  std::string name() const { return function_->prototype.name; }

  Result operator()(const Rep<T>&... arguments) const {
    const Datums results = call_external(*function_, options_, {arguments.datum()...}, loc_);
    All all = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return All(std::tuple_element_t<I, All>(results[I])...);
    }(std::make_index_sequence<std::tuple_size_v<All>>{});
    if constexpr (std::tuple_size_v<All> == 1)
      return std::get<0>(std::move(all));
    else
      return all;
  }

 private:
  static void call(void (*function)(), void* const* arguments, [[maybe_unused]] void* result) {
    const auto f = reinterpret_cast<R (*)(P...)>(function);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr (std::is_void_v<R>)
        f(ExternalParameter<P>::from(arguments[I])...);
      else
        *static_cast<R*>(result) = f(ExternalParameter<P>::from(arguments[I])...);
    }(std::index_sequence_for<P...>{});
  }

  const ExternalFunction* function_;
  ExternalOptions options_;
  Location loc_;
};

}  // namespace detail

/// A function written in plain C or C++, a table, a solver, a library's, as a function over Reps:
///
///   extern "C" double table(double x);
///   extern "C" void solve(int64_t n, const double* a, double* b);      // b: the right-hand side, then the
///   solution const auto table_ = external("table", table);                      // Rep<double>(Rep<double>)
///   const auto solve_ = external<int64_t, Tensor<double, dyn, dyn>, Array<double>>("solve", solve);
///   Rep<Array<double>> x = solve_(n, a, b);
///
/// A number is a Rep of it; a pointer takes an Array, or between < > a Tensor, of its elements, which lie row
/// by row; sizes are passed as numbers. Through `T*` the function changes an array: of a copy of the
/// argument, which becomes a result. The results are what the function returns, if anything, and then the
/// changed arrays, in order; several are a tuple.
///
/// The name is the one that the linker knows. In process any function of that type will do; code that is
/// compiled ahead of time, or printed, declares `name` as a C function, which is linked with it.
///
/// The function has to give the same results for the same arguments, without being noticed otherwise: a call
/// whose results nothing needs may be left out, and one in a part that a derivative computes again is made
/// again. ({.ordered = true} says that it has effects.) It must not throw: `lantern_fail(message)`
/// (runtime/workspace.h) raises. Where loops are shared out to threads, those that call it are not unless
/// {.threads = true} says that they may. It is not called on GPUs.
///
/// It has no derivative by itself, and differentiating it is an error: `custom_vjp(table_, fwd, bwd)` and
/// `custom_jvp(table_, jvp)` give it one, of Rep programs, which may call external functions too.
/// `check_derivative` compares it with differences.
template <class... T, class R, class... P>
  requires(sizeof...(T) == sizeof...(P) && sizeof...(T) > 0)
auto external(const char* name, R (*function)(P...), ExternalOptions options = {},
              std::source_location l = std::source_location::current()) {
  return detail::External<R, std::tuple<P...>, std::tuple<T...>>(name, function, options, here(l));
}
template <class R, class... P>
auto external(const char* name, R (*function)(P...), ExternalOptions options = {},
              std::source_location l = std::source_location::current()) {
  return detail::External<R, std::tuple<P...>, std::tuple<typename detail::ExternalParameter<P>::type...>>(
      name, function, options, here(l));
}

}  // namespace lantern::core
