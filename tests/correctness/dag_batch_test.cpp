// TREE over graphs whose nodes have any number of children: level by level against node by node and eager evaluation,
// derivatives against differences; attention over children, information from above, mutual recursion, lists.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "cuda_tensors.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/lantern.hpp"
#include "lantern/tensor.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using V = Rep<Tensor<double, dyn>>;
using M = Rep<Tensor<double, dyn, dyn>>;
using Value = std::tuple<double, std::int64_t>;
using Batch = Dags<Value>;

/// Random graphs: nodes have up to four children, shared ones too; some nodes are roots.
DagBatch<Value> random_dags(unsigned seed, std::int64_t nodes = 40) {
  std::mt19937 random(seed);
  DagBuilder<Value> builder;
  for (std::int64_t i = 0; i < nodes; ++i) {
    std::vector<std::int64_t> children;
    if (i > 5)
      for (std::size_t k = random() % 5; k > 0; --k)
        children.push_back(static_cast<std::int64_t>(random() % static_cast<unsigned>(i)));
    const double x = std::uniform_real_distribution<double>(-1, 1)(random);
    builder.add({x, static_cast<std::int64_t>(random() % 3)}, children);
    if (i % 6 == 5) builder.root(i);
  }
  builder.root(nodes - 1);
  return builder.finish();
}

TensorValue<double> matrix(std::int64_t rows, std::int64_t columns, std::mt19937& random) {
  TensorValue<double> m({rows, columns});
  for (double& x : m.data) x = std::uniform_real_distribution<double>(-0.8, 0.8)(random);
  return m;
}

void check_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance = 1e-12) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("element " << i);
    CHECK(found[i] == Approx(expected[i]).epsilon(tolerance).margin(tolerance));
  }
}
void check_near(const TensorValue<double>& found, const TensorValue<double>& expected, double tolerance = 1e-12) {
  REQUIRE(found.shape == expected.shape);
  check_near(found.data, expected.data, tolerance);
}

/// What is said of the way a fold runs, and the compiled function.
template <class F>
std::pair<std::string, decltype(compile(std::declval<F>()))> told(F f,
                                                                  const CompileOptions& options = {.target = Target::c}) {
  const passes::Remarks remarks;
  auto compiled = compile(f, options);
  std::string text;
  for (const passes::Remark& r : remarks.all())
    if (r.pass == "batch_trees") text += r.text;
  return {text.substr(0, text.find(" (")), std::move(compiled)};
}

template <class E>
struct State {
  Rep<E> sum;
  Rep<Tensor<E, dyn>> hidden;
};

/// A child-sum network (Tai, Socher and Manning, ACL 2015, section 3.1): a gate for each child.
template <bool by_level>
D child_sum(M inner, M gate, M words, Batch dags) {
  const V zero = zeros_like(V(words.row(0)));
  const auto combine = [&](const auto& children, auto node) {
    const auto [x, word] = node.value();
    const State<double> all = FOR(0, children.size(), State<double>{0.0, zero}, [&](I k, State<double> now) {
      const State<double> child = children[k];
      const V kept = V(tanh(matmul(gate, child.hidden))) * child.hidden;
      return State<double>{now.sum + child.sum, V(now.hidden + kept)};
    });
    const V hidden = tanh(matmul(inner, all.hidden) + words.row(word) * x);
    return State<double>{all.sum * 0.5 + hidden(word) * x, hidden};
  };
  const auto [sums, hidden] = TREE(State<double>{0.0, zero}, dags, combine, {.by_level = by_level});
  return sum(sums * sums) + sum(sin(hidden));
}

/// Attention over children: weights are the softmax of the node's query against each child, in two loops.
template <bool by_level>
D attention(M query, M value, M words, Batch dags) {
  const V zero = zeros_like(V(words.row(0)));
  const auto combine = [&](const auto& children, auto node) {
    const auto [x, word] = node.value();
    const V asked(matmul(query, V(words.row(word))));
    const D largest = FOR(0, children.size(), D(-1e30), [&](I k, D now) { return max(now, dot(asked, V(children[k]))); });
    const auto [weight, total] =
        FOR(0, children.size(), std::tuple(D(1e-9), zero), [&](I k, const std::tuple<D, V>& now) {
          const V child = children[k];
          const D w = exp(dot(asked, child) - largest);
          return std::tuple(std::get<0>(now) + w, V(std::get<1>(now) + w * child));
        });
    return V(tanh(matmul(value, total) / weight + words.row(word) * x));
  };
  const M all = TREE(zero, dags, combine, {.by_level = by_level});
  return sum(sin(all));
}

/// A recurrent network over lists. Each list is a chain of nodes.
M recurrent(M w, M words, Batch lists) {
  const V zero = zeros_like(V(words.row(0)));
  return TREE(zero, lists, [&](const auto& children, auto node) {
    const auto [x, word] = node.value();
    const V before = IF(
        node.is_leaf(), [&] { return zero; }, [&] { return V(children[0]); });
    return V(tanh(matmul(w, before) + words.row(word) * x));
  });
}

/// The depth-weighted value of each node comes down from its parent; then sums go up.
D down_and_up(D x, Batch down, Batch up) {
  const A above = TREE(1.0, down, [&](const auto& parents, auto node) {
    const D from = IF(
        node.is_leaf(), [] { return D(1.0); }, [&] { return D(parents[0]); });
    return D(sin(from * x) + std::get<0>(node.value()));
  });
  return sum(TREE(0.0, up, [&](const auto& children, auto node) {
    const auto [value, number] = node.value();
    return FOR(0, children.size(), D(above[number] * value), [&](I k, D now) { return D(now + children[k] * x); });
  }));
}

/// even(n) = v + sum of odd(child); odd(n) = product of sin(even(child)).
D even_and_odd(D x, Batch dags) {
  const auto r = TREE(std::tuple(D(0.0), D(0.0)), dags, [&](const auto& children, auto node) {
    const D v = std::get<0>(node.value()) * x;
    return FOR(0, children.size(), std::tuple(v, D(1.0)), [&](I k, const std::tuple<D, D>& now) {
      const auto [even, odd] = children[k];
      return std::tuple(std::get<0>(now) + odd, std::get<1>(now) * sin(even));
    });
  });
  return sum(std::get<0>(r)) + sum(std::get<1>(r));
}

struct Weights {
  std::mt19937 random{5};
  TensorValue<double> a = matrix(3, 3, random), b = matrix(3, 3, random), words = matrix(3, 3, random);
};

const std::vector<CompileOptions> ways{{.target = Target::c, .opt = 0}, {.target = Target::cpp, .opt = 2}};

/// Values, gradients against eager evaluation and differences, Hessian products forward over reverse against differences.
template <class Level, class Node>
void check_network(Level level, Node node, unsigned seed) {
  const Weights w;
  const DagBatch<Value> batch = random_dags(seed);
  const auto [value, gradients] = eager(value_and_grad<0, 1, 2>(node))(w.a, w.b, w.words, batch);
  const auto& [by_a, by_b, by_words] = gradients;
  constexpr double h = 1e-5;
  const auto moved = [&](double t) {
    TensorValue<double> a = w.a;
    a.data[4] += t;
    return a;
  };
  const auto f = eager(node);
  CHECK((f(moved(h), w.b, w.words, batch) - f(moved(-h), w.b, w.words, batch)) / (2 * h) ==
        Approx(by_a.data[4]).epsilon(1e-7));
  for (const CompileOptions& way : ways) {
    const auto [text, compiled] = told(value_and_grad<0, 1, 2>(level), way);
    CHECK(text == "runs level by level");
    const auto [v, g] = compiled(w.a, w.b, w.words, batch);
    CHECK(v == Approx(value).epsilon(1e-12));
    check_near(std::get<0>(g), by_a, 1e-11);
    check_near(std::get<1>(g), by_b, 1e-11);
    check_near(std::get<2>(g), by_words, 1e-11);
  }
  const auto gradient = eager(grad<0>(node));
  const TensorValue<double> up = gradient(moved(h), w.b, w.words, batch), down = gradient(moved(-h), w.b, w.words, batch);
  TensorValue<double> direction({3, 3}), second({3, 3});
  direction.data[4] = 1;
  for (std::size_t i = 0; i < second.data.size(); ++i) second.data[i] = (up.data[i] - down.data[i]) / (2 * h);
  const auto product = sig<M(M, M, M, Batch, M)>([level](M a, M b, M words, Batch dags, M d) {
    return M(hvp([&](M m) { return level(m, b, words, dags); })(a, d));
  });
  check_near(compile(product, {.target = Target::c})(w.a, w.b, w.words, batch, direction), second, 1e-6);
}

}  // namespace

TEST_CASE("graphs: nodes by height, children in their order, shared nodes once", "[dag_batch]") {
  DagBuilder<Value> builder;
  const auto a = builder.add({1, 0}), b = builder.add({2, 1}, {a, a}), c = builder.add({3, 2});
  const auto d = builder.add({4, 0}, {c, b, a});
  builder.root(d);
  builder.root(b);
  CHECK_THROWS_WITH(builder.add({5, 0}, {7}),
                    "DagBuilder::add: expected children that were added before, got 7 of 4 nodes");
  CHECK_THROWS_WITH(builder.root(4), "DagBuilder::root: expected a node that was added before, got 4 of 4 nodes");
  const DagBatch<Value> batch = builder.finish();
  CHECK(batch.roots() == 2);
  CHECK(batch.nodes() == 4);
  CHECK(batch.levels() == 3);
  const auto rows = batch.view();
  const auto list = [](auto span) { return std::vector(span.begin(), span.end()); };
  CHECK(list(rows.levels) == std::vector<std::int64_t>{0, 2, 3, 4});
  CHECK(list(rows.first) == std::vector<std::int64_t>{0, 0, 0, 2, 5});
  CHECK(list(rows.children) == std::vector<std::int64_t>{1, 1, 2, 3, 1});
  CHECK(list(rows.roots) == std::vector<std::int64_t>{4, 3});
  CHECK(list(std::get<0>(rows.values)) == std::vector<double>{1, 3, 2, 4});
  CHECK(DagBatch<Value>().levels() == 0);
}

TEST_CASE("graphs: child sum, values and derivatives in every way of running", "[dag_batch]") {
  check_network(child_sum<true>, child_sum<false>, 3);
}

TEST_CASE("graphs: attention over children", "[dag_batch]") {
  check_network(attention<true>, attention<false>, 4);
}

TEST_CASE("graphs: lists of different lengths, a star, and a chain of a million nodes", "[dag_batch]") {
  const Weights w;
  DagBuilder<Value> builder;
  TensorValue<double> expected({3, 3});
  expected.data.clear();
  for (const std::int64_t length : {1, 4, 2}) {
    std::int64_t last = -1;
    std::vector<double> h(3, 0.0);
    for (std::int64_t i = 0; i < length; ++i) {
      const Value v(0.1 * static_cast<double>(i + length), i % 3);
      last = i == 0 ? builder.add(v) : builder.add(v, {last});
      std::vector<double> next(3);
      for (std::size_t r = 0; r < 3; ++r) {
        double s = w.words.data[static_cast<std::size_t>(std::get<1>(v)) * 3 + r] * std::get<0>(v);
        for (std::size_t c = 0; c < 3; ++c) s += w.a.data[3 * r + c] * h[c];
        next[r] = std::tanh(s);
      }
      h = next;
    }
    expected.data.insert(expected.data.end(), h.begin(), h.end());
    builder.root(last);
  }
  const DagBatch<Value> lists = builder.finish();
  const auto [said, compiled] = told(recurrent);
  CHECK(said == "runs level by level");
  check_near(compiled(w.a, w.words, lists), expected);

  // x to the number of leaves below, plus one for each node.
  const auto product = sig<D(D, Batch)>([](D x, Batch dags) {
    return sum(TREE(x, dags, [&](const auto& children, auto node) {
      return FOR(0, children.size(), x * std::get<0>(node.value()), [&](I k, D now) { return D(now * children[k]); });
    }));
  });
  const auto [text, run] = told(value_and_grad<0>(product), {.target = Target::cpp});
  CHECK(text == "runs level by level");
  const auto check = [&](const DagBatch<Value>& batch, double n) {
    const double x = 1 + 1 / n;
    const auto [y, slope] = run(x, batch);
    CHECK(y == Approx(std::pow(x, n)).epsilon(1e-9));
    CHECK(slope == Approx(n * std::pow(x, n - 1)).epsilon(1e-9));
  };
  DagBuilder<Value> star;
  std::vector<std::int64_t> leaves(100'000);
  for (auto& leaf : leaves) leaf = star.add({1, 0});
  star.root(star.add({1, 0}, leaves));
  check(star.finish(), 100'001);
  DagBuilder<Value> chain;
  std::int64_t below = chain.add({1, 0});
  for (int i = 1; i < 1'000'000; ++i) below = chain.add({1, 0}, {below});
  chain.root(below);
  const DagBatch<Value> deep = chain.finish();
  REQUIRE(deep.levels() == 1'000'000);
  check(deep, 1e6);

  DagBuilder<Value> none;
  CHECK(run(1.0, none.finish()) == std::tuple(0.0, 0.0));
}

TEST_CASE("graphs: information from above, by the graph the other way round", "[dag_batch]") {
  // A root 0 with children 1 and 2, and 3 and 4 below 1.
  const std::vector<std::int64_t> parent{-1, 0, 0, 1, 1};
  const std::vector<double> values{0.3, -0.2, 0.7, 0.5, 0.9};
  DagBuilder<Value> down, up;
  std::vector<std::int64_t> number(5);
  for (std::int64_t i = 0; i < 5; ++i) {
    const auto at = static_cast<std::size_t>(i);
    number[at] = i == 0 ? down.add({values[at], i}) : down.add({values[at], i}, {number[static_cast<std::size_t>(parent[at])]});
    down.root(number[at]);
  }
  for (std::int64_t i = 4; i >= 0; --i) {
    std::vector<std::int64_t> children;
    for (std::size_t c = 0; c < 5; ++c)
      if (parent[c] == i) children.push_back(number[c]);
    number[static_cast<std::size_t>(i)] = up.add({values[static_cast<std::size_t>(i)], i}, children);
  }
  up.root(number[0]);
  const DagBatch<Value> below = down.finish(), over = up.finish();
  const auto plain = [&](double x) {
    std::vector<double> above(5), sums(5);
    for (std::size_t i = 0; i < 5; ++i)
      above[i] = std::sin((i == 0 ? 1.0 : above[static_cast<std::size_t>(parent[i])]) * x) + values[i];
    for (std::size_t i = 5; i-- > 0;) {
      sums[i] += above[i] * values[i];
      if (i > 0) sums[static_cast<std::size_t>(parent[i])] += sums[i] * x;
    }
    return sums[0];
  };
  const auto [text, compiled] = told(value_and_grad<0>(down_and_up));
  CHECK(text == "runs level by levelruns level by level");
  const auto [y, slope] = compiled(0.8, below, over);
  CHECK(y == Approx(plain(0.8)).epsilon(1e-12));
  CHECK(slope == Approx((plain(0.8 + 1e-6) - plain(0.8 - 1e-6)) / 2e-6).epsilon(1e-7));
  CHECK(eager(down_and_up)(0.8, below, over) == Approx(y).epsilon(1e-12));
}

TEST_CASE("graphs: two mutually recursive functions are one fold of both results", "[dag_batch]") {
  const DagBatch<Value> batch = random_dags(6);
  const auto [y, slope] = eager(value_and_grad<0>(even_and_odd))(0.7, batch);
  for (const CompileOptions& way : ways) {
    const auto [text, compiled] = told(value_and_grad<0>(even_and_odd), way);
    CHECK(text == "runs level by level");
    const auto [v, g] = compiled(0.7, batch);
    CHECK(v == Approx(y).epsilon(1e-12));
    CHECK(g == Approx(slope).epsilon(1e-11));
  }
}

TEST_CASE("graphs: a child that is not there is an error, and what a level cannot do says why", "[dag_batch]") {
  const auto second = sig<A(D, Batch)>([](D x, Batch dags) {
    return TREE(x, dags, [&](const auto& children, auto node) {
      return IF(
          node.is_leaf(), [&] { return x; }, [&] { return D(children[1]); });
    });
  });
  DagBuilder<Value> builder;
  builder.root(builder.add({1, 0}, {builder.add({2, 0})}));
  const DagBatch<Value> batch = builder.finish();
  CHECK_THROWS_WITH(eager(second)(1.0, batch), Catch::Contains("children: expected an index from 0 to below 1, got 1"));
  const auto [text, compiled] = told(second);
  CHECK(text == "runs level by level");
  CHECK_THROWS_WITH(compiled(1.0, batch), Catch::Contains("index"));

  const auto divides = sig<A(D, Batch)>([](D x, Batch dags) {
    return TREE(x, dags, [&](const auto& children, auto node) {
      const I n = std::get<1>(node.value());
      return FOR(0, children.size(), x, [&](I k, D now) { return D(now + children[k] * cast<double>(k / (n + 1))); });
    });
  });
  const auto [why, by_node] = told(divides);
  CHECK(why == "runs node by node: the body has a loop that ends by a value of the node, with 'div' of integers in it");
  const DagBatch<Value> random = random_dags(7);
  check_near(by_node(0.7, random), eager(divides)(0.7, random));
}

namespace {

using Ints = Rep<Array<std::int64_t>>;

/// Children by number and in a loop, and the derivative, of a batch given as its arrays.
std::tuple<D, D> of_arrays(D x, Ints children, Ints first, Ints levels, Ints roots, A values, Ints labels) {
  const Batch dags{children, first, levels, roots, {values, labels}};
  const auto [value, slope] = value_and_grad([&](D y) { return down_and_up(y, dags, dags); })(x);
  return {value, slope};
}

}  // namespace

TEST_CASE("graphs on a GPU", "[dag_batch]") {
  if (!codegen::nvrtc_available()) return;
  const auto list = [](auto span) { return std::vector(span.begin(), span.end()); };
  const test::Emulated emulated(compile(of_arrays, {.target = Target::cuda, .name = "of_arrays"}).source("cuda"), "of_arrays");
  DagBuilder<Value> none;
  for (const DagBatch<Value>& batch : {random_dags(3, 20), none.finish()}) {
    const auto v = batch.view();
    const auto on = [&](const auto& run) {
      return run(0.8, list(v.children), list(v.first), list(v.levels), list(v.roots), list(std::get<0>(v.values)),
                 list(std::get<1>(v.values)));
    };
    test::compare_all(on(emulated), on(eager(of_arrays)), 1e-11);
  }
}
