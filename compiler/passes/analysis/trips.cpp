// What a loop's state goes through in a trip, and what else a trip does.
#include "lantern/compiler/passes/analysis/trips.hpp"

#include <algorithm>
#include <optional>

#include "lantern/compiler/passes/analysis/dependence_reason.hpp"
#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loop_state.hpp"
#include "lantern/ir/library_function.hpp"
#include "lantern/ir/prototype.hpp"

namespace lantern::passes {

namespace {

std::string at_line(const Op& op) { return op.loc.known() ? " at line " + std::to_string(op.loc.line) : ""; }

std::int64_t weight(const Block* block);

std::int64_t elements(const Value* v) {
  constexpr std::int64_t usual = 8;  // of a dimension that is not known
  std::int64_t n = 1;
  if (v->type.is_tensor())
    for (const std::int64_t d : v->type.dims())
      n *= d == ir::dynamic ? usual : std::clamp<std::int64_t>(d, 1, 1024);
  return n;
}

}  // namespace

std::int64_t weight(const Op& op) {
  constexpr std::int64_t usual_trips = 4, most_trips = 4096, function = 10;
  switch (op.code) {
    case Opcode::constant_:
    case Opcode::yield_:
    case Opcode::dim_:
    case Opcode::take_:
    case Opcode::slice_:
    case Opcode::reshape_:
      return 0;
    case Opcode::loop_:
      return std::min(constant_trips(&op).value_or(usual_trips), most_trips) *
             (1 + weight(op.blocks[0]) + weight(op.blocks[1]));
    case Opcode::branch_:
      return 1 + std::max(weight(op.blocks[0]), weight(op.blocks[1]));
    case Opcode::call_:
      return 2 + weight(op.callee->body);
    case Opcode::get_:
    case Opcode::set_:
    case Opcode::add_at_:
      return 1;
    default: {
      if (op.results.empty()) return 1;
      std::int64_t n = elements(op.result());
      for (const Value* v : op.operands) n = std::max(n, elements(v));
      return ir::is_library_function(op.code) ? function * n : n;
    }
  }
}

namespace {

std::int64_t weight(const Block* block) {
  std::int64_t sum = 0;
  for (const Op* op : block->ops) sum += passes::weight(*op);
  return std::min<std::int64_t>(sum, std::int64_t{1} << 32);
}

class Trips {
 public:
  Trips(Op* loop, const TapeUses& tapes, const std::unordered_set<const ir::Function*>& recursive,
        bool reassociate, FreeTrips& found)
      : loop_(loop),
        body_(loop->blocks[1]),
        uses_(loop),
        tapes_(tapes),
        recursive_(recursive),
        found_(found),
        reassociate_(reassociate) {}

  /// Empty, or what is against it.
  std::string obstacle() {
    const auto count = counted(loop_);
    const auto tests =
        std::ranges::count_if(loop_->blocks[0]->ops, [](const Op* op) { return !op->is(Opcode::constant_); });
    if (!count || tests > 2) return "it does not count by ones to a bound, or something else may end it, such as break";
    found_.index = count->index;
    found_.bound = count->bound;
    if (body_->params[count->index]->type != ir::I64) return "it does not count in 64 bits";
    for (const Value* p : body_->params) {
      found_.extremes.push_back(Opcode::yield_);
      const auto role = role_of(p->index);
      if (!role) return why_dependent(uses_, loop_, p->index);
      if (ordered_) return kept_in_order(loop_, p->index);
      found_.roles.push_back(*role);
    }
    if (std::string what = effects(); !what.empty()) return what;
    found_.weight = weight(body_);
    return {};
  }

 private:
  std::optional<StateRole> role_of(std::size_t state) {
    if (state == found_.index) return StateRole::index;
    if (step_of(loop_, state)) {
      if (body_->params[state]->type == ir::I64) return StateRole::counter;
      return {};
    }
    const auto use = state_use(uses_, loop_, state);
    if (!use) return {};
    const ir::Type& type = body_->params[state]->type;
    if (use->extreme) {
      if (use->sum || use->whole || !use->accesses().empty() || !type.is_scalar()) return {};
      found_.extremes.back() = *use->extreme;
      return StateRole::extreme;
    }
    if (use->only_added()) {
      ordered_ |= !reassociate_ && use->own_sum;
      const bool number = (type.is_scalar() || type.is_tensor()) && type.element() != ir::Kind::boolean;
      return number ? std::optional(StateRole::sum) : std::nullopt;
    }
    if (type.is_tensor() && (use->only_read() || (!use->whole && apart_by_trip(use->accesses(), loop_))))
      return StateRole::own;
    return {};
  }

  /// What a trip does beside computing, in the functions that it calls too.
  std::string effects() const {
    std::string found;
    std::unordered_map<std::int64_t, std::size_t> tapes;
    const auto look = [&](const Op* op, bool called) {
      if (!found.empty()) return;
      for (const Value* v : op->operands)
        if (v->type.is_ref() || v->type.is_cont()) found = "it works on cells or continuations";
      if (op->is(Opcode::print_)) found = "it prints" + at_line(*op) + ", which is to be in order";
      if (op->is(Opcode::external_) && op->integer == 0)
        found = "the external function '" + ir::parse_prototype(op->text).name + "'" + at_line(*op) +
                " may not be called from two threads at once: say {.threads = true} where it may";
      if (op->is(Opcode::push_) || op->is(Opcode::pop_)) {
        ++tapes[op->integer];
        if (called) found = "a function that it calls keeps values for later; without FUN it may fork";
      }
      if (op->callee && recursive_.contains(op->callee))
        found = "it calls '" + op->callee->name + "'" + at_line(*op) +
                ", which calls itself and needs a stack that threads have not";
    };
    ir::walk(body_, [&](const Op* op) { look(op, false); });
    for (const ir::Function* f : ir::callees(body_)) ir::walk(f->body, [&](const Op* op) { look(op, true); });
    for (const auto& [tape, n] : tapes)
      if (tapes_.at(tape).size() != n && found.empty())
        found = "what it keeps for later is used by other code";
    return found;
  }

  Op* loop_;
  Block* body_;
  Uses uses_;
  const TapeUses& tapes_;
  const std::unordered_set<const ir::Function*>& recursive_;
  FreeTrips& found_;
  bool reassociate_;
  bool ordered_ = false;  ///< there is a sum that threads would reorder
};

}  // namespace

bool TripAnalysis::free(Op* loop, FreeTrips& trips, std::string& why) const {
  trips = FreeTrips{};
  why = Trips(loop, tapes_, recursive_, reassociate_, trips).obstacle();
  return why.empty();
}

}  // namespace lantern::passes
