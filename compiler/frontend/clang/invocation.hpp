// One run of Clang inside the process, as clang++ would run it.
#pragma once

#include <clang/Basic/Diagnostic.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Support/raw_ostream.h>

#include <string>
#include <vector>

#include "lantern/compiler/frontend/clang/precompiled.hpp"

namespace lantern::frontend {

/// Clang's errors as text, how many of them lie outside of the file itself, and how many warnings it had beside those of
/// system headers. Left out is the error about `switch` over a Rep, whose explicit conversion the rewriter removes.
class Messages : public clang::DiagnosticConsumer {
 public:
  explicit Messages(std::string& text);
  void BeginSourceFile(const clang::LangOptions& language, const clang::Preprocessor* preprocessor) override;
  void EndSourceFile() override;
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) override;

  const std::string& text() { return stream_.str(); }
  clang::DiagnosticOptions* options() const { return options_.get(); }
  int errors = 0, errors_elsewhere = 0, warnings = 0;
  bool headers_useless = false;  ///< the precompiled header is cut off, or a file that it was made from has changed

 private:
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options_;
  llvm::raw_string_ostream stream_;
  clang::TextDiagnosticPrinter printer_;
  bool shown_ = false;
};

struct OutputFiles {
  std::string output, dependencies;  ///< paths; empty: none
};

/// Runs an action on a file; false where there were errors. Error: arguments that Clang does not understand.
bool run(clang::FrontendAction& action, Messages& messages, Purpose purpose, const std::vector<std::string>& arguments,
         const OutputFiles& files = {});

}  // namespace lantern::frontend
