// Walks every body that has types.
#include "lantern/compiler/frontend/clang/facts.hpp"

#include <clang/AST/DeclTemplate.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/StmtCXX.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>

#include <functional>
#include <utility>

#include "lantern/compiler/frontend/clang/library_writes.hpp"
#include "lantern/compiler/frontend/clang/template_types.hpp"
#include "lantern/compiler/frontend/clang/visitor.hpp"

namespace lantern::frontend {

using namespace clang;

bool Places::own(SourceLocation at) const {
  return at.isValid() && sources_.getFileID(sources_.getFileLoc(at)) == file_;
}

std::uint32_t Places::offset(SourceLocation at) const {
  return sources_.getFileOffset(sources_.getFileLoc(at));
}

bool Places::span(SourceRange range, Span& out) const {
  const CharSourceRange chars =
      Lexer::makeFileCharRange(CharSourceRange::getTokenRange(range), sources_, ast_.getLangOpts());
  if (chars.isInvalid() || !own(chars.getBegin())) return false;
  out = {sources_.getFileOffset(chars.getBegin()), sources_.getFileOffset(chars.getEnd())};
  return true;
}

Span Places::around(SourceRange range) const {
  const CharSourceRange first = sources_.getExpansionRange(range.getBegin()), last = sources_.getExpansionRange(range.getEnd());
  const SourceLocation end = last.isTokenRange() ? Lexer::getLocForEndOfToken(last.getEnd(), 0, sources_, ast_.getLangOpts()) : last.getEnd();
  const std::uint32_t from = sources_.getFileOffset(first.getBegin());
  return {from, std::max(from + 1, sources_.getFileOffset(end))};
}

bool Places::from_macro(SourceLocation at, std::string* name) const {
  if (!at.isMacroID() || !sources_.isMacroBodyExpansion(at)) return false;
  if (name != nullptr) *name = Lexer::getImmediateMacroName(at, sources_, ast_.getLangOpts()).str();
  return true;
}

bool is_rep(QualType type) {
  const auto* record = type.getNonReferenceType()->getAsCXXRecordDecl();
  if (record == nullptr || record->getIdentifier() == nullptr || record->getName() != "Rep") return false;
  const auto named = [](const DeclContext* context, StringRef name) {
    const auto* space = dyn_cast_or_null<NamespaceDecl>(context);
    return space != nullptr && space->getIdentifier() != nullptr && space->getName() == name;
  };
  return named(record->getDeclContext(), "core") && named(record->getDeclContext()->getParent(), "lantern");
}

namespace {

bool holds_rep_within(QualType type, int depth) {
  if (type.isNull() || depth == 0 || type->isDependentType()) return false;
  type = type.getCanonicalType().getNonReferenceType();
  if (is_rep(type)) return true;
  if (type->isPointerType()) return holds_rep_within(type->getPointeeType(), depth - 1);
  if (const auto* array = dyn_cast<clang::ArrayType>(type.getTypePtr()))
    return holds_rep_within(array->getElementType(), depth - 1);
  const auto* record = type->getAsCXXRecordDecl();
  if (record == nullptr || record->isLambda()) return false;
  if (const auto* instance = dyn_cast<ClassTemplateSpecializationDecl>(record)) {
    const std::function<bool(const TemplateArgument&)> holds = [&](const TemplateArgument& a) {
      if (a.getKind() == TemplateArgument::Type) return holds_rep_within(a.getAsType(), depth - 1);
      if (a.getKind() != TemplateArgument::Pack) return false;
      for (const TemplateArgument& part : a.pack_elements())
        if (holds(part)) return true;
      return false;
    };
    for (const TemplateArgument& a : instance->getTemplateArgs().asArray())
      if (holds(a)) return true;
  }
  record = record->getDefinition();
  if (record == nullptr || record->isInStdNamespace()) return false;
  for (const FieldDecl* field : record->fields())
    if (holds_rep_within(field->getType(), depth - 1)) return true;
  for (const CXXBaseSpecifier& base : record->bases())
    if (holds_rep_within(base.getType(), depth - 1)) return true;
  return false;
}

const CXXMemberCallExpr* conversion_of_rep(const Expr* e) {
  const auto* call = dyn_cast<CXXMemberCallExpr>(e);
  if (call == nullptr || !isa_and_nonnull<CXXConversionDecl>(call->getMethodDecl())) return nullptr;
  return is_rep(call->getImplicitObjectArgument()->getType()) ? call : nullptr;
}

bool logical(const CXXOperatorCallExpr* call) {
  return call->getOperator() == OO_AmpAmp || call->getOperator() == OO_PipePipe;
}

}  // namespace

bool holds_rep(QualType type) { return holds_rep_within(type, 6); }

bool is_staged(const Expr* e) {
  if (e == nullptr) return false;
  e = bare(e);
  if (is_rep(e->getType()) || conversion_of_rep(e) != nullptr) return true;
  // `switch` over a Rep: an error that Clang recovers from.
  if (const auto* broken = dyn_cast<RecoveryExpr>(e))
    return broken->subExpressions().size() == 1 && is_rep(broken->subExpressions()[0]->getType());
  if (const auto* op = dyn_cast<UnaryOperator>(e))
    return op->getOpcode() == UO_LNot && is_staged(op->getSubExpr());
  if (const auto* op = dyn_cast<BinaryOperator>(e)) {
    if (op->isLogicalOp()) return is_staged(op->getLHS()) || is_staged(op->getRHS());
    return op->getOpcode() == BO_Comma && is_staged(op->getRHS());
  }
  if (const auto* op = dyn_cast<ConditionalOperator>(e))
    return !op->getType()->isRecordType() &&
           (is_staged(op->getCond()) || is_staged(op->getTrueExpr()) || is_staged(op->getFalseExpr()));
  return false;
}

const FunctionDecl* written(const FunctionDecl* function, const Places& places) {
  if (function == nullptr) return nullptr;
  if (const FunctionDecl* pattern = function->getTemplateInstantiationPattern()) function = pattern;
  const FunctionDecl* definition = nullptr;
  if (!function->hasBody(definition) || !places.own(definition->getLocation())) return nullptr;
  return definition;
}

namespace {

/// What an expression that can be assigned to is part of.
struct Root {
  enum class Kind { variable, temporary, unknown } kind = Kind::unknown;
  const ValueDecl* variable = nullptr;
};

/// A change of a plain value, that of an argument or object only if the function that is called makes it.
struct PossibleWrite {
  PlainWrite write;
  const ParmVarDecl* parameter = nullptr;
  const FunctionDecl* member = nullptr;
};

class Collector : public Visitor {
 public:
  Collector(ASTContext& ast, FileID file, Facts& facts)
      : Visitor({}), ast_(ast), places_(ast, file), facts_(facts) {}

  // ---- Conditions
  // ---------------------------------------------------------------------------------------------

  void read(IfStmt* s) {
    if (!s->isConstexpr()) condition(s->getCond(), s->getIfLoc());
  }
  void read(WhileStmt* s) { condition(s->getCond(), s->getWhileLoc()); }
  void read(DoStmt* s) { condition(s->getCond(), s->getDoLoc()); }
  void read(ForStmt* s) { condition(s->getCond(), s->getForLoc()); }
  void read(SwitchStmt* s) { condition(s->getCond(), s->getSwitchLoc()); }
  void read(ConditionalOperator* e) {
    if (!e->getType()->isRecordType()) accept(e->getTrueExpr()), accept(e->getFalseExpr());
    condition(e->getCond(), e->getQuestionLoc());
  }
  void read(BinaryConditionalOperator* e) {
    if (is_staged(e->getCommon()))
      complain(e->getQuestionLoc(),
               "the GNU operator ?: without a middle operand is not rewritten; name the value");
  }
  void read(CXXForRangeStmt* s) {
    if (s->getRangeInit() != nullptr && is_rep(s->getRangeInit()->getType())) mark(s->getForLoc());
    if (const VarDecl* v = s->getLoopVariable(); v != nullptr && v->getType()->isReferenceType()) {
      if (s->getRangeInit() != nullptr && is_rep(s->getRangeInit()->getType()))
        copies_.emplace(v,
                        "an element of what the loop goes over, which is a value: loop over the indices, and "
                        "assign a[i]");
      else if (s->getRangeInit() != nullptr)
        aliases_.emplace(v, s->getRangeInit());
      // Elements of a structured binding follow the same rule.
    }
  }
  void read(UnaryOperator* e) {
    if (e->getOpcode() == UO_LNot && is_staged(e->getSubExpr())) {
      accept(e->getSubExpr());
      mark(e->getOperatorLoc());
    }
    if (e->isIncrementDecrementOp()) write(e->getSubExpr());
  }
  void read(BinaryOperator* e) {
    if (e->isLogicalOp() && (is_staged(e->getLHS()) || is_staged(e->getRHS()))) {
      accept(e->getLHS()), accept(e->getRHS());
      mark(e->getOperatorLoc());
    }
    if (e->isAssignmentOp()) write(e->getLHS());
  }

  // ---- Assignments and calls
  // ----------------------------------------------------------------------------------

  void read(CXXOperatorCallExpr* e) {
    if (logical(e) && is_rep(e->getType())) mark(e->getOperatorLoc());
    if (e->getOperator() == OO_Equal && e->getNumArgs() == 2 && e->getArg(1)->isXValue() &&
        keeps_elsewhere(e->getArg(0)->getType()) && holds_rep(e->getArg(0)->getType()))
      moved(e->getArg(0));
    if (e->isAssignmentOp() || e->getOperator() == OO_PlusPlus || e->getOperator() == OO_MinusMinus) {
      if (gives_part(e->getArg(0))) {
        facts_.stores.insert(places_.offset(bare(e->getArg(0))->getBeginLoc()));
      } else {
        write(e->getArg(0));
      }
    }
  }
  void read(CallExpr* e) {
    const FunctionDecl* callee = e->getDirectCallee();
    if (callee == nullptr) return;
    if (const FunctionDecl* known = written(callee, places_)) {
      facts_.calls.insert({places_.offset(e->getBeginLoc()), places_.offset(known->getLocation())});
      if (function_ != nullptr) calls_[function_].insert(callee->getCanonicalDecl());
    }
    for (const Expr* range : ranges_written(e))
      if (root(range).kind == Root::Kind::variable) write(range);
    if (callee->getIdentifier() != nullptr && callee->getName() == "swap")
      for (const Expr* a : e->arguments())
        if (element_of_rep(a) != nullptr) facts_.stores.insert(places_.offset(bare(a)->getBeginLoc()));
    const auto* op = dyn_cast<CXXOperatorCallExpr>(e);
    const auto* method = dyn_cast<CXXMethodDecl>(callee);
    // A member operator's first argument is its object.
    const unsigned shift = op != nullptr && method != nullptr && !method->isStatic() ? 1 : 0;
    for (unsigned i = 0; i + shift < e->getNumArgs() && i < callee->getNumParams(); ++i) {
      if (op != nullptr && i + shift == 0) continue;
      const QualType type = callee->getParamDecl(i)->getType();
      if (type->isLValueReferenceType() && !type->getPointeeType().isConstQualified())
        passed(e->getArg(i + shift), callee, i);
    }
    if (const auto* member = dyn_cast<CXXMemberCallExpr>(e)) member_call(member);
  }
  void read(CXXMemberCallExpr* e) {
    if (conversion_of_rep(e) != nullptr && accepted_.count(e) == 0)
      complain(e->getExprLoc(), e->getType()->isBooleanType()
                                    ? "a staged condition is used as a plain bool, which has no value while "
                                      "the program is staged; keep it in a Rep<bool>"
                                    : "a staged number is used as a plain one, which has no value while the "
                                      "program is staged; keep it in a Rep");
  }
  void read(CXXThrowExpr* e) {
    hazard(e->getThrowLoc(), 5,
           "'throw' in a branch that is staged would be thrown while the program is staged, whatever the "
           "condition; return a value instead");
  }
  void read(CXXNewExpr* e) {
    hazard(e->getBeginLoc(), 3,
           "'new' under a staged condition allocates while the program is staged; use a local variable, "
           "std::array or std::vector");
  }
  void read(CXXDeleteExpr* e) {
    hazard(e->getBeginLoc(), 6,
           "'delete' under a staged condition runs while the program is staged; use a local variable, "
           "std::array or std::vector");
  }
  void read(GCCAsmStmt* s) {
    hazard(s->getAsmLoc(), 3, "'asm' under a staged condition runs while the program is staged");
  }

  // ---- Variables
  // ----------------------------------------------------------------------------------------------

  void read(VarDecl* v) {
    if (v->getType()->isReferenceType() && v->getInit() != nullptr && !isa<ParmVarDecl>(v)) {
      // A temporary belongs to the reference that is bound to it: that is a variable like others.
      if (!bound_to_temporary(v))
        aliases_.emplace(v, v->getInit());  // of a range-for: its range is known already
      else if (gives_part(v->getInit()))
        copies_.emplace(v,
                        "a part of an array or tensor, which is a value: assign the array's element itself, "
                        "a[i] = ...");
    }
    if (v->isStaticLocal() && holds_rep(v->getType()))
      complain(v->getLocation(),
               "a static variable would keep a staged value after staging has ended; make it a local "
               "variable or a parameter");
    if (const Expr* init = v->getInit(); init != nullptr && v->getType()->isArithmeticType()) {
      const auto* choice = dyn_cast<ConditionalOperator>(bare(init));
      if (choice != nullptr && is_staged(choice->getCond()))
        complain_plain(v,
                       "the plain variable '" + v->getNameAsString() + "' is initialised by a staged choice");
    }
  }
  void read(DeclRefExpr* e) {
    if (const auto* v = dyn_cast<ValueDecl>(e->getDecl()); v != nullptr && !v->getType().isNull() &&
                                                           places_.own(v->getLocation()) &&
                                                           places_.own(e->getLocation())) {
      const auto* record = v->getType().getNonReferenceType()->getAsCXXRecordDecl();
      if (record != nullptr && record->isLambda() && places_.own(record->getLocation()))
        facts_.lambda_uses.insert({places_.offset(e->getLocation()), places_.offset(record->getLocation())});
    }
  }
  using Visitor::visit;
  void visit(Stmt* s) override {
    visit_as<IfStmt, WhileStmt, DoStmt, ForStmt, SwitchStmt, ConditionalOperator, BinaryConditionalOperator,
             CXXForRangeStmt, UnaryOperator, BinaryOperator, CallExpr, CXXOperatorCallExpr, CXXMemberCallExpr,
             CXXThrowExpr, CXXNewExpr, CXXDeleteExpr, GCCAsmStmt, DeclRefExpr>(s);
  }
  void visit(Decl* d) override { visit_as<VarDecl>(d); }
  /// Reads a node as each of the classes that it belongs to, bases first.
  template <class... Classes, class Node>
  void visit_as(Node* node) {
    (..., (isa<Classes>(node) ? read(cast<Classes>(node)) : void()));
  }
  bool enters_lambda(LambdaExpr* e) override {
    for (unsigned i = 0; i < e->capture_size(); ++i)
      if (e->capture_begin()[i].capturesVariable() && e->capture_init_begin()[i] != nullptr)
        traverse(e->capture_init_begin()[i]);
    const CXXMethodDecl* call = e->getCallOperator();
    if (const FunctionTemplateDecl* generic = e->getDependentCallOperator()) {
      for (FunctionDecl* instance : generic->specializations()) body(instance);
      return false;
    }
    body(const_cast<CXXMethodDecl*>(call));
    return false;
  }

  /// A function that has types.
  void body(FunctionDecl* function) {
    if (!function->doesThisDeclarationHaveABody() || function->isDependentContext() ||
        !seen_.insert(function).second)
      return;
    const FunctionDecl* source = written(function, places_);
    if (source != nullptr) {
      const auto* method = dyn_cast<CXXMethodDecl>(function);
      if (method != nullptr && method->isInstance() && has_staged_members(method->getParent()))
        facts_.staged_objects.insert(places_.offset(source->getLocation()));
      const QualType result = function->getReturnType().getNonReferenceType();
      auto& set = holds_rep(result) ? facts_.staged_results : facts_.plain_results;
      if (!result->isVoidType() && (holds_rep(result) || result->isArithmeticType()))
        set.insert(places_.offset(source->getLocation()));
    }
    const int marks = marks_;
    auto outer = std::exchange(hazards_, {});
    auto outer_writes = std::exchange(plain_writes_, {});
    const FunctionDecl* const outer_function = std::exchange(function_, function->getCanonicalDecl());
    if (outer_function != nullptr) calls_[outer_function].insert(function_);  // a lambda
    for (ParmVarDecl* p : function->parameters()) traverse(p);
    if (auto* constructor = dyn_cast<CXXConstructorDecl>(function))
      for (CXXCtorInitializer* init : constructor->inits())
        if (init->isWritten()) traverse(init);
    traverse(function->getBody());
    // An instantiation in which nothing is staged is C++ as it is.
    if (marks_ != marks) {
      if (source != nullptr && is_for_foreign_types(function))
        facts_.staged_for_foreign_types.insert(places_.offset(source->getLocation()));
      for (const Hazard& h : hazards_) facts_.hazards.emplace(h.at, h);
      all_writes_.insert(all_writes_.end(), plain_writes_.begin(), plain_writes_.end());
    } else {
      // A lambda in a function where something is staged may be called there.
      outer.insert(outer.end(), hazards_.begin(), hazards_.end());
      outer_writes.insert(outer_writes.end(), plain_writes_.begin(), plain_writes_.end());
    }
    hazards_ = std::move(outer);
    plain_writes_ = std::move(outer_writes);
    function_ = outer_function;
  }

 private:
  static bool has_staged_members(const CXXRecordDecl* record) {
    return std::any_of(record->field_begin(), record->field_end(),
                       [](const FieldDecl* f) { return holds_rep(f->getType()); }) ||
           std::any_of(record->bases_begin(), record->bases_end(), [](const CXXBaseSpecifier& b) {
             const CXXRecordDecl* base = b.getType()->getAsCXXRecordDecl();
             return base != nullptr && base->hasDefinition() && has_staged_members(base->getDefinition());
           });
  }
  void condition(const Expr* e, SourceLocation key) {
    if (e != nullptr && is_staged(e)) {
      refuse_assignment(e);
      accept(e);
      mark(key);
    }
  }
  /// `if (x = 1.0)`, which C++ takes for Reps as for numbers. As in C, parentheses say that an assignment is meant.
  void refuse_assignment(const Expr* e) {
    while (isa<ImplicitCastExpr, FullExpr, MaterializeTemporaryExpr, CXXBindTemporaryExpr>(e))
      e = isa<FullExpr>(e) ? cast<FullExpr>(e)->getSubExpr() : cast<Expr>(*e->children().begin());
    if (const auto* converted = conversion_of_rep(e)) return refuse_assignment(converted->getImplicitObjectArgument());
    const auto* call = dyn_cast<CXXOperatorCallExpr>(e);
    if (call != nullptr && call->getOperator() == OO_Equal)
      complain(call->getOperatorLoc(), "'=' assigns in a condition; write '==' to compare, or assign before it");
  }
  void mark(SourceLocation key) {
    if (!places_.own(key)) return;
    facts_.staged.insert(places_.offset(key));
    ++marks_;
  }
  /// Conversions to bool that the rewriter removes.
  void accept(const Expr* e) {
    e = bare(e);
    if (const auto* call = conversion_of_rep(e)) accepted_.insert(call);
    if (const auto* op = dyn_cast<BinaryOperator>(e); op != nullptr && op->getOpcode() == BO_Comma)
      accept(op->getRHS());
  }
  void complain(SourceLocation at, const std::string& text) {
    if (places_.own(at))
      facts_.complaints.emplace(places_.offset(at), Complaint{places_.offset(at), 1, text, {}});
  }
  void complain_plain(const VarDecl* v, const std::string& text) {
    if (!places_.own(v->getLocation())) return;
    Complaint c{places_.offset(v->getLocation()), static_cast<std::uint32_t>(v->getName().size()), text, {}};
    Note note{c.at, "declare it as a Rep", {}, ""};
    const SourceRange type = v->getTypeSourceInfo()->getTypeLoc().getSourceRange();
    if (places_.span(type, note.replace)) {
      note.replacement =
          "Rep<" + v->getType().getUnqualifiedType().getAsString(ast_.getPrintingPolicy()) + ">";
      note.text = "declare it as '" + note.replacement + "'";
    }
    c.notes.push_back(note);
    facts_.complaints.emplace(c.at, c);
  }
  void hazard(SourceLocation at, std::uint32_t length, const std::string& text) {
    if (places_.own(at)) hazards_.push_back({places_.offset(at), length, text});
  }

  // ---- What an assignment changes
  // -----------------------------------------------------------------------------

  /// The call a[i] or t(i, j) on a Rep, through casts and parentheses.
  const CXXOperatorCallExpr* element_of_rep(const Expr* e) const {
    const auto* call = dyn_cast<CXXOperatorCallExpr>(bare(e));
    if (call == nullptr || (call->getOperator() != OO_Subscript && call->getOperator() != OO_Call))
      return nullptr;
    return is_rep(call->getArg(0)->getType()) ? call : nullptr;
  }
  /// Functions that give access to an object and leave it as it is, though they are not const.
  static bool is_accessor(const FunctionDecl* f) {
    const auto* method = dyn_cast<CXXMethodDecl>(f);
    const bool standard = f->isInStdNamespace() || (method != nullptr && method->getParent()->isInStdNamespace());
    if (!standard || f->getIdentifier() == nullptr) return false;
    static const std::set<std::string> names{
        "find", "lower_bound", "upper_bound", "value", "at",  "begin", "end",     "rbegin", "rend",     "cbegin", "cend",       "front", "back",     "data",
        "get", "tie",   "forward", "move",   "as_const", "size",   "make_tuple", "ref",   "addressof"};
    return names.count(f->getNameAsString()) != 0;
  }
  /// Functions of the library that assign what they are passed by reference. Others may take any reference,
  /// as std::make_pair does.
  static bool assigns_arguments(const FunctionDecl* f) {
    if (!f->isInStdNamespace()) return true;
    static const std::set<std::string> names{"swap", "exchange", "advance", "getline", "iter_swap"};
    return f->getIdentifier() != nullptr && names.count(f->getNameAsString()) != 0;
  }
  /// Whether assigning it changes where Reps are looked for, and no Rep: a pointer, an iterator, a reference
  /// wrapper.
  static bool refers_to_reps(QualType type) {
    type = type.getNonReferenceType();
    if (type->isPointerType()) return true;
    const auto* record = type->getAsCXXRecordDecl();
    return record != nullptr && record->getIdentifier() != nullptr &&
           (record->getName() == "reference_wrapper" || record->getName().contains("iterator"));
  }
  /// Whether a value keeps its elements elsewhere: moving or swapping it moves none of them.
  static bool keeps_elsewhere(QualType type) {
    static const std::set<std::string> names{"vector",   "deque", "list",     "forward_list",  "map",
                                             "multimap", "set",   "multiset", "unordered_map", "unordered_set",
                                             "unique_ptr", "shared_ptr"};
    const auto* record = type.getNonReferenceType()->getAsCXXRecordDecl();
    return record != nullptr && record->isInStdNamespace() && record->getIdentifier() != nullptr &&
           names.count(record->getName().str()) != 0;
  }
  void moved(const Expr* container) {
    refuse_write(container, "a container of staged values is moved or swapped under a staged condition: it would happen while the "
                            "program is staged, whatever the condition; copy it, or assign its elements");
  }
  /// A change that is an error under a staged condition.
  void refuse_write(const Expr* target, const std::string& why) {
    const Root found = root(target);
    if (found.kind == Root::Kind::temporary || !places_.own(target->getBeginLoc())) return;
    PlainWrite w = plain_write(target, found);
    w.text = why;
    plain_writes_.push_back({w});
  }
  /// A variable that is passed by reference: the function may assign it.
  void passed(const Expr* argument, const FunctionDecl* callee, unsigned i) {
    if (!assigns_arguments(callee)) return;
    if (holds_rep(argument->getType()) && callee->isInStdNamespace() && keeps_elsewhere(argument->getType()))
      return moved(argument);
    if (holds_rep(argument->getType()) && !refers_to_reps(argument->getType())) return;
    const FunctionDecl* definition = nullptr;
    if (!callee->hasBody(definition) || callee->isInStdNamespace()) return write(argument);
    const ParmVarDecl* const parameter = definition->getParamDecl(i);
    const Root found = root(argument);
    if (found.kind == Root::Kind::temporary || !places_.own(argument->getBeginLoc())) return;
    if (const auto* own = dyn_cast_or_null<ParmVarDecl>(found.variable)) passes_.emplace_back(own, parameter);
    plain_writes_.push_back({plain_write(argument, found), parameter});
  }

  void member_call(const CXXMemberCallExpr* e) {
    const CXXMethodDecl* method = e->getMethodDecl();
    if (method == nullptr || isa<CXXConversionDecl>(method)) return;
    const Expr* object = e->getImplicitObjectArgument();
    const auto* named = dyn_cast<MemberExpr>(e->getCallee()->IgnoreParens());
    if (method->isVirtual() && (named == nullptr || !named->hasQualifier()) &&
        !object->getBestDynamicClassType()->isEffectivelyFinal() &&
        object->getType()->isPointerType() + object->isLValue() > 0) {
      const std::string name = method->getNameAsString();
      std::string text = "the virtual function '" + name +
                         "' is called under a staged condition; its object is chosen while the program is staged, "
                         "whatever the condition. Choose it before: const auto call = [&](const auto&... x) { return "
                         "object." + name + "(x...); }; in front of the branch or loop, and call(...) inside";
      if (!isa<DeclRefExpr>(bare(object)) || bare(object)->getType()->isPointerType() ||
          is_reference(bare(object)))
        hazard(e->getExprLoc(), static_cast<std::uint32_t>(name.size()), text);
    }
    if (method->isConst() || method->isStatic() || is_accessor(method)) return;
    if (isa<CXXThisExpr>(bare(object)) || holds_rep(object->getType())) {
      if (method->getParent()->isInStdNamespace()) {
        resized(e, object);
      } else if (written(method, places_) != nullptr) {
        member_calls_.emplace_back(function_, method->getCanonicalDecl());
        plain_writes_.push_back({plain_write(object, root(object)), nullptr, method->getCanonicalDecl()});
      }
      return;
    }
    write(object);
  }
  /// A call of a member function of a container of Reps that may change its size.
  void resized(const CXXMemberCallExpr* e, const Expr* object) {
    if (is_rep(object->getType()) || e->getMethodDecl()->getIdentifier() == nullptr) return;
    const std::string name = e->getMethodDecl()->getNameAsString();
    if (name == "fill") return;
    const Root found = root(object);
    PlainWrite w = plain_write(object, found);
    w.text = "'" + name +
             "' changes a container of staged values under a staged condition: it would change while the program "
             "is staged, whatever the condition; give the container its size before, or use a Rep<Array<...>>";
    w.at = places_.offset(e->getExprLoc());
    w.length = static_cast<std::uint32_t>(name.size());
    if (places_.own(e->getExprLoc()) && found.kind != Root::Kind::temporary) plain_writes_.push_back({w});
  }
  static bool is_reference(const Expr* e) {
    const auto* ref = dyn_cast<DeclRefExpr>(e);
    return ref != nullptr && ref->getDecl()->getType()->isReferenceType();
  }

  Root root(const Expr* e, int depth = 0) {
    e = bare(e);
    if (depth > 16) return {};
    if (const auto* ref = dyn_cast<DeclRefExpr>(e)) {
      const auto* v = dyn_cast<ValueDecl>(ref->getDecl());
      if (v == nullptr || (!isa<VarDecl>(v) && !isa<BindingDecl>(v))) return {};
      if (const auto alias = aliases_.find(v); alias != aliases_.end()) return root(alias->second, depth + 1);
      if (const auto* binding = dyn_cast<BindingDecl>(v)) {
        const auto* whole = dyn_cast<DecompositionDecl>(binding->getDecomposedDecl());
        if (whole != nullptr && whole->getType()->isReferenceType()) {
          if (const auto alias = aliases_.find(whole); alias != aliases_.end())
            return root(alias->second, depth + 1);
        }
      }
      return {Root::Kind::variable, v};
    }
    if (const auto* member = dyn_cast<MemberExpr>(e)) {
      const auto* field = dyn_cast<FieldDecl>(member->getMemberDecl());
      if (field == nullptr) return {};
      if (isa<CXXThisExpr>(bare(member->getBase()))) return {Root::Kind::variable, field};
      return member->isArrow() ? Root{} : root(member->getBase(), depth + 1);
    }
    if (const auto* subscript = dyn_cast<ArraySubscriptExpr>(e))
      return bare(subscript->getBase())->getType()->isPointerType() ? Root{}
                                                                    : root(subscript->getBase(), depth + 1);
    if (const auto* call = dyn_cast<CXXOperatorCallExpr>(e)) {
      if (call->getOperator() == OO_Subscript || call->getOperator() == OO_Call || call->isAssignmentOp())
        return root(call->getArg(0), depth + 1);
      return {};
    }
    if (const auto* call = dyn_cast<CXXMemberCallExpr>(e)) {
      if (!call->isGLValue()) return {Root::Kind::temporary, nullptr};
      return call->getImplicitObjectArgument()->getType()->isPointerType()
                 ? Root{}
                 : root(call->getImplicitObjectArgument(), depth + 1);
    }
    if (const auto* call = dyn_cast<CallExpr>(e)) {
      if (!call->isGLValue()) return {Root::Kind::temporary, nullptr};
      const FunctionDecl* callee = call->getDirectCallee();
      if (callee != nullptr && is_accessor(callee) && call->getNumArgs() > 0)
        return root(call->getArg(0), depth + 1);
      return {};
    }
    if (const auto* op = dyn_cast<BinaryOperator>(e); op != nullptr && op->isAssignmentOp())
      return root(op->getLHS(), depth + 1);
    if (const auto* op = dyn_cast<UnaryOperator>(e); op != nullptr && op->isIncrementDecrementOp())
      return root(op->getSubExpr(), depth + 1);
    if (isa<CXXTemporaryObjectExpr>(e) || isa<CXXConstructExpr>(e) || isa<CXXFunctionalCastExpr>(e) ||
        isa<InitListExpr>(e) || isa<LambdaExpr>(e))
      return {Root::Kind::temporary, nullptr};
    if (!e->isGLValue()) return {Root::Kind::temporary, nullptr};
    return {};
  }

  /// Whether the reference keeps a temporary alive.
  static bool bound_to_temporary(const VarDecl* v) {
    const Expr* init = v->getInit();
    if (const auto* cleanups = dyn_cast<ExprWithCleanups>(init)) init = cleanups->getSubExpr();
    return isa<MaterializeTemporaryExpr>(init->IgnoreParenImpCasts()) || isa<MaterializeTemporaryExpr>(init);
  }
  /// a[i], t(i, j), t.row(i), a.slice(lo, hi) of a Rep.
  bool gives_part(const Expr* e) const {
    if (element_of_rep(e) != nullptr) return true;
    const auto* call = dyn_cast<CXXMemberCallExpr>(bare(e));
    if (call == nullptr || !is_rep(call->getImplicitObjectArgument()->getType())) return false;
    const CXXMethodDecl* method = call->getMethodDecl();
    return method != nullptr && method->getIdentifier() != nullptr &&
           (method->getName() == "row" || method->getName() == "slice");
  }

  void write(const Expr* target) {
    if (!places_.own(target->getBeginLoc())) return;
    if (const auto* ref = dyn_cast<DeclRefExpr>(bare(target)))
      if (const auto copy = copies_.find(ref->getDecl()); copy != copies_.end()) {
        complain(target->getBeginLoc(),
                 "'" + ref->getDecl()->getNameAsString() + "' is a copy of " + copy->second);
        return;
      }
    // std::tie(a, b) = ...
    if (const auto* call = dyn_cast<CallExpr>(bare(target));
        call != nullptr && call->getDirectCallee() != nullptr &&
        call->getDirectCallee()->isInStdNamespace() && call->getDirectCallee()->getIdentifier() != nullptr &&
        call->getDirectCallee()->getName() == "tie") {
      for (const Expr* part : call->arguments()) write(part);
      return;
    }
    const auto* choice = dyn_cast<ConditionalOperator>(bare(target));
    if (choice != nullptr && is_staged(choice->getCond())) {
      complain(choice->getQuestionLoc(),
               "a staged choice gives a value, not a variable that can be assigned; write an if");
      return;
    }
    // What a Rep is assigned, the program that is staged sees.
    if (target->getType()->isDependentType()) return;
    if (const VarDecl* empty = holds_rep(target->getType()) ? empty_optional(target) : nullptr;
        empty != nullptr && assigned_optionals_.insert(empty).second)
      return refuse_write(target, "a std::optional without a value is assigned under a staged condition: whether it has one would be decided "
                                  "while the program is staged, whatever the condition; use a Rep, and a Rep<bool> that says whether there is one");
    if (holds_rep(target->getType()) && !refers_to_reps(target->getType())) return;
    const Root found = root(target);
    if (found.kind == Root::Kind::temporary) return;
    if (found.kind == Root::Kind::variable && found.variable->isInStdNamespace()) return;  // std::ignore
    if (found.kind == Root::Kind::variable && isa<FieldDecl>(found.variable) && function_ != nullptr)
      changes_members_.insert(function_);
    if (const auto* parameter = dyn_cast_or_null<ParmVarDecl>(found.variable)) written_parameters_.insert(parameter);
    plain_writes_.push_back({plain_write(target, found)});
  }

  PlainWrite plain_write(const Expr* target, const Root& found) {
    PlainWrite w;
    w.at = places_.offset(target->getBeginLoc());
    if (found.kind != Root::Kind::variable) {
      w.text =
          "a plain value is assigned here under a staged condition, through a pointer or a reference: it would "
          "change while the program is staged, whatever the condition";
      return w;
    }
    const ValueDecl* const v = found.variable;
    const QualType type = v->getType();
    w.name = v->getNameAsString();
    w.length = static_cast<std::uint32_t>(w.name.size());
    w.type = type.getNonReferenceType().getUnqualifiedType().getAsString(ast_.getPrintingPolicy());
    w.declared = places_.own(v->getLocation()) ? places_.offset(v->getLocation()) : 0;
    const auto* variable = dyn_cast<VarDecl>(v);
    w.outlives = isa<FieldDecl>(v) ||
                 (variable != nullptr && (variable->hasGlobalStorage() ||
                                          (isa<ParmVarDecl>(v) && type->isReferenceType())));
    w.replaceable = type->isArithmeticType();
    if (const auto* declarator = dyn_cast<DeclaratorDecl>(v);
        declarator != nullptr && declarator->getTypeSourceInfo() != nullptr)
      static_cast<void>(
          places_.span(declarator->getTypeSourceInfo()->getTypeLoc().getSourceRange(), w.type_range));
    return w;
  }

  ASTContext& ast_;
  Places places_;
  Facts& facts_;
  std::map<const ValueDecl*, const Expr*> aliases_;
  std::map<const ValueDecl*, std::string> copies_;  // references that look like parts of a Rep: of what
  std::set<const Expr*> accepted_;
  std::set<const FunctionDecl*> seen_;
  std::vector<Hazard> hazards_;  // of the body that is being read
  std::vector<PossibleWrite> plain_writes_;
  const FunctionDecl* function_ = nullptr;  // that body's
  int marks_ = 0;                         // conditions found staged

 public:
  /// What needs all functions. Recursion is one of instantiations: repeat<3> that calls repeat<2> is none. And the
  /// changes of plain values where something is staged: a variable that is passed by reference changes where the
  /// parameter does, a member where a member function that is called changes it.
  void resolve() {
    for (bool again = true; again;) {
      again = false;
      for (const auto& [from, to] : passes_)
        if (written_parameters_.count(to) != 0) again |= written_parameters_.insert(from).second;
      for (const auto& [caller, callee] : member_calls_)
        if (changes_members_.count(callee) != 0) again |= changes_members_.insert(caller).second;
    }
    for (const auto& [function, callees] : calls_) {
      std::set<const FunctionDecl*> reached;
      std::vector<const FunctionDecl*> open{function};
      while (!open.empty() && reached.count(function) == 0) {
        const auto next = calls_.find(open.back());
        open.pop_back();
        if (next == calls_.end()) continue;
        for (const FunctionDecl* callee : next->second)
          if (reached.insert(callee).second) open.push_back(callee);
      }
      if (const FunctionDecl* source = written(function, places_); source != nullptr && reached.count(function) != 0)
        facts_.recursive.insert(places_.offset(source->getLocation()));
    }
    for (const PossibleWrite& w : all_writes_)
      if ((w.parameter == nullptr || written_parameters_.count(w.parameter) != 0) &&
          (w.member == nullptr || changes_members_.count(w.member) != 0))
        facts_.plain_writes.emplace(w.write.at, w.write);
  }

 private:
  std::map<const FunctionDecl*, std::set<const FunctionDecl*>> calls_;  ///< of instantiations
  std::vector<PossibleWrite> all_writes_;  ///< of functions where something is staged
  std::vector<std::pair<const FunctionDecl*, const FunctionDecl*>> member_calls_;  ///< caller, callee
  std::set<const FunctionDecl*> changes_members_;                                  ///< that are plain
  std::set<const VarDecl*> assigned_optionals_;  ///< declared without a value, and assigned further up
  std::vector<std::pair<const ParmVarDecl*, const ParmVarDecl*>> passes_;  ///< a parameter as another's argument
  std::set<const ParmVarDecl*> written_parameters_;
};

/// Finds the bodies: of functions, and of instantiations of templates.
class Bodies : public Visitor {
 public:
  explicit Bodies(Collector& collector) : Visitor({.instantiations = true}), collector_(collector) {}

 private:
  using Visitor::visit;
  void visit(Decl* d) override {
    if (auto* f = dyn_cast<FunctionDecl>(d)) collector_.body(f);
    // Lambdas and calls in initialisers at namespace scope.
    if (auto* v = dyn_cast<VarDecl>(d);
        v != nullptr && v->isFileVarDecl() && v->getInit() != nullptr && !v->getInit()->isValueDependent())
      collector_.traverse(v->getInit());
    if (auto* f = dyn_cast<FieldDecl>(d); f != nullptr && f->hasInClassInitializer())
      if (Expr* init = f->getInClassInitializer(); init != nullptr && !f->getParent()->isDependentContext())
        collector_.traverse(init);
  }
  bool enters_lambda(LambdaExpr* e) override { return collector_.enters_lambda(e); }

  Collector& collector_;
};

}  // namespace

Facts collect_facts(ASTContext& ast, FileID file) {
  Facts facts;
  Collector collector(ast, file, facts);
  Bodies bodies(collector);
  const Places places(ast, file);
  for (Decl* d : ast.getTranslationUnitDecl()->decls())
    if (places.own(d->getLocation()) || places.own(d->getBeginLoc())) bodies.traverse(d);
  collector.resolve();
  return facts;
}

}  // namespace lantern::frontend
