// Adjoint cells and continuations as statements.
//
// A cell is a local variable of its creator, passed on by address. Continuations are only ever called
// downward, before their creator returns, so what they capture may stay in the creator's frame: a closure is
// a pair of code and a pointer to a structure on the stack, or in nested C++ a lambda that captures by
// reference.
#include "lantern/codegen/statement_printer.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::codegen {

/// The cell as a variable: d, or *d where it is known by its address.
Expression StatementPrinter::place(const Value* c) {
  const Binding& b = bindings_.at(c);
  return b.pointer ? prefix("*", b.expression) : b.expression;
}

/// As an argument.
std::string StatementPrinter::address(const Value* c) {
  const Binding& b = bindings_.at(c);
  return (b.pointer || unit_.target().is_cpp() ? b.expression : prefix("&", b.expression)).text();
}

std::string StatementPrinter::argument(const Value* v) { return v->type.is_ref() ? address(v) : text(v); }

void StatementPrinter::cell(const Op& op) {
  if (op.is(Opcode::slot_)) {  // written before it is read, on every path
    const ir::Type& type = op.result()->type.content();
    const std::string name = fresh_name(op.result(), "slot");
    line(unit_.declaration(type, name) + " = " + zero(type) + ";");
    return bind(op.result(), name);
  }
  const Value* c = op.operands[0];
  switch (op.code) {
    case Opcode::ref_new_: {
      const Value *result = op.result(), *primal = op.operands[0];
      const ir::Type& type = result->type.content();
      const std::string minus_zero = op.integer == ir::as_minus_zero ? float_literal(-0.0, type.element()).text() : "";  // in direct/flow.hpp
      std::string initial = minus_zero.empty() ? zero(type) : minus_zero;
      if (type.is_tensor()) {
        initial = unit_.prelude().tensor_function("zeros", type.element(), type.rank()) + "(" + ws() +
                  (type.rank() ? ", " : "") + sizes(primal) + ")";
        ++allocations_;
        dims_[result] = dims(primal);
      }
      const std::string name = fresh_name(result);
      line(unit_.declaration(type, name) + " = " + initial + ";");
      if (type.is_tensor() && !minus_zero.empty())
        line(filling(type.element()) + name + ".data, " + elements(primal).text() + ", " + minus_zero + ");");
      return bind(result, name);
    }
    case Opcode::ref_get_: {
      const Binding& cell_binding = bindings_.at(c);
      const bool tensor = op.result()->type.is_tensor();
      if (!cell_binding.pointer && uses_.cell_is_final(&op)) {
        bind(op.result(), cell_binding.expression);
      } else if (tensor) {
        define_statement(op.result(), place(c));
      } else {
        define(op, place(c).reading_memory());
      }
      if (tensor) set_dims(op.result(), dims(c));
      return;
    }
    case Opcode::ref_set_:
      line(place(c).text() + " = " + text(op.operands[1]) + ";");
      if (c->type.content().is_tensor()) dims_.erase(c);
      return;
    case Opcode::ref_add_: {
      const Value* v = op.operands[1];
      if (!v->type.is_tensor()) return line(place(c).text() + " += " + text(v) + ";");
      check_dims(op, c, 0, v, 0, dims(v).size());
      return line(unit_.prelude().kernel("accumulate", v->type.element()) + "(" + member(place(c), "data").text() + ", " +
                  atom(v) + ".data, " + elements(v).text() + ");");
    }
    default: {
      const auto code = ir::accumulated_by(op);
      if (code == Opcode::add_at_)
        for (std::size_t i = 0; i < dims(c).size(); ++i) check_index(op, 1 + i, c, i);
      return accumulate(code, place(c), op);
    }
  }
}

/// A nested function of C++, in the shape of the paper's figures.
void StatementPrinter::fun(const Op& op) {
  if (!unit_.target().is_cpp())
    throw InternalError("a nested continuation in C: closure conversion comes first");
  const Value* k = op.result();
  const ir::Block* body = op.blocks[0];
  bool recursive = false;
  ir::walk(op.blocks[0], [&](const Op* inner) {
    for (const Value* v : inner->operands) recursive |= v == k;
  });
  const std::string name = fresh_name(k);
  bind(k, name);
  // A lambda cannot name itself: it calls itself through a reference that is set once it exists.
  const std::string code = recursive ? names_.unique(name + "_body") : name;
  const std::size_t names = names_.mark();
  std::string list;
  for (const Value* p : body->params) {
    list += list.empty() ? "" : ", ";
    if (uses_.count(p) == 0) {
      list += unit_.type(p->type);
      continue;
    }
    const std::string parameter = fresh_name(p, p->type.is_ref() || p->type.is_cont() ? nullptr : "x");
    bind(p, parameter);
    list += unit_.declaration(p->type, parameter);
  }
  if (recursive) line(unit_.declaration(k->type, name) + ";");
  open("auto " + code + " = [&](" + list + ") {");
  block(body, Sink{});
  names_.release(names);
  current_ = &op;
  close("};");
  if (recursive) line(name + " = " + code + ";");
}

void StatementPrinter::closure(const Op& op) {
  const FunctionInfo& callee = unit_.info(op.callee);
  callees_.push_back(op.callee);
  const bool captures = callee.workspace || !op.operands.empty();
  const std::string type = captures ? unit_.captured_type(op.callee) : "", name = fresh_name(op.result());
  const std::string env = captures ? names_.unique(name + "_captured") : "";
  std::string list = callee.workspace ? ws() : "";
  for (const Value* v : op.operands) {
    const bool cell = v->type.is_ref() && unit_.target().is_cpp();
    list += (list.empty() ? "" : ", ") + (cell ? "&" + text(v) : argument(v));
  }
  if (!list.empty()) line(type + " " + env + " = {" + list + "};");
  line(unit_.declaration(op.result()->type, name) + " = {" + callee.name + ", " +
       (list.empty() ? "0" : "&" + env) + "};");
  bind(op.result(), name);
}

void StatementPrinter::jump(const Op& op) {
  const std::string k = text(op.operands[0]);
  if (const ir::Type& type = op.operands[0]->type; unit_.in_frame(type)) {
    const std::string frame = names_.unique("call");
    line(unit_.call_type(type) + " " + frame + ";");
    for (std::size_t i = 1; i < op.operands.size(); ++i)
      line(frame + ".a" + std::to_string(i - 1) + " = " + argument(op.operands[i]) + ";");
    return line(k + ".code(" + k + ".captured, &" + frame + ");");
  }
  std::string list = unit_.target().is_cpp() ? "" : k + ".captured";
  for (std::size_t i = 1; i < op.operands.size(); ++i)
    list += (list.empty() ? "" : ", ") + argument(op.operands[i]);
  line(k + (unit_.target().is_cpp() ? "(" : ".code(") + list + ");");
}

}  // namespace lantern::codegen
