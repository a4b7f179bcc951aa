// Products of groups of indices that a routine computes (passes/lower_product, "K:contract"): batches, sums over several
// indices, convolutions and their gradients, against eager evaluation, in every target and in threads.
#include <catch2/catch.hpp>
#include <cmath>
#include <lantern/tensor.hpp>

#include "../occurrences.hpp"

using namespace lantern;

namespace {

template <class E>
using T2 = Rep<Tensor<E, dyn, dyn>>;
template <class E>
using T3 = Rep<Tensor<E, dyn, dyn, dyn>>;
template <class E>
using T4 = Rep<Tensor<E, dyn, dyn, dyn, dyn>>;
using Shape = std::vector<std::int64_t>;

template <class E>
TensorValue<E> numbers(const Shape& shape, double phase) {
  TensorValue<E> t(shape);
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<E>(std::sin(1.3 * static_cast<double>(i) + phase));
  return t;
}

template <class E>
void same(const TensorValue<E>& a, const TensorValue<E>& b) {
  REQUIRE(a.shape == b.shape);
  double largest = 1, worst = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(b.data[i])));
    worst = std::max(worst, std::abs(static_cast<double>(a.data[i]) - static_cast<double>(b.data[i])));
  }
  CHECK(worst <= largest * (std::is_same_v<E, float> ? 2e-5 : 1e-13));
}

struct Shapes {
  Shape x, y;
};
struct Way {
  const char* name;
  CompileOptions options;
};

/// The value and the gradient of a function of two tensors of several shapes: run, and compiled in all ways.
template <class E, class X, class Y, class F>
void check(const char* name, F f, const std::vector<Shapes>& shapes) {
  INFO(name << (std::is_same_v<E, float> ? " of floats" : " of doubles"));
  const auto both = [f](X a, Y b) {
    const auto loss = [f](X u, Y v) {
      const auto r = f(u, v);
      return sum(r * r) + sum(sin(r));
    };
    const auto [x_bar, y_bar] = grad(loss)(a, b);
    return std::tuple(f(a, b), x_bar, y_bar);
  };
  using Results = decltype(eager(both)(TensorValue<E>(shapes[0].x), TensorValue<E>(shapes[0].y)));
  std::vector<Results> expected;
  for (const Shapes& s : shapes) expected.push_back(eager(both)(numbers<E>(s.x, 0.1), numbers<E>(s.y, 0.7)));
  // Clang takes a while over the routines: every second program is for threads.
  static int programs = 0;
  const Way optimised = programs++ % 2 == 0 ? Way{"C++, three threads", {.target = Target::cpp, .threads = 3}}
                                            : Way{"C++", {.target = Target::cpp}};
  for (const Way& way :
       {optimised, Way{"C", {.target = Target::c}}, Way{"C, unoptimised", {.target = Target::c, .opt = 0}}}) {
    INFO(way.name);
    const auto compiled = compile(both, way.options);
    if (way.options.target == Target::cpp) {
      const std::string source = compiled.source("cpp");
      CHECK((source.find("lt_contract_") != std::string::npos || source.find("lt_gemm_") != std::string::npos));
    }
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const Shapes& s = shapes[i];
      INFO("shapes " << Catch::StringMaker<Shape>::convert(s.x) << " " << Catch::StringMaker<Shape>::convert(s.y));
      const auto got = compiled(numbers<E>(s.x, 0.1), numbers<E>(s.y, 0.7));
      same<E>(std::get<0>(got), std::get<0>(expected[i]));
      same<E>(std::get<1>(got), std::get<1>(expected[i]));
      same<E>(std::get<2>(got), std::get<2>(expected[i]));
    }
  }
}

/// Shapes by sizes that fill no tile, one and several, with ones and zeros among them.
template <class Make>
std::vector<Shapes> of_all_sizes(Make make) {
  std::vector<Shapes> all;
  for (const Shape& s : std::vector<Shape>{{2, 3, 5, 7}, {1, 1, 1, 1}, {3, 0, 4, 2}, {2, 5, 0, 3}, {3, 33, 20, 40}})
    all.push_back(make(s[0], s[1], s[2], s[3]));
  return all;
}

}  // namespace

TEST_CASE("products with batches and with several indices summed over", "[contraction]") {
  using N = std::int64_t;
  check<double, T3<double>, T3<double>>("bij,bjk->bik", [](auto x, auto y) { return einsum<"bij,bjk->bik">(x, y); },
                                        of_all_sizes([](N b, N i, N j, N k) { return Shapes{{b, i, j}, {b, j, k}}; }));
  check<float, T3<float>, T3<float>>("tbi,tbj->ij", [](auto x, auto y) { return einsum<"tbi,tbj->ij">(x, y); },
                                     of_all_sizes([](N t, N i, N b, N j) { return Shapes{{t, b, i}, {t, b, j}}; }));
  check<double, T3<double>, T2<double>>("ibj,kj->kib", [](auto x, auto y) { return einsum<"ibj,kj->kib">(x, y); },
                                        of_all_sizes([](N b, N i, N j, N k) { return Shapes{{i, b, j}, {k, j}}; }));
  check<float, T4<float>, T4<float>>("abij,akbj->bika", [](auto x, auto y) { return einsum<"abij,akbj->bika">(x, y); },
                                     of_all_sizes([](N b, N i, N j, N k) { return Shapes{{2, b, i, j}, {2, k, b, j}}; }));
}

TEST_CASE("plain products of every shape", "[contraction]") {
  std::vector<Shapes> as_they_lie, turned;
  for (const Shape& s : {Shape{1, 1, 1}, {4, 5, 6}, {20, 70, 50}, {13, 33, 290}, {60, 10, 270}, {26, 270, 260},
                         {0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {26, 35, 65}, {1, 300, 37}, {3, 7, 530}, {4, 9, 128}, {5, 6, 130}}) {
    as_they_lie.push_back({{s[0], s[2]}, {s[2], s[1]}});
    turned.push_back({{s[0], s[2]}, {s[1], s[2]}});
  }
  check<float, T2<float>, T2<float>>("x y", [](auto x, auto y) { return matmul(x, y); }, as_they_lie);
  check<double, T2<double>, T2<double>>("x y'", [](auto x, auto y) { return matmul(x, transpose(y)); }, turned);
}

TEST_CASE("convolutions, padded, with steps, gaps and groups", "[contraction]") {
  struct Case {
    std::int64_t stride, padding, dilation, groups;
  };
  for (const Case c : {Case{1, 0, 1, 1}, {1, 1, 1, 2}, {2, 3, 1, 1}, {2, 0, 2, 2}, {3, 1, 2, 1}}) {
    INFO("stride " << c.stride << " padding " << c.padding << " dilation " << c.dilation << " groups " << c.groups);
    const ConvolutionOptions o{.stride = c.stride, .padding = c.padding, .dilation = c.dilation, .groups = c.groups};
    check<double, T4<double>, T4<double>>("conv2d", [o](auto x, auto w) { return conv2d(x, w, o); },
                                          {{{2, 4, 7, 9}, {6, 4 / c.groups, 3, 2}}, {{1, 6, 20, 16}, {4, 6 / c.groups, 3, 3}}});
  }
  check<float, T4<float>, T4<float>>("a window of one", [](auto x, auto w) { return conv2d(x, w); },
                                     {{{2, 20, 16, 20}, {34, 20, 1, 1}}, {{2, 3, 2, 2}, {4, 3, 1, 1}}});
  check<double, T4<double>, T4<double>>(
      "transposed", [](auto x, auto w) { return conv_transpose(x, w, {.stride = 2, .padding = 1, .output_padding = 1}); },
      {{{2, 6, 5, 6}, {6, 4, 3, 3}}});
  check<double, T3<double>, T4<double>>("a channel put in",
                                        [](auto x, auto w) { return conv2d(unsqueeze<1>(x), w, {.padding = 1}); },
                                        {{{2, 7, 9}, {6, 1, 3, 2}}});
  check<double, T3<double>, T3<double>>("conv1d", [](auto x, auto w) { return conv1d(x, w, {.stride = 3, .padding = 2}); },
                                        {{{2, 3, 30}, {5, 3, 4}}});
}

TEST_CASE("convolutions by filters of 3 by 3 take fewer products", "[contraction]") {
  // Pictures whose sides are odd, even and longer than a tile has columns; channels that fill panels and that do not.
  struct Case {
    Shape x, w;
    std::int64_t padding, groups;
  };
  for (const Case& c : {Case{{2, 13, 9, 12}, {25, 13, 3, 3}, 0, 1}, {{1, 16, 20, 75}, {12, 16, 3, 3}, 1, 1},
                        {{1, 32, 40, 41}, {40, 16, 3, 3}, 1, 2}, {{1, 290, 8, 7}, {14, 290, 3, 3}, 1, 1}}) {
    INFO(Catch::StringMaker<Shape>::convert(c.x) << " " << Catch::StringMaker<Shape>::convert(c.w));
    const auto checked = [&]<class E>(E) {
      const auto w = numbers<E>(c.w, 0.5);
      const auto x = numbers<E>(c.x, 0.1);
      const auto f = [&](T4<E> a, Rep<Tensor<E, dyn, dyn, 3, 3>> v) {
        return conv2d(a, v, {.padding = c.padding, .groups = c.groups});
      };
      // Alone, and added to what there is; in one program, for LLVM takes a while over the routine.
      const auto both = [&](T4<E> a, Rep<Tensor<E, dyn, dyn, 3, 3>> v) {
        return std::tuple(f(a, v), f(a + a, v) + f(a + a + a, v));
      };
      const auto compiled = compile(both, {.target = Target::cpp});
      CHECK(compiled.source("cpp").find("lt_convolve_") != std::string::npos);
      const auto [once, twice] = compiled(x, w);
      const auto [expected, expected_twice] = eager(both)(x, w);
      same<E>(once, expected);
      same<E>(twice, expected_twice);
    };
    checked(float{});
    checked(double{});
  }
}

TEST_CASE("a depthwise convolution between two others", "[contraction]") {
  using Picture = Rep<Tensor<float, 1, 64, 14, 14>>;
  using Filters = Rep<Tensor<float, 64, 64, 1, 1>>;
  using Depthwise = Rep<Tensor<float, 64, 1, 3, 3>>;
  const auto f = [](Picture x, Filters w, Depthwise v, Filters u) {
    const auto y = max(0.0F, conv2d(x, w));
    const auto padded = pad(y, {{0, 0}, {0, 0}, {1, 1}, {1, 1}});
    return conv2d(max(0.0F, conv2d(padded, v, {.groups = 64})), u);
  };
  const auto compiled = compile(f, {.target = Target::cpp});
  // The last maximum lies where the depthwise convolution put its sums.
  CHECK(test::count(compiled.source("cpp"), " = lt_new_") == 4);
  const auto x = numbers<float>({1, 64, 14, 14}, 0.1), w = numbers<float>({64, 64, 1, 1}, 0.5),
             v = numbers<float>({64, 1, 3, 3}, 0.2), u = numbers<float>({64, 64, 1, 1}, 0.9);
  same<float>(compiled(x, w, v, u), eager(f)(x, w, v, u));
}

TEST_CASE("windows of each channel call a routine, whatever lies outside", "[contraction]") {
  struct Case {
    Shape x;
    ConvolutionOptions how;
  };
  const std::vector<Case> cases = {{{2, 4, 70, 7}, {.padding = 1}},
                                   {{2, 4, 19, 73}, {.stride = {3, 1}, .padding = {2, 1}, .dilation = 2}},
                                   {{1, 4, 28, 30}, {.stride = 2, .padding = 1}},
                                   {{1, 4, 30, 21}, {.stride = {1, 4}, .padding = 8, .dilation = 5}},
                                   {{1, 4, 5, 40}, {.padding = 1}},
                                   {{1, 4, 6, 60}, {.padding = {2, 1}}}};
  const auto checked = [&]<class E, std::int64_t high, std::int64_t wide>(const Case& c, Rep<Tensor<E, 4, 1, high, wide>>,
                                                                          bool everywhere) {
    INFO(Catch::StringMaker<Shape>::convert(c.x));
    using Filters = Rep<Tensor<E, 4, 1, high, wide>>;
    const auto x = numbers<E>(c.x, 0.1), w = numbers<E>({c.x[1], 1, high, wide}, 0.5);
    const auto all = [&](T4<E> a, Filters v) {
      const auto f = [&](T4<E> b, Filters u) { return conv2d(b, u, {c.how.stride, c.how.padding, c.how.dilation, c.x[1]}); };
      const auto [by_x, by_w] = grad([&](T4<E> b, Filters u) { return sum(exp(f(b, u) * E(0.1))); })(a, v);
      return std::tuple(f(a, v), f(a, v) + f(a + a, v), by_x, by_w);
    };
    const auto expected = eager(all)(x, w);
    const auto check_all = [&](const CompileOptions& options) {
      const auto compiled = compile(all, options);
      if (options.target == Target::cpp && options.threads < 2 && options.reassociate)
        CHECK(compiled.source("cpp").find("lt_windows_") != std::string::npos);
      const auto got = compiled(x, w);
      same<E>(std::get<0>(got), std::get<0>(expected));
      same<E>(std::get<1>(got), std::get<1>(expected));
      same<E>(std::get<2>(got), std::get<2>(expected));
      const auto &w_got = std::get<3>(got), &w_expected = std::get<3>(expected);
      REQUIRE(w_got.shape == w_expected.shape);
      for (std::size_t i = 0; i < w_got.data.size(); ++i)
        CHECK(w_got.data[i] == Approx(w_expected.data[i]).epsilon(1e-3).margin(sizeof(E) == 4 ? 1e-3 : 1e-10));
    };
    check_all({.target = Target::cpp});
    if (!everywhere) return;
    check_all({.target = Target::c});
    check_all({.target = Target::cpp, .threads = 2});
    check_all({.target = Target::cpp, .reassociate = false});
  };
  for (std::size_t k = 0; k < cases.size(); ++k)
    if (k % 2 == 0)
      checked(cases[k], Rep<Tensor<float, 4, 1, 3, 3>>{}, false);
    else
      checked(cases[k], Rep<Tensor<double, 4, 1, 5, 3>>{}, k == 1);
}

TEST_CASE("what the processor's routine reads outside has no source for a GPU", "[contraction]") {
  const auto f = [](T4<float> x, Rep<Tensor<float, 4, 1, 3, 3>> w) { return conv2d(x, w, {1, 1, 1, 4}); };
  const auto compiled = compile(f, {.target = Target::cpp});
  CHECK_THROWS_WITH(compiled.source("cuda"), Catch::Matchers::Contains("compile the program with Target::cuda"));
  CHECK(compiled.source("cpp").find("lt_windows_") != std::string::npos);
}

TEST_CASE("sums that keep their order call no routine", "[contraction]") {
  const auto f = [](T3<double> x, T3<double> y) { return einsum<"bij,bjk->bik">(x, y); };
  const auto compiled = compile(f, {.target = Target::cpp, .reassociate = false});
  CHECK(compiled.source("cpp").find("lt_contract_") == std::string::npos);
  const auto x = numbers<double>({3, 5, 7}, 0.1), y = numbers<double>({3, 7, 6}, 0.5);
  same<double>(compiled(x, y), eager(f)(x, y));
}

TEST_CASE("a product is added to what there is", "[contraction]") {
  const auto f = [](T3<double> r, T3<double> x, T3<double> y) {
    const auto twice = einsum<"bij,bjk->bik">(x, y);
    return r + twice + einsum<"bij,bjk->bik">(x + x, y) + 2.0 * twice;
  };
  const auto r = numbers<double>({3, 20, 35}, 0.3), x = numbers<double>({3, 20, 40}, 0.1), y = numbers<double>({3, 40, 35}, 0.5);
  same<double>(compile(f, {.target = Target::cpp})(r, x, y), eager(f)(r, x, y));
  // Few rows, whose products are sums of products of vectors.
  const auto turned = [](T2<float> c, T2<float> a, T2<float> b) {
    return FOR(0, 3, c, [&](Rep<std::int64_t>, T2<float> s) { return T2<float>(s + matmul(a, transpose(b)) * 0.5F); });
  };
  const auto rows = compile(turned, {.target = Target::cpp});
  for (const std::int64_t m : {1, 2, 4, 5})
    for (const std::int64_t k : {1, 15, 16, 530}) {
      INFO(m << " rows, sums of " << k);
      const auto c = numbers<float>({m, 9}, 0.3), a = numbers<float>({m, k}, 0.1), b = numbers<float>({9, k}, 0.5);
      same<float>(rows(c, a, b), eager(turned)(c, a, b));
    }
  same<double>(compile(f, {.target = Target::cpp, .threads = 2})(r, x, y), eager(f)(r, x, y));
}

TEST_CASE("matrices that are known to be small are loops", "[contraction]") {
  const auto f = [](Rep<Tensor<double, dyn, 3, 4>> x, Rep<Tensor<double, dyn, 4, 2>> y) {
    return einsum<"bij,bjk->bik">(x, y);
  };
  const auto compiled = compile(f, {.target = Target::cpp});
  CHECK(compiled.source("cpp").find("lt_contract_") == std::string::npos);
  const auto x = numbers<double>({50, 3, 4}, 0.1), y = numbers<double>({50, 4, 2}, 0.5);
  same<double>(compiled(x, y), eager(f)(x, y));
}

TEST_CASE("small convolutions, with padding and without, are as eagerly", "[contraction]") {
  const auto x = numbers<float>({1, 4, 8, 8}, 0.1), w = numbers<float>({4, 4, 3, 3}, 0.5);
  for (const std::int64_t padding : {0, 1}) {
    const auto f = [padding](Rep<Tensor<float, 1, 4, 8, 8>> a, Rep<Tensor<float, 4, 4, 3, 3>> b) {
      return conv2d(a, b, {.padding = padding});
    };
    same<float>(compile(f, {.target = Target::cpp})(x, w), eager(f)(x, w));
  }
}

TEST_CASE("truth values go through memory in lanes", "[contraction]") {
  const auto f = [](Rep<Tensor<float, dyn>> x, Rep<Tensor<float, dyn>> w) {
    const auto positive = x > 0.0F;
    const auto kept = positive & (w < 0.5F);
    return std::tuple(positive, kept, where(kept, x * w, exp(x)));
  };
  for (const int lanes : {2, 4, 8}) {
    const auto compiled = compile(f, {.target = Target::cpp, .lanes = lanes});
    for (const std::int64_t n : {0, 1, 5, 31, 1000}) {
      INFO(n << " elements, " << lanes << " lanes");
      const auto x = numbers<float>({n}, 0.2), w = numbers<float>({n}, 1.1);
      const auto [a, b, c] = compiled(x, w);
      const auto [p, q, r] = eager(f)(x, w);
      CHECK(a.data == p.data);
      CHECK(b.data == q.data);
      same<float>(c, r);
      CHECK(compiled.source("cpp").find("lt_store_boolx") != std::string::npos);
    }
  }
}
