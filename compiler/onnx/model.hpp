// ONNX files as plain structs: load reads one and checks it, write gives its bytes.
//
//   onnx::Model model = onnx::load("squeezenet.onnx");
//   for (const onnx::Node& n : model.graph.nodes) fmt::print("{}\n", n.op);
//
// Nothing of the file's own library (protobuf) is seen here. What load and parse give is well formed: every
// operand of a node is defined before it and once, attributes hold what their type says, tensors have as many
// elements as their shape, and graphs nest at most `deepest_graph` deep. Whatever else a file holds, however
// it is damaged, is a lantern::Error that names the file, the node and the operator, what was expected and
// what is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lantern/compiler/onnx/value.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::onnx {

/// How deep graphs in attributes of nodes may nest.
inline constexpr int deepest_graph = 32;
/// The newest version of the file format that is read.
inline constexpr std::int64_t newest_format = 14;

/// A size that is known, or a symbol (empty: a size of no name) for one that is not.
struct Dimension {
  std::optional<std::int64_t> size;
  std::string symbol;

  Dimension() = default;
  Dimension(std::int64_t n) : size(n) {}
  Dimension(std::string name) : symbol(std::move(name)) {}
  friend bool operator==(const Dimension&, const Dimension&) = default;
};

/// What a value of a graph is declared to be.
struct ValueInfo {
  enum class Structure : std::uint8_t { unknown, tensor, sequence, optional, map, sparse_tensor };

  std::string name;
  Structure structure = Structure::tensor;
  Element element = Element::undefined;         ///< of a sequence or optional: of what it holds
  std::optional<std::vector<Dimension>> shape;  ///< none: nothing is known, not the rank either
  bool holds_sequence = false;                  ///< an optional sequence, a sequence of sequences
};

struct Graph;
using GraphPointer = std::shared_ptr<const Graph>;

/// An attribute of a node: a name, and what is in it.
struct Attribute {
  using Content = std::variant<double, std::int64_t, std::string, Value, GraphPointer, std::vector<double>,
                               std::vector<std::int64_t>, std::vector<std::string>, std::vector<Value>,
                               std::vector<GraphPointer>>;
  std::string name;
  Content content;
  std::string reference = {};  ///< in a function: the attribute of the call that it represents
  int declared = 0;  ///< the AttributeProto.AttributeType that the file gives; for a reference all there is
};

struct Node {
  std::string name;  ///< may be empty
  std::string op;
  std::string domain;               ///< empty: ai.onnx
  std::vector<std::string> inputs;  ///< an empty name: the operand is left out
  std::vector<std::string> outputs;
  std::vector<Attribute> attributes;
  std::string overload = {};  ///< which of the functions of this name is called; empty: the one without

  /// The attribute, or null.
  const Attribute* find(std::string_view attribute) const;
  /// "node 'conv1' (Conv)"; of a node without a name its first output represents it.
  std::string label() const;
};

/// A tensor that a graph holds: a weight, a constant.
struct Initialiser {
  std::string name;
  Value value;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;        ///< in an order in which they can be computed
  std::vector<ValueInfo> inputs;  ///< those that initialisers represent among them
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> values;  ///< what the file says of others
  std::vector<Initialiser> initialisers;

  const Initialiser* initialiser(std::string_view name) const;
  /// The inputs for which no initialiser is: what a caller gives.
  std::vector<ValueInfo> arguments() const;
};

/// A function of the model: an operator that is made of others.
struct Function {
  std::string domain, name;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;
  std::vector<Node> nodes;
  std::map<std::string, std::int64_t> opsets;
  std::string overload = {};  ///< tells functions of one name from each other
  std::vector<Attribute> defaults =
      {};  ///< attributes that a call may leave out, with the values that then hold
};

struct Model {
  std::string file;  ///< for messages
  std::int64_t ir_version = 8;
  std::string producer, producer_version, documentation;
  std::map<std::string, std::int64_t> opsets;  ///< by domain; ai.onnx is the empty one
  Graph graph;
  std::vector<Function> functions;
  std::map<std::string, std::string> metadata;

  /// The version of the operators of ai.onnx.
  std::int64_t opset() const;
  /// The function that a node calls, or null: that of its domain, name and overload.
  const Function* function(const Node& n) const;
};

/// How operators compute with numbers of float16 and bfloat16. Memory holds them as float32. wide: only the results of
/// the model are rounded. exact: the results of each operator are rounded to the nearest number of the type.
enum class Half : std::uint8_t { wide, exact };

/// Whether an error says that nothing computes what a node asks for, not that something is wrong.
bool is_unsupported(const Error& e);

/// Reads a file. Tensors that it keeps in other files are read from its folder.
Model load(const std::filesystem::path& path);
/// The same from memory. `name` is in messages; `folder` is where tensors in other files lie (empty: none
/// may).
Model parse(std::span<const std::byte> bytes, const std::string& name,
            const std::filesystem::path& folder = {});
/// Puts nodes into an order in which they can be computed, where they are in another. Error: there is none.
void arrange(Model& model);
/// Checks what parse checks: for models that a program makes.
void check(const Model& model);
/// The bytes of a file that parse reads as this model. Error: what check finds.
std::string write(const Model& model);

/// A tensor or sequence in a file of its own (TensorProto, SequenceProto, OptionalProto), as data sets beside
/// a model have it: of the kind that `declared` says.
Value load_value(const std::filesystem::path& path, const ValueInfo& declared);
/// The bytes of a TensorProto.
std::string write_value(const Value& value, const std::string& name = {});

}  // namespace lantern::onnx
