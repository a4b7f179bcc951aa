// Checks of shapes that outlive the operations that would have made them.
#include "lantern/compiler/passes/shape_checks.hpp"

#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <unordered_set>

#include "lantern/compiler/passes/loops.hpp"
#include "lantern/compiler/passes/shapes.hpp"

namespace lantern::passes {

namespace {

/// Where a check stands, and what must hold for its operation to run.
struct Place {
  Block* block = nullptr;
  Op* before = nullptr;
  std::vector<std::pair<Value*, Value*>> guards;  ///< innermost first: the first trip's number, and the bound
};

/// Seen from in front of an operation, or made there anew.
bool at_hand(const Value* v, const Block* from) { return constant(v) || ir::visible_from(v, from); }

/// As far out of counting loops as the sizes are known.
Place place_of(Op* op, const EqualSizes& sizes) {
  Place place{op->parent, op, {}};
  for (Op* loop = op->parent->parent; loop && loop->is(Opcode::loop_) && place.block == loop->blocks[1];
       loop = place.block->parent) {
    const auto count = counted(loop);
    if (!count) break;
    Block* const out = loop->parent;
    const auto seen = [&](const Value* v) { return at_hand(v, out); };
    if (!seen(sizes.a) || !seen(sizes.b) || !seen(count->bound) || !seen(loop->operands[count->index])) break;
    if (!std::ranges::all_of(place.guards, [&](const auto& g) { return seen(g.first) && seen(g.second); }))
      break;
    place.guards.emplace_back(loop->operands[count->index], count->bound);
    place.block = out;
    place.before = loop;
  }
  return place;
}

Value* size(ir::Builder& b, Value* t, std::size_t dimension) {
  const std::int64_t known = t->type.dims()[dimension];
  return known != ir::dynamic ? b.integer(known)
                              : b.emit(Opcode::dim_, {t}, static_cast<std::int64_t>(dimension));
}

std::string message(const Op& op, std::size_t dimension) {
  const std::string where =
      op.loc.known() ? std::string(op.loc.file) + ":" + std::to_string(op.loc.line) : "";
  return std::string(ir::info(op.code).name) +
         ": expected operands whose shapes fit, got others in dimension " + std::to_string(dimension) +
         (where.empty() ? "" : " (" + where + ")");
}

void emit_check(ir::Module& module, const Op& op, const EqualSizes& sizes, const Place& place) {
  const auto again = [](ir::Builder& b, Value* v) {
    const Op* c = constant(v);
    return c ? b.integer(c->integer) : v;
  };
  auto& ops = place.block->ops;
  const auto end = static_cast<std::ptrdiff_t>(ops.size());
  ir::Builder b(module, place.block);
  b.loc = op.loc;
  std::vector<ir::Builder> around;
  for (const auto& [first, bound] : place.guards | std::views::reverse) {
    Op* guard = b.branch(b.emit(Opcode::lt_, {again(b, first), again(b, bound)}), {});
    around.push_back(b);
    ir::Builder otherwise(module, guard->blocks[1]);
    otherwise.yield({});
    b.set_block(guard->blocks[0]);
  }
  Value* const same =
      b.emit(Opcode::eq_, {size(b, sizes.a, sizes.a_dimension), size(b, sizes.b, sizes.b_dimension)});
  b.op(Opcode::check_, {same})->text = module.intern(message(op, sizes.a_dimension));
  if (!around.empty()) b.yield({});
  for (std::size_t i = around.size(); i-- > 1;) around[i].yield({});
  const auto at = std::ranges::find(ops, place.before) - ops.begin();
  std::rotate(ops.begin() + at, ops.begin() + end, ops.end());
}

}  // namespace

std::vector<EqualSizes> equal_sizes(const Op& op) {
  std::vector<EqualSizes> all;
  const auto add = [&](std::size_t a, std::size_t i, std::size_t b, std::size_t j, std::size_t count = 1) {
    for (std::size_t k = 0; k < count; ++k) {
      Value *const x = op.operands[a], *const y = op.operands[b];
      const std::int64_t known = x->type.dims()[i + k];
      if (x != y && (known == ir::dynamic || known != y->type.dims()[j + k]))
        all.push_back({x, i + k, y, j + k});
    }
  };
  const auto rank = [&](std::size_t operand) {
    return static_cast<std::size_t>(op.operands[operand]->type.rank());
  };
  if (ir::info(op.code).elementwise) {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (!op.operands[i]->type.is_tensor()) continue;
      if (first) add(*first, 0, i, 0, rank(i));
      if (!first) first = i;
    }
    return all;
  }
  switch (op.code) {
    case Opcode::dot_:
    case Opcode::vecmat_:
      add(0, 0, 1, 0);
      break;
    case Opcode::matvec_:
    case Opcode::matmul_:
      add(0, 1, 1, 0);
      break;
    case Opcode::add_outer_:
      add(0, 0, 1, 0);
      add(0, 1, 2, 0);
      break;
    case Opcode::add_matmul_:
      add(1, 1, 2, 0);
      add(0, 0, 1, 0);
      add(0, 1, 2, 1);
      break;
    case Opcode::concat_:
      add(0, 1, 1, 1, rank(0) - 1);
      break;
    case Opcode::add_take_:
    case Opcode::add_slice_:
      add(0, 1, 2, op.is(Opcode::add_slice_) ? 1 : 0, rank(0) - 1);
      break;
    case Opcode::broadcast_:
      if (op.operands[0]->type.is_tensor() && op.operands[1]->type.is_tensor())
        add(0, 0, 1, rank(1) - rank(0), rank(0));
      break;
    case Opcode::reduce_to_:
      if (op.operands[1]->type.is_tensor()) add(1, 0, 0, rank(0) - rank(1), rank(1));
      break;
    default:
      break;
  }
  return all;
}

bool keep_shape_checks(ir::Function& function, const std::vector<Op*>& ops) {
  const std::unordered_set<const Op*> about(ops.begin(), ops.end());
  Shapes shapes(function);
  std::vector<std::tuple<Op*, EqualSizes, Place>> checks;
  // Where a check of the same sizes stands already, for the same trips.
  using Number = std::pair<const Value*, std::int64_t>;  // or a constant
  const auto number = [](const Value* v) {
    const Op* c = constant(v);
    return c ? Number(nullptr, c->integer) : Number(v, 0);
  };
  std::set<
      std::tuple<const Block*, std::vector<Number>, const Value*, std::size_t, const Value*, std::size_t>>
      known;
  ir::walk(function.body, [&](Op* op) {
    if (op->is(Opcode::push_)) shapes.note_push(op);
    if (op->is(Opcode::pop_)) shapes.note_pop(op);
    if (op->is(Opcode::loop_)) shapes.note_loop(op);
    if (about.contains(op))
      for (EqualSizes sizes : equal_sizes(*op)) {
        sizes.a = shapes.of(sizes.a);
        sizes.b = shapes.of(sizes.b);
        if (sizes.a == sizes.b && sizes.a_dimension == sizes.b_dimension) continue;
        Place place = place_of(op, sizes);
        std::vector<Number> trips;
        for (const auto& [first, bound] : place.guards)
          trips.insert(trips.end(), {number(first), number(bound)});
        if (known
                .emplace(place.block, std::move(trips), sizes.a, sizes.a_dimension, sizes.b,
                         sizes.b_dimension)
                .second)
          checks.emplace_back(op, sizes, std::move(place));
      }
    if (op->results.size() == 1 && op->result()->type.is_tensor() && op->blocks.empty()) shapes.note(op);
  });
  for (const auto& [op, sizes, place] : checks) emit_check(*function.module, *op, sizes, place);
  return !checks.empty();
}

}  // namespace lantern::passes
