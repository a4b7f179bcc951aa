// Symbolic indices: an integer as a polynomial in values about which nothing more is known.
//
//   k = i * nx + j - 1    is    i nx  +  j  -  1    of the counters i and j and the number nx
//
// One analysis of indices for all passes: which iteration of a loop an element belongs to, which elements lie side
// by side, which are the same. Arithmetic is the machine's, modulo 2^64, so that the sum is the value even
// where something wraps.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

/// An integer of which nothing more is known: a value, or a size of a tensor that others may have the shape
/// of.
struct Unknown {
  const Value* value = nullptr;
  int dimension = -1;  ///< of the tensor; -1: the value itself

  Unknown(const Value* v, int d = -1) : value(v), dimension(d) {}
  bool is_size() const { return dimension >= 0; }
  bool operator==(const Unknown&) const = default;
  /// By age: forms, and what is made of them, are the same in each run.
  std::strong_ordering operator<=>(const Unknown& o) const {
    return std::pair(value->number, dimension) <=> std::pair(o.value->number, o.dimension);
  }
};

/// A polynomial in such integers, with integer coefficients.
class IndexForm {
 public:
  using Product = std::vector<Unknown>;  ///< in a fixed order; empty: of the number by itself

  IndexForm() = default;
  /*implicit*/ IndexForm(std::int64_t number);
  static IndexForm of(const Unknown& unknown);

  const std::map<Product, std::int64_t>& terms() const { return terms_; }
  /// The number that it is, where nothing else is in it.
  std::optional<std::int64_t> number() const;
  /// What is in it, each once.
  std::vector<Unknown> unknowns() const;

  /// coefficient * v + rest, where neither holds v; nothing where v is multiplied by itself.
  struct Split;
  std::optional<Split> split(const Unknown& v) const;
  /// With a form put in the place of an unknown that is not multiplied by itself.
  IndexForm with(const Unknown& v, const IndexForm& by) const;

  /// What of it is so many times something, without its number.
  IndexForm divided(std::int64_t by) const;

  IndexForm& operator+=(const IndexForm& o) { return add(o, 1); }
  IndexForm& operator-=(const IndexForm& o) { return add(o, -1); }
  friend IndexForm operator+(IndexForm a, const IndexForm& b) { return a += b; }
  friend IndexForm operator-(IndexForm a, const IndexForm& b) { return a -= b; }
  friend IndexForm operator*(const IndexForm& a, const IndexForm& b);
  bool operator==(const IndexForm&) const = default;

 private:
  IndexForm& add(const IndexForm& o, std::int64_t factor);
  void add(const Product& p, std::int64_t factor);

  std::map<Product, std::int64_t> terms_;  ///< none is 0
};

struct IndexForm::Split {
  IndexForm coefficient, rest;
};

/// The form of an i64. What a loop carries and steps by a constant is written in terms of what the loop
/// counts by, the parameter of its body.
IndexForm index_form(const Value* v);

/// A tensor of the same shape, made as early in the program as is known.
const Value* shape_source(const Value* tensor);

/// The form of a tensor's size in a dimension: a number, what a fill was given, or a size of the tensor that
/// it has its shape from.
IndexForm size_form(const Value* tensor, std::size_t dimension);

/// How many elements a tensor has.
IndexForm element_count(const Value* tensor);

/// True where the indices of two accesses have the same forms.
bool same_place(const Op& a, const Op& b);

/// What a loop counts by: in its body the value takes each number from `first` to `last`, once.
struct Counter {
  const Value* index = nullptr;  ///< the body's parameter
  int step = 1;                  ///< or -1
  IndexForm first, last;
};
/// Nothing for a loop that does not count by ones.
std::optional<Counter> counter_of(const Op* loop);

/// That low <= high - gap, or (`differ`) that the two are not equal.
struct Comparison {
  const Value *low = nullptr, *high = nullptr;
  std::int64_t gap = 0;
  bool differ = false;
};
/// The comparisons of integers that hold where a condition holds, or where it does not.
std::vector<Comparison> comparisons(const Value* condition, bool holds);

/// True for what is made in a block or below.
bool made_in(const Value* v, const Block* block);
/// True for a form of what is made elsewhere.
bool made_outside(const IndexForm& f, const Block* block);

/// True where no iteration of a loop changes an element that another one accesses, of all these accesses to
/// elements of one tensor (get, set, add_at), made in the loop's body or in loops below. Of two accesses one
/// dimension tells:
///  - both indices are S i + q, i being the loop's counter, with values of q that differ by less than S: as in a[i],
///    a[2 * i + 1], and, for j from 1 to below nx - 1, a[i * nx + j]. (For a flat index into several
///    dimensions that is their delinearisation: Grosser et al., "Optimistic delinearization of parametrically
///    sized arrays", ICS 2015.)
///  - or all values of one lie above all of the other: as in a[j] and a[k], where j starts at n and k ends
///    there.
/// (Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, chapter 3: the strong SIV test
/// with its bounds, and Banerjee's inequalities.)
bool no_loop_carried_dependence(const std::vector<const Op*>& accesses, const Op* loop);

/// True where a form is not negative, whatever the iteration, where an operation is.
bool never_negative(const IndexForm& f, const Op& at);

/// True where an access to an element (get, set, add_at), or a row (take), certainly has an index within a
/// dimension.
bool in_range(const Op& access, std::size_t dimension);
/// The same of all dimensions of an access to an element.
bool in_range(const Op& access);

/// Between which indices all elements lie that an access reaches in the iterations of a loop and of loops inside
/// it, in terms of what is made outside; nothing where that is not known.
struct IndexRange {
  IndexForm first, last;
};
std::optional<IndexRange> range_in(const Op& access, std::size_t dimension, const Op* loop);

/// A form as operations.
Value* materialise(ir::Builder& b, const IndexForm& f);

/// True where two accesses to elements of tensors of one shape certainly are to different ones, whenever `a`
/// is made: for k below j, a[i * n + k] is not a[i * n + j].
bool no_alias(const Op& a, const Op& b);

/// Which iterations of a loop are meant, seen from one of them.
enum class Iteration { earlier, same, later, any };
/// The same for two accesses in a loop, `b` in such an iteration as seen from `a`; the loops around are each in one
/// iteration. (A direction vector = .. = < * .. *, level by level: Allen and Kennedy, 2001, 2.2.)
bool no_alias(const Op& a, const Op& b, const Op* loop, Iteration when);

/// True where an access to an element (get, set, add_at) would be in range also if it were made where `from`,
/// which is the operation itself or one around it, is: what the loops count to says so, or an access
/// beside that, or two between which it lies.
bool in_range_at(const Op& access, const Op& from);

/// True where a tensor certainly has elements when an operation is reached: another access to one of its
/// shape came before, or is on both sides of the operation, which is a branch.
bool has_elements_at(const Value* tensor, const Op& from);

}  // namespace lantern::passes
