// Operations are looked at in order: a product that was added to zeros is a product alone by the time that
// its permutation is met.
#include "lantern/compiler/passes/array/product_order.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <unordered_map>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/shape_checks.hpp"
#include "lantern/ir/notation.hpp"
#include "lantern/ir/op.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

using ir::Notation;

bool only_letters(const ir::Subscripts& at) {
  return std::ranges::all_of(at, [](const ir::Subscript& s) { return s.is_letter(); });
}

class ProductOrder {
 public:
  explicit ProductOrder(ir::Function& f) : function_(f) {}

  bool run() {
    std::vector<Op*> in_notation;
    ir::walk(function_.body, [&](Op* op) {
      for (const Value* v : op->operands) ++uses_[v];
      if (ir::info(op->code).in_notation()) in_notation.push_back(op);
    });
    bool any = false;
    for (Op* op : in_notation) any |= alone(op) || permuted(op);
    keep_written_shape_checks(function_, gone_);
    erase(gone_);
    return any;
  }

 private:
  /// "ij+=ki,kj" to zeros becomes "ki,kj->ij".
  bool alone(Op* op) {
    if (!op->is(Opcode::add_einsum_, Opcode::add_matmul_)) return false;
    if (op->loc.part != ir::Part::backward) return false;
    std::optional<Notation> n = ir::concrete_notation(*op);
    if (!n || !n->accumulates || n->factors() != 2 || !only_letters(n->result)) return false;
    const auto base = filled(op->operands[0]);
    if (!base || !base->zero ||
        (base->fill && !base->zeros && std::signbit(base->fill->operands[0]->def->number)))
      return false;
    const Value* zeros = op->operands[0];
    if (!become(op, op, *n, ir::without_base(*n))) return false;
    --uses_[zeros];
    return true;
  }

  /// A permutation of a product that nothing else uses becomes the product with its letters permuted.
  bool permuted(Op* op) {
    const auto p = ir::concrete_notation(*op);
    if (!p || p->accumulates || p->operands.size() != 1 || !p->sizes.empty()) return false;
    const ir::Subscripts &from = p->operands[0].at, &to = p->result;
    if (p->operands[0].shape || from.size() != to.size() || !only_letters(from) || !only_letters(to))
      return false;
    Value* const v = op->operands[0];
    Op* const product = v->def;
    if (!product || product->parent != op->parent || uses_[v] != 1 || !ir::info(product->code).in_notation())
      return false;
    std::optional<Notation> n = ir::concrete_notation(*product);
    if (!n || n->accumulates || n->factors() != 2 || !only_letters(n->result)) return false;
    ir::Subscripts result;
    for (const ir::Subscript& s : to) {
      const auto at = std::ranges::find(from, s);
      if (at == from.end() || std::ranges::count(to, s) != 1) return false;
      result.push_back(n->result[static_cast<std::size_t>(at - from.begin())]);
    }
    n->result = std::move(result);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < product->operands.size(); ++i) order.push_back(i);
    if (!become(op, product, *n, order)) return false;
    for (const Value* w : op->operands) ++uses_[w];
    gone_.push_back(product);
    for (const Value* w : product->operands) --uses_[w];
    return true;
  }

  /// `op` computes what the notation says of operands of `of`; not where sizes would be known less well.
  bool become(Op* op, const Op* of, const Notation& n, std::vector<std::size_t> order) {
    for (const ir::Subscript& s : n.result)
      if (!ir::size_source(n, s.letter())) return false;
    const ir::Call call = ir::named(n, std::move(order));
    std::vector<Value*> operands;
    std::vector<ir::Type> types;
    for (const std::size_t i : call.order) {
      operands.push_back(of->operands[i]);
      types.push_back(of->operands[i]->type);
    }
    const ir::Type type = ir::infer_type(call.code, types, of->integer, {}, call.text);
    if (!(type == op->result()->type)) return false;
    op->code = call.code;
    op->integer = of->integer;  // whether all places lie inside
    op->text = call.text ? function_.module->intern(call.text) : nullptr;
    op->operands = std::move(operands);
    return true;
  }

  ir::Function& function_;
  std::unordered_map<const Value*, std::size_t> uses_;
  std::vector<Op*> gone_;  ///< products that have become others
};

}  // namespace

bool order_products(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) any |= ProductOrder(*f).run();
  return any;
}

}  // namespace lantern::passes
