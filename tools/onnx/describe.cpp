// A model in words: what goes in and comes out, its weights, its nodes, and what of them nothing computes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lantern/compiler/onnx/operator.hpp"
#include "lantern/compiler/onnx/session.hpp"
#include "tool.hpp"

namespace lantern::tool {

namespace {

using onnx::Graph;
using onnx::Node;
using onnx::ValueInfo;

std::string type_text(const ValueInfo& v) {
  using Structure = ValueInfo::Structure;
  std::string text;
  if (v.structure == Structure::optional) text += "optional ";
  if (v.structure == Structure::sequence || v.holds_sequence) text += "sequence of ";
  if (v.structure == Structure::map) return text + "map";
  if (v.structure == Structure::sparse_tensor) text += "sparse ";
  if (v.structure == Structure::unknown) return "?";
  text += onnx::name(v.element);
  if (!v.shape) return text + "[...]";
  std::string sizes;
  for (const onnx::Dimension& d : *v.shape)
    sizes += (sizes.empty() ? "" : ", ") + (d.size             ? std::to_string(*d.size)
                                            : d.symbol.empty() ? "?"
                                                               : d.symbol);
  return text + "[" + sizes + "]";
}

std::string attribute_text(const onnx::Attribute& a) {
  if (!a.reference.empty()) return a.name + "=$" + a.reference;
  const auto list = [](const auto& all, auto&& spelled) {
    std::string text;
    for (std::size_t i = 0; i < all.size() && i < 8; ++i) text += (i == 0 ? "" : ", ") + spelled(all[i]);
    return "[" + text + (all.size() > 8 ? ", ..." : "") + "]";
  };
  const auto integer = [](std::int64_t v) { return std::to_string(v); };
  const auto number = [](double v) { return fmt::format("{:g}", v); };
  const auto string = [](const std::string& v) { return "'" + v + "'"; };
  struct Content {
    decltype(list) many;
    decltype(integer) i;
    decltype(number) f;
    decltype(string) s;
    std::string operator()(double v) const { return f(v); }
    std::string operator()(std::int64_t v) const { return i(v); }
    std::string operator()(const std::string& v) const { return s(v); }
    std::string operator()(const onnx::Value& v) const { return v.describe(); }
    std::string operator()(const onnx::GraphPointer& g) const {
      return fmt::format("a graph of {} nodes", g->nodes.size());
    }
    std::string operator()(const std::vector<double>& v) const { return many(v, f); }
    std::string operator()(const std::vector<std::int64_t>& v) const { return many(v, i); }
    std::string operator()(const std::vector<std::string>& v) const { return many(v, s); }
    std::string operator()(const std::vector<onnx::Value>& v) const {
      return fmt::format("{} tensors", v.size());
    }
    std::string operator()(const std::vector<onnx::GraphPointer>& v) const {
      return fmt::format("{} graphs", v.size());
    }
  };
  return a.name + "=" + std::visit(Content{list, integer, number, string}, a.content);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& n : names) text += (text.empty() ? "" : ", ") + (n.empty() ? "-" : n);
  return text;
}

using Shapes = std::map<std::string, std::string>;

void add_nodes(const std::vector<Node>& nodes, const Shapes& shapes, const std::string& indent,
               std::string& text);
void add_graph(const Graph& g, const std::string& indent, std::string& text) {
  Shapes shapes;
  for (const ValueInfo& v : g.values) shapes[v.name] = type_text(v);
  for (const ValueInfo& v : g.outputs) shapes[v.name] = type_text(v);
  add_nodes(g.nodes, shapes, indent, text);
}
void add_nodes(const std::vector<Node>& nodes, const Shapes& shapes, const std::string& indent,
               std::string& text) {
  for (const Node& n : nodes) {
    std::string attributes;
    for (const onnx::Attribute& a : n.attributes)
      attributes += (attributes.empty() ? "" : ", ") + attribute_text(a);
    text += fmt::format("{}{} = {}({}){}", indent, joined(n.outputs),
                        (n.domain.empty() ? "" : n.domain + ".") + n.op, joined(n.inputs),
                        attributes.empty() ? "" : " {" + attributes + "}");
    if (!n.outputs.empty())
      if (const auto at = shapes.find(n.outputs[0]); at != shapes.end()) text += " : " + at->second;
    text += "\n";
    for (const onnx::Attribute& a : n.attributes)
      if (const auto* g = std::get_if<onnx::GraphPointer>(&a.content); g && *g) {
        text += indent + "  " + a.name + ":\n";
        add_graph(**g, indent + "    ", text);
      }
  }
}

/// Nodes of which nothing is known, by why that is.
void find_unsupported(const onnx::Model& m, const std::vector<Node>& nodes,
                      const std::map<std::string, std::int64_t>& opsets,
                      std::map<std::string, std::vector<std::string>>& missing) {
  for (const Node& n : nodes) {
    const bool function = m.function(n) != nullptr;
    const auto version = opsets.find(n.domain);
    std::string why;
    if (!function &&
        onnx::find_operator(n.domain, n.op, version == opsets.end() ? 1 : version->second, why) == nullptr)
      missing[why.empty() ? "nothing computes " + n.op : why].push_back(n.label());
    for (const onnx::Attribute& a : n.attributes)
      if (const auto* g = std::get_if<onnx::GraphPointer>(&a.content); g && *g)
        find_unsupported(m, (*g)->nodes, opsets, missing);
  }
}

std::string bytes_text(double bytes) {
  if (bytes < 10'000) return fmt::format("{:.0f} bytes", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} kB", bytes / 1000);
  return fmt::format("{:.1f} MB", bytes / 1e6);
}

}  // namespace

std::string described(const onnx::Model& m, bool& supported) {
  std::string text = fmt::format("{}: ", m.file);
  text += m.graph.name.empty() ? "a graph" : "graph '" + m.graph.name + "'";
  if (!m.producer.empty())
    text += " by " + m.producer + (m.producer_version.empty() ? "" : " " + m.producer_version);
  text += fmt::format("; format version {}, operators of", m.ir_version);
  for (const auto& [domain, version] : m.opsets)
    text += fmt::format(" {} {}", domain.empty() ? "ai.onnx" : domain, version);
  text += "\n\narguments\n";
  for (const ValueInfo& v : m.graph.arguments()) text += fmt::format("  {} : {}\n", v.name, type_text(v));
  text += "results\n";
  for (const ValueInfo& v : m.graph.outputs) text += fmt::format("  {} : {}\n", v.name, type_text(v));

  std::int64_t numbers = 0;
  double bytes = 0;
  text += "weights and constants\n";
  for (const onnx::Initialiser& i : m.graph.initialisers) {
    const auto own =
        static_cast<double>(onnx::bytes_in_file(i.value.element(), static_cast<std::size_t>(i.value.size())));
    numbers += i.value.size();
    bytes += own;
    text += fmt::format("  {} : {}, {}\n", i.name, i.value.describe(), bytes_text(own));
  }
  text += fmt::format("  together {} tensors of {} numbers, {}\n", m.graph.initialisers.size(), numbers,
                      bytes_text(bytes));

  std::map<std::string, int> operators;
  for (const Node& n : m.graph.nodes) ++operators[n.op];
  text += fmt::format("nodes ({})\n", m.graph.nodes.size());
  add_graph(m.graph, "  ", text);
  for (const onnx::Function& f : m.functions) {
    text += fmt::format("function {}.{}({})\n", f.domain, f.name, joined(f.inputs));
    add_nodes(f.nodes, {}, "  ", text);
  }
  text += "operators\n ";
  for (const auto& [op, count] : operators) text += fmt::format(" {} {}", count, op);
  text += "\n";

  std::map<std::string, std::vector<std::string>> missing;
  find_unsupported(m, m.graph.nodes, m.opsets, missing);
  for (const onnx::Function& f : m.functions) find_unsupported(m, f.nodes, f.opsets, missing);
  supported = missing.empty();
  if (supported) {
    const std::optional<std::string> obstacle = onnx::obstacle(m);
    supported = !obstacle;
    return text + (obstacle ? "not supported\n  " + *obstacle + "\n" : "all operators are supported\n");
  }
  text += "not supported\n";
  for (const auto& [why, nodes] : missing) text += fmt::format("  {}: {}\n", why, joined(nodes));
  return text;
}

}  // namespace lantern::tool
