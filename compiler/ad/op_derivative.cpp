// Evaluation of derivative formulas; reverse (propagate) and forward (tangent) use of the table.
#include "lantern/compiler/ad/op_derivative.hpp"

#include <algorithm>

#include "lantern/compiler/ad/double_step.hpp"
#include "lantern/compiler/ad/flow_mask.hpp"
#include "lantern/compiler/ad/kept_operands.hpp"
#include "lantern/compiler/passes/direct/poles.hpp"
#include "lantern/compiler/staging/check.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/graph.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::core::ad {

namespace {

Datum constant(double v, const ir::Type& like) {
  return like.is_float_element() ? Datum::number(v, ir::Type(like.element()))
                                 : Datum::integer(static_cast<std::int64_t>(v), ir::Type(like.element()));
}

/// Performs an operation of a formula; element-wise operands of lower rank are broadcast.
Datum apply(Opcode code, Datums arguments, const Location& loc) {
  const Operation op{code, 0, loc};
  if (ir::info(code).elementwise) {
    const Datum* widest = &arguments[0];
    for (const Datum& a : arguments)
      if (a.type().rank() > widest->type().rank()) widest = &a;
    const Datum shape = *widest;
    for (Datum& a : arguments)
      if (a.type().rank() < shape.type().rank()) a = perform({Opcode::broadcast_, 0, loc}, {a, shape});
  }
  return perform(op, arguments);
}

Datums index_operands(const FormulaContext& c) {
  const std::size_t last = c.op.code == Opcode::get_ ? c.operands.size() : c.operands.size() - 1;
  return Datums(c.operands.begin() + 1, c.operands.begin() + static_cast<long>(last));
}

Datum evaluate_as(const ir::Formula& f, const FormulaContext& c, const ir::Type& like) {
  return f.kind == ir::Formula::Kind::number ? constant(f.number, like) : evaluate_formula(f, c);
}

/// The type of numbers in a formula: that of the operation's floating result or operands.
const ir::Type& number_type(const FormulaContext& c) {
  if (c.result.type().is_float_element()) return c.result.type();
  for (const Datum& d : c.operands)
    if (d.type().is_float_element()) return d.type();
  return c.result.type();
}

/// Arguments of a call from position `from`.
Datums arguments_of(const ir::Formula& f, const FormulaContext& c, std::size_t from) {
  Datums out;
  // Row numbers and sizes (slice, dim) are integers; everything else has the operation's element type.
  const bool rows = f.op == Opcode::slice_ || f.op == Opcode::add_slice_;
  for (std::size_t i = from; i < f.arguments.size(); ++i) {
    const ir::Formula& a = f.arguments[i];
    if (a.kind == ir::Formula::Kind::index) {
      for (const Datum& d : index_operands(c)) out.push_back(d);
    } else {
      out.push_back(evaluate_as(a, c, rows ? ir::I64 : number_type(c)));
    }
  }
  return out;
}

bool is_condition(Opcode op) { return op == Opcode::le_ || op == Opcode::eq_; }

/// Whether a rule's operands and result are numbers that are known, in the precision that formulas are computed in.
bool at_hand(const FormulaContext& c) {
  return is_double(c.result) && !detail::checking() && std::ranges::all_of(c.operands, is_double);
}

/// A partial derivative as a number.
double number_of(const ir::Formula& f, const FormulaContext& c) {
  switch (f.kind) {
    case ir::Formula::Kind::number:
      return f.number;
    case ir::Formula::Kind::variable:
      return f.variable == 'r' ? c.result.f() : c.operands[static_cast<std::size_t>(f.variable - 'x')].f();
    default: {
      double v[3] = {};
      for (std::size_t i = 0; i < f.arguments.size(); ++i) v[i] = number_of(f.arguments[i], c);
      return evaluate_number(f.op, v[0], v[1], v[2]);
    }
  }
}

}  // namespace

Datum partial_derivative(const ir::Formula& f, const FormulaContext& c) {
  // That of 1 / y needs nothing but 1 / y.
  const Datum& x = c.operands[0];
  if (c.op.code == Opcode::div_ && x.is_literal() && x.type().is_float_element() && x.f() == 1.0 &&
      &f == ir::derivative(Opcode::div_, 1, 2))
    return apply(Opcode::mul_, {apply(Opcode::neg_, {c.result}, c.op.loc), c.result}, c.op.loc);
  return at_hand(c) ? Datum::number(number_of(f, c), ir::F64) : evaluate_formula(f, c);
}

namespace {

/// An operand of an element-wise rule: of a tensor that repeats a number known while staging that number, so that
/// nothing keeps an array of it.
Datum repeated_number(const Datum& x, Opcode op) {
  if (!x.is_node() || !x.type().is_tensor() || !ir::info(op).elementwise) return x;
  const ir::Op* def = x.node()->def;
  if (!def || !def->is(Opcode::broadcast_)) return x;
  const ir::Op* number = def->operands[0]->def;
  if (!number || !number->is(Opcode::constant_) || !number->result()->type.is_float_element()) return x;
  return Datum::number(number->number, number->result()->type);
}

}  // namespace

Datum evaluate_formula(const ir::Formula& f, const FormulaContext& c) {
  switch (f.kind) {
    case ir::Formula::Kind::number:
      return constant(f.number, number_type(c));
    case ir::Formula::Kind::variable:
      switch (f.variable) {
        case 'x':
        case 'y':
        case 'z':
          return repeated_number(c.operands[static_cast<std::size_t>(f.variable - 'x')], c.op.code);
        case 'r':
          return c.result;
        case 'g':
          return c.cotangent;
        default:
          throw InternalError("acc inside a formula");
      }
    case ir::Formula::Kind::call: {
      // `dim(x)` is a number while staging where it can be.
      Datums arguments = arguments_of(f, c, 0);
      if (f.op == Opcode::select_ && !arguments[0].type().is_bool() && !arguments[0].type().is_tensor())
        arguments[0] = perform({Opcode::ne_, 0, c.op.loc}, {arguments[0], constant(0, arguments[0].type())});
      if (is_condition(f.op) || ir::info(f.op).elementwise)
        return apply(f.op, std::move(arguments), c.op.loc);
      return perform({f.op, 0, c.op.loc}, arguments);
    }
    default:
      throw InternalError("index... outside a call");
  }
}

namespace {

Datum product(const Datum& a, const Datum& b, const Location& loc) {
  if (a.type().is_scalar() && b.type().is_scalar()) return perform({Opcode::mul_, 0, loc}, {a, b});
  return apply(Opcode::mul_, {a, b}, loc);
}

/// What a partial derivative chooses by: its first argument, as a condition.
Datum condition_of(const ir::Formula& f, const FormulaContext& c) {
  Datum condition = evaluate_as(f.arguments[0], c, number_type(c));
  if (!condition.type().is_bool() && !condition.type().is_tensor())
    condition = perform({Opcode::ne_, 0, c.op.loc}, {condition, constant(0, condition.type())});
  return condition;
}

/// A partial derivative times g: empty where nothing flows.
Datum scaled(const ir::Formula& whole, const FormulaContext& c, const Datum& g) {
  return by_cases(whole, c, g, [&](const ir::Formula& f) {
    if (f.is_number(1)) return g;
    if (f.is_number(-1)) return perform({Opcode::neg_, 0, c.op.loc}, {g});
    if (f.kind == ir::Formula::Kind::number) return product(constant(f.number, g.type()), g, c.op.loc);
    return product(partial_derivative(f, c), g, c.op.loc);
  });
}

/// Where something flows by a partial derivative that is not 0; empty: everywhere.
Datum flow_of(const ir::Formula& f, const FormulaContext& c) {
  if (!chooses(f)) return {};
  const ir::Formula &a = f.arguments[1], &b = f.arguments[2];
  const Datum yes = condition_of(f, c);
  if (yes.is_literal()) return flow_of(yes.b() ? a : b, c);
  const auto both = [&](Datum x, const Datum& y) {
    return y.empty() ? x : apply(Opcode::land_, {std::move(x), y}, c.op.loc);
  };
  const auto other = [&] { return apply(Opcode::lnot_, {yes}, c.op.loc); };
  if (a.is_number(0)) return both(other(), flow_of(b, c));
  if (b.is_number(0)) return both(yes, flow_of(a, c));
  const Datum in = flow_of(a, c), out = flow_of(b, c);
  if (in.empty() && out.empty()) return {};
  if (in.empty()) return apply(Opcode::lor_, {yes, out}, c.op.loc);
  if (out.empty()) return apply(Opcode::lor_, {other(), in}, c.op.loc);
  return apply(Opcode::lor_, {both(yes, in), both(other(), out)}, c.op.loc);
}

/// What an operand receives. Of an eager tensor the zeros where nothing flows are known as such.
Datum share(const ir::Formula& f, const FormulaContext& c) {
  Datum v = scaled(f, c, c.cotangent);
  const Datum result = strip(c.result);
  if (v.empty() || !result.is_boxed(Boxed::Kind::tensor) || f.is_number(1)) return v;
  Datum where = flow(c.cotangent);
  if (where.empty() && !chooses(f)) return v;
  const Transient bare(c.operands, [](const Datum& d) -> const Datum& { return strip(d); });
  if (const Datum own = flow_of(f, {c.op, bare, result, {}}); !own.empty())
    where = where.empty() ? own : apply(Opcode::land_, {where, own}, c.op.loc);
  if (where.empty()) return v;
  return with_flow(without_flow(std::move(v), where, c.op.loc), where);
}

}  // namespace

bool chooses(const ir::Formula& f) { return f.kind == ir::Formula::Kind::call && f.op == Opcode::select_; }

Datum by_cases(const ir::Formula& f, const FormulaContext& c, const Datum& like,
               ir::FunctionRef<Datum(const ir::Formula&)> of) {
  if (f.is_number(0)) return {};
  if (!chooses(f)) return of(f);
  const Datum condition = condition_of(f, c);
  if (condition.is_literal()) return by_cases(f.arguments[condition.b() ? 1 : 2], c, like, of);
  const Datum yes = by_cases(f.arguments[1], c, like, of), no = by_cases(f.arguments[2], c, like, of);
  if (yes.empty() && no.empty()) return {};
  const auto filled = [&](const Datum& d) { return d.empty() ? zeros_like(like, c.op.loc) : d; };
  return apply(Opcode::select_, {condition, filled(yes), filled(no)}, c.op.loc);
}

bool nothing_flows(const ir::Formula& f, const FormulaContext& c) {
  if (!chooses(f)) return f.is_number(0);
  for (const Datum& d : c.operands)
    if (!strip(d).is_literal()) return false;
  return nothing_flows(f.arguments[condition_of(f, c).b() ? 1 : 2], c);
}

bool carries_derivative(const Operation& op, std::size_t i, std::size_t n) {
  if (const ir::Notation* sum = ir::notation_of(op.code, op.text))
    return sum->is_factor(i) || (sum->accumulates && i == 0);
  const ir::Formula* f = ir::derivative(op.code, i, n);
  return f && !f->is_number(0);
}

namespace {

std::vector<ir::Type> types_of(std::span<const Datum> data) {
  std::vector<ir::Type> types;
  for (const Datum& d : data) types.push_back(d.type());
  return types;
}

ir::Notation concrete(const Operation& op, std::span<const Datum> operands) {
  return ir::concrete(*ir::notation_of(op.code, op.text), types_of(operands));
}

/// Where something flows to what an operation moves or sums: of a sum, to any that is added.
Datum flow_of_moved(const Operation& op, Datums operands, std::size_t of, const Datum& where) {
  for (Datum& d : operands) d = strip(d);
  const bool moves = ir::moves_elements(concrete(op, operands));
  const ir::Kind element = operands[of].type().element();
  operands[of] = moves ? where : perform({Opcode::cast_, static_cast<std::int64_t>(element), op.loc}, {where});
  const Datum there = perform(op, operands);
  return moves ? there : perform({Opcode::ne_, 0, op.loc}, {there, zeros_like(there, op.loc)});
}

/// A sum of products: what an operand receives is one as well (ir/notation.hpp).
void propagate_product(std::size_t i, const FormulaContext& c, Cell& cell) {
  const ir::Notation sum = concrete(c.op, c.operands);
  if (sum.accumulates && i == 0) return cell.add(c.cotangent, c.op.loc);
  const ir::Call call = ir::adjoint(sum, i);
  Datums arguments;
  for (const std::size_t j : call.order)
    arguments.push_back(j == ir::adjoint_of_result ? c.cotangent : c.operands[j]);
  const std::int64_t attribute = ir::is_einsum(call.code) ? c.op.attribute : 0;  // of the same places
  const Operation op{call.code, attribute, c.op.loc, {}, call.text};
  if (call.into == ir::Call::Into::adjoint) return cell.accumulate(op, arguments);
  const bool into_zeros = call.into == ir::Call::Into::zeros;
  if (into_zeros)
    arguments.insert(arguments.begin(), zeros_like(c.operands[i], c.op.loc));
  const Datum received = perform(op, arguments);
  const auto only = std::ranges::find(call.order, ir::adjoint_of_result) - call.order.begin();
  const Datum where = sum.factors() == 1 ? flow(c.cotangent) : Datum();
  if (where.empty()) return cell.add(received, c.op.loc);
  const std::size_t of = static_cast<std::size_t>(only) + (into_zeros ? 1 : 0);
  const Datum there = flow_of_moved(op, std::move(arguments), of, where);
  if (there.type().is_tensor()) cell.add(with_flow(received, there), c.op.loc);
  else if (there.b()) cell.add(received, c.op.loc);
}

}  // namespace

std::vector<std::size_t> read_by_adjoint(const Operation& op, std::span<const Datum> operands,
                                         std::size_t i) {
  const ir::Notation sum = concrete(op, operands);
  if (sum.accumulates && i == 0) return {};
  const ir::Call call = ir::adjoint(sum, i);
  std::vector<std::size_t> read = call.order;
  std::erase(read, ir::adjoint_of_result);
  if (call.into == ir::Call::Into::zeros) read.push_back(i);
  return read;
}

void propagate(std::size_t i, const FormulaContext& c, Cell& cell) {
  if (ir::info(c.op.code).in_notation()) {
    if (carries_derivative(c.op, i, c.operands.size())) propagate_product(i, c, cell);
    return;
  }
  const ir::Formula* f = ir::derivative(c.op.code, i, c.operands.size());
  if (!f || f->is_number(0)) return;
  if (c.op.code == Opcode::print_adjoint_ && c.op.text) print(c.cotangent, c.op.text, c.op.loc);
  if (ir::info(c.op.code).elementwise) {
    // A partial derivative, times the cotangent.
    if (const Datum received = share(*f, c); !received.empty()) cell.add(received, c.op.loc);
    return;
  }
  if (const Datum where = flow(c.cotangent); f->op == Opcode::set_ || !where.empty()) {
    // One element of a cotangent, or all others; its elements in other places.
    Datums at = f->op == Opcode::set_ || f->op == Opcode::get_ ? index_operands(c) : Datums();
    for (Datum& index : at) index = strip(index);
    if (f->op == Opcode::set_) {
      const Datum all = where.empty() ? flow_everywhere(c.cotangent) : where;
      const Datum v = evaluate_formula(*f, c);
      return cell.add(all.empty() ? v : with_flow(v, flow_at(all, at, false)), c.op.loc);
    }
    if (f->op == Opcode::get_) {
      at.insert(at.begin(), where);
      if (!evaluate({Opcode::get_, 0, c.op.loc}, at).b()) return;
    }
    if (f->op == Opcode::slice_ || f->op == Opcode::take_ || f->op == Opcode::reshape_) {
      const Transient bare(c.operands, [](const Datum& d) -> const Datum& { return strip(d); });
      const Datum result = strip(c.result);
      return cell.add(with_flow(evaluate_formula(*f, c), evaluate_formula(*f, {c.op, bare, result, where})), c.op.loc);
    }
    if (f->op == Opcode::sum_ && !flow_of_moved({Opcode::sum_, 0, c.op.loc}, {c.cotangent}, 0, where).b()) return;
    if (f->op == Opcode::cast_like_) return cell.add(with_flow(evaluate_formula(*f, c), where), c.op.loc);
  }
  if (f->accumulates()) return cell.accumulate({f->op, 0, c.op.loc}, arguments_of(*f, c, 1));
  cell.add(evaluate_formula(*f, c), c.op.loc);
}

namespace {

/// Of what is added to: x + a sum of products, each linear in its factors.
Datum tangent_accumulating(const FormulaContext& c, std::span<const Datum> t) {
  bool any = false;
  for (std::size_t i = 0; i < t.size(); ++i) any |= !t[i].empty() && carries_derivative(c.op, i, t.size());
  if (!any) return {};
  Datum sum = t[0].empty() ? zeros_like(c.operands[0], c.op.loc) : t[0];
  for (std::size_t i = 1; i < t.size(); ++i) {
    if (t[i].empty() || !carries_derivative(c.op, i, t.size())) continue;
    Datums operands(c.operands.begin(), c.operands.end());
    operands[0] = sum;
    operands[i] = t[i];
    sum = perform(c.op, operands);
  }
  return sum;
}

}  // namespace

Datum tangent(const FormulaContext& c, std::span<const Datum> tangents) {
  const ir::OpInfo& row = ir::info(c.op.code);
  const std::size_t n = c.operands.size();
  Datum total;
  if (c.op.code == Opcode::select_) {
    if (c.operands[0].is_literal()) return tangents[c.operands[0].b() ? 1 : 2];
    if (tangents[1].empty() && tangents[2].empty()) return {};
    const auto of = [&](std::size_t i) {
      return tangents[i].empty() ? zeros_like(c.operands[i], c.op.loc) : tangents[i];
    };
    return perform(c.op, {c.operands[0], of(1), of(2)});
  }
  if (row.elementwise) {
    for (std::size_t i = 0; i < n; ++i) {
      const ir::Formula* f = ir::derivative(c.op.code, i, n);
      if (!tangents[i].empty() && f) total = sum(total, scaled(*f, c, tangents[i]), c.op.loc);
    }
    return total;
  }
  if (const ir::Notation* sum_of = ir::notation_of(c.op.code, c.op.text); sum_of && sum_of->accumulates)
    return tangent_accumulating(c, tangents);
  switch (row.linearity) {
    case ir::Linearity::none:
      return {};
    case ir::Linearity::joint: {
      Datums operands(c.operands.begin(), c.operands.end());
      bool any = false;
      for (std::size_t i = 0; i < n; ++i) {
        if (!carries_derivative(c.op, i, n)) continue;
        any |= !tangents[i].empty();
        operands[i] = tangents[i].empty() ? zeros_like(operands[i], c.op.loc) : tangents[i];
      }
      return any ? perform(c.op, operands) : Datum();
    }
    case ir::Linearity::each:
      for (std::size_t i = 0; i < n; ++i) {
        if (tangents[i].empty() || !carries_derivative(c.op, i, n)) continue;
        Datums operands(c.operands.begin(), c.operands.end());
        operands[i] = tangents[i];
        total = sum(total, perform(c.op, operands), c.op.loc);
      }
      return total;
  }
  return total;
}

namespace {

/// A condition that the whole of `like` has, as one of `like`'s shape.
bool fits(const Datum& condition, const Datum& like) {
  return condition.empty() || condition.type().rank() == like.type().rank();
}

/// Whether a condition comes from another iteration, a loop or a call. To choose by it costs the iterations more than what
/// a factor that has no pole is worth.
bool is_handed_on(const Datum& condition) {
  if (!condition.is_node()) return false;
  const ir::Op* const def = condition.node()->def;
  return !def || def->is(Opcode::loop_) || def->is(Opcode::call_);
}
bool may_be_infinite(const Datum& d) { return !d.is_node() || passes::near_pole(d.node()); }

/// Where something flows by a choice between two values.
Datum flow_of_choice(const FormulaContext& c, std::span<const Datum> tangents, std::span<const Datum> flows) {
  const Datum& yes = c.operands[0];
  if (yes.is_literal()) return flows[yes.b() ? 1 : 2];
  if (!fits(yes, c.result) || !fits(flows[1], c.result) || !fits(flows[2], c.result)) return {};
  const auto op = [&](Opcode code, const Datums& operands) { return perform({code, 0, c.op.loc}, operands); };
  const auto side = [&](std::size_t i, const Datum& taken) {
    return flows[i].empty() ? taken : op(Opcode::land_, {taken, flows[i]});
  };
  const bool first = !tangents[1].empty(), second = !tangents[2].empty();
  if (first && second && flows[1].empty() && flows[2].empty()) return {};
  const Datum a = first ? side(1, yes) : Datum(), b = second ? side(2, op(Opcode::lnot_, {yes})) : Datum();
  return a.empty() ? b : b.empty() ? a : op(Opcode::lor_, {a, b});
}

}  // namespace

Datum tangent(const FormulaContext& c, std::span<const Datum> tangents, std::span<const Datum> flows, Datum& flow) {
  const std::size_t n = c.operands.size();
  const bool known = std::ranges::any_of(flows, [](const Datum& f) { return !f.empty(); });
  bool choice = false;
  for (std::size_t i = 0; i < n; ++i) {
    const ir::Formula* f = ir::info(c.op.code).elementwise ? ir::derivative(c.op.code, i, n) : nullptr;
    choice |= f && !tangents[i].empty() && chooses(*f);
  }
  if (!known && !choice) return tangent(c, tangents);
  if (c.op.code == Opcode::cast_) {
    flow = flows[0];
    return tangent(c, tangents);
  }
  if (!ir::info(c.op.code).elementwise) return tangent(c, tangents);
  if (c.op.code == Opcode::select_) {
    flow = flow_of_choice(c, tangents, flows);
    return tangent(c, tangents);
  }
  const auto op = [&](Opcode code, const Datums& operands) { return perform({code, 0, c.op.loc}, operands); };
  Datum total;
  bool always = false;
  for (std::size_t i = 0; i < n; ++i) {
    const ir::Formula* f = ir::derivative(c.op.code, i, n);
    if (tangents[i].empty() || !f) continue;
    Datum term = scaled(*f, c, tangents[i]);
    if (term.empty()) continue;
    Datum own = flow_of(*f, c);
    if (const Datum& given = flows[i]; !given.empty() && fits(given, term)) {
      if (f->kind != ir::Formula::Kind::number && (!is_handed_on(given) || may_be_infinite(term)))
        term = op(Opcode::select_, {given, term, zeros_like(term, c.op.loc)});
      own = own.empty() ? given : op(Opcode::land_, {own, given});
    }
    if (own.empty() || !fits(own, term)) always = true;
    else flow = flow.empty() ? own : op(Opcode::lor_, {flow, own});
    total = sum(total, term, c.op.loc);
  }
  if (always) flow = {};
  return total;
}

}  // namespace lantern::core::ad
