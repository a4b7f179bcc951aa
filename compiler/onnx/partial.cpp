// Operators on elements one by one: how sizes stay known, or stay a few numbers, on their way to a Reshape.
#include <algorithm>

#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/onnx/rules.hpp"

namespace lantern::onnx::partial {

namespace {

std::optional<std::int64_t> count_of(const Sizes& shape) {
  std::int64_t n = 1;
  for (const std::int64_t d : shape) {
    if (d < 0 || d > most_elements) return std::nullopt;
    n *= d;
    if (n > most_elements) return std::nullopt;
  }
  return n;
}

Sizes shape_of(const Term& t) { return t.datum.empty() ? t.shape : t.dims(); }

/// Whether the term has elements, or can be given some that are literals.
bool with_elements(Term& t) {
  if (t.elements) return true;
  if (t.datum.is_tagged()) return false;  // a derivative passes through it
  const auto v = value_of(t);
  if (!v || v->size() > most_elements) return false;
  const Origins from = t.origins;
  t = constant(*v);
  t.origins = from;
  return true;
}

/// What the rule makes of the numbers of elements instead of the elements of these operands: null where it
/// needs more than is known.
std::optional<Terms> by_number(const Call& c, Rule rule, std::size_t first, std::size_t last) {
  Datums all;
  Call now = c;
  for (std::size_t i = 0; i < now.in.size(); ++i) {
    Term& t = now.in[i];
    if (!t.present()) continue;
    if (!with_elements(t)) return std::nullopt;
    if (i < first || i >= last) {
      const auto v = value_of(t);
      if (!v) return std::nullopt;
      t = Term::tensor(boxed(*v), t.element);
      continue;
    }
    Value numbers(Element::int64, shape_of(t));
    auto to = numbers.mutable_elements<std::int64_t>();
    for (std::size_t k = 0; k < to.size(); ++k) to[k] = static_cast<std::int64_t>(all.size() + k);
    all.insert(all.end(), t.elements->begin(), t.elements->end());
    t = Term::tensor(boxed(numbers), Element::int64);
  }
  std::optional<Terms> out;
  core::ad::run_eagerly({"numbers",
                         [&](const Datums&) {
                           Terms results = rule(now);
                           for (Term& t : results) {
                             const auto v = value_of(t);
                             if (!v || v->size() > most_elements) return Datums();
                             Datums elements;
                             for (std::size_t k = 0; k < static_cast<std::size_t>(v->size()); ++k)
                               elements.push_back(all.at(static_cast<std::size_t>(v->integer_at(k))));
                             t = Term::of_elements(std::move(elements), v->shape(), c.element(first));
                           }
                           out = std::move(results);
                           return Datums();
                         }},
                        {});
  return out;
}

}  // namespace

std::optional<Terms> elementwise(const Call& c, Rule rule) {
  Call now = c;
  Sizes shape;
  for (Term& t : now.in) {
    if (!t.present()) continue;
    if (!with_elements(t)) return std::nullopt;
    const Sizes own = shape_of(t);
    if (own.size() > shape.size()) shape.insert(shape.begin(), own.size() - shape.size(), 1);
    for (std::size_t k = 0; k < own.size(); ++k) {
      std::int64_t& d = shape[shape.size() - own.size() + k];
      if (d == 1)
        d = own[k];
      else if (own[k] != 1 && own[k] != d)
        return std::nullopt;  // the rule says what is wrong
    }
  }
  const auto count = count_of(shape);
  if (!count) return std::nullopt;
  Datums elements;
  Element e = Element::undefined;
  for (std::int64_t i = 0; i < *count; ++i) {
    Call one = now;
    for (Term& t : one.in) {
      if (!t.present()) continue;
      const Sizes own = shape_of(t);
      std::int64_t at = 0, step = 1, rest = i;
      for (std::size_t k = 0; k < shape.size(); ++k) {  // from the last dimension
        const std::int64_t size = shape[shape.size() - 1 - k], place = rest % size;
        rest /= size;
        if (k >= own.size()) continue;
        const std::int64_t mine = own[own.size() - 1 - k];
        at += mine == 1 ? 0 : place * step;
        step *= mine;
      }
      const Datum element = (*t.elements)[static_cast<std::size_t>(at)];
      t = Term::tensor(element, t.element);
    }
    const Terms result = rule(one);
    if (result.size() != 1) return std::nullopt;
    e = result[0].element;
    elements.push_back(result[0].datum);
  }
  if (*count == 0) return std::nullopt;
  return Terms{Term::of_elements(std::move(elements), shape, e)};
}

std::optional<Terms> moved(const Call& c, Rule rule) { return by_number(c, rule, 0, c.in.size()); }
std::optional<Terms> moved_first(const Call& c, Rule rule) { return by_number(c, rule, 0, 1); }

std::optional<Terms> reduced(const Call& c, Rule rule) {
  Term t = c.term(0);
  if (!with_elements(t) || shape_of(t).size() != 1 || t.elements->empty() || t.elements->size() > 64)
    return std::nullopt;
  if (c.has_attribute("axes") || c.in.size() > 1) {
    Sizes axes = c.attributes("axes");
    if (c.has(1)) axes = c.integers(1, "axes");
    if (axes != Sizes{0} && axes != Sizes{-1} && !axes.empty()) return std::nullopt;
  }
  const auto fold = [&](Opcode code) {
    Datum all = (*t.elements)[0];
    for (std::size_t i = 1; i < t.elements->size(); ++i) all = c.op(code, all, (*t.elements)[i]);
    return all;
  };
  const bool whole = is_integer(t.element);
  Opcode code;
  if (c.node.op == "ReduceProd")
    code = Opcode::mul_;
  else if (c.node.op == "ReduceSum")
    code = Opcode::add_;
  else if (c.node.op == "ReduceMax" && whole)
    code = Opcode::imax_;
  else if (c.node.op == "ReduceMin" && whole)
    code = Opcode::imin_;
  else
    return std::nullopt;
  (void)rule;
  const Datum all = c.wrapped(fold(code), t.element);
  if (c.attribute("keepdims", std::int64_t{1}) != 0) return Terms{Term::of_elements({all}, {1}, t.element)};
  return Terms{Term::of_elements({all}, {}, t.element)};
}

}  // namespace lantern::onnx::partial
