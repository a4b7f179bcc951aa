// What lanternc makes for others to call: headers that say what C and C++ define, sources without a warning
// that link anywhere, names and paths of any kind.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"

namespace fs = std::filesystem;
using lantern::codegen::find_program;
using lantern::codegen::ProcessResult;
using lantern::codegen::read_file;
using lantern::codegen::run_process;
using lantern::codegen::TemporaryDirectory;
using lantern::codegen::write_file;

namespace {

using Words = std::vector<std::string>;

const std::string models = LANTERN_TEST_DIR "/lanternc/";

/// What it prints on the standard output stream; nothing on the other.
std::string silent(const Words& command) {
  const ProcessResult r = run_process(command);
  INFO(command[0] << " " << command[1] << "\n" << r.err.substr(0, 4000));
  REQUIRE(r.status == 0);
  CHECK(r.err.substr(0, 4000).empty());
  return r.out;
}

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// C++ compilers at hand.
std::vector<std::string> cpp_compilers() {
  std::vector<std::string> all{"g++"};
  for (const char* clang : {LANTERN_TEST_CLANG, "clang++-19", "clang++"})
    if (find_program(clang)) {
      all.emplace_back(clang);
      break;
    }
  if (all.size() == 1) WARN("no clang++: emitted code is compiled by g++ alone");
  return all;
}

const Words strict{"-Wall", "-Wextra", "-Werror"};

/// "class model.cpp" in a directory of its own.
fs::path written(const fs::path& directory, const std::string& name, const std::string& text) {
  fs::create_directories(directory);
  write_file(directory / name, text);
  return directory / name;
}

const std::string square =
    "#include <lantern/lantern.hpp>\n#include <cstdio>\nusing namespace lantern;\n"
    "Rep<double> f(Rep<double> x) { return 2.0 * x * x; }\n"
    "LANTERN_FUNCTION(df, grad(f))\nint main() { std::printf(\"%g\\n\", df(3.0)); }\n";

}  // namespace

TEST_CASE("a header declares what C and C++ define, whatever goes in and out") {
  const TemporaryDirectory directory;
  const auto path = [&](const std::string& name) { return std::string(directory.path() / name); };
  const std::string model = models + "interface.cpp", user = models + "interface_user.c";
  for (const char* kind : {"c", "cpp", "header", "object"})
    silent({LANTERNC, model, std::string("--emit=") + kind, "-o",
            path(std::string(kind) == "header" ? "interface.h" : std::string("model.") + kind)});
  const std::string header = read_file(path("interface.h"));
  CHECK(header.find("double one(double start);") != std::string::npos);
  CHECK(header.find("bool truth(double x, bool flip);") != std::string::npos);
  CHECK(header.find("void vg(double c, lt_f64_1d x, double* result0, double* result1);") !=
        std::string::npos);
  CHECK(header.find("double body_at_x, double body_at_y, double body_mass") != std::string::npos);
  CHECK(header.find("int everything_try(lt_const_f64_1d a, double* result, const char** message);") != std::string::npos);

  std::vector<std::string> objects{path("model.object")};
  silent(Words{"cc", "-std=c99", "-Wmissing-prototypes", "-c", path("model.c"), "-o", path("c.o")} + strict);
  objects.push_back(path("c.o"));
  for (const std::string& compiler : cpp_compilers()) {
    objects.push_back(path("cpp" + std::to_string(objects.size()) + ".o"));
    silent(Words{compiler, "-std=c++20", "-march=native", "-c", path("model.cpp"), "-o", objects.back()} +
           strict);
  }
  for (const std::string& object : objects) {
    CAPTURE(object);
    for (const Words& language :
         {Words{"cc", "-std=c99", "-x", "c"}, Words{"c++", "-std=c++20", "-x", "c++"}}) {
      silent(language + strict +
             Words{user, "-I", directory.path().string(), "-x", "none", object, "-o", path("use"), "-lm",
                   "-lpthread"});
      CHECK(silent({path("use"), ""}).empty());
    }
    // glibc's vectors of functions are asked for by name.
    if (object == objects.front()) continue;
    CHECK(silent({"nm", "-u", object}).find("_ZGV") == std::string::npos);
  }
  // A declaration that does not fit its definition does not compile.
  std::string text = read_file(path("model.cpp"));
  const std::string declared = "void vg(double c, lt_f64_1d x, double* result0, double* result1);";
  REQUIRE(text.find(declared) != std::string::npos);
  text.replace(text.find(declared), declared.size(), "void vg(double c, lt_f64_1d x, double* result0);");
  CHECK(run_process({"c++", "-std=c++20", "-x", "c++", "-fsyntax-only", "-"}, text).status != 0);
}

TEST_CASE("functions of --strided take and write tensors with strides") {
  const TemporaryDirectory directory;
  const auto path = [&](const std::string& name) { return std::string(directory.path() / name); };
  const std::string model = models + "strided.cpp", user = models + "strided_user.c";
  const Words asked{LANTERNC, model, "--strided"};
  silent(asked + Words{"--emit=header", "-o", path("strided.h")});
  const std::string header = read_file(path("strided.h"));
  CHECK(header.find("int square_at_strided(lt_const_strided_f64_1d x, int64_t i, double* result, const char** message);") !=
        std::string::npos);
  CHECK(header.find("cube_try") != std::string::npos);
  CHECK(header.find("cube_strided") == std::string::npos);  // a number has no stride
  CHECK(silent({LANTERNC, model, "--emit=header"}).find("strided") == std::string::npos);
  silent(asked + Words{"--emit=c", "-o", path("model.c")});
  silent(asked + Words{"--emit=cpp", "-o", path("model.cpp")});
  silent(asked + Words{"--emit=object", "-O0", "-o", path("model.o")});
  silent(Words{"cc", "-std=c99", "-O2", "-c", path("model.c"), "-o", path("c.o")} + strict);
  silent(Words{"g++", "-std=c++20", "-O2", "-march=native", "-c", path("model.cpp"), "-o", path("cpp.o")} + strict);
  for (const char* object : {"c.o", "cpp.o", "model.o"})
    for (const Words& language : {Words{"cc", "-std=c99", "-x", "c"}, Words{"c++", "-std=c++20", "-x", "c++"}}) {
      CAPTURE(object, language[0]);
      silent(language + strict +
             Words{user, "-I", directory.path().string(), "-x", "none", path(object), "-o", path("use"), "-lm", "-lpthread"});
      CHECK(silent({path("use"), ""}) == "right\n");
    }
  CHECK(run_process({LANTERNC, model, "--strided", "--emit=python"}).err ==
        "lanternc: error: --strided is for use with --emit=c, cpp, header, object or shared, for the CPU\n");
}

TEST_CASE("a prefix stands before every name that others see") {
  const TemporaryDirectory directory;
  const std::string library = directory.path() / "m.so", source = models + "interface.cpp";
  silent({LANTERNC, source, "--emit=shared", "--prefix=geo_", "-o", library});
  const std::string names = silent({"nm", "-D", "--defined-only", library});
  std::size_t all = 0, prefixed = 0;
  for (std::size_t at = 0; (at = names.find(" T ", at)) != std::string::npos; ++at, ++all)
    prefixed += names.compare(at + 3, 4, "geo_") == 0;
  CHECK(all > 60);
  CHECK(prefixed == all);
  CHECK(names.find(" geo_restrict_try\n") != std::string::npos);
  const std::string header = silent({LANTERNC, source, "--emit=header", "--prefix=geo_"});
  CHECK(header.find("int geo_one_try(double start, double* result, const char** message);") != std::string::npos);
  const auto refused = [&](const Words& more) { return run_process(Words{LANTERNC, source} + more).err; };
  CHECK(refused({"--emit=c", "--prefix=2d_"}) == "lanternc: error: --prefix: expected the beginning of a C name, got '2d_'\n");
  CHECK(refused({"--prefix=geo_"}) ==
        "lanternc: error: --prefix is for use with --emit=c, cpp, header, object or shared, for the CPU\n");
}

TEST_CASE("emitted vectors: no warnings, and libmvec where it is asked for") {
  const TemporaryDirectory directory;
  const std::string source =
      written(directory.path(), "price.cpp",
              "#include <lantern/lantern.hpp>\nusing namespace lantern;\nusing D = Rep<double>;\n"
              "D price(D S0, D sigma, Rep<Array<double>> z) {\n"
              "  return FOR(0, z.size(), D(0.0), [&](Rep<int64_t> i, D s) {\n"
              "    return s + max(S0 * exp(sigma * z[i]) * log(z[i] + 4.0) - 100.0, 0.0); });\n}\n"
              "LANTERN_FUNCTION(greeks, (value_and_grad<0, 1>(price)))\n");
  const std::string generated = directory.path() / "generated.cpp", object = directory.path() / "generated.o";
  silent({LANTERNC, source, "--emit=cpp", "-o", generated});
  CHECK(read_file(generated).find("lt_log_f64x") != std::string::npos);
  for (const std::string& compiler : cpp_compilers())
    for (const char* processor :
         {"-march=native", "-march=x86-64", "-march=haswell", "-march=skylake-avx512"}) {
      CAPTURE(compiler, processor);
      const Words command =
          Words{compiler, "-std=c++17", "-O2", processor, "-c", generated, "-o", object} + strict;
      silent(command);
      CHECK(silent({"nm", "-u", object}).find("_ZGV") == std::string::npos);
      silent(command + Words{"-DLT_LIBMVEC"});
      CHECK(silent({"nm", "-u", object}).find("_ZGV") != std::string::npos);
    }
}

TEST_CASE("names that mean something elsewhere, ahead of time and in process") {
  const TemporaryDirectory directory;
  const std::string program = directory.path() / "names";
  silent({LANTERNC, models + "names.cpp", "-o", program});
  CHECK(silent({program, ""}) == "ok\n");
  CHECK(silent({LANTERNC_NAMES_JIT, ""}) == "ok\n");
  silent({LANTERNC, models + "interface.cpp", "-o", program});
  silent({program, ""});
}

TEST_CASE("two files have functions of one name") {
  // In process each has its own; built by lanternc they are refused.
  CHECK(silent({LANTERNC_TWO_FILES_JIT, ""}) == "4 10\n");
  const TemporaryDirectory directory;
  const std::string program = directory.path() / "program";
  const ProcessResult refused =
      run_process({LANTERNC, models + "two_files.cpp", models + "two_files_other.cpp", "-o", program});
  CHECK(refused.status == 1);
  CHECK(refused.err.find("error: there are two LANTERN_FUNCTIONs of the name 'dg'; rename one") !=
        std::string::npos);
  // A header's function may mean another program in each file that includes it.
  const fs::path at = directory.path();
  written(at, "shared.hpp",
          "#include <lantern/lantern.hpp>\nstatic lantern::Rep<double> f(lantern::Rep<double> x) "
          "{ return x * FACTOR; }\nLANTERN_FUNCTION(df, f)\ndouble other(double);\n");
  const std::string a = written(at, "a.cpp",
                                "#define FACTOR 2.0\n#include \"shared.hpp\"\n"
                                "int main() { return df(1.0) == 2.0 && other(1.0) == 2.0 ? 0 : 1; }\n");
  const auto with = [&](const std::string& factor) {
    const std::string b = written(
        at, "b.cpp",
        "#define FACTOR " + factor + "\n#include \"shared.hpp\"\ndouble other(double x) { return df(x); }\n");
    return run_process({LANTERNC, a, b, "-o", program});
  };
  REQUIRE(with("2.0").status == 0);
  CHECK(run_process({program}).status == 0);
  const ProcessResult other = with("3.0");
  CHECK(other.status == 1);
  CHECK(other.err.find(
            "shared.hpp:3: error: LANTERN_FUNCTION(df, ...) is another program in each of the files that "
            "include it; give it a name in each, or the same meaning") != std::string::npos);
}

TEST_CASE("a name that several functions have is refused in one line") {
  const TemporaryDirectory directory;
  const std::string source = written(directory.path(), "m.cpp",
                                     "#include <lantern/lantern.hpp>\n"
                                     "lantern::Rep<double> f(lantern::Rep<double> x) { return x; }\n"
                                     "lantern::Rep<double> f(lantern::Rep<double> x, int) { return x; }\n"
                                     "LANTERN_FUNCTION(g, f)\n");
  const ProcessResult r = run_process({LANTERNC, source, "--emit=c"});
  CHECK(r.status == 1);
  CHECK(r.err.find(":4:1: error: write ::f if Lantern has an f, too") != std::string::npos);
  CHECK(r.err.find("note:") == std::string::npos);
}

TEST_CASE("paths of any kind") {
  const TemporaryDirectory directory;
  const Words names{"new\nline", "*/ int oops; /*", "// \\", "#include \"x\" $(touch oops)", "?\?/ back\\slash \xff\xfe <b>&amp;"};
  for (const std::string& name : names) {
    CAPTURE(name);
    std::string folder = name;
    for (char& c : folder)
      if (c == '/') c = '_';
    const fs::path at = directory.path() / folder;
    const std::string source = written(at, folder + ".cpp", square), program = at / (folder + " program");
    silent({LANTERNC, "--no-cache", source, "-o", program});
    CHECK(silent({program, ""}) == "12\n");
  }
  // The one with everything in it, through every kind of output.
  const std::string everything = "a*_\n\"b\\?\?_$x`y`<q>\xff";
  const fs::path at = directory.path() / everything;
  const std::string source = written(at, everything + ".cpp", square);
  for (const char* kind : {"c", "cpp", "cuda", "header", "ir", "rewritten", "html", "svg", "object"}) {
    CAPTURE(kind);
    silent({LANTERNC, source, std::string("--emit=") + kind, "-o", at / (std::string("out.") + kind)});
  }
  silent(Words{"cc", "-std=c99", "-fsyntax-only", "-x", "c", at / "out.c"} + strict);
  silent(Words{"c++", "-std=c++20", "-fsyntax-only", "-x", "c++", at / "out.cpp"} + strict);
  silent({LANTERNC, "-g", source, "-o", at / "debug"});
  CHECK(silent({at / "debug", ""}) == "12\n");
  CHECK(read_file(at / "out.html").find("<q>") == std::string::npos);
}

TEST_CASE("an interruption leaves nothing behind") {
  const TemporaryDirectory directory;
  const std::string source = written(directory.path(), "m.cpp", square);
  const fs::path temporary = directory.path() / "temporary";
  fs::create_directory(temporary);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    CAPTURE(signal);
    const std::string program = directory.path() / "m";
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("TMPDIR", temporary.c_str(), 1);
      for (const int s : {SIGTERM, SIGINT, SIGHUP}) ::signal(s, SIG_DFL);
      ::execl(LANTERNC, LANTERNC, "--no-cache", source.c_str(), "-o", program.c_str(), nullptr);
      ::_exit(127);
    }
    int state = 0;
    while (fs::is_empty(temporary) && ::waitpid(child, &state, WNOHANG) == 0) ::usleep(10'000);
    ::usleep(50'000);
    ::kill(child, signal);
    REQUIRE(::waitpid(child, &state, 0) == child);
    CHECK(WIFSIGNALED(state));
    CHECK(WTERMSIG(state) == signal);
    CHECK(fs::is_empty(temporary));
    CHECK_FALSE(fs::exists(program));
  }
}
