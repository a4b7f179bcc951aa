// Plain results cannot depend on a staged condition.
#include <lantern/lantern.hpp>

using namespace lantern;

int sign(Rep<double> x) {
  if (x > 0.0) return 1;
  return -1;
}
double step(Rep<double> x) {
  for (Rep<std::int64_t> i = 0; i < 3; ++i) {
    if (x > 1.0) return 0.5;
    x = x * 2.0;
  }
  return 2.0;
}
bool positive(Rep<double> x) {
  if (x > 0.0) return true;
  return false;
}
Rep<double> plain_choice(Rep<double> x) {
  double factor = x > 0.0 ? 2.0 : 3.0;
  return x * factor;
}
Rep<double> deduced_choice(Rep<double> x) {
  auto factor = x > 0.0 ? 2.0 : 3.0;
  return x * factor;
}
Rep<double> condition_kept(Rep<double> x) {
  bool above(x > 0.0);
  return above ? x : -x;
}
Rep<double> condition_cast(Rep<double> x) {
  const int above = static_cast<bool>(x > 0.0);
  return x * above;
}
Rep<double> number_cast(Rep<std::int64_t> n) {
  std::vector<double> v(static_cast<std::size_t>(static_cast<std::int64_t>(n)), 1.0);
  return v[0];
}
Rep<double>& larger(Rep<double>& a, Rep<double>& b) {
  if (a > b) return a;
  return b;
}
Rep<double> chosen_variable(Rep<double> a, Rep<double> b) {
  (a > b ? a : b) = 0.0;
  return a + b;
}
Rep<double> static_variable(Rep<double> x) {
  static Rep<double> last = 0.0;
  if (x > 0.0) last = x;
  return last;
}
Rep<double> condition_variable(Rep<double> x) {
  while (Rep<bool> go = x > 1.0) x = x * 0.5;
  return x;
}
