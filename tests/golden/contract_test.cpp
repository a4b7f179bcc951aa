// contract: which products join which sums, and that nothing else decides it.
#include "lantern/compiler/passes/schedule/contract.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "around_pass.hpp"
#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using Vec = Rep<Array<double>>;

std::string contracted(const std::string& operations) {
  const auto module = ir::parse(
      "entry @f\n\nfun @f(%x: f64, %y: f64, %z: f64, %n: i64, %t: f64[?]) -> f64 {\n" + operations + "}\n");
  ir::verify(*module);
  passes::contract(*module);
  ir::verify(*module);
  const std::string text = ir::print(*module);
  const std::size_t from = text.find("{\n") + 2;
  return text.substr(from, text.rfind("}\n") - from);
}

}  // namespace

TEST_CASE("contract: a product that only a sum asks for", "[passes]") {
  CHECK(contracted("  %p = mul %x, %y : f64\n  %s = add %p, %z : f64\n  yield %s\n") ==
        "  %s = fma %x, %y, %z : f64\n  yield %s\n");
  CHECK(contracted("  %p = mul %x, %y : f64\n  %s = add %z, %p : f64\n  yield %s\n") ==
        "  %s = fma %x, %y, %z : f64\n  yield %s\n");
  CHECK(contracted("  %p = mul %x, %y : f64\n  %s = sub %p, %z : f64\n  yield %s\n") ==
        "  %1 = neg %z : f64\n  %s = fma %x, %y, %1 : f64\n  yield %s\n");
  CHECK(contracted("  %p = mul %x, %y : f64\n  %s = sub %z, %p : f64\n  yield %s\n") ==
        "  %1 = neg %x : f64\n  %s = fma %1, %y, %z : f64\n  yield %s\n");
  // Of two products the first.
  CHECK(
      contracted("  %p = mul %x, %y : f64\n  %q = mul %z, %z : f64\n  %s = add %p, %q : f64\n  yield %s\n") ==
      "  %q = mul %z, %z : f64\n  %s = fma %x, %y, %q : f64\n  yield %s\n");
}

TEST_CASE("contract: what stays", "[passes]") {
  for (const std::string operations : {
           // asked for twice
           "  %p = mul %x, %y : f64\n  %s = add %p, %z : f64\n  %r = add %s, %p : f64\n  yield %r\n",
           "  %p = mul %x, %y : f64\n  %s = add %p, %p : f64\n  yield %s\n",
           // integers, tensors
           "  %p = mul %n, %n : i64\n  %s = add %p, %n : i64\n  %r = cast[f64] %s : f64\n  yield %r\n",
           "  %p = mul %t, %t : f64[?]\n  %s = add %p, %t : f64[?]\n  %r = sum %s : f64\n  yield %r\n",
       })
    CHECK(contracted(operations) == operations);
}

TEST_CASE("contract: the names of variables do not matter", "[passes]") {
  const auto brief = sig<double(double, double, double, double)>([](D a, D b, D c, D d) {
    const D e = a * b + c * d, f = a * c - b * d, g = (a * d + b * c) * e - f * f;
    const D h = e * f + g * a - (b * e + c * f) * d;
    return h * g - e * a + f * b - g * c + h * d;
  });
  const auto elaborate = sig<double(double, double, double, double)>(
      [](D the_first_of_all_the_arguments, D the_second_of_all_the_arguments,
         D the_third_of_all_the_arguments, D the_fourth_of_all_the_arguments) {
        const D the_sum_of_the_products_of_neighbours =
                    the_first_of_all_the_arguments * the_second_of_all_the_arguments +
                    the_third_of_all_the_arguments * the_fourth_of_all_the_arguments,
                the_difference_of_the_other_products =
                    the_first_of_all_the_arguments * the_third_of_all_the_arguments -
                    the_second_of_all_the_arguments * the_fourth_of_all_the_arguments,
                everything_that_came_before_and_more =
                    (the_first_of_all_the_arguments * the_fourth_of_all_the_arguments +
                     the_second_of_all_the_arguments * the_third_of_all_the_arguments) *
                        the_sum_of_the_products_of_neighbours -
                    the_difference_of_the_other_products * the_difference_of_the_other_products;
        const D what_it_all_comes_to_in_the_end =
            the_sum_of_the_products_of_neighbours * the_difference_of_the_other_products +
            everything_that_came_before_and_more * the_first_of_all_the_arguments -
            (the_second_of_all_the_arguments * the_sum_of_the_products_of_neighbours +
             the_third_of_all_the_arguments * the_difference_of_the_other_products) *
                the_fourth_of_all_the_arguments;
        return what_it_all_comes_to_in_the_end * everything_that_came_before_and_more -
               the_sum_of_the_products_of_neighbours * the_first_of_all_the_arguments +
               the_difference_of_the_other_products * the_second_of_all_the_arguments -
               everything_that_came_before_and_more * the_third_of_all_the_arguments +
               what_it_all_comes_to_in_the_end * the_fourth_of_all_the_arguments;
      });
  std::mt19937 random(3);
  std::uniform_real_distribution<double> number(-1, 1);
  std::vector<std::vector<double>> points(200, std::vector<double>(4));
  for (auto& p : points)
    for (double& x : p) x = number(random);
  const auto same = [&](const auto& f, const auto& g) {
    std::size_t n = 0;
    for (const auto& p : points) n += f(p[0], p[1], p[2], p[3]) == g(p[0], p[1], p[2], p[3]);
    return n;
  };
  for (const int opt : {1, 3}) {
    const CompileOptions options{.target = Target::cpp, .opt = opt};
    CHECK(same(compile(brief, options), compile(elaborate, options)) == points.size());
    CHECK(same(compile(grad<2>(brief), options), compile(grad<2>(elaborate), options)) == points.size());
    // Without fused operations, the numbers of the first tier, and of eager evaluation.
    const auto separate =
        compile(brief, {.target = Target::cpp, .opt = opt, .disabled_passes = {"contract"}});
    CHECK(same(separate, compile(elaborate, {.target = Target::c, .opt = opt})) == points.size());
    CHECK(same(separate, eager(brief)) == points.size());
    CHECK(same(separate, compile(brief, {.target = Target::cpp, .opt = opt, .strict_math = true})) ==
          points.size());
    if (codegen::arithmetic_of().fused_multiply_add)
      CHECK(same(separate, compile(brief, options)) < points.size());
  }
}

TEST_CASE("contract: in lanes as in numbers", "[passes]") {
  const auto f = sig<Array<double>(Array<double>, double)>([](Vec a, D s) {
    return FOR(0, a.size(), fill(D(0.0), a.size()), [&](I i, Vec y) { return y.set(i, a[i] * s - s * s); });
  });
  const auto [before, after] = lantern::test::around_pass("contract", f);
  CHECK(before.find("fma") == std::string::npos);
  CHECK(after.find("= fma") != std::string::npos);
  std::vector<double> a;
  for (int i = 0; i < 37; ++i) a.push_back(std::sin(i));
  for (const bool strict : {false, true}) {
    const auto numbers = compile(f, {.target = Target::cpp, .opt = 1, .strict_math = strict})(a, 0.7);
    for (const int lanes : {2, 4, 8})
      CHECK(compile(f, {.target = Target::cpp, .strict_math = strict, .lanes = lanes})(a, 0.7) == numbers);
  }
}

TEST_CASE("contract: an fma of the program is one, strict or not, in lanes or not", "[passes]") {
  const auto f = sig<Array<double>(Array<double>)>([](Vec a) {
    return FOR(0, a.size(), fill(D(0.0), a.size()),
               [&](I i, Vec y) { return y.set(i, fma(a[i], a[i], -a[i])); });
  });
  std::vector<double> a, expected;
  for (int i = 0; i < 37; ++i) {
    a.push_back(1 + std::sin(i));
    expected.push_back(std::fma(a.back(), a.back(), -a.back()));
  }
  CHECK(eager(f)(a) == expected);
  for (const bool strict : {false, true}) {
    CHECK(compile(f, {.target = Target::c, .strict_math = strict})(a) == expected);
    for (const int lanes : {2, 4, 8})
      CHECK(compile(f, {.target = Target::cpp, .strict_math = strict, .lanes = lanes})(a) == expected);
  }
}
