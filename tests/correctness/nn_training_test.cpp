// Training: optimisers against PyTorch 2.15, clipping, learning rates, and models that learn by one compiled
// function.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <lantern/data.hpp>
#include <lantern/nn.hpp>
#include <lantern/random.hpp>

#include "catch2/catch.hpp"

using namespace lantern;

namespace {

using Shape = std::vector<std::int64_t>;

void same(const std::vector<double>& a, const std::vector<double>& b, double tolerance = 1e-10) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("element " << i);
    CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
  }
}
/// The numbers that the goldens were made of.
TensorValue<double> numbers(std::int64_t n, double seed) {
  TensorValue<double> t({n});
  for (std::size_t i = 0; i < t.data.size(); ++i) {
    const auto k = static_cast<double>(i);
    t.data[i] = 0.6 * std::sin(1.7 * k + seed) + 0.1 * std::cos(5.3 * k);
  }
  return t;
}

/// A tensor and a number.
template <class S>
struct Pair {
  nn::Parameter<S, dyn> x;
  S y;
};
using StagedPair = Pair<Rep<double>>;

Rep<double> valley(StagedPair p) {
  return sum(p.x * p.x * p.x * p.x) + 2.0 * p.y * sum(p.x) + sin(3.0 * p.y);
}

std::vector<double> flat(const Pair<double>& p) {
  std::vector<double> all = p.x.data;
  all.push_back(p.y);
  return all;
}
Pair<double> start() { return {numbers(3, 1), numbers(1, 2)[0]}; }

/// Three steps of an optimiser: compiled, and eagerly.
template <class State, class Update>
void three_steps(const char* name, const Update& update, const Pair<double>& begin, State state,
                 const std::vector<double>& golden) {
  INFO(name);
  using Staged = decltype(update(StagedPair{}, StagedPair{}, {}).second);
  const auto program = [&update](StagedPair p, Staged s) {
    const auto [loss, g] = value_and_grad(valley)(p);
    const auto [p2, s2] = update(p, g, s);
    return std::tuple(loss, p2, s2);
  };
  const auto run = [&](auto step) {
    Pair<double> p = begin;
    State s = state;
    double before = 1e9;
    for (int i = 0; i < 3; ++i) {
      const double loss = step(p, s);
      CHECK(loss < before);
      before = loss;
    }
    CHECK(s.steps == 3);
    same(flat(p), golden);
  };
  run(nn::in_place(compile(program, {.target = Target::c, .opt = 0})));
  run(nn::in_place(eager(program)));
}

template <class S>
struct Mlp {
  nn::Linear<S> first, second, output;
  auto operator()(const auto& x) const { return output(tanh(second(tanh(first(x))))); }
};

template <class S>
struct Reader {
  nn::Embedding<S> words;
  nn::LSTM<S> lstm;
  nn::Linear<S> output;
};

template <class S>
struct Xor {
  nn::Linear<S> hidden, output;
};
using StagedXor = Xor<Rep<double>>;
using Velocity = nn::SgdState<StagedXor>;
using Matrix = Rep<Tensor<double, dyn, dyn>>;
std::tuple<Rep<double>, StagedXor, Velocity> xor_training(StagedXor m, Velocity s, Matrix x, Matrix y) {
  const auto loss = [&](StagedXor w) { return nn::binary_cross_entropy(w.output(tanh(w.hidden(x))), y); };
  const auto [value, g] = value_and_grad(loss)(m);
  const auto [m2, s2] = nn::sgd(m, g, s, {.learning_rate = 0.5, .momentum = 0.9});
  return {value, m2, s2};
}
LANTERN_FUNCTION(xor_training_step, xor_training)

}  // namespace

TEST_CASE("a scaled loss takes the same steps, and none where its gradient is not finite") {
  using State = nn::AdamState<StagedPair>;
  using Scale = nn::LossScale<StagedPair>;
  const auto plain = [](StagedPair p, State s) {
    const auto [loss, g] = value_and_grad(valley)(p);
    const auto [p2, s2] = nn::adam(p, g, s, {.learning_rate = 0.1});
    return std::tuple(loss, p2, s2);
  };
  const auto scaled = [](StagedPair p, State s, Scale scale, Rep<double> bad) {
    const auto loss = [&](StagedPair w) { return valley(w) + bad * w.x(1); };
    return nn::scaled_step(loss, p, s, scale, [&](StagedPair g) { return nn::adam(p, g, s, {.learning_rate = 0.1}); },
                           {.growth = 4, .backoff = 0.25, .interval = 3});
  };
  const auto run = [&](auto expected_step, auto step) {
    Pair<double> p = start(), q = start();
    auto s = nn::adam_state(p), t = s;
    nn::LossScale<Pair<double>> scale = nn::loss_scale(q, 1024);
    const auto finite_step = [&] { CHECK(step(q, t, scale, 0.0) == Approx(expected_step(p, s)).epsilon(1e-15)); };
    const auto equal = [&] {
      same(flat(q), flat(p), 0);  // powers of two round nothing
      same(flat(t.square), flat(s.square), 0);
      CHECK(t.steps == s.steps);
    };
    for (int i = 0; i < 2; ++i) finite_step();
    equal();
    CHECK((scale.scale == 1024 && scale.steps == 2));
    for (const double bad : {std::nan(""), -1.0 / 0.0, 1e308}) {  // the last is infinite times the scale alone
      step(q, t, scale, bad);
      equal();
    }
    CHECK((scale.scale == 16 && scale.steps == 0));
    for (int i = 0; i < 3; ++i) finite_step();
    equal();
    CHECK((scale.scale == 64 && scale.steps == 0));
    for (int i = 0; i < 6; ++i) step(q, t, scale, std::nan(""));
    CHECK(scale.scale == 1);
    equal();
  };
  run(nn::in_place(compile(plain, {.target = Target::c, .opt = 0})), nn::in_place(compile(scaled, {.target = Target::c})));
  run(nn::in_place(eager(plain)), nn::in_place(eager(scaled)));
  // A scale that does not change, and no parameters at all.
  const auto fixed = [](Scale s, Rep<double> x) { return nn::next_scale(s, nn::all_finite(x), {.growth = 1, .backoff = 1}); };
  const nn::LossScale<Pair<double>> eight{8.0, 1999};
  const nn::LossScale<Pair<double>> after = eager(fixed)(nn::view(eight), std::nan(""));
  CHECK((after.scale == 8 && after.steps == 0));
  CHECK(eager([](Rep<Tensor<double, dyn>> x) { return nn::all_finite(x); })(TensorValue<double>({0})));
}

TEST_CASE("SGD gives PyTorch's numbers") {
  const auto with = [](const nn::SgdOptions& o) {
    return [o](StagedPair p, StagedPair g, nn::SgdState<StagedPair> s) { return nn::sgd(p, g, s, o); };
  };
  using Update = decltype(with({}));
  const auto check = [](const char* name, const Update& update, const std::vector<double>& golden) {
    three_steps(name, update, start(), nn::sgd_state(start()), golden);
  };
  check("plain", with({.learning_rate = 0.05}),
        {0.319443459453, 0.098484612924, -0.664097282642, 0.811483962143});
  check("decay", with({.learning_rate = 0.05, .weight_decay = 0.1}),
        {0.313951172885, 0.09607135153, -0.655778854721, 0.797423749739});
  check("momentum", with({.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.1}),
        {0.0451938158912, -0.0915042531457, -0.694518910832, 0.898745269254});
  check("nesterov", with({.learning_rate = 0.05, .momentum = 0.9, .nesterov = true}),
        {-0.154560221235, -0.283639616996, -0.754245189608, 1.28117414132});
  const auto plain = [](StagedPair p) {
    for (int i = 0; i < 3; ++i) p = nn::sgd(p, grad(valley)(p), 0.05, 0.1);
    return p;
  };
  same(flat(eager(plain)(nn::view(start()))),
       {0.313951172885, 0.09607135153, -0.655778854721, 0.797423749739});
}

TEST_CASE("Adagrad and RMSProp give PyTorch's numbers") {
  const auto adagrad = [](const nn::AdagradOptions& o) {
    return
        [o](StagedPair p, StagedPair g, nn::AdagradState<StagedPair> s) { return nn::adagrad(p, g, s, o); };
  };
  three_steps("Adagrad", adagrad({}), start(), nn::adagrad_state(start()),
              {0.582121101756, 0.288964830776, -0.631787393423, 0.670373068373});
  three_steps("Adagrad, decay", adagrad({.learning_rate = 0.05, .rate_decay = 0.1, .weight_decay = 0.1}),
              start(), nn::adagrad_state(start()),
              {0.500087699926, 0.204309497742, -0.696393357599, 0.771923853052});
  const auto rmsprop = [](const nn::RmsPropOptions& o) {
    return
        [o](StagedPair p, StagedPair g, nn::RmsPropState<StagedPair> s) { return nn::rmsprop(p, g, s, o); };
  };
  three_steps("RMSProp", rmsprop({}), start(), nn::rmsprop_state(start()),
              {0.380279261193, 0.0748005820433, -0.763254645838, 0.925142668119});
  three_steps("RMSProp, momentum", rmsprop({.learning_rate = 0.02, .weight_decay = 0.1, .momentum = 0.9}),
              start(), nn::rmsprop_state(start()),
              {-0.318339727443, -0.667256779765, -0.880698401554, 1.72950629404});
}

TEST_CASE("Adam and AdamW give PyTorch's numbers") {
  const auto adam = [](const nn::AdamOptions& o) {
    return [o](StagedPair p, StagedPair g, nn::AdamState<StagedPair> s) { return nn::adam(p, g, s, o); };
  };
  three_steps("Adam", adam({}), start(), nn::adam_state(start()),
              {0.601882695875, 0.30886530518, -0.612494428994, 0.64858094499});
  three_steps("Adam, decay",
              adam({.learning_rate = 0.05, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.1}),
              start(), nn::adam_state(start()),
              {0.455238040282, 0.161817256123, -0.741554677731, 0.789085471106});
  const auto adamw = [](const nn::AdamWOptions& o) {
    return [o](StagedPair p, StagedPair g, nn::AdamState<StagedPair> s) { return nn::adamw(p, g, s, o); };
  };
  three_steps("AdamW", adamw({}), start(), nn::adam_state(start()),
              {0.601864581325, 0.308855980422, -0.612476118162, 0.648561541121});
  three_steps("AdamW, decay", adamw({.learning_rate = 0.05, .weight_decay = 0.1}), start(),
              nn::adam_state(start()), {0.446911638816, 0.157830172682, -0.740974328862, 0.779183947965});
}

TEST_CASE("gradients are clipped as PyTorch does") {
  Pair<double> g{numbers(3, 3), 3 * numbers(1, 4)[0]};
  for (double& x : g.x.data) x *= 3;
  const auto by_norm = [](StagedPair p) { return std::tuple(nn::norm_of(p), nn::clip_by_norm(p, 0.5)); };
  const auto [norm, clipped] = compile(by_norm, {.target = Target::c})(nn::view(g));
  CHECK(norm == Approx(2.02796757621).epsilon(1e-10));
  same(flat(clipped), {0.13659383607, -0.402755146684, 0.0232220342574, -0.261898656621});
  const auto alone = [](StagedPair p) { return nn::clip_by_norm(p, 3); };
  same(flat(eager(alone)(nn::view(g))), flat(g));
  const auto by_value = [](StagedPair p) { return nn::clip_by_value(p, 0.6); };
  const std::vector<double> limited = flat(eager(by_value)(nn::view(g))), all_numbers = flat(g);
  bool changed = false;
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(limited[i] == std::clamp(all_numbers[i], -0.6, 0.6));
    changed = changed || limited[i] != all_numbers[i];
  }
  CHECK(changed);
}

TEST_CASE("learning rates are those of PyTorch's schedulers") {
  const auto rates = [](const auto& schedule) {
    const auto run = eager(sig<double(std::int64_t)>(schedule));
    std::vector<double> r;
    for (std::int64_t i = 0; i < 6; ++i) r.push_back(run(i));
    return r;
  };
  using I = Rep<std::int64_t>;
  same(rates([](I i) { return nn::step_rate(i, 0.1, 2, 0.5); }), {0.1, 0.1, 0.05, 0.05, 0.025, 0.025});
  same(rates([](I i) { return nn::exponential_rate(i, 0.1, 0.9); }),
       {0.1, 0.09, 0.081, 0.0729, 0.06561, 0.059049});
  same(rates([](I i) { return nn::cosine_rate(i, 0.1, 4, 0.01); }),
       {0.1, 0.0868198051534, 0.055, 0.0231801948466, 0.01, 0.01});
  same(rates([](I i) { return nn::warm_up(i, 0.1, 4); }), {0.025, 0.05, 0.075, 0.1, 0.1, 0.1});
  same(rates([](I i) { return nn::warm_up(i, nn::exponential_rate(i, 0.1, 0.5), 2); }),
       {0.05, 0.05, 0.025, 0.0125, 0.00625, 0.003125});
  // In no steps a rate is at its end.
  CHECK(eager([](I i) { return nn::cosine_rate(i, 0.1, 0, 0.01); })(0) == Approx(0.01));
  CHECK(eager([](I i) { return nn::warm_up(i, 0.1, 0); })(0) == Approx(0.1));
  CHECK_THROWS_WITH(eager([](I i) { return nn::step_rate(i, 0.1, 0); })(5),
                    Catch::Contains("nn_training_test.cpp:") &&
                        Catch::Contains("step_rate: expected a number of steps of 1 or more, got 0"));
  CHECK_THROWS_WITH(eager([](I i) { return nn::cosine_rate(i, 0.1, -5); })(5),
                    Catch::Contains("cosine_rate: expected a number of steps of 0 or more, got -5"));
}

TEST_CASE("a perceptron tells two spirals apart") {
  using Model = Mlp<Rep<float>>;
  using State = nn::AdamState<Model>;
  using Batch = Rep<Tensor<float, dyn, dyn>>;
  using Labels = Rep<Tensor<std::int64_t, dyn>>;
  auto step = nn::in_place(compile(
      [](Model m, State s, Batch x, Labels y) {
        const auto [loss, g] = value_and_grad([&](Model w) { return nn::cross_entropy(w(x), y); })(m);
        const auto [m2, s2] =
            nn::adam(m, nn::clip_by_norm(g, 5), s, {.learning_rate = nn::cosine_rate(s.steps, 0.02, 400)});
        return std::tuple(loss, m2, s2);
      },
      {.target = Target::cpp, .opt = 2}));
  const auto right =
      compile([](Model m, Batch x, Labels y) { return count(Rep<Tensor<bool>>(argmax<1>(m(x)) == Rep<Tensor<std::int64_t>>(y))); },
              {.target = Target::c});

  nn::Generator rng(5);
  Mlp<float> model{nn::Linear<float>::init(2, 24, rng), nn::Linear<float>::init(24, 24, rng),
                   nn::Linear<float>::init(24, 2, rng)};
  auto state = nn::adam_state(model);
  TensorValue<float> x({200, 2});
  TensorValue<std::int64_t> y({200});
  for (std::size_t i = 0; i < 200; ++i) {
    const double r = static_cast<double>(i / 2) / 100 + 0.05,
                 phi = 9 * r + (i % 2 == 0 ? 0 : std::numbers::pi);
    x[2 * i] = static_cast<float>(r * std::cos(phi));
    x[2 * i + 1] = static_cast<float>(r * std::sin(phi));
    y[i] = static_cast<std::int64_t>(i % 2);
  }
  const float first = step(model, state, x, y);
  CHECK(first == Approx(0.69).margin(0.1));
  float last = first;
  for (int i = 1; i < 400; ++i) last = step(model, state, x, y);
  CHECK(last < 0.02f);
  CHECK(state.steps == 400);
  CHECK(right(nn::view(model), x, y) >= 199);
}

TEST_CASE("an LSTM remembers the first word of sentences of any length") {
  using Model = Reader<Rep<float>>;
  using State = nn::AdamState<Model>;
  using Words = Rep<Tensor<std::int64_t, dyn, dyn>>;
  using Numbers = Rep<Tensor<std::int64_t, dyn>>;
  auto step = nn::in_place(compile(
      [](Model m, State s, Words words, Numbers lengths, Numbers answers) {
        const auto loss = [&](Model w) {
          const auto [y, end] = w.lstm(w.words(words), lengths);
          return nn::cross_entropy(w.output(end.hidden.row(0)), answers);
        };
        const auto [value, g] = value_and_grad(loss)(m);
        const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = 0.02});
        return std::tuple(value, m2, s2);
      },
      {.target = Target::cpp, .opt = 2}));

  nn::Generator rng(3);
  Reader<float> model{nn::Embedding<float>::init(4, 4, rng), nn::LSTM<float>::init(4, 12, rng),
                      nn::Linear<float>::init(12, 4, rng)};
  auto state = nn::adam_state(model);
  TensorValue<std::int64_t> words({7, 16}), lengths({16}), answers({16});
  float recent = 0;
  for (int i = 0; i < 300; ++i) {
    for (auto& w : words.data) w = static_cast<std::int64_t>(rng() % 4);
    for (std::size_t k = 0; k < 16; ++k) {
      lengths[k] = static_cast<std::int64_t>(1 + rng() % 7);
      answers[k] = words[k];
    }
    const float loss = step(model, state, words, lengths, answers);
    if (i == 0) CHECK(loss > 1);
    if (i >= 280) recent += loss / 20;
  }
  CHECK(recent < 0.05f);
}

TEST_CASE("an error leaves the model and the state as they were") {
  using Model = nn::Linear<Rep<double>>;
  auto step = nn::in_place(compile(
      [](Model m, nn::AdamState<Model> s, Matrix x, Rep<Tensor<std::int64_t, dyn>> y) {
        const auto [loss, g] = value_and_grad([&](Model w) { return nn::cross_entropy(w(x), y); })(m);
        const auto [m2, s2] = nn::adam(m, g, s);
        return std::tuple(loss, m2, s2);
      },
      {.target = Target::c}));
  nn::Generator rng(4);
  auto model = nn::Linear<double>::init(2, 3, rng);
  auto state = nn::adam_state(model);
  const TensorValue<double> x({2, 2}, 1);
  step(model, state, x, TensorValue<std::int64_t>({2}, 1));
  const std::vector<double> before = model.weight.data, mean = state.mean.weight.data;
  CHECK_THROWS_AS(step(model, state, x, TensorValue<std::int64_t>({2}, 3)), Error);
  CHECK(model.weight.data == before);
  CHECK(state.mean.weight.data == mean);
  CHECK(state.steps == 1);
  step(model, state, x, TensorValue<std::int64_t>({2}, 2));
  CHECK(model.weight.data != before);
  CHECK(state.steps == 2);
}

TEST_CASE("training that goes on from a checkpoint makes the same steps, bit for bit") {
  // Adam, with a rate and noise that depend on the number of steps.
  using Model = nn::Linear<Rep<float>>;
  using Floats = Rep<Tensor<float, dyn, dyn>>;
  auto step = nn::in_place(compile(
      [](Model m, nn::AdamState<Model> s, Floats x, Floats y) {
        const auto noise = random::normal<float>(random::fold_in(7, s.steps), 4, 2);
        const auto [loss, g] = value_and_grad([&](Model w) { return nn::mse(w(x + 0.1 * noise), y); })(m);
        const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = nn::cosine_rate(s.steps, 0.1, 10)});
        return std::tuple(loss, m2, s2);
      },
      {.target = Target::c}));
  using Host = nn::Linear<float>;
  struct Training {
    Host model;
    nn::AdamState<Host> state;
  };
  const auto begun = [](nn::Generator rng) {
    Training t{Host::init(2, 3, rng), {}};
    t.state = nn::adam_state(t.model);
    return t;
  };
  const TensorValue<float> x(std::vector<float>{1, 0, 0.5, -1, 2, 1, -0.25, 0.75}, Shape{4, 2}), y({4, 3}, 0.5f);
  const auto make_steps = [&](Training& t, int count) {
    std::vector<float> losses;
    for (int i = 0; i < count; ++i) losses.push_back(step(t.model, t.state, x, y));
    return losses;
  };
  const auto each = [](Training& t, const auto& f) {
    nn::for_each_parameter(t.model, [&](const std::string& name, auto& p) { f("model." + name, p); });
    nn::for_each_parameter(t.state, [&](const std::string& name, auto& p) { f("state." + name, p); });
  };
  Training all = begun(nn::Generator(1));
  const std::vector<float> losses = make_steps(all, 6);

  const auto path = std::filesystem::temp_directory_path() / ("lantern_resume_" + std::to_string(::getpid()));
  Training first = begun(nn::Generator(1));
  make_steps(first, 3);
  Checkpoint saved;
  each(first, [&](const std::string& name, auto& p) {
    if constexpr (requires { p.shape; }) saved.tensors.emplace(name, AnyTensor(p));
    else saved.values.emplace(name, p);
  });
  save_checkpoint(path, saved);
  Training second = begun(nn::Generator(99));
  const Checkpoint found = load_checkpoint(path);
  std::filesystem::remove(path);
  each(second, [&]<class P>(const std::string& name, P& p) {
    if constexpr (requires { p.shape; }) p = found.tensors.at(name).template get<float>();
    else p = std::get<P>(found.values.at(name));
  });
  CHECK(second.state.steps == 3);
  const std::vector<float> rest = make_steps(second, 3);
  CHECK(rest == std::vector<float>(losses.begin() + 3, losses.end()));
  CHECK(second.model.weight.data == all.model.weight.data);
  CHECK(second.model.bias.data == all.model.bias.data);
  CHECK(second.state.mean.weight.data == all.state.mean.weight.data);
  CHECK(second.state.steps == 6);
}

TEST_CASE("a step may be a LANTERN_FUNCTION") {
  nn::Generator rng(2);
  Xor<double> model{nn::Linear<double>::init(2, 4, rng), nn::Linear<double>::init(4, 1, rng)};
  auto state = nn::sgd_state(model);
  const TensorValue<double> x(std::vector<double>{0, 0, 0, 1, 1, 0, 1, 1}, Shape{4, 2}),
      y(std::vector<double>{0, 1, 1, 0}, Shape{4, 1});
  auto step = nn::in_place(xor_training_step);
  double loss = 0;
  for (int i = 0; i < 200; ++i) loss = step(model, state, x, y);
  CHECK(loss < 0.01);
}
