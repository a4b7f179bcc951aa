// A compiler instance that stops at the syntax tree.
#include "lantern/compiler/frontend/clang/parse.hpp"

#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Basic/Version.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Frontend/Utils.h>
#include <llvm/Support/raw_ostream.h>

#include <functional>
#include <optional>

#include "lantern/compiler/frontend/clang/precompiled.hpp"
#include "lantern/compiler/frontend/clang/read.hpp"
#include "lantern/compiler/frontend/clang/syntax.hpp"
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
      const bool expected =
          text.str().contains("Rep<") && text.str().contains("requires explicit conversion to");
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
  using Look = std::function<void(clang::ASTContext&)>;
  explicit Action(const Look& look) : look_(look) {}
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&, llvm::StringRef) override {
    class Consumer : public clang::ASTConsumer {
     public:
      explicit Consumer(const Look& look) : look_(look) {}
      void HandleTranslationUnit(clang::ASTContext& ast) override { look_(ast); }

     private:
      const Look& look_;
    };
    return std::make_unique<Consumer>(look_);
  }

 private:
  const Look& look_;
};

/// Runs an action on a file as clang++ would see it. Error: arguments that are not understood.
bool run(clang::FrontendAction& action, Messages& messages, std::string& text,
         clang::DiagnosticOptions* options, const std::vector<std::string>& arguments,
         const std::string& output = "") {
  // The name tells Clang where its own headers are.
  std::vector<std::string> words{LANTERN_LLVM_ROOT "/bin/clang++",
                                 "-std=c++20",
                                 "-DLANTERN_FRONTEND",
                                 "-ferror-limit=0",
                                 "-w",
                                 "-fsyntax-only"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<const char*> pointers;
  for (const std::string& w : words) pointers.push_back(w.c_str());
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> engine(
      new clang::DiagnosticsEngine(new clang::DiagnosticIDs, options, &messages, false));
  clang::CreateInvocationOptions create;
  create.Diags = engine;
  const std::shared_ptr<clang::CompilerInvocation> invocation = clang::createInvocation(pointers, create);
  if (!invocation) throw Error("the arguments for the C++ compiler are not understood:\n" + text);
  invocation->getFrontendOpts().OutputFile = output;
  clang::CompilerInstance compiler;
  compiler.setInvocation(invocation);
  compiler.setDiagnostics(engine.get());
  return compiler.ExecuteAction(action) && messages.errors == 0;
}

Parsed parse_once(const std::string& path, std::vector<std::string> arguments, const Action::Look& look,
                  const std::optional<std::string>& headers) {
  Parsed parsed;
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions);
  Messages messages(parsed.messages, options.get());
  if (headers)
    arguments.insert(arguments.end(), {"-include-pch", *headers});
  else
    arguments.insert(arguments.end(), {"-include", native_header});
  arguments.insert(arguments.end(), {"-x", "c++", path});
  Action action(look);
  parsed.good = run(action, messages, parsed.messages, options.get(), arguments);
  return parsed;
}

}  // namespace

std::string clang_version() { return clang::getClangFullVersion(); }

bool precompile(const std::string& header, const std::vector<std::string>& arguments, const std::string& to) {
  std::string text;
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions);
  Messages messages(text, options.get());
  std::vector<std::string> words = arguments;
  words.insert(words.end(), {"-x", "c++-header", header});
  clang::GeneratePCHAction action;
  return run(action, messages, text, options.get(), words, to);
}

Parsed parse_tree(const std::string& path, const std::vector<std::string>& arguments,
                  const std::function<void(clang::ASTContext&)>& look) {
  const std::optional<std::string> headers = precompiled_headers(arguments);
  if (headers) {
    Parsed parsed = parse_once(path, arguments, look, headers);
    if (parsed.good) return parsed;
    // The file may be stale (a system header changed); and messages are those without it.
  }
  return parse_once(path, arguments, look, std::nullopt);
}

Parsed parse(const std::string& path, const std::vector<std::string>& arguments, Unit& unit) {
  return parse_tree(path, arguments, [&](clang::ASTContext& ast) {
    unit = Unit();
    unit.path = path;
    const clang::SourceManager& sources = ast.getSourceManager();
    unit.text = sources.getBufferData(sources.getMainFileID()).str();
    read_functions(ast, collect_facts(ast), unit);
  });
}

}  // namespace lantern::frontend
