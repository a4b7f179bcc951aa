// Operations in index notation: sums of products as MatMul, Einsum, ReduceSum, or moves of elements. Places
// with more than an index become windows (export_window.cpp), slices, or a sum with a tensor that is 1 where
// places and indices meet.
#include <algorithm>
#include <map>

#include "lantern/compiler/onnx/exporter.hpp"
#include "lantern/ir/op.hpp"

namespace lantern::onnx::exporting {

namespace {

/// A factor whose dimensions have an index each.
struct Factor {
  std::string name;
  std::string letters;
};

Ints places(const std::string& letters, const std::string& of) {
  Ints all;
  for (const char c : of) all.push_back(static_cast<std::int64_t>(letters.find(c)));
  return all;
}
std::string without(const std::string& a, const std::string& b) {
  std::string rest;
  for (const char c : a)
    if (!has(b, c)) rest += c;
  return rest;
}
std::string common(const std::string& a, const std::string& b) { return without(a, without(a, b)); }
bool repeats(const std::string& letters) {
  for (std::size_t i = 0; i < letters.size(); ++i)
    if (letters.find(letters[i]) != i) return true;
  return false;
}

struct Contraction {
  Exporter& e;
  const ir::Op& op;
  const ir::Notation n;
  const std::string parts;  ///< indices that may be of a part of a dimension
  ir::Kind kind = op.results[0]->type.element();
  bool inside = op.integer == ir::inside;
  std::map<char, Size> sizes = {};
  std::vector<Factor> factors = {};
  std::string fresh_letters = {};
  std::size_t first_size = 0;

  void find_sizes() {
    for (std::size_t i = 0; i < n.operands.size(); ++i) {
      const Form& f = e.form(op.operands[i]);
      for (std::size_t d = 0; d < n.operands[i].at.size(); ++d) {
        const ir::Subscript& s = n.operands[i].at[d];
        if (s.is_letter() && !has(parts, s.letter()) &&
            (!sizes.contains(s.letter()) || sizes[s.letter()].known < 0))
          sizes[s.letter()] = f.sizes[d];
      }
    }
    for (std::size_t i = 0; i < n.sizes.size(); ++i) {
      Size& s = sizes[n.sizes[i]];
      if (s.known < 0) s = e.size_of(op.operands[n.operands.size() + i]);
    }
    // Of an index with other places its dimensions say the size too; the least of them where it has to be
    // within.
    for (std::size_t i = 0; i < n.operands.size(); ++i)
      for (std::size_t d = 0; d < n.operands[i].at.size(); ++d)
        if (const ir::Subscript& s = n.operands[i].at[d]; s.is_letter() && !sizes.contains(s.letter()))
          sizes[s.letter()] = e.form(op.operands[i]).sizes[d];
    for (std::size_t d = 0; d < n.result.size(); ++d)
      if (const std::int64_t known = op.results[0]->type.is_tensor() ? op.results[0]->type.dims()[d] : -1;
          known >= 0 && n.result[d].is_letter())
        sizes[n.result[d].letter()] = Size::number(known);
    const std::string used = n.letters();
    for (const char c : ir::index_letters)
      if (!has(used, c)) fresh_letters += c;
  }
  char fresh_letter(const Size& size) {
    if (fresh_letters.empty())
      e.refuse(op, "an operation with more indices than there are letters", "split it");
    const char c = fresh_letters.back();
    fresh_letters.pop_back();
    sizes[c] = size;
    return c;
  }

  /// 1 where a place is the sum of indices that it is said to be, else 0: of [size, indices...].
  Factor meeting(const ir::Subscript& s, char place) {
    std::string letters(1, place);
    for (const auto& t : s.terms) letters += t.letter;
    const std::size_t rank = letters.size();
    std::string sum = e.w.integer(s.constant);
    for (std::size_t i = 0; i < s.terms.size(); ++i) {
      std::string step = e.w.range(e.scalar(sizes.at(s.terms[i].letter)));
      if (s.terms[i].factor != 1) step = e.w.node("Mul", {step, e.w.integer(s.terms[i].factor)});
      Ints axes;
      for (std::size_t d = i + 2; d < rank; ++d) axes.push_back(static_cast<std::int64_t>(d - i - 1));
      step = e.w.unsqueeze(step, axes);
      sum = s.constant == 0 && i == 0 ? step : e.w.node("Add", {sum, step});
    }
    Ints axes;
    for (std::size_t d = 1; d < rank; ++d) axes.push_back(static_cast<std::int64_t>(d));
    const std::string at = e.w.unsqueeze(e.w.range(e.scalar(sizes.at(place))), axes);
    return {e.w.cast(e.w.node("Equal", {at, sum}), kind), letters};
  }

  /// An operand with an index for each of its dimensions.
  void add_factor(std::size_t i) {
    const Form& form = e.form(op.operands[i]);
    Factor f{e.whole(form), {}};
    std::vector<Size> own = form.sizes;
    std::size_t axis = 0;
    for (std::size_t d = 0; d < own.size(); ++d) {
      const ir::Subscript& s = n.operands[i].at[d];
      const auto a = static_cast<std::int64_t>(axis);
      if (s.is_letter() && (!has(parts, s.letter()) || sizes.at(s.letter()) == own[d])) {
        f.letters += s.letter();
        ++axis;
      } else if (s.terms.empty()) {
        if (own[d].is(1) && s.constant == 0)
          f.name = e.w.squeeze(f.name, {a});
        else if (own[d].known >= 0 && (s.constant < 0 || s.constant >= own[d].known))  // outside
          f.name = e.w.node("Mul", {e.w.gather(f.name, e.w.integer(0), a), e.w.number(0, kind)});
        else
          f.name = e.w.gather(f.name, e.w.integer(s.constant), a);
      } else {
        Ints steps;
        Sizes counts;
        std::string letters;
        for (const auto& t : s.terms) {
          steps.push_back(t.factor);
          counts.push_back(sizes.at(t.letter));
          letters += t.letter;
        }
        f.name = read_at(e, f.name, kind, f.letters.size() + own.size() - d, axis, own[d], steps, counts,
                         s.constant, inside);
        f.letters += letters;
        axis += letters.size();
      }
    }
    if (repeats(f.letters)) {  // the diagonal
      std::string once;
      for (const char c : f.letters)
        if (!has(once, c)) once += c;
      f = {e.w.node("Einsum", {f.name}, {attribute("equation", f.letters + "->" + once)}), once};
    }
    factors.push_back(std::move(f));
  }

  Factor summed(Factor f, const std::string& keep) {
    const std::string gone = without(f.letters, keep);
    if (gone.empty()) return f;
    return {e.w.reduce("ReduceSum", f.name, places(f.letters, gone)), without(f.letters, gone)};
  }
  Factor ordered(const Factor& f, const std::string& letters) {
    return {e.w.transpose(f.name, places(f.letters, letters)), letters};
  }
  /// With dimensions of size 1 for the indices that it lacks, but for those in front.
  std::string spread(const Factor& f, const std::string& letters) {
    const Factor in_order = ordered(f, common(letters, f.letters));
    const std::size_t first = in_order.letters.empty() ? letters.size() : letters.find(in_order.letters[0]);
    Ints axes;
    for (std::size_t i = first; i < letters.size(); ++i)
      if (!has(f.letters, letters[i])) axes.push_back(static_cast<std::int64_t>(i - first));
    return e.w.unsqueeze(in_order.name, axes);
  }

  /// The product of two factors, summed over what `keep` lacks.
  Factor product(Factor a, Factor b, const std::string& keep) {
    a = summed(a, keep + b.letters);
    b = summed(b, keep + a.letters);
    const std::string both = common(a.letters, b.letters);
    const std::string batch = common(both, keep), inner = without(both, keep);
    const std::string rows = without(a.letters, both), columns = without(b.letters, both);
    if (inner.empty()) {
      const std::string all = common(keep, a.letters + b.letters);
      return {e.w.node("Mul", {spread(a, all), spread(b, all)}), all};
    }
    if (inner.size() == 1 && rows.size() <= 1 && columns.size() <= 1 &&
        (batch.empty() || (rows.size() == 1 && columns.size() == 1)))
      return {e.w.node("MatMul",
                       {ordered(a, batch + rows + inner).name, ordered(b, batch + inner + columns).name}),
              batch + rows + columns};
    const std::string all = common(keep, a.letters + b.letters);
    return {e.w.node("Einsum", {a.name, b.name},
                     {attribute("equation", a.letters + "," + b.letters + "->" + all)}),
            all};
  }

  /// The indices of the result; places that are more than an index are indices of their own for now.
  std::string result_letters() {
    std::string letters;
    for (std::size_t d = 0; d < n.result.size(); ++d) {
      const ir::Subscript& s = n.result[d];
      if (s.is_letter() && !has(letters, s.letter())) {
        letters += s.letter();
        continue;
      }
      const Form& base = e.form(op.operands[0]);
      if (s.terms.empty() && s.constant == 0 && base.sizes[d].is(1)) {  // a dimension of one element
        letters += fresh_letter(base.sizes[d]);
        continue;
      }
      const Size size = n.accumulates ? base.sizes[d] : s.is_letter() ? sizes.at(s.letter()) : Size{};
      const char place = fresh_letter(size);
      factors.push_back(meeting(s, place));
      letters += place;
    }
    return letters;
  }

  Form result(const Factor& f, const std::string& letters) {
    Sizes to;
    bool whole = true;
    for (const char c : letters) {
      to.push_back(sizes.at(c));
      whole = whole && (has(f.letters, c) || sizes.at(c).is(1));
    }
    const std::string in_front =
        letters.substr(0, f.letters.empty() ? letters.size() : letters.find(common(letters, f.letters)[0]));
    whole = whole && in_front.empty();
    return e.sized(spread(f, letters), op.results[0]->type, to, whole || letters.empty());
  }

  Form computed() {
    find_sizes();
    std::size_t count = 0, only = 0;
    for (std::size_t i = 0; i < n.operands.size(); ++i)
      if (n.is_factor(i)) ++count, only = i;
    // One value in other sizes.
    if (count == 1 && !n.accumulates && e.form(op.operands[only]).number && ir::moves_elements(n) &&
        all_letters(n.operands[only].at)) {
      const Form& value = e.form(op.operands[only]);
      Sizes to;
      for (const auto& s : n.result) to.push_back(sizes.at(s.letter()));
      Form f = e.sized(value.name, op.results[0]->type, to, to.empty());
      f.number = value.number;
      return f;
    }
    for (std::size_t i = 0; i < n.operands.size(); ++i)
      if (n.is_factor(i)) add_factor(i);
    const std::string letters = result_letters();
    Factor all = factors[0];
    if (factors.size() == 1) {
      all = summed(all, letters);
    } else {
      for (std::size_t i = 1; i < factors.size(); ++i) {
        std::string keep = letters;
        for (std::size_t k = i + 1; k < factors.size(); ++k) keep += without(factors[k].letters, keep);
        all = product(all, factors[i], keep);
      }
    }
    return result(all, letters);
  }
  static bool all_letters(const ir::Subscripts& at) {
    return std::ranges::all_of(at, [](const ir::Subscript& s) { return s.is_letter(); });
  }
};

}  // namespace

std::string read_at(Exporter& e, const std::string& x, ir::Kind kind, std::size_t rank, std::size_t axis,
                    const Size& size, const Ints& factors, const Sizes& counts, std::int64_t constant,
                    bool inside) {
  const auto a = static_cast<std::int64_t>(axis);
  std::int64_t least = constant, most = constant;  // places that are read, where they are known
  bool known = size.known >= 0;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    known = known && counts[i].known > 0;
    (factors[i] < 0 ? least : most) += factors[i] * (counts[i].known - 1);
  }
  if (factors.size() == 1 && known && least >= 0 && most < size.known) {
    if (factors[0] == 1 && most + 1 == size.known && least == 0) return x;
    const std::int64_t end = factors[0] > 0 ? most + 1
                             : least == 0   ? std::numeric_limits<std::int64_t>::min()
                                            : least - 1;
    return e.w.slice(x, {factors[0] > 0 ? least : most}, {end}, {a}, {factors[0]});
  }
  if (factors.size() == 1 && factors[0] == 1 && known) {  // zeros in front and behind, or less
    Ints pads(2 * rank);
    pads[axis] = -least;
    pads[rank + axis] = most - (size.known - 1);
    if (kind != ir::Kind::boolean) return e.w.pad(x, pads, kind);
  }
  if (factors.size() == 1 && factors[0] == 1 && constant == 0 && counts[0] == size) return x;
  if (factors.size() == 1 && factors[0] > 0 && constant >= 0 && inside) {
    const Size steps = e.add(Size::number(constant), factors[0], counts[0]);
    return e.w.node("Slice",
                    {x, e.w.ints({constant}), e.vector({steps}), e.w.ints({a}), e.w.ints({factors[0]})});
  }
  std::string at = e.w.integer(constant);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    std::string step = e.w.range(e.scalar(counts[i]));
    if (factors[i] != 1) step = e.w.node("Mul", {step, e.w.integer(factors[i])});
    Ints axes;
    for (std::size_t d = i + 1; d < factors.size(); ++d) axes.push_back(static_cast<std::int64_t>(d - i));
    step = e.w.unsqueeze(step, axes);
    at = constant == 0 && i == 0 ? step : e.w.node("Add", {at, step});
  }
  if (inside || (known && least >= 0 && most < size.known)) return e.w.gather(x, at, a);
  const std::string end = e.scalar(size);
  const std::string possible =
      e.w.node("Min", {e.w.node("Max", {at, e.w.integer(0)}), e.w.node("Sub", {end, e.w.integer(1)})});
  const std::string is_inside = e.w.node("Equal", {at, possible});
  Ints axes;
  for (std::size_t d = axis + 1; d < rank; ++d)
    axes.push_back(static_cast<std::int64_t>(factors.size() + d - axis - 1));
  return e.elementwise(ir::Opcode::select_, kind,
                       {e.w.unsqueeze(is_inside, axes), e.w.gather(x, possible, a), e.w.number(0, kind)});
}

namespace {

/// With one term for each index: "2i-i" is a place that is i, of which nothing says how far it goes.
void merge_terms(ir::Subscripts& at) {
  for (ir::Subscript& s : at) {
    std::vector<ir::Subscript::Term> merged;
    for (const auto& t : s.terms) {
      const auto same = std::ranges::find(merged, t.letter, &ir::Subscript::Term::letter);
      if (same == merged.end())
        merged.push_back(t);
      else
        same->factor += t.factor;
    }
    std::erase_if(merged, [](const auto& t) { return t.factor == 0; });
    s.terms = std::move(merged);
  }
}

}  // namespace

void write_notation(Exporter& e, const ir::Op& op) {
  std::vector<ir::Type> types;
  for (const ir::Value* v : op.operands) types.push_back(v->type);
  ir::Notation n = ir::concrete(*ir::notation_of(op.code, op.text), types);
  std::string open;  // indices that are no dimension of an operand
  for (const auto& o : n.operands)
    for (const ir::Subscript& s : o.at)
      if (s.terms.size() > 1 || !s.is_letter())
        for (const auto& t : s.terms) open += t.letter;
  for (auto& o : n.operands) merge_terms(o.at);
  merge_terms(n.result);
  if (!write_window(e, op, n)) e.give(op, Contraction{e, op, n, open}.computed());
  if (!n.accumulates) return;
  const Form& base = e.form(op.operands[0]);
  Form sum = e.form(op.results[0]);
  for (std::size_t d = 0; d < sum.rank(); ++d)
    if (sum.sizes[d].known < 0) sum.sizes[d] = base.sizes[d];
  if (base.number != 0.0) sum = e.elementwise(ir::Opcode::add_, {base, sum}, op.results[0]->type);
  e.give(op, sum);
}

}  // namespace lantern::onnx::exporting
