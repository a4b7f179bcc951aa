// Numbers of iterations, written: elements that are read, what is taken together over indices, and where the best
// was found.
#include <algorithm>
#include <limits>

#include "lantern/compiler/onnx/export_iterations.hpp"

namespace lantern::onnx::exporting {

using ir::Opcode;
using What = Iteration::What;

Sizes Iterations::counts(const std::vector<int>& letters) const {
  Sizes all;
  for (const int l : letters) all.push_back(letter(l).count);
  return all;
}
bool Iterations::ragged(const std::vector<int>& letters) const {
  return std::ranges::any_of(letters, [&](int l) { return letter(l).low.has_value(); });
}
bool Iterations::is_all_of(const T& at, const Size& size) const {
  if (at->what != What::affine || !at->affine.is_letter()) return false;
  const Letter& l = letter(at->affine.factors.begin()->first);
  return l.from == 0 && !l.low && l.count == size;
}

std::string Iterations::spread(const T& t, const std::vector<int>& all) {
  if (t->what == What::plain) return t->form.name;
  const auto first = static_cast<std::size_t>(place_of(all, t->letters[0]));
  Ints axes;
  for (std::size_t i = first; i < all.size(); ++i)
    if (!has(t->letters, all[i])) axes.push_back(static_cast<std::int64_t>(i - first));
  return e.w.unsqueeze(t->name, axes);
}
std::string Iterations::expanded(const T& t, const std::vector<int>& all) {
  if (t->letters == all) return t->what == What::plain ? t->form.name : t->name;
  return e.w.node("Expand", {spread(t, all), e.vector(counts(all))});
}

T Iterations::write(const T& t) {
  if (t->what == What::plain) {
    if (t->form.rank() > 0) no();
    return t;
  }
  if (t->what == What::tensor) return t;
  auto& known = written_[t.get()];
  if (known) return known;
  kept_.push_back(t);
  switch (t->what) {
    case What::affine:
      return known = write_affine(t->affine);
    case What::element:
      return known = write_element(*t, std::nullopt);
    case What::reduced:
      return known = write_reduced(*t);
    case What::ordered: {
      const T x = write(t->of);
      const std::string& name = x->what == What::plain ? x->form.name : x->name;
      return known = tensor(e.w.node("Equal", {name, name}), x->letters, ir::Kind::boolean);
    }
    case What::found:
      return known = write_found(*t);
    case What::low:
    case What::high: {
      const T a = write_affine(t->affine);
      const std::string bound = t->what == What::low ? e.w.integer(0) : t->form.name;
      return known = tensor(e.w.node(t->what == What::low ? "Max" : "Min", {a->name, bound}), a->letters,
                            ir::Kind::i64);
    }
    case What::at_least:
      return known = written_between(write_affine(t->affine), t->low, nullptr);
    case What::between:
      return known = written_between(write_affine(t->affine), t->low, &t->upper);
    case What::number: {
      const T x = write(t->of);
      return known = tensor(e.w.cast(x->what == What::plain ? x->form.name : x->name, t->kind), x->letters,
                            t->kind);
    }
    default:
      no();
  }
}

T Iterations::written_between(const T& t, const Affine& low, const Affine* upper) {
  const auto joined = [&](const char* op, const T& x, const T& y) {
    const std::vector<int> all = united(x->letters, y->letters);
    return tensor(e.w.node(op, {spread(x, all), spread(y, all)}), all, ir::Kind::i64);
  };
  const T bounded = joined("Max", t, write_affine(low));
  return upper == nullptr ? bounded : joined("Min", bounded, write_affine(*upper));
}

T Iterations::write_affine(const Affine& a) {
  const std::vector<int> all = letters_of(a);
  if (a.minus || ragged(all)) no();
  if (all.empty()) return plain(e.literal(static_cast<double>(a.constant), ir::Kind::i64));
  std::string sum;
  for (const auto& [l, factor] : a.factors) {
    std::string step = e.w.range(e.scalar(letter(l).count));
    if (factor != 1) step = e.w.node("Mul", {step, e.w.integer(factor)});
    step = spread(tensor(step, {l}, ir::Kind::i64), all);
    sum = sum.empty() ? step : e.w.node("Add", {sum, step});
  }
  if (a.constant != 0) sum = e.w.node("Add", {sum, e.w.integer(a.constant)});
  return tensor(sum, all, ir::Kind::i64);
}

std::string Iterations::clamped(const std::string& at, const Size& size) {
  const std::string last =
      size.known > 0 ? e.w.integer(size.known - 1) : e.w.node("Sub", {e.scalar(size), e.w.integer(1)});
  return e.w.node("Min", {e.w.node("Max", {at, e.w.integer(0)}), last});
}

T Iterations::write_element(const Iteration& t, std::optional<double> outside) {
  std::vector<int> all;
  bool shared = false, cut = false;
  std::vector<std::vector<int>> letters;
  for (const T& at : t.at) {
    const auto a = affine_of(at);
    letters.push_back(a ? letters_of(*a) : write(at)->letters);
    if (a && a->minus) no();
    for (const int l : letters.back()) {
      shared = shared || has(all, l);
      cut = cut || letter(l).low;
    }
    all = united(all, letters.back());
  }
  if (cut && !outside) no();
  if (shared) {
    if (cut) no();
    return write_gather(t, all);
  }
  // Each dimension by itself.
  std::string x = e.whole(t.form);
  std::vector<int> order;
  std::string inside;  // whether elements lie inside, of windows that are cut off
  std::size_t rank = t.form.rank();
  for (std::size_t d = 0; d < t.at.size(); ++d) {
    const std::size_t axis = order.size();
    const Size& size = t.form.sizes[d];
    if (is_all_of(t.at[d], size)) {
      order.push_back(letters[d][0]);
      continue;
    }
    if (letters[d].empty()) {
      const T at = write(t.at[d]);
      std::string i = at->form.name;
      if (at->kind != ir::Kind::i64) i = e.w.cast(i, ir::Kind::i64);
      x = e.w.gather(x, t.guarded ? clamped(i, size) : i, static_cast<std::int64_t>(axis));
      --rank;
      continue;
    }
    const auto a = affine_of(t.at[d]);
    const bool is_cut = ragged(letters[d]);
    if (a && !is_cut) {
      Ints factors;
      for (const auto& entry : a->factors) factors.push_back(entry.second);
      // A guarded place may lie outside: what is read there is not used.
      x = read_at(e, x, t.kind, rank, axis, size, factors, counts(letters[d]), a->constant, !t.guarded);
    } else {
      std::string at;
      if (is_cut) {
        std::string sum = e.w.integer(a->constant);
        for (std::size_t i = 0; i < letters[d].size(); ++i) {
          std::string step = e.w.range(e.scalar(letter(letters[d][i]).count));
          if (const std::int64_t f = a->factors.at(letters[d][i]); f != 1)
            step = e.w.node("Mul", {step, e.w.integer(f)});
          sum = e.w.node("Add", {sum, spread(tensor(step, {letters[d][i]}, ir::Kind::i64), letters[d])});
        }
        at = clamped(sum, size);
        Ints axes;
        for (std::size_t k = d + 1; k < t.at.size(); ++k)
          for (std::size_t i = 0; i < letters[k].size(); ++i)
            axes.push_back(static_cast<std::int64_t>(letters[d].size() + axes.size()));
        const std::string here = e.w.unsqueeze(e.w.node("Equal", {sum, at}), axes);
        inside = inside.empty() ? here : e.w.node("And", {inside, here});
      } else {
        const T i = write(t.at[d]);
        at = i->kind == ir::Kind::i64 ? i->name : e.w.cast(i->name, ir::Kind::i64);
        if (t.guarded) at = clamped(at, size);
      }
      x = e.w.gather(x, at, static_cast<std::int64_t>(axis));
    }
    rank += letters[d].size() - 1;
    order.insert(order.end(), letters[d].begin(), letters[d].end());
  }
  if (!inside.empty()) x = e.w.node("Where", {inside, x, e.w.number(*outside, t.kind)});
  Ints perm;
  for (const int l : all) perm.push_back(place_of(order, l));
  return tensor(e.w.transpose(x, perm), all, t.kind);
}

// Elements whose places depend on the same index in several dimensions.
T Iterations::write_gather(const Iteration& t, const std::vector<int>& all) {
  const std::string x = e.whole(t.form);
  std::vector<std::string> index;
  std::size_t batch = 0;  // leading dimensions that are an index each, in order
  while (batch + 1 < t.at.size() && is_all_of(t.at[batch], t.form.sizes[batch]) &&
         t.at[batch]->affine.is_letter(all[batch]))
    ++batch;
  for (std::size_t d = batch; d < t.at.size(); ++d) {
    const T at = write(t.at[d]);
    std::string i = expanded(at, all);
    if (at->kind != ir::Kind::i64) i = e.w.cast(i, ir::Kind::i64);
    if (t.guarded) i = clamped(i, t.form.sizes[d]);
    index.push_back(e.w.unsqueeze(i, {static_cast<std::int64_t>(all.size())}));
  }
  const std::string at =
      index.size() == 1 ? index[0] : e.w.node("Concat", index, {attribute("axis", std::int64_t{-1})});
  const auto dims = batch > 0 ? std::vector{attribute("batch_dims", static_cast<std::int64_t>(batch))}
                              : std::vector<Attribute>{};
  return tensor(e.w.node("GatherND", {x, at}, dims), all, t.kind);
}

T Iterations::write_reduced(const Iteration& t) {
  if (const T pool = write_pool(t)) return pool;
  const double infinity = std::numeric_limits<double>::infinity();
  T x;
  if (t.of->what == What::element && is_extreme(t.op) && (t.kind == ir::Kind::f32 || t.kind == ir::Kind::f64))
    x = write_element(*t.of, t.op == Opcode::max_ ? -infinity : infinity);
  else
    x = write(t.of);
  std::vector<int> over, rest;
  for (const int l : t.over) {
    if (has(x->letters, l))
      over.push_back(l);
    else if (t.op == Opcode::add_ || t.op == Opcode::mul_)
      no();
  }
  if (over.empty()) return x;
  Ints axes;
  for (const int l : over) axes.push_back(place_of(x->letters, l));
  for (const int l : x->letters)
    if (!has(over, l)) rest.push_back(l);
  const bool logical = t.kind == ir::Kind::boolean;
  std::string name = logical ? e.w.cast(x->name, ir::Kind::i32) : x->name;
  const bool largest = t.op == Opcode::max_ || t.op == Opcode::imax_ || t.op == Opcode::lor_;
  const char* op = t.op == Opcode::add_   ? "ReduceSum"
                   : t.op == Opcode::mul_ ? "ReduceProd"
                   : largest              ? "ReduceMax"
                                          : "ReduceMin";
  name = e.w.reduce(op, name, axes);
  return tensor(logical ? e.w.cast(name, ir::Kind::boolean) : name, rest, t.kind);
}

T Iterations::write_pool(const Iteration& t) {
  const Iteration& x = *t.of;
  const std::size_t rank = x.what == What::element ? x.form.rank() : 0;
  const bool sum = t.op == Opcode::add_;
  if ((t.op != Opcode::max_ && !sum) || rank < 3 || rank > 5 || x.guarded ||
      (t.kind != ir::Kind::f32 && t.kind != ir::Kind::f64))
    return nullptr;
  std::vector<int> order, windows;
  Ints size, stride, dilation, before, after, crop_from, crop_to, crop_axes;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto a = d < 2 ? affine_of(x.at[d]) : unbounded(x.at[d]);
    if (!a) return nullptr;
    if (d < 2) {
      if (!is_all_of(x.at[d], x.form.sizes[d]) || has(t.over, a->factors.begin()->first)) return nullptr;
      order.push_back(a->factors.begin()->first);
      continue;
    }
    int place = -1, window = -1;
    for (const int l : letters_of(*a)) (has(t.over, l) ? window : place) = l;
    if (a->minus || a->factors.size() != 2 || place < 0 || window < 0) return nullptr;
    const std::int64_t s = a->factors.at(place), step = a->factors.at(window);
    const std::int64_t n = letter(place).count.known, k = letter(window).count.known,
                       whole = x.form.sizes[d].known;
    if (s < 1 || step < 1 || n < 1 || k < 1 || whole < 1 || letter(place).low) return nullptr;
    if (letter(window).low && (letter(window).size.known != whole || step != 1)) return nullptr;
    // What lies outside the tensor is left out, or read at its edge: no matter for the largest element.
    const bool at_edge = x.at[d]->what == What::between;
    if (at_edge && (sum || x.at[d]->low != Affine{} || x.at[d]->upper != Affine{{}, whole - 1, {}}))
      return nullptr;
    const std::int64_t begin = -a->constant, end = s * (n - 1) + step * (k - 1) + 1 - whole - begin;
    if (!letter(window).low && !at_edge && (begin > 0 || end > 0)) return nullptr;
    if (begin < 0 || end <= -s) {
      crop_axes.push_back(static_cast<std::int64_t>(d));
      crop_from.push_back(std::max<std::int64_t>(0, -begin));
      crop_to.push_back(std::min(whole, whole + end));
    }
    if (begin >= k || end >= k || (sum && (step != 1 || letter(window).low))) return nullptr;
    before.push_back(std::max<std::int64_t>(0, begin));
    after.push_back(std::max<std::int64_t>(0, end));
    size.push_back(k);
    stride.push_back(s);
    dilation.push_back(step);
    order.push_back(place);
    windows.push_back(window);
  }
  std::ranges::sort(windows);
  if (windows != t.over) return nullptr;
  std::vector<int> sorted = order;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) return nullptr;
  std::vector<Attribute> attributes = {attribute("kernel_shape", size), attribute("strides", stride)};
  before.insert(before.end(), after.begin(), after.end());
  if (std::ranges::any_of(before, [](std::int64_t n) { return n != 0; }))
    attributes.push_back(attribute("pads", before));
  if (std::ranges::any_of(dilation, [](std::int64_t n) { return n != 1; }))
    attributes.push_back(attribute("dilations", dilation));
  const std::string from =
      e.w.slice(e.whole(x.form), crop_from, crop_to, crop_axes, Ints(crop_axes.size(), 1));
  std::string y = e.w.node(sum ? "AveragePool" : "MaxPool", {from}, attributes);
  if (sum) {
    std::int64_t count = 1;
    for (const std::int64_t k : size) count *= k;
    y = e.scaled(y, static_cast<double>(count), t.kind);
  }
  Ints perm;
  for (const int l : sorted) perm.push_back(place_of(order, l));
  return tensor(e.w.transpose(y, perm), sorted, t.kind);
}

T Iterations::write_found(const Iteration& t) {
  const Iteration& best = *t.of;
  const auto unbounded_place = unbounded(t.which);
  if (!is_extreme(best.op) || !unbounded_place || unbounded_place->minus) no();
  const bool largest = best.op == Opcode::max_;
  const double worst =
      largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  const T x = best.of->what == What::element ? write_element(*best.of, worst) : write(best.of);
  std::vector<int> rest;
  Ints perm;
  for (const int l : x->letters)
    if (!has(best.over, l)) rest.push_back(l);
  for (const int l : rest) perm.push_back(place_of(x->letters, l));
  for (const int l : best.over) {
    if (!has(x->letters, l)) no();
    perm.push_back(place_of(x->letters, l));
  }
  std::string name = e.w.transpose(x->name, perm);
  if (best.over.size() > 1) {
    Sizes to = counts(rest);
    Size all = Size::number(1);
    for (const int l : best.over)
      all = all.known >= 0 && letter(l).count.known >= 0 ? Size::number(all.known * letter(l).count.known)
                                                         : Size{};
    if (all.known < 0) {  // one size may be left open
      Ints open(rest.size() + 1, 0);
      open.back() = -1;
      name = e.w.node("Reshape", {name, e.w.ints(open)});
    } else {
      to.push_back(all);
      name = e.reshape(name, to);
    }
  }
  const std::string flat =
      e.w.node(largest ? "ArgMax" : "ArgMin", {name},
               {attribute("axis", std::int64_t{-1}), attribute("keepdims", std::int64_t{0})});
  // The last index runs fastest.
  std::map<int, std::int64_t> strides;
  std::int64_t stride = 1;
  for (std::size_t i = best.over.size(); i-- > 0;) {
    strides[best.over[i]] = stride;
    const std::int64_t n = letter(best.over[i]).count.known;
    if (n < 0 && i > 0) no();
    stride *= n;
  }
  const Affine& which = *unbounded_place;
  T sum;
  const auto add = [&](const T& term) {
    sum = sum ? elementwise(Opcode::add_, ir::Kind::i64, {sum, term}) : term;
  };
  Affine own = without(which, best.over), over = which;
  for (const int l : letters_of(own)) over.factors.erase(l);
  if (over.factors == strides) {
    add(tensor(flat, rest, ir::Kind::i64));
  } else {
    for (const auto& [l, factor] : over.factors) {
      std::string i = flat;
      if (strides[l] != 1) i = e.w.node("Div", {i, e.w.integer(strides[l])});
      if (l != best.over[0]) i = e.w.node("Mod", {i, e.scalar(letter(l).count)});
      if (factor != 1) i = e.w.node("Mul", {i, e.w.integer(factor)});
      add(tensor(i, rest, ir::Kind::i64));
    }
  }
  if (!own.factors.empty() || own.constant != 0 || !sum) add(of_affine(own));
  if (t.which->what != What::between) return write(sum);
  for (const Affine& bound : {t.which->low, t.which->upper})
    if (without(bound, best.over) != bound) no();
  return written_between(write(sum), t.which->low, &t.which->upper);
}

}  // namespace lantern::onnx::exporting
