// odeint_adjoint: dormand_prince with the derivative of the continuous adjoint.
//
// Backward it integrates, from t1 to t0 and by steps of its own, the state, its adjoint a and the gradient q
// by the arguments: dy/dt = f, da/dt = -a^T df/dy, dq/dt = -a^T df/dp. Memory does not grow with the steps;
// the gradient has the error of that integration, unlike that of dormand_prince, which is exact for the steps
// taken. Source: Chen et al., "Neural ordinary differential equations", 2018, algorithm 1; Pontryagin et al.
// 1962.
#pragma once

#include "lantern/compiler/solvers/runge_kutta.hpp"

namespace lantern::solvers {

namespace detail {

template <class F, class Y, class... P>
class ContinuousAdjoint {
  using E = state_element<Y>;

 public:
  ContinuousAdjoint(F f, const OdeOptions& options, const Y& y0, const P&... p)
      : f_(core::kept(std::move(f))),
        options_(options),
        loc_(core::here(options.place)),
        prototype_(std::make_shared<const core::detail::Structure<All>>(
            All(y0, Number<E>(0.0), Number<E>(0.0), p...))),
        states_(core::detail::flatten(y0).size()) {}

  /// Of (y0, t0, t1, p...).
  Integrated<Y> forward(const Datums& in) const {
    const All all = core::detail::rebuild(**prototype_, in);
    return std::apply([&](const auto&... a) { return dormand_prince(*f_, options_, a...); }, all);
  }

  Datums backward(const Datums& residuals, const Datums& cotangents) const {
    const All all = core::detail::rebuild(**prototype_, core::ad::slice(residuals, 0, inputs()));
    const auto& [y0, t0, t1, p] = parts(all);
    const Y y1 = core::detail::rebuild(y0, core::ad::slice(residuals, inputs(), inputs() + states_));
    const Y a1 = core::detail::rebuild(y0, cotangents);
    Datums none;
    for (const Datum& d : core::detail::flatten(p)) none.push_back(core::zeros_like(d, loc_));
    const Arguments q1 = core::detail::rebuild(p, none);
    const auto equations = [this](const Number<E>& t, const Augmented& s, const auto&... arguments) {
      return this->rates(t, s, arguments...);
    };
    const Integrated<Augmented> start = std::apply(
        [&](const auto&... arguments) {
          return dormand_prince(equations, options_, Augmented(y1, a1, q1), t1, t0, arguments...);
        },
        p);
    const auto& [y, a, q] = start.y;
    const auto along = [&](const Y& adjoint, const Number<E>& t, const Y& at) {
      const Y slope = std::apply([&](const auto&... b) { return rate(*f_, t, at, b...); }, p);
      return inner(adjoint, slope);
    };
    Datums out = core::detail::flatten(a);
    out.push_back((-along(a, t0, y)).datum());
    out.push_back(along(a1, t1, y1).datum());
    core::detail::flatten(q, out);
    return out;
  }

 private:
  using All = std::tuple<Y, Number<E>, Number<E>, P...>;
  using Arguments = std::tuple<P...>;
  using Augmented = std::tuple<Y, Y, Arguments>;

  static auto parts(const All& all) {
    return std::apply(
        [](const Y& y, const Number<E>& t0, const Number<E>& t1, const P&... p) {
          return std::tuple<Y, Number<E>, Number<E>, Arguments>(y, t0, t1, Arguments(p...));
        },
        all);
  }
  std::size_t inputs() const { return core::detail::flatten(**prototype_).size(); }

  template <class... Q>
  Augmented rates(const Number<E>& t, const Augmented& s, const Q&... p) const {
    const auto& [y, a, q] = s;
    const auto swapped = [f = f_](const Y& state, const Number<E>& time, const Q&... arguments) {
      return rate(*f, time, state, arguments...);
    };
    const Datums at = core::detail::flatten(std::tie(y, t, p...));
    Active active(at.size(), true);
    active[states_] = false;  // the time
    const Datums all =
        core::ad::vjp(program_of(swapped, y, t, p...), at, active, core::detail::flatten(a), true, loc_);
    Datums out = core::ad::slice(all, 0, states_);
    for (std::size_t i = states_; i < all.size(); ++i) out.push_back(op(Opcode::neg_, {all[i]}, loc_));
    return core::detail::rebuild(s, out);
  }
  static Number<E> inner(const Y& a, const Y& b) {
    Number<E> total(0.0);
    const Datums x = core::detail::flatten(a), y = core::detail::flatten(b);
    for (std::size_t i = 0; i < x.size(); ++i)
      total = total + (x[i].type().is_tensor() ? sum(Vector<E>(x[i]) * Vector<E>(y[i]))
                                               : Number<E>(x[i]) * Number<E>(y[i]));
    return total;
  }

  std::shared_ptr<const F> f_;
  OdeOptions options_;
  Location loc_;
  std::shared_ptr<const core::detail::Structure<All>> prototype_;
  std::size_t states_;
};

}  // namespace detail

/// dormand_prince, differentiated by reverse mode through the continuous adjoint: memory for one state,
/// whatever the number of steps. For equations that can be integrated backward: not stiff ones. p... are
/// products of what the state consists of; what else f needs it captures, and nothing that is differentiated.
/// Forward mode multiplies by the transpose. Errors: as for dormand_prince; an argument of another element
/// type.
template <class F, class Y, class... P>
auto odeint_adjoint(F f, const OdeOptions& options, const Y& y0, const detail::Time<Y>& t0,
                    const detail::Time<Y>& t1, const P&... p) {
  using namespace detail;
  using S = core::detail::lifted_t<Y>;
  const S start = core::detail::convert<S>(y0);
  const Location loc = core::here(options.place);
  require_state("odeint_adjoint", start, loc);
  const std::tuple<core::detail::lifted_t<P>...> arguments(
      core::detail::convert<core::detail::lifted_t<P>>(p)...);
  for (const Datum& d : core::detail::flatten(arguments))
    if (d.type().element() != (std::same_as<state_element<S>, float> ? ir::Kind::f32 : ir::Kind::f64))
      core::raise_at(loc, "odeint_adjoint: expected arguments of the state's element type, got one of type " +
                              d.type().str() + ": let f capture what is not differentiated");
  using Solver = ContinuousAdjoint<F, S, core::detail::lifted_t<P>...>;
  const auto solver = std::apply(
      [&](const auto&... q) { return std::make_shared<const Solver>(std::move(f), options, start, q...); },
      arguments);
  const auto structure = std::make_shared<core::detail::Structure<Integrated<S>>>();
  const auto rule = std::make_shared<core::ad::Rule>();
  rule->name = rule->what = "odeint_adjoint";
  rule->primal = [solver, structure](const Datums& in) { return structure->keep(solver->forward(in)); };
  rule->backward = [solver](const Datums& residuals, const Datums& cotangents) {
    return solver->backward(residuals, cotangents);
  };
  const Datums found =
      core::ad::call_with_rule(rule, core::detail::flatten(std::tie(start, t0, t1, arguments)), loc);
  return core::detail::rebuild(**structure, found);
}
LANTERN_SOLVER_WITHOUT_OPTIONS(odeint_adjoint, OdeOptions)

}  // namespace lantern::solvers
