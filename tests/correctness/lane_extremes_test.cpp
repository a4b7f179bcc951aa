// The largest and the smallest number of a loop, in lanes: of every number of iterations about the lanes, with NaN, beside
// sums, in a float, and in threads.
#include <cmath>
#include <lantern/lantern.hpp>

#include "../lanes.hpp"
#include "catch2/catch.hpp"

using namespace lantern;

namespace {

TensorValue<double> numbers(std::int64_t n, int kind) {
  TensorValue<double> x(std::vector<std::int64_t>{n});
  for (std::int64_t i = 0; i < n; ++i) {
    double& v = x.data[static_cast<std::size_t>(i)];
    v = std::sin(7.3 * static_cast<double>(i + n)) - (kind == 2 ? 5 : 0);
    if (kind == 1 && i % 5 == 2) v = std::nan("");
  }
  return x;
}

}  // namespace

TEST_CASE("extremes in lanes are those of the numbers") {
  const auto both = [](Rep<Tensor<double, dyn>> x) {
    return FOR(0, x.dim(0), std::tuple(Rep<double>(-1e308), Rep<double>(1e308), Rep<double>(0.0)),
               [&](auto i, auto most, auto least, auto total) {
                 return std::tuple(max(most, x(i) * x(i)), min(x(i), least), total + 1.0);
               });
  };
  const auto narrow = [](Rep<Tensor<float, dyn>> x) {
    return FOR(0, x.dim(0), Rep<float>(-1e38F), [&](auto i, auto most) { return max(x(i), most); });
  };
  for (const CompileOptions& options :
       {CompileOptions{.target = Target::c, .lanes = test::lanes_under_test()},
        CompileOptions{.target = Target::cpp, .lanes = test::lanes_under_test()},
        CompileOptions{.target = Target::cpp, .threads = 2, .lanes = test::lanes_under_test()},
        CompileOptions{.target = Target::cpp, .strict_math = true, .lanes = test::lanes_under_test()}}) {
    const auto wide = compile(both, options);
    const auto single = compile(narrow, options);
    for (std::int64_t n = 0; n < 70; ++n)
      for (int kind = 0; kind < 3; ++kind) {
        const TensorValue<double> x = numbers(n, kind);
        TensorValue<float> y(x.shape);
        double most = -1e308, least = 1e308;
        float largest = -1e38F;
        for (std::size_t i = 0; i < x.data.size(); ++i) {
          y.data[i] = static_cast<float>(x.data[i]);
          most = std::fmax(most, x.data[i] * x.data[i]);
          least = std::fmin(least, x.data[i]);
          largest = std::fmax(largest, y.data[i]);
        }
        INFO(n << " numbers of kind " << kind);
        CHECK(wide(x) == std::tuple(most, least, static_cast<double>(n)));
        CHECK(single(y) == largest);
      }
  }
}

TEST_CASE("a loop that takes the largest runs in lanes, and in its own order where sums keep theirs") {
  const auto largest = [](Rep<Tensor<double, dyn>> x) {
    return FOR(0, x.dim(0), Rep<double>(-1.0), [&](auto i, auto most) { return max(most, x(i)); });
  };
  const int lanes = test::lanes_under_test();
  const auto source = [&](bool reassociate) {
    return compile(largest, {.target = Target::cpp, .reassociate = reassociate, .lanes = lanes}).source("cpp");
  };
  const bool found = source(true).find("lt_largest") != std::string::npos;
  CHECK(found);
  CHECK(source(false).find("lt_largest") == std::string::npos);
}
