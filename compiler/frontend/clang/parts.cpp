// Reachability over functions, from what must stay.
#include "lantern/compiler/frontend/clang/parts.hpp"

#include <clang/AST/DeclTemplate.h>
#include <clang/AST/ExprCXX.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "lantern/compiler/frontend/clang/visitor.hpp"

namespace lantern::frontend {

using namespace clang;

namespace {

/// The definition in the file. For an instantiation: that of its template.
const FunctionDecl* definition_of(const FunctionDecl* f) {
  if (const FunctionDecl* pattern = f->getTemplateInstantiationPattern()) f = pattern;
  const FunctionDecl* found = nullptr;
  return f->hasBody(found) ? found : nullptr;
}

bool is_record(const DeclContext* context, StringRef name) {
  const auto* record = dyn_cast<CXXRecordDecl>(context);
  return record != nullptr && record->getIdentifier() != nullptr && record->getName() == name;
}

/// What a LANTERN_FUNCTION defines for staging.
bool makes_program(const Decl* d) {
  const auto* named = dyn_cast<NamedDecl>(d);
  return named != nullptr && named->getIdentifier() != nullptr &&
         (named->getName().starts_with("lantern_program_") || named->getName().starts_with("lantern_tag_"));
}

/// Where a program ahead of time calls what was made, any other stages the function: Exported::entry.
bool is_for_staging(const FunctionDecl* f) {
  if (makes_program(f) || makes_program(cast<Decl>(f->getDeclContext()))) return true;
  return f->getIdentifier() != nullptr && f->getName() == "entry" && is_record(f->getDeclContext(), "Exported");
}

/// Everything that can be named from declarations of the file and of the user's headers, without the bodies of the
/// functions that may be left out unless something names these.
class Reached : public Visitor {
 public:
  using MayGo = std::function<bool(const Decl*)>;
  Reached(const MayGo& may_go, bool into_entries)
      : Visitor({.implicit_code = true}), may_go_(may_go), into_entries_(into_entries) {}

  void run(ASTContext& ast) {
    for (Decl* d : ast.getTranslationUnitDecl()->decls())
      if (!d->isFromASTFile()) traverse(d);
    while (!open_.empty()) {
      const Decl* next = open_.back();
      open_.pop_back();
      inside_ = next;
      traverse(const_cast<Decl*>(next));
    }
  }
  bool has(const FunctionDecl* definition) const { return definitions_.count(definition) != 0; }
  bool has(const VarDecl* variable) const { return seen_.count(variable->getCanonicalDecl()) != 0; }

 private:
  bool enters(Decl* d) override { return d == inside_ || !may_go_(d); }
  using Visitor::visit;
  void visit(Stmt* s) override {
    if (const auto* reference = dyn_cast<DeclRefExpr>(s)) add(reference->getDecl());
    if (const auto* member = dyn_cast<MemberExpr>(s)) add(member->getMemberDecl());
    if (const auto* made = dyn_cast<CXXConstructExpr>(s)) add(made->getConstructor());
    if (const auto* inherited = dyn_cast<CXXInheritedCtorInitExpr>(s)) add(inherited->getConstructor());
    if (auto* argument = dyn_cast<CXXDefaultArgExpr>(s)) traverse(argument->getExpr());
    if (auto* member = dyn_cast<CXXDefaultInitExpr>(s)) traverse(member->getExpr());
    if (const auto* overloaded = dyn_cast<OverloadExpr>(s))  // in a template: whichever it may be
      for (const NamedDecl* d : overloaded->decls()) add(d->getUnderlyingDecl());
  }

  void add(const Decl* d) {
    if (const auto* f = dyn_cast<FunctionTemplateDecl>(d)) d = f->getTemplatedDecl();
    if (d->isFromASTFile() || !seen_.insert(d->getCanonicalDecl()).second) return;
    if (const auto* f = dyn_cast<FunctionDecl>(d)) {
      if (!into_entries_ && is_for_staging(f)) return;
      if (const FunctionDecl* definition = definition_of(f)) {
        definitions_.insert(definition);
        open_.push_back(definition);
      }
      const FunctionDecl* instance = nullptr;
      if (f->hasBody(instance)) open_.push_back(instance);
    } else if (const auto* v = dyn_cast<VarDecl>(d); v != nullptr && v->hasGlobalStorage()) {
      open_.push_back(v);
    }
  }

  const MayGo& may_go_;
  bool into_entries_;
  const Decl* inside_ = nullptr;
  std::set<const Decl*> seen_;
  std::set<const FunctionDecl*> definitions_;
  std::vector<const Decl*> open_;
};

class Parts {
 public:
  Parts(ASTContext& ast, const Facts& facts, Unit& unit) : ast_(ast), places_(ast), facts_(facts), unit_(unit) {}

  void find() {
    collect(ast_.getTranslationUnitDecl());
    const Reached::MayGo plain = [&](const Decl* d) {
      const auto* f = dyn_cast<FunctionDecl>(d);
      return f != nullptr && plain_.count(f) != 0;
    };
    Reached staged(plain, true);
    staged.run(ast_);
    program_part(staged);
    staged_part(staged);
  }

 private:
  /// The functions whose bodies may be left out: those that are written plainly, of which types tell nothing more than
  /// their declarations do.
  void collect(DeclContext* context) {
    for (Decl* d : context->decls()) {
      if (d->isFromASTFile() || ast_.getSourceManager().isInSystemHeader(d->getLocation())) continue;
      if (const auto* t = dyn_cast<FunctionTemplateDecl>(d)) d = t->getTemplatedDecl();
      if (const auto* t = dyn_cast<ClassTemplateDecl>(d)) d = t->getTemplatedDecl();
      if (auto* f = dyn_cast<FunctionDecl>(d)) function(f);
      const bool holds_functions = isa<CXXRecordDecl>(d) ? places_.own(d->getLocation()) : isa<NamespaceDecl, LinkageSpecDecl>(d);
      if (holds_functions) collect(cast<DeclContext>(d));
      if (const auto* variable = dyn_cast<VarDecl>(d)) {
        exported(variable);
        staged_function(variable);
      }
    }
  }

  void function(const FunctionDecl* f) {
    if (!f->doesThisDeclarationHaveABody() || f->isDefaulted() || !places_.own(f->getLocation())) return;
    const Stmt* body = f->getBody();
    Span span;
    if (body == nullptr || !isa<CompoundStmt>(body) || !places_.span(body->getSourceRange(), span)) return;
    if (f->isConstexpr() || f->getDeclaredReturnType()->getContainedAutoType() != nullptr ||
        f->getDeclaredReturnType()->isDecltypeType() || isa<CXXConstructorDecl, CXXDestructorDecl, CXXConversionDecl>(f))
      return;
    const std::string_view text = std::string_view(unit_.text).substr(span.begin, span.size());
    if (has_directive(text)) return;
    const auto* method = dyn_cast<CXXMethodDecl>(f);
    if (method != nullptr && (method->isVirtual() || method->getParent()->isLambda())) return;
    bodies_[f] = span;
    if (method == nullptr && !f->isTemplated()) plain_.insert(f);
    const bool over_reps =
        holds_rep(f->getReturnType()) || f->isTemplated() ||
        std::ranges::any_of(f->parameters(), [](const ParmVarDecl* p) { return holds_rep(p->getType()); }) ||
        (method != nullptr && holds_rep(ast_.getRecordType(method->getParent())));
    if (over_reps && !f->isMain() && !f->isExternC()) over_reps_.insert(f);
  }

  /// Whether an initialiser is FUN("name", lambda) and does nothing else when the program begins.
  static bool is_fun(const Expr* e) {
    const auto* const call = dyn_cast_or_null<CallExpr>(e ? e->IgnoreUnlessSpelledInSource() : nullptr);
    const FunctionDecl* const callee = call != nullptr ? call->getDirectCallee() : nullptr;
    return callee != nullptr && callee->getIdentifier() != nullptr && callee->getName() == "FUN" &&
           std::ranges::all_of(call->arguments(), [](const Expr* argument) {
             const Expr* const written = argument->IgnoreUnlessSpelledInSource();
             const auto* const lambda = dyn_cast<LambdaExpr>(written);
             return isa<StringLiteral>(written) || (lambda != nullptr && lambda->capture_size() == 0);
           });
  }

  /// auto power = FUN<double(double)>(...);
  void staged_function(const VarDecl* variable) {
    const auto* type = variable->getType()->getAsCXXRecordDecl();
    if (type == nullptr || !is_record(type, "Fun") || !is_fun(variable->getInit()) || variable->isInline() ||
        variable->isConstexpr() || variable->getTLSKind() != VarDecl::TLS_None || !variable->isFileVarDecl() ||
        variable->isStaticDataMember() || variable->isTemplated() || variable->hasAttrs())
      return;
    Span span;
    if (!places_.span(variable->getSourceRange(), span)) return;
    const std::size_t end = unit_.text.find_first_not_of(" \t\n", span.end);
    const bool first = begins_.insert(span.begin).second;
    if (!first || end == std::string::npos || unit_.text[end] != ';') return;  // one of several
    span.end = static_cast<std::uint32_t>(end + 1);
    if (!has_directive(std::string_view(unit_.text).substr(span.begin, span.size()))) staged_functions_[variable] = span;
  }

  static bool has_directive(std::string_view text) {
    for (std::size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
      const std::size_t before = text.find_last_not_of(" \t", at == 0 ? 0 : at - 1);
      if (before == std::string_view::npos || text[before] == '\n') return true;
    }
    return false;
  }

  /// LANTERN_FUNCTION(NAME, ...): the function that it defines, as a null pointer of its type.
  void exported(const VarDecl* variable) {
    constexpr StringRef prefix = "lantern_exported_";
    if (!variable->getName().starts_with(prefix)) return;
    unit_.exported.push_back(variable->getName().substr(prefix.size()).str());
    if (!places_.own(variable->getLocation())) return;
    const auto* instance = dyn_cast_or_null<ClassTemplateSpecializationDecl>(variable->getType()->getAsCXXRecordDecl());
    // Exported<Make, Tell, F, R, std::tuple<P...>>
    if (instance == nullptr || !is_record(instance, "Exported") || instance->getTemplateArgs().size() != 5) return;
    const SourceManager& sources = ast_.getSourceManager();
    const CharSourceRange range = sources.getExpansionRange(variable->getLocation());
    const std::uint32_t begin = sources.getFileOffset(range.getBegin()), end = sources.getFileOffset(range.getEnd());
    const std::string_view text = std::string_view(unit_.text).substr(begin, end + 1 - begin);
    const std::size_t comma = text.find(',');
    if (!text.starts_with("LANTERN_FUNCTION") || !text.ends_with(')') || comma == std::string_view::npos ||
        has_directive(text))
      return;
    const auto* parameters = dyn_cast_or_null<ClassTemplateSpecializationDecl>(
        instance->getTemplateArgs()[4].getAsType()->getAsCXXRecordDecl());
    if (parameters == nullptr) return;
    std::string types;
    for (const TemplateArgument& p : parameters->getTemplateArgs()[0].pack_elements())
      types += (types.empty() ? "" : ", ") + name(p.getAsType());
    types = name(instance->getTemplateArgs()[3].getAsType()) + " (*)(" + types + ")";
    if (types.find("(anonymous") != std::string::npos || types.find("(unnamed") != std::string::npos ||
        types.find("(lambda") != std::string::npos)
      return;
    calls_.push_back({{begin + static_cast<std::uint32_t>(comma) + 1, end},
                      " static_cast<" + types + ">(nullptr)"});
  }
  std::string name(QualType type) const {
    PrintingPolicy policy = ast_.getPrintingPolicy();
    policy.FullyQualifiedName = policy.PrintCanonicalTypes = true;
    policy.SuppressUnwrittenScope = true;
    return type.getCanonicalType().getAsString(policy);
  }

  struct Change {
    Span span;
    std::string text;
  };

  /// Lines stay where they are.
  std::string changed(std::vector<Change> changes) const {
    std::ranges::sort(changes, [](const Change& a, const Change& b) { return a.span.begin < b.span.begin; });
    std::string text;
    std::uint32_t at = 0;
    for (const Change& c : changes) {
      if (c.span.begin < at) continue;  // inside another
      text += unit_.text.substr(at, c.span.begin - at) + c.text;
      for (std::uint32_t i = c.span.begin; i < c.span.end; ++i)
        if (unit_.text[i] == '\n') text += '\n';
      at = c.span.end;
    }
    return text + unit_.text.substr(at);
  }

  void program_part(const Reached& staged) {
    const Reached::MayGo may_go = [&](const Decl* d) {
      const auto* f = dyn_cast<FunctionDecl>(d);
      const auto* v = dyn_cast<VarDecl>(d);
      return makes_program(d) || (f != nullptr && over_reps_.count(f) != 0) ||
             (v != nullptr && staged_functions_.count(v) != 0);
    };
    Reached reached(may_go, false);
    reached.run(ast_);
    std::vector<Change> changes = calls_;
    for (const FunctionDecl* f : over_reps_)
      if (!reached.has(f)) changes.push_back({bodies_.at(f), ";"});
    for (const auto& [v, span] : staged_functions_) {
      if (reached.has(v)) continue;
      changes.push_back({span, "extern " + name(v->getType()) + " " + v->getNameAsString() + ";"});
      unit_.left_out.push_back(span);
    }
    if (changes.empty()) return;
    const auto gone = [&](std::uint32_t at) {
      return std::ranges::any_of(changes, [&](const Change& c) { return c.span.contains(at); });
    };
    // What is left must be C++ as it is.
    if (!std::ranges::all_of(facts_.staged, gone) || !std::ranges::all_of(facts_.stores, gone)) return;
    unit_.program_part = changed(changes);
    for (const auto& [f, span] : bodies_) {
      const bool left_out = over_reps_.count(f) != 0 && !reached.has(f);
      const Span whole{places_.offset(f->getBeginLoc()), span.end};
      if (left_out) unit_.left_out.push_back(whole);
      // Of one that only what is staged calls, the program cannot say that nothing does.
      else if (reached.has(f) || !staged.has(f)) unit_.kept.push_back(whole);
    }
  }

  void staged_part(const Reached& staged) {
    std::vector<Change> changes;
    for (const FunctionDecl* f : plain_)
      if (!staged.has(f)) changes.push_back({bodies_.at(f), ";"});
    unit_.staged_part = changed(changes);
  }

  ASTContext& ast_;
  const Places places_;
  const Facts& facts_;
  Unit& unit_;
  std::map<const FunctionDecl*, Span> bodies_;
  std::set<const FunctionDecl*> over_reps_, plain_;
  std::map<const VarDecl*, Span> staged_functions_;  ///< made by FUN: whole declarations
  std::set<std::uint32_t> begins_;                   ///< theirs
  std::vector<Change> calls_;
};

}  // namespace

void find_parts(ASTContext& ast, const Facts& facts, Unit& unit) { Parts(ast, facts, unit).find(); }

}  // namespace lantern::frontend
