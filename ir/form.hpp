// Forms: what a graph has, or has no longer, from one phase of the compiler to the next.
//
// The verifier (verify.hpp) asks what holds of every graph; a form is what is promised beside. A form is a set of
// properties; phases of the pipeline say which form they need and which they give.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

enum class Property : std::uint8_t {
  paired,    ///< a cell that a function or continuation takes is behind its primal, and is of its type
  scalar,    ///< no vectors: each value is that of one iteration
  unplaced,  ///< memory is not decided: no marks of updates in place, nothing is forgotten
  direct,    ///< direct style: no continuations, no cells
  lowered,   ///< operations on whole tensors are those that printers know
  closed,    ///< no first-class functions: a continuation is a function of the module with captured values
  callable,  ///< the module has an entry, which takes and gives data
};

/// A set of properties.
class Form {
 public:
  constexpr Form() = default;
  constexpr Form(std::initializer_list<Property> properties) {
    for (const Property p : properties) bits_ |= bit(p);
  }

  constexpr bool has(Property p) const { return (bits_ & bit(p)) != 0; }
  /// The properties of both.
  constexpr Form both(Form other) const { return Form(bits_ & other.bits_); }
  /// What has this form may be taken for one of `other`.
  constexpr bool includes(Form other) const { return (bits_ & other.bits_) == other.bits_; }

 private:
  constexpr explicit Form(std::uint32_t bits) : bits_(bits) {}
  static constexpr std::uint32_t bit(Property p) { return std::uint32_t{1} << static_cast<int>(p); }

  std::uint32_t bits_ = 0;
};

namespace forms {

/// As a program was staged, or a derivative's handler has written it.
inline constexpr Form staged{Property::paired, Property::scalar, Property::unplaced};
/// After unwind: continuations have become control flow, cells values.
inline constexpr Form direct{Property::paired, Property::scalar, Property::unplaced, Property::direct,
                             Property::closed};
/// After the passes over arrays: loops over elements.
inline constexpr Form loops{Property::paired, Property::scalar,  Property::unplaced,
                            Property::direct, Property::lowered, Property::closed};
/// After the schedule: lanes.
inline constexpr Form scheduled{Property::paired, Property::unplaced, Property::direct, Property::lowered,
                                Property::closed};
/// After the passes over memory, which mark what works in place.
inline constexpr Form placed{Property::paired, Property::direct, Property::lowered, Property::closed};
/// What printers of C take, whichever passes have run: those that were left out may have left continuations.
inline constexpr Form printable{Property::lowered, Property::closed, Property::callable};

}  // namespace forms

/// verify(module), and that the module has the form: throws an InternalError that names the function, the operation
/// and the property that it is without.
void verify(const Module& module, Form form);

/// "direct style (no continuations, no cells)": what a property asks for, in words.
std::string describe(Property property);

}  // namespace lantern::ir
