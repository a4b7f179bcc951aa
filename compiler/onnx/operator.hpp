// What operators are made of: the values of a graph while it is staged, one node at a time, and the table of
// operators. Internal to the importer.
//
// A graph is a program over Datums, so it runs eagerly, is staged, and is differentiated like any other.
// Small tensors also carry their elements one by one, each a Datum that may be a literal: what is computed
// from sizes (Shape, Gather, Concat, ... before a Reshape) stays known while staging where the sizes are, and
// is ordinary code where they are not (partial.cpp).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lantern/compiler/onnx/model.hpp"
#include "lantern/compiler/tensor/build.hpp"
#include "lantern/compiler/tensor/index.hpp"
#include "lantern/compiler/tensor/reduce.hpp"
#include "lantern/compiler/tensor/shape.hpp"
#include "lantern/compiler/tensor/window.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::onnx {

using core::Datum;
using core::Datums;
using core::FloatFormat;
using core::Opcode;
using core::detail::Build;
using core::detail::Indices;
using core::detail::known;
using Sizes = std::vector<std::int64_t>;

/// Which arguments of the program a value depends on, a bit each; those from number 63 on share one.
using Origins = std::uint64_t;

/// Tensors of up to so many elements carry them one by one.
inline constexpr std::int64_t most_elements = 2048;

/// Something must be known while staging and is not: the elements of what comes from `origins`, or, with
/// `shapes`, a size. A session then stages for the values or shapes that it is given.
class Unknown : public Error {
 public:
  Unknown(const std::string& message, Origins from, bool of_shapes)
      : Error(message), origins(from), shapes(of_shapes) {}
  Origins origins;
  bool shapes;
};
/// Nothing computes what a node asks for.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// A value of a graph: a tensor or a number (of rank 0), a sequence, or nothing (an optional value that is
/// empty).
struct Term {
  enum class Structure : std::uint8_t { none, tensor, sequence };

  Structure structure = Structure::none;
  Element element = Element::undefined;
  Datum datum;                     ///< empty while nothing needed more than the elements
  std::optional<Datums> elements;  ///< one by one, of a tensor of this shape:
  Sizes shape;
  std::shared_ptr<const Value>
      given;                ///< of a weight: what it is where something must be known while staging
  std::vector<Term> items;  ///< of a sequence
  Origins origins = 0;

  static Term tensor(Datum d, Element e);
  static Term of_elements(Datums all, Sizes shape, Element e);
  static Term sequence(std::vector<Term> items, Element e);

  bool present() const { return structure != Structure::none; }
  bool is_tensor() const { return structure == Structure::tensor; }
  int rank() const;
  /// The sizes that are known; ir::dynamic for the others.
  Sizes dims() const;
  /// Whether every element is a literal.
  bool literal() const;
};
using Terms = std::vector<Term>;

/// A tensor, or number, of these elements.
Datum assembled(const Build& b, const Datums& elements, const Sizes& shape, ir::Kind kind);
/// The elements of a value as literals, and a value of literals.
Term constant(const Value& v);
std::optional<Value> value_of(const Term& t);
/// A value as an eager tensor, or a number.
Datum boxed(const Value& v);
Value unboxed(const Datum& d, Element e);

struct Execution;
struct Frame;

/// A node that is being computed.
class Call {
 public:
  Call(Execution& execution, const Frame& around, const Node& n, std::int64_t version, Terms operands);

  const Node& node;
  const std::int64_t opset;
  const Build b;
  Terms in;
  Execution& execution;
  const Frame& frame;

  // ---- operands
  bool has(std::size_t i) const { return i < in.size() && in[i].present(); }
  const Term& term(std::size_t i) const;
  Datum operator[](std::size_t i) const { return datum(term(i)); }
  Datum datum(const Term& t) const;
  Element element(std::size_t i = 0) const { return term(i).element; }
  /// Elements that must be known while staging; `what` says which. Numbers are those of any shape in
  /// row-major order.
  Sizes integers(std::size_t i, const char* what) const { return integers(term(i), what); }
  Sizes integers(const Term& t, const char* what) const;
  std::vector<double> numbers(std::size_t i, const char* what) const;
  std::int64_t integer(std::size_t i, const char* what) const;
  double number(std::size_t i, const char* what) const;
  Value value(const Term& t, const char* what) const;
  /// Elements one by one, some of which may be known only at run time.
  Datums elements(std::size_t i, const char* what) const;
  /// The integer in a tensor of one element, a literal where it is known while staging: sizes come of it.
  Datum single(std::size_t i, const char* what) const;

  // ---- shapes
  int rank(std::size_t i = 0) const { return term(i).rank(); }
  Indices sizes(const Datum& t) const { return t.type().is_tensor() ? b.sizes(t) : Indices(); }
  /// A size that must be known while staging.
  std::int64_t known_size(const Datum& t, int d) const;
  Sizes known_sizes(const Datum& t) const;
  /// An axis from 0 on; `places`: of how many.
  int axis(std::int64_t given, int places, const char* what = "axis") const;
  std::vector<int> axes(const Sizes& given, int places, const char* what = "axes") const;

  // ---- attributes
  bool has_attribute(const char* name) const { return node.find(name) != nullptr; }
  std::int64_t attribute(const char* name, std::int64_t otherwise) const;
  std::int64_t attribute(const char* name) const;
  double attribute(const char* name, double otherwise) const;
  std::string attribute(const char* name, const std::string& otherwise) const;
  Sizes attributes(const char* name, Sizes otherwise = {}) const;
  std::vector<double> real_attributes(const char* name) const;
  std::vector<std::string> text_attributes(const char* name) const;
  const Graph& graph_attribute(const char* name) const;
  Element element_attribute(const char* name, Element otherwise) const;

  // ---- arithmetic on Datums
  Datum op(Opcode code, const Datum& x) const { return b.unary(code, x); }
  Datum op(Opcode code, const Datum& x, const Datum& y) const { return b.binary(code, x, y); }
  Datum number(double v, const Datum& like) const { return Build::number(v, like); }
  Datum integer(std::int64_t v) const { return Build::integer(v); }
  Datum cast(const Datum& x, ir::Kind to) const { return b.cast(x, to); }
  Datum cast(const Datum& x, Element to) const { return b.cast(x, kind_of(to)); }
  Datum where(const Datum& c, const Datum& x, const Datum& y) const;
  /// All elements brought into what the element type holds: integers wrap.
  Datum wrapped(const Datum& x, Element e) const;
  /// In another shape; a number where there are no sizes.
  Datum reshape(const Datum& x, const Indices& sizes) const;
  Datum expand(const Datum& x, const Indices& sizes) const;
  Datum get(const Datum& x, const Indices& at) const { return at.empty() ? x : b.get(x, at); }
  Datum permute(const Datum& x, const std::vector<int>& axes) const;
  /// The tensor of these sizes, a number where there are none.
  Datum tabulate(ir::Kind k, const Indices& sizes, const std::function<Datum(const Indices&)>& body) const {
    return sizes.empty() ? body({}) : b.tabulate(k, sizes, body);
  }
  Datum fill(const Datum& v, const Indices& sizes) const { return sizes.empty() ? v : b.fill(v, sizes); }
  Datum product(const Indices& sizes) const;
  static Indices literals(const Sizes& sizes);

  // ---- results
  Term result(const Datum& d, Element e) const { return Term::tensor(d, e); }
  Term result(const Datum& d) const { return Term::tensor(d, element(0)); }

  // ---- errors
  [[noreturn]] void fail(const std::string& message) const { throw Error(message); }
  void require(bool ok, const std::string& message) const {
    if (!ok) throw Error(message);
  }
  [[noreturn]] void unsupported(const std::string& what) const { throw Unsupported(what); }
  void require_operands(std::size_t least, std::size_t most) const;
  /// Error unless the operand's elements are of such a kind.
  void require_float(std::size_t i) const;
};

/// What a node computes. Rules give one Term for each output that they know of, in order.
using Rule = Terms (*)(const Call&);
/// The same on elements one by one; nothing where it does not apply.
using PartialRule = std::optional<Terms> (*)(const Call&, Rule);

/// A row of the table: what an operator means from one version of its domain on, to the next row.
struct Operator {
  const char* domain;  ///< "" is ai.onnx
  const char* name;
  int since, until;  ///< the first and the last version
  Rule rule;
  PartialRule partial = nullptr;
  bool foldable = true;  ///< computed at once where all operands are known
  bool texts = false;    ///< of strings, too
};

/// All operators (table.cpp).
std::span<const Operator> operators();
/// The operator of a node; null where there is none, and then why.
const Operator* find_operator(const std::string& domain, const std::string& name, std::int64_t version,
                              std::string& why);

/// Values by name, of a graph and of those around it.
struct Frame {
  const Frame* outer = nullptr;
  std::unordered_map<std::string, Term> values;
  /// Of a function: the attributes of the node that calls it.
  const Node* caller = nullptr;
  const Function* function = nullptr;
  const std::map<std::string, std::int64_t>* opsets = nullptr;
  int depth = 0;

  const Term* find(const std::string& name) const;
};

/// One run of a model's graph: eager, or while something is staged.
struct Execution {
  const Model& model;
  /// Weights that are values of the program: by the Value in the model.
  std::unordered_map<const Value*, Datum> leaves;
  /// Weights whose elements were asked for while staging.
  std::set<const Value*> consulted;
  std::size_t nodes = 0;     ///< that were computed
  std::uint64_t random = 0;  ///< random operators so far
  Half half = Half::wide;

  std::string place;                ///< represents the file in the places of operations
  std::vector<std::string> labels;  ///< of the nodes, by number

  explicit Execution(const Model& m);

  /// The graph's outputs, of its arguments in the order of Graph::arguments().
  Terms run(const Terms& arguments);
  /// A graph in an attribute: its outputs, of its inputs in order.
  Terms run(const Graph& g, const Terms& inputs, const Frame& around);

  Term weight(const Value& v, bool may_be_literal);

 private:
  void run_nodes(const std::vector<Node>& nodes, Frame& frame);
  Terms run_node(const Node& node, Frame& frame);
  Terms run_operator(const Operator& op, Call& call);
  Terms computed(const Operator& op, Call& call);
  Terms run_function(const Function& f, const Node& node, const Terms& operands, const Frame& frame);
};

/// Weights of a model that are too large to be literals, or floating: what a program takes as arguments, with
/// a name for each. Those in graphs of control flow and in functions are named after their nodes.
struct Leaf {
  std::string name;
  const Value* value;
  bool constant = false;  ///< an attribute of a node
};
std::vector<Leaf> leaves_of(const Model& model);
bool is_leaf(const Value& v);

}  // namespace lantern::onnx
