// Loops that are one launch (horizontal_fusion), in its kernel: a chain of branches on the number of the row.
// Loops that differ in the tensors and numbers from around alone are of one kind, and have one text, which
// takes these from tables (as PyTorch's multi_tensor_apply does):
//
//   int member = 0;
//   while (row >= ends.of[member]) ++member;
//   const int64_t member_row = row - starts.of[member];
//   const lt_f32_1d& w = w_of.of[member];
//   ...
#include <map>

#include "lantern/codegen/launch.hpp"
#include "lantern/codegen/member_sides.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::codegen {

/// A side of the chain: the rows before an end that no side before it has.
struct StatementPrinter::Member {
  /// A word of its text, and what another side may have in its place.
  struct Word {
    std::string_view text;
    std::size_t local = 0;                    ///< which name of its own that is; 0: none
    const Launch::Parameter* from = nullptr;  ///< the value from around that it names
    bool operator==(const Word& other) const {
      if (from && other.from) return from->type == other.from->type;
      return !from && !other.from && local == other.local && (local > 0 || text == other.text);
    }
  };
  const ir::Block* block = nullptr;
  Expression start, end;  ///< of its rows
  Statements statements;
  std::vector<Word> words;

  bool asks_for(const std::string& name) const {
    return std::ranges::find(words, name, &Word::text) != words.end();
  }
};

namespace {

/// Calls f(text) for the texts of statements in their order, and f of null between the sides of an `if`.
template <class List, class F>
void for_each_text(List& statements, const F& f) {
  for (auto& s : statements) {
    f(&s.text);
    for_each_text(s.body, f);
    if (!s.otherwise.empty()) f(nullptr);
    for_each_text(s.otherwise, f);
    f(&s.end);
  }
}

std::vector<std::string_view> all_words(const Statements& statements) {
  std::vector<std::string_view> all;
  for_each_text(statements, [&](const std::string* text) {
    const std::vector<std::string_view> words =
        text ? words_of(*text) : std::vector<std::string_view>{"else"};
    all.insert(all.end(), words.begin(), words.end());
  });
  return all;
}

/// Puts other words at some places.
void replace_words(Statements& statements, const std::map<std::size_t, std::string>& by_place) {
  std::size_t at = 0;
  for_each_text(statements, [&](std::string* text) {
    if (!text) return void(++at);
    std::string changed;
    std::size_t copied = 0;
    for (const std::string_view word : words_of(*text)) {
      if (const auto other = by_place.find(at++); other != by_place.end()) {
        const auto from = static_cast<std::size_t>(word.data() - text->data());
        changed += text->substr(copied, from - copied) + other->second;
        copied = from + word.size();
      }
    }
    *text = changed + text->substr(copied);
  });
}

}  // namespace

MemberSides member_sides(const Op& first, const Op& loop) {
  MemberSides sides;
  const auto count = passes::counted(&loop);
  if (!count || first.parent != loop.blocks[1]) return sides;
  const Value* const row = count->number;
  for (const Op* op = &first;;) {
    const Op* const test = op->operands[0]->def;
    if (!test || !test->is(Opcode::lt_) || test->operands[0] != row) break;
    const Value* const end = test->operands[1];
    if (!is_constant(end) && !ir::visible_from(end, loop.parent)) break;
    if (sides.blocks.empty()) sides.blocks.push_back(nullptr);
    sides.blocks.back() = op->blocks[0];
    sides.ends.push_back(end);
    const ir::Block* const rest = op->blocks[1];
    sides.blocks.push_back(rest);
    if (rest->ops.size() != 3 || !rest->ops[1]->is(Opcode::branch_) ||
        rest->ops[1]->operands[0] != rest->ops[0]->result())
      break;
    op = rest->ops[1];
  }
  sides.rows.resize(sides.blocks.size(), nullptr);
  for (std::size_t i = 1; i < sides.blocks.size(); ++i)
    for (const Op* op : sides.blocks[i]->ops) {  // imax(row - start, 0)
      const Op* const less = op->is(Opcode::imax_) ? op->operands[0]->def : nullptr;
      if (!less || !less->is(Opcode::sub_) || less->operands[0] != row ||
          less->operands[1] != sides.ends[i - 1])
        continue;
      if (is_constant(op->operands[1]) && op->operands[1]->def->integer == 0) sides.rows[i] = op->result();
    }
  return sides;
}

/// Prints a chain of branches whose sides are loops that were joined; false where the branch is another one.
bool StatementPrinter::members(const Op& first) {
  const Op& loop = *kernel_->nest.front();
  if (place_ != Place::block) return false;
  const auto in_place = [](const Value* v) { return v->type.is_tensor() && memory_root(v) != v; };
  if (!std::ranges::all_of(first.results, in_place)) return false;
  const MemberSides sides_in_ir = member_sides(first, loop);
  if (sides_in_ir.blocks.size() < 2) return false;
  Sink sink;
  for (const Value* v : first.results) {
    bind_same(v, memory_root(v));
    sink.types.push_back(v->type);
    sink.targets.emplace_back();
  }
  barrier();
  const Value* const number = passes::counted(&loop)->number;
  const std::string row = text(number), own = names_.unique("member_row");
  const Binding of_all = bindings_.at(number);
  std::vector<Member> sides(sides_in_ir.blocks.size());
  Statements around = std::exchange(statements_, {});
  for (std::size_t i = 0; i < sides.size(); ++i) {
    Member& side = sides[i];
    side.block = sides_in_ir.blocks[i];
    side.start = i == 0 ? integer_literal(0) : sides[i - 1].end;
    side.end = i < sides_in_ir.ends.size() ? value(sides_in_ir.ends[i]) : Expression(launch_->count);
    if (i == 0) bind(number, own);
    if (const Value* const member_row = sides_in_ir.rows[i]) {
      bind(member_row, own);
      const Op* const less = member_row->def->operands[0]->def;
      in_header_.insert(member_row->def);
      if (uses_.count(less->result()) == 1) in_header_.insert(less);
    }
    const bool checked = std::exchange(launch_->checked, launch_->checked || i < launch_->checked_members);
    block(side.block, sink);
    barrier();
    launch_->checked = checked;
    side.statements = std::exchange(statements_, {});
    bindings_[number] = of_all;
  }
  statements_ = std::move(around);
  std::unordered_map<std::string_view, const Launch::Parameter*> from_around;
  for (const Launch::Parameter& p : launch_->parameters)
    if (p.captured == p.name) from_around[p.name] = &p;
  for (Member& side : sides) {
    const std::vector<std::string_view> words = all_words(side.statements);
    const auto declared = declared_in(words);
    std::unordered_map<std::string_view, std::size_t> locals;
    for (std::size_t i = 0; i < words.size(); ++i) {
      Member::Word& word = side.words.emplace_back();
      word.text = words[i];
      if (is_member_name(words, i)) continue;
      if (declared.contains(words[i]))
        word.local = locals.try_emplace(words[i], locals.size() + 1).first->second;
      else if (const auto p = from_around.find(words[i]); p != from_around.end())
        word.from = p->second;
    }
  }
  std::vector<std::vector<std::size_t>> kinds;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const auto same =
        std::ranges::find_if(kinds, [&](const auto& kind) { return sides[kind[0]].words == sides[i].words; });
    if (same == kinds.end())
      kinds.push_back({i});
    else
      same->push_back(i);
  }
  Statements text =
      kinds.size() == sides.size() ? chain_of(sides, 0, row, own) : by_kind(sides, kinds, row, own);
  statements_.insert(statements_.end(), std::make_move_iterator(text.begin()),
                     std::make_move_iterator(text.end()));
  return true;
}

/// One side after the other: `if (row < end) { ... } else if ...`.
Statements StatementPrinter::chain_of(std::vector<Member>& sides, std::size_t from, const std::string& row,
                                      const std::string& own) {
  Member& side = sides[from];
  Statements begin;
  if (side.asks_for(own))
    begin.push_back("const int64_t " + own + " = " + (Expression(row) - side.start).text() + ";");
  begin.insert(begin.end(), std::make_move_iterator(side.statements.begin()),
               std::make_move_iterator(side.statements.end()));
  if (from + 1 == sides.size()) return begin;
  Statement test = annotated("if (" + binary(Expression(row), "<", side.end).text() + ") {");
  test.body = std::move(begin);
  test.end = "}";
  test.otherwise = chain_of(sides, from + 1, row, own);
  if (test.otherwise.size() == 1 && test.otherwise[0].text.starts_with("if (" + row + " < "))
    test.otherwise[0].joins = true;
  Statements all;
  all.push_back(std::move(test));
  return all;
}

/// One text for the sides of each kind.
Statements StatementPrinter::by_kind(std::vector<Member>& sides,
                                     const std::vector<std::vector<std::size_t>>& kinds,
                                     const std::string& row, const std::string& own) {
  std::unordered_set<std::string> taken;
  for (const Member& side : sides)
    for (const Member::Word& w : side.words) taken.emplace(w.text);
  const auto fresh = [&](const std::string& wanted) {
    std::string name = names_.unique(wanted);
    while (taken.contains(name)) name = names_.unique(wanted);
    return name;
  };
  /// A parameter of what the sides have: its element.
  const auto table = [&](const std::string& type, const std::string& wanted,
                         const std::vector<std::string>& values, const std::string& place) {
    const std::string name = fresh(wanted), structure = unit_.table_type(type, values.size());
    std::string arguments;
    for (const std::string& value : values) {
      const Launch::Parameter* const p = launch_->captured(value);
      arguments += (arguments.empty() ? "" : ", ") + (p ? p->argument : value);
    }
    launch_->tables.push_back(
        {"const __grid_constant__ " + structure, name, structure + "{{" + arguments + "}}", {}, {}});
    return name + ".of[" + place + "]";
  };
  const std::string member = fresh("member");
  std::vector<std::string> starts, ends, kind_of(sides.size()), place_of(sides.size());
  for (const Member& side : sides) {
    starts.push_back(side.start.text());
    ends.push_back(side.end.text());
  }
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    for (std::size_t place = 0; place < kinds[kind].size(); ++place) {
      kind_of[kinds[kind][place]] = std::to_string(kind);
      place_of[kinds[kind][place]] = std::to_string(place);
    }
  Statements all;
  all.push_back("int " + member + " = 0;");
  all.push_back("while (" + row + " >= " + table("int64_t", "ends", ends, member) + ") ++" + member + ";");
  if (std::ranges::any_of(sides, [&](const Member& side) { return side.asks_for(own); }))
    all.push_back("const int64_t " + own + " = " + row + " - " + table("int64_t", "starts", starts, member) +
                  ";");
  std::string place = member;
  if (kinds.size() > 1) {
    place = fresh("place");
    all.push_back("const int " + place + " = " + table("int", "places", place_of, member) + ";");
  }
  const auto text_of_kind = [&](const std::vector<std::size_t>& kind) {
    Member& side = sides[kind[0]];
    Statements begin;
    std::map<std::vector<std::string>, std::string> names;
    std::map<std::size_t, std::string> by_place;
    for (std::size_t at = 0; at < side.words.size(); ++at) {
      const Launch::Parameter* const p = side.words[at].from;
      if (!p) continue;
      std::vector<std::string> values;
      for (const std::size_t i : kind) values.emplace_back(sides[i].words[at].text);
      if (std::ranges::count(values, values[0]) == std::ssize(values)) continue;
      const auto [known, added] = names.try_emplace(values);
      if (added) {
        known->second = fresh(p->name);
        const char* const of_structure = p->type.starts_with("lt_") ? "& " : " ";
        begin.push_back("const " + p->type + of_structure + known->second + " = " +
                        table(p->type, p->name + "_of", values, place) + ";");
      }
      by_place[at] = known->second;
    }
    replace_words(side.statements, by_place);
    begin.insert(begin.end(), std::make_move_iterator(side.statements.begin()),
                 std::make_move_iterator(side.statements.end()));
    return begin;
  };
  if (kinds.size() == 1) {
    for (Statement& s : text_of_kind(kinds[0])) all.push_back(std::move(s));
    return all;
  }
  const std::string asked = table("int", "kinds", kind_of, member);
  Statements rest = text_of_kind(kinds.back());
  for (std::size_t kind = kinds.size() - 1; kind-- > 0;) {
    Statement test("if (" + asked + " == " + std::to_string(kind) + ") {");
    test.body = text_of_kind(kinds[kind]);
    test.end = "}";
    test.otherwise = std::move(rest);
    if (kind + 2 < kinds.size()) test.otherwise[0].joins = true;
    rest.clear();
    rest.push_back(std::move(test));
  }
  all.push_back(std::move(rest[0]));
  return all;
}

/// Tables become parameters, in place of the values from around that nothing else asks for.
void StatementPrinter::pass_tables(Launch& launch) {
  if (launch.tables.empty()) return;
  const std::vector<std::string_view> words = all_words(statements_);
  const std::unordered_set<std::string_view> used(words.begin(), words.end());
  std::erase_if(launch.parameters, [&](const Launch::Parameter& p) {
    return !p.captured.empty() && !used.contains(p.captured);
  });
  launch.parameters.insert(launch.parameters.end(), launch.tables.begin(), launch.tables.end());
}

}  // namespace lantern::codegen
