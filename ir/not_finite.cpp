// The two halves of the message, around the value.
#include "lantern/ir/not_finite.hpp"

#include "lantern/ir/op.hpp"

namespace lantern::ir {

NotFinite not_finite(const Location& loc, Opcode op) {
  const std::string where = loc.known() ? std::string(loc.file) + ":" + std::to_string(loc.line) : "";
  const char* part = loc.part == Part::forward    ? " in the forward part of a derivative"
                     : loc.part == Part::backward ? " in the backward part of a derivative"
                                                  : "";
  return {(where.empty() ? "" : where + ": error: ") + "expected finite values, got ",
          " from " + std::string(info(op).name) + part};
}

}  // namespace lantern::ir
