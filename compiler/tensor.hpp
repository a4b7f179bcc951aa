// Functions of tensors beside those of <lantern/lantern.hpp>, in the vocabulary of NumPy and PyTorch.
//
//   #include <lantern/tensor.hpp>
//   Rep<double> loss(Rep<Tensor<double, dyn, dyn>> x, Rep<Tensor<int64_t, dyn>> label) {
//     return -mean(gather<1>(log_softmax<1>(x), unsqueeze<1>(label)));
//   }
//
// As those they are found by their arguments as well. Each is a program of loops over elements, or a sum of products in
// index notation, and has the derivatives of that.
#pragma once

#include "lantern/compiler/tensor/elementwise.hpp"
#include "lantern/compiler/tensor/index.hpp"
#include "lantern/compiler/tensor/interpolate.hpp"
#include "lantern/compiler/tensor/reduce.hpp"
#include "lantern/compiler/tensor/scan.hpp"
#include "lantern/compiler/tensor/shape.hpp"
#include "lantern/compiler/tensor/statistics.hpp"
#include "lantern/compiler/tensor/window.hpp"
#include "lantern/lantern.hpp"

namespace lantern {

using core::named::keep;  ///< max<1>(x, keep): the dimension stays, of size 1
using core::arange;    ///< arange(5): 0, 1, ...; arange<double>(0.0, 0.5, n)
using core::expand;
using core::eye;       ///< eye<double>(n)
using core::linspace;  ///< linspace<double>(0.0, 1.0, n)
using core::one_hot;   ///< one_hot<float>(labels, 10)
using core::ones;      ///< ones<double>({2, 3})
using core::Pad;       ///< pad(x, {{1, 1}}, Pad::reflect)
using core::scan;      ///< scan(n, state, body): a loop that keeps an output of each iteration
using core::tabulate;  ///< tabulate<3, 4>([&](auto i, auto j) { return a(j, i); })
using core::tile;
using core::ConvolutionOptions;
using core::PerDimension;
using core::PoolOptions;

// Functions of tensors, by their names in this namespace; those that lantern.hpp has gain forms over dimensions here.
using core::adaptive_average_pool;
using core::adaptive_max_pool;
using core::all_of;
using core::any_of;
using core::argmax;
using core::argmin;
using core::argsort;
using core::average_pool;
using core::cast;
using core::concat;
using core::conv;
using core::conv1d;
using core::conv2d;
using core::conv3d;
using core::conv_transpose;
using core::conv_transpose1d;
using core::conv_transpose2d;
using core::conv_transpose3d;
using core::count;
using core::cubic_spline;  ///< cubic_spline(xs, ys)(x)
using core::CubicSpline;
using core::cumprod;
using core::cumsum;
using core::erfcinv;
using core::erfinv;
using core::flip;
using core::gather;
using core::global_average_pool;
using core::global_max_pool;
using core::index_select;
using core::interp;  ///< interp(x, xs, ys): on the lines between points
using core::log_softmax;
using core::logaddexp;
using core::logsumexp;
using core::max;
using core::max_pool;
using core::median;
using core::mean;
using core::min;
using core::norm;
using core::pad;
using core::prod;
using core::quantile;  ///< quantile(t, 0.9), quantile<0>(t, 0.9)
using core::ravel;
using core::repeat;
using core::reshape;
using core::roll;
using core::sample_var;
using core::scatter_add;
using core::softmax;
using core::sort;
using core::split;
using core::squeeze;
using core::stack;
using core::stddev;
using core::sum;
using core::take;
using core::tensordot;
using core::topk;
using core::unfold;
using core::unsqueeze;
using core::var;
using core::where;

}  // namespace lantern
