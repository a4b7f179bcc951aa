// Which templates of the headers need bodies in a syntax tree that is only read.
#pragma once

#include <unordered_map>

namespace clang {
class Decl;
class FileID;
class QualType;
class Sema;
class SourceManager;
class TemplateArgument;
}  // namespace clang

namespace lantern::frontend {

/// Whether a file is the user's, and no header of Lantern's or of the system.
bool is_of_user(const clang::SourceManager& sources, clang::FileID file);

/// Most of the time that reading a small program took went to bodies of Lantern's and the standard library's templates. What
/// is read are the user's functions: a body is of use where it can come to one of them, since the user's lambdas, types or
/// templates are among its arguments or around it.
class Instantiations {
 public:
  /// Removes the bodies without use from those that Clang has yet to make. They may hold errors.
  void leave_out_others(clang::Sema& sema);

 private:
  bool concerns_user(const clang::Decl* d);
  bool concerns_user(const clang::TemplateArgument& a);
  bool concerns_user(clang::QualType t);

  const clang::SourceManager* sources_ = nullptr;
  std::unordered_map<const clang::Decl*, bool> known_;
};

}  // namespace lantern::frontend
