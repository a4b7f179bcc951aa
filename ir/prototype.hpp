// The C prototype of an external function: what a call of it in the graph carries as its text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lantern/ir/type.hpp"

namespace lantern::ir {

class Module;

/// "double table(double, const float *, int64_t *)": numbers by value; arrays and tensors of any rank as
/// pointers to their elements, without sizes. Through `T *` the function changes an array, through `const T
/// *` it reads one.
///
/// A parameter `const char *` takes the place of the call in the user's source, "model.cpp:12", for messages.
///
/// The operation `external` takes an operand for each other parameter. Its results are what the function returns,
/// if anything, and then, in order, each changed array as the function leaves it: the graph has values, of
/// which none is changed.
struct Prototype {
  struct Parameter {
    Kind kind = Kind::f64;
    bool pointer = false;
    bool changed = false;  ///< a pointer through which the function writes
    bool place = false;    ///< where the call is; it has no operand
    bool operator==(const Parameter&) const = default;
  };

  std::string name;
  std::optional<Kind> returned;  ///< none: void
  std::vector<Parameter> parameters;

  /// Error where the name, or another part, cannot be that of a function which generated code calls.
  void check() const;
  std::string text() const;
  /// The types of the results of a call. Error naming a parameter that an operand does not fit.
  std::vector<Type> results(std::span<const Type> operands) const;
  /// Which operands of a call the function writes to, in the order of the results that they become.
  std::vector<std::size_t> changed_operands() const;
};

/// The prototype that a text gives. Error where it gives none: another type, a name that is no identifier of
/// C, or one that generated code keeps for itself (lt_..., lantern_...).
Prototype parse_prototype(std::string_view text);

/// The external functions that a module calls, each once, by name. Error where it calls two of one name.
std::vector<Prototype> external_functions(const Module& module);

}  // namespace lantern::ir
