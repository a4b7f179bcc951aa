// The operations of <lantern/distributed.hpp> once types are gone, with their derivatives.
//
// All ranks together compute one function, of the arguments of all to the results of all. Its derivative is that of
// each operation: a linear map between all ranks has a transpose, which is another operation of this list.
//
//   operation                  its transpose
//   all_reduce, sum            all_reduce, sum
//   broadcast from a           reduce, sum, to a
//   gather to a                scatter from a
//   all_gather                 reduce_scatter, sum
//   all_to_all                 all_to_all; ragged: with the counts of both directions exchanged
//   scan over ranks up to me   scan over ranks from me on
//   send to a, receive from b  send to b, receive from a
//   deterministic sum of rows  deterministic sum, in all rows
//   total                      share: the identity, of a value that is the same on all ranks
//
// Source: Griewank and Walther 2008, "Evaluating Derivatives", chapter 3, for the transposes; Hückelheim et al. 2021,
// "Understanding automatic differentiation pitfalls", for the two conventions of cotangents.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "lantern/compiler/distributed/kernels.hpp"
#include "lantern/compiler/staging/operation.hpp"

namespace lantern::distributed {

/// How values of several ranks become one. Of bool: min is "all", max is "any"; there are no others.
enum class Reduction : std::int32_t { sum, product, min, max };

/// What the cotangent of a result that is the same on all ranks means.
enum class Cotangent : std::uint8_t {
  partial,     ///< the part of this rank: the cotangent of the one value is the sum over ranks
  replicated,  ///< the cotangent of the one value, the same on all ranks
};

namespace detail {

using core::Datum;
using core::Datums;
using core::Location;

/// What an operation is for in a derivative: `value` and `cotangent` in reverse mode, `primal` and `tangent` in forward
/// mode. Messages and logs say so: a rank that differentiates other things than its partner takes no cotangent for a value.
enum class Role : std::uint8_t { value = 1, cotangent, primal, tangent };

/// A communicator, and where it is used.
struct Call {
  const Kernels* kernels;
  Datum comm;
  Location loc;
  std::int32_t roles = 0;  ///< in nested derivatives, the outermost last (runtime/distributed/kernels.h)
  Datum like = {};         ///< of one half of a message: it is differentiated where x is, and where this is
};

/// The number of this rank; how many there are. 64-bit numbers.
Datum rank(const Call& call);
Datum size(const Call& call);
Datum split(const Call& call, const Datum& colour, const Datum& key);
/// All ranks have come here when it is done.
void barrier(const Call& call);
/// The sizes of a grid of all ranks; a size of 0 is chosen.
Datums dims(const Call& call, const Datums& sizes);

/// x: a number, an array or a tensor, of the same shape on all ranks. The result has that shape.
Datum all_reduce(const Call& call, Reduction reduction, const Datum& x);
Datum reduce(const Call& call, Reduction reduction, const Datum& x, const Datum& root);
Datum broadcast(const Call& call, const Datum& x, const Datum& root);
Datum scan(const Call& call, Reduction reduction, bool exclusive, const Datum& x);
Datum send_receive(const Call& call, const Datum& x, const Datum& to, const Datum& from);
/// The result has a dimension of all ranks before those of x.
Datum gather(const Call& call, const Datum& x, const Datum& root);
Datum all_gather(const Call& call, const Datum& x);
/// x has a dimension of all ranks, which the result has not.
Datum scatter(const Call& call, const Datum& x, const Datum& root);
Datum reduce_scatter(const Call& call, Reduction reduction, const Datum& x);
/// x and the result have a dimension of all ranks.
Datum all_to_all(const Call& call, const Datum& x);
/// Rows of x, counts[r] of them for rank r in the order of ranks; the rows that come, and how many from each rank.
std::array<Datum, 2> ragged_all_to_all(const Call& call, const Datum& x, const Datum& counts);
/// The sum over the first dimension and all ranks, rounded once. x: floating.
Datum deterministic_sum(const Call& call, Cotangent cotangent, const Datum& x);
/// x, which all ranks have, as so many rows: the partner of a sum of Cotangent::replicated.
Datum deterministic_replicate(const Call& call, const Datum& rows, const Datum& x);
/// Of Cotangent::replicated: the sum, whose cotangent is the same on all ranks; x, the same on all ranks, whose
/// cotangent is a part on each of them.
Datum total(const Call& call, const Datum& x);
Datum share(const Call& call, const Datum& x);

/// All data of one element type in one message.
Datums in_one_message(const Call& call, const Datums& data, const std::function<Datum(const Datum&)>& body);

/// x with `width` elements of the neighbours at both ends of dimension `axis`; zeros where there is no neighbour (-1).
Datum with_halo(const Call& call, const Datum& x, int axis, const Datum& width, const Datum& below, const Datum& above);

}  // namespace detail

}  // namespace lantern::distributed
