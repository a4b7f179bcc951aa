// What native control flow becomes: lanternc rewrites `if`, `while`, `&&`, ... over Rep into these calls.
//
// Each is decided by the type of its condition: a plain bool keeps its meaning in C++ and is decided while
// the program is staged; a Rep<bool> becomes a branch or a loop of the graph (Lantern paper, section 4). The
// bodies are the user's own statements, in lambdas that assign the user's own variables: the branch or loop
// sees that (staging/storage.hpp).
#pragma once

// This file is first where lanternc has rewritten the user's; rep.hpp then gives other advice.
#ifndef LANTERN_REWRITTEN
#define LANTERN_REWRITTEN 1
#endif

#include <cstring>
#include <optional>
#include <string>

#include "lantern/compiler/frontend/leaves.hpp"

namespace lantern::core {

/// `++i` and its relatives, which programs with native loops write. Results as for built-in types. They have no
/// place: an operator cannot be told where it is.
template <NumberElement T>
Rep<T>& operator++(Rep<T>& x) {
  return x += At<T>(1, std::source_location());
}
template <NumberElement T>
Rep<T>& operator--(Rep<T>& x) {
  return x -= At<T>(1, std::source_location());
}
template <NumberElement T>
Rep<T> operator++(Rep<T>& x, int) {
  const Rep<T> before = x;
  ++x;
  return before;
}
template <NumberElement T>
Rep<T> operator--(Rep<T>& x, int) {
  const Rep<T> before = x;
  --x;
  return before;
}
template <std::integral T>
Rep<T>& operator%=(Rep<T>& x, const std::type_identity_t<At<T>>& y) {
  return x = x % y;
}

#ifdef LANTERN_FRONTEND
/// What makes std::swap(a[i], a[j]) parse.
template <class T>
void swap(Rep<T>&& a, Rep<T>&& b);
/// What makes `++a[i]` and its relatives parse; lanternc rewrites them.
template <NumberElement T>
Rep<T> operator++(Rep<T>&& x);
template <NumberElement T>
Rep<T> operator--(Rep<T>&& x);
template <NumberElement T>
Rep<T> operator++(Rep<T>&& x, int);
template <NumberElement T>
Rep<T> operator--(Rep<T>&& x, int);
template <std::integral T>
Rep<T> operator%=(Rep<T>&& x, const std::type_identity_t<At<T>>& y);

/// What makes `for (Rep<T> v : array)` parse. A loop variable that is a reference is read, and refused where
/// it is assigned, by lanternc rather than the compiler.
template <class T>
struct NativeIterator {
  Rep<T>& operator*() const;
  NativeIterator& operator++();
  bool operator!=(const NativeIterator&) const;
};
template <class T>
NativeIterator<T> begin(const Rep<Array<T>>&);
template <class T>
NativeIterator<T> end(const Rep<Array<T>>&);
#endif

namespace native {

/// The condition of `while (true)` and `for (;;)`: such a loop ends by a break or a return. V: the types of the
/// variables that the loop names. Where none holds a Rep, the loop is one of C++ until an iteration's end depends
/// on the program.
template <class... V>
struct Always {
  static constexpr bool staged = (detail::has_rep<V>() || ...);
};

/// Represents a result type that is to be found from the branches.
struct Deduced {};

/// A value as a condition: bool and Rep<bool> as they are, a number is true where it is not zero.
template <class C>
decltype(auto) truth(const C& c) {
  if constexpr (std::same_as<C, Rep<bool>>)
    return c;
  else if constexpr (detail::RepType<C>)
    return c != 0;
  else
    return static_cast<bool>(c);
}

/// The label of a case: an enumerator is the number that a Rep is compared with.
template <class V, class L>
constexpr auto label(const V&, const L& l) {
  if constexpr (detail::RepType<V> && std::is_enum_v<L>)
    return static_cast<typename V::value_type>(l);
  else
    return l;
}

namespace detail {

template <class C>
concept StagedCondition = RepType<C>;

template <class C>
inline constexpr bool is_always = false;
template <class... V>
inline constexpr bool is_always<Always<V...>> = true;

/// What a branch gives, where that has to be found.
template <class R, class F>
struct ResultOf {
  using type = R;
};
template <class F>
struct ResultOf<Deduced, F> {
  using type = std::remove_cvref_t<std::invoke_result_t<const F&>>;
};
template <class R, class A, class B>
struct BranchResult {
  using type = R;
};
template <class A, class B>
struct BranchResult<Deduced, A, B> : Merged<A, B> {};
template <>
struct BranchResult<Deduced, void, void> {
  using type = void;
};

/// A piece of the program as a function, to be called before the statement that it is part of ends.
/// So what handles it is compiled once for each type of result, not for each piece.
template <class R>
class Piece {
 public:
  template <class F>
  requires(!std::same_as<F, Piece>) [[gnu::always_inline]] Piece(const F& f) : object_(&f), call_(&call<F>) {}
  R operator()() const { return call_(object_); }

 private:
  template <class F>
  static R call(const void* object) {
    const F& piece = *static_cast<const F*>(object);
    if constexpr (std::is_void_v<R>)
      static_cast<void>(piece());
    else if constexpr (std::same_as<decltype(piece()), R>)
      return piece();
    else
      return convert<R>(piece());
  }

  const void* object_;
  R (*call_)(const void*);
};

/// A branch of the graph. `a` and `b` are run once each.
template <class R>
R staged_branch(const Datum& condition, const Piece<R>& a, const Piece<R>& b, const Location& loc) {
  if constexpr (std::is_void_v<R>) {
    branch(
        condition, [&] { return a(), Datums(); }, [&] { return b(), Datums(); }, loc);
  } else {
    std::optional<R> result;
    std::optional<std::vector<std::byte>> plain;
    const auto run = [&](const Piece<R>& body) {
      result.emplace(body());
      std::vector<std::byte> now = plain_parts(*result);
      if (plain && *plain != now)
        raise_at(loc, "the branches give different plain values, and their condition is staged; make them Reps");
      plain = std::move(now);
      Datums out;
      append_values(*result, out);
      return out;
    };
    const Datums joined = branch(
        condition, [&] { return run(a); }, [&] { return run(b); }, loc);
    std::span<const Datum> rest(joined);
    renew_values(*result, rest);
    return *std::move(result);
  }
}

/// True, false or, where it depends on values of the graph, neither.
inline std::optional<bool> known(const Flag& f) {
  const Datum& d = strip(f.datum());
  if (d.is_literal()) return d.b();
  return std::nullopt;
}

}  // namespace detail

/// `if`, and `?:` where the branches have values. R: the type of the result; Deduced: found from the
/// branches.
template <class R>
[[gnu::noinline]] R branch(const Flag& c, const detail::Piece<std::type_identity_t<R>>& a,
         const detail::Piece<std::type_identity_t<R>>& b,
         std::source_location l = std::source_location::current()) {
  if (const auto holds = detail::known(c)) return *holds ? a() : b();
  return detail::staged_branch<R>(c.datum(), a, b, here(l));
}
template <class R = Deduced, class C, class A, class B>
requires(std::same_as<R, Deduced> || !std::same_as<C, Flag>)
auto branch(const C& c, const A& a, const B& b, std::source_location l = std::source_location::current()) {
  constexpr bool deduced = std::same_as<R, Deduced>;
  using RA = typename detail::ResultOf<R, A>::type;
  using RB = typename detail::ResultOf<R, B>::type;
  if constexpr (detail::StagedCondition<C>) {
    return branch<typename detail::BranchResult<R, RA, RB>::type>(truth(c), a, b, l);
  } else if constexpr (std::is_void_v<RA> || std::is_void_v<RB>) {
    return static_cast<void>(c ? (static_cast<void>(a()), 0) : (static_cast<void>(b()), 0));
  } else if constexpr (deduced) {
    return c ? a() : b();
  } else {
    return c ? static_cast<R>(a()) : static_cast<R>(b());
  }
}

/// `a && b`: `b` is computed only where `a` holds.
template <class A, class B>
auto both(const A& a, B&& b, std::source_location l = std::source_location::current()) {
  if constexpr (detail::StagedCondition<A>)
    return branch<Flag>(
        a, [&] { return Flag(truth(b())); }, [] { return Flag(false); }, l);
  else {
    using R = std::remove_cvref_t<decltype(truth(b()))>;
    return truth(a) ? R(truth(b())) : R(false);
  }
}
/// `a || b`.
template <class A, class B>
auto either(const A& a, B&& b, std::source_location l = std::source_location::current()) {
  if constexpr (detail::StagedCondition<A>)
    return branch<Flag>(
        a, [] { return Flag(true); }, [&] { return Flag(truth(b())); }, l);
  else {
    using R = std::remove_cvref_t<decltype(truth(b()))>;
    return truth(a) ? R(true) : R(truth(b()));
  }
}

/// A loop's step that must not run after a break, because what it assigns may be read later.
template <class Step>
struct Guarded {
  Step step;
};
template <class Step>
Guarded(Step) -> Guarded<Step>;

/// The step of a loop that has none.
inline constexpr auto no_step = [] {};

namespace detail {

/// A loop of the graph without a state of its own but, where it has one, the answer of its body.
template <class Test, class Advance>
void staged_loop(bool flagged, const Test& test, const Advance& advance, const Location& loc) {
  const auto go = [&](const Datums& now) { return flagged ? Flag(now.front()) : Flag(true); };
  loop(
      flagged ? Datums{literal(true)} : Datums(), [&](const Datums& now) { return test(go(now)).datum(); },
      [&](const Datums&) {
        const Flag next = advance();
        return flagged ? Datums{next.datum()} : Datums();
      },
      loc);
}

/// Runs an iteration of a loop in C++: whether to go on. Nothing where that depends on the program: then the graph
/// and the variables that the iteration changed are as they were before it.
std::optional<bool> tried(const std::function<Flag()>& iteration, const Location& loc);

/// A step after an iteration that answered whether to go on.
template <class Step>
void run_step(const Flag& go, Step& step, const std::source_location& l) {
  if constexpr (requires { step.step; })
    branch<void>(
        go, step.step, [] {}, l);
  else
    step();
}

/// Body and step of one iteration; whether to go on.
template <class Body, class Step>
Flag iteration(Body& body, Step& step, const std::source_location& l) {
  if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
    body();
    run_step(true, step, l);
    return true;
  } else {
    const Flag go = body();
    run_step(go, step, l);
    return go;
  }
}

/// A loop whose condition is decided while staging, with breaks that may not be: it is unrolled, and what
/// follows a possible break runs under a branch.
template <class Cond, class Body, class Step>
void unrolled_loop(Cond& cond, Body& body, Step& step, const std::source_location& l) {
  Flag go = true;
  while (truth(cond())) {
    go = branch<Flag>(
        go, body, [] { return Flag(false); }, l);
    if (known(go) == false) break;
    run_step(go, step, l);
  }
}

}  // namespace detail

/// `for (; cond(); step()) body()`. A body with breaks returns whether to go on.
template <class Cond, class Step, class Body>
void loop(Cond&& cond, Step step, Body&& body, std::source_location l = std::source_location::current()) {
  using C = std::remove_cvref_t<std::invoke_result_t<Cond&>>;
  using Answer = std::invoke_result_t<Body&>;
  constexpr bool breaks = !std::is_void_v<Answer>;
  // A loop of the host's program is as fast as before it was rewritten.
  const auto plain_step = [&] {
    if constexpr (requires { step.step; })
      step.step();
    else
      step();
  };
  const auto advance = [&] { return detail::iteration(body, step, l); };
  if constexpr (std::same_as<Answer, bool> && detail::is_always<C>) {
    for (; body(); plain_step()) {
    }
  } else if constexpr (std::same_as<Answer, bool> && !detail::StagedCondition<C>) {
    for (; truth(cond()) && body(); plain_step()) {
    }
  } else if constexpr (detail::is_always<C>) {
    static_assert(breaks, "a loop without an end");
    std::optional<bool> go;
    if constexpr (!C::staged) {
      do go = detail::tried(advance, here(l));
      while (go == true);
    }
    if (!go)
      detail::staged_loop(
          true, [](const Flag& again) { return again; }, advance, here(l));
  } else if constexpr (detail::StagedCondition<C>) {
    const auto test = [&](const Flag& go) {
      if constexpr (breaks)
        return both(go, cond, l);
      else
        return Flag(truth(cond()));
    };
    detail::staged_loop(breaks, test, advance, here(l));
  } else if constexpr (breaks) {
    detail::unrolled_loop(cond, body, step, l);
  } else {
    for (; cond(); plain_step()) body();
  }
}

/// `for (auto element : range) body(element)`, over an array or any container.
template <class R, class Body>
void for_each(R&& range, Body&& body, std::source_location l = std::source_location::current()) {
  if constexpr (detail::RepType<R>) {
    const std::remove_cvref_t<R> array = range;
    const Rep<std::int64_t> size = array.size();
    Rep<std::int64_t> at = 0;
    loop([&] { return at < size; }, [&] { ++at; }, [&] { return body(array[At<std::int64_t>(at, l)]); }, l);
  } else {
    using std::begin, std::end;
    auto at = begin(range);
    const auto last = end(range);
    loop([&] { return at != last; }, [&] { ++at; }, [&] { return body(*at); }, l);
  }
}

/// `do body() while (cond())`.
template <class Body, class Cond>
void loop_at_least_once(Body&& body, Cond&& cond, std::source_location l = std::source_location::current()) {
  using C = std::remove_cvref_t<std::invoke_result_t<Cond&>>;
  constexpr bool breaks = !std::is_void_v<std::invoke_result_t<Body&>>;
  if constexpr (detail::is_always<C>) {
    loop(cond, no_step, body, l);
  } else if constexpr (detail::StagedCondition<C>) {
    const auto advance = [&] {
      const Flag go = detail::iteration(body, no_step, l);
      return branch<Flag>(
          go, [&] { return Flag(truth(cond())); }, [] { return Flag(false); }, l);
    };
    detail::staged_loop(
        true, [](const Flag& go) { return go; }, advance, here(l));
  } else {
    bool first = true;
    const auto again = [&] { return std::exchange(first, false) || cond(); };
    if constexpr (breaks)
      loop(again, no_step, body, l);
    else
      while (again()) body();
  }
}

namespace detail {
template <class T>
struct IsArray : std::false_type {};
template <class T>
struct IsArray<Array<T>> : std::true_type {};
/// The tensor with rows lo .. hi-1, or with the one row lo, replaced. Error: the new ones are not so many, or of
/// another size.
Datum with_rows(const Datum& t, const Datum& lo, const Datum& hi, const Datum& values, bool one, const Location& loc);
}  // namespace detail

/// `a[i]` and `t(i, j)` on the left of an assignment: element access of an Array or a Tensor makes a value,
/// so that assigning to it replaces the array.
template <class A, class... I>
class Element {
 public:
  using Value = typename lantern::core::detail::Traits<typename A::value_type>::element;
  explicit Element(A& array, const I&... index) : array_(array), index_{At<std::int64_t>(index).datum...} {}
  Rep<Value> get(const Location& loc = {}) const { return Rep<Value>(perform({Opcode::get_, 0, loc}, operands())); }
  Rep<Value> operator=(const At<Value>& v) const { return store(v.datum, v.loc); }
  Rep<Value> operator+=(const At<Value>& v) const { return change(Opcode::add_, v); }
  Rep<Value> operator-=(const At<Value>& v) const { return change(Opcode::sub_, v); }
  Rep<Value> operator*=(const At<Value>& v) const { return change(Opcode::mul_, v); }
  Rep<Value> operator/=(const At<Value>& v) const { return change(Opcode::div_, v); }
  Rep<Value> operator%=(const At<Value>& v) const requires(std::integral<Value>) {
    return change(Opcode::rem_, v);
  }
  Rep<Value> operator++() const { return *this += At<Value>(1, std::source_location()); }
  Rep<Value> operator--() const { return *this -= At<Value>(1, std::source_location()); }
  Rep<Value> operator++(int) const { return stepped(Opcode::add_); }
  Rep<Value> operator--(int) const { return stepped(Opcode::sub_); }

 private:
  Datums operands() const {
    Datums all{array_.datum()};
    all.insert(all.end(), index_.begin(), index_.end());
    return all;
  }
  /// The place is that of the value: an index converted in here has none of the user's.
  Rep<Value> store(const Datum& value, const Location& loc) const {
    Datums all = operands();
    all.push_back(value);
    array_ = A(perform({Opcode::set_, 0, loc}, all));
    return Rep<Value>(value);
  }
  Rep<Value> change(Opcode code, const At<Value>& v) const {
    return store(perform({code, 0, v.loc}, {get(v.loc).datum(), v.datum}), v.loc);
  }
  /// The value before.
  Rep<Value> stepped(Opcode code) const {
    const Rep<Value> before = get();
    store(perform({code, 0, {}}, {before.datum(), At<Value>(1, std::source_location()).datum}), {});
    return before;
  }
  A& array_;
  std::array<Datum, sizeof...(I)> index_;
};
/// std::swap(a[i], a[j]).
template <class A, class... I, class B, class... J>
void swap(const Element<A, I...>& a, const Element<B, J...>& b) {
  const auto before = a.get();
  a = b.get();
  b = before;
}

/// `a.slice(lo, hi)` and `t.row(i)` on the left of an assignment.
template <class A>
class Rows {
 public:
  Rows(A& array, const At<std::int64_t>& lo, const At<std::int64_t>& hi, bool one)
      : array_(array), lo_(lo), hi_(hi), one_(one) {}
  /// The place is that of the value.
  template <class V>
  void operator=(const V& v) const {
    using T = typename detail::Traits<typename A::value_type>::element;
    if constexpr (std::is_arithmetic_v<V> || std::same_as<V, Rep<T>>)
      store([&](const auto& before) { return zeros_like(before) + v; });
    else
      store([&](const auto&) { return v; });
  }
#define LANTERN_CHANGE(symbol)                              \
  template <class V>                                        \
  void operator symbol##=(const V& v) const {               \
    store([&](const auto& before) { return before symbol v; }); \
  }
  LANTERN_CHANGE(+)
  LANTERN_CHANGE(-)
  LANTERN_CHANGE(*)
  LANTERN_CHANGE(/)
#undef LANTERN_CHANGE

 private:
  template <class F>
  void store(const F& f) const {
    if constexpr (detail::IsArray<typename A::value_type>::value) {
      const A new_values = A(f(array_.slice(lo_, hi_)));
      put(new_values);
    } else {
      using T = typename detail::Traits<typename A::value_type>::element;
      if (one_)
        put(Rep<Tensor<T>>(f(array_.row(lo_))));
      else
        put(Rep<Tensor<T>>(f(array_.slice(lo_, hi_))));
    }
  }
  void put(const auto& values) const {
    array_ = A(detail::with_rows(array_.datum(), lo_.datum, hi_.datum, values.datum(), one_, lo_.loc));
  }
  A& array_;
  At<std::int64_t> lo_, hi_;
  bool one_;
};
template <class A, class I>
decltype(auto) row(A& array, I&& i) {
  if constexpr (detail::RepType<A>)
    return Rows<A>(array, i, i, true);
  else
    return array.row(std::forward<I>(i));
}
template <class A, class L, class H>
decltype(auto) slice(A& array, L&& lo, H&& hi) {
  if constexpr (detail::RepType<A>)
    return Rows<A>(array, lo, hi, false);
  else
    return array.slice(std::forward<L>(lo), std::forward<H>(hi));
}

template <class A, class... I>
decltype(auto) element(A& array, I&&... index) {
  if constexpr (detail::RepType<A>)
    return Element<A, std::remove_cvref_t<I>...>(array, index...);
  else if constexpr (requires { array[(std::forward<I>(index), ...)]; })
    return array[(std::forward<I>(index), ...)];
  else
    return array(std::forward<I>(index)...);
}

namespace detail {

/// Staged functions made from recursive ones, of the graph being built: by what the function is and its plain
/// arguments.
std::shared_ptr<FunctionDefinition>& recursive_definition(const void* function, const std::string& plain);

/// Whether a graph is being built.
bool staging();

template <class T>
void append_key(const T& v, std::string& key) {
  if constexpr (has_rep<T>()) {
    for_each_leaf(
        v, [&](const auto&) { key += '.'; }, [&](const auto& p) { append_key(p, key); });
  } else if constexpr (std::is_scalar_v<T>) {
    static_assert(!std::is_pointer_v<T> || !has_rep<std::remove_pointer_t<T>>(),
                  "an argument of a recursive staged function points to a Rep: pass the Rep itself");
    key.append(reinterpret_cast<const char*>(&v), sizeof v);
  } else if constexpr (std::is_empty_v<T>) {
    return;
  } else if constexpr (SequenceType<T>) {
    key += std::to_string(std::size(v)) + ':';
    for (const auto& part : v) append_key(part, key);
  } else if constexpr (requires { std::string_view(v); }) {
    key += std::to_string(std::string_view(v).size()) + ':' + std::string(std::string_view(v));
  } else {
    static_assert(
        dependent_false<T>,
        "an argument of a recursive staged function must be a Rep, a product of Reps, a plain scalar "
        "or a function object without state");
  }
}

}  // namespace detail

/// A call of a function that calls itself under staged conditions: a staged function, one for each
/// combination of plain arguments. `body` takes the arguments and captures nothing that changes.
template <class R, class F, class... A>
R recursive(const void* object, const char* name, const F& body, A&... arguments) {
  if constexpr ((detail::has_rep<A>() || ...)) {
    Datums data;
    (detail::append_values(arguments, data), ...);
    if (detail::staging() && !data.empty()) {
      static_assert(detail::countable<R>(),
                    "a recursive staged function gives values whose number is part of their type: expected a "
                    "std::array of Reps, or a Rep<Array<...>>, got a std::vector of Reps");
      static char identity = 0;
      std::string key;
      detail::append_key(object, key);
      (detail::append_key(arguments, key), ...);
      std::shared_ptr<detail::FunctionDefinition>& definition = detail::recursive_definition(&identity, key);
      if (!definition) {
        definition = detail::make_definition(name);
        definition->captures_nothing = true;
        definition->results_known = detail::types_of<R>(definition->results);
        std::tuple<std::remove_const_t<A>...> structure(arguments...);
        std::apply([](auto&... v) { (detail::detach_values(v), ...); }, structure);
        definition->body = [body, structure](const Datums& in) {
          auto own = structure;
          std::span<const Datum> rest(in);
          std::apply([&](auto&... v) { (detail::renew_values(v, rest), ...); }, own);
          const R result = std::apply([&](auto&... v) { return detail::convert<R>(body(v...)); }, own);
          Datums out;
          detail::append_values(result, out);
          return out;
        };
      }
      const std::shared_ptr<detail::FunctionDefinition> called = definition;
      R result{};
      const Datums results = detail::call(called, data, {});
      std::span<const Datum> rest(results);
      detail::renew_values(result, rest);
      return result;
    }
  }
  return detail::convert<R>(body(arguments...));
}

}  // namespace native

}  // namespace lantern::core

namespace std {
#ifdef LANTERN_FRONTEND
using lantern::core::swap;
#else
using lantern::core::native::swap;
#endif
}  // namespace std
