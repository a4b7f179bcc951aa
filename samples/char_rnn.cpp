// A recurrent network learns to write: the one of Elman, "Finding structure in time" (1990), as in A.
// Karpathy's min-char-rnn.
//
//   char_rnn               a sonnet, by heart
//   char_rnn --data DIR    a megabyte of Shakespeare: DIR/text/tinyshakespeare.txt
//
// The cell is below; text, loss, training and writing are in char_model.hpp. One compiled function makes
// a step: the loss of 20 texts over 20 characters, its gradient, clipping and Adagrad.
#include "char_model.hpp"

namespace {

using namespace lantern;
using characters::T;

template <class S>
struct Rnn {
  nn::Parameter<S, dyn, dyn> input, hidden;                 ///< [characters, n], [n, n]
  nn::Parameter<S, dyn> bias;                               ///< [n]
  using State = std::array<nn::Parameter<S, dyn, dyn>, 1>;  ///< [texts, n]

  static Rnn init(std::int64_t count, std::int64_t n, nn::Generator& rng) {
    return characters::initial_cell<Rnn>(count, n, 1, rng);
  }
  State next(const T& from_input, const State& before) const {
    return {tanh(from_input + matmul(before[0], hidden))};
  }
};

}  // namespace

int main(int argc, char** argv) {
  return characters::run<Rnn>(argc, argv,
                              "Trains a recurrent network to write a text character by character.");
}
