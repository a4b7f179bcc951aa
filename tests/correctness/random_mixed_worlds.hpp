// What the operations of a random mixed program are: staged, and on numbers of C++ with derivatives beside
// them, written down a second time on purpose.
#pragma once

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>

#include "lantern/lantern.hpp"
#include "random_mixed.hpp"

namespace lantern::test {

template <class X, class M, class C>
struct MixedRecord {
  X x;
  M m;
  C c;
};

using MixedTree = Tree<std::tuple<double, Long>>;

/// Over Rep: eagerly or staged, whoever is in charge.
struct StagedWorld {
  template <class T>
  using N = Rep<T>;
  template <class T>
  using A = Rep<Array<T>>;
  using T = Rep<MixedTree>;
  using D = Rep<double>;
  using L = Rep<Long>;
  using S = Rep<Short>;
  using B = Rep<bool>;
  using Pair = std::pair<D, L>;

  template <class T>
  static Rep<T> note(const Rep<T>& x) {
    return x;
  }
  template <class T>
  static Rep<T> literal(T v) {
    return Rep<T>(v);
  }

  template <class T>
  static Rep<T> unary(int k, const Rep<T>& x) {
    if constexpr (std::is_integral_v<T>) {
      switch (k % 4) {
        case 0:
          return -x;
        case 1:
          return x * x;
        case 2:
          return max(x, -x);
        default:
          return x % 7;
      }
    } else {
      switch (k) {
        case 0:
          return -x;
        case 1:
          return abs(x);
        case 2:
          return sin(x);
        case 3:
          return exp(x);
        case 4:
          return log(x);
        case 5:
          return sqrt(x);
        case 6:
          return tanh(x);
        case 7:
          return floor(x);
        case 8:
          return sign(x);
        case 9:
          return log1p(x);
        case 10:
          return cos(x);
        case 11:
          return atan(x);
        case 12:
          return expm1(x);
        case 13:
          return erf(x);
        case 14:
          return cosh(x);
        default:
          return 1.0 / x;
      }
    }
  }
  template <class T>
  static Rep<T> binary(int k, const Rep<T>& x, const Rep<T>& y) {
    switch (k) {
      case 0:
        return x + y;
      case 1:
        return x - y;
      case 2:
        return x * y;
      case 3:
        return x / y;
      case 5:
        return min(x, y);
      case 6:
        return max(x, y);
      default:
        break;
    }
    if constexpr (std::is_integral_v<T>) {
      if (k == 4) return x % y;
      return k == 7 ? x * 3 + y : x - y * 5;
    } else {
      if (k == 4) return pow(abs(x), y);
      return k == 7 ? atan2(x, y) : fma(x, y, x);
    }
  }
  template <class T>
  static B compare(int k, const Rep<T>& x, const Rep<T>& y) {
    if constexpr (!std::is_same_v<T, bool>) switch (k) {
        case 0:
          return x < y;
        case 1:
          return x <= y;
        case 2:
          return x > y;
        case 3:
          return x >= y;
        default:
          break;
      }
    return k == 4 ? x == y : x != y;
  }
  template <class To, class From>
  static Rep<To> convert(const Rep<From>& x) {
    return cast<To>(x);
  }
  template <class T>
  static Rep<T> choose(const B& c, const Rep<T>& a, const Rep<T>& b) {
    return select(c, a, b);
  }
  template <class F, class G>
  static auto branch(const B& c, F&& f, G&& g) {
    return IF(c, f, g);
  }
  template <class F>
  static B both(const B& c, F&& f) {
    return AND(c, f);
  }
  template <class F>
  static B either(const B& c, F&& f) {
    return OR(c, f);
  }

  template <class T>
  static L size(const A<T>& a) {
    return a.size();
  }
  template <class T>
  static Rep<T> at(const A<T>& a, const L& i) {
    return a[i];
  }
  template <class T>
  static A<T> set(const A<T>& a, const L& i, const Rep<T>& v) {
    return a.set(i, v);
  }
  static A<double> appended(const A<double>& a, const L& i) {
    return concat(a.slice(0, max(min(i, a.size()), L(0))), a);
  }
  static A<double> filled(const D& x, const L& n) { return fill(x, n); }
  template <class T>
  static Rep<T> sum(const A<T>& a) {
    return lantern::core::sum(a);
  }
  static D dot(const A<double>& a, const A<double>& b) { return lantern::core::dot(a, b); }
  static D largest(const A<double>& a) { return max(a); }
  static L argmax(const A<double>& a) { return lantern::core::argmax(a); }
  static D sum_of_products(const A<double>& a, const D& x) { return lantern::core::sum(a * x + a * a); }

  template <class T, class F, class C>
  static A<T> mapped(int k, const A<T>& a, F&& f, C&& condition) {
    const L size = a.size();
    if constexpr (std::is_floating_point_v<T>)
      if (k == 4) return tanh(a * T(0.5)) + a;
    switch (k) {
      case 1:  // in place
        return FOR(0, size, a, [&](L i, A<T> all) { return all.set(i, f(i, all[i])); });
      case 2:  // with the neighbour
        return FOR(0, size, fill(Rep<T>(T(0)), size), [&](L i, A<T> all) {
          const Rep<T> v = f(i, a[i]);
          return all.set(i, IF(
                                i > 0, [&] { return v + a[i - 1]; }, [&] { return v; }));
        });
      case 3:
        return FOR(0, size, a, [&](L i, A<T> all) {
          return IF(
              condition(i, a[i]), [&] { return all.set(i, f(i, a[i])); }, [&] { return all; });
        });
      default:
        return FOR(0, size, fill(Rep<T>(T(0)), size), [&](L i, A<T> all) { return all.set(i, f(i, a[i])); });
    }
  }
  template <class T, Gather kind, class F, class C, class G>
  static Rep<T> gathered(const L& first, const L& size, const Rep<T>& start, F&& value, C&& condition,
                         G&& combine) {
    return FOR(first, size, start, [&](L i, Rep<T> sum) {
      if constexpr (kind == Gather::sum_where)
        return IF(
            condition(i), [&] { return combine(sum, value(i)); }, [&] { return sum; });
      else
        return combine(sum, value(i));
    });
  }
  template <class C>
  static B every(const L& first, const L& size, C&& condition) {
    return FOR(first, size, B(true), [&](L i, B all) { return AND(condition(i), [&] { return all; }); });
  }
  template <class C>
  static B some(const L& first, const L& size, C&& condition) {
    return FOR(first, size, B(false), [&](L i, B any) { return OR(condition(i), [&] { return any; }); });
  }

  template <class F>
  static Pair steps(const L& hi, const Pair& start, F&& body) {
    const auto [x, m] = FOR(0, hi, std::tuple(start.first, start.second), [&](L i, D y, L k) {
      const Pair p = body(i, y, k);
      return std::tuple(p.first, p.second);
    });
    return {x, m};
  }
  template <class C, class F>
  static Pair until(int most, const Pair& start, C&& condition, F&& body) {
    const auto [x, m, i] = WHILE(
        std::tuple(start.first, start.second, S(0)),
        [&](D y, L k, S j) { return AND(j < most, [&] { return condition(j, y, k); }); },
        [&](D y, L k, S j) {
          const Pair p = body(j, y, k);
          return std::tuple(p.first, p.second, j + 1);
        });
    return {x, m + cast<Long>(i)};
  }
  template <class F>
  static Pair record(int iterations, const Pair& start, F&& body) {
    using Record = MixedRecord<D, L, B>;
    const Record r = FOR(0, iterations, Record{start.first, start.second, B(true)}, [&](L i, D x, L m, B c) {
      const auto [y, k, d] = body(i, x, m, c);
      return Record{y, k, d};
    });
    return {r.x, r.m + cast<Long>(r.c)};
  }
  template <class F>
  static D function(F&& f, const D& x, const L& depth) {
    return FUN<double(double, Long)>("f", [&f](auto self, D y, L k) {
      return f([self](const D& z, const L& less) { return self(z, less); }, y, k);
    })(x, depth);
  }
  template <class F, class G>
  static D mutual(const D& x, const L& n, F&& f, G&& g) {
    Fun<double(double, Long)> first("first"), second("second");
    first.define([&second, &f](D y, L k) {
      return IF(
          k <= 0, [&] { return y; }, [&] { return second(f(y, k), k - 1); });
    });
    second.define([&first, &g](D y, L k) {
      return IF(
          k <= 0, [&] { return -y; }, [&] { return first(g(y, k), k - 1); });
    });
    return first(x, n);
  }
  template <class C, class F, class G>
  static D changed(int iterations, const D& start, C&& condition, F&& set, G&& add) {
    Var<double> v = start;
    FOR(0, iterations, [&](L i) {
      IF(condition(i, v), [&] { v = set(i, v); });
      v += add(i, v);
    });
    return v;
  }
  template <class F>
  static D fold(const D& start, const T& tree, F&& combine) {
    return TREE(start, tree, [&](D l, D r, T node) {
      const auto [v, c] = node.value();
      return combine(l, r, v, c);
    });
  }
  template <class F>
  static D kept(const D& x, F f) {
    return checkpoint([f](D y) { return f(y); })(x);
  }
  static D stopped(const D& x) { return stop_gradient(x); }
};

/// A number and its derivative in a direction.
template <class T>
struct Real {
  T v = 0, d = 0;
  Real() = default;
  Real(T value, T slope = 0) : v(value), d(slope) {}
};

/// An array that is never changed.
template <class E>
class Shared {
 public:
  Shared(std::vector<E> all = {}) : all_(std::make_shared<const std::vector<E>>(std::move(all))) {}
  std::size_t size() const { return all_->size(); }
  const E& operator[](std::size_t i) const { return (*all_)[i]; }
  const std::vector<E>& all() const { return *all_; }

 private:
  std::shared_ptr<const std::vector<E>> all_;
};

/// An index outside, a divisor that is zero, a size below zero.
struct MixedError {};

/// What happened in a run of PlainWorld, and what shall.
struct PlainRun {
  double noise = 0;        ///< every result is off by so much of itself, zeros have any sign
  bool flush = false;      ///< numbers too small for a full mantissa become 0
  bool subnormal = false;  ///< there were some
  bool infinite = false;   ///< there were infinities or NaN, or slopes of them
  bool steep = false;      ///< there were slopes of which few make one that no float holds
  std::mt19937 random{1};
};
inline PlainRun plain_run;

/// Over numbers of C++. Integers wrap; casts to them saturate and take NaN for 0.
struct PlainWorld {
  template <class T>
  using N = std::conditional_t<std::is_floating_point_v<T>, Real<T>, T>;
  template <class T>
  using A = Shared<std::conditional_t<std::is_same_v<T, bool>, char, N<T>>>;
  using T = MixedTree;
  using D = Real<double>;
  using L = Long;
  using S = Short;
  using Pair = std::pair<D, L>;

  /// What an operation reads or makes, before rounding.
  template <class T>
  static Real<T> read(Real<T> x) {
    PlainRun& run = plain_run;
    for (T* part : {&x.v, &x.d}) {
      const bool small = *part != 0 && std::abs(*part) < std::numeric_limits<T>::min();
      run.subnormal |= small;
      run.infinite |= !std::isfinite(*part);
      if (small && run.flush) *part = 0;
    }
    return x;
  }
  template <class T>
  static N<T> note(N<T> x) {
    if constexpr (std::is_floating_point_v<T>) {
      PlainRun& run = plain_run;
      x = read(x);
      if (run.noise == 0) return x;
      for (T* part : {&x.v, &x.d}) {
        const double by = std::uniform_real_distribution<double>(-1, 1)(run.random);
        const double unit = std::is_same_v<T, float> ? 1e8 * run.noise : run.noise;
        *part = *part == 0 ? static_cast<T>(by < 0 ? -0.0 : 0.0) : static_cast<T>(*part * (1 + by * unit));
      }
    }
    return x;
  }
  template <class T>
  static N<T> literal(T v) {
    return v;
  }

  /// Of unsigned numbers nothing overflows.
  template <class T>
  static constexpr auto bits(T v) {
    return static_cast<std::make_unsigned_t<T>>(v);
  }
  template <class T>
  requires(std::is_integral_v<T>) static T unary(int k, T x) {
    switch (k % 4) {
      case 0:
        return static_cast<T>(-bits(x));
      case 1:
        return static_cast<T>(bits(x) * bits(x));
      case 2:
        return std::max(x, static_cast<T>(-bits(x)));
      default:
        return static_cast<T>(x % 7);
    }
  }
  /// f(x) with the slope f'(x), which counts for nothing where nothing comes in.
  template <class T>
  static Real<T> chain(T value, T slope, T d) {
    return {value, term(slope, d)};
  }
  template <class T>
  static T term(T slope, T d) {
    plain_run.infinite |= !std::isfinite(slope);
    plain_run.steep |= std::abs(slope) > T(1e12);
    return d == 0 ? T(0) : slope * d;
  }

  template <class T>
  static Real<T> unary(int k, const Real<T>& a) {
    const T x = a.v, d = a.d;
    switch (k) {
      case 0:
        return {-x, -d};
      case 1:
        return chain(std::fabs(x), static_cast<T>((x > 0) - (x < 0)), d);
      case 2:
        return chain(std::sin(x), std::cos(x), d);
      case 3:
        return chain(std::exp(x), std::exp(x), d);
      case 4:
        return chain(std::log(x), 1 / x, d);
      case 5:
        return chain(std::sqrt(x), T(0.5) / std::sqrt(x), d);
      case 6:
        return chain(std::tanh(x), 1 - std::tanh(x) * std::tanh(x), d);
      case 7:
        return {std::floor(x), 0};
      case 8:
        return {static_cast<T>((x > 0) - (x < 0)), 0};
      case 9:
        return chain(std::log1p(x), 1 / (1 + x), d);
      case 10:
        return chain(std::cos(x), -std::sin(x), d);
      case 11:
        return chain(std::atan(x), 1 / (1 + x * x), d);
      case 12:
        return chain(std::expm1(x), std::exp(x), d);
      case 13:
        return chain(std::erf(x), static_cast<T>(1.1283791670955126) * std::exp(-(x * x)), d);
      case 14:
        return chain(std::cosh(x), std::sinh(x), d);
      default:
        return chain(1 / x, -(1 / x) * (1 / x), d);
    }
  }
  template <class T>
  requires(std::is_integral_v<T>) static T binary(int k, T x, T y) {
    if ((k == 3 || k == 4) && y == 0) throw MixedError();
    switch (k) {
      case 0:
        return static_cast<T>(bits(x) + bits(y));
      case 1:
        return static_cast<T>(bits(x) - bits(y));
      case 2:
        return static_cast<T>(bits(x) * bits(y));
      case 3:
        return static_cast<T>(y == -1 ? -bits(x) : bits(x / y));
      case 4:
        return y == -1 ? T(0) : static_cast<T>(x % y);
      case 5:
        return std::min(x, y);
      case 6:
        return std::max(x, y);
      case 7:
        return static_cast<T>(bits(x) * 3 + bits(y));
      default:
        return static_cast<T>(bits(x) - bits(y) * 5);
    }
  }
  template <class T>
  static Real<T> together(T value, T by_x, T dx, T by_y, T dy) {
    return {value, term(by_x, dx) + term(by_y, dy)};
  }
  template <class T>
  static Real<T> binary(int k, const Real<T>& a, const Real<T>& b) {
    const T x = a.v, y = b.v;
    switch (k) {
      case 0:
        return {x + y, a.d + b.d};
      case 1:
        return {x - y, a.d - b.d};
      case 2:
        return together(x * y, y, a.d, x, b.d);
      case 3:
        return together(x / y, 1 / y, a.d, -(x / y) * (1 / y), b.d);
      case 4: {
        const T c = std::fabs(x), r = std::pow(c, y);
        const T by_c = y == 0 && std::isfinite(std::pow(c, -1)) ? T(0) : y * std::pow(c, y - 1);
        return together(r, by_c * static_cast<T>((x > 0) - (x < 0)), a.d, c == 0 ? T(0) : r * std::log(c),
                        b.d);
      }
      case 5:
        return x <= y || std::isnan(y) ? a : b;
      case 6:
        return x >= y || std::isnan(y) ? a : b;
      case 7:
        return together(std::atan2(x, y), y / (x * x + y * y), a.d, -x / (x * x + y * y), b.d);
      default:
        return together(std::fma(x, y, x), y + 1, a.d, x, b.d);
    }
  }
  template <class T>
  static bool compare(int k, const T& a, const T& b) {
    const auto test = [k](auto x, auto y) {
      switch (k) {
        case 0:
          return x < y;
        case 1:
          return x <= y;
        case 2:
          return x > y;
        case 3:
          return x >= y;
        case 4:
          return x == y;
        default:
          return x != y;
      }
    };
    if constexpr (std::is_integral_v<T>)
      return test(a, b);
    else
      return test(a.v, b.v);
  }
  template <class To, class From>
  static N<To> convert(const From& x) {
    if constexpr (!std::is_integral_v<From>) {
      if constexpr (std::is_floating_point_v<To>)
        return {static_cast<To>(x.v), static_cast<To>(x.d)};
      else if constexpr (std::is_same_v<To, bool>)
        return x.v != 0;
      else {
        using Limits = std::numeric_limits<To>;
        if (std::isnan(x.v)) return 0;
        const double v = static_cast<double>(x.v);
        if (v < static_cast<double>(Limits::min())) return Limits::min();
        if (v >= -static_cast<double>(Limits::min())) return Limits::max();
        return static_cast<To>(v);
      }
    } else if constexpr (std::is_same_v<To, bool>)
      return x != 0;
    else
      return static_cast<To>(x);
  }
  template <class T>
  static T choose(bool c, const T& a, const T& b) {
    return c ? a : b;
  }
  template <class F, class G>
  static auto branch(bool c, F&& f, G&& g) {
    return c ? f() : g();
  }
  template <class F>
  static bool both(bool c, F&& f) {
    return c && f();
  }
  template <class F>
  static bool either(bool c, F&& f) {
    return c || f();
  }

  template <class E>
  static Long size(const Shared<E>& a) {
    return static_cast<Long>(a.size());
  }
  template <class E>
  static std::size_t checked(const Shared<E>& a, Long i) {
    if (i < 0 || i >= size(a)) throw MixedError();
    return static_cast<std::size_t>(i);
  }
  static bool at(const Shared<char>& a, Long i) { return a[checked(a, i)] != 0; }
  template <class E>
  static E at(const Shared<E>& a, Long i) {
    return a[checked(a, i)];
  }
  template <class E, class V>
  static Shared<E> set(const Shared<E>& a, Long i, const V& v) {
    const std::size_t place = checked(a, i);
    std::vector<E> all = a.all();
    all[place] = v;
    return all;
  }
  static A<double> appended(const A<double>& a, Long i) {
    std::vector<D> both(a.all().begin(), a.all().begin() + std::clamp(i, Long{0}, size(a)));
    both.insert(both.end(), a.all().begin(), a.all().end());
    return both;
  }
  static A<double> filled(const D& x, Long n) {
    if (n < 0) throw MixedError();
    return std::vector<D>(static_cast<std::size_t>(n), x);
  }
  /// In some other order where every result is off.
  template <class E>
  static E total(std::vector<E> terms) {
    E all{};
    if constexpr (!std::is_integral_v<E>)
      if (PlainRun& run = plain_run; run.noise != 0) {
        const std::size_t lanes = std::size_t{1} << run.random() % 6;
        if (run.random() % 3 == 0) std::shuffle(terms.begin(), terms.end(), run.random);
        for (std::size_t first = 0; first < lanes; ++first) {
          E lane{};
          for (std::size_t i = first; i < terms.size(); i += lanes)
            lane = noted(binary(0, lane, noted(terms[i])));
          all = noted(binary(0, all, lane));
        }
        return all;
      }
    for (const E& x : terms) all = binary(0, all, x);
    return all;
  }
  template <class T>
  static Real<T> noted(const Real<T>& x) {
    return note<T>(x);
  }
  template <class E>
  static E sum(const Shared<E>& a) {
    std::vector<E> terms = a.all();
    if constexpr (!std::is_integral_v<E>)
      for (E& e : terms) e = read(e);
    return total(std::move(terms));
  }
  template <class F>
  static D summed(const A<double>& a, F&& f) {
    std::vector<D> terms;
    for (const D& e : a.all()) terms.push_back(f(read(e)));
    return total(std::move(terms));
  }
  static D dot(const A<double>& a, const A<double>&) {
    return summed(a, [](const D& e) { return binary(2, e, e); });
  }
  static Long argmax(const A<double>& a) {
    std::size_t best = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double v = read(a[i]).v, before = read(a[best]).v;
      if (v > before || (std::isnan(before) && !std::isnan(v))) best = i;
    }
    return static_cast<Long>(best);
  }
  /// The slope is shared equally by the largest elements.
  static D largest(const A<double>& a) {
    const double most = read(a[static_cast<std::size_t>(argmax(a))]).v;
    double slopes = 0, count = 0;
    for (const D& e : a.all())
      if (const D x = read(e); x.v == most) slopes += x.d, ++count;
    return count == 0 ? a[static_cast<std::size_t>(argmax(a))] : D(most, slopes / count);
  }
  static D sum_of_products(const A<double>& a, const D& x) {
    return summed(a, [&](const D& e) { return binary(0, binary(2, e, x), binary(2, e, e)); });
  }

  template <class T, class F, class C>
  static A<T> mapped(int k, const A<T>& a, F&& f, C&& condition) {
    std::vector<N<T>> all;
    for (Long i = 0; i < size(a); ++i) {
      N<T> old = a[static_cast<std::size_t>(i)];
      if constexpr (std::is_floating_point_v<T>) old = read(old);
      if constexpr (std::is_floating_point_v<T>)
        if (k == 4) {
          all.push_back(binary(0, unary(6, binary(2, old, N<T>(T(0.5)))), old));
          continue;
        }
      if (k == 3 && !condition(i, old)) {
        all.push_back(old);
        continue;
      }
      const N<T> v = f(i, old);
      all.push_back(k == 2 && i > 0 ? binary(0, v, a[static_cast<std::size_t>(i - 1)]) : v);
    }
    return all;
  }
  template <class T, Gather kind, class F, class C, class G>
  static N<T> gathered(Long first, Long size, const N<T>& start, F&& value, C&& condition, G&& combine) {
    if constexpr (kind == Gather::all) {
      N<T> sum = start;
      for (Long i = first; i < size; ++i) sum = combine(sum, value(i));
      return sum;
    } else {
      std::vector<N<T>> terms{start};
      for (Long i = first; i < size; ++i)
        if (kind == Gather::sum || condition(i)) terms.push_back(value(i));
      return total(std::move(terms));
    }
  }
  template <class C>
  static bool every(Long first, Long size, C&& condition) {
    bool all = true;
    for (Long i = first; i < size; ++i) all = condition(i) && all;
    return all;
  }
  template <class C>
  static bool some(Long first, Long size, C&& condition) {
    bool any = false;
    for (Long i = first; i < size; ++i) any = condition(i) || any;
    return any;
  }

  template <class F>
  static Pair steps(Long hi, Pair p, F&& body) {
    for (Long i = 0; i < hi; ++i) p = body(i, p.first, p.second);
    return p;
  }
  template <class C, class F>
  static Pair until(int most, Pair p, C&& condition, F&& body) {
    Short i = 0;
    for (; i < most && condition(i, p.first, p.second); ++i) p = body(i, p.first, p.second);
    return {p.first, binary(0, p.second, Long{i})};
  }
  template <class F>
  static Pair record(int iterations, const Pair& p, F&& body) {
    std::tuple<D, Long, bool> r(p.first, p.second, true);
    for (Long i = 0; i < iterations; ++i) r = body(i, std::get<0>(r), std::get<1>(r), std::get<2>(r));
    return {std::get<0>(r), binary(0, std::get<1>(r), Long{std::get<2>(r)})};
  }
  template <class F>
  static D function(F&& f, const D& x, Long depth) {
    const std::function<D(D, Long)> self = [&](D y, Long k) { return f(self, y, k); };
    return self(x, depth);
  }
  template <class F, class G>
  static D mutual(D x, Long n, F&& f, G&& g) {
    bool first = true;
    for (; n > 0; --n, first = !first) x = first ? f(x, n) : g(x, n);
    return first ? x : unary(0, x);
  }
  template <class C, class F, class G>
  static D changed(int iterations, D v, C&& condition, F&& set, G&& add) {
    for (Long i = 0; i < iterations; ++i) {
      if (condition(i, v)) v = set(i, v);
      v = binary(0, v, add(i, v));
    }
    return v;
  }
  template <class F>
  static D fold(const D& start, const T& tree, F&& combine) {
    if (tree.empty()) return start;
    const D l = fold(start, tree.left(), combine), r = fold(start, tree.right(), combine);
    const auto [v, c] = tree.value();
    return combine(l, r, D(v), c);
  }
  template <class F>
  static D kept(const D& x, F&& f) {
    return f(x);
  }
  static D stopped(const D& x) { return {x.v, 0}; }
};

}  // namespace lantern::test
