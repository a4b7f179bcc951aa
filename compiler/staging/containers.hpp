// Rep of arrays, tensors and trees. Included by rep.hpp.
#pragma once

#include <array>
#include <limits>

#include "lantern/compiler/staging/rep.hpp"

namespace lantern::core {

namespace detail {
inline Rep<std::int64_t> dimension(const Datum& t, std::int64_t k, const Location& loc) {
  const ir::Type& type = t.type();
  if (k >= 0 && k < type.rank() && type.dims()[static_cast<std::size_t>(k)] != ir::dynamic)
    return Rep<std::int64_t>(type.dims()[static_cast<std::size_t>(k)]);
  return Rep<std::int64_t>(perform({Opcode::dim_, k, loc}, {strip(t)}));
}
}  // namespace detail

/// What is called on a value and gives a changed one.
#define LANTERN_NEW_VALUE [[nodiscard("the value itself stays as it was: write a = a.set(...)")]]

/// A one-dimensional array. It is a value: `set` gives a new array and leaves the old one as it was (where
/// nothing can see the old one, memory is reused). An index outside 0 .. size-1 raises.
template <class T>
class Rep<Array<T>> {
  static_assert(ScalarElement<T>, "Array<T> takes bool, int32_t, int64_t, float or double");

 public:
  using value_type = Array<T>;
  using Loc = std::source_location;

  Rep() = default;
  explicit Rep(Datum d) : storage_(std::move(d)) {}
  /// A tensor of one dimension; Error: one of undeclared rank that has others.
  template <std::int64_t... D>
    requires(sizeof...(D) <= 1)
  Rep(const Rep<Tensor<T, D...>>& vector, Loc l = Loc::current())
      : storage_(detail::shaped(vector.datum(), detail::TypeOf<value_type>::get(), false, here(l))) {}
  LANTERN_ASSIGNMENT(LANTERN_SET_ROWS)
  LANTERN_NO_COMPOUND_ASSIGNMENT(LANTERN_SET_ROWS)
  const Datum& datum() const { return storage_.get(); }
  StorageBase& storage() { return storage_; }

  /// Number of elements.
  Rep<std::int64_t> size(Loc l = Loc::current()) const { return detail::dimension(datum(), 0, here(l)); }
  Rep<T> operator[](const At<std::int64_t>& i) const {
    return Rep<T>(perform({Opcode::get_, 0, i.loc}, {datum(), i.datum}));
  }
  /// The array with element `i` replaced by `v`.
  LANTERN_NEW_VALUE Rep set(const At<std::int64_t>& i, const At<T>& v) const {
    return Rep(perform({Opcode::set_, 0, i.loc}, {datum(), i.datum, v.datum}));
  }
  /// Elements lo .. hi-1.
  [[nodiscard]] Rep slice(const At<std::int64_t>& lo, const At<std::int64_t>& hi) const {
    return Rep(perform({Opcode::slice_, 0, lo.loc}, {datum(), lo.datum, hi.datum}));
  }

  LANTERN_ARITHMETIC(Array<T>)
#define MATH_2(name, ...) LANTERN_OF_TWO(name, Array<T>)
#include "lantern/ir/ops.inc"
  LANTERN_TENSOR_FUNCTIONS(Array<T>)
  LANTERN_BITS(Array<T>)
  LANTERN_BROADCASTING(operator+, add)
  LANTERN_BROADCASTING(operator-, sub)
  LANTERN_BROADCASTING(operator*, mul)
  LANTERN_BROADCASTING(operator/, div)

 private:
  Storage<ir::Kind::tensor> storage_;
};

/// An index, a bound or a size: a whole number, with the place where it was written. Eagerly a Rep is a number as
/// well, but only one that C++ has, such as -1, is known to mean something else below 0 when the program is written.
struct Subscript {
  template <std::integral U>
  Subscript(U v, std::source_location l = std::source_location::current())
      : datum(detail::literal(static_cast<std::int64_t>(v))), loc(here(l)), plain(true) {}
  Subscript(const Rep<std::int64_t>& r, std::source_location l = std::source_location::current())
      : datum(r.datum()), loc(here(l)) {}
  Datum datum;
  Location loc;
  bool plain = false;  ///< a number of C++, no Rep
};

/// All of a dimension, where a part of a tensor is named.
struct All {};
/// Values whose names a program's own variables may have as well.
namespace named {
inline constexpr All all;
}
/// The end of a dimension, as the second bound of a range.
inline constexpr std::int64_t to_end = std::numeric_limits<std::int64_t>::max();
/// Indices lo, lo + step, ... below hi. A number of C++ below 0 counts from the end, as in NumPy; a Rep does not.
/// Bounds outside the dimension, and steps below 1, are Errors.
struct Range {
  Subscript lo, hi;
  std::int64_t step;
};
inline Range range(const Subscript& lo, const Subscript& hi, std::int64_t step = 1) { return {lo, hi, step}; }

/// What one dimension of a part is: all of it, a range, or an index, which leaves the dimension out and counts from
/// the end as a range's bounds do.
struct Part {
  Part(All, const Location& l = {}) : loc(l) {}
  Part(const Range& r, const Location& l = {})
      : loc(l), lo(r.lo.datum), hi(r.hi.datum), plain_lo(r.lo.plain), plain_hi(r.hi.plain), step(r.step) {}
  template <class I>
    requires(std::convertible_to<I, Subscript>)
  Part(const I& i, const Location& l = {}) : Part(Subscript(i), l) {}
  Part(const Subscript& i, const Location& l = {}) : loc(l), lo(i.datum), plain_lo(i.plain), step(0) {}
  Location loc;
  Datum lo, hi;                             ///< empty: from the start, to the end
  bool plain_lo = false, plain_hi = false;  ///< below 0 they count from the end
  std::int64_t step = 1;                    ///< 0: one index, `lo`
};

namespace detail {
template <class P>
inline constexpr bool is_part = std::same_as<P, All> || std::same_as<P, Range>;
Datum part(const Datum& t, std::span<const Part> parts, const Location& loc);
Datum with_part(const Datum& t, std::span<const Part> parts, const Datum& v, const Location& loc);

/// What is an element's value and no index, as a Rep<int64_t> may be.
template <class V, class T>
concept NumberOf = std::floating_point<V> || (std::same_as<V, Rep<T>> && !std::same_as<T, std::int64_t>);
template <class... V>
inline constexpr bool ends_with_integer = false;
template <class First, class... V>
inline constexpr bool ends_with_integer<First, V...> = sizeof...(V) == 0 ? std::integral<First>
                                                                         : ends_with_integer<V...>;
}  // namespace detail

/// A tensor, row-major. A value like Array. Element-wise operators broadcast as NumPy does: a scalar, a tensor of
/// lower rank along the leading dimensions, and dimensions that are 1 where the program is staged (a size that
/// is known only at run time is none of those: see expand). Shapes that do not fit raise, naming both.
template <class T, std::int64_t... Dims>
class Rep<Tensor<T, Dims...>> {
  static_assert(ScalarElement<T>, "Tensor<T> takes bool, int32_t, int64_t, float or double");

 public:
  using value_type = Tensor<T, Dims...>;
  using Loc = std::source_location;

  Rep() = default;
  explicit Rep(Datum d, Loc l = Loc::current())
      : storage_(detail::shaped(std::move(d), detail::TypeOf<value_type>::get(), sizeof...(Dims) == 0, here(l))) {}
  /// Between tensors of fitting dimensions.
  template <std::int64_t... Other>
    requires(!std::same_as<Tensor<T, Other...>, value_type> &&
             (sizeof...(Other) == sizeof...(Dims) || sizeof...(Other) == 0 || sizeof...(Dims) == 0))
  Rep(const Rep<Tensor<T, Other...>>& other, Loc l = Loc::current()) : Rep(other.datum(), l) {}
  /// An array, where this is a tensor of one dimension.
  Rep(const Rep<Array<T>>& array, Loc l = Loc::current())
    requires(sizeof...(Dims) <= 1)
      : Rep(array.datum(), l) {}
  LANTERN_ASSIGNMENT(LANTERN_SET_ROWS)
  LANTERN_NO_COMPOUND_ASSIGNMENT(LANTERN_SET_ROWS)

  const Datum& datum() const { return storage_.get(); }
  StorageBase& storage() { return storage_; }
  int rank() const { return datum().type().rank(); }
  /// Number of elements.
  [[nodiscard]] Rep<std::int64_t> size(Loc l = Loc::current()) const {
    Rep<std::int64_t> n = 1;
    for (std::int64_t k = 0; k < rank(); ++k)
      n = k == 0 ? dim(k, l) : detail::binary<Rep<std::int64_t>>(Opcode::mul_, Index(n, l), Index(dim(k, l), l));
    return n;
  }
  /// The sizes of all dimensions: zeros<double>(t.shape()).
  [[nodiscard]] std::vector<Rep<std::int64_t>> shape(Loc l = Loc::current()) const {
    std::vector<Rep<std::int64_t>> sizes;
    for (std::int64_t k = 0; k < rank(); ++k) sizes.push_back(dim(k, l));
    return sizes;
  }
  /// Size of dimension `k`.
  [[nodiscard]] Rep<std::int64_t> dim(std::int64_t k, Loc l = Loc::current()) const { return detail::dimension(datum(), k, here(l)); }

  /// The element at one index per dimension. Not variadic: an operand notes the place where it is converted.
  using Index = At<std::int64_t>;
  Rep<T> operator()(const Index& i) const { return element({i}); }
  Rep<T> operator[](const Index& i) const
    requires(sizeof...(Dims) == 1)
  {
    return element({i});
  }
  Rep<T> operator()(const Index& i, const Index& j) const { return element({i, j}); }
  Rep<T> operator()(const Index& i, const Index& j, const Index& k) const { return element({i, j, k}); }
  Rep<T> operator()(const Index& i, const Index& j, const Index& k, const Index& l) const {
    return element({i, j, k, l});
  }
  Rep<T> operator()(const Index& i, const Index& j, const Index& k, const Index& l, const Index& m) const {
    return element({i, j, k, l, m});
  }
  Rep<T> operator()(const Index& i, const Index& j, const Index& k, const Index& l, const Index& m,
                    const Index& n) const {
    return element({i, j, k, l, m, n});
  }
  /// The same for a tensor of more dimensions: t.at({i, j, k, l, m, n, o}).
  Rep<T> at(std::initializer_list<Index> indices) const { return element(indices); }
  /// Part of the tensor: for each dimension `all`, a range(lo, hi, step) or an index, which leaves the dimension
  /// out; dimensions at the end may be left unsaid. t(all, range(1, -1), i).
  template <class A>
    requires(detail::is_part<A>)
  Rep<Tensor<T>> operator()(const A& a, Loc l = Loc::current()) const {
    return part({Part(a, here(l))}, l);
  }
  template <class A, class B>
    requires(detail::is_part<A> || detail::is_part<B>)
  Rep<Tensor<T>> operator()(const A& a, const B& b, Loc l = Loc::current()) const {
    return part({Part(a, here(l)), Part(b, here(l))}, l);
  }
  template <class A, class B, class C>
    requires(detail::is_part<A> || detail::is_part<B> || detail::is_part<C>)
  Rep<Tensor<T>> operator()(const A& a, const B& b, const C& c, Loc l = Loc::current()) const {
    return part({Part(a, here(l)), Part(b, here(l)), Part(c, here(l))}, l);
  }
  template <class A, class B, class C, class D>
    requires(detail::is_part<A> || detail::is_part<B> || detail::is_part<C> || detail::is_part<D>)
  Rep<Tensor<T>> operator()(const A& a, const B& b, const C& c, const D& d, Loc l = Loc::current()) const {
    return part({Part(a, here(l)), Part(b, here(l)), Part(c, here(l)), Part(d, here(l))}, l);
  }
  template <class A, class B, class C, class D, class E>
    requires(detail::is_part<A> || detail::is_part<B> || detail::is_part<C> || detail::is_part<D> ||
             detail::is_part<E>)
  Rep<Tensor<T>> operator()(const A& a, const B& b, const C& c, const D& d, const E& e,
                            Loc l = Loc::current()) const {
    return part({Part(a, here(l)), Part(b, here(l)), Part(c, here(l)), Part(d, here(l)), Part(e, here(l))}, l);
  }
  template <class A, class B, class C, class D, class E, class F>
    requires(detail::is_part<A> || detail::is_part<B> || detail::is_part<C> || detail::is_part<D> ||
             detail::is_part<E> || detail::is_part<F>)
  Rep<Tensor<T>> operator()(const A& a, const B& b, const C& c, const D& d, const E& e, const F& f,
                            Loc l = Loc::current()) const {
    return part({Part(a, here(l)), Part(b, here(l)), Part(c, here(l)), Part(d, here(l)), Part(e, here(l)),
                 Part(f, here(l))},
                l);
  }
  /// The tensor with a part replaced: t.set_part({all, range(1, -1), i}, v), v of the part's shape or of one that
  /// broadcasts to it.
  LANTERN_NEW_VALUE Rep set_part(std::initializer_list<Part> parts, const Rep<Tensor<T>>& v, Loc l = Loc::current()) const {
    return Rep(detail::with_part(datum(), std::span(parts.begin(), parts.size()), v.datum(), here(l)), l);
  }
  LANTERN_NEW_VALUE Rep set_part(std::initializer_list<Part> parts, const Rep<T>& v, Loc l = Loc::current()) const {
    return Rep(detail::with_part(datum(), std::span(parts.begin(), parts.size()), v.datum(), here(l)), l);
  }
  LANTERN_NEW_VALUE Rep set_part(std::initializer_list<Part> parts, T v, Loc l = Loc::current()) const {
    return Rep(detail::with_part(datum(), std::span(parts.begin(), parts.size()), detail::literal(v), here(l)), l);
  }
  /// Row `i` of the first dimension (rank 2 or more).
  [[nodiscard]] Rep<Tensor<T>> row(const At<std::int64_t>& i) const {
    return Rep<Tensor<T>>(perform({Opcode::take_, 0, i.loc}, {datum(), i.datum}));
  }
  /// The tensor with one element replaced by `v`: set(i, v), set(i, j, v), one index per dimension. Whole
  /// numbers are indices, so beside a first index that is one the value is written with a decimal point:
  /// set(0, 1, 2.0).
  LANTERN_NEW_VALUE Rep set(const Subscript& i, const At<T>& v) const { return replaced({i}, v); }
  LANTERN_NEW_VALUE Rep set(const Subscript& i, const Subscript& j, const At<T>& v) const { return replaced({i, j}, v); }
  LANTERN_NEW_VALUE Rep set(const Subscript& i, const Subscript& j, const Subscript& k, const At<T>& v) const {
    return replaced({i, j, k}, v);
  }
  LANTERN_NEW_VALUE Rep set(const Subscript& i, const Subscript& j, const Subscript& k, const Subscript& l,
          const At<T>& v) const {
    return replaced({i, j, k, l}, v);
  }
  LANTERN_NEW_VALUE Rep set(const Subscript& i, const Subscript& j, const Subscript& k, const Subscript& l, const Subscript& m,
          const At<T>& v) const {
    return replaced({i, j, k, l, m}, v);
  }
  LANTERN_NEW_VALUE Rep set(const Subscript& i, const Subscript& j, const Subscript& k, const Subscript& l, const Subscript& m,
          const Subscript& n, const At<T>& v) const {
    return replaced({i, j, k, l, m, n}, v);
  }
  /// The same for a tensor of more dimensions: t.set_at({i, j, k, l, m, n, o}, v).
  LANTERN_NEW_VALUE Rep set_at(std::initializer_list<Subscript> indices, const At<T>& v) const { return replaced(indices, v); }
  /// The order of arguments before.
  template <detail::NumberOf<T> V, std::convertible_to<Subscript>... I>
  requires(sizeof...(I) >= 1) [[deprecated("set(i, j, value) takes the value last")]] Rep
      set(const V& v, const I&... indices) const {
    return replaced({Subscript(indices)...}, At<T>(v));
  }
  /// Which of the two it would be is not seen.
  template <std::integral I, class... Others>
  requires(detail::ends_with_integer<Others...>) Rep set(I, const Others&...)
  const {
    static_assert(
        detail::dependent_false<I>,
        "set(i, j, value): write the value with a decimal point; set(0, 1, 2) could be meant as the former "
        "set(value, i, j) as well");
    return *this;
  }
  /// Rows lo .. hi-1 of the first dimension.
  [[nodiscard]] Rep<Tensor<T>> slice(const At<std::int64_t>& lo, const At<std::int64_t>& hi) const {
    return Rep<Tensor<T>>(perform({Opcode::slice_, 0, lo.loc}, {datum(), lo.datum, hi.datum}));
  }

  LANTERN_ARITHMETIC(value_type)
#define MATH_2(name, ...) LANTERN_OF_TWO(name, value_type) LANTERN_BROADCASTING(name, name)
#include "lantern/ir/ops.inc"
  LANTERN_TENSOR_FUNCTIONS(value_type)
  LANTERN_BITS(value_type)
  friend Rep operator%(const At<value_type>& a, const At<value_type>& b)
    requires(detail::IntegerElement<T>)
  {
    return detail::binary<Rep>(Opcode::rem_, a, b);
  }
  using Truths = Tensor<bool, Dims...>;
  LANTERN_TENSOR_COMPARISONS(value_type, Truths)
  LANTERN_BROADCASTING(operator+, add)
  LANTERN_BROADCASTING(operator-, sub)
  LANTERN_BROADCASTING(operator*, mul)
  LANTERN_BROADCASTING(operator/, div)
  LANTERN_BROADCASTING_TO(min, detail::min_of<value_type>, detail::broadcast_t<value_type, U>)
  LANTERN_BROADCASTING_TO(max, detail::max_of<value_type>, detail::broadcast_t<value_type, U>)
  LANTERN_BROADCASTING_TO(operator&, detail::bit_and_of<value_type>, detail::broadcast_t<value_type, U>)
  LANTERN_BROADCASTING_TO(operator|, detail::bit_or_of<value_type>, detail::broadcast_t<value_type, U>)
  LANTERN_BROADCASTING_TO(operator^, detail::bit_xor_of<value_type>, detail::broadcast_t<value_type, U>)
  LANTERN_BROADCASTING_TO(operator<, Opcode::lt_, detail::truths_t<value_type, U>)
  LANTERN_BROADCASTING_TO(operator<=, Opcode::le_, detail::truths_t<value_type, U>)
  template <class U>
  requires(detail::Broadcasting<value_type, U>) friend Rep<detail::truths_t<value_type, U>> operator>(
      const At<value_type>& a, const Rep<U>& b) {
    return detail::binary<Rep<detail::truths_t<value_type, U>>>(Opcode::lt_, At<U>(b), a);
  }
  template <class U>
  requires(detail::Broadcasting<value_type, U>) friend Rep<detail::truths_t<value_type, U>> operator>=(
      const At<value_type>& a, const Rep<U>& b) {
    return detail::binary<Rep<detail::truths_t<value_type, U>>>(Opcode::le_, At<U>(b), a);
  }
  // Of operands as they are: C++ tries == with its operands exchanged, too, and a conversion of one of them would make
  // both orders equally good.
  template <class U>
  requires(detail::Broadcasting<value_type, U>) [[nodiscard]] friend Rep<detail::truths_t<value_type, U>> operator==(
      const Rep& a, const Rep<U>& b) {
    return Rep<detail::truths_t<value_type, U>>(compare_broadcast(Opcode::eq_, a.datum(), b.datum()));
  }
  template <class U>
  requires(detail::Broadcasting<value_type, U>) [[nodiscard]] friend Rep<detail::truths_t<value_type, U>> operator!=(
      const Rep& a, const Rep<U>& b) {
    return Rep<detail::truths_t<value_type, U>>(compare_broadcast(Opcode::ne_, a.datum(), b.datum()));
  }

 private:
  Rep<Tensor<T>> part(std::initializer_list<Part> parts, Loc l) const {
    return Rep<Tensor<T>>(detail::part(datum(), std::span(parts.begin(), parts.size()), here(l)), l);
  }
  Rep<T> element(std::initializer_list<Index> indices) const {
    Datums operands;
    operands.reserve(1 + indices.size());
    operands.push_back(datum());
    for (const Index& i : indices) operands.push_back(i.datum);
    return Rep<T>(perform({Opcode::get_, 0, indices.size() == 0 ? Location{} : indices.begin()->loc}, operands));
  }
  Rep replaced(std::initializer_list<Subscript> indices, const At<T>& v) const {
    Datums operands;
    operands.reserve(2 + indices.size());
    operands.push_back(datum());
    for (const Subscript& i : indices) operands.push_back(i.datum);
    operands.push_back(v.datum);
    return Rep(perform({Opcode::set_, 0, indices.size() == 0 ? v.loc : indices.begin()->loc}, operands));
  }
  Storage<ir::Kind::tensor> storage_;
};

#undef LANTERN_NEW_VALUE
#undef LANTERN_ASSIGNMENT
#undef LANTERN_NO_CONST_ASSIGNMENT
#undef LANTERN_UPDATE
#undef LANTERN_NO_ASSIGNMENT
#undef LANTERN_NO_COMPOUND_ASSIGNMENT
#undef LANTERN_NO_BRANCH
#undef LANTERN_SET_ELEMENT
#undef LANTERN_SET_ROWS
#undef LANTERN_LVALUE
#undef LANTERN_ARITHMETIC
#undef LANTERN_OF_TWO
#undef LANTERN_TENSOR_FUNCTIONS
#undef LANTERN_BROADCASTING
#undef LANTERN_BROADCASTING_TO
#undef LANTERN_BITS
#undef LANTERN_TENSOR_COMPARISONS

namespace detail {
template <class T>
using element_t = typename Traits<T>::element;
template <class T>
concept TensorLike = Traits<T>::tensor;
/// Of a tensor of floating numbers.
Datum logsumexp(const Datum& t, const Location& loc);
Datum extremum(const Datum& t, bool largest, const Location& loc);
Datum matmul(const Datum& a, const Datum& b, const Location& loc);

template <class T>
using vector_result = std::conditional_t<std::same_as<T, Array<element_t<T>>>, T, Tensor<element_t<T>>>;
}  // namespace detail

/// Sum of all elements.
template <detail::TensorLike T>
[[nodiscard]] Rep<detail::element_t<T>> sum(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return Rep<detail::element_t<T>>(perform({Opcode::sum_, 0, here(l)}, {t.datum()}));
}
/// Row-major position of the first largest element, an Error where there is none; it carries no derivative.
template <detail::TensorLike T>
[[nodiscard]] Rep<std::int64_t> argmax(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return Rep<std::int64_t>(perform({Opcode::argmax_, 0, here(l)}, {strip(t.datum())}));
}
/// Largest and smallest element, an Error where there is none; elements that are equal share the derivative.
template <detail::TensorLike T>
[[nodiscard]] Rep<detail::element_t<T>> max(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return Rep<detail::element_t<T>>(detail::extremum(t.datum(), true, here(l)));
}
template <detail::TensorLike T>
[[nodiscard]] Rep<detail::element_t<T>> min(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return Rep<detail::element_t<T>>(detail::extremum(t.datum(), false, here(l)));
}
/// log(sum(exp(t))) over all elements, without overflow: -inf, with derivative 0, where all are -inf. With +inf among
/// them it is +inf, and the derivative NaN. Of no elements it is an Error.
template <detail::TensorLike T>
[[nodiscard]] Rep<detail::element_t<T>> logsumexp(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return Rep<detail::element_t<T>>(detail::logsumexp(t.datum(), here(l)));
}
/// Inner product of two vectors.
template <detail::TensorLike T, detail::TensorLike U>
[[nodiscard]] Rep<detail::element_t<T>> dot(const Rep<T>& a, const Rep<U>& b, std::source_location l = std::source_location::current()) {
  return Rep<detail::element_t<T>>(perform({Opcode::dot_, 0, here(l)}, {a.datum(), b.datum()}));
}
/// Matrix times vector, vector times matrix, or matrix times matrix, by rank. With more dimensions the last two are
/// those of matrices, and the ones before them count the matrices: both operands have the same, or one of them has
/// none. Two vectors have a dot.
template <detail::TensorLike T, detail::TensorLike U>
[[nodiscard]] Rep<Tensor<detail::element_t<T>>> matmul(const Rep<T>& a, const Rep<U>& b,
                                         std::source_location l = std::source_location::current()) {
  return Rep<Tensor<detail::element_t<T>>>(detail::matmul(a.datum(), b.datum(), here(l)));
}
/// Outer product of two vectors.
template <detail::TensorLike T, detail::TensorLike U>
[[nodiscard]] Rep<Tensor<detail::element_t<T>>> outer(const Rep<T>& a, const Rep<U>& b,
                                        std::source_location l = std::source_location::current()) {
  return Rep<Tensor<detail::element_t<T>>>(perform({Opcode::outer_, 0, here(l)}, {a.datum(), b.datum()}));
}
template <class T, std::int64_t... D>
[[nodiscard]] Rep<Tensor<T>> transpose(const Rep<Tensor<T, D...>>& a, std::source_location l = std::source_location::current()) {
  return Rep<Tensor<T>>(perform({Opcode::transpose_, 0, here(l)}, {a.datum()}));
}
/// Two tensors one after the other along the first dimension.
template <detail::TensorLike T>
[[nodiscard]] Rep<detail::vector_result<T>> concat(const Rep<T>& a, const Rep<T>& b,
                                     std::source_location l = std::source_location::current()) {
  return Rep<detail::vector_result<T>>(perform({Opcode::concat_, 0, here(l)}, {a.datum(), b.datum()}));
}
/// An array of `n` elements, all `v`.
template <ScalarElement T>
Rep<Array<T>> fill(const Rep<T>& v, const At<std::int64_t>& n) {
  return Rep<Array<T>>(perform({Opcode::fill_, 0, n.loc}, {v.datum(), n.datum}));
}
/// A tensor with so many elements in each dimension, all `v`: `fill(v, m, n)` is a matrix of m rows.
template <ScalarElement T, std::convertible_to<At<std::int64_t>>... Size>
  requires(sizeof...(Size) >= 1)
auto fill(const Rep<T>& v, const At<std::int64_t>& m, const Size&... more) {
  return Rep<Tensor<T, dyn, (static_cast<void>(sizeof(Size)), dyn)...>>(
      perform({Opcode::fill_, 0, m.loc}, {v.datum(), m.datum, At<std::int64_t>(more).datum...}));
}
namespace detail {
/// A tensor of one value; sizes that are numbers of C++ are part of its type.
inline Datum filled(const Datum& v, std::span<const Subscript> sizes, const Location& loc) {
  Datums operands{v};
  std::vector<std::int64_t> shape;
  for (const Subscript& n : sizes) {
    operands.push_back(n.datum);
    shape.push_back(n.plain ? n.datum.i() : dyn);
  }
  return perform({Opcode::fill_, 0, loc, shape}, operands);
}
/// The element type of a number of C++.
template <class V>
using element_for = std::conditional_t<!std::integral<V> || std::same_as<V, bool>, V,
                                       std::conditional_t<sizeof(V) == 8, std::int64_t, std::int32_t>>;
template <class V>
concept ElementNumber = std::is_arithmetic_v<V> && ScalarElement<element_for<V>>;
}  // namespace detail

/// With a number of C++: fill(0.0, n), fill(0.0, m, n).
template <detail::ElementNumber V, std::convertible_to<At<std::int64_t>>... Size>
[[nodiscard]] auto fill(V v, const At<std::int64_t>& n, const Size&... more) {
  return fill(Rep<detail::element_for<V>>(v), n, more...);
}
/// A tensor with all elements `v`, of sizes that are numbers or Reps: full(v, {2, 3}), full(v, {n, 3}),
/// full(v, t.shape()).
template <ScalarElement T>
[[nodiscard]] Rep<Tensor<T>> full(const Rep<T>& v, std::initializer_list<Subscript> shape,
                                  std::source_location l = std::source_location::current()) {
  return Rep<Tensor<T>>(detail::filled(v.datum(), std::span(shape.begin(), shape.size()), here(l)), l);
}
template <ScalarElement T, class Size>
  requires(std::convertible_to<Size, Subscript>)
[[nodiscard]] Rep<Tensor<T>> full(const Rep<T>& v, const std::vector<Size>& shape,
                                  std::source_location l = std::source_location::current()) {
  const std::vector<Subscript> sizes(shape.begin(), shape.end());
  return Rep<Tensor<T>>(detail::filled(v.datum(), sizes, here(l)), l);
}
template <detail::ElementNumber V>
[[nodiscard]] auto full(V v, std::initializer_list<Subscript> shape,
                        std::source_location l = std::source_location::current()) {
  return full(Rep<detail::element_for<V>>(v), shape, l);
}
template <detail::ElementNumber V, class Size>
[[nodiscard]] auto full(V v, const std::vector<Size>& shape,
                        std::source_location l = std::source_location::current()) {
  return full(Rep<detail::element_for<V>>(v), shape, l);
}
/// The same with all elements 0.
template <ScalarElement T>
[[nodiscard]] Rep<Tensor<T>> zeros(std::initializer_list<Subscript> shape,
                                   std::source_location l = std::source_location::current()) {
  return full(Rep<T>(T(0)), shape, l);
}
template <ScalarElement T, class Size>
[[nodiscard]] Rep<Tensor<T>> zeros(const std::vector<Size>& shape,
                                   std::source_location l = std::source_location::current()) {
  return full(Rep<T>(T(0)), shape, l);
}
/// The elements of a container of C++, or a C array, as an array of the program: constant_table(table)[i] for a Rep i.
/// They are what they are when the program is staged. Each call of the program makes the array anew: a table of
/// thousands of elements is better an argument.
template <class Table>
  requires(ScalarElement<std::remove_cvref_t<decltype(*std::begin(std::declval<const Table&>()))>>)
[[nodiscard]] auto constant_table(const Table& table, std::source_location l = std::source_location::current()) {
  using T = std::remove_cvref_t<decltype(*std::begin(table))>;
  const auto size = static_cast<std::int64_t>(std::size(table));
  Datum made = detail::filled(detail::literal(T(0)), std::vector<Subscript>{Subscript(size, l)}, here(l));
  std::int64_t i = 0;
  for (const T& element : table)
    made = perform({Opcode::set_, 0, here(l)}, {made, detail::literal(i++), detail::literal(element)});
  return Rep<Array<T>>(made);
}
/// A zero tensor of the shape of another.
template <detail::TensorLike T>
Rep<T> zeros_like(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return Rep<T>(perform({Opcode::zeros_like_, 0, here(l)}, {strip(t.datum())}));
}
/// Between an array and a vector of the same elements, which convert to each other without being told, too.
template <ScalarElement T>
[[nodiscard]] Rep<Tensor<T>> as_tensor(const Rep<Array<T>>& a) { return Rep<Tensor<T>>(a.datum()); }
template <ScalarElement T, std::int64_t... D>
[[nodiscard]] Rep<Array<T>> as_array(const Rep<Tensor<T, D...>>& a, std::source_location l = std::source_location::current()) {
  return Rep<Array<T>>(detail::shaped(a.datum(), detail::TypeOf<Array<T>>::get(), false, here(l)));
}

/// A node of a binary tree, or the empty tree. Trees are data: they carry no derivative. See TREE.
template <class T>
class Rep<Tree<T>> {
 public:
  using value_type = Tree<T>;
  using Loc = std::source_location;

  Rep() = default;
  explicit Rep(Datum d) : storage_(std::move(d)) {}
  /// An eager tree.
  Rep(const Tree<T>& t)
      : storage_(Datum::boxed(new TreeBox(t.columns(), t.root()), detail::TypeOf<Tree<T>>::get())) {}
  const Datum& datum() const { return storage_.get(); }
  StorageBase& storage() { return storage_; }

  Rep<bool> empty(Loc l = Loc::current()) const { return detail::unary<Rep<bool>>(Opcode::tree_empty_, datum(), l); }
  Rep left(Loc l = Loc::current()) const { return detail::unary<Rep>(Opcode::tree_left_, datum(), l); }
  Rep right(Loc l = Loc::current()) const { return detail::unary<Rep>(Opcode::tree_right_, datum(), l); }
  /// The node's value: a Rep, or a tuple of Reps where T is a tuple. The empty tree has none (it raises).
  auto value(Loc l = Loc::current()) const {
    if constexpr (ScalarElement<T>) {
      return component<T>(0, l);
    } else {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::tuple(component<std::tuple_element_t<I, T>>(I, l)...);
      }(std::make_index_sequence<Tree<T>::components>{});
    }
  }
  /// A node without children.
  Rep<bool> is_leaf(Loc l = Loc::current()) const {
    return Rep<bool>(perform({Opcode::land_, 0, here(l)}, {left(l).empty(l).datum(), right(l).empty(l).datum()}));
  }

 private:
  template <class C>
  Rep<C> component(std::size_t i, const Loc& l) const {
    return Rep<C>(perform({Opcode::tree_value_, static_cast<std::int64_t>(i), here(l)}, {datum()}));
  }
  Storage<ir::Kind::tensor> storage_;
};

}  // namespace lantern::core
