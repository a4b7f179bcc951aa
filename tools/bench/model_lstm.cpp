#include "model_lstm.hpp"

#include "derivative_check.hpp"
#include "model.hpp"

namespace lantern::bench {
namespace {

Number sigmoid(const Number& x) { return 1.0 / (1.0 + exp(-x)); }

/// The mean loss over the sequence. `main` holds for each layer a row of weights and a row of biases, each
/// for the gates forget, in, out and change; `state` for each layer its hidden state and its cell.
Number lstm(Matrix main, Matrix extra, Matrix state, Matrix sequence) {
  const Index layers = main.dim(0) / 2, width = extra.dim(1), characters = sequence.dim(0);

  const auto [last, loss] =
      FOR(0, characters - 1, std::tuple(state, Number(0.0)), [&](Index t, Matrix before, Number sum) {
        const Vector input = tabulate(width, [&](Index i) { return sequence(t, i) * extra(0, i); });
        const auto [after, hidden] =
            FOR(0, layers, std::tuple(before, input), [&](Index l, Matrix s, Vector x) {
              return FOR(0, width, std::tuple(s, x), [&](Index i, Matrix next, Vector y) {
                const auto gate = [&](std::int64_t k, const Number& v) {
                  return v * main(2 * l, k * width + i) + main(2 * l + 1, k * width + i);
                };
                const Number forget = sigmoid(gate(0, x[i])), in = sigmoid(gate(1, s(2 * l, i)));
                const Number out = sigmoid(gate(2, x[i])), change = tanh(gate(3, s(2 * l, i)));
                const Number cell = s(2 * l + 1, i) * forget + in * change, h = out * tanh(cell);
                return std::tuple(next.set(2 * l, i, h).set(2 * l + 1, i, cell), y.set(i, h));
              });
            });
        const Vector prediction =
            tabulate(width, [&](Index i) { return hidden[i] * extra(1, i) + extra(2, i); });
        const Number normal = log(2.0 + total(0, width, [&](Index i) { return exp(prediction[i]); }));
        return std::tuple(after, sum + total(0, width, [&](Index i) {
                                   return sequence(t + 1, i) * (prediction[i] - normal);
                                 }));
      });
  return -loss / cast<double>(width * (characters - 1));
}

}  // namespace

std::vector<Form> lstm_forms(const std::shared_ptr<const LstmInput>& in, const std::string& problem) {
  static const auto objective = compile(lstm, model_options("lstm"));
  static const auto gradient = compile(grad<0, 1>(lstm), model_options("lstm_gradient"));

  const std::int64_t width = in->width;
  const auto with_arguments = [=](auto&& run) {
    run(matrix(in->main, 4 * width), matrix(in->extra, width), matrix(in->state, width),
        matrix(in->sequence, width));
  };
  const auto value = std::make_shared<std::vector<double>>(1);
  const auto run_objective = [=] {
    with_arguments([&](const auto&... a) { objective.into(value->front(), a...); });
  };
  const auto derivative = std::make_shared<std::vector<double>>(in->main.size() + in->extra.size());
  const auto run_gradient = [=] {
    const auto [main, extra] = parts(*derivative, in->main.size(), in->extra.size());
    const auto main_out = matrix(main, 4 * width), extra_out = matrix(extra, width);
    with_arguments([&](const auto&... a) { gradient.into(main_out, extra_out, a...); });
  };
  return {{"objective", run_objective,
           [=] { return run_objective(), check_objective(*value, differentiable(in)); }},
          {"reverse", run_gradient,
           [=] { return run_gradient(), check_derivative(*derivative, problem, differentiable(in)); }}};
}

}  // namespace lantern::bench
