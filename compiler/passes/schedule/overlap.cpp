// A block is written anew: before each start comes what it needs, and nothing else that may wait.
#include "lantern/compiler/passes/schedule/overlap.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/external.hpp"

namespace lantern::passes {

namespace {

/// "f64" of a call that has halves, else nothing.
std::string_view halves_of(const Op& op) {
  const std::int64_t operation = ir::exchange_of(op);
  if (operation < 0 || operation > ir::last_exchange_of_all) return {};
  const std::string_view type = std::string_view(op.text).substr(std::string_view("void distributed_exchange_").size(), 3);
  return type == "f64" || type == "f32" ? type : std::string_view{};
}

/// What an operation and its blocks do that has an order.
struct OrderingEffects {
  bool ordered = false;  ///< prints, communicates
  bool state = false;    ///< cells and tapes
  bool checks = false;   ///< may be what others rely on
};

class Blocks {
 public:
  explicit Blocks(ir::Module& module) : module_(module) {}

  void run(Block* block) {
    for (const Op* op : std::vector<Op*>(block->ops))
      for (Block* inner : op->blocks) run(inner);
    if (std::ranges::any_of(block->ops, [](const Op* op) { return !halves_of(*op).empty(); })) rewrite(*block);
  }

 private:
  OrderingEffects effects_of(const Op* op) {
    if (const auto known = effects_.find(op); known != effects_.end()) return known->second;
    OrderingEffects all;
    std::unordered_set<const ir::Function*> seen;
    std::vector<const Op*> todo{op};
    const auto look = [&](const Op* one) {
      all.ordered |= one->is(Opcode::print_, Opcode::print_adjoint_) || ir::is_ordered_call(*one);
      const ir::Effect effect = ir::info(one->code).effect;
      all.state |= effect == ir::Effect::cell || effect == ir::Effect::tape;
      all.checks |= one->is(Opcode::check_);
      if (one->callee && seen.insert(one->callee).second)
        for (const Op* inner : one->callee->body->ops) todo.push_back(inner);
    };
    while (!todo.empty()) {
      const Op* const one = todo.back();
      todo.pop_back();
      look(one);
      for (Block* b : one->blocks) ir::walk(b, [&](const Op* inner) { look(inner); });
    }
    return effects_[op] = all;
  }

  /// Operations of the block that define what `op`, or what is in it, uses.
  void each_used(const Op* op, const auto& f) {
    for (Value* v : op->operands) f(v);
    for (Block* b : op->blocks)
      ir::walk(b, [&](const Op* inner) {
        for (Value* v : inner->operands) f(v);
      });
  }

  void rewrite(Block& block) {
    const std::vector<Op*> old = block.ops;
    std::unordered_map<const Op*, std::size_t> at;
    for (std::size_t i = 0; i < old.size(); ++i) at[old[i]] = i;
    std::unordered_map<const Value*, std::vector<std::size_t>> users;
    for (std::size_t i = 0; i < old.size(); ++i)
      each_used(old[i], [&](const Value* v) { users[v].push_back(i); });

    std::vector<bool> done(old.size(), false);
    std::vector<Op*> order;
    const auto emit_with_needs = [&](std::size_t last) {
      std::vector<bool> needed(last + 1, false);
      std::vector<std::size_t> todo{last};
      const auto need = [&](std::size_t i) {
        if (i > last || done[i] || needed[i]) return;
        needed[i] = true;
        todo.push_back(i);
      };
      needed[last] = true;
      while (!todo.empty()) {
        const std::size_t i = todo.back();
        todo.pop_back();
        const OrderingEffects own = effects_of(old[i]);
        each_used(old[i], [&](const Value* v) {
          if (v->def)
            if (const auto found = at.find(v->def); found != at.end()) need(found->second);
          // Whoever read a tensor before this may change it reads it before.
          if (v->type.is_tensor() && !old[i]->results.empty() && i != last)
            for (const std::size_t u : users[v])
              if (u < i) need(u);
        });
        for (std::size_t k = 0; k < i; ++k) {
          const OrderingEffects before = effects_of(old[k]);
          if (before.checks || (own.ordered && before.ordered) || (own.state && before.state)) need(k);
        }
      }
      for (std::size_t i = 0; i <= last; ++i)
        if (needed[i]) order.push_back(old[i]), done[i] = true;
    };
    for (std::size_t i = 0; i < old.size(); ++i)
      if (!halves_of(*old[i]).empty()) emit_with_needs(i);
    for (std::size_t i = 0; i < old.size(); ++i)
      if (!done[i]) order.push_back(old[i]);
    block.ops = order;
    for (Op* op : order)
      if (!halves_of(*op).empty()) split(block, op);
  }

  /// Whether it takes time that a message may use: a rank, a size or a comparison of ranks does not.
  static bool works(const Op& op) {
    if (op.is(Opcode::external_) && op.text && std::string_view(op.text).starts_with("int64_t distributed_")) return false;
    return !op.blocks.empty() || op.is(Opcode::call_, Opcode::external_) || ir::is_einsum(op.code);
  }

  /// Whether ranks compare there what they have called: all that was started is waited for before.
  static bool ends(const Op& op) {
    return op.is(Opcode::external_) && op.text && std::string_view(op.text).starts_with("int64_t distributed_end");
  }

  void split(Block& block, Op* op) {
    const auto here = std::ranges::find(block.ops, op);
    auto use = here + 1;
    bool between = false;
    const auto uses_it = [&](const Op* other) {
      bool any = false;
      each_used(other, [&](const Value* v) { any |= v == op->result(); });
      return any;
    };
    for (; use != block.ops.end() && !(*use)->is(Opcode::yield_) && !ends(**use) && !uses_it(*use); ++use) between |= works(**use);
    if (!between) return;
    const std::string type(halves_of(*op));
    const std::string element = type == "f64" ? "double" : "float";
    Op* const start = module_.new_op(Opcode::external_, &block);
    start->loc = op->loc;
    start->operands.assign(op->operands.begin(), op->operands.end() - 1);
    start->text = module_.intern("int64_t distributed_start_" + type + "(const char *, int64_t, int32_t, int32_t, int64_t, int64_t, int64_t, const " + element + " *)");
    start->integer = ir::in_order;
    Value* const number = module_.add_result(start, ir::I64);
    Value* const y = op->operands.back();
    op->operands = {number, y};
    op->text = module_.intern("void distributed_wait_" + type + "(const char *, int64_t, " + element + " *)");
    const auto place = here - block.ops.begin();
    block.ops.insert(use, op);
    block.ops[static_cast<std::size_t>(place)] = start;
  }

  ir::Module& module_;
  std::unordered_map<const Op*, OrderingEffects> effects_;
};

}  // namespace

void overlap(ir::Module& module) {
  Blocks blocks(module);
  for (ir::Function* f : module.functions())
    if (f->body) blocks.run(f->body);
}

void compare_ranks(ir::Module& module) {
  if (module.entry == nullptr || module.entry->body == nullptr) return;
  const Op* last = nullptr;
  for (ir::Function* f : module.functions())
    if (f->body)
      ir::walk(f->body, [&](const Op* op) {
        if (ir::communicates(*op)) last = op;
      });
  if (last == nullptr) return;
  ir::Builder b = ir::Builder::before(module.entry->body->ops.back(), last->loc);
  Op* const end = b.op(Opcode::external_, {}, {ir::I64});
  end->text = module.intern("int64_t distributed_end(const char *)");
  end->integer = ir::in_order;
}

}  // namespace lantern::passes
