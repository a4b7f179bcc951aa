// Random well-formed programs in the user's language: a syntax tree made from a seed, run over Rep by an
// interpreter.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lantern/lantern.hpp"

namespace lantern::test {

/// An expression of type double over an environment of numbers, integers and one array.
struct SourceNode {
  enum class Kind {
    constant,
    number,
    element,
    unary,
    binary,
    choose,
    branch,
    pair_branch,
    loop,
    for_loop,
    variable,
    function,
    self,
    derivative,
    update,
  };
  Kind kind = Kind::constant;
  double value = 0;
  int index = 0;
  std::vector<std::unique_ptr<SourceNode>> parts;

  std::string str() const {
    static const char* const names[] = {"",      "x",   "a",   "u",   "b",    "choose", "IF", "IF2",
                                        "WHILE", "FOR", "VAR", "FUN", "self", "grad",   "set"};
    std::string text = kind == Kind::constant ? std::to_string(value)
                                              : names[static_cast<int>(kind)] + std::to_string(index);
    if (parts.empty()) return text;
    text += "(";
    for (const auto& p : parts) text += (p == parts.front() ? "" : ", ") + p->str();
    return text + ")";
  }
};

/// Makes programs; the same seed gives the same program.
class RandomSource {
 public:
  using Node = SourceNode;
  using Kind = Node::Kind;
  using Pointer = std::unique_ptr<Node>;

  /// About `size` inner nodes. Where poles are asked for, half of the functions of one number have infinite slopes where they are
  /// finite.
  RandomSource(unsigned seed, int size, bool poles = false) : random_(seed), budget_(size), poles_(poles) {}
  /// A program over `numbers` numbers, one integer and an array.
  Pointer program(int numbers) { return expression({numbers, 1, false}, 5); }

 private:
  struct Scope {
    int numbers, integers;
    bool self;  ///< inside a FUN: it may call itself
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Pointer make(Kind kind, int index = 0) {
    auto n = std::make_unique<Node>();
    n->kind = kind;
    n->index = index;
    return n;
  }

  Pointer leaf(const Scope& s) {
    const int which = below(10);
    if (which < 7) return make(Kind::number, below(s.numbers));
    if (which < 9) return make(Kind::element, below(3 + s.integers));  // a constant index, or an integer's
    Pointer n = make(Kind::constant);
    n->value = 0.25 * (below(15) - 7);
    return n;
  }

  Pointer expression(Scope s, int depth) {
    if (depth == 0 || --budget_ < 0) return leaf(s);
    const auto with = [&](Kind kind, int index, std::initializer_list<Scope> scopes) {
      Pointer n = make(kind, index);
      for (const Scope& inner : scopes) n->parts.push_back(expression(inner, depth - 1));
      return n;
    };
    const Scope more{s.numbers + 1, s.integers, s.self}, two{s.numbers + 2, s.integers + 1, s.self},
        iteration{s.numbers + 1, s.integers + 1, s.self};
    switch (below(22)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return with(Kind::unary, (poles_ ? 6 + below(10) : below(8)), {s});
      case 4:
      case 5:
      case 6:
      case 7:
      case 8:
        return with(Kind::binary, below(6), {s, s});
      case 9:
        return with(Kind::choose, 0, {s, s, s, s});
      case 10:
      case 11:
        return with(Kind::branch, below(3), {s, s, s, s});
      case 12:
        return with(Kind::pair_branch, 0, {s, s, s, s, s, two});
      case 13:
      case 14:
        return with(Kind::loop, below(4), {s, s, two, two, two, two});
      case 15:
      case 16:
        return with(Kind::for_loop, below(4), {s, iteration});
      case 17:
      case 18:
        return with(Kind::variable, below(4), {s, iteration, iteration, iteration, more});
      case 19:
        return function(s, depth);
      case 20:
        if (derivatives_-- > 0) return with(Kind::derivative, below(2), {s, more});
        return leaf(s);
      default:
        if (s.self && self_calls_-- > 0) return with(Kind::self, below(2), {s, s});
        return with(Kind::update, below(3), {s, s});
    }
  }

  // FUN(x0, x1, n): the base case, and a step that may call itself; with the arguments of the first call.
  Pointer function(const Scope& s, int depth) {
    if (functions_-- <= 0) return leaf(s);
    Pointer n = make(Kind::function, below(4));
    n->parts.push_back(expression(s, depth - 1));
    n->parts.push_back(expression(s, depth - 1));
    const Scope body{s.numbers + 2, s.integers + 1, true};
    n->parts.push_back(expression({body.numbers, body.integers, false}, depth - 1));
    self_calls_ = 2;
    Pointer step = make(Kind::binary, below(6));
    Pointer call = make(Kind::self, below(2));
    call->parts.push_back(expression(body, 2));
    call->parts.push_back(expression({body.numbers, body.integers, false}, 1));
    step->parts.push_back(std::move(call));
    step->parts.push_back(expression(body, depth - 1));
    self_calls_ = 0;
    n->parts.push_back(std::move(step));
    return n;
  }

  std::mt19937 random_;
  int budget_;
  bool poles_;
  int derivatives_ = 1, functions_ = 2, self_calls_ = 0;
};

/// Runs a syntax tree over Rep, under whatever handler is in charge.
class SourceInterpreter {
 public:
  using D = Rep<double>;
  using I = Rep<std::int64_t>;
  using Node = SourceNode;
  using Kind = Node::Kind;
  struct Environment {
    std::vector<D> numbers;
    std::vector<I> integers;
    Rep<Array<double>> array;
    std::function<D(D, D, I)> self;
    I depth = 0;  ///< of the recursion still allowed

    Environment with(std::initializer_list<D> more, std::initializer_list<I> counts = {}) const {
      Environment e = *this;
      e.numbers.insert(e.numbers.end(), more);
      e.integers.insert(e.integers.end(), counts);
      return e;
    }
  };

  static D run(const Node& n, const Environment& e) {
    const auto part = [&](std::size_t i, const Environment& in) { return run(*n.parts[i], in); };
    const auto at = [&](std::size_t i) { return part(i, e); };
    const std::int64_t iterations = n.index;
    switch (n.kind) {
      case Kind::constant:
        return n.value;
      case Kind::number:
        return e.numbers[static_cast<std::size_t>(n.index)];
      case Kind::element:
        return n.index < 3 ? e.array[n.index] : e.array[position(e, n.index - 3)];
      case Kind::unary:
        return unary(n.index, at(0));
      case Kind::binary:
        return binary(n.index, at(0), at(1));
      case Kind::choose:
        return select(at(0) < at(1), at(2), at(3));
      case Kind::branch: {
        const auto condition = n.index == 0   ? at(0) < at(1)
                               : n.index == 1 ? e.integers.back() % 2 == 0
                                              : AND(at(0) > 0.0, [&] { return at(1) < 1.0; });
        return IF(
            condition, [&] { return at(2); }, [&] { return at(3); });
      }
      case Kind::pair_branch: {
        const auto [a, b] = IF(
            at(0) < at(1), [&] { return std::tuple(at(2), at(3)); },
            [&] {
              const D t = at(4);
              return std::tuple(t, t);
            });
        return part(5, e.with({a, b}, {e.integers.back()}));
      }
      case Kind::loop: {
        // Bounded by a count; the condition looks at the state too.
        const auto [a, b, k] = WHILE(
            std::tuple(at(0), at(1), I(0)),
            [&](D s, D t, I i) { return AND(i < iterations, [&] {
                                   return part(2, e.with({s, t}, {i})) < 2.0;
                                 }); },
            [&](D s, D t, I i) {
              const Environment in = e.with({s, t}, {i});
              return std::tuple(sin(part(3, in)), tanh(part(4, in)), i + 1);
            });
        return part(5, e.with({a, b}, {k}));
      }
      case Kind::for_loop:
        return FOR(0, iterations, at(0), [&](I i, D s) { return sin(part(1, e.with({s}, {i}))); });
      case Kind::variable: {
        Var<double> v = at(0);
        FOR(0, iterations, [&](I i) {
          IF(part(1, e.with({v}, {i})) > 0.0, [&] { v = sin(part(2, e.with({v}, {i}))); });
          v += 0.5 * tanh(part(3, e.with({v}, {i})));
        });
        return part(4, e.with({v}));
      }
      case Kind::function: {
        const auto f = FUN<double(double, double, std::int64_t)>("f", [&](auto self, D x, D y, I k) {
          Environment in = e.with({x, y}, {k});
          return IF(
              k <= 0, [&] { return part(2, in); },
              [&] {
                Environment again = in;
                again.depth = k;
                again.self = [&](D a, D b, I m) { return self(sin(a), tanh(b), m); };
                return sin(part(3, again));
              });
        });
        return f(at(0), at(1), iterations);
      }
      case Kind::self:
        return e.self(at(0), at(1), e.depth - 1 - std::int64_t{n.index});
      case Kind::derivative: {
        const std::function<D(D)> f = [&](D t) { return part(1, e.with({t})); };
        return n.index == 0 ? grad(f)(at(0)) : std::get<1>(jvp(f)(at(0), 1.0));
      }
      case Kind::update: {
        Environment in = e;
        in.array = e.array.set(n.index, at(0));
        return part(1, in);
      }
    }
    return 0.0;
  }

 private:
  static I position(const Environment& e, int i) {
    const I k = e.integers[static_cast<std::size_t>(i)] % 3;
    return select(k < 0, -k, k);
  }
  static D unary(int which, D x) {
    switch (which) {
      case 0:
        return sin(x);
      case 1:
        return exp(-(x * x));
      case 2:
        return -x;
      case 3:
        return sqrt(1.0 + x * x);
      case 4:
        return log(2.0 + cos(x));
      case 5:
        return abs(x + 0.0625);  // no kink where x is exactly 0
      case 6:
        return atan(x) * x;
      case 8:
      case 9:
        return cbrt(x);
      case 10:
      case 11:
        return sqrt(max(x, 0.0));
      case 12:
      case 13:
        return acos(clip(x, -1.0, 1.0));
      case 14:
      case 15:
        return pow(max(x, 0.0), 0.25);
      default:
        return pow(1.5 + sin(x), 1.25);
    }
  }
  static D binary(int which, D x, D y) {
    switch (which) {
      case 0:
        return x + y;
      case 1:
        return x - y;
      case 2:
        return x * y;
      case 3:
        return x / (1.0 + y * y);
      case 4:
        return max(x, y);
      default:
        return x * x - y * x;
    }
  }
};

}  // namespace lantern::test
