// Variables that branches, loops and functions assign, by every way in which C++ reaches a variable: the
// program being staged computes what the same program over double does, and its gradient.
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "agree.hpp"

// Over double, too, a variable may have no value where none is asked for.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;

// Programs are written once, over a number type T: double, with C++'s own control flow, or Rep<double>.

template <class T>
constexpr bool plain = std::is_same_v<T, double>;
/// What stands for a U beside T.
template <class T, class U>
using Beside = std::conditional_t<plain<T>, U, Rep<U>>;

template <class C, class B>
void repeat(C condition, B body) {
  if constexpr (std::is_same_v<std::invoke_result_t<C&>, bool>)
    while (condition()) body();
  else
    WHILE(condition, body);
}
/// body(i) for i from 0 to n - 1, n a number: i is one too.
template <class T, class B>
void times(const T& n, B body) {
  if constexpr (plain<T>)
    for (int i = 0; i < static_cast<int>(n); ++i) body(static_cast<double>(i));
  else
    FOR(0, cast<std::int64_t>(n), [&](const I& i) { body(cast<double>(i)); });
}
template <class T, class B>
T called(const char* name, B body, const T& x) {
  if constexpr (plain<T>)
    return body(x);
  else
    return FUN<double(double)>(name, body)(x);
}

/// A program of two numbers.
struct Program {
  template <class F>
  Program(const char* its_name, F f) : name(its_name), on_double(f), on_rep(f) {}
  std::string name;
  std::function<double(double, double)> on_double;
  std::function<D(D, D)> on_rep;
};

const std::vector<std::array<double, 2>> points{{0.6, 1.7}, {1.3, 0.43}, {2.2, 2.9}};

void check(const std::vector<Program>& programs) {
  const Ways ways{.order = 1, .clang = false};
  for (const Program& p : programs) {
    INFO(p.name);
    auto agreement = agree::at_points<double, 2>(ways, p.name, p.on_rep, points);
    std::vector<std::vector<double>> expected;
    for (const auto& [x, y] : points) expected.push_back({p.on_double(x, y)});
    agreement.judge(0, "over double", expected, 1e-10);
    agree::report(agreement.run());
  }
  // Clang costs by the program: all of them in one.
  const auto sum = [&](D x, D y) {
    D total = 0.0;
    for (const Program& p : programs) total += p.on_rep(x, y);
    return total;
  };
  const auto compiled = compile(value_and_grad(sig<double(double, double)>(sum)), {.target = Target::cpp});
  const auto reference = eager(value_and_grad(sig<double(double, double)>(sum)));
  for (const auto& [x, y] : points) {
    const auto [value, slopes] = compiled(x, y);
    const auto [expected, expected_slopes] = reference(x, y);
    CHECK(value == Approx(expected));
    CHECK(std::get<0>(slopes) == Approx(std::get<0>(expected_slopes)));
    CHECK(std::get<1>(slopes) == Approx(std::get<1>(expected_slopes)));
  }
}

// ---- ways to reach a variable ----

template <class T>
struct Pair {
  T a, b;
};

/// Adds to a variable when it ends.
template <class T>
struct AtEnd {
  T& to;
  T by;
  ~AtEnd() { to += by; }
};

template <class T>
class Hidden {
 public:
  explicit Hidden(const T& v) : value_(v) {}
  void grow(const T& by) { value_ += by * value_; }
  const T& value() const { return value_; }

 private:
  T value_;
};
template <class T>
struct Base {
  T part = 1.0;
  void add(const T& v) { part += v; }
};
template <class T>
struct Derived : Base<T> {
  T own = 2.0;
};

/// Runs `change` in a branch, in both sides of one, in a loop, and in a branch in a loop.
template <class T, class F>
void everywhere(const T& x, const T& y, F change) {
  IF(
      x > 1.0, [&] { change(x); }, [] {});
  IF(
      y > 1.0, [&] { change(y); }, [&] { change(x * y); });
  times(T(3.0), [&](const T& i) { change(0.5 * i); });
  times(T(2.0), [&](const T& i) {
    IF(
        i > x, [&] { change(y); }, [] {});
  });
}

}  // namespace

TEST_CASE("a variable assigned through whatever leads to it", "[variables]") {
  check({
      {"its name",
       []<class T>(T x, T y) {
         T v = x;
         everywhere(x, y, [&](const T& u) { v = v * 0.5 + u; });
         return v;
       }},
      {"a pointer",
       []<class T>(T x, T y) {
         T v = x, *p = &v;
         everywhere(x, y, [&](const T& u) { *p = *p * 0.5 + u; });
         return v;
       }},
      {"a pointer that changes",
       []<class T>(T x, T y) {
         T v = x, w = y, *p = &v;
         everywhere(x, y, [&](const T& u) { *p += u; });
         p = &w;
         everywhere(y, x, [&](const T& u) { *p = 0.5 * *p + u; });
         return v * w;
       }},
      {"a pointer to a member",
       []<class T>(T x, T y) {
         Pair<T> v{x, y};
         T Pair<T>::*m = &Pair<T>::b;
         everywhere(x, y, [&](const T& u) { v.*m += u * v.a; });
         return v.a * v.b;
       }},
      {"a reference in a struct",
       []<class T>(T x, T y) {
         struct Holder {
           T& r;
         };
         T v = x;
         Holder h{v};
         everywhere(x, y, [h](const T& u) { h.r = h.r * 0.5 + u; });
         return v;
       }},
      {"a tuple of references",
       []<class T>(T x, T y) {
         T v = x, w = y;
         everywhere(x, y, [&](const T& u) { std::tie(v, w) = std::tuple<T, T>(w, v * 0.5 + u); });
         return v - 2.0 * w;
       }},
      {"std::ref",
       []<class T>(T x, T y) {
         T v = x;
         const auto r = std::ref(v);
         everywhere(x, y, [r](const T& u) { r.get() = r.get() * 0.5 + u; });
         return v;
       }},
      {"std::function",
       []<class T>(T x, T y) {
         T v = x;
         const std::function<void(const T&)> f = [&](const T& u) { v = v * 0.5 + u; };
         everywhere(x, y, f);
         return v;
       }},
      {"a lambda's own copy",
       []<class T>(T x, T y) {
         auto f = [v = x](const T& u) mutable { return v = v * 0.5 + u; };
         T sum = 0.0;
         everywhere(x, y, [&](const T& u) { sum += f(u); });
         auto g = f;
         IF(
             x > 1.0, [&] { sum += g(x); }, [] {});
         return sum * f(x) + g(y);
       }},
      {"a destructor",
       []<class T>(T x, T y) {
         T v = x;
         everywhere(x, y, [&](const T& u) {
           AtEnd<T> end{v, u};
           v *= 0.5;
         });
         return v;
       }},
      {"a member function of private members",
       []<class T>(T x, T y) {
         Hidden<T> v(x);
         everywhere(x, y, [&](const T& u) { v.grow(0.1 * u); });
         return v.value();
       }},
      {"a base class",
       []<class T>(T x, T y) {
         Derived<T> v;
         Base<T>& base = v;
         everywhere(x, y, [&](const T& u) {
           base.add(u);
           v.own = 0.5 * v.own + v.part;
         });
         return v.own * v.part;
       }},
      {"a whole struct",
       []<class T>(T x, T y) {
         Pair<T> v{x, y};
         everywhere(x, y, [&](const T& u) { v = Pair<T>{v.b, 0.5 * v.a + u}; });
         return v.a - 2.0 * v.b;
       }},
      {"structured bindings",
       []<class T>(T x, T y) {
         Pair<T> v{x, y};
         auto& [a, b] = v;
         // A lambda of C++20 names a binding, but not all compilers capture one by reference.
         T &first = a, &second = b;
         everywhere(x, y, [&](const T& u) { first += second * 0.1 * u; });
         return v.a * b;
       }},
  });
}

TEST_CASE("variables in arrays and containers that keep their size", "[variables]") {
  check({
      {"an array of C",
       []<class T>(T x, T y) {
         T v[3] = {x, y, 1.0};
         everywhere(x, y, [&](const T& u) {
           v[0] = v[1] + u;
           v[2] += 0.1 * v[0];
         });
         return v[0] * v[2];
       }},
      {"std::array, element by element and whole",
       []<class T>(T x, T y) {
         std::array<T, 3> v{x, y, 1.0};
         everywhere(x, y, [&](const T& u) {
           v[0] = v[1] + u;
           v = {v[2], v[0], 0.5 * v[1]};
         });
         return v[0] + 2.0 * v[1] + 3.0 * v[2];
       }},
      {"std::vector",
       []<class T>(T x, T y) {
         std::vector<T> v{x, y, 1.0};
         everywhere(x, y, [&](const T& u) {
           v.front() = v.at(1) + u;
           for (T& e : v) e *= 0.7;
           std::swap(v.front(), v.back());
         });
         return v[0] + 2.0 * v[1] + 3.0 * v[2];
       }},
      {"std::vector, copied over",
       []<class T>(T x, T y) {
         std::vector<T> v{x, y, 1.0};
         everywhere(x, y, [&](const T& u) {
           const std::vector<T> next{v[2], v[0] + u, 0.5 * v[1]};
           v = next;
         });
         return v[0] + 2.0 * v[1] + 3.0 * v[2];
       }},
      {"std::map and std::list",
       []<class T>(T x, T y) {
         std::map<std::string, T> m{{"a", x}, {"b", y}};
         std::list<T> l{x, y};
         everywhere(x, y, [&](const T& u) {
           m["a"] = 0.5 * m["b"] + u;
           l.back() += m.find("a")->second;
           m.begin()->second -= 0.1 * l.front();
         });
         return m["a"] * m["b"] + l.back();
       }},
      {"std::optional that has a value, and std::variant",
       []<class T>(T x, T y) {
         std::optional<T> o = x;
         std::variant<int, T> v = y;
         everywhere(x, y, [&](const T& u) {
           *o = 0.5 * *o + u;
           o = o.value() * 0.9;
           std::get<1>(v) += 0.1 * *o;
           std::visit([&](auto& e) { x += 0.1 * e; }, v);
         });
         return *o * std::get<T>(v) + x;
       }},
      {"unique_ptr and shared_ptr",
       []<class T>(T x, T y) {
         const auto u = std::make_unique<T>(x);
         const auto s = std::make_shared<Pair<T>>(Pair<T>{x, y});
         everywhere(x, y, [&](const T& by) {
           *u = 0.5 * *u + by;
           s->a += 0.1 * *u;
           std::swap(s->a, s->b);
         });
         return *u * s->a - s->b;
       }},
      {"a struct that owns a vector",
       []<class T>(T x, T y) {
         struct Layer {
           std::vector<T> w;
           T b;
         };
         std::vector<Layer> v{{{x, y}, 1.0}, {{y, 1.0}, x}};
         everywhere(x, y, [&](const T& u) {
           for (Layer& l : v) {
             l.b = 0.5 * l.b + l.w[0] * u;
             l.w[0] = 0.7 * l.w[1] + 0.1 * l.b;
           }
         });
         return v[0].w[0] * v[1].b + v[0].b;
       }},
      {"a container made in a branch or loop does there what it does elsewhere",
       []<class T>(T x, T y) {
         T sum = 0.0;
         everywhere(x, y, [&](const T& u) {
           std::vector<T> v;
           for (int k = 0; k < 3; ++k) v.push_back(u * k);
           v.pop_back();
           v.insert(v.begin(), x);
           std::optional<T> o = v[1];
           o.reset();
           o = v[2];
           sum += *o * v[0];
         });
         return sum;
       }},
  });
}

namespace {

const std::vector<Program>& nested() {
  static const std::vector<Program> all{
      {"a branch in a loop in a branch",
       []<class T>(T x, T y) {
         T v = x, w = 1.0;
         IF(
             x > 1.0,
             [&] {
               times(T(4.0), [&](const T& i) {
                 IF(
                     v < 3.0, [&] { v += 0.4 * i + y; }, [&] { w *= v; });
               });
             },
             [&] { w = v * y; });
         return v * w;
       }},
      {"loops in a loop in a loop",
       []<class T>(T x, T y) {
         T v = x, total = 0.0;
         times(T(3.0), [&](const T& i) {
           T row = y;
           times(i + 1.0, [&](const T& j) {
             T cell = row;
             times(T(2.0), [&](const T& k) {
               cell = 0.5 * cell + v * k;
               total += 0.1 * cell;
             });
             row = cell + j;
           });
           v = 0.5 * v + 0.1 * row;
         });
         return total * v;
       }},
      {"branches in a branch in a branch",
       []<class T>(T x, T y) {
         T v = 1.0, w;
         IF(
             x > 1.0,
             [&] {
               IF(
                   y > 1.0,
                   [&] {
                     w = y;
                     IF(
                         x > y, [&] { v = x; }, [&] { w = x * x; });
                   },
                   [&] { w = 2.0; });
               v *= w;
             },
             [&] { w = v + x; });
         return v * w + y;
       }},
      {"a loop in a branch in a loop, both of unknown length",
       []<class T>(T x, T y) {
         T v = x, n = 0.0;
         repeat([&] { return v < 20.0; },
                [&] {
                  n += 1.0;
                  IF(
                      n * y < 5.0,
                      [&] {
                        repeat([&] { return v * y < 3.0 * n; }, [&] { v = v * 1.5 + 0.1; });
                        v += 1.0;
                      },
                      [&] { v *= 2.0; });
                });
         return v * n;
       }},
      {"a condition that assigns",
       []<class T>(T x, T y) {
         T v = x, calls = 0.0;
         repeat(
             [&] {
               calls += 1.0;
               v += 0.3 * y;
               return v < 4.0;
             },
             [&] { v += 0.2 * calls; });
         return v * calls;
       }},
      {"a condition that assigns, in a branch in a loop",
       []<class T>(T x, T y) {
         T v = x, last = 0.0;
         times(T(3.0), [&](const T& i) {
           IF(
               i * y > 0.5,
               [&] {
                 repeat([&] { return (last = v * v) < 3.0 + i; }, [&] { v += 0.25; });
                 v -= 1.0;
               },
               [&] { v += last; });
         });
         return v * last + x;
       }},
      {"a condition with a branch that assigns",
       []<class T>(T x, T y) {
         T v = x, hits = 0.0;
         repeat(
             [&] {
               IF(
                   v > y, [&] { hits += v; }, [] {});
               return v < 5.0;
             },
             [&] { v = 1.3 * v + 0.2; });
         return v * hits;
       }},
      {"a function with variables of its own, called in a loop in a branch",
       []<class T>(T x, T y) {
         T v = x;
         const auto body = [](const T& u) {
           T a = u, b = 1.0, *p = &b;
           times(T(3.0), [&](const T& i) {
             IF(
                 a > 1.0, [&] { *p += a * i; }, [&] { a += 0.6; });
           });
           return a * b;
         };
         IF(
             y > 1.0, [&] { times(T(2.0), [&](const T&) { v = 0.1 * called<T>("inner", body, v) + x; }); },
             [&] { v = called<T>("inner", body, y); });
         return v + called<T>("inner", body, x);
       }},
      {"a function that reads variables of the outside as they are at each call",
       []<class T>(T x, T y) {
         T k = 1.0, sum = 0.0;
         const auto scaled = [&](const T& u) { return u * k + y; };
         times(T(3.0), [&](const T& i) {
           sum += called<T>("scaled", scaled, x + i);
           k = k * 0.5 + sum * 0.1;
           IF(
               sum > 5.0, [&] { sum = 0.5 * called<T>("scaled", scaled, sum); }, [] {});
         });
         return sum + k;
       }},
      {"a function inside a function",
       []<class T>(T x, T y) {
         const auto outer = [](const T& u) {
           T w = u;
           const auto inner = [&](const T& z) {
             T r = z;
             times(T(2.0), [&](const T&) { r = r * 0.5 + w; });
             return r;
           };
           T first = called<T>("inner", inner, u);
           IF(
               u > 1.0, [&] { w = first; }, [] {});
           return first + called<T>("inner", inner, w);
         };
         return called<T>("outer", outer, x) * y + called<T>("outer", outer, y);
       }},
      {"early values of loops without iterations",
       []<class T>(T x, T y) {
         T v = x, w = y;
         times(T(0.0), [&](const T& i) { v = w * i; });
         times(x - 5.0, [&](const T&) { w = 0.0; });
         repeat([&] { return v > 100.0; }, [&] { v = w; });
         IF(
             x > 1.0, [&] { times(x - 2.5, [&](const T&) { v *= 2.0; }); }, [&] { w *= v; });
         return v * w;
       }},
      {"variables that move on: a delay line",
       []<class T>(T x, T y) {
         T a = x, b = y, c = 1.0;
         times(T(5.0), [&](const T& i) {
           const T next = 0.5 * a + 0.1 * i * c;
           c = b;
           b = a;
           a = next;
         });
         return a + 2.0 * b + 3.0 * c;
       }},
      {"what a loop reads and does not change, and what it changes back",
       []<class T>(T x, T y) {
         T v = x, w = y, u = 2.0;
         times(T(3.0), [&](const T&) {
           const T before = w;
           w = w * v;
           u += w;
           w = before;
           v = v;
         });
         return u * v + w;
       }},
  };
  return all;
}

}  // namespace

TEST_CASE("branches, loops and functions in each other", "[variables]") { check(nested()); }

TEST_CASE("the gradients of all modes are the same", "[variables]") {
  const auto sum = [](D x, D y) {
    D total = 0.0;
    for (const Program& p : nested()) total += p.on_rep(x, y);
    return total;
  };
  const std::function<D(D, D)> f = sum;
  const auto expected = compile(grad(f), {.target = Target::c});
  const auto test = [&](const auto& g) {
    using Run = std::function<std::tuple<double, double>(double, double)>;
    for (const Run& run : {Run(eager(g)), Run(compile(g, {.target = Target::c}))})
      for (const auto& [x, y] : points) {
        const auto [dx, dy] = expected(x, y);
        const auto [got_x, got_y] = run(x, y);
        CHECK(got_x == Approx(dx).epsilon(1e-10));
        CHECK(got_y == Approx(dy).epsilon(1e-10));
      }
  };
  test(grad<mode::forward>(f));
  test(grad<mode::taped>(f));
  test(grad<mode::checkpointed>(f));
  test(grad<mode::continuation>(f));
}

TEST_CASE("no value yet, swaps, moves and self-assignment", "[variables]") {
  check({
      {"assigned on both sides",
       []<class T>(T x, T y) {
         T a, b;
         IF(
             x > 1.0,
             [&] {
               a = y;
               b = x * y;
             },
             [&] {
               b = 3.0;
               a = x;
             });
         return a * b;
       }},
      {"assigned on one side, and read where it was",
       []<class T>(T x, T y) {
         T a, r = y;
         IF(
             x > 1.0, [&] { a = x * x; }, [] {});
         IF(
             x > 1.0, [&] { r += a; }, [] {});
         return r;
       }},
      {"assigned first in a loop, and read after it",
       []<class T>(T x, T y) {
         T last;
         times(T(3.0), [&](const T& i) { last = x * i + y; });
         T found;
         T v = y;
         repeat([&] { return v < 4.0; },
                [&] {
                  IF(
                      v < 3.0, [&] { found = v; }, [] {});
                  v += 1.0 + 0.01 * x;
                });
         IF(
             y < 3.0, [&] { last *= found; }, [] {});
         return last;
       }},
      {"swapped",
       []<class T>(T x, T y) {
         T a = x, b = y, *p = &b;
         everywhere(x, y, [&](const T& u) {
           std::swap(a, *p);
           a += u;
         });
         std::array<T, 2> c{x, a}, d{b, y};
         IF(
             a > b, [&] { std::swap(c, d); }, [] {});
         return a * c[0] - b * d[1];
       }},
      {"exchanged",
       []<class T>(T x, T y) {
         T a = x, b = y;
         everywhere(x, y, [&](const T& u) { b += std::exchange(a, 0.5 * b + u); });
         return a * b;
       }},
      {"assigned to itself",
       []<class T>(T x, T y) {
         T a = x, &r = a;
         everywhere(x, y, [&](const T& u) {
           a = r;
           r = a;
           a += 0.1 * u;
         });
         return a;
       }},
      {"moved in and out",
       []<class T>(T x, T y) {
         T a = x, b = y;
         everywhere(x, y, [&](const T& u) {
           T c = std::move(a);
           a = std::move(b);
           b = c + u;
         });
         std::vector<T> v{a, b};
         const std::vector<T> w = std::move(v);
         return w[0] * w[1];
       }},
  });
}

TEST_CASE("variables of the other types", "[variables]") {
  check({
      {"integers and truth values",
       []<class T>(T x, T y) {
         Beside<T, std::int64_t> n = 0;
         Beside<T, std::int32_t> small = 1;
         Beside<T, bool> found = false;
         T sum = 0.0;
         everywhere(x, y, [&](const T& u) {
           n += 1;
           IF(
               u > 1.0, [&] { small *= 2; }, [&] { found = !found; });
           IF(
               n > 3, [&] { sum += u * x; }, [] {});
           IF(
               small > 3, [&] { sum *= 0.5; }, [&] { n += 2; });
           IF(
               found, [&] { sum += y; }, [] {});
         });
         return sum;
       }},
      {"float",
       []<class T>(T x, T y) {
         Beside<T, float> f = 1.0F;
         Beside<T, bool> above;
         T sum = 0.0;
         everywhere(x, y, [&](const T& u) {
           f *= 0.5F;
           above = f > 0.1F;
           IF(
               above, [&] { sum += u; }, [&] { f += 1.0F; });
         });
         return sum * x;
       }},
  });
}

TEST_CASE("arrays and tensors that branches and loops assign", "[variables]") {
  using A = Rep<Array<double>>;
  const Ways ways{.order = 1};
  const auto test = [&](const char* name, const std::function<D(A)>& f) {
    for (const std::vector<double>& a : {std::vector<double>{0.3, 1.2, 0.9}, {1.6, 0.2, 2.1, 0.4}})
      check_all(ways, name, f, a);
  };
  test("whole, in a branch", [](A a) {
    A b = a;
    IF(
        a[0] > 1.0, [&] { b = a * a; }, [&] { b = 2.0 * b; });
    return sum(b * a);
  });
  test("of another length in a branch", [](A a) {
    A b = a;
    IF(a[0] > 1.0, [&] { b = concat(a, 2.0 * a); });
    return sum(b * b);
  });
  test("element by element, through a pointer", [](A a) {
    A b = a, *p = &b;
    FOR(1, a.size(), [&](const I& i) {
      IF(
          a[i] > 1.0, [&] { *p = p->set(i, a[i] * b[i - 1]); }, [&] { *p = p->set(i - 1, b[i] + 1.0); });
    });
    return sum(b);
  });
  test("longer with each iteration", [](A a) {
    A b = a;
    D s = 0.0;
    FOR(0, 3, [&](const I&) {
      b = concat(b, 0.5 * a);
      s += b[b.size() - 1] * b[0];
    });
    return s + sum(b * b);
  });
  test("without a value before it is assigned", [](A a) {
    A b, c, d;
    IF(
        a[0] > 1.0, [&] { b = a; }, [&] { b = a * a; });
    FOR(0, 3, [&](const I& i) {
      c = a * cast<double>(i);
      IF(i < 2, [&] { d = c + b; });
    });
    return sum(b * c) + sum(d);
  });
  test("without a value, in loops in each other", [](A a) {
    A kept;
    D last;
    FOR(0, 2, [&](const I& i) {
      FOR(0, 3, [&](const I& j) {
        IF(i + j == 1, [&] {
          kept = a * cast<double>(i + 1);
          last = kept[j];
        });
      });
    });
    return sum(kept * a) * last;
  });
  test("in structs and containers", [](A a) {
    struct State {
      A position, speed;
      D time = 0.0;
    };
    std::vector<State> v{{a, 0.1 * a}, {2.0 * a, a}};
    FOR(0, 3, [&](const I& i) {
      for (State& s : v) {
        s.time += cast<double>(i);
        IF(
            s.position[0] > 1.0, [&] { s.speed = -s.speed; }, [&] { s.position = s.position + s.speed; });
      }
      std::swap(v[0].speed, v[1].position);
    });
    return sum(v[0].position * v[1].speed) + sum(v[1].position) * v[0].time;
  });
  test("a tensor", [](A a) {
    Rep<Tensor<double, dyn, dyn>> m = outer(a, a);
    Rep<Tensor<double, 2, 2>> small = fill(a[0], 2, 2);
    FOR(0, a.size(), [&](const I& i) {
      IF(
          a[i] > 1.0, [&] { m = m.set(i, 0, a[i]); }, [&] { small = small * a[i] + 1.0; });
    });
    return sum(m) + sum(small);
  });
}
