// custom_vjp and custom_jvp: the user's rule is what every derivative follows, in every way of computing it.
#include "agree.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

// ---- rules that are true: all ways agree with differences

/// sin(x) y, with the rule of the product and of the sine written out.
D product(D x, D y) { return sin(x) * y; }
D with_vjp(D x, D y) {
  return custom_vjp(
      product, [](D a, D b) { return std::tuple(product(a, b), a, b); },
      [](D a, D b, D g) { return std::tuple(g * cos(a) * b, g * sin(a)); })(x, y);
}
D with_jvp(D x, D y) {
  return custom_jvp(product, [](D a, D b, D da, D db) {
    return std::tuple(product(a, b), cos(a) * b * da + sin(a) * db);
  })(x, y);
}

/// Sine and cosine whose rules lead to each other without end.
D my_cos(D x);
D my_sin(D x) {
  return custom_vjp(
      sig<double(double)>([](auto a) { return sin(a); }), [](D a) { return std::tuple(my_sin(a), a); },
      [](D a, D g) { return g * my_cos(a); })(x);
}
D my_cos(D x) {
  return custom_jvp(sig<double(double)>([](auto a) { return cos(a); }),
                    [](D a, D da) { return std::tuple(my_cos(a), -1.0 * my_sin(a) * da); })(x);
}

/// Squares of an array, summed; the rule works on the whole array.
D squares(A a) { return sum(a * a); }
auto array_rule() {
  return custom_vjp(
      squares, [](A a) { return std::tuple(squares(a), a); }, [](A a, D g) { return A(2.0 * g * a); });
}
auto array_tangent() {
  return custom_jvp(squares, [](A a, A da) { return std::tuple(squares(a), 2.0 * sum(a * da)); });
}

template <class T>
struct Pair {
  T a, b;
};
using P = Pair<D>;

// ---- rules that are false on purpose: what is computed shows who was asked

D tenfold(D x) {
  return custom_vjp(
      sig<double(double)>([](D a) { return a * a; }), [](D a) { return std::tuple(a * a, a); },
      [](D a, D g) { return 10.0 * a * g; })(x);
}
D tenfold_tangent(D x) {
  return custom_jvp(sig<double(double)>([](D a) { return a * a; }),
                    [](D a, D da) { return std::tuple(a * a, 10.0 * a * da); })(x);
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// A program of one scalar by all targets and levels.
template <class F>
void check_value(const std::string& what, F f, double x, double expected) {
  INFO(what);
  CHECK(eager(f)(x) == Approx(expected));
  CHECK(compile(f, {.target = Target::c, .opt = 0})(x) == Approx(expected));
  CHECK(compile(f, {.target = Target::c, .opt = 3})(x) == Approx(expected));
  CHECK(compile(f, {.target = Target::cpp, .opt = 3})(x) == Approx(expected));
}

}  // namespace

TEST_CASE("a true rule gives the derivatives of the function", "[custom]") {
  const Ways thrice{.order = 3};
  check_all(thrice, "custom_vjp", with_vjp, 0.7, 1.3);
  check_all(thrice, "custom_jvp", with_jvp, 0.7, 1.3);
  check_all(
      "of one argument used twice", [](D x) { return with_vjp(x, x) + x; }, 0.7);
  check_all(
      "one in the other", [](D x, D y) { return with_jvp(with_vjp(x, y), with_vjp(y, x)); }, 0.7, 1.3);
  check_all(
      thrice, "rules that lead to each other", [](D x) { return my_sin(x * x) * x; }, 0.7);
}

TEST_CASE("rules over arrays, products and data", "[custom]") {
  check_all("array, custom_vjp", [](A a) { return array_rule()(a) * a[0]; }, {0.5, -1.5, 2.0});
  check_all("array, custom_jvp", [](A a) { return array_tangent()(a) * a[0]; }, {0.5, -1.5, 2.0});
  // Array results, and an argument that is not differentiated.
  check_all("array to array",
            [](A a) {
              const auto scaled = custom_vjp(
                  sig<Array<double>(Array<double>, int64_t)>([](A x, I n) { return A(x * cast<double>(n)); }),
                  [](A x, I n) { return std::tuple(A(x * cast<double>(n)), n); },
                  [](I n, A g) { return A(g * cast<double>(n)); });
              const A b = scaled(a, 3);
              return sum(b * b * b);
            },
            {0.5, -1.5, 2.0});
  // A struct goes in, a tuple comes out; literals among the cotangents and residuals.
  check_all(
      "struct to tuple",
      [](D x, D y) {
        const auto f = custom_vjp(
            sig<std::tuple<double, double>(Pair<double>, int64_t)>(
                [](P p, I) { return std::tuple(p.a * p.b, p.a + 2.0); }),
            [](P p, I) { return std::tuple(std::tuple(p.a * p.b, p.a + 2.0), p, 1.0); },
            [](P p, D one, std::tuple<D, D> g) {
              const auto [g0, g1] = g;
              return P{one * p.b * g0 + g1, p.a * g0};
            });
        const auto [u, v] = f(P{x, y}, 4);
        return u * v * v;
      },
      0.7, 1.3);
  // A matrix.
  const auto trace = [](D x) {
    const M m = fill(x, 2, 3);
    const auto norm = custom_vjp(
        sig<double(Tensor<double, dyn, dyn>)>([](M t) { return sum(t * t); }),
        [](M t) { return std::tuple(sum(t * t), t); }, [](M t, D g) { return M(2.0 * g * t); });
    return norm(m) * x;
  };
  check_all("matrix", trace, 0.7);
}

TEST_CASE("rules inside control flow", "[custom]") {
  check_all(
      "IF",
      [](D x) {
        return IF(
            x > 0.5, [&] { return with_vjp(x, x); }, [&] { return with_jvp(x, 2.0); });
      },
      0.7);
  check_all(
      "WHILE",
      [](D x) {
        return WHILE(
            x, [](D t) { return t < 5.0; }, [&](D t) { return t + 1.5 + with_vjp(t, x); });
      },
      0.7);
  check_all(
      "FOR", [](D x) { return FOR(0, 4, x, [&](I i, D s) { return with_jvp(s, x + cast<double>(i)); }); },
      0.7);
  const auto twice = FUN<double(double, int64_t)>("twice", [](auto self, D x, I n) {
    return IF(
        n == 0, [&] { return D(x); }, [&] { return with_vjp(x, self(x, n - 1)); });
  });
  check_all(
      "FUN", [twice](D x) { return twice(x, 3); }, 0.7);
  check_with(
      Ways{}, "TREE",
      [](D x, Rep<Tree<double>> t) {
        return TREE(x, t, [](D l, D r, Rep<Tree<double>> node) { return with_vjp(l, r) + node.value(); });
      },
      0.7, Tree<double>(2.0, Tree<double>(5.0), Tree<double>()));
  check_all(
      "checkpoint", [](D x) { return checkpoint(with_vjp)(x, x) * x; }, 0.7);
  check_all(
      "a rule for a loop",
      [](D x) {
        const auto power = custom_vjp(
            sig<double(double, int64_t)>(
                [](D a, I n) { return FOR(0, n, D(1.0), [&](I, D s) { return s * a; }); }),
            [](D a, I n) { return std::tuple(FOR(0, n, D(1.0), [&](I, D s) { return s * a; }), a, n); },
            [](D a, I n, D g) { return g * cast<double>(n) * pow(a, cast<double>(n - 1)); });
        return power(x, 4) * x;
      },
      1.3);
}

TEST_CASE("a false rule is what derivatives follow", "[custom]") {
  for (const auto& [name, f] : {std::pair<const char*, D (*)(D)>("custom_vjp", tenfold),
                                std::pair<const char*, D (*)(D)>("custom_jvp", tenfold_tangent)}) {
    const std::string of = std::string(" of ") + name;
    check_value("value" + of, f, 3.0, 9.0);
    check_value("grad" + of, grad(f), 3.0, 30.0);
    check_value("forward" + of, grad<mode::forward>(f), 3.0, 30.0);
    check_value(
        "jvp" + of, [g = jvp(f)](D x) { return std::get<1>(g(x, 0.5)); }, 3.0, 15.0);
    check_value(
        "vjp" + of, [g = vjp(f)](D x) { return std::get<1>(g(x, 0.5)); }, 3.0, 15.0);
    check_value(
        "hvp" + of, [g = hvp(f)](D x) { return g(x, 1.0); }, 3.0, 10.0);
    check_value("grad of grad" + of, grad(grad(f)), 3.0, 10.0);
  }
}

TEST_CASE("parts capture what is not differentiated", "[custom]") {
  const auto scaled = [](D x, A data) {
    const D s = sum(data);
    const auto f = custom_vjp(
        sig<double(double)>([=](D a) { return a * s; }), [=](D a) { return std::tuple(a * s, a); },
        [=](D a, D g) { return g * s * data[0] + 0.0 * a; });
    return f(x) * x;
  };
  const std::vector<double> data{2.0, 3.0};
  const auto test = [&](const auto& run) {
    CHECK(run(grad<0>(scaled))(1.5, data) == Approx(5.0 * 1.5 + 10.0 * 1.5));
  };
  test([](auto f) { return eager(f); });
  test([](auto f) { return compile(f, {.target = Target::c, .opt = 0}); });
  test([](auto f) { return compile(f, {.target = Target::c, .opt = 3}); });
}

TEST_CASE("rules made of derivatives, of recursion, of vectors of numbers, in float", "[custom]") {
  // bwd takes a gradient.
  check_all(
      "grad inside a rule",
      [](D x) {
        const auto g = [](D a) { return exp(sin(a)) * a; };
        return custom_vjp(
            g, [=](D a) { return std::tuple(g(a), a); }, [=](D a, D ybar) { return ybar * grad(g)(a); })(x);
      },
      0.7);
  check_all(
      "grad of a rule inside a rule",
      [](D x) {
        const auto inner = [](D a) { return with_jvp(a, a); };
        return custom_jvp(grad(inner), [=](D a, D da) { return jvp(grad(inner))(a, da); })(x);
      },
      0.7);
  // The function that has the rule calls the function it stands in.
  const auto power = FUN<double(double, int64_t)>("power", [](auto self, D x, I n) {
    const auto step = custom_vjp(
        sig<double(double, int64_t)>([self](D a, I k) { return a * self(a, k - 1); }),
        [self](D a, I k) { return std::tuple(a * self(a, k - 1), a, k); },
        [self](D a, I k, D ybar) { return ybar * cast<double>(k) * self(a, k - 1); });
    return IF(
        n == 0, [&] { return D(1.0); }, [&] { return step(x, n); });
  });
  check_all(
      "recursion", [power](D x) { return power(x, 4) * x; }, 1.3);
  // A number of arguments that shows when the program runs or is staged.
  check_all(
      "vectors",
      [](D x, D y) {
        using V = std::vector<D>;
        const auto f = [](V v) { return v[0] * v[1] * v[2]; };
        const auto ruled = custom_vjp(
            f, [=](V v) { return std::tuple(f(v), v); },
            [](V v, D g) {
              return V{g * v[1] * v[2], g * v[0] * v[2], g * v[0] * v[1]};
            });
        return ruled({x, y, x}) + y;
      },
      0.7, 1.3);
  check_all(
      "float",
      [](Rep<float> x) {
        using S = Rep<float>;
        return custom_vjp(
                   sig<float(float)>([](S a) { return a * a; }), [](S a) { return std::tuple(a * a, a); },
                   [](S a, S g) { return 2.0 * a * g; })(x) *
               x;
      },
      1.5F);
}

TEST_CASE("stop_gradient in and around rules", "[custom]") {
  check_value("in the argument", grad([](D x) { return tenfold(stop_gradient(x)) + x; }), 3.0, 1.0);
  check_value("in the rule", grad([](D x) {
                return custom_vjp(
                    sig<double(double)>([](D a) { return a * a; }), [](D a) { return std::tuple(a * a, a); },
                    [](D a, D g) { return 2.0 * stop_gradient(a) * g; })(x);
              }),
              3.0, 6.0);
  check_value("in the rule, twice", grad(grad([](D x) {
                return custom_vjp(
                    sig<double(double)>([](D a) { return a * a; }), [](D a) { return std::tuple(a * a, a); },
                    [](D a, D g) { return 2.0 * stop_gradient(a) * g; })(x);
              })),
              3.0, 0.0);
}

TEST_CASE("what rules refuse", "[custom][errors]") {
  const auto captures = [](D x) {
    return custom_vjp(
        sig<double(double)>([=](D a) { return a * x; }), [=](D a) { return std::tuple(a * x, a); },
        [=](D, D g) { return g; })(x);
  };
  const auto wrong_size = [](A a) {
    return custom_vjp(
        squares, [](A x) { return std::tuple(squares(x), x); }, [](A, D g) { return fill(g, 7); })(a);
  };
  const std::string place = "custom_derivative_test.cpp:";
  for (const bool staged : {false, true}) {
    INFO(staged);
    const auto run = [&](auto f, auto x) {
      return error_of([&] {
        if (staged)
          compile(f, {.target = Target::c})(x);
        else
          eager(f)(x);
      });
    };
    const std::string captured = run(grad(captures), 2.0);
    CHECK(captured.find(place) != std::string::npos);
    CHECK(
        captured.find("custom_vjp: the function captures a value that is being differentiated; pass it as an "
                      "argument") != std::string::npos);
    const std::vector<double> x{1.0, 2.0};
    const std::string size = run(grad(wrong_size), x);
    INFO(size);
    CHECK(size.find(place) != std::string::npos);
    CHECK(size.find(
              staged
                  ? "custom_vjp: expected the derivative of floating argument 0 to have its sizes, got others"
                  : "custom_vjp: expected the derivative of floating argument 0 to be f64[2], got f64[7]") !=
          std::string::npos);
  }
}
