// What changes under a staged condition without an assignment that shows it.
#include <algorithm>
#include <lantern/lantern.hpp>
#include <map>
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
int counter = 0;
void count() { ++counter; }
void count_all() { count(); }
Rep<double> counted(Rep<double> x) {
  if (x > 1.0) count_all();
  return x * counter;
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
  count();
  return known["a"] + staged[0] + *full;
}
