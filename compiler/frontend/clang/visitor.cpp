#include "lantern/compiler/frontend/clang/visitor.hpp"

#include <clang/AST/RecursiveASTVisitor.h>

namespace lantern::frontend {

using namespace clang;

class Visitor::Walk : public RecursiveASTVisitor<Visitor::Walk> {
 public:
  Walk(Visitor& visitor, Options options) : visitor_(visitor), options_(options) {}

  bool shouldVisitTemplateInstantiations() const { return options_.instantiations; }
  bool shouldVisitImplicitCode() const { return options_.implicit_code; }

  bool VisitDecl(Decl* d) { return visitor_.visit(d), true; }
  bool VisitStmt(Stmt* s) { return visitor_.visit(s), true; }
  bool TraverseDecl(Decl* d) {
    return (d != nullptr && !visitor_.enters(d)) || RecursiveASTVisitor::TraverseDecl(d);
  }
  bool TraverseLambdaExpr(LambdaExpr* e) {
    return !visitor_.enters_lambda(e) || RecursiveASTVisitor::TraverseLambdaExpr(e);
  }

 private:
  Visitor& visitor_;
  Options options_;
};

Visitor::Visitor(Options options) : walk_(std::make_unique<Walk>(*this, options)) {}
Visitor::~Visitor() = default;

void Visitor::traverse(Decl* d) { walk_->TraverseDecl(d); }
void Visitor::traverse(Stmt* s) { walk_->TraverseStmt(s); }
void Visitor::traverse(CXXCtorInitializer* i) { walk_->TraverseConstructorInitializer(i); }

}  // namespace lantern::frontend
