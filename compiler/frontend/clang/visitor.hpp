#pragma once

#include <memory>

namespace clang {
class CXXCtorInitializer;
class Decl;
class LambdaExpr;
class Stmt;
}  // namespace clang

namespace lantern::frontend {

/// Visits declarations and statements of a tree, each before what it contains.
///
/// Clang's RecursiveASTVisitor is a template of several hundred functions that the compiler makes again for
/// each class that derives from it. This class makes them once, and calls virtual functions.
class Visitor {
 public:
  virtual ~Visitor();

  void traverse(clang::Decl* declaration);
  void traverse(clang::Stmt* statement);
  void traverse(clang::CXXCtorInitializer* initializer);

 protected:
  struct Options {
    bool instantiations = false;  ///< of templates, besides the templates as they are written
    bool implicit_code = false;   ///< what the compiler adds: default constructors, conversions, ...
  };
  explicit Visitor(Options options);

  virtual void visit(clang::Decl*) {}
  virtual void visit(clang::Stmt*) {}
  /// False: neither the declaration nor what it contains is visited.
  virtual bool enters(clang::Decl*) { return true; }
  /// False: neither the expression nor what it contains is visited.
  virtual bool enters_lambda(clang::LambdaExpr*) { return true; }

 private:
  class Walk;
  std::unique_ptr<Walk> walk_;
};

}  // namespace lantern::frontend
