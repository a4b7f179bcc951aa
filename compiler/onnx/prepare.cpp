#include "lantern/compiler/onnx/prepare.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace lantern::onnx {

namespace {

/// Lists of up to so many numbers stay what they are.
constexpr std::size_t most_in_list = 16;

Value floats(const std::vector<double>& all, Element e = Element::float32) {
  Value v(e, {static_cast<std::int64_t>(all.size())});
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (e == Element::float64)
      v.mutable_elements<double>()[i] = all[i];
    else
      v.mutable_elements<float>()[i] = static_cast<float>(all[i]);
  }
  return v;
}
Value integers(const std::vector<std::int64_t>& all, Element e) {
  Value v(e, {static_cast<std::int64_t>(all.size())});
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (e == Element::int64)
      v.mutable_elements<std::int64_t>()[i] = all[i];
    else
      v.mutable_elements<std::int32_t>()[i] = static_cast<std::int32_t>(all[i]);
  }
  return v;
}

/// A node of a tree as the file has it.
struct Branch {
  std::int64_t feature = 0;
  double value = 0;
  TreeMode mode = TreeMode::leaf;
  std::int64_t yes = -1, no = -1;  ///< numbers of branches
  bool missing = false;
  std::vector<double> members;  ///< of mode member
  std::vector<std::pair<std::int64_t, double>> votes;
};

struct Forest {
  std::vector<Branch> branches;
  std::vector<std::int64_t> roots;
  Element element = Element::float32;
};

struct ForestReader {
  const Node& node;

  [[noreturn]] void fail(const std::string& what) const { throw Error(node.label() + ": " + what); }

  std::vector<std::int64_t> integers(const char* name) const {
    const Attribute* const a = node.find(name);
    if (!a) return {};
    if (const auto* v = std::get_if<std::vector<std::int64_t>>(&a->content)) return *v;
    if (const auto* v = std::get_if<Value>(&a->content); v && !v->is_sequence() && is_integer(v->element())) {
      std::vector<std::int64_t> all;
      for (std::size_t i = 0; i < static_cast<std::size_t>(v->size()); ++i) all.push_back(v->integer_at(i));
      return all;
    }
    fail(std::string("attribute '") + name + "': expected integers");
  }
  std::vector<double> numbers(const std::string& name, Element* element = nullptr) const {
    const Attribute* a = node.find(name);
    if (!a) a = node.find(name + "_as_tensor");
    if (!a) return {};
    if (const auto* v = std::get_if<std::vector<double>>(&a->content)) return *v;
    if (const auto* v = std::get_if<Value>(&a->content); v && !v->is_sequence() && is_float(v->element())) {
      if (element) *element = v->element() == Element::float64 ? Element::float64 : Element::float32;
      std::vector<double> all;
      for (std::size_t i = 0; i < static_cast<std::size_t>(v->size()); ++i) all.push_back(v->at(i));
      return all;
    }
    fail("attribute '" + name + "': expected floating-point numbers");
  }
  void require_as_many(const char* name, std::size_t have, std::size_t want) const {
    if (have != want)
      fail(std::string("attribute '") + name + "': expected " + std::to_string(want) + " entries, got " +
           std::to_string(have));
  }

  /// TreeEnsembleRegressor and TreeEnsembleClassifier: nodes by the numbers of their trees and their own.
  Forest by_numbers(const std::string& votes) const {
    Forest f;
    const auto trees = integers("nodes_treeids"), ids = integers("nodes_nodeids"),
               features = integers("nodes_featureids"), yes = integers("nodes_truenodeids"),
               no = integers("nodes_falsenodeids"), missing = integers("nodes_missing_value_tracks_true");
    const auto values = numbers("nodes_values", &f.element);
    const Attribute* const modes = node.find("nodes_modes");
    const auto* const names = modes ? std::get_if<std::vector<std::string>>(&modes->content) : nullptr;
    if (!names) fail("attribute 'nodes_modes': expected strings");
    const std::size_t n = trees.size();
    require_as_many("nodes_nodeids", ids.size(), n);
    require_as_many("nodes_featureids", features.size(), n);
    require_as_many("nodes_truenodeids", yes.size(), n);
    require_as_many("nodes_falsenodeids", no.size(), n);
    require_as_many("nodes_values", values.size(), n);
    require_as_many("nodes_modes", names->size(), n);
    if (!missing.empty()) require_as_many("nodes_missing_value_tracks_true", missing.size(), n);
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> places;
    for (std::size_t i = 0; i < n; ++i)
      if (!places.emplace(std::pair(trees[i], ids[i]), static_cast<std::int64_t>(i)).second)
        fail("expected nodes of different numbers, got " + std::to_string(ids[i]) + " twice in tree " +
             std::to_string(trees[i]));
    const auto place = [&](std::int64_t tree, std::int64_t id) {
      const auto at = places.find({tree, id});
      if (at == places.end())
        fail("expected numbers of nodes that there are, got " + std::to_string(id) + " in tree " +
             std::to_string(tree));
      return at->second;
    };
    static constexpr const char* known[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                            "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
    std::vector<bool> child(n, false);
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = std::ranges::find(known, (*names)[i]);
      if (at == std::end(known) || at == known + static_cast<int>(TreeMode::member))
        fail(
            "attribute 'nodes_modes': expected BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, "
            "BRANCH_NEQ or "
            "LEAF, got '" +
            (*names)[i] + "'");
      Branch b{features[i], values[i], static_cast<TreeMode>(at - known),
               -1,          -1,        !missing.empty() && missing[i] != 0,
               {},          {}};
      if (b.mode != TreeMode::leaf) {
        b.yes = place(trees[i], yes[i]);
        b.no = place(trees[i], no[i]);
        child[static_cast<std::size_t>(b.yes)] = child[static_cast<std::size_t>(b.no)] = true;
      }
      f.branches.push_back(std::move(b));
    }
    for (std::size_t i = 0; i < n; ++i)
      if (!child[i]) f.roots.push_back(static_cast<std::int64_t>(i));
    const std::string plural = votes + "_ids", weights = votes + "_weights";
    const auto at_trees = integers((votes + "_treeids").c_str()),
               at_nodes = integers((votes + "_nodeids").c_str()), targets = integers(plural.c_str());
    const auto weight = numbers(weights, &f.element);
    require_as_many("..._nodeids", at_nodes.size(), at_trees.size());
    require_as_many("..._ids", targets.size(), at_trees.size());
    require_as_many("..._weights", weight.size(), at_trees.size());
    for (std::size_t i = 0; i < at_trees.size(); ++i)
      f.branches[static_cast<std::size_t>(place(at_trees[i], at_nodes[i]))].votes.emplace_back(targets[i],
                                                                                               weight[i]);
    return f;
  }

  /// TreeEnsemble: branches and leaves by their places, leaves behind the branches here.
  Forest by_places() const {
    Forest f;
    f.roots = integers("tree_roots");
    const auto features = integers("nodes_featureids"), yes = integers("nodes_truenodeids"),
               no = integers("nodes_falsenodeids"), yes_leaf = integers("nodes_trueleafs"),
               no_leaf = integers("nodes_falseleafs"), modes = integers("nodes_modes"),
               missing = integers("nodes_missing_value_tracks_true"), targets = integers("leaf_targetids");
    const auto values = numbers("nodes_splits", &f.element), weights = numbers("leaf_weights", &f.element),
               members = numbers("membership_values");
    const std::size_t n = features.size();
    require_as_many("nodes_truenodeids", yes.size(), n);
    require_as_many("nodes_falsenodeids", no.size(), n);
    require_as_many("nodes_trueleafs", yes_leaf.size(), n);
    require_as_many("nodes_falseleafs", no_leaf.size(), n);
    require_as_many("nodes_modes", modes.size(), n);
    require_as_many("nodes_splits", values.size(), n);
    require_as_many("leaf_weights", weights.size(), targets.size());
    if (!missing.empty()) require_as_many("nodes_missing_value_tracks_true", missing.size(), n);
    const auto place = [&](std::int64_t at, std::int64_t leaf) {
      const std::int64_t most = static_cast<std::int64_t>(leaf != 0 ? targets.size() : n);
      if (at < 0 || at >= most)
        fail("expected places of nodes or leaves below " + std::to_string(most) + ", got " +
             std::to_string(at));
      return at + (leaf != 0 ? static_cast<std::int64_t>(n) : 0);
    };
    std::size_t member = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (modes[i] < 0 || modes[i] > static_cast<int>(TreeMode::member))
        fail("attribute 'nodes_modes': expected numbers from 0 to 6, got " + std::to_string(modes[i]));
      Branch b{features[i],
               values[i],
               static_cast<TreeMode>(modes[i]),
               place(yes[i], yes_leaf[i]),
               place(no[i], no_leaf[i]),
               !missing.empty() && missing[i] != 0,
               {},
               {}};
      if (b.mode == TreeMode::member) {
        for (; member < members.size() && !std::isnan(members[member]); ++member)
          b.members.push_back(members[member]);
        ++member;
      }
      f.branches.push_back(std::move(b));
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      Branch leaf;
      leaf.votes.emplace_back(targets[i], weights[i]);
      f.branches.push_back(std::move(leaf));
    }
    for (const std::int64_t r : f.roots) place(r, 0);
    return f;
  }
};

/// The tables of a forest, its nodes in the order in which a walk that goes the way of yes first meets them.
struct Tables {
  std::vector<std::int64_t> roots, feature, mode, yes, no, first, target;
  std::vector<double> value, weight;

  std::int64_t add(const Branch& b, TreeMode how, double compared) {
    feature.push_back(how == TreeMode::leaf ? 0 : b.feature);
    value.push_back(compared);
    mode.push_back(static_cast<std::int64_t>(how) + (b.missing ? tree_missing : 0));
    const auto at = static_cast<std::int64_t>(feature.size()) - 1;
    yes.push_back(at);
    no.push_back(at);
    if (how == TreeMode::leaf) {
      first.push_back(static_cast<std::int64_t>(target.size()));
      for (const auto& [t, w] : b.votes) {
        target.push_back(t);
        weight.push_back(w);
      }
    }
    return at;
  }

  /// Whether each feature can be given as a pair: itself, and a number that says yes for a NaN. True where
  /// one comparison by order serves all nodes, with finite numbers.
  bool paired() const {
    bool any = false;
    std::int64_t how = -1;
    for (std::size_t i = 0; i < mode.size(); ++i) {
      if (is_leaf(i)) continue;
      const std::int64_t own = mode[i] % tree_missing;
      if (how < 0) how = own;
      if (own != how || own > static_cast<std::int64_t>(TreeMode::gt) || !std::isfinite(value[i]) ||
          feature[i] < 0 || feature[i] > 1 << 29)
        return false;
      any = any || mode[i] >= tree_missing;
    }
    return any;
  }

  /// Of each branch the number of the first leaf on its way of yes and on that of no: {} where a node has
  /// several branches that lead to it. Leaves are numbered as the walk meets them, so that those of a branch
  /// are a span.
  std::vector<std::int64_t> spans() const {
    std::vector<std::int64_t> leading(yes.size(), 0), leftmost(yes.size()), out;
    for (std::size_t i = 0; i < yes.size(); ++i)
      if (!is_leaf(i))
        for (const std::int64_t child : {yes[i], no[i]})
          if (++leading[static_cast<std::size_t>(child)] > 1 || child < static_cast<std::int64_t>(i))
            return {};
    for (const std::int64_t root : roots)
      if (++leading[static_cast<std::size_t>(root)] > 1) return {};
    std::int64_t leaf = static_cast<std::int64_t>(first.size()) - 1;
    for (std::size_t i = yes.size(); i-- > 0;)
      leftmost[i] = is_leaf(i) ? --leaf : leftmost[static_cast<std::size_t>(yes[i])];
    for (std::size_t i = 0; i < yes.size(); ++i)
      if (!is_leaf(i)) {
        out.push_back(leftmost[i]);
        out.push_back(leftmost[static_cast<std::size_t>(no[i])]);
      }
    return out;
  }
  /// Of each tree, and behind the last one, how many branches and how many leaves are before it.
  std::vector<std::int64_t> begins() const {
    std::vector<std::int64_t> out;
    std::int64_t branches = 0, leaves = 0;
    std::size_t at = 0;
    const auto until = [&](std::size_t end) {
      for (; at < end; ++at) ++(is_leaf(at) ? leaves : branches);
      out.push_back(branches);
      out.push_back(leaves);
    };
    for (const std::int64_t root : roots) until(static_cast<std::size_t>(root));
    until(yes.size());
    return out;
  }

  bool is_leaf(std::size_t at) const { return yes[at] == static_cast<std::int64_t>(at); }

  /// Where each node is once the leaves are behind all others.
  std::vector<std::size_t> leaves_last() const {
    std::vector<std::size_t> place(yes.size());
    std::size_t next = 0;
    for (const bool leaf : {false, true})
      for (std::size_t i = 0; i < yes.size(); ++i)
        if (is_leaf(i) == leaf) place[i] = next++;
    return place;
  }
};

/// Error: a branch that leads to itself. Branches that none leads to are taken away until none is left.
void require_acyclic(const Forest& f, const ForestReader& reader) {
  std::vector<std::int64_t> leading(f.branches.size(), 0), next;
  const auto children = [&](const Branch& b) {
    return b.mode == TreeMode::leaf ? std::vector<std::int64_t>() : std::vector<std::int64_t>{b.yes, b.no};
  };
  for (const Branch& b : f.branches)
    for (const std::int64_t child : children(b)) ++leading[static_cast<std::size_t>(child)];
  for (std::size_t i = 0; i < leading.size(); ++i)
    if (leading[i] == 0) next.push_back(static_cast<std::int64_t>(i));
  std::size_t taken = 0;
  for (; !next.empty(); ++taken) {
    const Branch& b = f.branches[static_cast<std::size_t>(next.back())];
    next.pop_back();
    for (const std::int64_t child : children(b))
      if (--leading[static_cast<std::size_t>(child)] == 0) next.push_back(child);
  }
  if (taken < f.branches.size()) reader.fail("expected trees, got a node that leads to itself");
}

/// Several branches may lead to one, as those that LightGBM's categories become: it is in the tables once.
/// A leaf is there once for each branch that leads to it.
Tables tables_of(const Forest& f, const ForestReader& reader) {
  require_acyclic(f, reader);
  Tables t;
  struct Visit {
    std::int64_t branch;
    std::vector<std::int64_t> from;  ///< nodes whose way of yes, or of no, leads here
    bool yes;
  };
  std::vector<std::int64_t> placed(f.branches.size(), -1);
  for (const std::int64_t root : f.roots) {
    std::vector<Visit> left = {{root, {}, false}};
    std::int64_t first = -1;  // where the root is
    while (!left.empty()) {
      const Visit v = std::move(left.back());
      left.pop_back();
      const Branch& b = f.branches[static_cast<std::size_t>(v.branch)];
      const bool member = b.mode == TreeMode::member, leaf = b.mode == TreeMode::leaf;
      std::int64_t& place = placed[static_cast<std::size_t>(v.branch)];
      const bool known = place >= 0 && !leaf;
      if (!known)
        place =
            t.add(b, member ? TreeMode::eq : b.mode, member && !b.members.empty() ? b.members[0] : b.value);
      if (first < 0) first = place;
      for (const std::int64_t from : v.from) (v.yes ? t.yes : t.no)[static_cast<std::size_t>(from)] = place;
      if (leaf || known) continue;
      if (member && b.members.empty())
        reader.fail("attribute 'membership_values': expected members for each node");
      // A set is compared with member by member.
      std::int64_t at = place;
      std::vector<std::int64_t> chain = {at};
      for (std::size_t k = 1; k < b.members.size(); ++k) {
        const std::int64_t next = t.add(b, TreeMode::eq, b.members[k]);
        t.no[static_cast<std::size_t>(at)] = next;
        chain.push_back(at = next);
      }
      left.push_back({b.no, {at}, false});
      left.push_back({b.yes, chain, true});
    }
    t.roots.push_back(first);
  }
  for (std::size_t i = 0; i < f.branches.size(); ++i)
    if (f.branches[i].mode != TreeMode::leaf && placed[i] < 0)
      reader.fail("expected trees, got a node that no root leads to");
  t.first.push_back(static_cast<std::int64_t>(t.target.size()));
  return t;
}

void prepare(std::vector<Node>& nodes, int depth) {
  for (Node& n : nodes) {
    if (n.domain == "ai.onnx.ml") {
      if (n.op.starts_with("TreeEnsemble")) pack_trees(n);
      for (Attribute& a : n.attributes) {
        if (const auto* v = std::get_if<std::vector<double>>(&a.content); v && v->size() > most_in_list) {
          Value tensor = floats(*v);
          a.content = std::move(tensor);
        } else if (const auto* w = std::get_if<std::vector<std::int64_t>>(&a.content);
                   w && w->size() > most_in_list) {
          Value tensor = integers(*w, Element::int64);
          a.content = std::move(tensor);
        }
      }
    }
    if (depth == deepest_graph) continue;
    for (Attribute& a : n.attributes) {
      const auto one = [&](GraphPointer& g) {
        Graph copy = *g;
        prepare(copy.nodes, depth + 1);
        g = std::make_shared<const Graph>(std::move(copy));
      };
      if (auto* g = std::get_if<GraphPointer>(&a.content)) one(*g);
      if (auto* many = std::get_if<std::vector<GraphPointer>>(&a.content))
        for (GraphPointer& g : *many) one(g);
    }
  }
}

bool any_of_domain(const std::vector<Node>& nodes, int depth) {
  return std::ranges::any_of(nodes, [&](const Node& n) {
    return n.domain == "ai.onnx.ml" ||
           (depth < deepest_graph && std::ranges::any_of(n.attributes, [&](const Attribute& a) {
              const auto* g = std::get_if<GraphPointer>(&a.content);
              return g && any_of_domain((*g)->nodes, depth + 1);
            }));
  });
}

}  // namespace

void pack_trees(Node& node) {
  const ForestReader reader{node};
  const Forest f = node.op == "TreeEnsemble"             ? reader.by_places()
                   : node.op == "TreeEnsembleClassifier" ? reader.by_numbers("class")
                                                         : reader.by_numbers("target");
  const Tables t = tables_of(f, reader);
  std::erase_if(node.attributes, [](const Attribute& a) {
    return a.name.starts_with("nodes_") || a.name.starts_with("leaf_") || a.name.starts_with("trees_") ||
           a.name == "class_treeids" || a.name == "class_nodeids" || a.name == "class_ids" ||
           a.name.starts_with("class_weights") || a.name == "target_treeids" || a.name == "target_nodeids" ||
           a.name == "target_ids" || a.name.starts_with("target_weights") || a.name == "membership_values" ||
           a.name == "tree_roots";
  });
  const auto add = [&](const char* name, Value v) { node.attributes.push_back({name, std::move(v)}); };
  const std::vector<std::size_t> place = t.leaves_last();
  const auto moved = [&](std::int64_t at) {
    return static_cast<std::int64_t>(place[static_cast<std::size_t>(at)]);
  };
  const bool paired = t.paired();
  Value nodes(Element::int32, {static_cast<std::int64_t>(place.size()), 4});
  std::vector<double> values(place.size());
  for (std::size_t i = 0; i < place.size(); ++i) {
    const std::int64_t feature =
        paired ? 2 * t.feature[i] + (t.mode[i] >= tree_missing ? 1 : 0) : t.feature[i];
    const std::int64_t fields[] = {feature, moved(t.yes[i]), moved(t.no[i]), t.mode[i]};
    for (std::size_t k = 0; k < 4; ++k)
      nodes.mutable_elements<std::int32_t>()[4 * place[i] + k] = static_cast<std::int32_t>(fields[k]);
    values[place[i]] = t.value[i];
  }
  std::vector<std::int64_t> roots;
  for (const std::int64_t root : t.roots) roots.push_back(moved(root));
  add("trees_roots", integers(roots, Element::int64));
  add("trees_nodes", std::move(nodes));
  if (paired) node.attributes.push_back({"trees_paired", std::int64_t{1}});
  constexpr std::size_t exact = std::size_t{1} << 24U;  // numbers of leaves that a float holds
  if (const std::vector<std::int64_t> spans = t.spans(); !spans.empty() && t.first.size() < exact) {
    const std::vector<std::int64_t> begins = t.begins();
    add("trees_spans", floats({spans.begin(), spans.end()}, f.element)
                           .reshaped({static_cast<std::int64_t>(spans.size() / 2), 2}));
    add("trees_begins",
        integers(begins, Element::int32).reshaped({static_cast<std::int64_t>(begins.size() / 2), 2}));
  }
  add("trees_value", floats(values, f.element));
  add("trees_first", integers(t.first, Element::int32));
  add("trees_target", integers(t.target, Element::int32));
  add("trees_weight", floats(t.weight, f.element));
}

void prepare(Model& model) {
  const auto with_place = [&](std::vector<Node>& nodes) {
    if (!any_of_domain(nodes, 0)) return;
    try {
      prepare(nodes, 0);
    } catch (const Error& e) {
      throw Error((model.file.empty() ? "model" : model.file) + ": " + e.what());
    }
  };
  with_place(model.graph.nodes);
  for (Function& f : model.functions) with_place(f.nodes);
}

}  // namespace lantern::onnx
