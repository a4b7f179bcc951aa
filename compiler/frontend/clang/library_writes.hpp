// What functions and containers of the standard library change without an assignment that shows it.
#pragma once

#include <clang/AST/ExprCXX.h>

#include <string>
#include <vector>

namespace lantern::frontend {

/// An expression without what only converts it, parentheses included.
const clang::Expr* bare(const clang::Expr* e);
/// The variables whose elements an algorithm of the library writes: v in std::fill(v.begin(), v.end(), 0).
std::vector<const clang::Expr*> ranges_written(const clang::CallExpr* call);
/// Why an assignment may change whether a value is there: that of a std::optional or std::variant, and of
/// m[key] of a map, which inserts. Else empty.
std::string changes_presence(const clang::Expr* target);

}  // namespace lantern::frontend
