// Models made in tests, node by node, and running them in every way.
#pragma once

#include <cmath>
#include <initializer_list>
#include <lantern/onnx.hpp>
#include <string>
#include <utility>
#include <vector>

#include "catch2/catch.hpp"

namespace onnx_graphs {

using namespace lantern;
using onnx::Element;
using onnx::Value;
using Shape = std::vector<std::int64_t>;

inline Value floats(Shape shape, std::vector<float> v) {
  return TensorValue<float>(std::move(v), std::move(shape));
}
inline Value integers(Shape shape, std::vector<std::int64_t> v) {
  return TensorValue<std::int64_t>(std::move(v), std::move(shape));
}
inline Value bools(Shape shape, std::vector<bool> v) {
  return TensorValue<bool>(std::move(v), std::move(shape));
}
/// Numbers that are not all alike.
inline Value wave(const Shape& shape, double seed, double scale = 1.0) {
  Value v(Element::float32, shape);
  auto to = v.mutable_elements<float>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto k = static_cast<double>(i);
    to[i] = static_cast<float>(scale * (0.6 * std::sin(1.7 * k + seed) + 0.1 * std::cos(5.3 * k)));
  }
  return v;
}

inline onnx::Attribute with(const std::string& name, onnx::Attribute::Content content) {
  return {name, std::move(content)};
}
inline onnx::Attribute whole(const std::string& name, std::int64_t v) { return with(name, v); }
inline onnx::Attribute wholes(const std::string& name, Shape v) { return with(name, std::move(v)); }
inline onnx::Attribute real(const std::string& name, double v) { return with(name, v); }
inline onnx::Attribute text(const std::string& name, const std::string& v) { return with(name, v); }

inline onnx::Node node(const std::string& op, std::vector<std::string> in, std::vector<std::string> out,
                       std::vector<onnx::Attribute> attributes = {}) {
  return {"", op, "", std::move(in), std::move(out), std::move(attributes)};
}
inline onnx::ValueInfo info(const std::string& name, Element e, std::vector<onnx::Dimension> shape) {
  onnx::ValueInfo v;
  v.name = name;
  v.element = e;
  v.shape = std::move(shape);
  return v;
}
/// A result of which nothing but the name is declared.
inline onnx::ValueInfo result(const std::string& name) {
  onnx::ValueInfo v;
  v.name = name;
  return v;
}
inline onnx::ValueInfo info(const std::string& name, const Value& v) {
  std::vector<onnx::Dimension> shape(v.shape().begin(), v.shape().end());
  return info(name, v.element(), std::move(shape));
}

inline onnx::Model model(onnx::Graph graph, std::int64_t opset = 17) {
  onnx::Model m;
  m.file = "test.onnx";
  m.opsets[""] = opset;
  m.graph = std::move(graph);
  return m;
}

/// A model of one node, over arguments of these shapes; an empty name in `in` is an operand left out.
inline onnx::Model single(onnx::Node n, const std::vector<Value>& arguments, std::int64_t opset = 17) {
  onnx::Graph g;
  std::size_t next = 0;
  for (const std::string& i : n.inputs)
    if (!i.empty()) g.inputs.push_back(info(i, arguments.at(next++)));
  for (const std::string& o : n.outputs) g.outputs.push_back(result(o));
  g.nodes.push_back(std::move(n));
  return model(std::move(g), opset);
}

inline void check_near(const Value& have, const Value& want, double tolerance = 1e-5) {
  CHECK(have.describe() == want.describe());
  if (have.describe() != want.describe()) return;
  for (std::size_t i = 0; i < static_cast<std::size_t>(want.size()); ++i) {
    const double x = have.at(i), y = want.at(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    INFO("element " << i);
    CHECK(x == Approx(y).epsilon(tolerance).margin(tolerance));
  }
}

/// The results of a model, run eagerly and compiled, which must agree.
inline std::vector<Value> run(const onnx::Model& m, const std::vector<Value>& arguments) {
  const std::vector<Value> eager = onnx::eager(m).run(arguments);
  const std::vector<Value> compiled = onnx::compile(m, {.target = core::Target::c}).run(arguments);
  REQUIRE(eager.size() == compiled.size());
  for (std::size_t i = 0; i < eager.size(); ++i) check_near(compiled[i], eager[i]);
  return compiled;
}

/// One node: its results for these arguments.
inline void check_node(onnx::Node n, const std::vector<Value>& arguments, const std::vector<Value>& want,
                       std::int64_t opset = 17) {
  INFO(n.op);
  const std::vector<Value> have = run(single(std::move(n), arguments, opset), arguments);
  REQUIRE(have.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) check_near(have[i], want[i]);
}

}  // namespace onnx_graphs
