// Rep<T>: the only number type a user sees, and its operators.
//
// What an operation on a Rep does is decided by the handler in charge: it computes at once, emits a node, or
// applies a derivative rule. See operation.hpp. Corner conventions of derivatives stand in ir/ops.inc.
#pragma once

#include <concepts>
#include <cstdint>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lantern/compiler/staging/operation.hpp"
#include "lantern/compiler/staging/storage.hpp"
#include "lantern/compiler/staging/told.hpp"
#include "lantern/runtime/tree.hpp"

namespace lantern::core {

/// A dimension that is known only at run time, in Tensor<T, dims...>.
inline constexpr std::int64_t dyn = -1;

/// Element-type tag of Rep<Array<T>>: a one-dimensional array of bool, int32_t, int64_t, float or double.
/// Arguments of compiled functions enter as std::span<const T> and results return as std::vector<T>.
template <class T>
struct Array;

/// Tag of Rep<Tensor<T, dims...>>: T is bool, int32_t, int64_t, float or double. The rank is always known while staging; each dimension
/// is a number or `dyn`. Without dimensions the rank comes from the argument at the first call.
template <class T, std::int64_t... Dims>
struct Tensor;

template <class T>
class Rep;
template <>
class Rep<bool>;

template <class T>
concept ScalarElement = std::same_as<T, bool> || std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> ||
                        std::same_as<T, float> || std::same_as<T, double>;
template <class T>
concept FloatElement = std::same_as<T, float> || std::same_as<T, double>;
namespace detail {
template <class T>
concept IntegerElement = std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>;
}  // namespace detail
template <class T>
concept NumberElement = ScalarElement<T> && !std::same_as<T, bool>;

namespace detail {

template <class T>
inline constexpr bool dependent_false = false;

/// Whether a native if, while or ?: over a Rep may be parsed: only by lanternc's rewriter, which replaces it.
#ifdef LANTERN_FRONTEND
template <class>
inline constexpr bool native_branches = true;
#else
template <class>
inline constexpr bool native_branches = false;
#endif

template <class T>
struct TypeOf;
template <>
struct TypeOf<bool> { static ir::Type get() { return ir::Bool; } };
template <>
struct TypeOf<std::int32_t> { static ir::Type get() { return ir::I32; } };
template <>
struct TypeOf<std::int64_t> { static ir::Type get() { return ir::I64; } };
template <>
struct TypeOf<float> { static ir::Type get() { return ir::F32; } };
template <>
struct TypeOf<double> { static ir::Type get() { return ir::F64; } };
template <class T>
struct TypeOf<Array<T>> {
  static ir::Type get() { return ir::Type::tensor(TypeOf<T>::get().kind(), {ir::dynamic}); }
};
template <class T, std::int64_t... Dims>
struct TypeOf<Tensor<T, Dims...>> {
  static ir::Type get() { return ir::Type::tensor(TypeOf<T>::get().kind(), {Dims...}); }
};
template <class T>
struct TypeOf<Tree<T>> {
  static ir::Type get() {
    return [&]<class... Ts>(std::type_identity<std::tuple<Ts...>>) {
      return ir::Type::tree({TypeOf<Ts>::get()...});
    }(std::type_identity<typename Tree<T>::Components>{});
  }
};

/// Of the storage of a scalar.
template <class T>
inline constexpr ir::Kind storage_kind = std::same_as<T, bool>           ? ir::Kind::boolean
                                         : std::same_as<T, std::int32_t> ? ir::Kind::i32
                                         : std::same_as<T, std::int64_t> ? ir::Kind::i64
                                         : std::same_as<T, float>        ? ir::Kind::f32
                                                                         : ir::Kind::f64;

/// Element type and kind of the tags.
template <class T>
struct Traits {
  using element = T;
  static constexpr bool tensor = false;
};
template <class T>
struct Traits<Array<T>> {
  using element = T;
  static constexpr bool tensor = true;
};
template <class T, std::int64_t... Dims>
struct Traits<Tensor<T, Dims...>> {
  using element = T;
  static constexpr bool tensor = true;
};

/// What element-wise operators make of two tensors of one element: of undeclared rank where one of them is,
/// else of the larger rank, dimensions being those that are declared.
template <class T, class U>
struct Broadcast {
  static constexpr bool differ = false;  ///< whether the operands are tensors of different types
};
/// Dimension `from_last`, counted from the last, of the two shapes in one.
template <class T, class U>
struct JoinedShape;
template <class E, std::int64_t... D, std::int64_t... F>
struct JoinedShape<Tensor<E, D...>, Tensor<E, F...>> {
  static constexpr std::size_t m = sizeof...(D), n = sizeof...(F),
                               rank = m == 0 || n == 0 ? 0
                                      : m > n          ? m
                                                       : n;
  static constexpr std::int64_t dimension(std::size_t from_last) {
    constexpr std::int64_t first[] = {D..., dyn}, second[] = {F..., dyn};
    if (from_last >= m) return second[n - 1 - from_last];
    const std::int64_t size = first[m - 1 - from_last];
    if (from_last >= n) return size;
    const std::int64_t other = second[n - 1 - from_last];
    return size == 1 ? other : other == 1 || size != dyn ? size : other;
  }
};
template <class E, std::int64_t... D, std::int64_t... F>
requires(!std::same_as<Tensor<E, D...>, Tensor<E, F...>>) struct Broadcast<Tensor<E, D...>, Tensor<E, F...>> {
  static constexpr bool differ = true;
  using Shape = JoinedShape<Tensor<E, D...>, Tensor<E, F...>>;
  template <std::size_t... I>
  static Tensor<E, Shape::dimension(Shape::rank - 1 - I)...> of(std::index_sequence<I...>);
  using type = decltype(of(std::make_index_sequence<Shape::rank>{}));
};
/// An array is a tensor of one dimension.
template <class E, std::int64_t... D>
struct Broadcast<Array<E>, Tensor<E, D...>> {
  static constexpr bool differ = true;
  using type = typename std::conditional_t<sizeof...(D) == 1, std::type_identity<Tensor<E, dyn>>,
                                           Broadcast<Tensor<E, dyn>, Tensor<E, D...>>>::type;
};
template <class E, std::int64_t... D>
struct Broadcast<Tensor<E, D...>, Array<E>> : Broadcast<Array<E>, Tensor<E, D...>> {};
template <class T, class U>
concept Broadcasting = Broadcast<T, U>::differ;
template <class T, class U>
using broadcast_t = typename Broadcast<T, U>::type;
/// The same, of bools.
template <class T>
struct TruthsOf;
template <class E, std::int64_t... D>
struct TruthsOf<Tensor<E, D...>> {
  using type = Tensor<bool, D...>;
};
template <class T, class U>
using truths_t = typename TruthsOf<broadcast_t<T, U>>::type;

/// Two types of which one is a tensor or array, and which no operator takes together: neither is the element
/// of the other, nor are both tensors of one element.
template <class T, class U>
inline constexpr bool mixed = [] {
  using E = typename Traits<T>::element;
  using F = typename Traits<U>::element;
  if constexpr (std::same_as<T, U> || !(Traits<T>::tensor || Traits<U>::tensor)) return false;
  else if constexpr (!std::same_as<E, F>) return true;
  else if constexpr (std::same_as<T, E> || std::same_as<U, E>) return false;
  else
    return !Broadcasting<T, U>;
}();

/// Says where a literal beside a Rep of another type would lose its fraction or its upper half: `n * 0.5`,
/// `FOR(0, 2.9, ...)`, `Rep<int32_t> r = 3000000000`.
template <class From, class To>
constexpr void require_exact() {
  static_assert(!(std::floating_point<From> && std::integral<To>),
                "a number with a fraction is used as a whole one, or beside a Rep of whole numbers, and would lose "
                "its fraction: write cast<double>(n) for the Rep, or static_cast<std::int64_t>(x) for the number");
  static_assert(!(std::integral<From> && std::same_as<To, std::int32_t>) || sizeof(From) < sizeof(To) ||
                    (sizeof(From) == sizeof(To) && std::is_signed_v<From>),
                "a number of more than 32 bits is used as a std::int32_t, or beside a Rep of those: write "
                "static_cast<std::int32_t>(x) for the number, or cast<std::int64_t>(n) for the Rep");
}
/// Says that a number is given as a function that makes its value.
struct Made {};

template <class T>
Datum literal(T v) {
  const ir::Type type = TypeOf<T>::get();
  if constexpr (std::is_floating_point_v<T>) return Datum::number(static_cast<double>(v), type);
  else return Datum::integer(static_cast<std::int64_t>(v), type);
}

template <class T, class U>
Datum literal_as(U v) {
  require_exact<U, T>();
  return literal(static_cast<T>(v));
}

/// Checks that a tensor fits the dimensions of its C++ type; Error otherwise.
Datum shaped(Datum d, const ir::Type& declared, bool rank_free, const Location& loc);

}  // namespace detail

/// An operand: a Rep or a literal, with the place where it was written.
template <class T>
struct At {
  At(const Rep<T>& r, std::source_location l = std::source_location::current())
      : datum(r.datum()), loc(here(l)) {}
  /// A literal; `Rep<float> * 2.0` is a Rep<float>.
  template <class U>
    requires(std::is_arithmetic_v<U>)
  At(U v, std::source_location l = std::source_location::current())
      : datum(detail::literal_as<typename detail::Traits<T>::element>(v)), loc(here(l)) {}
  /// A scalar beside a tensor: repeated over its elements.
  At(const Rep<typename detail::Traits<T>::element>& r, std::source_location l = std::source_location::current())
    requires(detail::Traits<T>::tensor)
      : datum(r.datum()), loc(here(l)) {}

  /// A tensor beside one of another rank, or of which less is declared.
  template <class U>
  requires(detail::Broadcasting<T, U>)
      At(const Rep<U>& r, std::source_location l = std::source_location::current())
      : datum(r.datum()), loc(here(l)) {}

  Datum datum;
  Location loc;
};

namespace detail {
/// The smaller and the larger of numbers of an element type.
template <class T>
inline constexpr Opcode min_of = std::integral<typename Traits<T>::element> ? Opcode::imin_ : Opcode::min_;
template <class T>
inline constexpr Opcode max_of = std::integral<typename Traits<T>::element> ? Opcode::imax_ : Opcode::max_;

/// What &, | and ^ are between integers, bit by bit, and between bools.
template <class T>
inline constexpr bool is_truth = std::same_as<typename Traits<T>::element, bool>;
template <class T>
inline constexpr Opcode bit_and_of = is_truth<T> ? Opcode::land_ : Opcode::bit_and_;
template <class T>
inline constexpr Opcode bit_or_of = is_truth<T> ? Opcode::lor_ : Opcode::bit_or_;
template <class T>
inline constexpr Opcode bit_xor_of = is_truth<T> ? Opcode::ne_ : Opcode::bit_xor_;

/// The value that `make` gives; of a number it is made where it will lie.
template <class R, class F>
R made(const F& make) {
  if constexpr (std::is_constructible_v<R, Made, const F&>) return R(Made(), make);
  else return R(make());
}
template <class R, class T, class U>
R binary(Opcode code, const At<T>& a, const At<U>& b) {
  return made<R>([&] { return perform_broadcast({code, 0, a.loc}, a.datum, b.datum); });
}
/// What `+=` makes: at the place of the right operand, for the left one has none of its own.
template <class R, class T>
R updated(Opcode code, const R& a, const At<T>& b) {
  return made<R>([&] { return perform_broadcast({code, 0, b.loc}, a.datum(), b.datum); });
}
template <class R>
R unary(Opcode code, const Datum& a, const std::source_location& l) {
  return R(perform({code, 0, here(l)}, {a}));
}
}  // namespace detail

/// What assigns changes variables; `a[i] += v` is parsed by lanternc's rewriter, which replaces it.
#ifdef LANTERN_FRONTEND
#define LANTERN_LVALUE
#else
#define LANTERN_LVALUE &
#endif

/// Operators common to numbers and tensors; found by argument-dependent lookup.
#define LANTERN_ARITHMETIC(T)                                                                                        \
  [[nodiscard]] friend Rep operator+(const At<T>& a, const At<T>& b) {                                               \
    return detail::binary<Rep>(Opcode::add_, a, b);                                                                  \
  }                                                                                                                  \
  [[nodiscard]] friend Rep operator-(const At<T>& a, const At<T>& b) {                                               \
    return detail::binary<Rep>(Opcode::sub_, a, b);                                                                  \
  }                                                                                                                  \
  [[nodiscard]] friend Rep operator*(const At<T>& a, const At<T>& b) {                                               \
    return detail::binary<Rep>(Opcode::mul_, a, b);                                                                  \
  }                                                                                                                  \
  [[nodiscard]] friend Rep operator/(const At<T>& a, const At<T>& b) {                                               \
    return detail::binary<Rep>(Opcode::div_, a, b);                                                                  \
  }                                                                                                                  \
  [[nodiscard]] friend Rep operator-(const At<T>& a) { return Rep(perform({Opcode::neg_, 0, a.loc}, {a.datum})); }   \
  [[nodiscard]] friend Rep operator+(const At<T>& a) { return Rep(a.datum); }                                        \
  LANTERN_UPDATE(+=, add_, T)                                                                                        \
  LANTERN_UPDATE(-=, sub_, T)                                                                                        \
  LANTERN_UPDATE(*=, mul_, T)                                                                                        \
  LANTERN_UPDATE(/=, div_, T)
#define LANTERN_UPDATE(symbol, op, T)                                                                                \
  Rep& operator symbol(const At<T>& b) LANTERN_LVALUE {                                                              \
    return *this = detail::updated<Rep>(Opcode::op, *this, b);                                                       \
  }                                                                                                                  \
  LANTERN_NO_CONST_ASSIGNMENT(symbol, const At<T>&)

/// Assignment, for variables. `a[i] = v`, `t.row(i) = v` assign to a value that nothing holds: they would change
/// nothing.
#define LANTERN_ASSIGNMENT(advice)                                                                          \
  Rep(const Rep&) = default;                                                                                \
  Rep(Rep&&) noexcept = default;                                                                            \
  Rep& operator=(const Rep&) LANTERN_LVALUE = default;                                                      \
  Rep& operator=(Rep&&) LANTERN_LVALUE = default;                                                           \
  LANTERN_NO_CONST_ASSIGNMENT(=, const Rep&)                                                                \
  LANTERN_NO_ASSIGNMENT(=, advice)
/// A lambda that captures by value has constants.
#define LANTERN_NO_CONST_ASSIGNMENT(symbol, ...)                                                                    \
  LANTERN_TOLD(void, "a lambda that captures by value, [=], or a const Rep is assigned: write [&], so that the "     \
                     "variable itself changes")                                                                     \
  operator symbol(__VA_ARGS__) const LANTERN_LVALUE LANTERN_DELETED;
#ifdef LANTERN_FRONTEND
#define LANTERN_NO_ASSIGNMENT(symbol, advice)
#else
#define LANTERN_NO_ASSIGNMENT(symbol, advice)                                                               \
  template <class U>                                                                                        \
  void operator symbol(const U&) && {                                                                       \
    static_assert(detail::dependent_false<U>, "a temporary is assigned, which changes nothing: " advice);   \
  }
#endif
#define LANTERN_NO_COMPOUND_ASSIGNMENT(advice)                                                              \
  LANTERN_NO_ASSIGNMENT(+=, advice)                                                                         \
  LANTERN_NO_ASSIGNMENT(-=, advice)                                                                         \
  LANTERN_NO_ASSIGNMENT(*=, advice)                                                                         \
  LANTERN_NO_ASSIGNMENT(/=, advice)

/// What to write instead of what does not compile. lanternc defines LANTERN_REWRITTEN: what is left there is what
/// it does not rewrite, the bodies of macros for instance.
#if defined(LANTERN_REWRITTEN) && LANTERN_REWRITTEN
#define LANTERN_NO_BRANCH                                                                                   \
  ", and lanternc does not rewrite control flow here, in the body of a macro for instance. Move " \
  "it to a function or lambda of its own, outside of the macro, or write IF, WHILE, AND, OR or select"
#define LANTERN_SET_ELEMENT                                                                                 \
  "elements are values, and lanternc does not rewrite this place, in the body of a macro for "        \
  "instance. Move it to a function or lambda of its own, outside of the macro, or write a = a.set(i, v) or " \
  "t = t.set(i, j, v)"
#define LANTERN_SET_ROWS "rows and slices are values. Set the elements in a loop, t(i, k) = v[k]"
#else
#define LANTERN_NO_BRANCH                                                                                   \
  ": native if, while, ?:, && and || cannot branch on it. Write IF(c, [&] { return a; }, [&] { return b; }), " \
  "WHILE(state, cond, body), AND(a, [&] { return b; }) or select(c, a, b), or compile the file with lanternc"
#define LANTERN_SET_ELEMENT                                                                                 \
  "elements are values. Write a = a.set(i, v) or t = t.set(i, j, v), or compile the file with lanternc, "   \
  "where a[i] = v is an assignment"
#define LANTERN_SET_ROWS                                                                                    \
  "rows and slices are values. Set the elements, FOR(0, n, t, [&](auto k, auto t) { return t.set(i, k, v[k]); })"
#endif

/// A function of <math.h> of two operands, literals allowed.
#define LANTERN_OF_TWO(name, T) \
  [[nodiscard]] friend Rep name(const At<T>& a, const At<T>& b) { return detail::binary<Rep>(Opcode::name##_, a, b); }

/// Bits of integers in two's complement, `>>` with copies of the sign. A shift by a number that is not from 0 to
/// below the number of bits goes by its lowest bits.
#define LANTERN_BITS(T)                                                                                     \
  [[nodiscard]] friend Rep operator&(const At<T>& a, const At<T>& b)                                                      \
    requires(!FloatElement<typename detail::Traits<T>::element>)                                            \
  { return detail::binary<Rep>(detail::bit_and_of<T>, a, b); }                                                   \
  [[nodiscard]] friend Rep operator|(const At<T>& a, const At<T>& b)                                                      \
    requires(!FloatElement<typename detail::Traits<T>::element>)                                            \
  { return detail::binary<Rep>(detail::bit_or_of<T>, a, b); }                                                    \
  [[nodiscard]] friend Rep operator^(const At<T>& a, const At<T>& b)                                                      \
    requires(!FloatElement<typename detail::Traits<T>::element>)                                            \
  { return detail::binary<Rep>(detail::bit_xor_of<T>, a, b); }                                                   \
  [[nodiscard]] friend Rep operator~(const At<T>& a)                                                                      \
    requires(detail::IntegerElement<typename detail::Traits<T>::element>)                                            \
  { return detail::binary<Rep>(Opcode::bit_xor_, a, At<T>(-1)); }                                                                              \
  [[nodiscard]] friend Rep operator<<(const At<T>& a, const At<T>& b)                                                     \
    requires(detail::IntegerElement<typename detail::Traits<T>::element>)                                            \
  { return Rep(detail::shifted(Opcode::shift_left_, a.datum, b.datum, a.loc)); }                            \
  [[nodiscard]] friend Rep operator>>(const At<T>& a, const At<T>& b)                                                     \
    requires(detail::IntegerElement<typename detail::Traits<T>::element>)                                            \
  { return Rep(detail::shifted(Opcode::shift_right_, a.datum, b.datum, a.loc)); }

/// Element by element: `max(t, 0.0)`.
#define LANTERN_TENSOR_FUNCTIONS(T)                                                                         \
  [[nodiscard]] friend Rep min(const At<T>& a, const At<T>& b) { return detail::binary<Rep>(detail::min_of<T>, a, b); }    \
  [[nodiscard]] friend Rep max(const At<T>& a, const At<T>& b) { return detail::binary<Rep>(detail::max_of<T>, a, b); }

/// Comparisons element by element, and what bools may do.
#define LANTERN_TENSOR_COMPARISONS(T, B)                                                                     \
  [[nodiscard]] friend Rep<B> operator<(const At<T>& a, const At<T>& b) { return detail::binary<Rep<B>>(Opcode::lt_, a, b); }  \
  [[nodiscard]] friend Rep<B> operator>(const At<T>& a, const At<T>& b) { return detail::binary<Rep<B>>(Opcode::lt_, b, a); }  \
  [[nodiscard]] friend Rep<B> operator<=(const At<T>& a, const At<T>& b) { return detail::binary<Rep<B>>(Opcode::le_, a, b); } \
  [[nodiscard]] friend Rep<B> operator>=(const At<T>& a, const At<T>& b) { return detail::binary<Rep<B>>(Opcode::le_, b, a); } \
  [[nodiscard]] friend Rep<B> operator==(const At<T>& a, const At<T>& b) { return detail::binary<Rep<B>>(Opcode::eq_, a, b); } \
  [[nodiscard]] friend Rep<B> operator!=(const At<T>& a, const At<T>& b) { return detail::binary<Rep<B>>(Opcode::ne_, a, b); } \
  [[nodiscard]] friend Rep operator!(const Rep& a)                                                                        \
    requires(std::same_as<T, B>)                                                                            \
  { return Rep(perform({Opcode::lnot_, 0, {}}, {a.datum()})); }

/// Of tensors of different ranks: the left operand notes the place, the right one says what it is.
#define LANTERN_BROADCASTING(name, op) \
  LANTERN_BROADCASTING_TO(name, Opcode::op##_, detail::broadcast_t<value_type, U>)
#define LANTERN_BROADCASTING_TO(name, code, ...)                                                       \
  template <class U>                                                                                 \
  requires(detail::Broadcasting<value_type, U>) [[nodiscard]] friend Rep<__VA_ARGS__> name(const At<value_type>& a, \
                                                                             const Rep<U>& b) {      \
    return detail::binary<Rep<__VA_ARGS__>>(code, a, At<U>(b));                                      \
  }

/// A truth value. `!` works; `&&` and `||` cannot short-circuit: use AND(a, [&] { return b; }) and OR.
template <>
class Rep<bool> {
 public:
  using value_type = bool;

  Rep() = default;
  template <class U>
    requires(std::same_as<U, bool>)
  Rep(U v) : storage_(detail::literal(v)) {}
  explicit Rep(Datum d) : storage_(std::move(d)) {}
  template <std::invocable F>
  Rep(detail::Made, const F& make) : storage_(make) {}
  LANTERN_ASSIGNMENT(LANTERN_SET_ELEMENT)

  const Datum& datum() const { return storage_.get(); }
  StorageBase& storage() { return storage_; }

  template <class B>
    requires(std::same_as<B, bool>)
  explicit operator B() const {
    static_assert(detail::native_branches<B>,
                  "a Rep<bool> has no value yet" LANTERN_NO_BRANCH);
    return false;
  }

  friend Rep operator!(const Rep& a) { return Rep(perform({Opcode::lnot_, 0, {}}, {a.datum()})); }
  friend Rep operator==(const Rep& a, const Rep& b) { return Rep(perform({Opcode::eq_, 0, {}}, {a.datum(), b.datum()})); }
  friend Rep operator!=(const Rep& a, const Rep& b) { return Rep(perform({Opcode::ne_, 0, {}}, {a.datum(), b.datum()})); }
  /// Both sides are computed.
  friend Rep operator&(const Rep& a, const Rep& b) { return Rep(perform({Opcode::land_, 0, {}}, {a.datum(), b.datum()})); }
  friend Rep operator|(const Rep& a, const Rep& b) { return Rep(perform({Opcode::lor_, 0, {}}, {a.datum(), b.datum()})); }
  friend Rep operator^(const Rep& a, const Rep& b) { return a != b; }
#ifdef LANTERN_FRONTEND  // what lanternc's rewriter reads, and replaces
  friend Rep operator&&(const Rep&, const Rep&);
  friend Rep operator||(const Rep&, const Rep&);
  friend Rep operator&&(const Rep&, bool);
  friend Rep operator||(const Rep&, bool);
  friend Rep operator&&(bool, const Rep&);
  friend Rep operator||(bool, const Rep&);
#else
  friend void operator&&(const Rep&, const Rep&) = delete;
  friend void operator||(const Rep&, const Rep&) = delete;
#endif

 private:
  Storage<ir::Kind::boolean> storage_;
};

/// What no Rep can hold. Its name may be formed, as it is where std::max<unsigned>(a, b) looks at the max of Reps too;
/// none is made.
template <class T>
class Rep {
  static constexpr bool refused() {
    static_assert(ScalarElement<T>, "Rep<T> takes bool, int32_t, int64_t, float, double, Array<T>, Tensor<T>, Tree<T>; "
                                    "put several of them into a struct template or a std::tuple");
    return true;
  }

 public:
  using value_type = T;
  Rep() { refused(); }
  template <class U>
    requires(std::is_arithmetic_v<U>)
  Rep(U) {
    refused();
  }
};

/// A number: bool, int32_t, int64_t, float or double.
///
/// Arithmetic and comparison with literals convert the literal to the Rep's type. Two different Rep types do
/// not mix: write cast<double>(x). Integers wrap; their division by zero raises. A branch on a Rep<bool> is
/// written IF(c, [&] { ... }, [&] { ... }).
template <ScalarElement T>
class Rep<T> {
 public:
  using value_type = T;

  Rep() = default;
  template <class U>
    requires(std::is_arithmetic_v<U>)
  Rep(U v) : storage_(detail::literal_as<T>(v)) {}
  explicit Rep(Datum d) : storage_(std::move(d)) {}
  template <std::invocable F>
  Rep(detail::Made, const F& make) : storage_(make) {}
  LANTERN_ASSIGNMENT(LANTERN_SET_ELEMENT)
  LANTERN_NO_COMPOUND_ASSIGNMENT(LANTERN_SET_ELEMENT)

  const Datum& datum() const { return storage_.get(); }
  StorageBase& storage() { return storage_; }

  /// Not available: a native branch would be decided while the program is staged.
  template <class B>
    requires(std::same_as<B, bool>)
  explicit operator B() const {
    static_assert(detail::native_branches<B>,
                  "a Rep has no value yet" LANTERN_NO_BRANCH);
    return false;
  }

#ifdef LANTERN_FRONTEND
  /// For `switch`.
  explicit operator std::int64_t() const
    requires(std::integral<T>);
#endif

  LANTERN_ARITHMETIC(T)
  [[nodiscard]] friend Rep operator%(const At<T>& a, const At<T>& b)
    requires(std::integral<T>)
  {
    return detail::binary<Rep>(Opcode::rem_, a, b);
  }
  LANTERN_BITS(T)
  [[nodiscard]] friend Rep<bool> operator<(const At<T>& a, const At<T>& b) { return detail::binary<Rep<bool>>(Opcode::lt_, a, b); }
  [[nodiscard]] friend Rep<bool> operator>(const At<T>& a, const At<T>& b) { return detail::binary<Rep<bool>>(Opcode::lt_, b, a); }
  [[nodiscard]] friend Rep<bool> operator<=(const At<T>& a, const At<T>& b) { return detail::binary<Rep<bool>>(Opcode::le_, a, b); }
  [[nodiscard]] friend Rep<bool> operator>=(const At<T>& a, const At<T>& b) { return detail::binary<Rep<bool>>(Opcode::le_, b, a); }
  [[nodiscard]] friend Rep<bool> operator==(const At<T>& a, const At<T>& b) { return detail::binary<Rep<bool>>(Opcode::eq_, a, b); }
  [[nodiscard]] friend Rep<bool> operator!=(const At<T>& a, const At<T>& b) { return detail::binary<Rep<bool>>(Opcode::ne_, a, b); }
  [[nodiscard]] friend Rep min(const At<T>& a, const At<T>& b) {
    return detail::binary<Rep>(detail::min_of<T>, a, b);
  }
  [[nodiscard]] friend Rep max(const At<T>& a, const At<T>& b) {
    return detail::binary<Rep>(detail::max_of<T>, a, b);
  }
  [[nodiscard]] friend Rep fma(const At<T>& a, const At<T>& b, const At<T>& c) {
    return Rep(perform({Opcode::fma_, 0, a.loc}, {a.datum, b.datum, c.datum}));
  }
#define MATH_2(name, ...) LANTERN_OF_TWO(name, T)
#include "lantern/ir/ops.inc"

 private:
  Storage<detail::storage_kind<T>> storage_;
};

/// Two Rep types do not mix silently.
#define LANTERN_NO_MIXING_OF_TENSORS(symbol)                                                               \
  template <class T, class U>                                                                              \
    requires(detail::mixed<T, U>)                                                                          \
  Rep<T> operator symbol(const Rep<T>& a, const Rep<U>&) {                                                 \
    static_assert(detail::dependent_false<T>,                                                              \
                  "operands of two different Rep types: convert one, for example as_tensor(array), "       \
                  "as_array(tensor), cast<double>(x), or Rep<Tensor<double>>(matrix)");                    \
    return a;                                                                                              \
  }
LANTERN_NO_MIXING_OF_TENSORS(+)
LANTERN_NO_MIXING_OF_TENSORS(-)
LANTERN_NO_MIXING_OF_TENSORS(*)
LANTERN_NO_MIXING_OF_TENSORS(/)
#undef LANTERN_NO_MIXING_OF_TENSORS

#define LANTERN_NO_MIXING(symbol)                                                                          \
  template <class T, class U>                                                                              \
    requires(ScalarElement<T> && ScalarElement<U> && !std::same_as<T, U>)                                  \
  Rep<T> operator symbol(const Rep<T>& a, const Rep<U>&) {                                                 \
    static_assert(detail::dependent_false<T>,                                                              \
                  "operands of two different Rep types: convert one, for example cast<double>(n)");        \
    return a;                                                                                              \
  }
LANTERN_NO_MIXING(+)
LANTERN_NO_MIXING(-)
LANTERN_NO_MIXING(*)
LANTERN_NO_MIXING(/)
LANTERN_NO_MIXING(<)
LANTERN_NO_MIXING(>)
LANTERN_NO_MIXING(<=)
LANTERN_NO_MIXING(>=)
LANTERN_NO_MIXING(==)
LANTERN_NO_MIXING(!=)
#undef LANTERN_NO_MIXING

/// Streams print values, and a Rep has none while a program is staged. Anything with the types of a stream is one.
template <class Stream, class T>
  requires requires { typename Stream::char_type; typename Stream::traits_type; typename Stream::pos_type; }
LANTERN_TOLD(Stream&, "a Rep has no value yet; print(x, \"x\") prints it when the program runs")
operator<<(Stream&, const Rep<T>&) LANTERN_DELETED;
/// The library fmt looks for one of these functions, by its version.
template <class T>
int format_as(const Rep<T>&) {
  static_assert(detail::dependent_false<T>,
                "a Rep has no value yet; print(x, \"x\") prints it when the program runs");
  return 0;
}
template <class T>
std::string_view to_string_view(const Rep<T>&) {
  static_assert(detail::dependent_false<T>,
                "a Rep has no value yet; print(x, \"x\") prints it when the program runs");
  return {};
}

/// Conversion between number types. float <-> double keeps derivatives. To an integer it truncates and has
/// none: what is too large becomes the largest or the smallest integer, NaN becomes 0.
template <ScalarElement To, ScalarElement From>
[[nodiscard]] Rep<To> cast(const Rep<From>& x, std::source_location l = std::source_location::current()) {
  if constexpr (std::same_as<To, From>) return x;
  else return Rep<To>(perform({Opcode::cast_, static_cast<int>(detail::TypeOf<To>::get().kind()), here(l)}, {x.datum()}));
}

/// `a` where the condition holds, else `b`; both are computed. `IF` computes only one.
template <class T>
[[nodiscard]] Rep<T> select(const Rep<bool>& c, const Rep<T>& a, const std::type_identity_t<Rep<T>>& b,
              std::source_location l = std::source_location::current()) {
  return Rep<T>(perform({Opcode::select_, 0, here(l)}, {c.datum(), a.datum(), b.datum()}));
}

/// The same with a literal first.
template <class T, class U>
  requires(std::is_arithmetic_v<U> && ScalarElement<T>)
[[nodiscard]] Rep<T> select(const Rep<bool>& c, U a, const Rep<T>& b, std::source_location l = std::source_location::current()) {
  return select(c, Rep<T>(a), b, l);
}

/// The smaller and the larger. As special as std::min and std::max, which would branch, so that these are
/// chosen after `using std::max` too.
#define LANTERN_EXTREMUM(name)                                                                          \
  template <class T>                                                                                    \
  requires(NumberElement<typename detail::Traits<T>::element>) Rep<T> name(                             \
      const Rep<T>& a, const Rep<T>& b, std::source_location l = std::source_location::current()) {     \
    return detail::binary<Rep<T>>(detail::name##_of<T>, At<T>(a, l), At<T>(b, l));                      \
  }                                                                                                     \
  template <class T>                                                                                    \
  requires(NumberElement<typename detail::Traits<T>::element>) Rep<T> name(                             \
      std::initializer_list<Rep<T>> all, std::source_location l = std::source_location::current()) {    \
    Rep<T> found = *all.begin();                                                                        \
    for (auto next = all.begin() + 1; next != all.end(); ++next) found = name(found, *next, l);         \
    return found;                                                                                       \
  }
LANTERN_EXTREMUM(min)
LANTERN_EXTREMUM(max)
#undef LANTERN_EXTREMUM

/// The functions of <math.h> over floating-point numbers and, element by element, tensors.
#define LANTERN_UNARY(name, op)                                                                    \
  template <class T>                                                                               \
    requires(FloatElement<typename detail::Traits<T>::element>)                                    \
  [[nodiscard]] Rep<T> name(const Rep<T>& x, std::source_location l = std::source_location::current()) {         \
    return detail::unary<Rep<T>>(Opcode::op##_, x.datum(), l);                                     \
  }
#define MATH_1(name, ...) LANTERN_UNARY(name, name)
#include "lantern/ir/ops.inc"
LANTERN_UNARY(abs, abs)
LANTERN_UNARY(fabs, abs)
LANTERN_UNARY(sign, sign)
#undef LANTERN_UNARY

/// Functions of two operands by their names in the namespaces std and lantern: std::pow(x, 2.0), std::max(x, 0.0).
/// Unqualified names are found by their operands. A second operand may be a number of C++, an element beside a tensor,
/// or a tensor of another shape that broadcasts.
namespace standard_names {
/// A Rep whose elements satisfy the trait. Not the tag of it, which std::max<std::int64_t>(n, 1) would name.
template <class R, template <class> class Holds>
concept RepOf = requires { typename R::value_type; } && std::same_as<R, Rep<typename R::value_type>> &&
                Holds<typename detail::Traits<typename R::value_type>::element>::value;
template <class T>
using IsReal = std::bool_constant<FloatElement<T>>;
template <class T>
using IsNumber = std::bool_constant<NumberElement<T>>;
template <class U, class R>
concept BesideRep = std::is_arithmetic_v<U> || std::same_as<U, R> ||
                    std::same_as<U, Rep<typename detail::Traits<typename R::value_type>::element>>;
template <class U, class R>
concept ElementOf =
    std::is_arithmetic_v<U> || (detail::Traits<typename R::value_type>::tensor &&
                                std::same_as<U, Rep<typename detail::Traits<typename R::value_type>::element>>);
#define LANTERN_BINARY(name, op, Holds)                                                                            \
  template <RepOf<Holds> R, BesideRep<R> U>                                                                        \
  [[nodiscard]] R name(const R& a, const U& b, std::source_location l = std::source_location::current()) {         \
    using T = typename R::value_type;                                                                              \
    return detail::binary<R>(op, At<T>(a, l), At<T>(b, l));                                                        \
  }                                                                                                                \
  template <class U, RepOf<Holds> R>                                                                               \
    requires(ElementOf<U, R>)                                                                                      \
  [[nodiscard]] R name(const U& a, const R& b, std::source_location l = std::source_location::current()) {         \
    using T = typename R::value_type;                                                                              \
    return detail::binary<R>(op, At<T>(a, l), At<T>(b, l));                                                        \
  }                                                                                                                \
  template <RepOf<Holds> R, class U, class T = typename R::value_type>                                             \
    requires(detail::Broadcasting<T, U>)                                                                           \
  [[nodiscard]] Rep<detail::broadcast_t<T, U>> name(const R& a, const Rep<U>& b,                                   \
                                                    std::source_location l = std::source_location::current()) {   \
    return detail::binary<Rep<detail::broadcast_t<T, U>>>(op, At<T>(a, l), At<U>(b, l));                           \
  }
#define MATH_2(name, ...) LANTERN_BINARY(name, Opcode::name##_, IsReal)
#include "lantern/ir/ops.inc"
LANTERN_BINARY(min, detail::min_of<T>, IsNumber)
LANTERN_BINARY(max, detail::max_of<T>, IsNumber)
#undef LANTERN_BINARY
}  // namespace standard_names

}  // namespace lantern::core

/// What is written std::max(a, b) over numbers means the same over Reps. std::max itself would branch, and
/// the others are not there for any type: as in other libraries of numbers, ours stand beside them.
namespace std {
#define MATH_1(name, ...) using lantern::core::name;
#define MATH_2(name, ...) using lantern::core::standard_names::name;
#include "lantern/ir/ops.inc"
using lantern::core::abs;
using lantern::core::fabs;
using lantern::core::max;
using lantern::core::min;
using lantern::core::standard_names::max;
using lantern::core::standard_names::min;
}  // namespace std

#include "lantern/compiler/staging/containers.hpp"
