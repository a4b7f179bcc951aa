// What a model's nodes have in lists becomes tensors, before a program is made of them: tables of trees,
// support vectors, coefficients. Tensors are arguments of the code, lists would be numbers in it.
#pragma once

#include "lantern/compiler/onnx/model.hpp"

namespace lantern::onnx {

/// Replaces lists of numbers by tensors in the nodes of ai.onnx.ml, and adds the tables of their trees.
/// Error: trees that are none.
void prepare(Model& model);

/// Adds to a node of trees what it is made of, in one form for all three operators:
///   trees_roots   int64 [trees]       the first node of each tree
///   trees_nodes   int32 [nodes, 4]    which feature decides; the next node where it says yes, and where no
///   (a
///                                     leaf's is the leaf); TreeMode, plus tree_missing where a NaN says yes
///   trees_value   float [nodes]       what the feature is compared with
///   trees_first   int32 [leaves + 1]  where a leaf's votes begin in
///   trees_target  int32 [votes]       which result a vote is for
///   trees_weight  float [votes]       and what it adds
/// The leaves are the last nodes. Where one comparison by order serves all nodes and a NaN says yes at some:
///   trees_paired  int64 []            1: the features are numbered 2 f, or 2 f + 1 where a NaN says yes
void pack_trees(Node& node);

/// In the order of the numbers of TreeEnsemble.
enum class TreeMode : std::uint8_t { leq, lt, gte, gt, eq, neq, member, leaf };
inline constexpr std::int64_t tree_missing = 8;

}  // namespace lantern::onnx
