// Loops of a block, moved beside those that they can join, then joined.
#include "lantern/compiler/passes/schedule/horizontal_fusion.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/index_ranges.hpp"
#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/analysis/lanes.hpp"
#include "lantern/compiler/passes/analysis/live_uses.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/schedule/element_nests.hpp"
#include "lantern/compiler/passes/schedule/loop_order.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

using ir::Builder;
using ir::Combine;

/// The iterations of a block of threads, of a loop that has one for each thread.
constexpr std::int64_t chunk = 1024;
/// Iterations of an inner loop that are worth a block of threads (codegen/kernels.cpp).
constexpr std::int64_t row_from = 16;
/// Bytes of arguments that every GPU passes to a kernel, less those that all kernels have
/// (codegen/kernels.cpp).
constexpr std::size_t most_arguments = 3800;
/// What a joined body weighs at most: a kernel has the registers of the member that needs most.
constexpr std::int64_t longest = 2400;
/// Operations between loops that are looked through, and groups that a loop might join.
constexpr std::ptrdiff_t far = 2000;
constexpr int most_tried = 8;

/// How a block of threads shares the iterations of a loop.
enum class Share {
  rows,    ///< it takes one, and shares those of the loops inside
  chunks,  ///< it takes 1024, each thread some
  flat,    ///< the same of a nest, as if it were one loop over the elements in memory
  places,  ///< the same of a nest whose iterations need their own indices, which are computed
};
/// The loops of a nest are one loop.
bool is_nest(Share share) { return share == Share::flat || share == Share::places; }

struct Member {
  Op* loop = nullptr;
  Share share = Share::rows;
  bool fails = true;
  std::int64_t weight = 0;
  std::string text;  ///< what it does, but for the values from around: members of one text have one body in the kernel
};

/// Operations in a loop and how they hang together, as a text without names.
std::string text_of(const Op* loop) {
  std::unordered_map<const Value*, std::size_t> own;
  std::string text;
  const auto word = [&](auto number) { text += std::to_string(number) + " "; };
  const auto define = [&](const Value* v) {
    own.emplace(v, own.size());
    text += v->type.str() + " ";
  };
  const auto note = [&](const Op* op) {
    word(static_cast<int>(op->code));
    word(op->integer);
    word(op->number);
    for (const Value* v : op->operands) {
      if (const auto known = own.find(v); known != own.end())
        word(known->second);
      else
        text += (v->def && v->def->is(Opcode::constant_) ? "=" + std::to_string(v->def->integer) + "," + std::to_string(v->def->number)
                                                         : v->type.str()) + " ";
    }
    for (const Value* v : op->results) define(v);
    for (const Block* b : op->blocks)
      for (const Value* v : b->params) define(v);
  };
  note(loop);
  for (Block* b : loop->blocks) ir::walk(b, note);
  return text;
}

/// Whether there is a loop inside that is worth a block of threads.
bool holds_rows(const Op* loop) {
  bool any = false;
  ir::walk(loop->blocks[1], [&](const Op* op) {
    if (!op->is(Opcode::loop_) || !ir::is_parallel(*op)) return;
    const auto iterations = most_iterations(op);
    any |= !iterations || *iterations >= row_from;
  });
  return any;
}

/// How the loop can be a member; nothing where it stays alone.
std::optional<Member> member(Op* loop, const EqualNumbers& equal, const IndexRanges& ranges) {
  if (!ir::is_parallel(*loop) || !works_on_elements(loop) || uses_tapes(loop)) return {};
  Member m{.loop = loop, .fails = may_fail(loop, equal, &ranges), .weight = weight(loop->blocks[1]), .text = {}};
  const std::vector<Op*> nest = perfect_nest(loop);
  const Op* const inner = only_loop(loop->blocks[1]);
  if (!inner || !ir::is_parallel(*inner)) {
    m.share = holds_rows(loop) ? Share::rows : Share::chunks;
  } else {
    if (goes_through_elements(nest, equal))
      m.share = Share::flat;
    else if (independent_iterations(nest))
      m.share = Share::places;
    else
      return {};
  }
  if (m.share != Share::rows && m.fails) return {};
  m.text = std::to_string(static_cast<int>(m.share)) + " " + text_of(loop);
  return m;
}

/// The loops of a block that will be one, side by side.
struct LaunchGroup {
  std::vector<Member> members;
  std::size_t number = 0;

  bool fails() const { return std::ranges::any_of(members, &Member::fails); }
  /// Of the kernel, once another member has joined.
  std::int64_t weight_with(const Member& other) const {
    std::unordered_map<std::string_view, std::int64_t> weights{{other.text, other.weight}};
    for (const Member& m : members) weights.try_emplace(m.text, m.weight);
    std::int64_t sum = 0;
    for (const auto& [text, weight] : weights) sum += weight;
    return sum;
  }
  std::vector<Op*> loops() const {
    std::vector<Op*> all;
    for (const Member& m : members) all.push_back(m.loop);
    return all;
  }
};

/// Bytes of the arguments that one kernel for all of them is given, at most.
std::size_t argument_bytes(const std::vector<Op*>& loops) {
  std::size_t own = 16 * loops.size();  // their sizes
  for (const Value* v : captured_by(loops))
    own += v->type.is_tensor() ? 24 + 8 * static_cast<std::size_t>(std::max(1, v->type.rank())) : 8;
  return own;
}

/// The loops of a block.
class SideBySide {
 public:
  SideBySide(ir::Module& module, const TapeUses& tapes, const IndexRanges& ranges, Block* block)
      : module_(module), block_(block), ranges_(ranges) {
    equal_.note_saved(tapes, block);
  }

  bool run() {
    const std::vector<Op*> ops = block_->ops;
    for (Op* op : ops) {
      equal_.note(*op);
      if (!op->is(Opcode::loop_)) continue;
      if (const auto m = member(op, equal_, ranges_)) place(*m);
    }
    bool any = false;
    for (const LaunchGroup& g : groups_) {
      if (g.members.size() < 2) continue;
      join(g);
      any = true;
    }
    return any;
  }

 private:
  /// Beside the latest group that it can join, or in one of its own.
  void place(const Member& m) {
    int tried = 0;
    for (auto g = groups_.rbegin(); g != groups_.rend() && tried < most_tried; ++g, ++tried) {
      if (!beside(*g, m)) continue;
      g->members.push_back(m);
      member_of_[m.loop] = g->number;
      std::rotate(std::prev(g.base()), g.base(), groups_.end());  // it is the latest now
      return;
    }
    groups_.push_back({.members = {m}, .number = groups_.size()});
    member_of_[m.loop] = groups_.back().number;
  }

  /// Whether it is a kernel, or holds some, that may tell a failure.
  bool may_fail_there(const Op* op) {
    const auto [it, added] = failing_.try_emplace(op, false);
    if (!added) return it->second;
    bool fails = op->is(Opcode::call_);
    if (op->is(Opcode::loop_) && ir::is_parallel(*op)) {
      fails = may_fail(op, equal_, &ranges_);
    } else {
      for (Block* b : op->blocks) ir::walk(b, [&](const Op* inner) { fails |= inner->is(Opcode::loop_); });
    }
    return failing_[op] = fails;
  }

  /// Moves a group to a later loop, where that can be.
  bool beside(const LaunchGroup& g, const Member& m) {
    std::vector<Op*> loops = g.loops();
    if (g.weight_with(m) > longest) return false;
    const auto found = between(loops, m.loop, far, doings_, [&](Op* op) {
      const auto number = member_of_.find(op);
      if (number != member_of_.end())
        return std::ranges::find(groups_, number->second, &LaunchGroup::number)->loops();
      return std::vector<Op*>{op};
    });
    if (!found) return false;
    const auto is_made = [&](const Value* v) { return found->made.contains(v); };
    if (std::ranges::any_of(doings_.of(m.loop).operands, is_made)) return false;
    const auto tells = [&](const Op* op) { return may_fail_there(op); };
    if (g.fails() && std::ranges::any_of(found->earlier, tells)) return false;
    if (m.fails && std::ranges::any_of(found->later, tells)) return false;
    const Reordering how{.first_fails = g.fails(), .last_fails = true, .handed_on = {}};
    if (!undisturbed(loops, m.loop, *found, how, doings_)) return false;
    loops.push_back(m.loop);
    if (argument_bytes(loops) > most_arguments) return false;
    auto& ops = block_->ops;
    const auto from = std::ranges::find(ops, loops.front()) - ops.begin(),
               to = std::ranges::find(ops, m.loop) - ops.begin();
    std::vector<Op*> order(ops.begin(), ops.begin() + from);
    order.insert(order.end(), found->earlier.begin(), found->earlier.end());
    order.insert(order.end(), loops.begin(), loops.end());
    order.insert(order.end(), found->later.begin(), found->later.end());
    order.insert(order.end(), ops.begin() + to + 1, ops.end());
    ops = std::move(order);
    return true;
  }

  /// A member while the joined loop is built: its first state there, and the elements or rows that it has.
  struct Part {
    const Member* member = nullptr;
    std::size_t state = 0;
    std::vector<std::size_t> states;  ///< of its own loop, without the index
    Value* size = nullptr;            ///< its iterations, or those of the nest
    Value* end = nullptr;             ///< of its iterations in the joined loop
    std::unordered_map<const Value*, Value*> views;
  };

  /// The loops as one.
  void join(const LaunchGroup& g) {
    auto& ops = block_->ops;
    Op* const behind = *(std::ranges::find(ops, g.members.back().loop) + 1);
    for (const Member& m : g.members) std::erase(ops, m.loop);
    Builder b = Builder::before(behind, g.members.front().loop->loc);
    std::vector<Part> parts;
    LoopValues state{b.integer(0)};
    for (const Member& m : g.members) {
      Part& p = parts.emplace_back();
      p.member = &m;
      p.state = state.size() - 1;
      const std::size_t index = counted(m.loop)->index;
      p.size = elements_or_rows(b, m);
      for (std::size_t i = 0; i < m.loop->operands.size(); ++i)
        if (i != index) {
          p.states.push_back(i);
          state.push_back(m.share == Share::flat ? view(b, p, m.loop->operands[i]) : m.loop->operands[i]);
        }
      Value* blocks = p.size;
      if (m.share != Share::rows) blocks = b.div({b.add({p.size, b.integer(chunk - 1)}), b.integer(chunk)});
      p.end = parts.size() == 1 ? blocks : b.add({parts[parts.size() - 2].end, blocks});
    }
    const std::vector<ir::Type> types = ir::types_of(state, 1);
    const LoopValues after = build_while(
        b, state,
        [&](Builder& head, const LoopValues& now) {
          return head.lt({now[0], parts.back().end});
        },
        [&](Builder& inside, const LoopValues& now) {
          LoopValues next = chain(b, inside, parts, 0, types, now);
          next.insert(next.begin(), inside.add({now[0], inside.integer(1)}));
          return next;
        });
    mark_parallel_over_elements(after[0]->def);
    ir::Renaming outside;
    for (const Part& p : parts) {
      const Op* const loop = p.member->loop;
      for (std::size_t k = 0; k < p.states.size(); ++k) {
        Value* const result = after[1 + p.state + k];
        Value* const old = loop->result(p.states[k]);
        result->name = old->name;
        outside[old] = p.member->share == Share::flat
                           ? b.emit(Opcode::reshape_, {result, loop->operands[p.states[k]]})
                           : result;
      }
    }
    ir::replace_uses(block_->function->body, outside);
    for (const Member& m : g.members)
      remark("horizontal_fusion", m.loop->loc,
             "is one launch with " + std::to_string(g.members.size() - 1) + " other loops");
  }

  /// How many iterations a loop has, or a flat nest.
  static Value* elements_or_rows(Builder& b, const Member& m) {
    Value* n = nullptr;
    for (const Op* loop : loops_of(m)) {
      Value* const bound = size(b, m, loop);
      n = n ? b.mul({n, bound}) : bound;
    }
    return n;
  }
  /// How many iterations one of its loops has.
  static Value* size(Builder& b, const Member& m, const Op* loop) {
    Value* const bound = made_here(b, counted(loop)->bound);
    return never_negative(index_form(bound), *m.loop) ? bound : b.imax({bound, b.integer(0)});
  }
  static std::vector<Op*> loops_of(const Member& m) {
    return is_nest(m.share) ? perfect_nest(m.loop) : std::vector<Op*>{m.loop};
  }

  /// The indices of a nest's loops in an iteration, the outermost first: quotients and remainders of its
  /// number.
  static std::vector<Value*> places(Builder& around, Builder& b, const Member& m, Value* index) {
    const std::vector<Op*> nest = perfect_nest(m.loop);
    std::vector<Value*> all(nest.size());
    for (std::size_t l = nest.size(); l-- > 0;) {
      // An iteration is there only where no size is 0; of an unused side nothing is known.
      Value* const n = l == 0 ? nullptr : around.imax({size(around, m, nest[l]), around.integer(1)});
      all[l] = l == 0 ? index : b.rem({index, n});
      if (l > 0) index = b.div({index, n});
    }
    return all;
  }

  /// The elements of a tensor as they lie in memory.
  static Value* view(Builder& b, Part& p, Value* tensor) {
    Value*& flat = p.views[tensor];
    if (!flat)
      flat = b.emit(
          Opcode::reshape_,
          {tensor, b.uninitialised(ir::Type::tensor(tensor->type.element(), {ir::dynamic}), {p.size})});
    return flat;
  }

  /// What an iteration makes of all states: it is the part's, or a later one's.
  LoopValues chain(Builder& around, Builder& b, std::vector<Part>& parts, std::size_t i,
                   const std::vector<ir::Type>& types, const LoopValues& now) {
    const auto own = [&](Builder& in) {
      in.loc = parts[i].member->loop->loc;
      Value* const row = i == 0 ? now[0] : in.imax({in.sub({now[0], parts[i - 1].end}), in.integer(0)});
      LoopValues all(now.begin() + 1, now.end());
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(parts[i].state);
      const LoopValues made =
          iterations(around, in, parts[i], row, LoopValues(first, first + std::ssize(parts[i].states)));
      std::ranges::copy(made, first);
      return all;
    };
    if (i + 1 == parts.size()) return own(b);
    return build_branch(b, b.lt({now[0], parts[i].end}), types, own,
                        [&](Builder& in) { return chain(around, in, parts, i + 1, types, now); });
  }

  /// A row of a part, or 1024 of its iterations.
  LoopValues iterations(Builder& around, Builder& b, Part& p, Value* row, const LoopValues& state) {
    if (p.member->share == Share::rows) return body(around, b, p, row, state);
    Value* const first = b.mul({row, b.integer(chunk)});
    Value* const last = b.imin({b.add({first, b.integer(chunk)}), p.size});
    const LoopValues after = build_for(
        b, first, last, state,
        [&](Builder& in, Value* index, const LoopValues& now) { return body(around, in, p, index, now); });
    mark_parallel_over_elements(after[0]->def);
    return after;
  }

  /// The body of a part's loop, or of the nest: its operations move here.
  LoopValues body(Builder& around, Builder& b, Part& p, Value* index, const LoopValues& state) {
    const Op* const loop = p.member->loop;
    const bool flat = p.member->share == Share::flat, nested = is_nest(p.member->share);
    const std::vector<Op*> nest = loops_of(*p.member);
    ir::Renaming names;
    const std::vector<Value*> indices = p.member->share == Share::places
                                            ? places(around, b, *p.member, index)
                                            : std::vector<Value*>(nest.size(), index);
    for (std::size_t l = 0; l < nest.size(); ++l) names[counted(nest[l])->number] = indices[l];
    for (std::size_t k = 0; k < p.states.size(); ++k) {
      Value* inside = loop->blocks[1]->params[p.states[k]];
      names[inside] = state[k];
      for (std::size_t l = 1; l < nest.size(); ++l) {
        const Op* const inner = nest[l];
        const auto at = std::ranges::find(inner->operands, inside) - inner->operands.begin();
        if (at == std::ssize(inner->operands)) break;
        inside = inner->blocks[1]->params[static_cast<std::size_t>(at)];
        names[inside] = state[k];
      }
    }
    const auto rename = [&](Op* op) {
      for (Value*& v : op->operands) v = ir::renamed(names, v);
    };
    LoopValues next;
    for (const std::size_t i : p.states) {
      Value* v = loop->blocks[1]->ops.back()->operands[i];
      while (nested && v->def && std::ranges::find(nest, v->def) != nest.end())
        v = v->def->blocks[1]->ops.back()->operands[v->index];
      next.push_back(v);
    }
    for (const Op* from : nest) {
      std::vector<Op*> ops = std::exchange(from->blocks[1]->ops, {});
      for (Op* op : ops) {
        if (op->is(Opcode::yield_) || std::ranges::find(nest, op) != nest.end()) continue;
        rename(op);
        for (Block* inner : op->blocks) ir::walk(inner, rename);
        if (flat && is_access(*op)) by_place(around, p, *op, index);
        b.take(op);
      }
    }
    for (Value*& v : next) v = ir::renamed(names, v);
    return next;
  }

  /// An access of a nest, by the place of its element in memory.
  static void by_place(Builder& around, Part& p, Op& access, Value* index) {
    Value* const tensor = access.operands[0];
    std::vector<Value*> operands{
        is_write(access) || tensor->type.rank() == 1 ? tensor : view(around, p, tensor), index};
    if (is_write(access)) {
      operands.push_back(access.operands.back());
      access.result()->type = tensor->type;
    }
    access.operands = std::move(operands);
  }

  ir::Module& module_;
  Block* block_;
  const IndexRanges& ranges_;  ///< before loops were joined
  EqualNumbers equal_;
  BlockDoings doings_;
  std::vector<LaunchGroup> groups_;
  std::unordered_map<const Op*, std::size_t> member_of_;  ///< the number of its group
  std::unordered_map<const Op*, bool> failing_;
};

}  // namespace

void horizontal_fusion(ir::Module& module) {
  std::unordered_set<const ir::Function*> inside;  // threads call them
  for (const ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    ir::walk(f->body, [&](const Op* op) {
      if (op->is(Opcode::loop_) && ir::is_parallel(*op)) inside.merge(ir::callees(op->blocks[1]));
    });
  }
  const TapeUses tapes = tape_uses(module);
  const bool any = in_direct_style(module, [&](ir::Function& f) {
    bool joined = false;
    if (inside.contains(&f)) return false;
    const LiveUses live(f);
    const IndexRanges ranges(f, live);
    for (Block* b : host_blocks(f)) joined |= SideBySide(module, tapes, ranges, b).run();
    return joined;
  });
  if (any) simplify(module);
}

}  // namespace lantern::passes
