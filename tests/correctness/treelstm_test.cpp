// The gradient of the TreeLSTM in samples/, against finite differences; run eagerly and compiled.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "../../samples/treelstm_model.hpp"
#include "lantern/runtime/treebank.hpp"

using namespace lantern;
using namespace treelstm;

namespace {

/// A leaf alone, a small tree, and one that leans to both sides.
std::vector<LabelledTree> small_trees(Vocabulary& words) {
  std::istringstream text(
      "(4 great)"
      "(3 (2 a) (4 film))"
      "(1 (2 (2 the) (0 (1 (2 not) (4 great)) (2 (2 a) (2 film)))) (2 (3 at) (2 (1 all) (2 .))))");
  return read_treebank(text, "small trees", words);
}

Values model_for(const Vocabulary& words, std::int64_t embedding, std::int64_t hidden,
                 std::mt19937_64& random) {
  Values v = initial({words.size(), embedding, hidden, 5}, random);
  // Biases other than zero, so that a wrong adjoint of one shows.
  for (TensorValue<double>* t : each(v))
    if (t->shape.size() == 1)
      for (double& x : t->data) x += 0.1 * std::generate_canonical<double, 53>(random);
  return v;
}

/// Checks the numbers of a gradient that `chosen` accepts (tensor, element) against central differences.
template <class Loss, class Chosen>
int check_differences(const Loss& f, Values v, const LabelledTree& tree, Values gradient,
                      const Chosen& chosen) {
  constexpr double h = 1e-5;
  int checked = 0;
  for (std::size_t k = 0; k < each(v).size(); ++k) {
    REQUIRE(each(gradient)[k]->shape == each(v)[k]->shape);
    for (std::size_t i = 0; i < each(v)[k]->data.size(); ++i) {
      if (!chosen(k, i)) continue;
      double& x = each(v)[k]->data[i];
      const double at = x;
      x = at + h;
      const double above = f(view(v), tree);
      x = at - h;
      const double below = f(view(v), tree);
      x = at;
      INFO("tensor " << k << ", element " << i);
      CHECK(each(gradient)[k]->data[i] == Approx((above - below) / (2 * h)).epsilon(1e-6).margin(1e-8));
      ++checked;
    }
  }
  return checked;
}

void check_equal(double loss, Values gradient, double expected_loss, Values expected) {
  CHECK(loss == Approx(expected_loss).epsilon(1e-12));
  for (std::size_t k = 0; k < each(expected).size(); ++k) {
    REQUIRE(each(gradient)[k]->shape == each(expected)[k]->shape);
    double furthest = 0;
    for (std::size_t i = 0; i < each(expected)[k]->data.size(); ++i)
      furthest = std::max(furthest, std::abs(each(gradient)[k]->data[i] - each(expected)[k]->data[i]));
    INFO("tensor " << k);
    CHECK(furthest < 1e-12);
  }
}

/// The folder with sst/, by the environment or beside the source tree; empty where there is none.
std::filesystem::path data_folder() {
  const char* named = std::getenv("LANTERN_DATA");
  const std::filesystem::path beside = std::filesystem::path(LANTERN_TEST_DIR) / "../../shared/data";
  for (const std::filesystem::path& folder : {std::filesystem::path(named ? named : ""), beside})
    if (exists(folder / "sst/train.txt")) return folder;
  return {};
}

}  // namespace

TEST_CASE("TreeLSTM: every partial derivative of a tiny model", "[treelstm]") {
  Vocabulary words;
  const std::vector<LabelledTree> trees = small_trees(words);
  std::mt19937_64 random(7);
  const Values v = model_for(words, 2, 3, random);
  const auto f = compile(loss, {.target = Target::cpp});
  for (const LabelledTree& tree : trees) {
    const auto [value, gradient] = eager(value_and_grad(loss))(view(v), tree);
    CHECK(value == Approx(f(view(v), tree)).epsilon(1e-12));
    CHECK(check_differences(f, v, tree, gradient, [](std::size_t, std::size_t) { return true; }) ==
          9 * 2 + 9 * 3 + 15 * 7 + 5 * 4);
  }
}

TEST_CASE("TreeLSTM: partial derivatives of a larger model, some of them", "[treelstm]") {
  Vocabulary words;
  const LabelledTree tree = small_trees(words).back();
  std::mt19937_64 random(8);
  const Values v = model_for(words, 25, 40, random);
  const auto f = compile(loss, {.target = Target::cpp});
  const auto [value, gradient] = compile(value_and_grad(loss), {.target = Target::cpp})(view(v), tree);
  const int checked =
      check_differences(f, v, tree, gradient, [&](std::size_t, std::size_t) { return random() % 100 == 0; });
  CHECK(checked > 100);
}

TEST_CASE("TreeLSTM: compiled as it runs eagerly", "[treelstm]") {
  Vocabulary words;
  const std::vector<LabelledTree> trees = small_trees(words);
  std::mt19937_64 random(9);
  const Values v = model_for(words, 4, 6, random);
  const auto reference = eager(value_and_grad(loss));
  for (const Target target : {Target::c, Target::cpp}) {
    for (const int opt : {0, 3}) {
      INFO("target " << (target == Target::c ? "c" : "cpp") << ", opt " << opt);
      const auto compiled = compile(value_and_grad(loss), {.target = target, .opt = opt});
      for (const LabelledTree& tree : trees) {
        const auto [expected_value, expected] = reference(view(v), tree);
        const auto [value, gradient] = compiled(view(v), tree);
        check_equal(value, gradient, expected_value, expected);
      }
    }
  }
}

TEST_CASE("TreeLSTM: words that a tree lacks have gradient zero, the empty tree has no loss", "[treelstm]") {
  Vocabulary words;
  const std::vector<LabelledTree> trees = small_trees(words);
  std::mt19937_64 random(10);
  const Values v = model_for(words, 4, 6, random);
  const auto compiled = compile(value_and_grad(loss), {.target = Target::c});
  const auto [value, gradient] = compiled(view(v), trees[1]);  // "a film"
  for (std::int64_t word = 0; word < words.size(); ++word) {
    const bool present = word == words.find("a") || word == words.find("film");
    INFO(words.word(word));
    CHECK((gradient.embedding[static_cast<std::size_t>(4 * word)] != 0.0) == present);
  }
  const auto [nothing, zero] = compiled(view(v), LabelledTree());
  CHECK(nothing == 0.0);
  CHECK(zero.inner_weight.data == std::vector<double>(30 * 12, 0.0));
}

TEST_CASE("TreeLSTM: scores at the root give the root's loss", "[treelstm]") {
  Vocabulary words;
  const LabelledTree leaf = small_trees(words)[0];
  std::mt19937_64 random(11);
  const Values v = model_for(words, 4, 6, random);
  const std::vector<double> s = compile(classify, {.target = Target::c})(view(v), leaf).data;
  REQUIRE(s.size() == 5);
  double total = 0;
  for (const double x : s) total += std::exp(x);
  CHECK(eager(loss)(view(v), leaf) == Approx(std::log(total) - s[4]));
}

TEST_CASE("TreeLSTM: sentences of the Stanford Sentiment Treebank", "[treelstm]") {
  const std::filesystem::path folder = data_folder();
  if (folder.empty()) {
    WARN("skipped: no sst/train.txt in $LANTERN_DATA or ../shared/data");
    return;
  }
  Vocabulary words;
  const auto trees = read_treebank(folder / "sst/train.txt", words, {.limit = 3});
  REQUIRE(trees.size() == 3);
  std::mt19937_64 random(12);
  const Values v = model_for(words, 10, 12, random);
  const auto f = compile(loss, {.target = Target::cpp});
  const auto compiled = compile(value_and_grad(loss), {.target = Target::cpp});
  for (const LabelledTree& tree : trees) {
    const auto [expected_value, expected] = eager(value_and_grad(loss))(view(v), tree);
    const auto [value, gradient] = compiled(view(v), tree);
    check_equal(value, gradient, expected_value, expected);
    CHECK(check_differences(f, v, tree, gradient,
                            [&](std::size_t, std::size_t) { return random() % 40 == 0; }) > 20);
  }
}
