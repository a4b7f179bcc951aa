// What functions and containers of the standard library change without an assignment that shows it.
#pragma once

#include <clang/AST/ExprCXX.h>

#include <vector>

namespace lantern::frontend {

/// An expression without what only converts it, parentheses included.
const clang::Expr* bare(const clang::Expr* e);
/// The variables whose elements an algorithm of the library writes: v in std::fill(v.begin(), v.end(), 0).
std::vector<const clang::Expr*> ranges_written(const clang::CallExpr* call);
/// The std::optional variable that this names, if it is declared without a value; null otherwise.
const clang::VarDecl* empty_optional(const clang::Expr* target);

}  // namespace lantern::frontend
