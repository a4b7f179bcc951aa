// Folding: constants, exact algebra, and constructs whose condition is known.
//
// Floating-point rules hold for every operand: -0.0, infinities and NaN. Hence x + 0.0 stays (it turns -0.0
// into 0.0) and x * 0.0 stays (NaN, infinities), while x + -0.0, x - 0.0, x * 1 and x / 1 are x.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "lantern/compiler/passes/analysis/minus_zero.hpp"
#include "lantern/compiler/passes/analysis/shapes.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/scalar_value.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

using ir::Kind;
using ir::Type;

bool is_integer(const Type& type) { return type.element() == Kind::i32 || type.element() == Kind::i64; }

/// Every value of the first kind is a value of the second.
bool widens(Kind from, Kind to) {
  switch (from) {
    case Kind::boolean:
      return true;
    case Kind::i32:
      return to == Kind::i64 || to == Kind::f64;
    case Kind::f32:
      return to == Kind::f64;
    default:
      return from == to;
  }
}

class Folding : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Action enter(Op* op) override {
    switch (op->code) {
      case Opcode::branch_:
        return enter_branch(op);
      case Opcode::loop_:
        return enter_loop(op);
      case Opcode::check_:
        return is_true(op->operands[0]) ? Action::drop : Action::keep;
      case Opcode::ref_new_:
        use_shape_of(op, 0);
        return Action::keep;
      case Opcode::push_:
      case Opcode::pop_:
        shapes_.note(op);
        return Action::keep;
      default:
        break;
    }
    const ir::OpInfo& row = ir::info(op->code);
    if (row.formulas.empty() && !row.elementwise && !row.in_notation()) return Action::keep;
    Value* result = op->result();
    if (Value* by = rewrite(op); by && by != result && refines(by->type, result->type)) {
      replace(result, by);
      return Action::drop;
    }
    shapes_.note(op);
    return Action::keep;
  }

  void leave(Op* op) override {
    if (!op->is(Opcode::branch_)) return;
    merge_equal_results(op);
    if (only_chooses(*op)) choose(op);
  }

  // ---- constructs

  Action enter_branch(Op* op) {
    const Op* condition = constant(op->operands[0]);
    if (!condition) return Action::keep;
    Block* taken = op->blocks[condition->integer ? 0 : 1];
    for (std::size_t i = 0; i < op->results.size(); ++i)
      if (!refines(taken->yields()[i]->type, op->results[i]->type)) return Action::keep;
    splice(taken, op);
    return Action::drop;
  }

  /// A result that is the same on both sides does not depend on the condition.
  void merge_equal_results(Op* op) {
    for (std::size_t i = 0; i < op->results.size(); ++i) {
      Value *a = op->blocks[0]->yields()[i], *b = op->blocks[1]->yields()[i];
      const Op *ca = constant(a), *cb = constant(b);
      Value* result = op->results[i];
      if (a == b && refines(a->type, result->type)) {
        replace(result, a);
      } else if (ca && cb && same_constant(*ca, *cb)) {
        replace(result, again(*ca));
      } else if (is_true(a) && is_false(b)) {
        replace(result, op->operands[0]);
      }
    }
  }

  /// True where both sides give numbers that are available. Processors guess which side it will be, and a
  /// wrong guess costs as much as some twenty additions; a selection costs one. (AND and OR stay: conditions
  /// are what loops and checks ask about.)
  static bool only_chooses(const Op& op) {
    constexpr std::size_t most = 4;
    if (op.results.empty() || op.results.size() > most) return false;
    for (const Block* b : op.blocks)
      if (!std::ranges::all_of(b->ops, [](const Op* o) { return o->is(Opcode::yield_, Opcode::constant_); }))
        return false;
    return std::ranges::all_of(op.results,
                               [](const Value* v) { return v->type.is_scalar() && !v->type.is_bool(); });
  }

  /// Selections in place of the branch.
  void choose(Op* op) {
    std::erase(here()->ops, op);
    for (std::size_t i = 0; i < op->results.size(); ++i) {
      Op* const select = module().new_op(Opcode::select_, here());
      select->loc = op->loc;
      select->operands = {op->operands[0]};
      for (Block* b : op->blocks) {
        Value* v = b->yields()[i];
        if (const Op* c = constant(v); c && v->block == b) v = again(*c);
        select->operands.push_back(v);
      }
      module().add_result(select, op->results[i]->type, op->results[i]->name);
      here()->ops.push_back(select);
      replace(op->results[i], select->result());
    }
    note_change();
  }

  Action enter_loop(Op* op) {
    Block *head = op->blocks[0], *body = op->blocks[1];
    if (is_false(head->yields()[0])) {
      bool fits = true;
      for (std::size_t i = 0; i < op->results.size(); ++i)
        fits &= refines(op->operands[i]->type, op->results[i]->type);
      if (fits) {
        for (std::size_t i = 0; i < op->results.size(); ++i) {
          replace(head->params[i], op->operands[i]);
          replace(op->results[i], op->operands[i]);
        }
        splice(head, nullptr);  // its effects happen once
        return Action::drop;
      }
    }
    // State that an iteration hands on as it got it is what it was before the loop.
    for (std::size_t i = 0; i < op->results.size(); ++i) {
      Value *initial = op->operands[i], *next = now(body->yields()[i]);
      if ((next != body->params[i] && next != initial) || !refines(initial->type, op->results[i]->type))
        continue;
      if (!refines(initial->type, head->params[i]->type) || !refines(initial->type, body->params[i]->type))
        continue;
      replace(head->params[i], initial);
      replace(body->params[i], initial);
      replace(op->results[i], initial);
    }
    shapes_.note(op);
    return Action::keep;
  }

  Value* again(const Op& constant) {
    Op* const copy = new_constant(constant.loc, constant.result()->type);
    copy->number = constant.number;
    copy->integer = constant.integer;
    return copy->result();
  }
  Op* new_constant(const ir::Location& loc, const Type& type) {
    Op* op = module().new_op(Opcode::constant_, here());
    op->loc = loc;
    module().add_result(op, type);
    here()->ops.push_back(op);
    note_change();
    return op;
  }

  // ---- what operands are

  bool is_true(const Value* v) const { return constant(v) && v->type.is_bool() && constant(v)->integer == 1; }
  bool is_false(const Value* v) const {
    return constant(v) && v->type.is_bool() && constant(v)->integer == 0;
  }

  /// The scalar constant that a value is, or of which all its elements are made.
  const Op* splat(const Value* v) const {
    if (v->def && v->def->is(Opcode::fill_, Opcode::broadcast_)) v = v->def->operands[0];
    return constant(v);
  }
  /// True where every element of `v` is this number, to the bit, and `v` has the shape of `x`.
  bool is_number(const Value* v, double number, Value* x) {
    if (v->type.is_tensor() && !same_shape(v, x)) return false;
    if (v->def && v->def->is(Opcode::zeros_like_)) return std::bit_cast<std::uint64_t>(number) == 0;
    const Op* c = splat(v);
    if (!c) return false;
    if (!v->type.is_float_element())
      return !std::signbit(number) && static_cast<double>(c->integer) == number;
    return std::bit_cast<std::uint64_t>(c->number) == std::bit_cast<std::uint64_t>(number);
  }
  Value* operand_of(const Value* v, Opcode code, std::size_t i = 0) const {
    return v->def && v->def->is(code) ? v->def->operands[i] : nullptr;
  }

  // ---- rewriting in place

  Value* become(Op* op, Opcode code, std::vector<Value*> operands, std::int64_t attribute = 0) {
    op->code = code;
    op->operands = std::move(operands);
    op->integer = attribute;
    note_change();
    return rewrite(op);
  }
  Value* become_integer(Op* op, std::int64_t v) {
    op->code = Opcode::constant_;
    op->operands.clear();
    op->integer = v;
    note_change();
    return nullptr;
  }
  /// The result as the value of the operation, unless it fails.
  bool compute(Op* op) {
    if (!op->result()->type.is_scalar()) return false;
    const auto value = ir::constant_value(*op);
    if (!value) return false;
    op->number = value->number;
    op->integer = value->integer;
    op->code = Opcode::constant_;
    op->operands.clear();
    note_change();
    return true;
  }

  /// The value that may represent the result, or null; the operation itself may become a simpler one.
  Value* rewrite(Op* op) {
    const ir::OpInfo& row = ir::info(op->code);
    bool known = row.elementwise || op->is(Opcode::cast_);
    for (const Value* v : op->operands) known &= constant(v) != nullptr;
    if (known && compute(op)) return nullptr;
    if (!row.elementwise) return tensor(op);
    switch (row.rule) {
      case ir::Rule::compare:
        return comparison(op);
      case ir::Rule::logic:
        return logic(op);
      case ir::Rule::choice:
        return choice(op);
      default:
        return arithmetic(op);
    }
  }

  // ---- algebra

  /// Two of these together do not wrap, in i32 either.
  static bool is_small(std::int64_t v) { return v > -(std::int64_t{1} << 30) && v < std::int64_t{1} << 30; }
  /// What an integer is more than another, if that is a number: of x + 3 it is 3 and x.
  static std::optional<std::pair<Value*, std::int64_t>> distance(const Op* op) {
    if (!op || !op->is(Opcode::add_, Opcode::sub_)) return {};
    const Op *x = constant(op->operands[0]), *y = constant(op->operands[1]);
    if (y && is_small(y->integer))
      return std::pair(op->operands[0], op->is(Opcode::add_) ? y->integer : -y->integer);
    if (x && is_small(x->integer) && op->is(Opcode::add_)) return std::pair(op->operands[1], x->integer);
    return {};
  }
  /// (x + a) - b is x + (a - b), and x + -a is x - a: what are the same sizes and indices are the same
  /// values.
  Value* moved(Op* op) {
    if (Value* const other = undone(*op)) return other;
    const auto outer = distance(op);
    if (!outer) return nullptr;
    auto [base, by] = *outer;
    const auto inner = distance(base->def);
    if (inner) {
      base = inner->first;
      by += inner->second;
      if (by == 0) return base;
    } else if (op->is(Opcode::add_) == (by > 0)) {
      return nullptr;
    }
    Op* const c = new_constant(op->loc, op->result()->type);
    c->integer = by < 0 ? -by : by;
    return become(op, by < 0 ? Opcode::sub_ : Opcode::add_, {base, c->result()});
  }

  /// x + (y - x) and (x + y) - x are y, also where they wrap.
  Value* undone(const Op& op) const {
    const auto either = [&](Value* by, Value* from) -> Value* {
      const Opcode inverse = op.is(Opcode::add_) ? Opcode::sub_ : Opcode::add_;
      if (!by->def || !by->def->is(inverse)) return nullptr;
      const auto& in = by->def->operands;
      if (in[1] == from) return in[0];
      return op.is(Opcode::sub_) && in[0] == from ? in[1] : nullptr;
    };
    if (Value* const other = either(op.operands[0], op.operands[1])) return other;
    return op.is(Opcode::add_) ? either(op.operands[1], op.operands[0]) : nullptr;
  }

  Value* arithmetic(Op* op) {
    Value *x = op->operands[0], *y = op->operands.size() > 1 ? op->operands[1] : nullptr;
    const bool integer = is_integer(x->type), integer_scalar = x->type.is_integer();
    switch (op->code) {
      case Opcode::add_: {
        const double zero = integer ? 0.0 : -0.0;
        if (is_number(y, zero, x)) return x;
        if (is_number(x, zero, y)) return y;
        if (Value* n = operand_of(y, Opcode::neg_)) return become(op, Opcode::sub_, {x, n});
        if (Value* n = operand_of(x, Opcode::neg_)) return become(op, Opcode::sub_, {y, n});
        return integer_scalar ? moved(op) : nullptr;
      }
      case Opcode::sub_:
        if (is_number(y, 0.0, x)) return x;
        if (Value* n = operand_of(y, Opcode::neg_)) return become(op, Opcode::add_, {x, n});
        if (integer_scalar && x == y) return become_integer(op, 0);
        return integer_scalar ? moved(op) : nullptr;
      case Opcode::mul_:
        if (is_number(y, 1.0, x)) return x;
        if (is_number(x, 1.0, y)) return y;
        if (is_number(y, -1.0, x)) return become(op, Opcode::neg_, {x});
        if (is_number(x, -1.0, y)) return become(op, Opcode::neg_, {y});
        if (integer_scalar && (is_number(x, 0.0, y) || is_number(y, 0.0, x))) become_integer(op, 0);
        return nullptr;
      case Opcode::div_:
        if (is_number(y, 1.0, x)) return x;
        if (is_number(y, -1.0, x) && !integer) return become(op, Opcode::neg_, {x});
        return nullptr;
      case Opcode::neg_:
        return operand_of(x, Opcode::neg_);
      case Opcode::rem_:
        if (integer_scalar && is_number(y, 1.0, x)) become_integer(op, 0);
        return nullptr;
      case Opcode::fma_:
        if (is_number(y, 1.0, x)) return become(op, Opcode::add_, {x, op->operands[2]});
        if (is_number(x, 1.0, y)) return become(op, Opcode::add_, {y, op->operands[2]});
        return nullptr;
      case Opcode::min_:
      case Opcode::max_:
      case Opcode::imin_:
      case Opcode::imax_:
        return x == y ? x : nullptr;
      case Opcode::abs_:
        if (operand_of(x, Opcode::abs_)) return x;
        if (Value* n = operand_of(x, Opcode::neg_)) return become(op, Opcode::abs_, {n});
        return nullptr;
      case Opcode::floor_:
      case Opcode::ceil_:
      case Opcode::trunc_:
      case Opcode::round_:
        for (const Opcode whole : {Opcode::floor_, Opcode::ceil_, Opcode::trunc_, Opcode::round_})
          if (operand_of(x, whole)) return x;
        return nullptr;
      case Opcode::pow_:
        return is_number(y, 1.0, x) ? x : nullptr;
      default:
        return nullptr;
    }
  }

  Value* comparison(Op* op) {
    Value *x = op->operands[0], *y = op->operands[1];
    // A floating number may be NaN, which does not equal itself.
    if (x == y && x->type.is_scalar() && !x->type.is_float_element())
      become_integer(op, op->is(Opcode::le_, Opcode::eq_));
    return nullptr;
  }

  /// x == y of the same two numbers, in either order.
  static bool same_pair(const Op* a, const Op* b) {
    return a->operands == b->operands ||
           (a->operands[0] == b->operands[1] && a->operands[1] == b->operands[0]);
  }
  /// Exactly one of the two holds, also of NaN.
  bool complementary(const Value* a, const Value* b) const {
    if (operand_of(a, Opcode::lnot_) == b || operand_of(b, Opcode::lnot_) == a) return true;
    if (!a->def || !b->def) return false;
    return ((a->def->is(Opcode::eq_) && b->def->is(Opcode::ne_)) ||
            (a->def->is(Opcode::ne_) && b->def->is(Opcode::eq_))) &&
           same_pair(a->def, b->def);
  }
  /// True if b holds wherever a does, also where numbers are NaN. Looks at comparisons of the same numbers, and at a few
  /// parts of `and` and `or`.
  bool implies(const Value* a, const Value* b, int depth = 3) const {
    if (a == b) return true;
    if (depth == 0 || !a->def || !b->def) return false;
    const Op *x = a->def, *y = b->def;
    if (x->is(Opcode::lor_))
      return implies(x->operands[0], b, depth - 1) && implies(x->operands[1], b, depth - 1);
    if (y->is(Opcode::land_))
      return implies(a, y->operands[0], depth - 1) && implies(a, y->operands[1], depth - 1);
    if (x->is(Opcode::land_) &&
        (implies(x->operands[0], b, depth - 1) || implies(x->operands[1], b, depth - 1)))
      return true;
    if (y->is(Opcode::lor_))
      return implies(a, y->operands[0], depth - 1) || implies(a, y->operands[1], depth - 1);
    if (y->is(Opcode::le_))
      return (x->is(Opcode::eq_) && same_pair(x, y)) || (x->is(Opcode::lt_) && x->operands == y->operands);
    return x->is(Opcode::lt_) && y->is(Opcode::ne_) && same_pair(x, y);
  }

  /// Whether a number is never -0: the sum of 0 and another.
  bool is_sum_with_zero(const Value* v) {
    if (!v->def || !v->def->is(Opcode::add_)) return false;
    return std::ranges::any_of(v->def->operands, [&](const Value* x) { return is_number(x, 0.0, v->def->operands[0]); });
  }
  /// What `v != 0 or 0 < copysign(1, v)` comes to where v is made here; null where it is open.
  Value* not_minus_zero(Op* op, Value* v) {
    if (v->type.is_tensor()) return nullptr;
    if (is_sum_with_zero(v)) return become_integer(op, 1);
    if (!v->def || !v->def->is(Opcode::select_)) return nullptr;
    Value *const c = v->def->operands[0], *const yes = v->def->operands[1], *const no = v->def->operands[2];
    if (is_sum_with_zero(yes) && is_number(no, -0.0, v)) return c;
    return is_sum_with_zero(no) && is_number(yes, -0.0, v) ? become(op, Opcode::lnot_, {c}) : nullptr;
  }

  Value* logic(Op* op) {
    Value *x = op->operands[0], *y = op->operands.size() > 1 ? op->operands[1] : nullptr;
    if (op->is(Opcode::lnot_)) {
      if (Value* inner = operand_of(x, Opcode::lnot_)) return inner;
      if (operand_of(x, Opcode::eq_)) return become(op, Opcode::ne_, std::vector<Value*>(x->def->operands));
      if (operand_of(x, Opcode::ne_)) return become(op, Opcode::eq_, std::vector<Value*>(x->def->operands));
      return nullptr;
    }
    if (x == y) return x;
    const bool conjunction = op->is(Opcode::land_);
    if (!conjunction)
      for (const auto& [one, other] : {std::pair(x, y), std::pair(y, x)})
        if (Value* const v = told_from_minus_zero(one, other, [&](Value* w, double c) { return is_number(w, c, one->def->operands[0]); }))
          return not_minus_zero(op, v);
    if (conjunction ? is_true(x) : is_false(x)) return y;
    if (conjunction ? is_true(y) : is_false(y)) return x;
    if (conjunction ? is_false(x) : is_true(x)) return x;
    if (conjunction ? is_false(y) : is_true(y)) return y;
    if (implies(x, y)) return conjunction ? x : y;
    if (implies(y, x)) return conjunction ? y : x;
    if (x->type.is_scalar() && complementary(x, y)) return become_integer(op, conjunction ? 0 : 1);
    // x or (not x and c) is x or c; x and (not x or c) is x and c.
    const Opcode inner = conjunction ? Opcode::lor_ : Opcode::land_;
    for (const auto& [one, other] : {std::pair(x, y), std::pair(y, x)})
      if (other->def && other->def->is(inner))
        for (const std::size_t i : {0u, 1u})
          if (complementary(one, other->def->operands[i]))
            return become(op, op->code, {one, other->def->operands[1 - i]});
    return without_common_part(op, inner);
  }

  /// (x and c) or (y and c) as (x or y) and c, and the same with `and` and `or` exchanged; null where no part is common.
  Value* without_common_part(Op* op, Opcode inner) {
    if (op->result()->type.is_tensor()) return nullptr;
    std::vector<Value*> x = parts(op->operands[0], inner), y = parts(op->operands[1], inner), common;
    for (Value* v : x)
      if (std::ranges::find(y, v) != y.end()) common.push_back(v);
    // Where one side is the common part alone, it implies the other or follows from it.
    if (common.empty() || x.size() == common.size() || y.size() == common.size()) return nullptr;
    for (std::vector<Value*>* side : {&x, &y})
      std::erase_if(*side, [&](Value* v) { return std::ranges::find(common, v) != common.end(); });
    const auto all = [&](const std::vector<Value*>& values, Opcode code) {
      Value* result = values[0];
      for (Value* v : std::span(values).subspan(1)) {
        Op* const made = module().new_op(code, here());
        made->loc = op->loc;
        made->operands = {result, v};
        result = module().add_result(made, op->result()->type);
        if (Value* simpler = rewrite(made); simpler && simpler != result) result = simpler;
        else here()->ops.push_back(made);
      }
      return result;
    };
    return become(op, inner, {all({all(x, inner), all(y, inner)}, op->code), all(common, inner)});
  }
  /// What a few conjunctions, or disjunctions, are made of, in their order, each once.
  static std::vector<Value*> parts(Value* v, Opcode code, int depth = 3) {
    if (depth == 0 || !v->def || !v->def->is(code)) return {v};
    std::vector<Value*> all = parts(v->def->operands[0], code, depth - 1);
    for (Value* part : parts(v->def->operands[1], code, depth - 1))
      if (std::ranges::find(all, part) == all.end()) all.push_back(part);
    return all;
  }

  Value* choice(Op* op) {
    Value *c = op->operands[0], *x = op->operands[1], *y = op->operands[2];
    if (x == y) return c->type.is_scalar() || same_shape(c, x) ? x : nullptr;
    const bool fit = x->type.is_scalar() || same_shape(x, y);
    if (fit && is_true(c)) return x;
    if (fit && is_false(c)) return y;
    if (Value* inner = operand_of(c, Opcode::lnot_)) return become(op, Opcode::select_, {inner, y, x});
    if (is_true(x) && is_false(y)) return c;
    if (is_false(x) && is_true(y)) return become(op, Opcode::lnot_, {c});
    return number_or_minus_zero(c, x, y);
  }
  /// The number v of `v != 0 or 0 < copysign(1, v) ? v + 0 : -0`, which is v; else null.
  Value* number_or_minus_zero(const Value* c, Value* x, const Value* y) {
    if (!c->type.is_scalar() || !c->def || !c->def->is(Opcode::lor_) || !is_sum_with_zero(x) || !is_number(y, -0.0, x))
      return nullptr;
    const Value *const one = c->def->operands[0], *const other = c->def->operands[1];
    for (const auto& [differs, less] : {std::pair(one, other), std::pair(other, one)})
      if (Value* const v = told_from_minus_zero(
              differs, less, [&](Value* w, double n) { return is_number(w, n, differs->def->operands[0]); }))
        return std::ranges::find(x->def->operands, v) != x->def->operands.end() ? v : nullptr;
    return nullptr;
  }

  // ---- conversions and tensors

  Value* tensor(Op* op) {
    Value* x = op->operands[0];
    Value* y = op->operands.size() > 1 ? op->operands[1] : nullptr;
    const Type& result = op->result()->type;
    switch (op->code) {
      case Opcode::cast_: {
        const Kind to = result.element();
        if (x->type.element() == to) return x;
        Value* origin = operand_of(x, Opcode::cast_);
        return origin && origin->type.element() == to && widens(to, x->type.element()) ? origin : nullptr;
      }
      case Opcode::cast_like_:
        return become(op, Opcode::cast_, {x}, static_cast<std::int64_t>(y->type.element()));
      case Opcode::dim_:
        return dimension(op);
      case Opcode::get_:
        return stored(*op);
      case Opcode::zeros_like_:
        use_shape_of(op, 0);
        if (x->type.is_scalar()) {
          op->number = 0;
          become_integer(op, 0);
        }
        return nullptr;
      case Opcode::broadcast_:
        use_shape_of(op, 1);
        return y->type.is_scalar() || same_shape(x, y) ? x : nullptr;
      case Opcode::reduce_to_:
        use_shape_of(op, 1);
        if (y->type.is_scalar()) return x->type.is_scalar() ? x : become(op, Opcode::sum_, {x});
        return same_shape(x, y) ? x : nullptr;
      case Opcode::reshape_:
        use_shape_of(op, 1);
        if (same_shape(x, y)) return x;
        return reshaped(op);
      case Opcode::transpose_:
        return operand_of(x, Opcode::transpose_);
      default:
        return nullptr;
    }
  }

  /// The element that was put where it is read, possibly before others that are put elsewhere.
  static Value* stored(const Op& get) {
    const Op* set = get.operands[0]->def;
    for (int steps = 0; steps < 64 && set && set->is(Opcode::set_); ++steps, set = set->operands[0]->def) {
      bool same = true, differ = false;
      for (std::size_t i = 1; i < get.operands.size(); ++i) {
        if (get.operands[i] == set->operands[i]) continue;
        const Op *a = constant(get.operands[i]), *b = constant(set->operands[i]);
        same &= a && b && a->integer == b->integer;
        differ |= a && b && a->integer != b->integer;
      }
      if (same) return set->operands.back();
      if (!differ) return nullptr;
    }
    return nullptr;
  }

  /// Elements that get two shapes of known sizes, one after the other, get the second one at once.
  Value* reshaped(Op* op) {
    Value* const origin = operand_of(op->operands[0], Opcode::reshape_);
    if (!origin) return nullptr;
    for (const Value* v : {static_cast<const Value*>(origin), static_cast<const Value*>(op->operands[0]),
                           static_cast<const Value*>(op->result())})
      if (!v->type.is_tensor() || std::ranges::count(v->type.dims(), ir::dynamic) > 0) return nullptr;
    return become(op, Opcode::reshape_, {origin, op->operands[1]});
  }

  // ---- shapes

  Value* shape_of(const Value* v) const { return shapes_.of(v); }
  bool same_shape(const Value* a, const Value* b) const {
    if (!a->type.is_tensor() || !b->type.is_tensor() || a->type.rank() != b->type.rank()) return false;
    if (shape_of(a) == shape_of(b)) return true;
    for (std::size_t i = 0; i < a->type.dims().size(); ++i)
      if (a->type.dims()[i] == ir::dynamic || a->type.dims()[i] != b->type.dims()[i]) return false;
    return true;
  }
  /// An operand of which only the shape matters need not wait for its elements.
  void use_shape_of(Op* op, std::size_t i) {
    Value* v = op->operands[i];
    Value* origin = v->type.is_tensor() ? shape_of(v) : v;
    if (origin == v || !(origin->type == v->type)) return;
    op->operands[i] = origin;
    note_change();
  }

  /// Follows a size to where it was given.
  Value* dimension(Op* op) {
    constexpr int farthest = 32;
    for (int step = 0; step < farthest; ++step) {
      Value* t = op->operands[0];
      const auto d = static_cast<std::size_t>(op->integer);
      if (t->type.dims()[d] != ir::dynamic) return become_integer(op, t->type.dims()[d]);
      if (Value* origin = shape_of(t); origin != t) {
        follow(op, origin, d);
        continue;
      }
      if (!t->def) return nullptr;
      const std::vector<Value*>& in = t->def->operands;
      if (const auto from = ir::size_source(*t->def, d)) {
        if (from->dimension < 0) return from->value;
        follow(op, from->value, static_cast<std::size_t>(from->dimension));
        continue;
      }
      if (t->def->is(Opcode::slice_)) return become(op, Opcode::sub_, {in[2], in[1]});
      if (t->def->is(Opcode::concat_)) return become(op, Opcode::add_, {size_of(in[0]), size_of(in[1])});
      return nullptr;
    }
    return nullptr;
  }
  /// The number of rows of a tensor, in front of the current operation.
  Value* size_of(Value* t) {
    Op* op = module().new_op(Opcode::dim_, here());
    op->operands = {t};
    module().add_result(op, ir::I64);
    here()->ops.push_back(op);
    note_change();
    return op->result();
  }
  void follow(Op* dim, Value* t, std::size_t d) {
    dim->operands[0] = t;
    dim->integer = static_cast<std::int64_t>(d);
    note_change();
  }

  Shapes shapes_{function()};
};

}  // namespace

bool fold(ir::Function& function) { return Folding(function).run(); }

}  // namespace lantern::passes
