// A statement that is not staged keeps its text; a staged one becomes a call whose lambdas hold its parts.
//
// A return, break or continue under a staged condition leaves a lambda, and so the statements after it become
// part of the branch that does not leave: `if (c) return a; rest` is a branch between `return a;` and `rest`.
// Where both branches may go on, the statement's outcome (left early or not) is a value, and `rest` is in
// a branch on that.
#include "lantern/compiler/frontend/clang/lower.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>

#include "lantern/compiler/frontend/clang/cases.hpp"
#include "lantern/compiler/frontend/clang/complaints.hpp"
#include "lantern/compiler/frontend/clang/lines.hpp"
#include "lantern/compiler/frontend/clang/recursion.hpp"
#include "lantern/compiler/frontend/clang/region.hpp"
#include "lantern/compiler/frontend/clang/ways.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::frontend {

using ir::is_word;

namespace {

const std::string native = "::lantern::core::native::";

/// Where a statement is.
struct Place {
  const Region* region = nullptr;
  bool own_break = false, own_continue = false;  ///< inside a loop or switch of C++ that stays
  bool staged = false;                           ///< under a staged condition
  /// Where the innermost part begins that runs under a staged condition and does not end the region; a plain
  /// variable that is declared before may not change. 0: there is none.
  std::uint32_t staged_at = 0;
  bool in_loop = false;  ///< that part is a loop
  bool verbatim = true;                          ///< `return` is the function's own
};

class Lowering : Complaints {
 public:
  explicit Lowering(Unit& unit) : Complaints(unit), text_(unit.text) {}

  /// The whole file.
  std::string file() {
    for (const auto& f : unit_.functions)
      if (!f->is_lambda) functions_.push_back(f.get());
    std::sort(functions_.begin(), functions_.end(), [](const Function* a, const Function* b) {
      const Span &x = a->body->range, &y = b->body->range;
      return x.begin != y.begin ? x.begin < y.begin : x.end > y.end;
    });
    return gap(0, static_cast<std::uint32_t>(text_.size()));
  }

 private:
  // Functions

  std::string function(const Function& f) {
    if (f.body->kind != NodeKind::block) return text(f.body, {});  // an initialiser
    const std::string around =
        std::exchange(flag_, f.plain_where.empty() ? staged_flag : native + "FlagFor<" + f.plain_where + ">");
    std::string out = body(f);
    flag_ = around;
    return out;
  }
  std::string body(const Function& f) {
    refuse_braces(f.body);
    refuse_function(f, (leaves(f.body) & returns) != 0);
    Region region;
    region.type = f.result;
    Place place;
    place.region = &region;
    const bool staged_call = f.recursive && !f.is_lambda;
    place.staged = staged_call;
    std::string body =
        "{" + list(statements(f.body), place, f.body->range.begin + 1) + gap_to_end(f.body) + "}";
    if (staged_call) body = recursive(f, body);
    // A constructor or destructor cannot return what a branch gives, though it be nothing.
    if (f.is_structor && (leaves(f.body) & returns) != 0) body = "{ [&]() -> void " + body + "(); }";
    return body;
  }

  std::string recursive(const Function& f, const std::string& body) {
    std::string parameters, arguments;
    for (const Parameter& p : f.parameters) {
      if (p.changes_argument)
        complain(p.text.begin, p.text.size(),
                 "'" + f.name + "' calls itself under a staged condition and may change its parameter '" +
                     p.name + "', a reference; return the new value instead");
      parameters += (parameters.empty() ? "" : ", ") + text_.substr(p.text.begin, p.text.size());
      if (!p.name.empty()) arguments += ", " + p.name;
    }
    if (f.is_member && f.object_staged)
      complain(f.body->range.begin, 1,
               "the member function '" + f.name +
                   "' calls itself under a staged condition and its object holds staged values; make it a "
                   "function with those as parameters");
    if (f.returns_void)
      complain(f.body->range.begin, 1,
               "'" + f.name +
                   "' calls itself under a staged condition and returns nothing; return what it computes");
    if (f.result.empty())
      complain(f.body->range.begin, 1,
               "'" + f.name + "' calls itself under a staged condition: write its return type");
    return "{ return " + native + "recursive<" + f.result + ">(" + (f.is_member ? "this" : "nullptr") +
           ", \"" + f.name + "\", [" + (f.is_member ? "this" : "") + "](" + parameters + ") -> " + f.result +
           " " + body + arguments + "); }";
  }

  // Statements

  /// Text that stays, but for the functions in it: those of the file, members of local classes.
  std::string gap(std::uint32_t from, std::uint32_t to) {
    std::string out;
    auto f = std::lower_bound(functions_.begin(), functions_.end(), from,
                              [](const Function* a, std::uint32_t at) { return a->body->range.begin < at; });
    for (; f != functions_.end() && (*f)->body->range.begin < to; ++f) {
      const Span body = (*f)->body->range;
      if (body.begin < from || body.end > to || !open_.insert(*f).second) continue;
      out += head(**f, from) + function(**f) + mark_line(body.end);
      open_.erase(*f);
      from = body.end;
    }
    return out + copied(from, to);
  }
  /// What comes before a body. A function that stages is compiled for the program only where that calls it.
  std::string head(const Function& f, std::uint32_t from) const {
    const std::uint32_t body = f.body->range.begin;
    if (!unit_.whole_program || !f.others_call || *f.others_call < from) return copied(from, body);
    return copied(from, *f.others_call) + "inline " + copied(*f.others_call, body);
  }
  std::string copied(std::uint32_t from, std::uint32_t to) const {
    return from < to ? mark_copy(from) + text_.substr(from, to - from) : "";
  }
  /// Whether two statements stand beside each other: nothing but space, comments and directives (with what
  /// those leave out) between them.
  bool only_comments(std::uint32_t from, std::uint32_t to) const {
    for (std::uint32_t at = from; at < to; ++at)
      if (text_[at] == '#' && line_at(text_, at).find_first_not_of(" \t") == line_at(text_, at).find('#'))
        return true;
    while (from < to) {
      if (text_.compare(from, 2, "//") == 0)
        from = static_cast<std::uint32_t>(std::min<std::size_t>(text_.find('\n', from), to));
      else if (text_.compare(from, 2, "/*") == 0)
        from = static_cast<std::uint32_t>(std::min<std::size_t>(text_.find("*/", from), to)) + 2;
      else if (!ir::is_space(text_[from++]))
        return false;
    }
    return true;
  }
  /// What is between the last statement of a block and its brace.
  std::string gap_to_end(const Node* block) {
    const std::uint32_t from =
        block->children.empty() ? block->range.begin + 1 : block->children.back()->range.end;
    return gap(from, block->range.end - 1);
  }

  /// Statements in a row, of which the last ends the region's lambda where some of them leave it. `from`:
  /// where the text before the first begins.
  std::string list(const Statements& all, const Place& place, std::uint32_t from, bool end = false) {
    std::string out;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Node* s = all[i];
      if (from <= s->range.begin && only_comments(from, s->range.begin)) out += gap(from, s->range.begin);
      from = s->range.end;
      out += mark_line(s->range.begin);
      if (leaves(s) == 0) {
        out += statement(s, place);
        continue;
      }
      return out + leaving(s, {all.begin() + static_cast<long>(i) + 1, all.end()}, place);
    }
    if (end) out += ending(place, all.empty() || falls(all.back()));
    return out;
  }
  static std::string ending(const Place& place, bool falls_off) {
    const auto exit = place.region->at_end();
    return exit && falls_off && !place.verbatim ? " " + statement_of(*exit) : "";
  }

  /// A statement with a way out of the region's lambda, and what follows it.
  std::string leaving(const Node* s, Statements rest, const Place& place) {
    if (place.own_break || place.own_continue) throw_unexpected(s);
    switch (s->kind) {
      case NodeKind::block:
        return leaving_block(s, rest, place);
      case NodeKind::branch: {
        if (s->is_constexpr) return leaving_constexpr(s, rest, place);
        return leaving_branch([&](const Place& at) { return condition_text(s, at); }, s, statements(s->body),
                              statements(s->otherwise), rest, place);
      }
      case NodeKind::selection:
        return leaving_selection(s, rest, place);
      case NodeKind::obstacle:
        refuse_obstacle(s);
        return "";
      default:
        return leaving_loop(s, rest, place);
    }
  }
  [[noreturn]] static void throw_unexpected(const Node*);

  /// `if constexpr` stays: what follows it is written into both branches, of which one is compiled.
  std::string leaving_constexpr(const Node* s, const Statements& rest, const Place& place) {
    const auto side = [&](const Node* part) {
      Statements all = statements(part);
      if (all_fall(all)) all.insert(all.end(), rest.begin(), rest.end());
      return "{ " + list(all, place, all.empty() ? 0 : all.front()->range.begin, true) + " }";
    };
    const std::string head = gap(s->range.begin, s->body->range.begin);
    return head + side(s->body) + " else " + side(s->otherwise);
  }

  /// `{ ...; if (c) return a; ... } rest`: a branch that is always taken, so that names do not meet.
  std::string leaving_block(const Node* s, const Statements& rest, const Place& place) {
    return leaving_branch([](const Place&) { return "true"; }, s, statements(s), {}, rest, place, true);
  }

  using Text = std::function<std::string(const Place&)>;
  std::string leaving_branch(const Text& condition, const Node* s, const Statements& then,
                             const Statements& otherwise, const Statements& rest, const Place& place,
                             bool always = false) {
    const bool then_falls = all_fall(then), else_falls = !always && all_fall(otherwise);
    if (rest.empty() || (!(then_falls && else_falls) && s->init == nullptr &&
                         !names_meet(then_falls ? then : otherwise, rest))) {
      const std::string call =
             "return " + open_branch(place.region->type) + condition(place) + ", " +
             lambda_with_rest(then, then_falls ? rest : Statements(), s, place) + ", " +
             (always ? unreachable(place)
                     : lambda_with_rest(otherwise, else_falls ? rest : Statements(), s, place, true)) +
             ");";
      return s->init == nullptr ? call : "{ " + initialisation(s, place) + " " + call + " }";
    }
    // The names of an init-statement end before the rest begins.
    const std::string before = s->init == nullptr ? "" : initialisation(s, place);
    return with_outcome(s, before, rest, place, false, [&](const Place& inner) {
      return open_branch(inner.region->type) + condition(inner) + ", " + lambda_with_rest(then, {}, s, inner) +
             ", " + (always ? unreachable(inner) : lambda_with_rest(otherwise, {}, s, inner)) + ")";
    });
  }

  /// `auto outcome = STATEMENT; return branch(outcome.exited, its value, rest)`. `before`: declarations for the
  /// statement alone.
  std::string with_outcome(const Node* s, const std::string& before, const Statements& rest, const Place& place, bool breaks_fall,
                           const std::function<std::string(const Place&)>& make) {
    if (place.region->type.empty())
      complain(
          s->key, 1,
          "the type of this early return must be known: write the return type of the lambda or function");
    Region region;
    region.kind = Region::Kind::outcome;
    region.outer = place.region;
    region.type = outcome(place.region->type);
    region.result = place.region->result;
    region.result_is_value = place.region->result_is_value;
    region.breaks_fall = breaks_fall;
    Place inner = place;
    inner.region = &region;
    inner.verbatim = false;
    const std::string name = "lantern_left" + std::to_string(++names_);
    std::string out = "const auto " + name + " = ";
    if (!before.empty())
      out += "[&]() -> " + region.type + " { " + before + " return " + make(inner) + "; }(); ";
    else
      out += make(inner) + "; ";
    Place under = place;
    under.staged |= s->staged;
    under.verbatim = false;
    const std::string value = place.region->is_void() ? "return;" : "return " + name + ".value;";
    return out + "return " + open_branch(place.region->type) + name + ".exited, [&]" +
           arrow(place.region->type) + " { " + value + " }, " + lambda_with_rest({}, rest, s, under, true) + ");";
  }

  /// Whether statements that would be moved behind others into one scope use a name that those declare.
  bool names_meet(const Statements& own, const Statements& rest) const {
    if (!any_leaves(own)) return false;
    std::set<std::string> declared;
    for (const Node* n : own)
      declared.insert(n->declares.begin(), n->declares.end());
    for (const Node* n : rest)
      for (std::uint32_t at = n->range.begin; at < n->range.end;) {
        std::uint32_t end = at;
        while (end < n->range.end && is_word(text_[end])) ++end;
        if (end > at && declared.count(text_.substr(at, end - at)) != 0) return true;
        at = std::max(end, at + 1);
      }
    return false;
  }
  static std::string open_branch(const std::string& type) {
    return native + "branch" + (type.empty() ? "" : "<" + type + ">") + "(";
  }
  static std::string arrow(const std::string& type) { return type.empty() ? "" : "() -> " + type; }
  static std::string unreachable(const Place& place) {
    const std::string& type = place.region->type;
    return "[&]" + arrow(type) + (type == "void" ? " {}" : " { return " + type + "{}; }");
  }

  /// A lambda of the region's type for the statements of a branch and, after them, those that follow it.
  /// `last`: it is staged after the other branch, which therefore does not see what it does to plain values.
  std::string lambda_with_rest(const Statements& own, const Statements& rest, const Node* s,
                               const Place& place, bool last = false) {
    Place inner = place;
    inner.staged |= s->staged;
    inner.own_break = inner.own_continue = false;
    inner.verbatim = place.region->kind == Region::Kind::function;
    Place after = inner;
    if (s->staged) inner.staged_at = s->range.begin, inner.in_loop = false;
    // Nothing follows what ends the function.
    if (s->staged && !(last && place.region->kind == Region::Kind::function)) after.staged_at = s->range.begin, after.in_loop = false;
    std::string out = "[&]" + arrow(place.region->type) + " {";
    const std::uint32_t from = own.empty() ? 0 : own.front()->range.begin;
    if (rest.empty()) {
      out += " " + list(own, inner, from, true);
    } else if (own.empty()) {
      out += " " + list(rest, after, rest.front()->range.begin, true);
    } else {
      // Names declared in the branch end before the rest begins, unless the rest is moved into it.
      const bool moves = any_leaves(own);
      Statements all = own;
      all.insert(all.end(), rest.begin(), rest.end());
      if (moves)
        out += " " + list(all, inner, from, true);
      else
        out += " { " + list(own, inner, from) + " } " + list(rest, after, rest.front()->range.begin, true);
    }
    // An empty branch of a lambda with a value.
    if (own.empty() && rest.empty())
      return "[&]" + arrow(place.region->type) + " {" + ending(in_lambda(inner), true) + " }";
    return out + " }";
  }
  static Place in_lambda(Place place) {
    place.verbatim = false;
    return place;
  }
  // Loops

  std::string leaving_loop(const Node* s, const Statements& rest, const Place& place) {
    const Region& around = *place.region;
    const bool never_falls = !falls(s);
    const std::string function_type = around.function().type;
    std::string out;
    Region given = around;  // with a variable for the result
    if (given.result.empty() && function_type.empty())
      complain(
          s->key, 1,
          "the type of this early return must be known: write the return type of the lambda or function");
    const bool declares = given.result.empty() && !(never_falls && function_type == "void");
    if (declares) {
      given.result = "lantern_result" + std::to_string(++names_);
      given.result_is_value = never_falls && !loop_returns(s->body);
      out += (given.result_is_value ? function_type : outcome(function_type)) + " " +
             given.result + "{}; ";
    }
    Place inner = place;
    inner.region = &given;
    out += loop(s, inner);
    const Exit leave =
        declares || given.result.empty()
            ? around.on_return(given.result.empty()
                                   ? ""
                                   : given.result +
                                         (given.result_is_value || function_type == "void" ? "" : ".value"))
            : after_result(around);
    Exit exit = leave;
    if (function_type == "void" && around.kind == Region::Kind::function) exit = {};
    if (never_falls) return out + " " + statement_of(exit);
    Place under = place;
    under.staged |= true;
    return out + " return " + open_branch(around.type) + given.result + ".exited, [&]" + arrow(around.type) +
           " { " + statement_of(exit) + " }, " + lambda_with_rest({}, rest, s, under, true) + ");";
  }
  /// The function's result is set already: only leave.
  static Exit after_result(const Region& around) {
    Exit exit = around.on_return("");
    exit.first.clear();
    return exit;
  }
  /// A loop as a call; the region around it has a variable for the result where the body returns.
  std::string loop(const Node* s, const Place& place) {
    const unsigned ways = exits(s->body);
    Region region;
    region.kind = Region::Kind::loop;
    region.outer = place.region;
    region.type = (ways & (breaks | returns)) != 0 ? flag_ : "void";
    region.result = place.region->result;
    region.result_is_value = place.region->result_is_value;

    // After a break that is decided by the program, the loop's further iterations run under its answer.
    const bool staged = s->staged || s->always || !region.is_void();
    Place inner = place;
    inner.region = &region;
    inner.own_break = inner.own_continue = false;
    inner.verbatim = false;
    inner.staged |= staged;
    // What the loop itself declares is plain only where the loop is unrolled.
    const bool carried = s->staged || s->always;
    const std::uint32_t from =
        carried && s->init != nullptr && s->kind == NodeKind::for_loop ? s->init->range.end : s->range.begin;
    if (staged) inner.staged_at = from, inner.in_loop = true;
    std::string body =
        "[&]" + (region.is_void() ? (s->kind == NodeKind::range_loop ? "()" : "") : arrow(region.type)) + " " +
        braced(s->body, inner);

    if (s->kind == NodeKind::range_loop) return range_loop(s, body, place);
    Place condition_place = place;
    condition_place.staged |= s->staged;
    if (s->staged) condition_place.staged_at = from, condition_place.in_loop = true;
    const std::string condition = s->always ? "[&] { return " + native + "Always<" + types_of(s->names) + ">(); }"
                                            : "[&] { return " + text(s->condition, condition_place) + "; }";
    if (s->kind == NodeKind::do_loop)
      return native + "loop_at_least_once(" + body + ", " + condition + ");";

    std::string step = native + "no_step";
    if (s->step != nullptr) {
      // What is seen after the loop must not change after a break.
      const bool guarded = !region.is_void() && !s->own_step;
      Place step_place = condition_place;
      step_place.staged |= guarded;
      step_place.staged |= carried;
      if (carried || guarded) step_place.staged_at = from, step_place.in_loop = true;
      step = "[&] { " + text(s->step, step_place) + "; }";
      if (guarded) step = native + "Guarded{" + step + "}";
    }
    std::string declared;
    if (s->init != nullptr && s->kind == NodeKind::while_loop)  // declared anew in every iteration
      complain(s->init->range.begin, 1,
               "a variable is declared in the condition of a staged loop; declare it before the loop");
    if (s->init != nullptr) declared = statement(s->init, place) + " ";
    const std::string call = native + "loop(" + condition + ", " + step + ", " + body + ");";
    return declared.empty() ? call : "{ " + declared + call + " }";
  }

  static std::string types_of(const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "" : ", ") + ("decltype(" + name + ")");
    return out;
  }

  /// An array is gone through by the program, another container while the program is staged; which it is may
  /// depend on the instantiation.
  std::string range_loop(const Node* s, std::string body, const Place& place) {
    const std::string n = std::to_string(++names_), element = "lantern_element" + n, range = "lantern_range" + n;
    const std::size_t brace = body.find('{');
    body.insert(brace + 1, " " + text_.substr(s->init->range.begin, s->init->range.size()) + " = static_cast<decltype(" +
                               element + ")&&>(" + element + ");");
    body.replace(0, std::string("[&]()").size(), "[&](auto&& " + element + ")");
    return "{ " + (s->step != nullptr ? statement(s->step, place) + " " : "") + "auto&& " + range + " = " +
           text(s->condition, place) + "; " + native + "for_each(" + range + ", " + body + "); }";
  }

  // switch

  struct Cases {
    std::string declaration, value;
    std::vector<std::pair<std::string, Statements>> conditions;
    Statements otherwise;
    bool inner_break = false;
  };
  Cases cases(const Node* s, const Place& place) {
    Cases found;
    if (!s->why.empty())
      complain(s->key, 6, "expected a switch of plain cases over a staged value, got " + s->why);
    found.value = "lantern_value" + std::to_string(++names_);
    found.declaration = (s->init != nullptr ? statement(s->init, place) + " " : "") + "const auto " +
                        found.value + " = " + one_expression(text(s->condition, place)) + ";";
    for (std::size_t g = 0; g < s->groups.size(); ++g) {
      const Statements all = case_statements(s, g);
      found.inner_break |=
          std::any_of(all.begin(), all.end(), [](const Node* n) { return (exits(n) & breaks) != 0; });
      if (s->groups[g].is_default) {
        found.otherwise = all;
        continue;
      }
      std::string condition;
      for (const Span& label : s->groups[g].labels) {
        const std::string one = found.value + " == " + native + "label(" + found.value + ", " +
                                text_.substr(label.begin, label.size()) + ")";
        condition =
            condition.empty() ? one : native + "either(" + condition + ", [&] { return " + one + "; })";
      }
      found.conditions.emplace_back(condition, all);
    }
    return found;
  }
  /// if, else if, ..., default: each group a lambda of the region.
  std::string chain(const Cases& c, std::size_t i, const Node* s, const Statements& rest,
                    const Place& place) {
    if (i == c.conditions.size()) return "";
    const Statements& own = c.conditions[i].second;
    const auto with = [&](const Statements& list) { return all_fall(list) ? rest : Statements(); };
    const std::string& type = place.region->type;
    const bool last = i + 1 == c.conditions.size();
    std::string other = last ? lambda_with_rest(c.otherwise, with(c.otherwise), s, place)
                             : "[&]" + arrow(type) + " { " + (type == "void" ? "" : "return ") +
                                   chain(c, i + 1, s, rest, place) + "; }";
    return open_branch(type) + c.conditions[i].first + ", " + lambda_with_rest(own, with(own), s, place) +
           ", " + other + ")";
  }

  std::string leaving_selection(const Node* s, const Statements& rest, const Place& place) {
    const Cases c = cases(s, place);
    std::size_t falling = all_fall(c.otherwise) ? 1 : 0;
    for (const auto& [condition, own] : c.conditions) falling += all_fall(own) ? 1 : 0;
    if (c.conditions.empty()) return list(c.otherwise, place, 0) + list(rest, place, 0, true);
    if (!c.inner_break && (rest.empty() || (falling <= 1 && s->init == nullptr)))
      return "{ " + c.declaration + " return " + chain(c, 0, s, rest, place) + "; }";
    return with_outcome(s, c.declaration, rest, place, true, [&](const Place& inner) { return chain(c, 0, s, {}, inner); });
  }

  std::string selection(const Node* s, const Place& place) {
    const Cases c = cases(s, place);
    Region region;
    region.kind = Region::Kind::group;
    region.outer = place.region;
    region.type = "void";
    region.result = place.region->result;
    Place inner = place;
    inner.region = &region;
    inner.verbatim = false;
    if (c.conditions.empty()) return "{ " + c.declaration + " " + list(c.otherwise, inner, 0) + " }";
    return "{ " + c.declaration + " " + chain(c, 0, s, {}, inner) + "; }";
  }

  // Statements without a way out

  std::string statement(const Node* s, const Place& place) {
    switch (s->kind) {
      case NodeKind::block:
        return "{" + list(statements(s), place, s->range.begin + 1) + gap_to_end(s) + "}";
      case NodeKind::branch:
        if (converted(s)) return branch(s, place);
        return pieces(s, place);
      case NodeKind::while_loop:
      case NodeKind::do_loop:
      case NodeKind::for_loop:
      case NodeKind::range_loop: {
        if (converted(s)) {
          refuse_macro(s);
          return loop(s, place);
        }
        Place inner = place;
        inner.own_break = inner.own_continue = true;
        return pieces(s, inner);
      }
      case NodeKind::selection: {
        if (converted(s)) {
          refuse_macro(s);
          return selection(s, place);
        }
        Place inner = place;
        inner.own_break = true;
        return pieces(s, inner);
      }
      case NodeKind::break_exit:
        if (place.own_break) return raw(s);
        refuse_jump(s);
        return statement_of(place.region->on_break());
      case NodeKind::continue_exit:
        if (place.own_continue) return raw(s);
        refuse_jump(s);
        return statement_of(place.region->on_continue());
      case NodeKind::return_exit:
        if (place.region == nullptr || place.region->kind == Region::Kind::function) return pieces(s, place);
        refuse_jump(s);
        return statement_of(
            place.region->on_return(s->condition != nullptr ? text(s->condition, place) : ""));
      case NodeKind::obstacle: {
        bool inside = place.staged;
        walk(s, [&](const Node* n) { inside |= n->staged; });
        if (inside) refuse_obstacle(s);
        return pieces(s, place);
      }
      default:
        return text(s, place);
    }
  }

  std::string branch(const Node* s, const Place& place) {
    refuse_macro(s);
    Place inner = place;
    inner.staged |= s->staged;
    if (s->staged) inner.staged_at = s->range.begin, inner.in_loop = false;
    const std::string call =
        native + "branch(" + condition_text(s, place) + ", [&] " + braced(s->body, inner, false) + ", " +
        (s->otherwise != nullptr ? "[&] " + braced(s->otherwise, inner, false) : "[] {}") + ");";
    return s->init != nullptr ? "{ " + initialisation(s, place) + " " + call + " }" : call;
  }
  std::string initialisation(const Node* s, const Place& place) {
    std::string out;
    const Node* init = s->init;
    // if (init; T v = ...): the declaration holds the other as its first child.
    if (!init->why.empty() && !init->children.empty() &&
        init->children.front()->range.end <= init->range.begin)
      out += statement(init->children.front(), place) + " ";
    out += text(init, place);
    if (!out.ends_with(";")) out += ";";
    return out;
  }
  std::string condition_text(const Node* s, const Place& place) {
    refuse_macro(s);
    if (s->init != nullptr && !s->init->why.empty()) return s->init->why;
    return one_expression(text(s->condition, place));
  }
  /// Without a comma that would part arguments.
  static std::string one_expression(const std::string& text) {
    return text.find(',') == std::string::npos ? text : "(" + text + ")";
  }

  /// A statement as a lambda's body in braces, with its end.
  std::string braced(const Node* s, const Place& place, bool ends = true) {
    if (s->kind == NodeKind::block) refuse_braces(s);
    const Statements all = statements(s);
    const std::uint32_t from = s->kind == NodeKind::block ? s->range.begin + 1 : s->range.begin;
    std::string out = "{" + std::string(s->kind == NodeKind::block ? "" : " ") + list(all, place, from, ends);
    if (all.empty() && ends) return out + ending(in_lambda(place), true) + " }";
    return out + (s->kind == NodeKind::block && !any_leaves(all) ? gap_to_end(s) : " ") + "}";
  }

  // Expressions

  std::string raw(const Node* n) { return gap(n->range.begin, n->range.end); }

  /// The text of a node with its parts rewritten.
  std::string pieces(const Node* n, const Place& place) {
    std::vector<const Node*> parts;
    for (const Node* part : {n->init, n->condition, n->step, n->body, n->otherwise})
      if (part != nullptr) parts.push_back(part);
    for (const Node* child : n->children)
      if (std::find(parts.begin(), parts.end(), child) == parts.end()) parts.push_back(child);
    std::sort(parts.begin(), parts.end(),
              [](const Node* a, const Node* b) { return a->range.begin < b->range.begin; });
    std::string out;
    std::uint32_t at = n->range.begin;
    for (const Node* part : parts) {
      if (part->range.begin < at || part->range.end > n->range.end) continue;
      out += gap(at, part->range.begin);
      out += is_statement(part) ? statement(part, place) : text(part, place);
      at = part->range.end;
    }
    return out + gap(at, n->range.end);
  }
  static bool is_statement(const Node* n) {
    switch (n->kind) {
      case NodeKind::expression:
      case NodeKind::conditional:
      case NodeKind::conjunction:
      case NodeKind::disjunction:
      case NodeKind::negation:
      case NodeKind::store:
      case NodeKind::lambda:
        return false;
      default:
        return true;
    }
  }

  std::string text(const Node* n, const Place& place) {
    if (n == nullptr) return "";
    if (place.staged) refuse_hazards(n, place.staged_at, place.in_loop);
    switch (n->kind) {
      case NodeKind::conditional:
        refuse_macro(n);
        return native + "branch(" + text(n->condition, place) + ", [&] { return " +
               text(n->body, under(n, place)) + "; }, [&] { return " + text(n->otherwise, under(n, place)) +
               "; })";
      case NodeKind::conjunction:
      case NodeKind::disjunction:
        refuse_macro(n);
        return native + (n->kind == NodeKind::conjunction ? "both(" : "either(") + text(n->condition, place) +
               ", [&] { return " + text(n->body, under(n, place)) + "; })";
      case NodeKind::negation:
        return "!" + native + "truth(" + text(n->condition, place) + ")";
      case NodeKind::store: {
        std::string out = native + (n->why.empty() ? "element" : n->why) + "(" + text(n->condition, place);
        for (const Node* index : n->children) out += ", " + text(index, place);
        return out + ")";
      }
      case NodeKind::lambda:
        return lambda(n, place);
      default:
        return is_statement(n) ? statement(n, place) : pieces(n, place);
    }
  }
  static Place under(const Node* n, Place place) {
    place.staged |= n->staged;
    if (n->staged) place.staged_at = n->range.begin, place.in_loop = false;
    return place;
  }
  std::string lambda(const Node* n, const Place& place) {
    std::string out;
    std::uint32_t at = n->range.begin;
    for (const Node* capture : n->children) {  // what initialises captures
      out += gap(at, capture->range.begin) + text(capture, place);
      at = capture->range.end;
    }
    return out + gap(at, n->body->range.begin) + function(*n->function) +
           gap(n->body->range.end, n->range.end);
  }

  /// The type of how a region was left that gives a value of this type.
  std::string outcome(const std::string& type) const {
    return native + "Outcome<" + type + (flag_ == staged_flag ? "" : ", " + flag_) + ">";
  }

  const std::string& text_;
  const std::string staged_flag = native + "Flag";
  std::string flag_ = staged_flag;  // of the loops of the function that is written
  int names_ = 0;
  std::vector<const Function*> functions_;  // but lambdas, outermost first
  std::set<const Function*> open_;          // being written
};

void Lowering::throw_unexpected(const Node* n) {
  throw std::logic_error("an exit at offset " + std::to_string(n->range.begin) +
                         " crosses a loop that was not converted");
}

}  // namespace

std::string lower(Unit& unit) {
  find_recursion(unit);
  return Lowering(unit).file();
}

}  // namespace lantern::frontend
