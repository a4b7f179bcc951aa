// Losses: a number from predictions and targets, the mean over elements unless said otherwise.
//
// Formulas are PyTorch's. Classes are the last dimension: logits of [..., classes] go with labels of [...]. Predictions and
// targets have one shape: where operators would repeat one of them, as [n] beside [n, 1], a loss is an Error.
#pragma once

#include "lantern/compiler/nn/layers.hpp"
#include "lantern/compiler/tensor/build.hpp"

namespace lantern::nn {

enum class Reduction : std::uint8_t {  ///< how a loss is made of the losses of elements
  mean,  ///< over elements; of labels, over those that count
  sum,
};

namespace detail {

/// What is given, as a tensor: arrays are tensors of rank 1.
template <class X>
Values<X> values(const Rep<X>& x) {
  return Values<X>(x.datum());
}
template <class E>
Rep<E> reduced(const Rep<Tensor<E>>& each, Reduction how) {
  return how == Reduction::sum ? sum(each) : mean(each);
}
/// That dimension d of two tensors is of one size.
inline void require_same_size(const core::Datum& x, int d, const core::Datum& y, const std::string& expected) {
  const core::detail::Build b{};
  b.require_equal(b.size(x, d), b.size(y, d), expected + " in dimension " + std::to_string(d));
}
/// That a target has its prediction's shape. (Sizes of which neither is known before are compared by the operators.)
inline void require_target(const char* loss, const core::Datum& x, const core::Datum& target) {
  const auto &have = target.type(), &want = x.type();
  const std::string expected = std::string(loss) + ": expected a target of the prediction's shape";
  if (have.rank() != want.rank()) core::raise_at({}, expected + " " + want.str() + ", got " + have.str());
  for (int d = 0; d < want.rank(); ++d)
    if (have.dims()[static_cast<std::size_t>(d)] != want.dims()[static_cast<std::size_t>(d)])
      require_same_size(x, d, target, expected);
}
/// That there is a label for each row of scores; one label for a vector of them.
inline void require_labels(const core::Datum& scores, const core::Datum& labels) {
  const int rank = scores.type().rank(), have = labels.type().rank();
  const char* const expected = "expected a label for each row of [..., classes]";
  if (have != rank - 1 && !(rank == 1 && have == 1))
    core::raise_at({}, std::string(expected) + ", got " + labels.type().str() + " for " + scores.type().str());
  for (int d = 0; d + 1 < rank; ++d) require_same_size(scores, d, labels, expected);
}
template <class X, class Y>
detail::Values<X> difference(const char* loss, const Rep<X>& x, const Rep<Y>& y) {
  require_target(loss, x.datum(), y.datum());
  return detail::values(x) - detail::values(y);
}

}  // namespace detail

/// (x - y)^2.
template <core::detail::FloatTensor X, core::detail::FloatTensor Y>
auto mse(const Rep<X>& x, const Rep<Y>& y, Reduction how = Reduction::mean,
         std::source_location l = std::source_location::current()) {
  const detail::Caller caller(l);
  const auto d = detail::difference("mse", x, y);
  return detail::reduced(detail::Values<X>(d * d), how);
}
/// |x - y|.
template <core::detail::FloatTensor X, core::detail::FloatTensor Y>
auto l1(const Rep<X>& x, const Rep<Y>& y, Reduction how = Reduction::mean,
        std::source_location l = std::source_location::current()) {
  const detail::Caller caller(l);
  return detail::reduced(detail::Values<X>(abs(detail::difference("l1", x, y))), how);
}
/// (x - y)^2 / 2 where |x - y| is at most delta, delta (|x - y| - delta / 2) elsewhere (Huber 1964).
template <core::detail::FloatTensor X, core::detail::FloatTensor Y>
auto huber(const Rep<X>& x, const Rep<Y>& y, double delta = 1, Reduction how = Reduction::mean,
           std::source_location l = std::source_location::current()) {
  const detail::Caller caller(l);
  using E = core::detail::element_t<X>;
  if (!(delta > 0)) core::raise_at({}, "huber: expected a delta above 0, got " + std::to_string(delta));
  const E bound = static_cast<E>(delta);
  const detail::Values<X> d = detail::difference("huber", x, y), size = abs(d);
  const Rep<Tensor<bool>> near(size <= bound);
  return detail::reduced(detail::Values<X>(where(near, E(0.5) * d * d, bound * (size - E(0.5) * bound))), how);
}
/// -(y log(p) + (1 - y) log(1 - p)) for p = sigmoid(x), as softplus(x) - x y, which does not overflow.
template <core::detail::FloatTensor X, core::detail::FloatTensor Y>
auto binary_cross_entropy(const Rep<X>& logits, const Rep<Y>& y, Reduction how = Reduction::mean,
                          std::source_location l = std::source_location::current()) {
  const detail::Caller caller(l);
  detail::require_target("binary_cross_entropy", logits.datum(), y.datum());
  const auto x = detail::values(logits), target = detail::values(y);
  return detail::reduced(detail::Values<X>(softplus(x) - x * target), how);
}

struct LabelOptions {  ///< of losses of labels
  Reduction reduction = Reduction::mean;
  double label_smoothing =
      0;  ///< of each target so much is shared out over all classes (Szegedy et al. 2016)
  std::int64_t ignore = -100;  ///< examples of this label do not count
};

/// -log_probabilities[label], log_probabilities of [..., classes], labels of [...].
template <core::detail::FloatTensor X, core::detail::IndexTensor L>
auto nll(const Rep<X>& log_probabilities, const Rep<L>& labels, const LabelOptions& o = {},
         std::source_location l = std::source_location::current()) {
  const detail::Caller caller(l);
  using E = core::detail::element_t<X>;
  using T = detail::Values<X>;
  const int rank = log_probabilities.datum().type().rank();
  detail::require_labels(log_probabilities.datum(), labels.datum());
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    core::raise_at({}, "expected a label_smoothing from 0 to 1, got " + std::to_string(o.label_smoothing));
  const T given = detail::values(log_probabilities);
  const Rep<std::int64_t> classes = given.dim(rank - 1);
  const Rep<Tensor<std::int64_t>> y = ravel(labels);
  const Rep<std::int64_t> n = y.dim(0);
  const T logs = reshape(given, n, classes);
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
auto cross_entropy(const Rep<X>& logits, const Rep<L>& labels, const LabelOptions& o = {},
                   std::source_location l = std::source_location::current()) {
  const detail::Caller caller(l);
  return nll(log_softmax<-1>(detail::values(logits)), labels, o);
}

/// The sum of p (log(p) - log(q)), where `log_q` are logarithms and p probabilities, 0 where p is, divided by
/// the first dimension's size (PyTorch's batchmean), or not.
template <core::detail::FloatTensor X, core::detail::FloatTensor Y>
auto kl_divergence(const Rep<X>& log_q, const Rep<Y>& p, Reduction how = Reduction::mean,
                   std::source_location l = std::source_location::current()) {
  const detail::Caller caller(l);
  using E = core::detail::element_t<X>;
  using T = detail::Values<X>;
  detail::require_target("kl_divergence", log_q.datum(), p.datum());
  const T q = detail::values(log_q), target = detail::values(p);
  const Rep<Tensor<bool>> positive(target > E(0));
  const T logarithm = log(where(positive, target, E(1)));
  const Rep<E> total = sum(target * (logarithm - q));
  return how == Reduction::sum ? total : total / cast<E>(q.dim(0));
}

}  // namespace lantern::nn
