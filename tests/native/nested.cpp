// Statements in each other, three deep and more: loops, branches, switches, lambdas, with jumps out of them.
#include "program.hpp"

using namespace native_corpus;

template <class T>
T branch_loop_branch(T x, T y) {
  T v = x, w = 1.0;
  if (x > 1.0) {
    for (Index<T> i = 0; i < 4; ++i) {
      if (v < 3.0)
        v += 0.4 * number(i) + y;
      else
        w *= v;
    }
  } else {
    w = v * y;
  }
  return v * w;
}
PROGRAM(branch_loop_branch, 2, {0.6, 1.7}, {1.3, 0.43}, {2.2, 2.9})

template <class T>
T loop_branch_loop(T x, T y) {
  T v = x, n = 0.0;
  while (v < 20.0) {
    n += 1.0;
    if (n * y < 5.0) {
      do v = v * 1.5 + 0.1;
      while (v * y < 3.0 * n);
      v += 1.0;
    } else {
      v *= 2.0;
    }
  }
  return v * n;
}
PROGRAM(loop_branch_loop, 2, {0.6, 1.7}, {1.3, 0.43}, {2.2, 2.9})

template <class T>
T three_loops(T x, T y) {
  T total = 0.0;
  for (Index<T> i = 0; i < 3; ++i) {
    T row = y;
    for (Index<T> j = 0; j <= i; ++j) {
      T cell = row;
      for (Index<T> k = 0; k < 2; ++k) {
        cell = 0.5 * cell + x * number(k);
        total += 0.1 * cell;
      }
      row = cell + number(j);
    }
    x = 0.5 * x + 0.1 * row;
  }
  return total * x;
}
PROGRAM(three_loops, 2, {0.6, 1.7}, {1.3, 0.43})

template <class T>
T three_loops_with_breaks(T x) {
  T sum = 0.0;
  for (Index<T> i = 0; i < 4; ++i) {
    for (Index<T> j = 0; j < 4; ++j) {
      if (j > i) break;
      for (Index<T> k = 0; k < 4; ++k) {
        if (k == j) continue;
        sum += x * number(i + j * k);
        if (sum > 30.0) break;
      }
      if (sum > 20.0) break;
      sum += 0.1;
    }
    if (sum > 15.0) break;
  }
  return sum * x;
}
PROGRAM(three_loops_with_breaks, 1, {0.3}, {0.73}, {2.1})

template <class T>
T return_from_three_loops(T x) {
  for (Index<T> i = 1; i < 5; ++i) {
    while (x < 10.0) {
      for (Index<T> k = 0; k < 3; ++k) {
        x += 0.3 * number(i);
        if (x > 4.0 && x < 4.4) return x * number(k + 1);
        if (x > 8.0) break;
      }
      if (x > 6.5) break;
      x *= 1.1;
    }
    x -= 1.0;
    if (x < 0.0) return -x;
  }
  return x * x;
}
PROGRAM(return_from_three_loops, 1, {0.3}, {0.73}, {3.95}, {9.2}, {15.3})

template <class T>
T return_from_branches(T x, T y) {
  if (x > 0.0) {
    if (y > 0.0) {
      if (x > y) {
        x -= y;
        if (x > 1.0) return x * y;
      } else {
        if (y > 3.0) return y - x;
      }
      x *= 2.0;
    } else if (x * y < -2.0) {
      return x + y;
    }
    y += x;
  }
  return x - y * y;
}
PROGRAM(return_from_branches, 2, {2.6, 0.7}, {1.3, 0.43}, {2.2, 3.9}, {1.0, 2.0}, {2.0, -1.5}, {1.0, -0.5},
        {-1.0, 2.0})

template <class T>
T switch_loop_switch(T x) {
  T r = x;
  switch (integer(x)) {
    case 0:
    case 1:
      for (Index<T> i = 0; i < 5; ++i) {
        switch (i % 3) {
          case 0:
            r += 0.3;
            break;
          case 1:
            if (r > 1.5) continue;
            r *= 1.5;
            break;
          default:
            if (r > 2.5) return r;
            r -= 0.1;
        }
        if (r > 3.0) break;
        r += 0.05;
      }
      break;
    default:
      r = -r;
  }
  return r * x;
}
PROGRAM(switch_loop_switch, 1, {0.3}, {0.73}, {1.9}, {3.2})

template <class T>
T lambda_in_loop_in_lambda(T x, T y) {
  const auto outer = [&](const T& limit) -> T {
    T best = x;
    for (Index<T> i = 0; i < 4; ++i) {
      const auto improve = [&, k = number(i)](T& v) -> T {
        if (v > limit) {
          v -= 0.5 * k;
          return 0.0;
        }
        while (v < k) v += 0.7;
        return v;
      };
      T got = improve(best);
      if (got > 2.0) return got * y;
      y += 0.1 * got;
    }
    return best;
  };
  T r = outer(1.5);
  return r > 1.0 ? r + outer(r) : r;
}
PROGRAM(lambda_in_loop_in_lambda, 2, {0.63, 1.72}, {1.33, 0.43}, {2.2, 2.9})

template <class T>
T guards_three_deep_helper(T& v, const T& x) {
  struct Twice {
    T& v;
    ~Twice() { v *= 2.0; }
  } guard{v};
  for (Index<T> i = 0; i < 3; ++i) {
    struct Half {
      T& v;
      ~Half() { v = 0.5 * v + 0.1; }
    } inner{v};
    v += x;
    if (v > 2.2) break;
  }
  return v;
}
template <class T>
T guards_three_deep(T x) {
  T v = x;
  T r = guards_three_deep_helper(v, x);
  if (v > 2.0) r += guards_three_deep_helper(v, r);
  return r * v;
}
PROGRAM(guards_three_deep, 1, {0.3}, {0.73}, {1.9})

template <class T>
T shadows_three_deep(T x) {
  T v = x, sum = 0.0;
  for (Index<T> i = 0; i < 3; ++i) {
    T v = number(i) * x;
    if (T w = v + 1.0; w > 1.5) {
      T v = w * w;
      while (v > 2.0) {
        T x = v * 0.3;
        v -= x;
        sum += x;
      }
      w = v;
      sum += w;
    } else {
      T v = w - x;
      sum -= v;
    }
    sum += v;
  }
  return sum * v;
}
PROGRAM(shadows_three_deep, 1, {0.3}, {0.73}, {1.9})

template <class T>
T conditions_three_deep(T x, T y) {
  T n = 0.0;
  const auto f = [&](const T& v) {
    n += 1.0;
    return v > y || (v > 0.5 && [&] {
             n += 0.5;
             return x < 2.0;
           }());
  };
  while (f(x) && n < 6.0) {
    x += 0.2;
    if (!(f(x - 1.0) && (f(y) || x > 1.5))) x += 0.1 * n;
  }
  return x * n + y;
}
PROGRAM(conditions_three_deep, 2, {0.6, 1.7}, {1.33, 0.43}, {2.25, 2.9}, {-1.0, 0.2})

template <class T>
T choices_three_deep(T x, T y) {
  T r = 0.0;
  for (Index<T> i = 0; i < 3; ++i)
    r += x > number(i) ? y > 1.0 ? r > 2.0 ? x : x * y : r < 0.0 ? T(1.0) : y - x : r > 1.0 ? -r : y;
  return r;
}
PROGRAM(choices_three_deep, 2, {0.6, 1.7}, {1.33, 0.43}, {2.25, 2.9}, {-1.0, 0.2})

template <class T>
T do_in_do_in_do(T x) {
  Index<T> i = 0, n = 0;
  do {
    Index<T> j = 0;
    do {
      T t = x;
      do {
        t *= 0.6;
        if (t < 0.2) break;
        ++n;
      } while (t > 0.5);
      x += 0.1 * t;
      if (n > 12) return x * number(n);
    } while (++j < 3);
    if (x > 2.0) continue;
    x += 0.3;
  } while (++i < 3);
  return x + number(n);
}
PROGRAM(do_in_do_in_do, 1, {0.33}, {0.73}, {3.9})

template <class T>
T pointers_three_deep(T x, T y) {
  T a[2] = {x, y};
  for (int k = 0; k < 2; ++k) {
    T* p = &a[k];
    while (*p < 4.0) {
      T& other = a[1 - k];
      if (*p > other) {
        *p += other;
        other *= 0.9;
      } else {
        std::swap(*p, other);
        *p += 0.5;
      }
      if (other > 3.5) return *p - other;
    }
  }
  return a[0] * a[1];
}
PROGRAM(pointers_three_deep, 2, {0.6, 1.7}, {1.33, 0.43}, {3.25, 2.9})

template <class T>
struct Stack {
  std::array<T, 4> items{0.0, 0.0, 0.0, 0.0};
  Index<T> size = 0;
  void push(const T& v) {
    for (std::size_t i = 3; i > 0; --i) items[i] = items[i - 1];
    items[0] = v;
    if (size < 4) ++size;
  }
  T pop() {
    T top = items[0];
    if (size == 0) return -1.0;
    for (std::size_t i = 0; i < 3; ++i) items[i] = items[i + 1];
    --size;
    return top;
  }
};
template <class T>
T stack_machine(T x) {
  Stack<T> s;
  s.push(x);
  for (Index<T> i = 0; i < 6; ++i) {
    if (i % 2 == 0) {
      s.push(x * number(i) + 0.5);
      if (x > 1.0) s.push(s.pop() * 0.5);
    } else {
      T a = s.pop();
      T b = s.pop();
      if (a > b)
        s.push(a - b);
      else
        s.push(a + 0.25 * b);
    }
  }
  T sum = 0.0;
  while (s.size > 0) sum = 0.5 * sum + s.pop();
  return sum;
}
PROGRAM(stack_machine, 1, {0.33}, {0.73}, {1.9})

template <class T>
T found_in_loops(T x) {
  T found = -1.0, at;
  for (Index<T> i = 0; i < 3; ++i) {
    T candidate;
    for (Index<T> j = 0; j < 3; ++j) {
      if (number(i) + 0.3 * number(j) < x) continue;
      candidate = x * number(i + j);
      if (candidate > 1.0) {
        found = candidate;
        at = number(j);
        break;
      }
    }
    if (found > 0.0) break;
  }
  if (found < 0.0) return x;
  return found + at;
}
PROGRAM(found_in_loops, 1, {0.37}, {0.73}, {1.9}, {5.0})

template <class T>
T last_that_was_set(T x) {
  T last, before;
  for (Index<T> i = 0; i < 5; ++i) {
    T v = x * number(i);
    if (i == 0) before = v;
    if (v > 2.0) continue;
    last = v;
    if (v > 1.0) before = last;
  }
  return last * 10.0 + before;
}
PROGRAM(last_that_was_set, 1, {0.37}, {0.73}, {1.9})

template <class T>
T early_continue_three_deep(T x) {
  T sum = 0.0;
  for (Index<T> i = 0; i < 3; ++i) {
    if (x > 2.0) {
      if (i == 1) continue;
      sum += 1.0;
    } else {
      for (Index<T> j = 0; j < 2; ++j) {
        if (i == j) {
          if (x > 1.0) continue;
          sum += 0.5;
        }
        sum += x;
      }
      if (sum > 3.0) continue;
    }
    sum *= 1.1;
  }
  return sum * x;
}
PROGRAM(early_continue_three_deep, 1, {0.37}, {1.73}, {2.9})

template <class T>
T newton_inside(T a) {
  T x = a;
  for (Index<T> i = 0; i < 20; ++i) {
    T f = x * x * x - a, step = f / (3.0 * x * x), next = x - step;
    Index<T> halvings = 0;
    while (abs(next * next * next - a) > abs(f)) {
      step *= 0.5;
      next = x - step;
      if (++halvings > 10) return x;
    }
    if (abs(next - x) < 1e-13) return next;
    x = next;
  }
  return -x;
}
template <class T>
T cube_roots(T x, T y) {
  T r = newton_inside(x);
  if (y > 1.0) r += newton_inside(r * y);
  return r;
}
PROGRAM(cube_roots, 2, {0.6, 1.7}, {8.3, 0.43})

template <class T>
T game_of_states(T x, T y) {
  Index<T> state = 0;
  T score = 0.0;
  for (Index<T> round = 0; round < 10; ++round) {
    if (state == 0) {
      if (x > y) {
        state = 1;
        continue;
      }
      x += 0.7;
    } else if (state == 1) {
      T bet = 0.3 * x;
      while (bet > 0.2) {
        score += bet;
        bet *= 0.5;
        if (score > 4.0) {
          state = 2;
          break;
        }
      }
      y += 0.5;
      if (state != 2 && y > x) state = 0;
    } else {
      return score * number(round);
    }
  }
  return score + x * y;
}
PROGRAM(game_of_states, 2, {0.63, 1.77}, {8.3, 0.43}, {2.0, 1.1})

template <class T>
T kept_from_an_earlier_trip(T x) {
  T kept, sum = 0.0;
  for (Index<T> i = 0; i < 3; ++i) {
    T inner;
    for (Index<T> j = 0; j < 4; ++j) {
      if (j == i) inner = x * number(i + 1);
      if (j >= i) sum += inner;
    }
    if (i == 1) kept = sum + inner;
    if (i > 0) sum += 0.5 * kept;
  }
  return sum * kept;
}
PROGRAM(kept_from_an_earlier_trip, 1, {0.37}, {1.73})
