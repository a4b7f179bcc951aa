// check_derivative(f)(x...): the derivatives of f beside differences, in one call.
#pragma once

#include "lantern/compiler/ad/check_derivative.hpp"
#include "lantern/compiler/driver/compile.hpp"

namespace lantern::core {

namespace detail {

template <class F, class Params = typename FunctionTraits<F>::Params>
class DerivativeCheck;
template <class F, class... P>
class DerivativeCheck<F, std::tuple<P...>> {
 public:
  DerivativeCheck(F f, const DerivativeCheckOptions& options, Location loc)
      : f_(std::move(f)), options_(options), loc_(loc) {}

  double operator()(const host_in<P>&... args) const {
    Datums data;
    std::vector<std::string> names;
    std::size_t argument = 0;
    const auto add = [&]<class Q>(std::type_identity<Q>, const auto& arg) {
      const std::string name = "argument " + std::to_string(++argument);
      std::size_t part = 0;
      for_each_leaf<Q>(arg, [&](auto type, const auto& h) {
        data.push_back(to_datum(type, h));
        names.push_back(leaf_count<Q>() > 1 ? name + ", part " + std::to_string(++part) : name);
      });
    };
    (add(std::type_identity<P>{}, args), ...);
    return ad::check_derivative(program_of(f_), data, names, options_, loc_);
  }

 private:
  F f_;
  DerivativeCheckOptions options_;
  Location loc_;
};

}  // namespace detail

/// Compares the derivatives of f, and so the rules of custom_vjp and custom_jvp in it, with differences:
/// check_derivative(f)(x...), with the arguments of eager(f), gives the largest relative difference, and
/// raises an Error that names the argument and its element where a derivative, by forward or by reverse mode,
/// is another. f is run eagerly, some tens of times for each number of the arguments that is looked at.
template <detail::OverReps F>
auto check_derivative(F f, DerivativeCheckOptions options = {},
                      std::source_location l = std::source_location::current()) {
  return detail::DerivativeCheck<F>(std::move(f), options, here(l));
}
LANTERN_TAKES_ONE_FUNCTION(check_derivative)

}  // namespace lantern::core
