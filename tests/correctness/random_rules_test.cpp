// Random programs whose derivative is given by a rule, made of the library's own derivative: value, gradient
// and second derivative agree in all ways, with differences where smooth, and with the program without a
// rule. The same for fixed points of random programs made into contractions, and for batches.

#include "agree.hpp"
#include "depth.hpp"
#include "random_source.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using Scalars = std::array<D, 2>;
using Agreement = agree::Agreement<double, Scalars, A, I>;
using Program = Agreement::Scalar;

const std::vector<double> elements{0.35, -0.8, 1.15};

std::unique_ptr<SourceNode> tree_of(unsigned seed) {
  return RandomSource(seed, 6 + static_cast<int>(seed % 14)).program(2);
}

/// x, y are differentiated; the array and n are data.
Program program_of(const SourceNode& tree) {
  return [&tree](Scalars x, A a, I n) { return SourceInterpreter::run(tree, {{x[0], x[1]}, {n}, a, {}, 0}); };
}

Program with_rule(const Program& f, unsigned seed) {
  if (seed % 2 == 0)
    return custom_vjp(
        f, [f](Scalars x, A a, I n) { return std::tuple(f(x, a, n), x, a, n); },
        [f](Scalars x, A a, I n, D g) { return std::get<1>(vjp(f)(x, a, n, g)); });
  return custom_jvp(f, jvp(f));
}

/// Something before, and after.
Program inside(const Program& f) {
  return [f](Scalars x, A a, I n) { return f({sin(x[0]), x[1]}, a, n) * x[0] + x[1]; };
}

Ways ways_of(unsigned seed) {
  Ways ways;
  ways.without_unwind = seed % 3 == 0;
  ways.clang = seed % 10 == 0;  // it costs a second
  ways.only_smooth = true;
  ways.tolerance = 1e-8;
  ways.difference_tolerance = 1e-5;
  return ways;
}

void run(const std::function<std::string(unsigned)>& one) {
  Seeds(15, 1500).each([&](unsigned seed) { agree::report(one(seed + 1)); });
}

}  // namespace

TEST_CASE("random programs with rules", "[random][custom]") {
  run([](unsigned seed) {
    const auto tree = tree_of(seed);
    const Program f = program_of(*tree), ruled = inside(with_rule(f, seed)), plain = inside(f);
    Agreement agreement(ways_of(seed), "seed " + std::to_string(seed), ruled, {{0.6, -1.1}}, elements, 2);
    const auto gradient = eager(grad<0>(plain))({0.6, -1.1}, elements, 2);
    agreement.judge(1, "without a rule", {agree::numbers(gradient)}, 1e-8);
    const std::string text = agreement.run();
    return text.empty() ? text : text + tree->str();
  });
}

namespace {

template <mode M>
void check_mode(const char* name, const Program& ruled, const std::vector<double>& expected, bool staged) {
  const auto derivative = grad<0, M>(ruled);
  const auto agrees = [&](const std::vector<double>& found) {
    for (std::size_t i = 0; i < 2; ++i) CHECK(agree::close(found[i], expected[i], 1e-8));
  };
  INFO(name);
  agrees(agree::numbers(eager(derivative)({0.6, -1.1}, elements, 2)));
  if (staged)
    agrees(agree::numbers(compile(derivative, {.target = Target::c, .opt = 3})({0.6, -1.1}, elements, 2)));
}

}  // namespace

TEST_CASE("random programs with rules in every mode", "[random][custom][modes]") {
  run([](unsigned seed) {
    const auto tree = tree_of(seed);
    const Program f = program_of(*tree), ruled = inside(with_rule(f, seed));
    const auto expected = agree::numbers(eager(grad<0>(inside(f)))({0.6, -1.1}, elements, 2));
    INFO("seed " << seed << "\n" << tree->str());
    check_mode<mode::cps>("cps", ruled, expected, true);
    check_mode<mode::global_tape>("global tape", ruled, expected, true);
    check_mode<mode::functional>("functional", ruled, expected, true);
    check_mode<mode::continuation>("continuation", ruled, expected, true);
    check_mode<mode::taped>("taped", ruled, expected, true);
    check_mode<mode::checkpointed>("checkpointed", ruled, expected, true);
    check_mode<mode::divide_and_conquer>("divide and conquer", ruled, expected, true);
    check_mode<mode::closures>("closures", ruled, expected, false);
    return std::string();
  });
}

TEST_CASE("fixed points of random programs", "[random][fixpoint]") {
  run([](unsigned seed) {
    const auto tree = tree_of(seed);
    const Program f = program_of(*tree);
    // tanh keeps it bounded; the factor makes it a contraction unless f is steep: then it raises, everywhere.
    const Program solution = [f](Scalars x, A a, I n) {
      return fixpoint(
          [f](D s, Scalars t, A b, I m) {
            return 0.05 * tanh(0.1 * f({t[0] + s, t[1]}, b, m)) + t[0];
          },
          {.iterations = 300}, 0.0, x, a, n);
    };
    try {
      eager(solution)({0.6, -1.1}, elements, 2);
    } catch (const Error&) {
      return std::string();
    }
    Ways ways = ways_of(seed);
    ways.difference_tolerance = 1e-4;  // a step can cross a corner inside
    const std::string text =
        Agreement(ways, "seed " + std::to_string(seed), inside(solution), {{0.6, -1.1}}, elements, 2).run();
    return text.empty() ? text : text + tree->str();
  });
}

TEST_CASE("batches of random programs", "[random][vmap]") {
  run([](unsigned seed) {
    const auto tree = tree_of(seed);
    const Program f = program_of(*tree);
    const Program batch = [f](Scalars x, A a, I n) {
      const auto each = [f](Scalars y, A b, I m) { return f(y, b, m); };
      return sum(vmap<0>(each)({A(a * x[0]), A(a + x[1])}, a, n) * a);
    };
    const Program one_by_one = [f](Scalars x, A a, I n) {
      return FOR(0, a.size(), D(0.0), [&](I i, D s) {
        return s + f({a[i] * x[0], a[i] + x[1]}, a, n) * a[i];
      });
    };
    Agreement agreement(ways_of(seed), "seed " + std::to_string(seed), batch, {{0.6, -1.1}}, elements, 2);
    agreement.judge(1, "one by one", {agree::numbers(eager(grad<0>(one_by_one))({0.6, -1.1}, elements, 2))},
                    1e-8);
    const std::string text = agreement.run();
    return text.empty() ? text : text + tree->str();
  });
}
