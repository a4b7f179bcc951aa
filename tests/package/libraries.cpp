// Every header of an installed Lantern, and the libraries that some of them need.
#include <cstdio>
#include <lantern/data.hpp>
#include <lantern/linalg.hpp>
#include <lantern/nn.hpp>
#include <lantern/random.hpp>
#include <lantern/solvers.hpp>
#include <lantern/tensor.hpp>

using namespace lantern;
using Matrix = Rep<Tensor<double, dyn, dyn>>;

int main() {
  const auto program = [](Matrix a) {
    const auto root = solvers::newton([](Rep<double> x, Rep<double> c) { return x * x - c; }, 1.0, a(0, 0));
    return linalg::logdet(a) + root.x + 0.0 * random::uniform<double>(1) + nn::mse(a, a) + max(max<1>(a));
  };
  save_npy("a.npy", TensorValue<double>({4, 0, 0, 4}, {2, 2}));
  const double value = eager(program)(load_npy<double>("a.npy"));
  std::printf("%.6f\n", value);
  return value > 8.77258 && value < 8.77260 ? 0 : 1;
}
