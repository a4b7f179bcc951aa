// Second partial derivatives of an operation, from the table of first ones.
#pragma once

#include <optional>

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/ad/op_derivative.hpp"

namespace lantern::core::ad {

/// d2 op / dxi dxj: the formula of the first derivative by xi, by forward mode in xj. `first_j` is d op /
/// dxj. Empty where it vanishes.
Datum second_partial(const Operation& op, const Datums& primals, const Datum& result, std::size_t i,
                     std::size_t j, const Datum& first_j);

/// What an operation contributes to a Hessian: first and second partial derivatives by its variables; empty where
/// zero.
struct Partials {
  std::vector<Name> by;
  Datums first;
  std::vector<Datums> second;
  Location loc;
};
/// Of op(primals...) = y. `variables`: which one each operand is, if it is one.
Partials partials_of(const Operation& op, const Datums& primals, const Datum& y,
                     const std::vector<std::optional<Name>>& variables);

/// The row of a variable in a Hessian: the entries with others, and that with itself.
struct HessianRow {
  std::vector<std::pair<Name, Datum>> others;
  Datum diagonal;
};
/// Undoes an operation with the result r, whose derivatives are p, in the gradient a and the Hessian h of a program
/// by its live variables (hessian_reverse.cpp): with w = a[r] and u = h[r], taken out,
///
///   a[x]    += d op/dx w
///   h[x, v] += d op/dx u[v]                                      for v other than r, twice where v is x
///   h[x, y] += d op/dx d op/dy u[r] + d2 op/dx dy w              for operands x and y
///
/// `live` has a and h. It says what a derivative is where r is undone (here), and how products and entries look, of
/// which some may be half of what they represent (product, kept, is_halved).
template <class Live>
void substitute(Live& live, const Partials& p, Name r) {
  const Datum w = live.take(r);
  const HessianRow u = live.take_row(r);
  if (w.empty() && u.others.empty() && u.diagonal.empty()) return;
  for (std::size_t i = 0; i < p.by.size(); ++i) {
    const Name x = p.by[i];
    const Datum first = live.here(p.first[i]);
    if (!w.empty()) live.add(x, perform_broadcast({Opcode::mul_, 0, p.loc}, first, w), p.loc);
    for (const auto& [v, uv] : u.others) {
      const Datum term = live.product(x, v, first, uv, p.loc);
      live.add_entry(x, v, term, p.loc);
      if (x == v && !live.is_halved(x, v)) live.add_entry(x, v, term, p.loc);
    }
    for (std::size_t j = 0; j < p.by.size(); ++j) {
      const Name y = p.by[j];
      if (x != y && j < i) continue;  // one entry for both orders
      const auto add = [&](const Datum& a, const Datum& b) {
        live.add_entry(x, y, live.kept(x, y, perform_broadcast({Opcode::mul_, 0, p.loc}, a, b), p.loc), p.loc);
      };
      if (!u.diagonal.empty()) add(live.product(x, y, first, live.here(p.first[j]), p.loc), u.diagonal);
      if (const Datum second = live.here(p.second[i][j]); !w.empty() && !second.empty()) add(second, w);
    }
  }
}

/// What a function with a rule computes, and the derivatives that its rule gives of each floating result: of
/// the shape of one argument, or of two.
struct RulePartials {
  Datums values;
  std::vector<Datums> first;                ///< by result, by variable
  std::vector<std::vector<Datums>> second;  ///< by result, by two variables
};
/// Of a function with scalar results: the first derivatives by the arguments at the places `by`, scalars and
/// vectors, as the rule gives them, and the second ones, by forward mode of the rule. Error, naming `loc`,
/// for other results and arguments.
RulePartials partials_of(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                         const std::vector<std::size_t>& by, const Location& loc);

}  // namespace lantern::core::ad
