// Native programs beside the same programs written with IF, WHILE, FOR and FUN: they stage the same graph.
#include "program.hpp"

using namespace native_corpus;

template <class T>
T nested_for(T x) {
  T s = 0.0;
  for (Index<T> i = 0; i < 4; ++i)
    for (Index<T> j = 0; j < i; ++j) s = s * x + 1.0;
  return s;
}
PROGRAM(nested_for, 1, {0.5}, {-1.5})
COMBINATOR(nested_for, 1, [](Rep<double> x) {
  return FOR(0, 4, Rep<double>(0.0), [&](Rep<std::int64_t> i, Rep<double> s) {
    return FOR(0, i, s, [&](Rep<std::int64_t>, Rep<double> t) { return t * x + 1.0; });
  });
})

template <class T>
T branch_in_loop(T x) {
  while (x > 1.0) {
    if (x > 10.0)
      x = x * 0.1;
    else
      x = x - 1.0;
  }
  return x;
}
PROGRAM(branch_in_loop, 1, {0.5}, {35.5})
COMBINATOR(branch_in_loop, 1, [](Rep<double> x) {
  return WHILE(
      x, [](Rep<double> t) { return t > 1.0; },
      [](Rep<double> t) {
        return IF(
            t > 10.0, [&] { return t * 0.1; }, [&] { return t - 1.0; });
      });
})

template <class T>
T at_least_once(T x) {
  do {
    x = x * 0.5;
  } while (x > 1.0);
  return x;
}
PROGRAM(at_least_once, 1, {0.5}, {35.5})
COMBINATOR(at_least_once, 1, [](Rep<double> x) {
  return std::get<1>(WHILE(
      std::tuple(Rep<bool>(true), x), [](Rep<bool> go, Rep<double>) { return go; },
      [](Rep<bool>, Rep<double> t) {
        Rep<double> next = t * 0.5;
        return std::tuple(next > 1.0, next);
      }));
})

template <class T>
T loop_with_break(T x) {
  while (true) {
    if (x > 50.0) break;
    x = x * 2.0;
  }
  return x;
}
PROGRAM(loop_with_break, 1, {0.5}, {65.5})
COMBINATOR(loop_with_break, 1, [](Rep<double> x) {
  return std::get<1>(WHILE(
      std::tuple(Rep<bool>(true), x), [](Rep<bool> go, Rep<double>) { return go; },
      [](Rep<bool>, Rep<double> t) {
        return IF(
            t > 50.0, [&] { return std::tuple(Rep<bool>(false), t); },
            [&] { return std::tuple(Rep<bool>(true), t * 2.0); });
      }));
})

template <class T>
T break_and_condition(T x) {
  T y = 1.0;
  while (x > 1.0) {
    y = y + x;
    if (y > 30.0) break;
    x = x * 0.5;
  }
  return y;
}
PROGRAM(break_and_condition, 1, {0.5}, {25.5}, {9.0})
COMBINATOR(break_and_condition, 1, [](Rep<double> x) {
  return std::get<2>(WHILE(
      std::tuple(Rep<bool>(true), x, Rep<double>(1.0)),
      [](Rep<bool> go, Rep<double> t, Rep<double>) { return AND(go, [&] { return t > 1.0; }); },
      [](Rep<bool>, Rep<double> t, Rep<double> y) {
        Rep<double> next = y + t;
        auto [go, u] = IF(
            next > 30.0, [&] { return std::tuple(Rep<bool>(false), t); },
            [&] { return std::tuple(Rep<bool>(true), t * 0.5); });
        return std::tuple(go, u, next);
      }));
})

template <class T>
T unrolled(T x) {
  for (int i = 0; i < 3; ++i) {
    if (x > 2.0) x = x - 0.5 * i;
  }
  return x;
}
PROGRAM(unrolled, 1, {0.5}, {25.5})
COMBINATOR(unrolled, 1, [](Rep<double> x) {
  for (int i = 0; i < 3; ++i)
    x = IF(
        x > 2.0, [&] { return x - 0.5 * i; }, [&] { return x; });
  return x;
})

template <class T>
T condition_of_three(T x, T y) {
  if ((x > 0.0 || y > 0.0) && !(x > y)) return x + y;
  return x * y;
}
PROGRAM(condition_of_three, 2, {0.5, 1.5}, {2.0, 1.0}, {-1.0, -2.0})
COMBINATOR(condition_of_three, 2, [](Rep<double> x, Rep<double> y) {
  return IF(
      AND(OR(x > 0.0, [&] { return y > 0.0; }), [&] { return !(x > y); }), [&] { return x + y; },
      [&] { return x * y; });
})

template <class T>
T is_odd(T x, Index<T> n);
template <class T>
T is_even(T x, Index<T> n) {
  if (n == 0) return x;
  return is_odd(x * 0.5, n - 1);
}
template <class T>
T is_odd(T x, Index<T> n) {
  if (n == 0) return -x;
  return is_even(x + 1.0, n - 1);
}
template <class T>
T two_functions(T x) {
  return is_even(x, Index<T>(7));
}
PROGRAM(two_functions, 1, {0.5}, {25.5})
COMBINATOR(two_functions, 1, [](Rep<double> x) {
  Fun<double(double, std::int64_t)> even("is_even"), odd("is_odd");
  even.define([&](Rep<double> a, Rep<std::int64_t> n) {
    return IF(
        n == 0, [&] { return a; }, [&] { return odd(a * 0.5, n - 1); });
  });
  odd.define([&](Rep<double> a, Rep<std::int64_t> n) {
    return IF(
        n == 0, [&] { return -a; }, [&] { return even(a + 1.0, n - 1); });
  });
  return even(x, Rep<std::int64_t>(7));
})

template <class T>
struct Point2 {
  T x, y;
};
template <class T>
T struct_state(T a, T b) {
  Point2<T> p{a, b};
  while (p.x > 1.0) {
    p.y = p.y + p.x;
    p.x = p.x * 0.5;
  }
  return p.y;
}
PROGRAM(struct_state, 2, {5.0, 1.0}, {0.5, 2.0})
COMBINATOR(struct_state, 2, [](Rep<double> a, Rep<double> b) {
  using P = Point2<Rep<double>>;
  return WHILE(
             P{a, b}, [](const P& p) { return p.x > 1.0; },
             [](const P& p) {
               Rep<double> y = p.y + p.x;
               return P{p.x * 0.5, y};
             })
      .y;
})

template <class T>
T cases(T x) {
  switch (integer(x)) {
    case 0:
      return x;
    case 1:
      return x * x;
    default:
      return -x;
  }
}
PROGRAM(cases, 1, {0.5}, {1.5}, {4.5})
COMBINATOR(cases, 1, [](Rep<double> x) {
  const Rep<std::int64_t> k = cast<std::int64_t>(x);
  return IF(
      k == 0, [&] { return x; },
      [&] {
        return IF(
            k == 1, [&] { return x * x; }, [&] { return -x; });
      });
})

template <class T>
T not_carried(T x) {
  // y is assigned before it is read: no state of the loop.
  T y = 7.0;
  while (x > 1.0) {
    y = x * 0.5;
    x = y * y * 0.25;
  }
  return x;
}
PROGRAM(not_carried, 1, {0.5}, {6.5})
COMBINATOR(not_carried, 1, [](Rep<double> x) {
  return WHILE(
      x, [](Rep<double> t) { return t > 1.0; },
      [](Rep<double> t) {
        Rep<double> y = t * 0.5;
        return y * y * 0.25;
      });
})

template <class T>
T result_of_loop(T x) {
  for (Index<T> i = 0; i < 9; ++i) {
    if (x > 4.0) return x * 3.0;
    x = x + 1.0;
  }
  return x;
}
PROGRAM(result_of_loop, 1, {0.5}, {-20.0}, {6.5})
COMBINATOR(result_of_loop, 1, [](Rep<double> x) {
  auto [go, i, y, returned, value] = WHILE(
      std::tuple(Rep<bool>(true), Rep<std::int64_t>(0), x, Rep<bool>(false), Rep<double>(0.0)),
      [](Rep<bool> g, Rep<std::int64_t> k, Rep<double>, Rep<bool>, Rep<double>) {
        return AND(g, [&] { return k < 9; });
      },
      [](Rep<bool>, Rep<std::int64_t> k, Rep<double> t, Rep<bool> r, Rep<double> v) {
        auto [g, u, s, w] = IF(
            t > 4.0, [&] { return std::tuple(Rep<bool>(false), t, Rep<bool>(true), t * 3.0); },
            [&] { return std::tuple(Rep<bool>(true), t + 1.0, r, v); });
        return std::tuple(g, k + 1, u, s, w);
      });
  return IF(
      returned, [&] { return value; }, [&] { return y; });
})
