// Calls that threads share out (ir/team.hpp) as statements.
//
//   lt_share_part part_share[2];                      arguments and results of each call
//   part_share[0].a0 = ...; part_share[1] = part_share[0]; part_share[1].a0 = ...;
//   ws->fork(ws, 2, 2, part_run, part_share, sizeof part_share[0]);       in two threads, two calls
//
// part_run is below `part` and calls it for one element.
#include "lantern/codegen/analysis.hpp"
#include "lantern/codegen/statement_printer.hpp"
#include "lantern/ir/team.hpp"

namespace lantern::codegen {

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
      bind(calls[t]->results[i], member(Expression(share), "r" + std::to_string(i)));
    in_team_.insert(calls[t]);
  }
  line(ws() + "->fork(ws, " + std::to_string(ir::team_threads(first)) + ", " + std::to_string(calls.size()) +
       ", " + to.runner + ", " + shares + ", (int64_t)sizeof " + shares + "[0]);");
}

std::string StatementPrinter::team_runner_signature() const {
  return unit_.target().internal() + "void " + info_.runner + "(lt_workspace* ws, void* data)";
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
