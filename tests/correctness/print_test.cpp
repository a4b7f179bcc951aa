// print and print_adjoint: the same text from eager evaluation and from every target, in order, under
// derivatives.
#include "lantern/ir/print.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/emulate.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"
#include "written.hpp"

using namespace lantern;
using namespace lantern::core;
using Catch::Matchers::Contains;
using lantern::test::written;

namespace {

/// The same text by run and from every target, with and without passes.
template <class F, class... A>
void check_prints(F f, const std::string& expected, const A&... arguments) {
  CHECK(written([&] { eager(f)(arguments...); }) == expected);
  for (const Target target : {Target::c, Target::cpp})
    for (const int opt : {0, 1, 3}) {
      CAPTURE(static_cast<int>(target), opt);
      const auto compiled = compile(f, {.target = target, .opt = opt});
      CHECK(written([&] { compiled(arguments...); }) == expected);
    }
}

Rep<double> halving(Rep<double> x, Rep<std::int64_t> n) {
  const Rep<double> last = FOR(0, n, x, [](Rep<std::int64_t> i, Rep<double> s) {
    print(i, "i");
    print(s, "s");
    return print_adjoint(s * s, "adjoint of s * s") * 0.5;
  });
  return print(last, "last");
}

Rep<double> chosen(Rep<double> x) {
  return IF(
      print(x > 1.0, "large"), [&] { return print(x, "then") * x; },
      [&] { return print_adjoint(x, "adjoint") + 1.0; });
}

const auto countdown =
    FUN<double(double, int64_t)>("countdown", [](auto self, Rep<double> x, Rep<int64_t> n) {
      print(n, "n");
      return IF(
          n == 0, [&] { return x; }, [&] { return print_adjoint(x * self(x, n - 1), "adjoint"); });
    });

Rep<double> straight(Rep<double> x) {
  const Rep<double> y = print(x * x, "y");
  return print_adjoint(y * x, "adjoint of the result");
}

}  // namespace

TEST_CASE("numbers of every kind are printed when their value is known") {
  const auto f = [](Rep<double> x, Rep<float> y, Rep<std::int32_t> n, Rep<std::int64_t> m, Rep<bool> b) {
    print(x, "x");
    print(y, "y");
    print(n, "n");
    print(m, "m");
    print(b, "b");
    print(!b, "not b");
    print(x / 0.0, "infinity");
    print(log(-x), "no number");
    return print(x / 3.0, "third");
  };
  check_prints(f,
               "x = 0.1\ny = 0.1\nn = -7\nm = 9223372036854775807\nb = true\nnot b = false\ninfinity = inf\n"
               "no number = nan\nthird = 0.0333333333333333\n",
               0.1, 0.1F, -7, std::numeric_limits<std::int64_t>::max(), true);
}

TEST_CASE("a label is printed as it is, whatever it holds") {
  check_prints([](Rep<double> x) { return print(x, "100% \"sure\" \\ %s"); }, "100% \"sure\" \\ %s = 2\n",
               2.0);
}

TEST_CASE("a literal is printed when the program runs, not while it is staged") {
  const auto f = [](Rep<double> x) {
    print(Rep<double>(2.5), "literal");
    return x;
  };
  CHECK(written([&] { compile(f, {.target = Target::c}); }).empty());
  check_prints(f, "literal = 2.5\n", 1.0);
}

TEST_CASE("arrays and tensors are printed in brackets, long dimensions shortened") {
  const auto f = [](Rep<Array<double>> a, Rep<Tensor<double, dyn, dyn>> t, Rep<Array<std::int64_t>> k) {
    print(a, "a");
    print(t, "t");
    print(k, "k");
    return sum(a);
  };
  const TensorValue<double> t({1, 2, 3, 4, 5, 6}, {2, 3});
  check_prints(f, "a = [1, 2.5]\nt = [[1, 2, 3], [4, 5, 6]]\nk = []\n", std::vector<double>{1, 2.5}, t,
               std::vector<std::int64_t>{});
  std::vector<double> longer(9);
  for (std::size_t i = 0; i < longer.size(); ++i) longer[i] = static_cast<double>(i);
  check_prints(f, "a = [0, 1, 2, ..., 6, 7, 8] (9)\nt = [[1, 2, 3], [4, 5, 6]]\nk = [4]\n", longer, t,
               std::vector<std::int64_t>{4});
}

TEST_CASE("in a loop the values are printed in every iteration") {
  check_prints(&halving, "i = 0\ns = 3\ni = 1\ns = 4.5\nlast = 10.125\n", 3.0, 2);
  check_prints(&halving, "last = 3\n", 3.0, 0);
}

TEST_CASE("a derivative prints values in its forward part and adjoints in its backward part") {
  check_prints(grad(&straight), "y = 4\nadjoint of the result = 1\n", 2.0);
  check_prints(
      grad(&halving),
      "i = 0\ns = 3\ni = 1\ns = 4.5\nlast = 10.125\nadjoint of s * s = 0.5\nadjoint of s * s = 2.25\n", 3.0,
      2);
}

TEST_CASE("a loop whose iterations are differentiated one by one keeps the order of what it prints") {
  const auto total = [](Rep<Array<double>> a) {
    return FOR(0, a.size(), Rep<double>(0.0), [&](Rep<std::int64_t> i, Rep<double> s) {
      return s + print_adjoint(print(a[i], "element") * 2.0, "adjoint");
    });
  };
  check_prints(value_and_grad(total),
               "element = 1\nelement = 2\nelement = 3\nadjoint = 1\nadjoint = 1\nadjoint = 1\n",
               std::vector<double>{1, 2, 3});
}

TEST_CASE("prints in a long loop, which is cut into segments that run again, appear once") {
  const auto f = [](Rep<double> x, Rep<std::int64_t> n) {
    return FOR(0, n, x, [&](Rep<std::int64_t> i, Rep<double> s) {
      IF(
          i % 300000 == 7, [&] { print(i, "i"); }, [] {});
      return sin(s) * x;
    });
  };
  const auto compiled = compile(grad(f), {.target = Target::cpp});
  CHECK(written([&] { compiled(1.5, 900000); }) == "i = 7\ni = 300007\ni = 600007\n");
}

TEST_CASE("prints in a loop under a memory bound appear once") {
  const auto f = [](Rep<double> x, Rep<std::int64_t> n) {
    return FOR(0, n, x,
               [&](Rep<std::int64_t> i, Rep<double> s) {
                 print(i, "i");
                 return sin(s) * x;
               },
               {.checkpoints = 2});
  };
  check_prints(grad(f), "i = 0\ni = 1\ni = 2\ni = 3\ni = 4\ni = 5\n", 1.5, 6);
}

TEST_CASE("in a branch only the side that runs prints, forward and backward") {
  check_prints(&chosen, "large = true\nthen = 2\n", 2.0);
  check_prints(&chosen, "large = false\n", 0.5);
  check_prints(grad(&chosen), "large = true\nthen = 2\n", 2.0);
  check_prints(grad(&chosen), "large = false\nadjoint = 1\n", 0.5);
}

TEST_CASE("a recursive function prints on its way in, and its adjoints on the way back") {
  check_prints(grad<0>(countdown), "n = 2\nn = 1\nn = 0\nadjoint = 1\nadjoint = 2\n", 2.0, 2);
}

TEST_CASE("a tree prints node by node") {
  const auto f = [](Rep<double> x, Rep<Tree<double>> t) {
    return TREE(x, t, [&](Rep<double> l, Rep<double> r, Rep<Tree<double>> node) {
      return print(l * r * print(node.value(), "node"), "product");
    });
  };
  const Tree<double> t(2.0, Tree<double>(3.0), Tree<double>());
  check_prints(grad(f), "node = 3\nproduct = 12\nnode = 2\nproduct = 48\n", 2.0, t);
}

TEST_CASE("forward mode prints values") { check_prints(jvp(&straight), "y = 4\n", 2.0, 1.0); }

TEST_CASE("in nested derivatives the value is printed once, and each reverse mode prints its adjoint") {
  const std::string text = written([] { eager(grad(grad(&straight)))(2.0); });
  CHECK(text == "y = 4\nadjoint of the result = 1\n");
  check_prints(hvp(&straight), text, 2.0, 1.0);
  for (const int opt : {0, 3}) {
    const auto twice = compile(grad(grad(&straight)), {.target = Target::c, .opt = opt});
    CHECK_THAT(written([&] { twice(2.0); }), Catch::Matchers::StartsWith(text));
  }
}

TEST_CASE("values under print are differentiated as without it") {
  const auto plain = [](Rep<double> x, Rep<std::int64_t> n) {
    return FOR(0, n, x, [](Rep<std::int64_t>, Rep<double> s) { return s * s * 0.5; });
  };
  double with = 0, without = 0;
  written([&] { with = compile(grad(&halving))(1.3, 4); });
  without = compile(grad(plain))(1.3, 4);
  CHECK(with == Approx(without).epsilon(1e-14));
}

TEST_CASE("a function without any use of its print's value still prints") {
  const auto f = [](Rep<double> x) {
    print(x * 2.0, "unused");
    return Rep<double>(1.0) + 0.0 * x;
  };
  check_prints(f, "unused = 6\n", 3.0);
}

TEST_CASE("print in the textual form of the graph is read back as it was") {
  const auto module = driver::stage("f", {ir::F64}, detail::program_of(&straight).run);
  module->entry->body->ops.front()->loc.part = ir::Part::backward;
  ir::verify(*module);
  const std::string text = ir::print(*module, {.locations = true, .names = true});
  CHECK_THAT(text, Contains("print %y, \"y\""));
  CHECK(ir::print(*ir::parse(text), {.locations = true, .names = true}) == text);
}

TEST_CASE("a GPU's threads print") {
  const auto f = [](Rep<double> x) { return print(x, "x") * 2.0; };
  const std::string text = compile(f, {.target = Target::c, .name = "twice"}).source("cuda");
  CHECK_THAT(text, Contains("lt_print_f64(\"x\", "));
  const auto code = codegen::compile_emulated(text);
  const auto map = reinterpret_cast<int (*)(const double*, double*, std::int64_t)>(code->symbol("twice_map"));
  const double in[] = {1.5};
  double out[] = {0};
  CHECK(written([&] { CHECK(map(in, out, 1) == 0); }) == "x = 1.5\n");
  CHECK(out[0] == 3.0);
}

TEST_CASE("print refuses what has no number") {
  const auto empty = [](Rep<double> x) {
    const Rep<double> none{};
    print(none, "none");
    return x;
  };
  CHECK_THROWS_WITH(eager(empty)(1.0), Contains("print_test.cpp:") && Contains("an empty Rep is used"));
  CHECK_THROWS_WITH(compile(empty), Contains("print_test.cpp:") && Contains("an empty Rep is used"));
  const auto tree = [](Rep<Tree<double>> t) {
    print(t, "t");
    return Rep<double>(1.0);
  };
  CHECK_THROWS_WITH(compile(tree), Contains("print: expected a number, an array or a tensor, got tree<f64>"));
}
