// g++ gives an operator the place of the last token of its right operand, and a call that of its opening
// parenthesis; Clang gives the beginning of both (of a call of a member: its name).
#include "lantern/compiler/frontend/clang/expressions.hpp"

#include <clang/AST/DeclTemplate.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "lantern/compiler/frontend/clang/facts.hpp"
#include "lantern/compiler/frontend/clang/lines.hpp"
#include "lantern/compiler/frontend/clang/syntax.hpp"
#include "lantern/compiler/frontend/clang/visitor.hpp"

namespace lantern::frontend {

using namespace clang;

namespace {

/// How a user may have written an operation of the graph.
bool spells(const std::string& name, const std::string& operation) {
  static const std::map<std::string, std::set<std::string>> spellings{
      {"add", {"+", "+=", "++"}},
      {"sub", {"-", "-=", "--"}},
      {"mul", {"*", "*="}},
      {"div", {"/", "/="}},
      {"rem", {"%"}},
      {"neg", {"-"}},
      {"lt", {"<", ">"}},
      {"le", {"<=", ">="}},
      {"eq", {"=="}},
      {"ne", {"!="}},
      {"lnot", {"!"}},
      {"get", {"[]", "()"}},
      {"take", {"[]", "row"}},
      {"set", {"[]", "()", "="}},
      {"imin", {"min"}},
      {"imax", {"max"}},
      {"matvec", {"matmul"}},
      {"broadcast", {"+", "-", "*", "/", "+=", "-=", "*=", "/=", "<", ">", "<=", ">=", "==", "!="}},
  };
  if (name == operation) return true;
  const auto known = spellings.find(operation);
  return known != spellings.end() && known->second.count(name) != 0;
}

struct Candidate {
  const Expr* expression = nullptr;
  std::string name;
  std::uint32_t caret = 0;
  Span range;
  std::set<std::uint32_t> places;  ///< that a compiler may give it
  std::vector<const Expr*> operands;
};

class Finder : public Visitor {
 public:
  explicit Finder(ASTContext& ast) : Visitor({.instantiations = true}), ast_(ast), places_(ast) {}

  using Visitor::visit;
  void visit(Stmt* s) override {
    if (auto* e = dyn_cast<CallExpr>(s)) read(e);
    if (auto* e = dyn_cast<BinaryOperator>(s)) read(e);
    if (auto* e = dyn_cast<UnaryOperator>(s)) read(e);
  }

  void read(const CallExpr* e) {
    Candidate c;
    if (!begin(e, c)) return;
    if (const auto* op = dyn_cast<CXXOperatorCallExpr>(e)) {
      c.name = getOperatorSpelling(op->getOperator());
      c.caret = place(op->getOperatorLoc());
      for (const Expr* a : op->arguments()) c.operands.push_back(a);
      if (op->getOperator() == OO_Subscript || op->getOperator() == OO_Call) c.caret = c.range.begin;
    } else {
      if (const auto* member = dyn_cast<MemberExpr>(e->getCallee()->IgnoreParenImpCasts())) {
        c.caret = place(member->getMemberLoc());
        c.operands.push_back(member->getBase());
        c.name = member->getMemberNameInfo().getAsString();
      } else {
        c.caret = place(e->getCallee()->getExprLoc());
        if (const FunctionDecl* f = e->getDirectCallee()) c.name = f->getNameAsString();
      }
      for (const Expr* a : e->arguments())
        if (!isa<CXXDefaultArgExpr>(a)) c.operands.push_back(a);
      const auto open =
          Lexer::findNextToken(e->getCallee()->getEndLoc(), ast_.getSourceManager(), ast_.getLangOpts());
      if (open && open->is(tok::l_paren)) c.places.insert(place(open->getLocation()));
    }
    keep(std::move(c));
  }
  void read(const BinaryOperator* e) {
    Candidate c;
    if (!begin(e, c)) return;
    c.name = e->getOpcodeStr().str();
    c.caret = place(e->getOperatorLoc());
    c.operands = {e->getLHS(), e->getRHS()};
    keep(std::move(c));
  }
  void read(const UnaryOperator* e) {
    Candidate c;
    if (!begin(e, c)) return;
    c.name = UnaryOperator::getOpcodeStr(e->getOpcode()).str();
    c.caret = place(e->getOperatorLoc());
    c.operands = {e->getSubExpr()};
    keep(std::move(c));
  }

  std::optional<Expression> at(std::uint32_t offset, const std::string& operation) const {
    const Candidate* best = nullptr;
    const auto rank = [&](const Candidate& c) {
      const bool named = !operation.empty() && spells(c.name, operation);
      const bool here = c.places.count(offset) != 0;
      return here && named ? 3 : here ? 2 : named && c.range.contains(offset) ? 1 : 0;
    };
    for (const Candidate& c : candidates_) {
      if (rank(c) == 0) continue;
      if (best == nullptr || rank(c) > rank(*best) ||
          (rank(c) == rank(*best) && c.range.size() < best->range.size()))
        best = &c;
    }
    if (best == nullptr) return std::nullopt;
    Expression found{{best->range, best->caret}, {}, {}};
    for (const Expr* operand : best->operands) {
      Marked one;
      if (!places_.span(operand->getSourceRange(), one.range)) one.range = {best->caret, best->caret + 1};
      one.caret = one.range.begin;
      found.operands.push_back(one);
      found.declarations.push_back(declaration(operand));
    }
    return found;
  }

 private:
  std::uint32_t place(SourceLocation at) const { return places_.offset(at); }

  bool begin(const Expr* e, Candidate& c) const {
    if (!places_.own(e->getBeginLoc()) || !places_.span(e->getSourceRange(), c.range)) return false;
    c.expression = e;
    c.places = {c.range.begin, place(e->getEndLoc())};
    return true;
  }
  void keep(Candidate c) {
    c.places.insert(c.caret);
    candidates_.push_back(std::move(c));
  }

  std::optional<Marked> declaration(const Expr* operand) const {
    const auto* name = dyn_cast<DeclRefExpr>(operand->IgnoreUnlessSpelledInSource());
    const auto* variable = name != nullptr ? dyn_cast<VarDecl>(name->getDecl()) : nullptr;
    if (variable == nullptr || !places_.own(variable->getLocation())) return std::nullopt;
    Marked at;
    at.caret = place(variable->getLocation());
    SourceRange range(variable->getBeginLoc(), variable->getLocation());
    if (!places_.span(range, at.range)) at.range = {at.caret, at.caret + 1};
    return at;
  }

  ASTContext& ast_;
  Places places_;
  std::vector<Candidate> candidates_;
};

std::uint32_t offset_of(std::string_view text, std::uint32_t line, std::uint32_t column) {
  std::size_t at = 0;
  for (std::uint32_t l = 1; l < line && at != std::string_view::npos; ++l) {
    at = text.find('\n', at);
    if (at != std::string_view::npos) ++at;
  }
  if (at == std::string_view::npos) return static_cast<std::uint32_t>(text.size());
  return static_cast<std::uint32_t>(std::min(at + column - (column > 0 ? 1 : 0), text.size()));
}

}  // namespace

Expressions find_expressions(const std::string& path, const std::vector<std::string>& arguments,
                             const std::vector<PlaceAsked>& places) {
  Expressions all;
  all.found.resize(places.size());
  parse_tree(path, arguments, [&](ASTContext& ast) {
    const SourceManager& sources = ast.getSourceManager();
    all.text = sources.getBufferData(sources.getMainFileID()).str();
    Finder finder(ast);
    const Places own(ast);
    for (Decl* d : ast.getTranslationUnitDecl()->decls())
      if (own.own(d->getLocation()) || own.own(d->getBeginLoc())) finder.traverse(d);
    for (std::size_t i = 0; i < places.size(); ++i)
      all.found[i] = finder.at(offset_of(all.text, places[i].line, places[i].column), places[i].operation);
  });
  return all;
}

}  // namespace lantern::frontend
