// The types that decide which instantiations of a template stage something.
#pragma once

#include <clang/AST/Decl.h>

#include <string>

namespace lantern::frontend {

/// The types that a template, or a function inside one, is instantiated for: their names in its text, separated by
/// commas. Empty for a function that is in no template, and where one of the types has no name.
std::string template_types(const clang::FunctionDecl* pattern);

/// Whether an instantiation is for types of the user and of the standard library alone.
bool is_for_foreign_types(const clang::FunctionDecl* instance);

}  // namespace lantern::frontend
