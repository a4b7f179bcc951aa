// Index-set splitting for sums: what a nest of loops adds to neighbouring elements, element by element.
#pragma once

#include <optional>
#include <vector>

#include "lantern/compiler/passes/array/nest.hpp"

namespace lantern::passes {

/// An addition to an element of a tensor.
struct Addition {
  Op* op = nullptr;
  std::vector<std::int64_t> by;  ///< which iteration's element it is, from the iteration that adds (Place)
};

/// Iterations of a level, from first + `from` to below last + `to`.
struct Span {
  std::int64_t from = 0, to = 0;
};

/// The most iterations between neighbours, and between them and zeros, at a level.
inline constexpr std::int64_t widest = 6;

/// The distances of additions, level by level, from the smallest to the largest.
std::vector<Span> spread(const std::vector<Addition>& adds);

/// How a tensor begins of which elements are set instead of added to.
struct Start {
  /// What elements hold that are not zero at the start: those of the tensor that is written itself, or of
  /// another one that all other elements are taken from; null where all begin with zeros.
  Value* old = nullptr;
  bool in_place = false;    ///< `old` is the tensor that is written: elements that are not reached stay
  std::vector<Span> zeros;  ///< level by level, the elements that are zero at the start; none: all
  double zero = 0.0;        ///< which zero that is, 0 or -0
};

/// Appends loops in which every element takes what the iterations around it add to it:
///
///   for i, j: t[i - 1, j] += x(i, j); t[i, j] += y(i, j); t[i, j + 1] += z(i, j);
///
///   becomes   for the rows r that t[r, .] has all neighbours in the nest:
///               for j: t[r, j] += x(r + 1, j) + y(r, j) + z(r, j - 1);     and the elements at both ends
///             for the others: the same, of the neighbours that there are
///
/// The last loop of the nest goes along a row. All additions are to the same places but for distances. Rows
/// with fewer iterations than ends, and parts of rows in a flat array, of which nothing may touch more than the
/// neighbours do, take what each neighbour adds by itself. Where a start is given, all indices are counters,
/// one for each dimension (`direct`), and elements are set.
class GatheredNest {
 public:
  GatheredNest(ir::Module& module, const Nest& nest, std::vector<Addition> adds, bool direct)
      : module_(module),
        nest_(nest),
        adds_(std::move(adds)),
        spread_(spread(adds_)),
        direct_(direct && nest.depth() > 1) {}

  Value* run(ir::Builder& b, Value* t, const std::optional<Start>& start);

 private:
  using Adds = std::vector<const Addition*>;
  using Numbers = std::vector<Value*>;

  /// The row or element that is worked on.
  struct Here {
    Numbers numbers;        ///< of the levels so far
    Value* all = nullptr;   ///< whether all additions reach it; null: they do
    Value* zero = nullptr;  ///< whether it is among the rows that are zero at the start; null: it is
  };

  /// What rows of one distance add, where they are reached; of rows that are not, an iteration that there is.
  struct Group {
    std::vector<std::int64_t> by;
    Adds adds;
    Value* condition = nullptr;
    Numbers numbers;
  };

  Value* rows(ir::Builder& b, Value* t, const Here& here);
  Value* row(ir::Builder& b, Value* t, const Here& here);
  Value* masked(ir::Builder& b, Value* t, const Here& here);
  Value* one_by_one(ir::Builder& b, Value* t, const Here& here);
  Value* initialised(ir::Builder& b, Value* t, const Here& here);
  Value* line(ir::Builder& b, Value* t, const Numbers& numbers, const Adds& adds, bool set,
              const std::vector<Group>* groups = nullptr);
  Value* copy_outside_range(ir::Builder& b, Value* t, const Numbers& numbers, Value* from, Value* to);

  IterationCloner iterations(ir::Builder& b, const Numbers& numbers, const Offset& last) const;
  IterationCloner::Shifts shifts(const Addition& add, std::int64_t k) const;
  std::vector<Value*> place(IterationCloner& iterations, Value* t, const Addition& at, std::int64_t k) const;
  Value* store(IterationCloner& iterations, Value* t, const Addition& at, std::int64_t k, Value* v, bool set) const;
  Value* sum(IterationCloner& iterations, const Adds& adds, std::int64_t k, Value* sum) const;
  Value* sum(ir::Builder& b, const Offset& base, const Adds& adds, std::int64_t k,
             const std::vector<Group>& groups) const;

  Value* reaches(ir::Builder& b, std::size_t level, Value* number, const Span& span) const;
  Value* reaches(ir::Builder& b, const Numbers& row, const std::vector<std::int64_t>& by) const;
  Value* size(ir::Builder& b, Value* t, std::size_t level) const;
  const Nest::Level& level(std::size_t k) const { return nest_.levels[k]; }
  std::size_t last() const { return nest_.depth() - 1; }
  Span written_elements(std::size_t level) const;
  bool whole() const { return start_ && !start_->in_place; }
  /// What an element begins with.
  Value* zero_of(ir::Builder& b, const Value* t) const {
    return b.number(start_ ? start_->zero : 0.0, ir::Type(t->type.element()));
  }

  ir::Module& module_;
  const Nest& nest_;
  std::vector<Addition> adds_;
  std::vector<Span> spread_;
  bool direct_;
  std::optional<Start> start_;
  Value* wide_ = nullptr;  ///< whether a row has the iterations that its ends take; null: it needs none
  Value* some_ = nullptr;  ///< whether there is an iteration, where all of a tensor is written
};

}  // namespace lantern::passes
