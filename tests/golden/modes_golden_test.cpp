// What a gradient by each of the papers' modes is made of: the graph as the mode's handler stages it, before
// any pass.
//
// Two programs: the example of the Lantern paper's section 2, 2 x + x x x; and one that shows what the modes do
// differently: a loop in whose backward part operands or partial derivatives are needed, across which another
// variable is alive, and a marked part. After the passes most of these are the same code.
#include <map>

#include "golden.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

Rep<double> polynomial(Rep<double> x) { return 2.0 * x + x * x * x; }
Rep<double> loop(Rep<double> x) {
  const Rep<double> wave = sin(x);
  const Rep<double> t = WHILE(
      x, [](Rep<double> u) { return u < 5.0; }, [&](Rep<double> u) { return u + x / u; });
  return wave * checkpoint(sig<double(double)>([](Rep<double> u) { return exp(u) * u; }))(t);
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

/// The code of a gradient, of which no two modes have the same.
std::map<std::string, std::string>& codes() {
  static std::map<std::string, std::string> all;
  return all;
}

template <mode M>
void goldens(const std::string& name) {
  test::check_golden("modes/" + name + ".polynomial.ir", staged(grad<M>(&polynomial)));
  const std::string code = staged(grad<M>(&loop));
  test::check_golden("modes/" + name + ".loop.ir", code);
  for (const auto& [other, its] : codes()) {
    INFO(name << " and " << other);
    CHECK(code != its);
  }
  codes()[name] = code;
  for (const int opt : {0, 3}) {
    CHECK(compile(grad<M>(&polynomial), {.target = Target::c, .opt = opt})(3.0) == 29.0);
    CHECK(compile(grad<M>(&loop), {.target = Target::c, .opt = opt})(1.2) == Approx(eager(grad(&loop))(1.2)));
  }
}

}  // namespace

TEST_CASE("the rest of the program is captured (Lantern paper, Fig. 8)", "[modes]") { goldens<mode::reverse>("reverse"); }
TEST_CASE("continuations as functions of the code (Lantern paper, Fig. 7)", "[modes]") {
  goldens<mode::cps>("cps");
}
TEST_CASE("a tape of functions leaves no continuation (Lantern paper, Fig. 12)", "[modes]") {
  goldens<mode::global_tape>("global_tape");
}
TEST_CASE("the store passes through branches and loops (Lantern paper, 3.6)", "[modes]") {
  goldens<mode::functional>("functional");
}
TEST_CASE("a backpropagator for each iteration (thesis, 4.3)", "[modes]") {
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
