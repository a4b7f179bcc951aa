// shift and reset: answers, errors, unwinding, depth, threads.
#include "lantern/compiler/control/control.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lantern/compiler/control/sanitizer.hpp"
#include "lantern/ir/error.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

constexpr int kMany = control::kAddressSanitizer ? 200'000 : 1'000'000;

// Counts the objects that are alive.
struct Counted {
  explicit Counted(int& alive) : alive_(&alive) { ++alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*alive_; }
  int* alive_;
};

std::string message_of(void (*f)()) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("reset without shift is its body", "[control]") {
  Prompt<int> p;
  CHECK(reset(p, [] { return 3; }) == 3);
  Prompt<std::string> text;
  CHECK(reset(text, [] { return std::string("a long enough string to be on the heap"); }).size() == 38);
  int x = 1;
  Prompt<int&> ref;
  CHECK(&reset(ref, [&x]() -> int& { return x; }) == &x);
}

TEST_CASE("shift captures up to the reset, and k returns its answer", "[control]") {
  Prompt<int> p;
  // Danvy and Filinski: <1 + shift k. k(10) * 2> = (1 + 10) * 2
  CHECK(reset(p, [&] { return 1 + shift<int>(p, [](auto k) { return k(10) * 2; }); }) == 22);
  CHECK(reset(p, [&] { return 1 + shift<int>(p, [](auto) { return 7; }); }) == 7);
  // Code after k(v) runs after the rest of the program, innermost operation first.
  std::string order;
  Prompt<void> q;
  reset(q, [&] {
    for (char c : {'a', 'b', 'c'}) {
      shift<void>(q, [&order, c](auto k) {
        order += c;
        k();
        order += static_cast<char>(c - 'a' + 'A');
      });
    }
    order += '.';
  });
  CHECK(order == "abc.CBA");
}

TEST_CASE("move-only values travel both ways", "[control]") {
  Prompt<std::unique_ptr<int>> p;
  auto answer = reset(p, [&] {
    auto got = shift<std::unique_ptr<int>>(p, [own = std::make_unique<int>(4)](auto k) mutable {
      auto back = k(std::move(own));
      *back += 1;
      return back;
    });
    *got *= 10;
    return got;
  });
  CHECK(*answer == 41);
}

TEST_CASE("the implicit prompt is the innermost reset", "[control]") {
  std::string order;
  reset([&] {
    reset([&] {
      shift<void>([&order](auto k) {
        k();
        order += "1";
      });
      order += "inner ";
    });
    const int x = shift<int>([&order](auto k) {
      k(5);
      order += " 2";
    });
    order += "outer " + std::to_string(x);
  });
  CHECK(order == "inner 1outer 5 2");
}

TEST_CASE("the reset stays around the function given to shift and around the resumed continuation",
          "[control]") {
  Prompt<int> p;
  // Under control/prompt the second shift would take the multiplication along.
  CHECK(reset(p, [&] {
          const int a = shift<int>(p, [](auto k) { return 10 * k(1); });
          const int b = shift<int>(p, [](auto k) { return 1 + k(2); });
          return a + b;
        }) == 10 * (1 + 3));
  // A shift by the function itself: <shift k. 2 * (shift j. 100 + j(k(3)))> = 100 + 2 * k(3)
  CHECK(reset(p, [&] {
          const int a = shift<int>(p, [&p](auto k) {
            return 2 * shift<int>(p, [k = std::move(k)](auto j) mutable { return 100 + j(k(3)); });
          });
          return a + 1;
        }) == 108);
  // It never resumes: the answer is the inner function's.
  int alive = 0;
  CHECK(reset(p, [&] {
          const Counted outer(alive);
          return shift<int>(p, [&p, &alive](auto k) {
            const Counted inner(alive);
            return k(1) + shift<int>(p, [](auto) { return 5; });
          });
        }) == 5);
  CHECK(alive == 0);
}

TEST_CASE("shifts nested in functions given to shift, many deep", "[control]") {
  struct Nest {
    Prompt<int> p;
    int go(int n) {
      return shift<int>(p, [this, n](auto k) { return 1 + (n == 0 ? k(0) : k(go(n - 1))); });
    }
  } nest;
  CHECK(reset(nest.p, [&] { return nest.go(0); }) == 1);
  CHECK(reset(nest.p, [&] { return nest.go(1); }) == 2);
  CHECK(reset(nest.p, [&] { return nest.go(50); }) == 51);
}

TEST_CASE("a continuation captured inside a function given to shift ends with the function that captured it",
          "[control]") {
  Prompt<int> p;
  Continuation<int, int> kept;
  int alive = 0;
  const int answer = reset(p, [&] {
    return shift<int>(p, [&](auto) {
      const Counted inside(alive);
      return 1 + shift<int>(p, [&](auto j) {
               kept = std::move(j);
               return 9;
             });
    });
  });
  CHECK(answer == 9);
  CHECK(alive == 0);
  CHECK_FALSE(kept);
  CHECK_THROWS_AS(kept(1), Error);
}

TEST_CASE("exceptions inside a function given to shift that was itself captured", "[control]") {
  Prompt<int> p;
  // Thrown by the outer function after it was resumed: reaches j's caller.
  CHECK(reset(p, [&] {
          return shift<int>(p, [&p](auto) -> int {
            const int x = shift<int>(p, [](auto j) {
              try {
                return j(1);
              } catch (const std::runtime_error& e) {
                return std::string(e.what()) == "upper" ? 5 : 6;
              }
            });
            throw std::runtime_error(x == 1 ? "upper" : "wrong value");
          });
        }) == 5);
  // Thrown by the inner function: reaches the caller of reset, and the outer function is unwound.
  int alive = 0;
  CHECK_THROWS_WITH(reset(p,
                          [&]() -> int {
                            return shift<int>(p, [&](auto) -> int {
                              const Counted inside(alive);
                              return shift<int>(p, [](auto) -> int { throw std::runtime_error("inner"); });
                            });
                          }),
                    "inner");
  CHECK(alive == 0);
}

TEST_CASE("a million operations in one reset", "[control]") {
  const auto run = [] {
    Prompt<void> p;
    std::int64_t sum = 0;
    double x = 0;
    reset(p, [&] {
      for (int i = 0; i < kMany; ++i) {
        x = shift<double>(p, [x, &sum](auto k) {
          k(x + 1);
          ++sum;
        });
      }
    });
    return x == kMany && sum == kMany;
  };
  CHECK(run());  // on the main thread's stack
  bool in_thread = false;
  std::thread([&] { in_thread = run(); }).join();
  CHECK(in_thread);
  CHECK(run_on_large_stack(run));
}

TEST_CASE("a million operations, resumed late", "[control]") {
  Prompt<void> p;
  Continuation<int, void> later;
  int done = 0;
  reset(p, [&] {
    const int n = shift<int>(p, [&](auto k) { later = std::move(k); });
    for (int i = 0; i < n; ++i) {
      shift<void>(p, [&](auto k) {
        k();
        ++done;
      });
    }
  });
  CHECK(done == 0);
  later(kMany);
  CHECK(done == kMany);
}

TEST_CASE("an exception crosses a million operations", "[control]") {
  Prompt<void> p;
  const int n = kMany / 10;
  CHECK_THROWS_WITH(reset(p,
                          [&] {
                            for (int i = 0; i < n; ++i) shift<void>(p, [](auto k) { k(); });
                            throw std::runtime_error("at the end");
                          }),
                    "at the end");
}

TEST_CASE("a continuation is resumed at most once", "[control]") {
  const std::string message =
      "a continuation may be resumed only once: this one was resumed before, or moved from; to run the rest "
      "of the "
      "program again, run the reset again";
  CHECK(message_of([] {
          Prompt<int> p;
          reset(p, [&] { return shift<int>(p, [](auto k) { return k(1) + k(2); }); });
        }) == message);
  CHECK(message_of([] { Continuation<int, int>()(3); }) == message);
}

TEST_CASE("shift without a reset", "[control]") {
  const std::string message =
      "shift: no reset of this prompt is active in this thread; call it inside reset(prompt, body), in the "
      "thread "
      "that runs the body";
  CHECK(message_of([] {
          Prompt<int> p;
          shift<int>(p, [](auto k) { return k(1); });
        }) == message);
  CHECK(message_of([] { shift<void>([](auto k) { k(); }); }) == message);
  CHECK(message_of([] {  // it has ended
          Prompt<int> p;
          reset(p, [] { return 1; });
          shift<int>(p, [](auto k) { return k(1); });
        }) == message);
  CHECK(message_of([] {  // another thread's
          Prompt<void> p;
          std::exception_ptr error;
          reset(p, [&] {
            std::thread([&] {
              try {
                shift<void>(p, [](auto k) { k(); });
              } catch (...) {
                error = std::current_exception();
              }
            }).join();
          });
          std::rethrow_exception(error);
        }) == message);
}

TEST_CASE("a continuation stays in its thread", "[control]") {
  Prompt<void> p;
  int alive = 0;
  Continuation<void, void> kept;
  reset(p, [&] {
    const Counted c(alive);
    shift<void>(p, [&](auto k) { kept = std::move(k); });
  });
  std::string message;
  std::thread([&] {
    try {
      kept();
    } catch (const Error& e) {
      message = e.what();
    }
  }).join();
  CHECK(
      message ==
      "a continuation may be resumed only by the thread that captured it; run the whole reset in one thread");
  CHECK(alive == 1);
  SECTION("it can still be resumed") { kept(); }
  SECTION("it can be dropped anywhere") {
    std::thread([&] { kept = {}; }).join();
  }
  CHECK(alive == 0);
}

TEST_CASE("a dropped continuation unwinds what it captured", "[control]") {
  int alive = 0;
  Prompt<int> p;
  Prompt<int> inner;
  SECTION("by the function given to shift") {
    CHECK(reset(p, [&] {
            const Counted a(alive);
            return shift<int>(p, [&alive](auto) { return alive; });
          }) == 1);
  }
  SECTION("through inner resets, and a catch that rethrows") {
    CHECK(reset(p, [&] {
            const Counted a(alive);
            return reset(inner, [&] {
              const Counted b(alive);
              try {
                const Counted c(alive);
                return shift<int>(p, [](auto) { return 3; });
              } catch (...) {
                CHECK(alive == 2);
                throw;
              }
            });
          }) == 3);
  }
  SECTION("when an exception leaves the function") {
    CHECK_THROWS_WITH(reset(p,
                            [&] {
                              const Counted a(alive);
                              return shift<int>(p, [](auto) -> int { throw std::runtime_error("f"); });
                            }),
                      "f");
  }
  SECTION("stored, and forgotten") {
    Continuation<int, int> kept;
    reset(p, [&] {
      const Counted a(alive);
      return shift<int>(p, [&kept](auto k) {
        kept = std::move(k);
        return 0;
      });
    });
    CHECK(alive == 1);
    kept = {};
  }
  SECTION("its destructors may run resets and shifts of their own") {
    struct Busy {
      int& alive;
      ~Busy() {
        Prompt<int> q;
        alive -= reset(q, [&] { return shift<int>(q, [](auto k) { return k(1); }); });
      }
    };
    alive = 1;
    reset(p, [&] {
      const Busy busy{alive};
      return shift<int>(p, [](auto) { return 0; });
    });
  }
  CHECK(alive == 0);
}

TEST_CASE("swallowing the unwinding of a dropped continuation ends the program with a message", "[control]") {
  const auto swallow = [] {
    Prompt<int> p;
    reset(p, [&] {
      try {
        return shift<int>(p, [](auto) { return 1; });
      } catch (...) {
        return 2;
      }
    });
  };
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    std::set_terminate(std::abort);
    dup2(ends[1], 2);
    swallow();
    _exit(0);
  }
  close(ends[1]);
  std::string text(1000, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(ends[0], text.data(), text.size()))));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  CHECK(text ==
        "lantern: a dropped continuation was being unwound, and a catch (...) in its frames did not rethrow; "
        "end "
        "every catch (...) around shift or perform with `throw;`\n");
}

TEST_CASE("exceptions reach whoever waits", "[control]") {
  Prompt<int> p;
  CHECK_THROWS_WITH(reset(p, []() -> int { throw std::runtime_error("body"); }), "body");
  // From the resumed continuation, through k, into the function.
  CHECK(reset(p, [&]() -> int {
          shift<int>(p, [](auto k) {
            try {
              return k(1);
            } catch (const std::runtime_error& e) {
              return std::string(e.what()) == "rest" ? 4 : 5;
            }
          });
          throw std::runtime_error("rest");
        }) == 4);
  // An exception of the function does not pass through the frames it captured.
  bool seen = false;
  CHECK_THROWS_WITH(reset(p,
                          [&]() -> int {
                            try {
                              return shift<int>(p, [](auto) -> int { throw std::runtime_error("function"); });
                            } catch (const std::runtime_error&) {
                              seen = true;
                              throw;
                            }
                          }),
                    "function");
  CHECK_FALSE(seen);
  CHECK_THROWS_AS(run_on_large_stack([] { throw std::logic_error("x"); }), std::logic_error);
}

TEST_CASE("operations inside catch blocks leave the exception state alone", "[control]") {
  Prompt<int> p;
  std::string log;
  const int answer = reset(p, [&]() -> int {
    try {
      try {
        throw std::runtime_error("first");
      } catch (const std::runtime_error&) {
        const int x = shift<int>(p, [](auto k) {
          try {
            throw std::logic_error("other");
          } catch (const std::logic_error&) {
            return k(1);  // the body goes on while we handle "other"
          }
        });
        if (x == 1) throw;  // "first"
      }
    } catch (const std::exception& e) {
      log = e.what();
    }
    return std::current_exception() == nullptr ? 2 : 3;
  });
  CHECK(answer == 2);
  CHECK(log == "first");

  // During unwinding: a destructor runs a reset, and uncaught_exceptions comes back right.
  struct Checks {
    int& during;
    ~Checks() {
      Prompt<int> q;
      during = 10 * std::uncaught_exceptions() + reset(q, [] { return std::uncaught_exceptions(); });
    }
  };
  int during = -1;
  try {
    const Checks c{during};
    throw 1;
  } catch (int) {
  }
  CHECK(during == 10);
  CHECK(std::uncaught_exceptions() == 0);
}

TEST_CASE("prompts tell nested resets apart", "[control]") {
  Prompt<std::string> outer;
  Prompt<int> inner;
  const std::string answer = reset(outer, [&] {
    const int x = reset(inner, [&] {
      const int a = shift<int>(outer, [](auto k) { return "<" + k(1) + ">"; });  // through the inner reset
      const int b = shift<int>(inner, [](auto k) { return 10 * k(2); });
      const int c = shift<int>(outer, [](auto k) { return "[" + k(3) + "]"; });
      return a + b + c;
    });
    return std::to_string(x);
  });
  CHECK(answer == "<[60]>");
}

TEST_CASE("a stored continuation runs below whoever resumes it", "[control]") {
  Prompt<int> p;
  Prompt<int> q;
  Continuation<int, int> k1;
  CHECK(reset(p, [&] {
          const int a = shift<int>(p, [&](auto k) {
            k1 = std::move(k);
            return -1;
          });
          const int b = shift<int>(p, [](auto k) { return k(100) + 1000; });
          return a + b;
        }) == -1);
  SECTION("after the reset has returned") { CHECK(k1(5) == 1105); }
  SECTION("from another reset, also of the same prompt") {
    CHECK(reset(q, [&] { return 1 + k1(5); }) == 1106);
  }
  SECTION("from another reset of the same prompt") {
    CHECK(reset(p, [&] { return 2 * k1(5); }) == 2210);
  }
  SECTION("from a function given to shift") {
    CHECK(reset(q, [&] { return 1 + shift<int>(q, [&](auto k) { return k(k1(5)); }); }) == 1106);
  }
  SECTION("it sees the resets around its new place") {
    Continuation<int, int> k2;
    reset(p, [&] {
      const int a = shift<int>(p, [&](auto k) {
        k2 = std::move(k);
        return 0;
      });
      return a + shift<int>(q, [](auto k) { return 7 * k(1); });
    });
    CHECK(reset(q, [&] { return 10 + k2(5); }) == 7 * 16);
    CHECK_FALSE(k2);
  }
}

TEST_CASE("continuations outlive their prompt", "[control]") {
  Continuation<int, int> k;
  {
    Prompt<int> p;
    reset(p, [&] {
      return 1 + shift<int>(p, [&](auto c) {
               k = std::move(c);
               return 0;
             });
    });
  }
  Prompt<int> other;  // very likely at the same address: identity is a number
  CHECK(reset(other, [&] { return k(1); }) == 2);
}

TEST_CASE("thousands of suspended computations", "[control]") {
  Prompt<int> p;
  std::vector<Continuation<int, int>> all;
  const int n = kMany / 500;
  for (int i = 0; i < n; ++i) {
    reset(p, [&, i] {
      return i + shift<int>(p, [&all](auto k) {
               all.push_back(std::move(k));
               return 0;
             });
    });
  }
  std::int64_t sum = 0;
  for (int i = 0; i < n; i += 2) sum += all[static_cast<std::size_t>(i)](1);
  CHECK(sum == std::int64_t{n} / 2 + std::int64_t{n} / 2 * (n / 2 - 1));
}

TEST_CASE("the ambient pointer belongs to the stack", "[control]") {
  int a = 0;
  int b = 0;
  Prompt<void> p;
  CHECK(control_ambient() == nullptr);
  control_ambient() = &a;
  reset(p, [&] {
    CHECK(control_ambient() == &a);  // inherited
    control_ambient() = &b;
    shift<void>(p, [&a](auto k) {
      CHECK(control_ambient() == &a);
      k();
      CHECK(control_ambient() == &a);
    });
    CHECK(control_ambient() == &b);
  });
  CHECK(control_ambient() == &a);
  run_on_large_stack([&] {
    CHECK(control_ambient() == &a);
    control_ambient() = nullptr;
  });
  CHECK(control_ambient() == nullptr);
}

TEST_CASE("run_on_large_stack carries deep recursion", "[control]") {
  struct Walk {
    static int depth(int n) {
      volatile char frame[200] = {};
      frame[n % 200] = 1;
      return n == 0 ? frame[0] : depth(n - 1) + frame[n % 200];
    }
  };
  const int n = kMany / 4;  // beyond 8 MB in every build
  CHECK(run_on_large_stack([&] { return Walk::depth(n); }) == n + 1);
  Prompt<int> p;
  CHECK(reset(p, [&] { return Walk::depth(n); }) == n + 1);
}

// Reverse mode as in the Lantern paper, section 3.2: an operator runs the rest of the program, then adds to
// the adjoints of its operands.
namespace {

struct Number {
  double x;
  std::shared_ptr<double> d = std::make_shared<double>(0.0);
};

Prompt<void>& reverse_mode() {
  static Prompt<void> prompt;
  return prompt;
}

Number operator*(const Number& a, const Number& b) {
  return shift<Number>(reverse_mode(), [a, b](auto k) {
    const Number y{a.x * b.x};
    k(y);
    *a.d += b.x * *y.d;
    *b.d += a.x * *y.d;
  });
}

Number operator+(const Number& a, const Number& b) {
  return shift<Number>(reverse_mode(), [a, b](auto k) {
    const Number y{a.x + b.x};
    k(y);
    *a.d += *y.d;
    *b.d += *y.d;
  });
}

template <class F>
double gradient(F f, double at) {
  const Number x{at};
  reset(reverse_mode(), [&] { *f(x).d += 1.0; });
  return *x.d;
}

}  // namespace

TEST_CASE("reverse mode by shift and reset", "[control]") {
  CHECK(gradient([](const Number& x) { return x + x * x * x; }, 3.0) == Approx(28.0));
  CHECK(gradient([](const Number& x) { return x; }, 3.0) == 1.0);
  const auto power = [](const Number& x) {
    Number y = x;
    for (int i = 1; i < 1000; ++i) y = y * x;
    return y;
  };
  CHECK(gradient(power, 1.001) == Approx(1000 * std::pow(1.001, 999)));
}
