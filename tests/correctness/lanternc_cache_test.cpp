// lanternc starts fast: precompiled headers, and results that are kept.
#include <catch2/catch.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "lantern/codegen/toolchain/disk_cache.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "../occurrences.hpp"

namespace fs = std::filesystem;
using lantern::codegen::DiskCache;
using lantern::codegen::find_program;
using lantern::codegen::ProcessResult;
using lantern::codegen::read_file;
using lantern::codegen::remove_least_used;
using lantern::codegen::run_process;
using lantern::codegen::TemporaryDirectory;
using lantern::codegen::write_file;

namespace {

const std::string hundred = LANTERN_TEST_DIR "/lanternc/hundred.cpp";

/// A cache without results and a compiler that writes down each time it is run, for as long as this lives. Precompiled
/// headers are those of the workplaces before, but for one that has all to itself.
class Workplace {
 public:
  enum class Headers { shared, own };
  explicit Workplace(Headers headers = Headers::shared) : base_(headers == Headers::own ? path() : shared()) {
    std::error_code none;
    for (const auto& kept : fs::directory_iterator(cache(), none))
      if (kept.path().filename() != "headers") fs::remove_all(kept.path());
    ::setenv("XDG_CACHE_HOME", cache().parent_path().c_str(), 1);
    if (!fs::exists(compiler())) {
      write_file(compiler(), "#!/bin/sh\necho \"$@\" >> '" + log().string() + "'\nexec " +
                                 std::string(*find_program("c++")) + " \"$@\"\n");
      fs::permissions(compiler(), fs::perms::owner_all);
    }
    ::setenv("CXX", compiler().c_str(), 1);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace() {
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("CXX");
  }
  const fs::path& path() const { return directory_.path(); }
  fs::path log() const { return base_ / "log"; }
  fs::path compiler() const { return base_ / "compiler"; }
  fs::path cache() const { return base_ / "cache" / "lantern"; }
  fs::path results() const { return cache() / "results"; }

  struct Run {
    ProcessResult result;
    std::string cache;  ///< what --explain-cache says
    int compilations = 0, headers = 0, staging = 0;  ///< by the system's compiler, which links
    int objects = 0;                                 ///< compiled by whomever, and kept
    double seconds = 0;
  };
  Run run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {LANTERNC, "--explain-cache"});
    fs::remove(log());
    const int objects = kept_objects();
    const auto start = std::chrono::steady_clock::now();
    Run r{run_process(arguments), {}};
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::string prefix = "lanternc: cache: ";
    if (r.result.err.starts_with(prefix)) {
      const std::size_t end = r.result.err.find('\n');
      r.cache = r.result.err.substr(prefix.size(), end - prefix.size());
      r.result.err.erase(0, end + 1);
    }
    INFO(r.result.err);
    CHECK(r.result.status == 0);
    r.objects = kept_objects() - objects;
    if (!fs::exists(log())) return r;
    std::string line, all = read_file(log());
    for (std::size_t at = 0, end; (end = all.find('\n', at)) != std::string::npos; at = end + 1) {
      line = all.substr(at, end - at);
      r.headers += line.find(" c++-header ") != std::string::npos ? 1 : 0;
      r.staging += line.find("staging_image.so") != std::string::npos ? 1 : 0;  // linked
      r.compilations += line == "--version" ? 0 : 1;
    }
    return r;
  }

  std::vector<fs::path> headers(const std::string& extension) const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(cache() / "headers"))
      if (entry.path().extension() == extension) all.push_back(entry.path());
    return all;
  }

 private:
  int kept_objects() const {
    std::error_code none;
    return static_cast<int>(std::distance(fs::directory_iterator(cache() / "objects", none), fs::directory_iterator()));
  }
  static const fs::path& shared() {
    static const TemporaryDirectory directory;
    return directory.path();
  }
  TemporaryDirectory directory_;
  fs::path base_;
};

void replace(const fs::path& file, const std::string& what, const std::string& with) {
  std::string text = read_file(file);
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  write_file(file, text.replace(at, what.size(), with));
}

}  // namespace

TEST_CASE("a model of a hundred lines is built in seconds, and at once when nothing has changed") {
  const Workplace place;  // the first: it makes the headers
  const std::string program = place.path() / "hundred";
  const auto made = place.run({hundred, "-o", program});
  // Clang reads in the process, and compiles both parts with one precompiled header.
  CHECK(place.headers(".pch").size() == 2);
  CHECK(place.headers(".gch").empty());
  CHECK(made.cache == "miss: no result of this file is kept");
  const std::string numbers = run_process({program}).out;
  CHECK(numbers == "0.831551 1.000000 -6.447328\n3.000000 0.166667\n-8.120421\n-5.600000\n1.750000\n");

  const auto warm = place.run({hundred, "-o", program, "--no-cache"});
  CHECK(warm.cache == "miss: it is turned off");
  CHECK(place.headers(".pch").size() == 2);
  CHECK(warm.compilations == 2);  // linking: the staging image, the program
  CHECK(warm.seconds < 6 * 10);   // alone on two processors it takes less than 6 s

  fs::remove(program);
  const auto again = place.run({hundred, "-o", program});
  CHECK(again.cache == "hit");
  CHECK(again.compilations == 0);
  CHECK(again.seconds < 0.5 * 10);
  CHECK(run_process({program}).out == numbers);
}

TEST_CASE("a result is used where all that it depends on is the same, and what changed is named") {
  const Workplace place(Workplace::Headers::own);
  const std::string model = place.path() / "model.cpp", header = place.path() / "factor.hpp",
                    output = place.path() / "model.ir";
  write_file(header, "#define FACTOR 2.0\n");
  write_file(model,
             "#include <lantern/lantern.hpp>\n#include \"factor.hpp\"\n"
             "lantern::Rep<double> f(lantern::Rep<double> x) { return FACTOR * x; }\nLANTERN_FUNCTION(g, f)\n"
             "#warning said each time\n");
  const std::vector<std::string> command{model, "--emit=ir", "-o", output};
  const auto first = place.run(command);
  CHECK(first.compilations == 3);
  CHECK(read_file(output).find("constant 2 ") != std::string::npos);
  CHECK(first.result.err.find("said each time") != std::string::npos);

  const auto second = place.run(command);
  CHECK(second.cache == "hit");
  CHECK(second.compilations == 0);
  CHECK(second.result.err == first.result.err);

  // Flags of the user's own get precompiled headers when they come a second time.
  std::vector<std::string> flagged = command;
  flagged.insert(flagged.end(), {"-DUNUSUAL", "--no-cache"});
  for (const int headers : {0, 1, 0}) CHECK(place.run(flagged).headers == headers);
  // One that was cut off, on a disk that is full for instance, is made again.
  const std::vector<fs::path> made = place.headers(".gch");
  fs::resize_file(*std::ranges::max_element(made, {}, [](const fs::path& p) { return fs::last_write_time(p); }), 5000);
  CHECK(place.run(flagged).headers == 1);
  // Warnings, levels and directories that hold none of the headers' names need no headers of their own.
  const fs::path folder = place.path() / "folder";
  fs::create_directory(folder);
  write_file(folder / "strings", "");
  for (const std::vector<std::string>& more : {std::vector<std::string>{"-I", folder}, {"-O3"}, {"--", "-Wall"}}) {
    flagged = command;
    flagged.push_back("--no-cache");
    flagged.insert(flagged.end(), more.begin(), more.end());
    CHECK(place.run(flagged).headers == 0);
  }
  write_file(folder / "string", "#include_next <string>\n");
  flagged = command;
  flagged.insert(flagged.end(), {"--no-cache", "-I", folder});
  for (const int headers : {0, 1}) CHECK(place.run(flagged).headers == headers);

  // As long as before, and with the same time: only the content tells.
  const auto time = fs::last_write_time(header);
  replace(header, "2.0", "3.0");
  fs::last_write_time(header, time);
  CHECK(place.run(command).cache == "miss: '" + header + "' has changed");
  CHECK(read_file(output).find("constant 3 ") != std::string::npos);
  CHECK(place.run(command).cache == "hit");

  replace(model, "FACTOR * x", "x + FACTOR");
  CHECK(place.run(command).cache == "miss: '" + model + "' has changed");
  replace(model, "x + FACTOR", "FACTOR * x");
  CHECK(place.run(command).cache == "hit");

  std::vector<std::string> other = command;
  other.insert(other.end(), {"-O1"});
  CHECK(place.run(other).cache ==
        "miss: the command line is another one (it was '" + model + " --emit=ir -o " + output + "')");
  ::setenv("SOURCE_DATE_EPOCH", "1", 1);
  CHECK(place.run(command).cache == "miss: the command line is another one (it was '" + model +
                                        " --emit=ir -o " + output + " -O1'); the environment is another one");
  ::unsetenv("SOURCE_DATE_EPOCH");
  replace(place.compiler(), "exec", "\nexec");
  CHECK(place.run(command).cache.find("the C++ compiler is another one") != std::string::npos);
  CHECK(place.run(command).cache == "hit");

  // Damaged, cut off: made anew.
  for (const bool cut : {false, true}) {
    for (const auto& entry : fs::directory_iterator(place.results())) {
      std::string text = read_file(entry.path());
      if (cut)
        text.resize(text.size() / 2);
      else
        text[text.size() - 3] ^= 1;
      write_file(entry.path(), text);
    }
    CHECK(place.run(command).cache == "miss: the entry was damaged");
    CHECK(place.run(command).cache == "hit");
  }

  // Nobody else may read it.
  CHECK((fs::status(place.results().parent_path()).permissions() & fs::perms(077)) == fs::perms::none);
  // What a file tells of the time is never kept.
  replace(model, "#warning said each time", "const char* built = __TIME__;");
  CHECK(place.run(command).cache == "miss: '" + model + "' has changed");
  CHECK(place.run(command).cache == "miss: '" + model + "' has changed");
}

TEST_CASE("a header that would be read in the place of another, or that is asked for, makes a result out of date") {
  const Workplace place;
  const fs::path early = place.path() / "early", late = place.path() / "late", model = place.path() / "model.cpp",
                 program = place.path() / "model";
  for (const fs::path& folder : {early, late}) fs::create_directory(folder);
  write_file(late / "factor.hpp", "#define FACTOR 2.0\n");
  write_file(model,
             "#include <cstdio>\n#include <lantern/lantern.hpp>\n#include <factor.hpp>\n"
             "#if __has_include(<extra.hpp>)\n#define EXTRA 10.0\n#else\n#define EXTRA 0.0\n#endif\n"
             "lantern::Rep<double> f(lantern::Rep<double> x) { return FACTOR * x + EXTRA; }\nLANTERN_FUNCTION(g, f)\n"
             "int main() { std::printf(\"%g %g\\n\", g(1.0), FACTOR + EXTRA); }\n");
  const std::vector<std::string> command{model, "-I", early, "-I", late, "-o", program};
  const auto built = [&](const std::string& cache, const std::string& printed) {
    CHECK(place.run(command).cache == cache);
    CHECK(run_process({program}).out == printed);
    CHECK(place.run(command).cache == "hit");
  };
  place.run(command);
  built("hit", "2 2\n");
  const std::string before = "miss: '" + early.string(), appeared = "' has appeared, where a header is looked for";
  write_file(early / "factor.hpp", "#define FACTOR 3.0\n");
  built(before + "/factor.hpp" + appeared, "3 3\n");
  write_file(early / "extra.hpp", "");
  built(before + "/extra.hpp" + appeared, "13 13\n");
  fs::remove(early / "extra.hpp");
  built(before + "/extra.hpp' is gone", "3 3\n");
  fs::remove(early / "factor.hpp");
  built(before + "/factor.hpp' is gone", "2 2\n");
}

TEST_CASE("a header whose name a macro gives makes a result out of date where another would be read in its place") {
  const Workplace place;
  const fs::path early = place.path() / "early", late = place.path() / "late", model = place.path() / "model.cpp",
                 program = place.path() / "model";
  for (const fs::path& folder : {early, late}) fs::create_directory(folder);
  write_file(late / "factor.hpp", "#define FACTOR 2.0\n");
  write_file(late / "other.hpp", "#define OTHER 1.0\n");
  write_file(model,
             "#include <cstdio>\n#include <lantern/lantern.hpp>\n#define CONFIG \"factor.hpp\"\n#include CONFIG\n#include FROM_LINE\n"
             "lantern::Rep<double> f(lantern::Rep<double> x) { return FACTOR * x + OTHER; }\nLANTERN_FUNCTION(g, f)\n"
             "int main() { std::printf(\"%g\\n\", g(1.0)); }\n");
  const std::vector<std::string> command{model, "-I", early, "-I", late, "-DFROM_LINE=\"other.hpp\"", "-o", program};
  const auto built = [&](const std::string& cache, const std::string& printed) {
    CHECK(place.run(command).cache == cache);
    CHECK(run_process({program}).out == printed);
    CHECK(place.run(command).cache == "hit");
  };
  place.run(command);
  built("hit", "3\n");
  write_file(late / "factor.hpp", "#define FACTOR 3.0\n");
  built("miss: '" + (late / "factor.hpp").string() + "' has changed", "4\n");
  const std::string appeared = "' has appeared, where a header is looked for";
  write_file(early / "factor.hpp", "#define FACTOR 4.0\n");
  built("miss: '" + (early / "factor.hpp").string() + appeared, "5\n");
  write_file(early / "other.hpp", "#define OTHER 5.0\n");
  built("miss: '" + (early / "other.hpp").string() + appeared, "9\n");
}

TEST_CASE("a program that tells when it was built is built each time") {
  const Workplace place;
  const std::string model = place.path() / "model.cpp";
  write_file(model,
             "#include <cstdio>\n#include <lantern/lantern.hpp>\n"
             "lantern::Rep<double> f(lantern::Rep<double> x) { return x * x; }\nLANTERN_FUNCTION(g, f)\n"
             "int main() { std::printf(\"%s %g\", __TIME__, g(2.0)); }\n");
  const auto told = [&] {
    place.run({model, "-o", place.path() / "model"});
    return run_process({place.path() / "model"}).out;
  };
  const std::string first = told();
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  CHECK(told() != first);
}

TEST_CASE("what was not used for longest goes first") {
  const TemporaryDirectory directory;
  DiskCache cache(directory.path(), 1100);
  const std::string text(300, 'x');
  const auto age = [&](const std::string& name, int hours) {
    fs::last_write_time(directory.path() / (name + ".entry"),
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  for (const char* name : {"a", "b"}) CHECK(cache.store(name, text + name));
  age("a", 2);
  age("b", 1);
  CHECK(cache.load("a") == text + "a");  // now b is the older one
  CHECK(cache.store("c", text + "c"));
  age("a", 0);
  age("c", -1);
  CHECK(cache.store("d", text + "d"));
  CHECK_FALSE(cache.load("b").has_value());
  age("d", 1);
  CHECK(cache.names("") == std::vector<std::string>{"c", "a", "d"});
  CHECK_FALSE(cache.found_corrupt());
  write_file(directory.path() / "c.entry", "short");
  CHECK_FALSE(cache.load("c").has_value());
  CHECK(cache.found_corrupt());
  CHECK_FALSE(DiskCache("/nowhere/at/all", 10).store("a", "b"));
}

TEST_CASE("what changed is compiled again: what is staged, or what runs in the program") {
  const Workplace place;
  const std::string model = place.path() / "model.cpp", program = place.path() / "model";
  write_file(model,
             "#include <cstdio>\n#include <lantern/lantern.hpp>\nusing namespace lantern;\nusing D = Rep<double>;\n"
             "// A model.\n"
             "static D inner(D x) { return x * 2.0; }\n"
             "D f(D x) {\n  D y = x;\n  if (x > 1.0) y = inner(x) * x; else y = 0.0;\n  return y;\n}\n"
             "template <class T>\nT twice(const T& x) {\n  return x + x;\n}\n"
             "LANTERN_FUNCTION(df, grad(f))\nLANTERN_FUNCTION(dg, grad([](D x) { return twice(x) * twice(x); }))\n"
             "int main() { std::printf(\"%g %g %g\\n\", df(3.0), dg(1.0), twice(1.0)); }\n");
  const std::vector<std::string> command{model, "-o", program};
  const auto built = [&](int staging, int objects) {
    const auto run = place.run(command);
    CHECK(run.result.err == "");
    CHECK(run.staging == staging);
    CHECK(run.objects == objects);
    return run_process({program}).out;
  };
  CHECK(built(1, 2) == "12 8 2\n");
  replace(model, "// A model.", "/* The\u2022same */ // model");
  CHECK(place.run(command).cache == "hit");
  replace(model, "%g %g %g", "%g, %g, %g");  // in main
  CHECK(built(0, 1) == "12, 8, 2\n");
  replace(model, "inner(x) * x", "inner(x) * 2.0 * x");
  CHECK(built(1, 1) == "24, 8, 2\n");
  replace(model, "x + x", "x + x + x");  // both parts call it
  CHECK(built(1, 2) == "24, 18, 3\n");
  replace(model, "int main() {", "int main() { if (eager(f)(2.0) != 16.0) return 1;");  // rewritten, in the program too: whole, and not kept
  CHECK(built(0, 0) == "24, 18, 3\n");
  replace(model, "D f(D x) {", "\nD f(D x) {");  // lines are a part of the program
  CHECK(built(1, 1) == "24, 18, 3\n");

  // A function that only another file calls is in the program.
  const std::string main = place.path() / "main.cpp", other = place.path() / "other.cpp";
  const std::string head = "#include <cstdio>\n#include <lantern/lantern.hpp>\nusing namespace lantern;\n";
  write_file(main, head + "Rep<double> f(Rep<double> x);\nint main() { std::printf(\"%g\\n\", eager(grad(f))(2.0)); }\n");
  write_file(other, head + "Rep<double> f(Rep<double> x) { return x * x; }\nLANTERN_FUNCTION(df, grad(f))\n");
  CHECK(place.run({main, other, "-o", program}).result.err == "");
  CHECK(run_process({program}).out == "4\n");
}

TEST_CASE("what runs in the program alone is not staged, and what is staged alone is not compiled for the program") {
  const Workplace place;
  write_file(place.path() / "model.hpp", R"(
#pragma once
#include <lantern/lantern.hpp>
template <class E> lantern::Rep<E> model(lantern::Rep<E> x) {
#ifdef LANTERN_AHEAD_OF_TIME
  static_assert(sizeof(E) == 0, "the program calls what was made of it");
#endif
  return x * x;
}
)");
  write_file(place.path() / "main.cpp", R"(
#include "model.hpp"
#include <cstdio>
LANTERN_FUNCTION(slope, lantern::grad(model<double>))
auto again = lantern::FUN<double(double)>("again", [](auto, lantern::Rep<double> x) { return model<double>(x); });
LANTERN_FUNCTION(square, again)
template <class F> double run(const F& f) {
#ifdef LANTERN_STAGING_IMAGE
  static_assert(sizeof(F) == 0, "only the program runs it");
#endif
  return f(3.0);
}
int main() { std::printf("%g", run(slope) + square(2.0)); }
)");
  const std::string program = place.path() / "main";
  const auto built = place.run({place.path() / "main.cpp", "-o", program, "-O0"});
  CHECK(built.result.err == "");
  CHECK(run_process({program}).out == "10");
}

TEST_CASE("what the user's compiler must compile is left to it, and initialisers that do more than FUN stay") {
  const Workplace place;
  write_file(place.path() / "which.hpp", R"(
#pragma once
#if defined(__clang__)
constexpr double factor = 100;
#else
constexpr double factor = 7;
#endif
)");
  write_file(place.path() / "main.cpp", R"(
#include <cstdio>
#include <lantern/lantern.hpp>
#include "which.hpp"
using namespace lantern;
int made = 0;
Fun<double(double)> make(double k) {
  ++made;
  return FUN<double(double)>("by", [k](auto, Rep<double> x) { return k * x; });
}
auto by = make(3.0);
Rep<double> f(Rep<double> x) { return factor * by(x) * x; }
LANTERN_FUNCTION(df, grad(f))
int main() { std::printf("%g %g %d", df(2.0), factor, made); }
)");
  const std::string program = place.path() / "main";
  const auto built = place.run({place.path() / "main.cpp", "-o", program, "-O0"});
  CHECK(built.result.err == "");
  CHECK(run_process({program}).out == "84 7 1");
  // Staged for something else, the file is not compiled again.
  const auto other = place.run({place.path() / "main.cpp", "--emit=header", "-O0"});
  CHECK(other.compilations == 1);  // linking the staging image
  replace(place.path() / "which.hpp", "7", "8");
  CHECK(place.run({place.path() / "main.cpp", "--emit=header", "-O0"}).compilations == 2);
  replace(place.path() / "which.hpp", "__clang__", "__OPTIMIZE__");
  CHECK(place.run({place.path() / "main.cpp", "-o", program, "-O0"}).result.err == "");
  CHECK(run_process({program}).out == "96 8 1");
}

TEST_CASE("a warning is told once, of what is staged and of what is not") {
  const Workplace place;
  const std::string model = place.path() / "model.cpp", program = place.path() / "model";
  write_file(model,
             "#include <cstdio>\n#include <lantern/lantern.hpp>\nusing namespace lantern;\n"
             "static const int used_while_staging = 2;\n"
             "static double helper() { return 1.5; } static Rep<double> g(Rep<double> x) { return used_while_staging * x * helper(); }\n"
             "Rep<double> f(Rep<double> x) { int of_f = 1; return g(x); }\n"
             "static int nothing() { return 1; }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() { int of_main = 1; std::printf(\"%g\\n\", df(3.0)); }\n");
  const std::vector<std::string> command{model, "-o", program, "--", "-Wall"};
  const std::string said = place.run(command).result.err;
  INFO(said);
  CHECK(lantern::test::count(said, "warning: ") == 3);
  CHECK(lantern::test::count(said, "model.cpp:6:36: warning: unused variable ") == 1);
  CHECK(lantern::test::count(said, "model.cpp:9:18: warning: unused variable ") == 1);
  CHECK(lantern::test::count(said, "[-Wunused-function]") == 1);
}

TEST_CASE("the system's compiler reads a file with errors once") {
  const Workplace place;
  const fs::path file = place.path() / "wrong.cpp";
  write_file(file,
             "#include <lantern/lantern.hpp>\nusing namespace lantern;\nRep<double> f(Rep<double> x) { return x * x; }\n"
             "LANTERN_FUNCTION(df, grad(f))\nint main() { return df(\"one\"); }\n");
  fs::remove(place.log());
  CHECK(run_process({LANTERNC, file.string(), "-o", (place.path() / "wrong").string()}).status == 1);
  CHECK(lantern::test::count(read_file(place.log()), " -x c++ ") == 1);
}
