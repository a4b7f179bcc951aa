// Training on several ranks beside the same training in one process: sharded optimiser states, batch norm, batches, random
// numbers, checkpoints. Runs alone and under mpirun.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <lantern/distributed_training.hpp>
#include <lantern/random.hpp>
#include <numeric>
#include <vector>

using namespace lantern;
namespace ld = lantern::distributed;
using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;
using Matrix = Rep<Tensor<double, dyn, dyn>>;
using Numbers = std::vector<double>;
using Whole = std::vector<int64_t>;

namespace {

const int64_t me = ld::world_rank(), ranks = ld::world_size();

template <class S>
struct Network {
  nn::Linear<S> first, second;
};
using Model = Network<D>;

void check_close(const Numbers& a, const Numbers& b, double tolerance = 1e-11) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
}
Numbers numbers_of(const auto& model) { return nn::detail::flat_of(model); }

D loss_of(const Model& m, const Matrix& x, const Matrix& y) {
  const auto missed = m.second(tanh(m.first(x))) - y;
  return sum(missed * missed) / cast<double>(x.dim(0));
}
using State = nn::AdamState<Model>;
using PartState = nn::AdamState<nn::Shard<D>>;
std::tuple<D, Model, State> one_step(Model m, State s, Matrix x, Matrix y) {
  const auto [loss, g] = value_and_grad([&](Model p) { return loss_of(p, x, y); })(m);
  const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = 0.02});
  return {loss, m2, s2};
}
std::tuple<D, Model, State> parallel_step(Model m, State s, Matrix x, Matrix y) {
  const auto [loss, g] = nn::data_parallel(loss_of)(m, x, y);
  const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = 0.02});
  return {loss, m2, s2};
}
std::tuple<D, Model, PartState> sharded_step(Model m, PartState s, Matrix x, Matrix y) {
  const auto [loss, g] = nn::data_parallel_shard(loss_of)(m, x, y);
  const auto [part, s2] = nn::adam(nn::shard_of(m), g, s, {.learning_rate = 0.02});
  return {loss, nn::unsharded(m, part), s2};
}

struct Data {
  TensorValue<double> x{Whole{24 * 5, 2}}, y{Whole{24 * 5, 1}};
  Data() {
    for (std::size_t i = 0; i < y.data.size(); ++i) {
      const double t = static_cast<double>(i);
      x.data[2 * i] = std::sin(0.7 * t);
      x.data[2 * i + 1] = std::cos(1.1 * t);
      y.data[i] = x.data[2 * i] * x.data[2 * i + 1];
    }
  }
};
constexpr int64_t batch = 24;

}  // namespace

TEST_CASE("a sharded optimiser state: the steps of one process") {
  if (batch % ranks != 0) return;
  const Data data;
  nn::Generator rng(1);
  const Network<double> start{nn::Linear<double>::init(2, 5, rng), nn::Linear<double>::init(5, 1, rng)};
  Network<double> model = start, parallel = start, sharded = start;
  auto state = nn::adam_state(model), parallel_state = state;
  auto part_state = nn::adam_state(nn::shard_of(model));
  CHECK(static_cast<int64_t>(part_state.mean.values.data.size()) == (nn::parameter_count(model) + ranks - 1) / ranks);
  auto one = nn::in_place(compile(one_step, {.target = Target::c}));
  auto together = nn::in_place(compile(parallel_step, {.target = Target::c}));
  auto in_parts = nn::in_place(compile(sharded_step, {.target = Target::c}));
  nn::Loader all(data.x.shape[0], {.batch = batch, .seed = 7}, 0, 1), own(data.x.shape[0], {.batch = batch, .seed = 7});
  for (int64_t epoch = 0; epoch < 2; ++epoch)
    for (int64_t k = 0; k < all.batches(); ++k) {
      const Whole here = own.batch(epoch, k), everywhere = all.batch(epoch, k);
      const double loss = one(model, state, nn::rows(data.x, everywhere), nn::rows(data.y, everywhere));
      CHECK(together(parallel, parallel_state, nn::rows(data.x, here), nn::rows(data.y, here)) == Approx(loss));
      CHECK(in_parts(sharded, part_state, nn::rows(data.x, here), nn::rows(data.y, here)) == Approx(loss));
    }
  CHECK(numbers_of(model) != numbers_of(start));
  check_close(numbers_of(parallel), numbers_of(model));
  check_close(numbers_of(sharded), numbers_of(model));
  const auto whole = nn::unsharded(sharded, part_state);
  check_close(numbers_of(whole.mean), numbers_of(state.mean));
  check_close(numbers_of(whole.square), numbers_of(state.square));
  CHECK(whole.steps == 10);

  // The file is that of one process; any number of ranks reads it.
  const std::string path = std::filesystem::temp_directory_path() / ("lantern_together_" + std::to_string(ranks) + ".safetensors");
  nn::save_together(path, sharded, part_state);
  Network<double> read = start;
  auto read_state = nn::adam_state(start);
  nn::load(path, read, read_state);
  CHECK(numbers_of(read) == numbers_of(sharded));
  CHECK(numbers_of(read_state.mean) == numbers_of(whole.mean));
  auto read_part = nn::adam_state(nn::shard_of(start));
  nn::load_together(path, read, read_part);
  CHECK(read_part.mean.values.data == part_state.mean.values.data);
  CHECK(read_part.square.values.data == part_state.square.values.data);
  CHECK(read_part.steps == 10);
  distributed_barrier("", 0);
  if (me == 0) std::filesystem::remove(path);
  const std::string nowhere = "/nowhere/at/all.safetensors";
  CHECK_THROWS_WITH(nn::save_together(nowhere, sharded, part_state), Catch::Matchers::Contains(nowhere));
  distributed_barrier("", 0);  // all ranks have raised, and go on
}

TEST_CASE("batches: the same examples on any number of ranks") {
  if (batch % ranks != 0) return;
  nn::Loader one(100, {.batch = batch, .seed = 3}, 0, 1);
  CHECK(one.batches() == 4);
  Whole seen;
  for (int64_t k = 0; k < 4; ++k) {
    Whole joined;
    for (int64_t r = 0; r < ranks; ++r) {
      nn::Loader part(100, {.batch = batch, .seed = 3}, r, ranks);
      const Whole own = part.batch(1, k);
      joined.insert(joined.end(), own.begin(), own.end());
    }
    CHECK(joined == one.batch(1, k));
    seen.insert(seen.end(), joined.begin(), joined.end());
  }
  CHECK(one.batch(0, 0) != one.batch(1, 0));
  CHECK(nn::Loader(100, {.batch = batch, .seed = 4}, 0, 1).batch(1, 0) != one.batch(1, 0));
  std::ranges::sort(seen);
  CHECK(std::ranges::adjacent_find(seen) == seen.end());
  CHECK(seen.front() >= 0);
  CHECK(seen.back() < 100);
  CHECK(nn::Loader(100, {.batch = 2, .shuffle = false}, 1, 2).batch(5, 3) == Whole{7});
  CHECK_THROWS_WITH(nn::Loader(100, {.batch = 9}, 0, 2), "nn::Loader: expected a batch that 2 ranks share equally, got 9 examples");
}

TEST_CASE("random numbers of examples, on whichever rank they are") {
  const auto all = [](I key) { return std::tuple(random::uniform<double>(key, 12, 3), random::normal<float>(key, 12)); };
  const auto own = [](I key, Rep<Array<int64_t>> n) {
    return std::tuple(nn::uniform_rows<double>(key, n, 3), nn::normal_rows<float>(key, n));
  };
  const Whole mine{me, 11 - me, 5};
  const auto [u, z] = eager(all)(42);
  const auto check = [&](const auto& way) {
    const auto [v, w] = way(42, mine);
    CHECK(v.data == nn::rows(u, mine).data);
    CHECK(w.data == nn::rows(z, mine).data);
  };
  check(eager(own));
  check(compile(own, {.target = Target::c, .opt = 0}));
  check(compile(own, {.target = Target::c}));
}

TEST_CASE("batch norm over all ranks: statistics and gradients of the whole batch") {
  using X = Rep<Tensor<double, dyn, dyn, dyn>>;
  const int64_t channels = 2, width = 3, most = ranks + 1;  // rank r has r + 2 of the batch
  int64_t all = 0, first = 0;
  for (int64_t r = 0; r < ranks; ++r) first += r < me ? r + 2 : 0, all += r + 2;
  REQUIRE(most > 0);
  TensorValue<double> x(Whole{all, channels, width}), w(Whole{all, channels, width});
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    x.data[i] = 3 + std::sin(1.3 * static_cast<double>(i));
    w.data[i] = std::cos(0.9 * static_cast<double>(i));
  }
  Whole mine(static_cast<std::size_t>(me + 2));
  std::iota(mine.begin(), mine.end(), first);
  const auto run = [](const auto& train, bool together) {
    return [train, together](X t, X weight, A scale, A bias) {
      const auto loss = [&](X u, A s, A b) {
        const nn::BatchNorm<D> norm{Rep<Tensor<double, dyn>>((together ? ld::replicate(s) : s).datum()),
                                    Rep<Tensor<double, dyn>>((together ? ld::replicate(b) : b).datum())};
        const nn::RunningStatistics<D> running{Rep<Tensor<double, dyn>>(zeros_like(s).datum()), Rep<Tensor<double, dyn>>(s.datum())};
        const auto [y, after] = train(norm, u, running);
        const D own = sum(y * y * y * weight);
        return std::tuple(together ? ld::total(own) : own, after.mean, after.variance);
      };
      const auto slopes = grad<0, 1, 2>(sig<double(Tensor<double, dyn, dyn, dyn>, Array<double>, Array<double>)>(
          [&](X u, A s, A b) { return std::get<0>(loss(u, s, b)); }))(t, scale, bias);
      return std::tuple_cat(loss(t, scale, bias), slopes);
    };
  };
  const auto plain = run([](const auto& norm, const X& u, const auto& r) { return norm.train(u, r); }, false);
  const auto together = run([](const auto& norm, const X& u, const auto& r) { return nn::train_on_all_ranks(norm, u, r); }, true);
  const Numbers scale{1.5, 0.5}, bias{0.1, -0.3};
  const auto [value, mean, variance, gx, gs, gb] = eager(plain)(x, w, scale, bias);
  const auto check = [&](const auto& way) {
    const auto [v, m, d, hx, hs, hb] = way(nn::rows(x, mine), nn::rows(w, mine), scale, bias);
    CHECK(v == Approx(value));
    check_close(m.data, mean.data);
    check_close(d.data, variance.data);
    check_close(hx.data, nn::rows(gx, mine).data);
    check_close(hs, gs);
    check_close(hb, gb);
  };
  check(eager(together));
  check(compile(together, {.target = Target::c, .opt = 0}));
  check(compile(together, {.target = Target::c}));
}
