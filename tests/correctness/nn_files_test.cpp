// Models and the states of optimisers in files: nn::save and nn::load.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <lantern/data.hpp>
#include <lantern/nn.hpp>

using namespace lantern;

namespace {

template <class S>
struct Mlp {
  std::vector<nn::Linear<S>> layers;
  nn::Linear<S> output;
};
using Host = Mlp<float>;

Host begun(std::uint64_t seed, std::int64_t width = 3) {
  nn::Generator rng(seed);
  return {{nn::Linear<float>::init(2, width, rng), nn::Linear<float>::init(width, 4, rng)},
          nn::Linear<float>::init(4, 1, rng)};
}

/// A file of this test's own, which goes with it.
struct File {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("lantern_nn_" + std::to_string(::getpid()) + ".safetensors");
  ~File() { std::filesystem::remove(path); }
};

/// The message without the folder.
template <class F>
std::string error_of(const File& file, const F& f) {
  try {
    f();
  } catch (const Error& e) {
    std::string text = e.what();
    const std::string path = file.path.string();
    if (text.starts_with(path)) text = "FILE" + text.substr(path.size());
    return text;
  }
  return "no error";
}

}  // namespace

TEST_CASE("a model and its state come back bit for bit", "[nn]") {
  const File file;
  const Host model = begun(1);
  auto state = nn::adam_state(model);
  state.steps = 17;
  state.mean.layers[1].weight.data[5] = 0.1F;
  nn::save(file.path, model, state);

  const NamedTensors tensors = load_safetensors(file.path).tensors;
  CHECK(tensors.at("layers.0.weight").shape() == std::vector<std::int64_t>{3, 2});
  CHECK(tensors.at("state:steps").get<std::int64_t>().data == std::vector<std::int64_t>{17});

  Host again = begun(2);
  auto state_again = nn::adam_state(again);
  nn::load(file.path, again, state_again);
  nn::for_each_parameter(again, [&](const std::string& name, const auto& p) {
    CHECK(p.data == tensors.at(name).get<float>().data);
    CHECK(p.shape == tensors.at(name).shape());
  });
  CHECK(again.output.weight.data == model.output.weight.data);
  CHECK(state_again.steps == 17);
  CHECK(state_again.mean.layers[1].weight.data == state.mean.layers[1].weight.data);

  // The model alone; tensors without elements take the file's shapes, and float enters double.
  Mlp<double> wide;
  wide.layers.resize(2);
  nn::load(file.path, wide);
  CHECK(wide.layers[0].weight.shape == std::vector<std::int64_t>{3, 2});
  CHECK(wide.layers[1].weight.data[7] == static_cast<double>(model.layers[1].weight.data[7]));
}

TEST_CASE("a file that does not fit is told with its member, and changes nothing", "[nn][errors]") {
  const File file;
  const Host model = begun(1);
  nn::save(file.path, model);
  Host other = begun(2, 5);
  const auto before = other.layers[0].bias.data;
  CHECK(error_of(file, [&] { nn::load(file.path, other); }) ==
        "FILE: error: expected 'layers.0.weight' of shape [5, 2], which the model has, got [3, 2]");
  Host shallow = begun(2);
  shallow.layers.pop_back();
  const auto bias = shallow.layers[0].bias.data;
  CHECK(error_of(file, [&] { nn::load(file.path, shallow); }) ==
        "FILE: error: expected no tensor that the model has no member for, got 'layers.1.bias' of shape [4]");
  CHECK(shallow.layers[0].bias.data == bias);
  CHECK(other.layers[0].bias.data == before);
  Host deep = begun(2);
  deep.layers.push_back(deep.layers[1]);
  CHECK(error_of(file, [&] { nn::load(file.path, deep); }) ==
        "FILE: error: expected a tensor 'layers.2.weight', got 'layers.0.bias', 'layers.0.weight', "
        "'layers.1.bias', 'layers.1.weight', 'output.bias' and 1 more");
  Host same = begun(2);
  auto state = nn::sgd_state(same);
  CHECK(error_of(file, [&] { nn::load(file.path, same, state); }) ==
        "FILE: error: expected a tensor 'state:velocity.layers.0.weight', got a file without the state of an "
        "optimiser, "
        "which nn::save(path, model, state) writes");
  CHECK(same.output.weight.data == begun(2).output.weight.data);

  struct Doubles {
    TensorValue<double> w;
  };
  struct Floats {
    TensorValue<float> w;
  };
  nn::save(file.path, Doubles{TensorValue<double>({2}, 0.1)});
  Floats narrow;
  CHECK(error_of(file, [&] { nn::load(file.path, narrow); }) ==
        "FILE: error: expected 'w' of float, as the model has it, got double");
  CHECK(narrow.w.data.empty());
  const std::filesystem::path none = file.path.string() + ".none";
  CHECK_THROWS_WITH(nn::load(none, narrow), Catch::Contains(none.string() + ": error: "));
}
