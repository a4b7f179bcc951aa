// ONNX models as functions of programs: derivatives by the weights, batches of any size, control flow,
// arguments that must be known, functions of the model, sequences.
#include <lantern/nn.hpp>
#include <lantern/tensor.hpp>

#include "onnx_graphs.hpp"

using namespace onnx_graphs;

namespace {

/// Pictures [N, 2, 6, 6] to scores [N, 3]: convolution, batch normalisation, pooling, two products.
onnx::Model classifier() {
  onnx::Graph g;
  g.name = "classifier";
  g.inputs = {info("x", Element::float32, {onnx::Dimension("N"), 2, 6, 6})};
  g.initialisers = {{"conv.w", wave({4, 2, 3, 3}, 1, 0.5)},
                    {"conv.b", wave({4}, 2)},
                    {"bn.scale", floats({4}, {1, 1.5f, 0.7f, 1.2f})},
                    {"bn.b", wave({4}, 3)},
                    {"bn.mean", wave({4}, 4)},
                    {"bn.var", floats({4}, {0.5f, 1, 2, 1})},
                    {"fc.w", wave({3, 16}, 5, 0.5)},
                    {"fc.b", wave({3}, 6)},
                    {"shape", integers({2}, {0, -1})}};
  g.nodes = {node("Conv", {"x", "conv.w", "conv.b"}, {"c"}, {wholes("pads", {1, 1, 1, 1})}),
             node("BatchNormalization", {"c", "bn.scale", "bn.b", "bn.mean", "bn.var"}, {"n"}),
             node("Softplus", {"n"}, {"r"}),
             node("AveragePool", {"r"}, {"p"}, {wholes("kernel_shape", {3, 3}), wholes("strides", {3, 3})}),
             node("Reshape", {"p", "shape"}, {"flat"}),
             node("Gemm", {"flat", "fc.w", "fc.b"}, {"y"}, {whole("transB", 1)})};
  g.outputs = {info("y", Element::float32, {onnx::Dimension("N"), 3})};
  return model(std::move(g));
}

/// The gradient by each weight beside differences of the loss, of which a float holds about seven digits.
template <class Loss>
void check_gradient(const Loss& loss, const std::vector<float>& gradient, std::vector<float> w,
                    std::size_t step) {
  REQUIRE(gradient.size() == w.size());
  for (std::size_t i = 0; i < w.size(); i += step) {
    const float before = w[i], h = 1e-2f;
    w[i] = before + h;
    const double above = loss(w);
    w[i] = before - h;
    const double below = loss(w);
    w[i] = before;
    INFO("weight " << i);
    CHECK(gradient[i] == Approx((above - below) / (2 * h)).epsilon(2e-2).margin(2e-3));
  }
}

using Weights = Rep<Array<float>>;
using Images = Rep<Tensor<float, dyn, 2, 6, 6>>;
using Labels = Rep<Tensor<std::int64_t, dyn>>;

}  // namespace

TEST_CASE("a model is trained: derivatives by its weights are those of differences") {
  const auto net = onnx::import_onnx<Tensor<float>(Tensor<float>)>(classifier());
  const auto loss = [=](Weights w, Images x, Labels y) { return nn::cross_entropy(net(w, x), y); };
  const auto value = core::compile(loss, {.target = core::Target::c});
  const auto slope = core::compile(grad<0>(loss), {.target = core::Target::c});
  const TensorValue<float> x = wave({5, 2, 6, 6}, 7).tensor<float>();
  const TensorValue<std::int64_t> y = integers({5}, {0, 2, 1, 1, 0}).tensor<std::int64_t>();
  std::vector<float> w = net.parameters();
  REQUIRE(w.size() == 72 + 4 + 4 + 4 + 4 + 4 + 48 + 3);
  const std::vector<float> g = slope(w, x, y);
  // The statistics of batch normalisation are kept as they are.
  for (const onnx::Parameter& p : net.layout()) {
    CHECK(p.frozen == (p.name == "bn.mean" || p.name == "bn.var"));
    if (!p.frozen) continue;
    for (std::int64_t i = 0; i < p.size; ++i) CHECK(g[static_cast<std::size_t>(p.offset + i)] == 0);
  }
  const auto at = [&](std::vector<float> v) { return static_cast<double>(value(v, x, y)); };
  for (const onnx::Parameter& p : net.layout()) {
    if (p.frozen) continue;
    const auto from = static_cast<std::size_t>(p.offset);
    for (std::size_t i = from; i < from + static_cast<std::size_t>(p.size); i += 5) {
      std::vector<float> v = w;
      v[i] += 1e-2f;
      const double above = at(v);
      v[i] -= 2e-2f;
      INFO(p.name << " " << i - from);
      CHECK(g[i] == Approx((above - at(v)) / 2e-2).epsilon(2e-2).margin(1e-3));
    }
  }
  const std::vector<float> by_running = eager(grad<0>(loss))(w, x, y);
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(g[i] == Approx(by_running[i]).epsilon(1e-4).margin(1e-5));

  // Steps downhill.
  const float before = value(w, x, y);
  for (int step = 0; step < 200; ++step) {
    const std::vector<float> d = slope(w, x, y);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= 0.2f * d[i];
  }
  CHECK(value(w, x, y) < 0.5f * before);
  const auto tensors = net.tensors(w);
  CHECK(tensors.at("fc.w").shape == Shape{3, 16});
  CHECK(tensors.at("bn.var").data == std::vector<float>{0.5f, 1, 2, 1});
}

TEST_CASE("one model, batches of any size, each example by itself under vmap") {
  const auto net = onnx::import_onnx<Tensor<float>(Tensor<float>)>(classifier());
  const std::vector<float> w = net.parameters();
  const auto run = core::compile([=](Weights v, Images x) { return net(v, x); }, {.target = core::Target::c});
  const TensorValue<float> x = wave({4, 2, 6, 6}, 3).tensor<float>();
  const TensorValue<float> all = run(w, x);
  REQUIRE(all.shape == Shape{4, 3});
  const onnx::Session session = onnx::compile(classifier(), {.target = core::Target::c});
  for (std::size_t n = 0; n < 4; ++n) {
    const TensorValue<float> one({x.data.begin() + static_cast<std::ptrdiff_t>(72 * n),
                                  x.data.begin() + static_cast<std::ptrdiff_t>(72 * n + 72)},
                                 {1, 2, 6, 6});
    const TensorValue<float> y = run(w, one);
    for (std::size_t k = 0; k < 3; ++k) CHECK(y.data[k] == Approx(all.data[3 * n + k]).epsilon(1e-5));
    check_near(session.run({Value(one)})[0], Value(y));
  }
  check_near(session.run({Value(x)})[0], Value(all));
  CHECK(session.compilations() == 1);
  // The gradient of each example's own score.
  const auto score = [=](Weights v, Rep<Tensor<float, 2, 6, 6>> picture) {
    return sum(net(v, unsqueeze<0>(picture)));
  };
  const auto each = core::compile(vmap<1>(grad<0>(score)), {.target = core::Target::c});
  const auto single = core::compile(grad<0>(score), {.target = core::Target::c});
  const TensorValue<float> gradients = each(w, x);
  REQUIRE(gradients.shape == Shape{4, static_cast<std::int64_t>(w.size())});
  const std::vector<float> first =
      single(w, TensorValue<float>({x.data.begin(), x.data.begin() + 72}, {2, 6, 6}));
  for (std::size_t i = 0; i < w.size(); ++i)
    CHECK(gradients.data[i] == Approx(first[i]).epsilon(1e-4).margin(1e-5));
}

TEST_CASE("weights one by one, and frozen ones") {
  const auto net = onnx::import_onnx<Tensor<float>(Tensor<float>)>(classifier(), {.frozen = {"fc.w"}});
  const auto score = [=](Rep<Tensor<float>> bias, Weights w, Images x) {
    std::vector<Rep<Tensor<float>>> all;
    for (const onnx::Parameter& p : net.layout()) {
      if (p.name == "fc.b") {
        all.push_back(bias);
        continue;
      }
      all.push_back(Rep<Tensor<float>>(w.slice(p.offset, p.offset + p.size).datum()));
    }
    return sum(net.with(all, x));
  };
  const auto slope = eager(grad<0, 1>(score));
  const auto [by_bias, by_all] =
      slope(floats({3}, {1, 2, 3}).tensor<float>(), net.parameters(), wave({2, 2, 6, 6}, 1).tensor<float>());
  CHECK(by_bias.data == std::vector<float>{2, 2, 2});
  for (const onnx::Parameter& p : net.layout()) {
    float largest = 0;
    for (std::int64_t i = 0; i < p.size; ++i)
      largest = std::max(largest, std::abs(by_all[static_cast<std::size_t>(p.offset + i)]));
    INFO(p.name);
    CHECK((largest == 0) == (p.frozen || p.name == "fc.b"));
  }
}

TEST_CASE("loops of a graph are loops of the program, and are differentiated") {
  // y = x; three times, while the sum is below 100: y = y * w + x; the states are kept.
  onnx::Graph body;
  body.name = "body";
  body.inputs = {info("i", Element::int64, {}), info("go", Element::boolean, {}),
                 info("y", Element::float32, {2})};
  body.nodes = {node("Mul", {"y", "w"}, {"m"}), node("Add", {"m", "x"}, {"next"}),
                node("ReduceSum", {"next"}, {"s"}, {whole("keepdims", 0)}),
                node("Less", {"s", "limit"}, {"again"}), node("Identity", {"next"}, {"kept"})};
  body.outputs = {result("again"), result("next"), result("kept")};
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {2}), info("n", Element::int64, {})};
  g.initialisers = {{"w", floats({2}, {2, 3})}, {"limit", floats({}, {100})}, {"yes", bools({}, {true})}};
  g.nodes = {node("Loop", {"n", "yes", "x"}, {"y", "all"},
                  {onnx_graphs::with("body", std::make_shared<const onnx::Graph>(body))})};
  g.outputs = {result("y"), result("all")};
  const onnx::Model m = model(g);
  std::vector<Value> out = run(m, {floats({2}, {1, 1}), Value(std::int64_t{3})});
  check_near(out[0], floats({2}, {15, 40}));
  check_near(out[1], floats({3, 2}, {3, 4, 7, 13, 15, 40}));
  out = run(m, {floats({2}, {1, 1}), Value(std::int64_t{10})});
  check_near(out[0], floats({2}, {31, 121}));  // the fourth reaches the limit
  CHECK(out[1].shape() == Shape{4, 2});
  const onnx::Session session = onnx::compile(m, {.target = core::Target::c});
  for (const std::int64_t n : {0, 1, 3}) session.run({floats({2}, {1, 1}), Value(n)});
  CHECK(session.compilations() == 1);

  const auto net =
      onnx::import_onnx<std::tuple<Tensor<float>, Tensor<float>>(Tensor<float>, std::int64_t)>(m);
  const auto loss = [=](Weights w, Rep<Tensor<float, dyn>> x, Rep<std::int64_t> n) {
    return sum(std::get<0>(net(w, x, n)));
  };
  const TensorValue<float> x = floats({2}, {1, 1}).tensor<float>();
  const auto value = core::compile(loss, {.target = core::Target::c});
  const std::vector<float> w = net.parameters(),
                           slope = core::compile(grad<0>(loss), {.target = core::Target::c})(w, x, 3);
  // y = w^3 + w^2 + w + 1
  REQUIRE(slope.size() == 2);
  CHECK(slope[0] == Approx(3 * 4 + 2 * 2 + 1));
  CHECK(slope[1] == Approx(3 * 9 + 2 * 3 + 1));
  check_gradient([&](const std::vector<float>& v) { return value(v, x, 3); }, slope, w, 1);
}

TEST_CASE("branches of a graph are branches of the program") {
  const auto branch = [](const std::string& op) {
    onnx::Graph side;
    side.name = op;
    side.nodes = {node(op, {"x", "w"}, {"out_" + op})};
    side.outputs = {result("out_" + op)};
    return std::make_shared<const onnx::Graph>(side);
  };
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {2}), info("c", Element::boolean, {})};
  g.initialisers = {{"w", floats({2}, {2, 3})}};
  g.nodes = {node(
      "If", {"c"}, {"y"},
      {onnx_graphs::with("then_branch", branch("Mul")), onnx_graphs::with("else_branch", branch("Add"))})};
  g.outputs = {result("y")};
  const onnx::Model m = model(g);
  const Value x = floats({2}, {5, 7});
  check_near(run(m, {x, Value(true)})[0], floats({2}, {10, 21}));
  check_near(run(m, {x, Value(false)})[0], floats({2}, {7, 10}));
  const auto net = onnx::import_onnx<Tensor<float>(Tensor<float>, bool)>(m);
  const auto loss = [=](Weights w, Rep<Tensor<float, dyn>> v, Rep<bool> c) { return sum(net(w, v, c)); };
  const auto slope = core::compile(grad<0>(loss), {.target = core::Target::c});
  CHECK(slope(net.parameters(), x.tensor<float>(), true) == std::vector<float>{5, 7});
  CHECK(slope(net.parameters(), x.tensor<float>(), false) == std::vector<float>{1, 1});
}

TEST_CASE("scans, forwards and backwards") {
  onnx::Graph body;
  body.name = "body";
  body.inputs = {info("s", Element::float32, {2}), info("row", Element::float32, {2})};
  body.nodes = {node("Add", {"s", "row"}, {"next"}), node("Mul", {"next", "row"}, {"out"})};
  body.outputs = {result("next"), result("out")};
  onnx::Graph g;
  g.inputs = {info("s0", Element::float32, {2}), info("x", Element::float32, {onnx::Dimension("T"), 2})};
  g.nodes = {
      node("Scan", {"s0", "x"}, {"s", "y"},
           {whole("num_scan_inputs", 1), onnx_graphs::with("body", std::make_shared<const onnx::Graph>(body)),
            wholes("scan_input_directions", {1})})};
  g.outputs = {result("s"), result("y")};
  const std::vector<Value> out = run(model(g), {floats({2}, {0, 0}), floats({3, 2}, {1, 2, 3, 4, 5, 6})});
  check_near(out[0], floats({2}, {9, 12}));
  check_near(out[1], floats({3, 2}, {25, 36, 24, 40, 9, 24}));
}

TEST_CASE("arguments that must be known are known: code is made for each of their values, once") {
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {onnx::Dimension("N"), 4}), info("axes", Element::int64, {1})};
  g.nodes = {node("ReduceSum", {"x", "axes"}, {"y"}, {whole("keepdims", 0)})};
  g.outputs = {result("y")};
  const onnx::Session session = onnx::compile(model(g), {.target = core::Target::c});
  const Value x = floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto sums = [&](std::int64_t axis) { return session.run({x, integers({1}, {axis})})[0]; };
  check_near(sums(0), floats({4}, {6, 8, 10, 12}));
  check_near(sums(1), floats({2}, {10, 26}));
  check_near(sums(0), floats({4}, {6, 8, 10, 12}));
  CHECK(session.compilations() == 2);
  // Computed from one that is known, it is known as well; a shape need not be known at all.
  onnx::Graph h;
  h.inputs = {info("x", Element::float32, {onnx::Dimension("N"), 4}), info("shape", Element::int64, {2})};
  h.nodes = {node("Reshape", {"x", "shape"}, {"y"})};
  h.outputs = {result("y")};
  const onnx::Session reshaping = onnx::compile(model(h), {.target = core::Target::c});
  check_near(reshaping.run({x, integers({2}, {4, 2})})[0], x.reshaped({4, 2}));
  check_near(reshaping.run({x, integers({2}, {-1, 1})})[0], x.reshaped({8, 1}));
  check_near(reshaping.run({x, integers({2}, {0, 4})})[0], x.reshaped({2, 4}));
  CHECK(reshaping.compilations() == 1);
}

TEST_CASE("a size that is open and turns out to be 1 is repeated") {
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {onnx::Dimension("N"), 2}),
              info("y", Element::float32, {onnx::Dimension("M"), 2})};
  g.nodes = {node("Add", {"x", "y"}, {"z"})};
  g.outputs = {result("z")};
  const onnx::Session session = onnx::compile(model(g), {.target = core::Target::c});
  check_near(session.run({floats({2, 2}, {1, 2, 3, 4}), floats({2, 2}, {1, 1, 1, 1})})[0],
             floats({2, 2}, {2, 3, 4, 5}));
  check_near(session.run({floats({2, 2}, {1, 2, 3, 4}), floats({1, 2}, {10, 20})})[0],
             floats({2, 2}, {11, 22, 13, 24}));
}

TEST_CASE("sizes that constants of the graph give are known") {
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {2, 3})};
  g.outputs = {result("y"), result("z")};
  g.initialisers = {{"one", integers({1}, {1})}, {"values", floats({2}, {0, 1})}};
  g.nodes = {node("TopK", {"x", "one"}, {"most", "at"}), node("Mul", {"x", "most"}, {"y"}),
             node("OneHot", {"at", "one", "values"}, {"hot"}), node("Cast", {"hot"}, {"h"}, {whole("to", 1)}),
             node("Mul", {"h", "x"}, {"z"})};
  const onnx::Model m = model(g);
  const Value x = floats({2, 3}, {1, 3, 2, 5, 4, -1});
  for (const auto& session : {onnx::eager(m), onnx::compile(m)}) {
    const std::vector<Value> r = session.run({x});
    CHECK(r[0].tensor<float>().data == std::vector<float>{3, 9, 6, 25, 20, -5});
    CHECK(r[1].shape() == Shape{2, 2, 3});
    CHECK(r[1].tensor<float>().data == std::vector<float>{0, 0, 0, 0, 0, 0, 1, 3, 2, 5, 4, -1});
  }
}

TEST_CASE("packed weights of a session follow its parameters") {
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {30, 50})};
  g.initialisers = {{"w", wave({50, 70}, 3)}};
  g.nodes = {node("MatMul", {"x", "w"}, {"y"})};
  g.outputs = {result("y")};
  onnx::Session session = onnx::compile(model(g), {.target = core::Target::cpp}), eager = onnx::eager(model(g));
  const Value x = wave({30, 50}, 1);
  for (const double phase : {3.0, 5.0, 7.0}) {
    session.set_parameter("w", wave({50, 70}, phase));
    eager.set_parameter("w", wave({50, 70}, phase));
    for (int i = 0; i < 2; ++i) check_near(session.run({x})[0], eager.run({x})[0]);
  }
  CHECK(session.source("cpp").find("lt_gemm_kept_f32") != std::string::npos);
  CHECK(session.compilations() == 1);
}

TEST_CASE("parameters of a session are changed") {
  onnx::Session session = onnx::compile(classifier(), {.target = core::Target::c});
  const Value x = wave({1, 2, 6, 6}, 1);
  const Value before = session.run({x})[0];
  session.set_parameter("fc.b", floats({3}, {100, 200, 300}));
  const Value after = session.run({x})[0];
  CHECK(session.compilations() == 1);
  for (std::size_t k = 0; k < 3; ++k)
    CHECK(after.at(k) - before.at(k) ==
          Approx(100.0 * static_cast<double>(k + 1) - wave({3}, 6).at(k)).epsilon(1e-4));
  CHECK(session.parameter("fc.b") == floats({3}, {100, 200, 300}));
  session.set_parameter("shape", integers({2}, {-1, 16}));  // stands in the code, which is made again
  check_near(session.run({x})[0], after);
  CHECK(session.compilations() == 2);
}

TEST_CASE("functions of a model, with attributes of their callers") {
  onnx::Function f;
  f.domain = "own";
  f.name = "Scaled";
  f.inputs = {"a"};
  f.outputs = {"b"};
  f.attributes = {"slope"};
  f.opsets[""] = 17;
  onnx::Node inner = node("LeakyRelu", {"a"}, {"b"});
  inner.attributes.push_back({"alpha", std::int64_t{0}, "slope", 1});
  f.nodes = {inner};
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {2})};
  onnx::Node call = node("Scaled", {"x"}, {"y"}, {real("slope", 0.5)});
  call.domain = "own";
  g.nodes = {call};
  g.outputs = {result("y")};
  onnx::Model m = model(g);
  m.opsets["own"] = 1;
  m.functions = {f};
  check_near(run(m, {floats({2}, {-4, 4})})[0], floats({2}, {-2, 4}));
}

TEST_CASE("what is written is read again") {
  const onnx::Model m = classifier();
  const std::string bytes = onnx::write(m);
  const onnx::Model again = onnx::parse(std::as_bytes(std::span(bytes)), "again.onnx");
  REQUIRE(again.graph.nodes.size() == m.graph.nodes.size());
  for (std::size_t i = 0; i < m.graph.initialisers.size(); ++i) {
    CHECK(again.graph.initialisers[i].name == m.graph.initialisers[i].name);
    CHECK(again.graph.initialisers[i].value == m.graph.initialisers[i].value);
  }
  CHECK(again.graph.inputs[0].shape == m.graph.inputs[0].shape);
  const Value x = wave({2, 2, 6, 6}, 1);
  check_near(onnx::eager(again).run({x})[0], onnx::eager(m).run({x})[0], 0);
}

TEST_CASE("sequences, whose lengths are known") {
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {2}), info("y", Element::float32, {2})};
  g.initialisers = {{"last", integers({}, {-1})}};
  g.nodes = {node("SequenceConstruct", {"x", "y", "x"}, {"s"}), node("SequenceErase", {"s", "last"}, {"t"}),
             node("SequenceAt", {"t", "last"}, {"z"}), node("SequenceLength", {"t"}, {"n"}),
             node("ConcatFromSequence", {"t"}, {"all"}, {whole("axis", 0)})};
  g.outputs = {result("z"), result("n"), result("all")};
  const std::vector<Value> out = run(model(g), {floats({2}, {1, 2}), floats({2}, {3, 4})});
  check_near(out[0], floats({2}, {3, 4}));
  CHECK(out[1].number<std::int64_t>() == 2);
  check_near(out[2], floats({4}, {1, 2, 3, 4}));
}
