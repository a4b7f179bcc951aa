// Operations on vectors: arithmetic in the compilers' vector extension, elements of tensors lane by lane.
#include <algorithm>

#include "lantern/codegen/statement_printer.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::codegen {

using ir::Kind;
using ir::Op;
using ir::Opcode;
using ir::Value;

namespace {

bool is_splat(const Value* v) { return v->def && v->def->is(Opcode::lane_splat_); }
bool is_lane_index(const Value* v) { return v->def && v->def->is(Opcode::lane_index_); }

/// Operators that take a scalar beside a vector.
bool mixes(Opcode code) {
  switch (code) {
    case Opcode::add_:
    case Opcode::sub_:
    case Opcode::mul_:
    case Opcode::div_:
    case Opcode::lt_:
    case Opcode::le_:
    case Opcode::eq_:
    case Opcode::ne_:
      return true;
    default:
      return false;
  }
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
    Expression e{"", Precedence::primary, false, {}};
    for (const Value* v : op.operands) {
      const Expression x = value(v);
      list += (list.empty() ? "" : ", ") + x.text;
      e.reads_memory |= x.reads_memory;
      e.varying.insert(e.varying.end(), x.varying.begin(), x.varying.end());
    }
    e.text = f + "(" + list + ")";
    return e;
  };
  switch (op.code) {
    case Opcode::lane_index_:
      return define(op, {function("index", Kind::i64) + "()", Precedence::primary, false, {}});
    case Opcode::lane_sum_:
      // A sum of products is added up with fused operations.
      if (const Op* m = op.operands[0]->def; m && m->is(Opcode::mul_) && uses_.count(m->result()) == 1 &&
                                             !is_splat(m->operands[0]) && !is_splat(m->operands[1]) &&
                                             bindings_.at(m->result()).pending)
        return define(op, dot(*m));
      return define(op, called(unit_.prelude().vector_function("sum", kind, op.operands[0]->type.lanes())));
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
        return define(op, {"(" + x.text + " != 0)", Precedence::primary, x.reads_memory, x.varying});
      if (from == Kind::boolean) x.text = "-" + in_context(x, Precedence::unary);
      return define(op, {"__builtin_convertvector(" + x.text + ", " + to + ")", Precedence::primary,
                         x.reads_memory, x.varying});
    }
    case Opcode::select_:
      return define(op, called(function("select", kind)));
    case Opcode::min_:
      return define(op, called(function("fmin", kind)));
    case Opcode::max_:
      return define(op, called(function("fmax", kind)));
    case Opcode::imin_:
      return define(op, called(function("imin", kind)));
    case Opcode::imax_:
      return define(op, called(function("imax", kind)));
    case Opcode::land_:
    case Opcode::lor_: {
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
    case Opcode::sign_: {
      // Comparisons give -1 where they hold.
      const std::string x = atom(op.operands[0]);
      return define(op, {"__builtin_convertvector((" + x + " < 0.0) - (" + x + " > 0.0), " +
                             unit_.prelude().vector(kind, lanes) + ")",
                         Precedence::primary, false, value(op.operands[0]).varying});
    }
    case Opcode::fma_: {
      const Expression x = value(op.operands[0]), y = value(op.operands[1]), z = value(op.operands[2]);
      Expression e{in_context(x, Precedence::multiplicative) + " * " + in_context(y, Precedence::unary) +
                       " + " + in_context(z, Precedence::multiplicative),
                   Precedence::additive,
                   false,
                   {}};
      for (const Expression& part : {x, y, z})
        e.varying.insert(e.varying.end(), part.varying.begin(), part.varying.end());
      return define(op, std::move(e));
    }
    default:
      break;
  }
  // Arithmetic and comparisons are written as for scalars; everything else is a function of one name.
  std::vector<Expression> operands;
  const bool bare =
      mixes(op.code) && std::ranges::any_of(op.operands, [](const Value* v) { return !is_splat(v); });
  for (const Value* v : op.operands) operands.push_back(value(bare && is_splat(v) ? v->def->operands[0] : v));
  const std::string_view pattern = ir::info(op.code).expression;
  const std::size_t call = pattern.find('(');
  if (call == std::string_view::npos) {
    std::vector<std::string> functions;
    return define(op, substitute(pattern, operands, unit_.target(), kind, functions));
  }
  define(op, called(function(std::string(pattern.substr(0, call)).c_str(), kind)));
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

/// The scalar that a vector of indices starts at, if its lanes follow each other.
std::optional<Expression> StatementPrinter::first_lane(const Value* index) {
  if (is_lane_index(index)) return integer_literal(0);
  if (!index->def || !(index->def->is(Opcode::add_) || index->def->is(Opcode::sub_))) return {};
  const Op& op = *index->def;
  const bool subtract = op.is(Opcode::sub_);
  for (std::size_t i = 0; i < (subtract ? 1u : 2u); ++i) {
    const Value *x = op.operands[i], *y = op.operands[1 - i];
    if (!is_splat(y)) continue;
    const auto start = first_lane(x);
    if (!start) continue;
    const Expression by = value(y->def->operands[0]);
    if (start->text == "0" && !subtract) return by;
    Expression e{in_context(*start, Precedence::additive) + (subtract ? " - " : " + ") +
                     in_context(by, Precedence::multiplicative),
                 Precedence::additive, start->reads_memory || by.reads_memory, start->varying};
    e.varying.insert(e.varying.end(), by.varying.begin(), by.varying.end());
    return e;
  }
  return {};
}

/// get, set and add_at with a vector among the indices.
void StatementPrinter::lanes_access(const Op& op) {
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
  std::optional<Expression> start;
  if (vectors == 1) start = first_lane(indices[which]);

  for (std::size_t i = 0; i < rank; ++i) {
    if (!indices[i]->type.is_vector()) {
      check_index(op, indices[i], t, i);
    } else if (unit_.options().bounds_checks && !(is_lane_index(indices[i]) && dims(t)[i] == lanes)) {
      if (start) {
        unit_.prelude().need("fail_index");
        const std::string first = in_context(*start, Precedence::additive), n = dim(t, i);
        line("if (" + first + " < 0 || " + first + " + " + std::to_string(lanes) + " > " + n +
             ") lt_fail_index(" + ws() + ", " + first + " < 0 || " + first + " > " + n + " ? " + first +
             " : " + n + ", " + n + ", " + c_string(where(op)) + ");");
      } else {
        line(unit_.prelude().vector_function("check", Kind::i64, lanes) + "(" + ws() + ", " +
             text(indices[i]) + ", " + dim(t, i) + ", " + c_string(where(op)) + ");");
      }
    }
  }

  const Kind kind = t->type.element();
  const auto function = [&](const char* name) { return unit_.prelude().vector_function(name, kind, lanes); };
  const std::string data = op.is(Opcode::get_) ? atom(t) : updated(op);
  Expression place{"", Precedence::primary, false, {}};
  std::string stride = "1";
  if (start) {
    // Row-major: the offset with the first lane in place of the vector.
    Expression e = which == 0 ? *start : value(indices[0]);
    for (std::size_t i = 1; i < rank; ++i) {
      const Expression next = i == which ? *start : value(indices[i]);
      e.text = in_context(e, Precedence::multiplicative) + " * " + dim(t, i) + " + " +
               in_context(next, Precedence::multiplicative);
      e.precedence = Precedence::additive;
      e.varying.insert(e.varying.end(), next.varying.begin(), next.varying.end());
    }
    place = {data + ".data + " + in_context(e, Precedence::multiplicative), Precedence::additive, true,
             e.varying};
    stride = elements(t, which + 1);
  } else {
    // Offsets in every lane.
    Expression e = value(indices[0]);
    bool vector = indices[0]->type.is_vector();
    for (std::size_t i = 1; i < rank; ++i) {
      const Expression next = value(indices[i]);
      e.text = in_context(e, Precedence::multiplicative) + " * " + dim(t, i) + " + " +
               in_context(next, Precedence::multiplicative);
      e.precedence = Precedence::additive;
      e.varying.insert(e.varying.end(), next.varying.begin(), next.varying.end());
      vector |= indices[i]->type.is_vector();
    }
    place = {data + ".data, " + e.text, Precedence::additive, true, e.varying};
  }
  const Expression tensor = value(t);
  place.varying.insert(place.varying.end(), tensor.varying.begin(), tensor.varying.end());

  const std::string with_stride = stride == "1" ? "" : ", " + stride;
  if (op.is(Opcode::get_)) {
    const char* name = !start ? "gather" : stride == "1" ? "load" : "strided";
    return define(op, {function(name) + "(" + place.text + (start ? with_stride : "") + ")",
                       Precedence::primary, true, place.varying});
  }
  const std::string v = text(op.operands.back());
  const bool add = op.is(Opcode::add_at_);
  if (start && stride == "1") {
    const std::string sum = add ? function("load") + "(" + place.text + ") + " +
                                      in_context(value(op.operands.back()), Precedence::additive)
                                : v;
    return line(function("store") + "(" + place.text + ", " + sum + ");");
  }
  const char* name = start ? (add ? "add_strided" : "store_strided") : (add ? "add_scatter" : "scatter");
  line(function(name) + "(" + place.text + (start ? with_stride : "") + ", " + v + ");");
}

}  // namespace lantern::codegen
