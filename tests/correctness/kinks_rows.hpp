// The programs of docs/conventions.md: functions at kinks, ties, poles and ends of ranges.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "lantern/lantern.hpp"
#include "lantern/nn.hpp"
#include "lantern/tensor.hpp"

namespace lantern::test {

namespace kinks {

using D = Rep<double>;
using V = Rep<Array<double>>;
using I = Rep<std::int64_t>;

constexpr double inf = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN();

/// A row of the page: its name, a function of one, two or three numbers or of an array, the point, and whether second
/// derivatives are asked for.
struct Row {
  std::string id;
  std::function<D(D)> one;
  std::function<D(D, D)> two;
  std::function<D(D, D, D)> three;
  std::function<D(V)> array;
  std::vector<double> at;
  bool second = false;
};

struct Rows {
  std::vector<Row> all;

  void one(const std::string& id, const std::function<D(D)>& f, double x, bool second = false) {
    all.push_back({id, f, {}, {}, {}, {x}, second});
  }
  void two(const std::string& id, const std::function<D(D, D)>& f, double x, double y, bool second = false) {
    all.push_back({id, {}, f, {}, {}, {x, y}, second});
  }
  void three(const std::string& id, const std::function<D(D, D, D)>& f, double x, double y, double z) {
    all.push_back({id, {}, {}, f, {}, {x, y, z}, false});
  }
};

inline V counting(int n) {
  V v = fill(D(0.0), n);
  for (int i = 0; i < n; ++i) v = v.set(i, D(i + 1.0));
  return v;
}

inline std::vector<Row> rows_of_numbers() {
  Rows r;
  const std::function<D(D, D)> larger = [](D x, D y) { return max(x, y); }, smaller = [](D x, D y) { return min(x, y); };
  const std::function<D(D)> size = [](D x) { return abs(x); };
  r.two("1a", larger, 1, 1, true);
  r.two("1a select", [](D x, D y) { return select(x > y, x, y); }, 1, 1);
  r.two("1b", smaller, 1, 1, true);
  r.two("1c", larger, 0.0, -0.0);
  r.two("1d", larger, -0.0, 0.0);
  r.one("1e", [](D x) { return max(x, x); }, 1);
  r.two("1f", larger, inf, inf);
  r.one("1g", [](D x) { return max(x * x, -x); }, 0, true);
  r.one("2a", size, 0, true);
  r.one("2c", size, none);
  r.one("2d", [](D x) { return x * abs(x); }, 0, true);
  r.one("2e", [](D x) { return sqrt(x * x); }, 0);
  r.one("3a relu", [](D x) { return relu(x); }, 0, true);
  r.one("3a max", [](D x) { return max(x, 0.0); }, 0);
  r.one("3a IF", [](D x) { return IF(x > 0.0, [&] { return x; }, [&] { return D(0.0); }); }, 0);
  r.one("3c relu", [](D x) { return relu(x); }, none);
  r.one("4a", [](D x) { return sqrt(x); }, 0, true);
  r.one("4c", [](D x) { return cbrt(x); }, 0);
  r.one("4e", [](D x) { return cbrt(x); }, -8, true);
  r.one("4f", [](D x) { return sqrt(0.0 * x); }, 1);
  r.one("4g", [](D x) { return 1.0 / sqrt(x); }, 0);
  const std::function<D(D, D)> power = [](D x, D y) { return pow(x, y); };
  r.two("5a", power, 0, 0, true);
  r.two("5b", power, 0, 1, true);
  r.two("5c", power, 0, 2, true);
  r.two("5d", power, 0, 0.5);
  r.two("5h", power, -2, 3);
  r.two("5m", power, 2, 0, true);
  const auto to = [&](const std::string& id, double c) { r.one(id, [c](D x) { return pow(x, c); }, 0, true); };
  to("5p", 0.0), to("5q", 1.0), to("5r", 2.0), to("5s", 0.5), to("5t", 3.0), to("5v", 1.5), to("5w", -1.0), to("28f", -2.0);
  r.one("5x", [](D y) { return pow(2.0, y); }, 0);
  r.one("5z", [](D y) { return pow(0.0, y); }, 0);
  const std::function<D(D, D)> angle = [](D y, D x) { return atan2(y, x); };
  r.two("6a", angle, 0, 0);
  r.two("6b", angle, 0, -1);
  r.two("6c", angle, -0.0, -1);
  const std::function<D(D, D)> length = [](D x, D y) { return hypot(x, y); };
  r.two("7a", length, 0, 0);
  r.two("7c", length, 1e200, 1e200);
  r.two("7d", length, 1e-200, 1e-200);
  const std::function<D(D, D, D)> between = [](D x, D lo, D hi) { return clip(x, lo, hi); };
  r.three("8a", between, 0, 0, 1);
  r.three("8b", between, 1, 0, 1);
  r.three("8c", between, 0.5, 0, 1);
  r.three("8d", between, 2, 0, 1);
  r.three("8e", between, -2, 0, 1);
  r.three("8f", between, 0.5, 1, 0);
  r.three("8h", between, none, 0, 1);
  r.one("8j", [](D x) { return clip(x, 0.0, 1.0); }, 0);
  r.one("8k", [](D x) { return clip(x, 0.0, 1.0); }, 1);
  r.one("8l", [](D x) { return clip(x, 0.0, 1.0); }, none);
  r.two("13a", larger, 1, none);
  r.two("13b", larger, none, 1);
  r.two("13c", larger, none, none);
  r.one("14a", [](D x) { return sign(x); }, 0);
  r.one("14d", [](D x) { return floor(x); }, 2);
  r.one("14g", [](D x) { return round(x); }, 2.5);
  r.one("14l", [](D x) { return x - floor(x); }, 2);
  r.two("15a", [](D x, D y) { return fmod(x, y); }, 6, 3);
  r.two("15b", [](D x, D y) { return fmod(x, y); }, -5, 3);
  r.two("16a", [](D x, D y) { return max(x, y) + log1p(exp(-abs(x - y))); }, 0, 0);
  const std::function<D(D, D)> x_log_y = [](D x, D y) { return select(x == 0.0, 0.0, x * log(y)); };
  const std::function<D(D, D)> x_log_y_if = [](D x, D y) {
    return IF(x == 0.0, [&] { return D(0.0); }, [&] { return x * log(y); });
  };
  r.two("18a select", x_log_y, 0, 0, true);
  r.two("18a IF", x_log_y_if, 0, 0, true);
  r.two("18b", x_log_y, 0, 2);
  r.two("18c", x_log_y_if, 1, 0);
  r.two("18d", x_log_y, 0, none);
  r.one("18f", [](D x) { return select(x == 0.0, 0.0, -x * log(x)); }, 0);
  r.one("18j", [](D x) { return x * log(x); }, 0);
  const double pi = std::acos(-1.0);
  r.one("19a select", [pi](D x) { return select(x == 0.0, 1.0, sin(pi * x) / (pi * x)); }, 0, true);
  r.one("19a IF", [pi](D x) { return IF(x == 0.0, [&] { return D(1.0); }, [&] { return sin(pi * x) / (pi * x); }); }, 0, true);
  r.one("20a", [](D x) { return lgamma(x); }, 0);
  r.one("20e", [](D x) { return lgamma(x); }, -0.5, true);
  r.one("21a", [](D x) { return erfinv(x); }, 1);
  r.one("21b", [](D x) { return erfinv(x); }, -1);
  r.one("21c", [](D x) { return erfinv(x); }, 0, true);
  r.one("21d", [](D x) { return erfinv(x); }, 2);
  r.one("24b", [](D x) { return softplus(x); }, 1000, true);
  r.one("24e", [](D x) { return softplus(x); }, inf);
  r.one("24j", [](D x) { return log(x); }, 0, true);
  r.one("24k", [](D x) { return log(x); }, -1);
  r.one("24l", [](D x) { return exp(x); }, -inf, true);
  r.one("24u", [](D x) { return asin(x); }, 1);
  r.one("24x", [](D x) { return acosh(x); }, 1);
  r.one("24y", [](D x) { return atanh(x); }, 1);
  r.two("24F", [](D x, D y) { return x / y; }, 1, 0);
  r.one("24L", [](D x) { return 1.0 / x; }, 0, true);
  r.one("25f", [](D x) { return clip(x, -1.0, 1.0); }, 1);
  r.one("25n", [](D x) { return x / (1.0 + abs(x)); }, 0);
  r.one("25s", [](D x) { return gelu(x); }, -40, true);
  r.one("25t", [](D x) { return gelu(x); }, -inf);
  r.one("25t plus", [](D x) { return gelu(x); }, inf);
  r.one("25u", [](D x) { return gelu_tanh(x); }, -1e200);
  r.one("25v", [](D x) { return silu(x); }, -1000, true);
  r.one("25w", [](D x) { return silu(x); }, -inf);
  r.one("25w plus", [](D x) { return silu(x); }, inf);
  const std::function<D(D)> logarithm = [](D x) { return log(x); }, root = [](D x) { return sqrt(x); },
                            inverse = [](D x) { return 1.0 / x; };
  const auto where_positive = [&](const std::string& id, const std::function<D(D)>& f, double x) {
    r.one(id + " select", [f](D t) { return select(t > 0.0, f(t), D(0.0)); }, x, true);
    r.one(id + " IF", [f](D t) { return IF(t > 0.0, [&] { return f(t); }, [&] { return D(0.0); }); }, x, true);
  };
  where_positive("26a", logarithm, 0), where_positive("26b", logarithm, -1), where_positive("26c", root, 0);
  where_positive("26d", root, -1), where_positive("26e", inverse, 0);
  r.one("32a", [](D x) { return select(x == x, x, D(0.0)); }, none);
  r.one("36a", [](D x) { const D m = relu(x); return m * m; }, 0, true);
  r.one("36b", [](D x) { return abs(x) * abs(x); }, 0, true);
  r.two("36d", [](D x, D y) { return max(x, y) * min(x, y); }, 1, 1);
  r.two("36e", [](D x, D y) { return max(x, y) - (abs(x - y) + x + y) / 2.0; }, 1, 1);
  r.two("36f", [](D x, D y) { const D h = hypot(x, y); return h * h; }, 0, 0, true);
  r.three("36h", [](D x, D y, D z) { return max(max(x, y), z); }, 1, 1, 1);
  r.one("36i", [](D x) { return WHILE(x, [](D t) { return t > 1.0; }, [](D t) { return t * 0.5; }); }, 2);
  r.one("36j", [](D x) { return 0.0 * sqrt(x) + x; }, 0);
  r.two("37a", [](D x, D y) { return max(x, y) + min(x, y); }, 1, 1, true);
  r.one("37b", [](D x) { return max(sqrt(x), 1.0); }, 0, true);
  r.one("37c", [](D x) { return relu(log(x)); }, 0, true);
  r.one("37d", [](D x) { return clip(sqrt(x), 0.5, 1.0); }, 0, true);
  r.one("37e", [](D x) { return min(1.0 / x, 1.0); }, 0, true);
  r.one("37j", [](D x) { return select(abs(x) <= 1.0, x * x / 2.0, abs(x) - 0.5); }, 0, true);
  r.one("37l", [](D x) { return pow(abs(x), 1.5); }, 0);
  r.one("37p", [](D x) { const D q = sqrt(x); return q * q; }, 0);
  r.one("38a", [](D x) { const D b = sqrt(x), a = 2.0 * x; return IF(x < 1.0, [&] { return a; }, [&] { return b; }); }, 0, true);
  r.one("38b", [](D x) {
    const auto both = IF(x >= 0.0, [&] { return std::pair(2.0 * x, sqrt(x)); }, [&] { return std::pair(x, x); });
    return both.first;
  }, 0, true);
  r.one("38c", [](D x) {
    const auto s = FOR(0, 3, std::pair(x, x), [&](auto, auto t) { return std::pair(t.first + x, t.second + sqrt(x)); });
    return s.first;
  }, 0, true);
  r.one("38d", [](D x) {
    const D b = sqrt(x);
    return FOR(0, 3, D(0.0), [&](auto i, auto s) { return IF(i < 5, [&] { return s + x; }, [&] { return s + b; }); });
  }, 0, true);
  r.one("38e", [](D x) {
    V a = fill(D(0.0), 2);
    a = a.set(0, sqrt(x));
    a = a.set(1, 2.0 * x);
    return a[1];
  }, 0, true);
  r.one("38f", [](D x) { return WHILE(x, [](D t) { return t > 1.0; }, [](D t) { return sqrt(t); }); }, 0, true);
  r.one("38g", [](D x) {
    const D b = sqrt(x);
    const auto s = WHILE(std::pair(I(std::int64_t{0}), x), [](auto t) { return t.first < 2; }, [&](auto t) {
      return std::pair(t.first + 1, IF(t.first < 5, [&] { return t.second + x; }, [&] { return t.second + b; }));
    });
    return s.second;
  }, 0, true);
  const auto either = FUN<double(double, double, int64_t)>("either", [](auto, D a, D b, I k) {
    return IF(k == 0, [&] { return a; }, [&] { return b; });
  });
  r.one("38h", [either](D x) { return either(2.0 * x, sqrt(x), std::int64_t{0}); }, 0, true);
  r.two("38i", [](D x, D k) { const D b = sqrt(x), a = 2.0 * x; return IF(k == 0.0, [&] { return a; }, [&] { return b; }); }, 0, 0);
  r.one("38j", [](D x) { const D b = log(x); return IF(x > 0.0, [&] { return b; }, [&] { return D(0.0); }); }, 0, true);
  const auto rec = FUN<double(double, int64_t)>("rec", [](auto self, D x, I n) {
    return IF(n == 0, [&] { return x; }, [&] { return self(x, n - 1) + 0.0 * x; });
  });
  r.one("38k", [rec](D x) {
    const D b = sqrt(x);
    return IF(x < 1.0, [&] { return rec(x, std::int64_t{3}); }, [&] { return rec(b, std::int64_t{3}); });
  }, 0, true);
  r.one("40i", [](D x) {
    const D n = sqrt(x);
    return FOR(0, 2, D(0.0), [&](auto, D s) { return s + select(n > 0.0, n * n, 0.0); });
  }, 0, true);
  r.one("40j", [](D x) {
    const D b = sin(max(sqrt(x), x));
    return IF(x < 1.0, [&] { return 2.0 * x; }, [&] { return b; });
  }, 0, true);
  r.one("40k", [](D x) {
    const D b = exp(2.0 * select(x < 1.0, sqrt(x), x));
    return FOR(0, 2, D(0.0), [&](auto, D s) { return s + select(x < 1.0, 2.0 * x, b); });
  }, 0, true);
  const auto twice = FUN<double(double, int64_t)>("twice", [](auto self, D y, I n) {
    return IF(n == 0, [&] { return y; }, [&] { return sin(self(y, n - 1)) + y; });
  });
  r.one("40l", [twice](D x) {
    const D q = twice(x, std::int64_t{2});
    return sin(select(q > 0.0, log(q), x));
  }, 0, true);
  // Derivatives of derivatives: a slope at a kink by which nothing flows.
  r.one("40p", [](D x) { return FOR(0, 2, abs(x), [&](auto, D) { return 3.0 * x; }); }, 0, true);
  r.one("40s", [](D x) {
    const auto below = [](I n, D t) { return AND(n < 3, [&] { return t < 0.7; }); };
    const auto next = [](I n, D t) { return std::pair(n + 1, t + abs(t) + 0.1); };
    return max(WHILE(std::pair(I(0), x), below, next).second, 1.0);
  }, 0, true);
  // A loop without an iteration, a value that only the first iterations use, two branches of which one is taken.
  r.two("38l", [](D x, D n) {
    const D b = sqrt(x);
    return FOR(0, cast<std::int64_t>(n), 3.0 * x, [&](auto, auto s) { return s + b; });
  }, 0, 0);
  r.one("38m", [](D x) {
    const D b = sqrt(x);
    const D s = IF(x < 1.0, [&] { return x; }, [&] { return b; });
    return s + IF(x > 1.0, [&] { return b; }, [&] { return 2.0 * x; });
  }, 0, true);
  r.one("38n", [](D x) {
    const D b = log(x);
    return FOR(0, 4, x, [&](auto i, auto s) {
      return IF(i < 2, [&] { return 2.0 * s; }, [&] { return IF(x > 0.0, [&] { return s * b; }, [&] { return s; }); });
    });
  }, 0, true);
  // A state that the first iteration replaces.
  r.one("38o", [](D x) {
    const D b = sqrt(x);
    return FOR(0, 2, b, [&](auto, auto) { return 2.0 * x; });
  }, 0, true);
  // Tangents of what loops and recursive functions give.
  r.two("38p", [](D x, D n) {
    return sqrt(FOR(0, cast<std::int64_t>(n), D(0.0), [&](auto, D s) { return s + x; })) + 3.0 * x;
  }, 0, 0, true);
  r.one("38q", [](D x) {
    const D pole = 1.0 / x;
    return FOR(0, 2, D(0.0), [&](auto i, D s) { return IF(i == 5, [&] { return s * pole; }, [&] { return s * s + x; }); });
  }, 0, true);
  r.two("38r", [](D x, D y) {
    const auto s = FOR(0, 3, std::pair(D(0.0), D(0.0)), [&](auto i, auto t) {
      return std::pair(t.second, IF(i > 4, [&] { return t.first + x; }, [&] { return t.first; }));
    });
    return sqrt(s.first) + pow(s.second, 0.5) + x * y;
  }, 0, 2, true);
  r.two("38s", [](D x, D y) { return sqrt(FOR(0, 2, x, [&](auto, D) { return D(0.0); })) + x * y; }, 1, 2, true);
  const auto times = FUN<double(double, int64_t)>("times", [](auto self, D x, I n) {
    return IF(n == 0, [&] { return D(0.0); }, [&] { return x + self(x, n - 1); });
  });
  r.two("38t", [times](D x, D n) { return sqrt(times(x, cast<std::int64_t>(n))) + 2.0 * x; }, 0, 0, true);
  const auto handed = FUN<double(double, double, int64_t)>("handed", [](auto self, D x, D y, I n) {
    return IF(n == 0, [&] { return sqrt(x) + y; }, [&] { return 0.5 * self(x, 2.0 * y, n - 1); });
  });
  r.two("38u", [handed](D x, D y) {
    const D z = IF(x < 1.0, [] { return D(0.0); }, [&] { return x; });
    return handed(z, x, std::int64_t{2}) * y;
  }, 0, 2, true);
  return r.all;
}

inline std::vector<Row> rows_of_arrays() {
  std::vector<Row> r;
  const auto add = [&](const std::string& id, const std::function<D(V)>& f, std::vector<double> at, bool second = false) {
    r.push_back({id, {}, {}, {}, f, std::move(at), second});
  };
  const auto tensor = [](V a) { return Rep<Tensor<double>>(a.datum()); };
  const std::function<D(V)> length = [](V a) { return norm(a); };
  add("7e", length, {0, 0});
  add("7f", length, {1e200, 1e200});
  add("7g", length, {1e-200, 1e-200});
  add("7h", [](V a) { return sum(abs(a)); }, {0, 2});
  add("7i", [](V a) { return max(abs(a)); }, {2, -2, 1});
  add("9a", [](V a) { return dot(sort(a), counting(4)); }, {2, 1, 2, 1});
  const std::function<D(V)> largest = [](V a) { return max(a); };
  add("10a", largest, {1, 3, 3, 2});
  add("10b", largest, {2, 2, 2});
  add("10c", [](V a) { return min(a); }, {2, 1, 1});
  add("10d", largest, {1, none, 3});
  add("10f", [](V a) { return sum(max_pool(reshape(a, 1, 1, 4), 2, {.stride = 2})); }, {1, 1, 0, 2});
  add("10z", [](V a) { return sum(max<1>(reshape(a, 2, 3))); }, {1, 1, 0, 2, 3, 3});
  add("11a", [](V a) { return prod(a); }, {2, 0, 3}, true);
  const std::function<D(V)> log_sum = [](V a) { return logsumexp(a); };
  add("16a logsumexp", log_sum, {0, 0}, true);
  add("16b", log_sum, {-inf, -inf});
  add("16d", log_sum, {-inf, 0});
  add("16g", log_sum, {1000, 1000});
  add("17h", [](V a) { return dot(softmax<0>(a), counting(2)); }, {-inf, -inf});
  add("17g", [](V a) { return dot(softmax<0>(a), counting(2)); }, {-inf, 0});
  add("17m", [](V a) { return dot(softmax<0>(a), counting(2)); }, {1e200, -1e200});
  add("17k", [](V a) { return log_softmax<0>(a)[1]; }, {-inf, -inf});
  add("23b", [](V a) { return var(a); }, {2, 2, 2}, true);
  add("25y", [tensor](V a) { return nn::huber(tensor(a), zeros_like(tensor(a))); }, {1}, true);
  add("25z", [tensor](V a) { return nn::huber(tensor(a), zeros_like(tensor(a))); }, {0}, true);
  add("25A", [](V a) { return nn::l1(a, zeros_like(a)); }, {0});
  add("26a where", [tensor](V a) { return sum(where(tensor(a) > 0.0, log(tensor(a)), 0.0)); }, {0, -1, 2});
  add("26c where", [tensor](V a) { return sum(where(tensor(a) > 0.0, sqrt(tensor(a)), 0.0)); }, {0, -1, 4});
  add("26e where", [tensor](V a) { return sum(where(tensor(a) > 0.0, 3.0 / tensor(a), tensor(a))); }, {0, -1, 4});
  add("37c array", [tensor](V a) { return sum(relu(log(tensor(a)))); }, {0, 1, 4});
  // Arrays of which some elements are read, kept or handed on.
  add("39a", [](V a) {
    const V b = sqrt(a);
    return FOR(0, a.size(), D(0.0), [&](auto i, auto s) {
      return IF(a[i] > 0.0, [&] { return s + b[i]; }, [&] { return s; });
    });
  }, {0, 4});
  add("39b", [](V a) {
    const V b = log(a);
    return FOR(0, a.size() - 1, D(0.0), [&](auto i, auto s) { return s + b[i]; });
  }, {2, 0});
  add("39c", [](V a) {
    const V b = FOR(0, a.size(), a, [&](auto i, V s) { return s.set(i, sqrt(a[i])); });
    return b[1];
  }, {0, 4});
  add("39d", [](V a) { return sum(sqrt(a).slice(1, 2)); }, {0, 4});
  add("39e", [](V a) {
    const V b = 1.0 / a;
    return sum(b.set(0, a[1]));
  }, {0, 4});
  add("39f", [](V a) { return sum(sqrt(reshape(a, 2, 2)).row(1)); }, {0, 0, 4, 1});
  add("39g", [](V a) {
    const auto m = sqrt(reshape(a, 2, 2));
    return m(1, 1) + m(1, 0);
  }, {0, 0, 4, 1});
  add("39h", [](V a) {
    const V b = sqrt(a);
    return IF(a[1] > 1.0, [&] { return b[1]; }, [&] { return b[0]; });
  }, {0, 4});
  add("39i", [](V a) {
    const V b = sqrt(a), c = 2.0 * b + a;
    return sum(FOR(0, 2, fill(D(0.0), 2), [&](auto i, V s) {
      return s.set(i, IF(a[i] > 0.0, [&] { return c[i] * c[i]; }, [&] { return a[i]; }));
    }));
  }, {0, 4});
  add("39j", [](V a) { return sum(concat(sqrt(a).slice(1, 2), a)); }, {0, 4});
  add("39k", [](V a) {
    const auto m = transpose(sqrt(reshape(a, 2, 2)));
    return m(0, 1);
  }, {0, 0, 4, 0});
  add("39l", [](V a) { return transpose(reshape(sqrt(a), 2, 2))(0, 1); }, {0, 0, 4, 0});
  add("39m", [](V a) { return sum(FOR(0, 1, 1.0 / a, [&](auto i, V s) { return s.set(i, a[1]); })); }, {0, 4});
  add("39n", [](V a) {
    return sum(FOR(0, a.size(), log(a), [&](auto i, V s) {
      return IF(a[i] <= 0.0, [&] { return s.set(i, D(1.0)); }, [&] { return s; });
    }));
  }, {0, 4, 0});
  // Arrays that recursive functions read.
  add("39o", [](V a) {
    const auto from = FUN<double(Array<double>, std::int64_t)>("from", [](auto self, V b, I i) {
      return IF(i >= b.size(), [] { return D(0.0); }, [&] { return b[i] + 2.0 * self(b, i + 1); });
    });
    return from(sqrt(a), 1);
  }, {0, 4, 9});
  add("39p", [](V a) {
    const auto all = FUN<double(Array<double>, std::int64_t, std::int64_t)>("all", [](auto self, V b, I i, I j) {
      return IF(j - i <= 1, [&] { return b[i]; }, [&] {
        const I middle = (i + j) / 2;
        return self(b, i, middle) + self(b, middle, j);
      });
    });
    return all(sqrt(a), 1, a.size()) + all(log(a), 2, 3);
  }, {0, 4, 9, 1});
  add("39q", [](V a) {
    const auto in_turn = FUN<double(Array<double>, Array<double>, std::int64_t)>("in_turn", [](auto self, V b, V c, I i) {
      return IF(i >= b.size(), [] { return D(0.0); }, [&] { return b[i] + self(c, b, i + 1); });
    });
    return in_turn(sqrt(a), log(a), 1);
  }, {0, 4, 1, 1});
  // Arrays and numbers that recursive functions return.
  add("39r", [](V a) {
    const auto roots = FUN<Array<double>(Array<double>, std::int64_t)>("roots", [](auto self, V b, I i) {
      return IF(i >= b.size(), [&] { return b; }, [&] { return self(b.set(i, sqrt(b[i])), i + 1); });
    });
    return roots(a, 0)[1];
  }, {0, 4});
  add("39s", [](V a) {
    const auto twice = FUN<double(double, std::int64_t)>("twice", [](auto self, D x, I i) {
      return IF(i <= 0, [&] { return x; }, [&] { return sin(self(2.0 * x, i - 1)); });
    });
    return max(twice(sqrt(a[0]), 1), a[1]);
  }, {0, 4});
  // Loops that change elements of an array, and also read them.
  add("39t", [](V a) {
    return FOR(1, a.size(), sqrt(a), [&](auto i, V s) { return s.set(i, s[i] + 0.5 * s[i - 1]); })[1];
  }, {1, 4, 0}, true);
  add("39u", [](V a) {
    return FOR(0, a.size() - 1, sqrt(a), [&](auto i, V s) {
      const D t = s[i];
      return s.set(i, s[i + 1]).set(i + 1, t);
    })[0];
  }, {0, 4, 0}, true);
  add("39v", [](V a) {
    return FOR(0, 2, log(a), [&](auto, V s) {
      return FOR(1, a.size(), s, [&](auto j, V t) { return t.set(j, t[j] * t[j - 1]); });
    })[1];
  }, {2, 3, 0}, true);
  add("39w", [](V a) {
    const V b = FOR(1, a.size(), a, [&](auto i, V s) {
      return s.set(i, IF(s[i - 1] > 0.0, [&] { return 2.0 * s[i - 1]; }, [&] { return sqrt(s[i]); }));
    });
    return b[1] + b[2];
  }, {1, 0, 0}, true);
  add("39x", [](V a) {
    return FOR(1, a.size(), sqrt(a), [&](auto i, V s) { return s.set(i, -(s[i] * s[i]) + 0.0 * s[i - 1]); })[2];
  }, {0, 0, 0});
  // Results of recursive functions that are dropped.
  add("39y", [](V a) {
    const auto roots = FUN<double(double, std::int64_t)>("dropped", [](auto self, D x, I n) {
      return IF(n <= 0, [&] { return sqrt(x); }, [&] { self(x, n - 1); return 3.0 * x; });
    });
    return roots(a[0], I(std::int64_t{2})) + a[1];
  }, {0, 4});
  add("39z", [](V a) {
    const auto keeps = FUN<Array<double>(Array<double>, double, std::int64_t)>("keeps", [](auto self, V s, D x, I n) {
      return IF(n == 0, [&] { return s.set(0, sqrt(x)); }, [&] { return self(s.set(1, 2.0 * x), x, n - 1); });
    });
    const V b = keeps(a, a[0], I(std::int64_t{2}));
    return IF(a[1] > 0.0, [&] { return b[1] + a[1] * a[1]; }, [&] { return b[0]; });
  }, {0, 4}, true);
  // Loops and recursive functions that replace what they read.
  add("40a", [](V a) { return FOR(0, a.size(), a, [&](auto i, V s) { return s.set(i, sqrt(s[i])); })[1]; }, {0, 4, 0});
  add("40b", [](V a) {
    return FOR(0, 2, a, [&](auto, V s) {
      return FOR(0, a.size(), s, [&](auto i, V t) { return t.set(i, log(t[i] * t[i])); });
    })[1];
  }, {0, 3, 0});
  add("40c", [](V a) {
    const auto roots = FUN<Array<double>(Array<double>, std::int64_t)>("in_place", [](auto self, V b, I i) {
      return IF(i >= b.size(), [&] { return b; }, [&] {
        const V c = self(b, i + 1);
        return c.set(i, sqrt(c[i]) + 0.5 * c[i - 1]);
      });
    });
    return roots(a, 1)[1];
  }, {1, 4, 0}, true);
  // Loops that divide by what may be 0, in place.
  add("40d", [](V a) {
    const V b = FOR(0, a.size(), a, [&](auto i, V s) { return s.set(i, 1.0 / s[i]); });
    return FOR(0, a.size(), D(0.0), [&](auto i, auto sum) {
      return sum + IF(a[i] > 0.0, [&] { return b[i]; }, [] { return D(1.0); });
    });
  }, {2, 0}, true);
  add("40e", [](V a) {
    const V b = FOR(1, a.size(), a, [&](auto i, V s) { return s.set(i, s[i] / s[i - 1]); });
    return IF(a[2] > 0.0, [&] { return b[2]; }, [&] { return b[1]; });
  }, {3, 6, 0});
  add("40f", [](V a) {
    return FOR(0, 2, a.slice(2, 4), [&](auto i, V s) {
      const D rest = FOR(0, i, s[i], [&](auto j, D t) { return t - s[j]; });
      return s.set(i, rest / a[i]);
    })[0];
  }, {2, 0, 1, 3});
  add("40g", [](V a) {
    const auto [b, c] = FOR(1, a.size(), std::pair(a, a), [&](auto i, V s, V t) {
      return std::pair(s.set(i, s[i] / t[i - 1]), t.set(i, t[i] + s[i - 1]));
    });
    return c[1] + c[2];
  }, {2, -2, 3});
  add("40h", [](V a) {
    return FOR(0, a.size() - 1, 1.0 / a, [&](auto i, V s) {
      const D t = s[i];
      return s.set(i, s[i + 1] / a[i]).set(i + 1, t);
    })[1];
  }, {4, 2, 3, 0});
  // Sums of elements to which nothing flows.
  add("40m", [](V a) {
    const D v = var(1.0 / a);
    return IF(a[1] < 2.0, [&] { return a[1]; }, [&] { return v; });
  }, {0, 1, 4}, true);
  add("40n", [](V a) { return sum<0>(sqrt(reshape(a, 2, 2)))(1); }, {0, 1, 4, 9}, true);
  add("40o", [](V a) { return max<0>(sqrt(reshape(a, 2, 2)))(0); }, {1, 0, 0.25, 0}, true);
  add("40q", [](V a) {
    const V b = fill(norm(a), 3);
    return IF(b[0] > 0.0, [&] { return b; }, [] { return fill(D(0.0), 3); })[1];
  }, {0, 0}, true);
  add("40r", [](V a) {
    const V zeros = fill(D(0.0), 4);
    const auto next = [](auto i, V s, V t) { return std::pair(s.set(i, t[i + 1]), t.set(i, s[i])); };
    return FOR(0, 3, std::pair(fill(sqrt(a[0]), 4), zeros), next).first[1] + a[1];
  }, {0, 4}, true);
  add("36c", [](V a) { const D n = norm(a); return n * n; }, {0, 0}, true);
  return r;
}

}  // namespace kinks

}  // namespace lantern::test
