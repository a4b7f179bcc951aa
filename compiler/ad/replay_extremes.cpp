// Reverse mode of a loop that finds the largest or smallest of many numbers (Danskin's theorem: the
// derivative of an extreme is that of the number that attains it).
//
//   best = start;  for (i = 0; i < n; ++i) best = max(best, f(i))
//
// The forward part finds the last iteration that replaced the value, and reverse mode then follows f of that
// iteration alone, so that the tape holds one index for the loop. Where two numbers are equal the derivative
// is shared between them, and the loop is followed as it is.
#include <algorithm>
#include <optional>

#include "lantern/compiler/ad/replay.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::core::ad {

namespace {

/// Its iterations depend on each other by the extreme alone, and do nothing else.
bool computes_alone(const ir::Op* loop) {
  return std::ranges::all_of(loop->blocks[1]->ops, [](const ir::Op* op) {
    return op->is(Opcode::yield_) ||
           (ir::info(op->code).effect == ir::Effect::none && op->blocks.empty() && !op->callee);
  });
}

/// True inside a loop whose iterations may run in lanes: there each keeps what it needs without a tape.
bool is_in_parallel_loop(const ir::Op* loop) {
  for (const ir::Op* around = loop->parent->parent; around; around = around->parent->parent)
    if (around->is(Opcode::loop_) && passes::is_doall_write_only(around)) return true;
  return false;
}

}  // namespace

std::optional<Replay::ExtremeLoop> Replay::extreme_loop(const ir::Op* loop) {
  if (loop->integer != 0 || !passes::counted(loop) || !computes_alone(loop)) return {};
  std::optional<ExtremeLoop> found;
  const ir::Block* const body = loop->blocks[1];
  for (std::size_t i = 0; i < body->params.size(); ++i) {
    const ir::Type& type = body->params[i]->type;
    if (!type.is_scalar()) return {};
    if (!type.is_differentiable()) continue;
    if (found) return {};
    const ir::Value* const next = loop->blocks[1]->yields()[i];
    const ir::Op* const update = next->def;
    if (!update || update->parent != body || !(update->is(Opcode::max_) || update->is(Opcode::min_)))
      return {};
    const std::size_t candidate = update->operands[0] == body->params[i] ? 1 : 0;
    if (update->operands[1 - candidate] != body->params[i] || !update->operands[candidate]->def ||
        update->operands[candidate]->def->parent != body)
      return {};
    const ir::Uses uses(loop);
    if (!uses.once(body->params[i]) || !uses.once(next) || !uses.of(loop->blocks[0]->params[i]).empty())
      return {};
    found = ExtremeLoop{i, candidate, update};
  }
  if (!found || is_in_parallel_loop(loop)) return {};
  return found;
}

Datums Replay::run_extreme_loop(ir::Op* op, const ExtremeLoop& extreme, const Datums& initial,
                                const StagedMode::Condition& condition, const StagedMode::Body& body) {
  const Location loc = place(op);
  const std::size_t size = initial.size();
  const auto make = [&](Opcode code, const Datums& operands) { return perform({code, 0, loc}, operands); };
  const bool smallest = extreme.update->is(Opcode::min_);
  // Whether the iteration that was run last certainly leaves the extreme as it is.
  const auto is_kept = [&] {
    const Datum best = value(extreme.update->operands[1 - extreme.candidate]);
    const Datum candidate = value(extreme.update->operands[extreme.candidate]);
    return smallest ? make(Opcode::lt_, {best, candidate}) : make(Opcode::lt_, {candidate, best});
  };

  const auto primals = [&](const Datums& data) {
    Datums out;
    for (const Datum& d : data) out.push_back(mode_->mode().primal(d));
    return out;
  };

  // The loop's values; whether an iteration replaced the extreme, whether one was equal to it since, and the
  // state that the last one to replace it started with.
  Datums state = primals(initial);
  state.push_back(Datum::integer(0, ir::Bool));
  state.push_back(Datum::integer(0, ir::Bool));
  for (std::size_t i = 0; i < size; ++i) state.push_back(state[i]);
  Datums searched;
  {
    const Meanwhile on_primals(primal_only_, true);
    searched = detail::loop(
        state,
        [&](const Datums& s) { return condition(Datums(s.begin(), s.begin() + static_cast<long>(size))); },
        [&](const Datums& s) {
          Datums next = body(Datums(s.begin(), s.begin() + static_cast<long>(size)));
          const Datum x = value(extreme.update->operands[0]), y = value(extreme.update->operands[1]);
          // Most iterations change nothing, and a branch is not waited for.
          const Datum keeps = is_kept();
          const Datums kept(s.begin() + static_cast<long>(size), s.end());
          Datums changed = detail::branch(
              keeps,
              [&] {
                Datums same{s[extreme.state]};
                same.insert(same.end(), kept.begin(), kept.end());
                return same;
              },
              [&] {
                // As the partial derivatives of max and min say it.
                const Datum equal = make(Opcode::eq_, {x, y});
                const Datum first =
                    make(Opcode::lor_, {smallest ? make(Opcode::le_, {x, y}) : make(Opcode::le_, {y, x}),
                                        make(Opcode::ne_, {y, y})});
                const Datum won =
                    make(Opcode::land_, {make(Opcode::lnot_, {equal}),
                                         extreme.candidate == 0 ? first : make(Opcode::lnot_, {first})});
                Datums updated{
                    make(extreme.update->code, {x, y}), make(Opcode::lor_, {kept[0], won}),
                    make(Opcode::lor_, {equal, make(Opcode::land_, {kept[1], make(Opcode::lnot_, {won})})})};
                for (std::size_t i = 0; i < size; ++i)
                  updated.push_back(i == extreme.state ? kept[2 + i]
                                                       : make(Opcode::select_, {won, s[i], kept[2 + i]}));
                return updated;
              },
              loc);
          next[extreme.state] = changed[0];
          next.insert(next.end(), changed.begin() + 1, changed.end());
          return next;
        },
        loc);
  }

  const std::vector<ir::Type> types = ir::types_of(op->blocks[1]->params);
  const std::vector<ir::Type> result{types[extreme.state]};
  const auto all_iterations = [&] {
    const auto iteration = [&](const Datums& s) {
      Datums next;
      Datum keeps;
      {
        const Meanwhile on_primals(primal_only_, true);
        next = body(primals(s));
        keeps = is_kept();
      }
      next[extreme.state] = mode_->branch(
          keeps, [&] { return Datums{s[extreme.state]}; }, [&] { return Datums{body(s)[extreme.state]}; },
          result, loc)[0];
      return next;
    };
    return Datums{mode_->loop(initial, types, condition, iteration, op->integer, loc)[extreme.state]};
  };
  const auto one_iteration = [&] {
    Datums at(searched.begin() + static_cast<long>(size + 2), searched.end());
    at[extreme.state] = initial[extreme.state];
    body(at);
    return Datums{value(extreme.update->operands[extreme.candidate])};
  };
  const auto found = [&] {
    return mode_->branch(
        searched[size], one_iteration, [&] { return Datums{initial[extreme.state]}; }, result, loc);
  };
  Datums results(searched.begin(), searched.begin() + static_cast<long>(size));
  results[extreme.state] = mode_->branch(searched[size + 1], all_iterations, found, result, loc)[0];
  return results;
}

}  // namespace lantern::core::ad
