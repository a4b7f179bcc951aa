// Calls of functions with rules, and the parts of a rule that follow from others.
#include "lantern/compiler/ad/custom_rule.hpp"

#include "lantern/compiler/ad/staged_rule.hpp"
#include "lantern/compiler/staging/requirement.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core {

namespace ad {

namespace {

using LinearMap = std::function<Datums(const Datums& given, const Datums& vectors)>;

/// L^T c, where L(given, .) is a linear map from the space of `like`: its vector-Jacobian product at zero.
Datums transposed(const std::string& name, const LinearMap& map, const Datums& given, const Datums& like,
                const Datums& c, const Location& loc) {
  const std::size_t n = given.size();
  const Program program{name,
                        [map, n](const Datums& in) { return map(slice(in, 0, n), slice(in, n, in.size())); }};
  Datums at = given;
  for (const Datum& d : like) at.push_back(zeros_like(d, loc));
  Active active(at.size(), true);
  std::fill_n(active.begin(), n, false);
  return vjp(program, at, active, c, false, loc);
}

/// One adjoint for each floating argument: zero for those that are not active.
Datums vjp_of_all(const Program& program, const Datums& arguments, const Active& active, const Datums& cotangents,
                  const Location& loc) {
  const Datums some = vjp(program, arguments, active, cotangents, false, loc);
  Datums all;
  std::size_t next = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].type().is_differentiable())
      all.push_back(active[i] ? some[next++] : zeros_like(arguments[i], loc));
  return all;
}

[[noreturn]] void refuse(const Rule& rule, const Mode& mode, const Location& loc) {
  raise_at(loc, rule.what + ": expected a derivative by a mode that follows rules, got one by " +
                    std::string(mode.name()) + (mode.ended() ? " that has ended" : ""));
}

Datums eager(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) {
  Mode* mode = in_charge(arguments);
  if (!mode) {
    Datums results = rule->primal(arguments);
    if (const Mode* captured = in_charge(results)) require_untagged(*rule, results, *captured, loc);
    return results;
  }
  if (mode->ended()) refuse(*rule, *mode, loc);
  const auto again = [rule, loc](const Datums& down) { return call_with_rule(rule, down, loc); };
  return mode->follow(std::make_shared<const Rule>(completed(*rule, again, arguments.size(), loc)),
                      arguments, loc);
}

}  // namespace

Datums call_with_rule(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) {
  Staging* s = context().staging;
  return s ? StagedRule::emit(*s, rule, arguments, loc) : eager(rule, arguments, loc);
}

Rule completed(const Rule& rule, const std::function<Datums(const Datums&)>& again, std::size_t arguments,
               const Location& loc) {
  Rule full = rule;
  if (!full.forward)
    full.forward = [again](const Datums& in) -> Rule::Split {
      const Datums results = again(in);
      return {results, joined(in, results)};
    };
  if (!full.backward)
    full.backward = [rule, arguments, loc](const Datums& residuals, const Datums& cotangents) {
      const Datums in = slice(residuals, 0, arguments);
      return transposed(
          rule.name + "_tangent",
          [rule](const Datums& given, const Datums& t) { return rule.tangent(given, t).rest; }, in, floating(in),
          cotangents, loc);
    };
  if (!full.tangent)
    full.tangent = [forward = full.forward, rule, loc](const Datums& in, const Datums& tangents) -> Rule::Split {
      const auto [results, residuals] = forward(in);
      if (rule.linear) return {results, rule.linear(residuals, tangents)};
      return {results, transposed(rule.name + "_backward", rule.backward, residuals, floating(results),
                                  tangents, loc)};
    };
  return full;
}

std::shared_ptr<const Rule> rule_of(const Program& program, std::string what, const Active& active,
                                    const Location& loc) {
  const auto rule = std::make_shared<Rule>();
  rule->name = program.name;
  rule->what = std::move(what);
  rule->primal = program.run;
  rule->forward = [run = program.run](const Datums& in) -> Rule::Split { return {run(in), in}; };
  rule->backward = [program, active, loc](const Datums& in, const Datums& cotangents) {
    return vjp_of_all(program, in, active, cotangents, loc);
  };
  return rule;
}

Datums floating(const Datums& data) {
  Datums out;
  for (const Datum& d : data)
    if (d.type().is_differentiable()) out.push_back(d);
  return out;
}

void require_untagged(const Rule& rule, const Datums& data, const Mode& mode, const Location& loc) {
  for (const Datum& d : data)
    if (d.is_tagged() && static_cast<TaggedBox*>(d.box())->mode->tag() >= mode.tag())
      raise_at(
          loc,
          rule.what + ": the function captures a value that is being differentiated; pass it as an argument");
}

void require_derivatives(const Rule& rule, const Datums& values, const Datums& derivatives, const char* of,
                         const Location& loc) {
  const Datums expected = floating(values);
  if (expected.size() != derivatives.size())
    raise_at(loc, rule.what + ": expected derivatives of " + std::to_string(expected.size()) + " floating " +
                      of + "s, got " + std::to_string(derivatives.size()));
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!ir::compatible(expected[i].type(), derivatives[i].type()))
      raise_at(loc, rule.what + ": expected the derivative of floating " + of + " " + std::to_string(i) +
                        " to be " + expected[i].type().str() + ", got " + derivatives[i].type().str());
  for (std::size_t i = 0; i < expected.size(); ++i)
    detail::require_same_sizes(expected[i], derivatives[i], 0,
                               rule.what + ": expected the derivative of floating " + of + " " +
                                   std::to_string(i) + " to have its sizes, got others",
                               loc);
}

}  // namespace ad

Datums Mode::follow(const std::shared_ptr<const ad::Rule>& rule, const Datums&, const Location& loc) {
  ad::refuse(*rule, *this, loc);
}

}  // namespace lantern::core
