// What a gradient by each of the papers' modes is made of: the graph as the mode's handler stages it, before
// any pass.
//
// Two programs: the example of the Lantern paper's section 2, 2 x + x x x; and a loop in whose backward part
// an operand, or a derivative, is needed. After the passes most of these are the same code.
#include "golden.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

Rep<double> polynomial(Rep<double> x) { return 2.0 * x + x * x * x; }
Rep<double> loop(Rep<double> x) {
  return WHILE(
      x, [](Rep<double> t) { return t < 5.0; }, [&](Rep<double> t) { return exp(t) * x; });
}
Rep<double> parts(Rep<double> x) {
  const auto part = checkpoint(sig<double(double)>([](Rep<double> t) { return sin(t) * t; }));
  return part(part(x));
}

template <class F>
std::string staged(F f) {
  std::vector<ir::Type> types;
  detail::types_of<typename detail::FunctionTraits<F>::Params>(types);
  const auto module = driver::stage("derivative", types, detail::program_of(f).run);
  ir::verify(*module);
  return ir::print(*module);
}

template <mode M>
void goldens(const std::string& name) {
  test::check_golden("modes/" + name + ".polynomial.ir", staged(grad<M>(&polynomial)));
  test::check_golden("modes/" + name + ".loop.ir", staged(grad<M>(&loop)));
  for (const int opt : {0, 3}) {
    CHECK(compile(grad<M>(&polynomial), {.target = Target::c, .opt = opt})(3.0) == 29.0);
    CHECK(compile(grad<M>(&loop), {.target = Target::c, .opt = opt})(1.2) == Approx(eager(grad(&loop))(1.2)));
  }
}

}  // namespace

TEST_CASE("continuations as functions of the code (Lantern paper, Fig. 7)", "[modes]") {
  goldens<mode::cps>("cps");
}
TEST_CASE("a tape of functions leaves no continuation (Lantern paper, Fig. 12)", "[modes]") {
  goldens<mode::global_tape>("global_tape");
}
TEST_CASE("the store passes through branches and loops (Lantern paper, 3.6)", "[modes]") {
  goldens<mode::functional>("functional");
}
TEST_CASE("a backpropagator for each trip (thesis, 4.3)", "[modes]") {
  goldens<mode::continuation>("continuation");
}
TEST_CASE("the tape holds factors (thesis, 4.4)", "[modes]") { goldens<mode::taped>("taped"); }
TEST_CASE("checkpoints run again in the backward part (thesis, 5.2)", "[modes]") {
  goldens<mode::checkpointed>("checkpointed");
  test::check_golden("modes/checkpointed.parts.ir", staged(grad<mode::checkpointed>(&parts)));
}
TEST_CASE("series of order 3 (thesis, 5.1)", "[modes]") {
  test::check_golden("modes/taylor.polynomial.ir", staged(taylor<3>(&polynomial)));
}
