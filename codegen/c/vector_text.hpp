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
/// the element's size; $P and $p are what loads and stores of some lanes go by, $C and $D a pointer as theirs; $f ends a function's
/// name of f32. Of truth values $< is before an element that is read, and $> behind a lane that is stored.
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

/// The body of a strided load; `step` is 2, 3 or 4. It loads whole vectors and shuffles them. It reads nothing after
/// the last element that it needs. `some` names a function that loads the first n lanes: then nothing after element
/// (n - 1) step is read.
std::string load_every(int step, int lanes, const std::string& type, const std::string& some = {});
/// Parameters and body of a function that adds to elements with a stride; `step` is 2, 3 or 4. It uses masked loads and
/// stores of whole vectors, which leave other elements alone; a machine without them adds lane by lane. Needs
/// double_masks. There is no such store without a load: a masked store is slow if its elements are read soon after.
std::string add_every(int step, int lanes, const std::string& type, const std::string& element);
/// Parameters and body of a function that makes writes to elements beside each other, one after the other,
/// each with whole vectors: "joined_down_set0_add1" stores x0 to p[0], p[1], ... and adds x1 to p[1], p[2],
/// ... Each element is loaded and stored once: those that the block of the iteration before has stored one by
/// one, all others as one vector. The blocks go up or down; "back": the first lane has the highest address.
std::string joined_writes(std::string_view what, int lanes, const std::string& type,
                          const std::string& element, const std::string& load, const std::string& store);
/// The same of writes with a stride of so many elements, which leave out no element between them:
/// "interleaved2_up_add0_add1" adds x0 to p[0], p[2], ... and x1 to p[1], p[3], ...
std::string interleaved_writes(std::string_view what, int step, int lanes, const std::string& type,
                               const std::string& element, const std::string& load, const std::string& store);

}  // namespace lantern::codegen
