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
std::pair<std::function<Datums(const Datums&)>, std::shared_ptr<Structure<Value>>> run_again(std::shared_ptr<const F> f,
                                                                              const P&... p) {
  const auto prototypes = std::make_shared<const Structure<std::tuple<P...>>>(std::tuple<P...>(p...));
  const auto prototype = std::make_shared<Structure<Value>>();
  const auto run = [f = std::move(f), prototypes, prototype](const Datums& in) {
    std::tuple<P...> arguments = rebuild(**prototypes, in);
    return prototype->keep(convert<Value>(std::apply([&](auto&... a) { return (*f)(a...); }, arguments)));
  };
  return {run, prototype};
}

}  // namespace lantern::core::detail
