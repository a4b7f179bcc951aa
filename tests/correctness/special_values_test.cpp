// Integers that wrap, casts of what no integer holds, NaN, infinities and zeros of either sign: each
// operation means the same eagerly, in C by tcc, in C++ by Clang at each level, in the lanes of vectors, and
// in sources that stand alone, which a compiler that knows nothing of wrapping reads.
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "depth.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/lantern.hpp"
#include "lantern/runtime/workspace.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using J = Rep<std::int32_t>;
using B = Rep<bool>;
using Integers = Rep<Array<std::int64_t>>;
using Numbers = Rep<Array<double>>;

constexpr auto least = std::numeric_limits<std::int64_t>::min(),
               most = std::numeric_limits<std::int64_t>::max();
constexpr double inf = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

const std::vector<std::int64_t> integers{
    0,          1,           -1,         2,           -3,         7,         1 << 20,
    2147483647, -2147483648, 2147483648, -2147483649, 4294967296, 1LL << 53, (1LL << 53) + 1,
    most,       most - 1,    least,      least + 1};
const std::vector<double> numbers{0.0,
                                  -0.0,
                                  1.0,
                                  -1.0,
                                  0.5,
                                  -0.5,
                                  1.5,
                                  2147483647.0,
                                  2147483647.5,
                                  2147483648.0,
                                  -2147483648.0,
                                  -2147483648.5,
                                  -2147483649.0,
                                  9223372036854774784.0,
                                  9223372036854775808.0,
                                  -9223372036854775808.0,
                                  -9223372036854777856.0,
                                  1e300,
                                  -1e300,
                                  3.4e38,
                                  1e-300,
                                  inf,
                                  -inf,
                                  not_a_number};

struct Way {
  std::string name;
  CompileOptions options;
};
const std::vector<Way> ways{{"tcc, 0", {.target = Target::c, .opt = 0, .strict_math = true}},
                            {"tcc, 3", {.target = Target::c, .opt = 3, .strict_math = true}},
                            {"clang, 0", {.target = Target::cpp, .opt = 0, .strict_math = true}},
                            {"clang, 1", {.target = Target::cpp, .opt = 1, .strict_math = true}},
                            {"clang, 2", {.target = Target::cpp, .opt = 2, .strict_math = true}},
                            {"clang, 3", {.target = Target::cpp, .opt = 3, .strict_math = true}}};

bool same(std::int64_t a, std::int64_t b) { return a == b; }
bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// An array of what `f` gives of each element, by a loop that may run in lanes.
template <class T, class G>
Rep<Array<T>> each(I n, G f) {
  return FOR(0, n, fill(Rep<T>(T(0)), n), [&](I i, Rep<Array<T>> out) { return out.set(i, f(i)); });
}

/// All results of every way against those of eager evaluation.
template <class P, class... A>
void check_ways(const P& program, const A&... arguments) {
  const auto expected = eager(program)(arguments...);
  constexpr std::size_t n = std::tuple_size_v<std::remove_cvref_t<decltype(expected)>>;
  for (const Way& way : ways) {
    const auto compiled = compile(program, way.options);
    const auto got = compiled(arguments...);
    const auto one = [&]<std::size_t k>(std::integral_constant<std::size_t, k>) {
      const auto &g = std::get<k>(got), &e = std::get<k>(expected);
      REQUIRE(g.size() == e.size());
      for (std::size_t i = 0; i < g.size(); ++i) {
        if (same(g[i], e[i])) continue;
        INFO(way.name << ", result " << k << ", element " << i << ": " << g[i] << " for " << e[i]);
        REQUIRE(same(g[i], e[i]));
      }
    };
    [&]<std::size_t... k>(std::index_sequence<k...>) { (one(std::integral_constant<std::size_t, k>{}), ...); }
    (std::make_index_sequence<n>{});
  }
}

/// All pairs.
template <class T>
std::pair<std::vector<T>, std::vector<T>> pairs(const std::vector<T>& values) {
  std::pair<std::vector<T>, std::vector<T>> all;
  for (const T& a : values)
    for (const T& b : values) {
      all.first.push_back(a);
      all.second.push_back(b);
    }
  return all;
}

}  // namespace

TEST_CASE("integers wrap, in 64 and in 32 bits", "[special values]") {
  const auto program = [](Integers a, Integers b) {
    const I n = a.size();
    const auto narrow = [](I x) { return cast<std::int32_t>(x); };
    const auto wide = [](J x) { return cast<std::int64_t>(x); };
    return std::tuple(
        each<std::int64_t>(n, [&](I i) { return a[i] + b[i]; }),
        each<std::int64_t>(n, [&](I i) { return a[i] - b[i]; }),
        each<std::int64_t>(n, [&](I i) { return a[i] * b[i]; }),
        each<std::int64_t>(n, [&](I i) { return -a[i]; }),
        each<std::int64_t>(n, [&](I i) { return min(a[i] + 1, b[i] - 1); }),
        each<std::int64_t>(n, [&](I i) { return select(a[i] < 0, -a[i], a[i]) + max(a[i], b[i]); }),
        each<std::int64_t>(n, [&](I i) { return select(a[i] + 1 > a[i], I(1), I(0)); }),
        each<std::int64_t>(n, [&](I i) { return wide(narrow(a[i]) + narrow(b[i])); }),
        each<std::int64_t>(n, [&](I i) { return wide(narrow(a[i]) * narrow(b[i]) - narrow(b[i])); }),
        each<std::int64_t>(n, [&](I i) { return wide(-narrow(a[i])); }),
        each<std::int64_t>(n, [&](I i) { return select(narrow(a[i]) + (-2147483647 - 1) < 0, I(1), I(0)); }),
        each<std::int64_t>(n,
                           [&](I i) {
                             return IF(
                                 b[i] != 0, [&] { return a[i] / b[i] + a[i] % b[i]; }, [] { return I(0); });
                           }),
        each<std::int64_t>(n,
                           [&](I i) {
                             const J y = narrow(b[i]);
                             return IF(
                                 y != 0, [&] { return wide(narrow(a[i]) / y) * 3 + wide(narrow(a[i]) % y); },
                                 [] { return I(0); });
                           }),
        each<std::int64_t>(n, [&](I i) { return sum(a) + dot(a, b) + i; }));
  };
  const auto [a, b] = pairs(integers);
  check_ways(program, a, b);
  CHECK(std::get<0>(eager(program)(std::vector{most}, std::vector<std::int64_t>{1}))[0] == least);
  CHECK(std::get<3>(eager(program)(std::vector{least}, std::vector<std::int64_t>{1}))[0] == least);
}

TEST_CASE("floating numbers become integers by saturation, NaN becomes 0", "[special values]") {
  const auto program = [](Numbers x) {
    const I n = x.size();
    return std::tuple(
        each<std::int64_t>(n, [&](I i) { return cast<std::int64_t>(x[i]); }),
        each<std::int64_t>(n, [&](I i) { return cast<std::int64_t>(cast<std::int32_t>(x[i])); }),
        each<std::int64_t>(n, [&](I i) { return cast<std::int64_t>(cast<float>(x[i])); }),
        each<std::int64_t>(n, [&](I i) { return cast<std::int64_t>(cast<std::int32_t>(cast<float>(x[i]))); }),
        each<std::int64_t>(n, [&](I i) { return cast<std::int64_t>(cast<bool>(x[i])); }),
        each<double>(n, [&](I i) { return cast<double>(cast<std::int64_t>(x[i])); }),
        each<double>(n, [&](I i) { return cast<double>(cast<float>(cast<std::int64_t>(x[i]))); }));
  };
  check_ways(program, numbers);
  const auto cast_of = [&](double x) {
    const auto r = eager(program)(std::vector{x});
    return std::tuple(std::get<0>(r)[0], std::get<1>(r)[0]);
  };
  CHECK(cast_of(not_a_number) == std::tuple(0, 0));
  CHECK(cast_of(inf) == std::tuple(most, 2147483647));
  CHECK(cast_of(-1e300) == std::tuple(least, -2147483648));
  CHECK(cast_of(-2147483648.5) == std::tuple(-2147483648, -2147483648));
  // A constant is no other number than one that is computed.
  const auto constant = [](D x) {
    return cast<std::int64_t>(D(not_a_number)) + cast<std::int64_t>(D(1e300)) + cast<std::int64_t>(x);
  };
  for (const Way& way : ways) CHECK(compile(constant, way.options)(-1.5) == most - 1);
}

TEST_CASE("min and max of numbers, NaN and zeros, and their derivatives", "[special values]") {
  const auto program = [](Numbers x, Numbers y) {
    const I n = x.size();
    const auto derivatives = [&](auto f) {
      return std::pair(
          each<double>(n, [=](I i) { return std::get<0>(grad(sig<double(double, double)>(f))(x[i], y[i])); }),
          each<double>(n,
                       [=](I i) { return std::get<1>(grad(sig<double(double, double)>(f))(x[i], y[i])); }));
    };
    const auto [dmin, dmin_y] = derivatives([](D a, D b) { return min(a, b); });
    const auto [dmax, dmax_y] = derivatives([](D a, D b) { return max(a, b); });
    return std::tuple(
        each<double>(n, [&](I i) { return min(x[i], y[i]); }),
        each<double>(n, [&](I i) { return max(x[i], y[i]); }),
        each<double>(n, [&](I i) { return cast<double>(min(cast<float>(x[i]), cast<float>(y[i]))); }),
        each<double>(n, [&](I i) { return cast<double>(max(cast<float>(x[i]), cast<float>(y[i]))); }), dmin,
        dmin_y, dmax, dmax_y, min(x, y), max(x, y));
  };
  const auto [x, y] = pairs(numbers);
  check_ways(program, x, y);
  const auto r = eager(program)(x, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double m = std::isnan(x[i]) ? y[i] : y[i] < x[i] ? y[i] : x[i];
    CHECK(same(std::get<0>(r)[i], m));
    // The derivative goes to the operand that is the result, half of it to each of two equal numbers.
    const double first = x[i] == y[i] ? 0.5 : std::isnan(y[i]) || x[i] < y[i] ? 1 : 0;
    CHECK(std::get<4>(r)[i] == first);
    CHECK(std::get<5>(r)[i] == 1 - first);
  }
}

TEST_CASE("the largest element of numbers and NaN, and the logarithm of a sum of exponentials",
          "[special values]") {
  const auto program = [](Numbers x) {
    const auto soft = [](Numbers v) { return logsumexp(v); };
    return std::tuple(fill(cast<double>(argmax(x)), 1), fill(logsumexp(x), 1), grad(soft)(x),
                      hvp(soft)(x, fill(D(1.0), x.size())));
  };
  const auto value = [&](std::vector<double> x) {
    check_ways(program, x);
    const auto r = eager(program)(x);
    return std::tuple(std::get<0>(r)[0], std::get<1>(r)[0], std::get<2>(r));
  };
  const auto [at, of, d] = value({-inf, -inf, -inf});
  CHECK((at == 0 && of == -inf && d == std::vector<double>{0, 0, 0}));
  CHECK(std::get<1>(value({0.0, inf, -inf})) == inf);
  CHECK(std::get<2>(value({-inf, 3.0})) == std::vector<double>{0, 1});
  CHECK(std::get<0>(value({not_a_number, 1.0, 2.0, not_a_number})) == 2);
  CHECK(std::isnan(std::get<1>(value({not_a_number, 1.0}))));
  CHECK(std::isnan(std::get<1>(value({not_a_number, not_a_number}))));
}

TEST_CASE("lgamma and polygamma below zero", "[special values]") {
  const auto f = [](D x) { return lgamma(x); };
  const auto d1 = grad(sig<double(double)>(f));
  const auto d2 = grad(d1);
  const auto d3 = grad(d2);
  const auto program = [=](Numbers x) {
    const I n = x.size();
    return std::tuple(
        each<double>(n, [&](I i) { return lgamma(x[i]); }), each<double>(n, [&](I i) { return d1(x[i]); }),
        each<double>(n, [&](I i) { return d2(x[i]); }), each<double>(n, [&](I i) { return d3(x[i]); }));
  };
  const std::vector<double> x{0.0,  -0.0, -1.0, -2.0, -0.5, -1.25, -7.75,       -20.5,
                              1e-3, 1.0,  2.5,  30.0, inf,  -inf,  not_a_number};
  const auto expected = eager(program)(x);
  for (const Way& way : ways) {
    const auto got = compile(program, way.options)(x);
    const auto compare = [&](const std::vector<double>& g, const std::vector<double>& e, int order) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        INFO(way.name << ", derivative " << order << " at " << x[i] << ": " << g[i] << " for " << e[i]);
        CHECK((same(g[i], e[i]) || std::abs(g[i] - e[i]) <= 1e-13 * std::abs(e[i])));
      }
    };
    compare(std::get<0>(got), std::get<0>(expected), 0);
    compare(std::get<1>(got), std::get<1>(expected), 1);
    compare(std::get<2>(got), std::get<2>(expected), 2);
    compare(std::get<3>(got), std::get<3>(expected), 3);
  }
  CHECK(std::get<2>(expected)[4] == Approx(8.93480220054467931));  // trigamma(-1/2) = pi^2 / 2 + 4
  CHECK(std::get<2>(expected)[0] == inf);
  CHECK(std::isnan(std::get<1>(expected)[2]));
}

namespace {

/// Expressions over integers and floating numbers at random, which no rounding can change: the same
/// arithmetic whatever is fused, and no sum of products.
class RandomExpression {
 public:
  RandomExpression(unsigned seed, I a, I b, D x, D y) : random_(seed), a_(a), b_(b), x_(x), y_(y) {}

  I integer(int depth) {
    if (depth == 0) return leaf();
    switch (pick(11)) {
      case 0:
        return integer(depth - 1) + integer(depth - 1);
      case 1:
        return integer(depth - 1) - integer(depth - 1);
      case 2:
        return integer(depth - 1) * integer(depth - 1);
      case 3:
        return -integer(depth - 1);
      case 4:
        return min(integer(depth - 1), integer(depth - 1));
      case 5:
        return max(integer(depth - 1), integer(depth - 1));
      case 6:
        return cast<std::int64_t>(narrow(depth - 1));
      case 7:
        return cast<std::int64_t>(number(depth - 1));
      case 8:
        return select(condition(depth - 1), integer(depth - 1), integer(depth - 1));
      case 9:
        return cast<std::int64_t>(condition(depth - 1));
      default:
        return cast<std::int64_t>(cast<float>(number(depth - 1)));
    }
  }
  D number(int depth) {
    if (depth == 0) return pick(2) ? x_ : y_;
    switch (pick(12)) {
      case 0:
        return -number(depth - 1);
      case 1:
        return abs(number(depth - 1));
      case 2:
        return min(number(depth - 1), number(depth - 1));
      case 3:
        return max(number(depth - 1), number(depth - 1));
      case 4:
        return floor(number(depth - 1));
      case 5:
        return sign(number(depth - 1));
      case 6:
        return sqrt(number(depth - 1));
      case 7:
        return number(depth - 1) / number(depth - 1);
      case 8:
        return number(depth - 1) * number(depth - 1);
      case 9:
        return cast<double>(integer(depth - 1));
      case 10:
        return cast<double>(cast<float>(number(depth - 1)));
      default:
        return select(condition(depth - 1), number(depth - 1), number(depth - 1));
    }
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  I leaf() {
    switch (pick(4)) {
      case 0:
        return I(integers[random_() % integers.size()]);
      case 1:
        return b_;
      default:
        return a_;
    }
  }
  J narrow(int depth) {
    if (depth == 0) return cast<std::int32_t>(leaf());
    switch (pick(6)) {
      case 0:
        return narrow(depth - 1) + narrow(depth - 1);
      case 1:
        return narrow(depth - 1) * narrow(depth - 1);
      case 2:
        return J(-2147483647 - 1) - narrow(depth - 1);
      case 3:
        return cast<std::int32_t>(number(depth - 1));
      case 4:
        return cast<std::int32_t>(integer(depth - 1));
      default:
        return max(-narrow(depth - 1), narrow(depth - 1));
    }
  }
  B condition(int depth) {
    switch (pick(4)) {
      case 0:
        return integer(depth) < integer(depth);
      case 1:
        return number(depth) <= number(depth);
      case 2:
        return narrow(depth) == narrow(depth);
      default:
        return number(depth) != number(depth);
    }
  }

  std::mt19937 random_;
  I a_, b_;
  D x_, y_;
};

/// Two columns of what two random expressions give, in loops that may run in lanes.
auto random_program(unsigned seed, int depth) {
  return [=](Integers a, Integers b, Numbers x, Numbers y) {
    const auto at = [=](I i) { return RandomExpression(seed, a[i], b[i], x[i], y[i]); };
    return std::tuple(each<std::int64_t>(a.size(), [&](I i) { return at(i).integer(depth); }),
                      each<double>(a.size(), [&](I i) { return at(i).number(depth); }));
  };
}

struct Columns {
  std::vector<std::int64_t> a, b;
  std::vector<double> x, y;
};
Columns random_columns(unsigned seed, std::size_t n) {
  std::mt19937 random(seed);
  Columns c;
  for (std::size_t i = 0; i < n; ++i) {
    c.a.push_back(integers[random() % integers.size()]);
    c.b.push_back(static_cast<std::int64_t>(random()) << (random() % 33));
    c.x.push_back(numbers[random() % numbers.size()]);
    c.y.push_back(random() % 2 ? numbers[random() % numbers.size()]
                               : std::ldexp(static_cast<double>(random() % 1000 + 1000),
                                            static_cast<int>(random() % 140) - 70));
  }
  return c;
}

}  // namespace

TEST_CASE("random expressions of special values agree in every way", "[special values]") {
  lantern::test::Seeds(6, 1000).each([](unsigned seed) {
    INFO("seed " << seed);
    const Columns c = random_columns(seed, 96);
    check_ways(random_program(seed, 3), c.a, c.b, c.x, c.y);
  });
}

namespace {

/// Code of a source that stands alone, in a directory of its own.
class StandAlone {
 public:
  /// By the system's compiler, without a word about wrapping. `trap`: what C leaves undefined in arithmetic
  /// of integers and in casts ends the process.
  StandAlone(const std::string& text, const std::string& language, bool trap) {
    const std::string source = directory_.path() / ("f." + language), library = directory_.path() / "f.so";
    std::ofstream(source) << text;
    std::vector<std::string> command{LANTERN_TEST_COMPILER,
                                     "-x",
                                     language == "c" ? "c" : "c++",
                                     "-O3",
                                     "-march=native",
                                     "-ffp-contract=off",
                                     "-w",
                                     "-shared",
                                     "-fPIC"};
    if (trap)
      command.insert(command.end(), {"-fsanitize=signed-integer-overflow,float-cast-overflow",
                                     "-fsanitize-undefined-trap-on-error"});
    command.insert(command.end(), {source, "-o", library, "-lm"});
    const codegen::ProcessResult built = codegen::run_process(command);
    INFO(built.err);
    REQUIRE(built.status == 0);
    library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library_ != nullptr);
    entry_ = reinterpret_cast<lt_entry*>(::dlsym(library_, "f_entry"));
    REQUIRE(entry_ != nullptr);
  }
  StandAlone(const StandAlone&) = delete;
  StandAlone& operator=(const StandAlone&) = delete;
  ~StandAlone() { ::dlclose(library_); }
  lt_entry* entry() const { return entry_; }

 private:
  codegen::TemporaryDirectory directory_;
  void* library_ = nullptr;
  lt_entry* entry_ = nullptr;
};

template <class T>
struct Descriptor {
  const T* data;
  std::int64_t size;
};

}  // namespace

TEST_CASE("a source that stands alone wraps and saturates too, whatever its compiler is told",
          "[special values]") {
  for (const unsigned seed : {1u, 2u}) {
    const auto program = random_program(seed, 4);
    const Columns c = random_columns(seed, 96);
    const auto [first, second] = eager(program)(c.a, c.b, c.x, c.y);
    for (const std::string language : {"c", "cpp"}) {
      const auto compiled = compile(
          program, {.target = language == "c" ? Target::c : Target::cpp, .strict_math = true, .name = "f"});
      for (const bool trap : {false, true}) {
        const StandAlone alone(compiled.source(language), language, trap);
        const Descriptor<std::int64_t> a{c.a.data(), 96}, b{c.b.data(), 96};
        const Descriptor<double> x{c.x.data(), 96}, y{c.y.data(), 96};
        Descriptor<std::int64_t> r{};
        Descriptor<double> q{};
        const void* const in[] = {&a, &b, &x, &y};
        void* const out[] = {&r, &q};
        Workspace ws;
        ws.call(alone.entry(), in, out);
        INFO("seed " << seed << ", " << language);
        CHECK(std::equal(first.begin(), first.end(), r.data));
        CHECK(
            std::equal(second.begin(), second.end(), q.data, [](double u, double v) { return same(u, v); }));
      }
    }
  }
}
