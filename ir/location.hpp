// Where in a user's program something was written.
#pragma once

#include <cstdint>
#include <string>

namespace lantern::ir {

/// The part of a derivative that something belongs to. Of nested derivatives the outermost counts: what an inner
/// one does after its program has run is forward there.
enum class Part : std::uint8_t { plain, forward, backward };

/// Where a user wrote something. `file` lives as long as the program or the module that interned it.
struct Location {
  const char* file = nullptr;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  Part part = Part::plain;
  bool known() const { return file != nullptr && line != 0; }
  std::string str() const;  ///< "file:line" or "file:line:column", empty when unknown
};

}  // namespace lantern::ir
