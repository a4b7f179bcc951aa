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
///   trees_feature int32 [nodes]       which feature decides
///   trees_value   float [nodes]       what it is compared with
///   trees_mode    int32 [nodes]       how (TreeMode)
///   trees_yes, trees_no int32 [nodes] the next node; below 0 at a leaf
///   trees_missing int32 [nodes]       1 where a NaN goes the way of yes
///   trees_first   int32 [nodes + 1]   where a leaf's votes begin in
///   trees_target  int32 [votes]       which result a vote is for
///   trees_weight  float [votes]       and what it adds
void pack_trees(Node& node);

/// In the order of the numbers of TreeEnsemble.
enum class TreeMode : std::uint8_t { leq, lt, gte, gt, eq, neq, member, leaf };

}  // namespace lantern::onnx
