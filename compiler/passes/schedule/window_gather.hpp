// Loops over windows that add to the elements in them become loops over the elements.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Scatter to gather of strided windows, for a GPU: a nest that goes through windows of a tensor of zeros and
/// adds to several elements of each, as the gradient of pooling does, becomes a nest that goes through all
/// elements. Each sums what the windows give that hold it:
///
///   t = zeros                         parallel e in size of t {
///   parallel i in n {                   s = 0
///     t[2 i] += f(i)         becomes    for each i below n whose window holds e
///     t[2 i + 1] += g(i)                  s = s + (e - 2 i = 0 ? f(i) : g(i))
///   }                                   t[e] = s }
///
/// Where windows overlap, the iterations of the first nest would have to take turns; and it asks for zeros,
/// which are a pass through memory of their own. In the second each element is stored once, by a thread of
/// its own, and the kernels behind it that go through the same elements join it. What a window gives is
/// computed for each element in it, from what caches hold. An element sums in the order in which the windows
/// came. (Hückelheim et al., "Automatic differentiation for adjoint stencil loops", ICPP 2019, have it without a
/// stride; see scatter_to_gather.)
///
/// `parallel` has marked the loops, and all indices are known to be inside.
void window_gather(ir::Module& module);

}  // namespace lantern::passes
