// A network of two layers learns which of two spirals a point belongs to.
//
//   mlp         prints the loss, and how many points are right
//   mlp FILE    also draws the points and what the network says into a PNG file
//
// docs/tutorials/mlp.md tells this program step by step.
#include <fmt/core.h>

#include <cmath>
#include <lantern/nn.hpp>
#include <lantern/tensor.hpp>
#include <string>
#include <vector>

#include "picture.hpp"
#include "support.hpp"

using namespace lantern;

// [model]
template <class S>
struct Mlp {
  nn::Linear<S> first, second, output;

  auto operator()(const auto& points) const { return output(tanh(second(tanh(first(points))))); }
};
using Model = Mlp<Rep<double>>;
using State = nn::AdamState<Model>;
using Points = Rep<Tensor<double, dyn, dyn>>;
using Labels = Rep<Tensor<int64_t, dyn>>;
// [/model]

// [step]
/// The loss, the model and the state after a step of Adam.
std::tuple<Rep<double>, Model, State> training_step(Model m, State s, Points x, Labels y, Rep<double> rate) {
  const auto [loss, g] = value_and_grad([&](Model w) { return nn::cross_entropy(w(x), y); })(m);
  const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = rate});
  return {loss, m2, s2};
}
LANTERN_FUNCTION(step_code, training_step)
// [/step]

// [classify]
/// The probability of the second spiral at each point.
Rep<Tensor<double, dyn>> second_spiral(Model m, Points x) {
  const Points p = softmax<1>(m(x));
  return p(all, 1);
}
LANTERN_FUNCTION(classify, second_spiral)
// [/classify]

int main(int argc, char** argv) {
  // [data]
  constexpr std::size_t count = 200;  // the first half on one spiral, the second half on the other
  Random random;
  TensorValue<double> x({int64_t(count), 2});
  TensorValue<int64_t> y({int64_t(count)});
  for (std::size_t i = 0; i < count; ++i) {
    const double radius = 0.15 + 0.85 * double(i % (count / 2)) / (count / 2);
    const double angle = 7.0 * radius + (i < count / 2 ? 0.0 : 3.14159265358979323846);
    x[2 * i] = radius * std::cos(angle) + 0.02 * random();
    x[2 * i + 1] = radius * std::sin(angle) + 0.02 * random();
    y[i] = i < count / 2 ? 0 : 1;
  }
  // [/data]

  // [train]
  nn::Generator rng(1);
  Mlp<double> model{nn::Linear<double>::init(2, 24, rng), nn::Linear<double>::init(24, 24, rng),
                    nn::Linear<double>::init(24, 2, rng)};
  auto state = nn::adam_state(model);
  auto step = nn::in_place(step_code);
  double loss = 0;
  for (int i = 0; i <= 200; ++i) {
    loss = step(model, state, x, y, 0.01);
    if (i % 50 == 0) fmt::print("step {:3}: loss {:.3f}\n", i, loss);
  }
  // [/train]

  // [report]
  const TensorValue<double> guessed = classify(nn::view(model), x);
  std::size_t right = 0;
  for (std::size_t i = 0; i < count; ++i) right += (guessed[i] > 0.5) == (y[i] == 1);
  fmt::print("{} parameters; {} of {} points right\n", nn::parameter_count(model), right, count);
  // [/report]

  if (argc > 1) {
    constexpr int64_t side = 320;
    const auto place = [](double v) { return std::lround((v / 1.2 + 1) * (side - 1) / 2); };
    TensorValue<double> grid({side * side, 2});
    for (std::size_t i = 0; i < side * side; ++i) {
      grid[2 * i] = 1.2 * (2.0 * double(i % side) / (side - 1) - 1);
      grid[2 * i + 1] = 1.2 * (2.0 * double(i / side) / (side - 1) - 1);
    }
    const TensorValue<double> said = classify(nn::view(model), grid);
    // Blue where the network says the first spiral, orange where the second.
    const double ground[2][3] = {{0.78, 0.86, 0.94}, {0.99, 0.82, 0.64}},
                 dot[2][3] = {{0.12, 0.47, 0.71}, {0.84, 0.15, 0.16}};
    Picture picture(side, side);
    for (int64_t k = 0; k < side * side; ++k)
      for (int64_t c = 0; c < 3; ++c)
        picture.at(k % side, k / side, c) =
            to_byte(ground[0][c] + said[std::size_t(k)] * (ground[1][c] - ground[0][c]));
    for (std::size_t i = 0; i < count; ++i)
      for (int64_t dy = -2; dy <= 2; ++dy)
        for (int64_t dx = -2; dx <= 2; ++dx)
          for (int64_t c = 0; c < 3 && dx * dx + dy * dy < 7; ++c)
            picture.at(place(x[2 * i]) + dx, place(x[2 * i + 1]) + dy, c) = to_byte(dot[y[i]][c]);
    write_png(argv[1], picture);
  }
  if (right >= count * 95 / 100) return 0;
  fmt::print("expected 95 % of the points to be right\n");
  return 1;
}
