// An LSTM learns to write: Hochreiter and Schmidhuber, "Long short-term memory" (1997), with forget gates.
//
//   char_lstm               a sonnet, by heart
//   char_lstm --data DIR    a megabyte of Shakespeare: DIR/text/tinyshakespeare.txt
//
// The cell is below; text, loss, training and writing are in char_model.hpp. One compiled function makes
// a step: the loss of 20 texts over 20 characters, its gradient, clipping and Adagrad.
#include "char_model.hpp"

namespace {

using namespace lantern;
using characters::T;

template <class S>
struct Lstm {
  nn::Parameter<S, dyn, dyn> input,
      hidden;                  ///< [characters, 4 n], [n, 4 n]: input, forget, cell and output gate
  nn::Parameter<S, dyn> bias;  ///< [4 n]
  using State = std::array<nn::Parameter<S, dyn, dyn>, 2>;  ///< what it shows, what it keeps: [texts, n]

  static Lstm init(std::int64_t count, std::int64_t n, nn::Generator& rng) {
    return characters::initial_cell<Lstm>(count, n, 4, rng);
  }
  State next(const T& from_input, const State& before) const {
    const T all = from_input + matmul(before[0], hidden);
    const auto gate = [&, n = hidden.dim(0)](std::int64_t k) -> T {
      return all(core::named::all, range(n * k, n * (k + 1)));
    };
    const auto sigmoid_of = [](const T& t) { return 0.5 + 0.5 * tanh(0.5 * t); };
    const T kept = sigmoid_of(gate(1)) * before[1] + sigmoid_of(gate(0)) * tanh(gate(2));
    return {sigmoid_of(gate(3)) * tanh(kept), kept};
  }
};

}  // namespace

int main(int argc, char** argv) {
  return characters::run<Lstm>(argc, argv, "Trains an LSTM to write a text character by character.");
}
