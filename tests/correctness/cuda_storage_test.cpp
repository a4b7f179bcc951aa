// Tensors that programs for a GPU store in 16 bits, by the launch emulator: what is stored is the nearest
// such number, and derivatives are those of float but for that.
#include <bit>
#include <cmath>
#include <lantern/nn.hpp>
#include <lantern/tensor.hpp>
#include <limits>
#include <random>

#include "cuda_tensors.hpp"
#include "lantern/runtime/small_float.hpp"

using namespace lantern;
using lantern::test::Emulated;
using Matrix = Rep<Tensor<float, dyn, dyn>>;
using Row = Rep<Tensor<float, dyn>>;

namespace {

TensorValue<float> numbers(std::vector<std::int64_t> shape, double scale = 1) {
  TensorValue<float> t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = static_cast<float>(scale * std::sin(1.7 * static_cast<double>(i) + 0.4));
  return t;
}

template <class F>
std::string source(F f, const std::string& storage, const std::string& name) {
  return compile(f, {.target = Target::cuda, .storage = storage, .name = name}).source("cuda");
}

double number(const core::FloatFormat& f, unsigned code) {
  const unsigned sign = 0x8000, hidden = 1U << (f.digits - 1), size = code & (sign - 1),
                 exponent = size / hidden;
  const double fraction = size % hidden, infinity = std::numeric_limits<double>::infinity();
  const double value = size == sign - hidden  ? infinity
                       : size > sign - hidden ? std::numeric_limits<double>::quiet_NaN()
                       : exponent == 0
                           ? std::ldexp(fraction, f.least)
                           : std::ldexp(fraction + hidden, f.least + static_cast<int>(exponent) - 1);
  return code & sign ? -value : value;
}

struct Stored {
  const char* name;
  const core::FloatFormat& format;
  double error;  ///< of a number
};
const Stored kinds[] = {{"f16", core::float16_format, 0x1p-11}, {"bf16", core::bfloat16_format, 0x1p-8}};

/// A program, run by threads that race or run backwards, against float.
template <class F>
class Narrow {
 public:
  Narrow(const char* name, F f, const Stored& kind)
      : kind_(kind),
        exact_(compile(f, {.target = Target::c, .name = name})),
        emulated_(source(f, kind.name, name), name, true) {}

  /// How far results may be from those of float, in roundings of the largest element of each.
  template <class... A>
  void near_float(double roundings, const A&... args) const {
    const auto expected = exact_(args...);
    for (const bool backwards : {false, true}) {
      emulated_.backwards(backwards);
      const auto places = emulated_(args...);
      std::size_t next = 0;
      std::apply([&](const auto&... e) { (compare(places.at(next++), e, roundings), ...); }, expected);
    }
  }

 private:
  void compare(const lantern::test::RawTensor& place, const TensorValue<float>& expected,
               double roundings) const {
    double largest = 1e-30, distance = 0;
    for (std::size_t d = 0; d < expected.shape.size(); ++d) REQUIRE(place.dim[d] == expected.shape[d]);
    for (std::size_t i = 0; i < expected.data.size(); ++i) {
      largest = std::fmax(largest, std::fabs(expected.data[i]));
      distance = std::fmax(distance, std::fabs(static_cast<const float*>(place.data)[i] - expected.data[i]));
    }
    CHECK(distance <= roundings * kind_.error * largest);
    if (expected.data.size() > 1 && largest > 1e-6) CHECK(distance > 0);  // something was rounded
  }

  const Stored& kind_;
  decltype(compile(std::declval<F>(), CompileOptions{})) exact_;
  Emulated emulated_;
};

}  // namespace

TEST_CASE("what is stored in 16 bits is the nearest number", "[cuda]") {
  const auto f = [](Matrix x, Rep<float> one, Matrix w) { return matmul(Matrix(x * one), w); };
  for (const Stored& kind : kinds) {
    INFO(kind.name);
    std::vector<float> all{std::numeric_limits<float>::max(),
                           std::numeric_limits<float>::denorm_min(),
                           65519.99f,
                           65520.0f,
                           3.3961775e38f,
                           -0.0f};
    for (unsigned code = 0; code < 0x8000; code += code < 0x800 || code > 0x7600 ? 1 : 7) {
      const auto x = static_cast<float>(number(kind.format, code)),
                 next = static_cast<float>(number(kind.format, code + 1));
      const float middle = x + (next - x) / 2;  // a tie: the nearest number is the neighbour with an even code
      for (const float y :
           {x, -x, middle, -middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)})
        all.push_back(y);
    }
    std::mt19937 random(7);
    for (int i = 0; i < 20000; ++i) all.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    const auto n = static_cast<std::int64_t>(all.size());
    const std::string text = source(f, kind.name, "nearest");
    if (codegen::nvrtc_available())
      CHECK(codegen::compile_with_nvrtc(text).find(".entry") != std::string::npos);
    const Emulated emulated(text, "nearest");
    const auto result = emulated(TensorValue<float>(all, {n, 1}), 1.0F, TensorValue<float>({1}, {1, 1}));
    const auto* const got = static_cast<const float*>(result[0].data);
    int wrong = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double expected = number(kind.format, encoded(kind.format, all[i]));
      wrong += std::isnan(expected) ? !std::isnan(got[i]) : got[i] != expected;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("derivatives through tensors of 16 bits", "[cuda]") {
  const auto network = [](Matrix w1, Row b1, Matrix w2, Row b2, Matrix x, Matrix y) {
    const Matrix h = tanh(matmul(x, transpose(w1)) + b1);
    const Matrix e = softmax<1>(Matrix(matmul(h, transpose(w2)) + b2)) - y;
    return sum(e * e * e + e * e);
  };
  const Narrow net("net", grad<0, 1, 2, 3>(network), kinds[1]);
  const auto run = [&](std::int64_t batch, std::int64_t in, std::int64_t hidden, std::int64_t out) {
    net.near_float(24, numbers({hidden, in}, 0.4), numbers({hidden}), numbers({out, hidden}, 0.5),
                   numbers({out}), numbers({batch, in}), numbers({batch, out}, 0.6));
  };
  run(37, 19, 23, 7);
  run(0, 5, 6, 3);
  using Batch = Rep<Tensor<float, dyn, dyn, dyn>>;
  const Narrow heads("heads", grad<0, 1, 2>([](Batch q, Batch k, Batch v) {
                       const Batch s = softmax<2>(Batch(einsum<"bij,bkj->bik">(q, k)));
                       const Batch y = einsum<"bij,bjk->bik">(s, v);
                       return sum(y * y);
                     }),
                     kinds[0]);
  heads.near_float(24, numbers({3, 9, 5}), numbers({3, 11, 5}), numbers({3, 11, 4}));
  heads.near_float(24, numbers({1, 1, 1}), numbers({1, 1, 1}), numbers({1, 1, 1}));
}

TEST_CASE("what leaves a function or is added to stays float", "[cuda]") {
  const auto narrow = [](auto f) {
    return source(f, "bf16", "stays").find("struct lt_bf16 {") != std::string::npos;
  };
  CHECK(narrow([](Matrix x, Matrix y) { return matmul(Matrix(x * y), y); }));
  CHECK_FALSE(narrow([](Matrix x, Matrix y) { return matmul(x, y); }));
  CHECK_FALSE(narrow([](Matrix x) { return std::tuple(Matrix(x * x), Row(sum<0>(x))); }));
  CHECK_FALSE(narrow([](Matrix x, Rep<std::int64_t> n) {  // carried by a loop of the host
    return FOR(0, n, x, [&](Rep<std::int64_t>, Matrix y) { return Matrix(matmul(y, x)); });
  }));
  for (const CompileOptions& options :
       {CompileOptions{.target = Target::c, .storage = "f16"},
        CompileOptions{.target = Target::cuda, .strict_math = true, .storage = "f16"}})
    CHECK_THROWS_WITH(compile([](Matrix x) { return Matrix(x * x); }, options),
                      "compile: storage in f16 goes with Target::cuda, without strict_math");
  CHECK_THROWS_WITH(source([](Matrix x) { return Matrix(x * x); }, "f8", "f"),
                    "storage: expected f32, f16 or bf16, got 'f8'");
}
