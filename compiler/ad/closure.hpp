// closure(f): a function that derivative handlers are told of, as an effect (thesis, 5.3).
#pragma once

#include "lantern/compiler/ad/run_again.hpp"

namespace lantern::core {

namespace ad {

/// A mode that handles the application of functions.
class HigherOrder {
 public:
  using Function = std::function<Datums(const Datums&)>;
  /// What f gives for x. The handler decides what of f is remembered.
  virtual Datums app(const Function& f, const Datums& x, const Location& loc) = 0;

 protected:
  ~HigherOrder() = default;
};

/// Applies a function: the handler in charge of the arguments is asked, if it is one for functions;
/// mode::checkpointed runs the function again in its backward pass. Other modes, evaluation and staging just
/// call it.
Datums app(const HigherOrder::Function& f, const Datums& x, const Location& loc);

}  // namespace ad

namespace detail {

template <class F, class Params>
class Closure;
template <class F, class... P>
class Closure<F, std::tuple<P...>> {
  using Value = typename FunctionTraits<F>::Result;

 public:
  Closure(F f, Location loc) : f_(kept(std::move(f))), loc_(loc) {}
  Value operator()(const P&... p) const {
    Datums data;
    (flatten(p, data), ...);
    const auto [run, prototype] = run_again<Value>(f_, p...);
    const Datums results = ad::app(run, data, loc_);
    return rebuild(**prototype, results);
  }
  std::string name() const { return name_of(*f_); }

 private:
  std::shared_ptr<const F> f_;
  Location loc_;
};

}  // namespace detail

/// A function value that computes what f computes, and may be passed on, kept and called like f. Under
/// mode::closures each call has a reverse pass of its own; under mode::checkpointed each call is run twice
/// instead of remembered. It then runs after the frame that called it has ended: a lambda captures by value.
template <class F>
auto closure(F f, std::source_location l = std::source_location::current()) {
  detail::require_known<F>();
  return detail::Closure<F, typename detail::FunctionTraits<F>::Params>(std::move(f), here(l));
}

}  // namespace lantern::core
