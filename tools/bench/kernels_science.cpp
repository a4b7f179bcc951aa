// Particles, sequences and signals. What has two indices is a tensor in the hidden Markov model, else an
// array.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels.hpp"
#include "reference/kernels.hpp"

namespace lantern::bench {
namespace {

/// Bodies that attract each other, three coordinates each.
Number bodies(Vector x, Vector v, Vector mass, Index steps) {
  const Index n = mass.size();
  FOR(0, steps, [&](Index) {
    FOR(0, n, [&](Index i) {
      Vector3 a{0.0, 0.0, 0.0};
      FOR(0, n, [&](Index j) {
        const Number dx = x[3 * j] - x[3 * i], dy = x[3 * j + 1] - x[3 * i + 1],
                     dz = x[3 * j + 2] - x[3 * i + 2];
        const Number squared = dx * dx + dy * dy + dz * dz + 0.01;
        a = plus(a, times(mass[j] / (squared * sqrt(squared)), {dx, dy, dz}));
      });
      for (int c = 0; c < 3; ++c) v = v.set(3 * i + c, v[3 * i + c] + 0.001 * a[static_cast<std::size_t>(c)]);
    });
    FOR(0, 3 * n, [&](Index e) { x = x.set(e, x[e] + 0.001 * v[e]); });
  });
  return sum(x * x) + sum(v * v);
}

/// Each pair once: atom i's neighbours are those from start[i] on. Beyond a distance of 2.5 there is no
/// force.
Number lennard_jones(Indices start, Indices neighbour, Vector x) {
  Number energy = 0.0;
  FOR(0, start.size() - 1, [&](Index i) {
    FOR(start[i], start[i + 1], [&](Index k) {
      const Index j = neighbour[k];
      const Number dx = x[3 * i] - x[3 * j], dy = x[3 * i + 1] - x[3 * j + 1],
                   dz = x[3 * i + 2] - x[3 * j + 2];
      const Number squared = dx * dx + dy * dy + dz * dz;
      IF(squared < 6.25, [&] {
        const Number inverse = 1.0 / squared, six = inverse * inverse * inverse;
        energy += 4.0 * six * (six - 1.0) + 0.016316891136;
      });
    });
  });
  return energy;
}

Number histogram(Indices bin, Vector weight, Index bins) {
  Vector h = fill(Number(0.0), bins);
  FOR(0, bin.size(), [&](Index i) { h = h.set(bin[i], h[bin[i]] + weight[i]); });
  return sum(h * h);
}

Number prefix_sum(Vector x) {
  const Index n = x.size();
  Vector s = fill(Number(0.0), n);
  Number before = 0.0;
  FOR(0, n, [&](Index i) {
    before += x[i];
    s = s.set(i, before);
  });
  return sum(s * s);
}

/// How likely a sequence of symbols is: the forward algorithm, with probabilities scaled at each step.
Number hidden_markov(Vector first, Matrix next, Matrix emit, Indices seen) {
  const Index states = first.size();
  const Vector start = tabulate(states, [&](Index i) { return first[i] * emit(i, seen[0]); });
  const auto [last, likelihood] =
      FOR(1, seen.size(), std::tuple(start, Number(0.0)), [&](Index t, Vector now, Number logs) {
        const Vector after = tabulate(states, [&](Index j) {
          return emit(j, seen[t]) * total(0, states, [&](Index i) { return now[i] * next(i, j); });
        });
        const Number scale = sum(after);
        return std::tuple(after / scale, logs + log(scale));
      });
  return likelihood;
}

/// The weighted power of a spectrum. Radix 2; `reversed` holds each index with its bits the other way round.
Number fourier(Indices reversed, Vector real, Vector imaginary, Vector weight) {
  const Index n = reversed.size();
  Vector re = tabulate(n, [&](Index i) { return real[reversed[i]]; });
  Vector im = tabulate(n, [&](Index i) { return imaginary[reversed[i]]; });
  const auto angle = [&](Index k) { return -2.0 * std::numbers::pi * cast<double>(k) / cast<double>(n); };
  const Vector c = tabulate(n / 2, [&](Index k) { return cos(angle(k)); });
  const Vector s = tabulate(n / 2, [&](Index k) { return sin(angle(k)); });
  Index half = 1;
  WHILE([&] { return half < n; },
        [&] {
          const Index blocks = n / (2 * half);
          FOR(0, blocks, [&](Index block) {
            FOR(0, half, [&](Index k) {
              const Number wr = c[k * blocks], wi = s[k * blocks];
              const Index p = 2 * half * block + k, q = p + half;
              const Number tr = wr * re[q] - wi * im[q], ti = wr * im[q] + wi * re[q];
              re = re.set(q, re[p] - tr).set(p, re[p] + tr);
              im = im.set(q, im[p] - ti).set(p, im[p] + ti);
            });
          });
          half = 2 * half;
        });
  return total(0, n, [&](Index i) { return weight[i] * (re[i] * re[i] + im[i] * im[i]); });
}

/// Atoms near the points of a cubic lattice, and each one's neighbours of a higher number. None are about as
/// far from each other as forces reach: which of them meet does not change.
struct Liquid {
  Values x;
  Whole start{0}, neighbour;

  explicit Liquid(std::int64_t side) : x(uniform(3 * side * side * side, -0.015, 0.015)) {
    const auto n = static_cast<std::int64_t>(x.size()) / 3;
    for (std::int64_t i = 0; i < n; ++i) {
      x[3 * i] += 1.09 * static_cast<double>(i / (side * side));
      x[3 * i + 1] += 1.09 * static_cast<double>(i / side % side);
      x[3 * i + 2] += 1.09 * static_cast<double>(i % side);
    }
    constexpr double reach = 2.8;  // somewhat more than what forces have
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = i + 1; j < n; ++j)
        if (std::hypot(x[3 * i] - x[3 * j], x[3 * i + 1] - x[3 * j + 1], x[3 * i + 2] - x[3 * j + 2]) < reach)
          neighbour.push_back(j);
      start.push_back(static_cast<std::int64_t>(neighbour.size()));
    }
  }
};

Whole reversed_bits(std::int64_t n) {
  Whole reversed(static_cast<std::size_t>(n), 0);
  for (std::int64_t i = 1; i < n; ++i) reversed[i] = reversed[i / 2] / 2 + (i % 2) * (n / 2);
  return reversed;
}

}  // namespace

std::vector<Kernel> science_kernels(const Sizes& of) {
  namespace plain = reference;
  std::vector<Kernel> all;
  {
    const std::int64_t n = of(30, 200, 1'000), steps = of(3, 10, 4);
    all.push_back(kernel(
        "bodies", by(steps, n, n), bodies,
        [=](const double* x, const double* v, const double* mass, std::int64_t count) {
          return plain::bodies(n, count, x, v, mass);
        },
        uniform(3 * n), uniform(3 * n), uniform(n, 0.5, 1.5), steps));
  }
  {
    const Liquid liquid(of(6, 18, 40));
    const auto n = static_cast<std::int64_t>(liquid.start.size()) - 1;
    all.push_back(kernel(
        "lennard_jones", by(n, static_cast<std::int64_t>(liquid.neighbour.size()) / n), lennard_jones,
        [=](auto... a) { return plain::lennard_jones(n, a...); }, liquid.start, liquid.neighbour, liquid.x));
  }
  {
    const std::int64_t n = of(20'000, 500'000, 10'000'000), bins = of(100, 1'000, 1'000);
    all.push_back(kernel(
        "histogram", by(n, bins), histogram,
        [=](const std::int64_t* bin, const double* weight, std::int64_t count) {
          return plain::histogram(n, count, bin, weight);
        },
        places(n, bins), uniform(n), bins));
    all.push_back(kernel(
        "prefix_sum", by(n), prefix_sum, [=](const double* x) { return plain::prefix_sum(n, x); },
        uniform(n)));
  }
  {
    const std::int64_t states = of(8, 64, 512), symbols = 20, steps = of(50, 400, 400);
    all.push_back(kernel(
        "hidden_markov", by(steps, states, states), hidden_markov,
        [=](auto... a) { return plain::hidden_markov(states, symbols, steps, a...); },
        uniform(states, 0.1, 1), uniform_grid({states, states}, 0.1, 1),
        uniform_grid({states, symbols}, 0.1, 1), places(steps, symbols)));
  }
  {
    const std::int64_t n = of(1'024, 32'768, 1'048'576);
    all.push_back(kernel(
        "fourier", by(n), fourier, [=](auto... a) { return plain::fourier(n, a...); }, reversed_bits(n),
        uniform(n), uniform(n), uniform(n)));
  }
  return all;
}

}  // namespace lantern::bench
