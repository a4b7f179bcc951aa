// Forward mode of any order: truncated Taylor series (thesis, 5.1, where the order is two; Griewank and
// Walther, "Evaluating Derivatives", chapter 13).
//
// A number is a power series in t, x = x0 + x1 t + x2 t^2 + ... For r = op(x, y, ...), r' = sum of d op/dx *
// x', so that
//
//   k r_k = sum over operands x and j = 1 ... k of  j x_j v_{k-j},   v = the series of d op/dx,
//
// where v is the operation table's formula, computed on series of one order less. So the table needs no
// second and higher derivatives.
#include "lantern/compiler/ad/modes/taylor.hpp"

#include "lantern/compiler/ad/double_step.hpp"
#include "lantern/compiler/ad/modes/modes.hpp"
#include "lantern/compiler/ad/op_derivative.hpp"
#include "lantern/compiler/ad/unit.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::core::ad {

namespace {

Datum multiply(const Datum& a, const Datum& b, const Location& loc) {
  return perform_broadcast({Opcode::mul_, 0, loc}, a, b);
}
Datum scale(double c, const Datum& x, const Location& loc) {
  return multiply(Datum::number(c, ir::Type(x.type().element())), x, loc);
}

}  // namespace

Datum Taylor::series(Coefficients c) {
  Datum first = c[0];
  return make_number<Series>(std::move(first), std::move(c));
}
Datum Taylor::coefficient(const Datum& d, std::size_t k) const {
  const Series* s = series_of(d);
  if (s) return k < s->c.size() ? s->c[k] : Datum();
  return k == 0 ? d : Datum();
}
Datums Taylor::coefficients(std::span<const Datum> data, std::size_t k) const {
  Datums out;
  for (const Datum& d : data) out.push_back(coefficient(d, k));
  return out;
}

std::size_t Taylor::known(std::span<const Datum> data) const {
  std::size_t size = 0;
  for (const Datum& d : data)
    if (const Series* s = series_of(d)) size = size == 0 ? s->c.size() : std::min(size, s->c.size());
  return size;
}

Datum Taylor::apply(const Operation& op, std::span<const Datum> operands) {
  Coefficients r{perform(op, primals(operands))};
  if (!r[0].type().is_differentiable()) return r[0];
  const ir::OpInfo& row = ir::info(op.code);
  if (!row.elementwise && row.linearity == ir::Linearity::none) return r[0];
  // A product is linear in each operand: it needs no division, so a series may be over any semiring
  // (semiring/over.hpp).
  const bool product = op.code == Opcode::mul_;
  for (std::size_t k = 1, size = known(operands); k < size; ++k)
    if (row.elementwise && !product)
      r.push_back(elementwise(op, operands, r, k));
    else if (!product && row.linearity == ir::Linearity::joint)
      r.push_back(tangent({op, primals(operands), r[0], Datum()}, coefficients(operands, k)));
    else
      r.push_back(by_leibniz(op, operands, k));
  return series(std::move(r));
}

Datum Taylor::truncated(const Datum& d, std::size_t size) {
  const Series* s = series_of(d);
  if (!s) return d;
  if (size == 1) return s->c[0];
  return series(Coefficients(s->c.begin(), s->c.begin() + static_cast<long>(size)));
}

// ---- one coefficient of the result ----

Datum Taylor::elementwise(const Operation& op, std::span<const Datum> operands, const Coefficients& r,
                          std::size_t k) {
  Datums lower;
  for (const Datum& d : operands) lower.push_back(truncated(d, k));
  const Datum result = k == 1 ? r[0] : series(r);
  const Datums in = primals(operands);
  Datum total;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!series_of(operands[i]) || !carries_derivative(op, i, operands.size())) continue;
    const auto received = [&](const ir::Formula& f) {
      const Datum v = evaluate_formula(f, {op, lower, result, Datum()});
      Datum all;
      for (std::size_t j = 1; j <= k; ++j) {
        const Datum x = coefficient(operands[i], j), factor = coefficient(v, k - j);
        if (x.empty() || factor.empty()) continue;
        Datum term = multiply(x, factor, op.loc);
        if (j != k) term = scale(static_cast<double>(j) / static_cast<double>(k), term, op.loc);
        all = sum(all, term, op.loc);
      }
      return all;
    };
    const ir::Formula& f = *ir::derivative(op.code, i, operands.size());
    total = sum(total, by_cases(f, {op, in, r[0], Datum()}, r[0], received), op.loc);
  }
  return total;
}

// A product, or x plus one, by Leibniz' rule: over all ways to give each factor that varies a coefficient, k in all.
Datum Taylor::by_leibniz(const Operation& op, std::span<const Datum> operands, std::size_t k) {
  const ir::Notation* const notation = ir::notation_of(op.code, op.text);
  const bool accumulating = notation && notation->accumulates;
  std::vector<std::size_t> varying;
  for (std::size_t i = accumulating ? 1 : 0; i < operands.size(); ++i)
    if (series_of(operands[i]) && carries_derivative(op, i, operands.size())) varying.push_back(i);
  Datum total = accumulating ? coefficient(operands[0], k) : Datum();
  if (varying.empty()) return total;
  Datums in = primals(operands);
  const auto over = [&](auto& self, std::size_t factor, std::size_t rest) -> void {
    const bool last = factor + 1 == varying.size();
    for (std::size_t j = last ? rest : 0; j <= rest; ++j) {
      const std::size_t i = varying[factor];
      const Datum c = coefficient(operands[i], j);
      if (c.empty()) continue;
      in[i] = c;
      if (!last) {
        self(self, factor + 1, rest - j);
      } else if (accumulating) {
        in[0] = total.empty() ? zeros_like(primal(operands[0]), op.loc) : total;
        total = perform(op, in);
      } else {
        total = sum(total, perform(op, in), op.loc);
      }
    }
  };
  over(over, 0, k);
  return total;
}

// ---- functions with rules ----

namespace {

double factorial(std::size_t k) {
  double product = 1;
  for (std::size_t i = 2; i <= k; ++i) product *= static_cast<double>(i);
  return product;
}

/// The polynomial c[0] + c[1] t + ... at t; t is of type double.
Datum polynomial(const Coefficients& c, const Datum& t, const Location& loc) {
  const ir::Type element(c[0].type().element());
  const Datum at =
      element == t.type() ? t : perform({Opcode::cast_, static_cast<std::int64_t>(element.kind()), loc}, {t});
  Datum total;
  for (std::size_t k = c.size(); k-- > 0;) {
    if (!total.empty()) total = multiply(total, at, loc);
    total = sum(total, c[k], loc);
  }
  return total.empty() ? zeros_like(c[0], loc) : total;
}

/// Its derivative.
Coefficients derivative(const Coefficients& c, const Location& loc) {
  Coefficients out(c.begin() + 1, c.end());
  for (std::size_t k = 2; k < c.size(); ++k)
    if (!c[k].empty()) out[k - 1] = scale(static_cast<double>(k), c[k], loc);
  if (out[0].empty()) out[0] = zeros_like(c[0], loc);
  return out;
}

/// Where the coefficients of each argument stand in a list; 0: the coefficient is zero.
using Places = std::vector<std::vector<std::size_t>>;

/// What a rule gives for x(t) and x'(t), of which `in` has t and the coefficients.
Rule::Split tangent_along(const Rule& rule, const Places& places, const Datums& in, const Location& loc) {
  Datums x, dx;
  for (const std::vector<std::size_t>& place : places) {
    Coefficients c;
    for (const std::size_t k : place) c.push_back(k == 0 ? Datum() : in[k]);
    if (place.size() == 1) {
      x.push_back(c[0]);
      continue;
    }
    const Coefficients dc = derivative(c, loc);
    c.pop_back();
    x.push_back(polynomial(c, in[0], loc));
    dx.push_back(polynomial(dc, in[0], loc));
  }
  Rule::Split out = rule.tangent(x, dx);
  require_derivatives(rule, out.results, out.rest, "result", loc);
  return out;
}

}  // namespace

// y(t) = f(x(t)) has y'(t) = tangent(x(t), x'(t)), which a Taylor mode of its own expands in t. Where the
// order is one less this ends, also for rules that lead to themselves.
Datums Taylor::follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) {
  const std::size_t size = known(arguments);
  if (size == 1) {
    Datums values = rule->forward(primals(arguments)).results;
    require_untagged(*rule, values, *this, loc);
    for (Datum& y : values)
      if (y.type().is_differentiable()) y = series({y});
    return values;
  }
  // t, and all coefficients in a row: a program sees data that it is given.
  Datums given{Datum::number(0.0, ir::F64)};
  Places places(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i)
    for (std::size_t k = 0; k < (arguments[i].type().is_differentiable() ? size : 1); ++k) {
      const Datum c = coefficient(arguments[i], k);
      places[i].push_back(c.empty() ? 0 : given.size());
      if (!c.empty()) given.push_back(c);
    }
  std::size_t count = 0;  // of the values
  const Program along{rule->name + "_along", [&](const Datums& in) {
                        const auto [values, derivatives] = tangent_along(*rule, places, in, loc);
                        count = values.size();
                        return joined(values, derivatives);
                      }};
  Active by_t(given.size(), false);
  by_t[0] = true;
  const std::vector<Datums> orders =
      size == 2 ? std::vector<Datums>{along.run(given)}
                : taylor(along, given, by_t, {Datum::number(1.0, ir::F64)}, static_cast<int>(size) - 2, loc);
  for (const Datums& order : orders) require_untagged(*rule, order, *this, loc);
  return integrated(slice(orders[0], 0, count), orders, loc);
}

Datums Taylor::integrated(Datums values, const std::vector<Datums>& orders, const Location& loc) {
  std::size_t from_last = floating(values).size();
  for (Datum& y : values) {
    if (!y.type().is_differentiable()) continue;
    Coefficients c{y};
    for (const Datums& order : orders) {
      const std::size_t k = c.size();
      const Datum& d = order[order.size() - from_last];  // k - 1 times differentiated: k! times the coefficient
      c.push_back(k == 1 ? d : scale(1.0 / factorial(k), d, loc));
    }
    y = series(std::move(c));
    --from_last;
  }
  return values;
}

// ---- staged ----

Datums StagedTaylor::companions_of(const Datum& d, const Location& loc) const {
  Datums out;
  for (std::size_t k = 1; k <= order_; ++k) {
    const Datum c = coefficient(d, k);
    out.push_back(c.empty() ? zeros_like(d, loc) : c);
  }
  return out;
}

Datum StagedTaylor::with(const Datum& primal, std::span<const Datum> companions) {
  return series(joined({primal}, Datums(companions.begin(), companions.end())));
}

namespace {

/// Active arguments x as x + t dx.
Datums lines(Taylor& mode, const Datums& arguments, const Active& active, const Datums& tangents, std::size_t size) {
  return with_active(arguments, active, [&, dx = tangents.begin()](const Datum& x) mutable {
    Coefficients c{x, *dx++};
    c.resize(size);
    return mode.series(std::move(c));
  });
}

/// The derivatives of order 0, then of order 1, and so on: k! times the coefficients of the results.
std::vector<Datums> derivatives(const Taylor& mode, const Datums& results, std::size_t size,
                              const Location& loc) {
  std::vector<Datums> out(size);
  for (std::size_t k = 0; k < size; ++k)
    for (const Datum& r : results) {
      if (k > 0 && !r.type().is_differentiable()) continue;
      Datum c = mode.coefficient(r, k);
      if (c.empty()) c = zeros_like(r, loc);
      if (k > 1) c = scale(factorial(k), c, loc);
      out[k].push_back(c);
    }
  return out;
}

std::vector<Datums> eager_taylor(const Program& program, const Datums& arguments, const Active& active,
                               const Datums& tangents, std::size_t size, const Location& loc) {
  const Evaluation evaluation;
  const auto mode = std::make_shared<Taylor>(fresh_number());
  const Ending ending{*mode};
  return derivatives(*mode, program.run(lines(*mode, arguments, active, tangents, size)), size, loc);
}

/// The program's graph run on series: derivatives by order.
std::vector<Datums> staged_taylor(Staging& s, const Program& program, const Datums& arguments,
                                const Active& active, const Datums& tangents, std::size_t size,
                                const Location& loc) {
  std::vector<ir::Type> results;
  const Datums all = derivative_unit(
      s, "taylor", program, arguments, active, Beside::arguments, tangents, loc, [&](const Unit& unit) {
        results = unit.primal.result_types;
        const auto mode = std::make_shared<StagedTaylor>(s, fresh_number(), size - 1);
        const Ending ending{*mode};
        const Datums in = lines(*mode, unit.arguments, unit.active, unit.beside, size);
        Datums out;
        for (const Datums& order : derivatives(*mode, Replay(s, mode.get()).run(unit.primal, in), size, loc))
          out = joined(std::move(out), order);
        return out;
      });
  std::vector<Datums> out(size);
  auto next = all.begin();
  for (std::size_t k = 0; k < size; ++k)
    for (const ir::Type& t : results)
      if (k == 0 || t.is_differentiable()) out[k].push_back(*next++);
  return out;
}

}  // namespace

std::vector<Datums> taylor(const Program& program, const Datums& arguments, const Active& active,
                         const Datums& tangents, int order, const Location& loc) {
  require_tangents("taylor", arguments, active, tangents, loc);
  const auto size = static_cast<std::size_t>(order) + 1;
  if (Staging* s = context().staging)
    return staged_taylor(*s, program, arguments, active, tangents, size, loc);
  return eager_taylor(program, arguments, active, tangents, size, loc);
}

}  // namespace lantern::core::ad
