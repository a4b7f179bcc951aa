// Sequences of tensors, whose lengths are known while the program is made, and optional values.
#include <algorithm>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/containers.hpp"

namespace lantern::onnx::rules {

namespace {

const Term& sequence(const Call& c, std::size_t i) {
  if (i >= c.in.size() || c.in[i].structure != Term::Structure::sequence)
    c.fail("operand " + std::to_string(i + 1) + ": expected a sequence");
  return c.in[i];
}

std::size_t position(const Call& c, std::size_t i, std::size_t places, std::size_t otherwise) {
  if (!c.has(i)) return otherwise;
  const std::int64_t given = c.integer(i, "a position"), n = static_cast<std::int64_t>(places);
  if (given < -n || given >= n)
    c.fail("expected a position from " + std::to_string(-n) + " to " + std::to_string(n - 1) + ", got " +
           std::to_string(given));
  return static_cast<std::size_t>(given < 0 ? given + n : given);
}

}  // namespace

Terms sequence_construct(const Call& c) {
  c.term(0);
  for (std::size_t i = 0; i < c.in.size(); ++i)
    if (c.element(i) != c.element()) c.fail("expected tensors of one element type");
  return {Term::sequence(c.in, c.element())};
}
Terms sequence_empty(const Call& c) {
  return {Term::sequence({}, c.element_attribute("dtype", Element::float32))};
}
Terms sequence_length(const Call& c) {
  return {c.result(c.integer(static_cast<std::int64_t>(sequence(c, 0).items.size())), Element::int64)};
}
Terms sequence_at(const Call& c) {
  const Term& s = sequence(c, 0);
  return {s.items[position(c, 1, s.items.size(), 0)]};
}
Terms sequence_insert(const Call& c) {
  Term s = sequence(c, 0);
  std::size_t at = s.items.size();
  if (c.has(2)) {
    const std::int64_t given = c.integer(2, "a position"), n = static_cast<std::int64_t>(at);
    if (given < -n || given > n)
      c.fail("expected a position from " + std::to_string(-n) + " to " + std::to_string(n) + ", got " +
             std::to_string(given));
    at = static_cast<std::size_t>(given < 0 ? given + n : given);
  }
  s.items.insert(s.items.begin() + static_cast<std::ptrdiff_t>(at), c.term(1));
  return {s};
}
Terms sequence_erase(const Call& c) {
  Term s = sequence(c, 0);
  if (s.items.empty()) c.fail("expected a sequence with items, got an empty one");
  s.items.erase(s.items.begin() +
                static_cast<std::ptrdiff_t>(position(c, 1, s.items.size(), s.items.size() - 1)));
  return {s};
}
Terms concat_from_sequence(const Call& c) {
  const Term& s = sequence(c, 0);
  if (s.items.empty()) c.fail("expected a sequence with items, got an empty one");
  Datums all;
  for (const Term& t : s.items) all.push_back(c.datum(t));
  const bool fresh = c.attribute("new_axis", std::int64_t{0}) != 0;
  const int axis = c.axis(c.attribute("axis"), s.items[0].rank() + (fresh ? 1 : 0));
  if (fresh && !all[0].type().is_tensor()) {
    for (Datum& d : all) d = c.b.fill(d, {c.integer(1)});
    return {c.result(core::detail::concat(all, 0, c.b.loc), s.element)};
  }
  return {c.result(fresh ? core::detail::stack(all, axis, c.b.loc) : core::detail::concat(all, axis, c.b.loc),
                   s.element)};
}
Terms split_to_sequence(const Call& c) {
  const Datum x = c[0];
  const int axis = c.axis(c.attribute("axis", std::int64_t{0}), c.rank());
  const std::int64_t size = c.known_size(x, axis);
  Sizes parts;
  bool keep = true;
  if (!c.has(1)) {
    parts.assign(static_cast<std::size_t>(size), 1);
    keep = c.attribute("keepdims", std::int64_t{1}) != 0;
  } else if (c.rank(1) == 0) {
    const std::int64_t each = c.integer(1, "a size of parts");
    if (each < 1) c.fail("expected parts of 1 or more elements, got " + std::to_string(each));
    for (std::int64_t left = size; left > 0; left -= each) parts.push_back(std::min(each, left));
  } else {
    parts = c.integers(1, "sizes of parts");
  }
  std::vector<Term> items;
  std::int64_t at = 0;
  for (const std::int64_t n : parts) {
    std::vector<core::Part> all(static_cast<std::size_t>(c.rank()), core::Part(core::named::all));
    core::Part& own = all[static_cast<std::size_t>(axis)];
    own.lo = c.integer(at);
    if (keep)
      own.hi = c.integer(at + n);
    else
      own.step = 0;
    if (n < 0 || at + n > size)
      c.fail("expected parts that make up the whole dimension of " + std::to_string(size));
    if (!keep && c.rank() == 1)
      items.push_back(c.result(c.b.get(x, {c.integer(at)})));
    else
      items.push_back(c.result(core::detail::part(x, all, c.b.loc)));
    at += n;
  }
  if (at != size)
    c.fail("expected parts that make up the whole dimension of " + std::to_string(size) + ", got " +
           std::to_string(at));
  return {Term::sequence(std::move(items), c.element())};
}
Terms sequence_map(const Call& c) {
  const Graph& body = c.graph_attribute("body");
  const std::size_t n = sequence(c, 0).items.size();
  std::vector<std::vector<Term>> items(body.outputs.size());
  for (std::size_t i = 0; i < n; ++i) {
    Terms in;
    for (const Term& t : c.in) {
      if (t.structure == Term::Structure::sequence && t.items.size() != n)
        c.fail("expected sequences of one length");
      in.push_back(t.structure == Term::Structure::sequence ? t.items[i] : t);
    }
    const Terms results = c.execution.run(body, in, c.frame);
    for (std::size_t k = 0; k < results.size(); ++k) items[k].push_back(results[k]);
  }
  Terms out;
  for (std::size_t k = 0; k < items.size(); ++k) {
    const Element e = items[k].empty() ? body.outputs[k].element : items[k][0].element;
    out.push_back(Term::sequence(std::move(items[k]), e));
  }
  return out;
}

Terms optional(const Call& c) { return {c.in.empty() ? Term() : c.in[0]}; }
Terms optional_has_element(const Call& c) {
  return {c.result(Datum::integer(c.has(0) ? 1 : 0, ir::Bool), Element::boolean)};
}
Terms optional_get_element(const Call& c) {
  if (!c.has(0)) c.fail("expected an optional value that is there, got none");
  return {c.in[0]};
}

}  // namespace lantern::onnx::rules
