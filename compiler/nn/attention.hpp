// Attention (Vaswani et al. 2017).
#pragma once

#include "lantern/compiler/nn/layers.hpp"

namespace lantern::nn {

namespace detail {

/// In place of minus infinity: a row of which all is masked gets equal weights, and no NaN.
inline constexpr double masked_score = -1e30;

/// scores of [batch, heads, query, key].
template <class T>
Rep<T> causal_scores(const Rep<T>& scores) {
  using E = core::detail::element_t<T>;
  const auto earlier =
      tabulate([](auto query, auto key) { return key <= query; }, scores.dim(2), scores.dim(3));
  return where(earlier, scores, static_cast<E>(masked_score));
}

template <class... T>
void require_heads(const Rep<T>&... operands) {
  (require_dimensions("attention", operands.datum(), 4, "[batch, positions, heads, features]"), ...);
}

}  // namespace detail

/// softmax(q k^T / sqrt(features)) v: q of [batch, query, heads, features], k and v of [batch, key, heads,
/// features]; the result is as q. `causal`: a query sees the keys up to its own position. With a mask, of
/// bools that broadcast against [batch, heads, query, key], those keys are seen for which it holds.
template <core::detail::FloatTensor T>
Rep<T> attention(const Rep<T>& q, const Rep<T>& k, const Rep<T>& v, bool causal = false,
                 std::source_location l = std::source_location::current()) {
  const detail::Caller caller(l);
  detail::require_heads(q, k, v);
  Rep<T> scores = einsum<"bqhd,bkhd->bhqk">(q, k) / sqrt(cast<core::detail::element_t<T>>(q.dim(3)));
  if (causal) scores = detail::causal_scores(scores);
  return einsum<"bhqk,bkhd->bqhd">(softmax<3>(scores), v);
}
template <core::detail::FloatTensor T, core::TruthTensor M>
Rep<T> attention(const Rep<T>& q, const Rep<T>& k, const Rep<T>& v, const Rep<M>& mask, bool causal = false,
                 std::source_location l = std::source_location::current()) {
  const detail::Caller caller(l);
  using E = core::detail::element_t<T>;
  detail::require_heads(q, k, v);
  Rep<T> scores = einsum<"bqhd,bkhd->bhqk">(q, k) / sqrt(cast<E>(q.dim(3)));
  scores = where(mask, scores, static_cast<E>(detail::masked_score));
  if (causal) scores = detail::causal_scores(scores);
  return einsum<"bhqk,bkhd->bqhd">(softmax<3>(scores), v);
}

/// Attention in several heads at once, each of features / heads numbers: queries of [batch, query, features],
/// keys and values of [batch, key, features], the result as the queries. Parameters are those of
/// torch.nn.MultiheadAttention.
template <class S, int heads>
struct MultiheadAttention {
  Parameter<S, dyn, dyn> in_weight;  ///< [3 features, features]: of queries, keys, values
  Parameter<S, dyn> in_bias;
  Linear<S> output;

  static MultiheadAttention init(std::int64_t features, Generator& rng) {
    if (features % heads != 0)
      throw Error("MultiheadAttention: expected a multiple of " + std::to_string(heads) + " features, got " +
                  std::to_string(features));
    MultiheadAttention a{Parameter<S, dyn, dyn>({3 * features, features}), Parameter<S, dyn>({3 * features}),
                         Linear<S>::init(features, features, rng)};
    xavier_uniform(a.in_weight, rng);
    constant(a.output.bias, 0);
    return a;
  }

  /// To itself: (x), (x, causal), (x, mask), (x, mask, causal).
  template <core::detail::FloatTensor X>
  detail::Values<X> operator()(const Rep<X>& x, bool causal = false,
                               std::source_location l = std::source_location::current()) const {
    return attended(x, x, x, l, causal);
  }
  template <core::detail::FloatTensor X, core::TruthTensor M>
  detail::Values<X> operator()(const Rep<X>& x, const Rep<M>& mask, bool causal = false,
                               std::source_location l = std::source_location::current()) const {
    return attended(x, x, x, l, mask, causal);
  }
  /// From queries to keys and values: (q, k, v), (q, k, v, causal), (q, k, v, mask), (q, k, v, mask, causal).
  template <core::detail::FloatTensor Q, core::detail::FloatTensor K>
  detail::Values<Q> operator()(const Rep<Q>& queries, const Rep<K>& keys, const Rep<K>& values, bool causal = false,
                               std::source_location l = std::source_location::current()) const {
    return attended(queries, keys, values, l, causal);
  }
  template <core::detail::FloatTensor Q, core::detail::FloatTensor K, core::TruthTensor M>
  detail::Values<Q> operator()(const Rep<Q>& queries, const Rep<K>& keys, const Rep<K>& values, const Rep<M>& mask,
                               bool causal = false, std::source_location l = std::source_location::current()) const {
    return attended(queries, keys, values, l, mask, causal);
  }

 private:
  template <class Q, class K, class... M>
  detail::Values<Q> attended(const Rep<Q>& queries, const Rep<K>& keys, const Rep<K>& values,
                             const std::source_location& l, const M&... mask_and_causal) const {
    const detail::Caller caller(l);
    for (const core::Datum& t : {queries.datum(), keys.datum(), values.datum()})
      detail::require_dimensions("MultiheadAttention", t, 3, "[batch, positions, features]");
    const Rep<std::int64_t> features = in_weight.dim(1);
    const auto projected = [&](const auto& x, std::int64_t part) {
      const Rep<std::int64_t> from = features * part, to = features * (part + 1);
      const auto y = matmul(x, transpose(in_weight.slice(from, to))) + in_bias.slice(from, to);
      return detail::Values<Q>(reshape(y, x.dim(0), x.dim(1), heads, features / heads));
    };
    const auto y =
        attention(projected(queries, 0), projected(keys, 1), projected(values, 2), mask_and_causal...);
    return output(reshape(y, queries.dim(0), queries.dim(1), features));
  }
};

}  // namespace lantern::nn
