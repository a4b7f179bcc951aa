// Endless loops that name nothing staged: what they change is reached through member functions, functions that a
// loop calls, and pointers. They are loops of the program where their end depends on it, and of C++ where it
// does not.
#include <vector>

#include "program.hpp"

using namespace native_corpus;

template <class T>
struct Rejection {
  Index<T> state;
  T next() {
    state = (state * 48271) % 2147483647;
    return number(state) / 2147483647.0;
  }
  T inside() {
    while (true) {
      T u = 2.0 * next() - 1.0, v = 2.0 * next() - 1.0;
      if (u * u + v * v >= 1.0) continue;
      return u * u + v * v;
    }
  }
};
template <class T>
T rejection(T scale, T n) {
  Rejection<T> r{12345};
  T sum = 0.0;
  for (Index<T> i = 0; i < integer(n); ++i) sum += scale * r.inside();
  return sum;
}
PROGRAM(rejection, 2, {2.0, 10.4}, {0.5, 3.6})

template <class T>
struct Halving {
  T x;
  int calls = 0;
  bool more() { return ++calls < 4; }
  void step() { x = 0.5 * x + 0.1; }
  bool go_on() {
    step();
    return more();
  }
};
template <class T>
T known_end(T x) {  // by a member that is plain: unrolled
  struct Run : Halving<T> {
    explicit Run(T start) : Halving<T>{start} {}
    T run() {
      for (;;) {
        if (!this->go_on()) break;
      }
      return this->x;
    }
  };
  return Run(x).run() * x;
}
PROGRAM(known_end, 1, {0.4}, {1.3})

template <class T>
struct Collector {
  std::vector<T> values;
  T at;
  bool add() {
    values.push_back(at);
    at = sin(at) + 0.3;
    return values.size() < 3;
  }
  void fill() {
    while (true) {
      if (!add()) return;
    }
  }
};
template <class T>
T growing_container(T x) {
  Collector<T> c{{}, x};
  c.fill();
  T sum = 0.0;
  for (const T& v : c.values) {
    if (v > 0.5) sum += v * v;
  }
  return sum * c.at;
}
PROGRAM(growing_container, 1, {0.4}, {1.3}, {-0.7})

template <class T>
struct Search {
  T lo, hi;
  T width() const { return hi - lo; }
  void halve(const T& target) {
    T middle = 0.5 * (lo + hi);
    if (middle * middle > target)
      hi = middle;
    else
      lo = middle;
  }
};
template <class T>
T nested_endless(T x) {
  struct Both {
    Search<T> s;
    T target, sum = 0.0;
    Index<T> rounds = 0;
    void inner() {
      for (;;) {
        s.halve(target);
        if (s.width() < 1e-3) break;
      }
    }
    T run() {
      while (true) {
        s.lo = 0.0;
        s.hi = 2.0 + target;
        inner();
        sum += s.hi * target;
        target = 0.7 * target;
        rounds += 1;
        if (sum > 3.0) return sum;
        if (rounds > 5) break;
      }
      return sum - 1.0;
    }
  };
  Both b{{0.0, 0.0}, x};
  return b.run();
}
PROGRAM(nested_endless, 1, {0.4}, {1.3}, {2.9})

template <class T>
T by_pointer(T x) {
  T value = x;
  struct Link {
    T* to;
    void shrink() { *to *= 0.6; }
    void run() {
      do {
        shrink();
        if (*to < 0.2) break;
      } while (true);
    }
  };
  Link{&value}.run();
  return value * x;
}
PROGRAM(by_pointer, 1, {0.4}, {1.3}, {2.9})
