// How a window moves over a tensor [batch, channels, size...], as the attributes of a node say.
#pragma once

#include <string>
#include <string_view>

#include "lantern/compiler/onnx/operator.hpp"

namespace lantern::onnx::rules {

struct Window {
  /// Strides, dilations, pads and auto_pad of the node.
  Window(const Call& c, const Datum& x, const Indices& window_sizes);

  static constexpr std::string_view places_letters = "ijk", window_letters = "pqr";

  const Call& call;
  Indices size;
  std::size_t spatial;
  Sizes stride, dilation, before, after;

  bool symmetric() const;
  /// At how many places it is; `ceil`: also where it reaches over the end.
  Indices places(const Datum& x, bool ceil) const;
  /// Whether the last place is known to end where the operand with its pads does, so that `ceil` adds none.
  bool ends_within(const Datum& x) const;
  /// "[2i+p-1]" for each spatial dimension: where the operand is read.
  std::string read() const;
  /// The operand with its pads.
  Datum padded(const Datum& x, const Datum& value) const;
};

core::PerDimension per_dimension(const Sizes& all);
/// A convolution without a bias, by the attributes of the node.
Datum convolved(const Call& c, const Datum& x, const Datum& w);

}  // namespace lantern::onnx::rules
