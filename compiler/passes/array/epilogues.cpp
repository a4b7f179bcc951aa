// Nest by nest; of several products that a nest reads it joins the last.
#include "lantern/compiler/passes/array/epilogues.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/gemm.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/clone.hpp"
#include "lantern/ir/shape.hpp"
#include "lantern/ir/team.hpp"

namespace lantern::passes {

namespace {

using ir::Builder;
using ir::Function;

/// A product for the routine that makes each element of its result once.
bool is_product(const Op& op) {
  if (!op.is(Opcode::add_einsum_) && !op.is(Opcode::add_matmul_)) return false;
  const ir::Notation n = *ir::concrete_notation(op);
  return contraction(n) &&
         std::ranges::all_of(n.result, [](const ir::Subscript& s) { return s.is_letter(); });
}

/// Loops in each other that set each element of one tensor, of what is in a product's result at that element.
struct Nest {
  std::vector<Op*> loops;  ///< the outermost first
  std::vector<Value*> indices, states, bounds;
  Op* store = nullptr;  ///< in the innermost
  /// The product's result or a view of it, in whose memory the nest works, or which it reads.
  Value* from = nullptr;
  Op* product = nullptr;
};

bool is_zero(const Value* v) { return constant(v) && constant(v)->integer == 0; }
bool is_one(const Value* v) { return constant(v) && constant(v)->integer == 1; }

/// One loop of a nest: an index from 0 up and a tensor; the index, the tensor and the bound join the nest.
bool add_loop(Op* loop, Nest& nest) {
  const auto count = counted(loop);
  if (!count || loop->operands.size() != 2 || !is_zero(loop->operands[count->index])) return false;
  const std::size_t state = 1 - count->index;
  Block* const body = loop->blocks[1];
  if (!loop->results[state]->type.is_tensor() || !step_of(loop, count->index) ||
      *step_of(loop, count->index) != 1)
    return false;
  nest.loops.push_back(loop);
  nest.indices.push_back(body->params[count->index]);
  nest.states.push_back(body->params[state]);
  nest.bounds.push_back(count->bound);
  return true;
}

/// True for what an iteration may do beside its loop or its store: operations that only compute a value.
bool computes(const Op& op) {
  return op.blocks.empty() && ir::info(op.code).effect == ir::Effect::none &&
         std::ranges::none_of(op.results, [](const Value* v) { return v->type.is_tensor(); });
}

bool are_the_indices(const Op& access, const Nest& nest) {
  return access.operands.size() >= 1 + nest.indices.size() &&
         std::equal(nest.indices.begin(), nest.indices.end(), access.operands.begin() + 1);
}

/// What an iteration does: loops, or reads and writes of its own element, beside operations that only compute
/// a value.
bool add_body(const Op& loop, Nest& nest) {
  const Block* const body = loop.blocks[1];
  const Value* const state = nest.states.back();
  const Op* next = nullptr;
  for (Op* op : body->ops) {
    const bool uses = std::ranges::count(op->operands, state) > 0;
    if (op->is(Opcode::yield_)) continue;
    if (op->is(Opcode::loop_) || op->is(Opcode::set_)) {
      if (next) return false;
      next = op;
    } else if (!computes(*op) || (uses && (next || !op->is(Opcode::get_) || !are_the_indices(*op, nest)))) {
      return false;
    }
  }
  const Value* const made = body->ops.back()->operands[state->index];
  if (!next || made->def != next) return false;
  if (next->is(Opcode::set_)) nest.store = made->def;
  return true;
}

/// True where a tensor is a product's result or a view of it, made in the block that the nest is in.
bool set_product(Nest& nest, Value* from) {
  const Value* result = from;
  while (result->def && result->def->is(Opcode::reshape_)) result = result->def->operands[0];
  if (!result->def || result->def->parent != nest.loops[0]->parent || !is_product(*result->def)) return false;
  nest.from = from;
  nest.product = result->def;
  return true;
}

std::optional<Nest> nest_of(Op* outermost) {
  Nest nest;
  for (Op* loop = outermost; !nest.store;) {
    const Value* const given = nest.states.empty() ? nullptr : nest.states.back();
    if (!add_loop(loop, nest) ||
        !(constant(nest.bounds.back()) || ir::visible_from(nest.bounds.back(), outermost->parent)))
      return {};
    if (given && loop->operands[nest.states.back()->index] != given) return {};
    if (!add_body(*loop, nest)) return {};
    if (!nest.store) loop = loop->blocks[1]->ops.back()->operands[nest.states.back()->index]->def;
  }
  const Op* const store = nest.store;
  if (store->operands[0] != nest.states.back() || !are_the_indices(*store, nest) ||
      store->operands.size() != nest.indices.size() + 2)
    return {};
  Value* const begin = outermost->operands[nest.states[0]->index];
  if (set_product(nest, begin)) return nest;
  if (!begin->def || !begin->def->is(Opcode::fill_) || !begin->def->operands[0]->def ||
      !begin->def->operands[0]->def->is(Opcode::undef_))
    return {};
  for (const Op* op : store->parent->ops)
    if (op->is(Opcode::get_) && are_the_indices(*op, nest) && op->operands[0]->type == begin->type &&
        set_product(nest, op->operands[0]))
      return nest;
  return {};
}

/// True where a tensor is known to have as many elements in a dimension.
bool has_size(const Value* t, std::size_t d, const Value* size) {
  if (const Op* c = constant(size)) {
    if (t->type.dims()[d] != ir::dynamic) return t->type.dims()[d] == c->integer;
  } else if (size->def && size->def->is(Opcode::dim_) && size->def->operands[0] == t &&
             size->def->integer == static_cast<std::int64_t>(d)) {
    return true;
  }
  if (t->def && t->def->is(Opcode::reshape_)) return has_size(t->def->operands[1], d, size);
  if (t->def && is_product(*t->def)) return has_size(t->def->operands[0], d, size);
  return t->def && t->def->is(Opcode::fill_) && same_number(t->def->operands[1 + d], size);
}

/// The product of sizes; a constant where they are.
Value* product_of(Builder& b, std::span<Value* const> sizes) {
  std::int64_t known = 1;
  Value* all = nullptr;
  for (Value* n : sizes) {
    if (const Op* c = constant(n))
      known *= c->integer;
    else
      all = all ? b.emit(Opcode::mul_, {all, n}) : n;
  }
  if (!all) return b.integer(known);
  return known == 1 ? all : b.emit(Opcode::mul_, {all, b.integer(known)});
}

/// The tensor with other sizes, unless it has them.
Value* reshaped(Builder& b, Value* t, const std::vector<Value*>& sizes, const ir::Type& type) {
  if (t->type == type) return t;
  std::vector<Value*> operands{b.number(0, ir::Type(type.element()))};
  operands.insert(operands.end(), sizes.begin(), sizes.end());
  Value* const shape = b.op(Opcode::fill_, operands, {type})->result();
  return b.op(Opcode::reshape_, {t, shape}, {type})->result();
}

void raise_unless(Builder& b, Value* holds, const std::string& message) {
  b.op(Opcode::check_, {holds})->text = b.module().intern(message);
}
/// Raises an error where a box is not inside of the result. The code below needs no other checks for its
/// accesses.
void require(Builder& b, Value* holds) {
  raise_unless(b, holds, "expected a box inside of a product's result");
}

class Epilogues {
 public:
  explicit Epilogues(Function& f) : function_(f), module_(*f.module), uses_(f) {}

  bool run() {
    std::vector<Block*> blocks{function_.body};
    ir::walk(function_.body,
             [&](Op* op) { blocks.insert(blocks.end(), op->blocks.begin(), op->blocks.end()); });
    bool changed = false;
    for (Block* block : blocks)
      for (std::size_t i = 0; i < block->ops.size(); ++i)
        if (block->ops[i]->is(Opcode::loop_)) changed |= fuse(block->ops[i]);
    return changed;
  }

 private:
  bool fuse(Op* loop) {
    const auto nest = nest_of(loop);
    if (!nest || !alone(*nest) || !can_sink(*nest)) return false;
    replace(*nest);
    return true;
  }

  /// Nothing but the nest reads the product's result, and the nest goes through all of it.
  bool alone(const Nest& nest) const {
    for (const Value* v = nest.from;; v = v->def->operands[0]) {
      const auto known = [&](const ir::Use& use) {
        if (ir::only_shape(*use.op, use.operand)) return true;
        if (v != nest.from) return use.op->is(Opcode::reshape_) && use.operand == 0 && is_view(nest, *use.op);
        return use.op == nest.loops[0] || (use.op->is(Opcode::get_) && use.op->parent == nest.store->parent &&
                                           use.operand == 0 && are_the_indices(*use.op, nest));
      };
      if (!std::ranges::all_of(uses_.of(v), known)) return false;
      if (v->def == nest.product) break;
    }
    for (const Value* v : nest.loops[0]->results)
      if (v->type.is_scalar() && uses_.count(v) > 0) return false;
    if (nest.from->type.dims().size() != nest.bounds.size()) return false;
    for (std::size_t d = 0; d < nest.bounds.size(); ++d)
      if (!has_size(nest.from, d, nest.bounds[d])) return false;
    return true;
  }

  /// What lies between the product and the nest only computes numbers and shapes, of other values: the
  /// product may come last.
  static bool can_sink(const Nest& nest) {
    const auto& ops = nest.product->parent->ops;
    for (auto at = std::ranges::find(ops, nest.product) + 1; *at != nest.loops[0]; ++at) {
      const Op& op = **at;
      if (is_view(nest, op)) continue;
      const bool shape = op.is(Opcode::reshape_) || op.is(Opcode::fill_);
      if ((!shape && !computes(op)) || std::ranges::count(op.operands, nest.product->result()) > 0)
        return false;
    }
    return true;
  }

  /// One of the views between the product's result and the tensor that the nest works on.
  static bool is_view(const Nest& nest, const Op& op) {
    for (const Op* view = nest.from->def; view != nest.product; view = view->operands[0]->def)
      if (view == &op) return true;
    return false;
  }

  void replace(const Nest& nest) {
    Op* const loop = nest.loops[0];
    Op* const product = nest.product;
    Value* const result = product->result();
    Function* const part = module_.add_function(function_.name + "_epilogue", {}, {});
    part->loc = loop->loc;
    Builder inside(module_, part->body);
    inside.loc = loop->loc;
    for (const char* name : {"row", "last_row", "column", "last_column"})
      module_.add_param(part->body, ir::I64, name);
    Value* const given = module_.add_param(part->body, result->type, result->name);
    std::vector<Value*> captured;
    ir::Renaming names{{result, given}};
    // What is asked for from around becomes a parameter, or is made again where it is a constant.
    const auto inner = [&](Builder& b, Value* v) -> Value* {
      if (const auto known = names.find(v); known != names.end()) return known->second;
      if (const Op* c = constant(v)) {
        Op* const copy = b.op(Opcode::constant_, {}, {v->type});
        ir::take_attributes(*copy, *c);
        return copy->result();
      }
      captured.push_back(v);
      return names[v] = module_.add_param(part->body, v->type, v->name);
    };
    std::vector<Value*> extent;
    for (std::size_t d = 0; d < nest.bounds.size(); ++d)
      extent.push_back(nest.from == result && !constant(nest.bounds[d])
                           ? inside.emit(Opcode::dim_, {given}, static_cast<std::int64_t>(d))
                           : inner(inside, nest.bounds[d]));
    const std::vector<Value*> range(part->body->params.begin(), part->body->params.begin() + 4);
    require(inside, inside.emit(Opcode::le_, {inside.integer(0), range[0]}));
    require(inside, inside.emit(Opcode::le_,
                                {range[1], product_of(inside, std::span(extent).first(extent.size() - 1))}));
    require(inside, inside.emit(Opcode::le_, {inside.integer(0), range[2]}));
    require(inside, inside.emit(Opcode::le_, {range[3], extent.back()}));
    Value* const view = reshaped(inside, given, extent, nest.from->type);
    Value* const made =
        build_for(inside, range[0], range[1], view, [&](Builder& b, Value* row, Value* state) {
          Value* rest = row;
          bool divided = false;
          for (std::size_t d = extent.size() - 1; d-- > 0;) {
            Value* index = rest;
            if (is_one(extent[d])) {
              index = b.integer(0);
            } else if (!std::all_of(extent.begin(), extent.begin() + static_cast<std::ptrdiff_t>(d),
                                    is_one)) {
              index = b.emit(Opcode::rem_, {rest, extent[d]});
              rest = b.emit(Opcode::div_, {rest, extent[d]});
              divided = true;
            }
            if (divided) {
              require(b, b.emit(Opcode::le_, {b.integer(0), index}));
              require(b, b.emit(Opcode::lt_, {index, extent[d]}));
            }
            names[nest.indices[d]] = index;
          }
          const auto copy = [&](Builder& to, const Block* from) {
            for (const Op* op : from->ops) {
              if (op->is(Opcode::yield_) || op->is(Opcode::loop_) || op->is(Opcode::set_)) continue;
              std::vector<Value*> operands;
              for (Value* v : op->operands)
                operands.push_back(inner(to, v == nest.from ? nest.states.back() : v));
              ir::clone_over(to, *op, std::move(operands), names);
            }
          };
          for (std::size_t d = 0; d + 1 < nest.loops.size(); ++d) copy(b, nest.loops[d]->blocks[1]);
          return build_for(b, range[2], range[3], state, [&](Builder& in, Value* column, Value* now) {
            names[nest.indices.back()] = column;
            names[nest.states.back()] = now;
            copy(in, nest.loops.back()->blocks[1]);
            std::vector<Value*> operands{now};
            for (std::size_t i = 1; i < nest.store->operands.size(); ++i)
              operands.push_back(inner(in, nest.store->operands[i]));
            return in.emit(Opcode::set_, operands);
          });
        });
    std::vector<Value*> shape;
    for (std::size_t d = 0; d < result->type.dims().size(); ++d)
      shape.push_back(inside.emit(Opcode::dim_, {given}, static_cast<std::int64_t>(d)));
    inside.yield({reshaped(inside, made, shape, result->type)});
    part->result_types = {result->type};

    // In the nest's place: the product, the call, and what the call gives in the nest's shape.
    std::erase_if(loop->parent->ops, [&](const Op* op) { return op == product || is_view(nest, *op); });
    Builder before = Builder::before(loop);
    before.loc = loop->loc;
    const auto outer = [&](Value* v) {
      return constant(v) ? before.integer(constant(v)->integer, v->type) : v;
    };
    Value *const zero = before.integer(0), *const columns = outer(nest.bounds.back());
    Value* const rows = product_of(before, std::span(nest.bounds).first(nest.bounds.size() - 1));
    std::vector<Value*> arguments{zero, rows, zero, columns, result};
    arguments.insert(arguments.end(), captured.begin(), captured.end());
    before.take(product);
    Op* const call = before.call(part, arguments);
    call->integer = ir::epilogue;
    Value* after = call->result();
    if (nest.from != result)
      after = before.op(Opcode::reshape_, {after, nest.from->def->operands[1]}, {nest.from->type})->result();
    Value* const old = loop->results[nest.states[0]->index];
    after->name = old->name;
    ir::replace_uses(function_.body, old, after);
    std::erase(loop->parent->ops, loop);
    uses_ = Uses(function_);
  }

  Function& function_;
  ir::Module& module_;
  Uses uses_;
};

}  // namespace

void fuse_epilogues(ir::Module& module) {
  bool changed = false;
  const std::vector<Function*> all = module.functions();
  for (Function* f : all)
    if (is_direct(*f)) changed |= Epilogues(*f).run();
  if (changed) eliminate_dead(module);
}

}  // namespace lantern::passes
