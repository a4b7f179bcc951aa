// Containers of Reps, made before a branch or loop assigns what is in them; loops over them.
#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <variant>

#include "program.hpp"

using namespace native_corpus;

template <class T>
T range_with_initialiser(T x) {
  T sum = 0.0;
  for (std::array<T, 3> a{x, 1.0, x * x}; const T& v : a) {
    if (v > 2.0) break;
    if (v < 0.5) continue;
    sum += v;
  }
  return sum * x;
}
PROGRAM(range_with_initialiser, 1, {0.2}, {0.8}, {1.9})

template <class T>
T range_that_assigns(T x) {
  std::vector<T> v{x, 0.5, x * x, 1.0};
  for (T& e : v) {
    if (e > 1.0) e *= 0.5;
    e += x;
  }
  for (auto&& e : v) e = e > 2.0 ? e - 1.0 : e;
  for (T e : v) e *= 100.0;
  return v[0] * v[1] + v[2] - v[3];
}
PROGRAM(range_that_assigns, 1, {0.2}, {0.8}, {1.9})

template <class T>
T range_over_c_array(T x) {
  T a[] = {x, 0.5, x * x};
  T largest = a[0];
  for (auto& e : a)
    if (e > largest) largest = e;
  for (auto& e : a) {
    while (e > 1.0) e *= 0.7;
    if (e > 0.6) return e * largest;
  }
  return largest;
}
PROGRAM(range_over_c_array, 1, {0.2}, {0.85}, {1.9})

template <class T>
T range_of_braces(T x, T y) {
  T r = 0.0;
  for (const T& v : {x, y, x * y}) {
    if (v > 1.0) {
      r += v;
      continue;
    }
    for (const double k : {0.5, 1.5})
      if (v > k * y) r += k * v;
  }
  return r;
}
PROGRAM(range_of_braces, 2, {0.2, 0.7}, {1.8, 0.3}, {1.9, 1.1})

template <class T>
T vector_in_branches(T x) {
  std::vector<T> v(3, x);
  if (x > 1.0) {
    v[0] = 1.0;
    v[2] = x * x;
  } else {
    v[0] += 2.0;
    v[1] *= x;
  }
  for (Index<T> i = 0; i < 3; ++i) {
    v[1] += v[0];
    std::swap(v[0], v[2]);
  }
  return v[0] + 2.0 * v[1] + 3.0 * v[2];
}
PROGRAM(vector_in_branches, 1, {0.2}, {1.9})

template <class T>
T vector_assigned(T x) {
  std::vector<T> v{x, 1.0}, w{2.0, x * x};
  if (x > 1.0) v = w;
  for (Index<T> i = 0; i < 3; ++i) {
    const std::vector<T> next{v[1], v[0] + 0.5 * w[0]};
    v = next;
  }
  if (v[0] > 2.0) std::swap(v[0], w[0]);
  return v[0] - v[1] * w[0];
}
PROGRAM(vector_assigned, 1, {0.2}, {1.9})

template <class T>
T array_of_arrays(T x) {
  std::array<std::array<T, 2>, 2> m{{{x, 1.0}, {0.5, x * x}}};
  for (Index<T> k = 0; k < 3; ++k) {
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        if (m[i][j] > 1.5) m[i][j] *= 0.5;
        m[i][j] += 0.3 * m[j][i];
      }
    if (m[0][0] > 1.2) std::swap(m[0], m[1]);
  }
  return m[0][0] * m[1][1] - m[0][1] * m[1][0];
}
PROGRAM(array_of_arrays, 1, {0.2}, {1.9})

template <class T>
T array_assigned(T x) {
  std::array<T, 3> a{x, 1.0, 2.0}, b{x * x, x, 0.5};
  if (x > 1.0) a = b;
  b.fill(a[0]);
  do {
    std::array<T, 3> c = a;
    a = {c[1], c[2], c[0] + b[1]};
  } while (a[2] < 4.0);
  return a[0] * a[1] + a[2];
}
PROGRAM(array_assigned, 1, {0.27}, {1.9})

template <class T>
T maps(T x) {
  std::map<std::string, T> m{{"a", x}, {"b", 1.0}};
  if (x > 1.0) m["a"] = x * x;
  for (auto& [name, v] : m) {
    if (v < 1.5) v += x;
    if (name == "b") v *= 2.0;
  }
  for (Index<T> i = 0; i < 2; ++i) m["b"] += m["a"];
  return m["a"] * m["b"];
}
PROGRAM(maps, 1, {0.27}, {1.9}, {1.1})

template <class T>
T optionals(T x) {
  std::optional<T> o = x, none;
  if (o && *o > 1.0) o = *o * *o;
  if (none) return 0.0;
  if (x > 0.5)
    *o += 1.0;
  else
    o.value() *= 3.0;
  return o.value_or(x) * x;
}
PROGRAM(optionals, 1, {0.27}, {0.7}, {1.9})

template <class T>
T variants(T x) {
  std::variant<int, T> v = x;
  if (x > 1.0) std::get<T>(v) = x * x;
  std::visit([&](auto& held) { x += held; }, v);
  if (T* p = std::get_if<T>(&v)) {
    if (*p > 1.0) *p *= 0.5;
    for (Index<T> i = 0; i < 2; ++i) *p += x;
  }
  return std::get<1>(v) * x;
}
PROGRAM(variants, 1, {0.27}, {1.9})

template <class T>
T lists_and_deques(T x) {
  std::list<T> l{x, 1.0, 2.0};
  std::deque<T> d{x, x * x};
  auto it = l.begin();
  if (x > 1.0) *it = 3.0 * x;
  ++it;
  for (Index<T> i = 0; i < 2; ++i) *it += d[1];
  if (*it > 2.0)
    d[0] = x;
  else
    d[1] -= *it;
  return d[0] * d[1] * l.front() + *it;
}
PROGRAM(lists_and_deques, 1, {0.27}, {1.9})

template <class T>
void smooth(std::span<T> v) {
  for (std::size_t i = 1; i + 1 < v.size(); ++i)
    if (v[i] > v[i - 1]) v[i] = 0.5 * (v[i - 1] + v[i + 1]);
}
template <class T>
T spans(T x) {
  std::vector<T> v{x, 2.0, x * x, 0.1};
  smooth<T>(v);
  if (v[1] > 1.0) smooth(std::span<T>(v).subspan(1));
  return v[0] + v[1] * v[2];
}
PROGRAM(spans, 1, {0.27}, {1.9})

template <class T>
T pairs_and_tuples(T x, T y) {
  std::pair<T, std::tuple<T, T>> p{x, {y, 1.0}};
  auto& [a, rest] = p;
  auto& [b, c] = rest;
  if (x > y) p.first = y * 2.0;
  for (Index<T> i = 0; i < 3; ++i) {
    if (std::get<1>(rest) > 2.0) break;
    c += a + b;
    std::get<0>(p.second) *= 1.1;
  }
  p = std::pair<T, std::tuple<T, T>>(c, {a, b});
  return a - b * c;
}
PROGRAM(pairs_and_tuples, 2, {0.2, 0.7}, {1.8, 0.3})

template <class T>
T vector_made_inside(T x) {
  T r = 0.0;
  for (Index<T> i = 0; i < 3; ++i) {
    std::vector<T> v;
    for (int k = 0; k < 3; ++k) v.push_back(x * number(i) + k);
    v.pop_back();
    if (v.back() > 2.0) r += v[0];
    std::optional<T> o;
    o.emplace(v[0]);
    o.reset();
    o = r;
    r = *o + 0.1;
  }
  return r * x;
}
PROGRAM(vector_made_inside, 1, {0.27}, {1.9})

template <class T>
T vector_grown_before(T x) {
  std::vector<T> v;
  for (int k = 0; k < 4; ++k) {
    v.push_back(k == 0 ? x : v.back() * 0.5 + x);
    if (v.back() > 1.0) v[v.size() - 1] -= 0.4;
  }
  v.erase(v.begin());
  v.insert(v.begin(), x * x);
  if (x > 1.0) v[3] = v[0];
  v.resize(3);
  for (Index<T> i = 0; i < 2; ++i) v[2] += v[0] * v[1];
  return v[2];
}
PROGRAM(vector_grown_before, 1, {0.27}, {1.9})

template <class T>
std::vector<T> returned_vector(const T& x) {
  if (x > 1.0) return {x, x * x, 1.0};
  return {1.0, x, 0.5 * x};
}
template <class T>
T vectors_returned(T x) {
  const std::vector<T> v = returned_vector(x);
  T r = 0.0;
  for (const auto& e : v) r += e * e;
  return r > 2.0 ? returned_vector(r)[1] : r;
}
PROGRAM(vectors_returned, 1, {0.27}, {1.9})

template <class T>
struct Layer {
  std::vector<T> w;
  std::array<T, 2> b{0.1, -0.2};
  std::array<T, 2> operator()(const std::array<T, 2>& x) const {
    std::array<T, 2> y = b;
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t j = 0; j < 2; ++j) y[i] += w[2 * i + j] * x[j];
      if (y[i] < 0.0) y[i] *= 0.1;
    }
    return y;
  }
};
template <class T>
T network(T x, T y) {
  std::vector<Layer<T>> layers{{{x, 1.0, -0.5, y}}, {{y, -0.7, 0.3, x}}};
  std::array<T, 2> h{1.0, x};
  for (const auto& layer : layers) h = layer(h);
  for (Index<T> i = 0; i < 2; ++i) {
    h = layers[0](h);
    if (h[0] > h[1]) layers[0].w[1] -= 0.2 * h[0];
  }
  return h[0] - h[1];
}
PROGRAM(network, 2, {0.2, 0.7}, {1.8, 0.3})

template <class T>
T sorted_by_swaps(T x, T y, T z) {
  T a[] = {x, y, z, x * y};
  for (int pass = 0; pass < 3; ++pass)
    for (int i = 0; i + 1 < 4 - pass; ++i)
      if (a[i] > a[i + 1]) std::swap(a[i], a[i + 1]);
  return a[0] + 2.0 * a[1] + 3.0 * a[2] + 4.0 * a[3];
}
PROGRAM(sorted_by_swaps, 3, {0.2, 0.7, 1.5}, {1.8, 0.3, -1.0}, {1.1, 2.0, 1.6})

template <class T>
T convolution(T x, T y) {
  std::array<T, 5> in{x, y, x * y, 1.0, -x}, out;
  for (std::size_t i = 0; i < 5; ++i) {
    out[i] = 0.0;
    for (std::size_t k = 0; k < 3; ++k) {
      if (i + k < 1 || i + k > 5) continue;
      const T& v = in[i + k - 1];
      out[i] += v > 0.0 ? v * (0.5 + 0.25 * static_cast<double>(k)) : T(0.0);
    }
  }
  T sum = 0.0;
  for (const T& v : out) sum += v * v;
  return sum;
}
PROGRAM(convolution, 2, {0.2, 0.7}, {1.8, -0.3})
