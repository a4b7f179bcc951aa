// From places to names. An expression's value is what none of its other operations uses; the expression of a
// variable is what is between its name and the semicolon.
#include "lantern/compiler/staging/source_names.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/staging/source_text.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::core {

namespace {

using ir::Block;
using ir::Op;
using ir::Opcode;
using ir::Value;
using Assignment = SourceText::Assignment;
using Body = SourceText::Body;
using Parameters = std::vector<SourceText::Parameter>;

struct Place {
  std::shared_ptr<const SourceText> text;
  TextRange line;
  std::optional<std::size_t> at;  ///< where the column is that of the line as it was written
};

/// Whether a type as it is written may be that of a value. A loop may work on an element where an array is written.
bool fits(const std::string& written, const Value* v) {
  const ir::Type& type = v->type;
  const bool of_loop = v->block->parent && v->block->parent->is(Opcode::loop_);
  const auto has = [&](const char* word) { return written.find(word) != std::string::npos; };
  if (has("auto") || !has("Rep<")) return has("auto");
  if (has("Tree<") != type.is_tree()) return false;
  if (has("Tensor<") || has("Array<")) return type.is_tensor() || of_loop;
  if (type.is_tensor()) return false;
  if (type.is_tree()) return true;
  switch (type.kind()) {
    case ir::Kind::boolean:
      return has("bool");
    case ir::Kind::i32:
    case ir::Kind::i64:
      return has("int");
    case ir::Kind::f32:
      return has("float");
    default:
      return has("double") || !(has("bool") || has("int") || has("float"));
  }
}

class Naming {
 public:
  Naming(ir::Function& function, std::size_t own) : function_(function), own_(own) {}

  void run() {
    name_parameters();
    std::vector<Op*> all;
    ir::walk(function_.body, [&](Op* op) { all.push_back(op); });
    for (Op* op : all)
      if (const Assignment* a = assignment_of(op)) of_[op] = a;
    name_results(all);
    for (Op* op : all)
      if (op->is(Opcode::loop_)) name_loop(*op);
    for (auto op = all.rbegin(); op != all.rend(); ++op)
      if ((*op)->is(Opcode::branch_)) name_branch(**op);
  }

 private:
  void name(Value* v, const std::string& text) {
    if (!v->name && !text.empty()) v->name = function_.module->intern(text);
  }

  std::optional<Place> place(const ir::Location& loc) {
    if (!loc.known()) return {};
    auto [it, added] = texts_.try_emplace(loc.file);
    if (added) it->second = SourceText::of(loc.file);
    if (!it->second) return {};
    Place p{it->second, it->second->line(loc.line), {}};
    const std::size_t at = p.line.begin + loc.column - 1;
    if (loc.column > 0 && p.line.contains(at)) p.at = at;
    return p;
  }

  /// The variable that an operation helps to compute. There are fewer places than operations.
  const Assignment* assignment_of(const Op* op) {
    if (op->is(Opcode::yield_) || op->results.empty() || !op->loc.known()) return nullptr;
    const auto [it, added] =
        known_.try_emplace(std::tuple(op->loc.file, op->loc.line, op->loc.column), nullptr);
    if (added) it->second = find_assignment(op->loc);
    return it->second;
  }

  const Assignment* find_assignment(const ir::Location& loc) {
    const auto p = place(loc);
    if (!p) return nullptr;
    const Assignment* found = nullptr;
    int candidates = 0;
    for (const Assignment& a : p->text->assignments()) {
      if (p->at ? !a.range.contains(*p->at) : !a.range.meets(p->line)) continue;
      ++candidates;
      if (!found || a.range.begin >= found->range.begin) found = &a;
    }
    return p->at || candidates == 1 ? found : nullptr;
  }

  /// True inside a construct that belongs to the same variable as a whole.
  bool nested(const Op* op, const Assignment* a) const {
    const auto around = of_.find(op->parent->parent);
    return around != of_.end() && around->second == a;
  }

  void name_results(const std::vector<Op*>& all) {
    std::unordered_set<const Value*> used;  // by another operation for the same variable
    for (const Op* op : all) {
      const auto by = of_.find(op);
      if (by == of_.end()) continue;
      for (const Value* v : op->operands)
        if (v->def && v->block == op->parent)
          if (const auto from = of_.find(v->def); from != of_.end() && from->second == by->second)
            used.insert(v);
    }
    std::unordered_map<const Assignment*, std::size_t> given;
    for (Op* op : all) {
      const auto it = of_.find(op);
      if (it == of_.end() || op->is(Opcode::constant_) || nested(op, it->second)) continue;
      const std::vector<std::string>& names = it->second->names;
      std::size_t& next = given[it->second];
      for (Value* v : op->results) {
        if (used.contains(v)) continue;
        if (names.size() == 1 && op->results.size() > 1) break;
        const bool construct = !op->blocks.empty();
        if (construct) v->name = nullptr;  // what came in is not what comes out
        name(v, names[names.size() == 1 ? 0 : next]);
        next = (next + 1) % names.size();
      }
    }
  }

  /// The values of parameters as written, without a leading `auto self`; none where they do not fit the
  /// values.
  static Parameters fitting(Parameters all, const std::vector<Value*>& values, std::size_t from,
                            std::size_t n) {
    if (all.size() == n + 1 && all.front().type == "auto") all.erase(all.begin());
    if (all.size() != n) return {};
    for (std::size_t i = 0; i < n; ++i)
      if (!fits(all[i].type, values[from + i])) return {};
    return all;
  }

  /// The function whose result is returned: the innermost around the last operation that takes such
  /// arguments.
  void name_parameters() {
    const std::vector<Value*>& params = function_.body->params;
    if (own_ == 0) return;
    for (auto op = function_.body->ops.rbegin(); op != function_.body->ops.rend(); ++op) {
      if ((*op)->is(Opcode::yield_) || (*op)->is(Opcode::constant_)) continue;
      const auto p = place((*op)->loc);
      if (!p) continue;
      const std::vector<Body>& bodies = p->text->bodies();
      for (auto body = bodies.rbegin(); body != bodies.rend(); ++body) {
        if (p->at ? !body->range.contains(*p->at) : !body->range.meets(p->line)) continue;
        const Parameters names = fitting(p->text->values(body->parameters), params, 0, own_);
        for (std::size_t i = 0; i < names.size(); ++i) name(params[i], names[i].name);
        if (!names.empty()) return;
      }
    }
  }

  /// State is called what the body's lambda calls it, else what the body assigns.
  void name_loop(Op& op) {
    Block* const body = op.blocks[1];
    std::vector<std::string> names = names_in_call(op);
    names.resize(body->params.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) names[i] = assigned(op, body->ops.back()->operands[i], body, 0);
      if (names[i].empty()) names[i] = counter(op, i);
      if (names[i].empty() && op.operands[i]->name) names[i] = op.operands[i]->name;
      // Of two that end with the same value one is what the loop returns.
      const auto before = names.begin() + static_cast<std::ptrdiff_t>(i);
      if (!names[i].empty() && std::find(names.begin(), before, names[i]) != before) names[i] = "result";
      for (Block* b : op.blocks) {
        b->params[i]->name = nullptr;
        name(b->params[i], names[i]);
      }
      name(op.results[i], names[i]);
    }
  }

  /// What both sides give the same name.
  void name_branch(const Op& op) {
    for (Value* v : op.results) {
      const Value* sides[] = {op.blocks[0]->ops.back()->operands[v->index],
                              op.blocks[1]->ops.back()->operands[v->index]};
      if (sides[0]->name && sides[1]->name && std::string(sides[0]->name) == sides[1]->name)
        name(v, sides[0]->name);
    }
  }

  /// for (Rep<std::int64_t> i = ...
  std::string counter(const Op& loop, std::size_t state) {
    const Value* next = loop.blocks[1]->ops.back()->operands[state];
    const bool counts = next->def && (next->def->is(Opcode::add_) || next->def->is(Opcode::sub_)) &&
                        next->type.is_integer() && next->def->operands[0] == loop.blocks[1]->params[state];
    const auto p = counts ? place(loop.loc) : std::nullopt;
    if (!p) return {};
    const std::string_view line = p->text->text().substr(p->line.begin, p->line.end - p->line.begin);
    const std::size_t open = line.find("for ("), equals = line.find('=', open);
    if (open == std::string_view::npos || equals == std::string_view::npos) return {};
    std::size_t end = equals;
    while (end > open && line[end - 1] == ' ') --end;
    std::size_t begin = end;
    while (begin > open && ir::is_word(line[begin - 1])) --begin;
    return std::string(line.substr(begin, end - begin));
  }

  /// WHILE(state, condition, body) and FOR(lo, hi, state, body): the parameters of the last lambda.
  std::vector<std::string> names_in_call(const Op& op) {
    const auto p = place(op.loc);
    if (!p) return {};
    const std::string_view text = p->text->text();
    for (const std::string_view word : {std::string_view("WHILE"), std::string_view("FOR")}) {
      const std::size_t start = text.substr(0, p->line.end).rfind(word);
      if (start == std::string_view::npos) continue;
      const std::size_t open = text.find('(', start);
      if (open == std::string_view::npos) continue;
      const TextRange call{open, p->text->closed(open)};
      if (!call.meets(p->line)) continue;
      const Body* last = nullptr;
      for (const Body& b : p->text->bodies())
        if (call.contains(b.range.begin) && (!last || b.range.begin >= last->range.end)) last = &b;
      if (!last) continue;
      const Parameters written = p->text->values(last->parameters);
      const std::size_t n = written.size();
      const std::vector<Value*>& params = op.blocks[1]->params;
      if (n > params.size() || n == 0) continue;
      std::vector<std::string> names;
      for (const SourceText::Parameter& a : fitting(written, params, 0, n)) names.push_back(a.name);
      return names;
    }
    return {};
  }

  /// The variable that a loop's body leaves a value in.
  std::string assigned(const Op& loop, const Value* v, const Block* body, int depth) {
    if (!v->def || depth > 8) return {};
    if (v->def->is(Opcode::branch_)) {
      for (const Block* side : v->def->blocks)
        if (const std::string found = assigned(loop, side->ops.back()->operands[v->index], body, depth + 1);
            !found.empty())
          return found;
      return {};
    }
    if (!v->name || v->block == loop.parent) return {};
    // `x = next;` leaves no operation behind.
    if (const auto p = place(loop.loc))
      for (const Assignment& a : p->text->assignments())
        if (a.value == v->name && a.range.begin >= p->line.begin && a.names.size() == 1) return a.names[0];
    return v->name;
  }

  ir::Function& function_;
  std::size_t own_;
  std::unordered_map<const char*, std::shared_ptr<const SourceText>> texts_;
  std::map<std::tuple<const char*, std::uint32_t, std::uint32_t>, const Assignment*> known_;
  std::unordered_map<const Op*, const Assignment*> of_;
};

}  // namespace

void name_values(ir::Function& function, std::size_t own) { Naming(function, own).run(); }

}  // namespace lantern::core
