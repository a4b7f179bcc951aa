// Parts of models by name, the order of nodes, and what a well-formed model is.
#include "lantern/compiler/onnx/model.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace lantern::onnx {

const Attribute* Node::find(std::string_view attribute) const {
  const auto at = std::ranges::find(attributes, attribute, &Attribute::name);
  return at == attributes.end() ? nullptr : &*at;
}

std::string Node::label() const {
  std::string called = name;
  for (const std::string& o : outputs)
    if (called.empty()) called = o;
  return "node '" + called + "' (" + (domain.empty() ? "" : domain + ".") + op + ")";
}

const Initialiser* Graph::initialiser(std::string_view wanted) const {
  const auto at = std::ranges::find(initialisers, wanted, &Initialiser::name);
  return at == initialisers.end() ? nullptr : &*at;
}

std::vector<ValueInfo> Graph::arguments() const {
  std::unordered_set<std::string_view> given;
  for (const Initialiser& i : initialisers) given.insert(i.name);
  std::vector<ValueInfo> all;
  for (const ValueInfo& v : inputs)
    if (!given.contains(v.name)) all.push_back(v);
  return all;
}

const Function* Model::function(const Node& n) const {
  const auto at = std::ranges::find_if(functions, [&](const Function& f) {
    return f.domain == n.domain && f.name == n.op && f.overload == n.overload;
  });
  return at == functions.end() ? nullptr : &*at;
}

std::int64_t Model::opset() const {
  const auto at = opsets.find("");
  return at == opsets.end() ? 1 : at->second;
}

namespace {

/// Calls f for each graph that an attribute holds.
template <class F>
void for_each_graph(const Attribute& a, F&& f) {
  if (const auto* one = std::get_if<GraphPointer>(&a.content)) f(*one);
  if (const auto* many = std::get_if<std::vector<GraphPointer>>(&a.content))
    for (const GraphPointer& g : *many) f(g);
}

using Names = std::unordered_set<std::string>;

/// The names that a node reads: its operands, and what graphs in its attributes read of their surroundings.
void add_reads(const Node& n, Names& reads, int depth);
void add_free_names(const Graph& g, Names& reads, int depth) {
  if (depth > deepest_graph) return;  // check says so
  Names inner;
  for (const Node& n : g.nodes) add_reads(n, inner, depth);
  for (const ValueInfo& v : g.outputs) inner.insert(v.name);
  for (const Node& n : g.nodes)
    for (const std::string& o : n.outputs) inner.erase(o);
  for (const ValueInfo& v : g.inputs) inner.erase(v.name);
  for (const Initialiser& i : g.initialisers) inner.erase(i.name);
  reads.merge(inner);
}
void add_reads(const Node& n, Names& reads, int depth) {
  for (const std::string& i : n.inputs)
    if (!i.empty()) reads.insert(i);
  for (const Attribute& a : n.attributes)
    for_each_graph(a, [&](const GraphPointer& g) {
      if (g) add_free_names(*g, reads, depth + 1);
    });
}

std::string quoted(const std::string& s) { return "'" + s + "'"; }

struct Arranger {
  const std::string& file;

  [[noreturn]] void fail(const std::string& what) const { throw Error(file + ": " + what); }

  void arrange(std::vector<Node>& nodes, const std::string& where, int depth) const {
    if (depth > deepest_graph) return;
    arrange_inner(nodes, depth);
    if (in_order(nodes)) return;
    std::unordered_map<std::string, std::size_t> maker;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const std::string& o : nodes[i].outputs)
        if (!o.empty()) maker.emplace(o, i);
    std::vector<std::vector<std::size_t>> users(nodes.size());
    std::vector<std::size_t> waits(nodes.size(), 0);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Names reads;
      add_reads(nodes[i], reads, depth);
      std::set<std::size_t> from;
      for (const std::string& r : reads)
        if (const auto m = maker.find(r); m != maker.end()) from.insert(m->second);
      waits[i] = from.size();
      for (const std::size_t m : from) users[m].push_back(i);
    }
    std::set<std::size_t> ready;  // the first of the file first
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (waits[i] == 0) ready.insert(i);
    std::vector<Node> ordered;
    while (!ready.empty()) {
      const std::size_t i = *ready.begin();
      ready.erase(ready.begin());
      for (const std::size_t u : users[i])
        if (--waits[u] == 0) ready.insert(u);
      ordered.push_back(std::move(nodes[i]));
    }
    if (ordered.size() != nodes.size()) {
      const auto stuck = std::ranges::find_if(waits, [](std::size_t w) { return w > 0; });
      fail(nodes[static_cast<std::size_t>(stuck - waits.begin())].label() + ": expected" + where +
           " nodes that can be computed one after the other, got a cycle through this one");
    }
    nodes = std::move(ordered);
  }

 private:
  static bool in_order(const std::vector<Node>& nodes) {
    Names later;
    for (const Node& n : nodes)
      for (const std::string& o : n.outputs) later.insert(o);
    for (const Node& n : nodes) {
      Names reads;
      add_reads(n, reads, 0);
      for (const std::string& r : reads)
        if (later.contains(r)) return false;
      for (const std::string& o : n.outputs) later.erase(o);
    }
    return true;
  }
  void arrange_inner(std::vector<Node>& nodes, int depth) const {
    for (Node& n : nodes)
      for (Attribute& a : n.attributes) {
        const auto one = [&](GraphPointer& g) {
          if (!g || depth + 1 > deepest_graph) return;
          Graph copy = *g;
          arrange(copy.nodes, " in a graph of its own", depth + 1);
          g = std::make_shared<const Graph>(std::move(copy));
        };
        if (auto* g = std::get_if<GraphPointer>(&a.content)) one(*g);
        if (auto* many = std::get_if<std::vector<GraphPointer>>(&a.content))
          for (GraphPointer& g : *many) one(g);
      }
  }
};

/// The names of a graph, and of those around it.
struct Scope {
  Names own;
  const Scope* outer = nullptr;
  bool outside(const std::string& n) const {
    for (const Scope* s = outer; s; s = s->outer)
      if (s->own.contains(n)) return true;
    return false;
  }
};

struct Checker {
  const Model& model;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error((model.file.empty() ? "model" : model.file) + ": " + what);
  }

  void graph(const Graph& g, const Scope* outer, int depth, bool in_function) const {
    if (depth > deepest_graph)
      fail("expected graphs that nest at most " + std::to_string(deepest_graph) + " deep, got more");
    Scope scope{{}, outer};
    Names& own = scope.own;
    const auto define = [&](const std::string& n, const std::string& by) {
      if (n.empty()) fail(by + ": expected a name, got an empty one");
      if (!own.insert(n).second)
        fail(by + ": expected a name that nothing else has, got " + quoted(n) + " a second time");
    };
    for (const ValueInfo& v : g.inputs) define(v.name, "input of graph " + quoted(g.name));
    Names held;
    for (const Initialiser& i : g.initialisers) {
      if (!held.insert(i.name).second || i.name.empty())
        fail("initialiser of graph " + quoted(g.name) + ": expected a name that no other has, got " +
             quoted(i.name) + " a second time");
      own.insert(i.name);
    }
    nodes(g.nodes, scope, define, depth, in_function);
    for (const ValueInfo& v : g.outputs)
      if (!own.contains(v.name) && !scope.outside(v.name))
        fail("output " + quoted(v.name) + " of graph " + quoted(g.name) +
             ": expected a value that the graph has, got none");
  }

  template <class Define>
  void nodes(const std::vector<Node>& all, const Scope& scope, const Define& define, int depth,
             bool in_function) const {
    for (const Node& n : all) {
      if (n.op.empty()) fail(n.label() + ": expected the name of an operator, got none");
      for (const std::string& i : n.inputs)
        if (!i.empty() && !scope.own.contains(i) && !scope.outside(i))
          fail(n.label() + ": expected operands that are defined before it, got " + quoted(i) +
               ", which nothing defines");
      Names seen;
      for (const Attribute& a : n.attributes) {
        if (!seen.insert(a.name).second) fail(n.label() + ": attribute " + quoted(a.name) + " occurs twice");
        if (!a.reference.empty() && !in_function)
          fail(n.label() + ": attribute " + quoted(a.name) +
               ": expected a value, got a reference to attribute " + quoted(a.reference) +
               " of a function, outside of any");
        for_each_graph(a, [&](const GraphPointer& g) {
          if (!g) fail(n.label() + ": attribute " + quoted(a.name) + ": expected a graph, got none");
          graph(*g, &scope, depth + 1, in_function);
        });
      }
      for (const std::string& o : n.outputs)
        if (!o.empty()) define(o, n.label());
    }
  }

  void function(const Function& f) const {
    Scope scope;
    Names& own = scope.own;
    const std::string label = "function " + quoted(f.name);
    const auto define = [&](const std::string& n, const std::string& by) {
      if (!own.insert(n).second)
        fail(label + ": " + by + ": expected a name that nothing else has, got " + quoted(n) +
             " a second time");
    };
    for (const std::string& i : f.inputs) define(i, label);
    for (const Attribute& a : f.defaults)
      if (!a.reference.empty())
        fail(label + ": attribute " + quoted(a.name) +
             ": expected a default value, got a reference to attribute " + quoted(a.reference));
    nodes(f.nodes, scope, define, 0, true);
    for (const std::string& o : f.outputs)
      if (!own.contains(o))
        fail(label + ": output " + quoted(o) + ": expected a value that the function has, got none");
  }
};

}  // namespace

void arrange(Model& model) {
  const Arranger a{model.file};
  a.arrange(model.graph.nodes, "", 0);
  for (Function& f : model.functions) a.arrange(f.nodes, " in function '" + f.name + "'", 0);
}

void check(const Model& model) {
  const Checker c{model};
  if (model.graph.outputs.empty()) c.fail("expected a graph with outputs, got none");
  for (const auto& [domain, version] : model.opsets)
    if (version < 1 || version > 1'000'000)
      c.fail("expected a version of the operators of " + quoted(domain.empty() ? "ai.onnx" : domain) +
             " of 1 or more, got " + std::to_string(version));
  if (model.ir_version < 1 || model.ir_version > newest_format)
    c.fail("expected a version of the file format from 1 to " + std::to_string(newest_format) + ", got " +
           std::to_string(model.ir_version) +
           (model.ir_version > newest_format ? ": export the model for an older version" : ""));
  c.graph(model.graph, nullptr, 0, false);
  for (const Function& f : model.functions) {
    Node call;
    call.domain = f.domain, call.op = f.name, call.overload = f.overload;
    if (model.function(call) != &f)
      c.fail("function " + quoted(f.name) + (f.overload.empty() ? "" : ", overload " + quoted(f.overload)) +
             ": expected one of its name in its domain, got a second; functions of one name differ in their "
             "overload");
    c.function(f);
  }
}

}  // namespace lantern::onnx
