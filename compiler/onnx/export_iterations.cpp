// What numbers of iterations are as tensors.
#include "lantern/compiler/onnx/export_iterations.hpp"

#include <algorithm>
#include <limits>

namespace lantern::onnx::exporting {

using ir::Opcode;
using What = Iteration::What;

T Iterations::plain(const Form& f) const {
  auto t = iteration(What::plain, f.kind);
  t->form = f;
  return t;
}

T Iterations::of_affine(Affine a) {
  auto t = iteration(What::affine, ir::Kind::i64);
  t->affine = std::move(a);
  return t;
}

T Iterations::tensor(std::string name, std::vector<int> letters, ir::Kind kind) const {
  if (letters.empty()) {
    Form f;
    f.name = std::move(name);
    f.kind = kind;
    return plain(f);
  }
  auto t = iteration(What::tensor, kind);
  t->name = std::move(name);
  t->letters = std::move(letters);
  return t;
}

std::optional<Affine> Iterations::affine_of(const T& t) const {
  if (t->what == What::affine) return t->affine;
  if (t->what != What::plain || t->kind == ir::Kind::boolean || t->kind == ir::Kind::f32 ||
      t->kind == ir::Kind::f64)
    return std::nullopt;
  if (!t->form.number) return std::nullopt;
  return Affine{{}, static_cast<std::int64_t>(*t->form.number), {}};
}
bool Iterations::is_affine(const T& t) const { return affine_of(t).has_value(); }

int Iterations::begin(std::int64_t from, const T& to) {
  Letter l;
  l.from = from;
  if (to->what == What::span) {
    if (from != 0) no();
    l.low = to->low;
    l.count = l.end = Size::number(to->affine.constant);
    l.size = to->form.size ? *to->form.size : Size{};
  } else if (to->what == What::affine && to->affine.factors.empty() && !to->affine.minus &&
             to->affine.constant >= 0) {
    l.end = Size::number(to->affine.constant);
    l.count = e.add(l.end, -1, Size::number(from));
    if (from < 0 || l.count.known < 0) no();
  } else if (to->what == What::plain && to->form.rank() == 0) {
    l.end = to->form.size ? *to->form.size
            : to->form.number && *to->form.number >= 0
                ? Size::number(static_cast<std::int64_t>(*to->form.number))
                : Size{-1, to->form.name, -1};
    if (to->kind != ir::Kind::i64) no();
    l.count = e.add(l.end, -1, Size::number(from));
    if (from < 0) no();
  } else {
    no();
  }
  letters_.push_back(l);
  active_.push_back(static_cast<int>(letters_.size()) - 1);
  return active_.back();
}

int Iterations::begin_down(std::int64_t to, const T& from) {
  const int l = begin(to, from);
  letters_.back().from = to + 1;
  letters_.back().end = Size::number(to);
  return l;
}

std::vector<int> Iterations::active() const {
  std::vector<int> all;
  for (const int l : active_)
    if (!is_one(l)) all.push_back(l);
  return all;
}
std::optional<Size> Iterations::end(int l) const {
  if (letter(l).low) return std::nullopt;
  return letter(l).end;
}
T Iterations::unknown() { return iteration(What::unordered, ir::Kind::i64); }

T Iterations::index(int l) const {
  if (is_one(l)) return of_affine(Affine{{}, letter(l).from, {}});
  Affine a{{{l, 1}}, letter(l).from, {}};
  if (letter(l).low) {
    a = plus(a, *letter(l).low);
    a.minus = std::make_shared<const Affine>(*letter(l).low);
  }
  return of_affine(a);
}
T Iterations::grown(const T& start, int l, std::int64_t step) const {
  if (letter(l).low) no();
  if (is_one(l)) return start;
  return of_affine(plus(*affine_of(start), Affine{{{l, step}}, 0, {}}));
}
T Iterations::grown_to_end(const T& start, int l, std::int64_t step) const {
  if (letter(l).count.known < 0) return unknown();
  return of_affine(plus(*affine_of(start), Affine{{}, step * letter(l).count.known, {}}));
}

bool Iterations::same(const T& a, const T& b) const {
  if (a == b) return true;
  if (const auto x = affine_of(a), y = affine_of(b); x && y) return *x == *y;
  if (a->what == What::low && b->what == What::low) return a->affine == b->affine;
  if (a->what == What::between && b->what == What::between)
    return a->affine == b->affine && a->low == b->low && a->upper == b->upper;
  if (a->what == What::plain && b->what == What::plain) return a->form.name == b->form.name;
  if (a->what == What::element && b->what == What::element)
    return a->form.name == b->form.name && same(a->at, b->at);
  return false;
}
bool Iterations::same(const std::vector<T>& a, const std::vector<T>& b) const {
  return std::ranges::equal(a, b, [&](const T& x, const T& y) { return same(x, y); });
}

bool Iterations::is_first(const T& start, const T& all) const {
  if (start->what != What::element || all->what != What::reduced || all->of->what != What::element)
    return false;
  const Iteration& each = *all->of;
  if (start->form.name != each.form.name) return false;
  for (std::size_t d = 0; d < each.at.size(); ++d) {
    if (const T& bounded = each.at[d]; bounded->what == What::between) {
      auto first = std::make_shared<Iteration>(*bounded);
      first->affine = without(bounded->affine, all->over);
      if (!same(first, start->at[d])) return false;
      continue;
    }
    const auto a = affine_of(each.at[d]);
    if (!a) {
      if (!same(each.at[d], start->at[d])) return false;
      continue;
    }
    const Affine rest = without(*a, all->over);
    bool cut = false;
    for (const int l : letters_of(*a)) cut = cut || (has(all->over, l) && letter(l).low);
    if (cut ? start->at[d]->what != What::low || start->at[d]->affine != rest
            : affine_of(start->at[d]) != rest)
      return false;
  }
  return true;
}

bool Iterations::injective(const Update& u) const {
  return std::ranges::all_of(u.letters, [&](int l) {
    return std::ranges::any_of(u.at, [&](const T& at) {
      return at->what == What::affine && at->affine.factors.size() == 1 && at->affine.factors.contains(l);
    });
  });
}

// ---- expressions

std::optional<T> Iterations::integer_arithmetic(Opcode op, const std::vector<T>& x) const {
  if (x.size() != 2 || x[0]->kind != ir::Kind::i64 || x[1]->kind != ir::Kind::i64) return std::nullopt;
  const auto a = affine_of(x[0]), b = affine_of(x[1]);
  // Windows that are cut off at the edges.
  if (op == Opcode::imax_ && a && b && !a->factors.empty() && *b == Affine{}) {
    auto t = iteration(What::low, ir::Kind::i64);
    t->affine = *a;
    return t;
  }
  if (op == Opcode::imin_ && a && !a->factors.empty() && x[1]->what == What::plain) {
    auto t = iteration(What::high, ir::Kind::i64);
    t->affine = *a;
    t->form = x[1]->form;
    return t;
  }
  if (op == Opcode::imax_ && a && b && !a->minus && !b->minus &&
      !(a->factors.empty() && b->factors.empty())) {
    auto t = iteration(What::at_least, ir::Kind::i64);
    t->affine = *a;
    t->low = *b;
    return t;
  }
  if (op == Opcode::imin_ && x[0]->what == What::at_least && b && !b->minus) {
    auto t = std::make_shared<Iteration>(*x[0]);
    t->what = What::between;
    t->upper = *b;
    return t;
  }
  if (op == Opcode::sub_ && x[0]->what == What::high && x[1]->what == What::low) {
    const Affine width = plus(x[0]->affine, x[1]->affine, -1);
    if (!width.factors.empty() || width.constant <= 0) return std::nullopt;
    auto t = iteration(What::span, ir::Kind::i64);
    t->affine = width;
    t->low = x[1]->affine;
    t->form = x[0]->form;
    t->form.size =
        x[0]->form.number ? Size::number(static_cast<std::int64_t>(*x[0]->form.number)) : x[0]->form.size;
    return t;
  }
  if (op == Opcode::add_)
    for (const std::size_t i : {0U, 1U}) {
      const T& p = x[i];
      const T& q = x[1 - i];
      const auto moved = [&](const Affine& by) -> std::optional<Affine> {
        if (p->what == What::low) {
          if (!by.minus || !(*by.minus == p->affine)) return std::nullopt;
          Affine sum = by;
          sum.minus.reset();
          return sum;
        }
        if (const auto own = affine_of(p); own && !by.minus) return plus(*own, by);
        return std::nullopt;
      };
      if (const auto by = affine_of(p); by && !by->minus) {
        if (q->what == What::between) return moved_between(q, *by);
        if (q->what == What::found && q->which->what == What::between) {
          auto t = std::make_shared<Iteration>(*q);
          t->which = moved_between(q->which, *by);
          return t;
        }
      }
      if (q->what == What::affine && p->what == What::low)
        if (const auto sum = moved(q->affine)) return of_affine(*sum);
      if (q->what == What::found && q->which->what == What::affine && (p->what == What::low || is_affine(p)))
        if (const auto sum = moved(q->which->affine)) {
          auto t = std::make_shared<Iteration>(*q);
          t->which = of_affine(*sum);
          return t;
        }
    }
  if (!a || !b || (a->minus && b->minus)) return std::nullopt;
  if (op == Opcode::add_) return of_affine(plus(*a, *b));
  if (op == Opcode::sub_ && !b->minus) return of_affine(plus(*a, *b, -1));
  if (a->minus || b->minus) return std::nullopt;
  // Of indices, which are not below zero; the remainder of the constant is lost in each.
  if (op == Opcode::div_ && b->factors.empty() && b->constant > 0 && a->constant >= 0 &&
      std::ranges::all_of(a->factors,
                          [&](const auto& f) { return f.second > 0 && f.second % b->constant == 0; })) {
    Affine quotient = *a;
    for (auto& f : quotient.factors) f.second /= b->constant;
    quotient.constant /= b->constant;
    return of_affine(quotient);
  }
  if (op == Opcode::mul_ && b->factors.empty()) return of_affine(plus(Affine{}, *a, b->constant));
  if (op == Opcode::mul_ && a->factors.empty()) return of_affine(plus(Affine{}, *b, a->constant));
  return std::nullopt;
}

T Iterations::elementwise(Opcode op, ir::Kind kind, const std::vector<T>& operands) {
  if (op == Opcode::eq_ && operands[0] == operands[1] && operands[0]->what == What::element) {
    auto t = iteration(What::ordered, kind);
    t->of = operands[0];
    return t;
  }
  if (const auto known = integer_arithmetic(op, operands)) return *known;
  std::vector<int> all;
  std::vector<T> written;
  for (const T& t : operands) {
    written.push_back(write(t));
    all = united(all, written.back()->letters);
  }
  Names names;
  for (const T& t : written) names.push_back(spread(t, all));
  return tensor(e.elementwise(op, operands.back()->kind, names), all, kind);
}

/// Whether it is a whole number that every floating kind has, in all iterations.
bool Iterations::is_small(const Affine& a) const {
  if (a.minus) return false;
  constexpr std::int64_t most = std::int64_t{1} << 24;
  std::int64_t size = std::abs(a.constant);
  for (const auto& [l, factor] : a.factors) {
    const std::int64_t count = letter(l).count.known, step = std::abs(factor);
    if (count < 0 || count > most || step > most || (size += step * count) > most) return false;
  }
  return size <= most;
}

T Iterations::cast(const T& x, ir::Kind to) {
  if (x->kind == to) return x;
  // The place of the best so far may be counted in floating numbers; as an index it comes back.
  if (x->what == What::number && to == ir::Kind::i64) return x->of;
  if (x->what == What::found && x->which->what == What::number && to == ir::Kind::i64) {
    auto t = std::make_shared<Iteration>(*x);
    t->kind = to;
    t->which = x->which->of;
    return t;
  }
  const bool bounded = x->what == What::between && is_small(x->low) && is_small(x->upper);
  if ((to == ir::Kind::f32 || to == ir::Kind::f64) && (x->what == What::affine || bounded) &&
      is_small(x->affine)) {
    auto t = iteration(What::number, to);
    t->of = x;
    return t;
  }
  const T t = write(x);
  return tensor(e.w.cast(t->what == What::plain ? t->form.name : t->name, to), t->letters, to);
}

T Iterations::reduced(Opcode op, const T& of, int l) {
  if (is_one(l)) return of;
  auto t = iteration(What::reduced, of->kind);
  t->op = op;
  t->of = of;
  t->over = {l};
  if (of->what == What::reduced && of->op == op) {
    t->of = of->of;
    t->over = united(of->over, t->over);
  }
  return t;
}

T Iterations::element(const Form& from, const std::vector<T>& at, bool guarded) {
  if (from.number) {
    Form f;
    f.name = from.name;
    f.kind = from.kind;
    f.number = from.number;
    return plain(f);
  }
  auto t = iteration(What::element, from.kind);
  t->form = from;
  t->at = at;
  t->guarded = guarded;
  // The best of some elements, read where it was found.
  const auto found = std::ranges::find(at, What::found, [](const T& x) { return x->what; });
  if (found == at.end()) return t;
  const T& best = (*found)->of;
  if (best->of->what != What::element || best->of->form.name != from.name) return t;
  for (std::size_t d = 0; d < at.size(); ++d) {
    const T& place = best->of->at[d];
    const auto a = unbounded(place);
    const bool taken_over =
        a && std::ranges::any_of(letters_of(*a), [&](int l) { return has(best->over, l); });
    if (!taken_over ? !same(place, at[d])
                    : at[d]->what != What::found || at[d]->of != best || !same(at[d]->which, place))
      return t;
  }
  return best;
}

// ---- results

Form Iterations::form(const T& t) {
  if (t->what == What::plain) return t->form;
  if (t->what == What::unordered) {  // a count that is not known
    Form f = e.literal(0, ir::Kind::i64);
    f.name = "";
    f.number.reset();
    return f;
  }
  const T x = write(t);
  if (x->what != What::plain) no();
  return x->form;
}

Form Iterations::with(const Form& root, const Update& u, const ir::Type& type) {
  std::vector<int> placed;
  Ints ones;  // dimensions of one element
  bool dense = true, moved = root.number.has_value();
  for (std::size_t d = 0; d < u.at.size(); ++d) {
    const auto a = affine_of(u.at[d]);
    if (a && *a == Affine{} && root.sizes[d].is(1)) {
      ones.push_back(static_cast<std::int64_t>(d));
      moved = false;
      continue;
    }
    const bool one = a && !a->minus && a->factors.size() == 1 && a->factors.begin()->second == 1 &&
                     !has(placed, a->factors.begin()->first) && !ragged(letters_of(*a));
    dense = dense && one && is_all_of(u.at[d], root.sizes[d]);
    moved = moved && one;
    if (one) placed.push_back(a->factors.begin()->first);
  }
  std::vector<int> letters = u.letters, rest;
  if (ragged(letters)) no();
  for (const int l : letters)
    if (!has(placed, l)) rest.push_back(l);
  T v = write(u.value);
  std::vector<int> order = placed;
  std::ranges::sort(order);
  const auto in_place = [&](const std::string& name) {
    Ints perm;
    for (const int l : placed) perm.push_back(place_of(order, l));
    return e.w.transpose(name, perm);
  };
  if (dense && (u.adds || rest.empty())) {
    if (!rest.empty()) {
      if (!std::ranges::all_of(rest, [&](int l) { return has(v->letters, l); }))
        v = tensor(expanded(v, united(v->letters, rest)), united(v->letters, rest), v->kind);
      Ints axes;
      std::vector<int> left;
      for (const int l : rest) axes.push_back(place_of(v->letters, l));
      for (const int l : v->letters)
        if (!has(rest, l)) left.push_back(l);
      v = tensor(e.w.reduce("ReduceSum", v->name, axes), left, v->kind);
    }
    Form f = e.sized("", type, root.sizes);
    f.whole = v->letters == order;
    if (v->what == What::plain) {
      f.whole = order.empty() && ones.empty();
      f.name = v->form.name;
      f.number = v->form.number;
    } else if (f.whole) {
      f.name = e.w.unsqueeze(in_place(v->name), ones);
    } else {
      std::vector<int> sorted = placed;
      f.whole = sorted != order || !ones.empty();
      f.name = f.whole ? e.w.unsqueeze(in_place(expanded(v, order)), ones) : spread(v, order);
    }
    if (u.adds && root.number != 0.0) return e.elementwise(Opcode::add_, {root, f}, type);
    return f;
  }
  // A part of a tensor of one value.
  if (moved && rest.empty() && !u.adds) {
    Ints before, after;
    bool known = true;
    for (std::size_t d = 0; d < u.at.size(); ++d) {
      const Affine& a = u.at[d]->affine;
      const Letter& l = letter(a.factors.begin()->first);
      before.push_back(a.constant);
      known = known && root.sizes[d].known >= 0 && l.count.known >= 0;
      after.push_back(root.sizes[d].known - a.constant - l.count.known);
    }
    if (known) {
      before.insert(before.end(), after.begin(), after.end());
      const std::string part = in_place(expanded(v, order));
      return e.sized(e.w.node("Pad", {part, e.w.ints(before), e.w.number(*root.number, root.kind)}), type,
                     root.sizes);
    }
  }
  // Rows: the first indices are the same in all iterations, the others all there are.
  std::size_t first = 0;
  while (first < u.at.size() && (u.at[first]->what == What::plain ||
                                 (u.at[first]->what == What::affine && u.at[first]->affine.factors.empty())))
    ++first;
  bool rows = first > 0 && rest.empty() && u.at.size() - first == letters.size();
  for (std::size_t d = first; rows && d < u.at.size(); ++d) rows = is_all_of(u.at[d], root.sizes[d]);
  const auto adds =
      u.adds ? std::vector{attribute("reduction", std::string("add"))} : std::vector<Attribute>{};
  if (rows) {
    Names index;
    for (std::size_t d = 0; d < first; ++d) {
      const T at = write(u.at[d]);
      index.push_back(e.w.unsqueeze(
          at->kind == ir::Kind::i64 ? at->form.name : e.w.cast(at->form.name, ir::Kind::i64), {0}));
    }
    const std::string at =
        index.size() == 1 ? index[0] : e.w.node("Concat", index, {attribute("axis", std::int64_t{0})});
    const std::string name = e.w.node(
        "ScatterND",
        {e.whole(root), e.w.unsqueeze(at, {0}), e.w.unsqueeze(in_place(expanded(v, order)), {0})}, adds);
    return e.sized(name, type, root.sizes);
  }
  if (letters.empty()) no();
  Names index;
  for (const T& one : u.at) {
    const T at = write(one);
    std::string i = expanded(at, letters);
    if (at->kind != ir::Kind::i64) i = e.w.cast(i, ir::Kind::i64);
    index.push_back(e.w.unsqueeze(i, {static_cast<std::int64_t>(letters.size())}));
  }
  const std::string at =
      index.size() == 1 ? index[0] : e.w.node("Concat", index, {attribute("axis", std::int64_t{-1})});
  return e.sized(e.w.node("ScatterND", {e.whole(root), at, expanded(v, letters)}, adds), type, root.sizes);
}

}  // namespace lantern::onnx::exporting
