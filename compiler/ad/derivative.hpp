// grad, value_and_grad, jvp, vjp, hvp: derivatives of functions over Rep.
//
// Each takes a function and gives a function, so they nest in any order and depth. A function is a C++ function,
// a callable with one non-template call operator, or a FUN; write sig<double(double)>(f) for a generic lambda.
// Used while staging (inside compile or lanternc) they build derivative code; used at run time they compute.
#pragma once

#include "lantern/compiler/ad/typed_derivative.hpp"

namespace lantern::core {

/// Gives a generic lambda a signature: sig<double(double)>([](auto x) { return x * x; }).
template <class Sig, class F>
auto sig(F f) {
  return detail::Signed<F, Sig>(std::move(f));
}

/// The gradient of a function whose result is one floating-point scalar.
///
/// grad(f) differentiates with respect to every floating argument; grad<0, 2>(f) with respect to those positions;
/// grad<mode::forward>(f) by forward mode, and so for every `mode`; grad<mode::taped, form::fast>(f) by its fast path. One
/// argument gives its gradient, several a tuple in order; a gradient has the type of its argument. Error: a result that
/// is not one floating scalar (use vjp or jvp).
template <auto... O, class F>
  requires detail::Takes<F, detail::TemplateArguments::positions_and_mode, O...>
auto grad(F f, std::source_location l = std::source_location::current()) {
  return detail::Gradient<F, detail::GradOptions<O...>, false>(std::move(f), "grad_", here(l));
}
LANTERN_TAKES_OPTIONS(grad, positions_and_mode)

/// {f(x...), gradient} in one pass; arguments as for grad.
template <auto... O, class F>
  requires detail::Takes<F, detail::TemplateArguments::positions_and_mode, O...>
auto value_and_grad(F f, std::source_location l = std::source_location::current()) {
  return detail::Gradient<F, detail::GradOptions<O...>, true>(std::move(f), "grad_", here(l));
}
LANTERN_TAKES_OPTIONS(value_and_grad, positions_and_mode)

/// vjp(f)(x..., ybar) = {y, xbar}: the product of a cotangent with the Jacobian, by reverse mode. ybar has the type
/// of the result; xbar is the adjoint of the floating argument, or a tuple of those. vjp<0, 2>(f): of those positions.
template <auto... O, class F>
  requires detail::Takes<F, detail::TemplateArguments::positions, O...>
auto vjp(F f, std::source_location l = std::source_location::current()) {
  return detail::VectorJacobian<F, detail::GradOptions<O...>>(std::move(f), "vjp_", here(l));
}
LANTERN_TAKES_OPTIONS(vjp, positions)

/// jvp(f)(x..., dx...) = {y, dy}: the Jacobian times a tangent, by forward mode. One dx per floating argument;
/// jvp<0, 2>(f)(x..., dx0, dx2): the others are constants.
template <auto... O, class F>
  requires detail::Takes<F, detail::TemplateArguments::positions, O...>
auto jvp(F f, std::source_location l = std::source_location::current()) {
  return detail::JacobianVector<F, detail::GradOptions<O...>>(std::move(f), "jvp_", here(l));
}
LANTERN_TAKES_OPTIONS(jvp, positions)

/// hvp(f)(x..., v...): the Hessian of a scalar function times v, by forward over reverse mode. One v per floating
/// argument; the product has the types of those, and is a tuple of several. hvp<0, 2>(f)(x..., v0, v2): the Hessian by
/// those positions.
template <auto... O, class F>
  requires detail::Takes<F, detail::TemplateArguments::positions, O...>
auto hvp(F f, std::source_location l = std::source_location::current()) {
  auto product = jvp<O...>(grad<O...>(std::move(f), l), l);
  return detail::HessianVector<decltype(product), F, detail::GradOptions<O...>>(std::move(product));
}
LANTERN_TAKES_OPTIONS(hvp, positions)

/// hessian<mode::reverse>(f)(x): the n-by-n matrix of second derivatives of a scalar function of one array, in one
/// reverse pass that keeps second derivatives by live variables only.
/// f computes with the elements of its argument, one by one. Staged, a function that calls itself, or a loop with a
/// bound on memory, is one operation, whose second derivatives are those of forward over reverse mode.
template <mode M, class F>
  requires detail::Takes<F, detail::TemplateArguments::positions_or_reverse, M>
auto hessian(F f, std::source_location l = std::source_location::current()) {
  static_assert(M == mode::reverse,
                "hessian<mode>: expected mode::reverse, one reverse pass; hessian(f) is by forward over reverse mode, "
                "jacobian(grad<mode>(f)) by forward over another");
  using Params = typename detail::FunctionTraits<F>::Params;
  static_assert(std::tuple_size_v<Params> == 1 && detail::RepType<std::tuple_element_t<0, Params>>,
                "hessian<mode::reverse>: expected a function of one array");
  return detail::ReverseHessian<F, std::tuple_element_t<0, Params>>(std::move(f), "hessian_", here(l));
}
LANTERN_TAKES_OPTIONS(hessian, positions_or_reverse)

/// taylor<k>(f)(x..., dx...): the derivatives of order 0 to k of f(x + t dx) by t at t = 0, as an array of k + 1 results.
/// One dx per floating argument. For a function of one scalar and dx = 1 they are f, f', f'', ...
template <int order, class F>
  requires detail::Takes<F, detail::TemplateArguments::order, order>
auto taylor(F f, std::source_location l = std::source_location::current()) {
  return detail::Taylor<order, F>(std::move(f), "taylor_", here(l));
}
LANTERN_TAKES_OPTIONS(taylor, order)

/// The value, as a constant: no derivative passes through. Works component by component on a product.
template <class P>
P stop_gradient(const P& p, std::source_location l = std::source_location::current()) {
  P out = p;
  detail::for_each_rep(out, [&]<class T>(Rep<T>& r) {
    if (r.datum().type().is_differentiable()) r = Rep<T>(perform({Opcode::stop_gradient_, 0, here(l)}, {r.datum()}));
  });
  return out;
}

}  // namespace lantern::core
