// if, else, ?:, &&, ||, ! and early returns.
#include "program.hpp"

using namespace native_corpus;

template <class T>
T twice_as(const T& x) {
  return x + x;
}
/// References that keep a temporary alive are variables.
template <class T>
T bound_temporaries(T x) {
  auto&& y = twice_as(x);
  T&& z = x * 3.0;
  if (x > 1.0) {
    y = y * y;
    z += y;
  } else {
    y -= 1.0;
  }
  for (Index<T> i = 0; i < 3; ++i) z = z * y;
  return y + z;
}
PROGRAM(bound_temporaries, 1, {0.5}, {1.5})

template <class T>
T absolute(T x) {
  if (x < 0.0) return -x;
  return x;
}
PROGRAM(absolute, 1, {2.0}, {-3.0})
COMBINATOR(absolute, 1, [](Rep<double> x) {
  return IF(
      x < 0.0, [&] { return -x; }, [&] { return x; });
})

template <class T>
T choice(T x) {
  return x > 1.0 ? x * x : x + 1.0;
}
PROGRAM(choice, 1, {2.0}, {-3.0})
COMBINATOR(choice, 1, [](Rep<double> x) {
  return IF(
      x > 1.0, [&] { return x * x; }, [&] { return x + 1.0; });
})

template <class T>
T assign_two(T x, T y) {
  T a = x, b = y;
  if (x > y) {
    a = y * 2.0;
    b = x;
  }
  return a - b * b;
}
PROGRAM(assign_two, 2, {2.0, 1.0}, {-3.0, 4.0})
COMBINATOR(assign_two, 2, [](Rep<double> x, Rep<double> y) {
  auto [a, b] = IF(
      x > y, [&] { return std::tuple(y * 2.0, x); }, [&] { return std::tuple(x, y); });
  return a - b * b;
})

template <class T>
T dead_after(T x) {
  T a = x, scratch = 0.0;
  if (x > 1.0) {
    scratch = x * 3.0;
    a = scratch + 1.0;
  }
  return a;
}
PROGRAM(dead_after, 1, {2.0}, {-3.0})
COMBINATOR(dead_after, 1, [](Rep<double> x) {
  return IF(
      x > 1.0, [&] { return x * 3.0 + 1.0; }, [&] { return x; });
})

template <class T>
T conjunction(T x, T y) {
  if (x > 0.0 && y > 0.0) return x * y;
  return x - y;
}
PROGRAM(conjunction, 2, {2.0, 1.0}, {-3.0, 4.0}, {1.0, -1.0})
COMBINATOR(conjunction, 2, [](Rep<double> x, Rep<double> y) {
  return IF(
      AND(x > 0.0, [&] { return y > 0.0; }), [&] { return x * y; }, [&] { return x - y; });
})

template <class T>
T disjunction(T x, T y) {
  if (x > 0.0 || y > 0.0) return x * y;
  return x - y;
}
PROGRAM(disjunction, 2, {2.0, 1.0}, {-3.0, 4.0}, {-1.0, -1.0})
COMBINATOR(disjunction, 2, [](Rep<double> x, Rep<double> y) {
  return IF(
      OR(x > 0.0, [&] { return y > 0.0; }), [&] { return x * y; }, [&] { return x - y; });
})

template <class T>
T ladder(T x) {
  if (x < 0.0)
    return 0.0;
  else if (x < 1.0)
    return x;
  else if (x < 2.0)
    return x * x;
  else
    return 3.0 * x - 2.0;
}
PROGRAM(ladder, 1, {-1.0}, {0.5}, {1.5}, {4.0})
COMBINATOR(ladder, 1, [](Rep<double> x) {
  return IF(
      x < 0.0, [&] { return Rep<double>(0.0); },
      [&] {
        return IF(
            x < 1.0, [&] { return x; },
            [&] {
              return IF(
                  x < 2.0, [&] { return x * x; }, [&] { return 3.0 * x - 2.0; });
            });
      });
})

template <class T>
T nested(T x, T y) {
  T r = 1.0;
  if (x > 0.0) {
    if (y > 0.0)
      r = x * y;
    else
      r = x / (1.0 - y);
  } else if (y > 0.0) {
    r = y - x;
  }
  return r * r;
}
PROGRAM(nested, 2, {1.5, 2.0}, {1.5, -2.0}, {-1.5, 2.0}, {-1.5, -2.0})

template <class T>
T partial_returns(T x, T y) {
  T z = x;
  if (x > 0.0) {
    if (y > 3.0) return y * x;
    z = x + 1.0;
  } else {
    if (y > 2.0) return y - x;
    z = x - 1.0;
  }
  T w = z * y;
  if (w > 1.0) w = w * 0.5;
  return w + z;
}
PROGRAM(partial_returns, 2, {1.5, 4.0}, {1.5, 1.0}, {-1.5, 2.5}, {-1.5, -2.0})

template <class T>
T deep_returns(T x) {
  if (x > 0.0) {
    if (x > 1.0) {
      if (x > 2.0) {
        if (x > 3.0) return 3.0 * x;
        x += 0.25;
      }
      x += 0.5;
    }
    x += 1.0;
  }
  return x * x;
}
PROGRAM(deep_returns, 1, {-1.0}, {0.5}, {1.5}, {2.5}, {3.5})

template <class T>
T guards(T x, T y) {
  if (x <= 0.0) return 0.5 * y;
  if (y <= 0.0) return 0.5 * x;
  T r = sqrt(x * x + y * y);
  if (r > 5.0) return 5.0 + 0.1 * r;
  return r;
}
PROGRAM(guards, 2, {1.5, 4.0}, {-1.5, 1.0}, {1.5, -2.5}, {5.5, 2.0})

template <class T>
T not_operator(T x) {
  Truth<T> small = x < 1.0;
  if (!small) x = x * 2.0;
  if (!(x > 0.0) || !small) x = x + 1.0;
  return x;
}
PROGRAM(not_operator, 1, {0.5}, {2.0}, {-1.0})

template <class T>
T mixed_conditions(T x) {
  bool host = true;
  if (host && x > 0.0) x = x * 2.0;
  if (!host || x > 3.0) x = x + 1.0;
  if (host)
    x = x * x;
  else
    x = -x;
  if (x > 1.0 && host) return x;
  return x * 0.5;
}
PROGRAM(mixed_conditions, 1, {0.6}, {2.0}, {-1.2})

template <class T>
T short_circuit(T x) {
  // The square root of a negative number is never computed.
  if (x > 0.0 && sqrt(x) > 1.0) return log(x);
  return x;
}
PROGRAM(short_circuit, 1, {0.5}, {2.0}, {-1.0})

template <class T>
T nested_choice(T x) {
  T y = x < 0.0 ? -1.0 * x : x < 1.0 ? x * x : x < 2.0 ? x + 0.5 : T(7.0) * x;
  return y + (x > 0.5 ? 1.0 : 0.0) * x;
}
PROGRAM(nested_choice, 1, {-0.5}, {0.7}, {1.5}, {2.5})

template <class T>
T if_with_initialiser(T x) {
  if (T y = x * x; y > 2.0) {
    x = y + x;
  } else {
    x = y - x;
  }
  return x;
}
PROGRAM(if_with_initialiser, 1, {-0.5}, {1.7})

template <class T>
T number_as_condition(T x) {
  T y = 2.0;
  if (x) y = y * x + 1.0;
  if (!x) y = y + 5.0;
  return y;
}
PROGRAM(number_as_condition, 1, {1.5}, {-2.0})

template <class T>
T huber(T r, T delta) {
  T a = abs(r);
  return a <= delta ? 0.5 * r * r : delta * (a - 0.5 * delta);
}
PROGRAM(huber, 2, {0.5, 1.0}, {-3.0, 1.0})

template <class T>
T smoothstep(T x) {
  T t = x;
  if (t < 0.0) t = 0.0;
  if (t > 1.0) t = 1.0;
  return t * t * (3.0 - 2.0 * t);
}
PROGRAM(smoothstep, 1, {-0.5}, {0.3}, {1.7})

template <class T>
T clamp_both(T x, T lo, T hi) {
  return x < lo ? lo : x > hi ? hi : x;
}
PROGRAM(clamp_both, 3, {0.5, 0.0, 1.0}, {-2.0, -1.0, 1.0}, {3.0, 0.0, 2.0})

template <class T>
T quadratic_root(T a, T b, T c) {
  T d = b * b - 4.0 * a * c;
  if (d < 0.0) return d;
  if (b > 0.0) return -2.0 * c / (b + sqrt(d));
  return (sqrt(d) - b) / (2.0 * a);
}
PROGRAM(quadratic_root, 3, {1.0, -3.0, 2.0}, {1.0, 3.0, 2.0}, {1.0, 1.0, 2.0})

template <class T>
T void_branches(T x) {
  T y = 0.0;
  auto add = [&](T v) { y = y + v; };
  if (x > 1.0)
    add(x * x);
  else
    add(3.0 * x);
  return y;
}
PROGRAM(void_branches, 1, {0.5}, {1.7})

template <class T>
T comma_and_compound(T x) {
  T a = 1.0, b = 2.0;
  if (x > 0.0)
    a += x, b *= x;
  else
    a -= x, b /= 1.0 - x;
  return a * b;
}
PROGRAM(comma_and_compound, 1, {0.5}, {-1.7})

template <class T>
T empty_branches(T x) {
  if (x > 0.0) {
  } else {
    x = -2.0 * x;
  }
  if (x > 1.0)
    ;
  else
    x += 1.0;
  return x;
}
PROGRAM(empty_branches, 1, {0.5}, {-1.7})

template <class T>
T branch_in_block(T x) {
  {
    T y = x * 2.0;
    if (y > 3.0) return y;
    x = y;
  }
  T y = 1.0;
  return x + y;
}
PROGRAM(branch_in_block, 1, {0.5}, {2.0})
