// Names tell: the library says in no type which iterators are written through.
#include "lantern/compiler/frontend/clang/library_writes.hpp"

#include <set>

namespace lantern::frontend {

using namespace clang;

const Expr* bare(const Expr* e) {
  for (;;) {
    const Expr* before = e;
    e = e->IgnoreParens();
    if (const auto* c = dyn_cast<ExprWithCleanups>(e)) e = c->getSubExpr();
    if (const auto* c = dyn_cast<MaterializeTemporaryExpr>(e)) e = c->getSubExpr();
    if (const auto* c = dyn_cast<CXXBindTemporaryExpr>(e)) e = c->getSubExpr();
    if (const auto* c = dyn_cast<ConstantExpr>(e)) e = c->getSubExpr();
    if (const auto* c = dyn_cast<ImplicitCastExpr>(e)) e = c->getSubExpr();
    if (e == before) return e;
  }
}

namespace {

/// The arguments through which an algorithm with so many of them writes. A range of std::ranges is one
/// argument in the place of two.
std::vector<unsigned> written_arguments(StringRef algorithm, unsigned arguments, bool of_ranges) {
  static const std::set<StringRef> range{
      "fill",         "fill_n",      "iota",    "generate", "generate_n", "sort",    "stable_sort",
      "partial_sort", "nth_element", "reverse", "rotate",   "shuffle",    "replace", "replace_if",
      "remove",       "remove_if",   "unique",  "memset",   "memcpy",     "memmove", "partition"};
  static const std::set<StringRef> output{"copy",           "copy_if",        "copy_n",
                                          "copy_backward",  "move",           "partial_sum",
                                          "inclusive_scan", "exclusive_scan", "adjacent_difference"};
  if (range.count(algorithm) != 0) return {0};
  if (algorithm == "transform" && arguments > 2) return {arguments - 2};
  const unsigned behind = of_ranges ? 1 : 2;
  if (algorithm == "swap_ranges") return {0, behind};
  return output.count(algorithm) != 0 ? std::vector<unsigned>{behind} : std::vector<unsigned>{};
}

/// The object whose elements an iterator or pointer refers to: v of v.begin(), std::begin(v), v.data(),
/// v.begin() + 1, &v[0], and v itself.
const Expr* object_of(const Expr* e) {
  for (;;) {
    e = bare(e);
    if (const auto* member = dyn_cast<CXXMemberCallExpr>(e)) return member->getImplicitObjectArgument();
    if (const auto* op = dyn_cast<CXXOperatorCallExpr>(e); op != nullptr && op->getOperator() == OO_Plus) {
      e = op->getArg(0);
    } else if (const auto* sum = dyn_cast<BinaryOperator>(e); sum != nullptr && sum->isAdditiveOp()) {
      e = sum->getLHS();
    } else if (const auto* address = dyn_cast<UnaryOperator>(e);
               address != nullptr && address->getOpcode() == UO_AddrOf) {
      return address->getSubExpr();
    } else if (const auto* call = dyn_cast<CallExpr>(e);
               call != nullptr && !isa<CXXOperatorCallExpr>(e) && call->getNumArgs() == 1) {
      e = call->getArg(0);
    } else if (const auto* construct = dyn_cast<CXXConstructExpr>(e);
               construct != nullptr && construct->getNumArgs() == 1) {
      e = construct->getArg(0);
    } else {
      return e;
    }
  }
}

/// Whether a name is of namespace std, or of one in it, such as std::ranges.
bool in_library(const Decl* d) {
  for (const DeclContext* c = d->getDeclContext(); c != nullptr; c = c->getParent())
    if (c->isStdNamespace()) return true;
  return false;
}

}  // namespace

std::vector<const Expr*> ranges_written(const CallExpr* call) {
  std::vector<const Expr*> ranges;
  const FunctionDecl* callee = call->getDirectCallee();
  if (callee == nullptr) return ranges;
  // std::ranges::fill is an object that is called.
  const auto* op = dyn_cast<CXXOperatorCallExpr>(call);
  const auto* object =
      op != nullptr && op->getOperator() == OO_Call ? dyn_cast<DeclRefExpr>(bare(op->getArg(0))) : nullptr;
  const NamedDecl* const named =
      object != nullptr ? static_cast<const NamedDecl*>(object->getDecl()) : callee;
  if (named->getIdentifier() == nullptr) return ranges;
  const StringRef name = named->getName();
  if (!in_library(named) && !(callee->isExternC() && name.starts_with("mem"))) return ranges;
  const unsigned shift = object != nullptr ? 1 : 0;
  // std::move(x) moves nothing; std::remove("file") is of <cstdio>.
  if (call->getNumArgs() < shift + (shift == 0 ? 2 : 1)) return ranges;
  const unsigned arguments = call->getNumArgs() - shift;
  for (const unsigned i : written_arguments(name, arguments, shift == 1))
    if (i < arguments) ranges.push_back(object_of(call->getArg(i + shift)));
  return ranges;
}

const VarDecl* empty_optional(const Expr* target) {
  const auto* ref = dyn_cast<DeclRefExpr>(bare(target));
  const auto* variable = ref != nullptr ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
  if (variable == nullptr || variable->getInit() == nullptr) return nullptr;
  const auto* record = variable->getType()->getAsCXXRecordDecl();
  if (record == nullptr || !record->isInStdNamespace() || record->getIdentifier() == nullptr ||
      record->getName() != "optional")
    return nullptr;
  const auto* made = dyn_cast<CXXConstructExpr>(bare(variable->getInit()));
  return made != nullptr && made->getNumArgs() == 0 ? variable : nullptr;
}

}  // namespace lantern::frontend
