// What cannot be staged of variables is refused, with the place and what to write instead; what is staged
// next is as if nothing had been.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lantern/lantern.hpp"

using namespace lantern;
using Catch::Matchers::Contains;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;

/// The program is refused with the place and the words, and what is staged next is as if it had not been.
template <class F>
void refuse(int line, const std::string& words, F f) {
  std::string error = "no error";
  try {
    compile(sig<double(double)>(f), {.target = Target::c});
  } catch (const Error& e) {
    error = e.what();
  }
  CHECK_THAT(error, Contains("variables_refused_test.cpp:" + std::to_string(line) + ":") && Contains(words));
  const auto next = compile(sig<double(double)>([](D x) {
                              D y = 0.0;
                              FOR(0, 3, [&](const I&) {
                                IF(
                                    y < 2.0 * x, [&] { y += x; }, [&] { y *= 2.0; });
                              });
                              return y;
                            }),
                            {.target = Target::c, .opt = 0});
  CHECK(next(3.0) == 12.0);
}

constexpr const char* container =
    "a container of staged values may not grow, shrink or be reset here; give it its size outside";
constexpr const char* made_inside =
    "make the variable outside and assign it there, or return its value from the construct";

}  // namespace

TEST_CASE("containers that change their size under a staged condition", "[variables][errors]") {
  refuse(__LINE__ + 2, container, [](D x) {
    std::vector<D> v{x};
    IF(x > 1.0, [&] { v.push_back(x); });
    return v[0];
  });
  refuse(__LINE__ + 3, made_inside, [](D x) {
    std::vector<D> v{x};
    v.reserve(4);
    IF(x > 1.0, [&] { v.push_back(x); });
    return v[1] + x;
  });
  refuse(__LINE__ + 2, container, [](D x) {
    std::vector<D> v{x, x};
    FOR(0, 3, [&](const I&) { v.pop_back(); });
    return v[0];
  });
  refuse(__LINE__ + 2, container, [](D x) {
    std::optional<D> o = x;
    IF(
        x > 1.0, [&] { o.reset(); }, [&] { x *= 2.0; });
    return x;
  });
  refuse(__LINE__ + 2, container, [](D x) {
    std::vector<D> v{x, x}, w{x};
    IF(
        x > 1.0, [] {}, [&] { w = std::move(v); });
    return w[0];
  });
  refuse(__LINE__ + 4, container, [](D x) {
    std::map<int, D> m{{1, x}};
    FOR(0, 2, [&](const I&) {
      IF(x > 1.0, [&] {
        WHILE([&] { return x > 0.5; },
              [&] {
                x *= 0.5;
                m.erase(1);
              });
      });
    });
    return x;
  });
  refuse(__LINE__ + 2, container, [](D x) {
    auto p = std::make_unique<D>(x);
    IF(x > 1.0, [&] { p = std::make_unique<D>(2.0 * x); });
    return *p;
  });
}

TEST_CASE("what a construct made, used outside of it", "[variables][errors]") {
  refuse(__LINE__ + 3, made_inside, [](D x) {
    std::optional<D> o;
    IF(
        x > 1.0, [&] { o = x * x; }, [&] { x *= 2.0; });
    return *o + x;
  });
  refuse(__LINE__ + 2, made_inside, [](D x) {
    std::optional<D> o;
    FOR(0, 3, [&](const I& i) { o = x * cast<double>(i); });
    return sin(*o);
  });
  refuse(__LINE__ + 5, "after the function it belongs to has ended", [](D x) {
    static std::optional<D> o;
    o.reset();
    const auto f = FUN<double(double)>("f", [](D v) { return *(o = v * v); });
    const D y = f(x);
    return y + *o;
  });
}

TEST_CASE("variables of another function", "[variables][errors]") {
  refuse(__LINE__ + 3, "A function gives values: return the new one, or make the variable inside", [](D x) {
    D y = x;
    const auto f = FUN<double(double)>("f", [&](D v) {
      y += v;
      return v;
    });
    return f(x) + y;
  });
  refuse(__LINE__ + 3, "A function gives values: return the new one, or make the variable inside", [](D x) {
    D y = x;
    const auto f = FUN<double(double)>("f", [&](D v) {
      FOR(0, 3, [&](const I&) { IF(v > 1.0, [&] { y = v * x; }); });
      return v;
    });
    return f(x) + y;
  });
  D outside = 1.0;
  refuse(__LINE__ + 1, "A function gives values: return the new one, or make the variable inside", [&](D x) {
    outside = x * x;
    return outside;
  });
  CHECK(eager(sig<double(double)>([&](D x) { return x * outside; }))(3.0) == 3.0);
  CHECK(compile(sig<double(double)>([&](D x) { return x * outside; }), {.target = Target::c})(3.0) == 3.0);
}

TEST_CASE("a recursion of plain lambdas that staging does not end", "[variables][errors]") {
  refuse(__LINE__ + 3, "make it a FUN", [](D x) {
    std::function<D(D)> f;
    f = [&](D v) {
      return IF(
          v > 1.0, [&] { return f(0.5 * v); }, [&] { return v; });
    };
    return f(x);
  });
}
