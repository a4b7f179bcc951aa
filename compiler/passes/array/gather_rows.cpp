// Which loops scatter to neighbouring rows, and the loops over rows that gather.
#include "lantern/compiler/passes/array/gather_rows.hpp"

#include <algorithm>
#include <unordered_set>

#include "lantern/compiler/passes/array/shifted_trips.hpp"
#include "lantern/compiler/passes/support/copies.hpp"

namespace lantern::passes {

namespace {

constexpr std::int64_t widest = 6;     ///< the most rows between neighbours
constexpr std::size_t row_update = 6;  ///< what a load and a store of an element count, an addition being 1

/// What is added to one state of the outer loop, by the distance of the row from the outer trip's number.
struct Rows {
  std::size_t state = 0;
  std::size_t along = 0;  ///< the dimension of the rows
  std::map<std::int64_t, std::vector<Op*>> adds;
  Op* sum = nullptr;      ///< with the result of another state: what alone is asked for
  std::size_t other = 0;  ///< that state
  std::int64_t low() const { return adds.begin()->first; }
  std::int64_t high() const { return adds.rbegin()->first; }
};

class RowGathering {
 public:
  RowGathering(ir::Module& module, Op* loop) : module_(module), outer_(loop), uses_(loop) {}

  bool run() {
    if (!nested()) return false;
    for (std::size_t state = 0; state < outer_->operands.size(); ++state)
      if (outer_->operands[state]->type.rank() > 1) collect(state);
    if (found_.empty() || !worthwhile()) return false;
    rewrite();
    return true;
  }

 private:
  // ---- what there is

  /// One loop in the other, both counting, the inner one the same trips every time; nothing but computing.
  bool nested() {
    for (Op* op : outer_->blocks[1]->ops) {
      if (op->is(Opcode::loop_) && !inner_)
        inner_ = op;
      else if (!op->blocks.empty() ||
               (ir::info(op->code).effect != ir::Effect::none && !op->is(Opcode::yield_)))
        return false;
    }
    if (!inner_) return false;
    const auto outer = trip_range(outer_), inner = trip_range(inner_);
    if (!outer || !inner) return false;
    for (const Offset& o : {inner->first, inner->last})
      if (o.base && !ir::visible_from(o.base, outer_->parent)) return false;
    for (const Op* op : inner_->blocks[1]->ops)
      if (!op->blocks.empty() || (ir::info(op->code).effect != ir::Effect::none && !op->is(Opcode::yield_)))
        return false;
    for (const auto& [loop, range] : {std::pair(outer_, *outer), std::pair(inner_, *inner)})
      for (const Value* p : loop->blocks[0]->params)
        if (p->index != range.index && !uses_.of(p).empty()) return false;
    range_ = *outer;
    columns_ = *inner;
    return true;
  }

  /// The inner loop's state that is this one's in the trip: handed in and out, and used by nothing else.
  std::optional<std::size_t> handed_in(std::size_t state) const {
    const auto& in = uses_.of(outer_->blocks[1]->params[state]);
    if (in.size() != 1 || in[0].op != inner_) return {};
    const auto& out = uses_.of(inner_->results[in[0].operand]);
    if (out.size() != 1 || !out[0].op->is(Opcode::yield_) || out[0].operand != state) return {};
    return in[0].operand;
  }

  void collect(std::size_t state) {
    const auto inner = handed_in(state);
    if (!inner) return;
    Rows rows;
    rows.state = state;
    std::vector<Value*> others;
    for (const Value* v = inner_->blocks[1]->params[*inner];;) {
      const auto& uses = uses_.of(v);
      if (uses.size() != 1) return;
      const auto [op, operand] = uses.front();
      if (op->is(Opcode::yield_)) {
        if (operand != *inner) return;
        break;
      }
      if (!op->is(Opcode::add_at_) || operand != 0 || !note(*op, rows, others)) return;
      v = op->result();
    }
    if (rows.adds.size() < 2 || rows.high() - rows.low() > widest || !available(rows)) return;
    find_sum(rows);
    found_.push_back(std::move(rows));
  }

  /// An addition to an element whose row counts with the outer loop and whose column with the inner one, the
  /// other indices as those of the additions before.
  bool note(Op& add, Rows& rows, std::vector<Value*>& others) {
    std::optional<std::int64_t> by;
    std::size_t along = 0;
    bool column = false;
    std::vector<Value*> rest;
    for (std::size_t d = 1; d + 1 < add.operands.size(); ++d) {
      Value* const index = add.operands[d];
      const Offset o = offset(index);
      if (const auto row = distance(index); row) {
        if (by) return false;
        by = row;
        along = d;
      } else if (o.base == inner_->blocks[1]->params[columns_.index] && index->type == ir::I64 && !column) {
        column = true;
        rest.push_back(nullptr);
      } else if (ir::visible_from(index, outer_->parent)) {
        rest.push_back(index);
      } else {
        return false;
      }
    }
    if (!by || !column || (!rows.adds.empty() && (along != rows.along || rest != others))) return false;
    rows.along = along;
    others = std::move(rest);
    rows.adds[*by].push_back(&add);
    return true;
  }
  std::optional<std::int64_t> distance(const Value* index) const {
    return passes::distance(outer_, range_, index);
  }
  bool inside(const Value* v) const { return v->block == outer_->blocks[1] || v->block == inner_->blocks[1]; }

  /// True where all that is added is to be had in any order of the trips.
  bool available(const Rows& rows) const {
    std::vector<const Value*> added;
    for (const auto& [by, adds] : rows.adds)
      for (const Op* add : adds) added.push_back(add->operands.back());
    const auto counts = [&](const Value* v) {
      return v == outer_->blocks[1]->params[range_.index] || v == inner_->blocks[1]->params[columns_.index];
    };
    return in_any_order(
        std::move(added), [&](const Value* v) { return inside(v); }, counts,
        [&](const Op& get) { return unchanged(get); });
  }

  /// A state's element, read before the trip changes it, which no other trip does: as it was before the
  /// loops.
  bool unchanged(const Op& get) const {
    const Value* v = get.operands[0];
    if (v->def || v->block != inner_->blocks[1]) return false;
    const std::size_t inner = v->index;
    const Value* outer = inner_->operands[inner];
    if (outer->def || outer->block != outer_->blocks[1] || handed_in(outer->index) != inner) return false;
    bool row = false, column = false;
    for (std::size_t d = 1; d < get.operands.size(); ++d) {
      row |= distance(get.operands[d]).has_value();
      column |= offset(get.operands[d]).base == inner_->blocks[1]->params[columns_.index];
    }
    if (!row || !column) return false;
    return as_before_loop(uses_, get, inner, true);
  }

  /// Finds a sum with another state that alone is asked for.
  void find_sum(Rows& rows) const {
    const auto fill = filled(outer_->operands[rows.state]);
    if (!fill || !fill->zero) return;
    Op* const sum = only_use(outer_->results[rows.state]);
    if (!sum || !sum->is(Opcode::add_) || sum->parent != outer_->parent) return;
    const Value* other = sum->operands[sum->operands[0] == outer_->results[rows.state] ? 1 : 0];
    if (other->def != outer_ || other->index == rows.state || only_use(other) != sum ||
        !(other->type == sum->result()->type))
      return;
    for (const Rows& r : found_)
      if (r.state == other->index) return;
    rows.sum = sum;
    rows.other = other->index;
  }
  Op* only_use(const Value* v) const { return passes::only_use(outer_->parent, v); }

  bool worthwhile() {
    for (const Rows& rows : found_) {
      Block* const gathered = module_.new_block(outer_->parent->parent, outer_->parent->function);
      Block* const scattered = module_.new_block(outer_->parent->parent, outer_->parent->function);
      ShiftedTrips together =
          trips(gathered, outer_->blocks[1]->params[range_.index], inner_->blocks[1]->params[columns_.index]);
      ShiftedTrips apart = trips(scattered, outer_->blocks[1]->params[range_.index],
                                 inner_->blocks[1]->params[columns_.index]);
      for (const auto& [by, adds] : rows.adds)
        for (const Op* add : adds) {
          together.at(add->operands.back(), -by);
          apart.at(add->operands.back(), 0);
        }
      if (price(*gathered) > price(*scattered) + row_update * (rows.adds.size() - 1)) return false;
    }
    return true;
  }

  // ---- the loops that gather

  ShiftedTrips trips(Block* into, Value* row, Value* column) const {
    return {module_, {{outer_, range_, Offset{row, 0}}, {inner_, columns_, Offset{column, 0}}}, into};
  }

  void rewrite() {
    Block* const around = outer_->parent;
    Gap gap(outer_);
    ir::Builder b(module_, around);
    b.loc = outer_->loc;

    std::vector<Value*> results = without_additions(b);
    std::unordered_map<const Value*, Value*> now;
    for (const Rows& rows : found_) {
      Value* const start = rows.sum ? begun_with(b, rows, results[rows.other]) : outer_->operands[rows.state];
      results[rows.state] = gathered(b, rows, start);
      if (!rows.sum) continue;
      now[rows.sum->result()] = results[rows.state];
      std::erase(gap.behind, rows.sum);
    }
    for (std::size_t i = 0; i < results.size(); ++i) now[outer_->results[i]] = results[i];
    gap.close();
    ir::walk(around, [&](Op* op) {
      for (Value*& v : op->operands)
        if (const auto it = now.find(v); it != now.end()) v = it->second;
    });
  }

  /// The other state, which has the same sizes: or the sum is an error.
  Value* begun_with(ir::Builder& b, const Rows& rows, Value* other) {
    Value* const zeros = outer_->operands[rows.state];
    const Filled f = *filled(zeros);
    Value* same = nullptr;
    for (std::int64_t d = 0; d < zeros->type.rank(); ++d) {
      Value* const size = f.fill ? f.fill->operands[static_cast<std::size_t>(1 + d)]
                                 : b.emit(Opcode::dim_, {const_cast<Value*>(f.like)}, d);
      Value* const equal = b.emit(Opcode::eq_, {size, b.emit(Opcode::dim_, {other}, d)});
      same = same ? b.emit(Opcode::land_, {same, equal}) : equal;
    }
    Op* const branch = b.branch(same, {other->type});
    ir::Builder yes(module_, branch->blocks[0]), no(module_, branch->blocks[1]);
    yes.yield({other});
    no.loc = rows.sum->loc;
    Value* own = nullptr;
    if (f.fill) {
      std::vector<Value*> sizes = f.fill->operands;
      sizes.front() = no.number(0.0, ir::Type(zeros->type.element()));
      own = no.op(Opcode::fill_, sizes, {zeros->type})->result();
    } else {
      own = no.op(Opcode::zeros_like_, {const_cast<Value*>(f.like)}, {zeros->type})->result();
    }
    no.yield({no.op(Opcode::add_, {own, other}, {other->type})->result()});
    return branch->result();
  }

  /// The loops without what is gathered, which may leave nothing of them.
  std::vector<Value*> without_additions(ir::Builder& b) {
    std::unordered_set<const Op*> left_out;
    for (const Rows& rows : found_)
      for (const auto& [by, adds] : rows.adds) left_out.insert(adds.begin(), adds.end());
    Renaming names;
    return copy_op(b, *outer_, names, left_out)->results;
  }

  Value* gathered(ir::Builder& b, const Rows& rows, Value* t) {
    Value* const first = written(b, range_.first);
    Value* const last = written(b, range_.last);
    const auto plus = [&](Value* v, std::int64_t by) {
      return by ? b.emit(Opcode::add_, {v, b.integer(by)}) : v;
    };
    // Trips at the front and at the end, whose rows not all neighbours add to; of few trips each once.
    for (const auto& [by, adds] : rows.adds) {
      Value* const middle = plus(first, rows.high() - by);
      if (by < rows.high())
        t = over_rows(b, t, first, b.emit(Opcode::imin_, {last, middle}), {{by, adds}}, 0);
      if (by > rows.low())
        t = over_rows(b, t, b.emit(Opcode::imax_, {plus(last, rows.low() - by), middle}), last, {{by, adds}},
                      0);
    }
    return over_rows(b, t, plus(first, rows.high()), plus(last, rows.low()), rows.adds, 1);
  }

  /// For the rows from one to below another, all columns: what trips add that lie `by` rows before, times
  /// `sign`.
  Value* over_rows(ir::Builder& b, Value* t, Value* from, Value* to,
                   const std::map<std::int64_t, std::vector<Op*>>& adds, std::int64_t sign) {
    Value* const first = written(b, columns_.first);
    Value* const last = written(b, columns_.last);
    return over(b, t, from, to, [&](ir::Builder& row, Value* i, Value* rows) {
      return over(row, rows, first, last, [&](ir::Builder& at, Value* j, Value* elements) {
        ShiftedTrips shifted = trips(at.block(), i, j);
        std::map<std::vector<Value*>, std::pair<Value*, const Op*>> sums;
        std::vector<std::vector<Value*>> order;
        for (const auto& [by, ops] : adds)
          for (const Op* add : ops) {
            shifted.builder().loc = add->loc;
            std::vector<Value*> place;
            for (std::size_t d = 1; d + 1 < add->operands.size(); ++d)
              place.push_back(shifted.at(add->operands[d], -by * sign));
            Value* const x = shifted.at(add->operands.back(), -by * sign);
            const auto [sum, fresh] = sums.try_emplace(place, x, add);
            if (fresh)
              order.push_back(place);
            else
              sum->second.first = shifted.builder().emit(Opcode::add_, {sum->second.first, x});
          }
        for (const auto& place : order) {
          const auto& [sum, add] = sums.at(place);
          std::vector<Value*> operands{elements};
          operands.insert(operands.end(), place.begin(), place.end());
          operands.push_back(sum);
          Op* const made = at.op(Opcode::add_at_, operands, {elements->type});
          made->loc = add->loc;
          elements = made->result();
        }
        return elements;
      });
    });
  }

  ir::Module& module_;
  Op* outer_;
  Op* inner_ = nullptr;
  BodyUses uses_;
  TripRange range_, columns_;
  std::vector<Rows> found_;
};

}  // namespace

bool gather_rows(ir::Module& module, Op* loop) { return RowGathering(module, loop).run(); }

}  // namespace lantern::passes
