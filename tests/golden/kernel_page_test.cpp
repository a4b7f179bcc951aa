// compiler/passes/README.md, one kernel followed through every phase: each block of code on the page is what
// the compiler makes of it. LANTERN_BLESS=1 writes the blocks anew.
//
// A line "... `NAME`:" before a block says which: `staged`, `staged gradient`, a pass of the pipeline, or
// `c++`.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>

#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;

// The kernel of the page, as it stands there.
D misfit(D w, A x, A y) {
  return FOR(0, x.size(), 0.0, [&](I i, D sum) {
    const D r = sin(w * x[i]) - y[i];
    return sum + r * r;
  });
}

const std::filesystem::path root = std::filesystem::path(LANTERN_TEST_DIR).parent_path();
const std::filesystem::path page_file = root / "compiler/passes/README.md";

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class F>
std::unique_ptr<ir::Module> staged(const char* name, F f) {
  std::vector<ir::Type> types;
  using Params = typename detail::FunctionTraits<F>::Params;
  detail::types_of<Params>(types);
  return driver::stage(name, types, detail::program_of(f).run);
}

std::string printed(const ir::Module& m) { return ir::print(*m.entry); }

/// What the page may show, by name. The machine is one of 4 doubles a register, whichever runs the test.
std::map<std::string, std::string> made() {
  std::map<std::string, std::string> text;
  text["staged"] = printed(*staged("misfit", misfit));
  const auto module = staged("slope", grad<0>(misfit));
  text["staged gradient"] = printed(*module);
  passes::PipelineOptions options;
  options.vector_lanes = 4;
  options.fused_multiply_add = options.verify_each = true;
  options.after = [&](std::string_view pass, const ir::Module& m) { text[std::string(pass)] = printed(m); };
  core::run_on_large_stack([&] { passes::run_pipeline(*module, options); });
  const std::string source =
      compile(grad<0>(misfit), {.target = Target::c, .opt = 1, .name = "slope"}).source("cpp");
  const std::size_t from = source.find("\nextern \"C\" double slope(");
  REQUIRE(from != std::string::npos);
  const std::string function = source.substr(from + 1, source.find("\n}\n", from) + 2 - from);
  text["c++"] =
      std::regex_replace(function, std::regex(",\\s+\"[^\"]*kernel_page_test.cpp:[0-9]+"), ", \"fit.cpp:2");
  return text;
}

}  // namespace

TEST_CASE("each block of the page is what the compiler makes") {
  const auto text = made();
  const std::string page = text_of(page_file);
  const std::regex block("`([a-z+_ ]+)`:\n\n```[a-z+]*\n([^`]*)```");
  std::string blessed;
  std::size_t last = 0, blocks = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), block), end; at != end; ++at, ++blocks) {
    const std::string name = (*at)[1];
    INFO("after " << name << " (LANTERN_BLESS=1 writes the page anew)");
    REQUIRE(text.contains(name));
    const auto begin = static_cast<std::size_t>(at->position(2));
    blessed += page.substr(last, begin - last) + text.at(name);
    last = begin + static_cast<std::size_t>(at->length(2));
    if (!std::getenv("LANTERN_BLESS")) CHECK((*at)[2] == text.at(name));
  }
  blessed += page.substr(last);
  CHECK(blocks == 7);
  if (std::getenv("LANTERN_BLESS")) std::ofstream(page_file) << blessed;
}

TEST_CASE("the kernel of the page is the one that is shown, and its gradient is right") {
  const std::string page = text_of(page_file);
  std::ifstream self(root / "tests/golden/kernel_page_test.cpp");
  const std::string source{std::istreambuf_iterator<char>(self), {}};
  const std::size_t from = source.find("D misfit(");
  CHECK(page.find(source.substr(from, source.find("\n}\n", from) + 3 - from)) != std::string::npos);

  const std::vector<double> x = {0.5, -1.0, 2.0, 0.25, 1.5}, y = {0.1, 0.2, 0.3, 0.4, 0.5};
  const double h = 1e-6;
  const double difference = (eager(misfit)(0.7 + h, x, y) - eager(misfit)(0.7 - h, x, y)) / (2 * h);
  CHECK(std::get<0>(std::tuple(compile(grad<0>(misfit), {.target = Target::cpp})(0.7, x, y))) ==
        Approx(difference).epsilon(1e-8));
}
