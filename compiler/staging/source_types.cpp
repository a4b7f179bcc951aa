// A reader of declarations: `using`, `typedef`, `struct` and `class`. What it does not understand it skips.
#include "lantern/compiler/staging/source_types.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "lantern/ir/text.hpp"

namespace lantern::core {

using ir::is_space;
using ir::is_word;
using ir::trimmed;

namespace {

constexpr std::size_t most_values = 1000;
constexpr int deepest = 16;

std::string_view first_word(std::string_view s) {
  return s.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(s, is_word) - s.begin()));
}

/// Takes the word off, with what follows it up to the next that counts.
bool take(std::string_view& s, std::string_view word) {
  if (first_word(s) != word) return false;
  s = trimmed(s.substr(word.size()));
  return true;
}

/// Past the bracket that closes the one at `open`.
std::size_t closed(std::string_view s, std::size_t open) {
  const char up = s[open], down = up == '<' ? '>' : up == '(' ? ')' : up == '[' ? ']' : '}';
  int depth = 0;
  for (std::size_t i = open; i < s.size(); ++i) {
    depth += (s[i] == up) - (s[i] == down);
    if (depth == 0) return i + 1;
  }
  return s.size();
}

/// The parameters of "template <class T, int n>", which is taken off.
std::vector<std::string> template_parameters(std::string_view& s) {
  std::vector<std::string> names;
  while (first_word(s) == "template") {
    const std::size_t open = s.find('<');
    if (open == std::string_view::npos) break;
    const std::size_t end = closed(s, open);
    for (const std::string_view p : parts_of_list(s.substr(open + 1, end - open - 2)))
      names.push_back(declared(p).name);
    s = trimmed(s.substr(end));
  }
  return names;
}

/// The text with words replaced.
std::string substituted(std::string_view text, const std::vector<std::string>& words,
                        const std::vector<std::string_view>& by) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view word = first_word(text.substr(i));
    if (word.empty()) {
      out += text[i++];
      continue;
    }
    i += word.size();
    const auto at = static_cast<std::size_t>(std::ranges::find(words, word) - words.begin());
    out += at < words.size() && at < by.size() ? by[at] : word;
  }
  return out;
}

/// A type as written, taken to pieces: its name without namespaces, and its arguments.
struct Written {
  std::string name;
  std::vector<std::string_view> arguments;
};

Written taken_apart(std::string_view type) {
  const std::size_t open = type.find('<');
  const std::string_view name = trimmed(type.substr(0, open));
  const std::size_t colon = name.rfind(':');
  Written w{std::string(trimmed(colon == std::string_view::npos ? name : name.substr(colon + 1))), {}};
  if (open != std::string_view::npos)
    w.arguments = parts_of_list(type.substr(open + 1, closed(type, open) - open - 2));
  return w;
}

/// Without what says how a value is passed.
std::string_view plain(std::string_view type) {
  for (bool again = true; again;) {
    type = trimmed(type);
    again = take(type, "const") || take(type, "typename") || take(type, "struct");
    while (!type.empty() && (type.back() == '&' || type.back() == ' ')) type.remove_suffix(1), again = true;
    if (type.ends_with(" const")) type.remove_suffix(6), again = true;
  }
  return type;
}

class Values {
 public:
  explicit Values(const FindType& find) : find_(find) {}

  /// False where a part is of a type that is not known.
  bool add(std::string_view written, const std::string& name, int depth = 0) {
    if (depth > deepest || all.size() > most_values) return false;
    const std::string_view type = plain(written);
    const Written w = taken_apart(type);
    if (w.name == "Rep" || w.name == "auto") {
      all.push_back({std::string(type), name});
      return true;
    }
    const auto member = [&](std::string_view of, const std::string& what) {
      return add(of, name.empty() ? "" : name + "_" + what, depth + 1);
    };
    if (w.name == "array" && w.arguments.size() == 2) {
      const long n = std::strtol(std::string(w.arguments[1]).c_str(), nullptr, 10);
      for (long i = 0; i < n; ++i)
        if (!member(w.arguments[0], std::to_string(i))) return false;
      return n > 0;
    }
    if (w.name == "pair" || w.name == "tuple") {
      for (std::size_t i = 0; i < w.arguments.size(); ++i)
        if (!member(w.arguments[i], w.name == "tuple" ? std::to_string(i) : i == 0 ? "first" : "second"))
          return false;
      return true;
    }
    const NamedType* known = find_(w.name);
    if (!known) return false;
    return std::ranges::all_of(known->members, [&](const Declared& m) {
      const std::string of = substituted(m.type, known->parameters, w.arguments);
      return m.name.empty() ? add(of, name, depth + 1) : member(of, m.name);
    });
  }

  std::vector<Declared> all;

 private:
  const FindType& find_;
};

/// "Rep<double> x = 1.0, y[2]" as members; nothing for what is no member that an object holds.
void add_members(std::string_view statement, std::vector<Declared>& to) {
  constexpr std::array others{"using", "typedef", "static", "friend",  "template",  "struct",   "class",
                              "enum",  "union",   "public", "private", "protected", "operator", "virtual"};
  statement = trimmed(statement);
  if (std::ranges::find(others, first_word(statement)) != others.end()) return;
  std::string type;
  for (const std::string_view one : parts_of_list(statement)) {
    const std::string_view named = trimmed(one.substr(0, one.find_first_of("={[")));
    const Declared d = declared(named);
    if (type.empty()) type = d.name.empty() ? "" : d.type;
    const std::string name = d.name.empty() ? d.type : d.name;
    if (type.empty() || !std::ranges::all_of(name, is_word)) return;
    const std::size_t open = one.find('[');
    if (open != std::string_view::npos && open < one.find_first_of("={")) {
      const std::string size(one.substr(open + 1, one.find(']', open) - open - 1));
      to.push_back({"array<" + type + ", " + size + ">", name});
    } else {
      to.push_back({type, name});
    }
  }
}

/// The members between the braces of a structure.
std::vector<Declared> members(std::string_view body) {
  std::vector<Declared> all;
  std::size_t start = 0;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    const std::string_view before = body.substr(start, i - start);
    if (c == ';') {
      if (before.find('(') == std::string_view::npos || before.find('=') < before.find('('))
        add_members(before, all);
      start = i + 1;
    } else if (c == '{') {
      const bool function = before.find('(') != std::string_view::npos && before.find('=') > before.find('(');
      i = closed(body, i) - 1;
      if (function) start = i + 1;
    } else if (c == '(' || c == '[') {
      i = closed(body, i) - 1;
    } else if (c == ':' && body.substr(i, 2) != "::" && (i == 0 || body[i - 1] != ':')) {
      const std::string_view word = trimmed(before);
      if (word == "public" || word == "private" || word == "protected") start = i + 1;
    }
  }
  return all;
}

/// The type that a declaration gives a name to.
std::optional<std::pair<std::string, NamedType>> named_type(std::string_view s) {
  NamedType type;
  type.parameters = template_parameters(s);
  if (take(s, "using")) {
    const std::size_t equals = s.find('='), end = s.find(';');
    if (equals == std::string_view::npos || end < equals) return std::nullopt;
    type.alias = true;
    type.members.push_back({std::string(trimmed(s.substr(equals + 1, end - equals - 1))), ""});
    return std::pair(std::string(first_word(s)), std::move(type));
  }
  if (take(s, "typedef")) {
    const Declared d = declared(s.substr(0, s.find(';')));
    if (d.name.empty()) return std::nullopt;
    type.alias = true;
    type.members.push_back({d.type, ""});
    return std::pair(d.name, std::move(type));
  }
  if (!take(s, "struct") && !take(s, "class")) return std::nullopt;
  const std::string name(first_word(s));
  const std::size_t open = s.find_first_of("{;(=");
  if (name.empty() || open == std::string_view::npos || s[open] != '{') return std::nullopt;
  const std::string_view head = s.substr(name.size(), open - name.size());
  if (const std::size_t colon = head.find(':'); colon != std::string_view::npos)
    for (std::string_view base : parts_of_list(head.substr(colon + 1))) {
      (void)(take(base, "public") || take(base, "private") || take(base, "protected"));
      type.members.push_back({std::string(base), ""});
    }
  for (Declared& m : members(s.substr(open + 1, closed(s, open) - open - 2)))
    type.members.push_back(std::move(m));
  return std::pair(name, std::move(type));
}

}  // namespace

std::vector<std::string_view> parts_of_list(std::string_view list) {
  std::vector<std::string_view> all;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
    if (c == ')' || c == ']' || c == '}' || (c == '>' && i > 0 && list[i - 1] != '-')) --depth;
    if (c != ',' || depth != 0) continue;
    all.push_back(trimmed(list.substr(start, i - start)));
    start = i + 1;
  }
  if (const std::string_view last = trimmed(list.substr(start)); !last.empty()) all.push_back(last);
  return all;
}

Declared declared(std::string_view text) {
  text = trimmed(text.substr(0, text.find('=')));
  std::size_t name = text.size();
  while (name > 0 && is_word(text[name - 1])) --name;
  const std::string_view type = trimmed(text.substr(0, name));
  if (type.empty()) return {std::string(text), ""};
  return {std::string(type), std::string(text.substr(name))};
}

std::unordered_map<std::string, NamedType> named_types(std::string_view text) {
  constexpr std::array starts{"template", "using", "typedef", "struct", "class"};
  std::unordered_map<std::string, NamedType> all;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view word = first_word(text.substr(i));
    const bool begins = std::ranges::find(starts, word) != starts.end();
    std::size_t before = i;
    while (before > 0 && is_space(text[before - 1])) --before;
    // Behind a template's parameters it has been read already, and among them it begins nothing.
    const bool inside =
        before > 0 && std::string_view("<,>").find(text[before - 1]) != std::string_view::npos;
    if (begins && !inside)
      if (auto found = named_type(text.substr(i))) all.insert(std::move(*found));
    i += std::max<std::size_t>(word.size(), 1);
  }
  return all;
}

std::vector<Declared> values_of(const Declared& parameter, const FindType& find) {
  Values values(find);
  if (!values.add(parameter.type, parameter.name)) return {parameter};
  return std::move(values.all);
}

}  // namespace lantern::core
