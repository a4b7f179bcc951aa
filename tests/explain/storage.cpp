// Tensors that lie in 16 bits of a GPU's memory, and tensors that do not.
#include <lantern/lantern.hpp>
#include <lantern/nn.hpp>
#include <lantern/tensor.hpp>

using namespace lantern;
using F = Rep<float>;
using M = Rep<Tensor<float, dyn, dyn>>;
using P = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;

F loss(M w, M v, M x) {
  const M hidden = tanh(matmul(x, w));
  const M out = matmul(hidden, v);
  return sum(out * out);
}
LANTERN_FUNCTION(gradient, value_and_grad<0, 1>(loss))

F convolved(P kernel, P picture) {
  const P bright = 2.0f * picture + 1.0f;
  const P edges = conv2d(bright, kernel);
  return sum(tanh(edges) * edges);
}
LANTERN_FUNCTION(filtered, convolved)
