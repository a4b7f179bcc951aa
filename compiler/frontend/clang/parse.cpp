// A compiler instance that stops at the syntax tree.
#include "lantern/compiler/frontend/clang/parse.hpp"

#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Lex/PPCallbacks.h>
#include <clang/Lex/Preprocessor.h>
#include <clang/Sema/SemaConsumer.h>

#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lantern/compiler/frontend/clang/instantiations.hpp"
#include "lantern/compiler/frontend/clang/invocation.hpp"
#include "lantern/compiler/frontend/clang/parts.hpp"
#include "lantern/compiler/frontend/clang/precompiled.hpp"
#include "lantern/compiler/frontend/clang/read.hpp"
#include "lantern/compiler/frontend/clang/syntax.hpp"

namespace lantern::frontend {

namespace {

/// Which files were read, and which would have been had they not been read before.
struct FilesSeen {
  std::vector<clang::FileID> entered;
  std::vector<std::pair<clang::SourceLocation, std::string>> skipped;  ///< where the name is; path
  std::vector<clang::SourceRange> left_out;                            ///< by #if and its relatives
};

class FileWatch : public clang::PPCallbacks {
 public:
  FileWatch(const clang::SourceManager& sources, FilesSeen& seen) : sources_(sources), seen_(seen) {}
  void FileChanged(clang::SourceLocation at, FileChangeReason reason, clang::SrcMgr::CharacteristicKind,
                   clang::FileID) override {
    if (reason == EnterFile) seen_.entered.push_back(sources_.getFileID(at));
  }
  void FileSkipped(const clang::FileEntryRef& file, const clang::Token& name,
                   clang::SrcMgr::CharacteristicKind) override {
    seen_.skipped.emplace_back(name.getLocation(), file.getName().str());
  }

  void SourceRangeSkipped(clang::SourceRange range, clang::SourceLocation) override {
    seen_.left_out.push_back(range);
  }

 private:
  const clang::SourceManager& sources_;
  FilesSeen& seen_;
};

class Action : public clang::ASTFrontendAction {
 public:
  using Look = std::function<void(clang::ASTContext&, const FilesSeen&)>;
  Action(const Look& look, bool all_bodies) : look_(look), all_bodies_(all_bodies) {}
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                        llvm::StringRef) override {
    compiler.getPreprocessor().addPPCallbacks(
        std::make_unique<FileWatch>(compiler.getSourceManager(), seen_));
    class Consumer : public clang::SemaConsumer {
     public:
      Consumer(const Look& look, const FilesSeen& seen, bool all_bodies) : look_(look), seen_(seen), all_bodies_(all_bodies) {}
      void InitializeSema(clang::Sema& sema) override { sema_ = &sema; }
      void ForgetSema() override { sema_ = nullptr; }
      /// After each declaration of the file, and after each body of a template.
      bool HandleTopLevelDecl(clang::DeclGroupRef) override {
        if (sema_ != nullptr && !all_bodies_) instantiations_.leave_out_others(*sema_);
        return true;
      }
      void HandleTranslationUnit(clang::ASTContext& ast) override { look_(ast, seen_); }

     private:
      const Look& look_;
      const FilesSeen& seen_;
      const bool all_bodies_;
      clang::Sema* sema_ = nullptr;
      Instantiations instantiations_;
    };
    return std::make_unique<Consumer>(look_, seen_, all_bodies_);
  }

 private:
  const Look& look_;
  const bool all_bodies_;
  FilesSeen seen_;
};

/// Nothing where the precompiled headers may be at fault: they are older than a header of the system. What is said of
/// headers, too, is said without them.
std::optional<Parsed> parse_once(const std::string& path, std::vector<std::string> arguments, const Action::Look& look,
                                 const std::optional<std::string>& headers, bool all_bodies) {
  Parsed parsed;
  if (headers)
    arguments.insert(arguments.end(), {"-include-pch", *headers});
  else
    arguments.insert(arguments.end(), {"-include", native_header});
  arguments.insert(arguments.end(), {"-x", "c++", path});
  Action action(look, all_bodies);
  Messages messages(parsed.messages);
  parsed.good = run(action, messages, Purpose::reading, arguments);
  if (headers && messages.headers_useless) discard(*headers);
  if (headers && messages.errors_elsewhere > 0) return std::nullopt;
  return parsed;
}

Parsed parse_files(const std::string& path, const std::vector<std::string>& arguments, const Action::Look& look) {
  const std::optional<std::string> headers = precompiled_headers(Purpose::reading, arguments);
  // Where there are errors, all of them are told, in the order of the compiler.
  if (headers)
    for (const bool all_bodies : {false, true}) {
      std::optional<Parsed> parsed = parse_once(path, arguments, look, headers, all_bodies);
      if (!parsed) break;
      if (parsed->good || all_bodies) return std::move(*parsed);
    }
  return *parse_once(path, arguments, look, std::nullopt, true);
}

/// Whether a line is #if, #else, #endif, ...
bool is_conditional(std::string_view line) {
  const auto skip = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  skip();
  if (!line.starts_with('#')) return false;
  line.remove_prefix(1);
  skip();
  return line.starts_with("if") || line.starts_with("el") || line.starts_with("endif");
}

/// In a function that is rewritten, what conditional directives leave out, and the directives, become space: its
/// statements move, and the directives would not move with them.
void drop_conditionals(Unit& unit, const clang::SourceManager& sources, clang::FileID file,
                       const FilesSeen& seen) {
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to && i < unit.text.size(); ++i)
      if (unit.text[i] != '\n') unit.text[i] = ' ';
  };
  for (const auto& f : unit.functions) {
    if (f->is_lambda || f->body == nullptr) continue;
    const Span body = f->body->range;
    for (const clang::SourceRange& range : seen.left_out)
      if (sources.getFileID(range.getBegin()) == file && body.contains(sources.getFileOffset(range.getBegin())))
        blank(sources.getFileOffset(range.getBegin()), std::min(sources.getFileOffset(range.getEnd()), body.end));
    for (std::size_t at = unit.text.find('\n', body.begin); at < body.end; at = unit.text.find('\n', at + 1)) {
      const std::size_t end = std::min(unit.text.find('\n', at + 1), unit.text.size());
      if (is_conditional(std::string_view(unit.text).substr(at + 1, end - at - 1))) blank(at + 1, end);
    }
  }
}

void fill(clang::ASTContext& ast, clang::FileID file, const std::string& path, Unit& unit, const FilesSeen& seen) {
  unit.path = path;
  unit.text = ast.getSourceManager().getBufferData(file).str();
  const Facts facts = collect_facts(ast, file);
  read_functions(ast, file, facts, unit);
  if (file == ast.getSourceManager().getMainFileID()) find_parts(ast, facts, unit);
  drop_conditionals(unit, ast.getSourceManager(), file, seen);
}

Inclusions inclusions_of(clang::ASTContext& ast, const FilesSeen& seen) {
  const clang::SourceManager& sources = ast.getSourceManager();
  Inclusions found;
  std::map<clang::FileID, std::size_t> known{{sources.getMainFileID(), 0}};
  const auto add = [&](clang::SourceLocation name, const std::string& path, std::optional<std::size_t> file) {
    const auto in = known.find(sources.getFileID(name));
    if (in != known.end()) found.all.push_back({in->second, sources.getFileOffset(name), path, file});
  };
  for (const clang::FileID file : seen.entered) {
    if (file == sources.getMainFileID() || !is_of_user(sources, file) || known.count(file) != 0) continue;
    const std::string path = sources.getFileEntryRefForID(file)->getName().str();
    add(sources.getIncludeLoc(file), path, found.files.size());
    known.emplace(file, found.files.size() + 1);
    fill(ast, file, path, found.files.emplace_back(), seen);
  }
  for (const auto& [name, path] : seen.skipped) add(name, path, std::nullopt);
  return found;
}

}  // namespace

Parsed parse_tree(const std::string& path, const std::vector<std::string>& arguments,
                  const std::function<void(clang::ASTContext&)>& look) {
  return parse_files(path, arguments, [&](clang::ASTContext& ast, const FilesSeen&) { look(ast); });
}

Parsed parse(const std::string& path, const std::vector<std::string>& arguments, Unit& unit,
             Inclusions& inclusions) {
  return parse_files(path, arguments, [&](clang::ASTContext& ast, const FilesSeen& seen) {
    unit = Unit();
    fill(ast, ast.getSourceManager().getMainFileID(), path, unit, seen);
    inclusions = inclusions_of(ast, seen);
  });
}

}  // namespace lantern::frontend
