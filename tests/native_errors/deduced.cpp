// Result types that must be written.
#include <lantern/lantern.hpp>

using namespace lantern;

template <class T>
auto from_loop(T x) {
  while (x > 1.0) {
    x = x * 0.5;
    if (x < 0.7) return x * 2.0;
  }
  return x;
}
template <class T>
auto partial(T x) {
  if (x > 0.0) {
    if (x > 1.0) return x;
    x = x + 1.0;
  }
  return x * x;
}
template <class T>
auto recursive(T x) -> decltype(x * 1.0);
Rep<double> use(Rep<double> x) {
  const auto generic = [](auto v) {
    while (true) {
      if (v > 3.0) return v;
      v = v * 2.0;
    }
  };
  return from_loop(x) + partial(x) + generic(x);
}
