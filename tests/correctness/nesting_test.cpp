// grad, value_and_grad, jvp, vjp and hvp nested in every order, over scalars, arrays, structs and positions.
#include "agree.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using A = Rep<Array<double>>;
using Function = std::function<D(D)>;

// An operator takes a function of one scalar to its derivative, in one of the library's ways; composing n of
// them is the n-th derivative whatever they are.
struct Operator {
  const char* name;
  std::function<Function(Function)> apply;
};

const std::vector<Operator>& operators() {
  static const std::vector<Operator> all{
      {"grad", [](const Function& f) { return Function(grad(f)); }},
      {"grad forward", [](const Function& f) { return Function(grad<mode::forward>(f)); }},
      {"value_and_grad",
       [](const Function& f) {
         return Function([g = value_and_grad(f)](D x) { return std::get<1>(g(x)); });
       }},
      {"jvp",
       [](const Function& f) { return Function([g = jvp(f)](D x) { return std::get<1>(g(x, 1.0)); }); }},
      {"vjp",
       [](const Function& f) { return Function([g = vjp(f)](D x) { return std::get<1>(g(x, 1.0)); }); }},
  };
  return all;
}

// hvp is the second derivative at one go.
Function hvp_of(const Function& f) {
  return [g = hvp(f)](D x) { return g(x, 1.0); };
}

/// A program gives this at x: eagerly, at opt 0 and at opt 3.
void check_value(const std::string& name, const Function& f, double x, double expected) {
  const auto test = [&](const char* how, const auto& run) {
    INFO(name << ", " << how);
    double found = 0;
    try {
      found = run(f)(x);
    } catch (const std::exception& e) {
      FAIL_CHECK("raised: " << e.what());
      return;
    }
    CHECK(found == Approx(expected).epsilon(1e-9));
  };
  test("eager", [](const Function& g) { return eager(g); });
  test("opt 0", [](const Function& g) { return compile(g, {.target = Target::c, .opt = 0}); });
  test("opt 3", [](const Function& g) { return compile(g, {.target = Target::c, .opt = 3}); });
}

// Straight code, and a loop with a branch. What is expected of them is the eager gradient of the gradient,
// which core_test and operations_test hold against differences.
D straight(D x) { return sin(x) * x * x + exp(0.5 * x); }
D looping(D x) {
  return WHILE(
      x, [](D t) { return t < 6.0; },
      [&](D t) {
        return IF(
            t > 2.0, [&] { return t * x; }, [&] { return t * t + 0.3 * x; });
      });
}

double derivative(Function f, int order, double x) {
  for (int i = 0; i < order; ++i) f = grad(f);
  return eager(f)(x);
}

template <class T>
struct Pair {
  T a, b;
};
using P = Pair<D>;

}  // namespace

TEST_CASE("every ordered pair of operators", "[nesting]") {
  for (const auto& [text, f] :
       {std::pair<const char*, Function>("straight", straight), {"looping", looping}}) {
    const double second = derivative(f, 2, 1.3), third = derivative(f, 3, 1.3);
    const std::string of = std::string(" of ") + text;
    for (const Operator& outer : operators()) {
      for (const Operator& inner : operators())
        check_value(outer.name + std::string(" of ") + inner.name + of, outer.apply(inner.apply(f)), 1.3,
                    second);
      check_value(outer.name + std::string(" of hvp") + of, outer.apply(hvp_of(f)), 1.3, third);
      check_value("hvp of " + std::string(outer.name) + of, hvp_of(outer.apply(f)), 1.3, third);
    }
  }
}

TEST_CASE("triples", "[nesting]") {
  const Function f = straight;
  const double third = derivative(f, 3, 0.7);
  for (const Operator& a : operators())
    for (const Operator& b : operators())
      for (const Operator& c : operators())
        check_value(std::string(a.name) + " of " + b.name + " of " + c.name, a.apply(b.apply(c.apply(f))),
                    0.7, third);
  check_value("hvp of hvp", hvp_of(hvp_of(f)), 0.7, derivative(f, 4, 0.7));
  const Function g = looping;
  const double looped = derivative(g, 3, 1.3);
  for (std::size_t a : {0u, 3u})
    for (std::size_t b : {0u, 3u})
      for (std::size_t c : {0u, 3u}) {
        const auto& o = operators();
        check_value(std::string(o[a].name) + " of " + o[b].name + " of " + o[c].name + " of looping",
                    o[a].apply(o[b].apply(o[c].apply(g))), 1.3, looped);
      }
}

// ---- perturbation confusion (Lantern paper, 2.4) ----

TEST_CASE("perturbations are not confused", "[nesting]") {
  // d/dx (x * d/dy (x + y)) is 1 everywhere; a forward mode that mixes the two tangents says 2.
  for (const Operator& outer : operators())
    for (const Operator& inner : operators()) {
      const auto nested = [&](auto body, double y) {
        return outer.apply(
            [&inner, body, y](D x) { return x * inner.apply([x, body](D t) { return D(body(x, t)); })(y); });
      };
      const std::string name = outer.name + std::string(" over ") + inner.name;
      check_value(name + ": x (x + y)'", nested([](D x, D y) { return x + y; }, 1.0), 3.0, 1.0);
      check_value(name + ": x (x y)'", nested([](D x, D y) { return x * y; }, 2.0), 3.0, 6.0);
      check_value(name + ": x (x^2 y^3)'", nested([](D x, D y) { return x * x * y * y * y; }, 2.0), 3.0,
                  3 * 9.0 * 12.0);
      // The inner derivative taken at the outer variable itself.
      check_value(name + ": (x y^2)' at y = x",
                  outer.apply([&inner](D x) { return inner.apply([x](D y) { return x * y * y; })(x); }), 3.0,
                  12.0);
      // The inner function ignores its own argument, or the outer one.
      check_value(name + ": (x^2)' by y",
                  outer.apply([&inner](D x) { return x + inner.apply([x](D) { return x * x; })(x); }), 3.0,
                  1.0);
      check_value(name + ": (y^2)' by x",
                  outer.apply([&inner](D x) { return x + inner.apply([](D y) { return y * y; })(2.0); }), 3.0,
                  1.0);
    }
}

TEST_CASE("three levels, each using the variables of all outer ones", "[nesting]") {
  const auto program = [](const Operator& a, const Operator& b, const Operator& c) {
    return a.apply([&b, &c](D x) {
      return x * b.apply([x, &c](D y) {
        return y * x * c.apply([x, y](D z) { return x * y * y * z * z; })(y);
      })(x);
    });
  };
  // inner: 2 x y^2 z at z = y: 2 x y^3; middle: (2 x^2 y^4)' = 8 x^2 y^3 at y = x: 8 x^5; outer: (8 x^6)' =
  // 48 x^5
  for (const Operator& a : operators())
    for (const Operator& b : operators())
      for (const Operator& c : operators())
        check_value(std::string(a.name) + ", " + b.name + ", " + c.name, program(a, b, c), 1.5,
                    48 * std::pow(1.5, 5));
}

TEST_CASE("a derivative of a function that captures the outer variable through control flow", "[nesting]") {
  for (const Operator& outer : operators())
    for (const Operator& inner : operators()) {
      const std::string name = outer.name + std::string(" over ") + inner.name;
      // d/dx of d/dy (y x^3) = x^3, the power by a loop: 3 x^2
      check_value(name + ": loop", outer.apply([&inner](D x) {
        return inner.apply([x](D y) { return FOR(0, 3, y, [&](Rep<std::int64_t>, D t) { return t * x; }); })(
            2.0);
      }),
                  1.5, 3 * 1.5 * 1.5);
      // d/dx of d/dy (IF y > x: x^2 y, else x y^2) at y = 2: 2 x
      check_value(name + ": branch", outer.apply([&inner](D x) {
        return inner.apply([x](D y) {
          return IF(
              y > x, [&] { return x * x * y; }, [&] { return x * y * y; });
        })(2.0);
      }),
                  1.5, 3.0);
      // A derivative in a branch of a loop under a derivative.
      check_value(name + ": derivative in a loop", outer.apply([&inner](D x) {
        return FOR(0, 2, x, [&](Rep<std::int64_t>, D t) {
          return IF(
              t > 100.0, [&] { return t; },
              [&] { return inner.apply([t, x](D y) { return y * y * t * x; })(t); });
        });
      }),
                  1.5, 8 * 7 * std::pow(1.5, 6));  // t -> 2 t^2 x: x, 2 x^3, 8 x^7
    }
}

// ---- products, positions, arrays ----

// The iterations of such a loop are differentiated one by one: what they call must leave nothing behind.
TEST_CASE("a recursive function in a loop over independent iterations", "[nesting]") {
  using I = Rep<std::int64_t>;
  const auto power = [](D u, D v, I n) {
    const auto h = FUN<double(double, std::int64_t)>("h", [=](auto self, D x, I k) {
      return IF(
          k <= 0, [&] { return u; }, [&] { return self(x, k - 1) * v; });
    });
    return h(u, n);
  };
  for (const int which : {0, 1, 2})
    check_with(
        {.order = 3}, "weights " + std::to_string(which),
        [=](D u, I n) {
          return FOR(0, 3, 0.0, [&](I i, D s) {
            const D w = cast<double>(i) + 1.0;
            return which == 0 ? s + power(u, u, n) * w : which == 1 ? s + power(u * w, u, n) : s + power(u, u * w, n);
          });
        },
        0.6, std::int64_t{3});
}

TEST_CASE("positions of several arguments", "[nesting]") {
  const std::function<D(D, D, D)> f = [](D x, D y, D z) { return x * x * y + y * z * z * z + x * z; };
  const auto test = [&](const auto& run) {
    CHECK(run(grad(f))(1.0, 2.0, 3.0) == std::tuple(7.0, 28.0, 55.0));
    CHECK(run(grad<0>(f))(1.0, 2.0, 3.0) == 7.0);
    CHECK(run(grad<1>(f))(1.0, 2.0, 3.0) == 28.0);
    CHECK(run(grad<0, 2>(f))(1.0, 2.0, 3.0) == std::tuple(7.0, 55.0));
    CHECK(run(grad<2, 0>(f))(1.0, 2.0, 3.0) == std::tuple(7.0, 55.0));  // in the order of the arguments
    CHECK(run(grad<1, mode::forward>(f))(1.0, 2.0, 3.0) == 28.0);
    CHECK(run(grad<1>(grad<0>(f)))(1.0, 2.0, 3.0) == 2.0);
    CHECK(run(grad<2>(grad<1>(f)))(1.0, 2.0, 3.0) == 27.0);
    CHECK(run(grad<2>(grad<2, mode::forward>(grad<1>(f))))(1.0, 2.0, 3.0) == 18.0);
    CHECK(run(grad<0, 1>(grad<0>(f)))(1.0, 2.0, 3.0) == std::tuple(4.0, 2.0));
    CHECK(run(value_and_grad<1>(f))(1.0, 2.0, 3.0) == std::tuple(59.0, 28.0));
    CHECK(run(value_and_grad(f))(1.0, 2.0, 3.0) == std::tuple(59.0, std::tuple(7.0, 28.0, 55.0)));
    CHECK(run(jvp(f))(1.0, 2.0, 3.0, 1.0, 0.5, -1.0) == std::tuple(59.0, 7.0 + 14.0 - 55.0));
    CHECK(run(vjp(f))(1.0, 2.0, 3.0, 2.0) == std::tuple(59.0, std::tuple(14.0, 56.0, 110.0)));
    // jvp of grad, vjp of jvp, jvp of vjp
    CHECK(std::get<1>(run(jvp(grad(f)))(1.0, 2.0, 3.0, 1.0, 0.0, 0.0)) == std::tuple(4.0, 2.0, 1.0));
    CHECK(std::get<1>(run(vjp(grad(f)))(1.0, 2.0, 3.0, std::tuple(0.0, 0.0, 1.0))) ==
          std::tuple(1.0, 27.0, 36.0));
    CHECK(std::get<0>(std::get<1>(run(vjp(jvp(f)))(1.0, 2.0, 3.0, 1.0, 0.0, 0.0, std::tuple(0.0, 1.0)))) ==
          4.0);
    CHECK(std::get<1>(std::get<1>(run(jvp(vjp(f)))(1.0, 2.0, 3.0, 1.0, 1.0, 0.0, 0.0, 0.0))) ==
          std::tuple(4.0, 2.0, 1.0));
  };
  test([](const auto& g) { return eager(g); });
  test([](const auto& g) { return compile(g, {.target = Target::c, .opt = 0}); });
  test([](const auto& g) { return compile(g, {.target = Target::c, .opt = 3}); });
}

TEST_CASE("integers beside numbers are passed on", "[nesting]") {
  const std::function<D(D, Rep<std::int64_t>, D)> f = [](D x, Rep<std::int64_t> n, D y) {
    return FOR(0, n, x, [&](Rep<std::int64_t>, D t) { return t * y; });
  };
  const auto test = [&](const auto& run) {
    CHECK(run(grad(f))(2.0, 3, 5.0) == std::tuple(125.0, 150.0));
    CHECK(run(grad<2>(grad<0>(f)))(2.0, 3, 5.0) == 75.0);
    CHECK(run(jvp(f))(2.0, 3, 5.0, 1.0, 1.0) == std::tuple(250.0, 275.0));
    CHECK(run(vjp(f))(2.0, 3, 5.0, 1.0) == std::tuple(250.0, std::tuple(125.0, 150.0)));
  };
  test([](const auto& g) { return eager(g); });
  test([](const auto& g) { return compile(g, {.target = Target::c, .opt = 0}); });
  test([](const auto& g) { return compile(g, {.target = Target::c, .opt = 3}); });
}

TEST_CASE("structs and tuples", "[nesting]") {
  const std::function<D(P)> f = [](P p) { return p.a * p.a * p.b + sin(p.b); };
  const std::function<P(P)> both = [](P p) { return P{p.a * p.b, p.a + p.b * p.b}; };
  const Pair<double> at{1.5, 0.5};
  const auto test = [&](const auto& run) {
    const auto g = run(grad(f))(at);
    CHECK(g.a == Approx(1.5));
    CHECK(g.b == Approx(2.25 + std::cos(0.5)));
    const auto h = run(hvp(f))(at, Pair<double>{1.0, 2.0});
    CHECK(h.a == Approx(2 * 0.5 + 2 * 3.0));
    CHECK(h.b == Approx(3.0 - 2 * std::sin(0.5)));
    const auto j = std::get<1>(run(jvp(both))(at, Pair<double>{1.0, 2.0}));
    CHECK(j.a == Approx(0.5 + 2 * 1.5));
    CHECK(j.b == Approx(1.0 + 2.0));
    const auto v = std::get<1>(run(vjp(both))(at, Pair<double>{1.0, 2.0}));
    CHECK(v.a == Approx(0.5 + 2.0));
    CHECK(v.b == Approx(1.5 + 2.0));
    // vjp of the gradient is its jvp: the Hessian is symmetric.
    const auto s = std::get<1>(run(vjp(grad(f)))(at, Pair<double>{1.0, 2.0}));
    CHECK(s.a == Approx(h.a));
    CHECK(s.b == Approx(h.b));
  };
  test([](const auto& g) { return eager(g); });
  test([](const auto& g) { return compile(g, {.target = Target::c, .opt = 0}); });
  test([](const auto& g) { return compile(g, {.target = Target::c, .opt = 3}); });
}

TEST_CASE("arrays", "[nesting]") {
  const std::function<D(A)> f = [](A a) {
    return FOR(0, a.size(), 1.0, [&](Rep<std::int64_t> i, D s) { return s * (a[i] + 0.25 * s); }) +
           sum(a * a * a);
  };
  const std::vector<double> x{0.5, 1.5, -0.7}, v{1.0, -2.0, 0.5};
  const auto expected = eager(std::function<A(A, A)>([&](A a, A d) {
    const std::function<D(A)> slope = [&](A b) { return dot(grad(f)(b), d); };
    return grad(slope)(a);
  }))(x, v);
  const auto same = [&](const std::vector<double>& found) {
    REQUIRE(found.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-9));
  };
  const auto test = [&](const auto& run) {
    same(run(hvp(f))(x, v));
    same(std::get<1>(run(jvp(grad(f)))(x, v)));
    same(std::get<1>(run(jvp(grad<mode::forward>(f)))(x, v)));
    same(std::get<1>(run(vjp(grad(f)))(x, v)));
    same(std::get<1>(run(vjp(grad<mode::forward>(f)))(x, v)));
    const std::function<D(A, A)> directional = [&](A a, A d) { return std::get<1>(jvp(f)(a, d)); };
    same(run(grad<0>(directional))(x, v));
    same(run(grad<0, mode::forward>(directional))(x, v));
    const std::function<D(A, A)> pulled = [&](A a, A d) {
      return dot(std::get<1>(vjp(f)(a, 1.0)), d) + std::get<0>(value_and_grad(f)(a)) * 0.0;
    };
    same(run(grad<0>(pulled))(x, v));
  };
  test([](const auto& g) { return eager(g); });
  test([](const auto& g) { return compile(g, {.target = Target::c, .opt = 0}); });
  test([](const auto& g) { return compile(g, {.target = Target::c, .opt = 3}); });
}

// An array, a whole number that no derivative is by, and a number.
TEST_CASE("vjp, jvp and hvp of several arguments, and by positions", "[nesting]") {
  using I = Rep<std::int64_t>;
  const auto f = [](A a, I n, D y) {
    return FOR(0, a.size(), D(0.0), [&](I i, D s) { return s + a[i] * a[i] * y; }) + exp(y * a[n]) * a[0];
  };
  const std::vector<double> a{0.5, -0.3, 1.1}, va{0.2, 1.0, -0.6};
  const double y = 0.7, vy = -1.3, h = 1e-5;
  const std::int64_t n = 2;
  const auto slope = eager(grad(f));
  const auto moved = [&](double along_a, double along_y) {
    std::vector<double> b = a;
    for (std::size_t i = 0; i < 3; ++i) b[i] += along_a * h * va[i];
    return slope(b, n, y + along_y * h * vy);
  };
  const auto close = [](const std::vector<double>& found, const std::vector<double>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-8));
  };
  const auto difference = [&](double along_a, double along_y) {
    const auto up = moved(along_a, along_y), down = moved(-along_a, -along_y);
    std::vector<double> all;
    for (std::size_t i = 0; i < 3; ++i) all.push_back((std::get<0>(up)[i] - std::get<0>(down)[i]) / (2 * h));
    all.push_back((std::get<1>(up) - std::get<1>(down)) / (2 * h));
    return all;
  };
  const auto test = [&](const auto& run) {
    auto [by_a, by_y] = run(hvp(f))(a, n, y, va, vy);
    by_a.push_back(by_y);
    close(by_a, difference(1, 1));
    auto first = run(hvp<0>(f))(a, n, y, va);
    first.push_back(difference(1, 0).back());
    close(first, difference(1, 0));
    CHECK(run(hvp<2>(f))(a, n, y, vy) == Approx(difference(0, 1).back()).epsilon(1e-8));
    const auto both = run(hvp<2, 0>(f))(a, n, y, va, vy);  // in the order of the arguments
    close(std::get<0>(both), {by_a.begin(), by_a.begin() + 3});
    // First order: the parts of the gradient.
    const auto [ga, gy] = slope(a, n, y);
    close(std::get<1>(run(vjp<0>(f))(a, n, y, 2.0)), {2 * ga[0], 2 * ga[1], 2 * ga[2]});
    CHECK(std::get<1>(run(vjp<2>(f))(a, n, y, 2.0)) == Approx(2 * gy));
    CHECK(std::get<1>(run(jvp<2>(f))(a, n, y, 3.0)) == Approx(3 * gy));
    CHECK(std::get<1>(run(jvp<0>(f))(a, n, y, va)) == Approx(ga[0] * va[0] + ga[1] * va[1] + ga[2] * va[2]));
  };
  test([](const auto& g) { return eager(g); });
  test([](const auto& g) { return compile(g, {.target = Target::c, .opt = 0}); });
  test([](const auto& g) { return compile(g, {.target = Target::c, .opt = 3}); });
}
