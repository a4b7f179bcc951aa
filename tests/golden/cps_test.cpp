// Continuation-passing style of programs as they stand, and its inverse.
#include "lantern/compiler/passes/direct/cps.hpp"

#include "../correctness/random_variables.hpp"
#include "golden.hpp"
#include "interpreter.hpp"
#include "lantern/compiler/driver/compile.hpp"
#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using core::Datums;

template <class F>
std::unique_ptr<ir::Module> staged(F f) {
  return core::driver::stage("program", {ir::F64, ir::F64},
                             [&](const Datums& in) { return Datums{f(D(in[0]), D(in[1])).datum()}; });
}

D constructs(D x, D y) {
  const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, D v, Rep<std::int64_t> n) -> D {
    return IF(
        n == 0, [] { return D(1.0); }, [&] { return v * self(v, n - 1); });
  });
  D sum = y;
  FOR(0, 3, [&](Rep<std::int64_t> i) {
    IF(
        sum > x, [&] { sum = sin(sum); }, [&] { sum += power(x, i); });
  });
  return sum * x;
}

std::vector<double> run(const ir::Module& module) {
  using ir::test::Interpreter;
  return Interpreter(200000).run(module, {Interpreter::number(0.7), Interpreter::number(-0.4)});
}

}  // namespace

TEST_CASE("branches, loops and recursion in continuation-passing style") {
  const auto module = staged(constructs);
  const std::vector<double> expected = run(*module);
  passes::to_cps(*module);
  ir::verify(*module);
  test::check_golden("cps/constructs.ir", ir::print(*module));
  CHECK(run(*module) == expected);
  passes::unwind(*module);
  ir::verify(*module);
  CHECK_FALSE(passes::in_cps(*module->entry));
  CHECK(run(*module) == expected);
}

TEST_CASE("random programs mean the same in continuation-passing style, and brought back from it") {
  int compared = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    const auto program = RandomVariables(seed).program();
    const auto module =
        staged([&](const D& x, const D& y) { return VariableMachine<D>::run(program, x, y); });
    try {
      const std::vector<double> expected = run(*module);
      passes::to_cps(*module);
      ir::verify(*module);
      CHECK(run(*module) == expected);
      passes::unwind(*module);
      ir::verify(*module);
      CHECK(run(*module) == expected);
      ++compared;
    } catch (const ir::test::Endless&) {  // its continuations are nested too deep for the interpreter
    }
  }
  CHECK(compared > 100);
}
