// Layers of networks, over tensors; max_pool over an array with flat indices. attention uses operations of
// whole tensors, the others loops.
#include <cmath>

#include "kernels.hpp"
#include "reference/kernels.hpp"

namespace lantern::bench {
namespace {

using Filters = Rep<Tensor<double, dyn, dyn, dyn, dyn>>;

/// Each row as probabilities.
Matrix softmax_rows(Matrix x) {
  const Index m = x.dim(0), n = x.dim(1);
  FOR(0, m, [&](Index i) {
    Number largest = x(i, 0), all = 0.0;
    FOR(1, n, [&](Index j) { largest = max(largest, x(i, j)); });
    FOR(0, n, [&](Index j) {
      x = x.set(i, j, exp(x(i, j) - largest));
      all += x(i, j);
    });
    FOR(0, n, [&](Index j) { x = x.set(i, j, x(i, j) / all); });
  });
  return x;
}

Number softmax(Matrix x, Matrix weight) { return sum(weight * softmax_rows(x)); }

Number layer_norm(Matrix x, Vector gain, Vector bias, Matrix weight) {
  const Index m = x.dim(0), n = x.dim(1);
  const Number count = cast<double>(n);
  return total(0, m, [&](Index i) {
    const Number mean = total(0, n, [&](Index j) { return x(i, j); }) / count;
    const Number variance = total(0, n, [&](Index j) { return (x(i, j) - mean) * (x(i, j) - mean); }) / count;
    const Number scale = 1.0 / sqrt(variance + 1e-5);
    return total(0, n,
                 [&](Index j) { return weight(i, j) * ((x(i, j) - mean) * scale * gain[j] + bias[j]); });
  });
}

Number attention(Matrix q, Matrix k, Matrix v) {
  const Number scale = 1.0 / sqrt(cast<double>(q.dim(1)));
  const Matrix p = softmax_rows(scale * matmul(q, transpose(k)));
  const Matrix out = matmul(p, v);
  return sum(out * out);
}

/// Filters of 3 x 3, without padding.
Number convolution(Volume image, Filters filter, Vector bias) {
  const Index in = image.dim(0), height = image.dim(1), width = image.dim(2);
  return total(0, bias.size(), [&](Index o) {
    return total(0, height - 2, [&](Index y) {
      return total(0, width - 2, [&](Index x) {
        Number s = bias[o];
        FOR(0, in, [&](Index c) {
          FOR(0, 3, [&](Index u) {
            FOR(0, 3, [&](Index v) { s += image(c, y + u, x + v) * filter(o, c, u, v); });
          });
        });
        return s * s;
      });
    });
  });
}

/// Of 2 x 2 elements the largest.
Number max_pool(Vector image, Vector weight, Index channels, Index height, Index width) {
  const Index rows = height / 2, columns = width / 2;
  return total(0, channels, [&](Index c) {
    return total(0, rows, [&](Index y) {
      return total(0, columns, [&](Index x) {
        const Index corner = (c * height + 2 * y) * width + 2 * x;
        const Number largest =
            max(max(image[corner], image[corner + 1]), max(image[corner + width], image[corner + width + 1]));
        return weight[(c * rows + y) * columns + x] * largest;
      });
    });
  });
}

Number embedding(Indices word, Matrix table, Matrix wanted) {
  return total(0, word.size(), [&](Index t) {
    return total(0, table.dim(1), [&](Index d) {
      const Number error = table(word[t], d) - wanted(t, d);
      return error * error;
    });
  });
}

/// Of which no two neighbours are nearly the same: which of them is the largest does not change.
Values distinct(std::int64_t channels, std::int64_t height, std::int64_t width) {
  Values all = uniform(channels * height * width, 0, 0.2);
  for (std::int64_t y = 0; y < channels * height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      all[y * width + x] += 0.25 * static_cast<double>((2 * (y % 2) + x % 2 + y / 2 + x / 2) % 4);
  return all;
}

}  // namespace

std::vector<Kernel> learning_kernels(const Sizes& of) {
  namespace plain = reference;
  std::vector<Kernel> all;
  {
    const std::int64_t m = of(32, 512, 4096), n = of(40, 256, 512);
    all.push_back(kernel(
        "softmax", by(m, n), softmax, [=](auto... a) { return plain::softmax(m, n, a...); },
        uniform_grid({m, n}), uniform_grid({m, n})));
    all.push_back(kernel(
        "layer_norm", by(m, n), layer_norm, [=](auto... a) { return plain::layer_norm(m, n, a...); },
        uniform_grid({m, n}), uniform(n), uniform(n), uniform_grid({m, n})));
  }
  {
    const std::int64_t tokens = of(24, 256, 1024), width = of(16, 64, 64);
    all.push_back(kernel(
        "attention", by(tokens, width), attention,
        [=](auto... a) { return plain::attention(tokens, width, a...); }, uniform_grid({tokens, width}),
        uniform_grid({tokens, width}), uniform_grid({tokens, width})));
  }
  {
    const std::int64_t in = of(3, 8, 16), out = of(4, 16, 32), side = of(16, 64, 128);
    all.push_back(kernel(
        "convolution", by(out, in, side, side), convolution,
        [=](auto... a) { return plain::convolution(in, out, side, side, a...); },
        uniform_grid({in, side, side}), uniform_grid({out, in, 3, 3}), uniform(out)));
  }
  {
    const std::int64_t channels = of(4, 32, 64), side = of(32, 128, 512);
    all.push_back(kernel(
        "max_pool", by(channels, side, side), max_pool,
        [](const double* image, const double* weight, auto... size) {
          return plain::max_pool(size..., image, weight);
        },
        distinct(channels, side, side), uniform(channels * side * side / 4), channels, side, side));
  }
  {
    const std::int64_t tokens = of(200, 4'096, 65'536), words = of(100, 2'000, 20'000), width = of(16, 64, 64);
    all.push_back(kernel(
        "embedding", by(tokens, words, width), embedding,
        [=](auto... a) { return plain::embedding(tokens, width, a...); }, places(tokens, words),
        uniform_grid({words, width}), uniform_grid({tokens, width})));
  }
  return all;
}

}  // namespace lantern::bench
