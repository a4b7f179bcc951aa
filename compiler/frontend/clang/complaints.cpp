// Each says what is wrong and what to write instead.
#include "lantern/compiler/frontend/clang/complaints.hpp"

#include <algorithm>

#include "lantern/compiler/frontend/clang/flow.hpp"

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

void Complaints::refuse_plain(const Variable& v, std::uint32_t at, VariableId id, bool loop) {
  const bool follows = v.staged || v.type.find("Var<") != std::string::npos;
  if (follows || !refused_.insert({id, at}).second) return;
  const std::string bare = v.name.starts_with("this->") ? v.name.substr(6) : v.name;
  Complaint c{
      at,
      static_cast<std::uint32_t>(bare.size()),
      "the plain variable '" + bare + "' (" + v.type + ") is changed " +
          (loop ? "in a loop" : "in a branch") +
          " that is staged: it would have one value while the program is staged and needs many when it runs",
      {}};
  if (v.replaceable) {
    const std::string rep = rep_in_place_of(v.type);
    c.notes.push_back({v.declared, "declare it as '" + rep + "'", {v.type_begin, v.type_end}, rep});
  } else {
    c.notes.push_back({v.declared, "declared here", {}, ""});
  }
  unit_.complaints.push_back(c);
}

void Complaints::refuse_braces(const Node* block) {
  const Span& at = block->range;
  if (at.size() > 1 && unit_.text[at.begin] == '{' && unit_.text[at.end - 1] == '}') return;
  complain(at.begin, 1, "the braces around staged control flow are written by a macro; write them out");
}

void Complaints::refuse_macro(const Node* n) {
  if (!n->in_macro) return;
  complain(n->key, 1,
           "staged control flow is written by the macro '" + n->macro +
               "'; write a function template instead of the macro");
}

void Complaints::refuse_function(const Function& f, bool early) {
  if (f.is_coroutine && f.staged)
    complain(f.body->range.begin, 1, "a coroutine cannot branch on staged values");
  const Node* jump = nullptr;
  walk(f.body, [&](const Node* n) {
    const bool jumps = n->kind == NodeKind::obstacle && n->why.find("goto") != std::string::npos;
    if (jumps && jump == nullptr) jump = n;
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

void Complaints::refuse_hazards(const Node* n) {
  for (const Hazard& h : unit_.hazards) {
    if (!n->range.contains(h.at)) continue;
    bool in_lambda = false;
    walk(n, [&](const Node* inner) {
      in_lambda |= inner != n && inner->kind == NodeKind::lambda && inner->range.contains(h.at);
    });
    if (!in_lambda) complain(h.at, h.length, h.text);
  }
}

}  // namespace lantern::frontend
