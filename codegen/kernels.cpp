// A loop is tried before those that it holds.
#include "lantern/codegen/kernels.hpp"

#include <algorithm>

#include "lantern/codegen/analysis.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::codegen {

using ir::Combine;
using ir::Op;
using ir::Opcode;
using ir::Value;

namespace {

/// So few trips, where that is known, are sooner done than a kernel is launched.
constexpr std::int64_t few_trips = 32;
/// Bytes of arguments that every GPU passes to a kernel, less those that all kernels have.
constexpr std::size_t most_arguments = 4000;

/// An operation that makes no tensor: numbers, views, updates in place, constructs that hand tensors through.
bool makes_no_tensor(const Op& op, const LiveUses& uses) {
  switch (op.code) {
    case Opcode::branch_:
    case Opcode::loop_:
    case Opcode::call_:
    case Opcode::take_:
    case Opcode::slice_:
    case Opcode::reshape_:
    case Opcode::undef_:
      return true;
    case Opcode::fill_:
      return !uses.elements_matter(op.result());  // a shape
    case Opcode::select_:
      return op.operands[0]->type.is_scalar();
    default:
      return std::ranges::none_of(op.results, [](const Value* v) { return v->type.is_tensor(); }) ||
             op.in_place;
  }
}

/// Whether a thread of a GPU can do it: without an arena and tapes, printing in order, or the host's
/// functions.
bool runs_on_device(const Op& op, const LiveUses& uses) {
  const auto elsewhere = [](const Value* v) {
    return v->type.is_ref() || v->type.is_cont() || v->type.is_tree();
  };
  if (std::ranges::any_of(op.operands, elsewhere) || std::ranges::any_of(op.results, elsewhere)) return false;
  switch (op.code) {
    case Opcode::push_:
    case Opcode::pop_:
    case Opcode::print_:
    case Opcode::external_:
    case Opcode::forget_:
    case Opcode::closure_:
    case Opcode::fun_:
    case Opcode::jump_:
    case Opcode::slot_:
    case Opcode::ref_new_:
    case Opcode::add_einsum_:
    case Opcode::add_matmul_:
    case Opcode::gemm_:
      return false;
    default:
      return makes_no_tensor(op, uses);
  }
}

bool runs_on_device(ir::Block* block, const LiveUses& uses) {
  bool can = true;
  ir::walk(block, [&](const Op* op) { can &= runs_on_device(*op, uses); });
  return can;
}

/// A loop that does not keep a state in one memory would need another in every trip.
bool keeps_states(ir::Block* block) {
  bool keeps = true;
  ir::walk(block, [&](const Op* op) {
    if (op->is(Opcode::loop_))
      for (std::size_t i = 0; i < op->results.size(); ++i)
        keeps &= !op->results[i]->type.is_tensor() || keeps_memory(*op, i);
  });
  return keeps;
}

/// The loop that makes up a body, beside constants, sizes and sums of integers; null where there is more.
const Op* only_loop(const ir::Block* body) {
  const Op* found = nullptr;
  for (const Op* op : body->ops) {
    const bool integer = ir::info(op->code).elementwise && op->result()->type.is_integer() &&
                         op->result()->type.is_scalar() && !op->is(Opcode::div_) && !op->is(Opcode::rem_);
    if (op->is(Opcode::constant_) || op->is(Opcode::dim_) || op->is(Opcode::yield_) || integer) continue;
    if (!op->is(Opcode::loop_) || found) return nullptr;
    found = op;
  }
  return found;
}

/// The loops of a trip that the threads of a GPU may share out by their numbers: of the tensors that the trip
/// changes each of them works on the column with its number alone (the last index is that), and nothing else
/// of the trip touches those.
class Columns {
 public:
  explicit Columns(const Op& loop) : loop_(loop) {
    for (const Value* p : loop.blocks[1]->params)
      if (p->type.is_tensor()) changed_.insert(p);
  }

  /// Empty where there are none. `known`: which values are known before the kernel.
  template <class Known>
  std::vector<const Op*> find(const Known& known) {
    ir::walk(loop_.blocks[1], [&](const Op* op) {
      if (!op->is(Opcode::loop_) || !possible_) return true;
      const auto count = passes::counted(op);
      const bool tensors = std::ranges::all_of(op->results, [&](const Value* v) {
        return v->type.is_tensor() || (count && v->index == count->index);
      });
      if (!count || !tensors || op->results.size() < 2 || !writes(*op)) return true;
      if (!known(op->operands[count->index]) || !known(count->bound)) return true;
      if (found_.empty()) first_ = op->operands[count->index], bound_ = count->bound;
      if (!passes::same_number(op->operands[count->index], first_) ||
          !passes::same_number(count->bound, bound_))
        return true;
      found_.push_back(op);
      return false;
    });
    look(loop_.blocks[1], nullptr);
    return possible_ ? found_ : std::vector<const Op*>{};
  }

 private:
  /// Whether the loop itself changes elements, not one inside.
  static bool writes(const Op& loop) {
    return std::ranges::any_of(loop.blocks[1]->ops,
                               [](const Op* op) { return op->is(Opcode::set_) || op->is(Opcode::add_at_); });
  }

  void look(const ir::Block* block, const Value* column) {
    for (const Op* op : block->ops) {
      if (!possible_) return;
      const bool touches =
          std::ranges::any_of(op->operands, [&](const Value* v) { return changed_.contains(v); });
      if (op->is(Opcode::loop_)) {
        for (std::size_t i = 0; i < op->operands.size(); ++i)
          if (changed_.contains(op->operands[i]))
            for (const Value* v : {op->results[i], op->blocks[0]->params[i], op->blocks[1]->params[i]})
              changed_.insert(v);
        const bool split = std::ranges::find(found_, op) != found_.end();
        for (const ir::Block* b : op->blocks)
          look(b, split ? op->blocks[1]->params[passes::counted(op)->index] : column);
      } else if (op->is(Opcode::branch_)) {
        for (const ir::Block* b : op->blocks) {
          look(b, column);
          for (std::size_t i = 0; i < op->results.size(); ++i)
            if (changed_.contains(b->ops.back()->operands[i])) changed_.insert(op->results[i]);
        }
      } else if (touches && !op->is(Opcode::yield_) && !op->is(Opcode::dim_)) {
        access(*op, column);
      }
    }
  }

  void access(const Op& op, const Value* column) {
    const bool element = op.is(Opcode::get_) || op.is(Opcode::set_) || op.is(Opcode::add_at_);
    if (!element || !column || !changed_.contains(op.operands[0])) return refuse();
    const auto rank = static_cast<std::size_t>(op.operands[0]->type.rank());
    if (rank == 0 || op.operands[rank] != column) return refuse();
    if (!op.is(Opcode::get_)) changed_.insert(op.result());
  }
  void refuse() { possible_ = false; }

  const Op& loop_;
  std::unordered_set<const Value*> changed_;
  std::vector<const Op*> found_;
  const Value *first_ = nullptr, *bound_ = nullptr;
  bool possible_ = true;
};

class Choice {
 public:
  Choice(const ir::Function& f, std::unordered_map<const Op*, Kernel>& kernels)
      : uses_(f), kernels_(kernels) {
    ir::walk(f.body, [&](Op* op) { return !op->is(Opcode::loop_) || !take(op); });
  }

 private:
  bool take(Op* loop) {
    if (!shared_out(*loop)) return false;
    Kernel kernel;
    ir::Block* const body = loop->blocks[1];
    if (!runs_on_device(body, uses_) || !keeps_states(body)) return false;
    for (const ir::Function* f : ir::callees(body)) {
      const LiveUses uses(*f);
      if (!runs_on_device(f->body, uses) || !keeps_states(f->body)) return false;
    }
    kernel.nest = {loop};
    if (!kernel.in_ranges())
      while (const Op* inner = only_loop(kernel.nest.back()->blocks[1])) {
        Kernel one;
        one.nest = {inner};
        if (!shared_out(*inner) || one.in_ranges() || !same_bounds(*inner, *loop) ||
            !hands_through(*kernel.nest.back(), *inner))
          break;
        kernel.nest.push_back(inner);
      }
    if (!kernel.in_ranges())
      kernel.columns = Columns(*kernel.nest.back()).find([&](const Value* v) {
        return (v->def && v->def->is(Opcode::constant_)) || ir::visible_from(v, loop->parent);
      });
    if (const auto trips = passes::constant_trips(loop);
        trips && *trips < few_trips && kernel.nest.size() == 1 && kernel.columns.empty())
      return false;
    capture(kernel);
    std::size_t bytes = 0;
    for (const Value* v : kernel.captured)
      bytes += v->type.is_tensor() ? 8 + 8 * static_cast<std::size_t>(std::max(1, v->type.rank())) : 8;
    if (bytes > most_arguments) return false;
    kernels_.emplace(loop, std::move(kernel));
    return true;
  }

  /// Trips in any order, of which each works on elements of its own, in one memory, but for numbers that are
  /// reduced.
  bool shared_out(const Op& loop) const {
    if (!ir::is_parallel(loop)) return false;
    bool computes = false;
    for (std::size_t i = 0; i < loop.results.size(); ++i) {
      const Combine combine = ir::combine(loop, i);
      if (ir::counts(combine)) {
        if (uses_.count(loop.results[i]) > 0) return false;
        continue;
      }
      computes = true;
      const bool tensor = loop.results[i]->type.is_tensor();
      if (tensor && (combine != Combine::element || !keeps_memory(loop, i))) return false;
    }
    return computes;
  }

  /// Whether the inner loop begins and ends at numbers that are known before the outermost one.
  static bool same_bounds(const Op& inner, const Op& outermost) {
    const auto known = [&](const Value* v) {
      return (v->def && v->def->is(Opcode::constant_)) || ir::visible_from(v, outermost.parent);
    };
    if (std::ranges::count(inner.blocks[1]->params, Combine::counter, &Value::combine) > 0) return false;
    const auto count = *passes::counted(&inner);
    return known(inner.operands[count.index]) && known(count.bound);
  }

  /// Whether the inner loop's tensors are those of the outer one, handed on from trip to trip.
  static bool hands_through(const Op& outer, const Op& inner) {
    const ir::Block* const body = outer.blocks[1];
    const Op& yield = *body->ops.back();
    for (std::size_t i = 0; i < inner.results.size(); ++i) {
      if (!inner.results[i]->type.is_tensor()) continue;
      const Value* from = inner.operands[i];
      if (from->def || from->block != body || yield.operands[from->index] != inner.results[i]) return false;
    }
    return true;
  }

  static void capture(Kernel& kernel) {
    std::unordered_set<const Value*> own, seen;
    const Op& loop = *kernel.nest.front();
    const auto blocks = [&](const Op* op) {
      own.insert(op->results.begin(), op->results.end());
      for (const ir::Block* b : op->blocks) own.insert(b->params.begin(), b->params.end());
    };
    for (ir::Block* b : loop.blocks) {
      own.insert(b->params.begin(), b->params.end());
      ir::walk(b, [&](const Op* op) { blocks(op); });
    }
    const auto take = [&](const Value* v) {
      if ((v->def && v->def->is(Opcode::constant_)) || own.contains(v) || !seen.insert(v).second) return;
      kernel.captured.push_back(v);
    };
    // Where the loops of the nest begin and end is known from the number of the trip.
    const auto operands = [&](const Op* op) {
      const auto level = std::ranges::find(kernel.nest, op);
      for (std::size_t i = 0; i < op->operands.size(); ++i)
        if (level == kernel.nest.end() || i != passes::counted(op)->index) take(op->operands[i]);
    };
    std::unordered_set<const ir::Block*> heads;
    for (const Op* o : kernel.nest) heads.insert(o->blocks[0]);
    operands(&loop);
    ir::walk(loop.blocks[1], [&](const Op* op) {
      if (!heads.contains(op->parent)) operands(op);
    });
  }

  LiveUses uses_;
  std::unordered_map<const Op*, Kernel>& kernels_;
};

}  // namespace

bool Kernel::in_ranges() const {
  return std::ranges::any_of(nest.front()->blocks[1]->params, ir::is_reduction, &Value::combine);
}

Kernels::Kernels(const ir::Module& module) {
  std::vector<const ir::Function*> functions = reachable(module);
  std::ranges::reverse(functions);  // callers first: what a kernel calls holds none
  for (const ir::Function* f : functions) {
    if (on_device_.contains(f) || f->cps) continue;
    std::unordered_map<const Op*, Kernel> found;
    Choice(*f, found);
    for (const auto& [loop, kernel] : found)
      for (const ir::Function* callee : ir::callees(loop->blocks[1])) on_device_.insert(callee);
    kernels_.merge(found);
  }
}

const Kernel* Kernels::of(const ir::Op* loop) const {
  const auto it = kernels_.find(loop);
  return it == kernels_.end() ? nullptr : &it->second;
}

}  // namespace lantern::codegen
