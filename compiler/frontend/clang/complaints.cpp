// Each says what is wrong and what to write instead.
#include "lantern/compiler/frontend/clang/complaints.hpp"

#include <algorithm>

#include "lantern/compiler/frontend/clang/ways.hpp"

namespace lantern::frontend {

std::string rep_in_place_of(const std::string& type) {
  static const std::set<std::string> kept{"bool", "float", "double"};
  return "Rep<" + (kept.count(type) != 0 ? type : "std::int64_t") + ">";
}

void Complaints::complain(std::uint32_t at, std::uint32_t length, const std::string& why) {
  for (const Complaint& c : unit_.complaints)
    if (c.at == at && c.text == why) return;
  unit_.complaints.push_back({at, length, why, {}});
}

void Complaints::refuse_obstacle(const Node* n) {
  const bool label = n->why.starts_with("a label");
  if (label && std::ranges::any_of(unit_.complaints, [](const Complaint& c) { return c.text.starts_with("'goto'"); })) return;
  complain(n->range.begin, 1, n->why);
}

void Complaints::refuse_plain(const PlainWrite& w, bool loop) {
  if (!refused_.insert({w.declared, w.at}).second) return;
  Complaint c{w.at, w.length, w.text, {}};
  if (w.text.empty())
    c.text = "the plain variable '" + w.name + "' (" + w.type + ") is changed " +
             (loop ? "in a loop" : "in a branch") +
             " that is staged: it would have one value while the program is staged and needs many when it runs";
  if (w.declared != 0 && w.text.empty() && w.replaceable) {
    const std::string rep = rep_in_place_of(w.type);
    c.notes.push_back({w.declared, "declare it as '" + rep + "'", w.type_range, rep});
  } else if (w.declared != 0) {
    c.notes.push_back({w.declared, "declared here", {}, ""});
  }
  unit_.complaints.push_back(c);
}

void Complaints::refuse_braces(const Node* block) {
  const Span& at = block->range;
  if (at.size() > 1 && unit_.text[at.begin] == '{' && unit_.text[at.end - 1] == '}') return;
  complain(at.begin, 1, "the braces around staged control flow are written by a macro; write them out");
}

/// A statement that ends in a macro, and a jump behind it in the same use of that macro, are told once: what
/// the jump needs does for both.
void Complaints::complain_of_macro(const Node* n, bool jump, const std::string& why) {
  const auto same_use = [n](const OfMacro& other) {
    const Span &a = n->range, &b = other.node->range;
    return other.node->macro == n->macro && a.begin <= b.end && b.begin <= a.end;
  };
  for (const OfMacro& other : of_macros_) {
    if (!same_use(other) || other.jump == jump) continue;
    if (other.jump) return;
    std::erase_if(unit_.complaints,
                  [&](const Complaint& c) { return c.at == other.node->key && c.text == other.why; });
  }
  of_macros_.push_back({n, jump, why});
  complain(n->key, 1, why);
}

void Complaints::refuse_macro(const Node* n) {
  if (!n->in_macro) return;
  complain_of_macro(n, false,
                    "staged control flow is written by the macro '" + n->macro +
                        "'; write out its text, or make the macro a function template");
}

void Complaints::refuse_jump(const Node* n) {
  if (!n->in_macro) return;
  complain_of_macro(n, true,
                    "a jump out of staged control flow is written by the macro '" + n->macro +
                        "', among other statements; write out its text");
}

void Complaints::refuse_function(const Function& f, bool early) {
  if (f.is_coroutine && f.staged)
    complain(f.body->range.begin, 1, "a coroutine cannot branch on staged values");
  const Node* jump = nullptr;
  walk(f.body, [&](const Node* n) {
    if (jump == nullptr && n->kind == NodeKind::obstacle && n->why.starts_with("'goto'")) jump = n;
  });
  if (jump != nullptr && f.staged) complain(jump->range.begin, 4, jump->why);
  if (early && f.returns_reference)
    complain(f.body->range.begin, 1,
             "a function that returns a reference cannot return under a staged condition; return a value");
  if (!early || !f.returns_plain || !f.staged || f.returns_void) return;
  const bool named = f.result_range.size() > 0;
  Complaint c{named ? f.result_range.begin : f.body->range.begin,
              std::max(1U, f.result_range.size()),
              "'" + f.name + "' returns a plain " + f.result +
                  " under a staged condition; it has no value while the program is staged",
              {}};
  if (named) c.notes.push_back({c.at, "return a Rep", f.result_range, rep_in_place_of(f.result)});
  unit_.complaints.push_back(c);
}

void Complaints::refuse_hazards(const Node* n, std::uint32_t staged_at, bool loop) {
  const auto own = [&](std::uint32_t at) {
    if (!n->range.contains(at)) return false;
    bool in_lambda = false;
    walk(n, [&](const Node* inner) {
      in_lambda |= inner != n && inner->kind == NodeKind::lambda && inner->range.contains(at);
    });
    return !in_lambda;
  };
  for (const Hazard& h : unit_.hazards)
    if (own(h.at)) complain(h.at, h.length, h.text);
  const auto first = [&](std::uint32_t from) {
    return std::lower_bound(unit_.plain_writes.begin(), unit_.plain_writes.end(), from,
                            [](const PlainWrite& w, std::uint32_t at) { return w.at < at; });
  };
  // What is made under the condition may change under it.
  const auto outside = [&](const PlainWrite& w, std::uint32_t made_from) {
    return w.outlives || w.name.empty() || w.declared < made_from;
  };
  for (auto w = first(n->range.begin); w != unit_.plain_writes.end() && w->at < n->range.end; ++w)
    if (outside(*w, staged_at) && own(w->at)) refuse_plain(*w, loop);
  // Naming a lambda counts as calling it.
  for (const auto& [at, lambda] : unit_.lambda_uses) {
    if (!own(at) || n->range.contains(lambda)) continue;
    const auto f = std::find_if(unit_.functions.begin(), unit_.functions.end(), [&](const auto& known) {
      return known->is_lambda && known->id == lambda;
    });
    if (f == unit_.functions.end() || (*f)->body == nullptr) continue;
    const Span& body = (*f)->body->range;
    for (auto w = first(body.begin); w != unit_.plain_writes.end() && w->at < body.end; ++w)
      if (outside(*w, std::min(staged_at, lambda))) refuse_plain(*w, loop);
  }
}

}  // namespace lantern::frontend
