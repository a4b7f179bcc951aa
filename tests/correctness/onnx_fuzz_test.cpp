// Models that nobody wrote on purpose: whatever the bytes, and whatever stands where in a file that is well
// formed, reading gives a model or an Error, takes no more memory than the bytes can justify, and running
// gives values or an Error.
#include <malloc.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <lantern/onnx.hpp>
#include <new>
#include <random>
#include <string>

#include "depth.hpp"

#if !defined(__SANITIZE_ADDRESS__)
namespace {

/// Bytes that operator new has handed out and not taken back, and the most of them since it was last set.
std::size_t held = 0, most_held = 0;

}  // namespace

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* memory = std::malloc(size);
  if (memory != nullptr) held += malloc_usable_size(memory);
  most_held = std::max(most_held, held);
  return memory;
}
void* operator new(std::size_t size) {
  void* memory = operator new(size, std::nothrow);
  return memory != nullptr ? memory : throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  held -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { operator delete(memory); }
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete[](void* memory) noexcept { operator delete(memory); }
void operator delete[](void* memory, std::size_t) noexcept { operator delete(memory); }
#else
namespace {
std::size_t held = 0, most_held = 0;  // the sanitizer has its own
}  // namespace
#endif

namespace fs = std::filesystem;
namespace proto = google::protobuf;

// In here onnx is Lantern's; the file format's own is ::onnx.
namespace lantern {

namespace {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

// ---- models to begin with

onnx::ValueInfo value(const std::string& name, std::vector<std::int64_t> shape,
                      onnx::Element element = onnx::Element::float32) {
  onnx::ValueInfo v;
  v.name = name;
  v.element = element;
  v.shape.emplace();
  for (const std::int64_t n : shape) v.shape->push_back(n < 0 ? onnx::Dimension("n") : onnx::Dimension(n));
  return v;
}
onnx::Attribute attribute(const std::string& name, onnx::Attribute::Content content) {
  onnx::Attribute a;
  a.name = name;
  a.content = std::move(content);
  return a;
}
onnx::Initialiser weight(const std::string& name, std::vector<std::int64_t> shape) {
  TensorValue<float> t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<float>(i % 7) * 0.25F - 0.5F;
  return {name, onnx::Value(t)};
}
onnx::Initialiser integers(const std::string& name, const std::vector<std::int64_t>& values) {
  TensorValue<std::int64_t> t({static_cast<std::int64_t>(values.size())});
  t.data = values;
  return {name, onnx::Value(t)};
}
onnx::Node node(const std::string& op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                std::vector<onnx::Attribute> attributes = {}) {
  return {outputs.empty() ? op : outputs[0],
          op,
          "",
          std::move(inputs),
          std::move(outputs),
          std::move(attributes)};
}
std::string model(onnx::Graph graph) {
  onnx::Model m;
  m.opsets[""] = 17;
  graph.name = "g";
  m.graph = std::move(graph);
  return onnx::write(m);
}
onnx::GraphPointer inner(onnx::Graph g) {
  g.name = "inner";
  return std::make_shared<const onnx::Graph>(std::move(g));
}
using Ints = std::vector<std::int64_t>;

std::string perceptron() {
  onnx::Graph g;
  g.inputs = {value("x", {-1, 4})};
  g.outputs = {value("y", {-1, 3})};
  g.initialisers = {weight("w", {5, 4}), weight("b", {5}), weight("v", {5, 3})};
  g.nodes = {
      node("Gemm", {"x", "w", "b"}, {"h"}, {attribute("transB", std::int64_t{1}), attribute("alpha", 0.5)}),
      node("Relu", {"h"}, {"r"}), node("MatMul", {"r", "v"}, {"s"}),
      node("Softmax", {"s"}, {"y"}, {attribute("axis", std::int64_t{-1})})};
  return model(std::move(g));
}
std::string convolutions() {
  onnx::Graph g;
  g.inputs = {value("x", {1, 2, 6, 6})};
  g.outputs = {value("y", {1, 3})};
  g.initialisers = {weight("w", {3, 2, 3, 3}), weight("b", {3}),    weight("scale", {3}),
                    weight("shift", {3}),      weight("mean", {3}), weight("variance", {3})};
  g.nodes = {node("Conv", {"x", "w", "b"}, {"c"},
                  {attribute("kernel_shape", Ints{3, 3}), attribute("pads", Ints{1, 1, 1, 1}),
                   attribute("strides", Ints{1, 1}), attribute("group", std::int64_t{1})}),
             node("BatchNormalization", {"c", "scale", "shift", "mean", "variance"}, {"n"}),
             node("MaxPool", {"n"}, {"p"},
                  {attribute("kernel_shape", Ints{2, 2}), attribute("strides", Ints{2, 2})}),
             node("AveragePool", {"p"}, {"a"},
                  {attribute("kernel_shape", Ints{2, 2}), attribute("auto_pad", std::string("SAME_UPPER"))}),
             node("GlobalAveragePool", {"a"}, {"m"}),
             node("Flatten", {"m"}, {"y"})};
  return model(std::move(g));
}
std::string shapes() {
  onnx::Graph g;
  g.inputs = {value("x", {-1, 6})};
  g.outputs = {value("y", {-1, -1, 2}), value("k", {-1, 2}, onnx::Element::int64)};
  g.initialisers = {integers("zero", {0}),          integers("two", {2}),  integers("minus", {-1}),
                    integers("pads", {0, 1, 0, 1}), integers("axes", {1}), integers("three", {3}),
                    integers("at", {0, 2, 1})};
  g.nodes = {node("Shape", {"x"}, {"s"}),
             node("Gather", {"s", "zero"}, {"n"}),
             node("Pad", {"x", "pads"}, {"p"}),
             node("Slice", {"p", "zero", "minus", "axes"}, {"c"}),
             node("Transpose", {"c"}, {"t"}, {attribute("perm", Ints{1, 0})}),
             node("Gather", {"t", "at"}, {"u"}, {attribute("axis", std::int64_t{0})}),
             node("Transpose", {"u"}, {"v"}),
             node("Concat", {"c", "v"}, {"d"}, {attribute("axis", std::int64_t{1})}),
             node("Concat", {"n", "minus", "two"}, {"r"}, {attribute("axis", std::int64_t{0})}),
             node("Slice", {"d", "zero", "three", "axes"}, {"e"}),
             node("Concat", {"e", "e"}, {"f"}, {attribute("axis", std::int64_t{1})}),
             node("Reshape", {"f", "r"}, {"y"}),
             node("TopK", {"d", "two"}, {"values", "k"}, {attribute("axis", std::int64_t{-1})})};
  return model(std::move(g));
}
std::string control() {
  onnx::Graph body, then, other, g;
  body.inputs = {value("i", {}, onnx::Element::int64), value("c", {}, onnx::Element::boolean),
                 value("s", {3})};
  body.nodes = {node("Identity", {"c"}, {"c2"}), node("Add", {"s", "x"}, {"s2"}),
                node("Mul", {"s2", "s2"}, {"out"})};
  body.outputs = {value("c2", {}, onnx::Element::boolean), value("s2", {3}), value("out", {3})};
  then.nodes = {node("Neg", {"last"}, {"a"})};
  then.outputs = {value("a", {3})};
  other.nodes = {node("Exp", {"last"}, {"b"})};
  other.outputs = {value("b", {3})};
  g.inputs = {value("x", {3}), value("condition", {}, onnx::Element::boolean)};
  g.outputs = {value("y", {3}), value("all", {2, 3})};
  g.initialisers = {{"iterations", onnx::Value(std::int64_t{2})}, weight("start", {3})};
  g.nodes = {node("Loop", {"iterations", "", "start"}, {"last", "all"}, {attribute("body", inner(body))}),
             node("If", {"condition"}, {"y"},
                  {attribute("then_branch", inner(then)), attribute("else_branch", inner(other))})};
  return model(std::move(g));
}
std::string recurrent() {
  onnx::Graph g;
  g.inputs = {value("x", {3, 2, 4})};
  g.outputs = {value("y", {3, 1, 2, 5}), value("z", {1, 2, 5})};
  g.initialisers = {weight("w", {1, 20, 4}), weight("r", {1, 20, 5}), weight("b", {1, 40})};
  g.nodes = {
      node("LSTM", {"x", "w", "r", "b"}, {"y", "z"},
           {attribute("hidden_size", std::int64_t{5}), attribute("direction", std::string("forward"))})};
  return model(std::move(g));
}
std::string others() {
  onnx::Graph g;
  g.inputs = {value("x", {2, 3}), value("k", {4}, onnx::Element::int64)};
  g.outputs = {value("y", {}), value("q", {2, 3}), value("h", {4, 3}), value("e", {2, 2})};
  g.initialisers = {weight("scale", {}),
                    {"zero", onnx::Value(onnx::Element::uint8, {})},
                    {"depth", onnx::Value(std::int64_t{3})},
                    weight("on", {2})};
  g.nodes = {node("Cast", {"x"}, {"c"}, {attribute("to", std::int64_t{10})}),
             node("Cast", {"c"}, {"d"}, {attribute("to", std::int64_t{1})}),
             node("Einsum", {"d", "x"}, {"e"}, {attribute("equation", std::string("ij,kj->ik"))}),
             node("ReduceSum", {"e"}, {"y"}, {attribute("keepdims", std::int64_t{0})}),
             node("QuantizeLinear", {"x", "scale", "zero"}, {"b"}),
             node("DequantizeLinear", {"b", "scale", "zero"}, {"q"}),
             node("OneHot", {"k", "depth", "on"}, {"h"}),
             node("Constant", {}, {"unused"}, {attribute("value", onnx::Value(1.5F))})};
  return model(std::move(g));
}

fs::path data_folder() {
  const char* named = std::getenv("LANTERN_DATA");
  const fs::path folder =
      (named ? fs::path(named) : fs::path(LANTERN_TEST_DIR) / "../../shared/data") / "onnx";
  return fs::exists(folder) ? folder : fs::path();
}

/// The models above, and small ones of the data sets and of newer operators.
std::vector<std::string> files() {
  std::vector<std::string> all = {perceptron(), convolutions(), shapes(), control(), recurrent(), others()};
  std::vector<fs::path> found;
  for (const fs::path& folder : {data_folder(), fs::path(LANTERN_TEST_DIR) / "conformance/onnx_sample"})
    if (fs::exists(folder))
      for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.path().extension() == ".onnx" && entry.file_size() <= 60'000) found.push_back(entry.path());
  std::ranges::sort(found);
  for (const fs::path& path : found) {
    std::ifstream in(path, std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return all;
}

// ---- mutations

std::string mutated_bytes(std::string text, const std::vector<std::string>& all, Random& random) {
  for (std::size_t n = 1 + below(random, 4); n > 0; --n) {
    const std::size_t at = below(random, text.size() + 1);
    const std::size_t length =
        std::min(text.size() - at, below(random, 2) == 0 ? below(random, 8) : below(random, 200));
    switch (below(random, 7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 2:
        text.insert(at, std::string(1 + below(random, 10), static_cast<char>(0xff)));
        break;
      case 3:
        text.erase(at, length);
        break;
      case 4:
        text.resize(at);
        break;
      case 5:
        text.insert(at, text.substr(below(random, text.size() + 1), length));
        break;
      default: {
        const std::string& other = all[below(random, all.size())];
        text.replace(at, length, other.substr(below(random, other.size() + 1), length));
      }
    }
  }
  return text;
}

/// All messages below one, itself included.
void collect(proto::Message* m, std::vector<proto::Message*>& all) {
  all.push_back(m);
  const proto::Reflection* r = m->GetReflection();
  std::vector<const proto::FieldDescriptor*> fields;
  r->ListFields(*m, &fields);
  for (const auto* f : fields) {
    if (f->cpp_type() != proto::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!f->is_repeated())
      collect(r->MutableMessage(m, f), all);
    else
      for (int i = 0; i < r->FieldSize(*m, f); ++i) collect(r->MutableRepeatedMessage(m, f, i), all);
  }
}

std::int64_t strange_integer(Random& random) {
  static constexpr std::int64_t all[] = {
      0, 1, 2, 3, 5, 7, 10, 16, -1, -2, 64, 1 << 20, std::int64_t{1} << 40, INT64_MAX, INT64_MIN, INT32_MAX};
  return all[below(random, std::size(all))];
}

/// A string of the file, or one that is nowhere in it.
std::string strange_text(const std::vector<std::string>& texts, Random& random) {
  if (below(random, 4) != 0 && !texts.empty()) return texts[below(random, texts.size())];
  static const std::string all[] = {"",     "x",          "nowhere",           "Add",
                                    "Loop", "SAME_LOWER", "ij,jk->",           "i[",
                                    "axis", "ai.onnx.ml", std::string(3, '\0')};
  return all[below(random, std::size(all))];
}

/// Changes a field of a message of the file: its value, how often it is there, its order, or what stands in
/// it.
void mutate(proto::Message& root, const std::vector<std::string>& texts, Random& random) {
  std::vector<proto::Message*> all;
  collect(&root, all);
  proto::Message* m = all[below(random, all.size())];
  const proto::Descriptor* d = m->GetDescriptor();
  const proto::Reflection* r = m->GetReflection();
  const proto::FieldDescriptor* f =
      d->field(static_cast<int>(below(random, static_cast<std::size_t>(d->field_count()))));
  const int size = f->is_repeated() ? r->FieldSize(*m, f) : 0;
  const int at = static_cast<int>(below(random, static_cast<std::size_t>(size)));
  if (f->is_repeated() && size > 0 && below(random, 2) == 0) {
    switch (below(random, 3)) {
      case 0:
        return r->RemoveLast(m, f);
      case 1:
        return r->SwapElements(m, f, at, static_cast<int>(below(random, static_cast<std::size_t>(size))));
      default:
        break;
    }
  }
  if (below(random, 8) == 0) return r->ClearField(m, f);
  const bool add = f->is_repeated() && (size == 0 || below(random, 3) == 0);
  using Field = proto::FieldDescriptor;
  switch (f->cpp_type()) {
    case Field::CPPTYPE_INT64: {
      const std::int64_t v = strange_integer(random);
      return add                ? r->AddInt64(m, f, v)
             : f->is_repeated() ? r->SetRepeatedInt64(m, f, at, v)
                                : r->SetInt64(m, f, v);
    }
    case Field::CPPTYPE_UINT64: {
      const auto v = static_cast<std::uint64_t>(strange_integer(random));
      return add                ? r->AddUInt64(m, f, v)
             : f->is_repeated() ? r->SetRepeatedUInt64(m, f, at, v)
                                : r->SetUInt64(m, f, v);
    }
    case Field::CPPTYPE_INT32: {
      const auto v = static_cast<std::int32_t>(strange_integer(random));
      return add                ? r->AddInt32(m, f, v)
             : f->is_repeated() ? r->SetRepeatedInt32(m, f, at, v)
                                : r->SetInt32(m, f, v);
    }
    case Field::CPPTYPE_ENUM: {
      const auto v = static_cast<int>(below(random, 20));
      return add                ? r->AddEnumValue(m, f, v)
             : f->is_repeated() ? r->SetRepeatedEnumValue(m, f, at, v)
                                : r->SetEnumValue(m, f, v);
    }
    case Field::CPPTYPE_FLOAT: {
      const auto v = static_cast<float>(strange_integer(random));
      return add                ? r->AddFloat(m, f, v)
             : f->is_repeated() ? r->SetRepeatedFloat(m, f, at, v)
                                : r->SetFloat(m, f, v);
    }
    case Field::CPPTYPE_DOUBLE: {
      const auto v = static_cast<double>(strange_integer(random));
      return add                ? r->AddDouble(m, f, v)
             : f->is_repeated() ? r->SetRepeatedDouble(m, f, at, v)
                                : r->SetDouble(m, f, v);
    }
    case Field::CPPTYPE_STRING: {
      const std::string v = strange_text(texts, random);
      return add                ? r->AddString(m, f, v)
             : f->is_repeated() ? r->SetRepeatedString(m, f, at, v)
                                : r->SetString(m, f, v);
    }
    case Field::CPPTYPE_MESSAGE: {
      // Another of the same kind from somewhere in the file, or an empty one.
      std::vector<proto::Message*> same;
      for (proto::Message* other : all)
        if (other->GetDescriptor() == f->message_type()) same.push_back(other);
      std::unique_ptr<proto::Message> copy;
      if (!same.empty()) {
        const proto::Message* from = same[below(random, same.size())];
        copy.reset(from->New());
        copy->CopyFrom(*from);
      }
      proto::Message* to = add                ? r->AddMessage(m, f)
                           : f->is_repeated() ? r->MutableRepeatedMessage(m, f, at)
                                              : r->MutableMessage(m, f);
      if (copy) to->CopyFrom(*copy);
      return;
    }
    default:
      return;
  }
}

void collect_texts(const proto::Message& m, std::vector<std::string>& texts) {
  const proto::Reflection* r = m.GetReflection();
  std::vector<const proto::FieldDescriptor*> fields;
  r->ListFields(m, &fields);
  for (const auto* f : fields) {
    const int n = f->is_repeated() ? r->FieldSize(m, f) : 1;
    for (int i = 0; i < n; ++i) {
      if (f->type() == proto::FieldDescriptor::TYPE_STRING)
        texts.push_back(f->is_repeated() ? r->GetRepeatedString(m, f, i) : r->GetString(m, f));
      if (f->cpp_type() == proto::FieldDescriptor::CPPTYPE_MESSAGE)
        collect_texts(f->is_repeated() ? r->GetRepeatedMessage(m, f, i) : r->GetMessage(m, f), texts);
    }
  }
}

std::string mutated_structure(const std::string& text, Random& random) {
  ::onnx::ModelProto m;
  REQUIRE(m.ParseFromString(text));
  std::vector<std::string> texts;
  collect_texts(m, texts);
  for (std::size_t n = 1 + below(random, 3); n > 0; --n) mutate(m, texts, random);
  return m.SerializePartialAsString();
}

// ---- what is done with them

/// Whether a run ends soon: no loops, and no number that could be a large size.
bool is_small(const onnx::Value& v) {
  if (v.size() > 4096 || v.is_sequence()) return false;
  if (!onnx::is_integer(v.element())) return true;
  for (std::int64_t i = 0; i < v.size(); ++i)
    if (const std::int64_t n = v.integer_at(static_cast<std::size_t>(i)); n < -64 || n > 64) return false;
  return true;
}
bool is_small(const std::vector<onnx::Node>& nodes) {
  for (const onnx::Node& n : nodes) {
    if (n.op == "Loop" || n.op == "Scan") return false;
    for (const onnx::Attribute& a : n.attributes) {
      if (const auto* i = std::get_if<std::int64_t>(&a.content); i && (*i < -64 || *i > 64)) return false;
      if (const auto* all = std::get_if<Ints>(&a.content);
          all && std::ranges::any_of(*all, [](std::int64_t i) { return i < -64 || i > 64; }))
        return false;
      if (const auto* v = std::get_if<onnx::Value>(&a.content); v && !is_small(*v)) return false;
      if (const auto* g = std::get_if<onnx::GraphPointer>(&a.content); g && !is_small((*g)->nodes))
        return false;
    }
  }
  return true;
}
bool is_small(const onnx::Model& m) {
  return m.functions.empty() && is_small(m.graph.nodes) &&
         std::ranges::all_of(m.graph.initialisers,
                             [](const onnx::Initialiser& i) { return is_small(i.value); });
}

/// Zeros for the arguments; nothing where they are large, or no tensors.
std::optional<std::vector<onnx::Value>> zeros(const std::vector<onnx::ValueInfo>& arguments) {
  std::vector<onnx::Value> all;
  for (const onnx::ValueInfo& v : arguments) {
    if (v.structure != onnx::ValueInfo::Structure::tensor || !v.shape || !onnx::is_supported(v.element))
      return std::nullopt;
    Ints shape;
    std::int64_t count = 1;
    for (const onnx::Dimension& d : *v.shape) {
      shape.push_back(d.size.value_or(2));
      if (shape.back() < 0 || shape.back() > 4096 || (count *= shape.back()) > 4096) return std::nullopt;
    }
    all.emplace_back(v.element, shape);
  }
  return all;
}

struct Count {
  int read = 0, ran = 0;
};

/// Where the input of a failure is.
std::string kept(const std::string& text) {
  const fs::path path = fs::temp_directory_path() / "lantern-onnx-fuzz.onnx";
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

void try_model(const std::string& text, Count& count) {
  const std::size_t before = most_held = held;
  try {
    const onnx::Model m = onnx::parse(std::as_bytes(std::span(text)), "input");
    ++count.read;
    if (most_held - before > (text.size() + 1000) * 100)
      FAIL(kept(text) << ": took " << most_held - before << " bytes for " << text.size() << " of input");
    onnx::check(m);
    if (!is_small(m)) return;
    const onnx::Session session = onnx::eager(m);
    const auto arguments = zeros(session.arguments());
    if (!arguments) return;
    session.run(*arguments);
    ++count.ran;
  } catch (const Error& e) {
    if (std::string(e.what()).find("input") == std::string::npos)
      FAIL("an error that does not name the file: " << e.what());
  } catch (const std::exception& e) {
    FAIL(kept(text) << ": " << e.what());
  }
  if (most_held - before > (text.size() + 1000) * 100 + (std::size_t{1} << 30))
    FAIL(kept(text) << ": took " << most_held - before << " bytes for " << text.size() << " of input");
}

/// How many mutations: LANTERN_ONNX_FUZZ says, else the depth of the tests.
int mutations() {
  if (const char* n = std::getenv("LANTERN_ONNX_FUZZ")) return std::atoi(n);
  return lantern::test::deep() ? 500'000 : 5'000;
}
/// Where the random numbers begin: LANTERN_ONNX_FUZZ_SEED.
unsigned seed(unsigned otherwise) {
  const char* n = std::getenv("LANTERN_ONNX_FUZZ_SEED");
  return n ? static_cast<unsigned>(std::atoi(n)) : otherwise;
}

}  // namespace

TEST_CASE("models to be mutated are right", "[onnx]") {
  Count count;
  const std::vector<std::string> models = {perceptron(), convolutions(), shapes(), recurrent(), others()};
  for (const std::string& text : models) try_model(text, count);
  CHECK(count.read == static_cast<int>(models.size()));
  CHECK(count.ran == static_cast<int>(models.size()));
  const std::string loops = control();
  const onnx::Session session = onnx::eager(onnx::parse(std::as_bytes(std::span(loops)), "input"));
  CHECK(session.run({onnx::Value(TensorValue<float>(Ints{3}, 1.0F)), onnx::Value(true)}).size() == 2);
}

TEST_CASE("mutated bytes of models give models or errors", "[onnx]") {
  const std::vector<std::string> models = files();
  Random random(seed(20240229));
  Count count;
  const int n = mutations();
  for (int i = 0; i < n; ++i)
    try_model(mutated_bytes(models[random() % models.size()], models, random), count);
  CHECK(count.read > n / 50);
  CHECK(count.read < n);
  CHECK(count.ran > n / 200);
}

TEST_CASE("models with other values, names and parts give models or errors", "[onnx]") {
  const std::vector<std::string> models = files();
  Random random(seed(20240301));
  Count count;
  const int n = mutations();
  for (int i = 0; i < n; ++i) try_model(mutated_structure(models[random() % models.size()], random), count);
  CHECK(count.read > n / 20);
  CHECK(count.read < n);
  CHECK(count.ran > n / 200);
}

}  // namespace lantern
