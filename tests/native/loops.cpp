// while, do, for, range-for, switch; break, continue and return from anywhere in them.
#include "program.hpp"

using namespace native_corpus;

template <class T>
T nested_loops(T x) {
  T s = 0.0;
  for (Index<T> i = 0; i < 4; ++i) {
    T row = x;
    for (Index<T> j = 0; j < i; ++j) row = row * x + 1.0;
    s += row;
  }
  return s;
}
PROGRAM(nested_loops, 1, {0.7}, {-1.2})

/// A plain loop with a staged end: a branch in a branch, as deep as it is long.
template <class T>
T return_from_plain_loop(T x) {
  for (int i = 0; i < 50; ++i) {
    x = x * 1.01;
    if (x > 3.0) return x * i;
  }
  return -x;
}
PROGRAM(return_from_plain_loop, 1, {1.9}, {1.0}, {3.1})

template <class T>
T return_from_nested(T x) {
  T s = x;
  for (Index<T> i = 0; i < 6; ++i) {
    for (Index<T> j = 0; j < 6; ++j) {
      s = s * 1.1 + 0.1;
      if (s > 5.0) return s * number(i) + number(j);
    }
    if (s < -20.0) return x;
  }
  return -s;
}
PROGRAM(return_from_nested, 1, {0.7}, {3.0}, {-1.2}, {-40.0})

template <class T>
T return_from_three(T x) {
  Index<T> i = 0;
  while (true) {
    Index<T> j = 0;
    do {
      for (Index<T> k = 0; k < 3; ++k) {
        x = x + 0.5;
        if (x > 7.25) return x * x;
        if (x > 3.0 && k == 1) break;
      }
      j++;
    } while (j < 2);
    if (++i > 20) break;
  }
  return x;
}
PROGRAM(return_from_three, 1, {0.7}, {6.9}, {-100.0})

template <class T>
T continue_in_for(T x) {
  T s = 0.0;
  for (Index<T> i = 0; i < 10; ++i) {
    if (i % 3 == 1) continue;
    if (i == 8) break;
    s += x * number(i);
  }
  return s;
}
PROGRAM(continue_in_for, 1, {0.7})

template <class T>
T continue_in_while(T x) {
  Index<T> i = 0;
  while (i < 10) {
    i += 1;
    if (x > 4.0) {
      x = x * 0.5;
      continue;
    }
    x = x + 1.5;
  }
  return x;
}
PROGRAM(continue_in_while, 1, {0.7}, {9.0})

template <class T>
T continue_in_do(T x) {
  Index<T> i = 0;
  do {
    if (x > 4.0) {
      x = x * 0.5;
      continue;
    }
    x = x + 1.5;
  } while (++i < 7);
  return x;
}
PROGRAM(continue_in_do, 1, {0.7}, {9.0})

template <class T>
T break_and_counter(T x) {
  Index<T> i = 0;
  for (; i < 100; ++i) {
    x = x * 0.8;
    if (x < 1.0) break;
  }
  return x + number(i);
}
PROGRAM(break_and_counter, 1, {0.7}, {9.0})

template <class T>
T assigning_condition(T x) {
  T y;
  Index<T> n = 0;
  while ((y = x * 0.5) > 0.7) {
    x = y;
    ++n;
  }
  return y + number(n);
}
PROGRAM(assigning_condition, 1, {0.7}, {9.0})

template <class T>
T assigning_condition_break(T x) {
  T y;
  while ((y = x * 0.5) > 0.7) {
    if (y < 1.5) break;
    x = y + 0.1;
  }
  return y;
}
PROGRAM(assigning_condition_break, 1, {0.7}, {9.0}, {2.0})

template <class T>
T host_loop_break(T x) {
  for (int i = 0; i < 8; ++i) {
    if (x > 5.0) break;
    x = x * 1.7;
  }
  return x;
}
PROGRAM(host_loop_break, 1, {0.7}, {-1.0}, {9.0})

template <class T>
T host_loop_continue(T x) {
  T s = 0.0;
  for (int i = 1; i <= 5; ++i) {
    if (x * i > 4.0) continue;
    s += x * x;
  }
  return s;
}
PROGRAM(host_loop_continue, 1, {0.9}, {-1.0}, {3.0})

template <class T>
T host_loop_return(T x) {
  for (int i = 0; i < 8; ++i) {
    x = x * 1.7;
    if (x > 5.0) return x * i;
  }
  return -x;
}
PROGRAM(host_loop_return, 1, {0.7}, {-1.0}, {9.0})

template <class T>
T host_loops_nested(T x) {
  T s = 0.0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      if (i == j) continue;
      if (s > 6.0) break;
      s += x * (i + 1) + j;
    }
    if (s > 8.0) return s;
  }
  return s * 0.5;
}
PROGRAM(host_loops_nested, 1, {0.7}, {-1.0}, {2.0})

template <class T>
T range_for(T x) {
  std::array<T, 4> a{x, x * 2.0, x - 1.0, 3.0 - x};
  T largest = a[0];
  for (const T& v : a)
    if (v > largest) largest = v;
  return largest;
}
PROGRAM(range_for, 1, {0.7}, {-1.0}, {2.0})

template <class T>
T range_for_break(T x) {
  std::vector<T> a{x, x * 2.0, x - 1.0, 3.0 - x};
  T s = 0.0;
  for (T v : a) {
    if (v < 0.0) break;
    s = s + v;
  }
  return s;
}
PROGRAM(range_for_break, 1, {0.7}, {-1.0}, {2.0})

template <class T>
T range_for_changes(T x) {
  T a[3] = {x, x * 2.0, x * x};
  for (T& v : a) {
    if (v > 1.0) v = 1.0 + 0.1 * v;
  }
  return a[0] + 2.0 * a[1] + 3.0 * a[2];
}
PROGRAM(range_for_changes, 1, {0.7}, {-1.3}, {2.0})

template <class T>
T range_for_return(T x) {
  const std::array<double, 4> thresholds{0.5, 1.0, 2.0, 4.0};
  for (double t : thresholds)
    if (x < t) return x * t;
  return x;
}
PROGRAM(range_for_return, 1, {0.7}, {-1.3}, {3.0}, {9.0})

template <class T>
T switch_values(T x) {
  T y = 0.0;
  switch (integer(x)) {
    case 0:
      y = x;
      break;
    case 1:
      y = x * x;
      break;
    case 2: {
      T z = x + 1.0;
      y = z * z;
      break;
    }
    default:
      y = -x;
  }
  return y;
}
PROGRAM(switch_values, 1, {0.5}, {1.5}, {2.5}, {7.5})

enum Instruction { keep, square, negate = 7 };
template <class T>
T switch_over_enumerators(T x) {
  switch (integer(x)) {
    case keep:
      return x;
    case square:
      x = x * x;
      break;
    case negate:
      x = -x;
      break;
    default:
      x = x * 3.0;
  }
  return x + 1.0;
}
PROGRAM(switch_over_enumerators, 1, {0.5}, {1.5}, {2.5}, {7.5})

template <class T>
T switch_returns(T x) {
  switch (integer(x)) {
    case 0:
      return x;
    case 1:
      return x * x;
    default:
      break;
  }
  return 3.0 * x;
}
PROGRAM(switch_returns, 1, {0.5}, {1.5}, {2.5})

template <class T>
T switch_falls_through(T x) {
  T y = 1.0;
  switch (integer(x)) {
    case 0:
      y += x;
    case 1:
      y *= 2.0;
    case 2:
      y += x * x;
      break;
    case 3:
      y = -1.0;
  }
  return y * x;
}
PROGRAM(switch_falls_through, 1, {0.5}, {1.5}, {2.5}, {3.5}, {4.5})

template <class T>
T switch_with_breaks_inside(T x) {
  T y = 1.0;
  switch (integer(x)) {
    case 0:
      if (x < 0.25) break;
      y = x + 4.0;
      break;
    case 1:
      if (x < 1.25) return x * 9.0;
      y = x;
      break;
    default:
      y = 2.0 * x;
  }
  return y + x;
}
PROGRAM(switch_with_breaks_inside, 1, {0.125}, {0.5}, {1.125}, {1.5}, {3.5})

template <class T>
T switch_in_loop(T x) {
  for (Index<T> i = 0; i < 9; ++i) {
    switch (i % 4) {
      case 0:
        x = x + 1.0;
        continue;
      case 1:
        x = x * 1.25;
        break;
      case 2:
        if (x > 6.0) return x - 0.5;
        break;
      default:
        x = x - 0.25;
    }
    x = x + 0.125;
  }
  return x;
}
PROGRAM(switch_in_loop, 1, {0.125}, {3.0}, {-4.0})

template <class T>
T host_switch(T x) {
  T y = x;
  for (int i = 0; i < 4; ++i) {
    switch (i) {
      case 1:
        y = y * 2.0;
        break;
      case 2:
        if (y > 3.0) break;
        y = y + 10.0;
        break;
      default:
        y = y + 0.5;
    }
  }
  return y;
}
PROGRAM(host_switch, 1, {0.125}, {3.0}, {-4.0})

template <class T>
T escape_time(T cx, T cy) {
  T x = 0.0, y = 0.0;
  Index<T> n = 0;
  while (x * x + y * y < 4.0 && n < 30) {
    T t = x * x - y * y + cx;
    y = 2.0 * x * y + cy;
    x = t;
    n = n + 1;
  }
  return x * 0.5 + number(n);
}
PROGRAM(escape_time, 2, {0.3, 0.5}, {1.0, 1.0}, {-0.1, 0.2})

template <class T>
T variable_from_loop(T x) {
  T last;
  for (Index<T> i = 0; i < 3; ++i) {
    last = x * number(i + 1);
    x = last - 0.5;
  }
  return last;
}
PROGRAM(variable_from_loop, 1, {0.3})

template <class T>
T loop_in_branch(T x) {
  if (x > 1.0) {
    while (x > 1.0) {
      x *= 0.5;
      if (x < 0.8 && x > 0.6) return x * 100.0;
    }
  } else {
    for (Index<T> i = 0; i < 3; ++i) x += 0.25;
  }
  return x;
}
PROGRAM(loop_in_branch, 1, {0.3}, {3.0}, {2.8}, {4.2})

template <class T>
T infinite_for(T x) {
  for (;;) {
    x = x + 1.0;
    if (x > 3.5) return x * x;
  }
}
PROGRAM(infinite_for, 1, {0.3}, {9.0})

template <class T>
T do_once(T x) {
  do {
    if (x > 1.0) break;
    x = x + 5.0;
  } while (false);
  return x;
}
PROGRAM(do_once, 1, {0.3}, {9.0})

template <class T>
T two_exits(T x) {
  T s = 0.0;
  while (x > 0.1) {
    s += x;
    if (s > 10.0) return s;
    if (x < 0.4) break;
    x *= 0.7;
  }
  s = s * 2.0;
  return s + x;
}
PROGRAM(two_exits, 1, {0.3}, {2.0}, {9.0}, {0.05})

template <class T>
T host_condition_in_staged_loop(T x, T y) {
  const bool twice = true;
  while (x < 10.0) {
    if (twice) {
      x = x * 2.0;
      if (x > 8.0) continue;
    }
    x = x + y;
  }
  return x;
}
PROGRAM(host_condition_in_staged_loop, 2, {0.3, 0.5}, {1.5, 2.5})

template <class T>
T counts_down(T x) {
  Index<T> n = 5;
  T p = 1.0;
  while (n) {
    p = p * x;
    n--;
  }
  return p;
}
PROGRAM(counts_down, 1, {0.9}, {-1.5})

template <class T>
T series(T x) {
  T term = 1.0, sum = 1.0;
  for (Index<T> n = 1; abs(term) > 1e-15; ++n) {
    term *= x / number(n);
    sum += term;
    if (n > 100) break;
  }
  return sum;
}
PROGRAM(series, 1, {0.9}, {-1.5})

template <class T>
T agm(T a, T b) {
  while (abs(a - b) > 1e-14) {
    T m = 0.5 * (a + b);
    b = sqrt(a * b);
    a = m;
  }
  return a;
}
PROGRAM(agm, 2, {1.0, 2.0}, {24.0, 6.0})

template <class T>
T gcd_scaled(T x) {
  Index<T> a = 252, b = 105;
  while (b != 0) {
    Index<T> r = a % b;
    a = b;
    b = r;
    x = x * 1.5;
  }
  return x * number(a);
}
PROGRAM(gcd_scaled, 1, {1.0})
