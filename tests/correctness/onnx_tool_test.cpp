// lantern-onnx as a command: what it prints, runs and writes.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <lantern/data.hpp>
#include <lantern/onnx.hpp>

#include "cuda_tensors.hpp"
#include "lantern/codegen/toolchain/process.hpp"

using namespace lantern;
namespace fs = std::filesystem;
using Catch::Contains;

namespace {

/// A folder for a test, with the model of a small network in it: scores = relu(x w) v.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("lantern-onnx-tool-" + std::to_string(::getpid()));
  TensorValue<float> w{std::vector<float>{0.5F, -1, 0.25F, 1, 0.75F, -0.5F}, std::vector<std::int64_t>{2, 3}};
  TensorValue<float> v{std::vector<float>{1, -0.5F, 0.5F, 0.25F, -1, 1}, std::vector<std::int64_t>{3, 2}};

  Folder() {
    fs::create_directories(path);
    write("small.onnx", "Relu");
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator()(const std::string& name) const { return (path / name).string(); }

  void write(const std::string& name, const std::string& op) const {
    const auto matrix = [](const std::string& called, std::int64_t columns) {
      onnx::ValueInfo value;
      value.name = called;
      value.element = onnx::Element::float32;
      value.shape = std::vector<onnx::Dimension>{onnx::Dimension("batch"), onnx::Dimension(columns)};
      return value;
    };
    onnx::Model m;
    m.producer = "by hand";
    m.opsets[""] = 17;
    m.graph.name = "small";
    m.graph.inputs = {matrix("x", 2)};
    m.graph.outputs = {matrix("scores", 2)};
    m.graph.initialisers = {{"w", onnx::Value(w)}, {"v", onnx::Value(v)}};
    m.graph.nodes = {{"first", "MatMul", "", {"x", "w"}, {"h"}, {}},
                     {"second", op, "", {"h"}, {"r"}, {}},
                     {"third", "MatMul", "", {"r", "v"}, {"scores"}, {}}};
    std::ofstream(path / name, std::ios::binary) << onnx::write(m);
  }
};

codegen::ProcessResult tool(const std::vector<std::string>& words) {
  std::vector<std::string> command = {LANTERN_ONNX_TOOL};
  command.insert(command.end(), words.begin(), words.end());
  return codegen::run_process(command);
}

}  // namespace

TEST_CASE("lantern-onnx tells what a model is", "[onnx]") {
  const Folder folder;
  const codegen::ProcessResult r = tool({folder("small.onnx")});
  CHECK(r.status == 0);
  CHECK(r.out.find("graph 'small' by by hand; format version 8, operators of ai.onnx 17\n") !=
        std::string::npos);
  CHECK(
      r.out.find("\narguments\n  x : float32[batch, 2]\n"
                 "results\n  scores : float32[batch, 2]\n"
                 "weights and constants\n  w : float32[2,3], 24 bytes\n  v : float32[3,2], 24 bytes\n"
                 "  together 2 tensors of 12 numbers, 48 bytes\n"
                 "nodes (3)\n  h = MatMul(x, w)\n  r = Relu(h)\n  scores = MatMul(r, v) : float32[batch, 2]\n"
                 "operators\n  2 MatMul 1 Relu\n"
                 "all operators are supported\n") != std::string::npos);
}

TEST_CASE("lantern-onnx names the nodes that nothing computes", "[onnx]") {
  const Folder folder;
  folder.write("strange.onnx", "Frobnicate");
  const codegen::ProcessResult r = tool({folder("strange.onnx")});
  CHECK(r.status == 1);
  CHECK_THAT(r.out,
             Contains("not supported\n") && Contains("Frobnicate") && Contains("node 'second' (Frobnicate)"));
}

TEST_CASE("lantern-onnx says what is wrong with a command", "[onnx]") {
  const Folder folder;
  const std::string model = folder("small.onnx");
  const auto message = [&](std::vector<std::string> words) {
    const codegen::ProcessResult r = tool(words);
    CHECK(r.status == 1);
    return r.err;
  };
  CHECK_THAT(message({model, "--emit=wasm"}),
             Contains("--emit: expected ir, c, cpp, cuda, header, object, shared, weights, got 'wasm'"));
  CHECK_THAT(message({model, "--train", "--emit=cpp", "--loss=hinge"}),
             Contains("--loss: expected cross_entropy, mse, got 'hinge'"));
  CHECK_THAT(message({model, "--optimizer=adam", "--emit=cpp"}),
             Contains("--optimizer is for use with --train"));
  CHECK_THAT(message({model, "--emit=weights"}), Contains("--emit=weights: expected -o FILE"));
  CHECK_THAT(message({model, "--emit=c", "--cpu=none"}), Contains("--cpu: expected LLVM's name of a processor"));
  CHECK_THAT(message({model, "--run", "x.npz", "-o", "y.npz", "--cpu=x86-64-v2"}), Contains("--cpu does not go with --run"));
  CHECK_THAT(message({model, "--run", "x.npz"}), Contains("--run: expected -o FILE.npz"));
  CHECK_THAT(message({model, "--repeat", "3"}), Contains("--repeat is for use with --run"));
  CHECK_THAT(message({model, "--run", "x.npz", "-o", "y.npz", "--repeat", "-1"}),
             Contains("--repeat: expected a number of runs, got -1"));
  CHECK_THAT(message({folder("none.onnx")}), Contains("none.onnx"));
  save_npz(folder("y.npz"), {{"y", TensorValue<float>({1, 2})}});
  CHECK_THAT(message({model, "--run", folder("y.npz"), "-o", folder("z.npz")}),
             Contains("expected an array 'x' for the model's argument, got y"));
}

TEST_CASE("lantern-onnx runs a model on arrays", "[onnx]") {
  const Folder folder;
  const TensorValue<float> x(std::vector<float>{1, 2, -1, 0.5F, 0, 3}, std::vector<std::int64_t>{3, 2});
  save_npz(folder("x.npz"), {{"x", x}});
  const codegen::ProcessResult r =
      tool({folder("small.onnx"), "--run", folder("x.npz"), "-o", folder("y.npz")});
  REQUIRE((r.status == 0 && r.err.empty()));
  const auto y = load_npz(folder("y.npz")).at("scores").get<float>();
  REQUIRE(y.shape == std::vector<std::int64_t>{3, 2});
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 2; ++k) {
      float expected = 0;
      for (std::size_t j = 0; j < 3; ++j) {
        const float h = x.data[2 * i] * folder.w.data[j] + x.data[2 * i + 1] * folder.w.data[3 + j];
        expected += std::max(h, 0.0F) * folder.v.data[2 * j + k];
      }
      CHECK(y.data[2 * i + k] == Approx(expected).margin(1e-6));
    }
}

TEST_CASE("lantern-onnx prints strings, and writes a sequence item by item", "[onnx]") {
  const Folder folder;
  onnx::ValueInfo x, y, parts;
  x.name = "x";
  x.element = onnx::Element::float32;
  x.shape = std::vector<onnx::Dimension>{onnx::Dimension(std::int64_t{2}), onnx::Dimension(std::int64_t{2})};
  y.name = "y";
  parts.name = "parts";
  onnx::Model m;
  m.opsets[""] = 17;
  m.graph.name = "texts";
  m.graph.inputs = {x};
  m.graph.outputs = {y, parts};
  m.graph.nodes = {{"a", "Cast", "", {"x"}, {"y"}, {{"to", std::int64_t{8}}}},
                   {"b", "SplitToSequence", "", {"x"}, {"parts"}, {{"axis", std::int64_t{0}}}}};
  std::ofstream(folder("texts.onnx"), std::ios::binary) << onnx::write(m);
  save_npz(folder("x.npz"), {{"x", TensorValue<float>(std::vector<float>{1, 2.5F, -1, 0.5F}, {2, 2})}});
  const codegen::ProcessResult r =
      tool({folder("texts.onnx"), "--run", folder("x.npz"), "-o", folder("y.npz")});
  CHECK(r.status == 0);
  CHECK(r.out == "y : string[2,2] = '1', '2.5', '-1', '0.5'\n");
  CHECK(load_npz(folder("y.npz")).at("parts.1").get<float>().data == std::vector<float>{-1, 0.5F});
}

TEST_CASE("lantern-onnx says how long a run takes", "[onnx]") {
  const Folder folder;
  save_npz(folder("x.npz"), {{"x", TensorValue<float>({3, 2}, 0.5F)}});
  const codegen::ProcessResult r =
      tool({folder("small.onnx"), "--run", folder("x.npz"), "-o", folder("y.npz"), "--repeat", "3"});
  INFO(r.err);
  REQUIRE(r.status == 0);
  CHECK_THAT(r.out,
             Catch::Matches("a run takes [0-9]+\\.[0-9]{3} ms, median of 3; [0-9]+\\.[0-9]{3} ms of the "
                            "processor, at least\n"));
  CHECK(load_npz(folder("y.npz")).at("scores").get<float>().shape == std::vector<std::int64_t>{3, 2});
}

TEST_CASE("lantern-onnx keeps the code of a run", "[onnx]") {
  Folder folder;
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before ? before : "";
  ::setenv("XDG_CACHE_HOME", folder("cache").c_str(), 1);
  const auto scores = [&](const std::vector<std::string>& more) {
    fs::remove(folder("y.npz"));
    std::vector<std::string> words = {folder("small.onnx"), "--run", folder("x.npz"), "-o", folder("y.npz")};
    words.insert(words.end(), more.begin(), more.end());
    const codegen::ProcessResult r = tool(words);
    INFO(r.err);
    REQUIRE(r.status == 0);
    return load_npz(folder("y.npz")).at("scores").get<float>().data;
  };
  const auto files = [&] {
    return fs::exists(folder("cache/lantern/code"))
               ? std::distance(fs::directory_iterator(folder("cache/lantern/code")), fs::directory_iterator())
               : 0;
  };
  save_npz(folder("x.npz"), {{"x", TensorValue<float>({3, 2}, 0.5F)}});
  const std::vector<float> expected = scores({"--no-cache"});
  CHECK(files() == 0);
  CHECK(scores({}) == expected);
  const auto first = files();
  CHECK(first >= 2);
  CHECK(scores({}) == expected);
  CHECK(files() == first);
  // Weights are arguments of the code: others need no other code.
  std::ranges::fill(folder.v.data, 0.0F);
  folder.write("small.onnx", "Relu");
  CHECK(scores({}) == std::vector<float>(6, 0.0F));
  CHECK(files() == first);
  // Another program does, and what cannot be kept is compiled.
  folder.write("small.onnx", "Neg");
  CHECK(scores({}).size() == 6);
  CHECK(files() > first);
  ::setenv("XDG_CACHE_HOME", "/proc/none", 1);
  CHECK(scores({}).size() == 6);
  if (before)
    ::setenv("XDG_CACHE_HOME", kept.c_str(), 1);
  else
    ::unsetenv("XDG_CACHE_HOME");
}

TEST_CASE("lantern-onnx writes CUDA that gives what the model gives", "[onnx][cuda]") {
  const Folder folder;
  const codegen::ProcessResult r = tool({folder("small.onnx"), "--emit=cuda"});
  INFO(r.err);
  REQUIRE(r.status == 0);
  CHECK_THAT(r.out, Contains("// The weights are one vector") && Contains("__global__ void small_"));
  TensorValue<float> weights(std::vector<std::int64_t>{12}), x({70, 2});
  std::copy(folder.w.data.begin(), folder.w.data.end(), weights.data.begin());
  std::copy(folder.v.data.begin(), folder.v.data.end(), weights.data.begin() + 6);
  for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] = std::sin(static_cast<float>(i));
  const onnx::Session session = onnx::compile(onnx::load(folder("small.onnx")));
  const onnx::Value expected = session.run({onnx::Value(x)})[0];
  const test::Emulated emulated(r.out, "small");
  test::compare_all(emulated(weights, x), expected.tensor<float>(), 1e-5);
}

TEST_CASE("lantern-onnx writes weights by their names", "[onnx]") {
  const Folder folder;
  REQUIRE(tool({folder("small.onnx"), "--emit=weights", "-o", folder("w.safetensors")}).status == 0);
  const Safetensors file = load_safetensors(fs::path(folder("w.safetensors")));
  CHECK(file.tensors.at("w").get<float>().data == folder.w.data);
  CHECK(file.tensors.at("v").get<float>().shape == folder.v.shape);
}

TEST_CASE("lantern-onnx writes a model, and its derivative, as sources", "[onnx]") {
  const Folder folder;
  const auto emitted = [&](std::vector<std::string> words) {
    words.insert(words.begin(), folder("small.onnx"));
    const codegen::ProcessResult r = tool(words);
    INFO(r.err);
    CHECK(r.status == 0);
    return r.out;
  };
  const std::string layout =
      "// The weights are one vector: where each begins, its name in the model and its shape.\n//   0  w "
      "[2,3]\n//   6  v [3,2]\n";
  for (const char* kind : {"c", "cpp", "header"}) {
    const std::string text = emitted({std::string("--emit=") + kind});
    CHECK(std::ranges::none_of(
        text, [](unsigned char c) { return c < ' ' && c != '\n'; }));  // no bytes of the model
    CHECK(text.starts_with(layout));
    CHECK_THAT(text, Contains("small("));
  }
  CHECK_THAT(emitted({"--emit=ir"}), Contains("fun @small(%weights: f32[12], %x: f32[?,2]) -> f32[?,2]"));
  CHECK_THAT(
      emitted({"--train", "--emit=ir"}),
      Contains("fun @small_gradient(%weights: f32[12], %x: f32[?,2], %labels: i64[?]) -> f32, f32[12]"));
  CHECK_THAT(emitted({"--train", "--loss=mse", "--optimizer=sgd", "--emit=ir", "--name=step"}),
             Contains("fun @step(%weights: f32[12], %x: f32[?,2], %target: f32[?,2]) -> f32, f32[12]"));
  CHECK_THAT(emitted({"--train", "--optimizer=adam", "--emit=ir"}),
             Contains("(%weights: f32[12], %x: f32[?,2], %labels: i64[?], %mean: f32[12], %square: f32[12], "
                      "%steps: i64) -> f32, f32[12], f32[12], f32[12], i64"));
}

namespace {

// As the header of what is emitted declares them.
struct Vector {
  float* data;
  std::int64_t dim[1];
};
struct Matrix {
  float* data;
  std::int64_t dim[2];
};
struct Labels {
  std::int64_t* data;
  std::int64_t dim[1];
};

}  // namespace

TEST_CASE("the gradient that lantern-onnx writes is that of the loss", "[onnx]") {
  const Folder folder;
  const std::string library = folder("gradient.so");
  const codegen::ProcessResult r = tool({folder("small.onnx"), "--train", "--emit=shared", "-o", library});
  INFO(r.err);
  REQUIRE(r.status == 0);
  const std::string header = tool({folder("small.onnx"), "--train", "--emit=header"}).out;
  REQUIRE_THAT(
      header,
      Contains(
          "void small_gradient(struct lt_workspace* ws, lt_f32_1d weights, lt_f32_2d x, lt_i64_1d labels,") &&
          Contains("float* result0, lt_f32_1d* result1);"));
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW);
  REQUIRE(handle != nullptr);
  const auto workspace = reinterpret_cast<void* (*)()>(::dlsym(handle, "small_gradient_workspace"));
  const auto gradient = reinterpret_cast<void (*)(void*, Vector, Matrix, Labels, float*, Vector*)>(
      ::dlsym(handle, "small_gradient"));
  REQUIRE((workspace != nullptr && gradient != nullptr));

  std::vector<float> weights = folder.w.data;
  weights.insert(weights.end(), folder.v.data.begin(), folder.v.data.end());
  std::vector<float> x = {1, 2, -1, 0.75F, 0.25F, 3};
  std::vector<std::int64_t> labels = {1, 0, 1};
  std::vector<float> slope;
  const auto loss = [&] {
    float value = 0;
    Vector out{};
    gradient(workspace(), {weights.data(), {12}}, {x.data(), {3, 2}}, {labels.data(), {3}}, &value, &out);
    slope.assign(out.data, out.data + out.dim[0]);
    return value;
  };
  loss();
  const std::vector<float> at = slope;
  REQUIRE(at.size() == 12);
  CHECK(std::ranges::any_of(at, [](float s) { return std::abs(s) > 0.05F; }));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float kept = weights[i], step = 1e-3F;
    weights[i] = kept + step;
    const float after = loss();
    weights[i] = kept - step;
    const float before = loss();
    weights[i] = kept;
    CHECK(at[i] == Approx((after - before) / (2 * step)).margin(2e-3));
  }
  ::dlclose(handle);
}

namespace {

struct Images {
  float* data;
  std::int64_t dim[4];
};

/// A folder with a model of two convolutions and a matrix product, and an argument of it.
struct Network : Folder {
  TensorValue<float> x = wave({2, 3, 20, 22}, 0.3F);

  Network() {
    onnx::Model m;
    m.opsets[""] = 17;
    m.graph.name = "network";
    onnx::ValueInfo in, out;
    in.name = "x";
    out.name = "scores";
    in.element = out.element = onnx::Element::float32;
    in.shape = std::vector<onnx::Dimension>(x.shape.begin(), x.shape.end());
    out.shape = std::vector<onnx::Dimension>{onnx::Dimension(std::int64_t{2}), onnx::Dimension(std::int64_t{7})};
    m.graph.inputs = {in};
    m.graph.outputs = {out};
    m.graph.initialisers = {{"a", onnx::Value(wave({5, 3, 5, 5}, 0.7F))},
                            {"b", onnx::Value(wave({12, 5, 3, 3}, 0.9F))},
                            {"c", onnx::Value(wave({12 * 9 * 10, 7}, 1.1F))}};
    const std::vector<std::int64_t> ones(4, 1), twos(4, 2);
    m.graph.nodes = {{"1", "Conv", "", {"x", "a"}, {"h"}, {{"pads", twos}, {"strides", std::vector<std::int64_t>(2, 2)}}},
                     {"2", "Relu", "", {"h"}, {"r"}, {}},
                     {"3", "Conv", "", {"r", "b"}, {"s"}, {{"pads", std::vector<std::int64_t>{0, 0, 1, 1}}}},
                     {"4", "Flatten", "", {"s"}, {"t"}, {}},
                     {"5", "MatMul", "", {"t", "c"}, {"scores"}, {}}};
    std::ofstream(path / "network.onnx", std::ios::binary) << onnx::write(m);
  }

  static TensorValue<float> wave(std::vector<std::int64_t> shape, float step) {
    TensorValue<float> t(std::move(shape));
    for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = std::sin(static_cast<float>(i) * step);
    return t;
  }
};

}  // namespace

TEST_CASE("sources and libraries of a model call the routines for products and convolutions", "[onnx]") {
  Network folder;
  const std::string model = folder("network.onnx");
  save_npz(folder("x.npz"), {{"x", folder.x}});
  REQUIRE(tool({model, "--run", folder("x.npz"), "-o", folder("y.npz")}).status == 0);
  const auto expected = load_npz(folder("y.npz")).at("scores").get<float>();
  REQUIRE(tool({model, "--emit=weights", "-o", folder("w.safetensors")}).status == 0);
  const Safetensors parts = load_safetensors(fs::path(folder("w.safetensors")));
  std::vector<float> weights;
  for (const char* name : {"a", "b", "c"}) {
    const auto part = parts.tensors.at(name).get<float>();
    weights.insert(weights.end(), part.data.begin(), part.data.end());
  }

  for (const std::string kind : {"c", "cpp", "shared"}) {
    INFO(kind);
    const std::string emitted = folder("network." + kind), library = folder(kind + ".so");
    const codegen::ProcessResult made = tool({model, "--emit=" + kind, "-o", kind == "shared" ? library : emitted});
    INFO(made.err);
    REQUIRE(made.status == 0);
    if (kind != "shared") {
      std::ifstream file(emitted);
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      CHECK_THAT(text, Contains("lt_contract_f32(ws") && Contains("lt_convolve_f32(ws") && Contains("lt_gemm_f32("));
      const std::vector<std::string> command =
          kind == "c" ? std::vector<std::string>{"cc", "-std=c99"} : std::vector<std::string>{"c++", "-std=c++20"};
      std::vector<std::string> words = command;
      for (const char* word : {"-O1", "-march=native", "-Werror", "-Wno-psabi", "-shared", "-fPIC"}) words.emplace_back(word);
      words.insert(words.end(), {emitted, "-o", library, "-lm"});
      const codegen::ProcessResult compiled = codegen::run_process(words);
      INFO(compiled.err);
      REQUIRE(compiled.status == 0);
    }
    void* const handle = ::dlopen(library.c_str(), RTLD_NOW);
    REQUIRE(handle != nullptr);
    const auto workspace = reinterpret_cast<void* (*)()>(::dlsym(handle, "network_workspace"));
    const auto entry =
        reinterpret_cast<void (*)(void*, const void* const*, void* const*)>(::dlsym(handle, "network_entry"));
    REQUIRE((workspace != nullptr && entry != nullptr));
    const Vector w{weights.data(), {static_cast<std::int64_t>(weights.size())}};
    const Images x{folder.x.data.data(), {2, 3, 20, 22}};
    Matrix y{};
    const void* in[] = {&w, &x};
    void* out[] = {&y};
    entry(workspace(), in, out);
    REQUIRE((y.dim[0] == 2 && y.dim[1] == 7));
    for (std::size_t i = 0; i < expected.data.size(); ++i)
      CHECK(y.data[i] == Approx(expected.data[i]).epsilon(1e-4).margin(1e-4));
    ::dlclose(handle);
  }
}
