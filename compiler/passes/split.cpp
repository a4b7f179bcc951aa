// Loops that add to several neighbours of an element.
#include "lantern/compiler/passes/split.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "lantern/compiler/passes/loops.hpp"
#include "lantern/compiler/passes/simplify.hpp"
#include "lantern/compiler/passes/updates.hpp"
#include "lantern/ir/library_function.hpp"

namespace lantern::passes {

namespace {

/// Operations that a loop of its own may compute again.
constexpr std::size_t little = 32;

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
      if (!op->blocks.empty() || (ir::info(op->code).effect != ir::Effect::none && !op->is(Opcode::yield_)))
        return false;
    bool any = false;
    for (std::size_t state = 0; state < loop_->operands.size(); ++state)
      if (run(state)) {
        any = true;
        uses_ = BodyUses(loop_);
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
    std::map<std::int64_t, std::vector<Op*>> needed;
    for (const auto& [by, adds] : groups)
      if (by != stays->first && !slice(adds, needed[by])) return false;
    for (const auto& [by, adds] : groups)
      if (by != stays->first) move(state, adds, needed[by]);
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

  /// What the additions need of the body, in order; false where that is much, or not to be had in a loop of
  /// its own.
  bool slice(const std::vector<Op*>& adds, std::vector<Op*>& needed) {
    Block* const body = loop_->blocks[1];
    std::unordered_set<const Op*> wanted;
    std::vector<const Value*> todo;
    for (const Op* add : adds) todo.insert(todo.end(), add->operands.begin() + 1, add->operands.end());
    while (!todo.empty()) {
      const Value* v = todo.back();
      todo.pop_back();
      if (!inside(v)) continue;
      if (!v->def) {
        if (v->index != index_) return false;
        continue;
      }
      const Op& op = *v->def;
      if (!wanted.insert(&op).second) continue;
      if (op.is(Opcode::set_) || op.is(Opcode::add_at_) || ir::is_library_function(op.code)) return false;
      const bool own = op.is(Opcode::get_) && inside(op.operands[0]);
      if (own && !unchanged(op)) return false;
      todo.insert(todo.end(), op.operands.begin() + (own ? 1 : 0), op.operands.end());
    }
    for (Op* op : body->ops)
      if (wanted.contains(op)) needed.push_back(op);
    return needed.size() <= little;
  }

  /// A state's element, read before the trip changes it, which no other trip does: as it was before the loop.
  bool unchanged(const Op& get) const {
    const Value* v = get.operands[0];
    if (v->def) return false;
    const std::size_t state = v->index;
    for (;;) {
      const Op* next = nullptr;
      for (const auto& [op, operand] : uses_.of(v)) {
        if (op->is(Opcode::get_) && operand == 0) continue;
        if (next) return false;
        next = op;
      }
      if (!next) return false;
      if (next->is(Opcode::yield_)) return next->operands[state] == v;
      if (!(next->is(Opcode::set_) || next->is(Opcode::add_at_)) || next->operands[0] != v ||
          !same_element(get, *next) || !own(get))
        return false;
      v = next->result();
    }
  }
  /// An element that belongs to the trip: the index counts in one dimension.
  bool own(const Op& access) const {
    return std::any_of(access.operands.begin() + 1, access.operands.end(), [&](const Value* index) {
      return inside(index) && index->type.is_integer() &&
             offset(index).base == loop_->blocks[1]->params[index_];
    });
  }

  /// Gives the additions a loop before this one.
  void move(std::size_t state, const std::vector<Op*>& adds, const std::vector<Op*>& needed) {
    Block *const condition = loop_->blocks[0], *const body = loop_->blocks[1];
    Op* loop = module_.new_op(Opcode::loop_, loop_->parent);
    loop->loc = loop_->loc;
    loop->operands = {loop_->operands[index_], loop_->operands[state]};
    std::unordered_map<const Value*, Value*> map;
    const auto block = [&](Block* from) {
      Block* into = module_.new_block(loop, loop_->parent->function);
      loop->blocks.push_back(into);
      for (const std::size_t i : {index_, state})
        map[from->params[i]] = module_.add_param(into, from->params[i]->type, from->params[i]->name);
      return into;
    };
    const auto now = [&](Value* v) {
      const auto it = map.find(v);
      return it == map.end() ? v : it->second;
    };
    const auto copy = [&](const Op* op, Block* into) {
      Op* made = module_.new_op(op->code, into);
      made->number = op->number;
      made->integer = op->integer;
      made->loc = op->loc;
      for (Value* v : op->operands) made->operands.push_back(now(v));
      for (Value* r : op->results) map[r] = module_.add_result(made, r->type, r->name);
      into->ops.push_back(made);
      return made;
    };
    Block* head = block(condition);
    for (const Op* op : condition->ops) copy(op, head);
    Block* trip = block(body);
    // State that is read is as it was before the loop.
    for (std::size_t i = 0; i < body->params.size(); ++i)
      if (i != index_ && i != state) map[body->params[i]] = loop_->operands[i];
    for (const Op* op : needed) copy(op, trip);
    Value* sum = map[body->params[state]];
    for (Op* add : adds) {
      Op* made = copy(add, trip);
      made->operands[0] = sum;
      sum = made->result();
    }
    const Value* next = body->yields()[index_];
    if (!map.contains(next)) {
      std::vector<const Op*> counting;
      collect_counting(next->def, map, counting);
      for (const Op* op : counting) copy(op, trip);
    }
    Op* yield = module_.new_op(Opcode::yield_, trip);
    yield->operands = {map[next], sum};
    trip->ops.push_back(yield);
    module_.add_result(loop, loop_->results[index_]->type);
    Value* result = module_.add_result(loop, loop_->results[state]->type, loop_->results[state]->name);
    auto& around = loop_->parent->ops;
    around.insert(std::ranges::find(around, loop_), loop);
    loop_->operands[state] = result;

    for (Op* add : adds) {
      ir::walk(body, [&](Op* op) {
        for (Value*& v : op->operands)
          if (v == add->result()) v = add->operands[0];
      });
      std::erase(body->ops, add);
    }
  }

  /// The operations from the index to the next one, in order.
  void collect_counting(const Op* op, const std::unordered_map<const Value*, Value*>& map,
                        std::vector<const Op*>& found) const {
    for (const Value* v : op->operands)
      if (inside(v) && v->def && !map.contains(v)) collect_counting(v->def, map, found);
    if (std::ranges::find(found, op) == found.end()) found.push_back(op);
  }

  bool inside(const Value* v) const { return v->block == loop_->blocks[1]; }

  ir::Module& module_;
  Op* loop_;
  BodyUses uses_;
  std::size_t index_ = 0;
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
