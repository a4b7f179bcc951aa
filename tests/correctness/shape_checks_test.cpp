// Shapes that do not fit are an error in a derivative as in the value, whether the derivative needs the value
// or not.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;
using Numbers = std::vector<double>;
using View = TensorView<const double>;

const Numbers two{1.0, 2.0}, three{1.5, -0.5, 2.0}, six{1, 2, 3, 4, 5, 6};

/// Raises eagerly, and compiled in every way.
template <class F, class... Args>
void check_raises(const std::string& what, const F& f, const Args&... arguments) {
  INFO(what);
  CHECK_THROWS_AS(eager(f)(arguments...), Error);
  for (const Target target : {Target::c, Target::cpp})
    for (const int opt : {0, 1, 3}) {
      INFO("target " << static_cast<int>(target) << ", opt " << opt);
      CHECK_THROWS_AS(compile(f, {.target = target, .opt = opt})(arguments...), Error);
    }
}

D product(A x, A y) { return dot(x, y); }
D total(A x, A y) { return sum(x + y); }
D joined(A x, A y) { return sum(concat(x, y) - x); }
D chosen(A x, A y) { return sum(select(D(1.0) > 0.5, x, y)); }
D times(M m, A y) { return sum(matmul(m, y)); }
D both(M m, M n) { return sum(matmul(m, n)); }
D steps(A x, A y) {
  return FOR(0, 3, D(0.0), [&](I i, D s) { return s + dot(x, y) * cast<double>(i); });
}
D nested(A x, A y, I n) {
  return FOR(0, n, D(0.0), [&](I i, D s) { return FOR(i, n, s, [&](I, D t) { return t + sum(x - y); }); });
}
D cubes(A x) {
  return FOR(0, x.size(), D(0.0), [&](I i, D s) { return s + x[i] * x[i] * x[i]; });
}

}  // namespace

TEST_CASE("shapes are checked in a gradient as in the value", "[shapes]") {
  check_raises("dot", value_and_grad(product), three, two);
  check_raises("grad of dot", grad(product), three, two);
  check_raises("grad<0> of dot", grad<0>(product), three, two);
  check_raises("grad of a sum", grad(total), three, two);
  check_raises("taped", grad<mode::taped>(total), three, two);
  check_raises("forward", grad<mode::forward>(total), three, two);
  check_raises("concat", grad(joined), three, two);
  check_raises("a choice", grad(chosen), three, two);
  check_raises("matrix times vector", grad<1>(times), View(six.data(), {2, 3}), two);
  check_raises("matrix times matrix", grad<0>(both), View(six.data(), {2, 3}), View(six.data(), {2, 3}));
  check_raises("in a loop", grad(steps), three, two);
  check_raises("in nested loops", grad<0>(nested), three, two, 3);
}

TEST_CASE("shapes are checked in derivatives of derivatives", "[shapes]") {
  const auto second = [](A x, A y) { return sum(grad<0>(product)(x, y)); };
  check_raises("grad of grad", grad<1>(second), three, two);
  check_raises(
      "tangent of a sum", [](A x, A y) { return std::get<1>(jvp(total)(x, y, x, y)); }, three, two);
}

TEST_CASE("a direction has the sizes of what it belongs to", "[shapes]") {
  check_raises("hvp", hvp(cubes), three, Numbers(7, 1.0));
  check_raises(
      "jvp", [](A x, A dx) { return std::get<1>(jvp(cubes)(x, dx)); }, three, two);
  check_raises(
      "taylor", [](A x, A dx) { return taylor<2>(cubes)(x, dx)[2]; }, three, two);
  const auto twice = [](A x) { return 2.0 * x; };
  check_raises(
      "vjp", [=](A x, A bar) { return std::get<1>(vjp(twice)(x, bar)); }, three, two);
}

TEST_CASE("a loop that makes no iteration checks no shapes", "[shapes]") {
  const auto gradient = grad<0>(nested);
  for (const int opt : {0, 3}) {
    const auto f = compile(gradient, {.target = Target::c, .opt = opt});
    CHECK(f(three, two, 0) == Numbers(3, 0.0));
    CHECK_THROWS_AS(f(three, two, 1), Error);
    CHECK(f(three, three, 2) == Numbers(3, 3.0));
  }
}

TEST_CASE("a check of shapes stands once, before loops, and not where sizes are known", "[shapes]") {
  const auto count = [](const std::string& text) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find("lt_fail_shapes(ws, ", at)) != std::string::npos; ++at) ++n;
    return n;
  };
  const auto run = [](A x, A y, I n) {
    return FOR(0, n, D(0.0), [&](I i, D s) { return s + dot(x, y) * cast<double>(i); });
  };
  const std::string text = compile(grad(run), {.target = Target::c, .name = "gradient"}).source("c");
  CHECK(count(text) == 1);
  CHECK(text.find("lt_fail_shapes(ws, ") < text.find("for (", text.find("void gradient(")));
  const auto same = [](A x) { return FOR(0, 3, D(0.0), [&](I, D s) { return s + sum(2.0 * x + sin(x)); }); };
  CHECK(count(compile(grad(same), {.target = Target::c}).source("c")) == 0);
}
