// closure(f): a function that derivative handlers are told of, as an effect (thesis, 5.3).
#pragma once

#include "lantern/compiler/ad/run_again.hpp"

namespace lantern::core {

namespace ad {

/// app (abs f) x, effects for the handler in charge of the arguments if it has clauses for them (modes/effects.hpp).
/// Other modes, evaluation and staging just call f.
Datums app(const std::function<Datums(const Datums&)>& f, const Datums& x);

}  // namespace ad

namespace detail {

template <class F, class Params>
class Closure;
template <class F, class... P>
class Closure<F, std::tuple<P...>> {
  using Value = typename FunctionTraits<F>::Result;

 public:
  explicit Closure(F f) : f_(kept(std::move(f))) {}
  Value operator()(const P&... p) const {
    Datums data;
    (flatten(p, data), ...);
    const auto [run, prototype] = run_again<Value>(f_, p...);
    const Datums results = ad::app(run, data);
    return rebuild(**prototype, results);
  }
  std::string name() const { return name_of(*f_); }

 private:
  std::shared_ptr<const F> f_;
};

}  // namespace detail

/// A function value that computes what f computes, and may be passed on, kept and called like f. Under
/// mode::closures each call has a reverse pass of its own; under mode::checkpointed_closures each call is run twice
/// instead of remembered. It then runs after the frame that called it has ended: a lambda captures by value.
template <class F>
auto closure(F f) {
  detail::require_known<F>();
  return detail::Closure<F, typename detail::FunctionTraits<F>::Params>(std::move(f));
}

}  // namespace lantern::core
