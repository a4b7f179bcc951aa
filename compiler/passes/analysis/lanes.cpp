// Which values differ from lane to lane, and whether everything that depends on them can.
#include "lantern/compiler/passes/analysis/lanes.hpp"

#include <algorithm>
#include <array>

#include "lantern/compiler/passes/analysis/dependence_reason.hpp"
#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/support/memory.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/ir/prototype.hpp"
#include "lantern/ir/team.hpp"

namespace lantern::passes {

namespace {

using ir::Combine;

bool is_lane_kind(const ir::Type& t) {
  const ir::Kind k = t.element();
  return k == ir::Kind::f64 || k == ir::Kind::f32 || k == ir::Kind::i64 || k == ir::Kind::boolean;
}

class Analysis {
 public:
  Analysis(Op* loop, const TapeUses& tapes, int native, bool reassociate)
      : uses_(loop),
        tapes_(tapes),
        native_(native),
        reassociate_(reassociate),
        plan_(std::make_unique<LanePlan>()) {
    plan_->loop = loop;
    ir::walk(loop->blocks[1], [&](Op* op) { ops_.push_back(op); });
  }

  std::unique_ptr<LanePlan> run() {
    if (!counts()) return refused("it does not count by ones to a bound, or something else may end it, such as break");
    if (!state())
      return refused(obstacle_);
    if (!tapes()) return refused("what it puts on the tape cannot be kept by lanes");
    while (spread()) {
    }
    for (const Op* op : ops_)
      if (!legal(*op)) return refused(cannot_run(*op));
    if (!worthwhile()) return refused("there is no arithmetic in it that differs from iteration to iteration");
    find_summed(*plan_, uses_, ops_);
    find_rows_to_transpose();
    plan_->iterations = iterations();
    for (const Op* op : ops_) {
      if (is_access(*op) && scatters(*op)) plan_->scattered.insert(op);
      if (is_access(*op) && (is_strided(*op) || meets(*op))) plan_->strided.insert(op);
      if (is_access(*op) && is_interleaved(*op)) plan_->interleaved.insert(op);
      plan_->calls |= op->parent == plan_->loop->blocks[1] && is_function(*op) && any_varies(*op);
    }
    const auto blocks = choose_blocks(shape(), native_);
    const auto most = plan_->iterations ? std::nullopt : most_iterations(plan_->loop);
    if (!blocks || (most && *most < 2 * native_)) return refused("it makes too few iterations");
    plan_->blocks = *blocks;
    plan_->lanes = blocks->widest();
    if (largest_own() * plan_->lanes > least_memory)
      return refused("a large tensor of each iteration's own would be there for each lane");
    return std::move(plan_);
  }

 private:
  std::unique_ptr<LanePlan> refused(const std::string& why) const {
    remark("vectorise", plan_->loop->loc, "does not run in lanes: " + why);
    return nullptr;
  }
  static std::string cannot_run(const Op& op) {
    const std::string line = op.loc.known() ? " at line " + std::to_string(op.loc.line) : "";
    if (op.is(Opcode::loop_)) return "the iterations of the inner loop" + line + " differ from lane to lane";
    if (op.is(Opcode::branch_)) return "the branch" + line + " does more than choose between numbers";
    if (op.is(Opcode::call_)) return "it calls '" + op.callee->name + "'" + line;
    if (op.is(Opcode::external_))
      return "it calls the external function '" + ir::parse_prototype(op.text).name + "'" + line;
    return "'" + std::string(ir::info(op.code).name) + "'" + line + " does not work in lanes";
  }

  bool varies(const Value* v) const { return plan_->varying.contains(v); }
  bool any_varies(const Op& op) const {
    return std::ranges::any_of(op.operands, [&](Value* v) { return varies(v); });
  }

  /// A loop that counts, up to a bound or down to zero, and asks for nothing else.
  bool counts() {
    const auto count = ends_by_comparison(plan_->loop) ? passes::counts(plan_->loop) : std::nullopt;
    if (!count) return false;
    plan_->down = count->down;
    plan_->index = count->index;
    if (!count->down) plan_->bound = count->bound;
    plan_->iteration = count->number;
    return true;
  }

  /// The loop's state: the index, integers that count with it, sums, and tensors whose elements belong to one
  /// iteration each or are only added to.
  bool state() {
    const Block* body = plan_->loop->blocks[1];
    for (Value* p : body->params) {
      if (p->index == plan_->index || (!plan_->down && step_of(plan_->loop, p->index))) {
        if (p->type.kind() != ir::Kind::i64) {
          obstacle_ = "it does not count in 64 bits";
          return false;
        }
        plan_->varying.insert(p);
        continue;
      }
      const auto dependent = [&] {
        obstacle_ = why_dependent(uses_, plan_->loop, p->index);
        return false;
      };
      const auto [combine, use] = combination(uses_, plan_->loop, p->index);
      if (combine == Combine::none && use && is_lexically_forward(*use, plan_->loop)) {
        plan_->shared.insert(use->values.begin(), use->values.end());
        continue;
      }
      if (combine == Combine::none || use->whole) return dependent();
      if (p->type.is_tensor()) {
        if (combine == Combine::sum && !use->is_pure_accumulation()) return dependent();
        plan_->shared.insert(use->values.begin(), use->values.end());
        continue;
      }
      if (!can_be_reduced(combine, p->type)) return dependent();
      if (!reassociate_ && use->ordered_sum) {
        obstacle_ = kept_in_order(plan_->loop, p->index);
        return false;
      }
      plan_->varying.insert(p);
      plan_->reductions.emplace(p, ir::reduction(combine, p->type));
    }
    return true;
  }

  /// Over the lanes of a vector. The largest is the same in another order but for the sign of a zero.
  bool can_be_reduced(Combine combine, const ir::Type& type) const {
    return type.is_float_element() &&
           (combine == Combine::sum ||
            (reassociate_ && (combine == Combine::max || combine == Combine::min)));
  }

  bool outside(const Value* v) const { return depth(v->block) == 0; }

  /// Tapes that other loops use as well: theirs must run in the same lanes. What goes up there comes down
  /// here.
  bool tapes() {
    std::unordered_map<std::int64_t, std::size_t> here;
    for (const Op* op : ops_)
      if (is_on_tape(*op)) ++here[op->integer];
    for (const auto& [tape, n] : here)
      if (tapes_.at(tape).size() != n) plan_->outer_tapes.insert(tape);
    varying_tapes_ = plan_->outer_tapes;
    for (const Op* op : ops_) {
      if (!is_on_tape(*op) || !varying_tapes_.contains(op->integer)) continue;
      if (op->is(Opcode::push_) == plan_->down) return false;
      for (const Value* v : op->is(Opcode::push_) ? op->operands : op->results)
        if (!is_lane_kind(v->type)) return false;
    }
    return true;
  }

  bool mark(const Value* v) { return !plan_->shared.contains(v) && plan_->varying.insert(v).second; }

  /// One round of marking what depends on what varies.
  bool spread() {
    bool changed = false;
    for (const Op* op : ops_) {
      switch (op->code) {
        case Opcode::loop_:
          for (std::size_t i = 0; i < op->operands.size(); ++i) {
            const Value* next = op->blocks[1]->ops.back()->operands[i];
            if (!varies(op->operands[i]) && !varies(next) && !varies(op->results[i])) continue;
            changed |= mark(op->blocks[0]->params[i]);
            changed |= mark(op->blocks[1]->params[i]);
            changed |= mark(op->results[i]);
          }
          break;
        case Opcode::branch_:
          for (std::size_t i = 0; i < op->results.size(); ++i) {
            bool any = varies(op->operands[0]);
            for (const Block* b : op->blocks) any |= varies(b->ops.back()->operands[i]);
            if (any) changed |= mark(op->results[i]);
          }
          break;
        case Opcode::push_:
          for (const Value* v : op->operands)
            if (varies(v)) changed |= varying_tapes_.insert(op->integer).second;
          break;
        case Opcode::pop_:
          if (varying_tapes_.contains(op->integer))
            for (const Value* v : op->results) changed |= mark(v);
          break;
        case Opcode::dim_:
        case Opcode::zeros_like_:
        case Opcode::yield_:
          break;
        default:
          if (any_varies(*op))
            for (const Value* v : op->results) changed |= mark(v);
      }
    }
    return changed;
  }

  /// True where a uniform tensor can be made with lanes.
  bool convertible(const Value* t) const { return varies(t) || is_uniform_fill(t); }

  /// True for an index of 32 bits, read to be widened: the arithmetic of lanes has none.
  bool is_narrow_index(const Value* v) const {
    return v->type == ir::I32 && v->def && v->def->is(Opcode::get_) &&
           std::ranges::all_of(uses_.of(v), [](const ir::Use& use) {
             return use.op->is(Opcode::cast_) && use.op->result()->type == ir::I64;
           });
  }
  bool fits_lanes(const Value* v) const { return is_lane_kind(v->type) || is_narrow_index(v); }

  bool legal(const Op& op) const {
    for (const Value* v : op.results)
      if (varies(v) && !fits_lanes(v)) return false;
    switch (op.code) {
      case Opcode::constant_:
      case Opcode::undef_:
      case Opcode::dim_:
      case Opcode::zeros_like_:
      case Opcode::push_:
      case Opcode::pop_:
        return lanes_of_tensors(op);
      case Opcode::yield_:
      case Opcode::get_:
        return true;
      case Opcode::check_:
        return !any_varies(op);  // of all lanes at once
      case Opcode::set_:
      case Opcode::add_at_:
        return plan_->shared.contains(op.result()) || !varies(op.result()) || convertible(op.operands[0]);
      case Opcode::loop_: {
        if (varies(op.blocks[0]->ops.back()->operands[0])) return false;
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
          if (!op.operands[i]->type.is_tensor() || !varies(op.results[i])) continue;
          if (!convertible(op.operands[i]) || !convertible(op.blocks[1]->ops.back()->operands[i]))
            return false;
        }
        return true;
      }
      case Opcode::branch_: {
        if (varies(op.operands[0])) return selectable(op);
        for (std::size_t i = 0; i < op.results.size(); ++i)
          for (const Block* b : op.blocks) {
            const Value* v = b->ops.back()->operands[i];
            if (v->type.is_tensor() && varies(op.results[i]) && !convertible(v)) return false;
          }
        return true;
      }
      case Opcode::cast_:
      case Opcode::cast_like_:
        for (const Value* v : op.operands)
          if (varies(v) && !fits_lanes(v)) return false;
        return !any_varies(op) || op.result()->type.is_scalar();
      default: {
        if (ir::info(op.code).effect != ir::Effect::none) return false;
        if (!any_varies(op)) return true;
        if (!ir::info(op.code).elementwise || !op.result()->type.is_scalar()) return false;
        // Division of integers raises in one lane, not in all.
        if (divides_integers(op)) {
          const Op* by = constant(op.operands[1]);
          return by && by->integer > 0;
        }
        return true;
      }
    }
  }

  bool lanes_of_tensors(const Op& op) const {
    if (!op.is(Opcode::push_)) return true;
    if (!varying_tapes_.contains(op.integer)) return true;
    return std::ranges::all_of(op.operands, [&](Value* v) { return !v->type.is_tensor() || convertible(v); });
  }

  /// Both sides can be run in every lane: arithmetic, and accesses to elements that are in range in any case,
  /// where what is stored is chosen (if-conversion).
  bool selectable(const Op& op) const { return selectable(op, op); }
  /// `from`: the branch or the outermost one around it that lanes take differently.
  bool selectable(const Op& op, const Op& from) const {
    for (const Block* b : op.blocks)
      for (const Op* o : b->ops) {
        if (o->is(Opcode::yield_, Opcode::constant_, Opcode::undef_)) continue;
        if (o->is(Opcode::branch_) && selectable(*o, from)) continue;
        if (is_access(*o) && can_be_made_by_all(*o, from)) continue;
        if (o->is(Opcode::cast_, Opcode::cast_like_) && legal(*o)) continue;
        if (!ir::info(o->code).elementwise || !o->result()->type.is_scalar()) return false;
        if (divides_integers(*o)) return false;
      }
    for (const Value* v : op.results)
      if (!plan_->shared.contains(v) && (!v->type.is_scalar() || !is_lane_kind(v->type))) return false;
    return true;
  }

  /// True for an access behind a branch that lanes which do not take it can make as well: it is in range in
  /// any case, or they access the first element, to read it or to add nothing.
  bool can_be_made_by_all(const Op& access, const Op& branch) const {
    if (!access.is(Opcode::get_) && !plan_->shared.contains(access.result())) return false;
    if (in_range_at(access, branch)) return true;
    if (access.is(Opcode::set_) || varies(access.operands[0]) || !any_varies(access) ||
        !has_elements_at(access.operands[0], branch))
      return false;
    // The first element may be what another thread adds to.
    if (access.is(Opcode::add_at_) && may_run_in_team(*access.parent->function)) return false;
    plan_->guarded.insert(&access);
    return true;
  }
  /// Whether a function may be one of those that threads run at once.
  static bool may_run_in_team(const ir::Function& f) {
    if (&f == f.module->entry) return false;
    bool teams = false;
    for (const ir::Function* other : f.module->functions())
      ir::walk(other->body, [&](const Op* op) { teams |= ir::team_size(*op) > 0; });
    return teams;
  }

  /// There is arithmetic to be done in lanes, sums of elements too. Elements that are moved alone are left to the compiler behind,
  /// which makes copies of whole runs of them; but not where iterations count down, as those of a derivative's
  /// backward part do.
  bool worthwhile() const {
    return std::ranges::any_of(ops_, [&](const Op* op) {
      if (((plan_->down && op->is(Opcode::set_)) || op->is(Opcode::add_at_)) && varies(op->operands.back()) &&
          op->operands.back()->type.is_float_element())
        return true;
      return ir::info(op->code).elementwise && op->result()->type.is_float_element() && varies(op->result());
    });
  }

  /// Elements of the largest tensor that lanes have one by one, of those whose size is known.
  double largest_own() const {
    double most = 0;
    for (const Value* v : plan_->varying) {
      if (!v->type.is_tensor() || plan_->is_summed(v)) continue;
      double n = 1;
      for (const std::int64_t dim : v->type.dims()) n *= static_cast<double>(std::max<std::int64_t>(dim, 0));
      most = std::max(most, n);
    }
    return most;
  }

  /// The number of iterations, where it is known.
  std::optional<std::int64_t> iterations() const {
    const Op* from = constant(plan_->loop->operands[plan_->index]);
    if (plan_->down) return from ? std::optional(std::max<std::int64_t>(from->integer, 0)) : std::nullopt;
    const Op* to = constant(plan_->bound);
    if (!from || !to) return {};
    return std::max<std::int64_t>(to->integer - from->integer, 0);
  }

  LoopShape shape() const {
    LoopShape shape{.brief = true, .narrow = true, .size = ops_.size(), .iterations = plan_->iterations};
    int strided = 0, contiguous = 0;
    for (const Op* op : ops_) {
      for (const Value* v : op->results) shape.narrow &= !(varies(v) && v->type.element() == ir::Kind::f64);
      shape.inner |= op->is(Opcode::loop_);
      shape.brief &= !op->is(Opcode::loop_) || is_brief(op);
      if (is_access(*op)) {
        const bool own = std::any_of(op->operands.begin() + 1, op->operands.end(),
                                     [&](const Value* v) { return varies(v) && moves(v); });
        shape.reads |= op->is(Opcode::get_) && !varies(op->operands[0]) && own;
        if (depth(op->parent) > 1 && !plan_->packed.contains(op->operands[0]))
          (is_strided(*op) ? strided : contiguous) += differs(*op);
      }
      if (op->results.empty() || !op->result()->type.is_scalar() || !varies(op->result()) ||
          !op->result()->type.is_float_element())
        continue;
      shape.heavy |= is_function(*op);
      shape.work += op->parent == plan_->loop->blocks[1];
    }
    shape.strided = strided > contiguous;
    return shape;
  }

  /// Known to make a few iterations.
  static bool is_brief(const Op* loop) {
    constexpr std::int64_t few = 8;
    const auto iterations = known_trip_counts(loop);
    return iterations && *iterations <= few;
  }

  /// Written as a call: a function of the mathematical library.
  static bool is_function(const Op& op) {
    if (op.is(Opcode::min_, Opcode::max_, Opcode::abs_, Opcode::sqrt_)) return false;
    return ir::info(op.code).elementwise && ir::info(op.code).expression.find('(') != std::string_view::npos;
  }

  /// True where lanes access elements of one tensor that differ.
  bool differs(const Op& op) const {
    return !plan_->is_varying(op.operands[0]) && !plan_->is_summed(op.operands[0]) &&
           std::any_of(op.operands.begin() + 1, op.operands.begin() + 1 + op.operands[0]->type.rank(),
                       [&](const Value* v) { return varies(v); });
  }
  /// True where these do not follow each other in memory.
  bool is_strided(const Op& op) const {
    return differs(op) &&
           (row_differs(op) || !follows(op.operands[static_cast<std::size_t>(op.operands[0]->type.rank())]));
  }
  /// True where the elements lie in a few vectors that follow each other, as x[2 * i] does.
  bool is_interleaved(const Op& op) const {
    const Value* const last = op.operands[static_cast<std::size_t>(op.operands[0]->type.rank())];
    return is_strided(op) && !row_differs(op) &&
           std::ranges::any_of(std::array{-1, 2, 3, 4}, [&](int step) { return moves(last, step); });
  }
  /// True where in each iteration of an inner loop all lanes add to one element, over which they are summed.
  bool meets(const Op& op) const {
    return op.is(Opcode::add_at_) && plan_->is_shared(op.result()) && depth(op.parent) > 1 &&
           std::none_of(op.operands.begin() + 1, op.operands.end() - 1,
                        [&](const Value* v) { return varies(v); });
  }
  /// True where it is an index before the last one that differs.
  bool row_differs(const Op& op) const {
    return std::any_of(op.operands.begin() + 1, op.operands.begin() + op.operands[0]->type.rank(),
                       [&](const Value* v) { return varies(v); });
  }

  /// True for an access to rows that are not adjacent and are written, or are gathered from anywhere. (To the last
  /// index a value that is the same in all lanes may be added.)
  bool scatters(const Op& op) const {
    if (!differs(op)) return false;
    const auto first = op.operands.begin() + 1, last = first + op.operands[0]->type.rank() - 1;
    if (op.is(Opcode::get_))
      return std::any_of(first, last, [&](const Value* v) { return varies(v) && !follows(v); });
    return row_differs(op) || !follows(*last);
  }
  /// True for an index that is one more in each lane.
  bool follows(const Value* v) const { return moves(v, 1); }
  /// True for an index that lies so much further on in each lane; or any distance, the same
  /// from lane to lane.
  bool moves(const Value* v, std::optional<std::int64_t> by = {}) const {
    const auto s = index_form(v).split(counter());
    const auto alike = [&](const IndexForm& f) {
      return std::ranges::none_of(f.unknowns(), [&](const Unknown& x) { return varies(x.value); });
    };
    if (!s || !alike(s->rest) || !alike(s->coefficient)) return false;
    return by ? s->coefficient.number() == by : s->coefficient.number() != 0;
  }
  const Value* counter() const { return plan_->loop->blocks[1]->params[plan_->index]; }

  /// Tensors from outside whose row `index` inner loops sweep again and again, in the iterations of other inner
  /// loops.
  void find_rows_to_transpose() {
    const Value* index = plan_->iteration;
    for (const Op* op : ops_) {
      if (!op->is(Opcode::get_) || op->operands.size() != 3 || op->operands[1] != index) continue;
      const Value* t = op->operands[0];
      if (plan_->is_varying(t) || plan_->is_varying(op->operands[2]) || t->type.element() != ir::Kind::f64)
        continue;
      if (depth(t->block) != 0 || changes_in(op->operands[2]) < 3) continue;
      plan_->packed.insert(t);
    }
  }

  /// The depth of the innermost loop in which a value is not loop-invariant.
  int changes_in(const Value* v) const {
    if (!v->def || !ir::info(v->def->code).elementwise) return depth(v->block);
    int deepest = 0;
    for (const Value* o : v->def->operands) deepest = std::max(deepest, changes_in(o));
    return deepest;
  }

  /// How many loops lie between a block and the code around the loop: 1 in the loop's body, 0 outside.
  int depth(const Block* b) const {
    int n = 0;
    for (; b && b->parent; b = b->parent->parent) {
      n += b->parent->is(Opcode::loop_);
      if (b->parent == plan_->loop) return n;
    }
    return 0;
  }

  Uses uses_;
  const TapeUses& tapes_;
  int native_;
  bool reassociate_;
  std::unique_ptr<LanePlan> plan_;
  std::vector<Op*> ops_;
  std::unordered_set<std::int64_t> varying_tapes_;  ///< hold vectors
  std::string obstacle_;                            ///< why iterations depend on each other
};

}  // namespace

TapeUses tape_uses(const ir::Module& module) {
  TapeUses uses;
  for (const ir::Function* f : module.functions())
    ir::walk(f->body, [&](const Op* op) {
      if (is_on_tape(*op)) uses[op->integer].push_back(op);
    });
  return uses;
}

bool is_uniform_fill(const Value* t) {
  return t->def && t->def->is(Opcode::fill_, Opcode::zeros_like_, Opcode::undef_);
}

bool is_ordered_sum(const Op& op) {
  return op.is(Opcode::add_, Opcode::sub_) && op.result()->type.is_float_element() &&
         op.loc.part != ir::Part::backward;
}

std::unique_ptr<LanePlan> plan_lanes(Op* loop, const TapeUses& tapes, int native, bool reassociate) {
  return Analysis(loop, tapes, native, reassociate).run();
}

}  // namespace lantern::passes
