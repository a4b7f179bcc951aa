// Staged programs and their gradients as CUDA sources: compiled by NVRTC, run through the launch emulator.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "lantern/codegen/toolchain/emulate.hpp"
#include "lantern/codegen/toolchain/nvrtc.hpp"
#include "lantern/lantern.hpp"
#include "lantern/random.hpp"

using namespace lantern;

namespace {

Rep<double> polynomial(Rep<double> x) { return 2.0 * x + x * x * x; }
Rep<double> piecewise(Rep<double> x) {
  return IF(x > 0.0, [&] { return sin(x) * x; }, [&] { return exp(x); });
}
Rep<double> newton(Rep<double> a) {
  return WHILE(a, [=](Rep<double> t) { return abs(t * t - a) > 1e-12; }, [=](Rep<double> t) { return 0.5 * (t + a / t); });
}
auto power = FUN<double(double, int64_t)>("power", [](auto self, Rep<double> x, Rep<int64_t> n) {
  return IF(n == 0, [&] { return Rep<double>(1.0); }, [&] { return x * self(x, n - 1); });
});
Rep<double> cube(Rep<double> x) { return power(x, 3); }

Rep<double> ruled(Rep<double> x) {
  return custom_vjp(
      sig<double(double)>([](auto a) { return a * a; }), [](Rep<double> a) { return std::tuple(a * a, a); },
      [](Rep<double> a, Rep<double> g) { return 10.0 * sin(a) * g; })(x);
}
Rep<double> drawn(Rep<double> x) {
  const auto [first, second] = random::split<2>(cast<std::int64_t>(1000.0 * x));
  return x * random::normal<double>(first) + random::uniform<double>(second);
}
Rep<double> solution(Rep<double> a) {
  return fixpoint([](Rep<double> x, Rep<double> s) { return 0.5 * cos(s * x); }, 0.3, a);
}

/// The function mapped over points by the emulated kernel, compared with the compiled function point by point.
template <class F>
void check(const std::string& name, F f, const std::vector<double>& points) {
  INFO(name);
  const auto on_cpu = compile(f, {.target = Target::c, .name = name});
  const std::string text = on_cpu.source("cuda");
  if (codegen::nvrtc_available()) CHECK(codegen::compile_with_nvrtc(text).find(".entry") != std::string::npos);
  else WARN("no NVRTC: the CUDA source is only run through the emulator");

  const auto emulated = codegen::compile_emulated(text);
  const auto map = reinterpret_cast<int (*)(const double*, double*, std::int64_t)>(emulated->symbol(name + "_map"));
  std::vector<double> out(points.size());
  REQUIRE(map(points.data(), out.data(), static_cast<std::int64_t>(points.size())) == 0);
  for (std::size_t i = 0; i < points.size(); ++i) CHECK(out[i] == Approx(on_cpu(points[i])).epsilon(1e-12));
}

std::vector<double> points(double lo, double hi) {
  std::vector<double> p;
  for (int i = 0; i < 300; ++i) p.push_back(lo + (hi - lo) * i / 299);
  return p;
}

}  // namespace

TEST_CASE("gradients as CUDA kernels") {
  check("polynomial", grad(polynomial), points(-3, 3));
  check("piecewise", grad(grad(piecewise)), points(-2, 2));
  check("newton", grad(newton), points(0.5, 9));
  check("cube", grad(cube), points(-2, 2));
  check("ruled", grad(ruled), points(-2, 2));
  check("ruled_again", grad(grad(ruled)), points(-2, 2));
  check("drawn", drawn, points(-1, 1));
  check("drawn_slope", grad(drawn), points(-1, 1));
  check("solution", grad(solution), points(-1, 1));
}
