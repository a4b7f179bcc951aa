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

#include "lantern/compiler/ad/op_derivative.hpp"
#include "lantern/compiler/ad/modes/modes.hpp"
#include "lantern/compiler/ad/unit.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

namespace {

Datum add(const Datum& a, const Datum& b, const Location& loc) {
  return a.empty() ? b : perform({Opcode::add_, 0, loc}, {a, b});
}
Datum multiply(const Datum& a, const Datum& b, const Location& loc) {
  return perform_broadcast({Opcode::mul_, 0, loc}, a, b);
}
Datum scale(double c, const Datum& x, const Location& loc) {
  return multiply(Datum::number(c, ir::Type(x.type().element())), x, loc);
}
}  // namespace

Datum Taylor::series(Coefficients c) {
  Datum first = c[0];
  const ir::Type type = first.type();
  return Datum::boxed(new Series(*this, std::move(first), std::move(c)), type);
}
Datum Taylor::coefficient(const Datum& d, std::size_t k) const {
  const Series* s = series_of(d);
  if (s) return k < s->c.size() ? s->c[k] : Datum();
  return k == 0 ? d : Datum();
}

const Taylor::Series* Taylor::series_of(const Datum& d) const {
  if (!d.is_tagged()) return nullptr;
  const auto* box = static_cast<const TaggedBox*>(d.box());
  return box->mode.get() == this ? static_cast<const Series*>(box) : nullptr;
}

Datum Taylor::apply(const Operation& op, std::span<const Datum> operands) {
  std::size_t size = 0;  // the number of coefficients known of every operand
  Datums primals;
  for (const Datum& d : operands) {
    const Series* s = series_of(d);
    if (s) size = size == 0 ? s->c.size() : std::min(size, s->c.size());
    primals.push_back(coefficient(d, 0));
  }
  Coefficients r{perform(op, primals)};
  if (!r[0].type().is_differentiable()) return r[0];
  const ir::OpInfo& row = ir::info(op.code);
  if (!row.elementwise && row.linearity == ir::Linearity::none) return r[0];
  // A product is linear in each operand: it needs no division, so a series may be over any semiring
  // (semiring/over.hpp).
  const bool product = op.code == Opcode::mul_;
  for (std::size_t k = 1; k < size; ++k)
    r.push_back(row.elementwise && !product
                    ? elementwise(op, operands, r, k)
                    : linear(op, operands, product ? ir::Linearity::each : row.linearity, k));
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
  Datum sum;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!series_of(operands[i]) || !carries_derivative(op, i, operands.size())) continue;
    const Datum v =
        evaluate_formula(*ir::derivative(op.code, i, operands.size()), {op, lower, result, Datum()});
    for (std::size_t j = 1; j <= k; ++j) {
      const Datum x = coefficient(operands[i], j), factor = coefficient(v, k - j);
      if (x.empty() || factor.empty()) continue;
      Datum term = multiply(x, factor, op.loc);
      if (j != k) term = scale(static_cast<double>(j) / static_cast<double>(k), term, op.loc);
      sum = add(sum, term, op.loc);
    }
  }
  return sum;
}

Datum Taylor::linear(const Operation& op, std::span<const Datum> operands, ir::Linearity linearity,
                     std::size_t k) {
  const std::size_t n = operands.size();
  Datums at_zero;
  for (const Datum& d : operands) at_zero.push_back(coefficient(d, 0));
  std::vector<std::size_t> varying;
  for (std::size_t i = 0; i < n; ++i)
    if (series_of(operands[i]) && carries_derivative(op, i, n)) varying.push_back(i);
  if (linearity == ir::Linearity::joint) {
    Datums in = at_zero;
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
      if (!carries_derivative(op, i, n)) continue;
      const Datum x = coefficient(operands[i], k);
      any |= !x.empty();
      in[i] = x.empty() ? zeros_like(at_zero[i], op.loc) : x;
    }
    return any ? perform(op, in) : Datum();
  }
  // x plus a product, or a product of two: by Leibniz' rule.
  const bool accumulating = linearity == ir::Linearity::accumulating;
  Datum sum = accumulating ? coefficient(operands[0], k) : Datum();
  if (accumulating) std::erase(varying, std::size_t{0});
  if (varying.empty()) return sum;
  const auto product = [&](std::size_t a, std::size_t b) {
    Datums in = at_zero;
    const auto put = [&](std::size_t i, std::size_t order) {
      return !(in[i] = coefficient(operands[i], order)).empty();
    };
    if (!put(varying[0], a)) return;
    if (varying.size() > 1 && !put(varying[1], b)) return;
    if (accumulating) {
      in[0] = sum.empty() ? zeros_like(at_zero[0], op.loc) : sum;
      sum = perform(op, in);
    } else {
      sum = add(sum, perform(op, in), op.loc);
    }
  };
  if (varying.size() == 1)
    product(k, 0);
  else
    for (std::size_t j = 0; j <= k; ++j) product(j, k - j);
  return sum;
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
  Datum sum;
  for (std::size_t k = c.size(); k-- > 0;) {
    if (!sum.empty()) sum = multiply(sum, at, loc);
    if (!c[k].empty()) sum = sum.empty() ? c[k] : perform({Opcode::add_, 0, loc}, {sum, c[k]});
  }
  return sum.empty() ? zeros_like(c[0], loc) : sum;
}

}  // namespace

// y(t) = f(x(t)) has y'(t) = tangent(x(t), x'(t)), which a Taylor mode of its own expands in t. Where the
// order is one less this ends, also for rules that lead to themselves.
Datums Taylor::follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) {
  std::size_t size = 0;
  for (const Datum& d : arguments)
    if (const Series* s = series_of(d)) size = size == 0 ? s->c.size() : std::min(size, s->c.size());
  Datums primals;
  for (const Datum& d : arguments) primals.push_back(coefficient(d, 0));
  if (size == 1) {
    Datums values = rule->forward(primals).results;
    require_untagged(*rule, values, *this, loc);
    for (Datum& y : values)
      if (y.type().is_differentiable()) y = series({y});
    return values;
  }
  // All coefficients in a row: a program sees data that it is given.
  Datums given{Datum::number(0.0, ir::F64)};
  std::vector<std::vector<std::size_t>> places(arguments.size());  // 0: the coefficient is zero
  for (std::size_t i = 0; i < arguments.size(); ++i)
    for (std::size_t k = 0; k < (primals[i].type().is_differentiable() ? size : 1); ++k) {
      const Datum c = coefficient(arguments[i], k);
      places[i].push_back(c.empty() ? 0 : given.size());
      if (!c.empty()) given.push_back(c);
    }
  std::size_t count = 0;  // of the values
  const Program derivative{
      rule->name + "_along", [&](const Datums& in) {
        Datums x, dx;
        for (const std::vector<std::size_t>& place : places) {
          Coefficients c, dc;
          for (std::size_t k = 0; k < place.size(); ++k) {
            const Datum v = place[k] == 0 ? Datum() : in[place[k]];
            if (k + 1 < place.size()) c.push_back(v);
            if (k > 0) dc.push_back(v.empty() || k == 1 ? v : scale(static_cast<double>(k), v, loc));
          }
          if (place.size() == 1) {
            x.push_back(in[place[0]]);
            continue;
          }
          x.push_back(polynomial(c, in[0], loc));
          if (dc[0].empty()) dc[0] = zeros_like(c[0], loc);
          dx.push_back(polynomial(dc, in[0], loc));
        }
        auto [values, derivatives] = rule->tangent(x, dx);
        require_derivatives(*rule, values, derivatives, "result", loc);
        count = values.size();
        values.insert(values.end(), derivatives.begin(), derivatives.end());
        return values;
      }};
  Active by_t(given.size(), false);
  by_t[0] = true;
  std::vector<Datums> orders{{}};
  if (size == 2)
    orders[0] = derivative.run(given);
  else
    orders =
        ad::taylor(derivative, given, by_t, {Datum::number(1.0, ir::F64)}, static_cast<int>(size) - 2, loc);
  for (const Datums& order : orders) require_untagged(*rule, order, *this, loc);
  Datums out(orders[0].begin(), orders[0].begin() + static_cast<std::ptrdiff_t>(count));
  const std::size_t m = floating(out).size();
  std::size_t j = 0;
  for (Datum& y : out) {
    if (!y.type().is_differentiable()) continue;
    Coefficients c{y};
    for (std::size_t k = 1; k < size; ++k) {
      const Datums& order = orders[k - 1];
      const Datum& d = order[order.size() - m + j];  // k - 1 times differentiated: k! times the coefficient
      c.push_back(k == 1 ? d : scale(1.0 / factorial(k), d, loc));
    }
    y = series(std::move(c));
    ++j;
  }
  return out;
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
  Coefficients c{primal};
  c.insert(c.end(), companions.begin(), companions.end());
  return series(std::move(c));
}

namespace {

Coefficients along(const Datum& x, const Datum& direction, std::size_t size) {
  Coefficients c(size);
  c[0] = x;
  if (size > 1) c[1] = direction;
  return c;
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
  Datums in = arguments;
  std::size_t at = 0;
  for (std::size_t i = 0; i < in.size(); ++i)
    if (active[i]) in[i] = mode->series(along(arguments[i], tangents[at++], size));
  return derivatives(*mode, program.run(in), size, loc);
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
        Datums in = unit.arguments, out;
        for (std::size_t i = 0, at = 0; i < in.size(); ++i)
          if (unit.active[i]) in[i] = mode->series(along(in[i], unit.beside[at++], size));
        for (const Datums& order : derivatives(*mode, Replay(s, mode.get()).run(unit.primal, in), size, loc))
          out.insert(out.end(), order.begin(), order.end());
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
