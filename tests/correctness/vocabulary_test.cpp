// Comments use the words of the field. The words that they must not use are counted, and the counts may only fall.
// Two types of one library do not share a qualified name.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "../golden/golden.hpp"

namespace fs = std::filesystem;

namespace {

const fs::path root = fs::path(LANTERN_TEST_DIR).parent_path();

/// CONTRIBUTING.md says what to write in place of each.
const std::vector<std::string> words{"trip", "trips", "nobody", "at hand", "alike", "apart", "stands"};

std::vector<fs::path> sources(const std::set<std::string>& folders, const std::set<std::string>& kinds) {
  std::vector<fs::path> found;
  for (const std::string& folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.is_regular_file() && kinds.contains(entry.path().extension().string())) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> lines(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

/// The comment of a line, of documentation the line.
std::string prose(const fs::path& file, const std::string& line) {
  if (file.extension() == ".md") return line;
  for (std::size_t at = line.find("//"); at != std::string::npos; at = line.find("//", at + 1))
    if ((at == 0 || line[at - 1] != ':') && std::ranges::count(line.substr(0, at), '"') % 2 == 0) return line.substr(at);
  return "";
}

}  // namespace

TEST_CASE("the words that comments must not use become fewer") {
  std::map<std::string, std::size_t> counts;
  std::vector<fs::path> files = sources({"compiler", "ir", "codegen", "runtime", "tools", "samples", "docs"},
                                        {".cpp", ".hpp", ".h", ".inc", ".md"});
  files.push_back(root / "README.md");
  std::map<std::string, std::regex> patterns;
  for (const std::string& word : words) patterns[word] = std::regex("\\b" + word + "\\b", std::regex::icase);
  for (const fs::path& file : files)
    for (const std::string& line : lines(file)) {
      const std::string text = prose(file, line);
      if (text.empty()) continue;
      for (const std::string& word : words)
        counts[word] += static_cast<std::size_t>(
            std::distance(std::sregex_iterator(text.begin(), text.end(), patterns[word]), std::sregex_iterator()));
    }
  std::ostringstream now;
  now << "Lines of comments and documentation may use these words so many times, and the numbers only fall.\n";
  for (const std::string& word : words) now << word << " " << counts[word] << "\n";
  lantern::test::check_golden("vocabulary.txt", now.str());
}

TEST_CASE("no two types have one qualified name") {
  // By namespace and name, for types at namespace scope: those of unnamed namespaces may share a name.
  const std::regex opens("^namespace ([a-z_:A-Z0-9]+)? ?\\{"), closes("^\\}  // namespace ?(.*)$"),
      type("^(?:struct|class|enum class|union) ([A-Za-z_0-9]+)(?: final)?(?: :[^;]*)? ?\\{");
  std::map<std::string, std::set<std::string>> places;
  for (const fs::path& file : sources({"compiler", "ir", "codegen", "runtime"}, {".cpp", ".hpp", ".h"})) {
    if (file.stem().string().ends_with("_text")) continue;  // text of generated code
    std::vector<std::string> scopes;
    for (const std::string& line : lines(file)) {
      std::smatch m;
      if (std::regex_search(line, m, opens))
        scopes.push_back(m[1]);
      else if (std::regex_search(line, m, closes) && !scopes.empty())
        scopes.pop_back();
      else if (std::regex_search(line, m, type) && std::ranges::count(scopes, "") == 0) {
        std::string name;
        for (const std::string& scope : scopes) name += scope + "::";
        places[name + m[1].str()].insert(file.lexically_relative(root).string());
      }
    }
  }
  CHECK(places.size() > 500);
  for (const auto& [name, files] : places) {
    std::string all;
    for (const std::string& file : files) all += " " + file;
    INFO(name << ":" << all);
    CHECK(files.size() == 1);
  }
}
