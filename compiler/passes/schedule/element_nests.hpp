// Nests of parallel loops over the elements of tensors of one shape.
#pragma once

#include <vector>

#include "lantern/compiler/passes/schedule/equal_numbers.hpp"
#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// The loops of a perfect nest, the outermost first.
std::vector<ir::Op*> perfect_nest(ir::Op* loop);
/// Elements of its own in each iteration, counted from 0; by what threads of a GPU can do.
bool works_on_elements(const ir::Op* loop);
/// Marks a new loop over elements as parallel: each iteration has elements of its own in the tensors that it hands on.
void mark_parallel_over_elements(ir::Op* loop);
/// Writes a nest of such loops over elements of these sizes, the outermost first; gives the tensors after it. `body` makes them
/// of what they are at an element, whose indices have been appended to `indices`.
LoopValues build_element_nest(ir::Builder& b, const LoopValues& tensors, std::span<ir::Value* const> sizes, LoopValues& indices,
                              ir::FunctionRef<LoopValues(ir::Builder&, const LoopValues&)> body);
/// Each iteration of a nest has elements of its own, wherever they are; the loops could be one loop over as
/// many.
bool independent_iterations(const std::vector<ir::Op*>& nest);
/// A nest whose iterations go through all elements of tensors of one shape, each at its own, and ask no index
/// for anything else.
bool goes_through_elements(const std::vector<ir::Op*>& nest, const EqualNumbers& equal);

/// Where such a nest works on a view of what a nest before it has made, element by element, the later one
/// goes through the elements of the tensor instead of the view's: its tensors become views of that shape, and
/// kernel_fusion can join the two.
///
///   t = parallel i, j, k { t[i,j,k] = ... }            t = parallel i, j, k { t[i,j,k] = ... }
///   v = reshape t, [n,m]                      becomes  y = reshape u, [a,b,c]
///   w = parallel i, j { w[i,j] = v[i,j] + u[i,j] }     w = parallel i, j, k { w[i,j,k] = t[i,j,k] + y[i,j,k] }
void reshape_nests(ir::Module& module);

}  // namespace lantern::passes
