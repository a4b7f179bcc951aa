// What special functions share: functions of tensors by those of numbers.
#pragma once

#include <limits>

#include "lantern/compiler/ad/custom_derivative.hpp"
#include "lantern/compiler/staging/caller.hpp"
#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/functions.hpp"
#include "lantern/compiler/staging/requirement.hpp"
#include "lantern/compiler/tensor/build.hpp"

namespace lantern::core::special::detail {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using B = Rep<bool>;

template <class T>
using Element = typename core::detail::Traits<T>::element;
template <class T>
concept Real = FloatElement<Element<T>>;
/// A parameter beside an x of type T: a number of C++, a Rep of its element, or a tensor of x's shape.
template <class P, class T>
concept Beside = std::is_arithmetic_v<P> || std::same_as<P, Rep<T>> || std::same_as<P, Rep<Element<T>>>;

inline constexpr double infinity = std::numeric_limits<double>::infinity(),
                        nan = std::numeric_limits<double>::quiet_NaN();
inline B both(const B& a, const B& b) { return B(perform({Opcode::land_, 0, {}}, {a.datum(), b.datum()})); }

/// A parameter in double, of a tensor the element at these indices.
template <class P>
D element_of(const P& p, const Datums& at, const Location& loc) {
  if constexpr (std::is_arithmetic_v<P>)
    return D(static_cast<double>(p));
  else if constexpr (core::detail::Traits<typename P::value_type>::tensor)
    return cast<double>(Rep<Element<typename P::value_type>>(core::detail::Build{loc}.get(p.datum(), at)));
  else
    return cast<double>(p);
}

/// f of numbers, of each element of x with what is beside it. It is computed in double.
template <class T, class F, class... P>
Rep<T> each(const F& f, std::source_location l, const Rep<T>& x, const P&... p) {
  using E = Element<T>;
  const Caller caller(l);
  const Location loc = here(l);
  if constexpr (!core::detail::Traits<T>::tensor) {
    return cast<E>(f(cast<double>(x), element_of(p, {}, loc)...));
  } else {
    const core::detail::Build build{loc};
    const auto require_shape = [&]<class Q>(const Q& q) {
      if constexpr (std::same_as<Q, Rep<T>>)
        for (int k = 0; k < x.datum().type().rank(); ++k)
          core::detail::require_same_sizes(q.datum(), x.datum(), k, "expected a parameter of x's shape", loc);
    };
    (require_shape(p), ...);
    return Rep<T>(
        build.tabulate(core::detail::TypeOf<E>::get().kind(), build.sizes(x.datum()), [&](const Datums& at) {
          return cast<E>(f(element_of(x, at, loc), element_of(p, at, loc)...)).datum();
        }));
  }
}

}  // namespace lantern::core::special::detail
