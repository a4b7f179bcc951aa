// How many lanes: the choice of blocks.
//
// A vector takes its time whether its lanes work or are idle, so that blocks of many lanes are for many
// iterations, and the time of what is left should grow with the iterations that are left. The rules were found by
// measuring loops of 1 to 100 iterations against the same without lanes. What they weigh against each other: few
// lanes repeat what all lanes share; many lanes need more registers than there are, and each version of the
// body is compiled.
#include <algorithm>

#include "lantern/compiler/passes/analysis/lanes.hpp"

namespace lantern::passes {

namespace {

constexpr int small_body = 16;   ///< operations of which five versions are not much code
constexpr int large_body = 64;   ///< operations that leave no registers for two vectors each
constexpr int large_loop = 200;  ///< operations, with those in inner loops: three versions are much code
constexpr int few_iterations = 4;     ///< known to be fewer: the compiler writes them out

}  // namespace

std::optional<VectorWidths> choose_blocks(const LoopShape& shape, int native) {
  const int reg = shape.narrow ? 2 * native : native;
  if (!shape.inner && !shape.heavy && shape.work <= small_body) {
    // No lane is idle: masks take longer than the arithmetic.
    if (shape.iterations && *shape.iterations < few_iterations) return {};
    VectorWidths b;
    const auto offer = [&](int lanes) {
      if (b.whole.empty() || lanes < b.whole.back()) b.whole.push_back(lanes);
    };
    offer(2 * reg);
    // Of a known number of iterations only the versions that it takes are written: 28 are 16, 8 and 4.
    for (int lanes = reg; shape.iterations && lanes > 4; lanes /= 2) offer(lanes);
    for (const int lanes : {4, 2, 1}) offer(lanes);
    return b;
  }
  if (!shape.inner) {
    if (shape.work > large_body) return VectorWidths{{reg}, {reg}};
    return VectorWidths{{2 * reg}, {2 * reg, reg}};
  }
  // Loops over directions: each iteration is short, and what all share is most of the work.
  if (!shape.reads) return VectorWidths{{std::min(8 * reg, 32)}, {std::min(8 * reg, 32)}};
  // Elements that are not adjacent are fetched one by one, from as many places in memory as there are lanes.
  if (shape.strided) return VectorWidths{{reg}, {reg}};
  // Long inner loops keep as many sums in registers as there is room for; short ones have none for so many.
  if (shape.brief) return VectorWidths{{2 * reg}, {2 * reg, reg}};
  if (shape.size > large_loop) return VectorWidths{{8 * reg}, {2 * reg}};
  return VectorWidths{{8 * reg, 2 * reg}, {reg}};
}

}  // namespace lantern::passes
