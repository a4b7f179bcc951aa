// One walk over the program: accesses of a nest are collected, then each footprint is counted in its loops.
#include "traffic.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/live_uses.hpp"
#include "lantern/compiler/passes/support/memory.hpp"
#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::tool {

using namespace passes;

namespace {

/// What is no larger stays in the cache: the second level of today's processors.
constexpr double cache_bytes = 1 << 20;

double magnitude_of(const std::vector<Amount>& all) {
  double sum = 0;
  for (const Amount& a : all) sum += magnitude(a);
  return sum;
}

/// The tensor whose memory a value is, or lies in: updates, views and loops hand it on.
const Value* memory(const Value* v) {
  while (true) {
    const Op* op = v->def;
    if (!op) {
      const Op* loop = v->block->parent;
      if (!loop || !loop->is(Opcode::loop_) || v->index >= loop->operands.size()) return v;
      v = loop->operands[v->index];
    } else if (op->is(Opcode::loop_)) {
      v = op->operands[v->index];
    } else if (is_write(*op) || op->is(Opcode::take_, Opcode::slice_, Opcode::reshape_, Opcode::add_take_,
                                       Opcode::add_slice_)) {
      v = op->operands[0];
    } else {
      return v;
    }
  }
}

class TrafficWalk {
 public:
  explicit TrafficWalk(const ir::Module& module) {
    const ir::Function& entry = *module.entry;
    const LiveUses uses(entry);
    for (const Value* p : entry.body->params)
      if (p->type.is_tensor() && uses.elements_matter(p)) traffic_.least.push_back(bytes(p));
    for (const Value* v : entry.body->ops.back()->operands)
      if (v->type.is_tensor()) traffic_.least.push_back(bytes(v));
    traffic_.moved = of(entry);
  }

  Traffic take() { return std::move(traffic_); }

 private:
  /// Accesses of one innermost loop to one tensor.
  struct Reach {
    IndexForm each = 1;  ///< elements at once
    double bytes = 0;    ///< of an element
    bool read = false, written = false;
    std::unordered_set<const Op*> varying;  ///< loops on which the index depends
    const Value* tensor = nullptr;
    Amount footprint;
  };
  /// In order of the program.
  using Nest = std::vector<std::pair<std::vector<const Op*>, Reach>>;

  std::vector<Amount> of(const ir::Function& f) {
    if (!running_.insert(&f).second) {
      traffic_.complete = false;
      return {};
    }
    std::vector<const Op*> loops;
    const std::vector<Amount> all = block(f.body, loops);
    running_.erase(&f);
    return all;
  }

  /// What operations outside of loops move, each nest by itself.
  std::vector<Amount> block(const Block* b, std::vector<const Op*>& loops) {
    std::vector<Amount> all;
    const auto add = [&](std::vector<Amount> more) { all.insert(all.end(), more.begin(), more.end()); };
    for (const Op* op : b->ops) {
      if (op->is(Opcode::branch_) && !op->blocks.empty()) {
        std::vector<Amount> most;
        for (const Block* side : op->blocks)
          if (std::vector<Amount> some = block(side, loops); magnitude_of(some) >= magnitude_of(most)) most = std::move(some);
        add(std::move(most));
        continue;
      }
      Nest nest;
      operation(*op, loops, nest, all);
      add(moved(nest));
    }
    return all;
  }

  void operation(const Op& op, std::vector<const Op*>& loops, Nest& nest, std::vector<Amount>& others) {
    switch (op.code) {
      case Opcode::loop_:
        loops.push_back(&op);
        for (const Block* b : op.blocks)
          for (const Op* inner : b->ops) operation(*inner, loops, nest, others);
        loops.pop_back();
        return;
      case Opcode::branch_: {
        Nest most;
        for (const Block* side : op.blocks) {
          Nest some;
          for (const Op* inner : side->ops) operation(*inner, loops, some, others);
          if (some.size() >= most.size()) most = std::move(some);
        }
        for (auto& [where, reach] : most) join(nest, where, std::move(reach));
        return;
      }
      case Opcode::call_:
        for (Amount a : of(*op.callee)) {
          for (const Value* p : op.callee->body->params) substitute(a.form, p, op.operands[p->index]);
          for (const Op* loop : loops) again(a, loop, true);
          others.push_back(a);
        }
        return;
      case Opcode::push_:
      case Opcode::pop_:
        for (const Value* v : op.is(Opcode::push_) ? op.operands : op.results) {
          if (v->type.is_tensor() && !ir::owns_elements(op)) continue;
          Amount a = v->type.is_tensor() ? bytes(v) : Amount{1, size_of(v->type)};
          for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) again(a, *loop, true);
          others.push_back(a);
        }
        return;
      case Opcode::gemm_: {
        const auto of_two = [&](std::size_t x, std::size_t y) {
          return index_form(op.operands[x]) * index_form(op.operands[y]);
        };
        constexpr std::size_t m = 12, n = 13, k = 14;
        whole(nest, loops, op.operands[0], of_two(m, n), true, true);
        whole(nest, loops, op.operands[1], of_two(m, k), true, false);
        whole(nest, loops, op.operands[2], of_two(k, n), true, false);
        return;
      }
      case Opcode::undef_:
      case Opcode::take_:
      case Opcode::slice_:
      case Opcode::reshape_:
      case Opcode::dim_:
      case Opcode::yield_:
      case Opcode::forget_:
      case Opcode::check_:
        return;
      case Opcode::fill_:
        if (op.operands[0]->def && op.operands[0]->def->is(Opcode::undef_)) return;
        break;
      default:
        break;
    }
    if (is_access(op)) return access(op, loops, nest);
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      if (op.operands[i]->type.is_tensor() && !ir::only_shape(op, i))
        whole(nest, loops, op.operands[i], element_count(op.operands[i]), true, false);
    for (const Value* v : op.results)
      if (v->type.is_tensor()) whole(nest, loops, v, element_count(v), false, true);
  }

  void access(const Op& op, const std::vector<const Op*>& loops, Nest& nest) {
    Reach r{.each = 1, .bytes = size_of(op.operands[0]->type), .read = !op.is(Opcode::set_), .written = !op.is(Opcode::get_),
            .varying = {}, .tensor = memory(op.operands[0]), .footprint = {}};
    const auto index = [&](const Value* i) {
      for (const Unknown& u : index_form(i).unknowns())
        for (const Op* loop : loops)
          if (made_in(u.value, loop->blocks[1]) && (!counts(u.value) || u.value->block == loop->blocks[1]))
            r.varying.insert(loop);
    };
    for (std::size_t d = 0; d < op.operands[0]->type.dims().size(); ++d) index(op.operands[1 + d]);
    for (const Value* row = op.operands[0]; row->def && row->def->is(Opcode::take_); row = row->def->operands[0])
      index(row->def->operands[1]);
    join(nest, loops, std::move(r));
  }
  /// Whether a value is what a loop counts by.
  static bool counts(const Value* v) {
    const Op* loop = v->def ? nullptr : v->block->parent;
    if (!loop || !loop->is(Opcode::loop_)) return false;
    const auto counter = counter_of(loop);
    return counter && counter->index == v;
  }

  static void whole(Nest& nest, const std::vector<const Op*>& loops, const Value* v, IndexForm n, bool read, bool written) {
    join(nest, loops, {std::move(n), size_of(v->type), read, written, {}, memory(v), {}});
  }

  static void join(Nest& nest, const std::vector<const Op*>& loops, Reach reach) {
    for (auto& [where, r] : nest) {
      if (where != loops || r.tensor != reach.tensor) continue;
      r.read |= reach.read, r.written |= reach.written;
      r.varying.insert(reach.varying.begin(), reach.varying.end());
      if (magnitude({reach.each}) > magnitude({r.each})) r.each = reach.each;
      return;
    }
    nest.emplace_back(loops, std::move(reach));
  }

  std::vector<Amount> moved(Nest& nest) {
    double largest = 0;
    for (auto& [loops, r] : nest) {
      r.footprint = {r.each, r.bytes};
      for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) again(r.footprint, *loop, r.varying.contains(*loop));
      const Amount all{element_count(r.tensor), size_of(r.tensor->type)};  // an index may be data
      if (magnitude(all) < magnitude(r.footprint)) r.footprint = all;
      largest = std::max(largest, magnitude(r.footprint));
    }
    std::vector<Amount> amounts;
    for (auto& [loops, r] : nest) {
      const Amount all{element_count(r.tensor), size_of(r.tensor->type)};
      Amount a{r.each, r.bytes};
      for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
        const bool varies = r.varying.contains(*loop);
        const double size = magnitude(a);
        const bool leaves_cache = size >= largest && (size > cache_bytes || !a.form.number());
        again(a, *loop, varies || leaves_cache);
        if (varies && magnitude(a) > magnitude(all) && size <= magnitude(all)) a = all;
      }
      for (const bool done : {r.read, r.written})
        if (done) amounts.push_back(a);
    }
    return amounts;
  }

  /// In all iterations of a loop; of one on average where they move it together.
  void again(Amount& a, const Op* loop, bool each) {
    const auto counter = counter_of(loop);
    if (!counter) {
      for (const Unknown& u : a.form.unknowns()) traffic_.complete &= !made_in(u.value, loop->blocks[1]);
      if (each) a.form = a.form * IndexForm::of(Unknown(loop->blocks[1]->params[0]));
      return;
    }
    if (const auto inner = a.form.split(counter->index)) {
      if (inner->coefficient != IndexForm()) {
        a.form = inner->coefficient * (counter->first + counter->last) + IndexForm(2) * inner->rest;
        a.factor /= 2;
      }
    } else {
      traffic_.complete = false;
    }
    if (each) a.form = a.form * (counter->last - counter->first + IndexForm(1));
  }

  static void substitute(IndexForm& form, const Value* param, const Value* argument) {
    for (const Unknown& u : form.unknowns())
      if (u.value == param)
        form = form.with(u, u.is_size() ? size_form(argument, static_cast<std::size_t>(u.dimension)) : index_form(argument));
  }

  static double size_of(const ir::Type& type) { return static_cast<double>(element_bytes(type.element())); }
  static Amount bytes(const Value* tensor) { return {element_count(tensor), size_of(tensor->type)}; }

  Traffic traffic_;
  std::unordered_set<const ir::Function*> running_;
};

}  // namespace

double magnitude(const Amount& a) {
  double sum = 0;
  for (const auto& [product, n] : a.form.terms())
    sum += static_cast<double>(n) * std::pow(1000.0, static_cast<double>(product.size()));
  return sum * a.factor;
}

Traffic traffic(const ir::Module& module) { return TrafficWalk(module).take(); }

}  // namespace lantern::tool
