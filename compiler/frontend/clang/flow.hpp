// Which variables a piece of a function assigns, and which are needed after it: the live variables of every
// statement, found backwards over the structured program (Aho, Lam, Sethi, Ullman, Compilers, 9.2.5).
#pragma once

#include <functional>
#include <map>

#include "lantern/compiler/frontend/clang/tree.hpp"

namespace lantern::frontend {

/// Calls f(node) for a node and all nodes in it, lambdas' bodies included.
void walk(const Node* node, const std::function<void(const Node*)>& f);

class Flow {
 public:
  /// Analyses a function, and the lambdas in it.
  Flow(const Unit& unit, const Function& function);

  /// Variables whose value may be read after the statement, before it is assigned again.
  const Variables& live_after(const Node* statement) const { return at(after_, statement); }
  /// Of a loop: needed when its condition is about to be computed.
  const Variables& live_at_head(const Node* loop) const { return at(head_, loop); }
  /// Of a loop: needed where `continue` goes.
  const Variables& live_at_continue(const Node* loop) const { return at(continue_, loop); }
  /// Needed after a function or lambda has returned: what lives outside of it.
  Variables live_at_return(const Function& function) const;

  /// Variables declared outside a piece of the program that it assigns.
  Variables assigned(const std::vector<const Node*>& piece) const;
  /// Where a variable is first assigned in a piece.
  std::uint32_t first_assignment(const std::vector<const Node*>& piece, VariableId variable) const;
  /// Variables read in a piece that is declared outside of it.
  bool mentions(const Node* piece, VariableId variable) const;

 private:
  struct Exits {
    Variables on_break, on_continue, on_return;
  };
  Variables before(const Node* node, const Variables& after, const Exits& exits);
  Variables before_list(const std::vector<Node*>& list, Variables after, const Exits& exits);
  Variables before_loop(const Node* node, const Variables& after, const Exits& exits);
  Variables before_expression(const Node* node, Variables after);
  void analyse(const Function& function);
  /// Events of a piece; those of lambdas that it names too.
  void each_event(const Node* node, const std::function<void(const Event&)>& f) const;

  static const Variables& at(const std::map<const Node*, Variables>& map, const Node* node);

  const Unit& unit_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> uses_;  ///< place -> lambdas named there
  std::map<std::uint32_t, const Node*> lambdas_;              ///< by where they begin
  std::map<const Node*, Variables> after_, head_, continue_;
};

}  // namespace lantern::frontend
