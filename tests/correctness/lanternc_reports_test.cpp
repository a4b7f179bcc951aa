// What lanternc tells of a model: --explain, and the page of --emit=html.
#include <catch2/catch.hpp>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "../occurrences.hpp"
#include "lantern/codegen/toolchain/process.hpp"

namespace fs = std::filesystem;
using lantern::codegen::read_file;
using lantern::codegen::run_process;
using lantern::codegen::write_file;

namespace {

const fs::path directory = LANTERN_TEST_DIR "/explain";
const std::string model = directory / "model.cpp";

std::string lanternc(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), LANTERNC);
  const auto r = run_process(arguments);
  INFO(r.err);
  REQUIRE(r.status == 0);
  CHECK(r.err.empty());
  return r.out;
}

std::string without(std::string text, const std::string& what) {
  for (std::size_t at; (at = text.find(what)) != std::string::npos;) text.erase(at, what.size());
  return text;
}

using lantern::test::count;

/// What is wrong with the elements of a page; empty where each is closed in turn and attributes are quoted.
std::string malformed(const std::string& page) {
  std::vector<std::string> open;
  std::set<std::string> ids;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    const auto skip = [&](const char* begin, const char* end) {
      if (page.compare(at, std::string(begin).size(), begin) != 0) return false;
      at = page.find(end, at);
      if (at == std::string::npos) at = page.size();
      return true;
    };
    if (skip("<!--", "-->") || skip("<![CDATA[", "]]>") || skip("<!DOCTYPE", ">")) continue;
    std::size_t end = at + 1;
    for (bool quoted = false; end < page.size() && (quoted || page[end] != '>'); ++end) {
      if (page[end] == '"') quoted = !quoted;
      if (!quoted && page[end] == '<') return "'<' inside an element at " + std::to_string(at);
    }
    if (end >= page.size()) return "an element without end at " + std::to_string(at);
    const std::string inside = page.substr(at + 1, end - at - 1);
    const std::string name = inside.substr(0, inside.find_first_of(" \n/", inside[0] == '/' ? 1 : 0));
    if (inside[0] == '/') {
      if (open.empty() || "/" + open.back() != name) return "unexpected <" + name + ">";
      open.pop_back();
    } else if (inside.back() != '/') {
      open.push_back(name);
    }
    if (const std::size_t id = inside.find(" id=\""); id != std::string::npos)
      if (!ids.insert(inside.substr(id, inside.find('"', id + 5) - id)).second)
        return "an id stands twice: " + inside;
    at = end;
    // Text up to the next element.
    const std::size_t next = page.find('<', at);
    if (open.empty() || open.back() == "style" || open.back() == "script") continue;
    for (std::size_t amp = page.find('&', at); amp < next; amp = page.find('&', amp + 1))
      if (page.find(';', amp) > amp + 8) return "a bare '&' at " + std::to_string(amp);
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

/// Classes of the user's lines in a piece of the page.
std::set<std::string> links(const std::string& text) {
  std::set<std::string> all;
  for (std::size_t at = text.find("linked at-"); at != std::string::npos;
       at = text.find("linked at-", at + 1))
    all.insert(text.substr(at + 7, text.find('"', at) - at - 7));
  return all;
}

}  // namespace

// LANTERN_BLESS=1 writes the golden text anew.
TEST_CASE("--explain tells of loops, recursion, the tape, memory, passes and vectors") {
  const fs::path golden = directory / "model.txt";
  // The number of lanes is a processor's.
  const std::string text =
      without(lanternc({model, "--explain", "--cpu=x86-64-v3"}), directory.string() + "/");
  if (std::getenv("LANTERN_BLESS") != nullptr) write_file(golden, text);
  CHECK(text == read_file(golden));
  CHECK(without(lanternc({model, "--explain", "--cpu=x86-64-v3", "--function=dstraight"}),
                directory.string() + "/") == text.substr(0, text.find("\n\n") + 1));
  const auto r = run_process({LANTERNC, model, "--explain", "--emit=ir"});
  CHECK(r.err == "lanternc: error: --explain does not go with --emit\n");
}

TEST_CASE("--explain tells how many bytes loops move, and how many they have to") {
  const std::string text = lanternc({directory / "traffic.cpp", "--explain"});
  const auto of = [&](const std::string& function) {
    const std::size_t from = text.find(function + "\n"), to = text.find("\n\n", from), at = text.find("bytes moved: ", from);
    return at < to ? text.substr(at + 13, text.find('\n', at) - at - 13) : "";
  };
  CHECK(of("f_squares") == "8 * a.size(); arguments and results alone 8 * a.size()");
  CHECK(of("f_product") == "8 * a.dim(0) + 8 * a.dim(0) * a.dim(1) + 8 * a.dim(1); arguments and results alone 8 * a.dim(0) + 8 "
                           "* a.dim(0) * a.dim(1) + 8 * x.size()");
  CHECK(of("f_triangle") == "4 * a.dim(0) * a.dim(0) - 4 * a.dim(0); arguments and results alone 8 * a.dim(0) * a.dim(1)");
  CHECK(of("f_steps") == "16 * count * u.size() - 16 * count; arguments and results alone 16 * u.size()");
  CHECK(of("f_histogram") == "24 * bin.size(); arguments and results alone 8 * bin.size() + 16 * count.size()");
  CHECK(of("f_number") == "");
}

TEST_CASE("--explain tells how a program is mapped to a GPU") {
  const std::string text =
      without(lanternc({directory / "kernels.cpp", "--target=cuda", "--explain"}), directory.string() + "/");
  for (const char* said :
       {"  kernels\n", "kernels.cpp:7: product: cuBLAS", "kernels.cpp:8: element: a thread takes an iteration of 2 loops\n",
        "rows: a block of threads takes an iteration; columns: each block adds to a tensor of its own",
        "kernels.cpp:10: element: a thread takes an iteration; total: ", "kernels.cpp:11: host: one element after the other"}) {
    INFO(said << " in " << text);
    CHECK(text.find(said) != std::string::npos);
  }
}

TEST_CASE("--explain tells which tensors lie in 16 bits of a GPU's memory, and why others do not") {
  const std::string file = directory / "storage.cpp";
  const std::string text = without(lanternc({file, "--target=cuda", "--storage=bf16", "--explain"}), directory.string() + "/");
  for (const char* said : {"  storage in bf16\n", "storage.cpp:12: 'hidden', f32[?,?]: bf16\n",
                           "storage.cpp:12: 'd_w', f32[?,?]: float: the function returns it\n",
                           "storage.cpp:13: 'out', f32[?,?]: float: sums are formed in it at line 14\n",
                           "storage.cpp:19: 'bright', f32[?,?]: float: a convolution reads it at line 20\n",
                           "storage.cpp:20: 'edges', f32[?,?,?,?]: float: a convolution gives it at line 20\n"}) {
    INFO(said << " in " << text);
    const std::size_t at = text.find(said);
    CHECK(at != std::string::npos);
    if (std::string(said).find(':') != std::string::npos) CHECK(text.find(said, at + 1) == std::string::npos);
  }
  CHECK(lanternc({file, "--target=cuda", "--explain"}).find("storage in") == std::string::npos);
}

TEST_CASE("--mapping chooses how loops are mapped, and --explain says so") {
  const auto explained = [&](const std::string& mapping) {
    return lanternc({directory / "kernels.cpp", "--target=cuda", "--explain", "--mapping=" + mapping});
  };
  for (const auto& [mapping, said] : {std::pair{"kernels.cpp:8=rows", "kernels.cpp:8: rows: a block of threads takes an iteration, as asked for\n"},
                                      {"8=element", "kernels.cpp:8: element: a thread takes an iteration of 2 loops, as asked for\n"},
                                      {"10=host", "kernels.cpp:10: host: one element after the other"}}) {
    const std::string text = explained(mapping);
    INFO(text);
    CHECK(text.find(said) != std::string::npos);
  }
  const auto refused = [&](const std::string& option, const std::string& target = "--target=cuda") {
    return run_process({LANTERNC, directory / "kernels.cpp", target, "--explain", option}).err;
  };
  CHECK(refused("--mapping=kernels.cpp:11=element") ==
        "lanternc: error: mapping: kernels.cpp:11 cannot be mapped to element: its iterations are not independent, or do what a thread of "
        "a GPU cannot\n");
  CHECK(refused("--mapping=2=rows") ==
        "lanternc: error: mapping: expected a line where a loop begins, got 2; lanternc --explain lists kernels by their lines\n");
  CHECK(refused("--mapping=8=tiles") ==
        "lanternc: error: mapping: expected a line and element, rows or host, such as model.cpp:12=rows, got '8=tiles'\n");
  CHECK(refused("--mapping=8=rows", "--target=cpu") == "lanternc: error: --mapping goes with --target=cuda\n");
  CHECK(refused("--products=tf32", "--target=cpu") ==
        "lanternc: error: --products goes with --target=cuda, without --strict-math\n");
  CHECK(refused("--products=f8") == "lanternc: error: products: expected f32, tf32, bf16 or f16, got 'f8'\n");
  CHECK(refused("--storage=f16", "--target=cpu") == "lanternc: error: --storage goes with --target=cuda, without --strict-math\n");
  CHECK(refused("--storage=f8") == "lanternc: error: storage: expected f32, f16 or bf16, got 'f8'\n");
}

TEST_CASE("--explain tells how a fold of a batch of trees runs, and why") {
  const std::string text = without(lanternc({directory / "trees.cpp", "--explain"}), directory.string() + "/");
  CHECK(text.find("  batches of trees\n    trees.cpp:8: runs level by level\n") != std::string::npos);
  CHECK(text.find("  batches of trees\n    trees.cpp:12: runs node by node: the body branches on a value of the node, "
                  "with 'get' on one side (trees.cpp:13:12)\n") != std::string::npos);
}

TEST_CASE("--emit=html makes one well-formed page that needs nothing else, with linked lines") {
  const std::string page = lanternc({model, "--emit=html"});
  CHECK(malformed(page) == "");
  CHECK(malformed("<p><b></p>") != "");
  CHECK(malformed("<p a=\"<\">a & b</p>") != "");

  // Nothing is fetched.
  for (const char* word : {"src=", "href=", "@import", "url(", "<link", "fetch(", "https:"}) {
    CAPTURE(word);
    CHECK(page.find(word) == std::string::npos);
  }
  CHECK(count(page, "http://") == count(page, "xmlns=\"http://www.w3.org/2000/svg\""));

  const std::size_t drawn = page.find("<h2>Graph after the passes<"),
                    graph = page.find("<div class=\"pane code\" hidden", drawn),
                    code = page.find("<h2>Generated C++</h2>");
  REQUIRE(drawn != std::string::npos);
  REQUIRE(graph != std::string::npos);
  REQUIRE(code != std::string::npos);
  const auto source_links = links(page.substr(0, drawn)),
             drawn_links = links(page.substr(drawn, graph - drawn)),
             graph_links = links(page.substr(graph, code - graph)), code_links = links(page.substr(code));
  const auto belongs = [&](const std::set<std::string>& part) {
    for (const std::string& link : part) CHECK(source_links.count(link) == 1);
    return part.size();
  };
  CHECK(belongs(graph_links) > 8);
  CHECK(belongs(code_links) > 8);
  CHECK(belongs(drawn_links) > 8);
  // The line of the model that multiplies, wherever it is shown.
  std::size_t line = 1;
  const std::string source = read_file(model);
  for (std::size_t at = 0; at < source.find("x = x * rate;"); ++at) line += source[at] == '\n' ? 1 : 0;
  const auto has = [&](const std::set<std::string>& part) {
    for (const std::string& link : part)
      if (link.ends_with("model.cpp-" + std::to_string(line))) return true;
    return false;
  };
  CHECK(has(source_links));
  CHECK(has(graph_links));
  CHECK(has(code_links));
  CHECK(has(drawn_links));
  // Each function has a button, and what a graph prints is no element.
  CHECK(count(page, "<button data-show=") == 5);
  CHECK(page.find("-&gt; f64") != std::string::npos);
  CHECK(page.find(" @ &quot;") == std::string::npos);
}

TEST_CASE("large functions are drawn at once, folded by their loops") {
  const auto start = std::chrono::steady_clock::now();
  const std::string wave = directory / "wave.cpp", page = lanternc({wave, "--emit=html", "--no-cache"}),
                    picture = lanternc({wave, "--emit=svg", "--no-cache"});
  // It is a matter of two seconds each, beside the headers; a general layout of the whole graph takes many
  // minutes.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
  for (const std::string& text : {page, picture}) {
    CHECK(malformed(text) == "");
    CHECK(text.find(" = for t") != std::string::npos);
    CHECK(text.find("backward") != std::string::npos);
  }
  const std::size_t boxes = count(page, "<details "), open = count(page, " open=\"\"");
  CHECK(boxes > 20);
  CHECK(open > 2);
  CHECK(open < boxes);
  // What is folded is on the page, not in the picture.
  CHECK(count(picture, "class=\"item ") < 90);
  CHECK(count(page, "<span class=\"node ") > count(picture, "class=\"item "));
}
