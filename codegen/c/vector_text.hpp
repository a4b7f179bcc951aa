// Text of functions on vectors.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lantern::codegen {

/// In bytes: of the least processors of the families, for which a stand-alone source may be compiled,
/// and of the widest there are.
inline constexpr int common_register = 16, widest_register = 64;

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
/// What loads and stores of some lanes of f64 and i64 need.
std::string_view double_masks();

/// The body of a load of every second, third or fourth element, so many: loads from end to end, of which some
/// are taken. Nothing beyond the last one is touched, which takes `step` - 1 lanes. With `some`, a function
/// that loads the first of so many lanes, nothing is read behind element (n - 1) step.
std::string load_every(int step, int lanes, const std::string& type, const std::string& some = {});
/// Parameters and body of a function that adds to every second, third or fourth element: registers from end
/// to end, of which some lanes are stored. Other elements are not touched. Without masked stores, lane by
/// lane. Needs double_masks. What is stored without being read goes lane by lane in any case: where it is
/// read soon after, processors wait for masked stores.
std::string add_every(int step, int lanes, const std::string& type, const std::string& element);

}  // namespace lantern::codegen
