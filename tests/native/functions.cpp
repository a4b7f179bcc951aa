// Recursion, members, overloads, lambdas, references, structs and containers.
#include <tuple>

#include "program.hpp"

using namespace native_corpus;

template <class T>
T power(T x, Index<T> n) {
  if (n == 0) return 1.0;
  return x * power(x, n - 1);
}
template <class T>
T power_of(T x) {
  return power(x, Index<T>(5));
}
PROGRAM(power_of, 1, {1.3}, {-0.5})
COMBINATOR(power_of, 1, [](Rep<double> x) {
  const auto f =
      FUN<double(double, std::int64_t)>("power", [](auto self, Rep<double> a, Rep<std::int64_t> n) {
        return IF(
            n == 0, [&] { return Rep<double>(1.0); }, [&] { return a * self(a, n - 1); });
      });
  return f(x, Rep<std::int64_t>(5));
})

template <class T>
T fibonacci(T x, Index<T> n) {
  if (n < 2) return x * number(n);
  return fibonacci(x, n - 1) + fibonacci(x, n - 2);
}
template <class T>
T fibonacci_of(T x) {
  return fibonacci(x, Index<T>(9));
}
PROGRAM(fibonacci_of, 1, {1.3})

template <class T>
T odd(T x, Index<T> n);
template <class T>
T even(T x, Index<T> n) {
  if (n == 0) return x;
  return odd(x * 1.5, n - 1);
}
template <class T>
T odd(T x, Index<T> n) {
  if (n == 0) return -x;
  return even(x + 1.0, n - 1);
}
template <class T>
T mutual(T x) {
  return even(x, Index<T>(6)) * odd(x, Index<T>(4));
}
PROGRAM(mutual, 1, {1.3}, {-0.2})

template <class T>
T ackermann(T m, T n) {
  if (m < 0.5) return n + 1.0;
  if (n < 0.5) return ackermann(m - 1.0, T(1.0));
  return ackermann(m - 1.0, ackermann(m, n - 1.0));
}
template <class T>
T ackermann_of(T x) {
  return ackermann(T(2.0), T(2.0)) * x + x * x;
}
PROGRAM(ackermann_of, 1, {1.5})

template <class T>
T mccarthy(T n) {
  if (n > 100.0) return n - 10.0;
  return mccarthy(mccarthy(n + 11.0));
}
PROGRAM(mccarthy, 1, {110.5}, {95.25})

template <class T>
T simpson_step(T a, T b, T fa, T fm, T fb, T whole, double tolerance, int depth) {
  T m = 0.5 * (a + b), lm = 0.5 * (a + m), rm = 0.5 * (m + b);
  T flm = exp(-lm * lm), frm = exp(-rm * rm);
  T left = (m - a) / 6.0 * (fa + 4.0 * flm + fm), right = (b - m) / 6.0 * (fm + 4.0 * frm + fb);
  T delta = left + right - whole;
  if (depth <= 0 || abs(delta) < 15.0 * tolerance) return left + right + delta / 15.0;
  return simpson_step(a, m, fa, flm, fm, left, 0.5 * tolerance, depth - 1) +
         simpson_step(m, b, fm, frm, fb, right, 0.5 * tolerance, depth - 1);
}
template <class T>
T adaptive_simpson(T b) {
  T a = 0.0, m = 0.5 * b;
  T fa = exp(-a * a), fm = exp(-m * m), fb = exp(-b * b);
  return simpson_step(a, b, fa, fm, fb, (b - a) / 6.0 * (fa + 4.0 * fm + fb), 1e-7, 6);
}
PROGRAM(adaptive_simpson, 1, {1.0}, {2.5})

template <class T>
struct Pair {
  T first, second;
};
template <class T>
Pair<T> rotate(Pair<T> p, Index<T> n) {
  if (n == 0) return p;
  Pair<T> q{p.second, p.first * 0.5};
  return rotate(q, n - 1);
}
template <class T>
T recursive_struct(T x, T y) {
  Pair<T> p = rotate(Pair<T>{x, y}, Index<T>(5));
  return p.first - 2.0 * p.second;
}
PROGRAM(recursive_struct, 2, {1.0, 2.0})

template <class T>
T struct_fields(T x, T y) {
  Pair<T> p{x, y};
  if (x > y) {
    p.first = y * y;
  } else {
    p.second += x;
    p.first *= 2.0;
  }
  while (p.first > 1.0) p.first -= 0.75;
  return p.first * p.second;
}
PROGRAM(struct_fields, 2, {1.1, 2.0}, {3.0, 2.1})

template <class T>
T array_elements(T x) {
  std::array<T, 3> a{x, x * x, 1.0};
  for (int i = 0; i < 3; ++i) {
    if (a[i] > 1.5)
      a[i] = a[i] * 0.5;
    else
      a[(i + 1) % 3] += 0.25;
  }
  return a[0] + 2.0 * a[1] - a[2];
}
PROGRAM(array_elements, 1, {1.2}, {2.0}, {-3.0})

template <class T>
T vector_elements(T x) {
  std::vector<T> v(4, x);
  for (std::size_t i = 1; i < v.size(); ++i) {
    v[i] = v[i - 1] * 0.9;
    if (v[i] < 1.0) v[i] += x * x;
  }
  T s = 0.0;
  for (const auto& e : v) s += e;
  return s;
}
PROGRAM(vector_elements, 1, {1.2}, {0.4})

template <class T>
T c_array(T x) {
  T a[3] = {x, 2.0 * x, 0.0};
  Index<T> n = 0;
  while (a[0] < 5.0) {
    a[2] = a[0];
    a[0] = a[1];
    a[1] = a[2] + a[1];
    n += 1;
  }
  return a[1] * number(n);
}
PROGRAM(c_array, 1, {1.2}, {0.4})

template <class T>
T tuple_swap(T x, T y) {
  std::tuple<T, T> t{x, y};
  if (x > y) t = std::tuple<T, T>{y, x};
  auto [lo, hi] = t;
  if (hi > 3.0) hi = 3.0 + 0.5 * lo;
  return hi - lo;
}
PROGRAM(tuple_swap, 2, {1.0, 2.0}, {5.0, 2.0})

template <class T>
T tie_swap(T x, T y) {
  if (x > y) std::tie(x, y) = std::tuple<T, T>(y, x);
  if (x < 0.0) std::swap(x, y);
  return x - 3.0 * y;
}
PROGRAM(tie_swap, 2, {1.0, 2.0}, {5.0, 2.0}, {-5.0, 2.0})

template <class T>
T reference_to_local(T x, T y) {
  T& r = x;
  if (y > 1.0) r = r * y;
  auto& s = y;
  for (Index<T> i = 0; i < 3; ++i) s += r;
  return x + y * y;
}
PROGRAM(reference_to_local, 2, {1.0, 2.0}, {5.0, -2.0})

template <class T>
void accumulate(T& total, T v) {
  if (v > 0.0)
    total += v;
  else
    total -= 0.5 * v;
}
template <class T>
T reference_parameter(T x, T y) {
  T total = 0.0;
  accumulate(total, x);
  accumulate(total, y);
  if (total > 2.0) accumulate(total, x * y);
  return total;
}
PROGRAM(reference_parameter, 2, {1.0, 2.0}, {5.0, -2.0}, {-0.5, -0.25})

template <class T>
bool is_staged() {
  return !std::is_same_v<T, double>;
}
template <class T>
T host_function_in_condition(T x) {
  if (is_staged<T>() || !is_staged<T>()) {
    if (x > 1.0) return x;
  }
  return x * x;
}
PROGRAM(host_function_in_condition, 1, {0.5}, {1.5})

template <class T>
T smaller(T a, T b) {
  return a < b ? a : b;
}
template <class T>
T smaller(T a, T b, T c) {
  return smaller(smaller(a, b), c);
}
template <class T>
T overloads(T x, T y) {
  return smaller(x, y, x * y) + smaller(x, 2.0 * y);
}
PROGRAM(overloads, 2, {1.0, 2.0}, {5.0, 0.5})

template <class T>
T lambda_with_returns(T x, T y) {
  const auto relu = [](T v) {
    if (v > 0.0) return v;
    return 0.01 * v;
  };
  const auto scaled = [&](T v) -> T {
    for (Index<T> i = 0; i < 10; ++i) {
      if (v > 4.0) return v * y;
      v = v * 1.5 + 0.1;
    }
    return v;
  };
  return relu(x) + scaled(relu(y));
}
PROGRAM(lambda_with_returns, 2, {1.0, 2.0}, {-5.0, 0.5}, {0.3, -2.0})

template <class T>
T lambda_that_assigns(T x, T y) {
  T count = 0.0;
  auto bump = [&](T by) { count += by; };
  for (Index<T> i = 0; i < 4; ++i) {
    if (x > y) bump(x);
    y += 0.5;
  }
  return count * y;
}
PROGRAM(lambda_that_assigns, 2, {1.0, 2.0}, {3.25, 2.0})

template <class T>
T generic_lambda(T x) {
  const auto step = [](auto v, auto w) {
    if (v > w) return v - w;
    return w * v;
  };
  return step(x, T(1.5)) + step(x * x, x);
}
PROGRAM(generic_lambda, 1, {1.1}, {2.5})

template <class T, class F>
T iterate(F f, T x, int n) {
  for (int i = 0; i < n; ++i) x = f(x);
  return x;
}
template <class T>
T function_argument(T x) {
  return iterate([](T v) -> T { return v > 2.0 ? v * 0.5 : v + 0.75; }, x, 5);
}
PROGRAM(function_argument, 1, {1.1}, {2.6})

template <class T>
struct Accumulator {
  T sum = 0.0, largest = 0.0;
  void add(T v) {
    sum += v;
    if (v > largest) largest = v;
  }
  T mean_or(T other) const {
    if (largest > 2.0) return sum / 3.0;
    return other;
  }
};
template <class T>
T member_functions(T x, T y) {
  Accumulator<T> a;
  a.add(x);
  a.add(y);
  if (x > y) a.add(x * y);
  return a.mean_or(y) + a.largest;
}
PROGRAM(member_functions, 2, {1.0, 2.5}, {3.0, 0.5}, {0.5, 0.25})

template <class T>
struct Decay {
  T rate;
  T operator()(T x) const {
    T y = x;
    while (y > 0.5) y = y * rate;
    return y;
  }
};
template <class T>
T call_operator(T x) {
  Decay<T> d{0.7};
  return d(x) + d(2.0 * x);
}
PROGRAM(call_operator, 1, {1.0}, {2.6})

template <class T>
struct Complex {
  T re, im;
  friend Complex operator*(const Complex& a, const Complex& b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
};
template <class T>
T julia(T x, T y) {
  Complex<T> z{x, y}, c{-0.4, 0.6};
  Index<T> n = 0;
  for (; n < 25; ++n) {
    z = z * z + c;
    if (z.re * z.re + z.im * z.im > 4.0) return z.re + number(n);
  }
  return z.im;
}
PROGRAM(julia, 2, {0.1, 0.2}, {1.0, 0.8})

template <class T>
auto deduced_result(T x) {
  if (x > 1.0) return x * 2.0;
  return x - 1.0;
}
template <class T>
T call_deduced(T x) {
  return deduced_result(x) * deduced_result(-1.0 * x);
}
PROGRAM(call_deduced, 1, {0.3}, {2.3})

template <class T>
T host_recursion(const std::array<double, 4>& c, std::size_t i, T x) {
  if (i == c.size()) return 0.0;
  return c[i] + x * host_recursion(c, i + 1, x);
}
template <class T>
T horner(T x) {
  T y = host_recursion<T>({1.0, -2.0, 0.5, 0.25}, 0, x);
  return y > 0.0 ? y : y * y;
}
PROGRAM(horner, 1, {0.3}, {2.3}, {-4.0})

template <class T>
Pair<T> sort_pair(T a, T b) {
  if (a > b) return {b, a};
  return {a, b};
}
template <class T>
T braces_returned(T x, T y) {
  auto [lo, hi] = sort_pair(x, y);
  return lo * 3.0 - hi;
}
PROGRAM(braces_returned, 2, {0.3, 0.5}, {2.3, 1.0})

template <class T>
Pair<T> first_above(T x, T step) {
  for (Index<T> i = 0; i < 20; ++i) {
    if (x > 2.0) return {x, number(i) * x};
    x += step;
  }
  return {0.0, 0.0};
}
template <class T>
T struct_from_loop(T x, T y) {
  Pair<T> p = first_above(x, y);
  return p.first * 2.0 + p.second;
}
PROGRAM(struct_from_loop, 2, {0.3, 0.55}, {0.1, 0.01})

template <class T>
void clamp_in_place(T& x) {
  if (x > 2.0) {
    x = 2.0;
    return;
  }
  if (x < -2.0) {
    x = -2.0;
    return;
  }
  x = x * 1.5;
}
template <class T>
T void_returns(T x, T y) {
  clamp_in_place(x);
  clamp_in_place(y);
  return x * y;
}
PROGRAM(void_returns, 2, {0.3, 0.55}, {3.0, -1.0}, {-5.0, 1.0})

template <class T>
void grow(T& x) {
  while (x < 5.0) {
    x = x * 1.3;
    if (x > 3.0 && x < 4.0) return;
  }
  x += 1.0;
}
template <class T>
T void_return_from_loop(T x) {
  grow(x);
  return x * x;
}
PROGRAM(void_return_from_loop, 1, {0.3}, {1.0}, {3.5}, {9.0})
