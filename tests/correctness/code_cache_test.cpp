// Compiled code is kept from one compilation to the next, and only what is whole and made for the same is
// used.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/content_hash.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
namespace fs = std::filesystem;
using codegen::read_file;
using codegen::TemporaryDirectory;
using codegen::write_file;

namespace {

using D = Rep<double>;

D tripled(D x) { return 3.0 * x; }
D squared(D x) { return x * x; }

double at_five(D (*f)(D), CodeCache cache, int opt = 2) {
  return compile(f, {.target = Target::cpp, .opt = opt, .name = "f", .cache = std::move(cache)})(5.0);
}

/// A directory that others may look into, for as long as this lives.
class Directory {
 public:
  Directory() {
    fs::permissions(temporary_.path(), fs::perms(0755));
    fs::create_directory(fs::path(path()));
    fs::permissions(path(), fs::perms(0755));
  }
  std::string path() const { return (temporary_.path() / "code").string(); }
  /// Code, and programs, which lead to it.
  std::vector<fs::path> files() const { return files_that(false); }
  std::vector<fs::path> programs() const { return files_that(true); }

 private:
  std::vector<fs::path> files_that(bool programs) const {
    std::vector<fs::path> all;
    for (const auto& at : fs::directory_iterator(path()))
      if (at.path().filename().string().starts_with("program-") == programs) all.push_back(at.path());
    return all;
  }
  TemporaryDirectory temporary_;
};

constexpr std::size_t digest = 33;  // of an entry, and the newline after it

std::string sealed(const std::string& contents) { return codegen::content_hash(contents) + "\n" + contents; }

/// What an entry says it was made for: two lines.
std::size_t end_of_key(const std::string& contents) {
  return contents.find('\n', contents.find('\n') + 1) + 1;
}

/// Leaves the code of squared where that of tripled is expected: whoever loads it gives itself away.
void leave_other_code(const Directory& directory) {
  const Directory other;
  REQUIRE(at_five(squared, other.path()) == 25);
  REQUIRE(at_five(tripled, directory.path()) == 15);
  REQUIRE(other.files().size() == 1);
  REQUIRE(directory.files().size() == 1);
  const std::string to = read_file(directory.files()[0]).substr(digest);
  const std::string from = read_file(other.files()[0]).substr(digest);
  write_file(directory.files()[0], sealed(to.substr(0, end_of_key(to)) + from.substr(end_of_key(from))));
}

/// The exit status of a process that runs `work`, which returns it.
template <class Work>
pid_t in_a_process(Work&& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 99;
    try {
      status = work();
    } catch (...) {
    }
    ::_exit(status);
  }
  return child;
}
int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

}  // namespace

TEST_CASE("what is kept is loaded, for the same code and options alone") {
  const Directory directory;
  leave_other_code(directory);
  CHECK(at_five(tripled, directory.path()) == 25);     // a hit
  CHECK(at_five(tripled, directory.path(), 1) == 15);  // other options
  CHECK(at_five(tripled, {}) == 15);                   // no cache
  CHECK(at_five(tripled, false) == 15);
  CHECK(directory.files().size() == 2);
  const auto automatic = compile(tripled, {.opt = 2, .name = "f", .cache = directory.path()});
  automatic.wait();
  CHECK(directory.files().size() == 2);  // the same code, by the second tier
  CHECK(automatic(5.0) == 25);
}

TEST_CASE("the user's own cache") {
  const TemporaryDirectory home;
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before ? before : "";
  ::setenv("XDG_CACHE_HOME", home.path().c_str(), 1);
  CHECK(at_five(tripled, true) == 15);
  if (before)
    ::setenv("XDG_CACHE_HOME", kept.c_str(), 1);
  else
    ::unsetenv("XDG_CACHE_HOME");
  const fs::path code = home.path() / "lantern" / "code";
  REQUIRE(fs::is_directory(code));
  CHECK(std::distance(fs::directory_iterator(code), fs::directory_iterator()) == 2);  // the program, and its code
}

TEST_CASE("entries that are cut off, changed, or made of something else are made again") {
  const Directory directory;
  leave_other_code(directory);
  const fs::path file = directory.files()[0];
  const std::string good = read_file(file);
  const std::string contents = good.substr(digest);
  std::string changed = good;
  changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
  std::string other_key = contents;
  const std::size_t key = other_key.find('\n') + 1;
  other_key[key] = other_key[key] == '0' ? '1' : '0';
  const std::vector<std::string> bad = {"",
                                        good.substr(0, good.size() / 2),
                                        changed,
                                        sealed(other_key),
                                        sealed(contents.substr(0, contents.size() - 9)),
                                        sealed(contents.substr(0, end_of_key(contents)) + "1\nf\n3\nabc"),
                                        sealed("lantern code 0\n")};
  for (const std::string& entry : bad) {
    write_file(file, entry);
    CHECK(at_five(tripled, directory.path()) == 15);
    CHECK(read_file(file) != entry);  // replaced
    write_file(file, good);
    CHECK(at_five(tripled, directory.path()) == 25);
  }
}

TEST_CASE("processes share a directory") {
  const Directory directory;
  int start[2];
  REQUIRE(::pipe(start) == 0);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(in_a_process([&] {
      char byte = 0;
      ::close(start[1]);
      (void)!::read(start[0], &byte, 1);  // all at once: until the other end is closed
      for (int round = 0; round < 3; ++round)
        if (at_five(tripled, directory.path()) != 15 || at_five(squared, directory.path()) != 25) return 1;
      return 0;
    }));
  ::close(start[0]);
  ::close(start[1]);
  for (const pid_t child : children) CHECK(status_of(child) == 0);
  const std::vector<fs::path> files = directory.files();
  CHECK(files.size() == 2);  // and nothing unfinished
  for (const fs::path& file : files) CHECK(file.extension() == ".entry");
}

TEST_CASE("a directory that cannot be written is read, one that is not there does not matter") {
  const Directory directory;
  leave_other_code(directory);
  fs::permissions(directory.path(), fs::perms(0555));
  fs::permissions(directory.files()[0], fs::perms(0444));
  const int status = status_of(in_a_process([&] {
    if (::getuid() == 0 && ::setuid(65534) != 0) return 1;  // permissions do not hold for root
    if (at_five(tripled, directory.path()) != 25) return 2;
    return at_five(squared, directory.path()) == 25 ? 0 : 3;
  }));
  CHECK(status == 0);
  CHECK(directory.files().size() == 1);
  fs::permissions(directory.path(), fs::perms(0755));
  CHECK(at_five(tripled, "/proc/lantern/code") == 15);
}

TEST_CASE("a directory that others may write to is refused") {
  const Directory directory;
  fs::permissions(directory.path(), fs::perms(0777));
  CHECK_THROWS_WITH(at_five(tripled, directory.path()),
                    "compile: expected a cache directory that only its user can write to, got " +
                        directory.path() + ", from which code of others could be run");
  CHECK(directory.files().empty());
}

namespace {

/// Lets the program that has been compiled into the directory lead to the code of another.
std::string led_astray(const Directory& directory) {
  REQUIRE(at_five(tripled, directory.path()) == 15);
  REQUIRE(directory.programs().size() == 1);
  const fs::path program = directory.programs()[0], first = directory.files()[0];
  REQUIRE(at_five(squared, directory.path()) == 25);
  REQUIRE(directory.files().size() == 2);
  const fs::path second = directory.files()[directory.files()[0] == first ? 1 : 0];
  std::string contents = read_file(program).substr(digest);
  contents.replace(contents.find(first.stem().string()), first.stem().string().size(), second.stem().string());
  write_file(program, sealed(contents));
  return program.string();
}

double at_five_with(D (*f)(D), CompileOptions options, const Directory& directory) {
  options.name = options.name.empty() ? "f" : options.name;
  options.cache = directory.path();
  return compile(f, options)(5.0);
}

/// The square root of n, by recursion.
D root_of(Rep<std::int64_t> n) {
  return FUN<double(std::int64_t)>("root", [](auto self, Rep<std::int64_t> k) {
    return IF(
        k == 0, [&] { return D(0.0); },
        [&] {
          const D before = self(k - 1);
          return sqrt(1.0 + before * before);
        });
  })(n);
}

}  // namespace

TEST_CASE("a program is found before it is compiled, with the same options alone") {
  const Directory directory;
  led_astray(directory);
  CHECK(at_five(tripled, directory.path()) == 25);  // a hit
  const CompileOptions as_stored{.target = Target::cpp, .opt = 2};
  CHECK(at_five_with(tripled, as_stored, directory) == 25);
  const auto differs = [&](auto change) {
    CompileOptions other = as_stored;
    change(other);
    CHECK(at_five_with(tripled, other, directory) == 15);
  };
  differs([](CompileOptions& o) { o.target = Target::automatic; });
  differs([](CompileOptions& o) { o.target = Target::c; });
  differs([](CompileOptions& o) { o.opt = 3; });
  differs([](CompileOptions& o) { o.bounds_checks = false; });
  differs([](CompileOptions& o) { o.strict_math = true; });
  differs([](CompileOptions& o) { o.reassociate = false; });
  differs([](CompileOptions& o) { o.debug = true; });
  differs([](CompileOptions& o) { o.check = Check::nan; });
  differs([](CompileOptions& o) { o.threads = 2; });
  differs([](CompileOptions& o) { o.lanes = 8; });
  differs([](CompileOptions& o) { o.disabled_passes = {"invariant_tables"}; });
  differs([](CompileOptions& o) { o.name = "g"; });
  CHECK(at_five_with([](D x) { return 3.0 * x; }, as_stored, directory) == 15);  // at another place
  setenv("LANTERN_CLANG_LEVEL", "1", 1);
  CHECK(at_five_with(tripled, as_stored, directory) == 15);
  for (const char* level : {"2", "3", "7", "10", ""}) {  // not lower than asked for, or no level
    setenv("LANTERN_CLANG_LEVEL", level, 1);
    CHECK(at_five_with(tripled, as_stored, directory) == 25);
  }
  unsetenv("LANTERN_CLANG_LEVEL");
  CHECK(at_five(tripled, directory.path()) == 25);
}

TEST_CASE("programs that lead nowhere are compiled") {
  const Directory directory;
  const fs::path program = led_astray(directory);
  const std::string good = read_file(program), contents = good.substr(digest);
  const std::size_t code = end_of_key(contents);
  std::string nowhere = contents, outside = contents;
  nowhere[code] = nowhere[code] == '0' ? '1' : '0';
  outside.replace(code, 32, "../../../../../../../etc/passwd/");
  std::string other_key = contents;
  const std::size_t key = other_key.find('\n') + 1;
  other_key[key] = other_key[key] == '0' ? '1' : '0';
  for (const std::string& entry : {std::string(), good.substr(0, good.size() / 2), sealed(nowhere), sealed(outside),
                                   sealed(other_key), sealed(contents.substr(0, contents.size() - 1)),
                                   sealed(contents + "more\n"), sealed("lantern program 0\n")}) {
    write_file(program, entry);
    CHECK(at_five(tripled, directory.path()) == 15);
    CHECK(read_file(program) != entry);  // replaced
    CHECK(at_five(tripled, directory.path()) == 15);
    write_file(program, good);
    CHECK(at_five(tripled, directory.path()) == 25);
  }
}

TEST_CASE("code that is found by its program shows the same text, and is called in the same way") {
  for (const Target target : {Target::cpp, Target::automatic}) {
    const Directory directory;
    const CompileOptions options{.target = target, .name = "f", .cache = directory.path()};
    const auto first = compile(root_of, options);
    first.wait();
    REQUIRE(directory.programs().size() == 1);
    const auto second = compile(root_of, options);
    CHECK(second(250'000) == Approx(500));  // deeper than the stack of a thread
    CHECK(first(250'000) == second(250'000));
    for (const char* what : {"ir", "c", "cpp"}) CHECK(first.source(what) == second.source(what));
    CHECK(second.source("ir") == first.source("ir"));  // asked for again
    CHECK(directory.programs().size() == 1);
  }
}
