// Windows that move over tensors: convolutions, their transposes, pooling, unfold.
//
// Tensors are [batch, channels, size...] with one to three sizes, weights [out, in, size...], as in PyTorch; a
// convolution is not turned round (it is a cross-correlation). What lies outside is zero.
#pragma once

#include <initializer_list>

#include "lantern/compiler/tensor/shape.hpp"

namespace lantern::core {

/// A number for each spatial dimension, or one for all: {.stride = 2}, {.padding = {1, 0}}.
struct PerDimension {
  PerDimension(std::int64_t all) : values{all} {}
  PerDimension(std::initializer_list<std::int64_t> each) : values(each) {}
  std::vector<std::int64_t> values;
};
struct ConvolutionOptions {
  PerDimension stride = 1;
  PerDimension padding = 0;   ///< zeros before and after
  PerDimension dilation = 1;  ///< distance of the weights' elements
  std::int64_t groups = 1;    ///< channels in so many groups, each convolved by itself
  PerDimension output_padding = 0;  ///< of conv_transpose: more elements at the end
};
struct PoolOptions {
  PerDimension stride = 0;   ///< 0: the size of the window
  PerDimension padding = 0;  ///< max_pool: elements that are no candidates; average_pool: zeros
  PerDimension dilation = 1;  ///< distance of a window's elements
  bool ceil = false;  ///< also a last window that reaches beyond the padding, if it begins before its end
  bool count_padding = true;  ///< average_pool divides by the window's elements that are padding as well
};

namespace detail {
Datum convolution(const Datum& x, const Datum& w, const ConvolutionOptions& options, int dimensions, const Location& loc);
Datum transposed_convolution(const Datum& x, const Datum& w, const ConvolutionOptions& options,
                             int dimensions, const Location& loc);
Datum with_bias(const Datum& y, const Datum& bias, const Location& loc);
Datum max_pool(const Datum& x, const PerDimension& window, const PoolOptions& options, const Location& loc);
Datum average_pool(const Datum& x, const PerDimension& window, const PoolOptions& options, const Location& loc);
Datum adaptive_average_pool(const Datum& x, const PerDimension& sizes, const Location& loc);
Datum adaptive_max_pool(const Datum& x, const PerDimension& sizes, const Location& loc);
Datum global_average_pool(const Datum& x, const Location& loc);
Datum global_max_pool(const Datum& x, const Location& loc);
Datum unfold(const Datum& x, const PerDimension& window, const ConvolutionOptions& options, const Location& loc);
}  // namespace detail

/// Of each of these: (x, w), (x, w, bias), and options behind. A bias is a number for each channel of the
/// result.
#define LANTERN_CONVOLUTION(name, made, dimensions)                                                   \
  template <detail::TensorLike X, detail::TensorLike W>                                               \
  detail::tensor_of<X> name(const Rep<X>& x, const Rep<W>& w, const ConvolutionOptions& options = {}, \
                            std::source_location l = std::source_location::current()) {               \
    return detail::tensor_of<X>(detail::made(x.datum(), w.datum(), options, dimensions, here(l)));    \
  }                                                                                                   \
  template <detail::TensorLike X, detail::TensorLike W, detail::TensorLike B>                         \
  detail::tensor_of<X> name(const Rep<X>& x, const Rep<W>& w, const Rep<B>& bias,                     \
                            const ConvolutionOptions& options = {},                                   \
                            std::source_location l = std::source_location::current()) {               \
    const Datum y = detail::made(x.datum(), w.datum(), options, dimensions, here(l));                 \
    return detail::tensor_of<X>(detail::with_bias(y, bias.datum(), here(l)));                         \
  }
/// conv is over the dimensions that x has; conv1d, conv2d and conv3d say how many those are.
LANTERN_CONVOLUTION(conv, convolution, 0)
LANTERN_CONVOLUTION(conv1d, convolution, 1)
LANTERN_CONVOLUTION(conv2d, convolution, 2)
LANTERN_CONVOLUTION(conv3d, convolution, 3)
/// The transpose of a convolution as a linear map: w is [in, out / groups, size...].
LANTERN_CONVOLUTION(conv_transpose, transposed_convolution, 0)
LANTERN_CONVOLUTION(conv_transpose1d, transposed_convolution, 1)
LANTERN_CONVOLUTION(conv_transpose2d, transposed_convolution, 2)
LANTERN_CONVOLUTION(conv_transpose3d, transposed_convolution, 3)
#undef LANTERN_CONVOLUTION

/// The largest element of each window; the derivative goes to the first of those. A window without elements, where
/// the padding is as wide as the window, or the dilation leaves out the whole tensor, is an Error.
template <detail::TensorLike X>
detail::tensor_of<X> max_pool(const Rep<X>& x, const PerDimension& window, const PoolOptions& options = {},
                              std::source_location l = std::source_location::current()) {
  return detail::tensor_of<X>(detail::max_pool(x.datum(), window, options, here(l)));
}
/// The mean of each window; what lies beyond the padding counts for nothing.
template <detail::TensorLike X>
detail::tensor_of<X> average_pool(const Rep<X>& x, const PerDimension& window, const PoolOptions& options = {},
                                  std::source_location l = std::source_location::current()) {
  return detail::tensor_of<X>(detail::average_pool(x.datum(), window, options, here(l)));
}
/// Means, and largest elements, of windows that are as large as it takes for a result of these sizes: in a
/// dimension of n elements from floor(i n / size) to below ceil((i + 1) n / size).
template <detail::TensorLike X>
detail::tensor_of<X> adaptive_average_pool(const Rep<X>& x, const PerDimension& sizes,
                                           std::source_location l = std::source_location::current()) {
  return detail::tensor_of<X>(detail::adaptive_average_pool(x.datum(), sizes, here(l)));
}
template <detail::TensorLike X>
detail::tensor_of<X> adaptive_max_pool(const Rep<X>& x, const PerDimension& sizes,
                                       std::source_location l = std::source_location::current()) {
  return detail::tensor_of<X>(detail::adaptive_max_pool(x.datum(), sizes, here(l)));
}
/// The mean, and the largest element, of each channel: [batch, channels, 1...].
template <detail::TensorLike X>
detail::tensor_of<X> global_average_pool(const Rep<X>& x,
                                         std::source_location l = std::source_location::current()) {
  return detail::tensor_of<X>(detail::global_average_pool(x.datum(), here(l)));
}
template <detail::TensorLike X>
detail::tensor_of<X> global_max_pool(const Rep<X>& x,
                                     std::source_location l = std::source_location::current()) {
  return detail::tensor_of<X>(detail::global_max_pool(x.datum(), here(l)));
}
/// The windows side by side: [batch, channels, window..., size...].
template <detail::TensorLike X>
detail::tensor_of<X> unfold(const Rep<X>& x, const PerDimension& window, const ConvolutionOptions& options = {},
                            std::source_location l = std::source_location::current()) {
  return detail::tensor_of<X>(detail::unfold(x.datum(), window, options, here(l)));
}

}  // namespace lantern::core
