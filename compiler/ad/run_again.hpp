// A function over products as one over their data, kept for later.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "lantern/compiler/ad/derivative.hpp"

namespace lantern::core::detail {

/// What runs f on the data of such arguments, now and in a backward part: after the frame that called it has
/// ended. With it the shape of the result, known once it has run.
template <class Value, class F, class... P>
std::pair<std::function<Datums(const Datums&)>, std::shared_ptr<Structure<Value>>> run_again(
    std::shared_ptr<const F> f, const P&... p) {
  const auto prototypes = std::make_shared<const Structure<std::tuple<P...>>>(std::tuple<P...>(p...));
  const auto prototype = std::make_shared<Structure<Value>>();
  const auto run = [f = std::move(f), prototypes, prototype](const Datums& in) {
    std::tuple<P...> arguments = rebuild(**prototypes, in);
    return prototype->keep(convert<Value>(std::apply([&](auto&... a) { return (*f)(a...); }, arguments)));
  };
  return {run, prototype};
}

/// A function whose calls a derivative handler is told of: `call` says how, given the program, the data and
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
    Datums data;
    (flatten(p, data), ...);
    const auto [run, prototype] = run_again<Value>(f_, p...);
    const Datums results = call({name(), run}, data, loc_);
    return rebuild(**prototype, results);
  }
  std::string name() const { return prefix_ + name_of(*f_); }

 private:
  std::shared_ptr<const F> f_;
  std::string prefix_;
  Location loc_;
};

}  // namespace lantern::core::detail
