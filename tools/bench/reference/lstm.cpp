#include "lstm.hpp"

#include <cmath>

namespace lantern::bench::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// One layer: `hidden` and `cell` become those of the next character. `gates` has room for 4 width numbers:
/// forget, in, out, change.
void layer(int width, const double* weights, const double* biases, double* hidden, double* cell,
           const double* input, double* gates) {
  double *forget = gates, *in = gates + width, *out = gates + 2 * width, *change = gates + 3 * width;
  for (int i = 0; i < width; ++i) {
    forget[i] = input[i] * weights[i] + biases[i];
    in[i] = hidden[i] * weights[width + i] + biases[width + i];
    out[i] = input[i] * weights[2 * width + i] + biases[2 * width + i];
    change[i] = hidden[i] * weights[3 * width + i] + biases[3 * width + i];
  }
  for (int i = 0; i < 3 * width; ++i) gates[i] = sigmoid(gates[i]);
  for (int i = 0; i < width; ++i) change[i] = std::tanh(change[i]);
  for (int i = 0; i < width; ++i) cell[i] = cell[i] * forget[i] + in[i] * change[i];
  for (int i = 0; i < width; ++i) hidden[i] = out[i] * std::tanh(cell[i]);
}

/// The prediction after one more character.
void predict(const LstmInput& in, const double* character, double* state, double* gates, double* prediction) {
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
  std::vector<double> gates(static_cast<std::size_t>(4 * width));
  double total = 0;
  for (int t = 0; t + 1 < in.characters; ++t) {
    const double* character = in.sequence.data() + t * width;
    predict(in, character, state.data(), gates.data(), prediction.data());
    const double normal = logsumexp(width, prediction.data());
    const double* next = character + width;
    for (int i = 0; i < width; ++i) total += next[i] * (prediction[static_cast<std::size_t>(i)] - normal);
  }
  return -total / (width * (in.characters - 1));
}

}  // namespace lantern::bench::reference
