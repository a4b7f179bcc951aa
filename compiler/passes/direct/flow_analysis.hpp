// Where something flows in a derivative unit: found by a fixpoint over its cells and parameters. See flow.hpp.
#pragma once

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/direct/continuation_classes.hpp"
#include "lantern/compiler/passes/direct/flow_terms.hpp"
#include "lantern/compiler/passes/direct/poles.hpp"
#include "lantern/ir/clone.hpp"
#include "lantern/ir/external.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::passes::flow {

class Flows {
 public:
  Flows(ir::Function& unit, bool again) : again_(again) { collect(unit); }

 protected:
  /// Of two parts that run one after the other.
  Flow both(Flow a, Flow b) const {
    if (a == Flow::always || b == Flow::always) return Flow::always;
    return waits_ != Waits::never && (a == Flow::open || b == Flow::open) ? Flow::open : std::max(a, b);
  }
  /// Of two parts of which one runs.
  Flow either(Flow a, Flow b) const {
    return waits_ == Waits::all && (a == Flow::open || b == Flow::open) ? Flow::open : joined(a, b);
  }

  struct Cell {
    std::vector<Op*> uses;
    Block* home = nullptr;
    Flow flow = Flow::open;
    bool outside = false;      ///< used in other blocks than its own
    bool wanted = false;       ///< a product is made of what it holds
    bool wanted_pole = false;  ///< with a factor that may be infinite
    bool recurrent = false;    ///< of an array that a loop hands on, and reads elements of
    bool replaced_once = false;  ///< of an array whose elements one operation alone replaces
    bool whole = false;        ///< it is taken for one to which something flows always
    bool marked = false;       ///< it begins as -0 and holds -0 as long as nothing has been added
    /// The blocks below its own that hold uses, by the block around them.
    std::unordered_map<const Block*, std::vector<Block*>> nested;
    std::unordered_map<const Block*, std::vector<Op*>> direct;
  };
  /// A value of a backward part that is made of adjoints.
  struct Derived {
    Flow flow = Flow::open;
    bool by_element = false;  ///< the condition is a tensor's
    bool wanted_pole = false;  ///< a product is made of it, with a factor that may be infinite
  };
  /// What is asked of a value: a product, a factor that may be infinite.
  struct Wanted {
    bool any = false, pole = false;
    bool operator|=(const Wanted& w) {
      const bool more = (w.any && !any) || (w.pole && !pole);
      any |= w.any, pole |= w.pole;
      return more;
    }
  };
  // ---- what there is

  void collect(ir::Function& unit) {
    std::vector<ir::Function*> todo{&unit};
    std::unordered_set<const ir::Function*> seen{&unit};
    while (!todo.empty()) {
      ir::Function* const f = todo.back();
      todo.pop_back();
      add_block(f->body);
      for (Value* p : f->body->params)
        if (is_cell(p)) declare(p, f->body);
      ir::walk(f->body, [&](Op* op) {
        for (Block* b : op->blocks) add_block(b);
        if (op->callee && op->callee->cps && seen.insert(op->callee).second) todo.push_back(op->callee);
      });
    }
    for (Block* b : blocks_)
      for (Op* op : b->ops) note(b, op);
    classes_.finish();
    for (auto& [v, cell] : cells_) place(cell);
  }

  void add_block(Block* b) { blocks_.push_back(b); }
  void declare(Value* v, Block* home) {
    cells_[v].home = home;
    order_.push_back(v);
  }

  void note(Block* b, Op* op) {
    if (op->is(Opcode::ref_new_)) declare(op->result(), b);
    if (op->is(Opcode::fun_))
      for (Value* p : op->blocks[0]->params)
        if (is_cell(p)) declare(p, op->blocks[0]);
    for (Value* v : op->operands)
      if (is_cell(v)) cells_[v].uses.push_back(op);
    if (op->is(Opcode::ref_add_) && op->operands[1]->def && op->operands[1]->def->is(Opcode::set_))
      added_to_[op->operands[1]->def] = op->operands[0];
    if (op->is(Opcode::jump_)) {
      Op* const fun = op->operands[0]->def;
      // A loop is a continuation that is called inside itself.
      if (fun)
        for (const Block* at = b; at && at != fun->parent; at = at->parent ? at->parent->parent : nullptr)
          if (at == fun->blocks[0]) loops_[fun].push_back(op);
    }
    classes_.note(*op);
    if (op->is(Opcode::push_)) pushes_.push_back(op);
  }

  static void place(Cell& cell) {
    for (Op* use : cell.uses) {
      cell.direct[use->parent].push_back(use);
      for (Block* at = use->parent; at != cell.home && at && at->parent; at = at->parent->parent) {
        cell.outside = true;
        std::vector<Block*>& inner = cell.nested[at->parent->parent];
        if (std::ranges::find(inner, at) != inner.end()) break;
        inner.push_back(at);
      }
    }
  }

  /// The end of a block, or null.
  Op* end(const Block& b) {
    const auto [at, added] = ends_.try_emplace(&b, nullptr);
    if (added) {
      const std::size_t t = end_of(b);
      if (t < b.ops.size()) at->second = b.ops[t];
    }
    return at->second;
  }
  std::size_t place_of_end(const Block& b) {
    Op* const t = end(b);
    return static_cast<std::size_t>(std::ranges::find(b.ops, t) - b.ops.begin());
  }

  bool own(const Value* v) const { return v->def && v->def->is(Opcode::ref_new_); }
  Cell* cell(const Value* v) {
    const auto found = cells_.find(const_cast<Value*>(v));
    return found == cells_.end() ? nullptr : &found->second;
  }

  // ---- whether something flows

  /// The operations of backward parts that adjoints go through.
  void find_derived() {
    // In the derivative of a derivative adjoints lie on a tape. A popped one is found once the value that was pushed is.
    for (std::size_t known = 0;; known = derived_.size()) {
      backward_.clear();
      find_derived_from_tapes();
      if (derived_.size() == known) return;
    }
  }
  void find_derived_from_tapes() {
    std::unordered_set<std::int64_t> tapes;
    for (const Op* op : pushes_)
      if (derived_.contains(op->operands[0])) tapes.insert(op->integer);
    for (Block* b : blocks_) {
      std::vector<Op*> ops;
      for (std::size_t i = place_of_end(*b); i < b->ops.size(); ++i) {
        Op* const op = b->ops[i];
        const bool read = op->is(Opcode::ref_get_) && own(op->operands[0]);
        const bool made = !op->is(Opcode::ref_get_) && !op->results.empty() &&
                          std::ranges::any_of(data_of(*op), [&](Value* v) { return derived_.contains(v); });
        const bool kept = op->is(Opcode::pop_) && tapes.contains(op->integer);
        if (!read && !made && !kept) continue;
        for (const Value* v : op->results) derived_[v];
        ops.push_back(op);
      }
      if (!ops.empty()) backward_.emplace_back(b, std::move(ops));
    }
  }

  /// Whether anything is not added to always.
  bool find_flows() {
    const bool some = answer_all();
    bool whole = false;
    for (Value* v : order_) {
      Cell& c = cells_[v];
      whole |= c.whole = conditional(c.flow) && counts_as_whole(v, c);
    }
    if (!whole) return some;
    for (auto& [v, c] : cells_) c.flow = Flow::open;
    for (auto& [v, d] : derived_) d.flow = Flow::open, d.by_element = false;
    return answer_all();
  }
  bool answer_all() {
    // At first an answer waits for those that it depends on. What is open then depends on itself: of parts of which one
    // runs, those that are known answer. What is open at last flows nowhere but into itself.
    bool some = false;
    for (const Waits waits : {Waits::all, Waits::in_sequences, Waits::never}) {
      waits_ = waits;
      some |= settle();
    }
    return some;
  }

  /// The answers of all, until none changes; whether anything is not added to always.
  bool settle() {
    bool changed = true, some = false;
    const auto look = [&](Value* v) {
      Cell& c = cells_[v];
      const Flow now = v->def ? in(c.home, v, c) : of_body(c.home->parent, c.home, v, c);
      changed |= joined(c.flow, now) != c.flow;
      c.flow = joined(c.flow, now);
    };
    // The operations of a backward part stand in the order in which adjoints are made, inner parts come before outer
    // ones, and a cell is looked at where it is read: straight code is done in one sweep.
    while (changed) {
      changed = some = false;
      for (auto part = backward_.rbegin(); part != backward_.rend(); ++part)
        for (Op* op : part->second) {
          if (op->is(Opcode::ref_get_)) look(op->operands[0]);
          const Derived now = derive(*op);
          for (const Value* v : op->results) {
            Derived& d = derived_[v];
            const Derived known{joined(d.flow, now.flow), d.by_element || now.by_element, d.wanted_pole};
            changed |= d.flow != known.flow || d.by_element != known.by_element;
            d = known;
            some |= known.flow != Flow::always;
          }
        }
      for (Value* v : order_) look(v);
    }
    return some;
  }

  Derived operand(const Value* v) const {
    const auto found = derived_.find(v);
    return found == derived_.end() ? Derived{Flow::always} : found->second;
  }

  /// The same of a part of a value, where a constant 0 means that nothing flows.
  Derived part(const Value* v) const { return is_zero(v) ? Derived{Flow::never} : operand(v); }

  /// Whether a cell is taken for one to which something flows always: each iteration and each call pays for a number that
  /// they hand on, and only a factor that may be infinite is worth it.
  bool counts_as_whole(const Value* v, const Cell& c) const {
    return !(v->type.content().is_tensor() && c.recurrent) && !c.wanted_pole && goes_around(c);
  }
  /// Whether a loop takes the cell from iteration to iteration, or calls take it on.
  bool goes_around(const Cell& c) const {
    return std::ranges::any_of(c.uses, [&](const Op* use) {
      return use->is(Opcode::call_) ||
             (use->is(Opcode::jump_) && (loops_.contains(use->operands[0]->def) || !classes_.of(use->operands[0]).empty()));
    });
  }

  /// Whether it is known of each element of an array whether something flows to it.
  bool by_elements(const Value* v, const Cell& c) const {
    return v->type.content().is_tensor() && c.wanted_pole && !counts_as_whole(v, c);
  }

  /// Whether a loop replaces one element after the other: each is read where it is replaced, and has what follows the loop.
  /// Not where something else replaces an element once more, or a loop around that does not count it; nor where products are
  /// made of what flows to the array that the loop begins with.
  bool counted_by_loop(const Op& set, const Value* cell) {
    if (!cells_[const_cast<Value*>(cell)].replaced_once) return false;
    const auto counts = [&](const Op* fun) {
      return std::any_of(set.operands.begin() + 1, set.operands.end() - 1,
                         [&](const Value* i) { return !i->def && i->block->parent == fun; });
    };
    bool counted = std::any_of(set.operands.begin() + 1, set.operands.end() - 1, [&](const Value* i) {
      return !i->def && i->block->parent && loops_.contains(i->block->parent);
    });
    const Value* first = cell;
    while (const Op* const fun = first->def ? nullptr : first->block->parent) {
      const Op* const start = end(*fun->parent);
      if (!start || !start->is(Opcode::jump_) || start->operands[0]->def != fun) break;
      counted &= !loops_.contains(fun) || counts(fun);
      first = start->operands[first->index + 1];
    }
    return counted && (first == cell || !cells_[const_cast<Value*>(first)].wanted_pole);
  }
  /// Whether what an element was before it was replaced is read: something flows to it in place of what flowed to its
  /// successor.
  bool read_before(const Op& set, Value* cell) {
    const auto same = [](const Value* a, const Value* b) {
      const Op *const x = a->def, *const y = b->def;
      return a == b || (x && y && x->is(Opcode::constant_) && y->is(Opcode::constant_) && x->integer == y->integer);
    };
    return std::ranges::any_of(cells_[cell].direct[set.parent], [&](const Op* use) {
      if (!use->is(Opcode::ref_acc_) || ir::accumulated_by(*use) != Opcode::add_at_) return false;
      for (std::size_t i = 1; i + 1 < use->operands.size(); ++i)
        if (!same(use->operands[i], set.operands[i])) return false;
      const Flow flow = operand(use->operands.back()).flow;
      return flow == Flow::always || flow == Flow::open;
    });
  }

  /// Whether an accumulation adds to one element, row or slice alone.
  static bool adds_to_part(const Op& op) {
    if (!op.is(Opcode::ref_acc_)) return false;
    const Opcode by = ir::accumulated_by(op);
    return by == Opcode::add_at_ || by == Opcode::add_take_ || by == Opcode::add_slice_;
  }

  /// Whether loops around it do for each element of an array what such an operation does to one: each index counts from 0
  /// to the array's size.
  bool for_each_element(const Op& op, const Value* array) {
    if (!own(array) || ir::accumulated_by(op) != Opcode::add_at_) return false;
    for (std::size_t i = 1; i + 1 < op.operands.size(); ++i)
      if (!counts_to_size(op.operands[i], array->def->operands[0], static_cast<std::int64_t>(i) - 1)) return false;
    return true;
  }
  bool counts_to_size(const Value* index, const Value* array, std::int64_t dimension) {
    const Op* const fun = index->def ? nullptr : index->block->parent;
    const auto loop = fun ? loops_.find(fun) : loops_.end();
    if (loop == loops_.end()) return false;
    const Block& header = *fun->blocks[0];
    const std::size_t at = index->index + 1;
    const auto constant = [](const Value* v, std::int64_t n) {
      return v->def && v->def->is(Opcode::constant_) && v->type == ir::I64 && v->def->integer == n;
    };
    const Op *const test = end(header), *const start = end(*fun->parent);
    const Op* const less = test && test->is(Opcode::branch_) ? test->operands[0]->def : nullptr;
    if (!less || !less->is(Opcode::lt_) || less->operands[0] != index) return false;
    const Op* const size = less->operands[1]->def;
    if (!size || !size->is(Opcode::dim_) || size->integer != dimension || shape_of(size->operands[0]) != shape_of(array))
      return false;
    if (!start || !start->is(Opcode::jump_) || start->operands[0]->def != fun || !constant(start->operands[at], 0)) return false;
    return std::ranges::all_of(loop->second, [&](const Op* jump) {
      const Op* const next = jump->operands[at]->def;
      return next && next->is(Opcode::add_) && next->operands[0] == index && constant(next->operands[1], 1);
    });
  }
  /// A value that has the same shape as the tensor.
  static const Value* shape_of(const Value* v) {
    while (v->def && v->type.is_tensor() &&
           (ir::info(v->def->code).elementwise || v->def->is(Opcode::set_, Opcode::zeros_like_))) {
      const auto same = std::ranges::find_if(v->def->operands,
                                             [&](const Value* x) { return x->type.rank() == v->type.rank(); });
      if (same == v->def->operands.end()) break;
      v = *same;
    }
    return v;
  }

  /// What an ordered call gives does not follow from what it is given alone: a cotangent may come from another process.
  bool comes_from_outside(const Op& op) {
    if (ir::is_ordered_call(op)) return true;
    if (!op.is(Opcode::call_)) return false;
    const auto [known, fresh] = ordered_.try_emplace(op.callee, false);
    if (!fresh) return known->second;
    bool any = false;
    const auto look = [&](const Op* inner) { any |= ir::is_ordered_call(*inner); };
    ir::walk(op.callee->body, look);
    for (const ir::Function* f : ir::callees(op.callee->body)) ir::walk(f->body, look);
    return ordered_[op.callee] = any;
  }

  /// Of an array after one element was replaced: what flows to the others flows as before. Nothing where the array is not
  /// looked at by elements.
  std::optional<Derived> of_replaced(const Op& set) {
    const auto to = added_to_.find(&set);
    if (to != added_to_.end() && !by_elements(to->second, cells_[to->second])) return {};
    const Derived rest = part(set.operands[0]), element = part(set.operands.back());
    const bool whole = rest.flow == Flow::always || rest.flow == Flow::entered;
    if (whole && to != added_to_.end() && !cells_[to->second].recurrent && element.flow == Flow::never &&
        (counted_by_loop(set, to->second) || read_before(set, to->second)))
      return rest;
    const Op* const base = set.operands[0]->def;
    if (base && base->is(Opcode::fill_) && base->operands[0]->def && base->operands[0]->def->is(Opcode::undef_))
      return element;  // the others are replaced, too
    const bool waits = waits_ != Waits::never && (rest.flow == Flow::open || element.flow == Flow::open);
    const Flow f = waits ? Flow::open : joined(rest.flow, element.flow);
    return Derived{conditional(f) ? Flow::sometimes : f, conditional(f)};
  }

  Derived derive(const Op& op) {
    if (comes_from_outside(op)) return {Flow::always};
    if (op.is(Opcode::ref_get_)) {
      const Cell& c = *cell(op.operands[0]);
      return {c.whole ? Flow::always : c.flow, by_elements(op.operands[0], c)};
    }
    if (op.is(Opcode::pop_)) {
      Flow f = Flow::open;
      for (const Op* push : pushes_)
        if (push->integer == op.integer) f = joined(f, operand(push->operands[0]).flow);
      const bool looked_at = derived_[op.result()].wanted_pole;
      return {!conditional(f) ? f : looked_at ? Flow::sometimes : Flow::always, looked_at && op.result()->type.is_tensor()};
    }
    if (op.is(Opcode::set_) && derived_[op.result()].wanted_pole) {
      if (const auto d = of_replaced(op)) return *d;
    }
    if (op.is(Opcode::select_)) {
      const Derived a = part(op.operands[1]), b = part(op.operands[2]);
      const Flow flow = either(a.flow, b.flow);
      return {flow == Flow::entered ? Flow::sometimes : flow,
              a.by_element || b.by_element || op.operands[0]->type.is_tensor()};
    }
    Derived all{Flow::open};
    bool any = false;
    for (const Value* v : data_of(op)) {
      const auto found = derived_.find(v);
      if (found == derived_.end()) continue;
      all.flow = any ? both(all.flow, found->second.flow) : found->second.flow;
      all.by_element |= found->second.by_element;
      any = true;
    }
    const Kind kind = kind_of(op);
    if (!op.results.empty() && op.result()->type.is_scalar())
      all.by_element &= kind != Kind::moves && kind != Kind::sums;
    // What mixes elements knows nothing of conditions of single ones.
    if (kind == Kind::other && all.by_element && conditional(all.flow)) return {Flow::always};
    return all;
  }

  /// Whether a constant 0 is added, as of an element that was replaced.
  static bool adds_nothing(const Op& op) { return op.is(Opcode::ref_add_) && is_zero(op.operands[1]); }
  /// Of what is added by an operation.
  Flow added(const Op& op, const Cell& to) {
    const bool elements = by_elements(op.operands[0], to);
    const bool part = elements && adds_to_part(op);
    Flow f = Flow::open;
    bool any = false;
    for (std::size_t i = 1; i < op.operands.size(); ++i) {
      const auto found = derived_.find(op.operands[i]);
      if (found == derived_.end()) continue;
      Flow one = found->second.flow;
      if (found->second.by_element && conditional(one) && (elements ? op.is(Opcode::ref_acc_) && !part
                                                                     : to.outside || op.is(Opcode::ref_acc_)))
        one = Flow::always;
      f = any ? both(f, one) : one;
      any = true;
    }
    if (!any) f = adds_nothing(op) ? Flow::never : Flow::always;
    const bool some = part && (f == Flow::always || f == Flow::entered) && !for_each_element(op, op.operands[0]);
    return some ? Flow::sometimes : f;
  }

  Flow in(const Block* b, const Value* v, const Cell& c) {
    Flow f = Flow::never;
    if (const auto direct = c.direct.find(b); direct != c.direct.end())
      for (const Op* use : direct->second) {
        if (adds(*use) && use->operands[0] == v) f = both(f, added(*use, c));
        else if (use->is(Opcode::jump_, Opcode::call_))
          f = both(f, passed(*use, v));
      }
    if (const auto nested = c.nested.find(b); nested != c.nested.end()) {
      Flow sides = Flow::open;
      bool branches = false;
      for (Block* inner : nested->second) {
        if (inner->parent->is(Opcode::fun_)) {
          f = both(f, of_body(inner->parent, inner, v, c));
        } else {
          const Flow one = in(inner, v, c);
          sides = branches ? either(sides, one) : nested_in_both(*inner->parent, nested->second) ? one : either(one, Flow::never);
          branches = true;
        }
      }
      if (branches) f = both(f, sides);
    }
    return f;
  }
  static bool nested_in_both(const Op& branch, const std::vector<Block*>& blocks) {
    return std::ranges::all_of(branch.blocks,
                               [&](Block* b) { return std::ranges::find(blocks, b) != blocks.end(); });
  }

  /// Of the body of a continuation or function.
  Flow of_body(Op* fun, const Block* body, const Value* v, const Cell& c) {
    if (!fun || !loops_.contains(fun)) return in(body, v, c);
    const auto [iteration, exit] = of_loop(*body, v, c);
    // A state is another in each iteration: what follows the loop adds to the last one alone, and iterations do not.
    const bool state = !v->def && v->block == body;
    if (state && exit == Flow::always) return either(iteration, exit);
    if (exit == Flow::always) return Flow::always;
    if (waits_ != Waits::never && (iteration == Flow::open || exit == Flow::open)) return Flow::open;
    if (iteration == Flow::never || iteration == Flow::open) return exit == Flow::open ? iteration : exit;
    const Flow all = !state && surely_starts(*fun) ? iteration : unless_ended(iteration);
    return exit == Flow::never ? all : both(all, exit);
  }
  /// Whether a loop has a first iteration: its test compares constants then.
  bool surely_starts(const Op& fun) {
    const Op* const start = end(*fun.parent);
    const Block& header = *fun.blocks[0];
    const Op* const test = end(header);
    if (!start || !start->is(Opcode::jump_) || start->operands[0]->def != &fun || !test || !test->is(Opcode::branch_))
      return false;
    const Op* const less = test->operands[0]->def;
    if (!less || !less->is(Opcode::lt_)) return false;
    const auto at_first = [&](const Value* v) -> std::optional<std::int64_t> {
      for (std::size_t i = 0; i < header.params.size() && i + 1 < start->operands.size(); ++i)
        if (v == header.params[i]) v = start->operands[i + 1];
      if (!v->def || !v->def->is(Opcode::constant_) || v->type != ir::I64) return {};
      return v->def->integer;
    };
    const auto from = at_first(less->operands[0]), to = at_first(less->operands[1]);
    return from && to && *from < *to;
  }
  /// Of the iterations of a loop and of what follows it.
  std::pair<Flow, Flow> of_loop(const Block& header, const Value* v, const Cell& c) {
    const Op* const test = end(header);
    if (!test || !test->is(Opcode::branch_)) return {Flow::always, Flow::always};
    const auto side = [&](std::size_t i) {
      Block* const b = test->blocks[i];
      const auto nested = c.nested.find(&header);
      const bool uses = nested != c.nested.end() && std::ranges::find(nested->second, b) != nested->second.end();
      return uses ? in(b, v, c) : Flow::never;
    };
    return {side(0), side(1)};
  }

  /// Of a cell that is handed on.
  Flow passed(const Op& op, const Value* v) {
    Flow f = Flow::never;
    const bool jump = op.is(Opcode::jump_);
    for (std::size_t i = jump ? 1 : 0; i < op.operands.size(); ++i) {
      if (op.operands[i] != v) continue;
      if (jump) f = both(f, of_argument(op.operands[0], i - 1));
      else f = both(f, cells_[op.callee->body->params[i]].flow);
    }
    return f;
  }
  Flow of_argument(const Value* continuation, std::size_t i) {
    if (const Op* fun = continuation->def)
      return fun->is(Opcode::fun_) ? cells_[fun->blocks[0]->params[i]].flow : Flow::always;
    // That of a function: one of those it is called with.
    Flow f = Flow::open;
    bool first = true;
    for (const Value* k : classes_.of(continuation)) {
      if (!k->def) continue;
      const Flow one = of_argument(k, i);
      f = first ? one : either(f, one);
      first = false;
    }
    return first ? Flow::always : f;
  }

  // ---- where it matters

  void find_wanted() {
    bool changed = true;
    while (changed) {
      changed = false;
      const auto of = [](const Cell& c) { return Wanted{c.wanted, c.wanted_pole}; };
      const auto want = [&](Cell& c, const Wanted& w) {
        Wanted all = of(c);
        changed |= all |= w;
        c.wanted = all.any, c.wanted_pole = all.pole;
      };
      for (const auto& [b, ops] : backward_) {
        std::unordered_map<const Value*, Wanted> needed;
        const auto need = [&](const Op& op, const Wanted& w) {
          for (const Value* v : data_of(op))
            if (derived_.contains(v)) needed[v] |= w;
        };
        for (std::size_t i = b->ops.size(), t = place_of_end(*b); i-- > t;) {
          Op& op = *b->ops[i];
          if (adds(op)) {
            if (const Cell* to = cell(op.operands[0])) need(op, of(*to));
            continue;
          }
          if (op.is(Opcode::push_)) {
            need(op, wanted_of_tape_[op.integer]);
            continue;
          }
          Wanted w;
          bool is_derived = false;
          for (const Value* v : op.results) {
            is_derived |= derived_.contains(v);
            w |= needed[v];
          }
          if (!is_derived) continue;
          for (const Value* v : op.results) derived_[v].wanted_pole |= w.pole;
          if (op.is(Opcode::ref_get_)) {
            want(*cell(op.operands[0]), w);
            continue;
          }
          if (op.is(Opcode::pop_)) {
            changed |= wanted_of_tape_[op.integer] |= w;
            continue;
          }
          if (is_product(op)) {
            w.any = true;
            for (const Value* v : op.operands)
              w.pole |= !derived_.contains(v) && near_pole(v, again_);
          }
          need(op, w);
        }
      }
      for (Block* b : blocks_) {
        if (!end(*b)) continue;
        const Op& op = *end(*b);
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
          if (!is_cell(op.operands[i])) continue;
          // What is wanted of an argument is wanted of the parameter, which is the same cell.
          const Cell* const outer = cell(op.operands[i]);
          for (Value* to : parameters(op, i))
            if (Cell* inner = cell(to); inner && outer) want(*inner, of(*outer));
        }
      }
    }
  }

  /// Finds the arrays that loops hand on and read elements of, and those that are replaced at one place.
  void find_recurrent() {
    std::unordered_map<const Value*, const Value*> same;  // of one array, handed on or with one element replaced
    const auto root = [&](const Value* v) {
      for (auto at = same.find(v); at != same.end(); at = same.find(v)) v = at->second;
      return v;
    };
    std::unordered_map<const Value*, std::unordered_set<const Op*>> handed_on_by;
    for (Block* b : blocks_) {
      const Op* const jump = end(*b);
      for (std::size_t i = 1; jump && jump->is(Opcode::jump_) && i < jump->operands.size(); ++i) {
        const Value *const p = is_cell(jump->operands[i]) ? parameter(*jump, i) : nullptr, *const from = jump->operands[i];
        if (p && p->type.content().is_tensor() && root(p) != root(from)) same[root(p)] = root(from);
      }
    }
    for (const auto& [set, to] : added_to_)
      if (const Op* const base = set->operands[0]->def; base && base->is(Opcode::ref_get_))
        if (const Value *const from = root(base->operands[0]), *const into = root(to); from != into) same[from] = into;
    for (const auto& [fun, jumps] : loops_)
      for (const Value* p : fun->blocks[0]->params)
        if (is_cell(p) && p->type.content().is_tensor()) handed_on_by[root(p)].insert(fun);
    std::unordered_set<const Value*> recurrent;
    for (const auto& [v, c] : cells_)
      if (const auto loops = handed_on_by.find(root(v)); loops != handed_on_by.end())
        for (const Op* use : c.uses)
          if (adds_to_part(*use) && in_iteration(use->parent, c.home, loops->second)) recurrent.insert(root(v));
    std::unordered_map<const Value*, int> replaced;
    for (const auto& [set, to] : added_to_) ++replaced[root(to)];
    for (auto& [v, c] : cells_) {
      c.recurrent = recurrent.contains(root(v));
      c.replaced_once = replaced[root(v)] <= 1;
    }
  }
  /// Whether a block, below a home, belongs to an iteration of one of some loops around it, not to what follows them.
  bool in_iteration(const Block* block, const Block* home, const std::unordered_set<const Op*>& loops) {
    bool below = false;
    for (const Block* at = block; at && at->parent; at = at->parent->parent) {
      const Op *const around = at->parent, *const fun = around->parent ? around->parent->parent : nullptr;
      below |= around->parent == home;
      if (below && around->is(Opcode::branch_) && fun && loops.contains(fun) &&
          end(*fun->blocks[0]) == around && around->blocks[0] == at)
        return true;
    }
    return false;
  }

  bool is_product(const Op& op) const {
    if (kind_of(op) != Kind::product) return false;
    return std::ranges::any_of(op.operands, [&](const Value* v) {
      return !derived_.contains(v) && !(v->def && v->def->is(Opcode::constant_));
    });
  }

  static Value* parameter(const Op& op, std::size_t i) {
    if (op.is(Opcode::call_)) return op.callee->body->params[i];
    const Op* fun = op.is(Opcode::jump_) ? op.operands[0]->def : nullptr;
    return fun && fun->is(Opcode::fun_) ? fun->blocks[0]->params[i - 1] : nullptr;
  }

  /// All that an argument may become.
  std::vector<Value*> parameters(const Op& op, std::size_t i) const {
    if (Value* const p = parameter(op, i); p && !(op.is(Opcode::jump_) && !classes_.of(op.operands[0]).empty())) return {p};
    std::vector<Value*> all;
    if (op.is(Opcode::jump_))
      for (const Value* k : classes_.of(op.operands[0]))
        if (k->def && k->def->is(Opcode::fun_)) all.push_back(k->def->blocks[0]->params[i - 1]);
    return all;
  }

  bool guarded(const Cell& c) const {
    return (c.flow == Flow::sometimes && c.wanted) || (c.flow == Flow::entered && c.wanted_pole);
  }

  /// Whether some elements of an array may have nothing where others have something.
  bool adds_by_element(const Value* v, const Cell& c) {
    if (!by_elements(v, c)) return false;
    return std::ranges::any_of(c.uses, [&](const Op* use) {
      if (!adds(*use)) return false;
      if (adds_to_part(*use)) return !for_each_element(*use, v);
      return use->is(Opcode::ref_add_) && operand(use->operands[1]).by_element && conditional(operand(use->operands[1]).flow);
    });
  }

  // ---- conditions that a block sees, and numbers beside cells

  /// A condition under which the rest of the program, as a block runs it, adds to a cell; nothing where that takes a number
  /// beside the cell.
  enum class Form : std::uint8_t { never, branch, not_branch, first_iteration, unseen };

  Form condition(const Block& b, const Value* v, const Cell& c) {
    Op* const end = this->end(b);
    if (!end) return Form::never;
    const auto nested = c.nested.find(&b);
    std::vector<Block*> inner = nested == c.nested.end() ? std::vector<Block*>() : nested->second;
    // What adds nothing at all.
    std::erase_if(inner, [&](Block* x) {
      const Flow f = x->parent->is(Opcode::fun_) ? of_body(x->parent, x, v, c) : in(x, v, c);
      return f == Flow::never || f == Flow::open;
    });
    const bool handed = std::ranges::find(end->operands, v) != end->operands.end() && passed(*end, v) != Flow::never;
    if (inner.empty() && !handed) return Form::never;
    if (end->is(Opcode::branch_)) {
      if (inner.size() != 1 || inner[0]->parent != end || in(inner[0], v, c) != Flow::always) return Form::unseen;
      return inner[0] == end->blocks[0] ? Form::branch : Form::not_branch;
    }
    if (!end->is(Opcode::jump_)) return Form::unseen;
    Op* const fun = end->operands[0]->def;
    if (!fun || !fun->is(Opcode::fun_) || !loops_.contains(fun) || !header_is_plain(*fun)) return Form::unseen;
    const Block& header = *fun->blocks[0];
    bool fits = true;
    if (!inner.empty()) {
      const auto [iteration, exit] = of_loop(header, v, c);
      fits = inner.size() == 1 && inner[0] == &header && iteration == Flow::always && exit == Flow::never;
    }
    for (std::size_t i = 1; i < end->operands.size(); ++i) {
      if (end->operands[i] != v) continue;
      const Value* p = header.params[i - 1];
      const auto [iteration, exit] = of_loop(header, p, *cell(p));
      if (iteration == Flow::never && exit == Flow::never) continue;
      fits &= iteration == Flow::always && exit == Flow::never;
    }
    return fits ? Form::first_iteration : Form::unseen;
  }

  bool header_is_plain(const Op& fun) {
    const Block& header = *fun.blocks[0];
    const std::size_t t = place_of_end(header);
    if (t > 8) return false;
    return std::all_of(header.ops.begin(), header.ops.begin() + static_cast<std::ptrdiff_t>(t), [](const Op* op) {
      return op->blocks.empty() && ir::info(op->code).effect == ir::Effect::none && !op->is(Opcode::fun_);
    });
  }

  /// Which answers wait for the open ones that they depend on.
  enum class Waits : std::uint8_t { all, in_sequences, never };
  Waits waits_ = Waits::never;
  const bool again_;  ///< the unit is to be differentiated
  std::vector<Block*> blocks_;
  std::unordered_map<const Block*, Op*> ends_;
  std::unordered_map<Value*, Cell> cells_;
  std::vector<Value*> order_;
  std::unordered_map<const Op*, Value*> added_to_;  ///< adjoints without an element: the cells they are added to
  std::unordered_map<const Op*, std::vector<const Op*>> loops_;  ///< and the jumps to their next iterations
  ContinuationClasses classes_;
  std::vector<const Op*> pushes_;
  std::unordered_map<std::int64_t, Wanted> wanted_of_tape_;
  std::unordered_map<const Value*, Derived> derived_;
  std::unordered_map<const ir::Function*, bool> ordered_;  ///< functions: whether they make ordered calls
  std::vector<std::pair<Block*, std::vector<Op*>>> backward_;
};

}  // namespace lantern::passes::flow
