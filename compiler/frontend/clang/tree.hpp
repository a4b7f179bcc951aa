// The statements of a function as the rewriter sees them: structure and ranges in the file. Built from Clang's syntax tree by read.cpp; nothing here knows Clang.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lantern::frontend {

/// Offsets in the source file, end exclusive.
struct Span {
  std::uint32_t begin = 0, end = 0;
  bool contains(const Span& other) const { return begin <= other.begin && other.end <= end; }
  bool contains(std::uint32_t at) const { return begin <= at && at < end; }
  std::uint32_t size() const { return end - begin; }
};

/// A change of a plain value, or of a container's size: it happens while the program is staged. Under a staged
/// condition that is wrong, unless what changes is made under the same condition.
struct PlainWrite {
  std::uint32_t at = 0, length = 1;
  std::string name, type;      ///< of the variable; empty if unknown
  std::uint32_t declared = 0;  ///< where, in this file; 0: elsewhere
  Span type_range;             ///< the type in the declaration, for fix-its; empty if unknown
  bool outlives = false;       ///< seen after the function returns: reference parameters, members, globals
  bool replaceable = false;    ///< a number, so that Rep<type> is what to write
  std::string text;            ///< what is wrong, where the variable's name does not say it
};

enum class NodeKind : std::uint8_t {
  expression,  ///< children: nested constructs; also declarations and other statements that stay as they are
  block,
  branch,      ///< if: init, condition, body, otherwise
  while_loop,  ///< condition, body
  do_loop,     ///< body, condition
  for_loop,    ///< init, condition, step, body
  range_loop,  ///< step (the init-statement), init (the declaration), condition (the range), body
  selection,   ///< switch: condition, groups
  break_exit,
  continue_exit,
  return_exit,  ///< condition: the value, if there is one
  conditional,  ///< ?: condition, body, otherwise
  conjunction,  ///< &&: condition, body
  disjunction,  ///< ||
  negation,     ///< !x of a number: condition
  store,     ///< the left side of an assignment to an element: condition (the array), children (the indices)
  lambda,    ///< body, in `function`
  obstacle,  ///< goto, try, co_return, ...: stays where nothing about it is staged; `why` says what it is
};

struct Function;

struct Node {
  NodeKind kind = NodeKind::expression;
  Span range;             ///< statements: with their semicolon
  std::uint32_t key = 0;  ///< offset of the keyword or operator
  bool staged = false;    ///< the condition is a Rep, in one instantiation at least
  bool always = false;    ///< a loop whose condition is absent or true
  bool is_constexpr = false;
  bool in_macro = false;    ///< written by a macro
  bool over_array = false;  ///< range_loop over a Rep<Array>
  std::string macro;        ///< its name
  std::string why;          ///< of an obstacle; of a store to rows, the member function that gives them
  Node* init = nullptr;
  Node* condition = nullptr;
  Node* step = nullptr;
  Node* body = nullptr;
  Node* otherwise = nullptr;
  std::vector<Node*> children;  ///< nested in order; of a block, its statements
  std::vector<std::string> declares;  ///< names of variables that the statement declares
  std::vector<std::string> names;     ///< of a loop that is always: the variables from outside that it names
  bool own_step = false;              ///< of a for: its step changes nothing but what the loop declares
  Function* function = nullptr;

  struct Group {
    std::vector<Span> labels;  ///< the values; empty for default alone
    bool is_default = false;
    std::vector<Node*> statements;
  };
  std::vector<Group> groups;
};

struct Parameter {
  std::string name;
  Span text;  ///< without a default argument
  bool changes_argument = false;  ///< a reference to something that is not const
};

/// A function body, or a lambda's.
struct Function {
  std::string name;
  std::uint64_t id = 0;  ///< file and offset of its name
  Node* body = nullptr;
  std::string result;  ///< text of the result type; empty: to be deduced
  bool returns_void = false;
  bool returns_reference = false;
  bool returns_plain = false;  ///< a number that is not a Rep, in every instantiation
  Span result_range;
  bool is_lambda = false;
  bool is_coroutine = false;
  bool is_structor = false;  ///< a constructor or destructor
  std::optional<std::uint32_t> others_call;  ///< where it begins, of one that another file may call by its name
  bool is_member = false;      ///< may use `this`
  bool object_staged = false;  ///< `this` holds Reps
  bool staged = false;         ///< some condition in it is a Rep
  bool recursive = false;      ///< may call itself
  /// Of a template: the types that decide whether something is staged in an instantiation, as text. Empty where
  /// others may, too.
  std::string plain_where;
  std::vector<Parameter> parameters;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> calls;  ///< of functions with a body here, and where
};

struct Note {
  std::uint32_t at = 0;
  std::string text;
  Span replace;  ///< a fix-it, where not empty
  std::string replacement;
};
struct Complaint {
  std::uint32_t at = 0;
  std::uint32_t length = 1;
  std::string text;
  std::vector<Note> notes;
};

/// What cannot be done under a staged condition: an error where it is inside one.
struct Hazard {
  std::uint32_t at = 0;
  std::uint32_t length = 1;
  std::string text;
};

/// One file's functions that hold staged conditions or are recursive.
struct Unit {
  std::string path;
  std::string text;
  std::optional<std::string> program_part;  ///< what runs in the program, without what is staged alone; see parts.hpp
  std::optional<std::string> staged_part;   ///< what is staged, without what runs in the program alone
  std::vector<Span> left_out, kept;  ///< functions that the program's part is without, and that it has
  std::vector<std::string> exported;  ///< names of LANTERN_FUNCTIONs, those of the headers that it includes too
  bool whole_program = false;  ///< no other file calls its functions
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<Function>> functions;  ///< of the file, outermost first; lambdas too
  std::vector<PlainWrite> plain_writes;  ///< in the order of the text
  std::vector<Complaint> complaints;  ///< wrong wherever they are
  std::vector<Hazard> hazards;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lambda_uses;  ///< place; where the lambda begins

  Node* make(NodeKind kind, Span range) {
    nodes.push_back(std::make_unique<Node>());
    nodes.back()->kind = kind;
    nodes.back()->range = range;
    return nodes.back().get();
  }
};

}  // namespace lantern::frontend
