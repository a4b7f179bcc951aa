// Effects, checks and updates of tensors that a loop would pass.
#include "lantern/compiler/passes/schedule/loop_order.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/lanes.hpp"
#include "lantern/compiler/passes/schedule/views.hpp"

namespace lantern::passes {

std::vector<Block*> host_blocks(ir::Function& f) {
  std::vector<Block*> all{f.body};
  ir::walk(f.body, [&](const Op* op) {
    if (op->is(Opcode::loop_) && ir::is_parallel(*op)) return false;
    all.insert(all.end(), op->blocks.begin(), op->blocks.end());
    return true;
  });
  return all;
}

bool only_computes(const Op& op) {
  return ir::info(op.code).elementwise || op.is(Opcode::constant_, Opcode::yield_, Opcode::loop_,
                                                Opcode::branch_, Opcode::dim_, Opcode::cast_, Opcode::undef_);
}

std::unordered_set<const Value*> captured_by(const std::vector<Op*>& loops) {
  std::unordered_set<const Value*> all;
  for (const Op* loop : loops) {
    all.insert(loop->operands.begin(), loop->operands.end());
    for (Block* b : loop->blocks)
      ir::walk(b, [&](const Op* op) {
        for (const Value* v : op->operands)
          if (!made_in(v, b) && !constant(v)) all.insert(v);
      });
  }
  return all;
}

bool uses_tapes(const Op* loop) {
  bool found = false;
  ir::walk(loop->blocks[1], [&](const Op* op) { found |= is_on_tape(*op); });
  return found;
}

bool may_fail(const Op* loop, const EqualNumbers& equal, const IndexRanges* ranges) {
  bool may = false;
  ir::walk(loop->blocks[1], [&](const Op* op) {
    if (is_access(*op)) {
      for (std::size_t d = 0; d < static_cast<std::size_t>(op->operands[0]->type.rank()); ++d)
        may |= !in_range(*op, d) &&
               start_of_run(op->operands[1 + d], size_form(op->operands[0], d), equal).value_or(-1) < 0 &&
               !(ranges && ranges->of(*op, 1 + d).is_inside());
      return;
    }
    const Op* const divisor = divides_integers(*op) ? constant(op->operands[1]) : nullptr;
    may |= !only_computes(*op) || (divides_integers(*op) && !(divisor && divisor->integer > 0));
  });
  return may;
}

const Doings& BlockDoings::of(const Op* op) {
  const auto [it, added] = known_.try_emplace(op);
  if (!added) return it->second;
  Doings& d = it->second;
  const auto look = [&](const Op* o, bool in_body) {
    if (o->is(Opcode::check_))
      d.checks = true;
    else
      d.keeps_order |= ir::keeps_order(*o);
    if (is_on_tape(*o)) d.tapes.push_back(o->integer);
    for (const Value* v : o->operands) {
      d.operands.push_back(v);
      if (!v->type.is_tensor()) continue;
      const Value* const tensor = viewed(v);
      if (updates(*o)) d.updated.push_back(tensor);
      if (o->is(Opcode::call_)) d.called.push_back(tensor);
      if (!o->is(Opcode::reshape_, Opcode::dim_)) d.touched.push_back(tensor);
      if (in_body) d.inside.push_back(tensor);
    }
  };
  look(op, false);
  for (std::size_t i = 0; i < op->blocks.size(); ++i)
    ir::walk(op->blocks[i], [&](const Op* o) { look(o, i == 1); });
  const auto once = [](auto& all) {
    std::ranges::sort(all);
    const auto [first, last] = std::ranges::unique(all);
    all.erase(first, last);
  };
  for (std::vector<const Value*>* all : {&d.operands, &d.updated, &d.called, &d.touched, &d.inside})
    once(*all);
  once(d.tapes);
  return d;
}

BlockUsers::BlockUsers(const Block* block, BlockDoings& doings) : doings_(doings) {
  for (Op* op : block->ops) note(op);
}

void BlockUsers::note(Op* op) {
  for (const Value* v : doings_.of(op).operands) users_[v].push_back(op);
}

std::vector<Op*> BlockUsers::noted(const Value* v) const {
  const std::vector<Op*>* const all = users_.find(v);
  return all ? *all : std::vector<Op*>();
}

bool BlockUsers::others_use(const Value* v, const Op* user) const {
  return std::ranges::any_of(noted(v), [&](const Op* op) {
    return op != user && !gone_.contains(op) && std::ranges::binary_search(doings_.of(op).operands, v);
  });
}

void BlockUsers::replace(const Renaming& names) {
  for (const auto& [from, to] : names) {
    const std::vector<Op*> users = noted(from);
    for (Op* op : users) {
      for (Value*& v : op->operands) v = ir::renamed(names, v);
      for (Block* b : op->blocks) ir::rename(b, names);
    }
    std::vector<Op*>& now = users_[to];
    now.insert(now.end(), users.begin(), users.end());
    // What has a view of it knows the tensor by its name.
    std::vector<Op*> changed = users;
    for (std::size_t i = 0; i < changed.size(); ++i) {
      doings_.forget(changed[i]);
      if (!changed[i]->is(Opcode::reshape_)) continue;
      const std::vector<Op*> more = noted(changed[i]->result());
      changed.insert(changed.end(), more.begin(), more.end());
    }
  }
}

std::optional<Between> between(const std::vector<Op*>& loops, const Op* last, std::ptrdiff_t most,
                               BlockDoings& doings, ir::FunctionRef<std::vector<Op*>(Op*)> together) {
  Between found;
  for (const Op* loop : loops) found.made.insert(loop->results.begin(), loop->results.end());
  const auto& ops = loops.back()->parent->ops;
  const auto from = std::ranges::find(ops, loops.back()), to = std::ranges::find(ops, last);
  if (to - from > most) return {};
  std::unordered_set<std::int64_t> later_tapes;
  const auto needs = [&](const Op* op) {
    const Doings& d = doings.of(op);
    return std::ranges::any_of(d.operands, [&](const Value* v) { return found.made.contains(v); }) ||
           std::ranges::any_of(d.tapes, [&](std::int64_t tape) { return later_tapes.contains(tape); });
  };
  for (auto it = from + 1; it != to;) {
    const std::vector<Op*> unit = together(*it);
    it += std::ssize(unit);
    const bool later = std::ranges::any_of(unit, needs);
    for (Op* op : unit) {
      if (later) {
        found.made.insert(op->results.begin(), op->results.end());
        const std::vector<std::int64_t>& tapes = doings.of(op).tapes;
        later_tapes.insert(tapes.begin(), tapes.end());
      }
      (later ? found.later : found.earlier).push_back(op);
    }
  }
  return found;
}

bool undisturbed(const std::vector<Op*>& loops, const Op* last, const Between& between, const Reordering& how,
                 BlockDoings& doings) {
  std::unordered_set<const Value*> read, updated;
  bool saves = uses_tapes(last);
  for (const Op* loop : loops) {
    saves |= uses_tapes(loop);
    read.insert(doings.of(loop).inside.begin(), doings.of(loop).inside.end());
  }
  for (const Value* v : last->operands) {
    if (!v->type.is_tensor() || how.handed_on.contains(v)) continue;
    if (read.contains(viewed(v))) return false;
    updated.insert(viewed(v));
  }
  const auto any_of = [](const std::vector<const Value*>& tensors,
                         const std::unordered_set<const Value*>& set) {
    return std::ranges::any_of(tensors, [&](const Value* v) { return set.contains(v); });
  };
  // What the host saves is saved in its own order, unless an iteration saves something, too.
  const auto stays = [&](const Doings& d, bool fails) {
    return (d.checks && fails) || d.keeps_order || (saves && !d.tapes.empty());
  };
  for (const Op* op : between.earlier)
    if (const Doings& d = doings.of(op); stays(d, how.first_fails) || any_of(d.updated, read)) return false;
  for (const Op* op : between.later)
    if (const Doings& d = doings.of(op); stays(d, how.last_fails) || any_of(d.touched, updated)) return false;
  return true;
}

}  // namespace lantern::passes
