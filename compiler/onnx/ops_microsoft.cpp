// Operators of com.microsoft: what onnxruntime's optimiser and quantiser write.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lantern/compiler/onnx/attention.hpp"
#include "lantern/compiler/onnx/quantised.hpp"
#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/onnx/window.hpp"
#include "lantern/compiler/staging/functions.hpp"

namespace lantern::onnx::rules {

namespace {

constexpr ir::Kind f32 = ir::Kind::f32;

Datum one_of(const Call& c, std::size_t i) { return c.reshape(c[i], {}); }

/// Operand i with its scale and zero point behind it, as numbers; one of each for all.
Datum real_of(const Call& c, std::size_t i) {
  const Datum x = centred(c, i, i + 2, 0);
  return c.b.mul(c.cast(x, f32), c.cast(one_of(c, i + 1), f32));
}
/// The result for a scale at operand i, and a zero point behind it.
Terms as_integers(const Call& c, const Datum& x, std::size_t i) {
  const Element to = c.has(i + 1) ? c.element(i + 1) : Element::uint8;
  const Datum zero = c.has(i + 1) ? one_of(c, i + 1) : Datum();
  return {c.result(quantised(c, x, one_of(c, i), zero, to), to)};
}

Datum activated(const Call& c, const Datum& x) {
  const std::string name = c.attribute("activation", std::string());
  std::vector<double> p = c.real_attributes("activation_params");  // FusedGemm has them one by one
  for (const char* one : {"activation_alpha", "activation_beta"})
    if (c.node.find(one) != nullptr) p.push_back(c.attribute(one, 0.0));
  const auto parameter = [&](std::size_t i, double otherwise) {
    return c.number(i < p.size() ? p[i] : otherwise, x);
  };
  if (name.empty()) return x;
  if (name == "Relu") return core::detail::relu(x, c.b.loc);
  if (name == "Sigmoid") return core::detail::sigmoid(x, c.b.loc);
  if (name == "Tanh") return c.op(Opcode::tanh_, x);
  const Datum zero = c.number(0, x);
  if (name == "LeakyRelu") return c.where(c.b.less(x, zero), c.b.mul(x, parameter(0, 0.01)), x);
  if (name == "Clip")
    return c.op(Opcode::min_, c.op(Opcode::max_, x, parameter(0, -3.4e38)), parameter(1, 3.4e38));
  if (name == "HardSigmoid") {
    const Datum y = c.b.add(c.b.mul(x, parameter(0, 0.2)), parameter(1, 0.5));
    return c.op(Opcode::min_, c.op(Opcode::max_, y, zero), c.number(1, x));
  }
  c.fail("attribute 'activation': expected Relu, Sigmoid, Tanh, LeakyRelu, Clip or HardSigmoid, got '" +
         name + "'");
}

Datum turned(const Call& c, const Datum& x) {
  const int rank = x.type().rank();
  if (rank < 2) return x;
  std::vector<int> order;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  std::swap(order[static_cast<std::size_t>(rank) - 1], order[static_cast<std::size_t>(rank) - 2]);
  return c.permute(x, order);
}

/// Less its mean, over its deviation, along the last dimension, with a factor and a shift.
Datum normalised(const Call& c, const Datum& x, const Datum& factor, const Datum& shift, double epsilon,
                 bool centre) {
  const int last = x.type().rank() - 1;
  const core::detail::Over over{{&last, 1}, true};
  const Datum off = centre ? c.b.sub(x, core::detail::mean_along(x, over, c.b.loc)) : x;
  const Datum variance = core::detail::mean_along(c.b.mul(off, off), over, c.b.loc);
  const Datum root = c.op(Opcode::sqrt_, c.b.add(variance, c.number(epsilon, x)));
  const Datum y = c.b.mul(c.b.div(off, root), factor);
  return shift.empty() ? y : c.b.add(y, shift);
}

/// Operands: a tensor, another, a factor, then, with a mean, a shift, and a bias.
Terms skipped(const Call& c, bool centre) {
  c.require_float(0);
  const std::size_t bias = centre ? 4 : 3;
  Datum sum = c.b.add(c[0], c[1]);
  if (c.has(bias)) sum = c.b.add(sum, c[bias]);
  const Datum shift = centre && c.has(3) ? c[3] : Datum();
  const Datum y = normalised(c, sum, c[2], shift, c.attribute("epsilon", 1e-12), centre);
  return {c.result(y), Term(), Term(), c.result(sum)};
}

/// Weights [rows, columns] of so many bits, in blocks along the columns, each with a scale and a zero point.
Datum unpacked(const Call& c, std::int64_t rows, std::int64_t columns, std::int64_t bits,
               std::int64_t block) {
  const std::int64_t each = 8 / bits, blocks = (columns + block - 1) / block,
                     bytes = (blocks + each - 1) / each;
  const Datum packed =
      c.cast(c.reshape(c[1], {c.integer(rows), c.integer(blocks), c.integer(block / each)}), ir::Kind::i64);
  const Datum scales = c.reshape(c[2], {c.integer(rows), c.integer(blocks)});
  const bool real_zero = c.has(3) && is_float(c.element(3));
  Datum zeros;
  if (c.has(3)) zeros = c.reshape(c[3], {c.integer(rows), c.integer(real_zero ? blocks : bytes)});
  const auto field = [&](const Datum& byte, const Datum& number) {
    if (bits == 8) return byte;
    const Datum moved = c.op(Opcode::shift_right_, byte, c.b.mul(number, c.integer(bits)));
    return c.op(Opcode::bit_and_, moved, c.integer((1 << bits) - 1));
  };
  const ir::Kind k = kind_of(c.element(0));
  return c.b.tabulate(k, {c.integer(rows), c.integer(columns)}, [&](const Indices& at) {
    const Datum b = c.b.div(at[1], c.integer(block)), inside = c.b.rem(at[1], c.integer(block));
    const Datum byte = c.b.get(packed, {at[0], b, c.b.div(inside, c.integer(each))});
    const Datum q = c.cast(field(byte, c.b.rem(inside, c.integer(each))), k);
    Datum zero = Datum::number(static_cast<double>(1 << (bits - 1)), ir::Type(k));
    if (c.has(3) && real_zero)
      zero = c.cast(c.b.get(zeros, {at[0], b}), k);
    else if (c.has(3))
      zero = c.cast(field(c.cast(c.b.get(zeros, {at[0], c.b.div(b, c.integer(each))}), ir::Kind::i64),
                          c.b.rem(b, c.integer(each))),
                    k);
    return c.b.mul(c.b.sub(q, zero), c.cast(c.b.get(scales, {at[0], b}), k));
  });
}

/// Softmax of products of queries and keys, times the values: [batch, length, heads * size].
Datum attended(const Call& c, const Datum& q, const Datum& k, const Datum& v, const Mask& mask) {
  const double given = c.attribute("scale", 0.0);
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(c.known_size(q, 3)));
  const Datum scores = row_products(c, c.b.mul(q, c.number(scale, q)), k);
  return without_heads(c, matrix_product(c, mask.softmax(c, mask.applied(c, scores)), v));
}

/// The mask of keys that operand i says: as many as there are [batch], or 1 and 0 of each [batch, keys] or of
/// each query [batch, queries, keys].
void mask_keys(const Call& c, Mask& mask, std::size_t i, const Datum& keys) {
  if (!c.has(i)) return;
  const Datum given = c.cast(c[i], ir::Kind::i64), n = c.b.size(keys, 2), batch = c.b.size(keys, 0);
  const int rank = c.rank(i);
  if (rank == 1) {
    c.b.require_equal(c.b.size(given, 0), batch, "expected a number of keys for each example");
    mask.allow(c, c.b.tabulate(ir::Kind::boolean, {batch, c.integer(1), c.integer(1), n},
                               [&](const Indices& at) { return c.b.less(at[3], c.b.get(given, {at[0]})); }));
    return;
  }
  const Datum open = c.op(Opcode::ne_, given, c.integer(0));
  const int places[] = {1, 2};
  if (rank == 2)
    mask.allow(c, c.b.with_ones(open, {places, 2}));
  else if (rank == 3)
    mask.allow(c, c.b.with_ones(open, {places, 1}));
  else
    c.unsupported("masks of " + std::to_string(rank) + " dimensions");
}

void mask_later(const Call& c, Mask& mask, const Datum& q, const Datum& k) {
  if (c.attribute("unidirectional", std::int64_t{0}) == 0) return;
  const Datum n = c.b.size(q, 2), all = c.b.size(k, 2), before = c.b.sub(all, n);
  mask.allow(c, c.b.tabulate(ir::Kind::boolean, {c.integer(1), c.integer(1), n, all}, [&](const Indices& at) {
    return c.op(Opcode::le_, at[3], c.b.add(at[2], before));
  }));
}

std::int64_t heads_of(const Call& c) {
  const std::int64_t n = c.attribute("num_heads");
  if (n < 1) c.fail("attribute 'num_heads': expected 1 or more, got " + std::to_string(n));
  return n;
}

}  // namespace

// ---- fused by the optimiser

Terms fused_conv(const Call& c) {
  c.require_operands(2, 4);
  c.require_float(0);
  Datum y = convolved(c, c[0], c[1]);
  if (c.has(2)) y = core::detail::with_bias(y, c[2], c.b.loc);
  if (c.has(3)) y = c.b.add(y, c[3]);
  return {c.result(activated(c, y))};
}

Terms fused_gemm(const Call& c) { return {c.result(activated(c, c.datum(gemm(c)[0])))}; }

Terms fused_matmul(const Call& c) {
  c.require_operands(2, 2);
  // With transBatch the first dimension comes behind those of the batch.
  const auto matrix = [&](std::size_t i, const char* batch, const char* both) {
    Datum x = c[i];
    std::vector<int> order;
    for (int d = 1; d + 1 < c.rank(i); ++d) order.push_back(d);
    order.push_back(0);
    order.push_back(c.rank(i) - 1);
    if (c.rank(i) > 2 && c.attribute(batch, std::int64_t{0}) != 0) x = c.permute(x, order);
    return c.attribute(both, std::int64_t{0}) != 0 ? turned(c, x) : x;
  };
  const Datum y = matrix_product(c, matrix(0, "transBatchA", "transA"), matrix(1, "transBatchB", "transB"));
  const double alpha = c.attribute("alpha", 1.0);
  return {c.result(alpha == 1 ? y : c.b.mul(y, c.number(alpha, y)))};
}

Terms quick_gelu(const Call& c) {
  const Datum x = c[0];
  return {c.result(
      c.b.mul(x, core::detail::sigmoid(c.b.mul(x, c.number(c.attribute("alpha", 1.702), x)), c.b.loc)))};
}
Terms bias_gelu(const Call& c) {
  return {c.result(core::detail::gelu(c.has(1) ? c.b.add(c[0], c[1]) : c[0], c.b.loc))};
}
Terms fast_gelu(const Call& c) {
  return {c.result(core::detail::gelu_tanh(c.has(1) ? c.b.add(c[0], c[1]) : c[0], c.b.loc))};
}

Terms skip_layer_normalization(const Call& c) { return skipped(c, true); }
Terms skip_rms_normalization(const Call& c) { return skipped(c, false); }
Terms simplified_layer_normalization(const Call& c) {
  c.require_operands(2, 2);
  c.require_float(0);
  if (c.axis(c.attribute("axis", std::int64_t{-1}), c.rank()) != c.rank() - 1)
    c.unsupported("attribute 'axis' of another dimension than the last");
  return {c.result(normalised(c, c[0], c[1], {}, c.attribute("epsilon", 1e-5), false))};
}

// Operands: words, segments, tables of words, places and segments, a factor, a shift, a mask, places.
Terms embed_layer_normalization(const Call& c) {
  c.require_operands(4, 9);
  const Datum words = c.cast(c[0], ir::Kind::i64);
  if (c.rank(0) != 2) c.fail("expected words [batch, length], got " + words.type().str());
  const Indices sizes = c.sizes(words);
  const ir::Kind k = kind_of(c.element(2));
  const Datum width = c.b.size(c[2], 1);
  const Datum places = c.has(8) ? c.cast(c[8], ir::Kind::i64) : Datum();
  const bool shared = c.has(8) && known(c.b.size(places, 0)) == 1;
  const Datum sum = c.b.tabulate(k, {sizes[0], sizes[1], width}, [&](const Indices& at) {
    Datum v = c.b.get(c[2], {c.b.get(words, {at[0], at[1]}), at[2]});
    const Datum place = c.has(8) ? c.b.get(places, {shared ? c.integer(0) : at[0], at[1]}) : at[1];
    v = c.b.add(v, c.b.get(c[3], {place, at[2]}));
    if (!c.has(4) || !c.has(1)) return v;
    return c.b.add(v, c.b.get(c[4], {c.b.get(c.cast(c[1], ir::Kind::i64), {at[0], at[1]}), at[2]}));
  });
  const Datum y = normalised(c, sum, c[5], c[6], c.attribute("epsilon", 1e-12), true);
  const int last = 1;
  const Datum counts =
      c.has(7) ? core::detail::sum_along(c.cast(c[7], ir::Kind::i32), {{&last, 1}, false}, c.b.loc)
               : c.b.fill(Datum::integer(0, ir::Type(ir::Kind::i32)), {sizes[0]});
  return {c.result(y, c.element(2)), c.result(counts, Element::int32), c.result(sum, c.element(2))};
}

namespace {

/// Attention of queries, keys and values side by side [batch, length, width]. Operands by their places: a
/// mask, earlier keys and values [2, ...], numbers that are added to the scores.
Terms packed(const Call& c, const Datum& all, std::size_t mask_at, std::size_t past_at,
             std::size_t added_at) {
  const Datum heads = c.integer(heads_of(c));
  if (c.attribute("do_rotary", std::int64_t{0}) != 0) c.unsupported("attribute 'do_rotary'");
  const Datum width = c.b.size(all, 2);
  Indices ends = {c.b.div(width, c.integer(3)), c.b.div(c.b.mul(width, c.integer(2)), c.integer(3)), width};
  if (const Sizes own = c.attributes("qkv_hidden_sizes"); !own.empty()) {
    if (own.size() != 3)
      c.fail("attribute 'qkv_hidden_sizes': expected three sizes, got " + std::to_string(own.size()));
    ends = {c.integer(own[0]), c.integer(own[0] + own[1]), c.integer(own[0] + own[1] + own[2])};
    c.b.require_equal(ends[2], width,
                      "attribute 'qkv_hidden_sizes': expected sizes that make up the weights");
  }
  const Datum q = with_heads(c, part_of(c, all, 2, c.integer(0), ends[0]), heads);
  Datum k = with_heads(c, part_of(c, all, 2, ends[0], ends[1]), heads),
        v = with_heads(c, part_of(c, all, 2, ends[1], ends[2]), heads);
  if (c.has(past_at)) {
    const auto before = [&](std::int64_t i) {
      return core::perform({Opcode::take_, 0, c.b.loc}, {c[past_at], c.integer(i)});
    };
    k = core::detail::concat(Datums{before(0), k}, 2, c.b.loc);
    v = core::detail::concat(Datums{before(1), v}, 2, c.b.loc);
  }
  Mask mask;
  mask_keys(c, mask, mask_at, k);
  mask_later(c, mask, q, k);
  if (c.has(added_at)) mask.added = c[added_at];
  const Datum y = attended(c, q, k, v, mask);
  const Element e = Element::float32;
  if (c.node.outputs.size() < 2) return {c.result(y, e)};
  return {c.result(y, e), c.result(core::detail::stack(Datums{k, v}, 0, c.b.loc), e)};
}

}  // namespace

// Operands: a tensor, the matrices of queries, keys and values side by side, their bias, a mask, earlier keys
// and values, numbers that are added to the scores.
Terms packed_attention(const Call& c) {
  c.require_operands(2, 7);
  c.require_float(0);
  Datum all = matrix_product(c, c[0], c[1]);
  if (c.has(2)) all = c.b.add(all, c[2]);
  Terms y = packed(c, all, 3, 4, 5);
  for (Term& t : y) t = c.result(t.datum, c.element(0));
  return y;
}

// Operands: queries, keys, values, a bias, a mask of keys, numbers that are added to the scores, earlier keys
// and values.
Terms multi_head_attention(const Call& c) {
  c.require_operands(3, 10);
  c.require_float(0);
  const Datum heads = c.integer(heads_of(c));
  if (c.rank(0) != 3 || c.rank(1) != c.rank(2) || (c.rank(1) != 3 && c.rank(1) != 4))
    c.unsupported("queries, keys and values in one tensor");
  const Datum width = c.b.size(c[0], 2), twice = c.b.add(width, width);
  const auto biased = [&](const Datum& x, const Datum& lo, const Datum& hi) {
    return c.has(3) ? c.b.add(x, part_of(c, c[3], 0, lo, hi)) : x;
  };
  const Datum q = with_heads(c, biased(c[0], c.integer(0), width), heads);
  Datum k = c.rank(1) == 4 ? c[1] : with_heads(c, biased(c[1], width, twice), heads);
  Datum v =
      c.rank(2) == 4 ? c[2] : with_heads(c, biased(c[2], twice, c.b.add(twice, c.b.size(c[2], 2))), heads);
  if (c.has(6) && c.has(7)) {
    k = core::detail::concat(Datums{c[6], k}, 2, c.b.loc);
    v = core::detail::concat(Datums{c[7], v}, 2, c.b.loc);
  }
  Mask mask;
  mask_keys(c, mask, 4, k);
  mask_later(c, mask, q, k);
  if (c.has(5)) mask.added = c[5];
  return {c.result(attended(c, q, k, v, mask)), c.result(k), c.result(v)};
}

// Operands: queries (or queries, keys and values side by side), keys, values, earlier keys and values in a buffer of some
// length, the last place of each example, the length of all, tables of cosines and sines, places, numbers that are added to the
// scores. Grouped-query attention: Ainslie et al., GQA: Training Generalized Multi-Query Transformer Models, 2023.
Terms group_query_attention(const Call& c) {
  c.require_operands(7, 14);
  c.require_float(0);
  const std::int64_t heads = heads_of(c), groups = c.attribute("kv_num_heads");
  if (groups < 1 || heads % groups != 0)
    c.fail("attribute 'kv_num_heads': expected a divisor of num_heads, got " + std::to_string(groups) + " and " +
           std::to_string(heads));
  if (c.attribute("smooth_softmax", std::int64_t{0}) > 0 || c.has(11)) c.unsupported("a softmax with a sink");
  if (c.has(12) || c.has(13)) c.unsupported("keys and values of integers");
  if (c.attribute("qk_output", std::int64_t{0}) != 0) c.unsupported("attribute 'qk_output'");
  if (c.rank(0) != 3 || c.has(1) != c.has(2)) c.fail("expected queries [batch, length, size], and keys and values, or neither");
  if (c.has(3) != c.has(4)) c.fail("expected earlier keys and values, or neither, got one of them");
  const Datum n = c.integer(heads), m = c.integer(groups), zero = c.integer(0);
  Datum q = c[0], k, v;
  if (c.has(1)) {
    k = c[1];
    v = c[2];
  } else {
    const Datum size = c.b.div(c.b.size(c[0], 2), c.integer(heads + 2 * groups));
    const Datum first = c.b.mul(size, n), second = c.b.mul(size, c.integer(heads + groups));
    q = part_of(c, c[0], 2, zero, first);
    k = part_of(c, c[0], 2, first, second);
    v = part_of(c, c[0], 2, second, c.b.size(c[0], 2));
  }
  q = with_heads(c, q, n);
  k = with_heads(c, k, m);
  v = with_heads(c, v, m);
  const Datum batch = c.b.size(q, 0), length = c.b.size(q, 2);
  const std::int64_t all = c.integer(6, "the length of all keys");
  // Nothing is before the first place of a prompt, which has all keys.
  const bool prompt = known(length) == all, step = known(length) >= 0 && !prompt;
  const Datum last = c.reshape(c.cast(c[5], ir::Kind::i64), {batch});
  const auto before = [&](const Datum& example) {
    if (prompt) return zero;
    const Datum kept = c.b.sub(c.b.add(c.b.get(last, {example}), c.integer(1)), length);
    return step ? kept : c.b.select(c.b.binary(Opcode::eq_, length, c.integer(all)), zero, kept);
  };
  if (c.attribute("do_rotary", std::int64_t{0}) != 0) {
    if (!c.has(7) || !c.has(8)) c.fail("attribute 'do_rotary': expected tables of cosines and sines");
    const Datum places = c.has(9) ? c.cast(c[9], ir::Kind::i64) : Datum(), half = c.b.size(c[7], 1);
    const auto angles = [&](std::size_t i) {
      const Datum t = c[i];
      return c.b.tabulate(t.type().element(), {batch, c.integer(1), length, half}, [&](const Indices& at) {
        const Datum place = c.has(9) ? c.b.get(places, {at[0], at[2]}) : c.b.add(before(at[0]), at[2]);
        return c.b.get(t, {place, at[3]});
      });
    };
    const Datum cosines = angles(7), sines = angles(8);
    const bool interleaved = c.attribute("rotary_interleaved", std::int64_t{0}) != 0;
    const std::int64_t turned = 2 * c.known_size(c[7], 1);
    q = rotated(c, q, cosines, sines, turned, interleaved);
    k = rotated(c, k, cosines, sines, turned, interleaved);
  }
  // Behind what is there, in a buffer that may be longer.
  const std::int64_t buffer = c.has(3) ? c.known_size(c[3], 2) : 0;
  const Datum count = c.integer(std::max(all, buffer));
  const auto kept = [&](std::size_t i, const Datum& fresh) {
    const bool has = c.has(i) && buffer > 0;
    const Datum old = has ? c[i] : Datum(), none = Build::number(0, fresh), most = c.b.sub(length, c.integer(1));
    return c.b.tabulate(fresh.type().element(), {batch, m, count, c.b.size(fresh, 3)}, [&](const Indices& at) {
      const Datum place = c.b.sub(at[2], before(at[0]));
      const Datum is_new = c.op(Opcode::land_, c.op(Opcode::le_, zero, place), c.b.less(place, length));
      const Datum read = c.op(Opcode::imax_, zero, c.op(Opcode::imin_, place, most));
      const Datum x = c.b.get(fresh, {at[0], at[1], read, at[3]});
      if (!has) return c.b.select(is_new, x, none);
      const Datum there = c.op(Opcode::imin_, at[2], c.integer(buffer - 1));
      const Datum is_old = c.b.less(at[2], c.op(Opcode::imin_, before(at[0]), c.integer(buffer)));
      return c.b.select(is_new, x, c.b.select(is_old, c.b.get(old, {at[0], at[1], there, at[3]}), none));
    });
  };
  k = kept(3, k);
  v = kept(4, v);
  const std::int64_t window = c.attribute("local_window_size", std::int64_t{-1});
  Mask mask;
  mask.allow(c, c.b.tabulate(ir::Kind::boolean, {batch, c.integer(1), length, count}, [&](const Indices& at) {
    const Datum place = c.b.add(before(at[0]), at[2]);
    const Datum earlier = c.op(Opcode::le_, at[3], place);
    if (window < 0) return earlier;
    return c.op(Opcode::land_, earlier, c.b.less(c.b.sub(place, c.integer(window)), at[3]));
  }));
  if (c.has(10)) {
    const std::int64_t more = std::max(all, buffer) - c.known_size(c[10], 3);
    std::vector<std::array<Datum, 2>> widths(4, {zero, zero});
    widths[3][1] = c.integer(std::max<std::int64_t>(0, more));
    mask.added = more > 0 ? core::detail::pad(c[10], widths, core::Pad::constant, Build::number(0, c[10]), c.b.loc) : c[10];
  }
  const double given = c.attribute("scale", 0.0), cap = c.attribute("softcap", 0.0);
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(c.known_size(q, 3)));
  Datum scores = row_products(c, c.b.mul(q, c.number(scale, q)), for_each_query_head(c, k, q));
  if (cap > 0) scores = c.b.mul(c.op(Opcode::tanh_, c.b.div(scores, c.number(cap, scores))), c.number(cap, scores));
  const Datum weights = mask.softmax(c, mask.applied(c, scores));
  const Datum y = without_heads(c, matrix_product(c, weights, for_each_query_head(c, v, q)));
  return {c.result(y), c.result(k), c.result(v)};
}

// Operands: numbers, places, tables of cosines and sines by places.
Terms microsoft_rotary_embedding(const Call& c) {
  c.require_operands(4, 4);
  c.require_float(0);
  const bool flat = c.rank(0) == 3;
  const std::int64_t dim = c.attribute("rotary_embedding_dim", std::int64_t{0});
  const Datum places = c.cast(c[1], ir::Kind::i64), half = c.b.size(c[2], 1);
  if (c.rank(0) != 3 && c.rank(0) != 4)
    c.fail("expected a tensor of 3 or 4 dimensions, got " + c[0].type().str());
  const std::int64_t said = c.attribute("num_heads", std::int64_t{0});
  const Datum heads = said > 0 ? c.integer(said) : c.b.div(c.b.size(c[0], 2), c.b.add(half, half));
  const Datum x = flat ? with_heads(c, c[0], heads) : c[0];
  const bool start = c.rank(1) == 1 || known(c.b.size(places, c.rank(1) - 1)) == 1;
  const auto angles = [&](std::size_t i) {
    const Datum t = c[i], one = c.integer(1);
    return c.b.tabulate(
        t.type().element(), {c.rank(1) == 1 ? one : c.b.size(x, 0), one, c.b.size(x, 2), half},
        [&](const Indices& at) {
          if (c.rank(1) == 1) return c.b.get(t, {c.b.add(c.b.get(places, {c.integer(0)}), at[2]), at[3]});
          if (start) return c.b.get(t, {c.b.add(c.b.get(places, {at[0], c.integer(0)}), at[2]), at[3]});
          return c.b.get(t, {c.b.get(places, {at[0], at[2]}), at[3]});
        });
  };
  const Datum y = rotated(c, x, angles(2), angles(3), dim, c.attribute("interleaved", std::int64_t{0}) != 0);
  const double scale = c.attribute("scale", 1.0);
  const Datum scaled = scale == 1 ? y : c.b.mul(y, c.number(scale, y));
  return {c.result(flat ? without_heads(c, scaled) : scaled)};
}

// ---- quantised

// Operands: a matrix, packed weights, their scales, their zero points, an order of groups, a bias.
Terms matmul_n_bits(const Call& c) {
  c.require_operands(3, 6);
  c.require_float(0);
  const std::int64_t columns = c.attribute("K"), rows = c.attribute("N"),
                     bits = c.attribute("bits", std::int64_t{4}), block = c.attribute("block_size");
  if (columns < 1 || rows < 1 || (bits != 2 && bits != 4 && bits != 8) || block < 8 || block % 8 != 0)
    c.fail(
        "expected attributes K and N of 1 or more, bits of 2, 4 or 8, and blocks of a multiple of 8 "
        "elements");
  if (c.has(4)) c.unsupported("an order of groups");
  const Datum y = matrix_product(c, c[0], turned(c, unpacked(c, rows, columns, bits, block)));
  return {c.result(c.has(5) ? c.b.add(y, c[5]) : y)};
}

// Operands: a, its scale and zero point, b, its scale and zero point, c, the result's scale and zero point.
Terms qgemm(const Call& c) {
  c.require_operands(6, 9);
  const bool turn_a = c.attribute("transA", std::int64_t{0}) != 0,
             turn_b = c.attribute("transB", std::int64_t{0}) != 0;
  const int columns = turn_b ? 0 : 1;
  Datum sums = core::detail::einsum(
      (std::string(turn_a ? "ki" : "ik") + "," + (turn_b ? "jk" : "kj") + "->ij").c_str(),
      {centred(c, 0, 2, 0), centred(c, 3, 5, columns)}, c.b.loc);
  if (c.has(6)) sums = c.b.add(sums, c[6]);
  const Datum factor = c.b.mul(c.cast(one_of(c, 1), f32), along(c, c.cast(c[4], f32), 1, 2));
  Datum y = c.b.mul(c.cast(sums, f32), factor);
  if (const double alpha = c.attribute("alpha", 1.0); alpha != 1) y = c.b.mul(y, c.number(alpha, y));
  if (!c.has(7)) return {c.result(y, Element::float32)};
  return as_integers(c, y, 7);
}

// Operands: a tensor of integers, weights, a bias, the scales of both, a mask, the zero points of both,
// earlier keys and values.
Terms qattention(const Call& c) {
  c.require_operands(5, 9);
  Call product = c;
  product.in = {c.term(0), c.term(1), c.has(6) ? c.in[6] : Term(), c.has(7) ? c.in[7] : Term()};
  const Datum factor = c.b.mul(c.cast(one_of(c, 3), f32), along(c, c.cast(c[4], f32), 2, 3));
  Datum all = c.b.mul(c.cast(c.datum(matmul_integer(product)[0]), f32), factor);
  if (c.has(2)) all = c.b.add(all, c[2]);
  return packed(c, all, 5, 8, c.in.size());
}

Terms qlinear_add(const Call& c) {
  c.require_operands(7, 8);
  return as_integers(c, c.b.add(real_of(c, 0), real_of(c, 3)), 6);
}
Terms qlinear_mul(const Call& c) {
  c.require_operands(7, 8);
  return as_integers(c, c.b.mul(real_of(c, 0), real_of(c, 3)), 6);
}
Terms qlinear_sigmoid(const Call& c) {
  c.require_operands(4, 5);
  return as_integers(c, core::detail::sigmoid(real_of(c, 0), c.b.loc), 3);
}
Terms qlinear_leaky_relu(const Call& c) {
  c.require_operands(4, 5);
  const Datum x = real_of(c, 0);
  return as_integers(
      c, c.where(c.b.less(x, c.number(0, x)), c.b.mul(x, c.number(c.attribute("alpha", 0.01), x)), x), 3);
}
Terms qlinear_softmax(const Call& c) {
  c.require_operands(4, 5);
  const int axis = c.axis(c.attribute("axis", std::int64_t{-1}), c.rank());
  if (c.attribute("opset", std::int64_t{13}) < 13 && axis != c.rank() - 1)
    c.unsupported("attribute 'opset' below 13 with an axis that is not the last");
  return as_integers(c, core::detail::softmax(real_of(c, 0), axis, false, c.b.loc), 3);
}

namespace {

/// With the dimension of channels moved from the end to the second place, or back.
Datum channels_second(const Call& c, const Datum& x) {
  const int rank = x.type().rank();
  std::vector<int> order = {0, rank - 1};
  for (int d = 1; d < rank - 1; ++d) order.push_back(d);
  return c.permute(x, order);
}
Datum channels_last(const Call& c, const Datum& x) {
  const int rank = x.type().rank();
  std::vector<int> order = {0};
  for (int d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  return c.permute(x, order);
}

bool has_channels_last(const Call& c) { return c.attribute("channels_last", std::int64_t{0}) != 0; }

/// What a rule makes of operand 0 whose channels are last, if they are.
Terms by_channels(const Call& c, const Term& x, Rule rule, bool last) {
  if (!last) {
    Call first = c;
    first.in[0] = x;
    return rule(first);
  }
  if (x.rank() < 3) c.fail("expected a tensor [batch, ..., channels], got " + x.datum.type().str());
  Call first = c;
  first.in[0] = Term::tensor(channels_second(c, c.datum(x)), x.element);
  Terms y = rule(first);
  return {c.result(channels_last(c, c.datum(y[0])), y[0].element)};
}

/// What a rule makes of the numbers of operand 0, less their zero point, times their scale.
Terms pooled(const Call& c, Rule rule) {
  c.require_operands(4, 5);
  Call real = c;
  real.in = {Term::tensor(real_of(c, 0), Element::float32)};
  const Terms y = by_channels(real, real.in[0], rule, has_channels_last(c));
  return as_integers(c, c.datum(y[0]), 3);
}

}  // namespace

Terms qlinear_global_average_pool(const Call& c) { return pooled(c, global_average_pool); }
Terms qlinear_average_pool(const Call& c) { return pooled(c, average_pool); }
Terms nhwc_max_pool(const Call& c) { return by_channels(c, c.term(0), max_pool, true); }
Terms microsoft_qlinear_conv(const Call& c) {
  return by_channels(c, c.term(0), qlinear_conv, has_channels_last(c));
}
// Operands: a condition, two tensors with their scales and zero points, the result's scale and zero point.
Terms qlinear_where(const Call& c) {
  c.require_operands(8, 9);
  return as_integers(c, c.where(c[0], real_of(c, 1), real_of(c, 4)), 7);
}
// Operands: the result's scale and zero point, then three for each part.
Terms qlinear_concat(const Call& c) {
  if (c.in.size() < 5 || (c.in.size() - 2) % 3 != 0)
    c.fail("expected a scale, a zero point, and three operands for each part, got " +
           std::to_string(c.in.size()));
  Datums all;
  for (std::size_t i = 2; i < c.in.size(); i += 3) all.push_back(real_of(c, i));
  const int axis = c.axis(c.attribute("axis"), c.rank(2));
  return as_integers(c, all.size() == 1 ? all[0] : core::detail::concat(all, axis, c.b.loc), 0);
}

// A matrix of numbers, which is quantised first, and one of integers.
Terms dynamic_quantize_matmul(const Call& c) {
  c.require_operands(3, 5);
  Call first = c;
  first.in = {c.term(0)};
  const Terms q = dynamic_quantize_linear(first);
  Call product = c;
  product.in = {q[0], c.term(1), q[2], c.has(3) ? c.in[3] : Term()};
  const Datum sums = c.cast(c.datum(matmul_integer(product)[0]), f32);
  const int rank = sums.type().rank();
  const Datum y = c.b.mul(c.b.mul(sums, c.datum(q[1])), along(c, c[2], rank - 1, rank));
  return {c.result(c.has(4) ? c.b.add(y, c[4]) : y)};
}
// Matrices of integers, their scales, their zero points, a bias.
Terms matmul_integer_to_float(const Call& c) {
  c.require_operands(4, 7);
  Call product = c;
  product.in = {c.term(0), c.term(1), c.has(4) ? c.in[4] : Term(), c.has(5) ? c.in[5] : Term()};
  const Datum sums = c.cast(c.datum(matmul_integer(product)[0]), f32);
  const int rank = sums.type().rank();
  const Datum y =
      c.b.mul(c.b.mul(sums, along(c, c[2], std::max(0, rank - 2), rank)), along(c, c[3], rank - 1, rank));
  return {c.result(c.has(6) ? c.b.add(y, c[6]) : y, c.element(2))};
}

}  // namespace lantern::onnx::rules
