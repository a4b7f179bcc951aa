// Where nothing may flow, backward parts written anew: products with adjoints are kept by selects.
#include "lantern/compiler/passes/direct/flow.hpp"

#include "lantern/compiler/passes/direct/flow_analysis.hpp"
#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/compiler/passes/direct/unwinder.hpp"

namespace lantern::passes {

namespace {

using namespace flow;
using ir::Builder;

class FlowGuard : Flows {
 public:
  FlowGuard(ir::Function& unit, bool again) : Flows(unit, again), module_(*unit.module) {}

  MarkedCells run() {
    find_derived();
    find_wanted();
    find_recurrent();
    if (!find_flows()) return {};
    find_marked();
    for (Block* b : blocks_) rewrite(b);
    return {marked_.begin(), marked_.end()};
  }

 private:
  /// What is known of such a value when it is written.
  struct Masked {
    Value* condition = nullptr;  ///< null: always, or not asked of a marked one so far
    bool exact = true;           ///< 0 where the condition does not hold
    bool marked = false;         ///< -0 where nothing flows, and nowhere else
  };
  using Masks = std::unordered_map<const Value*, Masked>;
  /// What is added to cells of one block.
  using Contributions = std::unordered_map<const Value*, std::vector<Masked>>;

  // ---- cells that begin as -0, and tapes

  /// Marks cells where no block sees whether something is added. A cell and the parameters that it is passed as are marked
  /// together: additions to a parameter are additions to its arguments.
  void find_marked() {
    std::unordered_map<Value*, Value*> same;
    const auto root = [&](Value* v) {
      for (auto at = same.find(v); at != same.end(); at = same.find(v)) v = at->second;
      return v;
    };
    std::unordered_set<Value*> elsewhere, marked;
    for (Block* b : blocks_) {
      const Op* const op = end(*b);
      for (std::size_t i = 0; op && i < op->operands.size(); ++i) {
        Value* const v = op->operands[i];
        if (!is_cell(v)) continue;
        const std::vector<Value*> all = parameters(*op, i);
        if (all.empty()) elsewhere.insert(v);
        for (Value* p : all)
          if (root(p) != root(v)) same[root(p)] = root(v);
      }
    }
    for (Value* v : order_)
      if (takes_mark(v, cells_[v])) marked.insert(root(v));
    for (Value* v : order_)
      if (cells_[v].recurrent && cells_[v].whole) elsewhere.insert(v);
    for (Value* v : elsewhere) marked.erase(root(v));
    for (const auto& [b, ops] : backward_)
      for (const Op* op : ops)
        if (op->is(Opcode::pop_) && conditional(operand(op->result()).flow)) marked_tapes_.insert(op->integer);
    for (Value* v : order_) {
      if (!marked.contains(root(v))) continue;
      cells_[v].marked = true;
      marked_.push_back(v);
      if (own(v)) v->def->integer = ir::as_minus_zero;
    }
  }
  bool takes_mark(const Value* v, const Cell& c) {
    if (!own(v) || !guarded(c) || c.whole) return false;
    if (v->type.content().is_tensor() && !by_elements(v, c)) return false;
    return condition(*c.home, v, c) == Form::unseen || adds_by_element(v, c);
  }
  /// Whether it is not -0.
  static Value* something(Builder& b, Value* v) {
    Value* const zero = b.zero_like(v);
    Value* const side = b.emit(Opcode::copysign_, {filled(b, 1, v), v});
    return b.emit(Opcode::lor_, {b.emit(Opcode::ne_, {v, zero}), b.lt({zero, side})});
  }
  static Value* filled(Builder& b, double number, Value* like) {
    Value* const one = b.number(number, ir::Type(like->type.element()));
    return like->type.is_tensor() ? b.emit(Opcode::broadcast_, {one, like}) : one;
  }
  /// The value as a marked cell takes it. Conditions of blocks are asked for while they are written: what is known of the
  /// value is known of what takes its place.
  Value* marked(Builder& b, Value* v, Masks& masks) {
    Value* const taken = with_minus_zero(b, v, masks);
    if (const auto known = derived_.find(v); known != derived_.end() && taken != v) {
      const Derived d = known->second;
      derived_[taken] = d;
    }
    return taken;
  }
  Value* with_minus_zero(Builder& b, Value* v, Masks& masks) {
    if (is_zero(v) || operand(v).flow == Flow::never) return filled(b, -0.0, v);
    if (!derived_.contains(v) && v->def && v->def->is(Opcode::fill_)) return v;  // all of it will be replaced
    const auto m = masks.find(v);
    if (normal_.contains(v) || (m != masks.end() && m->second.marked)) return v;
    if (v->def && v->def->is(Opcode::set_) && normal_.contains(v->def->operands[0])) {
      // The other elements have their marks: only the new one needs one, not the whole array in each iteration.
      std::vector<Value*> operands = v->def->operands;
      operands.back() = marked(b, operands.back(), masks);
      return b.emit(Opcode::set_, operands);
    }
    Value* const sum = b.add({v, b.zero_like(v)});  // never -0
    Value* const condition = condition_of(b, v, masks);
    return condition ? b.select({condition, sum, filled(b, -0.0, v)}) : sum;
  }

  // ---- backward parts, written anew

  /// The condition of a form, in a backward part.
  Value* materialise(Builder& b, const Block& block, Form form) {
    const Op& end = *this->end(block);
    if (form == Form::branch) return end.operands[0];
    if (form == Form::not_branch) return b.emit(Opcode::lnot_, {end.operands[0]});
    const Block& header = *end.operands[0]->def->blocks[0];
    ir::Renaming names;
    for (std::size_t i = 0; i < header.params.size() && i + 1 < end.operands.size(); ++i)
      names[header.params[i]] = end.operands[i + 1];
    const Op* const test = this->end(header);
    for (std::size_t i = 0; header.ops[i] != test; ++i) ir::clone(b, *header.ops[i], names);
    return ir::renamed(names, test->operands[0]);
  }

  static Value* together(Builder& b, Opcode op, Value* x, Value* y) {
    if (!x->type.is_tensor() && y->type.is_tensor()) x = b.emit(Opcode::broadcast_, {x, y});
    if (!y->type.is_tensor() && x->type.is_tensor()) y = b.emit(Opcode::broadcast_, {y, x});
    return b.emit(op, {x, y});
  }
  static Value* any(Builder& b, Value* x, Value* y) {
    if (!x || !y) return nullptr;
    if (x == y) return x;
    return together(b, Opcode::lor_, x, y);
  }
  static Value* all(Builder& b, Value* x, Value* y) {
    if (!x || x == y) return y;
    if (!y) return x;
    return together(b, Opcode::land_, x, y);
  }
  static Value* chosen(Builder& b, Value* condition, Value* v) {
    return b.select({condition, v, b.zero_like(v)});
  }

  void rewrite(Block* block) {
    if (!end(*block)) return;
    const std::size_t t = place_of_end(*block);
    std::vector<Op*> all = std::exchange(block->ops, {});
    Builder b(module_, block);
    Masks masks;
    Contributions contributions;
    for (std::size_t i = 0; i < all.size(); ++i) {
      b.loc = all[i]->loc;
      if (i <= t && !adds(*all[i]) && !all[i]->is(Opcode::push_)) {
        block->ops.push_back(all[i]);
        if (i == t) note_iterations(b, *block);
      } else {
        rewrite(b, *block, all[i], masks, contributions);
      }
    }
  }

  /// That something is added where a condition holds; always where there is none.
  static void note(Builder& b, Value* cell, Value* condition) {
    const ir::Type element(cell->type.content().element());
    Value* const zero = b.number(0, element);
    Value* v = condition ? b.select({condition, zero, b.number(-0.0, element)}) : zero;
    if (cell->type.content().is_tensor()) v = b.emit(Opcode::broadcast_, {v, shape_of_cell(cell)});
    b.op(Opcode::ref_add_, {cell, v});
  }
  /// What a cell is the adjoint of.
  static Value* shape_of_cell(const Value* cell) {
    return cell->def ? cell->def->operands[0] : primal_of(cell->block->params, cell->index);
  }
  /// Of a loop that adds something in each iteration it is noted once.
  void note_iterations(Builder& b, const Block& block) {
    for (const auto& [v, form] : conditions_of(block)) note(b, v, materialise(b, block, form));
  }

  /// Marked cells to which a loop that starts here adds unless it has no iteration.
  std::vector<std::pair<Value*, Form>> conditions_of(const Block& block) {
    std::vector<std::pair<Value*, Form>> out;
    const Op& end = *this->end(block);
    if (!end.is(Opcode::jump_) || !end.operands[0]->def || !loops_.contains(end.operands[0]->def)) return out;
    for (Value* v : marked_) {
      Cell& c = cells_[v];
      if (covered(block, v, c)) continue;
      const bool here = c.nested.contains(&block) || std::ranges::find(end.operands, v) != end.operands.end();
      if (here && condition(block, v, c) == Form::first_iteration) out.emplace_back(v, Form::first_iteration);
    }
    return out;
  }

  /// Whether it is noted where a loop around it starts that a block adds something to a cell.
  bool covered(const Block& block, const Value* v, const Cell& c) {
    for (const Block* at = &block; at != c.home && at && at->parent; at = at->parent->parent) {
      const Op* fun = at->parent;
      if (!fun->is(Opcode::fun_) || !loops_.contains(fun)) continue;
      const Block* around = fun->parent;
      const Op* const start = end(*around);
      if (start && start->is(Opcode::jump_) && start->operands[0]->def == fun &&
          condition(*around, v, c) == Form::first_iteration)
        return true;
    }
    return false;
  }

  void rewrite(Builder& b, const Block& block, Op* op, Masks& masks, Contributions& contributions) {
    const auto keep = [&](Op* o) { b.block()->ops.push_back(o); };
    if (op->is(Opcode::ref_get_) && derived_.contains(op->result())) {
      keep(op);
      const Value* v = op->operands[0];
      Cell& c = *cell(v);
      if (c.marked || hands_on_marks_.contains(v)) normal_.insert(op->result());
      if (c.flow == Flow::never) masks[op->result()] = {b.boolean(false)};
      if (guarded(c) && !c.whole)
        masks[op->result()] = c.marked ? Masked{nullptr, true, true} : condition_of_cell(b, block, v, c, contributions[v]);
      return;
    }
    for (Block* inside : op->blocks) ir::walk(inside, [&](Op* inner) { exact_operands(b, inner, masks); });
    if (adds(*op)) return rewrite_addition(b, block, op, masks, contributions);
    if (op->is(Opcode::push_) && marked_tapes_.contains(op->integer)) {
      op->operands[0] = marked(b, op->operands[0], masks);
      return keep(op);
    }
    if (op->is(Opcode::pop_) && marked_tapes_.contains(op->integer)) {
      keep(op);
      normal_.insert(op->result());
      masks[op->result()] = {nullptr, true, true};
      return;
    }
    bool is_derived = false, never = !op->results.empty();
    for (const Value* v : op->results) {
      is_derived |= derived_.contains(v);
      never &= operand(v).flow == Flow::never;
    }
    if (!is_derived || never) {
      exact_operands(b, op, masks);
      keep(op);
      if (is_derived && op->results.size() == 1 && op->result()->type.is_float_element())
        masks[op->result()] = {b.boolean(false), false};
      return;
    }
    if (op->is(Opcode::select_)) {
      // Asked for first: an operand that is made exact becomes another value.
      Value* const condition = condition_of_select(b, *op, masks);
      exact_operands(b, op, masks);
      keep(op);
      if (condition) masks[op->result()] = {condition};
      return;
    }
    if (op->is(Opcode::set_) && operand(op->result()).by_element && conditional(operand(op->result()).flow)) {
      for (Value** v : {&op->operands.front(), &op->operands.back()}) *v = marked(b, *v, masks);
      keep(op);
      normal_.insert(op->result());
      masks[op->result()] = {nullptr, true, true};
      return;
    }
    // The other elements are marked already. To add 0 to all of them would go through the array in each iteration.
    if (op->is(Opcode::set_) && normal_.contains(op->operands.front())) {
      if (!is_zero(op->operands.back())) op->operands.back() = marked(b, op->operands.back(), masks);
      keep(op);
      normal_.insert(op->result());
      if (masks.contains(op->operands.front())) masks[op->result()] = {nullptr, true, true};
      return;
    }
    const Kind kind = kind_of(*op);
    const bool moves = (kind == Kind::moves && !ir::is_einsum(op->code)) ||
                       op->is(Opcode::broadcast_, Opcode::cast_, Opcode::cast_like_);
    if (moves && normal_.contains(op->operands[0])) {
      keep(op);
      normal_.insert(op->result());
      if (masks.contains(op->operands[0])) masks[op->result()] = {nullptr, true, true};
      return;
    }
    Value* condition = nullptr;
    bool first = true, exact = true;
    for (Value* v : data_of(*op)) {
      if (!derived_.contains(v)) continue;
      Value* const one = condition_of(b, v, masks);
      exact &= !one || masks[v].exact;
      condition = first ? one : any(b, condition, one);
      first = false;
    }
    if (condition && condition->type.is_tensor() && (kind == Kind::moves || kind == Kind::sums))
      condition = moved(b, *op, kind, condition);
    if (kind == Kind::other || kind == Kind::sums || !condition) {
      exact_operands(b, op, masks);
      exact = true;
    }
    keep(op);
    if (!condition || (kind == Kind::other && condition->type.is_tensor()) || op->results.size() != 1) return;
    masks[op->result()] = {condition, kind != Kind::product ? exact : exact && !is_product(*op)};
  }

  /// The condition of an operand that an operation moves or sums: of a sum, whether it holds of any that is added.
  static Value* moved(Builder& b, const Op& op, Kind kind, Value* condition) {
    std::vector<Value*> operands = op.operands;
    Value*& place = operands[static_cast<std::size_t>(std::ranges::find(operands, data_of(op)[0]) - operands.begin())];
    const auto of = [&](Value* v) {
      place = v;
      return b.emit(op.code, operands, op.integer, {}, op.text);
    };
    if (kind == Kind::moves) return of(condition);
    Value* const number = of(b.emit(Opcode::cast_, {condition}, static_cast<std::int64_t>(place->type.element())));
    return b.emit(Opcode::ne_, {number, b.zero_like(number)});
  }

  /// Where something flows to a value; null: everywhere.
  static Value* condition_of(Builder& b, Value* v, Masks& masks) {
    const auto m = masks.find(v);
    if (m == masks.end()) return nullptr;
    if (m->second.marked && !m->second.condition) m->second.condition = something(b, v);
    return m->second.condition;
  }

  void exact_operands(Builder& b, Op* op, const Masks& masks) {
    for (Value*& v : op->operands) {
      const auto m = masks.find(v);
      if (m == masks.end() || m->second.exact) continue;
      // Later operations ask for conditions, too: the chosen value keeps what is known of the original one.
      const Derived known = derived_[v];
      v = chosen(b, m->second.condition, v);
      derived_[v] = known;
    }
  }

  Value* condition_of_select(Builder& b, const Op& op, Masks& masks) {
    Value* const c = op.operands[0];
    const auto side = [&](std::size_t i) { return condition_of(b, op.operands[i], masks); };
    Value *const yes = side(1), *const no = side(2);
    const auto otherwise = [&] { return b.emit(Opcode::lnot_, {c}); };
    if (is_zero(op.operands[1])) return all(b, otherwise(), no);
    if (is_zero(op.operands[2])) return all(b, c, yes);
    return yes || no ? any(b, all(b, c, yes), all(b, otherwise(), no)) : nullptr;
  }

  void rewrite_addition(Builder& b, const Block& block, Op* op, Masks& masks, Contributions& contributions) {
    if (adds_nothing(*op)) return;
    Value* const to = op->operands[0];
    Cell* const c = cell(to);
    std::vector<Value*> given;
    for (std::size_t i = 1; i < op->operands.size(); ++i)
      if (derived_.contains(op->operands[i])) given.push_back(op->operands[i]);
    if (std::ranges::any_of(given, [&](const Value* v) { return operand(v).flow == Flow::never; })) return;
    const bool part = adds_to_part(*op), whole = op->is(Opcode::ref_add_);
    if (c && c->marked && !covered(block, to, *c)) {
      if (part || whole) {
        op->operands.back() = marked(b, op->operands.back(), masks);
      } else {
        Value* const condition = given.size() == 1 ? condition_of(b, given[0], masks) : nullptr;
        note(b, to, condition && condition->type.is_scalar() ? condition : nullptr);
      }
    }
    Value* condition = nullptr;
    if (c && !c->marked && guarded(*c) && given.size() == 1) condition = condition_of(b, given[0], masks);
    if (!part && !whole && condition && condition->type.is_tensor()) condition = nullptr;
    const bool handed_on = condition && whole && own(to) && holds_one(*c);
    if (!handed_on) exact_operands(b, op, masks);
    b.block()->ops.push_back(op);
    if (c && !c->marked && whole && own(to) && to->type.content().is_tensor() && holds_one(*c) &&
        normal_.contains(op->operands[1])) {
      to->def->integer = ir::as_minus_zero;
      hands_on_marks_.insert(to);
    }
    // Of the cell's own block the condition is seen where it is read.
    if (c && c->home == &block && own(to)) contributions[to].push_back({condition, !handed_on || masks[given[0]].exact});
  }

  /// Whether a cell that its block makes is the name of one value there.
  bool holds_one(const Cell& c) const {
    return !c.outside && !c.whole && std::ranges::count_if(c.uses, [](const Op* use) { return adds(*use); }) == 1 &&
           std::ranges::all_of(c.uses, [](const Op* use) { return adds(*use) || use->is(Opcode::ref_get_); });
  }

  /// Whether anything has been added to a cell, where it is read.
  Masked condition_of_cell(Builder& b, const Block& block, const Value* v, Cell& c, const std::vector<Masked>& parts) {
    const Form form = condition(block, v, c);
    Value* total = nullptr;
    bool first = true, exact = true;
    const auto join = [&](Value* one) {
      total = first ? one : any(b, total, one);
      first = false;
    };
    for (const Masked& one : parts) join(one.condition), exact &= one.exact;
    if (form == Form::unseen) {
      join(nullptr);
    } else if (form != Form::never) {
      join(materialise(b, block, form));
    }
    return {total, exact};
  }

  ir::Module& module_;
  std::vector<Value*> marked_;
  std::unordered_set<std::int64_t> marked_tapes_;  ///< of what is marked
  std::unordered_set<const Value*> hands_on_marks_;  ///< cells that hold one value, which is marked
  std::unordered_set<const Value*> normal_;  ///< values that are -0 only where nothing flows
};

}  // namespace

MarkedCells guard_zeros(ir::Function& unit, bool again) {
  return !unit.cps && in_cps(unit) ? FlowGuard(unit, again).run() : MarkedCells{};
}

}  // namespace lantern::passes
