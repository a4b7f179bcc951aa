// What a mode does not take: the whole message, with the place of the call and what to write instead. Modes
// that do not fit a derivative at all do not compile: tests/compile_fail.
#include <catch2/catch.hpp>

#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<std::int64_t>;
using M = Rep<Tensor<double, dyn, dyn>>;

/// The message of what `run` raises, from the file's name on, without the column.
template <class Run>
std::string error_of(const Run& run) {
  try {
    run();
  } catch (const Error& e) {
    const std::string message = e.what();
    const auto at = message.find("mode_errors_test.cpp:");
    if (at == std::string::npos) return "no place: " + message;
    const auto line = message.find(':', at) + 1, column = message.find(':', line);
    return message.substr(at, column - at) + message.substr(message.find(": error", column));
  }
  return "no error";
}
std::string at(int line, const std::string& message) {
  return "mode_errors_test.cpp:" + std::to_string(line) + ": error: " + message;
}
/// Whether `found` is the place and the message, notes apart.
void check(const std::string& found, const std::string& expected) {
  INFO(found);
  CHECK(found.substr(0, expected.size()) == expected);
}

D square(D x) { return x * x; }
std::tuple<D, D> pair(D x) { return {x, x * x}; }
constexpr int line_of_whole = __LINE__ + 1;
D whole(A a) { return sum(a * a); }

}  // namespace

TEST_CASE("mode::closures is eager", "[modes][errors]") {
  const std::string message =
      "grad<mode::closures>: expected to be run eagerly, got a program that is being staged; write "
      "eager(grad<mode::closures>(f)), or grad<mode::global_tape>(f), which treats a call of a staged "
      "function in the "
      "same way";
  check(error_of([] { compile(grad<mode::closures>(square)); }), at(__LINE__, message));
  check(error_of([] { compile(value_and_grad<mode::closures>(square)); }), at(__LINE__, message));
}

TEST_CASE("a gradient of several results, in every mode", "[modes][errors]") {
  const std::string message =
      "grad: expected a function with one floating-point scalar as its result, got (f64, f64); use vjp, jvp "
      "or jacobian";
  const auto both = [&](const auto& g, int line) {
    check(error_of([&] { eager(g)(2.0); }), at(line, message));
    check(error_of([&] { compile(g); }), at(line, message));
  };
  both(grad<mode::reverse>(pair), __LINE__);
  both(grad<mode::cps>(pair), __LINE__);
  both(grad<mode::global_tape>(pair), __LINE__);
  both(grad<mode::functional>(pair), __LINE__);
  both(grad<mode::continuation>(pair), __LINE__);
  both(grad<mode::taped>(pair), __LINE__);
  both(grad<mode::checkpointed>(pair), __LINE__);
  both(grad<mode::divide_and_conquer>(pair), __LINE__);
  both(value_and_grad<mode::taped>(pair), __LINE__);
  check(error_of([] { eager(grad<mode::closures>(pair))(2.0); }), at(__LINE__, message));
}

TEST_CASE("forward mode by a matrix takes a pass for each element", "[modes]") {
  const auto f = [](Rep<Tensor<double, dyn, dyn>> m, Rep<double> s) {
    return s * m(0, 1) * m(1, 0) + m(1, 1) * m(1, 1);
  };
  const TensorValue<double> m({1, 2, 3, 4}, {2, 2});
  const auto by_forward = grad<mode::forward>(f);
  const auto all = [&](const auto& run) {
    const auto [dm, ds] = run(by_forward)(m, 5.0);
    CHECK(dm.shape == std::vector<std::int64_t>{2, 2});
    CHECK(dm.data == std::vector<double>{0, 15, 10, 8});
    CHECK(ds == 6);
    const auto [y, slopes] = run(value_and_grad<mode::forward>(f))(m, 5.0);
    CHECK(y == 46);
    CHECK(std::get<0>(slopes).data == dm.data);
    CHECK(std::get<0>(run(by_forward)(TensorValue<double>({2, 3}, 1.0), 5.0)).shape ==
          std::vector<std::int64_t>{2, 3});
  };
  all([](const auto& g) { return eager(g); });
  all([](const auto& g) { return compile(g, {.target = Target::c, .opt = 0}); });
  all([](const auto& g) { return compile(g, {.target = Target::cpp}); });
}

TEST_CASE("Hessians in one reverse pass of operations on whole arrays", "[modes][errors]") {
  // The place is that of the operation.
  const std::string message =
      "hessian<mode::reverse>: expected operations on scalars and elements of the argument, got mul; use "
      "hessian(f)";
  CHECK_THROWS_WITH(eager(hessian<mode::reverse>(whole))(std::vector<double>{1, 2}),
                    Catch::Contains(message));
  check(error_of([] {
          eager(hessian<mode::reverse>(whole))(std::vector<double>{1, 2});
        }),
        at(line_of_whole, message));
  check(error_of([] { compile(hessian<mode::reverse>(whole)); }), at(line_of_whole, message));
  const auto several = [](A a) { return std::tuple(a[0], a[1]); };
  const std::string results =
      "grad: expected a function with one floating-point scalar as its result, got (f64, f64); use vjp, jvp "
      "or jacobian";
  const auto h = hessian<mode::reverse>(several);
  const int line = __LINE__ - 1;
  check(error_of([&] { eager(h)(std::vector<double>{1, 2}); }), at(line, results));
  check(error_of([&] { compile(h); }), at(line, results));
}

TEST_CASE("tangents and cotangents of other shapes", "[modes][errors]") {
  const std::vector<double> two{1, 2}, three{1, 2, 3};
  const auto square_each = [](A a) { return a * a; };
  check(error_of([&] { eager(jvp(whole))(two, three); }),
        at(__LINE__ - 1, "jvp: a tangent: expected the type of what it belongs to, f64[2], got f64[3]"));
  check(error_of([&] { eager(taylor<2>(whole))(two, three); }),
        at(__LINE__ - 1, "taylor: a tangent: expected the type of what it belongs to, f64[2], got f64[3]"));
  check(error_of([&] { eager(vjp(square_each))(two, three); }),
        at(__LINE__ - 1, "vjp: a cotangent: expected the type of what it belongs to, f64[2], got f64[3]"));
}
