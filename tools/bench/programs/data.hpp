// Likelihoods, losses, graphs, images and simulations.
#pragma once

#include "types.hpp"

namespace lantern::bench::programs {

/// Logistic regression: labels are 1 and -1.
template <class T>
Number<T> logistic(Input<T> x, Input<T> label, Input<T> w, Index<T> rows, Index<T> n) {
  Number<T> loss = 0.0;
  for (Index<T> i = 0; i < rows; ++i) {
    Number<T> z = 0.0;
    for (Index<T> j = 0; j < n; ++j) z += x[i * n + j] * w[j];
    loss += log(1.0 + exp((0.0 - label[i]) * z));
  }
  return loss;
}

/// Minus the logarithms of the probabilities of each row's class.
template <class T>
Number<T> cross_entropy(Input<T> x, Indices<T> label, Index<T> rows, Index<T> n) {
  using std::max;
  Number<T> loss = 0.0;
  for (Index<T> i = 0; i < rows; ++i) {
    Number<T> largest = x[i * n], s = 0.0;
    for (Index<T> j = 1; j < n; ++j) largest = max(largest, x[i * n + j]);
    for (Index<T> j = 0; j < n; ++j) s += exp(x[i * n + j] - largest);
    loss += log(s) + largest - x[i * n + label[i]];
  }
  return loss;
}

/// Points in one dimension under a mixture of Gaussians.
template <class T>
Number<T> mixture(Input<T> x, Input<T> weight, Input<T> mean, Input<T> width, Index<T> n, Index<T> parts) {
  Number<T> all = 0.0;
  for (Index<T> i = 0; i < n; ++i) {
    Number<T> s = 0.0;
    for (Index<T> k = 0; k < parts; ++k) {
      const Number<T> z = (x[i] - mean[k]) / width[k];
      s += weight[k] / width[k] * exp(-0.5 * z * z);
    }
    all += log(s);
  }
  return all;
}

/// Residuals whose losses are quadratic near zero and linear beyond 1.
template <class T>
Number<T> huber(Input<T> x, Input<T> y, Input<T> w, Index<T> rows, Index<T> n) {
  using std::abs;
  Number<T> loss = 0.0;
  for (Index<T> i = 0; i < rows; ++i) {
    Number<T> r = y[i];
    for (Index<T> j = 0; j < n; ++j) r -= x[i * n + j] * w[j];
    if (abs(r) < 1.0)
      loss += 0.5 * r * r;
    else
      loss += abs(r) - 0.5;
  }
  return loss;
}

/// Variances that depend on what was before: minus the likelihood of a GARCH(1, 1) model.
template <class T>
Number<T> garch(Input<T> returns, Input<T> p, Index<T> n) {
  Number<T> variance = 1.0, loss = 0.0;
  for (Index<T> t = 0; t < n; ++t) {
    variance = p[0] + p[1] * returns[t] * returns[t] + p[2] * variance;
    loss += log(variance) + returns[t] * returns[t] / variance;
  }
  return loss;
}

/// A layer of a graph network: edges carry rows from `from` to `to`.
template <class T>
Number<T> messages(Indices<T> from, Indices<T> to, Input<T> weight, Input<T> x, Index<T> edges,
                   Index<T> nodes, Index<T> width) {
  Array<T> out = T::zeros(nodes * width);
  for (Index<T> e = 0; e < edges; ++e)
    for (Index<T> c = 0; c < width; ++c)
      out[to[e] * width + c] = out[to[e] * width + c] + weight[e] * x[from[e] * width + c];
  return sum_of_squares<T>(out, nodes * width);
}

/// A bag of words for each sentence: its rows of the table are summed.
template <class T>
Number<T> word_bags(Indices<T> word, Input<T> table, Index<T> sentences, Index<T> length, Index<T> width) {
  Number<T> all = 0.0;
  for (Index<T> s = 0; s < sentences; ++s)
    for (Index<T> c = 0; c < width; ++c) {
      Number<T> v = 0.0;
      for (Index<T> t = 0; t < length; ++t) v += table[word[s * length + t] * width + c];
      all += v * v;
    }
  return all;
}

/// An image, read between its elements where a field of shifts says.
template <class T>
Number<T> warp(Input<T> image, Input<T> dy, Input<T> dx, Index<T> n) {
  Number<T> sum = 0.0;
  for (Index<T> i = 1; i < n - 2; ++i)
    for (Index<T> j = 1; j < n - 2; ++j) {
      const Number<T> y = T::number(i) + dy[i * n + j], x = T::number(j) + dx[i * n + j];
      const Index<T> iy = T::whole(y), ix = T::whole(x);
      const Number<T> fy = y - T::number(iy), fx = x - T::number(ix);
      const Number<T> top = (1.0 - fx) * image[iy * n + ix] + fx * image[iy * n + ix + 1];
      const Number<T> bottom = (1.0 - fx) * image[(iy + 1) * n + ix] + fx * image[(iy + 1) * n + ix + 1];
      const Number<T> v = (1.0 - fy) * top + fy * bottom;
      sum += v * v;
    }
  return sum;
}

/// Kepler's equation for many orbits, ten Newton steps each.
template <class T>
Number<T> kepler(Input<T> mean, Input<T> eccentricity, Index<T> n) {
  Number<T> sum = 0.0;
  for (Index<T> i = 0; i < n; ++i) {
    Number<T> e = mean[i];
    for (Index<T> k = 0; k < 10; ++k)
      e = e - (e - eccentricity[i] * sin(e) - mean[i]) / (1.0 - eccentricity[i] * cos(e));
    sum += e * e;
  }
  return sum;
}

/// How dense points are at each point.
template <class T>
Number<T> kernel_density(Input<T> x, Input<T> width, Index<T> n) {
  Number<T> all = 0.0;
  for (Index<T> i = 0; i < n; ++i) {
    Number<T> s = 0.0;
    for (Index<T> j = 0; j < n; ++j) {
      const Number<T> z = (x[i] - x[j]) / width[0];
      s += exp(-0.5 * z * z);
    }
    all += log(s);
  }
  return all;
}

/// A recurrent network over a sequence of rows.
template <class T>
Number<T> recurrent(Input<T> w, Input<T> u, Input<T> x, Index<T> steps, Index<T> n) {
  Array<T> h = T::zeros(n), next = T::zeros(n);
  for (Index<T> t = 0; t < steps; ++t) {
    for (Index<T> i = 0; i < n; ++i) {
      Number<T> s = 0.0;
      for (Index<T> j = 0; j < n; ++j) s += w[i * n + j] * h[j] + u[i * n + j] * x[t * n + j];
      next[i] = tanh(s);
    }
    for (Index<T> i = 0; i < n; ++i) h[i] = next[i];
  }
  return sum_of_squares<T>(h, n);
}

/// A layer with rectified outputs, and one behind it.
template <class T>
Number<T> rectified(Input<T> x, Input<T> w, Input<T> v, Index<T> rows, Index<T> n, Index<T> hidden) {
  using std::max;
  Number<T> all = 0.0;
  for (Index<T> i = 0; i < rows; ++i) {
    Number<T> out = 0.0;
    for (Index<T> h = 0; h < hidden; ++h) {
      Number<T> s = 0.0;
      for (Index<T> j = 0; j < n; ++j) s += x[i * n + j] * w[h * n + j];
      out += v[h] * max(s, 0.0);
    }
    all += out * out;
  }
  return all;
}

/// Of each `size` elements in a row the largest, one element further each.
template <class T>
Number<T> sliding_max(Input<T> x, Input<T> weight, Index<T> n, Index<T> size) {
  using std::max;
  Number<T> sum = 0.0;
  for (Index<T> i = 0; i < n - size + 1; ++i) {
    Number<T> largest = x[i];
    for (Index<T> k = 1; k < size; ++k) largest = max(largest, x[i + k]);
    sum += weight[i] * largest;
  }
  return sum;
}

/// Many particles in Lorenz's flow.
template <class T>
Number<T> lorenz(Input<T> start, Input<T> p, Index<T> n, Index<T> steps) {
  Number<T> sum = 0.0;
  for (Index<T> i = 0; i < n; ++i) {
    Number<T> x = start[3 * i], y = start[3 * i + 1], z = start[3 * i + 2];
    for (Index<T> t = 0; t < steps; ++t) {
      const Number<T> dx = p[0] * (y - x), dy = x * (p[1] - z) - y, dz = x * y - p[2] * z;
      x += 0.005 * dx;
      y += 0.005 * dy;
      z += 0.005 * dz;
    }
    sum += x * x + y * y + z * z;
  }
  return sum;
}

/// A wave of which three time levels rotate.
template <class T>
Number<T> wave_rotating(Input<T> start, Input<T> speed, Index<T> n, Index<T> steps) {
  Array<T> before = T::copy(start, n * n), now = T::copy(start, n * n), next = T::copy(start, n * n);
  for (Index<T> t = 0; t < steps; ++t) {
    for (Index<T> i = 1; i < n - 1; ++i)
      for (Index<T> j = 1; j < n - 1; ++j) {
        const Number<T> v = now[i * n + j];
        const Number<T> spread =
            now[i * n - n + j] + now[i * n + n + j] + now[i * n + j - 1] + now[i * n + j + 1] - 4.0 * v;
        next[i * n + j] = 2.0 * v - before[i * n + j] + speed[i * n + j] * spread;
      }
    T::rotate(before, now, next);
  }
  return sum_of_squares<T>(now, n * n);
}

/// Burgers' equation with flow from the left or the right.
template <class T>
Number<T> burgers(Input<T> start, Index<T> n, Index<T> steps) {
  Array<T> u = T::copy(start, n), next = T::copy(start, n);
  for (Index<T> t = 0; t < steps; ++t) {
    for (Index<T> i = 1; i < n - 1; ++i) {
      const Number<T> slope = u[i] > 0.0 ? u[i] - u[i - 1] : u[i + 1] - u[i];
      next[i] = u[i] - 0.1 * u[i] * slope + 0.05 * (u[i + 1] - 2.0 * u[i] + u[i - 1]);
    }
    for (Index<T> i = 1; i < n - 1; ++i) u[i] = next[i];
  }
  return sum_of_squares<T>(u, n);
}

}  // namespace lantern::bench::programs
