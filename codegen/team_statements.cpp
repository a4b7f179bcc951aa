// Calls that threads share out (ir/team.hpp) as statements.
//
//   lt_share_part part_share[2];                      arguments and results of each call
//   part_share[0].a0 = ...; part_share[1] = part_share[0]; part_share[1].a0 = ...;
//   ws->fork(ws, 2, 2, part_run, part_share, sizeof part_share[0]);       in two threads, two calls
//
// part_run is below `part` and calls it for one element.
#include <algorithm>

#include "lantern/codegen/analysis.hpp"
#include "lantern/codegen/statement_printer.hpp"
#include "lantern/ir/shape.hpp"
#include "lantern/ir/team.hpp"

namespace lantern::codegen {

using ir::Op;
using ir::Value;

namespace {

/// The calls of a team, as they are.
std::vector<const Op*> calls_of(const Op& first) {
  const auto& ops = first.parent->ops;
  auto at = ops.begin();
  while (*at != &first) ++at;
  return {at, at + ir::team_size(first)};
}

bool among(const std::vector<const Op*>& calls, const Op* op) {
  for (const Op* call : calls)
    if (call == op) return true;
  return false;
}

/// What a call takes where it is behind the others: a tensor that goes from call to call is the one that
/// the first of them takes, in the same memory. Null where calls depend on each other in another way.
const Value* start_of(const std::vector<const Op*>& calls, const Value* v) {
  while (v->def && among(calls, v->def)) {
    const Op& call = *v->def;
    const Value* root = memory_root(call.callee->body->ops.back()->operands[v->index]);
    if (!v->type.is_tensor() || root->def || root->block != call.callee->body) return nullptr;
    v = call.operands[root->index];
  }
  return v;
}

}  // namespace

bool StatementPrinter::can_fork(const Op& first) const {
  if (!unit_.target().has_threads() || !ir::team_stands(first)) return false;
  const ir::Block* body = first.callee->body;
  if (unit_.escapes().from(first.callee)) return false;
  // What a thread leaves in its arena is forgotten: results lie in memory that the caller has given.
  for (const Value* v : body->ops.back()->operands) {
    if (!v->type.is_tensor()) continue;
    const Value* root = memory_root(v);
    if (root->def || root->block != body) return false;
  }
  const std::vector<const Op*> calls = calls_of(first);
  for (const Op* call : calls) {
    if (!uses_.live(call)) return false;
    for (const Value* v : call->operands)
      if (!start_of(calls, v)) return false;
  }
  return true;
}

void StatementPrinter::team(const Op& first) {
  const ir::Function* callee = first.callee;
  const FunctionInfo& to = unit_.info(callee);
  callees_.push_back(callee);
  unit_.prelude().need("workspace");
  const std::vector<const Op*> calls = calls_of(first);
  const std::string shares = names_.unique(to.name + "_share");
  line(unit_.share_type(callee) + " " + shares + "[" + std::to_string(calls.size()) + "];");
  for (std::size_t t = 0; t < calls.size(); ++t) {
    const std::string share = shares + "[" + std::to_string(t) + "]";
    if (t > 0) line(share + " = " + shares + "[0];");
    for (std::size_t i = 0; i < first.operands.size(); ++i) {
      const Value* v = start_of(calls, calls[t]->operands[i]);
      if (t > 0 && v == first.operands[i]) continue;
      check_fits(v, callee->body->params[i]->type, "argument", *calls[t]);
      line(share + ".a" + std::to_string(i) + " = " + argument(v) + ";");
    }
    for (std::size_t i = 0; i < calls[t]->results.size(); ++i)
      bind(calls[t]->results[i], share + ".r" + std::to_string(i));
    joined_.insert(calls[t]);
  }
  line(ws() + "->fork(ws, " + std::to_string(ir::team_threads(first)) + ", " + std::to_string(calls.size()) +
       ", " + to.runner + ", " + shares + ", (int64_t)sizeof " + shares + "[0]);");
}

/// A call that the routine of the product before it can make for parts of the result: what lies between them
/// only computes values that the call does not ask for, and the call works in the result's memory. Null where
/// there is none.
const Op* StatementPrinter::epilogue_of(const Op& product) const {
  const auto& ops = product.parent->ops;
  auto at = std::ranges::find(ops, &product) + 1;
  const auto between = [](const Op* op) {
    return op->is(ir::Opcode::forget_) ||
           (op->blocks.empty() && !op->in_place && ir::info(op->code).effect == ir::Effect::none);
  };
  while (at != ops.end() && between(*at)) ++at;
  if (at == ops.end() || !ir::is_epilogue(**at) || !uses_.live(*at) || shares_out() ||
      !unit_.info((*at)->callee).epilogue)
    return nullptr;
  const ir::Block* const body = (*at)->callee->body;
  constexpr std::size_t result = ir::epilogue_result;
  for (auto op = std::ranges::find(ops, &product) + 1; op != at; ++op) {
    for (std::size_t i = 0; i < (*op)->operands.size(); ++i) {
      const Value* const v = (*op)->operands[i];
      const bool read = !(*op)->is(ir::Opcode::forget_) && !ir::only_shape(**op, i) && v->type.is_tensor();
      if (read && storage_root(v) == storage_root(product.result())) return nullptr;
    }
    for (const Value* v : (*op)->results)
      if (!(*op)->is(ir::Opcode::constant_) && std::ranges::count((*at)->operands, v) > 0) return nullptr;
  }
  const bool works_there = storage_root(body->ops.back()->operands[0]) == body->params[result];
  return works_there && (*at)->operands[result] == product.result() && !unit_.escapes().from((*at)->callee)
             ? *at
             : nullptr;
}

/// The call as the routine takes it; 0 where there is none. The product's result is bound by now.
std::string StatementPrinter::epilogue(const Op& product) {
  const Op* const call = epilogue_of(product);
  unit_.prelude().need("epilogue");
  if (!call) return "0";
  const ir::Function* const callee = call->callee;
  const FunctionInfo& to = unit_.info(callee);
  callees_.push_back(callee);
  const std::string share = names_.unique(to.name + "_share"), name = names_.unique("epilogue");
  line(unit_.share_type(callee) + " " + share + ";");
  for (std::size_t i = ir::epilogue_result; i < call->operands.size(); ++i) {
    check_fits(call->operands[i], callee->body->params[i]->type, "argument", *call);
    line(share + ".a" + std::to_string(i) + " = " + argument(call->operands[i]) + ";");
  }
  line("const lt_epilogue " + name + " = {" + to.runner + ", &" + share + ", " + atom(product.result()) +
       ".data, " + text(call->operands[ir::epilogue_rows]) + ", " +
       text(call->operands[ir::epilogue_columns]) + "};");
  bind_same(call->result(), product.result());
  joined_.insert(call);
  return "&" + name;
}

std::string StatementPrinter::team_runner_signature() const {
  return unit_.target().internal() + (info_.epilogue ? "__attribute__((unused)) " : "") + "void " +
         info_.runner + "(lt_workspace* ws, void* data" +
         (info_.epilogue ? ", int64_t row, int64_t last_row, int64_t column, int64_t last_column)" : ")");
}

std::string StatementPrinter::team_runner() {
  std::string list = info_.workspace ? "ws" : "";
  const auto add = [&](const std::string& s) { list += (list.empty() ? "" : ", ") + s; };
  for (std::size_t i = 0; i < function_.body->params.size() && !info_.in_frame; ++i)
    add("share->a" + std::to_string(i));
  if (info_.in_frame) add("share");
  const std::string share = unit_.share_type(&function_);
  Statement runner = team_runner_signature() + " {";
  runner.end = "}";
  const auto line = [&](const std::string& text) { runner.body.push_back(text); };
  line(share + "* share = (" + share + "*)data;");
  if (info_.epilogue) {
    int i = 0;
    for (const char* bound : {"row", "last_row", "column", "last_column"})
      line("share->a" + std::to_string(i++) + " = " + bound + ";");
  }
  if (!info_.workspace) line("(void)ws;");
  if (info_.workspace && unit_.module().tapes() > 0) {
    unit_.prelude().need("require_tapes");
    line("lt_require_tapes(ws, " + std::to_string(unit_.module().tapes()) + ");");
  }
  const std::size_t results = function_.result_types.size();
  if (info_.by_pointer && !info_.in_frame)
    for (std::size_t i = 0; i < results; ++i) add("&share->r" + std::to_string(i));
  const std::string call = info_.name + "(" + list + ");";
  if (results == 1) {
    line("share->r0 = " + call);
  } else if (info_.by_pointer || results == 0) {
    line(call);
  } else {
    line("const " + unit_.results_type(&function_) + " results = " + call);
    for (std::size_t i = 0; i < results; ++i)
      line("share->r" + std::to_string(i) + " = results.r" + std::to_string(i) + ";");
  }
  return "\n" + text_of({runner});
}

}  // namespace lantern::codegen
