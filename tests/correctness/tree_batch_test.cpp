// TREE over a batch: level by level against node by node and against one TREE per tree; derivatives; what is
// refused.
#include <catch2/catch.hpp>
#include <chrono>
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
using Batch = Trees<Value>;

/// A random tree of so many nodes, some of which have one child.
Tree<Value> random_tree(std::int64_t nodes, std::mt19937& random) {
  TreeBuilder<Value> builder;
  std::vector<std::int64_t> open;
  const auto value = [&] {
    return Value(std::uniform_real_distribution<double>(-1, 1)(random),
                 static_cast<std::int64_t>(random() % 3));
  };
  const auto take = [&] {
    const std::size_t i = random() % open.size();
    const std::int64_t node = open[i];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    return node;
  };
  for (std::int64_t n = 0; n < nodes; ++n) {
    const bool last = n + 1 == nodes;
    std::int64_t left = -1, right = -1;
    if (!open.empty() && (last || random() % 3 == 0)) left = take();
    if (!open.empty() && (last || random() % 2 == 0)) right = take();
    open.push_back(builder.add(value(), left, right));
  }
  return builder.finish(nodes == 0 ? -1 : open.back());
}

std::vector<Tree<Value>> random_trees(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tree<Value>> all;
  for (const std::int64_t nodes : {7, 0, 1, 23, 12, 2}) all.push_back(random_tree(nodes, random));
  return all;
}

/// A chain of n nodes, each the left or, every second time, the right child of the next.
Tree<Value> chain(std::int64_t n) {
  TreeBuilder<Value> builder;
  std::int64_t below = -1;
  for (std::int64_t i = 0; i < n; ++i)
    below = i % 2 == 0 ? builder.add(Value(1, 0), below, -1) : builder.add(Value(1, 0), -1, below);
  return builder.finish(below);
}

/// What is said of the way a fold runs, and the compiled function.
template <class F>
std::pair<std::string, decltype(compile(std::declval<F>()))> told(F f, const CompileOptions& options = {
                                                                           .target = Target::c}) {
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

/// A small recursive network with a loss at each node; `by_level` is known while the program is written.
template <bool by_level>
std::tuple<A, M> network(M inner, M leaf, Batch trees) {
  const V zero = zeros_like(V(leaf.row(0)));
  const auto combine = [&](State<double> left, State<double> right, auto node) {
    const auto [x, label] = node.value();
    const V hidden = IF(
        node.is_leaf(), [&] { return V(tanh(leaf.row(label) * x)); },
        [&] { return V(tanh(matmul(inner, concat(left.hidden, right.hidden)) + x)); });
    return State<double>{left.sum + right.sum + x * hidden(label) + logsumexp(hidden), hidden};
  };
  const auto [sums, hidden] = TREE(State<double>{0.0, zero}, trees, combine, {.by_level = by_level});
  return {sums, hidden};
}
std::tuple<D, V> one_network(M inner, M leaf, Rep<Tree<Value>> tree) {
  const V zero = zeros_like(V(leaf.row(0)));
  const auto r = TREE(
      State<double>{0.0, zero}, tree, [&](State<double> left, State<double> right, Rep<Tree<Value>> node) {
        const auto [x, label] = node.value();
        const V hidden = IF(
            node.is_leaf(), [&] { return V(tanh(leaf.row(label) * x)); },
            [&] { return V(tanh(matmul(inner, concat(left.hidden, right.hidden)) + x)); });
        return State<double>{left.sum + right.sum + x * hidden(label) + logsumexp(hidden), hidden};
      });
  return {r.sum, r.hidden};
}
template <bool by_level>
D loss(M inner, M leaf, Batch trees) {
  const auto [sums, hidden] = network<by_level>(inner, leaf, trees);
  return sum(sums * sums) + sum(sin(hidden));
}
D one_loss(M inner, M leaf, Rep<Tree<Value>> tree) {
  const auto [s, hidden] = one_network(inner, leaf, tree);
  return s * s + sum(sin(hidden));
}

TensorValue<double> matrix(std::int64_t rows, std::int64_t columns, std::mt19937& random) {
  TensorValue<double> m({rows, columns});
  for (double& x : m.data) x = std::uniform_real_distribution<double>(-0.8, 0.8)(random);
  return m;
}

void check_near(const std::vector<double>& found, const std::vector<double>& expected,
                double tolerance = 1e-12) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("element " << i);
    CHECK(found[i] == Approx(expected[i]).epsilon(tolerance).margin(tolerance));
  }
}
void check_near(const TensorValue<double>& found, const TensorValue<double>& expected,
                double tolerance = 1e-12) {
  REQUIRE(found.shape == expected.shape);
  check_near(found.data, expected.data, tolerance);
}

struct Network {
  std::mt19937 random{5};
  TensorValue<double> inner = matrix(4, 8, random), leaf = matrix(3, 4, random);
  std::vector<Tree<Value>> trees = random_trees(11);
  TreeBatch<Value> batch{trees};
};

const std::vector<CompileOptions> ways{
    {.target = Target::c, .opt = 0}, {.target = Target::c, .opt = 3}, {.target = Target::cpp, .opt = 3, .threads = 2}};

}  // namespace

TEST_CASE("a batch: nodes by height, children before parents, shared nodes once", "[tree_batch]") {
  TreeBuilder<Value> builder;
  const std::int64_t a = builder.add(Value(1, 0)), unused = builder.add(Value(9, 0)),
                     b = builder.add(Value(2, 1), a, a);
  CHECK(unused == 1);
  const Tree<Value> shared = builder.finish(b);
  const std::vector<Tree<Value>> trees{shared, Tree<Value>(), Tree<Value>(Value(3, 2)), shared.left()};
  const TreeBatch<Value> batch(trees);
  CHECK(batch.trees() == 4);
  CHECK(batch.nodes() == 4);
  CHECK(batch.levels() == 2);
  const auto rows = batch.view();
  const auto list = [](auto span) { return std::vector(span.begin(), span.end()); };
  CHECK(list(rows.left) == std::vector<std::int64_t>{0, 0, 0, 1});
  CHECK(list(rows.right) == std::vector<std::int64_t>{0, 0, 0, 1});
  CHECK(list(rows.levels) == std::vector<std::int64_t>{0, 3, 4});
  CHECK(list(rows.roots) == std::vector<std::int64_t>{4, 0, 2, 3});
  CHECK(list(std::get<0>(rows.values)) == std::vector<double>{1, 3, 1, 2});
  CHECK(list(std::get<1>(rows.values)) == std::vector<std::int64_t>{0, 2, 0, 1});
  TreeBatch<Value> empty;
  CHECK(empty.levels() == 0);
  CHECK(list(empty.view().levels) == std::vector<std::int64_t>{0, 0});
  empty.assign(trees);
  CHECK(list(empty.view().left) == list(rows.left));

  builder.add(Value(1, 0), 1, -1);
  const std::int64_t root = builder.add(Value(2, 0), 0, -1);
  const std::vector<Tree<Value>> wrong{builder.finish(root)};
  CHECK_THROWS_WITH(TreeBatch<Value>(wrong),
                    "TreeBatch: expected children that were added before their parent, got node 1 as a child of node 0");
}

TEST_CASE("a batch: results are those of the trees, in every way of running", "[tree_batch]") {
  const Network n;
  std::vector<double> sums;
  TensorValue<double> hidden({static_cast<std::int64_t>(n.trees.size()), 4});
  hidden.data.clear();
  for (const Tree<Value>& tree : n.trees) {
    const auto [s, h] = eager(one_network)(n.inner, n.leaf, tree);
    sums.push_back(s);
    hidden.data.insert(hidden.data.end(), h.data.begin(), h.data.end());
  }
  const auto check = [&](const auto& run) {
    const auto [s, h] = run(n.inner, n.leaf, n.batch);
    check_near(s, sums);
    check_near(h, hidden);
  };
  check(eager(network<true>));
  check(eager(network<false>));
  for (const CompileOptions& way : ways) {
    const auto [level, compiled] = told(network<true>, way);
    CHECK(level == "runs level by level");
    check(compiled);
    const auto [node, by_node] = told(network<false>, way);
    CHECK(node.empty());
    check(by_node);
  }
}

TEST_CASE("a batch: gradients, forward mode, second order", "[tree_batch]") {
  const Network n;
  TensorValue<double> inner({4, 8}), leaf({3, 4});
  double value = 0;
  const auto reference = eager(value_and_grad<0, 1>(one_loss));
  for (const Tree<Value>& tree : n.trees) {
    const auto [v, gradients] = reference(n.inner, n.leaf, tree);
    value += v;
    const auto& [by_inner, by_leaf] = gradients;
    for (std::size_t i = 0; i < inner.data.size(); ++i) inner.data[i] += by_inner.data[i];
    for (std::size_t i = 0; i < leaf.data.size(); ++i) leaf.data[i] += by_leaf.data[i];
  }
  std::mt19937 random(3);
  const TensorValue<double> direction = matrix(4, 8, random);
  double slope = 0;
  for (std::size_t i = 0; i < inner.data.size(); ++i) slope += inner.data[i] * direction.data[i];

  // The Hessian times the direction, by central differences of the gradient.
  constexpr double h = 1e-5;
  const auto gradient_at = [&](double t) {
    TensorValue<double> moved = n.inner, all({4, 8});
    for (std::size_t i = 0; i < moved.data.size(); ++i) moved.data[i] += t * direction.data[i];
    for (const Tree<Value>& tree : n.trees) {
      const auto g = std::get<0>(std::get<1>(reference(moved, n.leaf, tree)));
      for (std::size_t i = 0; i < all.data.size(); ++i) all.data[i] += g.data[i];
    }
    return all;
  };
  TensorValue<double> second = gradient_at(h);
  const TensorValue<double> below = gradient_at(-h);
  for (std::size_t i = 0; i < second.data.size(); ++i)
    second.data[i] = (second.data[i] - below.data[i]) / (2 * h);

  const auto of_inner = sig<D(M, M, Batch, M)>([](M w, M l, Batch trees, M d) {
    return std::get<1>(jvp([&](M m) { return loss<true>(m, l, trees); })(w, d));
  });
  const auto reverse_of_forward = grad<0>(of_inner);
  const auto forward_of_reverse = sig<M(M, M, Batch, M)>(
      [](M w, M l, Batch trees, M d) { return M(hvp([&](M m) { return loss<true>(m, l, trees); })(w, d)); });
  const auto check = [&](const auto& run, bool with_second = true) {
    const auto [v, gradients] = run(value_and_grad<0, 1>(loss<true>))(n.inner, n.leaf, n.batch);
    CHECK(v == Approx(value).epsilon(1e-12));
    check_near(std::get<0>(gradients), inner);
    check_near(std::get<1>(gradients), leaf);
    CHECK(run(of_inner)(n.inner, n.leaf, n.batch, direction) == Approx(slope).epsilon(1e-11));
    if (!with_second) return;
    check_near(run(forward_of_reverse)(n.inner, n.leaf, n.batch, direction), second, 1e-6);
    check_near(run(reverse_of_forward)(n.inner, n.leaf, n.batch, direction), second, 1e-6);
  };
  check([](auto f) { return eager(f); });
  for (const CompileOptions& way : ways) {
    check(
        [&](auto f) {
          auto [text, compiled] = told(f, way);
          CHECK(text == "runs level by level");
          return compiled;
        },
        way.target == Target::c);
  }
  const auto by_node = compile(grad<0>(loss<false>))(n.inner, n.leaf, n.batch);
  check_near(by_node, inner);
}

TEST_CASE("a batch: nothing to do, a leaf, and a chain of a million nodes", "[tree_batch]") {
  std::mt19937 random(5);
  const auto inner = matrix(4, 8, random), leaf = matrix(3, 4, random);
  const auto value = compile(network<true>, {.target = Target::cpp});
  const auto [none, no_rows] = value(inner, leaf, TreeBatch<Value>());
  CHECK(none.empty());
  CHECK(no_rows.shape == std::vector<std::int64_t>{0, 4});
  const std::vector<Tree<Value>> empty(2);
  const auto [zeros, rows] = value(inner, leaf, TreeBatch<Value>(empty));
  CHECK(zeros == std::vector<double>{0, 0});
  CHECK(rows.data == std::vector<double>(8, 0.0));
  const auto gradient = compile(grad<0>(loss<true>), {.target = Target::cpp});
  CHECK(gradient(inner, leaf, TreeBatch<Value>(empty)).data == std::vector<double>(32, 0.0));
  const std::vector<Tree<Value>> one{Tree<Value>(Value(0.5, 1))};
  CHECK(std::get<0>(value(inner, leaf, TreeBatch<Value>(one)))[0] ==
        Approx(std::get<0>(eager(one_network)(inner, leaf, one[0]))));

  // x for the empty tree, the product of both results at a node: x^(n + 1), of n nodes.
  const auto product = sig<D(D, Batch)>([](D x, Batch trees) {
    return sum(
        TREE(x, trees, [](D left, D right, auto node) { return left * right * std::get<0>(node.value()); }));
  });
  constexpr std::int64_t n = 1'000'000;
  const std::vector<Tree<Value>> deep{chain(n)};
  const TreeBatch<Value> batch(deep);
  REQUIRE(batch.levels() == n);
  const double x = 1 + 1.0 / n;
  const auto [text, compiled] = told(value_and_grad<0>(product), {.target = Target::cpp});
  CHECK(text == "runs level by level");
  const auto [y, slope] = compiled(x, batch);
  CHECK(y == Approx(std::pow(x, n + 1)).epsilon(1e-9));
  CHECK(slope == Approx((n + 1) * std::pow(x, n)).epsilon(1e-9));

  // The adjoints of all nodes lie in one tensor, which no level copies: time goes with the nodes for vectors, too.
  const auto vectors = sig<D(V, Batch)>([](V start, Batch trees) {
    return sum(TREE(start, trees, [](V left, V right, auto node) { return V(left * right * std::get<0>(node.value())); }));
  });
  TensorValue<double> start({2});
  start.data = {x, 1};
  const TensorValue<double> slopes = compile(grad<0>(vectors), {.target = Target::cpp, .opt = 1})(start, batch);
  CHECK(slopes.data[0] == Approx((n + 1) * std::pow(x, n)).epsilon(1e-9));
  CHECK(slopes.data[1] == Approx(n + 1).epsilon(1e-9));
}

namespace {

/// A body of operations that have a form of their own for a level, or none: all of them run level by level.
template <bool by_level>
std::tuple<A, M, Rep<Array<std::int64_t>>> many_operations(M w, V bias, Rep<bool> flag, Rep<std::int64_t> n,
                                                           Batch trees) {
  const auto half = FUN<double(double)>("half", [](D x) { return 0.5 * sin(x); });
  const auto r =
      TREE(std::tuple(D(0.25), bias, I(0)), trees,
           [&](const std::tuple<D, V, I>& left, const std::tuple<D, V, I>& right, auto node) {
             const auto& [a, u, i] = left;
             const auto& [b, v, j] = right;
             const auto [x, label] = node.value();
             const V row(w.row(label));  // a row for each node
             V h = V(where(u > v, u, v + bias)) * half(x + a);
             h = h + sin(row) * select(x > 0.0, x, D(0.5));
             h = h.set(label, x).set(0, 0.5 * h(label) + row(0));
             const V part(h.slice(1, 3));
             const Rep<Tensor<double>> square = einsum<"i,j->ij">(part, row);
             const D most = max(h) + 0.1 * cast<double>(argmax(h));
             h = FOR(0, n, h, [&](I k, V now) { return V(now.set(k, now(k) * cos(now(k)) + square(1, k))); });
             h = IF(
                 flag, [&] { return V(h + dot(part, part)); }, [&] { return V(h - 1.0); });
             const M outer_rows = matmul(M(square), transpose(w));
             return std::tuple(b + most + sum(outer_rows) * 0.01, V(0.5 * tanh(h)), i + j + label + 1);
           },
           {.by_level = by_level});
  return {std::get<0>(r), std::get<1>(r), std::get<2>(r)};
}
template <bool by_level>
D many_loss(M w, V bias, Rep<bool> flag, Rep<std::int64_t> n, Batch trees) {
  const auto [a, h, count] = many_operations<by_level>(w, bias, flag, n, trees);
  return sum(a * a) + sum(sin(h));
}

}  // namespace

TEST_CASE("a batch: operations of every kind", "[tree_batch]") {
  std::mt19937 random(21);
  const TensorValue<double> w = matrix(3, 4, random);
  TensorValue<double> bias({4});
  bias.data = {0.3, -0.2, 0.1, 0.4};
  const TreeBatch<Value> batch(random_trees(8));
  for (std::size_t k = 0; k < ways.size(); ++k) {
    const CompileOptions& way = ways[k];
    const bool flag = k == 1;
    const auto [a, h, count] = eager(many_operations<false>)(w, bias, flag, 3, batch);
    const auto reference = eager(value_and_grad<0, 1>(many_loss<false>))(w, bias, flag, 3, batch);
    if (way.target == Target::c) {
      const auto [text, compiled] = told(many_operations<true>, way);
      CHECK(text == "runs level by level");
      const auto [a2, h2, count2] = compiled(w, bias, flag, 3, batch);
      check_near(a2, a);
      check_near(h2, h);
      CHECK(count2 == count);
    }
    const auto [value, gradients] =
        compile(value_and_grad<0, 1>(many_loss<true>), way)(w, bias, flag, 3, batch);
    CHECK(value == Approx(std::get<0>(reference)).epsilon(1e-12));
    check_near(std::get<0>(gradients), std::get<0>(std::get<1>(reference)), 1e-11);
    check_near(std::get<1>(gradients), std::get<1>(std::get<1>(reference)), 1e-11);
  }
}

TEST_CASE("a batch: matrices as results of nodes", "[tree_batch]") {
  const auto f = sig<Rep<Tensor<double, dyn, dyn, dyn>>(M, Batch)>([](M w, Batch trees) {
    return TREE(w, trees, [&](M left, M right, auto node) {
      return M(0.5 * matmul(left, right) + std::get<0>(node.value()) * w);
    });
  });
  const auto g = sig<D(M, Batch)>([&](M w, Batch trees) {
    return sum(TREE(w, trees, [&](M left, M right, auto node) {
      return M(0.5 * matmul(left, right) + std::get<0>(node.value()) * w);
    }));
  });
  std::mt19937 random(22);
  const TensorValue<double> w = matrix(3, 3, random);
  const TreeBatch<Value> batch(random_trees(9));
  const auto [text, compiled] = told(f);
  CHECK(text == "runs level by level");
  check_near(compiled(w, batch), eager(f)(w, batch));
  check_near(compile(grad<0>(g))(w, batch), eager(grad<0>(g))(w, batch));
}

TEST_CASE("a batch: what a level cannot do at once runs node by node, and says why", "[tree_batch]") {
  const TreeBatch<Value> batch(random_trees(10));
  const auto check = [&](const std::string& why, auto combine) {
    INFO(why);
    const auto f = sig<A(D, Batch)>([combine](D x, Batch trees) {
      return TREE(x, trees, [&](D left, D right, auto node) { return combine(left, right, node); });
    });
    const auto [text, compiled] = told(f);
    CHECK(text == "runs node by node: the body " + why);
    check_near(compiled(0.7, batch), eager(f)(0.7, batch));
    const auto g = sig<D(D, Batch)>([f](D x, Batch trees) { return sum(f(x, trees)); });
    CHECK(compile(grad<0>(g))(0.7, batch) == Approx(eager(grad<0>(g))(0.7, batch)).epsilon(1e-12));
  };
  const auto value = [](const auto& node) { return std::get<0>(node.value()); };
  check("branches on a value of the node, with 'get' on one side", [&](D l, D r, auto node) {
    const Rep<Array<double>> two(fill(l, 2));
    return IF(
        value(node) > 0.0, [&] { return l * r; }, [&] { return two[std::get<1>(node.value()) % 2] - r; });
  });
  check("branches on a value of the node, with 'loop' on one side", [&](D l, D r, auto node) {
    return IF(
        node.left().empty(), [&] { return r; },
        [&] { return FOR(0, 3, l, [&](I, D x) { return sin(x) + r; }); });
  });
  check("calls 'power', which calls itself", [&](D l, D r, auto node) {
    const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, D x, I n) {
      return IF(
          n == 0, [] { return D(1.0); }, [&] { return x * self(x, n - 1); });
    });
    return l + power(r * value(node), 3);
  });
  check("takes a part whose size is a value of the node", [&](D l, D r, auto node) {
    const Rep<Array<double>> two(fill(l, 3));
    return r + sum(two.slice(0, std::get<1>(node.value())));
  });
}

TEST_CASE("a batch: a branch on a value of the node computes both sides where neither can fail",
          "[tree_batch]") {
  const TreeBatch<Value> batch(random_trees(12));
  const auto f = sig<A(V, Batch)>([](V start, Batch trees) {
    const auto r = TREE(std::tuple(D(0.5), start), trees,
                        [&](const std::tuple<D, V>& left, const std::tuple<D, V>& right, auto node) {
                          const D x = std::get<0>(node.value());
                          const auto& [a, u] = left;
                          const auto& [b, v] = right;
                          // log and sqrt have no slope where they are not taken.
                          const auto [c, w] = IF(
                              x > 0.1, [&] { return std::tuple(D(log(x) * a + b), V(0.5 * u + sin(v))); },
                              [&] {
                                return IF(
                                    node.left().empty(), [&] { return std::tuple(D(b * x), v); },
                                    [&] { return std::tuple(D(a - sqrt(0.1 - x) * b), V(u * start)); });
                              });
                          return std::tuple(c, w + 0.1 * x);
                        });
    return A(as_array(as_tensor(std::get<0>(r)) + sum<1>(std::get<1>(r))));
  });
  const auto g = sig<D(V, Batch)>([f](V start, Batch trees) { return sum(sin(f(start, trees))); });
  TensorValue<double> start({3});
  start.data = {0.3, -0.4, 0.9};
  for (const CompileOptions& way : ways) {
    const auto [text, compiled] = told(f, way);
    CHECK(text == "runs level by level");
    check_near(compiled(start, batch), eager(f)(start, batch));
    check_near(compile(grad<0>(g), way)(start, batch), eager(grad<0>(g))(start, batch));
  }
}

TEST_CASE("a batch: a loop that ends by a value of the node runs until the last node of the level is done",
          "[tree_batch]") {
  const TreeBatch<Value> batch(random_trees(13));
  const auto f = sig<A(D, Batch)>([](D start, Batch trees) {
    return TREE(start, trees, [](D l, D r, auto node) {
      const auto [x, label] = node.value();
      const D halved = WHILE(
          l * l + r + x, [](D y) { return y > 0.5; }, [](D y) { return 0.5 * y; });
      // A loop in a loop, each with ends of its own, and an index that only rows in the loop have.
      const Rep<Array<double>> powers(fill(0.5 * x, 3));
      return FOR(0, label + 1, halved, [&](I i, D y) {
        return FOR(i, label + 1, y, [&](I j, D z) { return D(sin(z) + powers[j] * powers[i]); });
      });
    });
  });
  const auto g = sig<D(D, Batch)>([f](D start, Batch trees) { return sum(f(start, trees)); });
  for (const CompileOptions& way : ways) {
    const auto [text, compiled] = told(f, way);
    CHECK(text == "runs level by level");
    check_near(compiled(0.7, batch), eager(f)(0.7, batch));
    CHECK(compile(grad<0>(g), way)(0.7, batch) == Approx(eager(grad<0>(g))(0.7, batch)).epsilon(1e-12));
  }
}

TEST_CASE("a batch: a variable of the outside is not assigned in the body", "[tree_batch]") {
  const auto f = sig<A(D, Batch)>([](D x, Batch trees) {
    D count = 0.0;
    return TREE(x, trees, [&](D left, D right, auto) {
      count = count + 1.0;
      return left + right;
    });
  });
  std::string message;
  try {
    compile(f);
  } catch (const Error& e) {
    message = e.what();
  }
  CHECK(
      message.find(
          "a variable that was made outside of the function being staged is assigned in it. A function gives "
          "values: return the new one, or make the variable inside") != std::string::npos);
}

namespace {

using Ints = Rep<Array<std::int64_t>>;

/// The loss of the network and its gradient, of a batch given as its arrays.
std::tuple<D, M> of_arrays(M inner, M leaf, Ints left, Ints right, Ints levels, Ints roots, A x,
                           Ints labels) {
  const Batch trees{left, right, levels, roots, {x, labels}};
  const auto [value, gradient] = value_and_grad([&](M m) { return loss<true>(m, leaf, trees); })(inner);
  return {value, gradient};
}

}  // namespace

TEST_CASE("a batch on a GPU: kernels go by levels, not by nodes", "[tree_batch]") {
  std::mt19937 random(31);
  const TensorValue<double> inner = matrix(4, 8, random), leaf = matrix(3, 4, random);
  const auto list = [](auto span) { return std::vector(span.begin(), span.end()); };
  if (!codegen::nvrtc_available()) return;
  const auto compiled = compile(of_arrays, {.target = Target::cuda, .name = "of_arrays"});
  const test::Emulated emulated(compiled.source("cuda"), "of_arrays");
  const auto launches = [&](const std::vector<Tree<Value>>& trees) {
    const TreeBatch<Value> batch(trees);
    const auto v = batch.view();
    const auto on = [&](const auto& run) {
      return run(inner, leaf, list(v.left), list(v.right), list(v.levels), list(v.roots),
                 list(std::get<0>(v.values)), list(std::get<1>(v.values)));
    };
    test::compare_all(on(emulated), on(eager(of_arrays)), 1e-11);
    // The host reads where levels begin in the caller's memory; it waits for the loss.
    CHECK(emulated.spent().waits == 1);
    return emulated.spent().launches;
  };
  const auto deep = [&](std::int64_t n) { return std::vector<Tree<Value>>(3, chain(n)); };
  const std::int64_t few = launches(deep(4)), higher = launches(deep(6));
  CHECK(higher - few == 2 * 11);  // two more levels, forward and backward
  // Of three times as many nodes: blocks add up by themselves, in two tensors at each of three levels.
  CHECK(launches(std::vector<Tree<Value>>(9, chain(4))) == few + 2 * 3);
}

TEST_CASE("a batch: derivatives by the values of the nodes, which are arrays", "[tree_batch]") {
  const auto f = sig<D(D, Trees<double>)>([](D x, const Trees<double>& trees) {
    return sum(TREE(x, trees, [](D left, D right, auto node) { return left * right * sin(node.value()); }));
  });
  const auto by_values = sig<A(D, Trees<double>)>([f](D x, const Trees<double>& trees) {
    const A values = std::get<0>(trees.values);
    return A(grad([&](A v) {
      return f(x, Trees<double>{trees.left, trees.right, trees.levels, trees.roots, {v}});
    })(values));
  });
  const Tree<double> tree(0.5, Tree<double>(0.3), Tree<double>(0.7));
  const std::vector<Tree<double>> trees{tree, Tree<double>(0.9)};
  const std::vector<double> expected = eager(by_values)(2.0, TreeBatch<double>(trees));
  check_near(compile(by_values)(2.0, TreeBatch<double>(trees)), expected);
  CHECK(expected.size() == 4);
  CHECK(expected.back() == Approx(16 * std::sin(0.3) * std::sin(0.7) * std::cos(0.5)));
}
