// Fixed points, and the fixed points that their derivatives are.
#include "lantern/compiler/ad/fixpoint.hpp"

#include <algorithm>
#include <limits>

#include "lantern/compiler/staging/requirement.hpp"

namespace lantern::core::ad {

namespace {

class Fixpoint : public std::enable_shared_from_this<Fixpoint> {
 public:
  /// `linear`: f is w -> b + L w, with w0 = b.
  Fixpoint(Program f, std::size_t components, FixpointOptions options, bool linear)
      : f_(std::move(f)), n_(components), options_(options), loc_(here(options.place)), linear_(linear) {}

  Datums operator()(const Datums& x0, const Datums& arguments) const {
    Datums in;
    // Not a derivative of the start: it would be solved for in vain.
    for (const Datum& d : x0) in.push_back(perform({Opcode::stop_gradient_, 0, loc_}, {d}));
    return call_with_rule(rule(), joined(in, arguments), loc_);
  }

 private:
  std::shared_ptr<const Rule> rule() const {
    const auto rule = std::make_shared<Rule>();
    const auto self = shared_from_this();
    rule->name = "fixpoint_" + f_.name;
    rule->what = "fixpoint";
    rule->primal = [self](const Datums& in) { return self->solve(in); };
    rule->backward = [self](const Datums& residuals, const Datums& g) { return self->backward(residuals, g); };
    rule->linear = [self](const Datums& residuals, const Datums& t) { return self->tangent(residuals, t); };
    return rule;
  }

  Datum op(Opcode code, std::initializer_list<Datum> operands) const {
    return perform({code, 0, loc_}, operands);
  }

  /// The sum of the squares of all elements, as a double.
  Datum square(const Datums& x) const {
    Datum total;
    for (const Datum& d : x) {
      Datum s =
          d.type().is_tensor() ? op(Opcode::sum_, {op(Opcode::mul_, {d, d})}) : op(Opcode::mul_, {d, d});
      if (s.type() != ir::F64)
        s = perform({Opcode::cast_, static_cast<std::int64_t>(ir::Kind::f64), loc_}, {s});
      total = total.empty() ? s : op(Opcode::add_, {total, s});
    }
    return total.empty() ? Datum::number(0.0, ir::F64) : total;
  }

  double tolerance(const Datums& x) const {
    if (options_.tolerance > 0) return options_.tolerance;
    const bool single =
        std::ranges::any_of(x, [](const Datum& d) { return d.type().element() == ir::Kind::f32; });
    return single ? 1e-6 : 1e-12;
  }

  /// The components of f(x, arguments).
  Datums apply(const Datums& x, const Datums& arguments) const {
    Datums next = f_.run(joined(x, arguments));
    for (std::size_t i = 0; i < n_; ++i) {
      const std::string what = "fixpoint: expected f to give component " + std::to_string(i) + " of x as " +
                               x[i].type().str() + ", got ";
      if (!ir::compatible(next[i].type(), x[i].type())) raise_at(loc_, what + next[i].type().str());
      detail::require_same_sizes(next[i], x[i], 0, what + "another size", loc_);
    }
    return next;
  }

  Datums solve(const Datums& in) const {
    const Datums x0 = slice(in, 0, n_), arguments = slice(in, n_, in.size());
    const double t = tolerance(x0);
    const Datum square_of_tolerance = Datum::number(t * t, ir::F64);
    const Datum least = linear_ ? square(x0) : Datum::number(1.0, ir::F64);
    const Datum last = Datum::integer(options_.iterations, ir::I64);
    // x, the number of applications, and whether x still moves; a NaN moves.
    const Datums done = detail::loop(
        joined(x0, {Datum::integer(0, ir::I64), Datum::integer(1, ir::Bool)}),
        [&](const Datums& s) {
          return op(Opcode::land_, {s[n_ + 1], op(Opcode::lt_, {s[n_], last})});
        },
        [&](const Datums& s) {
          const Datums x = slice(s, 0, n_), next = apply(x, arguments);
          Datums step;
          for (std::size_t i = 0; i < n_; ++i) step.push_back(op(Opcode::sub_, {next[i], x[i]}));
          const Datum bound =
              op(Opcode::mul_, {square_of_tolerance, op(Opcode::add_, {least, square(next)})});
          const Datum at_rest = op(Opcode::le_, {square(step), bound});
          return joined(
              next, {op(Opcode::add_, {s[n_], Datum::integer(1, ir::I64)}), op(Opcode::lnot_, {at_rest})});
        },
        loc_);
    Datums x = slice(done, 0, n_);
    const Datum at_rest = op(Opcode::lnot_, {strip(done[n_ + 1])});
    if (options_.raise) {
      detail::require(at_rest,
                      std::string("fixpoint: expected ") +
                          (linear_ ? "the equation of the derivative" : "the iteration") +
                          " to converge within " + std::to_string(options_.iterations) +
                          " applications of f, got a step above the tolerance",
                      loc_);
      return x;
    }
    for (Datum& d : x) {
      const ir::Type element(d.type().element());
      const Datum nan = Datum::number(std::numeric_limits<double>::quiet_NaN(), element);
      d = perform_broadcast({Opcode::add_, 0, loc_}, d,
                            op(Opcode::select_, {at_rest, Datum::zero(element), nan}));
    }
    return x;
  }

  /// w = g + (df/dx)^T w at the solution; then (df/darguments)^T w, and zero for x0.
  Datums backward(const Datums& residuals, const Datums& g) const {
    const auto [x0, arguments, x] = parts(residuals);
    const Datums at = joined(x, arguments);
    const Datums w = solution("adjoint_", at, g, [](const Fixpoint& f, const Datums& in, const Datums& w_before) {
      return vjp(f.f_, in, f.by_x(in), w_before, false, f.loc_);
    });
    Datums out = zeros(x0);
    const Active active = floating_arguments(arguments);
    if (std::ranges::none_of(active, [](bool a) { return a; })) return out;
    return joined(std::move(out), vjp(f_, at, active, w, false, loc_));
  }

  /// dx = (df/dx) dx + (df/darguments) darguments at the solution.
  Datums tangent(const Datums& residuals, const Datums& tangents) const {
    const auto [x0, arguments, x] = parts(residuals);
    const Active active = floating_arguments(arguments);
    if (std::ranges::none_of(active, [](bool a) { return a; })) return zeros(x);
    const Datums at = joined(x, arguments);
    const Datums right = derivative(at, active, slice(tangents, n_, tangents.size()));
    return solution("tangent_", at, right, [](const Fixpoint& f, const Datums& in, const Datums& dx) {
      return f.derivative(in, f.by_x(in), dx);
    });
  }

  struct Parts {
    Datums x0, arguments, x;
  };
  Parts parts(const Datums& residuals) const {
    const std::size_t m = residuals.size() - n_;
    return {slice(residuals, 0, n_), slice(residuals, n_, m), slice(residuals, m, m + n_)};
  }
  Datums zeros(const Datums& like) const {
    Datums out;
    for (const Datum& d : like) out.push_back(zeros_like(d, loc_));
    return out;
  }
  Datums derivative(const Datums& at, const Active& active, const Datums& tangents) const {
    return slice(jvp(f_, at, active, tangents, loc_), n_, 2 * n_);
  }

  /// The solution w of w = right + L w, where L = map(*this, at, .).
  Datums solution(const char* prefix, const Datums& at, const Datums& right,
                  Datums (*map)(const Fixpoint& f, const Datums& at, const Datums& w)) const {
    const Program equation{prefix + f_.name, [self = shared_from_this(), map](const Datums& in) {
                             const std::size_t n = self->n_, m = in.size() - n;
                             Datums out = map(*self, slice(in, n, m), slice(in, 0, n));
                             for (std::size_t i = 0; i < n; ++i)
                               out[i] = self->op(Opcode::add_, {out[i], in[m + i]});
                             return out;
                           }};
    return (*std::make_shared<const Fixpoint>(equation, n_, options_, true))(right, joined(at, right));
  }

  /// Which of x and the arguments are differentiated: x.
  Active by_x(const Datums& at) const {
    Active active(at.size(), false);
    std::fill_n(active.begin(), n_, true);
    return active;
  }
  /// Which of x and the arguments are differentiated: the floating arguments.
  Active floating_arguments(const Datums& arguments) const {
    Active active(n_, false);
    for (const Datum& d : arguments) active.push_back(d.type().is_differentiable());
    return active;
  }

  Program f_;
  std::size_t n_;
  FixpointOptions options_;
  Location loc_;
  bool linear_;
};

}  // namespace

Datums fixpoint(const Program& f, const Datums& x0, const Datums& arguments, const FixpointOptions& options) {
  for (std::size_t i = 0; i < x0.size(); ++i)
    if (!x0[i].type().is_differentiable())
      raise_at(here(options.place), "fixpoint: expected component " + std::to_string(i) +
                                        " of x to be floating, got " + x0[i].type().str());
  return (*std::make_shared<const Fixpoint>(f, x0.size(), options, false))(x0, arguments);
}

}  // namespace lantern::core::ad
