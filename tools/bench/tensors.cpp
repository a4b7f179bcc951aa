// Programs over tensors, as scientists and machine-learning engineers write them: values and gradients over the time
// that it takes to copy as many bytes as their arguments and results have. tools/bench/peers runs the same programs in
// other systems.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "bench.hpp"
#include "lantern/random.hpp"
#include "lantern/tensor.hpp"
#include "options.hpp"
#include "report.hpp"

namespace lantern::bench {
namespace {

using F = Rep<float>;
using V = Rep<Tensor<float, dyn>>;
using M = Rep<Tensor<float, dyn, dyn>>;
using I = Rep<std::int64_t>;
using Host = TensorValue<float>;
using List = std::vector<float>;
using Shape = std::vector<std::int64_t>;

// ---- the programs

V chain(V x, V y, V z) { return exp(x) * y + z; }
F chain_loss(V x, V y, V z) { return sum(exp(x) * y + z); }

M softmax_rows(M x) { return softmax<1>(x); }
F softmax_loss(M x, M w) { return sum(softmax<1>(x) * w); }

M layer_norm(M x) { return M((x - mean<1>(x, keep)) / sqrt(var<1>(x, keep) + 1e-5F)); }
F layer_norm_loss(M x, M w) { return sum(layer_norm(x) * w); }

/// Parameters, gradient and both moments, after one step of Adam (Kingma and Ba, 2015).
std::tuple<V, V, V> adam(V x, V g, V m, V v) {
  const V first = 0.9F * m + 0.1F * g, second = 0.999F * v + 0.001F * g * g;
  return {x - 1e-3F * (first / 0.19F) / (sqrt(second / 0.001999F) + 1e-8F), first, second};
}

/// Full-batch logistic regression: the loss of labels 0 and 1 (as floats).
F logistic(V w, M x, V y) {
  const V score(matmul(x, w));
  return mean(softplus(score) - y * score);
}
V logistic_step(V w, M x, V y) { return w - 0.1F * grad<0>(logistic)(w, x, y); }

/// The price of a European call (Black and Scholes, 1973), of which vmap(grad) gives the Greeks.
F call_price(F spot, F strike, F time, F rate, F volatility) {
  const F deviation = volatility * sqrt(time);
  const F d1 = (log(spot / strike) + (rate + 0.5F * volatility * volatility) * time) / deviation;
  const auto cumulative = [](const F& d) { return 0.5F * erfc(d * -0.70710678F); };
  return spot * cumulative(d1) - strike * exp(-rate * time) * cumulative(d1 - deviation);
}

/// The heat equation by explicit steps from an initial field, whose distance from a target is the loss.
F heat(M start, M target, I steps) {
  const M end = FOR(0, steps, start, [&](I, M u) {
    const auto inner = u(range(1, -1), range(1, -1));
    const auto around = u(range(0, -2), range(1, -1)) + u(range(2, to_end), range(1, -1)) +
                        u(range(1, -1), range(0, -2)) + u(range(1, -1), range(2, to_end));
    return u.set_part({range(1, -1), range(1, -1)}, inner + 0.2F * (around - 4.0F * inner));
  });
  const M off = end - target;
  return sum(off * off);
}

/// Bodies [n, 3] that attract each other, by steps of symplectic Euler; the loss is how far they get.
F bodies(M start, M speed, I steps) {
  const auto end = FOR(0, steps, std::tuple(start, speed), [&](I, M x, M v) {
    const auto d = unsqueeze<0>(x) - unsqueeze<1>(x);  // [n, n, 3]
    const auto r2 = sum<2>(d * d) + 0.01F;
    const M force(einsum<"ijk,ij->ik">(d, 1.0F / (r2 * sqrt(r2))));
    const M faster = v + 0.001F * force;
    return std::tuple(M(x + 0.001F * faster), faster);
  });
  return sum(std::get<0>(end) * std::get<0>(end));
}

// ---- what is measured

Host numbers(const Shape& shape, float lo, float hi, std::int64_t key) {
  static const auto draw = compile([](I k, I n, F a, F b) {
    return a + (b - a) * V(random::uniform<float>(k, n));
  }, {.target = Target::cpp});
  Host t(shape);
  t.data = draw(key, static_cast<std::int64_t>(t.data.size()), lo, hi).data;
  return t;
}

class Measured {
 public:
  explicit Measured(const Options& options) : options_(options) {}

  /// `f` compiled, called on the arguments with results in memory that is there; `result` has their shapes.
  template <class Program, class... Results, class... Arguments>
  void add(const char* name, const char* form, const Program& f, std::tuple<Results...> results,
           const Arguments&... arguments) {
    const auto start = std::chrono::steady_clock::now();
    const auto compiled = compile(f, {.target = Target::cpp, .threads = options_.threads});
    const std::chrono::duration<double> compiling = std::chrono::steady_clock::now() - start;
    const auto call = [&] {
      std::apply([&](auto&... r) { compiled.into(at(r)..., arguments...); }, results);
    };
    std::size_t bytes = 0;
    (count(bytes, arguments), ...);
    std::apply([&](const auto&... r) { (count(bytes, r), ...); }, results);
    std::vector<char> from(bytes / 2 + 64, 1), to(from.size());
    const auto copy = [&] {
      std::memcpy(to.data(), from.data(), from.size());
      // NOLINTNEXTLINE(hicpp-no-assembler): the copy is wanted
      asm volatile("" : : "r"(to.data()) : "memory");
    };
    call();
    bool finite = true;
    std::apply([&](const auto&... r) { ((finite = finite && all_finite(r)), ...); }, results);
    if (!finite) failed_ = true;
    rows_.push_back(row(name, form, paired(call, copy, options_.timing()), {{"compile s", compiling.count()}}));
    if (!finite) fmt::print("{} {}: a result is not finite\n", name, form);
  }

  int report() const {
    fmt::print("{}", table(rows_));
    if (!options_.json.empty()) write_file(options_.json, json(rows_));
    return failed_ ? 1 : 0;
  }

 private:
  static TensorView<float> at(Host& t) { return {t.data.data(), t.shape}; }
  static std::span<float> at(List& x) { return x; }
  static void count(std::size_t& bytes, const Host& t) { bytes += t.data.size() * sizeof(float); }
  static void count(std::size_t& bytes, const List& x) { bytes += x.size() * sizeof(float); }
  static void count(std::size_t&, std::int64_t) {}
  static bool all_finite(const Host& t) { return all_finite(t.data); }
  static bool all_finite(const List& numbers) {
    return std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); });
  }

  Options options_;
  std::vector<Row> rows_;
  bool failed_ = false;
};

}  // namespace

int bench_tensors(int argc, char** argv) {
  int status = 0;
  const auto options = parse_options(argc, argv, "programs over tensors, over copies of their arguments and results",
                                     "", status, true);
  if (!options) return status;
  const bool quick = options->quick;
  Measured measured(*options);

  const std::int64_t n = quick ? 100'000 : 10'000'000, side = quick ? 300 : 3200;
  const Host x = numbers({n}, -1, 1, 1), y = numbers({n}, -1, 1, 2), z = numbers({n}, -1, 1, 3);
  measured.add("chain", "value", chain, std::tuple(x), x, y, z);
  measured.add("chain", "gradient", grad(chain_loss), std::tuple(x, x, x), x, y, z);
  measured.add("adam", "step", adam, std::tuple(x, x, x), x, y, z, numbers({n}, 0.1F, 1, 4));

  const Host rows = numbers({side, side}, -3, 3, 5), weights = numbers({side, side}, -1, 1, 6);
  measured.add("softmax", "value", softmax_rows, std::tuple(rows), rows);
  measured.add("softmax", "gradient", grad<0>(softmax_loss), std::tuple(rows), rows, weights);
  measured.add("layer norm", "value", layer_norm, std::tuple(rows), rows);
  measured.add("layer norm", "gradient", grad<0>(layer_norm_loss), std::tuple(rows), rows, weights);

  const std::int64_t examples = quick ? 1000 : 100'000;
  const Host points = numbers({examples, 50}, -1, 1, 7), labels = numbers({examples}, 0, 1, 8);
  measured.add("logistic", "step", logistic_step, std::tuple(Host(Shape{50})), numbers({50}, -1, 1, 9), points, labels);

  const std::int64_t contracts = quick ? 10'000 : 1'000'000;
  const List spot = numbers({contracts}, 80, 120, 10).data, strike = numbers({contracts}, 80, 120, 11).data,
             time = numbers({contracts}, 0.1F, 2, 12).data, rate = numbers({contracts}, 0.01F, 0.05F, 13).data,
             volatility = numbers({contracts}, 0.1F, 0.4F, 14).data;
  const auto greeks = vmap(grad(call_price));
  measured.add("black-scholes", "greeks", greeks, std::tuple(spot, spot, spot, spot, spot), spot, strike, time, rate,
               volatility);

  const std::int64_t grid = quick ? 32 : 256, steps = quick ? 10 : 200;
  const Host field = numbers({grid, grid}, 0, 1, 15), target = numbers({grid, grid}, 0, 1, 16);
  measured.add("heat", "gradient", grad<0>(heat), std::tuple(field), field, target, steps);

  const std::int64_t count = quick ? 16 : 128, moves = quick ? 5 : 100;
  const Host place = numbers({count, 3}, -1, 1, 17), speed = numbers({count, 3}, -1, 1, 18);
  measured.add("bodies", "gradient", grad<0, 1>(bodies), std::tuple(place, speed), place, speed, moves);
  return measured.report();
}

}  // namespace lantern::bench
