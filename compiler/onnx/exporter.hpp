// What the exporter is made of: a writer of nodes, the values of a program as a graph of ONNX has them, and
// one function for each kind of operation. Internal to the exporter.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lantern/compiler/onnx/export.hpp"
#include "lantern/ir/graph.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::onnx::exporting {

/// Whether a list of letters has this one.
inline bool has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

using Ints = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

/// The element type of the format for a kind of the program.
Element element_of(ir::Kind kind);

/// Nodes of the graph, and of the graphs in nodes' attributes, with constants and names. Equal nodes are one.
class Writer {
 public:
  explicit Writer(std::int64_t opset) : opset_(opset) { open(); }

  std::int64_t opset() const { return opset_; }
  /// A node with one result, whose name is returned. `hint`: a name for it.
  std::string node(const std::string& op, Names inputs, std::vector<Attribute> attributes = {},
                   const std::string& hint = {});
  /// A node with several results; it is never one with another.
  Names nodes(const std::string& op, Names inputs, std::size_t results, std::vector<Attribute> attributes);
  /// A node whose one result has this name.
  void nodes_as(const std::string& op, Names inputs, const std::string& result);

  /// Constants, as initialisers of the whole graph.
  std::string constant(const Value& value, const std::string& hint);
  std::string ints(const Ints& values);
  std::string number(double v, ir::Kind kind);
  std::string integer(std::int64_t v, ir::Kind kind = ir::Kind::i64);
  void initialiser(const std::string& name, Value value) {
    initialisers_.push_back({name, std::move(value)});
  }
  /// The elements of a constant that `ints` or `integer` made.
  std::optional<Ints> known_ints(const std::string& name) const;

  // Moves of elements; those that change nothing are left out, and one that undoes another gives what was
  // there before.
  std::string unsqueeze(const std::string& x, const Ints& axes);
  std::string squeeze(const std::string& x, const Ints& axes);
  std::string transpose(const std::string& x, const Ints& order);
  std::string reduce(const std::string& op, const std::string& x, const Ints& axes, bool keep = false);
  std::string gather(const std::string& x, const std::string& at, std::int64_t axis);
  std::string slice(const std::string& x, const Ints& from, const Ints& to, const Ints& axes,
                    const Ints& steps);
  std::string pad(const std::string& x, const Ints& before_and_after, ir::Kind kind);
  std::string cast(const std::string& x, ir::Kind to);
  /// 0, 1, ... below a number.
  std::string range(const std::string& count);

  /// A graph in an attribute: nodes go into it until it is closed.
  void open() { scopes_.emplace_back(); }
  std::vector<Node> close();
  std::size_t depth() const { return scopes_.size(); }
  /// Whether a node of the innermost graph makes it.
  bool made_here(const std::string& name) const { return scopes_.back().made.contains(name); }

  /// A name that nothing else has.
  std::string fresh(const std::string& hint);
  void reserve(const std::string& name) { used_.insert(name); }
  const std::vector<Initialiser>& initialisers() const { return initialisers_; }

  /// What was written since may be forgotten: for what turns out not to be possible.
  struct Mark {
    std::size_t nodes, depth;
  };
  Mark mark() const { return {scopes_.back().nodes.size(), scopes_.size()}; }
  void forget_since(const Mark& mark);

 private:
  struct Scope {
    std::vector<Node> nodes;
    std::unordered_map<std::string, std::string> known;  ///< results by what computes them
    std::unordered_set<std::string> made;
  };
  struct Move {
    std::string from;
    Ints axes;
  };
  std::int64_t opset_;
  std::vector<Scope> scopes_;
  std::vector<Initialiser> initialisers_;
  std::unordered_map<std::string, std::string> constants_;
  std::unordered_map<std::string, Ints> ints_;
  std::unordered_map<std::string, Move> squeezed_, unsqueezed_, transposed_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> copies_;
};

/// A size: a number, a dimension of a tensor, or (axis -1) an i64 that the graph computes.
struct Size {
  std::int64_t known = -1;
  std::string of;
  int axis = -1;

  static Size number(std::int64_t n) { return {n, {}, -1}; }
  bool is(std::int64_t n) const { return known == n; }
  friend bool operator==(const Size&, const Size&) = default;
};
using Sizes = std::vector<Size>;

/// A value of the program as the graph has it: `name`, which may have to be repeated to be of the sizes that
/// it represents (as operators do by themselves element by element).
struct Form {
  std::string name;
  ir::Kind kind = ir::Kind::f32;
  Sizes sizes;
  bool whole = true;             ///< `name` is of these sizes
  std::optional<double> number;  ///< all elements are this
  std::optional<Size> size;      ///< of an i64: it is this size

  std::size_t rank() const { return sizes.size(); }
};

/// A program on its way into a graph.
class Exporter {
 public:
  explicit Exporter(const ExportOptions& options) : w(options.opset) {}

  Writer w;
  std::unordered_map<const ir::Value*, Form> forms;
  std::unordered_map<std::int64_t, Form> tapes;  ///< what was last pushed, or what the next pop gives

  /// The operations of a block but for the yield.
  void run(const ir::Block& block);
  void run(const ir::Op& op);
  const Form& form(const ir::Value* v) const;
  void give(const ir::Op& op, Form f) { forms[op.results[0]] = std::move(f); }

  // ---- forms
  /// A form of the type's kind and, where those are known, sizes; others are the tensor's own.
  Form named(const std::string& name, const ir::Type& type) const;
  /// The same with sizes for those that the type leaves open.
  Form sized(const std::string& name, const ir::Type& type, const Sizes& sizes, bool whole = true) const;
  Form literal(double v, ir::Kind kind);
  Form integer(const Size& size);
  /// The value with all of its elements.
  std::string whole(const Form& f);
  std::string whole(const ir::Value* v) { return whole(form(v)); }
  Size size_of(const ir::Value* v) const;
  /// A size as an i64; sizes as a vector of them.
  std::string scalar(const Size& s);
  std::string vector(const Sizes& all);
  std::string reshape(const std::string& x, const Sizes& to);

  // ---- arithmetic on numbers and tensors that fit by repetition
  std::string elementwise(ir::Opcode op, ir::Kind kind, const Names& operands);
  Form elementwise(ir::Opcode op, const std::vector<Form>& operands, const ir::Type& result);
  /// x times a number; a quotient by that is x again.
  std::string scaled(const std::string& x, double by, ir::Kind kind);
  Size add(const Size& a, std::int64_t factor, const Size& b);  ///< a + factor b

  [[noreturn]] void refuse(const ir::Op& op, const std::string& what, const std::string& remedy) const;

 private:
  std::map<std::string, std::pair<std::string, double>> scaled_;
  std::map<std::string, std::pair<std::string, std::size_t>> filled_;  ///< tensors of one value
};

/// Gives what makes a result of the graph its name, in place of a node that only renames it.
void name_results(Graph& graph);

/// Whether the operation is one of the table of elementwise.cpp.
bool has_formula(ir::Opcode op);
/// Operations in index notation; on tensors; loops and branches. False where it is none of them.
void write_notation(Exporter& e, const ir::Op& op);
bool write_tensor(Exporter& e, const ir::Op& op);
void write_branch(Exporter& e, const ir::Op& op);
void write_loop(Exporter& e, const ir::Op& op);

/// A counting loop: its index goes from `from` up to below `to` by ones.
struct Counting {
  std::size_t state;  ///< which state is the index
  const ir::Value* from;
  const ir::Value* to;
  bool down = false;  ///< from `from` down to above `to`
};
std::optional<Counting> counting(const ir::Op& loop);
/// A loop as operators on whole tensors; false where its iterations depend on each other.
bool write_as_tensors(Exporter& e, const ir::Op& loop);

/// A convolution, its transpose or a sum over windows, as an operator of its own (export_window.cpp); false
/// where it is none, or one that no operator computes.
bool write_window(Exporter& e, const ir::Op& op, const ir::Notation& n);

// What a place of a notation with several indices means, for whoever reads elements there.
/// x with dimension `axis` replaced by dimensions of the indices, read at factor * index + ... + constant;
/// what lies outside is zero unless `inside`.
std::string read_at(Exporter& e, const std::string& x, ir::Kind kind, std::size_t rank, std::size_t axis,
                    const Size& size, const Ints& factors, const Sizes& counts, std::int64_t constant,
                    bool inside);
/// The value of an integer that is a constant.
std::optional<std::int64_t> literal_integer(const ir::Value* v);

Attribute attribute(const std::string& name, Attribute::Content content);

}  // namespace lantern::onnx::exporting
