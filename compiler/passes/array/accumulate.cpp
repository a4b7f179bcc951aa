// Each addition is looked at once, in order: what it becomes is what the next one adds to.
#include "lantern/compiler/passes/array/accumulate.hpp"

#include <algorithm>
#include <unordered_map>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/ir/notation.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

class Accumulation {
 public:
  explicit Accumulation(ir::Function& f) : function_(f) {}

  bool run() {
    std::vector<Op*> sums;
    ir::walk(function_.body, [&](Op* op) {
      for (const Value* v : op->operands) ++uses_[v];
      if (op->is(Opcode::add_) && op->result()->type.is_tensor() && op->loc.part == ir::Part::backward)
        sums.push_back(op);
    });
    std::vector<Op*> gone;
    for (Op* sum : sums)
      if (Op* const scattered = rewrite(sum)) gone.push_back(scattered);
    erase(gone);
    return !gone.empty();
  }

 private:
  /// The sum becomes the update; the operation whose place it takes, or null.
  Op* rewrite(Op* sum) {
    for (const std::size_t side : {1u, 0u}) {
      Op* const scattered = sum->operands[side]->def;
      Value* const to = sum->operands[1 - side];
      if (!scattered || !puts_into_zeros(*scattered) || scattered->parent != sum->parent) continue;
      // What is updated is nothing else's, or it would be copied first.
      if (uses_[sum->operands[side]] != 1 || uses_[to] != 1 || !(to->type == sum->result()->type)) continue;
      if (!to->def || to->def->parent != sum->parent) continue;
      --uses_[scattered->operands[0]];
      std::vector<Value*> operands = scattered->operands;
      operands[0] = to;
      sum->code = scattered->code;
      sum->integer = scattered->integer;
      sum->text = scattered->text;
      sum->operands = std::move(operands);
      return scattered;
    }
    return nullptr;
  }

  /// A tensor of zeros to which elements of one other are added, each at a place of its own.
  static bool puts_into_zeros(const Op& op) {
    if (!op.is(Opcode::add_einsum_) || op.loc.part != ir::Part::backward) return false;
    const auto n = ir::concrete_notation(op);
    if (!n || op.operands.size() != 2 || !n->accumulates) return false;
    const std::string places = ir::letters_of(n->result);
    for (const char c : ir::letters_of(n->operands[1].at))
      if (places.find(c) == std::string::npos) return false;
    if (std::ranges::all_of(n->result, [](const ir::Subscript& s) { return s.is_letter(); })) return false;
    const auto fill = filled(op.operands[0]);
    return fill && fill->zero;
  }

  ir::Function& function_;
  std::unordered_map<const Value*, std::size_t> uses_;
};

}  // namespace

bool accumulate(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) any |= Accumulation(*f).run();
  return any;
}

}  // namespace lantern::passes
