// Text of functions on vectors.
#pragma once

#include <span>
#include <string_view>

namespace lantern::codegen {

/// A function on vectors of one type. In the text $V is the vector, $N its name, $E its
/// element, $L the number of lanes, $I the vector of as many i64, $M that of as many integers of
/// the element's size.
struct VectorTemplate {
  std::string_view name;
  std::string_view needs;  ///< other functions on the same vectors, separated by blanks
  std::string_view text;
};

/// What is written otherwise for f32 than for f64 and i64, whose lanes are as wide as truth values.
std::span<const VectorTemplate> float_vector_templates();
/// What is written otherwise for truth values.
std::span<const VectorTemplate> truth_templates();
/// Functions of <math.h> on f32 that are written out.
std::span<const VectorTemplate> float_math_templates();
/// What loads and stores of some lanes of f32 need.
std::string_view float_masks();

}  // namespace lantern::codegen
