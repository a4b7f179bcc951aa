// The snippets of the Lantern paper, sections 4.1 to 4.4: graph in continuation-passing style, emitted C++, numbers.
//
// Two differences from the figures, both on purpose: the exit adds its seed (`d += 1.0`), because a branch may pass
// a cell on that another path has added to (IF(c){x}{y} with x among the outputs); and a recursive function takes
// captured values and cells as parameters, because functions of a module are closed.
#include "golden.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

// 4.1
Rep<double> straight(Rep<double> in) {
  return grad(sig<double(double)>([](Rep<double> x) { return x * x; }))(in);
}
// 4.2
Rep<double> conditional(Rep<double> in) {
  return grad([](Rep<double> x) { return IF(x > 0.0, [&] { return -1.0 * x * x; }, [&] { return x * x; }); })(in);
}
// 4.3
Rep<double> loop(Rep<double> in) {
  return grad([](Rep<double> x) {
    return WHILE(x, [](Rep<double> t) { return t > 1.0; }, [](Rep<double> t) { return t * 0.5; });
  })(in);
}
// 4.4, a function
auto power = FUN<double(double, int64_t)>("power", [](auto self, Rep<double> x, Rep<int64_t> n) {
  return IF(n == 0, [&] { return Rep<double>(1.0); }, [&] { return x * self(x, n - 1); });
});
Rep<double> function(Rep<double> in) {
  return grad([](Rep<double> x) { return power(x, 3); })(in);
}
// 4.4, a tree
Rep<double> tree(Rep<Tree<double>> tree, Rep<double> in) {
  return grad([=](Rep<double> x) {
    return TREE(x, tree, [&](Rep<double> l, Rep<double> r, Rep<Tree<double>> t) { return l * r * t.value(); });
  })(in);
}

template <class F>
void goldens(const std::string& name, F f) {
  auto staged = compile(f, {.target = Target::c, .opt = 0, .name = "snippet"});
  test::check_golden("paper/" + name + ".cps.cpp", staged.source("cpp"));
  auto direct = compile(f, {.target = Target::c, .opt = 1, .name = "snippet"});
  test::check_golden("paper/" + name + ".direct.cpp", direct.source("cpp"));

  std::vector<ir::Type> types;
  using Params = typename detail::FunctionTraits<F>::Params;
  detail::types_of<Params>(types);
  const auto module = driver::stage("snippet", types, detail::program_of(f).run);
  ir::verify(*module);
  const std::string text = ir::print(*module);
  test::check_golden("paper/" + name + ".cps.ir", text);
  CHECK(ir::print(*ir::parse(text)) == text);
}

}  // namespace

TEST_CASE("4.1 straight-line code") {
  goldens("straight", &straight);
  for (int opt : {0, 3}) CHECK(compile(&straight, {.opt = opt})(3.0) == 6.0);
  CHECK(eager(&straight)(3.0) == 6.0);
}

TEST_CASE("4.2 conditionals") {
  goldens("conditional", &conditional);
  for (int opt : {0, 3}) {
    CHECK(compile(&conditional, {.opt = opt})(3.0) == -6.0);
    CHECK(compile(&conditional, {.opt = opt})(-3.0) == -6.0);
  }
  CHECK(eager(&conditional)(3.0) == -6.0);
}

TEST_CASE("4.3 loops") {
  goldens("loop", &loop);
  for (int opt : {0, 3}) {
    CHECK(compile(&loop, {.opt = opt})(5.0) == 0.125);
    CHECK(compile(&loop, {.opt = opt})(0.5) == 1.0);
  }
  CHECK(eager(&loop)(5.0) == 0.125);
}

TEST_CASE("4.4 functions and recursion") {
  goldens("function", &function);
  for (int opt : {0, 3}) CHECK(compile(&function, {.opt = opt})(2.0) == 12.0);
  CHECK(eager(&function)(2.0) == 12.0);
}

TEST_CASE("4.4 trees") {
  goldens("tree", &tree);
  // x appears at each of the four empty children: 2 * 3 * 5 * x^4.
  const Tree<double> t(2.0, Tree<double>(3.0), Tree<double>(5.0));
  for (int opt : {0, 3}) CHECK(compile(&tree, {.opt = opt})(t, 2.0) == 30.0 * 4 * 8);
  CHECK(eager(&tree)(t, 2.0) == 30.0 * 4 * 8);
}
