// Operators that make tensors, ask for shapes, and give elements other places by their positions alone.
#include <algorithm>
#include <cmath>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/containers.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::onnx::rules {

namespace {

using core::Part;
namespace named = core::named;

Datum least(const Call& c, const Datum& x, const Datum& y) { return c.op(Opcode::imin_, x, y); }
Datum most(const Call& c, const Datum& x, const Datum& y) { return c.op(Opcode::imax_, x, y); }

/// An operand of integers as i64 elements.
Datums integer_elements(const Call& c, std::size_t i, const char* what) {
  if (!is_integer(c.element(i))) c.fail(std::string(what) + ": expected integers, got " + name(c.element(i)));
  Datums all = c.elements(i, what);
  for (Datum& d : all) d = c.cast(d, ir::Kind::i64);
  return all;
}

bool same(const Datum& x, const Datum& y) {
  if (x.is_literal() && y.is_literal()) return x.i() == y.i();
  if (!x.is_node() || !y.is_node()) return false;
  if (x.node() == y.node()) return true;
  const ir::Op *const p = x.node()->def, *const q = y.node()->def;  // the size of one tensor, asked for twice
  return p && q && p->is(Opcode::dim_) && q->is(Opcode::dim_) && p->operands[0] == q->operands[0] &&
         p->integer == q->integer;
}

/// The size that makes `sizes` (without it) as many elements as `from`: equal sizes cancel, so that what is
/// known stays known.
Datum missing_size(const Call& c, Indices from, Indices sizes) {
  for (auto s = sizes.begin(); s != sizes.end();) {
    const auto at = std::ranges::find_if(from, [&](const Datum& d) { return same(d, *s); });
    if (at == from.end()) {
      ++s;
      continue;
    }
    from.erase(at);
    s = sizes.erase(s);
  }
  std::int64_t above = 1, below = 1;
  Datum rest = c.integer(1), divisor = c.integer(1);
  const auto times = [&](const Datum& x, const Datum& y) {
    return known(x) == 1 ? y : known(y) == 1 ? x : c.b.mul(x, y);
  };
  const auto take_in = [&](const Indices& all, std::int64_t& literals, Datum& others) {
    for (const Datum& d : all) {
      if (d.is_literal())
        literals *= d.i();
      else
        others = times(others, d);
    }
  };
  take_in(from, above, rest);
  take_in(sizes, below, divisor);
  if (below == 0) return c.integer(0);
  if (above % below != 0 && rest.is_literal() && divisor.is_literal())
    c.fail("expected a shape that the operand's elements fill, got one of which " + std::to_string(below) +
           " does not divide " + std::to_string(above));
  if (above % below == 0)
    rest = times(rest, c.integer(above / below));
  else
    rest = c.b.div(times(rest, c.integer(above)), c.integer(below));
  return known(divisor) == 1 ? rest : c.b.div(rest, divisor);
}

Sizes axes_operand(const Call& c, std::size_t i) {
  if (c.opset >= 13) return c.has(i) ? c.integers(i, "axes") : Sizes();
  return c.attributes("axes");
}

}  // namespace

Datum part_of(const Call& c, const Datum& x, int axis, const Datum& lo, const Datum& hi, std::int64_t step) {
  if (axis < 0 || axis >= x.type().rank())
    c.fail("expected a tensor of at least " + std::to_string(axis + 1) + " dimensions, got " + x.type().str());
  std::vector<core::Part> parts(static_cast<std::size_t>(x.type().rank()), core::Part(core::named::all));
  core::Part& p = parts[static_cast<std::size_t>(axis)];
  p.lo = lo;
  p.hi = hi;
  p.step = step;
  return core::detail::part(x, parts, c.b.loc);
}

Term literal_term(const Sizes& values, Element e) {
  Datums all;
  for (const std::int64_t v : values) all.push_back(Datum::integer(v, ir::Type(kind_of(e))));
  return Term::of_elements(std::move(all), {static_cast<std::int64_t>(values.size())}, e);
}

// ---- constants

Terms constant(const Call& c) {
  const auto one = [](Value v) { return Terms{onnx::constant(v)}; };
  for (const Attribute& a : c.node.attributes) {
    if (a.name == "value")
      if (const auto* v = std::get_if<Value>(&a.content)) return {c.execution.weight(*v, true)};
    if (a.name == "value_float")
      if (const auto* v = std::get_if<double>(&a.content)) return one(Value(static_cast<float>(*v)));
    if (a.name == "value_int")
      if (const auto* v = std::get_if<std::int64_t>(&a.content)) return one(Value(*v));
    if (a.name == "value_floats")
      if (const auto* v = std::get_if<std::vector<double>>(&a.content))
        return one(TensorValue<float>(std::vector<float>(v->begin(), v->end()),
                                      Sizes{static_cast<std::int64_t>(v->size())}));
    if (a.name == "value_ints")
      if (const auto* v = std::get_if<Sizes>(&a.content))
        return one(TensorValue<std::int64_t>(*v, Sizes{static_cast<std::int64_t>(v->size())}));
    if (a.name == "sparse_value")
      if (const auto* v = std::get_if<Value>(&a.content)) return {c.execution.weight(*v, true)};
    if (a.name == "value_string")
      if (const auto* v = std::get_if<std::string>(&a.content)) return one(Value::of_texts({*v}, {}));
    if (a.name == "value_strings")
      if (const auto* v = std::get_if<std::vector<std::string>>(&a.content))
        return one(Value::of_texts(*v, {static_cast<std::int64_t>(v->size())}));
  }
  c.fail(
      "expected an attribute 'value', 'sparse_value', 'value_float', 'value_int', 'value_string', "
      "'value_floats', "
      "'value_ints' or 'value_strings', got none of them");
}

Terms constant_of_shape(const Call& c) {
  Element e = Element::float32;
  Datum v = Datum::number(0, ir::F32);
  if (const Attribute* a = c.node.find("value")) {
    const auto* given = std::get_if<Value>(&a->content);
    if (!given || given->size() != 1) c.fail("attribute 'value': expected a tensor of one element");
    e = given->element();
    v = boxed(given->reshaped({}));
  }
  const Datums sizes = integer_elements(c, 0, "a shape");
  std::int64_t count = 1;
  for (const Datum& s : sizes) {
    if (known(s) != ir::dynamic && known(s) < 0)
      c.fail("expected sizes of 0 or more, got " + std::to_string(known(s)));
    count = known(s) == ir::dynamic || count > most_elements ? most_elements + 1 : count * known(s);
  }
  if (count <= most_elements && sizes.size() <= 1) {
    Sizes shape;
    for (const Datum& s : sizes) shape.push_back(known(s));
    return {Term::of_elements(Datums(static_cast<std::size_t>(count), v), shape, e)};
  }
  return {c.result(c.fill(v, sizes), e)};
}

Terms range(const Call& c) {
  c.require_operands(3, 3);
  const Element e = c.element(0);
  const Datum start = c.reshape(c[0], {}), limit = c.reshape(c[1], {}), delta = c.reshape(c[2], {});
  const ir::Kind k = kind_of(e);
  Datum n;
  if (is_float(e)) {
    const auto wide = [&](const Datum& d) { return c.cast(d, ir::Kind::f64); };
    n = c.cast(c.op(Opcode::ceil_, c.b.div(c.b.sub(wide(limit), wide(start)), wide(delta))), ir::Kind::i64);
  } else {
    const auto wide = [&](const Datum& d) { return c.cast(d, ir::Kind::i64); };
    const Datum d = wide(delta), room = c.b.sub(wide(limit), wide(start));
    if (known(d) == 0) c.fail("expected a step that is not 0, got 0");
    const Datum towards = c.where(c.b.less(d, c.integer(0)), c.integer(1), c.integer(-1));
    n = c.b.div(c.b.add(room, c.b.add(d, towards)), d);
  }
  n = most(c, n, c.integer(0));
  const auto element = [&](const Datum& i) { return c.b.add(start, c.b.mul(c.cast(i, k), delta)); };
  if (known(n) != ir::dynamic && known(n) <= most_elements && start.is_literal() && delta.is_literal()) {
    Datums all;
    for (std::int64_t i = 0; i < known(n); ++i) all.push_back(element(c.integer(i)));
    return {Term::of_elements(std::move(all), {known(n)}, e)};
  }
  return {c.result(c.b.tabulate(k, {n}, [&](const Indices& at) { return element(at[0]); }))};
}

Terms eye_like(const Call& c) {
  const Element e = c.element_attribute("dtype", c.element());
  if (c.rank() != 2) c.fail("expected a matrix, got " + c[0].type().str());
  const Datum k = c.integer(c.attribute("k", std::int64_t{0}));
  return {c.result(
      c.b.tabulate(kind_of(e), c.sizes(c[0]),
                   [&](const Indices& at) { return c.cast(c.op(Opcode::eq_, c.b.add(at[0], k), at[1]), e); }),
      e)};
}

// ---- shapes

Terms shape(const Call& c) {
  const Term& t = c.term(0);
  Indices all;
  if (t.datum.empty())
    all = Call::literals(t.shape);
  else
    all = c.sizes(t.datum);
  const auto rank = static_cast<std::int64_t>(all.size());
  const auto bound = [&](const char* name, std::int64_t otherwise) {
    const std::int64_t v = c.attribute(name, otherwise);
    return std::clamp(v < 0 ? v + rank : v, std::int64_t{0}, rank);
  };
  const std::int64_t from = bound("start", 0), to = std::max(from, bound("end", rank));
  Term result = Term::of_elements(Indices(all.begin() + from, all.begin() + to), {to - from}, Element::int64);
  return {result};
}

Terms size(const Call& c) {
  const Term& t = c.term(0);
  return {c.result(c.product(t.datum.empty() ? Call::literals(t.shape) : c.sizes(t.datum)), Element::int64)};
}

Terms reshape(const Call& c) {
  const Datum x = c[0];
  Datums sizes;
  if (c.opset < 5)
    for (const std::int64_t s : c.attributes("shape")) sizes.push_back(c.integer(s));
  else
    sizes = integer_elements(c, 1, "a shape");
  const Indices own = c.sizes(x);
  const bool zero_is_zero = c.attribute("allowzero", std::int64_t{0}) != 0;
  std::optional<std::size_t> open;
  Indices others;
  bool staged = false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t n = known(sizes[i]);
    if (!sizes[i].is_literal()) {
      // The size of a dimension is none of these marks; of another number it is seen when the program runs.
      staged = true;
    } else if (n == 0 && !zero_is_zero) {
      if (i >= own.size())
        c.fail("expected a size for dimension " + std::to_string(i) +
               ", got 0, which refers to a dimension that the operand lacks");
      sizes[i] = own[i];
    } else if (n == -1) {
      if (open) c.fail("expected at most one size that is left open, got two of -1");
      open = i;
      continue;
    } else if (n < -1 || n > (std::int64_t{1} << 50)) {
      c.fail("expected sizes of 0 or more that fit into memory, or -1, got " + std::to_string(n));
    }
    others.push_back(sizes[i]);
  }
  if (staged && !c.in[1].elements) {  // numbers of which nothing is known
    Datum product = c.integer(1), total = c.product(own);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i].is_literal()) continue;
      if (i < own.size() && !zero_is_zero)
        sizes[i] = c.where(c.op(Opcode::eq_, sizes[i], c.integer(0)), own[i], sizes[i]);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (!open || *open != i)
        product =
            c.b.mul(product, c.where(c.op(Opcode::eq_, sizes[i], c.integer(-1)), c.integer(1), sizes[i]));
    const Datum rest = c.b.div(total, c.op(Opcode::imax_, product, c.integer(1)));
    for (std::size_t i = 0; i < sizes.size(); ++i)
      sizes[i] =
          open && *open == i ? rest : c.where(c.op(Opcode::eq_, sizes[i], c.integer(-1)), rest, sizes[i]);
  } else if (open) {
    sizes[*open] = missing_size(c, own, others);
  }
  return {c.result(c.reshape(x, sizes))};
}

Terms flatten(const Call& c) {
  const Datum x = c[0];
  const int rank = c.rank();
  const std::int64_t given = c.attribute("axis", std::int64_t{1});
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank)
    c.fail("attribute 'axis': expected a dimension from " + std::to_string(-rank) + " to " +
           std::to_string(rank) + ", got " + std::to_string(given));
  const Indices all = c.sizes(x);
  return {c.result(c.reshape(x, {c.product(Indices(all.begin(), all.begin() + axis)),
                                 c.product(Indices(all.begin() + axis, all.end()))}))};
}

Terms squeeze(const Call& c) {
  const Datum x = c[0];
  std::vector<int> gone = c.axes(axes_operand(c, 1), c.rank());
  if (gone.empty() && !c.has(1) && !c.has_attribute("axes"))
    for (int d = 0; d < c.rank(); ++d)
      if (c.known_size(x, d) == 1) gone.push_back(d);
  if (gone.empty()) return {c.term(0)};
  if (static_cast<int>(gone.size()) == c.rank()) return {c.result(c.reshape(x, {}))};
  return {c.result(core::detail::squeeze(x, gone, c.b.loc))};
}

Terms unsqueeze(const Call& c) {
  const Datum x = c[0];
  const Sizes given = axes_operand(c, 1);
  std::vector<int> places = c.axes(given, c.rank() + static_cast<int>(given.size()));
  if (places.empty()) return {c.term(0)};
  if (!x.type().is_tensor()) return {c.result(c.b.fill(x, Indices(places.size(), c.integer(1))))};
  std::ranges::sort(places);
  return {c.result(core::detail::unsqueeze(x, places, c.b.loc))};
}

Terms transpose(const Call& c) {
  Sizes order = c.attributes("perm");
  if (!c.has_attribute("perm"))
    for (int d = c.rank(); d-- > 0;) order.push_back(d);
  if (static_cast<int>(order.size()) != c.rank())
    c.fail("attribute 'perm': expected each of the " + std::to_string(c.rank()) + " dimensions, got " +
           std::to_string(order.size()));
  return {c.result(c.permute(c[0], c.axes(order, c.rank(), "attribute 'perm'")))};
}

Terms expand(const Call& c) {
  const Datum x = c[0];
  Datums sizes = integer_elements(c, 1, "a shape");
  const Indices own = c.sizes(x);
  if (sizes.size() < own.size()) sizes.insert(sizes.begin(), own.size() - sizes.size(), c.integer(1));
  for (std::size_t d = 0; d < own.size(); ++d) {
    Datum& wanted = sizes[sizes.size() - own.size() + d];
    if (known(wanted) == 1 ||
        (known(own[d]) != 1 && known(own[d]) != ir::dynamic && known(wanted) == ir::dynamic))
      wanted = own[d];
  }
  return {c.result(c.expand(x, sizes))};
}

Terms tile(const Call& c) {
  Datums times;
  if (c.opset < 6) {
    const Sizes own = c.known_sizes(c[0]);
    times.assign(own.size(), c.integer(1));
    times.at(static_cast<std::size_t>(c.axis(c.integer(2, "an axis"), c.rank()))) =
        c.integer(c.integer(1, "a number of tiles"));
  } else {
    times = integer_elements(c, 1, "numbers of repeats");
  }
  if (times.empty()) return {c.term(0)};
  return {c.result(core::detail::tile(c[0], times, c.b.loc))};
}

// ---- parts

Terms concat(const Call& c) {
  c.term(0);
  Datums all;
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    if (c.element(i) != c.element(0)) c.fail("expected tensors of one element type");
    if (c.rank(i) == 0)
      c.fail("expected tensors of one dimension or more, got a number as operand " + std::to_string(i + 1));
    all.push_back(c[i]);
  }
  const int axis = c.axis(c.opset < 4 ? c.attribute("axis", std::int64_t{1}) : c.attribute("axis"), c.rank());
  return {c.result(core::detail::concat(all, axis, c.b.loc))};
}

Terms split(const Call& c) {
  const Datum x = c[0];
  const int axis = c.axis(c.attribute("axis", std::int64_t{0}), c.rank());
  Sizes parts = c.attributes("split");
  if (c.has(1)) parts = c.integers(1, "sizes of parts");
  const Datum size = c.b.size(x, axis);
  if (parts.empty()) {
    const auto n = static_cast<std::int64_t>(
        c.attribute("num_outputs", static_cast<std::int64_t>(c.node.outputs.size())));
    if (n < 1) c.fail("expected one part or more, got " + std::to_string(n));
    const std::int64_t whole = c.known_size(x, axis), each = (whole + n - 1) / n;
    if (whole % n != 0 && !c.has_attribute("num_outputs"))
      c.fail("expected a size that the number of parts divides, got " + std::to_string(whole) + " for " +
             std::to_string(n) + " parts");
    for (std::int64_t left = whole, i = 0; i < n; ++i, left -= parts.back())
      parts.push_back(std::min(each, left));
  }
  std::int64_t at = 0;
  Terms out;
  for (const std::int64_t n : parts) {
    if (n < 0 || n > (std::int64_t{1} << 40))
      c.fail("expected parts of 0 or more elements, got " + std::to_string(n));
    out.push_back(c.result(part_of(c, x, axis, c.integer(at), c.integer(at + n))));
    at += n;
  }
  c.b.require_equal(size, c.integer(at), "expected parts that make up the whole dimension");
  return out;
}

Terms slice(const Call& c) {
  Datum x = c[0];
  Datums starts, ends;
  Sizes steps, given;
  if (c.opset < 10) {
    for (const std::int64_t v : c.attributes("starts")) starts.push_back(c.integer(v));
    for (const std::int64_t v : c.attributes("ends")) ends.push_back(c.integer(v));
    given = c.attributes("axes");
  } else {
    starts = integer_elements(c, 1, "starts");
    ends = integer_elements(c, 2, "ends");
    if (c.has(3)) given = c.integers(3, "axes");
    if (c.has(4)) steps = c.integers(4, "steps");
  }
  if (given.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) given.push_back(static_cast<std::int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || given.size() != starts.size() || steps.size() != starts.size())
    c.fail("expected as many starts, ends, axes and steps, got " + std::to_string(starts.size()) + ", " +
           std::to_string(ends.size()) + ", " + std::to_string(given.size()) + " and " +
           std::to_string(steps.size()));
  const std::vector<int> axes = c.axes(given, c.rank());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Datum n = c.b.size(x, axes[i]), zero = c.integer(0), one = c.integer(1);
    constexpr std::int64_t far = std::int64_t{1} << 40;
    const std::int64_t step = std::clamp(steps[i], -far, far);
    if (step == 0) c.fail("expected steps that are not 0, got 0");
    // Below 0 from the end; what lies outside is brought to the bound. Of step below 0 the bounds are -1 and
    // n - 1.
    const auto place = [&](const Datum& v, const Datum& lo, const Datum& hi) -> Datum {
      if (v.is_literal()) {
        const std::int64_t number = std::clamp(v.i(), -far, far);
        if (number == 0 && step > 0) return zero;
        if (number < 0 && step > 0 && known(n) == ir::dynamic)
          return most(c, c.b.add(n, c.integer(number)), lo);
        if (number >= far) return hi;
        if (number <= -far) return lo;
        const Datum from = number < 0 ? c.b.add(n, c.integer(number)) : c.integer(number);
        return least(c, most(c, from, lo), hi);
      }
      const Datum from = c.where(c.b.less(v, zero), c.b.add(v, n), v);
      return least(c, most(c, from, lo), hi);
    };
    if (step > 0) {
      const Datum lo = place(starts[i], zero, n), hi = most(c, place(ends[i], zero, n), lo);
      if (known(lo) == 0 && same(hi, n) && step == 1) continue;
      x = part_of(c, x, axes[i], lo, hi, step);
      continue;
    }
    const Datum last = c.b.sub(n, one), from = place(starts[i], zero, last),
                to = place(ends[i], c.integer(-1), last);
    const Datum back = c.integer(-step),
                count = most(c, zero, c.b.div(c.b.add(c.b.sub(from, to), c.integer(-step - 1)), back));
    Indices sizes = c.sizes(x);
    const auto axis = static_cast<std::size_t>(axes[i]);
    sizes[axis] = count;
    x = c.b.tabulate(x.type().element(), sizes, [&](Indices at) {
      at[axis] = c.b.sub(from, c.b.mul(at[axis], back));
      return c.b.get(x, at);
    });
  }
  return {c.result(x)};
}

Terms pad(const Call& c) {
  Datum x = c[0];
  const int rank = c.rank();
  Sizes pads =
      c.opset < 11 ? c.attributes(c.has_attribute("paddings") ? "paddings" : "pads") : c.integers(1, "pads");
  std::vector<int> axes(static_cast<std::size_t>(rank));
  for (int d = 0; d < rank; ++d) axes[static_cast<std::size_t>(d)] = d;
  if (c.has(3)) axes = c.axes(c.integers(3, "axes"), rank);
  if (pads.size() != 2 * axes.size())
    c.fail("expected two pads for each of " + std::to_string(axes.size()) + " dimensions, got " +
           std::to_string(pads.size()));
  const std::string mode = c.attribute("mode", std::string("constant"));
  Datum value = c.opset < 11 ? c.number(c.attribute("value", 0.0), x) : Build::number(0, x);
  if (c.opset >= 11 && c.has(2)) value = c.reshape(c[2], {});
  std::vector<std::array<Datum, 2>> widths(static_cast<std::size_t>(rank), {c.integer(0), c.integer(0)});
  bool any = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t before = pads[i], after = pads[i + axes.size()];
    constexpr std::int64_t far = std::int64_t{1} << 40;
    if (before > far || after > far || before < -far || after < -far)
      c.fail("expected pads that fit into memory");
    if (before < 0 || after < 0)  // takes elements away
      x = part_of(c, x, axes[i], c.integer(std::max<std::int64_t>(0, -before)),
                  c.b.sub(c.b.size(x, axes[i]), c.integer(std::max<std::int64_t>(0, -after))));
    widths[static_cast<std::size_t>(axes[i])] = {c.integer(std::max<std::int64_t>(0, before)),
                                                 c.integer(std::max<std::int64_t>(0, after))};
    any = any || before > 0 || after > 0;
  }
  if (!any) return {c.result(x)};
  using core::Pad;
  if (mode == "wrap") {
    const Indices own = c.sizes(x);
    Indices sizes = own;
    for (std::size_t d = 0; d < sizes.size(); ++d)
      sizes[d] = c.b.add(c.b.add(widths[d][0], own[d]), widths[d][1]);
    return {c.result(c.b.tabulate(x.type().element(), sizes, [&](Indices at) {
      for (std::size_t d = 0; d < at.size(); ++d) {
        const Datum rest = c.b.rem(c.b.sub(at[d], widths[d][0]), own[d]);
        at[d] = c.where(c.b.less(rest, c.integer(0)), c.b.add(rest, own[d]), rest);
      }
      return c.b.get(x, at);
    }))};
  }
  if (mode != "constant" && mode != "reflect" && mode != "edge")
    c.fail("attribute 'mode': expected constant, reflect, edge or wrap, got '" + mode + "'");
  const Pad how = mode == "constant" ? Pad::constant : mode == "reflect" ? Pad::reflect : Pad::edge;
  return {c.result(core::detail::pad(x, widths, how, value, c.b.loc))};
}

// ---- blocks of pixels

namespace {

/// [n, c, h, w] in eight sizes: as these, its dimensions in this order, taken together to these.
Datum regrouped(const Call& c, const Datum& x, const Indices& split, const std::vector<int>& order,
                const Indices& joined) {
  return c.b.reshape(c.permute(c.b.reshape(x, split), order), joined);
}

}  // namespace

Terms depth_to_space(const Call& c) {
  const Datum x = c[0];
  if (c.rank() != 4) c.fail("expected a tensor [batch, channels, height, width], got " + x.type().str());
  const Datum k = c.integer(c.attribute("blocksize"));
  if (known(k) < 1) c.fail("attribute 'blocksize': expected 1 or more, got " + std::to_string(known(k)));
  const Indices s = c.sizes(x);
  const Datum depth = c.b.div(s[1], c.b.mul(k, k));
  const Indices joined = {s[0], depth, c.b.mul(s[2], k), c.b.mul(s[3], k)};
  if (c.attribute("mode", std::string("DCR")) == "CRD")
    return {c.result(regrouped(c, x, {s[0], depth, k, k, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, joined))};
  return {c.result(regrouped(c, x, {s[0], k, k, depth, s[2], s[3]}, {0, 3, 4, 1, 5, 2}, joined))};
}

Terms space_to_depth(const Call& c) {
  const Datum x = c[0];
  if (c.rank() != 4) c.fail("expected a tensor [batch, channels, height, width], got " + x.type().str());
  const Datum k = c.integer(c.attribute("blocksize"));
  if (known(k) < 1) c.fail("attribute 'blocksize': expected 1 or more, got " + std::to_string(known(k)));
  const Indices s = c.sizes(x);
  const Datum h = c.b.div(s[2], k), w = c.b.div(s[3], k);
  const std::string mode = c.attribute("mode", std::string("DCR"));
  if (mode != "DCR" && mode != "CRD") c.fail("attribute 'mode': expected DCR or CRD, got '" + mode + "'");
  const std::vector<int> order =
      mode == "DCR" ? std::vector{0, 3, 5, 1, 2, 4} : std::vector{0, 1, 3, 5, 2, 4};
  return {
      c.result(regrouped(c, x, {s[0], s[1], h, k, w, k}, order, {s[0], c.b.mul(s[1], c.b.mul(k, k)), h, w}))};
}

// Blocks [batch, channels * block, n] added into a tensor at the places where windows stand: the transpose of
// taking them out of it.
Terms col2im(const Call& c) {
  c.require_operands(3, 3);
  const Datum x = c[0];
  const Sizes image = c.integers(1, "an image's shape"), block = c.integers(2, "a block's shape");
  if (c.rank() != 3 || image.size() != block.size() || image.empty())
    c.fail("expected blocks [batch, channels * block, n] and two shapes of as many dimensions, got " +
           x.type().str() + ", " + shape_text(image) + " and " + shape_text(block));
  const std::size_t spatial = image.size();
  const auto each = [&](const char* name, std::int64_t otherwise, std::size_t n) {
    Sizes all = c.attributes(name);
    if (all.empty()) all.assign(n, otherwise);
    if (all.size() != n ||
        std::ranges::any_of(all, [&](std::int64_t v) { return v < otherwise || v > 1 << 28; }))
      c.fail(std::string("attribute '") + name + "': expected " + std::to_string(n) + " integers of " +
             std::to_string(otherwise) + " or more");
    return all;
  };
  const Sizes stride = each("strides", 1, spatial), dilation = each("dilations", 1, spatial),
              pads = each("pads", 0, 2 * spatial);
  const Datum batch = c.b.size(x, 0);
  std::int64_t elements = 1, windows = 1;
  Indices blocks, places;
  Indices padded = {batch, c.integer(0)};
  for (std::size_t d = 0; d < spatial; ++d) {
    if (image[d] < 0 || block[d] < 1 || image[d] > 1 << 28 || block[d] > 1 << 28)
      c.fail("expected shapes of sizes above 0, got " + shape_text(image) + " and " + shape_text(block));
    const std::int64_t whole = image[d] + pads[d] + pads[d + spatial];
    const std::int64_t room = whole - dilation[d] * (block[d] - 1) - 1;
    if (room < 0) c.fail("expected blocks that fit into the padded image");
    elements *= block[d];
    windows *= room / stride[d] + 1;
    blocks.push_back(c.integer(block[d]));
    places.push_back(c.integer(room / stride[d] + 1));
    padded.push_back(c.integer(whole));
  }
  c.b.require(c.op(Opcode::eq_, c.b.rem(c.b.size(x, 1), c.integer(elements)), c.integer(0)),
              "expected blocks of {} elements in each channel, got a dimension of {}",
              {c.integer(elements), c.b.size(x, 1)});
  c.b.require_equal(c.b.size(x, 2), c.integer(windows), "expected a block for each place of the window");
  padded[1] = c.b.div(c.b.size(x, 1), c.integer(elements));
  Indices sizes = {batch, padded[1]};
  sizes.insert(sizes.end(), blocks.begin(), blocks.end());
  sizes.insert(sizes.end(), places.begin(), places.end());
  const Datum all = c.b.reshape(x, sizes);
  Datum y = c.b.points(sizes, {c.b.fill(Datum::zero(ir::Type(x.type().element())), padded)},
                       [&](const Indices& at, const Datums& now) {
                         Indices to = {at[0], at[1]};
                         for (std::size_t d = 0; d < spatial; ++d)
                           to.push_back(c.b.add(c.b.mul(at[2 + spatial + d], c.integer(stride[d])),
                                                c.b.mul(at[2 + d], c.integer(dilation[d]))));
                         return Datums{c.b.set(now[0], to, c.b.add(c.b.get(now[0], to), c.b.get(all, at)))};
                       })[0];
  for (std::size_t d = 0; d < spatial; ++d)
    if (pads[d] > 0 || pads[d + spatial] > 0)
      y = part_of(c, y, static_cast<int>(d) + 2, c.integer(pads[d]), c.integer(pads[d] + image[d]));
  return {c.result(y)};
}

Terms center_crop_pad(const Call& c) {
  c.require_operands(2, 2);
  Datum x = c[0];
  const Sizes wanted = c.integers(1, "a shape");
  std::vector<int> axes(static_cast<std::size_t>(c.rank()));
  for (int d = 0; d < c.rank(); ++d) axes[static_cast<std::size_t>(d)] = d;
  if (c.has_attribute("axes")) axes = c.axes(c.attributes("axes"), c.rank());
  if (wanted.size() != axes.size())
    c.fail("expected a size for each of " + std::to_string(axes.size()) + " dimensions, got " +
           std::to_string(wanted.size()));
  std::vector<std::array<Datum, 2>> widths(static_cast<std::size_t>(c.rank()), {c.integer(0), c.integer(0)});
  bool any = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t have = c.known_size(x, axes[i]), want = wanted[i];
    if (want < 0 || want > std::int64_t{1} << 40)
      c.fail("expected sizes of 0 or more, got " + std::to_string(want));
    if (want < have) {
      const std::int64_t first = (have - want) / 2;
      x = part_of(c, x, axes[i], c.integer(first), c.integer(first + want));
    } else if (want > have) {
      any = true;
      widths[static_cast<std::size_t>(axes[i])] = {c.integer((want - have) / 2),
                                                   c.integer(want - have - (want - have) / 2)};
    }
  }
  if (!any) return {c.result(x)};
  return {c.result(
      core::detail::pad(x, widths, core::Pad::constant, Datum::zero(ir::Type(x.type().element())), c.b.loc))};
}

Terms trilu(const Call& c) {
  const Datum x = c[0];
  if (c.rank() < 2) c.fail("expected matrices, got " + x.type().str());
  const bool upper = c.attribute("upper", std::int64_t{1}) != 0;
  const Datum k = c.has(1) ? c.cast(c.reshape(c[1], {}), ir::Kind::i64) : c.integer(0);
  return {c.result(c.b.tabulate(x.type().element(), c.sizes(x), [&](const Indices& at) {
    const Datum column = at.back(), diagonal = c.b.add(at[at.size() - 2], k);
    const Datum kept = upper ? c.op(Opcode::le_, diagonal, column) : c.op(Opcode::le_, column, diagonal);
    return c.b.select(kept, c.b.get(x, at), Datum::zero(ir::Type(x.type().element())));
  }))};
}

}  // namespace lantern::onnx::rules
