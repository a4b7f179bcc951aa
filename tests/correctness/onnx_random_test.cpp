// Random operators draw what NumPy's RandomState draws from the same seed: the Mersenne Twister, here that of
// the standard library, 53 bits of two words, and the polar method.
#include <cmath>
#include <random>

#include "onnx_graphs.hpp"

using namespace onnx_graphs;

namespace {

/// numpy.random.RandomState(seed).random_sample and .standard_normal.
class Legacy {
 public:
  explicit Legacy(std::uint32_t seed) : words_(seed) {}
  double uniform() {
    const double a = static_cast<double>(words_() >> 5U), b = static_cast<double>(words_() >> 6U);
    return (a * 67108864 + b) / 9007199254740992;
  }
  double normal() {
    if (kept_) {
      kept_ = false;
      return other_;
    }
    double x = 0, y = 0, square = 0;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      square = x * x + y * y;
    } while (square >= 1 || square == 0);
    const double factor = std::sqrt(-2 * std::log(square) / square);
    other_ = factor * x;
    kept_ = true;
    return factor * y;
  }

 private:
  std::mt19937 words_;
  bool kept_ = false;
  double other_ = 0;
};

Value numbers(const Shape& shape, const std::function<double()>& next) {
  Value v(Element::float32, shape);
  for (float& x : v.mutable_elements<float>()) x = static_cast<float>(next());
  return v;
}

}  // namespace

TEST_CASE("uniform and normal numbers are those of NumPy's RandomState") {
  for (const std::uint32_t seed : {0U, 5U, 123456U}) {
    INFO(seed);
    Legacy uniform(seed), normal(seed);
    const Shape shape = {7, 53};  // more than the 624 words of the generator
    const std::vector<onnx::Attribute> own = {real("seed", seed), wholes("shape", shape)};
    auto attributes = own;
    attributes.push_back(real("low", -1));
    attributes.push_back(real("high", 3));
    check_node(
        node("RandomUniform", {}, {"y"}, attributes), {},
        {numbers(shape, [&] { return 4 * static_cast<double>(static_cast<float>(uniform.uniform())) - 1; })});
    attributes = own;
    attributes.push_back(real("mean", 10));
    attributes.push_back(real("scale", 0.5));
    check_node(node("RandomNormal", {}, {"y"}, attributes), {},
               {numbers(shape, [&] { return 0.5 * normal.normal() + 10; })});
  }
}

TEST_CASE("numbers like a tensor of any size; an odd number of normal ones") {
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {onnx::Dimension("n")})};
  g.nodes = {node("RandomUniformLike", {"x"}, {"u"}, {real("seed", 3)}),
             node("RandomNormalLike", {"x"}, {"v"}, {real("seed", 3)})};
  g.outputs = {result("u"), result("v")};
  for (const std::int64_t n : {0, 1, 5}) {
    Legacy uniform(3), normal(3);
    const std::vector<Value> have = run(model(g), {wave({n}, 1)});
    check_near(have[0], numbers({n}, [&] { return uniform.uniform(); }));
    check_near(have[1], numbers({n}, [&] { return normal.normal(); }));
  }
}

TEST_CASE("Bernoulli and Dropout take as many numbers; without a seed a node's number is it") {
  const Value p = floats({2, 3}, {0.1F, 0.9F, 0.4F, 0.6F, 0, 1});
  Legacy draws(2), first(1), second(2);
  const auto binomial = [](double chance, double u) {  // of one trial, as NumPy inverts the distribution
    return chance <= 0.5 ? u > 1 - chance : u <= chance;
  };
  Value want(Element::float32, {2, 3});
  for (std::size_t i = 0; i < 6; ++i)
    want.mutable_elements<float>()[i] = binomial(p.at(i), draws.uniform()) ? 1 : 0;
  check_node(node("Bernoulli", {"p"}, {"y"}, {real("seed", 2)}), {p}, {want});

  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {40})};
  g.initialisers = {{"ratio", Value(0.25F)}, {"training", Value(true)}};
  g.nodes = {node("Dropout", {"x", "ratio", "training"}, {"a", "m"}),
             node("Dropout", {"x", "ratio", "training"}, {"b"})};
  g.outputs = {result("a"), result("b"), result("m")};
  const Value x = wave({40}, 1);
  Value a(Element::float32, {40}), b(Element::float32, {40}), m(Element::boolean, {40});
  std::vector<bool> mask;
  for (std::size_t i = 0; i < 40; ++i) {
    const bool kept = first.uniform() >= 0.25;
    mask.push_back(kept);
    a.mutable_elements<float>()[i] = kept ? static_cast<float>(x.at(i) / 0.75) : 0;
    b.mutable_elements<float>()[i] = second.uniform() >= 0.25 ? static_cast<float>(x.at(i) / 0.75) : 0;
  }
  const std::vector<Value> have = run(model(g), {x});
  check_near(have[0], a);
  check_near(have[1], b);
  check_near(have[2], bools({40}, mask));
}
