// Line by line: places that precede a message, the message, what is shown below it; then a message with its
// notes at a time. Lines can be of any length, so that regular expressions would not do.
#include "compiler_messages.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "lantern/ir/text.hpp"
#include "remedies.hpp"

namespace lantern::tool {

namespace {

using std::string_view;

constexpr std::size_t errors_shown = 10, characters_shown = 400;

struct MessagePlace {
  std::string file;
  std::uint32_t line = 0, column = 0;  ///< 0: not known
};

struct CompilerMessage {
  MessagePlace place;
  std::string kind, text;
  std::string first_line;            ///< as it came
  std::vector<std::string> below;    ///< the lines after it, as they came
  std::vector<std::string> include;  ///< "In file included from", as it came
  std::vector<MessagePlace> chain;   ///< what led to it, innermost first
  bool headed = false;               ///< "In function" stood before it
};

/// A message with its notes, or lines of no message.
struct MessageGroup {
  CompilerMessage main;
  std::vector<CompilerMessage> notes;
  std::string other;
};

/// Without escape sequences.
std::string plain(string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    if (text[i + 1] == '[') {
      i += 2;
      while (i < text.size() && (text[i] < '@' || text[i] > '~')) ++i;
    } else if (text[i + 1] == ']') {  // a link; it ends with a bell or ESC and a backslash
      while (i < text.size() && text[i] != '\a' && text.compare(i, 2, "\x1b\\") != 0) ++i;
      if (i < text.size() && text[i] == '\x1b') ++i;
    }
  }
  return out;
}

std::optional<std::uint32_t> leading_number(string_view text, std::size_t& at) {
  const std::size_t begin = at;
  std::uint32_t n = 0;
  for (; at < text.size() && at - begin < 9 && text[at] >= '0' && text[at] <= '9'; ++at)
    n = 10 * n + static_cast<std::uint32_t>(text[at] - '0');
  return at == begin ? std::nullopt : std::optional(n);
}

/// "file:line:column" or "file:line" before `end`, which is where the colon or comma after it is.
std::optional<MessagePlace> place_before(string_view text, std::size_t end) {
  std::array<std::uint32_t, 2> numbers{};
  std::size_t found = 0;
  while (found < 2) {
    const std::size_t colon = end == 0 ? string_view::npos : text.rfind(':', end - 1);
    if (colon == string_view::npos) break;
    std::size_t at = colon + 1;
    const auto n = leading_number(text, at);
    if (!n || at != end) break;
    numbers[found++] = *n;
    end = colon;
  }
  if (found == 0 || end == 0) return std::nullopt;
  return MessagePlace{std::string(text.substr(0, end)), numbers[found - 1], found == 2 ? numbers[0] : 0};
}

/// The kind of message whose name, with ": ", is here.
string_view kind_at(string_view text) {
  for (const string_view kind : {"error", "warning", "note", "fatal error", "remark", "sorry, unimplemented",
                                 "internal compiler error"})
    if (text.starts_with(kind) && text.substr(kind.size()).starts_with(": ")) return kind;
  return {};
}

std::optional<CompilerMessage> message_in(string_view line) {
  if (line.starts_with(' ')) return std::nullopt;
  const auto made = [&](MessagePlace place, string_view kind, std::size_t at) {
    CompilerMessage m;
    m.place = std::move(place);
    m.kind = kind;
    m.text = line.substr(at + kind.size() + 2);
    return m;
  };
  for (std::size_t at = line.find(": "); at != string_view::npos; at = line.find(": ", at + 1)) {
    const string_view kind = kind_at(line.substr(at + 2));
    if (kind.empty()) continue;
    if (auto place = place_before(line, at)) return made(std::move(*place), kind, at + 2);
    return made({std::string(line.substr(0, at)), 0, 0}, kind, at + 2);
  }
  if (const string_view kind = kind_at(line); !kind.empty()) return made({}, kind, 0);
  return std::nullopt;
}

/// "file:1:2:   required from here", "    inlined from 'f' at file:1:2:".
std::optional<MessagePlace> link_in(string_view line) {
  if (line.starts_with("    inlined from ")) {
    const std::size_t at = line.rfind(" at ");
    if (at == string_view::npos || line.size() < 2) return std::nullopt;
    line.remove_prefix(at + 4);
    return place_before(line, line.size() - 1);
  }
  if (line.starts_with(' ')) return std::nullopt;
  for (std::size_t at = line.find(":   "); at != string_view::npos; at = line.find(":   ", at + 1))
    if (auto place = place_before(line, at)) return place;
  return std::nullopt;
}

/// "file: In function 'f':"
bool is_heading(string_view line) {
  if (line.empty() || line.starts_with(' ') || (line.back() != ':' && line.back() != ',')) return false;
  return line.find(": In ") != string_view::npos || line.find(": At ") != string_view::npos ||
         line.starts_with("In ") || line.starts_with("At ");
}

bool is_closing_word(string_view line) {
  return line.starts_with("cc1plus: note: ") || line == "compilation terminated." || line == "cc1plus: some warnings being treated as errors" ||
         (line.ends_with(" generated.") && ir::is_digit(line[0]));
}

/// What Clang says in notes of how it got to a place.
bool is_link_note(string_view text) {
  const bool names_of_binding = text.find("’ decomposes into ") != string_view::npos;  // how many g++ expected
  return text.ends_with("requested here") || text.ends_with("required here") || (text.starts_with("while ") && !names_of_binding) ||
         text.starts_with("in call to ") || text.starts_with("in instantiation of ") ||
         text.starts_with("during template argument deduction") || text.starts_with("(skipping ");
}

/// The text that a deleted function of Lantern's has for its callers (compiler/staging/told.hpp): g++ shows it in the
/// function's type as Text<5>{"text"}.
std::optional<std::string> told_by_type(string_view text) {
  for (std::size_t at = text.find("Text<"); at != string_view::npos; at = text.find("Text<", at + 1)) {
    std::size_t from = at + 5;
    if (!leading_number(text, from) || !text.substr(from).starts_with(">{\"")) continue;
    std::string out;
    for (from += 3; from < text.size() && text[from] != '"'; ++from) {
      if (text[from] == '\\') ++from;
      if (from < text.size()) out += text[from];
    }
    return out;
  }
  return std::nullopt;
}

std::vector<string_view> texts_of(const std::vector<CompilerMessage>& notes) {
  std::vector<string_view> all;
  for (const CompilerMessage& note : notes) all.push_back(note.text);
  return all;
}

/// What to write where a Rep is the index of a container of C++.
std::optional<std::string> index_of_container(const MessageGroup& group) {
  const auto found = indexing(group.main.text, texts_of(group.notes));
  if (!found || is_rep(found->container) || !is_rep(found->index)) return std::nullopt;
  return "a Rep has no value yet and cannot be the index of a " + std::string(found->shown) +
         ": make it an argument of the program, Rep<Array<double>>, or write constant_table(table)[i]";
}

/// A value of the library's that is computed for nothing, with the attribute's text.
std::optional<std::string> unused_value(string_view text) {
  constexpr string_view before = "ignoring return value of ‘", attribute = ", declared with attribute ‘nodiscard’",
                        warning = " [-Wunused-result]";
  const std::size_t at = text.find(attribute);
  if (!text.starts_with(before) || !text.substr(before.size()).starts_with("lantern::") || at == string_view::npos)
    return std::nullopt;
  text.remove_prefix(at + attribute.size());
  if (text.ends_with(warning)) text.remove_suffix(warning.size());
  constexpr string_view open = ": ‘", close = "’";
  const bool has_text = text.starts_with(open) && text.ends_with(close);
  return "the result is not used" +
         (has_text ? "; " + std::string(text.substr(open.size(), text.size() - open.size() - close.size())) : "") +
         std::string(warning);
}

/// An assertion of a macro of Lantern's, which Clang places where the macro is used.
std::optional<std::string> asserted_by_macro(string_view text) {
  constexpr string_view before = "static assertion failed due to requirement '::lantern::core::";
  const std::size_t end = text.starts_with(before) ? text.find("': ", before.size()) : string_view::npos;
  if (end == string_view::npos) return std::nullopt;
  return std::string(text.substr(end + 3));
}

/// Array<double> or Tensor<double, dyn> where a Rep of it belongs.
std::optional<std::string> missing_rep(const MessageGroup& group) {
  const auto type_in = [](string_view text) -> std::optional<std::string> {
    for (const string_view kind : {"lantern::core::Array<", "lantern::core::Tensor<"}) {
      const std::size_t at = text.find(kind), end = text.find_first_of("’'", at);
      if (at == string_view::npos || end == string_view::npos) continue;
      std::string type(text.substr(at + string_view("lantern::core::").size(), end - at - string_view("lantern::core::").size()));
      for (std::size_t dim = type.find("-1"); dim != std::string::npos; dim = type.find("-1", dim)) type.replace(dim, 2, "dyn");
      return type;
    }
    return std::nullopt;
  };
  if (group.main.text.find("incomplete type") == std::string::npos && group.main.text.find("undefined template") == std::string::npos)
    return std::nullopt;
  std::optional<std::string> type = type_in(group.main.text);
  for (const CompilerMessage& note : group.notes)
    if (!type) type = type_in(note.text);
  if (!type) return std::nullopt;
  constexpr string_view element = "<lantern::core::Rep<";
  if (const std::size_t at = type->find(element); at != std::string::npos) {
    // Array<Rep<double> >, by g++ with a blank.
    std::string whole = *type;
    whole.erase(at + 1, element.size() - 1);
    whole.erase(whole.find('>', at), 1);
    std::erase(whole, ' ');
    for (std::size_t comma = whole.find(','); comma != std::string::npos; comma = whole.find(',', comma + 1)) whole.insert(comma + 1, " ");
    return "write Rep<" + whole + ">: a Rep is of the whole " + (whole.starts_with("Array") ? "array" : "tensor") +
           ", not of each element";
  }
  return "write Rep<" + *type + ">: " + *type + " alone names a type of values that exist only when the program runs";
}

/// A name that the user and namespace lantern both have, as g++ and Clang say it.
std::optional<std::string> ambiguous_name(const MessageGroup& group) {
  constexpr string_view before = "reference to ", after = " is ambiguous";
  string_view name = group.main.text;
  if (!name.starts_with(before) || !name.ends_with(after) || std::ranges::none_of(group.notes, [](const CompilerMessage& note) {
        return note.text.find("lantern::") != std::string::npos || note.place.file.find("/lantern/") != std::string::npos;
      }))
    return std::nullopt;
  name = name.substr(before.size(), name.size() - before.size() - after.size());
  for (const string_view quote : {"‘", "’", "'"}) {
    if (name.starts_with(quote)) name.remove_prefix(quote.size());
    if (name.ends_with(quote)) name.remove_suffix(quote.size());
  }
  const std::string plain_name(name);
  return "namespace lantern has the name " + plain_name + ", too: write ::" + plain_name + " for yours, lantern::" + plain_name +
         " for Lantern's";
}

/// A function given by a name that does not say which, as Clang says it.
std::optional<std::string> unresolved_name(string_view text) {
  if (!text.starts_with("reference to overloaded function could not be resolved")) return std::nullopt;
  return "write ::f if Lantern has an f, too, f<Rep<double>> if f is a template, or a lambda that calls the "
         "one you mean, [](Rep<double> x) { return f(x); }: several functions have this name, or it is a "
         "template";
}

/// What the message means to a user of the library, where that is known.
/// `line`: the user's line that it is about.
std::optional<std::string> in_lanterns_words(const MessageGroup& group, const std::string& line, const std::string& include) {
  for (const auto rule : {told_by_type, unused_value, asserted_by_macro, unresolved_name})
    if (auto words = rule(group.main.text)) return words;
  for (const auto rule : {index_of_container, ambiguous_name, missing_rep})
    if (auto words = rule(group)) return words;
  return remedy(group.main.text, texts_of(group.notes), line, include);
}

bool is_error(const CompilerMessage& m) { return m.kind.find("error") != std::string::npos; }

std::vector<MessageGroup> groups_of(const std::string& output) {
  std::vector<MessageGroup> all;
  CompilerMessage next;              // what is known before its line comes
  CompilerMessage* shown = nullptr;  // the message that lines now belong to
  std::istringstream stream(output);
  for (std::string raw; std::getline(stream, raw);) {
    const std::string line = plain(raw);
    if (line.starts_with("In file included from ")) {
      next.include.push_back(raw);
      shown = nullptr;
    } else if (!next.include.empty() && shown == nullptr && line.starts_with("                 from ")) {
      next.include.push_back(raw);
    } else if (auto place = link_in(line)) {
      next.chain.push_back(std::move(*place));
      shown = nullptr;
    } else if (is_closing_word(line)) {
      shown = nullptr;
    } else if (auto message = message_in(line)) {
      message->first_line = raw;
      message->include = std::move(next.include);
      message->chain = std::move(next.chain);
      message->headed = next.headed;
      next = {};
      if (message->kind != "note" || all.empty() || all.back().main.kind.empty()) all.emplace_back();
      MessageGroup& group = all.back();
      shown = &(group.main.kind.empty() ? group.main : group.notes.emplace_back());
      *shown = std::move(*message);
    } else if (is_heading(line)) {
      next.chain.clear();
      next.headed = true;
      shown = nullptr;
    } else if (shown != nullptr) {
      shown->below.push_back(raw);
    } else {
      if (all.empty() || !all.back().main.kind.empty()) all.emplace_back();
      all.back().other += raw + "\n";
    }
  }
  return all;
}

/// Whether the compiler, or a linker, says something that is not about the program's text.
bool is_crash(const std::string& output) {
  for (const char* word :
       {"internal compiler error", "submit a full bug report", "submit a bug report",
        "Stack dump:", "terminated program cc1plus", "collect2: ", "ld returned ", "linker command failed"})
    if (output.find(word) != std::string::npos) return true;
  return false;
}

/// The number of characters.
std::size_t width(string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// With spaces, as compilers show lines.
std::string without_tabs(string_view line) {
  std::string out;
  for (const char c : line)
    if (c == '\t')
      out.append(8 - width(out) % 8, ' ');
    else
      out += c;
  return out;
}

constexpr const char* no_range = "expected an array, a container or a braced list behind ':'";

/// g++ says of a range-based for over no range, at one place, that begin and that end was not declared: one error.
void join_range_errors(std::vector<MessageGroup>& groups) {
  const auto tells_of = [](const MessageGroup& g, string_view name) {
    return is_error(g.main) && g.main.text.starts_with("‘" + std::string(name) + "’ was not declared in this scope");
  };
  for (MessageGroup& g : groups) {
    if (!tells_of(g, "begin")) continue;
    const auto other = std::ranges::find_if(groups, [&](const MessageGroup& o) {
      return tells_of(o, "end") && o.main.place.file == g.main.place.file && o.main.place.line == g.main.place.line &&
             o.main.place.column == g.main.place.column;
    });
    if (other == groups.end()) continue;
    g.main.text = other->main.text = no_range;
    g.notes.clear(), other->notes.clear();
  }
}

/// Of two LANTERN_FUNCTIONs of one name the compiler tells several declarations that the macro makes: the first is enough.
void join_name_errors(std::vector<MessageGroup>& groups) {
  static constexpr string_view expanded = "in expansion of macro ";
  const auto is_second = [](const MessageGroup& g) {
    return is_error(g.main) && g.main.text.starts_with("redefinition of ") && g.main.text.find("lantern_program_") != std::string::npos;
  };
  const auto found = std::ranges::find_if(groups, is_second);
  if (found == groups.end()) return;
  const auto lines_of = [](const MessageGroup& g) {
    std::set<std::pair<std::string, std::uint32_t>> lines{{g.main.place.file, g.main.place.line}};
    for (const MessagePlace& p : g.main.chain) lines.insert({p.file, p.line});
    for (const CompilerMessage& n : g.notes)
      if (n.text.starts_with(expanded) || n.text.starts_with("expanded from macro ")) lines.insert({n.place.file, n.place.line});
    return lines;
  };
  const auto second = lines_of(*found);
  const auto follows = [&](const MessageGroup& g) {
    const bool declares = g.main.text.starts_with("redefinition of ") || g.main.text.starts_with("conflicting declaration ");
    return is_error(g.main) && declares && !is_second(g) && std::ranges::any_of(lines_of(g), [&](const auto& l) { return second.contains(l); });
  };
  for (MessageGroup& g : groups) {
    if (!is_second(g)) continue;
    const auto expands = [&](const CompilerMessage& n) { return n.text.starts_with(expanded); };
    const auto here = std::ranges::find_if(g.notes, expands);
    if (here == g.notes.end()) continue;
    for (auto other = here + 1; other != g.notes.end(); ++other)
      if (expands(*other)) other->first_line.replace(other->first_line.find(expanded), std::string::npos, other->text = "the other one is here");
  }
  std::erase_if(groups, follows);
}

/// LANTERN_FUNCTION(my::g, f): the macro makes several names of my::g, and the compiler refuses each.
void join_qualified_names(std::vector<MessageGroup>& groups) {
  const auto tells = [](const MessageGroup& g) {
    return is_error(g.main) && g.main.text.find("lantern_program_") != std::string::npos &&
           (g.main.text.find("has not been declared") != std::string::npos || g.main.text.starts_with("use of undeclared identifier"));
  };
  const auto found = std::ranges::find_if(groups, tells);
  if (found == groups.end()) return;
  const auto lines_of = [](const MessageGroup& g) {
    std::vector<MessagePlace> places{g.main.place};
    for (const CompilerMessage& n : g.notes) places.push_back(n.place);
    std::set<std::pair<std::string, std::uint32_t>> lines;
    for (const MessagePlace& p : places)
      if (p.file.find("/lantern/compiler/") == std::string::npos) lines.insert({p.file, p.line});
    return lines;
  };
  const auto lines = lines_of(*found);
  const auto follows = [&](const MessageGroup& g) {
    const auto meets = [&](const auto& line) { return lines.contains(line); };
    return &g != &*found && is_error(g.main) && std::ranges::any_of(lines_of(g), meets);
  };
  found->main.text = "static assertion failed: the name of a LANTERN_FUNCTION is one word: write the macro inside of the namespace";
  std::vector<MessageGroup> left;
  for (MessageGroup& g : groups)
    if (!follows(g)) left.push_back(std::move(g));
  groups = std::move(left);
}

std::string line_of(const MessagePlace& place) {
  std::ifstream in(place.file);
  std::string line;
  for (std::uint32_t i = 0; i < place.line; ++i)
    if (!std::getline(in, line)) return {};
  return line;
}

bool has_word(string_view line, string_view word) {
  for (std::size_t at = line.find(word); at != string_view::npos; at = line.find(word, at + 1)) {
    const string_view behind = line.substr(at + word.size());
    if ((at == 0 || !ir::is_word(line[at - 1])) && (behind.empty() || !ir::is_word(behind.front())))
      return true;
  }
  return false;
}

std::string complaint(const std::string& place, const std::string& words) { return place + "error: " + words + "\n"; }

/// A macro of the user's that replaces a name in Lantern's headers, which then do not compile: what is said
/// in the place of all errors that follow from it.
std::optional<std::string> told_of_macro(const std::vector<MessageGroup>& groups,
                                         const MessageOptions& options) {
  const auto first = std::ranges::find_if(groups, [](const MessageGroup& g) { return is_error(g.main); });
  if (first == groups.end() || options.include.empty()) return std::nullopt;
  const auto in_headers = [&](const MessagePlace& p) {
    return std::filesystem::path(p.file).lexically_normal().string().starts_with(options.include + "/");
  };
  std::vector<MessagePlace> places{first->main.place};
  for (const CompilerMessage& n : first->notes) places.push_back(n.place);
  const auto header = std::ranges::find_if(places, in_headers);
  const bool in_header = in_headers(first->main.place);
  // g++ shows only where the macro is defined, where it is written as it is.
  const std::string shown = line_of(first->main.place);
  const string_view defined = ir::trimmed(shown);
  const string_view define = "#define ";
  if (!in_header && defined.starts_with(define)) {
    string_view name = ir::trimmed(defined.substr(define.size()));
    name = name.substr(0, std::ranges::find_if_not(name, ir::is_word) - name.begin());
    const bool by_headers = header != places.end() || std::ranges::any_of(groups, [&](const MessageGroup& g) {
                              return is_error(g.main) && in_headers(g.main.place);
                            });
    if (!name.empty() && by_headers)
      return complaint(first->main.place.file + ":" + std::to_string(first->main.place.line) + ":9: ",
                       "the macro '" + std::string(name) + "' replaces a name in Lantern's headers: include them above it, or give it another name");
  }
  if (!in_header) return std::nullopt;
  const std::string line = line_of(first->main.place);
  for (const std::string& name : options.macros)
    if (has_word(line, name))
      return complaint({}, "the macro '" + name + "' of -D" + name + " replaces a name in Lantern's headers: give it another name, of several letters");
  return std::nullopt;
}

class MessageWriter {
 public:
  MessageWriter(const MessageOptions& options, bool colour) : options_(options), colour_(colour) {}

  void write(const MessageGroup& group) {
    if (group.main.kind.empty()) {
      out_ += group.other;
      return;
    }
    if (auto text = in_lanterns_words(group, line_of_user(group), options_.include)) {
      MessageGroup plainer = group;
      plainer.main.text = std::move(*text);
      return write(plainer, true);
    }
    write(group, group.main.text == no_range);
  }

  std::string text() const {
    if (errors_ <= errors_shown) return out_;
    const std::size_t more = errors_ - errors_shown;
    return out_ + std::to_string(more) + " more error" + (more == 1 ? "" : "s") +
           "; --all-messages shows what the compiler said\n";
  }
  bool any_error() const { return errors_ > 0; }

 private:
  /// `replaced`: the message's text is not the compiler's.
  void write(const MessageGroup& group, bool replaced) {
    const CompilerMessage& main = group.main;
    const bool own = of_user(main.place.file) || main.place.line == 0;
    const std::vector<MessagePlace>& chain = chain_of(group, own);
    const std::optional<MessagePlace> expansion = own ? std::nullopt : user_expansion(group);
    const std::optional<MessagePlace> place = own ? main.place : expansion ? expansion : user_place(chain);
    // A warning of a header that no line of the user's leads to, such as what the optimiser thinks of fmt.
    if (!own && !place && main.kind == "warning") return;
    const std::string line = place ? place->file + ":" + std::to_string(place->line) : "";
    const std::string at = place ? line + ":" + std::to_string(place->column) : main.first_line;
    if (main.kind == "warning" && place && options_.wanted &&
        !options_.wanted(place->file, place->line, main.text))
      return;
    // A body that does not compile for what it does not capture does not fit either.
    const bool of_capture = is_error(main) && (main.text.find("is not captured") != std::string::npos ||
                                               main.text.find("does not capture") != std::string::npos);
    if (is_error(main) && std::exchange(after_capture_, of_capture) && asserted(main.text)) return;
    // What follows in headers from a mistake that has been told: in a macro's text, from one of its
    // arguments.
    if (!own && place && is_error(main) && !asserted(main.text) &&
        places_told_.count(expansion ? line : at) != 0)
      return;
    // What follows at the same place from a mistake for which there is a remedy.
    if (own && is_error(main) && !replaced && explained_.count(at) != 0) return;
    if (!told_.insert((replaced && !line.empty() ? line : at) + main.kind + main.text).second) return;
    if (is_error(main)) {
      if (replaced) explained_.insert(at);
      places_told_.insert({at, line});
      if (++errors_ > errors_shown) return;
    }
    if (own && replaced)
      show(main.place, main.kind, main.text);
    else if (own)
      show(main);
    else if (place)
      show(*place, main.kind, replaced ? main.text : text_elsewhere(main));
    else
      show_as_it_came(main);
    write_notes(group, own ? std::nullopt : place);
  }

  bool of_user(const std::string& file) const {
    if (file.empty() || file[0] == '<') return false;
    const std::string path = std::filesystem::path(file).lexically_normal().string();
    const auto below = [&](string_view directory) {
      while (directory.ends_with('/')) directory.remove_suffix(1);
      return !directory.empty() && path.size() > directory.size() && path.starts_with(directory) &&
             path[directory.size()] == '/';
    };
    if (below(options_.include) || std::ranges::any_of(options_.not_of_user, below)) return false;
    for (const char* system :
         {"/usr/include", "/usr/lib", "/usr/lib64", "/usr/local/include", "/usr/local/lib"})
      if (below(system)) return false;
    for (const char* part : {"/include/c++/", "/lib/gcc/", "/lib/clang/"})
      if (path.find(part) != std::string::npos) return false;
    return true;
  }

  /// What led to a message. A compiler says that once for several messages in turn.
  const std::vector<MessagePlace>& chain_of(const MessageGroup& group, bool own) {
    std::vector<MessagePlace> chain = group.main.chain;
    for (const CompilerMessage& note : group.notes)
      if (is_link_note(note.text)) chain.push_back(note.place);
    has_headings_ |= group.main.headed;
    // Without headings, as Clang writes, is not known whether the user's own line is in the same template.
    const bool elsewhere = group.main.headed || (own && !has_headings_);
    if (!chain.empty() || elsewhere) chain_ = std::move(chain);
    return chain_;
  }

  /// Where a macro of a header is expanded in the user's file: that is where the text is.
  std::optional<MessagePlace> user_expansion(const MessageGroup& group) const {
    for (const CompilerMessage& note : group.notes) {
      if (!note.text.starts_with("in expansion of macro ")) break;
      if (of_user(note.place.file)) return note.place;
    }
    return std::nullopt;
  }

  std::string line_of_user(const MessageGroup& group) {
    const bool own = of_user(group.main.place.file) || group.main.place.line == 0;
    const std::optional<MessagePlace> expansion = own ? std::nullopt : user_expansion(group);
    const std::optional<MessagePlace> place = own || expansion ? expansion : user_place(chain_of(group, own));
    if (place && place->line > 0 && place->line <= lines_of(place->file).size()) return lines_of(place->file)[place->line - 1];
    return group.main.below.empty() ? std::string() : plain(group.main.below.front());
  }

  /// The innermost one.
  std::optional<MessagePlace> user_place(const std::vector<MessagePlace>& chain) const {
    const auto found = std::ranges::find_if(chain, [&](const MessagePlace& p) { return of_user(p.file); });
    return found == chain.end() ? std::nullopt : std::optional(*found);
  }

  /// The text of a static assertion.
  static std::optional<std::string> asserted(const std::string& text) {
    constexpr string_view gcc = "static assertion failed: ",
                          clang = "static assertion failed due to requirement '";
    if (text.starts_with(gcc)) return text.substr(gcc.size());
    const std::size_t end = text.starts_with(clang) ? text.find("': ", clang.size()) : std::string::npos;
    if (end == std::string::npos) return std::nullopt;
    return text.substr(end + 3);
  }

  std::string text_elsewhere(const CompilerMessage& m) const {
    if (auto text = asserted(m.text)) return *text;
    std::string text = m.text;
    if (text.size() > characters_shown) {
      std::size_t end = characters_shown;
      while ((static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
      text = text.substr(0, end) + " ...";
    }
    std::string name = std::filesystem::path(m.place.file).lexically_normal().string();
    if (!options_.include.empty() && name.starts_with(options_.include + "/"))
      name.erase(0, options_.include.size() + 1);
    return text + " (in " + name + ":" + std::to_string(m.place.line) + ")";
  }

  void write_notes(const MessageGroup& group, const std::optional<MessagePlace>& told_at) {
    bool candidate_shown = true;
    const CompilerMessage* introduction = nullptr;  // of notes that follow, where one of them is shown
    for (const CompilerMessage& note : group.notes) {
      if (is_link_note(note.text)) continue;
      // What g++ indents is about the candidate before it, wherever it is.
      const bool about_candidate = note.text.starts_with(' ');
      const bool shown = of_user(note.place.file) && !note.text.ends_with("(built-in)") &&
                         (!about_candidate || candidate_shown);
      if (!about_candidate) candidate_shown = shown;
      if (!about_candidate && !shown) introduction = nullptr;
      if (!shown) continue;
      if (told_at && note.text.starts_with("in expansion of macro ") && note.place.file == told_at->file &&
          note.place.line == told_at->line)
        continue;
      if (note.text == "suggested alternatives:" || (about_candidate && note.text.ends_with(':'))) {
        introduction = &note;
        continue;
      }
      if (introduction != nullptr) show(*std::exchange(introduction, nullptr));
      show(note);
    }
  }

  void show_as_it_came(const CompilerMessage& m) {
    for (const std::string& line : m.include) out_ += line + "\n";
    out_ += m.first_line + "\n";
    for (const std::string& line : m.below) out_ += line + "\n";
  }

  /// At a place of the user's, or at none: as it came but for the column, where that is one of another text.
  void show(const CompilerMessage& m) {
    const bool same = m.place.line == 0 || m.place.column == 0 || column(m.place) == m.place.column;
    if (!same) return show(m.place, m.kind, m.text);
    out_ += m.first_line + "\n";
    for (const std::string& line : m.below) out_ += line + "\n";
  }

  void show(const MessagePlace& place, const std::string& kind, const std::string& text) {
    const auto at = column(place);
    const std::string name =
        place.file + ":" + std::to_string(place.line) + (at ? ":" + std::to_string(*at) : "") + ":";
    const std::string_view tint = kind == "note" ? "01;36" : kind == "warning" ? "01;35" : "01;31";
    out_ += coloured(name, "01") + " " + coloured(kind + ": ", tint) + text + "\n";
    const std::vector<std::string>& lines = lines_of(place.file);
    if (place.line == 0 || place.line > lines.size()) return;
    const std::string& line = lines[place.line - 1];
    std::string margin = std::to_string(place.line);
    margin.insert(0, margin.size() < 5 ? 5 - margin.size() : 0, ' ');
    const std::size_t first = std::min(line.find_first_not_of(" \t"), line.size());
    const std::size_t caret = at ? std::min<std::size_t>(*at - 1, line.size()) : first;
    const std::string before = without_tabs(line.substr(0, caret));
    std::string mark = "^";
    if (!at && line.size() > first + 1) mark.append(line.size() - first - 1, '~');
    out_ += margin + " | " + without_tabs(line) + "\n" + std::string(margin.size(), ' ') + " | " +
            std::string(width(before), ' ') + coloured(mark, tint) + "\n";
  }

  /// The column of the user's file.
  std::optional<std::uint32_t> column(const MessagePlace& place) const {
    if (place.column == 0) return std::nullopt;
    return options_.column ? options_.column(place.file, place.line, place.column) : place.column;
  }

  std::string coloured(string_view text, string_view tint) const {
    if (!colour_) return std::string(text);
    return "\x1b[" + std::string(tint) + "m\x1b[K" + std::string(text) + "\x1b[m\x1b[K";
  }

  const std::vector<std::string>& lines_of(const std::string& file) {
    const auto [found, is_new] = files_.try_emplace(file);
    if (is_new) {
      std::ifstream in(file);
      for (std::string line; std::getline(in, line);) {
        if (line.ends_with('\r')) line.pop_back();
        found->second.push_back(line);
      }
    }
    return found->second;
  }

  const MessageOptions& options_;
  bool colour_;
  std::string out_;
  std::size_t errors_ = 0;
  std::set<std::string> told_, places_told_, explained_;
  std::vector<MessagePlace> chain_;
  bool has_headings_ = false, after_capture_ = false;
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace

std::string messages_for_users(const std::string& output, const MessageOptions& options) {
  if (is_crash(output)) return output;
  std::vector<MessageGroup> groups = groups_of(output);
  if (const auto told = told_of_macro(groups, options)) return *told;
  join_range_errors(groups);
  join_name_errors(groups);
  join_qualified_names(groups);
  if (std::ranges::none_of(groups, [](const MessageGroup& g) { return !g.main.kind.empty(); })) return output;
  MessageWriter writer(options, output.find("\x1b[") != std::string::npos);
  // Where Clang finds errors in all functions with native control flow, nothing is rewritten: those errors come first. So does
  // what is wrong with the function that gives a range.
  const auto follows = [](const MessageGroup& g) {
    return g.main.text == no_range || g.main.text.find("and lanternc does not rewrite control flow here") != std::string::npos;
  };
  const bool first_errors = std::ranges::any_of(groups, [&](const MessageGroup& g) { return is_error(g.main) && !follows(g); });
  for (const MessageGroup& group : groups)
    if (!first_errors || !follows(group)) writer.write(group);
  const bool error = std::ranges::any_of(groups, [](const MessageGroup& g) { return is_error(g.main); });
  return error && !writer.any_error() ? output : writer.text();
}

}  // namespace lantern::tool
