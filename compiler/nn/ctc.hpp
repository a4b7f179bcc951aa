// Connectionist temporal classification (Graves, Fernandez, Gomez and Schmidhuber, ICML 2006).
#pragma once

#include "lantern/compiler/nn/losses.hpp"
#include "lantern/compiler/tensor/build.hpp"

namespace lantern::nn {

struct CtcOptions {  ///< of connectionist temporal classification; the defaults are PyTorch's
  Reduction reduction =
      Reduction::mean;  ///< mean: of each loss divided by its number of labels, over the batch
  std::int64_t blank = 0;
  bool zero_infinity = false;  ///< labels that do not fit into the input cost 0 instead of infinity
};

namespace detail {

/// In place of log(0): differences of such numbers are no NaN.
inline constexpr double log_of_zero = -1e30;

/// log(exp(a) + exp(b) + exp(c)), element by element.
template <class T>
T log_add(const T& a, const T& b, const T& c) {
  const T most = max(max(a, b), c);
  return most + log(exp(a - most) + exp(b - most) + exp(c - most));
}

/// That there are as many examples everywhere, and no more steps and labels than there is room for.
inline void require_examples(const core::Datum& scores, const core::Datum& labels, const core::Datum& steps,
                             const core::Datum& counts, const std::source_location& l) {
  const core::detail::Build b{core::here(l)};
  const auto require_rank = [&](const core::Datum& t, int rank, const char* what) {
    if (t.type().rank() != rank)
      core::raise_at(b.loc, std::string("ctc: expected ") + what + ", got " + t.type().str());
  };
  require_rank(scores, 3, "log-probabilities of [time, batch, classes]");
  require_rank(labels, 2, "labels of [batch, most]");
  require_rank(steps, 1, "a number of steps for each example");
  require_rank(counts, 1, "a number of labels for each example");
  for (const core::Datum& t : {labels, steps, counts})
    b.require_equal(b.size(t, 0), b.size(scores, 1), "ctc: expected as many examples everywhere as log-probabilities have");
  const auto require_within = [&](const core::Datum& t, const core::Datum& most, const char* what) {
    const core::Datum fit = b.points({b.size(t, 0)}, {core::detail::literal(true)},
                                     [&](const core::detail::Indices& at, const core::Datums& s) {
                                       const core::Datum n = b.get(t, at);
                                       const core::Datum inside = b.binary(
                                           core::Opcode::land_, b.binary(core::Opcode::le_, b.integer(0), n),
                                           b.binary(core::Opcode::le_, n, most));
                                       return core::Datums{b.binary(core::Opcode::land_, s[0], inside)};
                                     })[0];
    b.require(fit, what);
  };
  require_within(steps, b.size(scores, 0), "ctc: expected numbers of steps from 0 to the time of the log-probabilities");
  require_within(counts, b.size(labels, 1), "ctc: expected numbers of labels from 0 to those that an example has");
}

}  // namespace detail

/// -log of the probability of the labels, summed over all their alignments, for each example:
/// log_probabilities of [time, batch, classes], labels of [batch, most], and numbers of steps and of labels
/// for each example. By the forward recursion over the labels with blanks between them, l', in logarithms
/// (section 4.1):
///
///   alpha_t(s) = log(e^alpha_{t-1}(s) + e^alpha_{t-1}(s-1) + e^alpha_{t-1}(s-2)) + log p_t(l'_s)
///
/// the last term only where l'_s is no blank and not l'_{s-2}. Derivatives are those of the recursion. Without
/// steps no labels cost 0. Errors: numbers of examples that differ; more steps or labels than there are, or fewer
/// than 0.
template <core::detail::FloatTensor X, core::detail::IndexTensor L, core::detail::IndexTensor M,
          core::detail::IndexTensor N>
auto ctc_each(const Rep<X>& log_probabilities, const Rep<L>& labels, const Rep<M>& steps,
              const Rep<N>& label_counts, const CtcOptions& o = {},
              std::source_location l = std::source_location::current()) {
  using E = core::detail::element_t<X>;
  using T = detail::Values<X>;
  using I = Rep<std::int64_t>;
  const detail::Caller caller(l);
  detail::require_examples(log_probabilities.datum(), labels.datum(), steps.datum(), label_counts.datum(), l);
  const E nothing = static_cast<E>(detail::log_of_zero);
  const I batch = labels.dim(0), most = labels.dim(1), states = 2 * most + 1;
  // The label of each state: blanks at even places.
  const Rep<Tensor<std::int64_t>> label(tabulate(
      [&](const I& n, const I& s) {
        return IF(s % 2 == 1, [&] { return labels(n, s / 2); }, [&] { return I(o.blank); });
      },
      batch, states));
  const auto score = [&](const I& t, const I& n, const I& s) { return log_probabilities(t, n, label(n, s)); };
  const T first(tabulate(
      [&](const I& n, const I& s) {
        return IF(
            s <= min(label_counts(n), std::int64_t{1}), [&] { return score(I(0), n, s); },
            [&] { return Rep<E>(nothing); });
      },
      batch, states));
  const T alpha = FOR(1, log_probabilities.dim(0), first, [&](const I& t, const T& before) {
    const auto shifted = [&](std::int64_t by) {
      return T(tabulate(
          [&](const I& n, const I& s) {
            const Rep<bool> reaches = by == 1 ? s >= 1 : AND(s % 2 == 1, [&] {
              return AND(s >= 2, [&] { return label(n, s) != label(n, s - 2); });
            });
            return IF(reaches, [&] { return before(n, s - by); }, [&] { return Rep<E>(nothing); });
          },
          batch, states));
    };
    const T scores(tabulate([&](const I& n, const I& s) { return score(t, n, s); }, batch, states));
    const T next = detail::log_add(before, shifted(1), shifted(2)) + scores;
    return T(where(Rep<Tensor<bool>>(unsqueeze<1>(steps > t)), next, before));
  });
  return T(tabulate(
      [&](const I& n) {
        const I last = 2 * label_counts(n);
        const Rep<E> with_blank = alpha(n, last);
        const Rep<E> without =
            IF(last > 0, [&] { return alpha(n, last - 1); }, [&] { return Rep<E>(nothing); });
        const Rep<E> most_likely = max(with_blank, without);
        const Rep<E> loss = -(most_likely + log(exp(with_blank - most_likely) + exp(without - most_likely)));
        const Rep<E> impossible = o.zero_infinity ? E(0) : std::numeric_limits<E>::infinity();
        return IF(
            steps(n) > 0,
            [&] { return IF(loss < -nothing / 2, [&] { return loss; }, [&] { return impossible; }); },
            [&] { return select(label_counts(n) == 0, Rep<E>(E(0)), impossible); });
      },
      batch));
}

/// The mean or sum of those.
template <core::detail::FloatTensor X, core::detail::IndexTensor L, core::detail::IndexTensor M,
          core::detail::IndexTensor N>
auto ctc(const Rep<X>& log_probabilities, const Rep<L>& labels, const Rep<M>& steps,
         const Rep<N>& label_counts, const CtcOptions& o = {},
         std::source_location l = std::source_location::current()) {
  using E = core::detail::element_t<X>;
  const detail::Caller caller(l);
  const auto each = ctc_each(log_probabilities, labels, steps, label_counts, o, l);
  if (o.reduction == Reduction::sum) return sum(each);
  const detail::Values<X> counts(
      tabulate([&](auto n) { return cast<E>(max(label_counts(n), std::int64_t{1})); }, labels.dim(0)));
  return mean(each / counts);
}

}  // namespace lantern::nn
