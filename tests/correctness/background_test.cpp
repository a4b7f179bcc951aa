// The second tier: whose numbers calls give, how its failures show, and processes that are forked, or cannot
// make threads.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "../occurrences.hpp"
#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

namespace fs = std::filesystem;
using D = Rep<double>;
using I = Rep<std::int64_t>;
using Vec = Rep<Array<double>>;

D halved(D x) {
  return WHILE(
      x, [](D t) { return t > 1.0; }, [](D t) { return sin(t) * 0.5 * t; });
}
D energy(Vec a) {
  return FOR(0, a.size(), D(0.0), [&](I i, D s) { return s + exp(a[i]) * a[i]; });
}

/// The status of a child process that does this; what it writes to standard error goes to `text`.
int in_child(const std::function<void()>& work, std::string* text = nullptr) {
  const fs::path file = fs::temp_directory_path() / ("background_test." + std::to_string(getpid()));
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(60);
    if (text) dup2(open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), 2);
    work();
    _exit(9);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (text) {
    std::stringstream read;
    read << std::ifstream(file).rdbuf();
    *text = read.str();
    fs::remove(file);
  }
  return status;
}

using lantern::test::count;

}  // namespace

TEST_CASE("a process that is forked while Clang works ends", "[background]") {
  for (const bool by_exit : {true, false}) {
    INFO((by_exit ? "by exit" : "after the destructor"));
    auto f = std::make_unique<decltype(compile(grad(halved)))>(compile(grad(halved)));
    CHECK(in_child([&] {
            const bool right = (*f)(0.5) == 1.0;
            f->wait();  // there is nothing to wait for
            const bool new_one = compile(grad(halved), {.target = Target::cpp})(0.5) == 1.0;
            const auto tiered = compile(grad(halved));
            tiered.wait();
            const bool all = right && new_one && tiered(0.5) == 1.0;
            if (by_exit) std::exit(!all);
            f.reset();
            _exit(!all);
          }) == 0);
    CHECK((*f)(0.5) == 1.0);
  }
}

TEST_CASE("where no thread can be made, Clang's code is an Error, and the first tier answers",
          "[background]") {
  const auto without_threads = [] {
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_NPROC, &none) != 0 || (getuid() == 0 && setuid(65534) != 0)) _exit(2);
  };
  const std::string reason =
      "expected to be able to make a thread for Clang, got: Resource temporarily unavailable";
  CHECK(in_child([&] {
          without_threads();
          try {
            compile(halved, {.target = Target::cpp});
          } catch (const Error& e) {
            _exit(std::string(e.what()).find(reason) == std::string::npos);
          }
        }) == 0);
  std::string text;
  CHECK(in_child(
            [&] {
              without_threads();
              const auto f = compile(halved, {.name = "halved"});
              if (f(0.5) != 0.5) _exit(3);
              try {
                f.wait();
              } catch (const Error& e) {
                _exit(std::string(e.what()).find(reason) == std::string::npos);
              }
            },
            &text) == 0);
  INFO(text);
  CHECK(count(text, "lantern: 'halved' goes on without optimised code: compile: " + reason) == 1);
}

TEST_CASE("a failure of the second tier is told once, and raised by wait", "[background]") {
  const fs::path open_to_all =
      fs::temp_directory_path() / ("background_test_cache." + std::to_string(getpid()));
  fs::create_directory(open_to_all);
  REQUIRE(chmod(open_to_all.c_str(), 0777) == 0);
  const std::string reason = "compile: expected a cache directory that only its user can write to, got ";
  std::string text;
  CHECK(in_child(
            [&] {
              const auto f = compile(halved, {.name = "halved", .cache = open_to_all.string()});
              for (int times = 0; times < 2; ++times) {
                try {
                  f.wait();
                  _exit(3);
                } catch (const Error& e) {
                  if (!std::string(e.what()).starts_with(reason)) _exit(4);
                }
                if (f(0.5) != 0.5) _exit(5);
              }
              if (f.source("cpp").empty()) _exit(6);
              _exit(0);
            },
            &text) == 0);
  CHECK(count(text, "lantern: 'halved' goes on without optimised code: " + reason) == 1);
  fs::remove(open_to_all);
}

TEST_CASE("Target::c and Target::cpp are the numbers of the two tiers", "[background]") {
  std::vector<double> a;
  for (int i = 0; i < 1000; ++i) a.push_back(std::sin(i) * (i % 17));
  const auto first = compile(energy, {.target = Target::c}),
             second = compile(energy, {.target = Target::cpp});
  const auto both = compile(energy);
  CHECK((both(a) == first(a) || both(a) == second(a)));
  both.wait();
  CHECK(both(a) == second(a));
  // Told to, both compute the same.
  const CompileOptions exact{.strict_math = true, .reassociate = false};
  const auto pinned = compile(energy, exact);
  const double before = pinned(a);
  pinned.wait();
  CHECK(before == pinned(a));
  CHECK(before == eager(energy)(a));
}

TEST_CASE("Clang leaves off where its code is of no use any more", "[background]") {
  const lantern::codegen::SourcePart part{"double f(double x) { for (int i = 0; i < 100; ++i) x *= x + i; return x; }"};
  std::atomic<int> asked = 0;
  const auto compiled = [&](int most) {
    asked = 0;
    lantern::codegen::ClangOptions options;
    options.abandoned = [&, most] { return ++asked > most; };
    return lantern::codegen::compile_parts(std::span(&part, 1), lantern::codegen::Language::c, options);
  };
  CHECK(compiled(1'000'000).front().names == std::vector<std::string>{"f"});
  CHECK(asked > 10);  // between passes, too
  for (const int most : {0, 1, 5, asked - 1}) CHECK_THROWS_AS(compiled(most), lantern::codegen::Abandoned);

  // So does the second tier of a function that is destroyed.
  const auto steps = [](Vec a) {
    Vec b = a;
    for (int k = 1; k <= 12; ++k)
      b = FOR(0, a.size(), b, [&](I i, Vec c) { return c.set(i, sin(b[i] * static_cast<double>(k)) + b[(i * k) % a.size()]); });
    return FOR(0, a.size(), D(0.0), [&](I i, D s) { return s + b[i]; });
  };
  const auto processor_time = [&](bool waits) {
    auto f = std::make_unique<decltype(compile(steps))>(compile(steps));
    const std::clock_t start = std::clock();
    if (waits) f->wait();
    f.reset();
    return std::clock() - start;
  };
  const std::clock_t whole = processor_time(true);
  CHECK(processor_time(false) < whole / 2);
}
