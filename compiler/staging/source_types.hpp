// The types that a C++ file gives names to, as far as names of values need them: what an alias represents,
// and which members a structure has, in order.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lantern::core {

/// A parameter or member as it is written.
struct Declared {
  std::string type, name;
};

/// A name for a type: an alias has one member without a name. Templates have parameters.
struct NamedType {
  std::vector<std::string> parameters;
  std::vector<Declared> members;
  bool alias = false;
};

/// Finds a type by its name, without a namespace; null where is not known it.
using FindType = std::function<const NamedType*(const std::string& name)>;

/// The types that a text, without comments and literals, gives names to.
std::unordered_map<std::string, NamedType> named_types(std::string_view text);

/// The values that a parameter holds, each with its type: itself, or what its structure, std::array,
/// std::pair or std::tuple holds, called p_x, p_0. A type that is not known stays as it is.
std::vector<Declared> values_of(const Declared& parameter, const FindType& find);

/// Split at commas outside brackets; each part without blanks around it.
std::vector<std::string_view> parts_of_list(std::string_view list);

/// "const Rep<double>& x = 0.0" as type and name; without a name where there is a type alone.
Declared declared(std::string_view text);

}  // namespace lantern::core
