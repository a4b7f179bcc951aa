// Where a program trains: on the processor, or with --device=cuda on a GPU, where what is trained then stays.
//
//   DeviceOptions device;
//   add_device_option(app, device);
//   ...
//   Trained<Model, State> trained(device, model, state);
//   auto step = trained.step(compile(training_step, {.target = device.target()}));
//   for (...) loss = step(images, labels, rate);
//   trained.fetch();  // into model and state
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <lantern/cuda.hpp>
#include <lantern/nn.hpp>
#include <string>
#include <tuple>
#include <utility>

struct DeviceOptions {
  std::string device = "cpu";

  bool on_gpu() const { return device == "cuda"; }
  lantern::Target target() const { return on_gpu() ? lantern::Target::cuda : lantern::Target::cpp; }
};

inline void add_device_option(CLI::App& app, DeviceOptions& options) {
  const auto usable = [](const std::string& device) {
    if (device != "cuda" || lantern::cuda::available()) return std::string();
    return "no GPU can be used here: " + lantern::cuda::missing() + "; leave --device out to train on the processor";
  };
  app.add_option("--device", options.device, "cpu, or cuda: train on a GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->check(usable, "");
}

/// A model, the state of its optimiser, and what else steps change: products P of Reps in the program. They begin as
/// the variables that are given; on a GPU those keep their values until `fetch`.
template <class... P>
class Trained {
 public:
  explicit Trained(const DeviceOptions& device, lantern::core::detail::host_out<P>&... values)
      : on_gpu_(device.on_gpu()),
        stream_(on_gpu_ ? lantern::cuda::Stream() : lantern::cuda::Stream::standard()),
        here_(values...) {
    if (on_gpu_) there_ = {lantern::cuda::to_device<P>(values, stream_)...};
  }

  /// loss = step(data...), of a compiled function (P..., data...) -> (loss, P...). It refers to this object.
  template <class F>
  auto step(const F& f) {
    return [this, here = lantern::nn::in_place(f), there = lantern::nn::in_place(f.on(stream_))](
               const auto&... data) mutable {
      return this->values([&](auto& step, auto&... v) { return step(v..., data...); }, here, there);
    };
  }
  /// The number that a compiled function (P..., data...) gives, or one of the first few P alone.
  template <class F, class... Data>
  auto number(const F& f, const Data&... data) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      if (on_gpu_) return f.on(stream_)(std::get<I>(there_)..., data...);
      return f(lantern::nn::view(std::get<I>(here_))..., data...);
    }(std::make_index_sequence<std::tuple_size_v<typename F::ProgramParameters> - sizeof...(Data)>());
  }
  /// Gives the variables their values.
  void fetch() {
    if (!on_gpu_) return;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((std::get<I>(here_) = lantern::cuda::to_host<P>(std::get<I>(there_), stream_)), ...);
    }(std::index_sequence_for<P...>());
  }

 private:
  template <class Call, class Here, class There>
  auto values(const Call& call, Here& here, There& there) {
    if (on_gpu_) return std::apply([&](auto&... v) { return call(there, v...); }, there_);
    return std::apply([&](auto&... v) { return call(here, v...); }, here_);
  }

  bool on_gpu_;
  lantern::cuda::Stream stream_;
  std::tuple<lantern::core::detail::host_out<P>&...> here_;
  std::tuple<lantern::cuda::OnDevice<P>...> there_;
};
