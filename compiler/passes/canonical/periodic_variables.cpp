// Which integers of a loop's state are periodic, and what they are in an iteration.
#include "lantern/compiler/passes/canonical/periodic_variables.hpp"

#include <algorithm>
#include <optional>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

constexpr std::size_t longest_period = 4;

/// In iteration t, counted from 0, the state is start + (t + phase) mod period * distance.
struct PeriodicVariable {
  std::int64_t period = 0, phase = 0;
  IndexForm start, distance;
};

/// Of the values that a state takes one after the other.
std::optional<PeriodicVariable> equally_spaced(const std::vector<IndexForm>& values) {
  const std::size_t period = values.size();
  std::optional<PeriodicVariable> found;
  for (std::size_t first = 0; first < period; ++first) {
    const auto value = [&](std::size_t k) { return values[(first + k) % period]; };
    const IndexForm distance = value(1) - value(0);
    bool equal = true;
    for (std::size_t k = 2; k < period; ++k) equal &= value(k) - value(k - 1) == distance;
    if (!equal || (found && value(0).number() != 0)) continue;
    found = PeriodicVariable{static_cast<std::int64_t>(period),
                             static_cast<std::int64_t>((period - first) % period), value(0), distance};
  }
  return found;
}

class PeriodicLoop {
 public:
  explicit PeriodicLoop(Op* loop) : loop_(loop), body_(loop->blocks[1]) {}

  /// What represents the loop's results, in their order before.
  std::vector<Value*> substitute() {
    std::vector<Value*> results = loop_->results;
    const auto counter = counter_of(loop_);
    if (!counter || counter->step != 1 || !counter->first.number()) return results;
    first_ = *counter->first.number();
    std::vector<std::pair<std::size_t, PeriodicVariable>> found;
    for (std::size_t i = 0; i < loop_->operands.size(); ++i)
      if (loop_->operands[i]->type == ir::I64 && body_->params[i] != counter->index &&
          !decides(loop_->blocks[0]->params[i]))
        if (const auto variable = periodic(i)) found.emplace_back(i, *variable);
    const Value* const index = counter->index;
    for (const auto& [i, variable] : found) {
      ir::Builder inside = ir::Builder::before(body_->ops.front()), behind = ir::Builder::after(loop_);
      inside.loc = behind.loc = loop_->loc;
      Value* const distance = distance_of(variable);
      Value* const now = value_at(inside, variable, distance, body_->params[index->index]);
      now->name = body_->params[i]->name;
      ir::replace_uses(body_, body_->params[i], now);
      results[i] = value_at(behind, variable, distance, loop_->results[index->index]);
      ir::replace_uses(loop_->parent, loop_->results[i], results[i]);
    }
    for (std::size_t k = found.size(); k-- > 0;) remove_state(loop_, found[k].first);
    return results;
  }

 private:
  bool decides(const Value* head_param) const {
    bool used = false;
    ir::walk(loop_->blocks[0], [&](const Op* op) {
      used |= std::ranges::find(op->operands, head_param) != op->operands.end();
    });
    return used;
  }

  std::optional<PeriodicVariable> periodic(std::size_t state) const {
    if (const auto values = rotated(state)) return equally_spaced(*values);
    if (const auto values = alternating(state)) return equally_spaced(*values);
    return {};
  }

  /// Of states that take each other's places.
  std::optional<std::vector<IndexForm>> rotated(std::size_t state) const {
    std::vector<IndexForm> values;
    std::size_t at = state;
    do {
      values.push_back(index_form(loop_->operands[at]));
      const Value* const next = body_->yields()[at];
      if (next->def || next->block != body_ || values.size() > longest_period) return {};
      at = next->index;
    } while (at != state);
    if (values.size() < 2) return {};
    return values;
  }

  /// Of a state that is made of itself alone.
  std::optional<std::vector<IndexForm>> alternating(std::size_t state) const {
    const Value* const param = body_->params[state];
    const Op* const next = body_->yields()[state]->def;
    if (!next || next->operands.size() != 2) return {};
    const IndexForm initial = index_form(loop_->operands[state]);
    if (next->is(Opcode::sub_) && next->operands[1] == param) {
      const IndexForm sum = index_form(next->operands[0]);
      if (!made_outside(sum, body_)) return {};
      return std::vector{initial, sum - initial};
    }
    const auto start = initial.number(), by = index_form(next->operands[1]).number();
    if (!start || !by) return {};
    if (next->is(Opcode::bit_xor_) && next->operands[0] == param)
      return std::vector{initial, IndexForm(*start ^ *by)};
    const bool steps =
        next->is(Opcode::rem_) && index_form(next->operands[0]) == IndexForm::of(param) + IndexForm(1);
    if (!steps || *by < 2 || *by > std::int64_t{longest_period} || *start < 0 || *start >= *by) return {};
    std::vector<IndexForm> values;
    for (std::int64_t k = 0; k < *by; ++k) values.emplace_back((*start + k) % *by);
    return values;
  }

  Value* distance_of(const PeriodicVariable& variable) const {
    ir::Builder before = ir::Builder::before(loop_);
    before.loc = loop_->loc;
    return materialise(before, variable.distance);
  }

  /// In the iteration that the loop counts so.
  Value* value_at(ir::Builder& b, const PeriodicVariable& variable, Value* distance, Value* count) const {
    const std::int64_t shift = variable.phase - first_;
    Value* const from = shift == 0 ? count : b.add({count, b.integer(shift)});
    Value* way = b.rem({from, b.integer(variable.period)});
    if (variable.distance.number() != 1) way = b.mul({way, made_here(b, distance)});
    if (variable.start.number() == 0) return way;
    return b.add({materialise(b, variable.start), way});
  }

  Op* loop_;
  Block* body_;
  std::int64_t first_ = 0;
};

}  // namespace

std::vector<Value*> periodic_variables(Op* loop) {
  for (Op* inner : loops_in(loop->blocks[1])) PeriodicLoop(inner).substitute();
  return PeriodicLoop(loop).substitute();
}

}  // namespace lantern::passes
