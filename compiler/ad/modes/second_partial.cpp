// Forward mode of a formula, and of a rule.
#include "lantern/compiler/ad/modes/second_partial.hpp"

#include "lantern/compiler/ad/forward.hpp"
#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::ad {

Datum second_partial(const Operation& op, const Data& primals, const Datum& result, std::size_t i,
                     std::size_t j, const Datum& first_j) {
  const ir::Formula& f = *ir::derivative(op.code, i, primals.size());
  if (f.kind == ir::Formula::Kind::number) return {};
  const auto forward = std::make_shared<Forward>(++context().tags);
  Data duals = primals;
  duals[j] = forward->dual(primals[j], Datum::number(1.0, primals[j].type()));
  const Datum d = evaluate_formula(f, {op, duals, forward->dual(result, first_j), Datum()});
  const Dual* v = forward->dual_of(d);
  Datum tangent = v ? v->tangent : Datum();
  forward->end();
  return tangent;
}

namespace {

void require_scalars(const Rule& rule, const Data& data, const Location& loc) {
  for (const Datum& d : floating(data))
    if (!d.type().is_scalar())
      raise_at(loc, "hessian<mode::reverse>: expected " + rule.what +
                        " of scalars, with scalar results, got " + d.type().str() + "; use hessian(f)");
}

/// A program that gives the rule's values, then the derivatives of each floating one by each floating
/// argument. When it runs it says how many values there are.
Program with_gradients(const std::shared_ptr<const Rule>& rule, std::size_t& count, const Location& loc) {
  return {rule->name + "_gradients", [rule, &count, loc](const Data& in) {
            auto [out, residuals] = rule->forward(in);
            require_scalars(*rule, out, loc);
            count = out.size();
            const Data values = floating(out);
            for (std::size_t j = 0; j < values.size(); ++j) {
              Data unit;
              for (std::size_t i = 0; i < values.size(); ++i)
                unit.push_back(Datum::number(i == j ? 1.0 : 0.0, values[i].type()));
              const Data row = rule->backward(residuals, unit);
              require_derivatives(*rule, in, row, "argument", loc);
              out.insert(out.end(), row.begin(), row.end());
            }
            return out;
          }};
}

}  // namespace

RulePartials partials_of(const std::shared_ptr<const Rule>& rule, const Data& arguments,
                         const std::vector<std::size_t>& by, const Location& loc) {
  require_scalars(*rule, arguments, loc);
  std::vector<std::size_t> place(arguments.size(), 0);  // among the floating arguments
  std::size_t n = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].type().is_differentiable()) place[i] = n++;
  RulePartials all;
  for (std::size_t k = 0; k < by.size(); ++k) {
    Active one(arguments.size(), false);
    one[by[k]] = true;
    // The values with m floating ones, m rows of n derivatives, and the same m + m n numbers along argument
    // k.
    std::size_t values = 0;
    const Data out = jvp(with_gradients(rule, values, loc), arguments, one,
                         {Datum::number(1.0, arguments[by[k]].type())}, loc);
    const Data first(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(values));
    const std::size_t m = floating(first).size();
    if (k == 0) {
      all.values = first;
      all.first.resize(m);
      all.second.resize(m, std::vector<Data>(by.size()));
    }
    for (std::size_t j = 0; j < m; ++j)
      for (std::size_t i = 0; i < by.size(); ++i) {
        const std::size_t entry = j * n + place[by[i]];
        if (k == 0) all.first[j].push_back(out[values + entry]);
        all.second[j][i].push_back(out[values + m * n + m + entry]);
      }
  }
  return all;
}

}  // namespace lantern::ad
