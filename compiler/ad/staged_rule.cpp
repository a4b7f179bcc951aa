// Staging of functions with rules, and their derivatives.
#include "lantern/compiler/ad/staged_rule.hpp"

#include <algorithm>

#include "lantern/compiler/ad/replay.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

namespace {

std::vector<ir::Type> differentiable(const std::vector<ir::Type>& types) {
  std::vector<ir::Type> out;
  std::ranges::copy_if(types, std::back_inserter(out),
                       [](const ir::Type& t) { return t.is_differentiable(); });
  return out;
}

}  // namespace

Datums StagedRule::emit(Staging& s, const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                      const Location& loc) {
  Staging::Attempt attempt(s);
  const Datums nodes = s.nodes(arguments, loc);
  const std::shared_ptr<StagedRule> self(new StagedRule(s, rule));
  self->parameters_ = types_of(nodes);
  self->stage(
      self->primal_, "", self->parameters_, {},
      [&](const Datums& in, const Datums&) {
        return Rule::Split{rule->primal(in), {}};
      },
      loc);
  if (!s.inside_rule) self->stage_parts(loc);
  s.rules.emplace(self->primal_.function->function, self);
  Datums results = s.call(*self->primal_.function, nodes, loc);
  attempt.keep();
  return results;
}

void StagedRule::stage(Part& part, const char* suffix, const std::vector<ir::Type>& first,
                       const std::vector<ir::Type>& second,
                       const std::function<Rule::Split(const Datums&, const Datums&)>& body,
                       const Location& loc) {
  if (part.function) return;
  staging_.stage(
      rule_->name + suffix, joined(first, second), nullptr,
      [&](const Datums& in) {
        // What the function captures its parts may use, also where they are staged later.
        if (primal_.function != part.function)
          for (ir::Value* v : primal_.function->captured) staging_.capture(*part.function, v);
        Rule::Split out = body(slice(in, 0, first.size()), slice(in, first.size(), in.size()));
        part.results = out.results.size();
        return joined(std::move(out.results), out.rest);
      },
      loc, [&](StagedFunction* f) { part.function = f; });
}

void StagedRule::stage_parts(const Location& loc) {
  const Meanwhile inside(staging_.inside_rule, true);
  const std::vector<ir::Type>& results = primal_.function->function->result_types;
  std::vector<ir::Type> residuals = joined(parameters_, results);
  if (rule_->forward) {
    stage(
        forward_, "_forward", parameters_, {},
        [&](const Datums& in, const Datums&) { return rule_->forward(in); }, loc);
    const std::vector<ir::Type>& all = forward_.function->function->result_types;
    residuals = slice(all, forward_.results, all.size());
  }
  const auto only = [](const auto& part) {
    return [&part](const Datums& a, const Datums& b) { return Rule::Split{{}, part(a, b)}; };
  };
  if (rule_->backward)
    stage(backward_, "_backward", residuals, differentiable(results), only(rule_->backward), loc);
  if (rule_->tangent)
    stage(tangent_, "_tangent", parameters_, differentiable(parameters_), rule_->tangent, loc);
  if (rule_->linear)
    stage(linear_, "_tangent", residuals, differentiable(parameters_), only(rule_->linear), loc);
  // A call of the function brings what its parts need.
  for (const Part* part : {&forward_, &backward_, &tangent_, &linear_}) {
    if (!part->function) continue;
    for (std::size_t i = 0; i < part->function->captured.size(); ++i)
      staging_.capture(*primal_.function, part->function->captured[i]);
  }
}

Rule::Split StagedRule::call(const Part& part, const Datums& first, const Datums& second, const Datums& captured,
                             const Location& loc) {
  Datums operands = joined(first, second);
  const std::vector<ir::Value*>& all = primal_.function->captured;
  for (ir::Value* v : part.function->captured) {
    const auto at = std::ranges::find(all, v);
    if (at == all.end())
      raise_at(loc, rule_->what +
                        ": a part of the rule calls a function that was still being defined; it cannot "
                        "capture values that the rule's function does not");
    operands.push_back(captured[static_cast<std::size_t>(at - all.begin())]);
  }
  const Datums out = staging_.call(part.function->function, operands, loc);
  return {slice(out, 0, part.results), slice(out, part.results, out.size())};
}

Rule StagedRule::calls(const Datums& captured, const Location& loc) {
  const auto part = [this, captured, loc](const Part& p) {
    return [this, &p, captured, loc](const Datums& a, const Datums& b) { return call(p, a, b, captured, loc); };
  };
  const auto rest = [&](const Part& p) {
    return [run = part(p)](const Datums& a, const Datums& b) { return run(a, b).rest; };
  };
  Rule rule{rule_->name, rule_->what, nullptr, nullptr, nullptr, nullptr, nullptr};
  rule.ordered = rule_->ordered;
  rule.primal = [run = part(primal_)](const Datums& in) { return run(in, {}).results; };
  if (rule_->forward) rule.forward = [run = part(forward_)](const Datums& in) { return run(in, {}); };
  if (rule_->backward) rule.backward = rest(backward_);
  if (rule_->tangent) rule.tangent = part(tangent_);
  if (rule_->linear) rule.linear = rest(linear_);
  return rule;
}

Rule StagedRule::with_captured(const Datums& captured, const Location& loc) {
  const auto rule = [this, loc, n = parameters_.size()](const Datums& values) {
    const Rule given = calls(values, loc);
    return completed(given, given.primal, n, loc);
  };
  Rule full = rule(captured);
  full.forward = [forward = full.forward, captured](const Datums& in) {
    Rule::Split out = forward(in);
    out.rest = joined(std::move(out.rest), captured);
    return out;
  };
  full.backward = [rule, n = captured.size()](const Datums& residuals, const Datums& cotangents) {
    const std::size_t own = residuals.size() - n;
    return rule(slice(residuals, own, residuals.size())).backward(slice(residuals, 0, own), cotangents);
  };
  return full;
}

Datums StagedRule::follow(StagedMode& mode, const Datums& operands, const Location& loc) {
  const std::size_t own = parameters_.size();
  const Datums arguments = slice(operands, 0, own), captured = slice(operands, own, operands.size());
  require_untagged(*rule_, captured, mode.mode(), loc);
  stage_parts(loc);
  return mode.mode().follow(std::make_shared<const Rule>(with_captured(captured, loc)), arguments, loc);
}

}  // namespace lantern::core::ad
