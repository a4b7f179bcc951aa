// What lanternc --explain tells of folds of batches of trees.
#include <lantern/lantern.hpp>

using namespace lantern;
using D = Rep<double>;

Rep<Array<double>> sums(D x, Trees<double> trees) {
  return TREE(x, trees, [&](D left, D right, auto node) { return left + right * node.value(); });
}

Rep<Array<double>> gated(D x, Rep<Array<double>> weights, Trees<double> trees) {
  return TREE(x, trees, [&](D left, D right, auto node) {
    return IF(
        node.value() > 0.0, [&] { return left * right; }, [&] { return weights[cast<int64_t>(-node.value())] - right; });
  });
}

LANTERN_FUNCTION(tree_sums, sums)
LANTERN_FUNCTION(gated_sums, gated)
