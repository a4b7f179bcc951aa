// The rules of all operators, declared from the table, and what they share.
#pragma once

#include "lantern/compiler/onnx/operator.hpp"

namespace lantern::onnx {

/// The newest version of ai.onnx whose operators mean what they do here.
inline constexpr int newest = 22;

namespace rules {
#define LANTERN_ONNX_OPERATOR(domain, name, since, until, rule, partial, foldable) Terms rule(const Call& c);
#include "lantern/compiler/onnx/operators.inc"
#undef LANTERN_ONNX_OPERATOR

/// The elements as a Cast brings them from one type to another.
Datum converted(const Call& c, const Datum& x, Element from, Element to);
/// Products of the last two dimensions, those before them broadcast.
Datum matrix_product(const Call& c, const Datum& a, const Datum& b);
/// The logarithm of exp(x) divided by its sum along an axis, and that itself.
Datum log_softmax_along(const Call& c, const Datum& x, int axis);
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
