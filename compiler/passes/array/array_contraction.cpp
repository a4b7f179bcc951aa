// Which arrays a loop's iterations only use an own element of.
#include "lantern/compiler/passes/array/array_contraction.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/loop_state.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"

namespace lantern::passes {

namespace {

class Elements {
 public:
  Elements(ir::Module& module, Op* loop) : module_(module), loop_(loop), uses_(loop) {}

  bool run(std::size_t state) {
    const auto iterations = normalized_range(loop_);
    const auto fill = filled(loop_->operands[state]);
    if (!iterations || loop_->integer != 0 || !fill || !fill->fill) return false;
    fill_ = *fill;
    if (!own(*iterations, state)) return false;
    replace(state);
    return true;
  }

 private:
  /// The constants beside the iteration's index, which distinguish its elements.
  using Place = std::vector<std::int64_t>;

  /// Collects the accesses; false where one is to an element that may not be the iteration's own.
  bool own(const CountedLoop& iterations, std::size_t state) {
    auto use = state_use(uses_, loop_, state);
    if (!use || !use->is_straight(loop_)) return false;
    chain_ = std::move(use->values);
    const auto asks_for_shape = [](const ir::Use& u) { return u.op->is(Opcode::dim_, Opcode::zeros_like_); };
    return std::ranges::none_of(chain_, [&](const Value* v) { return std::ranges::any_of(uses_.of(v), asks_for_shape); }) &&
           std::ranges::all_of(use->accesses(), [&](const Op* op) { return place(*op, iterations); });
  }

  bool place(const Op& access, const CountedLoop& iterations) {
    Place constants;
    bool of_iteration = false;
    for (std::size_t d = 0; d < fill_.fill->operands.size() - 1; ++d) {
      const Value *index = access.operands[d + 1], *size = fill_.fill->operands[d + 1];
      if (index == iterations.number) {
        if (of_iteration || !same_number(iterations.bound, size)) return false;
        of_iteration = true;
        constants.push_back(-1 - static_cast<std::int64_t>(d));
      } else {
        if (!constant(index) || !constant(size)) return false;
        const std::int64_t at = constant(index)->integer;
        if (at < 0 || at >= constant(size)->integer) return false;
        constants.push_back(at);
      }
    }
    // The iteration's index in the same dimension everywhere: element (i, 2) is not another iteration's (2, i).
    const auto which = std::ranges::min(constants);
    if (!of_iteration || (which_ != 0 && which_ != which)) return false;
    which_ = which;
    places_[&access] = std::move(constants);
    return true;
  }

  void replace(std::size_t state) {
    Block* const body = loop_->blocks[1];
    Renaming read;
    std::map<Place, Value*> now;
    std::unordered_set<const Op*> updates;
    Value* v = chain_.front();
    for (std::size_t k = 0;; ++k) {
      for (const auto& [op, operand] : uses_.of(v))
        if (op->is(Opcode::get_)) read[op->result()] = value(now, places_.at(op));
      if (k + 1 == chain_.size()) break;
      v = chain_[k + 1];
      Op* const op = v->def;
      const Place& at = places_.at(op);
      Value* const given = op->operands.back();
      now[at] =
          op->is(Opcode::set_) || (fill_.zero && !now.contains(at)) ? given : sum(value(now, at), given, op);
      updates.insert(op);
    }
    const auto gone = [&](const Op* op) {
      return updates.contains(op) || (op->is(Opcode::get_) && read.contains(op->result()));
    };
    for (Block* b : ir::blocks_below(body)) std::erase_if(b->ops, gone);
    body->yields()[state] = body->params[state];
    // What was read may have been made of something read before.
    ir::replace_uses(body, read);
  }

  /// What an element holds, where nothing was put there what the fill put.
  Value* value(std::map<Place, Value*>& now, const Place& at) {
    if (const auto it = now.find(at); it != now.end()) return it->second;
    if (!fill_.zeros) return now[at] = fill_.fill->operands[0];
    ir::Builder b = ir::Builder::before(loop_->blocks[1]->ops.front(), {});
    return now[at] = b.op(Opcode::constant_, {}, {ir::Type(fill_.fill->result()->type.element())})->result();
  }
  /// x + y, where `at` is.
  static Value* sum(Value* x, Value* y, Op* at) { return ir::Builder::before(at).add({x, y}); }

  ir::Module& module_;
  Op* loop_;
  Uses uses_;
  Filled fill_;
  std::vector<Value*> chain_;
  std::unordered_map<const Op*, Place> places_;
  std::int64_t which_ = 0;
};

}  // namespace

void array_contraction(ir::Module& module) {
  const auto run = [&](ir::Function& f) {
    bool any = false;
    const Uses uses(f);
    for (Op* loop : loops_in(f))
      for (std::size_t i = 0; i < loop->operands.size(); ++i)
        if (loop->operands[i]->type.is_tensor() && uses.count(loop->results[i]) == 0) any |= Elements(module, loop).run(i);
    return any;
  };
  if (in_direct_style(module, run)) simplify(module);
}

}  // namespace lantern::passes
