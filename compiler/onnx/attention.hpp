// Scaled products of queries and keys, as the operators of attention share them.
#pragma once

#include "lantern/compiler/onnx/operator.hpp"

namespace lantern::onnx::rules {

/// [batch, length, heads * size] as [batch, heads, length, size], and back.
Datum with_heads(const Call& c, const Datum& x, const Datum& heads);
Datum without_heads(const Call& c, const Datum& x);
/// The heads of keys or values [batch, heads, length, size] repeated for the heads of the queries, which are
/// a multiple of them.
Datum for_each_query_head(const Call& c, const Datum& x, const Datum& queries);
/// Products of the rows of two tensors [batch, heads, length, size]: [batch, heads, queries, keys].
Datum row_products(const Call& c, const Datum& queries, const Datum& keys);

/// Which keys a query attends.
struct Mask {
  Datum allowed;  ///< truth values that broadcast to the scores; empty: all
  Datum added;    ///< numbers that are added to them, -inf for keys that are not attended; empty: none

  /// What is not attended at -inf.
  Datum applied(const Call& c, const Datum& scores) const;
  /// Softmax over the last dimension of such scores; 0 for a query that attends no key.
  Datum softmax(const Call& c, const Datum& scores) const;
  void allow(const Call& c, const Datum& some);
};

/// Turns pairs of numbers of the last dimension: x [batch, heads, length, size] or [batch, length, heads,
/// size], cosines and sines that broadcast to its first `dim` numbers, of half as many. The pairs lie side by
/// side, or at a distance of half of `dim`.
Datum rotated(const Call& c, const Datum& x, const Datum& cosines, const Datum& sines, std::int64_t dim,
              bool interleaved);

}  // namespace lantern::onnx::rules
