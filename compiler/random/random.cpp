#include "lantern/compiler/random/random.hpp"

#include "lantern/compiler/tensor/build.hpp"
#include "lantern/compiler/tensor/index.hpp"

namespace lantern::core::random::detail {

namespace {

using core::detail::Build;
using core::detail::Indices;

constexpr std::int64_t low_word = 0xffffffff;

struct Words {
  Build b;
  Datum low(const Datum& x) const { return b.binary(Opcode::bit_and_, x, Build::integer(low_word)); }
  Datum high(const Datum& x) const { return low(b.binary(Opcode::shift_right_, x, Build::integer(32))); }
  Datum exclusive_or(const Datum& x, const Datum& y) const { return b.binary(Opcode::bit_xor_, x, y); }
};

Datum constant(double v, ir::Kind kind) { return Datum::number(v, ir::Type(kind)); }

/// From 0 to below 1, of the first two words, in double; of one word in float.
Datum uniform_of(const Build& b, const Datum& first, const Datum& second, ir::Kind element) {
  if (element == ir::Kind::f32) {
    const Datum bits = b.binary(Opcode::shift_right_, first, Build::integer(8));
    return b.mul(b.cast(bits, element), constant(0x1p-24, element));
  }
  const Datum upper = b.binary(Opcode::shift_left_, first, Build::integer(21));
  const Datum bits = b.binary(Opcode::bit_or_, upper, b.binary(Opcode::shift_right_, second, Build::integer(11)));
  return b.mul(b.cast(bits, element), constant(0x1p-53, element));
}

}  // namespace

// One round multiplies two of the words by constants; the upper halves of the products, mixed with the other words
// and the key, and the lower halves are the next four.
std::array<Datum, 4> philox(std::array<Datum, 4> c, std::array<Datum, 2> k, const Location& loc) {
  const Words w{{loc}};
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      k[0] = w.low(w.b.add(k[0], Build::integer(0x9E3779B9)));
      k[1] = w.low(w.b.add(k[1], Build::integer(0xBB67AE85)));
    }
    const Datum first = w.b.mul(c[0], Build::integer(0xD2511F53)), second = w.b.mul(c[2], Build::integer(0xCD9E8D57));
    c = {w.exclusive_or(w.exclusive_or(w.high(second), c[1]), k[0]), w.low(second),
         w.exclusive_or(w.exclusive_or(w.high(first), c[3]), k[1]), w.low(first)};
  }
  return c;
}

std::array<Datum, 4> philox(const Datum& key, const Datum& block, std::int64_t domain, const Location& loc) {
  const Words w{{loc}};
  return philox({w.low(block), w.high(block), Build::integer(domain), Build::integer(0)}, {w.low(key), w.high(key)}, loc);
}

Datum draw(Law law, const Datum& key, const Datum& place, ir::Kind element, const Location& loc) {
  const Build b{loc};
  const auto w = philox(key, place, 0, loc);
  const Datum u = uniform_of(b, w[0], w[1], element);
  if (law == Law::uniform) return u;
  // Of 1 - u, from above 0 to 1, there is a logarithm.
  const Datum exponential = b.unary(Opcode::neg_, b.unary(Opcode::log1p_, b.unary(Opcode::neg_, u)));
  if (law == Law::exponential) return exponential;
  if (law == Law::gumbel) {
    // Never of 0, whose logarithm is infinite: the smallest there is represents it.
    const Datum least = constant(element == ir::Kind::f32 ? 0x1p-25 : 0x1p-54, element);
    return b.unary(Opcode::neg_, b.unary(Opcode::log_, b.binary(Opcode::max_, exponential, least)));
  }
  const Datum radius = b.unary(Opcode::sqrt_, b.mul(constant(2, element), exponential));
  const Datum angle = b.mul(constant(6.283185307179586, element), uniform_of(b, w[2], w[3], element));
  return b.mul(radius, b.unary(Opcode::cos_, angle));
}

namespace {

/// The number of an element in row-major order.
Datum flat(const Build& b, const Indices& at, const Indices& sizes) {
  Datum n = Build::integer(0);
  for (std::size_t d = 0; d < at.size(); ++d) n = d == 0 ? at[0] : b.add(b.mul(n, sizes[d]), at[d]);
  return n;
}

}  // namespace

Datum draws(Law law, const Datum& key, const Datums& sizes, ir::Kind element, const Location& loc) {
  const Build b{loc};
  return b.tabulate(element, sizes,
                    [&](const Indices& at) { return draw(law, key, flat(b, at, sizes), element, loc); });
}

Datum integers(const Datum& key, const Datum& lo, const Datum& hi, const Datums& sizes, const Location& loc) {
  const Build b{loc};
  const Datum range = b.binary(Opcode::imax_, b.sub(hi, lo), Build::integer(1));
  return b.tabulate(ir::Kind::i64, sizes, [&](const Indices& at) {
    const auto w = philox(key, flat(b, at, sizes), 0, loc);
    const Datum upper = b.binary(Opcode::shift_left_, b.binary(Opcode::shift_right_, w[0], Build::integer(1)), Build::integer(32));
    return b.add(lo, b.rem(b.binary(Opcode::bit_or_, upper, w[1]), range));
  });
}

Datum below(const Datum& key, const Datum& p, const Datums& sizes, const Location& loc) {
  const Build b{loc};
  const Datum limit = b.primal(p);
  return b.tabulate(ir::Kind::boolean, sizes, [&](const Indices& at) {
    return b.less(draw(Law::uniform, key, flat(b, at, sizes), ir::Kind::f64, loc), limit);
  });
}

Datum categorical(const Datum& key, const Datum& logits, const Location& loc) {
  const Build b{loc};
  if (!logits.type().is_tensor() || logits.type().rank() < 2)
    raise_at(loc, "categorical: expected logits of at least two dimensions, [..., classes], got " +
                      logits.type().str() + "; unsqueeze<0>(logits) is one row");
  const Datum primal = b.primal(logits);
  const Indices sizes = b.sizes(primal);
  const Indices rows(sizes.begin(), sizes.end() - 1);
  const ir::Kind element = primal.type().element();
  // The largest of logits + gumbel, without a tensor of those.
  return b.tabulate(ir::Kind::i64, rows, [&](const Indices& row) {
    const auto score = [&](const Datum& i) {
      Indices at = row;
      at.push_back(i);
      return b.add(b.get(primal, at), draw(Law::gumbel, key, flat(b, at, sizes), element, loc));
    };
    const Datum zero = Build::integer(0);
    return b.loop(zero, sizes.back(), {zero, score(zero)}, [&](const Datum& i, const Datums& s) {
      const Datum v = score(i), better = b.less(s[1], v);
      return Datums{b.select(better, i, s[0]), b.select(better, v, s[1])};
    })[0];
  });
}

Datum permutation(const Datum& key, const Datum& n, const Location& loc) {
  const Datum bits = integers(key, Build::integer(0), Build::integer(std::int64_t{1} << 62), {n}, loc);
  return core::detail::argsort(bits, 0, false, loc);
}

Datum derived(const Datum& key, const Datum& number, std::int64_t domain, const Location& loc) {
  const Build b{loc};
  const auto w = philox(key, number, domain, loc);
  return b.binary(Opcode::bit_or_, b.binary(Opcode::shift_left_, w[0], Build::integer(32)), w[1]);
}

}  // namespace lantern::core::random::detail
