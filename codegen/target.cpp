// Spelling of scalar types in C and C++.
#include "lantern/codegen/target.hpp"

#include "lantern/ir/error.hpp"

namespace lantern::codegen {

using ir::Kind;

std::string CTarget::scalar(Kind kind) const {
  switch (kind) {
    case Kind::boolean:
      return "int";
    case Kind::i32:
      return "int32_t";
    case Kind::i64:
      return "int64_t";
    case Kind::f32:
      return "float";
    case Kind::f64:
      return "double";
    default:
      throw InternalError("expected a scalar kind");
  }
}

std::string CTarget::element(Kind kind) const {
  return kind == Kind::boolean ? "unsigned char" : CTarget::scalar(kind);
}

std::string CppTarget::scalar(Kind kind) const {
  return kind == Kind::boolean ? "bool" : CTarget::scalar(kind);
}

}  // namespace lantern::codegen
