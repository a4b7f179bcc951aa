// Exceptions that leave a user's lambdas: whoever catches them goes on as if the construct had not been
// there, eagerly, while staging, and in every mode.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "lantern/compiler/staging/staging.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using L = Rep<Tree<double>>;

struct Mine {
  int number;
};

/// A mistake that Lantern finds, in the middle of other operations.
D mistaken(const D& x) {
  const auto a = full<double>(x, {2}), b = full<double>(x * x, {3});
  return sum(a + b) * x;
}
[[noreturn]] D thrown(const D&) { throw Mine{7}; }

/// Each construct around something that raises. The operations before it belong to the construct.
using Breaker = std::function<D(const D&)>;
struct Construct {
  std::string name;
  std::function<D(const D&, const Breaker&)> around;
};
std::vector<Construct> constructs() {
  return {
      {"IF",
       [](const D& x, const Breaker& f) {
         return IF(
             x > 0.0, [&] { return f(x * 2.0); }, [&] { return x; });
       }},
      {"IF, second branch",
       [](const D& x, const Breaker& f) {
         return IF(
             x < 0.0, [&] { return x; }, [&] { return f(x * 2.0); });
       }},
      {"AND", [](const D& x,
                 const Breaker& f) { return select(AND(x > 0.0, [&] { return f(x) > 1.0; }), x, 2.0 * x); }},
      {"WHILE, condition",
       [](const D& x, const Breaker& f) {
         return WHILE(
             x, [&](const D& s) { return f(s) > 1.0; }, [](const D& s) { return s * 0.5; });
       }},
      {"WHILE, body",
       [](const D& x, const Breaker& f) {
         return WHILE(
             x, [](const D& s) { return s > 0.1; }, [&](const D& s) { return f(s * 0.5); });
       }},
      {"FOR",
       [](const D& x, const Breaker& f) {
         return FOR(0, 3, x, [&](const I&, const D& s) { return f(s + 1.0); });
       }},
      {"FOR over a Var",
       [](const D& x, const Breaker& f) {
         Var<double> v = x;
         FOR(0, 3, [&](const I&) { v = f(v + 1.0); });
         return v;
       }},
      {"FUN",
       [](const D& x, const Breaker& f) {
         const auto g = FUN<double(double, std::int64_t)>("broken", [&](auto self, D y, I n) {
           return IF(
               n == 0, [&] { return f(y); }, [&] { return self(y * 2.0, n - 1); });
         });
         return g(x, 2);
       }},
      {"TREE",
       [](const D& x, const Breaker& f) {
         if (context().staging) return f(x);  // trees are arguments
         const Tree<double> t(1.0, Tree<double>(2.0), Tree<double>());
         return TREE(x, L(t), [&](D l, D r, L node) { return f(l + r * node.value()); });
       }},
      {"grad",
       [](const D& x, const Breaker& f) {
         return grad(sig<double(double)>([&](D y) { return y * f(y * y); }))(x);
       }},
      {"grad of a loop",
       [](const D& x, const Breaker& f) {
         return grad(sig<double(double)>(
             [&](D y) { return FOR(0, 2, y, [&](const I&, const D& s) { return s * f(s); }); }))(x);
       }},
      {"grad of grad",
       [](const D& x, const Breaker& f) {
         const auto g = grad(sig<double(double)>([&](D y) { return y * f(y * y); }));
         return grad(sig<double(double)>([&](D y) { return y * g(y); }))(x);
       }},
      {"jvp",
       [](const D& x, const Breaker& f) {
         return std::get<1>(jvp(sig<double(double)>([&](D y) { return y * f(y); }))(x, D(1.0)));
       }},
      {"taylor",
       [](const D& x, const Breaker& f) {
         return taylor<2>(sig<double(double)>([&](D y) { return y * f(y); }))(x, D(1.0))[2];
       }},
      {"grad<taped>",
       [](const D& x, const Breaker& f) {
         return grad<mode::taped>(sig<double(double)>([&](D y) { return y * f(y); }))(x);
       }},
      {"checkpoint",
       [](const D& x, const Breaker& f) {
         return grad(sig<double(double)>([&](D y) { return checkpoint(sig<double(double)>(f))(y) * y; }))(x);
       }},
      {"custom_vjp",
       [](const D& x, const Breaker& f) {
         const auto rule = custom_vjp(
             sig<double(double)>([](D y) { return y * y; }), [](D y) { return std::tuple(y * y, y); },
             [&](D y, D ybar) { return f(y) * ybar; });
         return grad(sig<double(double)>([&](D y) { return rule(y) + y; }))(x);
       }},
      {"vmap",
       [](const D& x, const Breaker& f) {
         return sum(vmap(sig<double(double)>([&](D y) { return f(y); }))(fill(x, 3)));
       }},
  };
}

/// The program with the construct, its exception caught inside, where an outer Var is assigned first.
template <class F>
D caught_inside(const D& x, const F& construct, const Breaker& breaker) {
  Var<double> kept = x;
  D result = 0.0;
  try {
    const Breaker assigning = [&](const D& y) { return breaker(y); };
    result = construct(x, assigning);
    result = 1000.0 * result;
  } catch (const Error&) {
    result = 3.0 * kept;
  } catch (const Mine& m) {
    result = (m.number - 4.0) * kept;
  }
  // What comes after is staged into a graph without remains.
  const auto f = FUN<double(double)>("broken", [](D y) { return y * y; });
  return IF(
      x > 0.0, [&] { return result + f(x); }, [&] { return result; });
}

}  // namespace

TEST_CASE("what a construct's lambda throws leaves nothing of the construct", "[exceptions]") {
  for (const auto& [name, construct] : constructs())
    for (const bool mine : {false, true}) {
      INFO(name << (mine ? ", the user's own exception" : ", an Error"));
      const Breaker breaker = mine ? Breaker(thrown) : Breaker(mistaken);
      const auto program = sig<double(double)>([&](D x) { return caught_inside(x, construct, breaker); });
      CHECK(eager(program)(2.0) == 10.0);
      const auto compiled = compile(program, {.target = Target::c});
      CHECK(compiled(2.0) == 10.0);
      const std::string source = compiled.source("ir");
      CHECK(std::count(source.begin(), source.end(), '@') <= 4);  // the entry and one function
      CHECK(compile(grad(program), {.target = Target::c})(2.0) == Approx(7.0));
      CHECK(eager(grad(program))(2.0) == Approx(7.0));
      CHECK(compile(grad(program), {.target = Target::c, .opt = 0})(2.0) == Approx(7.0));
    }
}

TEST_CASE("an exception that leaves the program leaves the thread as it was", "[exceptions]") {
  for (const auto& [name, construct] : constructs()) {
    INFO(name);
    const auto failing = sig<double(double)>([&, make = construct](D x) { return make(x, thrown); });
    const auto wrong = sig<double(double)>([&, make = construct](D x) { return make(x, mistaken); });
    CHECK_THROWS_AS(compile(failing), Mine);
    CHECK_THROWS_AS(eager(failing)(2.0), Mine);
    CHECK_THROWS_AS(compile(wrong), Error);
    CHECK_THROWS_AS(eager(wrong)(2.0), Error);
    CHECK(context().staging == nullptr);
    const auto right = sig<double(double)>(
        [&, make = construct](D x) { return make(x, [](const D& y) { return 0.25 * y; }); });
    if (name != "TREE") CHECK(compile(right, {.target = Target::c})(2.0) == Approx(eager(right)(2.0)));
  }
}

namespace {

template <mode m, class F>
void leaves(const F& program) {
  CHECK_THROWS_AS(eager(grad<m>(program))(2.0), Mine);
  CHECK_THROWS_AS(compile(grad<m>(program)), Mine);
}
template <class F>
void leaves_every_mode(const F& program) {
  leaves<mode::reverse>(program);
  leaves<mode::forward>(program);
  leaves<mode::cps>(program);
  leaves<mode::global_tape>(program);
  leaves<mode::functional>(program);
  leaves<mode::continuation>(program);
  leaves<mode::taped>(program);
  leaves<mode::checkpointed>(program);
  leaves<mode::divide_and_conquer>(program);
  CHECK_THROWS_AS(eager(grad<mode::closures>(program))(2.0), Mine);
}

/// A hundred steps whose lambdas promise not to throw.
D promising_steps(D x) noexcept {
  return FOR(0, 100, x, [](const I& i, const D& s) noexcept {
    return IF(
        i % 2 == 0, [&]() noexcept { return sin(s) + s; }, [&]() noexcept { return s * 1.01; });
  });
}

const auto promising = sig<double(double)>(promising_steps);

template <mode m>
void derives(double expected) {
  CHECK(eager(grad<m>(promising))(0.3) == Approx(expected));
  CHECK(compile(grad<m>(promising), {.target = Target::c})(0.3) == Approx(expected));
}

}  // namespace

TEST_CASE("an exception leaves the derivative of every mode", "[exceptions][modes]") {
  int open = 0;  // frames of the program
  struct Frame {
    int& open;
    explicit Frame(int& o) : open(o) { ++open; }
    ~Frame() { --open; }
  };
  leaves_every_mode(sig<double(double)>([&](D x) {
    const Frame frame(open);
    return FOR(0, 5, x, [&](const I&, const D& s) {
      const Frame inner(open);
      return IF(
          s > 0.0, [&] { return thrown(s * s); }, [&] { return s; });
    });
  }));
  CHECK(open == 0);
}

TEST_CASE("lambdas that are noexcept, in every mode", "[exceptions][modes]") {
  const double expected = eager(grad<mode::forward>(promising))(0.3);
  derives<mode::reverse>(expected);
  derives<mode::cps>(expected);
  derives<mode::global_tape>(expected);
  derives<mode::functional>(expected);
  derives<mode::continuation>(expected);
  derives<mode::taped>(expected);
  derives<mode::checkpointed>(expected);
  derives<mode::divide_and_conquer>(expected);
  CHECK(eager(grad<mode::closures>(promising))(0.3) == Approx(expected));
}

TEST_CASE("a program that catches everything, by divide and conquer", "[exceptions][modes]") {
  const auto program = sig<double(double)>([](D x) {
    try {
      for (int i = 0; i < 300; ++i) x = sin(x) + 0.1 * x;
    } catch (...) {
      x = 0.0;
    }
    return x * x;
  });
  CHECK(eager(grad<mode::divide_and_conquer>(program))(0.3) == Approx(eager(grad(program))(0.3)));
}
