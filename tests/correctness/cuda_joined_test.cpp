// Kernels of different sizes in one launch: values and bits with the pass horizontal_fusion and without, by eager and on the
// processor, sizes of no element and of several blocks, what stays alone, failures, and races. And functions in place of their
// calls, with the pass inline_expansion and without.
#include <lantern/nn.hpp>
#include <lantern/tensor.hpp>

#include "cuda_budget.hpp"

using namespace lantern;
using lantern::test::Emulated;
using lantern::test::floats;
using Matrix = Rep<Tensor<float, dyn, dyn>>;
using Row = Rep<Tensor<float, dyn>>;
using Images = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;
using Labels = Rep<Tensor<std::int64_t, dyn>>;

namespace {

/// Launches with the pass and without; checks results, forwards and backwards, and that all have the same bits.
template <class F, class... A>
std::pair<std::int64_t, std::int64_t> joined_by(const std::string& pass, const char* name, F f, const A&... args) {
  INFO(name);
  const auto expected = compile(f, {.target = Target::c, .name = name})(args...);
  const auto by_eager = eager(f)(args...);
  const auto run = [&](const std::vector<std::string>& without) {
    const Emulated emulated(
        compile(f, {.target = Target::cuda, .disabled_passes = without, .name = name}).source("cuda"), name, true);
    for (const bool backwards : {false, true, false}) {
      emulated.backwards(backwards);
      lantern::test::compare_all(emulated(args...), expected, 2e-5);
      lantern::test::compare_all(emulated(args...), by_eager, 2e-5);
    }
    return emulated.spent().launches;
  };
  return {run({}), run({pass})};
}
template <class F, class... A>
std::pair<std::int64_t, std::int64_t> joined(const char* name, F f, const A&... args) {
  lantern::test::compare_all(
      Emulated(compile(f, {.target = Target::cuda, .opt = 0, .name = name}).source("cuda"), name)(args...),
      compile(f, {.target = Target::c, .name = name})(args...), 2e-5);
  return joined_by("horizontal_fusion", name, f, args...);
}
using Launches = std::pair<std::int64_t, std::int64_t>;

}  // namespace

TEST_CASE("updates of parameters of different sizes are one launch", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto update = [](Matrix w, Row b, Images k, Matrix gw, Row gb, Images gk, Rep<float> rate) {
    return std::tuple(Matrix(w - rate * gw), Row(b - rate * gb), Images(k - rate * exp(gk)));
  };
  for (const std::int64_t n : {0, 1, 7, 2000})
    CHECK(joined("update", update, floats({n, 3}), floats({n + 2}), floats({2, 3, n, 1}), floats({n, 3}, 2), floats({n + 2}, 2),
                 floats({2, 3, n, 1}, 2), 0.1F)
              .first == 1);
  // In place, and of what an update of another one reads.
  const auto chained = [](Matrix w, Row b, Rep<std::int64_t> steps) {
    return FOR(0, steps, std::tuple(w, b), [](Rep<std::int64_t>, Matrix u, Row v) {
      return std::tuple(Matrix(u * 0.5F + 1.0F), Row(v * v - 0.25F));
    });
  };
  CHECK(joined("chained", chained, floats({40, 33}), floats({1025}), std::int64_t{3}) == Launches{3, 6});
}

namespace {

std::ptrdiff_t times(const std::string& text, const std::string& word) {
  std::ptrdiff_t n = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++n;
  return n;
}

}  // namespace

TEST_CASE("joined kernels that are equal but for their tensors have one text", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto update = [](Matrix a, Row b, Images c, Row d, Matrix ga, Row gb, Images gc, Row gd, Rep<float> rate, Rep<float> less) {
    const auto step = [](auto w, auto g, Rep<float> r) { return w - r * g / (sqrt(g * g) + 0.5F); };
    return std::tuple(Matrix(step(a, ga, rate)), Row(step(b, gb, rate)), Images(step(c, gc, less)), Row(step(d, gd, rate)));
  };
  for (const std::int64_t n : {0, 1, 7, 2000})
    CHECK(joined("equal", update, floats({n, 3}), floats({n + 2}), floats({2, 3, n, 1}), floats({5}), floats({n, 3}, 2),
                 floats({n + 2}, 2), floats({2, 3, n, 1}, 2), floats({5}, 3), 0.1F, 0.2F)
              .first == 1);
  const std::string text = compile(update, {.target = Target::cuda, .name = "equal"}).source("cuda");
  CHECK(times(text, ".of[member]") >= 4);
  // Two kinds in turn: rows, and elements.
  const auto kinds = [](Matrix x, Row u, Matrix y, Row v, Matrix z) {
    return std::tuple(Matrix(softmax<1>(x)), Row(sin(u)), Matrix(softmax<1>(y)), Row(sin(v)), Matrix(softmax<1>(z)));
  };
  CHECK(joined("kinds", kinds, floats({9, 40}), floats({3000}), floats({5, 70}), floats({7}), floats({0, 4})).first == 1);
  CHECK(times(compile(kinds, {.target = Target::cuda, .name = "kinds"}).source("cuda"), "sinf(") == 1);
}

TEST_CASE("indices that loops count are checked before a launch", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto scaled = [](Matrix x, Row p) {
    return FOR(0, x.dim(0), x, [&](Rep<std::int64_t> i, Matrix u) {
      return FOR(0, x.dim(1), u, [&](Rep<std::int64_t> j, Matrix v) { return v.set(i, j, x(i, j) * p(i)); });
    });
  };
  const auto two = [&](Matrix x, Row p, Matrix y, Row q) { return std::tuple(scaled(x, p), scaled(y, q), Row(sum<1>(x) * p)); };
  const std::string source = compile(two, {.target = Target::cuda, .name = "two"}).source("cuda");
  CHECK(source.find("lt_check_indices(ws, ") != std::string::npos);
  const Emulated emulated(source, "two");
  const auto x = floats({9, 40}), y = floats({20, 3});
  lantern::test::compare_all(emulated(x, floats({9}), y, floats({20})), compile(two, {.target = Target::c})(x, floats({9}), y, floats({20})), 1e-5);
  CHECK_THROWS_WITH(emulated(x, floats({9}), y, floats({19})), Catch::StartsWith("index 19 is outside 0..18"));
  // Rows without elements are not looked at.
  const auto none = floats({20, 0});
  lantern::test::compare_all(emulated(x, floats({9}), none, floats({1})), compile(two, {.target = Target::c})(x, floats({9}), none, floats({1})), 1e-5);
}

TEST_CASE("rows and elements in one launch", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto both = [](Matrix x, Row y, Matrix z) {
    return std::tuple(Matrix(softmax<1>(x)), Row(sin(y)), Matrix(softmax<1>(z) * 2.0F));
  };
  CHECK(joined("both", both, floats({9, 40}), floats({3000}), floats({5, 70})) == Launches{1, 3});
  CHECK(joined("both", both, floats({1, 2}), floats({0}), floats({0, 70})).first == 1);
}

TEST_CASE("what needs another one, or shares memory with it, stays alone", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  // The second one needs the first; the third is a stranger to both.
  const auto needs = [](Matrix x, Row y, Row z) {
    const Row s = sum<1>(x);
    return std::tuple(Row(s(y.dim(0) - 1) * y), s, Row(cos(z)));
  };
  CHECK(joined("needs", needs, floats({9, 40}), floats({5}), floats({1500})).first == 2);
  // Memory that is free between them is not another one's yet.
  const auto reused = [](Row x, Matrix y) {
    const Row a = exp(x);
    const Rep<float> s = sum(a * sin(a));
    const Matrix c = y * s;
    return std::tuple(Row(x * x), Matrix(c + cos(c)), s);
  };
  joined("reused", reused, floats({1200}), floats({30, 40}));
  // Sums of different sizes have parts of their own.
  const auto sums = [](Matrix x, Matrix y, Row z) {
    return std::tuple(Row(sum<0>(x)), Row(sum<0>(y)), Row(z + 1.0F), sum(z));
  };
  joined("sums", sums, floats({64, 24}), floats({30, 50}), floats({1500}));
}

TEST_CASE("of joined kernels the first failure is told", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto f = [](Matrix x, Labels at, Row y, Labels of) {
    const auto rows = [](Matrix t, Labels k) {
      return FOR(0, k.dim(0), t, [&](Rep<std::int64_t> i, Matrix u) {
        return FOR(0, t.dim(1), u, [&](Rep<std::int64_t> j, Matrix v) { return v.set(i, j, t(k(i), j) * 2.0F); });
      });
    };
    const Matrix first = rows(x, at);
    const Row second = take<0>(y, of);
    return std::tuple(first, Row(y * 2.0F), second);
  };
  const Emulated emulated(compile(f, {.target = Target::cuda, .name = "first"}).source("cuda"), "first");
  auto at = lantern::test::labels(9, 9), of = lantern::test::labels(30, 20);
  const auto x = floats({9, 40}), y = floats({20});
  lantern::test::compare_all(emulated(x, at, y, of), compile(f, {.target = Target::c})(x, at, y, of), 1e-6);
  of.data[3] = 25;
  CHECK_THROWS_WITH(emulated(x, at, y, of), Catch::StartsWith("index 25 is outside 0..19"));
  at.data[7] = 9;
  at.data[5] = -1;
  for (const bool backwards : {false, true}) {
    emulated.backwards(backwards);
    CHECK_THROWS_WITH(emulated(x, at, y, of), Catch::StartsWith("index -1 is outside 0..8"));
  }
}

TEST_CASE("nests whose iterations ask for their own indices are one launch", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto padded = [](Matrix x, Images y) {
    return std::tuple(Matrix(pad(x, {{1, 2}, {0, 3}})),
                      Images(pad(y, {{0, 0}, {1, 0}, {1, 1}, {0, 2}}, Pad::constant, 0.5)));
  };
  for (const std::int64_t n : {0, 1, 7, 500})
    CHECK(joined("padded", padded, floats({n, 3}), floats({2, 3, n, 2})) == Launches{1, 2});
  const auto indices = [](Matrix x, Images y) {
    const auto m = FOR(0, x.dim(0), x, [&](Rep<std::int64_t> i, Matrix u) {
      return FOR(0, x.dim(1), u, [&](Rep<std::int64_t> j, Matrix v) {
        return v.set(i, j, x(i, j) * cast<float>(i * 3 - j));
      });
    });
    return std::tuple(m, Images(pad(y, {{1, 1}, {1, 1}, {2, 0}, {0, 2}})));
  };
  CHECK(joined("indices", indices, floats({70, 33}), floats({2, 3, 5, 4})) == Launches{1, 2});
}

TEST_CASE("adjoints of parts of a tensor are read where they lie", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto slope = grad<0, 1>([](Images a, Images b, Images s) {
    return sum(concat<1>(Images(clip(a, -0.5F, 0.5F)), Images(clip(b, -0.25F, 0.75F))) * s);
  });
  const auto with = [&](const std::string& pass) {
    return joined_by(pass, "parts", slope, floats({2, 3, 4, 5}), floats({2, 4, 4, 5}, 2),
                     floats({2, 7, 4, 5}, 3));
  };
  const auto [few, more] = with("dead_stores");
  CHECK(few <= more);
  CHECK(with("rematerialise").first == few);
}

TEST_CASE("so many tensors that arguments of one kernel do not hold them", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto f = [](std::array<Row, 60> all) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = Row(all[i] * static_cast<float>(i) + 1.0F);
    Row sums = zeros_like(all[0]);
    for (std::size_t i = 0; i < all.size(); ++i) sums = sums.set(static_cast<std::int64_t>(i), all[i](0) + all[i](2));
    return sums;
  };
  std::array<TensorValue<float>, 60> all;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = floats({static_cast<std::int64_t>(3 + i)});
  all[0] = floats({70});
  const auto run = [&](const std::vector<std::string>& without) {
    const auto text = compile(f, {.target = Target::cuda, .disabled_passes = without, .name = "many"}).source("cuda");
    CHECK(text.find("host_mark") == std::string::npos);  // nothing runs on the host
    return lantern::test::kernels_in(text);
  };
  CHECK(run({}) < run({"horizontal_fusion"}));
}

TEST_CASE("functions that work on tensors move to their calls", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  const auto layers = [](Matrix w, Row b, Matrix x) {
    const auto layer = FUN<Matrix(Matrix, Row, Matrix)>(
        "layer", [](Matrix u, Row v, Matrix y) { return Matrix(tanh(y * u + v) * y); });
    return layer(w, b, layer(w, b, layer(w, b, x)));
  };
  const auto w = floats({9, 40}), x = floats({9, 40}, 3);
  const auto b = floats({40}, 2);
  CHECK(joined_by("inline_expansion", "layers", layers, w, b, x) == Launches{1, 3});
  // Backward parts take from forward parts what they had on tapes.
  const auto misfit = [=](Matrix u, Row v, Matrix y) { return sum(layers(u, v, y) * y); };
  const auto [with, without] = joined_by("inline_expansion", "slope", grad<0, 1>(misfit), w, b, x);
  CHECK(with <= without);
  // Calls in loops of the host stay, and so do functions that call themselves.
  const auto steps = [=](Matrix u, Row v, Matrix y) {
    return sum(FOR(0, 2, y, [&](Rep<std::int64_t>, Matrix z) { return Matrix(layers(u, v, z) * 0.5F); }));
  };
  joined_by("inline_expansion", "steps_slope", grad<0>(steps), w, b, x);
}

TEST_CASE("kernels that are equal but for names are compiled once", "[cuda]") {
  const auto f = [](Matrix w, Row b, Matrix x) {
    const auto product = [](Matrix y, Matrix u) { return Matrix(matmul(y, u)); };
    const Matrix first = product(Matrix(tanh(x + b)), w), second = product(Matrix(tanh(first + b)), w);
    return Matrix(product(Matrix(tanh(second + b)), w));
  };
  const auto text = compile(f, {.target = Target::cuda, .name = "equal"}).source("cuda");
  const auto count = [&](const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
  };
  CHECK(count("void equal_kernel") == 2);  // the first one does not work in place
  CHECK(count("equal_kernel2<<<") == 2);
}

TEST_CASE("a block shares a loop that begins where a condition on the row says", "[cuda]") {
  if (!codegen::nvrtc_available()) return;
  // Parts of a row: each has a first and a last column that depend on the row.
  const auto rows = [](Matrix x, Rep<float> s) {
    return FOR(0, x.dim(0), x, [&](Rep<std::int64_t> i, Matrix u) {
      return FOR(0, x.dim(1), u, [&](Rep<std::int64_t> j, Matrix v) {
        return v.set(i, j, IF(i < j, [&] { return x(i, j) * s; }, [&] { return x(i, j) + s; }));
      });
    });
  };
  for (const std::int64_t n : {0, 1, 5, 40}) {
    joined("rows", [=](Matrix x, Rep<float> s) { return sum(rows(x, s)); }, floats({n, 5}), 0.1F);
    joined("rows_slope", grad<0, 1>([=](Matrix x, Rep<float> s) { return sum(exp(rows(x, s))); }), floats({n, 5}), 0.1F);
  }
}
