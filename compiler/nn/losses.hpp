// Losses: a number from predictions and targets, the mean over elements unless said otherwise.
//
// Formulas are PyTorch's. Classes are the last dimension: logits of [..., classes] go with labels of [...].
#pragma once

#include "lantern/compiler/nn/layers.hpp"

namespace lantern::nn {

enum class Reduction : std::uint8_t {
  mean,  ///< over elements; of labels, over those that count
  sum,
};

namespace detail {

template <class E>
Rep<E> reduced(const Rep<Tensor<E>>& each, Reduction how) {
  return how == Reduction::sum ? sum(each) : mean(each);
}
template <class X, class Y>
detail::Values<X> difference(const Rep<X>& x, const Rep<Y>& y) {
  return detail::Values<X>(x) - detail::Values<X>(y);
}

}  // namespace detail

/// (x - y)^2.
template <core::detail::FloatTensor X, core::detail::FloatTensor Y>
auto mse(const Rep<X>& x, const Rep<Y>& y, Reduction how = Reduction::mean) {
  const auto d = detail::difference(x, y);
  return detail::reduced(detail::Values<X>(d * d), how);
}
/// |x - y|.
template <core::detail::FloatTensor X, core::detail::FloatTensor Y>
auto l1(const Rep<X>& x, const Rep<Y>& y, Reduction how = Reduction::mean) {
  return detail::reduced(detail::Values<X>(abs(detail::difference(x, y))), how);
}
/// (x - y)^2 / 2 where |x - y| is at most delta, delta (|x - y| - delta / 2) elsewhere (Huber 1964).
template <core::detail::FloatTensor X, core::detail::FloatTensor Y>
auto huber(const Rep<X>& x, const Rep<Y>& y, double delta = 1, Reduction how = Reduction::mean) {
  using E = core::detail::element_t<X>;
  const detail::Values<X> size = abs(detail::difference(x, y));
  const detail::Values<X> inner = min(size, static_cast<E>(delta));
  return detail::reduced(detail::Values<X>(inner * (size - E(0.5) * inner)), how);
}
/// -(y log(p) + (1 - y) log(1 - p)) for p = sigmoid(x), as softplus(x) - x y, which does not overflow.
template <core::detail::FloatTensor X, core::detail::FloatTensor Y>
auto binary_cross_entropy(const Rep<X>& logits, const Rep<Y>& y, Reduction how = Reduction::mean) {
  const detail::Values<X> x(logits), target(y);
  return detail::reduced(detail::Values<X>(softplus(x) - x * target), how);
}

struct LabelOptions {
  Reduction reduction = Reduction::mean;
  double label_smoothing =
      0;  ///< of each target so much is shared out over all classes (Szegedy et al. 2016)
  std::int64_t ignore = -100;  ///< examples of this label do not count
};

/// -log_probabilities[label], log_probabilities of [..., classes], labels of [...].
template <core::detail::FloatTensor X, core::detail::IndexTensor L>
auto nll(const Rep<X>& log_probabilities, const Rep<L>& labels, const LabelOptions& o = {}) {
  using E = core::detail::element_t<X>;
  using T = detail::Values<X>;
  const int rank = log_probabilities.datum().type().rank();
  const Rep<std::int64_t> classes = log_probabilities.dim(rank - 1);
  const Rep<Tensor<std::int64_t>> y = ravel(labels);
  const Rep<std::int64_t> n = y.dim(0);
  const T logs = reshape(log_probabilities, n, classes);
  const Rep<Tensor<bool>> counts(y != o.ignore);
  const auto safe = where(counts, y, std::int64_t{0});
  T each = -squeeze<1>(gather<1>(logs, unsqueeze<1>(safe)));
  if (o.label_smoothing != 0) {
    const E smooth = static_cast<E>(o.label_smoothing);
    each = (E(1) - smooth) * each - smooth * mean<1>(logs);
  }
  const Rep<E> total = sum(where(counts, each, E(0)));
  return o.reduction == Reduction::sum ? total : total / cast<E>(count(counts));
}
/// nll of log_softmax(logits).
template <core::detail::FloatTensor X, core::detail::IndexTensor L>
auto cross_entropy(const Rep<X>& logits, const Rep<L>& labels, const LabelOptions& o = {}) {
  return nll(log_softmax<-1>(detail::Values<X>(logits)), labels, o);
}

/// The sum of p (log(p) - log(q)), where `log_q` are logarithms and p probabilities, 0 where p is, divided by
/// the first dimension's size (PyTorch's batchmean), or not.
template <core::detail::FloatTensor X, core::detail::FloatTensor Y>
auto kl_divergence(const Rep<X>& log_q, const Rep<Y>& p, Reduction how = Reduction::mean) {
  using E = core::detail::element_t<X>;
  using T = detail::Values<X>;
  const T q(log_q), target(p);
  const Rep<Tensor<bool>> positive(target > E(0));
  const T logarithm = log(where(positive, target, E(1)));
  const Rep<E> total = sum(target * (logarithm - q));
  return how == Reduction::sum ? total : total / cast<E>(q.dim(0));
}

}  // namespace lantern::nn
