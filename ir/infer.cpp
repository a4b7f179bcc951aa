// Type rules: the result type of every pure operation, and what is wrong when there is none.

#include "lantern/ir/error.hpp"
#include "lantern/ir/infix.hpp"
#include "lantern/ir/notation.hpp"
#include "lantern/ir/op.hpp"

namespace lantern::ir {

namespace {

[[noreturn]] void mismatch(Opcode op, std::span<const Type> operands, const std::string& expected) {
  throw Error(std::string(info(op).name) + ": expected " + expected + ", got " + joined(operands));
}

std::int64_t merge_dim(std::int64_t a, std::int64_t b) { return a == dynamic ? b : a; }

/// Common type of element-wise operands: equal up to symbolic dimensions, known dimensions win.
Type common(Opcode op, std::span<const Type> operands, std::span<const Type> all) {
  Type t = operands[0];
  for (const Type& u : operands.subspan(1)) {
    if (!compatible(t, u)) mismatch(op, all, "operands of one type and shape");
    if (!t.is_tensor()) continue;
    std::vector<std::int64_t> dims = t.dims();
    for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = merge_dim(dims[i], u.dims()[i]);
    t = Type::tensor(t.element(), std::move(dims));
  }
  return t;
}

Type infer_elementwise(Opcode op, Rule rule, std::span<const Type> operands) {
  if (rule == Rule::choice) {
    if (operands[0].element() != Kind::boolean) mismatch(op, operands, "a bool first");
    const Type result = common(op, operands.subspan(1), operands);
    if ((operands[0].is_tensor() || result.is_vector()) &&
        !compatible(operands[0].with_element(result.element()), result))
      mismatch(op, operands, "operands of one shape");
    return result;
  }
  for (const Type& t : operands)
    if (!t.is_scalar() && !t.is_tensor()) mismatch(op, operands, "numbers");
  const Type t = common(op, operands, operands);
  const Kind k = t.element();
  switch (rule) {
    case Rule::arith:
      if (k == Kind::boolean) mismatch(op, operands, "numbers");
      return t;
    case Rule::real:
      if (!t.is_float_element()) mismatch(op, operands, "floating-point operands (cast integers first)");
      return t;
    case Rule::integer:
      if (k != Kind::i32 && k != Kind::i64) mismatch(op, operands, "integers");
      return t;
    case Rule::compare:
      return t.with_element(Kind::boolean);
    default:
      if (k != Kind::boolean) mismatch(op, operands, "bools");
      return t;
  }
}

bool fits(std::int64_t a, std::int64_t b) { return a == dynamic || b == dynamic || a == b; }

struct Inference {
  Opcode op;
  std::span<const Type> in;

  void need(bool ok, const char* expected) const {
    if (!ok) mismatch(op, in, expected);
  }
  std::int64_t dim(std::size_t operand, std::size_t i) const { return in[operand].dims()[i]; }
  bool is(std::size_t operand, int rank) const {
    return operand < in.size() && in[operand].is_tensor() && in[operand].rank() == rank;
  }
  Type tensor(std::vector<std::int64_t> dims) const { return Type::tensor(in[0].element(), std::move(dims)); }
  /// Indices, some of them vectors of one width; the width.
  int indices(std::size_t from, std::size_t to) const {
    int lanes = 1;
    for (std::size_t i = from; i < to; ++i) {
      need(in[i].kind() == Kind::i64, "i64 indices");
      if (!in[i].is_vector()) continue;
      need(lanes == 1 || lanes == in[i].lanes(), "indices of one width");
      lanes = in[i].lanes();
    }
    return lanes;
  }
  void same_element() const {
    for (const Type& t : in) need(t.element() == in[0].element(), "operands of one element type");
  }
};

/// The sizes of indices are those that operands have there; the result's dimensions are its indices.
Type infer_notation(Opcode op, std::span<const Type> in, std::span<const std::int64_t> dims,
                    const char* text) {
  const Notation* const general = notation_of(op, text);
  if (!general) throw Error(std::string(info(op).name) + ": expected an index notation");
  const std::string fitting = "shapes that fit \"" + general->text() + "\"";
  if (general->accumulates != (op == Opcode::add_einsum_) && is_einsum(op))
    mismatch(op, in, op == Opcode::einsum_ ? "an index notation with '->'" : "an index notation with '+='");
  if (in.size() != general->arity()) mismatch(op, in, fitting);
  const Type element(in[0].element());
  if (element.is_bool() && (general->accumulates || general->factors() != 1)) mismatch(op, in, "numbers");
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool is_size = i >= general->operands.size();
    if (is_size ? in[i] != I64 : !in[i].is_tensor() && !(in[i].is_scalar() && !in[i].is_vector()))
      mismatch(op, in, fitting);
    if (!is_size && !general->operands[i].shape && in[i].element() != element.kind())
      mismatch(op, in, "operands of one element type");
  }
  Notation n;
  try {
    n = concrete(*general, in);
  } catch (const Error&) {
    mismatch(op, in, fitting);
  }
  if (element.is_bool() && !moves_elements(n)) mismatch(op, in, "numbers");
  const auto size = [&](std::size_t operand, std::size_t d) { return in[operand].dims()[d]; };
  for (const SameSize& s : same_sizes(n))
    if (!fits(size(s.a, s.a_dimension), size(s.b, s.b_dimension))) mismatch(op, in, fitting);
  if (n.accumulates) return in[0];
  if (n.result.empty()) return element;
  std::vector<std::int64_t> shape;
  for (std::size_t d = 0; d < n.result.size(); ++d) {
    shape.push_back(d < dims.size() ? dims[d] : dynamic);
    for (std::size_t i = 0; i < n.operands.size(); ++i)
      for (std::size_t k = 0; k < n.operands[i].at.size(); ++k)
        if (n.operands[i].at[k] == n.result[d]) shape.back() = merge_dim(shape.back(), size(i, k));
  }
  return Type::tensor(element.kind(), std::move(shape));
}

}  // namespace

Type infer_type(Opcode op, std::span<const Type> in, std::int64_t attribute,
                std::span<const std::int64_t> dims, const char* text) {
  const OpInfo& row = info(op);
  if (row.arity >= 0 && static_cast<std::size_t>(row.arity) != in.size())
    mismatch(op, in, std::to_string(row.arity) + " operands");
  if (row.arity < 0 && !row.formulas.empty() && in.empty()) mismatch(op, in, "operands");
  if (row.elementwise) return infer_elementwise(op, row.rule, in);
  if (row.in_notation()) return infer_notation(op, in, dims, text);
  const Inference t{op, in};
  switch (op) {
    case Opcode::cast_:
      t.need(in[0].is_scalar() || in[0].is_tensor(), "a number");
      return in[0].with_element(static_cast<Kind>(attribute));
    case Opcode::stop_gradient_:
    case Opcode::print_adjoint_:
      return in[0];
    case Opcode::cast_like_:
      return in[0].with_element(in[1].element());
    case Opcode::dim_:
      t.need(in[0].is_tensor() && attribute >= 0 && attribute < in[0].rank(), "a tensor with that dimension");
      return I64;
    case Opcode::get_:
      t.need(in[0].is_tensor() && static_cast<int>(in.size()) == in[0].rank() + 1,
             "a tensor and one index per dimension");
      return Type::vector(in[0].element(), t.indices(1, in.size()));
    case Opcode::set_:
    case Opcode::add_at_:
      t.need(in[0].is_tensor() && static_cast<int>(in.size()) == in[0].rank() + 2,
             "a tensor, one index per dimension, and a value");
      t.need(in.back().is_scalar() && in.back().kind() == in[0].element(), "a value of the element type");
      t.need(in.back().lanes() == t.indices(1, in.size() - 1), "a value as wide as the indices");
      return in[0];
    case Opcode::take_:
      t.need(in[0].is_tensor() && in[0].rank() >= 2 && in[1] == I64, "a tensor of rank 2 or more and an i64");
      return t.tensor({in[0].dims().begin() + 1, in[0].dims().end()});
    case Opcode::add_take_:
      t.need(in[0].is_tensor() && in[1] == I64 && in[2].is_tensor() && in[2].rank() == in[0].rank() - 1,
             "a tensor, a row number and a row");
      return in[0];
    case Opcode::slice_: {
      t.need(in[0].is_tensor() && in[0].rank() >= 1 && in[1] == I64 && in[2] == I64, "a tensor and two i64");
      std::vector<std::int64_t> shape = in[0].dims();
      shape[0] = dynamic;
      return t.tensor(std::move(shape));
    }
    case Opcode::add_slice_:
      t.need(in[0].is_tensor() && in[1] == I64 && in[2].is_tensor() && in[2].rank() == in[0].rank(),
             "a tensor, a row number and rows");
      return in[0];
    case Opcode::fill_: {
      t.need(in[0].is_scalar(), "a scalar and sizes");
      t.need(t.indices(1, in.size()) == 1, "sizes that are scalars");
      std::vector<std::int64_t> shape(dims.begin(), dims.end());
      shape.resize(in.size() - 1, dynamic);
      return t.tensor(std::move(shape));
    }
    case Opcode::zeros_like_:
      return in[0];
    case Opcode::argmax_:
      t.need(in[0].is_tensor(), "a tensor");
      return I64;
    case Opcode::copy_:
      t.need(in[0].is_tensor() && in.size() % 2 == 1, "a tensor, and pairs of numbers");
      t.need(t.indices(1, in.size()) == 1, "numbers that are scalars");
      return in[0];
    case Opcode::reshape_:
      t.need(in[0].is_tensor() && in[1].is_tensor(), "two tensors");
      return t.tensor(in[1].dims());
    case Opcode::concat_: {
      t.need(in[0].is_tensor() && in[1].is_tensor() && in[0].rank() == in[1].rank() && in[0].rank() >= 1,
             "two tensors of one rank");
      t.same_element();
      std::vector<std::int64_t> shape = in[0].dims();
      for (std::size_t i = 1; i < shape.size(); ++i)
        t.need(fits(shape[i], t.dim(1, i)), "the same trailing dimensions");
      shape[0] = shape[0] == dynamic || t.dim(1, 0) == dynamic ? dynamic : shape[0] + t.dim(1, 0);
      return t.tensor(std::move(shape));
    }
    case Opcode::lane_get_:
      t.need(in[0].is_tensor() && static_cast<int>(in.size()) == in[0].rank() + 2 && in.back() == I64,
             "a tensor, one index per dimension, and a number of lanes");
      return Type::vector(in[0].element(), t.indices(1, in.size() - 1));
    case Opcode::lane_set_:
    case Opcode::lane_add_at_: {
      t.need(in[0].is_tensor() && static_cast<int>(in.size()) == in[0].rank() + 3 && in.back() == I64,
             "a tensor, one index per dimension, a value, and a number of lanes");
      const Type& v = in[in.size() - 2];
      t.need(v == Type::vector(in[0].element(), t.indices(1, in.size() - 2)),
             "a value as wide as the indices");
      return in[0];
    }
    case Opcode::lane_index_:
      return Type::vector(Kind::i64, static_cast<int>(attribute));
    case Opcode::lane_splat_:
      t.need(in[0].is_scalar() && !in[0].is_vector(), "a scalar");
      return Type::vector(in[0].kind(), static_cast<int>(attribute));
    case Opcode::lane_sum_:
    case Opcode::lane_max_:
    case Opcode::lane_min_:
      t.need(in[0].is_vector() && in[0].is_float_element(), "a vector of floating-point numbers");
      return Type(in[0].kind());
    case Opcode::lane_any_:
      t.need(in[0].is_vector() && in[0].kind() == Kind::boolean, "a vector of truth values");
      return Bool;
    case Opcode::gemm_:
      t.need(in.size() == 15 || in.size() == 16,
             "three tensors, a number, eleven starts, steps and sizes, and perhaps memory for panels");
      for (std::size_t i = 0; i < 3; ++i)
        t.need(in[i].is_tensor() && in[i].is_float_element() && in[i].element() == in[0].element(),
               "three tensors of floating-point numbers of one type");
      t.need(in[3] == Type(in[0].element()), "a number of that type");
      for (std::size_t i = 4; i < 15; ++i) t.need(in[i] == I64, "i64 starts, steps and sizes");
      if (in.size() == 16)
        t.need(in[15].is_tensor() && in[15].rank() == 1 && in[15].element() == in[0].element(),
               "memory of one dimension and of that type");
      return in[0];
    case Opcode::tree_empty_:
      t.need(in[0].is_tree(), "a tree");
      return Bool;
    case Opcode::tree_left_:
    case Opcode::tree_right_:
      t.need(in[0].is_tree(), "a tree");
      return in[0];
    case Opcode::tree_value_:
      t.need(in[0].is_tree() && attribute >= 0 && attribute < static_cast<int>(in[0].parts().size()),
             "a tree");
      return in[0].parts()[static_cast<std::size_t>(attribute)];
    default:
      throw InternalError("no type rule for " + std::string(row.name));
  }
}

}  // namespace lantern::ir
