// A reference to something callable: a parameter that is called before the function that takes it returns.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#if defined(__clang__)
#define LANTERN_LIFETIMEBOUND [[clang::lifetimebound]]
#else
#define LANTERN_LIFETIMEBOUND
#endif

namespace lantern::ir {

template <class Signature>
class FunctionRef;

/// Refers to a callable object and does not keep it, as std::function_ref of C++26 (P0792). It costs a compiler one
/// function for each type of object, where std::function costs a dozen of class templates.
///
/// For parameters alone: a variable of this type that is initialised by a lambda dangles at once.
template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& object LANTERN_LIFETIMEBOUND)  // NOLINT(google-explicit-constructor): as std::function
      : object_((void*)std::addressof(object)), call_(&call_object<std::remove_reference_t<F>>) {}

  R operator()(A... arguments) const { return call_(object_, static_cast<A&&>(arguments)...); }

 private:
  template <class F>
  static R call_object(void* object, A... arguments) {
    if constexpr (std::is_void_v<R>)
      (*(F*)object)(static_cast<A&&>(arguments)...);
    else
      return (*(F*)object)(static_cast<A&&>(arguments)...);
  }

  void* object_;  ///< or a function: a cast of C serves both
  R (*call_)(void*, A...);
};

}  // namespace lantern::ir
