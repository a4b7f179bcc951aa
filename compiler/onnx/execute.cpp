// Running a graph, node by node: which operator a node is, what is computed at once, and what is said of an
// error.
#include <algorithm>

#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::onnx {

namespace {

/// How deep functions of a model may call each other, and how many nodes may run in all: what calls itself,
/// or doubles at each level, ends with an error.
constexpr int deepest_call = 64;
constexpr std::size_t most_nodes = 1'000'000;
/// Constants of up to so many elements stand in the code.
constexpr std::int64_t most_literals = 262144;

std::string model_name(const Model& m) { return m.file.empty() ? "model" : m.file; }

/// The node with the values of the attributes that it takes from the call of its function, or from the
/// function's defaults.
Node resolved(const Node& node, const Frame& frame) {
  Node out = node;
  std::erase_if(out.attributes, [&](Attribute& a) {
    if (a.reference.empty()) return false;
    const Attribute* given = frame.caller ? frame.caller->find(a.reference) : nullptr;
    if (!given && frame.function) {
      const auto& defaults = frame.function->defaults;
      const auto at = std::ranges::find(defaults, a.reference, &Attribute::name);
      if (at != defaults.end()) given = &*at;
    }
    if (!given) return true;  // left out: the operator's default holds
    a.content = given->content;
    a.reference.clear();
    return false;
  });
  return out;
}

bool has_references(const Node& n) {
  return std::ranges::any_of(n.attributes, [](const Attribute& a) { return !a.reference.empty(); });
}

bool starts_with(const std::string& text, const std::string& with) {
  return text.compare(0, with.size(), with) == 0;
}

}  // namespace

bool is_unsupported(const Error& e) { return dynamic_cast<const Unsupported*>(&e) != nullptr; }

const Term* Frame::find(const std::string& name) const {
  for (const Frame* f = this; f; f = f->outer)
    if (const auto at = f->values.find(name); at != f->values.end()) return &at->second;
  return nullptr;
}

Execution::Execution(const Model& m) : model(m), place(model_name(m)) {
  for (char& c : place)
    if (static_cast<unsigned char>(c) < 32 || c == '"' || c == '\\' || c == '*') c = '_';
}

Term Execution::weight(const Value& v, bool may_be_literal) {
  if (const auto leaf = leaves.find(&v); leaf != leaves.end()) {
    Term t = Term::tensor(leaf->second, v.element());
    t.given = std::shared_ptr<const Value>(std::shared_ptr<void>(), &v);
    return t;
  }
  if (v.size() <= most_elements && may_be_literal) return constant(v);
  if (!core::context().staging) return Term::tensor(boxed(v), v.element());
  if (v.size() > most_literals)
    throw Error("expected constants of at most " + std::to_string(most_literals) + " elements in code, got " +
                v.describe() + ": make it a weight of floating-point numbers, or run the model in a session");
  return constant(v);
}

Terms Execution::run(const Terms& arguments) {
  Frame frame;
  frame.opsets = &model.opsets;
  std::size_t next = 0;
  for (const Initialiser& i : model.graph.initialisers) frame.values[i.name] = weight(i.value, true);
  for (const ValueInfo& v : model.graph.arguments()) frame.values[v.name] = arguments.at(next++);
  run_nodes(model.graph.nodes, frame);
  Terms out;
  for (const ValueInfo& v : model.graph.outputs) out.push_back(frame.values.at(v.name));
  return out;
}

Terms Execution::run(const Graph& g, const Terms& inputs, const Frame& around) {
  Frame frame;
  frame.outer = &around;
  frame.caller = around.caller;
  frame.function = around.function;
  frame.opsets = around.opsets;
  frame.depth = around.depth;
  for (const Initialiser& i : g.initialisers) frame.values[i.name] = weight(i.value, true);
  std::size_t next = 0;
  for (const ValueInfo& v : g.inputs) {
    if (next == inputs.size()) break;
    frame.values[v.name] = inputs[next++];
  }
  if (next < inputs.size() || (next < g.inputs.size() && !frame.values.contains(g.inputs[next].name)))
    throw Error("expected a graph of " + std::to_string(inputs.size()) + " inputs, got one of " +
                std::to_string(g.inputs.size()));
  run_nodes(g.nodes, frame);
  Terms out;
  for (const ValueInfo& v : g.outputs) out.push_back(*frame.find(v.name));
  return out;
}

void Execution::run_nodes(const std::vector<Node>& all, Frame& frame) {
  // A value is let go once nothing reads it any more, so that eager runs hold no more than they need.
  std::unordered_map<std::string, std::size_t> last;
  if (!core::context().staging && frame.outer == nullptr)
    for (std::size_t i = 0; i < all.size(); ++i)
      for (const std::string& o : all[i].inputs) last[o] = i;
  const auto kept = [&](const std::string& name) {
    return std::ranges::any_of(model.graph.outputs, [&](const ValueInfo& v) { return v.name == name; });
  };
  const bool let_go = !last.empty() && frame.caller == nullptr && &all == &model.graph.nodes &&
                      std::ranges::none_of(all, [](const Node& n) {
                        return std::ranges::any_of(n.attributes, [](const Attribute& a) {
                          return std::holds_alternative<GraphPointer>(a.content);
                        });
                      });
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Node& node = all[i];
    Terms results = run_node(node, frame);
    if (results.size() < node.outputs.size()) results.resize(node.outputs.size());
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k].empty()) continue;
      frame.values[node.outputs[k]] = std::move(results[k]);
    }
    if (!let_go) continue;
    for (const std::string& o : node.inputs)
      if (last[o] == i && !kept(o)) frame.values.erase(o);
  }
}

Terms Execution::run_node(const Node& given, Frame& frame) {
  if (++nodes > most_nodes)
    throw Error(model_name(model) + ": expected a model of at most " + std::to_string(most_nodes) +
                " nodes, functions and loops written out, got more");
  const std::string prefix = model_name(model) + ": ", label = prefix + given.label() + ": ";
  labels.resize(nodes + 1);
  labels[nodes] = given.label();
  const std::string at = place + ":" + std::to_string(nodes) + ": ";
  const auto told = [&](const std::string& message) {
    if (starts_with(message, prefix)) return message;  // of a node further in
    std::string rest = starts_with(message, at) ? message.substr(at.size()) : message;
    if (starts_with(rest, "error: ")) rest = rest.substr(7);
    return label + rest;
  };
  try {
    const Node with_values = has_references(given) ? resolved(given, frame) : Node();
    const Node& node = has_references(given) ? with_values : given;
    Terms operands;
    for (const std::string& i : node.inputs) {
      operands.emplace_back();
      if (i.empty()) continue;
      const Term* const t = frame.find(i);
      if (!t) throw Error("expected an operand that has a value, got '" + i + "', which has none");
      operands.back() = *t;
    }
    Origins from = 0;
    for (const Term& t : operands) from |= t.origins;
    Terms results;
    if (const Function* const f = model.function(node)) {
      results = run_function(*f, node, operands, frame);
    } else {
      const auto opsets = frame.opsets->find(node.domain);
      const std::int64_t version = opsets == frame.opsets->end() ? 1 : opsets->second;
      std::string why;
      const Operator* const op = find_operator(node.domain, node.op, version, why);
      if (!op) throw Unsupported(why);
      Call call(*this, frame, node, version, std::move(operands));
      results = run_operator(*op, call);
    }
    for (Term& t : results) t.origins |= from;
    return results;
  } catch (const Unknown& e) {
    throw Unknown(told(e.what()), e.origins, e.shapes);
  } catch (const Unsupported& e) {
    throw Unsupported(told(e.what()));
  } catch (const Error& e) {
    throw Error(told(e.what()));
  }
}

Terms Execution::run_operator(const Operator& op, Call& call) {
  Terms results = computed(op, call);
  if (half == Half::wide || op.texts) return results;  // what may be strings is only moved
  for (Term& t : results)
    if (t.is_tensor() && (t.element == Element::float16 || t.element == Element::bfloat16)) {
      const Origins from = t.origins;
      t = Term::tensor(rules::converted(call, call.datum(t), Element::float32, t.element), t.element);
      t.origins = from;
    }
  return results;
}

Terms Execution::computed(const Operator& op, Call& call) {
  for (const Term& t : call.in)
    if (!op.texts && t.element == Element::string) throw Unsupported("operands of type string");
  const auto small = [](const Term& t) { return !t.present() || (t.is_tensor() && t.literal()); };
  const bool staging = core::context().staging != nullptr;
  const bool any = std::ranges::any_of(call.in, &Term::present);
  if (op.foldable && staging && any && std::ranges::all_of(call.in, small)) {
    std::optional<Terms> folded;
    core::ad::run_eagerly({op.name,
                           [&](const Datums&) {
                             Call now = call;
                             for (Term& t : now.in)
                               if (t.present()) t = Term::tensor(boxed(*value_of(t)), t.element);
                             Terms results = op.rule(now);
                             for (Term& t : results) {
                               if (!t.present()) continue;
                               const auto v = t.is_tensor() ? value_of(t) : std::nullopt;
                               if (!v || v->size() > most_elements) return Datums();
                               t = constant(*v);
                             }
                             folded = std::move(results);
                             return Datums();
                           }},
                          {});
    if (folded) return *std::move(folded);
  }
  if (op.partial && staging && any &&
      std::ranges::any_of(call.in, [](const Term& t) { return t.elements.has_value(); }))
    if (auto results = op.partial(call, op.rule)) return *std::move(results);
  return op.rule(call);
}

Terms Execution::run_function(const Function& f, const Node& node, const Terms& operands,
                              const Frame& around) {
  if (around.depth + 1 > deepest_call)
    throw Error("expected functions that call each other at most " + std::to_string(deepest_call) +
                " deep, got more: does it call itself?");
  if (operands.size() > f.inputs.size())
    throw Error("expected at most " + std::to_string(f.inputs.size()) + " operands, got " +
                std::to_string(operands.size()));
  Frame frame;
  frame.caller = &node;
  frame.function = &f;
  frame.opsets = &f.opsets;
  frame.depth = around.depth + 1;
  for (std::size_t i = 0; i < f.inputs.size(); ++i)
    frame.values[f.inputs[i]] = i < operands.size() ? operands[i] : Term();
  run_nodes(f.nodes, frame);
  Terms out;
  for (const std::string& o : f.outputs) out.push_back(frame.values.at(o));
  return out;
}

namespace {

/// Constants that are in nodes, of a graph and those in it.
void add_constants(const std::vector<Node>& nodes, const std::string& prefix, std::vector<Leaf>& all,
                   int depth) {
  for (const Node& n : nodes)
    for (const Attribute& a : n.attributes) {
      if (const auto* v = std::get_if<Value>(&a.content);
          v && is_supported(v->element()) &&
          v->size() > (is_float(v->element()) || n.op != "Constant" ? 64 : most_elements))
        all.push_back(
            {prefix + (n.outputs.empty() ? n.name : n.outputs[0]) + (n.op == "Constant" ? "" : "/" + a.name),
             v, true});
      const auto graph = [&](const Graph& g) {
        for (const Initialiser& i : g.initialisers)
          if (is_supported(i.value.element()) &&
              (i.value.size() > most_elements || (is_float(i.value.element()) && !i.value.shape().empty())))
            all.push_back({prefix + n.label() + "/" + i.name, &i.value});
        if (depth < deepest_graph) add_constants(g.nodes, prefix + n.label() + "/", all, depth + 1);
      };
      if (const auto* g = std::get_if<GraphPointer>(&a.content)) graph(**g);
    }
}

}  // namespace

std::vector<Leaf> leaves_of(const Model& model) {
  std::vector<Leaf> all;
  for (const Initialiser& i : model.graph.initialisers)
    if (is_leaf(i.value)) all.push_back({i.name, &i.value});
  add_constants(model.graph.nodes, "", all, 0);
  for (const Function& f : model.functions) add_constants(f.nodes, f.name + "/", all, 0);
  return all;
}

bool is_leaf(const Value& v) {
  if (v.is_sequence() || !is_supported(v.element())) return false;
  return v.size() > most_elements || (is_float(v.element()) && !v.shape().empty());
}

}  // namespace lantern::onnx
