// Convolutions and pooling: values against plain loops, derivatives against differences, forward against reverse,
// eager against compiled.
#include <cmath>
#include <functional>
#include <lantern/tensor.hpp>
#include <numeric>

#include "catch2/catch.hpp"

using namespace lantern;

namespace {

using T = Rep<Tensor<double>>;
using Values = TensorValue<double>;
using Shape = std::vector<std::int64_t>;
using Function = std::function<T(const T&, const T&)>;

Values numbers(const Shape& shape, double phase) {
  Values t(shape);
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = std::sin(1.3 * static_cast<double>(i) + phase);
  return t;
}

void same(const Values& a, const Values& b, double tolerance) {
  CHECK(a.shape == b.shape);
  REQUIRE(a.data.size() == b.data.size());
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    INFO("element " << i);
    CHECK(a.data[i] == Approx(b.data[i]).epsilon(tolerance).margin(tolerance));
  }
}

Values check(const char* name, const Function& f, const Values& x, const Values& w) {
  INFO(name);
  const auto program = [f](T a, T b) { return f(a, b); };
  const auto scalar = [f](T a, T b) {
    const T y = f(a, b);
    return sum(y * y) + sum(sin(y));
  };
  const auto both = [program, scalar](T a, T b) {  // in one program: LLVM's time goes by the routines that it calls
    const auto [a_bar, b_bar] = grad(scalar)(a, b);
    return std::tuple(program(a, b), a_bar, b_bar);
  };
  const Values y = eager(program)(x, w);
  const auto gradient = eager(grad(scalar))(x, w);
  for (const Target target : {Target::c, Target::cpp}) {
    INFO((target == Target::c ? "C" : "C++"));
    const auto [value, dx, dw] = compile(both, {.target = target, .opt = target == Target::c ? 0 : 2})(x, w);
    same(value, y, 1e-12);
    same(dx, std::get<0>(gradient), 1e-9);
    same(dw, std::get<1>(gradient), 1e-9);
  }
  const Values dx = numbers(x.shape, 0.2), dw = numbers(w.shape, 0.9);
  const auto dot = [](const Values& a, const Values& b) {
    return std::inner_product(a.data.begin(), a.data.end(), b.data.begin(), 0.0);
  };
  const double slope = dot(dx, std::get<0>(gradient)) + dot(dw, std::get<1>(gradient));
  CHECK(std::get<1>(eager(jvp(scalar))(x, w, dx, dw)) == Approx(slope).epsilon(1e-9).margin(1e-9));
  const auto moved = [](const Values& at, const Values& d, double h) {
    Values to = at;
    for (std::size_t i = 0; i < to.data.size(); ++i) to.data[i] += h * d.data[i];
    return to;
  };
  const auto value = compile(scalar, {.target = Target::c});
  const double difference =
      (value(moved(x, dx, 1e-5), moved(w, dw, 1e-5)) - value(moved(x, dx, -1e-5), moved(w, dw, -1e-5))) / 2e-5;
  CHECK(slope == Approx(difference).epsilon(1e-6).margin(1e-6));
  return y;
}

/// A convolution of two sizes, as a definition says it.
Values reference(const Values& x, const Values& w, std::int64_t stride, std::int64_t padding, std::int64_t dilation,
                 std::int64_t groups) {
  const auto out = [&](std::size_t d) {
    return (x.shape[d] + 2 * padding - dilation * (w.shape[d] - 1) - 1) / stride + 1;
  };
  Values y(Shape{x.shape[0], w.shape[0], out(2), out(3)});
  std::size_t at = 0;
  const std::int64_t per_group = w.shape[0] / groups;
  for (std::int64_t n = 0; n < y.shape[0]; ++n)
    for (std::int64_t o = 0; o < y.shape[1]; ++o)
      for (std::int64_t i = 0; i < y.shape[2]; ++i)
        for (std::int64_t j = 0; j < y.shape[3]; ++j, ++at)
          for (std::int64_t c = 0; c < w.shape[1]; ++c)
            for (std::int64_t p = 0; p < w.shape[2]; ++p)
              for (std::int64_t q = 0; q < w.shape[3]; ++q) {
                const std::int64_t u = i * stride + p * dilation - padding, v = j * stride + q * dilation - padding;
                if (u < 0 || u >= x.shape[2] || v < 0 || v >= x.shape[3]) continue;
                const std::int64_t channel = o / per_group * w.shape[1] + c;
                y.data[at] += x.data[static_cast<std::size_t>(((n * x.shape[1] + channel) * x.shape[2] + u) * x.shape[3] + v)] *
                              w.data[static_cast<std::size_t>(((o * w.shape[1] + c) * w.shape[2] + p) * w.shape[3] + q)];
              }
  return y;
}

double dot(const Values& a, const Values& b) {
  return std::inner_product(a.data.begin(), a.data.end(), b.data.begin(), 0.0);
}

}  // namespace

TEST_CASE("convolutions are what their definition says") {
  struct Case {
    std::int64_t stride, padding, dilation, groups, height, width;
  };
  for (const Case& c : {Case{1, 0, 1, 1, 3, 2}, Case{2, 1, 1, 1, 3, 3}, Case{1, 2, 2, 1, 2, 3}, Case{2, 0, 1, 2, 1, 1},
                        Case{3, 2, 2, 2, 3, 2}}) {
    INFO("stride " << c.stride << ", padding " << c.padding << ", dilation " << c.dilation << ", groups " << c.groups);
    const Values x = numbers({2, 4, 6, 5}, 0.1), w = numbers({6, 4 / c.groups, c.height, c.width}, 0.7);
    const ConvolutionOptions options = {
        .stride = c.stride, .padding = c.padding, .dilation = c.dilation, .groups = c.groups};
    const Values y = check("conv2d", [&](const T& a, const T& b) { return conv2d(a, b, options); }, x, w);
    same(y, reference(x, w, c.stride, c.padding, c.dilation, c.groups), 1e-12);
  }
  const Values x = numbers({2, 2, 7}, 0.1), w = numbers({3, 2, 3}, 0.4);
  const Values y = check("conv1d", [](const T& a, const T& b) { return conv1d(a, b, {.padding = 1}); }, x, w);
  CHECK(y.shape == Shape{2, 3, 7});
  check("conv3d", [](const T& a, const T& b) { return conv3d(a, b, {.stride = {1, 2, 1}}); }, numbers({1, 2, 3, 4, 3}, 0),
        numbers({2, 2, 2, 2, 2}, 1));
  check("with a bias", [](const T& a, const T& b) { return conv(a, b, T(sum<1, 2>(b)), {.stride = 2}); }, x, w);
}

TEST_CASE("a transposed convolution is the transpose of a convolution") {
  for (const std::int64_t groups : {1, 2}) {
    const ConvolutionOptions options = {.stride = 2, .padding = 1, .dilation = {1, 2}, .groups = groups, .output_padding = {1, 0}};
    const Values x = numbers({2, 4, 6, 7}, 0.3), w = numbers({6, 4 / groups, 3, 2}, 0.8);
    const Values y = compile([&](T a, T b) { return conv2d(a, b, options); })(x, w), z = numbers(y.shape, 0.5);
    const Function back = [&](const T& a, const T& b) { return conv_transpose(a, b, options); };
    const Values xbar = check("conv_transpose", back, z, w);
    CHECK(xbar.shape == x.shape);
    CHECK(dot(y, z) == Approx(dot(x, xbar)));
  }
}

TEST_CASE("pooling") {
  const Values x = numbers({2, 3, 5, 6}, 0.3), one({1}, 1.0);
  const auto pooled = [&](const char* name, const std::function<T(const T&)>& f) {
    return check(name, [&](const T& a, const T& b) { return f(a) * sum(b); }, x, one);
  };
  const Values largest = pooled("max_pool", [](const T& a) { return max_pool(a, 2); });
  CHECK(largest.shape == Shape{2, 3, 2, 3});
  CHECK(largest.data[0] == std::max({x.data[0], x.data[1], x.data[6], x.data[7]}));
  const Values padded = pooled("max_pool, padded", [](const T& a) {
    return max_pool(a, {3, 2}, {.stride = {2, 1}, .padding = 1});
  });
  CHECK(padded.shape == Shape{2, 3, 3, 7});
  CHECK(padded.data[0] == std::max(x.data[0], x.data[6]));
  const Values means = pooled("average_pool", [](const T& a) { return average_pool(a, 2, {.padding = 1}); });
  CHECK(means.data[0] == Approx(x.data[0] / 4));
  const Values inside = pooled("average_pool of what is there", [](const T& a) {
    return average_pool(a, 2, {.padding = 1, .count_padding = false});
  });
  CHECK(inside.data[0] == Approx(x.data[0]));
  const Values adaptive = pooled("adaptive_average_pool", [](const T& a) { return adaptive_average_pool(a, {2, 4}); });
  CHECK(adaptive.shape == Shape{2, 3, 2, 4});
  double mean = 0;  // rows 0 to 2, columns 0 and 1
  for (const std::size_t i : {0, 1, 6, 7, 12, 13}) mean += x.data[i] / 6;
  CHECK(adaptive.data[0] == Approx(mean));
  const Values windows = pooled("unfold", [](const T& a) { return unfold(a, {2, 3}, {.stride = 2, .padding = 1}); });
  CHECK(windows.shape == Shape{2, 3, 2, 3, 3, 3});
  CHECK(windows.data[0] == 0);
}

TEST_CASE("adaptive and global pooling, of one to three sizes, are PyTorch's") {
  const Values one({1}, 1.0);
  const auto gives = [&](const char* name, const Shape& in, const std::function<T(const T&)>& f,
                         const Shape& shape, const std::vector<double>& golden) {
    const Values y = check(
        name, [&](const T& a, const T& b) { return f(a) * sum(b); }, numbers(in, 0.3), one);
    same(y, Values(golden, shape), 1e-11);
  };
  const Shape x1 = {1, 2, 7}, x2 = {1, 2, 3, 5}, x3 = {1, 1, 3, 4, 3};
  gives("largest, 1d", x1, [](const T& a) { return adaptive_max_pool(a, 3); }, {1, 2, 3},
        {0.999573603042, 0.239249329214, 0.969889810845, 0.0247754254534, 0.894791172141, 0.894791172141});
  gives("largest, 2d", x2,
        [](const T& a) {
          return adaptive_max_pool(a, {2, 3});
        },
        {1, 2, 2, 3},
        {0.999573603042, 0.999573603042, -0.536572918, 0.969889810845, 0.969889810845, -0.34248061847,
         0.919677644662, 0.777794161801, 0.0839744556918, 0.982617877364, 0.624377135416, 0.296368578709});
  gives("largest, 3d", x3,
        [](const T& a) {
          return adaptive_max_pool(a, {2, 1, 2});
        },
        {1, 1, 2, 1, 2}, {0.999573603042, 0.999573603042, 0.999547275044, 0.982617877364});
  gives("more than there are", {1, 1, 3}, [](const T& a) { return adaptive_max_pool(a, 5); }, {1, 1, 5},
        {0.295520206661, 0.999573603042, 0.999573603042, 0.999573603042, 0.239249329214});
  gives("means, 1d", x1, [](const T& a) { return adaptive_average_pool(a, 3); }, {1, 2, 3},
        {0.511447712972, -0.44595558959, 0.252820945471, -0.489477502939, 0.342596005446, -0.0976558250918});
  gives("means, 2d", x2,
        [](const T& a) {
          return adaptive_average_pool(a, {2, 3});
        },
        {1, 2, 2, 3},
        {0.689774242922, 0.0675462299784, -0.767581008064, 0.75709102408, -0.0424895425412, -0.708147154695,
         0.783880669847, -0.251533164513, -0.494138638901, 0.742099116028, -0.340752598931, -0.349584871413});
  gives("means, 3d", x3,
        [](const T& a) {
          return adaptive_average_pool(a, {2, 1, 2});
        },
        {1, 1, 2, 1, 2}, {0.0103282230346, -0.00220300563737, -0.0108234074419, 0.000969284157683});
  gives("largest of all", x2, [](const T& a) { return global_max_pool(a); }, {1, 2, 1, 1},
        {0.999573603042, 0.982617877364});
  gives("mean of all", x2, [](const T& a) { return global_average_pool(a); }, {1, 2, 1, 1},
        {-0.000872042496601, 0.0206131938689});
  for (const Shape& in : {x1, x3}) {
    const Values x = numbers(in, 0.3);
    const auto both = compile([](T a) { return std::tuple(global_max_pool(a), global_average_pool(a)); })(x);
    CHECK(std::get<0>(both).shape.size() == in.size());
    CHECK(std::get<0>(both).data[0] ==
          Approx(*std::max_element(x.data.begin(), x.data.begin() + (in == x1 ? 7 : 36))));
    CHECK(std::get<1>(both).data[0] ==
          Approx(std::accumulate(x.data.begin(), x.data.begin() + (in == x1 ? 7 : 36), 0.0) /
                 (in == x1 ? 7 : 36)));
  }
  // Equal elements share the derivative; whole numbers have largest ones too.
  const Values equal({1, 1, 4}, 2.0);
  CHECK(compile(grad([](T a) { return sum(adaptive_max_pool(a, 2)); }))(equal).data ==
        std::vector<double>{0.5, 0.5, 0.5, 0.5});
  CHECK(compile(grad([](T a) { return sum(global_max_pool(a)); }))(equal).data ==
        std::vector<double>{0.25, 0.25, 0.25, 0.25});
  const std::vector<std::int64_t> whole = {3, 9, -4, 1};
  CHECK(compile([](Rep<Tensor<std::int64_t, dyn, dyn, dyn>> a) { return adaptive_max_pool(a, 2); })(
            TensorView<const std::int64_t>(whole.data(), {1, 1, 4}))
            .data == std::vector<std::int64_t>{9, 1});
}

TEST_CASE("pooling with distances and with a last window that does not fit is PyTorch's") {
  const Values one({1}, 1.0);
  const auto gives = [&](const char* name, const Shape& in, const std::function<T(const T&)>& f,
                         const Shape& shape, const std::vector<double>& golden) {
    const Values y = check(
        name, [&](const T& a, const T& b) { return f(a) * sum(b); }, numbers(in, 0.3), one);
    same(y, Values(golden, shape), 1e-11);
  };
  const Shape x1 = {1, 2, 7}, x2 = {1, 1, 5, 6};
  gives("largest, dilation", x2,
        [](const T& a) {
          return max_pool(a, {2, 3}, {.stride = {1, 2}, .padding = {1, 1}, .dilation = {2, 2}});
        },
        {1, 1, 5, 2},
        {0.0247754254534, 0.894791172141, 0.999573603042, 0.999573603042, 0.624377135416, 0.894791172141,
         0.982617877364, 0.982617877364, 0.624377135416, 0.624377135416});
  gives("largest, ceil", x2, [](const T& a) { return max_pool(a, 2, {.stride = {2, 4}, .ceil = true}); },
        {1, 1, 3, 2},
        {0.999573603042, 0.894791172141, -0.132351750098, 0.777794161801, 0.982617877364, 0.296368578709});
  gives("largest, ceil and padding", x1,
        [](const T& a) { return max_pool(a, 3, {.stride = 3, .padding = 1, .ceil = true}); }, {1, 2, 3},
        {0.999573603042, 0.239249329214, 0.969889810845, 0.0247754254534, 0.894791172141, -0.190858581374});
  gives("largest, all of it", x1,
        [](const T& a) { return max_pool(a, 3, {.stride = 2, .padding = 1, .dilation = 2, .ceil = true}); },
        {1, 2, 3},
        {0.999573603042, 0.999573603042, 0.494113351139, 0.669569762197, 0.669569762197, 0.669569762197});
  gives("means, ceil and padding", x2,
        [](const T& a) {
          return average_pool(a, {2, 3}, {.stride = {2, 2}, .padding = {1, 1}, .ceil = true});
        },
        {1, 1, 3, 4},
        {0.215848968284, 0.0612078599736, -0.180500457808, 0.123528337785, -0.0321822351862, -0.33235657597,
         0.370283372087, 0.124308872255, -0.00937415632317, 0.348291339728, -0.364978470258, -0.160330790398});
  gives("means of what is there", x2,
        [](const T& a) {
          return average_pool(
              a, {2, 3}, {.stride = {2, 2}, .padding = {1, 1}, .ceil = true, .count_padding = false});
        },
        {1, 1, 3, 4},
        {0.647546904851, 0.122415719947, -0.361000915615, 0.494113351139, -0.0482733527793, -0.33235657597,
         0.370283372087, 0.24861774451, -0.0140612344848, 0.348291339728, -0.364978470258, -0.320661580795});
  gives("means, the last window is short", x1,
        [](const T& a) { return average_pool(a, 2, {.stride = 3, .ceil = true}); }, {1, 2, 3},
        {0.647546904851, -0.788558048992, 0.969889810845, -0.465929795408, 0.782180467169, -0.996900066042});
  gives("means, dilation", {1, 1, 5}, [](const T& a) { return average_pool(a, 2, {.stride = 1, .dilation = 3}); },
        {1, 1, 2}, {(std::sin(0.3) + std::sin(4.2)) / 2, (std::sin(1.6) + std::sin(5.5)) / 2});
  gives("unfold, dilation", x2,
        [](const T& a) {
          return unfold(a, {2, 3}, {.stride = {2, 3}, .padding = {0, 1}, .dilation = {2, 1}});
        },
        {1, 1, 2, 3, 2, 2},
        {0, 0.239249329214, 0, -0.34248061847, 0.295520206661, -0.871575772414, -0.190858581374,
         0.813673737507, 0.999573603042, -0.70554032557, -0.996900066042, 0.777794161801, 0, -0.34248061847, 0,
         0.441723806669, -0.190858581374, 0.813673737507, 0.0839744556918, -0.746296675645, -0.996900066042,
         0.777794161801, 0.982617877364, -0.840990779752});
  // Sizes that are known only as the program runs; a window larger than what is there, which ceil lets stand.
  const auto ceil = compile([](T a) { return max_pool(a, 3, {.stride = 3, .ceil = true}); });
  CHECK(ceil(numbers({1, 1, 7}, 0.3)).shape == Shape{1, 1, 3});
  CHECK(ceil(numbers({1, 1, 6}, 0.3)).shape == Shape{1, 1, 2});
  CHECK(ceil(numbers({1, 1, 2}, 0.3)).data == std::vector<double>{std::sin(1.6)});
  // Equal elements share the derivative, in which what stands for padding has no share.
  CHECK(compile(grad([](T a) {
          return sum(max_pool(a, 2, {.stride = 2, .padding = 1, .dilation = 2, .ceil = true}));
        }))(Values({1, 1, 4}, 2.0))
            .data == std::vector<double>{0, 1.5, 0, 1.5});
}

TEST_CASE("transposed convolutions with a bias are PyTorch's, of one to three sizes") {
  const Values bias2 = numbers({2}, 1.1), bias1 = numbers({1}, 1.1);
  const auto gives = [&](const char* name, const Shape& x, const Shape& w, const Values& bias,
                         auto convolution, const Shape& shape, const std::vector<double>& golden) {
    const auto with_bias = [&](const T& a, const T& b) {
      T c = zeros<double>({static_cast<std::int64_t>(bias.data.size())});
      for (std::size_t i = 0; i < bias.data.size(); ++i)
        c = c.set(static_cast<std::int64_t>(i), bias.data[i]);
      return convolution(a, b, c);
    };
    same(check(name, with_bias, numbers(x, 0.3), numbers(w, 0.8)), Values(golden, shape), 1e-11);
  };
  gives("1d", {1, 2, 3}, {2, 2, 2}, bias2,
        [](const T& a, const T& b, const T& c) {
          return conv_transpose1d(a, b, c, {.stride = 2, .padding = 1, .output_padding = 1});
        },
        {1, 2, 5},
        {0.405083215972, 1.80539647407, 1.15403132667, 0.924771395442, 1.51794171055, 0.778742852854,
         -0.0981157270591, -0.00122368932282, 0.977200554402, 0.210157618174});
  gives("2d, groups", {1, 2, 2, 2}, {2, 1, 2, 2}, bias2,
        [](const T& a, const T& b, const T& c) {
          return conv_transpose2d(a, b, c, {.stride = {1, 2}, .groups = 2});
        },
        {1, 2, 3, 4},
        {1.10320058029,   1.14630317049,   1.60825757251,  1.75404865686,  0.987316764335,  0.802232094283,
         0.0105450309619, -0.860641903759, 0.830069322815, 0.651976391424, 1.11393079344,   1.76271624563,
         0.87260208212,   0.0754458503559, 0.537400252376, 1.0956752691,   -0.113685831676, 1.82310301712,
         1.0314159538,    0.470458515909,  1.38774744289,  0.231703779083, 0.693658181103,  0.664127534123});
  gives("3d, dilation", {1, 1, 1, 2, 2}, {1, 1, 2, 1, 2}, bias1,
        [](const T& a, const T& b, const T& c) {
          return conv_transpose3d(a, b, c, {.dilation = {1, 1, 2}});
        },
        {1, 1, 2, 2, 4},
        {1.10320058029, 1.60825757251, 1.14630317049, 1.75404865686, 1.06283432362, 0.26597717104,
         1.097729622, 0.13885498957, 0.81568980078, 0.635775219983, 0.595709832341, -0.108289533267,
         0.830069322815, 1.11393079344, 0.651976391424, 1.76271624563});
  // The bias has a derivative: each of its elements is added at every place.
  const auto total = [](T a, T b, T c) { return sum(conv_transpose(a, b, c)); };
  const Values slope =
      std::get<2>(compile(grad(total))(numbers({2, 2, 3}, 0.3), numbers({2, 2, 2}, 0.8), bias2));
  same(slope, Values(std::vector<double>{8, 8}, {2}), 1e-12);
}

TEST_CASE("what does not fit is said") {
  const auto fails = [](auto f, const Values& x, const Values& w, const char* text) {
    CHECK_THROWS_WITH(compile(f)(x, w), Catch::Contains(text));
    CHECK_THROWS_WITH(eager(f)(x, w), Catch::Contains(text));
  };
  const Values x = numbers({1, 2, 4, 4}, 0);
  fails([](T a, T b) { return conv2d(a, b); }, x, numbers({1, 3, 2, 2}, 0), "as many channels as the weights have inputs, times the groups, got 2 and 3");
  fails([](T a, T b) { return conv2d(a, b); }, x, numbers({1, 2, 5, 2}, 0),
        "conv: expected a window within 4 elements of spatial dimension 0, got one of 5");
  fails([](T a, T b) { return conv1d(a, b); }, x, x, "conv: expected a tensor [batch, channels, 1 sizes], got");
  fails([](T a, T b) { return conv(a, b, {.stride = 0}); }, x, x, "conv: expected stride of 1 or more, got 0");
  fails([](T a, T b) { return conv(a, b, {.padding = {1, 2, 3}}); }, x, x, "one for each of the 2 spatial dimensions");
  fails([](T a, T b) { return max_pool(a, 2, {.padding = 2}) * sum(b); }, x, x, "expected a padding below the window's size 2");
  fails([](T a, T b) { return max_pool(a, 2, {.padding = 1, .dilation = 2}) * sum(b); }, Values({1, 1, 1, 1}), x,
        "expected a tensor with elements in each window, more than 1 in spatial dimension 0, got 1");
  fails([](T a, T b) { return average_pool(a, 2, {.dilation = 0}) * sum(b); }, x, x, "expected dilation of 1 or more");
  fails([](T a, T b) { return max_pool(a, 4, {.stride = 2, .ceil = true}) * sum(b); }, Values({1, 1, 1, 4}), x,
        "max_pool: expected a window within 1 elements of spatial dimension 0, got one of 4");
  fails([](T a, T b) { return unfold(a, 3, {.padding = 1, .dilation = 4}) * sum(b); }, x, x,
        "unfold: expected a window within 6 elements (2 of them padding) of spatial dimension 0, got one of 9 with its "
        "dilation of 4");
  fails([](T a, T b) { return average_pool(a, {2, 7}) * sum(b); }, x, x,
        "average_pool: expected a window within 4 elements of spatial dimension 1, got one of 7");
  fails([](T a, T b) { return conv2d(a, b, {.groups = 2}); }, x, numbers({3, 1, 2, 2}, 0),
        "conv: expected outputs whose number the groups divide, got 3 outputs and 2 groups");
  const Values empty({1, 1, 0, 2});
  fails([](T a, T b) { return adaptive_max_pool(a, 1) * sum(b); }, empty, x,
        "expected a tensor with elements in each");
  fails([](T a, T b) { return adaptive_average_pool(a, 2) * sum(b); }, empty, x,
        "expected a tensor with elements in each");
  fails(
      [](T a, T b) {
        return adaptive_max_pool(a, {1, 2, 3}) * sum(b);
      },
      x, x, "one for each of the 2 spatial dimensions");
  fails([](T a, T b) { return conv_transpose1d(a, b); }, x, x,
        "conv_transpose: expected a tensor [batch, channels, 1 sizes]");
  fails([](T a, T b) { return conv_transpose(a, b, T(ones<double>({3}))); }, x, numbers({2, 1, 2, 2}, 0),
        "expected a bias for each channel of the result");
}
