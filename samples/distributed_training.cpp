// A small network learns a function from points, of which each process has a part.
//
//   distributed_training
//   mpirun -n 2 distributed_training    half of the points for each process, and the same network on both
//
// nn::data_parallel gives the mean loss over all processes and its gradient: each process runs backward through its own
// points, then one message adds up all gradients. The steps are those of one process with all points, but for rounding.
#include <fmt/core.h>

#include <cmath>
#include <lantern/distributed.hpp>
#include <lantern/lantern.hpp>
#include <lantern/nn.hpp>
#include <lantern/tensor.hpp>
#include <random>

using namespace lantern;
using Batch = Rep<Tensor<double, dyn, dyn>>;

template <class S>
struct Network {
  nn::Linear<S> first, second;
};
using Model = Network<Rep<double>>;

Rep<double> loss_of(const Model& m, const Batch& x, const Batch& y) {
  const auto missed = m.second(tanh(m.first(x))) - y;
  return sum(missed * missed) / cast<double>(x.dim(0));
}
std::tuple<Rep<double>, Model, nn::AdamState<Model>> training_step(Model m, nn::AdamState<Model> s, Batch x, Batch y) {
  const auto [loss, g] = nn::data_parallel(loss_of)(m, x, y);
  const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = 0.02});
  return {loss, m2, s2};
}

int main() {
  const std::int64_t me = distributed::world_rank(), ranks = distributed::world_size(), points = 96, own = points / ranks;
  TensorValue<double> x({own, 1}), y({own, 1});
  for (std::int64_t i = 0; i < own; ++i) {
    const double at = 6 * static_cast<double>(me + i * ranks) / static_cast<double>(points) - 3;
    x.data[static_cast<std::size_t>(i)] = at;
    y.data[static_cast<std::size_t>(i)] = std::sin(at) + 0.3 * at;
  }
  nn::Generator rng(1);  // the same parameters on all processes
  Network<double> model{nn::Linear<double>::init(1, 16, rng), nn::Linear<double>::init(16, 1, rng)};
  auto state = nn::adam_state(model);
  auto train = nn::in_place(compile(training_step));
  double first = 0, last = 0;
  for (int step = 0; step < 400; ++step) {
    (step == 0 ? first : last) = train(model, state, x, y);  // in place: model and state are the new ones
  }
  if (me == 0) fmt::print("{} processes: mean loss {:.4f} at first, {:.6f} after 400 steps\n", ranks, first, last);
  return last < 0.01 * first ? 0 : 1;
}
