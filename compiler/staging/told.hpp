// Messages of the library that a C++ compiler shows: text as a template argument, and names of types.
//
// A function that must not be called is deleted, and its type says why. g++ prints that type:
//
//   Told<"write [&]"> operator=(const Rep&) const& = delete;
//   error: use of deleted function 'Told<Text<10>{"write [&]"}> Rep<double>::operator=(...)'
//
// lanternc shows the text alone (tools/lanternc/compiler_messages.cpp). Clang, which reads the program for lanternc with
// LANTERN_FRONTEND, would not: there the function is not deleted and returns what a correct call does, so that the
// error is left to the compiler. LANTERN_TOLD and LANTERN_DELETED make that difference.
#pragma once

#include <cstddef>
#include <string_view>
#ifdef LANTERN_FRONTEND
#include <tuple>
#endif

#ifdef LANTERN_FRONTEND
#define LANTERN_TOLD(Result, ...) Result
#define LANTERN_DELETED \
  { __builtin_trap(); }
#else
#define LANTERN_TOLD(Result, ...) ::lantern::core::Told<__VA_ARGS__>
#define LANTERN_DELETED = delete
#endif

namespace lantern::core {

/// A text that can be a template argument.
template <std::size_t N>
struct Text {
  char data[N] = {};

  constexpr Text() = default;
  constexpr Text(const char (&text)[N]) {
    for (std::size_t i = 0; i < N; ++i) data[i] = text[i];
  }
};

/// What a deleted function returns: the reason, and what to write.
#ifdef LANTERN_FRONTEND
/// It is called, converted and read by std::get as what a correct call returns, so that Clang goes on.
struct Anything {
  template <class... A>
  Anything operator()(const A&...) const {
    __builtin_trap();
  }
  template <class T>
  operator T() const {
    __builtin_trap();
  }
};
template <Text text>
struct Told : std::tuple<Anything, Anything, Anything, Anything> {
  template <class... A>
  Told operator()(const A&...) const {
    __builtin_trap();
  }
  template <class T>
  operator T() const {
    __builtin_trap();
  }
};
#else
template <Text text>
struct Told {};
#endif

namespace detail {

/// A text that is put together while the program is compiled.
struct Draft {
  static constexpr std::size_t room = 1200;
  char data[room] = {};
  std::size_t size = 0;

  constexpr Draft& operator<<(std::string_view text) {
    for (const char c : text)
      if (size + 1 < room) data[size++] = c;
    return *this;
  }
  constexpr Draft& operator<<(std::size_t n) {
    if (n >= 10) *this << n / 10;
    const char digit = static_cast<char>('0' + n % 10);
    return *this << std::string_view(&digit, 1);
  }
};

/// The Text that `write`, a function object without state, writes to a Draft.
template <class Write>
constexpr auto text_of(Write write) {
  constexpr std::size_t size = [](Write w) {
    Draft draft;
    w(draft);
    return draft.size;
  }(Write{});
  Draft draft;
  write(draft);
  Text<size + 1> text;
  for (std::size_t i = 0; i < size; ++i) text.data[i] = draft.data[i];
  return text;
}

/// The same where it is needed; nothing is written elsewhere, which a default template argument would do for each call
/// that is looked at.
template <bool needed, class Write>
constexpr auto text_if(Write write) {
  if constexpr (needed) return text_of(write);
  else return Text<1>();
}

/// The name of a type as the compiler spells it.
template <class T>
constexpr std::string_view spelled() {
  const std::string_view all = __PRETTY_FUNCTION__;  // "... [with T = int; ...]" or "... [T = int]"
  const std::size_t from = all.find("T = ") + 4;
  const std::size_t end = all.find("; std::string_view", from);
  return all.substr(from, (end == std::string_view::npos ? all.size() - 1 : end) - from);
}
/// Appends the name of a type, without the namespaces of Lantern.
template <class T>
constexpr void write_name(Draft& draft) {
  std::string_view name = spelled<T>();
  while (!name.empty()) {
    bool skipped = false;
    for (const std::string_view space : {"lantern::core::", "lantern::"})
      if (name.starts_with(space)) {
        name.remove_prefix(space.size());
        skipped = true;
        break;
      }
    if (skipped) continue;
    if (name.starts_with(", 18446744073709551615")) {  // std::dynamic_extent
      name.remove_prefix(22);
    } else if (name.starts_with(", std::allocator<")) {
      name.remove_prefix(name.find('<') + 1);
      for (int depth = 1; depth > 0; name.remove_prefix(1)) depth += (name[0] == '<') - (name[0] == '>');
      if (name.starts_with(" ")) name.remove_prefix(1);
    } else if (name.starts_with("long int")) {
      draft << "std::int64_t";
      name.remove_prefix(8);
    } else if (name.starts_with("> >")) {
      draft << ">";
      name.remove_prefix(2);
    } else {
      draft << name.substr(0, 1);
      name.remove_prefix(1);
    }
  }
}

}  // namespace detail

}  // namespace lantern::core
