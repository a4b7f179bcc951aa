// IF, WHILE, FOR, FUN, TREE, AND, OR, Var: control flow over staged values (Lantern paper, section 4).
//
// Eagerly each runs as the native construct would. While staging each becomes one node of the graph; a
// derivative then captures the continuation at that node (compiler/ad/staged_reverse.cpp).
//
// An exception that leaves a lambda given to a construct leaves the construct, and every derivative around
// it, eagerly and while staging, in each mode: as from native code. Whoever catches it goes on as if the
// construct had not been there: of what was staged, variables included, nothing is left. A lambda may be
// noexcept, if it throws nothing itself: no handler unwinds the frames of a program that goes well.
//
// A variable may be assigned in the lambdas given to IF, WHILE and FOR, by whatever way it is reached: a
// branch merges what its sides assigned, a loop carries what its body assigns (storage.hpp). What is made
// inside a construct is not usable outside it: assign it to a variable of the outside, or return it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lantern/compiler/staging/product.hpp"
#include "lantern/ir/function_ref.hpp"

namespace lantern::core {

/// What the reverse of a loop may keep of its iterations; the rest is computed again. Neither: everything (in a
/// long loop, everything since the last of many states). Compiled code follows it; eager evaluation keeps
/// everything. What an iteration's functions save, and its loops without a constant number of iterations, comes on top,
/// of one iteration at a time; such a loop may have a bound of its own.
struct LoopOptions {
  std::int64_t memory = 0;  ///< bytes of states and of what iterations save, in pages of 4096 bytes for each value
  std::int64_t checkpoints = 0;  ///< states, and what as many iterations save
};

namespace detail {

using ir::FunctionRef;

Datums branch(const Datum& condition, FunctionRef<Datums()> then, FunctionRef<Datums()> otherwise, const Location& loc);
/// Of branches without a result, which assign variables.
void branch_without_result(const Datum& condition, FunctionRef<void()> then, FunctionRef<void()> otherwise,
                           const Location& loc);
/// `attribute`: of the loop's operation (ir/checkpoint.hpp).
Datums loop(Datums state, FunctionRef<Datum(const Datums&)> condition, FunctionRef<Datums(const Datums&)> body,
            const Location& loc, std::int64_t attribute = 0);
/// A loop without a state, whose body assigns variables.
void loop_without_state(FunctionRef<Rep<bool>()> condition, FunctionRef<void()> body, const Location& loc,
                        std::int64_t attribute);
/// Appends the next state to `next`, of an iteration with this index and state.
using CountedBody =
    FunctionRef<void(const Rep<std::int64_t>& index, std::span<const Datum> state, Datums& next)>;
/// for (i = lo; i < hi; ++i) state = body(i, state); `start`: lo, then the state, as the result.
Datums counted_loop(Datums start, const Datum& hi, CountedBody body, const Location& loc, std::int64_t attribute);
/// The same without a state.
void counted_loop_without_state(const Datum& lo, const Datum& hi,
                                FunctionRef<void(const Rep<std::int64_t>&)> body, const Location& loc);
std::int64_t attribute_of(const LoopOptions& options, const Location& loc);

/// A run of a function's body while a graph is built (control_flow.cpp).
struct BodyRun;

/// What FUN and TREE define: a name and a body over flattened products.
struct FunctionDefinition {
  std::string name;
  std::uint64_t id = 0;           ///< identity: instances are shared by definition
  std::vector<ir::Type> results;  ///< declared result types
  bool results_known = false;     ///< false while a tensor result has no rank
  bool captures_nothing = false;  ///< the body means the same at every call
  std::shared_ptr<const BodyRun> home;  ///< the run in which it was defined; null outside of all
  std::function<Datums(const Datums&)> body;
};
std::shared_ptr<FunctionDefinition> make_definition(std::string name);
Datums call(const std::shared_ptr<FunctionDefinition>& definition, Datums arguments, const Location& loc);

/// Rep counterpart of a value type: double -> Rep<double>, std::tuple<...> and struct templates
/// componentwise.
template <class T>
struct RepOf {
  using type = Rep<T>;
};
template <class T>
struct RepOf<Rep<T>> {
  using type = Rep<T>;
};
template <>
struct RepOf<void> {
  using type = void;
};
template <class... Ts>
struct RepOf<std::tuple<Ts...>> {
  using type = std::tuple<typename RepOf<Ts>::type...>;
};
template <class A, class B>
struct RepOf<std::pair<A, B>> {
  using type = std::pair<typename RepOf<A>::type, typename RepOf<B>::type>;
};
template <class T, std::size_t N>
struct RepOf<std::array<T, N>> {
  using type = std::array<typename RepOf<T>::type, N>;
};
/// Of struct templates: neither a tag nor a Rep.
template <class P>
inline constexpr bool is_tag = false;
template <class T>
inline constexpr bool is_tag<Array<T>> = true;
template <class T, std::int64_t... Dims>
inline constexpr bool is_tag<Tensor<T, Dims...>> = true;
template <class T>
inline constexpr bool is_tag<Tree<T>> = true;
template <template <class...> class P, class... Ts>
requires(!is_tag<P<Ts...>> && StructType<P<Ts...>>) struct RepOf<P<Ts...>> {
  using type = P<typename RepOf<Ts>::type...>;
};
template <template <class, auto...> class P, class T, auto... N>
requires(sizeof...(N) > 0 && !is_tag<P<T, N...>> && StructType<P<T, N...>>) struct RepOf<P<T, N...>> {
  using type = P<typename RepOf<T>::type, N...>;
};
template <class T>
using rep_t = typename RepOf<std::remove_cvref_t<T>>::type;

/// Appends a leaf's type; false where it is a tensor without dimensions.
template <class T>
bool type_of_leaf(std::vector<ir::Type>& out) {
  append(out, TypeOf<T>::get());
  return !std::same_as<T, Tensor<typename Traits<T>::element>>;
}
/// Flattened types of a product type; false where a tensor has no dimensions. A vector of Reps has as many as by default.
template <class P>
bool types_of(std::vector<ir::Type>& out) {
  if constexpr (RepType<P>) {
    return type_of_leaf<typename P::value_type>(out);
  } else if constexpr (TupleType<P> && countable<P>()) {
    return []<class... T>(std::vector<ir::Type>& all, Types<T...>) {
      bool known = true;
      ((known = types_of<T>(all) && known), ...);
      return known;
    }(out, part_types<P>{});
  } else {
    bool known = true;
    P prototype{};
    for_each_rep(prototype, [&]<class T>(Rep<T>&) { known = type_of_leaf<T>(out) && known; });
    return known;
  }
}

}  // namespace detail

namespace detail {
/// Says that a lambda without a result would change copies of what it captured.
template <class B, class... A>
constexpr void require_lasting_changes() {
  static_assert(std::is_lvalue_reference_v<B> || std::is_invocable_v<const std::remove_reference_t<B>&, A...>,
                "a mutable lambda changes its own copies, which end with it: write [&], without mutable, so that the "
                "variables themselves change");
}
template <class F>
concept Branch = std::invocable<F&>;
/// Whether a condition gives a truth of the state.
template <class C, class S>
constexpr bool gives_truth() {
  if constexpr (takes_state<C, S>())
    return std::is_constructible_v<Rep<bool>, decltype(apply_state(std::declval<C&>(), std::declval<const S&>()))>;
  else
    return false;
}
}  // namespace detail

/// The result of one of two branches, of which only one is computed at run time (paper 4.2).
///
/// `a` and `b` take no arguments and return the same product of Reps; literals convert (`1` beside `2.0`
/// gives Rep<double>); void is allowed. A host bool decides while staging.
template <detail::Branch A, detail::Branch B>
auto IF(const Rep<bool>& c, A&& a, B&& b, std::source_location l = std::source_location::current()) {
  using RA = std::remove_cvref_t<std::invoke_result_t<A&>>;
  using RB = std::remove_cvref_t<std::invoke_result_t<B&>>;
  if constexpr (std::is_void_v<RA> || std::is_void_v<RB>) {
    static_assert(std::is_void_v<RA> && std::is_void_v<RB>,
                  "one branch of IF returns a value, the other none");
    detail::require_lasting_changes<A>();
    detail::require_lasting_changes<B>();
    detail::branch_without_result(c.datum(), a, b, here(l));
  } else {
    using R = typename detail::Merged<RA, RB>::type;
    std::optional<R> result;
    const auto run = [&](auto& f) {
      result.emplace(detail::convert<R>(f()));
      return detail::flatten(*result);
    };
    const Datums data = detail::branch(
        c.datum(), [&] { return run(a); }, [&] { return run(b); }, here(l));
    std::span<const Datum> rest(data);
    detail::renew(*result, rest);
    return *std::move(result);
  }
}
template <class A, class B>
  requires(!detail::Branch<A> || !detail::Branch<B>)
LANTERN_TOLD(A, "IF takes two lambdas without parameters, IF(c, [&] { return a; }, [&] { return b; }); "
                "select(c, a, b) takes values")
IF(const Rep<bool>&, const A&, const B&) LANTERN_DELETED;
template <detail::Branch A, detail::Branch B>
auto IF(bool c, A&& a, B&& b) {
  using RA = std::remove_cvref_t<std::invoke_result_t<A&>>;
  using RB = std::remove_cvref_t<std::invoke_result_t<B&>>;
  if constexpr (std::is_void_v<RA>) {
    if (c)
      a();
    else
      b();
  } else {
    using R = typename detail::Merged<RA, RB>::type;
    return c ? detail::convert<R>(a()) : detail::convert<R>(b());
  }
}
/// Without an alternative: for branches that assign variables.
template <class A>
void IF(const Rep<bool>& c, A&& a, std::source_location l = std::source_location::current()) {
  detail::require_lasting_changes<A>();
  IF(
      c, a, [] {}, l);
}

/// Short-circuit conjunction: `b` is computed only where `a` holds.
template <class B>
Rep<bool> AND(const Rep<bool>& a, B&& b, std::source_location l = std::source_location::current()) {
  return IF(
      a, [&] { return Rep<bool>(b()); }, [] { return Rep<bool>(false); }, l);
}
/// Short-circuit disjunction.
template <class B>
Rep<bool> OR(const Rep<bool>& a, B&& b, std::source_location l = std::source_location::current()) {
  return IF(
      a, [] { return Rep<bool>(true); }, [&] { return Rep<bool>(b()); }, l);
}

/// Repeats `state = body(state)` while `cond(state)` holds; gives the final state (paper 4.3).
/// The state is a Rep, a literal, or a product; a product is passed unpacked to lambdas that take its
/// components. `options` bound what a derivative by reverse mode keeps: WHILE(s, cond, body, {.memory = 1 <<
/// 20}).
template <class S, class C, class B>
  requires(!detail::RepType<C>)
auto WHILE(const S& state, C&& cond, B&& body, const LoopOptions& options,
           std::source_location l = std::source_location::current()) {
  using P = detail::lifted_t<S>;
  static_assert(detail::takes_state<std::remove_reference_t<C>, P>(),
                "the condition of WHILE takes the state, or its components one by one: WHILE(s, [&](auto s) { return s > "
                "1.0; }, body)");
  static_assert(!detail::takes_state<std::remove_reference_t<C>, P>() || detail::gives_truth<std::remove_reference_t<C>, P>(),
                "the condition of WHILE gives a Rep<bool>; it comes before the body");
  static_assert(detail::takes_state<std::remove_reference_t<B>, P>(),
                "the body of WHILE takes the state, or its components one by one");
  static_assert(detail::returns_state<std::remove_reference_t<B>, P>(),
                "the body of WHILE returns the next state; this one returns nothing or another type");
  P start = detail::convert<P>(state);
  Datums data = detail::flatten(start);
  const detail::Structure<P> structure(std::move(start));
  const Datums result = detail::loop(
      std::move(data),
      [&](const Datums& s) {
        if constexpr (detail::gives_truth<std::remove_reference_t<C>, P>())
          return Rep<bool>(detail::apply_state(cond, detail::rebuild(*structure, s))).datum();
        else
          return Datum();
      },
      [&](const Datums& s) {
        return detail::flatten(detail::next_state(body, detail::rebuild(*structure, s)));
      },
      here(l), detail::attribute_of(options, here(l)));
  return detail::rebuild(*structure, result);
}
template <class S, class C, class B>
  requires(!detail::RepType<C>)
auto WHILE(const S& state, C&& cond, B&& body, std::source_location l = std::source_location::current()) {
  return WHILE(state, cond, body, LoopOptions{}, l);
}
template <class S, class T, class B>
LANTERN_TOLD(S, "the condition of WHILE is a lambda of the state: WHILE(s, [&](auto s) { return s > 1.0; }, body)")
WHILE(const S&, const Rep<T>&, B&&) LANTERN_DELETED;

/// Without a state: repeats the body, which assigns variables, while the condition holds.
template <class C, class B>
requires(std::is_invocable_v<C&>&& std::is_invocable_v<B&>) void WHILE(
    C&& cond, B&& body, const LoopOptions& options = {},
    std::source_location l = std::source_location::current()) {
  detail::loop_without_state(cond, body, here(l), detail::attribute_of(options, here(l)));
}

/// `state = body(i, state)` for i = lo .. hi-1; gives the final state. hi is computed once. `options` as for
/// WHILE.
template <class S, class B>
auto FOR(const At<std::int64_t>& lo, const At<std::int64_t>& hi, const S& state, B&& body,
         const LoopOptions& options, std::source_location l = std::source_location::current()) {
  using P = detail::lifted_t<S>;
  using Index = Rep<std::int64_t>;
  static_assert(detail::takes_state<std::remove_reference_t<B>, P, Index>(),
                "the body of FOR takes the index, a Rep<int64_t>, then the state, or its components one by one: FOR(0, n, s, "
                "[&](auto i, auto s) { return s + a[i]; })");
  static_assert(detail::returns_state<std::remove_reference_t<B>, P, Index>(),
                "the body of FOR returns the next state; this one returns nothing or another type");
  P before = detail::convert<P>(state);
  Datums start{lo.datum};
  detail::flatten(before, start);
  const detail::Structure<P> structure(std::move(before));
  const Datums result = detail::counted_loop(
      std::move(start), hi.datum,
      [&](const Index& i, std::span<const Datum> now, Datums& next) {
        detail::flatten(detail::next_state(body, detail::rebuild(*structure, now), i), next);
      },
      here(l), detail::attribute_of(options, here(l)));
  std::span<const Datum> after = std::span(result).subspan(1);
  return detail::rebuild(*structure, after);
}
template <class S, class B>
auto FOR(const At<std::int64_t>& lo, const At<std::int64_t>& hi, const S& state, B&& body,
         std::source_location l = std::source_location::current()) {
  return FOR(lo, hi, state, body, LoopOptions{}, l);
}
/// Without a state: for bodies that assign variables.
template <class B>
requires(std::is_invocable_v<B&, const Rep<std::int64_t>&>) void FOR(
    const At<std::int64_t>& lo, const At<std::int64_t>& hi, B&& body,
    std::source_location l = std::source_location::current()) {
  detail::require_lasting_changes<B, const Rep<std::int64_t>&>();
  detail::counted_loop_without_state(lo.datum, hi.datum, body, here(l));
}
namespace detail {
template <class A>
concept Bound = std::convertible_to<const A&, At<std::int64_t>>;
}
template <class A, class B, class C>
  requires(!detail::Bound<A> || !detail::Bound<B> || !std::is_invocable_v<C&, const Rep<std::int64_t>&>)
LANTERN_TOLD(A, "FOR takes both bounds: FOR(0, n, s, [&](auto i, auto s) { return ...; }) gives the final s, "
                "FOR(0, n, [&](auto i) { ...; }) changes variables")
FOR(const A&, const B&, C&&) LANTERN_DELETED;
template <class A, class B>
LANTERN_TOLD(A, "FOR takes both bounds: FOR(0, n, s, [&](auto i, auto s) { return ...; }) gives the final s, "
                "FOR(0, n, [&](auto i) { ...; }) changes variables")
FOR(const A&, B&&) LANTERN_DELETED;

/// A staged function that may call itself and others, with the signature of the values: R(A...).
///
/// Every call means what the body means then: what it captured by reference is read as it is at the call,
/// eagerly and while staging, where calls of one meaning share one function of the graph. A call inside the
/// body is a recursion: of the same meaning as the call that it is part of. The body may be run any number of
/// times, so it changes nothing outside. Hence the body is staged again for a call only where code has run
/// since that may have changed what it captured: code outside of all bodies, and that of the bodies in which
/// the function was defined. Functions that call functions are so staged once each. (A body that captures
/// nothing is staged once for each graph: what it reads of global variables is what they were then.)
///
/// A recursion may take half of the memory, or 4 GB, of stack; beyond that it is an Error that names the
/// function.
///
/// Made by FUN, or declared first for mutual recursion: `Fun<double(double)> odd("odd"); odd.define(...)`.
template <class Sig>
class Fun;
template <class R, class... A>
class Fun<R(A...)> {
 public:
  using Result = detail::rep_t<R>;
  using Signature = R(A...);

  explicit Fun(std::string name) : definition_(detail::make_definition(std::move(name))) {
    definition_->results_known = detail::types_of<Result>(definition_->results);
  }
  /// `body(self, args...)` or `body(args...)`.
  template <class F>
  void define(F body) {
    definition_->captures_nothing = std::is_empty_v<F>;
    std::weak_ptr<detail::FunctionDefinition> self = definition_;
    definition_->body = [self, body](const Datums& data) {
      std::span<const Datum> in(data);
      std::tuple<detail::rep_t<A>...> args{};
      detail::for_each_rep(args, [&]<class T>(Rep<T>& r) {
        r = Rep<T>(in.front());
        in = in.subspan(1);
      });
      const auto run = [&](auto&... a) {
        if constexpr (std::is_invocable_v<const F&, Fun, detail::rep_t<A>...>)
          return body(Fun(self.lock()), a...);
        else
          return body(a...);
      };
      return detail::flatten(detail::convert<Result>(std::apply(run, args)));
    };
  }
  Result operator()(const detail::rep_t<A>&... args) const {
    Datums data;
    (detail::flatten(args, data), ...);
    return detail::rebuild(Result{}, detail::call(definition_, std::move(data), {}));
  }
  const std::string& name() const { return definition_->name; }

 private:
  explicit Fun(std::shared_ptr<detail::FunctionDefinition> d) : definition_(std::move(d)) {}
  std::shared_ptr<detail::FunctionDefinition> definition_;
};

/// FUN<double(double, int64_t)>("power", [](auto self, Rep<double> x, Rep<int64_t> n) { ... }) (paper 4.4).
template <class Sig, class F>
Fun<Sig> FUN(std::string name, F body) {
  Fun<Sig> f(std::move(name));
  f.define(std::move(body));
  return f;
}

/// Folds a binary tree: `init` for the empty tree, else combine(left result, right result, node) (paper 4.4).
/// The fold is a recursive staged function; the results have the types of `init`.
template <class P, class T, class F>
auto TREE(const P& init, const Rep<Tree<T>>& tree, F combine,
          std::source_location l = std::source_location::current()) {
  using R = detail::lifted_t<P>;
  const R start = detail::convert<R>(init);
  const Location loc = here(l);
  auto definition = detail::make_definition("tree");
  for (const Datum& d : detail::flatten(start)) definition->results.push_back(d.type());
  definition->results_known = true;
  std::weak_ptr<detail::FunctionDefinition> self = definition;
  definition->body = [start, combine, self, l, loc](const Datums& arguments) {
    const Rep<Tree<T>> node(arguments[0]);
    const auto fold = [&](const Rep<Tree<T>>& child) {
      return detail::rebuild(start, detail::call(self.lock(), {child.datum()}, loc));
    };
    return detail::flatten(IF(
        node.empty(l), [&] { return start; },
        [&] {
          const R left = fold(node.left(l));
          const R right = fold(node.right(l));
          return detail::convert<R>(combine(left, right, node));
        },
        l));
  };
  return detail::rebuild(start, detail::call(definition, {tree.datum()}, loc));
}

/// A variable that branches and loops assign: any Rep is one.
///
///   Rep<double> s = 0.0;
///   FOR(0, n, [&](Rep<int64_t> i) { s += a[i]; });
template <class T>
using Var = Rep<T>;

}  // namespace lantern::core
