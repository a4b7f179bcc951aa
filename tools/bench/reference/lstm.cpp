#include "lstm.hpp"

#include <cmath>

namespace lantern::bench::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The gates of one layer, `width` numbers each.
struct Gates {
  explicit Gates(int width)
      : forget(static_cast<std::size_t>(width)), in(forget), out(forget), change(forget) {}
  std::vector<double> forget, in, out, change;
};

/// One layer: `hidden` and `cell` become those of the next character.
void layer(int width, const double* weights, const double* biases, double* hidden, double* cell,
           const double* input, Gates& gates) {
  double *forget = gates.forget.data(), *in = gates.in.data(), *out = gates.out.data(),
         *change = gates.change.data();
  const auto affine = [&](const double* x, int row, int i) {
    return x[i] * weights[row * width + i] + biases[row * width + i];
  };
  for (int i = 0; i < width; ++i) forget[i] = sigmoid(affine(input, 0, i));
  for (int i = 0; i < width; ++i) in[i] = sigmoid(affine(hidden, 1, i));
  for (int i = 0; i < width; ++i) out[i] = sigmoid(affine(input, 2, i));
  for (int i = 0; i < width; ++i) change[i] = std::tanh(affine(hidden, 3, i));
  for (int i = 0; i < width; ++i) cell[i] = cell[i] * forget[i] + in[i] * change[i];
  for (int i = 0; i < width; ++i) hidden[i] = out[i] * std::tanh(cell[i]);
}

/// The prediction after one more character.
void predict(const LstmInput& in, const double* character, double* state, Gates& gates, double* prediction) {
  const int width = in.width;
  const double* extra = in.extra.data();
  for (int i = 0; i < width; ++i) prediction[i] = character[i] * extra[i];
  const double* input = prediction;
  for (int l = 0; l < in.layers; ++l) {
    const double* parameters = in.main.data() + l * 8 * width;
    double* hidden = state + l * 2 * width;
    layer(width, parameters, parameters + 4 * width, hidden, hidden + width, input, gates);
    input = hidden;
  }
  for (int i = 0; i < width; ++i) prediction[i] = input[i] * extra[width + i] + extra[2 * width + i];
}

double logsumexp(int n, const double* x) {
  double sum = 2;  // as the suite has it
  for (int i = 0; i < n; ++i) sum += std::exp(x[i]);
  return std::log(sum);
}

}  // namespace

double lstm(const LstmInput& in) {
  const int width = in.width;
  std::vector<double> state = in.state, prediction(static_cast<std::size_t>(width));
  Gates gates(width);
  double total = 0;
  for (int t = 0; t + 1 < in.characters; ++t) {
    const double* character = in.sequence.data() + t * width;
    predict(in, character, state.data(), gates, prediction.data());
    const double normal = logsumexp(width, prediction.data());
    const double* next = character + width;
    for (int i = 0; i < width; ++i) total += next[i] * (prediction[static_cast<std::size_t>(i)] - normal);
  }
  return -total / (width * (in.characters - 1));
}

}  // namespace lantern::bench::reference
