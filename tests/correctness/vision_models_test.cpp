// The models of samples/ that look at pictures, and what reads their data: SqueezeNet written by hand beside
// the same in an ONNX file, ResNet by functions that are called beside the same written out, damaged files.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <lantern/onnx.hpp>

#include "../../samples/image_data.hpp"
#include "../../samples/picture.hpp"
#include "../../samples/resnet_model.hpp"
#include "../../samples/squeezenet_model.hpp"
#include "../../samples/training.hpp"
#include "catch2/catch.hpp"

namespace fs = std::filesystem;
using namespace lantern;

namespace {

using Images = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;

fs::path data() {
  const char* named = std::getenv("LANTERN_DATA");
  return named ? fs::path(named) : fs::path(LANTERN_TEST_DIR) / "../../shared/data";
}

/// A folder for files of a test.
struct Scratch {
  fs::path folder = fs::temp_directory_path() / ("lantern_vision_" + std::to_string(std::rand()));
  Scratch() { fs::create_directory(folder); }
  ~Scratch() { fs::remove_all(folder); }
  fs::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return folder / name;
  }
  fs::path write_zipped(const std::string& name, const std::string& bytes) const {
    const gzFile file = gzopen((folder / name).c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return folder / name;
  }
};
std::string idx_header(std::initializer_list<char> sizes) {
  std::string s{0, 0, 8, static_cast<char>(sizes.size())};
  for (const char size : sizes) s += std::string{0, 0, 0, size};
  return s;
}
template <class F>
std::string message(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// The name that the weights of SqueezeNet have in the model of the ONNX model zoo.
std::string zoo_name(const std::string& ours) {
  const std::string kind = ours.ends_with(".weight") ? "_w_0" : "_b_0";
  if (ours.starts_with("first.")) return "conv1" + kind;
  if (ours.starts_with("last.")) return "conv10" + kind;
  const std::string fire =
      "fire" + std::to_string(std::stoi(ours.substr(6)) + 2) + "/";  // fires.0.squeeze.weight
  const char* const part = ours.find("squeeze") != std::string::npos   ? "squeeze1x1"
                           : ours.find("expand1") != std::string::npos ? "expand1x1"
                                                                       : "expand3x3";
  return fire + part + kind;
}

}  // namespace

TEST_CASE("SqueezeNet by hand computes what the ONNX model does") {
  const fs::path folder = data() / "onnx";
  if (!fs::exists(folder / "squeezenet_fp16.onnx") || !fs::exists(folder / "kitten_224.png")) {
    WARN("skipped: no onnx/squeezenet_fp16.onnx or onnx/kitten_224.png in $LANTERN_DATA or ../shared/data");
    return;
  }
  const onnx::Model file = onnx::load(folder / "squeezenet_fp16.onnx");
  nn::Generator rng(1);
  auto model = SqueezeNet<float>::init(3, 1000, rng);
  std::size_t given = 0;
  nn::for_each_parameter(model, [&](const std::string& name, auto& p) {
    INFO(name << " is " << zoo_name(name));
    const onnx::Initialiser* const weight = file.graph.initialiser(zoo_name(name));
    REQUIRE(weight != nullptr);
    REQUIRE(weight->value.shape() == p.shape);
    p = weight->value.tensor<float>();
    ++given;
  });
  CHECK(given == file.graph.initialisers.size());

  const Picture kitten = read_png(folder / "kitten_224.png");
  REQUIRE((kitten.width == 224 && kitten.height == 224));
  TensorValue<float> x({1, 3, 224, 224});
  for (std::int64_t channel = 0; channel < 3; ++channel)  // blue, green, red, from 0 to 255
    for (std::int64_t i = 0; i < 224 * 224; ++i)
      x[static_cast<std::size_t>(channel * 224 * 224 + i)] = kitten.at(i % 224, i / 224, 2 - channel);

  const auto ours = compile([](SqueezeNet<Rep<float>> m, Images in) { return softmax<1>(m(in)); },
                            {.target = Target::cpp})(nn::view(model), x);
  const onnx::Session session = onnx::compile(file, {.target = Target::cpp});
  onnx::Value in(session.arguments()[0].element, x.shape);
  std::copy(x.data.begin(), x.data.end(), in.mutable_elements<float>().begin());
  const std::vector<onnx::Value> out = session.run({in});
  const auto theirs = out.at(0).elements<float>();
  REQUIRE(ours.data.size() == 1000);
  REQUIRE(theirs.size() == 1000);
  float apart = 0;
  for (std::size_t i = 0; i < 1000; ++i) apart = std::max(apart, std::abs(ours[i] - theirs[i]));
  CHECK(apart <= 0x1p-11f);  // the model rounds to float16
  const auto best = std::max_element(ours.data.begin(), ours.data.end());
  CHECK(best - ours.data.begin() == 281);
  CHECK(*best == Approx(0.93).margin(0.01));
}

TEST_CASE("the blocks of ResNet are functions, with the derivatives of the same written out") {
  using Block = resnet::Bottleneck<Rep<float>>;
  using Seen = resnet::BottleneckStatistics<Rep<float>>;
  const auto written_out = [](Block a, Block b, Seen s, Seen t, Images x) {
    return grad([&](Block v, Block w) {
      Seen first = s, second = t;
      const Images y = relu(resnet::inside(v, first, x, 1, true) + x);
      return sum(relu(resnet::inside(w, second, y, 1, true) + y) * y);
    })(a, b);
  };
  const auto by_calls = [](Block a, Block b, Seen s, Seen t, Images x) {
    return grad([&](Block v, Block w) {
      const auto block = resnet::next_block(true);
      const Images y = std::get<0>(block(v, s, x));
      return sum(std::get<0>(block(w, t, y)) * y);
    })(a, b);
  };
  nn::Generator rng(7);
  auto a = resnet::Bottleneck<float>::init(8, 2, rng), b = resnet::Bottleneck<float>::init(8, 2, rng);
  nn::normal(a.expand.norm.weight, rng);
  nn::normal(b.expand.norm.weight, rng);
  const auto s = resnet::BottleneckStatistics<float>::init(2);
  TensorValue<float> x({3, 8, 4, 4});
  nn::normal(x, rng);
  const CompileOptions options{.target = Target::c};
  const auto expected = compile(written_out, options)(nn::view(a), nn::view(b), nn::view(s), nn::view(s), x);
  const auto got = compile(by_calls, options)(nn::view(a), nn::view(b), nn::view(s), nn::view(s), x);
  std::vector<float> left, right;
  nn::for_each_parameter(expected, [&](const std::string&, const auto& p) {
    left.insert(left.end(), p.data.begin(), p.data.end());
  });
  nn::for_each_parameter(got, [&](const std::string&, const auto& p) {
    right.insert(right.end(), p.data.begin(), p.data.end());
  });
  REQUIRE(left.size() == right.size());
  CHECK(*std::max_element(left.begin(), left.end()) > 0.1f);
  for (std::size_t i = 0; i < left.size(); ++i) {
    INFO("element " << i);
    CHECK(left[i] == Approx(right[i]).epsilon(1e-3).margin(1e-4));
  }
}

TEST_CASE("files of MNIST, whole and damaged") {
  const Scratch scratch;
  const std::string images = idx_header({2, 2, 3}) + std::string("abcdefghijkl"),
                    labels = idx_header({2}) + std::string{7, 3};
  scratch.write_zipped("train-images-idx3-ubyte.gz", images);
  scratch.write("train-labels-idx1-ubyte", labels);  // not compressed
  const LabelledImages read = read_mnist(scratch.folder, "train");
  CHECK(read.size() == 2);
  CHECK(read.height == 2);
  CHECK(read.width == 3);
  CHECK(read.labels == std::vector<std::int64_t>{7, 3});
  CHECK(std::string(read.bytes.begin(), read.bytes.end()) == "abcdefghijkl");

  const auto said = [&] { return message([&] { read_mnist(scratch.folder, "train"); }); };
  scratch.write("train-labels-idx1-ubyte", idx_header({3}) + std::string{7, 3, 1});
  CHECK(said().find("expected a label for each picture, found 2 pictures") == 0);
  scratch.write("train-labels-idx1-ubyte", idx_header({2}) + std::string{7, 10});
  CHECK(said().find("expected labels from 0 to 9, found 10") == 0);
  scratch.write("train-labels-idx1-ubyte", labels + "x");
  CHECK(said().find("expected as many elements as the sizes say") == 0);
  scratch.write("train-labels-idx1-ubyte", std::string("PNG"));
  CHECK(said().find("expected an idx file of bytes with 1 dimensions") == 0);
  scratch.write_zipped("train-images-idx3-ubyte.gz",
                       std::string{0, 0, 8, 3} + std::string(12, '\xff') + "abc");
  CHECK(said().find("expected as many elements as the sizes say") == 0);

  const fs::path cut = scratch.write_zipped("train-images-idx3-ubyte.gz", images);
  fs::resize_file(cut, fs::file_size(cut) - 6);
  CHECK(said().find("expected a whole gzip file") == 0);
  fs::remove(cut);
  CHECK(said().find("expected a file of pictures or labels, cannot open") == 0);
}

TEST_CASE("files of CIFAR-10, whole and damaged") {
  const Scratch scratch;
  std::string two(2 * 3073, 'a');
  two[0] = 9;
  two[3073] = 0;
  two[3074] = 'z';
  const LabelledImages read = read_cifar10(scratch.write("a.bin", two));
  CHECK(read.labels == std::vector<std::int64_t>{9, 0});
  CHECK(read.bytes[3072] == 'z');
  CHECK(read.bytes.size() == 2 * 3072);
  const auto said = [&](const std::string& bytes) {
    return message([&] { read_cifar10(scratch.write("b.bin", bytes)); });
  };
  CHECK(said(two + "x").find("expected records of 3073 bytes") == 0);
  CHECK(said("").find("expected records of 3073 bytes") == 0);
  two[0] = 10;
  CHECK(said(two).find("expected labels from 0 to 9, found 10") == 0);
  CHECK(message([&] { read_cifar10(scratch.folder / "none.bin"); }).find("expected a file of CIFAR-10") == 0);
}

TEST_CASE("batches hold each picture once, normalised") {
  const LabelledImages all = draw_waves(10, 3, 8);
  const Spread spread = spread_of(all);
  Batches batches(all, 3, spread, 5);
  CHECK(batches.count() == 3);
  CHECK(batches[0].labels[1] == all.labels[1]);
  CHECK(batches[0].images[0] == Approx((all.bytes[0] - spread.mean) / spread.deviation).epsilon(1e-5));
  batches.shuffle();
  std::vector<std::vector<float>> seen;
  for (std::size_t i = 0; i < batches.count(); ++i) {
    const std::vector<float>& x = batches[i].images.data;
    for (std::size_t k = 0; k < 3; ++k)
      seen.emplace_back(x.begin() + static_cast<std::ptrdiff_t>(k * all.bytes_each()),
                        x.begin() + static_cast<std::ptrdiff_t>((k + 1) * all.bytes_each()));
  }
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  CHECK(seen.size() == 9);
  CHECK(message([&] { Batches(all, 11, spread); }) == "expected a batch of 1 to 10 pictures, got 11");
}

TEST_CASE("parameters come back from the file of --export") {
  const Scratch scratch;
  nn::Generator rng(2);
  const auto model = nn::Linear<float>::init(3, 2, rng);
  LossCurve curve;
  for (int i = 0; i < 4; ++i) curve.add(i, i == 2 ? NAN : 4.0 - i);
  Training options;
  options.export_to = scratch.folder / "w.safetensors";
  options.curve = scratch.folder / "c.svg";
  finish(options, model, curve, "a < b");
  auto again = nn::Linear<float>::init(3, 2, rng);
  CHECK(again.weight.data != model.weight.data);
  nn::load(options.export_to, again);
  CHECK(again.weight.data == model.weight.data);
  std::ifstream in(options.curve);
  const std::string svg{std::istreambuf_iterator<char>(in), {}};
  CHECK(svg.find("a &lt; b") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.ends_with("</svg>\n"));
  options.export_to = scratch.folder / "w.bin";
  CHECK(message([&] { finish(options, model, curve, ""); }).find("--export: expected a name that ends in") ==
        0);
}

TEST_CASE("pictures are written and read again") {
  const Scratch scratch;
  for (const std::int64_t channels : {1, 3}) {
    Picture p(5, 4, channels);
    for (std::size_t i = 0; i < p.pixels.size(); ++i) p.pixels[i] = static_cast<std::uint8_t>(i * 3);
    write_png(scratch.folder / "p.png", p);
    const Picture q = read_png(scratch.folder / "p.png", channels);
    CHECK(q.pixels == p.pixels);
    CHECK((q.width == 5 && q.height == 4));
    p.pixels.pop_back();
    CHECK(message([&] {
            write_png(scratch.folder / "p.png", p);
          }).find("write_png: expected a pixel for each place") == 0);
  }
  CHECK(to_byte(-1) == 0);
  CHECK(to_byte(0.5) == 128);
  CHECK(to_byte(7) == 255);
  CHECK(to_byte(NAN) == 0);
  CHECK(message([&] { read_png(scratch.write("x.png", "no picture")); }).find("expected a PNG file") == 0);
  CHECK(message([&] {
          write_png(scratch.folder / "none/p.png", Picture(1, 1));
        }).find("expected to write a picture") == 0);
}
