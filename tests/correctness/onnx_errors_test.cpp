// Files and models that are wrong: every error says where, what was expected and what is there.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "onnx_graphs.hpp"

namespace fs = std::filesystem;
using namespace onnx_graphs;

namespace {

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
std::string running(const onnx::Model& m, const std::vector<Value>& arguments) {
  const std::string eager = message([&] { onnx::eager(m).run(arguments); });
  CHECK(message([&] { onnx::compile(m, {.target = core::Target::c}).run(arguments); }) == eager);
  return eager;
}
std::string running(onnx::Node n, const std::vector<Value>& arguments, std::int64_t opset = 17) {
  return running(single(std::move(n), arguments, opset), arguments);
}
std::string parsing(const std::string& bytes) {
  return message([&] { onnx::parse(std::as_bytes(std::span(bytes)), "test.onnx"); });
}
/// The field of a message: its number and bytes.
std::string field(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (std::size_t n = bytes.size();;) {
    out += static_cast<char>((n & 127) | (n > 127 ? 128 : 0));
    if ((n >>= 7) == 0) break;
  }
  return out + bytes;
}
std::string varint(int number, std::uint64_t v) {
  std::string out(1, static_cast<char>(number << 3));
  do {
    out += static_cast<char>((v & 127) | (v > 127 ? 128 : 0));
  } while ((v >>= 7) != 0);
  return out;
}
onnx::Model relu() {
  onnx::Graph g;
  g.inputs = {info("x", Element::float32, {2, 3})};
  g.nodes = {node("Relu", {"x"}, {"y"})};
  g.nodes[0].name = "act";
  g.outputs = {result("y")};
  return model(std::move(g));
}

}  // namespace

TEST_CASE("files that are no models") {
  CHECK(message([] { onnx::load("/nowhere/model.onnx"); }) ==
        "/nowhere/model.onnx: expected an ONNX file, got no such file");
  CHECK(parsing("this is no model") ==
        "test.onnx: expected an ONNX model, got 16 bytes that are none: the file is damaged, cut off or of "
        "another format");
  CHECK(parsing("") == "test.onnx: expected a model with a graph, got none: is it an ONNX file?");
  const std::string bytes = onnx::write(relu());
  std::size_t refused = 0;
  for (std::size_t n = 0; n < bytes.size(); ++n) refused += parsing(bytes.substr(0, n)) != "no error";
  CHECK(refused > bytes.size() * 9 / 10);  // a message may also end between two of its fields
}

TEST_CASE("tensors that are damaged") {
  const auto graph_with = [](const std::string& tensor) { return field(7, field(5, tensor)); };
  const std::string float_tensor = varint(2, 1), name = field(8, "w");
  CHECK(parsing(graph_with(varint(1, 3) + float_tensor + name + field(9, "12345678"))) ==
        "test.onnx: tensor 'w': expected 12 bytes for float32[3], got 8: the file is damaged or cut off");
  CHECK(parsing(graph_with(varint(1, std::uint64_t{1} << 62) + float_tensor + name)) ==
        "test.onnx: tensor 'w': expected the shape of a tensor, got [4611686018427387904]: sizes are 0 or "
        "more, and a tensor has to fit into memory");
  CHECK(parsing(graph_with(varint(1, ~std::uint64_t{2}) + float_tensor + name)) ==
        "test.onnx: tensor 'w': expected the shape of a tensor, got [-3]: sizes are 0 or more, and a tensor "
        "has to fit into memory");
  CHECK(parsing(graph_with(varint(1, 1) + varint(2, 77) + name)) ==
        "test.onnx: tensor 'w': expected the number of an element type, 1 to 26, got 77");
  CHECK(parsing(graph_with(varint(1, 1) + varint(2, 14) + name)) ==
        "test.onnx: tensor 'w': expected elements that are bool, integers or real floating-point numbers, "
        "got complex64: nothing is computed with those");
  const auto external = [&](const std::string& location) {
    return graph_with(varint(1, 3) + float_tensor + name + varint(14, 1) +
                      field(13, field(1, "location") + field(2, location)));
  };
  CHECK(parsing(external("w.bin")) ==
        "test.onnx: tensor 'w': its elements lie in another file, 'w.bin': load the model from its folder");
  const fs::path folder = fs::temp_directory_path() / "lantern_onnx_errors_test";
  fs::create_directories(folder / "inner");
  const auto in_folder = [&](const std::string& location) {
    const std::string bytes = external(location);
    return message([&] { onnx::parse(std::as_bytes(std::span(bytes)), "test.onnx", folder / "inner"); });
  };
  std::ofstream(folder / "secret") << "0123456789ab";
  std::ofstream(folder / "inner/short") << "0123";
  fs::create_symlink(folder / "secret", folder / "inner/link");
  for (const std::string& outside :
       std::vector<std::string>{"../secret", (folder / "secret").string(), "link", "a/../../secret"})
    CHECK(in_folder(outside) ==
          "test.onnx: tensor 'w': expected its elements in a file in the folder of the model, got '" +
              outside + "': files elsewhere are not read");
  CHECK(in_folder("none") ==
        "test.onnx: tensor 'w': expected its elements in the file 'none', which there is not");
  CHECK(in_folder("short") ==
        "test.onnx: tensor 'w': expected 12 bytes of elements, got 12 from byte 0 of 'short', which has 4");
  fs::remove_all(folder);
}

TEST_CASE("graphs that cannot be computed") {
  onnx::Model m = relu();
  m.graph.nodes[0].inputs = {"z"};
  CHECK(message([&] { onnx::check(m); }) ==
        "test.onnx: node 'act' (Relu): expected operands that are defined before it, got 'z', which nothing "
        "defines");
  m = relu();
  m.graph.nodes.push_back(node("Neg", {"x"}, {"y"}));
  CHECK(message([&] { onnx::check(m); }) ==
        "test.onnx: node 'y' (Neg): expected a name that nothing else has, got 'y' a second time");
  m = relu();
  m.graph.nodes = {node("Add", {"x", "b"}, {"a"}), node("Neg", {"a"}, {"b"}), node("Relu", {"b"}, {"y"})};
  CHECK(message([&] { onnx::arrange(m); }) ==
        "test.onnx: node 'a' (Add): expected nodes that can be computed one after the other, got a cycle "
        "through this one");
  m = relu();
  m.graph.outputs = {result("q")};
  CHECK(message([&] { onnx::check(m); }) ==
        "test.onnx: output 'q' of graph '': expected a value that the graph has, got none");
  // Nodes in another order are put into one that can be computed.
  m = relu();
  m.graph.nodes = {node("Neg", {"a"}, {"y"}), node("Relu", {"x"}, {"a"})};
  onnx::arrange(m);
  CHECK(m.graph.nodes[0].op == "Relu");
  // Graphs in graphs.
  onnx::Graph g;
  g.nodes = {node("Relu", {"x"}, {"z"})};
  g.outputs = {result("z")};
  for (int depth = 0; depth < 40; ++depth) {
    onnx::Graph outer;
    const auto inner = std::make_shared<const onnx::Graph>(g);
    const std::string out = "z" + std::to_string(depth);
    outer.nodes = {node("If", {"c"}, {out},
                        {onnx_graphs::with("then_branch", inner), onnx_graphs::with("else_branch", inner)})};
    outer.outputs = {result(out)};
    g = outer;
  }
  g.inputs = {info("x", Element::float32, {1}), info("c", Element::boolean, {})};
  CHECK(message([&] { onnx::check(model(g)); }) ==
        "test.onnx: expected graphs that nest at most 32 deep, got more");
}

TEST_CASE("functions that call themselves, and that grow without end") {
  onnx::Model m = relu();
  onnx::Function f;
  f.domain = "own";
  f.name = "F";
  f.inputs = {"a"};
  f.outputs = {"b"};
  onnx::Node self = node("F", {"a"}, {"b"});
  self.domain = "own";
  f.nodes = {self};
  m.functions = {f};
  m.opsets["own"] = 1;
  m.graph.nodes[0] = node("F", {"x"}, {"y"});
  m.graph.nodes[0].domain = "own";
  const Value x = wave({2, 3}, 1);
  CHECK(running(m, {x}) ==
        "test.onnx: node 'b' (own.F): expected functions that call each other at most 64 deep, got more: "
        "does it call itself?");
  // Each calls the one before twice.
  m.functions.clear();
  for (int k = 0; k < 40; ++k) {
    onnx::Function g;
    g.domain = "own";
    g.name = "F" + std::to_string(k);
    g.inputs = {"a"};
    g.outputs = {"c"};
    g.opsets = {{"", 17}, {"own", 1}};
    onnx::Node first = node(k == 0 ? "Neg" : "F" + std::to_string(k - 1), {"a"}, {"b"}),
               second = node(first.op, {"b"}, {"c"});
    first.domain = second.domain = k == 0 ? "" : "own";
    g.nodes = {first, second};
    m.functions.push_back(g);
  }
  m.graph.nodes[0].op = "F39";
  CHECK(message([&] { onnx::eager(m).run({x}); }) ==
        "test.onnx: expected a model of at most 1000000 nodes, functions and loops written out, got more");
}

TEST_CASE("arguments that do not fit") {
  const Value x = wave({2, 3}, 1);
  CHECK(running(relu(), {}) == "test.onnx: expected 1 arguments, got 0");
  CHECK(running(relu(), {wave({3, 2}, 1)}) ==
        "test.onnx: argument 'x': expected float32[2,3], got float32[3,2]");
  CHECK(running(relu(), {integers({2, 3}, {1, 2, 3, 4, 5, 6})}) ==
        "test.onnx: argument 'x': expected float32[2,3], got int64[2,3]");
  CHECK(message([&] { onnx::eager(relu()).run(std::map<std::string, Value>{{"z", x}}); }) ==
        "test.onnx: expected an argument 'x', got none of that name");
  CHECK(message([&] { x.elements<double>(); }) ==
        "expected a tensor whose elements lie as f64, got float32[2,3]");
}

TEST_CASE("operators and what they are given") {
  const Value x = wave({2, 3}, 1);
  CHECK(running(node("Frobnicate", {"x"}, {"y"}), {x}) ==
        "test.onnx: node 'y' (Frobnicate): expected an operator that is supported, got 'Frobnicate' of "
        "ai.onnx");
  CHECK(running(node("LayerNormalization", {"x"}, {"y"}), {x}, 12) ==
        "test.onnx: node 'y' (LayerNormalization): expected 'LayerNormalization' of version 17 to 28 of "
        "ai.onnx, got version 12");
  CHECK(running(node("Add", {"x"}, {"y"}), {x}) == "test.onnx: node 'y' (Add): expected 2 operands, got 1");
  CHECK(running(node("Add", {"x", "i"}, {"y"}), {x, integers({3}, {1, 2, 3})}) ==
        "test.onnx: node 'y' (Add): expected two operands of one element type, got float32 and int64; Cast "
        "brings one to the other");
  CHECK(running(node("Transpose", {"x"}, {"y"}, {wholes("perm", {0, 0})}), {x}) ==
        "test.onnx: node 'y' (Transpose): attribute 'perm': expected different dimensions, got 0 twice");
  CHECK(running(node("Softmax", {"x"}, {"y"}, {real("axis", 1)}), {x}) ==
        "test.onnx: node 'y' (Softmax): attribute 'axis': expected an integer, got a number");
  CHECK(running(node("Concat", {"x", "w"}, {"y"}), {x, x}) ==
        "test.onnx: node 'y' (Concat): expected an attribute 'axis', got none");
  CHECK(running(node("Softmax", {"x"}, {"y"}, {whole("axis", 2)}), {x}) ==
        "test.onnx: node 'y' (Softmax): axis: expected a dimension from -2 to 1, got 2");
  const std::vector<Value> open = {x, integers({2}, {-1, -1})};
  CHECK(message([&] { onnx::eager(single(node("Reshape", {"x", "s"}, {"y"}), open)).run(open); }) ==
        "test.onnx: node 'y' (Reshape): expected at most one size that is left open, got two of -1");
  CHECK(message([&] {
          onnx::compile(single(node("Reshape", {"x", "s"}, {"y"}), open), {.target = core::Target::c})
              .run(open);
        }) == "test.onnx: node 'y' (Reshape): reshape: shapes [2, 3] and [6, 6] do not fit");
  CHECK(running(node("Conv", {"x", "w"}, {"y"}), {x, x}) ==
        "test.onnx: node 'y' (Conv): operands of other than 3 to 5 dimensions [batch, channels, size...]: "
        "f32[2,3]");
  onnx::Model m = relu();
  m.graph.nodes = {node("Reshape", {"x", "s"}, {"y"})};
  m.graph.initialisers = {{"s", integers({2}, {4, -1})}};
  CHECK(running(m, {x}) ==
        "test.onnx: node 'y' (Reshape): expected a shape that the operand's elements fill, got one of which "
        "4 does not divide 6");
}

TEST_CASE("what goes wrong while a model runs names the node") {
  onnx::Model m = relu();
  m.graph.inputs.push_back(info("i", Element::int64, {1}));
  m.graph.nodes = {node("Relu", {"x"}, {"r"}), node("Gather", {"r", "i"}, {"y"})};
  m.graph.nodes[1].name = "pick";
  const Value x = wave({2, 3}, 1);
  const std::string wanted = "test.onnx: node 'pick' (Gather): index 7 is outside 0..1";
  CHECK(message([&] { onnx::eager(m).run({x, integers({1}, {7})}); }) == wanted);
  const std::string compiled =
      message([&] { onnx::compile(m, {.target = core::Target::c}).run({x, integers({1}, {7})}); });
  CHECK(compiled.find("test.onnx: node 'pick' (Gather): index") == 0);
  m.graph.nodes[1] = node("TopK", {"r", "i"}, {"y", "places"});
  m.graph.nodes[1].name = "best";
  for (const std::int64_t k : {4, -1})
    CHECK(running(m, {x, integers({1}, {k})}) == "test.onnx: node 'best' (TopK): expected k from 0 to the 3 elements of dimension 1, got k = " +
                                                     std::to_string(k));
}

TEST_CASE("signatures that do not fit") {
  const TensorValue<float> x = wave({2, 3}, 1).tensor<float>();
  const std::vector<float> none;
  const auto two = onnx::import_onnx<Tensor<float>(Tensor<float>, Tensor<float>)>(relu());
  CHECK(message([&] { eager(two)(none, x, x); }) == "test.onnx: expected a signature of 1 arguments, got 2");
  const auto whole_numbers = onnx::import_onnx<Tensor<float>(Tensor<std::int64_t>)>(relu());
  CHECK(message([&] {
          eager(whole_numbers)(none, integers({2, 3}, {1, 2, 3, 4, 5, 6}).tensor<std::int64_t>());
        }) == "test.onnx: argument 'x': expected elements that compute as f32, for float32, got i64[2,3]");
  const auto number = onnx::import_onnx<float(Tensor<float>)>(relu());
  CHECK(message([&] { eager(number)(none, x); }) ==
        "test.onnx: result 'y': expected a signature with a tensor of f32, got f32");
  CHECK(message([&] { onnx::import_onnx<Tensor<float>(Tensor<float>)>(relu(), {.frozen = {"w"}}); }) ==
        "test.onnx: frozen: expected the name of a weight, got 'w'");
}
