// Loops that add to several neighbours of an element.
#include "lantern/compiler/passes/array/split.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/offset.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/clone.hpp"
#include "lantern/ir/library_function.hpp"

namespace lantern::passes {

namespace {

/// What a loop of its own may compute again, an addition being one.
constexpr std::size_t little = 32;

std::size_t weight(const Op& op) {
  const bool slow = (op.is(Opcode::div_) || op.is(Opcode::sqrt_)) && op.result()->type.is_float_element();
  return slow ? little / 2 : 1;
}

class Splitting {
 public:
  Splitting(ir::Module& module, Op* loop) : module_(module), loop_(loop), uses_(loop) {}

  bool run() {
    const auto up = counted(loop_);
    const auto down = up ? std::nullopt : counts_down(loop_);
    if ((!up && !down) || loop_->integer != 0) return false;
    index_ = up ? up->index : down->index;
    const Block *condition = loop_->blocks[0], *body = loop_->blocks[1];
    for (std::size_t i = 0; i < condition->params.size(); ++i)
      if (i != index_ && !uses_.of(condition->params[i]).empty()) return false;
    for (const Op* op : body->ops)
      if (!op->blocks.empty() ||
          (ir::info(op->code).effect != ir::Effect::none && !op->is(Opcode::yield_) && !op->is(Opcode::pop_)))
        return false;
    bool any = false;
    for (std::size_t state = 0; state < loop_->operands.size(); ++state)
      if (run(state)) {
        any = true;
        uses_ = Uses(loop_);
      }
    return any;
  }

 private:
  /// The additions to one tensor, by the distance of their elements from the trip's.
  using Groups = std::map<std::int64_t, std::vector<Op*>>;

  bool run(std::size_t state) {
    Groups groups;
    if (!loop_->operands[state]->type.is_tensor() || !collect(state, groups) || groups.size() < 2)
      return false;
    // The last stays; where one is of the trip's own element, that one.
    const auto stays = groups.contains(0) ? groups.find(0) : std::prev(groups.end());
    std::map<std::int64_t, Slice> slices;
    for (const auto& [by, adds] : groups) {
      if (by == stays->first) continue;
      std::vector<const Value*> wanted;
      for (const Op* add : adds) wanted.insert(wanted.end(), add->operands.begin() + 1, add->operands.end());
      slices[by] = slice(wanted);
      if (slices[by].how == Slice::none || (slices[by].how == Slice::stored && !places())) return false;
    }
    for (const auto& [by, adds] : groups) {
      if (by == stays->first) continue;
      if (slices[by].how == Slice::little)
        move(state, adds, slices[by].ops);
      else
        for (Op* add : adds) store(state, add);
    }
    return true;
  }

  bool collect(std::size_t state, Groups& groups) {
    Block* const body = loop_->blocks[1];
    std::optional<std::size_t> dimension;
    for (Value* v = body->params[state];;) {
      const auto& uses = uses_.of(v);
      if (uses.size() != 1) return false;
      const auto [op, operand] = uses.front();
      if (op->is(Opcode::yield_)) return operand == state;
      if (!op->is(Opcode::add_at_) || operand != 0) return false;
      std::optional<std::int64_t> by;
      for (std::size_t d = 1; d + 1 < op->operands.size(); ++d) {
        const Value* index = op->operands[d];
        if (!inside(index)) continue;
        const Offset o = offset(index);
        if (!o.base || !inside(o.base)) continue;
        if (o.base != body->params[index_] || by || (dimension && *dimension != d)) return false;
        by = static_cast<std::int64_t>(o.by) - first();
        dimension = d;
      }
      if (!by) return false;
      groups[*by].push_back(op);
      v = op->result();
    }
  }
  /// The index of the trip, less what counts.
  std::int64_t first() const { return counted(loop_) ? 0 : -1; }

  /// What values need of the body, in order: little, what an array has to hold, or what is not to be had in a
  /// loop of its own, or takes more than the updates do.
  struct Slice {
    enum { little, stored, none } how = none;
    std::vector<Op*> ops;
  };
  Slice slice(std::vector<const Value*> todo) {
    Block* const body = loop_->blocks[1];
    std::unordered_set<const Op*> wanted;
    std::size_t sum = 0;
    bool stored = false;
    while (!todo.empty()) {
      const Value* v = todo.back();
      todo.pop_back();
      if (!inside(v)) continue;
      if (!v->def) {
        if (v->index != index_) return {};
        continue;
      }
      const Op& op = *v->def;
      if (!wanted.insert(&op).second) continue;
      if (op.is(Opcode::set_) || op.is(Opcode::add_at_)) return {};
      stored |= op.is(Opcode::pop_) || ir::is_library_function(op.code);
      sum += weight(op);
      const bool own = op.is(Opcode::get_) && inside(op.operands[0]);
      if (own && !unchanged(op)) return {};
      todo.insert(todo.end(), op.operands.begin() + (own ? 1 : 0), op.operands.end());
    }
    Slice s{stored ? Slice::stored : sum <= little ? Slice::little : Slice::none, {}};
    for (Op* op : body->ops)
      if (wanted.contains(op)) s.ops.push_back(op);
    return s;
  }
  /// How many elements an array with one for each trip has, by the trip's index; null where that is not
  /// known.
  Value* places() const {
    if (!counted(loop_)) return loop_->operands[index_];
    const Op* first = constant(loop_->operands[index_]);
    Value* const bound = counted(loop_)->bound;
    return first && first->integer >= 0 && bound->block != loop_->blocks[0] ? bound : nullptr;
  }

  /// A state's element, read before the trip changes it, which no other trip does: as it was before the loop.
  bool unchanged(const Op& get) const {
    const Value* const v = get.operands[0];
    return !v->def && as_before_loop(uses_, get, v->index, own(get));
  }
  /// An element that belongs to the trip: the index counts in one dimension.
  bool own(const Op& access) const {
    return std::any_of(access.operands.begin() + 1, access.operands.end(), [&](const Value* index) {
      return inside(index) && index->type.is_integer() &&
             offset(index).base == loop_->blocks[1]->params[index_];
    });
  }

  /// Copies of what some of a loop's state needs, in a loop of their own.
  class Copy {
   public:
    Copy(Splitting& of, std::size_t state) : of_(of), state_(state) {
      const Op* from = of.loop_;
      loop_ = of.module_.new_op(Opcode::loop_, from->parent);
      loop_->loc = from->loc;
      loop_->operands = {from->operands[of.index_], from->operands[state]};
      Block* head = block(from->blocks[0]);
      for (const Op* op : from->blocks[0]->ops) copy(op, head);
      trip_ = block(from->blocks[1]);
      // State that is read is as it was before the loop.
      for (std::size_t i = 0; i < from->operands.size(); ++i)
        if (i != of.index_ && i != state) map_[from->blocks[1]->params[i]] = from->operands[i];
      sum_ = trip_->params[1];
    }
    void take(const std::vector<Op*>& needed) {
      for (const Op* op : needed) copy(op, trip_);
    }
    void is(const Value* v, Value* now) { map_[v] = now; }
    void add(const Op* add) {
      Op* made = copy(add, trip_);
      made->operands[0] = sum_;
      sum_ = made->result();
    }
    Block* trip() const { return trip_; }
    Value* now(Value* v) const { return ir::renamed(map_, v); }
    /// Places the loop beside the one it comes from; gives the sum.
    Value* place(bool before) {
      const Op* from = of_.loop_;
      const Value* next = from->blocks[1]->yields()[of_.index_];
      if (!map_.contains(next)) {
        std::vector<const Op*> counting;
        of_.collect_counting(next->def, map_, counting);
        for (const Op* op : counting) copy(op, trip_);
      }
      ir::Builder(of_.module_, trip_).yield({map_[next], sum_});
      of_.module_.add_result(loop_, from->results[of_.index_]->type);
      Value* result = of_.module_.add_result(loop_, from->results[state_]->type, from->results[state_]->name);
      auto& around = from->parent->ops;
      around.insert(std::ranges::find(around, from) + (before ? 0 : 1), loop_);
      return result;
    }
    Op* loop() const { return loop_; }

   private:
    Block* block(Block* from) {
      Block* into = of_.module_.new_block(loop_, loop_->parent->function);
      loop_->blocks.push_back(into);
      for (const std::size_t i : {of_.index_, state_})
        map_[from->params[i]] = of_.module_.add_param(into, from->params[i]->type, from->params[i]->name);
      return into;
    }
    Op* copy(const Op* op, Block* into) {
      ir::Builder b(of_.module_, into);
      return ir::clone(b, *op, map_);
    }

    Splitting& of_;
    std::size_t state_;
    Op* loop_ = nullptr;
    Block* trip_ = nullptr;
    Value* sum_ = nullptr;
    Renaming map_;
  };

  /// Gives the additions a loop before this one, which computes what it needs again.
  void move(std::size_t state, const std::vector<Op*>& adds, const std::vector<Op*>& needed) {
    Copy copy(*this, state);
    copy.take(needed);
    for (const Op* add : adds) copy.add(add);
    loop_->operands[state] = copy.place(true);
    for (Op* add : adds) leave_out(add);
  }

  /// Gives an addition a loop after this one, which reads what this one leaves in an array.
  void store(std::size_t state, Op* add) {
    Value* const v = add->operands.back();
    Value* const trip = counted(loop_) ? loop_->blocks[1]->params[index_] : counts_down(loop_)->trip;
    Value*& array = arrays_[v];
    if (!array) array = array_of(v, trip);

    Copy copy(*this, state);
    copy.loop()->operands[1] = loop_->results[state];
    std::vector<const Value*> wanted(add->operands.begin() + 1, add->operands.end() - 1);
    wanted.push_back(trip);
    copy.take(slice(wanted).ops);
    ir::Builder trips(module_, copy.trip());
    trips.loc = add->loc;
    copy.is(v, trips.emit(Opcode::get_, {array, copy.now(trip)}));
    copy.add(add);
    const Op* const after = copy.loop();
    Value* const before = loop_->results[state];
    Value* const result = copy.place(false);
    ir::walk(loop_->parent, [&](Op* op) {
      if (op == after) return;
      for (Value*& o : op->operands)
        if (o == before) o = result;
    });
    leave_out(add);
  }

  /// An array in which each trip leaves a value.
  Value* array_of(Value* v, Value* trip) {
    Block *const head = loop_->blocks[0], *const body = loop_->blocks[1];
    const ir::Type type = ir::Type::tensor(v->type.kind(), {ir::dynamic});
    ir::Builder before = ir::Builder::before(loop_);
    Value* const none = before.op(Opcode::undef_, {}, {v->type})->result();
    Value* const size = before.emit(Opcode::imax_, {places(), before.integer(0)});
    loop_->operands.push_back(before.op(Opcode::fill_, {none, size}, {type})->result());
    module_.add_param(head, type);
    ir::Builder last = ir::Builder::before(body->ops.back());
    last.loc = loop_->loc;
    body->yields().push_back(last.emit(Opcode::set_, {module_.add_param(body, type), trip, v}));
    return module_.add_result(loop_, type);
  }

  void leave_out(Op* add) {
    Block* const body = loop_->blocks[1];
    ir::replace_uses(body, add->result(), add->operands[0]);
    std::erase(body->ops, add);
  }

  /// The operations from the index to the next one, in order.
  void collect_counting(const Op* op, const Renaming& map, std::vector<const Op*>& found) const {
    for (const Value* v : op->operands)
      if (inside(v) && v->def && !map.contains(v)) collect_counting(v->def, map, found);
    if (std::ranges::find(found, op) == found.end()) found.push_back(op);
  }

  bool inside(const Value* v) const { return v->block == loop_->blocks[1]; }

  ir::Module& module_;
  Op* loop_;
  Uses uses_;
  std::size_t index_ = 0;
  Renaming arrays_;  ///< that hold a value of each trip
};

}  // namespace

void split(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    for (Op* loop : loops_in(*f)) any |= Splitting(module, loop).run();
  }
  if (any) simplify(module);
}

}  // namespace lantern::passes
