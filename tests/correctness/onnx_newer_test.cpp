// What the file format and its operators got from version 23 on, and what files of that time have: overloads
// and defaults of functions, weights of one element, numbers of few bits, attention, classic models, strings.
#include <algorithm>
#include <map>

#include "onnx_graphs.hpp"

using namespace onnx_graphs;

namespace {

onnx::Function leaky(const std::string& overload, double slope) {
  onnx::Function f;
  f.domain = "own";
  f.name = "Leaky";
  f.overload = overload;
  f.inputs = {"a"};
  f.outputs = {"b"};
  f.defaults = {real("slope", slope)};
  f.opsets[""] = 17;
  onnx::Node inner = node("LeakyRelu", {"a"}, {"b"});
  inner.attributes.push_back({"alpha", std::int64_t{0}, "slope", 1});
  f.nodes = {inner};
  return f;
}
onnx::Node call(const std::string& from, const std::string& to, const std::string& overload,
                std::vector<onnx::Attribute> attributes = {}) {
  onnx::Node n = node("Leaky", {from}, {to}, std::move(attributes));
  n.domain = "own";
  n.overload = overload;
  return n;
}

}  // namespace

TEST_CASE("functions of one name differ in their overload, and have defaults of attributes") {
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {2})};
  g.nodes = {call("x", "y", "half"), call("x", "z", "double"),
             call("x", "u", "double", {real("slope", 0.125)})};
  g.outputs = {result("y"), result("z"), result("u")};
  onnx::Model m = model(g);
  m.opsets["own"] = 1;
  m.functions = {leaky("half", 0.5), leaky("double", 2)};
  const std::string bytes = onnx::write(m);
  const onnx::Model again = onnx::parse(std::as_bytes(std::span(bytes)), "again.onnx");
  for (const bool read : {false, true}) {
    const std::vector<Value> out = run(read ? again : m, {floats({2}, {-4, 4})});
    check_near(out[0], floats({2}, {-2, 4}));
    check_near(out[1], floats({2}, {-8, 4}));
    check_near(out[2], floats({2}, {-0.5f, 4}));
  }
  m.functions[1].overload = "half";
  CHECK_THROWS_WITH(onnx::check(m), Catch::Contains("expected one of its name in its domain, got a second"));
}

TEST_CASE("versions of the file format that are not known are refused") {
  onnx::Model m = single(node("Neg", {"x"}, {"y"}), {floats({1}, {1})});
  m.ir_version = onnx::newest_format;
  onnx::check(m);
  m.ir_version = onnx::newest_format + 1;
  CHECK_THROWS_WITH(onnx::check(m), Catch::Contains("version of the file format from 1 to 14, got 15"));
  m.ir_version = 0;
  CHECK_THROWS_WITH(onnx::check(m), Catch::Contains("got 0"));
}

TEST_CASE("a weight of one element is repeated, and trained") {
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {2, 3})};
  g.initialisers = {{"scale", floats({1}, {0.5f})}, {"shift", floats({3}, {1, 2, 3})}};
  g.nodes = {node("Mul", {"x", "scale"}, {"s"}), node("Add", {"s", "shift"}, {"y"})};
  g.outputs = {result("y")};
  const auto net = onnx::import_onnx<Tensor<float>(Tensor<float>)>(model(g));
  using Weights = Rep<Array<float>>;
  using Images = Rep<Tensor<float>>;
  const auto loss = [=](Weights w, Images x) {
    const auto y = net(w, x);
    return sum(y * y);
  };
  const auto slope = core::compile(grad<0>(loss), {.target = core::Target::c});
  const auto value = core::compile(loss, {.target = core::Target::c});
  const TensorValue<float> x = wave({2, 3}, 1).tensor<float>();
  const std::vector<float> w = net.parameters();
  const std::vector<float> d = slope(w, x), by_running = eager(grad<0>(loss))(w, x);
  REQUIRE(d.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<float> v = w;
    v[i] += 1e-2f;
    const double above = static_cast<double>(value(v, x));
    v[i] -= 2e-2f;
    CHECK(d[i] == Approx((above - static_cast<double>(value(v, x))) / 2e-2).epsilon(1e-2).margin(1e-3));
    CHECK(d[i] == Approx(by_running[i]).epsilon(1e-5));
  }
}

TEST_CASE("numbers of 8 and 4 bits: every code comes back, and Cast gives the nearest") {
  for (const Element e : {Element::float8e4m3fn, Element::float8e4m3fnuz, Element::float8e5m2,
                          Element::float8e5m2fnuz, Element::float4e2m1, Element::float8e8m0}) {
    INFO(onnx::name(e));
    const int codes = e == Element::float4e2m1 ? 16 : 256;
    std::vector<float> all;
    for (int code = 0; code < codes; ++code) {
      const float v = onnx::from_format_bits(e, static_cast<std::uint8_t>(code));
      if (std::isnan(v))
        CHECK(std::isnan(onnx::from_format_bits(e, onnx::format_bits(e, v))));
      else
        CHECK(onnx::format_bits(e, v) == code);
      if (std::isfinite(v) && v >= 0 && (v == 0 || v >= 1e-30f) && v < 1e30f) all.push_back(v);
    }
    if (e == Element::float8e8m0) continue;
    // Between two neighbours the nearer one; what is larger than all is the largest.
    std::ranges::sort(all);
    std::vector<float> given, want;
    for (std::size_t i = 1; i < all.size(); ++i) {
      given.push_back(all[i - 1] + 0.375f * (all[i] - all[i - 1]));
      want.push_back(all[i - 1]);
      given.push_back(-(all[i - 1] + 0.625f * (all[i] - all[i - 1])));
      want.push_back(-all[i]);
    }
    given.push_back(1e6f);
    want.push_back(all.back());
    const auto n = static_cast<std::int64_t>(given.size());
    check_node(node("Cast", {"x"}, {"y"}, {whole("to", static_cast<std::int64_t>(e))}), {floats({n}, given)},
               {floats({n}, want).as(e)}, 24);
  }
}

TEST_CASE("integers of 4 and 2 bits wrap, and lie packed in files") {
  Value v(Element::int4, {5});
  const std::int32_t numbers[] = {-8, 7, -1, 3, 0};
  std::ranges::copy(numbers, v.mutable_elements<std::int32_t>().begin());
  onnx::Graph g;
  g.inputs = {info("x", Element::int64, {5})};
  g.initialisers = {{"w", v}};
  g.nodes = {node("Cast", {"w"}, {"y"}, {whole("to", 7)}), node("Cast", {"x"}, {"z"}, {whole("to", 25)})};
  g.outputs = {result("y"), result("z")};
  const std::string bytes = onnx::write(model(g, 25));
  const onnx::Model again = onnx::parse(std::as_bytes(std::span(bytes)), "again.onnx");
  CHECK(again.graph.initialisers[0].value == v);
  const std::vector<Value> out = run(again, {integers({5}, {0, 3, 4, 5, -1})});
  check_near(out[0], integers({5}, {-8, 7, -1, 3, 0}));
  Value wrapped(Element::uint2, {5});
  const std::int32_t low[] = {0, 3, 0, 1, 3};
  std::ranges::copy(low, wrapped.mutable_elements<std::int32_t>().begin());
  check_near(out[1], wrapped);
}

TEST_CASE("attention is differentiated, also where a query attends no key") {
  onnx::Graph g;
  g.inputs = {info("k", Element::float32, {1, 1, 3, 2}), info("v", Element::float32, {1, 1, 3, 2})};
  g.initialisers = {{"q", wave({1, 2, 2, 2}, 4)},
                    {"mask", bools({2, 3}, {true, false, true, false, false, false})}};
  g.nodes = {node("Attention", {"q", "k", "v", "mask"}, {"y"})};
  g.outputs = {result("y")};
  const onnx::Model m = model(g, 23);
  const Value k = wave({1, 1, 3, 2}, 1), v = wave({1, 1, 3, 2}, 2);
  const Value y = run(m, {k, v})[0];
  for (std::size_t i : {2u, 3u, 6u, 7u}) CHECK(y.at(i) == 0);  // the second query of each head
  const auto net = onnx::import_onnx<Tensor<float>(Tensor<float>, Tensor<float>)>(m);
  using T = Rep<Tensor<float>>;
  const auto loss = [=](Rep<Array<float>> w, T a, T b) {
    const auto out = net(w, a, b);
    return sum(out * out);
  };
  const auto slope = core::compile(grad<0>(loss), {.target = core::Target::c});
  const auto value = core::compile(loss, {.target = core::Target::c});
  const std::vector<float> w = net.parameters();
  const std::vector<float> d = slope(w, k.tensor<float>(), v.tensor<float>());
  for (std::size_t i = 0; i < w.size(); ++i) {
    std::vector<float> moved = w;
    moved[i] += 1e-2f;
    const double above = static_cast<double>(value(moved, k.tensor<float>(), v.tensor<float>()));
    moved[i] -= 2e-2f;
    const double below = static_cast<double>(value(moved, k.tensor<float>(), v.tensor<float>()));
    CHECK(d[i] == Approx((above - below) / 2e-2).epsilon(2e-2).margin(1e-4));
  }
}

TEST_CASE("strings are chosen, compared and looked into") {
  const Value words = Value::of_texts({"b", "a", "c"}, {3});
  onnx::Graph g;
  g.inputs = {info("i", Element::int64, {2}), info("w", words)};
  g.nodes = {node("Gather", {"w", "i"}, {"y"}), node("Equal", {"y", "y"}, {"same"}),
             node("StringConcat", {"y", "y"}, {"twice"})};
  g.outputs = {result("y"), result("same"), result("twice")};
  const std::vector<Value> out = run(model(g, 20), {integers({2}, {2, -3}), words});
  CHECK(out[0].texts() == std::vector<std::string>{"c", "b"});
  CHECK(out[2].texts() == std::vector<std::string>{"cc", "bb"});
  check_near(out[1], bools({2}, {true, true}));
  onnx::Graph bad;
  bad.inputs = {info("w", words)};
  bad.nodes = {node("Neg", {"w"}, {"y"})};
  bad.outputs = {result("y")};
  CHECK_THROWS_WITH(onnx::eager(model(bad)).run({words}), Catch::Contains("operands of type string"));
}

TEST_CASE("trees: damaged ones are errors, a NaN goes where the node says") {
  const auto tree = [](std::int64_t yes) {
    onnx::Node n =
        node("TreeEnsembleRegressor", {"x"}, {"y"},
             {whole("n_targets", 1), wholes("nodes_treeids", {0, 0, 0}), wholes("nodes_nodeids", {0, 1, 2}),
              wholes("nodes_featureids", {0, 0, 0}), with("nodes_values", std::vector<double>{0.5, 0, 0}),
              with("nodes_modes", std::vector<std::string>{"BRANCH_LT", "LEAF", "LEAF"}),
              wholes("nodes_truenodeids", {yes, 0, 0}), wholes("nodes_falsenodeids", {2, 0, 0}),
              wholes("nodes_missing_value_tracks_true", {1, 0, 0}), wholes("target_treeids", {0, 0}),
              wholes("target_nodeids", {1, 2}), wholes("target_ids", {0, 0}),
              with("target_weights", std::vector<double>{3, 4})});
    n.domain = "ai.onnx.ml";
    onnx::Graph g;
    g.inputs = {info("x", Element::float32, {3, 1})};
    g.nodes = {n};
    g.outputs = {result("y")};
    onnx::Model m = model(g);
    m.opsets["ai.onnx.ml"] = 3;
    return m;
  };
  const Value x = floats({3, 1}, {0.25f, 0.75f, NAN});
  check_near(run(tree(1), {x})[0], floats({3, 1}, {3, 4, 3}));
  CHECK_THROWS_WITH(onnx::eager(tree(0)), Catch::Contains("expected trees"));
  CHECK_THROWS_WITH(onnx::eager(tree(9)), Catch::Contains("expected numbers of nodes that there are, got 9"));
}

TEST_CASE("constants in nodes are trained only where that is asked for") {
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {65})};
  g.initialisers = {{"w", wave({65}, 1)}};
  g.nodes = {node("Constant", {}, {"c"}, {with("value", wave({65}, 2))}), node("Mul", {"x", "w"}, {"m"}),
             node("Add", {"m", "c"}, {"y"})};
  g.outputs = {result("y")};
  const auto frozen = [&](const onnx::ImportOptions& options) {
    std::map<std::string, bool> all;
    const onnx::ImportedModel imported(model(g), ir::Kind::f32, options);
    for (const onnx::Parameter& p : imported.layout()) all[p.name] = p.frozen;
    return all;
  };
  CHECK(frozen({}) == std::map<std::string, bool>{{"c", true}, {"w", false}});
  CHECK(frozen({.train_constants = true}) == std::map<std::string, bool>{{"c", false}, {"w", false}});
}

namespace {

onnx::Node microsoft(const std::string& op, std::vector<std::string> in,
                     std::vector<onnx::Attribute> attributes) {
  onnx::Node n = node(op, std::move(in), {"y"}, std::move(attributes));
  n.domain = "com.microsoft";
  return n;
}
Value run_one(const onnx::Node& n, const std::vector<Value>& in) {
  onnx::Model m = single(n, in);
  m.opsets["com.microsoft"] = 1;
  return run(m, in)[0];
}
/// Integers of 8 bits from `least` on, and the numbers that they represent.
std::pair<Value, Value> quantised(const Shape& shape, Element e, double scale, std::int64_t zero,
                                  std::int64_t least) {
  Value q(e, shape), x(Element::float32, shape);
  for (std::size_t i = 0; i < static_cast<std::size_t>(q.size()); ++i) {
    const auto n = static_cast<std::int32_t>(least + static_cast<std::int64_t>(i * 37 % 200));
    q.mutable_elements<std::int32_t>()[i] = n;
    x.mutable_elements<float>()[i] =
        static_cast<float>((static_cast<double>(n) - static_cast<double>(zero)) * scale);
  }
  return {q, x};
}
Value one_of(Element e, std::int32_t n) {
  Value v(e, {});
  v.mutable_elements<std::int32_t>()[0] = n;
  return v;
}
Value number(float x) { return floats({}, {x}); }

}  // namespace

TEST_CASE("what onnxruntime fuses and quantises is what its parts are") {
  const Value a = wave({3, 4}, 1), b = wave({5, 4}, 2), c = wave({5}, 3);
  const Value gemm =
      run(single(node("Gemm", {"a", "b", "c"}, {"y"}, {real("alpha", 0.5), whole("transB", 1)}), {a, b, c}),
          {a, b, c})[0];
  check_near(run_one(microsoft("FusedGemm", {"a", "b", "c"},
                               {real("alpha", 0.5), whole("transB", 1), text("activation", "LeakyRelu"),
                                real("activation_alpha", 0.25)}),
                     {a, b, c}),
             run(single(node("LeakyRelu", {"a"}, {"y"}, {real("alpha", 0.25)}), {gemm}), {gemm})[0]);

  const auto [q, x] = quantised({2, 3, 8}, Element::uint8, 0.02, 120, 10);
  const auto [w, weights] = quantised({8, 24}, Element::int8, 0.01, 0, -100);
  const Value bias = wave({24}, 4);
  check_near(
      run_one(
          microsoft("QAttention", {"q", "w", "b", "s", "t", "", "z", "o"}, {whole("num_heads", 2)}),
          {q, w, bias, number(0.02F), number(0.01F), one_of(Element::uint8, 120), one_of(Element::int8, 0)}),
      run_one(microsoft("Attention", {"x", "w", "b"}, {whole("num_heads", 2)}), {x, weights, bias}), 1e-4);

  const auto turned = [&](const Value& v, Shape order) {
    return run(single(node("Transpose", {"x"}, {"y"}, {wholes("perm", std::move(order))}), {v}), {v})[0];
  };
  const auto [image, numbers] = quantised({1, 6, 6, 3}, Element::uint8, 0.02, 120, 5);
  const Value first = turned(image, {0, 3, 1, 2});
  const std::vector<onnx::Attribute> window = {wholes("kernel_shape", {2, 2}), wholes("strides", {2, 2})};
  check_near(turned(run_one(microsoft("NhwcMaxPool", {"x"}, window), {image}), {0, 3, 1, 2}),
             run(single(node("MaxPool", {"x"}, {"y"}, window), {first}), {first})[0]);
  const auto [filter, unused] = quantised({4, 3, 3, 3}, Element::int8, 0.01, 0, -90);
  const std::vector<Value> rest = {
      number(0.02F), one_of(Element::uint8, 120), filter, number(0.01F), one_of(Element::int8, 0),
      number(0.3F),  one_of(Element::uint8, 128)};
  const auto before = [&](const Value& v) {
    std::vector<Value> all = {v};
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  };
  const std::vector<std::string> names = {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz"};
  check_near(turned(run_one(microsoft("QLinearConv", names,
                                      {whole("channels_last", 1), wholes("pads", {1, 1, 1, 1})}),
                            before(image)),
                    {0, 3, 1, 2}),
             run(single(node("QLinearConv", names, {"y"}, {wholes("pads", {1, 1, 1, 1})}), before(first)),
                 before(first))[0]);
  const std::vector<std::string> pool = {"x", "xs", "xz", "ys", "yz"};
  const std::vector<Value> scales = {number(0.02F), one_of(Element::uint8, 120), number(0.01F),
                                     one_of(Element::uint8, 100)};
  const auto pooled = [&](const Value& v, std::int64_t last) {
    std::vector<Value> all = {v};
    all.insert(all.end(), scales.begin(), scales.end());
    return run_one(microsoft("QLinearGlobalAveragePool", pool, {whole("channels_last", last)}), all);
  };
  check_near(turned(pooled(image, 1), {0, 3, 1, 2}), pooled(first, 0));
  const Value chosen = bools({1, 6, 6, 3}, [] {
    std::vector<bool> all(108);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i % 3 == 0;
    return all;
  }());
  const Value zero = one_of(Element::uint8, 120), other = one_of(Element::uint8, 119);
  const Value where =
      run_one(microsoft("QLinearWhere", {"c", "x", "xs", "xz", "b", "bs", "bz", "ys", "yz"}, {}),
              {chosen, image, number(0.02F), zero, image, number(0.02F), other, number(0.02F), zero});
  for (std::size_t i = 0; i < 108; ++i) CHECK(where.at(i) == image.at(i) + (chosen.at(i) != 0 ? 0 : 1));
}

TEST_CASE("a vector of channels that is none is an error") {
  const Value x = wave({2, 3, 4}, 1), v = wave({3}, 2), none = number(1);
  const onnx::Node n = node("InstanceNormalization", {"x", "s", "b"}, {"y"});
  CHECK(run(single(n, {x, v, v}), {x, v, v})[0].shape() == Shape{2, 3, 4});
  CHECK_THROWS_WITH(onnx::eager(single(n, {x, none, v})).run({x, none, v}),
                    Catch::Contains("expected a number for each channel, got f32"));
  const Value q = wave({2, 3, 8}, 1);
  onnx::Model m = single(microsoft("MultiHeadAttention", {"q", "k", "v", "b"}, {whole("num_heads", 2)}),
                         {q, q, q, number(1)});
  m.opsets["com.microsoft"] = 1;
  CHECK_THROWS_WITH(onnx::eager(m).run({q, q, q, number(1)}),
                    Catch::Contains("expected a tensor of at least 1 dimensions, got f32"));
}

TEST_CASE("truth values have no cumulative sums and products") {
  const Value x = bools({3}, {true, false, true}), axis(Element::int64, {});
  for (const char* op : {"CumSum", "CumProd"})
    CHECK_THROWS_WITH(onnx::eager(single(node(op, {"x", "a"}, {"y"}), {x, axis}, 26)).run({x, axis}),
                      Catch::Contains("expected numbers, got bool"));
}

TEST_CASE("grouped-query attention is attention behind what was there before") {
  const Shape wide = {2, 3, 64}, narrow = {2, 3, 32};
  const Value q = wave(wide, 1, 3), k = wave(narrow, 2, 3), v = wave(narrow, 3, 3);
  Value last(Element::int32, {2});
  std::ranges::fill(last.mutable_elements<std::int32_t>(), 2);
  const auto by_ours = [](std::vector<std::string> names, std::vector<onnx::Attribute> more, const std::vector<Value>& in) {
    more.push_back(whole("num_heads", 4));
    more.push_back(whole("kv_num_heads", 2));
    onnx::Node n = microsoft("GroupQueryAttention", std::move(names), std::move(more));
    n.outputs = {"y", "key", "value"};
    onnx::Model m = single(n, in);
    m.opsets["com.microsoft"] = 1;
    return run(m, in);
  };
  const auto by_onnx = [](std::vector<std::string> names, std::vector<onnx::Attribute> more, const std::vector<Value>& in) {
    more.push_back(whole("q_num_heads", 4));
    more.push_back(whole("kv_num_heads", 2));
    more.push_back(whole("is_causal", 1));
    return run(single(node("Attention", std::move(names), {"y", "key", "value"}, std::move(more)), in, 24), in);
  };
  const std::vector<Value> prompt = by_ours({"q", "k", "v", "", "", "s", "t"}, {real("softcap", 2)},
                                            {q, k, v, last, one_of(Element::int32, 3)});
  const std::vector<Value> as_it_is = by_onnx({"q", "k", "v"}, {real("softcap", 2)}, {q, k, v});
  for (std::size_t i = 0; i < 3; ++i) check_near(prompt[i], as_it_is[i]);

  // One more place, behind these three; the buffer may be longer, and is then zero at its end.
  const Value q1 = wave({2, 1, 64}, 4, 3), k1 = wave({2, 1, 32}, 5, 3), v1 = wave({2, 1, 32}, 6, 3);
  std::ranges::fill(last.mutable_elements<std::int32_t>(), 3);
  const Value all = one_of(Element::int32, 4);
  const std::vector<Value> next =
      by_ours({"q", "k", "v", "a", "b", "s", "t"}, {}, {q1, k1, v1, prompt[1], prompt[2], last, all});
  const std::vector<Value> behind = by_onnx({"q", "k", "v", "", "a", "b"}, {}, {q1, k1, v1, prompt[1], prompt[2]});
  for (std::size_t i = 0; i < 3; ++i) check_near(next[i], behind[i]);
  Value longer(Element::float32, {2, 2, 6, 16});
  for (std::size_t i = 0; i < 384; ++i)
    longer.mutable_elements<float>()[i] = i % 96 < 48 ? static_cast<float>(prompt[1].at(i / 96 * 48 + i % 96)) : 7.0F;
  const std::vector<Value> kept = by_ours({"q", "k", "v", "a", "b", "s", "t"}, {}, {q1, k1, v1, longer, longer, last, all});
  REQUIRE(kept[1].shape() == Shape{2, 2, 6, 16});
  CHECK(kept[1].at(64 + 15) == 0);
  CHECK(kept[1].at(48) == next[1].at(48));

  // Of two places, with angles of zero, which turn nothing, and of all in one tensor.
  const Value ones = floats({4, 8}, std::vector<float>(32, 1)), zeros = floats({4, 8}, std::vector<float>(32, 0));
  std::ranges::fill(last.mutable_elements<std::int32_t>(), 2);
  const std::vector<Value> seen =
      by_ours({"q", "k", "v", "", "", "s", "t", "c", "d"}, {whole("do_rotary", 1), whole("local_window_size", 3)},
              {q, k, v, last, one_of(Element::int32, 3), ones, zeros});
  const std::vector<Value> plain = by_onnx({"q", "k", "v"}, {}, {q, k, v});
  check_near(seen[0], plain[0]);
}
