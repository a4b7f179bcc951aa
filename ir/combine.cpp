// The names, and the operations of reductions.
#include "lantern/ir/combine.hpp"

#include <algorithm>
#include <array>

#include "lantern/ir/error.hpp"

namespace lantern::ir {

namespace {

constexpr std::array<std::string_view, 9> combine_names{"", "index", "counter", "element", "sum", "max", "min", "all", "any"};

}  // namespace

std::string_view name(Combine c) { return combine_names.at(static_cast<std::size_t>(c)); }

Combine combine_named(std::string_view word) {
  const auto at = std::ranges::find(combine_names, word);
  return word.empty() || at == combine_names.end() ? Combine::none : static_cast<Combine>(at - combine_names.begin());
}

Opcode reduction(Combine c, const Type& type) {
  const bool integer = type.is_integer();
  switch (c) {
    case Combine::sum:
      return Opcode::add_;
    case Combine::max:
      return integer ? Opcode::imax_ : Opcode::max_;
    case Combine::min:
      return integer ? Opcode::imin_ : Opcode::min_;
    case Combine::all:
      return Opcode::land_;
    case Combine::any:
      return Opcode::lor_;
    default:
      throw InternalError("expected a reduction, got '" + std::string(name(c)) + "'");
  }
}

}  // namespace lantern::ir
