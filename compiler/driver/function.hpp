// LANTERN_FUNCTION(name, program): a C++ function made of a program over Rep.
//
// Linked with the library, the function compiles itself at its first call. lanternc compiles the same line twice, as
// function_mode.hpp says: to register the program, so that it can be staged, and to call the generated entry point
// lantern_entry_NAME. What else a call must know is in lantern_facts_NAME: the CallFacts as bits (1: calls nest as deep
// as the data says; 2: loops, without subnormal numbers), then the rank of each result.
//
// All but the entry point belongs to the file that the line is in, as static functions do: two files may each
// have a function of the same name, and each gets its own code. The program is looked up where the line is,
// among names that begin with lantern_ alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lantern/compiler/driver/compile.hpp"
#include "lantern/compiler/driver/function_mode.hpp"

namespace lantern::core::driver {

/// What lanternc needs to know of a LANTERN_FUNCTION.
struct Registered {
  std::string name;
  Location loc;
  std::vector<ir::Type> (*parameter_types)() = nullptr;
  ad::Program (*program)() = nullptr;  ///< over flattened products
  std::vector<Registered> again = {};  ///< the same function as other files that include its header register it
};
/// Called by static initialisers of a staging image; lanternc defines it. A header included by several files
/// registers its functions several times, from the same place.
void register_function(Registered function);

/// The result types of R, with the ranks that staging found: a tensor result may leave its rank undeclared.
template <class R>
std::vector<ir::Type> result_types(const signed char* ranks) {
  std::vector<ir::Type> types;
  detail::types_of<R>(types);
  for (ir::Type& t : types) {
    const auto rank = static_cast<std::size_t>(*ranks++);
    if (t.is_tensor()) t = ir::Type::tensor(t.element(), std::vector<std::int64_t>(rank, ir::dynamic));
  }
  return types;
}

/// A program by value: a function becomes a pointer.
template <detail::OverReps F>
F a_program_must_be_one_function(F f) {
  return f;
}
template <detail::OverReps F, class First, class... More>
Told<"LANTERN_FUNCTION takes a name and one function, LANTERN_FUNCTION(df, grad(f)); arguments are given where df is called">
a_program_must_be_one_function(F, const First&, const More&...) LANTERN_DELETED;
LANTERN_TAKES_FUNCTIONS(a_program_must_be_one_function)

/// Whether a place, named by __builtin_FUNCTION(), is at namespace scope.
constexpr bool outside_functions(const char* function) { return *function == 0; }

/// What the file is compiled for: code that compiles itself, the image that lanternc stages, or the program that it builds.
enum class Mode { in_process, staging, ahead_of_time };

/// What a LANTERN_FUNCTION is beside its program: its name, its place, and what lanternc has generated for it.
struct About {
  const char* id;
  const char* file;
  unsigned line;
  Mode mode = Mode::in_process;
  lt_entry* entry = nullptr;
  const signed char* facts = nullptr;
};

/// What LANTERN_FUNCTION defines: an object that is called as a function, has `into`, and becomes a plain
/// pointer. Make and Tell are function objects without state, which give the program and the About.
template <class Make, class Tell, class F = decltype(Make{}()), class R = typename detail::FunctionTraits<F>::Result,
          class Params = typename detail::FunctionTraits<F>::Params>
struct Exported;
template <class Make, class Tell, class F, class R, class... P>
struct Exported<Make, Tell, F, R, std::tuple<P...>>
    : detail::Callable<Exported<Make, Tell, F, R, std::tuple<P...>>, R, std::tuple<P...>> {
  using Result = detail::host_out<R>;
  using Pointer = Result (*)(detail::host_in<P>...);

  static constexpr const char* id() { return Tell{}().id; }
  static Result call(detail::host_in<P>... args) { return Exported().called(args...); }
  constexpr Pointer operator&() const { return &call; }
  constexpr operator Pointer() const { return &call; }

  static detail::Entry entry(const detail::host_in<P>&... args) {
    constexpr About about = Tell{}();
    if constexpr (about.mode == Mode::ahead_of_time) {
      static const std::vector<ir::Type> results = result_types<R>(about.facts + 1);
      const CallFacts facts{(about.facts[0] & 1) != 0, (about.facts[0] & 2) != 0};
      return {about.entry, facts, &results};
    } else if constexpr (about.mode == Mode::staging) {
      // For static initialisers that call it. Smaller than a Compiled<F>: every function of a model has one.
      static const std::shared_ptr<const Code> code =
          compile(id(), parameter_types(), program().run, {.name = id()});
      return {code->entry(), code->facts(), &code->results()};
    } else {
      static const Compiled<F> compiled(detail::owned_program(Make{}()), {.name = id()});
      return compiled.entry(args...);
    }
  }

  /// The place is the caller's: the linker keeps one of several inline functions of the same name.
  static bool registered(const char* file, unsigned line) {
    register_function({id(), {file, line, 0}, parameter_types, program});
    return true;
  }

 private:
  static ad::Program program() { return {detail::name_of(made()), run}; }
  static std::vector<ir::Type> parameter_types() {
    if (!detail::ranks_known<P...>())
      throw Error(std::string(Tell{}().file) + ":" + std::to_string(Tell{}().line) + ": error: LANTERN_FUNCTION(" + id() +
                  "): a tensor parameter has no rank; declare it, for example Tensor<double, dyn, dyn>");
    std::vector<ir::Type> types;
    (detail::types_of<P>(types), ...);
    return types;
  }
  static const F& made() {
    static const F f = Make{}();
    return f;
  }
  static Datums run(const Datums& data) { return detail::run_typed(made(), data); }
};
/// Placeholder for a LANTERN_FUNCTION whose program is refused: its uses then cause no further errors.
struct Refused {
  template <class... A>
  double operator()(const A&...) const;
  template <class... A>
  void into(A&&...) const;
  bool registered(const char*, unsigned) const;
};
template <class Make, class Tell>
constexpr auto exported(Make, Tell) {
  if constexpr (detail::OverReps<decltype(Make{}())>)
    return Exported<Make, Tell>();
  else
    return Refused();
}

}  // namespace lantern::core::driver

/// Defines `name`, callable with plain C++ types; `&name` is a plain function pointer, and name.into(out...,
/// in...) writes the results into the caller's memory, asking for none. Use at namespace scope.
#define LANTERN_FUNCTION(name, ...)                                                                                  \
  LANTERN_ENTRY_DECLARATION(name)                                                                                    \
  static_assert(::lantern::core::driver::outside_functions(__builtin_FUNCTION()),                                    \
                "move LANTERN_FUNCTION(" #name ", ...) out of the function, to namespace scope");                    \
  [[maybe_unused]] static inline auto lantern_program_##name() {                                                     \
    return ::lantern::core::driver::a_program_must_be_one_function(__VA_ARGS__);                                     \
  }                                                                                                                  \
  [[maybe_unused]] static const auto lantern_exported_##name = ::lantern::core::driver::exported(                    \
      [] { return lantern_program_##name(); },                                                                       \
      [] { return ::lantern::core::driver::About{#name, __FILE__, __LINE__ LANTERN_MODE(name)}; });                 \
  [[maybe_unused]] static const auto name = lantern_exported_##name;                                                 \
  LANTERN_REGISTER(name)
