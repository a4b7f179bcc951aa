// Random numbers inside programs: counter-based, so that every element is a function of a key and its place.
//
// The generator is Philox4x32 with ten rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011): no state is kept, so the numbers are the same eagerly and compiled, on each target, in any
// number of threads and lanes, and computed again wherever a derivative needs them. A key is a whole number; who
// needs several independent draws splits it:
//
//   const auto [first, second] = random::split<2>(key);
//   auto noise = random::normal<double>(first, x.dim(0), 10);
//
// What is drawn has no derivative by itself; through the numbers that scale and shift it there is one (the
// reparameterisation of Kingma and Welling, 2014): mean + deviation * normal(...).
#pragma once

#include <array>

#include "lantern/compiler/tensor/shape.hpp"

namespace lantern::core::random {

using Key = Rep<std::int64_t>;  ///< what draws depend on: equal keys give equal numbers

namespace detail {
/// Four words of 32 bits, as i64, of the block with this number. `domain` keeps draws, splits and folds separate.
std::array<Datum, 4> philox(const Datum& key, const Datum& block, std::int64_t domain, const Location& loc);
/// The same from a counter and a key of words, for those who know the generator.
std::array<Datum, 4> philox(std::array<Datum, 4> counter, std::array<Datum, 2> key, const Location& loc);

enum class Law : std::uint8_t { uniform, normal, exponential, gumbel };
/// Element `place` of what is drawn with the key.
Datum draw(Law law, const Datum& key, const Datum& place, ir::Kind element, const Location& loc);
Datum draws(Law law, const Datum& key, const Datums& sizes, ir::Kind element, const Location& loc);
Datum integers(const Datum& key, const Datum& lo, const Datum& hi, const Datums& sizes, const Location& loc);
Datum below(const Datum& key, const Datum& p, const Datums& sizes, const Location& loc);
Datum categorical(const Datum& key, const Datum& logits, const Location& loc);
Datum permutation(const Datum& key, const Datum& n, const Location& loc);
Datum derived(const Datum& key, const Datum& number, std::int64_t domain, const Location& loc);
}  // namespace detail

/// A key for each number, independent of the key's own draws and of each other.
inline Key fold_in(const Key& key, const Subscript& number) {
  return Key(detail::derived(key.datum(), number.datum, 2, number.loc));
}
/// n new keys. (The key that was split should not be drawn from.)
template <std::size_t n = 2>
std::array<Key, n> split(const Key& key, std::source_location l = std::source_location::current()) {
  std::array<Key, n> keys;
  for (std::size_t i = 0; i < n; ++i)
    keys[i] = Key(detail::derived(key.datum(), core::detail::literal(static_cast<std::int64_t>(i)), 1, here(l)));
  return keys;
}

/// Each of these: one number, or a tensor of sizes: uniform<double>(key), uniform<float>(key, 3, n).
#define LANTERN_LAW(name, law)                                                                                   \
  template <FloatElement T>                                                                                      \
  Rep<T> name(const Key& key, std::source_location l = std::source_location::current()) {                        \
    return Rep<T>(detail::draw(detail::Law::law, key.datum(), core::detail::literal(std::int64_t{0}),            \
                               core::detail::TypeOf<T>::get().kind(), here(l)));                                 \
  }                                                                                                              \
  template <FloatElement T, std::convertible_to<Subscript>... Size>                                              \
  Rep<Tensor<T>> name(const Key& key, const Subscript& first, const Size&... more) {                             \
    return Rep<Tensor<T>>(detail::draws(detail::Law::law, key.datum(), {first.datum, Subscript(more).datum...},  \
                                        core::detail::TypeOf<T>::get().kind(), first.loc));                      \
  }
/// From 0 to below 1: a multiple of 2^-53, of float 2^-24.
LANTERN_LAW(uniform, uniform)
/// Of mean 0 and deviation 1 (Box and Muller, 1958).
LANTERN_LAW(normal, normal)
/// Of mean 1.
LANTERN_LAW(exponential, exponential)
/// -log of an exponential: the largest of x + gumbel is at i with the probability softmax(x)[i].
LANTERN_LAW(gumbel, gumbel)
#undef LANTERN_LAW

/// Whole numbers from lo to below hi, each as probable but for one part in 2^63 / (hi - lo). An empty range gives lo, and
/// so does one of 2^63 numbers or more.
template <std::convertible_to<Subscript>... Size>
Rep<Tensor<std::int64_t>> integers(const Key& key, const Subscript& lo, const Subscript& hi, const Subscript& first,
                                   const Size&... more) {
  return Rep<Tensor<std::int64_t>>(
      detail::integers(key.datum(), lo.datum, hi.datum, {first.datum, Subscript(more).datum...}, first.loc));
}
/// True with probability p.
template <std::convertible_to<Subscript>... Size>
Rep<Tensor<bool>> bernoulli(const Key& key, const Rep<double>& p, const Subscript& first, const Size&... more) {
  return Rep<Tensor<bool>>(detail::below(key.datum(), p.datum(), {first.datum, Subscript(more).datum...}, first.loc));
}
/// For each row of the last dimension a number i with probability softmax(logits)[i].
template <core::detail::TensorLike T>
  requires(FloatElement<core::detail::element_t<T>>)
Rep<Tensor<std::int64_t>> categorical(const Key& key, const Rep<T>& logits,
                                      std::source_location l = std::source_location::current()) {
  return Rep<Tensor<std::int64_t>>(detail::categorical(key.datum(), logits.datum(), here(l)));
}
/// 0 to n - 1 in random order.
inline Rep<Tensor<std::int64_t>> permutation(const Key& key, const Subscript& n) {
  return Rep<Tensor<std::int64_t>>(detail::permutation(key.datum(), n.datum, n.loc));
}

}  // namespace lantern::core::random
