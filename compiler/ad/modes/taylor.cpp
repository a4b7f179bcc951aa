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
#include "lantern/compiler/ad/derivative_rule.hpp"
#include "lantern/compiler/ad/modes/modes.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::ad {

namespace {

/// Coefficients of a power series; the one of order 0 first. An empty datum is zero, except the first.
using Coefficients = Data;

class Taylor : public Mode {
 public:
  using Mode::Mode;
  const char* name() const override { return "Taylor mode"; }

  Datum series(Coefficients c) {
    Datum first = c[0];
    const ir::Type type = first.type();
    return Datum::boxed(new Series(shared_from_this(), std::move(first), std::move(c)), type);
  }
  /// The coefficient of t^k; empty if it is zero.
  Datum coefficient(const Datum& d, std::size_t k) const {
    const Series* s = series_of(d);
    if (s) return k < s->c.size() ? s->c[k] : Datum();
    return k == 0 ? d : Datum();
  }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    std::size_t size = 0;  // the number of coefficients known of every operand
    Data primals;
    for (const Datum& d : operands) {
      const Series* s = series_of(d);
      if (s) size = size == 0 ? s->c.size() : std::min(size, s->c.size());
      primals.push_back(coefficient(d, 0));
    }
    Coefficients r{perform(op, primals)};
    if (!r[0].type().is_differentiable()) return r[0];
    const ir::OpInfo& row = ir::info(op.code);
    if (!row.elementwise && row.linearity == ir::Linearity::none) return r[0];
    for (std::size_t k = 1; k < size; ++k)
      r.push_back(row.elementwise ? elementwise(op, operands, r, k) : linear(op, operands, row.linearity, k));
    return series(std::move(r));
  }

 private:
  struct Series : TaggedBox {
    Series(std::shared_ptr<Mode> m, Datum p, Coefficients all)
        : TaggedBox(std::move(m), std::move(p)), c(std::move(all)) {}
    Coefficients c;
  };
  const Series* series_of(const Datum& d) const {
    if (!d.is_tagged()) return nullptr;
    const auto* box = static_cast<const TaggedBox*>(d.box());
    return box->mode.get() == this ? static_cast<const Series*>(box) : nullptr;
  }

  /// The first `size` coefficients; a plain datum if that is one.
  Datum truncated(const Datum& d, std::size_t size) {
    const Series* s = series_of(d);
    if (!s) return d;
    if (size == 1) return s->c[0];
    return series(Coefficients(s->c.begin(), s->c.begin() + static_cast<long>(size)));
  }

  // ---- one coefficient of the result ----

  Datum elementwise(const Operation& op, std::span<const Datum> operands, const Coefficients& r,
                    std::size_t k) {
    Data lower;
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

  Datum linear(const Operation& op, std::span<const Datum> operands, ir::Linearity linearity, std::size_t k) {
    const std::size_t n = operands.size();
    Data at_zero;
    for (const Datum& d : operands) at_zero.push_back(coefficient(d, 0));
    std::vector<std::size_t> varying;
    for (std::size_t i = 0; i < n; ++i)
      if (series_of(operands[i]) && carries_derivative(op, i, n)) varying.push_back(i);
    if (linearity == ir::Linearity::joint) {
      Data in = at_zero;
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
      Data in = at_zero;
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

  static Datum add(const Datum& a, const Datum& b, const Location& loc) {
    return a.empty() ? b : perform({Opcode::add_, 0, loc}, {a, b});
  }
  static Datum multiply(const Datum& a, const Datum& b, const Location& loc) {
    return perform_broadcast({Opcode::mul_, 0, loc}, a, b);
  }
  static Datum scale(double c, const Datum& x, const Location& loc) {
    return multiply(Datum::number(c, ir::Type(x.type().element())), x, loc);
  }
};

struct Ending {
  Mode& mode;
  ~Ending() { mode.end(); }
};

double factorial(std::size_t k) {
  double product = 1;
  for (std::size_t i = 2; i <= k; ++i) product *= static_cast<double>(i);
  return product;
}

std::vector<Data> eager_taylor(const Program& program, const Data& arguments, const Active& active,
                               const Data& tangents, int order, const Location& loc) {
  const auto mode = std::make_shared<Taylor>(++context().tags);
  const Ending ending{*mode};
  const auto size = static_cast<std::size_t>(order) + 1;
  Data in = arguments;
  std::size_t at = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!active[i]) continue;
    Coefficients c(size);
    c[0] = in[i];
    if (order > 0) c[1] = tangents[at];
    ++at;
    in[i] = mode->series(std::move(c));
  }
  const Data results = program.run(in);
  std::vector<Data> out(size);
  for (std::size_t k = 0; k < size; ++k)
    for (const Datum& r : results) {
      Datum c = mode->coefficient(r, k);
      if (k > 0 && !r.type().is_differentiable()) continue;
      if (c.empty()) c = zeros_like(r, loc);
      if (k > 1)
        c = perform_broadcast({Opcode::mul_, 0, loc},
                              Datum::number(factorial(k), ir::Type(c.type().element())), c);
      out[k].push_back(c);
    }
  return out;
}

/// The derivative of a program in a direction, by forward mode: a program that staging takes, too.
Program directional(const Program& program, const Active& active, const Data& tangents, const Location& loc) {
  return {"d_" + program.name, [program, active, tangents, loc](const Data& x) {
            const Data both = jvp(program, x, active, tangents, loc);
            std::size_t values = 0, floating = 0;
            for (; values + floating < both.size(); ++values)
              floating += both[values].type().is_differentiable();
            return Data(both.begin() + static_cast<long>(values), both.end());
          }};
}

}  // namespace

std::vector<Data> taylor(const Program& program, const Data& arguments, const Active& active,
                         const Data& tangents, int order, const Location& loc) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (active[i])
      join_types(arguments[i].type(), tangents[at++].type(), "taylor: an argument and its tangent", loc);
  if (!context().staging) return eager_taylor(program, arguments, active, tangents, order, loc);
  // Control flow is given meaning unit by unit while staging: forward mode of forward mode.
  std::vector<Data> out;
  Program derivative = program;
  for (int k = 0; k <= order; ++k) {
    out.push_back(derivative.run(arguments));
    if (k < order) derivative = directional(derivative, active, tangents, loc);
  }
  return out;
}

}  // namespace lantern::ad
