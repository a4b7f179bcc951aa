// A compiler instance for each run.
#include "lantern/compiler/frontend/clang/invocation.hpp"

#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Frontend/Utils.h>

#include <memory>

#include "lantern/ir/error.hpp"

namespace lantern::frontend {

Messages::Messages(std::string& text)
    : options_(new clang::DiagnosticOptions), stream_(text), printer_(stream_, options_.get()) {}

void Messages::BeginSourceFile(const clang::LangOptions& language, const clang::Preprocessor* preprocessor) {
  printer_.BeginSourceFile(language, preprocessor);
}

void Messages::EndSourceFile() { printer_.EndSourceFile(); }

void Messages::HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) {
  // A note belongs to the message before it.
  if (level != clang::DiagnosticsEngine::Note) {
    llvm::SmallString<128> text;
    info.FormatDiagnostic(text);
    const bool expected = text.str().contains("Rep<") && text.str().contains("requires explicit conversion to");
    shown_ = level >= clang::DiagnosticsEngine::Error && !expected;
    errors += shown_ ? 1 : 0;
    headers_useless |= shown_ && info.getID() > clang::diag::DIAG_START_SERIALIZATION && info.getID() < clang::diag::DIAG_START_LEX;
    const bool here = info.hasSourceManager() && info.getLocation().isValid() &&
                      info.getSourceManager().isInMainFile(info.getSourceManager().getExpansionLoc(info.getLocation()));
    errors_elsewhere += shown_ && !here ? 1 : 0;
    const bool of_system = info.hasSourceManager() && info.getSourceManager().isInSystemHeader(info.getLocation());
    warnings += level == clang::DiagnosticsEngine::Warning && !of_system ? 1 : 0;
  }
  if (shown_) printer_.HandleDiagnostic(level, info);
}

bool run(clang::FrontendAction& action, Messages& messages, Purpose purpose, const std::vector<std::string>& arguments,
         const OutputFiles& files) {
  // The name tells Clang where its own headers are.
  std::vector<std::string> words{LANTERN_LLVM_ROOT "/bin/clang++", "-std=c++20", "-ferror-limit=0",
                                 "-ftemplate-backtrace-limit=0", "-fsyntax-only"};
  if (purpose == Purpose::reading) words.insert(words.end(), {"-DLANTERN_FRONTEND", "-w"});
  else words.insert(words.end(), {"-fPIC", "-fclang-abi-compat=16"});  // names of constrained templates as g++ 12 has them
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<const char*> pointers;
  for (const std::string& w : words) pointers.push_back(w.c_str());
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> engine(
      new clang::DiagnosticsEngine(new clang::DiagnosticIDs, messages.options(), &messages, false));
  clang::CreateInvocationOptions create;
  create.Diags = engine;
  const std::shared_ptr<clang::CompilerInvocation> invocation = clang::createInvocation(pointers, create);
  if (!invocation) throw Error("the arguments for the C++ compiler are not understood:\n" + messages.text());
  invocation->getFrontendOpts().OutputFile = files.output;
  if (purpose == Purpose::compiling) {  // __OPTIMIZE__, which a precompiled header has or has not, is no matter of the level
    invocation->getLangOpts().Optimize = true;
    invocation->getLangOpts().NoInlineDefine = false;
  }
  if (!files.dependencies.empty()) {
    clang::DependencyOutputOptions& rule = invocation->getDependencyOutputOpts();
    rule.OutputFile = files.dependencies;
    rule.Targets = {"object"};
    rule.IncludeSystemHeaders = true;
  }
  clang::CompilerInstance compiler;
  compiler.setInvocation(invocation);
  compiler.setDiagnostics(engine.get());
  return compiler.ExecuteAction(action) && messages.errors == 0;
}

bool precompile(const std::string& header, Purpose purpose, const std::vector<std::string>& arguments,
                const std::string& to) {
  std::string text;
  Messages messages(text);
  std::vector<std::string> words = arguments;
  words.insert(words.end(), {"-x", "c++-header", header});
  // Otherwise each file that begins with it makes their bodies.
  if (purpose == Purpose::compiling) words.push_back("-fpch-instantiate-templates");
  clang::GeneratePCHAction action;
  return run(action, messages, purpose, words, {to, ""});
}

}  // namespace lantern::frontend
