// lanternc and code of the user's own: external functions in programs, libraries and sources; a main that
// shows how emitted sources are called; programs that compile in process alone.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"

namespace fs = std::filesystem;
using lantern::codegen::ProcessResult;
using lantern::codegen::read_file;
using lantern::codegen::run_process;
using lantern::codegen::TemporaryDirectory;
using lantern::codegen::write_file;

namespace {

using Words = std::vector<std::string>;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string good(const Words& command) {
  const ProcessResult r = run_process(command);
  std::string line;
  for (const std::string& w : command) line += w + " ";
  INFO(line << "\n" << r.err.substr(0, 4000));
  REQUIRE(r.status == 0);
  return r.out;
}
std::string refused(const Words& command) {
  const ProcessResult r = run_process(command);
  CHECK(r.status != 0);
  return r.err;
}

/// A model that calls far_away(x) = x + 1, which is elsewhere, and differentiates it by a rule.
const std::string model =
    "#include <cstdio>\n#include <lantern/lantern.hpp>\nusing namespace lantern;\nusing D = Rep<double>;\n"
    "extern \"C\" double far_away(double x);\n"
    "const auto far_x = external(\"far_away\", far_away);\n"
    "D f(D x) { return custom_jvp(far_x, [](D y, D dy) { return std::tuple(far_x(y), dy); })(x) * x; }\n"
    "LANTERN_FUNCTION(df, value_and_grad(f))\n"
    "int main() { auto [y, d] = df(2.0); std::printf(\"%g %g\\n\", y, d); }\n";

struct Place {
  Place() {
    write_file(path("model.cpp"), model);
    write_file(path("far.cpp"), "extern \"C\" double far_away(double x) { return x + 1; }\n");
    good({"c++", "-c", "-fPIC", path("far.cpp"), "-o", path("far.o")});
  }
  std::string path(const std::string& name) const { return directory.path() / name; }
  TemporaryDirectory directory;
};

}  // namespace

TEST_CASE("external functions ahead of time, in an object, a library and a source") {
  const Place at;
  good({LANTERNC, at.path("model.cpp"), "-o", at.path("model"), "--", at.path("far.o")});
  CHECK(good({at.path("model")}) == "6 5\n");
  good({LANTERNC, at.path("far.o"), at.path("model.cpp"), "-o", at.path("model2")});
  CHECK(good({at.path("model2")}) == "6 5\n");
  CHECK(has(refused({LANTERNC, at.path("model.cpp"), at.path("far.o"), "--emit=c"}), "is for the linker"));
  CHECK(has(refused({LANTERNC, at.path("model.cpp"), at.path("near.o")}), "cannot read"));
  // What is emitted needs the function where it is linked, and not before.
  for (const char* kind : {"c", "cpp"}) {
    const std::string source = at.path(std::string("out.") + kind),
                      program = at.path(std::string("main_") + kind);
    good({LANTERNC, at.path("model.cpp"), std::string("--emit=") + kind, "--with-main", "-o", source});
    good({"c++", "-x", std::string(kind) == "c" ? "c" : "c++", "-Wall", "-Wextra", "-Werror", "-O1", "-c",
          source, "-o", at.path("out.o")});
    good({"c++", at.path("out.o"), at.path("far.o"), "-lm", "-o", program});
    CHECK(good({program}) == "df, 1: 0.75\ndf, 2: 2\n");
  }
  good({LANTERNC, at.path("model.cpp"), "--emit=shared", "-o", at.path("out.so"), "--", at.path("far.o")});
  CHECK(fs::exists(at.path("out.so")));
  CHECK(has(refused({LANTERNC, at.path("model.cpp"), "--emit=cuda"}), "which a GPU does not run"));
}

TEST_CASE("external functions that are not to be had: what to do") {
  const Place at;
  const std::string missing = refused({LANTERNC, at.path("model.cpp"), "-o", at.path("model")});
  CHECK(has(missing, "note: the external function 'far_away' is called by its name"));
  CHECK(has(missing, "extern \"C\""));
  std::string inner = model;
  inner.replace(inner.find("extern \"C\" double far_away(double x);"), 37,
                "static double far_away(double x) { return x + 1; }");
  write_file(at.path("inner.cpp"), inner);
  CHECK(has(refused({LANTERNC, at.path("inner.cpp"), "-o", at.path("inner")}), "has to be a C function"));
  std::string bare = model;
  bare.replace(bare.find("D f(D x)"), bare.find("LANTERN_FUNCTION") - bare.find("D f(D x)"),
               "D f(D x) { return far_x(x) * x; }\n");
  write_file(at.path("bare.cpp"), bare);
  const std::string text = refused({LANTERNC, at.path("bare.cpp"), "-o", at.path("bare")});
  CHECK(has(text, "bare.cpp:6:"));
  CHECK(has(text, "the external function 'far_away' is differentiated, and has no derivative"));
}

TEST_CASE("--with-main calls functions of all kinds of arguments") {
  const Place at;
  write_file(at.path("all.cpp"),
             "#include <lantern/lantern.hpp>\nusing namespace lantern;\nusing D = Rep<double>;\n"
             "using A = Rep<Array<double>>;\nusing M = Rep<Tensor<double, dyn, 3>>;\n"
             "D numbers(D x, Rep<int64_t> n, Rep<bool> b, Rep<float> y) { return select(b, x, D(0.0)) + "
             "cast<double>(n) + cast<double>(y); }\n"
             "D arrays(A a, M m) { return sum(a) + sum(m); }\n"
             "std::tuple<A, D, M> several(A a, M m) { return {2.0 * a, sum(a), m}; }\n"
             "D trees(D x, Rep<Tree<double>> t) { return TREE(x, t, [&](D l, D r, Rep<Tree<double>> n) { "
             "return l * r * n.value(); }); }\n"
             "LANTERN_FUNCTION(f1, numbers)\nLANTERN_FUNCTION(f2, arrays)\nLANTERN_FUNCTION(f3, several)\n"
             "LANTERN_FUNCTION(f4, value_and_grad(trees))\nint main() {}\n");
  std::string seen;
  for (const char* kind : {"c", "cpp"}) {
    const std::string source = at.path(std::string("all_out.") + kind);
    good({LANTERNC, at.path("all.cpp"), std::string("--emit=") + kind, "--with-main", "-o", source});
    good({std::string(kind) == "c" ? "cc" : "c++", "-Wall", "-Wextra", "-Werror", "-march=native", "-O1",
          source, "-lm", "-o", at.path("all")});
    const std::string out = good({at.path("all")});
    CHECK(has(out, "f1: 3\n"));
    CHECK(has(out, "f3, 2: 1\n"));
    if (seen.empty()) seen = out;
    CHECK(out == seen);
  }
  CHECK(has(refused({LANTERNC, at.path("all.cpp"), "--emit=object", "--with-main"}),
            "--with-main is for use with"));
}

TEST_CASE("a program that compiles in process alone needs no LANTERN_FUNCTION") {
  const Place at;
  write_file(
      at.path("jit.cpp"),
      "#include <cstdio>\n#include <lantern/lantern.hpp>\nusing namespace lantern;\n"
      "Rep<double> f(Rep<double> x) { if (x > 1.0) return x * x; return x; }\n"
      "Rep<double> ones(Rep<int64_t> n) {\n  return sum(fill(Rep<double>(1.0), n));\n}\n"
      "int main() {\n  std::printf(\"%g\\n\", compile(grad(f))(3.0));\n"
      "  try { compile(ones)(-3); } catch (const Error& e) { std::printf(\"%s\\n\", e.what()); }\n}\n");
  good({LANTERNC, at.path("jit.cpp"), "--with-jit", "-o", at.path("jit")});
  const std::string out = good({at.path("jit")});
  CHECK(has(out, "6\n"));
  CHECK(has(out, "a tensor of negative size, -3 ("));
  CHECK(has(out, "jit.cpp:6)"));
  CHECK(has(refused({LANTERNC, at.path("jit.cpp"), "-o", at.path("jit")}), "no LANTERN_FUNCTION"));
}

TEST_CASE("headers whose functions call std::max<unsigned long> and the like") {
  const Place at;
  write_file(at.path("random.cpp"),
             "#include <lantern/lantern.hpp>\n#include <cstdio>\n#include <random>\n#include <string>\nusing "
             "namespace lantern;\n"
             "Rep<double> f(Rep<double> x) { if (x > 0.0) return std::max(x, 2.0 * x); return -x; "
             "}\nLANTERN_FUNCTION(df, grad(f))\n"
             "int main() {\n  std::mt19937 r(3);\n  std::poisson_distribution<int> p(3.0);\n"
             "  const bool good = p(r) >= 0 && std::max<std::string>(\"a\", \"b\") == \"b\" && "
             "std::min<unsigned char>(1, 2) == 1;\n"
             "  std::printf(\"%d %g\\n\", good, df(1.0));\n}\n");
  good({LANTERNC, at.path("random.cpp"), "-o", at.path("random")});
  CHECK(good({at.path("random")}) == "1 2\n");
}

TEST_CASE("functions that are staged to the same as before are not compiled again") {
  const Place at;
  ::setenv("XDG_CACHE_HOME", at.path("cache").c_str(), 1);
  const auto kept = [&] {
    const fs::path directory = fs::path(at.path("cache")) / "lantern" / "functions";
    return std::distance(fs::directory_iterator(directory), fs::directory_iterator());
  };
  std::string text =
      "#include <cstdio>\n#include <lantern/lantern.hpp>\nusing namespace lantern;\n"
      "Rep<double> f(Rep<double> x) { return x * x; }\nRep<double> g(Rep<double> x) { return exp(x); }\n"
      "LANTERN_FUNCTION(df, grad(f))\nLANTERN_FUNCTION(dg, grad(g))\n"
      "int main() { std::printf(\"%g %g\\n\", df(3.0), dg(0.0)); }\n";
  const auto built = [&] {
    write_file(at.path("two.cpp"), text);
    good({LANTERNC, at.path("two.cpp"), "-o", at.path("two"), "--depfile", at.path("two.d")});
    return good({at.path("two")});
  };
  CHECK(built() == "6 1\n");
  CHECK(kept() == 2);
  text.replace(text.find("%g %g"), 5, "%g, %g");
  CHECK(built() == "6, 1\n");
  CHECK(kept() == 2);
  text.replace(text.find("x * x"), 5, "x * x * x");
  CHECK(built() == "27, 1\n");
  CHECK(kept() == 3);
  for (int again = 0; again < 2; ++again) {  // from what is kept, too
    const std::string dependencies = read_file(at.path("two.d"));
    CHECK(has(dependencies, at.path("two") + ":"));
    CHECK(has(dependencies, at.path("two.cpp")));
    fs::remove(at.path("two.d"));
    CHECK(built() == "27, 1\n");
  }
  ::unsetenv("XDG_CACHE_HOME");
}
