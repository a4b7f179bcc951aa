// From plain structs to the file format's messages.
#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

#include <cstring>
#include <limits>

#include "lantern/compiler/onnx/model.hpp"

namespace lantern::onnx {

namespace {

using Type = ::onnx::AttributeProto;

template <class File, class Kept>
void put(std::span<const Kept> from, std::string& raw) {
  for (const Kept k : from) {
    const auto v = static_cast<File>(k);
    char bytes[sizeof(File)];  // NOLINT
    std::memcpy(bytes, &v, sizeof(File));
    raw.append(bytes, sizeof(File));
  }
}

/// Elements of 8 bits or fewer, the first in the lowest bits of a byte.
void pack(const Value& v, std::string& raw) {
  const std::size_t bits = bits_in_file(v.element()), each = 8 / bits;
  raw.assign(bytes_in_file(v.element(), static_cast<std::size_t>(v.size())), '\0');
  for (std::size_t i = 0; i < static_cast<std::size_t>(v.size()); ++i) {
    const unsigned code = is_float(v.element()) ? format_bits(v.element(), v.elements<float>()[i])
                                                : static_cast<unsigned>(v.elements<std::int32_t>()[i]);
    raw[i / each] = static_cast<char>(static_cast<unsigned char>(raw[i / each]) | (code & ((1u << bits) - 1))
                                                                                      << (bits * (i % each)));
  }
}

void write(const Value& v, const std::string& name, ::onnx::TensorProto& to) {
  if (v.is_sequence()) throw Error("tensor '" + name + "': expected a tensor, got a " + v.describe());
  to.set_name(name);
  to.set_data_type(static_cast<int>(v.element()));
  for (const std::int64_t d : v.shape()) to.add_dims(d);
  if (v.element() == Element::string) {
    for (const std::string& s : v.texts()) to.add_string_data(s);
    return;
  }
  std::string& raw = *to.mutable_raw_data();
  switch (v.element()) {
    case Element::float32:
      return put<float>(v.elements<float>(), raw);
    case Element::float64:
      return put<double>(v.elements<double>(), raw);
    case Element::int8:
      return put<std::int8_t>(v.elements<std::int32_t>(), raw);
    case Element::uint8:
      return put<std::uint8_t>(v.elements<std::int32_t>(), raw);
    case Element::int16:
      return put<std::int16_t>(v.elements<std::int32_t>(), raw);
    case Element::uint16:
      return put<std::uint16_t>(v.elements<std::int32_t>(), raw);
    case Element::int32:
      return put<std::int32_t>(v.elements<std::int32_t>(), raw);
    case Element::uint32:
      return put<std::uint32_t>(v.elements<std::int64_t>(), raw);
    case Element::int64:
    case Element::uint64:
      return put<std::int64_t>(v.elements<std::int64_t>(), raw);
    case Element::boolean:
      return put<std::uint8_t>(v.elements<bool>(), raw);
    case Element::float16:
    case Element::bfloat16:
      break;
    default:
      return pack(v, raw);
  }
  for (const float x : v.elements<float>()) {
    const std::uint16_t bits = v.element() == Element::float16 ? half_bits(x) : bfloat_bits(x);
    raw.push_back(static_cast<char>(bits & 0xff));
    raw.push_back(static_cast<char>(bits >> 8));
  }
}

void write(const Graph& g, ::onnx::GraphProto& to);

struct ContentWriter {
  ::onnx::AttributeProto& to;

  void operator()(double v) const { to.set_type(Type::FLOAT), to.set_f(static_cast<float>(v)); }
  void operator()(std::int64_t v) const { to.set_type(Type::INT), to.set_i(v); }
  void operator()(const std::string& v) const { to.set_type(Type::STRING), to.set_s(v); }
  void operator()(const Value& v) const { to.set_type(Type::TENSOR), write(v, "", *to.mutable_t()); }
  void operator()(const GraphPointer& v) const { to.set_type(Type::GRAPH), write(*v, *to.mutable_g()); }
  void operator()(const std::vector<double>& all) const {
    to.set_type(Type::FLOATS);
    for (const double v : all) to.add_floats(static_cast<float>(v));
  }
  void operator()(const std::vector<std::int64_t>& all) const {
    to.set_type(Type::INTS);
    for (const std::int64_t v : all) to.add_ints(v);
  }
  void operator()(const std::vector<std::string>& all) const {
    to.set_type(Type::STRINGS);
    for (const std::string& v : all) to.add_strings(v);
  }
  void operator()(const std::vector<Value>& all) const {
    to.set_type(Type::TENSORS);
    for (const Value& v : all) write(v, "", *to.add_tensors());
  }
  void operator()(const std::vector<GraphPointer>& all) const {
    to.set_type(Type::GRAPHS);
    for (const GraphPointer& v : all) write(*v, *to.add_graphs());
  }
};

void write(const Attribute& a, ::onnx::AttributeProto& to) {
  to.set_name(a.name);
  if (a.reference.empty()) {
    std::visit(ContentWriter{to}, a.content);
  } else {
    to.set_ref_attr_name(a.reference);
    to.set_type(static_cast<Type::AttributeType>(a.declared));
  }
}

/// A field that the format got after the headers of its library were made, by its number.
template <class Message>
void add_newer(Message& to, int number, const std::string& bytes) {
  to.mutable_unknown_fields()->AddLengthDelimited(number, bytes);
}

void write(const Node& n, ::onnx::NodeProto& to) {
  to.set_name(n.name);
  to.set_op_type(n.op);
  to.set_domain(n.domain);
  for (const std::string& i : n.inputs) to.add_input(i);
  for (const std::string& o : n.outputs) to.add_output(o);
  for (const Attribute& a : n.attributes) write(a, *to.add_attribute());
  if (!n.overload.empty()) add_newer(to, 8, n.overload);
}

void write(const ValueInfo& v, ::onnx::ValueInfoProto& to) {
  using Structure = ValueInfo::Structure;
  to.set_name(v.name);
  if (v.structure == Structure::unknown) return;
  if (v.structure == Structure::map || v.structure == Structure::sparse_tensor)
    throw Error("value '" + v.name +
                "': expected a tensor, a sequence or an optional value, got a map or sparse tensor");
  ::onnx::TypeProto* type = to.mutable_type();
  if (v.structure == Structure::optional) type = type->mutable_optional_type()->mutable_elem_type();
  if (v.structure == Structure::sequence || v.holds_sequence)
    type = type->mutable_sequence_type()->mutable_elem_type();
  auto& tensor = *type->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int>(v.element));
  if (!v.shape) return;
  auto& shape = *tensor.mutable_shape();
  for (const Dimension& d : *v.shape) {
    auto& dim = *shape.add_dim();
    if (d.size)
      dim.set_dim_value(*d.size);
    else if (!d.symbol.empty())
      dim.set_dim_param(d.symbol);
  }
}

void write(const Graph& g, ::onnx::GraphProto& to) {
  to.set_name(g.name);
  for (const Node& n : g.nodes) write(n, *to.add_node());
  for (const ValueInfo& v : g.inputs) write(v, *to.add_input());
  for (const ValueInfo& v : g.outputs) write(v, *to.add_output());
  for (const ValueInfo& v : g.values) write(v, *to.add_value_info());
  for (const Initialiser& i : g.initialisers) write(i.value, i.name, *to.add_initializer());
}

std::string bytes_of(const google::protobuf::MessageLite& message) {
  std::string bytes;
  if (message.ByteSizeLong() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !message.SerializeToString(&bytes))
    throw Error("expected a model of less than 2 GB, as the format allows, got " +
                std::to_string(message.ByteSizeLong()) + " bytes");
  return bytes;
}

template <class To>
void write_opsets(const std::map<std::string, std::int64_t>& opsets, To& to) {
  for (const auto& [domain, version] : opsets) {
    auto& entry = *to.add_opset_import();
    entry.set_domain(domain);
    entry.set_version(version);
  }
}

}  // namespace

std::string write(const Model& model) {
  check(model);
  ::onnx::ModelProto to;
  to.set_ir_version(model.ir_version);
  to.set_producer_name(model.producer);
  to.set_producer_version(model.producer_version);
  to.set_doc_string(model.documentation);
  write_opsets(model.opsets, to);
  write(model.graph, *to.mutable_graph());
  for (const Function& f : model.functions) {
    ::onnx::FunctionProto& out = *to.add_functions();
    out.set_domain(f.domain);
    out.set_name(f.name);
    for (const std::string& i : f.inputs) out.add_input(i);
    for (const std::string& o : f.outputs) out.add_output(o);
    for (const std::string& a : f.attributes) out.add_attribute(a);
    for (const Node& n : f.nodes) write(n, *out.add_node());
    if (!f.overload.empty()) add_newer(out, 13, f.overload);
    for (const Attribute& a : f.defaults) {
      ::onnx::AttributeProto one;
      write(a, one);
      add_newer(out, 11, one.SerializeAsString());
    }
    write_opsets(f.opsets, out);
  }
  for (const auto& [key, value] : model.metadata) {
    auto& entry = *to.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  return bytes_of(to);
}

std::string write_value(const Value& value, const std::string& name) {
  ::onnx::TensorProto to;
  write(value, name, to);
  return bytes_of(to);
}

}  // namespace lantern::onnx
