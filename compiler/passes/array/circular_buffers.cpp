// Which tensors of a loop's state are circular buffers, and the loop over their rows.
#include "lantern/compiler/passes/array/circular_buffers.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "lantern/compiler/passes/analysis/def_chain.hpp"
#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/instance_count.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/compiler/passes/support/memory.hpp"

namespace lantern::passes {

namespace {

constexpr std::int64_t most_rows = 4;
/// For each row that is copied before and after the loop.
constexpr std::int64_t least_iterations = 4;

/// Where an access is: in row (t + ahead) mod rows.
struct RowAccess {
  std::int64_t rows = 0, ahead = 0;
  std::int64_t least = 0;     ///< the remainder is that of t + least
  std::size_t dimension = 0;  ///< whose index tells the row
  IndexForm stride;           ///< from a row to the next, in this dimension
  IndexForm within;           ///< of a flat tensor: the index in the row
};

/// True for what is negative if the numbers in it are not.
bool falls(const IndexForm& f) {
  return !f.terms().empty() && std::ranges::all_of(f.terms(), [](const auto& term) { return term.second < 0; });
}

/// The remainder in an index that the counter of a loop determines.
std::optional<RowAccess> row_access(const Op& access, std::size_t dimension, const Counter& counter,
                                    const Block* body) {
  const IndexForm index = index_form(access.operands[1 + dimension]);
  for (const Unknown& u : index.unknowns()) {
    const Op* const def = u.is_size() ? nullptr : u.value->def;
    if (!def || !def->is(Opcode::rem_, Opcode::bit_and_) || !made_in(u.value, body)) continue;
    auto rows = index_form(def->operands[1]).number();
    if (rows && def->is(Opcode::bit_and_)) rows = *rows == 1 || *rows == 3 ? *rows + 1 : 0;
    const auto from = index_form(def->operands[0]).split(counter.index);
    const auto split = index.split(u);
    if (!rows || *rows < 2 || *rows > most_rows || !from || from->coefficient.number() != 1 ||
        !from->rest.number() || !split || !made_outside(split->coefficient, body))
      continue;
    const std::int64_t least = *from->rest.number();
    // Of two rows the other one is 1 - t % 2.
    const bool other = *rows == 2 && falls(split->coefficient);
    if (!other) return RowAccess{*rows, least, least, dimension, split->coefficient, split->rest};
    return RowAccess{*rows, least + 1, least, dimension, IndexForm(0) - split->coefficient,
                     split->rest + split->coefficient};
  }
  return {};
}

class CircularBuffer {
 public:
  CircularBuffer(ir::Module& module, Op* loop, std::size_t state)
      : module_(module), loop_(loop), body_(loop->blocks[1]), state_(state), tensor_(loop->operands[state]) {}

  /// True where the state is a circular buffer.
  bool matches() {
    const auto counter = counter_of(loop_);
    if (!tensor_->type.is_tensor() || loop_->integer != 0 || !counter || counter->step != 1 ||
        !versions_.collect_defs(loop_, state_) || versions_.writes.empty())
      return false;
    const Reads reads = reads_of(versions_, loop_);
    std::vector<const Op*> accesses(versions_.writes.begin(), versions_.writes.end());
    accesses.insert(accesses.end(), reads.gets.begin(), reads.gets.end());
    if (reads.others || asks_for_zeros() || !find_rows(accesses, *counter)) return false;
    first_ = counter->first;
    if (!require(counter->last - first_ - IndexForm(least_iterations * rows_ - 1), *loop_) ||
        !visits_rows(accesses) || !require(first_ + IndexForm(least_), *loop_) ||
        !require(size_form(tensor_, dimension_) - IndexForm(rows_) * stride_, *loop_))
      return false;
    return std::ranges::all_of(accesses, [&](const Op* a) { return lies_in_row(*a); });
  }

  /// Makes the loop's rows arrays of their own; what represents the results as they were.
  SplitBuffers split() {
    Op *branch = nullptr, *other = nullptr;
    if (!conditions_.empty()) {
      ir::Builder b = ir::Builder::before(loop_);
      b.loc = loop_->loc;
      Value* all = nullptr;
      for (const IndexForm& f : conditions_) {
        Value* const holds = b.emit(Opcode::le_, {b.integer(0), materialise(b, f)});
        all = all ? b.emit(Opcode::land_, {all, holds}) : holds;
      }
      branch = keep_alternative(module_, loop_, all);
      other = branch->blocks[1]->ops.front();
    }
    std::vector<Value*> results = loop_->results;
    const auto count = static_cast<std::size_t>(rows_);
    std::vector<Value*> initial;
    for (std::size_t k = 0; k < count; ++k) initial.push_back(row_of(k));
    for (Value* v : initial) loop_->operands.push_back(v);
    for (Block* block : loop_->blocks) {
      std::vector<Value*> params;
      for (const Value* v : initial) params.push_back(module_.add_param(block, v->type, tensor_->name));
      if (block == body_) rows_of_[body_->params[state_]] = params;
    }
    Value* const last = body_->yields()[state_];
    rewrite(body_);
    // One iteration later, row (t + 1 + ahead) mod rows comes first.
    const Rows made = rows_of_.at(last);
    for (std::size_t k = 0; k < count; ++k) body_->yields().push_back(made[(k + 1) % count]);
    Rows left;
    for (const Value* v : initial) left.push_back(module_.add_result(loop_, v->type, tensor_->name));
    const Value* const counter = counter_of(loop_)->index;
    Value* const end = loop_->results[counter->index];
    Value* const whole = put_together(left, end);
    ir::replace_uses(loop_->parent, {{results[state_], whole}});
    remove_state(loop_, state_);
    if (branch) return {branch->results, {other}};
    results[state_] = whole;
    return {results, {}};
  }

 private:
  using Rows = std::vector<Value*>;

  bool find_rows(const std::vector<const Op*>& accesses, const Counter& counter) {
    const auto rank = static_cast<std::size_t>(tensor_->type.rank());
    for (std::size_t d = 0; d < rank; ++d) {
      places_.clear();
      for (const Op* a : accesses)
        if (a->operands.size() > 1 + d && a->operands[1 + d]->type == ir::I64)
          if (const auto place = row_access(*a, d, counter, body_)) places_.emplace(a, *place);
      if (places_.size() != accesses.size()) continue;
      const RowAccess& one = places_.begin()->second;
      rows_ = one.rows, dimension_ = d, stride_ = one.stride, ahead_ = one.ahead;
      for (const auto& [a, place] : places_) ahead_ = std::min(ahead_, place.ahead);
      const bool flat = rank == 1 && stride_.number().value_or(2) > 1;
      if (std::ranges::all_of(places_, [&](const auto& entry) {
            const RowAccess& p = entry.second;
            return p.rows == rows_ && p.stride == stride_ &&
                   (flat || (rank > 1 && stride_.number() == 1 && p.within.number() == 0));
          }))
        return true;
    }
    return false;
  }

  bool is_flat() const { return tensor_->type.rank() == 1; }
  std::size_t row_number(const Op& access) const {
    return static_cast<std::size_t>((places_.at(&access).ahead - ahead_) % rows_);
  }

  /// True for what is not negative, or is asked about before the loop.
  bool require(const IndexForm& f, const Op& at) {
    if (never_negative(f, at)) return true;
    if (f.number() || !made_outside(f, body_)) return false;
    if (std::ranges::find(conditions_, f) == conditions_.end()) conditions_.push_back(f);
    return true;
  }
  bool lies_in_row(const Op& access) {
    if (!is_flat()) return true;
    const IndexForm& within = places_.at(&access).within;
    return require(within, access) && require(stride_ - IndexForm(1) - within, access);
  }
  /// True where an iteration makes as many accesses as a row has elements, or that is asked before the loop:
  /// then copies of rows are in proportion to what the loop does.
  bool visits_rows(const std::vector<const Op*>& accesses) {
    const auto on_both_sides = [&](const Op& branch) {
      return std::ranges::all_of(branch.blocks, [&](const Block* side) {
        return std::ranges::any_of(accesses, [&](const Op* a) { return ir::holder_in(side, a) != nullptr; });
      });
    };
    InstanceCount made{.doubled = 0};
    for (const Op* a : accesses) {
      const auto one = instance_count(*a, body_, on_both_sides);
      if (!one) continue;
      const std::int64_t factor = std::max(made.factor, one->factor);
      made = {IndexForm(factor / made.factor) * made.doubled + IndexForm(factor / one->factor) * one->doubled,
              factor};
    }
    IndexForm size = stride_;
    if (!is_flat()) {
      size = 1;
      for (std::size_t d = 0; d < static_cast<std::size_t>(tensor_->type.rank()); ++d)
        if (d != dimension_) size = size * size_form(tensor_, d);
    }
    return require(made.doubled - IndexForm(made.factor) * size, *loop_);
  }
  bool asks_for_zeros() const {
    bool found = false;
    ir::walk(body_, [&](const Op* op) {
      found |= op->is(Opcode::zeros_like_) && versions_.values.contains(op->operands[0]);
    });
    return found;
  }

  // ---- copies of rows

  /// Row k of the buffer before iteration t: its number, or its first index.
  Value* row_at(ir::Builder& b, const IndexForm& t, std::size_t k) const {
    const IndexForm from = t + IndexForm(ahead_ + static_cast<std::int64_t>(k));
    const auto known = from.number();
    Value* const row = known && *known >= 0 ? b.integer(*known % rows_)
                                            : b.emit(Opcode::rem_, {materialise(b, from), b.integer(rows_)});
    return is_flat() ? b.emit(Opcode::mul_, {row, materialise(b, stride_)}) : row;
  }
  /// Appends where an element of it is.
  void add_place(ir::Builder& b, Value* row, std::span<Value* const> indices, Rows& operands) const {
    if (is_flat()) return operands.push_back(b.emit(Opcode::add_, {row, indices[0]}));
    const auto at = operands.size() + dimension_;
    operands.insert(operands.end(), indices.begin(), indices.end());
    operands.insert(operands.begin() + static_cast<std::ptrdiff_t>(at), row);
  }

  Rows sizes(ir::Builder& b) const {
    Rows all;
    for (std::size_t d = 0; d < static_cast<std::size_t>(tensor_->type.rank()); ++d)
      if (d != dimension_) all.push_back(materialise(b, size_form(tensor_, d)));
    if (!is_flat()) return all;
    Value* const size = materialise(b, stride_);
    // Rows that make up the tensor have no negative size.
    const bool exact = (size_form(tensor_, 0) - IndexForm(rows_) * stride_).number() == 0;
    return {exact ? size : b.emit(Opcode::imax_, {size, b.integer(0)})};
  }

  Value* over_row(ir::Builder& b, Value* initial, NestBody body) const {
    const Rows all = sizes(b);
    return build_nest(
        b, initial, all.size(),
        [&](ir::Builder&, std::span<Value* const> indices) { return all[indices.size()]; }, body);
  }

  Value* row_of(std::size_t k) const {
    ir::Builder b = ir::Builder::before(loop_);
    b.loc = loop_->loc;
    Rows filled = sizes(b);
    filled.insert(filled.begin(), b.zero(ir::Type(tensor_->type.element())));
    std::vector<std::int64_t> dims = is_flat() ? std::vector{ir::dynamic} : tensor_->type.dims();
    if (!is_flat()) dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dimension_));
    const ir::Type row = ir::Type::tensor(tensor_->type.element(), dims);
    Value* const at = row_at(b, first_, k);
    return over_row(b, b.op(Opcode::fill_, filled, {row})->result(),
                    [&](ir::Builder& in, Value* to, std::span<Value* const> indices) {
                      Rows from{tensor_}, place{to};
                      add_place(in, at, indices, from);
                      place.insert(place.end(), indices.begin(), indices.end());
                      place.push_back(in.emit(Opcode::get_, from));
                      return in.op(Opcode::set_, place, {to->type})->result();
                    });
  }

  Value* put_together(const Rows& rows, Value* end) const {
    ir::Builder b = ir::Builder::after(loop_);
    b.loc = loop_->loc;
    Value* whole = tensor_;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      Value* const at = row_at(b, IndexForm::of(end), k);
      whole = over_row(b, whole, [&](ir::Builder& in, Value* to, std::span<Value* const> indices) {
        Rows from{rows[k]}, place{to};
        add_place(in, at, indices, place);
        from.insert(from.end(), indices.begin(), indices.end());
        place.push_back(in.emit(Opcode::get_, from));
        return in.op(Opcode::set_, place, {to->type})->result();
      });
    }
    return whole;
  }

  // ---- the body

  void rewrite(Block* block) {
    std::vector<Op*> gone;
    for (Op* op : std::vector<Op*>(block->ops)) {
      const bool version = !op->operands.empty() && rows_of_.contains(op->operands[0]);
      if (is_access(*op) && version) {
        access(op);
        gone.push_back(op);
      } else if (op->is(Opcode::dim_) && version) {
        op->operands[0] = tensor_;
      } else if (op->is(Opcode::loop_)) {
        inner_loop(op);
      } else if (op->is(Opcode::branch_)) {
        branch(op);
      }
    }
    erase(gone);
  }

  void access(Op* op) {
    const RowAccess& place = places_.at(op);
    const std::size_t k = row_number(*op);
    ir::Builder b = ir::Builder::before(op);
    b.loc = op->loc;
    Rows rows = rows_of_.at(op->operands[0]);
    std::vector<Value*> operands{rows[k]};
    for (std::size_t d = 0; d < static_cast<std::size_t>(tensor_->type.rank()); ++d) {
      if (d != dimension_)
        operands.push_back(op->operands[1 + d]);
      else if (is_flat())
        operands.push_back(materialise(b, place.within));
    }
    if (op->is(Opcode::get_)) {
      Value* const element = b.op(op->code, operands, {op->result()->type})->result();
      element->name = op->result()->name;
      ir::replace_uses(op->parent, op->result(), element);
      return;
    }
    operands.push_back(op->operands.back());
    rows[k] = b.op(op->code, operands, {rows[k]->type})->result();
    rows_of_[op->result()] = rows;
  }

  /// Which rows an operation writes.
  std::vector<bool> written_in(const Op* op) const {
    std::vector<bool> written(static_cast<std::size_t>(rows_));
    for (const Block* block : op->blocks)
      ir::walk(const_cast<Block*>(block), [&](const Op* o) {
        if (is_write(*o) && places_.contains(o)) written[row_number(*o)] = true;
      });
    return written;
  }

  void inner_loop(Op* op) {
    std::optional<std::size_t> state;
    for (std::size_t i = 0; i < op->operands.size(); ++i)
      if (rows_of_.contains(op->operands[i])) state = i;
    if (!state) return rewrite(op->blocks[1]);
    const std::vector<bool> written = written_in(op);
    Rows rows = rows_of_.at(op->operands[*state]), inside = rows;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (!written[k]) continue;
      op->operands.push_back(rows[k]);
      for (Block* block : op->blocks) inside[k] = module_.add_param(block, rows[k]->type, tensor_->name);
    }
    rows_of_[op->blocks[1]->params[*state]] = inside;
    Value* const last = op->blocks[1]->yields()[*state];
    rewrite(op->blocks[1]);
    const Rows made = rows_of_.at(last);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (!written[k]) continue;
      op->blocks[1]->yields().push_back(made[k]);
      rows[k] = module_.add_result(op, rows[k]->type, tensor_->name);
    }
    rows_of_[op->results[*state]] = rows;
    remove_state(op, *state);
  }

  void branch(Op* op) {
    std::optional<std::size_t> result;
    for (const Value* v : op->results)
      if (versions_.values.contains(v)) result = v->index;
    const std::vector<bool> written = written_in(op);
    Rows last;
    if (result)
      for (Block* side : op->blocks) last.push_back(side->yields()[*result]);
    for (Block* side : op->blocks) rewrite(side);
    if (!result) return;
    Rows rows;
    for (std::size_t k = 0; k < written.size(); ++k) {
      if (!written[k]) {
        rows.push_back(rows_of_.at(last[0])[k]);
        continue;
      }
      for (std::size_t side = 0; side < 2; ++side)
        op->blocks[side]->yields().push_back(rows_of_.at(last[side])[k]);
      rows.push_back(module_.add_result(op, op->blocks[0]->yields().back()->type, tensor_->name));
    }
    rows_of_[op->results[*result]] = rows;
    remove_result(op, *result);
  }

  ir::Module& module_;
  Op* loop_;
  Block* body_;
  std::size_t state_;
  Value* tensor_;
  DefChain versions_;
  std::unordered_map<const Op*, RowAccess> places_;
  std::int64_t rows_ = 0, ahead_ = 0;  ///< row 0 of an iteration is (t + ahead) mod rows
  std::int64_t least_ = 0;             ///< no remainder is of less than t + least
  std::size_t dimension_ = 0;
  IndexForm stride_, first_;
  std::vector<IndexForm> conditions_;  ///< that are not negative
  std::unordered_map<const Value*, Rows> rows_of_;
};

SplitBuffers split_buffers(ir::Module& module, Op* loop) {
  SplitBuffers all{loop->results, {}};
  for (std::size_t i = 0; i < loop->operands.size();) {
    CircularBuffer buffer(module, loop, i);
    if (!buffer.matches()) {
      ++i;
      continue;
    }
    const std::vector<Value*> before = loop->results;
    const SplitBuffers now = buffer.split();
    for (Value*& v : all.results)
      if (const auto at = std::ranges::find(before, v); at != before.end())
        v = now.results[static_cast<std::size_t>(at - before.begin())];
    all.alternatives.insert(all.alternatives.end(), now.alternatives.begin(), now.alternatives.end());
  }
  return all;
}

}  // namespace

SplitBuffers circular_buffers(ir::Module& module, Op* loop) {
  for (Op* inner : loops_in(loop->blocks[1])) split_buffers(module, inner);
  return split_buffers(module, loop);
}

}  // namespace lantern::passes
