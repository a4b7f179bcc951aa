// A model of a hundred lines: how long lanternc takes for one is a promise (tests/correctness/
// lanternc_cache_test.cpp).
#include <array>
#include <cstdint>
#include <cstdio>
#include <lantern/lantern.hpp>
#include <vector>

using namespace lantern;

namespace {

constexpr int layers = 3;

template <class T>
struct Body {
  T height, speed;
};

template <class T>
struct Layer {
  T weight, bias;
};

// A ball that bounces: how high it is after some steps.
Rep<double> bounce(Rep<double> height, Rep<double> damping) {
  Body<Rep<double>> ball{height, 0.0};
  for (Rep<std::int64_t> step = 0; step < 200; ++step) {
    ball.speed -= 9.81 * 0.01;
    ball.height += ball.speed * 0.01;
    if (ball.height < 0.0) {
      ball.height = -ball.height;
      ball.speed = -damping * ball.speed;
    }
    if (ball.height > 100.0) break;
  }
  return ball.height;
}

// Newton's method, until it has converged.
Rep<double> root(Rep<double> a) {
  Rep<double> x = a;
  while (true) {
    Rep<double> next = 0.5 * (x + a / x);
    if (abs(next - x) < 1e-12) return next;
    x = next;
  }
}

Rep<double> activation(Rep<double> x, int kind) {
  switch (kind) {
    case 0:
      return tanh(x);
    case 1:
      return x > 0.0 ? x : 0.01 * x;
    default:
      return x;
  }
}

Rep<double> network(Rep<Array<double>> input, Rep<double> target) {
  std::array<Layer<Rep<double>>, layers> all;
  for (int i = 0; i < layers; ++i) all[i] = {input[2 * i], input[2 * i + 1]};
  Rep<double> x = input[0] + input[1];
  for (int i = 0; i < layers; ++i) x = activation(all[i].weight * x + all[i].bias, i);
  Rep<double> error = x - target;
  return error * error;
}

// Sum of squares of what is not an outlier.
Rep<double> robust(Rep<Array<double>> data, Rep<double> centre, Rep<double> width) {
  Rep<double> total = 0.0;
  for (Rep<double> x : data) {
    Rep<double> distance = (x - centre) / width;
    if (abs(distance) > 3.0) continue;
    total += distance * distance;
  }
  return total;
}

Rep<double> binomial(Rep<double> p, Rep<std::int64_t> n) {
  if (n == 0 || p < 1e-3) return 1.0;
  return p * binomial(p, n - 1) + 0.5;
}

}  // namespace

LANTERN_FUNCTION(dbounce, value_and_grad(bounce))
LANTERN_FUNCTION(droot, value_and_grad(root))
LANTERN_FUNCTION(dnetwork, grad(network))
LANTERN_FUNCTION(drobust, grad(robust))
LANTERN_FUNCTION(dbinomial, grad(binomial))

int main() {
  const auto [height, slope] = dbounce(2.0, 0.8);
  std::printf("%.6f %.6f %.6f\n", height, std::get<0>(slope), std::get<1>(slope));
  const auto [x, dx] = droot(9.0);
  std::printf("%.6f %.6f\n", x, dx);
  const std::vector<double> numbers{0.5, 0.1, -0.3, 0.2, 0.7, 5.0};
  std::printf("%.6f\n", std::get<1>(dnetwork(numbers, 1.0)));
  std::printf("%.6f\n%.6f\n", std::get<1>(drobust(numbers, 0.1, 0.5)), dbinomial(0.5, 3));
}
