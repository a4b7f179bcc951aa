// Variables that are reached by other ways than their name: references, pointers, pointers to members, ties.
#include <memory>
#include <tuple>

#include "program.hpp"

using namespace native_corpus;

template <class T>
struct Couple {
  T a, b;
};

template <class T>
T pointer_in_branch(T x, T y) {
  T* p = &x;
  if (y > 1.0) *p = x * y;
  p = &y;
  if (x > 1.0)
    *p += 2.0;
  else
    *p -= x;
  return x * y;
}
PROGRAM(pointer_in_branch, 2, {0.6, 2.0}, {1.5, 0.3}, {0.7, 0.2})

template <class T>
T pointer_in_loop(T x) {
  T sum = 0.0, *p = &sum;
  for (Index<T> i = 0; i < 4; ++i) *p += x * number(i);
  while (*p > 2.0) *p *= 0.5;
  return sum + x;
}
PROGRAM(pointer_in_loop, 1, {0.3}, {1.7})

template <class T>
T pointer_to_const(T x) {
  T y = x * x;
  const T* p = &y;
  if (x > 1.0) y = y + *p;
  for (Index<T> i = 0; i < 3; ++i) y = y * 0.5 + *p * x;
  return *p;
}
PROGRAM(pointer_to_const, 1, {0.3}, {1.7})

template <class T>
T pointer_to_element(T x) {
  T a[3] = {x, 2.0 * x, 1.0};
  T* p = a + 1;
  if (x > 1.0) *p = x * x;
  ++p;
  do {
    *p += a[0];
    p[-1] *= 0.9;
  } while (a[2] < 4.0);
  return a[1] * a[2];
}
PROGRAM(pointer_to_element, 1, {0.45}, {1.7})

template <class T>
T pointer_walk(T x) {
  std::array<T, 4> a{x, 1.0, x * x, 2.0};
  T sum = 0.0;
  for (T* p = a.data(); p != a.data() + a.size(); ++p) {
    if (*p > 1.5) *p *= 0.5;
    sum += *p * x;
  }
  return sum;
}
PROGRAM(pointer_walk, 1, {0.45}, {1.7})

template <class T>
T arrow(T x, T y) {
  Couple<T> c{x, y};
  Couple<T>* p = &c;
  if (p->a > p->b)
    p->a = p->b * 2.0;
  else
    p->b *= p->a;
  for (Index<T> i = 0; i < 3; ++i) {
    if (p->a > 3.0) break;
    p->a += p->b;
  }
  return c.a - c.b;
}
PROGRAM(arrow, 2, {0.5, 2.0}, {2.5, 0.3})

template <class T>
T pointer_to_member(T x, T y) {
  Couple<T> c{x, y};
  T Couple<T>::*m = &Couple<T>::b;
  if (x > 1.0) c.*m = x * x;
  m = &Couple<T>::a;
  Couple<T>* p = &c;
  for (Index<T> i = 0; i < 3; ++i) p->*m += 0.5 * c.b;
  return c.a * c.b;
}
PROGRAM(pointer_to_member, 2, {0.5, 2.0}, {1.5, 0.3})

template <class T>
T pointer_to_pointer(T x) {
  T y = 1.0, *p = &y, **q = &p;
  if (x > 1.0) **q = x;
  *q = &x;
  if (x > 1.5) **q *= 3.0;
  return x * x + y;
}
PROGRAM(pointer_to_pointer, 1, {0.5}, {1.2}, {1.8})

template <class T>
T pointer_parameter_helper(T* out, const T& v) {
  if (v > 1.0)
    *out = v * v;
  else
    *out += v;
  return *out;
}
template <class T>
T pointer_parameter(T x) {
  T y = 0.5;
  T z = pointer_parameter_helper(&y, x);
  z += pointer_parameter_helper(&y, 0.5 * x);
  return y * z;
}
PROGRAM(pointer_parameter, 1, {0.5}, {1.2}, {2.8})

template <class T>
T chosen_pointer(T x, T y) {
  const bool second = true;
  T* p = second ? &y : &x;
  if (x > 1.0) *p = x * 2.0;
  T& r = second ? x : y;
  if (y > 1.0) r += y;
  return x * y;
}
PROGRAM(chosen_pointer, 2, {0.5, 2.0}, {1.5, 0.3})

template <class T>
T reference_chain(T x) {
  T y = x;
  T& r = y;
  T& s = r;
  auto& t = s;
  if (x > 1.0) {
    T& u = t;
    u *= u;
  } else {
    s = 3.0 * r;
  }
  return y;
}
PROGRAM(reference_chain, 1, {0.5}, {1.2})

template <class T>
struct Holder {
  T& r;
  void grow(const T& by) {
    if (by > 1.0) r += by;
    r *= 1.1;
  }
};
template <class T>
T reference_member(T x) {
  T y = 1.0;
  Holder<T> h{y};
  if (x > 0.5) h.r = x;
  h.grow(x);
  while (y < 3.0) h.grow(0.6 * y);
  return y * y;
}
PROGRAM(reference_member, 1, {0.4}, {1.2}, {3.3})

template <class T>
struct Viewer {
  const T& seen;
  T twice() const { return seen > 1.0 ? 2.0 * seen : seen; }
};
template <class T>
T reference_to_const_member(T x) {
  T y = x;
  Viewer<T> v{y};
  T sum = v.twice();
  for (Index<T> i = 0; i < 3; ++i) {
    y += 0.3 * x;
    sum += v.twice();
  }
  return sum;
}
PROGRAM(reference_to_const_member, 1, {0.4}, {0.62}, {1.2})

template <class T>
T tie_in_loop(T x) {
  T a = 0.0, b = x;
  for (Index<T> i = 0; i < 6; ++i) std::tie(a, b) = std::tuple<T, T>(b, a + 0.5 * b);
  if (a > b) std::tie(b, a) = std::tuple<T, T>(a * a, b);
  return a - 2.0 * b;
}
PROGRAM(tie_in_loop, 1, {0.4}, {1.2})

template <class T>
T forward_tuple(T x, T y) {
  std::tuple<T&, T&> both = std::tie(x, y);
  if (x > y) std::get<0>(both) = y * y;
  auto& [u, v] = both;
  while (v < 4.0) v += u + 1.0;
  return x + y * y;
}
PROGRAM(forward_tuple, 2, {0.4, 0.7}, {1.2, 0.5})

template <class T>
T reference_wrapper(T x, T y) {
  std::reference_wrapper<T> r = std::ref(x);
  if (y > 1.0) r.get() = y * x;
  r = std::ref(y);
  if (x > 1.0) r.get() += x;
  const auto set = [](T& v) { v *= 3.0; };
  if (x > 0.1) set(r);
  return x * y;
}
PROGRAM(reference_wrapper, 2, {0.6, 2.0}, {1.5, 0.3}, {0.05, 0.2})

template <class T>
T bindings_by_reference(T x, T y) {
  Couple<T> c{x, y};
  auto& [p, q] = c;
  if (p > 1.0)
    q = p * 3.0;
  else
    p = q;
  for (Index<T> i = 0; i < 2; ++i) p += q;
  return c.a * c.b;
}
PROGRAM(bindings_by_reference, 2, {0.5, 2.0}, {1.5, 0.3})

template <class T>
T bindings_by_value(T x, T y) {
  Couple<T> c{x, y};
  auto [p, q] = c;
  if (x > 1.0) {
    p = p * q;
    c.a = 7.0 * q;
  }
  while (q < 2.5) q += 0.7;
  return p * q + c.a * c.b;
}
PROGRAM(bindings_by_value, 2, {0.5, 2.0}, {1.5, 0.3})

template <class T>
T bindings_of_array(T x) {
  std::array<T, 3> a{x, x * x, 2.0};
  auto& [p, q, r] = a;
  if (x > 1.0) r = p + q;
  T c[2] = {x, 1.0};
  auto& [u, v] = c;
  if (r > 2.5) v = u * r;
  return a[2] * c[1];
}
PROGRAM(bindings_of_array, 1, {0.5}, {1.2}, {1.5})

template <class T>
T bindings_with_branch(T x, T y) {
  if (auto [lo, hi] = std::pair<T, T>(x, y); lo > hi) {
    lo += 1.0;
    return lo * hi;
  } else {
    hi = hi * lo;
    x = hi;
  }
  return x + y;
}
PROGRAM(bindings_with_branch, 2, {0.5, 2.0}, {1.5, 0.3})

template <class T>
T swap_in_branch(T x, T y) {
  if (x > y) std::swap(x, y);
  T* p = &x;
  if (y > 2.0) std::swap(*p, y);
  return x - 3.0 * y;
}
PROGRAM(swap_in_branch, 2, {0.5, 2.3}, {1.5, 0.3}, {2.5, 1.0})

template <class T>
T swap_in_loop(T x, T y) {
  for (Index<T> i = 0; i < 5; ++i) {
    if (x > y) {
      std::swap(x, y);
      continue;
    }
    x += 0.7 * y;
  }
  return x - 3.0 * y;
}
PROGRAM(swap_in_loop, 2, {0.5, 2.3}, {1.5, 0.3})

template <class T>
T exchange(T x, T y) {
  T old = x;
  if (y > 1.0) old = std::exchange(x, y * y);
  for (Index<T> i = 0; i < 3; ++i) old += std::exchange(y, 0.5 * y);
  return old * x + y;
}
PROGRAM(exchange, 2, {0.5, 2.3}, {1.5, 0.3})

template <class T>
T self_assignment(T x, T y) {
  T& r = x;
  x = r;
  if (y > 1.0) {
    r = x;
    y = y;
  }
  for (Index<T> i = 0; i < 2; ++i) x = r;
  return x * y;
}
PROGRAM(self_assignment, 2, {0.5, 2.3}, {1.5, 0.3})

template <class T>
T moved_values(T x, T y) {
  T a = std::move(x);
  if (y > 1.0) {
    T b = std::move(a);
    a = b * y;
  }
  T c = 0.0;
  for (Index<T> i = 0; i < 3; ++i) {
    c = std::move(a);
    a = c * 0.5 + y;
  }
  return a * c;
}
PROGRAM(moved_values, 2, {0.5, 2.3}, {1.5, 0.3})

template <class T>
T& inner_part(Couple<T>& c, bool first) {
  return first ? c.a : c.b;
}
template <class T>
T returned_reference(T x, T y) {
  Couple<T> c{x, y};
  if (x > 1.0) inner_part(c, true) = y * y;
  for (Index<T> i = 0; i < 3; ++i) inner_part(c, false) += c.a;
  return c.a * c.b;
}
PROGRAM(returned_reference, 2, {0.5, 2.3}, {1.5, 0.3})

template <class T>
T owned_by_pointer(T x) {
  const auto p = std::make_unique<T>(x);
  if (x > 1.0) *p = x * x;
  for (Index<T> i = 0; i < 3; ++i) *p += 0.5;
  const auto q = std::make_shared<Couple<T>>(Couple<T>{*p, x});
  if (q->a > 3.0)
    q->b = q->a;
  else
    q->a *= 2.0;
  return q->a * q->b;
}
PROGRAM(owned_by_pointer, 1, {0.5}, {1.4})

template <class T>
T unset_on_both_sides(T x) {
  T y, z;
  if (x > 1.0) {
    y = x * x;
    z = 1.0;
  } else {
    z = x;
    y = z + 3.0;
  }
  return y * z;
}
PROGRAM(unset_on_both_sides, 1, {0.5}, {1.4})

template <class T>
T unset_until_used(T x) {
  T y;
  T last;
  for (Index<T> i = 0; i < 3; ++i) {
    y = x * number(i);
    if (y > 1.0) last = y;
    if (y > 1.0) x += 0.1 * last;
  }
  return x;
}
PROGRAM(unset_until_used, 1, {0.4}, {1.4})

template <class T>
T no_trips(T x) {
  T y = x;
  for (Index<T> i = 0; i < 0; ++i) y *= 2.0;
  while (y > 100.0) y -= 1.0;
  Index<T> n = integer(x) - 5;
  for (Index<T> i = 0; i < n; ++i) {
    x = 0.0;
    y = x;
  }
  return x + y;
}
PROGRAM(no_trips, 1, {0.4}, {1.4})

template <class T>
T out_parameters_helper(T x, T& out, T* more, Couple<T>& parts) {
  if (x < 0.0) return 0.0;
  out = x;
  if (x < 1.0) return x;
  *more += x;
  parts.a = x * x;
  return 2.0 * x;
}
template <class T>
T out_parameters(T x) {
  T a = 1.0, b = 2.0;
  Couple<T> c{3.0, 4.0};
  T r = out_parameters_helper(x, a, &b, c);
  r += out_parameters_helper(r, c.b, &c.b, c);
  return a + b * c.a + c.b + r;
}
PROGRAM(out_parameters, 1, {-0.4}, {0.4}, {1.4})
