// Root finding and fixed points: loops that stop early.
#include "program.hpp"

using namespace native_corpus;

template <class T>
T newton_sqrt(T a) {
  T x = a;
  for (Index<T> i = 0; i < 60; ++i) {
    T next = 0.5 * (x + a / x);
    if (abs(next - x) < 1e-13 * x) return next;
    x = next;
  }
  return x;
}
PROGRAM(newton_sqrt, 1, {2.0}, {0.3}, {9.0})

template <class T>
T newton_cube_root(T a) {
  T x = a > 1.0 ? a : T(1.0);
  while (true) {
    T step = (x * x * x - a) / (3.0 * x * x);
    x -= step;
    if (abs(step) < 1e-12) break;
  }
  return x;
}
PROGRAM(newton_cube_root, 1, {8.0}, {0.5}, {27.5})

template <class T>
T bisection(T target) {
  T lo = 0.0, hi = 4.0;
  while (hi - lo > 1e-9) {
    T mid = 0.5 * (lo + hi);
    if (mid * mid * mid + mid < target)
      lo = mid;
    else
      hi = mid;
  }
  // One Newton step, so that the answer has a slope.
  T x = 0.5 * (lo + hi);
  return x - (x * x * x + x - target) / (3.0 * x * x + 1.0);
}
PROGRAM(bisection, 1, {2.0}, {10.0}, {30.3})

template <class T>
T bisection_early(T target) {
  T lo = 0.0, hi = 4.0;
  for (Index<T> i = 0; i < 100; i++) {
    T mid = 0.5 * (lo + hi), f = mid * mid - target;
    if (abs(f) < 1e-3) return mid - f / (2.0 * mid);
    if (f < 0.0) {
      lo = mid;
      continue;
    }
    hi = mid;
  }
  return -1.0;
}
PROGRAM(bisection_early, 1, {2.0}, {11.0}, {5.3})

template <class T>
T secant(T c) {
  T a = 1.0, b = 2.0;
  T fa = a * a - c, fb = b * b - c;
  Index<T> steps = 0;
  while (abs(fb) > 1e-10 && steps < 50) {
    T next = b - fb * (b - a) / (fb - fa);
    a = b, fa = fb;
    b = next;
    fb = b * b - c;
    ++steps;
  }
  return b;
}
PROGRAM(secant, 1, {3.0}, {7.7}, {0.9})

template <class T>
T fixed_point_cos(T x) {
  T before;
  do {
    before = x;
    x = cos(x) * 0.9 + 0.1 * x;
  } while (abs(x - before) > 1e-12);
  return x;
}
PROGRAM(fixed_point_cos, 1, {0.2}, {1.4})

template <class T>
T lambert_w(T z) {
  T w = z < 1.0 ? z * 0.5 : log(z);
  Index<T> n = 0;
  do {
    T e = exp(w), f = w * e - z;
    if (abs(f) < 1e-13) break;
    w -= f / (e * (w + 1.0));
  } while (++n < 40);
  return w;
}
PROGRAM(lambert_w, 1, {0.3}, {2.5}, {20.0})

template <class T>
T regula_falsi(T c) {
  T a = 0.0, b = 3.0, fa = -c, fb = b * b * b - c, x = a;
  for (int i = 0; i < 12; ++i) {
    x = (a * fb - b * fa) / (fb - fa);
    T fx = x * x * x - c;
    if (fx * fb > 0.0) {
      b = x, fb = fx;
      fa *= 0.5;
    } else {
      a = x, fa = fx;
      fb *= 0.5;
    }
  }
  return x;
}
PROGRAM(regula_falsi, 1, {2.0}, {8.5}, {20.0})

template <class T>
T kepler(T mean, T eccentricity) {
  T e = mean;
  int tries = 0;
  while (tries < 20) {
    T f = e - eccentricity * sin(e) - mean;
    e -= f / (1.0 - eccentricity * cos(e));
    ++tries;
  }
  return e;
}
PROGRAM(kepler, 2, {0.7, 0.3}, {2.0, 0.8})

template <class T>
T halley_or_give_up(T a, T start) {
  T x = start;
  Truth<T> found = false;
  for (Index<T> i = 0; i < 30 && !found; ++i) {
    T f = x * x - a;
    if (abs(f) < 1e-12)
      found = true;
    else
      x -= 2.0 * f * x / (3.0 * x * x + a);
  }
  if (!found) return a * 0.25;
  return x;
}
PROGRAM(halley_or_give_up, 2, {2.0, 1.0}, {5.0, 9.0})

template <class T>
T collatz_scaled(T x) {
  Index<T> n = 7, steps = 0;
  while (n != 1) {
    if (n % 2 == 0)
      n = n / 2;
    else
      n = 3 * n + 1;
    steps++;
    x = x * 1.01;
  }
  return x + number(steps);
}
PROGRAM(collatz_scaled, 1, {1.0}, {-2.5})

template <class T>
T halve(T x) {
  while (x > 1.0) x = x * 0.5;
  return x;
}
PROGRAM(halve, 1, {10.0}, {0.5}, {3.3})
COMBINATOR(halve, 1, [](Rep<double> x) {
  return WHILE(
      x, [](Rep<double> t) { return t > 1.0; }, [](Rep<double> t) { return t * 0.5; });
})

template <class T>
T power_sum(T x) {
  T s = 0.0, p = 1.0;
  for (Index<T> i = 0; i < 10; ++i) {
    p = p * x;
    s = s + p;
  }
  return s;
}
PROGRAM(power_sum, 1, {0.5}, {-1.1})
COMBINATOR(power_sum, 1, [](Rep<double> x) {
  return std::get<0>(FOR(0, 10, std::tuple(Rep<double>(0.0), Rep<double>(1.0)),
                         [&](Rep<std::int64_t>, Rep<double> s, Rep<double> p) {
                           Rep<double> q = p * x;
                           return std::tuple(s + q, q);
                         }));
})

template <class T>
T two_variables(T x) {
  T a = x, b = 1.0;
  while (a * a > 2.0) {
    b = b + a;
    a = a * 0.75;
  }
  return a * b;
}
PROGRAM(two_variables, 1, {10.0}, {0.5}, {3.3})
COMBINATOR(two_variables, 1, [](Rep<double> x) {
  auto [a, b] = WHILE(
      std::tuple(x, Rep<double>(1.0)), [](Rep<double> p, Rep<double>) { return p * p > 2.0; },
      [](Rep<double> p, Rep<double> q) {
        Rep<double> n = q + p;
        return std::tuple(p * 0.75, n);
      });
  return a * b;
})
