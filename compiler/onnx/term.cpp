// Terms: values of a graph while it is staged.
#include <algorithm>

#include "lantern/compiler/onnx/operator.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::onnx {

namespace {

template <class F>
auto with_host_type(ir::Kind kind, F&& f) {
  switch (kind) {
    case ir::Kind::boolean:
      return f(bool{});
    case ir::Kind::i32:
      return f(std::int32_t{});
    case ir::Kind::i64:
      return f(std::int64_t{});
    case ir::Kind::f32:
      return f(float{});
    default:
      return f(double{});
  }
}

Datum literal(const Value& v, std::size_t i) {
  const ir::Type type(kind_of(v.element()));
  return type.is_float_element() ? Datum::number(v.at(i), type) : Datum::integer(v.integer_at(i), type);
}

}  // namespace

Term Term::tensor(Datum d, Element e) {
  if (d.type().element() != kind_of(e))
    throw InternalError("a term of " + d.type().str() + " as " + onnx::name(e));
  Term t;
  t.structure = Structure::tensor;
  t.element = e;
  t.datum = std::move(d);
  if (t.datum.is_literal()) t.elements = Datums{t.datum};
  return t;
}

Term Term::of_elements(Datums all, Sizes shape, Element e) {
  Term t;
  t.structure = Structure::tensor;
  t.element = e;
  if (shape.empty()) t.datum = all[0];
  t.elements = std::move(all);
  t.shape = std::move(shape);
  return t;
}

Term Term::sequence(std::vector<Term> items, Element e) {
  Term t;
  t.structure = Structure::sequence;
  t.element = e;
  for (const Term& i : items) t.origins |= i.origins;
  t.items = std::move(items);
  return t;
}

int Term::rank() const {
  if (datum.empty()) return static_cast<int>(shape.size());
  return datum.type().is_tensor() ? datum.type().rank() : 0;
}

Sizes Term::dims() const {
  if (datum.empty()) return shape;
  return datum.type().is_tensor() ? datum.type().dims() : Sizes();
}

bool Term::literal() const {
  return structure == Structure::tensor && elements &&
         std::ranges::all_of(*elements, [](const Datum& d) { return d.is_literal(); });
}

Datum assembled(const Build& b, const Datums& elements, const Sizes& shape, ir::Kind kind) {
  if (shape.empty()) return elements[0];
  const bool literals = std::ranges::all_of(elements, [](const Datum& d) { return d.is_literal(); });
  if (literals && !core::context().staging) {
    Datum t = core::make_tensor(kind, shape);
    auto& box = *static_cast<core::TensorBox*>(t.box());
    with_host_type(kind, [&]<class T>(T) {
      T* const to = box.as<T>();
      for (std::size_t i = 0; i < elements.size(); ++i)
        to[i] = elements[i].type().is_float_element() ? static_cast<T>(elements[i].f())
                                                      : static_cast<T>(elements[i].i());
    });
    return t;
  }
  Indices sizes;
  for (const std::int64_t d : shape) sizes.push_back(Build::integer(d));
  // What most elements are is filled in at once.
  const ir::Type type(kind);
  const auto same = [](const Datum& x, const Datum& y) {
    return x.is_literal() && y.is_literal() &&
           (x.type().is_float_element() ? x.f() == y.f() : x.i() == y.i());
  };
  const Datum background = !elements.empty() && elements[0].is_literal() ? elements[0] : Datum::zero(type);
  Datum t = b.fill(background, sizes);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (same(elements[i], background)) continue;
    Indices at(shape.size());
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) at[d] = Build::integer(rest % shape[d]);
    t = b.set(t, at, elements[i]);
  }
  return t;
}

Term constant(const Value& v) {
  Datums all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(v.size()); ++i) all.push_back(literal(v, i));
  return Term::of_elements(std::move(all), v.shape(), v.element());
}

Datum boxed(const Value& v) {
  if (v.shape().empty()) return literal(v, 0);
  Datum t = core::make_tensor(kind_of(v.element()), v.shape());
  std::ranges::copy(v.bytes(), static_cast<core::TensorBox*>(t.box())->data().begin());
  return t;
}

Value unboxed(const Datum& d, Element e) {
  if (d.is_literal()) {
    Value v(e, {});
    with_host_type(kind_of(e), [&]<class T>(T) {
      v.mutable_elements<T>()[0] =
          d.type().is_float_element() ? static_cast<T>(d.f()) : static_cast<T>(d.i());
    });
    return v;
  }
  const auto& box = *static_cast<const core::TensorBox*>(d.box());
  Value v(e, box.shape);
  std::ranges::copy(box.data(), v.mutable_bytes().begin());
  return v;
}

std::optional<Value> value_of(const Term& t) {
  if (!t.is_tensor()) return std::nullopt;
  if (t.literal()) {
    Value v(t.element, t.datum.empty() ? t.shape : t.dims());
    with_host_type(kind_of(t.element), [&]<class T>(T) {
      auto to = v.mutable_elements<T>();
      for (std::size_t i = 0; i < to.size(); ++i) {
        const Datum& d = (*t.elements)[i];
        to[i] = d.type().is_float_element() ? static_cast<T>(d.f()) : static_cast<T>(d.i());
      }
    });
    return v;
  }
  if (t.datum.empty()) return std::nullopt;
  const Datum& primal = core::strip(t.datum);
  if (primal.is_literal() || primal.is_boxed(core::Boxed::Kind::tensor)) return unboxed(primal, t.element);
  return std::nullopt;
}

}  // namespace lantern::onnx
