// Saves loop-invariant reads once per loop instead of once per iteration, when the tensor is overwritten later.
//
//   for k                                   for k
//     for i                                   row = { a[k n + j] for all j }     saved once for each k
//       for j                     becomes     for i
//         a[i n + j] -= f a[k n + j]            for j
//                                                 a[i n + j] -= f row[j]
//
// (Elimination with pivots, Gauss-Jordan, shortest ways over all nodes.) What the loop over i reads it does
// not write, but a later k may: the backward part does not find it in the tensor (settled.hpp), and a frame
// of each iteration of j would hold it once for each i. The forward part goes on reading the tensor.
//
// And of an array that gives its memory to another one, between which elements a parallel loop reads it:
// those are kept where the loop runs again in the backward part, not the whole array, which may be longer.
#include <algorithm>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/def_chain.hpp"
#include "lantern/compiler/passes/analysis/instance_count.hpp"
#include "lantern/compiler/passes/direct/unwinder.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"

namespace lantern::passes {

namespace {

/// What a loop starts with as the tensor that an access inside reads, if no iteration changes the element before
/// it is read; else null.
Value* unchanged_in(const Op* loop, const Op& get) {
  for (std::size_t s = 0; s < loop->operands.size(); ++s) {
    if (!loop->operands[s]->type.is_tensor()) continue;
    DefChain versions;
    if (!versions.collect_defs(loop, s) || !versions.values.contains(get.operands[0])) continue;
    const bool unchanged = std::ranges::all_of(
        versions.writes, [&](const Op* write) { return is_independent_of(get, *write, loop, Iteration::earlier); });
    return unchanged ? loop->operands[s] : nullptr;
  }
  return nullptr;
}

/// Of what is made in a loop: whether an index asks for nothing, or for what one loop inside counts alone.
bool asks_only(const IndexForm& index, const Op* loop, const Counter* inner) {
  return std::ranges::all_of(index.unknowns(), [&](const Unknown& u) {
    return !made_in(u.value, loop->blocks[1]) || (inner && !u.is_size() && u.value == inner->index);
  });
}

/// Whether each iteration of a loop reads another element: there are no more of these than the tensor has.
bool each_another(const std::vector<IndexForm>& indices, const Value* counter, const Op& get) {
  bool another = false;
  for (const IndexForm& index : indices) {
    const auto s = index.split(counter);
    if (!s) return false;  // multiplied by itself
    another |= never_negative(s->coefficient - 1, get) || never_negative(IndexForm(-1) - s->coefficient, get);
  }
  return another;
}

}  // namespace

/// The loops around an element's reading of which the outermost reads the same one in all iterations, and the one
/// inside that one which says which element it is, if any does.
std::optional<Unwinder::LoopInvariantReads> Unwinder::loop_invariant_reads(Region& home, const Op& get) const {
  std::vector<IndexForm> indices;
  for (std::size_t d = 1; d < get.operands.size(); ++d) indices.push_back(index_form(get.operands[d]));
  std::optional<LoopInvariantReads> found;
  Region* row = nullptr;
  std::optional<Counter> inner;
  for (Region* r = &home; r; r = r->parent) {
    if (r->kind == Region::Kind::side) continue;
    if (r->kind != Region::Kind::body || !r->bwd || !r->iterations) break;
    const Op* const loop = r->construct;
    const auto counter = counter_of(loop);
    const bool asked = counter && std::ranges::any_of(indices, [&](const IndexForm& f) {
                         return std::ranges::count(f.unknowns(), Unknown(counter->index)) > 0;
                       });
    if (asked) {
      if (row || !each_another(indices, counter->index, get)) break;
      row = r;
      inner = counter;
      continue;
    }
    const Counter* const by = inner ? &*inner : nullptr;
    if (!std::ranges::all_of(indices, [&](const IndexForm& f) { return asks_only(f, loop, by); })) break;
    if (by && !(made_outside(by->first, loop->blocks[1]) && made_outside(by->last, loop->blocks[1]))) break;
    Value* const tensor = unchanged_in(loop, get);
    if (!tensor) break;
    found = LoopInvariantReads{r, row, tensor};
  }
  return found;
}

/// An array of what is read in `n` iterations; or the last of that, where `first` is a number.
Value* Unwinder::collected(ir::Builder& b, Value* first, Value* n,
                           const std::function<Value*(ir::Builder&, Value*)>& read) {
  return build_for(b, b.integer(0), n, first, [&](ir::Builder& c, Value* index, Value* state) {
    Value* const element = read(c, index);
    return state->type.is_tensor() ? c.emit(Opcode::set_, {state, index, element}) : element;
  });
}

Value* Unwinder::new_array(ir::Builder& b, ir::Kind kind, Value* n) {
  return b.uninitialised(ir::Type::tensor(kind, {ir::dynamic}), {n});
}

/// For an element that all iterations of a loop around `home` read: where it is kept once for all of them.
/// Null where there is no such loop.
Value* Unwinder::kept_alike(Region& home, Value* v) {
  if (!v->def || !v->def->is(Opcode::get_)) return nullptr;
  const Op& get = *v->def;
  const auto alike = loop_invariant_reads(home, get);
  if (!alike || !alike->loop->parent || alike->loop->parent->visible()) return nullptr;
  Op* const loop = alike->loop->construct;
  const auto counter = counter_of(loop);
  const auto inner = alike->row ? counter_of(alike->row->construct) : std::nullopt;
  if (!counter) return nullptr;

  // In front of the loop, if that has an iteration: one element, or a row of them. An element that no iteration reads,
  // because a branch is not taken, may lie outside.
  Value* kept = nullptr;
  in_front_of(loop, loop->parent, [&] {
    ir::Builder b = into(loop->parent, loop->loc);
    const auto rank = get.operands.size() - 1;
    std::vector<Value*> sizes;
    for (std::size_t d = 0; d < rank; ++d)
      sizes.push_back(b.emit(Opcode::dim_, {alike->tensor}, static_cast<std::int64_t>(d)));
    Value* most = sizes[0];
    for (std::size_t d = 1; d < rank; ++d) most = b.emit(Opcode::mul_, {most, sizes[d]});
    const auto trip_count_of = [&](const Counter& c) { return materialise(b, c.last - c.first + IndexForm(1)); };
    Value* const wanted = inner ? trip_count_of(*inner) : b.integer(1);
    Value* const runs = b.emit(Opcode::lt_, {b.integer(0), trip_count_of(*counter)});
    Value* const n = b.emit(Opcode::select_, {runs, b.emit(Opcode::imin_, {wanted, most}), b.integer(0)});
    Value* const first = inner ? new_array(b, v->type.element(), b.emit(Opcode::imax_, {n, b.integer(0)}))
                               : b.undef(v->type);
    kept = collected(b, first, n, [&](ir::Builder& c, Value* iteration) {
      std::vector<Value*> access{alike->tensor};
      for (std::size_t d = 0; d < rank; ++d) {
        IndexForm index = index_form(get.operands[d + 1]);
        if (inner)
          index = index.with(inner->index, (inner->step > 0 ? inner->first : inner->last) +
                                               IndexForm(inner->step) * IndexForm::of(iteration));
        Value* const last = c.emit(Opcode::sub_, {sizes[d], c.integer(1)});
        access.push_back(
            c.emit(Opcode::imax_, {c.emit(Opcode::imin_, {materialise(c, index), last}), c.integer(0)}));
      }
      return c.op(Opcode::get_, access, {v->type})->result();
    });
    kept->name = v->name;
  });

  Region& around = *alike->loop->parent;
  Value* const there = at(around, kept);
  if (!inner) return home.saved[v] = there;
  return made_again(home, v, [&] {
    ir::Builder b = into(home.bwd, get.loc);
    Value* const iteration = b.emit(Opcode::sub_, {alike->row->iterations, b.integer(1)});
    return b.op(Opcode::get_, {there, iteration}, {v->type})->result();
  });
}

/// Between which of its elements a loop reads an array, where those are about as many as its iterations.
std::optional<IndexRange> Unwinder::part_read(const Op& get, const Op* loop) {
  constexpr std::int64_t few = 16;  // numbers are kept as easily
  if (get.operands[0]->type.rank() != 1) return {};
  const auto range = range_in(get, 0, loop);
  if (!range) return {};
  const IndexForm size = range->last - range->first + IndexForm(1);
  return size.number().value_or(few) >= few && footprint_covers(get, loop, size) ? range : std::nullopt;
}

namespace {

std::vector<Op*> reads_below(Block* block) {
  std::vector<Op*> reads;
  ir::walk(block, [&](Op* op) {
    if (op->is(Opcode::get_)) reads.push_back(op);
  });
  return reads;
}

/// What a loop reads of an array: elements between which others lie that it may not read are parts of their
/// own.
struct ReadParts {
  std::vector<std::vector<IndexRange>> parts;
  std::vector<std::pair<std::size_t, std::size_t>>
      reads;  ///< pairs: a read below the loop's body, by its number, and the number of its part
  std::vector<std::pair<std::size_t, Value*>>
      left;  ///< and which finds its element where the forward part has left it
  bool whole = true, known = true;

  /// The part of a range: that of ranges which begin so many elements before or behind it, whatever the
  /// iteration.
  std::size_t add(const IndexRange& range) {
    constexpr std::size_t most_parts = 4;
    const auto near = std::ranges::find_if(
        parts, [&](const auto& part) { return (range.first - part.front().first).number().has_value(); });
    if (near == parts.end() && parts.size() < most_parts) {
      parts.push_back({range});
      return parts.size() - 1;
    }
    auto& part = near == parts.end() ? parts.back() : *near;
    part.push_back(range);
    return static_cast<std::size_t>(&part - parts.data());
  }
};

}  // namespace

/// What a parallel loop reads of arrays that give way to others, and are not read from end to end as far as
/// can be seen: kept in front of the loop, and available in the backward part around it. `again`: its
/// iteration there.
Unwinder::Parts Unwinder::parts_of(Region& around, Op* loop, Block* again) {
  Parts parts;
  const std::vector<Op*> reads = reads_below(loop->blocks[1]), copies = reads_below(again);
  std::vector<Value*> order;
  std::unordered_map<const Value*, ReadParts> all;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    Value* const array = reads[i]->operands[0];
    if (made_in(array, loop->blocks[1]) || survives_forward_pass(array)) continue;
    const auto [it, added] = all.try_emplace(array);
    if (added) order.push_back(array);
    ReadParts& needs = it->second;
    if (Value* const tensor = final_version_of(reads[i]->result())) {
      needs.left.emplace_back(i, tensor);
      continue;
    }
    needs.whole &= covers_tensor(*reads[i], loop);
    const auto range = part_read(*reads[i], loop);
    needs.known &= range.has_value();
    if (range) needs.reads.emplace_back(i, needs.add(*range));
  }
  for (Value* array : order) {
    const ReadParts& needs = all.at(array);
    if ((needs.whole && !needs.reads.empty()) || !needs.known) continue;
    const auto copy_of = [&](std::size_t i) {
      return i < copies.size() && copies[i]->operands[0] == array ? copies[i] : nullptr;
    };
    const auto has_copy = [&](const auto& read) { return copy_of(read.first) != nullptr; };
    const auto of_array =
        std::ranges::count_if(copies, [&](const Op* op) { return op->operands[0] == array; });
    const bool same_reads = std::ranges::all_of(needs.reads, has_copy) &&
                       std::ranges::all_of(needs.left, has_copy) &&
                       needs.reads.size() + needs.left.size() == static_cast<std::size_t>(of_array);
    if (!same_reads) continue;  // what runs again is another loop: it has the whole array
    std::vector<Part> kept;
    for (const auto& part : needs.parts) kept.push_back(kept_part(around, loop, array, part));
    for (const auto& [i, part] : needs.reads) parts[copy_of(i)] = kept[part];
    for (const auto& [i, tensor] : needs.left) parts[copy_of(i)] = {tensor, nullptr};
  }
  return parts;
}

/// A copy of the elements between the first and the last of these ranges, in front of the loop.
Unwinder::Part Unwinder::kept_part(Region& around, Op* loop, Value* array,
                                   const std::vector<IndexRange>& ranges) {
  Value *first = nullptr, *kept = nullptr;
  in_front_of(loop, loop->parent, [&] {
    ir::Builder b = into(loop->parent, loop->loc);
    Value* end = nullptr;
    for (const IndexRange& r : ranges) {
      Value *const low = materialise(b, r.first), *const high = materialise(b, r.last + IndexForm(1));
      first = first ? b.imin({first, low}) : low;
      end = end ? b.imax({end, high}) : high;
    }
    first = b.imax({first, b.integer(0)});
    end = b.imin({end, b.emit(Opcode::dim_, {array}, 0)});
    // Of a loop without iterations the end may lie so far below the start that their difference wraps.
    Value* const n = b.sub({b.imax({end, first}), first});
    const ir::Kind kind = array->type.element();
    kept = collected(b, new_array(b, kind, n), n, [&](ir::Builder& c, Value* iteration) {
      return c.op(Opcode::get_, {array, c.add({first, iteration})}, {ir::Type(kind)})->result();
    });
    kept->name = array->name;
    part_copies_[kept->def] = array;
  });
  return {at(around, kept), at(around, first)};
}

}  // namespace lantern::passes
