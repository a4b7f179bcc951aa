// nn::data_parallel beside training in one process, in turn.
#include "distributed_cnn.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <lantern/distributed_training.hpp>
#include <lantern/lantern.hpp>
#include <lantern/nn.hpp>
#include <random>
#include <string>
#include <vector>

#include "../../samples/cnn_model.hpp"
#include "lantern/runtime/distributed/mpi.hpp"

namespace lantern::bench {
namespace {

namespace ld = lantern::distributed;

using Model = Cnn<Rep<float>>;
using State = nn::AdamState<Model>;
using Images = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;
using Labels = Rep<Tensor<std::int64_t, dyn>>;

Rep<float> loss_of(const Model& m, const Images& x, const Labels& y) { return nn::cross_entropy(m(x), y); }
std::tuple<Rep<float>, Model, State> step_on_one(Model m, State s, Images x, Labels y) {
  const auto [loss, g] = value_and_grad([&](Model w) { return loss_of(w, x, y); })(m);
  const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = 1e-3});
  return {loss, m2, s2};
}
std::tuple<Rep<float>, Model, State> step_on_all(Model m, State s, Images x, Labels y) {
  const auto [loss, g] = nn::data_parallel(loss_of)(m, x, y);
  const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = 1e-3});
  return {loss, m2, s2};
}

struct Pictures {
  TensorValue<float> images;
  TensorValue<std::int64_t> labels;
  Pictures(std::int64_t count, unsigned seed) : images({count, 1, 28, 28}), labels({count}) {
    std::mt19937 engine(seed);
    for (float& x : images.data) x = static_cast<float>(engine() % 256) / 256.0F;
    for (std::int64_t& y : labels.data) y = static_cast<std::int64_t>(engine() % 10);
  }
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Ranks that have nothing to do leave their cores alone.
void meet_asleep(const ld::Mpi* mpi) {
  if (mpi == nullptr || ld::world_size() == 1) return;
  constexpr unsigned microseconds = 200;
  std::int64_t own = 0, all = 0;
  ld::MpiRequest request = nullptr;
  mpi->iallreduce(&own, &all, 1, mpi->i64, mpi->op_sum, mpi->world, &request);
  for (int done = 0; done == 0; mpi->test(&request, &done, nullptr)) usleep(microseconds);
}

double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v[v.size() / 2];
}

}  // namespace

CnnSteps cnn_steps(int batch, int rounds) {
  std::string why;
  const std::int64_t ranks = ld::world_size(), me = ld::world_rank();
  const ld::Mpi* const mpi = ranks > 1 ? ld::load_mpi(why) : nullptr;
  const Pictures all(batch, 1), own(batch / ranks, 2 + static_cast<unsigned>(me));
  nn::Generator rng(1);
  Cnn<float> model = Cnn<float>::init(1, 28, 28, rng), same = model;
  nn::AdamState<Cnn<float>> state = nn::adam_state(model), same_state = state;
  auto alone = nn::in_place(compile(step_on_one, {.target = Target::cpp}));
  auto together = nn::in_place(compile(step_on_all, {.target = Target::cpp}));
  constexpr int steps = 4;
  const auto on_one = [&] {
    meet_asleep(mpi);
    const double start = now();
    if (me == 0)
      for (int k = 0; k < steps; ++k) alone(same, same_state, all.images, all.labels);
    const double time = (now() - start) / steps;
    meet_asleep(mpi);
    return time;
  };
  const auto on_each = [&](auto& step, auto& m, auto& s) {
    distributed_barrier("", 0);
    const double start = now();
    for (int k = 0; k < steps; ++k) step(m, s, own.images, own.labels);
    distributed_barrier("", 0);
    return (now() - start) / steps;
  };
  const auto on_all = [&] { return on_each(together, model, state); };
  const auto apart = [&] { return on_each(alone, same, same_state); };
  on_one(), on_all(), apart();
  std::vector<double> one, several, ratio, most;
  for (int k = 0; k < rounds; ++k) {
    one.push_back(on_one());
    several.push_back(on_all());
    ratio.push_back(one.back() / several.back());
    most.push_back(one.back() / apart());
  }
  return {median(one), median(several), median(ratio), median(most)};
}

}  // namespace lantern::bench
