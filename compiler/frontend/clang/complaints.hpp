// What the rewriter refuses while it writes.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "lantern/compiler/frontend/clang/tree.hpp"

namespace lantern::frontend {

/// The Rep to write in place of a plain number type: "Rep<std::int64_t>" for int.
std::string rep_in_place_of(const std::string& type);

/// Adds to a unit's complaints, each once.
class Complaints {
 public:
  explicit Complaints(Unit& unit) : unit_(unit) {}

  void complain(std::uint32_t at, std::uint32_t length, const std::string& why);
  /// A statement that has no staged form. A label beside a 'goto' that is told is not told.
  void refuse_obstacle(const Node* n);
  /// A plain variable that a staged loop or branch changes.
  void refuse_plain(const PlainWrite& w, bool loop);
  /// A block whose braces a macro writes.
  void refuse_braces(const Node* block);
  /// A statement or operator that a macro writes.
  void refuse_macro(const Node* n);
  /// A break, continue or return that is a part of what a macro writes.
  void refuse_jump(const Node* n);
  /// A function that cannot be left, or cannot be entered, under a staged condition. `early`: it returns so.
  void refuse_function(const Function& f, bool early);
  /// What must not happen under a staged condition, in an expression that is under one. `staged_at`: where
  /// the part begins outside of which no plain variable may change, a loop or a branch.
  void refuse_hazards(const Node* n, std::uint32_t staged_at, bool loop);

 protected:
  Unit& unit_;

 private:
  /// What one use of a macro writes: where the node begins, and what is said of it.
  struct OfMacro {
    const Node* node;
    bool jump;
    std::string why;
  };
  void complain_of_macro(const Node* n, bool jump, const std::string& why);

  std::set<std::pair<std::uint32_t, std::uint32_t>> refused_;
  std::vector<OfMacro> of_macros_;
};

}  // namespace lantern::frontend
