// Which tensors become numbers, and the functions written again with these.
#include "lantern/compiler/passes/canonical/scalar_replacement.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "lantern/compiler/passes/canonical/element_forms.hpp"
#include "lantern/compiler/passes/support/handed_on.hpp"

namespace lantern::passes {

namespace {

using ir::Function;
using ir::Type;

/// Beyond so many operations on numbers code would grow more than it gains.
constexpr std::size_t most_split_operations = 10'000;

/// What a value holds, or a cell for it.
const Type& held(const Type& type) { return type.is_ref() ? type.content() : type; }
bool holds_tensor(const Type& type) { return held(type).is_tensor(); }
/// The type of an element, or of the cell for one.
Type element_type(const Type& type) {
  const Type element(held(type).element());
  return type.is_ref() ? Type::ref(element) : element;
}

/// Something that holds tensors: a value; what a continuation is called with; a function's result; a tape.
struct Component {
  const void* owner = nullptr;
  std::size_t index = 0;
  bool operator==(const Component&) const = default;
};
struct ComponentHash {
  std::size_t operator()(const Component& p) const { return std::hash<const void*>()(p.owner) ^ (p.index * 0x9e3779b97f4a7c15u); }
};
constexpr std::size_t itself = static_cast<std::size_t>(-1);

/// Groups of places that may hold the same tensor (union-find).
class Groups {
 public:
  explicit Groups(ir::Module& module) : module_(module) {
    for (Function* f : module.functions()) called_.emplace(f, false);
    for (const Function* f : module.functions())
      ir::walk(f->body, [&](const Op* op) {
        if (op->callee) called_[op->callee] = true;
      });
    for (const Function* f : module.functions()) {
      if (!known_) return;
      function(*f);
    }
  }

  /// False where nothing should be done.
  bool any() const { return known_ && small_ && cost_ <= most_split_operations; }

  /// True where the elements of what a place holds are values of their own.
  bool is_split(const Component& p) const {
    const auto it = nodes_.find(p);
    return it != nodes_.end() && !in_memory_[root(it->second)];
  }
  bool is_split(const Value* v) const { return is_split(Component{v, itself}); }

 private:
  void function(const Function& f) {
    const bool open = &f == module_.entry && !called_.at(&f);
    for (const Value* p : f.body->params) declare(p);
    for (std::size_t i = 0; i < f.body->params.size(); ++i)
      if (&f == module_.entry && !open) memory(f.body->params[i]);
    ir::walk(f.body, [&](const Op* op) {
      for (const Block* b : op->blocks)
        for (const Value* p : b->params) declare(p);
      for (const Value* r : op->results) declare(r);
      operation(*op);
    });
    if (!f.body->terminated()) return;
    const std::vector<Value*>& yields = f.body->ops.back()->operands;
    for (std::size_t i = 0; i < yields.size(); ++i) {
      if (open) continue;  // put together again
      link({yields[i], itself}, yields[i]->type, {&f, i}, f.result_types[i]);
      if (&f == module_.entry) memory(yields[i]);
    }
  }

  void declare(const Value* v) {
    if (v->type.is_cont()) {
      for (std::size_t i = 0; i < v->type.parts().size(); ++i) {
        known_ &= !v->type.parts()[i].is_cont();
        node({v, i}, v->type.parts()[i]);
      }
    } else {
      node({v, itself}, v->type);
      small_ |= v->type.is_tensor() && is_small(v->type);
    }
  }

  void operation(const Op& op) {
    switch (op.code) {
      case Opcode::loop_:
      case Opcode::branch_:
        for_each_handed_on(op, [&](const Value* v, const Value* result) { same(v, result); });
        return;
      case Opcode::fun_:
        for (std::size_t i = 0; i < op.blocks[0]->params.size(); ++i)
          passed(op.result(), i, op.blocks[0]->params[i]);
        return;
      case Opcode::jump_:
        for (std::size_t i = 1; i < op.operands.size(); ++i) passed(op.operands[0], i - 1, op.operands[i]);
        return;
      case Opcode::call_:
        return call(op);
      case Opcode::closure_:
        known_ = false;
        return;
      case Opcode::push_:
        return tape(op, op.operands);
      case Opcode::pop_:
        return tape(op, op.results);
      case Opcode::ref_new_:
        return same(op.operands[0], op.result());
      case Opcode::ref_get_:
        return fits(op.operands[0], op.result());
      case Opcode::ref_set_:
      case Opcode::ref_add_:
        return fits(op.operands[0], op.operands[1]);
      case Opcode::yield_:
      case Opcode::slot_:
        return;
      default:
        return computation(op);
    }
  }

  void computation(const Op& op) {
    bool tensors = false;
    for (const std::vector<Value*>& values : {op.operands, op.results})
      for (const Value* v : values) tensors |= holds_tensor(v->type);
    if (!tensors) return;
    if (is_row_access(op)) {
      const Value* const row = op.is(Opcode::take_) ? op.result() : op.operands.back();
      memory(op.operands[0]);
      if (op.is(Opcode::add_take_)) memory(op.result());
      cost_ += element_count(row->type);
      return;
    }
    const auto cost = element_form_cost(op);
    if (!cost) {
      for (const std::vector<Value*>& values : {op.operands, op.results})
        for (const Value* v : values) memory(v);
      return;
    }
    cost_ += *cost;
    if (is_write(op)) same(op.operands[0], op.result());
  }

  void call(const Op& op) {
    const std::vector<Value*>& params = op.callee->body->params;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Value* v = op.operands[i];
      if (!v->type.is_cont()) {
        same(v, params[i]);
        continue;
      }
      for (std::size_t k = 0; k < v->type.parts().size(); ++k)
        link({v, k}, v->type.parts()[k], {params[i], k}, params[i]->type.parts()[k]);
    }
    for (std::size_t i = 0; i < op.results.size(); ++i)
      link({op.results[i], itself}, op.results[i]->type, {op.callee, i}, op.callee->result_types[i]);
  }

  void tape(const Op& op, const std::vector<Value*>& values) {
    if (values.size() != 1)
      for (const Value* v : values) memory(v);
    else
      link({values[0], itself}, values[0]->type, {&module_, static_cast<std::size_t>(op.integer)},
           values[0]->type);
  }

  // ---- groups

  void same(const Value* a, const Value* b) { link({a, itself}, a->type, {b, itself}, b->type); }
  void passed(const Value* k, std::size_t i, const Value* v) {
    if (!v->type.is_cont()) link({k, i}, k->type.parts()[i], {v, itself}, v->type);
  }
  /// What goes into a cell, or comes from it, may know less of its shape.
  void fits(const Value* cell, const Value* v) {
    if (held(cell->type) == v->type) return;
    memory(cell);
    memory(v);
  }
  void memory(const Value* v) {
    if (holds_tensor(v->type)) in_memory_[root(node({v, itself}, v->type))] = true;
  }

  void link(const Component& a, const Type& type_a, const Component& b, const Type& type_b) {
    if (!holds_tensor(type_a) && !holds_tensor(type_b)) return;
    const std::size_t x = root(node(a, type_a)), y = root(node(b, type_b));
    if (!(held(type_a) == held(type_b))) in_memory_[x] = in_memory_[y] = true;
    if (x == y) return;
    in_memory_[y] = in_memory_[y] || in_memory_[x];
    parents_[x] = y;
  }

  std::size_t node(const Component& p, const Type& type) {
    if (!holds_tensor(type)) return 0;
    const auto [it, added] = nodes_.try_emplace(p, parents_.size());
    if (added) {
      parents_.push_back(parents_.size());
      in_memory_.push_back(!is_small(held(type)));
    }
    return it->second;
  }

  std::size_t root(std::size_t i) const {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }

  ir::Module& module_;
  std::unordered_map<const Function*, bool> called_;
  std::unordered_map<Component, std::size_t, ComponentHash> nodes_;
  mutable std::vector<std::size_t> parents_{0};
  std::vector<bool> in_memory_{true};
  bool known_ = true;     ///< all constructs are
  bool small_ = false;    ///< there are small tensors
  std::size_t cost_ = 0;  ///< of their operations, written out
};

/// The tapes of the elements of what lay on one tape.
using ElementTapes = std::unordered_map<std::int64_t, std::vector<std::int64_t>>;

class Scalars : public Rewriter {
 public:
  Scalars(Function& f, const Groups& groups, ElementTapes& tapes)
      : Rewriter(f), groups_(groups), tapes_(tapes) {}

 private:
  bool is_split(const Value* v) const { return elements_.contains(const_cast<Value*>(v)); }

  Action enter(Op* op) override {
    ir::Builder b(module(), here(), op->loc);
    switch (op->code) {
      case Opcode::loop_:
        op->operands = expanded(op->operands);
        for (Block* block : op->blocks) expand_params(block);
        expand_results(op);
        return Action::keep;
      case Opcode::fun_:
        expand_params(op->blocks[0]);
        op->result()->type = Type::cont(ir::types_of(op->blocks[0]->params));
        return Action::keep;
      case Opcode::yield_:
        if (here() == function().body && &function() == module().entry)
          for (Value*& v : op->operands) v = in_memory(b, v);
        else
          op->operands = expanded(op->operands);
        return Action::keep;
      case Opcode::branch_:
      case Opcode::jump_:
      case Opcode::call_:
        op->operands = expanded(op->operands);
        expand_results(op);
        return Action::keep;
      case Opcode::push_:
      case Opcode::pop_:
        return tape(b, op);
      case Opcode::ref_new_:
      case Opcode::slot_:
        return cell(b, op);
      case Opcode::ref_get_:
      case Opcode::ref_set_:
      case Opcode::ref_add_:
      case Opcode::ref_acc_:
        return of_cell(b, op);
      default:
        return computation(b, op);
    }
  }

  void block_opened(Block* block) override {
    if (block != function().body || &function() != module().entry) return;
    ir::Builder b(module(), block);
    for (Value* p : block->params)
      if (groups_.is_split(p)) elements_[p] = read(b, p);
  }

  // ---- constructs

  /// What takes the places of a list of values, of the given types, in order: part(k, i) for element `i` of
  /// the k-th, whole(k) for what stays as it is. A cell follows its primal (unwind relies on that), and so
  /// does each element's.
  template <class IsSplit, class Part, class Whole>
  static void in_order(const std::vector<Type>& types, IsSplit is_split, Part part, Whole whole) {
    for (std::size_t k = 0; k < types.size(); ++k) {
      if (!holds_tensor(types[k]) || !is_split(k)) {
        whole(k);
        continue;
      }
      const bool pair = k + 1 < types.size() && types[k + 1] == Type::ref(types[k]) && is_split(k + 1);
      for (std::size_t i = 0; i < element_count(held(types[k])); ++i) {
        part(k, i);
        if (pair) part(k + 1, i);
      }
      k += pair ? 1 : 0;
    }
  }
  std::vector<Value*> expanded(const std::vector<Value*>& values) const {
    std::vector<Value*> out;
    out.reserve(values.size());
    in_order(
        ir::types_of(values), [&](std::size_t k) { return is_split(values[k]); },
        [&](std::size_t k, std::size_t i) { out.push_back((*elements_.find(values[k]))[i]); },
        [&](std::size_t k) { out.push_back(values[k]); });
    return out;
  }

  /// Values anew; tensors that are to become scalars as their elements. `add(type)` makes one.
  template <class Add>
  void expand(std::vector<Value*>& values, Add add) {
    const std::vector<Value*> before = std::exchange(values, {});
    in_order(
        ir::types_of(before), [&](std::size_t k) { return groups_.is_split(before[k]); },
        [&](std::size_t k, std::size_t) {
          Value* const x = add(element_type(before[k]->type));
          x->name = before[k]->name;
          elements_[before[k]].push_back(x);
        },
        [&](std::size_t k) {
          Value* const v = before[k];
          if (v->type.is_cont()) v->type = continuation(v);
          v->index = static_cast<std::uint32_t>(values.size());
          values.push_back(v);
        });
  }
  void expand_params(Block* block) {
    expand(block->params, [&](const Type& type) { return module().add_param(block, type); });
  }
  void expand_results(Op* op) {
    expand(op->results, [&](const Type& type) { return module().add_result(op, type); });
  }

 public:
  /// A function's parameters and results, before any is rewritten.
  void signature() {
    if (&function() == module().entry) return;
    expand_params(function().body);
    std::vector<Type> results;
    for (std::size_t i = 0; i < function().result_types.size(); ++i) {
      const Type& type = function().result_types[i];
      const bool split = groups_.is_split(Component{&function(), i});
      results.insert(results.end(), split ? element_count(type) : 1, split ? Type(type.element()) : type);
    }
    function().result_types = std::move(results);
  }

 private:
  Type continuation(const Value* k) const {
    const std::vector<Type>& types = k->type.parts();
    std::vector<Type> parts;
    in_order(
        types,
        [&](std::size_t i) {
          return groups_.is_split(Component{k, i});
        },
        [&](std::size_t i, std::size_t) { parts.push_back(element_type(types[i])); },
        [&](std::size_t i) { parts.push_back(types[i]); });
    return Type::cont(std::move(parts));
  }

  // ---- tapes and cells

  Action tape(ir::Builder& b, Op* op) {
    const bool pushes = op->is(Opcode::push_);
    Value* const v = pushes ? op->operands[0] : op->results[0];
    if (pushes ? !is_split(v) : !holds_tensor(v->type) || !groups_.is_split(v)) return Action::keep;
    const std::size_t n = element_count(v->type);
    std::vector<std::int64_t>& tapes = tapes_[op->integer];
    while (tapes.size() < n) tapes.push_back(module().new_tape());
    std::vector<Value*> popped;
    for (std::size_t i = 0; i < n; ++i) {
      Op* part = pushes ? b.op(Opcode::push_, {elements(b, v)[i]})
                        : b.op(Opcode::pop_, {}, {Type(v->type.element())});
      part->integer = tapes[i];
      if (!pushes) popped.push_back(part->result()), popped.back()->name = v->name;
    }
    if (!pushes) elements_[v] = std::move(popped);
    return Action::drop;
  }

  Action cell(ir::Builder& b, Op* op) {
    Value* const c = op->result();
    if (!holds_tensor(c->type) || !groups_.is_split(c)) return Action::keep;
    std::vector<Value*> cells;
    for (std::size_t i = 0; i < element_count(held(c->type)); ++i) {
      std::vector<Value*> like;
      if (op->is(Opcode::ref_new_)) like.push_back(elements(b, op->operands[0])[i]);
      cells.push_back(b.op(op->code, like, {element_type(c->type)})->result());
      cells.back()->name = c->name;
    }
    elements_[c] = std::move(cells);
    return Action::drop;
  }

  Action of_cell(ir::Builder& b, Op* op) {
    Value* const c = op->operands[0];
    if (!holds_tensor(c->type)) return Action::keep;
    if (op->is(Opcode::ref_get_)) {
      std::vector<Value*> now;
      if (!is_split(c)) {
        if (!groups_.is_split(op->result())) return Action::keep;
        now = read(b, b.op(Opcode::ref_get_, {c}, {op->result()->type})->result());
      } else {
        for (Value* x : elements(b, c))
          now.push_back(b.op(Opcode::ref_get_, {x}, {x->type.content()})->result());
      }
      define(b, op->result(), std::move(now));
      return Action::drop;
    }
    if (!is_split(c)) {
      if (op->is(Opcode::ref_acc_) && is_row_access(*op) && is_split(op->operands.back())) {
        add_row(b, *op, [&](const std::vector<Value*>& operands) {
          b.op(Opcode::ref_acc_, operands)->integer = static_cast<std::int64_t>(Opcode::add_at_);
          return c;
        });
        return Action::drop;
      }
      for (std::size_t i = 1; i < op->operands.size(); ++i) op->operands[i] = in_memory(b, op->operands[i]);
      return Action::keep;
    }
    const std::vector<Value*> cells = elements(b, c);
    const std::vector<Value*> given = op->is(Opcode::ref_acc_)
                                          ? element_form(b, *op, [&](Value* v) { return elements(b, v); })
                                          : elements(b, op->operands[1]);
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (given[i])
        b.op(op->is(Opcode::ref_set_) ? Opcode::ref_set_ : Opcode::ref_add_, {cells[i], given[i]});
    return Action::drop;
  }

  // ---- everything else

  Action computation(ir::Builder& b, Op* op) {
    bool any = false;
    for (Value* v : op->operands) any |= is_split(v);
    for (Value* v : op->results) any |= holds_tensor(v->type) && groups_.is_split(v);
    if (!any) return Action::keep;
    if (is_row_access(*op)) return row(b, op);
    if (!element_form_cost(*op)) {
      for (Value*& v : op->operands) v = in_memory(b, v);
      return Action::keep;
    }
    std::vector<Value*> parts = element_form(b, *op, [&](Value* v) { return elements(b, v); });
    if (op->result()->type.is_tensor())
      define(b, op->result(), std::move(parts));
    else
      replace(op->result(), parts[0]);
    return Action::drop;
  }

  /// Reads or adds to a row's elements where they lie.
  Action row(ir::Builder& b, Op* op) {
    if (op->is(Opcode::take_)) {
      std::vector<Value*> parts;
      for (std::size_t i = 0; i < element_count(op->result()->type); ++i) {
        std::vector<Value*> operands = indices(b, op->result()->type, i);
        operands.insert(operands.begin(), op->operands.begin(), op->operands.end());
        parts.push_back(b.emit(Opcode::get_, operands));
      }
      define(b, op->result(), std::move(parts));
    } else {
      replace(op->result(), add_row(b, *op, [&](const std::vector<Value*>& operands) {
                return b.emit(Opcode::add_at_, operands);
              }));
    }
    return Action::drop;
  }

  /// `add` for each element of the last operand, with what it is added to, the indices, and the element.
  template <class Add>
  Value* add_row(ir::Builder& b, const Op& op, Add add) {
    Value* to = op.operands[0];
    const std::vector<Value*> parts = elements(b, op.operands.back());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::vector<Value*> operands = indices(b, op.operands.back()->type, i);
      operands.insert(operands.begin(), {to, op.operands[1]});
      operands.push_back(parts[i]);
      to = add(operands);
    }
    return to;
  }

  /// Gives a tensor its elements, or puts it together where it is to be in memory.
  void define(ir::Builder& b, Value* tensor, std::vector<Value*> parts) {
    if (groups_.is_split(tensor)) {
      for (Value* x : parts)
        if (!x->name && !constant(x)) x->name = tensor->name;
      elements_[tensor] = std::move(parts);
    } else {
      replace(tensor, materialise(b, parts, tensor->type));
    }
  }

  std::vector<Value*> elements(ir::Builder& b, Value* v) {
    if (const std::vector<Value*>* known = elements_.find(v)) return *known;
    if (!v->type.is_tensor()) return {v};
    return read(b, v);
  }

  /// The constants that name an element, first dimension first.
  static std::vector<Value*> indices(ir::Builder& b, const Type& type, std::size_t at) {
    std::size_t size = element_count(type);
    std::vector<Value*> out;
    for (const std::int64_t d : type.dims()) {
      size /= static_cast<std::size_t>(d);
      out.push_back(b.integer(static_cast<std::int64_t>(at / size)));
      at %= size;
    }
    return out;
  }

  std::vector<Value*> read(ir::Builder& b, Value* tensor) {
    std::vector<Value*> out;
    for (std::size_t i = 0; i < element_count(tensor->type); ++i) {
      std::vector<Value*> operands = indices(b, tensor->type, i);
      operands.insert(operands.begin(), tensor);
      out.push_back(b.emit(Opcode::get_, operands));
    }
    return out;
  }

  Value* in_memory(ir::Builder& b, Value* v) {
    const std::vector<Value*>* parts = elements_.find(v);
    return parts ? materialise(b, *parts, v->type) : v;
  }

  /// A tensor of these elements.
  static Value* materialise(ir::Builder& b, const std::vector<Value*>& parts, const Type& type) {
    std::vector<Value*> operands{b.undef(Type(type.element()))};
    for (const std::int64_t d : type.dims()) operands.push_back(b.integer(d));
    Value* tensor = b.emit(Opcode::fill_, operands, 0, type.dims());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      operands = indices(b, type, i);
      operands.insert(operands.begin(), tensor);
      operands.push_back(parts[i]);
      tensor = b.emit(Opcode::set_, operands);
    }
    return tensor;
  }

  const Groups& groups_;
  ElementTapes& tapes_;
  ir::PointerMap<Value, std::vector<Value*>> elements_;  ///< of tensors, and of cells for them
};

}  // namespace

void scalar_replacement(ir::Module& module) {
  const Groups groups(module);
  if (!groups.any()) return;
  ElementTapes tapes;
  std::vector<std::unique_ptr<Scalars>> all;
  for (Function* f : module.functions()) {
    all.push_back(std::make_unique<Scalars>(*f, groups, tapes));
    all.back()->signature();
  }
  for (const std::unique_ptr<Scalars>& f : all) f->run();
}

}  // namespace lantern::passes
