// What lanternc says of mistakes that g++ or Clang would explain in the library's terms: the whole text.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"

using lantern::codegen::ProcessResult;
using lantern::codegen::run_process;
using lantern::codegen::TemporaryDirectory;
using lantern::codegen::write_file;

namespace {

/// lanternc's messages about a model that does not compile, with more arguments; "@" is its directory.
std::string said(const std::string& model, const std::vector<std::string>& more = {}) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "m.cpp";
  write_file(file, "#include <lantern/lantern.hpp>\nusing namespace lantern;\n" + model);
  std::vector<std::string> command{LANTERNC, file.string(), "-o", file.string() + ".out"};
  command.insert(command.end(), more.begin(), more.end());
  const ProcessResult r = run_process(command);
  CHECK(r.status == 1);
  std::string text = r.err;
  const std::string path = directory.path();
  for (std::size_t at = text.find(path); at != std::string::npos; at = text.find(path, at)) text.replace(at, path.size(), "@");
  return text;
}

const std::string one_function =
    "write ::f if Lantern has an f, too, f<Rep<double>> if f is a template, or a lambda that calls the one you "
    "mean, [](Rep<double> x) { return f(x); }: several functions have this name, or it is a template\n";

}  // namespace

TEST_CASE("a call that does not fit says how the function is called") {
  CHECK(said("Rep<double> f(Rep<Array<double>> a, Rep<double> x) { return sum(a) * x; }\n"
             "LANTERN_FUNCTION(df, f)\n"
             "const std::vector<float> v(2);\n"
             "double a = df(v, 2.0);\n"
             "double b = df(2.0);\n"
             "void h(std::vector<double> in) { df.into(in); }\n"
             "int main() {}\n") ==
        "@/m.cpp:6:14: error: df takes (std::span<const double>, double); argument 1 is a std::vector<float>\n"
        "    6 | double a = df(v, 2.0);\n"
        "      |              ^\n"
        "@/m.cpp:7:14: error: df takes (std::span<const double>, double), got 1 argument\n"
        "    7 | double b = df(2.0);\n"
        "      |              ^\n"
        "@/m.cpp:8:41: error: df.into takes a target for each result, (double), then the arguments, "
        "(std::span<const double>, double), got 1 argument\n"
        "    8 | void h(std::vector<double> in) { df.into(in); }\n"
        "      |                                         ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("what is no program says how one is written") {
  CHECK(said("double f(double x) { return x * x; }\n"
             "template <class T>\n"
             "T g(T x) {\n"
             "  return x * x;\n"
             "}\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "LANTERN_FUNCTION(dg, grad(g))\n"
             "LANTERN_FUNCTION(dh, grad([](auto x) { return x * x; }))\n"
             "int main() { return static_cast<int>(df(1.0) + dg(1.0) + dh(1.0)); }\n") ==
        "@/m.cpp:8:26: error: write the function over Reps, for example Rep<double> f(Rep<double> x): parameter 1 is a "
        "double, which has a value only when the program runs\n"
        "    8 | LANTERN_FUNCTION(df, grad(f))\n"
        "      |                          ^\n"
        "@/m.cpp:9:26: error: " +
            one_function +
            "    9 | LANTERN_FUNCTION(dg, grad(g))\n"
            "      |                          ^\n"
            "@/m.cpp:10:26: error: the signature of this callable cannot be seen (a generic lambda?): write "
            "sig<double(double)>(f)\n"
            "   10 | LANTERN_FUNCTION(dh, grad([](auto x) { return x * x; }))\n"
            "      |                          ^\n"
            "lanternc: error: @/m.cpp did not compile\n");
  CHECK(said("Rep<double> f(Rep<double> x) { return x * x; }\n"
             "int main() {\n"
             "  LANTERN_FUNCTION(df, grad(f))\n"
             "  return static_cast<int>(df(1.0));\n"
             "}\n") ==
        "@/m.cpp:5:3: error: move LANTERN_FUNCTION(df, ...) out of the function, to namespace scope\n"
        "    5 |   LANTERN_FUNCTION(df, grad(f))\n"
        "      |   ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("names that Lantern has too, and types that lack Rep") {
  CHECK(said("using D = Rep<double>;\n"
             "D total(D x, D y) { return x + y; }\n"
             "LANTERN_FUNCTION(sum, total)\n"
             "int main() { return static_cast<int>(sum(1.0, 2.0)); }\n") ==
        "@/m.cpp:6:38: error: namespace lantern has the name sum, too: write ::sum for yours, lantern::sum for Lantern's\n"
        "    6 | int main() { return static_cast<int>(sum(1.0, 2.0)); }\n"
        "      |                                      ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
  CHECK(said("Rep<double> f(Tensor<double, dyn, 3> a) { return a(0, 0); }\n"
             "LANTERN_FUNCTION(first, f)\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:3:38: error: write Rep<Tensor<double, dyn, 3>>: Tensor<double, dyn, 3> alone names a type of "
                         "values that exist only when the program runs\n"));
  const std::string whole = "write Rep<Array<double>>: a Rep is of the whole array, not of each element\n";
  CHECK(said("Rep<double> f(Array<Rep<double>> a) { return a[0]; }\n"
             "LANTERN_FUNCTION(first, f)\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:3:34: error: " + whole));
  // The native loop is what Clang reads the file for.
  CHECK(said("Rep<double> f(Array<Rep<double>> a, Rep<std::int64_t> n) {\n"
             "  Rep<double> s = 0.0;\n"
             "  for (Rep<std::int64_t> i = 0; i < n; ++i) s += a[i];\n"
             "  return s;\n"
             "}\n"
             "LANTERN_FUNCTION(total, f)\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:3:34: error: " + whole));
}

TEST_CASE("values that are not there yet, and changes that are lost") {
  // The native branch is what Clang reads the file for.
  CHECK(said("#include <iostream>\n"
             "Rep<double> f(Rep<double> x) {\n"
             "  std::cout << x;\n"
             "  Rep<double> s = 0.0;\n"
             "  FOR(0, 3, [=](Rep<std::int64_t>) { s = s + x; });\n"
             "  if (x > 0.0) return s;\n"
             "  return -s;\n"
             "}\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n") ==
        "@/m.cpp:5:16: error: a Rep has no value yet; print(x, \"x\") prints it when the program runs\n"
        "    5 |   std::cout << x;\n"
        "      |                ^\n"
        "@/m.cpp:7:46: error: a lambda that captures by value, [=], or a const Rep is assigned: write [&], so that the "
        "variable itself changes\n"
        "    7 |   FOR(0, 3, [=](Rep<std::int64_t>) { s = s + x; });\n"
        "      |                                              ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
  CHECK(said("#include <fmt/format.h>\n"
             "Rep<double> f(Rep<double> x) {\n"
             "  Rep<double> s = 0.0;\n"
             "  fmt::print(\"{}\", x);\n"
             "  FOR(0, 3, [=](Rep<std::int64_t>) mutable { s = s + x; });\n"
             "  if (x > 0.0) return s;\n"
             "  return -s;\n"
             "}\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n") ==
        "@/m.cpp:6:8: error: a Rep has no value yet; print(x, \"x\") prints it when the program runs\n"
        "    6 |   fmt::print(\"{}\", x);\n"
        "      |        ^\n"
        "@/m.cpp:7:3: error: a mutable lambda changes its own copies, which end with it: write [&], without mutable, so "
        "that the variables themselves change\n"
        "    7 |   FOR(0, 3, [=](Rep<std::int64_t>) mutable { s = s + x; });\n"
        "      |   ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
  CHECK(said("std::vector<double> table{1.0, 2.0};\n"
             "Rep<double> f(Rep<double> x, Rep<std::int64_t> i) {\n"
             "  if (x > 0.0) return x * table[i];\n"
             "  return x;\n"
             "}\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n") ==
        "@/m.cpp:5:32: error: a Rep has no value yet and cannot be the index of a std::vector<double>: make it an "
        "argument of the program, Rep<Array<double>>, or write constant_table(table)[i]\n"
        "    5 |   if (x > 0.0) return x * table[i];\n"
        "      |                                ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("a result that is not used, a return that is missing") {
  CHECK(said("Rep<double> f(Rep<Array<double>> a) {\n"
             "  a.set(0, 5.0);\n"
             "  a[0] * a[0];\n"
             "}\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n") ==
        "@/m.cpp:4:16: warning: the result is not used; the value itself stays as it was: write a = a.set(...) "
        "[-Wunused-result]\n"
        "    4 |   a.set(0, 5.0);\n"
        "      |                ^\n"
        "@/m.cpp:5:14: warning: the result is not used [-Wunused-result]\n"
        "    5 |   a[0] * a[0];\n"
        "      |              ^\n"
        "@/m.cpp:6:1: error: a way through this function ends without a return: write one at its end\n"
        "    6 | }\n"
        "      | ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
  CHECK(said("Rep<double> f(Rep<double> x) {\n  if (x > 0.0) return x;\n}\nLANTERN_FUNCTION(df, grad(f))\nint main() {}\n") ==
        "@/m.cpp:4: error: a way through this function ends without a return: write one at its end\n"
        "    4 |   if (x > 0.0) return x;\n"
        "      |   ^~~~~~~~~~~~~~~~~~~~~~\n"
        "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("a Rep where C++ wants a value, and a name of another header, say what to write") {
  struct Mistake {
    std::string code, place_by_gcc, place_by_clang, by_gcc, by_clang;
  };
  const auto no_number = [](const std::string& type) {
    return "a Rep has no value yet, so it is no " + type +
           ": keep what is computed of it in a Rep (or write auto); cast<T>(x) makes a Rep<T> of a Rep";
  };
  const auto no_index = [](const std::string& table) {
    return "a Rep has no value yet and cannot be the index of a " + table +
           ": make it an argument of the program, Rep<Array<double>>, or write constant_table(table)[i]";
  };
  const std::string index = "an index is an integer: write a[cast<int64_t>(x)]",
                    element = "an element of a tensor is m(i, j), a row of a matrix m.row(i)",
                    print = "a Rep has no value yet; print(x, \"x\") prints it when the program runs",
                    no_operator =
                        "these types have no such operator: fmod(x, y) is the remainder of numbers with a fraction, pow(x, y) the power",
                    no_sum = "a Rep has no value yet, so a variable of type double cannot hold it: declare the variable as a Rep, "
                             "Rep<double> s = 0.0 for instance",
                    no_sum_operator = "these types have no such operator: a variable that takes a Rep is a Rep, Rep<double> s = 0.0 for "
                                      "instance; fmod(x, y) is the remainder, pow(x, y) the power",
                    along = "no function of this name takes these arguments: is #include <lantern/tensor.hpp> missing? Functions of "
                            "tensors along a dimension, concat<1>(...), are there",
                    tensor = "write #include <lantern/tensor.hpp>: tabulate is there",
                    special = "write #include <lantern/special.hpp>: namespace special is there",
                    bessel = "write special::bessel_j and #include <lantern/special.hpp>";
  const std::vector<Mistake> mistakes{
      {"D a(D x) { double y = x; return y * x; }", "x;", "y =", no_number("double"), no_number("double")},
      {"D b(D x) { int y = static_cast<int>(x); return y * x; }", "static", "static", no_number("int"), no_number("int")},
      {"D c(A x, D y) { return x[y]; }", "[", "[", index, index},
      {"D d(I i, Table t) { return t[i]; }", "[", "[", no_index("std::vector<double>"), no_index("Table")},
      {"D e(M m) { return m[0][1]; }", "[", "[", element, element},
      {"D f(D x) { const std::string s = std::to_string(x); return x; }", "(x)", "std::to", print, print},
      {"D g(D x) { return x % 2.0; }", "%", "%", "% is of integers: fmod(x, y) is the remainder of numbers with a fraction", no_operator},
      {"D h(D x) { return x ^ 2.0; }", "^", "^", "^ is no power: write pow(x, y), or x * x", no_operator},
      {"D i(A x) { return special::gammainc(1.0, x[0]); }", "special", "special", special, special},
      {"D j(D x) { return bessel_j(0, x); }", "bessel", "bessel", bessel, bessel}};
  const std::vector<Mistake> more{  // a run shows ten errors
      {"D k(D x) { double s = 0.0; s += x; return x; }", "+=", "+=", no_sum, no_sum_operator},
      {"M l(M m) { return concat<1>(m, m); }", "(m,", "concat", along, along},
      {"M n(M m) { return tabulate(m); }", "tabulate", "tabulate", tensor, tensor}};
  const auto check = [&](bool by_clang, const std::vector<Mistake>& all) {
    // With native control flow Clang reads the program first.
    std::string model =
        "#include <string>\n#include <vector>\nusing D = Rep<double>;\nusing A = Rep<Array<double>>;\nusing I = Rep<int64_t>;\n"
        "using M = Rep<Tensor<double, dyn, dyn>>;\nusing Table = std::vector<double>;\n" +
        std::string(by_clang ? "D sign(D x) { if (x > 0.0) return x; return -x; }\n" : "double sign(double x) { return x; }\n");
    std::size_t line = 2 + 8;
    std::string expected;
    for (const Mistake& m : all) {
      const std::size_t at = m.code.find(by_clang ? m.place_by_clang : m.place_by_gcc);
      const std::string number = std::to_string(++line);
      model += m.code + "\n";
      expected += "@/m.cpp:" + number + ":" + std::to_string(at + 1) + ": error: " + (by_clang ? m.by_clang : m.by_gcc) + "\n" +
                  std::string(5 - number.size(), ' ') + number + " | " + m.code + "\n      | " + std::string(at, ' ') + "^\n";
    }
    CHECK(said(model + "int main() {}\n") == expected + "lanternc: error: @/m.cpp did not compile\n");
  };
  for (const bool by_clang : {false, true})
    for (const auto* all : {&mistakes, &more}) check(by_clang, *all);
}

TEST_CASE("a name that is not called is no function of Lantern's") {
  const auto undeclared = [](const std::string& line, const std::string& code, const std::string& name) {
    const std::size_t at = code.rfind(name);
    return "@/m.cpp:" + line + ":" + std::to_string(at + 1) + ": error: ‘" + name + "’ was not declared in this scope\n    " + line +
           " | " + code + "\n      | " + std::string(at, ' ') + "^" + std::string(name.size() - 1, '~') + "\n";
  };
  const std::string f = "D f(D x) { return x * t; }", g = "D g(D x) { return x * value; }", h = "D h(D x) { return x < 1.0 + size; }";
  CHECK(said("using D = Rep<double>;\n" + f + "\n" + g + "\n" + h + "\nint main() {}\n") ==
        undeclared("4", f, "t") + undeclared("5", g, "value") + undeclared("6", h, "size") + "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("a Rep of one type for a Rep of another, and a cast of C++'s, are told how they are written") {
  struct Mistake {
    std::string code, place, message;
  };
  const std::vector<Mistake> all{
      {"D f(I n) { return n; }", "n;", "expected a Rep<double>, got a Rep<int64_t>: write cast<double>(x)"},
      {"D g(D x) { I n = x; return x; }", "x;", "expected a Rep<int64_t>, got a Rep<double>: write cast<int64_t>(x)"},
      {"D h(F x) { return x; }", "x;", "expected a Rep<double>, got a Rep<float>: write cast<double>(x)"}};
  for (const bool by_clang : {false, true}) {
    std::string model = "using D = Rep<double>;\nusing F = Rep<float>;\nusing I = Rep<int64_t>;\n" +
                        std::string(by_clang ? "D sign(D x) { if (x > 0.0) return x; return -x; }\n" : "double sign(double x) { return x; }\n");
    std::string expected;
    int line = 6;
    for (const Mistake& m : all) {
      const std::size_t at = m.code.find(m.place);
      model += m.code + "\n";
      // Clang shows where an initialisation's variable is.
      const std::size_t shown = by_clang && m.code[at - 2] == '=' ? m.code.find("n =") : at;
      ++line;
      expected += "@/m.cpp:" + std::to_string(line) + ":" + std::to_string(shown + 1) + ": error: " + m.message + "\n    " +
                  std::to_string(line) + " | " + m.code + "\n      | " + std::string(shown, ' ') + "^\n";
    }
    CHECK(said(model + "int main() {}\n") == expected + "lanternc: error: @/m.cpp did not compile\n");
  }
  CHECK(said("Rep<double> f(Rep<double> x) { return x * (double)x; }\nint main() {}\n") ==
        "@/m.cpp:3:43: error: a Rep has no value yet, so it is no double: keep what is computed of it in a Rep (or write auto); "
        "cast<T>(x) makes a Rep<T> of a Rep\n"
        "    3 | Rep<double> f(Rep<double> x) { return x * (double)x; }\n"
        "      |                                           ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("two functions of one name in a file are one error") {
  CHECK(said("Rep<double> f(Rep<double> x) { return x; }\nLANTERN_FUNCTION(df, f)\nLANTERN_FUNCTION(df, grad(f))\nint main() {}\n") ==
        "@/m.cpp:5:1: error: there are two LANTERN_FUNCTIONs of the name 'df'; rename one\n"
        "    5 | LANTERN_FUNCTION(df, grad(f))\n"
        "      | ^\n"
        "@/m.cpp:4:1: note: the other one is here\n"
        "    4 | LANTERN_FUNCTION(df, f)\n"
        "      | ^~~~~~~~~~~~~~~~\n"
        "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("a fault of the user's code while it is staged is told") {
  const std::string told =
      ": the program's functions over Rep and its static initialisers run in lanternc; look there for what C++ leaves undefined, or "
      "run them under a debugger: gdb --args lanternc ...\n";
  CHECK(said("const double* table = nullptr;\nRep<double> f(Rep<double> x) { return x * table[3]; }\nLANTERN_FUNCTION(df, f)\n"
             "int main() {}\n") ==
        "lanternc: error: a wrong address, such as a null pointer or an index outside, while LANTERN_FUNCTION(df, ...) was staged "
        "(@/m.cpp:5)" + told);
  CHECK(said("const double* table = nullptr;\ndouble first = table[0];\nRep<double> f(Rep<double> x) { return x * first; }\n"
             "LANTERN_FUNCTION(df, f)\nint main() {}\n") ==
        "lanternc: error: a wrong address, such as a null pointer or an index outside, while static initialisers ran" + told);
  CHECK(said("volatile int none = 0;\nRep<double> f(Rep<double> x) { return x * double(1 / none); }\nLANTERN_FUNCTION(df, f)\n"
             "int main() {}\n") ==
        "lanternc: error: an arithmetic error, such as an integer divided by zero, while LANTERN_FUNCTION(df, ...) was staged "
        "(@/m.cpp:5)" + told);
}

TEST_CASE("flags by which a program cannot be built say so") {
  const std::string model = "Rep<double> f(Rep<double> x) { return x; }\nLANTERN_FUNCTION(df, f)\nint main() {}\n";
  CHECK(said(model, {"--", "-mabi=ms"}) ==
        "lanternc: error: -mabi=ms changes how functions are called, and Lantern's libraries are compiled without it: leave it out, "
        "and write __attribute__((ms_abi)) at the functions that need it\n");
  CHECK(said(model, {"--with-jit", "--", "-static"}) ==
        "lanternc: error: --with-jit: expected a program with shared libraries, since LLVM is one; leave out -static\n");
}

TEST_CASE("a static program has no shared libraries, and needs no archive that it does not call") {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "m.cpp").string(), program = (directory.path() / "m").string();
  write_file(file, "#include <cstdio>\n#include <lantern/lantern.hpp>\nusing namespace lantern;\n"
                   "Rep<double> f(Rep<double> x) { return x * x; }\nLANTERN_FUNCTION(df, grad(f))\n"
                   "int main() { std::printf(\"%g\\n\", df(3.0)); }\n");
  const ProcessResult built = run_process({LANTERNC, file, "-o", program, "--", "-static"});
  CHECK(built.status == 0);
  CHECK(built.err.empty());
  CHECK(run_process({program}).out == "6\n");
  CHECK(lantern::codegen::read_file(program).find(".interp") == std::string::npos);
}

TEST_CASE("containers of Reps are containers of C++: a Rep is no index of theirs") {
  const std::string remedy = ": make it an argument of the program, Rep<Array<double>>, or write constant_table(table)[i]\n";
  CHECK(said("#include <vector>\nusing D = Rep<double>;\nusing I = Rep<int64_t>;\nusing M = Rep<Tensor<double, dyn, dyn>>;\n"
             "D k(I i, std::vector<D> v) { return v[i]; }\n"
             "M l(I i, std::vector<M> v) { return v[i]; }\n"
             "int main() {}\n") ==
        "@/m.cpp:7:38: error: a Rep has no value yet and cannot be the index of a std::vector<lantern::core::Rep<double> >" + remedy +
            "    7 | D k(I i, std::vector<D> v) { return v[i]; }\n"
            "      |                                      ^\n"
            "@/m.cpp:8:38: error: a Rep has no value yet and cannot be the index of a "
            "std::vector<lantern::core::Rep<lantern::core::Tensor<double, -1, -1> > >" +
            remedy +
            "    8 | M l(I i, std::vector<M> v) { return v[i]; }\n"
            "      |                                      ^\n"
            "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("wrong template arguments are told in whole, also where Clang reads the program first") {
  CHECK(said("using D = Rep<double>;\n"
             "D f(D x, D y) { if (x > y) return x * y; return y; }\n"
             "D g(D x) { return grad<3>(f)(x, x); }\n"
             "D h(D x) { return std::get<0>(vjp<mode::taped>(f)(x, x, x)); }\n"
             "LANTERN_FUNCTION(df, grad<7>(f))\n"
             "int main() {}\n") ==
        "@/m.cpp:5:26: error: grad: position 3 is out of range: the function has 2 arguments, the first is 0\n"
        "    5 | D g(D x) { return grad<3>(f)(x, x); }\n"
        "      |                          ^\n"
        "@/m.cpp:6:47: error: vjp: expected positions of arguments, as vjp<0, 2>(f), got a mode; grad<mode>(f) takes one\n"
        "    6 | D h(D x) { return std::get<0>(vjp<mode::taped>(f)(x, x, x)); }\n"
        "      |                                               ^\n"
        "@/m.cpp:7:29: error: grad: position 7 is out of range: the function has 2 arguments, the first is 0\n"
        "    7 | LANTERN_FUNCTION(df, grad<7>(f))\n"
        "      |                             ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("a range-based for over what is no range is one error, and none behind another") {
  const std::string refused = "using D = Rep<double>;\nusing I = Rep<int64_t>;\nusing V = Rep<Array<double>>;\n"
                              "D f(V x, I n) { return x[n]; }\nLANTERN_FUNCTION(df, grad<1>(f))\n";
  CHECK(said(refused + "int main() { for (double d : df(std::vector<double>(2), 1)) return d > 0; }\n") ==
        "@/m.cpp:7:29: error: grad: the argument at position 1 has no floating-point number: there is no derivative by it\n"
        "    7 | LANTERN_FUNCTION(df, grad<1>(f))\n"
        "      |                             ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
  CHECK(said("int main() { for (double d : 3) return d > 0; }\n") ==
        "@/m.cpp:3:30: error: expected an array, a container or a braced list behind ':'\n"
        "    3 | int main() { for (double d : 3) return d > 0; }\n"
        "      |                              ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("structured bindings say how many values there are") {
  CHECK(said("using D = Rep<double>;\n"
             "D f(D x, D y) { return x * y; }\n"
             "D g(D x) { const auto [a, b, c] = grad(f)(x, x); return a; }\n"
             "D h(D x) { const auto [a, b] = grad<0>(f)(x, x); return a; }\n"
             "int main() {}\n") ==
        "@/m.cpp:5:23: error: 3 names provided for structured binding\n"
        "    5 | D g(D x) { const auto [a, b, c] = grad(f)(x, x); return a; }\n"
        "      |                       ^~~~~~~~~\n"
        "@/m.cpp:5:23: note: while ‘const std::tuple<lantern::core::Rep<double>, lantern::core::Rep<double> >’ decomposes into 2 "
        "elements\n"
        "@/m.cpp:6:23: error: expected one name: a Rep is one value, and no tuple of several\n"
        "    6 | D h(D x) { const auto [a, b] = grad<0>(f)(x, x); return a; }\n"
        "      |                       ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("a function of Lantern's with other arguments shows how it is called") {
  CHECK(said("#include <lantern/solvers.hpp>\n"
             "Rep<double> f(Rep<double> x) {\n"
             "  return solvers::dormand_prince([](Rep<double> t, Rep<double> y) { return t * y; }, x).y;\n"
             "}\n"
             "LANTERN_FUNCTION(g, grad(f))\n"
             "int main() {}\n") ==
        "@/m.cpp:5:33: error: no dormand_prince takes these arguments: it is called as dormand_prince(f, {.relative = 1e-8}, y0, t0, "
        "t1, p...), or without options\n"
        "    5 |   return solvers::dormand_prince([](Rep<double> t, Rep<double> y) { return t * y; }, x).y;\n"
        "      |                                 ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("a solver's struct in the place of its solution") {
  CHECK(said("#include <lantern/solvers.hpp>\n"
             "Rep<double> f(Rep<double> q) {\n"
             "  Rep<double> x = solvers::brent([](Rep<double> x, Rep<double> q) { return x * x - q; }, 0.0, 2.0, q);\n"
             "  return x;\n"
             "}\n"
             "LANTERN_FUNCTION(g, grad(f))\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:5:33: error: a solver gives a struct: its member x is the solution, solvers::solve(...).x for "
                         "instance; others say whether it was found\n"));
  CHECK(said("#include <lantern/solvers.hpp>\n"
             "Rep<double> f(Rep<double> q) {\n"
             "  auto x = solvers::dormand_prince([](Rep<double>, Rep<double> y) { return -y; }, q, 0.0, 1.0);\n"
             "  return 2.0 * x;\n"
             "}\n"
             "LANTERN_FUNCTION(g, grad(f))\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:6:14: error: a solver gives a struct: its member y is the solution, solvers::solve(...).y for "
                         "instance; others say whether it was found\n"));
}

TEST_CASE("a member function without its object") {
  const std::string remedy =
      "error: a member function needs its object: write a lambda over it, grad([&](Rep<double> x) { return s.f(x); }), or "
      "[this](Rep<double> x) { return f(x); } inside the class\n";
  CHECK(said("struct S {\n"
             "  double k = 2.0;\n"
             "  Rep<double> f(Rep<double> x) const { return x * k; }\n"
             "};\n"
             "Rep<double> h(Rep<double> x) { return grad(&S::f)(x); }\n"
             "LANTERN_FUNCTION(g, h)\n"
             "int main() {}\n") ==
        "@/m.cpp:7:50: " + remedy +
            "    7 | Rep<double> h(Rep<double> x) { return grad(&S::f)(x); }\n"
            "      |                                                  ^\n"
            "lanternc: error: @/m.cpp did not compile\n");
  CHECK(said("struct S {\n"
             "  double k = 2.0;\n"
             "  Rep<double> f(Rep<double> x) const { return x * k; }\n"
             "  Rep<double> df(Rep<double> x) const { return grad(f)(x); }\n"
             "};\n"
             "Rep<double> h(Rep<double> x) { return S().df(x); }\n"
             "LANTERN_FUNCTION(g, h)\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:6:53: " + remedy));
  CHECK(said("struct S {\n"
             "  double k = 2.0;\n"
             "  Rep<double> f(Rep<double> x) { return x * k; }\n"
             "};\n"
             "LANTERN_FUNCTION(g, grad(&S::f))\n"
             "int main() {}\n") ==
        "@/m.cpp:7:25: error: a member function that is not const may change its object, and is no function over Reps: keep "
        "the struct outside, and write a lambda over it, [&](Rep<double> x) { return s.f(x); }; or, where all members are "
        "Reps, write const behind its parameters\n"
        "    7 | LANTERN_FUNCTION(g, grad(&S::f))\n"
        "      |                         ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("a lambda that captures nothing is one error") {
  CHECK(said("Rep<double> f(Rep<double> x) {\n"
             "  return FOR(0, 5, x, [](auto i, auto s) { return s + x; });\n"
             "}\n"
             "LANTERN_FUNCTION(g, grad(f))\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:4:55: error: the lambda does not capture x: write [&]\n"));
}

TEST_CASE("arrays of a size that the program computes, and other names") {
  const auto first = [](const std::string& model) {
    const std::string text = said(model + "LANTERN_FUNCTION(g, grad(f))\nint main() {}\n");
    const std::size_t begin = text.find("error: ") + 7;
    return text.substr(begin, text.find('\n') - begin);
  };
  const std::string array =
      "an array of n elements is fill(Rep<double>(0.0), n); its elements are set by v = v.set(0, x), or v[0] = x with lanternc; "
      "constant_table({1.0, 2.0}) is one of plain numbers";
  CHECK(first("Rep<double> f(Rep<int64_t> n, Rep<double> x) {\n  Rep<Array<double>> v(n);\n  return v[0] * x;\n}\n") == array);
  CHECK(first("Rep<double> f(Rep<double> x) {\n  Rep<Array<double>> v = {x, 2.0 * x, 1.0};\n  return sum(v);\n}\n") == array);
  CHECK(first("Rep<double> f(Rep<int64_t> n, Rep<double> x) {\n  std::vector<Rep<double>> v(n);\n  return x;\n}\n") ==
        "the size of a std::vector is known while the program is staged: write fill(Rep<double>(0.0), n), an array, where a Rep "
        "gives the size");
  CHECK(first("Rep<double> f(Rep<double> x) { return derivative(f)(x); }\n") ==
        "there is no derivative: a derivative is grad(f); others are value_and_grad, jacobian, hessian, jvp and vjp");
  CHECK(first("Rep<double> f(Rep<double> x) {\n  if (0.0 < x < 1.0) return x;\n  return -x;\n}\n") ==
        "a comparison gives a truth value, which is not compared again: write a < x && x < b with lanternc, AND(a < x, [&] { return x "
        "< b; }) elsewhere");
  CHECK(first("#include <lantern.hpp>\nRep<double> f(Rep<double> x) { return x; }\n") == "write #include <lantern/lantern.hpp>");
}

TEST_CASE("types that a Rep does not hold, and names in namespaces") {
  const std::string text = said("Rep<double> f(Rep<unsigned> x) { return cast<double>(x); }\nLANTERN_FUNCTION(g, f)\nint main() {}\n");
  CHECK(text.find(":4:1: error: there is no Rep<unsigned int>: a Rep holds a bool, int32_t, int64_t, float or double, or an Array, "
                  "Tensor or Tree of them\n") != std::string::npos);
  CHECK(text.find("tensor.hpp") == std::string::npos);
  CHECK(said("namespace my {\nRep<double> f(Rep<double> x) { return x; }\n}\nLANTERN_FUNCTION(my::g, grad(my::f))\nint main() {}\n") ==
        "@/m.cpp:6:1: error: the name of a LANTERN_FUNCTION is one word: write the macro inside of the namespace\n"
        "    6 | LANTERN_FUNCTION(my::g, grad(my::f))\n"
        "      | ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
}

TEST_CASE("printf of a tuple is warned of") {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "m.cpp").string();
  write_file(file,
             "#include <cstdio>\n#include <lantern/lantern.hpp>\nusing namespace lantern;\n"
             "Rep<double> f(Rep<double> x, Rep<double> y) { return x * y; }\nLANTERN_FUNCTION(g, grad(f))\n"
             "int main() { std::printf(\"%g\\n\", g(1.0, 2.0)); }\n");
  const ProcessResult r = run_process({LANTERNC, file, "-o", file + ".out"});
  CHECK(r.status == 0);
  CHECK(r.err.find(" warning: format ‘%g’ expects argument of type ‘double’, but argument 2 has type") != std::string::npos);
}

TEST_CASE("results of compiled functions that are used as something else") {
  const std::string parts = "write const auto [y, slope] = df(x), a name for each, or std::get<0>(df(x))\n";
  CHECK(said("Rep<double> f(Rep<double> x) { return x * x; }\n"
             "LANTERN_FUNCTION(df, value_and_grad(f))\n"
             "double y = df(3.0);\n"
             "int main() {}\n") ==
        "@/m.cpp:5:14: error: the compiled function gives several values, in a std::tuple: " + parts +
            "    5 | double y = df(3.0);\n"
            "      |              ^\n"
            "lanternc: error: @/m.cpp did not compile\n");
  CHECK(said("Rep<double> f(Rep<double> x, Rep<double> y) { return x * y; }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "double y = df(3.0, 4.0)[0];\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:5:24: error: a std::tuple has no [i]: " + parts));
  CHECK(said("Rep<double> f(Rep<Array<double>> a) { return dot(a, a); }\n"
             "LANTERN_FUNCTION(h, hessian(f))\n"
             "double y = h(std::vector<double>{1.0, 2.0})[0][0];\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:5:47: error: a number has no [i]: an element of a matrix that a compiled function gives is m(i, j)\n"));
}

TEST_CASE("a function of <cmath> in a template that serves double as well") {
  for (const std::string call : {"sqrt(x)", "pow(x, x)", "std::atan2(x, 2.0)"}) {
    const std::string name = call.substr(0, call.find('(')), bare = name.starts_with("std::") ? name.substr(5) : name;
    CHECK(said("template <class T> T f(const T& x) { using std::sqrt; using std::pow; return " + call + "; }\n"
               "LANTERN_FUNCTION(df, grad(f<Rep<double>>))\n"
               "int main() { return f<double>(2.0) > df(2.0); }\n")
              .find(": error: write #include <cmath>: " + bare + " of a double is there\n") != std::string::npos);
  }
}

TEST_CASE("what lantern.hpp does not include, and has by another name") {
  const std::string cmath = "write #include <cmath>: M_PI is there\n";
  CHECK(said("Rep<double> f(Rep<double> x) { return x * M_PI; }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:3:43: error: " + cmath));
  const std::string size = "the size of an array is a.size(), of dimension k of a tensor t.dim(k)\n";
  const std::string sum_to_size =
      "Rep<double> f(Rep<Array<double>> a) {\n"
      "  Rep<double> s = 0.0;\n"
      "  for (Rep<std::int64_t> i = 0; i < size(a); ++i) s += a[i];\n"
      "  return s;\n"
      "}\n"
      "LANTERN_FUNCTION(df, grad(f))\n"
      "int main() {}\n";
  // The native loop is what Clang reads the file for.
  CHECK(said(sum_to_size).starts_with("@/m.cpp:5:37: error: " + size));
  CHECK(said("Rep<double> f(Rep<double> x, Rep<std::int64_t> n) { return pow(x, n); }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n")
            .find("error: pow takes two numbers of one type: write pow(x, cast<double>(n))\n") != std::string::npos);
  CHECK(said("Rep<double> f(Rep<double> x, Rep<std::int64_t> n) { return n > 0 ? x : n; }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n")
            .find("error: the two sides of ?: have different types: write cast<double>(n) where one is a Rep of integers\n") !=
        std::string::npos);
  CHECK(said("#include <algorithm>\n"
             "Rep<double> f(Rep<double> x, Rep<double> y) {\n"
             "  std::array<Rep<double>, 2> v{x, y};\n"
             "  std::sort(v.begin(), v.end());\n"
             "  return v[1];\n"
             "}\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:6:12: error: std::sort branches on values that are not there yet: of an array there are sort(a), "
                         "argsort(a), max(a), argmax(a) in <lantern/tensor.hpp>, of numbers max({x, y, z})\n"));
  CHECK(said("Rep<double> f(Rep<Tensor<double>> t) { return t[0]; }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n")
            .find("error: an element of a tensor is t(i), m(i, j) or such, with an index for each of its dimensions; m.row(i) is a "
                  "row\n") != std::string::npos);
  CHECK(said("Rep<double> f(Rep<Array<double>> a) { return cast<double>(a.length()) * a; }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:3:61: error: " + size));
  CHECK(said("Rep<double> f(Rep<Array<double>> a, Rep<Array<double>> b) { return a * b; }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n")
            .find("error: expected one number, got an array or tensor of them: sum(a) and dot(a, b) give one, a[i] and m(i, j) an "
                  "element\n") != std::string::npos);
  CHECK(said("Rep<double> f(Rep<Array<double>> a) { return mean(a); }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:3:50: error: no mean takes these arguments: it is called as mean(t); or mean(t, Keep); some of it is in "
                         "<lantern/tensor.hpp>\n"));
  CHECK(said("Rep<double> f(Rep<Array<double>> a) { return norm(a); }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:3:46: error: write #include <lantern/tensor.hpp>: norm is there\n"));
  CHECK(said("#include <Eigen/Absent>\n"
             "int main() {}\n") ==
        "@/m.cpp:3:10: fatal error: the headers of Eigen are not found: write -I/usr/include/eigen3, or where they are, behind lanternc\n"
        "    3 | #include <Eigen/Absent>\n"
        "      |          ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
  CHECK(said("#include <random>\n"
             "Rep<double> f(Rep<double> x) {\n"
             "  std::mt19937 g(1);\n"
             "  std::normal_distribution<Rep<double>> n;\n"
             "  return x * n(g);\n"
             "}\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n")
            .find("error: random numbers that a program draws when it runs are random::normal<double>(key, n), in "
                  "<lantern/random.hpp>; those of std are drawn once, while it is staged\n") != std::string::npos);
}

TEST_CASE("a function over Reps that no file defines") {
  CHECK(said("Rep<double> g(Rep<double> x);\n"
             "Rep<double> f(Rep<double> x) { return g(x); }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() {}\n") ==
        "lanternc: error: g(Rep<double>) is declared, and no file defines it: name the file that does behind lanternc, or write its "
        "body\n");
}

TEST_CASE("a LANTERN_FUNCTION without a name, and with arguments") {
  CHECK(said("Rep<double> f(Rep<double> x) { return x * x; }\n"
             "LANTERN_FUNCTION(grad(f))\n"
             "int main() {}\n") ==
        "@/m.cpp:4:1: error: LANTERN_FUNCTION takes a name and a function: LANTERN_FUNCTION(df, grad(f))\n"
        "    4 | LANTERN_FUNCTION(grad(f))\n"
        "      | ^\n"
        "lanternc: error: @/m.cpp did not compile\n");
  CHECK(said("Rep<double> f(Rep<double> x) { return x * x; }\n"
             "LANTERN_FUNCTION(df, grad(f), 3.0)\n"
             "int main() {}\n")
            .starts_with("@/m.cpp:4:1: error: LANTERN_FUNCTION takes a name and one function, LANTERN_FUNCTION(df, grad(f)); arguments "
                         "are given where df is called\n"));
}

TEST_CASE("names that no file defines, or several") {
  CHECK(said("Rep<double> f(Rep<double> x) { return x * x; }\n"
             "LANTERN_FUNCTION(df, grad(f))\n") ==
        "lanternc: error: no file defines main: name the file that does behind lanternc, or write -c for an object, --emit=shared for a "
        "library\n");
  CHECK(said("Rep<double> f(Rep<double> x) { return x * x; }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "double scale(double);\n"
             "int main() { return static_cast<int>(scale(df(2.0))); }\n") ==
        "lanternc: error: no file and no library defines scale(double): name the file that does behind lanternc, or its library, -lNAME\n");
  const TemporaryDirectory directory;
  const std::string other = (directory.path() / "other.cpp").string();
  write_file(other, "#include <lantern/lantern.hpp>\nusing namespace lantern;\nRep<double> f(Rep<double> x) { return sin(x); }\n"
                    "LANTERN_FUNCTION(dg, grad(f))\n");
  CHECK(said("Rep<double> f(Rep<double> x) { return x * x; }\n"
             "LANTERN_FUNCTION(df, grad(f))\n"
             "int main() { return static_cast<int>(df(2.0)); }\n",
             {other}) ==
        "lanternc: error: two files define f(Rep<double>): make it static in each, or define it in one of them and declare it in a header\n");
}
