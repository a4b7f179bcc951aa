// Names of the user's that mean something in generated code, and text of his that would end a comment or a
// literal there: through every target.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "lantern/codegen/naming.hpp"
#include "lantern/codegen/toolchain/emulate.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/ir/escape.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using Catch::Matchers::Contains;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;

/// Keywords, functions and macros of C, C++ and CUDA; what our text calls its own things; no identifiers.
const std::vector<std::string> nasty{"in",
                                     "out",
                                     "typeof",
                                     "restrict",
                                     "double",
                                     "class",
                                     "template",
                                     "constexpr",
                                     "nullptr",
                                     "main",
                                     "linux",
                                     "std",
                                     "ws",
                                     "at",
                                     "env",
                                     "captured",
                                     "data",
                                     "share",
                                     "results",
                                     "result0",
                                     "handler",
                                     "message",
                                     "mark",
                                     "call",
                                     "x",
                                     "y0",
                                     "gamma",
                                     "exp",
                                     "expf",
                                     "sinl",
                                     "index",
                                     "strlen",
                                     "cexp",
                                     "memcpy",
                                     "printf",
                                     "write",
                                     "abort",
                                     "puts",
                                     "lt",
                                     "lt_",
                                     "lt_workspace",
                                     "lt_allocate",
                                     "lt_f64_1d",
                                     "lt_share_in",
                                     "LT_SELDOM",
                                     "lantern",
                                     "lantern_entry",
                                     "model_entry",
                                     "model_workspace",
                                     "model_on_failure",
                                     "model_results",
                                     "model_inner",
                                     "model_kernel",
                                     "model",
                                     "trailing_",
                                     "two__",
                                     "a__b",
                                     "_leading",
                                     "__both__",
                                     "_Bool",
                                     "exp_",
                                     "exp__",
                                     "9lives",
                                     "a b",
                                     "a.b",
                                     "a-b",
                                     "",
                                     "_",
                                     "*/ int oops; /*",
                                     "// \\",
                                     "\"quoted\"",
                                     "line\nbreak",
                                     "back\\slash\\",
                                     "?\?/",
                                     "\xff\xfe",
                                     "\xcf\x80",
                                     std::string(300, 'n')};

/// Has a function of each name, whose label and variables say it too.
D everything(D x, I depth) {
  D total = x;
  for (const std::string& name : nasty) {
    const auto f = FUN<double(double, std::int64_t)>(name, [](auto self, D y, I left) {
      return IF(
          left == 0, [&] { return sin(y); }, [&] { return 0.5 * self(0.5 * y, left - 1) + exp(y); });
    });
    total = total + f(x, depth);
  }
  return total;
}

double expected(double x, int depth) {
  const auto f = [](auto self, double y, int left) -> double {
    return left == 0 ? std::sin(y) : 0.5 * self(self, 0.5 * y, left - 1) + std::exp(y);
  };
  return x + static_cast<double>(nasty.size()) * f(f, x, depth);
}

/// Compiles without a warning, the input being the text.
void check_compiles(std::vector<std::string> command, const std::string& text) {
  for (const char* flag : {"-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-"}) command.emplace_back(flag);
  const codegen::ProcessResult r = codegen::run_process(command, text);
  INFO(r.err.substr(0, 2000));
  CHECK(r.status == 0);
}

}  // namespace

TEST_CASE("functions of any name, in every target") {
  for (const Target target : {Target::c, Target::cpp}) {
    const auto f = compile(everything, {.target = target, .opt = 1, .name = "model"});
    CHECK(f(0.3, 3) == Approx(expected(0.3, 3)));
    if (target == Target::cpp) continue;
    check_compiles({"cc", "-std=c99", "-x", "c"}, f.source("c"));
    check_compiles({"c++", "-std=c++20", "-x", "c++"}, f.source("cpp"));
  }
  // A GPU has a kernel for every element.
  const auto code =
      codegen::compile_emulated(compile(everything, {.target = Target::c, .name = "model"}).source("cuda"));
  const double x = 0.3;
  const std::int64_t depth = 3;
  double y = 0;
  CHECK(code->function<int(const double*, const std::int64_t*, double*, std::int64_t)>("model_map")(
            &x, &depth, &y, 1) == 0);
  CHECK(y == Approx(expected(0.3, 3)));
}

TEST_CASE("an entry of any name") {
  const auto f = [](D x, A a) { return sum(a) * sin(x); };
  std::string all_c, all_cpp;
  for (const std::string& name : nasty) {
    CAPTURE(name);
    const auto compiled = compile(f, {.target = Target::c, .name = name});
    CHECK(compiled(1.0, std::vector<double>{1, 2}) == Approx(3 * std::sin(1.0)));
    CHECK(compiled.source("c").find(" lantern_entry(") == std::string::npos);
  }
  for (const char* name : {"in", "out", "typeof", "lt_workspace"})
    CHECK(compile(f, {.target = Target::cpp, .name = name})(1.0, std::vector<double>{1, 2}) ==
          Approx(3 * std::sin(1.0)));
}

TEST_CASE("parameters and variables of any name") {
  const auto f = [](D in, D out, A data, D restrict, D y0, D gamma_, D ws, D result0, D a__b, D lt_x,
                    D linux_) {
    D env = in + out* restrict;
    D share = FOR(0, data.size(), env, [&](I index, D at) { return at + data[index] * y0 * gamma_; });
    D handler = share + ws * result0;
    return std::tuple(handler * a__b, lt_x + linux_ * share);
  };
  const auto g = grad<0, 3, 4>(
      [f](D in, D out, A data, D restrict, D y0, D gamma_, D ws, D result0, D a__b, D lt_x, D linux_) {
        const auto [first, second] = f(in, out, data, restrict, y0, gamma_, ws, result0, a__b, lt_x, linux_);
        return first * second;
      });
  const std::vector<double> data{1, 2, 3};
  const auto expected = eager(g)(1, 2, data, 3, 4, 5, 6, 7, 8, 9, 10);
  for (const Target target : {Target::c, Target::cpp}) {
    const auto compiled = compile(g, {.target = target});
    const auto [a, b, c] = compiled(1, 2, data, 3, 4, 5, 6, 7, 8, 9, 10);
    CHECK(a == Approx(std::get<0>(expected)));
    CHECK(b == Approx(std::get<1>(expected)));
    CHECK(c == Approx(std::get<2>(expected)));
    check_compiles({"cc", "-std=c99", "-x", "c"}, compiled.source("c"));
    check_compiles({"c++", "-std=c++20", "-x", "c++"}, compiled.source("cpp"));
  }
}

TEST_CASE("labels and messages of any text") {
  for (const std::string& text : nasty) {
    CAPTURE(text);
    const auto f = [&](D x, A a) {
      print(x, text);
      print(a, text);
      return x * a[0];
    };
    const auto compiled = compile(f, {.target = Target::c});
    const std::string c = compiled.source("c");
    CHECK_THAT(c, Contains(ir::c_string(text)));
    if (text.size() < 8 || text.find('\\') != std::string::npos) {
      check_compiles({"cc", "-std=c99", "-x", "c"}, c);
      check_compiles({"c++", "-std=c++20", "-x", "c++"}, compiled.source("cpp"));
    }
  }
}

TEST_CASE("an identifier keeps its name, and what is made one stays as it is") {
  for (const char* name : {"x", "x_", "a__b", "signal", "time", "strlen_of"})
    CHECK(codegen::identifier(name) == name);
  CHECK(codegen::identifier("exp") == "exp_");
  CHECK(codegen::identifier("strlen") == "strlen");
  CHECK(codegen::function_identifier("strlen") == "strlen_");
  CHECK(codegen::function_identifier("lt_workspace") == "n_lt_workspace");
  CHECK(codegen::identifier("f.fwd") == "f_fwd");
  CHECK(codegen::identifier("_x") == "x");
  for (const std::string& name : nasty)
    for (const auto legal : {codegen::identifier, codegen::function_identifier})
      CHECK(legal(legal(name)) == legal(name));
}

TEST_CASE("text in other languages") {
  using namespace ir;
  CHECK(c_string("a\"b\\c\n\t?\?/?") == R"("a\"b\\c\012\011?\?/?")");
  CHECK(c_string("\xcf\x80 \xff \xe2\x80\xae") == "\"\xcf\x80 \\377 \\342\\200\\256\"");
  CHECK(c_line_comment("a \\ b \\ \\") == "a \\ b");
  CHECK(c_line_comment("end?\?/") == "end? ?/");
  CHECK(c_line_comment("one\ntwo\r\xff") == "one two \xef\xbf\xbd");
  CHECK(c_line_comment("x = 1; /* kept */") == "x = 1; /* kept */");
  CHECK(c_block_comment("*/ /* **/ /*/ *") == "* / / * ** / / * / * ");
  CHECK(markup("<a href=\"x\">&\x01\xff") == "&lt;a href=&quot;x&quot;&gt;&amp; \xef\xbf\xbd");
  for (int c = 1; c < 256; ++c) {
    const std::string text(3, static_cast<char>(c));
    for (const std::string& s : {c_string(text), c_line_comment(text), c_block_comment(text), markup(text)})
      for (const char d : s)
        CHECK((static_cast<unsigned char>(d) >= 32 || ((d == '\t' || d == '\n') && c == d)));
  }
}
