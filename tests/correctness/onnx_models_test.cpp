// Trained models in ONNX files, compiled: their outputs for pictures of the data sets, against what OpenCV
// computes.
#include <png.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <lantern/onnx.hpp>
#include <sstream>

#include "catch2/catch.hpp"

namespace fs = std::filesystem;
using namespace lantern;

namespace {

/// The folder of the data sets, if it has the models.
fs::path data() {
  const char* named = std::getenv("LANTERN_DATA");
  const fs::path beside = fs::path(LANTERN_TEST_DIR) / "../../shared/data";
  const fs::path folder = named ? fs::path(named) : beside;
  if (fs::exists(folder / "onnx/expected")) return folder;
  WARN("skipped: no onnx/expected in $LANTERN_DATA or ../shared/data");
  return {};
}

/// The bytes of a file, unpacked.
std::vector<unsigned char> bytes_of(const fs::path& path, std::size_t most) {
  std::vector<unsigned char> all(most);
  gzFile file = gzopen(path.c_str(), "rb");
  REQUIRE(file != nullptr);
  const int n = gzread(file, all.data(), static_cast<unsigned>(most));
  gzclose(file);
  all.resize(static_cast<std::size_t>(std::max(n, 0)));
  return all;
}

/// Lines "number class value...": what is expected for the first pictures.
std::vector<std::vector<float>> expected(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::vector<float>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::vector<float> row;
    for (float v; words >> v;) row.push_back(v);
    rows.push_back(std::move(row));
  }
  return rows;
}

using Picture = std::function<std::vector<float>(std::size_t)>;

/// Runs the model on each picture that the file has outputs for.
void check_classifier(const fs::path& folder, const std::string& name, std::vector<std::int64_t> shape,
                      const Picture& picture) {
  const onnx::Session session =
      onnx::compile(onnx::load(folder / "onnx" / (name + ".onnx")), {.target = core::Target::cpp});
  const auto rows = expected(folder / "onnx/expected" / (name + ".txt"));
  REQUIRE(rows.size() == 8);
  for (const std::vector<float>& row : rows) {
    const TensorValue<float> x(picture(static_cast<std::size_t>(row[0])), shape);
    const std::vector<onnx::Value> out = session.run({onnx::Value(x)});
    const auto y = out.at(0).elements<float>();
    REQUIRE(y.size() == row.size() - 2);
    float largest = 0;
    for (std::size_t k = 0; k < y.size(); ++k) largest = std::max(largest, std::abs(row[k + 2]));
    for (std::size_t k = 0; k < y.size(); ++k) CHECK(std::abs(y[k] - row[k + 2]) <= 1e-4f * largest);
  }
}

Picture mnist(const fs::path& folder, float scale) {
  const auto bytes = std::make_shared<std::vector<unsigned char>>(
      bytes_of(folder / "mnist/t10k-images-idx3-ubyte.gz", 16 + 8 * 784));
  return [=](std::size_t i) {
    std::vector<float> x(784);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>((*bytes)[16 + 784 * i + k]) * scale;
    return x;
  };
}

}  // namespace

TEST_CASE("models of MNIST digits") {
  const fs::path folder = data();
  if (folder.empty()) return;
  check_classifier(folder, "mnist_cntk_winml", {1, 1, 28, 28}, mnist(folder, 1.0f));
  check_classifier(folder, "Convnet_maxpool", {1, 1, 28, 28}, mnist(folder, 1.0f / 255));
  check_classifier(folder, "mnist-net_256x2", {1, 784, 1}, mnist(folder, 1.0f / 255));
}

TEST_CASE("a residual network of CIFAR-10") {
  const fs::path folder = data();
  if (folder.empty()) return;
  const std::vector<unsigned char> bytes = bytes_of(folder / "cifar10/test_1000.bin", 8 * 3073);
  check_classifier(folder, "resnet_2b", {1, 3, 32, 32}, [&](std::size_t i) {
    static constexpr float mean[] = {0.4914f, 0.4822f, 0.4465f}, deviation[] = {0.2471f, 0.2435f, 0.2616f};
    std::vector<float> x(3072);
    for (std::size_t k = 0; k < x.size(); ++k)
      x[k] = (static_cast<float>(bytes[3073 * i + 1 + k]) / 255 - mean[k / 1024]) / deviation[k / 1024];
    return x;
  });
}

TEST_CASE("SqueezeNet with weights of half precision sees a tabby cat") {
  const fs::path folder = data();
  if (folder.empty()) return;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_file(&image, (folder / "onnx/kitten_224.png").c_str()) != 0);
  image.format = PNG_FORMAT_BGR;
  std::vector<unsigned char> pixels(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) != 0);
  REQUIRE((image.width == 224 && image.height == 224));
  const onnx::Session session =
      onnx::compile(onnx::load(folder / "onnx/squeezenet_fp16.onnx"), {.target = core::Target::cpp});
  onnx::Value x(session.arguments()[0].element, {1, 3, 224, 224});
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t p = 0; p < 224 * 224; ++p)
      x.mutable_elements<float>()[k * 224 * 224 + p] = static_cast<float>(pixels[3 * p + k]);
  const std::vector<onnx::Value> out = session.run({x});
  const auto rows = expected(folder / "onnx/expected/squeezenet_fp16.txt");
  REQUIRE(rows.size() == 1000);
  REQUIRE(out.at(0).size() == 1000);
  std::size_t best = 0;
  for (std::size_t k = 0; k < 1000; ++k) {
    // Numbers of float16 below 1 are 2^-11 from each other.
    CHECK(std::abs(out[0].at(k) - static_cast<double>(rows[k].at(0))) <= 0x1p-11);
    if (out[0].at(k) > out[0].at(best)) best = k;
  }
  CHECK(best == 281);
  CHECK(out[0].at(best) == Approx(0.93).margin(0.01));
}

TEST_CASE("the gradient by the weights of a trained network is the slope along it") {
  const fs::path folder = data();
  if (folder.empty()) return;
  const auto net = onnx::import_onnx<Tensor<float>(Tensor<float>)>(folder / "onnx/resnet_2b.onnx");
  using Images = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;
  const auto loss = [=](Rep<Array<float>> w, Images x) {
    const auto y = net(w, x);
    return sum(y * y);
  };
  const core::CompileOptions options{.target = core::Target::cpp};
  const auto value = core::compile(loss, options);
  const auto slope = core::compile(grad<0>(loss), options);
  TensorValue<float> x({1, 3, 32, 32});
  for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] = std::sin(static_cast<float>(i));
  const std::vector<float> w = net.parameters(), g = slope(w, x);
  REQUIRE(g.size() == 112006);
  double squares = 0;
  for (const float v : g) squares += static_cast<double>(v) * static_cast<double>(v);
  const double size = std::sqrt(squares), h = 1e-3;
  std::vector<float> above = w, below = w;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const auto step = static_cast<float>(h * static_cast<double>(g[i]) / size);
    above[i] += step;
    below[i] -= step;
  }
  CHECK((static_cast<double>(value(above, x)) - static_cast<double>(value(below, x))) / (2 * h) ==
        Approx(size).epsilon(1e-2));
}

// Of these graphs the weights are all the same number, and so is every output.
TEST_CASE("the graphs of SqueezeNet and ResNet50") {
  const fs::path folder = data();
  if (folder.empty()) return;
  for (const char* name : {"light_squeezenet", "light_resnet50"}) {
    const onnx::Model model = onnx::load(folder / "onnx/light" / (std::string(name) + ".onnx"));
    const onnx::Session session = onnx::compile(model, {.target = core::Target::cpp});
    const onnx::ValueInfo& in = session.arguments().at(0);
    std::vector<std::int64_t> shape;
    for (const onnx::Dimension& d : *in.shape) shape.push_back(*d.size);
    onnx::Value x(in.element, shape);
    for (float& v : x.mutable_elements<float>()) v = 0.5f;
    const std::vector<onnx::Value> out = session.run({x});
    CHECK(out.at(0).size() == 1000);
    for (const float v : out[0].elements<float>()) REQUIRE(v == Approx(0.001).epsilon(1e-3));
  }
}
