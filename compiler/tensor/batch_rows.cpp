// One rule for each kind of operation.
#include "lantern/compiler/tensor/batch_rows.hpp"

#include <algorithm>
#include <span>

#include "lantern/compiler/passes/direct/tail_calls.hpp"
#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/compiler/tensor/reduce.hpp"
#include "lantern/compiler/tensor/shape.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/notation.hpp"
#include "lantern/ir/uses.hpp"

namespace lantern::core::detail {

namespace {

[[noreturn]] void refuse(const ir::Op& op, const std::string& reason) { throw NotBatched{reason, op.loc}; }

bool any_varies(const std::vector<RowValue>& all) { return std::ranges::any_of(all, &RowValue::varies); }

Datums data_of(const std::vector<RowValue>& all) {
  Datums out;
  for (const RowValue& v : all) out.push_back(v.datum);
  return out;
}

/// A dimension for the rows before those of a type.
std::vector<std::int64_t> with_row_dimension(const ir::Type& type) {
  std::vector<std::int64_t> dims{ir::dynamic};
  if (type.is_tensor()) dims.insert(dims.end(), type.dims().begin(), type.dims().end());
  return dims;
}

bool has_attribute(Opcode code) {
  return code == Opcode::dim_ || code == Opcode::cast_ || ir::is_einsum(code);
}

/// An operation of a block that may raise, repeat or call, or null: without one both sides of a branch may be
/// computed.
const ir::Op* not_total(const ir::Block* block) {
  for (const ir::Op* op : block->ops) {
    switch (op->code) {
      case Opcode::constant_:
      case Opcode::yield_:
      case Opcode::dim_:
      case Opcode::zeros_like_:
      case Opcode::cast_:
      case Opcode::stop_gradient_:
        continue;
      case Opcode::div_:
      case Opcode::rem_:
        if (op->result()->type.is_float_element()) continue;
        return op;
      case Opcode::branch_:
        for (const ir::Block* side : op->blocks)
          if (const ir::Op* const found = not_total(side)) return found;
        continue;
      default:
        if (!ir::info(op->code).elementwise && !ir::info(op->code).in_notation()) return op;
    }
  }
  return nullptr;
}

/// A body is run again with more values that vary.
struct Again {};
/// The end of a loop varies.
struct EndVaries {};

}  // namespace

RowValue BatchedRows::value(const ir::Value* v) const {
  const auto it = values_.find(v);
  if (it != values_.end()) return it->second;
  return RowValue::same(Datum::node(const_cast<ir::Value*>(v)));  // made outside
}

std::vector<RowValue> BatchedRows::values(const std::vector<ir::Value*>& list) const {
  std::vector<RowValue> out;
  for (const ir::Value* v : list) out.push_back(value(v));
  return out;
}

Indices BatchedRows::row_sizes(const RowValue& v) const {
  Indices all;
  for (int d = v.varies ? 1 : 0; d < v.datum.type().rank(); ++d)
    all.push_back(dimension_of(v.datum, d, loc_));
  return all;
}

Indices BatchedRows::with_rows(Indices sizes) const {
  sizes.insert(sizes.begin(), rows_);
  return sizes;
}

Datum BatchedRows::rows_of(const RowValue& v) const {
  const Build b{loc_};
  if (!v.from.empty())
    return b.tabulate(ir::Kind::i64, {rows_}, [&](const Indices& r) { return b.add(v.from, r[0]); });
  if (v.varies) return v.datum;
  if (v.datum.type().is_scalar()) return b.fill(v.datum, {rows_});
  const std::string letters(ir::index_letters.substr(0, static_cast<std::size_t>(v.datum.type().rank())));
  return b.einsum(letters + "->h" + letters + ";h", {v.datum, rows_}, with_row_dimension(v.datum.type()));
}

std::vector<RowValue> BatchedRows::run(const ir::Block* block) {
  for (const ir::Op* op : block->ops) {
    if (op->is(Opcode::yield_)) return values(op->operands);
    run_op(*op);
  }
  throw InternalError("batching: a block without yield");
}

void BatchedRows::run_op(const ir::Op& op) {
  const auto give = [&](const std::vector<RowValue>& results) {
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      RowValue v = results[i];
      const Datum& d = v.datum;
      if (op.results[i]->name && d.is_node() && !d.node()->name)
        d.node()->name = staging_.module().intern(op.results[i]->name);
      values_[op.results[i]] = std::move(v);
    }
  };
  switch (op.code) {
    case Opcode::constant_: {
      const ir::Type& type = op.result()->type;
      return give({RowValue::same(type.is_float_element() ? Datum::number(op.number, type)
                                                          : Datum::integer(op.integer, type))});
    }
    case Opcode::branch_:
      return give(run_branch(op));
    case Opcode::loop_:
      return give(run_loop(op));
    case Opcode::call_:
      return give(run_call(op));
    case Opcode::check_: {
      const std::vector<RowValue> in = values(op.operands);
      if (any_varies(in)) refuse(op, "checks a value of the node");
      ir::Op* const check = staging_.builder(op.loc).op(Opcode::check_, staging_.use(data_of(in), op.loc));
      check->text = op.text;
      check->integer = op.integer;
      return;
    }
    case Opcode::print_:
    case Opcode::print_adjoint_:
      refuse(op, "prints");
    case Opcode::external_:
      refuse(op, "calls an external function");
    default:
      break;
  }
  if (ir::info(op.code).effect != ir::Effect::none)
    refuse(op, "has '" + std::string(ir::info(op.code).name) + "', which has an effect");
  const std::vector<RowValue> in = values(op.operands);
  if (op.is(Opcode::dim_) && in[0].varies)
    return give({RowValue::same(dimension_of(in[0].datum, op.integer + 1, op.loc))});
  if (op.is(Opcode::land_) || op.is(Opcode::lor_)) {  // of which one operand may decide
    for (std::size_t i = 0; i < 2; ++i)
      if (in[i].datum.is_literal()) return give({in[i].datum.b() == op.is(Opcode::lor_) ? in[i] : in[1 - i]});
  }
  const bool divides = op.is(Opcode::div_) || op.is(Opcode::rem_);
  if (any_varies(in) && !active_.empty() && divides && !op.result()->type.is_float_element())
    refuse(op, "has a loop that ends by a value of the node, with '" + std::string(ir::info(op.code).name) +
                   "' of integers in it");
  if (any_varies(in)) return give({RowValue::each(run_varying(op, in))});
  const std::int64_t attribute = has_attribute(op.code) ? op.integer : 0;
  give({RowValue::same(
      perform({op.code, attribute, op.loc, op.result()->type.dims(), op.text}, data_of(in)))});
}

std::vector<RowValue> BatchedRows::run_branch(const ir::Op& op) {
  const RowValue condition = value(op.operands[0]);
  if (condition.varies) return run_both(op, condition);
  const Datum& c = condition.datum;
  if (c.is_literal()) return run(op.blocks[c.b() ? 0 : 1]);
  const auto side = [&](const ir::Block* block) {
    Datums out;
    for (const RowValue& v : run(block)) out.push_back(rows_of(v));
    return out;
  };
  std::vector<RowValue> results;
  for (const Datum& d : branch(
           c, [&] { return side(op.blocks[0]); }, [&] { return side(op.blocks[1]); }, op.loc))
    results.push_back(RowValue::each(d));
  return results;
}

/// Both sides, and for each row the one that its condition says: what is not taken adds nothing to a
/// derivative, whatever it is (ops.inc, select).
std::vector<RowValue> BatchedRows::run_both(const ir::Op& op, const RowValue& condition) {
  for (const ir::Block* side : op.blocks)
    if (const ir::Op* const found = not_total(side))
      refuse(op, "branches on a value of the node, with '" + std::string(ir::info(found->code).name) +
                     "' on one side");
  const std::vector<RowValue> then = run(op.blocks[0]), otherwise = run(op.blocks[1]);
  std::vector<RowValue> results;
  for (std::size_t i = 0; i < then.size(); ++i)
    results.push_back(RowValue::each(chosen({condition, then[i], otherwise[i]}, op.loc)));
  return results;
}

/// State varies where what it starts from does, or a body's result: found by running the body until that is
/// so.
std::vector<RowValue> BatchedRows::run_loop(const ir::Op& op) {
  const std::vector<RowValue> initial = values(op.operands);
  std::vector<bool> varies;
  for (const RowValue& v : initial) varies.push_back(v.varies);
  const auto as_bound = [&](const Datums& state) {
    std::vector<RowValue> all;
    for (std::size_t i = 0; i < state.size(); ++i) all.push_back({state[i], varies[i], {}});
    return all;
  };
  const auto run_with = [&](const ir::Block* block, const Datums& state) {
    const std::vector<RowValue> bound = as_bound(state);
    for (std::size_t i = 0; i < bound.size(); ++i) bind(block->params[i], bound[i]);
    return run(block);
  };
  for (;;) {
    Staging::Attempt attempt(staging_);
    Datums start;
    for (std::size_t i = 0; i < initial.size(); ++i)
      start.push_back(varies[i] ? rows_of(initial[i]) : initial[i].datum);
    try {
      const Datums end = loop(
          start,
          [&](const Datums& state) {
            const RowValue again = run_with(op.blocks[0], state)[0];
            if (again.varies) throw EndVaries{};
            return again.datum;
          },
          [&](const Datums& state) {
            const std::vector<RowValue> next = run_with(op.blocks[1], state);
            Datums data;
            bool more = false;
            for (std::size_t i = 0; i < next.size(); ++i) {
              more |= next[i].varies && !varies[i];
              varies[i] = varies[i] || next[i].varies;
              data.push_back(varies[i] ? rows_of(next[i]) : next[i].datum);
            }
            if (more) throw Again{};
            return data;
          },
          op.loc, op.integer);
      attempt.keep();
      return as_bound(end);
    } catch (const Again&) {
    } catch (const EndVaries&) {
      break;
    }
  }
  return run_masked_loop(op);
}

/// All of the state varies, and a row's state changes while its own condition holds. A row whose condition is false keeps
/// a state for which it stays false.
std::vector<RowValue> BatchedRows::run_masked_loop(const ir::Op& op) {
  const Build b{op.loc};
  const Datum outer = active_;
  const auto bind_all = [&](const ir::Block* block, std::span<const Datum> state) {
    for (std::size_t i = 0; i < state.size(); ++i) bind(block->params[i], RowValue::each(state[i]));
    return run(block);
  };
  const auto goes_on = [&](std::span<const Datum> state) {
    const Datum own = rows_of(bind_all(op.blocks[0], state)[0]);
    return outer.empty() ? own : b.binary(Opcode::land_, own, outer);
  };
  Datums start;
  for (const ir::Value* v : op.operands) start.push_back(rows_of(value(v)));
  start.insert(start.begin(), goes_on(start));
  const Datums end = loop(
      start, [&](const Datums& state) { return any_of(state[0], {{}, false}, true, op.loc); },
      [&](const Datums& state) {
        active_ = state[0];
        const std::span<const Datum> now = std::span(state).subspan(1);
        Datums next;
        const std::vector<RowValue> results = bind_all(op.blocks[1], now);
        for (std::size_t i = 0; i < now.size(); ++i)
          next.push_back(chosen({RowValue::each(state[0]), results[i], RowValue::each(now[i])}, op.loc));
        active_ = outer;
        next.insert(next.begin(), goes_on(next));
        return next;
      },
      op.loc, op.integer);
  active_ = outer;
  std::vector<RowValue> results;
  for (std::size_t i = 1; i < end.size(); ++i) results.push_back(RowValue::each(end[i]));
  return results;
}

/// A call whose arguments vary runs in place.
std::vector<RowValue> BatchedRows::run_call(const ir::Op& op) {
  const std::vector<RowValue> in = values(op.operands);
  if (!any_varies(in)) {
    std::vector<RowValue> results;
    for (const Datum& d : staging_.call(op.callee, data_of(in), op.loc)) results.push_back(RowValue::same(d));
    staging_.block()->ops.back()->integer = op.integer;
    return results;
  }
  if (staging_.rules.contains(op.callee))
    refuse(op, "calls '" + op.callee->name + "', which has a derivative of its own");
  if (ir::callees(op.callee->body).contains(op.callee))
    refuse(op, "calls '" + op.callee->name + "', which calls itself");
  passes::unwind(*op.callee);
  passes::tail_calls(*op.callee);
  for (std::size_t i = 0; i < in.size(); ++i) bind(op.callee->body->params[i], in[i]);
  return run(op.callee->body);
}

Datum BatchedRows::run_varying(const ir::Op& op, const std::vector<RowValue>& in) const {
  const ir::OpInfo& row = ir::info(op.code);
  const Build b = at(op);
  if (op.is(Opcode::select_)) return chosen(in, op.loc);
  if (row.elementwise) return elementwise(op, in);
  if (row.in_notation()) return notation(op, in);
  switch (op.code) {
    case Opcode::cast_:
    case Opcode::cast_like_:
      return b.cast(rows_of(in[0]), op.result()->type.element());
    case Opcode::stop_gradient_:
      return b.primal(rows_of(in[0]));
    case Opcode::zeros_like_:
      return zeros_like(rows_of(in[0]), op.loc);
    case Opcode::copy_:
      return rows_of(in[0]);
    case Opcode::fill_: {
      if (std::any_of(in.begin() + 1, in.end(), [](const RowValue& v) { return v.varies; }))
        refuse(op, "makes a tensor whose size is a value of the node");
      std::string letters(ir::index_letters.substr(0, in.size() - 1));
      Datums operands = data_of(in);
      operands[0] = rows_of(in[0]);
      return b.einsum("h->h" + letters + ";" + letters, operands, with_row_dimension(op.result()->type));
    }
    case Opcode::reshape_:
      return b.reshape(rows_of(in[0]), with_rows(row_sizes(in[1])));
    case Opcode::concat_: {
      const Datum both[] = {rows_of(in[0]), rows_of(in[1])};
      return concat(both, 1, op.loc);
    }
    case Opcode::get_:
    case Opcode::take_:
    case Opcode::slice_:
      return element(op, in);
    case Opcode::argmax_: {
      const Datum t = rows_of(in[0]);
      return b.tabulate(ir::Kind::i64, {rows_}, [&](const Indices& r) {
        return perform({Opcode::argmax_, 0, op.loc, {}, op.text},
                       {perform({Opcode::take_, 0, op.loc}, {strip(t), r[0]})});
      });
    }
    case Opcode::set_:
    case Opcode::add_at_:
    case Opcode::add_take_:
    case Opcode::add_slice_:
      return updated(op, in);
    default:
      refuse(op, "has '" + std::string(row.name) + "', which has no form for a level");
  }
}

Datum BatchedRows::elementwise(const ir::Op& op, const std::vector<RowValue>& in) const {
  const auto like = std::ranges::find_if(in, &RowValue::varies);
  const Datum shape = rows_of(*like);
  Datums operands;
  for (const RowValue& v : in)
    operands.push_back(v.varies ? (&v == &*like ? shape : rows_of(v))
                                : broadcast_like(v.datum, shape, op.loc));
  return perform({op.code, 0, op.loc}, operands);
}

/// select: the condition may be one for a whole tensor.
Datum BatchedRows::chosen(const std::vector<RowValue>& in, const Location& loc) const {
  const Build b{loc};
  if (!in[0].varies && in[0].datum.type().is_scalar())
    return perform({Opcode::select_, 0, loc}, {in[0].datum, rows_of(in[1]), rows_of(in[2])});
  const Datum x = rows_of(in[1]), y = rows_of(in[2]);
  Datum c = rows_of(in[0]);
  if (c.type().rank() < x.type().rank()) {
    const std::string letters(ir::index_letters.substr(0, static_cast<std::size_t>(x.type().rank())));
    c = b.einsum(letters.substr(0, 1) + ",=" + letters + "->" + letters, {c, x}, x.type().dims());
  }
  return perform({Opcode::select_, 0, loc}, {c, x, y});
}

/// The notation with one more index, of the rows: in front of each operand that varies, and of the result.
Datum BatchedRows::notation(const ir::Op& op, const std::vector<RowValue>& in) const {
  std::vector<ir::Type> types;
  for (const ir::Value* v : op.operands) types.push_back(v->type);
  ir::Notation n = ir::concrete(*ir::notation_of(op.code, op.text), types);
  const std::string used = n.letters() + n.sizes;
  const std::size_t free = ir::index_letters.find_first_not_of(used);
  if (free == std::string_view::npos) refuse(op, "has a tensor of too many dimensions");
  const ir::Subscript row{{{ir::index_letters[free], 1}}, 0};
  Datums operands;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (i >= n.operands.size() && in[i].varies)
      refuse(op, "makes a tensor whose size is a value of the node");
    const bool each = in[i].varies || (n.accumulates && i == 0);
    operands.push_back(each ? rows_of(in[i]) : in[i].datum);
    if (each) n.operands[i].at.insert(n.operands[i].at.begin(), row);
  }
  n.result.insert(n.result.begin(), row);
  std::vector<std::size_t> order(operands.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const ir::Call call = ir::named(n, order);
  Datums given;
  for (const std::size_t i : call.order) given.push_back(operands[i]);
  const std::int64_t attribute = ir::is_einsum(op.code) && ir::is_einsum(call.code) ? op.integer : 0;
  return perform({call.code, attribute, op.loc, with_row_dimension(op.result()->type), call.text}, given);
}

/// Operand i as an index of a row.
Datum BatchedRows::row_number(const std::vector<RowValue>& in, std::size_t i, const Datum& row) const {
  const Build b{loc_};
  if (!in[i].varies) return in[i].datum;
  const Datum number = in[i].from.empty() ? b.get(in[i].datum, {row}) : b.add(in[i].from, row);
  return active_.empty() ? number : b.select(b.get(active_, {row}), number, Build::integer(0));
}

/// get, take and slice: elements from places that may vary.
Datum BatchedRows::element(const ir::Op& op, const std::vector<RowValue>& in) const {
  const Build b = at(op);
  const RowValue& t = in[0];
  if (op.is(Opcode::get_) && !t.varies && in.size() == 2 && !in[1].from.empty())
    return perform({Opcode::slice_, 0, op.loc}, {t.datum, in[1].from, b.add(in[1].from, rows_)});
  Indices sizes;
  if (op.is(Opcode::take_)) {
    sizes = row_sizes(t);
    sizes.erase(sizes.begin());
  }
  if (op.is(Opcode::slice_)) {
    if (in[1].varies || in[2].varies) refuse(op, "takes a part whose size is a value of the node");
    sizes = row_sizes(t);
    const Datum &lo = in[1].datum, &hi = in[2].datum;
    b.require(b.binary(Opcode::land_,
                       b.binary(Opcode::land_, b.binary(Opcode::le_, Build::integer(0), lo),
                                b.binary(Opcode::le_, lo, hi)),
                       b.binary(Opcode::le_, hi, sizes[0])),
              "slice: expected 0 <= lo <= hi <= size, got {} to {} of {}", {lo, hi, sizes[0]});
    sizes[0] = b.sub(hi, lo);
  }
  return b.tabulate(t.datum.type().element(), with_rows(sizes), [&](const Indices& at) {
    Indices from;
    if (t.varies) from.push_back(at[0]);
    if (op.is(Opcode::slice_)) {
      from.push_back(b.add(at[1], in[1].datum));
      from.insert(from.end(), at.begin() + 2, at.end());
    } else {
      for (std::size_t i = 1; i < in.size(); ++i) from.push_back(row_number(in, i, at[0]));
      from.insert(from.end(), at.begin() + 1, at.end());
    }
    return b.get(t.datum, from);
  });
}

/// set, add_at, add_take and add_slice: a tensor with elements changed, in places that may vary.
Datum BatchedRows::updated(const ir::Op& op, const std::vector<RowValue>& in) const {
  const Build b = at(op);
  const RowValue& v = in.back();
  return b.points(with_rows(row_sizes(v)), {rows_of(in[0])}, [&](const Indices& at, const Datums& now) {
    Indices to{at[0]};
    for (std::size_t i = 1; i + 1 < in.size(); ++i) to.push_back(row_number(in, i, at[0]));
    auto own = at.begin() + 1;
    if (op.is(Opcode::add_slice_)) to.back() = b.add(to.back(), *own++);
    to.insert(to.end(), own, at.end());
    Datum x = v.datum;
    if (v.varies)
      x = b.get(x, at);
    else if (at.size() > 1)
      x = b.get(x, Indices(at.begin() + 1, at.end()));
    return Datums{op.is(Opcode::set_) ? b.set(now[0], to, x) : b.add_at(now[0], to, x)};
  })[0];
}

}  // namespace lantern::core::detail
