// Ensembles of trees against a walk through each tree: numbers of examples below and above those that descend
// side by side, comparisons of every kind, NaN, leaves with one vote, one for each target, and any number.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "onnx_graphs.hpp"

using namespace onnx_graphs;

namespace {

struct TreeNode {
  std::int64_t feature = 0;
  float value = 0;
  std::string mode = "LEAF";
  std::int64_t yes = 0, no = 0;  ///< places in the tree
  bool missing = false;
  std::vector<std::pair<std::int64_t, float>> votes;
};
using Nodes = std::vector<TreeNode>;

enum class Votes : std::uint8_t { one, each_target, any };

struct Forest {
  std::vector<Nodes> trees;
  std::int64_t features = 0, targets = 0;
};

/// A tree of random shape below `at`.
void grow(Nodes& tree, std::size_t at, int depth, const Forest& f, const std::vector<std::string>& modes,
          bool missing, Votes votes, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::int64_t>(random() % n); };
  const auto number = [&] { return static_cast<float>(below(21)) * 0.125F - 1.25F; };
  if (depth == 0 || random() % 5 == 0) {
    if (votes == Votes::one) tree[at].votes = {{below(static_cast<std::size_t>(f.targets)), number()}};
    if (votes == Votes::each_target)
      for (std::int64_t t = 0; t < f.targets; ++t) tree[at].votes.emplace_back(t, number());
    if (votes == Votes::any)
      for (std::int64_t k = below(4); k > 0; --k)
        tree[at].votes.emplace_back(below(static_cast<std::size_t>(f.targets)), number());
    return;
  }
  tree[at].feature = below(static_cast<std::size_t>(f.features));
  tree[at].value = number();
  tree[at].mode = modes[random() % modes.size()];
  tree[at].missing = missing && random() % 2 == 0;
  for (const bool yes : {true, false}) {
    const std::size_t child = tree.size();
    (yes ? tree[at].yes : tree[at].no) = static_cast<std::int64_t>(child);
    tree.emplace_back();
    grow(tree, child, depth - 1, f, modes, missing, votes, random);
  }
}

Forest forest(std::size_t trees, std::int64_t targets, const std::vector<std::string>& modes, bool missing,
              Votes votes, std::mt19937& random) {
  Forest f;
  f.features = 3;
  f.targets = targets;
  for (std::size_t t = 0; t < trees; ++t) {
    f.trees.emplace_back(1);
    grow(f.trees.back(), 0, 5, f, modes, missing, votes, random);
  }
  return f;
}

onnx::Model regressor(const Forest& f, const onnx::Dimension& examples) {
  Shape trees, ids, features, yes, no, missing, vote_trees, vote_nodes, vote_targets;
  std::vector<double> values, weights;
  std::vector<std::string> modes;
  for (std::size_t t = 0; t < f.trees.size(); ++t)
    for (std::size_t i = 0; i < f.trees[t].size(); ++i) {
      const TreeNode& n = f.trees[t][i];
      const auto tree = static_cast<std::int64_t>(t), id = static_cast<std::int64_t>(i);
      trees.push_back(tree);
      ids.push_back(id);
      features.push_back(n.feature);
      values.push_back(static_cast<double>(n.value));
      modes.push_back(n.mode);
      yes.push_back(n.yes);
      no.push_back(n.no);
      missing.push_back(n.missing ? 1 : 0);
      for (const auto& [target, weight] : n.votes) {
        vote_trees.push_back(tree);
        vote_nodes.push_back(id);
        vote_targets.push_back(target);
        weights.push_back(static_cast<double>(weight));
      }
    }
  onnx::Node n =
      node("TreeEnsembleRegressor", {"x"}, {"y"},
           {whole("n_targets", f.targets), wholes("nodes_treeids", trees), wholes("nodes_nodeids", ids),
            wholes("nodes_featureids", features), with("nodes_values", values), with("nodes_modes", modes),
            wholes("nodes_truenodeids", yes), wholes("nodes_falsenodeids", no),
            wholes("nodes_missing_value_tracks_true", missing), wholes("target_treeids", vote_trees),
            wholes("target_nodeids", vote_nodes), wholes("target_ids", vote_targets),
            with("target_weights", weights)});
  n.domain = "ai.onnx.ml";
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {examples, f.features})};
  g.nodes = {n};
  g.outputs = {result("y")};
  onnx::Model m = model(g);
  m.opsets["ai.onnx.ml"] = 3;
  return m;
}

bool says_yes(const TreeNode& n, float v) {
  if (std::isnan(v) && n.missing) return true;
  if (n.mode == "BRANCH_LEQ") return v <= n.value;
  if (n.mode == "BRANCH_LT") return v < n.value;
  if (n.mode == "BRANCH_GTE") return v >= n.value;
  if (n.mode == "BRANCH_GT") return v > n.value;
  return n.mode == "BRANCH_EQ" ? v == n.value : v != n.value;
}

Value walked(const Forest& f, const Value& x) {
  const std::int64_t n = x.shape()[0];
  std::vector<float> y(static_cast<std::size_t>(n * f.targets), 0.0F);
  const auto numbers = x.tensor<float>().data;
  for (std::int64_t e = 0; e < n; ++e)
    for (const Nodes& tree : f.trees) {
      std::size_t at = 0;
      while (tree[at].mode != "LEAF") {
        const float v = numbers[static_cast<std::size_t>(e * f.features + tree[at].feature)];
        at = static_cast<std::size_t>(says_yes(tree[at], v) ? tree[at].yes : tree[at].no);
      }
      for (const auto& [target, weight] : tree[at].votes)
        y[static_cast<std::size_t>(e * f.targets + target)] += weight;
    }
  return floats({n, f.targets}, y);
}

/// Multiples of 1/8, so that some are the numbers of nodes, and every seventh NaN where there may be any.
Value examples(std::int64_t n, std::int64_t features, bool missing, std::mt19937& random) {
  std::vector<float> x(static_cast<std::size_t>(n * features));
  for (float& v : x)
    v = missing && random() % 7 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                     : static_cast<float>(random() % 25) * 0.125F - 1.5F;
  return floats({n, features}, x);
}

}  // namespace

TEST_CASE("trees say what a walk through each says") {
  std::mt19937 random(1);
  const std::vector<std::vector<std::string>> kinds = {
      {"BRANCH_LEQ"},
      {"BRANCH_LT"},
      {"BRANCH_GTE"},
      {"BRANCH_GT"},
      {"BRANCH_LEQ", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"}};
  for (const std::vector<std::string>& modes : kinds)
    for (const bool missing : {false, true})
      for (const Votes votes : {Votes::one, Votes::each_target, Votes::any}) {
        const std::int64_t targets = votes == Votes::one && missing ? 1 : 3;
        const Forest f = forest(11, targets, modes, missing, votes, random);
        INFO(modes[0] << " of " << modes.size() << ", " << missing << ", " << static_cast<int>(votes));
        const onnx::Session session =
            onnx::compile(regressor(f, onnx::Dimension("n")), {.target = core::Target::c});
        for (const std::int64_t n : {0, 1, 7, 8, 29}) {
          const Value x = examples(n, f.features, missing, random);
          check_near(session.run({x})[0], walked(f, x));
        }
        const Value x = examples(9, f.features, missing, random);
        check_near(onnx::eager(regressor(f, 9)).run({x})[0], walked(f, x));
      }
}

TEST_CASE("branches and leaves that several branches lead to") {
  // A set of categories as LightGBM's exporter writes it: each comparison's yes leads to the same branch.
  const auto leaf = [](float weight) { return TreeNode{0, 0, "LEAF", 0, 0, false, {{0, weight}}}; };
  Forest f;
  f.features = 2;
  f.targets = 1;
  f.trees = {{TreeNode{0, 1, "BRANCH_EQ", 3, 1, false, {}}, TreeNode{0, 0.5F, "BRANCH_EQ", 3, 2, false, {}},
              TreeNode{0, -1, "BRANCH_EQ", 3, 5, false, {}}, TreeNode{1, 0, "BRANCH_LEQ", 4, 5, false, {}},
              leaf(1), leaf(-2)}};
  std::mt19937 random(3);
  const onnx::Session session =
      onnx::compile(regressor(f, onnx::Dimension("n")), {.target = core::Target::c});
  const Value x = examples(60, f.features, false, random);
  check_near(session.run({x})[0], walked(f, x));
  check_near(onnx::eager(regressor(f, 60)).run({x})[0], walked(f, x));
  f.trees[0][3].yes = 1;
  CHECK_THROWS_WITH(onnx::eager(regressor(f, 60)), Catch::Contains("got a node that leads to itself"));
}

TEST_CASE("a tree that is one leaf, and more trees than descend side by side") {
  std::mt19937 random(2);
  Forest f = forest(3, 1, {"BRANCH_LEQ"}, false, Votes::one, random);
  f.trees.insert(f.trees.begin() + 1, Nodes{TreeNode{0, 0, "LEAF", 0, 0, false, {{0, 2.5F}}}});
  for (const std::int64_t n : {2, 20}) {
    const Value x = examples(n, f.features, false, random);
    check_near(run(regressor(f, n), {x})[0], walked(f, x));
  }
}
