// From the file format's messages to plain structs.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx-data_pb.h>
#include <onnx/onnx_pb.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>

#include "lantern/compiler/onnx/model.hpp"

namespace lantern::onnx {

namespace {

namespace fs = std::filesystem;
using AttributeType = ::onnx::AttributeProto;

/// What is read, and where it comes from: for messages, and for tensors in other files.
struct ModelReader {
  std::string file;
  fs::path folder;

  [[noreturn]] void fail(const std::string& where, const std::string& what) const {
    throw Error(file + ": " + (where.empty() ? "" : where + ": ") + what);
  }

  Value value(const ::onnx::TensorProto& t, const std::string& where) const;
  Value dense(const ::onnx::SparseTensorProto& t, const std::string& where) const;
  Attribute attribute(const ::onnx::AttributeProto& a, const std::string& node, int depth) const;
  Node node(const ::onnx::NodeProto& n, int depth) const;
  Graph graph(const ::onnx::GraphProto& g, int depth) const;
  Function function(const ::onnx::FunctionProto& f) const;
  ValueInfo info(const ::onnx::ValueInfoProto& v) const;
  Model model(::onnx::ModelProto& m) const;
  std::string external(const ::onnx::TensorProto& t, std::size_t bytes, const std::string& where) const;
};

std::string tensor_label(const ::onnx::TensorProto& t) { return "tensor '" + t.name() + "'"; }

Element element_of_number(int number) {
  return number >= 0 && number <= static_cast<int>(last_element) ? static_cast<Element>(number)
                                                                 : Element::undefined;
}

/// One element as it lies in a file, as one that lies in a Value.
template <class File, class Kept>
void take(const char* from, std::span<Kept> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    File v;
    std::memcpy(&v, from + i * sizeof(File), sizeof(File));
    to[i] = static_cast<Kept>(v);
  }
}

void take_raw(const std::string& raw, Value& v) {
  const char* const from = raw.data();
  const auto n = static_cast<std::size_t>(v.size());
  switch (v.element()) {
    case Element::float32:
      return take<float>(from, v.mutable_elements<float>());
    case Element::float64:
      return take<double>(from, v.mutable_elements<double>());
    case Element::int8:
      return take<std::int8_t>(from, v.mutable_elements<std::int32_t>());
    case Element::uint8:
      return take<std::uint8_t>(from, v.mutable_elements<std::int32_t>());
    case Element::int16:
      return take<std::int16_t>(from, v.mutable_elements<std::int32_t>());
    case Element::uint16:
      return take<std::uint16_t>(from, v.mutable_elements<std::int32_t>());
    case Element::int32:
      return take<std::int32_t>(from, v.mutable_elements<std::int32_t>());
    case Element::uint32:
      return take<std::uint32_t>(from, v.mutable_elements<std::int64_t>());
    case Element::int64:
    case Element::uint64:
      return take<std::int64_t>(from, v.mutable_elements<std::int64_t>());
    case Element::boolean:
      for (std::size_t i = 0; i < n; ++i) v.mutable_elements<bool>()[i] = from[i] != 0;
      return;
    case Element::float16:
    case Element::bfloat16:
      for (std::size_t i = 0; i < n; ++i) {
        std::uint16_t bits;
        std::memcpy(&bits, from + 2 * i, 2);
        v.mutable_elements<float>()[i] =
            v.element() == Element::float16 ? from_half_bits(bits) : from_bfloat_bits(bits);
      }
      return;
    default:
      break;
  }
  // Elements of 8 bits or fewer, the first in the lowest bits of a byte.
  const std::size_t bits = bits_in_file(v.element()), each = 8 / bits;
  const bool number = is_float(v.element()), sign = !number && !is_unsigned(v.element());
  for (std::size_t i = 0; i < n; ++i) {
    const auto code = static_cast<std::uint8_t>(
        (static_cast<unsigned char>(from[i / each]) >> (bits * (i % each))) & ((1u << bits) - 1));
    if (number)
      v.mutable_elements<float>()[i] = from_format_bits(v.element(), code);
    else
      v.mutable_elements<std::int32_t>()[i] = code - (sign && (code >> (bits - 1)) != 0 ? 1 << bits : 0);
  }
}

/// The folder of the model, and what a tensor says of a file in it.
std::string ModelReader::external(const ::onnx::TensorProto& t, std::size_t bytes, const std::string& where) const {
  std::string location;
  std::uint64_t offset = 0, length = bytes;
  for (const auto& entry : t.external_data()) {
    const auto number = [&] {
      std::uint64_t n = 0;
      if (entry.value().empty() || entry.value().size() > 18)
        fail(where,
             "expected a number for '" + entry.key() + "' of its external data, got '" + entry.value() + "'");
      for (const char c : entry.value()) {
        if (c < '0' || c > '9')
          fail(where, "expected a number for '" + entry.key() + "' of its external data, got '" +
                          entry.value() + "'");
        n = 10 * n + static_cast<std::uint64_t>(c - '0');
      }
      return n;
    };
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number();
    if (entry.key() == "length") length = number();
  }
  const fs::path inside(location);
  std::error_code no;
  if (folder.empty())
    fail(where, "its elements lie in another file, '" + location + "': load the model from its folder");
  bool out = location.empty() || inside.is_absolute();
  for (const fs::path& part : inside) out = out || part == "..";
  const fs::path root = fs::weakly_canonical(folder, no), path = fs::weakly_canonical(root / inside, no);
  const auto relative = path.lexically_relative(root);
  if (out || relative.empty() || *relative.begin() == "..")
    fail(where, "expected its elements in a file in the folder of the model, got '" + location +
                    "': files elsewhere are not read");
  if (!fs::is_regular_file(path, no))
    fail(where, "expected its elements in the file '" + location + "', which there is not");
  const std::uint64_t size = fs::file_size(path, no);
  if (no || length != bytes || offset > size || size - offset < length)
    fail(where, "expected " + std::to_string(bytes) + " bytes of elements, got " + std::to_string(length) +
                    " from byte " + std::to_string(offset) + " of '" + location + "', which has " +
                    std::to_string(size));
  std::string data(bytes, '\0');
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  if (!in.read(data.data(), static_cast<std::streamsize>(bytes)))
    fail(where, "cannot read '" + location + "'");
  return data;
}

Value ModelReader::value(const ::onnx::TensorProto& t, const std::string& where) const {
  const Element element = element_of_number(t.data_type());
  if (element == Element::undefined)
    fail(where, "expected the number of an element type, 1 to " +
                    std::to_string(static_cast<int>(last_element)) + ", got " +
                    std::to_string(t.data_type()));
  if (!is_supported(element) && element != Element::string)
    fail(where,
         std::string("expected elements that are bool, integers or real floating-point numbers, got ") +
             name(element) + ": nothing is computed with those");
  if (t.has_segment()) fail(where, "expected a tensor in one piece, got a segment of one");
  std::vector<std::int64_t> shape(t.dims().begin(), t.dims().end());
  if (!core::addressable(shape) || shape.size() > 64)
    fail(where, "expected the shape of a tensor, got " + shape_text(shape) +
                    ": sizes are 0 or more, and a tensor has to fit into memory");
  std::int64_t count = 1;
  for (const std::int64_t d : shape) count *= d;
  const auto n = static_cast<std::size_t>(count);
  const auto need = [&](std::size_t got, const char* what, std::size_t expected) {
    if (got != expected)
      fail(where, "expected " + std::to_string(expected) + " " + what + " for " + name(element) +
                      shape_text(shape) + ", got " + std::to_string(got) +
                      ": the file is damaged or cut off");
  };
  if (element == Element::string) {
    need(static_cast<std::size_t>(t.string_data_size()), "strings", n);
    return Value::of_texts({t.string_data().begin(), t.string_data().end()}, shape);
  }
  const std::size_t bytes = bytes_in_file(element, n), bits = bits_in_file(element);
  if (t.data_location() == ::onnx::TensorProto::EXTERNAL) {
    const std::string data = external(t, bytes, where);  // checked before memory is asked for
    Value v(element, shape);
    take_raw(data, v);
    return v;
  }
  if (t.has_raw_data()) {
    need(t.raw_data().size(), "bytes", bytes);
    Value v(element, shape);
    take_raw(t.raw_data(), v);
    return v;
  }
  const auto copy = [&](const auto& field, auto type, auto convert) {
    need(static_cast<std::size_t>(field.size()), "elements", n);
    Value v(element, shape);
    auto to = v.mutable_elements<decltype(type)>();
    for (std::size_t i = 0; i < n; ++i) to[i] = convert(field.Get(static_cast<int>(i)));
    return v;
  };
  const auto as_integer = [](auto x) { return static_cast<std::int64_t>(x); };
  if (element != Element::boolean &&
      bits <= 16) {  // each entry has the bits of an element, or of a byte of them
    need(static_cast<std::size_t>(t.int32_data_size()), "elements", bits < 8 ? bytes : n);
    std::string raw;
    raw.reserve(bytes);
    for (const std::int32_t x : t.int32_data()) {
      raw.push_back(static_cast<char>(x & 0xff));
      if (bits == 16) raw.push_back(static_cast<char>((x >> 8) & 0xff));
    }
    Value v(element, shape);
    take_raw(raw, v);
    return v;
  }
  switch (element) {
    case Element::float32:
      return copy(t.float_data(), float{}, [](float x) { return x; });
    case Element::float64:
      return copy(t.double_data(), double{}, [](double x) { return x; });
    case Element::int64:
      return copy(t.int64_data(), std::int64_t{}, as_integer);
    case Element::uint32:
      return copy(t.uint64_data(), std::int64_t{},
                  [](auto x) { return static_cast<std::int64_t>(static_cast<std::uint32_t>(x)); });
    case Element::uint64:
      return copy(t.uint64_data(), std::int64_t{}, as_integer);
    case Element::boolean:
      return copy(t.int32_data(), bool{}, [](auto x) { return x != 0; });
    default:
      return copy(t.int32_data(), std::int32_t{}, [](auto x) { return x; });
  }
}

/// With zeros where it says nothing: places are numbers of elements in row-major order, or an index for each
/// dimension.
Value ModelReader::dense(const ::onnx::SparseTensorProto& t, const std::string& where) const {
  const Value values = value(t.values(), where), places = value(t.indices(), where + ", its indices");
  const std::vector<std::int64_t> shape(t.dims().begin(), t.dims().end());
  constexpr std::int64_t most = std::int64_t{1} << 26;
  std::int64_t count = 1;
  for (const std::int64_t d : shape) {
    if (d < 0 || (d > 0 && count > most / d))
      fail(where, "expected a sparse tensor of at most " + std::to_string(most) +
                      " elements in all, got shape " + shape_text(shape) + ": make it dense in the file");
    count *= d;
  }
  const std::int64_t given = values.size();
  const auto rank = static_cast<std::int64_t>(shape.size());
  const bool flat = places.shape() == std::vector<std::int64_t>{given};
  if (values.element() == Element::string || values.shape().size() != 1 ||
      places.element() != Element::int64 ||
      (!flat && places.shape() != std::vector<std::int64_t>{given, rank}))
    fail(where, "expected a vector of numbers, and int64 indices of shape " + shape_text({{given}}) + " or " +
                    shape_text({{given, rank}}) + ", got " + values.describe() + " and " + places.describe());
  Value out(values.element(), shape);
  const std::size_t bytes = given == 0 ? 0 : values.bytes().size() / static_cast<std::size_t>(given);
  for (std::int64_t i = 0; i < given; ++i) {
    std::int64_t at = flat ? places.integer_at(static_cast<std::size_t>(i)) : 0;
    bool inside = true;
    for (std::int64_t d = 0; d < rank && !flat; ++d) {
      const std::int64_t k = places.integer_at(static_cast<std::size_t>(i * rank + d)),
                         n = shape[static_cast<std::size_t>(d)];
      inside = inside && k >= 0 && k < n;
      if (inside) at = at * n + k;
    }
    if (!inside || at < 0 || at >= count)
      fail(where, "expected indices of elements of " + shape_text(shape) + ", got others at entry " +
                      std::to_string(i));
    std::memcpy(out.mutable_bytes().data() + static_cast<std::size_t>(at) * bytes,
                values.bytes().data() + static_cast<std::size_t>(i) * bytes, bytes);
  }
  return out;
}

Attribute ModelReader::attribute(const ::onnx::AttributeProto& a, const std::string& where_node, int depth) const {
  const std::string where = where_node + ": attribute '" + a.name() + "'";
  Attribute out{a.name(), std::int64_t{0}, a.ref_attr_name(), a.type()};
  if (!out.reference.empty()) return out;
  const auto expect = [&](bool there, const char* what) {
    if (!there)
      fail(where, std::string("expected ") + what + ", got none: its type and what it holds do not fit");
  };
  int type = a.type();
  if (type == AttributeType::UNDEFINED) {  // files of the first versions have no types
    type = a.has_f()              ? AttributeType::FLOAT
           : a.has_i()            ? AttributeType::INT
           : a.has_s()            ? AttributeType::STRING
           : a.has_t()            ? AttributeType::TENSOR
           : a.has_g()            ? AttributeType::GRAPH
           : a.floats_size() > 0  ? AttributeType::FLOATS
           : a.ints_size() > 0    ? AttributeType::INTS
           : a.strings_size() > 0 ? AttributeType::STRINGS
                                  : AttributeType::UNDEFINED;
    out.declared = type;
  }
  switch (type) {
    case AttributeType::FLOAT:
      expect(a.has_f(), "a floating-point number");
      out.content = static_cast<double>(a.f());
      break;
    case AttributeType::INT:
      expect(a.has_i(), "an integer");
      out.content = static_cast<std::int64_t>(a.i());
      break;
    case AttributeType::STRING:
      expect(a.has_s(), "a string");
      out.content = a.s();
      break;
    case AttributeType::TENSOR:
      expect(a.has_t(), "a tensor");
      out.content = value(a.t(), where);
      break;
    case AttributeType::GRAPH:
      expect(a.has_g(), "a graph");
      out.content = std::make_shared<const Graph>(graph(a.g(), depth + 1));
      break;
    case AttributeType::FLOATS:
      out.content = std::vector<double>(a.floats().begin(), a.floats().end());
      break;
    case AttributeType::INTS:
      out.content = std::vector<std::int64_t>(a.ints().begin(), a.ints().end());
      break;
    case AttributeType::STRINGS:
      out.content = std::vector<std::string>(a.strings().begin(), a.strings().end());
      break;
    case AttributeType::TENSORS: {
      std::vector<Value> all;
      for (const auto& t : a.tensors()) all.push_back(value(t, where));
      out.content = std::move(all);
      break;
    }
    case AttributeType::GRAPHS: {
      std::vector<GraphPointer> all;
      for (const auto& g : a.graphs()) all.push_back(std::make_shared<const Graph>(graph(g, depth + 1)));
      out.content = std::move(all);
      break;
    }
    case AttributeType::SPARSE_TENSOR:
      expect(a.has_sparse_tensor(), "a sparse tensor");
      out.content = dense(a.sparse_tensor(), where);
      break;
    case AttributeType::SPARSE_TENSORS: {
      std::vector<Value> all;
      for (const auto& t : a.sparse_tensors()) all.push_back(dense(t, where));
      out.content = std::move(all);
      break;
    }
    case AttributeType::TYPE_PROTO:
    case AttributeType::TYPE_PROTOS:
      out.content = std::string();
      break;  // a declaration, which nothing is computed from
    default:
      fail(where, "expected the number of an attribute type, 1 to 14, got " + std::to_string(type));
  }
  return out;
}

/// Parses a message; false where the bytes are none.
template <class Message>
bool parsed(google::protobuf::io::ZeroCopyInputStream& stream, Message& message) {
  google::protobuf::io::CodedInputStream in(&stream);
  in.SetRecursionLimit(4 * deepest_graph + 32);
  in.SetTotalBytesLimit(std::numeric_limits<int>::max());
  return message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}
template <class Message>
bool parsed(std::span<const std::byte> bytes, Message& message) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return false;
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  return parsed(stream, message);
}

/// Fields that the format got after the headers of its library were made, by their numbers: the strings, or
/// messages as strings, in them.
template <class Message>
std::vector<std::string> newer_fields(const Message& message, int number) {
  std::vector<std::string> out;
  const google::protobuf::UnknownFieldSet& all = message.unknown_fields();
  for (int i = 0; i < all.field_count(); ++i) {
    const google::protobuf::UnknownField& f = all.field(i);
    if (f.number() == number && f.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      out.push_back(f.length_delimited());
  }
  return out;
}
constexpr int overload_of_node = 8, overload_of_function = 13, defaults_of_function = 11;

Node ModelReader::node(const ::onnx::NodeProto& n, int depth) const {
  Node out;
  out.name = n.name();
  out.op = n.op_type();
  out.domain = n.domain() == "ai.onnx" ? "" : n.domain();
  out.inputs.assign(n.input().begin(), n.input().end());
  out.outputs.assign(n.output().begin(), n.output().end());
  for (const auto& a : n.attribute()) out.attributes.push_back(attribute(a, out.label(), depth));
  for (std::string& text : newer_fields(n, overload_of_node)) out.overload = std::move(text);
  return out;
}

ValueInfo ModelReader::info(const ::onnx::ValueInfoProto& v) const {
  using Structure = ValueInfo::Structure;
  ValueInfo out;
  out.name = v.name();
  const ::onnx::TypeProto* type = &v.type();
  out.structure = Structure::tensor;
  if (type->has_optional_type()) {
    out.structure = Structure::optional;
    type = &type->optional_type().elem_type();
    if (type->has_sequence_type()) {
      out.holds_sequence = true;
      type = &type->sequence_type().elem_type();
    }
  } else if (type->has_sequence_type()) {
    out.structure = Structure::sequence;
    type = &type->sequence_type().elem_type();
    out.holds_sequence = type->has_sequence_type();
  }
  if (type->has_map_type()) out.structure = Structure::map;
  if (type->has_sparse_tensor_type()) out.structure = Structure::sparse_tensor;
  if (!type->has_tensor_type()) {
    if (out.structure == Structure::tensor) out.structure = Structure::unknown;
    return out;
  }
  const auto& tensor = type->tensor_type();
  out.element = element_of_number(tensor.elem_type());
  if (!tensor.has_shape()) return out;
  out.shape.emplace();
  for (const auto& d : tensor.shape().dim()) {
    if (!d.has_dim_value()) {
      out.shape->emplace_back(d.dim_param());
      continue;
    }
    if (d.dim_value() < 0)
      fail("value '" + v.name() + "'", "expected sizes of 0 or more, got " + std::to_string(d.dim_value()));
    out.shape->emplace_back(d.dim_value());
  }
  return out;
}

Graph ModelReader::graph(const ::onnx::GraphProto& g, int depth) const {
  if (depth > deepest_graph)
    fail("", "expected graphs that nest at most " + std::to_string(deepest_graph) + " deep, got more");
  Graph out;
  out.name = g.name();
  for (const auto& n : g.node()) out.nodes.push_back(node(n, depth));
  for (const auto& v : g.input()) out.inputs.push_back(info(v));
  for (const auto& v : g.output()) out.outputs.push_back(info(v));
  for (const auto& v : g.value_info()) out.values.push_back(info(v));
  for (const auto& t : g.initializer()) out.initialisers.push_back({t.name(), value(t, tensor_label(t))});
  for (const auto& t : g.sparse_initializer())
    out.initialisers.push_back({t.values().name(), dense(t, tensor_label(t.values()))});
  return out;
}

template <class Imports>
std::map<std::string, std::int64_t> opsets_of(const Imports& imports) {
  std::map<std::string, std::int64_t> out;
  for (const auto& o : imports) out[o.domain() == "ai.onnx" ? "" : o.domain()] = o.version();
  return out;
}

Function ModelReader::function(const ::onnx::FunctionProto& f) const {
  Function out;
  out.domain = f.domain() == "ai.onnx" ? "" : f.domain();
  out.name = f.name();
  out.inputs.assign(f.input().begin(), f.input().end());
  out.outputs.assign(f.output().begin(), f.output().end());
  out.attributes.assign(f.attribute().begin(), f.attribute().end());
  out.opsets = opsets_of(f.opset_import());
  for (const auto& n : f.node()) out.nodes.push_back(node(n, 0));
  for (std::string& text : newer_fields(f, overload_of_function)) out.overload = std::move(text);
  for (const std::string& bytes : newer_fields(f, defaults_of_function)) {
    ::onnx::AttributeProto a;
    if (!parsed(std::as_bytes(std::span(bytes)), a))
      fail("function '" + out.name + "'", "expected a default of an attribute, got " +
                                              std::to_string(bytes.size()) +
                                              " bytes that are none: the file is damaged");
    out.defaults.push_back(attribute(a, "function '" + out.name + "'", 0));
  }
  return out;
}

/// Weights are taken out of the message one by one, so that never all of them lie in memory twice.
Model ModelReader::model(::onnx::ModelProto& m) const {
  Model out;
  out.file = file;
  out.ir_version = m.ir_version();
  out.producer = m.producer_name();
  out.producer_version = m.producer_version();
  out.documentation = m.doc_string();
  out.opsets = opsets_of(m.opset_import());
  if (!m.has_graph()) fail("", "expected a model with a graph, got none: is it an ONNX file?");
  google::protobuf::RepeatedPtrField<::onnx::TensorProto> weights;
  weights.Swap(m.mutable_graph()->mutable_initializer());
  out.graph = graph(m.graph(), 0);
  std::vector<Initialiser> dense;
  for (::onnx::TensorProto& t : weights) {
    dense.push_back({t.name(), value(t, tensor_label(t))});
    delete t.release_raw_data();
  }
  out.graph.initialisers.insert(out.graph.initialisers.begin(), std::make_move_iterator(dense.begin()),
                                std::make_move_iterator(dense.end()));
  for (const auto& f : m.functions()) out.functions.push_back(function(f));
  for (const auto& p : m.metadata_props()) out.metadata[p.key()] = p.value();
  return out;
}

/// The number of its bytes. Error: it is no file, or larger than the format allows.
std::uint64_t size_of_file(const fs::path& path) {
  std::error_code no;
  if (!fs::is_regular_file(path, no))
    throw Error(path.string() + ": expected an ONNX file, got " +
                (fs::exists(path, no) ? "something that is no file" : "no such file"));
  const std::uint64_t size = fs::file_size(path, no);
  if (no || size > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
    throw Error(path.string() + ": expected a file of less than 2 GB, as the format allows, got " +
                std::to_string(size) + " bytes; larger models keep their tensors in other files");
  return size;
}

std::vector<std::byte> bytes_of_file(const fs::path& path) {
  const std::uint64_t size = size_of_file(path);
  std::vector<std::byte> bytes(size);
  std::ifstream in(path, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    throw Error(path.string() + ": cannot be read");
  return bytes;
}

/// Protobuf says on standard error what is wrong with a message; the Error says it.
struct Quiet {
  google::protobuf::LogSilencer silencer;
};

Value value_of_sequence(const ModelReader& reader, const ::onnx::SequenceProto& s, const ValueInfo& declared) {
  std::vector<Value> items;
  for (const auto& t : s.tensor_values())
    items.push_back(reader.value(t, "item " + std::to_string(items.size())));
  if (s.sequence_values_size() + s.map_values_size() + s.optional_values_size() +
          s.sparse_tensor_values_size() >
      0)
    reader.fail("", "expected a sequence of tensors, got one of something else");
  return Value::sequence(std::move(items), declared.element);
}

[[noreturn]] void fail_no_model(const std::string& name, std::uint64_t bytes) {
  throw Error(name + ": expected an ONNX model, got " + std::to_string(bytes) +
              " bytes that are none: the file is damaged, cut off or of another format");
}

Model model_of(::onnx::ModelProto proto, const std::string& name, const fs::path& folder) {
  Model model = ModelReader{name, folder}.model(proto);
  proto.Clear();
  arrange(model);
  check(model);
  return model;
}

}  // namespace

Model parse(std::span<const std::byte> bytes, const std::string& name, const fs::path& folder) {
  const Quiet quiet;
  ::onnx::ModelProto proto;
  if (!parsed(bytes, proto)) fail_no_model(name, bytes.size());
  return model_of(std::move(proto), name, folder);
}

Model load(const fs::path& path) {
  const Quiet quiet;
  const std::string name = path.filename().string();
  const std::uint64_t size = size_of_file(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(path.string() + ": cannot be read");
  google::protobuf::io::IstreamInputStream stream(&file, 1 << 16);
  ::onnx::ModelProto proto;
  if (!parsed(stream, proto)) fail_no_model(name, size);
  return model_of(std::move(proto), name, path.has_parent_path() ? path.parent_path() : fs::path("."));
}

Value load_value(const fs::path& path, const ValueInfo& declared) {
  const Quiet quiet;
  const std::vector<std::byte> bytes = bytes_of_file(path);
  const ModelReader reader{path.filename().string(), {}};
  const auto need = [&](bool ok, const char* what) {
    if (!ok)
      reader.fail("", std::string("expected ") + what + ", got " + std::to_string(bytes.size()) +
                          " bytes that are none: the file is damaged, cut off or of another format");
  };
  if (declared.structure == ValueInfo::Structure::sequence) {
    ::onnx::SequenceProto s;
    need(parsed(bytes, s), "a sequence");
    return value_of_sequence(reader, s, declared);
  }
  if (declared.structure == ValueInfo::Structure::optional) {
    ::onnx::OptionalProto o;
    need(parsed(bytes, o), "an optional value");
    if (o.has_tensor_value()) return reader.value(o.tensor_value(), "");
    if (o.has_sequence_value()) return value_of_sequence(reader, o.sequence_value(), declared);
    return Value();
  }
  ::onnx::TensorProto t;
  need(parsed(bytes, t), "a tensor");
  return reader.value(t, "");
}

}  // namespace lantern::onnx
