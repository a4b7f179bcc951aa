// Shapes of loop state that change from iteration to iteration: how far that reaches is found while staging.
#include <catch2/catch.hpp>
#include <vector>

#include "lantern/ir/error.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using T = Rep<Tensor<double>>;

T of_size(std::int64_t n, const D& v) { return full<double>(v, {n}); }

/// A line of `stages` tensors: each takes the place of the next, and the first grows by one element.
template <std::size_t stages>
D delay_line(D x, I n) {
  std::array<T, stages> line;
  for (std::size_t k = 0; k < stages; ++k) line[k] = of_size(2, x);
  line = FOR(0, n, line, [&](I, std::array<T, stages> now) {
    std::array<T, stages> next;
    next[0] = concat(now[0], of_size(1, x * x));
    for (std::size_t k = 1; k < stages; ++k) next[k] = now[k - 1];
    return next;
  });
  return sum(line.back()) * cast<double>(line.back().dim(0));
}
/// After n iterations the last of the line has 2 + n - stages + 1 elements, if it is that many.
double expected(double x, std::int64_t n, std::int64_t stages) {
  const auto grown = static_cast<double>(std::max<std::int64_t>(0, n - stages + 1));
  return (2 * x + grown * x * x) * (2 + grown);
}
double slope(double x, std::int64_t n, std::int64_t stages) {
  const auto grown = static_cast<double>(std::max<std::int64_t>(0, n - stages + 1));
  return (2 + grown * 2 * x) * (2 + grown);
}

template <std::size_t stages>
void check() {
  const auto f = delay_line<stages>;
  for (const auto& program : {detail::program_of(f)})
    ir::verify(*driver::stage("f", {ir::F64, ir::I64}, program.run));
  const auto value = compile(f, {.target = Target::c});
  const auto gradient = compile(grad(f), {.target = Target::cpp});
  const auto tangent = compile(grad<mode::forward>(f), {.target = Target::c, .opt = 0});
  for (const std::int64_t n : {0, 1, 3, 4, 9, 10, 15}) {
    CHECK(value(0.5, n) == Approx(expected(0.5, n, stages)));
    CHECK(eager(f)(0.5, n) == Approx(expected(0.5, n, stages)));
    CHECK(gradient(0.5, n) == Approx(slope(0.5, n, stages)));
    CHECK(tangent(0.5, n) == Approx(slope(0.5, n, stages)));
    CHECK(eager(grad(f))(0.5, n) == Approx(slope(0.5, n, stages)));
  }
}

}  // namespace

TEST_CASE("a change of shape reaches every stage of a delay line") {
  check<1>();
  check<4>();
  check<10>();
}

TEST_CASE("the verifier refuses a shape that nobody has checked") {
  const auto refused = [](const std::string& text) {
    try {
      ir::verify(*ir::parse(text));
    } catch (const InternalError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  // A loop whose state keeps a size, with a body that does not.
  const auto loop = [](const std::string& state, const std::string& result) {
    return "fun @f(%x: f64[3], %c: bool) {\n  %r = loop %x : " + result + " while (%s: " + state +
           ") {\n    yield %c\n  } do (%s: " + state +
           ") {\n    %t = concat %s, %x : f64[?]\n    yield %t\n  }\n  yield\n}";
  };
  CHECK(refused(loop("f64[?]", "f64[?]")) == "accepted");
  CHECK_THAT(refused(loop("f64[3]", "f64[3]")), Catch::Contains("expected the next state of types f64[3]"));
  CHECK_THAT(refused(loop("f64[?]", "f64[3]")),
             Catch::Contains("expected results of types f64[?], got f64[3]"));
  CHECK_THAT(refused("fun @f(%x: f64[?]) -> f64[3] {\n  yield %x\n}"),
             Catch::Contains("expected results of the function of types f64[3], got f64[?]"));
  CHECK_THAT(refused("fun @g(%x: f64[3]) -> f64[3] {\n  yield %x\n}\n"
                     "fun @f(%x: f64[?]) -> f64[3] {\n  %y = call @g(%x) : f64[3]\n  yield %y\n}"),
             Catch::Contains("expected arguments of types f64[3], got f64[?]"));
}

TEST_CASE("a gradient in a loop whose body is staged again") {
  const auto f = [](D x, I n) {
    const auto line = FOR(0, n, std::tuple(of_size(1, x), of_size(1, x), D(0.0)),
                          [](I, const T& a, const T& b, const D& s) {
                            const auto cube = [&](D y) { return y * y * y * cast<double>(b.dim(0)); };
                            const auto twice = FUN<double(double)>("twice", [&](D y) { return y * sum(b); });
                            return std::tuple(concat(a, of_size(1, s)), a,
                                              s + grad(sig<double(double)>(cube))(D(1.0)) + twice(s));
                          });
    return std::get<2>(line);
  };
  const auto run = compile(sig<double(double, std::int64_t)>(f), {.target = Target::c});
  for (const std::int64_t n : {0, 1, 2, 5})
    CHECK(run(0.25, n) == Approx(eager(sig<double(double, std::int64_t)>(f))(0.25, n)));
}
