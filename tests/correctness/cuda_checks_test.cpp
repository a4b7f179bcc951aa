// Prints, checks for NaN, and mappings that are asked for, of programs for a GPU: what the processor says.
#include <cmath>
#include <lantern/nn.hpp>
#include <lantern/tensor.hpp>
#include <limits>

#include "cuda_tensors.hpp"
#include "written.hpp"

using namespace lantern;
using lantern::test::Emulated;
using lantern::test::written;
using Matrix = Rep<Tensor<float, dyn, dyn>>;
using Row = Rep<Tensor<float, dyn>>;
using Labels = Rep<Tensor<std::int64_t, dyn>>;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TensorValue<float> floats(std::vector<std::int64_t> shape, double scale = 1) {
  TensorValue<float> t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = static_cast<float>(scale * (0.6 + 0.3 * std::sin(1.7 * static_cast<double>(i))));
  return t;
}
TensorValue<float> filled(std::vector<std::int64_t> shape, float value) {
  TensorValue<float> t(std::move(shape));
  for (float& x : t.data) x = value;
  return t;
}
TensorValue<float> whole(std::vector<std::int64_t> shape) {
  TensorValue<float> t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<float>(i * 7 % 4);
  return t;
}
TensorValue<float> with(TensorValue<float> t, std::size_t at, float value) {
  t.data.at(at) = value;
  return t;
}
TensorValue<std::int64_t> labels(std::int64_t n, std::int64_t classes) {
  TensorValue<std::int64_t> t({n});
  for (std::int64_t i = 0; i < n; ++i) t.data[static_cast<std::size_t>(i)] = i * 7 % classes;
  return t;
}

template <class F>
std::string raised(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing";
}

template <class F>
std::string checked_source(F f) {
  return compile(f, {.target = Target::cuda, .check = Check::nan, .name = "checked"}).source("cuda");
}

/// Fails on the GPU with the processor's words, in whatever order threads run.
template <class F, class... A>
std::string fails(F f, const A&... args) {
  if (!codegen::nvrtc_available()) return "nan";
  const std::string expected = raised([&] { compile(f, {.target = Target::c, .check = Check::nan})(args...); });
  CHECK_THAT(expected, Contains("expected finite values, got "));
  const std::string text = checked_source(f);
  INFO(text);
  const Emulated emulated(text, "checked");
  for (const bool backwards : {false, true, false}) {  // a call after one that failed
    emulated.backwards(backwards);
    CHECK(raised([&] { emulated(args...); }) == expected);
  }
  return expected;
}

/// Passes the check, with the processor's values.
template <class F, class... A>
void passes(F f, const A&... args) {
  if (!codegen::nvrtc_available()) return;
  const std::string text = checked_source(f);
  INFO(text);
  const Emulated emulated(text, "checked", true);
  lantern::test::compare_all(emulated(args...), compile(f, {.target = Target::c})(args...), 2e-5);
}

}  // namespace

TEST_CASE("a NaN in a kernel fails with the processor's message", "[cuda]") {
  const auto logarithms = [](Matrix x) { return log(x) * 2.0F; };
  CHECK_THAT(fails(logarithms, with(floats({40, 9}), 200, -1)), Contains("cuda_checks_test.cpp:") && Contains("nan from log"));
  CHECK_THAT(fails(logarithms, with(floats({1, 1}), 0, 0)), Contains("-inf from log"));
  if (codegen::nvrtc_available()) {  // all threads fail at once: what each writes is ordered by a lock
    const Emulated emulated(checked_source(logarithms), "checked", true);
    const std::string failed = raised([&] { emulated(filled({30, 9}, -1.0F)); });
    CHECK_THAT(failed, Contains("nan from log") && !Contains("race"));
  }
  passes(logarithms, floats({40, 9}));
  passes(logarithms, floats({0, 9}));
  // In the backward part alone.
  CHECK_THAT(fails(grad([](Row x) { return sum(sqrt(x)); }), with(floats({300}), 77, 0)), Contains("in the backward part of a derivative"));
}

TEST_CASE("sums that threads and blocks make are looked at", "[cuda]") {
  // Each part is finite: what adds them up is not.
  for (const std::int64_t n : {2, 300, 5000}) {
    INFO(n);
    CHECK_THAT(fails([](Row x) { return sum(x); }, filled({n}, 3e38F)), Contains("inf from add"));
  }
  fails([](Matrix x) { return sum<1>(x); }, filled({5, 300}, 2e38F));
  fails([](Matrix x) { return sum<0>(x); }, filled({300, 5}, 2e38F));
  fails([](Matrix x) { return sum(softmax<1>(x) * 3e38F); }, floats({20, 30}));
  fails(
      [](Row w, Labels at) {
        return FOR(0, at.dim(0), zeros<float>({10}),
                   [&](Rep<std::int64_t> i, Rep<Tensor<float, 10>> h) { return h.set(at(i), h(at(i)) + w(i)); });
      },
      filled({300}, 2e37F), labels(300, 10));
  fails([](Row h, Row w, Labels at) {
    return FOR(0, at.dim(0), h, [&](Rep<std::int64_t> i, Row to) { return to.set(at(i), to(at(i)) + w(i)); });
  }, filled({10}, 3e38F), filled({300}, 1e37F), labels(300, 10));
  passes([](Row x) { return std::tuple(sum(x), max(x), min(x)); }, floats({5000}));
  passes([](Matrix x) { return std::tuple(Row(sum<0>(x)), Row(sum<1>(x)), Matrix(softmax<1>(x))); }, floats({40, 30}));
  passes([](Row x) { return sum(x); }, floats({0}));
  passes([](Row x) { return sum(x); }, floats({1}));
}

TEST_CASE("products and what comes of them are looked at", "[cuda]") {
  const auto product = [](Matrix x, Matrix y) { return Matrix(matmul(x, y) * 0.5F); };
  if (codegen::nvrtc_available()) {
    const Emulated emulated(checked_source(product), "checked", true);
    const std::string message = raised([&] { emulated(filled({20, 17}, 1e30F), filled({17, 9}, 1e30F)); });
    CHECK_THAT(message, Contains("cuda_checks_test.cpp:") && Contains("expected finite values, got inf from "));
    CHECK(raised([&] { emulated(floats({20, 17}), floats({17, 9})); }) == "nothing");
  }
  passes(product, floats({20, 17}), floats({17, 9}));
  passes([](Matrix w, Row b, Matrix x, Labels y) {
    const auto loss = [](Matrix v, Row c, Matrix z, Labels l) { return nn::cross_entropy(Matrix(matmul(z, v) + c), l); };
    const auto [l, g] = value_and_grad<0, 1>(loss)(w, b, x, y);
    return std::tuple(l, std::get<0>(g), std::get<1>(g));
  }, floats({12, 5}), floats({5}), floats({16, 12}), labels(16, 5));
}

TEST_CASE("arguments are looked at where they lie; infinities on purpose pass", "[cuda]") {
  const auto f = [](Rep<float> s, Matrix a) { return Matrix(a * s); };
  CHECK(fails(f, infinity, floats({3, 4})) == "argument 1 (s): expected finite values, got inf");
  CHECK(fails(f, 1.0F, with(with(floats({30, 40}), 700, -infinity), 900, std::nanf(""))) ==
        "argument 2[700] (a): expected finite values, got -inf");
  fails([](Row a, Row unused) { return Row(a + cast<float>(unused.dim(0))); }, floats({5}), filled({4}, infinity));
  passes([](Row a) {
    return FOR(0, a.dim(0), Rep<float>(infinity), [&](Rep<std::int64_t> i, Rep<float> least) { return min(least, a(i)); });
  }, floats({700}));
  passes([](Row a) { return Row(max(a - Rep<float>(infinity), a)); }, floats({700}));
}

TEST_CASE("a map of numbers prints from its threads", "[cuda]") {
  const auto f = [](Rep<double> x) {
    print(x, "x");
    return 2.0 * x;
  };
  const std::string text = compile(f, {.target = Target::c, .name = "told"}).source("cuda");
  const auto code = codegen::compile_emulated(text);
  const double x[] = {1.5};
  double y[1] = {};
  CHECK(written([&] { code->function<int(const double*, double*, std::int64_t)>("told_map")(x, y, 1); }) == "x = 1.5\n");
  if (codegen::nvrtc_available()) CHECK_NOTHROW(codegen::compile_with_nvrtc(text));
  if (codegen::find_nvcc()) CHECK(!codegen::object_with_nvcc(text).empty());
}

TEST_CASE("a map of numbers is looked at", "[cuda]") {
  const auto f = compile([](Rep<double> x) { return log(x) * x; }, {.target = Target::c, .check = Check::nan, .name = "logs"});
  const auto code = codegen::compile_emulated(f.source("cuda"));
  const auto map = code->function<int(const double*, double*, std::int64_t)>("logs_map");
  const auto message = code->function<const char*()>("logs_message");
  std::vector<double> x(300, 1.5), y(300, -7);
  CHECK(map(x.data(), y.data(), 300) == 0);
  CHECK(y[299] == Approx(1.5 * std::log(1.5)));
  x[123] = -2;
  CHECK(map(x.data(), y.data(), 300) == 20002);
  CHECK(std::string(message()) == raised([&] { f(-2.0); }));
  x[123] = std::nan("");
  CHECK(map(x.data(), y.data(), 300) == 20002);
  CHECK(std::string(message()) == "argument 1 (x): expected finite values, got nan");
  if (codegen::nvrtc_available()) CHECK_NOTHROW(codegen::compile_with_nvrtc(f.source("cuda")));
}

namespace {

/// The emulated program writes what the processor's does.
template <class F, class... A>
std::string prints(F f, const A&... args) {
  const auto on_cpu = compile(f, {.target = Target::c, .name = "told"});
  const std::string expected = written([&] { on_cpu(args...); });
  CHECK(!expected.empty());
  if (!codegen::nvrtc_available()) return expected;
  const std::string text = compile(f, {.target = Target::cuda, .name = "told"}).source("cuda");
  INFO(text);
  const Emulated emulated(text, "told", true);
  std::vector<lantern::test::RawTensor> results;
  CHECK(written([&] { emulated(args...); }) == expected);
  CHECK(written([&] { results = emulated(args...); }) == expected);
  lantern::test::compare_all(results, on_cpu(args...), 2e-5);
  return expected;
}

}  // namespace

TEST_CASE("what a program prints is printed by the host, in order", "[cuda]") {
  prints([](Matrix x) {
    const Matrix y = Matrix((x + 1.0F) * 2.0F);
    print(y, "y");
    const Rep<float> s = sum(y);
    print(s, "s");
    print(y(1, 2), "element");
    print(x.dim(0), "rows");
    return std::tuple(s, Matrix(y + s));
  }, whole({20, 3}));
  // A loop that would be a kernel, and one that launches kernels in each iteration.
  prints([](Row x) {
    return FOR(0, x.dim(0), Rep<float>(0.0F), [&](Rep<std::int64_t> i, Rep<float> s) {
      print(x(i), "x");
      return s + x(i);
    });
  }, floats({5}));
  const std::string lines = prints([](Row w, Matrix x) {
    return FOR(0, 4, w, [&](Rep<std::int64_t> i, Row v) {
      const auto [l, g] = value_and_grad([&](Row u) {
        const Matrix r = x * u;
        return sum(r * r);
      })(v);
      print(i, "step");
      print(l, "loss");
      print(g, "slope");
      return Row(v - 0.015625F * g);
    });
  }, whole({6}), whole({8, 6}));  // sums are exact in any order
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 12);
  prints([](Row x) { return value_and_grad([](Row y) { return sum(exp(print_adjoint(y, "adjoint"))); })(x); }, floats({5}));
  prints([](Row x) { print(x, "none"); return Row(x * 2.0F); }, floats({0}));
}

namespace {

std::string at(int line, const char* how) { return "cuda_checks_test.cpp:" + std::to_string(line) + "=" + how; }

}  // namespace

TEST_CASE("loops are mapped as the user asks, with the same results", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto x = floats({40, 30});
  const auto sums = [](Matrix m) { return Row(sum<1>(m)); };
  const int line_of_sums = __LINE__ - 1;
  const auto plus = [](Matrix m) { return Matrix(m + 1.0F); };
  const int line_of_plus = __LINE__ - 1;
  const auto same = [&](const std::string& text, const auto& result) {
    INFO(text);
    const Emulated emulated(text, "mapped", true);
    lantern::test::compare_all(emulated(x), result, 2e-5);
    emulated.backwards(true);
    lantern::test::compare_all(emulated(x), result, 2e-5);
    return text;
  };
  const auto of = [](auto f, const std::string& how) {
    return compile(f, {.target = Target::cuda, .mappings = {how}, .name = "mapped"}).source("cuda");
  };
  const std::string rows = same(compile(sums, {.target = Target::cuda, .name = "mapped"}).source("cuda"), compile(sums)(x));
  CHECK_THAT(rows, Contains("lt_row_threads("));
  CHECK_THAT(same(of(sums, at(line_of_sums, "element")), compile(sums)(x)), !Contains("lt_row_threads(") && Contains("LT_THREAD;"));
  CHECK(same(of(sums, at(line_of_sums, "rows")), compile(sums)(x)) == rows);
  CHECK_THAT(same(of(sums, std::to_string(line_of_sums) + "=host"), compile(sums)(x)), !Contains("<<<") && Contains("_host"));
  CHECK_THAT(same(of(plus, at(line_of_plus, "rows")), compile(plus)(x)), Contains("lt_row_threads("));
  CHECK_THAT(same(of(plus, at(line_of_plus, "host")), compile(plus)(x)), !Contains("<<<"));
}

TEST_CASE("a mapping that cannot be is refused", "[cuda]") {
  const auto one = [](Row x) { return Row(exp(x)); };
  const int line_of_one = __LINE__ - 1;
  const auto columns = [](Row w, Labels l) {
    return FOR(0, l.dim(0), zeros<float>({10}), [&](Rep<std::int64_t> i, Rep<Tensor<float, 10>> h) { return h.set(l(i), h(l(i)) + w(i)); });
  };
  const int line_of_columns = __LINE__ - 2;
  const auto running = [](Row x) {
    return FOR(1, x.dim(0), x, [&](Rep<std::int64_t> i, Row t) { return t.set(i, t(i) * t(i - 1)); });
  };
  const int line_of_running = __LINE__ - 2;
  const auto refused = [](auto f, const std::string& how) {
    return raised([&] { compile(f, {.target = Target::cuda, .mappings = {how}}); });
  };
  CHECK_THAT(refused(one, at(line_of_one, "rows")),
             Contains("cannot be mapped to rows: it holds no loop whose iterations the threads of a block could share"));
  CHECK_THAT(refused(columns, at(line_of_columns, "element")),
             Contains("cannot be mapped to element: its iterations add to the same elements, in a tensor for each block"));
  CHECK_THAT(refused(running, at(line_of_running, "element")), Contains("its iterations are not independent"));
  CHECK(refused(one, "1=rows") ==
        "mapping: expected a line where a loop begins, got 1; lanternc --explain lists kernels by their lines");
  for (const char* wrong : {"rows", "12", "x.cpp=rows", "x.cpp:=host", "12=tiles", ":1=", "x:1y=rows"})
    CHECK(refused(one, wrong) ==
          std::string("mapping: expected a line and element, rows or host, such as model.cpp:12=rows, got '") + wrong + "'");
  CHECK(raised([&] { compile(one, {.target = Target::c, .mappings = {"1=rows"}}); }) == "compile: mappings go with Target::cuda");
}
