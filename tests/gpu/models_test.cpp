// What a step of training takes on a GPU, of the samples' models with few channels: launches, with functions inlined, windows
// gathered and kernels of different sizes joined, and without; and waits of the host. And that a step is that of the processor.
#include <catch2/catch.hpp>
#include <cmath>
#include <tuple>

#include "../../samples/cnn_model.hpp"
#include "../../samples/squeezenet_model.hpp"
#include "lantern/cuda.hpp"
#include "lantern/lantern.hpp"
#include "lantern/nn.hpp"

using namespace lantern;
using Images = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;
using Labels = Rep<Tensor<std::int64_t, dyn>>;

namespace {

TensorValue<float> pictures(std::vector<std::int64_t> shape) {
  TensorValue<float> t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i)));
  return t;
}
TensorValue<std::int64_t> classes(std::int64_t n) {
  TensorValue<std::int64_t> t({n});
  for (std::int64_t i = 0; i < n; ++i) t.data[static_cast<std::size_t>(i)] = i * 7 % 10;
  return t;
}

/// Of a step: launches, those without the passes that save most, and waits.
struct Step {
  std::uint64_t launches = 0, alone = 0, waits = 0;
};

/// Two steps of a function (P..., pictures, labels, rate) -> (loss, P...), in place.
template <class... P, class F>
void takes(const Step& expected, F f, double tolerance, core::detail::host_out<P>... values) {
  const auto x = pictures({3, 3, 16, 16});
  const auto y = classes(3);
  const cuda::Stream stream;
  const auto run = [&](const std::vector<std::string>& without, std::uint64_t launches) {
    INFO(without.size() << " passes are left out");
    const auto gpu = compile(f, {.target = Target::cuda, .disabled_passes = without});
    auto step = nn::in_place(gpu.on(stream));
    auto there = std::tuple(cuda::to_device<P>(values, stream)...);
    const auto next = [&] { return std::apply([&](auto&... v) { return step(v..., x, y, 1e-2); }, there); };
    next();
    const float loss = next();
    CHECK(cuda::last_call().launches == launches);
    CHECK(cuda::last_call().waits == expected.waits);
    return std::tuple(loss, std::apply([&](const auto&... v) { return std::tuple(cuda::to_host<P>(v, stream)...); }, there));
  };
  const auto [loss, joined] = run({}, expected.launches);
  const auto [loss_alone, alone] = run({"inline_expansion", "window_gather", "horizontal_fusion"}, expected.alone);
  auto step = nn::in_place(compile(f, {.target = Target::c}));
  step(values..., x, y, 1e-2);
  const float loss_here = step(values..., x, y, 1e-2);
  CHECK(loss == Approx(loss_here).epsilon(tolerance));
  CHECK(loss_alone == Approx(loss).epsilon(tolerance));
  const auto compare = [&](const auto& a, const auto& b, double within) {
    std::vector<std::vector<float>> of_b;
    nn::for_each_parameter(b, [&](const std::string&, const auto& p) { of_b.emplace_back(p.data.begin(), p.data.end()); });
    std::size_t at = 0;
    nn::for_each_parameter(a, [&](const std::string& name, const auto& p) {
      INFO(name);
      double most = 0;
      for (std::size_t i = 0; i < p.data.size(); ++i)
        most = std::max(most, std::abs(static_cast<double>(p.data[i]) - static_cast<double>(of_b[at][i])));
      CHECK(most <= within);
      ++at;
    });
  };
  compare(std::get<0>(joined), std::get<0>(std::tie(values...)), tolerance);
  compare(std::get<0>(joined), std::get<0>(alone), tolerance);
}

template <class Model>
using Adam = nn::AdamState<Model>;

/// The loss of a batch, model and state after a step.
template <class Model>
std::tuple<Rep<float>, Model, Adam<Model>> adam_step(Model m, Adam<Model> s, Images x, Labels y, Rep<double> rate) {
  const auto [loss, g] = value_and_grad([&](Model w) { return nn::cross_entropy(w(x), y); })(m);
  const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = rate});
  return {loss, m2, s2};
}

}  // namespace

TEST_CASE("a step of the network for digits", "[cuda]") {
  using Model = Cnn<Rep<float>>;
  nn::Generator random(7);
  const auto m = Cnn<float>::init(3, 16, 16, random, {.window = 3, .channels = 4, .features = 12});
  takes<Model, Adam<Model>>({.launches = 22, .alone = 29, .waits = 1}, adam_step<Model>, 1e-4, m, nn::adam_state(m));
}

TEST_CASE("a step of SqueezeNet", "[cuda]") {
  using Model = SqueezeNet<Rep<float>>;
  nn::Generator random(7);
  const auto m = SqueezeNet<float>::init(3, 10, random, 16);
  const auto step = [](Model w, Adam<Model> s, Images x, Labels y, Rep<double> rate) {
    const auto loss = [&](Model v) { return nn::cross_entropy(v(x, {.first = {.stride = 1, .padding = 1}, .rectified = false}), y); };
    const auto [value, g] = value_and_grad(loss)(w);
    const auto [m2, s2] = nn::adam(w, g, s, {.learning_rate = rate});
    return std::tuple(value, m2, s2);
  };
  takes<Model, Adam<Model>>({.launches = 142, .alone = 299, .waits = 1}, step, 1e-4, m, nn::adam_state(m));
}
