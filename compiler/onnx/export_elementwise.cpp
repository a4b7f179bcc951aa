// What operations on numbers, element by element, are in ONNX: one row each. A row is written in operators of
// ONNX over the operands x, y and z and numbers of the last operand's type.
#include <cmath>

#include "lantern/compiler/onnx/exporter.hpp"

namespace lantern::onnx::exporting {

using ir::Opcode;

namespace {

struct Row {
  Opcode op;
  std::string_view formula;
};

constexpr Row elementwise_rows[] = {
    {Opcode::add_, "Add(x,y)"},
    {Opcode::sub_, "Sub(x,y)"},
    {Opcode::mul_, "Mul(x,y)"},
    {Opcode::div_, "Div(x,y)"},
    {Opcode::neg_, "Neg(x)"},
    {Opcode::rem_, "Mod[fmod](x,y)"},
    {Opcode::fma_, "Add(Mul(x,y),z)"},
    {Opcode::min_, "Min(x,y)"},
    {Opcode::max_, "Max(x,y)"},
    {Opcode::imin_, "Min(x,y)"},
    {Opcode::imax_, "Max(x,y)"},
    {Opcode::bit_and_, "BitwiseAnd(x,y)"},
    {Opcode::bit_or_, "BitwiseOr(x,y)"},
    {Opcode::bit_xor_, "BitwiseXor(x,y)"},
    {Opcode::abs_, "Abs(x)"},
    {Opcode::sign_, "Sign(x)"},
    {Opcode::floor_, "Floor(x)"},
    {Opcode::ceil_, "Ceil(x)"},
    {Opcode::trunc_, "Mul(Sign(x),Floor(Abs(x)))"},
    // Round of ONNX takes halves to even numbers.
    {Opcode::round_, "Mul(Sign(x),Where(GreaterOrEqual(Sub(Abs(x),Floor(Abs(x))),0.5),Add(Floor(Abs(x)),1),Floor(Abs(x))))"},
    {Opcode::sqrt_, "Sqrt(x)"},
    {Opcode::exp_, "Exp(x)"},
    {Opcode::log_, "Log(x)"},
    {Opcode::exp2_, "Pow(2,x)"},
    {Opcode::log2_, "Mul(Log(x),1.4426950408889634)"},
    {Opcode::log10_, "Mul(Log(x),0.4342944819032518)"},
    {Opcode::cbrt_, "Mul(Sign(x),Pow(Abs(x),0.3333333333333333))"},
    // Kahan: the rounding of 1 + x, and of exp(x), cancels.
    {Opcode::log1p_, "Where(Equal(Add(x,1),1),x,Div(Mul(Log(Add(x,1)),x),Sub(Add(x,1),1)))"},
    {Opcode::expm1_, "Where(Less(Abs(x),0.5),Where(Equal(Exp(x),1),x,Div(Mul(Sub(Exp(x),1),x),Log(Exp(x)))),Sub(Exp(x),1))"},
    {Opcode::pow_, "Pow(x,y)"},
    {Opcode::sin_, "Sin(x)"},
    {Opcode::cos_, "Cos(x)"},
    {Opcode::tan_, "Tan(x)"},
    {Opcode::asin_, "Asin(x)"},
    {Opcode::acos_, "Acos(x)"},
    {Opcode::atan_, "Atan(x)"},
    // y is the second operand: the angle of the point (y, x).
    {Opcode::atan2_,
     "Add(Where(Equal(y,0),Mul(Sign(x),1.5707963267948966),Atan(Div(x,Where(Equal(y,0),1,y)))),"
     "Where(Less(y,0),Where(Less(x,0),-3.141592653589793,3.141592653589793),0))"},
    {Opcode::sinh_, "Sinh(x)"},
    {Opcode::cosh_, "Cosh(x)"},
    {Opcode::tanh_, "Tanh(x)"},
    {Opcode::asinh_, "Asinh(x)"},
    {Opcode::acosh_, "Acosh(x)"},
    {Opcode::atanh_, "Atanh(x)"},
    // Scaled by the larger, so that squares neither overflow nor vanish.
    {Opcode::hypot_,
     "Mul(Max(Abs(x),Abs(y)),Sqrt(Add(1,Mul(Div(Min(Abs(x),Abs(y)),Where(Equal(Max(Abs(x),Abs(y)),0),1,Max("
     "Abs(x),Abs(y)))),"
     "Div(Min(Abs(x),Abs(y)),Where(Equal(Max(Abs(x),Abs(y)),0),1,Max(Abs(x),Abs(y))))))))"},
    {Opcode::fmod_, "Mod[fmod](x,y)"},
    {Opcode::copysign_, "Where(Less(Where(Equal(y,0),Div(1,y),y),0),Neg(Abs(x)),Abs(x))"},
    {Opcode::erf_, "Erf(x)"},
    {Opcode::erfc_, "Sub(1,Erf(x))"},
    {Opcode::lt_, "Less(x,y)"},
    {Opcode::le_, "LessOrEqual(x,y)"},
    {Opcode::eq_, "Equal(x,y)"},
    {Opcode::ne_, "Not(Equal(x,y))"},
    {Opcode::land_, "And(x,y)"},
    {Opcode::lor_, "Or(x,y)"},
    {Opcode::lnot_, "Not(x)"},
    {Opcode::select_, "Where(x,y,z)"},
    {Opcode::relu_, "Relu(x)"},
    {Opcode::sigmoid_, "Sigmoid(x)"},
    {Opcode::softplus_, "Softplus(x)"},
    {Opcode::with_value_, "Identity(y)"},
    {Opcode::side_, "Sign(x)"},
    {Opcode::over_, "Where(Equal(y,0),0,Div(x,y))"},
    {Opcode::root_, "Sqrt(x)"},
};

const Row* row_of(Opcode op) {
  for (const Row& r : elementwise_rows)
    if (r.op == op) return &r;
  return nullptr;
}

/// Writes the nodes of a formula, which it reads from left to right.
struct Reader {
  Writer& w;
  std::string_view rest;
  ir::Kind kind;
  const Names& operands;

  std::string value() {
    if (const char c = rest[0]; c == 'x' || c == 'y' || c == 'z') {
      rest.remove_prefix(1);
      return operands[static_cast<std::size_t>(c - 'x')];
    }
    if (rest[0] == '-' || (rest[0] >= '0' && rest[0] <= '9')) {
      const std::size_t end = rest.find_first_of(",)");
      const double v = std::stod(std::string(rest.substr(0, end)));
      rest.remove_prefix(end);
      return w.number(v, kind);
    }
    const std::size_t end = rest.find_first_of("([");
    const std::string op(rest.substr(0, end));
    rest.remove_prefix(end);
    std::vector<Attribute> attributes;
    if (rest[0] == '[') {
      const std::size_t close = rest.find(']');
      attributes.push_back(attribute(std::string(rest.substr(1, close - 1)), std::int64_t{1}));
      rest.remove_prefix(close + 1);
    }
    Names inputs;
    while (rest[0] == '(' || rest[0] == ',') {
      rest.remove_prefix(1);
      inputs.push_back(value());
    }
    rest.remove_prefix(1);
    return w.node(op, inputs, attributes);
  }
};

}  // namespace

/// The value of a sum, difference or product of numbers.
static std::optional<double> folded(Opcode op, const std::vector<Form>& x) {
  if (x.size() != 2 || !x[0].number || !x[1].number || x[0].kind != x[1].kind) return std::nullopt;
  if (x[0].kind == ir::Kind::boolean || x[0].kind == ir::Kind::i32) return std::nullopt;
  const auto in = [&](auto a, auto b) -> std::optional<double> {
    if (op == Opcode::add_) return static_cast<double>(a + b);
    if (op == Opcode::sub_) return static_cast<double>(a - b);
    if (op == Opcode::mul_) return static_cast<double>(a * b);
    return std::nullopt;
  };
  if (x[0].kind == ir::Kind::f32)
    return in(static_cast<float>(*x[0].number), static_cast<float>(*x[1].number));
  const auto result = in(*x[0].number, *x[1].number);
  // Integers as far as a double has them all.
  const double most = 9007199254740992.0;
  if (result && x[0].kind == ir::Kind::i64 &&
      (std::abs(*x[0].number) > most || std::abs(*x[1].number) > most || std::abs(*result) > most))
    return std::nullopt;
  return result;
}

std::string Exporter::scaled(const std::string& x, double by, ir::Kind kind) {
  const std::string name = w.node("Mul", {x, w.number(by, kind)});
  scaled_[name] = {x, by};
  return name;
}

bool has_formula(Opcode op) { return row_of(op) != nullptr; }

std::string Exporter::elementwise(Opcode op, ir::Kind kind, const Names& operands) {
  std::string_view formula = row_of(op)->formula;
  if (op == Opcode::select_ && kind == ir::Kind::boolean) formula = "Or(And(x,y),And(Not(x),z))";
  return Reader{w, formula, kind, operands}.value();
}

Form Exporter::elementwise(Opcode op, const std::vector<Form>& operands, const ir::Type& result) {
  Names names;
  Form made;
  made.kind = result.element();
  made.whole = result.is_scalar();
  const std::size_t rank = static_cast<std::size_t>(result.is_tensor() ? result.rank() : 0);
  for (const Form& f : operands) {
    names.push_back(f.name);
    if (f.rank() != rank) continue;
    if (made.sizes.empty()) made.sizes = f.sizes;
    for (std::size_t d = 0; d < rank; ++d)
      if (f.sizes[d].known >= 0) made.sizes[d] = f.sizes[d];
    made.whole = made.whole || f.whole;
  }
  for (std::size_t d = 0; d < rank; ++d)
    if (result.dims()[d] != ir::dynamic) made.sizes[d] = Size::number(result.dims()[d]);
  if (const auto known = folded(op, operands)) {
    made.number = known;
    made.name = w.number(*known, made.kind);
    if (made.kind == ir::Kind::i64 && rank == 0 && *known >= 0)
      made.size = Size::number(static_cast<std::int64_t>(*known));
    made.whole = rank == 0;
    return made;
  }
  // A sum over a window that is divided by its size.
  if (const auto of = scaled_.find(names[0]);
      of != scaled_.end() && operands.size() == 2 && operands[1].number) {
    const double by = op == Opcode::div_   ? 1 / *operands[1].number
                      : op == Opcode::mul_ ? *operands[1].number
                                           : 0;
    if (std::abs(by * of->second.second - 1) < 1e-6) {
      made.name = of->second.first;
      return made;
    }
  }
  made.name = elementwise(op, operands.back().kind, names);
  return made;
}

}  // namespace lantern::onnx::exporting
