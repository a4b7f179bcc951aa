// Networks, loops and branches, and derivatives, for tests of the exporter.
#include <lantern/tensor.hpp>

#include "onnx_programs.hpp"

namespace onnx_programs {

namespace {

using F = Rep<float>;
using D = Rep<double>;
using N = Rep<std::int64_t>;
using V = Rep<Tensor<float, dyn>>;
using M = Rep<Tensor<float, dyn, dyn>>;
using T3 = Rep<Tensor<float, dyn, dyn, dyn>>;
using T4 = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;
using Labels = Rep<Tensor<std::int64_t, dyn>>;
using Images = Rep<Tensor<float, dyn, 2, 8, 8>>;
using Any = Rep<Tensor<float>>;

template <class S>
struct Mlp {
  nn::Linear<S> hidden, output;
  auto operator()(const auto& x) const { return output(relu(hidden(x))); }
};
using StagedMlp = Mlp<F>;

Any mlp(StagedMlp m, M x) { return m(x); }
F mlp_loss(StagedMlp m, M x, Labels y) { return nn::cross_entropy(m(x), y); }

Mlp<float> small_mlp() {
  nn::Generator rng(3);
  return {nn::Linear<float>::init(5, 7, rng), nn::Linear<float>::init(7, 4, rng)};
}

template <class S>
struct Cnn {
  nn::Conv<S> conv;
  nn::BatchNorm<S> norm;
  nn::RunningStatistics<S> running;
  nn::Linear<S> output;
  auto operator()(const auto& x) const {
    const auto y = max_pool(relu(norm(conv(x, {.padding = 1}), running)), 2);
    return output(reshape(y, x.dim(0), 3 * 4 * 4));
  }
};
Any cnn(Cnn<F> m, Images x) { return m(x); }
F cnn_loss(Cnn<F> m, Images x, Labels y) { return nn::cross_entropy(m(x), y); }

Cnn<float> small_cnn() {
  nn::Generator rng(4);
  Cnn<float> m{nn::Conv<float>::init(2, 3, {3, 3}, rng),
               nn::BatchNorm<float>::init(3),
               {},
               nn::Linear<float>::init(48, 4, rng)};
  m.running.mean = tensor<float>({3}, 5);
  m.running.variance = TensorValue<float>({3}, 0.7F);
  return m;
}

using Lstm = nn::Recurrent<F, nn::Gates::lstm>;
auto lstm(Lstm m, T3 x) {
  const auto [y, state] = m(x);
  return std::tuple(y, state.hidden);
}

F lstm_loss(Lstm m, T3 x) {
  const auto y = m(x).first;
  return sum(y * y);
}

F steps(V x, N n) {
  return sum(FOR(0, n, x, [](N i, V s) { return sin(s) * s + cast<float>(i); }));
}
D halved(D x) {
  return WHILE(x, [](D t) { return t > 1.0; }, [](D t) { return t * 0.5 * t; });
}
D chosen(D x) {
  return IF(x > 0.0, [&] { return -1.0 * x * x; }, [&] { return x * x * x; });
}
D mixed(D x, N n) {
  return FOR(0, n, x, [](N i, D s) {
    return IF(s > 1.0, [&] { return s * 0.3; }, [&] { return s * s + cast<double>(i); });
  });
}
F rows(M x) {
  return sum(FOR(0, x.dim(0), x, [&](N i, M s) { return s.set(i, 0, s(i, 0) * x(i, 1) + 1.0F); }));
}

}  // namespace

std::vector<Case> network_programs() {
  std::vector<Case> cases;
  nn::Generator rng(7);
  cases.push_back(make("mlp", mlp, weights(small_mlp()),
                       {.arguments = {"x"}, .results = {"scores"}, .sizes = {{"x", {"batch"}}}},
                       tensor<float>({6, 5})));
  cases.push_back(make("mlp_free", mlp, weights(), {}, small_mlp(), tensor<float>({6, 5})));
  cases.push_back(make("mlp_loss", mlp_loss, weights(small_mlp()),
                       {.arguments = {"x", "y"}, .results = {"loss"}}, tensor<float>({4, 5}),
                       labels({0, 3, 1, 2})));
  cases.push_back(make("cnn", cnn, weights(small_cnn()),
                       {.arguments = {"x"}, .results = {"scores"}, .sizes = {{"x", {"batch"}}}},
                       tensor<float>({3, 2, 8, 8})));
  const auto image = tensor<float>({2, 4, 9, 9});
  using I4 = Rep<Tensor<float, dyn, 4, 9, 9>>;
  cases.push_back(make(
      "conv_strided",
      [](Rep<Tensor<float, 6, 4, 3, 3>> w, I4 x) {
        return conv2d(x, w, {.stride = 2, .padding = 1, .dilation = 2});
      },
      weights(tensor<float>({6, 4, 3, 3}, 2)), {}, image));
  cases.push_back(make(
      "conv_groups", [](Rep<Tensor<float, 6, 2, 3, 3>> w, I4 x) { return conv2d(x, w, {.groups = 2}); },
      weights(tensor<float>({6, 2, 3, 3}, 2)), {}, image));
  cases.push_back(make(
      "conv_open", [](T4 w, T4 x) { return conv2d(x, w, {.stride = 2, .padding = 1}); }, weights(), {},
      tensor<float>({6, 4, 3, 3}, 2), image));
  cases.push_back(make(
      "conv_transposed",
      [](Rep<Tensor<float, 4, 5, 3, 3>> w, I4 x) {
        return conv_transpose(x, w, {.stride = 2, .padding = 1, .output_padding = 1});
      },
      weights(tensor<float>({4, 5, 3, 3}, 2)), {}, image));
  cases.push_back(make(
      "pools",
      [](I4 x) {
        return std::tuple(max_pool(x, 3, {.stride = 2, .padding = 1}), max_pool(x, 2),
                          average_pool(x, 3, {.stride = 2, .padding = 1}), adaptive_average_pool(x, 1));
      },
      weights(), {}, image));
  cases.push_back(
      make("unfolded", [](I4 x) { return unfold(x, 3, {.stride = 2, .padding = 1}); }, weights(), {}, image));
  cases.push_back(make(
      "softmax", [](M x) { return std::tuple(softmax<1>(x), log_softmax<1>(x), logsumexp<0>(x)); }, weights(),
      {}, tensor<float>({4, 6})));
  cases.push_back(make(
      "layer_norm", [](nn::LayerNorm<F> n, T3 x) { return n(x); }, weights(nn::LayerNorm<float>::init(6)), {},
      tensor<float>({2, 3, 6})));
  cases.push_back(make(
      "attention", [](nn::MultiheadAttention<F, 2> a, T3 x) { return a(x); },
      weights(nn::MultiheadAttention<float, 2>::init(8, rng)), {}, tensor<float>({2, 5, 8})));
  cases.push_back(make(
      "causal", [](nn::MultiheadAttention<F, 2> a, T3 x) { return a(x, true); },
      weights(nn::MultiheadAttention<float, 2>::init(8, rng)), {}, tensor<float>({2, 5, 8})));
  cases.push_back(make(
      "embedding", [](nn::Embedding<F> t, Labels i) { return t(i); },
      weights(nn::Embedding<float>::init(9, 4, rng)), {}, labels({3, 1, 8, 3})));
  cases.push_back(make("lstm", lstm, weights(nn::Recurrent<float, nn::Gates::lstm>::init(4, 5, rng)), {},
                       tensor<float>({6, 2, 4})));
  return cases;
}

std::vector<Case> control_programs() {
  std::vector<Case> cases;
  cases.push_back(make("for", steps, weights(), {}, tensor<float>({4}), std::int64_t{5}));
  cases.push_back(make("for_none", steps, weights(), {}, tensor<float>({4}), std::int64_t{0}));
  cases.push_back(make("while", halved, weights(), {}, 1.9));
  cases.push_back(make("while_none", halved, weights(), {}, 0.5));
  cases.push_back(make("if_then", chosen, weights(), {}, 1.5));
  cases.push_back(make("if_else", chosen, weights(), {}, -1.5));
  cases.push_back(make("if_in_for", mixed, weights(), {}, 0.5, std::int64_t{6}));
  cases.push_back(make("rows", rows, weights(), {}, tensor<float>({4, 3})));
  return cases;
}

std::vector<Case> derivative_programs() {
  std::vector<Case> cases;
  nn::Generator rng(9);
  cases.push_back(make("grad_mlp", grad<0>(mlp_loss), weights(), {}, small_mlp(), tensor<float>({4, 5}),
                       labels({0, 3, 1, 2})));
  cases.push_back(make("grad_cnn", grad<0>(cnn_loss), weights(), {}, small_cnn(), tensor<float>({3, 2, 8, 8}),
                       labels({0, 3, 1})));
  cases.push_back(make("grad_cnn_image", grad<1>(cnn_loss), weights(small_cnn()), {},
                       tensor<float>({3, 2, 8, 8}), labels({0, 3, 1})));
  cases.push_back(make("grad_pool", grad([](Images x) {
                         const Any y = max_pool(x, 3, {.stride = 2, .padding = 1});
                         return sum(y * y);
                       }),
                       weights(), {}, tensor<float>({3, 2, 8, 8})));
  cases.push_back(make("grad_for", grad<0>(steps), weights(), {}, tensor<float>({4}), std::int64_t{5}));
  cases.push_back(make("grad_while", grad(halved), weights(), {}, 1.9));
  cases.push_back(make("grad_if", grad(chosen), weights(), {}, 1.5));
  cases.push_back(make("grad_mixed", grad<0>(mixed), weights(), {}, 0.5, std::int64_t{6}));
  cases.push_back(make("grad_rows", grad(rows), weights(), {}, tensor<float>({4, 3})));
  cases.push_back(make("grad_softmax", grad([](M x, M w) { return sum(softmax<1>(x) * w); }), weights(), {},
                       tensor<float>({4, 6}), tensor<float>({4, 6}, 2)));
  cases.push_back(make("grad_lstm", grad<0>(lstm_loss), weights(), {},
                       nn::Recurrent<float, nn::Gates::lstm>::init(4, 5, rng), tensor<float>({6, 2, 4})));
  cases.push_back(make("hessian_vector", hvp([](V x) { return sum(sin(x) * x * x); }), weights(), {},
                       tensor<float>({5}), tensor<float>({5}, 2)));
  return cases;
}

}  // namespace onnx_programs
