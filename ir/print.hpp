// The textual form of the IR: written here, read back by parse.hpp.
//
//   module   := ["entry" "@"NAME] function*
//   function := "fun" "@"NAME "(" params ")" ["->" types] ["cps"] [location] block
//   block    := "{" op* "}"
//   op       := [values "="] OPNAME ["[" [attribute] [","] ["in place"] "]"] [payload] [":" types] [location] nested
//   payload  := values                         most operations
//             | NUMBER | "true" | "false"      constant
//             | "@"NAME "(" values ")"         call, closure
//             | values "," STRING              check, print, print_adjoint, argmax of another name
//   nested   := "(" params ")" block                                        fun
//             | block "else" block                                          branch
//             | "while" "(" params ")" block "do" "(" params ")" block      loop
//   location := "@" STRING ":" LINE [":" COLUMN] ["forward" | "backward"]
//   params, types, values: separated by commas; a parameter is "%"NAME ":" type
//
// A comment runs from ";" to the end of its line. Function names that are not words are quoted: @"a b".
// Which attribute an operation has is in its row of the table, how each is written at the enum Attribute (op.hpp).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

struct PrintOptions {
  bool locations = false;  ///< append where the user wrote each operation
  bool names = true;       ///< keep the user's names; without them equal programs print equally
};

/// Texts end with a newline. Time and text are linear in the size of the graph, however deeply it nests.
std::string print(const Module& module, PrintOptions options = {});
std::string print(const Function& function, PrintOptions options = {});

/// The names of one function's values as printed: the user's, made unique by .2, .3 ..., else numbers in
/// order of definition. Any graph has names, also one that the verifier refuses.
class Names {
 public:
  explicit Names(const Function& function, bool user_names = true);
  /// "%x"; "%?" for a value of another function or none.
  const std::string& operator()(const Value* value) const;

 private:
  void define(const Value* value, bool user_names);

  std::unordered_map<const Value*, std::string> names_;
  std::unordered_map<std::string, int> uses_;
  int numbered_ = 0;
};

/// One operation on one line, without its blocks.
std::string print(const Op& op, const Names& names);

/// "@f", quoted where the name is not a word.
std::string function_text(std::string_view name);
/// The shortest text from which the parser gets back the same number; `kind` is that of the constant.
std::string constant_text(const Op& constant);
/// The text in double quotes with escapes.
std::string quoted(std::string_view text);

}  // namespace lantern::ir
