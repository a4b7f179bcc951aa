// reassociate = false: what a program adds up it adds up in the order it says, to the bit, whatever becomes
// of its loops.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using F = Rep<float>;
using I = Rep<std::int64_t>;
using Vec = Rep<Array<double>>;
using Mat = Rep<Tensor<double, dyn, dyn>>;

template <class Body>
D total(I n, Body body) {
  return FOR(0, n, D(0.0), [&](I i, D sum) { return sum + body(i); });
}

/// Sums of every kind: plain, of products, by subtraction, downwards, in and of inner loops, of floats, two
/// at once, of elements of a tensor, of whole tensors.
const auto sums = [](Vec a, Vec b, Mat m) {
  const I n = a.size();
  const D plain = total(n, [&](I i) { return a[i]; });
  const D products = total(n, [&](I i) { return a[i] * b[i] + a[i]; });
  const D differences = FOR(0, n, D(1.0), [&](I i, D s) { return s - a[n - 1 - i] * a[i]; });
  const D nested =
      total(m.dim(0), [&](I i) { return total(m.dim(1), [&](I j) { return m(i, j) * b[j]; }) * a[i]; });
  const D through = FOR(0, m.dim(0), D(0.0),
                        [&](I i, D s) { return FOR(0, m.dim(1), s, [&](I j, D t) { return t + m(i, j); }); });
  const F narrow = FOR(0, n, F(0.0f), [&](I i, F s) { return s + cast<float>(a[i]); });
  const auto [some, others] = FOR(0, n, std::tuple(D(0.0), D(0.0)), [&](I i, D s, D t) {
    const D v = IF(
        a[i] > 0.0, [&] { return a[i]; }, [&] { return b[i]; });
    return std::tuple(s + v, t + v * v + 0.5);
  });
  const Vec columns = FOR(0, m.dim(0), fill(D(0.0), m.dim(1)), [&](I i, Vec s) { return s + as_array(m.row(i)); });
  const Vec bins = FOR(0, n, fill(D(0.0), 7), [&](I i, Vec s) { return s.set(i % 7, s[i % 7] + a[i]); });
  return std::tuple(plain, products, differences, nested, through + sum(m), narrow, some, others + dot(a, b),
                    columns + as_array(matmul(b, transpose(m))), bins);
};

struct Data {
  std::vector<double> a, b, m;
  TensorView<const double> view() const {
    return {m.data(), {static_cast<std::int64_t>(m.size() / b.size()), static_cast<std::int64_t>(b.size())}};
  }
};

/// Numbers of all magnitudes and both signs, of which every order has another sum.
Data numbers(std::size_t n) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> exponent(-12, 12), mantissa(-1, 1);
  Data d;
  for (std::vector<double>* v : {&d.a, &d.b, &d.m}) {
    v->resize(v == &d.m ? n * n : n);
    for (double& x : *v) x = std::ldexp(mantissa(random), static_cast<int>(exponent(random)));
  }
  return d;
}

using Bits = std::vector<std::uint64_t>;

template <class F>
Bits bits(const F& f, const Data& d) {
  Bits all;
  const auto add = [&](const auto& x) {
    if constexpr (requires { x.begin(); })
      for (const double v : x) all.push_back(std::bit_cast<std::uint64_t>(v));
    else
      all.push_back(std::bit_cast<std::uint64_t>(static_cast<double>(x)));
  };
  std::apply([&](const auto&... x) { (add(x), ...); }, f(d.a, d.b, d.view()));
  return all;
}

const CompileOptions in_order{.target = Target::cpp, .opt = 3, .strict_math = true, .reassociate = false};

}  // namespace

TEST_CASE("sums in order have eager evaluation's bits", "[sums]") {
  const std::vector<Data> data{numbers(1), numbers(3), numbers(61)};
  std::vector<Bits> expected;
  for (const Data& d : data) expected.push_back(bits(eager(sums), d));
  const auto check = [&](const CompileOptions& options) {
    const auto f = compile(sums, options);
    for (std::size_t i = 0; i < data.size(); ++i) CHECK(bits(f, data[i]) == expected[i]);
  };
  SECTION("at every level and number of lanes") {
    for (const Target target : {Target::c, Target::cpp})
      for (const int opt : {0, 1, 2, 3}) {
        INFO("opt " << opt << (target == Target::c ? ", tcc" : ", Clang"));
        CompileOptions options = in_order;
        options.target = target;
        options.opt = opt;
        check(options);
      }
    for (const int lanes : {2, 4, 8}) {
      INFO(lanes << " lanes");
      CompileOptions options = in_order;
      options.lanes = lanes;
      check(options);
    }
  }
  SECTION("with each pass left out") {
    for (const passes::Pass& pass : passes::passes()) {
      INFO("without " << pass.name);
      CompileOptions options = in_order;
      options.disabled_passes = {std::string(pass.name)};
      check(options);
    }
  }
  SECTION("of a derivative, the value") {
    const auto value = sig<double(Array<double>, Array<double>)>([](Vec a, Vec b) {
      return total(a.size(),
                   [&](I i) { return a[i] * b[i] + total(7, [&](I j) { return a[i] * cast<double>(j); }); });
    });
    const auto f = compile(value_and_grad(value), in_order),
               g = compile(value_and_grad(value), {.target = Target::cpp});
    for (const Data& d : data) {
      const auto [y, gradient] = f(d.a, d.b);
      CHECK(y == eager(value)(d.a, d.b));
      const auto [y2, free] = g(d.a, d.b);
      for (std::size_t i = 0; i < d.a.size(); ++i) {
        CHECK(std::get<0>(gradient)[i] == Approx(std::get<0>(free)[i]));
        CHECK(std::get<1>(gradient)[i] == Approx(std::get<1>(free)[i]));
      }
    }
  }
}

TEST_CASE("sums in order in threads", "[sums]") {
  const auto big = [](Vec a) {
    const D s = total(a.size(), [&](I i) { return a[i] * a[i]; });
    const Vec y =
        FOR(0, a.size(), fill(D(0.0), a.size()), [&](I i, Vec t) { return t.set(i, a[i] * 0.7 + s); });
    return std::tuple(s, y);
  };
  std::vector<double> a;
  for (int i = 0; i < 3'000'000; ++i) a.push_back(std::ldexp(1.0 + i % 1001, -(i % 13)));
  CompileOptions options = in_order;
  const auto one = compile(big, options)(a);
  options.threads = 3;
  CHECK(compile(big, options)(a) == one);
}

TEST_CASE("sums are reassociated unless told otherwise", "[sums]") {
  const Data d = numbers(1001);
  const auto sum_of =
      sig<double(Array<double>)>([](Vec a) { return total(a.size(), [&](I i) { return a[i]; }); });
  CompileOptions options = in_order;
  options.lanes = 4;
  const auto ordered = compile(sum_of, options);
  options.reassociate = true;
  const auto free = compile(sum_of, options);
  CHECK(ordered(d.a) == eager(sum_of)(d.a));
  CHECK(free(d.a) != ordered(d.a));
  CHECK(free(d.a) == Approx(ordered(d.a)));
  CHECK(free.source("ir").find("lane_sum") != std::string::npos);
  CHECK(ordered.source("ir").find("lane_") == std::string::npos);
  // Sums of adjoints have no order: the gradient by what all iterations share still runs in lanes.
  options.reassociate = false;
  const auto shared = compile(grad<1>(sig<double(Array<double>, double)>([](Vec a, D s) {
                                return total(a.size(), [&](I i) { return sin(a[i] * s); });
                              })),
                              options);
  CHECK(shared.source("ir").find("lane_sum") != std::string::npos);
}
