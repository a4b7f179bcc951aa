// The specification of differentiation (de Vilhena and Pottier, Statements 2.1 and 2.2) as a test: if e
// represents E, then diff(e) represents E', for each implementation of diff, over commutative semirings.
//
// Whether a program represents E is decided in the free commutative semiring: polynomials with natural
// coefficients. Equal there is equal in every commutative semiring. All expressions up to a size are tried,
// and random larger ones.
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "depth.hpp"
#include "lantern/compiler/ad/semiring/diff.hpp"
#include "lantern/compiler/ad/semiring/over.hpp"
#include "lantern/compiler/ad/semiring/semirings.hpp"
#include "lantern/compiler/control/control.hpp"
#include "lantern/ir/error.hpp"
#include "semiring_terms.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::semiring;
using namespace lantern::test::terms;

namespace {

struct Diff {
  const char* name;
  Expression (*apply)(const Expression&);
};
/// The four for expressions.
const std::vector<Diff>& library() {
  static const std::vector<Diff> all{{"dual numbers", diff_by_dual_numbers},
                                     {"stack", diff_by_stack},
                                     {"handlers", diff_by_handlers},
                                     {"shift", diff_by_shift}};
  return all;
}
/// These, and the product's gradient by each of its modes: by the rule of its paper, and by a fast path where
/// it has one of its own.
const std::vector<Diff>& diffs() {
  static const std::vector<Diff> all = [] {
    std::vector<Diff> both = library();
    const Diff modes[] = {
        {"mode::reverse", diff_by_mode<mode::reverse, form::literal>},
        {"mode::forward", diff_by_mode<mode::forward, form::literal>},
        {"mode::cps", diff_by_mode<mode::cps, form::literal>},
        {"mode::global_tape", diff_by_mode<mode::global_tape, form::literal>},
        {"mode::functional", diff_by_mode<mode::functional, form::literal>},
        {"mode::continuation", diff_by_mode<mode::continuation, form::literal>},
        {"mode::taped", diff_by_mode<mode::taped, form::literal>},
        {"mode::checkpointed", diff_by_mode<mode::checkpointed, form::literal>},
        {"mode::closures", diff_by_mode<mode::closures, form::literal>},
        {"mode::checkpointed_closures", diff_by_mode<mode::checkpointed_closures, form::literal>},
        {"mode::divide_and_conquer", diff_by_mode<mode::divide_and_conquer, form::literal>},
        {"mode::reverse, fast", diff_by_mode<mode::reverse, form::fast>},
        {"mode::forward, fast", diff_by_mode<mode::forward, form::fast>},
        {"mode::taped, fast", diff_by_mode<mode::taped, form::fast>},
    };
    both.insert(both.end(), std::begin(modes), std::end(modes));
    return both;
  }();
  return all;
}

/// One runs the program many times, the other costs what the paths through it cost.
bool for_long_programs(const Diff& d) {
  return d.name != std::string("mode::divide_and_conquer") && d.name != std::string("mode::continuation");
}

const Polynomial X = Polynomial::variable(0);

/// e represents E, as far as polynomials tell: everywhere.
bool represents(const Expression& e, const Polynomial& expected) {
  return e.eval(polynomials(), X) == expected;
}

void check_represents(const std::string& what, const Expression& e, const Polynomial& expected) {
  const Polynomial found = e.eval(polynomials(), X);
  if (found == expected) return;
  FAIL_CHECK(what << ": expected " << expected.str() << ", got " << found.str());
}

/// X^k by repeated squaring (Fig. 3): loops and mutation.
Expression monomial(unsigned k) {
  return Expression([k](const R& r, Number x) {
    Number result = r.one;
    for (unsigned n = k; n > 0; n /= 2) {
      result = result * (n % 2 == 0 ? r.one : x);
      x = x * x;
    }
    return result;
  });
}

Polynomial power(const Polynomial& base, unsigned k) {
  Polynomial p(1);
  for (unsigned i = 0; i < k; ++i) p = p * base;
  return p;
}

template <class Run>
std::string error_of(const Run& run) {
  try {
    run();
  } catch (const Error& e) {
    const std::string message = e.what();
    const auto at = message.find("error: ");
    return at == std::string::npos ? message : message.substr(at + 7);
  }
  return "no error";
}

}  // namespace

// ---- the paper's examples ----

TEST_CASE("the cube of x + 1 (Fig. 2)", "[semiring]") {
  const Expression cube([](const R& r, const Number& x) {
    const Number y = x + r.one;
    return y * y * y;
  });
  CHECK(cube.eval(reals(), 4.0) == 125.0);
  for (const Diff& d : diffs()) {
    INFO(d.name);
    CHECK(d.apply(cube).eval(reals(), 4.0) == 75.0);
    CHECK(d.apply(cube).eval(polynomials(), X).str() == "3 X^2 + 6 X + 3");
  }
}

TEST_CASE("monomials (Fig. 3): loops and mutation in the host language", "[semiring]") {
  for (unsigned k = 0; k <= 40; ++k) {
    REQUIRE(represents(monomial(k), power(X, k)));
    for (const Diff& d : diffs()) {
      const Polynomial expected = k == 0 ? Polynomial() : Polynomial(k) * power(X, k - 1);
      check_represents(std::string(d.name) + " of X^" + std::to_string(k), d.apply(monomial(k)), expected);
    }
  }
}

TEST_CASE("recursion, data structures and effects of the host language", "[semiring]") {
  // T(0) = 1, T(n) = sum over i < n of T(i) x T(n - 1 - i): the generating function of binary trees, by
  // recursion.
  struct Trees {
    const R& r;
    const Number& x;
    Number operator()(unsigned n) const {
      if (n == 0) return r.one;
      Number sum = r.zero;
      for (unsigned i = 0; i < n; ++i) sum = sum + (*this)(i)*x * (*this)(n - 1 - i);
      return sum;
    }
  };
  const Expression trees([](const R& r, const Number& x) { return Trees{r, x}(6); });
  // Horner's rule over a vector of naturals, the coefficients by repeated addition of one.
  const Expression horner([](const R& r, const Number& x) {
    const std::vector<unsigned> coefficients{7, 0, 3, 1, 4};
    Number y = r.zero;
    for (unsigned c : coefficients) {
      y = y * x;
      for (unsigned i = 0; i < c; ++i) y = y + r.one;
    }
    return y;
  });
  // State as an effect that the program handles itself, around and between operations.
  struct Get : Effect<Number()> {};
  struct Put : Effect<void(Number)> {};
  const Expression stateful([](const R& r, const Number& x) {
    Number state = r.one;
    return handle(
        [&] {
          for (int i = 0; i < 5; ++i) perform<Put>(perform<Get>() * x + r.one);
          return perform<Get>() * perform<Get>();
        },
        on<Get>([&](auto k) { return k(state); }), on<Put>([&](const Number& s, auto k) {
          state = s;
          return k();
        }));
  });
  // A continuation of its own that it drops: what was computed there does not count.
  const Expression dropping([](const R&, const Number& x) {
    Prompt<Number> p;
    return reset(p, [&] {
      const Number y = x * x;
      shift<int>(p, [y](auto) { return y * y; });
      return y * y * y;
    });
  });

  const Polynomial geometric = power(X, 5) + power(X, 4) + power(X, 3) + power(X, 2) + X + Polynomial(1);
  const std::pair<const Expression&, Polynomial> cases[] = {
      {trees, Polynomial(132) * power(X, 6)},
      {horner, Polynomial(7) * power(X, 4) + Polynomial(3) * power(X, 2) + X + Polynomial(4)},
      {stateful, geometric * geometric},
      {dropping, power(X, 4)}};
  for (const auto& [e, expected] : cases) {
    REQUIRE(represents(e, expected));
    for (const Diff& d : diffs()) check_represents(d.name, d.apply(e), expected.derivative(0));
    for (const Diff& outer : diffs())
      for (const Diff& inner : diffs())
        check_represents(std::string(outer.name) + " of " + inner.name, outer.apply(inner.apply(e)),
                         expected.derivative(0).derivative(0));
  }
}

// ---- the specification ----

TEST_CASE("the derivative of the definition is the formal derivative of the polynomial", "[semiring]") {
  for (std::size_t n = 1; n <= 5; ++n)
    for (const E& e : expressions(n))
      if (value(derivative(e), polynomials(), X) != value(e, polynomials(), X).derivative(0)) FAIL(str(e));
}

/// Of the largest programs a deep run tries all, and the suite one in ten.
const std::size_t tenth = lantern::test::deep() ? 1 : 10;

TEST_CASE("all expressions of up to five leaves, and of six up to the order of operands", "[semiring]") {
  std::size_t count = 0;
  const auto check = [&](const E& e, const std::vector<Diff>& tried, bool largest = false) {
    if (++count % (largest ? tenth : 1) != 0) return;
    const Polynomial expected = value(derivative(e), polynomials(), X);
    for (const Diff& d : tried)
      if (!represents(d.apply(expression(e)), expected)) FAIL_CHECK(d.name << " of " << str(e));
  };
  for (const E& e : unordered_expressions(5)) check(e, diffs());
  count = 0;
  for (std::size_t n = 1; n <= 5; ++n)
    for (const E& e : expressions(n)) check(e, n <= 4 ? diffs() : library(), n == 5);
  CHECK(count == 3 + 18 + 216 + 3240 + 54432);
  for (const E& e : unordered_expressions(6)) check(e, library(), true);
  CHECK(count == 3 + 18 + 216 + 3240 + 54432 + 50904);
}

TEST_CASE("diff of diff, for all expressions of up to four leaves", "[semiring]") {
  for (std::size_t n = 1; n <= 4; ++n)
    for (const E& e : expressions(n)) {
      const Polynomial second = value(derivative(derivative(e)), polynomials(), X);
      const std::vector<Diff>& tried = n <= 3 ? diffs() : library();
      for (const Diff& outer : tried)
        for (const Diff& inner : tried)
          if (!represents(outer.apply(inner.apply(expression(e))), second))
            FAIL_CHECK(outer.name << " of " << inner.name << " of " << str(e));
    }
}

TEST_CASE("diff of diff of diff, for all expressions of up to three leaves", "[semiring]") {
  for (std::size_t n = 1; n <= 3; ++n)
    for (const E& e : expressions(n)) {
      const Polynomial third = value(derivative(derivative(derivative(e))), polynomials(), X);
      const std::vector<Diff>& tried = n <= 2 ? diffs() : library();
      for (const Diff& a : tried)
        for (const Diff& b : tried)
          for (const Diff& c : tried)
            if (!represents(a.apply(b.apply(c.apply(expression(e)))), third))
              FAIL_CHECK(a.name << " of " << b.name << " of " << c.name << " of " << str(e));
    }
}

namespace {

/// A straight-line program, S ::= let u = a op b in S | y (section 3.2). Operands: 0, 1, X, then the bindings
/// in order. Unlike trees these share.
struct Binding {
  char op;
  std::size_t a, b;
};
struct StraightLine {
  std::vector<Binding> bindings;
  std::size_t y = 0;

  template <class V>
  V value(const Dictionary<V>& r, const V& x) const {
    std::vector<V> values{r.zero, r.one, x};
    for (const auto& [op, a, b] : bindings)
      values.push_back(op == '+' ? r.add(values[a], values[b]) : r.mul(values[a], values[b]));
    return values[y];
  }
  Expression program() const {
    return Expression([self = *this](const R& r, const Number& x) { return self.value(r, x); });
  }
  std::string str() const {
    const auto name = [](std::size_t i) {
      return i == 0 ? "0" : i == 1 ? "1" : i == 2 ? "X" : "u" + std::to_string(i - 2);
    };
    std::string text;
    for (std::size_t i = 0; i < bindings.size(); ++i)
      text += "let " + name(i + 3) + " = " + name(bindings[i].a) + " " + bindings[i].op + " " +
              name(bindings[i].b) + " in ";
    return text + name(y);
  }
};

/// Calls each(program) for every straight-line program of n bindings that returns its last; with the operands
/// of an operation in both orders, or in one.
template <class Each>
void for_each_straight_line(std::size_t n, bool both_orders, StraightLine& s, const Each& each) {
  const std::size_t defined = s.bindings.size() + 3;
  if (s.bindings.size() == n) {
    s.y = defined - 1;
    return each(s);
  }
  for (char op : {'+', '*'})
    for (std::size_t a = 0; a < defined; ++a)
      for (std::size_t b = both_orders ? 0 : a; b < defined; ++b) {
        s.bindings.push_back({op, a, b});
        for_each_straight_line(n, both_orders, s, each);
        s.bindings.pop_back();
      }
}

}  // namespace

TEST_CASE("all straight-line programs of up to four bindings", "[semiring]") {
  std::size_t count = 0;
  for (std::size_t n = 0; n <= 4; ++n) {
    StraightLine s;
    for_each_straight_line(n, n <= 3, s, [&](const StraightLine& p) {
      if (++count % (n == 4 ? tenth : 1) != 0) return;
      const Polynomial e = p.value(polynomials(), X), expected = e.derivative(0);
      for (const Diff& d : n <= 3 ? diffs() : library())
        if (!represents(d.apply(p.program()), expected)) FAIL_CHECK(d.name << " of " << p.str());
      if (n < 3)
        for (const Diff& outer : diffs())
          for (const Diff& inner : diffs())
            if (!represents(outer.apply(inner.apply(p.program())), expected.derivative(0)))
              FAIL_CHECK(outer.name << " of " << inner.name << " of " << p.str());
    });
  }
  CHECK(count == 1 + 18 + 18 * 32 + 18 * 32 * 50 + 12 * 20 * 30 * 42);
}

namespace {

/// Programs of up to `longest` bindings; later bindings are preferred as operands, so that little is dead.
StraightLine random_straight_line(std::mt19937& random, std::size_t longest) {
  StraightLine s;
  const std::size_t n = 1 + random() % longest;
  for (std::size_t i = 0; i < n; ++i) {
    const auto operand = [&] {
      const std::size_t defined = i + 3;
      return random() % 3 == 0 ? random() % defined
                               : defined - 1 - random() % std::min<std::size_t>(defined, 3);
    };
    const std::size_t a = operand();
    s.bindings.push_back({random() % 5 < 3 ? '+' : '*', a, operand()});
  }
  s.y = n + 2;
  return s;
}

}  // namespace

TEST_CASE("random straight-line programs, as polynomials", "[semiring]") {
  std::mt19937 random(1);
  int compared = 0;
  const int programs = lantern::test::deep() ? 2000 : 500;
  for (int i = 0; i < programs; ++i) {
    const StraightLine s = random_straight_line(random, 12);
    Polynomial first, second;
    try {
      first = s.value(polynomials(), X).derivative(0);
      second = first.derivative(0);
      for (const Diff& d : diffs())
        check_represents(std::string(d.name) + " of " + s.str(), d.apply(s.program()), first);
      const std::vector<Diff>& tried = i < 100 ? diffs() : library();
      for (const Diff& outer : tried)
        for (const Diff& inner : tried)
          check_represents(std::string(outer.name) + " of " + inner.name + " of " + s.str(),
                           outer.apply(inner.apply(s.program())), second);
      ++compared;
    } catch (const Error& e) {
      REQUIRE(std::string(e.what()) == "semiring: expected natural numbers below 2^64, got a larger one");
    }
  }
  CHECK(compared > programs * 9 / 10);
}

TEST_CASE("long random programs, modulo a prime", "[semiring]") {
  // Against the derivative as the slope of a line: E(x + h) = E(x) + E'(x) h, modulo h^2, with h a second
  // variable.
  constexpr std::uint64_t p = 4'294'967'291;
  struct Line {
    std::uint64_t at, slope;
  };
  const auto field = integers_modulo(p);
  const Dictionary<Line> lines{
      {0, 0},
      {1, 0},
      [&](const Line& a, const Line& b) {
        return Line{field.add(a.at, b.at), field.add(a.slope, b.slope)};
      },
      [&](const Line& a, const Line& b) {
        return Line{field.mul(a.at, b.at), field.add(field.mul(a.at, b.slope), field.mul(a.slope, b.at))};
      }};
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i) {
    const StraightLine s = random_straight_line(random, 2000);
    const std::uint64_t x = random() % p, expected = s.value(lines, {x, 1}).slope;
    for (const Diff& d : diffs())
      if (for_long_programs(d) && d.apply(s.program()).eval(field, x) != expected)
        FAIL_CHECK(d.name << " of a program of " << s.bindings.size());
  }
}

TEST_CASE("a million operations", "[semiring]") {
  // Not a stack overflow in reverse mode: x + 1 + ... + 1, then times x.
  const Expression sum([](const R& r, const Number& x) {
    Number y = x;
    for (int i = 0; i < 1'000'000; ++i) y = y + r.one;
    return y * x;
  });
  for (const Diff& d : diffs()) {
    INFO(d.name);
    if (!for_long_programs(d)) continue;
    CHECK(d.apply(sum).eval(reals(), 3.0) == 1'000'006.0);
  }
}

namespace {

/// E' by the definition and diff(e) have the same value, in the semiring r at each of the points.
template <class V>
void check_in(const std::string& semiring, const Dictionary<V>& r, const std::vector<V>& points) {
  for (std::size_t n = 1; n <= 4; ++n)
    for (const E& e : expressions(n))
      for (const V& x : points) {
        if (expression(e).eval(r, x) != value(e, r, x)) FAIL_CHECK(str(e) << " in " << semiring);
        for (const Diff& d : n <= 3 ? diffs() : library())
          if (d.apply(expression(e)).eval(r, x) != value(derivative(e), r, x))
            FAIL_CHECK(d.name << " of " << str(e) << " in " << semiring);
      }
}

}  // namespace

TEST_CASE("in other semirings the same equation holds", "[semiring]") {
  check_in<double>("the reals", reals(), {0.0, -2.0, 3.0});
  check_in<std::uint64_t>("the integers modulo 2", integers_modulo(2), {0, 1});
  check_in<std::uint64_t>("the integers modulo 6", integers_modulo(6), {0, 2, 3, 5});
  check_in<double>("min-plus", min_plus(), {0.0, 2.0, min_plus().zero});
  check_in<double>("max-plus", max_plus(), {0.0, -2.0, max_plus().zero});
  check_in<bool>("the booleans", booleans(), {false, true});
  check_in<Polynomial>("polynomials in X, Y and Z", polynomials(),
                       {Polynomial::variable(1) + X * Polynomial::variable(2), Polynomial(3)});
}

TEST_CASE("the chain rule (Lemma 6.2)", "[semiring]") {
  const auto compose = [](const Expression& e, const Expression& f) {
    return Expression([e, f](const R& r, const Number& x) { return e.eval(r, f.eval(r, x)); });
  };
  const auto times = [](const Expression& e, const Expression& f) {
    return Expression([e, f](const R& r, const Number& x) { return e.eval(r, x) * f.eval(r, x); });
  };
  for (const Diff& d : diffs())
    for (unsigned i = 0; i < 4; ++i)
      for (const E& tree : expressions(3)) {
        const Expression e = expression(tree), f = monomial(i);
        const Polynomial left = d.apply(compose(e, f)).eval(polynomials(), X);
        const Polynomial right = times(compose(d.apply(e), f), d.apply(f)).eval(polynomials(), X);
        if (left != right) FAIL_CHECK(d.name << " of " << str(tree) << " after X^" << i);
      }
}

TEST_CASE("polynomials", "[semiring]") {
  const Polynomial Y = Polynomial::variable(1), W = Polynomial::variable(3);
  CHECK(((X + Y) * (X + Y)).str() == "X^2 + 2 X Y + Y^2");
  CHECK((X * Polynomial(0)).str() == "0");
  CHECK((W + Polynomial(7)).str() == "X3 + 7");
  CHECK((X * X * Y).derivative(0).str() == "2 X Y");
  CHECK((X * X * Y).derivative(1).str() == "X^2");
  CHECK((X * X * Y).derivative(2) == Polynomial());
  CHECK((Polynomial(3) * X + Polynomial(2)).str() == "3 X + 2");
  const Polynomial big(std::uint64_t{1} << 63);
  CHECK(error_of([&] { big + big; }) == "semiring: expected natural numbers below 2^64, got a larger one");
  CHECK(error_of([&] { big* Polynomial(2); }) ==
        "semiring: expected natural numbers below 2^64, got a larger one");
}

// ---- the discipline of effects ----

namespace {

struct Ask : Effect<int()> {};

/// Both as it is and under every diff.
template <class Each>
void for_each_way(const Expression& e, const Each& each) {
  {
    INFO("evaluated");
    each(e);
  }
  for (const Diff& d : diffs()) {
    INFO(d.name);
    each(d.apply(e));
  }
  for (const Diff& d : diffs()) {
    INFO(d.name << " of handlers");
    each(d.apply(diff_by_handlers(e)));
  }
}

}  // namespace

TEST_CASE("a program may not perform effects other than those of its operations", "[semiring]") {
  const Expression asking([](const R&, const Number& x) {
    const Number y = x * x;
    return perform<Ask>() == 0 ? y : y * x;
  });
  for_each_way(asking, [](const Expression& e) {
    const std::string message =
        error_of([&] { handle([&] { return e.eval(reals(), 2.0); }, on<Ask>([](auto k) { return k(0); })); });
    CHECK(message.find("Ask inside the barrier around this computation, got none") != std::string::npos);
  });

  Prompt<double> outside;
  const Expression escaping([&outside](const R&, const Number& x) {
    const Number y = x * x;
    shift<int>(outside, [](auto) { return 7.0; });  // abandons the evaluation, with whatever is around it
    return y;
  });
  for_each_way(escaping, [&](const Expression& e) {
    const std::string message = error_of([&] { reset(outside, [&] { return e.eval(reals(), 2.0); }); });
    CHECK(message ==
          "shift: expected a reset of this prompt inside the barrier around this computation, got none; what "
          "runs there "
          "may use the operations it was given, and control operators of its own");
  });
}

TEST_CASE("the operations may perform effects, which pass through the program", "[semiring]") {
  // Operations that ask the outside: "whatever effects add and mul may perform, eval may perform".
  struct Count : Effect<void()> {};
  const Dictionary<Polynomial> counting{Polynomial(), Polynomial(1),
                                        [](const Polynomial& a, const Polynomial& b) {
                                          perform<Count>();
                                          return a + b;
                                        },
                                        [](const Polynomial& a, const Polynomial& b) {
                                          perform<Count>();
                                          return a * b;
                                        }};
  for_each_way(monomial(5), [&](const Expression& e) {
    int operations = 0;
    const Polynomial result = handle([&] { return e.eval(counting, X); }, on<Count>([&](auto k) {
                                       ++operations;
                                       return k();
                                     }));
    CHECK(result == e.eval(polynomials(), X));
    CHECK(operations > 0);
  });
}

TEST_CASE("an operation whose continuation is lost ends the evaluation and all within", "[semiring]") {
  struct GiveUp : Effect<double()> {};
  static int alive = 0;
  struct Counted {
    Counted() { ++alive; }
    Counted(const Counted&) { ++alive; }
    ~Counted() { --alive; }
  };
  int operations = 0;
  const Dictionary<double> failing{
      0.0, 1.0, [](double a, double b) { return a + b; },
      [&](double a, double b) { return ++operations == 3 ? perform<GiveUp>() : a * b; }};
  const Expression e([](const R& r, const Number& x) {
    const Counted here;
    Number y = r.one;
    for (int i = 0; i < 5; ++i) y = y * x + x;
    return y;
  });
  for_each_way(e, [&](const Expression& way) {
    operations = 0;
    const double result =
        handle([&] { return way.eval(failing, 2.0); }, on<GiveUp>([](auto) { return -1.0; }));
    CHECK(result == -1.0);
    CHECK(alive == 0);
    // What was abandoned does not disturb what comes after.
    CHECK(diff_by_handlers(e).eval(reals(), 2.0) == diff_by_stack(e).eval(reals(), 2.0));
  });
}

TEST_CASE("a continuation is resumed once", "[semiring]") {
  // Nondeterminism would need the rest of the program twice.
  struct Choose : Effect<bool()> {};
  const Expression both([](const R&, const Number& x) {
    return handle([&] { return perform<Choose>() ? x * x : x; }, on<Choose>([](auto k) {
                    const Number first = k(true);
                    return first + k(false);
                  }));
  });
  for_each_way(both, [](const Expression& e) {
    CHECK(error_of([&] { e.eval(reals(), 2.0); }).find("a continuation may be resumed only once") !=
          std::string::npos);
  });
}

TEST_CASE("the continuation of an operation is resumed once", "[semiring]") {
  // An operation whose effect would give it two results: the program, and what diff makes of it, goes on
  // once.
  struct Question : Effect<double()> {};
  const Dictionary<double> asking{0.0, 1.0, [](double a, double b) { return a + b; },
                                  [](double a, double b) { return a * b * perform<Question>(); }};
  int entered = 0;
  const Expression e([&entered](const R& r, const Number& x) {
    ++entered;
    return x * x + r.one;
  });
  for_each_way(e, [&](const Expression& way) {
    entered = 0;
    way.eval(reals(), 2.0);
    const int once = std::exchange(entered, 0);  // mode::divide_and_conquer runs the program several times
    const auto answered = [&](int times) {
      return handle([&] { return way.eval(asking, 2.0); }, on<Question>([&, times](auto k) {
                      double result = k(1.0);
                      for (int i = 1; i < times; ++i) result += k(1.0);
                      return result;
                    }));
    };
    CHECK(answered(1) == way.eval(reals(), 2.0));
    CHECK(entered == 2 * once);
    CHECK(error_of([&] { answered(2); }).find("a continuation may be resumed only once") !=
          std::string::npos);
  });
}

TEST_CASE("numbers and operations do not outlive their evaluation", "[semiring]") {
  Number kept;
  const Expression keeping([&kept](const R&, const Number& x) { return kept = x * x; });
  const std::string ended =
      "semiring: expected an operation during the evaluation, got one after it ended; an expression may not "
      "keep its "
      "numbers or operations";
  for_each_way(keeping, [&](const Expression& e) {
    e.eval(reals(), 2.0);
    CHECK(error_of([&] { kept* kept; }) == ended);
  });
  std::optional<R> operations;
  const Expression lending([&operations](const R& r, const Number& x) {
    operations = r;
    return x;
  });
  for_each_way(lending, [&](const Expression& e) {
    e.eval(reals(), 2.0);
    CHECK(error_of([&] { operations->add(operations->one, operations->one); }) == ended);
  });
  kept = Number();
  operations.reset();
}

TEST_CASE("numbers of two evaluations do not mix", "[semiring]") {
  const std::string mixed =
      "semiring: expected a number of this evaluation, got one of another; an expression sees the numbers it "
      "is given and "
      "no others";
  // What the types of the paper forbid: the inner expression closes over the outer variable.
  for (const Diff& d : diffs()) {
    const Expression confused([&d](const R& r, const Number& x) {
      return x * d.apply(Expression([&x](const R&, const Number& y) { return x + y; })).eval(r, r.one);
    });
    INFO(d.name);
    CHECK(error_of([&] { confused.eval(reals(), 1.0); }) == mixed);
    CHECK(error_of([&] { d.apply(confused).eval(reals(), 1.0); }) == mixed);
  }
  const Expression wrong([](const R& r, const Number&) {
    return Expression([&r](const R&, const Number&) { return r.one; }).eval(r, r.one);
  });
  CHECK(error_of([&] { wrong.eval(reals(), 1.0); }) == mixed);
  const Expression nothing([](const R&, const Number& x) { return x + Number(); });
  CHECK(error_of([&] { nothing.eval(reals(), 1.0); }) ==
        "semiring: expected a number, got one that was never given a value");
}

TEST_CASE("exceptions of the program pass through", "[semiring]") {
  const Expression throwing([](const R&, const Number& x) -> Number {
    const Number y = x * x;
    throw std::runtime_error("no value");
  });
  for_each_way(throwing, [](const Expression& e) { CHECK_THROWS_WITH(e.eval(reals(), 2.0), "no value"); });
}

// ---- barriers by themselves ----

TEST_CASE("a barrier", "[semiring]") {
  Barrier barrier;
  const auto ask = [&] {
    const Barrier::Opened during(barrier);
    return perform<Ask>();
  };
  const auto answer = [](auto body) { return handle(body, on<Ask>([](auto k) { return k(20); })); };
  CHECK(answer([&] { return barrier.run([&] { return ask() + ask() + 2; }); }) == 42);
  CHECK(error_of([&] {
          answer([&] { return barrier.run([&] { return perform<Ask>(); }); });
        }).find("Ask inside the barrier") != std::string::npos);
  // After an operation the barrier is closed again.
  CHECK(error_of([&] {
          answer([&] { return barrier.run([&] { return ask() + perform<Ask>(); }); });
        }).find("Ask inside the barrier") != std::string::npos);
  // Handlers inside are fine, and so are barriers in barriers, if all are open.
  CHECK(barrier.run([&] { return answer([] { return perform<Ask>() + 1; }); }) == 21);
  Barrier inner;
  const auto twice = [&] {
    return answer([&] {
      return barrier.run([&] {
        return inner.run([&] {
          const Barrier::Opened during(inner);
          return ask();
        });
      });
    });
  };
  CHECK(twice() == 20);
  CHECK(error_of([&] {
          answer([&] { return barrier.run([&] { return inner.run(ask); }); });
        }).find("Ask inside the barrier") != std::string::npos);
  barrier.run([] {});
  CHECK_THROWS_WITH(barrier.run([]() -> int { throw std::runtime_error("passes"); }), "passes");
}
