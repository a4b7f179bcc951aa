// Which loops scatter to neighbouring rows, and the loops over rows that gather.
#include "lantern/compiler/passes/array/gather_rows.hpp"

#include <algorithm>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/array/shifted_trips.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

constexpr std::int64_t widest = 6;     ///< the most rows between neighbours
constexpr std::size_t row_update = 6;  ///< what a load and a store of an element count, an addition being 1

/// What is added to one state of the outer loop, by the distance of the row from the outer trip's number.
struct Rows {
  std::size_t state = 0;
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
      if (outer_->operands[state]->type.is_tensor()) collect(state);
    if (found_.empty() || !worthwhile()) return false;
    rewrite();
    return true;
  }

 private:
  /// A loop of the nest.
  struct Level {
    Op* loop;
    TripRange range;
    const Value* counter() const { return loop->blocks[1]->params[range.index]; }
  };

  // ---- what there is

  /// Loops in one another, all counting, the inner ones the same trips every time. They compute, and may take
  /// values from tapes.
  bool nested() {
    for (Op* loop = outer_; loop;) {
      const auto range = trip_range(loop);
      if (!range) return false;
      if (loop != outer_)
        for (const Offset& o : {range->first, range->last})
          if (o.base && !ir::visible_from(o.base, outer_->parent)) return false;
      for (const Value* p : loop->blocks[0]->params)
        if (p->index != range->index && !uses_.of(p).empty()) return false;
      nest_.push_back({loop, *range});
      Op* inner = nullptr;
      for (Op* op : loop->blocks[1]->ops) {
        if (op->is(Opcode::loop_) && !inner)
          inner = op;
        else if (!op->blocks.empty() || !may_stay(*op))
          return false;
      }
      loop = inner;
    }
    return nest_.size() > 1;
  }
  static bool may_stay(const Op& op) {
    return op.is(Opcode::yield_) || op.is(Opcode::pop_) || ir::info(op.code).effect == ir::Effect::none;
  }
  Block* innermost() const { return nest_.back().loop->blocks[1]; }

  /// The innermost loop's state that is this one's in the trip: handed in and out, and used by nothing else.
  std::optional<std::size_t> handed_in(std::size_t state) const {
    for (std::size_t k = 1; k < nest_.size(); ++k) {
      const Op* const inner = nest_[k].loop;
      const auto& in = uses_.of(nest_[k - 1].loop->blocks[1]->params[state]);
      if (in.size() != 1 || in[0].op != inner) return {};
      const auto& out = uses_.of(inner->results[in[0].operand]);
      if (out.size() != 1 || !out[0].op->is(Opcode::yield_) || out[0].operand != state) return {};
      state = in[0].operand;
    }
    return state;
  }

  void collect(std::size_t state) {
    const auto inner = handed_in(state);
    if (!inner) return;
    Rows rows;
    rows.state = state;
    for (const Value* v = innermost()->params[*inner];;) {
      const auto& uses = uses_.of(v);
      if (uses.size() != 1) return;
      const auto [op, operand] = uses.front();
      if (op->is(Opcode::yield_)) {
        if (operand != *inner) return;
        break;
      }
      if (!op->is(Opcode::add_at_) || operand != 0) return;
      const auto by = row_of(*op);
      if (!by) return;
      rows.adds[*by].push_back(op);
      v = op->result();
    }
    if (rows.adds.size() < 2 || rows.high() - rows.low() > widest || !available(rows)) return;
    find_sum(rows);
    found_.push_back(std::move(rows));
  }

  /// How far the row of an element lies from the outer trip's number, where inner loops go along the row. Of
  /// a[(i + 1) * n + j] that is 1, as of a[i + 1, j]: rows of a flat index are what i is multiplied by apart.
  std::optional<std::int64_t> row_of(const Op& add) const {
    std::optional<std::int64_t> by;
    bool along = false;
    for (std::size_t d = 1; d + 1 < add.operands.size(); ++d) {
      if (!(add.operands[d]->type == ir::I64)) return {};
      const IndexForm form = index_form(add.operands[d]);
      for (const Unknown& u : form.unknowns()) {
        if (u.value == nest_.front().counter()) continue;
        const bool counter =
            std::ranges::any_of(nest_, [&](const Level& l) { return l.counter() == u.value; });
        if (!counter && !ir::visible_from(u.value, outer_->parent)) return {};
        along |= u.value == nest_.back().counter();
      }
      const auto s = form.split(nest_.front().counter());
      if (!s) return {};
      if (s->coefficient == IndexForm(0)) continue;
      if (by) return {};
      // One index for the row alone, or one for row and column.
      bool flat = false;
      for (const Unknown& u : s->rest.unknowns()) flat |= u.value == nest_.back().counter();
      if (s->coefficient.number() && flat == (s->coefficient == IndexForm(1))) return {};
      by = rows_in(s->rest, s->coefficient);
      if (!by) return {};
    }
    return by && along ? std::optional(*by + nest_.front().range.ahead) : std::nullopt;
  }
  /// How many rows of a size are in a distance.
  static std::optional<std::int64_t> rows_in(const IndexForm& distance, const IndexForm& size) {
    if (size.terms().size() != 1) return {};
    const auto& [product, factor] = *size.terms().begin();
    const auto found = distance.terms().find(product);
    const std::int64_t here = found == distance.terms().end() ? 0 : found->second;
    constexpr std::int64_t far = std::int64_t{1} << 40;
    if (here < -far || here > far || factor < 1 || factor > far) return {};
    if (!product.empty() || factor == 1) return here % factor ? std::nullopt : std::optional(here / factor);
    const std::int64_t shifted = here + factor / 2;  // to the nearest row
    return shifted / factor - (shifted % factor < 0 ? 1 : 0);
  }

  bool inside(const Value* v) const {
    return std::ranges::any_of(nest_, [&](const Level& l) { return v->block == l.loop->blocks[1]; });
  }

  /// True where all that is added is to be had in any order of the trips.
  bool available(const Rows& rows) const {
    std::vector<const Value*> added;
    for (const auto& [by, adds] : rows.adds)
      for (const Op* add : adds) added.push_back(add->operands.back());
    const auto counts = [&](const Value* v) {
      return std::ranges::any_of(nest_, [&](const Level& l) { return l.counter() == v; });
    };
    return in_any_order(
        std::move(added), [&](const Value* v) { return inside(v); }, counts,
        [&](const Op& get) { return unchanged(get); });
  }

  /// A state's element, read before the trip changes it, which no other trip does: as it was before the
  /// loops.
  bool unchanged(const Op& get) const {
    const Value* v = get.operands[0];
    if (v->def || v->block != innermost()) return false;
    const std::size_t inner = v->index;
    for (std::size_t k = nest_.size() - 1; k > 0; --k) {
      v = nest_[k].loop->operands[v->index];
      if (v->def || v->block != nest_[k - 1].loop->blocks[1]) return false;
    }
    return handed_in(v->index) == inner && as_before_loop(uses_, get, inner, own(get));
  }
  /// True where no other trip changes the element that is read, by what changes elements of that tensor.
  bool own(const Op& get) const {
    std::vector<const Op*> accesses{&get};
    for (const Value* v = get.operands[0]; v;) {
      const Value* next = nullptr;
      for (const auto& [op, operand] : uses_.of(v))
        if (op->is(Opcode::set_) || op->is(Opcode::add_at_)) {
          accesses.push_back(op);
          next = op->result();
        }
      v = next;
    }
    return std::ranges::all_of(nest_, [&](const Level& l) { return apart_by_trip(accesses, l.loop); });
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
    std::vector<Value*> numbers;
    for (const Level& l : nest_) numbers.push_back(l.loop->blocks[1]->params[l.range.index]);
    for (const Rows& rows : found_) {
      Block* const gathered = module_.new_block(outer_->parent->parent, outer_->parent->function);
      Block* const scattered = module_.new_block(outer_->parent->parent, outer_->parent->function);
      ShiftedTrips together = trips(gathered, numbers), apart = trips(scattered, numbers);
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

  ShiftedTrips trips(Block* into, const std::vector<Value*>& numbers) const {
    std::vector<TripBase> bases;
    for (std::size_t k = 0; k < nest_.size(); ++k)
      bases.push_back({nest_[k].loop, nest_[k].range, Offset{numbers[k], 0}});
    return {module_, std::move(bases), into};
  }

  void rewrite() {
    Block* const around = outer_->parent;
    ir::Builder b = ir::Builder::before(outer_);
    for (const Level& l : nest_)
      if (l.loop != outer_) columns_.emplace_back(written(b, l.range.first), written(b, l.range.last));

    // First what begins as it was before the loops: it is made of elements that the loops change after it, in
    // place.
    std::unordered_map<std::size_t, Value*> done;
    for (const Rows& rows : found_)
      if (!rows.sum) done[rows.state] = gathered(b, rows, outer_->operands[rows.state]);
    std::vector<Value*> results = without_additions(b);
    Renaming now;
    for (const Rows& rows : found_) {
      if (!rows.sum) {
        results[rows.state] = done.at(rows.state);
        continue;
      }
      results[rows.state] = gathered(b, rows, begun_with(b, rows, results[rows.other]));
      now[rows.sum->result()] = results[rows.state];
      std::erase(around->ops, rows.sum);
    }
    for (std::size_t i = 0; i < results.size(); ++i) now[outer_->results[i]] = results[i];
    std::erase(around->ops, outer_);
    ir::replace_uses(around, now);
    // Within a row the same, of loops in a loop that goes along it.
    for (Op* loop : inner_nests_) RowGathering(module_, loop).run();
  }

  /// The other state. That it has the sizes of the zeros the sum has seen to, which nobody needs any more but
  /// for that: what removes it keeps the check.
  Value* begun_with(ir::Builder& b, const Rows& rows, Value* other) {
    b.loc = rows.sum->loc;
    const bool first = rows.sum->operands[0] == outer_->results[rows.state];
    Value* const zeros = outer_->operands[rows.state];
    b.op(Opcode::add_, {first ? zeros : other, first ? other : zeros}, {rows.sum->result()->type});
    b.loc = outer_->loc;
    return other;
  }

  /// The loops without what is gathered, which may leave nothing of them.
  std::vector<Value*> without_additions(ir::Builder& b) {
    std::unordered_set<const Op*> left_out;
    for (const Rows& rows : found_)
      for (const auto& [by, adds] : rows.adds) left_out.insert(adds.begin(), adds.end());
    Renaming names;
    return ir::clone(b, *outer_, names, left_out)->results;
  }

  Value* gathered(ir::Builder& b, const Rows& rows, Value* t) {
    const TripRange& range = nest_.front().range;
    Value* const first = written(b, range.first);
    Value* const last = written(b, range.last);
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
    t = over_rows(b, t, plus(first, rows.high()), plus(last, rows.low()), rows.adds, 1);
    if (nest_.size() > 2)
      for (Op* op : t->def->blocks[1]->ops)
        if (op->is(Opcode::loop_)) inner_nests_.push_back(op);
    return t;
  }

  /// For the rows from one to below another, all columns: what trips add that lie `by` rows before, times
  /// `sign`.
  using Adds = std::map<std::int64_t, std::vector<Op*>>;
  Value* over_rows(ir::Builder& b, Value* t, Value* from, Value* to, const Adds& adds, std::int64_t sign) {
    return over(b, t, from, to, [&](ir::Builder& row, Value* i, Value* rows) {
      return over_columns(row, rows, {i}, adds, sign);
    });
  }
  Value* over_columns(ir::Builder& b, Value* t, const std::vector<Value*>& numbers, const Adds& adds,
                      std::int64_t sign) {
    if (numbers.size() == nest_.size()) return added(b, t, numbers, adds, sign);
    const auto [first, last] = columns_[numbers.size() - 1];
    return over(b, t, first, last, [&](ir::Builder& at, Value* j, Value* elements) {
      std::vector<Value*> all = numbers;
      all.push_back(j);
      return over_columns(at, elements, all, adds, sign);
    });
  }

  /// One addition for each element, of all that neighbours add to it.
  Value* added(ir::Builder& b, Value* t, const std::vector<Value*>& numbers, const Adds& adds,
               std::int64_t sign) {
    struct Sum {
      std::vector<Value*> operands;
      Value* of;
      const Op* add;
    };
    ShiftedTrips shifted = trips(b.block(), numbers);
    std::map<std::vector<std::map<IndexForm::Product, std::int64_t>>, std::size_t> by_place;
    std::vector<Sum> sums;
    for (const auto& [by, ops] : adds)
      for (const Op* add : ops) {
        shifted.builder().loc = add->loc;
        std::vector<Value*> operands;
        std::vector<std::map<IndexForm::Product, std::int64_t>> place;
        for (std::size_t d = 1; d + 1 < add->operands.size(); ++d) {
          operands.push_back(shifted.at(add->operands[d], -by * sign));
          place.push_back(index_form(operands.back()).terms());
        }
        Value* const x = shifted.at(add->operands.back(), -by * sign);
        const auto [known, fresh] = by_place.try_emplace(std::move(place), sums.size());
        if (fresh) {
          sums.push_back({std::move(operands), x, add});
        } else {
          Value*& sum = sums[known->second].of;
          sum = shifted.builder().emit(Opcode::add_, {sum, x});
        }
      }
    for (const Sum& s : sums) {
      std::vector<Value*> operands{t};
      operands.insert(operands.end(), s.operands.begin(), s.operands.end());
      operands.push_back(s.of);
      Op* const made = b.op(Opcode::add_at_, operands, {t->type});
      made->loc = s.add->loc;
      t = made->result();
    }
    return t;
  }

  ir::Module& module_;
  Op* outer_;
  Uses uses_;
  std::vector<Level> nest_;  ///< outermost first
  std::vector<Rows> found_;
  std::vector<std::pair<Value*, Value*>> columns_;  ///< what the inner loops count from, and to below
  std::vector<Op*> inner_nests_;                    ///< in the rows that all neighbours add to
};

}  // namespace

bool gather_rows(ir::Module& module, Op* loop) { return RowGathering(module, loop).run(); }

}  // namespace lantern::passes
