// Ensembles of trees.
#include <algorithm>
#include <array>
#include <limits>

#include "lantern/compiler/onnx/classic.hpp"
#include "lantern/compiler/onnx/prepare.hpp"
#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/functions.hpp"

namespace lantern::onnx::rules {

namespace {

/// So many descents run side by side: a descent waits for its node, its feature and its comparison one after
/// another, those of others fill the time.
constexpr std::int64_t side_by_side = 8;
/// In trees of so many branches on average, and no more, all comparisons are made, for examples in lanes: a
/// descent makes few of them, but each waits for the one before, and fetches what it compares from anywhere.
constexpr std::int64_t most_branches = 64;
/// So many examples go through all trees before the next ones: their features stay in the cache.
constexpr std::int64_t examples_at_once = 64;

struct Trees {
  const Call& c;
  Datum x, primal, roots, nodes, value, first, target, weight;
  Datum spans, begins;  ///< where leaves may be found by comparing with all branches
  std::vector<std::int64_t> modes;
  bool any_missing = false;
  Sizes targets;
  std::int64_t inner = 0;  ///< nodes that are no leaves: those before the leaves
  std::int64_t each = -1;  ///< votes of each leaf, where all have as many
  bool in_order = false;   ///< and they are for target 0, 1, ...

  explicit Trees(const Call& call) : c(call), x(examples(call)), primal(c.b.primal(x)) {
    const auto table = [&](const char* name) {
      const Term t = list(c, name);
      if (!t.present())
        c.fail(std::string("expected an attribute '") + name + "', which a prepared model has");
      return t;
    };
    roots = c.datum(table("trees_roots"));
    nodes = c.datum(table("trees_nodes"));
    value = c.datum(table("trees_value"));
    first = c.datum(table("trees_first"));
    target = c.datum(table("trees_target"));
    weight = c.datum(table("trees_weight"));
    const Sizes votes = c.integers(table("trees_first"), "votes"),
                rows = c.integers(table("trees_nodes"), "nodes");
    const std::size_t leaves = votes.size() - 1;
    inner = static_cast<std::int64_t>(rows.size() / 4 - leaves);
    for (std::size_t i = 0; i < static_cast<std::size_t>(inner); ++i) {
      modes.push_back(rows[4 * i + 3] % tree_missing);
      any_missing = any_missing || rows[4 * i + 3] >= tree_missing;
    }
    std::ranges::sort(modes);
    const auto [end, rest] = std::ranges::unique(modes);
    modes.erase(end, rest);
    if (c.attribute("trees_paired", std::int64_t{0}) != 0) pair_features();
    if (has_spans()) {
      spans = c.datum(table("trees_spans"));
      begins = c.datum(table("trees_begins"));
    }
    targets = c.integers(table("trees_target"), "targets");
    if (leaves == 0 || targets.size() % leaves != 0) return;
    const auto share = static_cast<std::int64_t>(targets.size() / leaves);
    for (std::size_t i = 0; i < votes.size(); ++i)
      if (votes[i] != static_cast<std::int64_t>(i) * share) return;
    each = share;
    in_order = true;
    for (std::size_t i = 0; i < targets.size(); ++i)
      in_order = in_order && targets[i] == static_cast<std::int64_t>(i) % share;
  }

  /// Each feature twice: as it is, and with a number that says yes for a NaN.
  void pair_features() {
    const auto how = static_cast<TreeMode>(modes.at(0));
    const double inf = std::numeric_limits<double>::infinity();
    const Datum yes = constant_like(how == TreeMode::leq || how == TreeMode::lt ? -inf : inf, primal);
    const Datum both[] = {primal, c.where(c.op(Opcode::ne_, primal, primal), yes, primal)};
    primal = c.b.reshape(core::detail::stack(both, 2, c.b.loc),
                         {c.b.size(x, 0), c.b.mul(c.b.size(x, 1), c.integer(2))});
    any_missing = false;
  }

  /// Whether leaves may be found by comparing with all branches.
  bool has_spans() const {
    return list(c, "trees_spans").present() && modes.size() == 1 && !any_missing &&
           inner <= most_branches * length_of(list(c, "trees_roots"));
  }

  Datum wide(const Datum& t, const Indices& at) const { return c.cast(c.b.get(t, at), ir::Kind::i64); }
  Datum field(const Datum& node, std::int64_t k) const { return wide(nodes, {node, c.integer(k)}); }

  Datum compares(const Datum& v, const Datum& w, std::int64_t how) const {
    switch (static_cast<TreeMode>(how)) {
      case TreeMode::leq:
        return c.op(Opcode::le_, v, w);
      case TreeMode::lt:
        return c.b.less(v, w);
      case TreeMode::gte:
        return c.op(Opcode::le_, w, v);
      case TreeMode::gt:
        return c.b.less(w, v);
      case TreeMode::eq:
        return c.op(Opcode::eq_, v, w);
      default:
        return c.op(Opcode::ne_, v, w);
    }
  }

  Datum goes_yes(const Datum& v, const Datum& node) const {
    const Datum w = c.b.get(value, {node});
    const auto compared = [&](std::int64_t how) { return compares(v, w, how); };
    Datum yes_way = modes.empty() ? Datum::integer(1, ir::Bool) : compared(modes[0]);
    if (modes.size() < 2 && !any_missing) return yes_way;
    const Datum how = field(node, 3), bit = c.integer(tree_missing);
    for (std::size_t k = 1; k < modes.size(); ++k)
      yes_way =
          c.b.select(c.op(Opcode::eq_, c.b.rem(how, bit), c.integer(modes[k])), compared(modes[k]), yes_way);
    if (!any_missing) return yes_way;
    const Datum gone = c.op(Opcode::land_, c.op(Opcode::ne_, v, v), c.op(Opcode::le_, bit, how));
    return c.op(Opcode::lor_, gone, yes_way);
  }

  /// The next node of a descent; a leaf leads to itself.
  Datum next(const Datum& node, const Datum& example) const {
    const Datum v = c.cast(c.b.get(primal, {example, field(node, 0)}), value.type().element());
    return c.b.select(goes_yes(v, node), field(node, 1), field(node, 2));
  }

  /// The leaves of a tree that the examples from `begin` to below `end` come to, written to the vector
  /// `leaves`; `columns` are the examples' features, one after another. The numbers of
  /// leaves have the floating-point type of the features: a vector register holds as many of both.
  ///
  /// Of the leaves from left to right an example is at the first one. Then the branches have their say, each
  /// before those that it leads to: an example at the first leaf of a branch that says no goes to the first
  /// leaf of its way of no. (After Lucchese et al., "QuickScorer: a fast algorithm to rank documents with
  /// additive ensembles of regression trees", SIGIR 2015, which removes the leaves that a branch excludes
  /// from a set of bits.)
  Datum compared_with_all(const Datum& leaves, const Datum& columns, const Datum& begin, const Datum& end,
                          const Datum& tree) const {
    const Datum zero = c.integer(0), one = c.integer(1);
    const Datum first_branch = wide(begins, {tree, zero}), behind = wide(begins, {c.b.add(tree, one), zero}),
                first_leaf = c.cast(c.b.get(begins, {tree, one}), spans.type().element());
    return c.b.loop(begin, end, {leaves}, [&](const Datum& example, const Datums& s) {
      const Datum leaf =
          c.b.loop(first_branch, behind, {first_leaf}, [&](const Datum& branch, const Datums& at) {
            const Datum v = c.cast(c.b.get(columns, {field(branch, 0), example}), value.type().element());
            const Datum here = c.op(Opcode::eq_, at[0], c.b.get(spans, {branch, zero}));
            const Datum otherwise = c.b.select(here, c.b.get(spans, {branch, one}), at[0]);
            return Datums{c.b.select(compares(v, c.b.get(value, {branch}), modes[0]), at[0], otherwise)};
          })[0];
      return Datums{c.b.set(s[0], {example}, leaf)};
    })[0];
  }

  /// Descents from 0 to below `count`, each of a root and an example: the numbers of the leaves that they
  /// come to, written to the vector `leaves`.
  Datum descended(const Datum& leaves, const Datum& count,
                  const std::function<std::array<Datum, 2>(const Datum&)>& start) const {
    const Datum width = c.integer(side_by_side), one = c.integer(1), most = c.b.sub(count, one);
    const Datum blocks = c.b.div(c.b.add(count, c.integer(side_by_side - 1)), width);
    return c.b.loop(c.integer(0), blocks, {leaves}, [&](const Datum& block, const Datums& s) {
      Datums places, rows, now;
      for (std::int64_t k = 0; k < side_by_side; ++k) {  // past the end the last descent again
        places.push_back(c.op(Opcode::imin_, c.b.add(c.b.mul(block, width), c.integer(k)), most));
        const auto [root, example] = start(places.back());
        now.push_back(root);
        rows.push_back(example);
      }
      now = core::detail::loop(
          now,
          [&](const Datums& at) {
            Datum least = at[0];
            for (std::size_t k = 1; k < at.size(); ++k) least = c.op(Opcode::imin_, least, at[k]);
            return c.b.less(least, c.integer(inner));
          },
          [&](const Datums& at) {
            Datums then;
            for (std::size_t k = 0; k < at.size(); ++k) then.push_back(next(at[k], rows[k]));
            return then;
          },
          c.b.loc);
      Datum all = s[0];
      for (std::size_t k = 0; k < now.size(); ++k)
        all = c.b.set(all, {places[k]}, c.b.sub(now[k], c.integer(inner)));
      return Datums{all};
    })[0];
  }

  /// The votes of a leaf joined to an example's row of y.
  Datum voted(const Datum& y, const Datum& example, const Datum& leaf, std::int64_t count,
              Opcode join) const {
    const auto put = [&](const Datum& all, const Datum& to, const Datum& vote) {
      return c.b.set(all, {example, to}, c.op(join, c.b.get(all, {example, to}), c.b.get(weight, {vote})));
    };
    const auto to = [&](const Datum& vote) { return count == 1 ? c.integer(0) : wide(target, {vote}); };
    if (each == 1) return put(y, to(leaf), leaf);
    if (in_order && each == count)
      return c.b.loop(c.integer(0), c.integer(count), {y}, [&](const Datum& k, const Datums& s) {
        return Datums{put(s[0], k, c.b.add(c.b.mul(leaf, c.integer(count)), k))};
      })[0];
    return c.b.loop(wide(first, {leaf}), wide(first, {c.b.add(leaf, c.integer(1))}), {y},
                    [&](const Datum& vote, const Datums& s) { return Datums{put(s[0], to(vote), vote)}; })[0];
  }

  /// What the trees say of each target: [n, targets].
  Datum scores(std::int64_t count, const std::string& how) const {
    for (const std::int64_t t : targets)
      if (t < 0 || t >= count)
        c.fail("expected votes for targets from 0 to " + std::to_string(count - 1) + ", got " +
               std::to_string(t));
    const ir::Kind k = weight.type().element();
    const double inf = std::numeric_limits<double>::infinity();
    const Datum start = Datum::number(how == "MIN" ? inf : how == "MAX" ? -inf : 0, ir::Type(k));
    const Opcode join = how == "MIN" ? Opcode::min_ : how == "MAX" ? Opcode::max_ : Opcode::add_;
    const Datum n = c.b.size(x, 0), trees = c.b.size(roots, 0), zero = c.integer(0);
    const Datum empty = c.b.fill(start, {n, c.integer(count)});
    const auto memory = [&](const Datum& size) { return c.b.fill(zero, {size}); };
    const auto root = [&](const Datum& tree) { return c.b.get(roots, {tree}); };
    // All examples are compared with the branches of a tree, then with those of the next one.
    const auto by_branches = [&] {
      const Datum columns = c.permute(primal, {1, 0});
      const Datum start_of_leaves = c.b.fill(Datum::number(0, ir::Type(spans.type().element())), {n});
      const bool one = count == 1 && each == 1;  // a vector, whose elements are side by side
      const Datum sums = one ? c.b.fill(start, {n}) : empty;
      const Datum width = c.integer(examples_at_once);
      const Datum blocks = c.b.div(c.b.add(n, c.integer(examples_at_once - 1)), width);
      const Datum y =
          c.b.loop(zero, blocks, {sums, start_of_leaves}, [&](const Datum& block, const Datums& all) {
            const Datum begin = c.b.mul(block, width), end = c.op(Opcode::imin_, n, c.b.add(begin, width));
            return c.b.loop(zero, trees, all, [&](const Datum& tree, const Datums& s) {
              const Datum leaves = compared_with_all(s[1], columns, begin, end, tree);
              Datums next = c.b.loop(begin, end, {s[0]}, [&](const Datum& example, const Datums& now) {
                const Datum leaf = wide(leaves, {example});
                if (!one) return Datums{voted(now[0], example, leaf, count, join)};
                const Datum vote = c.op(join, c.b.get(now[0], {example}), c.b.get(weight, {leaf}));
                return Datums{c.b.set(now[0], {example}, vote)};
              });
              return Datums{next[0], leaves};
            });
          })[0];
      const int last = 1;
      return Datums{one ? c.b.with_ones(y, {&last, 1}) : y};
    };
    // All examples descend a tree, then the next one: a tree's nodes stay in the cache.
    const auto by_trees = [&] {
      if (has_spans()) return by_branches();
      return Datums{c.b.loop(zero, trees, {empty, memory(n)}, [&](const Datum& tree, const Datums& s) {
        const Datum leaves = descended(s[1], n, [&](const Datum& example) {
          return std::array<Datum, 2>{root(tree), example};
        });
        Datums y = c.b.loop(zero, n, {s[0]}, [&](const Datum& example, const Datums& now) {
          return Datums{voted(now[0], example, c.b.get(leaves, {example}), count, join)};
        });
        return Datums{y[0], leaves};
      })[0]};
    };
    // An example descends several trees side by side, where there are few examples.
    const auto by_examples = [&] {
      return Datums{c.b.loop(zero, n, {empty, memory(trees)}, [&](const Datum& example, const Datums& s) {
        const Datum leaves = descended(s[1], trees, [&](const Datum& tree) {
          return std::array<Datum, 2>{root(tree), example};
        });
        Datums y = c.b.loop(zero, trees, {s[0]}, [&](const Datum& tree, const Datums& now) {
          return Datums{voted(now[0], example, c.b.get(leaves, {tree}), count, join)};
        });
        return Datums{y[0], leaves};
      })[0]};
    };
    const std::int64_t said = core::detail::known(n);
    Datum y = said == ir::dynamic   ? core::detail::branch(c.b.less(n, c.integer(side_by_side)), by_examples,
                                                           by_trees, c.b.loc)[0]
              : said < side_by_side ? by_examples()[0]
                                    : by_trees()[0];
    if (how == "AVERAGE") y = c.b.div(y, c.cast(trees, k));
    if (how == "MIN" || how == "MAX")  // what no leaf votes for is 0
      y = c.where(c.op(Opcode::eq_, y, start), Datum::number(0, ir::Type(k)), y);
    Term base = list(c, "base_values");
    if (!base.present()) base = list(c, "base_values_as_tensor");
    if (length_of(base) == 0) return y;
    if (length_of(base) != count && length_of(base) != 1)
      c.fail("attribute 'base_values': expected " + std::to_string(count) + " numbers, got " +
             std::to_string(length_of(base)));
    const Datum b = c.cast(c.datum(base), k);
    return c.b.add(y, length_of(base) == 1 ? c.b.get(b, {c.integer(0)}) : b);
  }
};

}  // namespace

Terms tree_ensemble(const Call& c) {
  const std::int64_t count = c.attribute("n_targets", std::int64_t{1});
  if (count < 1 || count > 1 << 20)
    c.fail("attribute 'n_targets': expected 1 or more, got " + std::to_string(count));
  const Trees trees(c);
  static constexpr const char* functions[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  static constexpr const char* after[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  std::string how, last;
  if (c.node.op == "TreeEnsemble") {
    const std::int64_t f = c.attribute("aggregate_function", std::int64_t{1}),
                       p = c.attribute("post_transform", std::int64_t{0});
    if (f < 0 || f > 3 || p < 0 || p > 4)
      c.fail("attributes 'aggregate_function' and 'post_transform': expected numbers that are known");
    how = functions[f];
    last = after[p];
  } else {
    how = c.attribute("aggregate_function", std::string("SUM"));
    last = post_transform(c);
    if (std::ranges::find(functions, how) == std::end(functions))
      c.fail("attribute 'aggregate_function': expected AVERAGE, SUM, MIN or MAX, got '" + how + "'");
  }
  const Element e = c.node.op == "TreeEnsemble" ? real_element(c) : Element::float32;
  return {c.result(c.cast(transformed(c, trees.scores(count, how), last), e), e)};
}

Terms tree_ensemble_classifier(const Call& c) {
  const Term labels = labels_of(c, "classlabels_int64s");
  const std::int64_t classes = length_of(labels);
  const Trees trees(c);
  const std::string last = post_transform(c);
  const auto result = [&](const Datum& z) { return c.result(c.cast(z, ir::Kind::f32), Element::float32); };
  const bool one = classes == 2 && !trees.targets.empty() &&
                   std::ranges::all_of(trees.targets, [&](auto t) { return t == trees.targets[0]; });
  if (!one) {
    const Datum scores = trees.scores(classes, "SUM");
    return {chosen(c, labels, best(c, scores)), result(transformed(c, scores, last))};
  }
  // Votes for one class of two decide alone. Where they are for class 0 they are the score of class 1, and
  // the other is what is left of 1, or of 0 where votes may be below it: so onnxruntime takes what gradient
  // boosting writes.
  const Datum all = trees.scores(classes, "SUM");
  const Datum score = part_of(c, all, 1, c.integer(trees.targets[0]), c.integer(trees.targets[0] + 1));
  const Value weights = c.value(list(c, "trees_weight"), "weights");
  bool positive = true;
  for (std::size_t i = 0; i < static_cast<std::size_t>(weights.size()); ++i)
    positive = positive && weights.at(i) >= 0;
  const Term label = chosen(c, labels, above(c, score, positive ? 0.5 : 0));
  if (trees.targets[0] != 0) return {label, result(transformed(c, all, last))};
  const Datum negated = c.op(Opcode::neg_, score);
  if (last == "LOGISTIC") return {label, result(transformed(c, pair_of(c, negated, score), last))};
  return {label, result(pair_of(c, positive ? c.b.sub(constant_like(1, score), score) : negated, score))};
}

}  // namespace lantern::onnx::rules
