// Unusual forms of statements: what stands between, beside and inside of them.
#include <map>

#include "program.hpp"

using namespace native_corpus;

template <class T>
T smaller_of(T a, T b) {
  return a < b ? a : b;
}
template <class T>
T choices_in_arguments(T x) {
  return smaller_of(x > 0.0 ? x : -x, x > 2.0 ? T(1.0) : x) + (x > 1.0 && (x < 3.0 || x > 5.0) ? 1.0 : 0.0);
}
PROGRAM(choices_in_arguments, 1, {-1.5}, {0.7}, {4.2}, {5.5})

template <class T>
T choice_in_capture(T x) {
  auto largest = [k = x > 0.0 ? x : -x](T y) mutable -> T {
    if (y > k)
      k = y;
    else
      k += 1.0;
    return k;
  };
  T first = largest(x);
  return first * largest(x * 2.0);
}
PROGRAM(choice_in_capture, 1, {-1.5}, {0.7}, {4.2})

template <class T>
T same_name_inside(T x) {
  T y = x, z = 1.0;
  if (x > 0.0) {
    T y = 5.0;
    if (y > x) return y * x;
    z = y;
  }
  return y + z;
}
PROGRAM(same_name_inside, 1, {-1.5}, {0.7}, {6.2})

template <class T>
T two_counters(T x) {
  for (Index<T> i = 0, j = 10; i < j; ++i, --j) {
    x += 0.1;
    if (x > 5.0) break;
  }
  return x * x;
}
PROGRAM(two_counters, 1, {-1.5}, {4.73})

template <class T>
T bound_pairs(T x) {
  T s = 0.0;
  for (auto [u, v] : std::vector<std::pair<T, T>>{{x, 1.0}, {x * x, 2.0}}) {
    if (u > v)
      s += u;
    else
      s -= v * u;
  }
  return s;
}
PROGRAM(bound_pairs, 1, {-1.3}, {0.7}, {4.2})

template <class T>
T declared_in_conditions(T x, T y) {
  if (T d = x - y; d > 0.0)
    return d;
  else if (T e = y - x; e > 1.0)
    return e * 2.0;
  return x * y;
}
PROGRAM(declared_in_conditions, 2, {1.0, 2.5}, {3.0, 1.0}, {1.0, 1.5})

template <class T>
T no_braces_at_all(T x) {
  while (x > 1.0)
    if (x > 10.0)
      x *= 0.1;
    else
      x *= 0.45;
  return x;
}
PROGRAM(no_braces_at_all, 1, {-1.5}, {47.0}, {4.2})

template <class T>
T plain_counters(T x) {
  int n = 3;
  while (n--) {
    if (x > 2.0) x -= 1.0;
  }
  do {
    if (x < 0.0) break;
    x -= 0.13;
  } while (++n < 3);
  return x * x;
}
PROGRAM(plain_counters, 1, {-1.5}, {0.3}, {4.2})

namespace deep {
template <class T>
struct Box {
  T v;
  template <class U>
  T pick(U u) {
    if (v > u) return v;
    return T(u) * v;
  }
};
}  // namespace deep
template <class T>
T member_template(T x) {
  deep::Box<T> b{x};
  return b.pick(1.0) + b.pick(x * x);
}
PROGRAM(member_template, 1, {-1.5}, {0.7}, {4.2})

template <class T>
T nested_ranges(T x) {
  std::array<std::array<T, 2>, 2> m{{{x, 1.0}, {2.0, x}}};
  for (auto& row : m)
    for (auto& e : row)
      if (e > 1.5) e = e * 0.5;
  return m[0][0] * m[1][1] - m[0][1] * m[1][0];
}
PROGRAM(nested_ranges, 1, {-1.6}, {0.7}, {4.2})

template <class T>
T default_first(T x) {
  T r;
  switch (Index<T> k = integer(x); k) {
    default:
      r = 0.5 * x;
      break;
    case 1:
      r = x * x;
  }
  return r;
}
PROGRAM(default_first, 1, {-1.5}, {0.7}, {1.6})

template <class T>
T called_at_once(T x) {
  return [&]() -> T {
    if (x > 1.0) return x * 2.0;
    return x * x;
  }();
}
PROGRAM(called_at_once, 1, {-1.5}, {1.6})

template <class T>
T assigned_in_choice(T x) {
  T t = 0.0;
  static_cast<void>(x > 1.0 ? t = x : t = 2.0 * x);
  return t * t;
}
PROGRAM(assigned_in_choice, 1, {-1.5}, {1.6})

template <class T, bool Fast>
T by_constant(T x) {
  if constexpr (Fast) {
    if (x > 1.0) return x;
  }
  return x * x;
}
template <class T>
T constants(T x) {
  return by_constant<T, true>(x) + by_constant<T, false>(x);
}
PROGRAM(constants, 1, {-1.5}, {1.6})

template <class T>
T plain_map(T x) {
  T acc = 1.0;
  for (const auto& [k, v] : std::map<int, double>{{1, 2.0}, {2, 3.0}, {5, -1.0}}) {
    if (acc > 2.0) continue;
    acc = acc * x * v + k;
  }
  return acc;
}
PROGRAM(plain_map, 1, {-1.5}, {0.7}, {1.6})

template <class T>
T plain_switch_staged_inside(T x) {
  T s = 0.0;
  for (int i = 0; i < 3; ++i) switch (i) {
      case 0:
        if (x > 1.0) s += x;
        break;
      default:
        s += x * x;
    }
  return s;
}
PROGRAM(plain_switch_staged_inside, 1, {-1.5}, {1.6})

template <class T>
T comments_everywhere(T x) {  // before
  if (x > 1.0)                /* inside */
    return x;                 // after
  else                        // why
    x = -x;                   // here
  /* before */ return x * x;
}
PROGRAM(comments_everywhere, 1, {-1.5}, {1.6})

template <class T>
T returns_after_loops(T x) {
  T y = x;
  if (x > 0.0) {
    y = x * x;
  } else if (x > -1.0) {
    y = -x;
  } else {
    while (y < 0.0) {
      y += 1.0;
      if (y > -0.45) return y * x;
    }
  }
  return y * 2.0;
}
PROGRAM(returns_after_loops, 1, {-1.5}, {-0.5}, {-3.3}, {1.6})

template <class T>
T plain_branch_returns(T x) {
  bool verbose = false;
  if (verbose) return x;
  if (x > 1.0) {
    if (verbose) return 2.0 * x;
    x = 3.0 * x;
  }
  return x * x;
}
PROGRAM(plain_branch_returns, 1, {-1.5}, {1.6})

template <class T>
struct Trained {
  T w, b;
  T forward(T x) const {
    if (x > b) return w * x;
    return x;
  }
  void train(T x) {
    if (forward(x) > 1.0) {
      w -= 0.1 * x;
      b += 0.5;
    } else
      w += 0.1;
  }
};
template <class T>
T trained_model(T x) {
  Trained<T> m{x, 0.5};
  for (Index<T> i = 0; i < 3; ++i) m.train(x);
  return m.forward(x);
}
PROGRAM(trained_model, 1, {-1.5}, {0.7}, {1.6})

template <class T>
T with_directives(T x) {
  if (x > 1.0) return x * 2.0;
  while (x > 0.5) {
#if 1
    x = x * 0.5;
#endif
    x = x - 0.1;
  }
  return x * x;
}
PROGRAM(with_directives, 1, {0.7}, {1.6}, {0.1})
