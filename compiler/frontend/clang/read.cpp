// The structure comes from functions as written (of a template: the template itself), types from the facts.
#include "lantern/compiler/frontend/clang/read.hpp"

#include <clang/AST/DeclTemplate.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/StmtCXX.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>

#include <algorithm>

#include "lantern/compiler/frontend/clang/template_types.hpp"
#include "lantern/compiler/frontend/clang/visitor.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::frontend {

using namespace clang;

namespace {

class Reader {
 public:
  Reader(ASTContext& ast, FileID file, const Facts& facts, Unit& unit)
      : ast_(ast), places_(ast, file), facts_(facts), unit_(unit) {}

  void function(const FunctionDecl* f) {
    Span range;
    if (!places_.span(f->getBody()->getSourceRange(), range)) return in_macro(f);
    if (!concerns(range)) return;
    Function* made = describe(f, f->getBody());
    made->id = places_.offset(f->getLocation());
    const bool by_name = f->getDeclContext()->isFileContext() && f->isExternallyVisible() && !f->isInlined() &&
                         !f->isMain() && !f->isExternC() && f->getStorageClass() == SC_None &&
                         f->getTemplatedKind() == FunctionDecl::TK_NonTemplate;
    if (by_name && f->getBeginLoc().isFileID() && places_.own(f->getBeginLoc()))
      made->others_call = places_.offset(f->getBeginLoc());
  }

  /// An expression outside of functions' bodies: what initialises a variable of a namespace or a member; a lambda
  /// in a function that a macro writes.
  void outside(const Expr* e) {
    Span range;
    if (!places_.span(e->getSourceRange(), range) || !concerns(range) || !outside_.insert(range.begin).second)
      return;
    Function* made = new_function();
    made->name = "initialiser";
    made->returns_void = true;
    made->body = expression(e);
  }

 private:
  // ---- Functions
  // ----------------------------------------------------------------------------------------------

  bool concerns(Span range) const {
    const auto inside = [&](const auto& set) {
      const auto first = set.lower_bound(range.begin);
      return first != set.end() && *first < range.end;
    };
    return inside(facts_.staged) || inside(facts_.stores);
  }

  /// A macro writes the function. Lambdas among the macro's arguments are the user's.
  void in_macro(const FunctionDecl* f) {
    bool found = false;
    std::vector<const Stmt*> open{f->getBody()};
    while (!open.empty()) {
      const Stmt* s = open.back();
      open.pop_back();
      Span range;
      if (const auto* lambda = dyn_cast<LambdaExpr>(s); lambda != nullptr && places_.span(s->getSourceRange(), range)) {
        found = true;
        outside(lambda);
        continue;
      }
      for (const Stmt* part : s->children())
        if (part != nullptr) open.push_back(part);
    }
    if (!found) refuse_macro(f, f->getBody()->getSourceRange());
  }

  void refuse_macro(const FunctionDecl* f, SourceRange range) {
    if (places_.own(range.getBegin()) &&
        concerns({places_.offset(range.getBegin()), places_.offset(range.getEnd()) + 1}))
      unit_.complaints.push_back({places_.offset(f->getLocation()),
                                  1,
                                  "this function begins or ends inside a macro and branches on a staged "
                                  "value; write it without the macro",
                                  {}});
  }

  Function* new_function() {
    unit_.functions.push_back(std::make_unique<Function>());
    return unit_.functions.back().get();
  }

  Function* describe(const FunctionDecl* f, const Stmt* body) {
    Function* made = new_function();
    made->name = f->getNameAsString();
    const QualType result = f->getReturnType();
    made->returns_void = result->isVoidType() || isa<CXXConstructorDecl>(f) || isa<CXXDestructorDecl>(f);
    made->is_structor = isa<CXXConstructorDecl>(f) || isa<CXXDestructorDecl>(f);
    made->returns_reference = result->isReferenceType();
    made->recursive = facts_.recursive.count(places_.offset(f->getLocation())) != 0;
    const auto* method = dyn_cast<CXXMethodDecl>(f);
    made->is_member = method != nullptr && method->isInstance();
    made->object_staged = facts_.staged_objects.count(places_.offset(f->getLocation())) != 0;
    if (facts_.staged_for_foreign_types.count(places_.offset(f->getLocation())) == 0)
      made->plain_where = template_types(f);
    result_text(f, *made);
    for (const ParmVarDecl* p : f->parameters()) made->parameters.push_back(parameter(p));
    Span range;
    if (places_.span(body->getSourceRange(), range)) {
      const auto first = facts_.calls.lower_bound({range.begin, 0}),
                 last = facts_.calls.lower_bound({range.end, 0});
      for (auto c = first; c != last; ++c) made->calls.emplace_back(c->second, c->first);
      const auto staged = facts_.staged.lower_bound(range.begin);
      made->staged = staged != facts_.staged.end() && *staged < range.end;
    }
    made->is_coroutine = isa<CoroutineBodyStmt>(body);
    Function* const outer = std::exchange(function_, made);
    made->body = statement(made->is_coroutine ? cast<CoroutineBodyStmt>(body)->getBody() : body);
    function_ = outer;
    return made;
  }

  void result_text(const FunctionDecl* f, Function& made) {
    const bool as_printed = isa<CXXMethodDecl>(f) && cast<CXXMethodDecl>(f)->getParent()->isLambda();
    const std::uint64_t id = places_.offset(f->getLocation());
    made.returns_plain = facts_.plain_results.count(id) != 0 && facts_.staged_results.count(id) == 0;
    Span range;
    if (places_.span(f->getReturnTypeSourceRange(), range)) made.result_range = range;
    const QualType declared = f->getDeclaredReturnType();
    const bool deduced = declared->getContainedAutoType() != nullptr || as_printed;
    if (made.returns_void) {
      made.result = "void";
    } else if (!deduced && made.result_range.size() > 0) {
      made.result = text(made.result_range);
      // "const T" and the like begin before the range that Clang gives.
    } else if (as_printed && lambda_result_.size() > 0) {
      made.result = text(lambda_result_);
    } else if (const QualType type = f->getReturnType();
               !type->isDependentType() && type->getContainedAutoType() == nullptr) {
      made.result = type.getCanonicalType().getAsString(ast_.getPrintingPolicy());
    } else if (const QualType found = f->getReturnType();
               !found->isDependentType() && !found->isUndeducedType()) {
      made.result = found.getCanonicalType().getAsString(ast_.getPrintingPolicy());
    }
  }

  Parameter parameter(const ParmVarDecl* p) {
    Parameter made;
    made.name = p->getNameAsString();
    Span range;
    SourceRange whole = p->getSourceRange();
    if (p->hasDefaultArg() && p->getLocation().isValid()) whole.setEnd(p->getLocation());
    if (places_.span(whole, range)) made.text = range;
    if (p->hasDefaultArg() && p->getIdentifier() == nullptr) made.text = {};
    const QualType type = p->getType();
    made.changes_argument = type->isLValueReferenceType() && !type->getPointeeType().isConstQualified();
    return made;
  }

  std::string text(Span range) const { return unit_.text.substr(range.begin, range.size()); }

  // ---- Statements
  // ---------------------------------------------------------------------------------------------

  Node* make(NodeKind kind, const Stmt* s) {
    Span range;
    const bool whole = places_.span(s->getSourceRange(), range);
    if (!whole) range = places_.around(s->getSourceRange());
    Node* node = unit_.make(kind, range);
    node->key = range.begin;
    node->in_macro = !whole;
    if (!whole) name_macro(s->getBeginLoc(), *node), name_macro(s->getEndLoc(), *node);
    return node;
  }
  void name_macro(SourceLocation at, Node& node) {
    if (at.isMacroID() && node.macro.empty())
      node.macro = Lexer::getImmediateMacroName(at, ast_.getSourceManager(), ast_.getLangOpts()).str();
  }
  void keyword(Node* node, SourceLocation at) {
    node->key = places_.offset(at);
    node->staged = facts_.staged.count(node->key) != 0;
    if (places_.from_macro(at, &node->macro)) node->in_macro = true;
  }
  /// Takes in the semicolon.
  void close(Node* node) {
    std::uint32_t at = node->range.end;
    const std::string& all = unit_.text;
    for (;;) {
      while (at < all.size() && ir::is_space(all[at])) ++at;
      if (all.compare(at, 2, "//") == 0)
        at = static_cast<std::uint32_t>(std::min(all.find('\n', at), all.size()));
      else if (all.compare(at, 2, "/*") == 0)
        at = static_cast<std::uint32_t>(std::min(all.find("*/", at), all.size() - 2)) + 2;
      else
        break;
    }
    if (at < all.size() && all[at] == ';') node->range.end = at + 1;
  }
  /// A part that ends where its last statement ends.
  static void stretch(Node* node, const Node* last) {
    if (last != nullptr) node->range.end = std::max(node->range.end, last->range.end);
  }

  Node* statement(const Stmt* s) {
    if (s == nullptr) return nullptr;
    if (const auto* a = dyn_cast<AttributedStmt>(s)) s = a->getSubStmt();
    switch (s->getStmtClass()) {
      case Stmt::CompoundStmtClass: {
        Node* node = make(NodeKind::block, s);
        for (const Stmt* part : cast<CompoundStmt>(s)->body()) {
          Node* child = statement(part);
          // Of several statements that one macro writes, the first has the macro's text, and the last what follows it.
          const std::uint32_t end = node->children.empty() ? 0 : node->children.back()->range.end;
          if (child->in_macro && child->range.begin < end) child->range = {end, std::max(end, child->range.end)};
          node->children.push_back(child);
        }
        return node;
      }
      case Stmt::IfStmtClass:
        return branch(cast<IfStmt>(s));
      case Stmt::WhileStmtClass: {
        const auto* w = cast<WhileStmt>(s);
        Node* node = make(NodeKind::while_loop, s);
        keyword(node, w->getWhileLoc());
        if (w->getConditionVariable() != nullptr) node->init = declaration(w->getConditionVariableDeclStmt());
        node->condition = expression(w->getCond());
        node->body = statement(w->getBody());
        node->always = is_true(w->getCond());
        if (node->always) name_variables(w->getBody(), node);
        stretch(node, node->body);
        return node;
      }
      case Stmt::DoStmtClass: {
        const auto* d = cast<DoStmt>(s);
        Node* node = make(NodeKind::do_loop, s);
        keyword(node, d->getDoLoc());
        node->body = statement(d->getBody());
        node->condition = expression(d->getCond());
        node->always = is_true(d->getCond());
        if (node->always) name_variables(d->getBody(), node);
        close(node);
        return node;
      }
      case Stmt::ForStmtClass: {
        const auto* f = cast<ForStmt>(s);
        Node* node = make(NodeKind::for_loop, s);
        keyword(node, f->getForLoc());
        node->init = f->getInit() != nullptr ? statement(f->getInit()) : nullptr;
        node->condition = f->getCond() != nullptr ? expression(f->getCond()) : nullptr;
        node->step = f->getInc() != nullptr ? expression(f->getInc()) : nullptr;
        node->own_step = f->getInc() == nullptr || declared_by(f->getInit(), f->getInc());
        node->body = statement(f->getBody());
        node->always = f->getCond() == nullptr || is_true(f->getCond());
        if (node->always) name_variables(f->getBody(), node), name_variables(f->getInc(), node);
        stretch(node, node->body);
        return node;
      }
      case Stmt::CXXForRangeStmtClass: {
        const auto* f = cast<CXXForRangeStmt>(s);
        Node* node = make(NodeKind::range_loop, s);
        keyword(node, f->getForLoc());
        node->over_array = node->staged;
        node->init = declaration(f->getLoopVarStmt());
        // Up to the colon: the declaration has no semicolon and no initialiser in the text.
        node->init->range = {places_.offset(f->getLoopVarStmt()->getBeginLoc()),
                             places_.offset(f->getColonLoc())};
        node->condition = expression(f->getRangeInit());
        if (f->getInit() != nullptr) node->step = statement(f->getInit());
        node->body = statement(f->getBody());
        stretch(node, node->body);
        return node;
      }
      case Stmt::SwitchStmtClass:
        return selection(cast<SwitchStmt>(s));
      case Stmt::BreakStmtClass:
        return exit(NodeKind::break_exit, s);
      case Stmt::ContinueStmtClass:
        return exit(NodeKind::continue_exit, s);
      case Stmt::ReturnStmtClass: {
        Node* node = exit(NodeKind::return_exit, s);
        if (const Expr* value = cast<ReturnStmt>(s)->getRetValue()) node->condition = expression(value);
        return node;
      }
      case Stmt::DeclStmtClass: {
        Node* node = declaration(cast<DeclStmt>(s));
        close(node);
        return node;
      }
      case Stmt::GotoStmtClass:
      case Stmt::IndirectGotoStmtClass:
        return obstacle(s, "'goto' crosses staged control flow; use a loop, break or return");
      case Stmt::LabelStmtClass: {
        Node* node = obstacle(
            s, "a label that 'goto' jumps to is among staged control flow; use a loop, break or return");
        node->body = statement(cast<LabelStmt>(s)->getSubStmt());
        return node;
      }
      case Stmt::CXXTryStmtClass: {
        Node* node =
            obstacle(s,
                     "'try' around staged control flow: exceptions are thrown while the program is staged, "
                     "not when it runs; move the staged part into a function of its own, or return a value");
        for (const Stmt* part : s->children()) node->children.push_back(statement(part));
        return node;
      }
      case Stmt::CoreturnStmtClass:
      case Stmt::CoroutineBodyStmtClass:
        return obstacle(s, "a coroutine cannot branch on staged values");
      default:
        break;
    }
    if (const auto* e = dyn_cast<Expr>(s)) {
      Node* node = expression(e);
      close(node);
      return node;
    }
    Node* node = make(NodeKind::expression, s);
    parts(s, node);
    close(node);
    return node;
  }

  Node* exit(NodeKind kind, const Stmt* s) {
    Node* node = make(kind, s);
    close(node);
    return node;
  }
  Node* obstacle(const Stmt* s, const std::string& why) {
    Node* node = make(NodeKind::obstacle, s);
    node->why = why;
    close(node);
    return node;
  }

  /// The variables that a loop names and that are declared before it.
  void name_variables(const Stmt* s, Node* loop) {
    if (s == nullptr) return;
    std::string name;
    if (const auto* ref = dyn_cast<DeclRefExpr>(s); ref != nullptr && isa<VarDecl, BindingDecl>(ref->getDecl())) {
      const SourceLocation at = ref->getDecl()->getLocation();
      if (!places_.own(at) || places_.offset(at) < loop->range.begin) name = ref->getDecl()->getNameAsString();
    } else if (const auto* member = dyn_cast<MemberExpr>(s);
               member != nullptr && isa<CXXThisExpr>(member->getBase()->IgnoreParenImpCasts()) &&
               isa<FieldDecl>(member->getMemberDecl())) {
      name = "this->" + member->getMemberDecl()->getNameAsString();
    }
    if (!name.empty() && std::find(loop->names.begin(), loop->names.end(), name) == loop->names.end())
      loop->names.push_back(name);
    for (const Stmt* part : s->children()) name_variables(part, loop);
  }

  /// Whether all variables that an expression names are declared by the statement.
  bool declared_by(const Stmt* init, const Stmt* e) const {
    const auto* declarations = dyn_cast_or_null<DeclStmt>(init);
    if (const auto* ref = dyn_cast<DeclRefExpr>(e); ref != nullptr && isa<VarDecl, BindingDecl>(ref->getDecl()))
      return declarations != nullptr &&
             std::find(declarations->decl_begin(), declarations->decl_end(), ref->getDecl()) !=
                 declarations->decl_end();
    if (isa<MemberExpr, CXXThisExpr, LambdaExpr>(e)) return false;
    if (const auto* call = dyn_cast<CallExpr>(e); call != nullptr && !isa<CXXOperatorCallExpr>(e)) return false;
    return std::all_of(e->child_begin(), e->child_end(),
                       [&](const Stmt* part) { return part == nullptr || declared_by(init, part); });
  }

  static bool is_true(const Expr* e) {
    e = e->IgnoreParenImpCasts();
    if (const auto* b = dyn_cast<CXXBoolLiteralExpr>(e)) return b->getValue();
    if (const auto* i = dyn_cast<IntegerLiteral>(e)) return i->getValue() != 0;
    return false;
  }

  Node* branch(const IfStmt* s) {
    Node* node = make(NodeKind::branch, s);
    keyword(node, s->getIfLoc());
    node->is_constexpr = s->isConstexpr() || s->isConsteval();
    if (s->getInit() != nullptr) node->init = statement(s->getInit());
    if (s->getConditionVariable() != nullptr) {
      Node* declared = declaration(s->getConditionVariableDeclStmt());
      declared->children.insert(declared->children.begin(), node->init == nullptr ? 0U : 1U, node->init);
      node->init = declared;
      declared->why = s->getConditionVariable()->getNameAsString();
    }
    node->condition = s->getCond() != nullptr ? expression(s->getCond()) : nullptr;
    node->body = statement(s->getThen());
    node->otherwise = statement(s->getElse());
    stretch(node, node->body);
    stretch(node, node->otherwise);
    return node;
  }

  Node* selection(const SwitchStmt* s) {
    Node* node = make(NodeKind::selection, s);
    keyword(node, s->getSwitchLoc());
    if (s->getInit() != nullptr) node->init = statement(s->getInit());
    node->condition = expression(s->getCond());
    const auto* body = dyn_cast<CompoundStmt>(s->getBody());
    if (body == nullptr) {
      node->why = "a switch without braces";
      return node;
    }
    for (const Stmt* part : body->body()) {
      bool labelled = false;
      while (const auto* label = dyn_cast<SwitchCase>(part)) {
        if (!labelled) node->groups.emplace_back();
        labelled = true;
        Node::Group& group = node->groups.back();
        if (const auto* c = dyn_cast<CaseStmt>(label)) {
          Span value;
          if (c->getRHS() != nullptr) node->why = "a range of cases";
          if (!places_.span(c->getLHS()->getSourceRange(), value)) node->why = "a case label made by a macro";
          group.labels.push_back(value);
        } else {
          group.is_default = true;
        }
        part = label->getSubStmt();
      }
      if (node->groups.empty()) node->why = "a statement before the first case";
      Node* read = statement(part);
      if (!node->groups.empty()) node->groups.back().statements.push_back(read);
      node->children.push_back(read);
    }
    return node;
  }

  // ---- Expressions and declarations
  // ---------------------------------------------------------------------------

  Node* declaration(const DeclStmt* s) {
    Node* node = make(NodeKind::expression, s);
    for (const Decl* d : s->decls()) {
      const auto* v = dyn_cast<VarDecl>(d);
      if (v == nullptr) continue;
      if (v->getInit() != nullptr && v->getInit()->getBeginLoc().isValid()) inside(v->getInit(), node);
      node->declares.push_back(v->getNameAsString());
      if (const auto* several = dyn_cast<DecompositionDecl>(v))
        for (const BindingDecl* b : several->bindings()) node->declares.push_back(b->getNameAsString());
    }
    return node;
  }

  Node* expression(const Expr* e) {
    Node* node = make(NodeKind::expression, e);
    inside(e, node);
    return node;
  }

  Node* nested(NodeKind kind, const Expr* e, SourceLocation key, Node* into) {
    Node* node = make(kind, e);
    keyword(node, key);
    into->children.push_back(node);
    return node;
  }

  /// Adds what an expression does to the node; constructs in it become children.
  void inside(const Stmt* s, Node* node) {
    if (s == nullptr) return;
    if (const auto* lambda = dyn_cast<LambdaExpr>(s)) return lambda_inside(lambda, node);
    if (const auto* c = dyn_cast<ConditionalOperator>(s);
        c != nullptr && facts_.staged.count(places_.offset(c->getQuestionLoc())) != 0) {
      Node* made = nested(NodeKind::conditional, c, c->getQuestionLoc(), node);
      made->condition = expression(c->getCond());
      made->body = expression(c->getTrueExpr());
      made->otherwise = expression(c->getFalseExpr());
      return;
    }
    if (const auto* op = dyn_cast<BinaryOperator>(s);
        op != nullptr && op->isLogicalOp() && facts_.staged.count(places_.offset(op->getOperatorLoc())) != 0)
      return logical(op->getOpcode() == BO_LAnd, op, op->getLHS(), op->getRHS(), op->getOperatorLoc(), node);
    if (const auto* op = dyn_cast<CXXOperatorCallExpr>(s)) {
      const auto kind = op->getOperator();
      if ((kind == OO_AmpAmp || kind == OO_PipePipe) && op->getNumArgs() == 2 &&
          facts_.staged.count(places_.offset(op->getOperatorLoc())) != 0)
        return logical(kind == OO_AmpAmp, op, op->getArg(0), op->getArg(1), op->getOperatorLoc(), node);
      if ((op->isAssignmentOp() || kind == OO_PlusPlus || kind == OO_MinusMinus) && op->getNumArgs() > 0) {
        assigned(op->getArg(0), node);
        for (unsigned i = 1; i < op->getNumArgs(); ++i) inside(op->getArg(i), node);
        return;
      }
    }
    if (const auto* call = dyn_cast<CallExpr>(s); call != nullptr && !isa<CXXOperatorCallExpr, CXXMemberCallExpr>(s)) {
      const auto stored = [&](const Expr* a) {
        return facts_.stores.count(places_.offset(a->IgnoreParens()->getBeginLoc())) != 0;
      };
      if (std::any_of(call->arg_begin(), call->arg_end(), stored)) {  // std::swap(a[i], a[j])
        for (const Expr* a : call->arguments()) assigned(a, node);
        return;
      }
    }
    if (const auto* op = dyn_cast<BinaryOperator>(s); op != nullptr && op->isAssignmentOp()) {
      assigned(op->getLHS(), node);
      return inside(op->getRHS(), node);
    }
    if (const auto* op = dyn_cast<UnaryOperator>(s);
        op != nullptr && op->getOpcode() == UO_LNot &&
        facts_.staged.count(places_.offset(op->getOperatorLoc())) != 0) {
      Node* made = nested(NodeKind::negation, op, op->getOperatorLoc(), node);
      made->condition = expression(op->getSubExpr());
      return;
    }
    if (const auto* e = dyn_cast<StmtExpr>(s)) {
      Node* made =
          obstacle(e, "a GNU statement expression holds staged control flow; write a function or a lambda");
      made->body = statement(e->getSubStmt());
      node->children.push_back(made);
      return;
    }
    if (isa<CoawaitExpr>(s) || isa<CoyieldExpr>(s)) {
      node->children.push_back(obstacle(s, "a coroutine cannot branch on staged values"));
      return;
    }
    parts(s, node);
  }
  void parts(const Stmt* s, Node* node) {
    if (const auto* d = dyn_cast<CXXDefaultArgExpr>(s)) return static_cast<void>(d);
    if (const auto* d = dyn_cast<CXXDefaultInitExpr>(s)) return static_cast<void>(d);
    if (const auto* list = dyn_cast<InitListExpr>(s);
        list != nullptr && list->isSemanticForm() && list->getSyntacticForm() != nullptr)
      s = list->getSyntacticForm();
    for (const Stmt* part : s->children())
      if (part != nullptr) inside(part, node);
  }

  /// The left side of an assignment.
  void assigned(const Expr* e, Node* node) {
    const Expr* left = e->IgnoreParens()->IgnoreImplicit()->IgnoreParens();
    const bool store = facts_.stores.count(places_.offset(left->getBeginLoc())) != 0;
    const Expr* base = nullptr;
    std::vector<const Expr*> indices;
    SourceLocation open;
    std::string member;
    if (const auto* rows = dyn_cast<CXXMemberCallExpr>(left)) {
      base = rows->getImplicitObjectArgument();
      indices.assign(rows->arg_begin(), rows->arg_end());
      open = rows->getRParenLoc();
      if (rows->getMethodDecl() != nullptr) member = rows->getMethodDecl()->getNameAsString();
    } else if (const auto* op = dyn_cast<CXXOperatorCallExpr>(left);
        op != nullptr && (op->getOperator() == OO_Subscript || op->getOperator() == OO_Call)) {
      base = op->getArg(0);
      for (unsigned i = 1; i < op->getNumArgs(); ++i) indices.push_back(op->getArg(i));
      open = op->getOperatorLoc();
    } else if (const auto* sub = dyn_cast<ArraySubscriptExpr>(left)) {
      base = sub->getLHS();
      indices.push_back(sub->getRHS());
      open = sub->getRBracketLoc();
    } else if (const auto* call = dyn_cast<CallExpr>(left);
               call != nullptr && !isa<CXXMemberCallExpr>(left)) {
      base = call->getCallee();
      indices.assign(call->arg_begin(), call->arg_end());
      open = call->getRParenLoc();
    }
    if (!store || base == nullptr || indices.empty()) return inside(e, node);
    std::erase_if(indices, [](const Expr* i) { return isa<CXXDefaultArgExpr>(i); });
    Node* made = nested(NodeKind::store, left, open, node);
    made->staged = true;
    made->why = member;
    made->condition = expression(base);
    for (const Expr* i : indices) made->children.push_back(expression(i));
  }

  void logical(bool conjunction, const Expr* e, const Expr* left, const Expr* right, SourceLocation key,
               Node* into) {
    Node* made = nested(conjunction ? NodeKind::conjunction : NodeKind::disjunction, e, key, into);
    made->condition = expression(left);
    made->body = expression(right);
  }

  void lambda_inside(const LambdaExpr* e, Node* into) {
    Node* made = make(NodeKind::lambda, e);
    into->children.push_back(made);
    for (unsigned i = 0; i < e->capture_size(); ++i) {
      const LambdaCapture& capture = e->capture_begin()[i];
      if (capture.capturesVariable() && e->isInitCapture(&capture)) {
        if (const auto* v = dyn_cast<VarDecl>(capture.getCapturedVar());
            v != nullptr && v->getInit() != nullptr)
          inside(v->getInit(), made);
      }
    }
    const Span outer = std::exchange(lambda_result_, Span{});
    if (e->hasExplicitResultType()) {
      const auto type =
          e->getCallOperator()->getTypeSourceInfo()->getTypeLoc().getAsAdjusted<FunctionProtoTypeLoc>();
      if (!type.isNull())
        static_cast<void>(places_.span(type.getReturnLoc().getSourceRange(), lambda_result_));
    }
    made->function = describe(e->getCallOperator(), e->getBody());
    made->function->is_lambda = true;
    made->function->id = made->range.begin;
    made->body = made->function->body;
    lambda_result_ = outer;
  }

  ASTContext& ast_;
  Places places_;
  const Facts& facts_;
  Unit& unit_;
  Function* function_ = nullptr;
  Span lambda_result_;
  std::set<std::uint32_t> outside_;
};

/// Functions as written: templates, not their instantiations.
class Written : public Visitor {
 public:
  Written(Reader& reader, const Places& places) : Visitor({}), reader_(reader), places_(places) {}

 private:
  using Visitor::visit;
  void visit(Decl* d) override {
    if (auto* f = dyn_cast<FunctionDecl>(d)) read(f);
    if (auto* f = dyn_cast<FieldDecl>(d)) read(f);
    if (auto* v = dyn_cast<VarDecl>(d)) read(v);
  }
  void read(FunctionDecl* f) {
    if (f->doesThisDeclarationHaveABody() && f->getBody() != nullptr && places_.own(f->getLocation()) &&
        !is_lambda(f))
      reader_.function(f);
    if (const auto* constructor = dyn_cast<CXXConstructorDecl>(f); constructor != nullptr && places_.own(f->getLocation()))
      for (const CXXCtorInitializer* init : constructor->inits())
        if (init->isWritten() && init->getInit() != nullptr) reader_.outside(init->getInit());
  }
  void read(FieldDecl* f) {
    if (f->hasInClassInitializer() && f->getInClassInitializer() != nullptr && places_.own(f->getLocation()))
      reader_.outside(f->getInClassInitializer());
  }
  void read(VarDecl* v) {
    if (v->isFileVarDecl() && v->getInit() != nullptr && places_.own(v->getLocation()))
      reader_.outside(v->getInit());
  }
  /// Seen as part of the function that holds it.
  bool enters_lambda(LambdaExpr*) override { return false; }

  static bool is_lambda(const FunctionDecl* f) {
    const auto* method = dyn_cast<CXXMethodDecl>(f);
    return method != nullptr && method->getParent()->isLambda();
  }
  Reader& reader_;
  const Places& places_;
};

}  // namespace

void read_functions(ASTContext& ast, FileID file, const Facts& facts, Unit& unit) {
  const Places places(ast, file);
  Reader reader(ast, file, facts, unit);
  Written written(reader, places);
  for (Decl* d : ast.getTranslationUnitDecl()->decls())
    if (places.own(d->getLocation()) || places.own(d->getBeginLoc())) written.traverse(d);
  for (const auto& [at, complaint] : facts.complaints) unit.complaints.push_back(complaint);
  for (const auto& [at, hazard] : facts.hazards) unit.hazards.push_back(hazard);
  for (const auto& [at, write] : facts.plain_writes) unit.plain_writes.push_back(write);
  // A function that holds something staged ends where its braces end; what it calls tells which are
  // recursive.
  for (const auto& function : unit.functions)
    for (const auto& [at, callee] : facts.calls)
      if (function->body->range.contains(at) && std::find(function->calls.begin(), function->calls.end(),
                                                          std::pair(callee, at)) == function->calls.end())
        function->calls.emplace_back(callee, at);
  // Naming a lambda counts as calling it: what it does to variables outside happens there.
  for (const auto& [at, lambda] : facts.lambda_uses) unit.lambda_uses.emplace_back(at, lambda);
}

}  // namespace lantern::frontend
