// Groups of values that hold an array, the loops over it, and the types that they get.
#include "lantern/compiler/passes/canonical/fixed_arrays.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/unroll.hpp"
#include "lantern/compiler/passes/support/handed_on.hpp"

namespace lantern::passes {

namespace {

constexpr std::int64_t most_fixed_elements = 25;  ///< four equations with their right side, or 5 by 5
constexpr std::size_t most_unrolled = 1000;       ///< of an unrolled nest

/// Values that may hold the same array (union-find), and what is known of it.
class Arrays {
 public:
  explicit Arrays(const ir::Function& f) {
    for (const Value* p : f.body->params) refuse(p);
    ir::walk(f.body, [&](const Op* op) { operation(*op); });
    if (f.body->terminated())
      for (const Value* v : f.body->ops.back()->operands) refuse(v);
  }

  struct Group {
    bool fits = true;
    std::vector<std::int64_t> dims;  ///< as all fills have them; empty without a fill
    std::vector<const Op*> accesses;
    std::vector<const Value*> values;
  };

  /// The groups with a fill whose values hold nothing else.
  std::vector<Group> fixed() {
    std::unordered_map<std::size_t, Group> by_root;
    std::vector<std::size_t> order;
    for (const Value* v : values_) {
      const std::size_t r = root(numbers_.at(v));
      if (by_root.try_emplace(r, Group{}).second) order.push_back(r);
      Group& g = by_root[r];
      g.values.push_back(v);
      g.fits &= !refused_[numbers_.at(v)];
      if (!v->def || !v->def->is(Opcode::fill_)) continue;
      const auto dims = dims_of(*v->def);
      if (!dims || (!g.dims.empty() && *dims != g.dims))
        g.fits = false;
      else
        g.dims = *dims;
    }
    for (const Op* op : accesses_) by_root[root(numbers_.at(op->operands[0]))].accesses.push_back(op);
    std::vector<Group> found;
    for (const std::size_t r : order)
      if (by_root[r].fits && !by_root[r].dims.empty()) found.push_back(by_root[r]);
    return found;
  }

 private:
  /// The constant sizes of a fill, of few elements.
  static std::optional<std::vector<std::int64_t>> dims_of(const Op& fill) {
    std::vector<std::int64_t> dims;
    std::int64_t count = 1;
    for (std::size_t i = 1; i < fill.operands.size(); ++i) {
      const Op* const size = constant(fill.operands[i]);
      if (!size || size->integer < 1 || size->integer > most_fixed_elements) return {};
      dims.push_back(size->integer);
      count *= size->integer;
    }
    if (dims.empty() || count > most_fixed_elements || !fill.operands[0]->type.is_scalar()) return {};
    return dims;
  }

  void operation(const Op& op) {
    switch (op.code) {
      case Opcode::loop_:
      case Opcode::branch_:
        for_each_handed_on(op, [&](const Value* v, const Value* result) { link(v, result); });
        return;
      case Opcode::set_:
      case Opcode::add_at_:
        link(op.operands[0], op.result());
        accesses_.push_back(&op);
        return;
      case Opcode::get_:
        number(op.operands[0]);
        accesses_.push_back(&op);
        return;
      case Opcode::fill_:
        number(op.result());
        return;
      case Opcode::dim_:
      case Opcode::yield_:
        return;
      default:
        for (const Value* v : op.operands) refuse(v);
        for (const Value* v : op.results) refuse(v);
    }
  }

  std::size_t number(const Value* v) {
    const auto [it, added] = numbers_.try_emplace(v, parents_.size());
    if (added) {
      parents_.push_back(parents_.size());
      refused_.push_back(false);
      values_.push_back(v);
    }
    return it->second;
  }
  void refuse(const Value* v) {
    if (v->type.is_tensor()) refused_[number(v)] = true;
  }
  void link(const Value* a, const Value* b) {
    if (!a->type.is_tensor()) return;
    const std::size_t x = root(number(a)), y = root(number(b));
    if (!(a->type == b->type)) refused_[x] = true;
    parents_[x] = y;
  }
  std::size_t root(std::size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }

  std::unordered_map<const Value*, std::size_t> numbers_;
  std::vector<const Value*> values_;
  std::vector<std::size_t> parents_;
  std::vector<bool> refused_;
  std::vector<const Op*> accesses_;
};

/// The loops whose counters an integer is made of. How often each runs follows from constants and from the
/// counters of the others, as it does in triangles.
bool collect_loops(const Value* v, std::unordered_set<Op*>& loops) {
  if (constant(v)) return true;
  if (v->def)
    return ir::info(v->def->code).elementwise && v->def->blocks.empty() &&
           std::ranges::all_of(v->def->operands, [&](const Value* x) { return collect_loops(x, loops); });
  Op* const loop = v->block->parent;
  if (!loop || !loop->is(Opcode::loop_) || v->block != loop->blocks[1] || loop->integer != 0 ||
      !ends_by_comparison(loop))
    return false;
  const auto count = counted(loop);
  if (!count || count->index != v->index) return false;
  if (!loops.insert(loop).second) return true;
  return collect_loops(count->first, loops) && collect_loops(count->bound, loops);
}

/// Counts the operations of loops once they are unrolled, iteration by iteration.
class UnrolledSize {
 public:
  explicit UnrolledSize(const std::unordered_set<Op*>& loops) : loops_(loops) {}

  bool fits(const Op* loop) { return count(*loop) && size_ <= most_unrolled; }

 private:
  bool count(const Block* block) {
    return std::ranges::all_of(block->ops, [&](const Op* op) { return count(*op); });
  }
  bool count(const Op& op) {
    if (is_on_tape(op) || ++size_ > most_unrolled) return false;
    if (!loops_.contains(const_cast<Op*>(&op)))
      return std::ranges::all_of(op.blocks, [&](const Block* b) { return count(b); });
    const auto loop = counted(&op);
    const auto first = loop ? number(loop->first) : std::nullopt,
               bound = loop ? number(loop->bound) : std::nullopt;
    if (!first || !bound) return false;
    for (std::int64_t i = *first; i < *bound; ++i) {
      counters_[op.blocks[1]->params[loop->index]] = i;
      if (!count(op.blocks[1])) return false;
    }
    return true;
  }

  /// What an integer is in the iterations that are counted.
  std::optional<std::int64_t> number(const Value* v) const {
    IndexForm form = index_form(v);
    for (const Unknown& u : form.unknowns()) {
      const auto known = counters_.find(u.value);
      if (known == counters_.end() || u.is_size() || !form.split(u)) return {};
      form = form.with(u, known->second);
    }
    return form.number();
  }

  const std::unordered_set<Op*>& loops_;
  std::unordered_map<const Value*, std::int64_t> counters_;
  std::size_t size_ = 0;
};

/// The loops whose counters a group's indices are made of; nothing where an index is made of anything else,
/// or they are too long unrolled.
std::optional<std::unordered_set<Op*>> loops_of(const Arrays::Group& group) {
  std::unordered_set<Op*> loops;
  for (const Op* op : group.accesses)
    for (std::size_t d = 1; d <= group.dims.size(); ++d)
      if (!collect_loops(op->operands[d], loops)) return {};
  const auto is_inside = [&](const Op* loop) {
    const auto around = loops_around(loop->parent);
    return std::ranges::any_of(around, [&](const Op* op) { return loops.contains(const_cast<Op*>(op)); });
  };
  for (const Op* loop : loops)
    if (!is_inside(loop) && !UnrolledSize(loops).fits(loop)) return {};
  return loops;
}

/// Unrolls those that run a constant number of iterations. The counters of loops inside are made of constants
/// then. True where there was one.
bool unroll(ir::Function& f, const std::unordered_set<Op*>& loops) {
  std::vector<Op*> order;
  ir::walk(f.body, [&](Op* op) {
    if (loops.contains(op) && known_trip_counts(op)) order.push_back(op);
  });
  for (auto loop = order.rbegin(); loop != order.rend(); ++loop) {  // inner ones first
    ir::replace_uses(f.body, ir::pairs((*loop)->results, unrolled(*loop, *known_trip_counts(*loop))));
    erase({*loop});
  }
  return !order.empty();
}

/// Where loops begin and end becomes constants.
void fold_bounds(ir::Function& f) {
  for (Op* loop : loops_in(f)) {
    const auto count = counted(loop);
    if (!count) continue;
    ir::Builder b = ir::Builder::before(loop);
    const auto number = [&](const Value* v) { return constant(v) ? std::nullopt : index_form(v).number(); };
    if (const auto first = number(count->first)) loop->operands[count->index] = b.integer(*first);
    if (const auto bound = number(count->bound))
      loop->blocks[0]->ops.back()->operands[0]->def->operands[1] = b.integer(*bound);
  }
}

/// Indices that are sums of constants become constants.
void fold_indices(ir::Function& f) {
  std::vector<std::pair<Op*, std::size_t>> uses;
  ir::walk(f.body, [&](Op* op) {
    if (is_access(*op))
      for (std::size_t d = 1; d <= static_cast<std::size_t>(op->operands[0]->type.rank()); ++d)
        if (!constant(op->operands[d]) && index_form(op->operands[d]).number()) uses.emplace_back(op, d);
  });
  for (const auto& [op, d] : uses)
    op->operands[d] = ir::Builder::before(op).integer(*index_form(op->operands[d]).number());
}

}  // namespace

void fixed_arrays(ir::Function& f) {
  if (!is_direct(f)) return;
  for (bool any = true; any;) {
    std::unordered_set<Op*> loops;
    for (const Arrays::Group& group : Arrays(f).fixed())
      if (const auto found = loops_of(group)) loops.insert(found->begin(), found->end());
    any = unroll(f, loops);
    if (!any) break;
    fold_bounds(f);
    fold_indices(f);
  }
  for (const Arrays::Group& group : Arrays(f).fixed()) {
    const bool constants = std::ranges::all_of(group.accesses, [&](const Op* op) {
      for (std::size_t d = 0; d < group.dims.size(); ++d) {
        const Op* const index = constant(op->operands[1 + d]);
        if (!index || index->integer < 0 || index->integer >= group.dims[d]) return false;
      }
      return true;
    });
    if (!constants) continue;
    const ir::Kind element = group.values.front()->type.element();
    for (const Value* v : group.values) const_cast<Value*>(v)->type = ir::Type::tensor(element, group.dims);
  }
}

}  // namespace lantern::passes
