// Zeros sink into the loops that add to neighbours, and these loops become sums.
#include "lantern/compiler/passes/array/scatter_to_gather.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "lantern/compiler/passes/array/scatters.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"

namespace lantern::passes {

namespace {

// ---- zeros

/// From the first element to below the last, in each dimension.
using Elements = std::vector<std::pair<Offset, Offset>>;

/// Loops that make elements of a tensor zero.
struct Zeros {
  Op* loop = nullptr;
  std::size_t state = 1;
  Op* set = nullptr;
  std::optional<Elements> elements;  ///< where they are all that indices count to
  Value* of() const { return loop->operands[state]; }
};

std::optional<Elements> elements_of(const Nest& nest, const Op& access) {
  const auto place = place_in(nest, access);
  const auto levels = place ? levels_of(nest, *place) : std::nullopt;
  if (!levels) return {};
  Elements elements;
  for (const std::size_t k : *levels) {
    const IterationRange& range = nest.levels[k].range;
    elements.emplace_back(moved(range.first, place->by[k]), moved(range.last, place->by[k]));
  }
  return elements;
}

/// Loops that leave zeros in a tensor, where no iteration reads what another one has made zero.
std::optional<Zeros> zeros_left_by(const Value* v, const Uses& uses, bool read = true) {
  if (!v->def || !v->def->is(Opcode::loop_)) return {};
  const auto nest = nest_of(v->def, uses);
  Op* const set = nest ? only_write(*nest, uses, v->index, read) : nullptr;
  if (!set || !set->is(Opcode::set_) || !sets_zero(*set)) return {};
  for (const Nest::Level& level : nest->levels)
    if (!no_loop_carried_dependence({set}, level.loop)) return {};
  return Zeros{v->def, v->index, set, elements_of(*nest, *set)};
}

/// The same for loops that do nothing else.
std::optional<Zeros> zeros_made_by(const Value* v) {
  if (!v->def || !v->def->is(Opcode::loop_) || v->def->operands.size() != 2 || v->index != 1) return {};
  auto zeros = zeros_left_by(v, Uses(v->def), false);
  return zeros && zeros->elements ? zeros : std::nullopt;
}

/// The zeros as a nest sees them: how far they reach beyond its iterations at each level. Nothing where that
/// is not known, where they leave out elements that all neighbours add to, or reach too far.
std::optional<std::vector<Span>> seen_by(const ScatterNest& s, const Zeros& z) {
  const auto dimensions = s.dimensions();
  if (!dimensions || !z.elements || dimensions->size() != z.elements->size()) return {};
  const std::vector<Span> adds = spread(s.neighbours.front());
  std::vector<Span> seen(dimensions->size());
  for (std::size_t d = 0; d < dimensions->size(); ++d) {
    const std::size_t k = (*dimensions)[d];
    const IterationRange& range = s.nest.levels[k].range;
    const auto from = (form_of((*z.elements)[d].first) - form_of(range.first)).number();
    const auto to = (form_of((*z.elements)[d].second) - form_of(range.last)).number();
    if (!from || !to || *from > adds[k].to || *to < adds[k].from || *from < -widest || *to > widest)
      return {};
    seen[k] = {*from, *to};
  }
  return seen;
}

/// Such zeros in another tensor.
Value* zeros_again(ir::Builder& b, const Zeros& z, Value* t, std::vector<Value*> at = {}) {
  b.loc = z.set->loc;
  if (at.size() == z.elements->size()) {
    std::vector<Value*> operands{t};
    operands.insert(operands.end(), at.begin(), at.end());
    operands.push_back(b.number(0, ir::Type(t->type.element())));
    return b.op(Opcode::set_, std::move(operands), {t->type})->result();
  }
  const auto& [from, to] = (*z.elements)[at.size()];
  return build_for(b, materialise(b, from), materialise(b, to), t,
                   [&](ir::Builder& in, Value* index, Value* array) {
                     std::vector<Value*> deeper = at;
                     deeper.push_back(index);
                     return zeros_again(in, z, array, std::move(deeper));
                   });
}

/// True where the same elements become zero in each iteration of a loop around.
bool is_invariant(const Zeros& z, const Uses& uses, const Block* body) {
  const auto nest = nest_of(z.loop, uses);
  const auto outside = [&](const IndexForm& f) { return is_invariant(f, body, &*nest); };
  for (const Nest::Level& l : nest->levels)
    if (!outside(form_of(l.range.first)) || !outside(form_of(l.range.last))) return false;
  return std::all_of(z.set->operands.begin() + 1, z.set->operands.end() - 1,
                     [&](const Value* v) { return outside(index_form(v)); });
}

/// The addition, in a nest that leaves zeros in one tensor, to the same elements of another one.
Op* sum_beside(const Zeros& z, const Uses& uses, const ir::Use& use) {
  if (use.op != z.loop || use.operand == z.state) return nullptr;
  Op* const sum = only_write(*nest_of(z.loop, uses), uses, use.operand, false);
  return sum && sum->is(Opcode::add_at_) && same_element(*sum, *z.set) ? sum : nullptr;
}

/// Zeros at the end of an iteration are made in the next one, right before what is added to them, and behind
/// the loop, if it has made an iteration; the first iteration starts with nothing but zeros:
///
///   t = zeros; loop { t = scatter(t); ...; t = zeros in t }
///   becomes   t = zeros; loop { t = zeros in t; t = scatter(t); ... }  t = zeros in t
///
/// Tensors may change places, as those of a leapfrog scheme do. Where the next iteration adds to the same
/// elements, once to each, they are set:
///
///   s, t = zeros; loop { for i { s[i] += f(t[i]); t[i] = 0 } s, t = t, s }
///   becomes   s, t = zeros; loop { for i s[i] = f(t[i]); s, t = t, s }
void rotate_zeros(Op* loop) {
  Block* const body = loop->blocks[1];
  const auto iterations = iteration_range(loop);
  if (!iterations) return;
  for (std::size_t i = 0; i < loop->operands.size(); ++i) {
    const auto start = filled(loop->operands[i]);
    if (!start || !start->zero) continue;
    Value* const last = body->yields()[i];
    const Uses uses(loop);
    const auto zeros = zeros_left_by(last, uses);
    const auto& of = uses.of(body->params[i]);
    if (!zeros || zeros->loop->parent != body || !is_invariant(*zeros, uses, body) || of.size() != 1 ||
        of[0].op->parent != body || uses.count(last) != 1 || !uses.of(loop->blocks[0]->params[i]).empty())
      continue;
    const Uses around(loop->parent);
    const auto later = around.of(loop->results[i]);
    Op* const sum = later.empty() || zeros->elements ? sum_beside(*zeros, uses, of[0]) : nullptr;
    const auto scatter =
        !sum && of[0].operand == 1 && of[0].op->is(Opcode::loop_) ? scatter_nest(of[0].op) : std::nullopt;
    if (!sum && (!scatter || !seen_by(*scatter, *zeros))) continue;
    if (sum) {
      sum->code = Opcode::set_;
    } else {
      ir::Builder first = ir::Builder::before(of[0].op);
      of[0].op->operands[1] = zeros_again(first, *zeros, body->params[i]);
    }
    if (!later.empty()) {
      ir::Builder behind = ir::Builder::after(loop);
      behind.loc = zeros->loop->loc;
      Value* const some = behind.emit(
          Opcode::lt_, {materialise(behind, iterations->first), materialise(behind, iterations->last)});
      Value* const result = loop->results[i];
      Value* const now = build_branch(
          behind, some, result->type, [&](ir::Builder& yes) { return zeros_again(yes, *zeros, result); },
          [&](ir::Builder&) { return result; });
      now->name = result->name;
      for (const auto& [op, operand] : later) op->operands[operand] = now;
    }
    body->yields()[i] = zeros->of();
    ir::replace_uses(zeros->loop->blocks[1], zeros->set->result(), zeros->set->operands[0]);
    erase({zeros->set});
    if (zeros->loop->operands.size() == 2 && uses.count(zeros->loop->results[0]) == 0)
      std::erase(body->ops, zeros->loop);
  }
}

// ---- sums

/// What changes in a function, all at once in the end: until then its uses hold.
struct Changes {
  Uses uses;
  Renaming names;
  std::vector<Op*> gone;
};

/// What the additions of a nest come to: of one tensor, where they are or together with what is added to
/// them later.
class Gathering {
 public:
  Gathering(ir::Module& module, ScatterNest scatter, Changes& changes)
      : module_(module),
        scatter_(std::move(scatter)),
        changes_(changes),
        loop_(scatter_.nest.outer()),
        around_(loop_->parent) {}

  void run() {
    if (changes_.uses.count(loop_->results[0]) > 0) return;  // the index behind the loop
    remark("scatter_to_gather", loop_->loc,
           "adds to neighbouring elements: each takes the sum of what iterations add to it");
    join_others();
    find_start();
    if (sum_) ir::Builder::before(sum_).take(detached(loop_));
    b_.emplace(ir::Builder::before(loop_));
    b_->loc = loop_->loc;
    Value* const result = gathered();
    changes_.names[(sum_ ? sum_ : loop_)->result(sum_ ? 0 : 1)] = result;
    changes_.gone.push_back(loop_);
    if (sum_) changes_.gone.push_back(sum_);
    if (zeros_) changes_.gone.push_back(zeros_->loop);
  }

 private:
  Op* detached(Op* op) {
    std::erase(op->parent->ops, op);
    return op;
  }
  Op* only_use(const Value* v) const { return changes_.uses.only_user(v); }

  /// What the tensor holds before, where that is known.
  void find_start() {
    Value* const t = scatter_.start();
    if (!t->type.is_float_element()) return;
    if (const auto z = zeros_made_by(t); z && z->loop->parent == around_ && only_use(t) == loop_) {
      if (const auto seen = seen_by(scatter_, *z)) {
        zeros_ = z;
        start_ = Start{z->of(), true, *seen, 0.0};
      }
      return;
    }
    const auto fill = filled(t);
    if (!fill || !fill->zero || find_sum()) return;
    const bool minus = !fill->zeros && std::signbit(fill->fill->operands[0]->def->number);
    if (scatter_.dimensions()) start_ = Start{nullptr, false, {}, minus ? -0.0 : 0.0};
  }

  /// The sum of what is added to, and of another tensor, where nothing uses either alone; else null.
  std::pair<Op*, Value*> sum_with_other() const {
    Op* const sum = only_use(scatter_.result());
    if (!sum || !sum->is(Opcode::add_) || sum->parent != around_) return {};
    Value* const other = sum->operands[sum->operands[0] == scatter_.result() ? 1 : 0];
    if (other == scatter_.result() || only_use(other) != sum || !(other->type == sum->result()->type))
      return {};
    return {sum, other};
  }
  /// That the other tensor has the sizes of the zeros is checked by their sum, which nothing needs any more:
  /// what removes it keeps the check.
  void keep_check(ir::Builder& b, const Op& sum, Value* zeros, Value* other) const {
    const bool first = sum.operands[0] == scatter_.result();
    b.loc = sum.loc;
    b.op(Opcode::add_, {first ? zeros : other, first ? other : zeros}, {sum.result()->type});
  }

  /// Where zeros, sums and another tensor are added, the sums are added to that tensor.
  void join_others() {
    Value* const zeros = scatter_.start();
    const auto fill = filled(zeros);
    if (!fill || !fill->zero) return;
    const auto [sum, other] = sum_with_other();
    if (!sum || !other->def || zeros_made_by(other) || changed_before(sum)) return;
    ir::Builder b = ir::Builder::before(sum);
    keep_check(b, *sum, zeros, other);
    b.take(detached(loop_));
    loop_->operands[1] = other;
    changes_.names[sum->result()] = scatter_.result();
    changes_.gone.push_back(sum);
  }

  /// True where tensors that the nest reads may be changed before an operation.
  bool changed_before(const Op* later) const {
    std::unordered_set<const Value*> read;
    ir::walk(loop_->blocks[1], [&](const Op* op) {
      if (op->is(Opcode::get_)) read.insert(op->operands[0]);
    });
    const auto& ops = around_->ops;
    auto op = std::ranges::find(ops, loop_);
    for (++op; *op != later; ++op) {
      if ((*op)->is(Opcode::get_) || (*op)->is(Opcode::dim_)) continue;
      for (const Value* v : (*op)->operands)
        if (read.contains(v)) return true;
    }
    return false;
  }

  /// The sum of zeros that are added to, and of another tensor of which elements were made zero.
  bool find_sum() {
    const auto [sum, other] = sum_with_other();
    const auto z = sum ? zeros_made_by(other) : std::nullopt;
    if (!z || z->loop->parent != around_) return false;
    const auto seen = seen_by(scatter_, *z);
    if (!seen) return false;
    sum_ = sum;
    zeros_ = z;
    // Elements that are not reached stay where they are, unless the nest reads what the others held.
    bool reads = false;
    ir::walk(loop_->blocks[1],
             [&](const Op* op) { reads |= std::ranges::find(op->operands, z->of()) != op->operands.end(); });
    start_ = Start{z->of(), !reads, *seen, 0.0};
    return true;
  }

  Value* gathered() {
    Value* t = scatter_.start();
    if (sum_) {
      keep_check(*b_, *sum_, t, zeros_->of());
      b_->loc = loop_->loc;
    }
    if (start_ && start_->in_place) {
      t = zeros_->of();
    } else if (start_) {
      t = uninitialised_like(*b_, t);  // every element is set
      t->name = scatter_.result()->name;
    }
    const bool direct = scatter_.dimensions().has_value();
    for (const Neighbours& adds : scatter_.neighbours)
      t = GatheredNest(module_, scatter_.nest, adds, direct).run(*b_, t, start_);
    return t;
  }

  ir::Module& module_;
  ScatterNest scatter_;
  Changes& changes_;
  Op* loop_;
  Block* around_;
  std::optional<ir::Builder> b_;
  std::optional<Zeros> zeros_;
  std::optional<Start> start_;
  Op* sum_ = nullptr;
};

}  // namespace

void scatter_to_gather(ir::Module& module) {
  const auto distribute = [&](ir::Function& f) {
    const Uses all(f);
    bool any = false;
    for (Op* loop : loops_in(f)) any |= distribute_scatters(module, loop, all);
    return any;
  };
  if (!in_direct_style(module, distribute)) return;
  simplify(module);
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    for (Op* loop : loops_in(*f)) rotate_zeros(loop);
    Changes changes{Uses(*f), {}, {}};
    std::unordered_set<const Op*> done;
    for (Op* loop : loops_in(*f)) {
      const bool inside = loop->parent->parent && done.contains(loop->parent->parent);
      auto scatter = inside ? std::nullopt : scatter_nest(loop);
      if (inside || scatter) done.insert(loop);
      if (scatter) Gathering(module, std::move(*scatter), changes).run();
    }
    ir::replace_uses(f->body, changes.names);
    erase(changes.gone);
  }
  simplify(module);
}

}  // namespace lantern::passes
