// Random small programs over all types of numbers, arrays of each, a tree, and every construct: trees made
// from a seed, and what they mean. random_mixed_worlds.hpp says what an operation is: staged, or on numbers
// of C++.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lantern::test {

using Short = std::int32_t;
using Long = std::int64_t;

enum class Scalar { boolean, i32, i64, f32, f64 };
template <class T>
constexpr Scalar scalar_of() {
  if constexpr (std::is_same_v<T, bool>)
    return Scalar::boolean;
  else if constexpr (std::is_same_v<T, Short>)
    return Scalar::i32;
  else if constexpr (std::is_same_v<T, Long>)
    return Scalar::i64;
  else if constexpr (std::is_same_v<T, float>)
    return Scalar::f32;
  else
    return Scalar::f64;
}

/// A part of a program, of a type.
struct MixedNode {
  enum Kind {
    // of any type
    variable,
    constant,
    element,  // of an array, where it has one
    choose,
    branch,
    convert,  // from the type l
    // of numbers
    unary,
    binary,
    // of truth values
    compare,  // numbers of the type l
    both,
    either,
    none_left,  // whether the array of the type l is empty
    // of double or int64
    steps,   // FOR
    until,   // WHILE that counts in an int32_t
    record,  // FOR over a struct
    call,    // FUN, which calls itself, and others inside
    again,   // the call
    mutual,  // two functions that call each other
    stored,  // after an element of an array has been set
    appended,
    mapped,    // after a loop over an array, which gives each element a new value
    gathered,  // FOR over an array: a sum, a largest, whether all, ...
    // of double
    changed,  // Var
    fold,     // TREE
    total,    // of an array: sum, dot, largest
    kept,     // checkpoint
    stopped,  // stop_gradient
    filled,   // fill
    // of int64
    size,
    position,  // argmax
  };
  Kind kind = constant;
  Scalar type = Scalar::f64;
  int k = 0, l = 0;
  std::vector<MixedNode> parts = {};

  std::string str() const {
    static constexpr std::array names{"v",     "const",  "get",  "select", "IF",   "cast",   "un",     "bin",
                                      "cmp",   "AND",    "OR",   "empty",  "FOR",  "WHILE",  "RECORD", "FUN",
                                      "again", "MUTUAL", "set",  "concat", "map",  "gather", "Var",    "TREE",
                                      "total", "chk",    "stop", "fill",   "size", "argmax"};
    static constexpr std::array letters{"b", "s", "l", "f", "d"};
    std::string text = std::string(letters[static_cast<std::size_t>(type)]) + ":" + names[kind] +
                       std::to_string(k) + "." + std::to_string(l);
    if (parts.empty()) return text;
    text += "(";
    for (const MixedNode& p : parts) text += (&p == parts.data() ? "" : ", ") + p.str();
    return text + ")";
  }
};

/// The numbers that constants are, and arguments in part.
inline constexpr std::array special_numbers{0.0, 1.0, -1.0, 0.5, -0.75, 2.0, 3.0, 7.0, -2.5, 10.0, 1e-3,
                                            100.0, -0.0, 1.25,
                                            // from here on the arithmetic may end where numbers do
                                            1e300, -1e300, 5e-324, -1e-310, 1e-308, 1e19, -3e9, 1e40};
inline constexpr std::size_t ordinary_numbers = 14;
inline constexpr std::array special_integers{Long{0},
                                             Long{1},
                                             Long{-1},
                                             Long{2},
                                             Long{3},
                                             Long{7},
                                             Long{-5},
                                             Long{64},
                                             Long{2147483647},
                                             Long{-2147483647 - 1},
                                             Long{4294967296},
                                             Long{9223372036854775807},
                                             Long{-9223372036854775807 - 1}};
inline constexpr std::size_t ordinary_integers = 8;

/// While it is set nothing guards indices, divisors and sizes: programs may raise.
inline bool mixed_may_raise = false;

/// Of which type a loop over an array gathers what becomes a number of the type `whole`: the array's, if it
/// can.
constexpr Scalar state_of(Scalar element, Scalar whole) {
  const auto real = [](Scalar t) { return t == Scalar::f32 || t == Scalar::f64; };
  return real(element) == real(whole) ? element : whole;
}

/// Makes programs; the same seed gives the same program.
class MixedSource {
 public:
  /// `reals`, `integers`: constants from the ends of the numbers.
  MixedSource(unsigned seed, bool reals, bool integers)
      : random_(seed), extreme_reals_(reals), extreme_integers_(integers), budget_(14 + below(30)) {}

  MixedNode program(Scalar type) { return make(type, {}, 5); }

 private:
  using N = MixedNode;
  /// How many variables of each type there are beside the arguments, whether a function may call itself, and
  /// how many loops are around; one over an array counts for two.
  struct Scope {
    std::array<int, 5> more{};
    bool self = false;
    int loops = 0;
    Scope with(std::initializer_list<Scalar> added) const {
      Scope s = *this;
      for (Scalar t : added) ++s.more[static_cast<std::size_t>(t)];
      return s;
    }
    Scope repeated(int times) const {
      Scope s = *this;
      s.loops += times;
      return s;
    }
  };

  /// What goes through an array, or a tree, stands in so many loops; what calls itself, in fewer.
  static constexpr int most_loops = 2;

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Scalar any() { return static_cast<Scalar>(below(5)); }
  Scalar any_number() { return static_cast<Scalar>(1 + below(4)); }

  N node(N::Kind kind, Scalar type, int k = 0, int l = 0) { return {kind, type, k, l, {}}; }
  N leaf(Scalar type, const Scope& s) {
    if (below(4) == 0) {
      const bool real = type == Scalar::f32 || type == Scalar::f64;
      const std::size_t all = real ? special_numbers.size() : special_integers.size();
      const std::size_t ordinary = real ? ordinary_numbers : ordinary_integers;
      return node(N::constant, type,
                  below(static_cast<int>((real ? extreme_reals_ : extreme_integers_) ? all : ordinary)));
    }
    return node(N::variable, type, below(2 + s.more[static_cast<std::size_t>(type)]));
  }

  N make(Scalar type, const Scope& s, int depth) {
    if (depth <= 0 || --budget_ < 0) return leaf(type, s);
    constexpr Scalar B = Scalar::boolean, S = Scalar::i32, L = Scalar::i64, D = Scalar::f64;
    const auto with = [&](N n, std::initializer_list<std::pair<Scalar, Scope>> parts) {
      for (const auto& [t, scope] : parts) n.parts.push_back(make(t, scope, depth - 1));
      return n;
    };
    const Scope state = s.with({D, L}).repeated(1), iteration = state.with({L});
    switch (below(type == D ? 29 : type == L ? 22 : 12)) {
      case 0:
        return with(node(N::element, type), {{L, s}});
      case 1:
        return with(node(N::choose, type), {{B, s}, {type, s}, {type, s}});
      case 2:
      case 3:
        return with(node(N::branch, type), {{B, s}, {type, s}, {type, s}});
      case 4: {
        const Scalar from = any();
        return with(node(N::convert, type, 0, static_cast<int>(from)), {{from, s}});
      }
      case 5:
      case 6:
        if (type == B) return with(node(below(2) ? N::both : N::either, B), {{B, s}, {B, s}});
        return with(node(N::unary, type, below(16)), {{type, s}});
      default:
        if (type == B) {
          if (below(8) == 0) return node(N::none_left, B, 0, static_cast<int>(any()));
          const Scalar of = any();
          return with(node(N::compare, B, below(6), static_cast<int>(of)), {{of, s}, {of, s}});
        }
        return with(node(N::binary, type, below(9)), {{type, s}, {type, s}});
      case 12:
        return with(node(N::steps, type, below(5)), {{L, s}, {D, s}, {L, s}, {D, iteration}, {L, iteration}});
      case 13: {
        const Scope counted = state.with({S});
        return with(node(N::until, type, below(5)),
                    {{D, s}, {L, s}, {B, counted}, {D, counted}, {L, counted}});
      }
      case 14: {
        const Scope inside = iteration.with({B});
        return with(node(N::record, type, below(4)), {{D, s}, {L, s}, {D, inside}, {L, inside}, {B, inside}});
      }
      case 15: {
        if (s.loops >= most_loops || functions_-- <= 0) return leaf(type, s);
        Scope body = state;
        body.self = false;
        N n = with(node(N::call, type, below(4)), {{D, s}, {L, s}, {D, body}});
        body.self = true;
        calls_ = 2;
        n.parts.push_back(make(D, body, depth - 1));
        calls_ = 0;
        return n;
      }
      case 16:
        if (!s.self || calls_-- <= 0) return leaf(type, s);
        return with(node(N::again, type, below(2)), {{D, s}, {L, s}});
      case 17:
        return with(node(N::mutual, type, below(5)), {{D, s}, {D, state}, {D, state}});
      case 18:
        if (s.loops > most_loops) return leaf(type, s);
        return with(node(N::stored, type, below(2), below(5)), {{L, s}, {any_number(), s}, {type, s}});
      case 19:
        if (type == L)
          return node(s.loops > most_loops || below(2) ? N::size : N::position, L, 0,
                      static_cast<int>(any_number()));
        if (s.loops > most_loops) return leaf(type, s);
        return with(node(N::appended, type), {{L, s}, {type, s}});
      case 20: {
        if (s.loops > 1) return leaf(type, s);
        const Scalar of = any_number();
        const Scope element = s.with({L, of}).repeated(2);
        return with(node(N::mapped, type, below(5), static_cast<int>(of)),
                    {{of, element}, {B, element}, {type, s}});
      }
      case 21: {
        if (s.loops > 1) return leaf(type, s);
        const Scalar of = any_number(), sum = state_of(of, type);
        const Scope element = s.with({L, of}).repeated(2);
        return with(node(N::gathered, type, below(14), static_cast<int>(of)),
                    {{sum, s}, {sum, element}, {B, element}});
      }
      case 22:
        return with(node(N::changed, D, below(4)), {{D, s}, {B, iteration}, {D, iteration}, {D, iteration}});
      case 23:
        if (s.loops > most_loops) return leaf(type, s);
        return with(node(N::fold, D), {{D, s}, {D, state.with({D})}});
      case 24:
      case 25:
        if (s.loops > most_loops) return leaf(type, s);
        return node(N::total, D, below(5));
      case 26:
        return with(node(N::kept, D), {{D, s}, {D, s.with({D})}});
      case 27:
        return with(node(N::stopped, D), {{D, s}});
      case 28:
        return with(node(N::filled, D), {{L, s}, {D, s}});
    }
  }

  std::mt19937 random_;
  bool extreme_reals_, extreme_integers_;
  int budget_;
  int functions_ = 2, calls_ = 0;
};

/// How a loop over an array gathers: each value is added, those where a condition holds are, or each is
/// combined in order.
enum class Gather { sum, sum_where, all };

/// What a program means in a world W: its numbers W::N<T>, arrays W::A<T>, tree W::T, and operations.
template <class W>
class MixedRunner {
 public:
  template <class T>
  using N = typename W::template N<T>;
  template <class T>
  using A = typename W::template A<T>;
  using D = N<double>;
  using L = N<Long>;
  using B = N<bool>;
  using Pair = std::pair<D, L>;

  struct Scope {
    std::tuple<std::vector<B>, std::vector<N<Short>>, std::vector<L>, std::vector<N<float>>, std::vector<D>>
        scalars;
    std::tuple<A<bool>, A<Short>, A<Long>, A<float>, A<double>> arrays;
    typename W::T tree;
    std::function<D(D, L)> self = {};

    template <class T>
    auto& of() {
      return std::get<static_cast<std::size_t>(scalar_of<T>())>(scalars);
    }
    template <class T>
    const auto& of() const {
      return std::get<static_cast<std::size_t>(scalar_of<T>())>(scalars);
    }
    template <class T>
    auto& array() {
      return std::get<static_cast<std::size_t>(scalar_of<T>())>(arrays);
    }
    template <class T>
    const auto& array() const {
      return std::get<static_cast<std::size_t>(scalar_of<T>())>(arrays);
    }
    Scope with(const D& x, const L& n) const {
      Scope s = *this;
      s.template of<double>().push_back(x), s.template of<Long>().push_back(n);
      return s;
    }
    template <class T>
    Scope and_also(const N<T>& v) const {
      Scope s = *this;
      s.template of<T>().push_back(v);
      return s;
    }
  };

  template <class T>
  static N<T> run(const MixedNode& n, const Scope& s) {
    return W::template note<T>(exact<T>(n, s));
  }

 private:
  using Node = MixedNode;

  template <class F>
  static decltype(auto) with_type(int type, F&& f) {
    switch (static_cast<Scalar>(type)) {
      case Scalar::boolean:
        return f(std::type_identity<bool>());
      case Scalar::i32:
        return f(std::type_identity<Short>());
      case Scalar::i64:
        return f(std::type_identity<Long>());
      case Scalar::f32:
        return f(std::type_identity<float>());
      default:
        return f(std::type_identity<double>());
    }
  }

  /// An index of an array that is not empty.
  static L within(const L& i, const L& size) {
    if (mixed_may_raise) return i;
    const L r = W::binary(4, i, size);  // of the sign of i
    return W::branch(
        W::compare(0, r, L(0)), [&] { return W::binary(0, r, size); }, [&] { return r; });
  }
  static D tamed(const D& x) { return W::unary(2, x); }  // sin

  template <class T>
  static N<T> one_of(const Pair& p) {
    if constexpr (std::is_same_v<T, Long>)
      return p.second;
    else
      return p.first;
  }

  template <class T>
  static N<T> exact(const Node& n, const Scope& s) {
    const auto k = static_cast<std::size_t>(n.k);
    const auto part = [&]<class U>(std::type_identity<U>, std::size_t i) { return run<U>(n.parts[i], s); };
    constexpr std::type_identity<T> same;
    constexpr std::type_identity<bool> truth;
    constexpr std::type_identity<Long> integer;
    switch (n.kind) {
      case Node::variable:
        return s.template of<T>()[std::min(k, s.template of<T>().size() - 1)];
      case Node::constant:
        if constexpr (std::is_floating_point_v<T>)
          return W::template literal<T>(static_cast<T>(special_numbers[k]));
        else if constexpr (std::is_same_v<T, bool>)
          return W::template literal<T>(k % 2 == 1);
        else
          return W::template literal<T>(static_cast<T>(special_integers[k]));
      case Node::element: {
        const A<T>& a = s.template array<T>();
        const L size = W::size(a), i = part(integer, 0);
        if (mixed_may_raise) return W::at(a, i);
        return W::branch(
            W::compare(0, L(0), size), [&] { return W::at(a, within(i, size)); },
            [&] { return W::template literal<T>(T(1)); });
      }
      case Node::choose: {
        const B c = part(truth, 0);
        const N<T> a = part(same, 1), b = part(same, 2);
        return W::choose(c, a, b);
      }
      case Node::branch:
        return W::branch(
            part(truth, 0), [&] { return part(same, 1); }, [&] { return part(same, 2); });
      case Node::convert:
        return with_type(n.l, [&](auto from) { return W::template convert<T>(part(from, 0)); });
      default:
        break;
    }
    if constexpr (std::is_same_v<T, bool>)
      return condition(n, s);
    else
      return number<T>(n, s);
  }

  static B condition(const Node& n, const Scope& s) {
    const auto part = [&](std::size_t i) { return run<bool>(n.parts[i], s); };
    switch (n.kind) {
      case Node::both:
        return W::both(part(0), [&] { return part(1); });
      case Node::either:
        return W::either(part(0), [&] { return part(1); });
      case Node::none_left:
        return with_type(n.l, [&]<class U>(std::type_identity<U>) {
          return W::compare(4, W::size(s.template array<U>()), L(0));
        });
      default:
        return with_type(n.l, [&]<class U>(std::type_identity<U>) {
          const N<U> a = run<U>(n.parts[0], s), b = run<U>(n.parts[1], s);
          if constexpr (std::is_same_v<U, bool>)
            return W::compare(4 + n.k % 2, a, b);
          else
            return W::compare(n.k, a, b);
        });
    }
  }

  template <class T>
  static N<T> number(const Node& n, const Scope& s) {
    const auto part = [&](std::size_t i) { return run<T>(n.parts[i], s); };
    switch (n.kind) {
      case Node::unary:
        return W::unary(n.k, part(0));
      case Node::binary: {
        const N<T> a = part(0), b = part(1);
        if constexpr (std::is_integral_v<T>)
          if (!mixed_may_raise && (n.k == 3 || n.k == 4))
            return W::binary(n.k, a, W::choose(W::compare(4, b, N<T>(0)), N<T>(1), b));
        return W::binary(n.k, a, b);
      }
      default:
        break;
    }
    if constexpr (std::is_same_v<T, Long> || std::is_same_v<T, double>)
      return construct<T>(n, s);
    else
      return W::template literal<T>(T(0));
  }

  template <class T>
  static N<T> construct(const Node& n, const Scope& s) {
    const auto real = [&](std::size_t i, const Scope& in) { return run<double>(n.parts[i], in); };
    const auto whole = [&](std::size_t i, const Scope& in) { return run<Long>(n.parts[i], in); };
    const auto truth = [&](std::size_t i, const Scope& in) { return run<bool>(n.parts[i], in); };
    switch (n.kind) {
      case Node::steps: {
        const L least = W::binary(5, whole(0, s), L(n.k));  // at most so many
        return one_of<T>(
            W::steps(least, Pair(real(1, s), whole(2, s)), [&](const L& i, const D& x, const L& m) {
              const Scope in = s.with(x, m).template and_also<Long>(i);
              return Pair(tamed(real(3, in)), whole(4, in));
            }));
      }
      case Node::until:
        return one_of<T>(W::until(
            n.k, Pair(real(0, s), whole(1, s)),
            [&](const N<Short>& i, const D& x, const L& m) {
              return truth(2, s.with(x, m).template and_also<Short>(i));
            },
            [&](const N<Short>& i, const D& x, const L& m) {
              const Scope in = s.with(x, m).template and_also<Short>(i);
              return Pair(tamed(real(3, in)), whole(4, in));
            }));
      case Node::record:
        return one_of<T>(W::record(
            n.k, Pair(real(0, s), whole(1, s)), [&](const L& i, const D& x, const L& m, const B& c) {
              const Scope in = s.with(x, m).template and_also<Long>(i).template and_also<bool>(c);
              return std::tuple(tamed(real(2, in)), whole(3, in), truth(4, in));
            }));
      case Node::call: {
        const auto f = [&](const std::function<D(D, L)>& self, const D& x, const L& depth) {
          Scope in = s.with(x, depth);
          in.self = {};
          return W::branch(
              W::compare(1, depth, L(0)), [&] { return real(2, in); },
              [&] {
                in.self = [&self, &depth](const D& y, const L& less) {
                  return self(y, W::binary(1, W::binary(1, depth, L(1)), less));
                };
                return tamed(real(3, in));
              });
        };
        return W::template convert<T>(W::function(f, real(0, s), W::binary(5, whole(1, s), L(n.k))));
      }
      case Node::again:
        if (!s.self) return W::template literal<T>(T(1));
        return W::template convert<T>(s.self(real(0, s), L(n.k)));
      case Node::mutual:
        return W::template convert<T>(W::mutual(
            real(0, s), L(n.k), [&](const D& x, const L& m) { return tamed(real(1, s.with(x, m))); },
            [&](const D& x, const L& m) { return tamed(real(2, s.with(x, m))); }));
      case Node::stored:
        return with_type(1 + n.l % 4, [&]<class U>(std::type_identity<U>) { return stored<T, U>(n, s); });
      case Node::appended: {
        Scope in = s;
        in.template array<double>() = W::appended(s.template array<double>(), whole(0, s));
        return run<T>(n.parts[1], in);
      }
      case Node::mapped:
        return with_type(n.l, [&]<class U>(std::type_identity<U>) { return mapped<T, U>(n, s); });
      case Node::gathered:
        return with_type(n.l, [&]<class U>(std::type_identity<U>) { return gathered<T, U>(n, s); });
      default:
        break;
    }
    if constexpr (std::is_same_v<T, double>)
      return of_reals(n, s);
    else
      return with_type(n.l, [&]<class U>(std::type_identity<U>) {
        if constexpr (std::is_same_v<U, double>)
          if (n.kind == Node::position)
            return W::branch(
                W::compare(0, L(0), W::size(s.template array<U>())),
                [&] { return W::argmax(s.template array<U>()); }, [&] { return L(-1); });
        return W::size(s.template array<U>());
      });
  }

  template <class T, class U>
  static N<T> stored(const Node& n, const Scope& s) {
    const auto& a = s.template array<U>();
    const L i = run<Long>(n.parts[0], s), size = W::size(a);
    // The node's value is of the type that it was made for: made one of this array.
    const auto value = with_type(static_cast<int>(n.parts[1].type), [&]<class V>(std::type_identity<V>) {
      return W::template convert<U>(run<V>(n.parts[1], s));
    });
    Scope in = s;
    in.template array<U>() = W::branch(
        W::compare(0, L(0), size), [&] { return W::set(a, within(i, size), value); }, [&] { return a; });
    return run<T>(n.parts[2], in);
  }

  template <class T, class U>
  static N<T> mapped(const Node& n, const Scope& s) {
    if constexpr (std::is_same_v<U, bool>) {
      return W::template literal<T>(T(0));
    } else {
      const auto inside = [&](const L& i, const N<U>& v) {
        return s.template and_also<Long>(i).template and_also<U>(v);
      };
      Scope in = s;
      in.template array<U>() = W::template mapped<U>(
          n.k, s.template array<U>(),
          [&](const L& i, const N<U>& v) { return run<U>(n.parts[0], inside(i, v)); },
          [&](const L& i, const N<U>& v) { return run<bool>(n.parts[1], inside(i, v)); });
      return run<T>(n.parts[2], in);
    }
  }

  template <class T, class U>
  static N<T> gathered(const Node& n, const Scope& s) {
    constexpr Scalar state = state_of(scalar_of<U>(), scalar_of<T>());
    using E = std::conditional_t<state == scalar_of<U>(), U, T>;
    if constexpr (std::is_same_v<U, bool>) {
      return W::template literal<T>(T(0));
    } else {
      const A<U>& a = s.template array<U>();
      const auto inside = [&](const L& i) {
        return s.template and_also<Long>(i).template and_also<U>(W::at(a, i));
      };
      const auto value = [&](const L& i) { return run<E>(n.parts[1], inside(i)); };
      const auto holds = [&](const L& i) { return run<bool>(n.parts[2], inside(i)); };
      const L first(n.k / 7), size = W::size(a);
      const auto over = [&](auto kind, const auto& combine) {
        return W::template convert<T>(
            W::template gathered<E, kind>(first, size, run<E>(n.parts[0], s), value, holds, combine));
      };
      const auto by = [](int k) {
        return [k](const N<E>& sum, const N<E>& v) { return W::binary(k, sum, v); };
      };
      switch (n.k % 7) {
        case 0:
          return over(std::integral_constant<Gather, Gather::sum>(), by(0));
        case 1:
          return over(std::integral_constant<Gather, Gather::sum_where>(), by(0));
        case 2:
          return over(std::integral_constant<Gather, Gather::all>(), by(6));
        case 3:
          return over(std::integral_constant<Gather, Gather::all>(), by(5));
        case 4:
          return over(std::integral_constant<Gather, Gather::all>(), [](const N<E>& sum, const N<E>& v) {
            if constexpr (std::is_integral_v<E>)
              return W::binary(7, sum, v);
            else
              return W::binary(0, W::binary(2, sum, W::template literal<E>(E(0.5))), v);
          });
        case 5:
          return W::template convert<T>(W::every(first, size, holds));
        default:
          return W::template convert<T>(W::some(first, size, holds));
      }
    }
  }

  static D of_reals(const Node& n, const Scope& s) {
    const auto real = [&](std::size_t i, const Scope& in) { return run<double>(n.parts[i], in); };
    const auto truth = [&](std::size_t i, const Scope& in) { return run<bool>(n.parts[i], in); };
    switch (n.kind) {
      case Node::changed:
        return W::changed(
            n.k, real(0, s),
            [&](const L& i, const D& x) { return truth(1, s.with(x, i).template and_also<Long>(i)); },
            [&](const L& i, const D& x) { return tamed(real(2, s.with(x, i).template and_also<Long>(i))); },
            [&](const L& i, const D& x) { return tamed(real(3, s.with(x, i).template and_also<Long>(i))); });
      case Node::fold:
        return W::fold(real(0, s), s.tree, [&](const D& l, const D& r, const D& v, const L& c) {
          return tamed(real(1, s.with(l, c).template and_also<double>(r).template and_also<double>(v)));
        });
      case Node::total: {
        const A<double>& a = s.template array<double>();
        switch (n.k) {
          case 0:
            return W::sum(a);
          case 1:
            return W::dot(a, a);
          case 2:
            return W::branch(
                W::compare(0, L(0), W::size(a)), [&] { return W::largest(a); }, [&] { return D(0.0); });
          case 3:
            return W::sum_of_products(a, W::template note<double>(s.template of<double>()[0]));
          default:
            return W::template convert<double>(W::sum(s.template array<float>()));
        }
      }
      case Node::kept: {
        const D x = real(0, s);
        // It is run again when the program has ended, and the function around it.
        Scope outside = s;
        outside.self = {};
        return W::kept(x, [&n, outside](const D& y) {
          return tamed(run<double>(n.parts[1], outside.template and_also<double>(y)));
        });
      }
      case Node::filled: {
        // A size below 0 raises.
        const L count = W::binary(5, run<Long>(n.parts[0], s), L(9));
        return W::sum(W::filled(real(1, s), mixed_may_raise ? count : W::binary(6, count, L(0))));
      }
      default:
        return W::stopped(real(0, s));
    }
  }
};

}  // namespace lantern::test
