// Rounds: callers are equal once what they call has become one.
#include "lantern/compiler/passes/memory/merge.hpp"

#include <string>
#include <unordered_map>
#include <vector>

#include "lantern/ir/encode.hpp"
#include "lantern/ir/pointer_map.hpp"
#include "lantern/ir/team.hpp"

namespace lantern::passes {

namespace {

using ir::Function;
using ir::Op;

/// What is called by a team of threads is printed in another way; a continuation's function takes what it captures.
void find_special(const ir::Module& module, ir::PointerSet<const Function>& special) {
  special.insert(module.entry);
  for (const Function* f : module.functions())
    ir::walk(f->body, [&](const Op* op) {
      if (op->is(ir::Opcode::closure_) || ir::team_size(*op) > 0) special.insert(op->callee);
    });
}

bool merge_once(ir::Module& module, const ir::PointerSet<const Function>& special) {
  ir::PointerMap<const Function, std::uint64_t> numbers;
  const auto number = [&](const Function* f) {
    const auto [known, added] = numbers.add(f);
    if (added) *known = numbers.size();
    return *known;
  };
  std::unordered_map<std::string, Function*> first;
  ir::PointerMap<const Function, Function*> replaced;
  std::vector<Function*> gone;
  for (Function* f : module.functions()) {
    if (special.contains(f)) continue;
    // A function that calls itself is equal to another that does so.
    std::string code = ir::encoded(*f, [&](const Function* callee) { return callee == f ? 0 : number(callee); });
    const auto [known, added] = first.emplace(std::move(code), f);
    if (added) continue;
    replaced[f] = known->second;
    gone.push_back(f);
  }
  if (gone.empty()) return false;
  for (Function* f : gone) module.remove_function(f);
  for (Function* f : module.functions())
    ir::walk(f->body, [&](Op* op) {
      if (!op->callee) return;
      if (Function* const* other = replaced.find(op->callee)) op->callee = *other;
    });
  return true;
}

}  // namespace

void merge(ir::Module& module) {
  if (module.functions().size() < 3) return;
  ir::PointerSet<const Function> special;
  find_special(module, special);
  while (merge_once(module, special)) {
  }
}

}  // namespace lantern::passes
