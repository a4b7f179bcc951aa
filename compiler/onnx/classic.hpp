// What the operators of ai.onnx.ml share: lists in attributes, examples, scores and labels.
#pragma once

#include <string>

#include "lantern/compiler/onnx/operator.hpp"

namespace lantern::onnx::rules {

/// A list of numbers or strings in an attribute, as a vector; empty where there is none.
Term list(const Call& c, const std::string& name);
/// Its number of elements; 0 where there is none.
std::int64_t length_of(const Term& t);
/// The operand as a matrix of floating-point numbers, an example a row.
Datum examples(const Call& c);
/// The element type of a result: float64 for operands of float64, else float32.
Element real_element(const Call& c);
Datum constant_like(double v, const Datum& like);

/// Scores [n, classes] after what the attribute 'post_transform' asks for.
Datum transformed(const Call& c, const Datum& scores, const std::string& how);
std::string post_transform(const Call& c);

/// The labels of a classifier: strings, or the integers of the attribute of that name.
Term labels_of(const Call& c, const char* integers);
/// The labels with these numbers.
Term chosen(const Call& c, const Term& labels, const Datum& numbers);
/// For each row of scores the number of the largest.
Datum best(const Call& c, const Datum& scores);
/// Two columns side by side.
Datum pair_of(const Call& c, const Datum& first, const Datum& second);
/// 1 where the one score [n, 1] is above a bound, else 0.
Datum above(const Call& c, const Datum& score, double bound);

}  // namespace lantern::onnx::rules
