// Checks of shapes that outlive the operations that would have made them.
#include "lantern/compiler/passes/canonical/shape_checks.hpp"

#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/shapes.hpp"
#include "lantern/ir/notation.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

/// Where a check is, and what must hold for its operation to run.
struct CheckPlace {
  Block* block = nullptr;
  Op* before = nullptr;
  std::vector<std::pair<Value*, Value*>> guards;  ///< innermost first: the first iteration's number, and the bound
  bool told = true;                               ///< both shapes are known there
};

/// Seen from in front of an operation, or made there anew.
bool at_hand(const Value* v, const Block* from) { return constant(v) || ir::visible_from(v, from); }

/// As far out of counting loops as the sizes are known.
CheckPlace place_of(Op* op, const EqualSizes& sizes) {
  CheckPlace place{op->parent, op, {}};
  for (Op* loop = op->parent->parent; loop && loop->is(Opcode::loop_) && place.block == loop->blocks[1];
       loop = place.block->parent) {
    const auto count = counted(loop);
    if (!count) break;
    Block* const out = loop->parent;
    const auto seen = [&](const Value* v) { return at_hand(v, out); };
    if (!seen(sizes.a.value) || !seen(sizes.b.value) || !seen(count->bound) || !seen(count->first)) break;
    if (!std::ranges::all_of(place.guards, [&](const auto& g) { return seen(g.first) && seen(g.second); }))
      break;
    place.guards.emplace_back(count->first, count->bound);
    place.block = out;
    place.before = loop;
  }
  return place;
}

Value* size(ir::Builder& b, const ir::Size& s) {
  if (s.dimension < 0) return made_here(b, s.value);
  return b.size(s.value, static_cast<std::size_t>(s.dimension));
}

/// The sizes of two operands whose shapes do not fit, to be told.
struct Shown {
  std::vector<ir::Size> a, b;
};

void emit_check(ir::Module& module, const Op& op, const EqualSizes& sizes, const Shown& shown, const CheckPlace& place) {
  ir::Builder b = ir::Builder::before(place.before, op.loc);
  std::vector<ir::Builder> around;
  for (const auto& [first, bound] : place.guards | std::views::reverse) {
    Op* guard = b.branch(b.lt({made_here(b, first), made_here(b, bound)}), {});
    around.push_back(b);
    ir::Builder otherwise(module, guard->blocks[1]);
    otherwise.yield({});
    b.set_block(guard->blocks[0]);
  }
  std::vector<Value*> operands{b.eq({size(b, sizes.a), size(b, sizes.b)})};
  for (const auto& shape : {shown.a, shown.b})
    for (const ir::Size& s : shape) operands.push_back(size(b, s));
  Op* const check = b.op(Opcode::check_, std::move(operands));
  check->text = module.intern(std::string(ir::info(op.code).name));
  check->integer = static_cast<std::int64_t>(shown.a.size());
  if (!around.empty()) b.yield({});
  for (std::size_t i = around.size(); i-- > 1;) around[i].yield({});
}

}  // namespace

std::vector<EqualSizes> equal_sizes(const Op& op) {
  std::vector<EqualSizes> all;
  const auto add = [&](std::size_t a, std::size_t i, std::size_t b, std::size_t j, std::size_t count = 1) {
    for (std::size_t k = 0; k < count; ++k) {
      Value *const x = op.operands[a], *const y = op.operands[b];
      const std::int64_t known = x->type.dims()[i + k];
      if ((x != y || i != j) && (known == ir::dynamic || known != y->type.dims()[j + k]))
        all.push_back({{x, static_cast<int>(i + k)}, {y, static_cast<int>(j + k)}, a, b});
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
  if (ir::info(op.code).in_notation()) {
    for (const ir::SameSize& s : ir::same_sizes(*ir::concrete_notation(op)))
      add(s.a, s.a_dimension, s.b, s.b_dimension);
    return all;
  }
  switch (op.code) {
    case Opcode::concat_:
      add(0, 1, 1, 1, rank(0) - 1);
      break;
    case Opcode::add_take_:
    case Opcode::add_slice_:
      add(0, 1, 2, op.is(Opcode::add_slice_) ? 1 : 0, rank(0) - 1);
      break;
    default:
      break;
  }
  return all;
}

bool keep_written_shape_checks(ir::Function& function, std::vector<Op*> ops) {
  std::erase_if(ops, [](const Op* op) { return op->loc.part == ir::Part::backward; });
  return !ops.empty() && keep_shape_checks(function, ops);
}

bool keep_shape_checks(ir::Function& function, const std::vector<Op*>& ops) {
  const std::unordered_set<const Op*> about(ops.begin(), ops.end());
  Shapes shapes(function);
  struct Check {
    Op* op;
    EqualSizes sizes;
    Shown shown;
    CheckPlace place;
  };
  std::vector<Check> checks;
  // Where a check of the same sizes is already, for the same iterations.
  using Number = std::pair<const Value*, std::int64_t>;  // or a constant
  const auto number = [](const Value* v) {
    const Op* c = constant(v);
    return c ? Number(nullptr, c->integer) : Number(v, 0);
  };
  const auto known_size = [&](const ir::Size& s) {
    if (s.dimension < 0)
      return constant(s.value) ? Number(nullptr, constant(s.value)->integer) : Number(s.value, -1);
    const std::int64_t known = s.value->type.dims()[static_cast<std::size_t>(s.dimension)];
    return known != ir::dynamic ? Number(nullptr, known) : Number(s.value, s.dimension);
  };
  std::set<std::tuple<const Block*, std::vector<Number>, Number, Number>> known;
  const auto shape = [&](Value* v) {
    std::vector<ir::Size> all;
    for (std::size_t d = 0; d < v->type.dims().size(); ++d) all.push_back(shapes.source(v, d));
    return all;
  };
  // A check that is already, and the conditions on the first iterations around it.
  const auto note = [&](const Op* check) {
    const Op* same = check->operands[0]->def;
    if (!same || !same->is(Opcode::eq_) || !(same->operands[0]->type == ir::I64)) return;
    const auto resolved = [&](Value* v) {
      const Op* def = v->def;
      return def && def->is(Opcode::dim_)
                 ? known_size(shapes.source(def->operands[0], static_cast<std::size_t>(def->integer)))
                 : known_size({v, -1});
    };
    Number a = resolved(same->operands[0]), b = resolved(same->operands[1]);
    if (b < a) std::swap(a, b);
    std::vector<Number> iterations;
    for (const Block* block = check->parent;;) {
      known.emplace(block, iterations, a, b);
      const Op* around = block->parent;
      if (!around || !around->is(Opcode::branch_) || block != around->blocks[0]) break;
      const Op* first = around->operands[0]->def;
      if (!first || !first->is(Opcode::lt_)) break;
      iterations.insert(iterations.end(), {number(first->operands[0]), number(first->operands[1])});
      block = around->parent;
    }
  };
  ir::walk(function.body, [&](Op* op) {
    if (op->is(Opcode::check_)) note(op);
    shapes.note(op);
    if (about.contains(op))
      for (EqualSizes sizes : equal_sizes(*op)) {
        sizes.a = shapes.source(sizes.a.value, static_cast<std::size_t>(sizes.a.dimension));
        sizes.b = shapes.source(sizes.b.value, static_cast<std::size_t>(sizes.b.dimension));
        Number a = known_size(sizes.a), b = known_size(sizes.b);
        if (a == b) continue;
        CheckPlace place = place_of(op, sizes);
        std::vector<Number> iterations;
        for (const auto& [first, bound] : place.guards)
          iterations.insert(iterations.end(), {number(first), number(bound)});
        if (b < a) std::swap(a, b);
        if (!known.emplace(place.block, std::move(iterations), a, b).second) continue;
        Shown shown{shape(op->operands[sizes.a_operand]), shape(op->operands[sizes.b_operand])};
        for (const auto& part : {shown.a, shown.b})
          for (const ir::Size& s : part)
            if (!at_hand(s.value, place.block)) place.told = false;
        if (!place.told) shown = {};
        checks.push_back({op, sizes, std::move(shown), std::move(place)});
      }
  });
  for (const Check& c : checks) emit_check(*function.module, *c.op, c.sizes, c.shown, c.place);
  return !checks.empty();
}

}  // namespace lantern::passes
