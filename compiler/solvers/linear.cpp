// The rule of solve: derivatives are those of the solution, and not of the factors.
#include "lantern/compiler/solvers/linear.hpp"

#include <memory>

#include "lantern/compiler/ad/custom_rule.hpp"

namespace lantern::solvers::detail {

namespace {

template <core::FloatElement E>
Datum typed_solve(const Datum& a, const Datum& b, const core::Location& loc) {
  const auto rule = std::make_shared<core::ad::Rule>();
  rule->name = rule->what = "solve";
  rule->primal = [](const Datums& in) {
    return Datums{solvers::solve(lu(Matrix<E>(in[0])), Vector<E>(in[1])).datum()};
  };
  rule->backward = [loc](const Datums& residuals, const Datums& cotangents) {
    const Vector<E> w(typed_solve<E>(transpose(Matrix<E>(residuals[0])).datum(), cotangents[0], loc));
    return Datums{(-outer(w, Vector<E>(residuals[2]))).datum(), w.datum()};
  };
  rule->linear = [loc](const Datums& residuals, const Datums& tangents) {
    const Vector<E> change = matmul(Matrix<E>(tangents[0]), Vector<E>(residuals[2]));
    return Datums{typed_solve<E>(residuals[0], (Vector<E>(tangents[1]) - change).datum(), loc)};
  };
  return core::ad::call_with_rule(rule, {a, b}, loc)[0];
}

}  // namespace

Datum solve(const Datum& a, const Datum& b, const core::Location& loc) {
  return a.type().element() == ir::Kind::f32 ? typed_solve<float>(a, b, loc) : typed_solve<double>(a, b, loc);
}

}  // namespace lantern::solvers::detail
