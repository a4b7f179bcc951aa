// The core: derivatives of control flow, nested to third order, agree however they are computed; known
// pitfalls.
#include <chrono>
#include <memory>

#include "agree.hpp"

using namespace lantern;
using namespace lantern::test;
using Catch::Matchers::Contains;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;

const Ways third_order{.order = 3};

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// value, first and second derivative of a one-argument program are exactly these, eagerly and staged.
template <class F>
void check_exact(F f, double x, double value, double first, double second) {
  const std::function<D(D)> p = f;
  const auto test = [&](const auto& run) {
    CHECK(run(p)(x) == value);
    CHECK(run(std::function<D(D)>(grad(p)))(x) == first);
    CHECK(run(std::function<D(D)>(grad<mode::forward>(p)))(x) == first);
    CHECK(run(std::function<D(D)>(grad(grad(p))))(x) == second);
  };
  test([](const auto& g) { return eager(g); });
  for (int opt : {0, 3}) test([&](const auto& g) { return compile(g, {.target = Target::c, .opt = opt}); });
}

/// Milliseconds that `f` takes.
template <class F>
double time_of(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Tree<double> small_tree() {
  return Tree<double>(1.5, Tree<double>(0.7, Tree<double>(), Tree<double>(1.1)), Tree<double>(0.9));
}

}  // namespace

// ---- the proof of the core: each construct, three derivatives deep ----

TEST_CASE("a program that can be moved only is compiled", "[core]") {
  auto moved = [factor = std::make_unique<double>(3.0)](D x) { return x * *factor; };
  static_assert(!std::is_copy_constructible_v<decltype(moved)>);
  CHECK(compile(std::move(moved), {.target = Target::c})(2.0) == 6.0);
}

TEST_CASE("IF whose condition is not differentiated", "[core]") {
  const auto f = [](D x, I n) {
    return IF(
               n > 2, [&] { return x * x * sin(x); }, [&] { return exp(x) * x; }) *
           x;
  };
  for (std::int64_t n : {1, 3}) check_with(third_order, "if n", f, 1.3, n);
  const auto g = [](D x) {
    return IF(
        x > 0.0, [&] { return x * x * x; }, [&] { return -2.0 * x * x; });
  };
  check_all(third_order, "if x > 0", g, 1.2);
  check_all(third_order, "if x > 0", g, -0.8);
}

TEST_CASE("WHILE that carries a constant and uses a captured value", "[core]") {
  const auto power = [](D x) {
    return WHILE(
        1.0, [](D t) { return t < 10.0; }, [&](D t) { return t * x; });
  };
  check_all(third_order, "power", power, 1.7);
  check_all(third_order, "power", power, 2.5);
  const auto halve = [](D x) {
    return WHILE(
        x, [](D t) { return t > 1.0; }, [&](D t) { return t * 0.25 * x; });
  };
  check_all(third_order, "halve", halve, 3.0);
}

TEST_CASE("recursive FUN", "[core]") {
  const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, D x, I n) {
    return IF(
        n == 0, [&] { return D(1.0); }, [&] { return x * self(x, n - 1); });
  });
  for (std::int64_t n : {0, 1, 4})
    check_with(
        third_order, "power", [&](D x, I k) { return power(x, k) * sin(x); }, 1.3, n);
  const auto fibonacci = FUN<double(double, std::int64_t)>("fib", [](auto self, D x, I n) {
    return IF(
        n < 2, [&] { return x; }, [&] { return self(x, n - 1) * self(x * x, n - 2) + x; });
  });
  check_with(
      third_order, "fibonacci", [&](D x, I n) { return fibonacci(x, n); }, 0.8, std::int64_t{4});
}

TEST_CASE("mutually recursive Fun", "[core]") {
  Fun<double(double, std::int64_t)> odd("odd"), even("even");
  even.define([odd](D x, I n) {
    return IF(
        n == 0, [&] { return x; }, [&] { return sin(odd(x * 1.1, n - 1)); });
  });
  odd.define([even](D x, I n) {
    return IF(
        n == 0, [&] { return x * x; }, [&] { return x * even(x, n - 1); });
  });
  for (std::int64_t n : {0, 1, 4, 5})
    check_with(
        third_order, "even", [&](D x, I k) { return even(x, k); }, 0.6, n);
}

TEST_CASE("TREE", "[core]") {
  const auto f = [](D x, Rep<Tree<double>> t) {
    return TREE(x, t, [&](D l, D r, Rep<Tree<double>> node) { return sin(l) * r * node.value() + x; });
  };
  check_with(third_order, "tree", f, 0.9, small_tree());
  check_with(third_order, "leaf", f, 0.9, Tree<double>(2.0));
  check_with(third_order, "empty tree", f, 0.9, Tree<double>());
}

// ---- pitfalls, each with its smallest case ----

TEST_CASE("trees as deep as they are large, and copies of them", "[core]") {
  TreeBuilder<double> builder;
  std::int64_t root = -1;
  for (int k = 0; k < 1000000; ++k) root = k % 2 ? builder.add(1.0, root, -1) : builder.add(1.0, -1, root);
  const Tree<double> deep(2.0, builder.finish(root), Tree<double>(3.0));
  CHECK(deep.size() == 1000002);
  CHECK(deep.value() == 2.0);
  CHECK(deep.right().value() == 3.0);
  CHECK(deep.left().left().right().value() == 1.0);
  const auto sum = [](D x, Rep<Tree<double>> t) {
    return TREE(x, t, [](D l, D r, Rep<Tree<double>> node) { return l + r + node.value(); });
  };
  CHECK(compile(sum, {.target = Target::c})(0.0, deep) == 1000005.0);
}

TEST_CASE("a branch that returns the argument itself", "[core]") {
  const auto f = [](D x, D y) {
    return IF(
               x < y, [&] { return x; }, [&] { return y; }) *
           x;
  };
  check_all(third_order, "min by IF", f, 1.0, 2.0);
  check_all(third_order, "min by IF", f, 2.0, 1.0);
}

TEST_CASE("one value twice: as outputs, results, state and arguments", "[core]") {
  const auto outputs = [](D x, D y) {
    const auto [a, b] = IF(
        x < y, [&] { return std::tuple(x, x); }, [&] { return std::tuple(y, y); });
    return a * b * sin(b);
  };
  check_all(third_order, "(x, x) of a branch", outputs, 1.0, 2.0);
  check_all(third_order, "(y, y) of a branch", outputs, 2.0, 1.0);
  const auto product = FUN<double(double, double)>("product", [](D a, D b) { return a * a * b; });
  check_all(
      third_order, "f(x, x)", [&](D x) { return product(x, x) * x; }, 1.3);
  const auto both = FUN<std::tuple<double, double>(double)>("both", [](D a) { return std::tuple(a, a); });
  check_all(
      third_order, "(a, a) of a function",
      [&](D x) {
        const auto [a, b] = both(x * x);
        return a * b * x;
      },
      1.3);
  const auto state = [](D x) {
    const auto [a, b] = WHILE(
        std::tuple(x, x), [](D s, D) { return s < 9.0; }, [](D s, D t) { return std::tuple(s * t, s * t); });
    return a * sin(b);
  };
  check_all(third_order, "(x, x) as loop state", state, 1.6);
  const auto swap = [](D x) {
    const auto [a, b, n] = WHILE(
        std::tuple(x, x * x, I(0)), [](D, D, I i) { return i < 3; },
        [](D s, D t, I i) { return std::tuple(t, s * t, i + 1); });
    return a * b;
  };
  check_all(third_order, "state that changes places", swap, 0.9);
  // vjp of a function whose two results are one value: both seeds arrive.
  const auto twice = vjp(sig<std::tuple<double, double>(double)>([](auto x) { return std::tuple(x, x); }));
  const std::tuple seeds(2.0, 3.0);
  CHECK(std::get<1>(eager(twice)(1.0, seeds)) == 5.0);
  for (int opt : {0, 3})
    CHECK(std::get<1>(compile(twice, {.target = Target::c, .opt = opt})(1.0, seeds)) == 5.0);
}

TEST_CASE("loops that do not run", "[core]") {
  const auto never = [](D x) {
    return WHILE(
               x * x, [](D t) { return t > 1e9; }, [&](D t) { return t * x; }) *
           x;
  };
  check_all(third_order, "zero-iteration WHILE", never, 1.4);
  const auto sum = [](D x, I n) { return FOR(0, n, x, [&](I i, D s) { return s * x + cast<double>(i); }); };
  for (std::int64_t n : {-3, 0, 1, 4}) check_with(third_order, "FOR", sum, 1.1, n);
  const auto inner = [](D x) {
    return FOR(0, 3, x, [&](I i, D s) { return FOR(0, i, s, [&](I, D t) { return t * x; }) + x; });
  };
  check_all(third_order, "first inner loop does not run", inner, 1.1);
  const auto constant = [](D x) {
    return WHILE(
        1.0, [&](D t) { return t > x; }, [&](D t) { return t * x; });
  };
  check_all(third_order, "zero-iteration WHILE of a constant", constant, 1.4);
}

TEST_CASE("conditions that hold constructs and derivatives themselves", "[core]") {
  const auto cube = [](D t) { return t * t * t; };
  check_all(
      third_order, "a gradient in the condition of WHILE",
      [&](D x) {
        return WHILE(
            x, [&](D t) { return grad(sig<double(double)>(cube))(t) < 40.0; }, [&](D t) { return t * x; });
      },
      1.5);
  check_all(
      third_order, "a gradient in the condition of IF",
      [&](D x) {
        return IF(
            grad(sig<double(double)>(cube))(x) > 3.0, [&] { return x * x; }, [&] { return sin(x); });
      },
      1.5);
  check_all(
      third_order, "IF in the condition of WHILE",
      [](D x) {
        return WHILE(
            x,
            [&](D t) {
              return IF(
                  t > 2.0, [&] { return t < 20.0; }, [&] { return t * x > 0.0; });
            },
            [&](D t) { return t * x; });
      },
      1.5);
  check_all(
      third_order, "WHILE in the condition of WHILE",
      [](D x) {
        return WHILE(
            x,
            [&](D t) {
              return WHILE(
                         t, [](D s) { return s < 5.0; }, [&](D s) { return s * x; }) < 6.5;
            },
            [&](D t) { return t * x; });
      },
      1.5);
  check_all(
      third_order, "AND and OR",
      [](D x) {
        return WHILE(
            x, [&](D t) { return AND(t < 30.0, [&] { return OR(t < 5.0, [&] { return t * x < 20.0; }); }); },
            [&](D t) { return t * x; });
      },
      1.5);
}

TEST_CASE("nests of loops and branches", "[core]") {
  const auto nest = [](D x) {
    const auto outer = WHILE(
        std::tuple(x, I(0)), [](D, I i) { return i < 3; },
        [&](D t, I i) {
          const D next = IF(
              t > 1.2,
              [&] {
                return WHILE(
                    t, [](D s) { return s > 0.8; },
                    [&](D s) {
                      return IF(
                          s > 2.0, [&] { return s * 0.4 * x; }, [&] { return s * s * 0.6; });
                    });
              },
              [&] { return t * x + x; });
          return std::tuple(next, i + 1);
        });
    return std::get<0>(outer) * x;
  };
  check_all(third_order, "WHILE in IF in WHILE", nest, 1.3);
  check_all(third_order, "WHILE in IF in WHILE", nest, 0.7);
  const auto sums = [](D x, I n) {
    return FOR(0, n, D(0.0), [&](I i, D s) {
      return FOR(0, i + 1, s, [&](I j, D t) { return sin(t) + x * cast<double>(i - j); });
    });
  };
  check_with(third_order, "FOR in FOR", sums, 0.4, std::int64_t{4});
}

TEST_CASE("a gradient inside a loop body", "[core]") {
  const auto newton = [](D x) {
    return FOR(0, 3, x, [&](I, D t) {
      const auto g = sig<double(double)>([&](auto s) { return s * s * s - x * s - 0.5 * x; });
      return t - g(t) / (grad(g)(t) + 4.0);
    });
  };
  check_all(third_order, "damped Newton steps", newton, 1.7);
  const auto second = [](D x) {
    return WHILE(
        x, [](D t) { return t < 50.0; },
        [&](D t) { return grad(grad(sig<double(double)>([&](auto s) { return s * s * s * x; })))(t); });
  };
  check_all(Ways{.order = 2}, "second derivative in a loop", second, 1.2);
  const auto loops = [](D x) {
    return FOR(0, 2, x, [&](I, D t) {
      return grad(sig<double(double)>([&](auto s) {
               return WHILE(
                   s, [](D u) { return u < 4.0; }, [&](D u) { return u * x * s; });
             }))(t) *
             0.5;
    });
  };
  check_all(third_order, "the gradient of a loop in a loop", loops, 1.4);
}

TEST_CASE("a component of the state stays constant", "[core]") {
  const auto f = [](D x) {
    const auto [a, b, c] = WHILE(
        std::tuple(x, 2.0, x * x), [](D s, D, D) { return s < 20.0; },
        [](D s, D k, D m) { return std::tuple(s * k * m, k, m); });
    return a * b + c;
  };
  check_all(third_order, "constants beside the state", f, 1.2);
  const auto late = [](D x) {
    const auto [a, b] = WHILE(
        std::tuple(D(1.0), D(0.5)), [](D s, D) { return s < 9.0; },
        [&](D s, D t) { return std::tuple(s + 3.0 * t, t * x); });
    return a * b;
  };
  check_all(third_order, "constants that become active one after the other", late, 1.7);
}

TEST_CASE("Var assigned in branches and loops", "[core]") {
  check_all(
      third_order, "Var in a branch",
      [](D x, D y) {
        Var<double> v = x * y;
        IF(x > 1.0, [&] { v = v * x; });
        IF(
            y > 1.0, [&] { v = v * 2.0; }, [&] { v = sin(v); });
        return v * x;
      },
      1.5, 0.4);
  const auto loop = [](D x, I n) {
    Var<double> s = 0.0, p = x;
    Var<std::int64_t> count = std::int64_t{0};
    FOR(0, n, [&](I i) {
      p *= x;
      IF(i % 2 == 0, [&] {
        s += p * cast<double>(i + 1);
        count += 1;
      });
    });
    return s * p * cast<double>(count);
  };
  for (std::int64_t n : {0, 1, 5}) check_with(third_order, "Var in a loop", loop, 1.1, n);
  check_all(
      third_order, "one Var assigned to another",
      [](D x) {
        Var<double> a = x, b = 1.0;
        FOR(0, 3, [&](I) {
          const D old = a;
          a = b * x;
          b = old;
        });
        return a * b + a;
      },
      1.3);
}

TEST_CASE("a Var is alive while a derivative beside it is taken", "[core]") {
  check_all(
      third_order, "the loop in the derivative knows nothing of the Var",
      [](D x) {
        Var<double> v = x * x;
        v += grad(sig<double(double)>([&](auto y) {
          const D part = FOR(0, 2, D(0.5), [&](I, D s) { return s * sin(x); });
          return y * y * part;
        }))(x);
        return v * x;
      },
      0.8);
}

TEST_CASE("a recursive function whose arguments are active one at a time", "[core]") {
  // Forward over reverse: the pass for y meets the recursion with nothing active, and its tape with
  // everything on it.
  const auto f = [](D x, D y) {
    const auto g = FUN<double(double, std::int64_t)>("g", [&](auto self, D a, I k) {
      return IF(
          k <= 0, [&] { return a; },
          [&] {
            const D t = self(a, k - 1);
            return t * t - x * t;
          });
    });
    return g(0.5, 2) + y;
  };
  check_all(third_order, "recursion", f, 0.6, -1.1);
}

TEST_CASE("integers and booleans in the state", "[core]") {
  const auto collatz = [](D x, I n) {
    const auto [y, k, iterations, any] = WHILE(
        std::tuple(x, n, I(0), Rep<bool>(false)), [](D, I m, I, Rep<bool>) { return m != 1; },
        [&](D t, I m, I i, Rep<bool> seen) {
          const Rep<bool> even = m % 2 == 0;
          return std::tuple(IF(
                                even, [&] { return t * x; }, [&] { return sin(t); }),
                            IF(
                                even, [&] { return m / 2; }, [&] { return 3 * m + 1; }),
                            i + 1, OR(seen, [&] { return !even; }));
        });
    return select(any, y, x) * cast<double>(iterations) * x;
  };
  for (std::int64_t n : {1, 4, 6}) check_with(third_order, "Collatz", collatz, 0.9, n);
}

TEST_CASE("what does not depend on the argument has derivative exactly 0", "[core]") {
  check_exact([](D) { return D(3.0); }, 2.0, 3.0, 0.0, 0.0);
  check_exact([](D x) { return x * 0.0 + 3.0; }, 2.0, 3.0, 0.0, 0.0);
  check_exact([](D x) { return x; }, 2.0, 2.0, 1.0, 0.0);
  check_exact([](D x) { return cast<double>(cast<std::int64_t>(x)); }, 2.5, 2.0, 0.0, 0.0);
  check_exact(
      [](D x) {
        return IF(
            x > 0.0, [] { return 1.0; }, [] { return 2.0; });
      },
      2.0, 1.0, 0.0, 0.0);
  check_exact(
      [](D x) {
        return WHILE(
            1.0, [&](D t) { return t < x; }, [](D t) { return t + 1.0; });
      },
      2.5, 3.0, 0.0, 0.0);
  const auto ignore = FUN<double(double)>("ignore", [](D) { return D(7.0); });
  check_exact([&](D x) { return ignore(x); }, 2.0, 7.0, 0.0, 0.0);
  check_exact([](D x) { return grad(sig<double(double)>([](auto) { return D(1.0); }))(x); }, 2.0, 0.0, 0.0,
              0.0);
  const std::function<D(D, D)> second = [](D, D y) { return y * y; };
  for (int opt : {0, 3}) {
    CHECK(compile(grad(second), {.target = Target::c, .opt = opt})(2.0, 3.0) == std::tuple(0.0, 6.0));
    CHECK(compile(grad<0>(second), {.target = Target::c, .opt = opt})(2.0, 3.0) == 0.0);
  }
  CHECK(eager(grad(second))(2.0, 3.0) == std::tuple(0.0, 6.0));
}

TEST_CASE("what only a condition looks at passes no derivative, not even 0 times infinity", "[core]") {
  // The derivative of sqrt at 0 is infinite, of lgamma not a number; neither may reach the gradient.
  check_exact(
      [](D x) {
        return IF(
            sqrt(x) > 1.0, [&] { return x; }, [&] { return 3.0 * x * x + x; });
      },
      0.0, 0.0, 1.0, 6.0);
  check_exact([](D x) { return select(lgamma(x) > 1.0, x, 3.0 * x); }, 0.0, 0.0, 1.0, 0.0);
  check_exact(
      [](D x) {
        return WHILE(
            x + 1.0, [&](D t) { return t + sqrt(x) < 3.0; }, [](D t) { return t * 2.0; });
      },
      0.0, 4.0, 4.0, 0.0);
}

TEST_CASE("FUN that captures, and FUN called with constants", "[core]") {
  check_all(
      third_order, "a captured value",
      [](D x) {
        const auto scale = FUN<double(double)>("scale", [&](D t) { return t * x * x; });
        return scale(2.0) * scale(x);
      },
      1.3);
  check_all(
      third_order, "a captured value, recursively",
      [](D x) {
        const auto down = FUN<double(double, std::int64_t)>("down", [&](auto self, D t, I n) {
          return IF(
              n == 0, [&] { return t; }, [&] { return self(sin(t) * x, n - 1) + x * x; });
        });
        return down(x, 3) * down(0.5, 2);
      },
      1.3);
  const auto f = FUN<double(double, double)>("f", [](D a, D b) { return a * a * sin(b); });
  check_all(
      third_order, "constants for one argument",
      [&](D x) { return f(x, 0.7) + f(2.0, x) * f(x, x) + f(1.0, 2.0); }, 1.3);
  check_all(
      third_order, "a captured loop state",
      [](D x) {
        return FOR(0, 3, x, [&](I, D s) {
          const auto step = FUN<double(double)>("step", [&](D t) { return t * s; });
          return step(x) + step(s) * 0.1;
        });
      },
      0.8);
  check_all(
      third_order, "a function inside a function",
      [](D x) {
        const auto outer = FUN<double(double)>("outer", [&](D a) {
          const auto inner = FUN<double(double)>("inner", [&](D b) { return a * b * x; });
          return inner(a) + inner(x);
        });
        return outer(x * x);
      },
      0.8);
}

TEST_CASE("functions of several results and of structs of arguments", "[core]") {
  const auto rotate = FUN<std::tuple<double, double>(std::tuple<double, double>, std::int64_t)>(
      "rotate", [](auto self, std::tuple<D, D> p, I n) {
        const auto [a, b] = p;
        return IF(
            n == 0, [&] { return p; }, [&] { return self(std::tuple(a * 0.8 - b * a, a + b), n - 1); });
      });
  const auto f = [&](D x, I n) {
    const auto [a, b] = rotate(std::tuple(x, x * x), n);
    return a * b;
  };
  for (std::int64_t n : {0, 1, 3}) check_with(third_order, "rotate", f, 0.7, n);
  const auto pairs = [](D x, Rep<Tree<double>> t) {
    const auto [s, p] = TREE(std::tuple(x, 1.0), t, [&](auto l, auto r, Rep<Tree<double>> node) {
      return std::tuple(std::get<0>(l) + std::get<0>(r) * node.value(), std::get<1>(l) * std::get<1>(r) * x);
    });
    return s * p;
  };
  check_with(third_order, "a tree of pairs", pairs, 1.1, small_tree());
}

TEST_CASE("arrays in loops", "[core]") {
  using A = Rep<Array<double>>;
  check_all(Ways{}, "sum of a[i] sin a[i]",
            [](A a) { return FOR(0, a.size(), 0.0, [&](I i, D s) { return s + sin(a[i]) * a[i]; }); },
            {0.3, 1.2, -0.4});
  check_all(Ways{}, "recurrence through set",
            [](A a) {
              const A b = FOR(1, a.size(), a, [&](I i, A t) { return t.set(i, t[i] * t[i - 1]); });
              return b[2] * b[0] + sum(b);
            },
            {0.3, 1.2, -0.4});
  check_all(Ways{}, "a branch per element",
            [](A a) {
              return FOR(0, a.size(), 1.0, [&](I i, D s) {
                return IF(
                    a[i] > 0.0, [&] { return s * a[i]; }, [&] { return s - a[i] * a[i]; });
              });
            },
            {0.3, 1.2, -0.4});
  check_all(Ways{}, "an empty slice", [](A a) { return sum(a.slice(1, 1)) + sum(a * a) * a[0]; },
            {0.3, 1.2, -0.4});
  check_all(Ways{}, "the array itself from both branches",
            [](A a) {
              return sum(IF(
                             a[0] > 0.0, [&] { return a; }, [&] { return a * a; }) *
                         a * a);
            },
            {0.3, 1.2});
}

// ---- sizes ----

TEST_CASE("400 IFs one after the other", "[core]") {
  const std::function<D(D)> f = [](D x) {
    D t = x;
    for (int i = 0; i < 400; ++i)
      t = IF(
          t > 1.0 + 0.001 * i, [&] { return t * 0.99; }, [&] { return t + 0.01 * x; });
    return t;
  };
  const double expected = eager(f)(1.3), slope = eager(grad(f))(1.3);
  for (int opt : {0, 3}) {
    const CompileOptions options{.target = Target::c, .opt = opt};
    const double ms = time_of([&] {
      CHECK(compile(f, options)(1.3) == Approx(expected).epsilon(1e-12));
      CHECK(compile(grad(f), options)(1.3) == Approx(slope).epsilon(1e-12));
    });
    INFO("opt " << opt << ": " << ms << " ms");
    CHECK(ms < 15'000);
  }
}

TEST_CASE("a loop of ten million iterations", "[core]") {
  const std::function<D(D, I)> f = [](D x, I n) {
    return FOR(0, n, x, [&](I, D t) { return t * (1.0 - 1e-7 * x) + 1e-7 * sin(t); });
  };
  const CompileOptions options{.target = Target::c, .opt = 3};
  const std::int64_t n = 10'000'000;
  const auto value = compile(f, options);
  const double h = 1e-4, slope = (value(1.0 + h, n) - value(1.0 - h, n)) / (2 * h);
  CHECK(compile(grad(f), options)(1.0, n) == Approx(slope).epsilon(1e-5));
}

TEST_CASE("recursion a hundred thousand deep", "[core]") {
  const auto down = FUN<double(double, std::int64_t)>("down", [](auto self, D x, I n) {
    return IF(
        n == 0, [&] { return x * x; }, [&] { return self(x, n - 1) * (1.0 - 1e-5 * x); });
  });
  const std::function<D(D, I)> f = [&](D x, I n) { return down(x, n); };
  // (x^2 (1 - x/1e5)^n)' at 1
  const double n = 1e5, shrink = std::pow(1.0 - 1e-5, n - 1), exact = shrink * (2 * (1.0 - 1e-5) - 1.0);
  CHECK(eager(grad(f))(1.0, 100'000) == Approx(exact).epsilon(1e-9));
  for (int opt : {0, 3})
    CHECK(compile(grad(f), {.target = Target::c, .opt = opt})(1.0, 100'000) == Approx(exact).epsilon(1e-9));
}

TEST_CASE("a derivative whose order depends on run time is refused", "[core]") {
  Fun<double(double, std::int64_t)> f("deep");
  f.define([f](D x, I n) -> D {
    return IF(
        n == 0, [&] { return x * x; },
        [&] { return grad(sig<double(double)>([&](auto y) { return f(y, n - 1); }))(x); });
  });
  const std::function<D(D, I)> g = [&](D x, I n) { return f(x, n); };
  const std::string text = error_of([&] { compile(g, {.target = Target::c}); });
  CHECK_THAT(text,
             Contains("error: the derivative of 'f' needs 'deep', which is still being defined: the order of "
                      "the derivative would depend on run time"));
  // A FUN of its own at each level: staging has no end.
  const std::function<D(D)> endless = [&](D x) {
    std::function<D(D)> next;
    next = [&](D y) { return FUN<double(double)>("next", [&](D z) { return next(z); })(y); };
    return next(x);
  };
  CHECK_THAT(error_of([&] { compile(endless, {.target = Target::c}); }), Contains("256"));
}
