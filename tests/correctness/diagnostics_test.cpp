// What is said about a program that cannot be staged: the whole text, for programs read by lanternc and in
// process.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/lantern.hpp"

namespace fs = std::filesystem;
using namespace lantern;

namespace {

const fs::path directory = LANTERN_TEST_DIR "/diagnostics";

std::string without(std::string text, const std::string& what) {
  for (std::size_t at; (at = text.find(what)) != std::string::npos;) text.erase(at, what.size());
  return text;
}

/// What lanternc says of each function.
std::string said(const std::vector<std::string>& functions) {
  std::string all;
  for (const std::string& f : functions) {
    const auto r = codegen::run_process(
        {LANTERNC, std::string(directory / "shapes.cpp"), "--emit=ir", "--function=" + f});
    CHECK(r.status == 1);
    CHECK(r.out.empty());
    all += (all.empty() ? "" : "\n") + without(r.err, directory.string() + "/");
  }
  return all;
}

}  // namespace

// tests/diagnostics/shapes.txt holds the messages; LANTERN_BLESS=1 writes them anew.
TEST_CASE("lanternc underlines the expression, and says of each operand where it comes from") {
  const fs::path golden = directory / "shapes.txt";
  const std::string all = said({"dproduct", "daddition", "dloop", "dgeneral", "dbranches", "dstate"});
  if (std::getenv("LANTERN_BLESS") != nullptr) codegen::write_file(golden, all);
  CHECK(all == codegen::read_file(golden));
}

TEST_CASE("the places are the same whichever compiler gives them") {
  if (!fs::exists(LANTERN_TEST_CLANG)) return;
  const char* before = std::getenv("CXX");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("CXX", LANTERN_TEST_CLANG, 1);
  const std::string text = said({"daddition"});
  if (before != nullptr)
    ::setenv("CXX", kept.c_str(), 1);
  else
    ::unsetenv("CXX");
  CHECK(codegen::read_file(directory / "shapes.txt").find("\n" + text) != std::string::npos);
}

TEST_CASE("in process a message names the places of the operation and of both operands") {
  const auto message = [](const auto& work) -> std::string {
    try {
      work();
    } catch (const Error& e) {
      return without(e.what(), __FILE__);
    }
    return "(no error)";
  };
  using Any = Rep<Tensor<double>>;
  const unsigned line = __LINE__ + 2;
  const auto f = [](Rep<Tensor<double, 2, 3>> a, Rep<Tensor<double, 3>> x) {
    Any y = exp(x);
    return sum(matmul(a, x) + y);
  };
  const std::string text = message([&] { compile(f); });
  std::vector<std::string> lines;
  for (std::size_t from = 0, end = 0; end != std::string::npos; from = end + 1) {
    end = text.find('\n', from);
    lines.push_back(text.substr(from, end - from));
  }
  REQUIRE(lines.size() == 3);
  // Without the column, which is the compiler's.
  const auto place_and_text = [](const std::string& l) {
    const std::size_t first = l.find(':', 1), second = l.find(": ", first);
    return l.substr(0, first) + l.substr(second);
  };
  CHECK(place_and_text(lines[0]) ==
        ":" + std::to_string(line + 1) +
            ": error: add: expected operands of one type and shape, got f64[2], f64[3]");
  CHECK(place_and_text(lines[1]) ==
        ":" + std::to_string(line + 1) + ": note: the left operand is f64[2], made by 'matvec' here");
  CHECK(place_and_text(lines[2]) ==
        ":" + std::to_string(line) + ": note: the right operand is f64[3], made by 'exp' here");
}
