// Which loops scatter to neighbours, and the loops that gather.
#include "lantern/compiler/passes/array/gather.hpp"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/array/gather_rows.hpp"
#include "lantern/compiler/passes/array/shifted_trips.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

namespace {

/// The most neighbours at an end that are written one by one.
constexpr std::int64_t widest = 6;

/// What is added to one line of a tensor, along dimension `along`.
struct Line {
  std::size_t state = 0;
  std::size_t along = 0;                          ///< which index counts with the trips
  std::vector<Value*> others;                     ///< the other indices, null for that one
  IndexForm row;                                  ///< what is added to the distance: of a flat index the row
  bool whole = false;                             ///< all that is added to the tensor
  std::map<std::int64_t, std::vector<Op*>> adds;  ///< by the distance of the element from the trip's number
  std::int64_t low() const { return adds.begin()->first; }
  std::int64_t high() const { return adds.rbegin()->first; }
};

/// The loop sets an element of `state` to zero in every trip, at this distance, and `sum` adds that state to
/// the line's, which begins with zeros: nobody asks for either alone.
struct Joined {
  std::size_t state = 0;
  std::int64_t by = 0;
  Op* sum = nullptr;
};

class Gathering {
 public:
  Gathering(ir::Module& module, Op* loop) : module_(module), loop_(loop), uses_(loop) {}

  bool run() {
    const auto range = trip_range(loop_);
    if (!range) return false;
    range_ = *range;
    const Block *condition = loop_->blocks[0], *body = loop_->blocks[1];
    for (std::size_t i = 0; i < condition->params.size(); ++i)
      if (i != range_.index && !uses_.of(condition->params[i]).empty()) return false;
    for (const Op* op : body->ops)
      if (!op->blocks.empty() || (ir::info(op->code).effect != ir::Effect::none && !op->is(Opcode::yield_)))
        return false;
    for (std::size_t state = 0; state < loop_->operands.size(); ++state)
      if (loop_->operands[state]->type.is_tensor()) collect(state);
    if (lines_.empty()) return false;
    find_joined();
    if (!worthwhile()) return false;
    rewrite();
    return true;
  }

 private:
  // ---- what there is

  /// Notes the lines of a state that is only added to, those that several trips add to.
  void collect(std::size_t state) {
    Block* const body = loop_->blocks[1];
    std::vector<Line> found;
    for (Value* v = body->params[state];;) {
      const auto& uses = uses_.of(v);
      if (uses.size() != 1) return;
      const auto [op, operand] = uses.front();
      if (op->is(Opcode::yield_)) {
        if (operand != state) return;
        break;
      }
      if (!op->is(Opcode::add_at_) || operand != 0) return;
      Line line;
      line.state = state;
      line.others.assign(op->operands.begin() + 1, op->operands.end() - 1);
      std::optional<std::int64_t> by;
      for (std::size_t d = 0; d < line.others.size(); ++d) {
        if (!inside(line.others[d])) continue;
        const auto place = place_of(line.others[d]);
        if (!place || by) return;
        by = place->by;
        line.row = place->row;
        line.along = d;
        line.others[d] = nullptr;
      }
      if (!by) return;
      const auto same = std::ranges::find_if(found, [&](const Line& l) {
        return l.along == line.along && l.others == line.others && l.row == line.row;
      });
      (same == found.end() ? found.emplace_back(std::move(line)) : *same).adds[*by].push_back(op);
      v = op->result();
    }
    if (found.size() == 1) found[0].whole = found[0].row.terms().empty();
    for (Line& line : found)
      if (line.adds.size() > 1 && line.high() - line.low() <= widest && available(line))
        lines_.push_back(std::move(line));
  }

  std::optional<std::int64_t> distance_of(const Value* index) const { return distance(loop_, range_, index); }

  /// An index as the trip's number, a distance, and what all trips have alike: i * n + j - 1.
  struct Place {
    IndexForm row;
    std::int64_t by = 0;
  };
  std::optional<Place> place_of(const Value* index) const {
    if (const auto by = distance_of(index)) return Place{{}, *by};
    const auto s = index_form(index).split(loop_->blocks[1]->params[range_.index]);
    if (!s || s->coefficient.number() != 1) return {};
    for (const Unknown& u : s->rest.unknowns())
      if (!ir::visible_from(u.value, loop_->parent)) return {};
    const auto constant = s->rest.terms().find({});
    const std::int64_t by = constant == s->rest.terms().end() ? 0 : constant->second;
    constexpr std::int64_t far = std::int64_t{1} << 40;
    if (by < -far || by > far) return {};
    return Place{s->rest - by, by + range_.ahead};
  }

  /// True where all that is added is to be had in any order of the trips.
  bool available(const Line& line) const {
    std::vector<const Value*> added;
    for (const auto& [by, adds] : line.adds)
      for (const Op* add : adds) added.push_back(add->operands.back());
    return in_any_order(
        std::move(added), [&](const Value* v) { return inside(v); },
        [&](const Value* v) { return v->index == range_.index; },
        [&](const Op& get) { return unchanged(get); });
  }

  /// A state's element, read before the trip changes it, which no other trip does: as it was before the loop.
  bool unchanged(const Op& get) const {
    const Value* const v = get.operands[0];
    return !v->def && as_before_loop(uses_, get, v->index, own(get));
  }
  /// An element that belongs to the trip: the index counts in one dimension.
  bool own(const Op& access) const {
    return std::any_of(access.operands.begin() + 1,
                       access.operands.begin() + 1 + access.operands[0]->type.rank(),
                       [&](const Value* index) { return inside(index) && place_of(index); });
  }
  bool inside(const Value* v) const { return v->block == loop_->blocks[1]; }

  /// Finds a sum with a state that has become zero where trips were.
  void find_joined() {
    for (const Line& line : lines_) {
      const Value* start = loop_->operands[line.state];
      const auto fill = filled(start);
      if (start->type.rank() != 1 || !line.whole || !fill || !fill->zero) continue;
      starts_as_zeros_.insert(line.state);
      Op* const sum = only_use(loop_->results[line.state]);
      if (!sum || !sum->is(Opcode::add_) || sum->parent != loop_->parent) continue;
      const Value* other = sum->operands[sum->operands[0] == loop_->results[line.state] ? 1 : 0];
      if (other->def != loop_ || other->index == line.state || only_use(other) != sum ||
          !(other->type == sum->result()->type))
        continue;
      if (const auto by = zeroed(other->index)) joined_[line.state] = {other->index, *by, sum};
    }
  }
  Op* only_use(const Value* v) const { return passes::only_use(loop_->parent, v); }
  /// The distance of the element that is set to zero in every trip, after it may have been read.
  std::optional<std::int64_t> zeroed(std::size_t state) const {
    const Value* v = loop_->blocks[1]->params[state];
    const Op* set = nullptr;
    for (const auto& [op, operand] : uses_.of(v)) {
      if (op->is(Opcode::get_) && operand == 0) {
        if (!unchanged(*op)) return {};
      } else if (op->is(Opcode::set_) && operand == 0 && !set) {
        set = op;
      } else {
        return {};
      }
    }
    if (!set || loop_->operands[state]->type.rank() != 1 || !inside(set->operands[1])) return {};
    const Op* zero = constant(set->operands[2]);
    const auto& onward = uses_.of(set->result());
    if (!zero || zero->number != 0 || onward.size() != 1 || !onward[0].op->is(Opcode::yield_) ||
        onward[0].operand != state)
      return {};
    return distance_of(set->operands[1]);
  }

  // ---- whether it pays

  /// What is written in the ends counts too: `low` to `high` are the distances at which a trip writes.
  std::int64_t low(const Line& line) const {
    const auto j = joined_.find(line.state);
    return j == joined_.end() ? line.low() : std::min(line.low(), j->second.by);
  }
  std::int64_t high(const Line& line) const {
    const auto j = joined_.find(line.state);
    return j == joined_.end() ? line.high() : std::max(line.high(), j->second.by);
  }
  std::int64_t reach() const {
    std::int64_t most = 0;
    for (const Line& line : lines_) most = std::max(most, high(line) - low(line));
    return most;
  }

  bool worthwhile() {
    if (reach() > widest) return false;
    constexpr std::size_t pass = 6;  // over an array that is read and written
    for (const Line& line : lines_) {
      Block* const scratch = module_.new_block(loop_->parent->parent, loop_->parent->function);
      Block* const as_is = module_.new_block(loop_->parent->parent, loop_->parent->function);
      const Offset somewhere{loop_->blocks[1]->params[range_.index], 0};
      ShiftedTrips gathered(module_, {{loop_, range_, somewhere}}, scratch);
      ShiftedTrips scattered(module_, {{loop_, range_, somewhere}}, as_is);
      for (const auto& [by, adds] : line.adds)
        for (const Op* add : adds) {
          gathered.at(add->operands.back(), -by);
          scattered.at(add->operands.back(), 0);
        }
      if (price(*scratch) > price(*as_is) + pass * line.adds.size()) return false;
    }
    return true;
  }

  // ---- the loops that gather

  void rewrite() {
    Block* const around = loop_->parent;
    // Zeros that nobody else asks for are made where few trips add to them.
    for (const std::size_t state : starts_as_zeros_) {
      const Value* start = loop_->operands[state];
      if (start->block == around && only_use(start)) std::erase(around->ops, start->def);
    }
    ir::Builder b = ir::Builder::before(loop_);
    Value* const first = written(b, range_.first);
    Value* const last = written(b, range_.last);
    Value* many = b.emit(Opcode::le_, {b.emit(Opcode::add_, {first, b.integer(reach())}), last});
    many = b.emit(Opcode::land_, {b.emit(Opcode::lt_, {first, last}), many});
    for (const auto& [state, j] : joined_)
      many = b.emit(Opcode::land_,
                    {many, b.emit(Opcode::eq_, {size_of(b, loop_->operands[state]),
                                                b.emit(Opcode::dim_, {loop_->operands[j.state]})})});
    std::vector<ir::Type> types;
    for (const Value* r : loop_->results) types.push_back(r->type);
    Op* const branch = b.branch(many, types);
    for (std::size_t i = 0; i < types.size(); ++i) branch->results[i]->name = loop_->results[i]->name;

    ir::Builder fast(module_, branch->blocks[0]), slow(module_, branch->blocks[1]);
    fast.loc = slow.loc = loop_->loc;
    slow.yield(few_trips(slow));
    fast.yield(many_trips(fast));

    Renaming now;
    for (std::size_t i = 0; i < types.size(); ++i) now[loop_->results[i]] = branch->results[i];
    for (const auto& [state, j] : joined_) {
      now[j.sum->result()] = branch->results[state];
      std::erase(around->ops, j.sum);
    }
    std::erase(around->ops, loop_);
    ir::replace_uses(around, now);
  }

  static Offset moved(const Offset& o, std::int64_t by) {
    return {o.base, o.by + static_cast<std::uint64_t>(by)};
  }
  /// How many elements a filled array has.
  static Value* size_of(ir::Builder& b, Value* start) {
    const Filled f = *filled(start);
    return f.fill ? f.fill->operands[1] : b.emit(Opcode::dim_, {const_cast<Value*>(f.like)});
  }

  /// The sums of both, in place of the first, where that is what is asked for.
  std::vector<Value*> with_sums(ir::Builder& b, std::vector<Value*> results) {
    for (const auto& [state, j] : joined_)
      results[state] = b.emit(Opcode::add_, {results[state], results[j.state]});
    return results;
  }

  /// Trips one by one, of which there are fewer than the ends take.
  std::vector<Value*> few_trips(ir::Builder& b) {
    std::vector<ir::Type> types;
    for (const Value* r : loop_->results) types.push_back(r->type);
    std::vector<Value*> state = loop_->operands;
    for (const std::size_t i : starts_as_zeros_) state[i] = zeros(b, state[i]);
    std::vector<Value*> results = trip(b, state, reach() - 1, types);
    return with_sums(b, std::move(results));
  }
  /// An array of zeros of its own, where the start is not needed otherwise.
  static Value* zeros(ir::Builder& b, Value* start) {
    const Filled f = *filled(start);
    if (!f.fill) return b.emit(Opcode::zeros_like_, {const_cast<Value*>(f.like)});
    Value* const zero = b.number(0.0, ir::Type(start->type.element()));
    return b.op(Opcode::fill_, {zero, f.fill->operands[1]}, {start->type})->result();
  }
  std::vector<Value*> trip(ir::Builder& b, const std::vector<Value*>& state, std::int64_t left,
                           const std::vector<ir::Type>& types) {
    if (left <= 0) return state;
    Value* const go = block_with(b, *loop_->blocks[0], state).front();
    Op* const branch = b.branch(go, types);
    ir::Builder yes(module_, branch->blocks[0]), no(module_, branch->blocks[1]);
    yes.loc = no.loc = b.loc;
    yes.yield(trip(yes, block_with(yes, *loop_->blocks[1], state), left - 1, types));
    no.yield(state);
    return branch->results;
  }
  /// A block's operations with other values for its parameters; what it yields.
  static std::vector<Value*> block_with(ir::Builder& b, const Block& from,
                                        const std::vector<Value*>& params) {
    Renaming names;
    for (std::size_t i = 0; i < params.size(); ++i) names[from.params[i]] = params[i];
    return ir::clone(b, from, names);
  }

  std::vector<Value*> many_trips(ir::Builder& b) {
    std::vector<Value*> results = loop_->operands;
    for (const Line& line : lines_) results[line.state] = gathered(b, line, results[line.state]);
    return rest(b, std::move(results));
  }

  /// The loop without what has been gathered.
  std::vector<Value*> rest(ir::Builder& b, std::vector<Value*> state) {
    std::unordered_set<const Op*> without;
    for (const Line& line : lines_)
      for (const auto& [by, adds] : line.adds) without.insert(adds.begin(), adds.end());
    Renaming names;
    Op* const made = ir::clone(b, *loop_, names, without);
    made->operands = std::move(state);
    return made->results;
  }

  Value* gathered(ir::Builder& b, const Line& line, Value* t) {
    const std::int64_t lo = low(line), hi = high(line);
    const bool zeros = starts_as_zeros_.contains(line.state);
    const auto joined = joined_.find(line.state);
    Value* const old = joined == joined_.end() ? nullptr : loop_->operands[joined->second.state];
    if (zeros) {
      Value* const size = size_of(b, t);
      Value* const none = b.op(Opcode::undef_, {}, {ir::Type(t->type.element())})->result();
      const ir::Type type = t->type;
      t = b.op(Opcode::fill_, {none, size}, {type})->result();
      t = outside(b, t, Offset{}, moved(range_.first, lo), old);
      t = outside(b, t, moved(range_.last, hi), offset(size), old);
    }
    // The elements at both ends.
    for (const bool front : {true, false}) {
      ShiftedTrips trips(module_, {{loop_, range_, front ? range_.first : range_.last}}, b.block());
      for (std::int64_t k = lo; k < hi; ++k) {
        // Trips first and following add at the front, to first + k; trips before last at the end, last + k.
        const auto adds = [&](std::int64_t by) { return front ? by <= k : by > k; };
        Value* sum = nullptr;
        const Op* at = nullptr;
        for (const auto& [by, ops] : line.adds)
          if (adds(by)) sum = total(trips, ops, k - by, sum, at);
        if (zeros && old && !adds(joined->second.by)) {
          Value* const kept = trips.builder().emit(Opcode::get_, {old, trips.number(k)});
          sum = sum ? trips.builder().emit(Opcode::add_, {kept, sum}) : kept;
        }
        if (!sum && zeros) sum = trips.builder().number(0.0, ir::Type(t->type.element()));
        if (sum) t = store(trips, line, t, k, sum, zeros, at);
      }
    }
    return middle(b, line, t, moved(range_.first, hi), moved(range_.last, lo), zeros);
  }

  /// Adds what operations add in the trip `shift`.
  Value* total(ShiftedTrips& trips, const std::vector<Op*>& adds, std::int64_t shift, Value* sum,
               const Op*& at) {
    for (const Op* add : adds) {
      if (!at) at = add;
      trips.builder().loc = add->loc;
      Value* const x = trips.at(add->operands.back(), shift);
      sum = sum ? trips.builder().emit(Opcode::add_, {sum, x}) : x;
    }
    return sum;
  }
  static Value* store(ShiftedTrips& trips, const Line& line, Value* t, std::int64_t k, Value* sum, bool set,
                      const Op* at) {
    if (at) trips.builder().loc = at->loc;
    std::vector<Value*> operands{t};
    ir::Builder& b = trips.builder();
    Value* place = trips.number(k);
    if (!line.row.terms().empty()) place = b.emit(Opcode::add_, {written(b, line.row), place});
    for (Value* other : line.others) operands.push_back(other ? other : place);
    operands.push_back(sum);
    return trips.builder().op(set ? Opcode::set_ : Opcode::add_at_, operands, {t->type})->result();
  }

  /// True for one value, or one size asked for twice.
  static bool same_base(const Value* a, const Value* b) {
    if (a == b || !a || !b || !a->def || !b->def) return a == b;
    return a->def->is(Opcode::dim_) && b->def->is(Opcode::dim_) && a->def->integer == b->def->integer &&
           a->def->operands[0] == b->def->operands[0];
  }

  /// Elements that no trip reaches: zeros, or as they were in another array.
  Value* outside(ir::Builder& b, Value* t, const Offset& from, const Offset& to, Value* old) {
    if (same_base(from.base, to.base) &&
        static_cast<std::int64_t>(from.by) >= static_cast<std::int64_t>(to.by))
      return t;
    return over(b, t, written(b, from), written(b, to), [&](ir::Builder& body, Value* index, Value* array) {
      Value* const v =
          old ? body.emit(Opcode::get_, {old, index}) : body.number(0.0, ir::Type(t->type.element()));
      return body.emit(Opcode::set_, {array, index, v});
    });
  }

  Value* middle(ir::Builder& b, const Line& line, Value* t, const Offset& from, const Offset& to, bool set) {
    return over(b, t, written(b, from), written(b, to), [&](ir::Builder& body, Value* index, Value* array) {
      ShiftedTrips trips(module_, {{loop_, range_, Offset{index, 0}}}, body.block());
      Value* sum = nullptr;
      const Op* at = nullptr;
      for (const auto& [by, ops] : line.adds) sum = total(trips, ops, -by, sum, at);
      return store(trips, line, array, 0, sum, set, at);
    });
  }

  ir::Module& module_;
  Op* loop_;
  Uses uses_;
  TripRange range_;
  std::vector<Line> lines_;
  std::set<std::size_t> starts_as_zeros_;
  std::map<std::size_t, Joined> joined_;
};

}  // namespace

void gather(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    for (Op* loop : loops_in(*f)) any |= gather_rows(module, loop);
    for (Op* loop : loops_in(*f)) any |= Gathering(module, loop).run();
  }
  if (any) simplify(module);
}

}  // namespace lantern::passes
