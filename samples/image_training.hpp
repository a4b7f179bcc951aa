// How a model learns the classes of pictures: the data, the loop over batches, and what is printed and
// checked.
#pragma once

#include <chrono>

#include "device.hpp"
#include "image_data.hpp"
#include "lantern/runtime/progress.hpp"
#include "training.hpp"

struct ImageTraining : Training {
  DeviceOptions device;
  std::int64_t batch = 0, steps = 0;
  double rate = 0;
  bool cache = false;
  bool usual = true;  ///< neither epochs nor steps were asked for
};

/// The options of Training, --device, --batch, --steps, --rate and --cache.
inline void add_image_options(CLI::App& app, ImageTraining& options) {
  add_options(app, options);
  add_device_option(app, options.device);
  app.add_option("--batch", options.batch, "pictures in a step; 0: what suits the data")
      ->check(CLI::Range(0, 10'000));
  app.add_option("--steps", options.steps, "steps, instead of epochs")->check(CLI::Range(0, 10'000'000));
  app.add_option("--rate", options.rate, "learning rate; 0: what suits the data")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--cache", options.cache, "keep compiled code for the next run");
}

/// What is learnt from, and what is held out.
struct ImageTask {
  LabelledImages train, test;
};
/// DIR/cifar10/{train_4000,test_1000}.bin with --data; else `count` drawn textures, and a quarter as many.
inline ImageTask image_task(const Training& options, std::size_t count, std::int64_t side) {
  const auto folder = options.data / "cifar10";
  if (!options.data.empty())
    return {read_cifar10(folder / "train_4000.bin"), read_cifar10(folder / "test_1000.bin")};
  return {draw_waves(count, options.seed, side), draw_waves(count / 4, options.seed + 1, side)};
}

/// Loss and part of the held-out pictures that are recognised, at the start and at the end.
struct Learnt {
  double first_loss = 0, last_loss = 0, first_accuracy = 0, last_accuracy = 0;
};

/// Goes through the training pictures: loss = step(batch, done), `done` from 0 to 1, and how many are right =
/// right(batch). Prints both as training goes on; losses are means over the last steps. All held-out pictures
/// are looked at before and after, some 200 of them in between: a large model takes as long for 1000 as for
/// several steps.
template <class Step, class Right>
Learnt train_on_images(const ImageTask& task, const ImageTraining& options, LossCurve& curve,
                       const Step& step, const Right& right) {
  using Clock = std::chrono::steady_clock;
  const auto size = static_cast<std::size_t>(options.batch);
  const Spread spread = spread_of(task.train);
  Batches batches(task.train, size, spread, options.seed), held_out(task.test, size, spread);
  const std::size_t steps = options.steps > 0 ? static_cast<std::size_t>(options.steps)
                                              : static_cast<std::size_t>(options.epochs) * batches.count();
  const std::size_t report = std::max<std::size_t>(1, steps / 5);
  const std::size_t some = std::clamp<std::size_t>(200 / size, 1, held_out.count());
  Learnt learnt;
  learnt.first_accuracy = accuracy(held_out, right);
  fmt::print("before: {:.1f} % of {} held-out pictures right\n", 100 * learnt.first_accuracy,
             held_out.count() * size);
  lantern::Progress progress("training", steps);
  double recent = 0, time = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    if (i % batches.count() == 0) batches.shuffle();
    const Batch& batch = batches[i % batches.count()];
    const auto start = Clock::now();
    const double loss = step(batch, static_cast<double>(i) / static_cast<double>(steps));
    time += std::chrono::duration<double>(Clock::now() - start).count();
    if (i == 0) learnt.first_loss = loss;
    recent += std::max(0.1, 1.0 / static_cast<double>(i + 1)) * (loss - recent);
    curve.add(static_cast<double>(i + 1), recent);
    progress.step(fmt::format("loss {:.3f}", recent));
    if ((i + 1) % report != 0 && i + 1 != steps) continue;
    progress.clear();
    fmt::print("step {:5}: loss {:.3f}, {:.1f} % of {} right; {:.1f} ms a step\n", i + 1, recent,
               100 * accuracy(held_out, right, some), some * size, 1e3 * time / static_cast<double>(i + 1));
  }
  learnt.last_loss = recent;
  learnt.last_accuracy = accuracy(held_out, right);
  fmt::print(
      "after {} steps: loss {:.3f}, at first {:.3f}; {:.1f} % of {} held-out pictures right, at first {:.1f} "
      "%\n",
      steps, learnt.last_loss, learnt.first_loss, 100 * learnt.last_accuracy, held_out.count() * size,
      100 * learnt.first_accuracy);
  return learnt;
}

/// The exit status of a program: 0 where the loss fell and so many of the held-out pictures are right.
inline int verdict(const Learnt& learnt, double expected_accuracy) {
  if (!(learnt.last_loss < learnt.first_loss)) {
    fmt::print("expected the loss to fall, from {:.3f}\n", learnt.first_loss);
    return 1;
  }
  if (learnt.last_accuracy >= expected_accuracy) return 0;
  fmt::print("expected at least {:.0f} % to be right\n", 100 * expected_accuracy);
  return 1;
}
