// A function for the GPU, and its gradient: of the squares of a x + y, by a and x. As a source for nvcc:
//   lanternc saxpy.cpp --emit=cuda --function=saxpy_gradient -o saxpy_gradient.cu
//   lanternc saxpy.cpp --emit=header --target=cuda --function=saxpy_gradient -o saxpy_gradient.h
//   nvcc main.cu saxpy_gradient.cu -ldl -o saxpy
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>

using namespace lantern;
using Row = Rep<Tensor<float, dyn>>;

Rep<float> squares(Rep<float> a, Row x, Row y) {
  const Row r = a * x + y;
  return sum(r * r);
}
LANTERN_FUNCTION(saxpy_gradient, value_and_grad<0, 1>(squares))

int main() {
  const auto row = [](std::vector<float> elements) {
    TensorValue<float> t({static_cast<std::int64_t>(elements.size())});
    t.data.assign(elements.begin(), elements.end());
    return t;
  };
  const TensorValue<float> x = row({1, 2, 3}), y = row({0.5F, 0.5F, 0.5F});
  const auto [value, gradient] = saxpy_gradient(2.0F, x, y);
  return value == 68.75F && std::get<0>(gradient) == 62.0F ? 0 : 1;
}
