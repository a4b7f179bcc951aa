// Names of values, read from the source: of parameters, variables and the state of loops; and readable
// output.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "lantern/compiler/staging/source_text.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;
using Catch::Matchers::Contains;

namespace {

Rep<double> curve(Rep<double> time, Rep<double> speed) {
  Rep<double> way = time * speed;
  auto half = 0.5 * (way + 1.0);
  half += way;
  return half * half;
}

Rep<double> loops(Rep<double> start, Rep<std::int64_t> iterations) {
  auto low = WHILE(
      start, [](Rep<double> level) { return level > 1.0; }, [](Rep<double> level) { return level * 0.5; });
  return FOR(0, iterations, low,
             [&](Rep<std::int64_t> iteration, Rep<double> sum) { return sum + cast<double>(iteration) * sum; });
}

Rep<Array<double>> smooth(Rep<Array<double>> signal, Rep<std::int64_t> rounds) {
  const Rep<std::int64_t> n = signal.size();
  return FOR(0, rounds, fill(Rep<double>(0.0), n), [&](Rep<std::int64_t>, Rep<Array<double>> mean) {
    return FOR(0, n, mean, [&](Rep<std::int64_t> i, Rep<Array<double>> inner) {
      return IF(
          signal[i] > 0.0, [&] { return inner.set(i, inner[i] + signal[i]); }, [&] { return inner; });
    });
  });
}

Rep<double> one_line(Rep<double> x) {
  Rep<double> y = x * x;
  Rep<double> z = y + x;
  return z * y;
}

Rep<double> one_declaration(Rep<double> x) {
  Rep<double> y = max(x * x, x), z = y + x;
  return z * y;
}

const auto power =
    FUN<double(double, int64_t)>("power", [](auto self, Rep<double> base, Rep<int64_t> exponent) {
      return IF(
          exponent == 0, [&] { return Rep<double>(1.0); }, [&] { return base * self(base, exponent - 1); });
    });

template <class F>
std::string graph(F f) {
  std::vector<ir::Type> types;
  detail::types_of<typename detail::FunctionTraits<F>::Params>(types);
  return ir::print(*driver::stage("f", types, detail::program_of(f).run));
}

std::string body_of(const std::string& source, const std::string& function) {
  const std::size_t at = source.find(" " + function + "(");
  return at == std::string::npos ? source : source.substr(at, source.find("\n}\n", at) - at);
}

}  // namespace

TEST_CASE("parameters and variables have the user's names") {
  CHECK(graph(&curve) ==
        "entry @f\n\nfun @f(%time: f64, %speed: f64) -> f64 {\n"
        "  %way = mul %time, %speed : f64\n"
        "  %1 = constant 1 : f64\n"
        "  %2 = add %way, %1 : f64\n"
        "  %3 = constant 0.5 : f64\n"
        "  %half = mul %3, %2 : f64\n"
        "  %half.2 = add %half, %way : f64\n"
        "  %4 = mul %half.2, %half.2 : f64\n"
        "  yield %4\n}\n");
}

TEST_CASE("several variables on a line are told apart") {
  const std::string text = graph(&one_line);
  CHECK_THAT(text, Contains("%y = mul %x, %x") && Contains("%z = add %y, %x") && Contains("%1 = mul %z, %y"));
}

TEST_CASE("several variables of a declaration are told apart") {
  const std::string text = graph(&one_declaration);
  CHECK_THAT(text, Contains("%y = max %") && Contains("%z = add %y, %x") && Contains("mul %z, %y"));
}

TEST_CASE("the state of a loop has the names of its lambda") {
  const std::string text = graph(&loops);
  CHECK_THAT(text, Contains("%low = loop %start"));
  CHECK_THAT(text, Contains("(%level"));
  CHECK_THAT(text, Contains("%iteration") && Contains("%sum"));
}

TEST_CASE("the parameters of a FUN have names, without self") {
  CHECK_THAT(graph(power), Contains("(%base: f64, %exponent: i64) -> f64"));
}

TEST_CASE("generated code has sections, the user's names and his lines, each once") {
  const auto compiled = compile(grad<0>(&curve), {.target = Target::c, .opt = 3, .name = "slope"});
  CHECK(body_of(compiled.source("cpp"), "slope") ==
        " slope(double time, double speed) {\n"
        "  // forward\n"
        "  // Rep<double> way = time * speed;\n"
        "  double way = time * speed;\n"
        "  // auto half = 0.5 * (way + 1.0);\n"
        "  double half = 0.5 * (way + 1.0);\n"
        "  // half += way;\n"
        "  double half_2 = half + way;\n"
        "  // backward\n"
        "  // return half * half;\n"
        "  double d_half = half_2 + half_2;\n"
        "  // auto half = 0.5 * (way + 1.0);\n"
        "  double d_way = d_half + 0.5 * d_half;\n"
        "  // Rep<double> way = time * speed;\n"
        "  double d_time = speed * d_way;\n"
        "  return d_time;");
}

TEST_CASE("loops of a derivative are named in both parts") {
  const std::string text =
      compile(grad<0>(&loops), {.target = Target::c, .opt = 1, .name = "slope"}).source("c");
  CHECK_THAT(text, Contains("// forward\n") && Contains("// backward\n"));
  CHECK_THAT(text, Contains("double level = start;") && Contains("for (int64_t iteration = iterations; iteration-- > 0;)"));
  CHECK_THAT(text, Contains("double d_level") && Contains("double d_sum"));
  CHECK(text.find("// forward") < text.find("// backward"));
}

TEST_CASE("an array that loops and branches change in place goes by one name") {
  const auto f = compile(&smooth, {.target = Target::c, .name = "smooth"});
  const std::string text = f.source("c");
  const std::string body = text.substr(text.find("lt_f64_1d smooth(lt_workspace"));
  CHECK_THAT(body, Contains("lt_f64_1d mean = lt_new_f64_1d(") && Contains("mean.data[i] += ") &&
                       Contains("return mean;") && !Contains("inner.data") && !Contains("else"));
  CHECK(f(std::vector{1.0, -2.0, 3.0}, 4) == std::vector{4.0, 0.0, 12.0});
}

TEST_CASE("a function without derivative has no sections") {
  const std::string text = compile(&curve, {.target = Target::c}).source("cpp");
  CHECK_THAT(text,
             !Contains("// forward") && !Contains("// backward") && Contains("double way = time * speed;"));
}

TEST_CASE("code that is compiled in process is not held up by names") {
  // What is compiled may put `way` into the expression that uses it; what is shown does not.
  CHECK(compile(&curve, {.target = Target::c})(2.0, 3.0) ==
        compile(&curve, {.target = Target::cpp})(2.0, 3.0));
}

TEST_CASE("a reader of source text finds bodies and variables") {
  const SourceText text(
      "#define A { (\n"
      "// int no = 1; {\n"
      "int f(const Rep<double>& x, Rep<Tensor<double, 3, 4>> t = {}) const noexcept {\n"
      "  char c = '\"', d = '\\''; int big = 1'000;\n"
      "  const char* s = R\"x(auto raw = 1; { )\" )x\"; /* auto no = 2; */\n"
      "  auto [a, b] = g(x); Rep<double> y{x}; if (a == b) y = a; y -= x * (a + 1);\n"
      "  return [&](auto self, Rep<double> z) -> Rep<double> { return z; }(y);\n"
      "}\n");
  REQUIRE(text.bodies().size() == 2);
  const auto& f = text.bodies()[0].parameters;
  REQUIRE(f.size() == 2);
  CHECK(f[0].type == "const Rep<double>&");
  CHECK(f[0].name == "x");
  CHECK(f[1].type == "Rep<Tensor<double, 3, 4>>");
  CHECK(f[1].name == "t");
  CHECK(text.bodies()[1].parameters[0].type == "auto");
  std::vector<std::string> names;
  for (const auto& a : text.assignments())
    for (const std::string& name : a.names) names.push_back(name);
  CHECK(names == std::vector<std::string>{"c", "d", "big", "s", "a", "b", "y", "y"});
  CHECK(text.assignments()[5].value == "a");
}

TEST_CASE("an array that is filled from a list is no variable of a value") {
  const SourceText text(
      "const Function functions[] = {a(1), b}; v[i] = x; auto [] = g(); const auto& [p, q] = h();");
  REQUIRE(text.assignments().size() == 1);
  CHECK(text.assignments()[0].names == std::vector<std::string>{"p", "q"});
}

TEST_CASE("text that ends anywhere is read to its end") {
  const std::string whole =
      "Rep<double> f(Rep<double> x) { /* c */ auto y = R\"(a)\" + \"b\\\"\" + 'c'; auto [a, b] = g([&](int "
      "i) { return "
      "i; }); }";
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    const SourceText text(whole.substr(0, n));
    CHECK(text.bodies().size() <= 2);
    CHECK(text.line(1).end <= n);
    CHECK(text.line(2).end == 0);
  }
}
