// Where the heat was: the temperatures of a plate at the start, from what is measured a good while later.
//
//   heat_inverse
//   heat_inverse --picture FILE    draws start, measurement and what was recovered into a PNG file
//
// Heat spreads through a plate that conducts better where it is warm. What is measured is blurred and has
// noise; many starts would lead there, so the smoothest is looked for that explains it. The gradient of the
// misfit by all 4,096 temperatures runs backward through all steps of time, and needs the plate of each:
// {.checkpoints = 12} keeps twelve, and computes the others again from these. solvers::lbfgs is part of the
// compiled program.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <lantern/solvers.hpp>
#include <thread>
#include <vector>

#include "lantern/runtime/progress.hpp"
#include "picture.hpp"
#include "support.hpp"
#include "training.hpp"

using namespace lantern;

using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;
using Vector = std::vector<double>;

constexpr int64_t side = 64, steps = 150;
constexpr double noise = 0.01, smoothness = 1e-3;

// [stencil]
/// The temperatures of a plate of size x size cells after a little while. Nothing flows through its edges.
A warmed(A u, I size) {
  const auto flow = [&](D here, D there) {
    const D mean = 0.5 * (here + there);
    return (0.05 + 0.1 * mean * mean) * (there - here);
  };
  return FOR(0, size, u, [&](I i, A rows) {
    return FOR(0, size, rows, [&](I j, A next) {
      const I up = max(i - 1, 0), down = min(i + 1, size - 1), left = max(j - 1, 0),
              right = min(j + 1, size - 1);
      const D here = u[i * size + j];
      return next.set(i * size + j, here + flow(here, u[up * size + j]) + flow(here, u[down * size + j]) +
                                        flow(here, u[i * size + left]) + flow(here, u[i * size + right]));
    });
  });
}
A after(A u, I size, I count, LoopOptions options) {
  return FOR(0, count, u, [&](I, A now) { return warmed(now, size); }, options);
}

// [/stencil]
// [objective]
/// What is missed of the measurement, and how rough the start is.
D objective(A start, A seen, I size, I count, LoopOptions options) {
  const A missed = after(start, size, count, options) - seen;
  const D rough = FOR(0, size, D(0.0), [&](I i, D rows) {
    return FOR(0, size - 1, rows, [&](I j, D sum) {
      const D across = start[i * size + j + 1] - start[i * size + j],
              down = start[(j + 1) * size + i] - start[j * size + i];
      return sum + across * across + down * down;
    });
  });
  return 0.5 * dot(missed, missed) + 0.5 * smoothness * rough;
}
// [/objective]
// [bounded]
D freely(A start, A seen) { return objective(start, seen, side, steps, {}); }
D bounded(A start, A seen) { return objective(start, seen, side, steps, {.checkpoints = 12}); }
// [/bounded]
D small(A start, A seen) { return objective(start, seen, 5, 6, {.checkpoints = 2}); }

// [functions]
LANTERN_FUNCTION(later, [](A start) { return after(start, side, steps, {}); })
LANTERN_FUNCTION(gradient, value_and_grad<0>(freely))
LANTERN_FUNCTION(bounded_gradient, value_and_grad<0>(bounded))
// [/functions]
// [recovered]
constexpr int iterations_in_an_epoch = 50, usual_epochs = 6;
auto recovered(A start, A seen) {
  return solvers::lbfgs(bounded, {.tolerance = 1e-4, .iterations = iterations_in_an_epoch}, start, seen);
}
// [/recovered]

namespace {

/// A ring, a bar and a spot, of different temperatures.
Vector plate() {
  Vector u(side * side);
  for (int64_t i = 0; i < side; ++i)
    for (int64_t j = 0; j < side; ++j) {
      const double y = double(i) / side, x = double(j) / side, ring = std::hypot(x - 0.35, y - 0.4);
      const bool bar = std::abs(x - 0.8) < 0.06 && std::abs(y - 0.35) < 0.25,
                 spot = std::hypot(x - 0.6, y - 0.8) < 0.1;
      u[size_t(i * side + j)] = ring > 0.15 && ring < 0.24 ? 1.0 : bar ? 0.8 : spot ? 0.6 : 0.1;
    }
  return u;
}
double distance(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / double(a.size()));
}

/// Plates side by side, black for 0 through red and yellow to white for 1.
void write_plates(const std::filesystem::path& file, const std::vector<Vector>& plates) {
  constexpr int64_t scale = 4, width = side * scale, gap = 8;
  Picture picture(int64_t(plates.size()) * (width + gap) - gap, width);
  std::fill(picture.pixels.begin(), picture.pixels.end(), std::uint8_t{255});
  for (size_t k = 0; k < plates.size(); ++k)
    for (int64_t y = 0; y < width; ++y)
      for (int64_t x = 0; x < width; ++x)
        for (int64_t channel = 0; channel < 3; ++channel)
          picture.at(int64_t(k) * (width + gap) + x, y, channel) =
              to_byte(3 * plates[k][size_t(y / scale * side + x / scale)] - double(channel));
  write_png(file, picture);
}

int run(const Training& options, const std::filesystem::path& file) {
  Random random(options.seed);
  Vector a(25), b(25);
  for (double& v : a) v = random();
  for (double& v : b) v = random();
  const double error = check_derivative(small)(a, b);
  fmt::print("derivatives beside differences: {:.0e}\n", error);

  const Vector truth = plate();
  Vector seen = later(truth);
  for (double& v : seen) v += noise * std::sqrt(3.0) * random();

  // The most memory that a thread's calls needed.
  const auto bytes = [&](const auto& f) {
    int64_t most = 0;
    std::thread([&] { f(seen, seen), most = workspace_bytes(); }).join();
    return most;
  };
  const int64_t all = bytes(gradient), some = bytes(bounded_gradient);
  fmt::print("memory of a gradient: {} kB, with checkpoints {} kB\n", all / 1000, some / 1000);

  // Few long calls: optimised from the beginning.
  const auto recover = compile(recovered, {.target = Target::cpp, .threads = options.threads});
  solvers::Minimum<Vector, double, int64_t, bool> found{seen, 0, 0, false};
  LossCurve curve;
  Progress progress("recovering", static_cast<std::uint64_t>(options.epochs));
  for (int epoch = 0; epoch < options.epochs && !found.converged; ++epoch) {
    const auto further = recover(found.x, seen);
    found = {further.x, further.value, found.iterations + further.iterations, further.converged};
    curve.add(static_cast<double>(found.iterations), found.value);
    progress.step(fmt::format("misfit {:.4f}", found.value));
  }
  progress.clear();
  const double before = distance(seen, truth), now = distance(found.x, truth),
               left = distance(later(found.x), seen);
  fmt::print("{} iterations of L-BFGS, converged: {}\n", found.iterations, found.converged);
  fmt::print("temperatures off by {:.4f}, of the measurement by {:.4f}; of it {:.4f} is not explained\n", now,
             before, left);
  if (!file.empty()) write_plates(file, {truth, seen, found.x});
  TensorValue<double> plate({side, side});
  plate.data = found.x;
  finish(options, {{"start", plate}}, curve, "misfit and roughness");
  if (options.epochs < usual_epochs) return 0;
  if (error < 1e-6 && now < 0.7 * before && left < 1.1 * noise && 3 * some < all) return 0;
  fmt::print("expected much better temperatures, explained to the noise of {}, in a third of the memory\n",
             noise);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Training options{.epochs = usual_epochs};
  std::filesystem::path picture;
  CLI::App app("Recovers the temperatures of a plate at an earlier time.");
  app.option_defaults()->always_capture_default();
  add_run_options(app, options, "of 50 iterations of L-BFGS, at most");
  add_threads_option(app, options);
  app.add_option("--picture", picture, "write the plates to this PNG file")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options, picture);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
