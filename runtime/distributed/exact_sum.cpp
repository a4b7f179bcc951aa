// Sums over rows of all ranks that are rounded once, so that their bits depend on the terms alone: not on their order, and
// not on which rank has them.
//
// A sum is kept as a fixed-point number that is wide enough for every double: words of 32 bits, each in an integer of 64
// whose upper half takes the carries. Words are added between ranks as integers, which is exact in any order.
// Source: Kulisch 2008, "Computer Arithmetic and Validity", chapter 8, "Scalar products and complete arithmetic".
#include <algorithm>
#include <bit>
#include <limits>

#include "call.hpp"

namespace lantern::distributed {

namespace {

/// Bit 0 of word 0 is 2^-1074, the smallest double. The last word has room for 2^63 terms of the largest.
constexpr int lowest_exponent = -1074, word_bits = 32,
              word_count = (1024 - lowest_exponent + 63) / word_bits + 1;
/// Terms that a word takes before carries have to be passed on: each adds less than 2^32.
constexpr std::int64_t most_terms = std::int64_t{1} << 30;
/// Results at a time: their words lie in the cache.
constexpr std::int64_t block = 512;

struct Accumulator {
  std::array<std::int64_t, word_count> word{};
  std::int64_t nan = 0, up = 0, down = 0;  ///< how many terms were no number, infinity, its negative

  void add(double x) {
    // By bits: compiled functions run where subnormal numbers count as zeros.
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const bool negative = bits >> 63U != 0;
    constexpr int no_number = 0x7ff;
    const int exponent = static_cast<int>(bits >> 52U & 0x7ffU);
    std::uint64_t m = bits & ((std::uint64_t{1} << 52U) - 1);
    if (exponent == no_number) {
      ++(m != 0 ? nan : negative ? down : up);
      return;
    }
    if (exponent > 0) m |= std::uint64_t{1} << 52U;
    const int at = std::max(exponent, 1) - 1;  // of the last bit of m, from 2^-1074 on
    const unsigned shift = static_cast<unsigned>(at % word_bits);
    const auto first = static_cast<std::size_t>(at / word_bits);
    const std::int64_t sign = negative ? -1 : 1;
    constexpr std::uint64_t low = 0xffffffffU;
    const std::uint64_t tail = (m & low) << shift, head = (m >> 32U << shift) + (tail >> 32U);
    word[first] += sign * static_cast<std::int64_t>(tail & low);
    word[first + 1] += sign * static_cast<std::int64_t>(head & low);
    word[first + 2] += sign * static_cast<std::int64_t>(head >> 32U);
  }

  /// Every word but the last becomes 0 to 2^32 - 1.
  void carry() {
    for (std::size_t i = 0; i + 1 < word.size(); ++i) {
      const std::int64_t over = word[i] >> word_bits;
      word[i] -= over * (std::int64_t{1} << word_bits);
      word[i + 1] += over;
    }
  }

  /// The nearest double, of two the even one.
  double rounded() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (nan > 0 || (up > 0 && down > 0)) return std::numeric_limits<double>::quiet_NaN();
    if (up > 0 || down > 0) return up > 0 ? infinity : -infinity;
    carry();
    const bool negative = word.back() < 0;
    if (negative) {
      for (std::int64_t& w : word) w = -w;
      carry();
    }
    std::size_t top = word.size();
    while (top > 0 && word[top - 1] == 0) --top;
    if (top == 0) return 0;
    // The 64 bits from the first that is set on.
    const auto bits_of = [&](std::size_t i) {
      return i < word_count ? static_cast<std::uint64_t>(word[i]) : 0;
    };
    const std::uint64_t a = bits_of(top - 1), b = bits_of(top - 2), c = bits_of(top - 3);  // below word 0 are zeros
    const int free = std::countl_zero(a) - word_bits;
    std::uint64_t m = (a << 32U | b) << static_cast<unsigned>(free);
    if (free > 0) m |= c >> static_cast<unsigned>(word_bits - free);
    bool rest = free == 0 ? c != 0 : (c & ((std::uint64_t{1} << static_cast<unsigned>(word_bits - free)) - 1)) != 0;
    for (std::size_t i = 0; i + 3 < top; ++i) rest |= word[i] != 0;
    const int exponent = lowest_exponent + word_bits * (static_cast<int>(top) - 2) - free;  // of the last bit of m
    const auto drop = static_cast<unsigned>(std::max(64 - 53, lowest_exponent - exponent));
    std::uint64_t kept = drop < 64 ? m >> drop : 0;
    const std::uint64_t half = std::uint64_t{1} << (drop - 1), dropped = m & (half * 2 - 1);
    if (dropped > half || (dropped == half && (rest || (kept & 1U) != 0))) ++kept;
    // The first bit of a normal number, which is not kept, counts as one in the exponent.
    const auto scale = static_cast<std::uint64_t>(exponent + static_cast<int>(drop) - lowest_exponent);
    const std::uint64_t size = std::min((scale << 52U) + kept, std::bit_cast<std::uint64_t>(infinity));
    return std::bit_cast<double>(size | static_cast<std::uint64_t>(negative) << 63U);
  }
};

/// Memory that stays: a failure jumps over the frames of what waits for other ranks.
std::vector<Accumulator>& sums_of(std::size_t n) {
  static std::vector<Accumulator> sums;
  sums.assign(n, {});
  return sums;
}

/// Adds what all ranks have: the words that any of them uses, of all results of the block in one message.
int add_ranks(const Call& call, std::vector<Accumulator>& sums) {
  if (call.alone()) return 0;
  std::int64_t range[3] = {-word_count, 0,
                           0};  // largest of: minus the first word, the end, whether any is not finite
  for (Accumulator& s : sums) {
    s.carry();
    for (std::int64_t i = 0; i < word_count; ++i)
      if (s.word[static_cast<std::size_t>(i)] != 0)
        range[0] = std::max(range[0], -i), range[1] = std::max(range[1], i + 1);
    if (s.nan + s.up + s.down > 0) range[2] = 1;
  }
  const Mpi& mpi = call.mpi();
  std::int64_t all[3] = {};
  if (const int code = mpi.allreduce(range, all, 3, mpi.i64, mpi.op_max, call.group->comm)) return code;
  const auto from = static_cast<std::size_t>(-all[0]), to = static_cast<std::size_t>(all[1]);
  static std::vector<std::int64_t> own, sum;
  own.clear();
  const auto each = [&](Accumulator& s, const auto& f) {
    for (std::size_t i = from; i < to; ++i) f(s.word[i]);
    if (all[2] != 0) f(s.nan), f(s.up), f(s.down);
  };
  for (Accumulator& s : sums) each(s, [&](std::int64_t w) { own.push_back(w); });
  if (own.empty()) return 0;
  sum.resize(own.size());
  const int count = static_cast<int>(own.size());
  if (const int code = mpi.allreduce(own.data(), sum.data(), count, mpi.i64, mpi.op_sum, call.group->comm)) return code;
  auto next = sum.begin();
  for (Accumulator& s : sums) each(s, [&](std::int64_t& w) { w = *next++; });
  return 0;
}

template <class T>
const char* sum_rows(Kind kind, const char* place, std::int64_t comm, std::int64_t rows, std::int64_t n, const T* x, T* y) {
  const Call call = call_of(place, comm, operation_exact_sum);
  if (call.failure != nullptr) return call.failure;
  Log& log = call.group->log;
  if (!call.alone()) {
    // How many messages there are depends on what the others have: it is the same operation for certain.
    log.add(Entry::of(operation_exact_sum, 0, static_cast<std::int64_t>(kind), -1, n, place));
    if (checks())
      if (const char* const failure = compare(*call.world, *call.group)) return failure;
    call.world->begin({call.op, call.group, ++log.steps});
  }
  for (std::int64_t first = 0; first < n; first += block) {
    std::vector<Accumulator>& sums = sums_of(static_cast<std::size_t>(std::min(block, n - first)));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < sums.size(); ++j) sums[j].add(static_cast<double>(x[i * n + first + static_cast<std::int64_t>(j)]));
      if ((i + 1) % most_terms == 0)
        for (Accumulator& s : sums) s.carry();
    }
    if (const int code = add_ranks(call, sums)) return call.end(code);
    for (std::size_t j = 0; j < sums.size(); ++j) y[first + static_cast<std::int64_t>(j)] = static_cast<T>(sums[j].rounded());
  }
  return call.alone() ? nullptr : call.end(0);
}

}  // namespace

}  // namespace lantern::distributed

using namespace lantern::distributed;

extern "C" {
void distributed_exact_sum_f64(const char* place, int64_t comm, int64_t rows, int64_t n, const double* x, double* y) {
  end_if(sum_rows(Kind::f64, place, comm, rows, n, x, y));
}
void distributed_exact_sum_f32(const char* place, int64_t comm, int64_t rows, int64_t n, const float* x, float* y) {
  end_if(sum_rows(Kind::f32, place, comm, rows, n, x, y));
}
}
