// Functions with rules in the graph.
#pragma once

#include "lantern/compiler/ad/custom_rule.hpp"

namespace lantern::core {
class Staging;
struct StagedFunction;
}  // namespace lantern::core

namespace lantern::core::ad {

class StagedMode;

/// A function of the graph with a rule whose parts are functions of the graph too. They are staged with it,
/// so that they may capture values of enclosing functions. Where the function is inside a part of another
/// rule they are staged when a derivative asks for them, since rules may lead to one another without end;
/// they then capture none.
class StagedRule {
 public:
  /// Stages the function and calls it.
  static Datums emit(Staging& s, const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                   const Location& loc);

  /// The call, met again under a mode. `operands`: the arguments, then what the function
  /// captured.
  Datums follow(StagedMode& mode, const Datums& operands, const Location& loc);

 private:
  struct Part {
    StagedFunction* function = nullptr;
    std::size_t results = 0;  ///< how many of what it returns are results of the function
  };

  StagedRule(Staging& staging, std::shared_ptr<const Rule> rule)
      : staging_(staging), rule_(std::move(rule)) {}
  /// Stages a part that is not there yet. `first`, `second`: the types of what it takes.
  void stage(Part& part, const char* suffix, const std::vector<ir::Type>& first,
             const std::vector<ir::Type>& second,
             const std::function<Rule::Split(const Datums&, const Datums&)>& body, const Location& loc);
  void stage_parts(const Location& loc);
  /// A call of a part.
  Rule::Split call(const Part& part, const Datums& first, const Datums& second, const Datums& captured,
                   const Location& loc);
  /// The rule whose parts are calls.
  Rule calls(const Datums& captured, const Location& loc);
  /// The same with all parts. What the function captured is among the residuals: the backward part of a mode
  /// may be where nothing else of the forward part can be seen.
  Rule with_captured(const Datums& captured, const Location& loc);

  Staging& staging_;
  std::shared_ptr<const Rule> rule_;
  std::vector<ir::Type> parameters_;
  Part primal_, forward_, backward_, tangent_, linear_;
};

}  // namespace lantern::core::ad
