// Flow of adjoints through cells: found by a fixpoint over cells and parameters, then written into backward parts.
#include "lantern/compiler/passes/direct/flow.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

using ir::Block;
using ir::Builder;
using ir::Op;
using ir::Opcode;
using ir::Value;

/// Whether something is added to a cell. open: not known yet; trips: unless a loop ends before.
enum class Flow : std::uint8_t { open, never, always, trips, sometimes };

/// Of two parts that run one after the other.
Flow both(Flow a, Flow b) {
  if (a == Flow::always || b == Flow::always) return Flow::always;
  return std::max(a, b);
}
/// Of two parts of which one runs.
Flow either(Flow a, Flow b) {
  if (a == Flow::open || a == b) return b;
  if (b == Flow::open) return a;
  return (a == Flow::always && b == Flow::trips) || (a == Flow::trips && b == Flow::always) ? Flow::trips
                                                                                          : Flow::sometimes;
}
/// Of a part that runs unless a loop ends before.
Flow unless_ended(Flow trip) { return trip == Flow::always ? Flow::trips : trip; }
bool conditional(Flow f) { return f == Flow::trips || f == Flow::sometimes; }

bool is_cell(const Value* v) { return v->type.is_ref(); }
bool adds(const Op& op) { return op.is(Opcode::ref_add_) || op.is(Opcode::ref_acc_); }

/// A tensor or number all of whose elements are the constant 0.
bool is_zero(const Value* v) {
  const Op* op = v->def;
  if (op && op->is(Opcode::zeros_like_)) return true;
  if (op && (op->is(Opcode::fill_) || op->is(Opcode::broadcast_))) op = op->operands[0]->def;
  return op && op->is(Opcode::constant_) && op->number == 0 && op->result()->type.is_float_element();
}

/// What an operation does to an adjoint.
enum class Kind : std::uint8_t { keeps_zeros, product, other };
Kind kind_of(const Op& op) {
  switch (op.code) {
    case Opcode::neg_:
    case Opcode::add_:
    case Opcode::sub_:
    case Opcode::select_:
    case Opcode::cast_:
    case Opcode::cast_like_:
    case Opcode::ref_get_:
      return Kind::keeps_zeros;
    default:
      return ir::info(op.code).elementwise ? Kind::product : Kind::other;
  }
}

/// The operation that runs the rest of the program: what stands behind it in its block is the backward part. The number of
/// operations where there is none.
std::size_t end_of(const Block& block) {
  const auto ends = [](const Op* op) {
    if (op->is(Opcode::jump_) || op->is(Opcode::halt_)) return true;
    if (op->is(Opcode::call_)) return op->callee->cps;
    return op->is(Opcode::branch_) && op->results.empty() && end_of(*op->blocks[0]) < op->blocks[0]->ops.size();
  };
  return static_cast<std::size_t>(std::ranges::find_if(block.ops, ends) - block.ops.begin());
}

/// Which partial derivatives may be infinite where the arguments are not: such a value is near.
bool near_pole(const Value* v, int budget) {
  const Op* op = v->def;
  if (!op || budget == 0) return false;
  switch (op->code) {
    case Opcode::div_:
    case Opcode::over_:
    case Opcode::pow_:
    case Opcode::log_:
    case Opcode::log2_:
    case Opcode::log10_:
    case Opcode::log1p_:
    case Opcode::polygamma_:
      return true;
    default:
      break;
  }
  if (!ir::info(op->code).elementwise) return false;
  return std::ranges::any_of(op->operands, [&](const Value* x) { return near_pole(x, budget - 1); });
}

class Guard {
 public:
  explicit Guard(ir::Function& unit) : module_(*unit.module) { collect(unit); }

  void run() {
    if (!find_flows()) return;
    find_wanted();
    find_companions();
    for (Block* b : blocks_) rewrite(b);
  }

 private:
  struct Cell {
    std::vector<Op*> uses;
    Block* home = nullptr;
    Flow flow = Flow::open;
    bool outside = false;      ///< used in other blocks than its own
    bool wanted = false;       ///< a product is made of what it holds
    bool wanted_pole = false;  ///< with a factor that may be infinite
    Value* companion = nullptr;
    /// The blocks below its own that hold uses, by the block around them.
    std::unordered_map<const Block*, std::vector<Block*>> nested;
    std::unordered_map<const Block*, std::vector<Op*>> direct;
  };
  /// A value of a backward part that is made of adjoints.
  struct Derived {
    Flow flow = Flow::open;
    bool by_element = false;  ///< the condition is a tensor's
  };
  /// What is known of such a value when it is written.
  struct Masked {
    Value* condition = nullptr;  ///< null: always
    bool exact = true;           ///< 0 where the condition does not hold
  };
  using Masks = std::unordered_map<const Value*, Masked>;

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
    if (op->is(Opcode::jump_)) {
      Op* const fun = op->operands[0]->def;
      // A loop is a continuation that is called inside itself.
      if (fun)
        for (const Block* at = b; at && at != fun->parent; at = at->parent ? at->parent->parent : nullptr)
          if (at == fun->blocks[0]) loops_.insert(fun);
    }
    if (op->is(Opcode::call_) && op->callee->cps)
      continuations_[op->callee->body->params.back()].push_back(op->operands.back());
    for (std::size_t i = 0; i < op->operands.size(); ++i)
      if (op->operands[i]->type.is_cont() && !(op->is(Opcode::jump_) && i == 0)) handed_on_.insert(op->operands[i]);
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

  /// Whether anything is not added to always.
  bool find_flows() {
    for (Block* b : blocks_) {
      std::vector<Op*> ops;
      for (std::size_t i = place_of_end(*b); i < b->ops.size(); ++i) {
        Op* const op = b->ops[i];
        const bool read = op->is(Opcode::ref_get_) && own(op->operands[0]);
        const bool made = !op->is(Opcode::ref_get_) && !op->results.empty() &&
                          std::ranges::any_of(op->operands, [&](Value* v) { return derived_.contains(v); });
        if (!read && !made) continue;
        for (const Value* v : op->results) derived_[v];
        ops.push_back(op);
      }
      if (!ops.empty()) backward_.emplace_back(b, std::move(ops));
    }
    bool changed = true, some = false;
    while (changed) {
      changed = some = false;
      for (const auto& [b, ops] : backward_)
        for (Op* op : ops) {
          const Derived now = derive(*op);
          for (const Value* v : op->results) {
            Derived& d = derived_[v];
            changed |= d.flow != now.flow || d.by_element != now.by_element;
            d = now;
            some |= now.flow != Flow::always;
          }
        }
      for (Value* v : order_) {
        Cell& c = cells_[v];
        const Flow now = v->def ? in(c.home, v, c) : of_body(c.home->parent, c.home, v, c);
        changed |= now != c.flow;
        c.flow = now;
      }
    }
    return some;
  }

  Derived operand(const Value* v) const {
    const auto found = derived_.find(v);
    return found == derived_.end() ? Derived{Flow::always} : found->second;
  }

  Derived derive(const Op& op) {
    if (op.is(Opcode::ref_get_)) return {cell(op.operands[0])->flow};
    if (op.is(Opcode::select_)) {
      const auto side = [&](std::size_t i) {
        return is_zero(op.operands[i]) ? Derived{Flow::never} : operand(op.operands[i]);
      };
      const Derived a = side(1), b = side(2);
      const Flow flow = either(a.flow, b.flow);
      return {flow == Flow::trips ? Flow::sometimes : flow,
              a.by_element || b.by_element || op.operands[0]->type.is_tensor()};
    }
    Derived all{Flow::open};
    bool any = false;
    for (const Value* v : op.operands) {
      const auto found = derived_.find(v);
      if (found == derived_.end()) continue;
      all.flow = any ? both(all.flow, found->second.flow) : found->second.flow;
      all.by_element |= found->second.by_element;
      any = true;
    }
    // What mixes elements knows nothing of conditions of single ones.
    if (kind_of(op) == Kind::other && all.by_element && conditional(all.flow)) return {Flow::always};
    return all;
  }

  /// Of what is added by an operation.
  Flow added(const Op& op, const Cell& to) const {
    Flow f = Flow::open;
    bool any = false;
    for (std::size_t i = 1; i < op.operands.size(); ++i) {
      const auto found = derived_.find(op.operands[i]);
      if (found == derived_.end()) continue;
      Flow one = found->second.flow;
      if (found->second.by_element && conditional(one) && (to.outside || op.is(Opcode::ref_acc_))) one = Flow::always;
      f = any ? both(f, one) : one;
      any = true;
    }
    return any ? f : Flow::always;
  }

  Flow in(const Block* b, const Value* v, const Cell& c) {
    Flow f = Flow::never;
    if (const auto direct = c.direct.find(b); direct != c.direct.end())
      for (const Op* use : direct->second) {
        if (adds(*use) && use->operands[0] == v) f = both(f, added(*use, c));
        else if (use->is(Opcode::jump_) || use->is(Opcode::call_)) f = both(f, passed(*use, v));
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
    const auto [trip, exit] = of_loop(*body, v, c);
    if (exit == Flow::always) return Flow::always;
    if (trip == Flow::never || trip == Flow::open) return exit == Flow::open ? trip : exit;
    return both(unless_ended(trip), exit == Flow::never ? Flow::open : exit);
  }
  /// Of the trips of a loop and of what follows it.
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
      if (jump) f = both(f, of_argument(op.operands[0], i - 1, 0));
      else f = both(f, surely(cells_[op.callee->body->params[i]].flow));
    }
    return f;
  }
  static Flow surely(Flow f) { return conditional(f) ? Flow::always : f; }
  Flow of_argument(const Value* continuation, std::size_t i, int depth) {
    if (const Op* fun = continuation->def) {
      if (!fun->is(Opcode::fun_)) return Flow::always;
      return cells_[fun->blocks[0]->params[i]].flow;
    }
    // That of a function: one of those it is called with.
    const auto all = continuations_.find(continuation);
    if (all == continuations_.end() || depth > 8) return Flow::always;
    Flow f = Flow::open;
    for (const Value* k : all->second)
      if (k != continuation) f = either(f, of_argument(k, i, depth + 1));
    return surely(f);
  }

  // ---- where it matters

  void find_wanted() {
    bool changed = true;
    while (changed) {
      changed = false;
      const auto want = [&](Cell& c, bool any, bool pole) {
        changed |= (any && !c.wanted) || (pole && !c.wanted_pole);
        c.wanted |= any;
        c.wanted_pole |= pole;
      };
      for (const auto& [b, ops] : backward_) {
        std::unordered_map<const Value*, std::pair<bool, bool>> needed;
        const auto need = [&](const Op& op, bool any, bool pole) {
          for (const Value* v : op.operands)
            if (derived_.contains(v)) {
              auto& n = needed[v];
              n.first |= any;
              n.second |= pole;
            }
        };
        for (std::size_t i = b->ops.size(), t = place_of_end(*b); i-- > t;) {
          Op& op = *b->ops[i];
          if (adds(op)) {
            if (Cell* to = cell(op.operands[0])) need(op, to->wanted, to->wanted_pole);
            continue;
          }
          bool any = false, pole = false, is_derived = false;
          for (const Value* v : op.results) {
            is_derived |= derived_.contains(v);
            any |= needed[v].first;
            pole |= needed[v].second;
          }
          if (!is_derived) continue;
          if (op.is(Opcode::ref_get_)) {
            want(*cell(op.operands[0]), any, pole);
            continue;
          }
          if (is_product(op)) {
            any = true;
            for (const Value* v : op.operands) pole |= !derived_.contains(v) && near_pole(v, 12);
          }
          need(op, any, pole);
        }
      }
      for (Block* b : blocks_) {
        if (!end(*b)) continue;
        const Op& op = *end(*b);
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
          if (!is_cell(op.operands[i])) continue;
          const Value* to = parameter(op, i);
          const Cell* inner = to ? cell(to) : nullptr;
          // What is wanted of an argument is wanted of the parameter, which is the same cell.
          if (const Cell* outer = cell(op.operands[i]); inner && outer)
            want(*cell(to), outer->wanted, outer->wanted_pole);
        }
      }
    }
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

  bool guarded(const Cell& c) const {
    return (c.flow == Flow::sometimes && c.wanted) || (c.flow == Flow::trips && c.wanted_pole);
  }

  // ---- conditions that a block sees, and numbers beside cells

  /// A condition under which the rest of the program, as a block runs it, adds to a cell; nothing where that takes a number
  /// beside the cell.
  enum class Form : std::uint8_t { never, branch, not_branch, first_trip, unseen };

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
      const auto [trip, exit] = of_loop(header, v, c);
      fits = inner.size() == 1 && inner[0] == &header && trip == Flow::always && exit == Flow::never;
    }
    for (std::size_t i = 1; i < end->operands.size(); ++i) {
      if (end->operands[i] != v) continue;
      const Value* p = header.params[i - 1];
      const auto [trip, exit] = of_loop(header, p, *cell(p));
      if (trip == Flow::never && exit == Flow::never) continue;
      fits &= trip == Flow::always && exit == Flow::never;
    }
    return fits ? Form::first_trip : Form::unseen;
  }

  bool header_is_plain(const Op& fun) {
    const Block& header = *fun.blocks[0];
    const std::size_t t = place_of_end(header);
    if (t > 8) return false;
    return std::all_of(header.ops.begin(), header.ops.begin() + static_cast<std::ptrdiff_t>(t), [](const Op* op) {
      return op->blocks.empty() && ir::info(op->code).effect == ir::Effect::none && !op->is(Opcode::fun_);
    });
  }

  /// Cells that have a number beside them: those asked for, and the parameters through which they are added to.
  void find_companions() {
    std::vector<Value*> todo;
    for (Value* v : order_) {
      Cell& c = cells_[v];
      if (!own(v) || !guarded(c)) continue;
      if (condition(*c.home, v, c) == Form::unseen) todo.push_back(v);
    }
    std::vector<Op*> extended;
    std::unordered_set<const Value*> beside(todo.begin(), todo.end());
    for (std::size_t k = 0; k < todo.size(); ++k) {
      Value* const v = todo[k];
      Cell& c = cells_[v];
      if (own(v)) {
        Builder b = Builder::after(v->def);
        c.companion = b.op(Opcode::ref_new_, {b.number(0)}, {ir::Type::ref(ir::F64)})->result();
      } else {
        Op* const fun = c.home->parent;
        module_.add_param(c.home, ir::F64);
        c.companion = module_.add_param(c.home, ir::Type::ref(ir::F64));
        extended.push_back(fun);
        parameters_of_[fun].push_back(v);
      }
      counted_.push_back(v);
      for (Op* use : c.uses) {
        if (!use->is(Opcode::jump_)) continue;
        if (condition_at(*use, v) != Form::unseen) continue;
        for (std::size_t i = 1; i < use->operands.size(); ++i) {
          if (use->operands[i] != v) continue;
          Value* const p = parameter(*use, i);
          if (p && conditional(cells_[p].flow) && !handed_on_.contains(use->operands[0]) && beside.insert(p).second)
            todo.push_back(p);
        }
      }
    }
    for (Op* fun : extended) {
      std::vector<ir::Type> types;
      for (const Value* p : fun->blocks[0]->params) types.push_back(p->type);
      fun->results[0]->type = ir::Type::cont(types);
    }
    for (Block* b : blocks_) {
      Op* const jump = end(*b);
      if (!jump || !jump->is(Opcode::jump_)) continue;
      const auto found = parameters_of_.find(jump->operands[0]->def);
      if (found == parameters_of_.end()) continue;
      for (const Value* p : found->second) {
        Builder before = Builder::before(jump);
        Value* const zero = before.number(0);
        const Value* argument = jump->operands[p->index + 1];
        const Cell* c = cell(argument);
        Value* beside_argument = c ? c->companion : nullptr;
        if (!beside_argument) beside_argument = before.op(Opcode::ref_new_, {zero}, {ir::Type::ref(ir::F64)})->result();
        jump->operands.push_back(zero);
        jump->operands.push_back(beside_argument);
      }
    }
  }
  /// At a jump, of a cell that it hands on.
  Form condition_at(const Op& jump, const Value* v) { return condition(*jump.parent, v, *cell(v)); }

  // ---- backward parts, written anew

  /// The condition of a form, in a backward part.
  Value* written(Builder& b, const Block& block, Form form) {
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
      Value* const beside = cells_[v].companion;
      Value* const one = b.number(1);
      Value* const count = b.emit(Opcode::select_, {written(b, block, form), one, b.number(0)});
      b.op(Opcode::ref_add_, {beside, count});
      done.insert(v);
    }
    for (std::size_t i = end.is(Opcode::jump_) ? 1 : 0; i < end.operands.size(); ++i) {
      const Value* v = end.operands[i];
      if (!is_cell(v) || done.contains(v)) continue;
      const Cell* c = cell(v);
      if (!c || !c->companion || covered(block, v, *c)) continue;
      const Value* p = parameter(end, i);
      const Flow f = end.is(Opcode::call_) ? surely(cells_[end.callee->body->params[i]].flow)
                     : p                   ? cells_[const_cast<Value*>(p)].flow
                                           : of_argument(end.operands[0], i - 1, 0);
      if (f == Flow::never) continue;
      if (conditional(f) && p && cells_[const_cast<Value*>(p)].companion) continue;  // counted there
      b.op(Opcode::ref_add_, {c->companion, b.number(1)});
    }
  }

  /// Cells with a number beside them to which a loop that starts here adds unless it has no trip.
  std::vector<std::pair<Value*, Form>> conditions_of(const Block& block) {
    std::vector<std::pair<Value*, Form>> out;
    const Op& end = *this->end(block);
    if (!end.is(Opcode::jump_) || !end.operands[0]->def || !loops_.contains(end.operands[0]->def)) return out;
    for (Value* v : counted_) {
      Cell& c = cells_[v];
      if (covered(block, v, c)) continue;
      const bool here = c.nested.contains(&block) || std::ranges::find(end.operands, v) != end.operands.end();
      if (here && condition(block, v, c) == Form::first_trip) out.emplace_back(v, Form::first_trip);
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
          condition(*around, v, c) == Form::first_trip)
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
      Value* condition = condition_of_cell(b, block, v, c, contributions[v]);
      if (condition) masks[op->result()] = {condition, true};
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
      return keep(op);
    }
    if (op->is(Opcode::select_)) {
      exact_operands(b, op, masks);
      Value* const condition = condition_of_select(b, *op, masks);
      keep(op);
      if (condition) masks[op->result()] = {condition, true};
      return;
    }
    const Kind kind = kind_of(*op);
    Value* condition = nullptr;
    bool first = true, exact = true;
    for (Value* v : op->operands) {
      if (!derived_.contains(v)) continue;
      const auto m = masks.find(v);
      Value* const one = m == masks.end() ? nullptr : m->second.condition;
      exact &= m == masks.end() || m->second.exact;
      condition = first ? one : any(b, condition, one);
      first = false;
    }
    if (kind == Kind::other || !condition) {
      exact_operands(b, op, masks);
      exact = true;
    }
    keep(op);
    if (!condition || (kind == Kind::other && condition->type.is_tensor()) || op->results.size() != 1) return;
    masks[op->result()] = {condition, kind != Kind::product ? exact : exact && !is_product(*op)};
  }

  void exact_operands(Builder& b, Op* op, const Masks& masks) {
    for (Value*& v : op->operands) {
      const auto m = masks.find(v);
      if (m != masks.end() && !m->second.exact) v = chosen(b, m->second.condition, v);
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
    Value* condition = nullptr;
    bool first = true;
    for (std::size_t i = 1; i < op->operands.size(); ++i) {
      const Value* v = op->operands[i];
      if (!derived_.contains(v)) continue;
      never |= operand(v).flow == Flow::never;
      const auto m = masks.find(v);
      Value* const one = m == masks.end() ? nullptr : m->second.condition;
      condition = first ? one : nullptr;
      first = false;
    }
    if (never) return;  // nothing is added
    exact_operands(b, op, masks);
    if (op->is(Opcode::ref_acc_) && condition && condition->type.is_tensor()) condition = nullptr;
    b.block()->ops.push_back(op);
    if (!c) return;
    contributions[to].push_back({condition, true});
    if (!c->companion || covered(block, to, *c)) return;
    // Of the cell's own block the condition is seen where it is read.
    if (c->home == &block && own(to)) return;
    Value* count = b.number(1);
    if (condition && condition->type.is_scalar()) count = b.emit(Opcode::select_, {condition, count, b.number(0)});
    b.op(Opcode::ref_add_, {c->companion, count});
  }

  /// Whether anything has been added to a cell, where it is read; null: always.
  Value* condition_of_cell(Builder& b, const Block& block, const Value* v, Cell& c, const std::vector<Masked>& parts) {
    const Form form = condition(block, v, c);
    Value* total = nullptr;
    bool first = true;
    const auto join = [&](Value* one) {
      total = first ? one : any(b, total, one);
      first = false;
    };
    for (const Masked& m : parts) join(m.condition);
    if (c.companion) {
      Value* const count = b.op(Opcode::ref_get_, {c.companion}, {ir::F64})->result();
      join(b.emit(Opcode::ne_, {count, b.number(0)}));
    } else if (form == Form::unseen) {
      join(nullptr);
    } else if (form != Form::never) {
      join(written(b, block, form));
    }
    return total;
  }

  ir::Module& module_;
  std::vector<Block*> blocks_;
  std::unordered_map<const Block*, Op*> ends_;
  std::unordered_map<Value*, Cell> cells_;
  std::vector<Value*> order_;
  std::unordered_set<const Op*> loops_;
  std::unordered_map<const Value*, std::vector<Value*>> continuations_;  ///< of functions: what they are called with
  std::unordered_set<const Value*> handed_on_;                           ///< continuations that others call, too
  std::vector<Value*> counted_;                                          ///< cells with a number beside them
  std::unordered_map<const Value*, Derived> derived_;
  std::vector<std::pair<Block*, std::vector<Op*>>> backward_;
  std::unordered_map<const Op*, std::vector<Value*>> parameters_of_;  ///< with a number beside them
};

}  // namespace

void guard_zeros(ir::Function& unit) {
  if (!unit.cps && in_cps(unit)) Guard(unit).run();
}

}  // namespace lantern::passes
