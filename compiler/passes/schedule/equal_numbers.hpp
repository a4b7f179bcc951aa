// Which numbers are equal, by what checks have said before, and by what tapes hold.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/lanes.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::passes {

/// The size of a tensor as it is saved: a slice says it by its ends.
inline IndexForm saved_size(const Value* v, std::size_t dimension) {
  const Op* const op = v->def;
  if (op && op->is(Opcode::slice_) && dimension == 0)
    return index_form(op->operands[2]) - index_form(op->operands[1]);
  return size_form(v, dimension);
}

/// Equal numbers, or numbers that an earlier check has compared with each other.
class EqualNumbers {
 public:
  /// What a check says, once it has passed.
  void note(const Op& op) {
    if (!op.is(Opcode::check_) || !op.operands[0]->def) return;
    const Op& asked = *op.operands[0]->def;
    if (!asked.is(Opcode::eq_) || !asked.operands[0]->type.is_integer()) return;
    const IndexForm x = index_form(asked.operands[0]), y = index_form(asked.operands[1]);
    join(place(x), place(y));
    const IndexForm a = in_terms_of_others(x), b = in_terms_of_others(y);
    if (!put_for(a, b) && !put_for(b, a)) solve(a - b);
  }
  /// Of what a block takes from tapes: sizes and numbers that were equal where one block saved them, each on
  /// a tape of its own, or that are still known by another name.
  void note_saved(const TapeUses& tapes, const Block* block) {
    struct Saved {
      const Block* where;
      IndexForm then, now;
    };
    std::vector<Saved> all;
    for (const Op* pop : block->ops) {
      if (!pop->is(Opcode::pop_) || all.size() > most_saved) continue;
      const auto tape = tapes.find(pop->integer);
      if (tape == tapes.end() || tape->second.size() != 2) continue;
      const Op* const push = tape->second[tape->second[0] == pop ? 1 : 0];
      if (!push->is(Opcode::push_)) continue;
      const Value *const now = pop->result(), *const then = push->operands[0];
      if (now->type == ir::I64) all.push_back({push->parent, index_form(then), index_form(now)});
      if (now->type.is_tensor())
        for (std::size_t d = 0; d < static_cast<std::size_t>(now->type.rank()); ++d)
          all.push_back({push->parent, saved_size(then, d), size_form(now, d)});
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto unknowns = all[i].then.unknowns();
      if (std::ranges::all_of(unknowns, [&](const Unknown& u) { return ir::visible_from(u.value, block); }))
        join(place(all[i].now), place(all[i].then));
      for (std::size_t k = 0; k < i; ++k)
        if (all[i].where == all[k].where && all[i].then == all[k].then)
          join(place(all[i].now), place(all[k].now));
    }
  }
  bool operator()(const IndexForm& a, const IndexForm& b) const {
    if (a == b) return true;
    const auto x = std::ranges::find(forms_, a), y = std::ranges::find(forms_, b);
    if (x != forms_.end() && y != forms_.end() && root(x - forms_.begin()) == root(y - forms_.begin())) return true;
    return (!others_.empty() && in_terms_of_others(a) == in_terms_of_others(b)) || of_equal_factors(a, b);
  }
  bool operator()(const Value* a, const Value* b) const {
    return same_number(a, b) || (*this)(index_form(a), index_form(b));
  }

 private:
  /// Sizes from tapes that are compared with each other.
  static constexpr std::size_t most_saved = 200;

  /// Where a number by itself is equal to a form without it, as in n = m and in n = 3, it is left out of forms: of products of
  /// sizes it is known then that they are equal.
  bool put_for(const IndexForm& number, const IndexForm& form) {
    const auto unknowns = number.unknowns();
    if (unknowns.size() != 1 || number != IndexForm::of(unknowns[0])) return false;
    if (std::ranges::count(form.unknowns(), unknowns[0]) > 0) return false;
    others_.emplace(unknowns[0], form);
    return true;
  }
  /// The product that a form is by itself: where it is written as one, it would be too long.
  static const Op* product(const IndexForm& form) {
    const auto unknowns = form.unknowns();
    if (unknowns.size() != 1 || unknowns[0].is_size() || form != IndexForm::of(unknowns[0])) return nullptr;
    const Op* const op = unknowns[0].value->def;
    return op && op->is(Opcode::mul_) ? op : nullptr;
  }
  bool of_equal_factors(const IndexForm& a, const IndexForm& b) const {
    const Op *const x = product(a), *const y = product(b);
    if (!x || !y) return false;
    const auto equal = [&](std::size_t i, std::size_t k) {
      return (*this)(static_cast<const Value*>(x->operands[i]), static_cast<const Value*>(y->operands[k]));
    };
    return (equal(0, 0) && equal(1, 1)) || (equal(0, 1) && equal(1, 0));
  }

  /// What is 0 tells one of its numbers by the others: of n - k + 1 = m - 2 it is known what n is.
  void solve(const IndexForm& zero) {
    for (const Unknown& u : zero.unknowns()) {
      const auto by = zero.split(u);
      const auto factor = by ? by->coefficient.number() : std::nullopt;
      if (!factor || (*factor != 1 && *factor != -1)) continue;
      others_.emplace(u, by->rest * IndexForm(-*factor));
      return;
    }
  }
  IndexForm in_terms_of_others(IndexForm form) const {
    for (bool again = !others_.empty(); again;) {  // each was put in terms of those before it: this ends
      again = false;
      for (const Unknown& u : form.unknowns()) {
        const auto by = others_.find(u);
        if (by == others_.end() || !form.split(u)) continue;
        form = form.with(u, by->second);
        again = true;
      }
    }
    return form;
  }

  using Place = std::ptrdiff_t;
  Place place(const IndexForm& form) {
    const auto at = std::ranges::find(forms_, form);
    if (at != forms_.end()) return at - forms_.begin();
    forms_.push_back(form);
    parent_.push_back(std::ssize(parent_));
    return std::ssize(parent_) - 1;
  }
  Place root(Place p) const {
    while (parent_[static_cast<std::size_t>(p)] != p) p = parent_[static_cast<std::size_t>(p)];
    return p;
  }
  void join(Place a, Place b) { parent_[static_cast<std::size_t>(root(a))] = root(b); }

  std::map<Unknown, IndexForm> others_;
  std::vector<IndexForm> forms_;
  std::vector<Place> parent_;
};

/// The constant that an index counts from, up to a size; nothing for other indices.
inline std::optional<std::int64_t> start_of_run(const Value* index, const IndexForm& size, const EqualNumbers& equal) {
  const Op* const loop = index->def ? nullptr : index->block->parent;
  if (!loop || !loop->is(Opcode::loop_)) return {};
  const auto count = counted(loop);
  if (!count || count->number != index || !constant(count->first) || !equal(index_form(count->bound), size)) return {};
  return constant(count->first)->integer;
}

}  // namespace lantern::passes
