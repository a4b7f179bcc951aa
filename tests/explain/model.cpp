// What lanternc --explain tells of these is in model.txt.
#include <lantern/lantern.hpp>

using namespace lantern;

// No loop: nothing is kept.
Rep<double> straight(Rep<double> x, Rep<double> y) { return sin(x * y) + exp(x); }

// A loop whose iterations depend on each other, with a branch in it.
Rep<double> decay(Rep<double> x, Rep<double> rate) {
  for (Rep<std::int64_t> i = 0; i < 50; ++i) {
    if (x > 1.0)
      x = x * rate;
    else
      x = sin(x);
  }
  return x;
}

// A loop that says how little it may keep.
Rep<double> bounded(Rep<double> x, Rep<std::int64_t> n) {
  return FOR(
      0, n, x, [](Rep<std::int64_t>, Rep<double> s) { return sin(s) * s; }, {.checkpoints = 20});
}

// Independent iterations: they run in the lanes of vectors.
Rep<double> distance(Rep<Array<double>> a, Rep<double> centre) {
  return FOR(0, a.size(), Rep<double>(0.0), [&](Rep<std::int64_t> i, Rep<double> sum) {
    return sum + exp((a[i] - centre) * (a[i] - centre));
  });
}

// A function that calls itself.
Rep<double> power(Rep<double> x, Rep<std::int64_t> n) {
  if (n == 0) return 1.0;
  return x * power(x, n - 1);
}

LANTERN_FUNCTION(dstraight, grad(straight))
LANTERN_FUNCTION(ddecay, grad(decay))
LANTERN_FUNCTION(dbounded, grad(bounded))
LANTERN_FUNCTION(ddistance, grad(distance))
LANTERN_FUNCTION(dpower, grad(power))
