// What changes under a staged condition without an assignment that shows it.
#include <algorithm>
#include <lantern/lantern.hpp>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

using namespace lantern;

Rep<double> filled(Rep<double> x) {
  std::vector<int> v{1, 2};
  if (x > 1.0) std::fill(v.begin(), v.end(), 7);
  return x * v[0];
}
Rep<double> filled_range(Rep<double> x) {
  std::vector<int> v{1, 2};
  if (x > 1.0) std::ranges::fill(v, 7);
  return x * v[0];
}
Rep<double> copied(Rep<double> x) {
  const std::vector<int> from{1, 2};
  int to[2] = {3, 4};
  if (x > 1.0) std::copy(from.begin(), from.end(), &to[0]);
  return x * to[0];
}
Rep<double> transformed(Rep<double> x) {
  const std::vector<int> from{1, 2};
  std::vector<int> to(2);
  const auto twice = [](int n) { return 2 * n; };
  if (x > 1.0) std::transform(from.begin(), from.end(), to.begin(), twice);
  return x * to[0];
}
Rep<double> sorted(Rep<double> x) {
  std::vector<double> v{2.0, 1.0};
  if (x > 1.0) std::sort(v.data(), v.data() + 2);
  return x * v[0];
}
Rep<double> present(Rep<double> x) {
  std::optional<Rep<double>> best;
  if (x > 1.0) best = 2.0;
  return best ? 3.0 * x : 5.0 * x;
}

// What is made under the condition may change there, and elements that are there may be assigned.
Rep<double> inside(Rep<double> x) {
  std::map<std::string, Rep<double>> known{{"a", x}};
  std::vector<Rep<double>> staged(2, x);
  std::optional<Rep<double>> full = x;
  if (x > 1.0) {
    std::vector<double> v(2);
    std::iota(v.begin(), v.end(), 1.0);
    known["a"] = x * v[1];
    full = x * x;
    std::fill(staged.begin(), staged.end(), x * x);
  }
  return known["a"] + staged[0] + *full;
}
// A std::optional that has a value by then.
Rep<double> largest(const std::vector<Rep<double>>& v) {
  std::optional<Rep<double>> best;
  for (const auto& e : v) {
    if (!best)
      best = e;
    else if (e > *best)
      best = e;
  }
  return *best;
}
// A table that is made once, and what a pointer refers to.
double table(int i) {
  static std::vector<double> t;
  if (t.empty()) t = {1.0, 2.0, 3.0};
  return t[static_cast<std::size_t>(i)];
}
Rep<double> looked_up(Rep<double> x) {
  if (x > 1.0) {
    auto p = std::make_shared<std::vector<double>>(3, 2.0);
    std::fill(p->begin(), p->end(), 4.0);
    return x * table(2) * (*p)[0];
  }
  return x * table(1);
}
