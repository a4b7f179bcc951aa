// Statements that are matrix products, and the loops without them.
#include "lantern/compiler/passes/array/raise.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/def_chain.hpp"
#include "lantern/compiler/passes/analysis/gemm.hpp"
#include "lantern/compiler/passes/analysis/loop_state.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

constexpr std::int64_t most_raised = 1 << 20;     ///< of one loop
constexpr std::int64_t largest_step = 1ll << 40;  ///< in memory, from iteration to iteration
constexpr std::size_t largest_nest = 400;         ///< operations; it is twice

/// An access as steps from iteration to iteration of the three loops.
struct Steps {
  IndexForm start;              ///< in the first iteration of all
  std::array<IndexForm, 3> by;  ///< from one iteration of a loop to the next
};

/// c[...] += scale * x[...] * y[...] in three loops, which may be anywhere in the body of the outermost.
struct RaisedProduct {
  Op* write = nullptr;      ///< what adds to the element, or stores the sum
  const Op* sum = nullptr;  ///< the loop that adds up a number first, if there is one, and which result
  std::size_t sum_state = 0;
  Value* scaled = nullptr;  ///< the sum, or a multiple of it
  std::array<const Op*, 3> loops{};
  const Op *x = nullptr, *y = nullptr;  ///< `get`
  std::vector<Value*> scale;            ///< numbers from outside the loops
  bool negative = false;

  std::size_t state = 0;                           ///< of the outermost loop: c
  Steps at_c, at_x, at_y;                          ///< in memory
  std::size_t i = 0, j = 0, k = 0;                 ///< which of the loops
  bool before = false;                             ///< the product comes before the loops
  Value *x_tensor = nullptr, *y_tensor = nullptr;  ///< from outside the loops, or null:
  std::size_t x_state = 0, y_state = 0;            ///< what the loops leave of this state
};

/// Finds the product that a write adds, and whether it may be taken out of its loops.
class GemmMatcher {
 public:
  GemmMatcher(Op* write, const Uses& uses) : uses_(uses) { p_.write = write; }

  std::optional<RaisedProduct> run() {
    if (!p_.write->operands[0]->type.is_float_element() || !value(p_.write->operands.back()) || !nest() ||
        !factors() || !roles() || !state() || !placed())
      return {};
    return p_;
  }

 private:
  const Op* outermost() const { return p_.loops[0]; }
  bool outside(const Value* v) const { return !made_in(v, outermost()->blocks[1]); }
  bool outside(const IndexForm& f) const {
    return std::ranges::all_of(
        f.unknowns(), [&](const Unknown& u) { return ir::visible_from(u.value, outermost()->parent); });
  }
  bool used_once(const Value* v) const {
    return uses_.once(v);
  }

  // ---- what is written

  bool value(Value* v) {
    const Op& w = *p_.write;
    if (summed(v)) return true;
    RaisedProduct none;
    none.write = p_.write;
    start_again(none);
    if (w.is(Opcode::add_at_)) return product(v);
    // c[...] = c[...] + x y
    const Op *const op = v->def, *const get = read_of_own_element(uses_, w);
    const auto own = get ? std::ranges::find(op->operands, get->result()) - op->operands.begin() : 2;
    if (own > 1) return false;
    p_.negative ^= op->is(Opcode::sub_);
    own_ = get;
    return product(op->operands[own == 0 ? 1 : 0]);
  }

  /// A loop's sum, or a number times that, and something else, in the block of the write.
  bool summed(Value* v) {
    const Op* const op = v->def;
    if (!op || op->parent != p_.write->parent || !used_once(v)) return false;
    if (op->is(Opcode::loop_)) {
      if (!v->type.is_float_element() || !v->type.is_scalar()) return false;
      const Block* const body = op->blocks[1];
      const Value* const acc = body->params[v->index];
      const Op* const next = body->ops.back()->operands[v->index]->def;
      const Uses uses(op);
      if (!next || next->parent != body || uses.of(acc).size() != 1 || uses.of(next->result()).size() != 1 ||
          !uses.of(op->blocks[0]->params[v->index]).empty())
        return false;
      for (const std::size_t own : {0u, 1u}) {
        if (next->operands.size() != 2 || next->operands[own] != acc) continue;
        if (!(next->is(Opcode::add_) || (next->is(Opcode::sub_) && own == 0))) continue;
        p_.sum = op;
        p_.sum_state = v->index;
        p_.scaled = v;
        p_.negative ^= next->is(Opcode::sub_);
        return product(next->operands[1 - own]);
      }
      return false;
    }
    if (op->is(Opcode::add_, Opcode::sub_)) {
      const RaisedProduct before = p_;
      for (const std::size_t side : {0u, 1u}) {
        if (summed(op->operands[side])) {
          p_.negative ^= op->is(Opcode::sub_) && side == 1;
          return true;
        }
        start_again(before);
      }
      return false;
    }
    if (op->is(Opcode::neg_)) {
      if (!summed(op->operands[0])) return false;
      p_.negative = !p_.negative;
      return multiplied(v, op->operands[0]);
    }
    if (op->is(Opcode::mul_)) {
      const RaisedProduct before = p_;
      for (const std::size_t side : {0u, 1u}) {
        if (summed(op->operands[side])) {
          p_.scale.push_back(op->operands[1 - side]);
          return multiplied(v, op->operands[side]);
        }
        start_again(before);
      }
    }
    return false;
  }

  /// Of a number times a sum and something else each part would have to be multiplied.
  bool multiplied(Value* v, const Value* of) {
    if (of != p_.scaled) return false;
    p_.scaled = v;
    return true;
  }
  void start_again(const RaisedProduct& from) {
    p_ = from;
    gets_.clear();
  }

  /// Two elements, and numbers.
  bool product(Value* v) {
    const Op* const op = v->def;
    if (op && op->is(Opcode::mul_)) return product(op->operands[0]) && product(op->operands[1]);
    if (op && op->is(Opcode::neg_)) {
      p_.negative = !p_.negative;
      return product(op->operands[0]);
    }
    if (op && op->is(Opcode::get_) && op->result()->type.is_scalar() && !op->result()->type.is_vector()) {
      gets_.push_back(op);
      return gets_.size() <= 6;
    }
    p_.scale.push_back(v);
    return p_.scale.size() <= 6;
  }

  // ---- the loops

  bool nest() {
    std::size_t level = 3;
    if (p_.sum) p_.loops[--level] = p_.sum;
    std::vector<const Op*> branches;
    for (const Block* b = p_.write->parent; b && b->parent && level > 0; b = b->parent->parent) {
      if (b->parent->is(Opcode::branch_))
        branches.push_back(b->parent);
      else if (b->parent->is(Opcode::loop_))
        p_.loops[--level] = b->parent;
      else
        return false;
    }
    if (level > 0) return false;
    for (std::size_t l = 0; l < 3; ++l) {
      const auto counter = counter_of(p_.loops[l]);
      if (!counter || !outside(counter->first) || !outside(counter->last)) return false;
      counters_[l] = *counter;
    }
    if (!small_number()) return false;
    return std::ranges::all_of(branches, [&](const Op* b) { return asks_for_iterations(*b); }) &&
           std::ranges::all_of(p_.scale, [&](const Value* v) { return outside(v) || constant(v); });
  }

  /// Not for sizes that are known to be small.
  bool small_number() const {
    std::int64_t work = 1;
    for (const Counter& c : counters_) {
      const auto n = (c.last - c.first + 1).number();
      if (!n) return true;
      if (*n <= 0 || *n > most_raised) return false;
      work *= *n;
    }
    return work >= large_product;
  }

  /// A branch, on the way to the write by its first side, that asks whether one of the loops has an iteration.
  bool asks_for_iterations(const Op& branch) const {
    const Op* const test = branch.operands[0]->def;
    if (!test || !test->is(Opcode::lt_)) return false;
    for (const Block* b = p_.write->parent; b; b = b->parent->parent)
      if (b->parent == &branch) {
        if (b != branch.blocks[0]) return false;
        break;
      }
    const IndexForm iterations = index_form(test->operands[1]) - index_form(test->operands[0]);
    return std::ranges::any_of(counters_, [&](const Counter& c) { return iterations == c.last - c.first + 1; });
  }

  // ---- the accesses

  /// How an index moves with the loops.
  std::optional<Steps> steps(IndexForm f) const {
    Steps s;
    for (std::size_t l = 3; l-- > 0;) {
      const auto split = f.split(counters_[l].index);
      if (!split) return {};
      s.by[l] = split->coefficient;
      f = split->rest;
    }
    for (std::size_t l = 0; l < 3; ++l) {
      if (!outside(s.by[l])) return {};
      f += s.by[l] * counters_[l].first;
    }
    if (!outside(f)) return {};
    s.start = f;
    return s;
  }

  std::optional<Steps> in_memory(const Op& access) const {
    IndexForm flat;
    const auto rank = static_cast<std::size_t>(access.operands[0]->type.rank());
    for (std::size_t d = 0; d < rank; ++d) {
      const IndexForm index = index_form(access.operands[1 + d]);
      const auto moves = steps(index);
      if (!moves) return {};
      for (const IndexForm& by : moves->by)
        if (const auto n = by.number(); n && (*n < 0 || *n > most_raised)) return {};
      if (d > 0) flat = flat * size_form(access.operands[0], d);
      flat += index;
    }
    return steps(flat);
  }

  bool factors() {
    // Elements that are the same in all iterations are numbers.
    std::vector<const Op*> moving;
    for (const Op* get : gets_) {
      if (outside(get->result()))
        p_.scale.push_back(get->result());
      else
        moving.push_back(get);
    }
    if (moving.size() != 2) return false;
    p_.x = moving[0];
    p_.y = moving[1];
    const auto c = in_memory(*p_.write), x = in_memory(*p_.x), y = in_memory(*p_.y);
    if (!c || !x || !y) return false;
    p_.at_c = *c;
    p_.at_x = *x;
    p_.at_y = *y;
    return true;
  }

  static bool moves(const Steps& s, std::size_t l) { return s.by[l].number() != 0; }
  static int set_of(const Steps& s) {
    int bits = 0;
    for (std::size_t l = 0; l < 3; ++l) bits |= static_cast<int>(moves(s, l)) << l;
    return bits;
  }

  /// i and j are in c, j side by side; i and k in x; k and j in y.
  bool roles() {
    const int c = set_of(p_.at_c), x = set_of(p_.at_x), y = set_of(p_.at_y);
    if ((c | x | y) != 7 || (c ^ x ^ y) != 0 || c == 7 || x == 7 || y == 7 || c == x || c == y || x == y)
      return false;
    for (std::size_t l = 0; l < 3; ++l)
      if (!moves(p_.at_c, l)) p_.k = l;
    const std::size_t one = (p_.k + 1) % 3, other = (p_.k + 2) % 3;
    if (p_.at_c.by[one].number() == 1)
      p_.j = one, p_.i = other;
    else if (p_.at_c.by[other].number() == 1)
      p_.j = other, p_.i = one;
    else
      return false;
    if (!moves(p_.at_x, p_.i)) {
      std::swap(p_.x, p_.y);
      std::swap(p_.at_x, p_.at_y);
    }
    return true;
  }

  // ---- who may tell that the product is taken elsewhere

  struct Tensor {
    std::size_t state;
    DefChain versions;
  };
  /// The state of the outermost loop that a tensor is a version of.
  std::optional<Tensor> tensor(const Value* v) const {
    for (std::size_t s = 0; s < outermost()->results.size(); ++s) {
      if (!(outermost()->results[s]->type == v->type)) continue;
      Tensor t{s, {}};
      if (t.versions.collect_defs(outermost(), s) && t.versions.values.contains(v)) return t;
    }
    return {};
  }

  bool state() {
    auto c = tensor(p_.write->operands[0]);
    if (!c) return false;
    p_.state = c->state;
    const Reads reads = reads_of(c->versions, outermost());
    if (reads.others || reads.gets.size() * c->versions.writes.size() > 400) return false;
    const bool stores = p_.sum && p_.write->is(Opcode::set_);
    after_ = before_ = true;
    for (const Op* get : reads.gets) {
      if (get == own_ || (p_.sum && reads_start(*get))) continue;
      const bool unseen = is_independent_of(*get, *p_.write, outermost(), Iteration::earlier);
      after_ &= unseen;
      before_ &= unseen && is_independent_of(*get, *p_.write, outermost(), Iteration::later);
    }
    for (const Op* w : c->versions.writes) {
      if (w == p_.write || w->is(Opcode::add_at_)) continue;
      after_ &= is_independent_of(*p_.write, *w, outermost(), Iteration::later);
      before_ &= is_independent_of(*p_.write, *w, outermost(), Iteration::earlier);
    }
    before_ &= !stores;
    return after_ || before_;
  }

  /// True for the element that a sum starts with, which is then stored in its place.
  bool reads_start(const Op& get) const {
    return used_once(get.result()) && get.result() == p_.sum->operands[p_.sum_state] &&
           get.parent == p_.write->parent && get.operands[0] == p_.write->operands[0] &&
           std::equal(get.operands.begin() + 1, get.operands.end(), p_.write->operands.begin() + 1);
  }

  /// Where the elements of a factor are found: in a tensor from outside, in what the loops start with, or in
  /// what they leave.
  struct Found {
    Value* start = nullptr;  ///< the tensor from outside, or what the state starts with
    bool first = false, last = false;
    std::optional<std::size_t> state;
  };
  std::optional<Found> found(const Op& get) const {
    Value* const v = get.operands[0];
    if (outside(v)) return Found{v, true, true, {}};
    const auto t = tensor(v);
    if (!t || t->versions.writes.size() > 40) return {};
    const auto independent = [&](Iteration when) {
      return std::ranges::all_of(t->versions.writes,
                                 [&](const Op* w) { return is_independent_of(get, *w, outermost(), when); });
    };
    Found f{outermost()->operands[t->state], independent(Iteration::earlier), independent(Iteration::later), t->state};
    return f.first || f.last ? std::optional(f) : std::nullopt;
  }

  bool placed() {
    const auto x = found(*p_.x), y = found(*p_.y);
    if (!x || !y) return false;
    // Before the loops nothing is copied that they change.
    p_.before = before_ && x->first && y->first && !(after_ && x->last && y->last);
    if (!p_.before && !after_) return false;
    const auto take = [&](const Found& f, Value*& tensor, std::size_t& state) {
      const bool from_start = p_.before || !f.last || !f.state;
      tensor = from_start ? f.start : nullptr;
      state = f.state.value_or(0);
    };
    take(*x, p_.x_tensor, p_.x_state);
    take(*y, p_.y_tensor, p_.y_state);
    return true;
  }
  const Uses& uses_;
  RaisedProduct p_;
  std::vector<const Op*> gets_;
  const Op* own_ = nullptr;  ///< the element as it was
  std::array<Counter, 3> counters_;
  bool after_ = false, before_ = false;
};

/// Writes a loop twice, once without its products.
class Raising {
 public:
  Raising(ir::Module& module, Op* loop, std::vector<RaisedProduct> products)
      : module_(module), loop_(loop), products_(std::move(products)) {}

  /// Notes what gives way to what: others may still be known by the loop's results.
  void run(Renaming& instead) {
    ir::Builder b = ir::Builder::before(loop_);
    Op* const branch = b.branch(condition(b), ir::types_of(loop_->results));
    ir::Builder large(module_, branch->blocks[0], b.loc), other(module_, branch->blocks[1], b.loc);
    large.yield(by_products(large));
    Renaming names;
    other.yield(ir::clone(other, *loop_, names)->results);
    for (std::size_t i = 0; i < branch->results.size(); ++i) branch->results[i]->name = loop_->results[i]->name;
    std::erase(loop_->parent->ops, loop_);
    instead.merge(ir::pairs(loop_->results, branch->results));
    for (const RaisedProduct& p : products_) remark("raise", p.write->loc, "is a matrix product where there is enough to do");
  }

 private:
  Value* count(ir::Builder& b, const RaisedProduct& p, std::size_t l) {
    const auto [it, added] = counts_.try_emplace(p.loops[l], nullptr);
    if (added) {
      const Counter c = *counter_of(p.loops[l]);
      it->second = materialise(b, c.last - c.first + 1);
    }
    return it->second;
  }

  /// There is enough to do, and every index is in range.
  Value* condition(ir::Builder& b) {
    Value* all = nullptr;
    const auto need = [&](Value* v) { all = all ? b.land({all, v}) : v; };
    const auto at_most = [&](Value* x, Value* y) { need(b.le({x, y})); };
    std::unordered_set<const Op*> asked, checked;
    for (const RaisedProduct& p : products_) {
      Value* work = nullptr;
      for (std::size_t l = 0; l < 3; ++l) {
        Value* const n = count(b, p, l);
        work = work ? b.mul({work, n}) : n;
        if (!asked.insert(p.loops[l]).second) continue;
        at_most(b.integer(1), n);
        at_most(n, b.integer(most_raised));
      }
      at_most(b.integer(large_product), work);
      // Rows of the result do not overlap.
      if (!same_size(p)) at_most(count(b, p, p.j), materialise(b, p.at_c.by[p.i]));
      for (const Op* access : {static_cast<const Op*>(p.write), p.x, p.y})
        if (checked.insert(access).second) in_range(b, p, *access, need);
    }
    return all;
  }

  /// True where a row of the result is as long as the steps from row to row.
  static bool same_size(const RaisedProduct& p) {
    const Counter c = *counter_of(p.loops[p.j]);
    return p.at_c.by[p.i] == c.last - c.first + 1;
  }

  template <class Need>
  void in_range(ir::Builder& b, const RaisedProduct& p, const Op& access, const Need& need) {
    const auto rank = static_cast<std::size_t>(access.operands[0]->type.rank());
    for (std::size_t d = 0; d < rank; ++d) {
      IndexForm f = index_form(access.operands[1 + d]), low = f;
      const IndexForm size = size_form(access.operands[0], d);
      Value* high = nullptr;
      for (std::size_t l = 3; l-- > 0;) {
        const Counter c = *counter_of(p.loops[l]);
        const IndexForm by = f.split(c.index)->coefficient;
        low = low.with(c.index, c.first);
        if (by.number() == 0) continue;
        Value* const step = materialise(b, by);
        if (!by.number()) {
          need(b.le({b.integer(0), step}));
          need(b.le({step, b.integer(largest_step)}));
        }
        Value* const way = b.mul({step, b.sub({count(b, p, l), b.integer(1)})});
        high = high ? b.add({high, way}) : way;
      }
      Value* const first = materialise(b, low);
      need(b.le({b.integer(0), first}));
      Value* const n = materialise(b, size);
      need(b.lt({first, n}));
      if (high) need(b.lt({b.add({first, high}), n}));
    }
  }

  std::vector<Value*> by_products(ir::Builder& b) {
    std::unordered_map<std::size_t, Value*> starts;
    for (const RaisedProduct& p : products_)
      if (p.before) {
        Value*& c = starts.try_emplace(p.state, loop_->operands[p.state]).first->second;
        c = product(b, p, c, {});
      }
    Renaming names;
    Op* const rest = ir::clone(b, *loop_, names);
    for (const auto& [state, c] : starts) rest->operands[state] = c;
    const auto renamed = [&](Value* v) { return ir::renamed(names, v); };
    for (const RaisedProduct& p : products_) {
      // Without what is added, or with what the sum starts with.
      Value* const start = p.sum ? p.sum->operands[p.sum_state] : nullptr;
      const Value* from = renamed(!start           ? p.write->result()
                                  : is_zero(start) ? p.scaled
                                                   : p.sum->results[p.sum_state]);
      Value* to = renamed(start ? start : p.write->operands[0]);
      if (start && adds_sum_alone(p)) {
        from = renamed(p.write->result());
        to = renamed(p.write->operands[0]);
      }
      for (Block* block : rest->blocks) ir::replace_uses(block, from, to);
      // Later products of the chain are found by what they update now.
      for (auto& [original, copy] : names)
        if (copy == from) copy = to;
    }
    std::vector<Value*> results = rest->results;
    const std::vector<Value*> left = results;
    for (const RaisedProduct& p : products_)
      if (!p.before) results[p.state] = product(b, p, results[p.state], left);
    return results;
  }

  /// True for an update of which nothing is left without the sum.
  static bool adds_sum_alone(const RaisedProduct& p) {
    return p.write->is(Opcode::add_at_) && p.write->operands.back() == p.scaled &&
           is_zero(p.sum->operands[p.sum_state]);
  }

  Value* product(ir::Builder& b, const RaisedProduct& p, Value* c, const std::vector<Value*>& left) {
    const ir::Type element(c->type.element());
    Value* scale = nullptr;
    for (Value* v : p.scale) {
      if (const Op* k = constant(v)) v = b.number(k->number, element);
      scale = scale ? b.mul({scale, v}) : v;
    }
    if (!scale)
      scale = b.number(p.negative ? -1 : 1, element);
    else if (p.negative)
      scale = b.emit(Opcode::neg_, {scale});
    Value* const x = p.x_tensor ? p.x_tensor : left[p.x_state];
    Value* const y = p.y_tensor ? p.y_tensor : left[p.y_state];
    const auto form = [&](const IndexForm& f) { return materialise(b, f); };
    return b.emit(
        Opcode::gemm_,
        {c, x, y, scale, form(p.at_c.start), form(p.at_c.by[p.i]), form(p.at_x.start), form(p.at_x.by[p.i]),
         form(p.at_x.by[p.k]), form(p.at_y.start), form(p.at_y.by[p.k]), form(p.at_y.by[p.j]),
         counts_.at(p.loops[p.i]), counts_.at(p.loops[p.j]), counts_.at(p.loops[p.k])});
  }

  ir::Module& module_;
  Op* loop_;
  std::vector<RaisedProduct> products_;
  std::unordered_map<const Op*, Value*> counts_;
};

std::size_t size_of(const Op* loop) {
  std::size_t n = 0;
  for (const Block* b : loop->blocks) ir::walk(const_cast<Block*>(b), [&](Op*) { ++n; });
  return n;
}

}  // namespace

void raise_products(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    const Uses uses(*f);
    std::vector<Op*> writes;
    ir::walk(f->body, [&](Op* op) {
      if (is_write(*op)) writes.push_back(op);
    });
    std::vector<std::pair<Op*, std::vector<RaisedProduct>>> nests;
    for (Op* write : writes) {
      auto product = GemmMatcher(write, uses).run();
      if (!product) continue;
      Op* const loop = const_cast<Op*>(product->loops[0]);
      const auto same = std::ranges::find_if(nests, [&](const auto& n) { return n.first == loop; });
      if (same == nests.end())
        nests.push_back({loop, {*product}});
      else
        same->second.push_back(*product);
    }
    std::unordered_set<const Op*> gone;
    Renaming instead;
    for (auto& [loop, products] : nests) {
      bool free = size_of(loop) <= largest_nest;
      for (const Op* around = loop; around; around = around->parent->parent) free &= !gone.contains(around);
      for (const auto& [other, p] : nests)
        for (const Op* around = other->parent->parent; around; around = around->parent->parent)
          free &= around != loop || !gone.contains(other);
      if (!free) continue;
      Raising(module, loop, products).run(instead);
      gone.insert(loop);
    }
    if (instead.empty()) continue;
    any = true;
    ir::replace_uses(f->body, instead);
  }
  if (any) simplify(module);
}

}  // namespace lantern::passes
