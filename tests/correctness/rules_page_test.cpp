// compiler/ad/README.md, the page of rules: what it names exists.
//
// A row of its tables is | rule | where it stands | what checks it | where we differ |. In the second column
// a file, `compiler/ad/forward.hpp`, is followed by names in it, `Forward`; in the third a test's file is
// followed by names of its test cases, in quotation marks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace {

const std::filesystem::path root = std::filesystem::path(LANTERN_TEST_DIR).parent_path();

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(root / file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> all_of(const std::string& text, const std::string& expression) {
  const std::regex pattern(expression);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

/// The rows of all tables, without heads and rules, by column.
std::vector<std::vector<std::string>> rows_of(const std::string& page) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : all_of(page, "(?:^|\n)(\\|[^\n]*)"))
    if (!line.starts_with("|---") && !line.starts_with("| Rule"))
      rows.push_back(all_of(line, "\\|([^|]+)(?=\\|)"));
  return rows;
}

bool has_word(const std::string& text, const std::string& word) {
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if ((at == 0 || !in_word(text[at - 1])) &&
        (at + word.size() == text.size() || !in_word(text[at + word.size()])))
      return true;
  return false;
}

/// Files, and what is named after each; what is named before any stands under "".
std::map<std::string, std::vector<std::string>> named_in(const std::string& column,
                                                         const std::string& names) {
  std::map<std::string, std::vector<std::string>> named;
  std::string file;
  for (const std::string& each : all_of(column, "(`[^`]*/[^`]*`|" + names + ")"))
    if (each.find('/') != std::string::npos && each[0] == '`')
      named[file = each.substr(1, each.size() - 2)];
    else
      named[file].push_back(each.substr(1, each.size() - 2));
  return named;
}

void check_place(const std::string& column, std::vector<std::string>& wrong) {
  const auto named = named_in(column, "`[^`]*`");
  if (named.empty()) wrong.push_back("no file in: " + column);
  for (const auto& [file, names] : named) {
    const std::string text = text_of(file);
    if (text.empty()) wrong.push_back("no file " + file);
    if (names.empty()) wrong.push_back("no name in " + file);
    for (const std::string& name : names)
      if (!has_word(text, name)) wrong.push_back("no " + name + " in " + file);
  }
}

void check_tests(const std::string& column, std::vector<std::string>& wrong) {
  static const std::regex is_test(
      "tests/(correctness|golden)/[a-z_]+_test\\.cpp");  // each of these is built and run
  const auto named = named_in(column, "\"[^\"]*\"");
  if (named.empty()) wrong.push_back("no test in: " + column);
  for (const auto& [file, names] : named) {
    const std::string text = text_of(file);
    if (!std::regex_match(file, is_test)) wrong.push_back("not a test's file: " + file);
    if (text.empty()) wrong.push_back("no file " + file);
    if (names.empty()) wrong.push_back("no test case of " + file);
    for (const std::string& name : names)
      if (text.find("TEST_CASE(\"" + name + "\"") == std::string::npos)
        wrong.push_back("no test case " + name);
  }
}

/// What is wrong with a page: names that are not there.
std::vector<std::string> mistakes(const std::string& page) {
  std::vector<std::string> wrong;
  for (const auto& row : rows_of(page)) {
    if (row.size() != 4) {
      wrong.push_back("expected a row of four columns, got " + std::to_string(row.size()));
      continue;
    }
    check_place(row[1], wrong);
    check_tests(row[2], wrong);
  }
  return wrong;
}

}  // namespace

TEST_CASE("what the page of rules names exists", "[rules page]") {
  const std::string page = text_of("compiler/ad/README.md");
  CHECK(rows_of(page).size() > 30);
  for (const std::string& mistake : mistakes(page)) FAIL_CHECK(mistake);
}

TEST_CASE("files that the page of rules names beside its tables are tests", "[rules page]") {
  for (const std::string& file : all_of(text_of("compiler/ad/README.md"), "`([a-z_]+_test\\.cpp)`")) {
    INFO(file);
    CHECK(std::filesystem::exists(root / "tests/correctness" / file));
  }
}

TEST_CASE("every mode is on the page of rules", "[rules page]") {
  const std::string page = text_of("compiler/ad/README.md"), header = text_of("compiler/ad/modes/modes.hpp");
  const std::size_t begin = header.find("enum class mode {");
  REQUIRE(begin != std::string::npos);
  const std::string body = header.substr(begin, header.find("};", begin) - begin);
  const std::vector<std::string> modes = all_of(body, "\n  ([a-z_]+),");
  CHECK(modes.size() >= 11);
  for (const std::string& mode : modes) {
    INFO(mode);
    CHECK(has_word(page, "mode::" + mode));
  }
}

TEST_CASE("the page's test finds what is missing", "[rules page]") {
  const auto row = [](const std::string& place, const std::string& tests) {
    return mistakes("| Rule | a | b | c |\n|---|---|---|---|\n| Fig. 1 | " + place + " | " + tests +
                    " | not |\n");
  };
  const std::string place = "`compiler/ad/forward.hpp`: `Forward`",
                    test = "`tests/correctness/rules_page_test.cpp` \"every mode is on the page of rules\"";
  using Mistakes = std::vector<std::string>;
  CHECK(row(place, test) == Mistakes{});
  CHECK(row("`compiler/ad/forwards.hpp`: `Forward`", test) ==
        Mistakes{"no file compiler/ad/forwards.hpp", "no Forward in compiler/ad/forwards.hpp"});
  CHECK(row("`compiler/ad/forward.hpp`: `Forwar`", test) == Mistakes{"no Forwar in compiler/ad/forward.hpp"});
  CHECK(row("`compiler/ad/forward.hpp`", test) == Mistakes{"no name in compiler/ad/forward.hpp"});
  CHECK(row("somewhere", test) == Mistakes{"no file in:  somewhere "});
  CHECK(row(place, "`tests/correctness/rules_page_test.cpp` \"every mode\"") ==
        Mistakes{"no test case every mode"});
  CHECK(row(place, "`tests/correctness/rules_page_test.cpp`") ==
        Mistakes{"no test case of tests/correctness/rules_page_test.cpp"});
  CHECK(row(place, "`tests/native/pairs.cpp` \"x\"").front() == "not a test's file: tests/native/pairs.cpp");
  CHECK(row(place, "by hand") == Mistakes{"no test in:  by hand "});
  CHECK(mistakes("| Fig. 1 | `compiler/ad/forward.hpp`: `Forward` |\n") ==
        Mistakes{"expected a row of four columns, got 2"});
}
