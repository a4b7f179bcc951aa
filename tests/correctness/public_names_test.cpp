// What `using namespace lantern` leaves to a program: every name that lantern.hpp does not list, at global scope too.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "lantern/lantern.hpp"

using namespace lantern;

// The compiler's own classes lie deeper.
struct Datum {};
struct Datums {};
struct Operation {};
struct Location {};
struct Mode {};
struct At {};
struct Context {};
struct Staging {};
struct Barrier {};
struct VarCell {};
struct Boxed {};
enum class Opcode { none };
static const int here = 13, context = 14, evaluate = 15, strip = 16, label_of = 17, resolved = 18;
static const bool detail_is_ours = true, ad = true, driver = true, control = true, detail = true;
namespace {
struct Part {};
struct Kind {};
struct Block {};
struct Function {};
struct Module {};
struct Value {};
}  // namespace

namespace {

// Functions of the program's own are overloads of those of Reps.
double sum(double a, double b) { return a + b; }
double dot(const std::vector<double>& a) { return a[0]; }
template <class T>
T relu(T x, int) {
  return x;
}

Rep<double> energy(Rep<Array<double>> a, Rep<Tensor<double, dyn, dyn>> m) {
  const auto b = ::lantern::core::fill(Rep<double>(2.0), a.size());
  Rep<double> e = FOR(0, a.size(), 0.0, [&](Rep<int64_t> i, Rep<double> s) { return s + exp(a[i]) * b[i]; });
  return e + m(0, 0) + max(e, 0.0);
}

}  // namespace

TEST_CASE("a program's own names stand beside lantern's") {
  const double fill = 7.0, matmul = 8.0, sign = 12.0;
  CHECK(fill + matmul + sign == 27.0);
  CHECK(sum(1.0, 2.0) + dot({3.0}) + relu(4.0, 1) == 10.0);
  CHECK(here + context + evaluate + strip + label_of + resolved == 93);
  CHECK((detail_is_ours && ad && driver && control && detail));
  CHECK(sizeof(Datum) + sizeof(Datums) + sizeof(Operation) + sizeof(Location) + sizeof(Mode) + sizeof(At) +
            sizeof(Context) + sizeof(Staging) + sizeof(Barrier) + sizeof(VarCell) + sizeof(Boxed) + sizeof(Part) +
            sizeof(Kind) + sizeof(Block) + sizeof(Function) + sizeof(Module) + sizeof(Value) ==
        17);
  CHECK(static_cast<int>(Opcode::none) == 0);

  const std::vector<double> a{0.0, 1.0}, m{3.0};
  const double e = 2.0 + 2.0 * std::exp(1.0);
  CHECK(eager(energy)(a, TensorView<const double>(m.data(), {1, 1})) == Approx(2.0 * e + 3.0));
}

namespace {

Rep<double> qualified(Rep<Array<double>> a, Rep<double> x) {
  const auto b = lantern::fill(2.0, a.size());
  return lantern::sum(lantern::exp(a) * b) + lantern::pow(x, 2.0) + lantern::max(0.5, x) + lantern::max(a) +
         lantern::dot(a, b) + lantern::clip(x, 0.0, 1.0);
}
Rep<double> unqualified(Rep<Array<double>> a, Rep<double> x) {
  const auto b = fill(2.0, a.size());
  return sum(exp(a) * b) + pow(x, 2.0) + max(0.5, x) + max(a) + dot(a, b) + clip(x, 0.0, 1.0);
}
Rep<double> standard(Rep<Array<double>> a, Rep<double> x) {
  const auto b = fill(2.0, a.size());
  return sum(std::exp(a) * b) + std::pow(x, 2.0) + std::max(0.5, x) + max(a) + dot(a, b) + std::clamp(x, 0.0, 1.0);
}

}  // namespace

TEST_CASE("each public header with functions of Reps has Rep and the names of lantern.hpp") {
  for (const std::string name : {"complex", "eigen", "linalg", "mdspan", "nn", "onnx", "random", "solvers", "special", "tensor"}) {
    CAPTURE(name);
    std::ifstream in(LANTERN_TEST_INCLUDE "/lantern/" + name + ".hpp");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    CHECK(text.find("\n#include \"lantern/lantern.hpp\"\n") != std::string::npos);
  }
}

TEST_CASE("functions of Reps have one name, with and without lantern::, as those of std do") {
  const std::vector<double> a{0.5, -1.0, 2.0};
  const double x = 0.75;
  double expected = x * x + x + 2.0 + 2.0 * 1.5 + x;
  for (const double v : a) expected += 2.0 * std::exp(v);
  CHECK(eager(qualified)(a, x) == Approx(expected));
  CHECK(eager(unqualified)(a, x) == eager(qualified)(a, x));
  CHECK(eager(standard)(a, x) == eager(qualified)(a, x));
  CHECK(eager(grad<1>(qualified))(a, x) == Approx(2.0 * x + 2.0));
  CHECK(eager(grad<1>(standard))(a, x) == Approx(2.0 * x + 2.0));
  // A second operand of another shape, a number first, whole numbers.
  const auto more = [](Rep<Tensor<double, dyn, dyn>> m, Rep<Tensor<double, dyn>> v, Rep<std::int64_t> n) {
    return sum(std::max(v, m)) + sum(lantern::pow(m, v)) + sum(std::min(1, m)) + cast<double>(std::max(n, 3));
  };
  const std::vector<double> m{1.0, 2.0, 3.0, 4.0}, v{2.0, 1.0};
  const double value = 2.0 + 2.0 + 3.0 + 4.0 + 1.0 + 2.0 + 9.0 + 4.0 + 4.0 + 3.0;
  CHECK(eager(more)(TensorView<const double>(m.data(), {2, 2}), v, 2) == value);
}

TEST_CASE("arrays and tensors: sizes, shapes, one another") {
  const auto f = [](Rep<Array<double>> a, Rep<Tensor<double, dyn>> t, Rep<Tensor<double, dyn, dyn>> m) {
    const Rep<Tensor<double, dyn>> as_vector = a;  // without being told
    const Rep<Array<double>> as_list = t;
    const auto z = zeros<double>(m.shape()) + full(2.0, {m.dim(0), 3}) + lantern::fill(1.0, 2, 3);
    return std::tuple(sum(a + t) + t[0] * as_vector[1] + as_list[0], m.size(), t.size(), sum(z), sum(a * as_vector),
                      sum(m + a));
  };
  const std::vector<double> a{1.0, 2.0, 3.0}, t{10.0, 20.0, 30.0}, m{1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
  const auto check = [&](const auto& call) {
    const auto [s, elements, length, z, squares, broadcast] = call(a, t, TensorView<const double>(m.data(), {2, 3}));
    CHECK(s == 66.0 + 20.0 + 10.0);
    CHECK(elements == 6);
    CHECK(length == 3);
    CHECK(z == 18.0);
    CHECK(squares == 14.0);
    CHECK(broadcast == 6.0 + 12.0);
  };
  check(eager(f));
  check(compile(f, {.target = Target::c}));
  const double table[] = {1.5, 2.5, 4.5};
  const auto look_up = [&](Rep<std::int64_t> i, Rep<double> x) { return constant_table(table)[i] * x; };
  CHECK(compile(look_up, {.target = Target::c})(2, 2.0) == 9.0);
  CHECK(eager(grad<1>(look_up))(1, 2.0) == 2.5);
  CHECK_THROWS_WITH(eager([](Rep<Tensor<double>> x) { return sum(Rep<Array<double>>(x)); })(
                        TensorView<const double>(m.data(), {2, 3})),
                    Catch::Contains("f64[?]"));
}

TEST_CASE("what hides a name of lantern's is asked for by its arguments or its place") {
  const auto f = [](Rep<double> x) {
    const double mode = 2.0;
    const bool on = true;
    return on ? mode * x * x : x;
  };
  CHECK(eager(grad<mode::forward>(f))(3.0) == 12.0);
}

TEST_CASE("std::clamp takes bounds that a program computes") {
  const auto f = [](Rep<double> x, Rep<double> lo, Rep<double> hi) { return std::clamp(x, lo, hi); };
  const auto slopes = compile(grad(f), {.target = Target::c});
  CHECK(slopes(5.0, 1.0, 3.0) == std::tuple(0.0, 0.0, 1.0));
  CHECK(slopes(0.0, 1.0, 3.0) == std::tuple(0.0, 1.0, 0.0));
  CHECK(slopes(2.0, 1.0, 3.0) == std::tuple(1.0, 0.0, 0.0));
}
