// Elements are read before their tensor is changed.
#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>

#include "around_pass.hpp"
#include "lantern/lantern.hpp"

namespace lantern {
namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using V = Rep<Array<double>>;
using Indices = Rep<Array<std::int64_t>>;

/// Forces of neighbours, action and reaction: f[i + 1] is read of the array that the first set changes.
D forces(V x) {
  const I n = x.size();
  const V all = FOR(0, n - 1, fill(D(0.0), n), [&](I i, V f) {
    const D g = sin(x[i] - x[i + 1]);
    return f.set(i, f[i] + g).set(i + 1, f[i + 1] - g);
  });
  return sum(all * all);
}

/// A butterfly of a Fourier transform, at places that a list names.
D butterflies(V x, Indices at) {
  const I half = at.size() / 2;
  V y = x;
  FOR(0, half,
      [&](I k) { y = y.set(at[k] + half, 0.5 * y[at[k] + half] * x[k]).set(k, y[k] + y[at[k] + half]); });
  return sum(y * y);
}

/// What a program does to whole tensors in its loops.
std::size_t in_loops(const std::string& ir, const std::string& what) {
  std::size_t n = 0, depth = 0;
  std::istringstream lines(ir);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("} do (") != std::string::npos) depth = line.find('}') + 1;
    if (depth > 0 && line == std::string(depth - 1, ' ') + "}") depth = 0;
    n += depth > 0 && line.find(" = " + what + " ") != std::string::npos;
  }
  return n;
}

template <class F, class... A>
void check(F f, const A&... args) {
  const auto expected = eager(grad<0>(f))(args...);
  for (const int opt : {0, 3}) {
    CAPTURE(opt);
    const CompileOptions options{.target = opt == 3 ? Target::cpp : Target::c, .opt = opt};
    const auto value = compile(f, options);
    const auto gradient = compile(grad<0>(f), options);
    CHECK(value(args...) == Approx(eager(f)(args...)).epsilon(1e-12));
    const std::vector<double> got = gradient(args...);
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == Approx(expected[i]).epsilon(1e-11).margin(1e-12));
    if (opt == 0) continue;
    for (const std::string& ir : {value.source("ir"), gradient.source("ir")})
      for (const char* whole : {"copy", "zeros_like", "broadcast"}) {
        CAPTURE(whole, ir);
        CHECK(in_loops(ir, whole) == 0);
      }
  }
}

std::vector<double> numbers(std::size_t n) {
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = std::sin(1.3 * static_cast<double>(i)) + 0.1;
  return x;
}

TEST_CASE("reads_first: neither an array nor its adjoint is copied in an iteration", "[passes]") {
  check(forces, numbers(9));
  check(butterflies, numbers(8), std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("reads_first: what may raise or print stays in order", "[passes]") {
  const auto printed = [](V x) {
    V y = x;
    FOR(0, x.size(), [&](I i) {
      y = y.set(i, y[i] * 2.0);
      print(i, "at");
      y = y.set(i, y[i] + x[i]);
    });
    return sum(y);
  };
  const auto [before, after] = test::around_pass("reads_first", sig<double(Array<double>)>(printed));
  CHECK(before == after);
}

}  // namespace
}  // namespace lantern
