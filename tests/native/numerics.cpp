// Numerical methods as C++ programmers write them.
#include "program.hpp"

using namespace native_corpus;

template <class T>
T runge_kutta_4(T x, T rate) {
  T t = 0.0;
  const double h = 0.1;
  while (t < 1.0 - 1e-9) {
    T k1 = -rate * x * x, y2 = x + 0.5 * h * k1;
    T k2 = -rate * y2 * y2, y3 = x + 0.5 * h * k2;
    T k3 = -rate * y3 * y3, y4 = x + h * k3;
    T k4 = -rate * y4 * y4;
    x += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
    t += h;
  }
  return x;
}
PROGRAM(runge_kutta_4, 2, {1.0, 0.5}, {3.0, 1.5})

template <class T>
T adaptive_heun(T y0, T rate) {
  T t = 0.0, h = 0.1, y = y0;
  Index<T> steps = 0;
  while (t < 2.0) {
    if (t + h > 2.0) h = 2.0 - t;
    T k1 = -rate * y, k2 = -rate * (y + h * k1);
    T low = y + h * k1, high = y + 0.5 * h * (k1 + k2);
    T error = abs(high - low);
    if (error > 0.01) {
      h = 0.5 * h;
      continue;
    }
    y = high;
    t += h;
    if (error < 0.001) h *= 1.6;
    if (++steps > 200) break;
  }
  return y;
}
PROGRAM(adaptive_heun, 2, {1.0, 0.5}, {3.0, 1.5})

template <class T>
T kalman(T noise, T z0) {
  T mean = 0.0, variance = 1.0;
  const std::array<double, 5> offsets{0.0, 0.3, -0.2, 0.9, 0.1};
  for (double offset : offsets) {
    variance += 0.1;
    T residual = z0 + offset - mean;
    // An outlier is weighed less.
    T r = noise;
    if (residual * residual > 4.0 * (variance + noise)) r = noise * 10.0;
    T gain = variance / (variance + r);
    mean += gain * residual;
    variance *= 1.0 - gain;
  }
  return mean + variance;
}
PROGRAM(kalman, 2, {0.5, 1.0}, {0.2, 4.0})

template <class T>
T tridiagonal(T d, T e) {
  constexpr int n = 5;
  std::array<T, n> c, x;
  T b = 2.0 + d;
  c[0] = e / b;
  x[0] = 1.0 / b;
  for (int i = 1; i < n; ++i) {
    T m = b - e * c[i - 1];
    if (abs(m) < 1e-8) return 0.0;
    c[i] = e / m;
    x[i] = (1.0 - e * x[i - 1]) / m;
  }
  for (int i = n - 2; i >= 0; --i) x[i] -= c[i] * x[i + 1];
  T s = 0.0;
  for (const T& v : x) s += v * v;
  return s;
}
PROGRAM(tridiagonal, 2, {0.5, -1.0}, {1.0, 0.7})

template <class T>
T gauss_with_pivoting(T a, T b) {
  constexpr int n = 3;
  std::array<std::array<T, n + 1>, n> m{{{a, 2.0, 1.0, 1.0}, {b, 1.0, 3.0, 2.0}, {1.0, a * b, 1.0, 3.0}}};
  for (int k = 0; k < n; ++k) {
    for (int i = k + 1; i < n; ++i)
      if (abs(m[i][k]) > abs(m[k][k])) std::swap(m[i], m[k]);
    if (abs(m[k][k]) < 1e-12) return -1.0;
    for (int i = k + 1; i < n; ++i) {
      T f = m[i][k] / m[k][k];
      for (int j = k; j <= n; ++j) m[i][j] -= f * m[k][j];
    }
  }
  std::array<T, n> x;
  for (int i = n - 1; i >= 0; --i) {
    T s = m[i][n];
    for (int j = i + 1; j < n; ++j) s -= m[i][j] * x[j];
    x[i] = s / m[i][i];
  }
  return x[0] + 2.0 * x[1] + 3.0 * x[2];
}
PROGRAM(gauss_with_pivoting, 2, {0.5, -1.0}, {4.0, 0.7}, {1.5, 5.0})

template <class T>
T cholesky_or_zero(T a, T b, T c) {
  if (a <= 0.0) return 0.0;
  T l11 = sqrt(a), l21 = b / l11, d = c - l21 * l21;
  if (d <= 0.0) return 0.0;
  return log(l11) + 0.5 * log(d);
}
PROGRAM(cholesky_or_zero, 3, {2.0, 0.5, 1.0}, {1.0, 3.0, 2.0}, {-1.0, 1.0, 1.0})

template <class T>
std::vector<std::array<T, 2>> fft(const std::vector<std::array<T, 2>>& x) {
  const std::size_t n = x.size();
  if (n == 1) return x;
  std::vector<std::array<T, 2>> even, odd, out(n);
  for (std::size_t i = 0; i < n; ++i) (i % 2 == 0 ? even : odd).push_back(x[i]);
  even = fft(even), odd = fft(odd);
  for (std::size_t k = 0; k < n / 2; ++k) {
    const double angle = -2.0 * 3.14159265358979323846 * static_cast<double>(k) / static_cast<double>(n);
    const double c = std::cos(angle), s = std::sin(angle);
    T re = c * odd[k][0] - s * odd[k][1], im = s * odd[k][0] + c * odd[k][1];
    out[k] = {even[k][0] + re, even[k][1] + im};
    out[k + n / 2] = {even[k][0] - re, even[k][1] - im};
  }
  return out;
}
template <class T>
T strongest_frequency(T a, T b) {
  std::vector<std::array<T, 2>> x;
  for (int i = 0; i < 8; ++i) x.push_back({a * std::sin(0.8 * i) + b * (i % 3), T(0.0)});
  T best = 0.0;
  for (const auto& z : fft(x)) {
    T power = z[0] * z[0] + z[1] * z[1];
    if (power > best) best = power;
  }
  return best;
}
PROGRAM(strongest_frequency, 2, {1.0, 0.1}, {0.1, 1.0})

template <class T>
T interpolate(T x) {
  const std::array<double, 6> at{0.0, 0.5, 1.5, 2.0, 3.0, 5.0}, y{1.0, 2.0, 0.5, -1.0, 0.0, 4.0};
  if (x <= at.front()) return y.front();
  for (std::size_t i = 1; i < at.size(); ++i) {
    if (x < at[i]) {
      T w = (x - at[i - 1]) / (at[i] - at[i - 1]);
      return (1.0 - w) * y[i - 1] + w * y[i];
    }
  }
  return y.back();
}
PROGRAM(interpolate, 1, {-1.0}, {0.3}, {1.75}, {4.5}, {7.0})

template <class T>
T binomial_option(T spot, T volatility) {
  constexpr int n = 6;
  const double dt = 1.0 / n, strike = 1.0;
  T up = exp(volatility * std::sqrt(dt)), down = 1.0 / up;
  T p = (std::exp(0.03 * dt) - down) / (up - down);
  std::array<T, n + 1> value;
  for (int i = 0; i <= n; ++i) {
    T s = spot;
    for (int k = 0; k < n; ++k) s *= k < i ? up : down;
    value[i] = s < strike ? strike - s : T(0.0);
  }
  for (int step = n - 1; step >= 0; --step) {
    for (int i = 0; i <= step; ++i) {
      T hold = std::exp(-0.03 * dt) * (p * value[i + 1] + (1.0 - p) * value[i]);
      T s = spot;
      for (int k = 0; k < step; ++k) s *= k < i ? up : down;
      T exercise = strike - s;
      value[i] = exercise > hold ? exercise : hold;
    }
  }
  return value[0];
}
PROGRAM(binomial_option, 2, {0.93, 0.2}, {1.11, 0.35})

template <class T>
T ray_marcher(T dx, T dy) {
  T px = 0.0, py = 0.0, travelled = 0.0;
  T length = sqrt(dx * dx + dy * dy);
  for (Index<T> i = 0; i < 40; ++i) {
    T cx = px - 3.0, cy = py - 0.5;
    T distance = sqrt(cx * cx + cy * cy) - 1.0;
    if (distance < 1e-6) return travelled;
    if (travelled > 10.0) break;
    travelled += distance;
    px += distance * dx / length;
    py += distance * dy / length;
  }
  return 10.0 + dx;
}
PROGRAM(ray_marcher, 2, {1.0, 0.1}, {0.1, 1.0})

template <class T>
T time_warping(T a, T b) {
  const std::array<T, 3> x{a, b, a + b};
  const std::array<T, 4> y{0.1, a * b, 1.0, b};
  std::array<std::array<T, 5>, 4> d;
  for (auto& row : d)
    for (T& v : row) v = 1e3;
  d[0][0] = 0.0;
  for (int i = 1; i <= 3; ++i)
    for (int j = 1; j <= 4; ++j) {
      T cost = abs(x[i - 1] - y[j - 1]);
      T least = d[i - 1][j];
      if (d[i][j - 1] < least) least = d[i][j - 1];
      if (d[i - 1][j - 1] < least) least = d[i - 1][j - 1];
      d[i][j] = cost + least;
    }
  return d[3][4];
}
PROGRAM(time_warping, 2, {1.1, 0.13}, {0.37, 1.9})

template <class T>
T soft_levenshtein(T insert, T change) {
  const std::string s = "kitten", t = "sitting";
  std::vector<T> row(t.size() + 1, 0.0);
  for (std::size_t j = 1; j <= t.size(); ++j) row[j] = row[j - 1] + insert;
  for (std::size_t i = 1; i <= s.size(); ++i) {
    T diagonal = row[0];
    row[0] += insert;
    for (std::size_t j = 1; j <= t.size(); ++j) {
      T a = row[j] + insert, b = row[j - 1] + insert, c = diagonal;
      if (s[i - 1] != t[j - 1]) c += change;
      diagonal = row[j];
      row[j] = a < b ? (a < c ? a : c) : b < c ? b : c;
    }
  }
  return row.back() * row.back();
}
PROGRAM(soft_levenshtein, 2, {1.0, 1.3}, {0.6, 2.0})

template <class T>
struct Body {
  T x, y, vx, vy;
};
template <class T>
T three_bodies(T x0, T v0) {
  std::array<Body<T>, 3> bodies{{{x0, 0.0, 0.0, v0}, {-1.0, 0.0, 0.0, -0.5}, {0.0, 1.0, 0.3, 0.0}}};
  for (int step = 0; step < 5; ++step) {
    for (std::size_t i = 0; i < bodies.size(); ++i)
      for (std::size_t j = 0; j < bodies.size(); ++j) {
        if (i == j) continue;
        T dx = bodies[j].x - bodies[i].x, dy = bodies[j].y - bodies[i].y;
        T r2 = dx * dx + dy * dy;
        if (r2 < 0.05) r2 = 0.05;
        T f = 0.01 / (r2 * sqrt(r2));
        bodies[i].vx += f * dx;
        bodies[i].vy += f * dy;
      }
    for (Body<T>& b : bodies) {
      b.x += 0.1 * b.vx;
      b.y += 0.1 * b.vy;
      if (b.x > 1.05) b.vx = -b.vx;
    }
  }
  return bodies[0].x * bodies[1].y + bodies[2].vx;
}
PROGRAM(three_bodies, 2, {1.0, 0.5}, {0.1, 0.2})

template <class T>
struct Cell {
  T h = 0.0, c = 0.0;
};
template <class T>
T sigmoid(T x) {
  if (x >= 0.0) return 1.0 / (1.0 + exp(-x));
  T e = exp(x);
  return e / (1.0 + e);
}
template <class T>
Cell<T> lstm_cell(Cell<T> state, T input, T w) {
  T i = sigmoid(w * input + 0.5 * state.h), f = sigmoid(0.3 * input - w * state.h), g = tanh(input + state.h),
    o = sigmoid(input * w);
  state.c = f * state.c + i * g;
  state.h = o * tanh(state.c);
  return state;
}
template <class T>
T lstm(T w, T x) {
  Cell<T> state;
  for (Index<T> t = 0; t < 4; ++t) state = lstm_cell(state, x * number(t) - 1.0, w);
  return state.h;
}
PROGRAM(lstm, 2, {1.0, 0.5}, {-0.7, 1.2})

template <class T>
T partition_and_sum(std::vector<T>& v, std::size_t lo, std::size_t hi) {
  // Bubble passes: a sorting network, since the order of staged values is not known while staging.
  for (std::size_t i = lo; i < hi; ++i)
    for (std::size_t j = lo; j + 1 < hi; ++j)
      if (v[j] > v[j + 1]) std::swap(v[j], v[j + 1]);
  T s = 0.0, weight = 1.0;
  for (std::size_t i = lo; i < hi; ++i, weight *= 0.5) s += weight * v[i];
  return s;
}
template <class T>
T sort_and_sum(T a, T b) {
  std::vector<T> v{a, b, a * b, 1.0, -a};
  return partition_and_sum(v, 0, v.size());
}
PROGRAM(sort_and_sum, 2, {1.1, 0.5}, {-0.7, 1.2})

template <class T>
T tokenizer(T scale) {
  // A recursive-descent reader would be plain C++; here the machine's state decides what is added.
  const std::string text = "12+3*(4-1)";
  T value = 0.0, number = 0.0;
  Index<T> state = 0;
  for (char c : text) {
    if (c >= '0' && c <= '9') {
      number = number * 10.0 + scale * (c - '0');
      continue;
    }
    switch (state) {
      case 0:
        value = value + number;
        break;
      case 1:
        value = value * number;
        break;
      case 2:
        value = value - number;
        break;
      default:
        break;
    }
    number = 0.0;
    switch (c) {
      case '*':
        state = 1;
        break;
      case '-':
        state = 2;
        break;
      default:
        state = 0;
    }
    if (value > 40.0) state = 2;
  }
  return value + number;
}
PROGRAM(tokenizer, 1, {1.0}, {4.0})

template <class T>
T golden_section(T c) {
  const double ratio = 0.6180339887498949;
  T a = 0.0, b = 4.0;
  T x1 = b - ratio * (b - a), x2 = a + ratio * (b - a);
  for (Index<T> i = 0; i < 60 && b - a > 1e-6; ++i) {
    T f1 = (x1 - c) * (x1 - c), f2 = (x2 - c) * (x2 - c);
    if (f1 < f2) {
      b = x2;
      x2 = x1;
      x1 = b - ratio * (b - a);
    } else {
      a = x1;
      x1 = x2;
      x2 = a + ratio * (b - a);
    }
  }
  T x = 0.5 * (a + b);
  x -= x - c;  // Newton's step, so that the minimum has a slope
  return (x - 2.0 * c) * c;
}
PROGRAM(golden_section, 1, {1.3}, {2.9})

template <class T>
T gradient_descent(T start, T rate) {
  T x = start, before = start + 1.0;
  Index<T> n = 0;
  while (abs(x - before) > 1e-8) {
    before = x;
    x -= rate * (4.0 * x * x * x - 2.0 * x + 0.5);
    if (++n >= 30) break;
  }
  return x * x;
}
PROGRAM(gradient_descent, 2, {1.0, 0.05}, {-1.2, 0.02})

template <class T>
T conjugate_gradient(T a, T b) {
  std::array<T, 2> x{0.0, 0.0}, r{1.0, 2.0}, p = r;
  T rr = r[0] * r[0] + r[1] * r[1];
  for (int i = 0; i < 4; ++i) {
    if (rr < 1e-20) break;
    std::array<T, 2> q{(a + 2.0) * p[0] + b * p[1], b * p[0] + 3.0 * p[1]};
    T alpha = rr / (p[0] * q[0] + p[1] * q[1]);
    T next = 0.0;
    for (int k = 0; k < 2; ++k) {
      x[k] += alpha * p[k];
      r[k] -= alpha * q[k];
      next += r[k] * r[k];
    }
    T beta = next / rr;
    for (int k = 0; k < 2; ++k) p[k] = r[k] + beta * p[k];
    rr = next;
  }
  return x[0] - x[1];
}
PROGRAM(conjugate_gradient, 2, {1.0, 0.5}, {3.0, -1.0})

template <class T>
T viterbi(T a, T b) {
  std::array<T, 2> score{0.0, -1.0};
  const std::array<double, 4> seen{0.5, 1.5, -0.3, 0.9};
  for (double y : seen) {
    T stay0 = score[0] + a, move0 = score[1] + b, stay1 = score[1] + a, move1 = score[0] + b;
    T best0 = stay0 > move0 ? stay0 : move0, best1 = stay1 > move1 ? stay1 : move1;
    score = {best0 - y * y, best1 - (y - 1.0) * (y - 1.0)};
  }
  return score[0] > score[1] ? score[0] * a : score[1] * b;
}
PROGRAM(viterbi, 2, {-0.3, -1.4}, {-2.0, -0.2})

template <class T>
T black_scholes_with_barrier(T s, T v) {
  T best = s, price = s;
  for (int i = 0; i < 6; ++i) {
    price *= 1.0 + v * std::sin(1.7 * i);
    if (price > best) best = price;
    if (price < 0.6) return 0.1 * price;
  }
  return best - price;
}
PROGRAM(black_scholes_with_barrier, 2, {1.0, 0.2}, {0.7, 0.3})

template <class T>
T pid_controller(T gain, T target) {
  T x = 0.0, integral = 0.0, output = 0.0;
  for (Index<T> i = 0; i < 20; ++i) {
    T error = target - x;
    integral += 0.1 * error;
    if (integral > 1.0)
      integral = 1.0;
    else if (integral < -1.0)
      integral = -1.0;
    output = gain * error + 0.2 * integral;
    if (output > 2.0) output = 2.0;
    x += 0.1 * output;
  }
  return x;
}
PROGRAM(pid_controller, 2, {1.0, 1.0}, {2.3, 1.7})

template <class T>
T monte_carlo_walk(T drift) {
  Index<T> seed = 12345;
  T x = 0.0;
  for (Index<T> i = 0; i < 25; ++i) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    T u = number(seed) / 2147483648.0;
    if (u < 0.5)
      x = x + drift;
    else
      x = x - 0.5 * drift * u;
    if (x > 3.0) break;
  }
  return x;
}
PROGRAM(monte_carlo_walk, 1, {0.3}, {1.1})

template <class T>
T geodesic_shoot(T angle) {
  T x = 0.0, y = 0.0, vx = cos(angle), vy = sin(angle);
  Index<T> bounces = 0;
  for (Index<T> i = 0; i < 50; ++i) {
    x += 0.05 * vx, y += 0.05 * vy;
    vy -= 0.05;
    if (y < 0.0) {
      y = -y;
      vy = -0.8 * vy;
      if (++bounces == 2) return x;
    }
  }
  return x + y;
}
PROGRAM(geodesic_shoot, 1, {0.3}, {1.1})

template <class T>
T continued_fraction(T x) {
  // Lentz's method for tan(x).
  T f = 1e-30, c = f, d = 0.0;
  for (Index<T> i = 1; i < 40; ++i) {
    T a = i == 1 ? x : -x * x, b = number(2 * i - 1);
    d = b + a * d;
    if (d == 0.0) d = 1e-30;
    c = b + a / c;
    if (c == 0.0) c = 1e-30;
    d = 1.0 / d;
    T delta = c * d;
    f *= delta;
    if (abs(delta - 1.0) < 1e-15) break;
  }
  return f;
}
PROGRAM(continued_fraction, 1, {0.4}, {1.2})

template <class T>
T wavelet_threshold(T a, T cut) {
  std::array<T, 4> x{a, a * a, 1.0, -a};
  std::array<T, 4> w{(x[0] + x[1]) * 0.5, (x[2] + x[3]) * 0.5, (x[0] - x[1]) * 0.5, (x[2] - x[3]) * 0.5};
  for (std::size_t i = 2; i < 4; ++i) {
    if (w[i] > cut)
      w[i] -= cut;
    else if (w[i] < -cut)
      w[i] += cut;
    else
      w[i] = 0.0;
  }
  return w[0] * w[2] + w[1] * w[3];
}
PROGRAM(wavelet_threshold, 2, {1.7, 0.2}, {0.4, 0.5})

template <class T>
T simplex_projection(T a, T b, T c) {
  std::array<T, 3> v{a, b, c};
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2 - i; ++j)
      if (v[j] < v[j + 1]) std::swap(v[j], v[j + 1]);
  T sum = 0.0, theta = 0.0;
  for (int i = 0; i < 3; ++i) {
    sum += v[i];
    T t = (sum - 1.0) / (i + 1.0);
    if (v[i] - t <= 0.0) break;
    theta = t;
  }
  T d = a - theta;
  return d > 0.0 ? d * d : T(0.0);
}
PROGRAM(simplex_projection, 3, {0.9, 0.3, -0.5}, {0.1, 0.2, 0.25}, {0.3, 2.0, 0.1})
