// Plain variables cannot follow a staged condition.
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> int_in_branch(Rep<double> x) {
  int n = 0;
  if (x > 0.0) n = 1;
  return x * n;
}
Rep<double> double_in_branch(Rep<double> x) {
  double y = 1.0;
  if (x > 0.0) {
    y = 2.0;
  } else {
    y += 3.0;
  }
  return x * y;
}
Rep<double> bool_in_branch(Rep<double> x) {
  bool found = false;
  if (x > 0.0) found = true;
  return found ? x : -x;
}
Rep<double> counter_in_loop(Rep<double> x) {
  int n = 0;
  while (x > 1.0) {
    x *= 0.5;
    ++n;
  }
  return x * n;
}
Rep<double> loop_variable(Rep<double> x, Rep<std::int64_t> n) {
  for (int i = 0; i < n; ++i) x = x * 2.0;
  return x;
}
Rep<double> endless_loop_variable(Rep<double> x) {
  for (int i = 0;; ++i) {
    if (x > 10.0) return x * i;
    x = x * 2.0;
  }
}
Rep<double> in_do_loop(Rep<double> x) {
  float steps = 0.0F;
  do {
    x = x * 0.5;
    steps += 1.0F;
  } while (x > 1.0);
  return x * steps;
}
Rep<double> after_break(Rep<double> x) {
  int done = 0;
  for (int i = 0; i < 5; ++i) {
    if (x > 3.0) break;
    x = x + 1.0;
    done = i;
  }
  return x * done;
}
Rep<double> in_switch(Rep<double> x, Rep<std::int64_t> k) {
  unsigned weight = 1;
  switch (k) {
    case 0: weight = 2; break;
    case 1: weight = 3; break;
  }
  return x * weight;
}
Rep<double> through_reference(Rep<double> x) {
  int n = 0;
  int& r = n;
  if (x > 0.0) r = 4;
  return x * n;
}
void set(int& n) { n = 7; }
Rep<double> by_call(Rep<double> x) {
  int n = 0;
  if (x > 0.0) set(n);
  return x * n;
}
Rep<double> by_lambda(Rep<double> x) {
  int n = 0;
  auto add = [&] { n += 2; };
  if (x > 0.0) add();
  return x * n;
}
template <class T>
T in_template(T x) {
  int n = 0;
  if (x > 0.0) n = 5;
  return x * n;
}
Rep<double> instance(Rep<double> x) { return in_template(x) + in_template(2.0); }
Rep<double> container(Rep<double> x) {
  std::vector<double> v{1.0};
  if (x > 0.0) v.push_back(2.0);
  return x * v.back();
}
Rep<double> parameter(Rep<double> x, int n) {
  if (x > 0.0) n = n + 1;
  return x * n;
}
Rep<double> rest_after_return(Rep<double> x) {
  int& shared = *new int(3);
  if (x > 0.0) return x;
  shared = 4;
  return -x;
}
struct Counter {
  int calls = 0;
  Rep<double> member(Rep<double> x) {
    if (x > 0.0) calls = 1;
    return x;
  }
};
Rep<double> use_member(Rep<double> x) { return Counter().member(x); }
