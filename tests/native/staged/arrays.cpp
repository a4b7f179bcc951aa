// Native control flow over what only Rep has: arrays whose length is known at run time, tensors, trees, Vars.
// This file does not compile without lanternc's rewriting.
#include <cmath>
#include <numeric>

#include "lantern/lantern.hpp"
#include "staged_case.hpp"

using namespace lantern;

namespace {

Rep<double> sum_of_squares(Rep<Array<double>> a) {
  Rep<double> s = 0.0;
  for (Rep<double> v : a) s += v * v;
  return s;
}

Rep<double> sum_by_index(Rep<Array<double>> a) {
  Rep<double> s = 0.0;
  const Rep<std::int64_t> n = a.size();
  for (Rep<std::int64_t> i = 0; i < n; ++i) s += a[i] * a[i];
  return s;
}

Rep<double> sum_until(Rep<Array<double>> a) {
  Rep<double> s = 0.0;
  for (auto v : a) {
    if (v < 0.0) break;
    if (v > 2.0) continue;
    s = s + v * v;
  }
  return s;
}

Rep<double> first_large(Rep<Array<double>> a) {
  for (auto v : a)
    if (v > 1.5) return v * v;
  return a[0];
}

Rep<double> prefix_sums(Rep<Array<double>> a) {
  for (Rep<std::int64_t> i = 1; i < a.size(); ++i) a[i] += a[i - 1];
  a[0] = 2.0 * a[0];
  a[a.size() - 1] *= 3.0;
  return a[0] + a[a.size() - 1];
}

Rep<double> insertion_sort(Rep<Array<double>> a) {
  for (Rep<std::int64_t> i = 1; i < a.size(); ++i) {
    Rep<double> key = a[i];
    Rep<std::int64_t> j = i - 1;
    while (j >= 0 && a[j] > key) {
      a[j + 1] = a[j];
      --j;
    }
    a[j + 1] = key;
  }
  Rep<double> s = 0.0, weight = 1.0;
  for (Rep<double> v : a) {
    s += weight * v;
    weight *= 0.5;
  }
  return s;
}

Rep<double> quicksort_range(Rep<Array<double>> a, Rep<std::int64_t> lo, Rep<std::int64_t> hi,
                            Rep<double> pivot) {
  Rep<double> below = 0.0;
  for (Rep<std::int64_t> i = lo; i < hi; ++i)
    if (a[i] < pivot) below += a[i];
  return below;
}
Rep<double> below_mean(Rep<Array<double>> a) {
  Rep<double> mean = sum_of_squares(a) / cast<double>(a.size());
  return quicksort_range(a, 0, a.size(), mean);
}

/// Sums of the halves, by recursion.
Rep<double> halves(Rep<Array<double>> a, Rep<std::int64_t> lo, Rep<std::int64_t> hi) {
  if (hi - lo <= 0) return 0.0;
  if (hi - lo == 1) return a[lo] * a[lo];
  Rep<std::int64_t> middle = (lo + hi) / 2;
  return halves(a, lo, middle) + 2.0 * halves(a, middle, hi);
}
Rep<double> by_halves(Rep<Array<double>> a) { return halves(a, 0, a.size()); }

Rep<double> binary_search(Rep<Array<double>> a) {
  Rep<std::int64_t> lo = 0, hi = a.size();
  while (lo < hi) {
    Rep<std::int64_t> middle = (lo + hi) / 2;
    if (a[middle] < 1.25)
      lo = middle + 1;
    else
      hi = middle;
  }
  if (lo == a.size()) return -1.0;
  return a[lo] * 2.0;
}

Rep<double> with_var(Rep<Array<double>> a) {
  Var<double> s = 0.0;
  for (Rep<std::int64_t> i = 0; i < a.size(); ++i) {
    if (a[i] > 1.0) s += a[i];
  }
  return s;
}

Rep<double> tensor_elements(Rep<Array<double>> a) {
  Rep<Tensor<double>> t = as_tensor(a);
  for (Rep<std::int64_t> i = 0; i < t.dim(0); ++i) {
    if (t(i) > 1.0)
      t(i) = 0.5 * t(i);
    else
      t(i) -= 1.0;
  }
  return dot(t, t);
}

Rep<double> lookup_and_step(Rep<Array<double>> a) {
  Rep<std::int64_t> at = 0, steps = 0;
  Rep<double> s = 0.0;
  do {
    s += a[at];
    at += 1 + cast<std::int64_t>(a[at]);
    if (++steps > 10) return -s;
  } while (at < a.size());
  return s;
}

/// Elements that are counted up and down.
Rep<double> histogram(Rep<Array<double>> a) {
  Rep<Array<std::int64_t>> count = fill(Rep<std::int64_t>(0), 8);
  Rep<std::int64_t> seen = 0;
  for (Rep<double> v : a) {
    Rep<std::int64_t> k = v < 0.0 ? Rep<std::int64_t>(0) : min(cast<std::int64_t>(v) + 1, 7);
    seen += count[k]++;
    if (v > 1.0) seen += ++count[k] - count[0]--;
  }
  count[1] %= 3;
  --count[2];
  for (auto&& c : count) seen = 2 * seen + c;
  return cast<double>(seen) * a[0];
}

template <class T>
T constexpr_branches(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    if (x > 1.0) return x * x;
  }
  return x * 3.0;
}
Rep<double> constexpr_first(Rep<Array<double>> a) {
  return constexpr_branches(a[0]) + constexpr_branches(2.0);
}

Rep<double> tree_sum(Rep<Tree<double>> t) {
  if (t.empty()) return 0.0;
  return t.value() + tree_sum(t.left()) * 0.5 + tree_sum(t.right()) * 2.0;
}

}  // namespace

namespace staged_cases {

void add_array_cases() {
  const auto squares = [](const std::vector<double>& a) {
    return std::inner_product(a.begin(), a.end(), a.begin(), 0.0);
  };
  add("sum_of_squares", sum_of_squares, squares);
  add("sum_by_index", sum_by_index, squares);
  add("sum_until", sum_until, [](const std::vector<double>& a) {
    double s = 0;
    for (double v : a) {
      if (v < 0) break;
      if (v <= 2) s += v * v;
    }
    return s;
  });
  add("first_large", first_large, [](const std::vector<double>& a) {
    for (double v : a)
      if (v > 1.5) return v * v;
    return a[0];
  });
  add("prefix_sums", prefix_sums, [](const std::vector<double>& a) {
    if (a.size() == 1) return 12 * a[0];
    return 2 * a[0] + 3 * std::accumulate(a.begin(), a.end(), 0.0);
  });
  add("insertion_sort", insertion_sort, [](std::vector<double> a) {
    std::sort(a.begin(), a.end());
    double s = 0, w = 1;
    for (double v : a) s += w * v, w *= 0.5;
    return s;
  });
  add("below_mean", below_mean, [=](const std::vector<double>& a) {
    const double mean = squares(a) / static_cast<double>(a.size());
    double s = 0;
    for (double v : a) s += v < mean ? v : 0;
    return s;
  });
  add("by_halves", by_halves, [](const std::vector<double>& a) {
    const std::function<double(std::size_t, std::size_t)> f = [&](std::size_t lo, std::size_t hi) {
      if (hi - lo == 0) return 0.0;
      if (hi - lo == 1) return a[lo] * a[lo];
      return f(lo, (lo + hi) / 2) + 2 * f((lo + hi) / 2, hi);
    };
    return f(0, a.size());
  });
  add("binary_search", binary_search, [](const std::vector<double>& a) {
    std::size_t lo = 0, hi = a.size();
    while (lo < hi) {
      const std::size_t middle = (lo + hi) / 2;
      if (a[middle] < 1.25)
        lo = middle + 1;
      else
        hi = middle;
    }
    return lo == a.size() ? -1.0 : 2 * a[lo];
  });
  add("with_var", with_var, [](const std::vector<double>& a) {
    double s = 0;
    for (double v : a) s += v > 1 ? v : 0;
    return s;
  });
  add("tensor_elements", tensor_elements, [](const std::vector<double>& a) {
    double s = 0;
    for (double v : a) s += v > 1 ? 0.25 * v * v : (v - 1) * (v - 1);
    return s;
  });
  add("lookup_and_step", lookup_and_step, [](const std::vector<double>& a) {
    double s = 0;
    std::size_t at = 0;
    do {
      s += a[at];
      at += 1 + static_cast<std::size_t>(static_cast<std::int64_t>(a[at]));
    } while (at < a.size());
    return s;
  });
  add("histogram", histogram, [](const std::vector<double>& a) {
    std::int64_t count[8] = {}, seen = 0;
    for (const double v : a) {
      const std::int64_t k = v < 0 ? 0 : std::min<std::int64_t>(static_cast<std::int64_t>(v) + 1, 7);
      seen += count[k]++;
      if (v > 1.0) {
        seen += ++count[k];
        seen -= count[0]--;
      }
    }
    count[1] %= 3;
    --count[2];
    for (const std::int64_t c : count) seen = 2 * seen + c;
    return static_cast<double>(seen) * a[0];
  });
  add("constexpr_first", constexpr_first,
      [](const std::vector<double>& a) { return 2.0 + (a[0] > 1 ? a[0] * a[0] : 3 * a[0]); });
}

double tree_by_recursion() {
  const Tree<double> tree(2.0, Tree<double>(5.0), Tree<double>(1.0, Tree<double>(), Tree<double>(4.0)));
  const auto f = compile(tree_sum, {.target = Target::c});
  return f(tree);
}

}  // namespace staged_cases
