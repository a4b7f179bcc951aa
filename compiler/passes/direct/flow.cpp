// Where nothing may flow, backward parts written anew: products with adjoints are kept by selects.
#include "lantern/compiler/passes/direct/flow.hpp"

#include "lantern/compiler/passes/direct/flow_analysis.hpp"
#include "lantern/compiler/passes/direct/unwind.hpp"

namespace lantern::passes {

namespace {

using namespace flow;
using ir::Builder;

class Guard : Flows {
 public:
  explicit Guard(ir::Function& unit) : Flows(unit), module_(*unit.module) {}

  void run() {
    find_derived();
    find_wanted();
    find_recurrent();
    if (!find_flows()) return;
    find_companions();
    for (Block* b : blocks_) rewrite(b);
  }

 private:
  /// What is known of such a value when it is written.
  struct Masked {
    Value* condition = nullptr;  ///< null: always
    bool exact = true;           ///< 0 where the condition does not hold
    Value* count = nullptr;      ///< of an array: the number of additions to each element, not 0 where it holds
  };
  using Masks = std::unordered_map<const Value*, Masked>;

  /// Cells that have a number beside them, which counts additions: those asked for, and the parameters through which they are
  /// added to. Beside an array there is one for each element.
  void find_companions() {
    std::vector<Value*> todo;
    for (Value* v : order_) {
      Cell& c = cells_[v];
      if (!own(v) || !guarded(c)) continue;
      if (v->type.content().is_tensor() && !by_elements(v, c)) continue;
      // A number that goes through a loop keeps it from running in lanes, and one that calls hand on costs time in each call:
      // only a factor that may be infinite is worth it.
      if (!c.wanted_pole && goes_around(c)) continue;
      if (condition(*c.home, v, c) == Form::unseen || adds_by_element(v, c)) todo.push_back(v);
    }
    std::vector<Block*> extended;
    std::unordered_set<const Value*> beside(todo.begin(), todo.end());
    for (std::size_t k = 0; k < todo.size(); ++k) {
      Value* const v = todo[k];
      Cell& c = cells_[v];
      if (own(v)) {
        Builder b = Builder::after(v->def);
        c.companion = b.op(Opcode::ref_new_, {v->def->operands[0]}, {v->type})->result();
      } else {
        c.companion = module_.add_param(c.home, v->type);
        extended.push_back(c.home);
      }
      counted_.push_back(v);
      for (Op* use : c.uses) {
        const bool jump = use->is(Opcode::jump_);
        if ((!jump && !use->is(Opcode::call_)) || condition_at(*use, v) != Form::unseen) continue;
        for (std::size_t i = jump ? 1 : 0; i < use->operands.size(); ++i) {
          if (use->operands[i] != v) continue;
          const std::vector<Value*> all = parameters(*use, i);
          if (std::ranges::none_of(all, [&](Value* p) { return conditional(cells_[p].flow); })) continue;
          for (Value* p : all)
            if (beside.insert(p).second) todo.push_back(p);
        }
      }
    }
    hand_on_companions(extended);
  }

  /// The cell beside a parameter is the next parameter, and so are their arguments.
  void hand_on_companions(const std::vector<Block*>& extended) {
    for (Block* block : std::unordered_set<Block*>(extended.begin(), extended.end())) {
      std::vector<Value*> params;
      std::vector<ir::Type> types;
      for (Value* p : block->params) {
        if (params.size() == block->params.size()) break;
        for (Value* const q : {p, is_cell(p) && cell(p) ? cell(p)->companion : nullptr}) {
          if (!q) continue;
          q->index = static_cast<std::uint32_t>(params.size());
          params.push_back(q);
          types.push_back(q->type);
        }
      }
      block->params = std::move(params);
      if (!block->parent) continue;
      Value* const fun = block->parent->results[0];
      fun->type = ir::Type::cont(types);
      for (Value* k : classes_.of(fun)) k->type = fun->type;
    }
    for (Block* b : blocks_) {
      Op* const op = end(*b);
      const Block* const to = op ? entered_by(*op) : nullptr;
      if (!to || std::ranges::find(extended, to) == extended.end()) continue;
      auto given = op->operands.begin();
      std::vector<Value*> operands;
      if (op->is(Opcode::jump_)) operands.push_back(*given++);
      for (const Value* p : to->params) {
        if (!is_companion(*to, *p)) {
          operands.push_back(*given++);
          continue;
        }
        const Cell* c = cell(operands.back());
        Value* const primal = operands[operands.size() - 2];
        operands.push_back(c && c->companion ? c->companion
                                             : Builder::before(op).op(Opcode::ref_new_, {primal}, {p->type})->result());
      }
      op->operands = std::move(operands);
    }
  }
  /// The block that a jump or a call runs, if that is known.
  const Block* entered_by(const Op& op) const {
    if (op.is(Opcode::call_)) return op.callee->body;
    if (!op.is(Opcode::jump_)) return nullptr;
    const Op* fun = op.operands[0]->def;
    for (const Value* k : classes_.of(op.operands[0]))
      if (!fun) fun = k->def;
    return fun && fun->is(Opcode::fun_) ? fun->blocks[0] : nullptr;
  }
  bool is_companion(const Block& block, const Value& p) {
    if (p.index == 0) return false;
    const Cell* c = cell(block.params[p.index - 1]);
    return c && c->companion == &p;
  }

  /// Whether a loop takes the cell from iteration to iteration, or calls take it on.
  bool goes_around(const Cell& c) const {
    return std::ranges::any_of(c.uses, [&](const Op* use) {
      return use->is(Opcode::call_) ||
             (use->is(Opcode::jump_) && (loops_.contains(use->operands[0]->def) || !classes_.of(use->operands[0]).empty()));
    });
  }
  /// At a jump or call, of a cell that it hands on.
  Form condition_at(const Op& jump, const Value* v) { return condition(*jump.parent, v, *cell(v)); }

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

  static Value* any(Builder& b, Value* x, Value* y) {
    if (!x || !y) return nullptr;
    if (x == y) return x;
    if (!(x->type == y->type) && (x->type.is_tensor() != y->type.is_tensor())) return nullptr;
    return b.emit(Opcode::lor_, {x, y});
  }
  static Value* all(Builder& b, Value* x, Value* y) {
    if (!x || x == y) return y;
    if (!y) return x;
    if (x->type.is_tensor() != y->type.is_tensor()) return x->type.is_tensor() ? x : y;
    return b.emit(Opcode::land_, {x, y});
  }
  static Value* chosen(Builder& b, Value* condition, Value* v) {
    return b.emit(Opcode::select_, {condition, v, b.zero_like(v)});
  }

  void rewrite(Block* block) {
    if (!end(*block)) return;
    const std::size_t t = place_of_end(*block);
    std::vector<Op*> after(block->ops.begin() + static_cast<std::ptrdiff_t>(t) + 1, block->ops.end());
    block->ops.resize(t + 1);
    Builder b(module_, block);
    Masks masks;
    std::unordered_map<const Value*, std::vector<Masked>> contributions;  // to cells of this block
    if (!after.empty()) b.loc = after[0]->loc;
    note_passed(b, *block);
    for (Op* op : after) {
      b.loc = op->loc;
      rewrite(b, *block, op, masks, contributions);
    }
  }

  /// What the end of a block adds to cells with a number beside them.
  void note_passed(Builder& b, const Block& block) {
    const Op& end = *this->end(block);
    std::unordered_set<const Value*> done;
    for (const auto& [v, form] : conditions_of(block)) {
      add_count(b, cells_[v], one_where(b, materialise(b, block, form), element_of(v)));
      done.insert(v);
    }
    for (std::size_t i = end.is(Opcode::jump_) ? 1 : 0; i < end.operands.size(); ++i) {
      const Value* v = end.operands[i];
      if (!is_cell(v) || done.contains(v)) continue;
      const Cell* c = cell(v);
      if (!c || !c->companion || covered(block, v, *c)) continue;
      const Value* p = parameter(end, i);
      const Flow f = p ? cells_[const_cast<Value*>(p)].flow : of_argument(end.operands[0], i - 1);
      if (f == Flow::never) continue;
      if (conditional(f) && std::ranges::any_of(parameters(end, i), [&](Value* to) { return cells_[to].companion; }))
        continue;  // counted there
      add_count(b, *c, b.number(1, element_of(v)));
    }
  }

  static ir::Type element_of(const Value* cell) { return ir::Type(cell->type.content().element()); }
  /// 1 where a condition holds, else 0: a number or an array of them.
  static Value* one_where(Builder& b, Value* condition, ir::Type element) {
    Value* const one = b.number(1, element);
    if (condition->type.is_scalar()) return b.emit(Opcode::select_, {condition, one, b.number(0, element)});
    return b.emit(Opcode::cast_, {condition}, static_cast<std::int64_t>(element.element()));
  }
  /// To a number beside a cell; a number to each element of an array beside one.
  static void add_count(Builder& b, const Cell& c, Value* count) {
    Value* const beside = c.companion;
    if (beside->type.content().is_tensor() && count->type.is_scalar())
      count = b.emit(Opcode::broadcast_, {count, shape_of_cell(beside)});
    b.op(Opcode::ref_add_, {beside, count});
  }
  /// What a cell is the adjoint of.
  static Value* shape_of_cell(const Value* companion) {
    if (companion->def) return companion->def->operands[0];
    return companion->block->params[companion->index - 2];
  }

  /// Cells with a number beside them to which a loop that starts here adds unless it has no iteration.
  std::vector<std::pair<Value*, Form>> conditions_of(const Block& block) {
    std::vector<std::pair<Value*, Form>> out;
    const Op& end = *this->end(block);
    if (!end.is(Opcode::jump_) || !end.operands[0]->def || !loops_.contains(end.operands[0]->def)) return out;
    for (Value* v : counted_) {
      Cell& c = cells_[v];
      if (covered(block, v, c)) continue;
      const bool here = c.nested.contains(&block) || std::ranges::find(end.operands, v) != end.operands.end();
      if (here && condition(block, v, c) == Form::first_iteration) out.emplace_back(v, Form::first_iteration);
    }
    return out;
  }

  /// Whether what a block adds to a cell has been counted where a loop around it starts.
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

  void rewrite(Builder& b, const Block& block, Op* op, Masks& masks,
               std::unordered_map<const Value*, std::vector<Masked>>& contributions) {
    const auto keep = [&](Op* o) { b.block()->ops.push_back(o); };
    if (op->is(Opcode::ref_get_) && derived_.contains(op->result())) {
      keep(op);
      const Value* v = op->operands[0];
      Cell& c = *cell(v);
      if (!guarded(c)) return;
      masks[op->result()] = condition_of_cell(b, block, v, c, contributions[v]);
      return;
    }
    if (adds(*op)) return rewrite_addition(b, block, op, masks, contributions);
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
      exact_operands(b, op, masks);
      Value* const condition = condition_of_select(b, *op, masks);
      keep(op);
      if (condition) masks[op->result()] = {condition};
      return;
    }
    if (op->is(Opcode::set_) && operand(op->result()).by_element && conditional(operand(op->result()).flow)) {
      const Masked rest = masks[op->operands[0]], element = masks[op->operands.back()];
      exact_operands(b, op, masks);
      keep(op);
      masks[op->result()] = replaced(b, *op, rest, element);
      return;
    }
    const Kind kind = kind_of(*op);
    Value *condition = nullptr, *count = nullptr;
    bool first = true, exact = true;
    for (Value* v : data_of(*op)) {
      if (!derived_.contains(v)) continue;
      const auto m = masks.find(v);
      Value* const one = m == masks.end() ? nullptr : m->second.condition;
      exact &= m == masks.end() || m->second.exact;
      condition = first ? one : any(b, condition, one);
      count = first && one ? m->second.count : nullptr;
      first = false;
    }
    if (kind == Kind::moves && condition && condition->type.is_tensor()) {
      std::vector<Value*> operands = op->operands;
      operands[0] = count ? count : condition;
      Value* const moved = b.emit(op->code, operands, op->integer);
      condition = count ? nonzero(b, moved) : moved;
      if (count) count = moved;
    }
    if (kind == Kind::other || !condition) {
      exact_operands(b, op, masks);
      exact = true;
    }
    keep(op);
    if (!condition || (kind == Kind::other && condition->type.is_tensor()) || op->results.size() != 1) return;
    masks[op->result()] = {condition, kind != Kind::product ? exact : exact && !is_product(*op), count};
  }

  /// The mask of an array after one element was replaced.
  Masked replaced(Builder& b, const Op& set, const Masked& rest, const Masked& element) {
    std::vector<Value*> operands = set.operands;
    Value* const array = operands[0];
    const ir::Type type(array->type.element());
    const auto number = [&](const Value* v, const Masked& m) {
      return m.condition ? one_where(b, m.condition, type) : b.number(part(v).flow == Flow::never ? 0 : 1, type);
    };
    Value* const others = rest.count ? rest.count : number(array, rest);
    operands[0] = others->type.is_tensor() ? others : b.emit(Opcode::broadcast_, {others, array});
    operands.back() = number(operands.back(), element);
    Value* const count = b.emit(Opcode::set_, operands);
    return {nonzero(b, count), true, count};
  }
  static Value* nonzero(Builder& b, Value* count) { return b.emit(Opcode::ne_, {count, b.zero_like(count)}); }

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

  Value* condition_of_select(Builder& b, const Op& op, const Masks& masks) {
    Value* const c = op.operands[0];
    const auto side = [&](std::size_t i) {
      const auto m = masks.find(op.operands[i]);
      return m == masks.end() ? nullptr : m->second.condition;
    };
    Value *const yes = side(1), *const no = side(2);
    const auto otherwise = [&] { return b.emit(Opcode::lnot_, {c}); };
    if (is_zero(op.operands[1])) return all(b, otherwise(), no);
    if (is_zero(op.operands[2])) return all(b, c, yes);
    return yes || no ? any(b, all(b, c, yes), all(b, otherwise(), no)) : nullptr;
  }

  void rewrite_addition(Builder& b, const Block& block, Op* op, const Masks& masks,
                        std::unordered_map<const Value*, std::vector<Masked>>& contributions) {
    const Value* to = op->operands[0];
    Cell* const c = cell(to);
    bool never = false;
    Value *condition = nullptr, *count = nullptr;
    bool first = true;
    for (std::size_t i = 1; i < op->operands.size(); ++i) {
      const Value* v = op->operands[i];
      if (!derived_.contains(v)) continue;
      never |= operand(v).flow == Flow::never;
      const auto m = masks.find(v);
      Value* const one = m == masks.end() ? nullptr : m->second.condition;
      condition = first ? one : nullptr;
      // What flows where something flows into another cell is that cell's own number: a loop hands it on unchanged.
      count = first && one ? m->second.count : nullptr;
      first = false;
    }
    if (never) return;  // nothing is added
    exact_operands(b, op, masks);
    const bool tensor = to->type.content().is_tensor(), part = adds_to_part(*op);
    if (op->is(Opcode::ref_acc_) && !part && condition && condition->type.is_tensor()) condition = count = nullptr;
    b.block()->ops.push_back(op);
    if (!c) return;
    const bool beside = c->companion && !covered(block, to, *c);
    // Of the cell's own block the condition is seen where it is read.
    const bool seen = c->home == &block && own(to) && !(tensor && beside && (part || (condition && condition->type.is_tensor())));
    if (seen) contributions[to].push_back({condition, true});
    if (!beside || seen) return;
    const ir::Type element = element_of(to);
    if (!count && condition && (tensor || condition->type.is_scalar())) count = one_where(b, condition, element);
    if (!count) count = b.number(1, element);
    if (!part) return add_count(b, *c, count);
    std::vector<Value*> operands = op->operands;
    operands[0] = c->companion;
    if (count->type.is_scalar() && operands.back()->type.is_tensor())
      count = b.emit(Opcode::broadcast_, {count, operands.back()});
    operands.back() = count;
    Op* const counted = b.op(Opcode::ref_acc_, operands);
    counted->integer = op->integer;
  }

  /// Whether anything has been added to a cell, where it is read.
  Masked condition_of_cell(Builder& b, const Block& block, const Value* v, Cell& c, const std::vector<Masked>& parts) {
    const Form form = condition(block, v, c);
    Value* total = nullptr;
    bool first = true;
    const auto join = [&](Value* one) {
      total = first ? one : any(b, total, one);
      first = false;
    };
    for (const Masked& m : parts) join(m.condition);
    Value* count = nullptr;
    if (c.companion) {
      count = b.op(Opcode::ref_get_, {c.companion}, {v->type.content()})->result();
      join(nonzero(b, count));
    } else if (form == Form::unseen) {
      join(nullptr);
    } else if (form != Form::never) {
      join(materialise(b, block, form));
    }
    return {total, true, parts.empty() ? count : nullptr};
  }

  ir::Module& module_;
  std::vector<Value*> counted_;                         ///< cells with a number beside them
};

}  // namespace

void guard_zeros(ir::Function& unit) {
  if (!unit.cps && in_cps(unit)) Guard(unit).run();
}

}  // namespace lantern::passes
