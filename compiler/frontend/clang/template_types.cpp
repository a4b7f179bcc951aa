// Both walk from a function through what contains it.
#include "lantern/compiler/frontend/clang/template_types.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>

namespace lantern::frontend {

using namespace clang;

namespace {

/// Adds the names of a template's type parameters. False: one has no name, or is a template itself.
bool add_names(const TemplateParameterList& parameters, std::string& names) {
  for (const NamedDecl* p : parameters) {
    if (isa<TemplateTemplateParmDecl>(p)) return false;
    const auto* type = dyn_cast<TemplateTypeParmDecl>(p);
    if (type == nullptr || type->isImplicit()) continue;  // a number; `auto`: the function's parameter is named
    if (type->getIdentifier() == nullptr) return false;
    names += (names.empty() ? "" : ", ") + type->getName().str() + (type->isParameterPack() ? "..." : "");
  }
  return true;
}

/// Of a function with parameters of type auto. An enclosing function's may be hidden by other variables.
bool add_parameters(const FunctionDecl* f, std::string& names) {
  for (const ParmVarDecl* p : f->parameters()) {
    if (p->getType()->getContainedAutoType() == nullptr && !p->getType()->isDependentType()) continue;
    if (p->getIdentifier() == nullptr) return false;
    names += (names.empty() ? "" : ", ") + ("decltype(" + p->getName().str() + ")") + (p->isParameterPack() ? "..." : "");
  }
  return true;
}

bool has_implicit_type(const TemplateParameterList& parameters) {
  for (const NamedDecl* p : parameters)
    if (p->isImplicit()) return true;
  return false;
}

bool names_a_type_of_lantern(const TemplateArgument& argument, const PrintingPolicy& policy) {
  if (argument.getKind() == TemplateArgument::Pack) {
    for (const TemplateArgument& one : argument.pack_elements())
      if (names_a_type_of_lantern(one, policy)) return true;
    return false;
  }
  return argument.getKind() == TemplateArgument::Type &&
         argument.getAsType().getCanonicalType().getAsString(policy).find("lantern::") != std::string::npos;
}
bool names_a_type_of_lantern(const TemplateArgumentList* arguments, const PrintingPolicy& policy) {
  if (arguments == nullptr) return false;
  for (const TemplateArgument& a : arguments->asArray())
    if (names_a_type_of_lantern(a, policy)) return true;
  return false;
}

}  // namespace

std::string template_types(const FunctionDecl* pattern) {
  std::string names;
  for (const DeclContext* c = pattern; c != nullptr && !c->isTranslationUnit(); c = c->getParent()) {
    if (const auto* f = dyn_cast<FunctionDecl>(c)) {
      const FunctionTemplateDecl* made = f->getDescribedFunctionTemplate();
      if (made == nullptr) continue;
      if (!add_names(*made->getTemplateParameters(), names)) return "";
      if (has_implicit_type(*made->getTemplateParameters()) && !add_parameters(f, names)) return "";
    } else if (const auto* record = dyn_cast<CXXRecordDecl>(c)) {
      if (isa<ClassTemplateSpecializationDecl>(record)) return "";
      const ClassTemplateDecl* made = record->getDescribedClassTemplate();
      if (made != nullptr && !add_names(*made->getTemplateParameters(), names)) return "";
    }
  }
  return names;
}

bool is_for_foreign_types(const FunctionDecl* instance) {
  const PrintingPolicy policy = instance->getASTContext().getPrintingPolicy();
  for (const DeclContext* c = instance; c != nullptr && !c->isTranslationUnit(); c = c->getParent()) {
    if (const auto* f = dyn_cast<FunctionDecl>(c); f != nullptr && names_a_type_of_lantern(f->getTemplateSpecializationArgs(), policy))
      return false;
    if (const auto* record = dyn_cast<ClassTemplateSpecializationDecl>(c);
        record != nullptr && names_a_type_of_lantern(&record->getTemplateArgs(), policy))
      return false;
  }
  return true;
}

}  // namespace lantern::frontend
