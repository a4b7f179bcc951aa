// Binary TreeLSTM over labelled trees: the model, its loss, and a step of training.
//
// Tai, Socher and Manning, "Improved semantic representations from tree-structured long short-term memory
// networks" (ACL 2015), section 3.2, written as in section 5.1 of the Lantern paper (ICFP 2019): one TREE.
#pragma once

#include <lantern/nn.hpp>

namespace treelstm {

using namespace lantern;

// [model]
/// S is Rep<float> or Rep<double> in the program, float or double outside. The gates of a cell lie one after
/// the other in what a layer gives: n input, n output, n update, and of inner nodes n to forget the left and
/// n to forget the right child's cell.
template <class S>
struct Model {
  nn::Embedding<S> words;
  nn::Linear<S> leaf;    ///< embedding -> 3 n
  nn::Linear<S> inner;   ///< 2 n, the children's hidden states -> 5 n
  nn::Linear<S> scores;  ///< n -> classes
};

// [/model]
struct Sizes {
  std::int64_t words, embedding, hidden, classes;
};

/// Embeddings uniform in +-1/sqrt(embedding); biases of forget gates 1, so that cells are kept at first.
template <class E>
Model<E> initial(const Sizes& size, nn::Generator& rng) {
  const std::int64_t n = size.hidden;
  Model<E> m{nn::Embedding<E>::init(size.words, size.embedding, rng),
             nn::Linear<E>::init(size.embedding, 3 * n, rng), nn::Linear<E>::init(2 * n, 5 * n, rng),
             nn::Linear<E>::init(n, size.classes, rng)};
  const double bound = 1 / std::sqrt(static_cast<double>(size.embedding));
  nn::uniform(m.words.weight, rng, -bound, bound);
  std::fill(m.inner.bias.data.begin() + 3 * n, m.inner.bias.data.end(), E(1));
  return m;
}

// ---- the program

using Node = std::tuple<std::int64_t, std::int64_t>;  ///< word or -1, label
using Sentence = Rep<Tree<Node>>;
using Sentences = Trees<Node>;  ///< many of them: a batch
template <class E>
using Vector = Rep<Tensor<E, dyn>>;

/// 1 / (1 + exp(-x)).
template <class E>
Vector<E> logistic(const Vector<E>& x) {
  return 0.5 + 0.5 * tanh(0.5 * x);
}

/// What a node tells its parent.
template <class E>
struct State {
  Rep<E> loss;  ///< cross-entropy of the labels, summed over the nodes from here down
  Vector<E> hidden, cell;
};

// [fold]
/// Folds a tree, or every tree of a batch. All rows of the embedding go through the leaves' layer at once: a step has
/// those of the words in its trees alone (nn::with_rows).
template <class E, class Trees, class... Options>
auto fold(const Model<Rep<E>>& model, const Trees& trees, const Options&... options) {
  const Rep<Tensor<E, dyn, dyn>> leaves = model.leaf(model.words.weight);
  const Vector<E> zero = zeros_like(Vector<E>(model.scores.weight.row(0)));
  const auto gate = [n = zero.dim(0)](const Vector<E>& gates, int i) -> Vector<E> {
    return gates.slice(n * i, n * (i + 1));
  };

  const auto combine = [&](State<E> left, State<E> right, auto node) {
    const auto [word, label] = node.value();
    // A leaf sees its word. An inner node sees its children, and keeps what it does not forget of their
    // cells.
    const auto [gates, kept] = IF(
        node.is_leaf(), [&] { return std::tuple(Vector<E>(leaves.row(word)), zero); },
        [&] {
          const Vector<E> g = model.inner(concat(left.hidden, right.hidden));
          const Vector<E> cells = logistic<E>(gate(g, 3)) * left.cell + logistic<E>(gate(g, 4)) * right.cell;
          return std::tuple(g, cells);
        });
    const Vector<E> cell = logistic<E>(gate(gates, 0)) * tanh(gate(gates, 2)) + kept;
    const Vector<E> hidden = logistic<E>(gate(gates, 1)) * tanh(cell);
    const Vector<E> scores = model.scores(hidden);
    return State<E>{left.loss + right.loss + logsumexp(scores) - scores(label), hidden, cell};
  };
  return TREE(State<E>{0.0, zero, zero}, trees, combine, options...);
}
// [/fold]

/// Cross-entropy summed over the nodes.
template <class E>
Rep<E> loss(const Model<Rep<E>>& model, const Sentence& sentence) {
  return fold<E>(model, sentence).loss;
}

/// Scores of the classes at the root.
template <class E>
Vector<E> classify(const Model<Rep<E>>& model, const Sentence& sentence) {
  return model.scores(fold<E>(model, sentence).hidden);
}

template <class E>
using Adagrad = nn::AdagradState<Model<E>>;

/// Summed over the trees of a batch as well.
template <class E>
Rep<E> batch_loss(const Model<Rep<E>>& model, const Sentences& sentences, const TreeOptions& options = {}) {
  return sum(std::get<0>(fold<E>(model, sentences, options)));
}

// [step]
/// The value of a loss, and the model and what Adagrad keeps after a step along its gradient.
template <class E, class Loss>
std::tuple<Rep<E>, Model<Rep<E>>, Adagrad<Rep<E>>> step_of(const Loss& of_model, const Model<Rep<E>>& model,
                                                           const Adagrad<Rep<E>>& state, const Rep<double>& rate) {
  const auto [value, gradient] = value_and_grad(of_model)(model);
  const auto [new_model, new_state] = nn::adagrad(model, gradient, state, {.learning_rate = rate});
  return {value, new_model, new_state};
}

/// Of a tree.
template <class E>
std::tuple<Rep<E>, Model<Rep<E>>, Adagrad<Rep<E>>> training_step(const Model<Rep<E>>& model,
                                                                 const Adagrad<Rep<E>>& state,
                                                                 const Sentence& sentence,
                                                                 const Rep<double>& rate) {
  const auto of_model = [&](const Model<Rep<E>>& m) { return loss<E>(m, sentence); };
  return step_of<E>(of_model, model, state, rate);
}

// [/step]
/// Of a batch.
template <class E, bool by_level = true>
std::tuple<Rep<E>, Model<Rep<E>>, Adagrad<Rep<E>>> batch_step(const Model<Rep<E>>& model,
                                                              const Adagrad<Rep<E>>& state,
                                                              const Sentences& sentences,
                                                              const Rep<double>& rate) {
  const auto of_model = [&](const Model<Rep<E>>& m) { return batch_loss<E>(m, sentences, {.by_level = by_level}); };
  return step_of<E>(of_model, model, state, rate);
}

}  // namespace treelstm
