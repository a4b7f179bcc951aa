// The names of the operations: one row of ops.inc each.
#pragma once

#include <cstdint>

namespace lantern::ir {

// NOLINTBEGIN(readability-identifier-naming): operations keep the names they are printed with
enum class Opcode : std::uint8_t {
#define SCALAR_OP(name, ...) name##_,
#define COMPOSED_OP(name, ...) name##_,
#define TENSOR_OP(name, ...) name##_,
#define INDEX_OP(name, ...) name##_,
#define CORE_OP(name, ...) name##_,
#include "lantern/ir/ops.inc"
  count_
};
// NOLINTEND

}  // namespace lantern::ir
