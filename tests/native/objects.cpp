// Classes of Reps: private members, constructors, destructors, bases, operators, templates with members
// defined outside.
#include <optional>
#include <utility>

#include "program.hpp"

using namespace native_corpus;

template <class T>
class Counter {
 public:
  explicit Counter(const T& start) : value_(start) {}
  void step(const T& x) {
    if (x > 1.0)
      value_ += x;
    else
      value_ -= 0.5 * x;
    ++steps_;
  }
  const T& value() const { return value_; }
  T mean() const { return value_ / number(steps_); }

 private:
  T value_;
  Index<T> steps_ = 0;
};
template <class T>
T private_members(T x) {
  Counter<T> c(0.5);
  c.step(x);
  if (c.value() > 1.0) c.step(x * x);
  for (Index<T> i = 0; i < 3; ++i) c.step(x - 0.2 * number(i));
  return c.mean() * c.value();
}
PROGRAM(private_members, 1, {0.4}, {1.3}, {2.5})

template <class T>
class Outside {
 public:
  Outside(const T& x, const T& y);
  T run(const Index<T>& n);
  template <class U>
  void add(const U& by);
  static T clipped(const T& v);

 private:
  T x_, y_;
};
template <class T>
Outside<T>::Outside(const T& x, const T& y) : x_(x), y_(0.0) {
  if (y > 1.0)
    y_ = y * x_;
  else
    y_ = y;
}
template <class T>
T Outside<T>::run(const Index<T>& n) {
  for (Index<T> i = 0; i < n; ++i) {
    if (x_ > 4.0) return y_ * number(i);
    x_ += y_;
  }
  return x_;
}
template <class T>
template <class U>
void Outside<T>::add(const U& by) {
  if (x_ < by) x_ += by * y_;
}
template <class T>
T Outside<T>::clipped(const T& v) {
  if (v > 2.0) return 2.0;
  return v < -2.0 ? T(-2.0) : v;
}
template <class T>
T members_defined_outside(T x, T y) {
  Outside<T> o(x, y);
  o.add(1.5);
  T r = o.run(Index<T>(4));
  o.add(x);
  r += Outside<T>::clipped(x + y);
  return r * o.run(Index<T>(2));
}
PROGRAM(members_defined_outside, 2, {0.4, 0.3}, {1.1, 1.3}, {1.7, 1.6})

template <class T>
T declared_first(T x, T y);
template <class T>
struct DeclaredFirst;
template <class T>
T uses_declared(T x) {
  return declared_first(x, T(1.5)) + DeclaredFirst<T>{x}.run();
}
template <class T>
T declared_first(T x, T y) {
  while (x < y) x += 0.4;
  return x;
}
template <class T>
struct DeclaredFirst {
  T start;
  T run() const;
};
template <class T>
T DeclaredFirst<T>::run() const {
  T v = start;
  do v *= 1.3;
  while (v < 2.0);
  return v;
}
PROGRAM(uses_declared, 1, {0.33}, {1.17}, {2.7})

template <class T>
struct AddAtEnd {
  T& to;
  T by;
  ~AddAtEnd() { to += by; }
};
template <class T>
T destructor_in_branch(T x) {
  T y = x;
  if (x > 1.0) {
    AddAtEnd<T> guard{y, 2.0 * x};
    y *= y;
  }
  {
    AddAtEnd<T> guard{y, x};
    if (y > 3.0) y = 0.5 * y;
  }
  return y * x;
}
PROGRAM(destructor_in_branch, 1, {0.4}, {1.3})

template <class T>
T destructor_in_loop(T x) {
  T y = 0.0;
  for (Index<T> i = 0; i < 4; ++i) {
    AddAtEnd<T> guard{y, x * number(i)};
    if (y > 2.0) y -= 1.5;
  }
  return y;
}
PROGRAM(destructor_in_loop, 1, {0.4}, {1.3})

template <class T>
struct Condition {
  T& to;
  ~Condition() {
    if (to > 1.0) to = 1.0 / to;
    while (to < 0.7) to *= 1.2;
  }
};
template <class T>
T destructor_with_statements(T x) {
  {
    Condition<T> c{x};
    x = x * 1.5;
  }
  for (Index<T> i = 0; i < 2; ++i) {
    Condition<T> c{x};
    x = x + 0.25;
  }
  return x * x;
}
PROGRAM(destructor_with_statements, 1, {0.33}, {1.4})

template <class T>
struct Restore {
  T& variable;
  T before;
  explicit Restore(T& v) : variable(v), before(v) {}
  ~Restore() { variable = before; }
};
template <class T>
T restored_at_end(T x, T y) {
  T sum = 0.0;
  for (Index<T> i = 0; i < 3; ++i) {
    Restore<T> r(x);
    if (y > 1.0) x = x * y;
    x += number(i);
    sum += x;
  }
  return sum * x;
}
PROGRAM(restored_at_end, 2, {0.4, 0.3}, {1.1, 1.3})

template <class T>
struct Shape {
  T scale;
  explicit Shape(T s) : scale(s) {
    if (s < 0.0) scale = -s;
  }
  T scaled(T v) const { return v > scale ? v * scale : v + scale; }
};
template <class T>
struct Square : Shape<T> {
  T side;
  Square(T s, T k) : Shape<T>(k), side(s) {
    if (side > 2.0) this->scale *= 0.5;
  }
  T area() const { return this->scaled(side) * side; }
  void grow() {
    while (side < this->scale) side += 0.3;
  }
};
template <class T>
T derived_class(T x, T y) {
  Square<T> s(x, y);
  Shape<T>& base = s;
  if (x > 1.0) base.scale += x;
  s.grow();
  return s.area() + base.scaled(y);
}
PROGRAM(derived_class, 2, {0.43, -0.7}, {1.1, 1.3}, {2.3, 0.4})

template <class T>
struct Vec {
  T x, y;
  Vec& operator+=(const Vec& o) {
    x += o.x;
    y += o.y;
    return *this;
  }
  Vec& operator*=(const T& k) {
    x *= k;
    y *= k;
    return *this;
  }
  friend Vec operator+(Vec a, const Vec& b) { return a += b; }
  friend Vec operator*(const T& k, Vec v) { return v *= k; }
  friend Truth<T> operator<(const Vec& a, const Vec& b) { return a.norm() < b.norm(); }
  T norm() const { return x * x + y * y; }
  T& operator[](int i) { return i == 0 ? x : y; }
  T operator()(const T& t) const { return t > 0.5 ? x : y; }
  Vec operator-() const { return {-x, -y}; }
};
template <class T>
T overloaded_operators(T x, T y) {
  Vec<T> a{x, y}, b{1.0, 0.5};
  if (a < b) a = b + T(2.0) * a;
  while (a < Vec<T>{2.0, 2.0}) a += b;
  if (x > 1.0) a[1] = a[0];
  b *= x;
  return a(x) * (-b).norm() + b(y);
}
PROGRAM(overloaded_operators, 2, {0.43, -0.77}, {1.1, 1.3}, {2.3, 0.4})

template <class T>
T local_struct(T x) {
  struct Local {
    T value;
    T& part() { return value; }
    void halve() { value *= 0.5; }
  };
  Local l{x};
  if (x > 1.5) l.part() = x * x;
  while (l.value > 1.0) l.halve();
  return l.value * x;
}
PROGRAM(local_struct, 1, {0.4}, {1.3}, {1.9})

template <class T>
struct Node {
  T value = 1.0;
  std::array<T, 2> links{0.0, 0.0};
  struct Inner {
    T depth = 0.5;
  } inner;
};
template <class T>
T nested_members(T x) {
  Node<T> n;
  n.links[1] = x;
  if (x > 1.0) {
    n.inner.depth = x * n.links[1];
    n.links[0] = n.inner.depth;
  } else {
    n.value += x;
  }
  for (Index<T> i = 0; i < 2; ++i) n.links[0] += n.inner.depth * n.value;
  return n.links[0] * n.links[1] + n.inner.depth;
}
PROGRAM(nested_members, 1, {0.4}, {1.3})

template <class T>
struct Defaulted {
  T a = 1.0, b = a * 2.0;
  Defaulted() = default;
  Defaulted(T x) : a(x) {
    if (!(x > 1.0)) a = 1.0 - x;
  }
};
template <class T>
T default_members(T x) {
  Defaulted<T> d, e(x);
  if (e.b > 2.5) d = e;
  if (x > 0.5) d.a *= 3.0;
  return d.a + d.b * e.b;
}
PROGRAM(default_members, 1, {0.4}, {0.7}, {1.3})

template <class T>
T copied_objects(T x) {
  Vec<T> a{x, 1.0};
  Vec<T> b = a;
  if (x > 1.0) b.x = 3.0 * x;
  a = x > 0.5 ? b : a;
  Vec<T> c(a);
  for (Index<T> i = 0; i < 2; ++i) {
    Vec<T> d = c;
    c.x = d.y + 0.5 * x;
    c.y = d.x;
  }
  return a.norm() - b.norm() + c.x * c.y;
}
PROGRAM(copied_objects, 1, {0.4}, {0.7}, {1.3})

template <class T>
T assigned_objects(T x, T y) {
  Vec<T> a{x, y}, b{y, x};
  if (x > y)
    a = b;
  else
    b = {1.0, x};
  std::swap(a, b);
  for (Index<T> i = 0; i < 3; ++i) {
    if (a.x > 2.0) {
      std::swap(a, b);
      break;
    }
    a = Vec<T>{a.y + 1.0, a.x};
  }
  return a.x - 2.0 * b.y + a.y * b.x;
}
PROGRAM(assigned_objects, 2, {0.4, 0.7}, {1.3, 0.2}, {1.8, 0.9})

template <class T>
class Machine {
 public:
  T run(T x) {
    for (Index<T> i = 0; i < 12; ++i) {
      switch (state_) {
        case 0:
          x += 0.75;
          if (x > 3.0) state_ = 1;
          break;
        case 1:
          x *= 0.5;
          state_ = x < 1.0 ? Index<T>(2) : Index<T>(0);
          break;
        default:
          return x + number(i);
      }
    }
    return -x;
  }

 private:
  Index<T> state_ = 0;
};
template <class T>
T state_machine(T x) {
  Machine<T> m;
  T first = m.run(x);
  return first * m.run(2.0 * x);
}
PROGRAM(state_machine, 1, {0.4}, {1.3}, {2.9}, {-7.0})

template <class T>
struct Chain {
  T v;
  Chain& add(T by) {
    if (by > 0.5) v += by;
    return *this;
  }
  Chain& scale(T by) {
    v *= by > 1.0 ? by : T(1.0);
    return *this;
  }
};
template <class T>
T chained_calls(T x) {
  Chain<T> c{x};
  c.add(x).scale(x + 0.3).add(0.7);
  if (c.v > 2.0) c.scale(1.5).add(x).v -= 0.25;
  return c.v;
}
PROGRAM(chained_calls, 1, {0.4}, {0.6}, {1.3})

template <class T>
struct Convertible {
  T v;
  operator T() const { return v > 1.0 ? v * 2.0 : v; }
};
template <class T>
T conversion_operator(T x) {
  Convertible<T> c{x};
  T y = c;
  if (x > 0.5) y = static_cast<T>(c) * y;
  return y;
}
PROGRAM(conversion_operator, 1, {0.4}, {0.6}, {1.3})

template <class T, int N>
struct Poly {
  std::array<T, N> c;
  T operator()(const T& x) const {
    T r = 0.0;
    for (int i = N; i-- > 0;) r = r * x + c[static_cast<std::size_t>(i)];
    return r > 0.0 ? r : 0.1 * r;
  }
};
template <class T>
T size_parameter(T x) {
  Poly<T, 3> p{{x, 1.0, -0.5}};
  if (x > 1.0) p.c[2] = x;
  T y = p(x);
  for (Index<T> i = 0; i < 2; ++i) p.c[0] += p(y);
  return p(1.0) + y;
}
PROGRAM(size_parameter, 1, {0.4}, {-1.6}, {1.3})

template <class Derived, class T>
struct Curious {
  T twice(T x) {
    if (x > 1.0) return self().step(self().step(x));
    return self().step(x);
  }
  Derived& self() { return static_cast<Derived&>(*this); }
};
template <class T>
struct Doubler : Curious<Doubler<T>, T> {
  T count = 0.0;
  T step(T x) {
    count += 1.0;
    return x < 2.0 ? 2.0 * x : x + count;
  }
};
template <class T>
T curious_base(T x) {
  Doubler<T> d;
  T first = d.twice(x);
  T second = d.twice(2.0 * x);
  return first + second * d.count;
}
PROGRAM(curious_base, 1, {0.4}, {0.8}, {1.3})

template <class T, class Policy>
struct Configured {
  T v;
  T run() {
    while (Policy::small(v)) v = Policy::next(v);
    return v;
  }
};
template <class T>
struct Gentle {
  static Truth<T> small(const T& v) { return v < 3.0 || v * v < 4.0; }
  static T next(const T& v) {
    if (v < 0.0) return -v;
    return v * 1.4;
  }
};
template <class T>
T policy_class(T x) {
  return Configured<T, Gentle<T>>{x}.run() + x;
}
PROGRAM(policy_class, 1, {0.4}, {-0.8}, {5.3})

template <class T>
struct Summed {
  T total = 0.0;
  template <class... V>
  void add(const V&... v) {
    ((total += v > 1.0 ? v : 0.5 * v), ...);
  }
};
template <class T>
T parameter_packs(T x, T y) {
  Summed<T> s;
  s.add(x, y, x * y);
  if (s.total > 2.0) s.add(y);
  return s.total;
}
PROGRAM(parameter_packs, 2, {0.4, 0.7}, {1.3, 0.2}, {1.8, 1.9})

template <class T>
struct Lazy {
  T x;
  std::optional<T> made;
  T get() {
    if (!made) made = x * x;
    return *made;
  }
};
template <class T>
T plain_conditions_in_class(T x) {
  Lazy<T> l{x, {}};
  T a = l.get();
  if (a > 1.0) *l.made = 3.0 * x;
  return l.get() * a;
}
PROGRAM(plain_conditions_in_class, 1, {0.4}, {1.3})

template <class T>
T constructed_in_loop(T x) {
  T sum = 0.0;
  for (Index<T> i = 0; i < 4; ++i) {
    Counter<T> c(number(i));
    c.step(x);
    if (c.value() > 2.0) sum += c.value();
    Vec<T> v{sum, x};
    if (v < Vec<T>{3.0, 1.0}) sum += 0.1 * v.norm();
  }
  return sum;
}
PROGRAM(constructed_in_loop, 1, {0.4}, {1.3})

template <class T>
struct Increments {
  T v;
  Increments& operator++() {
    if (v < 2.0) v += 1.0;
    return *this;
  }
  Increments operator++(int) {
    Increments before = *this;
    ++*this;
    return before;
  }
};
template <class T>
T user_increments(T x) {
  Increments<T> i{x};
  T a = (i++).v;
  ++i;
  for (Index<T> k = 0; k < 3; ++k) a += (++i).v;
  return a * i.v;
}
PROGRAM(user_increments, 1, {0.4}, {1.3}, {-1.7})

// The remedy of the message about virtual functions: the object is chosen before the loop.
template <class T>
struct Force {
  virtual ~Force() = default;
  virtual T at(const T& x) const = 0;
};
template <class T>
struct Spring : Force<T> {
  T at(const T& x) const override { return -2.0 * x; }
};
template <class T>
struct Wall : Force<T> {
  T at(const T& x) const override {
    if (x > 1.0) return -5.0 * (x - 1.0);
    return 0.0 * x;
  }
};
template <class T>
T moved(const Force<T>& force, T x) {
  const auto call = [&](const auto&... at) { return force.at(at...); };
  T v = 0.3;
  for (Index<T> i = 0; i < 6; ++i) {
    v += 0.2 * call(x);
    if (v > 0.5) v = 0.5 * call(v) + 0.1;
    x += 0.2 * v;
  }
  return x;
}
template <class T>
T virtual_in_loop(T x) {
  return moved<T>(Spring<T>(), x) + moved<T>(Wall<T>(), 2.0 * x);
}
PROGRAM(virtual_in_loop, 1, {0.4}, {1.3}, {-2.1})
