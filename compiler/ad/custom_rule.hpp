// Functions with a derivative of their own: what custom_vjp, custom_jvp and fixpoint become once types are
// gone.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lantern/compiler/ad/program.hpp"

namespace lantern::core::ad {

/// A function over flattened products and how it is differentiated. The parts may be called when the frames
/// that made them have ended: they capture by value. Those that are empty follow from the others, see
/// `completed`.
struct Rule {
  /// Results, and what comes with them: residuals, or tangents.
  struct Split {
    Datums results, rest;
  };

  std::string name;  ///< of the function, for generated code
  std::string what;  ///< for messages: "custom_vjp", ...
  std::function<Datums(const Datums& arguments)> primal;

  /// Reverse mode: results and residuals. Empty: the function itself, with its arguments and results as
  /// residuals; a derivative of higher order then meets the function, and its rule, again.
  std::function<Split(const Datums& arguments)> forward;
  /// From the cotangents of the floating results to those of the floating arguments; linear in them.
  std::function<Datums(const Datums& residuals, const Datums& cotangents)> backward;
  /// Forward mode: results, and tangents of the floating results from those of the floating arguments.
  std::function<Split(const Datums& arguments, const Datums& tangents)> tangent;
  /// The same from the residuals: the tangents alone.
  std::function<Datums(const Datums& residuals, const Datums& tangents)> linear;

  /// The backward part has effects: it runs even where no cotangent arrives.
  bool ordered = false;
};

/// Calls a function that has a rule. Eager: the mode in charge follows the rule (Mode::follow). While staging: a
/// call of a function that the graph's builder knows to have a rule (staged_rule.hpp), which replay follows.
/// Errors: a derivative by a mode that follows no rules; a captured value that is being differentiated.
Datums call_with_rule(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc);

/// The rule with `forward`, `backward` and `tangent`. `again` calls the function one level down. A missing
/// `backward` is the transpose of `tangent`, a missing `tangent` that of `backward`: a linear map is
/// transposed by its vector-Jacobian product, taken at zero.
Rule completed(const Rule& rule, const std::function<Datums(const Datums&)>& again, std::size_t arguments,
               const Location& loc);

/// The rule of a function that is one operation to a mode: `program`, whose derivative is its derivative, by the
/// arguments that are active. `what`: for messages.
std::shared_ptr<const Rule> rule_of(const Program& program, std::string what, const Active& active,
                                    const Location& loc);

/// The differentiable ones.
Datums floating(const Datums& data);

/// Error where data that `rule` gave to `mode` carries a tag of it, or of one above: a captured value.
void require_untagged(const Rule& rule, const Datums& data, const Mode& mode, const Location& loc);

/// Error unless there is one derivative for each floating value, of its type.
void require_derivatives(const Rule& rule, const Datums& values, const Datums& derivatives, const char* of,
                         const Location& loc);

}  // namespace lantern::core::ad
