// The TreeLSTM in samples/: its gradient against finite differences, run eagerly and compiled, and a step of
// training by the rows of a tree's words.
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

using Staged = Model<Rep<double>>;
const auto loss_of = sig<Rep<double>(Staged, Sentence)>(loss<double>);

/// A leaf alone, a small tree, and one that leans to both sides.
std::vector<LabelledTree> small_trees(Vocabulary& words) {
  std::istringstream text(
      "(4 great)"
      "(3 (2 a) (4 film))"
      "(1 (2 (2 the) (0 (1 (2 not) (4 great)) (2 (2 a) (2 film)))) (2 (3 at) (2 (1 all) (2 .))))");
  return read_treebank(text, "small trees", words);
}

std::vector<TensorValue<double>*> each(Model<double>& m) {
  std::vector<TensorValue<double>*> tensors;
  nn::for_each_parameter(m, [&](const std::string&, TensorValue<double>& t) { tensors.push_back(&t); });
  return tensors;
}

/// Checks the numbers of a gradient that `chosen` accepts (tensor, element) against central differences.
template <class Loss, class Chosen>
int check_differences(const Loss& f, Model<double> m, const LabelledTree& tree, Model<double> gradient,
                      const Chosen& chosen) {
  constexpr double h = 1e-5;
  int checked = 0;
  for (std::size_t k = 0; k < each(m).size(); ++k) {
    REQUIRE(each(gradient)[k]->shape == each(m)[k]->shape);
    for (std::size_t i = 0; i < each(m)[k]->data.size(); ++i) {
      if (!chosen(k, i)) continue;
      double& x = each(m)[k]->data[i];
      const double at = x;
      x = at + h;
      const double above = f(nn::view(m), tree);
      x = at - h;
      const double below = f(nn::view(m), tree);
      x = at;
      INFO("tensor " << k << ", element " << i);
      CHECK(each(gradient)[k]->data[i] == Approx((above - below) / (2 * h)).epsilon(1e-6).margin(1e-8));
      ++checked;
    }
  }
  return checked;
}

void check_equal(double value, Model<double> m, double expected_value, Model<double> expected) {
  CHECK(value == Approx(expected_value).epsilon(1e-12));
  for (std::size_t k = 0; k < each(expected).size(); ++k) {
    REQUIRE(each(m)[k]->shape == each(expected)[k]->shape);
    double furthest = 0;
    for (std::size_t i = 0; i < each(expected)[k]->data.size(); ++i)
      furthest = std::max(furthest, std::abs(each(m)[k]->data[i] - each(expected)[k]->data[i]));
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
  nn::Generator random(7);
  const auto m = initial<double>({words.size(), 2, 3, 5}, random);
  const auto f = compile(loss_of, {.target = Target::cpp});
  for (const LabelledTree& tree : trees) {
    const auto [value, gradient] = eager(value_and_grad(loss_of))(nn::view(m), tree);
    CHECK(value == Approx(f(nn::view(m), tree)).epsilon(1e-12));
    CHECK(check_differences(f, m, tree, gradient, [](std::size_t, std::size_t) { return true; }) ==
          9 * 2 + 9 * 3 + 15 * 7 + 5 * 4);
  }
}

TEST_CASE("TreeLSTM: partial derivatives of a larger model, some of them", "[treelstm]") {
  Vocabulary words;
  const LabelledTree tree = small_trees(words).back();
  nn::Generator random(8);
  const auto m = initial<double>({words.size(), 25, 40, 5}, random);
  const auto f = compile(loss_of, {.target = Target::cpp});
  const auto [value, gradient] = compile(value_and_grad(loss_of), {.target = Target::cpp})(nn::view(m), tree);
  const int checked =
      check_differences(f, m, tree, gradient, [&](std::size_t, std::size_t) { return random() % 100 == 0; });
  CHECK(checked > 100);
}

TEST_CASE("TreeLSTM: compiled as it runs eagerly", "[treelstm]") {
  Vocabulary words;
  const std::vector<LabelledTree> trees = small_trees(words);
  nn::Generator random(9);
  const auto m = initial<double>({words.size(), 4, 6, 5}, random);
  const auto reference = eager(value_and_grad(loss_of));
  for (const Target target : {Target::c, Target::cpp}) {
    for (const int opt : {0, 3}) {
      INFO("target " << (target == Target::c ? "c" : "cpp") << ", opt " << opt);
      const auto compiled = compile(value_and_grad(loss_of), {.target = target, .opt = opt});
      for (const LabelledTree& tree : trees) {
        const auto [expected_value, expected] = reference(nn::view(m), tree);
        const auto [value, gradient] = compiled(nn::view(m), tree);
        check_equal(value, gradient, expected_value, expected);
      }
    }
  }
}

TEST_CASE("TreeLSTM: the loss of a batch and its gradient are the sums of the trees'", "[treelstm]") {
  Vocabulary words;
  std::vector<LabelledTree> trees = small_trees(words);
  trees.push_back(LabelledTree());
  nn::Generator random(15);
  const auto m = initial<double>({words.size(), 4, 6, 5}, random);
  const auto one = eager(value_and_grad(loss_of));
  auto [sum, total] = one(nn::view(m), trees[0]);
  for (std::size_t i = 1; i < trees.size(); ++i) {
    auto [value, gradient] = one(nn::view(m), trees[i]);
    sum += value;
    for (std::size_t k = 0; k < each(total).size(); ++k)
      for (std::size_t j = 0; j < each(total)[k]->data.size(); ++j) each(total)[k]->data[j] += each(gradient)[k]->data[j];
  }
  const auto of_batch = [](const TreeOptions& options) {
    return sig<Rep<double>(Staged, Sentences)>(
        [options](const Staged& model, const Sentences& batch) { return batch_loss<double>(model, batch, options); });
  };
  for (const bool by_level : {true, false}) {
    const auto gradient_of = value_and_grad(of_batch({.by_level = by_level}));
    const Target target = by_level ? Target::cpp : Target::c;
    const auto [value, gradient] = compile(gradient_of, {.target = target})(nn::view(m), TreeBatch<Node>(trees));
    check_equal(value, gradient, sum, total);
  }
}

TEST_CASE("TreeLSTM: words that a tree lacks have gradient zero, the empty tree has no loss", "[treelstm]") {
  Vocabulary words;
  const std::vector<LabelledTree> trees = small_trees(words);
  nn::Generator random(10);
  const auto m = initial<double>({words.size(), 4, 6, 5}, random);
  const auto compiled = compile(value_and_grad(loss_of), {.target = Target::c});
  const auto [value, gradient] = compiled(nn::view(m), trees[1]);  // "a film"
  for (std::int64_t word = 0; word < words.size(); ++word) {
    const bool present = word == words.find("a") || word == words.find("film");
    INFO(words.word(word));
    CHECK((gradient.words.weight[static_cast<std::size_t>(4 * word)] != 0.0) == present);
  }
  const auto [nothing, zero] = compiled(nn::view(m), LabelledTree());
  CHECK(nothing == 0.0);
  CHECK(zero.inner.weight.data == std::vector<double>(30 * 12, 0.0));
}

TEST_CASE("TreeLSTM: a step by the rows of a tree's words is a step of the whole table", "[treelstm]") {
  Vocabulary words;
  const std::vector<LabelledTree> trees = small_trees(words);
  nn::Generator random(13);
  auto by_rows = initial<double>({words.size(), 4, 6, 5}, random), whole = by_rows;
  auto rows_state = nn::adagrad_state(by_rows), whole_state = rows_state;
  auto step = nn::in_place(compile(training_step<double>, {.target = Target::cpp}));
  auto reference = nn::in_place(eager(training_step<double>));
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const LabelledTree& tree : trees) {
      nn::UniqueRows rows;
      const LabelledTree numbers = rows.renumber(tree);
      const double value = nn::with_rows("words.weight", rows, std::tie(by_rows, rows_state),
                                         [&] { return step(by_rows, rows_state, numbers, 0.1); });
      const double expected = reference(whole, whole_state, tree, 0.1);
      check_equal(value, by_rows, expected, whole);
      check_equal(value, rows_state.square, expected, whole_state.square);
    }
}

TEST_CASE("TreeLSTM: scores at the root give the root's loss", "[treelstm]") {
  Vocabulary words;
  const LabelledTree leaf = small_trees(words)[0];
  nn::Generator random(11);
  const auto m = initial<double>({words.size(), 4, 6, 5}, random);
  const std::vector<double> s = compile(classify<double>, {.target = Target::c})(nn::view(m), leaf).data;
  REQUIRE(s.size() == 5);
  double total = 0;
  for (const double x : s) total += std::exp(x);
  CHECK(eager(loss_of)(nn::view(m), leaf) == Approx(std::log(total) - s[4]));
}

TEST_CASE("TreeLSTM: float and double agree", "[treelstm]") {
  Vocabulary words;
  const LabelledTree tree = small_trees(words).back();
  nn::Generator random(14), again(14);
  const auto m = initial<double>({words.size(), 4, 6, 5}, random);
  const auto single = initial<float>({words.size(), 4, 6, 5}, again);
  const auto in_float = sig<Rep<float>(Model<Rep<float>>, Sentence)>(loss<float>);
  const auto [value, gradient] =
      compile(value_and_grad(in_float), {.target = Target::cpp})(nn::view(single), tree);
  const auto [expected_value, expected] = eager(value_and_grad(loss_of))(nn::view(m), tree);
  CHECK(value == Approx(expected_value).epsilon(1e-5));
  double furthest = 0;
  for (std::size_t i = 0; i < expected.inner.weight.data.size(); ++i)
    furthest = std::max(furthest, std::abs(double(gradient.inner.weight[i]) - expected.inner.weight[i]));
  CHECK(furthest < 1e-5);
  CHECK(furthest > 0);
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
  nn::Generator random(12);
  const auto m = initial<double>({words.size(), 10, 12, 5}, random);
  const auto f = compile(loss_of, {.target = Target::cpp});
  const auto compiled = compile(value_and_grad(loss_of), {.target = Target::cpp});
  for (const LabelledTree& tree : trees) {
    const auto [expected_value, expected] = eager(value_and_grad(loss_of))(nn::view(m), tree);
    const auto [value, gradient] = compiled(nn::view(m), tree);
    check_equal(value, gradient, expected_value, expected);
    CHECK(check_differences(f, m, tree, gradient,
                            [&](std::size_t, std::size_t) { return random() % 40 == 0; }) > 20);
  }
}
