// defer: what shift does with a function that resumes at once, without a capture.
#include <catch2/catch.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "lantern/compiler/control/control.hpp"
#include "lantern/compiler/control/sanitizer.hpp"
#include "lantern/ir/error.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

/// Appends to a text when it is called, or destroyed without having been.
class Noted {
 public:
  Noted(std::string& trace, std::string name) : trace_(&trace), name_(std::move(name)) {}
  Noted(Noted&& o) noexcept : trace_(std::exchange(o.trace_, nullptr)), name_(std::move(o.name_)) {}
  Noted(const Noted& o) = default;
  Noted& operator=(const Noted&) = delete;
  ~Noted() {
    if (trace_) *trace_ += "~" + name_ + " ";
  }
  void operator()() { *std::exchange(trace_, nullptr) += name_ + " "; }

 private:
  std::string* trace_;
  std::string name_;
};

}  // namespace

TEST_CASE("defer does what shift does with a function that resumes at once", "[control]") {
  // The same program, every step of it by one or the other.
  for (int choice = 0; choice < 8; ++choice) {
    std::string trace;
    Prompt<void> p;
    int made = 0;
    const auto step = [&](const char* name) {
      if (choice >> made++ & 1)
        defer(p, [&trace, name] { trace += name; });
      else
        shift<void>(p, [&trace, name](auto k) {
          k();
          trace += name;
        });
    };
    reset(p, [&] {
      step("a");
      trace += "1";
      step("b");
      shift<void>(p, [&](auto k) {
        trace += "2";
        k();
        trace += "3";
      });
      step("c");
      trace += "4";
    });
    INFO(choice);
    CHECK(trace == "124c3ba");
  }
}

TEST_CASE("what is deferred runs though the rest of the program was dropped", "[control]") {
  std::string trace;
  Prompt<void> p;
  reset(p, [&] {
    defer(p, Noted(trace, "a"));
    shift<void>(p, [&](auto) { trace += "dropped "; });
    defer(p, Noted(trace, "b"));
  });
  CHECK(trace == "dropped a ");
}

TEST_CASE("what is deferred does not run where an exception ends the reset", "[control]") {
  std::string trace;
  Prompt<void> p;
  CHECK_THROWS_WITH(reset(p,
                          [&] {
                            defer(p, Noted(trace, "a"));
                            defer(p, Noted(trace, "b"));
                            throw std::runtime_error("at the end");
                          }),
                    "at the end");
  CHECK(trace == "~b ~a ");
  trace.clear();
  CHECK_THROWS_WITH(reset(p,
                          [&] {
                            defer(p, Noted(trace, "a"));
                            defer(p, [] { throw std::runtime_error("in between"); });
                            defer(p, Noted(trace, "c"));
                          }),
                    "in between");
  CHECK(trace == "c ~a ");
}

TEST_CASE("defer reaches across the resets of other prompts", "[control]") {
  std::string trace;
  Prompt<void> p, q;
  reset(p, [&] {
    reset(q, [&] {
      defer(p, Noted(trace, "outer"));
      defer(q, Noted(trace, "inner"));
      trace += "body ";
    });
    trace += "between ";
  });
  CHECK(trace == "body inner between outer ");
}

TEST_CASE("what is deferred belongs to the captured computation that it waits for", "[control]") {
  std::string trace;
  Prompt<void> outer, p;
  Continuation<void, void> later;
  reset(outer, [&] {
    reset(p, [&] {
      defer(p, Noted(trace, "a"));
      shift<void>(outer, [&](auto k) { later = std::move(k); });
      defer(p, Noted(trace, "b"));
      defer(outer, Noted(trace, "c"));
    });
    trace += "end ";
  });
  CHECK(trace.empty());
  SECTION("resumed late") {
    later();
    CHECK(trace == "b a end c ");
  }
  SECTION("dropped") {
    later = {};
    CHECK(trace == "~a ");
  }
}

TEST_CASE("defer in a function given to shift is a shift", "[control]") {
  std::string trace;
  Prompt<void> p;
  reset(p, [&] {
    defer(p, Noted(trace, "a"));
    shift<void>(p, [&](auto k) {
      k();
      defer(p, Noted(trace, "b"));  // the reset is around this function: its rest comes first
      trace += "rest ";
    });
    trace += "body ";
  });
  CHECK(trace == "body rest b a ");
}

TEST_CASE("defer without a reset", "[control]") {
  Prompt<void> p;
  const char* const expected =
      "shift: no reset of this prompt is active in this thread; call it inside reset(prompt, body), in the "
      "thread that "
      "runs the body";
  CHECK_THROWS_WITH(defer(p, [] {}), expected);
  reset(p, [] {});
  CHECK_THROWS_WITH(defer(p, [] {}), expected);
  reset(p, [&] {
    std::thread([&] { CHECK_THROWS_WITH(defer(p, [] {}), expected); }).join();
    Barrier barrier;
    CHECK_THROWS_WITH(barrier.run([&] { defer(p, [] {}); }),
                      Catch::Contains("expected a reset of this prompt inside the barrier"));
    bool ran = false;
    barrier.run([&] {
      const Barrier::Opened during(barrier);
      defer(p, [&ran] { ran = true; });
    });
    CHECK(!ran);
  });
}

TEST_CASE("a million deferred functions need no stack", "[control]") {
  constexpr int many = control::kAddressSanitizer ? 200'000 : 1'000'000;
  Prompt<void> p;
  std::int64_t sum = 0;
  const char *lowest = nullptr, *highest = nullptr;
  reset(p, [&] {
    for (int i = 0; i < many; ++i)
      defer(p, [&, i] {
        const char here = 0;
        if (sum == 0 || &here < lowest) lowest = &here;
        if (sum == 0 || &here > highest) highest = &here;
        sum += i + 1;
      });
  });
  CHECK(sum == std::int64_t{many} * (many + 1) / 2);
  CHECK(highest - lowest < 1024);
}
