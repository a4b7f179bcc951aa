// Random programs over arrays, matrices, floats and integers, with every construct: eagerly and in all ways
// of compiling, forward and reverse, the answers are the same as far as rounding leaves them.
//
// LANTERN_FIRST_SEED and LANTERN_SEEDS choose others than the suite's, and as many as wanted.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

#include "depth.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "random_plan_run.hpp"
#include "random_plan_text.hpp"
#include "watched.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using A = Rep<Array<double>>;
using Singles = Rep<Array<float>>;
using Ints = Rep<Array<std::int64_t>>;
using M = Rep<Tensor<double, dyn, dyn>>;
using T = Rep<Tree<double>>;

struct Input {
  double x = 0.4;
  std::vector<double> a, b, w;
  std::vector<float> f;
  std::vector<std::int64_t> at;
  std::int64_t n, m;
  Tree<double> tree{0.3, Tree<double>(0.7), Tree<double>(-0.4, Tree<double>(), Tree<double>(0.2))};

  Input(std::int64_t rows, std::int64_t columns, double phase = 0) : n(rows), m(columns) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double t = static_cast<double>(i) + phase;
      a.push_back(std::sin(1.3 * t + 0.4));
      b.push_back(std::cos(2.1 * t + 0.2));
      f.push_back(static_cast<float>(std::sin(0.9 * t - 0.3)));
      at.push_back((i * i + 3 * i + 1) % n);
    }
    for (std::int64_t i = 0; i < n * m; ++i)
      w.push_back(std::sin(0.7 * static_cast<double>(i) + 0.9 + phase));
  }
  TensorView<const double> matrix() const { return {w.data(), {n, m}}; }
};

auto program_of(const PlanRunner& run) {
  return [&run](D x, A a, A b, M w, Singles f, Ints at, T tree) {
    return run({.n = a.size(),
                .m = w.dim(1),
                .tree = tree,
                .numbers = {x},
                .arrays = {a, b},
                .singles = {f},
                .indices = {at},
                .matrices = {w},
                .rows = {},
                .columns = {}});
  };
}

using Numbers = std::vector<double>;

void append(Numbers& to, double x) { to.push_back(x); }
template <class V>
void append(Numbers& to, const V& from) {
  if constexpr (requires { from.data.begin(); })
    to.insert(to.end(), from.data.begin(), from.data.end());
  else
    to.insert(to.end(), from.begin(), from.end());
}

/// Value and gradient, one after the other.
template <class F>
Numbers run(F&& f, const Input& in) {
  const auto [value, gradient] = f(in.x, in.a, in.b, in.matrix(), in.f, in.at, in.tree);
  Numbers all(1, value);
  std::apply([&](const auto&... part) { (append(all, part), ...); }, gradient);
  return all;
}

/// Also a float.
double direction(std::size_t i) { return static_cast<float>(std::cos(static_cast<double>(i))); }

/// The derivative by the direction.
template <class F>
double slope(F&& tangent, const Input& in) {
  Numbers to(1 + in.a.size() * 2 + in.w.size() + in.f.size());
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = direction(i);
  const double* next = to.data() + 1;
  const auto take = [&](std::size_t n) {
    const double* const from = std::exchange(next, next + n);
    return std::vector<double>(from, next);
  };
  const auto da = take(in.a.size()), db = take(in.b.size()), dw = take(in.w.size()), df = take(in.f.size());
  return std::get<1>(tangent(in.x, in.a, in.b, in.matrix(), in.f, in.at, in.tree, to[0], da, db,
                             TensorView<const double>(dw.data(), {in.n, in.m}),
                             std::vector<float>(df.begin(), df.end())));
}
struct Along {
  double sum = 0, size = 1;  ///< what the terms of the sum are of
};
Along along(const Numbers& gradient) {
  Along a;
  for (std::size_t i = 1; i < gradient.size(); ++i) {
    const double term = gradient[i] * direction(i - 1);
    a.sum += term;
    a.size += std::abs(term);
  }
  return a;
}

/// How far the numbers are apart, relative to the largest.
double distance(const Numbers& x, const Numbers& y) {
  if (x.size() != y.size()) return INFINITY;
  double most = 1, apart = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) != std::isnan(y[i])) return INFINITY;
    if (std::isnan(x[i]) || x[i] == y[i]) continue;
    most = std::max(most, std::abs(x[i]));
    apart = std::max(apart, std::abs(x[i] - y[i]));
  }
  return apart / most;
}

/// Where they are furthest apart.
std::string worst(const Numbers& found, const Numbers& expected) {
  if (found.size() != expected.size()) return fmt::format("{} numbers for {}", found.size(), expected.size());
  std::size_t at = 0;
  double most = -1;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i]))) continue;
    const double apart = std::abs(found[i] - expected[i]);
    if (apart > most || std::isnan(apart)) most = apart, at = i;
    if (std::isnan(apart)) break;
  }
  return fmt::format("number {} of {} is {} for {}", at, found.size(), found[at], expected[at]);
}

struct Expected {
  Numbers numbers;
  double tolerance;
};

template <class F>
Expected reference(const F& gradient, const Input& in) {
  Expected e{run(gradient, in), 1e-10};
  noise = {.relative = 1e-15};
  for (int i = 0; i < 2; ++i) e.tolerance += 200 * distance(run(gradient, in), e.numbers);
  noise = {};
  return e;
}

class Case {
 public:
  explicit Case(unsigned seed) : seed_(seed), plan_(PlanSource(seed).plan()), runner_(plan_) {}

  void check() {
    const auto program = program_of(runner_);
    const auto gradient = value_and_grad(program);
    static constexpr std::pair<int, int> sizes[] = {{0, 2},  {1, 1},  {2, 3},  {3, 5}, {8, 2},
                                                    {31, 1}, {32, 2}, {33, 3}, {64, 1}};
    std::vector<std::pair<Input, Expected>> inputs;
    const auto add = [&](std::size_t which) {
      const Input in(sizes[which].first, sizes[which].second);
      inputs.emplace_back(in, reference(eager(gradient), in));
    };
    for (std::size_t k : {std::size_t{seed_ % 2}, std::size_t{2 + seed_ % 3}, std::size_t{5 + seed_ % 4}})
      add(k);
    for (const auto& [in, expected] : inputs) {
      judge_slope("forward mode", in, slope(eager(jvp(program)), in), expected);
    }
    for (const CompileOptions& way : ways()) {
      const std::string name =
          fmt::format("{}, opt {}, threads {}, without {}", way.target == Target::c ? "tcc" : "Clang",
                      way.opt, way.threads, way.disabled_passes.empty() ? "nothing" : way.disabled_passes[0]);
      INFO("seed " << seed_ << ", " << name);
      try {
        const auto f = compile(gradient, way);
        for (const auto& [in, expected] : inputs) judge(name, in, run(f, in), expected);
      } catch (const std::exception& e) {
        FAIL_CHECK(e.what());
      }
    }
    if (seed_ % 4 == 0) second(program);
  }

 private:
  std::vector<CompileOptions> ways() const {
    std::vector<CompileOptions> list{
        {.target = Target::c, .opt = 0}, {.target = Target::c, .opt = 3}, {.target = Target::cpp, .opt = 3}};
    const auto passes = passes::passes();
    if (seed_ % 2)
      list.push_back({.target = Target::c, .opt = 3, .threads = 2 + static_cast<int>(seed_ / 2 % 2)});
    else
      list.push_back({.target = Target::c,
                      .opt = 3,
                      .disabled_passes = {std::string(passes[seed_ / 2 % passes.size()].name)}});
    if (seed_ % 5 == 0) list.push_back({.target = Target::cpp, .opt = 3, .threads = 2});
    if (seed_ % 5 == 1)
      list.push_back({.target = Target::cpp,
                      .opt = 3,
                      .bounds_checks = false,
                      .disabled_passes = {std::string(passes[seed_ / 5 % passes.size()].name)}});
    return list;
  }

  /// The derivative of a weighted gradient, by reverse mode, against forward mode over it.
  template <class F>
  void second(const F& program) {
    const auto weighted = [program](D x, A a, A b, M w, Singles f, Ints at, T tree) {
      const auto [gx, ga, gb, gw, gf] = grad(program)(x, a, b, w, f, at, tree);
      return gx + sum(ga * sin(ga + 0.1)) + 0.7 * sum(gb) + 0.3 * sum(gw);
    };
    const auto gradient = value_and_grad(weighted);
    const Input in(seed_ % 3 + 1, 2);
    const Expected expected = reference(eager(gradient), in);
    judge_slope("forward over reverse mode", in, slope(eager(jvp(weighted)), in), expected);
    try {
      judge("second derivative, tcc", in, run(compile(gradient, {.target = Target::c, .opt = 3}), in),
            expected);
      judge_slope("forward over reverse mode, tcc", in,
                  slope(compile(jvp(weighted), {.target = Target::c, .opt = 3}), in), expected);
    } catch (const std::exception& e) {
      INFO("seed " << seed_ << ", second derivative");
      FAIL_CHECK(e.what());
    }
  }

  void judge_slope(const std::string& way, const Input& in, double found, const Expected& expected) {
    const Along along_it = along(expected.numbers);
    judge(way, in, {found / along_it.size},
          {{along_it.sum / along_it.size}, expected.tolerance * 100 + 3e-7});  // floats among them
  }

  void judge(const std::string& way, const Input& in, const Numbers& found, const Expected& expected) {
    if (!(expected.tolerance < 1e-3)) return;  // rounding decides
    const double apart = distance(found, expected.numbers);
    const std::string source = apart <= expected.tolerance ? "" : PlanText(plan_).str();
    INFO(source);
    INFO(fmt::format("seed {}: {} rows, {} columns, {}: {} apart, {} allowed, {}", seed_, in.n, in.m, way,
                     apart, expected.tolerance, worst(found, expected.numbers)));
    CHECK(apart <= expected.tolerance);
  }

  unsigned seed_;
  RandomPlan plan_;
  PlanRunner runner_;
};

/// "file:line:column: error: text", as eager evaluation says it, in the words of compiled code.
std::string as_compiled(const std::string& message) {
  const std::size_t mark = message.find(": error: ");
  if (mark == std::string::npos) return message;
  const std::string place = message.substr(0, message.rfind(':', mark - 1));
  return message.substr(mark + 9) + " (" + place + ")";
}

/// What a call raises; empty if it returns.
template <class F>
std::string raised(F&& f, const Input& in) {
  try {
    run(f, in);
    return {};
  } catch (const Error& e) {
    return e.what();
  }
}

/// Programs some of whose indices are outside: what one raises eagerly it raises compiled, in the same words. Elements
/// that no result depends on are not asked for by optimised code, the same at every level, and by code without
/// optimisation only where they stand in loops or derivatives.
void check_errors(unsigned seed) {
  const RandomPlan plan = PlanSource(seed, true).plan();
  const PlanRunner runner(plan);
  const auto gradient = value_and_grad(program_of(runner));
  const std::vector<Input> inputs{{1, 1}, {5, 2}, {33, 2}};
  std::vector<std::string> expected;
  for (const Input& in : inputs) expected.push_back(as_compiled(raised(eager(gradient), in)));
  // What is left once the elements that no result depends on are gone.
  std::vector<std::string> optimised;
  const auto least = compile(gradient, {.target = Target::c, .opt = 1});
  for (const Input& in : inputs) optimised.push_back(raised(least, in));
  for (const CompileOptions& way :
       {CompileOptions{.target = Target::c, .opt = 0}, CompileOptions{.target = Target::c, .opt = 3},
        CompileOptions{.target = Target::cpp, .opt = 3},
        CompileOptions{.target = Target::c, .opt = 3, .threads = 3}}) {
    const auto f = compile(gradient, way);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      INFO(fmt::format("seed {}, {}, opt {}, {} threads, {} rows", seed,
                       way.target == Target::c ? "tcc" : "Clang", way.opt, way.threads, inputs[i].n));
      const std::string text = raised(f, inputs[i]);
      CHECK((text == expected[i] || text == optimised[i]));
      if (way.opt > 0) CHECK(text == optimised[i]);
    }
  }
}

/// Arrays that are results, once or twice, arguments among them; results in the memory of arguments.
void check_results(unsigned seed) {
  const RandomPlan plan = PlanSource(seed).plan();
  const PlanRunner runner(plan);
  const auto scope = [&runner](D x, A a, A b, M w, Singles f, Ints at, T tree) {
    return runner.made({.n = a.size(),
                        .m = w.dim(1),
                        .tree = tree,
                        .numbers = {x},
                        .arrays = {a, b},
                        .singles = {f},
                        .indices = {at},
                        .matrices = {w},
                        .rows = {},
                        .columns = {}});
  };
  const auto all = [scope, &runner](D x, A a, A b, M w, Singles f, Ints at, T tree) {
    const auto s = scope(x, a, b, w, f, at, tree);
    return std::tuple(s.arrays.back(), s.arrays.back(), s.matrices.back(), s.singles.back(), s.indices.back(),
                      a, runner.result(s));
  };
  // Two results that are wanted in the arguments' memory, in the other order.
  const auto two = [scope](D x, A a, A b, M w, Singles f, Ints at, T tree) {
    const auto s = scope(x, a, b, w, f, at, tree);
    return std::tuple(A(s.arrays.back() + 0.5 * b), A(a * x));
  };
  const auto numbers = [](auto&& g, const Input& in) {
    Numbers n;
    std::apply([&](const auto&... part) { (append(n, part), ...); },
               g(in.x, in.a, in.b, in.matrix(), in.f, in.at, in.tree));
    return n;
  };
  for (const CompileOptions& way :
       {CompileOptions{.target = Target::c, .opt = 0}, CompileOptions{.target = Target::c, .opt = 3},
        CompileOptions{.target = Target::cpp, .opt = 3}}) {
    if (way.target == Target::cpp && seed % 3) continue;
    const auto f = compile(all, way);
    const auto g = compile(two, way);
    for (const Input& in : {Input(0, 1), Input(4, 3), Input(33, 2)}) {
      INFO(fmt::format("seed {}, {}, opt {}, {} rows", seed, way.target == Target::c ? "tcc" : "Clang",
                       way.opt, in.n));
      Numbers expected = numbers(eager(all), in);
      noise = {.relative = 1e-15};
      const double allowed = 1e-10 + 200 * distance(numbers(eager(all), in), expected);
      noise = {};
      if (!(allowed < 1e-3)) continue;
      CHECK(distance(numbers(f, in), expected) <= allowed);
      expected = numbers(eager(two), in);
      Input own = in;
      g.into(std::span<double>(own.b), std::span<double>(own.a), own.x, own.a, own.b, own.matrix(), own.f,
             own.at, own.tree);
      Numbers found = own.b;
      append(found, own.a);
      CHECK(distance(found, expected) <= allowed);
    }
  }
}

/// With the check for NaN and without: the same numbers.
void check_watched(unsigned seed) {
  const RandomPlan plan = PlanSource(seed).plan();
  const PlanRunner runner(plan);
  const std::vector<Input> inputs{{static_cast<std::int64_t>(seed % 3), 2}, {5, 3}, {33, 1}};
  compare_watched(fmt::format("seed {}", seed), value_and_grad(program_of(runner)), watched_ways(seed % 4 == 0), inputs,
                  [](const auto& f, const Input& in) { return run(f, in); });
}

/// The suite's seeds, those of a deep run, or those asked for.
void each_seed(const std::function<void(unsigned)>& check, const Seeds& seeds) {
  const bool talk = std::getenv("LANTERN_VERBOSE") != nullptr;
  seeds.each([&](unsigned seed) {
    if (talk) fmt::print(stderr, "seed {}\n", seed);
    try {
      check(seed);
    } catch (const std::exception& e) {
      INFO("seed " << seed);
      FAIL_CHECK(e.what());
    }
  });
}

}  // namespace

TEST_CASE("programs with every construct that were wrong once", "[arrays]") {
  Case(93024).check();  // an element at the index of a fused loop around, whose condition was not written yet
}

TEST_CASE("random programs with every construct", "[arrays]") {
  each_seed([](unsigned seed) { Case(seed).check(); }, {10, 2000});
}

TEST_CASE("random programs with arrays as results", "[arrays]") {
  each_seed(check_results, {8, 500});
}

TEST_CASE("random programs with every construct, their values checked", "[arrays][check]") {
  each_seed(check_watched, {6, 3000});
}

TEST_CASE("random programs as C++", "[arrays]") {
  const codegen::TemporaryDirectory directory;
  const std::string file = std::string(directory.path()) + "/program.cpp";
  for (const unsigned seed : {3u, 16u}) {
    const std::string text = PlanText(PlanSource(seed).plan()).str();
    codegen::write_file(file, text);
    const auto result = codegen::run_process(
        {LANTERN_TEST_COMPILER, "-std=c++20", "-fsyntax-only", "-I" LANTERN_TEST_INCLUDE, file});
    INFO(text);
    INFO(result.err);
    CHECK(result.status == 0);
  }
}

TEST_CASE("random programs with indices outside", "[arrays][errors]") {
  each_seed(check_errors, {8, 500});
}
