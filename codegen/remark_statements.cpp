// What a reader and a debugger see besides the code: sections, the user's lines, `#line`; and statements that
// report values: prints and checks.

#include "lantern/codegen/statement_printer.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/escape.hpp"
#include "lantern/ir/not_finite.hpp"

namespace lantern::codegen {

using ir::Part;

/// The part that a statement belongs to; plain for a construct that holds more than one, and where none is
/// known.
Part StatementPrinter::part_of(const Op& op) {
  if (op.blocks.empty()) return op.is(Opcode::yield_) ? Part::plain : op.loc.part;
  const auto [it, added] = parts_.try_emplace(&op, Part::plain);
  if (!added) return it->second;
  bool forward = false, backward = false;
  for (ir::Block* b : op.blocks)
    ir::walk(b, [&](const Op* o) {
      if (o->is(Opcode::yield_) || !o->blocks.empty() || !uses_.live(o)) return;
      forward |= o->loc.part == Part::forward;
      backward |= o->loc.part == Part::backward;
    });
  if (forward != backward) it->second = forward ? Part::forward : Part::backward;
  // Without operations of its own a construct is where it was written.
  if (!forward && !backward) it->second = op.loc.part;
  return it->second;
}

/// Says once where the forward and the backward part begin, when there is something to print of it. A
/// construct that holds both says so inside.
void StatementPrinter::enter_section(const Op& op) {
  const Part part = part_of(op);
  if (part != Part::plain) {
    section_ = part;
  } else if (!op.blocks.empty()) {
    section_ = shown_section_ = Part::plain;
  }
}

/// A statement with the user's line above what it became. For a debugger every statement says where it comes
/// from.
Statement StatementPrinter::annotated(const std::string& text) {
  Statement statement = text;
  if (!current_) return statement;
  ir::Location loc = current_->loc;
  if (!loc.known() && current_->is(Opcode::yield_) && !current_->operands.empty() &&
      current_->operands[0]->def)
    loc = current_->operands[0]->def->loc;
  if (std::exchange(shown_section_, section_) != section_ && section_ != Part::plain &&
      unit_.options().comments)
    statement.comments.push_back(section_ == Part::forward ? "forward" : "backward");
  // Where a derivative was asked for is not what its adjoints are about.
  const bool ends_derivative = current_->is(Opcode::yield_) && loc.part == Part::backward;
  const bool elsewhere =
      !ends_derivative && loc.known() && (loc.file != last_file_ || loc.line != last_line_);
  if (elsewhere && unit_.options().comments) {
    const std::string& source = unit_.source_line(loc.file, loc.line);
    if (!source.empty()) statement.comments.push_back(source);
  }
  if (elsewhere) {
    last_file_ = loc.file;
    last_line_ = loc.line;
  }
  statement.place = debug_place(loc);
  return statement;
}

/// Where a debugger says that it is. What has no place of its own belongs to what came before.
ir::Location StatementPrinter::debug_place(const ir::Location& loc) {
  if (!unit_.options().line_directives) return {};
  if (loc.known()) debug_place_ = loc;
  return debug_place_;
}

/// Where a function begins, for a debugger.
ir::Location StatementPrinter::head_place() const {
  if (function_.loc.known()) return function_.loc;
  for (const Op* op : function_.body->ops)
    if (op->loc.known()) return op->loc;
  return {};
}

/// A value that somebody looks for by its name. What only leaves a branch or an iteration has a name there.
bool StatementPrinter::is_named(const Value* v) const {
  if (!unit_.options().named_values || !v->name) return false;
  if (unit_.options().line_directives || uses_.count(v) != 1) return true;
  const Op* user = uses_.user(v);
  return !user->is(Opcode::yield_) || user->parent->parent == nullptr;
}

// ---- prints

void StatementPrinter::print(const Op& op) {
  const Value* v = op.operands[0];
  const ir::Type& type = v->type;
  const std::string label = ir::c_string(op.text ? op.text : "");
  if (type.is_scalar()) {
    std::string x = text(v);
    return line(unit_.prelude().kernel("print", type.kind()) + "(" + label + ", " + x + ");");
  }
  if (!type.is_tensor()) throw Error("print: expected a number, an array or a tensor, got " + type.str());
  const std::string f = unit_.prelude().kernel("print_all", type.element());
  std::string t = atom(v);
  line(f + "(" + label + ", " + t + ".data, " + t + ".dim, " + std::to_string(type.rank()) + ");");
}

// ---- checks

/// "lt_finite_f64(x)" for a number; of a tensor all elements.
std::string StatementPrinter::finite(const Value* v) {
  const ir::Kind kind = v->type.element();
  if (v->type.is_scalar()) return unit_.prelude().kernel("finite", kind) + "(" + text(v) + ")";
  return looking("finite_all", kind) + atom(v) + ".data, " + elements(v).text() + ")";
}

/// What looks at a tensor's elements where they are: "lt_finite_all_f64(".
std::string StatementPrinter::looking(const char* routine, ir::Kind kind) {
  const std::string f = unit_.prelude().kernel(on_gpu(routine), kind) + "(";
  return place_ == Place::host ? f + ws() + ", " : f;
}

/// Fails where an operation has made a NaN, or an infinity of finite operands. What these are is asked only where
/// there is an infinity.
void StatementPrinter::check_value(const Op& op) {
  const Value* made = op.operands[0];
  std::string good, found;
  const bool cell = made->type.is_ref();
  const ir::Kind kind = cell ? made->type.content().element() : made->type.element();
  if (cell) {
    found = place(made).text();
    good = unit_.prelude().kernel("finite", kind) + "(" + found + ")";
  } else {
    good = finite(made);
    found = made->type.is_scalar() ? text(made)
                                   : looking("not_finite_in", kind) + atom(made) + ".data, " + elements(made).text() + ")";
  }
  std::string operands;
  for (std::size_t i = 1; i < op.operands.size(); ++i)
    operands += (operands.empty() ? "" : " && ") + finite(op.operands[i]);
  const ir::NotFinite message = ir::not_finite(op.loc, static_cast<Opcode>(op.integer));
  line("if (!" + good + ") " + unit_.prelude().kernel("fail_value", kind) + "(" + ws() + ", " + found + ", " +
       (operands.empty() ? "1" : operands) + ", " + ir::c_string(message.before) + ", " +
       ir::c_string(message.after) + ");");
}

/// Whether sums that the printer adds, of what threads and blocks have, are looked at (Check::nan): iterations look at
/// their own by operations.
bool StatementPrinter::checks_sum(const Op& loop, std::size_t state) const {
  const ir::Type& type = loop.results[state]->type;
  return unit_.options().check_nan && type.is_differentiable() && ir::combine(loop, state) == ir::Combine::sum;
}

/// How the message of such a sum begins and ends, as arguments: where iterations add to it.
std::string StatementPrinter::sum_failure(const Op& loop, std::size_t state) const {
  const Value* last = loop.blocks[1]->ops.back()->operands[state];
  const ir::NotFinite message = ir::not_finite(last->def ? last->def->loc : loop.loc, Opcode::add_);
  return ir::c_string(message.before) + ", " + ir::c_string(message.after);
}

/// In a kernel, by all threads of a block. `finite`: whether what this thread has put in is.
void StatementPrinter::check_sum(const Op& loop, std::size_t state, const std::string& sum, const std::string& finite) {
  line(unit_.prelude().kernel("check_sum", loop.results[state]->type.element()) + "(" + ws() + ", " + sum + ", " + finite + ", " +
       sum_failure(loop, state) + ");");
}

/// Arguments of the entry are the only values that do not arise here.
void StatementPrinter::check_arguments() {
  for (std::size_t i = 0; i < parameter_names_.size(); ++i) {
    const Value* p = function_.body->params[i];
    if (!p->type.is_differentiable()) continue;
    const std::string before = "argument " + std::to_string(i + 1), name = parameter_names_[i];
    const std::string named = p->name ? before + " (" + p->name + ")" : before;
    const ir::Kind kind = p->type.element();
    if (p->type.is_scalar()) {
      line("if (!" + finite(p) + ") " + unit_.prelude().kernel("fail_value", kind) + "(" + ws() + ", " +
           name + ", 1, " + ir::c_string(named + ": expected finite values, got ") + ", \"\");");
    } else {
      line(unit_.prelude().kernel(on_gpu("check_argument"), kind) + "(" + ws() + ", " + name + ".data, " +
           elements(p).text() + ", " + ir::c_string(before) + ", " +
           ir::c_string(p->name ? std::string(" (") + p->name + ")" : "") + ");");
    }
  }
}

}  // namespace lantern::codegen
