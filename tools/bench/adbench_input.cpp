// Readers for the files of ADBench: one scanner of numbers, and one function a problem that says what follows
// what.
#include "adbench_input.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "lantern/ir/error.hpp"

namespace lantern::bench {
namespace {

/// The numbers of a file in order; knows the line for messages.
class Numbers {
 public:
  /// `separators` besides white space.
  explicit Numbers(const std::filesystem::path& file, std::string_view separators = "")
      : name_(file.string()), separators_(separators) {
    std::ifstream in(file, std::ios::binary);
    if (!in) raise(fmt::format("{}: expected a readable file", name_));
    text_.assign(std::istreambuf_iterator<char>(in), {});
  }

  /// The next word, empty at the end of the file.
  std::string_view word() {
    while (at_ < text_.size() && blank(text_[at_])) line_ += text_[at_++] == '\n';
    const std::size_t start = at_;
    while (at_ < text_.size() && !blank(text_[at_])) ++at_;
    return std::string_view(text_).substr(start, at_ - start);
  }
  double real(std::string_view what) { return number<double>(what, "a number"); }
  int integer(std::string_view what) { return number<int>(what, "an integer"); }
  /// An integer in [low, high].
  int integer(std::string_view what, int low, int high) {
    const int value = integer(what);
    if (value < low || value > high)
      fail(fmt::format("{} from {} to {}", what, low, high), fmt::to_string(value));
    return value;
  }
  std::vector<double> reals(std::string_view what, std::size_t count) {
    std::vector<double> values;
    values.reserve(count);
    while (values.size() < count) values.push_back(real(what));
    return values;
  }
  template <std::size_t N>
  std::array<double, N> tuple(std::string_view what) {
    std::array<double, N> values{};
    for (double& v : values) v = real(what);
    return values;
  }
  bool at_end() {
    const Numbers before = {*this, at_};
    const bool end = word().empty();
    at_ = before.at_;
    line_ = before.line_;
    return end;
  }
  void end() {
    if (const std::string_view more = word(); !more.empty())
      fail("the end of the file", fmt::format("'{}'", more));
  }
  [[noreturn]] void fail(std::string_view expected, std::string_view got) const {
    raise(fmt::format("{}:{}: expected {}, got {}", name_, line_, expected, got));
  }

 private:
  /// A place in the text, without the text.
  Numbers(const Numbers& from, std::size_t at) : at_(at), line_(from.line_) {}

  bool blank(char c) const {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t' || separators_.find(c) != separators_.npos;
  }
  template <class T>
  T number(std::string_view what, std::string_view kind) {
    const std::string_view text = word();
    if (text.empty()) fail(what, "the end of the file");
    T value{};
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size())
      fail(fmt::format("{} ({})", what, kind), fmt::format("'{}'", text));
    return value;
  }

  std::string name_, text_;
  std::string_view separators_;
  std::size_t at_ = 0, line_ = 1;
};

constexpr int kMost = 100'000'000;

std::size_t size(int n) { return static_cast<std::size_t>(n); }

/// `count` copies of the entries, one after another.
std::vector<double> copies(const std::vector<double>& one, int count) {
  std::vector<double> all;
  all.reserve(one.size() * size(count));
  for (int i = 0; i < count; ++i) all.insert(all.end(), one.begin(), one.end());
  return all;
}

}  // namespace

GmmInput read_gmm(const std::filesystem::path& file) {
  Numbers in(file);
  GmmInput g;
  g.dimensions = in.integer("the number of dimensions", 1, 10'000);
  g.components = in.integer("the number of components", 1, kMost);
  g.points = in.integer("the number of points", 1, kMost);
  g.alphas = in.reals("a weight", size(g.components));
  g.means = in.reals("an entry of a mean", size(g.components) * size(g.dimensions));
  g.factors = in.reals("an entry of a factor", size(g.components) * size(g.factor_size()));
  g.data = in.reals("an entry of a point", size(g.points) * size(g.dimensions));
  g.gamma = in.real("gamma");
  g.m = in.integer("m", 0, kMost);
  in.end();
  return g;
}

BaInput read_ba(const std::filesystem::path& file) {
  Numbers in(file);
  BaInput b;
  b.cameras = in.integer("the number of cameras", 1, kMost);
  b.points = in.integer("the number of points", 1, kMost);
  b.observations = in.integer("the number of observations", 1, kMost);
  b.camera = copies(in.reals("an entry of the camera", 11), b.cameras);
  b.point = copies(in.reals("an entry of the point", 3), b.points);
  b.weight = copies(in.reals("the weight", 1), b.observations);
  b.feature = copies(in.reals("an entry of the feature", 2), b.observations);
  in.end();
  for (int i = 0; i < b.observations; ++i) b.joins.push_back({i % b.cameras, i % b.points});
  return b;
}

LstmInput read_lstm(const std::filesystem::path& file) {
  Numbers in(file);
  LstmInput l;
  l.layers = in.integer("the number of layers", 1, 10'000);
  l.characters = in.integer("the number of characters", 2, kMost);
  l.width = in.integer("the width", 1, 1'000'000);
  const std::size_t width = size(l.width);
  l.main = in.reals("a main parameter", 8 * size(l.layers) * width);
  l.extra = in.reals("an extra parameter", 3 * width);
  l.state = in.reals("an entry of the state", 2 * size(l.layers) * width);
  l.sequence = in.reals("an entry of the sequence", size(l.characters) * width);
  in.end();
  return l;
}

HandModel read_hand_model(const std::filesystem::path& folder) {
  HandModel model;
  Numbers bones(folder / "bones.txt", ":");
  while (!bones.at_end()) {
    bones.word();  // the name
    model.parent.push_back(
        bones.integer("the parent of a bone", -1, static_cast<int>(model.parent.size()) - 1));
    model.base_relative.push_back(bones.tuple<16>("an entry of a bone's matrix"));
    model.inverse_base_absolute.push_back(bones.tuple<16>("an entry of a bone's inverse matrix"));
  }
  Numbers vertices(folder / "vertices.txt", ":");
  const int last_bone = static_cast<int>(model.bones()) - 1;
  while (!vertices.at_end()) {
    model.vertices.push_back(vertices.tuple<3>("a coordinate"));
    vertices.tuple<5>("a normal or texture coordinate");
    const std::size_t row = model.weights.size();
    model.weights.resize(row + model.bones(), 0.0);
    const int count = vertices.integer("the number of weights", 0, last_bone + 1);
    for (int i = 0; i < count; ++i) {
      const std::size_t bone = size(vertices.integer("a bone", 0, last_bone));
      model.weights[row + bone] = vertices.real("a weight");
    }
  }
  Numbers triangles(folder / "triangles.txt", ":");
  const int last_vertex = static_cast<int>(model.vertices.size()) - 1;
  while (!triangles.at_end()) {
    std::array<int, 3> corners{};
    for (int& corner : corners) corner = triangles.integer("a vertex", 0, last_vertex);
    model.triangles.push_back(corners);
  }
  return model;
}

HandInput read_hand(const std::filesystem::path& file) {
  HandInput h;
  h.model = read_hand_model(file.parent_path().parent_path() / "model");
  Numbers in(file);
  const int points = in.integer("the number of points", 1, kMost);
  const int parameters = in.integer("the number of parameters", 26, 26);
  for (int i = 0; i < points; ++i) {
    h.correspondence.push_back(in.integer("a vertex or triangle"));
    h.measured.push_back(in.tuple<3>("a measured coordinate"));
  }
  std::vector<double> rest = in.reals("a parameter", size(parameters));
  if (!in.at_end()) {
    while (rest.size() < 2 * size(points)) rest.push_back(in.real("a place on a triangle"));
    while (rest.size() < 2 * size(points) + size(parameters)) rest.push_back(in.real("a parameter"));
    h.u.assign(rest.begin(), rest.end() - parameters);
  }
  in.end();
  h.theta.assign(rest.end() - parameters, rest.end());
  const std::size_t most = h.complicated() ? h.model.triangles.size() : h.model.vertices.size();
  for (const int c : h.correspondence)
    if (c < 0 || size(c) >= most)
      raise(fmt::format("{}: expected a {} from 0 to {}, got {}", file.string(),
                        h.complicated() ? "triangle" : "vertex", most - 1, c));
  return h;
}

GmmInput synthetic_gmm(int dimensions, int components, int points) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const auto fill = [](std::vector<double>& v, std::size_t count, auto draw) {
    v.resize(count);
    for (double& x : v) x = draw();
  };
  GmmInput g;
  g.dimensions = dimensions, g.components = components, g.points = points;
  fill(g.alphas, size(components), [&] { return normal(random); });
  fill(g.means, size(components) * size(dimensions), [&] { return uniform(random); });
  fill(g.factors, size(components) * size(g.factor_size()), [&] { return normal(random); });
  fill(g.data, size(points) * size(dimensions), [&] { return normal(random); });
  g.gamma = 1;
  g.m = 0;
  return g;
}

LstmInput synthetic_lstm(int layers, int characters, int width) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform;
  const auto fill = [&](std::vector<double>& v, std::size_t count) {
    v.resize(count);
    for (double& x : v) x = uniform(random);
  };
  LstmInput l;
  l.layers = layers, l.characters = characters, l.width = width;
  fill(l.main, 8 * size(layers) * size(width));
  fill(l.extra, 3 * size(width));
  fill(l.state, 2 * size(layers) * size(width));
  l.sequence.assign(size(characters) * size(width), 0.0);
  for (std::size_t c = 0; c < size(characters); ++c) l.sequence[c * size(width) + random() % size(width)] = 1;
  return l;
}

}  // namespace lantern::bench
