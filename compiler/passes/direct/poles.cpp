// Poles by signs: a sum of what is not negative and something positive is no 0.
#include "lantern/compiler/passes/direct/poles.hpp"

#include <algorithm>

namespace lantern::passes {

namespace {

using ir::Op;
using ir::Opcode;
using ir::Value;

enum class Sign { unknown, not_negative, positive };

class Poles {
 public:
  explicit Poles(bool again) : again_(again) {}

  bool near(const Value* v) {
    const Op* const op = v->def;
    if (!op) return false;
    if (left_-- <= 0) return true;
    const auto inside = [&] { return std::ranges::any_of(op->operands, [&](const Value* x) { return near(x); }); };
    switch (op->code) {
      case Opcode::div_:
      case Opcode::over_:
        return !not_zero(op->operands[1]) || inside();
      case Opcode::pow_:
        return (!not_zero(op->operands[0]) && (again_ || sign(op->operands[1]) == Sign::unknown)) || inside();
      case Opcode::log_:
      case Opcode::log2_:
      case Opcode::log10_:
        return sign(op->operands[0]) != Sign::positive || inside();
      case Opcode::log1p_:
        return sign(op->operands[0]) == Sign::unknown || inside();
      case Opcode::abs_:
      case Opcode::side_:
      case Opcode::sqrt_:
      case Opcode::cbrt_:
        return (again_ && sign(op->operands[0]) != Sign::positive) || inside();
      case Opcode::hypot_:
        return (again_ && !not_zero(op->operands[0]) && !not_zero(op->operands[1])) || inside();
      case Opcode::root_:
      case Opcode::asin_:
      case Opcode::acos_:
      case Opcode::acosh_:
      case Opcode::atan2_:
        return again_ || inside();
      case Opcode::atanh_:
      case Opcode::lgamma_:
      case Opcode::polygamma_:
        return true;
      case Opcode::get_:
      case Opcode::take_:
      case Opcode::slice_:
      case Opcode::reshape_:
      case Opcode::transpose_:
      case Opcode::broadcast_:
        return near(op->operands[0]);
      default:
        return ir::info(op->code).elementwise && inside();
    }
  }

 private:
  bool not_zero(const Value* v) {
    while (v->def && v->def->is(Opcode::neg_, Opcode::broadcast_)) v = v->def->operands[0];
    if (v->def && v->def->is(Opcode::constant_)) return v->def->number != 0;
    if (v->def && v->def->is(Opcode::mul_))
      return not_zero(v->def->operands[0]) && not_zero(v->def->operands[1]);
    return sign(v) == Sign::positive;
  }

  Sign sign(const Value* v) {
    const Op* const op = v->def;
    if (!op || left_-- <= 0) return Sign::unknown;
    const auto of = [&](std::size_t i) { return sign(op->operands[i]); };
    switch (op->code) {
      case Opcode::constant_: {
        const double x = op->result()->type.is_float_element() ? op->number : static_cast<double>(op->integer);
        return x > 0 ? Sign::positive : x == 0 ? Sign::not_negative : Sign::unknown;
      }
      case Opcode::exp_:
      case Opcode::exp2_:
      case Opcode::cosh_:
      case Opcode::sigmoid_:
      case Opcode::softplus_:
        return Sign::positive;
      case Opcode::abs_:
      case Opcode::hypot_:
      case Opcode::relu_:
      case Opcode::dim_:
        return Sign::not_negative;
      case Opcode::sqrt_:
      case Opcode::sum_:
      case Opcode::broadcast_:
      case Opcode::reshape_:
      case Opcode::get_:
        return of(0);
      case Opcode::cast_:
        return op->result()->type.is_float_element() ? of(0) : std::min(of(0), Sign::not_negative);
      case Opcode::mul_:
        if (op->operands[0] == op->operands[1]) return std::max(Sign::not_negative, of(0));
        [[fallthrough]];
      case Opcode::div_:
      case Opcode::min_:
        return std::min(of(0), of(1));
      case Opcode::max_:
        return std::max(of(0), of(1));
      case Opcode::add_: {
        const Sign a = of(0), b = of(1);
        return a == Sign::unknown || b == Sign::unknown ? Sign::unknown : std::max(a, b);
      }
      default:
        return Sign::unknown;
    }
  }

  const bool again_;
  int left_ = 64;
};

}  // namespace

bool near_pole(const Value* v, bool again) { return Poles(again).near(v); }

}  // namespace lantern::passes
