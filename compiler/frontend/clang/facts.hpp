// What only types tell: which conditions are staged, and which plain values change. Collected from
// every body that has types: functions, and the instantiations of templates, whose places are those of the
// template.
#pragma once

#include <clang/AST/ASTContext.h>
#include <clang/Basic/SourceManager.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "lantern/compiler/frontend/clang/tree.hpp"

namespace lantern::frontend {

/// Places of one file of the user's as offsets in it.
class Places {
 public:
  Places(const clang::ASTContext& ast, clang::FileID file)
      : ast_(ast), sources_(ast.getSourceManager()), file_(file) {}
  /// Of the file that is parsed.
  explicit Places(const clang::ASTContext& ast) : Places(ast, ast.getSourceManager().getMainFileID()) {}

  /// Whether the place, or the macro call that it comes from, is in the user's file.
  bool own(clang::SourceLocation at) const;
  /// The offset of a place in the user's file; of a macro's text, where the macro is called.
  std::uint32_t offset(clang::SourceLocation at) const;
  /// The text of a range; false where it is not whole in the file (it begins or ends inside a macro).
  bool span(clang::SourceRange range, Span& out) const;
  /// What is written in the file for such a range: all of the macros' uses.
  Span around(clang::SourceRange range) const;
  /// Whether a token comes from a macro's definition, and which.
  bool from_macro(clang::SourceLocation at, std::string* name = nullptr) const;
  const clang::ASTContext& ast() const { return ast_; }

 private:
  const clang::ASTContext& ast_;
  const clang::SourceManager& sources_;
  clang::FileID file_;
};

struct Facts {
  std::set<std::uint32_t> staged;  ///< operators and keywords whose condition is a Rep
  std::set<std::uint32_t>
      stores;  ///< where expressions begin that are elements of an Array or Tensor, assigned to
  std::map<std::uint32_t, PlainWrite> plain_writes;    ///< by place
  std::set<std::pair<std::uint32_t, std::uint32_t>> lambda_uses;  ///< place; where the lambda begins
  std::set<std::pair<std::uint32_t, std::uint64_t>> calls;        ///< place; function
  std::set<std::uint64_t> plain_results, staged_results;          ///< functions
  std::set<std::uint64_t> recursive;                              ///< functions that call themselves
  /// Functions that stage something in an instantiation for types of the user and the standard library alone.
  std::set<std::uint64_t> staged_for_foreign_types;
  std::set<std::uint64_t> staged_objects;  ///< member functions of objects that hold Reps
  std::map<std::uint32_t, Complaint> complaints;
  std::map<std::uint32_t, Hazard> hazards;
};

/// Whether a type is, points to or holds a Rep.
bool holds_rep(clang::QualType type);
bool is_rep(clang::QualType type);
/// Whether a condition is staged, seen through casts, parentheses and logical operators.
bool is_staged(const clang::Expr* condition);
/// The definition that the user wrote, of an instantiation too; null where it is not in the user's file.
const clang::FunctionDecl* written(const clang::FunctionDecl* function, const Places& places);

Facts collect_facts(clang::ASTContext& ast, clang::FileID file);

}  // namespace lantern::frontend
