// Binary TreeLSTM over labelled trees: parameters, cell and loss.
//
// Tai, Socher and Manning, "Improved semantic representations from tree-structured long short-term memory
// networks" (ACL 2015), section 3.2, written as in section 5.1 of the Lantern paper (ICFP 2019): one TREE.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <lantern/lantern.hpp>
#include <random>
#include <tuple>

namespace treelstm {

using namespace lantern;

using Matrix = Rep<Tensor<double, dyn, dyn>>;
using Vector = Rep<Tensor<double, dyn>>;
using Sentence = Rep<Tree<std::tuple<std::int64_t, std::int64_t>>>;  ///< at each node: word or -1, label

/// What is trained, for a hidden size n. The gates of a cell lie below each other in one matrix.
template <class M, class V>
struct Parameters {
  M embedding;     ///< words x embedding
  M leaf_weight;   ///< 3n x embedding: input, output, update
  V leaf_bias;     ///< 3n
  M inner_weight;  ///< 5n x 2n: input, output, update, forget left, forget right
  V inner_bias;    ///< 5n
  M class_weight;  ///< classes x n
  V class_bias;    ///< classes
};

// ---- the program

using Model = Parameters<Matrix, Vector>;

/// What a node tells its parent.
struct State {
  Rep<double> loss;  ///< summed over the nodes from here down
  Vector hidden, cell;
};

inline Vector sigmoid(const Vector& x) { return 1.0 / (1.0 + exp(-x)); }

inline Vector linear(const Matrix& weight, const Vector& x, const Vector& bias) {
  return Vector(matmul(weight, x)) + bias;
}

/// Folds a tree; the loss of a node is the cross-entropy of its label.
inline State fold(const Model& model, const Sentence& sentence) {
  const Vector zero = zeros_like(Vector(model.class_weight.row(0)));
  const auto gate = [n = zero.dim(0)](const Vector& gates, int i) -> Vector {
    return gates.slice(n * i, n * (i + 1));
  };

  return TREE(State{0.0, zero, zero}, sentence, [&](State left, State right, Sentence node) {
    const auto [word, label] = node.value();
    // A leaf sees its word. An inner node sees its children, and keeps what it does not forget of their
    // cells.
    const auto [gates, kept] = IF(
        node.is_leaf(),
        [&] {
          return std::tuple(linear(model.leaf_weight, model.embedding.row(word), model.leaf_bias), zero);
        },
        [&] {
          const Vector g = linear(model.inner_weight, concat(left.hidden, right.hidden), model.inner_bias);
          return std::tuple(g, sigmoid(gate(g, 3)) * left.cell + sigmoid(gate(g, 4)) * right.cell);
        });
    const Vector cell = sigmoid(gate(gates, 0)) * tanh(gate(gates, 2)) + kept;
    const Vector hidden = sigmoid(gate(gates, 1)) * tanh(cell);
    const Vector scores = linear(model.class_weight, hidden, model.class_bias);
    return State{left.loss + right.loss + logsumexp(scores) - scores(label), hidden, cell};
  });
}

/// Cross-entropy summed over the nodes.
inline Rep<double> loss(const Model& model, const Sentence& sentence) { return fold(model, sentence).loss; }

/// Scores of the classes at the root.
inline Vector classify(const Model& model, const Sentence& sentence) {
  return linear(model.class_weight, fold(model, sentence).hidden, model.class_bias);
}

// ---- its parameters, outside

using Values = Parameters<TensorValue<double>, TensorValue<double>>;
using Views = Parameters<TensorView<const double>, TensorView<const double>>;

/// The parameters as arguments of a compiled function.
inline Views view(const Values& v) {
  return {v.embedding,  v.leaf_weight,  v.leaf_bias, v.inner_weight,
          v.inner_bias, v.class_weight, v.class_bias};
}

/// The tensors one by one.
inline std::array<TensorValue<double>*, 7> each(Values& v) {
  return {&v.embedding,  &v.leaf_weight,  &v.leaf_bias, &v.inner_weight,
          &v.inner_bias, &v.class_weight, &v.class_bias};
}

struct Sizes {
  std::int64_t words, embedding, hidden, classes;
};

/// Weights uniform in +-1/sqrt(columns); biases zero, those of forget gates 1, so that cells are kept at
/// first.
inline Values initial(const Sizes& size, std::mt19937_64& random) {
  const std::int64_t n = size.hidden;
  const auto weight = [&](std::int64_t rows, std::int64_t columns) {
    TensorValue<double> w({rows, columns});
    const double scale = 1.0 / std::sqrt(static_cast<double>(columns));
    for (double& x : w.data) x = scale * (2.0 * std::generate_canonical<double, 53>(random) - 1.0);
    return w;
  };
  Values v{weight(size.words, size.embedding), weight(3 * n, size.embedding),
           TensorValue<double>({3 * n}),       weight(5 * n, 2 * n),
           TensorValue<double>({5 * n}),       weight(size.classes, n),
           TensorValue<double>({size.classes})};
  std::fill(v.inner_bias.data.begin() + 3 * n, v.inner_bias.data.end(), 1.0);
  return v;
}

}  // namespace treelstm
