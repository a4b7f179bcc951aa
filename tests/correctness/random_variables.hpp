// Random programs over variables, as data: they are run over any number type T by native::branch and
// native::loop, which is what lanternc makes of C++'s own control flow. Variables lie in locals, structs,
// containers and on the heap, and are assigned directly and by references, pointers, closures, destructors,
// swaps and whole structs. They always end, and their values stay small.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "lantern/compiler/frontend/native.hpp"
#include "lantern/lantern.hpp"

namespace lantern::test {

/// A statement or an expression.
struct VariableNode {
  enum class Kind {
    // Expressions
    constant,
    variable,
    sum,
    difference,
    product,
    quotient,
    sine,
    bounded,
    choice,
    // Conditions
    less,
    odd_trip,
    conjunction,
    disjunction,
    negation,
    // Statements
    assign,
    add,
    branch,
    count,
    plain_count,
    repeat,
    leave,
    again,
    local,
    pair,
    array,
    vector,
    heap,
    map_entry,
    maybe,
    guard,
    closure,
    act,
    swap,
    tie,
    copy_pair,
    function
  };
  Kind kind;
  int index = 0, other = 0;  ///< variables, closures, iterations
  double number = 0;
  std::vector<VariableNode> parts = {};
};
using Kind = VariableNode::Kind;

/// Writes programs of two variables; the same seed gives the same one.
class RandomVariables {
 public:
  explicit RandomVariables(unsigned seed) : random_(seed) {}

  std::vector<VariableNode> program() {
    budget_ = 10 + pick(20);
    return block(7, 0);
  }

 private:
  using Node = VariableNode;
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return pick(100) < percent; }
  int a_variable() { return pick(variables_); }
  double constant() { return pick(4000) / 1000.0 - 2.0 + 1.0 / 7919; }

  Node expression(int depth) {
    if (depth == 0 || chance(25))
      return chance(75) ? Node{Kind::variable, a_variable()} : Node{Kind::constant, 0, 0, constant()};
    static const std::array kinds{Kind::sum,  Kind::sum,     Kind::difference, Kind::product,
                                  Kind::sine, Kind::bounded, Kind::quotient,   Kind::choice};
    const Kind kind = kinds[static_cast<std::size_t>(pick(kinds.size()))];
    if (kind == Kind::choice)
      return {kind, 0, 0, 0, {condition(1), expression(depth - 1), expression(depth - 1)}};
    Node n{kind, 0, 0, 0, {expression(depth - 1)}};
    if (kind != Kind::sine && kind != Kind::bounded) n.parts.push_back(expression(depth - 1));
    return n;
  }
  Node condition(int depth) {
    if (depth > 0 && chance(30)) {
      if (chance(25)) return {Kind::negation, 0, 0, 0, {condition(depth - 1)}};
      return {chance(50) ? Kind::conjunction : Kind::disjunction,
              0,
              0,
              0,
              {condition(depth - 1), condition(depth - 1)}};
    }
    if (iterations_ > 0 && chance(25)) return {Kind::odd_trip, pick(iterations_)};
    return {Kind::less, a_variable(), 0, constant(), {expression(1)}};
  }

  /// Statements in a scope of their own. loops: how many are around that a leave or again may belong to.
  std::vector<Node> block(int statements, int loops) {
    const int variables = variables_, pairs = pairs_, closures = closures_;
    std::vector<Node> out;
    for (int i = 0; i < statements; ++i) out.push_back(statement(loops));
    variables_ = variables, pairs_ = pairs, closures_ = closures;
    return out;
  }

  Node statement(int loops) {
    if (--budget_ < 0) return assignment();
    switch (pick(24)) {
      case 0:
      case 1:
      case 2: {
        Node n{Kind::branch, 0, 0, 0, {condition(2)}};
        n.index = 1 + pick(2);  // statements of the first side
        for (Node& s : block(n.index, loops)) n.parts.push_back(std::move(s));
        if (chance(60))
          for (Node& s : block(1 + pick(2), loops)) n.parts.push_back(std::move(s));
        return n;
      }
      case 3:
      case 4:
      case 5: {
        Node n{chance(75) ? Kind::count : Kind::plain_count, 2 + pick(3)};
        ++iterations_;
        n.parts = block(1 + pick(3), loops + 1);
        --iterations_;
        return n;
      }
      case 6: {
        Node n{Kind::repeat, 2 + pick(3), chance(30), 0, {condition(1)}};
        ++iterations_;
        for (Node& s : block(1 + pick(2), loops + 1)) n.parts.push_back(std::move(s));
        --iterations_;
        return n;
      }
      case 7:
      case 8:
        if (loops == 0) return assignment();
        return {chance(60) ? Kind::leave : Kind::again, 0, 0, 0, {condition(1)}};
      case 9:
      case 10:
        return variables(Kind::local, 1);
      case 11:
        return variables(Kind::array, 2);
      case 12:
        return variables(Kind::vector, 2);
      case 13:
        return variables(chance(50) ? Kind::heap : Kind::maybe, 1);
      case 14:
        return variables(Kind::map_entry, 1);
      case 15:
      case 16: {
        if (pairs_ > 1) return {Kind::copy_pair, pick(pairs_), pick(pairs_)};
        Node n = variables(Kind::pair, 2);
        ++pairs_;
        return n;
      }
      case 17:
        return {Kind::guard, a_variable(), chance(40), 0, {expression(1)}};
      case 18:
      case 19:
      case 20: {
        if (closures_ > 0) return {Kind::act, pick(closures_), 0, 0, {expression(1)}};
        Node n{Kind::closure, a_variable(), chance(40), 0, {condition(1), expression(2)}};
        ++closures_;
        return n;
      }
      case 21:
        return {chance(50) ? Kind::swap : Kind::tie, a_variable(), a_variable()};
      case 22: {
        Node n{Kind::function, a_variable(), 0, 0, {expression(1)}};
        const int outer = std::exchange(variables_, 1), iterations = std::exchange(iterations_, 0),
                  pairs = std::exchange(pairs_, 0), closures = std::exchange(closures_, 0);
        for (Node& s : block(1 + pick(3), 0)) n.parts.push_back(std::move(s));
        variables_ = outer, iterations_ = iterations, pairs_ = pairs, closures_ = closures;
        return n;
      }
      default:
        return assignment();
    }
  }
  Node assignment() { return {chance(30) ? Kind::add : Kind::assign, a_variable(), 0, 0, {expression(2)}}; }
  Node variables(Kind kind, int n) {
    Node node{kind};
    for (int i = 0; i < n; ++i) node.parts.push_back(expression(1));
    variables_ += n;
    return node;
  }

  std::mt19937 random_;
  int budget_ = 0, variables_ = 2, pairs_ = 0, closures_ = 0, iterations_ = 0;
};

/// Whether running a statement may end the iteration or the loop around it.
inline bool may_leave(const VariableNode& n) {
  if (n.kind == Kind::leave || n.kind == Kind::again) return true;
  return n.kind == Kind::branch && std::any_of(n.parts.begin(), n.parts.end(), may_leave);
}

/// C++'s own control flow, and that of what is staged.
template <class T>
struct ControlFlow {
  using Truth = bool;
  using Index = std::int64_t;

  template <class R, class A, class B>
  static R branch(bool c, A a, B b) {
    return c ? a() : b();
  }
  template <class B>
  static bool both(bool a, B b) {
    return a && b();
  }
  template <class B>
  static bool either(bool a, B b) {
    return a || b();
  }
  /// A body that gives a bool ends the loop by false.
  template <class Test, class Step, class Body>
  static void loop(Test test, Step step, Body body) {
    for (; test(); step()) {
      if constexpr (std::is_void_v<std::invoke_result_t<Body&>>)
        body();
      else if (!body())
        break;
    }
  }
  template <class Body, class Test>
  static void loop_at_least_once(Body body, Test test) {
    do {
      if constexpr (std::is_void_v<std::invoke_result_t<Body&>>)
        body();
      else if (!body())
        break;
    } while (test());
  }
  template <class Body>
  static T call(const Body& body, const T& x) {
    return body(x);
  }
};
template <>
struct ControlFlow<Rep<double>> {
  using Truth = Rep<bool>;
  using Index = Rep<std::int64_t>;

  template <class R, class A, class B>
  static R branch(const Truth& c, A a, B b) {
    return core::native::branch<R>(c, a, b);
  }
  template <class B>
  static Truth both(const Truth& a, B b) {
    return core::native::both(a, b);
  }
  template <class B>
  static Truth either(const Truth& a, B b) {
    return core::native::either(a, b);
  }
  template <class Test, class Step, class Body>
  static void loop(Test test, Step step, Body body) {
    core::native::loop(test, core::native::Guarded(step), body);
  }
  template <class Body, class Test>
  static void loop_at_least_once(Body body, Test test) {
    core::native::loop_at_least_once(body, test);
  }
  template <class Body>
  static Rep<double> call(const Body& body, const Rep<double>& x) {
    return FUN<double(double)>("own", body)(x);
  }
};

/// Runs a program over T: double, Dual or Rep<double>.
template <class T>
class VariableMachine {
 public:
  static T run(const std::vector<VariableNode>& program, const T& x, const T& y) {
    VariableMachine machine;
    T a = x, b = y;
    machine.variables_ = {&a, &b};
    machine.block(program, 0);
    return a + 0.5 * b;
  }

 private:
  using Node = VariableNode;
  using Nodes = std::vector<Node>;
  using Flow = ControlFlow<T>;
  using Truth = typename Flow::Truth;
  using Index = typename Flow::Index;
  struct Pair {
    T first, second;
  };
  /// Assigns a variable when it ends.
  struct Guard {
    T& to;
    T by;
    bool restores;
    ~Guard() {
      if (restores)
        to = by;
      else
        to += 0.1 * by;
    }
  };
  /// A loop's counter, one of the two.
  struct Iteration {
    const std::int64_t* plain;
    const Index* staged;
  };

  template <class V>
  static auto& pick(V& all, int i) {
    return all[static_cast<std::size_t>(i)];
  }
  T& at(int variable) { return *pick(variables_, variable); }
  static T sine(const T& x) {
    using std::sin;
    return sin(x);
  }
  static T bounded(const T& x) {
    using std::tanh;
    return 3.0 * tanh(0.5 * x);
  }

  T value(const Node& n) {
    const auto part = [&](std::size_t i) { return value(n.parts[i]); };
    switch (n.kind) {
      case Kind::constant:
        return T(n.number);
      case Kind::variable:
        return at(n.index);
      case Kind::sum:
        return part(0) + part(1);
      case Kind::difference:
        return part(0) - part(1);
      case Kind::product:
        return bounded(part(0) * part(1));
      case Kind::quotient: {
        const T b = part(1);
        return part(0) / (1.0 + b * b);
      }
      case Kind::sine:
        return sine(part(0));
      case Kind::bounded:
        return bounded(part(0));
      default:
        return Flow::template branch<T>(
            condition(n.parts[0]), [&] { return part(1); }, [&] { return part(2); });
    }
  }
  Truth condition(const Node& n) {
    switch (n.kind) {
      case Kind::less:
        return at(n.index) < 0.7 * value(n.parts[0]) + n.number;
      case Kind::odd_trip: {
        const Iteration& iteration = pick(iterations_, n.index);
        if (iteration.plain != nullptr) return *iteration.plain % 2 == 1;
        return *iteration.staged % 2 == 1;
      }
      case Kind::conjunction:
        return Flow::both(condition(n.parts[0]), [&] { return condition(n.parts[1]); });
      case Kind::disjunction:
        return Flow::either(condition(n.parts[0]), [&] { return condition(n.parts[1]); });
      default:
        return !condition(n.parts[0]);
    }
  }

  /// The statements from `i` on, whose variables end with them. Whether the iteration goes on afterwards.
  Truth block(const Nodes& all, std::size_t i) {
    struct Ending {
      VariableMachine& machine;
      std::size_t variables, pairs, closures;
      ~Ending() {
        machine.variables_.resize(variables);
        machine.pairs_.resize(pairs);
        machine.closures_.resize(closures);
      }
    } ending{*this, variables_.size(), pairs_.size(), closures_.size()};
    for (; i < all.size(); ++i) {
      const Node& n = all[i];
      if (may_leave(n))
        return Flow::template branch<Truth>(
            leaving(n), [&] { return block(all, i + 1); }, [] { return Truth(false); });
      if (n.kind >= Kind::local && n.kind <= Kind::closure) return declared(all, i);
      simple(n);
    }
    return true;
  }

  /// A declaration, and the statements that see it.
  Truth declared(const Nodes& all, std::size_t i) {
    const Node& n = all[i];
    const auto rest = [&](auto&... variables) {
      (variables_.push_back(&variables), ...);
      return block(all, i + 1);
    };
    const auto initial = [&](std::size_t k) { return value(n.parts[k]); };
    switch (n.kind) {
      case Kind::local: {
        T v = initial(0);
        return rest(v);
      }
      case Kind::pair: {
        Pair p{initial(0), initial(1)};
        pairs_.push_back(&p);
        return rest(p.first, p.second);
      }
      case Kind::array: {
        T v[] = {initial(0), initial(1)};
        return rest(v[0], v[1]);
      }
      case Kind::vector: {
        std::vector<T> v{initial(0), initial(1)};
        return rest(v[0], v[1]);
      }
      case Kind::heap: {
        const auto v = std::make_unique<T>(initial(0));
        return rest(*v);
      }
      case Kind::maybe: {
        std::optional<T> v = initial(0);
        return rest(*v);
      }
      case Kind::map_entry: {
        std::map<int, T> m{{7, initial(0)}};
        return rest(m.at(7));
      }
      case Kind::guard: {
        const Guard guard{at(n.index), n.other ? at(n.index) : initial(0), n.other != 0};
        return rest();
      }
      default: {
        const auto change = [this, &n](T& to, const T& by) {
          Flow::template branch<void>(
              condition(n.parts[0]), [&] { to = bounded(to + by); }, [&] { to += 0.2 * value(n.parts[1]); });
          return to;
        };
        if (n.other)
          closures_.push_back([change, own = at(n.index)](const T& by) mutable { return change(own, by); });
        else
          closures_.push_back([change, &to = at(n.index)](const T& by) { return change(to, by); });
        return rest();
      }
    }
  }

  /// A statement after which the iteration may be over. Whether it goes on.
  Truth leaving(const Node& n) {
    if (n.kind == Kind::again) return !condition(n.parts[0]);
    if (n.kind == Kind::branch)
      return Flow::template branch<Truth>(
          condition(n.parts[0]), [&] { return side(n, true); }, [&] { return side(n, false); });
    return Flow::template branch<Truth>(
        condition(n.parts[0]), [&] { return *stays_.back() = false, Truth(false); },
        [] { return Truth(true); });
  }
  Truth side(const Node& n, bool first) {
    const auto begin = n.parts.begin() + 1, middle = begin + n.index;
    return block(first ? Nodes(begin, middle) : Nodes(middle, n.parts.end()), 0);
  }

  /// Any other statement.
  void simple(const Node& n) {
    switch (n.kind) {
      case Kind::assign:
        at(n.index) = bounded(value(n.parts[0]));
        break;
      case Kind::add:
        at(n.index) += 0.25 * value(n.parts[0]);
        break;
      case Kind::branch:
        Flow::template branch<void>(
            condition(n.parts[0]), [&] { side(n, true); }, [&] { side(n, false); });
        break;
      case Kind::count: {
        Index i = 0;
        loop(n.parts, {nullptr, &i},
             [&](const auto& body) { Flow::loop([&] { return i < n.index; }, [&] { i += 1; }, body); });
        break;
      }
      case Kind::plain_count: {
        std::int64_t i = 0;
        loop(n.parts, {&i, nullptr},
             [&](const auto& body) { Flow::loop([&] { return i < n.index; }, [&] { ++i; }, body); });
        break;
      }
      case Kind::repeat:
        repeat(n);
        break;
      case Kind::act:
        at(0) += 0.25 * pick(closures_, n.index)(value(n.parts[0]));
        break;
      case Kind::swap:
        std::swap(at(n.index), at(n.other));
        break;
      case Kind::tie:
        std::tie(at(n.index), at(n.other)) = std::make_tuple(at(n.other), at(n.index));
        break;
      case Kind::copy_pair:
        *pick(pairs_, n.index) = *pick(pairs_, n.other);
        break;
      default:
        at(n.index) = Flow::call(
            [&n](const T& x) {
              VariableMachine machine;
              T own = x;
              machine.variables_ = {&own};
              machine.block(n.parts, 1);
              return own;
            },
            value(n.parts[0]));
    }
  }

  void repeat(const Node& n) {
    Index i = 0;
    const auto test = [&] { return Flow::both(condition(n.parts[0]), [&] { return i < n.index; }); };
    loop(Nodes(n.parts.begin() + 1, n.parts.end()), {nullptr, &i}, [&](const auto& statements) {
      const auto body = [&] { return i += 1, statements(); };
      if (n.other)
        Flow::loop_at_least_once(body, test);
      else
        Flow::loop(
            test, [] {}, body);
    });
  }

  /// run(body): a loop over the statements, whose body gives whether to go on where they may leave it.
  template <class Run>
  void loop(const Nodes& statements, const Iteration& iteration, const Run& run) {
    iterations_.push_back(iteration);
    if (std::any_of(statements.begin(), statements.end(), may_leave))
      run([&] {
        Truth stays = true;
        stays_.push_back(&stays);
        block(statements, 0);
        stays_.pop_back();
        return stays;
      });
    else
      run([&] { block(statements, 0); });
    iterations_.pop_back();
  }

  std::vector<T*> variables_;
  std::vector<Pair*> pairs_;
  std::vector<std::function<T(const T&)>> closures_;
  std::vector<Iteration> iterations_;
  std::vector<Truth*> stays_;  ///< of the loops around: false after a break
};

}  // namespace lantern::test
