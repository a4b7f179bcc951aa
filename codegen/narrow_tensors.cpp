// Whitelist of uses: each use that the 16-bit code does not know makes its tensor float.
#include "lantern/codegen/narrow_tensors.hpp"

#include <algorithm>
#include <unordered_map>

#include "lantern/compiler/passes/analysis/gemm.hpp"
#include "lantern/ir/notation.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::codegen {

namespace {

/// The tensors of one function.
class Finder {
 public:
  Finder(const ir::Function& function, const Kernels& kernels) : uses_(function), kernels_(kernels) {
    for (const Value* p : function.body->params) seen(p);
    visit(function.body, Side::host);
  }

  void put(std::unordered_set<const Value*>& narrow, std::vector<NarrowTensors::Choice>& choices) const {
    const std::unordered_set<const Value*> made(made_.begin(), made_.end());
    for (const auto& [v, root] : roots_)
      if (made.contains(root) && !float_.contains(root)) narrow.insert(v);
    for (const Value* tensor : made_) {
      const auto reason = float_.find(tensor);
      const auto name = names_.find(tensor);
      NarrowTensors::Choice choice{tensor, name != names_.end() ? name->second : "", {}};
      if (reason != float_.end()) {
        choice.use = reason->second.op;
        choice.why_float = why_float(reason->second);
      }
      choices.push_back(std::move(choice));
    }
  }

 private:
  enum class Side { host, kernel, elsewhere };

  struct Use {
    const Op* op;
    std::size_t operand;
    Side side;
  };

  std::string why_float(const Use& use) const {
    const Op& op = *use.op;
    const Op* const around = op.parent->parent;
    if (use.side == Side::elsewhere) return "the host works on a copy of it";
    switch (op.code) {
      case Opcode::add_einsum_:
      case Opcode::add_matmul_:
        if (is_product(op)) return "a product is added to what it has";
        return std::string(is_convolution(op) ? "a convolution" : "a contraction that is no product of matrices") +
               (use.operand == 0 ? " gives it" : " reads it");
      case Opcode::loop_:
        return ir::is_reduction(ir::combine(op, use.operand)) ? "iterations add to it" : "a loop of the host carries it";
      case Opcode::branch_:
        return "a branch of the host hands it on";
      case Opcode::yield_:
        if (!around) return "the function returns it";
        return around->is(Opcode::branch_) ? "a branch hands it on" : "a loop of the host carries it";
      case Opcode::add_at_:
      case Opcode::add_take_:
      case Opcode::add_slice_:
        return use.operand == 0 ? "sums are formed in it" : "it is added to another tensor";
      case Opcode::push_:
        return "a tape keeps it";
      case Opcode::take_:
      case Opcode::slice_:
        return "a slice of it is taken";
      case Opcode::call_:
        return "the function '" + op.callee->name + "' takes it";
      case Opcode::external_:
        return "an external function takes it";
      case Opcode::get_:
        return "the host reads an element";
      case Opcode::set_:
        return use.operand == 0 ? "elements of a copy are set" : "it is stored in another tensor";
      default:
        return "the operation '" + std::string(ir::info(op.code).name) + "' takes it";
    }
  }

  /// What brought the memory in: an iteration of a kernel works on what its loop was given.
  const Value* root(const Value* v) {
    const auto known = roots_.find(v);
    if (known != roots_.end()) return known->second;
    const Value* r = storage_root(v);
    while (!r->def && r->block->parent && r->block->parent->is(Opcode::loop_))
      r = storage_root(r->block->parent->operands[r->index]);
    return roots_[v] = r;
  }
  void seen(const Value* v) {
    if (!v->type.is_tensor()) return;
    const Value* const memory = root(v);
    if (v->name) names_.emplace(memory, v->name);
  }

  static bool is_matrix(const ir::Type& type) {
    return type.is_tensor() && type.element() == ir::Kind::f32 &&
           std::ranges::count_if(type.dims(), [](auto d) { return d != 1; }) >= 2;
  }

  /// A product of matrices, or a batch of them, as its routines take it.
  bool is_product(const Op& op) const {
    const auto n = ir::concrete_notation(op);
    const auto letters = [](const ir::Subscripts& at) {
      return std::ranges::all_of(at, [](const auto& s) { return s.is_letter(); });
    };
    return n && passes::contraction(*n) && letters(n->result) &&
           std::ranges::all_of(n->operands, [&](const auto& operand) { return letters(operand.at); });
  }

  /// A contraction that finds elements by sums of indices.
  static bool is_convolution(const Op& op) {
    const auto n = ir::concrete_notation(op);
    const auto sums = [](const ir::Subscripts& at) {
      return std::ranges::any_of(at, [](const auto& s) { return !s.is_letter(); });
    };
    return n && (sums(n->result) || std::ranges::any_of(n->operands, [&](const auto& operand) { return sums(operand.at); }));
  }

  bool allows(const Op& op, std::size_t i, Side here, Side inside) {
    if (ir::only_shape(op, i)) return true;
    const Op* const around = op.parent->parent;
    switch (op.code) {
      case Opcode::dim_:
        return true;
      case Opcode::forget_:
        return here == Side::host;
      case Opcode::reshape_:
        return here == Side::host && i == 0;
      case Opcode::get_:
        return here == Side::kernel;
      case Opcode::set_:
        return here == Side::kernel && op.in_place && i == 0;
      case Opcode::add_einsum_:
      case Opcode::add_matmul_:
        return here == Side::host && is_product(op) && (i > 0 || adds_to_zeros(op, uses_));
      case Opcode::loop_:
        return inside == Side::kernel && !ir::is_reduction(ir::combine(op, i));
      case Opcode::yield_: {
        if (here != Side::kernel || !around) return false;
        const bool loop = around->is(Opcode::loop_);
        return (loop || around->is(Opcode::branch_)) &&
               root(loop ? around->operands[i] : around->results[i]) == root(op.operands[i]);
      }
      default:
        return false;
    }
  }

  void visit(const ir::Block* block, Side side) {
    for (const Op* op : block->ops) {
      const Side here = side == Side::host && kernels_.on_host(op) ? Side::elsewhere : side;
      const Side inside = here == Side::host && kernels_.of(op) ? Side::kernel : here;
      if (here == Side::host && op->is(Opcode::fill_) && is_matrix(op->result()->type))
        made_.push_back(op->result());
      for (std::size_t i = 0; i < op->operands.size(); ++i)
        if (op->operands[i]->type.is_tensor() && !allows(*op, i, here, inside))
          float_.emplace(root(op->operands[i]), Use{op, i, here});
      for (const Value* v : op->results) seen(v);
      for (const ir::Block* b : op->blocks) {
        for (const Value* p : b->params) seen(p);
        visit(b, inside);
      }
    }
  }

  LiveUses uses_;
  const Kernels& kernels_;
  std::unordered_map<const Value*, const Value*> roots_;
  std::vector<const Value*> made_;                         ///< roots that the host fills
  std::unordered_map<const Value*, Use> float_;            ///< roots that have to stay float, and the first use that asks for it
  std::unordered_map<const Value*, std::string> names_;    ///< of roots
};

}  // namespace

NarrowTensors::NarrowTensors(const std::vector<const ir::Function*>& functions, const Kernels& kernels) {
  for (const ir::Function* f : functions)
    if (!kernels.on_device(f) && !kernels.host_function(f)) Finder(*f, kernels).put(values_, choices_);
}

}  // namespace lantern::codegen
