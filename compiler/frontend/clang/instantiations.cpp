// A walk outwards from a declaration, and into the template arguments on the way.
#include "lantern/compiler/frontend/clang/instantiations.hpp"

#include <clang/AST/DeclTemplate.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Sema/Sema.h>

#include <deque>
#include <string>

namespace lantern::frontend {

using namespace clang;

bool is_of_user(const SourceManager& sources, FileID file) {
  const auto entry = sources.getFileEntryRefForID(file);
  if (!entry || sources.getFileCharacteristic(sources.getLocForStartOfFile(file)) != SrcMgr::C_User) return false;
  const std::string path = entry->getName().str();
  for (const char* own :
       {"lantern/lantern.hpp", "lantern/compiler/", "lantern/ir/", "lantern/codegen/", "lantern/runtime/"})
    if (path.find(own) != std::string::npos) return false;
  return true;
}

bool Instantiations::concerns_user(QualType t) {
  const Type* const type = t.isNull() ? nullptr : t.getCanonicalType().getTypePtr();
  if (type == nullptr) return false;
  if (const TagDecl* tag = type->getAsTagDecl()) return concerns_user(tag);
  if (const auto* f = dyn_cast<FunctionProtoType>(type))
    return concerns_user(f->getReturnType()) || llvm::any_of(f->param_types(), [this](QualType p) { return concerns_user(p); });
  if (const auto* array = dyn_cast<ArrayType>(type)) return concerns_user(array->getElementType());
  if (const auto* member = dyn_cast<MemberPointerType>(type); member != nullptr && concerns_user(QualType(member->getClass(), 0)))
    return true;
  return concerns_user(type->getPointeeType());
}

bool Instantiations::concerns_user(const TemplateArgument& a) {
  switch (a.getKind()) {
    case TemplateArgument::Type:
      return concerns_user(a.getAsType());
    case TemplateArgument::Declaration:
      return concerns_user(a.getAsDecl());
    case TemplateArgument::Template:
      return concerns_user(a.getAsTemplate().getAsTemplateDecl());
    case TemplateArgument::Pack:
      return llvm::any_of(a.pack_elements(), [this](const TemplateArgument& one) { return concerns_user(one); });
    case TemplateArgument::StructuralValue:
      return concerns_user(a.getStructuralValueType());
    default:
      return false;
  }
}

bool Instantiations::concerns_user(const Decl* d) {
  if (d == nullptr || isa<TranslationUnitDecl>(d)) return false;
  if (const auto known = known_.find(d); known != known_.end()) return known->second;
  known_[d] = false;  // a type among its own arguments
  const auto any = [this](const TemplateArgumentList* list) {
    return list != nullptr && llvm::any_of(list->asArray(), [this](const TemplateArgument& a) { return concerns_user(a); });
  };
  // Lambdas that LANTERN_FUNCTION writes are not the user's.
  bool concerns = is_of_user(*sources_, sources_->getFileID(sources_->getSpellingLoc(d->getLocation())));
  if (const auto* f = dyn_cast<FunctionDecl>(d); f != nullptr && !concerns) concerns = any(f->getTemplateSpecializationArgs());
  if (const auto* c = dyn_cast<ClassTemplateSpecializationDecl>(d); c != nullptr && !concerns) concerns = any(&c->getTemplateArgs());
  if (const auto* v = dyn_cast<VarTemplateSpecializationDecl>(d); v != nullptr && !concerns) concerns = any(&v->getTemplateArgs());
  if (!concerns) concerns = concerns_user(Decl::castFromDeclContext(d->getDeclContext()));
  return known_[d] = concerns;
}

void Instantiations::leave_out_others(Sema& sema) {
  sources_ = &sema.getSourceManager();
  std::deque<Sema::PendingImplicitInstantiation>& pending = sema.PendingInstantiations;
  std::erase_if(pending, [this](const Sema::PendingImplicitInstantiation& p) { return !concerns_user(p.first); });
}

}  // namespace lantern::frontend
