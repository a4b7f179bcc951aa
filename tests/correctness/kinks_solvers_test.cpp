// Fixed points, roots, solutions of differential equations and times of events at kinks: what the derivative is there,
// by every way of computing, and that check_derivative tells of the kink.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "lantern/lantern.hpp"
#include "lantern/solvers.hpp"

using namespace lantern;
using D = Rep<double>;

namespace {

/// The derivative at 0, by eager and compiled reverse and forward mode; check_derivative is content, and names the kink.
void check_kink(const std::function<D(D)>& f, double derivative) {
  const auto forward = [f](D x, D dx) { return std::get<1>(jvp(f)(x, dx)); };
  CHECK(eager(grad(f))(0.0) == Approx(derivative).margin(1e-9));
  CHECK(eager(forward)(0.0, 1.0) == Approx(derivative).margin(1e-9));
  for (const int opt : {0, 2}) {
    const CompileOptions options{.target = Target::c, .opt = opt};
    CHECK(compile(grad(f), options)(0.0) == Approx(derivative).margin(1e-9));
    CHECK(compile(forward, options)(0.0, 1.0) == Approx(derivative).margin(1e-9));
  }
  std::vector<std::string> told;
  CHECK_NOTHROW(check_derivative(f, {.kink = [&](const std::string& text) { told.push_back(text); }})(0.0));
  REQUIRE(told.size() == 2);  // by forward and by reverse mode
  for (const std::string& text : told) CHECK(text.find("has a kink here by argument 1") != std::string::npos);
}

}  // namespace

TEST_CASE("a fixed point at a kink has the derivative of its equation with the slopes there") {
  // x = max(x / 2, a): 1 for positive a, 0 for negative ones; with halves dx = dx / 4 + da / 2.
  check_kink([](D a) { return fixpoint([](D x, D b) { return max(0.5 * x, b); }, D(0.0), a); }, 2.0 / 3);
}

TEST_CASE("a root at a kink has the derivative of its equation with the slopes there") {
  // 2 x + |x| = a: 1/3 for positive a, 1 for negative ones; with the slope 0 of |x|, 1/2.
  check_kink([](D a) { return solvers::newton([](D x, D b) { return 2.0 * x + abs(x) - b; }, D(1.0), a).x; }, 0.5);
}

TEST_CASE("a derivative outside of the slopes to the sides is an error that tells of the kink") {
  const auto wrong = custom_vjp(
      sig<double(double)>([](auto x) { return abs(x); }), [](D x) { return std::tuple(abs(x), x); },
      [](D, D g) { return 3.0 * g; });
  const auto program = sig<double(double)>([wrong](D x) { return wrong(x); });
  CHECK_THROWS_WITH(check_derivative(program, {.kink = [](const std::string&) {}})(0.0),
                    Catch::Contains("there is a kink here, with slopes -1 and 1 to the two sides"));
}

TEST_CASE("a solution of a differential equation, and the time of an event, at a kink") {
  // y' = relu(a) - y / 2 from 1 to t = 1: relu has the slope 0.
  check_kink([](D a) {
    return solvers::rk4([](D, D y, D b) { return relu(b) - 0.5 * y; }, {}, D(1.0), D(0.0), D(1.0), 20, a);
  }, 0);
  // y' = 1 + relu(a) reaches 1 after 1 / (1 + relu(a)).
  check_kink([](D a) {
    const auto e = solvers::dormand_prince_events([](D, D, D b) { return 1.0 + relu(b); }, {}, [](D, D y, D) { return y - 1.0; },
                                                  D(0.0), D(0.0), D(3.0), a);
    return e.t;
  }, 0);
}
