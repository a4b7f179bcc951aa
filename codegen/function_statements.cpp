// Functions: calls, signatures, definitions.
#include <algorithm>

#include "lantern/codegen/communication.hpp"
#include "lantern/codegen/statement_printer.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/escape.hpp"
#include "lantern/ir/external.hpp"
#include "lantern/ir/prototype.hpp"
#include "lantern/ir/recursion.hpp"
#include "lantern/ir/team.hpp"

namespace lantern::codegen {

// ---- calls

std::string StatementPrinter::call_arguments(const Op& op, const ir::Function* callee, std::size_t first) {
  std::string list;
  const auto add = [&](const std::string& s) { list += (list.empty() ? "" : ", ") + s; };
  if (unit_.info(callee).workspace) add(ws());
  for (std::size_t i = first; i < op.operands.size(); ++i) {
    check_fits(op.operands[i], callee->body->params[i]->type, "argument", op);
    add(argument(op.operands[i]));
  }
  return list;
}

void StatementPrinter::call(const Op& op) {
  if (in_team_.contains(&op)) return;
  if (ir::team_size(op) > 0 && can_fork(op)) return team(op);
  const ir::Function* callee = op.callee;
  const FunctionInfo& to = unit_.info(callee);
  callees_.push_back(callee);
  std::string list;
  if (to.in_frame) {
    const std::string frame = names_.unique(to.name + "_call");
    line(unit_.share_type(callee) + " " + frame + ";");
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      check_fits(op.operands[i], callee->body->params[i]->type, "argument", op);
      line(frame + ".a" + std::to_string(i) + " = " + argument(op.operands[i]) + ";");
    }
    list = (to.workspace ? ws() + ", &" : "&") + frame;
    if (op.results.size() > 1) {
      for (std::size_t i = 0; i < op.results.size(); ++i)
        bind(op.results[i], member(Expression(frame), "r" + std::to_string(i)));
      for (const Value* v : op.results) allocations_ += owns_memory(v->type);
      return line(to.name + "(" + list + ");");
    }
  } else {
    list = call_arguments(op, callee, 0);
  }
  for (const Value* v : op.results) allocations_ += owns_memory(v->type);
  std::size_t used = 0;
  for (const Value* v : op.results) used += uses_.count(v) > 0;
  if (op.results.size() <= 1) {
    const std::string text = to.name + "(" + list + ")";
    if (used == 0) return line((op.results.empty() ? "" : "(void)") + text + ";");
    const Op* user = uses_.user(op.result());
    // The call happens where its value is used, if nothing else happens in between.
    // Not into the yield of a construct: a result that nothing uses would take the call with it.
    const bool leaves_construct = user->is(Opcode::yield_) && user->parent->parent != nullptr;
    if (user->parent == op.parent && uses_.epoch(user) == uses_.epoch(&op) + 1 && !leaves_construct) {
      Expression e = Expression(text).reading_memory().calling();
      for (const Value* v : op.operands)
        if (const auto it = bindings_.find(v); it != bindings_.end()) e = e.varying_with(it->second.expression);
      if (foldable(op, e, uses_.epoch(&op) + 1)) {
        bindings_[op.result()] = {.expression = std::move(e), .pending = true};
        return;
      }
    }
    return define_statement(op.result(), Expression(text));
  }
  if (to.by_pointer) {
    for (const Value* v : op.results) {
      const std::string name = fresh_name(v);
      line(unit_.number_type(callee, v->type) + " " + name + ";");
      bind(v, name);
      list += (list.empty() ? "&" : ", &") + name;
    }
    return line(to.name + "(" + list + ");");
  }
  if (used == 0) return line("(void)" + to.name + "(" + list + ");");
  const std::string together = names_.unique(to.name + "_results");
  line("const " + unit_.results_type(callee) + " " + together + " = " + to.name + "(" + list + ");");
  for (std::size_t i = 0; i < op.results.size(); ++i)
    bind(op.results[i], member(Expression(together), "r" + std::to_string(i)));
}

/// Whether a tensor is made directly before a call, and for the call alone, as the pass inplace makes those that it changes.
bool StatementPrinter::made_for(const Op& call, const Value* v) const {
  if (!v->def || v->def->parent != call.parent || uses_.count(v) != 1) return false;
  const std::vector<Op*>& ops = call.parent->ops;
  for (auto at = std::ranges::find(ops, &call); at != ops.begin();) {
    const Op& before = **--at;
    if (!before.is(Opcode::copy_, Opcode::fill_)) return false;
    if (&before == v->def) return true;
  }
  return false;
}

/// The tensor that a call changes, bound as its result: the operand if it is made for the call, and a copy otherwise.
std::string StatementPrinter::changed_by(const Op& call, const Value* operand, const Value* result) {
  const std::string name = atom(operand);
  if (made_for(call, operand)) {
    bind_same(result, operand);
    return name;
  }
  set_dims(result, dims(operand));
  return new_tensor(result, "copy", name).text();
}

/// What the function changes it finds in a tensor of its own, which is the result.
void StatementPrinter::external(const Op& op) {
  if (place_ == Place::host && is_queued(op)) return queued_exchange(op);
  const ir::Prototype p = ir::parse_prototype(op.text);
  if (!unit_.target().calls_host())
    throw Error(where(op) + ": the external function '" + p.name +
                "' is code of the host, which a GPU does not run; compile for Target::cpp or Target::c");
  const auto c_type = [&](const ir::Prototype::Parameter& parameter) {
    const std::string type =
        parameter.kind == Kind::boolean ? unit_.target().public_boolean() : unit_.type(ir::Type(parameter.kind));
    return (parameter.pointer && !parameter.changed ? "const " : "") + type + (parameter.pointer ? "*" : "");
  };
  std::string types, list;
  std::size_t operand = 0, result = p.returned ? 1 : 0;
  for (const ir::Prototype::Parameter& parameter : p.parameters) {
    const std::string separator = types.empty() ? "" : ", ";
    list += separator;
    if (parameter.place) {
      types += separator + "const char*";
      list += ir::c_string(where(op));
      continue;
    }
    const std::string type = c_type(parameter);
    types += separator + type;
    const Value* v = op.operands[operand++];
    if (!parameter.pointer) {
      list += text(v);
      continue;
    }
    const std::string tensor = parameter.changed ? changed_by(op, v, op.results[result++]) : atom(v);
    list += (parameter.kind == Kind::boolean ? "(" + type + ")" : "") + tensor + ".data";
  }
  const std::string returned = p.returned ? c_type({*p.returned, false, false}) : "void";
  const std::string none = unit_.target().is_cpp() ? "" : "void";
  // The compiler may call it once for a loop.
  const std::string constant = ir::is_constant_call(op) ? "__attribute__((const)) " : "";
  unit_.prelude().add_type(
      "external " + p.name, std::string(unit_.target().is_cpp() ? "extern \"C\" " : "extern ") + constant + returned + " " +
                                p.name + "(" + (types.empty() ? none : types) + ");  /* the user's */\n");
  const std::string call = p.name + "(" + list + ")";
  if (!p.returned) return line(call + ";");
  if (uses_.count(op.result()) == 0) return line("(void)" + call + ";");
  define_statement(op.result(), Expression(call));
}

// ---- the function

/// Elsewhere the host has looked: sizes are small numbers, also of a tensor that has no elements.
void StatementPrinter::check_argument_sizes() {
  for (const Value* p : function_.body->params) {
    if (!p->type.is_tensor() || p->type.rank() < 2 || uses_.count(p) == 0) continue;
    if (std::ranges::find(p->type.dims(), ir::dynamic) == p->type.dims().end()) continue;
    unit_.prelude().need("count");
    line("lt_count(" + ws() + ", " + atom(p) + ".dim, " + std::to_string(p->type.rank()) + ");");
  }
}

void StatementPrinter::bind_parameters() {
  const auto& params = function_.body->params;
  int unnamed = 0;
  for (const Value* p : params) unnamed += !p->name && !p->type.is_ref() && !p->type.is_cont();
  for (const Value* p : params) {
    const bool plain = !p->name && !p->type.is_ref() && !p->type.is_cont() && !p->type.is_tree();
    const std::string name =
        plain && unnamed == 1 ? names_.unique("x") : fresh_name(p, plain ? "x" : nullptr);
    parameter_names_.push_back(name);
    bind(p, name);
    bindings_[p].pointer = p->type.is_ref() && !unit_.target().is_cpp();
  }
  if (info_.by_pointer)
    for (std::size_t i = 0; i < function_.result_types.size(); ++i)
      result_names_.push_back(names_.unique("result" + std::to_string(i)));
  if (info_.in_frame) frame_ = names_.unique("call");
}

std::string StatementPrinter::parameters() {
  std::string list;
  const auto add = [&](const std::string& s) { list += (list.empty() ? "" : ", ") + s; };
  if (info_.closure) {
    add("void* captured");
  } else if (info_.workspace) {
    add("lt_workspace* ws");
  }
  if (info_.in_frame) {
    add((info_.closure ? "void" : unit_.share_type(&function_)) + "* " + frame_);
    return list;
  }
  for (std::size_t i = info_.closure ? info_.captured : 0; i < parameter_names_.size(); ++i)
    add(unit_.number_type(&function_, function_.body->params[i]->type) + " " + parameter_names_[i]);
  if (info_.by_pointer)
    for (std::size_t i = 0; i < result_names_.size(); ++i)
      add(unit_.number_type(&function_, function_.result_types[i]) + "* " + result_names_[i]);
  return list.empty() && !unit_.target().is_cpp() ? "void" : list;
}

std::string StatementPrinter::signature() {
  const Target& target = unit_.target();
  std::string result = "void";
  if (function_.result_types.size() == 1) result = unit_.number_type(&function_, function_.result_types[0]);
  if (function_.result_types.size() > 1 && !info_.by_pointer) result = unit_.results_type(&function_);
  const bool out_of_line = !info_.exported && (info_.forked || stays_out_of_line(function_));
  return (info_.exported ? target.exported() : target.internal()) +
         (unit_.on_device(&function_) ? "__host__ __device__ " : "") +
         (out_of_line ? "__attribute__((noinline)) " : "") + result + " " + info_.name + "(" + parameters() + ")";
}

/// Parameters and the places of results, where they come in one structure.
Statements StatementPrinter::from_frame() {
  Statements list;
  std::string from = frame_;
  if (info_.closure) {
    const std::string type = unit_.call_type(*info_.continuation);
    from = names_.unique("arguments");
    list.push_back("const " + type + "* " + from + " = (const " + type + "*)" + frame_ + ";");
  }
  for (std::size_t i = info_.captured; i < parameter_names_.size(); ++i) {
    const Value* p = function_.body->params[i];
    if (uses_.count(p) > 0)
      list.push_back(unit_.declaration(p->type, parameter_names_[i]) + " = " + from + "->a" +
                     std::to_string(i - info_.captured) + ";");
  }
  for (std::size_t i = 0; i < result_names_.size(); ++i)
    list.push_back(unit_.type(function_.result_types[i]) + "* " + result_names_[i] + " = &" + from + "->r" +
                   std::to_string(i) + ";");
  list.push_back("(void)" + from + ";");
  return list;
}

/// What a closure finds in the structure that it comes with.
Statements StatementPrinter::from_captured() {
  Statements list;
  if (info_.workspace) list.push_back(Statement("lt_workspace* ws = env->ws;"));
  for (std::size_t i = 0; i < info_.captured; ++i) {
    const Value* p = function_.body->params[i];
    if (uses_.count(p) == 0) continue;
    const char* star = p->type.is_ref() && unit_.target().is_cpp() ? "*" : "";
    list.push_back(unit_.declaration(p->type, parameter_names_[i]) + " = " + star + "env->" + "c" +
                   std::to_string(i) + ";");
  }
  if (list.empty()) return {Statement("(void)captured;")};
  const std::string type = unit_.captured_type(&function_);
  list.insert(list.begin(), Statement("const " + type + "* env = (const " + type + "*)captured;"));
  return list;
}

std::string StatementPrinter::definition() {
  const bool owns = std::any_of(function_.result_types.begin(), function_.result_types.end(), owns_memory);
  if (info_.allocates && !owns && !unit_.escapes().from(&function_)) {
    memory("mark");
    mark_ = names_.unique("mark");
    ws();
  }
  const bool may_be_deep = info_.recursive && unit_.options().limited_stack && unit_.target().knows_stack_end();
  if (may_be_deep) {
    unit_.prelude().need("deep");
    ws();
  }
  Statement head = signature() + " {";
  head.place = debug_place(head_place());
  open(std::move(head));
  if (function_.module->entry == &function_) {
    if (unit_.options().standalone && unit_.options().bounds_checks) check_argument_sizes();
    if (place_ == Place::host) show_arguments();
    if (unit_.options().check_nan) check_arguments();
  }
  Sink sink;
  sink.returns = true;
  sink.types = function_.result_types;
  block(function_.body, sink);

  Statements prologue;
  const auto append = [&](Statements more) {
    prologue.insert(prologue.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
  };
  if (info_.closure)
    append(from_captured());
  else if (info_.workspace && !used_workspace_)
    prologue.push_back(Statement("(void)ws;"));
  if (info_.in_frame) append(from_frame());
  for (std::size_t i = info_.closure ? info_.captured : 0; i < parameter_names_.size() && !info_.in_frame;
       ++i)
    if (uses_.count(function_.body->params[i]) == 0) prologue.push_back("(void)" + parameter_names_[i] + ";");
  if (may_be_deep) prologue.push_back("if (lt_deep(ws)) ws->fail(ws, \"" +
                       ir::too_deep(function_.module->entry == &function_ ? unit_.public_name() : info_.name) + "\");");
  const std::string prefix = place_ == Place::host ? "lt_device_" : "lt_";
  if (!mark_.empty())
    prologue.push_back("const " + prefix + "position " + mark_ + " = " + prefix + "mark(ws);");
  statements_.insert(statements_.begin(), std::make_move_iterator(prologue.begin()),
                     std::make_move_iterator(prologue.end()));
  close();
  statements_.back().end_place = {};
  return text_of(statements_);
}

}  // namespace lantern::codegen
