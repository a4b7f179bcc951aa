// vectorise: loops before and after, and their lanes in generated code.
#include <regex>
#include <sstream>

#include "../correctness/agree.hpp"
#include "golden.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/ir/print.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

/// One of each iteration's own: no iteration asks another for anything.
A elements(A a) {
  return FOR(0, a.size(), a, [](I i, A s) { return s.set(i, exp(s[i]) * 2.0); });
}

/// A sum: of each lane, then of the lanes.
D energies(A a) {
  return FOR(0, a.size(), 0.0, [&](I i, D s) { return s + exp(-a[i]); });
}

/// Rows that lie apart, and a loop inside: a row in each lane.
D rows(M m) {
  return FOR(0, m.dim(0), 0.0, [&](I i, D total) {
    const D row = FOR(0, m.dim(1), 1.0, [&](I j, D s) { return s * 0.5 + m(i, j); });
    return total + IF(
                       row > 1.0, [&] { return row * row; }, [&] { return row; });
  });
}

/// A recurrence: stays as it is.
D recurrence(A a) {
  return FOR(0, a.size(), 1.0, [&](I i, D s) { return sin(s) + a[i]; });
}

template <class F>
void check_vectorised(const std::string& name, F f) {
  std::vector<ir::Type> types;
  using Params = typename detail::FunctionTraits<F>::Params;
  [&]<class... P>(std::type_identity<std::tuple<P...>>) {
    (detail::types_of<P>(types), ...);
  }(std::type_identity<Params>{});
  const auto module = driver::stage(name, types, detail::program_of(f).run);
  std::string before, after;
  passes::PipelineOptions options;
  options.vector_lanes = 8;
  options.after = [&](std::string_view pass, const ir::Module& m) {
    if (pass == "dead_fills") before = ir::print(m);
    if (pass == "vectorise") after = ir::print(m);
  };
  run_on_large_stack([&] { passes::run_pipeline(*module, options); });
  check_golden("vectorise/" + name + ".before.ir", before);
  check_golden("vectorise/" + name + ".after.ir", after);
}

}  // namespace

TEST_CASE("vectorise: before and after", "[passes]") {
  check_vectorised("elements", elements);
  check_vectorised("sum", energies);
  check_vectorised("sum_gradient", grad(energies));
  check_vectorised("rows", rows);
  check_vectorised("recurrence", recurrence);
}

TEST_CASE("vectorise: no lane is computed that nobody asks for", "[codegen]") {
  const auto check = [](const auto& compiled) {
    const std::string text = compiled.source("cpp");
    const std::regex definition(R"(^ *(?:const )?lt_\w+x\d+ (\w+) = .*;)");
    std::istringstream lines(text);
    int found = 0;
    for (std::string line; std::getline(lines, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, definition)) continue;
      ++found;
      const std::string name = match[1];
      const std::regex use("\\b" + name + "\\b");
      const auto uses =
          std::distance(std::sregex_iterator(text.begin(), text.end(), use), std::sregex_iterator());
      INFO(line);
      CHECK(uses > 1);
    }
    CHECK(found > 0);
  };
  const CompileOptions lanes{.target = Target::cpp, .opt = 3};
  check(compile(grad(energies), lanes));
  check(compile(rows, lanes));
  check(compile(elements, lanes));
  const auto windows = [](A a) {
    return FOR(1, a.size() - 1, 0.0, [&](I i, D s) { return s + a[i - 1] * a[i + 1]; });
  };
  check(compile(windows, lanes));
  const std::vector<double> v{0.5, 1.5, -0.25, 2.0, 1.0, -1.0, 0.75, 3.0, 0.1, 0.2, 0.3};
  const auto fast = compile(windows, lanes)(v), slow = eager(windows)(v);
  CHECK(fast == Approx(slow).epsilon(1e-12));
}
