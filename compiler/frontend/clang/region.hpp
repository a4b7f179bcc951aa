// Where a statement that is moved into a lambda goes when it leaves: what `return`, `break`, `continue` and
// the end of the statements become there.
#pragma once

#include <optional>
#include <string>

#include "lantern/compiler/frontend/clang/tree.hpp"

namespace lantern::frontend {

/// A way out of a lambda: something to do first, and the lambda's value.
struct Exit {
  std::string first;
  std::string value;  ///< empty in a lambda without value
};

/// The body of a function, of a lambda that represents a loop's body, or for a statement with several ways
/// out.
struct Region {
  enum class Kind {
    function,  ///< `return` is the function's own
    loop,      ///< the value says whether the loop goes on
    outcome,   ///< the value says whether the statement was left early, and with what
    group,     ///< of a switch: nothing leaves it but its own break
  };
  Kind kind = Kind::function;
  const Region* outer = nullptr;
  std::string type;              ///< of the lambda's value; "void"; empty: to be deduced
  std::string result;            ///< the variable in which loops hand on the function's result; may be empty
  bool result_is_value = false;  ///< it is the value alone: the loop has no other way out
  bool breaks_fall = false;      ///< outcome of a switch: `break` goes to the end

  const Region& function() const { return kind == Kind::function ? *this : outer->function(); }
  bool is_void() const { return type == "void"; }
  bool flagged() const { return kind == Kind::loop && !is_void(); }

  Exit on_return(const std::string& value) const;
  Exit on_break() const;
  Exit on_continue() const;
  /// The end of the statements; nothing where falling off the lambda's end will do.
  std::optional<Exit> at_end() const;

 private:
  /// In an outcome: left early, with the value that the region around it is left with.
  Exit early(const Exit& outer_exit) const;
};

/// One statement that leaves the lambda.
std::string statement_of(const Exit& exit);

}  // namespace lantern::frontend
