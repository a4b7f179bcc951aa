// Structs, elements and results in the caller's memory, in a program with native control flow.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <lantern/lantern.hpp>
#include <new>
#include <string>
#include <utility>
#include <vector>

using namespace lantern;

namespace {
std::size_t allocations = 0;
}
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using D = Rep<double>;

struct Base {
  D a;
};
/// Members in both classes are listed.
struct Derived : Base {
  D b;
  static auto lantern_fields(auto& self) { return std::tie(self.a, self.b); }
};
/// All of them in the base class.
struct Named : Base {
  D twice() const { return 2.0 * a; }
};
struct Vec2 {
  D e[2];
};
template <class T>
struct Rates {
  T growth, decay[2];
};

D derived(D x) {
  Derived d;
  d.a = x;
  d.b = 1.0;
  if (x > 1.0) d.b = x;
  return d.a + d.b - 0.5;
}
D named(D x) {
  Named n;
  n.a = x;
  while (n.a > 1.0) n.a = n.a * 0.5;
  return n.twice();
}
D elements(D x) {
  Vec2 v{{x, 2.0 * x}};
  if (x > 1.0) {
    v.e[0] = 5.0;
    std::swap(v.e[0], v.e[1]);
  }
  return v.e[0] - v.e[1];
}
/// std::max, std::exchange and std::swap where what they change is staged.
D standard(D start, D rate) {
  D a = start, b = std::max(start, rate);
  if (a < rate) {
    const D before = std::exchange(a, b * 2.0);
    std::swap(a, b);
    b += before;
  }
  return a - std::min(b, std::abs(start));
}
template <class T>
T relu(T v) {
  using std::max;
  return max(v, T(0.0));
}
D grown(Rates<D> r, D t) { return r.growth * exp(-r.decay[0] * t) + r.decay[1] * relu(t); }

Rep<Array<double>> moved(Rep<Array<double>> u, Rep<std::int64_t> by) {
  Rep<Array<double>> v = u;
  for (Rep<std::int64_t> i = 0; i < u.size(); ++i) v[i + by] = u[i];
  return v;
}
Rep<Array<double>> added(Rep<Array<double>> u, Rep<std::int64_t> by) {
  u[by] += 1.0;
  return u;
}
std::tuple<Rep<Array<double>>, D> scaled(Rep<Array<double>> x, D by) { return {by * x, by * by}; }

LANTERN_FUNCTION(of_derived, derived)
LANTERN_FUNCTION(of_named, named)
LANTERN_FUNCTION(of_elements, elements)
LANTERN_FUNCTION(of_standard, standard)
LANTERN_FUNCTION(slopes, jacobian(grown))
LANTERN_FUNCTION(shifted, moved)
LANTERN_FUNCTION(increased, added)
LANTERN_FUNCTION(scale, scaled)

template <class F>
void print_error(F f) {
  try {
    f();
    std::puts("no error");
  } catch (const Error& e) {
    const std::string text = e.what();
    std::puts(text.substr(0, text.find('(')).c_str());
    std::puts(text.substr(text.rfind('/') + 1).c_str());
  }
}

int main() {
  std::printf("%g %g %g %g\n", of_derived(1.5), of_named(6.0), of_elements(1.5), of_standard(1.0, 3.0));
  const auto [by_rates, by_time] = slopes({2.0, {0.5, 3.0}}, 1.0);
  std::printf("%g %g %g %g\n", by_rates.growth, by_rates.decay[0], by_rates.decay[1], by_time);
  print_error([] { shifted(std::vector<double>{1, 2, 3}, 1); });
  print_error([] { increased(std::vector<double>{1, 2, 3}, 3); });

  std::vector<double> x(3, 2.0), y(3);
  double square = 0;
  scale.into(y, square, x, 3.0);
  const std::size_t before = allocations;
  for (int i = 0; i < 10; ++i) scale.into(y, square, x, 3.0);
  const std::size_t asked = allocations - before;
  std::printf("%g %g %zu\n", y[2], square, asked);
  scale.accumulate_into(y, square, x, 1.0);
  const auto pointer = &scale;
  std::printf("%g %g %g\n", y[0], square, std::get<1>(pointer(x, 4.0)));
}
