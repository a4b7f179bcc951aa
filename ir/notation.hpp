// Index notation: what a tensor operation computes, said by the indices of its operands.
//
//   "ij,jk->ik"        r[i,k] = sum over j of x[i,j] y[j,k]: a product of the operands, summed over every index
//                      that the result does not have (Einstein's convention, written as numpy.einsum does)
//   "ij+=i,j"          r[i,j] = x[i,j] + y[i] z[j]: the first operand, with products added to it
//   "j,=ij->ij"        r[i,j] = x[j]: of the second operand only the sizes count
//   "[2i+k-1],k->i;i"  r[i] = sum over k of x[2i+k-1] y[k]: a place may be a sum of indices. Points where it lies
//                      outside are left out. After `;` come indices whose sizes are operands, behind the tensors
//   "T,=LT->LT"        a capital represents any number of indices in a row
//
// Notations are closed under differentiation (Urban and van der Smagt, Automatic differentiation for tensor
// algebras, 2017): what an operand's adjoint receives is the product of the result's adjoint and of the other
// operands, summed over every index that the operand does not have. So the type rule, the value, the
// sparsity, the derivatives and the loops of such an operation all follow from its notation.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lantern/ir/opcode.hpp"
#include "lantern/ir/type.hpp"

namespace lantern::ir {

/// Where along one dimension an operand is read: a sum of multiples of indices, mostly one index alone.
struct Subscript {
  struct Term {
    char letter;
    std::int64_t factor;
    bool operator==(const Term&) const = default;
  };
  std::vector<Term> terms;
  std::int64_t constant = 0;

  bool is_letter() const { return terms.size() == 1 && terms[0].factor == 1 && constant == 0; }
  bool is(char letter) const { return is_letter() && terms[0].letter == letter; }
  char letter() const { return terms[0].letter; }
  bool operator==(const Subscript&) const = default;
};
using Subscripts = std::vector<Subscript>;

/// The indices in it, each once.
std::string letters_of(const Subscripts& at);

/// Letters for indices, in the order in which they are given out.
inline constexpr std::string_view index_letters = "ijklmnopqrstuvwxyzabcdefgh";

struct Notation {
  struct Operand {
    Subscripts at;
    bool shape = false;  ///< only its sizes count
    bool operator==(const Operand&) const = default;
  };
  std::vector<Operand> operands;  ///< with `accumulates` the first is what the products are added to
  Subscripts result;
  std::string sizes;  ///< letters whose sizes are operands of their own
  bool accumulates = false;

  /// How many operands there are, sizes included.
  std::size_t arity() const { return operands.size() + sizes.size(); }
  /// True for an operand that the products have as a factor.
  bool is_factor(std::size_t i) const {
    return i < operands.size() && !operands[i].shape && !(accumulates && i == 0);
  }
  std::size_t factors() const;
  /// The indices, those of the result first.
  std::string letters() const;
  /// "ij,jk->ik".
  std::string text() const;
};

/// Parses a notation; Error with what is wrong. Each text is parsed once per process.
const Notation& notation(std::string_view text);
/// The text as every notation with the same meaning has it, its letters by first use; it lives for ever.
const char* canonical(const Notation& n);

/// The notation of an operation: that of its row, or its own text; null for operations without one.
const Notation* notation_of(Opcode op, const char* text);
/// With letters in place of capitals, for operands of these types. Error (without the operation's name) where
/// ranks do not fit.
Notation concrete(const Notation& n, std::span<const Type> operands);

/// The attribute of an operation in index notation of which no place lies outside its operand: whoever makes it has
/// seen to that. (1 says of any operation that it works in its operand's memory: passes/inplace.)
inline constexpr std::int64_t inside = 2;

/// What operand `i` receives from the adjoint of the result, and of which operands: `order` has their
/// numbers, and `adjoint_of_result` for g; what it is added to is left out. `n` is concrete.
inline constexpr std::size_t adjoint_of_result = ~std::size_t{0};
struct Call {
  Opcode code = Opcode::count_;
  const char* text = nullptr;  ///< where the operation has no name of its own
  std::vector<std::size_t> order;
  /// What it is added to: nothing, the operand's adjoint, or zeros of the operand's shape.
  enum class Into : std::uint8_t { nothing, adjoint, zeros } into = Into::nothing;
};
Call adjoint(const Notation& n, std::size_t i);
/// The named operation that computes this, with its operands in its order, else einsum or add_einsum.
Call named(const Notation& n, std::vector<std::size_t> order);
/// Leaves out of a notation what the products are added to; the places of the operands that stay.
std::vector<std::size_t> without_base(Notation& n);

/// Whether there is one factor, all of whose indices the result has: each element of the result is one of its
/// elements, or zero.
bool moves_elements(const Notation& concrete);

/// "matmul: shapes [2, 3] and [2, 3] do not fit".
std::string shapes_differ(std::string_view operation, std::span<const std::int64_t> a,
                          std::span<const std::int64_t> b);

/// Two places whose sizes have to be the same: dimension `a_dimension` of operand `a`, and one of `b`.
struct SameSize {
  std::size_t a, a_dimension, b, b_dimension;
};
std::vector<SameSize> same_sizes(const Notation& concrete);
/// Where the size of an index is found: a dimension of an operand, or (dimension -1) a size operand.
struct SizeSource {
  std::size_t operand = 0;
  int dimension = -1;
};
std::optional<SizeSource> size_source(const Notation& concrete, char letter);
/// Where the size of dimension `d` of the result is found.
std::optional<SizeSource> result_size(const Notation& concrete, std::size_t d);

}  // namespace lantern::ir
