// Operations between ranks: calls of the C functions, and the rules of their derivatives.
#include "lantern/compiler/distributed/exchange.hpp"

#include <array>
#include <functional>
#include <limits>
#include <memory>

#include "lantern/compiler/distributed/rules.hpp"
#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/requirement.hpp"
#include "lantern/compiler/staging/unset_variable.hpp"
#include "lantern/compiler/tensor/reduce.hpp"
#include "lantern/compiler/tensor/shape.hpp"

namespace lantern::distributed::detail {

namespace {

/// How the shape of the result follows from that of x.
enum class Shape { same, gathered, part };

struct Spec {
  const char* name;
  std::int32_t operation;
  Reduction reduction = Reduction::sum;
  Shape shape = Shape::same;
};

Datum identity_of(Reduction reduction, ir::Kind kind) {
  const ir::Type type(kind);
  if (type.is_float_element()) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double values[] = {0, 1, infinity, -infinity};
    return Datum::number(values[static_cast<int>(reduction)], type);
  }
  const bool wide = kind == ir::Kind::i64;
  using W = std::numeric_limits<std::int64_t>;
  using N = std::numeric_limits<std::int32_t>;
  if (kind == ir::Kind::boolean) return Datum::integer(reduction == Reduction::min, type);
  const std::int64_t values[] = {0, 1, wide ? W::max() : N::max(), wide ? W::lowest() : N::lowest()};
  return Datum::integer(values[static_cast<int>(reduction)], type);
}

Kernel kernel_of(const Kernels& all, ir::Kind element) {
  switch (element) {
    case ir::Kind::f64: return all.f64;
    case ir::Kind::f32: return all.f32;
    case ir::Kind::i64: return all.i64;
    case ir::Kind::i32: return all.i32;
    default: return all.boolean;
  }
}

void require_type(const Call& call, const Spec& spec, const Datum& x) {
  const std::string what = std::string("distributed::") + spec.name + ": expected ";
  if (x.empty()) core::refuse_empty(call.loc);
  if (x.type().is_tree()) core::raise_at(call.loc, what + "a number, an array or a tensor, got " + x.type().str());
  if (x.type().element() == ir::Kind::boolean &&
      (spec.reduction == Reduction::product ||
       (spec.reduction == Reduction::sum && spec.operation != distributed_broadcast && spec.shape == Shape::same &&
        spec.operation != distributed_send_receive && spec.operation != distributed_all_to_all)))
    core::raise_at(call.loc, what + "Reduction::min (all) or Reduction::max (any) for bool");
}

/// The call itself. x is a tensor.
Datum run(const Call& call, const Spec& spec, const Datum& a, const Datum& b, const Datum& x) {
  Datums sizes = sizes_of(call, x);
  if (spec.shape == Shape::part || spec.operation == distributed_all_to_all) {
    core::detail::require(op(Opcode::eq_, call, {sizes[0], size(call)}),
                          std::string("distributed::") + spec.name +
                              ": expected a part for each rank along the first dimension: {} of them, got {}",
                          call.loc, std::array{size(call), sizes[0]});
    if (spec.shape == Shape::part) sizes.erase(sizes.begin());
  }
  if (spec.shape == Shape::gathered) sizes.insert(sizes.begin(), size(call));
  Datum n = integer(1);
  const bool of_all = spec.shape == Shape::gathered || spec.operation == distributed_all_to_all;
  for (std::size_t d = of_all ? 1 : 0; d < sizes.size(); ++d) n = op(Opcode::mul_, call, {n, sizes[d]});
  const Datum y = filled(call, Datum::zero(ir::Type(x.type().element())), sizes);
  const auto word = [](std::int32_t v) { return Datum::integer(v, ir::I32); };
  return core::detail::call_external(
      *kernel_of(*call.kernels, x.type().element()), {.ordered = true},
      {call.comm, word(spec.operation), word(static_cast<std::int32_t>(spec.reduction) + distributed_reductions * call.roles), a, b, n, x, y}, call.loc)[0];
}

Spec transposed(const Spec& spec) {
  switch (spec.operation) {
    case distributed_reduce: return {"reduce", distributed_broadcast};
    case distributed_broadcast: return {"broadcast", distributed_reduce};
    case distributed_gather: return {"gather", distributed_scatter, Reduction::sum, Shape::part};
    case distributed_scatter: return {"scatter", distributed_gather, Reduction::sum, Shape::gathered};
    case distributed_all_gather: return {"all_gather", distributed_reduce_scatter, Reduction::sum, Shape::part};
    case distributed_reduce_scatter: return {"reduce_scatter", distributed_all_gather, Reduction::sum, Shape::gathered};
    case distributed_scan: return {"scan", distributed_reverse_scan};
    case distributed_reverse_scan: return {"scan", distributed_scan};
    case distributed_exclusive_scan: return {"scan", distributed_reverse_exclusive_scan};
    case distributed_reverse_exclusive_scan: return {"scan", distributed_exclusive_scan};
    default: return spec;
  }
}

/// An operation that is linear in x, a tensor.
Datum exchange(const Call& call, const Spec& spec, const Datum& a, const Datum& b, const Datum& x) {
  if (!x.type().is_differentiable()) return run(call, spec, a, b, x);
  const bool pair = spec.operation == distributed_send_receive;
  const Body value = [spec](const Call& c, const Datum& to, const Datum& from, const Datum& v) {
    return run(c, spec, to, from, v);
  };
  const Body again = [spec](const Call& c, const Datum& to, const Datum& from, const Datum& v) {
    return exchange(c, spec, to, from, v);
  };
  const Body transpose = [spec, pair](const Call& c, const Datum& to, const Datum& from, const Datum& g) {
    return exchange(c, transposed(spec), pair ? from : to, pair ? to : from, g);
  };
  return linear({spec.name, value, transpose}, call, a, b, x, again);
}

Datum exchange_alike(const Call& call, const Spec& spec, const Datum& a, const Datum& b, const Datum& x) {
  require_type(call, spec, x);
  return on_tensors(call, x, [&](const Datum& t) { return in_shape_of(call, exchange(call, spec, a, b, t), t); });
}

const Datum none = Datum::integer(-1, ir::I64);
Datum sum_of_all(const Call& call, const Datum& x) {
  return in_shape_of(call, exchange(call, {"all_reduce", distributed_all_reduce}, none, none, x), x);
}

// ---- reductions that are not linear

/// The product of what the other ranks have, without a division: zeros are as good as other numbers.
Datum product_of_others(const Call& call, const Datum& x) {
  const Datum all = all_gather(call, x), me = rank(call), ranks = core::dimension_of(all, 0, call.loc);
  Datums sizes = sizes_of(call, all);
  sizes[0] = integer(1);
  const auto rows = [&](const Datum& lo, const Datum& hi) { return op(Opcode::slice_, call, {all, lo, hi}); };
  const std::array parts{rows(integer(0), me), filled(call, identity_of(Reduction::product, x.type().element()), sizes),
                         rows(op(Opcode::add_, call, {me, integer(1)}), ranks)};
  const int axis = 0;
  return in_shape_of(call, core::detail::product(core::detail::concat(parts, 0, call.loc), {{&axis, 1}}, call.loc), x);
}

/// 1 where this rank is the first of those that hold the extremum, else 0.
Datum first_holder(const Call& call, const Datum& x, const Datum& extremum) {
  const auto all = [&](const Datum& n) { return filled(call, n, sizes_of(call, x)); };
  const Datum held = op(Opcode::eq_, call, {core::strip(x), core::strip(extremum)});
  const Datum mine = op(Opcode::select_, call, {held, all(rank(call)), all(size(call))});
  const Datum first = run(call, {"all_reduce", distributed_all_reduce, Reduction::min}, none, none, mine);
  const Datum here = op(Opcode::eq_, call, {first, all(rank(call))});
  return op(Opcode::cast_, call, {here}, static_cast<std::int64_t>(x.type().element()));
}

/// What derivatives are made of: x, the result, and the cotangent or the tangent.
using Linear3 = std::function<Datum(const Call&, const Datum& x, const Datum& y, const Datum& derivative)>;
using Again = std::function<Datum(const Call&, const Datum& x)>;

/// An operation that is not linear. `again` does it where derivatives of higher order meet it.
Datum by_rule(const Call& call, const Spec& spec, const Datum& x, const Linear3& backward, const Linear3& tangent, const Again& again) {
  const auto rule = std::make_shared<core::ad::Rule>();
  rule->name = spec.name;
  rule->what = std::string("distributed::") + spec.name;
  rule->ordered = true;
  rule->primal = [=](const Datums& in) { return Datums{run({call.kernels, in[0], call.loc, call.roles, {}}, spec, none, none, in[1])}; };
  rule->backward = [=](const Datums& kept, const Datums& g) {
    return Datums{backward(in_derivative(call, kept, Role::cotangent), kept[1], kept[2], g[0])};
  };
  rule->tangent = [=](const Datums& in, const Datums& t) -> core::ad::Rule::Split {
    const Datum y = again(in_derivative(call, in, Role::primal), in[1]);
    return {{y}, {tangent(in_derivative(call, in, Role::tangent), in[1], y, t[0])}};
  };
  return core::ad::call_with_rule(rule, {call.comm, x}, call.loc)[0];
}
Datum times(const Call& call, const Datum& p, const Datum& q) { return op(Opcode::mul_, call, {p, q}); }
Datum sum_of_parts(const Call& call, const Datum& x) {
  return exchange(call, {"reduce_scatter", distributed_reduce_scatter, Reduction::sum, Shape::part}, none, none, x);
}

Datum all_reduce_by_rule(const Call& call, Reduction reduction, const Datum& x) {
  const Spec spec{"all_reduce", distributed_all_reduce, reduction};
  if (!x.type().is_differentiable()) return run(call, spec, none, none, x);
  const auto slope = [=](const Call& c, const Datum& v, const Datum& y) {
    return reduction == Reduction::product ? product_of_others(c, v) : first_holder(c, v, y);
  };
  return by_rule(
      call, spec, x,
      [=](const Call& c, const Datum& v, const Datum& y, const Datum& g) { return times(c, slope(c, v, y), sum_of_all(c, g)); },
      [=](const Call& c, const Datum& v, const Datum& y, const Datum& t) { return sum_of_all(c, times(c, slope(c, v, y), t)); },
      [=](const Call& c, const Datum& v) { return all_reduce_by_rule(c, reduction, v); });
}

/// Part r of x goes to rank r. Each rank has one part of what all_reduce gives, and of its derivative.
Datum reduce_scatter_by_rule(const Call& call, const Spec& spec, const Datum& x) {
  const auto slope = [reduction = spec.reduction](const Call& c, const Datum& v, const Datum& y) {
    return reduction == Reduction::product ? product_of_others(c, v) : first_holder(c, v, all_gather(c, op(Opcode::stop_gradient_, c, {y})));
  };
  return by_rule(
      call, spec, x,
      [=](const Call& c, const Datum& v, const Datum& y, const Datum& g) { return times(c, slope(c, v, y), all_gather(c, g)); },
      [=](const Call& c, const Datum& v, const Datum& y, const Datum& t) { return sum_of_parts(c, times(c, slope(c, v, y), t)); },
      [=](const Call& c, const Datum& v) { return reduce_scatter_by_rule(c, spec, v); });
}

/// x as n rows.
Datum as_rows(const Call& call, const Datum& x, const Datum& n) {
  Datums sizes = sizes_of(call, x), one = sizes;
  sizes.insert(sizes.begin(), n);
  one.insert(one.begin(), integer(1));
  return core::detail::expand(core::detail::reshape(x, one, call.loc), sizes, call.loc);
}

/// For each rank, in rows: 1 where it is the one whose element the scan for this rank gives, else 0. A rank that holds more
/// than all before it is that one until another holds more.
Datum holders(const Call& call, const Spec& spec, const Datum& given) {
  const Datum x = op(Opcode::stop_gradient_, call, {given}), me = rank(call);
  const Datum before = run(call, {"scan", distributed_exclusive_scan, spec.reduction}, none, none, x);
  const auto all = [&](const Datum& n) { return filled(call, n, sizes_of(call, x)); };
  const Datum more = spec.reduction == Reduction::max ? op(Opcode::lt_, call, {before, x}) : op(Opcode::lt_, call, {x, before});
  const Datum mine = op(Opcode::select_, call, {more, all(me), all(none)});
  const Datum holder = run(call, {"scan", spec.operation, Reduction::max}, none, none, mine);
  const Datum ranks = all_gather(call, all(me));
  const Datum here = op(Opcode::eq_, call, {ranks, as_rows(call, holder, size(call))});
  return op(Opcode::cast_, call, {here}, static_cast<std::int64_t>(x.type().element()));
}

/// The extremum over ranks up to this one, or before it.
Datum scan_by_rule(const Call& call, const Spec& spec, const Datum& x) {
  return by_rule(
      call, spec, x,
      [=](const Call& c, const Datum& v, const Datum&, const Datum& g) {
        return sum_of_parts(c, times(c, holders(c, spec, v), as_rows(c, g, size(c))));
      },
      [=](const Call& c, const Datum& v, const Datum&, const Datum& t) {
        const int axis = 0;
        return core::detail::sum_along(times(c, holders(c, spec, v), all_gather(c, t)), {{&axis, 1}}, c.loc);
      },
      [=](const Call& c, const Datum& v) { return scan_by_rule(c, spec, v); });
}

/// A scan by the product: of what all ranks have, the part that counts.
Datum scan_of_gathered(const Call& call, Reduction reduction, bool exclusive, const Datum& x) {
  const Datum all = all_gather(call, x), me = rank(call);
  Datums sizes = sizes_of(call, all);
  sizes[0] = integer(1);
  const Datum end = exclusive ? me : op(Opcode::add_, call, {me, integer(1)});
  const std::array parts{filled(call, identity_of(reduction, x.type().element()), sizes),
                         op(Opcode::slice_, call, {all, integer(0), end})};
  const Datum counted = core::detail::concat(parts, 0, call.loc);
  const int axis = 0;
  const core::detail::Over over{{&axis, 1}};
  return in_shape_of(call, core::detail::product(counted, over, call.loc), x);
}

}  // namespace

// ---- communicators

Datum rank(const Call& call) { return core::detail::call_external(*call.kernels->rank, {}, {call.comm}, call.loc)[0]; }
Datum size(const Call& call) { return core::detail::call_external(*call.kernels->size, {}, {call.comm}, call.loc)[0]; }
Datum split(const Call& call, const Datum& colour, const Datum& key) {
  return core::detail::call_external(*call.kernels->split, {.ordered = true},
                                     {call.comm, core::strip(colour), core::strip(key)}, call.loc)[0];
}
void barrier(const Call& call) {
  core::detail::call_external(*call.kernels->barrier, {.ordered = true}, {call.comm}, call.loc);
}
Datums dims(const Call& call, const Datums& sizes) {
  Datum all = filled(call, integer(0), {integer(static_cast<std::int64_t>(sizes.size()))});
  for (std::size_t d = 0; d < sizes.size(); ++d)
    all = op(Opcode::set_, call, {all, integer(static_cast<std::int64_t>(d)), sizes[d]});
  const Datum chosen = core::detail::call_external(
      *call.kernels->dims, {}, {call.comm, integer(static_cast<std::int64_t>(sizes.size())), all}, call.loc)[0];
  Datums out;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    out.push_back(op(Opcode::get_, call, {chosen, integer(static_cast<std::int64_t>(d))}));
  return out;
}

// ---- operations

Datum all_reduce(const Call& call, Reduction reduction, const Datum& x) {
  const Spec spec{"all_reduce", distributed_all_reduce, reduction};
  if (reduction == Reduction::sum) return exchange_alike(call, spec, none, none, x);
  require_type(call, spec, x);
  return on_tensors(
      call, x, [&](const Datum& t) { return in_shape_of(call, all_reduce_by_rule(call, reduction, t), t); });
}

Datum reduce(const Call& call, Reduction reduction, const Datum& x, const Datum& root) {
  const Spec spec{"reduce", distributed_reduce, reduction};
  if (reduction == Reduction::sum || !x.type().is_differentiable()) return exchange_alike(call, spec, root, none, x);
  // Not a branch: derivatives of all ranks meet the same operations only if all depend on the same values.
  const Datum y = all_reduce(call, reduction, x), at_root = op(Opcode::eq_, call, {rank(call), core::strip(root)});
  const ir::Type element(x.type().element());
  if (x.type().is_scalar()) return op(Opcode::select_, call, {at_root, y, Datum::zero(element)});
  const Datums sizes = sizes_of(call, y);
  return op(Opcode::select_, call, {filled(call, at_root, sizes), y, filled(call, Datum::zero(element), sizes)});
}

Datum broadcast(const Call& call, const Datum& x, const Datum& root) {
  return exchange_alike(call, {"broadcast", distributed_broadcast}, root, none, x);
}

Datum scan(const Call& call, Reduction reduction, bool exclusive, const Datum& x) {
  const Spec spec{"scan", exclusive ? distributed_exclusive_scan : distributed_scan, reduction};
  if (reduction == Reduction::sum || !x.type().is_differentiable()) return exchange_alike(call, spec, none, none, x);
  require_type(call, spec, x);
  return on_tensors(call, x, [&](const Datum& t) {
    return reduction == Reduction::product ? scan_of_gathered(call, reduction, exclusive, t)
                                           : in_shape_of(call, scan_by_rule(call, spec, t), t);
  });
}

Datum send_receive(const Call& call, const Datum& x, const Datum& to, const Datum& from) {
  const Spec spec{"send_receive", distributed_send_receive};
  const Datum a = core::strip(to), b = core::strip(from);
  const auto is_none = [](const Datum& rank) { return rank.is_literal() && rank.i() == -1; };
  if (!is_none(a) && !is_none(b)) return exchange_alike(call, spec, a, b, x);
  require_type(call, spec, x);
  return on_tensors(call, x, [&](const Datum& t) {
    Call half = call;
    if (t.type().is_differentiable()) half.like = op(Opcode::stop_gradient_, call, {t});
    return in_shape_of(call, exchange(half, spec, a, b, t), t);
  });
}

namespace {
/// A number becomes a vector of all.
Datum gathered(const Call& call, const Spec& spec, const Datum& root, const Datum& x) {
  require_type(call, spec, x);
  if (!x.type().is_scalar()) return exchange(call, spec, root, none, x);
  const Datum all = exchange(call, spec, root, none, filled(call, x, {integer(1)}));
  return core::detail::reshape(all, {core::dimension_of(all, 0, call.loc)}, call.loc);
}
/// Of a vector each part is a number.
Datum parted(const Call& call, const Spec& spec, const Datum& root, const Datum& x,
             const std::function<Datum(const Call&, const Spec&, const Datum&)>& rule = {}) {
  const auto exchanged = [&](const Datum& t) { return rule ? rule(call, spec, t) : exchange(call, spec, root, none, t); };
  require_type(call, spec, x);
  if (x.type().is_scalar())
    core::raise_at(call.loc, std::string("distributed::") + spec.name + ": expected a part for each rank, got a number");
  if (x.type().rank() > 1) return exchanged(x);
  const Datum columns = core::detail::reshape(x, {core::dimension_of(x, 0, call.loc), integer(1)}, call.loc);
  return op(Opcode::get_, call, {exchanged(columns), integer(0)});
}
}  // namespace

Datum gather(const Call& call, const Datum& x, const Datum& root) {
  return gathered(call, {"gather", distributed_gather, Reduction::sum, Shape::gathered}, core::strip(root), x);
}
Datum all_gather(const Call& call, const Datum& x) {
  return gathered(call, {"all_gather", distributed_all_gather, Reduction::sum, Shape::gathered}, none, x);
}
Datum scatter(const Call& call, const Datum& x, const Datum& root) {
  return parted(call, {"scatter", distributed_scatter, Reduction::sum, Shape::part}, core::strip(root), x);
}
Datum reduce_scatter(const Call& call, Reduction reduction, const Datum& x) {
  const Spec spec{"reduce_scatter", distributed_reduce_scatter, reduction, Shape::part};
  if (reduction == Reduction::sum || !x.type().is_differentiable()) return parted(call, spec, none, x);
  return parted(call, spec, none, x, reduce_scatter_by_rule);
}
Datum all_to_all(const Call& call, const Datum& x) {
  const Spec spec{"all_to_all", distributed_all_to_all};
  if (x.type().is_scalar())
    core::raise_at(call.loc, "distributed::all_to_all: expected a part for each rank, got a number");
  return exchange_alike(call, spec, none, none, x);
}

namespace {
Datum total_of_tensor(const Call& call, const Datum& x);
Datum share_of_tensor(const Call& call, const Datum& x);

const Body total_again = [](const Call& c, const Datum&, const Datum&, const Datum& v) { return total_of_tensor(c, v); };
const Body share_again = [](const Call& c, const Datum&, const Datum&, const Datum& v) { return share_of_tensor(c, v); };

Datum total_of_tensor(const Call& call, const Datum& x) {
  const Body value = [](const Call& c, const Datum&, const Datum&, const Datum& v) {
    return in_shape_of(c, run(c, {"all_reduce", distributed_all_reduce}, none, none, v), v);
  };
  return linear({"all_reduce", value, share_again}, call, none, none, x, total_again);
}
Datum share_of_tensor(const Call& call, const Datum& x) {
  const Body value = [](const Call&, const Datum&, const Datum&, const Datum& v) { return v; };
  return linear({"replicate", value, total_again}, call, none, none, x, share_again);
}
}  // namespace

Datum total(const Call& call, const Datum& x) {
  require_type(call, {"all_reduce", distributed_all_reduce}, x);
  if (!x.type().is_differentiable()) return all_reduce(call, Reduction::sum, x);
  return on_tensors(call, x, [&](const Datum& t) { return total_of_tensor(call, t); });
}
Datum share(const Call& call, const Datum& x) {
  if (x.empty()) core::refuse_empty(call.loc);
  if (!x.type().is_differentiable()) return x;
  return on_tensors(call, x, [&](const Datum& t) { return share_of_tensor(call, t); });
}

// ---- several values

Datums in_one_message(const Call& call, const Datums& data, const std::function<Datum(const Datum&)>& body) {
  Datums out(data.size());
  std::vector<bool> done(data.size(), false);
  for (std::size_t first = 0; first < data.size(); ++first) {
    if (done[first]) continue;
    const ir::Kind element = data[first].type().element();
    std::vector<std::size_t> members;
    Datums vectors, sizes;
    for (std::size_t i = first; i < data.size(); ++i) {
      const Datum& d = data[i];
      if (d.empty()) core::refuse_empty(call.loc);
      if (done[i] || d.type().is_tree() || d.type().element() != element) continue;
      Datum n = integer(1);
      for (const Datum& size : sizes_of(call, d)) n = op(Opcode::mul_, call, {n, size});
      members.push_back(i);
      sizes.push_back(n);
      vectors.push_back(d.type().is_scalar() ? filled(call, d, {integer(1)}) : core::detail::reshape(d, {n}, call.loc));
      done[i] = true;
    }
    const Datum all = body(vectors.size() == 1 ? vectors[0] : core::detail::concat(vectors, 0, call.loc));
    Datum at = integer(0);
    for (std::size_t k = 0; k < members.size(); ++k) {
      const Datum& d = data[members[k]];
      const Datum end = op(Opcode::add_, call, {at, sizes[k]});
      out[members[k]] = d.type().is_scalar()
                            ? op(Opcode::get_, call, {all, at})
                            : in_shape_of(call, op(Opcode::slice_, call, {all, at, end}), d);
      at = end;
    }
  }
  return out;
}

// ---- halos

Datum with_halo(const Call& call, const Datum& x, int axis, const Datum& width, const Datum& below, const Datum& above) {
  const Datum n = core::dimension_of(x, axis, call.loc);
  core::detail::require(op(Opcode::le_, call, {width, n}),
                        "distributed::halo_exchange: expected a width of at most the {} elements of the part, got {}",
                        call.loc, std::array{n, width});
  const auto part = [&](const Datum& lo, const Datum& hi) {
    std::vector<core::Part> parts(static_cast<std::size_t>(axis), core::Part(core::All{}));
    const auto place = [](const Datum& d) { return core::Subscript(core::Rep<std::int64_t>(d)); };
    parts.emplace_back(core::range(place(lo), place(hi)));
    return core::detail::part(x, parts, call.loc);
  };
  const Datum first = part(integer(0), width), last = part(op(Opcode::sub_, call, {n, width}), n);
  const std::array parts{send_receive(call, last, above, below), x, send_receive(call, first, below, above)};
  return core::detail::concat(parts, axis, call.loc);
}

}  // namespace lantern::distributed::detail
