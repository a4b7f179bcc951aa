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
