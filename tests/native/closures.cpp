// Lambdas: by reference, by copy, mutable, nested, kept, given to templates; function objects.
#include <algorithm>
#include <numeric>

#include "program.hpp"

using namespace native_corpus;

template <class T>
T lambda_by_reference(T x) {
  T y = 1.0;
  const auto step = [&] {
    if (y < x)
      y *= 2.0;
    else
      y -= 0.25 * x;
  };
  for (Index<T> i = 0; i < 3; ++i) step();
  if (x > 1.0) step();
  return y * x;
}
PROGRAM(lambda_by_reference, 1, {0.4}, {1.3}, {3.7})

template <class T>
T lambda_by_copy(T x) {
  T y = x;
  const auto old = [=](const T& v) { return v + y; };
  const auto now = [&](const T& v) { return v + y; };
  if (x > 1.0) y *= x;
  for (Index<T> i = 0; i < 2; ++i) y += old(y) - 0.5 * now(1.0);
  return old(y) * now(x);
}
PROGRAM(lambda_by_copy, 1, {0.4}, {1.3})

template <class T>
T mutable_lambda(T x) {
  T y = x;
  auto next = [y]() mutable {
    if (y > 1.0)
      y *= 0.5;
    else
      y += 0.8;
    return y;
  };
  T sum = next();
  if (x > 0.5) sum += next();
  for (Index<T> i = 0; i < 3; ++i) sum += next() * y;
  return sum + next();
}
PROGRAM(mutable_lambda, 1, {0.33}, {1.3})

template <class T>
T copied_mutable_lambda(T x) {
  auto count = [n = T(0.0)](const T& v) mutable { return n += v > 1.0 ? v : 0.5 * v; };
  T a = count(x);
  auto other = count;
  if (x > 0.5) a += other(2.0 * x);
  a += count(x);
  return a * other(1.5);
}
PROGRAM(copied_mutable_lambda, 1, {0.4}, {0.7}, {1.3})

template <class T>
T initialised_capture(T x) {
  const auto f = [k = x * x, &y = x](const T& v) -> T {
    if (v > k) return v - k;
    y += v;
    return k * y;
  };
  T a = f(1.0);
  for (Index<T> i = 0; i < 2; ++i) a += f(a);
  return a * x;
}
PROGRAM(initialised_capture, 1, {0.4}, {1.3})

template <class T>
T nested_lambdas(T x, T y) {
  const auto outer = [&](const T& v) {
    const auto inner = [&, w = v * 2.0](const T& u) -> T {
      if (u > w) {
        y += u;
        return u;
      }
      while (x < 2.0) x += w * w + 0.1;
      return w;
    };
    T a = inner(x);
    return a + inner(y);
  };
  T r = outer(0.3);
  if (r > 1.0) r += outer(0.7);
  return r * x + y;
}
PROGRAM(nested_lambdas, 2, {0.4, 0.9}, {1.3, -0.2})

template <class T>
T lambda_from_lambda(T x) {
  const auto make = [](T k) {
    return [k](const T& v) -> T {
      if (v > k) return k;
      return v * v;
    };
  };
  const auto f = make(x), g = make(1.5);
  T a = f(0.9);
  T b = g(f(x * 2.0) + 1.0);
  return x > 1.0 ? a + b : a - b;
}
PROGRAM(lambda_from_lambda, 1, {0.4}, {1.3})

template <class T>
T kept_in_function(T x) {
  T y = 0.5;
  std::function<T(T)> f = [&](T v) -> T {
    if (v > 1.0) y += v;
    return y * v;
  };
  const std::function<void()> g = [&] { y = f(y) + x; };
  T a = f(x);
  for (Index<T> i = 0; i < 2; ++i) a += f(a);
  if (x > 0.7) g();
  return a + y;
}
PROGRAM(kept_in_function, 1, {0.4}, {1.3})

template <class T, class F, class G>
T composed(const F& f, const G& g, const T& x) {
  if (x > 1.0) return f(g(x));
  return g(f(x));
}
template <class T>
T lambdas_to_templates(T x) {
  T calls = 0.0;
  const auto f = [&](const T& v) { return calls += 1.0, v * 2.0; };
  const auto g = [&](const T& v) -> T { return v > 2.0 ? calls : v + 1.0; };
  T a = composed<T>(f, g, x);
  a += composed<T>(g, f, 0.8 * x);
  return a + calls * x;
}
PROGRAM(lambdas_to_templates, 1, {0.4}, {1.1}, {2.6})

template <class T>
T function_pointer_helper(const T& x) {
  if (x > 1.0) return x * x;
  return 2.0 * x;
}
template <class T>
T function_pointers(T x) {
  T (*f)(const T&) = &function_pointer_helper<T>;
  T a = f(x);
  const auto table = std::array<T (*)(const T&), 2>{f, [](const T& v) -> T { return v < 1.5 ? -v : v; }};
  for (const auto& g : table) a += g(a);
  return a;
}
PROGRAM(function_pointers, 1, {0.45}, {1.1}, {2.6})

template <class T>
struct Capturing {
  T total = 0.0;
  T run(T x) {
    const auto add = [this](const T& v) {
      if (v > 1.0) total += v;
    };
    const auto copy = [*this]() mutable { return total += 1.0; };
    add(x);
    auto own = copy;
    T a = own();
    add(2.0 * x);
    return a * total;
  }
};
template <class T>
T capture_this(T x) {
  Capturing<T> c;
  T a = c.run(x);
  if (a > 1.0) a += c.run(0.7);
  return a + c.total;
}
PROGRAM(capture_this, 1, {0.4}, {0.7}, {1.3})

template <class T>
T immediately_invoked(T x) {
  const T scale = [&]() -> T {
    for (Index<T> i = 0; i < 5; ++i)
      if (x + number(i) > 2.0) return number(i) + x;
    return 1.0;
  }();
  const T y = [](T v) {
    while (v > 1.0) v *= 0.5;
    return v;
  }(x * 3.0);
  return scale * y;
}
PROGRAM(immediately_invoked, 1, {0.4}, {1.3}, {2.6})

template <class T>
T lambda_that_breaks(T x) {
  const auto search = [&](T limit) -> T {
    T a = x;
    while (true) {
      for (Index<T> i = 0; i < 3; ++i) {
        a += 0.3;
        if (a > limit) return a * number(i + 1);
      }
      a *= 1.2;
    }
  };
  T r = search(2.0);
  if (r > 3.0) return r + search(5.0);
  return r - x;
}
PROGRAM(lambda_that_breaks, 1, {0.4}, {1.3}, {1.9})

template <class T>
T lambda_void_returns(T x) {
  T y = x;
  const auto adjust = [&](const T& v) -> void {
    if (v > 2.0) {
      y = v;
      return;
    }
    for (Index<T> i = 0; i < 3; ++i) {
      y += v;
      if (y > 2.5) return;
    }
    y *= 1.5;
  };
  adjust(x);
  adjust(0.5 * y);
  return y;
}
PROGRAM(lambda_void_returns, 1, {0.3}, {1.3}, {2.9})

template <class T>
T generic_lambdas(T x) {
  const auto larger = [](const auto& a, const auto& b) { return a > b ? a : b; };
  const auto apply = [&](auto f, auto... v) { return f(f(v...), x); };
  T y = apply(larger, x, T(1.5));
  const auto typed = []<class U>(const U& u) -> U {
    if (u > 2.0) return u * 0.5;
    return u;
  };
  return typed(y) + typed(x * x * x);
}
PROGRAM(generic_lambdas, 1, {0.4}, {1.3}, {2.6})

template <class T>
T self_parameter(T x) {
  const auto power = [](const auto& self, const T& v, int n) -> T {
    if (n == 0) return 1.0;
    T half = self(self, v, n / 2);
    return n % 2 == 0 ? half * half : half * half * v;
  };
  T y = power(power, x, 5);
  return y > 1.0 ? sqrt(y) : y;
}
PROGRAM(self_parameter, 1, {0.4}, {1.3})

template <class T>
T lambda_in_condition(T x) {
  T calls = 0.0;
  const auto small = [&](const T& v) {
    calls += 1.0;
    return v < 2.0;
  };
  while (small(x)) x += 0.7;
  if (small(0.5 * x) && small(x - 2.0)) x *= calls;
  return x + calls;
}
PROGRAM(lambda_in_condition, 1, {0.3}, {1.4}, {2.9}, {5.0})

template <class T>
T lambda_in_argument(T x) {
  const auto twice = [](const auto& f, const T& v) { return f(f(v)); };
  T sum = 0.0;
  T a = twice(
      [&](const T& v) -> T {
        if (v > sum) sum += v;
        return sum + v;
      },
      x);
  T b = twice([](const T& v) { return v > 1.0 ? v : -v; }, a - 2.0);
  return a * b + sum;
}
PROGRAM(lambda_in_argument, 1, {0.3}, {1.4}, {-0.6})

template <class T>
T standard_algorithms(T x) {
  std::array<T, 4> a{x, 1.0, x * x, -x};
  std::for_each(a.begin(), a.end(), [&](T& v) {
    if (v < 0.5) v += x;
  });
  std::transform(a.begin(), a.end(), a.begin(), [](const T& v) -> T { return v > 1.2 ? v * 0.5 : v * 3.0; });
  T sum = std::accumulate(a.begin(), a.end(), T(0.0), [](const T& s, const T& v) -> T {
    if (v > 1.0) return s + v;
    return s - v;
  });
  return sum + std::inner_product(a.begin(), a.end(), a.begin(), T(1.0));
}
PROGRAM(standard_algorithms, 1, {0.3}, {1.4}, {-0.6})

template <class T>
T bisection(const std::function<T(T)>& f, T lo, T hi) {
  for (Index<T> i = 0; i < 40; ++i) {
    T mid = 0.5 * (lo + hi);
    if (hi - lo < 1e-9) break;
    if (f(mid) > 0.0)
      hi = mid;
    else
      lo = mid;
  }
  return lo - f(lo) / 3.0;
}
template <class T>
T function_parameter(T x) {
  const T root = bisection<T>([](T v) -> T { return v < 0.0 ? v : v * v * v + v - 3.0; }, 0.0, 4.0);
  return root * x;
}
PROGRAM(function_parameter, 1, {0.3}, {1.4})

template <class T>
struct Adder {
  T& sum;
  template <class U>
  void operator()(const U& v) const {
    if (v > 0.5) sum += v;
  }
};
template <class T>
T function_object(T x) {
  T sum = 0.0;
  const Adder<T> add{sum};
  add(x);
  add(0.75);
  for (Index<T> i = 0; i < 3; ++i) add(x * number(i));
  return sum * x;
}
PROGRAM(function_object, 1, {0.3}, {0.4}, {1.4})

template <class T>
T array_of_lambdas(T x) {
  T y = 1.0;
  const std::function<void()> steps[] = {[&] { y += x; },
                                         [&] {
                                           if (y > 1.5) y *= 0.5;
                                         },
                                         [&] {
                                           while (y < 2.0) y += 0.7;
                                         }};
  for (const auto& s : steps) s();
  if (x > 1.0)
    for (const auto& s : steps) s();
  return y * x;
}
PROGRAM(array_of_lambdas, 1, {0.35}, {0.85}, {1.47})

template <class T>
T overloaded_call_helper(const T& x) {
  return x > 1.0 ? x : x * x;
}
template <class T>
T overloaded_call_helper(const T& x, const T& y) {
  if (x > y) return overloaded_call_helper(x);
  return overloaded_call_helper(y) + x;
}
template <class T>
T overloaded_call_helper(const T& x, const Index<T>& n) {
  T r = x;
  for (Index<T> i = 0; i < n; ++i) r = overloaded_call_helper(r, x + 0.1);
  return r;
}
template <class T>
T overloaded_calls(T x) {
  T a = overloaded_call_helper(x);
  a += overloaded_call_helper(x, T(0.9));
  return a + overloaded_call_helper(x, Index<T>(2));
}
PROGRAM(overloaded_calls, 1, {0.3}, {0.8}, {1.4})
