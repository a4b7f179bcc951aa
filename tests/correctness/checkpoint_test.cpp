// checkpoint(f), and loops whose reverse keeps some states instead of every iteration: derivatives in every way of
// computing them, the memory that they take, and what is refused.
#include <fmt/format.h>

#include <thread>

#include "../golden/golden.hpp"
#include "agree.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;

/// n steps of a map that is not linear and forgets slowly; what a step does depends on its number.
template <class Options>
D steps(const D& x, const I& n, const Options& options) {
  return FOR(
      0, n, x, [x](I i, D s) { return sin(s) + 0.01 * x * s * cast<double>(i % 3); }, options);
}
D steps(const D& x, const I& n) { return steps(x, n, LoopOptions{}); }

/// The same, ended by a condition that says nothing about the number of iterations.
D search(const D& x, const I& n, const LoopOptions& options) {
  const auto [i, s] = WHILE(
      std::tuple(I(0), x), [n](I k, D t) { return AND(t > -10.0, [&] { return k != n; }); },
      [x](I k, D t) { return std::tuple(k + 1, sin(t) + 0.01 * x * t * cast<double>(k % 3)); }, options);
  return s;
}

D ten(D x) { return steps(x, 10); }

/// The value and the bytes of workspace of a call in a thread that has made no other.
template <class F, class... T>
std::pair<double, std::int64_t> in_new_thread(const F& f, T... arguments) {
  std::pair<double, std::int64_t> result;
  std::thread([&] {
    result.first = f(arguments...);
    result.second = driver::workspace_bytes();
  }).join();
  return result;
}

template <class F>
auto native(F f) {
  return compile(f, {.target = Target::c});
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

// ---- checkpoint(f)

TEST_CASE("a checkpointed function has the derivatives of the function", "[checkpoint]") {
  const Ways thrice{.order = 3};
  check_all(
      thrice, "straight",
      [](D x) { return checkpoint(sig<double(double)>([](D y) { return sin(y) * y; }))(x) * x; }, 0.7);
  check_all(
      thrice, "of a loop", [](D x) { return checkpoint(ten)(x * x) + x; }, 0.7);
  check_all(
      "in a loop", [](D x) { return FOR(0, 4, x, [](I, D s) { return checkpoint(ten)(s) * s; }); }, 0.7);
  check_all(
      "in a branch",
      [](D x) {
        return IF(
                   x > 0.5, [x] { return checkpoint(ten)(x); }, [x] { return x * x; }) *
               x;
      },
      0.7);
  check_all(
      "two arguments",
      [](D x, D y) {
        const auto f = checkpoint(sig<double(double, double)>([](D a, D b) { return exp(a) * b + a / b; }));
        return f(x * y, y) * f(y, x);
      },
      0.7, 1.3);
  check_all(
      "the same value twice",
      [](D x) { return checkpoint(sig<double(double, double)>([](D a, D b) { return a * a * b; }))(x, x); },
      0.7);
  check_all(
      "an argument handed through",
      [](D x) {
        const auto [a, b] = checkpoint([](const std::tuple<D, D>& p) {
          const auto [u, v] = p;
          return std::tuple(v, u * v);
        })(std::tuple(x, x * x));
        return a * b;
      },
      0.7);
}

TEST_CASE("checkpoints nest", "[checkpoint]") {
  const auto inner = [](D x) { return checkpoint(ten)(x) * x; };
  check_all(
      "in one another", [inner](D x) { return checkpoint(sig<double(double)>(inner))(x * x) * x; }, 0.7);
  check_all(
      "in one another, in loops",
      [inner](D x) {
        const auto outer = [inner](D s) {
          return FOR(0, 3, s, [inner](I, D t) { return checkpoint(sig<double(double)>(inner))(t) + 0.1; });
        };
        return FOR(0, 3, x, [outer](I, D s) { return checkpoint(sig<double(double)>(outer))(s); });
      },
      0.7);
  static const auto descend = FUN<double(double, std::int64_t)>("descend", [](auto self, D x, I n) {
    return IF(
        n == 0, [x] { return x; },
        [x, n, self] {
          return checkpoint(
              sig<double(double, std::int64_t)>([self](D y, I k) { return sin(self(y, k)) * y; }))(x, n - 1);
        });
  });
  check_all(
      "in a function that calls itself", [](D x) { return descend(x, 5); }, 0.7);
  check_all(
      "of a derivative",
      [](D x) { return checkpoint(sig<double(double)>([](D y) { return grad(ten)(y) * y; }))(x); }, 0.7);
}

TEST_CASE("what a checkpointed function captures is differentiated", "[checkpoint]") {
  check_all(
      "captured",
      [](D x) {
        const D c = x * x;
        return checkpoint(sig<double(double)>([c](D y) { return sin(c * y) + c; }))(x);
      },
      0.7);
  // The captured value belongs to the inner derivative, the argument to the outer one.
  const auto f = [](D x) {
    return grad(sig<double(double)>(
        [x](D y) { return checkpoint(sig<double(double)>([y](D z) { return z * z * y; }))(x); }))(x);
  };
  CHECK(error_of([&] {
          eager(grad(sig<double(double)>(f)))(0.7);
        }).find("checkpoint: the function captures a value of an inner derivative; pass it as an argument") !=
        std::string::npos);
  CHECK(native(grad(sig<double(double)>(f)))(0.7) == Approx(1.4));
}

TEST_CASE("arrays and integers pass through a checkpoint", "[checkpoint]") {
  check_all("array",
            [](A a) {
              const auto f = checkpoint(
                  sig<Array<double>(Array<double>, int64_t)>([](A v, I k) { return sin(v) * v[k] + v; }));
              return sum(f(f(a, 1), 2));
            },
            {0.3, -0.4, 1.2});
}

TEST_CASE("eagerly a checkpointed function runs once more for the backward pass", "[checkpoint]") {
  const auto runs = std::make_shared<int>(0);
  const auto f = sig<double(double)>([runs](D x) {
    ++*runs;
    return sin(x);
  });
  CHECK(eager(grad(f))(0.5) == Approx(std::cos(0.5)));
  CHECK(std::exchange(*runs, 0) == 1);
  CHECK(eager(grad(checkpoint(f)))(0.5) == Approx(std::cos(0.5)));
  CHECK(std::exchange(*runs, 0) == 2);
  CHECK(eager(grad<mode::forward>(checkpoint(f)))(0.5) == Approx(std::cos(0.5)));
  CHECK(std::exchange(*runs, 0) == 1);
  // Nothing is asked of it: no reason to run it again.
  CHECK(eager(grad([g = checkpoint(f)](D x) { return g(x), x * x; }))(0.5) == 1.0);
  CHECK(std::exchange(*runs, 0) == 1);
}

TEST_CASE("a checkpoint in a loop takes the memory of one iteration", "[checkpoint]") {
  constexpr std::int64_t outer = 200, inner = 1000;
  const auto plain = [](D x) { return FOR(0, outer, x, [](I, D s) { return steps(s, inner); }); };
  const auto kept = [](D x) {
    return FOR(0, outer, x, [](I, D s) {
      return checkpoint(sig<double(double)>([](D t) { return steps(t, inner); }))(s);
    });
  };
  const auto [dense, dense_bytes] = in_new_thread(native(grad(plain)), 0.7);
  const auto [sparse, sparse_bytes] = in_new_thread(native(grad(kept)), 0.7);
  CHECK(sparse == dense);
  CHECK(dense_bytes >= 8 * outer * inner);
  CHECK(sparse_bytes <= 8 * (2 * outer + 3 * inner) + 4 * 4096);
}

// ---- loops

TEST_CASE("loops under a bound have the derivatives of the loop", "[checkpoint][loops]") {
  for (const LoopOptions options : {LoopOptions{.memory = 160}, LoopOptions{.memory = 100'000},
                                    LoopOptions{.checkpoints = 1}, LoopOptions{.checkpoints = 3}}) {
    const std::string name = options.memory > 0 ? fmt::format("memory {}", options.memory)
                                                : fmt::format("checkpoints {}", options.checkpoints);
    for (const std::int64_t n : {0, 1, 2, 7, 40}) {
      INFO(n);
      check_with<>(
          {.order = 1}, "FOR, " + name, [=](D x) { return steps(x, n, options) * x; }, 0.7);
      check_with<>(
          {.order = 1}, "WHILE, " + name, [=](D x) { return search(x, n, options) * x; }, 0.7);
    }
    check_all(
        "FOR, all orders, " + name, [=](D x) { return steps(x, 11, options); }, 0.7);
    check_all(
        "WHILE, all orders, " + name, [=](D x) { return search(x, 11, options); }, 0.7);
  }
}

TEST_CASE("any number of iterations under any number of checkpoints", "[checkpoint][loops]") {
  const auto plain = native(grad([](D x, I n) { return steps(x, n); }));
  for (const std::int64_t c : {1, 2, 3, 5, 8}) {
    const LoopOptions options{.checkpoints = c};
    const auto counted = native(grad([=](D x, I n) { return steps(x, n, options); }));
    const auto online = native(grad([=](D x, I n) { return search(x, n, options); }));
    for (std::int64_t n = -1; n < 200; n += 1 + n / 20) {
      INFO(n << " iterations, " << c << " checkpoints");
      CHECK(counted(0.7, n) == plain(0.7, n));
      if (n >= 0) CHECK(online(0.7, n) == Approx(plain(0.7, n)).epsilon(1e-12));
    }
  }
}

TEST_CASE("memory stays under the bound", "[checkpoint][loops]") {
  const std::int64_t n = 50'000;
  const auto [expected, bytes] = in_new_thread(native(grad([](D x, I k) { return steps(x, k); })), 0.7, n);
  CHECK(bytes >= 8 * n);
  for (const std::int64_t memory : {100'000, 200'000}) {
    INFO(memory);
    const LoopOptions options{.memory = memory};
    const auto counted = in_new_thread(native(grad([=](D x, I k) { return steps(x, k, options); })), 0.7, n);
    CHECK(counted.first == expected);
    CHECK(counted.second <= memory);
    const auto online = in_new_thread(native(grad([=](D x, I k) { return search(x, k, options); })), 0.7, n);
    CHECK(online.first == Approx(expected).epsilon(1e-12));
    CHECK(online.second <= memory);
  }
  // A number of checkpoints: one page for each value that is kept, whatever the number of iterations.
  const LoopOptions few{.checkpoints = 12};
  const auto counted = native(grad([=](D x, I k) { return steps(x, k, few); }));
  CHECK(in_new_thread(counted, 0.7, std::int64_t{3000}).second ==
        in_new_thread(counted, 0.7, std::int64_t{30}).second);
}

TEST_CASE("what loops and functions inside an iteration save is counted, or is of one iteration",
          "[checkpoint][loops]") {
  const LoopOptions options{.memory = 1'000'000};
  const std::int64_t n = 20'000, inside = 100;
  // Loops with a known number of iterations are counted.
  const auto known = [=](D x, I k) {
    const auto body = [](I, D s) { return FOR(0, inside, s, [](I, D t) { return sin(t) + 0.01 * t * t; }); };
    return FOR(0, k, x, body, options);
  };
  // Of others, and of functions, what one iteration keeps comes on top.
  const auto any = [=](D x, I k, I m) {
    const auto body = [m](I, D s) { return FOR(0, m, s, [](I, D t) { return sin(t) + 0.01 * t * t; }); };
    return FOR(0, k, x, body, options);
  };
  const auto recursive = [=](D x, I k) {
    const auto down = FUN<double(double, std::int64_t)>("down", [](auto self, D t, I m) {
      return IF(
          m == 0, [&] { return t; }, [&] { return sin(self(t, m - 1)) + 0.01 * t * t; });
    });
    return FOR(
        0, k, x, [down](I, D s) { return down(s, inside); }, options);
  };
  const auto [a, bytes_known] = in_new_thread(native(grad(known)), 0.7, n);
  CHECK(bytes_known <= options.memory);
  const auto [b, bytes_any] = in_new_thread(native(grad<0>(any)), 0.7, n, inside);
  CHECK(bytes_any <= options.memory + 100'000);
  CHECK(a == b);
  const auto [c, bytes_called] = in_new_thread(native(grad(recursive)), 0.7, n / 10);
  CHECK(bytes_called <= options.memory + 100'000);
  const auto all = native(grad([](D x, I k) {
    return FOR(0, k, x,
               [](I, D s) { return FOR(0, inside, s, [](I, D t) { return sin(t) + 0.01 * t * t; }); });
  }));
  CHECK(all(0.7, n) == a);
}

TEST_CASE("a long loop is cut into segments by itself", "[checkpoint][loops]") {
  const std::int64_t n = 3'000'000;  // 24 MB of frames
  const auto f = compile(grad([](D x, I k) { return steps(x, k); }), {.target = Target::cpp});
  const auto online = compile(grad([](D x, I k) { return search(x, k, {}); }), {.target = Target::cpp});
  const auto [long_loop, bytes] = in_new_thread(f, 0.7, n);
  CHECK(bytes < 1 << 20);
  const auto [plain, plain_bytes] = in_new_thread(online, 0.7, n);
  CHECK(plain_bytes >= 8 * n);
  CHECK(long_loop == Approx(plain).epsilon(1e-12));
  // Around the lengths where segments begin and end.
  for (const std::int64_t k : {2'097'151, 2'097'152, 2'097'153, 2'129'920, 2'129'921}) {
    INFO(k);
    CHECK(f(0.7, k) == Approx(online(0.7, k)).epsilon(1e-12));
  }
}

TEST_CASE("bounded loops nest, and stand in branches and functions", "[checkpoint][loops]") {
  const LoopOptions two{.checkpoints = 2};
  check_all(
      "in one another",
      [=](D x) {
        return FOR(
            0, 7, x,
            [=](I, D s) {
              return FOR(
                  0, 9, s, [=](I, D t) { return sin(t) * x + s; }, two);
            },
            two);
      },
      0.7);
  check_all(
      "around a loop",
      [=](D x) {
        return FOR(
            0, 7, x, [=](I, D s) { return steps(s, 5) * x; }, two);
      },
      0.7);
  check_all(
      "around a checkpoint",
      [=](D x) {
        return FOR(
            0, 7, x, [=](I, D s) { return checkpoint(ten)(s) * x; }, two);
      },
      0.7);
  check_all(
      "in a checkpoint",
      [=](D x) { return checkpoint(sig<double(double)>([=](D s) { return steps(s, 20, two); }))(x) * x; },
      0.7);
  check_all(
      "in a branch",
      [=](D x) {
        return IF(
                   x > 0.0, [=] { return search(x, 20, two); }, [=] { return x; }) *
               x;
      },
      0.7);
  static const auto half = FUN<double(double, std::int64_t)>("half", [two](auto self, D x, I n) {
    return IF(
        n == 0, [x] { return x; }, [=] { return sin(self(steps(x, n, two), n / 2)) + x; });
  });
  check_all(
      "in a function that calls itself", [](D x) { return half(x, 9); }, 0.7);
  check_all(
      "around a call",
      [=](D x) {
        return FOR(
            0, 7, x, [=](I, D s) { return half(s, 2) * x; }, two);
      },
      0.7);
}

TEST_CASE("the state of a bounded loop may be an array", "[checkpoint][loops]") {
  for (const LoopOptions options : {LoopOptions{.memory = 1000}, LoopOptions{.checkpoints = 2}}) {
    check_all({.order = 1}, "whole",
              [=](A a) {
                return sum(FOR(
                    0, 9, a, [=](I, A v) { return sin(v) * v + a; }, options));
              },
              {0.3, -0.4, 1.2});
    check_all({.order = 1}, "element by element",
              [=](A a) {
                return sum(FOR(
                    0, 9, a, [=](I i, A v) { return v.set(i % 3, sin(v[(i + 1) % 3]) * v[i % 3] + 0.1); },
                    options));
              },
              {0.3, -0.4, 1.2});
  }
}

TEST_CASE("loops over arrays take bounded memory", "[checkpoint][loops]") {
  static constexpr std::int64_t size = 1000, n = 2000;
  const auto bytes = [](const auto& f, std::int64_t iterations) {
    std::int64_t held = 0;
    std::thread([&] {
      const std::vector<double> r = f(std::vector<double>(size, 0.3), iterations);
      CHECK(static_cast<std::int64_t>(r.size()) == size);
      held = driver::workspace_bytes();
    }).join();
    return held;
  };
  const auto whole = [](LoopOptions options) {
    return sig<Array<double>(Array<double>, std::int64_t)>([=](A a, I k) {
      return FOR(
          0, k, a, [=](I, A v) { return sin(v) * v + a; }, options);
    });
  };
  const auto gradient = [](auto f) {
    return native(grad<0>(sig<double(Array<double>, std::int64_t)>([=](A a, I k) { return sum(f(a, k)); })));
  };
  // The state is a new array in every iteration: earlier ones are forgotten.
  CHECK(bytes(native(whole({})), n) < 50 * 8 * size);
  CHECK(bytes(gradient(whole({})), n) > n * 8 * size);
  const std::int64_t memory = 1'500'000;
  const auto bounded = gradient(whole({.memory = memory}));
  CHECK(bytes(bounded, n) < 2 * memory);
  CHECK(bytes(bounded, 8 * n) < 2 * memory);
  const std::vector<double> start(size, 0.3);
  CHECK(bounded(start, 50) == gradient(whole({}))(start, 50));
}

TEST_CASE("several arrays, and parts of one, in the state of a loop", "[checkpoint][loops]") {
  // They change places, one is a part of the other or the same, and sizes change from iteration to iteration.
  const auto program = [](A a, I n) {
    const auto [u, v, w] = FOR(0, n, std::tuple(a, sin(a), a.slice(0, 2)), [a](I i, A p, A q, A r) {
      const A s = sin(p) * q + a;
      return std::tuple(IF(
                            i % 3 == 0, [=] { return s; }, [=] { return q; }),
                        s + 0.001 * sum(r), s.slice(i % 3, 2 + i % 3 + i % 2));
    });
    return u * v * sum(w);
  };
  const auto f = sig<Array<double>(Array<double>, std::int64_t)>(program);
  std::vector<double> start(5000);
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = 0.001 * static_cast<double>(i % 700);
  const auto compiled = native(f);
  const auto cpp = compile(f, {.target = Target::cpp});
  for (const std::int64_t n : {1, 5, 40, 41, 42, 100}) {
    const std::vector<double> expected = eager(f)(start, n), found = compiled(start, n),
                              other = cpp(start, n);
    REQUIRE(found.size() == expected.size());
    double difference = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      difference = std::max(difference, std::abs(found[i] - expected[i]) / (1 + std::abs(expected[i])));
      difference = std::max(difference, std::abs(other[i] - expected[i]) / (1 + std::abs(expected[i])));
    }
    CHECK(difference < 1e-10);
  }
}

TEST_CASE("depth: tail calls are iterations, other calls take a frame on the tape", "[checkpoint][deep]") {
  static const auto tail = FUN<double(double, double, std::int64_t)>("tail", [](auto self, D x, D s, I n) {
    return IF(
        n == 0, [s] { return s; },
        [=] { return self(x, sin(s) + 0.01 * x * s * cast<double>((n - 1) % 3), n - 1); });
  });
  check_all(
      "tail calls", [](D x) { return tail(x, x, 9); }, 0.7);
  check_all(
      "tail calls of a value", [](D x) { return tail(x, x * x, 9) * tail(1.0, x, 3); }, 0.7);
  const std::int64_t n = 1'000'000;
  const auto f = native(grad<0>(sig<double(double, std::int64_t)>([](D x, I k) { return tail(x, x, k); })));
  const auto loop = native(grad<0>(sig<double(double, std::int64_t)>([](D x, I k) {
    return FOR(0, k, x, [=](I i, D s) { return sin(s) + 0.01 * x * s * cast<double>((k - i - 1) % 3); });
  })));
  const auto [derivative, bytes] = in_new_thread(f, 0.7, n);
  CHECK(derivative == Approx(loop(0.7, n)).epsilon(1e-12));
  CHECK(bytes <= 64 * n);
  // A product from the inside out.
  static const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, D x, I k) {
    return IF(
        k == 0, [] { return D(1.0); }, [=] { return x * self(x, k - 1); });
  });
  const auto dpower =
      native(grad<0>(sig<double(double, std::int64_t)>([](D x, I k) { return power(x, k); })));
  const auto [slope, frames] = in_new_thread(dpower, 1 + 1e-6, n);
  CHECK(slope == Approx(1e6 * std::pow(1 + 1e-6, 1e6 - 1)).epsilon(1e-9));
  CHECK(frames <= 32 * n);
}

TEST_CASE("bounds that cannot be met", "[checkpoint][errors]") {
  const auto bounded = [](LoopOptions options) {
    return sig<double(double, std::int64_t)>([=](D x, I n) { return steps(x, n, options); });
  };
  CHECK(error_of([&] {
          native(grad<0>(bounded({.memory = -5})));
        }).find("expected a positive number of bytes or checkpoints for a loop, got -5") !=
        std::string::npos);
  CHECK(error_of([&] {
          native(grad<0>(bounded({.memory = 5, .checkpoints = 5})));
        }).find("expected a number of bytes or of checkpoints for a loop, got both") != std::string::npos);
  const auto f = native(grad<0>(bounded({.memory = 16})));
  const std::string message = error_of([&] { f(0.7, 10); });
  CHECK(message.find("checkpoint_test.cpp:") != std::string::npos);
  CHECK(message.find("error: expected 40 bytes or more for the state and one iteration of the loop, got 16") !=
        std::string::npos);
  // The value alone keeps nothing.
  CHECK(native(bounded({.memory = 16}))(0.7, 10) == native(bounded({}))(0.7, 10));
  // Of an array the size shows when the program runs.
  const auto arrays = native(
      grad([](A a) { return sum(FOR(0, 9, a, [=](I, A v) { return sin(v) * v + a; }, {.memory = 200})); }));
  CHECK(arrays(std::vector<double>{0.5}).size() == 1);
  CHECK(error_of([&] {
          arrays(std::vector<double>(1000, 0.5));
        }).find("expected enough memory for the state and one iteration of the loop, got 200") !=
        std::string::npos);
}

// ---- the graph

TEST_CASE("checkpoints as text", "[checkpoint][golden]") {
  const auto staged = [](const auto& f) {
    return driver::stage("f", {ir::F64, ir::I64}, detail::program_of(f).run);
  };
  const auto check = [](const std::string& name, ir::Module& module) {
    ir::verify(module);
    const std::string text = ir::print(module);
    CHECK(ir::print(*ir::parse(text)) == text);
    check_golden("checkpoint/" + name + ".cps.ir", text);
    passes::run_pipeline(module, {.opt_level = 1, .verify_each = true});
    check_golden("checkpoint/" + name + ".direct.ir", ir::print(module));
  };
  check("call", *staged(sig<double(double, std::int64_t)>([](D x, I) {
          return grad(sig<double(double)>([](D y) {
            return checkpoint(sig<double(double)>([](D z) { return sin(exp(z)) * z; }))(y * y);
          }))(x);
        })));
  const auto loop = [](const LoopOptions& options) {
    return sig<double(double, std::int64_t)>([=](D x, I n) {
      return grad(sig<double(double)>([=](D y) {
        return FOR(
            0, n, y, [](I, D s) { return sin(s); }, options);
      }))(x);
    });
  };
  check("segments", *staged(loop({})));
  check("memory", *staged(loop({.memory = 65536})));
}
