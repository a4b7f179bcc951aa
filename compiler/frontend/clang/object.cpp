// The headers are those of a precompiled header.
#include "lantern/compiler/frontend/clang/object.hpp"

#include <clang/Basic/SourceManager.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Lex/PPCallbacks.h>
#include <clang/Lex/Preprocessor.h>
#include <llvm/Support/TargetSelect.h>

#include <memory>
#include <mutex>
#include <optional>

#include "lantern/compiler/frontend/clang/invocation.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::frontend {

namespace {

/// Whether the user's files ask which compiler reads them: what they mean to another one may differ.
class CompilerAsked : public clang::PPCallbacks {
 public:
  CompilerAsked(const clang::SourceManager& sources, bool& asked) : sources_(sources), asked_(asked) {}
  void MacroExpands(const clang::Token& name, const clang::MacroDefinition&, clang::SourceRange,
                    const clang::MacroArgs*) override {
    note(name);
  }
  void Defined(const clang::Token& name, const clang::MacroDefinition&, clang::SourceRange) override { note(name); }
  void Ifdef(clang::SourceLocation, const clang::Token& name, const clang::MacroDefinition&) override { note(name); }
  void Ifndef(clang::SourceLocation, const clang::Token& name, const clang::MacroDefinition&) override { note(name); }
  void Elifdef(clang::SourceLocation, const clang::Token& name, const clang::MacroDefinition&) override { note(name); }
  void Elifndef(clang::SourceLocation, const clang::Token& name, const clang::MacroDefinition&) override { note(name); }

 private:
  void note(const clang::Token& name) {
    const clang::IdentifierInfo* const id = name.getIdentifierInfo();
    if (id == nullptr || sources_.isInSystemHeader(name.getLocation())) return;
    const llvm::StringRef word = id->getName();
    asked_ |= word.starts_with("__clang") || word.starts_with("__GNU") || word.starts_with("__llvm") || word == "__VERSION__" ||
              word == "__OPTIMIZE__" || word == "__NO_INLINE__";
  }

  const clang::SourceManager& sources_;
  bool& asked_;
};

class Compilation : public clang::EmitObjAction {
 public:
  bool asked = false;

 protected:
  bool BeginSourceFileAction(clang::CompilerInstance& compiler) override {
    compiler.getPreprocessor().addPPCallbacks(std::make_unique<CompilerAsked>(compiler.getSourceManager(), asked));
    return EmitObjAction::BeginSourceFileAction(compiler);
  }
};

}  // namespace

bool compile_object(const std::string& path, const std::vector<std::string>& flags, const std::vector<std::string>& more,
                    int level, const std::string& object, const std::string& dependencies) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  const std::optional<std::string> headers = precompiled_headers(Purpose::compiling, flags);
  if (!headers) return false;
  std::vector<std::string> arguments = flags;
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.insert(arguments.end(), {"-O" + std::to_string(level), "-include-pch", *headers, "-include", mode_header, "-x", "c++", path});
  std::string text;
  Messages messages(text);
  Compilation action;
  try {
    return run(action, messages, Purpose::compiling, arguments, {object, dependencies}) && messages.warnings == 0 &&
           !action.asked;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace lantern::frontend
