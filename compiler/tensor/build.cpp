#include "lantern/compiler/tensor/build.hpp"

#include <algorithm>

#include "lantern/compiler/staging/requirement.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::core::detail {

std::int64_t known(const Datum& size) { return size.is_literal() ? size.i() : ir::dynamic; }

std::vector<int> others(int rank, std::span<const int> axes) {
  std::vector<int> rest;
  for (int d = 0; d < rank; ++d)
    if (std::ranges::find(axes, d) == axes.end()) rest.push_back(d);
  return rest;
}

Datum Build::number(double v, const Datum& like) {
  const ir::Type type(like.type().element());
  return type.is_float_element() ? Datum::number(v, type) : Datum::integer(static_cast<std::int64_t>(v), type);
}

Datum Build::get(const Datum& t, const Indices& at) const {
  Datums operands = {t};
  operands.insert(operands.end(), at.begin(), at.end());
  return perform({Opcode::get_, 0, loc}, operands);
}
Datum Build::set(const Datum& t, const Indices& at, const Datum& v) const {
  Datums operands = {t};
  operands.insert(operands.end(), at.begin(), at.end());
  operands.push_back(v);
  return perform({Opcode::set_, 0, loc}, operands);
}
Datum Build::add_at(const Datum& t, const Indices& at, const Datum& v) const {
  Datums operands = {t};
  operands.insert(operands.end(), at.begin(), at.end());
  operands.push_back(v);
  return perform({Opcode::add_at_, 0, loc}, operands);
}

Indices Build::sizes(const Datum& t) const {
  Indices all;
  for (int d = 0; d < t.type().rank(); ++d) all.push_back(size(t, d));
  return all;
}

Datum Build::primal(const Datum& a) const {
  return a.type().is_float_element() ? perform({Opcode::stop_gradient_, 0, loc}, {a}) : strip(a);
}

Datum Build::cast(const Datum& a, ir::Kind to) const {
  return a.type().element() == to ? a : perform({Opcode::cast_, static_cast<std::int64_t>(to), loc}, {a});
}

Datum Build::fill(const Datum& v, const Indices& sizes) const {
  std::vector<std::int64_t> shape;
  Datums operands = {v};
  for (const Datum& size : sizes) {
    shape.push_back(known(size));
    if (size.is_literal() && size.i() < 0) raise_at(loc, "a tensor of negative size, " + std::to_string(size.i()));
    operands.push_back(size);
  }
  return perform({Opcode::fill_, 0, loc, shape}, operands);
}

Datum Build::reshape(const Datum& t, const Indices& sizes) const {
  std::int64_t before = 1, after = 1;
  for (const std::int64_t d : t.type().dims()) before = before == ir::dynamic || d == ir::dynamic ? ir::dynamic : before * d;
  for (const Datum& d : sizes) after = after == ir::dynamic || known(d) == ir::dynamic ? ir::dynamic : after * known(d);
  if (before != ir::dynamic && after != ir::dynamic && before != after)
    raise_at(loc, "reshape: expected a shape of " + std::to_string(before) + " elements for " + t.type().str() +
                      ", got one of " + std::to_string(after));
  return perform({Opcode::reshape_, 0, loc}, {t, fill(Datum::zero(ir::Type(t.type().element())), sizes)});
}

Datum Build::einsum(const std::string& notation, const Datums& operands, std::span<const std::int64_t> dims) const {
  std::vector<std::size_t> order(operands.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const ir::Call call = ir::named(ir::notation(notation), order);
  Datums in;
  for (const std::size_t i : call.order) in.push_back(operands[i]);
  return perform({call.code, 0, loc, dims, call.text}, in);
}

namespace {
using ir::index_letters;
}

// "ij->iuj;u" with u = 1, of which every index but u is the operand's: nothing is moved.
Datum Build::with_ones(const Datum& t, std::span<const int> places) const {
  if (places.empty()) return t;
  const int rank = t.type().rank() + static_cast<int>(places.size());
  if (rank > static_cast<int>(index_letters.size())) raise_at(loc, "a tensor of too many dimensions");
  for (const int d : places)
    if (d < 0 || d >= rank) raise_at(loc, "expected a tensor of more dimensions, got " + t.type().str());
  std::string from, to, sizes;
  Datums operands = {t};
  std::vector<std::int64_t> shape;
  for (int d = 0, k = 0; d < rank; ++d) {
    const char letter = index_letters[static_cast<std::size_t>(d)];
    to += letter;
    if (std::ranges::find(places, d) != places.end()) {
      sizes += letter;
      operands.push_back(integer(1));
      shape.push_back(1);
    } else {
      from += letter;
      shape.push_back(t.type().dims()[static_cast<std::size_t>(k++)]);
    }
  }
  return einsum(from + "->" + to + ";" + sizes, operands, shape);
}

Datum Build::without(const Datum& t, std::span<const int> places) const {
  if (places.empty()) return t;
  std::string from, to;
  Indices at;
  std::vector<std::int64_t> shape;
  for (int d = 0; d < t.type().rank(); ++d) {
    if (std::ranges::find(places, d) != places.end()) {
      from += "[0]";
      at.push_back(integer(0));
      continue;
    }
    from += index_letters[static_cast<std::size_t>(d)];
    to += index_letters[static_cast<std::size_t>(d)];
    shape.push_back(t.type().dims()[static_cast<std::size_t>(d)]);
  }
  return to.empty() ? get(t, at) : einsum(from + "->" + to, {t}, shape);
}

Datums Build::loop(const Datum& lo, const Datum& hi, Datums state,
                   FunctionRef<Datums(const Datum& i, const Datums& state)> body) const {
  state.insert(state.begin(), lo);
  Datums end = detail::loop(
      std::move(state), [&](const Datums& s) { return less(s[0], hi); },
      [&](const Datums& s) {
        Datums next = body(s[0], Datums(s.begin() + 1, s.end()));
        next.insert(next.begin(), add(s[0], integer(1)));
        return next;
      },
      loc);
  end.erase(end.begin());
  return end;
}

Datums Build::points(const Indices& sizes, Datums state,
                     FunctionRef<Datums(const Indices& at, const Datums& state)> body) const {
  const std::function<Datums(Indices, Datums)> level = [&](Indices at, Datums now) {
    if (at.size() == sizes.size()) return body(at, now);
    return loop(integer(0), sizes[at.size()], std::move(now), [&](const Datum& i, const Datums& inner) {
      Indices deeper = at;
      deeper.push_back(i);
      return level(std::move(deeper), inner);
    });
  };
  return level({}, std::move(state));
}

Datum Build::tabulate(ir::Kind element, const Indices& sizes,
                      FunctionRef<Datum(const Indices& at)> body) const {
  if (sizes.empty()) return body({});
  return points(sizes, {fill(Datum::zero(ir::Type(element)), sizes)},
                [&](const Indices& at, const Datums& out) { return Datums{set(out[0], at, body(at))}; })[0];
}

void Build::require_equal(const Datum& x, const Datum& y, const std::string& message) const {
  require(binary(Opcode::eq_, x, y), message + ", got {} and {}", {x, y});
}

void Build::require(const Datum& condition, const std::string& message, std::initializer_list<Datum> numbers) const {
  detail::require(condition, message, loc, std::span(numbers.begin(), numbers.size()));
}

}  // namespace lantern::core::detail
