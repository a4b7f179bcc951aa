#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>
using namespace lantern;
using Matrix = Rep<Tensor<float, dyn, dyn>>;
using Row = Rep<Tensor<float, dyn>>;
std::tuple<Rep<float>, Row, Matrix, Row> model(Matrix x, Matrix w) {
  const Matrix y = matmul(x, w);
  const Matrix z = exp(y) * 2.0f;
  const Row columns = sum<0>(softmax<1>(x));
  const Rep<float> total = sum(columns * columns);
  return {total, columns, z, cumsum(columns)};
}
LANTERN_FUNCTION(everything, model)
int main() { return 0; }
