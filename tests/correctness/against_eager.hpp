// A program compiled in several ways, beside eager evaluation.
#pragma once

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "../lanes.hpp"
#include "row_programs.hpp"

namespace lantern::test {

inline const std::vector<double>& flat(const std::vector<double>& x) { return x; }
inline const std::vector<double>& flat(const TensorValue<double>& x) { return x.data; }

/// A program's value and gradient, of compiled code with and without lanes, against eager evaluation.
template <class F>
class Checked {
 public:
  explicit Checked(F f) : f_(f) {
    for (const CompileOptions& way :
         {CompileOptions{.target = Target::c},
          CompileOptions{.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()}})
      ways_.emplace_back(compile(f, way), compile(grad<0>(f), way));
  }
  template <class X, class... Others>
  void operator()(const X& x, Others... others) const {
    const double value = eager(f_)(x, others...);
    const auto slopes = eager(grad<0>(f_))(x, others...);
    for (const auto& [f, g] : ways_) {
      CHECK(f(x, others...) == Approx(value).epsilon(1e-10));
      check_close(flat(g(x, others...)), flat(slopes));
    }
  }
  /// An error, as of eager evaluation.
  template <class... In>
  void fails(const In&... in) const {
    CHECK_THROWS_AS(eager(f_)(in...), Error);
    for (const auto& [f, g] : ways_) {
      CHECK_THROWS_AS(f(in...), Error);
      CHECK_THROWS_AS(g(in...), Error);
    }
  }

 private:
  F f_;
  std::vector<std::pair<decltype(compile(std::declval<F>())), decltype(compile(grad<0>(std::declval<F>())))>>
      ways_;
};

}  // namespace lantern::test
