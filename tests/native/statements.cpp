// Each statement of C++: names that hide others, chains, switches, jumps out of loops, operators that assign.
#include "program.hpp"

using namespace native_corpus;

template <class T>
T chain_of_initialisers(T x, T y) {
  if (T d = x - y; d > 1.0) {
    return d;
  } else if (T x = d * 2.0; x > 0.5) {
    y = x * d;
  } else if (T d = x + 1.0, e = d * y; d > e) {
    x = d - e;
    y += x;
  } else {
    y -= d;
  }
  return x * y;
}
PROGRAM(chain_of_initialisers, 2, {3.0, 1.0}, {1.7, 1.0}, {0.45, 0.9}, {0.4, 7.0}, {-2.5, -3.0})

template <class T>
T shadows_in_blocks(T x) {
  T y = x;
  {
    T y = 2.0 * x;
    if (y > 1.0) {
      T x = y * y;
      y = x + 1.0;
      {
        T y = x;
        x = y * 0.5;
      }
      y -= x;
    }
    x = y;
  }
  for (Index<T> y = 0; y < 2; ++y) {
    T x = number(y);
    if (x > 0.5) x = 3.0;
  }
  return x + 10.0 * y;
}
PROGRAM(shadows_in_blocks, 1, {0.4}, {1.3})

template <class T>
T shadowed_counters(T x) {
  T sum = 0.0;
  for (Index<T> i = 0; i < 3; ++i) {
    for (Index<T> i = 5; i > 2; --i) {
      if (x * number(i) > 4.0) continue;
      sum += number(i);
    }
    if (i > 1) break;
    sum += x * number(i);
  }
  return sum * x;
}
PROGRAM(shadowed_counters, 1, {0.4}, {0.9}, {1.3})

template <class T>
T switch_with_initialiser(T x) {
  T r = 1.0;
  switch (Index<T> k = integer(x * 2.0); k % 3) {
    case 0:
      r = x;
      [[fallthrough]];
    case 1:
      r += number(k);
      break;
    case 2: {
      T y = x * x;
      if (y > 2.0) return y;
      r = y;
    }
  }
  return r * x;
}
PROGRAM(switch_with_initialiser, 1, {0.2}, {0.7}, {1.2}, {2.6}, {1.8})

template <class T>
T switch_default_falls(T x) {
  T r = x;
  switch (integer(x)) {
    default:
      r *= 2.0;
    case 0:
      r += 1.0;
    case 1:
      r *= x;
      break;
    case 2:
      break;
    case 3:
      return -r;
  }
  return r;
}
PROGRAM(switch_default_falls, 1, {0.2}, {1.7}, {2.2}, {3.6}, {4.8}, {-1.5})

template <class T>
T switch_returns_everywhere(T x) {
  switch (integer(x)) {
    case 0:
    case 1:
      return x * x;
    case -1:
      if (x < -1.5) return 1.0;
      return -x;
    default:
      while (x > 4.0) x -= 1.5;
      return x + 0.5;
  }
}
PROGRAM(switch_returns_everywhere, 1, {0.2}, {1.7}, {-1.2}, {-1.6}, {7.8})

template <class T>
T switch_in_loop(T x) {
  T r = 0.0;
  for (Index<T> i = 0; i < 7; ++i) {
    switch (i % 4) {
      case 0:
        if (x > 1.0) break;
        r += 1.0;
        continue;
      case 1:
        r += x;
        break;
      case 2:
        if (r > 2.5) return r * x;
      default:
        r *= 1.3;
    }
    r += 0.1;
  }
  return r;
}
PROGRAM(switch_in_loop, 1, {0.2}, {0.7}, {1.2}, {2.6})

template <class T>
T loop_in_switch(T x) {
  T r = x;
  switch (integer(x)) {
    case 0:
      for (Index<T> i = 0; i < 5; ++i) {
        if (r > 1.0) break;
        r += 0.3;
      }
      break;
    case 1:
      do {
        r += 0.8;
        if (r > 3.0) continue;
        r *= 1.1;
      } while (r < 4.0);
      [[fallthrough]];
    default:
      while (r > 2.0) {
        r -= 0.7;
        if (r < 2.3) return -r;
      }
  }
  return r;
}
PROGRAM(loop_in_switch, 1, {0.2}, {0.95}, {1.25}, {5.7}, {-0.5})

template <class T>
T switch_in_switch(T x) {
  T r = 0.5;
  switch (integer(x)) {
    case 0:
      switch (integer(x * 10.0) % 3) {
        case 0:
          r = x;
          break;
        case 1:
          return 2.0 * x;
        default:
          r = x * x;
      }
      r += 1.0;
      break;
    case 1:
      switch (integer(x * 4.0)) {
        case 4:
          r += x;
        case 5:
          r *= x;
      }
  }
  return r;
}
PROGRAM(switch_in_switch, 1, {0.05}, {0.15}, {0.25}, {1.1}, {1.3}, {1.6}, {3.0})

template <class T>
T jumps_in_for(T x) {
  T a = 0.0;
  for (Index<T> i = 0; i < 8; ++i) {
    if (i == 1) continue;
    a += x;
    if (a > 6.0) break;
    if (a < 0.0) {
      a = -a;
      continue;
    }
    if (a > 3.0 && i > 4) return a * number(i);
    a += 0.1 * number(i);
  }
  return a * x;
}
PROGRAM(jumps_in_for, 1, {0.2}, {0.57}, {1.3}, {-0.4})

template <class T>
T jumps_in_while(T x) {
  Index<T> n = 0;
  while (x < 10.0) {
    ++n;
    if (n > 6) break;
    if (x < 1.0) {
      x += 0.9;
      continue;
    }
    x *= 1.5;
    if (x > 7.0) return x - number(n);
  }
  return x * number(n);
}
PROGRAM(jumps_in_while, 1, {0.2}, {0.57}, {1.3}, {-4.4}, {9.0}, {12.0})

template <class T>
T jumps_in_do(T x) {
  Index<T> n = 0;
  do {
    if (++n > 5) break;
    x += 0.4;
    if (x < 1.0) continue;
    if (x > 3.0) return x * x;
    x *= 1.2;
  } while (x < 2.5 || n < 3);
  return x + number(n);
}
PROGRAM(jumps_in_do, 1, {0.23}, {0.57}, {1.3}, {-4.4}, {2.9})

template <class T>
T endless_for(T x) {
  for (;;) {
    x += 0.3;
    if (x < 1.0) continue;
    if (x > 5.0) return x;
    x *= 1.1;
    if (x > 3.0 && x < 4.0) break;
  }
  return x * x;
}
PROGRAM(endless_for, 1, {0.2}, {3.9}, {6.0})

template <class T>
T for_without_parts(T x) {
  Index<T> i = 3;
  for (; i > 0;) {
    x += number(i);
    i -= 1;
  }
  for (T y = x;; y *= 0.5)
    if (y < 1.0) return y * x;
}
PROGRAM(for_without_parts, 1, {0.2}, {1.9})

template <class T>
T step_sees_continue(T x) {
  T sum = 0.0;
  for (Index<T> i = 0, k = 1; i < 6; ++i, k *= 2, x += 0.01) {
    if (x * number(k) > 3.0) continue;
    sum += number(k);
    if (i == 4) break;
  }
  return sum * x;
}
PROGRAM(step_sees_continue, 1, {0.2}, {0.53}, {1.9})

template <class T>
T number_counters(T x) {
  T sum = 0.0;
  for (T t = 0.25; t < x; t += 0.5) sum += t * x;
  for (T t = x; t > 0.3; t *= 0.5)
    for (T u = 0.1; u < t; u *= 2.0) sum += u;
  return sum + x;
}
PROGRAM(number_counters, 1, {0.2}, {0.57}, {1.9})

template <class T>
T ternary_arguments_helper(const T& a, const T& b, const T& c) {
  return a * 4.0 + b * 2.0 + c;
}
template <class T>
T ternary_arguments(T x, T y) {
  T r = ternary_arguments_helper<T>(
      x > y ? x : y, x > 0.0 ? y < 0.0 ? x : T(1.0) : y,
      ternary_arguments_helper<T>(y > 1.0 ? x * y : 0.0, x, T(y > x ? 2.0 : 3.0)));
  return r + (x > 1.0 ? 1.0 : -1.0) * (y > 1.0 ? x : y);
}
PROGRAM(ternary_arguments, 2, {0.4, 0.7}, {1.4, -0.7}, {-0.4, 1.7}, {2.0, 3.0})

template <class T>
T ternary_with_calls(T x) {
  T calls = 0.0;
  const auto f = [&](T v) -> T {
    calls += 1.0;
    return v * calls;
  };
  T a = x > 1.0 ? f(x) + 1.0 : f(f(x));
  a = a > 2.0 ? a : x > 0.5 ? f(a) : a * 2.0;
  return a + calls;
}
PROGRAM(ternary_with_calls, 1, {0.2}, {0.57}, {1.9}, {1.1})

template <class T>
T logic_with_effects(T x) {
  T n = 0.0;
  const auto above = [&](T limit) {
    n += 1.0;
    return x > limit;
  };
  if ((above(1.0) && above(2.0)) || above(0.5)) x *= 2.0;
  Truth<T> t = above(3.0) || (above(0.25) && !above(1.5));
  if (!t && n > 4.0) x += 1.0;
  return t ? x * n : x + n;
}
PROGRAM(logic_with_effects, 1, {0.2}, {0.4}, {0.57}, {1.3}, {1.9}, {2.4})

template <class T>
T stored_truths(T x, T y) {
  Truth<T> a = x > 1.0, b = y > 1.0, c = false;
  if (a) c = b;
  if (b || !a) b = !c;
  c = a && b;
  for (Index<T> i = 0; i < 3 && !c; ++i) {
    x += 0.5;
    c = x > 1.7 || b;
  }
  if (a != b) x *= y;
  return c ? x + y : x;
}
PROGRAM(stored_truths, 2, {0.4, 0.7}, {1.4, -0.7}, {0.4, 1.7}, {2.0, 3.0})

template <class T>
T commas(T x) {
  T a = 1.0, b = (a = x, a * 2.0);
  for (Index<T> i = 0, j = 3; i < j; ++i, --j) a += b, b *= 0.5;
  if ((a += 1.0, a > 3.0)) a -= x, b += a;
  while (b *= 1.5, b < 2.0) a += b;
  return (b -= 0.5, a * b);
}
PROGRAM(commas, 1, {0.2}, {0.57}, {1.9})

template <class T>
T assignments_as_values(T x) {
  T a, b, c;
  a = b = c = x;
  if ((a += 1.0) > 2.0) b = (c *= 2.0) + 1.0;
  while ((c -= 0.4) > 0.5) a += c;
  T d = (a > b ? (b = a) : (a = b)) * 2.0;
  return a + b * c + d;
}
PROGRAM(assignments_as_values, 1, {0.27}, {0.57}, {1.47}, {1.9})

template <class T>
T increments_in_order(T x) {
  Index<T> i = 0, j = 5;
  T y = x;
  Index<T> k = i++;
  k += ++i;
  T a = number(k) + number(j--);
  if (x > 1.0) a += number(--j) * y++;
  while (j-- > 1) ++y;
  a += --y;
  i += 3;
  i %= 3;
  i *= 2;
  i -= j;
  return a * y + number(i);
}
PROGRAM(increments_in_order, 1, {0.2}, {1.9})

template <class T>
T compound_on_elements(T x) {
  std::array<T, 3> a{x, 1.0, 2.0};
  std::array<Index<T>, 2> n{0, 1};
  a[0] += a[1];
  if (x > 1.0) {
    a[1] *= x;
    ++n[0];
    n[1] += 4;
  } else {
    a[2] /= 1.0 + x;
    n[1]--;
  }
  for (std::size_t i = 0; i < 2; ++i) a[i] -= a[i + 1] * number(n[i]);
  n[0] = n[1] % 3;
  if (n[0] == 2) a[0]++;
  return a[0] * a[1] + a[2] * number(n[0]);
}
PROGRAM(compound_on_elements, 1, {0.2}, {1.9})

template <class T>
T nested_ifs_without_braces(T x, T y) {
  if (x > 0.0)
    if (y > 0.0)
      x += y;
    else if (y > -1.0)
      for (Index<T> i = 0; i < 3; ++i)
        if (x > 1.0)
          x -= 0.4;
        else
          y += 0.2;
    else
      x = y;
  else
    while (y < 1.0)
      if (y < 0.0)
        y = -y;
      else
        y += 0.3;
  return x * y;
}
PROGRAM(nested_ifs_without_braces, 2, {0.4, 0.7}, {1.43, -0.7}, {0.4, -1.7}, {-2.0, -0.25})

template <class T>
T conditions_of_numbers(T x) {
  Index<T> n = integer(x);
  T r = 1.0;
  if (n) r += x;
  while (n) {
    r *= 1.5;
    n -= 1;
  }
  if (!n && x) r += 0.5;
  return r ? r * x : x;
}
PROGRAM(conditions_of_numbers, 1, {0.2}, {1.9}, {3.4})

template <class T>
T plain_around_staged(T x) {
  T sum = 0.0;
  for (int i = 0; i < 4; ++i) {
    if (i == 2) continue;
    for (Index<T> j = 0; j < 3; ++j) {
      if (x * i > 1.5) break;
      sum += x + i;
    }
    if (i % 2 == 1 && sum > 4.0) sum -= 1.0;
  }
  return sum * x;
}
PROGRAM(plain_around_staged, 1, {0.2}, {0.6}, {1.9})

template <class T>
T plain_inside_staged(T x) {
  T sum = 0.0;
  for (Index<T> j = 0; j < 3; ++j) {
    int weight = 1;
    for (int i = 0; i < 3; ++i) {
      weight += i;
      if (i == 2) break;
      sum += x * weight;
    }
    if (sum > 2.0) {
      const double k = 0.5 * weight;
      sum -= k * x;
    }
  }
  return sum * x;
}
PROGRAM(plain_inside_staged, 1, {0.2}, {0.6}, {1.9})

template <class T>
T returns_in_nested_blocks(T x) {
  {
    {
      if (x > 3.0) return x;
      x += 0.25;
    }
    if (x < 0.0) {
      {
        x = -x;
        if (x > 1.0) return x * x;
      }
    }
  }
  return 2.0 * x;
}
PROGRAM(returns_in_nested_blocks, 1, {3.2}, {0.6}, {-0.9}, {-1.9})

template <class T>
T statement_labels_of_macros(T x) {
#define ONE 1.0
#define TWICE(v) (2.0 * (v))
  if (x > ONE) return TWICE(x);
  while (x < TWICE(ONE)) x += ONE;
  return x;
#undef ONE
#undef TWICE
}
PROGRAM(statement_labels_of_macros, 1, {0.2}, {1.9})

template <class T>
T several_statements_of_a_macro(T x) {
#define TYPES     \
  using Number = T; \
  constexpr int most = 3;
#define PAIR(a, b) T a = x + 0.25, b = x * 2.0; a = a * b
#define ADDED(s, v) s += v; s *= 0.5
  TYPES
  Number s = 0.0;
  PAIR(u, v);
  if (x > 1.0) {
    ADDED(s, u);
  }
  for (int i = 0; i < most; ++i) {
    ADDED(s, x); ADDED(s, u)
    ;
    if (s > 2.0) s -= v;
  }
  if (s > 0.5) return s;
  ADDED(s, v);
  ADDED(s, v) * 3.0; ; if (s > 0.1) s *= 2.0;
  return s + u;
#undef TYPES
#undef PAIR
#undef ADDED
}
PROGRAM(several_statements_of_a_macro, 1, {0.2}, {1.9}, {-0.7})

template <class T>
T constants_and_aliases(T x) {
  using Number = T;
  constexpr int n = 3;
  static constexpr double w[n] = {0.5, 1.5, 2.5};
  enum Kind { first, second };
  const Kind kind = second;
  Number r = 0.0;
  for (const double k : w)
    if (x > k) r += k * x;
  if constexpr (n > 2) {
    if (kind == second && r > 1.0) r *= 2.0;
  }
  return r + x;
}
PROGRAM(constants_and_aliases, 1, {0.2}, {0.9}, {1.9}, {2.7})
