// docs/names.md, public names beside NumPy's, JAX's and PyTorch's: it has every name of the public headers,
// and no other.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
const fs::path root = fs::path(LANTERN_TEST_DIR).parent_path();

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Without comments, strings and preprocessor lines.
std::string code_of(const std::string& text) {
  std::string code;
  bool line_start = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) {
      while (i < text.size() && text[i] != '\n') ++i;
      code += '\n', line_start = true;
    } else if (line_start && text[i] == '#') {
      while (i < text.size() && !(text[i] == '\n' && text[i - 1] != '\\')) ++i;
      code += '\n';
    } else if (text[i] == '"' ||
               (text[i] == '\'' && (i == 0 || std::isdigit(static_cast<unsigned char>(text[i - 1])) == 0))) {
      const char quote = text[i++];
      while (i < text.size() && text[i] != quote) i += text[i] == '\\' ? 2 : 1;
      code += quote, code += quote;
    } else {
      if (text[i] == '\n')
        line_start = true;
      else if (std::isspace(static_cast<unsigned char>(text[i])) == 0)
        line_start = false;
      code += text[i];
    }
  }
  return code;
}

/// The end of what opens at `at`.
std::size_t closing(const std::string& s, std::size_t at, char open, char close) {
  int depth = 0;
  for (; at < s.size(); ++at) {
    if (s[at] == open) ++depth;
    if (s[at] == close && !(close == '>' && s[at - 1] == '-') && --depth == 0) return at + 1;
  }
  return s.size();
}

/// The names that a declaration at namespace scope declares.
void add_names(std::string text, std::set<std::string>& names) {
  for (std::smatch m; std::regex_search(text, m, std::regex(R"(LANTERN_[A-Z0-9_]+\()"));) {
    const auto begin = static_cast<std::size_t>(m.position()),
               open = begin + static_cast<std::size_t>(m.length()) - 1;
    const std::size_t end = closing(text, open, '(', ')');
    std::smatch name;
    const std::string inside = text.substr(open + 1, end - open - 1);
    if (std::regex_search(inside, name, std::regex(R"(^\s*(\w+))"))) names.insert(name[1]);
    text.erase(begin, end - begin);
  }
  for (const std::string word : {"template", "requires"})
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
      std::size_t open = text.find_first_not_of(" \n", at + word.size());
      if (open == std::string::npos || (text[open] != '<' && text[open] != '(')) {
        at += word.size();
        continue;
      }
      text.erase(at, closing(text, open, text[open], text[open] == '<' ? '>' : ')') - at);
    }
  std::smatch m;
  if (std::regex_search(
          text, m,
          std::regex(R"(^\s*(?:struct|class|enum class|concept)\s+(\w+)(?!\s*<)\s*(?::[^:]|$|=|;))")) ||
      std::regex_search(text, m, std::regex(R"(^\s*using\s+(\w+)\s*=)")) ||
      std::regex_search(text, m, std::regex(R"(^\s*(?:inline\s+)?constexpr\s+[\w:]+\s+(\w+)\s*=)"))) {
    names.insert(m[1]);
    return;
  }
  if (std::regex_search(text, std::regex(R"(^\s*(namespace|using|struct|class|enum|extern)\b|\boperator\b)")))
    return;
  if (std::regex_search(text, m, std::regex(R"((?:^|[\s&*>])(\w+)\s*\()")) && m[1] != "decltype")
    names.insert(m[1]);
}

/// The names that stand directly in `space`, such as "lantern::nn", in a header.
std::set<std::string> declared(const fs::path& header, const std::string& space) {
  // Of functions whose head is one macro and whose end another, the head.
  const std::string code = std::regex_replace(
      code_of(text_of(header)), std::regex(R"((LANTERN_(\w+)_\d\([^)]*\))[^}]*?LANTERN_\2_END)"), "$1");
  std::set<std::string> names;
  std::vector<std::string> open;  // names of namespaces; "" for other braces
  std::string declaration;
  const auto inside = [&] {
    std::string at;
    for (const std::string& name : open) {
      if (name.empty()) return std::string();
      at += (at.empty() ? "" : "::") + name;
    }
    return at;
  };
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i] == '{') {
      std::smatch m;
      const bool is_namespace =
          std::regex_search(declaration, m, std::regex(R"((?:^|[\s;}])namespace\s+([\w:]+)\s*$)"));
      if (!is_namespace && inside() == space) add_names(declaration, names);
      open.push_back(is_namespace ? m[1].str() : std::string());
      declaration.clear();
    } else if (code[i] == '}') {
      REQUIRE(!open.empty());
      if (inside() == space) add_names(declaration, names);
      open.pop_back();
      declaration.clear();
    } else if (code[i] == ';' && std::count(declaration.begin(), declaration.end(), '(') <=
                                     std::count(declaration.begin(), declaration.end(), ')')) {
      if (inside() == space) add_names(declaration, names);
      declaration.clear();
    } else {
      declaration += code[i];
    }
  }
  return names;
}

/// The names of namespace lantern that a public header lists.
std::set<std::string> listed(const fs::path& header) {
  std::set<std::string> names;
  const std::string code = code_of(text_of(header));
  const std::regex line(R"(using core::(?:\w+::)*(\w+);)");
  for (std::sregex_iterator i(code.begin(), code.end(), line), end; i != end; ++i) names.insert((*i)[1]);
  names.erase("name");  // of a macro over the rows of <math.h>
  return names;
}

/// Every public name, as a program with `using namespace lantern` writes it.
std::set<std::string> public_names() {
  std::set<std::string> all;
  for (const char* header : {"lantern", "tensor", "complex", "mdspan"})
    all.merge(listed(root / "compiler" / (std::string(header) + ".hpp")));
  const std::string rows = text_of(root / "ir" / "ops.inc");
  const std::regex row(R"(\nMATH_[12]\((\w+))");
  for (std::sregex_iterator i(rows.begin(), rows.end(), row), end; i != end; ++i) all.insert((*i)[1]);
  const std::vector<std::tuple<std::string, std::string, std::string>> spaces = {
      {"nn", "lantern::nn", "nn"},
      {"solvers", "lantern::solvers", "solvers"},
      {"linalg", "lantern::linalg", "linalg"},
      {"random", "lantern::core::random", "random"},
      {"random", "lantern::core::log_density", "log_density"},
      {"random", "lantern::core::sample", "sample"},
      {"special", "lantern::core::special", "special"}};
  for (const auto& [folder, space, prefix] : spaces)
    for (const auto& file : fs::directory_iterator(root / "compiler" / folder))
      if (file.path().extension() == ".hpp")
        for (const std::string& name : declared(file.path(), space)) all.insert(prefix + "::" + name);
  for (const auto& file : fs::directory_iterator(root / "runtime" / "data"))
    if (file.path().extension() == ".hpp")
      for (const std::string& name : declared(file.path(), "lantern")) all.insert(name);
  return all;
}

/// The names in the first column of the page's tables, and how often each is there.
std::map<std::string, int> page_names() {
  std::map<std::string, int> names;
  std::istringstream page(text_of(root / "docs" / "names.md"));
  const std::regex quoted("`([^`]+)`");
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string first = line.substr(1, line.find('|', 1) - 1);
    for (std::sregex_iterator i(first.begin(), first.end(), quoted), end; i != end; ++i) ++names[(*i)[1]];
  }
  return names;
}

}  // namespace

TEST_CASE("the page of names has every public name once, and no other") {
  const std::set<std::string> expected = public_names();
  CHECK(expected.size() > 300);
  const std::map<std::string, int> page = page_names();
  std::string missing, unknown, twice;
  for (const std::string& name : expected)
    if (!page.contains(name)) missing += name + "\n";
  for (const auto& [name, count] : page) {
    if (!expected.contains(name)) unknown += name + "\n";
    if (count > 1) twice += name + "\n";
  }
  INFO("docs/names.md lacks:\n"
       << missing << "has what no public header has:\n"
       << unknown << "has twice:\n"
       << twice);
  CHECK((missing + unknown + twice).empty());
}

TEST_CASE("names are found in declarations", "[names]") {
  const auto names = [](const std::string& text) {
    const fs::path file = fs::temp_directory_path() / "lantern_names_page_test.hpp";
    std::ofstream(file) << "namespace a::b {\n" << text << "\n}\n";
    const auto found = declared(file, "a::b");
    fs::remove(file);
    return found;
  };
  using Names = std::set<std::string>;
  CHECK(names("struct S { int x; void f(); };") == Names{"S"});
  CHECK(names("template <class T, class U = X<T>> requires(C<T>) [[nodiscard]] Rep<T> f(const T& x = g(1)) { "
              "return h(x); }") == Names{"f"});
  CHECK(names("namespace detail { void hidden(); } int shown(int);  // other()") == Names{"shown"});
  CHECK(names("int f(S s = {}); struct T { }; void g(int i);") == Names{"T", "f", "g"});
  CHECK(names("LANTERN_LAW(two, x)\nLANTERN_LAW(three, y)\nstruct Four;") == Names{"Four", "three", "two"});
  CHECK(names("template <class A> auto operator+(A a, A b) { return a; } using T = int; enum class E { x, y "
              "};") == Names{"E", "T"});
  CHECK(names("LANTERN_LAW_1(five, x) auto y = f(x); return y; LANTERN_LAW_END\nLANTERN_LAW_1(six, x) return "
              "2; LANTERN_LAW_END") == Names{"five", "six"});
  CHECK(names("template <>\nstruct S<int> { };") == Names{});
}
