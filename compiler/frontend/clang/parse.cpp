// A compiler instance that stops at the syntax tree.
#include "lantern/compiler/frontend/clang/parse.hpp"

#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/ASTUnit.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Frontend/Utils.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include "lantern/compiler/frontend/clang/read.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::frontend {

namespace {

/// Clang's messages, without the one about `switch` over a Rep, whose explicit conversion the rewriter
/// removes.
class Messages : public clang::DiagnosticConsumer {
 public:
  explicit Messages(std::string& text, clang::DiagnosticOptions* options)
      : stream_(text), printer_(stream_, options) {}
  void BeginSourceFile(const clang::LangOptions& language, const clang::Preprocessor* preprocessor) override {
    printer_.BeginSourceFile(language, preprocessor);
  }
  void EndSourceFile() override { printer_.EndSourceFile(); }
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) override {
    // A note belongs to the message before it.
    if (level != clang::DiagnosticsEngine::Note) {
      llvm::SmallString<128> text;
      info.FormatDiagnostic(text);
      const bool expected = text.str().contains("Rep<") && text.str().contains("requires explicit conversion to");
      shown_ = level >= clang::DiagnosticsEngine::Error && !expected;
      errors += shown_ ? 1 : 0;
    }
    if (shown_) printer_.HandleDiagnostic(level, info);
  }
  int errors = 0;

 private:
  llvm::raw_string_ostream stream_;
  clang::TextDiagnosticPrinter printer_;
  bool shown_ = false;
};

class Action : public clang::ASTFrontendAction {
 public:
  Action(Unit& unit) : unit_(unit) {}
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&, llvm::StringRef) override {
    class Consumer : public clang::ASTConsumer {
     public:
      explicit Consumer(Unit& unit) : unit_(unit) {}
      void HandleTranslationUnit(clang::ASTContext& ast) override {
        const clang::SourceManager& sources = ast.getSourceManager();
        unit_.text = sources.getBufferData(sources.getMainFileID()).str();
        read_functions(ast, collect_facts(ast), unit_);
      }

     private:
      Unit& unit_;
    };
    return std::make_unique<Consumer>(unit_);
  }

 private:
  Unit& unit_;
};

}  // namespace

Parsed parse(const std::string& path, const std::vector<std::string>& arguments, Unit& unit) {
  unit.path = path;
  // The name tells Clang where its own headers are.
  std::vector<std::string> words{LANTERN_LLVM_ROOT "/bin/clang++",
                                 "-std=c++20",
                                 "-fsyntax-only",
                                 "-DLANTERN_FRONTEND",
                                 "-include",
                                 "lantern/compiler/frontend/native.hpp",
                                 "-ferror-limit=0",
                                 "-w"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.insert(words.end(), {"-x", "c++", path});
  std::vector<const char*> pointers;
  for (const std::string& w : words) pointers.push_back(w.c_str());

  Parsed parsed;
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions);
  Messages messages(parsed.messages, options.get());
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> engine(
      new clang::DiagnosticsEngine(new clang::DiagnosticIDs, options, &messages, false));
  clang::CreateInvocationOptions create;
  create.Diags = engine;
  std::shared_ptr<clang::CompilerInvocation> invocation = clang::createInvocation(pointers, create);
  if (!invocation)
    throw Error("the command line for parsing " + path + " is not understood:\n" + parsed.messages);
  clang::CompilerInstance compiler;
  compiler.setInvocation(invocation);
  compiler.setDiagnostics(engine.get());
  Action action(unit);
  const bool finished = compiler.ExecuteAction(action);
  parsed.good = messages.errors == 0;
  static_cast<void>(finished);
  return parsed;
}

}  // namespace lantern::frontend
