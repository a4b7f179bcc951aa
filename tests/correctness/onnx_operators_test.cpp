// Operators of ONNX, eagerly and compiled, against values written down and plain loops.
#include <algorithm>

#include "onnx_graphs.hpp"

using namespace onnx_graphs;

TEST_CASE("arithmetic broadcasts, and integers wrap as their types say") {
  check_node(node("Add", {"x", "y"}, {"z"}), {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({3}, {10, 20, 30})},
             {floats({2, 3}, {11, 22, 33, 14, 25, 36})});
  check_node(node("Mul", {"x", "y"}, {"z"}), {floats({2, 1}, {2, 3}), floats({1, 2}, {5, 7})},
             {floats({2, 2}, {10, 14, 15, 21})});
  Value x(Element::uint8, {3}), y(Element::uint8, {3}), z(Element::uint8, {3});
  for (std::size_t i = 0; i < 3; ++i) {
    x.mutable_elements<std::int32_t>()[i] = 250;
    y.mutable_elements<std::int32_t>()[i] = static_cast<std::int32_t>(5 * i);
    z.mutable_elements<std::int32_t>()[i] = (250 + static_cast<std::int32_t>(5 * i)) % 256;
  }
  check_node(node("Add", {"x", "y"}, {"z"}), {x, y}, {z});
  check_node(node("Mod", {"x", "y"}, {"z"}), {integers({4}, {-7, 7, -7, 7}), integers({4}, {3, -3, -3, 3})},
             {integers({4}, {2, -2, -1, 1})});
  check_node(node("Mod", {"x", "y"}, {"z"}, {whole("fmod", 1)}),
             {integers({2}, {-7, 7}), integers({2}, {3, -3})}, {integers({2}, {-1, 1})});
  check_node(node("Pow", {"x", "y"}, {"z"}), {floats({3}, {1, 2, 3}), integers({3}, {4, 5, 2})},
             {floats({3}, {1, 32, 9})});
}

TEST_CASE("rounding goes to even numbers, casts to what the type holds") {
  check_node(node("Round", {"x"}, {"y"}), {floats({6}, {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2.4f})},
             {floats({6}, {0, 2, 2, 0, -2, 2})});
  const auto half = [](float v) { return onnx::from_half_bits(onnx::half_bits(v)); };
  const std::vector<float> numbers = {0.1f,   1.0f / 3, 1000.3f, 65519.0f, 70000.0f,
                                      -3e-6f, 5e-8f,    2047.5f, NAN};
  std::vector<float> rounded;
  for (const float v : numbers) rounded.push_back(half(v));
  check_node(node("Cast", {"x"}, {"y"}, {whole("to", 10)}), {floats({9}, numbers)},
             {floats({9}, rounded).as(Element::float16)});
  Value bytes(Element::int8, {3});
  for (std::size_t i = 0; i < 3; ++i) bytes.mutable_elements<std::int32_t>()[i] = std::array{100, -56, -1}[i];
  check_node(node("Cast", {"x"}, {"y"}, {whole("to", 3)}), {integers({3}, {100, 200, 255})}, {bytes});
}

TEST_CASE("half precision is the nearest number, ties to even") {
  for (const auto& [x, bits] : std::initializer_list<std::pair<float, int>>{{1.0f, 0x3c00},
                                                                            {-2.0f, 0xc000},
                                                                            {65504.0f, 0x7bff},
                                                                            {65520.0f, 0x7c00},
                                                                            {6e-8f, 1},
                                                                            {1.00048828125f, 0x3c00},
                                                                            {1.00146484375f, 0x3c02}})
    CHECK(onnx::half_bits(x) == bits);
  for (int bits = 0; bits < 0x7c00; ++bits)
    REQUIRE(onnx::half_bits(onnx::from_half_bits(static_cast<std::uint16_t>(bits))) == bits);
}

TEST_CASE("slices, from either end and backwards") {
  const Value x = integers({5}, {0, 1, 2, 3, 4});
  const auto sliced = [&](std::int64_t from, std::int64_t to, std::int64_t step,
                          std::vector<std::int64_t> want) {
    const auto n = static_cast<std::int64_t>(want.size());
    check_node(node("Slice", {"x", "s", "e", "a", "t"}, {"y"}),
               {x, integers({1}, {from}), integers({1}, {to}), integers({1}, {0}), integers({1}, {step})},
               {integers({n}, std::move(want))});
  };
  sliced(1, 3, 1, {1, 2});
  sliced(-2, 100, 1, {3, 4});
  sliced(4, -100, -2, {4, 2, 0});
  sliced(3, 3, 1, {});
  sliced(100, 0, -1, {4, 3, 2, 1});
}

TEST_CASE("shapes stay known on their way to a Reshape") {
  // x as [size of its first dimension, the rest], by Shape, Gather, Mul, Concat.
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {onnx::Dimension("N"), 3, 4})};
  g.initialisers = {{"zero", integers({}, {0})}, {"ones", integers({1}, {-1})}, {"axis", integers({1}, {0})}};
  g.nodes = {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
             node("Unsqueeze", {"n", "axis"}, {"nv"}),
             node("Concat", {"nv", "ones"}, {"shape"}, {whole("axis", 0)}),
             node("Reshape", {"x", "shape"}, {"y"})};
  g.outputs = {result("y")};
  const onnx::Session session = onnx::compile(model(g), {.target = core::Target::c});
  for (const std::int64_t n : {2, 5}) {
    const Value x = wave({n, 3, 4}, 1);
    check_near(session.run({x})[0], x.reshaped({n, 12}));
  }
  CHECK(session.compilations() == 1);
  CHECK(session.source("ir").find("f32[?,12]") != std::string::npos);
}

TEST_CASE("convolution with strides, distances, groups and pads that differ") {
  const Value x = wave({2, 4, 7, 6}, 1), w = wave({6, 2, 3, 2}, 2), bias = wave({6}, 3);
  const Shape stride = {2, 1}, dilation = {1, 2}, pads = {1, 0, 2, 1};
  const std::int64_t h = (7 + 3 - 2 - 1) / 2 + 1, l = (6 + 1 - 2 - 1) / 1 + 1;
  Value y(Element::float32, {2, 6, h, l});
  std::size_t at = 0;
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t o = 0; o < 6; ++o)
      for (std::int64_t i = 0; i < h; ++i)
        for (std::int64_t j = 0; j < l; ++j) {
          double sum = bias.at(static_cast<std::size_t>(o));
          for (std::int64_t c = 0; c < 2; ++c)
            for (std::int64_t p = 0; p < 3; ++p)
              for (std::int64_t q = 0; q < 2; ++q) {
                const std::int64_t r = i * 2 + p - 1, s = j + 2 * q;
                if (r < 0 || r >= 7 || s < 0 || s >= 6) continue;
                sum += x.at(static_cast<std::size_t>(((n * 4 + o / 3 * 2 + c) * 7 + r) * 6 + s)) *
                       w.at(static_cast<std::size_t>(((o * 2 + c) * 3 + p) * 2 + q));
              }
          y.mutable_elements<float>()[at++] = static_cast<float>(sum);
        }
  check_node(node("Conv", {"x", "w", "b"}, {"y"},
                  {wholes("strides", stride), wholes("dilations", dilation), wholes("pads", pads),
                   whole("group", 2)}),
             {x, w, bias}, {y});
}

TEST_CASE("pooling counts what is there") {
  const Value x = floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto pads = wholes("pads", {1, 1, 0, 0});
  check_node(node("AveragePool", {"x"}, {"y"}, {wholes("kernel_shape", {2, 2}), pads}), {x},
             {floats({1, 1, 3, 3}, {1, 1.5f, 2.5f, 2.5f, 3, 4, 5.5f, 6, 7})});
  check_node(node("AveragePool", {"x"}, {"y"},
                  {wholes("kernel_shape", {2, 2}), pads, whole("count_include_pad", 1)}),
             {x}, {floats({1, 1, 3, 3}, {0.25f, 0.75f, 1.25f, 1.25f, 3, 4, 2.75f, 6, 7})});
  check_node(node("MaxPool", {"x"}, {"y", "i"},
                  {wholes("kernel_shape", {2, 2}), wholes("strides", {2, 2}), whole("ceil_mode", 1)}),
             {x}, {floats({1, 1, 2, 2}, {5, 6, 8, 9}), integers({1, 1, 2, 2}, {4, 5, 7, 8})});
}

TEST_CASE("max pooling with distances and ceil_mode; a last window that ends with the pads") {
  for (const std::int64_t size : {6, 7}) {  // of 7 ceil_mode adds no place, of 6 it does
    const Value x = wave({2, 3, size, size}, 1);
    const std::int64_t places = (size + 2 - 5 + 1) / 2 + 1;
    Value y(Element::float32, {2, 3, places, places});
    std::size_t at = 0;
    for (std::int64_t c = 0; c < 6; ++c)
      for (std::int64_t i = 0; i < places; ++i)
        for (std::int64_t j = 0; j < places; ++j) {
          double most = -1e30;
          for (std::int64_t p = 0; p < 3; ++p)
            for (std::int64_t q = 0; q < 3; ++q) {
              const std::int64_t r = 2 * i + 2 * p - 1, t = 2 * j + 2 * q - 1;
              if (r < 0 || r >= size || t < 0 || t >= size) continue;
              most = std::max(most, x.at(static_cast<std::size_t>((c * size + r) * size + t)));
            }
          y.mutable_elements<float>()[at++] = static_cast<float>(most);
        }
    check_node(node("MaxPool", {"x"}, {"y"},
                    {wholes("kernel_shape", {3, 3}), wholes("strides", {2, 2}), wholes("dilations", {2, 2}),
                     wholes("pads", {1, 1, 1, 1}), whole("ceil_mode", 1)}),
               {x}, {y});
  }
}

TEST_CASE("a convolution of each channel by itself, with pads") {
  const Value x = wave({2, 3, 5, 4}, 1), w = wave({6, 1, 3, 3}, 2);
  Value y(Element::float32, {2, 6, 3, 2});
  std::size_t at = 0;
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t o = 0; o < 6; ++o)
      for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t j = 0; j < 2; ++j) {
          double sum = 0;
          for (std::int64_t p = 0; p < 3; ++p)
            for (std::int64_t q = 0; q < 3; ++q) {
              const std::int64_t r = 2 * i + p - 1, t = 2 * j + q - 1;
              if (r < 0 || r >= 5 || t < 0 || t >= 4) continue;
              sum += x.at(static_cast<std::size_t>(((n * 3 + o / 2) * 5 + r) * 4 + t)) *
                     w.at(static_cast<std::size_t>((o * 3 + p) * 3 + q));
            }
          y.mutable_elements<float>()[at++] = static_cast<float>(sum);
        }
  check_node(node("Conv", {"x", "w"}, {"y"},
                  {wholes("strides", {2, 2}), wholes("pads", {1, 1, 1, 1}), whole("group", 3)}),
             {x, w}, {y});
}

TEST_CASE("batch normalisation, in use and in training") {
  const Value x = wave({2, 3, 2}, 1), scale = wave({3}, 2), b = wave({3}, 3), mean = wave({3}, 4),
              variance = floats({3}, {0.5f, 1, 2});
  Value y(Element::float32, {2, 3, 2});
  for (std::size_t i = 0; i < 12; ++i) {
    const std::size_t c = i / 2 % 3;
    y.mutable_elements<float>()[i] =
        static_cast<float>((x.at(i) - mean.at(c)) / std::sqrt(variance.at(c) + 1e-3) * scale.at(c) + b.at(c));
  }
  check_node(node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, {real("epsilon", 1e-3)}),
             {x, scale, b, mean, variance}, {y});
  Value moved(Element::float32, {3});
  for (std::size_t c = 0; c < 3; ++c) {
    const double own = (x.at(2 * c) + x.at(2 * c + 1) + x.at(6 + 2 * c) + x.at(7 + 2 * c)) / 4;
    moved.mutable_elements<float>()[c] = static_cast<float>(0.9 * mean.at(c) + 0.1 * own);
  }
  const std::vector<Value> in = {x, scale, b, mean, variance};
  check_near(run(single(node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y", "rm", "rv"},
                             {whole("training_mode", 1)}),
                        in),
                 in)[1],
             moved);
}

TEST_CASE("softmax before version 13 is of a matrix") {
  const Value x = wave({2, 3, 4}, 1);
  Value old(Element::float32, {2, 3, 4}), now = old;
  for (std::size_t group = 0; group < 2; ++group) {
    double sum = 0;
    for (std::size_t i = 0; i < 12; ++i) sum += std::exp(x.at(12 * group + i));
    for (std::size_t i = 0; i < 12; ++i)
      old.mutable_elements<float>()[12 * group + i] =
          static_cast<float>(std::exp(x.at(12 * group + i)) / sum);
  }
  for (std::size_t row = 0; row < 6; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < 4; ++i) sum += std::exp(x.at(4 * row + i));
    for (std::size_t i = 0; i < 4; ++i)
      now.mutable_elements<float>()[4 * row + i] = static_cast<float>(std::exp(x.at(4 * row + i)) / sum);
  }
  check_node(node("Softmax", {"x"}, {"y"}), {x}, {old}, 11);
  check_node(node("Softmax", {"x"}, {"y"}), {x}, {now}, 13);
}

TEST_CASE("products broadcast what stands before the matrices") {
  const Value a = wave({2, 1, 2, 3}, 1), b = wave({4, 3, 2}, 2);
  Value y(Element::float32, {2, 4, 2, 2});
  std::size_t at = 0;
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t m = 0; m < 4; ++m)
      for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t j = 0; j < 2; ++j) {
          double sum = 0;
          for (std::size_t k = 0; k < 3; ++k) sum += a.at((n * 2 + i) * 3 + k) * b.at((m * 3 + k) * 2 + j);
          y.mutable_elements<float>()[at++] = static_cast<float>(sum);
        }
  check_node(node("MatMul", {"a", "b"}, {"y"}), {a, b}, {y});
  check_node(node("Einsum", {"a", "b"}, {"y"}, {text("equation", "nij, jk -> nik")}),
             {wave({2, 2, 2}, 1), floats({2, 2}, {1, 0, 0, 1})}, {wave({2, 2, 2}, 1)});
  check_node(node("Det", {"a"}, {"y"}), {floats({2, 2, 2}, {0, 2, 3, 4, 1, 2, 2, 4})},
             {floats({2}, {-6, 0})});
}

TEST_CASE("places that are found while the program runs") {
  check_node(node("NonZero", {"x"}, {"y"}), {floats({2, 3}, {0, 1, 0, 2, 0, 3})},
             {integers({2, 3}, {0, 1, 1, 1, 0, 2})});
  check_node(node("Compress", {"x", "c"}, {"y"}, {whole("axis", 1)}),
             {floats({2, 3}, {1, 2, 3, 4, 5, 6}), bools({3}, {true, false, true})},
             {floats({2, 2}, {1, 3, 4, 6})});
  check_node(node("TopK", {"x", "k"}, {"v", "i"}), {floats({4}, {3, 1, 4, 1}), integers({1}, {2})},
             {floats({2}, {4, 3}), integers({2}, {2, 0})});
  check_node(node("ScatterND", {"x", "i", "u"}, {"y"}, {text("reduction", "add")}),
             {floats({3}, {1, 2, 3}), integers({2, 1}, {2, 2}), floats({2}, {10, 20})},
             {floats({3}, {1, 2, 33})}, 16);
  check_node(node("GatherElements", {"x", "i"}, {"y"}, {whole("axis", 1)}),
             {floats({2, 2}, {1, 2, 3, 4}), integers({2, 1}, {-1, 0})}, {floats({2, 1}, {2, 3})});
  const std::vector<Value> boxes = {floats({1, 3, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 10, 1, 11}),
                                    floats({1, 1, 3}, {0.9f, 0.75f, 0.6f}), integers({1}, {3}),
                                    floats({1}, {0.5f}), floats({1}, {0.0f})};
  check_node(node("NonMaxSuppression", {"b", "s", "m", "o", "t"}, {"y"}), boxes,
             {integers({2, 3}, {0, 0, 0, 0, 0, 2})});
}

TEST_CASE("resizing") {
  const Value x = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  check_node(node("Resize", {"x", "", "s"}, {"y"},
                  {text("mode", "linear"), text("coordinate_transformation_mode", "align_corners")}),
             {x, floats({4}, {1, 1, 1.5f, 1.5f})},
             {floats({1, 1, 3, 3}, {1, 1.5f, 2, 2, 2.5f, 3, 3, 3.5f, 4})});
  check_node(node("Upsample", {"x", "s"}, {"y"}), {x, floats({4}, {1, 1, 1, 2})},
             {floats({1, 1, 2, 4}, {1, 1, 2, 2, 3, 3, 4, 4})}, 9);
}

TEST_CASE("quantised numbers") {
  Value q(Element::uint8, {4});
  for (std::size_t i = 0; i < 4; ++i) q.mutable_elements<std::int32_t>()[i] = std::array{0, 130, 128, 255}[i];
  Value zero(Element::uint8, {});
  zero.mutable_elements<std::int32_t>()[0] = 128;
  check_node(node("QuantizeLinear", {"x", "s", "z"}, {"y"}),
             {floats({4}, {-1000, 5, 1, 1000}), floats({}, {2}), zero}, {q});
  check_node(node("DequantizeLinear", {"x", "s", "z"}, {"y"}), {q, floats({}, {2}), zero},
             {floats({4}, {-256, 4, 0, 254})});
}

TEST_CASE("a signal's transform") {
  check_node(node("DFT", {"x"}, {"y"}, {whole("axis", 1)}), {floats({1, 4, 1}, {1, 2, 3, 4})},
             {floats({1, 4, 2}, {10, 0, -2, 2, -2, 0, -2, -2})});
}

TEST_CASE("recurrent layers: the state of one step, and what follows from lengths") {
  // One hidden number, no weights for the state: h = tanh(x), then 0 behind the length.
  const Value x = floats({3, 2, 1}, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f}), one = floats({1, 1, 1}, {1}),
              none = floats({1, 1, 1}, {0});
  Value lengths(Element::int32, {2});
  lengths.mutable_elements<std::int32_t>()[0] = 3;
  lengths.mutable_elements<std::int32_t>()[1] = 1;
  const auto t = [](double v) { return static_cast<float>(std::tanh(v)); };
  check_node(
      node("RNN", {"x", "w", "r", "", "l"}, {"y", "h"}, {whole("hidden_size", 1)}), {x, one, none, lengths},
      {floats({3, 1, 2, 1}, {t(0.1), t(0.2), t(0.3), 0, t(0.5), 0}), floats({1, 2, 1}, {t(0.5), t(0.2)})});
  check_node(
      node("RNN", {"x", "w", "r", "", "l"}, {"y", "h"},
           {whole("hidden_size", 1), text("direction", "reverse")}),
      {x, one, none, lengths},
      {floats({3, 1, 2, 1}, {t(0.1), t(0.2), t(0.3), 0, t(0.5), 0}), floats({1, 2, 1}, {t(0.1), t(0.2)})});
}
