// Nodes, constants and names of the graph that is written.
#include <algorithm>
#include <functional>
#include <numeric>

#include "lantern/compiler/onnx/exporter.hpp"

namespace lantern::onnx::exporting {

namespace {

/// Text that is the same for the same attributes; empty where there is a graph among them.
std::optional<std::string> text(const std::vector<Attribute>& attributes) {
  std::string all;
  for (const Attribute& a : attributes) {
    all += "|" + a.name + "=";
    if (const auto* i = std::get_if<std::int64_t>(&a.content))
      all += std::to_string(*i);
    else if (const auto* s = std::get_if<std::string>(&a.content))
      all += *s;
    else if (const auto* many = std::get_if<Ints>(&a.content))
      for (const std::int64_t v : *many) all += std::to_string(v) + ",";
    else
      return std::nullopt;
  }
  return all;
}

std::string spelled(double v) {
  char text[32];  // NOLINT
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

std::string lower(const std::string& op) {
  std::string all;
  for (const char c : op) {
    if (c >= 'A' && c <= 'Z')
      all += static_cast<char>(c - 'A' + 'a');
    else
      all += c;
  }
  return all;
}

bool ascending(const Ints& order) {
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

}  // namespace

Element element_of(ir::Kind kind) {
  switch (kind) {
    case ir::Kind::boolean:
      return Element::boolean;
    case ir::Kind::i32:
      return Element::int32;
    case ir::Kind::i64:
      return Element::int64;
    case ir::Kind::f32:
      return Element::float32;
    case ir::Kind::f64:
      return Element::float64;
    default:
      break;
  }
  throw InternalError("an element type that is no number");
}

Attribute attribute(const std::string& name, Attribute::Content content) {
  Attribute a;
  a.name = name;
  a.content = std::move(content);
  return a;
}

std::string Writer::fresh(const std::string& hint) {
  std::string name = hint;
  for (char& c : name)
    if (c == ' ' || c == '\'' || c == '"') c = '_';
  if (!name.empty() && used_.insert(name).second) return name;
  for (int& n = copies_[name];;) {
    const std::string next = name + "_" + std::to_string(++n);
    if (used_.insert(next).second) return next;
  }
}

std::string Writer::node(const std::string& op, Names inputs, std::vector<Attribute> attributes,
                         const std::string& hint) {
  std::string key = op;
  for (const std::string& i : inputs) key += "," + i;
  const auto rest = text(attributes);
  if (rest) {
    key += *rest;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto at = scope->known.find(key); at != scope->known.end()) return at->second;
  }
  const std::string name = fresh(hint.empty() ? lower(op) : hint);
  Scope& here = scopes_.back();
  here.nodes.push_back({name, op, "", std::move(inputs), {name}, std::move(attributes)});
  here.made.insert(name);
  if (rest) here.known.emplace(std::move(key), name);
  return name;
}

Names Writer::nodes(const std::string& op, Names inputs, std::size_t results,
                    std::vector<Attribute> attributes) {
  Names names;
  Scope& here = scopes_.back();
  for (std::size_t i = 0; i < results; ++i) {
    names.push_back(fresh(lower(op)));
    here.made.insert(names.back());
  }
  const std::string label = results > 0 ? names[0] : fresh(lower(op));
  here.nodes.push_back({label, op, "", std::move(inputs), names, std::move(attributes)});
  return names;
}

void Writer::nodes_as(const std::string& op, Names inputs, const std::string& result) {
  scopes_.back().nodes.push_back({result, op, "", std::move(inputs), {result}, {}});
  scopes_.back().made.insert(result);
}

std::vector<Node> Writer::close() {
  std::vector<Node> nodes = std::move(scopes_.back().nodes);
  scopes_.pop_back();
  return nodes;
}

void Writer::forget_since(const Mark& mark) {
  scopes_.resize(mark.depth);
  Scope& here = scopes_.back();
  std::unordered_set<std::string> gone;
  for (std::size_t i = mark.nodes; i < here.nodes.size(); ++i)
    gone.insert(here.nodes[i].outputs.begin(), here.nodes[i].outputs.end());
  here.nodes.resize(mark.nodes);
  std::erase_if(here.known, [&](const auto& entry) { return gone.contains(entry.second); });
  for (const std::string& name : gone) here.made.erase(name);
}

std::string Writer::constant(const Value& value, const std::string& hint) {
  std::string key = value.describe() + ":";
  key.append(reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size());
  auto& name = constants_[key];
  if (name.empty()) {
    name = fresh(hint);
    initialisers_.push_back({name, value});
  }
  return name;
}

std::string Writer::ints(const Ints& values) {
  Value v(Element::int64, {static_cast<std::int64_t>(values.size())});
  std::ranges::copy(values, v.mutable_elements<std::int64_t>().begin());
  std::string hint = "ints";
  for (std::size_t i = 0; i < std::min<std::size_t>(values.size(), 8); ++i)
    hint += "_" + std::to_string(values[i]);
  const std::string name = constant(v, hint);
  ints_[name] = values;
  return name;
}

std::string Writer::number(double v, ir::Kind kind) {
  const std::string suffix = kind == ir::Kind::f64 ? "_f64" : kind == ir::Kind::i32 ? "_i32" : "";
  switch (kind) {
    case ir::Kind::boolean:
      return constant(Value(v != 0), v != 0 ? "true" : "false");
    case ir::Kind::i32:
      return constant(Value(static_cast<std::int32_t>(v)), spelled(v) + suffix);
    case ir::Kind::i64:
      return integer(static_cast<std::int64_t>(v));
    case ir::Kind::f32:
      return constant(Value(static_cast<float>(v)), "number_" + spelled(v));
    default:
      return constant(Value(v), "number_" + spelled(v) + suffix);
  }
}

std::string Writer::integer(std::int64_t v, ir::Kind kind) {
  if (kind != ir::Kind::i64) return number(static_cast<double>(v), kind);
  const std::string name = constant(Value(v), "integer_" + std::to_string(v));
  ints_[name] = {v};
  return name;
}

std::optional<Ints> Writer::known_ints(const std::string& name) const {
  const auto at = ints_.find(name);
  if (at == ints_.end()) return std::nullopt;
  return at->second;
}

namespace {

/// Dimensions of x that lie at `axes` once those at `gone` have been taken out of it.
Ints before_removal(const Ints& axes, const Ints& gone) {
  Ints all;
  for (std::int64_t a : axes) {
    for (const std::int64_t g : gone) a += g <= a ? 1 : 0;
    all.push_back(a);
  }
  return all;
}
/// The same of `gone` put in: those of x at `axes` that are not among them; nothing where one of `axes` is.
Ints after_removal(const Ints& axes, const Ints& gone) {
  Ints all;
  for (const std::int64_t a : axes)
    all.push_back(a - std::ranges::count_if(gone, [&](std::int64_t g) { return g < a; }));
  return all;
}

}  // namespace

std::string Writer::unsqueeze(const std::string& x, const Ints& axes) {
  if (axes.empty()) return x;
  if (const auto at = squeezed_.find(x); at != squeezed_.end() && at->second.axes == axes)
    return at->second.from;
  if (const auto at = unsqueezed_.find(x); at != unsqueezed_.end()) {  // one for both
    Ints all = axes;
    std::size_t old = 0, next = 0;
    for (std::int64_t d = 0; old < at->second.axes.size(); ++d) {  // d: a dimension of the result
      if (next < axes.size() && axes[next] == d) {
        ++next;
        continue;
      }
      if (at->second.axes[old] == d - static_cast<std::int64_t>(next)) {
        all.push_back(d);
        ++old;
      }
    }
    std::ranges::sort(all);
    return unsqueeze(std::string(at->second.from), all);
  }
  const std::string name = node("Unsqueeze", {x, ints(axes)});
  unsqueezed_[name] = {x, axes};
  return name;
}

std::string Writer::squeeze(const std::string& x, const Ints& axes) {
  if (axes.empty()) return x;
  if (const auto at = unsqueezed_.find(x); at != unsqueezed_.end()) {
    Ints kept, rest;
    for (const std::int64_t a : at->second.axes)
      if (std::ranges::find(axes, a) == axes.end()) kept.push_back(a);
    for (const std::int64_t a : axes)
      if (std::ranges::find(at->second.axes, a) == at->second.axes.end()) rest.push_back(a);
    if (rest.empty()) return unsqueeze(std::string(at->second.from), after_removal(kept, axes));
  }
  if (const auto at = squeezed_.find(x); at != squeezed_.end()) {
    Ints all = before_removal(axes, at->second.axes);
    all.insert(all.end(), at->second.axes.begin(), at->second.axes.end());
    std::ranges::sort(all);
    return squeeze(std::string(at->second.from), all);
  }
  const std::string name = node("Squeeze", {x, ints(axes)});
  squeezed_[name] = {x, axes};
  return name;
}

std::string Writer::transpose(const std::string& x, const Ints& order) {
  if (ascending(order)) return x;
  if (const auto at = transposed_.find(x); at != transposed_.end()) {
    Ints both;
    for (const std::int64_t d : order) both.push_back(at->second.axes[static_cast<std::size_t>(d)]);
    return transpose(std::string(at->second.from), both);
  }
  const std::string name = node("Transpose", {x}, {attribute("perm", order)});
  transposed_[name] = {x, order};
  return name;
}

std::string Writer::reduce(const std::string& op, const std::string& x, const Ints& axes, bool keep) {
  if (axes.empty()) return x;
  if (const auto at = transposed_.find(x);
      at != transposed_.end() && !keep) {  // of what is reduced the order does not count
    Ints mapped, rest = at->second.axes;
    for (const std::int64_t a : axes) mapped.push_back(at->second.axes[static_cast<std::size_t>(a)]);
    std::erase_if(rest, [&](std::int64_t d) { return std::ranges::find(mapped, d) != mapped.end(); });
    if (std::ranges::is_sorted(rest)) {
      std::ranges::sort(mapped);
      return reduce(op, std::string(at->second.from), mapped);
    }
  }
  const Attribute keepdims = attribute("keepdims", std::int64_t{keep});
  if (op == "ReduceSum" || opset_ >= 18) return node(op, {x, ints(axes)}, {keepdims});
  return node(op, {x}, {attribute("axes", axes), keepdims});
}

std::string Writer::gather(const std::string& x, const std::string& at, std::int64_t axis) {
  return node("Gather", {x, at}, {attribute("axis", axis)});
}

std::string Writer::slice(const std::string& x, const Ints& from, const Ints& to, const Ints& axes,
                          const Ints& steps) {
  if (axes.empty()) return x;
  return node("Slice", {x, ints(from), ints(to), ints(axes), ints(steps)});
}

std::string Writer::pad(const std::string& x, const Ints& before_and_after, ir::Kind kind) {
  if (std::ranges::all_of(before_and_after, [](std::int64_t n) { return n == 0; })) return x;
  return node("Pad", {x, ints(before_and_after), number(0, kind)});
}

std::string Writer::cast(const std::string& x, ir::Kind to) {
  return node("Cast", {x}, {attribute("to", static_cast<std::int64_t>(element_of(to)))});
}

std::string Writer::range(const std::string& count) {
  if (const auto n = known_ints(count); n && n->size() == 1 && (*n)[0] >= 0 && (*n)[0] <= 4096) {
    Ints all(static_cast<std::size_t>((*n)[0]));
    std::iota(all.begin(), all.end(), 0);
    return ints(all);
  }
  return node("Range", {integer(0), count, integer(1)});
}

namespace {

/// Sums of a convolution and a number for each channel as one node.
void join_biases(Graph& graph, std::unordered_map<std::string, int>& reads) {
  std::unordered_map<std::string, Node*> makers;
  std::unordered_map<std::string, std::string> renamed;
  for (Node& n : graph.nodes) makers[n.outputs.empty() ? n.name : n.outputs[0]] = &n;
  const auto maker = [&](const std::string& name) -> Node* {
    const auto at = makers.find(name);
    return at == makers.end() ? nullptr : at->second;
  };
  for (Node& sum : graph.nodes) {
    if (sum.op != "Add") continue;
    Node* conv = maker(sum.inputs[0]);
    Node* bias = maker(sum.inputs[1]);
    if (conv == nullptr || bias == nullptr || conv->op != "Conv" || conv->inputs.size() != 2 ||
        bias->op != "Unsqueeze" || reads[sum.inputs[0]] != 1)
      continue;
    const Initialiser* axes = graph.initialiser(bias->inputs[1]);
    const Initialiser* vector = graph.initialiser(bias->inputs[0]);
    // [channels, 1, ...]: of a vector, with a dimension for each that the window moves along.
    const Attribute* strides = conv->find("strides");
    if (axes == nullptr || vector == nullptr || vector->value.shape().size() != 1 || strides == nullptr)
      continue;
    const Initialiser* kernel = graph.initialiser(conv->inputs[1]);
    if (kernel == nullptr || kernel->value.shape()[0] != vector->value.size()) continue;
    Ints expected(std::get<Ints>(strides->content).size());
    std::iota(expected.begin(), expected.end(), 1);
    if (!std::ranges::equal(axes->value.elements<std::int64_t>(), expected)) continue;
    if (--reads[bias->outputs[0]] == 0) bias->op.clear();
    sum.op = "Conv";
    sum.inputs = {conv->inputs[0], conv->inputs[1], bias->inputs[0]};
    sum.attributes = conv->attributes;
    conv->op.clear();
    renamed[sum.outputs[0]] = conv->outputs[0];
  }
  // The results are called what those of the convolutions were.
  const std::function<void(std::vector<Node>&)> rename = [&](std::vector<Node>& nodes) {
    for (Node& n : nodes) {
      for (std::string& i : n.inputs)
        if (const auto at = renamed.find(i); at != renamed.end()) i = at->second;
      for (Attribute& a : n.attributes)
        if (auto* inner = std::get_if<GraphPointer>(&a.content)) {
          Graph copy = **inner;
          rename(copy.nodes);
          for (ValueInfo& v : copy.outputs)
            if (const auto at = renamed.find(v.name); at != renamed.end()) v.name = at->second;
          *inner = std::make_shared<const Graph>(std::move(copy));
        }
    }
  };
  if (!renamed.empty()) rename(graph.nodes);
  for (Node& n : graph.nodes)
    if (const auto at = n.outputs.size() == 1 ? renamed.find(n.outputs[0]) : renamed.end();
        at != renamed.end()) {
      reads[at->second] = reads[at->first];
      n.outputs[0] = n.name = at->second;
    }
  std::erase_if(graph.nodes, [](const Node& n) { return n.op.empty(); });
}

}  // namespace

void name_results(Graph& graph) {
  std::unordered_map<std::string, Node*> makers;
  std::unordered_map<std::string, int> reads;
  const std::function<void(const std::vector<Node>&)> count = [&](const std::vector<Node>& nodes) {
    for (const Node& n : nodes) {
      for (const std::string& i : n.inputs) ++reads[i];
      for (const Attribute& a : n.attributes)
        if (const auto* inner = std::get_if<GraphPointer>(&a.content)) {
          for (const ValueInfo& v : (*inner)->outputs) ++reads[v.name];
          count((*inner)->nodes);
        }
    }
  };
  count(graph.nodes);
  for (const ValueInfo& v : graph.outputs) ++reads[v.name];
  join_biases(graph, reads);
  for (Node& n : graph.nodes)
    for (const std::string& o : n.outputs) makers[o] = &n;
  for (const ValueInfo& result : graph.outputs) {
    Node* rename = makers[result.name];
    const std::string from = rename->inputs[0];
    const auto maker = makers.find(from);
    if (rename->op != "Identity" || maker == makers.end() || reads[from] != 1) continue;
    for (std::string& o : maker->second->outputs)
      if (o == from) o = result.name;
    if (maker->second->outputs.size() == 1) maker->second->name = result.name;
    rename->op.clear();
  }
  std::erase_if(graph.nodes, [](const Node& n) { return n.op.empty(); });
}

}  // namespace lantern::onnx::exporting
