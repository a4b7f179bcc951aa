// Layers without a state: Linear, Conv, ConvTranspose, Embedding, dropout.
//
// Formulas, shapes and the order of dimensions are PyTorch's, and so are the numbers that `init` begins with.
// S is as in parameters.hpp. What a layer cannot do is an Error at the line that calls it.
#pragma once

#include "lantern/compiler/staging/caller.hpp"
#include "lantern/compiler/nn/initializers.hpp"
#include "lantern/compiler/nn/parameters.hpp"

namespace lantern::nn {

namespace detail {

/// A parameter that a layer may do without.
template <class S, bool present, std::int64_t... dims>
using Optional = std::conditional_t<present, Parameter<S, dims...>, std::tuple<>>;

/// A weight and, where there is one, a bias of random numbers up to 1 / sqrt(fan_in).
template <class W, class B>
void init_uniform(W& weight, B& bias, Generator& rng) {
  const double bound = 1 / std::sqrt(fans(weight).in);
  uniform(weight, rng, -bound, bound);
  if constexpr (!std::same_as<B, std::tuple<>>) {
    bias = B({weight.shape[0]});
    uniform(bias, rng, -bound, bound);
  }
}

using core::Caller;

/// That a layer gets a tensor of the dimensions that it is for.
inline void require_dimensions(const char* layer, const core::Datum& x, int rank, const char* dimensions) {
  if (x.type().rank() != rank)
    core::raise_at({}, std::string(layer) + ": expected a tensor " + dimensions + ", got " + x.type().str());
}

template <class X>
using Values = Rep<Tensor<core::detail::element_t<X>>>;

}  // namespace detail

/// y = x W^T + b: x of [in], [batch, in] or [..., batch, in], y of [..., out].
template <class S, bool with_bias = true>
struct Linear {
  Parameter<S, dyn, dyn> weight;  ///< [out, in]
  detail::Optional<S, with_bias, dyn> bias;

  static Linear init(std::int64_t in, std::int64_t out, Generator& rng) {
    Linear l{Parameter<S, dyn, dyn>({out, in}), {}};
    detail::init_uniform(l.weight, l.bias, rng);
    return l;
  }

  template <core::detail::FloatTensor X>
  detail::Values<X> operator()(const Rep<X>& x, std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    const auto y = x.rank() == 1 ? matmul(weight, x) : matmul(x, transpose(weight));
    if constexpr (with_bias)
      return y + bias;
    else
      return y;
  }
};

namespace detail {
template <class S, int sizes>
struct KernelOf;
template <class S>
struct KernelOf<S, 1> {
  using type = Parameter<S, dyn, dyn, dyn>;
};
template <class S>
struct KernelOf<S, 2> {
  using type = Parameter<S, dyn, dyn, dyn, dyn>;
};
template <class S>
struct KernelOf<S, 3> {
  using type = Parameter<S, dyn, dyn, dyn, dyn, dyn>;
};
}  // namespace detail

/// A convolution over 1 to 3 dimensions: x of [batch, in, size...], y of [batch, out, size'...]. Stride,
/// padding, dilation and groups are given where it is called: conv(x, {.stride = 2, .padding = 1}).
template <class S, int sizes = 2, bool with_bias = true>
struct Conv {
  typename detail::KernelOf<S, sizes>::type weight;  ///< [out, in / groups, window...]
  detail::Optional<S, with_bias, dyn> bias;

  static Conv init(std::int64_t in, std::int64_t out, const std::vector<std::int64_t>& window,
                   Generator& rng) {
    if (window.size() != sizes)
      throw Error("Conv: expected a window of " + std::to_string(sizes) + " sizes, got " +
                  std::to_string(window.size()));
    std::vector<std::int64_t> shape = {out, in};
    shape.insert(shape.end(), window.begin(), window.end());
    Conv c{typename detail::KernelOf<S, sizes>::type(shape), {}};
    detail::init_uniform(c.weight, c.bias, rng);
    return c;
  }

  template <core::detail::FloatTensor X>
  detail::Values<X> operator()(const Rep<X>& x, const core::ConvolutionOptions& options = {},
                               std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    if constexpr (with_bias)
      return conv(x, weight, bias, options);
    else
      return conv(x, weight, options);
  }
};

/// The transpose of a convolution, with a bias: x of [batch, in, size...], y of [batch, out, size'...].
/// Options are given where it is called: up(x, {.stride = 2, .padding = 1, .output_padding = 1}).
template <class S, int sizes = 2, bool with_bias = true>
struct ConvTranspose {
  typename detail::KernelOf<S, sizes>::type weight;  ///< [in, out / groups, window...]
  detail::Optional<S, with_bias, dyn> bias;

  static ConvTranspose init(std::int64_t in, std::int64_t out, const std::vector<std::int64_t>& window,
                            Generator& rng, std::int64_t groups = 1) {
    if (window.size() != sizes)
      throw Error("ConvTranspose: expected a window of " + std::to_string(sizes) + " sizes, got " +
                  std::to_string(window.size()));
    if (groups < 1 || out % groups != 0)
      throw Error("ConvTranspose: expected outputs whose number the groups divide, got " +
                  std::to_string(out) + " outputs and " + std::to_string(groups) + " groups");
    std::vector<std::int64_t> shape = {in, out / groups};
    shape.insert(shape.end(), window.begin(), window.end());
    ConvTranspose c{typename detail::KernelOf<S, sizes>::type(shape), {}};
    const double bound = 1 / std::sqrt(detail::fans(c.weight).in);
    uniform(c.weight, rng, -bound, bound);
    if constexpr (with_bias) {
      c.bias = decltype(c.bias)({out});
      uniform(c.bias, rng, -bound, bound);
    }
    return c;
  }

  template <core::detail::FloatTensor X>
  detail::Values<X> operator()(const Rep<X>& x, const core::ConvolutionOptions& options = {},
                               std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    if constexpr (with_bias)
      return conv_transpose(x, weight, bias, options);
    else
      return conv_transpose(x, weight, options);
  }
};

/// Row i of the table for each index i: indices of [...], y of [..., features].
template <class S>
struct Embedding {
  Parameter<S, dyn, dyn> weight;  ///< [number, features]

  static Embedding init(std::int64_t number, std::int64_t features, Generator& rng) {
    Embedding e{Parameter<S, dyn, dyn>({number, features})};
    normal(e.weight, rng);
    return e;
  }

  template <core::detail::IndexTensor I>
  auto operator()(const Rep<I>& indices, std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    return take<0>(weight, indices);
  }
};

/// x / (1 - p) where the uniform numbers, one for each element, from 0 up to 1, are at least p, and 0
/// elsewhere (Srivastava et al. 2014).
template <core::detail::FloatTensor X, core::detail::FloatTensor U>
detail::Values<X> dropout(const Rep<X>& x, const Rep<U>& uniforms, double p,
                          std::source_location l = std::source_location::current()) {
  using E = core::detail::element_t<X>;
  const detail::Caller caller(l);
  if (!(p >= 0 && p < 1))
    core::raise_at({}, "dropout: expected a probability from 0 up to below 1, got " + std::to_string(p));
  const Rep<Tensor<bool>> stays(uniforms >= static_cast<E>(p));
  return where(stays, x * static_cast<E>(1 / (1 - p)), E(0));
}

}  // namespace lantern::nn
