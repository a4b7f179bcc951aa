// Copies of elements in the order in which inner loops walk through them.
#include "lantern/compiler/passes/schedule/pack.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/nests.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

using ir::Builder;

constexpr std::size_t least_dimensions = 2, most_dimensions = 3, largest_index = 64;
constexpr int least_lanes = 16;

/// A loop between the one that is looked at and an access.
struct Around {
  const Op* loop;
  const Value* index;  ///< in the body
  const Value* size;
};

/// The elements that an access walks through.
struct Walk {
  std::vector<Around> around;     ///< from the outside
  std::vector<std::size_t> used;  ///< of these, whose indices say which element it is
  std::vector<Value*> indices;    ///< of the element
};

/// What one loop's trips read and add to.
class Packer {
 public:
  Packer(ir::Module& module, Op* loop) : module_(module), loop_(loop), body_(loop->blocks[1]) {}

  bool run() {
    if (loop_->integer != 0) return false;  // a bound on memory
    std::vector<Op*> accesses;
    ir::walk(body_, [&](Op* op) {
      if (op->is(Opcode::get_) || op->is(Opcode::add_at_)) accesses.push_back(op);
    });
    bool any = false;
    for (Op* op : accesses) {
      const auto walk = walk_of(op);
      if (walk && leaps(*walk) && in_wide_vectors(*walk))
        any |= op->is(Opcode::get_) ? read(op, *walk) : add(op, *walk);
    }
    return any;
  }

 private:
  /// True where an element is read for many lanes: what is read once more for a copy is little beside that.
  static bool in_wide_vectors(const Walk& w) {
    bool wide = false;
    ir::walk(w.around.back().loop->blocks[1], [&](const Op* op) {
      for (const Value* v : op->results) wide |= v->type.is_vector() && v->type.lanes() >= least_lanes;
      return !wide;
    });
    return wide;
  }

  bool outside(const Value* v) const { return constant(v) || ir::visible_from(v, loop_->parent); }

  // ---- what an access walks through

  std::optional<Walk> walk_of(const Op* op) const {
    const ir::Type& type = op->operands[0]->type;
    if (!type.is_float_element() || !type.is_tensor() || type.is_vector()) return {};
    Walk w;
    for (const Block* b = op->parent; b != body_; b = b->parent->parent) {
      const Op* loop = b->parent;
      if (!loop->is(Opcode::loop_) || b != loop->blocks[1] || loop->integer != 0) return {};
      const auto trips = whole_trips(loop);
      if (!trips) return {};
      w.around.insert(w.around.begin(), {loop, trips->index, trips->size});
    }
    if (w.around.empty()) return {};
    w.indices.assign(op->operands.begin() + 1, op->operands.end() - (op->is(Opcode::get_) ? 0 : 1));
    std::unordered_set<std::size_t> used;
    std::size_t seen = 0;
    for (const Value* v : w.indices)
      if (!made_of_indices(v, w, used, seen)) return {};
    w.used.assign(used.begin(), used.end());
    std::ranges::sort(w.used);
    if (w.used.size() < least_dimensions || w.used.size() > most_dimensions) return {};
    if (w.used.back() + 1 != w.around.size()) return {};
    for (std::size_t k = 0; k < w.around.size(); ++k)
      if (!sized(w, k)) return {};
    return w;
  }

  static std::optional<std::size_t> position(const Walk& w, const Value* v) {
    const auto at = std::ranges::find(w.around, v, &Around::index);
    if (at == w.around.end()) return {};
    return static_cast<std::size_t>(at - w.around.begin());
  }

  bool made_of_indices(const Value* v, const Walk& w, std::unordered_set<std::size_t>& used,
                       std::size_t& seen) const {
    if (outside(v)) return true;
    if (const auto k = position(w, v)) {
      used.insert(*k);
      return true;
    }
    if (!v->def || !v->type.is_scalar() || !v->type.is_integer() || ++seen > largest_index) return false;
    switch (v->def->code) {
      case Opcode::add_:
      case Opcode::sub_:
      case Opcode::mul_:
      case Opcode::neg_:
        break;
      case Opcode::dim_:
        return outside(v->def->operands[0]);
      case Opcode::div_: {
        const Op* by = constant(v->def->operands[1]);
        if (!by || by->integer <= 0) return false;
        break;
      }
      default:
        return false;
    }
    return std::ranges::all_of(v->def->operands,
                               [&](const Value* o) { return made_of_indices(o, w, used, seen); });
  }

  /// True for a value that is the same in all trips, and made of nothing that they make.
  bool fixed(const Walk& w, const Value* v) const {
    std::unordered_set<std::size_t> used;
    std::size_t seen = 0;
    return made_of_indices(v, w, used, seen) && used.empty();
  }

  /// True where a loop's trips are known before, or, if it belongs to a dimension of the copy, are the index
  /// of such a one around it with a constant added.
  bool sized(const Walk& w, std::size_t k) const {
    const Value* size = w.around[k].size;
    if (fixed(w, size)) return true;
    if (std::ranges::find(w.used, k) == w.used.end()) return false;
    const auto up_to = position(w, start_of(size));
    return up_to && *up_to < k && std::ranges::find(w.used, *up_to) != w.used.end();
  }

  /// The index in `index + constant`.
  static const Value* start_of(const Value* size) {
    if (!size->def || !size->def->is(Opcode::add_)) return size;
    const Value *x = size->def->operands[0], *y = size->def->operands[1];
    return constant(y) ? x : constant(x) ? y : size;
  }

  /// How a value depends on an index: 0, 1 (linear) or more.
  static int degree(const Value* v, const Value* index) {
    if (v == index) return 1;
    if (!v->def || v->def->blocks.size() > 0) return 0;
    int most = 0, sum = 0;
    switch (v->def->code) {
      case Opcode::add_:
      case Opcode::sub_:
      case Opcode::mul_:
      case Opcode::neg_:
      case Opcode::div_:
        for (const Value* o : v->def->operands) {
          const int d = degree(o, index);
          most = std::max(most, d);
          sum += d;
        }
        return v->def->is(Opcode::mul_) ? sum : v->def->is(Opcode::div_) && most > 0 ? 2 : most;
      default:
        return 0;
    }
  }

  static bool leaps(const Walk& w) {
    const Value* innermost = w.around.back().index;
    return degree(w.indices.back(), innermost) > 1;
  }

  // ---- copies

  Value* copied(Builder& b, const Value* v) const {
    if (const Op* c = constant(v)) return b.integer(c->integer, v->type);
    return const_cast<Value*>(v);
  }

  /// A value made of indices, with others in their place.
  Value* at_indices(Builder& b, const Value* v, const Walk& w, std::span<Value* const> at) const {
    if (outside(v)) return v->type.is_tensor() ? const_cast<Value*>(v) : copied(b, v);
    if (const auto k = position(w, v))
      return at[static_cast<std::size_t>(std::ranges::find(w.used, *k) - w.used.begin())];
    std::vector<Value*> operands;
    for (const Value* o : v->def->operands) operands.push_back(at_indices(b, o, w, at));
    return b.emit(v->def->code, operands, v->def->integer);
  }

  /// Whether the loops that do not belong to the copy make a trip.
  Value* gets_there(Builder& b, const Walk& w) const {
    Value* all = nullptr;
    const auto need = [&](Value* one) { all = all ? b.emit(Opcode::land_, {all, one}) : one; };
    Renaming first;
    for (std::size_t i = 0; i < loop_->operands.size(); ++i)
      first[loop_->blocks[0]->params[i]] = loop_->operands[i];
    need(ir::clone(b, *loop_->blocks[0], first).front());
    for (std::size_t k = 0; k < w.around.size(); ++k) {
      if (std::ranges::find(w.used, k) != w.used.end() || constant_trips(w.around[k].loop).value_or(0))
        continue;
      Value* const size = at_indices(b, w.around[k].size, w, {});
      need(b.emit(Opcode::lt_, {b.integer(0, size->type), size}));
    }
    return all;
  }

  /// The sizes of copies that are filled in the same loops. They are computed before the loop, once.
  struct Shape {
    std::vector<Value*> extents;  ///< room for all trips
    Value* first = nullptr;       ///< trips of the outermost loop: none where the program does not get there
  };

  const Shape& shape_of(Builder& b, const Walk& w) {
    std::string name;
    for (std::size_t k = 0; k < w.around.size(); ++k) {
      name += std::ranges::find(w.used, k) == w.used.end() ? " -" : " +";
      add_name(name, w.around[k].size, w);
    }
    const auto [it, added] = shapes_.try_emplace(name);
    Shape& shape = it->second;
    if (!added) return shape;
    // An index that a loop ends at is below the size of its loop.
    for (const std::size_t k : w.used) {
      Value* const size = at_indices(b, w.around[k].size, w, shape.extents);
      shape.extents.push_back(b.emit(Opcode::imax_, {size, b.integer(0, size->type)}));
    }
    Value* const none = b.integer(0, shape.extents[0]->type);
    shape.first = b.emit(Opcode::select_, {gets_there(b, w), shape.extents[0], none});
    return shape;
  }

  NestSize sizes(const Walk& w, const Shape& shape) const {
    return [this, &w, &shape](Builder& b, std::span<Value* const> at) {
      if (at.empty()) return shape.first;
      const Value* size = w.around[w.used[at.size()]].size;
      return fixed(w, size) ? shape.extents[at.size()] : at_indices(b, size, w, at);
    };
  }

  /// A copy: an element for each trip of its loops, which say what it is.
  Value* copy_of(Builder& b, const Walk& w, const Shape& shape, const ir::Type& element,
                 const std::function<Value*(Builder&, std::span<Value* const>)>& value) const {
    std::vector<Value*> fill{b.op(Opcode::undef_, {}, {element})->result()};
    fill.insert(fill.end(), shape.extents.begin(), shape.extents.end());
    return nest(b, b.emit(Opcode::fill_, fill), w.used.size(), sizes(w, shape),
                [&](Builder& inside, Value* now, std::span<Value* const> at) {
                  std::vector<Value*> set{now};
                  set.insert(set.end(), at.begin(), at.end());
                  set.push_back(value(inside, at));
                  return inside.emit(Opcode::set_, set);
                });
  }

  std::vector<Value*> element(Builder& b, Value* tensor, const Walk& w, std::span<Value* const> at) const {
    std::vector<Value*> operands{tensor};
    for (const Value* v : w.indices) operands.push_back(at_indices(b, v, w, at));
    return operands;
  }

  std::vector<Value*> indices_here(const Walk& w) const {
    std::vector<Value*> list;
    for (const std::size_t k : w.used) list.push_back(const_cast<Value*>(w.around[k].index));
    return list;
  }

  void put(Block* scratch, bool after) const {
    Block* const home = loop_->parent;
    for (Op* op : scratch->ops) {
      op->parent = home;
      for (Value* r : op->results) r->block = home;
    }
    const auto at = std::find(home->ops.begin(), home->ops.end(), loop_) + (after ? 1 : 0);
    home->ops.insert(at, scratch->ops.begin(), scratch->ops.end());
    scratch->ops.clear();
  }

  // ---- what is read

  bool read(Op* op, const Walk& w) {
    Value* const tensor = op->operands[0];
    if (!ir::visible_from(tensor, loop_->parent)) return false;
    const std::string key = name_of(tensor, w);
    Value*& copy = copies_[key];
    if (!copy) {
      Block* const scratch = module_.new_block(loop_->parent->parent, loop_->parent->function);
      Builder b(module_, scratch);
      b.loc = op->loc;
      copy =
          copy_of(b, w, shape_of(b, w), op->result()->type, [&](Builder& inside, std::span<Value* const> at) {
            return inside.emit(Opcode::get_, element(inside, tensor, w, at));
          });
      put(scratch, false);
    }
    op->operands = indices_here(w);
    op->operands.insert(op->operands.begin(), copy);
    return true;
  }

  /// Accesses of one name read the same elements in the same order.
  std::string name_of(const Value* tensor, const Walk& w) const {
    std::string name = std::to_string(reinterpret_cast<std::uintptr_t>(tensor));
    for (const Value* v : w.indices) add_name(name, v, w);
    // The loops of the copy's own dimensions, then those that must make a trip for it to be read.
    name += " :";
    for (const std::size_t k : w.used) add_name(name, w.around[k].size, w);
    name += " -";
    for (std::size_t k = 0; k < w.around.size(); ++k)
      if (std::ranges::find(w.used, k) == w.used.end()) add_name(name, w.around[k].size, w);
    return name;
  }

  /// What a value is made of, as text.
  void add_name(std::string& name, const Value* v, const Walk& w) const {
    if (const Op* c = constant(v)) {
      name += ' ' + std::to_string(c->integer);
    } else if (const auto k = position(w, v)) {
      name += " #" + std::to_string(std::ranges::find(w.used, *k) - w.used.begin());
    } else if (outside(v)) {
      name += " v" + std::to_string(reinterpret_cast<std::uintptr_t>(v));
    } else {
      name += " (" + std::string(ir::info(v->def->code).name) + std::to_string(v->def->integer);
      for (const Value* o : v->def->operands) add_name(name, o, w);
      name += ')';
    }
  }

  // ---- what is added

  bool add(Op* op, const Walk& w) {
    const auto state = added_state(op, w);
    if (!state) return false;
    Block* const before = module_.new_block(loop_->parent->parent, loop_->parent->function);
    Builder b(module_, before);
    b.loc = op->loc;
    const Shape& shape = shape_of(b, w);
    const ir::Type type = op->operands.back()->type;
    Value* const zeros = copy_of(b, w, shape, type, [&](Builder& inside, std::span<Value* const>) {
      return inside.number(0.0, type);
    });
    put(before, false);

    // The sums go through all loops on the way.
    std::vector<Op*> path{loop_};
    for (const Around& a : w.around) path.push_back(const_cast<Op*>(a.loop));
    Value* now = zeros;
    for (Op* loop : path) {
      loop->operands.push_back(now);
      for (Block* block : loop->blocks) now = module_.add_param(block, zeros->type);
      module_.add_result(loop, zeros->type);
    }
    Op* const added = module_.new_op(Opcode::add_at_, op->parent);
    added->loc = op->loc;
    added->operands = indices_here(w);
    added->operands.insert(added->operands.begin(), now);
    added->operands.push_back(op->operands.back());
    Value* next = module_.add_result(added, zeros->type);
    auto& ops = op->parent->ops;
    *std::find(ops.begin(), ops.end(), op) = added;
    for (std::size_t i = path.size(); i-- > 0;) {
      path[i]->blocks[1]->ops.back()->operands.push_back(next);
      next = path[i]->results.back();
    }
    ir::replace_uses(added->parent, op->result(), op->operands[0]);

    // After the loop.
    Block* const after = module_.new_block(loop_->parent->parent, loop_->parent->function);
    Builder a(module_, after);
    a.loc = op->loc;
    Value* const all = loop_->results[*state];
    Value* const sum = nest(a, all, w.used.size(), sizes(w, shape),
                            [&](Builder& inside, Value* into, std::span<Value* const> at) {
                              std::vector<Value*> operands = element(inside, into, w, at), get{next};
                              get.insert(get.end(), at.begin(), at.end());
                              operands.push_back(inside.emit(Opcode::get_, get));
                              return inside.emit(Opcode::add_at_, operands);
                            });
    ir::replace_uses(loop_->parent, all, sum);
    put(after, true);
    return true;
  }

  /// The loop's state that the operation adds to, where nothing but sums happens to that in the loop.
  std::optional<std::size_t> added_state(const Op* op, const Walk& w) const {
    const Uses uses(loop_);
    const Value* v = op->operands[0];
    std::size_t state = 0;
    const Block* block = op->parent;
    for (std::size_t k = w.around.size() + 1; k-- > 0;) {
      while (v->def && v->block == block) {
        if (v->def->is(Opcode::add_at_))
          v = v->def->operands[0];
        else if (v->def->is(Opcode::loop_))
          v = v->def->operands[v->index];
        else
          return {};
      }
      if (v->block != block) return {};
      state = v->index;
      if (k == 0) break;
      const Op* loop = block->parent;
      v = loop->operands[state];
      block = loop->parent;
    }
    if (!only_added(uses, loop_, state)) return {};
    return state;
  }

  static bool only_added(const Uses& uses, const Op* loop, std::size_t state) {
    if (!uses.of(loop->blocks[0]->params[state]).empty()) return false;
    std::vector<const Value*> todo{loop->blocks[1]->params[state]};
    while (!todo.empty()) {
      const Value* v = todo.back();
      todo.pop_back();
      for (const ir::Use& use : uses.of(v)) {
        if (use.op->is(Opcode::dim_)) continue;
        if (use.op->is(Opcode::add_at_) && use.operand == 0) {
          todo.push_back(use.op->result());
        } else if (use.op->is(Opcode::loop_)) {
          if (!only_added(uses, use.op, use.operand)) return false;
          todo.push_back(use.op->results[use.operand]);
        } else if (!use.op->is(Opcode::yield_) || use.op->parent != loop->blocks[1] || use.operand != state) {
          return false;
        }
      }
    }
    return true;
  }

  ir::Module& module_;
  Op* loop_;
  Block* body_;
  std::map<std::string, Shape> shapes_;
  std::map<std::string, Value*> copies_;
};

}  // namespace

void pack(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    for (Op* loop : loops_in(*f)) any |= Packer(module, loop).run();
  }
  if (any) eliminate_dead(module);
}

}  // namespace lantern::passes
