// Embedding tables by the rows that a step touches (nn/sparse.hpp): beside whole tables, in place, in time
// that does not grow with the table, and what is refused.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <lantern/nn.hpp>
#include <limits>

#include "catch2/catch.hpp"

using namespace lantern;

namespace {

using Shape = std::vector<std::int64_t>;
using Words = Rep<Tensor<std::int64_t, dyn, dyn>>;

TensorValue<std::int64_t> words_of(std::vector<std::int64_t> words, Shape shape) {
  return {std::move(words), std::move(shape)};
}

/// Texts are told apart by the mean of what their words stand for.
template <class S>
struct Reader {
  nn::Embedding<S> words;
  nn::Linear<S> output;

  template <class E>
  Rep<E> loss(const Words& texts) const {
    const Rep<Tensor<E>> seen = mean<1>(words(texts));
    const Rep<Tensor<E>> y = output(tanh(seen));
    return sum(y * y * y) + sum(sin(y));
  }
};
template <class E>
Reader<E> reader(std::int64_t words, std::int64_t features) {
  nn::Generator rng(3);
  return {nn::Embedding<E>::init(words, features, rng), nn::Linear<E>::init(features, 3, rng)};
}

enum class Optimiser { sgd, adagrad, adam };
template <Optimiser which, class P>
auto state_of(const P& model) {
  if constexpr (which == Optimiser::adagrad)
    return nn::adagrad_state(model);
  else if constexpr (which == Optimiser::adam)
    return nn::adam_state(model);
  else
    return nn::sgd_state(model);
}
/// A step of training: loss, gradient and update.
template <Optimiser which, class E>
auto training() {
  using M = Reader<Rep<E>>;
  using State = decltype([] {
    if constexpr (which == Optimiser::adagrad)
      return nn::AdagradState<M>();
    else if constexpr (which == Optimiser::adam)
      return nn::AdamState<M>();
    else
      return nn::SgdState<M>();
  }());
  return [](M m, State s, Words texts) {
    const auto [loss, g] = value_and_grad([&](M w) { return w.template loss<E>(texts); })(m);
    if constexpr (which == Optimiser::adagrad) {
      const auto [m2, s2] = nn::adagrad(m, g, s, {.learning_rate = 0.1});
      return std::tuple(loss, m2, s2);
    } else if constexpr (which == Optimiser::adam) {
      const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = 0.1});
      return std::tuple(loss, m2, s2);
    } else {
      const auto [m2, s2] = nn::sgd(m, g, s, {.learning_rate = 0.1});
      return std::tuple(loss, m2, s2);
    }
  };
}

/// All numbers of a product, by the names of its tensors.
template <class P>
std::vector<std::pair<std::string, std::vector<double>>> numbers_of(P& product) {
  std::vector<std::pair<std::string, std::vector<double>>> all;
  nn::for_each_parameter(product, [&](const std::string& name, const auto& leaf) {
    if constexpr (requires { leaf.data; })
      all.emplace_back(name, std::vector<double>(leaf.data.begin(), leaf.data.end()));
    else
      all.emplace_back(name, std::vector<double>{static_cast<double>(leaf)});
  });
  return all;
}
template <class P>
void same(P& a, P& b, double tolerance) {
  const auto first = numbers_of(a), second = numbers_of(b);
  REQUIRE(first.size() == second.size());
  for (std::size_t k = 0; k < first.size(); ++k) {
    REQUIRE(first[k].second.size() == second[k].second.size());
    double furthest = 0;
    for (std::size_t i = 0; i < first[k].second.size(); ++i)
      furthest = std::max(furthest, std::abs(first[k].second[i] - second[k].second[i]));
    INFO(first[k].first);
    CHECK(furthest <= tolerance);
  }
}

/// Steps by rows beside steps of the whole table, on the same texts.
template <Optimiser which, class E, class Step>
void beside_dense(const std::string& name, Step by_rows, const std::vector<TensorValue<std::int64_t>>& texts,
                  double tolerance) {
  INFO(name);
  auto dense_step = nn::in_place(eager(training<which, E>()));
  auto sparse_step = nn::in_place(by_rows);
  Reader<E> dense = reader<E>(40, 5), sparse = dense;
  auto dense_state = state_of<which>(dense), sparse_state = dense_state;
  for (const TensorValue<std::int64_t>& text : texts) {
    nn::UniqueRows words;
    const auto numbers = words.renumber(text);
    const E loss = nn::with_rows("words.weight", words, std::tie(sparse, sparse_state),
                                 [&] { return sparse_step(sparse, sparse_state, numbers); });
    CHECK(double(loss) == Approx(double(dense_step(dense, dense_state, text))).epsilon(tolerance));
  }
  CHECK(sparse.words.weight.shape == Shape{40, 5});
  CHECK(sparse_state.steps == static_cast<std::int64_t>(texts.size()));
  same(sparse, dense, tolerance);
  if (which != Optimiser::sgd)  // which keeps its last gradient, for a momentum that is 0
    same(sparse_state, dense_state, tolerance);
}
template <Optimiser which, class E>
void all_ways(const std::vector<TensorValue<std::int64_t>>& texts, double tolerance) {
  beside_dense<which, E>("eager", eager(training<which, E>()), texts, tolerance);
  beside_dense<which, E>("C", compile(training<which, E>(), {.target = Target::c, .opt = 0}), texts,
                         tolerance);
  beside_dense<which, E>("C++", compile(training<which, E>(), {.target = Target::cpp, .opt = 2}), texts,
                         tolerance);
}

const std::vector<TensorValue<std::int64_t>>& some_texts() {
  static const std::vector<TensorValue<std::int64_t>> texts = {words_of({7, 3, 7, 39, 0, 7}, {2, 3}),
                                                               words_of({3, 3, 3}, {1, 3}),
                                                               words_of({12, 39, 1, 2, 5, 39, 8, 8}, {4, 2})};
  return texts;
}

template <class E>
std::vector<E> rows_but(const TensorValue<E>& table, const std::vector<std::int64_t>& touched) {
  std::vector<E> others;
  for (std::int64_t row = 0; row < table.shape[0]; ++row)
    if (std::ranges::find(touched, row) == touched.end())
      others.insert(others.end(), table.data.begin() + row * table.shape[1],
                    table.data.begin() + (row + 1) * table.shape[1]);
  return others;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("rows get numbers in the order in which they are met", "[nn][sparse]") {
  nn::UniqueRows words;
  const auto first = words.renumber(words_of({9, 4, 9, 7}, {2, 2}));
  CHECK(first.data == std::vector<std::int64_t>{0, 1, 0, 2});
  CHECK(first.shape == Shape{2, 2});
  const std::vector<std::int64_t> memory = {4, 1, 5, 1, 100, 1};
  const auto strided = words.renumber(TensorView<const std::int64_t>(memory.data(), {3}, {2}));
  CHECK(strided.data == std::vector<std::int64_t>{1, 3, 4});
  CHECK(words.renumber(-1) == -1);
  CHECK(words.rows() == std::vector<std::int64_t>{9, 4, 7, 5, 100});
}

TEST_CASE("trees keep their form and what else their nodes hold", "[nn][sparse]") {
  using Node = std::tuple<std::int64_t, std::int64_t, float, bool>;
  TreeBuilder<Node> builder;
  const std::int64_t a = builder.add({30, 1, 0.5f, true}), b = builder.add({20, 2, 1.5f, false});
  const std::int64_t inner = builder.add({-1, 3, 2.5f, true}, a, b), c = builder.add({30, 4, 3.5f, false});
  const Tree<Node> tree = builder.finish(builder.add({-1, 5, 4.5f, false}, inner, c));
  nn::UniqueRows words;
  const Tree<Node> other = words.renumber(tree);
  CHECK(words.rows() == std::vector<std::int64_t>{30, 20});
  CHECK(other.value() == Node{-1, 5, 4.5f, false});
  CHECK(other.left().value() == Node{-1, 3, 2.5f, true});
  CHECK(other.left().left().value() == Node{0, 1, 0.5f, true});
  CHECK(other.left().right().value() == Node{1, 2, 1.5f, false});
  CHECK(other.right().value() == Node{0, 4, 3.5f, false});
  CHECK(other.left().left().left().empty());
  CHECK(tree.right().value() == Node{30, 4, 3.5f, false});
  CHECK(words.renumber(Tree<Node>()).empty());
  const Tree<std::int64_t> plain = words.renumber(Tree<std::int64_t>(20, Tree<std::int64_t>(50), {}));
  CHECK(plain.value() == 1);
  CHECK(plain.left().value() == 2);
  CHECK(plain.right().empty());
}

TEST_CASE("a step by rows is a step of the whole table", "[nn][sparse]") {
  SECTION("SGD, double") { all_ways<Optimiser::sgd, double>(some_texts(), 1e-13); }
  SECTION("SGD, float") { all_ways<Optimiser::sgd, float>(some_texts(), 2e-5); }
  SECTION("Adagrad, double") { all_ways<Optimiser::adagrad, double>(some_texts(), 1e-13); }
  SECTION("Adagrad, float") { all_ways<Optimiser::adagrad, float>(some_texts(), 2e-5); }
}

TEST_CASE("Adam: rows that every step touches are those of dense steps", "[nn][sparse]") {
  const auto step_code = compile(training<Optimiser::adam, double>(), {.target = Target::c});
  auto step = nn::in_place(step_code), dense_step = nn::in_place(step_code);
  Reader<double> dense = reader<double>(40, 5), sparse = dense;
  auto dense_state = nn::adam_state(dense), sparse_state = dense_state;
  const auto text = words_of({7, 3, 7, 39, 0, 7}, {2, 3});
  const auto once = words_of({20, 7, 3, 39, 0, 7}, {2, 3});
  for (const auto* t : {&once, &text, &text}) {
    nn::UniqueRows words;
    const auto numbers = words.renumber(*t);
    nn::with_rows("words.weight", words, std::tie(sparse, sparse_state),
                  [&] { step(sparse, sparse_state, numbers); });
    dense_step(dense, dense_state, *t);
  }
  // Row 20, which only the first step touches, is moved by dense steps alone after that.
  const auto at = [](const Reader<double>& m, std::int64_t row) {
    return std::vector<double>(m.words.weight.data.begin() + 5 * row,
                               m.words.weight.data.begin() + 5 * row + 5);
  };
  CHECK(at(sparse, 20) != at(dense, 20));
  CHECK(at(sparse, 20) != at(reader<double>(40, 5), 20));
  for (std::size_t i = 100; i < 105; ++i) dense.words.weight[i] = sparse.words.weight[i];
  for (std::size_t i = 100; i < 105; ++i) {
    dense_state.mean.words.weight[i] = sparse_state.mean.words.weight[i];
    dense_state.square.words.weight[i] = sparse_state.square.words.weight[i];
  }
  same(sparse, dense, 1e-13);
  same(sparse_state, dense_state, 1e-13);
}

TEST_CASE("rows that no step touches keep their bits, and so does their state", "[nn][sparse]") {
  auto step = nn::in_place(compile(training<Optimiser::adam, float>(), {.target = Target::cpp, .opt = 1}));
  Reader<float> model = reader<float>(40, 5);
  auto state = nn::adam_state(model);
  // A NaN and a subnormal number, which a pass over the table would spread or flush.
  model.words.weight[5] = std::numeric_limits<float>::quiet_NaN();
  model.words.weight[6] = std::numeric_limits<float>::denorm_min();
  for (std::size_t i = 0; i < state.mean.words.weight.data.size(); ++i)
    state.mean.words.weight[i] = static_cast<float>(i) / 7;
  const auto bits = [](const std::vector<float>& v) {
    std::vector<std::uint32_t> all(v.size());
    std::memcpy(all.data(), v.data(), v.size() * sizeof(float));
    return all;
  };
  const Reader<float> before = model;
  const auto mean_before = state.mean.words.weight;
  nn::UniqueRows words;
  const auto text = words.renumber(words_of({7, 3, 7, 39, 0, 7}, {2, 3}));
  const float loss =
      nn::with_rows("words.weight", words, std::tie(model, state), [&] { return step(model, state, text); });
  CHECK(std::isfinite(loss));
  CHECK(bits(rows_but(model.words.weight, words.rows())) ==
        bits(rows_but(before.words.weight, words.rows())));
  CHECK(bits(rows_but(state.mean.words.weight, words.rows())) == bits(rows_but(mean_before, words.rows())));
  for (const std::int64_t row : words.rows())
    for (std::int64_t i = 5 * row; i < 5 * row + 5; ++i)
      CHECK(model.words.weight[static_cast<std::size_t>(i)] !=
            before.words.weight[static_cast<std::size_t>(i)]);
}

TEST_CASE("memory of tables stays where it is", "[nn][sparse]") {
  auto step = nn::in_place(compile(training<Optimiser::adagrad, float>(), {.target = Target::c}));
  Reader<float> model = reader<float>(40, 5);
  auto state = nn::adagrad_state(model);
  const float* const table = model.words.weight.data.data();
  const float* const square = state.square.words.weight.data.data();
  for (int i = 0; i < 3; ++i) {
    nn::UniqueRows words;
    const auto text = words.renumber(words_of({7, 3 + i, 7, 39}, {2, 2}));
    nn::with_rows("words.weight", words, std::tie(model, state), [&] { step(model, state, text); });
  }
  CHECK(model.words.weight.data.data() == table);
  CHECK(state.square.words.weight.data.data() == square);
}

TEST_CASE("the time of a step does not grow with the table", "[nn][sparse]") {
  auto step = nn::in_place(compile(training<Optimiser::adagrad, float>(), {.target = Target::cpp, .opt = 2}));
  nn::UniqueRows words;
  std::vector<std::int64_t> text;
  for (std::int64_t i = 0; i < 20; ++i) text.push_back((i * 37) % 400);
  const auto numbers = words.renumber(words_of(text, {2, 10}));
  const auto fastest = [&](std::int64_t rows) {
    Reader<float> model = reader<float>(rows, 100);
    auto state = nn::adagrad_state(model);
    double best = 1e9;
    for (int i = 0; i < 50; ++i) {
      const auto start = std::chrono::steady_clock::now();
      nn::with_rows("words.weight", words, std::tie(model, state), [&] { step(model, state, numbers); });
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  };
  const double small = fastest(400), large = fastest(40'000);
  CAPTURE(small, large);
  CHECK(large < 20 * small);  // whole tables: 100 times as long; a busy machine was seen to take 5
}

TEST_CASE("several tables, one inside the other", "[nn][sparse]") {
  using Rows = Rep<Tensor<double>>;
  using Numbers = Rep<Tensor<std::int64_t, dyn>>;
  using M = std::tuple<nn::Embedding<Rep<double>>, nn::Embedding<Rep<double>>>;
  const auto training = [](M m, nn::AdagradState<M> s, Numbers users, Numbers items) {
    const auto of = [&](M w) {
      const Rows a = std::get<0>(w)(users), b = std::get<1>(w)(items);
      return sum(a * b);
    };
    const auto [loss, g] = value_and_grad(of)(m);
    const auto [m2, s2] = nn::adagrad(m, g, s);
    return std::tuple(loss, m2, s2);
  };
  auto step = nn::in_place(compile(training, {.target = Target::c}));
  nn::Generator rng(4);
  std::tuple<nn::Embedding<double>, nn::Embedding<double>> dense{nn::Embedding<double>::init(9, 2, rng),
                                                                 nn::Embedding<double>::init(30, 2, rng)};
  auto sparse = dense;
  auto dense_state = nn::adagrad_state(dense), sparse_state = dense_state;
  const auto users = words_of({8, 2, 8}, {3}), items = words_of({29, 29, 1}, {3});
  nn::UniqueRows of_users, of_items;
  const auto user_numbers = of_users.renumber(users), item_numbers = of_items.renumber(items);
  const double loss = nn::with_rows("0.weight", of_users, std::tie(sparse, sparse_state), [&] {
    return nn::with_rows("1.weight", of_items, std::tie(sparse, sparse_state),
                         [&] { return step(sparse, sparse_state, user_numbers, item_numbers); });
  });
  CHECK(loss == Approx(step(dense, dense_state, users, items)).epsilon(1e-13));
  same(sparse, dense, 1e-13);
  same(sparse_state, dense_state, 1e-13);
}

TEST_CASE("a name that ends another's is not taken for it", "[nn][sparse]") {
  // "weight" is the table's name in the model; "square.other.weight" ends in it, and is no table's.
  struct Model {
    TensorValue<double> weight;
    nn::Linear<double, false> other;
  };
  nn::Generator rng(6);
  Model model{TensorValue<double>({4, 4}, 1.0), nn::Linear<double, false>::init(4, 4, rng)};
  auto state = nn::adagrad_state(model);
  nn::UniqueRows rows;
  rows.renumber(2);
  nn::with_rows("weight", rows, std::tie(model, state), [&] {
    CHECK(model.weight.shape == Shape{1, 4});
    CHECK(state.square.weight.shape == Shape{1, 4});
    CHECK(model.other.weight.shape == Shape{4, 4});
    CHECK(state.square.other.weight.shape == Shape{4, 4});
  });
}

TEST_CASE("after an error tables are as they were", "[nn][sparse]") {
  auto step = nn::in_place(compile(training<Optimiser::adagrad, double>(), {.target = Target::c}));
  Reader<double> model = reader<double>(40, 5);
  auto state = nn::adagrad_state(model);
  const Reader<double> before = model;
  nn::UniqueRows words;
  words.renumber(words_of({7, 3}, {2}));
  const auto outside = words_of({0, 1, 2}, {1, 3});  // there are rows 0 and 1
  CHECK_THROWS_AS(nn::with_rows("words.weight", words, std::tie(model, state),
                                [&] { return step(model, state, outside); }),
                  Error);
  CHECK(model.words.weight.data == before.words.weight.data);
  CHECK(model.words.weight.shape == before.words.weight.shape);
  CHECK(state.steps == 0);
  CHECK_THROWS_AS(nn::with_rows("words.weight", words, std::tie(model),
                                [&] {
                                  model.words.weight[0] = 1e9;
                                  throw Error("stop");
                                }),
                  Error);
  CHECK(model.words.weight.data == before.words.weight.data);
  const std::string reshaped = message_of([&] {
    nn::with_rows("words.weight", words, std::tie(model),
                  [&] { model.words.weight = TensorValue<double>({3, 5}); });
  });
  CHECK(reshaped == "with_rows: expected words.weight to keep the shape of its 2 rows, got another");
  CHECK(model.words.weight.data == before.words.weight.data);
}

TEST_CASE("what is no table, or beyond it, is refused", "[nn][sparse]") {
  Reader<double> model = reader<double>(40, 5);
  auto state = nn::adagrad_state(model);
  nn::UniqueRows words, beyond;
  words.renumber(7);
  beyond.renumber(40);
  const auto refused = [&](const std::string& name, const nn::UniqueRows& rows, auto&&... of) {
    return message_of([&] { nn::with_rows(name, rows, std::tie(of...), [] {}); });
  };
  CHECK(refused("word.weight", words, model, state) ==
        "with_rows: expected the name of one of the model's parameters, words.weight, output.weight, "
        "output.bias; got "
        "\"word.weight\"");
  CHECK(refused("words.weight", beyond, model, state) ==
        "with_rows: expected a row below 40, the number of rows of words.weight, got 40");
  struct Count {
    std::int64_t steps;
  } count{0};
  CHECK(refused("words.weight", words, model, count) ==
        "with_rows: expected what an optimiser keeps of words.weight, got steps; leave out what it keeps "
        "nothing in");
  CHECK(refused("steps", words, count) == "with_rows: expected steps to be a tensor of floating numbers");
  CHECK(refused("words.weight", words, model, model) ==
        "with_rows: expected each product once, got that of words.weight twice");
  auto other = nn::adagrad_state(reader<double>(41, 5));
  CHECK(refused("words.weight", words, model, other) ==
        "with_rows: expected square.words.weight to have the shape of the model's words.weight");
  CHECK(model.words.weight.shape == Shape{40, 5});
  CHECK(state.square.words.weight.shape == Shape{40, 5});
}
