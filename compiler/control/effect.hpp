// Effects and deep handlers, as one more face of delimited control.
//
//   struct Get : Effect<int()> {};
//   struct Put : Effect<void(int)> {};
//
//   int state = 0;
//   int result = handle([] { perform<Put>(perform<Get>() + 1); return perform<Get>(); },
//                       on<Get>([&](auto k) { return k(state); }),
//                       on<Put>([&](int value, auto k) { state = value; return k(); }));
//
// An operation suspends the computation up to the innermost handler that has a clause for it. The clause runs
// outside the handler, so that operations it performs itself go to the handlers further out; resuming k puts
// the handler back around the rest of the body (a deep handler). Continuations are one-shot: see shift.hpp.
//
// A clause that calls k last, as the one for Get above, is written resuming<Get>([&] { return state; }): that takes
// no stack for what it has resumed. Where several handlers of an effect are active at once, an operation may ask for
// one of them by its instance, any object of which the clause has the address:
//
//   handle([&] { return perform_on<Get>(&a) - perform_on<Get>(&b); }, resuming<Get>(&a, [] { return 5; }),
//          resuming<Get>(&b, [] { return 3; }));
//
// Sources: Plotkin and Pretnar, "Handlers of Algebraic Effects" (2009); Dybvig, Peyton Jones and Sabry (2007)
// for the prompts below; Bauer and Pretnar, "Programming with Algebraic Effects and Handlers" (2015), for instances;
// Leijen, "Type Directed Compilation of Row-Typed Algebraic Effects" (2017), for clauses that resume last.
#pragma once

#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "lantern/compiler/control/shift.hpp"

namespace lantern::core {

namespace control {

// How an argument travels to the clause. Resuming k ends the frame of perform and its temporaries, so that
// what is passed by value or by const reference is kept by value.
template <class T>
using Carried =
    std::conditional_t<std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>>, T,
                       std::remove_cvref_t<T>>;

}  // namespace control

/// An effect is a type derived from Effect<Result(Arguments...)>.
template <class Signature>
struct Effect;

template <class R, class... A>
struct Effect<R(A...)> {
  using Result = R;
  using Arguments = std::tuple<control::Carried<A>...>;
};

namespace control {

// Its address names the effect E.
template <class E>
inline char effect_key = 0;

using Clause = Suspension* (*)(Suspension& self, void* answer);

// Which effect is performed, or handled; the instance is null where none is named.
struct EffectId {
  const void* effect;
  const void* instance;
  friend bool operator==(const EffectId&, const EffectId&) = default;
};

// What a delimiter knows of its handler. Shared by the body and by clauses that run, in one thread.
struct Handler {
  Clause (*find)(const Handler& self, const EffectId& effect) noexcept = nullptr;  // null if there is no clause for it
  void (*destroy)(Handler* self) noexcept = nullptr;
  std::size_t references = 0;
};

template <class H>
class HandlerRef {
 public:
  explicit HandlerRef(H& handler) noexcept : handler_(&handler) { ++handler.references; }
  HandlerRef(const HandlerRef&) = delete;
  HandlerRef& operator=(const HandlerRef&) = delete;
  ~HandlerRef() {
    if (--handler_->references == 0) handler_->destroy(handler_);
  }
  H* operator->() const noexcept { return handler_; }

 private:
  H* handler_;
};

// `resumes`: the clause gives what the body is resumed with, at its end.
template <class E, class F, bool resumes>
struct On {
  using EffectType = E;
  static constexpr bool kResumes = resumes;
  const void* instance;
  F f;
  bool takes(const EffectId& id) const noexcept { return id == EffectId{&effect_key<E>, instance}; }
};

template <class F>
struct Returning {
  F f;
};

template <class T>
inline constexpr bool is_on = false;
template <class E, class F, bool resumes>
inline constexpr bool is_on<On<E, F, resumes>> = true;
template <class T>
inline constexpr bool is_returning = false;
template <class F>
inline constexpr bool is_returning<Returning<F>> = true;

// The answer type of a handler: the body's result, passed through the `returning` clause if there is one.
template <class R, class... C>
struct AnswerOf {
  using type = R;
};
template <class R, class F, class... C>
struct AnswerOf<R, Returning<F>, C...> {
  using type = std::invoke_result_t<F&, R>;
};
template <class F, class... C>
struct AnswerOf<void, Returning<F>, C...> {
  using type = std::invoke_result_t<F&>;
};
template <class R, class E, class F, bool resumes, class... C>
struct AnswerOf<R, On<E, F, resumes>, C...> : AnswerOf<R, C...> {};

// The frame of perform.
template <class E>
struct Performed : Suspension {
  template <class... A>
  explicit Performed(A&&... a) : arguments(std::forward<A>(a)...) {}
  typename E::Arguments arguments;
  Slot<typename E::Result> value;
};

// A handler with clauses C, on bodies that return R.
template <class R, class... C>
struct HandlerOf : Handler {
  using Answer = typename AnswerOf<R, C...>::type;

  explicit HandlerOf(C&&... c) : clauses(std::move(c)...) {
    find = &HandlerOf::find_clause;
    destroy = [](Handler* self) noexcept { delete static_cast<HandlerOf*>(self); };
  }

  // Runs clause I, on the handler's side.
  template <std::size_t I>
  static Suspension* run(Suspension& self, void* answer) {
    using OnE = std::tuple_element_t<I, std::tuple<C...>>;
    using E = typename OnE::EffectType;
    auto& request = static_cast<Performed<E>&>(self);
    HandlerRef handler(
        static_cast<HandlerOf&>(*self.handler));  // resuming k may end the body, which holds it
    if constexpr (OnE::kResumes) {
      struct Drop {  // what leaves the clause leaves the handler
        Suspension* captured;
        ~Drop() {
          if (captured != nullptr) drop(*captured);
        }
      } abandoned{&self};
      request.value.put([&]() -> typename E::Result {
        return std::apply(std::get<I>(handler->clauses).f, std::move(request.arguments));
      });
      return resume(*std::exchange(abandoned.captured, nullptr), answer, nullptr);
    } else {
      answer_by<I, E>(request, handler, answer);
      return nullptr;
    }
  }

  template <std::size_t I, class E>
  static void answer_by(Performed<E>& request, HandlerRef<HandlerOf>& handler, void* answer) {
    Continuation<typename E::Result, Answer> k(request, request.value);
    auto arguments = std::move(request.arguments);
    static_cast<Slot<Answer>*>(answer)->put([&]() -> Answer {
      return std::apply(
          [&](auto&&... a) -> Answer {
            return std::invoke(std::get<I>(handler->clauses).f, std::forward<decltype(a)>(a)...,
                               std::move(k));
          },
          std::move(arguments));
    });
  }

  static Clause find_clause(const Handler& self, const EffectId& effect) noexcept {
    return static_cast<const HandlerOf&>(self).template find_from<0>(effect);
  }

  template <std::size_t I>
  Clause find_from(const EffectId& effect) const noexcept {
    if constexpr (I == sizeof...(C)) {
      return nullptr;
    } else {
      if constexpr (is_on<std::tuple_element_t<I, std::tuple<C...>>>) {
        if (std::get<I>(clauses).takes(effect)) return &HandlerOf::run<I>;
      }
      return find_from<I + 1>(effect);
    }
  }

  // Passes the body's result through the `returning` clause.
  Answer finish(Slot<R>& result) {
    if constexpr (!(is_returning<C> || ...)) {
      return result.take();
    } else {
      auto& f = std::get<index_of_returning()>(clauses).f;
      if constexpr (std::is_void_v<R>) {
        return std::invoke(f);
      } else {
        return std::invoke(f, result.take());
      }
    }
  }

  static constexpr std::size_t index_of_returning() {
    std::size_t index = 0;
    std::size_t found = 0;
    ((is_returning<C> ? found = index++ : index++), ...);
    return found;
  }

  std::tuple<C...> clauses;
};

// The body of a handle, on its way from the caller's stack to its own.
template <class H, class R, class F>
struct HandledBody {
  H& handler;
  F&& f;

  static void job(void* closure) {
    using Answer = typename H::Answer;
    auto& self = *static_cast<HandledBody*>(closure);
    HandlerRef handler(self.handler);
    std::decay_t<F> body(std::forward<F>(self.f));
    Slot<R> result;
    result.put([&]() -> R { return std::invoke(body); });
    disable_delimiter();  // the `returning` clause runs outside the handler
    Slot<Answer> answer;
    answer.put([&]() -> Answer { return handler->finish(result); });
    static_cast<Slot<Answer>*>(current_answer())->put([&]() -> Answer { return answer.take(); });
  }
};

template <class H, class R, class F>
typename H::Answer handle_with(H& handler, F&& f) {
  using Answer = typename H::Answer;
  if (!roomy()) {
    auto again = [&]() -> Answer { return handle_with<H, R>(handler, std::forward<F>(f)); };
    return on_large_stack_as<Answer>(again);
  }
  Slot<Answer> answer;
  HandledBody<H, R, F> body{handler, std::forward<F>(f)};
  return settle(answer, start(0, &handler, &HandledBody<H, R, F>::job, &body, &answer, nullptr));
}

}  // namespace control

/// Performs the effect E on an instance: runs the clause for both of the innermost handler that has one. Error as for
/// perform.
template <class E, class... A>
typename E::Result perform_on(const void* instance, A&&... arguments) {
  static_assert(std::is_constructible_v<typename E::Arguments, A&&...>,
                "the arguments of perform<E> are those in the signature of the effect E");
  control::Performed<E> request(std::forward<A>(arguments)...);
  control::suspend_to_handler(request, {&control::effect_key<E>, instance}, typeid(E));
  return request.value.take();
}

/// Whether perform_on<E>(instance, ...) would find a clause.
template <class E>
bool handled(const void* instance) {
  return control::handled({&control::effect_key<E>, instance});
}

/// Performs the effect E: runs the clause for it of the innermost handler that has one, and returns what the
/// clause resumes with. Error, naming the effect, if no handler has one.
template <class E, class... A>
typename E::Result perform(A&&... arguments) {
  return perform_on<E>(nullptr, std::forward<A>(arguments)...);
}

/// A clause `f(arguments..., k)` for the effect E. k(result) resumes; a clause that does not call it abandons
/// the rest of the body, which is unwound when k is destroyed.
template <class E, class F>
control::On<E, std::decay_t<F>, false> on(F&& f) {
  return {nullptr, std::forward<F>(f)};
}
/// The same for what is performed on one instance of the effect.
template <class E, class F>
control::On<E, std::decay_t<F>, false> on(const void* instance, F&& f) {
  return {instance, std::forward<F>(f)};
}

/// on<E>([](arguments..., k) { return k(f(arguments...)); }), which takes no stack: however many operations the body
/// performs, nothing of the clause waits for its end. An exception that leaves f unwinds the body.
template <class E, class F>
control::On<E, std::decay_t<F>, true> resuming(F&& f) {
  return {nullptr, std::forward<F>(f)};
}
template <class E, class F>
control::On<E, std::decay_t<F>, true> resuming(const void* instance, F&& f) {
  return {instance, std::forward<F>(f)};
}

/// A clause `f(result)` for the result of the body; it runs outside the handler. Its result is that of
/// handle.
template <class F>
control::Returning<std::decay_t<F>> returning(F&& f) {
  return {std::forward<F>(f)};
}

/// Runs `body()` and handles the effects it performs by `clauses`, made with on<E>(f) and at most one
/// returning(f). Clauses are kept until the body has ended, and may capture by reference what outlives that:
/// the caller's frame, as long as no continuation is stored and resumed after handle has returned.
template <class F, class... C>
auto handle(F&& body, C... clauses) {
  static_assert(((control::is_on<C> || control::is_returning<C>)&&...),
                "the clauses of handle are made with on<E>(f) and returning(f)");
  static_assert((std::size_t{0} + ... + std::size_t{control::is_returning<C>}) <= 1,
                "handle takes at most one returning clause");
  using R = std::invoke_result_t<std::decay_t<F>&>;
  using H = control::HandlerOf<R, C...>;
  // Shared with the body and the running clauses, in case a continuation is resumed after handle has
  // returned.
  auto& handler = *new H(std::move(clauses)...);
  const control::HandlerRef keep(handler);
  return control::handle_with<H, R>(handler, std::forward<F>(body));
}

}  // namespace lantern::core
