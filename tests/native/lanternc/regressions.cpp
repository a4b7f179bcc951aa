// Small programs that the rewriting of C++'s control flow once got wrong, refused or never finished.
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <lantern/lantern.hpp>
#include <string>
#include <tuple>
#include <vector>

using namespace lantern;

namespace assign_to_temporary {
using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;
LANTERN_FUNCTION(assign_to_temporary_in_lambda, grad([](A x) {
                   A r = x;
                   r[0] = x[0] * x[0];
                   return sum(r);
                 }))
D to_slice(A x) {
  A r = x;
  r.slice(0, 2) = x.slice(1, 3);
  return dot(r, r);
}
LANTERN_FUNCTION(assign_to_temporary_slice_slope, grad(to_slice))
D to_row(A x) {
  M m = fill(D(1.0), 2, 3);
  m.row(0) = as_tensor(x);
  return sum(m);
}
LANTERN_FUNCTION(assign_to_temporary_row_slope, grad(to_row))
}  // namespace assign_to_temporary

namespace callable_argument {
template <class F>
void each(Rep<std::int64_t> n, const F& body) {
  for (Rep<std::int64_t> i = 0; i < n; ++i) body(i);
}
Rep<double> f(Rep<double> x) {
  Rep<double> s = 0.0;
  each(3, [&](Rep<std::int64_t> i) { s += x * cast<double>(i); });
  return s;
}
LANTERN_FUNCTION(callable_argument_value, f)
}  // namespace callable_argument

namespace capture_by_copy {
template <class T, class I>
T f(T x) {
  T s = x;
  auto next = [s]() mutable {
    s = s * 0.5;
    return s;
  };
  T r = 0.0;
  for (I i = 0; i < 3; ++i) r += next();
  return r + s;
}
LANTERN_FUNCTION(capture_by_copy_value, f<Rep<double>, Rep<std::int64_t>>)
LANTERN_FUNCTION(capture_by_copy_slope, grad(f<Rep<double>, Rep<std::int64_t>>))
}  // namespace capture_by_copy

namespace capture_by_copy_if {
template <class T>
T f(T x) {
  T s = x;
  auto next = [s]() mutable {
    s = s * 0.5;
    return s;
  };
  T r = 0.0;
  if (x > 100.0) r += next();
  return r + next() + s;
}
LANTERN_FUNCTION(capture_by_copy_if_value, f<Rep<double>>)
}  // namespace capture_by_copy_if

namespace capture_init {
Rep<double> f(Rep<double> x) {
  auto next = [s = x]() mutable {
    s = s * 0.5;
    return s;
  };
  Rep<double> r = 0.0;
  for (Rep<std::int64_t> i = 0; i < 3; ++i) r += next();
  return r;
}
LANTERN_FUNCTION(capture_init_value, f)
}  // namespace capture_init

namespace class_with_constructor {
using D = Rep<double>;
class Vec {
 public:
  Vec(D a, D b) : x_(a), y_(b) {}
  D norm() const { return sqrt(x_ * x_ + y_ * y_); }
  Vec turned() const { return Vec(y_, x_ + 1.0); }

 private:
  D x_, y_;
};
D f(D a, D b) {
  Vec v(a, b);
  for (Rep<int64_t> i = 0; i < 3; ++i) v = v.turned();
  return v.norm();
}
LANTERN_FUNCTION(class_with_constructor_df, grad(f))
}  // namespace class_with_constructor

namespace class_with_private_members {
class Sum {
 public:
  void add(Rep<double> x) {
    if (x > 0.0) s_ += x;
  }
  Rep<double> value() const { return s_; }

 private:
  Rep<double> s_ = 0.0;
};
Rep<double> f(Rep<double> x) {
  Sum s;
  for (Rep<std::int64_t> i = 0; i < 4; ++i) s.add(x);
  return s.value();
}
LANTERN_FUNCTION(class_with_private_members_value, f)
}  // namespace class_with_private_members

namespace constructor {
struct Clamped {
  Rep<double> v;
  explicit Clamped(Rep<double> x) : v(x > 1.0 ? Rep<double>(1.0) : x) {}
};
Rep<double> f(Rep<double> x) { return Clamped(x).v * 3.0; }
LANTERN_FUNCTION(constructor_value, f)
}  // namespace constructor

namespace default_member {
struct Clamped {
  Rep<double> x;
  Rep<double> v = x > 1.0 ? Rep<double>(1.0) : x;
};
Rep<double> f(Rep<double> x) { return Clamped{x}.v * 3.0; }
LANTERN_FUNCTION(default_member_value, f)
}  // namespace default_member

namespace destructor {
struct Counted {
  Rep<double>& n;
  ~Counted() { n += 1.0; }
};
Rep<double> f(Rep<double> x) {
  Rep<double> n = 0.0;
  for (Rep<std::int64_t> i = 0; i < 3; ++i) {
    Counted c{n};
    x = x * 2.0;
  }
  return n + 0.0 * x;
}
LANTERN_FUNCTION(destructor_value, f)
}  // namespace destructor

namespace forward_declared {
template <class T>
T g(T x);
template <class T>
T f(T x) {
  return g(x);
}
template <class T>
T g(T x) {
  if (x > 1.0) x = x * 2.0;
  return x;
}
LANTERN_FUNCTION(forward_declared_value, f<Rep<double>>)
LANTERN_FUNCTION(forward_declared_slope, grad(f<Rep<double>>))
}  // namespace forward_declared

namespace forward_declared_counter {
template <class T, class I>
T g(T x, I n);
template <class T, class I>
T f(T x, I n) {
  return g(x, n);
}
template <class T, class I>
T g(T x, I n) {
  while (n > 0) {
    if (x > 1000.0) return x;
    x *= 1.5;
    n--;
  }
  return x * 2.0;
}
LANTERN_FUNCTION(forward_declared_counter_value, f<Rep<double>, Rep<std::int64_t>>)
}  // namespace forward_declared_counter

namespace if_init_shadows {
template <class T>
T f(T x) {
  T y = x * 2.0;
  if (T x = y - 1.0; x > 0.0) return x;
  return y * x;
}
LANTERN_FUNCTION(if_init_shadows_value, f<Rep<double>>)
}  // namespace if_init_shadows

namespace if_init_shadows_break {
Rep<double> f(Rep<double> x) {
  Rep<double> y = x * 2.0;
  for (Rep<std::int64_t> i = 0; i < 4; ++i) {
    if (Rep<double> x = y - 1.0; x > 0.0) break;
    y = y + x;
  }
  return y * x;
}
LANTERN_FUNCTION(if_init_shadows_break_value, f)
}  // namespace if_init_shadows_break

namespace if_init_shadows_else {
Rep<double> f(Rep<double> x) {
  Rep<double> y = x * 2.0;
  if (Rep<double> y = x - 10.0; y > 0.0)
    return y;
  else if (Rep<double> x = y - 1.0; x > 0.0)
    return x;
  return y * x;
}
LANTERN_FUNCTION(if_init_shadows_else_value, f)
}  // namespace if_init_shadows_else

namespace lambda_assigns_parameter {
Rep<double> f(Rep<double> x) {
  auto doubled = [](Rep<double> v) {
    v = v * 2.0;
    return v;
  };
  Rep<double> s = 0.0;
  if (x > 1.0) s = doubled(x);
  return s;
}
LANTERN_FUNCTION(lambda_assigns_parameter_value, f)
}  // namespace lambda_assigns_parameter

namespace lambda_in_macro {
LANTERN_FUNCTION(lambda_in_macro_slope, grad([](Rep<double> x) {
                   if (x > 1.0) return x * x;
                   return -x;
                 }))
}  // namespace lambda_in_macro

namespace lambda_in_macro_range {
LANTERN_FUNCTION(lambda_in_macro_range_value, [](Rep<Array<double>> a) {
  Rep<double> s = 0.0;
  for (Rep<double> v : a) s += v;
  return s;
})
}  // namespace lambda_in_macro_range

namespace local_class {
template <class T>
T clamped(T x) {
  struct Clamp {
    T lo, hi;
    T operator()(T v) const {
      if (v < lo) return lo;
      if (v > hi) return hi;
      return v;
    }
  };
  Clamp clamp{-1.0, 5.0};
  return clamp(x) * clamp(x);
}
LANTERN_FUNCTION(local_class_slope, grad(clamped<Rep<double>>))
}  // namespace local_class

namespace member_recursion_empty {
struct Power {
  Rep<double> operator()(Rep<double> v, Rep<std::int64_t> m) const {
    if (m == 0) return 1.0;
    return v * (*this)(v, m - 1);
  }
};
Rep<double> f(Rep<double> x, Rep<std::int64_t> n) { return Power{}(x, n); }
LANTERN_FUNCTION(member_recursion_empty_value, f)
}  // namespace member_recursion_empty

namespace member_recursion_template {
template <class T, class I>
struct Power {
  int base;
  T apply(T v, I m) const {
    if (m == 0) return base;
    return v * apply(v, m - 1);
  }
};
Rep<double> f(Rep<double> x, Rep<std::int64_t> n) {
  return Power<Rep<double>, Rep<std::int64_t>>{1}.apply(x, n);
}
LANTERN_FUNCTION(member_recursion_template_value, f)
}  // namespace member_recursion_template

namespace mutual_recursion {
template <class T, class I>
T a(T x, I n);
template <class T, class I>
T b(T x, I n) {
  return a(x * 0.99, n - 1);
}
template <class T, class I>
T a(T x, I n) {
  if (n == 0) return x;
  return b(x + 1.0, n);
}
Rep<double> f(Rep<double> x, Rep<std::int64_t> n) { return a(x, n); }
LANTERN_FUNCTION(mutual_recursion_value, f)
}  // namespace mutual_recursion

namespace out_of_class_member {
template <class T>
struct Layer {
  T bias;
  T apply(T x) const;
};
template <class T>
T Layer<T>::apply(T x) const {
  if (x > bias) x = x * 2.0;
  return x;
}
Rep<double> f(Rep<double> x) { return Layer<Rep<double>>{1.0}.apply(x); }
LANTERN_FUNCTION(out_of_class_member_value, f)
}  // namespace out_of_class_member

namespace preprocessor_in_body {
Rep<double> f(Rep<double> x) {
#ifdef SOMETHING
  if (x > 10.0)
#else
  if (x > 2.0)
#endif
    x = 1.0;
  return x + 2.0;
}
LANTERN_FUNCTION(preprocessor_in_body_value, f)
}  // namespace preprocessor_in_body

namespace range_for_init {
Rep<double> f(Rep<double> x) {
  Rep<double> k = 1.0;
  for (Rep<double> k = x * 3.0; Rep<double> z : std::array<Rep<double>, 2>{x, x + 1.0})
    if (z > 5.0) return k;
  return k + x;
}
LANTERN_FUNCTION(range_for_init_value, f)
}  // namespace range_for_init

namespace range_for_init_array {
Rep<double> f(Rep<Array<double>> a) {
  Rep<double> s = 0.0;
  for (Rep<double> k = a[0] * 3.0; Rep<double> z : a) s += z * k;
  return s;
}
LANTERN_FUNCTION(range_for_init_array_value, f)
}  // namespace range_for_init_array

namespace range_for_two_types {
template <class T, class V>
T squares(V x) {
  T s = 0.0;
  for (T v : x) s += v * v;
  return s;
}
LANTERN_FUNCTION(range_for_two_types_slope, grad(squares<Rep<double>, Rep<Array<double>>>))
}  // namespace range_for_two_types

namespace read_through_pointer {
Rep<double> f(Rep<double> x) {
  Rep<double> a = x;
  const Rep<double>* p = &a;
  if (x > 1.0) a = x * x;
  return *p;
}
LANTERN_FUNCTION(read_through_pointer_value, f)
}  // namespace read_through_pointer

namespace read_through_struct {
struct View {
  const Rep<double>& value;
};
Rep<double> f(Rep<double> x) {
  Rep<double> a = x;
  View v{a};
  if (x > 1.0) a = x * x;
  return v.value;
}
LANTERN_FUNCTION(read_through_struct_value, f)
}  // namespace read_through_struct

namespace read_through_tie {
Rep<double> f(Rep<double> x) {
  Rep<double> a = x, b = 0.0;
  auto both = std::tie(a, b);
  if (x > 1.0) a = x * x;
  return std::get<0>(both);
}
LANTERN_FUNCTION(read_through_tie_value, f)
}  // namespace read_through_tie

namespace recursion_with_string {
Rep<double> g(Rep<double> x, std::string path, Rep<std::int64_t> n) {
  if (n <= 0) return x * static_cast<double>(path.size());
  return g(x * 1.1, path, n - 1);
}
Rep<double> f(Rep<double> x) { return g(x, "ab", 2); }
LANTERN_FUNCTION(recursion_with_string_value, f)
}  // namespace recursion_with_string

namespace shift_operator {
template <class T>
struct Log {
  T sum = 0.0;
  Log& operator<<(T v) {
    sum += v;
    return *this;
  }
};
template <class T, class I>
T f(T x) {
  Log<T> log;
  for (I i = 0; i < 3; ++i) log << x;
  return log.sum;
}
LANTERN_FUNCTION(shift_operator_value, f<Rep<double>, Rep<std::int64_t>>)
}  // namespace shift_operator

namespace std_function_assigns {
Rep<double> f(Rep<double> x) {
  Rep<double> s = 0.0;
  std::function<void(Rep<double>)> add = [&](Rep<double> v) { s += v; };
  for (Rep<std::int64_t> i = 0; i < 3; ++i) add(x);
  return s;
}
LANTERN_FUNCTION(std_function_assigns_value, f)
}  // namespace std_function_assigns

namespace std_max {
Rep<double> f(Rep<double> x) { return std::max(x, x * x - 6.0); }
LANTERN_FUNCTION(std_max_value, f)
}  // namespace std_max

namespace struct_with_base {
struct Base {
  Rep<double> a;
};
struct Derived : Base {
  Rep<double> b;
};
Rep<double> f(Rep<double> x) {
  Derived d;
  d.a = x;
  d.b = 1.0;
  if (x > 1.0) d.b = x;
  return d.a + d.b - 0.5;
}
LANTERN_FUNCTION(struct_with_base_value, f)
}  // namespace struct_with_base

namespace struct_with_c_array {
struct Vec2 {
  Rep<double> e[2];
};
Rep<double> f(Rep<double> x) {
  Vec2 v{{x, 2.0 * x}};
  if (x > 1.0) v.e[0] = 5.0;
  return v.e[0] * v.e[1];
}
LANTERN_FUNCTION(struct_with_c_array_value, f)
}  // namespace struct_with_c_array

namespace switch_init_shadows {
Rep<double> f(Rep<double> x, Rep<std::int64_t> n) {
  Rep<double> y = x * 2.0;
  switch (Rep<std::int64_t> x = n + 1; x) {
    case 1:
      return y;
    default:
      y = y + 1.0;
  }
  return y - x;
}
LANTERN_FUNCTION(switch_init_shadows_value, f)
}  // namespace switch_init_shadows

namespace template_recursion {
template <int N, class T, class F>
T repeat(T x, F f) {
  if constexpr (N == 0) {
    return x;
  } else {
    if (x > 3.0) return x;
    return repeat<N - 1>(f(x), f);
  }
}
Rep<double> g(Rep<double> x) {
  return repeat<3>(x, [&](Rep<double> v) { return v * 1.5 + x; });
}
LANTERN_FUNCTION(template_recursion_value, g)
}  // namespace template_recursion

static int wrong = 0;
static void check(const char* name, double got, double expected) {
  if (std::abs(got - expected) <= 1e-12 * (1 + std::abs(expected))) return;
  ++wrong;
  std::printf("%s: expected %.17g, got %.17g\n", name, expected, got);
}

int main() {
  check("assign_to_temporary",
        assign_to_temporary::assign_to_temporary_in_lambda(std::vector<double>{1.5, -0.5, 2.0})[0], 3.0);
  check("assign_to_temporary",
        assign_to_temporary::assign_to_temporary_in_lambda(std::vector<double>{1.5, -0.5, 2.0})[1], 1.0);
  check("assign_to_temporary",
        assign_to_temporary::assign_to_temporary_in_lambda(std::vector<double>{1.5, -0.5, 2.0})[2], 1.0);
  check("assign_to_temporary",
        assign_to_temporary::assign_to_temporary_slice_slope(std::vector<double>{1.5, -0.5, 2.0})[0], 0.0);
  check("assign_to_temporary",
        assign_to_temporary::assign_to_temporary_slice_slope(std::vector<double>{1.5, -0.5, 2.0})[1], -1.0);
  check("assign_to_temporary",
        assign_to_temporary::assign_to_temporary_slice_slope(std::vector<double>{1.5, -0.5, 2.0})[2], 8.0);
  check("assign_to_temporary",
        assign_to_temporary::assign_to_temporary_row_slope(std::vector<double>{1.5, -0.5, 2.0})[0], 1.0);
  check("assign_to_temporary",
        assign_to_temporary::assign_to_temporary_row_slope(std::vector<double>{1.5, -0.5, 2.0})[1], 1.0);
  check("assign_to_temporary",
        assign_to_temporary::assign_to_temporary_row_slope(std::vector<double>{1.5, -0.5, 2.0})[2], 1.0);
  check("callable_argument", callable_argument::callable_argument_value(1.5), 4.5);
  check("capture_by_copy", capture_by_copy::capture_by_copy_value(8.0), 15.0);
  check("capture_by_copy", capture_by_copy::capture_by_copy_slope(8.0), 1.875);
  check("capture_by_copy_if", capture_by_copy_if::capture_by_copy_if_value(8.0), 12.0);
  check("capture_init", capture_init::capture_init_value(8.0), 7.0);
  check("class_with_constructor", std::get<0>(class_with_constructor::class_with_constructor_df(1.0, 2.0)),
        1.0 / std::sqrt(2.0));
  check("class_with_private_members", class_with_private_members::class_with_private_members_value(0.5), 2.0);
  check("constructor", constructor::constructor_value(1.5), 3.0);
  check("default_member", default_member::default_member_value(1.5), 3.0);
  check("destructor", destructor::destructor_value(1.5), 3.0);
  check("forward_declared", forward_declared::forward_declared_value(1.5), 3.0);
  check("forward_declared", forward_declared::forward_declared_slope(1.5), 2.0);
  check("forward_declared_counter", forward_declared_counter::forward_declared_counter_value(1.5, 3), 10.125);
  check("if_init_shadows", if_init_shadows::if_init_shadows_value(0.2), if_init_shadows::f(0.2));
  check("if_init_shadows_break", if_init_shadows_break::if_init_shadows_break_value(0.2), 0.24);
  check("if_init_shadows_else", if_init_shadows_else::if_init_shadows_else_value(0.2), 0.08);
  check("lambda_assigns_parameter", lambda_assigns_parameter::lambda_assigns_parameter_value(3.0), 6.0);
  check("lambda_in_macro", lambda_in_macro::lambda_in_macro_slope(3.0), 6.0);
  check("lambda_in_macro_range",
        lambda_in_macro_range::lambda_in_macro_range_value(std::vector<double>{1.0, 2.0}), 3.0);
  check("local_class", local_class::local_class_slope(3.0), 6.0);
  check("local_class", local_class::local_class_slope(7.0), 0.0);
  check("member_recursion_empty", member_recursion_empty::member_recursion_empty_value(2.0, 3), 8.0);
  check("member_recursion_template", member_recursion_template::member_recursion_template_value(2.0, 3), 8.0);
  check("mutual_recursion", mutual_recursion::mutual_recursion_value(1.0, 1), 1.98);
  check("out_of_class_member", out_of_class_member::out_of_class_member_value(1.5), 3.0);
  check("preprocessor_in_body", preprocessor_in_body::preprocessor_in_body_value(3.0), 3.0);
  check("range_for_init", range_for_init::range_for_init_value(7.0), 21.0);
  check("range_for_init_array",
        range_for_init_array::range_for_init_array_value(std::vector<double>{1.0, 2.0, 3.0}), 18.0);
  check("range_for_two_types",
        range_for_two_types::range_for_two_types_slope(std::vector<double>{1.0, 2.0, 3.0})[2], 6.0);
  check("range_for_two_types", range_for_two_types::squares<double>(std::vector<double>{1.0, 2.0, 3.0}),
        14.0);
  check("read_through_pointer", read_through_pointer::read_through_pointer_value(1.5), 2.25);
  check("read_through_struct", read_through_struct::read_through_struct_value(1.5), 2.25);
  check("read_through_tie", read_through_tie::read_through_tie_value(1.5), 2.25);
  check("recursion_with_string", recursion_with_string::recursion_with_string_value(1.0), 2.42);
  check("shift_operator", shift_operator::shift_operator_value(1.5), 4.5);
  check("std_function_assigns", std_function_assigns::std_function_assigns_value(1.5), 4.5);
  check("std_max", std_max::std_max_value(3.0), 3.0);
  check("struct_with_base", struct_with_base::struct_with_base_value(1.5), 2.5);
  check("struct_with_c_array", struct_with_c_array::struct_with_c_array_value(1.5), 15.0);
  check("switch_init_shadows", switch_init_shadows::switch_init_shadows_value(0.2, 3), 1.2);
  check("template_recursion", template_recursion::template_recursion_value(0.1554), 1.2626249999999999);
  std::printf("%d wrong\n", wrong);
}
