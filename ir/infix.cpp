// Brackets stand where the text would mean something else without them.
#include "lantern/ir/infix.hpp"

#include "lantern/ir/print.hpp"

namespace lantern::ir {

namespace {

using Binds = Infix::Binds;

std::string at_least(const Infix& operand, Binds binds) {
  return operand.binds < binds ? "(" + operand.text + ")" : operand.text;
}

/// Operands that associate to the left, and the sign between them in the table: "x + y".
Infix between(std::span<const Infix> o, const Op& op, Binds binds) {
  const std::string_view row = info(op.code).expression;
  return {at_least(o[0], binds) + std::string(row.substr(1, row.size() - 2)) +
              at_least(o[1], static_cast<Binds>(static_cast<int>(binds) + 1)),
          binds};
}

Infix element(std::span<const Infix> o, std::size_t indices, const std::string& more = "") {
  return {at_least(o[0], Binds::name) + "[" + joined(o.subspan(1, indices)) + more + "]"};
}

/// A tensor that differs from another in one place.
Infix changed(std::span<const Infix> o, std::size_t indices, const char* how, const std::string& more = "") {
  return {at_least(o[0], Binds::name) + " with [" + joined(o.subspan(1, indices)) + more + "] " + how + " " +
              o[indices + 1].text,
          Binds::choice};
}

std::string first_lanes(const Infix& n) { return "; first " + n.text + " lanes"; }

}  // namespace

std::string joined(std::span<const Infix> list) {
  std::string text;
  for (const Infix& one : list) text += (text.empty() ? "" : ", ") + one.text;
  return text;
}

std::string joined(std::span<const Type> list) {
  std::string text;
  for (const Type& t : list) text += (text.empty() ? "" : ", ") + t.str();
  return text;
}

Infix infix(const Op& op, std::span<const Infix> o) {
  switch (op.code) {
    case Opcode::constant_:
      return {constant_text(op)};
    case Opcode::add_:
    case Opcode::sub_:
      return between(o, op, Binds::sum);
    case Opcode::mul_:
    case Opcode::div_:
    case Opcode::rem_:
      return between(o, op, Binds::product);
    case Opcode::neg_:
      return {"-" + at_least(o[0], Binds::name), Binds::prefix};
    case Opcode::fma_:
      return {at_least(o[0], Binds::product) + " * " + at_least(o[1], Binds::prefix) + " + " +
                  at_least(o[2], Binds::product),
              Binds::sum};
    case Opcode::lt_:
    case Opcode::le_:
    case Opcode::eq_:
    case Opcode::ne_:
      return between(o, op, Binds::comparison);
    case Opcode::land_:
      return between(o, op, Binds::both);
    case Opcode::lor_:
      return between(o, op, Binds::either);
    case Opcode::lnot_:
      return {"!" + at_least(o[0], Binds::prefix), Binds::prefix};
    case Opcode::select_:
      return {at_least(o[0], Binds::either) + " ? " + at_least(o[1], Binds::either) + " : " +
                  at_least(o[2], Binds::either),
              Binds::choice};
    case Opcode::imin_:
      return {"min(" + joined(o) + ")"};
    case Opcode::imax_:
      return {"max(" + joined(o) + ")"};
    case Opcode::cast_:
      return {std::string(kind_name(op.result()->type.element())) + "(" + o[0].text + ")"};
    case Opcode::dim_:
      return {op.operands[0]->type.rank() == 1
                  ? "size(" + o[0].text + ")"
                  : "dim(" + o[0].text + ", " + std::to_string(op.integer) + ")"};
    case Opcode::get_:
      return element(o, o.size() - 1);
    case Opcode::take_:
      return element(o, 1);
    case Opcode::slice_:
      return {at_least(o[0], Binds::name) + "[" + o[1].text + " .. " + o[2].text + "]"};
    case Opcode::set_:
      return changed(o, o.size() - 2, "=");
    case Opcode::add_at_:
    case Opcode::add_take_:
      return changed(o, o.size() - 2, "+=");
    case Opcode::add_slice_:
      return changed(o, 1, "+=", " ..");
    case Opcode::lane_get_:
      return element(o, o.size() - 2, first_lanes(o.back()));
    case Opcode::lane_set_:
      return changed(o, o.size() - 3, "=", first_lanes(o.back()));
    case Opcode::lane_add_at_:
      return changed(o, o.size() - 3, "+=", first_lanes(o.back()));
    case Opcode::lane_splat_:
      return o[0];
    case Opcode::lane_index_:
      return {"lanes"};
    case Opcode::jump_:
      return {"jump " + o[0].text + "(" + joined(o.subspan(1)) + ")"};
    default: {
      std::string text(info(op.code).name);
      if (op.callee) {
        text = function_text(op.callee->name).substr(1);
      } else if (is_on_tape(op) || op.is(Opcode::tree_value_)) {
        text += "[" + std::to_string(op.integer) + "]";
      } else if (op.is(Opcode::ref_acc_)) {
        text += "[" + std::string(info(accumulated_by(op)).name) + "]";
      }
      text += "(" + joined(o);
      if (has_text(op.code) && op.text) text += ", " + quoted(op.text);
      return {text + ")"};
    }
  }
}

}  // namespace lantern::ir
