// What lanternc makes of a compiler's messages: of recorded ones of g++ 12 and Clang 19, and of its own.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "compiler_messages.hpp"
#include "lantern/codegen/toolchain/process.hpp"

using lantern::codegen::ProcessResult;
using lantern::codegen::run_process;
using lantern::codegen::TemporaryDirectory;
using lantern::codegen::write_file;
using lantern::tool::MessageOptions;
using lantern::tool::messages_for_users;

namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

/// A model of the user's. In recorded output "@" is its directory and "$" for that of Lantern's
/// headers.
class Model {
 public:
  explicit Model(const std::string& text) { write_file(file(), text); }
  std::string file() const { return std::string(directory_.path() / "m.cpp"); }

  std::string told(const std::string& output, MessageOptions options = {}) const {
    options.include = "/opt/lantern/include";
    options.not_of_user.emplace_back("/home/u/.cache/lantern");
    const std::string text = replaced(replaced(output, "@", directory_.path()), "$", options.include);
    return replaced(messages_for_users(text, options), directory_.path(), "@");
  }
  ProcessResult lanternc(std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {LANTERNC, file(), "-o", file() + ".out"});
    ProcessResult r = run_process(options);
    r.err = replaced(r.err, directory_.path(), "@");
    return r;
  }

 private:
  TemporaryDirectory directory_;
};

const std::string rows =
    "using namespace lantern;\n"
    "void f(Rep<Tensor<double>> m, Rep<Array<double>> a) {\n"
    "\tm.row(0) = as_tensor(a);\n"
    "  a.slice(0, 1) = a;\n"
    "}\n";

const std::string rows_by_gcc =
    R"(In file included from $/lantern/compiler/staging/product.hpp:12,
                 from /home/u/.cache/lantern/headers/5ee2.hpp:1:
$/lantern/compiler/staging/containers.hpp: In instantiation of ‘void lantern::core::Rep<>::operator=(const U&) && [with U = int]’:
@/m.cpp:3:13:   required from here
$/lantern/compiler/staging/rep.hpp:244:27: error: static assertion failed: rows are values. Set the elements
  244 |     static_assert(detail::dependent_false<U>, advice);   \
      |                   ~~~~~~~~^~~~~~~~~~~~~~~~~~
$/lantern/compiler/staging/rep.hpp:240:3: note: in expansion of macro ‘LANTERN_NO_ASSIGNMENT’
  240 |   LANTERN_NO_ASSIGNMENT(=, advice)
      |   ^~~~~~~~~~~~~~~~~~~~~
$/lantern/compiler/staging/rep.hpp:244:27: note: ‘dependent_false<int>’ evaluates to false
$/lantern/compiler/staging/rep.hpp:244:27: error: static assertion failed: rows are values. Set the elements
$/lantern/compiler/staging/rep.hpp:251:3: error: no match for ‘operator==’
$/lantern/compiler/staging/containers.hpp: In instantiation of ‘void lantern::core::Rep<>::operator=(const U&) && [with U = double]’:
@/m.cpp:4:17:   required from here
$/lantern/compiler/staging/rep.hpp:251:3: error: no match for ‘operator==’
  251 |     a == b;
      |       ^
)";

}  // namespace

TEST_CASE("an error in a header is told at the user's line that led to it, once") {
  CHECK(Model(rows).told(rows_by_gcc) ==
        "@/m.cpp:3:13: error: rows are values. Set the elements\n"
        "    3 |         m.row(0) = as_tensor(a);\n"
        "      |                    ^\n"
        "@/m.cpp:4:17: error: no match for ‘operator==’ (in lantern/compiler/staging/rep.hpp:251)\n"
        "    4 |   a.slice(0, 1) = a;\n"
        "      |                 ^\n");
}

TEST_CASE("columns of text that was rewritten become those of the user's, or none") {
  MessageOptions options;
  options.column = [](const std::string&, std::uint32_t line, std::uint32_t column) {
    return line == 3 ? std::nullopt : std::optional(column - 14);
  };
  CHECK(Model(rows).told(rows_by_gcc, options) ==
        "@/m.cpp:3: error: rows are values. Set the elements\n"
        "    3 |         m.row(0) = as_tensor(a);\n"
        "      |         ^~~~~~~~~~~~~~~~~~~~~~~~\n"
        "@/m.cpp:4:3: error: no match for ‘operator==’ (in lantern/compiler/staging/rep.hpp:251)\n"
        "    4 |   a.slice(0, 1) = a;\n"
        "      |   ^\n");
  // An error of the user's own as well, whose excerpt g++ draws below another text.
  CHECK(Model(rows).told("@/m.cpp:4:17: error: expected ‘)’ before ‘;’ token\n"
                         "    4 |   a.slice(0, 1) = a;\n"
                         "      |                ~^\n      |                 )\n",
                         options) ==
        "@/m.cpp:4:3: error: expected ‘)’ before ‘;’ token\n"
        "    4 |   a.slice(0, 1) = a;\n"
        "      |   ^\n");
}

TEST_CASE("the user's own errors keep their excerpts and lose the candidates in headers") {
  const std::string recorded = R"(@/m.cpp: In instantiation of ‘T squares(V) [with T = double]’:
@/m.cpp:4:47:   required from here
@/m.cpp:3:7: error: no match for ‘operator[]’
    3 |   m.row(0) = as_tensor(a);
      |   ~~~~^
      |       |
      |       int
In file included from /usr/include/c++/12/vector:64,
                 from $/lantern/compiler/frontend/leaves.hpp:12:
/usr/include/c++/12/bits/stl_vector.h:1121:7: note: candidate: ‘std::vector<_Tp, _Alloc>::operator[](size_type)’
 1121 |       operator[](size_type __n) _GLIBCXX_NOEXCEPT
      |       ^~~~~~~~
/usr/include/c++/12/bits/stl_vector.h:1121:7: note:   template argument deduction/substitution failed:
@/m.cpp:3:7: note:   mismatched types ‘const std::vector<_Tp>’ and ‘int’
    3 |   m.row(0) = as_tensor(a);
      |       ^
@/m.cpp:3:7: note: candidate: ‘operator[](int, long)’ (built-in)
@/m.cpp:2:6: note: candidate: ‘void f(int)’
    2 | void f(int)
      |      ^
@/m.cpp:2:6: note:   candidate expects 1 argument, 2 provided
@/m.cpp:3:7: note: suggested alternatives:
/usr/include/c++/12/bits/range_access.h:123:37: note:   ‘std::begin’
@/m.cpp: In function ‘void f()’:
@/m.cpp:4:3: warning: unused variable ‘a’ [-Wunused-variable]
    4 |   a.slice(0, 1) = a;
      |   ^
)";
  CHECK(Model(rows).told(recorded) == R"(@/m.cpp:3:7: error: no match for ‘operator[]’
    3 |   m.row(0) = as_tensor(a);
      |   ~~~~^
      |       |
      |       int
@/m.cpp:2:6: note: candidate: ‘void f(int)’
    2 | void f(int)
      |      ^
@/m.cpp:2:6: note:   candidate expects 1 argument, 2 provided
@/m.cpp:4:3: warning: unused variable ‘a’ [-Wunused-variable]
    4 |   a.slice(0, 1) = a;
      |   ^
)");
}

TEST_CASE("what follows in a macro of Lantern's from a mistake in its argument is not told") {
  const std::string recorded = R"(@/m.cpp:3:14: error: no matching function for call to ‘grad(int)’
    3 |   m.row(0) = as_tensor(a);
      |              ^~~~~~~~~
$/lantern/compiler/driver/function.hpp:140:68: note: in definition of macro ‘LANTERN_FUNCTION’
  140 |     return ::lantern::core::driver::a_program_must_be_one_function(__VA_ARGS__);
      |                                                                    ^~~~~~~~~~~
@/m.cpp: At global scope:
$/lantern/compiler/driver/function.hpp:151:92: error: template argument 1 is invalid
@/m.cpp:3:1: note: in expansion of macro ‘LANTERN_FUNCTION’
    3 |   m.row(0) = as_tensor(a);
      | ^
$/lantern/compiler/driver/function.hpp:155:37: error: ‘lantern_exported_g’ does not name a type
@/m.cpp:4:3: note: in expansion of macro ‘LANTERN_FUNCTION’
    4 |   a.slice(0, 1) = a;
      |   ^
)";
  CHECK(Model(rows).told(recorded) == R"(@/m.cpp:3:14: error: no matching function for call to ‘grad(int)’
    3 |   m.row(0) = as_tensor(a);
      |              ^~~~~~~~~
@/m.cpp:4:3: error: ‘lantern_exported_g’ does not name a type (in lantern/compiler/driver/function.hpp:155)
    4 |   a.slice(0, 1) = a;
      |   ^
)");
}

TEST_CASE("Clang's chains are notes, which it writes once for several errors") {
  const std::string recorded = R"(In file included from <built-in>:483:
In file included from $/lantern/compiler/frontend/native.hpp:13:
$/lantern/compiler/staging/rep.hpp:429:1: error: static assertion failed due to requirement 'no<double>': convert one
  429 | LANTERN_NO_MIXING(+)
      | ^~~~~~~~~~~~~~~~~~~~
$/lantern/compiler/staging/rep.hpp:425:19: note: expanded from macro 'LANTERN_NO_MIXING'
  425 |     static_assert(no<T>,
      |                   ^~~~~
@/m.cpp:3:12: note: in instantiation of function template specialization 'operator+<double, float>' requested here
    3 |   m.row(0) = as_tensor(a);
      |            ^
@/m.cpp:5:1: note: in instantiation of function template specialization 'twice<double>' requested here
    5 | }
      | ^
/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/stl_algo.h:1870:11: error: no matching function
 1870 |           while (__comp(__pivot, __last))
      |                  ^~~~~~
/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/predefined_ops.h:44:7: note: candidate template ignored
$/lantern/compiler/staging/rep.hpp:430:1: error: static assertion failed due to requirement 'x': other
@/m.cpp:4:3: error: use of undeclared identifier 'a'
    4 |   a.slice(0, 1) = a;
      |   ^
@/m.cpp:2:6: note: 'b' declared here
    2 | void f(Rep<Tensor<double>> m, Rep<Array<double>> b) {
      |      ^
4 errors generated.
)";
  CHECK(Model(rows).told(recorded) == R"(@/m.cpp:3:12: error: convert one
    3 |         m.row(0) = as_tensor(a);
      |                   ^
@/m.cpp:3:12: error: other
    3 |         m.row(0) = as_tensor(a);
      |                   ^
@/m.cpp:4:3: error: use of undeclared identifier 'a'
    4 |   a.slice(0, 1) = a;
      |   ^
@/m.cpp:2:6: note: 'b' declared here
    2 | void f(Rep<Tensor<double>> m, Rep<Array<double>> b) {
      |      ^
)");
}

TEST_CASE("colours are kept, and understood") {
  const std::string e = "\x1b[01;31m\x1b[K", b = "\x1b[01m\x1b[K", o = "\x1b[m\x1b[K";
  const std::string own = b + "@/m.cpp:4:3:" + o + " " + e + "error: " + o + "‘" + b + "a" + o +
                          "’ was not declared\n    4 |   " + e + "a" + o + ".slice(0, 1) = a;\n      |   " +
                          e + "^" + o + "\n";
  const std::string in_header =
      "In file included from " + b + "$/lantern/a.hpp:12" + o + ":\n$/lantern/a.hpp: In " +
      "instantiation of ‘" + b + "f" + o + "’:\n" + b + "@/m.cpp:3:2:" + o + "   required from here\n" + b +
      "$/lantern/a.hpp:1:2:" + o + " " + e + "error: " + o + "static assertion failed: no\n";
  CHECK(Model(rows).told(own + in_header) == own + b + "@/m.cpp:3:2:" + o + " " + e + "error: " + o +
                                                 "no\n    3 |         m.row(0) = as_tensor(a);\n" +
                                                 "      |         " + e + "^" + o + "\n");
}

TEST_CASE("warnings of the optimiser are told where it found them") {
  CHECK(Model(rows).told(R"(In member function ‘int std::vector<int>::operator[]’,
    inlined from ‘void f()’ at /usr/include/c++/12/bits/stl_vector.h:5:6,
    inlined from ‘int main()’ at @/m.cpp:4:19:
/usr/include/c++/12/bits/new_allocator.h:137:55: warning: array subscript 9 is outside [-Warray-bounds]
  137 |         return;
      |               ^
)") == "@/m.cpp:4:19: warning: array subscript 9 is outside [-Warray-bounds] (in "
       "/usr/include/c++/12/bits/new_allocator.h:137)\n"
       "    4 |   a.slice(0, 1) = a;\n"
       "      |                   ^\n");
}

TEST_CASE("warnings of headers that no line of the user's leads to are not told") {
  CHECK(Model(rows).told(R"(In file included from /usr/include/fmt/format.h:48,
                 from @/m.cpp:2:
/usr/include/fmt/core.h:2096:48: warning: writing 1 byte into a region of size 0 [-Wstringop-overflow=]
 2096 |     for (size_t i = 0; i < size; ++i) data_[i] = s[i];
      |                                       ~~~~~~~~~^~~~
)").empty());
}

TEST_CASE("what a deleted function of the library tells is all that is said") {
  const std::string recorded = R"(@/m.cpp: In function ‘void f()’:
@/m.cpp:3:14: error: use of deleted function ‘void lantern::core::detail::TypedCalls<Self>::operator()(const A& ...) const [with A = {double}; Text<...auto...> what = lantern::core::Text<35>{"df takes (double); \"x\" is none"}; Self = int]’
    3 |   m.row(0) = as_tensor(a);
      |              ^~~~~~~~~
In file included from $/lantern/lantern.hpp:3:
$/lantern/compiler/driver/call.hpp:9:3: note: declared here
    9 |   void operator()(const A&...) const = delete;
      |        ^~~~~~~~
@/m.cpp:4:3: warning: ignoring return value of ‘lantern::core::Rep<double> lantern::core::operator+(int)’, declared with attribute ‘nodiscard’: ‘write a = b’ [-Wunused-result]
    4 |   a.slice(0, 1) = a;
      |   ^
$/lantern/compiler/staging/rep.hpp:9:3: note: declared here
@/m.cpp:4:17: error: no match for ‘operator[]’ (operand types are ‘double [3]’ and ‘lantern::core::Rep<long int>’)
    4 |   a.slice(0, 1) = a;
      |                 ^
)";
  CHECK(Model(rows).told(recorded) == R"(@/m.cpp:3:14: error: df takes (double); "x" is none
    3 |         m.row(0) = as_tensor(a);
      |                     ^
@/m.cpp:4:3: warning: the result is not used; write a = b [-Wunused-result]
    4 |   a.slice(0, 1) = a;
      |   ^
@/m.cpp:4:17: error: a Rep has no value yet and cannot be the index of a double [3]: make it an argument of the program, Rep<Array<double>>, or write constant_table(table)[i]
    4 |   a.slice(0, 1) = a;
      |                 ^
)");
}

TEST_CASE("ten errors are enough") {
  std::string all, first;
  for (int i = 1; i <= 13; ++i) {
    all += "@/m.cpp:1:" + std::to_string(i) + ": error: expected ‘;’\n@/m.cpp:2:3: note: to match this\n";
    if (i == 10) first = all;
  }
  CHECK(Model(rows).told(all) == first + "3 more errors; --all-messages shows what the compiler said\n");
}

TEST_CASE("what is not understood, or is nobody's, comes as it is") {
  for (const char* text :
       {"", "/usr/bin/ld: /tmp/x.o: in function `main':\nm.cpp:(.text+0x5): undefined reference to `f()'\n",
        "@/m.cpp:3:1: internal compiler error: Segmentation fault\n  in file included from\n"
        "Please submit a full bug report, with preprocessed source\n",
        "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n",
        "m.cpp:3:2: Fehler: »x« wurde nicht deklariert\n",
        "In file included from @/m.cpp:1:\n/usr/include/c++/12/bits/c++0x_warning.h:32:2: error: #error This "
        "file\n"
        "   32 | #error This file\n      |  ^~~~~\n",
        "cc1plus: error: unknown value ‘z’ for ‘-std’\n"}) {
    CAPTURE(text);
    const Model model(rows);
    CHECK(model.told(text) == replaced(text, "$", "/opt/lantern/include"));
  }
}

TEST_CASE("lanternc shows the user's line where a header refuses what stands there") {
  const Model model(
      "#include <lantern/lantern.hpp>\n"
      "using namespace lantern;\n"
      "Rep<double> half(Rep<std::int64_t> n) {\n"
      "  return cast<double>(n * 0.5);\n"
      "}\n"
      "LANTERN_FUNCTION(value, half)\n"
      "int main() {}\n");
  const ProcessResult r = model.lanternc();
  CHECK(r.status == 1);
  CHECK(r.err ==
        "@/m.cpp:4:27: error: a number with a fraction is used as a whole one, or beside a Rep of whole numbers, "
        "and would lose its fraction: write cast<double>(n) for the Rep, or static_cast<std::int64_t>(x) for the "
        "number\n"
        "    4 |   return cast<double>(n * 0.5);\n"
        "      |                           ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
  const ProcessResult all = model.lanternc({"--all-messages"});
  CHECK(all.status == 1);
  CHECK(all.err.find("required from here") != std::string::npos);
}

TEST_CASE("what lanternc leaves as it is gets advice for lanternc") {
  const Model model(
      "#include <lantern/lantern.hpp>\n"
      "using namespace lantern;\n"
      "Rep<double> f(Rep<double> x, Rep<double> y = Rep<double>(1.0) > 2.0 ? 3.0 : 4.0) { return x * y; }\n"
      "Rep<double> g(Rep<double> x) { return f(x); }\n"
      "LANTERN_FUNCTION(slope, grad(g))\n"
      "int main() {}\n");
  const std::string before = "@/m.cpp:3:63: error: a Rep<bool> has no value yet",
                    after =
                        "    3 | Rep<double> f(Rep<double> x, Rep<double> y = Rep<double>(1.0) > 2.0 ? 3.0 : "
                        "4.0) { return x * y; }\n"
                        "      |                                                               ^\n"
                        "lanternc: error: @/m.cpp did not compile\n";
  CHECK(model.lanternc().err == before +
                                    ", and lanternc does not rewrite control flow here, in the "
                                    "body of a macro for instance. "
                                    "Move it to a function or lambda of its own, outside of the macro, or "
                                    "write IF, WHILE, AND, OR or select\n" +
                                    after);
  CHECK(model.lanternc({"--no-rewrite"}).err == before +
                                                    ": native if, while, ?:, && and || cannot branch on it. "
                                                    "Write IF(c, [&] { return a; }, [&] { return b; "
                                                    "}), WHILE(state, cond, body), AND(a, [&] { return b; }) "
                                                    "or select(c, a, b), or compile the file with "
                                                    "lanternc\n" +
                                                    after);
}

TEST_CASE("what Clang refuses before lanternc rewrites is told at the user's line") {
  const Model model(
      "#include <lantern/lantern.hpp>\n"
      "using namespace lantern;\n"
      "template <class T>\n"
      "T scaled(T x) {\n"
      "  if (x > 2.0) return x + cast<float>(x);\n"
      "  return x;\n"
      "}\n"
      "LANTERN_FUNCTION(slope, grad(scaled<Rep<double>>))\n");
  const ProcessResult r = model.lanternc();
  CHECK(r.status == 1);
  CHECK(r.err ==
        "@/m.cpp:5:25: error: operands of two different Rep types: convert one, for example cast<double>(n)\n"
        "    5 |   if (x > 2.0) return x + cast<float>(x);\n"
        "      |                         ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
}
