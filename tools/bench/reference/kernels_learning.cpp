#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels.hpp"

namespace lantern::bench::reference {
namespace {

using Values = std::vector<double>;

/// In place.
void softmax_row(Size n, double* x) {
  double largest = x[0], sum = 0;
  for (Size j = 1; j < n; ++j) largest = std::max(largest, x[j]);
  for (Size j = 0; j < n; ++j) {
    x[j] = std::exp(x[j] - largest);
    sum += x[j];
  }
  for (Size j = 0; j < n; ++j) x[j] /= sum;
}

}  // namespace

double softmax(Size m, Size n, const double* x, const double* weight) {
  Values p(x, x + m * n);
  double loss = 0;
  for (Size i = 0; i < m; ++i) {
    softmax_row(n, &p[i * n]);
    for (Size j = 0; j < n; ++j) loss += weight[i * n + j] * p[i * n + j];
  }
  return loss;
}

double layer_norm(Size m, Size n, const double* x, const double* gain, const double* bias,
                  const double* weight) {
  double loss = 0;
  for (Size i = 0; i < m; ++i) {
    const double* row = x + i * n;
    double mean = 0, variance = 0;
    for (Size j = 0; j < n; ++j) mean += row[j];
    mean /= static_cast<double>(n);
    for (Size j = 0; j < n; ++j) variance += (row[j] - mean) * (row[j] - mean);
    variance /= static_cast<double>(n);
    const double scale = 1.0 / std::sqrt(variance + 1e-5);
    for (Size j = 0; j < n; ++j) loss += weight[i * n + j] * ((row[j] - mean) * scale * gain[j] + bias[j]);
  }
  return loss;
}

double attention(Size tokens, Size width, const double* q, const double* k, const double* v) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(width));
  Values p(tokens * tokens), out(tokens * width);
  for (Size i = 0; i < tokens; ++i) {
    for (Size j = 0; j < tokens; ++j) {
      double s = 0;
      for (Size d = 0; d < width; ++d) s += q[i * width + d] * k[j * width + d];
      p[i * tokens + j] = scale * s;
    }
    softmax_row(tokens, &p[i * tokens]);
    for (Size j = 0; j < tokens; ++j)
      for (Size d = 0; d < width; ++d) out[i * width + d] += p[i * tokens + j] * v[j * width + d];
  }
  double sum = 0;
  for (const double y : out) sum += y * y;
  return sum;
}

double convolution(Size in, Size out, Size height, Size width, const double* image, const double* filter,
                   const double* bias) {
  double sum = 0;
  for (Size o = 0; o < out; ++o)
    for (Size y = 0; y < height - 2; ++y)
      for (Size x = 0; x < width - 2; ++x) {
        double s = bias[o];
        for (Size c = 0; c < in; ++c)
          for (Size u = 0; u < 3; ++u)
            for (Size v = 0; v < 3; ++v)
              s += image[(c * height + y + u) * width + x + v] * filter[((o * in + c) * 3 + u) * 3 + v];
        sum += s * s;
      }
  return sum;
}

double max_pool(Size channels, Size height, Size width, const double* image, const double* weight) {
  double sum = 0;
  for (Size c = 0; c < channels; ++c)
    for (Size y = 0; y < height / 2; ++y)
      for (Size x = 0; x < width / 2; ++x) {
        const double* corner = image + (c * height + 2 * y) * width + 2 * x;
        const double largest =
            std::max(std::max(corner[0], corner[1]), std::max(corner[width], corner[width + 1]));
        sum += weight[(c * (height / 2) + y) * (width / 2) + x] * largest;
      }
  return sum;
}

double embedding(Size tokens, Size width, const Size* word, const double* table, const double* wanted) {
  double sum = 0;
  for (Size t = 0; t < tokens; ++t)
    for (Size d = 0; d < width; ++d) {
      const double error = table[word[t] * width + d] - wanted[t * width + d];
      sum += error * error;
    }
  return sum;
}

}  // namespace lantern::bench::reference
