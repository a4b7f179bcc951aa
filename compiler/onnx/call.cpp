// A node that is being computed: its operands, its attributes, and arithmetic for its rule.
#include <algorithm>

#include "lantern/compiler/onnx/operator.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::onnx {

namespace {

const char* content_name(const Attribute::Content& c) {
  static constexpr const char* names[] = {"a number", "an integer", "a string", "a tensor", "a graph",
                                          "numbers",  "integers",   "strings",  "tensors",  "graphs"};
  return names[c.index()];
}

template <class T>
const T* content(const Node& node, const char* name, const char* expected) {
  const Attribute* const a = node.find(name);
  if (!a) return nullptr;
  if (const T* const v = std::get_if<T>(&a->content)) return v;
  throw Error(std::string("attribute '") + name + "': expected " + expected + ", got " +
              content_name(a->content));
}

}  // namespace

Call::Call(Execution& e, const Frame& around, const Node& n, std::int64_t version, Terms operands)
    : node(n),
      opset(version),
      b{{core::label_of(e.place), static_cast<std::uint32_t>(e.nodes), 0}},
      in(std::move(operands)),
      execution(e),
      frame(around) {}

const Term& Call::term(std::size_t i) const {
  if (!has(i))
    fail("expected at least " + std::to_string(i + 1) + " operand" + (i > 0 ? "s" : "") + ", got " +
         std::to_string(in.size()));
  if (!in[i].is_tensor()) fail("operand " + std::to_string(i + 1) + ": expected a tensor, got a sequence");
  return in[i];
}

Datum Call::datum(const Term& t) const {
  if (t.datum.empty()) return assembled(b, *t.elements, t.shape, kind_of(t.element));
  return t.datum;
}

Value Call::value(const Term& t, const char* what) const {
  if (auto v = value_of(t)) return *std::move(v);
  if (t.given) {
    execution.consulted.insert(t.given.get());
    return *t.given;
  }
  throw Unknown(std::string("expected ") + what +
                    " that is known while the program is made, got one that is computed: "
                    "make it a constant or an argument of the graph",
                t.origins, t.origins == 0);
}

Sizes Call::integers(const Term& t, const char* what) const {
  if (is_float(t.element)) fail(std::string(what) + ": expected integers, got " + name(t.element));
  const Value v = value(t, what);
  Sizes all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(v.size()); ++i) all.push_back(v.integer_at(i));
  return all;
}

std::vector<double> Call::numbers(std::size_t i, const char* what) const {
  const Value v = value(term(i), what);
  std::vector<double> all;
  for (std::size_t k = 0; k < static_cast<std::size_t>(v.size()); ++k) all.push_back(v.at(k));
  return all;
}

std::int64_t Call::integer(std::size_t i, const char* what) const {
  const Sizes all = integers(i, what);
  if (all.size() != 1) fail(std::string(what) + ": expected one integer, got " + std::to_string(all.size()));
  return all[0];
}

double Call::number(std::size_t i, const char* what) const {
  const std::vector<double> all = numbers(i, what);
  if (all.size() != 1) fail(std::string(what) + ": expected one number, got " + std::to_string(all.size()));
  return all[0];
}

Datums Call::elements(std::size_t i, const char* what) const {
  const Term& t = term(i);
  if (t.elements) return *t.elements;
  if (const auto v = value_of(t)) return *constant(*v).elements;
  if (t.given) return *constant(value(t, what)).elements;
  if (t.rank() != 1 || known(b.size(t.datum, 0)) == ir::dynamic)
    throw Unknown(std::string("expected ") + what + " whose number is known while the program is made, got " +
                      t.datum.type().str(),
                  t.origins, true);
  Datums all;
  for (std::int64_t k = 0; k < known(b.size(t.datum, 0)); ++k) all.push_back(b.get(t.datum, {integer(k)}));
  return all;
}

Datum Call::single(std::size_t i, const char* what) const {
  const Term& t = term(i);
  if (t.elements || t.given || value_of(t))
    if (const Datums all = elements(i, what); all.size() == 1) return cast(all[0], ir::Kind::i64);
  return cast(reshape(datum(t), {}), ir::Kind::i64);
}

// ---- shapes

std::int64_t Call::known_size(const Datum& t, int d) const {
  if (!t.type().is_tensor() || d < 0 || d >= t.type().rank())
    fail("expected a tensor of " + std::to_string(d + 1) + " dimensions or more, got " + t.type().str());
  const std::int64_t n = t.type().dims()[static_cast<std::size_t>(d)];
  if (n == ir::dynamic) {
    Origins from = 0;
    for (const Term& i : in) from |= i.origins;
    throw Unknown(
        "expected a size of dimension " + std::to_string(d) + " of " + t.type().str() +
            " that is known while the program is made: give the model's inputs sizes that are numbers",
        from, true);
  }
  return n;
}

Sizes Call::known_sizes(const Datum& t) const {
  Sizes all;
  if (t.type().is_tensor())
    for (int d = 0; d < t.type().rank(); ++d) all.push_back(known_size(t, d));
  return all;
}

int Call::axis(std::int64_t given, int places, const char* what) const {
  if (given < -places || given >= places)
    fail(std::string(what) + ": expected a dimension from " + std::to_string(-places) + " to " +
         std::to_string(places - 1) + ", got " + std::to_string(given));
  return static_cast<int>(given < 0 ? given + places : given);
}

std::vector<int> Call::axes(const Sizes& given, int places, const char* what) const {
  std::vector<int> all;
  for (const std::int64_t g : given) {
    all.push_back(axis(g, places, what));
    if (std::ranges::count(all, all.back()) > 1)
      fail(std::string(what) + ": expected different dimensions, got " + std::to_string(g) + " twice");
  }
  return all;
}

// ---- attributes

std::int64_t Call::attribute(const char* name, std::int64_t otherwise) const {
  const auto* const v = content<std::int64_t>(node, name, "an integer");
  return v ? *v : otherwise;
}
std::int64_t Call::attribute(const char* name) const {
  const auto* const v = content<std::int64_t>(node, name, "an integer");
  if (!v) fail(std::string("expected an attribute '") + name + "', got none");
  return *v;
}
double Call::attribute(const char* name, double otherwise) const {
  const auto* const v = content<double>(node, name, "a number");
  return v ? *v : otherwise;
}
std::string Call::attribute(const char* name, const std::string& otherwise) const {
  const auto* const v = content<std::string>(node, name, "a string");
  return v ? *v : otherwise;
}
Sizes Call::attributes(const char* name, Sizes otherwise) const {
  const auto* const v = content<Sizes>(node, name, "integers");
  return v ? *v : otherwise;
}
std::vector<double> Call::real_attributes(const char* name) const {
  const auto* const v = content<std::vector<double>>(node, name, "numbers");
  return v ? *v : std::vector<double>();
}
std::vector<std::string> Call::text_attributes(const char* name) const {
  const auto* const v = content<std::vector<std::string>>(node, name, "strings");
  return v ? *v : std::vector<std::string>();
}
const Graph& Call::graph_attribute(const char* name) const {
  const auto* const v = content<GraphPointer>(node, name, "a graph");
  if (!v) fail(std::string("expected an attribute '") + name + "', got none");
  return **v;
}
Element Call::element_attribute(const char* name, Element otherwise) const {
  const std::int64_t n = attribute(name, static_cast<std::int64_t>(otherwise));
  if (n < 1 || n > static_cast<std::int64_t>(last_element))
    fail(std::string("attribute '") + name + "': expected the number of an element type, 1 to " +
         std::to_string(static_cast<int>(last_element)) + ", got " + std::to_string(n));
  const auto e = static_cast<Element>(n);
  if (!is_supported(e)) unsupported(std::string("elements of type ") + onnx::name(e));
  return e;
}

// ---- arithmetic

Datum Call::where(const Datum& c, const Datum& x, const Datum& y) const {
  if (!c.type().is_tensor() && !x.type().is_tensor() && !y.type().is_tensor()) return b.select(c, x, y);
  if (c.is_literal()) return c.b() ? broadcast_like(x, y, b.loc) : broadcast_like(y, x, b.loc);
  return core::detail::where(c, x, y, b.loc);
}

Datum Call::wrapped(const Datum& x, Element e) const {
  if (!is_integer(e) || e == Element::int32 || e == Element::int64 || e == Element::uint64) return x;
  const std::int64_t values = std::int64_t{1} << bits_in_file(e);
  const auto number = [&](std::int64_t v) { return Build::number(static_cast<double>(v), x); };
  const Datum low = op(Opcode::bit_and_, x, number(values - 1));
  if (is_unsigned(e)) return low;
  return op(Opcode::sub_, op(Opcode::bit_xor_, low, number(values / 2)), number(values / 2));
}

Datum Call::reshape(const Datum& x, const Indices& sizes) const {
  if (!x.type().is_tensor()) return sizes.empty() ? x : b.fill(x, sizes);
  if (!sizes.empty()) return b.reshape(x, sizes);
  Indices first;
  for (int d = 0; d < x.type().rank(); ++d) {
    b.require_equal(b.size(x, d), integer(1), "reshape: expected one element for a number");
    first.push_back(integer(0));
  }
  return b.get(x, first);
}

Datum Call::expand(const Datum& x, const Indices& sizes) const {
  if (!x.type().is_tensor()) return fill(x, sizes);
  return core::detail::expand(x, sizes, b.loc);
}

Datum Call::permute(const Datum& x, const std::vector<int>& axes) const {
  bool moved = false;
  for (std::size_t d = 0; d < axes.size(); ++d) moved = moved || axes[d] != static_cast<int>(d);
  return moved ? core::detail::permuted(x, axes, b.loc) : x;
}

Datum Call::product(const Indices& sizes) const {
  Datum n = integer(1);
  for (const Datum& s : sizes) n = known(n) == 1 ? s : known(s) == 1 ? n : b.mul(n, s);
  return n;
}

Indices Call::literals(const Sizes& sizes) {
  Indices all;
  for (const std::int64_t s : sizes) all.push_back(Build::integer(s));
  return all;
}

void Call::require_operands(std::size_t least, std::size_t most) const {
  if (in.size() >= least && in.size() <= most) return;
  fail("expected " + std::to_string(least) + (most > least ? " to " + std::to_string(most) : "") +
       " operands, got " + std::to_string(in.size()));
}

void Call::require_float(std::size_t i) const {
  if (!is_float(element(i)))
    fail("operand " + std::to_string(i + 1) + ": expected floating-point numbers, got " + name(element(i)));
}

}  // namespace lantern::onnx
