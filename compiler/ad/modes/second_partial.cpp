// Forward mode of a formula, and of a rule.
#include "lantern/compiler/ad/modes/second_partial.hpp"

#include "lantern/compiler/ad/forward.hpp"
#include "lantern/compiler/ad/jacobian.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

Datum second_partial(const Operation& op, const Datums& primals, const Datum& result, std::size_t i,
                     std::size_t j, const Datum& first_j) {
  const ir::Formula& f = *ir::derivative(op.code, i, primals.size());
  if (f.kind == ir::Formula::Kind::number) return {};
  const auto forward = std::make_shared<Forward>(fresh_number());
  Datums duals = primals;
  duals[j] = forward->dual(primals[j], Datum::number(1.0, primals[j].type()));
  const Datum d = evaluate_formula(f, {op, duals, forward->dual(result, first_j), Datum()});
  const Dual* v = forward->dual_of(d);
  Datum tangent = v ? v->tangent : Datum();
  forward->end();
  return tangent;
}

Partials partials_of(const Operation& op, const Datums& primals, const Datum& y,
                     const std::vector<std::optional<Name>>& variables) {
  Partials p{{}, {}, {}, op.loc};
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i]) continue;
    places.push_back(i);
    p.by.push_back(*variables[i]);
    p.first.push_back(partial_derivative(*ir::derivative(op.code, i, primals.size()), {op, primals, y, y}));
  }
  for (const std::size_t i : places) {
    Datums& row = p.second.emplace_back();
    for (std::size_t j = 0; j < places.size(); ++j)
      row.push_back(second_partial(op, primals, y, i, places[j], p.first[j]));
  }
  return p;
}

namespace {

/// A program that gives, for each floating result, the derivatives by the arguments at the places `by`, as
/// the rule has them.
Program gradients(const std::shared_ptr<const Rule>& rule, const std::vector<std::size_t>& by,
                  const Location& loc) {
  return {rule->name + "_gradients", [rule, by, loc](const Datums& in) {
            const auto [results, residuals] = rule->forward(in);
            const Datums values = floating(results);
            Datums out;
            for (std::size_t j = 0; j < values.size(); ++j) {
              Datums unit;
              for (std::size_t i = 0; i < values.size(); ++i)
                unit.push_back(Datum::number(i == j ? 1.0 : 0.0, values[i].type()));
              const Datums row = rule->backward(residuals, unit);
              require_derivatives(*rule, in, row, "argument", loc);
              for (const std::size_t place : by) out.push_back(row[floating(slice(in, 0, place)).size()]);
            }
            return out;
          }};
}

}  // namespace

RulePartials partials_of(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                         const std::vector<std::size_t>& by, const Location& loc) {
  const auto require = [&](const Datum& d, int rank, const char* what) {
    if (d.type().rank() > rank)
      raise_at(loc, "hessian<mode::reverse>: expected " + rule->what + " with " + what + ", got " +
                        d.type().str() + "; use hessian(f)");
  };
  Active active(arguments.size(), false);
  for (const std::size_t place : by) {
    require(arguments[place], 1, "scalars and the argument of the Hessian as its arguments");
    active[place] = true;
  }
  RulePartials all;
  all.values = rule->forward(arguments).results;
  for (const Datum& y : floating(all.values)) require(y, 0, "scalar results");
  if (floating(all.values).empty()) return all;
  const Program program = gradients(rule, by, loc);
  const Datums first = program.run(arguments);
  const std::vector<Datums> second = jacobian(program, arguments, active, mode::forward, loc);
  for (std::size_t j = 0; j < first.size(); j += by.size()) {
    all.first.push_back(slice(first, j, j + by.size()));
    all.second.push_back(slice(second, j, j + by.size()));
  }
  return all;
}

}  // namespace lantern::core::ad
