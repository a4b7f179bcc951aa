// Mistakes found while staging or running: the whole text is compared.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <thread>

#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

/// The message of the error that `work` raises, with this file's path shortened to its name.
template <class F>
std::string message_of(F&& work) {
  try {
    work();
  } catch (const Error& e) {
    std::string text = e.what();
    const std::string path = __FILE__;
    for (std::size_t at; (at = text.find(path)) != std::string::npos;)
      text.replace(at, path.size(), "errors_test.cpp");
    // Only the line is promised: where a column stands, it is left out.
    return std::regex_replace(text, std::regex(R"((errors_test\.cpp:\d+):\d+)"), "$1");
  }
  return "(no error)";
}

std::string at(unsigned line, const std::string& text) {
  return "errors_test.cpp:" + std::to_string(line) + ": error: " + text;
}

using Matrix = Rep<Tensor<double, dyn, dyn>>;
using Vector = Rep<Tensor<double, dyn>>;

template <class T>
using Vec3 = Tensor<T, 3>;

}  // namespace

TEST_CASE("shapes that do not fit name both sides and the user's line") {
  const unsigned line = __LINE__ + 2;
  auto f = [](Rep<Tensor<double, 4, 3>> a, Rep<Tensor<double, 4>> x) {
    return sum(matmul(a, x));
  };
  const std::string text = "matvec: expected shapes that fit \"ij,j->i\", got f64[4,3], f64[4]";
  std::string got = message_of([&] { compile(f); });
  CHECK(got.find(text) != std::string::npos);
  CHECK(got.find("errors_test.cpp:" + std::to_string(line)) == 0);
}

TEST_CASE("a dimension that is 1 only at run time: the error names expand, which repeats it") {
  const unsigned line = __LINE__ + 1;
  auto f = [](Matrix a, Matrix b) { return a + b; };
  const TensorValue<double> a({3, 1}, 1.0), b({3, 4}, 2.0), c({3, 2}, 1.0);
  for (const Target target : {Target::c, Target::cpp}) {
    const auto compiled = compile(f, {.target = target});
    const std::string got = message_of([&] { compiled(a, b); });
    INFO(got);
    CHECK(got.find("add: shapes [3, 1] and [3, 4] do not fit; what is 1 only as the program runs is repeated "
                   "by expand") == 0);
    CHECK(got.find("errors_test.cpp:" + std::to_string(line)) != std::string::npos);
    CHECK(message_of([&] { compiled(c, b); }).find("[3, 4] do not fit (") != std::string::npos);
  }
}

TEST_CASE("a tensor of a host: the shape says how many elements there are") {
  // A list of whole numbers is the elements, where a shape follows in braces; one number after a shape is
  // repeated.
  CHECK(TensorValue<std::int64_t>({6, 3}, {2}).data == std::vector<std::int64_t>{6, 3});
  CHECK(TensorValue<std::int64_t>({6, 3}, {2}).shape == std::vector<std::int64_t>{2});
  CHECK(TensorValue<std::int64_t>(std::vector<std::int64_t>{6, 3}, {1, 2}).data.size() == 2);
  CHECK(TensorValue<double>({6, 3}, {2}).data == std::vector<double>{6, 3});
  CHECK(TensorValue<std::int32_t>({2}, 7).data == std::vector<std::int32_t>{7, 7});
  CHECK(TensorValue<float>({2, 0}).data.empty());
  CHECK(message_of([] {
          TensorValue<double>({1, 2, 3}, {2, 2});
        }) ==
        "TensorValue: expected 4 elements for the shape [2, 2], got 3; TensorValue(shape, value) repeats one "
        "value");
  CHECK(message_of([] {
          TensorValue<double>({-1, 2}, 0.0);
        }) == "TensorValue: expected sizes of 0 or more that memory can hold, got [-1, 2]");
}

TEST_CASE("shapes known only at run time are checked at run time") {
  auto f = compile([](Matrix a, Vector x) { return sum(matmul(a, x)); }, {.target = Target::c});
  const TensorValue<double> a({4, 3}, 1.0), x({4}, 1.0), y({3}, 1.0);
  CHECK(f(a, y) == 12.0);
  const std::string got = message_of([&] { f(a, x); });
  CHECK(got.find("matvec") != std::string::npos);
  CHECK(got.find("[4, 3]") != std::string::npos);
  CHECK(got.find("[4]") != std::string::npos);
  CHECK(got.find("errors_test.cpp") != std::string::npos);
}

TEST_CASE("an argument of the wrong shape") {
  auto f = compile([](Rep<Tensor<double, 3>> x) { return sum(x); }, {.target = Target::c});
  CHECK(message_of([&] { f(TensorValue<double>({4}, 1.0)); }) ==
        "argument 1: expected a tensor f64[3], got f64[4]");
}

TEST_CASE("an index out of range") {
  auto f = [](Rep<Array<double>> a, Rep<int64_t> i) { return a[i]; };
  const std::vector<double> a{1, 2, 3};
  for (const Target target : {Target::c, Target::cpp}) {
    auto compiled = compile(f, {.target = target});
    CHECK(compiled(a, 2) == 3.0);
    CHECK(message_of([&] { compiled(a, 3); }).find("index 3 is outside 0..2") != std::string::npos);
    CHECK(message_of([&] { compiled(a, -1); }).find("index -1 is outside 0..2") != std::string::npos);
  }
  CHECK(message_of([&] { eager(f)(a, 3); }).find("index 3 is outside 0..2") != std::string::npos);
}

TEST_CASE("an index out of range in a tensor names the user's line") {
  auto f = [](Vector v) { return v(7); };
  const unsigned line = __LINE__ - 1;
  CHECK(message_of([&] { eager(f)(TensorValue<double>({3}, 1.0)); }) == at(line, "index 7 is outside 0..2"));
}

TEST_CASE("integer division by zero") {
  auto f = [](Rep<int64_t> n) { return 6 / n; };
  CHECK(message_of([&] { eager(f)(0); }) == at(__LINE__ - 1, "integer division by zero"));
  auto compiled = compile(f, {.target = Target::c});
  CHECK(compiled(2) == 3);
  CHECK(message_of([&] { compiled(0); }).find("division by zero") != std::string::npos);
}

TEST_CASE("a division of literals by zero happens where the program comes there") {
  using N = Rep<int64_t>;
  auto f = [](N n) {
    return IF(n > 0, [&] { return n; }, [&] { return n + N(3) / N(0) + N(3) % N(0); });
  };
  auto compiled = compile(f, {.target = Target::c}), plain = compile(f, {.target = Target::c, .opt = 0});
  CHECK(eager(f)(2) == 2);
  CHECK(compiled(2) == 2);
  CHECK(plain(2) == 2);
  CHECK(message_of([&] { eager(f)(-1); }) == at(__LINE__ - 6, "integer division by zero"));
  CHECK(message_of([&] { compiled(-1); }).find("division by zero (errors_test.cpp:") != std::string::npos);
  CHECK(message_of([&] { plain(-1); }).find("division by zero (errors_test.cpp:") != std::string::npos);
}

TEST_CASE("grad of a function without a scalar result") {
  auto f = [](Rep<Array<double>> a) { return a * 2.0; };
  const std::string text =
      "grad: expected a function with one floating-point scalar as its result, got (f64[?]); use vjp, jvp or jacobian";
  CHECK(message_of([&] { compile(grad(f)); }) == at(__LINE__, text));
}

TEST_CASE("a value made in a branch is used outside") {
  auto f = [](Rep<double> x) {
    std::optional<Rep<double>> leaked;
    IF(x > 0.0, [&] { leaked.emplace(x * 2.0); });
    return *leaked + 1.0;
  };
  const unsigned line = __LINE__ - 3;
  CHECK(message_of([&] { compile(f); }) ==
        at(line, "a value made inside a branch, loop or function body is used outside it; make the variable outside "
                 "and assign it there, or return its value from the construct"));
}

TEST_CASE("a staged value is kept beyond its function") {
  std::optional<Rep<double>> kept;
  compile([&](Rep<double> x) { return kept.emplace(x * 2.0); }, {.target = Target::c});
  CHECK(message_of([&] { static_cast<void>(*kept + 1.0); }) == at(__LINE__, "a staged value is used while nothing is being staged"));
  auto g = [&](Rep<double> x) { return x + *kept; };
  const unsigned line = __LINE__ - 1;
  CHECK(message_of([&] { compile(g); }) ==
        at(line, "a staged value is used after the function it belongs to has ended"));
}

TEST_CASE("a value of a derivative is kept beyond it") {
  Rep<double> kept;
  grad([&](Rep<double> x) { return kept = x * x; })(Rep<double>(3.0));
  const unsigned line = __LINE__ + 1;
  const std::string got = message_of([&] { static_cast<void>(kept * kept); });
  CHECK(got ==
        at(line, "a value of a derivative (reverse mode) is used after that derivative was computed; return "
                         "plain values from the function"));
}

TEST_CASE("an empty Rep") {
  const unsigned line = __LINE__ + 1;
  const std::string got = message_of([] { compile([](Rep<double> x) { return x + Rep<double>(); }); });
  CHECK(got == at(line, "an empty Rep is used: give it a value first"));
}

TEST_CASE("an empty Rep in a loop or branch where nothing can have given it a value") {
  const std::string empty = "an empty Rep is used: give s a value first";
  unsigned line = __LINE__ + 3;
  const auto in_loop = [](Rep<double> x) {
    Rep<double> s;
    FOR(0, 3, [&](Rep<int64_t>) { s += x; });
    return s;
  };
  CHECK(message_of([&] { compile(in_loop); }) == at(line, empty));
  line = __LINE__ + 3;
  const auto in_branch = [](Rep<double> x) {
    Rep<double> s;
    IF(x > 0.0, [&] { s = s + x; });
    return s;
  };
  CHECK(message_of([&] { compile(in_branch); }) == at(line, empty));
  line = __LINE__ + 4;
  const auto in_nest = [](Rep<double> x) {
    Rep<double> s;
    FOR(0, 2, [&](Rep<int64_t>) {
      FOR(0, 2, [&](Rep<int64_t>) { s += x; });
    });
    return s;
  };
  CHECK(message_of([&] { compile(in_nest); }) == at(line, empty));
}

TEST_CASE("an empty Rep is named where one variable of the line alone has no value") {
  unsigned line = __LINE__ + 4;
  const auto one_of_three = [](Rep<double> x) {
    Rep<double> first, second, third = x;
    first = x;
    return first + second * third;
  };
  CHECK(message_of([&] { compile(one_of_three); }) == at(line, "an empty Rep is used: give second a value first"));
  line = __LINE__ + 3;
  const auto one_of_two = [](Rep<double> x) {
    Rep<double> left, right;
    return x + left * right;
  };
  CHECK(message_of([&] { compile(one_of_two); }) == at(line, "an empty Rep is used: give it a value first"));
  line = __LINE__ + 1;
  const auto one_line = [](Rep<double> x) { Rep<double> total, twice; twice = x + x; total += twice; return total; };
  CHECK(message_of([&] { compile(one_line); }) == at(line, "an empty Rep is used: give total a value first"));
}

TEST_CASE("a member without a value on either side of a branch has none after it") {
  struct Pair {
    Rep<double> used, unused;
  };
  const auto one_member = [](Rep<double> x) {
    const auto side = [](const Rep<double>& value) {
      Pair p;
      p.used = value;
      return p;
    };
    return IF(x > 0.0, [&] { return side(x * x); }, [&] { return side(-x); }).used * x;
  };
  for (const double x : {3.0, -2.0}) {
    CHECK(compile(one_member)(x) == eager(one_member)(x));
    CHECK(compile(grad(one_member))(x) == eager(grad(one_member))(x));
  }
  const unsigned line = __LINE__ + 3;
  const auto other_member = [](Rep<double> x) {
    const Pair p = IF(x > 0.0, [&] { return Pair(); }, [&] { return Pair(); });
    return p.unused + x;
  };
  CHECK(message_of([&] { compile(other_member); }) == at(line, "an empty Rep is used: give unused a value first"));
}

TEST_CASE("a Rep without a value is 0 where a branch or an earlier iteration may have assigned it") {
  const auto last = [](Rep<double> x) {
    Rep<double> kept, unset, y = 0.0;
    IF(x > 5.0, [&] { unset = x; });
    FOR(0, 3, [&](Rep<int64_t> i) {
      IF(i > 0, [&] { y += kept; });
      kept = x * cast<double>(i + 1);
    });
    return y + unset;
  };
  for (const Target target : {Target::c, Target::cpp}) CHECK(compile(last, {.target = target})(2.0) == 6.0);
}

TEST_CASE("a Rep without a value that is copied, moved or swapped in a loop gets its value later") {
  using Real = Rep<double>;
  using Integer = Rep<int64_t>;
  struct Pair {
    Real a, b;
  };
  const auto swapped = [](Real x, Integer n) {
    Real a = x, b;
    FOR(Integer(0), n, [&](Integer i) {
      std::swap(a, b);
      IF(i == 0, [&] { a = x * 2.0; });
    });
    return a;
  };
  const auto copied = [](Real x, Integer n) {
    Real a = x, b;
    FOR(Integer(0), n, [&](Integer) {
      const Real t = b;
      b = a;
      a = t;
    });
    return a;
  };
  const auto history = [](Real x, Integer n) {
    std::array<Real, 3> h;
    FOR(Integer(0), n, [&](Integer i) {
      h[2] = std::move(h[1]);
      h[1] = h[0];
      h[0] = x * cast<double>(i + 1);
    });
    return h[0] + 10.0 * h[1] + 100.0 * h[2];
  };
  const auto members = [](Real x, Integer n) {
    Pair s;
    s.a = x;
    FOR(Integer(0), n, [&](Integer) {
      Pair t = s;
      t.a = t.a * x;
      s = t;
    });
    return s.a;
  };
  for (const int opt : {0, 2}) {
    const CompileOptions options{.target = Target::c, .opt = opt};
    const auto values = [&](auto f) {
      const auto c = compile(f, options);
      return std::vector<double>{c(0.5, 0), c(0.5, 1), c(0.5, 2), c(0.5, 3), c(0.5, 4)};
    };
    CHECK(values(swapped) == std::vector{0.5, 1.0, 0.5, 1.0, 0.5});
    CHECK(values(grad<0>(swapped)) == std::vector{1.0, 2.0, 1.0, 2.0, 1.0});
    CHECK(values(copied) == std::vector{0.5, 0.0, 0.5, 0.0, 0.5});
    CHECK(compile(history, options)(0.5, 4) == 2.0 + 15.0 + 100.0);
    CHECK(values(members) == std::vector{0.5, 0.25, 0.125, 0.0625, 0.03125});
  }
}

TEST_CASE("staging that does not end") {
  struct Recursive {
    static Rep<double> f(Rep<double> x, int n) { return n < 0 ? x : x * f(x - 1.0, n + 1); }
  };
  const unsigned line = __LINE__ - 2;
  CHECK(message_of([&] { compile([](Rep<double> x) { return Recursive::f(x, 0); }); }) ==
        at(line, "staging does not end: a C++ function that calls itself is staged anew for each call. Make it a FUN, or, "
                 "with lanternc, end it by an if over Reps"));
  const auto endless = [](Rep<double> x) {
    for (int i = 0; i < 10; i += 0) x = x * 0.5;
    return x;
  };
  CHECK(message_of([&] { compile(endless); }) ==
        at(line + 7, "staging does not end: it has made 5000000 operations. A C++ loop over plain numbers is staged once for each "
                     "iteration; check that it ends, and use FOR or WHILE, or a loop over Reps with lanternc, where there are many"));
}

TEST_CASE("the order of a derivative must be known while staging") {
  Fun<double(double, int64_t)> f("f");
  f.define([](auto self, Rep<double> x, Rep<int64_t> n) {
    return IF(n == 0, [&] { return x * x; },
              [&] { return grad([&](Rep<double> y) { return self(y, n - 1); })(x); });
  });
  const std::string got = message_of([&] { compile([&](Rep<double> x) { return f(x, 2); }); });
  CHECK(got.find("the derivative of 'f' needs 'f_2', which is still being defined: the order of the derivative would "
                 "depend on run time") != std::string::npos);
}

TEST_CASE("recursion while staging that does not end") {
  struct Endless {
    static Rep<double> f(Rep<double> x) { return grad([](Rep<double> y) { return f(y); })(x); }
  };
  const std::string got = message_of([] { compile(&Endless::f); });
  CHECK(got.find("staging 'f' does not end: 256 functions are nested inside each other") != std::string::npos);
}

TEST_CASE("a function without a definition") {
  Fun<double(double)> f("odd");
  CHECK(message_of([&] { compile(f); }) == "the function 'odd' has no definition: call define() first");
}

TEST_CASE("a variable is assigned in another function") {
  auto f = [](Rep<double> x) {
    Var<double> v = x;
    auto g = FUN<double(double)>("g", [&](Rep<double> y) { return v = y + v; });
    return g(x);
  };
  CHECK(message_of([&] { compile(f); }).find("a variable that was made outside of the function being staged is assigned "
                                             "in it. A function gives values: return the new one, or make the variable "
                                             "inside") != std::string::npos);
}

TEST_CASE("options out of range") {
  auto f = [](Rep<double> x) { return x; };
  CHECK(message_of([&] { compile(f, {.opt = 7}); }) == "compile: expected an optimisation level from 0 to 3, got 7");
  const std::string got = message_of([&] { compile(f, {.disabled_passes = {"unroll"}}); });
  CHECK(got.find("unroll") != std::string::npos);
  CHECK(got.find("unwind") != std::string::npos);
}

TEST_CASE("a missing CUDA tool chain") {
  // Only the given path is searched, so that the test does not depend on the machine.
  setenv("LANTERN_CUDA_PATH", "/nonexistent", 1);
  auto f = [](Rep<double> x) { return x * x; };
  const std::string got = message_of([&] { compile(f, {.target = Target::cuda}); });
  unsetenv("LANTERN_CUDA_PATH");
  CHECK(got == "the CUDA run-time compiler (libnvrtc) was not found; install the CUDA toolkit and set LANTERN_CUDA_PATH to "
               "its folder, for instance /usr/local/cuda");
}

TEST_CASE("results into the caller's memory need room") {
  auto f = compile([](Rep<Array<double>> a) { return a * 2.0; }, {.target = Target::c});
  const std::vector<double> a{1, 2, 3};
  std::vector<double> out(2);
  CHECK(message_of([&] { f.into(std::span<double>(out), a); }) ==
        "into: expected room for 3 elements, got 2");
}

namespace {

auto endless = FUN<double(double)>("endless", [](auto self, Rep<double> x) { return self(x + 1.0) + 1.0; });
/// To be differentiated, keeping what each call has of its own.
auto endless_product =
    FUN<double(double)>("endless_product", [](auto self, Rep<double> x) { return self(x * x) * sin(x); });

}  // namespace

// Run by the next one, in a process that may have little memory: stacks are as small there.
TEST_CASE("recursions without end", "[.endless]") {
  const auto refused = [](const std::string& name, const auto& work) {
    const std::string text = message_of(work);
    INFO(text);
    CHECK(text.find("the recursion of '" + name) == 0);
    CHECK(text.find("does not end, or needs more stack than it may have") != std::string::npos);
  };
  refused("endless'", [] { eager(endless)(1.0); });
  for (const int opt : {0, 2})
    refused("endless", [&] { compile(endless, {.target = Target::c, .opt = opt})(1.0); });
  refused("endless_product", [] { compile(grad(endless_product), {.target = Target::c})(1.0); });
  // And the thread goes on.
  auto down = FUN<double(double, int64_t)>("down", [](auto self, Rep<double> x, Rep<int64_t> n) {
    return IF(
        n == 0, [&] { return x; }, [&] { return self(x * 1.001, n - 1); });
  });
  CHECK(eager(down)(1.0, 1000) == Approx(std::pow(1.001, 1000)));
  CHECK(compile(down, {.target = Target::c})(1.0, 1000) == Approx(std::pow(1.001, 1000)));
}

TEST_CASE("a recursion without end is an error that names the function") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // they need more address space than is given here
#endif
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  CHECK(std::system(("ulimit -v 2000000; " + self + " '[.endless]' > /dev/null").c_str()) == 0);
}
