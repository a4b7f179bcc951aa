// Functions whose calls modes are told of.
#pragma once

#include <memory>
#include <tuple>
#include <utility>

#include "lantern/compiler/ad/derivative.hpp"

namespace lantern::core::detail {

/// A function whose calls a mode is told of: `call` says how, given the program, the data and
/// the place.
template <class F, auto call, class Params = typename FunctionTraits<F>::Params>
class Known;
template <class F, auto call, class... P>
class Known<F, call, std::tuple<P...>> {
  using Value = typename FunctionTraits<F>::Result;

 public:
  Known(F f, std::string prefix, Location loc)
      : f_(kept(std::move(f))), prefix_(std::move(prefix)), loc_(loc) {}
  Value operator()(const P&... p) const {
    const auto typed = std::make_shared<TypedCall<Value, P...>>(p...);
    const auto run = [f = f_, typed](const Datums& in) { return (*typed)(*f, in); };
    const Datums results = call({name(), run}, flatten(std::tie(p...)), loc_);
    return rebuild(*typed->value, results);
  }
  std::string name() const { return prefix_ + name_of(*f_); }

 private:
  std::shared_ptr<const F> f_;
  std::string prefix_;
  Location loc_;
};

}  // namespace lantern::core::detail
