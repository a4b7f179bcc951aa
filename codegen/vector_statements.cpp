// Operations on vectors: arithmetic in the compilers' vector extension, elements of tensors lane by lane.
#include <algorithm>
#include <limits>
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
  const auto on_operands = [&](const std::string& f) {
    std::vector<Expression> arguments;
    for (const Value* v : op.operands) arguments.push_back(value(v));
    return called(f, std::move(arguments));
  };
  const auto convert = [&](const Expression& x) { return called("__builtin_convertvector", {x, Expression(unit_.prelude().vector(kind, lanes))}); };
  switch (op.code) {
    case Opcode::lane_index_:
      // Most uses need the first lane alone. Elsewhere, like a splat, it is made on the spot.
      return bind(result, called(function("index", Kind::i64), {}));
    case Opcode::lane_sum_:
      // A sum of products is added up with fused operations.
      if (const Op* m = op.operands[0]->def; m && m->is(Opcode::mul_) && uses_.count(m->result()) == 1 &&
                                             !is_splat(m->operands[0]) && !is_splat(m->operands[1]) &&
                                             bindings_.at(m->result()).pending)
        return define(op, dot(*m));
      return define(op, on_operands(unit_.prelude().vector_function("sum", kind, op.operands[0]->type.lanes())));
    case Opcode::lane_max_:
    case Opcode::lane_min_: {
      const char* const which = op.is(Opcode::lane_max_) ? "largest" : "smallest";
      return define(op, on_operands(unit_.prelude().vector_function(which, kind, op.operands[0]->type.lanes())));
    }
    case Opcode::lane_any_:
      return define(
          op, on_operands(unit_.prelude().vector_function("any", Kind::boolean, op.operands[0]->type.lanes())));
    case Opcode::lane_splat_: {
      // Where an operator takes a scalar it gets the scalar itself; elsewhere the vector is made on the spot.
      const Value* x = op.operands[0];
      if (!is_constant(x)) atom(x);
      const Expression of = kind == Kind::boolean ? prefix("-", cast_to("int64_t", value(x))) : value(x);
      return bind(result, called(function("splat", kind), {of}));
    }
    case Opcode::cast_:
    case Opcode::cast_like_: {
      const Kind from = op.operands[0]->type.kind();
      Expression x = value(op.operands[0]);
      if (from == kind) return define(op, x);
      if (kind == Kind::boolean) return define(op, as_mask(binary(x, "!=", integer_literal(0)), from, lanes));
      if (from == Kind::boolean) x = prefix("-", x);
      if ((from == Kind::f64 || from == Kind::f32) && (kind == Kind::i32 || kind == Kind::i64))
        return define(op, called(unit_.prelude().saturating(from, kind, lanes), {x}));
      return define(op, convert(x));
    }
    case Opcode::select_:
      return define(op, on_operands(function("select", kind)));
    case Opcode::min_:
      return define(op, on_operands(function("min", kind)));
    case Opcode::max_:
      return define(op, on_operands(function("max", kind)));
    case Opcode::imin_:
      return define(op, on_operands(function("imin", kind)));
    case Opcode::imax_:
      return define(op, on_operands(function("imax", kind)));
    case Opcode::land_:
    case Opcode::lor_: {
      if (const Value* const v = passes::told_from_minus_zero(op.operands[0], op.operands[1], is_splat_of); v && op.is(Opcode::lor_)) {
        const Kind of = v->type.kind(), bits = of == Kind::f32 ? Kind::i32 : Kind::i64;
        const Expression minus_zero = integer_literal(of == Kind::f32 ? std::numeric_limits<std::int32_t>::min()
                                                                      : std::numeric_limits<std::int64_t>::min());
        return define(op, as_mask(binary(cast_to(unit_.prelude().vector(bits, lanes), value(v)), "!=", minus_zero), of, lanes));
      }
      return define(op, binary(value(op.operands[0]), op.is(Opcode::land_) ? "&" : "|", value(op.operands[1])));
    }
    case Opcode::lnot_:
      return define(op, prefix("~", value(op.operands[0])));
    case Opcode::sign_:
      return define(op, on_operands(function("sign", kind)));
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
  if (may_wrap(op, op.operands[0]->type.kind()) && !(steps && steps->step.integer() == 1)) {
    Expression e = on_operands(function(("wrapping_" + std::string(ir::info(op.code).name)).c_str(), kind));
    return in_steps ? bind(result, std::move(e)) : define(op, std::move(e));
  }
  if (call == std::string_view::npos) {
    std::vector<std::string> functions;
    Expression e = substitute(pattern, operands, unit_.target(), kind, functions);
    const Kind of = op.operands[0]->type.kind();
    if (kind == Kind::boolean) e = as_mask(e, of, lanes);
    return in_steps ? bind(result, std::move(e)) : define(op, std::move(e));
  }
  define(op, on_operands(function(std::string(pattern.substr(0, call)).c_str(), kind)));
}

/// What a comparison of vectors of a kind gives, as a vector of truth values.
Expression StatementPrinter::as_mask(const Expression& comparison, Kind kind, int lanes) {
  if (kind != Kind::f32) return comparison;
  return called("__builtin_convertvector", {comparison, Expression(unit_.prelude().vector(Kind::boolean, lanes))});
}

/// The sum of the lanes of a product.
Expression StatementPrinter::dot(const Op& product) {
  const ir::Type& type = product.result()->type;
  return called(unit_.prelude().vector_function("dot", type.kind(), type.lanes()),
                {value(product.operands[0]), value(product.operands[1])});
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
      if (e.integer() == 0 || by.integer() == 1) return e;
      return e.integer() == 1 ? by : applied(*op, {e, by});
    };
    if (op->is(Opcode::mul_)) return LaneSteps{product(steps->start), product(steps->step)};
    const bool minus = op->is(Opcode::sub_);
    // What is added comes behind, so that sums of neighbours have the same text.
    Expression e = !minus ? steps->start + by : i == 0 ? steps->start - by : by - steps->start;
    Expression step = steps->step;
    if (minus && i == 1) {
      if (step.integer() != 1) return {};
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
  const bool follow = steps && steps->step.integer() == 1;
  const Expression number = some ? value(op.operands.back()) : integer_literal(lanes);
  const std::string& count = number.text();

  for (std::size_t i = 0; i < rank; ++i) {
    if (!indices[i]->type.is_vector()) {
      check_index(op, 1 + i, t, i);
    } else if (unit_.options().bounds_checks && !(is_lane_index(indices[i]) && dims(t)[i] == lanes)) {
      const passes::KnownRange known = ranges_->of(op, 1 + i);
      if (known.is_inside() || checked_before(op, known)) continue;
      if (steps && i == which && !follow) {
        unit_.prelude().need("check_steps");
        line("lt_check_steps(" + ws() + ", " + steps->start.text() + ", " + steps->step.text() + ", " + count +
             ", " + dim(t, i).text() + ", " + ir::c_string(where(op)) + ");");
      } else if (steps && i == which) {
        unit_.prelude().need("fail_index");
        const Expression first = steps->start, n = dim(t, i), larger = binary(first, ">", n);
        const Expression below = binary(first, "<", integer_literal(0)), beyond = binary(first, ">", binary(n, "-", number));
        const Expression outside = known.low ? beyond : known.high ? below : binary(below, "||", beyond);
        const Expression bad = known.high ? first : conditional(known.low ? larger : binary(below, "||", larger), first, n);
        line("if (" + outside.text() + ") lt_fail_index(" + ws() + ", " + bad.text() + ", " + n.text() + ", " +
             ir::c_string(where(op)) + ");");
      } else {
        line(unit_.prelude().vector_function("check", Kind::i64, lanes) + "(" + ws() + ", " +
             text(indices[i]) + ", " + count + ", " + dim(t, i).text() + ", " + ir::c_string(where(op)) + ");");
      }
    }
  }

  // The offset: of the first lane where the others follow in equal steps, else a vector.
  const Kind kind = t->type.element();
  const Expression data = reads ? field(t, "data") : member(updated(op), "data");
  const auto index = [&](std::size_t i) { return steps && i == which ? steps->start : value(indices[i]); };
  // `other` represents the vector among the indices.
  const auto offset_with = [&](const Expression& other) {
    const auto at = [&](std::size_t i) { return i == which ? other : index(i); };
    Expression e = at(0);
    for (std::size_t i = 1; i < rank; ++i) e = e * dim(t, i) + at(i);
    return e;
  };
  const Expression offset = offset_with(index(which));
  std::vector<Expression> arguments{data, offset};
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
          alike = alike.integer() == 0 ? by : applied(*sum, {alike, by});
          own = sum->operands[1 - i];
          more = true;
        }
    }
    alike = offset_with(alike);
    arguments = {displaced(data, alike), value(own) * elements(t, which + 1)};
  }
  WrittenLanes written;
  if (steps) {
    arguments = {displaced(data, offset)};
    name = reads ? "load" : adds ? "add" : "store";
    const Expression row = elements(t, which + 1), step = steps->step * row;
    const std::int64_t few = step.integer().value_or(0);
    const bool innermost = row.integer() == 1, small = innermost && few >= 2 && few <= 4;
    const bool every =
        small && (reads ? kind != Kind::boolean && (few != 4 || lanes >= 4)
                        : adds && !some && lanes % 8 == 0 && (kind == Kind::f64 || kind == Kind::i64));
    if (innermost && !reads && !some && few >= -1 && few <= 4) written = {few, arguments[0], every};
    if (every) {
      name += "_every" + step.text();
    } else if (innermost && few == -1 && !some && kind != Kind::boolean) {
      name += "_back";
    } else if (!follow || !innermost) {
      arguments.push_back(step);
      name += "_strided";
    }
  }
  if (some) name += "_some";
  const std::string function = unit_.prelude().vector_function(name, kind, lanes);
  if (reads) {
    if (some) arguments.push_back(number);
    return define(op, called(function, std::move(arguments)).reading_memory());
  }
  if (written.step != 0) {
    std::vector<JoinedWrite> writes{{{}, 0, adds}};
    if (const auto before = joined_.find(&op); before != joined_.end()) {
      writes = std::move(before->second);
      joined_.erase(before);
    }
    const auto distance = distance_to_next(op, 1 + which, writes, written.step);
    if (distance || writes.size() > 1) writes.back().value = Expression(atom(op.operands[rank + 1]));
    if (distance) {
      const Op* const next = uses_.user(op.result());
      writes.push_back({{}, writes.back().place + *distance, next->is(Opcode::add_at_)});
      joined_[next] = std::move(writes);
      return;
    }
    if (writes.size() > 1) return joined_writes(op, writes, written);
  }
  arguments.push_back(value(op.operands[rank + 1]));
  if (some) arguments.push_back(number);
  line(called(function, std::move(arguments)).text() + ";");
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

/// The writes of one iteration. With a step of one or minus one they overlap, and the sums are made in registers; with a
/// larger one they are whole vectors where they leave out no element.
void StatementPrinter::joined_writes(const Op& last, const std::vector<JoinedWrite>& writes, const WrittenLanes& lanes) {
  const ir::Type& type = last.operands.back()->type;
  const std::int64_t step = lanes.step, lowest = std::ranges::min(writes, {}, &JoinedWrite::place).place,
                     highest = std::ranges::max(writes, {}, &JoinedWrite::place).place;
  const bool rises = (steps_by(last.parent) > 0) != (step < 0);
  const auto print = [&](const std::string& name, std::int64_t place, std::vector<Expression> arguments) {
    const std::int64_t by = place - writes.back().place;
    const Expression distance = integer_literal(std::abs(by));
    arguments.insert(arguments.begin(), by < 0 ? lanes.first - distance : lanes.first + distance);
    line(called(unit_.prelude().vector_function(name, type.kind(), type.lanes()), std::move(arguments)).text() + ";");
  };
  const auto written = [&](std::int64_t place) {
    return std::ranges::find(writes, place, &JoinedWrite::place) != writes.end();
  };
  bool all = true;
  for (std::int64_t k = 0; k < step; ++k) all &= written(rises ? highest - k : lowest + k);
  if (!all) {
    for (const JoinedWrite& w : writes) {
      const std::string name = w.adds ? "add_" : "store_";
      if (w.adds && lanes.adds_every)
        print(name + "every" + std::to_string(step), w.place, {w.value});
      else
        print(name + "strided", w.place, {integer_literal(step), w.value});
    }
    return;
  }
  std::string name = step == 1 ? "joined" : step == -1 ? "joined_back" : "interleaved" + std::to_string(step);
  name += rises ? "_up" : "_down";
  std::vector<Expression> values;
  for (const JoinedWrite& w : writes) {
    name += (w.adds ? "_add" : "_set") + std::to_string(w.place - lowest);
    values.push_back(w.value);
  }
  print(name, step < 0 ? lowest - (type.lanes() - 1) : lowest, std::move(values));
}

}  // namespace lantern::codegen
