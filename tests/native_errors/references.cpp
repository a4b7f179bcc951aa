// Assignments whose target cannot be seen.
#include <memory>

#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> by_pointer(Rep<double> x) {
  Rep<double> y = 1.0;
  Rep<double>* p = &y;
  if (x > 0.0) *p = x;
  return y;
}
Rep<double> by_pointer_element(Rep<double> x, Rep<double>* a) {
  if (x > 0.0) a[1] = x;
  return a[0] + a[1];
}
Rep<double> by_arrow(Rep<double> x) {
  struct Node {
    Rep<double> value;
  };
  Node node{x};
  Node* p = &node;
  while (x > 1.0) {
    p->value = x;
    x = x * 0.5;
  }
  return node.value;
}
Rep<double> by_smart_pointer(Rep<double> x) {
  auto p = std::make_shared<Rep<double>>(1.0);
  if (x > 0.0) *p = x;
  return *p;
}
Rep<double>& pick(Rep<double>& a) { return a; }
Rep<double> by_returned_reference(Rep<double> x) {
  Rep<double> y = 1.0;
  if (x > 0.0) pick(y) = x;
  return y;
}
Rep<double> by_reference_to_pointee(Rep<double> x, Rep<double>* a) {
  Rep<double>& r = *a;
  if (x > 0.0) r = x;
  return *a;
}
Rep<double> plain_by_pointer(Rep<double> x, int* n) {
  if (x > 0.0) *n = 1;
  return x;
}
Rep<double> by_iterator(Rep<double> x) {
  std::vector<Rep<double>> v{x, x};
  for (auto it = v.begin(); it != v.end(); ++it)
    if (x > 1.0) *it = 2.0;
  return v[0];
}
struct Shape {
  virtual ~Shape() = default;
  virtual Rep<double> area(Rep<double> x) const { return x; }
};
Rep<double> virtual_call(const Shape& shape, Rep<double> x) {
  if (x > 0.0) return shape.area(x);
  return x;
}
Rep<double> virtual_call_by_pointer(Shape* shape, Rep<double> x) {
  while (x > 1.0) x = x - shape->area(x);
  return x;
}
Rep<double> by_element_reference(Rep<Array<double>> a, Rep<std::int64_t> i) {
  auto&& e = a[i];
  e += 1.0;
  return a[0] + e;
}
Rep<double> by_loop_reference(Rep<Array<double>> a) {
  for (auto&& v : a) v *= 2.0;
  for (auto& v : a) ++v;
  return sum(a);
}
Rep<double> by_row_reference(Rep<Tensor<double, dyn, dyn>> t) {
  auto&& row = t.row(0);
  row = 2.0 * row;
  return sum(t);
}
