// The rules of all operators, declared from the table, and what they share.
#pragma once

#include "lantern/compiler/onnx/operator.hpp"

namespace lantern::onnx {

/// The newest version of ai.onnx whose operators mean what they do here.
inline constexpr int newest = 28;
/// And of ai.onnx.ml.
inline constexpr int newest_ml = 5;

namespace rules {
#define LANTERN_ONNX_OPERATOR(domain, name, since, until, rule, partial, foldable, texts) \
  Terms rule(const Call& c);
#include "lantern/compiler/onnx/operators.inc"
#undef LANTERN_ONNX_OPERATOR

/// What places and windows are computed in.
inline constexpr ir::Kind f64 = ir::Kind::f64;
inline Datum real(double v) { return Datum::number(v, ir::F64); }

/// How a number that a format of 8 or 4 bits has no place for becomes one that it has.
struct Narrowing {
  bool saturate = true;         ///< to the largest number; else to infinity or NaN
  std::string rounding = "up";  ///< to powers of 2 (float8e8m0): up, down or nearest
};
/// The elements as a Cast brings them from one type to another.
Datum converted(const Call& c, const Datum& x, Element from, Element to, Narrowing how = {});
/// Numbers that strings are, and strings for numbers; both are needed while the program is made.
Datum from_texts(const Call& c, const Term& t, Element to);
Term as_texts(const Call& c, const Term& t);
/// Products of the last two dimensions, those before them broadcast.
Datum matrix_product(const Call& c, const Datum& a, const Datum& b);
/// The logarithm of exp(x) divided by its sum along an axis, and that itself.
Datum log_softmax_along(const Call& c, const Datum& x, int axis);
/// The elements along one dimension from lo to below hi, each step-th.
Datum part_of(const Call& c, const Datum& x, int axis, const Datum& lo, const Datum& hi,
              std::int64_t step = 1);
/// A tensor whose elements are known, as a term.
Term literal_term(const Sizes& values, Element e);
}  // namespace rules

/// What operators do on elements one by one (partial.cpp).
namespace partial {
/// Element by element, as the rule does on numbers.
std::optional<Terms> elementwise(const Call& c, Rule rule);
/// Elements at other places: what the rule does to their numbers, it does to them.
std::optional<Terms> moved(const Call& c, Rule rule);
/// The first operand alone is moved, the others say where to.
std::optional<Terms> moved_first(const Call& c, Rule rule);
/// A fold over all elements of a vector.
std::optional<Terms> reduced(const Call& c, Rule rule);
}  // namespace partial

}  // namespace lantern::onnx
