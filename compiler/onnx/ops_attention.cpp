// Attention and its neighbours in models of language: turned positions, caches, attention without softmax.
#include <cmath>
#include <limits>

#include "lantern/compiler/onnx/attention.hpp"
#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/functions.hpp"

namespace lantern::onnx::rules {

namespace {

Datum infinity(double sign, const Datum& like) {
  return Build::number(sign * std::numeric_limits<double>::infinity(), like);
}

Datum concatenated(const Call& c, const Datum& x, const Datum& y, int axis) {
  const Datum all[] = {x, y};
  return core::detail::concat(all, axis, c.b.loc);
}

}  // namespace

// ---- what attention is made of

Datum with_heads(const Call& c, const Datum& x, const Datum& heads) {
  if (!x.type().is_tensor() || x.type().rank() != 3)
    c.fail("expected a tensor [batch, length, heads * size], got " + x.type().str());
  const Indices all = c.sizes(x);
  c.b.require(c.op(Opcode::eq_, c.b.rem(all[2], heads), c.integer(0)),
              "expected a last dimension that {} heads divide, got {}", {heads, all[2]});
  return c.permute(c.b.reshape(x, {all[0], all[1], heads, c.b.div(all[2], heads)}), {0, 2, 1, 3});
}

Datum without_heads(const Call& c, const Datum& x) {
  const Indices all = c.sizes(x);
  return c.b.reshape(c.permute(x, {0, 2, 1, 3}), {all[0], all[2], c.product({all[1], all[3]})});
}

Datum for_each_query_head(const Call& c, const Datum& x, const Datum& queries) {
  const Datum own = c.b.size(x, 1), wanted = c.b.size(queries, 1);
  if (known(own) != ir::dynamic && known(own) == known(wanted)) return x;
  c.b.require(c.op(Opcode::eq_, c.b.rem(wanted, own), c.integer(0)),
              "expected heads of queries that are a multiple of those of keys and values, got {} and {}",
              {wanted, own});
  return core::detail::repeat(x, 1, c.b.div(wanted, own), c.b.loc);
}

Datum row_products(const Call& c, const Datum& queries, const Datum& keys) {
  return core::detail::einsum("abik,abjk->abij", {queries, keys}, c.b.loc);
}

void Mask::allow(const Call& c, const Datum& some) {
  allowed = allowed.empty() ? some : c.op(Opcode::land_, allowed, some);
}

Datum Mask::applied(const Call& c, const Datum& scores) const {
  Datum all = scores;
  if (!added.empty()) {
    const Datum never = c.op(Opcode::eq_, c.b.primal(added), infinity(-1, added));
    all = c.where(never, infinity(-1, all), c.b.add(all, added));
  }
  return allowed.empty() ? all : c.where(allowed, all, infinity(-1, all));
}

Datum Mask::softmax(const Call& c, const Datum& scores) const {
  const int last = scores.type().rank() - 1;
  if (allowed.empty() && added.empty()) return core::detail::softmax(scores, last, false, c.b.loc);
  Mask open;
  if (!added.empty()) open.allow(c, c.b.less(infinity(-1, added), c.b.primal(added)));
  if (!allowed.empty()) open.allow(c, allowed);
  const std::vector<int> axes = {open.allowed.type().rank() - 1};
  const Datum any = core::detail::any_of(open.allowed, {axes, true}, true, c.b.loc),
              none = Build::number(0, scores);
  // Such a row would be -inf less -inf, whose derivative is none either.
  const Datum p = core::detail::softmax(c.where(any, scores, none), last, false, c.b.loc);
  return c.where(any, p, none);
}

Datum rotated(const Call& c, const Datum& x, const Datum& cosines, const Datum& sines, std::int64_t dim,
              bool interleaved) {
  const int last = x.type().rank() - 1;
  const Datum n = c.b.size(x, last), turned = dim == 0 ? n : c.integer(dim);
  const Datum half = c.b.div(turned, c.integer(2)), zero = c.integer(0);
  c.b.require(
      c.op(Opcode::land_, c.op(Opcode::eq_, c.b.add(half, half), turned), c.op(Opcode::le_, turned, n)),
      "expected an even number of turned elements of {}, got {}", {n, turned});
  c.b.require_equal(c.b.size(cosines, cosines.type().rank() - 1), half,
                    "expected cosines and sines of half as many angles as elements are turned");
  const Datum x1 = interleaved ? part_of(c, x, last, zero, turned, 2) : part_of(c, x, last, zero, half);
  const Datum x2 =
      interleaved ? part_of(c, x, last, c.integer(1), turned, 2) : part_of(c, x, last, half, turned);
  const Datum real = c.b.sub(c.b.mul(cosines, x1), c.b.mul(sines, x2));
  const Datum imaginary = c.b.add(c.b.mul(sines, x1), c.b.mul(cosines, x2));
  Datum y;
  if (interleaved) {
    Indices sizes = c.sizes(x);
    sizes.back() = turned;
    const Datum pairs[] = {real, imaginary};
    y = c.b.reshape(core::detail::stack(pairs, last + 1, c.b.loc), sizes);
  } else {
    y = concatenated(c, real, imaginary, last);
  }
  if (dim == 0 || known(n) == dim) return y;
  return concatenated(c, y, part_of(c, x, last, turned, n), last);
}

// ---- attention

namespace {

/// What the attributes and operands of Attention say of its mask. Query i is at place `before` + i of the
/// sequence.
Mask mask_of(const Call& c, const Datum& before, bool each, const Datum& queries, const Datum& keys,
             const Datum& like) {
  Mask m;
  const Datum n = c.b.size(queries, 2), count = c.b.size(keys, 2), batch = c.b.size(queries, 0);
  const bool causal = c.attribute("is_causal", std::int64_t{0}) != 0;
  const std::int64_t left = c.attribute("left_window_size", std::int64_t{-1}),
                     right = c.attribute("right_window_size", std::int64_t{-1});
  if (left < -1 || right < -1)
    c.fail("attributes 'left_window_size' and 'right_window_size': expected -1 or more, got " +
           std::to_string(left) + " and " + std::to_string(right));
  if (causal || left >= 0 || right >= 0 || c.has(6))
    m.allow(c, c.b.tabulate(ir::Kind::boolean, {each ? batch : c.integer(1), c.integer(1), n, count},
                            [&](const Indices& at) {
                              const Datum place = c.b.add(at[2], each ? c.b.get(before, {at[0]}) : before);
                              Datum yes;
                              const auto also = [&](const Datum& v) {
                                yes = yes.empty() ? v : c.op(Opcode::land_, yes, v);
                              };
                              if (causal) also(c.op(Opcode::le_, at[3], place));
                              if (left >= 0) also(c.op(Opcode::le_, c.b.sub(place, c.integer(left)), at[3]));
                              if (right >= 0)
                                also(c.op(Opcode::le_, at[3], c.b.add(place, c.integer(right))));
                              if (c.has(6))
                                also(c.b.less(at[3], c.b.get(c.cast(c[6], ir::Kind::i64), {at[0]})));
                              return yes;
                            }));
  if (!c.has(3)) return m;
  Datum given = c[3];
  const bool truth = c.element(3) == Element::boolean;
  if (!truth && !is_float(c.element(3)))
    c.fail(std::string("operand 4: expected a mask of bool or floating-point numbers, got ") +
           name(c.element(3)));
  if (!given.type().is_tensor()) c.fail("operand 4: expected a mask of one dimension or more, got a number");
  const int last = given.type().rank() - 1;
  const std::int64_t have = known(c.b.size(given, last)), want = known(count);
  if (have != ir::dynamic && want != ir::dynamic && have < want) {  // what it says nothing of is not attended
    std::vector<std::array<Datum, 2>> widths(static_cast<std::size_t>(last) + 1,
                                             {c.integer(0), c.integer(0)});
    widths.back()[1] = c.integer(want - have);
    given = core::detail::pad(given, widths, core::Pad::constant,
                              truth ? Datum::integer(0, ir::Bool) : infinity(-1, given), c.b.loc);
  }
  if (truth)
    m.allow(c, given);
  else
    m.added = c.cast(given, like.type().element());
  return m;
}

double scale_of(const Call& c, const Datum& queries) {
  if (c.has_attribute("scale")) return c.attribute("scale", 1.0);
  return 1 / std::sqrt(static_cast<double>(c.known_size(queries, queries.type().rank() - 1)));
}

/// A tensor in the precision that an attribute asks for.
Datum precise(const Call& c, const Datum& x) {
  if (!c.has_attribute("softmax_precision")) return x;
  return c.cast(x, c.element_attribute("softmax_precision", Element::float32));
}

}  // namespace

// Operands: queries, keys, values, a mask, keys and values of earlier places, how many keys there are.
Terms attention(const Call& c) {
  c.require_operands(3, 7);
  c.require_float(0);
  const bool flat = c.rank(0) == 3;
  if (!flat && c.rank(0) != 4) c.fail("expected operands of 3 or 4 dimensions, got " + c[0].type().str());
  if (c.has(4) != c.has(5)) c.fail("expected earlier keys and values, or neither, got one of them");
  if (c.has(4) && c.has(6)) c.fail("expected earlier keys and values or a number of keys, got both");
  Datum q = c[0], k = c[1], v = c[2];
  if (flat) {
    const auto heads = [&](const char* name) {
      const std::int64_t n = c.attribute(name);
      if (n < 1)
        c.fail(std::string("attribute '") + name + "': expected 1 or more, got " + std::to_string(n));
      return c.integer(n);
    };
    q = with_heads(c, q, heads("q_num_heads"));
    k = with_heads(c, k, heads("kv_num_heads"));
    v = with_heads(c, v, heads("kv_num_heads"));
  }
  Datum before = c.integer(0);
  if (c.has(4)) {
    before = c.b.size(c[4], 2);
    k = concatenated(c, c[4], k, 2);
    v = concatenated(c, c[5], v, 2);
  } else if (c.has(6)) {
    before = c.b.sub(c.cast(c[6], ir::Kind::i64), c.b.size(q, 2));
  }
  const Mask mask = mask_of(c, before, c.has(6), q, k, q);
  const Datum factor = c.number(std::sqrt(std::abs(scale_of(c, q))), q);
  const Datum turned = scale_of(c, q) < 0 ? c.op(Opcode::neg_, factor) : factor;
  const Datum raw = row_products(c, c.b.mul(q, turned), c.b.mul(for_each_query_head(c, k, q), factor));
  const double cap = c.attribute("softcap", 0.0);
  const Datum limit = c.number(cap, raw);
  const Datum capped = cap == 0 ? raw : c.b.mul(c.op(Opcode::tanh_, c.b.div(raw, limit)), limit);
  const Datum scores = mask.applied(c, capped);
  const Datum weights = c.cast(mask.softmax(c, precise(c, scores)), q.type().element());
  const Datum y = matrix_product(c, weights, for_each_query_head(c, v, q));
  const std::int64_t mode = c.attribute("qk_matmul_output_mode", std::int64_t{0});
  if (mode < 0 || mode > 3)
    c.fail("attribute 'qk_matmul_output_mode': expected 0 to 3, got " + std::to_string(mode));
  const Datum shown[] = {raw, capped, scores, weights};
  return {c.result(flat ? without_heads(c, y) : y), c.result(k), c.result(v),
          c.result(shown[static_cast<std::size_t>(mode)])};
}

// Attention whose scores and weights pass through graphs.
Terms flex_attention(const Call& c) {
  c.require_operands(3, 3);
  c.require_float(0);
  if (c.rank(0) != 4) c.fail("expected operands of 4 dimensions, got " + c[0].type().str());
  const Element e = c.element(0), inner = c.has_attribute("softmax_precision")
                                              ? c.element_attribute("softmax_precision", Element::float32)
                                          : e == Element::float64 ? e
                                                                  : Element::float32;
  const auto through = [&](const char* name, const Datum& x) {
    if (!c.has_attribute(name)) return x;
    const Terms out = c.execution.run(c.graph_attribute(name), {c.result(x, inner)}, c.frame);
    if (out.size() != 1 || !out[0].is_tensor() || out[0].element != inner)
      c.fail(std::string("attribute '") + name + "': expected a graph of one result of type " +
             onnx::name(inner));
    return c.datum(out[0]);
  };
  const Datum q = c.cast(c[0], inner), k = c.cast(c[1], inner);
  const Datum raw = row_products(c, q, for_each_query_head(c, k, q));
  const Datum scores = through("score_mod", c.b.mul(raw, c.number(scale_of(c, c[0]), raw)));
  const Datum weights = through("prob_mod", core::detail::softmax(scores, 3, false, c.b.loc));
  return {c.result(matrix_product(c, c.cast(weights, e), for_each_query_head(c, c[2], q)))};
}

// The state S [batch, heads, key, value] at each place: S = exp(decay) S + key (x) (beta (value - S^T key)).
// The attribute selects the terms of this formula. The result is S^T query.
Terms linear_attention(const Call& c) {
  c.require_operands(3, 6);
  c.require_float(0);
  const std::string rule = c.attribute("update_rule", std::string("gated_delta"));
  const bool gated = rule == "gated" || rule == "gated_delta",
             delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    c.fail("attribute 'update_rule': expected linear, gated, delta or gated_delta, got '" + rule + "'");
  if (gated != c.has(4) || delta != c.has(5))
    c.fail("attribute 'update_rule' of " + rule + ": expected " + (gated ? "a" : "no") + " decay and " +
           (delta ? "a" : "no") + " rate of updates");
  const std::int64_t heads = c.attribute("q_num_heads"), groups = c.attribute("kv_num_heads");
  if (heads < 1 || groups < 1 || heads % groups != 0)
    c.fail("attribute 'q_num_heads': expected a multiple of kv_num_heads, got " + std::to_string(heads) +
           " and " + std::to_string(groups));
  const ir::Kind k = c.element(0) == Element::float64 ? ir::Kind::f64 : ir::Kind::f32;
  // [length, batch, heads, size]: a place is a row.
  const auto rows = [&](std::size_t i, std::int64_t n) {
    if (c.rank(i) != 3) c.fail("expected operands of 3 dimensions, got " + c[i].type().str());
    const Datum x = c.cast(c[i], k), count = c.integer(n);
    const Indices all = c.sizes(x);
    c.b.require(c.op(Opcode::eq_, c.b.rem(all[2], count), c.integer(0)),
                "expected a last dimension that {} heads divide, got {}", {count, all[2]});
    return c.permute(c.b.reshape(x, {all[0], all[1], count, c.b.div(all[2], count)}), {1, 0, 2, 3});
  };
  const Datum q = rows(0, heads), key = rows(1, groups), value = rows(2, groups);
  const Datum decay = gated ? rows(4, groups) : Datum();
  const Datum rate = delta ? rows(5, c.known_size(c[5], 2)) : Datum();
  const Datum length = c.b.size(q, 0), batch = c.b.size(q, 1), n = c.b.size(key, 3), m = c.b.size(value, 3);
  const double given = c.attribute("scale", 0.0);
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(c.known_size(q, 3)));
  const Indices shape = {batch, c.integer(groups), n, m};
  const Datum none = Datum::zero(ir::Type(k));
  const Datum start = c.has(3) ? c.cast(c[3], k) : c.b.fill(none, shape);
  if (!start.type().is_tensor() || start.type().rank() != 4)
    c.fail("operand 4: expected a state [batch, heads, key size, value size], got " + start.type().str());
  for (int d = 0; d < 4; ++d)
    c.b.require_equal(c.b.size(start, d), shape[static_cast<std::size_t>(d)],
                      "operand 4: expected a state [batch, heads, key size, value size]");
  const auto row = [&](const Datum& x, const Datum& t) {
    return core::perform({Opcode::take_, 0, c.b.loc}, {x, t});
  };
  const Datum per = c.integer(heads / groups);
  const Datums end =
      c.b.loop(c.integer(0), length,
               {c.b.reshape(start, shape), c.b.fill(none, {length, batch, c.integer(groups), per, m})},
               [&](const Datum& t, const Datums& s) {
                 Datum state = s[0], v = row(value, t);
                 const Datum now = row(key, t);
                 const int last = 3;
                 if (gated)
                   state = c.b.mul(state, c.b.with_ones(c.op(Opcode::exp_, row(decay, t)), {&last, 1}));
                 if (delta) v = c.b.mul(row(rate, t), c.b.sub(v, c.b.einsum("abij,abi->abj", {state, now})));
                 state = c.b.add(state, c.b.einsum("abi,abj->abij", {now, v}));
                 const Datum asked = c.b.reshape(row(q, t), {batch, c.integer(groups), per, n});
                 const Datum y = c.b.einsum("abgi,abij->abgj", {asked, state});
                 return Datums{state, core::perform({Opcode::add_take_, 0, c.b.loc}, {s[1], t, y})};
               });
  const Datum y =
      c.b.reshape(c.permute(end[1], {1, 0, 2, 3, 4}), {batch, length, c.product({c.integer(heads), m})});
  const Element kept = c.has(3) ? c.element(3) : c.element(0);
  return {c.result(c.cast(c.b.mul(y, c.number(scale, y)), c.element(0))),
          c.result(c.cast(end[0], kept), kept)};
}

// ---- positions and caches

// Operands: numbers, cosines, sines, positions.
Terms rotary_embedding(const Call& c) {
  c.require_operands(3, 4);
  c.require_float(0);
  const bool flat = c.rank(0) == 3;
  if (!flat && c.rank(0) != 4) c.fail("expected an operand of 3 or 4 dimensions, got " + c[0].type().str());
  const Datum x = flat ? with_heads(c, c[0], c.integer(c.attribute("num_heads"))) : c[0];
  const auto angles = [&](std::size_t i) {
    Datum t = c[i];
    if (c.has(3)) {
      if (c.rank(i) != 2 || c.rank(3) != 2)
        c.fail("expected angles [positions, n] and positions [batch, length]");
      const Datum positions = c.cast(c[3], ir::Kind::i64), table = t;
      t = c.b.tabulate(table.type().element(),
                       {c.b.size(positions, 0), c.b.size(positions, 1), c.b.size(table, 1)},
                       [&](const Indices& at) {
                         return c.b.get(table, {c.b.get(positions, {at[0], at[1]}), at[2]});
                       });
    }
    if (t.type().rank() != 3) c.fail("expected angles [batch, length, n], got " + t.type().str());
    const int heads = 1;
    return c.b.with_ones(t, {&heads, 1});
  };
  const Datum y = rotated(c, x, angles(1), angles(2), c.attribute("rotary_embedding_dim", std::int64_t{0}),
                          c.attribute("interleaved", std::int64_t{0}) != 0);
  return {c.result(flat ? without_heads(c, y) : y)};
}

// A cache with an update written from a place on, one for each example.
Terms tensor_scatter(const Call& c) {
  c.require_operands(2, 3);
  const Datum cache = c[0], update = c[1];
  const int rank = c.rank();
  if (rank < 2 || c.rank(1) != rank)
    c.fail("expected a cache and an update of 2 or more dimensions, as many each");
  const auto axis = static_cast<std::size_t>(c.axis(c.attribute("axis", std::int64_t{-2}), rank));
  if (axis == 0) c.fail("attribute 'axis': expected a dimension that is not the batch, got 0");
  const std::string mode = c.attribute("mode", std::string("linear"));
  if (mode != "linear" && mode != "circular")
    c.fail("attribute 'mode': expected linear or circular, got '" + mode + "'");
  const Indices sizes = c.sizes(cache);
  for (int d = 0; d < rank; ++d)
    if (static_cast<std::size_t>(d) != axis)
      c.b.require_equal(c.b.size(update, d), sizes[static_cast<std::size_t>(d)],
                        "expected an update of the cache's sizes but along the axis");
  const Datum most = sizes[axis], n = c.b.size(update, static_cast<int>(axis)), zero = c.integer(0);
  c.b.require(c.op(Opcode::le_, n, most), "expected an update of at most {} places, got {}", {most, n});
  const Datum from = c.has(2) ? c.cast(c[2], ir::Kind::i64) : Datum();
  if (mode == "linear" && c.has(2))
    c.b.loop(zero, sizes[0], {zero}, [&](const Datum& i, const Datums& s) {
      const Datum first = c.b.get(from, {i});
      c.b.require(
          c.op(Opcode::land_, c.op(Opcode::le_, zero, first), c.op(Opcode::le_, c.b.add(first, n), most)),
          "expected {} places from {} on in a cache of {}", {n, first, most});
      return s;
    });
  return {c.result(c.b.tabulate(cache.type().element(), sizes, [&](const Indices& at) {
    Datum place = c.has(2) ? c.b.sub(at[axis], c.b.get(from, {at[0]})) : at[axis];
    if (mode == "circular") place = c.b.rem(c.b.add(c.b.rem(place, most), most), most);
    const Datum fresh = c.op(Opcode::land_, c.op(Opcode::le_, zero, place), c.b.less(place, n));
    Indices read = at;
    read[axis] = c.b.select(fresh, place, zero);
    return c.b.select(fresh, c.b.get(update, read), c.b.get(cache, at));
  }))};
}

// Each channel by itself, over what is there and before it.
Terms causal_conv_with_state(const Call& c) {
  c.require_operands(2, 4);
  c.require_float(0);
  if (c.rank(0) != 3 || c.rank(1) != 3)
    c.fail("expected a tensor [batch, channels, length] and weights [channels, 1, n], got " +
           c[0].type().str() + " and " + c[1].type().str());
  const std::string activation = c.attribute("activation", std::string("none"));
  if (activation != "none" && activation != "silu" && activation != "swish")
    c.fail("attribute 'activation': expected silu, swish or none, got '" + activation + "'");
  const Datum x = c[0], w = c[1], width = c.b.size(w, 2), kept = c.b.sub(width, c.integer(1));
  const Indices sizes = c.sizes(x);
  c.b.require_equal(c.b.size(w, 0), sizes[1], "expected weights for each channel");
  c.b.require_equal(c.b.size(w, 1), c.integer(1), "expected weights [channels, 1, n]");
  const Datum zero = c.b.fill(Build::number(0, x), {sizes[0], sizes[1], kept});
  const Datum padded = known(width) == 1 ? x : concatenated(c, c.has(3) ? c[3] : zero, x, 2);
  Datum y = c.b.einsum("nc[i+p],cp->nci;i", {padded, c.b.reshape(w, {sizes[1], width}), sizes[2]});
  if (c.has(2)) y = core::detail::with_bias(y, c[2], c.b.loc);
  if (activation != "none") y = core::detail::silu(y, c.b.loc);
  const Datum state = known(width) == 1 ? zero : part_of(c, padded, 2, sizes[2], c.b.size(padded, 2));
  return {c.result(y), c.result(state)};
}

}  // namespace lantern::onnx::rules
