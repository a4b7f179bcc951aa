// Events along solutions of differential equations, and solutions as functions of the time.
#include "solver_checks.hpp"

using namespace lantern;
using namespace lantern::test;
using namespace lantern::test::solver_checks;

namespace {

constexpr double pi = 3.14159265358979323846;

template <class Test>
void eagerly_and_by_tcc(const Test& test) {
  test([](auto f) { return eager(f); });
  test([](auto f) { return compile(f, {.target = Target::c, .opt = 0}); });
}

const solvers::OdeOptions exact{.relative = 1e-10, .absolute = 1e-12};

/// Height and speed of a ball under gravity k.
A fall(D, A s, D k) { return s.set(0, s[1]).set(1, -k); }
/// The time of flight of a ball thrown up: 2 v / k, and the speed at its end, -v.
solvers::Events<A> flight(D v, D k) {
  return solvers::dormand_prince_events(
      fall, {.crossing = solvers::Crossing::falling, .ode = exact}, [](D, A s, D) { return s[0]; },
      list({0.0, v}), 0.0, 100.0, k);
}

}  // namespace

TEST_CASE("an event ends an integration, with the derivative of its time", "[solvers]") {
  const auto both = [](A x) {
    const auto e = flight(x[0], x[1]);
    return list({e.t, e.y[0], e.y[1]});
  };
  for (const Vector& got : in_all_ways(both, {3, 2})) {
    CHECK(got[0] == Approx(3).epsilon(1e-9));
    CHECK(got[1] == Approx(0).margin(1e-9));
    CHECK(got[2] == Approx(-3).epsilon(1e-9));
  }
  const auto number = [](A x) {
    const auto e = flight(x[0], x[1]);
    return e.t * e.t + e.y[1] + 5.0 * e.y[0];
  };
  // 4 v^2 / k^2 - v, by v and k; y[0] stays 0 at the event.
  check_closed_form(value_and_gradients(number), {3, 2},
                    with_gradient_twice({9 - 3, 8 * 3 / 4.0 - 1, -8 * 9 / 8.0}), 1e-7);
  // Of second order: 8 / k^2, -16 v / k^3, 24 v^2 / k^4.
  const auto h = eager(hessian(number))(Vector{3, 2});
  CHECK(h.data[0] == Approx(2).epsilon(1e-6));
  CHECK(h.data[1] == Approx(-6).epsilon(1e-6));
  CHECK(h.data[2] == Approx(-6).epsilon(1e-6));
  CHECK(h.data[3] == Approx(13.5).epsilon(1e-6));
  eagerly_and_by_tcc([&](const auto& run) {
    const auto e = run([](D v, D k) { return flight(v, k); })(3.0, 2.0);
    CHECK(e.finished);
    CHECK(e.count == 1);
    CHECK(e.times[0] == Approx(3));
    CHECK(std::isnan(e.times[1]));
    CHECK(e.states.data[1] == Approx(-3));
  });
  const auto by_time = [](D end, D k) {  // g may ask for the time, and f for arguments
    return solvers::dormand_prince_events([](D, D y, D q, D) { return -q * y; }, {.ode = exact},
                                          [](D t, D, D, D e) { return t - e; }, D(1.0), 0.0, 10.0, k, end)
        .y;
  };
  CHECK(eager(by_time)(2.0, 0.5) == Approx(std::exp(-1.0)).epsilon(1e-9));
  CHECK(eager(grad<0>(by_time))(2.0, 0.5) == Approx(-0.5 * std::exp(-1.0)).epsilon(1e-8));
  CHECK(eager(grad<1>(by_time))(2.0, 0.5) == Approx(-2.0 * std::exp(-1.0)).epsilon(1e-8));
}

TEST_CASE("events that do not end an integration, by direction", "[solvers]") {
  // cos(w t) from 0 to 10: roots at (k + 1/2) pi / w.
  const auto crossings = [](solvers::Crossing crossing, std::int64_t most) {
    return [=](D w, D end) {
      return solvers::dormand_prince_events(
          swing_array, {.crossing = crossing, .terminal = false, .most = most, .ode = exact},
          [](D, A s, D) { return s[0]; }, list({1.0, 0.0}), 0.0, end, w * w);
    };
  };
  eagerly_and_by_tcc([&](const auto& run) {
    const auto all = run(crossings(solvers::Crossing::either, 16))(1.5, 10.0);
    CHECK(all.finished);
    CHECK(all.t == 10);
    CHECK(all.y[0] == Approx(std::cos(15.0)).epsilon(1e-8));
    REQUIRE(all.count == 5);
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(all.times[i] == Approx((static_cast<double>(i) + 0.5) * pi / 1.5).epsilon(1e-8));
      CHECK(all.states.data[2 * i + 1] == Approx(i % 2 == 0 ? -1.5 : 1.5).epsilon(1e-8));
    }
    const auto rising = run(crossings(solvers::Crossing::rising, 16))(1.5, 10.0);
    CHECK(rising.count == 2);
    CHECK(rising.times[0] == Approx(1.5 * pi / 1.5).epsilon(1e-8));
    const auto few = run(crossings(solvers::Crossing::falling, 1))(1.5, 10.0);
    CHECK(few.count == 3);
    CHECK(few.times.size() == 1);
    CHECK(few.times[0] == Approx(0.5 * pi / 1.5).epsilon(1e-8));
    const auto back = run(crossings(solvers::Crossing::either, 3))(1.5, -4.0);
    CHECK(back.count == 2);
    CHECK(back.times[1] == Approx(-1.5 * pi / 1.5).epsilon(1e-8));
  });
  // The third root by w: -(5/2) pi / w^2.
  const auto third = [=](D w) { return crossings(solvers::Crossing::either, 16)(w, 10.0).times[2]; };
  CHECK(eager(grad(third))(1.5) == Approx(-2.5 * pi / 2.25).epsilon(1e-7));
  CHECK(compile(grad<mode::forward>(third), {.target = Target::c})(1.5) ==
        Approx(-2.5 * pi / 2.25).epsilon(1e-7));
}

TEST_CASE("a ball that bounces", "[solvers]") {
  // Each bounce keeps the share r of the speed: after n the time is 2 v / k (1 + r + ... + r^(n-1)).
  const auto bounced = [](A x) {
    const D r = x[1], k = 9.81;
    const auto [t, v] = FOR(0, 4, std::tuple(D(0.0), D(x[0])), [&](I, D now, D speed) {
      const auto e = flight(speed, k);
      return std::tuple(now + e.t, -r * e.y[1]);
    });
    return t + 0.0 * v;
  };
  const double v = 4, r = 0.8, k = 9.81, sum = 1 + r + r * r + r * r * r;
  check_closed_form(value_and_gradients(bounced), {v, r},
                    with_gradient_twice({2 * v / k * sum, 2 / k * sum, 2 * v / k * (1 + 2 * r + 3 * r * r)}),
                    1e-7);
}

TEST_CASE("a solution as a function of the time", "[solvers]") {
  const auto f = [](A times, D w) {
    const auto y = solvers::dormand_prince_dense(swing_array, exact, list({1.0, 0.0}), 0.0, 5.0, w * w);
    return FOR(0, times.size(), times, [&](I i, A all) { return all.set(i, y(times[i])[0]); });
  };
  const Vector times{0, 0.1, 2.5, 1.7, 4.999, 5};
  eagerly_and_by_tcc([&](const auto& run) {
    const Vector y = run(f)(times, 2.0);
    for (std::size_t i = 0; i < times.size(); ++i) CHECK(y[i] == Approx(std::cos(2 * times[i])).margin(1e-8));
  });
  const auto one = [f](A x) { return f(x.slice(0, 1), x[1])[0]; };
  const Vector x{2.5, 2};
  check_closed_form(value_and_gradients(one), x,
                    with_gradient_twice({std::cos(5), -2 * std::sin(5), -2.5 * std::sin(5)}), 1e-6);
  // A number, backward in time; what has not finished says so.
  const auto back = [](D t) {
    return solvers::dormand_prince_dense(decay, exact, exp(D(-2.0)), 2.0, 0.0, 1.0)(t);
  };
  CHECK(eager(back)(0.5) == Approx(std::exp(-0.5)).epsilon(1e-8));
  CHECK(eager(back)(2.0) == Approx(std::exp(-2.0)).epsilon(1e-8));
  const auto few = [](D t) {
    const auto y =
        solvers::dormand_prince_dense(decay, {.first_step = 0.01, .max_steps = 2}, D(1.0), 0.0, 50.0, 1.0);
    return std::tuple(y(t), y.finished);
  };
  CHECK_FALSE(std::get<1>(eager(few)(0.01)));
  CHECK(std::get<0>(eager(few)(0.005)) == Approx(std::exp(-0.005)).epsilon(1e-8));
}

TEST_CASE("what events refuse", "[solvers][errors]") {
  check_refused(
      [](D y) {
        return solvers::dormand_prince_events(
                   decay, {.most = 0}, [](D, D v, D) { return v; }, y, 0.0, 1.0, 1.0)
            .t;
      },
      "dormand_prince_events: expected one event or more to be kept, got most = 0", 1.0);
  check_refused(
      [](D y) { return solvers::dormand_prince_dense(decay, {.max_steps = 0}, y, 0.0, 1.0, 1.0)(0.5); },
      "dormand_prince_dense: expected one step or more, got max_steps = 0", 1.0);
  const auto few = [](D y) {
    return solvers::dormand_prince_events(
               decay, {.ode = {.max_steps = 2}}, [](D, D v, D) { return v; }, y, 0.0, 100.0, 1.0)
        .finished;
  };
  CHECK_FALSE(eager(few)(1.0));
}
