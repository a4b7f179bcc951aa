// The headers are those of a precompiled header.
#include "lantern/compiler/frontend/clang/object.hpp"

#include <clang/Basic/SourceManager.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/MultiplexConsumer.h>
#include <clang/Lex/PPCallbacks.h>
#include <clang/Lex/Preprocessor.h>
#include <llvm/Support/TargetSelect.h>

#include <memory>
#include <mutex>
#include <optional>

#include "lantern/compiler/frontend/clang/instantiations.hpp"
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
    if (id == nullptr || asked_) return;
    const llvm::StringRef word = id->getName();
    const bool asks = word.starts_with("__clang") || word.starts_with("__GNU") || word.starts_with("__GXX") || word.starts_with("__llvm") ||
                      (word.starts_with("__has_") && !word.starts_with("__has_include")) || word == "__VERSION__" ||
                      word == "__OPTIMIZE__" || word == "__NO_INLINE__";
    asked_ = asks && is_of_user(sources_, sources_.getFileID(sources_.getExpansionLoc(name.getLocation())));
  }

  const clang::SourceManager& sources_;
  bool& asked_;
};

/// Makes no machine code where what was read is the business of another compiler.
class Gate : public clang::MultiplexConsumer {
 public:
  Gate(std::vector<std::unique_ptr<clang::ASTConsumer>> code, const bool& asked, const Messages& messages)
      : MultiplexConsumer(std::move(code)), asked_(asked), messages_(messages) {}
  void HandleTranslationUnit(clang::ASTContext& ast) override {
    if (!asked_ && messages_.warnings == 0 && messages_.errors == 0) MultiplexConsumer::HandleTranslationUnit(ast);
  }

 private:
  const bool& asked_;
  const Messages& messages_;
};

class Compilation : public clang::EmitObjAction {
 public:
  explicit Compilation(const Messages& messages) : messages_(messages) {}
  bool asked = false;

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler, llvm::StringRef file) override {
    std::vector<std::unique_ptr<clang::ASTConsumer>> code;
    code.push_back(EmitObjAction::CreateASTConsumer(compiler, file));
    return std::make_unique<Gate>(std::move(code), asked, messages_);
  }
  bool BeginSourceFileAction(clang::CompilerInstance& compiler) override {
    compiler.getPreprocessor().addPPCallbacks(std::make_unique<CompilerAsked>(compiler.getSourceManager(), asked));
    return EmitObjAction::BeginSourceFileAction(compiler);
  }

 private:
  const Messages& messages_;
};

}  // namespace

ObjectResult compile_object(const std::string& path, const std::vector<std::string>& flags, const std::vector<std::string>& more,
                            int level, const std::string& object, const std::string& dependencies) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();  // of asm statements
  });
  const std::optional<std::string> headers = precompiled_headers(Purpose::compiling, flags);
  if (!headers) return ObjectResult::left;
  std::vector<std::string> arguments = flags;
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.insert(arguments.end(), {"-O" + std::to_string(level), "-include-pch", *headers, "-include", mode_header, "-x", "c++", path});
  std::string text;
  Messages messages(text);
  Compilation action(messages);
  try {
    const bool good = run(action, messages, Purpose::compiling, arguments, {object, dependencies});
    if (messages.headers_useless) discard(*headers);
    if (good && messages.warnings == 0 && !action.asked) return ObjectResult::made;
    const bool refused = messages.errors > 0 && !messages.headers_useless && !action.asked;
    return refused ? ObjectResult::refused : ObjectResult::left;
  } catch (const Error&) {
    return ObjectResult::left;
  }
}

}  // namespace lantern::frontend
