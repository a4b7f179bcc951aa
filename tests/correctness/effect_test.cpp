// handle and perform: state, generators, forwarding, abandoned bodies, errors.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lantern/compiler/control/control.hpp"
#include "lantern/compiler/control/sanitizer.hpp"
#include "lantern/ir/error.hpp"

using namespace lantern;
using namespace lantern::core;
using Catch::Matchers::Contains;

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

struct Get : Effect<int()> {};
struct Put : Effect<void(int)> {};
struct Yield : Effect<void(const std::string&)> {};
struct Ask : Effect<int()> {};
struct Send : Effect<int(std::unique_ptr<int>, int&)> {};

// The body's result under the state effect, and the state it left.
template <class F>
std::pair<int, int> with_state(int state, F body) {
  const int result = handle(body, on<Get>([&](auto k) { return k(state); }), on<Put>([&](int value, auto k) {
                              state = value;
                              return k();
                            }));
  return {result, state};
}

}  // namespace

TEST_CASE("the state effect", "[effect]") {
  CHECK(with_state(5, [] {
          for (int i = 0; i < 10; ++i) perform<Put>(perform<Get>() + i);
          return perform<Get>() * 2;
        }) == std::pair(100, 50));
  // Nested: the inner state hides the outer.
  CHECK(with_state(1, [] {
          const auto inner = with_state(10, [] {
            perform<Put>(11);
            return perform<Get>();
          });
          return 100 * inner.first + perform<Get>();
        }) == std::pair(1101, 1));
}

TEST_CASE("a million effects", "[effect]") {
  CHECK(with_state(0, [] {
          for (int i = 0; i < kMany / 2; ++i) perform<Put>(perform<Get>() + 1);
          return 1;
        }) == std::pair(1, kMany / 2));
}

TEST_CASE("the generator effect, consumed lazily", "[effect]") {
  // A stored continuation resumed by the consumer: each call of next runs the body to its next yield.
  Continuation<void, void> rest;
  std::string current;
  bool ended = false;
  int alive = 0;
  handle(
      [&alive] {
        const Counted c(alive);
        for (const char* word : {"one", "two", "three"}) perform<Yield>(word);
      },
      on<Yield>([&](const std::string& word, auto k) {
        current = word;
        rest = std::move(k);
      }),
      returning([&] { ended = true; }));
  std::vector<std::string> got;
  while (!ended) {
    got.push_back(current);
    std::exchange(rest, {})();  // handle has returned: the clauses live on with the body
  }
  CHECK(got == std::vector<std::string>{"one", "two", "three"});
  CHECK(alive == 0);
}

TEST_CASE("a clause that does not resume abandons the body", "[effect]") {
  int alive = 0;
  CHECK(handle(
            [&] {
              const Counted c(alive);
              return perform<Ask>();
            },
            on<Ask>([](auto) { return -1; })) == -1);
  CHECK(alive == 0);
}

TEST_CASE("operations of a clause go to the outer handlers", "[effect]") {
  const int result = handle(
      [] {
        return handle([] { return perform<Ask>() + perform<Ask>(); },
                      on<Ask>([](auto k) { return k(perform<Ask>() * 10); }));
      },
      on<Ask>([](auto k) { return k(4); }));
  CHECK(result == 80);
}

TEST_CASE("arguments may be moved, and passed by reference", "[effect]") {
  const int result = handle(
      [] {
        int sent = 0;
        const int answer = perform<Send>(std::make_unique<int>(20), sent);
        return answer + sent;
      },
      on<Send>([](std::unique_ptr<int> value, int& sent, auto k) {
        sent = 1;
        return k(*value * 2);
      }));
  CHECK(result == 41);
}

TEST_CASE("an operation skips handlers without a clause for it", "[effect]") {
  CHECK(
      handle(
          [] { return with_state(3, [] { return perform<Get>() + perform<Ask>() + perform<Get>(); }).first; },
          on<Ask>([](auto k) { return 100 * k(20); })) == 2600);
}

TEST_CASE("the returning clause runs outside the handler and sets the result type", "[effect]") {
  const std::string text = handle(
      [] {
        return handle(
            [] { return perform<Ask>(); }, on<Ask>([](auto k) { return k(7) + "!"; }),
            returning([](int r) { return std::to_string(r) + "/" + std::to_string(perform<Ask>()); }));
      },
      on<Ask>([](auto k) { return k(1); }));
  CHECK(text == "7/1!");
}

TEST_CASE("an effect without a handler names itself", "[effect]") {
  CHECK(message_of([] { perform<Get>(); }) ==
        "perform: no handler of the effect (anonymous namespace)::Get is active; call it inside handle(body, "
        "on<(anonymous namespace)::Get>(...))");
}

TEST_CASE("exceptions pass through handlers", "[effect]") {
  CHECK_THROWS_WITH(with_state(0,
                               []() -> int {
                                 perform<Put>(1);
                                 throw std::runtime_error("body");
                               }),
                    "body");
  CHECK_THROWS_WITH(
      handle([] { return perform<Ask>(); }, on<Ask>([](auto) -> int { throw std::runtime_error("c"); })),
      "c");
}

TEST_CASE("a clause that resumes at its end", "[effect]") {
  int state = 0;
  const double result = handle(
      [] {
        for (int i = 0; i < kMany; ++i) perform<Put>(perform<Get>() + 1);
        return perform<Get>();
      },
      resuming<Get>([&] { return state; }), resuming<Put>([&](int value) { state = value; }),
      returning([](int r) { return r + 0.5; }));
  CHECK(result == kMany + 0.5);
  // Beside one that does not.
  CHECK(handle([] { return perform<Get>() + perform<Ask>() + perform<Get>(); },
               resuming<Get>([] { return 1; }), on<Ask>([](auto k) { return 10 * k(3); })) == 50);
}

TEST_CASE("a clause that resumes at its end takes no stack", "[effect]") {
  // The clause's own frame is where it was, after many operations.
  std::uintptr_t first = 0, last = 0;
  handle(
      [] {
        for (int i = 0; i < 1000; ++i) perform<Get>();
      },
      resuming<Get>([&] {
        const char here = 0;
        last = reinterpret_cast<std::uintptr_t>(&here);
        if (first == 0) first = last;
        return 0;
      }));
  CHECK(first == last);
}

TEST_CASE("what leaves a clause that resumes at its end unwinds the body", "[effect]") {
  int alive = 0;
  const auto run = [&] {
    return handle(
        [&alive] {
          const Counted c(alive);
          return perform<Ask>() + perform<Ask>();
        },
        resuming<Ask>([n = 0]() mutable -> int {
          if (++n == 2) throw std::runtime_error("the second");
          return n;
        }));
  };
  CHECK_THROWS_WITH(run(), "the second");
  CHECK(alive == 0);
}

TEST_CASE("its operations go to the outer handlers", "[effect]") {
  CHECK(handle(
            [] {
              return handle([] { return perform<Ask>() + perform<Ask>(); },
                            resuming<Ask>([] { return perform<Ask>() * 10; }));
            },
            resuming<Ask>([] { return 4; })) == 80);
}

TEST_CASE("instances of an effect", "[effect]") {
  const int a = 0, b = 0;
  const auto both = [&] {
    return handle([&] { return perform_on<Get>(&a) - perform_on<Get>(&b); },
                  resuming<Get>(&a, [] { return 5; }), on<Get>(&b, [](auto k) { return k(3); }));
  };
  CHECK(both() == 2);
  // An inner handler of one instance is passed by for another, and for what names none.
  const int outer = handle(
      [&] {
        return handle([&] { return 100 * perform<Get>() + 10 * perform_on<Get>(&a) + perform_on<Get>(&b); },
                      resuming<Get>(&b, [] { return 1; }));
      },
      resuming<Get>(&a, [] { return 2; }), resuming<Get>([] { return 3; }));
  CHECK(outer == 321);
  CHECK_FALSE(handled<Get>(&a));
  handle(
      [&] {
        CHECK(handled<Get>(&a));
        CHECK_FALSE(handled<Get>(&b));
        CHECK_FALSE(handled<Put>(&a));
      },
      resuming<Get>(&a, [] { return 1; }));
  CHECK_THROWS_WITH(handle([&] { return perform_on<Get>(&b); }, resuming<Get>(&a, [] { return 1; })),
                    Contains("no handler of the effect"));
}

TEST_CASE("nondeterminism is refused: its continuation would be resumed twice", "[control]") {
  struct Choose : Effect<bool()> {};
  std::vector<int> results;
  CHECK_THROWS_WITH(handle([&] { results.push_back(perform<Choose>() ? 1 : 2); }, on<Choose>([](auto k) {
                             k(true);
                             k(false);
                           })),
                    Contains("only once"));
  CHECK(results == std::vector<int>{1});
}
