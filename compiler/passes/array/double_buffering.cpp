// Which nests copy back what others have written, and what becomes of the arrays.
#include "lantern/compiler/passes/array/double_buffering.hpp"

#include <algorithm>
#include <optional>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::passes {

namespace {

/// Loops in each other that set an element of an array in each iteration, and do nothing else with that
/// array.
struct NestWrites {
  std::vector<Counter> levels;  ///< outermost first
  Op* outermost = nullptr;
  std::size_t state = 0;  ///< of the outermost loop
  const Op* set = nullptr;
};

std::optional<NestWrites> writes_of(Value* last, const Value* first, const Uses& uses) {
  NestWrites w;
  while (last->def && last->def->is(Opcode::loop_)) {
    Op* const loop = last->def;
    const std::size_t state = last->index;
    const auto counter = counter_of(loop);
    if (loop->operands[state] != first || !counter || counter->step != 1 ||
        !uses.of(loop->blocks[0]->params[state]).empty())
      return {};
    if (!w.outermost) {
      w.outermost = loop;
      w.state = state;
    }
    w.levels.push_back(*counter);
    first = loop->blocks[1]->params[state];
    if (uses.count(first) != 1) return {};
    last = loop->blocks[1]->yields()[state];
    if (uses.count(last) != 1) return {};
  }
  if (!w.outermost || !last->def || !last->def->is(Opcode::set_) || last->def->operands[0] != first)
    return {};
  w.set = last->def;
  return w;
}

/// True where two nests run through the same iterations, and the accesses in them are to the same elements.
bool has_same_elements(const NestWrites& a, const NestWrites& b, const Op& of_a, const Op& of_b) {
  if (a.levels.size() != b.levels.size()) return false;
  const auto same = [&](const IndexForm& x, IndexForm y) {
    for (std::size_t k = 0; k < a.levels.size(); ++k) {
      if (!y.split(b.levels[k].index)) return false;
      y = y.with(b.levels[k].index, IndexForm::of(a.levels[k].index));
    }
    return x == y;
  };
  for (std::size_t k = 0; k < a.levels.size(); ++k)
    if (!same(a.levels[k].first, b.levels[k].first) || !same(a.levels[k].last, b.levels[k].last))
      return false;
  for (std::size_t d = 1; d <= static_cast<std::size_t>(a.set->result()->type.rank()); ++d)
    if (!same(index_form(of_a.operands[d]), index_form(of_b.operands[d]))) return false;
  return true;
}

/// True where a nest writes the same elements in each iteration of the loop around it: what it leaves is never older than an
/// iteration.
bool is_invariant(const NestWrites& w, const Block* body) {
  const auto outside = [&](IndexForm f) {
    for (const Counter& c : w.levels) {
      const auto s = f.split(c.index);
      if (!s || !made_outside(s->coefficient, body)) return false;
      f = s->rest;
    }
    return made_outside(f, body);
  };
  for (const Counter& c : w.levels)
    if (!outside(c.first) || !outside(c.last)) return false;
  for (std::size_t d = 1; d + 1 < w.set->operands.size(); ++d)
    if (!outside(index_form(w.set->operands[d]))) return false;
  return true;
}

bool starts_equal(const Value* a, const Value* b) {
  if (a == b) return true;
  const auto x = filled(a), y = filled(b);
  if (!x || !y || !x->fill || !y->fill || x->zeros != y->zeros || !(a->type == b->type)) return false;
  for (std::size_t d = 0; d < static_cast<std::size_t>(a->type.rank()); ++d)
    if (!(size_form(a, d) == size_form(b, d))) return false;
  const Value *const v = x->fill->operands[0], *const w = y->fill->operands[0];
  return x->zeros || v == w || (constant(v) && constant(w) && same_constant(*constant(v), *constant(w)));
}

/// True for a nest that nothing uses any more, of so many copies alone.
bool is_dead_copy(const Op* nest, const Uses& uses, std::size_t copies) {
  if (std::ranges::any_of(nest->results, [&](const Value* v) { return uses.count(v) > 0; })) return false;
  std::size_t gets = 0, sets = 0;
  bool pure = true;
  ir::walk(nest->blocks[1], [&](const Op* op) {
    gets += op->is(Opcode::get_);
    sets += op->is(Opcode::set_);
    pure &= op->is(Opcode::get_, Opcode::set_, Opcode::loop_, Opcode::yield_) ||
            (op->blocks.empty() && ir::info(op->code).elementwise && !op->is(Opcode::div_, Opcode::rem_)) ||
            op->is(Opcode::constant_);
  });
  return pure && gets == copies && sets == copies;
}

class Buffers {
 public:
  explicit Buffers(Op* loop) : loop_(loop), body_(loop->blocks[1]) {}

  std::vector<std::pair<std::size_t, std::size_t>> run() {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::optional<Uses> uses;
    for (std::size_t v = 0; v < loop_->operands.size(); ++v) {
      const Value* const copied = body_->yields()[v];
      if (!copied->type.is_tensor() || !copied->def || !copied->def->is(Opcode::loop_) ||
          copied->def->parent != body_)
        continue;
      if (!uses) uses.emplace(loop_);
      const auto copy = copy_to(v, *uses);
      if (!copy) continue;
      Value* const made = copy->set->operands.back()->def->operands[0];
      if (makes(writes_of(made, body_->params[v], *uses), *copy)) {
        replace(v, *copy, made);
      } else {
        const auto w =
            static_cast<std::size_t>(std::ranges::find(body_->yields(), made) - body_->yields().begin());
        if (w == loop_->operands.size() || !starts_equal(loop_->operands[v], loop_->operands[w])) continue;
        const auto write = writes_of(made, body_->params[w], *uses);
        if (!makes(write, *copy) || !is_invariant(*write, body_)) continue;
        for (Block* b : loop_->blocks) ir::replace_uses(b, b->params[w], b->params[v]);
        write->outermost->operands[write->state] = body_->params[w];
        replace(v, *copy, made);
        body_->yields()[w] = body_->params[v];
        pairs.emplace_back(w, v);
      }
      uses.reset();
    }
    remove_copies();
    return pairs;
  }

 private:
  /// The nest that copies an array to the state v, which nothing else changes.
  std::optional<NestWrites> copy_to(std::size_t v, const Uses& uses) const {
    Value* const copied = body_->yields()[v];
    const auto copy = writes_of(copied, body_->params[v], uses);
    const Op* const get = copy ? copy->set->operands.back()->def : nullptr;
    if (!get || !get->is(Opcode::get_) || !(get->operands[0]->type == copied->type)) return {};
    return copy;
  }

  /// True for the nest that has made what another one copies.
  static bool makes(const std::optional<NestWrites>& write, const NestWrites& copy) {
    return write && has_same_elements(*write, copy, *write->set, *copy.set) &&
           has_same_elements(*write, copy, *write->set, *copy.set->operands.back()->def);
  }

  /// Takes what is made in the place of its copy.
  void replace(std::size_t v, const NestWrites& copy, Value* made) {
    nests_.push_back(copy.outermost);
    ir::replace_uses(body_, body_->yields()[v], made);
  }

  void remove_copies() {
    if (nests_.empty()) return;
    const Uses uses(loop_);
    std::vector<Op*> dead;
    for (Op* nest : nests_) {
      const auto copies = static_cast<std::size_t>(std::ranges::count(nests_, nest));
      if (std::ranges::find(dead, nest) == dead.end() && is_dead_copy(nest, uses, copies))
        dead.push_back(nest);
    }
    erase(dead);
  }

  Op* loop_;
  Block* body_;
  std::vector<Op*> nests_;  ///< that copied, once for each array
};

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> double_buffering(Op* loop) {
  for (Op* l : loops_in(loop->blocks[1]))
    for (const auto& [from, to] : Buffers(l).run())
      ir::replace_uses(l->parent, l->results[from], l->results[to]);
  return Buffers(loop).run();
}

}  // namespace lantern::passes
