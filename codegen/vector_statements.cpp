// Operations on vectors: arithmetic in the compilers' vector extension, elements of tensors lane by lane.
#include <algorithm>
#include <tuple>

#include "lantern/codegen/statement_printer.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/minus_zero.hpp"
#include "lantern/compiler/passes/analysis/offset.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/escape.hpp"

namespace lantern::codegen {

namespace {

bool is_splat(const Value* v) { return v->def && v->def->is(Opcode::lane_splat_); }
bool is_lane_index(const Value* v) { return v->def && v->def->is(Opcode::lane_index_); }

/// Operators that take a scalar beside a vector.
bool mixes(const Op& op) {
  return op.is(Opcode::add_, Opcode::sub_, Opcode::mul_, Opcode::div_, Opcode::lt_, Opcode::le_, Opcode::eq_, Opcode::ne_);
}

bool is_splat_of(const Value* v, double number) {
  const Op* const c = is_splat(v) ? v->def->operands[0]->def : nullptr;
  return c && c->is(Opcode::constant_) && c->number == number;
}

/// A vector of indices without the constants that are added to it, and their sum.
std::tuple<const Value*, const Value*, std::uint64_t> without_constants(const Value* v) {
  std::uint64_t by = 0;
  for (;;) {
    const Op* const op = v->def;
    if (!op || !op->is(Opcode::add_, Opcode::sub_)) return {v, nullptr, by};
    const std::size_t splat = is_splat(op->operands[1]) ? 1 : 0;
    if (!is_splat(op->operands[splat]) || (op->is(Opcode::sub_) && splat == 0)) return {v, nullptr, by};
    const passes::Offset o = passes::offset(op->operands[splat]->def->operands[0]);
    if (o.base && op->is(Opcode::sub_)) return {v, nullptr, by};
    by += op->is(Opcode::sub_) ? 0 - o.by : o.by;
    v = op->operands[1 - splat];
    if (o.base) return {v, o.base, by};
  }
}

/// By how much a loop's number grows from iteration to iteration; 0: that is not known.
std::int64_t steps_by(const ir::Block* body) {
  const Op* const loop = body->parent;
  if (!loop || !loop->is(Opcode::loop_)) return 0;
  for (std::size_t i = 0; i < body->params.size(); ++i)
    if (const auto step = passes::step_of(loop, i); step && *step != 0) return *step;
  return 0;
}

}  // namespace

/// An operation whose result is a vector, or a number made of one.
void StatementPrinter::vector(const Op& op) {
  const Value* result = op.result();
  const Kind kind = result->type.kind();
  const int lanes = result->type.lanes();
  const auto function = [&](const char* name, Kind k) {
    return unit_.prelude().vector_function(name, k, lanes);
  };
  const auto called = [&](const std::string& f) {
    std::string list;
    Expression e{""};
    for (const Value* v : op.operands) {
      const Expression x = value(v);
      list += (list.empty() ? "" : ", ") + x.text;
      e.reads_memory |= x.reads_memory;
      e.calls |= x.calls;
      e.varying.insert(e.varying.end(), x.varying.begin(), x.varying.end());
    }
    e.text = f + "(" + list + ")";
    return e;
  };
  switch (op.code) {
    case Opcode::lane_index_:
      // Most uses need the first lane alone. Elsewhere, like a splat, it is made on the spot.
      bindings_[result] = {
          {function("index", Kind::i64) + "()"}, false, false};
      return;
    case Opcode::lane_sum_:
      // A sum of products is added up with fused operations.
      if (const Op* m = op.operands[0]->def; m && m->is(Opcode::mul_) && uses_.count(m->result()) == 1 &&
                                             !is_splat(m->operands[0]) && !is_splat(m->operands[1]) &&
                                             bindings_.at(m->result()).pending)
        return define(op, dot(*m));
      return define(op, called(unit_.prelude().vector_function("sum", kind, op.operands[0]->type.lanes())));
    case Opcode::lane_max_:
    case Opcode::lane_min_: {
      const char* const which = op.is(Opcode::lane_max_) ? "largest" : "smallest";
      return define(op, called(unit_.prelude().vector_function(which, kind, op.operands[0]->type.lanes())));
    }
    case Opcode::lane_any_:
      return define(
          op, called(unit_.prelude().vector_function("any", Kind::boolean, op.operands[0]->type.lanes())));
    case Opcode::lane_splat_: {
      // Where an operator takes a scalar it gets the scalar itself; elsewhere the vector is made on the spot.
      const Value* x = op.operands[0];
      const std::string name = x->def && x->def->is(Opcode::constant_) ? value(x).text : atom(x);
      const std::string of = kind == Kind::boolean ? "-(int64_t)" + name : name;
      bindings_[result] = {
          {function("splat", kind) + "(" + of + ")", Precedence::primary, false, value(x).varying},
          false,
          false};
      return;
    }
    case Opcode::cast_:
    case Opcode::cast_like_: {
      const Kind from = op.operands[0]->type.kind();
      Expression x = value(op.operands[0]);
      if (from == kind) return define(op, x);
      const std::string to = unit_.prelude().vector(kind, lanes);
      if (kind == Kind::boolean)
        return define(op, {as_mask("(" + in_context(x, Precedence::relational) + " != 0)", from, lanes),
                           Precedence::primary, x.reads_memory, x.varying});
      if (from == Kind::boolean) x.rewrite("-" + in_context(x, Precedence::unary), Precedence::unary);
      if ((from == Kind::f64 || from == Kind::f32) && (kind == Kind::i32 || kind == Kind::i64))
        return define(op, {unit_.prelude().saturating(from, kind, lanes) + "(" + x.text + ")",
                           Precedence::primary, x.reads_memory, x.varying});
      return define(op, {"__builtin_convertvector(" + x.text + ", " + to + ")", Precedence::primary,
                         x.reads_memory, x.varying});
    }
    case Opcode::select_:
      return define(op, called(function("select", kind)));
    case Opcode::min_:
      return define(op, called(function("min", kind)));
    case Opcode::max_:
      return define(op, called(function("max", kind)));
    case Opcode::imin_:
      return define(op, called(function("imin", kind)));
    case Opcode::imax_:
      return define(op, called(function("imax", kind)));
    case Opcode::land_:
    case Opcode::lor_: {
      if (const Value* const v = passes::told_from_minus_zero(op.operands[0], op.operands[1], is_splat_of); v && op.is(Opcode::lor_)) {
        const Kind of = v->type.kind(), bits = of == Kind::f32 ? Kind::i32 : Kind::i64;
        const Expression x = value(v);
        return define(op, {as_mask("((" + unit_.prelude().vector(bits, lanes) + ")" + in_context(x, Precedence::unary) + " != " +
                                       (of == Kind::f32 ? "(-2147483647 - 1))" : "(-9223372036854775807 - 1))"),
                                   of, lanes),
                           Precedence::primary, x.reads_memory, x.varying});
      }
      const Expression x = value(op.operands[0]), y = value(op.operands[1]);
      Expression e{"(" + in_context(x, Precedence::primary) + (op.is(Opcode::land_) ? " & " : " | ") +
                       in_context(y, Precedence::primary) + ")",
                   Precedence::primary, false, x.varying};
      e.varying.insert(e.varying.end(), y.varying.begin(), y.varying.end());
      return define(op, std::move(e));
    }
    case Opcode::lnot_: {
      const Expression x = value(op.operands[0]);
      return define(op, {"~" + in_context(x, Precedence::unary), Precedence::unary, false, x.varying});
    }
    case Opcode::sign_:
      return define(op, called(function("sign", kind)));
    default:
      break;
  }
  // Arithmetic and comparisons are written as for scalars; everything else is a function of one name.
  std::vector<Expression> operands;
  const bool bare =
      mixes(op) && std::ranges::any_of(op.operands, [](const Value* v) { return !is_splat(v); });
  for (const Value* v : op.operands) operands.push_back(value(bare && is_splat(v) ? v->def->operands[0] : v));
  const std::string_view pattern = ir::info(op.code).expression;
  const std::size_t call = pattern.find('(');
  // Lanes in equal steps are made on the spot where they are not just an index: as with lane_index.
  const auto steps = lane_steps(result);
  const bool in_steps = steps.has_value();
  if (may_wrap(op, op.operands[0]->type.kind()) && !(steps && steps->step.integer == 1)) {
    Expression e = called(function(("wrapping_" + std::string(ir::info(op.code).name)).c_str(), kind));
    if (!in_steps) return define(op, std::move(e));
    bindings_[result] = {std::move(e), false, false};
    return;
  }
  if (call == std::string_view::npos) {
    std::vector<std::string> functions;
    Expression e = substitute(pattern, operands, unit_.target(), kind, functions);
    const Kind of = op.operands[0]->type.kind();
    if (kind == Kind::boolean && of == Kind::f32) e.rewrite(as_mask(e.text, of, lanes), Precedence::primary);
    if (!in_steps) return define(op, std::move(e));
    bindings_[result] = {std::move(e), false, false};
    return;
  }
  define(op, called(function(std::string(pattern.substr(0, call)).c_str(), kind)));
}

/// What a comparison of vectors of a kind gives, as a vector of truth values.
std::string StatementPrinter::as_mask(const std::string& comparison, Kind kind, int lanes) {
  if (kind != Kind::f32) return comparison;
  return "__builtin_convertvector(" + comparison + ", " + unit_.prelude().vector(Kind::boolean, lanes) + ")";
}

/// The sum of the lanes of a product.
Expression StatementPrinter::dot(const Op& product) {
  const ir::Type& type = product.result()->type;
  const Expression x = value(product.operands[0]), y = value(product.operands[1]);
  Expression e{
      unit_.prelude().vector_function("dot", type.kind(), type.lanes()) + "(" + x.text + ", " + y.text + ")",
      Precedence::primary, x.reads_memory || y.reads_memory, x.varying};
  e.varying.insert(e.varying.end(), y.varying.begin(), y.varying.end());
  return e;
}

/// Where a vector of indices starts, and how far it is from lane to lane, if that is the same everywhere.
std::optional<StatementPrinter::LaneSteps> StatementPrinter::lane_steps(const Value* index) {
  if (is_lane_index(index)) return LaneSteps{integer_literal(0), integer_literal(1)};
  const Op* const op = index->def;
  if (!op || !op->is(Opcode::add_, Opcode::sub_, Opcode::mul_)) return {};
  for (const std::size_t i : {0u, 1u}) {
    const Value *x = op->operands[i], *y = op->operands[1 - i];
    if (!is_splat(y)) continue;
    const auto steps = lane_steps(x);
    if (!steps) continue;
    const Expression by = value(y->def->operands[0]);
    const auto product = [&](const Expression& e) {
      if (e.integer == 0 || by.integer == 1) return e;
      return e.integer == 1 ? by : applied(*op, {e, by});
    };
    if (op->is(Opcode::mul_)) return LaneSteps{product(steps->start), product(steps->step)};
    if (steps->start.integer == 0 && op->is(Opcode::add_)) return LaneSteps{by, steps->step};
    const bool minus = op->is(Opcode::sub_);
    const Expression &left = i == 0 ? steps->start : by, &right = i == 0 ? by : steps->start;
    // What is added comes behind, so that sums of neighbours have the same text.
    Expression e{
        minus ? in_context(left, Precedence::additive) + " - " + in_context(right, Precedence::multiplicative)
              : in_context(steps->start, Precedence::additive) + " + " +
                    in_context(by, Precedence::multiplicative),
        Precedence::additive, left.reads_memory || right.reads_memory, left.varying};
    if (right.integer == 0) e = left;
    e.varying.insert(e.varying.end(), right.varying.begin(), right.varying.end());
    Expression step = steps->step;
    if (minus && i == 1) {
      if (step.integer != 1) return {};
      step = integer_literal(-1);
    }
    return LaneSteps{std::move(e), std::move(step)};
  }
  return {};
}

/// get, set and add_at with a vector among the indices; lane_get and its like, which access the first lanes
/// alone.
void StatementPrinter::lanes_access(const Op& op) {
  const bool some = op.is(Opcode::lane_get_, Opcode::lane_set_, Opcode::lane_add_at_);
  const bool reads = op.is(Opcode::get_, Opcode::lane_get_);
  const bool adds = op.is(Opcode::add_at_, Opcode::lane_add_at_);
  const Value* t = op.operands[0];
  const std::size_t rank = dims(t).size();
  const std::vector<const Value*> indices(op.operands.begin() + 1,
                                          op.operands.begin() + 1 + static_cast<std::ptrdiff_t>(rank));
  std::size_t vectors = 0, which = 0;
  int lanes = 1;
  for (std::size_t i = 0; i < rank; ++i)
    if (indices[i]->type.is_vector()) {
      ++vectors;
      which = i;
      lanes = indices[i]->type.lanes();
    }
  std::optional<LaneSteps> steps;
  if (vectors == 1) steps = lane_steps(indices[which]);
  const bool follow = steps && steps->step.integer == 1;
  const std::string count =
      some ? in_context(value(op.operands.back()), Precedence::additive) : std::to_string(lanes);

  for (std::size_t i = 0; i < rank; ++i) {
    if (!indices[i]->type.is_vector()) {
      check_index(op, 1 + i, t, i);
    } else if (unit_.options().bounds_checks && !(is_lane_index(indices[i]) && dims(t)[i] == lanes)) {
      const passes::KnownRange known = ranges_->of(op, 1 + i);
      if ((known.low && known.high) || checked_before(op, known)) continue;
      if (steps && i == which && !follow) {
        unit_.prelude().need("check_steps");
        line("lt_check_steps(" + ws() + ", " + steps->start.text + ", " + steps->step.text + ", " + count +
             ", " + dim(t, i) + ", " + ir::c_string(where(op)) + ");");
      } else if (steps && i == which) {
        unit_.prelude().need("fail_index");
        const std::string first = in_context(steps->start, Precedence::additive), n = dim(t, i);
        const std::string below = known.low ? "" : first + " < 0";
        const std::string beyond = known.high ? "" : first + " > " + n + " - " + count;
        const std::string bad = known.high  ? first
                                : known.low ? first + " > " + n + " ? " + first + " : " + n
                                            : below + " || " + first + " > " + n + " ? " + first + " : " + n;
        line("if (" + below + (below.empty() || beyond.empty() ? "" : " || ") + beyond + ") lt_fail_index(" +
             ws() + ", " + bad + ", " + n + ", " + ir::c_string(where(op)) + ");");
      } else {
        line(unit_.prelude().vector_function("check", Kind::i64, lanes) + "(" + ws() + ", " +
             text(indices[i]) + ", " + count + ", " + dim(t, i) + ", " + ir::c_string(where(op)) + ");");
      }
    }
  }

  // The offset: of the first lane where the others follow in equal steps, else a vector.
  const Kind kind = t->type.element();
  const std::string data = reads ? atom(t) : updated(op);
  const auto index = [&](std::size_t i) { return steps && i == which ? steps->start : value(indices[i]); };
  // `other` represents the vector among the indices.
  const auto offset_with = [&](const Expression& other) {
    const auto at = [&](std::size_t i) { return i == which ? other : index(i); };
    Expression e = at(0);
    for (std::size_t i = 1; i < rank; ++i) e = in_row(e, dim(t, i), at(i));
    return e;
  };
  Expression offset = offset_with(index(which));
  std::string arguments = data + ".data, " + offset.text;
  std::string name = reads ? "gather" : adds ? "add_scatter" : "scatter";
  if (!steps && vectors == 1) {
    // What is the same in all lanes goes to the start: of x[3 * j], x[3 * j + 1], x[3 * j + 2] the lanes are
    // the same.
    const Value* own = indices[which];
    Expression alike = integer_literal(0);
    for (bool more = true; more;) {
      more = false;
      const Op* const sum = own->def;
      for (const std::size_t i : {0u, 1u})
        if (!more && sum && sum->is(Opcode::add_) && is_splat(sum->operands[i])) {
          const Expression by = value(sum->operands[i]->def->operands[0]);
          alike = alike.integer == 0 ? by : applied(*sum, {alike, by});
          own = sum->operands[1 - i];
          more = true;
        }
    }
    alike = offset_with(alike);
    const std::string row = elements(t, which + 1);
    arguments = data + ".data" + (alike.integer == 0 ? "" : " + " + in_context(alike, Precedence::additive)) +
                ", " +
                (row == "1" ? text(own) : in_context(value(own), Precedence::multiplicative) + " * " + row);
  }
  StridedWrites strided;
  if (steps) {
    arguments = data + ".data" + (offset.integer == 0 ? "" : " + " + in_context(offset, Precedence::additive));
    name = reads ? "load" : adds ? "add" : "store";
    const std::string row = elements(t, which + 1);
    const bool small =
        row == "1" && (steps->step.integer == 2 || steps->step.integer == 3 || steps->step.integer == 4);
    const bool every =
        small && (reads ? kind != Kind::boolean && (steps->step.integer != 4 || lanes >= 4)
                        : adds && !some && lanes % 8 == 0 && (kind == Kind::f64 || kind == Kind::i64));
    if (small && !reads && !some) strided = {steps->step.integer.value_or(0), arguments, every};
    if (every) {
      name += "_every" + steps->step.text;
    } else if (row == "1" && steps->step.integer == -1 && !some && kind != Kind::boolean) {
      name += "_back";
    } else if (!follow || row != "1") {
      const std::string step = in_context(steps->step, Precedence::multiplicative);
      arguments += ", " + (follow ? row : row == "1" ? step : step + " * " + row);
      name += "_strided";
    }
  }
  if (some) name += "_some";
  const std::string function = unit_.prelude().vector_function(name, kind, lanes);
  if (reads) {
    const Expression tensor = value(t);
    offset.varying.insert(offset.varying.end(), tensor.varying.begin(), tensor.varying.end());
    const std::string text = function + "(" + arguments + (some ? ", " + count : "") + ")";
    return define(op, {text, Precedence::primary, true, offset.varying});
  }
  if (const bool back = name.ends_with("_back"); name == "store" || name == "add" || back || strided.step > 0) {
    std::vector<JoinedWrite> writes{{"", 0, adds}};
    if (const auto before = joined_.find(&op); before != joined_.end()) {
      writes = std::move(before->second);
      joined_.erase(before);
    }
    const auto distance = distance_to_next(op, 1 + which, writes, strided.step);
    if (distance || writes.size() > 1) writes.back().value = atom(op.operands[rank + 1]);
    if (distance) {
      const Op* const next = uses_.user(op.result());
      writes.push_back({"", writes.back().place + *distance, next->is(Opcode::add_at_)});
      joined_[next] = std::move(writes);
      return;
    }
    if (writes.size() > 1)
      return strided.step > 0 ? interleaved_writes(op, writes, strided)
                            : joined_writes(op, writes, arguments, back);
  }
  line(function + "(" + arguments + ", " + text(op.operands[rank + 1]) + (some ? ", " + count : "") + ");");
}

/// How far from the elements that an iteration of a loop writes those lie that it adds to next, in the same
/// tensor. They overlap: a load of what was stored in two pieces just before waits until both are in the
/// cache.
std::optional<std::int64_t> StatementPrinter::distance_to_next(const Op& write, std::size_t index,
                                                               const std::vector<JoinedWrite>& so_far,
                                                               std::int64_t step) const {
  constexpr std::int64_t farthest = 4;
  const Kind kind = write.operands[0]->type.element();
  if ((kind != Kind::f64 && kind != Kind::f32) || steps_by(write.parent) == 0 ||
      uses_.count(write.result()) != 1)
    return {};
  const Op* const next = uses_.user(write.result());
  if (!next || next->parent != write.parent || !next->is(Opcode::add_at_, Opcode::set_) || !next->in_place ||
      next->operands[0] != write.result() || !(next->operands[index]->type == write.operands[index]->type))
    return {};
  const bool sets = next->is(Opcode::set_);
  if (sets && step == 0) return {};
  for (std::size_t i = 1; i + 1 < write.operands.size(); ++i)
    if (i != index && next->operands[i] != write.operands[i]) return {};
  const auto [from, from_base, from_by] = without_constants(write.operands[index]);
  const auto [to, to_base, to_by] = without_constants(next->operands[index]);
  if (from != to || from_base != to_base) return {};
  const auto distance = static_cast<std::int64_t>(to_by - from_by);
  const std::int64_t limit = std::min<std::int64_t>(farthest, write.operands[index]->type.lanes() - 1);
  if (distance > limit || distance < -limit) return {};
  const std::int64_t place = so_far.back().place + distance;
  for (const JoinedWrite& w : so_far) {
    if (place - w.place > limit || w.place - place > limit) return {};
    if (sets && (place - w.place) % step == 0) return {};  // of other elements than those written so far
  }
  return distance;
}

/// Writes of one iteration with a stride, the last with its first lane at an address:
/// where they interleave, so that they leave out no element, they are made as whole vectors.
void StatementPrinter::interleaved_writes(const Op& last, const std::vector<JoinedWrite>& writes,
                                          const StridedWrites& strided) {
  const ir::Type& type = last.operands.back()->type;
  const std::int64_t lowest = std::ranges::min(writes, {}, &JoinedWrite::place).place,
                     highest = std::ranges::max(writes, {}, &JoinedWrite::place).place;
  const bool rises = steps_by(last.parent) > 0;
  const auto written = [&](std::int64_t place) {
    return std::ranges::find(writes, place, &JoinedWrite::place) != writes.end();
  };
  bool all = true;
  for (std::int64_t k = 0; k < strided.step; ++k) all &= written(rises ? highest - k : lowest + k);
  const auto address = [&](std::int64_t place) {
    const std::int64_t by = place - writes.back().place;
    return strided.address + (by == 0 ? "" : (by > 0 ? " + " : " - ") + std::to_string(std::abs(by)));
  };
  const std::string step = std::to_string(strided.step);
  if (!all) {
    for (const JoinedWrite& w : writes) {
      const bool every = w.adds && strided.adds_every;
      const std::string name =
          (w.adds ? "add_" : "store_") + (every ? "every" + step : std::string("strided"));
      line(unit_.prelude().vector_function(name, type.kind(), type.lanes()) + "(" + address(w.place) +
           (every ? "" : ", " + step) + ", " + w.value + ");");
    }
    return;
  }
  std::string name = "interleaved" + step + (rises ? "_up" : "_down"), values;
  for (const JoinedWrite& w : writes) {
    name += (w.adds ? "_add" : "_set") + std::to_string(w.place - lowest);
    values += ", " + w.value;
  }
  line(unit_.prelude().vector_function(name, type.kind(), type.lanes()) + "(" + address(lowest) + values +
       ");");
}

/// Writes of one iteration, the last with its first lane at `address`: the sums of what overlaps are made in
/// registers.
void StatementPrinter::joined_writes(const Op& last, const std::vector<JoinedWrite>& writes,
                                     const std::string& address, bool back) {
  const std::int64_t lowest = std::ranges::min(writes, {}, &JoinedWrite::place).place;
  const ir::Type& type = last.operands.back()->type;
  const bool rises = (steps_by(last.parent) > 0) != back;
  std::string name = back ? "joined_back" : "joined", values;
  name += rises ? "_up" : "_down";
  for (const JoinedWrite& w : writes) {
    name += (w.adds ? "_add" : "_set") + std::to_string(w.place - lowest);
    values += ", " + w.value;
  }
  const std::int64_t first = lowest - writes.back().place - (back ? type.lanes() - 1 : 0);
  const std::string at = first == 0 ? "" : (first > 0 ? " + " : " - ") + std::to_string(std::abs(first));
  line(unit_.prelude().vector_function(name, type.kind(), type.lanes()) + "(" + address + at + values + ");");
}

}  // namespace lantern::codegen
